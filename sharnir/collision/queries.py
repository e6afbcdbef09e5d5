"""Queries, many at once: rays, shapes on their way, overlaps, distances. A thread a query; scratch is a thread's own.

`cast_on`, `overlaps_with` and `distance_of` are the device functions; a ray is a point on its way.
"""

import warp as wp

from sharnir.collision.broad import solid
from sharnir.collision.closest_point import Hit, conservative_advancement, nearest
from sharnir.collision.data import MESH, PLANE, Collision, Solid
from sharnir.collision.terrain import Walk, face_normal, triangle_solid, walk_begin, walk_next
from sharnir.core.spatial import matrix
from sharnir.core.types import inline_less, quat, real, vec3

inline_less("sharnir.queries")

PIECES = wp.constant(real(32.0))  # in which a long way over a mesh is looked at


@wp.struct
class Placed:
    """Shapes and their poses, one a row."""

    kind: wp.array(dtype=wp.int32)
    size: wp.array(dtype=vec3)
    radius: wp.array(dtype=real)
    first: wp.array(dtype=wp.int32)
    length: wp.array(dtype=wp.int32)
    position: wp.array(dtype=vec3)
    rotation: wp.array(dtype=quat)


@wp.func
def placed_solid(s: Placed, i: int) -> Solid:
    """Row i."""
    out = Solid()
    out.kind = s.kind[i]
    out.size = s.size[i]
    out.radius = s.radius[i]
    out.x = s.position[i]
    out.R = matrix(s.rotation[i])
    out.first = s.first[i]
    out.length = s.length[i]
    return out


@wp.func
def place_shapes(s: wp.array(dtype=Collision), world: int) -> None:
    """Put shapes where their bodies are now."""
    for i in range(s[0].shapes.count):
        b = s[0].shapes.body[i]
        q = s[0].rotation[b, world]
        s[0].broad.centre[i, world] = s[0].position[b, world] + wp.quat_rotate(q, s[0].shapes.position[i])
        s[0].broad.frame[i, world] = matrix(q * s[0].shapes.rotation[i])


@wp.kernel(module="sharnir.queries", enable_backward=False)
def place_all(s: wp.array(dtype=Collision)) -> None:
    """One thread a world."""
    place_shapes(s, wp.tid())


@wp.func
def passes_by(s: wp.array(dtype=Collision), i: int, x: vec3, d: vec3, length: real, bound: real, world: int) -> bool:
    """Whether a ball on its way stays clear of the ball around shape i."""
    if s[0].shapes.kind[i] == PLANE:
        return False
    c = s[0].broad.centre[i, world] - x
    t = wp.clamp(wp.dot(c, d), real(0.0), length)
    r = bound + s[0].shapes.bound[i]
    return wp.length_sq(c - d * t) > r * r


@wp.func
def cast_on(
    s: wp.array(dtype=Collision), i: int, B: Solid, bound: real, d: vec3, length: real, world: int, w: int
) -> Hit:  # fmt: skip
    """Where B, moving by `length` along the unit vector d, first meets shape i; surfaces of triangles from outside alone."""
    best = Hit()
    best.far = real(-1.0)
    A = solid(s, i, world)
    rough = A.kind >= MESH
    start = real(0.0)
    piece = length
    if rough:  # only what of the way is near the shape, piece by piece: a box around all of it would hold most triangles
        c = wp.dot(A.x - B.x, d)
        r = s[0].shapes.bound[i] + bound
        start = wp.max(real(0.0), c - r)
        length = wp.min(length, c + r)
        piece = wp.max(real(2.0) * r / PIECES, real(1.0e-6))
    while start < length:
        end = wp.min(start + piece, length)
        walk = Walk()
        if rough:
            from_here = B
            from_here.x = B.x + d * start
            walk = walk_begin(s, i, from_here, d * (end - start), real(1.0e-6), world)
        going = int(1)
        while going == 1:
            meets = True
            if rough:
                walk = walk_next(s, i, walk)
                A = triangle_solid(s, i, walk, world)
                meets = wp.dot(face_normal(A), d) < real(0.0)
            if rough and walk.over == 1:
                going = 0
            elif meets:
                hit = conservative_advancement(s, A, B, d, start, wp.where(best.far >= real(0.0), best.far, end), w)
                if hit.far >= real(0.0) and (best.far < real(0.0) or hit.far < best.far):
                    best = hit
            if not rough:
                going = 0
        start = end
        if best.far >= real(0.0) or not rough:
            start = length
    best.shape = i
    return best


