"""How far a point is from the surface of a shape, and which way is out: what a rope's points ask of every shape.

In closed form but for hulls (`nearest`): exact and smooth, so that passes which ask again and again come to rest.
"""

import warp as wp

from sharnir.collision.closest_point import nearest
from sharnir.collision.convex import triangle_weights
from sharnir.collision.data import (
    BOX,
    CAPSULE,
    CONE,
    CYLINDER,
    ELLIPSOID,
    PLANE,
    SPHERE,
    TRIANGLE,
    Collision,
    Solid,
    frame_axis,
)
from sharnir.core.types import real, vec3

NO_DISTANCE = wp.constant(real(1.0e-12))  # m, a distance that has no direction
NEWTON_ITERATIONS = wp.constant(32)


@wp.struct
class Foot:
    """Gap of a point (m, negative: inside; 1e9: farther than asked for) and the unit normal there, outwards, world axes."""

    gap: real
    n: vec3


@wp.func
def away(d: vec3, otherwise: vec3) -> tuple[real, vec3]:
    """Length of a vector and its direction, or another one where it has none."""
    far = wp.length(d)
    if far > NO_DISTANCE:
        return far, d / far
    return far, otherwise


@wp.func
def box_foot(p: vec3, half: vec3) -> tuple[real, vec3]:
    """Gap and normal of a point at a box about the origin."""
    inside = real(-1.0e30)
    axis = int(0)
    d = vec3()
    for k in range(3):
        over = wp.abs(p[k]) - half[k]
        if over > inside:
            inside = over
            axis = k
        d[k] = wp.sign(p[k]) * wp.max(over, real(0.0))
    n = vec3()
    n[axis] = wp.where(p[axis] < real(0.0), real(-1.0), real(1.0))
    if inside <= real(0.0):
        return inside, n
    return away(d, n)


@wp.func
def rim_foot(p: vec3, radius: real, half: real, cone: bool) -> tuple[real, vec3]:
    """Gap and normal at a cylinder about z, or a cone with its tip at +half: a corner, a side, a base, in the plane of p."""
    rho, out = away(vec3(p[0], p[1], real(0.0)), vec3(real(1.0), real(0.0), real(0.0)))
    up = vec3(real(0.0), real(0.0), real(1.0))
    x = rho
    z = p[2]
    if not cone:
        gap, n = box_foot(vec3(x, real(0.0), z), vec3(radius, real(1.0e9), half))
        return gap, out * n[0] + up * n[2]
    side = wp.normalize(vec3(real(2.0) * half, real(0.0), radius))  # outwards from the slant
    along = vec3(-side[2], real(0.0), side[0])  # up it
    to_side = (x - radius) * side[0] + (z + half) * side[2]
    to_base = -half - z
    if to_side <= real(0.0) and to_base <= real(0.0):  # within
        if to_side > to_base:
            return to_side, out * side[0] + up * side[2]
        return to_base, -up
    length = wp.sqrt(radius * radius + real(4.0) * half * half)
    at = (x - radius) * along[0] + (z + half) * along[2]
    if to_base > real(0.0) and x <= radius:
        return to_base, -up
    if at > real(0.0) and at < length and to_side > real(0.0):
        return to_side, out * side[0] + up * side[2]
    d = vec3(x - radius, real(0.0), z + half)
    if at >= length:
        d = vec3(x, real(0.0), z - half)
    far, n = away(d, side)
    return far, out * n[0] + up * n[2]


@wp.func
def ellipsoid_foot(p: vec3, a: vec3) -> tuple[real, vec3]:
    """Gap and normal at an ellipsoid: the largest root t of Σ (a x/(a² + t))² = 1, by Newton's method from below, monotone."""
    t = real(-1.0e30)
    for k in range(3):
        t = wp.max(t, a[k] * wp.abs(p[k]) - a[k] * a[k])
    scale = wp.max(a[0], wp.max(a[1], a[2]))
    for _i in range(NEWTON_ITERATIONS):
        f = real(-1.0)
        slope = real(0.0)
        for k in range(3):
            below = a[k] * a[k] + t
            if below > NO_DISTANCE * scale * scale:
                part = a[k] * p[k] / below
                f = f + part * part
                slope = slope - real(2.0) * part * part / below
        if slope > real(-1.0e-30):
            break
        step = -f / slope
        t = t + step
        if wp.abs(step) <= real(1.0e-15) * scale * scale:
            break
    q = vec3()
    for k in range(3):
        below = wp.max(a[k] * a[k] + t, NO_DISTANCE * scale * scale)
        q[k] = a[k] * a[k] * p[k] / below
    n = wp.normalize(vec3(q[0] / (a[0] * a[0]), q[1] / (a[1] * a[1]), q[2] / (a[2] * a[2])))
    return wp.dot(p - q, n), n


@wp.func
def foot(c: wp.array(dtype=Collision), A: Solid, x: vec3, reach: real, w: int) -> Foot:
    """Of a point x at a shape; `reach`: farther off may be left out; `w`: whose scratch."""
    out = Foot()
    up = frame_axis(A.R, 2)
    if A.kind == PLANE:
        out.n = up
        out.gap = wp.dot(up, x - A.x)
        return out
    p = wp.transpose(A.R) * (x - A.x)
    gap = real(1.0e9)
    n = vec3(real(0.0), real(0.0), real(1.0))
    if A.kind == SPHERE:
        gap, n = away(p, n)
    elif A.kind == CAPSULE:
        gap, n = away(vec3(p[0], p[1], p[2] - wp.clamp(p[2], -A.size[1], A.size[1])), vec3(real(1.0), real(0.0), real(0.0)))
    elif A.kind == BOX:
        gap, n = box_foot(p, A.size)
    elif A.kind == CYLINDER or A.kind == CONE:
        gap, n = rim_foot(p, A.size[0], A.size[1], A.kind == CONE)
    elif A.kind == ELLIPSOID:
        gap, n = ellipsoid_foot(p, A.size)
    elif A.kind == TRIANGLE:
        d = x - A.x
        a = frame_axis(A.R, 0) - d
        b = frame_axis(A.R, 1) - d
        e = frame_axis(A.R, 2) - d
        k = triangle_weights(a, b, e)
        far, m = away(-(a * k[0] + b * k[1] + e * k[2]), wp.normalize(wp.cross(b - a, e - a)))
        out.n = m
        out.gap = far - A.radius
        return out
    else:
        B = Solid()
        B.kind = int(SPHERE)
        B.x = x
        B.R = wp.identity(n=3, dtype=real)
        near = nearest(c, A, B, reach, w)
        out.gap = near.gap
        out.n = near.n
        return out
    out.n = A.R * n
    out.gap = gap - A.radius
    return out
