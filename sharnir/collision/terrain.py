"""Triangles of meshes and height fields: which are near a shape, and how they touch it.

Surfaces are felt from outside alone. A contact at an edge or corner that does not stick out has the triangle's own normal: what
slides over a flat or hollow surface is not caught by the edges within.
"""

import warp as wp

from sharnir.collision.broad import half_box
from sharnir.collision.convex import support
from sharnir.collision.data import MESH, TRIANGLE, Collision, Manifold, Solid, frame_axis, put
from sharnir.core.types import mat33, real, vec3

INSIDE = wp.constant(real(1.0e-3))  # of a triangle: a point so far from its edges is within
FACE = wp.constant(real(0.9999))  # cosine: a normal is meant to be that of the face,
EXACT_FACE = wp.constant(real(0.99999999))  # and is


@wp.struct
class Walk:
    """Where one is among the triangles of a shape that are near a box in its axes; and the present triangle."""

    low: vec3
    high: vec3
    at: wp.int32  # node of the tree, or triangle of the grid
    end: wp.int32
    leaf: wp.int32  # triangles of a leaf that are left: from, until
    until: wp.int32
    cells: wp.vec4i  # of a grid: i from, i until, j from, j until
    a: vec3
    b: vec3
    c: vec3
    edges: wp.int32  # as `ShapeTable.edges`
    over: wp.int32


@wp.func
def walk_begin(s: wp.array(dtype=Collision), i: int, B: Solid, u: vec3, more: real, w: int) -> Walk:
    """All triangles of shape i near B, which moves by u in the step; `more`: margin, and what its rotation adds."""
    out = Walk()
    R = s[0].broad.frame[i, w]
    c = wp.transpose(R) * (B.x - s[0].broad.centre[i, w])
    d = wp.transpose(R) * u
    half = half_box(B.kind, B.size, B.radius, wp.transpose(R) * B.R) + vec3(more, more, more)
    out.low = wp.min(c, c + d) - half
    out.high = wp.max(c, c + d) + half
    out.at = s[0].shapes.first[i]
    out.end = out.at + s[0].shapes.length[i]
    if s[0].shapes.kind[i] != MESH:
        nx = s[0].shapes.columns[i]
        ny = s[0].shapes.length[i]
        h = s[0].shapes.size[i]
        kx = real(nx - 1) / (real(2.0) * h[0])
        ky = real(ny - 1) / (real(2.0) * h[1])
        i0 = int(wp.floor(wp.clamp((out.low[0] + h[0]) * kx, real(-1.0), real(nx))))
        i1 = int(wp.floor(wp.clamp((out.high[0] + h[0]) * kx, real(-1.0), real(nx))))
        j0 = int(wp.floor(wp.clamp((out.low[1] + h[1]) * ky, real(-1.0), real(ny))))
        j1 = int(wp.floor(wp.clamp((out.high[1] + h[1]) * ky, real(-1.0), real(ny))))
        out.cells = wp.vec4i(wp.max(i0, 0), wp.min(i1, nx - 2), wp.max(j0, 0), wp.min(j1, ny - 2))
        wide = wp.max(0, out.cells[1] - out.cells[0] + 1)
        out.at = 0
        out.end = 2 * wide * wp.max(0, out.cells[3] - out.cells[2] + 1)
    return out


@wp.func
def walk_next(s: wp.array(dtype=Collision), i: int, k: Walk) -> Walk:
    """On to the next triangle."""
    if s[0].shapes.kind[i] == MESH:
        return next_in_mesh(s, i, k)
    return next_in_grid(s, i, k)


@wp.func
def next_in_mesh(s: wp.array(dtype=Collision), i: int, k: Walk) -> Walk:
    """The next triangle of the leaf, or of the next leaf whose box meets the walk's."""
    first = s[0].shapes.first[i]
    while k.leaf >= k.until and k.at < k.end:
        a = s[0].shapes.node_low[k.at]
        b = s[0].shapes.node_high[k.at]
        apart = a[0] > k.high[0] or b[0] < k.low[0] or a[1] > k.high[1] or b[1] < k.low[1] or a[2] > k.high[2] or b[2] < k.low[2]
        if apart:
            k.at = first + s[0].shapes.node_next[k.at]
        else:
            leaf = s[0].shapes.node_leaf[k.at]
            k.leaf = leaf // 8
            k.until = leaf // 8 + leaf % 8
            k.at = k.at + 1
    if k.leaf >= k.until:
        k.over = 1
        return k
    k.a = s[0].shapes.corners[3 * k.leaf]
    k.b = s[0].shapes.corners[3 * k.leaf + 1]
    k.c = s[0].shapes.corners[3 * k.leaf + 2]
    k.edges = s[0].shapes.edges[k.leaf]
    k.leaf = k.leaf + 1
    return k


@wp.func
def grid_point(s: wp.array(dtype=Collision), i: int, x: int, y: int) -> vec3:
    """Sample (x, y) of a height field, in its axes; outside, the nearest one's height."""
    nx = s[0].shapes.columns[i]
    ny = s[0].shapes.length[i]
    h = s[0].shapes.size[i]
    z = s[0].shapes.heights[s[0].shapes.first[i] + wp.clamp(x, 0, nx - 1) * ny + wp.clamp(y, 0, ny - 1)]
    return vec3(real(2 * x) * h[0] / real(nx - 1) - h[0], real(2 * y) * h[1] / real(ny - 1) - h[1], z)


