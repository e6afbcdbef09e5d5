"""What the stages of a step share: settings, scratch, and the one structure that a kernel is given."""

import warp as wp

from sharnir.collision.data import Contacts
from sharnir.core.types import mat33, quat, real, vec2, vec3, vec4, vec6
from sharnir.engine.sleep import Rest
from sharnir.laws.casts import CastTable
from sharnir.laws.rows import AxisRows, Twists
from sharnir.laws.solve import Laws
from sharnir.model.cables import CableTable, CableWork
from sharnir.model.joint_types import AxisTable, DriveTable, GearTable, JointTable
from sharnir.model.model import BodyTable, Control, SpringTable, State

VELOCITIES = wp.constant(0)  # the two solves of a step, as indices
POSITIONS = wp.constant(1)


@wp.struct
class Settings:
    """Numbers that may change between steps, one element each unless said, so that a captured step reads them."""

    dt: wp.array(dtype=real)
    part: wp.array(dtype=real)  # [world] s, the step, or the part of it that is being made
    kick: wp.array(dtype=real)  # [world] s, duration over which forces act in this step
    halves: wp.array(dtype=wp.int32)  # 1: steps begin with half a kick, and what is read is brought to the pose by another
    gravity: wp.array(dtype=vec3)
    erp: wp.array(dtype=real)
    tolerance: wp.array(dtype=real)  # [solve]
    per_metre: wp.array(dtype=real)  # 1/m, one over the scene's length: so that moments count like forces
    nothing: wp.array(dtype=real)  # m/s and kg·m²/s below which a body rests
    iterations: wp.array(dtype=wp.int32)  # [solve] cap of the sweeps
    sweeps: wp.array(dtype=wp.int32)  # [solve] at most so many in one launch
    sleep: wp.array(dtype=real)  # s, after which bodies that stand still sleep; from 1e30 on they never do
    touch: wp.array(dtype=real)  # m/s, by which a sweep may change the speed of a point of contact where it is met


@wp.struct
class Work:
    """Scratch of a step; [item, world]."""

    gyro: wp.array2d(dtype=vec3)  # −I⁻¹(ω × L), the angular acceleration of a free body
    spin_start: wp.array2d(dtype=vec3)  # ω after external torques
    momentum: wp.array2d(dtype=vec3)  # L after external torques
    inv_inertia: wp.array2d(dtype=mat33)  # I⁻¹, world axes; it and the next 0 for bodies that sleep
    inv_mass: wp.array2d(dtype=real)
    position: wp.array2d(dtype=vec3)  # the new pose
    rest: wp.array2d(dtype=vec3)
    rotation: wp.array2d(dtype=quat)
    follows: wp.array(dtype=wp.int32)  # [body] 1: a kinematic one whose velocities lead along a path
    driven_v: wp.array2d(dtype=vec3)  # velocity and spin of kinematic bodies in the step before
    driven_w: wp.array2d(dtype=vec3)
    sweeps: wp.array(dtype=wp.int32)  # [world] of the last step, and what was left, while velocities are brought to the pose
    left: wp.array(dtype=real)

    open: wp.array(dtype=wp.int32)  # [joint] 1: in a mechanism without loops and gears
    mode: wp.array2d(dtype=wp.int32)  # of a joint, bits: `prepare.MODE_BLOCK`, `ACTS`, `BALL`, `RESTS`
    r_parent: wp.array2d(dtype=vec3)  # the common point from each centre of mass
    r_child: wp.array2d(dtype=vec3)
    W_ll: wp.array2d(dtype=mat33)
    W_la: wp.array2d(dtype=mat33)
    W_aa: wp.array2d(dtype=mat33)
    turn_parent_l: wp.array2d(dtype=mat33)  # I⁻¹([r]W_ll + W_al) and I⁻¹([r]W_la + W_aa) of each body: the change of ω straight
    turn_parent_a: wp.array2d(dtype=mat33)  # from u, since a sweep is as slow as its longest chain of operations
    turn_child_l: wp.array2d(dtype=mat33)
    turn_child_a: wp.array2d(dtype=mat33)
    drive_force: wp.array2d(dtype=vec3)  # impulse of the forces applied on free axes
    drive_torque: wp.array2d(dtype=vec3)

    axis: AxisRows

    gear_row: wp.array3d(dtype=vec3)  # [gear, 8: (linear, angular) of child a, parent a, child b, parent b, world]
    gear_W: wp.array2d(dtype=real)
    spring_n: wp.array2d(dtype=vec3)  # from parent to child
    spring_r_parent: wp.array2d(dtype=vec3)
    spring_r_child: wp.array2d(dtype=vec3)
    spring_K: wp.array2d(dtype=real)  # n·K n
    spring_a: wp.array2d(dtype=real)  # p = −a u − b
    spring_b: wp.array2d(dtype=real)
    spring_bend: wp.array2d(dtype=real)


@wp.struct
class Patch:
    """Points of a pair that have one normal: they feel how b moves relative to a at one middle, along n, t₁, t₂ = n × t₁."""

    a: wp.int32
    b: wp.int32
    first: wp.int32
    size: wp.int32
    n: vec3
    t1: vec3
    t2: vec3
    c_a: vec3  # m, the middle from each centre of mass, world axes
    c_b: vec3
    slide: vec3  # m/s, of moving surfaces
    rests: wp.int32  # 1: neither body moves in this step
    special: wp.int32  # of its only point, see `Contacts`
    middle: vec3  # m
    point: vec3  # m, the first point, and where the two bodies were anchored: while these are the same, the rows are
    x_a: vec3
    x_b: vec3
    q_a: quat
    q_b: quat


