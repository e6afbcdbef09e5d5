"""More than one point for two convex shapes that touch along a face or an edge, and planes against what is round or has corners.

A shape's face towards the other is found by its support function along the normal tilted a little in eight directions: a corner
answers them all alike, an edge by its two ends, a face by its corners. The smaller of the two polygons is clipped by the other.
"""

from typing import Any

import warp as wp

from sharnir.collision.boxes import four_of
from sharnir.collision.convex import gjk, support
from sharnir.collision.data import BOX, CONE, CYLINDER, ELLIPSOID, SPHERE, Collision, Manifold, Solid, frame_axis, put
from sharnir.collision.epa import epa
from sharnir.collision.round import perpendicular_to
from sharnir.core.types import real, vec3

mat12_3: Any = wp.types.matrix(shape=(12, 3), dtype=real)

TILT = wp.constant(real(3.0e-3))  # rad, at least; as far as the margin goes, so that what may turn down in the step is found
MOST_TILT = wp.constant(real(0.1))  # rad
NARROW = wp.constant(real(0.02))  # of its length: a polygon that is not wider is an edge
CORNER_SIZE = wp.constant(real(0.02))  # of the shapes' size: one that is not longer is a corner
STEADY = wp.constant(real(1.0e-5))  # m, by which a point has to be deeper than others to count as the deepest
EDGE_ROUNDING = wp.constant(real(5.0e-5))  # m, and 1 % of its half size at most: edges of a box or cylinder are rounded by this
DIAGONAL = wp.constant(real(0.7071067811865476))
DISC_THICKNESS = wp.constant(real(1.0e-9))  # m, half the length of a disc that has none


@wp.func
def compass(k: int) -> tuple[real, real]:
    """Cosine and sine of k · 45°."""
    x = wp.where(k == 2 or k == 6, real(0.0), wp.where(k % 2 == 1, DIAGONAL, real(1.0)))
    y = wp.where(k == 0 or k == 4, real(0.0), wp.where(k % 2 == 1, DIAGONAL, real(1.0)))
    return wp.where(k > 2 and k < 6, -x, x), wp.where(k > 4, -y, y)


@wp.func
def face_polygon(
    s: wp.array(dtype=Collision), A: Solid, o: vec3, n: vec3, t1: vec3, t2: vec3, up: real, tilt: real
) -> tuple[mat12_3, int]:
    """A's face along up · n: corners (along t1, along t2, along n) from o, those that repeat left out, in turn; and how many.

    What lies on its round side is tilted by TILT alone across its axis: beside the line on which it rolls are no corners.
    """
    P = mat12_3()
    m = int(0)
    axis = frame_axis(A.R, 2)
    axis = axis - n * wp.dot(n, axis)
    rolls = (A.kind == CYLINDER or A.kind == CONE) and wp.length_sq(axis) > tilt * tilt
    if rolls:
        axis = wp.normalize(axis)
    directions = int(8)
    for k in range(directions):
        x, y = compass(k)
        d = (t1 * x + t2 * y) * tilt
        if rolls:
            d = (t1 * x + t2 * y) * TILT
            d = d + axis * (wp.dot(axis, d) * (tilt / TILT - real(1.0)))
        p = support(s, A, n * up + d) + n * (up * A.radius) - o
        q = vec3(wp.dot(p, t1), wp.dot(p, t2), wp.dot(p, n))
        new = True
        if m > 0:
            new = wp.abs(q[0] - P[m - 1, 0]) + wp.abs(q[1] - P[m - 1, 1]) > real(1.0e-9)
        if m > 0 and k == 7 and wp.abs(q[0] - P[0, 0]) + wp.abs(q[1] - P[0, 1]) < real(1.0e-9):
            new = False
        if new:
            P[m, 0] = q[0]
            P[m, 1] = q[1]
            P[m, 2] = q[2]
            m = m + 1
    return P, m


@wp.func
def area_of(P: mat12_3, n: int) -> vec3:
    """Newell's normal of a polygon; its third component is twice the area across n."""
    out = vec3()
    a = vec3(P[n - 1, 0], P[n - 1, 1], P[n - 1, 2])
    for i in range(n):
        b = vec3(P[i, 0], P[i, 1], P[i, 2])
        out = out + wp.cross(a, b)
        a = b
    return out


