"""Points of contact that feel each other through W: u = W p + b, each with its own law (theory: contacts and trees).

Sweeps over the points first, forth and back; where they stall, a semismooth Newton method, which needs two or three solves
whatever the masses. W has three rows a point: normal, and two along the surfaces that are scaled by its coefficients of friction,
so that every cone is |p_t| ≤ p_n; a point without friction has no response along the surfaces. What resists rolling and spinning
is an entry of its own beside the point's, with a moment about the normal and two across it, scaled and bounded alike.
"""

import warp as wp

from sharnir.core.types import mat33, real, vec3

SWEEPS = wp.constant(60)
SOLVES = wp.constant(12)  # of Newton's method
HALVES = wp.constant(5)  # of one of its steps
STRUCK = wp.constant(100)  # sweeps of a round of an impact
LEAST = wp.constant(real(1.0e-4))  # of a point's mean response: that along its normal is not taken for less
OPEN = wp.constant(real(1.0e29))  # aims above it are none
NEAREST = wp.constant(real(1.0e-6))  # of a point's own response: what W leaves open stays near the impulses there were
NEAR = wp.constant(real(1.0e-3))  # and at first, so that what W all but leaves open is not driven out of its cone
CLOSE = wp.constant(real(1.0e-5))  # a residual from which factors of the step before will do,
FELL = wp.constant(real(0.1))  # where that step left so much of it
BOLD = wp.constant(5)  # steps of Newton's method that are taken as they are, before those that must lead down
ACTS, SLIDES, SPINS = wp.constant(1), wp.constant(2), wp.constant(4)


@wp.struct
class Cone:
    """The small problem, [row or point, world]; rows 3i, 3i + 1, 3i + 2 are those of point i."""

    most: wp.int32  # points of bodies that there is room for
    count: wp.array(dtype=wp.int32)  # [world]
    W: wp.array3d(dtype=real)  # [row, row, world]
    b: wp.array2d(dtype=real)
    p: wp.array2d(dtype=real)
    best: wp.array2d(dtype=real)
    guess: wp.array2d(dtype=real)
    M: wp.array3d(dtype=mat33)  # [place, place, world] of Newton's method: a block an entry that is not open, then their factors
    rhs: wp.array2d(dtype=real)
    row: wp.array2d(dtype=wp.int32)  # [place, world] which entries these are
    size: wp.array(dtype=wp.int32)  # [world] and how many
    law: wp.array2d(dtype=wp.int32)  # [point, world] what an entry does: bits of ACTS, SLIDES, SPINS; 0: it is open
    rubs: wp.array2d(dtype=wp.int32)  # [point, world] 1: it has friction, or resists rolling
    host: wp.array2d(dtype=wp.int32)  # [point, world] of moments, the entry of their point; −1 of a point
    spins: wp.array2d(dtype=wp.int32)  # [point, world] 1: moments that resist spinning about the normal
    blow: wp.array2d(dtype=real)  # impulses of impacts, and the speeds at which points are to leave in a round
    aim: wp.array2d(dtype=real)  # [point, world]


@wp.func
def rate(c: wp.array(dtype=Cone), r: int, w: int) -> real:
    """A row of u."""
    u = c[0].b[r, w]
    W = c[0].W
    p = c[0].p
    for x in range(3 * c[0].count[w]):
        u = u + W[r, x, w] * p[x, w]
    return u


@wp.func
def own_size(c: wp.array(dtype=Cone), i: int, w: int) -> real:
    """The mean response of a point to itself."""
    total = c[0].W[3 * i, 3 * i, w]
    across = c[0].W[3 * i + 1, 3 * i + 1, w] + c[0].W[3 * i + 2, 3 * i + 2, w]
    if c[0].host[i, w] >= 0 and c[0].spins[i, w] == 0:
        return real(0.5) * across
    if c[0].rubs[i, w] == 1:
        return (total + across) / real(3.0)
    return total


@wp.func
def normal_size(c: wp.array(dtype=Cone), i: int, w: int) -> real:
    """A point's response along its normal to itself; where that leads through a joint and is none, a little of its mean one."""
    return wp.max(c[0].W[3 * i, 3 * i, w], LEAST * own_size(c, i, w))


