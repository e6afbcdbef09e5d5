"""Any two convex shapes (theory 7.2): GJK on their cores, `epa` where these overlap, `faces` for more than one point.

A shape is known here by its support function alone.
"""

import warp as wp

from sharnir.collision.data import (
    BOX,
    CAPSULE,
    CONE,
    CYLINDER,
    ELLIPSOID,
    HULL,
    TRIANGLE,
    Collision,
    Solid,
    mat43,
    vec4,
)
from sharnir.core.types import real, vec3

GJK_ROUNDS = wp.constant(60)
GJK_EXACT = wp.constant(real(1.0e-12))  # of |v|²: as near as rounding lets it come
GJK_STUCK = wp.constant(real(1.0e-4))  # of |v|²: what is farther from the end has got stuck
GJK_TINY = wp.constant(real(1.0e-30))


@wp.func
def upon(x: real, size: real) -> real:
    """±size, with the sign of x."""
    return wp.where(x >= real(0.0), size, -size)


@wp.func
def hull_corner(corners: wp.array(dtype=vec3), first: int, length: int, l: vec3) -> vec3:
    """The corner that reaches farthest along l."""
    best = real(-1.0e30)
    out = vec3()
    for i in range(first, first + length):
        v = wp.dot(corners[i], l)
        if v > best:
            best = v
            out = corners[i]
    return out


@wp.func
def support(s: wp.array(dtype=Collision), A: Solid, d: vec3) -> vec3:
    """The point of a shape's core that reaches farthest along d. A triangle's corners, from x, are the columns of R."""
    l = wp.transpose(A.R) * d
    p = vec3()
    if A.kind == BOX:
        p = vec3(upon(l[0], A.size[0]), upon(l[1], A.size[1]), upon(l[2], A.size[2]))
    elif A.kind == CAPSULE:
        p = vec3(real(0.0), real(0.0), upon(l[2], A.size[1]))
    elif A.kind == CYLINDER or A.kind == CONE:
        r = wp.sqrt(l[0] * l[0] + l[1] * l[1])
        k = A.size[0] / wp.max(r, GJK_TINY)
        p = vec3(l[0] * k, l[1] * k, upon(l[2], A.size[1]))
        if A.kind == CONE:
            p[2] = -A.size[1]
            if l[2] * A.size[1] * real(2.0) > A.size[0] * r:
                p = vec3(real(0.0), real(0.0), A.size[1])
    elif A.kind == ELLIPSOID:
        a = wp.cw_mul(l, A.size)
        p = wp.cw_mul(a, A.size) / wp.max(wp.length(a), GJK_TINY)
    elif A.kind == HULL:
        p = hull_corner(s[0].shapes.corners, A.first, A.length, l)
    elif A.kind == TRIANGLE:
        at = int(0)
        if l[1] > l[at]:
            at = 1
        if l[2] > l[at]:
            at = 2
        p[at] = real(1.0)
    return A.x + A.R * p


# ---- the point of a simplex that is nearest to the origin --------------------------------------------------------------------


@wp.func
def row(M: mat43, i: int) -> vec3:
    """Row i."""
    return vec3(M[i, 0], M[i, 1], M[i, 2])


@wp.func
def with_row(M: mat43, i: int, v: vec3) -> mat43:
    """The matrix with another row i."""
    M[i, 0] = v[0]
    M[i, 1] = v[1]
    M[i, 2] = v[2]
    return M


@wp.func
def triangle_weights(a: vec3, b: vec3, c: vec3) -> vec3:
    """Weights of the nearest point of a triangle (Ericson 2005, 5.1.5)."""
    ab = b - a
    ac = c - a
    d1 = -wp.dot(ab, a)
    d2 = -wp.dot(ac, a)
    o = real(0.0)
    i = real(1.0)
    if d1 <= o and d2 <= o:
        return vec3(i, o, o)
    d3 = -wp.dot(ab, b)
    d4 = -wp.dot(ac, b)
    if d3 >= o and d4 <= d3:
        return vec3(o, i, o)
    vc = d1 * d4 - d3 * d2
    if vc <= o and d1 >= o and d3 <= o:
        v = d1 / (d1 - d3)
        return vec3(i - v, v, o)
    d5 = -wp.dot(ab, c)
    d6 = -wp.dot(ac, c)
    if d6 >= o and d5 <= d6:
        return vec3(o, o, i)
    vb = d5 * d2 - d1 * d6
    if vb <= o and d2 >= o and d6 <= o:
        w = d2 / (d2 - d6)
        return vec3(i - w, o, w)
    va = d3 * d6 - d5 * d4
    if va <= o and d4 - d3 >= o and d5 - d6 >= o:
        w = (d4 - d3) / ((d4 - d3) + (d5 - d6))
        return vec3(o, i - w, w)
    den = i / (va + vb + vc)
    return vec3(i - (vb + vc) * den, vb * den, vc * den)


