"""Pair functions of spheres and capsules, and of planes against what has few corners. See `pairs` for the table.

Each takes two solids, of the lower kind first, and a margin: points whose gap exceeds it may be left out.
"""

import warp as wp

from sharnir.collision.data import Manifold, Solid, frame_axis, put
from sharnir.core.types import real, vec3

NO_DISTANCE = wp.constant(real(1.0e-12))  # m, a distance that has no direction
PARALLEL = wp.constant(real(0.998))  # cos² of the angle between axes that touch along a stretch


@wp.func
def perpendicular_to(n: vec3) -> vec3:
    """A unit vector at right angles to n (Duff et al. 2017: continuous but for one line)."""
    s = wp.where(n[2] >= real(0.0), real(1.0), real(-1.0))
    a = real(-1.0) / (s + n[2])
    return vec3(real(1.0) + s * n[0] * n[0] * a, s * n[0] * n[1] * a, -s * n[0])


@wp.func
def ball_between(a: vec3, ra: real, b: vec3, rb: real) -> tuple[vec3, vec3, real]:
    """Normal, point and gap of balls about two points."""
    d = b - a
    far = wp.length(d)
    gap = far - ra - rb
    n = vec3(real(0.0), real(0.0), real(1.0))
    if far > NO_DISTANCE:
        n = d / far
    return n, (a + n * ra + b - n * rb) * real(0.5), gap


@wp.func
def midpoint_of_balls(a: vec3, ra: real, b: vec3, rb: real, margin: real) -> Manifold:
    """Balls about two points: one point on the line between."""
    m = Manifold()
    n, p, gap = ball_between(a, ra, b, rb)
    if gap < margin:
        m.n = n
        m = put(m, p, gap)
    return m


@wp.func
def sphere_sphere(A: Solid, B: Solid, margin: real) -> Manifold:
    """Centres and radii."""
    return midpoint_of_balls(A.x, A.radius, B.x, B.radius, margin)


@wp.func
def sphere_capsule(A: Solid, B: Solid, margin: real) -> Manifold:
    """The point of the capsule's axis that is nearest to the sphere's centre."""
    u = frame_axis(B.R, 2)
    t = wp.clamp(wp.dot(A.x - B.x, u), -B.size[1], B.size[1])
    return midpoint_of_balls(A.x, A.radius, B.x + u * t, B.radius, margin)


@wp.func
def nearest_on_segments(a: vec3, u: vec3, b: vec3, v: vec3) -> tuple[real, real]:
    """s, t in [−1, 1] of the nearest points a + s u, b + t v (Ericson 2005, 5.1.9, centred)."""
    r = a - b
    uu = wp.dot(u, u)
    vv = wp.dot(v, v)
    uv = wp.dot(u, v)
    ur = wp.dot(u, r)
    vr = wp.dot(v, r)
    one = real(1.0)
    det = uu * vv - uv * uv
    s = real(0.0)
    if det > NO_DISTANCE * uu * vv:
        s = wp.clamp((uv * vr - ur * vv) / det, -one, one)
    t = real(0.0)
    if vv > real(0.0):
        t = wp.clamp((uv * s + vr) / vv, -one, one)
    if uu > real(0.0):
        s = wp.clamp((uv * t - ur) / uu, -one, one)
    return s, t


@wp.func
def capsule_capsule(A: Solid, B: Solid, margin: real) -> Manifold:
    """The nearest points of the axes; nearly parallel ones touch at both ends of their common stretch."""
    m = Manifold()
    u = frame_axis(A.R, 2) * A.size[1]
    v = frame_axis(B.R, 2) * B.size[1]
    s, t = nearest_on_segments(A.x, u, B.x, v)
    a = A.x + u * s
    b = B.x + v * t
    d = b - a
    far = wp.length(d)
    r = A.radius + B.radius
    if far - r > margin:
        return m
    n = wp.cross(u, v)  # axes that cross come apart along what is across both
    if far > NO_DISTANCE:
        n = d / far
    elif wp.length(n) > NO_DISTANCE * A.size[1] * B.size[1]:
        n = wp.normalize(n)
    else:
        n = perpendicular_to(frame_axis(A.R, 2))
    m.n = n
    uu = wp.dot(u, u)
    vv = wp.dot(v, v)
    uv = wp.dot(u, v)
    if uv * uv > PARALLEL * uu * vv:
        c = wp.dot(B.x - A.x, u) / uu
        half = wp.abs(uv) / uu
        low = wp.max(real(-1.0), c - half)
        high = wp.min(real(1.0), c + half)
        if high - low > real(1.0e-3):
            for k in range(2):
                p = A.x + u * wp.where(k == 0, low, high)
                q = B.x + v * wp.clamp(wp.dot(p - B.x, v) / vv, real(-1.0), real(1.0))
                gap = wp.dot(q - p, n) - r
                if gap < margin:
                    m = put(m, (p + n * A.radius + q - n * B.radius) * real(0.5), gap)
            return m
    return put(m, (a + n * A.radius + b - n * B.radius) * real(0.5), far - r)


@wp.func
def plane_sphere(A: Solid, B: Solid, margin: real) -> Manifold:
    """The height of the centre."""
    m = Manifold()
    m.n = frame_axis(A.R, 2)
    gap = wp.dot(m.n, B.x - A.x) - B.radius
    if gap < margin:
        m = put(m, B.x - m.n * (B.radius + real(0.5) * gap), gap)
    return m


@wp.func
def plane_capsule(A: Solid, B: Solid, margin: real) -> Manifold:
    """Both ends."""
    m = Manifold()
    m.n = frame_axis(A.R, 2)
    u = frame_axis(B.R, 2) * B.size[1]
    for k in range(2):
        x = B.x + u * wp.where(k == 0, real(-1.0), real(1.0))
        gap = wp.dot(m.n, x - A.x) - B.radius
        if gap < margin:
            m = put(m, x - m.n * (B.radius + real(0.5) * gap), gap)
    return m


@wp.func
def plane_box(A: Solid, B: Solid, margin: real) -> Manifold:
    """The corners of the face that looks down most: where another corner is as low, that face stands upright and shares it."""
    m = Manifold()
    n = frame_axis(A.R, 2)
    m.n = n
    l = wp.transpose(B.R) * n
    c = wp.dot(n, B.x - A.x)
    h = B.size
    if c - wp.abs(l[0]) * h[0] - wp.abs(l[1]) * h[1] - wp.abs(l[2]) * h[2] > margin:
        return m
    k = int(0)
    if wp.abs(l[1]) > wp.abs(l[k]):
        k = 1
    if wp.abs(l[2]) > wp.abs(l[k]):
        k = 2
    i = (k + 1) % 3
    j = (k + 2) % 3
    for q in range(4):
        s = vec3()
        s[k] = wp.where(l[k] > real(0.0), -h[k], h[k])
        s[i] = wp.where(q == 0 or q == 3, -h[i], h[i])
        s[j] = wp.where(q < 2, -h[j], h[j])
        gap = c + wp.dot(l, s)
        if gap < margin:
            m = put(m, B.x + B.R * s - n * (real(0.5) * gap), gap)
    return m
