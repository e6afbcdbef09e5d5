"""The guard of a step: what is counted of every step, and by what a motion that has diverged is told (theory: the guard).

Around every call a world's kinetic and potential energy E are taken, that of springs between points with it, and the most that
drives, springs on axes, commands and driven bodies can have given it, W. What E gained beyond W adds up; what it lost is
forgotten:

    A ← max(0, A + ΔE − W)

A is the energy that the step made of nothing. The motion has diverged where A exceeds the scale of the rest, K − A + M g l.
Gaps are held against the size of the bodies. All of it is next to nothing beside a step: a pass over the bodies.
"""

import warp as wp

from sharnir.cables import CableTable
from sharnir.joint_geometry import joint_gap
from sharnir.joints import JointTable
from sharnir.kinematics import left_alone, pose_at
from sharnir.model import CAST_WORDS, DYNAMIC, KINEMATIC, BodyTable, Control, SpringTable, State
from sharnir.spatial import worse
from sharnir.types import EPSILON, real, vec3

# what `counts` and `sums` hold, [row, world]
COUNTS = ("steps", "not_converged", "divided", "parts", "told", "which", "looked")
STEPS, MISSED, DIVIDED_STEPS, ALL_PARTS, TOLD, WHICH, LOOKED = (wp.constant(i) for i in range(len(COUNTS)))
SUMS = ("gap", "residual", "energy_error", "gained", "before", "power", "projected", "figure", "scale", "kinetic", "stretch")
GAP, RESIDUAL, EXCESS, GAINED, BEFORE, POWER, PROJECTED, FIGURE, SCALE, KINETIC, STRETCH = (
    wp.constant(i) for i in range(len(SUMS))
)

# what `alarm` says, as bits; the first three are told once, the others are a motion that has diverged
OPEN_GAP, NOT_MET, TURNS, TORN, ENERGY, SPEED = (wp.constant(1 << i) for i in range(6))
DIVERGED = wp.constant(1 << 20)  # value of `State.failed`, to which the bit is added

WARNED = wp.constant(real(0.05))  # a gap, of a body's size
EVERY = wp.constant(8)  # steps, after which energies are looked at in any case
STILL = wp.constant(real(1.0e-6))  # scene sizes per second: what moves no faster is at rest
FAR = wp.constant(real(0.5))  # rad in one step, by which Cayley's map falls behind by 2 %
FAST = wp.constant(real(1.0e4))  # a way in one step, of the scene's size
ROUNDING = wp.constant(real(1.0e6 * EPSILON))  # relative to the energies that are compared


@wp.struct
class Tally:
    """Counts and sums over all steps, kept by kernels and by the guard."""

    alarm: wp.array(dtype=wp.int32)  # [world] bits that were not told yet
    counts: wp.array2d(dtype=wp.int32)  # [COUNTS, world]
    sums: wp.array2d(dtype=real)  # [SUMS, world]


