"""Contact detection of a step: `collide` for a world, `collide_all` for all of them.

Pairs come in order, from this step and from the last, so the two lists are merged; within a pair a new point takes over the
impulse of the nearest old one.
"""

from collections.abc import Collection
from typing import Any

import warp as wp

from sharnir.collision.broad import find_pairs, note_joints, solid
from sharnir.collision.contact_cache import (
    far_apart,
    keep_cached_points,
    look_at_bodies,
    opened,
    stand_still,
    thrown,
    wake_touched,
)
from sharnir.collision.data import (
    BOX,
    CYLINDER,
    MARGIN,
    MESH,
    PLANE,
    POINTS_A_PAIR,
    SPHERE,
    Collision,
    Manifold,
    frame_axis,
    mat83,
)
from sharnir.collision.disc import is_beyond_triangle, is_wheel
from sharnir.collision.pairs import collide_pair, relative_velocity_at, wheel_on_plane
from sharnir.collision.round import ball_between, perpendicular_to
from sharnir.collision.surface import mix_materials, write_belt, write_mixed, write_tyre
from sharnir.collision.terrain import Walk, face_normal, from_outside, triangle_solid, walk_begin, walk_next
from sharnir.core.spatial import turned
from sharnir.core.trimming import Absent
from sharnir.core.types import compile_quickly, copied, real, trimmed_module, vec3

compile_quickly("sharnir.collision")

SAME_POINT = wp.constant(real(0.1))  # of the shape's size: so far a point may have moved on it in a step
PAIR_ROOM = wp.constant(POINTS_A_PAIR)
LIKE = wp.constant(real(0.999))  # cosine of the angle up to which points on triangles share their four
MERGED = wp.constant(real(0.01))  # of the shape's size: points on triangles that are nearer are one
TOUCHING_GAP = wp.constant(real(1.0e-5))  # m: a pair touches at this gap


@wp.func
def collide(s: wp.array(dtype=Collision), w: int) -> None:
    """Find all points of contact of a world: positions, velocities → contacts."""
    if s[0].contacts.resting[w] == 1:
        return
    keep_last(s, w)
    note_joints(s, w)
    slept = look_at_bodies(s, w)
    find_pairs(s, w)
    s[0].contacts.lost[w] = s[0].broad.lost[w]
    cursor = int(0)
    for k in range(s[0].broad.count[w]):
        i = s[0].broad.a[k, w]
        j = s[0].broad.b[k, w]
        cursor = at_pair(s, i, j, cursor, w)
        old = int(-1)
        if cursor < s[0].kept.pairs[w]:
            if s[0].kept.a[cursor, w] == i and s[0].kept.b[cursor, w] == j:
                old = cursor
        if not stand_still(s, i, j, w) or thrown(s, s[0].shapes.body[i], s[0].shapes.body[j], w) > real(0.0):
            if not far_apart(s, i, j, w):
                if not touch_ball(s, k, old, w):
                    touch(s, k, old, w)
        elif old >= 0:  # two that stood still without a point have none now
            if s[0].kept.first[old, w] == s[0].contacts.count[w]:
                keep_cached_points(s, old, w)
            else:
                touch(s, k, old, w)
    if slept > 0:
        wake_touched(s, w)


@wp.kernel(module="sharnir.collision", enable_backward=False)
def collide_all(s: wp.array(dtype=Collision), first: int) -> None:
    """One thread a world, from `first` on."""
    collide(s, first + wp.tid())


KIND_NAMES = ("PLANE", "SPHERE", "CAPSULE", "BOX", "CYLINDER", "CONE", "ELLIPSOID", "HULL", "TRIANGLE", "MESH", "HEIGHTS")
trimmed_module("sharnir.collision_round", Absent(kinds=KIND_NAMES[KIND_NAMES.index("BOX") :], false=("is_wheel",)))
collide_round = copied(collide_all, "sharnir.collision_round")
"""The same of planes, spheres and capsules alone, which compiles in a third of the time."""
BLOCK_THREADS = 32  # threads of a block of a GPU: one warp, so that few worlds occupy all of it
for kernel in (collide_all, collide_round):
    kernel.module.options["block_dim"] = BLOCK_THREADS


def collide_kernel(kinds: Collection[str]) -> Any:
    """The kernel for shapes of some kinds."""
    return collide_round if set(kinds) <= {"plane", "sphere", "capsule"} else collide_all


