"""Points of contact in the sweeps: prepared, struck, swept beside the joints, pushed apart (theory: contact).

Impacts come first, in rounds: each is solved for the points that still approach, so that a blow runs through a row of bodies as
it does in a cradle. Then points are swept with the joints, and what overlaps is taken back by the split impulses.
"""

import warp as wp

from sharnir.collision.data import Contacts
from sharnir.laws.contact import SLOP, across, approach, meet_point, point_response, softness, tangent_inverse
from sharnir.model import BodyTable
from sharnir.rows import Twists
from sharnir.sequential.data import POSITIONS, VELOCITIES, Step, Touch
from sharnir.types import mat33, real, vec3

PUSH = wp.constant(real(0.2))  # share of an overlap that is taken back in a step
BOUNCES = wp.constant(real(0.05))  # m/s: slower impacts do not bounce
SLIDES = wp.constant(real(1.0e-3))  # m/s: a point that moves faster slides, and has the dynamic coefficient
IMPACTS = wp.constant(64)  # rounds of an impact, at most
STRUCK = wp.constant(50)  # sweeps of a round


@wp.func
def point_speed(twist: Twists, c: Contacts, t: Touch, i: int, w: int) -> vec3:
    """Velocity of b's point relative to a's, with that of moving surfaces; m/s, world axes."""
    a = c.body_a[i, w]
    b = c.body_b[i, w]
    u = twist.linear[b, w] + wp.cross(twist.angular[b, w], t.r_b[i, w])
    return u - twist.linear[a, w] - wp.cross(twist.angular[a, w], t.r_a[i, w]) + c.surface[i, w]


@wp.func
def push_point(
    twist: Twists, bodies: BodyTable, inv_inertia: wp.array2d(dtype=mat33), c: Contacts, t: Touch, i: int, w: int, P: vec3
):
    """An impulse at a point, on b, and against it on a."""
    a = c.body_a[i, w]
    b = c.body_b[i, w]
    twist.linear[a, w] = twist.linear[a, w] - P * bodies.inv_mass[a, w]
    twist.angular[a, w] = twist.angular[a, w] - inv_inertia[a, w] * wp.cross(t.r_a[i, w], P)
    twist.linear[b, w] = twist.linear[b, w] + P * bodies.inv_mass[b, w]
    twist.angular[b, w] = twist.angular[b, w] + inv_inertia[b, w] * wp.cross(t.r_b[i, w], P)


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
    c = s[0].contacts
    t = s[0].touch
    h = s[0].settings.dt[0]
    a = c.body_a[i, w]
    b = c.body_b[i, w]
    n = c.normal[i, w]
    t1 = across(n)
    if wp.length_sq(c.along[i, w]) > real(0.0):
        t1 = c.along[i, w]
    t2 = wp.cross(n, t1)
    point = c.point[i, w]
    if reading == 1:  # the bodies have moved since it was found
        point = s[0].state.position[b, w] + wp.quat_rotate(s[0].state.rotation[b, w], c.local[i, w])
    r_a = point - s[0].state.position[a, w]
    r_b = point - s[0].state.position[b, w]
    K = point_response(n, t1, t2, r_a, s[0].bodies.inv_mass[a, w], s[0].work.inv_inertia[a, w])
    K = K + point_response(n, t1, t2, r_b, s[0].bodies.inv_mass[b, w], s[0].work.inv_inertia[b, w])
    t.r_a[i, w] = r_a
    t.r_b[i, w] = r_b
    t.t1[i, w] = t1
    t.K[i, w] = K
    before = s[0].state.velocity[b, w] + wp.cross(s[0].state.spin[b, w], r_b)
    before = before - s[0].state.velocity[a, w] - wp.cross(s[0].state.spin[a, w], r_a) + c.surface[i, w]
    t.before[i, w] = wp.dot(n, before)
    mu = c.friction[i, w]
    slip = before - n * wp.dot(n, before)
    if mu[0] > real(0.0) and wp.length_sq(slip) > SLIDES * SLIDES:
        mu = mu * (c.dynamic[i, w] / mu[0])
    t.mu[i, w] = mu
    t.G[i, w] = tangent_inverse(K, mu)
    gap = c.gap[i, w]
    t.bias[i, w] = approach(gap, c.stiffness[i, w], c.damping[i, w], h)
    t.soft[i, w] = softness(c.stiffness[i, w], c.damping[i, w], h)
    P = in_axes(n, t1, c.impulse[i, w]) * (s[0].settings.kick[w] / h)
    if P[0] <= real(0.0):
        P = vec3(real(0.0))
        if reading == 1:  # what does not push at the pose is not met on the way to it
            t.bias[i, w] = real(1.0e30)
    if reading == 1:
        t.before[i, w] = real(0.0)
    t.p[i, w] = P
    t.roll[i, w] = vec3(real(0.0))
    t.struck[i, w] = vec3(real(0.0))
    t.pseudo[i, w] = real(0.0)


