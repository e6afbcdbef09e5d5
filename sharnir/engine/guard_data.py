"""What the guard counts and reads: rows of its memory, its thresholds, the structures that kernels are given.

Words: the *verdict* of a step is a set of bits, one for each test that the step's result fails; 0 means converged. The *drift* of
a run is the energy that it has gained without a source (theory: the guard).
"""

import warp as wp

from sharnir.collision.data import Contacts
from sharnir.core.types import EPSILON, quat, real, vec3
from sharnir.model.cables import CableTable
from sharnir.model.joint_types import AxisTable, JointTable
from sharnir.model.model import BodyTable, Control, SpringTable, State

# rows of `counts` and `sums`, [row, world]; the first seven counts and the first two sums are also written by solvers' kernels
COUNT_ROWS = (
    "steps", "missed", "divided", "parts", "told", "which", "looked",
    "not_converged", "verdict", "trouble", "fresh", "causes", "seen",
)  # fmt: skip
(
    STEPS,
    COUNT_MISSED,
    DIVIDED_STEPS,
    ALL_PARTS,
    TOLD,
    WHICH,
    LOOKED,
    COUNT_NOT_CONVERGED,
    VERDICT,
    TROUBLE,
    FRESH,
    CAUSES,
    COUNT_SEEN,
) = (wp.constant(i) for i in range(len(COUNT_ROWS)))
SUM_ROWS = (
    "gap", "residual", "energy_error", "drift", "before", "power", "projected", "figure", "scale", "peak", "stretch",
    "total", "work", "excess",
)  # fmt: skip
SUM_GAP, RESIDUAL, ERROR, DRIFT, BEFORE, POWER, PROJECTED, FIGURE, SUM_SCALE, PEAK, STRETCH, TOTAL, SUM_WORK, EXCESS = (
    wp.constant(i) for i in range(len(SUM_ROWS))
)

# bits of `alarm`; the first three are warnings, given once, the others mean that the motion has diverged
OPEN_GAP, NOT_MET, FAST_TURNS, TORN_APART, ENERGY, TOO_FAST = (wp.constant(1 << i) for i in range(6))
DIVERGED = wp.constant(1 << 20)  # value of `State.failed`, to which the bit is added

# bits of a verdict
BAD_JOINT, BAD_ROPE, BAD_CONTACT, BAD_ENERGY = (wp.constant(1 << i) for i in range(4))
VERDICTS = {1: "joint", 2: "rope", 4: "contact", 8: "energy"}

# ---- thresholds of `converged`, per step ----
OPEN_JOINT = wp.constant(real(1.0e-3))  # gap of a joint, relative to the size of its smaller body, or rad; stretch of a rope
OPENED_JOINT = wp.constant(real(1.0e-2))  # the same, of a gap that velocities opened and displacements closed within the step
SLIP_SLACK = wp.constant(
    real(0.05)
)  # of g Δt or of the change of velocity: error of the slip of a contact; of m g Δt: of its impulse
SLIP = wp.constant(real(2.0e-3))  # of the bodies' speed: error of the slip of a contact that should stick
DEEP = wp.constant(real(0.02))  # overlap, or gap of a contact that pushes, relative to the size of the smaller body
OVERLAP = wp.constant(real(0.01))  # of that: what overlaps less is not asked whether it still approaches
APPROACH_SLACK = wp.constant(real(3.0))  # times the slack of a slip: speed at which bodies that overlap still approach each other
UNSOLVED = wp.constant(real(max(1e-6, 1e3 * EPSILON)))  # of what contacts change: error of their laws that a solver left
ENERGY_GAIN = wp.constant(real(1.0e-3))  # energy gained without a source, relative to kinetic and elastic energy and work
STEP_GAIN = wp.constant(real(0.1))  # the same, relative to M (g Δt)²
SEVERE = wp.constant(real(10.0))  # times these thresholds: counts twice towards a warning
PERSISTS = wp.constant(512)  # trouble from which a warning is given: 8 for a step not converged, −1 for one that is

# ---- thresholds of a warning and of a stop ----
WARNED = wp.constant(real(0.05))  # a gap, relative to the size of a body
DRIFT_WARNED = wp.constant(real(0.05))  # drift relative to the scale of the motion
STOP = wp.constant(real(0.2))  # the same, from which the motion has diverged
STOP_TOTAL = wp.constant(real(1.0))  # the same with what position corrections have lifted
STILL_SPEED = wp.constant(real(1.0e-6))  # scene sizes per second: slower motion counts as rest
FAR_TURN = wp.constant(real(0.5))  # rad per step, by which Cayley's map falls behind by 2 %
FAST_SPEED = wp.constant(real(1.0e4))  # scene sizes per step
ENERGY_ROUNDING = wp.constant(real(1.0e4 * EPSILON))  # relative to the energies that are compared


@wp.struct
class Tally:
    """Counts and sums over all steps, kept by kernels and by the guard."""

    alarm: wp.array(dtype=wp.int32)  # [world] bits that were not reported yet
    counts: wp.array2d(dtype=wp.int32)  # [COUNTS, world]
    sums: wp.array2d(dtype=real)  # [SUMS, world]