@wp.func
def simplex_weights(W: mat43, n: int) -> vec4:
    """Weights of the nearest point of a simplex; of a tetrahedron around the origin: all zero.

    A face is a candidate where the origin is on its other side, or where the tetrahedron or the origin lies in it as far as
    rounding can tell: without that a sign decided by rounding skips the right one.
    """
    o = real(0.0)
    if n == 1:
        return vec4(real(1.0), o, o, o)
    a = row(W, 0)
    b = row(W, 1)
    if n == 2:
        d = b - a
        t = wp.clamp(-wp.dot(a, d) / wp.max(wp.dot(d, d), GJK_TINY), o, real(1.0))
        return vec4(real(1.0) - t, t, o, o)
    best = real(1.0e300)
    out = vec4()
    faces = wp.where(n == 4, 4, 1)
    for m in range(faces):
        k = 3 - m  # the face without corner k
        i = wp.where(k == 0, 1, 0)
        j = wp.where(k <= 1, 2, 1)
        l = wp.where(k <= 2, 3, 2)
        p = row(W, i)
        c = wp.cross(row(W, j) - p, row(W, l) - p)
        rest = row(W, k) - p
        side = wp.dot(c, rest)
        away = -wp.dot(c, p)
        flat = real(1.0e-16) * wp.dot(c, c)
        near = side * side <= flat * wp.length_sq(rest) or away * away <= flat * wp.dot(p, p)
        if n == 3 or side * away <= o or near:
            w = triangle_weights(p, row(W, j), row(W, l))
            q = p * w[0] + row(W, j) * w[1] + row(W, l) * w[2]
            if wp.dot(q, q) < best:
                best = wp.dot(q, q)
                out = vec4()
                out[i] = w[0]
                out[j] = w[1]
                out[l] = w[2]
    return out


# ---- GJK ---------------------------------------------------------------------------------------------------------------------


@wp.struct
class Simplex:
    """Corners of A − B (and of A) in which GJK ended; `far`: distance of the cores, −1 where they overlap, 1e9 where too far."""

    W: mat43
    P: mat43
    n: wp.int32
    far: real
    v: vec3  # a − b of the nearest points
    a: vec3  # on A's core


@wp.func
def gjk(s: wp.array(dtype=Collision), A: Solid, B: Solid, reach: real) -> Simplex:
    """Distance of two cores, if it is at most `reach`."""
    out = Simplex()
    size = wp.length(A.size) + wp.length(B.size) + real(1.0e-9)
    v = A.x - B.x
    if wp.length_sq(v) < real(1.0e-20):
        v = vec3(real(1.0), real(0.0), real(0.0))
    n = int(0)
    again = int(0)
    best = real(1.0e300)
    out.far = real(1.0e9)
    going = int(GJK_ROUNDS)
    while going > 0:
        going = going - 1
        p = support(s, A, -v)
        w = p - support(s, B, v)
        vv = wp.dot(v, v)
        vw = wp.dot(v, w)
        if vw > real(0.0) and vw * vw > reach * reach * vv:
            return out
        if n > 0 and vv - vw <= GJK_EXACT * vv + real(1.0e-15) * size * size:
            break
        begun = n > 0
        out.W = with_row(out.W, n, w)
        out.P = with_row(out.P, n, p)
        n = n + 1
        full = simplex_weights(out.W, n)
        out.n = n
        if full[0] + full[1] + full[2] + full[3] < real(0.5):
            out.far = real(-1.0)
            return out
        n = int(0)
        u = vec3()
        a = vec3()
        for i in range(4):  # keep the corners that carry
            if full[i] > real(0.0):
                out.W = with_row(out.W, n, row(out.W, i))
                out.P = with_row(out.P, n, row(out.P, i))
                u = u + row(out.W, n) * full[i]
                a = a + row(out.P, n) * full[i]
                n = n + 1
        out.n = n
        if wp.dot(u, u) < best:
            best = wp.dot(u, u)
            out.v = u
            out.a = a
        if best < real(1.0e-24) * size * size:
            out.far = real(-1.0)
            return out
        if begun and wp.dot(u, u) >= vv:  # no nearer than before: rounding at the end,
            if vv - vw <= GJK_STUCK * vv or again == 4:
                break
            again = again + 1  # or a simplex that is all but flat: once more, from another side
            going = int(GJK_ROUNDS)
            u = w
            u[again % 3] = u[again % 3] + real(0.1) * size
            n = int(0)
        v = u
    out.far = wp.sqrt(best)
    return out