@wp.func
def warm_points(s: wp.array(dtype=Step), w: int):
    """Impulses of the last step, put back on the bodies."""
    twist = s[0].solves[VELOCITIES].twist
    for i in range(s[0].contacts.count[w]):
        p = s[0].touch.p[i, w]
        if p[0] > real(0.0):
            P = from_axes(s[0].contacts.normal[i, w], s[0].touch.t1[i, w], p)
            push_point(twist, s[0].bodies, s[0].work.inv_inertia, s[0].contacts, s[0].touch, i, w, P)


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
    c = s[0].contacts
    a = c.body_a[i, w]
    b = c.body_b[i, w]
    n = c.normal[i, w]
    pn = s[0].touch.p[i, w][0]
    J = s[0].work.inv_inertia[a, w] + s[0].work.inv_inertia[b, w]
    twist = s[0].solves[VELOCITIES].twist
    spin = twist.angular[b, w] - twist.angular[a, w]
    old = s[0].touch.roll[i, w]
    about = wp.dot(n, J * n)
    size = wp.max(wp.trace(J) - about, real(1.0e-30))
    twist_now = wp.clamp(wp.dot(n, old) - wp.dot(n, spin) / about, -c.torsion[i, w] * pn, c.torsion[i, w] * pn)
    roll = old - n * wp.dot(n, old) - (spin - n * wp.dot(n, spin)) * (real(1.0) / size)
    bound = c.rolling[i, w] * pn
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
    c = s[0].contacts
    t = s[0].touch
    twist = s[0].solves[VELOCITIES].twist
    count = c.count[w]
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
        if c.body_a[i, w] != a or c.body_b[i, w] != b:
            if a >= 0:
                twist.linear[a, w] = va
                twist.angular[a, w] = wa
                twist.linear[b, w] = vb
                twist.angular[b, w] = wb
            a = c.body_a[i, w]
            b = c.body_b[i, w]
            va = twist.linear[a, w]
            wa = twist.angular[a, w]
            vb = twist.linear[b, w]
            wb = twist.angular[b, w]
            Ja = s[0].work.inv_inertia[a, w]
            Jb = s[0].work.inv_inertia[b, w]
            ma = s[0].bodies.inv_mass[a, w]
            mb = s[0].bodies.inv_mass[b, w]
        n = c.normal[i, w]
        t1 = t.t1[i, w]
        t2 = wp.cross(n, t1)
        r_a = t.r_a[i, w]
        r_b = t.r_b[i, w]
        u = vb + wp.cross(wb, r_b) - va - wp.cross(wa, r_a) + c.surface[i, w]
        p = t.p[i, w]
        K = t.K[i, w]
        new = meet_point(
            p, vec3(wp.dot(n, u), wp.dot(t1, u), wp.dot(t2, u)), K, t.G[i, w], t.mu[i, w], t.bias[i, w], t.soft[i, w]
        )
        d = new - p
        if d[0] != real(0.0) or d[1] != real(0.0) or d[2] != real(0.0):
            t.p[i, w] = new
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
        if c.rolling[i, w] > real(0.0) or c.torsion[i, w] > real(0.0):
            most = wp.max(most, resist_turning(s, i, w) * wp.length(t.r_b[i, w]))
    return most


# ---- overlaps ---------------------------------------------------------------------------------------------------------------


@wp.func
def measure_points(s: wp.array(dtype=Step), w: int) -> int:
    """What the step leaves of each gap, and the speed at which it is to be taken back; returns whether any overlap is to be."""
    c = s[0].contacts
    t = s[0].touch
    h = s[0].settings.dt[0]
    deep = int(0)
    for i in range(c.count[w]):
        u = wp.dot(c.normal[i, w], point_speed(s[0].solves[VELOCITIES].twist, c, t, i, w))
        left = c.gap[i, w] + u * h + SLOP
        if c.stiffness[i, w] > real(0.0):
            left = real(1.0e30)
        elif left < real(0.0):
            left = left * PUSH
            deep = 1
        t.aim[i, w] = left / h
    return deep


