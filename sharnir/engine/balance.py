"""The energy balance of a step: energies of bodies, springs and ropes, and the work of everything that can give energy.

Velocities before and after a step, V₀ and V₁, and an impulse P of that step give exactly the work P·½(V₀ + V₁). So what drives,
commands, kinematic bodies and moving surfaces gave is measured from the committed impulses (`work_of_step`). Only where these are
not known (forces of one step, steps made in parts or many in one launch, reels, wind) a bound takes their place (`power_bound`).

Where velocities stand half a step before the pose (`Watch.halves`) energies are those of the pose half a step back, x − ½Δt v:
with them the leapfrog rule conserves the energy of gravity and of springs exactly.
"""

import warp as wp

from sharnir.core.spatial import exp_quat, log_quat
from sharnir.core.types import quat, real, vec3
from sharnir.engine.guard_data import BODY_KINETIC, BODY_POTENTIAL, BODY_ROWS, BODY_SPEED, Watch
from sharnir.engine.rope.bend import bend_vector, from_rest
from sharnir.model.joint_geometry import child_frame, coordinate, free_axis, parent_frame
from sharnir.model.kinematics import pose_at
from sharnir.model.model import CAST_WORDS, DYNAMIC, KINEMATIC

PI_SQUARED = wp.constant(real(9.869604401089358))  # π²
HELD_BY_DRIVEN = wp.constant(1)  # kind of a rope's end, as in `rope.data.DRIVEN`


# ---- energies ---------------------------------------------------------------------------------------------------------------


@wp.func
def turning_energy(g: wp.array(dtype=Watch), b: int, w: int, L: vec3) -> real:
    """Twice the energy of a body's rotation, J, from its angular momentum."""
    l = wp.quat_rotate_inv(g[0].state.rotation[b, w], L)
    return wp.dot(l, g[0].bodies.inv_inertia[b, w] * l)


@wp.func
def body_energies(g: wp.array(dtype=Watch), w: int, at_pose: int) -> tuple[real, real, real, real]:
    """Kinetic energy, that of gravity, that of springs, J, and the largest speed of a body, squared.

    Args:
        at_pose: 1: with the velocities of the pose, as a caller sees them; 0: with those that the solver steps with; 2: the
            same, from what was found of each body (`Watch.found`).
    """
    gravity = g[0].gravity[w]
    back = real(0.0)
    if g[0].halves == 1 and at_pose == 0:
        back = real(0.5) * g[0].dt[0]
    kinetic = real(0.0)
    potential = real(0.0)
    fastest = real(0.0)
    for b in range(1, g[0].bodies.count):
        if at_pose == 2:
            kinetic = kinetic + g[0].found[BODY_ROWS * b + BODY_KINETIC, w]
            potential = potential + g[0].found[BODY_ROWS * b + BODY_POTENTIAL, w]
            fastest = wp.max(fastest, g[0].found[BODY_ROWS * b + BODY_SPEED, w])
        elif g[0].bodies.motion[b] == DYNAMIC:
            m = g[0].bodies.mass[b, w]
            v = g[0].state.velocity[b, w]
            L = g[0].state.momentum[b, w]
            if at_pose == 1:
                v = g[0].now.velocity[b, w]
                L = g[0].now.momentum[b, w]
            v2 = wp.dot(v, v)
            kinetic = kinetic + m * v2 + turning_energy(g, b, w, L)
            potential = potential - m * wp.dot(gravity, g[0].state.position[b, w] - v * back)
            fastest = wp.max(fastest, v2)
    elastic = real(0.0)
    for i in range(g[0].sprung.shape[0]):
        k = g[0].sprung[i]
        if g[0].control.enabled[k, w] != 0:
            rotors, stored = axis_energies(g, k, w, back, at_pose)
            kinetic = kinetic + rotors
            elastic = elastic + stored
    for k in range(g[0].springs.count):
        elastic = elastic + spring_energy(g, k, w, back)
    return real(0.5) * kinetic, potential, elastic, fastest