@wp.struct
class Row:
    """A point of a patch, as sweeps read it: one piece of memory, along the patch's axes."""

    d: vec3  # m, from the middle
    B_l: mat33  # change of the relative velocity in the middle, and of the relative spin, by an impulse at the point
    B_a: mat33
    K: vec6  # response of the two bodies at the point: nn, n1, n2, 11, 12, 22
    G: vec4  # `laws.contact.tangent_inverse`
    mu: vec2
    inverse: real  # 1/(K_nn + soft)
    bias: real  # m/s
    soft: real


@wp.struct
class Touch:
    """Scratch of the points of contact; [point, world], along n, t₁, t₂ where three numbers stand for an impulse."""

    patches: wp.array(dtype=wp.int32)  # [world]
    known: wp.array(dtype=wp.int32)  # [world] 1: rows are of a step, not of reading its end
    turns: wp.array(dtype=wp.int32)  # [world] 1: some point resists rolling or turning
    patch: wp.array2d(dtype=Patch)  # [patch, world]
    row: wp.array2d(dtype=Row)
    patch_of: wp.array2d(dtype=wp.int32)
    before: wp.array2d(dtype=real)  # m/s, normal speed before forces acted
    p: wp.array2d(dtype=vec3)  # tangential parts over the coefficients of friction
    kept: wp.array2d(dtype=vec3)  # p before all points were solved for at once
    mode: wp.array2d(dtype=wp.int32)  # open, slides, holds: see `block_contact`
    force: wp.array2d(dtype=vec3)  # [patch, world] what a patch is to be pushed with, along its axes
    torque: wp.array2d(dtype=vec3)
    roll: wp.array2d(dtype=vec3)  # N·m·s, world axes
    yields: wp.array2d(dtype=vec2)  # of a tyre, along t₁, t₂: u + yields·p + lead = 0 while it holds
    lead: wp.array2d(dtype=vec2)  # m/s
    struck: wp.array2d(dtype=vec3)  # impulse of a round of an impact, and of all rounds (world axes)
    blow: wp.array2d(dtype=vec3)
    aim: wp.array2d(dtype=real)  # m/s, less the speed that a round, or a split impulse, is to lead to
    pseudo: wp.array2d(dtype=real)  # split impulse
    speed: wp.array2d(dtype=vec3)  # m/s, of b's surface relative to a's after the sweeps
    slip: wp.array2d(dtype=vec3)  # m/s, the same along the surfaces, world axes


@wp.struct
class BlockContact:
    """The matrix by which all points are solved for at once, in the order of a walk along contacts; see `block_contact`."""

    capacity: wp.int32  # entries; 0: there is none
    place: wp.array2d(dtype=wp.int32)  # [body, world] in the line, or below 0
    line: wp.array2d(dtype=wp.int32)  # [place, world] bodies
    lead: wp.array2d(dtype=wp.int32)  # [place, world] the first place to which a row reaches
    kept_v: wp.array2d(dtype=vec3)  # [body, world] velocities and spins before it
    kept_w: wp.array2d(dtype=vec3)
    kept_energy: wp.array(dtype=real)  # [world] J, of these, or without impulses of points
    base: wp.array2d(dtype=wp.int32)  # [row, world] where column 0 of a row would be
    H: wp.array2d(dtype=real)  # [entry, world]
    x: wp.array2d(dtype=real)  # [row, world]
    tries: wp.array(dtype=wp.int32)  # [world] steps in which it was made, and in which it did not help
    failed: wp.array(dtype=wp.int32)


@wp.struct
class Solve:
    """One solve of a step: the velocities it changes, the speeds it aims at (u = −bias), the impulses it adds up."""

    twist: Twists
    bias_linear: wp.array2d(dtype=vec3)  # [joint, world]
    bias_angular: wp.array2d(dtype=vec3)
    force: wp.array2d(dtype=vec3)
    torque: wp.array2d(dtype=vec3)
    laws: Laws
    gear_bias: wp.array2d(dtype=real)
    gear_impulse: wp.array2d(dtype=real)
    spring_impulse: wp.array2d(dtype=real)
    done: wp.array(dtype=wp.int32)  # [world] sweeps made
    residual: wp.array(dtype=real)  # [world] largest impulse of the last sweep


@wp.struct
class Step:
    """All that a step reads and writes. Kernels take it as an array of one element: a launch then costs one pointer.

    `state` is the caller's, but for what stands half a step before the pose: velocity, momentum, spin, joint_force, joint_torque.
    """

    bodies: BodyTable
    joints: JointTable
    axes: AxisTable
    gears: GearTable
    springs: SpringTable
    cables: CableTable
    drives: DriveTable
    cable: CableWork
    settings: Settings
    control: Control
    state: State
    now: State  # the caller's
    work: Work
    contacts: Contacts
    touch: Touch
    casts: CastTable
    block: BlockContact
    rest: wp.array(dtype=Rest)
    solves: wp.array(dtype=Solve)  # velocities, positions
