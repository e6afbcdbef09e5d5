"""Rows between two bodies and their solve: a block of locked axes, and the laws that act on the free ones.

An impulse P = (p, l) acts on the child at the common point and with the opposite sign on the parent; r is that point from
the body's centre of mass. The relative velocity there, u = V_child − V_parent, changes by K P,

    K = Σ over both bodies  [ E/m − [r]I⁻¹[r]   −[r]I⁻¹ ]
                            [ I⁻¹[r]              I⁻¹   ]

and W, the inverse of K on the constrained axes and zero on the free ones, gives the impulse that stops u there: P = −W u.

An impulse on free axis i comes with the constraint impulse that keeps the joint closed: N = (E − W K) Bᵀ, so the laws of a
joint's axes (see `axes`) see the responses A = B K N and are solved exactly, together with the block.
"""

from typing import Any

import warp as wp

from sharnir.core.types import mat33, mat66, real, vec3, vec6
from sharnir.laws.rows import SINGULAR

MOST_GROUP_PASSES = wp.constant(24)  # most passes over friction groups and limits of one joint with several axes
SECULAR_STEPS = wp.constant(30)  # most Newton steps to the size of the slip (`friction_3d`)
MOST_SERVO_GUESSES = wp.constant(8)  # most guesses as to which servos of one joint are at their caps


# ---- laws of the free axes ---------------------------------------------------------------------------------------------


@wp.struct
class Laws:
    """The laws of one solve, [axis, world]; impulses in N·s or N·m·s. Linear laws are p = −a u − b."""

    a: wp.array2d(dtype=real)
    b: wp.array2d(dtype=real)
    servo_a: wp.array2d(dtype=real)
    servo_b: wp.array2d(dtype=real)
    servo_cap: wp.array2d(dtype=real)  # |p| of the servo at most
    hold: wp.array2d(dtype=real)  # friction: |p| that can hold
    slide: wp.array2d(dtype=real)  # friction: |p| while sliding
    lower: wp.array2d(dtype=real)  # speeds allowed by the limits
    upper: wp.array2d(dtype=real)
    row: wp.array2d(dtype=vec3)  # of a ball joint's limit: its direction in the joint's rotation axes
    impulse: wp.array2d(dtype=real)  # all that acts on the axis
    friction: wp.array2d(dtype=real)
    limit: wp.array2d(dtype=real)
    stuck: wp.array2d(dtype=wp.int32)
    start: wp.array2d(dtype=real)  # speed at the start of the step
    end: wp.array2d(dtype=real)  # and at its end
    taken: wp.array2d(dtype=real)  # energy that friction takes, J: −f·u where the law was met
    efficiency: wp.array2d(dtype=real)  # of a DC motor's gear, in the direction the power flows
    mean: wp.array2d(dtype=real)  # 1: dampers and drives by the mean speed of a step, 0: by that of its end


@wp.func
def clamp_sign(x: real, bound: real) -> real:
    return wp.clamp(x, -bound, bound)


@wp.func
def friction_1d(u: real, A: real, hold: real, slide: real, before: real, share: real, firm: bool) -> tuple[real, int]:
    """Friction impulse of one axis whose speed without it is u: (f, 1 if it holds, 2 if it only keeps the axis where it is,
    3 if it does so and could hold it).

    It holds the speed at the end of the step, and slides against `share` of that and the rest of the speed before: by the mean
    of both (½), bound × path is exactly what it takes; by the speed of the end (1), `before` does not count. A speed that turns
    round by itself is not held against its own start, and where sliding either way would be against itself nothing moves. Where
    contacts push (`firm`) it is by the speed of the end: what they turn round is held, or slides, without a leap between.
    """
    if firm:
        share = real(1.0)
    if wp.abs(u) <= hold * A and (share == real(1.0) or u * before >= real(0.0)):
        held = int(0)
        if hold > real(0.0):
            held = 1
        return -u / A, held
    mean = u * share + before * (real(1.0) - share)
    if share < real(1.0) and wp.abs(mean) <= slide * A * share:
        return -mean / (A * share), 2 + int(wp.abs(u) <= hold * A)
    return -wp.sign(mean) * wp.min(slide, wp.abs(mean) / (A * share)), 0