@wp.func
def projected(q: vec3) -> vec3:
    """The nearest impulse that can be: normal first, then the disc that it allows."""
    if q[0] <= real(0.0):
        return vec3(real(0.0))
    size = wp.sqrt(q[1] * q[1] + q[2] * q[2])
    if size <= q[0]:
        return q
    return vec3(q[0], q[1] * (q[0] / size), q[2] * (q[0] / size))


@wp.func
def bounded(q: vec3, bound: real) -> vec3:
    """The nearest moments that can be: one about the normal, two across it."""
    a = wp.clamp(q[0], -bound, bound)
    size = wp.sqrt(q[1] * q[1] + q[2] * q[2])
    if size <= bound:
        return vec3(a, q[1], q[2])
    return vec3(a, q[1] * (bound / size), q[2] * (bound / size))


@wp.func
def missed_moment(c: wp.array(dtype=Cone), i: int, w: int) -> real:
    """The same of moments, whose bound is the normal impulse of their point."""
    k = real(1.0) / own_size(c, i, w)
    p = vec3(c[0].p[3 * i, w], c[0].p[3 * i + 1, w], c[0].p[3 * i + 2, w])
    q = p
    if c[0].spins[i, w] == 1:
        q[0] = p[0] - k * rate(c, 3 * i, w)
    if c[0].rubs[i, w] == 1:
        q[1] = p[1] - k * rate(c, 3 * i + 1, w)
        q[2] = p[2] - k * rate(c, 3 * i + 2, w)
    return wp.length(p - bounded(q, c[0].p[3 * c[0].host[i, w], w]))


@wp.func
def missed_by(c: wp.array(dtype=Cone), i: int, w: int) -> real:
    """|p − Π(p − u/w)| of a point, N·s."""
    if c[0].host[i, w] >= 0:
        return missed_moment(c, i, w)
    k = real(1.0) / own_size(c, i, w)
    p = vec3(c[0].p[3 * i, w], c[0].p[3 * i + 1, w], c[0].p[3 * i + 2, w])
    q = vec3(p[0] - k * rate(c, 3 * i, w), real(0.0), real(0.0))
    if c[0].rubs[i, w] == 1:
        q = vec3(q[0], p[1] - k * rate(c, 3 * i + 1, w), p[2] - k * rate(c, 3 * i + 2, w))
    return wp.length(p - projected(q))


@wp.func
def missed(c: wp.array(dtype=Cone), w: int) -> real:
    """The residual by which every solve is judged: the largest miss of a point, of the largest impulse."""
    most = real(0.0)
    largest = real(1.0e-300)
    for i in range(c[0].count[w]):
        most = wp.max(most, missed_by(c, i, w))
        largest = wp.max(largest, wp.abs(c[0].p[3 * i, w]))
    return most / largest


@wp.func
def visit_disc(c: wp.array(dtype=Cone), r: int, w: int, bound: real):
    """Meet rows r and r + 1 inside a disc, the others being as they are."""
    p1 = c[0].p[r, w]
    p2 = c[0].p[r + 1, w]
    u1 = rate(c, r, w)
    u2 = rate(c, r + 1, w)
    k11 = c[0].W[r, r, w]
    k12 = real(0.5) * (c[0].W[r, r + 1, w] + c[0].W[r + 1, r, w])
    k22 = c[0].W[r + 1, r + 1, w]
    det = k11 * k22 - k12 * k12
    top = real(0.5) * (k11 + k22) + wp.sqrt(real(0.25) * (k11 - k22) * (k11 - k22) + k12 * k12)
    q1 = p1 - u1 / top
    q2 = p2 - u2 / top
    if det > real(1.0e-12) * top * top:
        q1 = p1 - (k22 * u1 - k12 * u2) / det
        q2 = p2 - (k11 * u2 - k12 * u1) / det
    if q1 * q1 + q2 * q2 > bound * bound:
        q1 = p1 - u1 / top
        q2 = p2 - u2 / top
        size = wp.sqrt(q1 * q1 + q2 * q2)
        if size > bound:
            q1 = q1 * (bound / size)
            q2 = q2 * (bound / size)
    c[0].p[r, w] = q1
    c[0].p[r + 1, w] = q2