@wp.func
def part_points(s: wp.array(dtype=Step), w: int):
    """Split impulses of one sweep: overlaps are pushed apart, gaps stay open."""
    c = s[0].contacts
    t = s[0].touch
    twist = s[0].solves[POSITIONS].twist
    for i in range(c.count[w]):
        a = c.body_a[i, w]
        b = c.body_b[i, w]
        n = c.normal[i, w]
        u = twist.linear[b, w] + wp.cross(twist.angular[b, w], t.r_b[i, w])
        u = u - twist.linear[a, w] - wp.cross(twist.angular[a, w], t.r_a[i, w])
        new = wp.max(real(0.0), t.pseudo[i, w] - (wp.dot(n, u) + t.aim[i, w]) / t.K[i, w][0])
        d = new - t.pseudo[i, w]
        if d != real(0.0):
            t.pseudo[i, w] = new
            push_point(twist, s[0].bodies, s[0].work.inv_inertia, c, t, i, w, n * d)


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
    c = s[0].contacts
    t = s[0].touch
    struck = int(0)
    for i in range(c.count[w]):
        u = wp.dot(c.normal[i, w], point_speed(s[0].solves[VELOCITIES].twist, c, t, i, w))
        t.aim[i, w] = real(1.0e30)
        t.pseudo[i, w] = real(0.0)
        meets = touches(s, i, w, u)
        if meets and first == 1:
            meets = t.before[i, w] < -BOUNCES
        if meets:
            e = c.restitution[i, w]
            leaves = -e * u
            if first == 1:
                # It is struck where it stands, a gap above the surface: with the speed that it would have there on the way back.
                # Half of the kick comes before the pose, half after it.
                kick = u - t.before[i, w]
                fast = u - real(0.5) * kick
                lost = wp.max(real(0.0), -kick / s[0].settings.kick[w]) * wp.max(c.gap[i, w], real(0.0))
                rise = e * e * fast * fast - real(2.0) * lost * (real(1.0) - e * e)
                leaves = wp.sqrt(wp.max(rise, real(0.0))) + real(0.5) * kick
            t.aim[i, w] = -leaves
            struck = struck + 1
    return struck


@wp.func
def strike_points(s: wp.array(dtype=Step), w: int, backwards: int) -> real:
    """One sweep over the points of a round: normal speeds to their aims, rubbing with it; returns the largest change, m/s."""
    c = s[0].contacts
    t = s[0].touch
    most = real(0.0)
    count = c.count[w]
    for order in range(count):
        i = order
        if backwards == 1:
            i = count - 1 - order
        if t.aim[i, w] < real(1.0e29):
            n = c.normal[i, w]
            t1 = t.t1[i, w]
            u = in_axes(n, t1, point_speed(s[0].solves[VELOCITIES].twist, c, t, i, w))
            p = t.struck[i, w]
            new = meet_point(p, u, t.K[i, w], t.G[i, w], t.mu[i, w], t.aim[i, w], real(0.0))
            d = new - p
            t.struck[i, w] = new
            most = wp.max(most, wp.max(wp.abs(d[0]) * t.K[i, w][0], (wp.abs(d[1]) + wp.abs(d[2])) * t.K[i, w][3]))
            push_point(s[0].solves[VELOCITIES].twist, s[0].bodies, s[0].work.inv_inertia, c, t, i, w, from_axes(n, t1, d))
    return most


@wp.func
def close_round(s: wp.array(dtype=Step), w: int):
    """What the round gave is part of what the step reports."""
    c = s[0].contacts
    t = s[0].touch
    for i in range(c.count[w]):
        if t.aim[i, w] < real(1.0e29):
            t.blow[i, w] = t.blow[i, w] + from_axes(c.normal[i, w], t.t1[i, w], t.struck[i, w])
            t.struck[i, w] = vec3(real(0.0))


# ---- the end of a step ------------------------------------------------------------------------------------------------------


@wp.func
def commit_points(s: wp.array(dtype=Step), w: int):
    """Impulses of the step, for the next one to start from and for the caller to read."""
    c = s[0].contacts
    whole = s[0].settings.dt[0] / s[0].settings.kick[w]
    for i in range(c.count[w]):
        c.impulse[i, w] = from_axes(c.normal[i, w], s[0].touch.t1[i, w], s[0].touch.p[i, w]) * whole
        u = point_speed(s[0].solves[VELOCITIES].twist, c, s[0].touch, i, w)
        c.gap[i, w] = c.gap[i, w] + wp.dot(c.normal[i, w], u) * s[0].settings.dt[0]
        s[0].touch.slip[i, w] = u - c.normal[i, w] * wp.dot(c.normal[i, w], u)


@wp.kernel(module="sharnir.contact")
def prepare_points(s: wp.array(dtype=Step), first: int, reading: int):
    """The rows of all points that `collide` found; what is read keeps those of the last step."""
    w = first + wp.tid()
    if s[0].solves[VELOCITIES].done[w] >= 0:
        return
    for i in range(s[0].contacts.count[w]):
        prepare_point(s, i, w, reading)