@wp.struct
class Watch:
    """What the guard reads and keeps. A rope's arrays are those of `RopeTable`, `RopeState` and `RopeControl`."""

    bodies: BodyTable
    joints: JointTable
    springs: SpringTable
    cables: CableTable
    state: State  # velocities, momenta and reactions may be those of half steps
    now: State  # the caller's
    halves: wp.int32  # 1: they are
    control: Control
    dt: wp.array(dtype=real)
    gravity: wp.array(dtype=vec3)
    size: wp.array(dtype=real)  # [joint] m, of the smaller of its bodies
    least: real  # m, the smallest of these
    extent: real  # m, of the scene
    weight: real  # kg, of all that moves
    acting: wp.int32  # 1: drives, springs or what else gives energy may act on axes
    driven: wp.int32  # 1: some body is kinematic
    casts: wp.vec3i  # cast wheels: how many, and their first rows of State.drive_state and Control.drive_command
    cayley: wp.int32  # 1: bodies turn by Cayley's map, (Δt ω)²/12 too little
    looks: wp.int32  # 1: gaps are measured where `aim` says that joints open; 2: always; 0: `State.open` has them
    aim_linear: wp.array2d(dtype=vec3)  # [joint, world] m/s, at which split impulses close a gap in a step
    aim_angular: wp.array2d(dtype=vec3)
    ropes: wp.int32
    rope_first: wp.array(dtype=wp.int32)
    rope_density: wp.array(dtype=real)
    rope_reel: wp.array(dtype=wp.int32)
    rope_segments: wp.array2d(dtype=wp.int32)
    rope_cut: wp.array2d(dtype=wp.int32)
    rope_length: wp.array2d(dtype=real)
    rope_position: wp.array2d(dtype=vec3)
    rope_velocity: wp.array2d(dtype=vec3)
    rope_spin: wp.array2d(dtype=vec3)
    rope_moment: wp.array2d(dtype=vec3)
    rope_force: wp.array2d(dtype=vec3)
    rope_once: wp.array2d(dtype=vec3)
    rope_torque: wp.array2d(dtype=vec3)
    end_force: wp.array2d(dtype=vec3)
    reel_rate: wp.array2d(dtype=real)
    reel_speed: wp.array2d(dtype=real)
    wind: wp.array(dtype=vec3)
    strict: wp.array(dtype=wp.int32)  # 1: a world that has diverged is marked in `State.failed`, and stops
    alarm: wp.array(dtype=wp.int32)  # [world] bits that were not told yet
    counts: wp.array2d(dtype=wp.int32)  # [COUNTS, world]
    sums: wp.array2d(dtype=real)  # [SUMS, world]


# ---- in a step, for every solver ---------------------------------------------------------------------------------------------


@wp.func
def count_step(t: wp.array(dtype=Tally), w: int, residual: real, tolerance: real, parts: int):
    """A step that was made."""
    t[0].counts[STEPS, w] = t[0].counts[STEPS, w] + 1
    if not residual <= tolerance:
        t[0].counts[MISSED, w] = t[0].counts[MISSED, w] + 1
        if t[0].counts[TOLD, w] & NOT_MET == 0:
            t[0].alarm[w] = t[0].alarm[w] | NOT_MET
    t[0].sums[RESIDUAL, w] = wp.max(t[0].sums[RESIDUAL, w], residual)
    if parts > 1:
        t[0].counts[DIVIDED_STEPS, w] = t[0].counts[DIVIDED_STEPS, w] + 1
        t[0].counts[ALL_PARTS, w] = t[0].counts[ALL_PARTS, w] + parts


# ---- energy and power -------------------------------------------------------------------------------------------------------


@wp.func
def turning_energy(g: wp.array(dtype=Watch), b: int, w: int, L: vec3) -> real:
    """Twice the energy of a body's rotation, J, from its angular momentum."""
    l = wp.quat_rotate_inv(g[0].state.rotation[b, w], L)
    return wp.dot(l, g[0].bodies.inv_inertia[b, w] * l)


@wp.func
def body_energy(g: wp.array(dtype=Watch), w: int, velocity: wp.array2d(dtype=vec3), momentum: wp.array2d(dtype=vec3)):
    """Twice the kinetic energy and the potential energy of the bodies, J, and the largest speed, squared."""
    gravity = g[0].gravity[w]
    kinetic = real(0.0)
    potential = real(0.0)
    fastest = real(0.0)
    for b in range(1, g[0].bodies.count):
        if g[0].bodies.motion[b] == DYNAMIC:
            m = g[0].bodies.mass[b, w]
            v = velocity[b, w]
            v2 = wp.dot(v, v)
            kinetic = kinetic + m * v2 + turning_energy(g, b, w, momentum[b, w])
            potential = potential - m * wp.dot(gravity, g[0].state.position[b, w])
            fastest = wp.max(fastest, v2)
    return kinetic, potential, fastest


