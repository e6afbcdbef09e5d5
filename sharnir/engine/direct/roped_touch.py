"""Ropes that touch shapes which do not yield, in the passes of trees on which they hang (theory: ropes that touch).

The law asks for the speed u at the end of a step: P = Π(P − σ u), u against the surface by its normal n₁ there, P along the mean
n̄ of the normals at start and end, so that what slides around a drum does no work across it. Π is onto P_n ≥ 0, and across n onto
a disc: while points change their states (`turned`) its radius is that of the passes before, once all stand (`STANDS`) it is μ P_n
of the same pass. A pass takes Π for linear: a point's impulse is then less by A δv, an inertia A that the elimination along the
rope has besides its own, and P on the right is that of the last pass in which nothing changed its state. σ is large beside all
masses: a pass leaves a thousandth of what was missed.

What touches at the start of a step, or overlaps at its end, acts. What is left of an overlap is taken back by displacements of
links and ropes together (`roped_closing`), gaps and overlaps of less than `SMALL` by speeds.
"""

import warp as wp

from sharnir.collision.broad import place
from sharnir.core.types import mat33, real, vec3
from sharnir.engine.direct.roped_data import RopedTree
from sharnir.engine.rope.touch import keep_points
from sharnir.engine.rope.touch_data import LIFTED, MOST, OPEN, SLIPS, STICKS, TOUCHES
from sharnir.engine.rope.touch_find import begin_touch, belt_speed, end_foot
from sharnir.laws.contact import FRICTIONLESS, SLOP, across

SMALL = wp.constant(real(5.0e-5))  # m: gaps and overlaps up to this are closed by speeds,
FOLLOWS = wp.constant(real(0.1))  # so much of them in a step
STANDS = wp.constant(2)  # passes in which no point changed its state, from which on bounds of friction are those of the pass
LANDS = wp.constant(real(0.01))  # m/s: a point that comes in faster lands


@wp.func
def surface_speed(x: wp.array(dtype=RopedTree), e: int, w: int) -> vec3:
    """Velocity of a conveyor's surface, m/s: nothing else that ropes touch here moves."""
    return belt_speed(x[0].collision, x[0].touch[0].shape[e, w], w)


@wp.func
def begin_contacts(x: wp.array(dtype=RopedTree), w: int):
    """All points of contact that ropes may have in this part of the step, with the impulses of the last one."""
    s = x[0].rope
    t = x[0].touch
    place(x[0].collision, w)
    begin_touch(s, t, x[0].collision, w)
    part = s[0].h[w] / s[0].settings.dt[0]
    for m in range(t[0].live[w]):
        e = t[0].entry[m, w]
        t[0].first_n[e, w] = t[0].n[e, w]
        t[0].came[e, w] = s[0].state.velocity[e / MOST, w] - surface_speed(x, e, w)
        P = t[0].centre[e, w] * part
        t[0].A[e, w] = mat33(real(0.0))
        t[0].column[e, w] = int(t[0].start[e, w] <= SLOP)
        t[0].centre[e, w] = vec3()
        t[0].slip[e, w] = vec3()
        if t[0].column[e, w] == 1:
            t[0].centre[e, w] = P
            asks, pushes = push_axes(x, e, w)
            along = wp.transpose(pushes) * P
            size = wp.sqrt(along[1] * along[1] + along[2] * along[2])
            if t[0].state[e, w] == SLIPS and size > real(0.0):
                u = wp.transpose(asks) * t[0].came[e, w]
                part = size / (size + t[0].stiff[0] * wp.sqrt(u[1] * u[1] + u[2] * u[2]))
                t[0].slip[e, w] = vec3(part, along[1] / size, along[2] / size)
        else:
            t[0].state[e, w] = OPEN
        if t[0].state[e, w] == LIFTED or (t[0].state[e, w] == SLIPS and t[0].slip[e, w][0] == real(0.0)):
            t[0].state[e, w] = OPEN
        t[0].impulse[e, w] = t[0].centre[e, w]
        normal = wp.max(wp.dot(t[0].n[e, w], t[0].centre[e, w]), real(0.0))
        t[0].bound[e, w] = friction_of(x, e, w) * normal
    x[0].stood[w] = 0


@wp.func
def look_at_ends(x: wp.array(dtype=RopedTree), w: int) -> int:
    """Gaps and normals at the end of the step as it stands; points that overlap there act. How many were not known to."""
    s = x[0].rope
    t = x[0].touch
    c = x[0].collision
    more = int(0)
    for m in range(t[0].live[w]):
        e = t[0].entry[m, w]
        near = end_foot(s, t, c, e, w)
        t[0].gap[e, w] = near.gap - s[0].ropes.radius[t[0].rope_of[e / MOST]]
        t[0].n[e, w] = near.n
        if t[0].column[e, w] == 0 and t[0].gap[e, w] < real(0.0):
            t[0].column[e, w] = 1
            more = more + 1
    return more


