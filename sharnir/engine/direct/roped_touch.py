"""Ropes that touch shapes which do not yield, in the passes of trees on which they hang (theory: ropes that touch).

The law asks for the speed u at the end of a step, against the surface by its normal n₁ there; the impulse P acts along the mean n̄
of the normals at start and end, so that what slides around a drum does no work across it. In a pass each point has a state, and a
law that is linear in u, exact for that state, with P and the direction t of sliding friction as the pass before left them:

    open     P = 0
    sticks   P ← P − σ u
    slips    P_n ← P_n − σ u_n,  P_t = μ P_n t − β b (b·u),  b = n̄ × t,  with the same P_n: not symmetric.

σ is large beside all masses. A point's impulse is then less by A δv, an inertia A that the elimination along the rope has besides
its own. After a pass states, t and β are judged by the impulse and the speed which it led to: with q = P_t − s u_t, t is along q
and β = s μP_n/(|q| − μP_n). The weight s is what a point resists by itself, its mass and ¼h times the pulls beside it over their
lengths: by a larger one t turns to and fro, for a light rope under tension is orders stiffer across than its mass. What slides
sticks before it slides back, but not while speeds are wrong by more than they reverse.

What begins to push does so as its point alone would: it sticks where friction can stop it as it comes in, |u_t| ≤ μ|u_n|, and
else slides against u_t, P = 0 and β = 0 at first. If all points that land stuck in that pass, taut links between them, whose
lengths ask for mean speeds, would contradict u = 0; their impulses grow with σ, and states turn to and fro.

What touches at the start of a step acts, and what comes from farther off where it would overlap at the end. It is held where it
ends no farther off than it began, or overlaps: P works along the change of the gap, and gives no energy so. Friction that would
drive a point, which it stops at the end of the step after that came the other way, acts on the mean velocity instead (`drives`).
What comes in faster than its gap bears is stopped before the step, by a projection of velocities (`strike_points`), which takes
energy in any case: stopped in the step, by the mean of two velocities, it would set the rope ringing. A step in which something
overlaps far nevertheless is divided. What is left of an overlap is taken back by displacements of links and ropes together
(`roped_closing`), gaps and overlaps of less than `SMALL` by speeds.

Where passes do not settle directions of friction these stay as at the start, and in short parts its bounds, too. Ropes that come
to touch ropes, and steps that cannot be made, are handed over (`SolverDirect.hand_over`).
"""

import warp as wp

from sharnir.collision.broad import place
from sharnir.core.types import mat33, real, vec3
from sharnir.engine.direct.roped_data import RopedTree
from sharnir.engine.rope.touch import keep_points
from sharnir.engine.rope.touch_data import MOST, OPEN, SLIPS, STICKS
from sharnir.engine.rope.touch_find import begin_touch, belt_speed, end_foot
from sharnir.laws.contact import FRICTIONLESS, SLOP, across

SMALL = wp.constant(real(5.0e-5))  # m: gaps and overlaps up to this are closed by speeds,
FOLLOWS = wp.constant(real(0.1))  # so much of them in a step
TINY = wp.constant(real(1.0e-9))  # m/s
LITTLE = wp.constant(real(1.0e-9))  # relative
STANDS = wp.constant(8)  # passes of a part after which directions of friction stay: those of the start
TRIES = wp.constant(real(6.0))  # changes of a point's state in a part, twice that of one that opens, after which it does not rub
SLOW = wp.constant(real(1.0e-6))  # m/s: friction that drives a point slower than this is let
DEEP = wp.constant(real(-0.1))  # of a rope's radius: gap from which on a step is divided
HELD = wp.constant(2)  # `column` of a point that displacements pushed out
LANDS = wp.constant(real(0.01))  # m/s: a point that comes in faster lands


@wp.func
def surface_speed(x: wp.array(dtype=RopedTree), e: int, w: int) -> vec3:
    """Velocity of a conveyor's surface, m/s: nothing else that ropes touch here moves."""
    return belt_speed(x[0].collision, x[0].touch[0].shape[e, w], w)


@wp.func
def friction_of(x: wp.array(dtype=RopedTree), e: int, w: int) -> real:
    """The coefficient of friction of a point; 0 where no state with it is found to last."""
    mu = x[0].touch[0].mu[e, w]
    if mu < FRICTIONLESS or x[0].touch[0].bound[e, w] > TRIES:
        return real(0.0)
    return mu


