"""The elimination along a rope: from its last end to its first, exact, O(n), nothing larger than 3 × 3.

Unknowns of a pass are the changes of the velocities v_j of points and ω_j of elements; rows and interfaces give

    v_{j+1} = v_j + l_j ω_j × d_j + c_j,        moment on element j at interface j:  e_j − K_j (ω_j − ω_{j−1}),

c the closing speeds that are asked for, e the moments that are missed. What hangs on point j needs there, from the side of the
first end, an impulse and a moment

    f = A v_j + B ω_j + a,        g = Bᵀ v_j + D ω_j + b,

an articulated inertia. Eliminating ω_j through its interface and shifting to point j − 1 gives the same for j − 1, and in the
end the relation p = Z V + p₀ of the first end, V the change of the twist (at the end's point) of what holds it: a body's M and Q
take Z and −p₀ like those of any link of a tree, and once V is known the rope follows from it (`follow`).

A last end that is held by something which does not yield has an unknown impulse μ there: v_n = Xᵀ v_j + Yᵀ ω_j + G μ + g, and
X, Y are also what μ does to f and g. μ is eliminated at the first end.

A slack element holds its points in line with its axis d, not at its length: v_{j+1} has an unknown σ d more, d·f is a given ρ.
With α = d·Âd that is σ = (ρ − d·f|σ=0)/α, and takes Âd dᵀÂ/α (and so on) from what hangs there (`slide`). So does one that a
winch winds: ρ is then what turns the drum (`ports`), or α has the drum's inertia at its rim in it.
"""

import warp as wp

from sharnir.rope.data import BODY, DRIVEN, LOOP, UNHELD, WOUND, RopeStep
from sharnir.rope.terms import element_inertia, inverse, shift_B, shift_D, times_skew
from sharnir.types import EPSILON, mat33, real, vec3

# share of its mobility that a held last point is given in all directions: a straight rope has none along itself
SLACK = wp.constant(real(max(1.0e-8, 1.0e3 * EPSILON)))
SPIN_FLOOR = wp.constant(real(64.0 * EPSILON))  # least part of D's trace that an element has about its axis
LITTLE = wp.constant(real(max(1.0e-12, 1.0e3 * EPSILON)))  # that share where both ends are held


@wp.func
def point_inertia(s: wp.array(dtype=RopeStep), i: int, w: int) -> mat33:
    """Mass of a point and Δt times its resistance."""
    return wp.identity(n=3, dtype=real) * (s[0].work.mass[i, w] + s[0].work.damp[i, w])


@wp.func
def beyond(s: wp.array(dtype=RopeStep), i: int, w: int, X: mat33, Y: mat33) -> mat33:
    """X once element i is eliminated."""
    return X - s[0].work.B[i, w] * (s[0].work.U[i, w] * Y)


@wp.func
def is_slack(s: wp.array(dtype=RopeStep), i: int, w: int) -> bool:
    """Whether the points of element i are free to move along it: it is slack, or wound."""
    return s[0].work.slack[i, w] > 0 and s[0].state.cut[i, w] == 0


@wp.func
def rim_of(s: wp.array(dtype=RopeStep), k: int, i: int, w: int) -> real:
    """Inertia at its rim of the drum on which element i is wound, kg; 0 where none is moved with the rope."""
    if s[0].work.slack[i, w] == WOUND:
        return s[0].work.rim[k, w]
    return real(0.0)


@wp.func
def slide_along(s: wp.array(dtype=RopeStep), i: int, w: int, X: mat33) -> vec3:
    """Xᵀd/α: by how much an impulse, that does X to what hangs on point i once its element is eliminated, makes it slide."""
    return s[0].work.d[i - 1, w] * X * s[0].work.slide[i, w]


@wp.func
def last_inertia(s: wp.array(dtype=RopeStep), k: int, i: int, w: int, K: mat33):
    """A, B, D and (D + K)⁻¹ of a rope's last point i: its own mass, and a dynamic body that holds it and moves with it."""
    A = point_inertia(s, i, w)
    B = mat33(real(0.0))
    D = mat33(real(0.0))
    U = mat33(real(0.0))
    if s[0].ropes.tied[k] == 1:
        A = A + s[0].work.tie_A[i, w]
    if s[0].ropes.kind[2 * k + 1] == BODY:
        b = s[0].ropes.body[2 * k + 1]
        r = -s[0].work.arm[2 * k + 1, w]
        B = shift_B(s[0].body.A[b, w], s[0].body.B[b, w], r)
        D = shift_D(s[0].body.A[b, w], s[0].body.B[b, w], s[0].body.D[b, w], r)
        A = A + s[0].body.A[b, w]
        U = inverse(D + K)
    return A, B, D, U


