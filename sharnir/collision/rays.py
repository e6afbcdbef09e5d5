"""Rays: where each first meets a shape, by closed forms in the shape's own axes; no scratch, no iteration but one.

A convex shape is met on a span of the ray: the part of it that is inside of every bound. Of triangles and height fields the
surface is met, from outside alone, as in `terrain`. Ropes are chains of capsules.
"""

import warp as wp

from sharnir.collision.data import BOX, CAPSULE, CONE, CYLINDER, ELLIPSOID, HEIGHTS, HULL, MESH, PLANE, SPHERE, Collision, vec4
from sharnir.collision.terrain import grid_point
from sharnir.core.spatial import matrix
from sharnir.core.types import EPSILON, inline_less, mat33, quat, real, vec3
from sharnir.model.joint_geometry import frame_from_x

inline_less("sharnir.rays")

NO_HIT = wp.constant(real(1.0e30))
TRIANGLE_MARGIN = wp.constant(
    real(64.0 * EPSILON)
)  # of a triangle: so far beyond its edges it still counts, or rays slip between two
NEWTON_ROUNDS = wp.constant(40)


@wp.struct
class Faces:
    """Planes of hulls: unit normal outwards and its distance from the shape's own origin; `first`: [shape + 1]."""

    plane: wp.array(dtype=vec4)
    first: wp.array(dtype=wp.int32)


@wp.struct
class Lines:
    """Ropes as rays see them, from point to point; `count` is 0 where there are none."""

    count: wp.int32
    first: wp.array(dtype=wp.int32)  # [rope] its first point
    radius: wp.array(dtype=real)  # [rope] m
    segments: wp.array2d(dtype=wp.int32)  # [rope, world] in use
    cut: wp.array2d(dtype=wp.int32)  # [point, world] 1 where nothing is left between this point and the next
    position: wp.array2d(dtype=vec3)  # [point, world] m


@wp.struct
class Span:
    """The part of a line that is inside a convex shape, from `a` to `b` (m along it); empty where a > b. n: outwards, at a."""

    a: real
    b: real
    n: vec3


@wp.func
def nowhere() -> Span:
    """An empty span."""
    out = Span()
    out.a = NO_HIT
    out.b = -NO_HIT
    return out


@wp.func
def everywhere() -> Span:
    """A whole line."""
    out = Span()
    out.a = -NO_HIT
    out.b = NO_HIT
    return out


@wp.func
def cut(s: Span, n: vec3, gap: real, d: vec3) -> Span:
    """What of a span is behind a plane whose outward normal is n; gap: of the line's origin above it."""
    v = wp.dot(n, d)
    if wp.abs(v) < real(1.0e-30):
        if gap > real(0.0):
            return nowhere()
        return s
    t = -gap / v
    if v < real(0.0):
        if t > s.a:
            s.a = t
            s.n = n
    elif t < s.b:
        s.b = t
    return s


@wp.func
def box_span(size: vec3, o: vec3, d: vec3) -> Span:
    """Of a box with these half sizes."""
    s = everywhere()
    for k in range(3):
        n = vec3()
        n[k] = real(1.0)
        s = cut(s, n, o[k] - size[k], d)
        s = cut(s, -n, -o[k] - size[k], d)
    return s


@wp.func
def ball_span(size: vec3, o: vec3, d: vec3) -> Span:
    """Of an ellipsoid with these half axes: a unit ball in axes of its own scale."""
    x = wp.cw_div(o, size)
    v = wp.cw_div(d, size)
    k = wp.dot(v, v)
    t = -wp.dot(x, v) / k
    foot = x + v * t
    h = (real(1.0) - wp.dot(foot, foot)) / k
    if h < real(0.0):
        return nowhere()
    out = Span()
    out.a = t - wp.sqrt(h)
    out.b = t + wp.sqrt(h)
    out.n = wp.normalize(wp.cw_div(x + v * out.a, size))
    return out