@wp.func
def begin_push(x: wp.array(dtype=RopedTree), e: int, w: int, u: vec3) -> int:
    """The state of a point that begins to push: that of the point alone, which stops at once where friction can stop it.

    u: its velocity before that, in the axes of asking. A point that slides begins without an impulse, against its speed: points
    that all hold with a taut rope between them would contradict it.
    """
    speed = wp.sqrt(u[1] * u[1] + u[2] * u[2])
    if speed <= friction_of(x, e, w) * wp.max(-u[0], real(0.0)):
        return int(STICKS)
    x[0].touch[0].slip[e, w] = vec3(real(0.0), real(1.0), real(0.0))
    if speed > real(0.0):
        x[0].touch[0].slip[e, w] = vec3(real(0.0), -u[1] / speed, -u[2] / speed)
    return int(SLIPS)


@wp.func
def begin_contacts(x: wp.array(dtype=RopedTree), w: int):
    """All points of contact that ropes may have in this part of the step, with the impulses of the last one."""
    s = x[0].rope
    t = x[0].touch
    place(x[0].collision, w)
    s[0].h[w] = real(2.0) * s[0].h[w]  # what is reached in the next part, too, is known before it comes in
    begin_touch(s, t, x[0].collision, w)
    s[0].h[w] = real(0.5) * s[0].h[w]
    t[0].live[w] = t[0].live[w] - t[0].pairs[w]  # which come last, and are left to the former passes
    part = s[0].h[w] / s[0].settings.dt[0]
    for m in range(t[0].live[w]):
        e = t[0].entry[m, w]
        t[0].first_n[e, w] = t[0].n[e, w]
        t[0].came[e, w] = s[0].state.velocity[e / MOST, w] - surface_speed(x, e, w)
        t[0].speed[e, w] = t[0].came[e, w]
        t[0].gap[e, w] = t[0].start[e, w] + s[0].h[w] * wp.dot(t[0].n[e, w], t[0].came[e, w])
        P = t[0].centre[e, w] * part
        t[0].A[e, w] = mat33(real(0.0))
        pushed = wp.dot(t[0].n[e, w], P) > real(0.0)
        t[0].column[e, w] = int(t[0].start[e, w] <= SLOP or (pushed and t[0].start[e, w] <= SMALL))
        t[0].centre[e, w] = vec3()
        t[0].slip[e, w] = vec3()
        t[0].bound[e, w] = real(0.0)
        t[0].back[e, w] = 0
        t[0].soft[e, w] = wp.max(wp.dot(t[0].n[e, w], P), real(0.0))
        if t[0].column[e, w] == 1:
            t[0].centre[e, w] = P
            asks, pushes = push_axes(x, e, w)
            along = wp.transpose(pushes) * P
            size = wp.sqrt(along[1] * along[1] + along[2] * along[2])
            u = wp.transpose(asks) * t[0].came[e, w]
            if along[0] <= real(0.0):
                t[0].state[e, w] = begin_push(x, e, w, u)
            elif t[0].state[e, w] == SLIPS and size > real(0.0):
                speed = wp.sqrt(u[1] * u[1] + u[2] * u[2]) + TINY
                t[0].slip[e, w] = vec3(size / speed, along[1] / size, along[2] / size)
            else:
                t[0].state[e, w] = STICKS
        else:  # once it acts
            axes, _ = push_axes(x, e, w)
            t[0].state[e, w] = begin_push(x, e, w, wp.transpose(axes) * t[0].came[e, w])
        t[0].impulse[e, w] = t[0].centre[e, w]


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
        t[0].speed[e, w] = s[0].work.v[e / MOST, w] - surface_speed(x, e, w)
        if t[0].column[e, w] == 0 and t[0].gap[e, w] < real(0.0):
            t[0].column[e, w] = 1
            more = more + 1
    return more


@wp.func
def overlaps_far(x: wp.array(dtype=RopedTree), w: int) -> bool:
    """Whether a point came in so fast that what it overlaps is better met by shorter parts of the step."""
    t = x[0].touch
    for m in range(t[0].live[w]):
        e = t[0].entry[m, w]
        if t[0].gap[e, w] < DEEP * x[0].rope[0].ropes.radius[t[0].rope_of[e / MOST]] and t[0].start[e, w] > t[0].gap[e, w]:
            return True
    return False