@wp.func
def visit(c: wp.array(dtype=Cone), i: int, w: int):
    """Meet one point, or its moments, the others being as they are."""
    r = 3 * i
    bound = real(0.0)
    if c[0].host[i, w] >= 0:
        bound = c[0].p[3 * c[0].host[i, w], w]
        if c[0].spins[i, w] == 1:
            c[0].p[r, w] = wp.clamp(c[0].p[r, w] - rate(c, r, w) / c[0].W[r, r, w], -bound, bound)
    else:
        bound = wp.max(real(0.0), c[0].p[r, w] - rate(c, r, w) / normal_size(c, i, w))
        c[0].p[r, w] = bound
    if c[0].rubs[i, w] == 1:
        visit_disc(c, r + 1, w, bound)


@wp.func
def look(c: wp.array(dtype=Cone), w: int) -> bool:
    """What each entry does at the impulses of now, into `law`, and its q = p − u/w, into `guess`; whether all do as before.

    A point is open where q_n ≤ 0; it holds where |q| ≤ q_n, else it slides. Moments have the q_n of their point.
    """
    same = bool(True)
    for i in range(c[0].count[w]):
        r = 3 * i
        k = real(1.0) / own_size(c, i, w)
        host = c[0].host[i, w]
        q = vec3(c[0].p[r, w], real(0.0), real(0.0))
        if host < 0 or c[0].spins[i, w] == 1:
            q[0] = q[0] - k * rate(c, r, w)
        bound = q[0]
        law = int(0)
        if host >= 0:
            bound = c[0].guess[3 * host, w]
        if bound > real(0.0):
            law = int(ACTS)
            if host >= 0 and c[0].spins[i, w] == 1 and wp.abs(q[0]) > bound:
                law = law | SPINS
            if c[0].rubs[i, w] == 1:
                for x in range(1, 3):
                    q[x] = c[0].p[r + x, w] - k * rate(c, r + x, w)
                if q[1] * q[1] + q[2] * q[2] > bound * bound:
                    law = law | SLIDES
        for x in range(3):
            c[0].guess[r + x, w] = q[x]
        same = same and c[0].law[i, w] == law
        c[0].law[i, w] = law
    return same


@wp.func
def rows_of(c: wp.array(dtype=Cone), i: int, w: int):
    """An entry's laws, linear about the impulses of now: L u + E p − t p_n = 0, p_n that of the point; and which rows are soft.

    What holds has u = 0. What slides has, in a disc whose radius is p_n, with t = q/|q| and T = min(1, q_n/|q|)(E − t tᵀ),
    (E − T) p + T u/w − t p_n = 0: the direction of slip turns, too. Rows that carry nothing are p = 0.
    """
    r = 3 * i
    k = real(1.0) / own_size(c, i, w)
    law = c[0].law[i, w]
    host = c[0].host[i, w]
    bound = c[0].guess[r, w]
    if host >= 0:
        bound = c[0].guess[3 * host, w]
    L = mat33(real(0.0))
    E = mat33(real(0.0))
    t = vec3(real(0.0))
    soft = vec3(real(0.0))
    if host >= 0 and (c[0].spins[i, w] == 0 or law & SPINS != 0):
        E[0, 0] = real(1.0)
        if law & SPINS != 0:
            t[0] = wp.sign(c[0].guess[r, w])
    else:
        L[0, 0] = real(1.0)
        soft[0] = real(1.0) / k
    if law & SLIDES != 0:
        q1 = c[0].guess[r + 1, w]
        q2 = c[0].guess[r + 2, w]
        slip = wp.sqrt(q1 * q1 + q2 * q2)
        t[1] = q1 / slip
        t[2] = q2 / slip
        share = wp.min(real(1.0), bound / slip)
        for x in range(1, 3):
            for y in range(1, 3):
                T = -share * t[x] * t[y]
                if x == y:
                    T = T + share
                    E[x, y] = real(1.0)
                L[x, y] = k * T
                E[x, y] = E[x, y] - T
    else:
        for x in range(1, 3):
            if c[0].rubs[i, w] == 1:
                L[x, x] = real(1.0)
                soft[x] = real(1.0) / k
            else:
                E[x, x] = real(1.0)
    return L, E, t, soft