@wp.func
def energies(g: wp.array(dtype=Watch), w: int, at_pose: int) -> tuple[real, real, real, real]:
    """The same with those of raycast wheels, ropes and contacts."""
    kinetic, potential, elastic, fastest = body_energies(g, w, at_pose)
    for k in range(g[0].casts[0]):
        omega = g[0].state.drive_state[g[0].casts[1] + 2 * k, w]
        kinetic = kinetic + real(0.5) * g[0].cast_inertia[k] * omega * omega
    for k in range(g[0].rope.count):
        k_rope, u_rope = rope_energies(g, k, w)
        kinetic = kinetic + real(0.5) * k_rope
        potential = potential + u_rope
        if g[0].rope.bends[k] == 1:
            elastic = elastic + rope_elastic(g, k, w)
    if g[0].touching == 1:
        elastic = elastic + contact_energy(g, w)
    return kinetic, potential, elastic, fastest


@wp.func
def axis_yields(g: wp.array(dtype=Watch), k: int, d: vec3, e: vec3, w: int) -> real:
    """How much the two bodies of a joint yield along an axis, about, 1/kg or 1/(kg·m²)."""
    out = real(0.0)
    for side in range(2):
        b = wp.where(side == 0, g[0].joints.parent[k], g[0].joints.child[k])
        n = wp.quat_rotate_inv(g[0].state.rotation[b, w], e)
        out = out + g[0].bodies.inv_mass[b, w] * wp.dot(d, d) + wp.dot(n, g[0].bodies.inv_inertia[b, w] * n)
    return out


@wp.func
def axis_energies(g: wp.array(dtype=Watch), k: int, w: int, back: real, at_pose: int) -> tuple[real, real]:
    """Twice the kinetic energy of the rotors, and the energy of the springs, of a joint's axes, J."""
    v0 = g[0].joints.v_start[k]
    n = g[0].joints.v_size[k]
    plain = n
    pose = pose_at(g[0].joints, k, w, g[0].state.position, g[0].state.rotation)
    rotors = real(0.0)
    stored = real(0.0)
    if g[0].joints.turns[k] == 3:
        plain = n - 3
        at = v0 + plain
        turn = wp.quat_inverse(parent_frame(g[0].joints, k, pose)) * child_frame(g[0].joints, k, pose)
        rest = vec3(g[0].axes.rest[at, w], g[0].axes.rest[at + 1, w], g[0].axes.rest[at + 2, w])
        phi = log_quat(turn * wp.quat_inverse(exp_quat(rest)))
        spin = g[0].state.spin[g[0].joints.child[k], w] - g[0].state.spin[g[0].joints.parent[k], w]
        phi = phi - wp.quat_rotate_inv(parent_frame(g[0].joints, k, pose), spin) * back
        for i in range(3):
            stored = stored + real(0.5) * g[0].axes.stiffness[at + i, w] * phi[i] * phi[i]
    for i in range(plain):
        at = v0 + i
        stiffness = g[0].axes.stiffness[at, w]
        N = g[0].axes.gear_ratio[at, w]
        rotor = g[0].axes.rotor_inertia[at, w] * N * N
        u = real(0.0)
        d, e = free_axis(g[0].joints, k, i, pose)
        if rotor > real(0.0) or back > real(0.0):
            if at_pose == 1:
                u = speed_now(g, k, d, e, pose.child_anchor, w)
            else:
                u = mean_speed_along(g, k, d, e, pose.child_anchor, w, real(0.0))
        rotors = rotors + rotor * u * u
        if stiffness > real(0.0):
            q = coordinate(g[0].joints, k, i, pose, g[0].state.q[g[0].joints.q_start[k] + i, w])
            off = q - back * share_resolved(g, stiffness, axis_yields(g, k, d, e, w)) * u - g[0].axes.rest[at, w]
            stored = stored + real(0.5) * stiffness * off * off
    return rotors, stored