@wp.func
def clip_by_line(P: mat12_3, n: int, ax: real, ay: real, bound: real) -> tuple[mat12_3, int]:
    """What of a polygon has ax · x + ay · y ≤ bound."""
    out = mat12_3()
    m = int(0)
    for i in range(n):
        j = i + 1
        if j == n:
            j = 0
        a = bound - ax * P[i, 0] - ay * P[i, 1]
        b = bound - ax * P[j, 0] - ay * P[j, 1]
        if a >= real(0.0) and m < 12:
            for c in range(3):
                out[m, c] = P[i, c]
            m = m + 1
        if a * b < real(0.0) and m < 12:
            t = a / (a - b)
            for c in range(3):
                out[m, c] = P[i, c] + t * (P[j, c] - P[i, c])
            m = m + 1
    return out, m


@wp.func
def clip_by_polygon(P: mat12_3, n: int, Q: mat12_3, k: int, slack: real) -> tuple[mat12_3, int]:
    """What of P lies in Q, which is convex and goes round to the left; a little beyond counts."""
    for e in range(k):
        f = e + 1
        if f == k:
            f = 0
        dx = Q[f, 0] - Q[e, 0]
        dy = Q[f, 1] - Q[e, 1]
        far = wp.sqrt(dx * dx + dy * dy)
        if far > real(0.0) and n > 0:
            x = dy / far
            y = -dx / far
            P, n = clip_by_line(P, n, x, y, x * Q[e, 0] + y * Q[e, 1] + slack)
    return P, n


@wp.func
def longer_side(P: mat12_3, n: int) -> real:
    """The longer side of a polygon's box."""
    low = vec3(P[0, 0], P[0, 1], real(0.0))
    high = low
    for i in range(1, n):
        p = vec3(P[i, 0], P[i, 1], real(0.0))
        low = wp.min(low, p)
        high = wp.max(high, p)
    d = high - low
    return wp.max(d[0], d[1])


@wp.func
def chosen(m: Manifold, P: mat12_3, n: int, o: vec3, t1: vec3, t2: vec3, least: real, tell: real, margin: real) -> Manifold:
    """Up to four of the points (x, y, gap), none nearer to another than `tell`.

    Gaps are at least `least`, the true one, and where none is as deep, the point o has it.
    """
    four = wp.vec4i(0, 1, 2, 3)
    if n > 4:
        four = four_of(P, n, STEADY)
    deepest = real(1.0e9)
    for c in range(wp.min(n, 4)):
        r = four[c]
        again = int(0)
        for e in range(c):
            dx = P[four[e], 0] - P[r, 0]
            dy = P[four[e], 1] - P[r, 1]
            if four[e] == r or dx * dx + dy * dy < tell * tell:
                again = 1
        gap = wp.max(P[r, 2], least)
        if gap < margin and again == 0:
            m = put(m, o + t1 * P[r, 0] + t2 * P[r, 1] + m.n * (real(0.5) * (gap - least)), gap)
            deepest = wp.min(deepest, gap)
    if deepest > least + real(2.0) * STEADY:
        m.count = wp.min(m.count, 3)
        m = put(m, o, least)
    return m


@wp.func
def along_faces(s: wp.array(dtype=Collision), A: Solid, B: Solid, n: vec3, o: vec3, least: real, margin: real) -> Manifold:
    """Points of two shapes that touch with normal n and gap `least` at o, midway."""
    m = Manifold()
    m.n = n
    if A.kind == SPHERE or A.kind == ELLIPSOID or B.kind == SPHERE or B.kind == ELLIPSOID:
        return put(m, o, least)
    t1 = perpendicular_to(n)
    t2 = wp.cross(n, t1)
    tilt = wp.clamp(margin / wp.min(wp.length(A.size), wp.length(B.size)), TILT, MOST_TILT)
    P, p = face_polygon(s, A, o, n, t1, t2, real(1.0), tilt)
    Q, q = face_polygon(s, B, o, n, t1, t2, real(-1.0), tilt)
    long_p = longer_side(P, p)
    long_q = longer_side(Q, q)
    tell = CORNER_SIZE * wp.max(long_p, long_q)
    if wp.min(long_p, long_q) < CORNER_SIZE * (wp.length(A.size) + wp.length(B.size)) * real(0.5):
        return put(m, o, least)
    up_p = area_of(P, p)
    up_q = area_of(Q, q)
    swap = wp.abs(up_p[2]) < wp.abs(up_q[2])  # the larger one is what the other is clipped by
    ref = P
    k = p
    up = up_p
    inc = Q
    i = q
    if swap:
        ref = Q
        k = q
        up = up_q
        inc = P
        i = p
    far = longer_side(ref, k)
    if wp.abs(up[2]) < NARROW * far * far:
        return edges_along(m, P, p, Q, q, o, t1, t2, least, margin)
    inc, i = clip_by_polygon(inc, i, ref, k, real(1.0e-6) * far)
    if i == 0:
        return put(m, o, least)
    sign = wp.where(swap, real(-1.0), real(1.0))
    for c in range(i):  # above the plane of the other face; up[2] is not small here
        h = ref[0, 2] - (up[0] * (inc[c, 0] - ref[0, 0]) + up[1] * (inc[c, 1] - ref[0, 1])) / up[2]
        inc[c, 2] = sign * (inc[c, 2] - h)
    return chosen(m, inc, i, o, t1, t2, least, tell, margin)