@wp.func
def block(c: wp.array(dtype=Cone), i: int, m: int, w: int) -> mat33:
    """W of two entries."""
    W = c[0].W
    r = 3 * i
    x = 3 * m
    return mat33(
        W[r, x, w], W[r, x + 1, w], W[r, x + 2, w],
        W[r + 1, x, w], W[r + 1, x + 1, w], W[r + 1, x + 2, w],
        W[r + 2, x, w], W[r + 2, x + 1, w], W[r + 2, x + 2, w],
    )  # fmt: skip


@wp.func
def three(a: wp.array2d(dtype=real), i: int, w: int) -> vec3:
    return vec3(a[3 * i, w], a[3 * i + 1, w], a[3 * i + 2, w])


@wp.func
def put_three(a: wp.array2d(dtype=real), i: int, w: int, v: vec3):
    for x in range(3):
        a[3 * i + x, w] = v[x]


@wp.func
def factor(c: wp.array(dtype=Cone), w: int, near: real) -> bool:
    """The matrix of all linear laws, three rows an entry that is not open, and its factors; false where it is singular.

    What it leaves open stays near the impulses of now: `near` of an entry's own response is added where it holds.
    """
    n = int(0)
    for i in range(c[0].count[w]):
        if c[0].law[i, w] > 0:
            c[0].row[n, w] = i
            n = n + 1
    c[0].size[w] = n
    M = c[0].M  # copies: what is read most
    row = c[0].row
    for a in range(n):
        i = row[a, w]
        L, E, t, soft = rows_of(c, i, w)
        plain = c[0].law[i, w] & SLIDES == 0 and c[0].host[i, w] < 0 and c[0].rubs[i, w] == 1
        for e in range(n):
            B = block(c, i, row[e, w], w)
            if not plain:
                B = L * B
            if e == a:
                B = B + E + wp.diag(soft * near)
            if e == a - int(c[0].host[i, w] >= 0):  # moments stand after their point
                for x in range(3):
                    B[x, 0] = B[x, 0] - t[x]
            M[a, e, w] = B
        # with what it takes to find p itself, and not a change of it
        put_three(c[0].rhs, a, w, wp.cw_mul(soft, three(c[0].p, i, w)) * near - L * three(c[0].b, i, w))
    for k in range(n):
        B = M[k, k, w]
        if not wp.abs(wp.determinant(B)) > real(1.0e-300):
            return False
        P = wp.inverse(B)
        M[k, k, w] = P
        for x in range(k + 1, n):
            F = M[x, k, w] * P
            M[x, k, w] = F
            for y in range(k + 1, n):
                M[x, y, w] = M[x, y, w] - F * M[k, y, w]
    return True


@wp.func
def back_substitute(c: wp.array(dtype=Cone), w: int):
    """M x = rhs, in place."""
    n = c[0].size[w]
    M = c[0].M
    rhs = c[0].rhs
    for a in range(n):
        v = three(rhs, a, w)
        for k in range(a):
            v = v - M[a, k, w] * three(rhs, k, w)
        put_three(rhs, a, w, v)
    for back in range(n):
        a = n - 1 - back
        v = three(rhs, a, w)
        for k in range(a + 1, n):
            v = v - M[a, k, w] * three(rhs, k, w)
        put_three(rhs, a, w, M[a, a, w] * v)


@wp.func
def lacking(c: wp.array(dtype=Cone), w: int):
    """Into `rhs`: what entries lack of their linear laws at the impulses of now, L u + E p − t p_n, reversed."""
    for a in range(c[0].size[w]):
        i = c[0].row[a, w]
        L, E, t, _soft = rows_of(c, i, w)
        p = three(c[0].p, i, w)
        u = (p - three(c[0].guess, i, w)) * own_size(c, i, w)
        bound = p[0]
        if c[0].host[i, w] >= 0:
            bound = c[0].p[3 * c[0].host[i, w], w]
        put_three(c[0].rhs, a, w, t * bound - L * u - E * p)


