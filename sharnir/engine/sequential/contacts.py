"""Points of contact in the sweeps: prepared, struck, swept beside the joints, pushed apart (theory: contact).

Impacts come first, in rounds: each is solved for the points that still approach, so that a blow runs through a row of bodies as
it does in a cradle. Then points are swept with the joints, and what overlaps is taken back by the split impulses.
"""

import warp as wp

from sharnir.core.types import real, vec3
from sharnir.engine.sequential.data import POSITIONS, VELOCITIES, Patch, Step
from sharnir.engine.sequential.patches import ON_BELT, belt_speed_of_point, from_axes, in_axes, pull_belt, sweep_patches, unscaled
from sharnir.laws.casts import close_casts
from sharnir.laws.contact import SLOP, meet_scaled
from sharnir.laws.rows import Twists

OVERLAP_SHARE = wp.constant(real(0.2))  # share of an overlap that is taken back in a step
BOUNCE_SPEED = wp.constant(real(0.05))  # m/s: slower impacts do not bounce
IMPACT_ROUNDS = wp.constant(64)  # rounds of an impact, at most
IMPACT_SWEEPS = wp.constant(50)  # sweeps of a round


@wp.func
def arm(g: Patch, c: vec3, d: vec3) -> vec3:
    """From a body's centre of mass (c to the patch's middle) to a point, m, world axes."""
    return c + from_axes(g.n, g.t1, g.t2, d)


@wp.func
def point_speed(s: wp.array(dtype=Step), twist: Twists, i: int, w: int) -> vec3:
    """Velocity of b's point relative to a's, m/s, along n, t₁, t₂; without that of moving surfaces."""
    g = s[0].touch.patch[s[0].touch.patch_of[i, w], w]
    d = s[0].touch.row[i, w].d
    u = twist.linear[g.b, w] + wp.cross(twist.angular[g.b, w], arm(g, g.c_b, d))
    return in_axes(g.n, g.t1, g.t2, u - twist.linear[g.a, w] - wp.cross(twist.angular[g.a, w], arm(g, g.c_a, d)))


@wp.func
def slide_of(s: wp.array(dtype=Step), i: int, w: int) -> vec3:
    return s[0].touch.patch[s[0].touch.patch_of[i, w], w].slide


@wp.func
def push_point(s: wp.array(dtype=Step), twist: Twists, i: int, w: int, p: vec3) -> None:
    """An impulse at a point, along n, t₁, t₂, on b, and against it on a."""
    g = s[0].touch.patch[s[0].touch.patch_of[i, w], w]
    d = s[0].touch.row[i, w].d
    P = from_axes(g.n, g.t1, g.t2, p)
    twist.linear[g.a, w] = twist.linear[g.a, w] - P * s[0].work.inv_mass[g.a, w]
    twist.angular[g.a, w] = twist.angular[g.a, w] - s[0].work.inv_inertia[g.a, w] * wp.cross(arm(g, g.c_a, d), P)
    twist.linear[g.b, w] = twist.linear[g.b, w] + P * s[0].work.inv_mass[g.b, w]
    twist.angular[g.b, w] = twist.angular[g.b, w] + s[0].work.inv_inertia[g.b, w] * wp.cross(arm(g, g.c_b, d), P)


@wp.func
def turn_bodies(s: wp.array(dtype=Step), i: int, w: int, l: vec3) -> None:
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
    """Every point once or more, forth or back; returns the largest change of a relative velocity, m/s."""
    most = sweep_patches(s, w, backwards)
    if s[0].touch.turns[w] == 1:
        for i in range(s[0].contacts.count[w]):
            if s[0].contacts.rolling[i, w] > real(0.0) or s[0].contacts.torsion[i, w] > real(0.0):
                g = s[0].touch.patch[s[0].touch.patch_of[i, w], w]
                most = wp.max(most, resist_turning(s, i, w) * wp.length(g.c_b))
    return most


# ---- overlaps ---------------------------------------------------------------------------------------------------------------


@wp.func
def measure_points(s: wp.array(dtype=Step), w: int) -> int:
    """What the step leaves of each gap, and the speed at which it is to be taken back; returns whether any overlap is to be."""
    h = s[0].settings.dt[0]
    twist = s[0].solves[VELOCITIES].twist
    deep = int(0)
    for k in range(s[0].touch.patches[w]):
        if s[0].touch.patch[k, w].rests == 1:
            continue
        g = s[0].touch.patch[k, w]
        u_c = twist.linear[g.b, w] + wp.cross(twist.angular[g.b, w], g.c_b)
        u_c = u_c - twist.linear[g.a, w] - wp.cross(twist.angular[g.a, w], g.c_a)
        U = in_axes(g.n, g.t1, g.t2, u_c) + g.slide
        if g.special & ON_BELT != 0:
            U = U + belt_speed_of_point(s, twist.angular, g.first, w)
        O = in_axes(g.n, g.t1, g.t2, twist.angular[g.b, w] - twist.angular[g.a, w])
        for i in range(g.first, g.first + g.size):
            u = U + wp.cross(O, s[0].touch.row[i, w].d)
            s[0].touch.speed[i, w] = u
            left = s[0].contacts.gap[i, w] + u[0] * h + SLOP
            if s[0].contacts.stiffness[i, w] > real(0.0):
                left = real(1.0e30)
            elif left < real(0.0):
                left = left * OVERLAP_SHARE
                deep = 1
            s[0].touch.aim[i, w] = left / h
    return deep


