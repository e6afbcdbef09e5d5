"""Broad phase (theory 7.3): which pairs of shapes may touch soon.

Every shape that moves has a box that is larger than it; the list of pairs is kept while none has left its box. A new list: boxes
are swept along the scene's longest axis in an order that is kept from the last time and repaired by insertion; wide shapes are
tested against all; pairs are put in order by counting. A thread a world, the same list whatever the threads.
"""

import warp as wp

from sharnir.collision.data import (
    CAPSULE,
    CONE,
    CYLINDER,
    ELLIPSOID,
    MARGIN,
    MESH,
    PLANE,
    SPHERE,
    Collision,
    Solid,
    frame_axis,
    vec4,
)
from sharnir.core.spatial import matrix
from sharnir.core.types import mat33, quat, real, vec3
from sharnir.model.model import DYNAMIC, FIXED

THROWS = wp.constant(real(1.5))  # of the speed at which two bodies meet, that a blow may throw one at
FAT = wp.constant(real(0.01))  # m, and as much as STEPS steps of its motion
MARGIN_STEPS = wp.constant(real(6.0))


@wp.func
def half_box(kind: int, size: vec3, radius: real, R: mat33) -> vec3:
    """Half the size, along the world's axes, of the box around a shape."""
    out = vec3(radius, radius, radius)
    if kind == SPHERE:
        return out
    if kind == CAPSULE:
        a = frame_axis(R, 2)
        return out + vec3(wp.abs(a[0]), wp.abs(a[1]), wp.abs(a[2])) * size[1]
    if kind == CYLINDER or kind == CONE:
        for k in range(3):
            c = R[k, 2]
            out[k] = out[k] + wp.abs(c) * size[1] + size[0] * wp.sqrt(wp.max(real(0.0), real(1.0) - c * c))
        return out
    for k in range(3):
        x = R[k, 0] * size[0]
        y = R[k, 1] * size[1]
        z = R[k, 2] * size[2]
        if kind == ELLIPSOID:
            out[k] = out[k] + wp.sqrt(x * x + y * y + z * z)
        else:
            out[k] = out[k] + wp.abs(x) + wp.abs(y) + wp.abs(z)
    return out


@wp.func
def place(s: wp.array(dtype=Collision), w: int) -> bool:
    """Put shapes where their bodies are; whether one has left its box, or will in this step."""
    stale = s[0].broad.made[w] == 0
    for i in range(s[0].shapes.count):
        b = s[0].shapes.body[i]
        q = s[0].rotation[b, w]
        arm = wp.quat_rotate(q, s[0].shapes.position[i])
        x = s[0].position[b, w] + arm
        R = matrix(q * s[0].shapes.rotation[i])
        s[0].broad.centre[i, w] = x
        s[0].broad.frame[i, w] = R
        if s[0].shapes.motion[b] != FIXED or stale:
            kind = s[0].shapes.kind[i]
            half = half_box(kind, s[0].shapes.size[i], s[0].shapes.radius[i], R)
            spin = s[0].spin[b, w]
            step = (s[0].velocity[b, w] + wp.cross(spin, arm)) * s[0].dt[0]
            turn = MARGIN
            if kind != SPHERE:
                turn = turn + wp.length(spin) * s[0].shapes.bound[i] * s[0].dt[0]
            turn = wp.max(turn, reach_of_blows(s, b, w))
            stale = stale or leaves(s, i, x - half, x + half, step, turn, w)
    return stale


@wp.func
def leaves(s: wp.array(dtype=Collision), i: int, low: vec3, high: vec3, step: vec3, more: real, w: int) -> bool:
    """Whether a box around shape i, moved by a step and larger by `more`, leaves the one that the list was made with."""
    inside = s[0].broad.low[i, w]
    until = s[0].broad.high[i, w]
    for k in range(3):
        if low[k] + wp.min(step[k], real(0.0)) - more < inside[k] or high[k] + wp.max(step[k], real(0.0)) + more > until[k]:
            return True
    return False


@wp.func
def reach_of_blows(s: wp.array(dtype=Collision), b: int, w: int) -> real:
    """Within which a body may meet another one so fast that the blow throws them on (`expect_blows`), m."""
    way = THROWS * s[0].dt[0] * wp.length(s[0].velocity[b, w])
    return wp.where(way > real(0.5) * MARGIN, way, real(0.0))


@wp.func
def note_blow(s: wp.array(dtype=Collision), b: int, other: int, way: real, w: int) -> None:
    """The farthest way that a body may be thrown, by which other one; and the farthest by any but that."""
    if other == s[0].broad.thrown_by[b, w]:
        s[0].broad.thrown[b, w] = wp.max(s[0].broad.thrown[b, w], way)
    elif way > s[0].broad.thrown[b, w]:
        s[0].broad.thrown_next[b, w] = s[0].broad.thrown[b, w]
        s[0].broad.thrown[b, w] = way
        s[0].broad.thrown_by[b, w] = other
    else:
        s[0].broad.thrown_next[b, w] = wp.max(s[0].broad.thrown_next[b, w], way)