@wp.func
def held_speed(held: int, before: real, share: real) -> real:
    """The speed at the end of a step of an axis that friction holds, or keeps where it is."""
    if held > 1:
        return -before * (real(1.0) - share) / share
    return real(0.0)


@wp.func
def axis_1d(
    u: real, A: real, hold: real, slide: real, lower: real, upper: real, before: real, share: real, firm: bool
) -> tuple[real, real, real, int]:
    """Friction and limit of one axis whose speed without them is u: (speed, friction, limit impulse, holds)."""
    f, held = friction_1d(u, A, hold, slide, before, share, firm)
    v = u + A * f
    if held > 0:
        v = held_speed(held, before, share)
    limit = real(0.0)
    if v < lower or v > upper:
        v = wp.clamp(v, lower, upper)
        need = (v - u) / A
        mean = v * share + before * (real(1.0) - share)
        # at a limit friction opposes what speed is left, or takes its share of the load
        if v == real(0.0):
            f = clamp_sign(need, hold)
            if share < real(1.0) and f * mean > real(0.0):
                f = real(0.0)
        else:
            f = -wp.sign(mean) * slide
        held = 0
        limit = need - f
    return v, f, limit, held


@wp.func
def solve_axis(
    u: real, A: real, p: real, a: real, b: real, servo_a: real, servo_b: real, servo_cap: real,
    hold: real, slide: real, lower: real, upper: real, before: real, share: real, firm: bool,
) -> tuple[real, real, real, int, real]:  # fmt: skip
    """All laws of a joint's only axis, in closed form, from its speed u, response A, impulse p so far.

    Returns (Δp, friction, limit, whether it holds, energy taken).
    """
    a_all = a + servo_a
    b_all = b + servo_b
    # the speed without friction and limit, from the present one: no large numbers cancel, however stiff the law
    soft = A / (real(1.0) + a_all * A)
    v, f, limit, held = axis_1d(u - soft * (a_all * u + b_all + p), soft, hold, slide, lower, upper, before, share, firm)
    servo = -servo_a * v - servo_b
    if wp.abs(servo) > servo_cap:
        a_all = a
        b_all = b - clamp_sign(servo, servo_cap)
        soft = A / (real(1.0) + a * A)
        v, f, limit, held = axis_1d(u - soft * (a * u + b_all + p), soft, hold, slide, lower, upper, before, share, firm)
    # from the speeds: −a v − b would cancel two large numbers where the law is stiff
    return (v - u) / A, f, limit, held, -f * v


@wp.func
def friction_3d(
    v: vec3, M: mat33, inverse: mat33, hold: real, slide: real, guess: real, before: vec3, share: real
) -> tuple[vec3, int]:
    """Friction impulse of a group of up to three axes whose speed without it is v, response M; (f, held) as of `friction_1d`.

    It holds where |M⁻¹v| ≤ hold; else f = −slide y, y = u/|u| = (sE + slide M)⁻¹ v with |y| = 1, s = |u| > 0: the secular
    equation, by the Newton steps of Moré and Sorensen from a guess of s.
    """
    need = inverse * v
    if wp.length(need) <= hold and (share == real(1.0) or wp.dot(need, before) >= real(0.0)):
        held = int(0)
        if hold > real(0.0):
            held = 1
        return -need, held
    if slide <= real(0.0):
        return vec3(real(0.0)), 0
    if share < real(1.0):
        v = v * share + before * (real(1.0) - share)
        M = M * share
        held = 2 + int(wp.length(need) <= hold)
        need = inverse * v / share
        if wp.length(need) <= slide:
            return -need, held
    E = wp.identity(n=3, dtype=real)
    least = wp.max(real(0.0), wp.length(v) - slide * wp.trace(M))
    s = wp.max(least, guess)
    y = vec3(real(0.0))
    for _i in range(SECULAR_STEPS):
        R = wp.inverse(E * s + M * slide)
        y = R * v
        size = wp.length(y)
        if wp.abs(size - real(1.0)) <= SINGULAR * real(10.0):
            break
        s = wp.max(least, s + wp.dot(y, y) / wp.dot(y, R * y) * (size - real(1.0)))
    return -wp.normalize(y) * slide, 0


