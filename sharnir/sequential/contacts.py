"""Points of contact in the sweeps: prepared, struck, swept beside the joints, pushed apart (theory: contact).

Impacts come first, in rounds: each is solved for the points that still approach, so that a blow runs through a row of bodies as
it does in a cradle. Then points are swept with the joints, and what overlaps is taken back by the split impulses.
"""

import warp as wp

from sharnir.laws.contact import RELAXED, SLOP, across, approach, meet_point, point_response, softness, tangent_inverse
from sharnir.rows import Twists
from sharnir.sequential.data import POSITIONS, VELOCITIES, Step
from sharnir.types import mat33, real, vec3

PUSH = wp.constant(real(0.2))  # share of an overlap that is taken back in a step
BOUNCES = wp.constant(real(0.05))  # m/s: slower impacts do not bounce
SLIDES = wp.constant(real(1.0e-3))  # m/s: a point that moves faster slides, and has the dynamic coefficient
IMPACTS = wp.constant(64)  # rounds of an impact, at most
STRUCK = wp.constant(50)  # sweeps of a round


@wp.func
def point_speed(s: wp.array(dtype=Step), twist: Twists, i: int, w: int) -> vec3:
    """Velocity of b's point relative to a's, with that of moving surfaces; m/s, world axes."""
    a = s[0].contacts.body_a[i, w]
    b = s[0].contacts.body_b[i, w]
    u = twist.linear[b, w] + wp.cross(twist.angular[b, w], s[0].touch.r_b[i, w])
    return u - twist.linear[a, w] - wp.cross(twist.angular[a, w], s[0].touch.r_a[i, w]) + s[0].contacts.surface[i, w]


@wp.func
def push_point(s: wp.array(dtype=Step), twist: Twists, i: int, w: int, P: vec3):
    """An impulse at a point, on b, and against it on a."""
    a = s[0].contacts.body_a[i, w]
    b = s[0].contacts.body_b[i, w]
    twist.linear[a, w] = twist.linear[a, w] - P * s[0].bodies.inv_mass[a, w]
    twist.angular[a, w] = twist.angular[a, w] - s[0].work.inv_inertia[a, w] * wp.cross(s[0].touch.r_a[i, w], P)
    twist.linear[b, w] = twist.linear[b, w] + P * s[0].bodies.inv_mass[b, w]
    twist.angular[b, w] = twist.angular[b, w] + s[0].work.inv_inertia[b, w] * wp.cross(s[0].touch.r_b[i, w], P)


@wp.func
def in_axes(n: vec3, t1: vec3, v: vec3) -> vec3:
    """A vector along n, t₁, t₂ = n × t₁."""
    return vec3(wp.dot(n, v), wp.dot(t1, v), wp.dot(wp.cross(n, t1), v))


@wp.func
def from_axes(n: vec3, t1: vec3, p: vec3) -> vec3:
    return n * p[0] + t1 * p[1] + wp.cross(n, t1) * p[2]


@wp.func
def prepare_point(s: wp.array(dtype=Step), i: int, w: int, reading: int):
    """Arms, response and law of a point; the impulse of the last step on the axes of today."""
    h = s[0].settings.dt[0]
    a = s[0].contacts.body_a[i, w]
    b = s[0].contacts.body_b[i, w]
    n = s[0].contacts.normal[i, w]
    t1 = across(n)
    if wp.length_sq(s[0].contacts.along[i, w]) > real(0.0):
        t1 = s[0].contacts.along[i, w]
    t2 = wp.cross(n, t1)
    point = s[0].contacts.point[i, w]
    if reading == 1:  # the bodies have moved since it was found
        point = s[0].state.position[b, w] + wp.quat_rotate(s[0].state.rotation[b, w], s[0].contacts.local[i, w])
    r_a = point - s[0].state.position[a, w]
    r_b = point - s[0].state.position[b, w]
    K = point_response(n, t1, t2, r_a, s[0].bodies.inv_mass[a, w], s[0].work.inv_inertia[a, w])
    K = K + point_response(n, t1, t2, r_b, s[0].bodies.inv_mass[b, w], s[0].work.inv_inertia[b, w])
    s[0].touch.r_a[i, w] = r_a
    s[0].touch.r_b[i, w] = r_b
    s[0].touch.t1[i, w] = t1
    s[0].touch.K[i, w] = K
    before = s[0].state.velocity[b, w] + wp.cross(s[0].state.spin[b, w], r_b)
    before = before - s[0].state.velocity[a, w] - wp.cross(s[0].state.spin[a, w], r_a) + s[0].contacts.surface[i, w]
    s[0].touch.before[i, w] = wp.dot(n, before)
    mu = s[0].contacts.friction[i, w]
    slip = before - n * wp.dot(n, before)
    if mu[0] > real(0.0) and wp.length_sq(slip) > SLIDES * SLIDES:
        mu = mu * (s[0].contacts.dynamic[i, w] / mu[0])
    s[0].touch.mu[i, w] = mu
    s[0].touch.G[i, w] = tangent_inverse(K, mu)
    gap = s[0].contacts.gap[i, w]
    s[0].touch.bias[i, w] = approach(gap, s[0].contacts.stiffness[i, w], s[0].contacts.damping[i, w], h)
    s[0].touch.soft[i, w] = softness(s[0].contacts.stiffness[i, w], s[0].contacts.damping[i, w], h)
    P = in_axes(n, t1, s[0].contacts.impulse[i, w]) * (s[0].settings.kick[w] / h)
    if P[0] <= real(0.0):
        P = vec3(real(0.0))
        if reading == 1:  # what does not push at the pose is not met on the way to it
            s[0].touch.bias[i, w] = real(1.0e30)
    if reading == 1:
        s[0].touch.before[i, w] = real(0.0)
    s[0].touch.p[i, w] = P
    s[0].touch.roll[i, w] = vec3(real(0.0))
    s[0].touch.struck[i, w] = vec3(real(0.0))
    s[0].touch.pseudo[i, w] = real(0.0)


