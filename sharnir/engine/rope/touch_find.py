"""Which shapes a rope's points touch, and how far off they are at the end of a step."""

import warp as wp

from sharnir.collision.broad import solid
from sharnir.collision.data import MARGIN, MESH, PLANE, Collision, Manifold, Solid, put
from sharnir.collision.signed_distance import Foot, foot
from sharnir.collision.terrain import from_outside, triangle_solid, walk_begin, walk_next
from sharnir.core.spatial import matrix
from sharnir.core.types import real, vec3
from sharnir.engine.rope.data import RopeStep
from sharnir.engine.rope.touch_data import FAR, MOST, NEAR, OPEN, PLACES, SLIDES, TOUCHES, RopeTouch, take_over
from sharnir.engine.rope.touch_pairs import begin_pairs, between
from sharnir.model.model import FIXED


@wp.func
def moved_solid(s: wp.array(dtype=RopeStep), c: wp.array(dtype=Collision), j: int, w: int, part: real) -> Solid:
    """A shape after a part of the step, as its body goes."""
    out = solid(c, j, w)
    b = c[0].shapes.body[j]
    if s[0].bodies.motion[b] != FIXED and part > real(0.0):
        q = s[0].body.q[b, w]
        end = s[0].body.x[b, w] + wp.quat_rotate(q, c[0].shapes.position[j])
        out.x = out.x + (end - out.x) * part
        if part == real(1.0):
            out.R = matrix(q * c[0].shapes.rotation[j])
    return out


@wp.func
def surface_foot(
    s: wp.array(dtype=RopeStep), c: wp.array(dtype=Collision), j: int, A: Solid, x: vec3, reach: real, w: int
) -> Foot:
    """Of a point at a shape; of meshes and height fields the nearest triangle that it may touch from outside."""
    if c[0].shapes.kind[j] < MESH:
        return foot(c, A, x, reach, w)
    out = Foot()
    out.gap = FAR
    ball = Solid()
    ball.kind = 1
    ball.x = x
    ball.R = wp.identity(n=3, dtype=real)
    walk = walk_begin(c, j, ball, vec3(), reach, w)
    walk = walk_next(c, j, walk)
    while walk.over == 0:
        T = triangle_solid(c, j, walk, w)
        near = foot(c, T, x, reach, w)
        m = Manifold()
        m.n = near.n
        if near.gap < reach:
            m = put(m, x - near.n * (near.gap * real(0.5)), near.gap)
        m = from_outside(c, T, ball, vec3(), m, walk.edges, reach)
        if m.count > 0 and m.gap[0] < out.gap:
            out.gap = m.gap[0]
            out.n = m.n
        walk = walk_next(c, j, walk)
    return out


@wp.func
def body_speed(s: wp.array(dtype=RopeStep), b: int, w: int, arm: vec3) -> vec3:
    """Velocity of a body at a point of it, m/s."""
    if s[0].bodies.motion[b] == FIXED:
        return vec3()
    return s[0].body.v[b, w] + wp.cross(s[0].body.w[b, w], arm)


@wp.func
def belt_speed(c: wp.array(dtype=Collision), j: int, w: int) -> vec3:
    """Velocity of a conveyor's surface against its body, m/s."""
    belt = c[0].shapes.surface[j, w]
    if wp.length_sq(belt) > real(0.0):
        return wp.quat_rotate(c[0].rotation[c[0].shapes.body[j], w], belt)
    return vec3()


@wp.func
def surface_speed(s: wp.array(dtype=RopeStep), c: wp.array(dtype=Collision), j: int, w: int, arm: vec3) -> vec3:
    """Velocity of a shape's surface, that of a conveyor included, m/s."""
    return body_speed(s, c[0].shapes.body[j], w, arm) + belt_speed(c, j, w)