@wp.func
def push_axes(x: wp.array(dtype=RopedTree), e: int, w: int):
    """Axes along which a contact asks for speeds, and pushes, as columns: normal first."""
    t = x[0].touch
    n = t[0].n[e, w]
    t1 = across(n)
    t2 = wp.cross(n, t1)
    asks = wp.matrix_from_cols(n, t1, t2)
    mean = n + t[0].first_n[e, w]
    if t[0].start[e, w] > TOUCHES or wp.length_sq(mean) < real(1.0):
        return asks, asks
    mean = wp.normalize(mean)
    t1 = wp.normalize(t1 - mean * wp.dot(mean, t1))
    return asks, wp.matrix_from_cols(mean, t1, wp.cross(mean, t1))


@wp.func
def law_at(x: wp.array(dtype=RopedTree), e: int, w: int):
    """Π(P − σ u) of a point, in its axes of pushing, the derivative of that by −σ u, and the state.

    While points change their states the disc has the radius that it had before: then passes lead to an end.
    """
    s = x[0].rope
    t = x[0].touch
    asks, pushes = push_axes(x, e, w)
    u = wp.transpose(asks) * (s[0].work.v[e / MOST, w] - surface_speed(x, e, w))
    u[0] = u[0] + wp.clamp(t[0].start[e, w], -SMALL, SMALL) * (real(2.0) * FOLLOWS / s[0].settings.dt[0])
    q = wp.transpose(pushes) * t[0].centre[e, w] - u * t[0].stiff[0]
    slope = mat33(real(0.0))
    live = x[0].stood[w] >= STANDS
    bound = t[0].bound[e, w]
    if x[0].forced[w] == 1:  # as it was found to be, not as it would be at velocities that know nothing of it
        state = t[0].state[e, w]
        if state == STICKS:
            return q, wp.identity(n=3, dtype=real), state
        if state == SLIPS:
            part = t[0].slip[e, w][0]
            a = t[0].slip[e, w][1]
            b = t[0].slip[e, w][2]
            beside = (u[2] * a - u[1] * b) * part * t[0].stiff[0]
            slope[0, 0] = real(1.0)
            slope[1, 1] = part * b * b
            slope[1, 2] = -part * a * b
            slope[2, 1] = -part * a * b
            slope[2, 2] = part * a * a
            return vec3(q[0], bound * a + b * beside, bound * b - a * beside), slope, state
        return vec3(), slope, state
    if live:
        bound = friction_of(x, e, w) * wp.max(q[0], real(0.0))
    if q[0] <= real(0.0) and bound == real(0.0):
        return vec3(), slope, int(OPEN)
    size = wp.sqrt(q[1] * q[1] + q[2] * q[2])
    lifted = q[0] <= real(0.0)
    P = vec3(wp.max(q[0], real(0.0)), q[1], q[2])
    if not lifted:
        slope[0, 0] = real(1.0)
    if size <= bound:
        slope[1, 1] = real(1.0)
        slope[2, 2] = real(1.0)
        return P, slope, wp.where(lifted, int(LIFTED), int(STICKS))
    a = q[1] / size
    b = q[2] / size
    part = bound / size
    t[0].slip[e, w] = vec3(part, a, b)
    if live:
        slope[1, 0] = friction_of(x, e, w) * a
        slope[2, 0] = friction_of(x, e, w) * b
    slope[1, 1] = part * b * b
    slope[1, 2] = -part * a * b
    slope[2, 1] = -part * a * b
    slope[2, 2] = part * a * a
    return vec3(P[0], bound * a, bound * b), slope, wp.where(lifted, int(LIFTED), int(SLIPS))


@wp.func
def hold_at(x: wp.array(dtype=RopedTree), e: int, w: int):
    """`law_at` of a point that sticks, whatever it bears."""
    t = x[0].touch
    asks, pushes = push_axes(x, e, w)
    u = wp.transpose(asks) * (x[0].rope[0].work.v[e / MOST, w] - surface_speed(x, e, w))
    return wp.transpose(pushes) * t[0].centre[e, w] - u * t[0].stiff[0], wp.identity(n=3, dtype=real), int(STICKS)