@wp.func
def warm_points(s: wp.array(dtype=Step), w: int):
    """Impulses of the last step, put back on the bodies."""
    twist = s[0].solves[VELOCITIES].twist
    for i in range(s[0].contacts.count[w]):
        p = s[0].touch.p[i, w]
        if p[0] > real(0.0):
            P = from_axes(s[0].contacts.normal[i, w], s[0].touch.t1[i, w], p)
            push_point(s, twist, i, w, P)


@wp.func
def turn_bodies(s: wp.array(dtype=Step), i: int, w: int, l: vec3):
    """A moment at a point, on b, and against it on a."""
    a = s[0].contacts.body_a[i, w]
    b = s[0].contacts.body_b[i, w]
    twist = s[0].solves[VELOCITIES].twist
    twist.angular[a, w] = twist.angular[a, w] - s[0].work.inv_inertia[a, w] * l
    twist.angular[b, w] = twist.angular[b, w] + s[0].work.inv_inertia[b, w] * l


@wp.func
def resist_turning(s: wp.array(dtype=Step), i: int, w: int) -> real:
    """Rolling and torsional friction of a point: a moment across n and one about it, bounded by the normal impulse.

    Returns the change of the relative spin, times a metre.
    """
    a = s[0].contacts.body_a[i, w]
    b = s[0].contacts.body_b[i, w]
    n = s[0].contacts.normal[i, w]
    pn = s[0].touch.p[i, w][0]
    J = s[0].work.inv_inertia[a, w] + s[0].work.inv_inertia[b, w]
    twist = s[0].solves[VELOCITIES].twist
    spin = twist.angular[b, w] - twist.angular[a, w]
    old = s[0].touch.roll[i, w]
    about = wp.dot(n, J * n)
    size = wp.max(wp.trace(J) - about, real(1.0e-30))
    most = s[0].contacts.torsion[i, w] * pn
    twist_now = wp.clamp(wp.dot(n, old) - wp.dot(n, spin) / about, -most, most)
    roll = old - n * wp.dot(n, old) - (spin - n * wp.dot(n, spin)) * (real(1.0) / size)
    bound = s[0].contacts.rolling[i, w] * pn
    length = wp.length(roll)
    if length > bound:
        roll = roll * (bound / length)
    new = roll + n * twist_now
    s[0].touch.roll[i, w] = new
    turn_bodies(s, i, w, new - old)
    return wp.length(new - old) * wp.max(size, about)