@wp.func
def begin_point(
    s: wp.array(dtype=RopeStep), t: wp.array(dtype=RopeTouch), c: wp.array(dtype=Collision), k: int, i: int, w: int
):  # fmt: skip
    """Shapes that a point may touch in this step: those it reaches at its speed; impulses of the last one are taken over."""
    x = s[0].state.position[i, w]
    r = s[0].ropes.radius[k]
    h = s[0].h[w]
    found = int(0)
    for j in range(c[0].shapes.count):
        b = c[0].shapes.body[j]
        if t[0].apart[k, b] == 0:
            centre = c[0].broad.centre[j, w]
            arm = x - s[0].body_state.position[b, w]
            u = (s[0].work.v[i, w] - body_speed(s, b, w, arm)) * h
            reach = r + wp.length(u) + MARGIN + r
            bound = c[0].shapes.bound[j] + reach
            near = Foot()
            near.gap = FAR
            if c[0].shapes.kind[j] == PLANE or wp.length_sq(x - centre) < bound * bound:
                near = surface_foot(s, c, j, solid(c, j, w), x, reach, w)
            e = MOST * i + found
            if near.gap < reach and found == MOST:  # the farthest goes
                t[0].crowded[w] = 1
                e = MOST * i
                for o in range(1, MOST):
                    if t[0].start[MOST * i + o, w] > t[0].start[e, w]:
                        e = MOST * i + o
                if near.gap - r > t[0].start[e, w]:
                    near.gap = FAR
            if near.gap < reach:
                found = wp.min(found + 1, int(MOST))
                t[0].shape[e, w] = j
                t[0].start[e, w] = near.gap - r
                t[0].n[e, w] = near.n
                t[0].arm[e, w] = arm - near.n * near.gap
                t[0].impulse[e, w] = vec3()
                t[0].centre[e, w] = vec3()
                t[0].state[e, w] = OPEN
                for o in range(t[0].kept_count[i, w]):
                    if t[0].kept_shape[MOST * i + o, w] == j:
                        take_over(t, e, MOST * i + o, near.n, w)
                m = c[0].shapes.material[j]
                slip = s[0].state.velocity[i, w] - surface_speed(s, c, j, w, arm)
                slip = slip - near.n * wp.dot(near.n, slip)
                mu = wp.sqrt(t[0].friction[k] * c[0].materials.friction[m, w][0])
                if wp.length_sq(slip) > SLIDES * SLIDES:
                    mu = wp.sqrt(t[0].dynamic[k] * c[0].materials.dynamic[m, w])
                t[0].mu[e, w] = mu
                t[0].bound[e, w] = mu * wp.max(wp.dot(near.n, t[0].centre[e, w]), real(0.0))
    t[0].count[i, w] = found


@wp.func
def begin_touch(s: wp.array(dtype=RopeStep), t: wp.array(dtype=RopeTouch), c: wp.array(dtype=Collision), w: int):
    """All points of contact that ropes may have in this step."""
    for k in range(s[0].ropes.count):
        first = s[0].ropes.first[k]
        n = s[0].state.segments[k, w]
        for i in range(first, first + s[0].ropes.capacity[k] + 1):
            t[0].count[i, w] = 0
        if t[0].touches[k] == 1:
            for j in range(n + 1):
                held = (j == 0 and s[0].ropes.kind[2 * k] != 0) or (j == n and s[0].ropes.kind[2 * k + 1] != 0)
                if not held:
                    begin_point(s, t, c, k, first + j, w)
    begin_pairs(s, t, w)
    live = int(0)
    for i in range(t[0].count.shape[0]):
        for e in range(MOST * i, MOST * i + t[0].count[i, w]):
            t[0].entry[live, w] = e
            live = live + 1
    for p in range(t[0].pairs[w]):
        t[0].entry[live, w] = t[0].base + p
        live = live + 1
    t[0].live[w] = live
    t[0].stale[w] = 1


@wp.func
def entry_speed(s: wp.array(dtype=RopeStep), t: wp.array(dtype=RopeTouch), c: wp.array(dtype=Collision), e: int, w: int) -> vec3:
    """Velocity of a rope against what it touches at a point of contact, m/s."""
    if e >= t[0].base:
        return between(s[0].work.v, t, e - t[0].base, w)
    return s[0].work.v[e / MOST, w] - surface_speed(s, c, t[0].shape[e, w], w, t[0].arm[e, w])