@wp.func
def rope_energies(g: wp.array(dtype=Watch), k: int, w: int):
    """Twice the kinetic energy of a rope's points, and their potential energy, J."""
    gravity = g[0].gravity[w]
    kinetic = real(0.0)
    potential = real(0.0)
    first = g[0].rope_first[k]
    n = g[0].rope_segments[k, w]
    before = real(0.0)
    for j in range(n + 1):
        i = first + j
        after = real(0.0)
        if j < n:
            after = real(0.5) * g[0].rope_length[i, w]
        m = (before + after) * g[0].rope_density[k]
        v = g[0].rope_velocity[i, w]
        kinetic = kinetic + m * wp.dot(v, v)
        potential = potential - m * wp.dot(gravity, g[0].rope_position[i, w])
        before = after
    return kinetic, potential


@wp.func
def pushed_power(g: wp.array(dtype=Watch), w: int, span: real) -> real:
    """The most that a user's forces on bodies give, W, if they act for a time (s)."""
    out = real(0.0)
    for b in range(1, g[0].bodies.count):
        f = g[0].control.force[b, w] + g[0].control.force_once[b, w]
        f2 = wp.dot(f, f)
        if f2 > real(0.0):
            out = out + wp.sqrt(f2) * wp.length(g[0].state.velocity[b, w]) + f2 * g[0].bodies.inv_mass[b, w] * span
        t = g[0].control.torque[b, w] + g[0].control.torque_once[b, w]
        t2 = wp.dot(t, t)
        if t2 > real(0.0):
            J = g[0].bodies.inv_inertia[b, w]
            yields = wp.max(J[0, 0], wp.max(J[1, 1], J[2, 2])) * real(3.0)
            out = out + wp.sqrt(t2) * wp.length(g[0].state.spin[b, w]) + t2 * yields * span
    return out


@wp.func
def relative_speed(g: wp.array(dtype=Watch), p: int, c: int, p_point: vec3, c_point: vec3, w: int) -> real:
    """The most by which points of two bodies part, or the bodies turn, m/s or rad/s."""
    w_p = g[0].state.spin[p, w]
    w_c = g[0].state.spin[c, w]
    u = wp.cross(w_c, wp.quat_rotate(g[0].state.rotation[c, w], c_point)) + g[0].state.velocity[c, w]
    u = u - wp.cross(w_p, wp.quat_rotate(g[0].state.rotation[p, w], p_point)) - g[0].state.velocity[p, w]
    return wp.max(wp.length(u), wp.length(w_c - w_p))


@wp.func
def driven_power(g: wp.array(dtype=Watch), b: int, k: int, point: vec3, w: int) -> real:
    """The most that a body of joint k gives if it is driven, W."""
    if g[0].bodies.motion[b] != KINEMATIC:
        return real(0.0)
    spin = g[0].state.spin[b, w]
    v = g[0].state.velocity[b, w] + wp.cross(spin, wp.quat_rotate(g[0].state.rotation[b, w], point))
    out = wp.length(g[0].state.joint_force[k, w]) * wp.length(v)
    return (out + wp.length(g[0].state.joint_torque[k, w]) * wp.length(spin)) / g[0].dt[0]


@wp.func
def joint_power(g: wp.array(dtype=Watch), w: int) -> real:
    """The most that drives, springs and commands along axes, and bodies that are driven, give through joints, W."""
    out = real(0.0)
    per = real(1.0) / g[0].dt[0]
    for k in range(g[0].joints.count):
        p = g[0].joints.parent[k]
        c = g[0].joints.child[k]
        push = real(0.0)
        for a in range(g[0].joints.v_start[k], g[0].joints.v_start[k] + g[0].joints.v_size[k]):
            given = g[0].state.axis_impulse[a, w] - g[0].state.friction_impulse[a, w] - g[0].state.limit_impulse[a, w]
            push = push + wp.abs(given) * per + wp.abs(g[0].state.drive_impulse[a, w]) * per
            push = push + wp.abs(g[0].control.joint_force[a, w])
        if push > real(0.0):
            out = out + push * relative_speed(g, p, c, g[0].joints.parent_point[k, w], g[0].joints.child_point[k, w], w)
        out = out + driven_power(g, p, k, g[0].joints.parent_point[k, w], w)
        out = out + driven_power(g, c, k, g[0].joints.child_point[k, w], w)
    for k in range(g[0].springs.count):
        speed = driven_speed(g, g[0].springs.parent[k], w) + driven_speed(g, g[0].springs.child[k], w)
        out = out + wp.abs(g[0].state.spring_impulse[k, w]) * per * speed
    for x in range(g[0].cables.ends):
        pull = wp.abs(g[0].state.cable_impulse[x / 2, w]) * per
        out = out + pull * driven_speed(g, g[0].cables.body[x], w)
    return out


