"""Rows between two bodies and their solve: a block of locked axes, and the laws that act on the free ones.

An impulse P = (p, l) acts on the child at the common point and with the opposite sign on the parent; r is that point from
the body's centre of mass. The relative velocity there, u = V_child − V_parent, changes by K P,

    K = Σ over both bodies  [ E/m − [r]I⁻¹[r]   −[r]I⁻¹ ]
                            [ I⁻¹[r]              I⁻¹   ]

and W, the inverse of K on the constrained axes and zero on the free ones, gives the impulse that stops u there: P = −W u.

An impulse on free axis i comes with the constraint impulse that keeps the joint closed: N = (E − W K) Bᵀ, so the laws of a
joint's axes (see `axes`) see the responses A = B K N and are solved exactly, together with the block.
"""

import warp as wp

from sharnir.types import mat33, mat66, real, vec3, vec6

TINY = wp.constant(real(1.0e-14))
PASSES = wp.constant(24)  # over friction groups and limits of one joint with several axes
SECULAR_STEPS = wp.constant(30)
SERVO_TRIES = wp.constant(8)  # of which servos of one joint are at their caps


@wp.struct
class Twists:
    """Velocities of all bodies, [body, world]: m/s of the centre of mass, rad/s; world axes."""

    linear: wp.array2d(dtype=vec3)
    angular: wp.array2d(dtype=vec3)


@wp.struct
class AxisRows:
    """Rows of the free axes, [axis, world], and responses, [joint, world]."""

    d: wp.array2d(dtype=vec3)  # B of the axis: speed = d·(relative velocity) + n·(relative spin)
    n: wp.array2d(dtype=vec3)
    force: wp.array2d(dtype=vec3)  # the constraint impulse −W K Bᵀ that comes with a unit impulse on it
    torque: wp.array2d(dtype=vec3)
    turn_parent: wp.array2d(dtype=vec3)  # the change of ω that both bring
    turn_child: wp.array2d(dtype=vec3)
    response: wp.array2d(dtype=mat66)  # A of the joint's axes


@wp.func
def body_response(r: vec3, inv_mass: real, inv_inertia: mat33):
    """One body's part of K as its blocks (linear-linear, linear-angular, angular-angular)."""
    S = wp.skew(r)
    SJ = S * inv_inertia
    return wp.diag(vec3(inv_mass, inv_mass, inv_mass)) - SJ * S, -SJ, inv_inertia


@wp.func
def positive_inverse(K: mat33) -> mat33:
    """Inverse of a symmetric positive matrix by L D Lᵀ: right to its condition times the rounding, where cofactors lose the
    square of that (a long lever on a small inertia).
    """
    a = K[0, 0]
    l10 = K[1, 0] / a
    l20 = K[2, 0] / a
    b = K[1, 1] - l10 * K[1, 0]
    t = K[2, 1] - l20 * K[1, 0]
    l21 = t / b
    c = K[2, 2] - l20 * K[2, 0] - l21 * t
    m20 = l10 * l21 - l20
    p = real(1.0) / a
    q = real(1.0) / b
    r = real(1.0) / c
    x01 = -l10 * q - m20 * l21 * r
    x02 = m20 * r
    x12 = -l21 * r
    return mat33(
        p + l10 * l10 * q + m20 * m20 * r, x01, x02, x01, q + l21 * l21 * r, x12, x02, x12, r
    )  # fmt: skip


@wp.func
def masked_inverse(F: mat33, free: int, K: mat33) -> mat33:
    """Inverse of the symmetric K on those columns of the frame F whose bit in `free` is not set, zero on the others."""
    if free & 7 == 0:
        return positive_inverse(K)
    if free & 7 == 7:
        return mat33(real(0.0))
    A = wp.transpose(F) * K * F
    for i in range(3):
        if free & (1 << i) != 0:
            for j in range(3):
                A[i, j] = real(0.0)
                A[j, i] = real(0.0)
            A[i, i] = wp.max(wp.max(K[0, 0], K[1, 1]), K[2, 2])
    A = positive_inverse(A)
    for i in range(3):
        if free & (1 << i) != 0:
            A[i, i] = real(0.0)
    return F * A * wp.transpose(F)


@wp.func
def block_inverse(Fl: mat33, Fa: mat33, free: int, Kll: mat33, Kla: mat33, Kaa: mat33):
    """W as its blocks (ll, la, aa), by the Schur complement of the translations; bits 0..5 of `free` are the free slots."""
    A = masked_inverse(Fl, free, Kll)
    if free >> 3 == 7:
        return A, mat33(real(0.0)), mat33(real(0.0))
    T = A * Kla
    D = masked_inverse(Fa, free >> 3, Kaa - wp.transpose(Kla) * T)
    B = -(T * D)
    return A - B * wp.transpose(T), B, D