@wp.func
def share_resolved(g: wp.array(dtype=Watch), stiffness: real, yields: real) -> real:
    """1 where a step resolves a spring, down to 0 where the spring is taken at the end of the step (`laws.prepare`)."""
    dt = g[0].dt[0]
    return real(1.0) - wp.clamp((real(4.0) * dt * dt * stiffness * yields - real(1.0)) / real(3.0), real(0.0), real(1.0))


@wp.func
def spring_energy(g: wp.array(dtype=Watch), k: int, w: int, back: real) -> real:
    """½ k (length − rest)² of a spring between points, J."""
    p = g[0].springs.parent[k]
    c = g[0].springs.child[k]
    r_c = wp.quat_rotate(g[0].state.rotation[c, w], g[0].springs.child_point[k])
    r_p = wp.quat_rotate(g[0].state.rotation[p, w], g[0].springs.parent_point[k])
    line = g[0].state.position[c, w] + r_c - g[0].state.position[p, w] - r_p
    back = back * share_resolved(g, g[0].springs.stiffness[k, w], g[0].bodies.inv_mass[p, w] + g[0].bodies.inv_mass[c, w])
    if back > real(0.0):
        u = g[0].state.velocity[c, w] + wp.cross(g[0].state.spin[c, w], r_c)
        u = u - g[0].state.velocity[p, w] - wp.cross(g[0].state.spin[p, w], r_p)
        line = line - u * back
    longer = wp.length(line) - g[0].springs.rest[k, w]
    return real(0.5) * g[0].springs.stiffness[k, w] * longer * longer


@wp.func
def contact_energy(g: wp.array(dtype=Watch), w: int) -> real:
    """½ k δ² of the contacts that yield, and of the treads of tyres, J."""
    out = real(0.0)
    per = real(1.0) / g[0].dt[0]
    for i in range(g[0].contacts.count[w]):
        stiffness = g[0].contacts.stiffness[i, w]
        if stiffness > real(0.0):
            depth = wp.max(real(0.0), -g[0].contacts.gap[i, w])
            out = out + real(0.5) * stiffness * depth * depth
        shear = wp.max(g[0].contacts.shear[i, w][0], g[0].contacts.shear[i, w][1])
        if shear > real(0.0):
            P = g[0].contacts.impulse[i, w]
            n = g[0].contacts.normal[i, w]
            f = (P - n * wp.dot(n, P)) * per
            out = out + real(0.5) * wp.dot(f, f) / shear
    return out


@wp.func
def rope_energies(g: wp.array(dtype=Watch), k: int, w: int) -> tuple[real, real]:
    """Twice the kinetic energy of a rope, and its potential energy, J."""
    gravity = g[0].gravity[w]
    kinetic = real(0.0)
    potential = real(0.0)
    first = g[0].rope.first[k]
    n = g[0].rope.segments[k, w]
    turning = real(0.25) * g[0].rope.density[k] * g[0].rope.radius[k] * g[0].rope.radius[k]
    before = real(0.0)
    for j in range(n + 1):
        i = first + j
        after = real(0.0)
        if j < n:
            l = g[0].rope.length[i, w]
            after = real(0.5) * l
            s = g[0].rope.spin[i, w]
            along = wp.dot(s, wp.quat_rotate(g[0].rope.rotation[i, w], vec3(real(0.0), real(0.0), real(1.0))))
            kinetic = kinetic + turning * l * (wp.dot(s, s) + along * along)
        m = (before + after) * g[0].rope.density[k]
        v = g[0].rope.velocity[i, w]
        kinetic = kinetic + m * wp.dot(v, v)
        potential = potential - m * wp.dot(gravity, g[0].rope.position[i, w])
        before = after
    return kinetic, potential