@wp.func
def driven_speed(g: wp.array(dtype=Watch), b: int, w: int) -> real:
    """How fast a body moves that is driven, m/s, about: of its frame, and turning within the scene."""
    if g[0].bodies.motion[b] != KINEMATIC:
        return real(0.0)
    return wp.length(g[0].state.velocity[b, w]) + wp.length(g[0].state.spin[b, w]) * g[0].extent


@wp.func
def spring_energy(g: wp.array(dtype=Watch), k: int, w: int) -> real:
    """½ k (length − rest)² of a spring between points, J."""
    p = g[0].springs.parent[k]
    c = g[0].springs.child[k]
    end = g[0].state.position[c, w] + wp.quat_rotate(g[0].state.rotation[c, w], g[0].springs.child_point[k])
    start = g[0].state.position[p, w] + wp.quat_rotate(g[0].state.rotation[p, w], g[0].springs.parent_point[k])
    longer = wp.length(end - start) - g[0].springs.rest[k, w]
    return real(0.5) * g[0].springs.stiffness[k, w] * longer * longer


@wp.func
def rope_power(g: wp.array(dtype=Watch), k: int, w: int, span: real) -> real:
    """The most that bend, forces, wind, driven ends and a reel give a rope, W."""
    out = real(0.0)
    per = real(1.0) / g[0].dt[0]
    first = g[0].rope_first[k]
    n = g[0].rope_segments[k, w]
    density = g[0].rope_density[k]
    blown = wp.length_sq(g[0].wind[w]) > real(0.0)
    for j in range(n + 1):
        i = first + j
        v = wp.length(g[0].rope_velocity[i, w])
        spin = real(0.0)
        if j < n:
            spin = wp.length(g[0].rope_spin[i, w])
        if j > 0:
            spin = spin + wp.length(g[0].rope_spin[i - 1, w])
        out = out + wp.length(g[0].rope_moment[i, w]) * per * spin
        f = wp.length(g[0].rope_force[i, w] + g[0].rope_once[i, w])
        if f > real(0.0):
            out = out + f * v + f * f * span / wp.max(density * g[0].rope_length[first, w], real(1.0e-30))
        if j < n:
            out = out + wp.length(g[0].rope_torque[i, w]) * spin
        if blown:  # the air gives at most what makes the rope as fast as itself
            out = out + density * g[0].rope_length[wp.min(i, first + n - 1), w] * wp.length_sq(g[0].wind[w]) * per
    for side in range(2):
        i = first + side * n
        pull = wp.length(g[0].end_force[2 * k + side, w]) * per
        if g[0].driven == 1:
            out = out + pull * wp.length(g[0].rope_velocity[i, w])
        if g[0].rope_reel[k] == side:
            rate = wp.abs(g[0].reel_rate[k, w]) + wp.abs(g[0].reel_speed[k, w])
            held = density * (wp.abs(wp.dot(g[0].gravity[w], g[0].rope_position[i, w])) + wp.length_sq(g[0].rope_velocity[i, w]))
            out = out + rate * (pull + held + density * rate * rate)
    return out