@wp.func
def sticks_out(s: wp.array(dtype=Collision), i: int, x: int, y: int, n: vec3, p: vec3) -> int:
    """Whether the surface bends down towards the sample (x, y) of a neighbour, or ends; n: not unit, of the triangle at p."""
    if x < 0 or y < 0 or x >= s[0].shapes.columns[i] or y >= s[0].shapes.length[i]:
        return 1
    d = grid_point(s, i, x, y) - p
    return wp.where(wp.dot(n, d) < real(-1.0e-3) * wp.length(n) * wp.length(d), 1, 0)


@wp.func
def next_in_grid(s: wp.array(dtype=Collision), i: int, k: Walk) -> Walk:
    """The next of the two triangles of each cell that are not all below the walk's box."""
    wide = k.cells[1] - k.cells[0] + 1
    found = int(0)
    while found == 0 and k.at < k.end:
        cell = k.at // 2
        x = k.cells[0] + cell % wide
        y = k.cells[2] + cell // wide
        upper = k.at % 2
        k.at = k.at + 1
        k.a = grid_point(s, i, x, y)
        k.b = grid_point(s, i, x + 1, y + upper)
        k.c = grid_point(s, i, x + 1 - upper, y + 1)
        if wp.max(k.a[2], wp.max(k.b[2], k.c[2])) >= k.low[2]:
            found = 1
            n = wp.cross(k.b - k.a, k.c - k.a)
            e0 = sticks_out(s, i, x + upper, y - 1 + upper, n, k.a)
            e1 = sticks_out(s, i, x + 2 - upper, y + 1 + upper, n, k.a)
            e2 = sticks_out(s, i, x - upper, y + 1 - upper, n, k.a)
            k.edges = e0 + 2 * e1 + 4 * e2 + 8 * wp.max(e0, e2) + 16 * wp.max(e0, e1) + 32 * wp.max(e1, e2)
    if found == 0:
        k.over = 1
    return k


@wp.func
def triangle_solid(s: wp.array(dtype=Collision), i: int, k: Walk, w: int) -> Solid:
    """The walk's triangle, in the world."""
    out = Solid()
    R = s[0].broad.frame[i, w]
    middle = (k.a + k.b + k.c) / real(3.0)
    a = R * (k.a - middle)
    b = R * (k.b - middle)
    c = R * (k.c - middle)
    out.kind = int(TRIANGLE)
    out.x = s[0].broad.centre[i, w] + R * middle
    out.R = mat33(a[0], b[0], c[0], a[1], b[1], c[1], a[2], b[2], c[2])
    out.size = vec3(wp.max(wp.length(a), wp.max(wp.length(b), wp.length(c))), real(0.0), real(0.0))
    return out


@wp.func
def face_normal(T: Solid) -> vec3:
    """Unit, outwards; 0 of a triangle without area."""
    return wp.normalize(wp.cross(frame_axis(T.R, 1) - frame_axis(T.R, 0), frame_axis(T.R, 2) - frame_axis(T.R, 0)))


@wp.func
def share_of(T: Solid, f: vec3, p: vec3) -> vec3:
    """Weights of the corners at a point's foot on the triangle's plane; f: its unit normal."""
    a = frame_axis(T.R, 0)
    u = frame_axis(T.R, 1) - a
    v = frame_axis(T.R, 2) - a
    d = p - T.x - a
    area = wp.dot(f, wp.cross(u, v))
    y = wp.dot(f, wp.cross(d, v)) / area
    z = wp.dot(f, wp.cross(u, d)) / area
    return vec3(real(1.0) - y - z, y, z)


@wp.func
def may_tilt(T: Solid, f: vec3, p: vec3, edges: int) -> bool:
    """Whether p is at an edge or corner that sticks out."""
    q = share_of(T, f, p)
    a = q[0] < INSIDE
    b = q[1] < INSIDE
    c = q[2] < INSIDE
    if a and b:
        return edges & 32 != 0
    if b and c:
        return edges & 8 != 0
    if a and c:
        return edges & 16 != 0
    if c:
        return edges & 1 != 0
    if a:
        return edges & 2 != 0
    if b:
        return edges & 4 != 0
    return False


@wp.func
def from_outside(s: wp.array(dtype=Collision), T: Solid, B: Solid, u: vec3, m: Manifold, edges: int, margin: real) -> Manifold:
    """Points of a triangle and B, which moves by u in this step, as the surface allows it: as is, or with the face's normal."""
    f = face_normal(T)
    if m.count == 0 or wp.dot(f, B.x - T.x) < real(0.0):
        m.count = 0
        return m
    c = wp.dot(f, m.n)
    if c > EXACT_FACE or (c > FACE and m.when == real(0.0)):
        m.n = f
        return m
    least = m.gap[0]
    at = vec3(m.p[0, 0], m.p[0, 1], m.p[0, 2])
    foot = at - m.n * (real(0.5) * least)
    if m.when > real(0.0):
        foot = at + u * m.when
    if (c > real(0.3) or (c >= real(0.0) and least > real(0.0))) and may_tilt(T, f, foot, edges):
        return m
    out = Manifold()
    out.n = f
    x = support(s, B, -f) - f * B.radius
    gap = wp.dot(f, x - T.x)
    closes = -wp.dot(f, u)
    t = real(0.0)
    if gap > margin and gap < closes:
        t = gap / closes
    q = share_of(T, f, x + u * t)
    if gap < wp.max(margin, closes) and wp.min(q[0], wp.min(q[1], q[2])) > -INSIDE:
        out = put(out, x - f * wp.where(t > real(0.0), real(0.0), real(0.5) * gap), gap)
    return out