@wp.func
def expect_blows(s: wp.array(dtype=Collision), w: int) -> bool:
    """How far a blow may throw each body in this step, to where it would find nothing that stops it; whether any.

    Bodies that meet at a speed may part at up to one and a half times that; the points ahead of them are found beforehand. What
    is found does not depend on when the list was made: every list has all pairs that are within reach of each other.
    """
    fast = bool(False)
    for b in range(s[0].shapes.bodies):
        s[0].broad.thrown[b, w] = real(0.0)
        s[0].broad.thrown_by[b, w] = -1
        s[0].broad.thrown_next[b, w] = real(0.0)
        fast = fast or reach_of_blows(s, b, w) > real(0.0)
    if not fast:
        return False
    some = bool(False)
    for k in range(s[0].broad.count[w]):
        i = s[0].broad.a[k, w]
        j = s[0].broad.b[k, w]
        a = s[0].shapes.body[i]
        b = s[0].shapes.body[j]
        way = THROWS * s[0].dt[0] * wp.length(s[0].velocity[b, w] - s[0].velocity[a, w])
        if way > MARGIN and not beyond_reach(s, i, j, w):
            some = True
            if s[0].shapes.motion[a] == DYNAMIC:
                note_blow(s, a, b, way, w)
            note_blow(s, b, a, way, w)
    return some


@wp.func
def beyond_reach(s: wp.array(dtype=Collision), i: int, j: int, w: int) -> bool:
    """Whether boxes around two shapes, each larger by what every list allows for, are apart."""
    if s[0].shapes.kind[j] == PLANE or s[0].shapes.kind[i] == PLANE or s[0].shapes.kind[i] >= MESH:
        return True
    d = s[0].broad.centre[j, w] - s[0].broad.centre[i, w]
    half = half_of(s, i, w) + half_of(s, j, w)
    near = wp.max(MARGIN, reach_of_blows(s, s[0].shapes.body[i], w)) + wp.max(MARGIN, reach_of_blows(s, s[0].shapes.body[j], w))
    return wp.abs(d[0]) > half[0] + near or wp.abs(d[1]) > half[1] + near or wp.abs(d[2]) > half[2] + near


@wp.func
def half_of(s: wp.array(dtype=Collision), i: int, w: int) -> vec3:
    """Half the size of the box around shape i where it is now."""
    return half_box(s[0].shapes.kind[i], s[0].shapes.size[i], s[0].shapes.radius[i], s[0].broad.frame[i, w])


@wp.func
def thrown_out(s: wp.array(dtype=Collision), w: int) -> bool:
    """Whether a shape that a blow may throw could leave its box."""
    for i in range(s[0].shapes.count):
        b = s[0].shapes.body[i]
        way = s[0].broad.thrown[b, w]
        if way > real(0.0):
            x = s[0].broad.centre[i, w]
            half = half_of(s, i, w)
            spin = s[0].spin[b, w]
            step = (s[0].velocity[b, w] + wp.cross(spin, x - s[0].position[b, w])) * s[0].dt[0]
            turn = wp.length(spin) * s[0].shapes.bound[i] * s[0].dt[0]
            if leaves(s, i, x - half, x + half, step, turn + way + MARGIN, w):
                return True
    return False


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
def inflate(s: wp.array(dtype=Collision), w: int) -> int:
    """New boxes; the axis along which those that are swept reach farthest."""
    least = vec3(real(1.0e30), real(1.0e30), real(1.0e30))
    most = -least
    for i in range(s[0].shapes.count):
        b = s[0].shapes.body[i]
        x = s[0].broad.centre[i, w]
        bound = s[0].shapes.bound[i]
        kind = s[0].shapes.kind[i]
        half = half_of(s, i, w)
        low = x - half
        high = x + half
        if s[0].shapes.motion[b] != FIXED:
            spin = s[0].spin[b, w]
            time = s[0].dt[0] * MARGIN_STEPS
            step = (s[0].velocity[b, w] + wp.cross(spin, x - s[0].position[b, w])) * time
            fat = MARGIN + wp.min(FAT, bound)
            if kind != SPHERE:
                fat = fat + wp.min(wp.length(spin) * time, real(2.0)) * bound
            fat = wp.max(fat, real(1.5) * reach_of_blows(s, b, w)) + s[0].broad.thrown[b, w]
            if kind == SPHERE and s[0].broad.thrown[b, w] > real(0.0):
                fat = fat + wp.length(spin) * bound * s[0].dt[0]
            for k in range(3):
                low[k] = low[k] + wp.min(step[k], real(0.0)) - fat
                high[k] = high[k] + wp.max(step[k], real(0.0)) + fat
        s[0].broad.low[i, w] = low
        s[0].broad.high[i, w] = high
    for k in range(s[0].shapes.sweeps):
        i = s[0].shapes.swept[k]
        least = wp.min(least, s[0].broad.low[i, w])
        most = wp.max(most, s[0].broad.high[i, w])
    d = most - least
    axis = int(0)
    if d[1] > d[axis]:
        axis = 1
    if d[2] > d[axis]:
        axis = 2
    return axis