@wp.func
def push_overlaps_apart(s: wp.array(dtype=Step), w: int) -> real:
    """Split impulses of one sweep: overlaps are pushed apart, gaps stay open; returns the largest change of a speed, m/s."""
    twist = s[0].solves[POSITIONS].twist
    most = real(0.0)
    for i in range(s[0].contacts.count[w]):
        if s[0].touch.patch[s[0].touch.patch_of[i, w], w].rests == 1:
            continue
        u = point_speed(s, twist, i, w)
        new = wp.max(real(0.0), s[0].touch.pseudo[i, w] - (u[0] + s[0].touch.aim[i, w]) / s[0].touch.row[i, w].K[0])
        d = new - s[0].touch.pseudo[i, w]
        if d != real(0.0):
            s[0].touch.pseudo[i, w] = new
            most = wp.max(most, wp.abs(d) * s[0].touch.row[i, w].K[0])
            push_point(s, twist, i, w, vec3(d, real(0.0), real(0.0)))
    return most


# ---- impacts ----------------------------------------------------------------------------------------------------------------


@wp.func
def touches(s: wp.array(dtype=Step), i: int, w: int, u: real) -> bool:
    """Whether a point with this normal speed meets in the step, and a blow is meant by it."""
    return u < -BOUNCE_SPEED and s[0].contacts.gap[i, w] + u * s[0].settings.dt[0] < real(0.0)


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
        s[0].touch.aim[i, w] = real(1.0e30)
        if s[0].touch.patch[s[0].touch.patch_of[i, w], w].rests == 1:
            continue
        u = point_speed(s, s[0].solves[VELOCITIES].twist, i, w)[0]
        s[0].touch.pseudo[i, w] = real(0.0)
        s[0].touch.struck[i, w] = vec3(real(0.0))
        meets = touches(s, i, w, u)
        if meets and first == 1:
            meets = s[0].touch.before[i, w] < -BOUNCE_SPEED
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
            row = s[0].touch.row[i, w]
            u = point_speed(s, s[0].solves[VELOCITIES].twist, i, w) + slide_of(s, i, w)
            belt = s[0].contacts.special[i, w] & ON_BELT != 0
            if belt:
                u = u + belt_speed_of_point(s, s[0].solves[VELOCITIES].twist.angular, i, w)
            p = s[0].touch.struck[i, w]
            new = meet_scaled(p, u, row.K, row.G, row.mu, s[0].touch.aim[i, w], real(0.0), real(1.0) / row.K[0])
            d = unscaled(new - p, row.mu)
            s[0].touch.struck[i, w] = new
            most = wp.max(most, wp.max(wp.abs(d[0]) * row.K[0], (wp.abs(d[1]) + wp.abs(d[2])) * row.K[3]))
            push_point(s, s[0].solves[VELOCITIES].twist, i, w, d)
            if belt:
                g = s[0].touch.patch[s[0].touch.patch_of[i, w], w]
                pull_belt(s, s[0].solves[VELOCITIES].twist.angular, i, w, from_axes(g.n, g.t1, g.t2, d))
    return most


@wp.func
def close_round(s: wp.array(dtype=Step), w: int) -> None:
    """What the round gave is part of what the step reports."""
    for i in range(s[0].contacts.count[w]):
        if s[0].touch.aim[i, w] < real(1.0e29):
            s[0].touch.blow[i, w] = s[0].touch.blow[i, w] + impulse_in_world(s, i, w, s[0].touch.struck[i, w])


# ---- the end of a step ------------------------------------------------------------------------------------------------------


@wp.func
def impulse_in_world(s: wp.array(dtype=Step), i: int, w: int, p: vec3) -> vec3:
    """A point's impulse (p_n, D⁻¹p_t) in world axes."""
    g = s[0].touch.patch[s[0].touch.patch_of[i, w], w]
    return from_axes(g.n, g.t1, g.t2, unscaled(p, s[0].touch.row[i, w].mu))


@wp.func
def store_contacts(s: wp.array(dtype=Step), w: int) -> None:
    """Impulses of the step, for the next one to start from and for the caller to read: what a kick shorter than the step needed
    is scaled to a whole one, an impact is not.
    """
    h = s[0].settings.dt[0]
    for k in range(s[0].touch.patches[w]):
        if s[0].touch.patch[k, w].rests == 1:
            continue
        g = s[0].touch.patch[k, w]
        for i in range(g.first, g.first + g.size):
            u = s[0].touch.speed[i, w]
            per_kick = h / s[0].settings.kick[w]
            if touches(s, i, w, s[0].touch.before[i, w]):
                per_kick = real(1.0)
            p = unscaled(s[0].touch.p[i, w], s[0].touch.row[i, w].mu)
            s[0].contacts.impulse[i, w] = from_axes(g.n, g.t1, g.t2, p) * per_kick
            s[0].contacts.gap[i, w] = s[0].contacts.gap[i, w] + u[0] * h
            s[0].touch.slip[i, w] = g.t1 * u[1] + g.t2 * u[2]
    if s[0].casts.count > 0:
        close_casts(s, w, s[0].settings.kick[w] / s[0].settings.dt[0], s[0].settings.dt[0], real(0.0))