@wp.func
def rope_elastic(g: wp.array(dtype=Watch), k: int, w: int) -> real:
    """Energy of a rope's bend and twist, and of its slack elements, J."""
    out = real(0.0)
    first = g[0].rope.first[k]
    n = g[0].rope.segments[k, w]
    EI = g[0].rope.EI[k, w]
    GJ = g[0].rope.GJ[k, w]
    for j in range(n + 1):
        i = first + j
        bar = real(0.0)
        held = bool(True)
        if j > 0:
            bar = bar + real(0.5) * g[0].rope.length[i - 1, w]
            held = g[0].rope.cut[i - 1, w] == 0
        if j < n:
            bar = bar + real(0.5) * g[0].rope.length[i, w]
            if g[0].rope.cut[i, w] == 0:
                l = g[0].rope.length[i, w]
                out = out + PI_SQUARED * EI / (l * l) * (l - g[0].rope.span[i, w])
        a = quat(real(0.0), real(0.0), real(0.0), real(1.0))
        b = a
        if j == 0:
            held = held and g[0].rope.clamp[2 * k] == 1
            if held:
                a = g[0].state.rotation[g[0].rope.body[2 * k], w] * g[0].rope.frame[2 * k]
        else:
            a = g[0].rope.rotation[i - 1, w]
        if j == n:
            held = held and g[0].rope.clamp[2 * k + 1] == 1
            if held:
                b = g[0].state.rotation[g[0].rope.body[2 * k + 1], w] * g[0].rope.frame[2 * k + 1]
        else:
            b = g[0].rope.rotation[i, w]
        if held:
            e = bend_vector(from_rest(a, b, g[0].rope.rest[i] * bar), vec3(real(0.0)))
            out = out + real(0.5) * (EI * (e[0] * e[0] + e[1] * e[1]) + GJ * e[2] * e[2]) / bar
    return out


# ---- work of a step, exact --------------------------------------------------------------------------------------------------


@wp.func
def mean_velocity(g: wp.array(dtype=Watch), b: int, w: int, share: real) -> vec3:
    """Velocity of a body, `share` of it that at the start of the step."""
    return g[0].last_velocity[b, w] * share + g[0].state.velocity[b, w] * (real(1.0) - share)


@wp.func
def mean_angular_velocity(g: wp.array(dtype=Watch), b: int, w: int, share: real) -> vec3:
    return g[0].last_spin[b, w] * share + g[0].state.spin[b, w] * (real(1.0) - share)


@wp.func
def velocity_of_point(g: wp.array(dtype=Watch), b: int, x: vec3, w: int, share: real) -> vec3:
    """Velocity of the point of body b that stands at x."""
    return mean_velocity(g, b, w, share) + wp.cross(mean_angular_velocity(g, b, w, share), x - g[0].state.position[b, w])


@wp.func
def mean_speed_along(g: wp.array(dtype=Watch), k: int, d: vec3, e: vec3, x: vec3, w: int, share: real) -> real:
    """Speed of a joint along the axis (d, e) at x: child relative to parent."""
    p = g[0].joints.parent[k]
    c = g[0].joints.child[k]
    u = velocity_of_point(g, c, x, w, share) - velocity_of_point(g, p, x, w, share)
    return wp.dot(d, u) + wp.dot(e, mean_angular_velocity(g, c, w, share) - mean_angular_velocity(g, p, w, share))


@wp.func
def speed_now(g: wp.array(dtype=Watch), k: int, d: vec3, e: vec3, x: vec3, w: int) -> real:
    """The same, of the caller's velocities."""
    p = g[0].joints.parent[k]
    c = g[0].joints.child[k]
    u = g[0].now.velocity[c, w] + wp.cross(g[0].now.spin[c, w], x - g[0].state.position[c, w])
    u = u - g[0].now.velocity[p, w] - wp.cross(g[0].now.spin[p, w], x - g[0].state.position[p, w])
    return wp.dot(d, u) + wp.dot(e, g[0].now.spin[c, w] - g[0].now.spin[p, w])