@wp.func
def add_soft(A: mat66, u: vec6, n: int, i: int, a: real, b: real) -> tuple[mat66, vec6]:
    """Responses and speeds with the linear law p_i = −a u_i − b in force on axis i (Sherman–Morrison)."""
    k = real(1.0) / (real(1.0) + a * A[i, i])
    c = vec6()
    for j in range(n):
        c[j] = A[j, i]
    shift = k * (a * u[i] + b)
    for j in range(n):
        u[j] = u[j] - c[j] * shift
        for h in range(n):
            A[j, h] = A[j, h] - c[j] * c[h] * (a * k)
    return A, u


@wp.func
def group_friction(
    A: mat66, u: vec6, f: vec6, n: int, head: int, groups: vec6, hold: real, slide: real, before: vec6, share: real
) -> tuple[vec6, vec6, real, int]:
    """Friction of the axes whose group is `head`, given speeds u with all impulses f: (u, f, largest change, holds)."""
    index = wp.vec3i(0, 0, 0)
    m = int(0)
    for j in range(n):
        if int(groups[j]) == head:
            index[m] = j
            m = m + 1
    M = wp.identity(n=3, dtype=real)
    v = vec3(real(0.0))
    old = vec3(real(0.0))
    for j in range(m):
        old[j] = before[index[j]]
        v[j] = u[index[j]]
        for h in range(m):
            M[j, h] = A[index[j], index[h]]
            v[j] = v[j] - M[j, h] * f[index[h]]
    g, held = friction_3d(v, M, wp.inverse(M), hold, slide, real(0.0), old, share)
    largest = real(0.0)
    for j in range(m):
        i = index[j]
        change = g[j] - f[i]
        f[i] = g[j]
        for h in range(n):
            u[h] = u[h] + A[h, i] * change
        largest = wp.max(largest, wp.abs(change) * A[i, i])
    if held > 0:
        for j in range(m):
            u[index[j]] = held_speed(held, old[j], share)
    return u, f, largest, held


@wp.func
def limit_row(rows: mat33, j: int, turn: int, ball: int) -> vec6:
    """Direction of the limit of axis j in the joint's axes: the axis itself, or a column of a ball joint's rows."""
    g = vec6()
    if ball != 0 and j >= turn:
        for h in range(3):
            g[turn + h] = rows[h, j - turn]
    else:
        g[j] = real(1.0)
    return g


@wp.func
def within_limits(lower: real, upper: real) -> bool:
    return lower > real(-1.0e29) or upper < real(1.0e29)


@wp.func
def limit_impulse(rows: mat33, l: vec6, n: int, turn: int, ball: int, f: vec6) -> vec6:
    """The impulses f with those of the limits, l, in the joint's axes."""
    for j in range(n):
        if l[j] != real(0.0):
            f = f + limit_row(rows, j, turn, ball) * l[j]
    return f


@wp.func
def with_linear_laws(
    laws: Laws, v0: int, w: int, n: int, saturated: vec6, p0: vec6, A: mat66, u: vec6
) -> tuple[mat66, vec6, vec6, vec6]:
    """Responses and speeds with all linear laws in force, and those laws (a, b), servos being at their caps where `saturated`."""
    a = vec6()
    b = vec6()
    for j in range(n):
        i = v0 + j
        a[j] = laws.a[i, w]
        b[j] = laws.b[i, w]
        if saturated[j] == real(0.0):
            a[j] = a[j] + laws.servo_a[i, w]
            b[j] = b[j] + laws.servo_b[i, w]
        else:
            b[j] = b[j] - saturated[j] * laws.servo_cap[i, w]
        if a[j] != real(0.0) or b[j] + p0[j] != real(0.0):  # impulses count anew: take those of the last visit off
            A, u = add_soft(A, u, n, j, a[j], b[j] + p0[j])
    return A, u, a, b