@wp.kernel(module="sharnir.queries", enable_backward=False)
def cast_many(
    s: wp.array(dtype=Collision),
    world: wp.array(dtype=wp.int32),
    b: Placed,
    bound: real,
    direction: wp.array(dtype=vec3),
    length: wp.array(dtype=real),
    mask: int,
    threads: int,
    far: wp.array(dtype=real),
    shape: wp.array(dtype=wp.int32),
    point: wp.array(dtype=vec3),
    normal: wp.array(dtype=vec3),
) -> None:
    """What each of many shapes meets first."""
    w = wp.tid()
    q = int(w)
    while q < far.shape[0]:
        B = placed_solid(b, q)
        d = direction[q]
        until = length[q]
        far[q] = real(-1.0)
        shape[q] = -1
        for i in range(s[0].shapes.count):
            if s[0].shapes.group[i] & mask != 0 and not passes_by(s, i, B.x, d, until, bound, world[q]):
                hit = cast_on(s, i, B, bound, d, until, world[q], w)
                if hit.far >= real(0.0):
                    until = hit.far
                    far[q] = hit.far
                    shape[q] = i
                    point[q] = hit.point
                    normal[q] = hit.n
        q = q + threads


@wp.func
def gap_to(s: wp.array(dtype=Collision), i: int, B: Solid, reach: real, world: int, w: int) -> Hit:
    """The least gap of B and shape i, if it is at most `reach`: in `far` (else 1e9), with its normal and the point on shape i."""
    best = Hit()
    best.far = real(1.0e9)
    best.shape = i
    A = solid(s, i, world)
    rough = A.kind >= MESH
    walk = Walk()
    if rough:
        walk = walk_begin(s, i, B, vec3(), reach, world)
    going = int(1)
    while going == 1:
        if rough:
            walk = walk_next(s, i, walk)
            A = triangle_solid(s, i, walk, world)
        if rough and walk.over == 1:
            going = 0
        else:
            near = nearest(s, A, B, wp.min(reach, best.far), w)
            if near.gap < best.far:
                best.far = near.gap
                best.n = near.n
                best.point = near.a
        if not rough:
            going = 0
    return best


@wp.kernel(module="sharnir.queries", enable_backward=False)
def overlaps_many(
    s: wp.array(dtype=Collision),
    world: wp.array(dtype=wp.int32),
    b: Placed,
    bound: real,
    mask: int,
    threads: int,
    count: wp.array(dtype=wp.int32),
    found: wp.array2d(dtype=wp.int32),
) -> None:
    """The shapes that each of many shapes overlaps; `count` may exceed the columns of `found`."""
    w = wp.tid()
    q = int(w)
    while q < count.shape[0]:
        B = placed_solid(b, q)
        n = int(0)
        for i in range(s[0].shapes.count):
            if s[0].shapes.group[i] & mask != 0 and not passes_by(s, i, B.x, vec3(), real(0.0), bound, world[q]):
                hit = gap_to(s, i, B, real(0.0), world[q], w)
                if hit.far <= real(0.0):
                    if n < found.shape[1]:
                        found[q, n] = i
                    n = n + 1
        count[q] = n
        q = q + threads


@wp.kernel(module="sharnir.queries", enable_backward=False)
def distances_many(
    s: wp.array(dtype=Collision),
    world: wp.array(dtype=wp.int32),
    body_a: wp.array(dtype=wp.int32),
    body_b: wp.array(dtype=wp.int32),
    threads: int,
    far: wp.array(dtype=real),
    point: wp.array(dtype=vec3),
    normal: wp.array(dtype=vec3),
) -> None:
    """The least gap of all shapes of two bodies; the point is on a, the normal from a to b."""
    w = wp.tid()
    q = int(w)
    while q < far.shape[0]:
        best = real(1.0e9)
        for i in range(s[0].shapes.count):
            for j in range(s[0].shapes.count):
                one = s[0].shapes.body[i] == body_a[q] and s[0].shapes.body[j] == body_b[q]
                if one and s[0].shapes.kind[j] < MESH and s[0].shapes.kind[j] != PLANE:
                    B = solid(s, j, world[q])
                    reach = wp.length(B.x - s[0].broad.centre[i, world[q]]) + s[0].shapes.bound[i] + s[0].shapes.bound[j]
                    hit = gap_to(s, i, B, wp.min(best, reach), world[q], w)
                    if hit.far < best:
                        best = hit.far
                        point[q] = hit.point
                        normal[q] = hit.n
        far[q] = best
        q = q + threads
