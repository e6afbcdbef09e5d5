"""The table of pair functions, and a pair that moves during a step."""

import warp as wp

from sharnir.collision.boxes import box_box, capsule_box, sphere_box
from sharnir.collision.contact_cache import thrown
from sharnir.collision.data import (
    BOX,
    CAPSULE,
    CONE,
    CYLINDER,
    ELLIPSOID,
    HULL,
    MARGIN,
    PLANE,
    SPHERE,
    TRIANGLE,
    Collision,
    Manifold,
    Solid,
    put,
)
from sharnir.collision.disc import is_beyond_triangle, is_wheel, on_face, out_of_reach
from sharnir.collision.faces import convex_convex, plane_ellipsoid, plane_hull, plane_rim
from sharnir.collision.round import capsule_capsule, plane_box, plane_capsule, plane_sphere, sphere_capsule, sphere_sphere
from sharnir.collision.terrain import face_normal
from sharnir.core.types import real, vec3
from sharnir.model.model import DYNAMIC

SWEEP_PLACES = wp.constant(16)  # places at which a moving pair is looked at, at most
SWEEP_ARRIVED = wp.constant(real(1.0e-5))  # m: it has arrived


@wp.func
def manifold(s: wp.array(dtype=Collision), A: Solid, B: Solid, margin: real, last: int, w: int) -> Manifold:
    """Points of two convex shapes whose gap is below the margin, by the literal table: kind of A ≤ kind of B."""
    if A.kind == PLANE:
        if B.kind == SPHERE:
            return plane_sphere(A, B, margin)
        if B.kind == CAPSULE:
            return plane_capsule(A, B, margin)
        if B.kind == BOX:
            return plane_box(A, B, margin)
        if B.kind == CYLINDER or B.kind == CONE:
            return plane_rim(A, B, margin)
        if B.kind == ELLIPSOID:
            return plane_ellipsoid(A, B, s, margin)
        if B.kind >= HULL:
            return plane_hull(A, B, s, margin)
    if A.kind == SPHERE:
        if B.kind == SPHERE:
            return sphere_sphere(A, B, margin)
        if B.kind == CAPSULE:
            return sphere_capsule(A, B, margin)
        if B.kind == BOX:
            return sphere_box(A, B, margin)
    if A.kind == CAPSULE:
        if B.kind == CAPSULE:
            return capsule_capsule(A, B, margin)
        if B.kind == BOX:
            return capsule_box(A, B, margin)
    if A.kind == BOX and B.kind == BOX:
        return box_box(A, B, margin, last)
    if B.kind == TRIANGLE and (A.kind == BOX or is_wheel(A)):
        f = face_normal(B)
        if is_beyond_triangle(A, B, f, margin):
            return Manifold()
        if is_wheel(A) and wp.dot(f, A.x - B.x) > real(0.0):
            m = on_face(A, B, f, margin)
            if m.count > 0:
                return m
        if out_of_reach(A, B, margin):
            return Manifold()
    if B.kind >= CYLINDER:
        return convex_convex(s, A, B, margin, w)
    return Manifold()


@wp.func
def least_gap(m: Manifold) -> real:
    """Of the deepest point; without points, how far the two are apart at least."""
    if m.count == 0:
        return m.apart
    out = m.gap[0]
    for k in range(1, 4):
        if k < m.count:
            out = wp.min(out, m.gap[k])
    return out


@wp.func
def relative_velocity_at(s: wp.array(dtype=Collision), a: int, b: int, x: vec3, w: int) -> vec3:
    """Velocity of body b relative to body a at a point, m/s."""
    at_b = s[0].velocity[b, w] + wp.cross(s[0].spin[b, w], x - s[0].position[b, w])
    return at_b - s[0].velocity[a, w] - wp.cross(s[0].spin[a, w], x - s[0].position[a, w])


@wp.func
def closing(s: wp.array(dtype=Collision), a: int, b: int, m: Manifold, w: int) -> Manifold:
    """The points that are within the margin, or close in this step; a blow at one may close another twice as fast."""
    out = Manifold()
    out.n = m.n
    out.feature = m.feature
    for k in range(m.count):
        p = vec3(m.p[k, 0], m.p[k, 1], m.p[k, 2])
        own = real(2.0) * s[0].dt[0] * wp.min(wp.dot(m.n, relative_velocity_at(s, a, b, p, w)), real(0.0))
        if m.gap[k] < MARGIN + thrown(s, a, b, w) - own:
            out = put(out, p, m.gap[k])
    return out