@wp.func
def put_in_cones(c: wp.array(dtype=Cone), w: int):
    """The nearest impulses that can be."""
    for i in range(c[0].count[w]):
        q = vec3(c[0].p[3 * i, w], c[0].p[3 * i + 1, w], c[0].p[3 * i + 2, w])
        if c[0].host[i, w] >= 0:  # it stands after its point
            q = bounded(q, c[0].p[3 * c[0].host[i, w], w])
        else:
            q = projected(q)
        for a in range(3):
            c[0].p[3 * i + a, w] = q[a]


@wp.func
def linear_step(c: wp.array(dtype=Cone), w: int, near: real, again: bool) -> bool:
    """Into `guess`: the impulses that all laws, linear about those of now, ask for; false where they ask for none.

    `again`: with the factors of the last step, where entries do what they did in it.
    """
    same = look(c, w)
    if again and same:
        lacking(c, w)
    elif not factor(c, w, near):
        return False
    kept = again and same
    back_substitute(c, w)
    if not kept:
        for r in range(3 * c[0].count[w]):
            c[0].guess[r, w] = real(0.0)
    for a in range(c[0].size[w]):
        i = c[0].row[a, w]
        v = three(c[0].rhs, a, w)
        if kept:
            v = v + three(c[0].p, i, w)
        put_three(c[0].guess, i, w, v)
    if kept:  # what is open carries nothing
        for i in range(c[0].count[w]):
            if c[0].law[i, w] == 0:
                put_three(c[0].guess, i, w, vec3(real(0.0)))
    return True


@wp.func
def bold_steps(c: wp.array(dtype=Cone), w: int, off: real, enough: real):
    """Steps of Newton's method, each from where the last one led, be it outside the cones; returns the residual of the best,
    and how many they were.

    What holds in one and slides in the next is found so in two or three; a step that is cut where its residual rises finds it
    late, because the way there leads over larger ones.
    """
    rows = 3 * c[0].count[w]
    for r in range(rows):
        c[0].best[r, w] = c[0].p[r, w]
    near = real(NEAR)
    made = int(0)
    again = bool(False)
    for it in range(BOLD):
        if off <= enough:
            break
        made = made + 1
        if not linear_step(c, w, near, again):
            break
        for r in range(rows):
            c[0].p[r, w] = c[0].guess[r, w]
        put_in_cones(c, w)
        now = missed(c, w)
        again = now < CLOSE and now < FELL * off
        if now < off:
            off = now
            for r in range(rows):
                c[0].best[r, w] = c[0].p[r, w]
        for r in range(rows):
            c[0].p[r, w] = c[0].guess[r, w]
        if it > 0:
            near = wp.max(near * real(0.1), NEAREST)
    for r in range(rows):
        c[0].p[r, w] = c[0].best[r, w]
    return off, made


@wp.func
def newton(c: wp.array(dtype=Cone), w: int, off: real) -> real:
    """One step of Newton's method from `best`, halved until the residual falls; returns the residual, no larger than `off`."""
    rows = 3 * c[0].count[w]
    for r in range(rows):
        c[0].best[r, w] = c[0].p[r, w]
    if not linear_step(c, w, NEAREST, False):
        return off
    share = real(1.0)
    for _half in range(HALVES):
        for r in range(rows):
            c[0].p[r, w] = c[0].best[r, w] + share * (c[0].guess[r, w] - c[0].best[r, w])
        put_in_cones(c, w)
        now = missed(c, w)
        if now < off:
            return now
        share = share * real(0.5)
    for r in range(rows):
        c[0].p[r, w] = c[0].best[r, w]
    return off


@wp.func
def sweep(c: wp.array(dtype=Cone), w: int, times: int, enough: real) -> real:
    """Visits to all points, forth and back in turn, until the residual is small enough; returns it."""
    off = missed(c, w)
    for it in range(times):
        if off <= enough:
            return off
        for k in range(c[0].count[w]):
            i = k
            if it % 2 == 1:
                i = c[0].count[w] - 1 - k
            visit(c, i, w)
        off = missed(c, w)
    return off


