"""Pair functions of boxes against spheres, capsules and boxes."""

from typing import Any

import warp as wp

from sharnir.collision.data import Manifold, Solid, frame_axis, mat83, put, vec4
from sharnir.collision.round import nearest_on_segments
from sharnir.core.types import mat33, real, vec3

PARALLEL_EDGES = wp.constant(real(1.0e-4))  # sin² of the angle below which two edges span no axis
ALONG_AXIS = wp.constant(real(1.0 - 1.0e-12))  # cosine: along an axis, but for rounding
EDGE_ADVANTAGE = wp.constant(
    real(1.0e-6)
)  # of the smallest half size: an edge is taken where it is better than the best face by so much;
KEPT_TIE = wp.constant(real(1.0e-3))  # and this where the pair is known from the last step, so that its points do not flicker
EDGE_LEAN = wp.constant(real(0.9))  # cosine between edges' normal and a face's, up to which the face may come down on the step
LEAST_APART = wp.constant(
    real(0.0025)
)  # of the smaller half diagonal, squared: a point of the face that is nearer is the edges' own


@wp.func
def sphere_box(A: Solid, B: Solid, margin: real) -> Manifold:
    """The box's point nearest to the centre; from inside out by the nearest face."""
    m = Manifold()
    c = wp.transpose(B.R) * (A.x - B.x)
    h = B.size
    q = vec3(wp.clamp(c[0], -h[0], h[0]), wp.clamp(c[1], -h[1], h[1]), wp.clamp(c[2], -h[2], h[2]))
    d = q - c
    far = wp.length(d)
    if far > A.radius + margin:
        return m
    if far > real(1.0e-9):
        m.n = B.R * (d / far)
        gap = far - A.radius
        return put(m, B.x + B.R * q - m.n * (real(0.5) * gap), gap)
    k = int(0)
    best = h[0] - wp.abs(c[0])
    for i in range(1, 3):
        if h[i] - wp.abs(c[i]) < best:
            best = h[i] - wp.abs(c[i])
            k = i
    e = vec3()
    e[k] = wp.where(c[k] > real(0.0), real(-1.0), real(1.0))
    m.n = B.R * e
    return put(m, A.x - m.n * (real(0.5) * (best - A.radius)), -best - A.radius)


# ---- capsule and box, in the box's axes: the axis is p + t d, t in [−1, 1] ----------------------------------------------------


@wp.func
def slope(p: vec3, d: vec3, h: vec3, t: real) -> real:
    """Half the derivative along t of the squared distance to the box: piecewise linear, and never falling."""
    x = p + d * t
    out = real(0.0)
    for i in range(3):
        out = out + d[i] * (x[i] - wp.clamp(x[i], -h[i], h[i]))
    return out


@wp.func
def nearest_to_box(p: vec3, d: vec3, h: vec3) -> real:
    """t of the point of the axis that is nearest to the box: between the bends of the derivative it is found exactly."""
    low = real(-1.0)
    high = real(1.0)
    at_low = slope(p, d, h, low)
    at_high = slope(p, d, h, high)
    if at_low >= real(0.0):
        return low
    if at_high <= real(0.0):
        return high
    for i in range(3):
        if wp.abs(d[i]) > real(1.0e-12):
            for k in range(2):
                t = (wp.where(k == 0, -h[i], h[i]) - p[i]) / d[i]
                if t > low and t < high:
                    g = slope(p, d, h, t)
                    if g > real(0.0):
                        high = t
                        at_high = g
                    else:
                        low = t
                        at_low = g
    if at_high - at_low <= real(0.0):
        return low
    return low - at_low * (high - low) / (at_high - at_low)


@wp.func
def axis_out_of_box(p: vec3, d: vec3, h: vec3) -> vec3:
    """The axis passes through the box: the way out, towards the box's middle, by separating axes (faces, edges across d)."""
    best = real(-1.0e30)
    out = vec3()
    for i in range(3):
        gap = wp.abs(p[i]) - wp.abs(d[i]) - h[i]
        if gap > best:
            best = gap
            out = vec3()
            out[i] = wp.where(p[i] > real(0.0), real(-1.0), real(1.0))
    for i in range(3):
        j = (i + 1) % 3
        k = (i + 2) % 3
        L = vec3()
        L[j] = -d[k]
        L[k] = d[j]
        far = wp.length(L)
        if far > real(1.0e-3) * wp.length(d):
            L = L / far
            along = wp.dot(p, L)
            gap = wp.abs(along) - wp.abs(L[j]) * h[j] - wp.abs(L[k]) * h[k]
            if gap > best:
                best = gap
                out = L * wp.where(along > real(0.0), real(-1.0), real(1.0))
    return out