@wp.func
def body_work(g: wp.array(dtype=Watch), w: int) -> real:
    """What bodies, joints and springs were given in the last step, J: from its impulses and the mean of the velocities."""
    out = real(0.0)
    half = real(0.5)
    dt = g[0].dt[0]
    for b in range(1, g[0].bodies.count):
        f = g[0].control.force[b, w]
        t = g[0].control.torque[b, w]
        if wp.dot(f, f) + wp.dot(t, t) > real(0.0):
            out = out + dt * (wp.dot(f, mean_velocity(g, b, w, half)) + wp.dot(t, mean_angular_velocity(g, b, w, half)))
    for k in range(g[0].joints.count):
        if g[0].control.enabled[k, w] != 0:
            out = out + joint_work(g, k, w)
    if g[0].driven == 1:
        for k in range(g[0].springs.count):
            out = out + spring_work(g, k, w)
    return out


@wp.func
def work_of_step(g: wp.array(dtype=Watch), w: int) -> real:
    """The same with cables, ropes, contacts and raycast wheels."""
    out = body_work(g, w)
    if g[0].driven == 1:
        for x in range(g[0].cables.ends):
            pull = wp.abs(g[0].state.cable_impulse[x / 2, w])
            out = out + pull * speed_of_driven_body(g, g[0].cables.body[x], w)
        if g[0].touching == 1:
            for i in range(g[0].contacts.count[w]):
                out = out + contact_work(g, i, w)
    for k in range(g[0].rope.count):
        out = out + rope_work(g, k, w)
    if g[0].casts[0] > 0:
        out = out + g[0].dt[0] * cast_power(g, w)
    return out


@wp.func
def joint_work(g: wp.array(dtype=Watch), k: int, w: int) -> real:
    """Work of the drives and commands along a joint's axes, and of a kinematic body that it hangs on."""
    out = real(0.0)
    half = real(0.5)
    p = g[0].joints.parent[k]
    c = g[0].joints.child[k]
    moved = g[0].bodies.motion[p] == KINEMATIC or g[0].bodies.motion[c] == KINEMATIC
    v0 = g[0].joints.v_start[k]
    n = g[0].joints.v_size[k]
    x = g[0].state.position[c, w] + wp.quat_rotate(g[0].state.rotation[c, w], g[0].joints.child_point[k, w])
    along = vec3(real(0.0))
    about = vec3(real(0.0))
    for i in range(n):
        at = v0 + i
        active = g[0].state.drive_impulse[at, w] + g[0].dt[0] * g[0].control.joint_force[at, w]
        whole = g[0].state.axis_impulse[at, w] + g[0].dt[0] * g[0].control.joint_force[at, w]
        if active != real(0.0) or (moved and whole != real(0.0)):
            d, e = free_axis(g[0].joints, k, i, pose_at(g[0].joints, k, w, g[0].state.position, g[0].state.rotation))
            out = out + active * mean_speed_along(g, k, d, e, x, w, half)
            along = along + d * whole
            about = about + e * whole
    if moved:
        f = g[0].mean_force[k, w] + along
        t = g[0].mean_torque[k, w] + about
        if g[0].bodies.motion[p] == KINEMATIC:
            out = out + wp.dot(f, velocity_of_point(g, p, x, w, half)) + wp.dot(t, mean_angular_velocity(g, p, w, half))
        if g[0].bodies.motion[c] == KINEMATIC:
            out = out - wp.dot(f, velocity_of_point(g, c, x, w, half)) - wp.dot(t, mean_angular_velocity(g, c, w, half))
    return out


@wp.func
def spring_work(g: wp.array(dtype=Watch), k: int, w: int) -> real:
    """What kinematic bodies give through a spring between points; its impulse pulls its ends together where it is negative."""
    p = g[0].springs.parent[k]
    c = g[0].springs.child[k]
    if g[0].bodies.motion[p] != KINEMATIC and g[0].bodies.motion[c] != KINEMATIC:
        return real(0.0)
    end = g[0].state.position[c, w] + wp.quat_rotate(g[0].state.rotation[c, w], g[0].springs.child_point[k])
    start = g[0].state.position[p, w] + wp.quat_rotate(g[0].state.rotation[p, w], g[0].springs.parent_point[k])
    P = wp.normalize(end - start) * g[0].state.spring_impulse[k, w]
    out = real(0.0)
    if g[0].bodies.motion[p] == KINEMATIC:
        out = out + wp.dot(P, velocity_of_point(g, p, start, w, real(0.5)))
    if g[0].bodies.motion[c] == KINEMATIC:
        out = out - wp.dot(P, velocity_of_point(g, c, end, w, real(0.5)))
    return out