@wp.func
def keep_last(s: wp.array(dtype=Collision), w: int) -> None:
    """The last step's points, with the impulses that the solver has left in them."""
    pairs = s[0].contacts.pairs[w]
    s[0].kept.pairs[w] = pairs
    for k in range(pairs):
        first = s[0].contacts.pair_first[k, w]
        size = s[0].contacts.pair_size[k, w]
        touched = int(0)
        for i in range(first, first + size):
            p = s[0].contacts.impulse[i, w]
            s[0].kept.local[i, w] = s[0].contacts.local[i, w]
            s[0].kept.impulse[i, w] = p
            if s[0].contacts.gap[i, w] <= TOUCHING_GAP or wp.dot(p, s[0].contacts.normal[i, w]) > real(0.0):
                touched = 1
        s[0].kept.a[k, w] = s[0].contacts.shape_a[first, w]
        s[0].kept.b[k, w] = s[0].contacts.shape_b[first, w]
        s[0].kept.first[k, w] = first
        s[0].kept.size[k, w] = size
        s[0].kept.feature[k, w] = s[0].contacts.pair_feature[k, w]
        s[0].kept.touched[k, w] = touched
    s[0].contacts.pairs[w] = 0
    s[0].contacts.count[w] = 0


@wp.func
def at_pair(s: wp.array(dtype=Collision), a: int, b: int, cursor: int, w: int) -> int:
    """The first of the last step's pairs, from `cursor` on, that does not come before (a, b)."""
    k = cursor
    n = s[0].kept.pairs[w]
    while k < n and (s[0].kept.a[k, w] < a or (s[0].kept.a[k, w] == a and s[0].kept.b[k, w] < b)):
        k = k + 1
    return k


@wp.func
def touch_ball(s: wp.array(dtype=Collision), k: int, old: int, w: int) -> bool:
    """`touch` of a sphere on a plane, or on a sphere, where both are slow; whether they are such a pair."""
    i = s[0].broad.a[k, w]
    j = s[0].broad.b[k, w]
    kind = s[0].shapes.kind[i]
    if s[0].shapes.kind[j] != SPHERE or (kind != PLANE and kind != SPHERE):
        return False
    a = s[0].shapes.body[i]
    b = s[0].shapes.body[j]
    x = s[0].broad.centre[i, w]
    y = s[0].broad.centre[j, w]
    small = y
    bound = s[0].shapes.bound[j]
    if kind == SPHERE and s[0].shapes.bound[i] < bound:
        small = x
        bound = s[0].shapes.bound[i]
    turn = wp.length(s[0].spin[b, w] - s[0].spin[a, w]) * bound * s[0].dt[0]
    if wp.length(relative_velocity_at(s, a, b, small, w) * s[0].dt[0]) + turn + thrown(s, a, b, w) > MARGIN:
        return False
    first = s[0].contacts.count[w]
    if kind == PLANE:
        n = frame_axis(s[0].broad.frame[i, w], 2)
        gap = wp.dot(n, y - x) - s[0].shapes.radius[j]
        if gap < MARGIN:
            add_point(s, n, y - n * (s[0].shapes.radius[j] + gap * real(0.5)), gap, w)
    else:
        n, p, gap = ball_between(x, s[0].shapes.radius[i], y, s[0].shapes.radius[j])
        if gap < MARGIN:
            add_point(s, n, p, gap, w)
    close_pair(s, k, first, old, 0, w)
    return True


@wp.func
def touch(s: wp.array(dtype=Collision), k: int, old: int, w: int) -> None:
    """The points of pair k of the list, if it has any; `old`: its place among the last step's pairs, or −1."""
    i = s[0].broad.a[k, w]
    j = s[0].broad.b[k, w]
    last = int(-1)
    if old >= 0:
        last = s[0].kept.feature[old, w]
    first = s[0].contacts.count[w]
    a = s[0].shapes.body[i]
    b = s[0].shapes.body[j]
    bound = s[0].shapes.bound[j]
    rough = s[0].shapes.kind[i] >= MESH
    flip = s[0].shapes.kind[i] > s[0].shapes.kind[j]  # pair functions take the lower kind first
    A = solid(s, wp.where(flip, j, i), w)
    B = solid(s, wp.where(flip, i, j), w)
    bound_a = s[0].shapes.bound[wp.where(flip, j, i)]
    bound_b = s[0].shapes.bound[wp.where(flip, i, j)]
    if A.kind == PLANE and is_wheel(B):
        points, known = wheel_on_plane(s, a, b, A, B, bound, w)
        if known:
            add_points(s, points, w)
            close_pair(s, k, first, old, 0, w)
            return
    walk = Walk()
    u = vec3()
    way = real(0.0)
    more = real(0.0)
    flat = A.kind == BOX or is_wheel(A)
    if rough:  # A is the shape that moves, B will be one triangle after the other
        u = relative_velocity_at(s, a, b, A.x, w) * s[0].dt[0]
        more = MARGIN + wp.length(s[0].spin[b, w] - s[0].spin[a, w]) * bound * s[0].dt[0]
        way = wp.length(u)
        walk = walk_begin(s, i, A, u, more, w)
    going = int(1)
    feature = int(0)
    while going == 1:  # once, or for each triangle that is near: one place where all pair functions are called
        if rough:
            walk = walk_next(s, i, walk)
            B = triangle_solid(s, i, walk, w)
            bound_b = B.size[0]
        if rough and walk.over == 1:
            going = 0
        elif rough and flat and is_beyond_triangle(A, B, face_normal(B), more + way):
            going = 1
        else:
            m = collide_pair(s, wp.where(flip, b, a), wp.where(flip, a, b), A, B, bound_a, bound_b, last, w)
            feature = m.feature
            if flip:
                m.n = -m.n
            if rough:
                m = from_outside(s, B, A, u, m, walk.edges, MARGIN)
                merge_points(s, first, m, bound, w)
            else:
                add_points(s, m, w)
                going = 0
    close_pair(s, k, first, old, feature, w)