@wp.func
def round_span(s: Span, r: real, o: vec3, d: vec3) -> Span:
    """What of a span is inside an endless cylinder about z."""
    k = d[0] * d[0] + d[1] * d[1]
    if k < real(1.0e-30):
        if o[0] * o[0] + o[1] * o[1] > r * r:
            return nowhere()
        return s
    t = -(o[0] * d[0] + o[1] * d[1]) / k
    x = o[0] + d[0] * t
    y = o[1] + d[1] * t
    h = (r * r - x * x - y * y) / k
    if h < real(0.0):
        return nowhere()
    h = wp.sqrt(h)
    if t - h > s.a:
        s.a = t - h
        s.n = wp.normalize(vec3(o[0] + d[0] * s.a, o[1] + d[1] * s.a, real(0.0)))
    s.b = wp.min(s.b, t + h)
    return s


@wp.func
def disc_span(r: real, half: real, o: vec3, d: vec3) -> Span:
    """Of a cylinder with flat ends."""
    z = vec3(real(0.0), real(0.0), real(1.0))
    return round_span(cut(cut(everywhere(), z, o[2] - half, d), -z, -o[2] - half, d), r, o, d)


@wp.func
def cone_span(r: real, half: real, o: vec3, d: vec3) -> Span:
    """Of a cone with its tip at z = half: x² + y² ≤ k² w², w = half − z, between its base and its tip."""
    z = vec3(real(0.0), real(0.0), real(1.0))
    s = cut(cut(everywhere(), z, o[2] - half, d), -z, -o[2] - half, d)
    k = r / (real(2.0) * half)
    k = k * k
    w = half - o[2]
    a = d[0] * d[0] + d[1] * d[1] - k * d[2] * d[2]
    b = o[0] * d[0] + o[1] * d[1] + k * w * d[2]
    c = o[0] * o[0] + o[1] * o[1] - k * w * w
    low = -NO_HIT
    high = NO_HIT
    disc = b * b - a * c
    if wp.abs(a) < real(1.0e-14):  # along its side: a t² drops out
        if b > real(0.0):
            high = real(-0.5) * c / b
        elif b < real(0.0):
            low = real(-0.5) * c / b
    elif disc >= real(0.0):
        root = wp.sqrt(disc)
        if a > real(0.0):
            low = (-b - root) / a
            high = (-b + root) / a
        elif d[2] > real(0.0):  # it leaves through the tip's half of the double cone
            high = wp.min((-b - root) / a, (-b + root) / a)
        else:
            low = wp.max((-b - root) / a, (-b + root) / a)
    elif a > real(0.0):
        return nowhere()
    if low > s.a:
        s.a = low
        p = o + d * low
        s.n = wp.normalize(vec3(p[0], p[1], k * wp.max(half - p[2], real(1.0e-12) * half)))  # up, at its tip
    s.b = wp.min(s.b, high)
    return s


@wp.func
def capsule_span(r: real, half: real, o: vec3, d: vec3) -> Span:
    """Of a capsule along z: its side, or the ball at the end towards which the side is missed."""
    end = vec3(real(0.0), real(0.0), half)
    upper = ball_span(vec3(r, r, r), o - end, d)
    lower = ball_span(vec3(r, r, r), o + end, d)
    out = disc_span(r, half, o, d)
    # the union of these three is convex, so of their ends the first and the last count
    if out.a > out.b or wp.abs(out.n[2]) > real(0.5):  # not through its side: through a ball, or not at all
        out.a = NO_HIT
    if upper.a < wp.min(out.a, upper.b):
        out.a = upper.a
        out.n = upper.n
    if lower.a < wp.min(out.a, lower.b):
        out.a = lower.a
        out.n = lower.n
    out.b = wp.max(out.b, wp.max(upper.b, lower.b))
    return out


@wp.func
def rounded_span(r: real, half: real, edge: real, o: vec3, d: vec3) -> Span:
    """Of a cylinder with rounded edges: Newton steps along the line on the distance to its core, less the rounding.

    That distance is a convex function of the way, so steps from outside never pass the surface.
    """
    s = disc_span(r + edge, half + edge, o, d)
    if s.a > s.b:
        return s
    t = s.a
    for _i in range(NEWTON_ROUNDS):
        p = o + d * t
        rho = wp.sqrt(p[0] * p[0] + p[1] * p[1])
        x = wp.max(rho - r, real(0.0))
        z = wp.max(wp.abs(p[2]) - half, real(0.0))
        far = wp.sqrt(x * x + z * z)
        gap = far - edge
        if gap <= TRIANGLE_MARGIN * (r + half + edge):
            break
        k = x / (wp.max(rho, real(1.0e-30)) * far)
        s.n = vec3(p[0] * k, p[1] * k, wp.where(p[2] < real(0.0), -z, z) / far)
        speed = -wp.dot(s.n, d)
        if speed <= real(0.0) or t > s.b:
            return nowhere()
        t = t + gap / speed
    s.a = t
    return s