@wp.func
def listed(first: wp.array(dtype=wp.int32), other: wp.array(dtype=wp.int32), a: int, b: int) -> int:
    """Where b stands in a's part of a list, or −1; a < b."""
    for k in range(first[a], first[a + 1]):
        if other[k] == b:
            return k
    return -1


@wp.func
def is_excluded_by_joint(s: wp.array(dtype=Collision), a: int, b: int, w: int) -> bool:
    """Whether an enabled joint keeps two bodies (a < b) from touching."""
    for e in range(s[0].shapes.held_first[a], s[0].shapes.held_first[a + 1]):
        if s[0].shapes.held_other[e] == b and s[0].contacts.enabled[s[0].shapes.held_joint[e], w] != 0:
            return True
    return False


@wp.func
def note_joints(s: wp.array(dtype=Collision), w: int) -> None:
    """After joints were enabled or disabled: ask for a new list of pairs, and look at their bodies anew, also at rest.

    `Broad.held` belongs to the list, `Contacts.held` to the state: so what follows a restored state does not depend on the list.
    """
    for e in range(s[0].shapes.held_joint.shape[0]):
        on = s[0].contacts.enabled[s[0].shapes.held_joint[e], w]
        if s[0].broad.held[e, w] != on:
            s[0].broad.held[e, w] = on
            s[0].broad.made[w] = 0
        if s[0].contacts.held[e, w] != on:
            s[0].contacts.held[e, w] = on
            s[0].contacts.anchor_rotation[s[0].shapes.held_body[e], w] = quat()
            s[0].contacts.anchor_rotation[s[0].shapes.held_other[e], w] = quat()


@wp.func
def may_touch(s: wp.array(dtype=Collision), i: int, j: int, w: int) -> bool:
    """Whether two shapes (i < j) are meant to touch now."""
    a = s[0].shapes.body[i]
    b = s[0].shapes.body[j]
    if a == b or s[0].shapes.motion[b] != DYNAMIC:
        return False
    if s[0].shapes.group[i] & s[0].shapes.mask[j] == 0 or s[0].shapes.group[j] & s[0].shapes.mask[i] == 0:
        return False
    if listed(s[0].shapes.apart_first, s[0].shapes.apart, wp.min(a, b), wp.max(a, b)) >= 0:
        return False
    return not is_excluded_by_joint(s, wp.min(a, b), wp.max(a, b), w)


@wp.func
def found(s: wp.array(dtype=Collision), i: int, j: int, w: int) -> None:
    """A pair for the list, if there is room for it."""
    a = wp.min(i, j)
    b = wp.max(i, j)
    if may_touch(s, a, b, w):
        k = s[0].broad.count[w]
        if k < s[0].broad.capacity:
            s[0].broad.raw_a[k, w] = a
            s[0].broad.raw_b[k, w] = b
            s[0].broad.count[w] = k + 1
        else:
            s[0].broad.lost[w] = s[0].broad.lost[w] + 1


@wp.func
def sweep_and_prune(s: wp.array(dtype=Collision), axis: int, w: int) -> None:
    """Pairs among the shapes that are swept."""
    n = s[0].shapes.sweeps
    for k in range(n):
        s[0].broad.edge[k, w] = s[0].broad.low[s[0].broad.order[k, w], w][axis]
    for k in range(1, n):
        i = s[0].broad.order[k, w]
        x = s[0].broad.edge[k, w]
        j = k - 1
        while j >= 0 and s[0].broad.edge[wp.max(j, 0), w] > x:
            s[0].broad.order[j + 1, w] = s[0].broad.order[j, w]
            s[0].broad.edge[j + 1, w] = s[0].broad.edge[j, w]
            j = j - 1
        s[0].broad.order[j + 1, w] = i
        s[0].broad.edge[j + 1, w] = x
    p = (axis + 1) % 3
    q = (axis + 2) % 3
    for k in range(n):  # copied in that order, so that the loop below reads memory in sequence
        low = s[0].broad.low[s[0].broad.order[k, w], w]
        high = s[0].broad.high[s[0].broad.order[k, w], w]
        s[0].broad.side[k, w] = vec4(low[p], high[p], low[q], high[q])
    for k in range(n):
        i = s[0].broad.order[k, w]
        end = s[0].broad.high[i, w][axis]
        c = s[0].broad.side[k, w]
        l = k + 1
        while l < n and s[0].broad.edge[wp.min(l, n - 1), w] <= end:
            d = s[0].broad.side[l, w]
            if d[0] <= c[1] and c[0] <= d[1] and d[2] <= c[3] and c[2] <= d[3]:
                found(s, i, s[0].broad.order[l, w], w)
            l = l + 1