@wp.func
def sweep_points(s: wp.array(dtype=Step), w: int, backwards: int) -> real:
    """Every point once, forth or back; returns the largest change of a relative velocity, m/s.

    Bodies of consecutive points are the same in most manifolds: their velocities stay in registers.
    """
    twist = s[0].solves[VELOCITIES].twist
    count = s[0].contacts.count[w]
    most = real(0.0)
    a = int(-1)
    b = int(-1)
    va = vec3(real(0.0))
    wa = vec3(real(0.0))
    vb = vec3(real(0.0))
    wb = vec3(real(0.0))
    Ja = mat33(real(0.0))
    Jb = mat33(real(0.0))
    ma = real(0.0)
    mb = real(0.0)
    for order in range(count):
        i = order
        if backwards == 1:
            i = count - 1 - order
        if s[0].contacts.body_a[i, w] != a or s[0].contacts.body_b[i, w] != b:
            if a >= 0:
                twist.linear[a, w] = va
                twist.angular[a, w] = wa
                twist.linear[b, w] = vb
                twist.angular[b, w] = wb
            a = s[0].contacts.body_a[i, w]
            b = s[0].contacts.body_b[i, w]
            va = twist.linear[a, w]
            wa = twist.angular[a, w]
            vb = twist.linear[b, w]
            wb = twist.angular[b, w]
            Ja = s[0].work.inv_inertia[a, w]
            Jb = s[0].work.inv_inertia[b, w]
            ma = s[0].bodies.inv_mass[a, w]
            mb = s[0].bodies.inv_mass[b, w]
        n = s[0].contacts.normal[i, w]
        t1 = s[0].touch.t1[i, w]
        t2 = wp.cross(n, t1)
        r_a = s[0].touch.r_a[i, w]
        r_b = s[0].touch.r_b[i, w]
        u = vb + wp.cross(wb, r_b) - va - wp.cross(wa, r_a) + s[0].contacts.surface[i, w]
        p = s[0].touch.p[i, w]
        K = s[0].touch.K[i, w]
        speeds = vec3(wp.dot(n, u), wp.dot(t1, u), wp.dot(t2, u))
        G = s[0].touch.G[i, w]
        new = meet_point(p, speeds, K, G, s[0].touch.mu[i, w], s[0].touch.bias[i, w], s[0].touch.soft[i, w], RELAXED)
        d = new - p
        if d[0] != real(0.0) or d[1] != real(0.0) or d[2] != real(0.0):
            s[0].touch.p[i, w] = new
            most = wp.max(most, wp.max(wp.abs(d[0]) * K[0], wp.max(wp.abs(d[1]) * K[3], wp.abs(d[2]) * K[5])))
            P = n * d[0] + t1 * d[1] + t2 * d[2]
            va = va - P * ma
            wa = wa - Ja * wp.cross(r_a, P)
            vb = vb + P * mb
            wb = wb + Jb * wp.cross(r_b, P)
    if a >= 0:
        twist.linear[a, w] = va
        twist.angular[a, w] = wa
        twist.linear[b, w] = vb
        twist.angular[b, w] = wb
    for i in range(count):
        if s[0].contacts.rolling[i, w] > real(0.0) or s[0].contacts.torsion[i, w] > real(0.0):
            most = wp.max(most, resist_turning(s, i, w) * wp.length(s[0].touch.r_b[i, w]))
    return most


# ---- overlaps ---------------------------------------------------------------------------------------------------------------


@wp.func
def measure_points(s: wp.array(dtype=Step), w: int) -> int:
    """What the step leaves of each gap, and the speed at which it is to be taken back; returns whether any overlap is to be."""
    h = s[0].settings.dt[0]
    deep = int(0)
    for i in range(s[0].contacts.count[w]):
        u = wp.dot(s[0].contacts.normal[i, w], point_speed(s, s[0].solves[VELOCITIES].twist, i, w))
        left = s[0].contacts.gap[i, w] + u * h + SLOP
        if s[0].contacts.stiffness[i, w] > real(0.0):
            left = real(1.0e30)
        elif left < real(0.0):
            left = left * PUSH
            deep = 1
        s[0].touch.aim[i, w] = left / h
    return deep


@wp.func
def part_points(s: wp.array(dtype=Step), w: int):
    """Split impulses of one sweep: overlaps are pushed apart, gaps stay open."""
    twist = s[0].solves[POSITIONS].twist
    for i in range(s[0].contacts.count[w]):
        a = s[0].contacts.body_a[i, w]
        b = s[0].contacts.body_b[i, w]
        n = s[0].contacts.normal[i, w]
        u = twist.linear[b, w] + wp.cross(twist.angular[b, w], s[0].touch.r_b[i, w])
        u = u - twist.linear[a, w] - wp.cross(twist.angular[a, w], s[0].touch.r_a[i, w])
        new = wp.max(real(0.0), s[0].touch.pseudo[i, w] - (wp.dot(n, u) + s[0].touch.aim[i, w]) / s[0].touch.K[i, w][0])
        d = new - s[0].touch.pseudo[i, w]
        if d != real(0.0):
            s[0].touch.pseudo[i, w] = new
            push_point(s, twist, i, w, n * d)


# ---- impacts ----------------------------------------------------------------------------------------------------------------


@wp.func
def touches(s: wp.array(dtype=Step), i: int, w: int, u: real) -> bool:
    """Whether a point with this normal speed meets in the step, and a blow is meant by it."""
    return u < -BOUNCES and s[0].contacts.gap[i, w] + u * s[0].settings.dt[0] < real(0.0)