@wp.func
def contact_work(g: wp.array(dtype=Watch), i: int, w: int) -> real:
    """What kinematic bodies and moving surfaces give at a point of contact."""
    P = g[0].contacts.impulse[i, w] + g[0].blow[i, w]
    if wp.dot(P, P) == real(0.0):
        return real(0.0)
    out = -wp.dot(P, g[0].contacts.surface[i, w])
    a = g[0].contacts.body_a[i, w]
    b = g[0].contacts.body_b[i, w]
    if g[0].bodies.motion[a] == KINEMATIC:
        out = out + wp.dot(P, velocity_of_point(g, a, g[0].contacts.point[i, w], w, real(0.5)))
    if g[0].bodies.motion[b] == KINEMATIC:
        out = out - wp.dot(P, velocity_of_point(g, b, g[0].contacts.point[i, w], w, real(0.5)))
    return out


@wp.func
def speed_of_driven_body(g: wp.array(dtype=Watch), b: int, w: int) -> real:
    """How fast a kinematic body moves, m/s, about: of its frame, and turning within the scene."""
    if g[0].bodies.motion[b] != KINEMATIC:
        return real(0.0)
    return wp.length(g[0].state.velocity[b, w]) + wp.length(g[0].state.spin[b, w]) * g[0].extent


@wp.func
def rope_work(g: wp.array(dtype=Watch), k: int, w: int) -> real:
    """What a rope was given: by forces and kinematic ends, measured; by wind, a reel and kinematic bodies it touches, a bound."""
    dt = g[0].dt[0]
    out = real(0.0)
    first = g[0].rope.first[k]
    n = g[0].rope.segments[k, w]
    density = g[0].rope.density[k]
    wind2 = wp.length_sq(g[0].rope.wind[w])
    most = real(0.0)
    for j in range(n + 1):
        i = first + j
        v = g[0].rope.velocity[i, w]
        f = g[0].rope.force[i, w]
        f2 = wp.dot(f, f)
        if f2 > real(0.0):  # velocities before the step are not kept: what the force alone adds to them bounds the rest
            out = out + dt * (wp.dot(f, v) + wp.sqrt(f2) * wp.length(v) * real(0.5))
        if j < n:
            out = out + dt * wp.length(g[0].rope.torque[i, w]) * wp.length(g[0].rope.spin[i, w])
            most = wp.max(most, wp.length(g[0].rope.pull[i, w]))
            if wind2 > real(0.0):  # air gives at most what makes the rope as fast as itself
                out = out + density * g[0].rope.length[i, w] * wind2
    if g[0].driven == 1:
        for side in range(2):
            end = 2 * k + side
            if g[0].rope.kind[end] == HELD_BY_DRIVEN:
                x = g[0].rope.position[first + side * n, w]
                u = velocity_of_point(g, g[0].rope.body[end], x, w, real(0.5))
                out = out + wp.dot(g[0].rope.end_force[end, w], u)
                if g[0].rope.clamp[end] == 1:  # on the first element; the last interface's is on what holds it
                    turned = wp.dot(
                        g[0].rope.moment[first + side * n, w], mean_angular_velocity(g, g[0].rope.body[end], w, real(0.5))
                    )
                    out = out + turned * real(1 - 2 * side)
        if g[0].touching == 1:
            fastest = real(0.0)
            for b in range(1, g[0].bodies.count):
                fastest = wp.max(fastest, speed_of_driven_body(g, b, w))
            out = out + most * fastest
    for x in range(g[0].rope.tie_force.shape[0]):
        if g[0].driven == 1 and k == 0:
            for b in range(1, g[0].bodies.count):
                out = out + wp.length(g[0].rope.tie_force[x, w]) * speed_of_driven_body(g, b, w)
    return out + dt * reel_power(g, k, w)