@wp.func
def hull_span(faces: wp.array(dtype=Faces), i: int, o: vec3, d: vec3) -> Span:
    """Of a convex hull: behind all its faces."""
    s = everywhere()
    for k in range(faces[0].first[i], faces[0].first[i + 1]):
        p = faces[0].plane[k]
        n = vec3(p[0], p[1], p[2])
        s = cut(s, n, wp.dot(n, o) - p[3], d)
    return s


@wp.struct
class Met:
    """How far along a ray something was met, m (−1: nothing), and its outward normal there in the shape's own axes."""

    far: real
    n: vec3


@wp.func
def triangle_met(a: vec3, b: vec3, c: vec3, o: vec3, d: vec3, best: Met) -> Met:
    """The nearer of what was met so far (`far` is how far one looks) and a triangle, seen from outside."""
    u = b - a
    v = c - a
    n = wp.cross(u, v)
    k = -wp.dot(n, d)
    if k <= real(0.0):
        return best
    r = o - a
    t = wp.dot(r, n)
    if t < real(0.0) or t > best.far * k:
        return best
    q = wp.cross(d, r)
    x = -wp.dot(v, q)
    y = wp.dot(u, q)
    if x < -TRIANGLE_MARGIN * k or y < -TRIANGLE_MARGIN * k or x + y > (real(1.0) + TRIANGLE_MARGIN) * k:
        return best
    best.far = t / k
    best.n = wp.normalize(n)
    return best


@wp.func
def over(x: real) -> real:
    """1/x, finite."""
    if wp.abs(x) < real(1.0e-30):
        return wp.where(x < real(0.0), -NO_HIT, NO_HIT)
    return real(1.0) / x