@wp.func
def sweep_limits(
    laws: Laws, v0: int, w: int, n: int, turn: int, ball: int, rows: mat33, A: mat66, u: vec6, l: vec6
) -> tuple[vec6, vec6, real]:
    """One pass over the limits of a joint's axes: (speeds, impulses of the limits, largest change of a speed)."""
    largest = real(0.0)
    for j in range(n):
        lower = laws.lower[v0 + j, w]
        upper = laws.upper[v0 + j, w]
        if within_limits(lower, upper) or l[j] != real(0.0):
            g = limit_row(rows, j, turn, ball)
            Ag = A * g
            gAg = wp.dot(g, Ag)
            v = wp.dot(g, u) - gAg * l[j]
            new = (wp.clamp(v, lower, upper) - v) / gAg
            u = u + Ag * (new - l[j])
            largest = wp.max(largest, wp.abs(new - l[j]) * gAg)
            l[j] = new
    return u, l, largest


@wp.func
def saturate(laws: Laws, v0: int, w: int, n: int, u: vec6, saturated: vec6) -> tuple[vec6, int]:
    """Which servos are at their caps at speeds u (−1, 0, 1), and whether these are others than thought."""
    changed = int(0)
    for j in range(n):
        i = v0 + j
        servo = -laws.servo_a[i, w] * u[j] - laws.servo_b[i, w]
        side = real(0.0)
        if wp.abs(servo) > laws.servo_cap[i, w]:
            side = wp.sign(servo)
        if side != saturated[j]:
            if side * saturated[j] < real(0.0):
                side = real(0.0)  # between one cap and the other it is free, or tries could go to and fro
            saturated[j] = side
            changed = 1
    return saturated, changed


@wp.func
def solve_several_axes(
    laws: Laws, group: wp.array(dtype=wp.int32), v0: int, w: int, n: int, turn: int, ball: int, u_now: vec6, response: mat66,
    share: real,
) -> vec6:  # fmt: skip
    """All laws of a joint with n axes: linear ones exactly, friction groups and limits in passes. Returns the changes of p.

    `turn` is the number of its first rotation, `ball` whether its rotations are limited as a ball joint's.
    """
    p0 = vec6()
    f = vec6()
    l = vec6()
    groups = vec6()
    rows = mat33(real(0.0))
    before = vec6()
    for j in range(n):
        before[j] = laws.start[v0 + j, w]
        p0[j] = laws.impulse[v0 + j, w]
        f[j] = laws.friction[v0 + j, w]
        l[j] = laws.limit[v0 + j, w]
        groups[j] = real(group[v0 + j])
        if ball != 0 and j >= turn:
            row = laws.row[v0 + j, w]
            for h in range(3):
                rows[h, j - turn] = row[h]
    saturated = vec6()
    held = vec6()
    took = vec6()
    u = vec6()
    a = vec6()
    b = vec6()
    for _try in range(MOST_SERVO_GUESSES):
        A, u, a, b = with_linear_laws(laws, v0, w, n, saturated, p0, response, u_now)
        scale = wp.length(u)
        u = u + A * limit_impulse(rows, l, n, turn, ball, f)
        for _pass in range(MOST_GROUP_PASSES):
            u, l, largest = sweep_limits(laws, v0, w, n, turn, ball, rows, A, u, l)
            for j in range(n):
                hold = laws.hold[v0 + j, w]
                if int(groups[j]) == j and (hold > real(0.0) or laws.slide[v0 + j, w] > real(0.0) or f[j] != real(0.0)):
                    u, f, moved, stuck = group_friction(A, u, f, n, j, groups, hold, laws.slide[v0 + j, w], before, share)
                    largest = wp.max(largest, moved)
                    held[j] = real(stuck)
                    for h in range(n):
                        if int(groups[h]) == j:
                            took[h] = -f[h] * u[h]
            if largest <= SINGULAR * scale:
                break
        saturated, changed = saturate(laws, v0, w, n, u, saturated)
        if changed == 0:
            break
    changes = vec6()
    p = limit_impulse(rows, l, n, turn, ball, f)
    for j in range(n):
        i = v0 + j
        p[j] = p[j] - a[j] * u[j] - b[j]
        changes[j] = p[j] - p0[j]
        laws.impulse[i, w] = p[j]
        laws.friction[i, w] = f[j]
        laws.limit[i, w] = l[j]
        laws.stuck[i, w] = int(held[int(groups[j])])
        laws.taken[i, w] = took[j]
    return changes