@wp.func
def ends_of(P: mat12_3, n: int) -> tuple[vec3, vec3]:
    """The two corners that are farthest from each other, from the first one on."""
    b = int(0)
    a = int(0)
    for _turn in range(2):
        most = real(-1.0)
        at = int(0)
        for i in range(n):
            dx = P[i, 0] - P[a, 0]
            dy = P[i, 1] - P[a, 1]
            if dx * dx + dy * dy > most:
                most = dx * dx + dy * dy
                at = i
        b = a
        a = at
    return vec3(P[a, 0], P[a, 1], P[a, 2]), vec3(P[b, 0], P[b, 1], P[b, 2])


@wp.func
def edges_along(
    m: Manifold, P: mat12_3, p: int, Q: mat12_3, q: int, o: vec3, t1: vec3, t2: vec3, least: real, margin: real
) -> Manifold:  # fmt: skip
    """Two edges: where nearly parallel, both ends of their common stretch; else the one point."""
    a, b = ends_of(P, p)
    c, d = ends_of(Q, q)
    u = vec3(b[0] - a[0], b[1] - a[1], real(0.0))
    v = vec3(d[0] - c[0], d[1] - c[1], real(0.0))
    uu = wp.dot(u, u)
    vv = wp.dot(v, v)
    uv = wp.dot(u, v)
    if uv * uv < real(0.998) * uu * vv:
        return put(m, o, least)
    one = wp.dot(c - a, u) / uu
    other = wp.dot(d - a, u) / uu
    low = wp.max(real(0.0), wp.min(one, other))
    high = wp.min(real(1.0), wp.max(one, other))
    if high - low < CORNER_SIZE:
        return put(m, o, least)
    deepest = real(1.0e9)
    for k in range(2):
        t = wp.where(k == 0, low, high)
        x = a + (b - a) * t
        h = c[2] + (d[2] - c[2]) * wp.clamp((t - one) / (other - one), real(0.0), real(1.0))
        gap = wp.max(h - x[2], least)
        deepest = wp.min(deepest, gap)
        if gap < margin:
            m = put(m, o + t1 * x[0] + t2 * x[1] + m.n * (real(0.5) * (gap - least)), gap)
    if deepest > least + real(2.0) * STEADY:
        m = put(m, o, least)
    return m


@wp.func
def rounded(A: Solid) -> Solid:
    """Box or cylinder with edges rounded by next to nothing, so that shapes at rest, which overlap less, do not need `epa`: it is
    slower, and on round shapes its normal is less exact than its depth.
    """
    least = wp.min(A.size[0], A.size[1])
    if A.kind == BOX:
        least = wp.min(least, A.size[2])
    elif A.kind != CYLINDER or A.radius > EDGE_ROUNDING:
        return A
    r = wp.min(EDGE_ROUNDING, real(0.01) * least)
    A.size = A.size - vec3(r, r, r)
    A.radius = A.radius + r
    return A


@wp.func
def convex_convex(s: wp.array(dtype=Collision), first: Solid, second: Solid, margin: real, w: int) -> Manifold:
    """Any two: nearest points of the cores, or the way out where these overlap; then what else touches along that normal."""
    A = rounded(first)
    B = rounded(second)
    r = A.radius + B.radius
    near = gjk(s, A, B, margin + r)
    gap = near.far - r
    n = vec3()
    a = near.a
    if near.far < real(0.0):
        n, depth, a = epa(s, A, B, near, w)
        gap = -depth - r
    elif gap < margin:
        n = near.v * (real(-1.0) / near.far)
    else:
        return Manifold()
    return along_faces(s, A, B, n, a + n * (A.radius + real(0.5) * gap), gap, margin)


