"""The passes of a direct step: Newton's step on a tree, from the leaves inwards and out again (theory: energy and momentum).

Unknowns are the changes of the bodies' twists: δv of the velocity, and δφ, scaled so that h (δv + δφ × r₁), h = ½Δt, is how a
point at the arm r₁ of the end of the step moves. Joints are closed at the end of the step, so velocities are handed outwards
with arms and axes of the end (C₁, S₁); their impulses act at the means (C̄, S̄). Hence articulated inertias M* = [A B; C D] that
are not symmetric, handed inwards as

    C̄ᵀ (M* − M* S₁ U⁻¹ S̄ᵀ M*) C₁,      U = S̄ᵀ M* S₁ + what resists.

The momentum equations of all links are met beforehand, from the leaves inwards, by what their joints carry, f; what f lacks of
τ along the free axes, τ − S̄ᵀf, drives the pass, together with the gaps. Joints of no freedom but rotations about a point are
eliminated at that point, 3 × 3.
"""

import warp as wp

from sharnir.core.spatial import matrix
from sharnir.core.types import mat33, real, vec3, vec6
from sharnir.engine.articulated.data import LOOSE, natural
from sharnir.engine.direct.balls import FREE, HELD, NONE, SLIDES, kind_of
from sharnir.engine.direct.data import Direct
from sharnir.engine.direct.energy.axes import (
    axis_law,
    ball_resistance,
    factor_axes,
    held_axes,
    held_axis,
    joint_moment,
    user_moment,
)
from sharnir.engine.direct.modified import lies
from sharnir.engine.rope.terms import skew, times_skew

ANEW = wp.constant(0)  # how a pass inwards is made
AGAIN = wp.constant(1)
GAPS = wp.constant(2)


@wp.func
def skew_times(r: vec3, M: mat33) -> mat33:
    """[r]× M: the columns of M, each crossed by r."""
    return mat33(
        r[1] * M[2, 0] - r[2] * M[1, 0], r[1] * M[2, 1] - r[2] * M[1, 1], r[1] * M[2, 2] - r[2] * M[1, 2],
        r[2] * M[0, 0] - r[0] * M[2, 0], r[2] * M[0, 1] - r[0] * M[2, 1], r[2] * M[0, 2] - r[0] * M[2, 2],
        r[0] * M[1, 0] - r[1] * M[0, 0], r[0] * M[1, 1] - r[1] * M[0, 1], r[0] * M[1, 2] - r[1] * M[0, 2],
    )  # fmt: skip


@wp.func
def add_diagonal(M: mat33, d: real) -> mat33:
    """M + d E; entries that are set one by one would put a matrix into a GPU's memory."""
    return mat33(M[0, 0] + d, M[0, 1], M[0, 2], M[1, 0], M[1, 1] + d, M[1, 2], M[2, 0], M[2, 1], M[2, 2] + d)


@wp.func
def inverse(M: mat33) -> mat33:
    """The inverse of any matrix that has one."""
    a = vec3(M[0, 0], M[0, 1], M[0, 2])
    b = vec3(M[1, 0], M[1, 1], M[1, 2])
    c = vec3(M[2, 0], M[2, 1], M[2, 2])
    bc = wp.cross(b, c)
    k = real(1.0) / wp.dot(a, bc)
    return wp.matrix_from_cols(bc * k, wp.cross(c, a) * k, wp.cross(a, b) * k)


@wp.func
def own_stiffness(s: wp.array(dtype=Direct), i: int, w: int, M1: mat33, L: vec3, r: vec3, f: vec3) -> mat33:
    """Derivative by δφ of a link's momentum R₁ I R₀ᵀ w less the moment r̄ × f of its joint's impulse.

    I₁ (E + [g]× + g gᵀ) − h [L]× + ½h ((r₁·f) E − r₁ fᵀ),      g = ½Δt ω̄,  I₁ = R₁ I R₁ᵀ
    """
    b = natural(s[0].tree.row[i].body)
    h = real(0.5) * s[0].drift[w]
    g = (s[0].work.spin[b, w] + s[0].work.turning[b, w]) * (real(0.5) * h)
    I = M1 * (s[0].tree.inertia[i, w] * wp.transpose(M1))
    D = I + times_skew(I, g) + wp.outer(I * g, g) - skew(L * h) - wp.outer(r, f) * (real(0.5) * h)
    d = real(0.5) * h * wp.dot(r, f)
    return add_diagonal(D, d)