@wp.func
def add_points(s: wp.array(dtype=Collision), m: Manifold, w: int) -> None:
    """Points of a manifold."""
    for c in range(m.count):
        add_point(s, m.n, vec3(m.p[c, 0], m.p[c, 1], m.p[c, 2]), m.gap[c], w)


@wp.func
def add_point(s: wp.array(dtype=Collision), n: vec3, p: vec3, gap: real, w: int) -> None:
    """A point, if there is room for it."""
    k = s[0].contacts.count[w]
    if k < s[0].contacts.capacity:
        s[0].contacts.normal[k, w] = n
        s[0].contacts.point[k, w] = p
        s[0].contacts.gap[k, w] = gap
        s[0].contacts.count[w] = k + 1
    else:
        s[0].contacts.lost[w] = s[0].contacts.lost[w] + 1


@wp.func
def merge_points(s: wp.array(dtype=Collision), first: int, m: Manifold, bound: real, w: int) -> None:
    """Points on one of many triangles: with those of the pair that have about the same normal, four are kept that span most."""
    t1 = perpendicular_to(m.n)
    t2 = wp.cross(m.n, t1)
    for c in range(m.count):
        p = vec3(m.p[c, 0], m.p[c, 1], m.p[c, 2])
        P = mat83()
        slot = wp.vec4i(0, 0, 0, 0)
        n = int(0)
        same = int(-1)
        for k in range(first, s[0].contacts.count[w]):
            if n < 4 and wp.dot(s[0].contacts.normal[k, w], m.n) > LIKE:
                d = s[0].contacts.point[k, w] - p
                P[n, 0] = wp.dot(d, t1)
                P[n, 1] = wp.dot(d, t2)
                P[n, 2] = s[0].contacts.gap[k, w]
                if wp.length_sq(d) < MERGED * MERGED * bound * bound:
                    same = k
                slot[n] = k
                n = n + 1
        if same >= 0:
            if m.gap[c] < s[0].contacts.gap[same, w]:
                put_point(s, same, m.n, p, m.gap[c], w)
        elif n < 4:
            if s[0].contacts.count[w] - first < PAIR_ROOM:
                add_point(s, m.n, p, m.gap[c], w)
            else:
                s[0].contacts.lost[w] = s[0].contacts.lost[w] + 1
        else:
            P[4, 2] = m.gap[c]
            out = least_worth(P)
            if out < 4:
                put_point(s, slot[out], m.n, p, m.gap[c], w)


@wp.func
def quad_area(P: mat83, i: int, j: int, k: int, l: int) -> real:
    """Twice the area that four points span, in whatever order: the largest of the three products of their diagonals."""
    a = vec3(P[i, 0], P[i, 1], real(0.0))
    b = vec3(P[j, 0], P[j, 1], real(0.0))
    c = vec3(P[k, 0], P[k, 1], real(0.0))
    d = vec3(P[l, 0], P[l, 1], real(0.0))
    one = wp.abs(wp.cross(b - a, d - c)[2])
    two = wp.abs(wp.cross(c - a, d - b)[2])
    three = wp.abs(wp.cross(d - a, c - b)[2])
    return wp.max(one, wp.max(two, three))


@wp.func
def least_worth(P: mat83) -> int:
    """Which of five points (x, y, gap) goes so that the rest span most; not the deepest, and rather the last."""
    low = int(0)
    for k in range(1, 5):
        if P[k, 2] < P[low, 2] - real(1.0e-6):
            low = k
    out = int(4)
    most = real(-1.0)
    rounds = int(5)
    for r in range(rounds):
        k = 4 - r
        area = quad_area(P, (k + 1) % 5, (k + 2) % 5, (k + 3) % 5, (k + 4) % 5)
        deepest = k == low and P[k, 2] < P[(k + 1) % 5, 2] - real(1.0e-6)
        if area > most * real(1.001) and not deepest:
            most = area
            out = k
    return out