@wp.func
def shift_along(A: mat33, B: mat33, D: mat33, arm: vec3):
    """B and D seen from the point before, S = [arm]×: B + A S, and D + (Sᵀ(B + A S) + BᵀS)."""
    C = times_skew(A, arm) + B
    return C, D + wp.transpose(times_skew(wp.transpose(C), arm)) + times_skew(wp.transpose(B), arm)


@wp.func
def hold_last(s: wp.array(dtype=RopeStep), k: int, w: int, X: mat33, Y: mat33, G: mat33) -> mat33:
    """The inverse mobility of a held last point, kept with X and Y at the first end."""
    slack = real(SLACK)
    if s[0].ropes.kind[2 * k] == DRIVEN:
        slack = real(LITTLE)  # both ends are where they are: nothing of it is added to a body's inertia
    G = G + wp.identity(n=3, dtype=real) * (slack * (G[0, 0] + G[1, 1] + G[2, 2]) + real(1.0e-30))
    G = inverse(G)
    s[0].work.G[k, w] = G
    s[0].work.last_X[k, w] = X
    s[0].work.last_Y[k, w] = Y
    return G


@wp.func
def eliminate(s: wp.array(dtype=RopeStep), k: int, w: int):
    """Backward over a rope: inertias of all that hangs on each point, then Z at the first end."""
    first = s[0].ropes.first[k]
    n = s[0].state.segments[k, w]
    kind = s[0].ropes.kind[2 * k + 1]
    i1 = real(0.25) * s[0].ropes.density[k] * s[0].ropes.radius[k] * s[0].ropes.radius[k]
    O = mat33(real(0.0))
    K = s[0].work.K[first + n, w]
    A, B, D, U = last_inertia(s, k, first + n, w, K)
    X = wp.identity(n=3, dtype=real)
    Y = O
    G = O
    for back in range(n + 1):
        j = n - back
        i = first + j
        if j < n:
            K = s[0].work.K[i, w]
            U = inverse(D + K)
        s[0].work.A[i, w] = A
        s[0].work.B[i, w] = B
        s[0].work.U[i, w] = U
        T = B * U
        KU = K * U
        if kind == DRIVEN or kind == LOOP:
            s[0].work.X[i, w] = X
            s[0].work.Y[i, w] = Y
            G = G + wp.transpose(Y) * U * Y
            X = X - T * Y
            Y = KU * Y
        A = A - T * wp.transpose(B)
        B = T * K
        if j == n and kind != BODY:
            D = K  # the frame that holds the end does not yield
        else:
            D = KU * D
        if j > 0:
            if s[0].state.cut[i - 1, w] == 1:
                s[0].work.loose[i, w] = inverse(A)
                G = G + wp.transpose(X) * s[0].work.loose[i, w] * X
                A = O
                B = O
                D = O
                X = O
                Y = O
            l = s[0].state.length[i - 1, w]
            d = s[0].work.d[i - 1, w]
            if is_slack(s, i - 1, w):
                Ad = A * d
                Bd = d * B
                give = real(1.0) / (wp.dot(d, Ad) + rim_of(s, k, i - 1, w))
                s[0].work.slide[i, w] = give
                s[0].work.slide_v[i, w] = Ad
                s[0].work.slide_w[i, w] = Bd
                if kind == DRIVEN or kind == LOOP:
                    Xd = d * X
                    G = G + wp.outer(Xd, Xd) * give
                    X = X - wp.outer(Ad, Xd) * give
                    Y = Y - wp.outer(Bd, Xd) * give
                A = A - wp.outer(Ad, Ad) * give
                B = B - wp.outer(Ad, Bd) * give
                D = D - wp.outer(Bd, Bd) * give
            arm = d * (-s[0].work.reach[i - 1, w])
            B, D = shift_along(A, B, D, arm)
            D = D + element_inertia(i1 * l, s[0].work.extra[i - 1, w], d)
            D = D + wp.outer(d, d) * (SPIN_FLOOR * wp.trace(D))  # a thin element's spin is not to be lost beside a heavy load
            A = A + point_inertia(s, i - 1, w)
            if s[0].ropes.tied[k] == 1:
                A = A + s[0].work.tie_A[i - 1, w]
            if kind == DRIVEN or kind == LOOP:
                Y = Y + wp.transpose(times_skew(wp.transpose(X), arm))
    if kind == DRIVEN or kind == LOOP:
        G = hold_last(s, k, w, X, Y, G)
        if kind == DRIVEN:
            XG = X * G
            A = A + XG * wp.transpose(X)
            B = B + XG * wp.transpose(Y)
            D = D + Y * G * wp.transpose(Y)
    s[0].work.Z_A[k, w] = A
    s[0].work.Z_B[k, w] = B
    s[0].work.Z_D[k, w] = D


