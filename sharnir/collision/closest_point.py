"""Exact distance of two convex shapes, and a shape on its way: what queries are made of."""

import warp as wp

from sharnir.collision.convex import gjk, support
from sharnir.collision.data import PLANE, Collision, Solid, frame_axis
from sharnir.collision.epa import epa
from sharnir.core.types import real, vec3

ARRIVED = wp.constant(real(1.0e-7))  # m
CAST_PLACES = wp.constant(64)


@wp.struct
class Near:
    """Gap (negative: overlap; 1e9: farther than asked for), unit normal from A to B, nearest points on both, m, world axes."""

    gap: real
    n: vec3
    a: vec3
    b: vec3


@wp.func
def nearest(s: wp.array(dtype=Collision), A: Solid, B: Solid, reach: real, w: int) -> Near:
    """Of any two convex shapes, or of a plane (A) and one; `w`: whose scratch."""
    out = Near()
    if A.kind == PLANE:
        out.n = frame_axis(A.R, 2)
        out.b = support(s, B, -out.n) - out.n * B.radius
        out.gap = wp.dot(out.n, out.b - A.x)
        out.a = out.b - out.n * out.gap
        return out
    r = A.radius + B.radius
    found = gjk(s, A, B, reach + r)
    n = vec3()
    a = found.a
    gap = found.far - r
    if found.far < real(0.0):
        n, depth, a = epa(s, A, B, found, w)
        gap = -depth - r
    elif gap <= reach:
        n = found.v * (real(-1.0) / found.far)
    else:
        gap = real(1.0e9)
    out.gap = gap
    out.n = n
    out.a = a + n * A.radius
    out.b = out.a + n * gap
    return out


@wp.struct
class Hit:
    """How far a shape came (m, −1: it met nothing), the normal there (from what was met), the point, the shape that was met."""

    far: real
    n: vec3
    point: vec3
    shape: wp.int32


@wp.func
def conservative_advancement(s: wp.array(dtype=Collision), A: Solid, B: Solid, d: vec3, start: real, length: real, w: int) -> Hit:
    """B moves along the unit vector d, from `start` on, at most to `length`, each time as far as it cannot meet A yet."""
    out = Hit()
    out.far = real(-1.0)
    moved = B
    t = start
    tries = int(CAST_PLACES)
    while tries > 0:
        tries = tries - 1
        moved.x = B.x + d * t
        near = nearest(s, A, moved, length - t, w)
        speed = -wp.dot(d, near.n)
        if near.gap > ARRIVED and (near.gap > length - t or speed * (length - t) <= near.gap):
            return out
        if near.gap <= ARRIVED or tries == 0:
            out.n = near.n
            out.point = near.a
            out.far = t
            if near.gap > real(0.0) and speed > near.gap:
                out.far = t + near.gap / speed
            return out
        t = t + (near.gap - real(0.5) * ARRIVED) / speed  # not quite: the normal of what just touches is not exact
    return out