@wp.func
def friction_of(x: wp.array(dtype=RopedTree), e: int, w: int) -> real:
    """The coefficient of friction of a point."""
    mu = x[0].touch[0].mu[e, w]
    if mu < FRICTIONLESS:
        return real(0.0)
    return mu


@wp.func
def ask_contacts(x: wp.array(dtype=RopedTree), w: int, anew: bool) -> int:
    """What the law makes of impulses at the velocities at hand; with `anew`, its derivative. How many points changed state."""
    t = x[0].touch
    changed = int(0)
    for m in range(t[0].live[w]):
        e = t[0].entry[m, w]
        if t[0].column[e, w] == 0:
            continue
        before = t[0].slip[e, w]
        P, slope, state = law_at(x, e, w)
        if state == SLIPS and t[0].state[e, w] == SLIPS and x[0].forced[w] == 0:
            now = t[0].slip[e, w]
            if now[1] * before[1] + now[2] * before[2] < real(0.0):  # what slides sticks before it slides back
                P, slope, state = hold_at(x, e, w)
        if state != t[0].state[e, w]:
            changed = changed + 1
            t[0].state[e, w] = state
        asks, pushes = push_axes(x, e, w)
        t[0].wanted[e, w] = pushes * P
        if anew:
            t[0].A[e, w] = pushes * (slope * wp.transpose(asks)) * t[0].stiff[0]
    return changed


@wp.func
def take_impulses(x: wp.array(dtype=RopedTree), w: int):
    """Impulses of contacts after a pass, as it took them to change."""
    s = x[0].rope
    t = x[0].touch
    for m in range(t[0].live[w]):
        e = t[0].entry[m, w]
        if t[0].column[e, w] == 1:
            P = t[0].wanted[e, w] - t[0].A[e, w] * s[0].work.dv[e / MOST, w]
            t[0].impulse[e, w] = P


@wp.func
def go_on(x: wp.array(dtype=RopedTree), w: int):
    """Passes go on from the impulses, and bounds of friction, that they led to."""
    t = x[0].touch
    for m in range(t[0].live[w]):
        e = t[0].entry[m, w]
        if t[0].column[e, w] == 1:
            P = t[0].impulse[e, w]
            _asks, pushes = push_axes(x, e, w)
            n = wp.max(wp.dot(P, vec3(pushes[0, 0], pushes[1, 0], pushes[2, 0])), real(0.0))
            t[0].bound[e, w] = friction_of(x, e, w) * n
            t[0].centre[e, w] = P


@wp.func
def keep_contacts(x: wp.array(dtype=RopedTree), w: int) -> int:
    """Impulses of a part that was made, for the next to begin from and for the caller to read; 1 where something overlaps."""
    s = x[0].rope
    t = x[0].touch
    whole = s[0].settings.dt[0] / s[0].h[w]
    overlaps = int(0)
    for m in range(t[0].live[w]):
        e = t[0].entry[m, w]
        t[0].miss[e, w] = s[0].work.v[e / MOST, w] - surface_speed(x, e, w)
        t[0].first_arm[e, w] = s[0].work.r[e / MOST, w]  # where the gap is what it is
        t[0].impulse[e, w] = t[0].impulse[e, w] * whole
        if t[0].gap[e, w] < -SMALL:
            overlaps = 1
    keep_points(t, w)
    for m in range(t[0].live[w]):
        e = t[0].entry[m, w]
        if wp.dot(t[0].n[e, w], t[0].came[e, w]) < -LANDS:  # what stopped it is no guess of what carries it
            t[0].kept_impulse[e, w] = vec3()
    return overlaps


@wp.func
def part_points(x: wp.array(dtype=RopedTree), w: int, h: real) -> real:
    """Points of ropes that overlap are pushed out by displacements h δv; returns the deepest overlap that is to go, m."""
    s = x[0].rope
    t = x[0].touch
    deepest = real(0.0)
    for m in range(t[0].live[w]):
        e = t[0].entry[m, w]
        i = e / MOST
        n = t[0].n[e, w]
        gap = t[0].gap[e, w] + wp.dot(n, s[0].state.position[i, w] - t[0].first_arm[e, w])
        t[0].A[e, w] = mat33(real(0.0))
        t[0].wanted[e, w] = vec3()
        t[0].column[e, w] = 1
        deep = real(-0.5) * SMALL - gap
        if deep > real(0.0):
            t[0].A[e, w] = wp.outer(n, n) * t[0].stiff[0]
            t[0].wanted[e, w] = n * (wp.min(deep, s[0].ropes.radius[t[0].rope_of[i]]) / h * t[0].stiff[0])
        deepest = wp.max(deepest, -gap - SMALL)
    return deepest