@wp.func
def bring_back(s: wp.array(dtype=RopeStep), k: int, w: int):
    """Backward over a rope with the right-hand sides c, e of a pass: p₀ at the first end."""
    first = s[0].ropes.first[k]
    n = s[0].state.segments[k, w]
    kind = s[0].ropes.kind[2 * k + 1]
    tied = s[0].ropes.tied[k]
    a = s[0].work.defect[first + n, w]
    if tied == 1:
        a = a + s[0].work.tie_p[first + n, w]
    b = vec3(real(0.0))
    g = vec3(real(0.0))
    if kind == BODY:
        body = s[0].ropes.body[2 * k + 1]
        a = a + s[0].body.p_l[body, w]
        b = s[0].body.p_a[body, w] - wp.cross(s[0].work.arm[2 * k + 1, w], s[0].body.p_l[body, w])
    for back in range(n + 1):
        j = n - back
        i = first + j
        e = s[0].work.e[i, w]
        c = vec3(real(0.0))
        held = int(0)  # 1 where this point hangs on the one before
        if j > 0:
            if s[0].state.cut[i - 1, w] == 0:
                c = s[0].work.c[i - 1, w]
                held = 1
        a = a + s[0].work.A[i, w] * c
        b = b + c * s[0].work.B[i, w]
        s[0].work.bias[i, w] = b
        t = s[0].work.U[i, w] * (e - b)
        a = a + s[0].work.B[i, w] * t
        b = e - s[0].work.K[i, w] * t
        if kind == DRIVEN or kind == LOOP:
            g = g + c * s[0].work.X[i, w] + t * s[0].work.Y[i, w]
        if j > 0:
            if held == 0:
                v = -(s[0].work.loose[i, w] * a)
                s[0].work.loose_v[i, w] = v
                if kind == DRIVEN or kind == LOOP:
                    g = g + v * beyond(s, i, w, s[0].work.X[i, w], s[0].work.Y[i, w])
                a = vec3(real(0.0))
                b = a
            elif is_slack(s, i - 1, w):
                slides = (s[0].work.push_out[i - 1, w] - wp.dot(s[0].work.d[i - 1, w], a)) * s[0].work.slide[i, w]
                s[0].work.slides[i, w] = slides
                a = a + s[0].work.slide_v[i, w] * slides
                b = b + s[0].work.slide_w[i, w] * slides
                if kind == DRIVEN or kind == LOOP:
                    X = beyond(s, i, w, s[0].work.X[i, w], s[0].work.Y[i, w])
                    g = g + (s[0].work.d[i - 1, w] * X) * slides
            b = b + wp.cross(s[0].work.d[i - 1, w], a) * s[0].work.reach[i - 1, w] - s[0].work.load[i - 1, w]
            a = a + s[0].work.defect[i - 1, w]
            if tied == 1:
                a = a + s[0].work.tie_p[i - 1, w]
    s[0].work.g[k, w] = g
    if kind == DRIVEN:
        m = s[0].work.G[k, w] * g
        a = a + s[0].work.last_X[k, w] * m
        b = b + s[0].work.last_Y[k, w] * m
    s[0].work.p_l[k, w] = a
    s[0].work.p_a[k, w] = b


