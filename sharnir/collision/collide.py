"""Contact detection of a step: `collide` for a world, `collide_all` for all of them.

Pairs come in order, from this step and from the last, so the two lists are merged; within a pair a new point takes over the
impulse of the nearest old one.
"""

import warp as wp

from sharnir.collision.broad import find_pairs
from sharnir.collision.data import Collision, Manifold, Solid, vec2
from sharnir.collision.pairs import meet
from sharnir.types import inline_less, real, vec3

inline_less("sharnir.collision")

SAME = wp.constant(real(0.1))  # of the shape's size: so far a point may have moved on it in a step
TOUCH = wp.constant(real(1.0e-5))  # m: a pair touches at this gap


@wp.func
def collide(s: wp.array(dtype=Collision), w: int):
    """Find all points of contact of a world: positions, velocities → contacts."""
    keep_last(s, w)
    find_pairs(s, w)
    s[0].contacts.lost[w] = s[0].broad.lost[w]
    cursor = int(0)
    for k in range(s[0].broad.count[w]):
        cursor = at_pair(s, s[0].broad.a[k, w], s[0].broad.b[k, w], cursor, w)
        touch(s, k, cursor, w)


@wp.kernel(module="sharnir.collision", enable_backward=False)
def collide_all(s: wp.array(dtype=Collision), first: int):
    """One thread a world, from `first` on."""
    collide(s, first + wp.tid())


@wp.func
def keep_last(s: wp.array(dtype=Collision), w: int):
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
            if s[0].contacts.gap[i, w] <= TOUCH or wp.dot(p, s[0].contacts.normal[i, w]) > real(0.0):
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
def solid(s: wp.array(dtype=Collision), i: int, w: int) -> Solid:
    """A shape where it is now."""
    out = Solid()
    out.kind = s[0].shapes.kind[i]
    out.size = s[0].shapes.size[i]
    out.radius = s[0].shapes.radius[i]
    out.x = s[0].broad.centre[i, w]
    out.R = s[0].broad.frame[i, w]
    out.first = s[0].shapes.first[i]
    out.length = s[0].shapes.length[i]
    return out


@wp.func
def touch(s: wp.array(dtype=Collision), k: int, cursor: int, w: int):
    """The points of pair k of the list, if it has any."""
    i = s[0].broad.a[k, w]
    j = s[0].broad.b[k, w]
    old = int(-1)
    last = int(-1)
    if cursor < s[0].kept.pairs[w]:
        if s[0].kept.a[cursor, w] == i and s[0].kept.b[cursor, w] == j:
            old = cursor
            last = s[0].kept.feature[cursor, w]
    first = s[0].contacts.count[w]
    a = s[0].shapes.body[i]
    b = s[0].shapes.body[j]
    m = meet(s, a, b, solid(s, i, w), solid(s, j, w), s[0].shapes.bound[j], last, w)
    add_points(s, i, j, m, w)
    close_pair(s, k, first, old, m.feature, w)


@wp.func
def add_points(s: wp.array(dtype=Collision), i: int, j: int, m: Manifold, w: int):
    """Points of a manifold, if there is room for them."""
    for c in range(m.count):
        k = s[0].contacts.count[w]
        if k < s[0].contacts.capacity:
            s[0].contacts.normal[k, w] = m.n
            s[0].contacts.point[k, w] = vec3(m.p[c, 0], m.p[c, 1], m.p[c, 2])
            s[0].contacts.gap[k, w] = m.gap[c]
            s[0].contacts.count[w] = k + 1
        else:
            s[0].contacts.lost[w] = s[0].contacts.lost[w] + 1


@wp.func
def close_pair(s: wp.array(dtype=Collision), k: int, first: int, old: int, feature: int, w: int):
    """All that follows from where the points of a pair are: identity, impulse, material."""
    size = s[0].contacts.count[w] - first
    if size == 0:
        return
    at = s[0].contacts.pairs[w]
    s[0].contacts.pairs[w] = at + 1
    s[0].contacts.pair_first[at, w] = first
    s[0].contacts.pair_size[at, w] = size
    s[0].contacts.pair_feature[at, w] = feature
    i = s[0].broad.a[k, w]
    j = s[0].broad.b[k, w]
    b = s[0].shapes.body[j]
    began = int(1)
    if old >= 0:
        began = 1 - s[0].kept.touched[old, w]
    used = int(0)
    for p in range(first, first + size):
        local = wp.quat_rotate_inv(s[0].rotation[b, w], s[0].contacts.point[p, w] - s[0].position[b, w])
        s[0].contacts.shape_a[p, w] = i
        s[0].contacts.shape_b[p, w] = j
        s[0].contacts.body_a[p, w] = s[0].shapes.body[i]
        s[0].contacts.body_b[p, w] = b
        s[0].contacts.local[p, w] = local
        s[0].contacts.began[p, w] = began
        used = carry_over(s, p, local, size, old, used, s[0].shapes.bound[j], w)
    combine_materials(s, i, j, s[0].broad.rule[k, w], first, w)
    for p in range(first + 1, first + size):
        same_material(s, first, p, w)