@wp.func
def solve_cone(c: wp.array(dtype=Cone), w: int, enough: real, nearly: real) -> int:
    """Impulses of all points, from those there are, to a residual of `enough`, or `nearly` where it falls no further.

    Returns how many eliminations that took the time of.

    Newton's method comes first: of all impulses that do the same it finds those nearest to the ones there were, where sweeps
    would let the first point carry all that it can.
    """
    off, made = bold_steps(c, w, missed(c, w), enough)
    for _it in range(SOLVES):
        if off <= enough:
            return made
        now = newton(c, w, off)
        made = made + 1
        if now >= off:  # no way down: go on by sweeps, and try again from there
            if off <= nearly:
                return made
            now = sweep(c, w, 6, enough)
            made = made + 1
        off = now
    if off > nearly:
        sweep(c, w, SWEEPS, enough)
        made = made + SWEEPS / 6
    return made


# ---- impacts ----------------------------------------------------------------------------------------------------------------


@wp.func
def struck_speed(c: wp.array(dtype=Cone), r: int, w: int) -> real:
    """A row of u at the start of the step, in `best`, with the impulses of the impact so far."""
    u = c[0].best[r, w]
    for x in range(3 * c[0].count[w]):
        u = u + c[0].W[r, x, w] * (c[0].blow[x, w] + c[0].guess[x, w])
    return u


@wp.func
def strike_visit(c: wp.array(dtype=Cone), i: int, w: int) -> real:
    """Bring one point of a round to the speed at which it is to leave, rubbing on the way; returns the change, m/s."""
    r = 3 * i
    k = normal_size(c, i, w)
    old = c[0].guess[r, w]
    new = wp.max(real(0.0), old - (struck_speed(c, r, w) - c[0].aim[i, w]) / k)
    c[0].guess[r, w] = new
    most = wp.abs(new - old) * k
    if c[0].rubs[i, w] == 1:
        top = c[0].W[r + 1, r + 1, w] + c[0].W[r + 2, r + 2, w]
        q1 = c[0].guess[r + 1, w] - struck_speed(c, r + 1, w) / top
        q2 = c[0].guess[r + 2, w] - struck_speed(c, r + 2, w) / top
        size = wp.sqrt(q1 * q1 + q2 * q2)
        if size > new:
            q1 = q1 * (new / size)
            q2 = q2 * (new / size)
        most = wp.max(most, (wp.abs(q1 - c[0].guess[r + 1, w]) + wp.abs(q2 - c[0].guess[r + 2, w])) * top)
        c[0].guess[r + 1, w] = q1
        c[0].guess[r + 2, w] = q2
    return most


@wp.func
def kept_share(c: wp.array(dtype=Cone), w: int) -> real:
    """How much of a round's impulses is taken: all, or as much as brings no kinetic energy, gᵀu + ½ gᵀW g ≤ 0.

    Points that are to leave at different speeds, and rub, may together ask for more than there was. Forces that act on a point
    while it is struck do work on it, too: `rhs` has the speeds that they give it in the step.
    """
    work = real(0.0)
    square = real(0.0)
    for r in range(3 * c[0].count[w]):
        g = c[0].guess[r, w]
        if g != real(0.0):
            by = real(0.0)
            for x in range(3 * c[0].count[w]):
                by = by + c[0].W[r, x, w] * c[0].guess[x, w]
            square = square + g * by
            work = work + g * (struck_speed(c, r, w) - by - c[0].rhs[r, w])
    if work + real(0.5) * square <= real(0.0) or square <= real(0.0):
        return real(1.0)
    return wp.clamp(real(-2.0) * work / square, real(0.0), real(1.0))


@wp.func
def strike_round(c: wp.array(dtype=Cone), w: int, enough: real):
    """One round: the points that have an aim, together; what it gives is added to the blow."""
    for r in range(3 * c[0].count[w]):
        c[0].guess[r, w] = real(0.0)
    for it in range(STRUCK):
        most = real(0.0)
        for k in range(c[0].count[w]):
            i = k
            if it % 2 == 1:
                i = c[0].count[w] - 1 - k
            if c[0].host[i, w] < 0 and c[0].aim[i, w] < OPEN:
                most = wp.max(most, strike_visit(c, i, w))
        if most <= enough:
            break
    share = kept_share(c, w)
    for r in range(3 * c[0].count[w]):
        c[0].blow[r, w] = c[0].blow[r, w] + c[0].guess[r, w] * share
        c[0].guess[r, w] = real(0.0)