@wp.func
def base_stiffness(r: vec3, f: vec3, h: real) -> mat33:
    """The same of the base, that has −f at its end arm r."""
    K = wp.outer(r, f) * (real(0.5) * h)
    d = real(0.5) * h * wp.dot(r, f)
    return add_diagonal(K, -d)


@wp.func(inline=True)
def factor_link(
    s: wp.array(dtype=Direct), i: int, w: int, kind: int,
    A: mat33, B: mat33, C: mat33, D: mat33, fl: vec3, fa: vec3,
):  # fmt: skip
    """Factors of a link, on which M* = [A B; C D] hangs already, from what its joint carries; returns what its base feels."""
    b = natural(s[0].tree.row[i].body)
    h = real(0.5) * s[0].drift[w]
    m = s[0].tree.mass[i, w]
    out = s[0].work.out[i, w]
    out1 = s[0].out1[i, w]
    f = fl
    if kind == LOOSE:
        f = vec3(real(0.0))
    start = s[0].momentum[b, w]
    start = start / s[0].tree.row[i].parts
    A = add_diagonal(A, m)
    D = D + own_stiffness(s, i, w, matrix(s[0].rotation[b, w]), s[0].gain[i, w] + start, -out1, f)
    if kind == LOOSE:
        none = mat33(real(0.0))
        P = inverse(A)
        s[0].full_A[i, w] = P
        s[0].full_B[i, w] = B
        s[0].full_C[i, w] = C
        s[0].full_D[i, w] = inverse(D - C * P * B)
        if lies(s, natural(s[0].half_of[b]), w):  # it gives way to nothing
            s[0].full_A[i, w] = none
            s[0].full_D[i, w] = none
        return none, none, none, none
    if kind != NONE:
        return factor_ball(s, i, w, kind, A, B, C, D, fl)
    hands = s[0].tree.row[i].base_link >= 0
    A, B, C, D = factor_axes(s, i, w, A, B, C, D, fl, fa + wp.cross(out, fl), hands)
    if hands:
        arm = s[0].work.arm[i, w]
        arm1 = s[0].arm1[i, w]
        s[0].full_A[i, w] = A
        s[0].full_B[i, w] = B
        s[0].full_C[i, w] = C
        s[0].full_D[i, w] = D
        B = B - times_skew(A, arm1)
        D = D - times_skew(C, arm1)
        C = C + skew_times(arm, A)
        D = D + skew_times(arm, B) + base_stiffness(arm1 - out1, fl, h)
    return A, B, C, D


@wp.func(inline=True)
def factor_ball(s: wp.array(dtype=Direct), i: int, w: int, kind: int, A: mat33, B: mat33, C: mat33, D: mat33, fl: vec3):
    """The same of a link on a ball joint, all of whose own inertia is in M*."""
    h = real(0.5) * s[0].drift[w]
    out = s[0].work.out[i, w]
    out1 = s[0].out1[i, w]
    lever1 = s[0].arm1[i, w] - out1
    lever = s[0].work.arm[i, w] - out
    B = B - times_skew(A, out1)
    D = D - times_skew(C, out1)
    C = C + skew_times(out, A)
    D = D + skew_times(out, B)
    if kind == FREE:
        W = inverse(D)
        G = W * C
        A = A - B * G
        s[0].full_A[i, w] = A
        s[0].full_B[i, w] = B * W
        s[0].full_C[i, w] = G
        s[0].full_D[i, w] = W
        B = -times_skew(A, lever1)
        C = skew_times(lever, A)
        return A, B, C, skew_times(lever, B) + base_stiffness(lever1, fl, h)
    W = mat33(real(0.0))
    s[0].balls.own_B[i, w] = C
    s[0].balls.own_D[i, w] = D
    if kind == SLIDES:
        W = inverse(D + ball_resistance(s, i, w))
        BW = B * W
        DW = D * W
        s[0].full_B[i, w] = BW
        s[0].full_D[i, w] = DW
        A = A - BW * C
        B = B - BW * D
        C = C - DW * C
        D = D - DW * D
    else:
        s[0].full_B[i, w] = B
        s[0].full_D[i, w] = D
    s[0].balls.response[i, w] = W
    s[0].full_A[i, w] = A
    s[0].full_C[i, w] = C
    B = B - times_skew(A, lever1)
    D = D - times_skew(C, lever1)
    C = C + skew_times(lever, A)
    return A, B, C, D + skew_times(lever, B) + base_stiffness(lever1, fl, h)