@wp.func
def landed(m: Manifold, u: vec3, t: real, share: real) -> Manifold:
    """Points found after B has moved by u t, as they are before: the gap is the way along the normal that is left until then.

    `share`: 1 puts them on B where it is now, 0 on A, ½ midway: on what is dynamic.
    """
    out = Manifold()
    out.n = m.n
    out.feature = m.feature
    out.when = t
    way = wp.dot(u, m.n) * t
    more = -wp.dot(u, m.n) * (real(1.0) - t)  # a blow at one of them may close another before the end of the step
    for k in range(m.count):
        if m.gap[k] < MARGIN + more:
            out = put(out, vec3(m.p[k, 0], m.p[k, 1], m.p[k, 2]) - u * (t * share), m.gap[k] - way)
    return out


@wp.func
def wheel_on_plane(
    s: wp.array(dtype=Collision), a: int, b: int, A: Solid, B: Solid, bound: real, w: int
) -> tuple[Manifold, bool]:
    """`collide_pair` of a plane and a disc, where a quick test decides it; and whether it does."""
    dt = s[0].dt[0]
    margin = wp.length(relative_velocity_at(s, a, b, B.x, w)) * dt + wp.length(s[0].spin[b, w] - s[0].spin[a, w]) * bound * dt
    if margin <= MARGIN:
        return plane_rim(A, B, MARGIN), True
    m = plane_rim(A, B, margin + MARGIN)
    if m.count > 0 and least_gap(m) < MARGIN:
        return closing(s, a, b, m, w), True
    return m, False


@wp.func
def collide_pair(
    s: wp.array(dtype=Collision), a: int, b: int, A: Solid, B: Solid, bound_a: real, bound_b: real, last: int, w: int
) -> Manifold:  # fmt: skip
    """Points at which two shapes (kind of A ≤ kind of B) of bodies a and b touch or will touch in this step.

    Slow ones: points within the margin. Fast ones that are farther off: B is moved along its way relative to A, each time as far
    as the two cannot touch yet (conservative advancement), until they touch or it is over: so the normal is that of the place
    where they meet, and what passes is not caught. Where rotation moves them, points that close by their own speed count too.
    """
    dt = s[0].dt[0]
    small = wp.where(bound_a > real(0.0) and bound_a < bound_b, A.x, B.x)  # where they can meet; of a plane the bound is 0
    u = relative_velocity_at(s, a, b, small, w) * dt
    turn = wp.length(s[0].spin[b, w] - s[0].spin[a, w]) * wp.where(bound_a > real(0.0), wp.min(bound_a, bound_b), bound_b) * dt
    way = wp.length(u)
    margin = MARGIN
    hit = thrown(s, a, b, w)
    fast = way + turn + hit > MARGIN
    if fast:
        margin = way + turn + hit + MARGIN
    m = Manifold()
    reach = bound_a + bound_b + margin
    if A.kind != PLANE and wp.length_sq(B.x - A.x) > reach * reach:
        return m
    moved = B
    begin = Manifold()
    t = real(0.0)
    for k in range(SWEEP_PLACES):
        m = manifold(s, A, moved, margin, last, w)
        if not fast or (m.count == 0 and m.apart == real(0.0)):
            break
        gap = least_gap(m)
        if k == 0:
            begin = m
            if m.count > 0 and gap < MARGIN:
                return closing(s, a, b, m, w)
        if m.count > 0 and (gap < SWEEP_ARRIVED or k == SWEEP_PLACES - 1):
            share = wp.where(s[0].shapes.motion[a] == DYNAMIC, real(0.5), real(1.0))
            if s[0].shapes.motion[b] != DYNAMIC:
                share = real(0.0)
            return landed(m, u, t, share)
        speed = -wp.dot(u, m.n)
        if speed * (real(1.0) - t) <= gap:
            m.count = 0
            break
        t = t + wp.max(gap, SWEEP_ARRIVED) / speed
        moved.x = B.x + u * t
    if fast:
        if turn > MARGIN or hit > MARGIN:
            return closing(s, a, b, begin, w)
        m.count = 0
    return m