@wp.func
def put_point(s: wp.array(dtype=Collision), k: int, n: vec3, p: vec3, gap: real, w: int) -> None:
    """In another's place."""
    s[0].contacts.normal[k, w] = n
    s[0].contacts.point[k, w] = p
    s[0].contacts.gap[k, w] = gap


@wp.func
def keep_deepest(s: wp.array(dtype=Collision), first: int, size: int, w: int) -> None:
    """Of the points of a pair the deepest alone: a raycast wheel touches in one."""
    best = first
    for p in range(first + 1, first + size):
        if s[0].contacts.gap[p, w] < s[0].contacts.gap[best, w]:
            best = p
    put_point(s, first, s[0].contacts.normal[best, w], s[0].contacts.point[best, w], s[0].contacts.gap[best, w], w)
    s[0].contacts.count[w] = first + 1


@wp.func
def close_pair(s: wp.array(dtype=Collision), k: int, first: int, old: int, feature: int, w: int) -> None:
    """All that follows from where the points of a pair are: identity, impulse, material."""
    size = s[0].contacts.count[w] - first
    if size == 0:
        return
    i = s[0].broad.a[k, w]
    j = s[0].broad.b[k, w]
    belt = s[0].shapes.belt[j]
    if belt < 0:
        belt = s[0].shapes.belt[i]
    cast = bool(False)
    if belt >= 0:
        cast = s[0].shapes.belt_body[belt] == 0
    if cast:
        keep_deepest(s, first, size, w)
        size = int(1)
    at = s[0].contacts.pairs[w]
    s[0].contacts.pairs[w] = at + 1
    s[0].contacts.pair_first[at, w] = first
    s[0].contacts.pair_size[at, w] = size
    s[0].contacts.pair_feature[at, w] = feature
    b = s[0].shapes.body[j]
    began = int(1)
    if old >= 0:
        began = 1 - s[0].kept.touched[old, w]
    mixed = mix_materials(s, i, j, s[0].broad.rule[k, w], w)
    used = int(0)
    tyre = mixed.relaxation > real(0.0)
    wheel = not cast and (tyre or (s[0].shapes.kind[j] == CYLINDER and s[0].shapes.radius[j] > real(0.0)))
    for p in range(first, first + size):
        local = wp.quat_rotate_inv(s[0].rotation[b, w], s[0].contacts.point[p, w] - s[0].position[b, w])
        s[0].contacts.shape_a[p, w] = i
        s[0].contacts.shape_b[p, w] = j
        s[0].contacts.body_a[p, w] = s[0].shapes.body[i]
        s[0].contacts.body_b[p, w] = b
        s[0].contacts.local[p, w] = local
        s[0].contacts.began[p, w] = began
        s[0].contacts.found[p, w] = s[0].contacts.gap[p, w] - opened(s, p, w)
        was = local
        if wheel:  # it rolls on over its point
            before = turned(s[0].rotation[b, w], s[0].spin[b, w] * -s[0].dt[0])
            was = wp.quat_rotate_inv(before, s[0].contacts.point[p, w] - s[0].position[b, w])
        used = carry_over(s, p, p - first, was, size, old, used, s[0].shapes.bound[j], w)
        write_mixed(s, mixed, i, p, w)
        s[0].contacts.special[p, w] = wp.where(wheel, 4, 0)
        s[0].contacts.belt_body[p, w] = 0
        if tyre:
            write_tyre(s, mixed, i, p, size, w)
        if belt >= 0:
            write_belt(s, belt, p, w)


@wp.func
def carry_over(
    s: wp.array(dtype=Collision), p: int, at: int, local: vec3, size: int, old: int, used: int, bound: real, w: int
) -> int:  # fmt: skip
    """Give a point the impulse of the nearest old one that is not taken; a pair's only point is the same one wherever it went."""
    out = vec3()
    if old >= 0:
        first = s[0].kept.first[old, w]
        olds = s[0].kept.size[old, w]
        best = bound * bound * SAME_POINT * SAME_POINT
        if olds == 1 and size == 1:
            best = real(1.0e30)
        which = int(-1)
        if at < olds and used & (1 << at) == 0:  # at rest it has the same place in the list, and the others need not be looked at
            if wp.length_sq(s[0].kept.local[first + at, w] - local) < real(1.0e-4) * bound * bound:
                which = at
        for k in range(wp.where(which < 0, olds, 0)):
            if used & (1 << k) == 0:
                d = wp.length_sq(s[0].kept.local[first + k, w] - local)
                if d < best:
                    best = d
                    which = k
        if which >= 0:
            used = used | (1 << which)
            out = s[0].kept.impulse[first + which, w]
    s[0].contacts.impulse[p, w] = out
    return used