@wp.func(inline=True)
def past_ball(s: wp.array(dtype=Direct), i: int, w: int, kind: int, alone: bool, fl: vec3, fa: vec3, ql: vec3, qa: vec3):
    """What of (q) a link on a ball joint hands to its base."""
    out = s[0].work.out[i, w]
    lever = s[0].work.arm[i, w] - out
    zero = vec3(real(0.0))
    qa = qa + wp.cross(out, ql)
    lack = zero
    if kind != HELD and not alone:
        lack = joint_moment(s, i, w, kind) - fa - wp.cross(out, fl)
    e = s[0].work.close_l[i, w]
    m_all = qa + lack
    if kind == FREE:
        s[0].work.change_q[i, w] = s[0].full_D[i, w] * m_all
        ql = ql - s[0].full_A[i, w] * e - s[0].full_B[i, w] * m_all
        return ql, wp.cross(lever, ql) - lack
    s[0].work.change_q[i, w] = m_all
    if not alone:  # and without friction
        s[0].balls.u[i, w] = qa + user_moment(s, i, w) - fa - wp.cross(out, fl)
    ql = ql - s[0].full_A[i, w] * e
    qa = qa - s[0].full_C[i, w] * e
    yields = m_all
    if kind == HELD:
        yields = s[0].work.close_a[i, w]  # what its spin is still to change
        if alone:
            yields = zero
    ql = ql - s[0].full_B[i, w] * yields
    qa = qa - s[0].full_D[i, w] * yields
    return ql, qa + wp.cross(lever, ql)