@wp.func
def only_ball_friction(s: Any, laws: Laws, k: int, w: int) -> bool:
    """Whether a joint has three rotations with one friction bound, and nothing else acts on them."""
    v0 = s[0].joints.v_start[k]
    if s[0].joints.v_size[k] != 3 or s[0].joints.turns[k] != 3 or s[0].joints.ball[k] != 0:
        return False
    plain = s[0].axes.group[v0 + 1] == 0 and s[0].axes.group[v0 + 2] == 0
    for i in range(v0, v0 + 3):
        if laws.a[i, w] + laws.servo_a[i, w] != real(0.0) or laws.b[i, w] != real(0.0) or laws.servo_b[i, w] != real(0.0):
            plain = False
    return plain


@wp.func
def solve_single_axis(laws: Laws, at: int, w: int, u: real, A: real) -> real:
    """The laws of a joint's only axis; returns the change of its impulse."""
    f = laws.friction[at, w]
    slide = laws.slide[at, w]
    a = laws.a[at, w] + laws.servo_a[at, w]
    inside = u > laws.lower[at, w] and u < laws.upper[at, w]
    slides = laws.stuck[at, w] == 0 and u * f < real(0.0) and wp.abs(f) == slide
    if slides and inside and a == real(0.0) and laws.limit[at, w] == real(0.0):
        laws.taken[at, w] = -f * u
        return real(0.0)  # it slides on, as it did
    change, f, limit, held, taken = solve_axis(
        u, A, laws.impulse[at, w], laws.a[at, w], laws.b[at, w], laws.servo_a[at, w], laws.servo_b[at, w],
        laws.servo_cap[at, w], laws.hold[at, w], slide, laws.lower[at, w], laws.upper[at, w], real(0.0), real(1.0), False,
    )  # fmt: skip
    laws.impulse[at, w] = laws.impulse[at, w] + change
    laws.friction[at, w] = f
    laws.limit[at, w] = limit
    laws.stuck[at, w] = held
    laws.taken[at, w] = taken
    return change


@wp.func
def solve_ball_friction(laws: Laws, v0: int, w: int, u: vec3, A: mat66) -> vec3:
    """Three axes with one friction bound and nothing else; returns the changes of their impulses."""
    M = mat33(A[0, 0], A[0, 1], A[0, 2], A[1, 0], A[1, 1], A[1, 2], A[2, 0], A[2, 1], A[2, 2])
    p = vec3(laws.impulse[v0, w], laws.impulse[v0 + 1, w], laws.impulse[v0 + 2, w])
    inverse = mat33(A[3, 3], A[3, 4], A[3, 5], A[4, 3], A[4, 4], A[4, 5], A[5, 3], A[5, 4], A[5, 5])
    f, held = friction_3d(u - M * p, M, inverse, laws.hold[v0, w], laws.slide[v0, w], wp.length(u), vec3(real(0.0)), real(1.0))
    v = u + M * (f - p)
    if held == 1:
        v = vec3(real(0.0))
    for j in range(3):
        laws.taken[v0 + j, w] = -f[j] * v[j]
        laws.impulse[v0 + j, w] = f[j]
        laws.friction[v0 + j, w] = f[j]
        laws.stuck[v0 + j, w] = held
    return f - p