@wp.func
def reel_power(g: wp.array(dtype=Watch), k: int, w: int) -> real:
    """The most that a reel gives a rope, W: its pull, and what the rope that is paid out or taken in carries."""
    side = g[0].rope.reel[k]
    rate = real(0.0)
    if side >= 0:
        rate = wp.abs(g[0].rope.reel_rate[k, w]) + wp.abs(g[0].rope.reel_speed[k, w]) + wp.abs(g[0].rope.last_rate[k, w])
    if rate == real(0.0):
        return real(0.0)
    i = g[0].rope.first[k] + side * g[0].rope.segments[k, w]
    pull = wp.length(g[0].rope.end_force[2 * k + side, w]) / g[0].dt[0]
    v2 = wp.length_sq(g[0].rope.velocity[i, w])
    held = g[0].rope.density[k] * (wp.abs(wp.dot(g[0].gravity[w], g[0].rope.position[i, w])) + v2 + rate * rate)
    return rate * (pull + held)


@wp.func
def cast_power(g: wp.array(dtype=Watch), w: int) -> real:
    """The most that drives of raycast wheels give, W: torque and kd at the speed they ask for, within what they have."""
    out = real(0.0)
    for k in range(g[0].casts[0]):
        omega = g[0].state.drive_state[g[0].casts[1] + 2 * k, w]
        c = g[0].casts[2] + wp.static(CAST_WORDS) * k
        lacks = g[0].control.drive_command[c + 1, w] - omega
        asked = wp.abs(g[0].control.drive_command[c, w]) + wp.abs(lacks) * g[0].control.drive_command[c + 2, w]
        out = out + wp.min(asked, g[0].control.drive_command[c + 3, w]) * wp.abs(omega)
    return out


# ---- a bound, where impulses are not known ----------------------------------------------------------------------------------


@wp.func
def body_power(g: wp.array(dtype=Watch), w: int, share: real) -> real:
    """The most that bodies, joints and springs are given, W: forces times speeds, without regard of their signs; `share` of the
    speeds are those at the start of the step.
    """
    dt = g[0].dt[0]
    per = real(1.0) / dt
    out = pushed_power(g, w, dt, share)
    for k in range(g[0].joints.count):
        if g[0].control.enabled[k, w] != 0:
            out = out + joint_power(g, k, w, per, share)
    if g[0].driven == 1:
        for k in range(g[0].springs.count):
            speed = speed_of_driven_body(g, g[0].springs.parent[k], w) + speed_of_driven_body(g, g[0].springs.child[k], w)
            out = out + wp.abs(g[0].state.spring_impulse[k, w]) * per * speed
    return out


@wp.func
def power_bound(g: wp.array(dtype=Watch), w: int, share: real) -> real:
    """The same with cables, contacts, ropes and raycast wheels."""
    per = real(1.0) / g[0].dt[0]
    out = body_power(g, w, share)
    if g[0].driven == 1:
        for x in range(g[0].cables.ends):
            out = out + wp.abs(g[0].state.cable_impulse[x / 2, w]) * per * speed_of_driven_body(g, g[0].cables.body[x], w)
        if g[0].touching == 1:
            for i in range(g[0].contacts.count[w]):
                out = out + wp.abs(contact_work(g, i, w)) * per
    for k in range(g[0].rope.count):
        out = out + rope_power(g, k, w)
    if g[0].casts[0] > 0:
        out = out + cast_power(g, w)
    return out


@wp.func
def larger(a: vec3, b: vec3) -> vec3:
    """The longer of two vectors."""
    if wp.dot(a, a) >= wp.dot(b, b):
        return a
    return b