@wp.func
def inward(s: wp.array(dtype=Direct), w: int, mode: int):
    """What joints carry, from the momenta of all links beyond them, in `carried`; and what that lacks along free axes, with the
    gaps in work.close, handed inwards: with new factors (ANEW), or with those of the last such pass (AGAIN).

    GAPS: impulses on links, in work.Q, and on axes, in rows.u, alone are handed inwards, with work.close and new factors.
    """
    w = natural(w)
    anew = mode == ANEW or mode == GAPS
    alone = mode == GAPS
    zero = vec3(real(0.0))
    none = mat33(real(0.0))
    A = none
    B = none
    C = none
    D = none
    fl = zero
    fa = zero
    ql = zero
    qa = zero
    handed = int(0)
    for back in range(s[0].tree.count):
        i = natural(s[0].tree.count - 1 - back)
        b = natural(s[0].tree.row[i].body)
        p = s[0].tree.row[i].base_link
        gathers = s[0].tree.row[i].gathers == 1 or (s[0].closures.count + s[0].roped > 0)
        if handed == 0:
            fl = zero
            fa = zero
            ql = zero
            qa = zero
        if not alone:
            fl = fl + s[0].work.acceleration[b, w] * s[0].tree.mass[i, w] - s[0].impulse_l[i, w]
            fa = fa + s[0].gain[i, w]
        if gathers:
            if not alone:
                fl = fl + s[0].sum_l[i, w]
                fa = fa + s[0].sum_a[i, w]
                s[0].sum_l[i, w] = zero
                s[0].sum_a[i, w] = zero
            ql = ql + s[0].work.Q_l[i, w]
            qa = qa + s[0].work.Q_a[i, w]
            s[0].work.Q_l[i, w] = zero
            s[0].work.Q_a[i, w] = zero
        if not alone:
            s[0].carried_l[i, w] = fl
            s[0].carried_a[i, w] = fa
        kind = kind_of(s, i, w)
        if anew:  # all that is done with matrices: where it is not, none is moved about
            if handed == 0:
                A = none
                B = none
                C = none
                D = none
            if gathers:
                A = A + s[0].work.A[i, w]
                B = B + s[0].work.B[i, w]
                C = C + s[0].work_C[i, w]
                D = D + s[0].work.D[i, w]
                s[0].work.A[i, w] = none
                s[0].work.B[i, w] = none
                s[0].work_C[i, w] = none
                s[0].work.D[i, w] = none
            A, B, C, D = factor_link(s, i, w, kind, A, B, C, D, fl, fa)
        arm = s[0].work.arm[i, w]
        if kind == LOOSE:
            P = s[0].full_A[i, w]
            l = ql - fl
            dw = s[0].full_D[i, w] * (qa - fa - s[0].full_C[i, w] * (P * l))
            s[0].work.change_l[b, w] = P * (l - s[0].full_B[i, w] * dw)
            s[0].work.change_a[b, w] = dw
            fl = zero
            fa = zero
            ql = zero
            qa = zero
        elif kind != NONE:
            ql, qa = past_ball(s, i, w, kind, alone, fl, fa, ql, qa)
        else:
            n = s[0].tree.row[i].v_size
            v0 = natural(s[0].tree.row[i].v_start)
            for x in range(n):
                sl = s[0].work.S_l[v0 + x, w]
                sa = s[0].work.S_a[v0 + x, w]
                free = wp.dot(sl, ql - fl) + wp.dot(sa, qa - fa)
                if alone:
                    free = free + s[0].rows.u[v0 + x, w]
                else:
                    free = free + s[0].tau[v0 + x, w]
                    s[0].work.u[v0 + x, w] = free
                    if s[0].acting == 1:
                        if s[0].linear.acts[i, w] == 1:
                            free = free + axis_law(s, i, w, x)
                s[0].work.change[v0 + x, w] = free
            if p < 0:  # the ground feels nothing
                handed = 0
                continue
            el = s[0].work.close_l[i, w]
            ea = s[0].work.close_a[i, w]
            if s[0].acting == 1:
                if s[0].linear.acts[i, w] == 1:
                    for x in range(v0, v0 + n):
                        el = el + s[0].end_l[x, w] * s[0].lock_u[x, w]
                        ea = ea + s[0].end_a[x, w] * s[0].lock_u[x, w]
            gl = ql - s[0].full_A[i, w] * el - s[0].full_B[i, w] * ea
            ga = qa - s[0].full_C[i, w] * el - s[0].full_D[i, w] * ea
            if n == 1:
                y = s[0].work.Y[v0, w] * s[0].work.change[v0, w]
                if not alone:
                    y = held_axis(s, i, w, y)
                gl = gl - s[0].work.H_l[v0, w] * y
                ga = ga - s[0].work.H_a[v0, w] * y
            elif n > 1:
                all = vec6()
                for x in range(n):
                    all[x] = s[0].work.change[v0 + x, w]
                all = s[0].work.response[i, w] * all
                if not alone:
                    all = held_axes(s, i, w, all)
                for x in range(n):
                    gl = gl - s[0].work.H_l[v0 + x, w] * all[x]
                    ga = ga - s[0].work.H_a[v0 + x, w] * all[x]
            ql = gl
            qa = ga + wp.cross(arm, gl)
        fa = fa + wp.cross(arm, fl)
        handed = 0
        if p == i - 1:
            handed = 1
        elif p >= 0:
            if not alone:
                s[0].sum_l[p, w] = s[0].sum_l[p, w] + fl
                s[0].sum_a[p, w] = s[0].sum_a[p, w] + fa
            s[0].work.Q_l[p, w] = s[0].work.Q_l[p, w] + ql
            s[0].work.Q_a[p, w] = s[0].work.Q_a[p, w] + qa
            if anew:
                s[0].work.A[p, w] = s[0].work.A[p, w] + A
                s[0].work.B[p, w] = s[0].work.B[p, w] + B
                s[0].work_C[p, w] = s[0].work_C[p, w] + C
                s[0].work.D[p, w] = s[0].work.D[p, w] + D