@wp.func
def carry_over(
    s: wp.array(dtype=Collision), p: int, local: vec3, size: int, old: int, used: int, bound: real, w: int
) -> int:  # fmt: skip
    """Give a point the impulse of the nearest old one that is not taken; a pair's only point is the same one wherever it went."""
    out = vec3()
    if old >= 0:
        first = s[0].kept.first[old, w]
        olds = s[0].kept.size[old, w]
        best = bound * bound * SAME * SAME
        if olds == 1 and size == 1:
            best = real(1.0e30)
        which = int(-1)
        for k in range(olds):
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


@wp.func
def friction_axis(s: wp.array(dtype=Collision), i: int, material: int, w: int) -> vec3:
    """The first axis of friction of shape i with a material, world axes; 0 where it is the same all around."""
    d = s[0].materials.direction[material, w]
    if d[0] == real(0.0) and d[1] == real(0.0) and d[2] == real(0.0):
        return d
    return wp.quat_rotate(s[0].rotation[s[0].shapes.body[i], w], d)


@wp.func
def combine_materials(s: wp.array(dtype=Collision), i: int, j: int, rule: int, p: int, w: int):
    """Of two shapes, or the pair's own, for its first point: √ for friction, the larger for all else (`Material` says so)."""
    x = s[0].shapes.material[i]
    y = s[0].shapes.material[j]
    if rule >= 0:
        x = rule
        y = rule
    a = s[0].materials.friction[x, w]
    b = s[0].materials.friction[y, w]
    s[0].contacts.friction[p, w] = vec2(wp.sqrt(a[0] * b[0]), wp.sqrt(a[1] * b[1]))
    s[0].contacts.dynamic[p, w] = wp.sqrt(s[0].materials.dynamic[x, w] * s[0].materials.dynamic[y, w])
    s[0].contacts.restitution[p, w] = wp.max(s[0].materials.restitution[x, w], s[0].materials.restitution[y, w])
    s[0].contacts.rolling[p, w] = wp.max(s[0].materials.rolling[x, w], s[0].materials.rolling[y, w])
    s[0].contacts.torsion[p, w] = wp.max(s[0].materials.torsion[x, w], s[0].materials.torsion[y, w])
    s[0].contacts.stiffness[p, w] = wp.max(s[0].materials.stiffness[x, w], s[0].materials.stiffness[y, w])
    s[0].contacts.damping[p, w] = wp.max(s[0].materials.damping[x, w], s[0].materials.damping[y, w])
    n = s[0].contacts.normal[p, w]
    along = friction_axis(s, j, y, w)
    if wp.length_sq(along) == real(0.0):
        along = friction_axis(s, i, x, w)
    along = along - n * wp.dot(n, along)
    far = wp.length(along)
    if far > real(1.0e-6):
        along = along / far
    else:
        along = vec3()
    s[0].contacts.along[p, w] = along
    v = s[0].shapes.surface[j, w]
    u = s[0].shapes.surface[i, w]
    if wp.length_sq(u) + wp.length_sq(v) > real(0.0):
        v = wp.quat_rotate(s[0].rotation[s[0].shapes.body[j], w], v) - wp.quat_rotate(s[0].rotation[s[0].shapes.body[i], w], u)
        v = v - n * wp.dot(n, v)
    s[0].contacts.surface[p, w] = v


@wp.func
def same_material(s: wp.array(dtype=Collision), first: int, p: int, w: int):
    """The same for another point of the pair."""
    s[0].contacts.friction[p, w] = s[0].contacts.friction[first, w]
    s[0].contacts.dynamic[p, w] = s[0].contacts.dynamic[first, w]
    s[0].contacts.restitution[p, w] = s[0].contacts.restitution[first, w]
    s[0].contacts.rolling[p, w] = s[0].contacts.rolling[first, w]
    s[0].contacts.torsion[p, w] = s[0].contacts.torsion[first, w]
    s[0].contacts.stiffness[p, w] = s[0].contacts.stiffness[first, w]
    s[0].contacts.damping[p, w] = s[0].contacts.damping[first, w]
    s[0].contacts.along[p, w] = s[0].contacts.along[first, w]
    s[0].contacts.surface[p, w] = s[0].contacts.surface[first, w]