@wp.func
def push_axes(x: wp.array(dtype=RopedTree), e: int, w: int):
    """Axes along which a contact asks for speeds, and pushes, as columns: normal first."""
    t = x[0].touch
    n = t[0].n[e, w]
    t1 = across(n)
    t2 = wp.cross(n, t1)
    asks = wp.matrix_from_cols(n, t1, t2)
    mean = n + t[0].first_n[e, w]
    if wp.length_sq(mean) < real(1.0):
        return asks, asks
    mean = wp.normalize(mean)
    t1 = wp.normalize(t1 - mean * wp.dot(mean, t1))
    return asks, wp.matrix_from_cols(mean, t1, wp.cross(mean, t1))


@wp.func
def point_stiffness(x: wp.array(dtype=RopedTree), e: int, w: int) -> real:
    """What a point resists by itself, kg: its mass, and pulls beside it that turn. By it speeds are weighed against impulses."""
    s = x[0].rope
    i = e / MOST
    k = x[0].touch[0].rope_of[i]
    turns = real(0.0)
    first = s[0].ropes.first[k]
    if i > first:
        turns = wp.length(s[0].state.pull[i - 1, w]) / s[0].state.length[i - 1, w]
    if i < first + s[0].state.segments[k, w]:
        turns = turns + wp.length(s[0].state.pull[i, w]) / s[0].state.length[i, w]
    return s[0].work.mass[i, w] + turns * (real(0.25) * s[0].h[w])


@wp.func
def speed_against(x: wp.array(dtype=RopedTree), e: int, w: int, asks: mat33) -> vec3:
    """Velocity against the surface as the law takes it, in the axes of asking: small gaps and overlaps at the start in it.

    What ends farther off than it began, or off the surface, is not held: it would be pulled back, and gain energy by that. What
    comes from farther off arrives at the end of the step, and stops in the next.
    """
    t = x[0].touch
    per = real(2.0) / x[0].rope[0].h[w]
    v = x[0].rope[0].work.v[e / MOST, w] - surface_speed(x, e, w)
    u = wp.transpose(asks) * v
    off = per * t[0].gap[e, w] + u[0] - wp.dot(t[0].n[e, w], t[0].speed[e, w])
    start = t[0].start[e, w]
    if start <= SMALL:
        follows = wp.max(start, -SMALL) * (real(2.0) * FOLLOWS / x[0].rope[0].settings.dt[0])
        off = off - per * start + wp.min(follows, real(0.0))
        u[0] = u[0] + follows
    u[0] = wp.max(u[0], off)
    if t[0].back[e, w] == 1:
        came = wp.transpose(asks) * t[0].came[e, w]
        u = vec3(u[0], u[1] + came[1], u[2] + came[2])
    return u


@wp.func
def ask_contacts(x: wp.array(dtype=RopedTree), w: int):
    """Impulses by the laws of the states at the velocities at hand, and by how much they fall with changes of these."""
    t = x[0].touch
    stiff = t[0].stiff[0]
    for m in range(t[0].live[w]):
        e = t[0].entry[m, w]
        if t[0].column[e, w] == 0:
            continue
        asks, pushes = push_axes(x, e, w)
        q = wp.transpose(pushes) * t[0].centre[e, w]
        D = mat33(real(0.0))
        P = vec3()
        state = t[0].state[e, w]
        if state != OPEN:
            D[0, 0] = stiff
            P = q
        if state == STICKS:
            D[1, 1] = stiff
            D[2, 2] = stiff
        if state == SLIPS:
            mu = friction_of(x, e, w)
            a = t[0].slip[e, w][1]
            b = t[0].slip[e, w][2]
            beside = wp.min(t[0].slip[e, w][0], stiff)
            if x[0].lagging[w] > 0:
                P = vec3(q[0], mu * t[0].soft[e, w] * a, mu * t[0].soft[e, w] * b)
            else:
                P = vec3(q[0], mu * q[0] * a, mu * q[0] * b)
                D[1, 0] = mu * stiff * a
                D[2, 0] = mu * stiff * b
                D[1, 1] = beside * b * b
                D[1, 2] = -beside * a * b
                D[2, 1] = -beside * a * b
                D[2, 2] = beside * a * a
        t[0].wanted[e, w] = pushes * (P - D * speed_against(x, e, w, asks))
        t[0].A[e, w] = pushes * D * wp.transpose(asks)