@wp.func
def commanded(g: wp.array(dtype=Watch), w: int) -> bool:
    """Whether a user's forces act along free axes."""
    found = bool(False)
    for a in range(g[0].control.joint_force.shape[0]):
        found = found or g[0].control.joint_force[a, w] != real(0.0)
    return found


@wp.func
def cast_power(g: wp.array(dtype=Watch), w: int) -> real:
    """The most that drives of cast wheels give, W: torque and kd at the speed they ask for, within what they have."""
    out = real(0.0)
    for k in range(g[0].casts[0]):
        omega = g[0].state.drive_state[g[0].casts[1] + 2 * k, w]
        c = g[0].casts[2] + wp.static(CAST_WORDS) * k
        lacks = g[0].control.drive_command[c + 1, w] - omega
        asked = wp.abs(g[0].control.drive_command[c, w]) + wp.abs(lacks) * g[0].control.drive_command[c + 2, w]
        out = out + wp.min(asked, g[0].control.drive_command[c + 3, w]) * wp.abs(omega)
    return out


@wp.func
def power(g: wp.array(dtype=Watch), w: int, span: real) -> real:
    """The most that the world is given now, W."""
    out = pushed_power(g, w, span)
    if g[0].acting + g[0].driven > 0 or commanded(g, w):
        out = out + joint_power(g, w)
    for k in range(g[0].ropes):
        out = out + rope_power(g, k, w, span)
    if g[0].casts[0] > 0:
        out = out + cast_power(g, w)
    return out


# ---- around a call ----------------------------------------------------------------------------------------------------------


@wp.func
def energies(g: wp.array(dtype=Watch), w: int, velocity: wp.array2d(dtype=vec3), momentum: wp.array2d(dtype=vec3)):
    """Kinetic energy, that of gravity and of springs between points, J, and the largest speed of a body, squared."""
    kinetic, potential, fastest = body_energy(g, w, velocity, momentum)
    for k in range(g[0].ropes):
        k_rope, u_rope = rope_energies(g, k, w)
        kinetic = kinetic + k_rope
        potential = potential + u_rope
    for k in range(g[0].springs.count):
        potential = potential + spring_energy(g, k, w)
    return real(0.5) * kinetic, potential, fastest


@wp.func
def was_changed(g: wp.array(dtype=Watch), w: int) -> bool:
    """Whether a caller changed the state since a solver whose velocities stand at half steps left it."""
    for b in range(g[0].bodies.count):
        if g[0].bodies.motion[b] == DYNAMIC:
            if not left_alone(g, b, w):
                return True
    return False


@wp.func
def open_call(g: wp.array(dtype=Watch), w: int):
    """The energy that there is, and what it is given: before a call, after whatever a caller may have changed."""
    kinetic, potential, _fastest = energies(g, w, g[0].state.velocity, g[0].state.momentum)
    if g[0].halves == 1 and was_changed(g, w):  # the next step begins from velocities of the pose
        kinetic, potential, _fastest = energies(g, w, g[0].now.velocity, g[0].now.momentum)
    g[0].sums[BEFORE, w] = kinetic + potential
    g[0].sums[KINETIC, w] = kinetic
    g[0].sums[POWER, w] = power(g, w, g[0].dt[0])
    g[0].counts[LOOKED, w] = g[0].counts[STEPS, w]


@wp.func
def tell(g: wp.array(dtype=Watch), w: int, what: int, which: int, figure: real, scale: real):
    """Raise an alarm, once where it is a warning; a world that has diverged is marked."""
    if g[0].counts[TOLD, w] & what != 0:
        return
    torn = g[0].alarm[w] & TORN != 0
    g[0].alarm[w] = g[0].alarm[w] | what
    if torn:  # the report is of the joint or rope that is torn, whatever follows from it
        return
    g[0].counts[WHICH, w] = which
    g[0].sums[FIGURE, w] = figure
    g[0].sums[SCALE, w] = scale
    if what >= TORN and g[0].strict[0] == 1:
        g[0].state.failed[w] = DIVERGED + what


