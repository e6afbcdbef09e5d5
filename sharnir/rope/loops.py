"""Bodies that ropes couple in loops (both ends on one body, two ropes between two bodies): one small dense system.

Such a rope's last end has an unknown impulse μ = G⁻¹ (W V − g), W V the velocity of what holds it less what the first end's twist
gives there (`chain`): over the twists of both bodies, M V + p + Wᵀ μ = 0, symmetric and positive.
"""

import warp as wp

from sharnir.rope.data import LOOP, RopeStep
from sharnir.rope.terms import skew
from sharnir.types import mat33, real, vec3


@wp.func
def add_block(s: wp.array(dtype=RopeStep), row: int, column: int, w: int, M: mat33):
    """Add a 3 × 3 block."""
    n = 6 * s[0].ropes.grouped
    for i in range(3):
        for j in range(3):
            at = (row + i) * n + column + j
            s[0].work.dense[at, w] = s[0].work.dense[at, w] + M[i, j]


@wp.func
def near_rows(s: wp.array(dtype=RopeStep), k: int, w: int):
    """W of the first end's body: −(Xᵀ, Yᵀ) of its twist at the end."""
    Xt = wp.transpose(s[0].work.last_X[k, w])
    return -Xt, Xt * skew(s[0].work.arm[2 * k, w]) - wp.transpose(s[0].work.last_Y[k, w])


@wp.func
def far_rows(s: wp.array(dtype=RopeStep), k: int, w: int):
    """W of the last end's body: the velocity of its point."""
    return wp.identity(n=3, dtype=real), -skew(s[0].work.arm[2 * k + 1, w])


@wp.func
def couple(s: wp.array(dtype=RopeStep), k: int, w: int):
    """Add Wᵀ G⁻¹ W of a rope."""
    b = 6 * s[0].ropes.place[s[0].ropes.body[2 * k]]
    c = 6 * s[0].ropes.place[s[0].ropes.body[2 * k + 1]]
    bv, bw = near_rows(s, k, w)
    cv, cw = far_rows(s, k, w)
    H = s[0].work.G[k, w]
    for one in range(4):
        R = bv
        row = b
        if one == 1:
            R = bw
            row = b + 3
        elif one == 2:
            R = cv
            row = c
        elif one == 3:
            R = cw
            row = c + 3
        RH = wp.transpose(R) * H
        add_block(s, row, b, w, RH * bv)
        add_block(s, row, b + 3, w, RH * bw)
        add_block(s, row, c, w, RH * cv)
        add_block(s, row, c + 3, w, RH * cw)


@wp.func
def assemble(s: wp.array(dtype=RopeStep), w: int):
    """The inertia of all bodies in loops, and its Cholesky factor."""
    n = 6 * s[0].ropes.grouped
    if n == 0:
        return
    for i in range(n * n):
        s[0].work.dense[i, w] = real(0.0)
    for g in range(s[0].ropes.grouped):
        b = s[0].ropes.group[g]
        add_block(s, 6 * g, 6 * g, w, s[0].body.A[b, w])
        add_block(s, 6 * g, 6 * g + 3, w, s[0].body.B[b, w])
        add_block(s, 6 * g + 3, 6 * g, w, wp.transpose(s[0].body.B[b, w]))
        add_block(s, 6 * g + 3, 6 * g + 3, w, s[0].body.D[b, w])
    for k in range(s[0].ropes.count):
        if s[0].ropes.kind[2 * k + 1] == LOOP:
            couple(s, k, w)
    for j in range(n):
        for i in range(j, n):
            x = s[0].work.dense[i * n + j, w]
            for h in range(j):
                x = x - s[0].work.dense[i * n + h, w] * s[0].work.dense[j * n + h, w]
            if i == j:
                s[0].work.dense[i * n + j, w] = wp.sqrt(x)
            else:
                s[0].work.dense[i * n + j, w] = x / s[0].work.dense[j * n + j, w]


@wp.func
def put(s: wp.array(dtype=RopeStep), at: int, w: int, v: vec3):
    """Add three entries of the right-hand side."""
    for i in range(3):
        s[0].work.dense_p[at + i, w] = s[0].work.dense_p[at + i, w] + v[i]


@wp.func
def take(s: wp.array(dtype=RopeStep), at: int, w: int) -> vec3:
    """Three entries of the solution."""
    return vec3(s[0].work.dense_p[at, w], s[0].work.dense_p[at + 1, w], s[0].work.dense_p[at + 2, w])


@wp.func
def move_group(s: wp.array(dtype=RopeStep), w: int):
    """The change of the twists of bodies in loops in a pass."""
    n = 6 * s[0].ropes.grouped
    for i in range(n):
        s[0].work.dense_p[i, w] = real(0.0)
    for g in range(s[0].ropes.grouped):
        b = s[0].ropes.group[g]
        put(s, 6 * g, w, -s[0].body.p_l[b, w])
        put(s, 6 * g + 3, w, -s[0].body.p_a[b, w])
    for k in range(s[0].ropes.count):
        if s[0].ropes.kind[2 * k + 1] == LOOP:
            m = s[0].work.G[k, w] * s[0].work.g[k, w]
            b = 6 * s[0].ropes.place[s[0].ropes.body[2 * k]]
            c = 6 * s[0].ropes.place[s[0].ropes.body[2 * k + 1]]
            bv, bw = near_rows(s, k, w)
            cv, cw = far_rows(s, k, w)
            put(s, b, w, m * bv)
            put(s, b + 3, w, m * bw)
            put(s, c, w, m * cv)
            put(s, c + 3, w, m * cw)
    for i in range(n):
        x = s[0].work.dense_p[i, w]
        for h in range(i):
            x = x - s[0].work.dense[i * n + h, w] * s[0].work.dense_p[h, w]
        s[0].work.dense_p[i, w] = x / s[0].work.dense[i * n + i, w]
    for back in range(n):
        i = n - 1 - back
        x = s[0].work.dense_p[i, w]
        for h in range(i + 1, n):
            x = x - s[0].work.dense[h * n + i, w] * s[0].work.dense_p[h, w]
        s[0].work.dense_p[i, w] = x / s[0].work.dense[i * n + i, w]
    for g in range(s[0].ropes.grouped):
        b = s[0].ropes.group[g]
        s[0].body.dv[b, w] = take(s, 6 * g, w)
        s[0].body.dw[b, w] = take(s, 6 * g + 3, w)


@wp.func
def last_change(s: wp.array(dtype=RopeStep), k: int, w: int) -> vec3:
    """The change of the velocity of the point that holds a rope's last end."""
    if s[0].ropes.kind[2 * k + 1] == LOOP:
        b = s[0].ropes.body[2 * k + 1]
        return s[0].body.dv[b, w] + wp.cross(s[0].body.dw[b, w], s[0].work.arm[2 * k + 1, w])
    return vec3(real(0.0))