@wp.func
def near_wide(s: wp.array(dtype=Collision), i: int, j: int, w: int) -> bool:
    """Whether the box of shape j reaches a wide shape i: the half space of a plane, or its box."""
    low = s[0].broad.low[j, w]
    high = s[0].broad.high[j, w]
    if s[0].shapes.kind[i] == PLANE:
        n = frame_axis(s[0].broad.frame[i, w], 2)
        d = wp.dot(n, (low + high) * real(0.5) - s[0].broad.centre[i, w])
        half = (high - low) * real(0.5)
        return d <= wp.abs(n[0]) * half[0] + wp.abs(n[1]) * half[1] + wp.abs(n[2]) * half[2]
    a = s[0].broad.low[i, w]
    b = s[0].broad.high[i, w]
    return low[0] <= b[0] and a[0] <= high[0] and low[1] <= b[1] and a[1] <= high[1] and low[2] <= b[2] and a[2] <= high[2]


@wp.func
def put_in_order(s: wp.array(dtype=Collision), w: int) -> None:
    """The pairs as found, in order: counted by a, then by insertion among the few of one a."""
    count = s[0].broad.count[w]
    n = s[0].shapes.count
    for i in range(n + 1):
        s[0].broad.first[i, w] = 0
    for k in range(count):
        i = s[0].broad.raw_a[k, w] + 1
        s[0].broad.first[i, w] = s[0].broad.first[i, w] + 1
    for i in range(n):
        s[0].broad.first[i + 1, w] = s[0].broad.first[i + 1, w] + s[0].broad.first[i, w]
    for k in range(count):
        i = s[0].broad.raw_a[k, w]
        l = s[0].broad.first[i, w]
        s[0].broad.first[i, w] = l + 1
        s[0].broad.a[l, w] = i
        s[0].broad.b[l, w] = s[0].broad.raw_b[k, w]
    for k in range(1, count):
        a = s[0].broad.a[k, w]
        b = s[0].broad.b[k, w]
        l = k - 1
        while l >= 0 and s[0].broad.a[wp.max(l, 0), w] == a and s[0].broad.b[wp.max(l, 0), w] > b:
            s[0].broad.b[l + 1, w] = s[0].broad.b[l, w]
            l = l - 1
        s[0].broad.b[l + 1, w] = b
    for k in range(count):
        a = s[0].shapes.body[s[0].broad.a[k, w]]
        b = s[0].shapes.body[s[0].broad.b[k, w]]
        at = listed(s[0].shapes.rule_first, s[0].shapes.rule_other, wp.min(a, b), wp.max(a, b))
        rule = int(-1)
        if at >= 0:
            rule = s[0].shapes.rule_material[at]
        s[0].broad.rule[k, w] = rule


@wp.func
def find_pairs(s: wp.array(dtype=Collision), w: int) -> None:
    """The list of pairs that may touch in this step, or be thrown at each other."""
    if place(s, w):
        for b in range(s[0].shapes.bodies):
            s[0].broad.thrown[b, w] = real(0.0)
        make_list(s, w)
    if expect_blows(s, w):
        if thrown_out(s, w):
            make_list(s, w)


@wp.func
def make_list(s: wp.array(dtype=Collision), w: int) -> None:
    """The pairs of shapes whose boxes, made anew, overlap."""
    axis = inflate(s, w)
    s[0].broad.made[w] = s[0].broad.made[w] + 1
    s[0].broad.count[w] = 0
    s[0].broad.lost[w] = 0
    sweep_and_prune(s, axis, w)
    for k in range(s[0].shapes.wides):
        i = s[0].shapes.wide[k]
        for l in range(s[0].shapes.sweeps):
            j = s[0].shapes.swept[l]
            if near_wide(s, i, j, w):
                found(s, i, j, w)
        for l in range(k):
            j = s[0].shapes.wide[l]
            plane = s[0].shapes.kind[j] == PLANE
            if s[0].shapes.kind[i] != PLANE or not plane:
                if (plane and near_wide(s, j, i, w)) or (not plane and near_wide(s, i, j, w)):
                    found(s, i, j, w)
    put_in_order(s, w)