@wp.func
def hand_pushes(s: wp.array(dtype=Direct), w: int, start: int, end: int):
    """Impulses on links start … end − 1, in work.Q, and on axes, in rows.u, are handed inwards with the factors of now."""
    for back in range(end - start):
        hand_push(s, natural(end - 1 - back), w)


@wp.func
def hand_push(s: wp.array(dtype=Direct), i: int, w: int):
    """Those of a link, to its base."""
    ql = s[0].work.Q_l[i, w]
    qa = s[0].work.Q_a[i, w]
    s[0].work.Q_l[i, w] = vec3(real(0.0))
    s[0].work.Q_a[i, w] = vec3(real(0.0))
    kind = s[0].work.kind[i, w]
    if kind == LOOSE:
        b = natural(s[0].tree.row[i].body)
        P = s[0].full_A[i, w]
        dw = s[0].full_D[i, w] * (qa - s[0].full_C[i, w] * (P * ql))
        s[0].work.change_l[b, w] = P * (ql - s[0].full_B[i, w] * dw)
        s[0].work.change_a[b, w] = dw
        return
    if kind != NONE:
        lever = s[0].work.arm[i, w] - s[0].work.out[i, w]
        qa = qa + wp.cross(s[0].work.out[i, w], ql)
        if kind == FREE:
            s[0].work.change_q[i, w] = s[0].full_D[i, w] * qa
            ql = ql - s[0].full_B[i, w] * qa
            qa = wp.cross(lever, ql)
        else:
            s[0].work.change_q[i, w] = qa
            if kind == SLIDES:
                ql = ql - s[0].full_B[i, w] * qa
                qa = qa - s[0].full_D[i, w] * qa
            qa = qa + wp.cross(lever, ql)
    else:
        ql, qa = past_axes(s, i, w, ql, qa)
    p = s[0].tree.row[i].base_link
    if p >= 0:
        s[0].work.Q_l[p, w] = s[0].work.Q_l[p, w] + ql
        s[0].work.Q_a[p, w] = s[0].work.Q_a[p, w] + qa


@wp.func
def past_axes(s: wp.array(dtype=Direct), i: int, w: int, ql: vec3, qa: vec3):
    """What of impulses on a link its joint, which has axes, hands to its base."""
    n = s[0].tree.row[i].v_size
    v0 = natural(s[0].tree.row[i].v_start)
    y = vec6()
    for x in range(n):
        free = wp.dot(s[0].work.S_l[v0 + x, w], ql) + wp.dot(s[0].work.S_a[v0 + x, w], qa) + s[0].rows.u[v0 + x, w]
        s[0].work.change[v0 + x, w] = free
        y[x] = free
    if n == 1:
        y[0] = s[0].work.Y[v0, w] * y[0]
    elif n > 1:
        y = s[0].work.response[i, w] * y
    for x in range(n):
        ql = ql - s[0].work.H_l[v0 + x, w] * y[x]
        qa = qa - s[0].work.H_a[v0 + x, w] * y[x]
    return ql, qa + wp.cross(s[0].work.arm[i, w], ql)


@wp.func
def balance(s: wp.array(dtype=Direct), w: int):
    """What joints carry, from the momenta of all links beyond them, in `carried`."""
    for back in range(s[0].tree.count):
        i = natural(s[0].tree.count - 1 - back)
        b = natural(s[0].tree.row[i].body)
        fl = s[0].sum_l[i, w] + s[0].work.acceleration[b, w] * s[0].tree.mass[i, w] - s[0].impulse_l[i, w]
        fa = s[0].sum_a[i, w] + s[0].gain[i, w]
        s[0].sum_l[i, w] = vec3(real(0.0))
        s[0].sum_a[i, w] = vec3(real(0.0))
        s[0].carried_l[i, w] = fl
        s[0].carried_a[i, w] = fa
        p = s[0].tree.row[i].base_link
        if p >= 0 and kind_of(s, i, w) != LOOSE:
            s[0].sum_l[p, w] = s[0].sum_l[p, w] + fl
            s[0].sum_a[p, w] = s[0].sum_a[p, w] + fa + wp.cross(s[0].work.arm[i, w], fl)