@wp.func
def follow(s: wp.array(dtype=RopeStep), k: int, w: int, end_v: vec3, end_w: vec3, last_v: vec3):
    """Forward over a rope from the change (v, ω) of the twist at its first end: new velocities and impulses.

    `last_v` is the change of the velocity of a last point that is held.
    """
    first = s[0].ropes.first[k]
    n = s[0].state.segments[k, w]
    kind = s[0].ropes.kind[2 * k + 1]
    tied = s[0].ropes.tied[k]
    v = end_v
    omega = end_w
    f = s[0].work.Z_A[k, w] * v + s[0].work.Z_B[k, w] * omega + s[0].work.p_l[k, w]
    if s[0].ropes.kind[2 * k] == UNHELD:
        f = vec3(real(0.0))
    mu = vec3(real(0.0))
    if kind == DRIVEN or kind == LOOP:
        free = s[0].work.g[k, w] + v * s[0].work.last_X[k, w] + omega * s[0].work.last_Y[k, w]
        mu = s[0].work.G[k, w] * (last_v - free)
        if kind == LOOP:
            f = f - s[0].work.last_X[k, w] * mu
    s[0].state.end_force[2 * k, w] = s[0].state.end_force[2 * k, w] + f
    for j in range(n + 1):
        i = first + j
        if j > 0:
            if is_slack(s, i - 1, w):
                felt = wp.dot(s[0].work.slide_v[i, w], v) + wp.dot(s[0].work.slide_w[i, w], omega)
                slides = s[0].work.slides[i, w] - felt * s[0].work.slide[i, w]
                if kind == DRIVEN or kind == LOOP:
                    X = beyond(s, i, w, s[0].work.X[i, w], s[0].work.Y[i, w])
                    slides = slides + wp.dot(slide_along(s, i, w, X), mu)
                if s[0].work.slack[i - 1, w] == WOUND:
                    s[0].work.slid[k, w] = slides
                v = v + s[0].work.d[i - 1, w] * slides
        t = s[0].work.e[i, w] + s[0].work.K[i, w] * omega - v * s[0].work.B[i, w] - s[0].work.bias[i, w]
        if kind == DRIVEN or kind == LOOP:
            t = t + s[0].work.Y[i, w] * mu
        if j > 0:
            if s[0].state.cut[i - 1, w] == 0:
                v = v + s[0].work.c[i - 1, w]
        turn = s[0].work.U[i, w] * t
        s[0].state.moment[i, w] = s[0].state.moment[i, w] + s[0].work.e[i, w] - s[0].work.K[i, w] * (turn - omega)
        s[0].work.v[i, w] = s[0].work.v[i, w] + v
        s[0].work.w[i, w] = s[0].work.w[i, w] + turn
        if j < n:
            f = f - v * (s[0].work.mass[i, w] + s[0].work.damp[i, w]) - s[0].work.defect[i, w]
            if tied == 1:
                f = f - s[0].work.tie_A[i, w] * v - s[0].work.tie_p[i, w]
                s[0].work.dv[i, w] = v
            if s[0].state.cut[i, w] == 1:
                f = vec3(real(0.0))
                v = s[0].work.loose_v[i + 1, w]
                if kind == DRIVEN or kind == LOOP:
                    X = beyond(s, i + 1, w, s[0].work.X[i + 1, w], s[0].work.Y[i + 1, w])
                    v = v + s[0].work.loose[i + 1, w] * (X * mu)
            else:
                v = v + wp.cross(turn, s[0].work.d[i, w]) * s[0].work.reach[i, w]
            s[0].state.pull[i, w] = s[0].state.pull[i, w] + f
        omega = turn
    i = first + n
    taken = v * (s[0].work.mass[i, w] + s[0].work.damp[i, w]) + s[0].work.defect[i, w] - f
    if tied == 1:
        taken = taken + s[0].work.tie_A[i, w] * v + s[0].work.tie_p[i, w]
        s[0].work.dv[i, w] = v
    s[0].state.end_force[2 * k + 1, w] = s[0].state.end_force[2 * k + 1, w] + taken
    if kind == BODY:
        b = s[0].ropes.body[2 * k + 1]
        s[0].body.dv[b, w] = v - wp.cross(omega, s[0].work.arm[2 * k + 1, w])
        s[0].body.dw[b, w] = omega
