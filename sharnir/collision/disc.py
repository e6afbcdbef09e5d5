"""A wheel, a disc with a rounded edge, on a triangle: points of its rim on the triangle's plane, where these are the nearest."""

import warp as wp

from sharnir.collision.convex import triangle_weights
from sharnir.collision.data import BOX, CYLINDER, Manifold, Solid, frame_axis
from sharnir.collision.faces import plane_rim
from sharnir.collision.round import perpendicular_to
from sharnir.collision.terrain import share_of
from sharnir.core.types import mat33, real, vec3


@wp.func
def is_beyond_triangle(A: Solid, T: Solid, f: vec3, margin: real) -> bool:
    """Whether a box or a disc lies on the outside of a triangle's plane, farther from it than the margin."""
    reach = A.radius
    if A.kind == BOX:
        l = wp.transpose(A.R) * f
        reach = reach + wp.abs(l[0]) * A.size[0] + wp.abs(l[1]) * A.size[1] + wp.abs(l[2]) * A.size[2]
    else:
        c = wp.dot(f, frame_axis(A.R, 2))
        reach = reach + wp.abs(c) * A.size[1] + wp.sqrt(wp.max(real(0.0), real(1.0) - c * c)) * A.size[0]
    return wp.dot(f, A.x - T.x) - reach > margin + real(1.0e-9)


@wp.func
def out_of_reach(A: Solid, T: Solid, margin: real) -> bool:
    """Whether the nearest point of a triangle is farther from the middle of a box or disc than its corners or rim reach."""
    a = T.x + frame_axis(T.R, 0) - A.x
    b = T.x + frame_axis(T.R, 1) - A.x
    c = T.x + frame_axis(T.R, 2) - A.x
    k = triangle_weights(a, b, c)
    reach = wp.length(A.size) + A.radius + margin
    if A.kind == CYLINDER:
        reach = wp.sqrt(A.size[0] * A.size[0] + A.size[1] * A.size[1]) + A.radius + margin
    return wp.length_sq(a * k[0] + b * k[1] + c * k[2]) > reach * reach


@wp.func
def on_face(A: Solid, T: Solid, f: vec3, margin: real) -> Manifold:
    """Points of a disc A on the plane of a triangle T, from A to T, if all of them stand on the triangle; else none."""
    plane = Solid()
    t = perpendicular_to(f)
    b = wp.cross(f, t)
    plane.x = T.x
    plane.R = mat33(t[0], b[0], f[0], t[1], b[1], f[1], t[2], b[2], f[2])
    m = plane_rim(plane, A, margin)
    for k in range(m.count):
        q = share_of(T, f, vec3(m.p[k, 0], m.p[k, 1], m.p[k, 2]))
        if wp.min(q[0], wp.min(q[1], q[2])) < real(0.0):
            m.count = 0
            break
    m.n = -f
    return m


@wp.func
def is_wheel(A: Solid) -> bool:
    """Whether it is a disc with a rounded edge."""
    return A.kind == CYLINDER and A.radius > real(0.0)