@wp.struct
class RopeWatch:
    """What the guard reads of ropes: arrays of `RopeTable`, `RopeState` and `RopeControl`."""

    count: wp.int32
    first: wp.array(dtype=wp.int32)
    density: wp.array(dtype=real)
    radius: wp.array(dtype=real)
    EI: wp.array2d(dtype=real)
    GJ: wp.array2d(dtype=real)
    bends: wp.array(dtype=wp.int32)  # [rope] 1: it resists bending or twisting
    rest: wp.array(dtype=vec3)
    reel: wp.array(dtype=wp.int32)
    kind: wp.array(dtype=wp.int32)
    body: wp.array(dtype=wp.int32)
    clamp: wp.array(dtype=wp.int32)
    frame: wp.array(dtype=quat)
    segments: wp.array2d(dtype=wp.int32)
    cut: wp.array2d(dtype=wp.int32)
    length: wp.array2d(dtype=real)
    span: wp.array2d(dtype=real)
    position: wp.array2d(dtype=vec3)
    velocity: wp.array2d(dtype=vec3)
    rotation: wp.array2d(dtype=quat)
    spin: wp.array2d(dtype=vec3)
    pull: wp.array2d(dtype=vec3)
    moment: wp.array2d(dtype=vec3)
    force: wp.array2d(dtype=vec3)
    force_once: wp.array2d(dtype=vec3)
    torque: wp.array2d(dtype=vec3)
    end_force: wp.array2d(dtype=vec3)
    tie_force: wp.array2d(dtype=vec3)
    reel_rate: wp.array2d(dtype=real)
    reel_speed: wp.array2d(dtype=real)
    last_rate: wp.array2d(dtype=real)  # [rope, world] m/s, of the reel in the step before
    wind: wp.array(dtype=vec3)


BODY_SUMS = ("KINETIC", "POTENTIAL", "SPEED_2", "SPIN_2", "LIFTED")
"""What is found of a body: twice its kinetic energy, its energy in gravity, J; speed and spin squared; `guard.lifted_body`."""
BODY_KINETIC, BODY_POTENTIAL, BODY_SPEED, BODY_SPIN, BODY_LIFTED = (wp.constant(k) for k in range(len(BODY_SUMS)))
BODY_ROWS = wp.constant(len(BODY_SUMS))


@wp.struct
class Watch:
    """What the guard reads and keeps."""

    bodies: BodyTable
    joints: JointTable
    axes: AxisTable
    springs: SpringTable
    cables: CableTable
    state: State  # velocities, momenta and reactions may be those of half steps
    now: State  # the caller's
    halves: wp.int32  # 1: they are
    control: Control
    dt: wp.array(dtype=real)
    gravity: wp.array(dtype=vec3)
    size: wp.array(dtype=real)  # [joint] m, of the smaller of its bodies
    body_size: wp.array(dtype=real)  # [body] m
    least: real  # m, the smallest of `size`
    extent: real  # m, of the scene
    weight: real  # kg, of all that moves
    driven: wp.int32  # 1: some body is kinematic, or some surface moves
    sprung: wp.array(dtype=wp.int32)  # joints whose axes have springs or motors' rotors
    casts: wp.vec3i  # raycast wheels: how many, and their first rows of State.drive_state and Control.drive_command
    cast_inertia: wp.array(dtype=real)  # [cast wheel] kg·m²
    cayley: wp.int32  # 1: bodies turn by Cayley's map, (Δt ω)²/12 too little
    looks: wp.int32  # 1: gaps are measured where `aim` says that joints open; 2: always; 0: `State.open` has them
    lost: wp.array(
        dtype=real
    )  # [world] J, that velocities lost where they did not fit the joints; negative: kinematic bodies gave
    parts: wp.array(dtype=wp.int32)  # [world] in how many the last step was made
    work: wp.array(dtype=real)  # [world] J, that was given in the steps since the last look, if the solver measures it
    measured: wp.int32  # 1: it does
    exact: wp.array(dtype=wp.int32)  # [body] 1: a rotor, whose angle does not fall behind its spin
    mean_force: wp.array2d(dtype=vec3)  # [joint, world] constraint impulse and moment, mean over the step
    mean_torque: wp.array2d(dtype=vec3)
    aim_linear: wp.array2d(dtype=vec3)  # [joint, world] m/s, at which split impulses close a gap in a step
    aim_angular: wp.array2d(dtype=vec3)
    touching: wp.int32  # 1: bodies may touch
    contacts: Contacts
    blow: wp.array2d(dtype=vec3)  # [point, world] N·s, impulse of impacts
    slip: wp.array2d(dtype=vec3)  # [point, world] m/s
    bend: wp.array2d(dtype=real)  # [point, world] m, what turning adds to a gap beyond its first order; or no rows
    unsolved: wp.array(dtype=real)  # [world] error of laws that their solver left, relative; none if it does not report it
    taken: wp.array(dtype=real)  # [world] J, that impacts took in the last step; none where slips are not those of its end
    rope: RopeWatch
    last_position: wp.array2d(dtype=vec3)  # [body, world] as the guard saw them last
    last_velocity: wp.array2d(dtype=vec3)
    last_spin: wp.array2d(dtype=vec3)
    spread: wp.int32  # 1: a kernel with a thread per body has looked at bodies, and left what it found in
    found: wp.array2d(dtype=real)  # [OF_BODY of all bodies, world]
    strict: wp.array(dtype=wp.int32)  # 1: a world that has diverged is marked in `State.failed`, and stops
    alarm: wp.array(dtype=wp.int32)  # [world] bits that were not reported yet
    counts: wp.array2d(dtype=wp.int32)  # [COUNTS, world]
    sums: wp.array2d(dtype=real)  # [SUMS, world]