@wp.func
def above_face(p: vec3, d: vec3, h: vec3, k: int) -> tuple[real, real]:
    """Which t of the axis are above or below the box along its axis k: from, to; none where the first is larger."""
    low = real(-1.0)
    high = real(1.0)
    for c in range(2):
        i = (k + 1 + c) % 3
        if wp.abs(d[i]) > real(1.0e-12):
            one = (-h[i] - p[i]) / d[i]
            other = (h[i] - p[i]) / d[i]
            low = wp.max(low, wp.min(one, other))
            high = wp.min(high, wp.max(one, other))
    return low, high


@wp.func
def capsule_box(A: Solid, B: Solid, margin: real) -> Manifold:
    """The axis's point nearest to the box; above a face, both ends of the stretch above it."""
    m = Manifold()
    h = B.size
    r = A.radius
    p = wp.transpose(B.R) * (A.x - B.x)
    d = wp.transpose(B.R) * frame_axis(A.R, 2) * A.size[1]
    t = nearest_to_box(p, d, h)
    x = p + d * t
    e = vec3(wp.clamp(x[0], -h[0], h[0]), wp.clamp(x[1], -h[1], h[1]), wp.clamp(x[2], -h[2], h[2]))
    far = wp.length(e - x)
    if far > r + margin:
        return m
    n = vec3()
    deep = far <= real(1.0e-9)
    if deep:
        n = axis_out_of_box(p, d, h)
    else:
        n = (e - x) / far
    m.n = B.R * n
    k = int(0)
    if wp.abs(n[1]) > wp.abs(n[k]):
        k = 1
    if wp.abs(n[2]) > wp.abs(n[k]):
        k = 2
    low, high = above_face(p, d, h, k)
    if wp.abs(n[k]) > ALONG_AXIS:  # exactly, or the nearest point is beyond the face
        short = (high - low) * wp.length(d) < real(1.0e-3) * r  # then one of its ends is enough, the deeper one
        for c in range(2):
            y = p + d * wp.where(c == 0, low, high)
            gap = -n[k] * y[k] - h[k] - r
            deeper = (n[k] * d[k] > real(0.0)) == (c == 1)
            if high >= low and (deeper or not short):
                if gap < margin:
                    m = put(m, B.x + B.R * (y + n * (r + real(0.5) * gap)), gap)
        if m.count > 0:
            return m
    if deep:  # an edge: the nearest points of that edge and the axis
        q = vec3()
        run = int(0)
        for i in range(3):
            q[i] = wp.where(n[i] > real(0.0), -h[i], h[i])
            if wp.abs(n[i]) < wp.abs(n[run]):
                run = i
        q[run] = real(0.0)
        v = vec3()
        v[run] = h[run]
        s, _t = nearest_on_segments(p, d, q, v)
        y = p + d * s
        gap = wp.dot(n, q - y) - r
        return put(m, B.x + B.R * (y + n * (r + real(0.5) * gap)), gap)
    m = put(m, B.x + B.R * (x + n * (r + real(0.5) * (far - r))), far - r)
    if wp.abs(n[k]) > EDGE_LEAN and high > low:  # across an edge: what a turn about it brings down on the face
        for c in range(2):
            at = wp.where(c == 0, low, high)
            y = p + d * at
            gap = wp.max((wp.abs(y[k]) - h[k]) / wp.abs(n[k]) - r, far - r)
            if gap < margin and wp.abs(at - t) * wp.length(d) > real(0.5) * r:
                m = put(m, B.x + B.R * (y + n * (r + real(0.5) * gap)), gap)
    return m


# ---- box and box -------------------------------------------------------------------------------------------------------------


@wp.func
def clip(P: mat83, n: int, axis: int, bound: real, sign: real) -> tuple[mat83, int]:
    """Sutherland and Hodgman's clip to sign · P[axis] ≤ bound; at most 8 corners come of a quadrangle and a rectangle."""
    out = mat83()
    m = int(0)
    for i in range(n):
        j = i + 1
        if j == n:
            j = 0
        a = bound - sign * P[i, axis]
        b = bound - sign * P[j, axis]
        if a >= real(0.0) and m < 8:
            for c in range(3):
                out[m, c] = P[i, c]
            m = m + 1
        if a * b < real(0.0) and m < 8:
            t = a / (a - b)
            for c in range(3):
                out[m, c] = P[i, c] + t * (P[j, c] - P[i, c])
            m = m + 1
    return out, m