@wp.func
def look_at_gaps(g: wp.array(dtype=Watch), w: int):
    """Hold the gaps of all joints against the size of their bodies."""
    worst = real(0.0)
    figure = real(0.0)
    joint = int(0)
    most = real(0.0)
    for k in range(g[0].joints.count):
        if g[0].control.enabled[k, w] != 0:
            linear, angular = joint_gap(g[0].joints, k, pose_at(g[0].joints, k, w, g[0].state.position, g[0].state.rotation))
            gap = wp.length(linear)
            most = wp.max(most, gap)
            share = gap / g[0].size[k]
            turn = wp.length(angular)
            if not wp.max(share, turn) <= worst and not wp.isnan(worst):
                worst = worse(share, turn)
                figure = share
                if turn > share:
                    figure = -turn
                joint = k
    g[0].sums[GAP, w] = wp.max(g[0].sums[GAP, w], most)
    if not worst <= real(1.0):
        tell(g, w, TORN, joint, figure, real(1.0))
    elif worst > WARNED:
        tell(g, w, OPEN_GAP, joint, figure, WARNED)


@wp.func
def look_at_ropes(g: wp.array(dtype=Watch), w: int):
    """Hold the lengths of all elements that are not torn against what they should be; ropes are counted after the joints."""
    worst = real(0.0)
    rope = int(0)
    for k in range(g[0].ropes):
        first = g[0].rope_first[k]
        for i in range(first, first + g[0].rope_segments[k, w]):
            if g[0].rope_cut[i, w] == 0:
                apart = wp.length(g[0].rope_position[i + 1, w] - g[0].rope_position[i, w])
                longer = apart / g[0].rope_length[i, w] - real(1.0)
                if not longer <= worst and not wp.isnan(worst):
                    worst = longer
                    rope = k
    g[0].sums[STRETCH, w] = wp.max(g[0].sums[STRETCH, w], worst)
    if not worst <= real(1.0):
        tell(g, w, TORN, g[0].joints.count + rope, worst, real(1.0))
    elif worst > WARNED:
        tell(g, w, OPEN_GAP, g[0].joints.count + rope, worst, WARNED)


@wp.func
def seems_open(g: wp.array(dtype=Watch), w: int) -> bool:
    """Whether a joint may stand open by more than is warned of."""
    if g[0].looks == 0:
        g[0].sums[GAP, w] = wp.max(g[0].sums[GAP, w], g[0].state.open[w])
        return not g[0].state.open[w] <= WARNED * wp.min(g[0].least, real(1.0))
    if g[0].looks == 2:
        return True
    dt = g[0].dt[0]
    far = WARNED * g[0].least / dt
    turned = WARNED / dt
    for k in range(g[0].joints.count):
        l = g[0].aim_linear[k, w]
        a = g[0].aim_angular[k, w]
        if not (wp.dot(l, l) <= far * far and wp.dot(a, a) <= turned * turned):
            return True
    return False


@wp.func
def close_call(g: wp.array(dtype=Watch), w: int):
    """After a call: whether the world's motion can be true. Energies are looked at when they grow, and now and then."""
    if g[0].state.failed[w] != 0:
        return
    if g[0].joints.count > 0:
        if seems_open(g, w):
            look_at_gaps(g, w)
    if g[0].ropes > 0:
        look_at_ropes(g, w)
    since = g[0].counts[STEPS, w] - g[0].counts[LOOKED, w]
    look = since >= EVERY or g[0].ropes + g[0].acting + g[0].driven > 0 or g[0].sums[POWER, w] > real(0.0)
    if not look:
        look = not kinetic_energy(g, w) <= real(4.0) * g[0].sums[KINETIC, w] + real(0.25) * weight(g, w)
    if look:
        look_at_energy(g, w, since)


@wp.func
def weight(g: wp.array(dtype=Watch), w: int) -> real:
    """The energy that gravity can give within the scene's extent, and one too small to count, J."""
    slow = STILL * g[0].extent
    return g[0].weight * (wp.length(g[0].gravity[w]) * g[0].extent + slow * slow)