@wp.func
def apply_impulse(twists: Twists, b: int, w: int, p: vec3, l: vec3, r: vec3, inv_mass: real, inv_inertia: mat33, sign: real):
    """Change a body's velocity by the impulse sign·(p at r, l)."""
    twists.linear[b, w] = twists.linear[b, w] + p * (sign * inv_mass)
    twists.angular[b, w] = twists.angular[b, w] + inv_inertia * ((wp.cross(r, p) + l) * sign)


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
def friction_1d(u: real, A: real, hold: real, slide: real, before: real, share: real):
    """Friction impulse of one axis whose speed without it is u: (f, 1 if it holds, 2 if it only keeps the axis where it is,
    3 if it does so and could hold it).

    It holds the speed at the end of the step, and slides against `share` of that and the rest of the speed before: by the mean
    of both (½), bound × path is exactly what it takes; by the speed of the end (1), `before` does not count. A speed that turns
    round by itself is not held against its own start, and where sliding either way would be against itself nothing moves.
    """
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
def axis_1d(u: real, A: real, hold: real, slide: real, lower: real, upper: real, before: real, share: real):
    """Friction and limit of one axis whose speed without them is u: (speed, friction, limit impulse, holds)."""
    f, held = friction_1d(u, A, hold, slide, before, share)
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
    hold: real, slide: real, lower: real, upper: real, before: real, share: real,
):  # fmt: skip
    """All laws of a joint's only axis, in closed form, from its speed u, response A, impulse p so far.

    Returns (Δp, friction, limit, whether it holds, energy taken).
    """
    a_all = a + servo_a
    b_all = b + servo_b
    # the speed without friction and limit, from the present one: no large numbers cancel, however stiff the law
    soft = A / (real(1.0) + a_all * A)
    v, f, limit, held = axis_1d(u - soft * (a_all * u + b_all + p), soft, hold, slide, lower, upper, before, share)
    servo = -servo_a * v - servo_b
    if wp.abs(servo) > servo_cap:
        a_all = a
        b_all = b - clamp_sign(servo, servo_cap)
        soft = A / (real(1.0) + a * A)
        v, f, limit, held = axis_1d(u - soft * (a * u + b_all + p), soft, hold, slide, lower, upper, before, share)
    # from the speeds: −a v − b would cancel two large numbers where the law is stiff
    return (v - u) / A, f, limit, held, -f * v


@wp.func
def friction_3d(v: vec3, M: mat33, inverse: mat33, hold: real, slide: real, guess: real, before: vec3, share: real):
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
        if wp.abs(size - real(1.0)) <= TINY * real(10.0):
            break
        s = wp.max(least, s + wp.dot(y, y) / wp.dot(y, R * y) * (size - real(1.0)))
    return -wp.normalize(y) * slide, 0


@wp.func
def add_soft(A: mat66, u: vec6, n: int, i: int, a: real, b: real):
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
):
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
def limited(lower: real, upper: real) -> bool:
    return lower > real(-1.0e29) or upper < real(1.0e29)


@wp.func
def solve_axes(
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
    for _try in range(SERVO_TRIES):
        A = response
        u = u_now
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
        scale = wp.length(u)
        p = f
        for j in range(n):
            if l[j] != real(0.0):
                p = p + limit_row(rows, j, turn, ball) * l[j]
        u = u + A * p
        for _pass in range(PASSES):
            largest = real(0.0)
            for j in range(n):
                lower = laws.lower[v0 + j, w]
                upper = laws.upper[v0 + j, w]
                if limited(lower, upper) or l[j] != real(0.0):
                    g = limit_row(rows, j, turn, ball)
                    Ag = A * g
                    gAg = wp.dot(g, Ag)
                    v = wp.dot(g, u) - gAg * l[j]
                    new = (wp.clamp(v, lower, upper) - v) / gAg
                    u = u + Ag * (new - l[j])
                    largest = wp.max(largest, wp.abs(new - l[j]) * gAg)
                    l[j] = new
            for j in range(n):
                hold = laws.hold[v0 + j, w]
                if int(groups[j]) == j and (hold > real(0.0) or laws.slide[v0 + j, w] > real(0.0) or f[j] != real(0.0)):
                    u, f, moved, stuck = group_friction(A, u, f, n, j, groups, hold, laws.slide[v0 + j, w], before, share)
                    largest = wp.max(largest, moved)
                    held[j] = real(stuck)
                    for h in range(n):
                        if int(groups[h]) == j:
                            took[h] = -f[h] * u[h]
            if largest <= TINY * scale:
                break
        again = int(0)
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
                again = 1
        if again == 0:
            break
    changes = vec6()
    p = f
    for j in range(n):
        if l[j] != real(0.0):
            p = p + limit_row(rows, j, turn, ball) * l[j]
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