@wp.func
def is_struck(s: wp.array(dtype=Step), w: int) -> bool:
    """Whether some point with restitution comes in fast enough to bounce."""
    for i in range(s[0].contacts.count[w]):
        if s[0].contacts.restitution[i, w] > real(0.0) and touches(s, i, w, s[0].touch.before[i, w]):
            return True
    return False


@wp.func
def open_round(s: wp.array(dtype=Step), w: int, first: int) -> int:
    """Points that approach now are to leave at e times the speed; returns their number."""
    struck = int(0)
    for i in range(s[0].contacts.count[w]):
        u = wp.dot(s[0].contacts.normal[i, w], point_speed(s, s[0].solves[VELOCITIES].twist, i, w))
        s[0].touch.aim[i, w] = real(1.0e30)
        s[0].touch.pseudo[i, w] = real(0.0)
        meets = touches(s, i, w, u)
        if meets and first == 1:
            meets = s[0].touch.before[i, w] < -BOUNCES
        if meets:
            e = s[0].contacts.restitution[i, w]
            leaves = -e * u
            if first == 1:
                # It is struck where it stands, a gap above the surface: with the speed that it would have there on the way back.
                # Half of the kick comes before the pose, half after it.
                kick = u - s[0].touch.before[i, w]
                fast = u - real(0.5) * kick
                lost = wp.max(real(0.0), -kick / s[0].settings.kick[w]) * wp.max(s[0].contacts.gap[i, w], real(0.0))
                rise = e * e * fast * fast - real(2.0) * lost * (real(1.0) - e * e)
                leaves = wp.sqrt(wp.max(rise, real(0.0))) + real(0.5) * kick
            s[0].touch.aim[i, w] = -leaves
            struck = struck + 1
    return struck


@wp.func
def strike_points(s: wp.array(dtype=Step), w: int, backwards: int) -> real:
    """One sweep over the points of a round: normal speeds to their aims, rubbing with it; returns the largest change, m/s."""
    most = real(0.0)
    count = s[0].contacts.count[w]
    for order in range(count):
        i = order
        if backwards == 1:
            i = count - 1 - order
        if s[0].touch.aim[i, w] < real(1.0e29):
            n = s[0].contacts.normal[i, w]
            t1 = s[0].touch.t1[i, w]
            u = in_axes(n, t1, point_speed(s, s[0].solves[VELOCITIES].twist, i, w))
            p = s[0].touch.struck[i, w]
            new = meet_point(
                p, u, s[0].touch.K[i, w], s[0].touch.G[i, w], s[0].touch.mu[i, w], s[0].touch.aim[i, w], real(0.0), real(1.0)
            )
            d = new - p
            s[0].touch.struck[i, w] = new
            K = s[0].touch.K[i, w]
            most = wp.max(most, wp.max(wp.abs(d[0]) * K[0], (wp.abs(d[1]) + wp.abs(d[2])) * K[3]))
            push_point(s, s[0].solves[VELOCITIES].twist, i, w, from_axes(n, t1, d))
    return most


@wp.func
def close_round(s: wp.array(dtype=Step), w: int):
    """What the round gave is part of what the step reports."""
    for i in range(s[0].contacts.count[w]):
        if s[0].touch.aim[i, w] < real(1.0e29):
            P = from_axes(s[0].contacts.normal[i, w], s[0].touch.t1[i, w], s[0].touch.struck[i, w])
            s[0].touch.blow[i, w] = s[0].touch.blow[i, w] + P
            s[0].touch.struck[i, w] = vec3(real(0.0))


# ---- the end of a step ------------------------------------------------------------------------------------------------------


@wp.func
def commit_points(s: wp.array(dtype=Step), w: int):
    """Impulses of the step, for the next one to start from and for the caller to read."""
    whole = s[0].settings.dt[0] / s[0].settings.kick[w]
    for i in range(s[0].contacts.count[w]):
        s[0].contacts.impulse[i, w] = from_axes(s[0].contacts.normal[i, w], s[0].touch.t1[i, w], s[0].touch.p[i, w]) * whole
        u = point_speed(s, s[0].solves[VELOCITIES].twist, i, w)
        s[0].contacts.gap[i, w] = s[0].contacts.gap[i, w] + wp.dot(s[0].contacts.normal[i, w], u) * s[0].settings.dt[0]
        s[0].touch.slip[i, w] = u - s[0].contacts.normal[i, w] * wp.dot(s[0].contacts.normal[i, w], u)


@wp.kernel(module="sharnir.contact")
def prepare_points(s: wp.array(dtype=Step), first: int, reading: int):
    """The rows of all points that `collide` found; what is read keeps those of the last step."""
    w = first + wp.tid()
    if s[0].solves[VELOCITIES].done[w] >= 0:
        return
    for i in range(s[0].contacts.count[w]):
        prepare_point(s, i, w, reading)