@wp.func
def judge_point(x: wp.array(dtype=RopedTree), e: int, w: int, P: vec3, u: vec3, asks: mat33, off: real) -> int:
    """The state that impulse and speed after a pass call for, `off` being by how much these speeds may be wrong, m/s."""
    t = x[0].touch
    state = t[0].state[e, w]
    if state == OPEN:
        if u[0] < -TINY:
            return begin_push(x, e, w, u)
        return int(OPEN)
    if P[0] < real(0.0):
        return int(OPEN)
    bound = friction_of(x, e, w) * wp.where(x[0].lagging[w] > 0, t[0].soft[e, w], P[0])
    if state == STICKS:
        size = wp.sqrt(P[1] * P[1] + P[2] * P[2])
        if size > bound * (real(1.0) + LITTLE):
            t[0].slip[e, w] = vec3(t[0].stiff[0], P[1] / size, P[2] / size)
            return int(SLIPS)
        return int(STICKS)
    if x[0].stood[w] > STANDS or x[0].lagging[w] > 0:
        if u[1] * t[0].slip[e, w][1] + u[2] * t[0].slip[e, w][2] > off and bound > real(0.0):
            return int(STICKS)
        came = wp.transpose(asks) * t[0].came[e, w]
        size = wp.sqrt(came[1] * came[1] + came[2] * came[2])
        if size > TINY:
            t[0].slip[e, w] = vec3(real(0.0), -came[1] / size, -came[2] / size)
        else:
            t[0].slip[e, w] = vec3(real(0.0), t[0].slip[e, w][1], t[0].slip[e, w][2])
        return int(SLIPS)
    weigh = point_stiffness(x, e, w)
    q1 = P[1] - weigh * u[1]
    q2 = P[2] - weigh * u[2]
    size = wp.sqrt(q1 * q1 + q2 * q2)
    if size <= bound * (real(1.0) + LITTLE) and u[1] * t[0].slip[e, w][1] + u[2] * t[0].slip[e, w][2] > off:
        return int(STICKS)
    if size > real(0.0):
        part = wp.min(bound / size, real(1.0) - LITTLE)
        t[0].slip[e, w] = vec3(part * weigh / (real(1.0) - part), q1 / size, q2 / size)
    return int(SLIPS)


@wp.func
def drives(x: wp.array(dtype=RopedTree), e: int, w: int, P: vec3, pushes: mat33) -> bool:
    """Whether friction, which stops a point at the end of the step or slides back, would give it energy on its way."""
    along = wp.transpose(pushes) * P
    way = wp.transpose(pushes) * (x[0].touch[0].came[e, w] + x[0].rope[0].work.v[e / MOST, w] - surface_speed(x, e, w))
    size = wp.sqrt(along[1] * along[1] + along[2] * along[2])
    return along[1] * way[1] + along[2] * way[2] > SLOW * size


@wp.func
def take_impulses(x: wp.array(dtype=RopedTree), w: int, off: real) -> int:
    """Impulses of contacts after a pass, and states for the next; returns how many points changed theirs."""
    t = x[0].touch
    changed = int(0)
    for m in range(t[0].live[w]):
        e = t[0].entry[m, w]
        if t[0].column[e, w] == 1:
            P = t[0].wanted[e, w] - t[0].A[e, w] * x[0].rope[0].work.dv[e / MOST, w]
            asks, pushes = push_axes(x, e, w)
            state = judge_point(x, e, w, wp.transpose(pushes) * P, speed_against(x, e, w, asks), asks, off)
            if t[0].back[e, w] == 0 and state != OPEN and drives(x, e, w, P, pushes):
                t[0].back[e, w] = 1
                changed = changed + 1
            if state != t[0].state[e, w]:
                changed = changed + 1
                t[0].state[e, w] = state
                t[0].bound[e, w] = t[0].bound[e, w] + wp.where(state == OPEN, real(2.0), real(1.0))
            if state == OPEN:
                P = vec3()
            t[0].centre[e, w] = P
            t[0].impulse[e, w] = P
    return changed