@wp.func
def pushed_power(g: wp.array(dtype=Watch), w: int, span: real, share: real) -> real:
    """The most that a user's forces on bodies give, W, if they act for a time (s)."""
    out = real(0.0)
    for b in range(1, g[0].bodies.count):
        f = g[0].control.force[b, w] + g[0].control.force_once[b, w]
        t = g[0].control.torque[b, w] + g[0].control.torque_once[b, w]
        if g[0].halves == 1:  # half of the next kick is by what acted before
            f = larger(f, g[0].now.felt_force[b, w])
            t = larger(t, g[0].now.felt_torque[b, w])
        f2 = wp.dot(f, f)
        if f2 > real(0.0):
            out = out + wp.sqrt(f2) * wp.length(mean_velocity(g, b, w, share)) + f2 * g[0].bodies.inv_mass[b, w] * span
        t2 = wp.dot(t, t)
        if t2 > real(0.0):
            J = g[0].bodies.inv_inertia[b, w]
            yields = wp.max(J[0, 0], wp.max(J[1, 1], J[2, 2])) * real(3.0)
            out = out + wp.sqrt(t2) * wp.length(mean_angular_velocity(g, b, w, share)) + t2 * yields * span
    return out


@wp.func
def joint_power(g: wp.array(dtype=Watch), k: int, w: int, per: real, share: real) -> real:
    """The most that drives and commands along a joint's axes, and kinematic bodies that it hangs on, give, W."""
    p = g[0].joints.parent[k]
    c = g[0].joints.child[k]
    push = real(0.0)
    for a in range(g[0].joints.v_start[k], g[0].joints.v_start[k] + g[0].joints.v_size[k]):
        push = push + wp.abs(g[0].state.drive_impulse[a, w]) * per + wp.abs(g[0].control.joint_force[a, w])
        if g[0].halves == 1:
            push = push + wp.abs(g[0].now.felt_joint[a, w])
    out = real(0.0)
    x = g[0].state.position[c, w] + wp.quat_rotate(g[0].state.rotation[c, w], g[0].joints.child_point[k, w])
    if push > real(0.0):
        u = wp.length(velocity_of_point(g, c, x, w, share) - velocity_of_point(g, p, x, w, share))
        out = out + push * wp.max(u, wp.length(mean_angular_velocity(g, c, w, share) - mean_angular_velocity(g, p, w, share)))
    f = wp.length(g[0].mean_force[k, w]) * per + push
    t = wp.length(g[0].mean_torque[k, w]) * per + push
    for side in range(2):
        b = wp.where(side == 0, p, c)
        if g[0].bodies.motion[b] == KINEMATIC:
            out = out + f * wp.length(velocity_of_point(g, b, x, w, share)) + t * wp.length(mean_angular_velocity(g, b, w, share))
    return out


@wp.func
def rope_power(g: wp.array(dtype=Watch), k: int, w: int) -> real:
    """The most that forces, wind, kinematic ends and a reel give a rope, W."""
    per = real(1.0) / g[0].dt[0]
    out = reel_power(g, k, w)
    first = g[0].rope.first[k]
    n = g[0].rope.segments[k, w]
    density = g[0].rope.density[k]
    wind2 = wp.length_sq(g[0].rope.wind[w])
    for j in range(n + 1):
        i = first + j
        f = wp.length(g[0].rope.force[i, w] + g[0].rope.force_once[i, w])
        if f > real(0.0):
            mass = wp.max(density * g[0].rope.length[first, w], real(1.0e-30))
            out = out + f * wp.length(g[0].rope.velocity[i, w]) + f * f * g[0].dt[0] / mass
        if j < n:
            out = out + wp.length(g[0].rope.torque[i, w]) * wp.length(g[0].rope.spin[i, w])
            if wind2 > real(0.0):
                out = out + density * g[0].rope.length[i, w] * wind2 * per
    if g[0].driven == 1:
        for side in range(2):
            pull = wp.length(g[0].rope.end_force[2 * k + side, w]) * per
            out = out + pull * wp.length(g[0].rope.velocity[first + side * n, w])
            if g[0].rope.clamp[2 * k + side] == 1:
                spin = wp.length(g[0].state.spin[g[0].rope.body[2 * k + side], w])
                out = out + wp.length(g[0].rope.moment[first + side * n, w]) * per * spin
    return out
