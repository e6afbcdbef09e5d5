"""Bodies that ropes couple in loops (both ends on one body, two ropes between two bodies): one small dense system.

Such a rope's last end has an unknown impulse μ = G⁻¹ (W V − g), W V the velocity of what holds it less what the first end's twist
gives there (`chain`): over the twists of both bodies, M V + p + Wᵀ μ = 0, symmetric and positive.
"""

import warp as wp

from sharnir.core.linalg import add_block, clear, factorise, put, substitute, take
from sharnir.core.types import real, vec3
from sharnir.engine.rope.data import LOOP, RopeStep
from sharnir.engine.rope.terms import skew


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
    M = s[0].work.dense
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
        add_block(M, row, b, w, RH * bv)
        add_block(M, row, b + 3, w, RH * bw)
        add_block(M, row, c, w, RH * cv)
        add_block(M, row, c + 3, w, RH * cw)


@wp.func
def assemble(s: wp.array(dtype=RopeStep), w: int):
    """The inertia of all bodies in loops, and its factor."""
    n = 6 * s[0].ropes.grouped
    M = s[0].work.dense
    if n == 0:
        return
    clear(M, s[0].ropes.row_first, s[0].ropes.row_last, n, w)
    for g in range(s[0].ropes.grouped):
        b = s[0].ropes.group[g]
        add_block(M, 6 * g, 6 * g, w, s[0].body.A[b, w])
        add_block(M, 6 * g, 6 * g + 3, w, s[0].body.B[b, w])
        add_block(M, 6 * g + 3, 6 * g, w, wp.transpose(s[0].body.B[b, w]))
        add_block(M, 6 * g + 3, 6 * g + 3, w, s[0].body.D[b, w])
    for k in range(s[0].ropes.count):
        if s[0].ropes.kind[2 * k + 1] == LOOP:
            couple(s, k, w)
    factorise(M, s[0].ropes.row_first, s[0].ropes.row_last, n, w)


@wp.func
def move_group(s: wp.array(dtype=RopeStep), w: int):
    """The change of the twists of bodies in loops in a pass."""
    n = 6 * s[0].ropes.grouped
    x = s[0].work.dense_p
    for i in range(n):
        x[i, w] = real(0.0)
    for g in range(s[0].ropes.grouped):
        b = s[0].ropes.group[g]
        put(x, 6 * g, w, -s[0].body.p_l[b, w])
        put(x, 6 * g + 3, w, -s[0].body.p_a[b, w])
    for k in range(s[0].ropes.count):
        if s[0].ropes.kind[2 * k + 1] == LOOP:
            m = s[0].work.G[k, w] * s[0].work.g[k, w]
            b = 6 * s[0].ropes.place[s[0].ropes.body[2 * k]]
            c = 6 * s[0].ropes.place[s[0].ropes.body[2 * k + 1]]
            bv, bw = near_rows(s, k, w)
            cv, cw = far_rows(s, k, w)
            put(x, b, w, m * bv)
            put(x, b + 3, w, m * bw)
            put(x, c, w, m * cv)
            put(x, c + 3, w, m * cw)
    substitute(s[0].work.dense, s[0].ropes.row_first, s[0].ropes.row_last, x, n, w)
    for g in range(s[0].ropes.grouped):
        b = s[0].ropes.group[g]
        s[0].body.dv[b, w] = take(x, 6 * g, w)
        s[0].body.dw[b, w] = take(x, 6 * g + 3, w)


@wp.func
def last_change(s: wp.array(dtype=RopeStep), k: int, w: int) -> vec3:
    """The change of the velocity of the point that holds a rope's last end."""
    if s[0].ropes.kind[2 * k + 1] == LOOP:
        b = s[0].ropes.body[2 * k + 1]
        return s[0].body.dv[b, w] + wp.cross(s[0].body.dw[b, w], s[0].work.arm[2 * k + 1, w])
    return vec3(real(0.0))