@wp.func
def four_of(P: Any, n: int, tie: real) -> wp.vec4i:
    """Of points (x, y, gap) the deepest, the one farthest from it, and those farthest to either side of the line between.

    One is deeper by `tie` at least than those before it, or small turns at rest would choose others in every step.
    """
    a = int(0)
    for i in range(1, n):
        if P[i, 2] < P[a, 2] - tie:
            a = i
    b = int(0)
    most = real(-1.0)
    for i in range(n):
        d = (P[i, 0] - P[a, 0]) * (P[i, 0] - P[a, 0]) + (P[i, 1] - P[a, 1]) * (P[i, 1] - P[a, 1])
        if d > most:
            most = d
            b = i
    left = int(a)
    right = int(a)
    high = real(0.0)
    low = real(0.0)
    for i in range(n):
        s = (P[b, 0] - P[a, 0]) * (P[i, 1] - P[a, 1]) - (P[b, 1] - P[a, 1]) * (P[i, 0] - P[a, 0])
        if s > high:
            high = s
            left = i
        if s < low:
            low = s
            right = i
    return wp.vec4i(a, b, left, right)


@wp.func
def face_points(m: Manifold, A: Solid, k: int, s: real, B: Solid, margin: real) -> Manifold:
    """The face of B that looks most against s · e_k of A, clipped by A's face there."""
    i = (k + 1) % 3
    j = (k + 2) % 3
    C = wp.transpose(A.R) * B.R
    t = wp.transpose(A.R) * (B.x - A.x)
    q = int(0)
    if wp.abs(C[k, 1]) > wp.abs(C[k, q]):
        q = 1
    if wp.abs(C[k, 2]) > wp.abs(C[k, q]):
        q = 2
    top = wp.where(C[k, q] * s > real(0.0), -B.size[q], B.size[q])
    a = (q + 1) % 3
    b = (q + 2) % 3
    P = mat83()
    beyond = vec4(real(-1.0), real(-1.0), real(-1.0), real(-1.0))  # a side that no corner passes needs no clip
    for c in range(4):
        ua = wp.where(c == 0 or c == 3, -B.size[a], B.size[a])
        ub = wp.where(c < 2, -B.size[b], B.size[b])
        P[c, 0] = t[i] + C[i, q] * top + C[i, a] * ua + C[i, b] * ub
        P[c, 1] = t[j] + C[j, q] * top + C[j, a] * ua + C[j, b] * ub
        P[c, 2] = (t[k] + C[k, q] * top + C[k, a] * ua + C[k, b] * ub) * s - A.size[k]
        x = P[c, 0]
        y = P[c, 1]
        h = A.size[i]
        l = A.size[j]
        beyond = vec4(wp.max(beyond[0], x - h), wp.max(beyond[1], -x - h), wp.max(beyond[2], y - l), wp.max(beyond[3], -y - l))
    n = int(4)
    for side in range(4):
        if beyond[side] > real(0.0):
            P, n = clip(P, n, side // 2, A.size[wp.where(side < 2, i, j)], wp.where(side % 2 == 0, real(1.0), real(-1.0)))
    four = wp.vec4i(0, 1, 2, 3)
    if n > 4:
        four = four_of(P, n, real(1.0e-6))
    for c in range(wp.min(n, 4)):
        r = four[c]
        gap = P[r, 2]
        again = int(0)
        for e in range(c):
            if four[e] == r:
                again = 1
        if gap < margin and again == 0:
            d = (
                frame_axis(A.R, i) * P[r, 0]
                + frame_axis(A.R, j) * P[r, 1]
                + frame_axis(A.R, k) * (s * (A.size[k] + real(0.5) * gap))
            )
            m = put(m, A.x + d, gap)
    return m


@wp.func
def box_face(m: Manifold, A: Solid, B: Solid, k: int, margin: real) -> Manifold:
    """Points of a face of A (k: 0 to 2) or of B (3 to 5), and its normal."""
    if k < 3:
        s = wp.where(wp.dot(frame_axis(A.R, k), B.x - A.x) >= real(0.0), real(1.0), real(-1.0))
        m.n = frame_axis(A.R, k) * s
        return face_points(m, A, k, s, B, margin)
    s = wp.where(wp.dot(frame_axis(B.R, k - 3), B.x - A.x) >= real(0.0), real(-1.0), real(1.0))
    m.n = frame_axis(B.R, k - 3) * (-s)
    return face_points(m, B, k - 3, s, A, margin)


@wp.func
def with_face(m: Manifold, A: Solid, B: Solid, k: int, margin: real) -> Manifold:
    """Two edges that cross, and the points of face k, all but parallel to them, that a turn about the edges brings down.

    Without these what falls flat on an edge would pass through the face in the step in which it turns down on it.
    """
    face = box_face(Manifold(), A, B, k, margin)
    along = wp.dot(m.n, face.n)
    if along < EDGE_LEAN:
        return m
    first = vec3(m.p[0, 0], m.p[0, 1], m.p[0, 2])
    least = m.gap[0]
    near = LEAST_APART * wp.min(wp.length_sq(A.size), wp.length_sq(B.size))
    for c in range(face.count):
        p = vec3(face.p[c, 0], face.p[c, 1], face.p[c, 2])
        gap = wp.max(face.gap[c] / along, least)
        if m.count < 4 and gap < margin and wp.length_sq(p - first) > near:
            m = put(m, p, gap)
    return m


@wp.func
def edge_point(m: Manifold, A: Solid, i: int, B: Solid, j: int) -> Manifold:
    """Edge i of A across edge j of B."""
    u = frame_axis(A.R, i)
    v = frame_axis(B.R, j)
    n = wp.normalize(wp.cross(u, v))
    if wp.dot(n, B.x - A.x) < real(0.0):
        n = -n
    m.n = n
    a = A.x
    b = B.x
    for c in range(3):
        e = frame_axis(A.R, c)
        f = frame_axis(B.R, c)
        if c != i:
            a = a + e * wp.where(wp.dot(e, n) > real(0.0), A.size[c], -A.size[c])
        if c != j:
            b = b - f * wp.where(wp.dot(f, n) > real(0.0), B.size[c], -B.size[c])
    s, t = nearest_on_segments(a, u * A.size[i], b, v * B.size[j])
    p = a + u * (A.size[i] * s)
    q = b + v * (B.size[j] * t)
    return put(m, (p + q) * real(0.5), wp.dot(n, b - a))


@wp.func
def best_edge(C: mat33, t: vec3, ha: vec3, hb: vec3, margin: real) -> tuple[int, real]:
    """The pair of edges (3 i + j) whose common normal parts the boxes most, and by how much; none at all: −1."""
    best = real(-1.0e30)
    which = int(-1)
    for i in range(3):
        i1 = (i + 1) % 3
        i2 = (i + 2) % 3
        for j in range(3):
            sin2 = real(1.0) - C[i, j] * C[i, j]
            if sin2 > PARALLEL_EDGES:
                j1 = (j + 1) % 3
                j2 = (j + 2) % 3
                reach = ha[i1] * wp.abs(C[i2, j]) + ha[i2] * wp.abs(C[i1, j])
                reach = reach + hb[j1] * wp.abs(C[i, j2]) + hb[j2] * wp.abs(C[i, j1])
                gap = wp.abs(t[i2] * C[i1, j] - t[i1] * C[i2, j]) - reach
                # a root less where this one cannot be the best: it only makes the gap larger in size
                if gap > best or gap > real(0.0):
                    gap = gap / wp.sqrt(sin2)
                    if gap > best:
                        best = gap
                        which = 3 * i + j
                        if gap > margin:
                            return which, best
    return which, best


@wp.func
def box_box(A: Solid, B: Solid, margin: real, last: int) -> Manifold:
    """Fifteen separating axes, then a clipped face or the point between two edges.

    `last`: the feature of the step before (0 to 2 faces of A, 3 to 5 of B, 6 edges) or −1.
    """
    m = Manifold()
    C = wp.transpose(A.R) * B.R
    t = wp.transpose(A.R) * (B.x - A.x)
    ha = A.size
    hb = B.size
    least = wp.min(wp.min(wp.min(ha[0], ha[1]), ha[2]), wp.min(wp.min(hb[0], hb[1]), hb[2]))
    tie = wp.where(last >= 0, KEPT_TIE, EDGE_ADVANTAGE) * least
    best = real(-1.0e30)
    k = int(0)
    for i in range(6):
        gap = real(0.0)
        j = wp.max(i - 3, 0)
        if i < 3:
            gap = wp.abs(t[i]) - ha[i] - wp.abs(C[i, 0]) * hb[0] - wp.abs(C[i, 1]) * hb[1] - wp.abs(C[i, 2]) * hb[2]
        else:
            d = t[0] * C[0, j] + t[1] * C[1, j] + t[2] * C[2, j]
            gap = wp.abs(d) - hb[j] - wp.abs(C[0, j]) * ha[0] - wp.abs(C[1, j]) * ha[1] - wp.abs(C[2, j]) * ha[2]
        if gap > margin:
            return m
        if gap > best + wp.where(i < 3 and last < 0, real(0.0), tie) or (i == last and gap > best - tie):
            best = gap
            k = i
    edge, gap = best_edge(C, t, ha, hb, margin)
    if gap > margin:
        return m
    if gap <= best + tie:
        m.feature = k
        m.apart = best
        m = box_face(m, A, B, k, margin)
        if m.count > 0 or edge < 0 or gap < best - tie:
            return m
    m.feature = 6
    return with_face(edge_point(m, A, edge // 3, B, edge % 3), A, B, k, margin)