# ---- planes ------------------------------------------------------------------------------------------------------------------


@wp.func
def if_near(m: Manifold, x: vec3, h: real, margin: real) -> Manifold:
    """A point of a shape at height h above a plane, if it is near."""
    if h < margin and m.count < 4:
        return put(m, x - m.n * (real(0.5) * h), h)
    return m


@wp.func
def plane_rim(A: Solid, B: Solid, margin: real) -> Manifold:
    """Cylinder or cone: on its cap or base four points of the rim, else the lowest of each rim (of a cone: and the tip).

    The four stand along the tilt, so that the lowest is one; upright to 1e-4 they stand still in the world.
    """
    m = Manifold()
    n = frame_axis(A.R, 2)
    m.n = n
    a = frame_axis(B.R, 2)
    c = wp.dot(a, n)
    if c < real(0.0) and B.kind != CONE:
        a = -a
        c = -c
    d = a * c - n  # down, across the axis
    tilt = wp.length(d)
    if tilt < real(1.0e-4):
        d = perpendicular_to(n)
        d = d - a * wp.dot(a, d)
        tilt = wp.length(d)
    d = d / tilt
    below = B.x - a * B.size[1]
    low = below + d * B.size[0] - n * B.radius
    m = if_near(m, low, wp.dot(n, low - A.x), margin)
    if c > DIAGONAL:
        e = wp.cross(a, d)
        for k in range(3):
            f = wp.where(k == 0, -d, wp.where(k == 1, e, -e))
            x = below + f * B.size[0] - n * B.radius
            m = if_near(m, x, wp.dot(n, x - A.x), margin)
        return m
    if B.size[1] < DISC_THICKNESS:  # a disc, whose edge is all that is round
        return m
    x = B.x + a * B.size[1] - n * B.radius
    if B.kind != CONE:
        x = x + d * B.size[0]
    return if_near(m, x, wp.dot(n, x - A.x), margin)


@wp.func
def plane_ellipsoid(A: Solid, B: Solid, s: wp.array(dtype=Collision), margin: real) -> Manifold:
    """The lowest point."""
    m = Manifold()
    m.n = frame_axis(A.R, 2)
    x = support(s, B, -m.n)
    return if_near(m, x, wp.dot(m.n, x - A.x), margin)


@wp.func
def plane_hull(A: Solid, B: Solid, s: wp.array(dtype=Collision), margin: real) -> Manifold:
    """The lowest corner, of those near the plane the farthest from it, and the farthest to either side of the line between."""
    m = Manifold()
    n = frame_axis(A.R, 2)
    m.n = n
    l = wp.transpose(B.R) * n
    h = wp.dot(n, B.x - A.x)
    i = B.first
    last = B.first + B.length
    low = i
    for k in range(i, last):
        if wp.dot(l, s[0].shapes.corners[k]) < wp.dot(l, s[0].shapes.corners[low]):
            low = k
    p = s[0].shapes.corners[low]
    gap = h + wp.dot(l, p)
    if gap > margin:
        return m
    m = if_near(m, B.x + B.R * p, gap, margin)
    far = low
    most = real(0.0)
    for k in range(i, last):
        c = s[0].shapes.corners[k]
        if h + wp.dot(l, c) < margin and wp.length_sq(c - p) > most:
            most = wp.length_sq(c - p)
            far = k
    if far == low:
        return m
    q = s[0].shapes.corners[far]
    m = if_near(m, B.x + B.R * q, h + wp.dot(l, q), margin)
    side = wp.cross(l, q - p)
    left = real(1.0e-6) * most
    right = -left
    at_left = int(-1)
    at_right = int(-1)
    for k in range(i, last):
        c = s[0].shapes.corners[k]
        if h + wp.dot(l, c) < margin:
            t = wp.dot(side, c - p)
            if t > left:
                left = t
                at_left = k
            if t < right:
                right = t
                at_right = k
    if at_left >= 0:
        c = s[0].shapes.corners[at_left]
        m = if_near(m, B.x + B.R * c, h + wp.dot(l, c), margin)
    if at_right >= 0:
        c = s[0].shapes.corners[at_right]
        m = if_near(m, B.x + B.R * c, h + wp.dot(l, c), margin)
    return m