@wp.func(inline=False)
def follow_several(s: wp.array(dtype=Direct), i: int, w: int, v: vec3, turn: vec3, open: real):
    """What several axes of a link add to the changes (`follow`); apart, so that a hinge makes no room for matrices of 6 × 6."""
    n = s[0].tree.row[i].v_size
    v0 = natural(s[0].tree.row[i].v_start)
    rest = vec6()
    for x in range(n):
        felt = wp.dot(s[0].left_l[v0 + x, w], v) + wp.dot(s[0].left_a[v0 + x, w], turn)
        rest[x] = s[0].work.change[v0 + x, w] - felt
    rest = s[0].work.response[i, w] * rest
    if open != real(0.0):
        rest = held_axes(s, i, w, rest)
    for x in range(n):
        s[0].rows.y[v0 + x, w] = rest[x]
        v = v + s[0].end_l[v0 + x, w] * rest[x]
        turn = turn + s[0].end_a[v0 + x, w] * rest[x]
    return v, turn


@wp.func
def follow(s: wp.array(dtype=Direct), i: int, w: int, v: vec3, turn: vec3, open: real):
    """Changes (δv, δφ) of a link's twist from its base's, laws as linear; `open` 0: but for the gaps."""
    kind = kind_of(s, i, w)
    b = natural(s[0].tree.row[i].body)
    if kind == LOOSE:
        return s[0].work.change_l[b, w], s[0].work.change_a[b, w]
    arm1 = s[0].arm1[i, w]
    if kind != NONE:
        out1 = s[0].out1[i, w]
        v = v + wp.cross(turn, arm1 - out1) + s[0].work.close_l[i, w] * open
        if kind == FREE:
            turn = s[0].work.change_q[i, w] - s[0].full_C[i, w] * v
        elif kind == SLIDES:
            m = s[0].work.change_q[i, w] - s[0].balls.own_B[i, w] * v - s[0].balls.own_D[i, w] * turn
            turn = turn + s[0].balls.response[i, w] * m
        else:
            turn = turn + s[0].work.close_a[i, w] * open
        return v + wp.cross(turn, out1), turn
    n = s[0].tree.row[i].v_size
    v0 = natural(s[0].tree.row[i].v_start)
    v = v + wp.cross(turn, arm1) + s[0].work.close_l[i, w] * open
    turn = turn + s[0].work.close_a[i, w] * open
    if s[0].acting == 1:
        if s[0].linear.acts[i, w] == 1:
            for x in range(v0, v0 + n):
                v = v + s[0].end_l[x, w] * (s[0].lock_u[x, w] * open)
                turn = turn + s[0].end_a[x, w] * (s[0].lock_u[x, w] * open)
    if n == 1:
        y = s[0].work.change[v0, w] - wp.dot(s[0].left_l[v0, w], v) - wp.dot(s[0].left_a[v0, w], turn)
        y = y * s[0].work.Y[v0, w]
        if open != real(0.0):
            y = held_axis(s, i, w, y)
        s[0].rows.y[v0, w] = y
        v = v + s[0].end_l[v0, w] * y
        turn = turn + s[0].end_a[v0, w] * y
    elif n > 1:
        v, turn = follow_several(s, i, w, v, turn, open)
    return v, turn


@wp.func
def follow_all(s: wp.array(dtype=Direct), w: int, open: real):
    """Changes of all twists, into work.change."""
    follow_some(s, w, open, 0, s[0].tree.count)


@wp.func
def follow_some(s: wp.array(dtype=Direct), w: int, open: real, start: int, end: int):
    """Changes of the twists of links start … end − 1, which hang on no others."""
    for n in range(start, end):
        follow_one(s, natural(n), w, open)


@wp.func
def follow_one(s: wp.array(dtype=Direct), i: int, w: int, open: real):
    """That of a link, whose base's is known."""
    base = natural(s[0].tree.row[i].base)
    v, turn = follow(s, i, w, s[0].work.change_l[base, w], s[0].work.change_a[base, w], open)
    b = natural(s[0].tree.row[i].body)
    s[0].work.change_l[b, w] = v
    s[0].work.change_a[b, w] = turn