@wp.func
def kinetic_energy(g: wp.array(dtype=Watch), w: int) -> real:
    """Kinetic energy of the bodies, J."""
    twice = real(0.0)
    for b in range(1, g[0].bodies.count):
        if g[0].bodies.motion[b] == DYNAMIC:
            v = g[0].state.velocity[b, w]
            twice = twice + g[0].bodies.mass[b, w] * wp.dot(v, v) + turning_energy(g, b, w, g[0].state.momentum[b, w])
    return real(0.5) * twice


@wp.func
def look_at_energy(g: wp.array(dtype=Watch), w: int, steps: int):
    """Hold what energy was gained in the last steps against what was given."""
    span = g[0].dt[0] * real(steps)
    kinetic, potential, fastest = energies(g, w, g[0].state.velocity, g[0].state.momentum)
    gained = kinetic + potential - g[0].sums[BEFORE, w] - ROUNDING * (kinetic + wp.abs(potential))
    given = power(g, w, span)
    if gained > real(0.0):
        gained = gained - (g[0].sums[POWER, w] + given) * span
    g[0].sums[BEFORE, w] = kinetic + potential
    g[0].sums[KINETIC, w] = kinetic
    g[0].sums[POWER, w] = given
    g[0].counts[LOOKED, w] = g[0].counts[STEPS, w]
    if not wp.isfinite(gained):
        gained = kinetic
    gained = wp.max(real(0.0), g[0].sums[GAINED, w] + gained)
    g[0].sums[GAINED, w] = gained
    rest = wp.max(real(0.0), kinetic - gained) + weight(g, w)
    if gained > real(0.0):
        g[0].sums[EXCESS, w] = wp.max(g[0].sums[EXCESS, w], gained / rest)
    if not gained <= rest:
        tell(g, w, ENERGY, 0, gained, rest)
    if g[0].cayley == 1:
        look_at_turns(g, w)
    reach = FAST * g[0].extent / g[0].dt[0]
    if not fastest <= reach * reach:
        tell(g, w, SPEED, fastest_body(g, w), wp.sqrt(fastest), reach)


@wp.func
def look_at_turns(g: wp.array(dtype=Watch), w: int):
    """Whether a body turns so far in a step that its angle falls behind its spin."""
    most = real(0.0)
    body = int(0)
    for b in range(1, g[0].bodies.count):
        turn = wp.length_sq(g[0].state.spin[b, w])
        if g[0].bodies.motion[b] == DYNAMIC and turn > most:
            most = turn
            body = b
    most = wp.sqrt(most) * g[0].dt[0]
    if most > FAR:
        tell(g, w, TURNS, body, most, FAR)


@wp.func
def fastest_body(g: wp.array(dtype=Watch), w: int) -> int:
    most = real(-1.0)
    out = int(0)
    for b in range(1, g[0].bodies.count):
        v2 = wp.length_sq(g[0].state.velocity[b, w])
        if g[0].bodies.motion[b] == DYNAMIC and not v2 <= most:
            most = v2
            out = b
    return out


@wp.kernel(module="sharnir.guard")
def watch_begin(g: wp.array(dtype=Watch), first: int):
    """Before a call, where a caller may have changed the state."""
    open_call(g, first + wp.tid())


@wp.kernel(module="sharnir.guard")
def watch_end(g: wp.array(dtype=Watch), first: int):
    """After a call."""
    close_call(g, first + wp.tid())


@wp.kernel(module="sharnir.guard")
def watch_step(
    g: wp.array(dtype=Watch),
    t: wp.array(dtype=Tally),
    first: int,
    residual: wp.array(dtype=real),
    tolerance: wp.array(dtype=real),
):
    """After a step of a solver whose stages are kernels of their own."""
    w = first + wp.tid()
    if g[0].state.failed[w] == 0:
        count_step(t, w, residual[w], tolerance[0], 1)
        close_call(g, w)