@wp.func
def start_speed(s: wp.array(dtype=RopeStep), t: wp.array(dtype=RopeTouch), c: wp.array(dtype=Collision), e: int, w: int) -> vec3:
    """The same with the rope as the last step left it."""
    if e >= t[0].base:
        return between(s[0].state.velocity, t, e - t[0].base, w)
    return s[0].state.velocity[e / MOST, w] - surface_speed(s, c, t[0].shape[e, w], w, t[0].arm[e, w])


@wp.func
def rope_of(t: wp.array(dtype=RopeTouch), e: int, w: int) -> int:
    """The rope on which the impulse of a point of contact acts."""
    if e >= t[0].base:
        return t[0].rope_of[t[0].pair_b[e - t[0].base, w]]
    return t[0].rope_of[e / MOST]


@wp.func
def end_foot(s: wp.array(dtype=RopeStep), t: wp.array(dtype=RopeTouch), c: wp.array(dtype=Collision), e: int, w: int) -> Foot:
    """How far the middle of a point is from what it may touch, at the end of the step as it stands, and which way is out.

    A point that went farther than its radius is followed on its way, each time as far as it cannot touch yet: what would have
    passed through is told where it met the surface.
    """
    i = e / MOST
    j = t[0].shape[e, w]
    r = s[0].ropes.radius[t[0].rope_of[i]]
    x = s[0].work.r[i, w]
    reach = r + r + MARGIN
    A = moved_solid(s, c, j, w, real(1.0))
    went = x - s[0].state.position[i, w]
    carried = A.x - c[0].broad.centre[j, w]
    u = went - carried
    way = wp.length(u)
    near = Foot()
    near.gap = FAR
    at = x
    if way > r and t[0].start[e, w] > -r:
        part = real(0.0)
        for _p in range(PLACES):
            at = s[0].state.position[i, w] + went * part
            A = moved_solid(s, c, j, w, part)
            near = surface_foot(s, c, j, A, at, way + reach, w)
            gap = near.gap - r
            speed = -wp.dot(u, near.n)
            if gap <= NEAR or speed * (real(1.0) - part) <= gap:
                break
            part = part + gap / speed
        if near.gap - r > NEAR or part == real(0.0):  # it meets nothing on its way, or is there
            A = moved_solid(s, c, j, w, real(1.0))
            near = surface_foot(s, c, j, A, x, way + reach, w)
            at = x
        else:
            near.gap = near.gap + wp.dot(near.n, (x - at) - carried * (real(1.0) - part))
    else:
        near = surface_foot(s, c, j, A, x, reach, w)
    return near


@wp.func
def end_arm(s: wp.array(dtype=RopeStep), t: wp.array(dtype=RopeTouch), c: wp.array(dtype=Collision), e: int, w: int, near: Foot):
    """From the middle of what a point may touch to the place on its surface, at the end of the step."""
    i = e / MOST
    r = s[0].ropes.radius[t[0].rope_of[i]]
    b = c[0].shapes.body[t[0].shape[e, w]]
    return s[0].work.r[i, w] - near.n * wp.min(near.gap, r + r + MARGIN) - s[0].body.x[b, w]


@wp.func
def end_gap(s: wp.array(dtype=RopeStep), t: wp.array(dtype=RopeTouch), c: wp.array(dtype=Collision), e: int, w: int):
    """Gap and normal of a point of contact at the end of the step, as it stands.

    Normal and arm of what touches already are those of the start: pulls have the directions of the start, too, and normals ahead
    of them would drive a rope that runs over a drum, by T φ Δt v/R.
    """
    i = e / MOST
    near = end_foot(s, t, c, e, w)
    t[0].gap[e, w] = near.gap - s[0].ropes.radius[t[0].rope_of[i]]
    if t[0].start[e, w] > TOUCHES:
        t[0].n[e, w] = near.n
        t[0].arm[e, w] = end_arm(s, t, c, e, w, near)
    t[0].speed[e, w] = s[0].work.v[i, w] - surface_speed(s, c, t[0].shape[e, w], w, t[0].arm[e, w])