@wp.func
def keep_contacts(x: wp.array(dtype=RopedTree), w: int) -> int:
    """Impulses of a part that was made, for the next to begin from and for the caller to read; 1 where something overlaps."""
    s = x[0].rope
    t = x[0].touch
    whole = s[0].settings.dt[0] / s[0].h[w]
    overlaps = int(0)
    x[0].strikes[w] = 0
    for m in range(t[0].live[w]):
        e = t[0].entry[m, w]
        t[0].miss[e, w] = s[0].work.v[e / MOST, w] - surface_speed(x, e, w)
        t[0].first_arm[e, w] = s[0].work.r[e / MOST, w]  # where the gap is what it is
        n = t[0].n[e, w]
        speed = wp.dot(n, t[0].miss[e, w])
        pushes = wp.dot(n, t[0].impulse[e, w]) > real(0.0)
        comes = speed + LANDS < -wp.max(t[0].gap[e, w], real(0.0)) / s[0].h[w]
        t[0].column[e, w] = int(comes or pushes)
        t[0].alone_moves[e, w] = vec3()
        if comes:
            x[0].strikes[w] = 1
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
def strike_points(x: wp.array(dtype=RopedTree), w: int):
    """What comes in faster than a step bears is stopped before it, to arrive at its end; what pushes holds."""
    s = x[0].rope
    t = x[0].touch
    stiff = t[0].stiff[0]
    for m in range(t[0].live[w]):
        e = t[0].entry[m, w]
        if t[0].column[e, w] > 0:
            n = t[0].n[e, w]
            u = s[0].state.velocity[e / MOST, w] - surface_speed(x, e, w)
            u = u + n * (wp.max(t[0].gap[e, w], real(0.0)) / s[0].h[w])
            A = wp.outer(n, n) * stiff
            if t[0].state[e, w] == STICKS:
                A = wp.identity(n=3, dtype=real) * stiff
            t[0].A[e, w] = A
            t[0].wanted[e, w] = t[0].alone_moves[e, w] - A * u


@wp.func
def release_points(x: wp.array(dtype=RopedTree), w: int) -> int:
    """Points that would be held back leave, and those that came in rub once their impulses are known; returns how many."""
    s = x[0].rope
    t = x[0].touch
    found = int(0)
    rubs = x[0].strikes[w] == 1
    x[0].strikes[w] = 2
    for m in range(t[0].live[w]):
        e = t[0].entry[m, w]
        if t[0].column[e, w] > 0:
            n = t[0].n[e, w]
            P = t[0].wanted[e, w] - t[0].A[e, w] * s[0].work.dv[e / MOST, w]
            u = s[0].state.velocity[e / MOST, w] - surface_speed(x, e, w)
            u = u - n * wp.dot(n, u)
            size = wp.length(u)
            if wp.dot(n, P) < real(0.0):
                t[0].column[e, w] = 0
                found = found + 1
            elif rubs and size > TINY and t[0].state[e, w] != STICKS:  # no farther than to stop itself
                most = wp.min(t[0].mu[e, w] * wp.dot(n, P), s[0].work.mass[e / MOST, w] * size)
                t[0].alone_moves[e, w] = u * (-most / size)
                found = found + 1
    return found


@wp.func
def part_points(x: wp.array(dtype=RopedTree), w: int, h: real) -> real:
    """Points of ropes that overlap are pushed out by displacements h δv; returns the deepest overlap that is to go, m.

    What was pushed in one round is held in those that follow: lengths that are closed with it would push it back.
    """
    s = x[0].rope
    t = x[0].touch
    deepest = real(0.0)
    if x[0].overlaps[w] == 0:
        return deepest
    for m in range(t[0].live[w]):
        e = t[0].entry[m, w]
        i = e / MOST
        n = t[0].n[e, w]
        gap = t[0].gap[e, w] + wp.dot(n, s[0].state.position[i, w] - t[0].first_arm[e, w])
        t[0].gap[e, w] = gap
        t[0].first_arm[e, w] = s[0].state.position[i, w]
        t[0].A[e, w] = mat33(real(0.0))
        t[0].wanted[e, w] = vec3()
        deep = real(-0.5) * SMALL - gap
        if deep > real(0.0):
            t[0].column[e, w] = HELD
        if t[0].column[e, w] == HELD:
            most = s[0].ropes.radius[t[0].rope_of[i]]
            t[0].A[e, w] = wp.outer(n, n) * t[0].stiff[0]
            t[0].wanted[e, w] = n * (wp.clamp(deep, -most, most) / h * t[0].stiff[0])
        deepest = wp.max(deepest, -gap - SMALL)
    return deepest