@wp.func
def mesh_met(s: wp.array(dtype=Collision), i: int, o: vec3, d: vec3, until: real) -> Met:
    """The first triangle of mesh i, if one is met within `until`: down its tree, leaving out boxes that the ray passes by."""
    best = Met()
    best.far = until
    inverse = vec3(over(d[0]), over(d[1]), over(d[2]))
    first = s[0].shapes.first[i]
    at = int(first)
    found = int(0)
    while at < first + s[0].shapes.length[i]:
        a = wp.cw_mul(s[0].shapes.node_low[at] - o, inverse)
        b = wp.cw_mul(s[0].shapes.node_high[at] - o, inverse)
        enter = wp.max(wp.max(wp.min(a[0], b[0]), wp.min(a[1], b[1])), wp.min(a[2], b[2]))
        leave = wp.min(wp.min(wp.max(a[0], b[0]), wp.max(a[1], b[1])), wp.max(a[2], b[2]))
        slack = TRIANGLE_MARGIN * (wp.abs(enter) + real(1.0))
        if enter - slack > wp.min(leave, best.far) or leave + slack < real(0.0):
            at = first + s[0].shapes.node_next[at]
        else:
            leaf = s[0].shapes.node_leaf[at]
            for k in range(leaf // 8, leaf // 8 + leaf % 8):
                before = best.far
                best = triangle_met(
                    s[0].shapes.corners[3 * k], s[0].shapes.corners[3 * k + 1], s[0].shapes.corners[3 * k + 2], o, d, best
                )
                if best.far < before:
                    found = 1
            at = at + 1
    if found == 0:
        best.far = real(-1.0)
    return best


@wp.func
def grid_met(s: wp.array(dtype=Collision), i: int, o: vec3, d: vec3, until: real) -> Met:
    """The first triangle of height field i: from cell to cell under the ray."""
    best = Met()
    nx = s[0].shapes.columns[i] - 1
    ny = s[0].shapes.length[i] - 1
    half = s[0].shapes.size[i]
    box = box_span(half + vec3(real(0.0), real(0.0), real(1.0e-6)), o, d)
    t = wp.max(box.a, real(0.0))
    end = wp.min(box.b, until)
    wide = vec3(real(2.0) * half[0] / real(nx), real(2.0) * half[1] / real(ny), real(0.0))
    p = o + d * t
    x = wp.clamp(int(wp.floor((p[0] + half[0]) / wide[0])), 0, nx - 1)
    y = wp.clamp(int(wp.floor((p[1] + half[1]) / wide[1])), 0, ny - 1)
    right = wp.where(d[0] > real(0.0), 1, 0)
    up = wp.where(d[1] > real(0.0), 1, 0)
    going = wp.where(t <= end, 1, 0)
    while going == 1:
        tx = NO_HIT
        ty = NO_HIT
        if wp.abs(d[0]) > real(1.0e-30):
            tx = (real(x + right) * wide[0] - half[0] - o[0]) / d[0]
        if wp.abs(d[1]) > real(1.0e-30):
            ty = (real(y + up) * wide[1] - half[1] - o[1]) / d[1]
        leave = wp.min(tx, ty)
        a = grid_point(s, i, x, y)
        b = grid_point(s, i, x + 1, y)
        c = grid_point(s, i, x + 1, y + 1)
        e = grid_point(s, i, x, y + 1)
        top = wp.max(wp.max(a[2], b[2]), wp.max(c[2], e[2]))
        if wp.min(o[2] + d[2] * t, o[2] + d[2] * wp.min(leave, end)) <= top + real(1.0e-6):
            best.far = until
            best = triangle_met(a, b, c, o, d, best)
            best = triangle_met(a, c, e, o, d, best)
            if best.far < until:
                return best
        t = leave
        if tx < ty:
            x = x + 2 * right - 1
        else:
            y = y + 2 * up - 1
        if t > end or x < 0 or y < 0 or x >= nx or y >= ny:
            going = 0
    best.far = real(-1.0)
    return best


@wp.func
def entered(span: Span, base: real, d: vec3, until: real) -> Met:
    """Where a ray comes into a span that was measured from `base` on; where it starts inside, at once, with −d for a normal."""
    out = Met()
    out.far = real(-1.0)
    a = span.a + base
    if span.a > span.b or span.b + base < real(0.0) or a > until:
        return out
    out.far = wp.max(a, real(0.0))
    out.n = span.n
    if a <= real(0.0):
        out.n = -d
    return out


@wp.func
def met(s: wp.array(dtype=Collision), faces: wp.array(dtype=Faces), i: int, o: vec3, d: vec3, until: real) -> Met:
    """Where a ray first meets shape i, all in the shape's own axes."""
    kind = s[0].shapes.kind[i]
    if kind == MESH:
        return mesh_met(s, i, o, d, until)
    if kind == HEIGHTS:
        return grid_met(s, i, o, d, until)
    size = s[0].shapes.size[i]
    r = s[0].shapes.radius[i]
    base = real(0.0)  # closed forms are exact where the line is nearest to the shape
    if kind != PLANE:
        base = -wp.dot(o, d)
    x = o + d * base
    span = nowhere()
    if kind == PLANE:
        span = cut(everywhere(), vec3(real(0.0), real(0.0), real(1.0)), x[2], d)
    elif kind == SPHERE:
        span = ball_span(vec3(r, r, r), x, d)
    elif kind == BOX:
        span = box_span(size, x, d)
    elif kind == CAPSULE:
        span = capsule_span(r, size[1], x, d)
    elif kind == CYLINDER:
        if r > real(0.0):
            span = rounded_span(size[0], size[1], r, x, d)
        else:
            span = disc_span(size[0], size[1], x, d)
    elif kind == CONE:
        span = cone_span(size[0], size[1], x, d)
    elif kind == ELLIPSOID:
        span = ball_span(size, x, d)
    elif kind == HULL:
        span = hull_span(faces, i, x, d)
    return entered(span, base, d, until)


@wp.func
def line_met(half: vec3, r: real, o: vec3, d: vec3, until: real) -> Met:
    """Where a ray first meets the capsule of radius r about the line from −half to half, all in the same axes."""
    long = wp.length(half)
    along = vec3(real(0.0), real(0.0), real(1.0))
    if long > real(1.0e-30):
        along = half / long
    F = frame_from_x(along)
    own = wp.matrix_from_cols(vec3(F[0, 1], F[1, 1], F[2, 1]), vec3(F[0, 2], F[1, 2], F[2, 2]), along)
    base = -wp.dot(o, d)
    into = wp.transpose(own)
    found = entered(capsule_span(r, long, into * (o + d * base), into * d), base, into * d, until)
    found.n = own * found.n
    return found


@wp.func
def passes(o: vec3, d: vec3, until: real, bound: real) -> bool:
    """Whether a ray stays clear of a ball about the origin."""
    t = wp.clamp(-wp.dot(o, d), real(0.0), until)
    return wp.length_sq(o + d * t) > bound * bound


@wp.kernel(module="sharnir.rays", enable_backward=False)
def trace_many(
    s: wp.array(dtype=Collision),
    faces: wp.array(dtype=Faces),
    lines: wp.array(dtype=Lines),
    world: wp.array(dtype=wp.int32),
    origin: wp.array(dtype=vec3),
    direction: wp.array(dtype=vec3),
    length: wp.array(dtype=real),
    mask: int,
    far: wp.array(dtype=real),
    shape: wp.array(dtype=wp.int32),
    normal: wp.array(dtype=vec3),
) -> None:
    """What each of many rays meets first, from anywhere; a thread a ray. Ropes are numbered after the shapes, in group 1."""
    q = wp.tid()
    w = world[q]
    d = direction[q]
    until = length[q]
    best = int(-1)
    n = vec3()
    for i in range(s[0].shapes.count):
        if s[0].shapes.group[i] & mask != 0:
            b = s[0].shapes.body[i]
            turn = s[0].rotation[b, w]
            o = origin[q] - s[0].position[b, w] - wp.quat_rotate(turn, s[0].shapes.position[i])
            if s[0].shapes.kind[i] == PLANE or not passes(o, d, until, s[0].shapes.bound[i]):
                own = turn * s[0].shapes.rotation[i]
                found = met(s, faces, i, wp.quat_rotate_inv(own, o), wp.quat_rotate_inv(own, d), until)
                if found.far >= real(0.0) and (found.far < until or best < 0):
                    until = found.far
                    best = i
                    n = wp.quat_rotate(own, found.n)
    for k in range(lines[0].count):
        last = lines[0].first[k] + lines[0].segments[k, w]
        for j in range(lines[0].first[k], wp.where(mask & 1 != 0, last, 0)):
            half = (lines[0].position[j + 1, w] - lines[0].position[j, w]) * real(0.5)
            o = origin[q] - lines[0].position[j, w] - half
            if lines[0].cut[j, w] == 0 and not passes(o, d, until, wp.length(half) + lines[0].radius[k]):
                found = line_met(half, lines[0].radius[k], o, d, until)
                if found.far >= real(0.0) and (found.far < until or best < 0):
                    until = found.far
                    best = s[0].shapes.count + k
                    n = found.n
    far[q] = wp.where(best < 0, real(-1.0), until)
    shape[q] = best
    normal[q] = n


# ---- rays that start in one point of a body -----------------------------------------------------------------------------------


@wp.struct
class Eye:
    """A fan of rays from a point of a body: a lidar's, a depth camera's. Rays stand in tiles, of those that look alike."""

    body: wp.int32
    point: vec3  # m, from the body's centre of mass, body axes
    turn: quat  # of the eye's own axes in the body's
    least: real  # of the value: nearer is −∞
    most: real  # farther is ∞
    direction: wp.array(dtype=vec3)  # [ray] unit, the eye's axes
    scale: wp.array(dtype=real)  # [ray] of the value, a metre along the ray
    tile: wp.array(dtype=wp.int32)  # [tile + 1] into `order`
    order: wp.array(dtype=wp.int32)  # [ray]
    axis: wp.array(dtype=vec3)  # [tile] unit, about which its rays stand
    cosine: wp.array(dtype=real)  # [tile] of the widest angle to it
    sine: wp.array(dtype=real)
    seen: wp.array(dtype=wp.int32)  # [shape, then rope]
    value: wp.array2d(dtype=real)  # [ray, world]
    shape: wp.array2d(dtype=wp.int32)  # [ray, world] that was met, ropes numbered after shapes; −1: none


@wp.func
def beside(e: wp.array(dtype=Eye), tile: int, v: vec3, bound: real) -> bool:
    """Whether no ray of a tile comes near a ball: v is its middle, in the eye's axes."""
    far = wp.length(v)
    if far <= bound or e[0].cosine[tile] < real(0.0):  # inside the ball, or looking everywhere
        return False
    sine = bound / far
    cosine = wp.sqrt(real(1.0) - sine * sine)
    return wp.dot(v, e[0].axis[tile]) < (cosine * e[0].cosine[tile] - sine * e[0].sine[tile]) * far - real(1.0e-9) * far


@wp.func
def see_ropes(lines: wp.array(dtype=Lines), e: wp.array(dtype=Eye), tile: int, x: vec3, axes: mat33, shapes: int, w: int) -> None:
    """The nearer of what the rays of a tile met so far and the ropes; x: where they start, axes: the eye's own."""
    for i in range(lines[0].count):
        r = lines[0].radius[i]
        last = lines[0].first[i] + lines[0].segments[i, w]
        for j in range(lines[0].first[i], wp.where(e[0].seen[shapes + i] != 0, last, 0)):
            half = (lines[0].position[j + 1, w] - lines[0].position[j, w]) * real(0.5)
            o = x - lines[0].position[j, w] - half
            bound = wp.length(half) + r
            if lines[0].cut[j, w] == 0 and not beside(e, tile, -(wp.transpose(axes) * o), bound):
                for k in range(e[0].tile[tile], e[0].tile[tile + 1]):
                    q = e[0].order[k]
                    d = axes * e[0].direction[q]
                    until = e[0].value[q, w]
                    if not passes(o, d, until, bound):
                        found = line_met(half, r, o, d, until)
                        if found.far >= real(0.0) and (found.far < until or e[0].shape[q, w] < 0):
                            e[0].value[q, w] = found.far
                            e[0].shape[q, w] = shapes + i


@wp.kernel(module="sharnir.rays", enable_backward=False)
def trace_eye(
    s: wp.array(dtype=Collision), faces: wp.array(dtype=Faces), lines: wp.array(dtype=Lines), e: wp.array(dtype=Eye), first: int
) -> None:  # fmt: skip
    """What the rays of an eye meet first; a thread a tile and world, from `first` on: shapes beside a tile cost it one test."""
    tile, at = wp.tid()
    w = first + at
    q0 = e[0].tile[tile]
    q1 = e[0].tile[tile + 1]
    for k in range(q0, q1):
        q = e[0].order[k]
        e[0].value[q, w] = e[0].most / e[0].scale[q]
        e[0].shape[q, w] = -1
    turn = s[0].rotation[e[0].body, w]
    x = s[0].position[e[0].body, w] + wp.quat_rotate(turn, e[0].point)
    axes = matrix(turn * e[0].turn)
    for i in range(s[0].shapes.count):
        if e[0].seen[i] != 0:
            b = s[0].shapes.body[i]
            held = s[0].rotation[b, w]
            c = s[0].position[b, w] + wp.quat_rotate(held, s[0].shapes.position[i]) - x
            plane = s[0].shapes.kind[i] == PLANE
            bound = s[0].shapes.bound[i]
            if plane or not beside(e, tile, wp.transpose(axes) * c, bound):
                own = wp.transpose(matrix(held * s[0].shapes.rotation[i]))
                o = -(own * c)
                into = own * axes
                for k in range(q0, q1):
                    q = e[0].order[k]
                    d = into * e[0].direction[q]
                    until = e[0].value[q, w]
                    if plane or not passes(o, d, until, bound):
                        found = met(s, faces, i, o, d, until)
                        if found.far >= real(0.0) and (found.far < until or e[0].shape[q, w] < 0):
                            e[0].value[q, w] = found.far
                            e[0].shape[q, w] = i
    see_ropes(lines, e, tile, x, axes, s[0].shapes.count, w)
    for k in range(q0, q1):
        q = e[0].order[k]
        far = e[0].value[q, w] * e[0].scale[q]
        if e[0].shape[q, w] < 0:
            far = real(wp.inf)
        elif far < e[0].least:
            far = -real(wp.inf)
        e[0].value[q, w] = far
