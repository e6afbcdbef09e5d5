"""Bodies that stand still (theory: contact): points between two of them are those of the step before, with gaps of now.

Each body has an anchor, the pose in which it was last looked at closely. While it is nearer to it than NEAR its points need not
be found again: gaps follow its motion since then to first order, which is exact to NEAR²/size, and the choice among equally good
points does not flicker. A body that moves farther, or fast, is anchored anew; one that sleeps (`sleep`) wakes then.
"""

from typing import Any

import warp as wp

from sharnir.collision.data import MARGIN, MESH, PLANE, Collision, frame_axis
from sharnir.core.types import real, vec3

UNMOVED = wp.constant(real(1.0e-6))  # m, that no point of the body has moved from where it was at its anchor
AWAKE, ASLEEP, WOKEN = (wp.constant(k) for k in range(3))  # a body; woken: in this step, so that it lacks what awake ones got
TOUCHING_AT_REST = wp.constant(real(1.0e-5))  # m: a gap up to which bodies touch
SLOW_APPROACH = wp.constant(
    real(0.5)
)  # of the margin: two bodies that move by less in a step find none beyond it; gravity does to 10 ms


@wp.func
def look_at_bodies(s: wp.array(dtype=Collision), w: int) -> int:
    """Which bodies stand still, how far from their anchors; the others are anchored where they are. Returns how many slept."""
    slept = int(0)
    dt = s[0].dt[0]
    lost = s[0].contacts.lost[w] > 0  # some point had no room: all are found again
    for b in range(s[0].shapes.bodies):
        slept = slept + wp.min(s[0].contacts.asleep[b, w], 1)
        reach = s[0].shapes.reach[b]
        x = s[0].position[b, w]
        q = s[0].rotation[b, w]
        d = x - s[0].contacts.anchor_position[b, w]
        r = q * wp.quat_inverse(s[0].contacts.anchor_rotation[b, w])
        turn = vec3(r[0], r[1], r[2]) * real(2.0)
        if r[3] < real(0.0):
            turn = -turn
        speed = (wp.length(s[0].velocity[b, w]) + wp.length(s[0].spin[b, w]) * reach) * dt
        still = wp.abs(r[3]) > real(0.5) and wp.length(d) + wp.length(turn) * reach < UNMOVED and speed < SLOW_APPROACH * MARGIN
        if lost or not still:
            still = False
            s[0].contacts.anchor_position[b, w] = x
            s[0].contacts.anchor_rotation[b, w] = q
            d = vec3()
            turn = vec3()
            s[0].contacts.idle[b, w] = real(0.0)
            if s[0].contacts.asleep[b, w] == ASLEEP:
                s[0].contacts.asleep[b, w] = WOKEN
        else:
            s[0].contacts.idle[b, w] = s[0].contacts.idle[b, w] + dt
        s[0].broad.way[b, w] = speed
        s[0].broad.still[b, w] = int(still)
        s[0].broad.moved[b, w] = d
        s[0].broad.turned[b, w] = turn
    return slept


@wp.func
def stand_still(s: wp.array(dtype=Collision), i: int, j: int, w: int) -> bool:
    """Whether the bodies of two shapes stand still."""
    return s[0].broad.still[s[0].shapes.body[i], w] == 1 and s[0].broad.still[s[0].shapes.body[j], w] == 1


@wp.func
def thrown(s: wp.array(dtype=Collision), a: int, b: int, w: int) -> real:
    """How far blows by others may throw one of two bodies at the other in this step, m; 0 where that is within the margin."""
    one = wp.where(s[0].broad.thrown_by[a, w] == b, s[0].broad.thrown_next[a, w], s[0].broad.thrown[a, w])
    two = wp.where(s[0].broad.thrown_by[b, w] == a, s[0].broad.thrown_next[b, w], s[0].broad.thrown[b, w])
    out = wp.max(one, two)
    return wp.where(out > MARGIN, out, real(0.0))


@wp.func
def far_apart(s: wp.array(dtype=Collision), i: int, j: int, w: int) -> bool:
    """Whether two shapes cannot come within the margin in this step, by the spheres around them."""
    if s[0].shapes.kind[j] == PLANE:
        return False
    a = s[0].shapes.body[i]
    b = s[0].shapes.body[j]
    near = s[0].broad.way[a, w] + s[0].broad.way[b, w] + thrown(s, a, b, w) + MARGIN + s[0].shapes.bound[j]
    d = s[0].broad.centre[j, w] - s[0].broad.centre[i, w]
    kind = s[0].shapes.kind[i]
    if kind == PLANE:
        return wp.dot(frame_axis(s[0].broad.frame[i, w], 2), d) > near
    near = near + s[0].shapes.bound[i]
    return kind < MESH and wp.length_sq(d) > near * near


@wp.func
def opened(s: wp.array(dtype=Collision), p: int, w: int) -> real:
    """By how much the gap of a point grew since its bodies were at their anchors, m."""
    a = s[0].contacts.body_a[p, w]
    b = s[0].contacts.body_b[p, w]
    x = s[0].contacts.point[p, w]
    u = s[0].broad.moved[b, w] + wp.cross(s[0].broad.turned[b, w], x - s[0].contacts.anchor_position[b, w])
    u = u - s[0].broad.moved[a, w] - wp.cross(s[0].broad.turned[a, w], x - s[0].contacts.anchor_position[a, w])
    return wp.dot(s[0].contacts.normal[p, w], u)


@wp.func
def keep_cached_points(s: wp.array(dtype=Collision), old: int, w: int) -> None:
    """The points of the last step's pair `old` stay where they are in the list; their gaps are those of now."""
    first = s[0].kept.first[old, w]
    size = s[0].kept.size[old, w]
    at = s[0].contacts.pairs[w]
    s[0].contacts.pairs[w] = at + 1
    s[0].contacts.pair_first[at, w] = first
    s[0].contacts.pair_size[at, w] = size
    s[0].contacts.pair_feature[at, w] = s[0].kept.feature[old, w]
    s[0].contacts.count[w] = first + size
    for p in range(first, first + size):
        s[0].contacts.gap[p, w] = s[0].contacts.found[p, w] + opened(s, p, w)
        s[0].contacts.began[p, w] = 1 - s[0].kept.touched[old, w]


# ---- waking -----------------------------------------------------------------------------------------------------------------


@wp.func
def wake(s: wp.array(dtype=Collision), a: int, b: int, w: int) -> None:
    """Of two bodies, that which sleeps wakes if the other one moves."""
    for side in range(2):
        c = wp.where(side == 0, a, b)
        if s[0].contacts.asleep[c, w] == ASLEEP and s[0].broad.still[a + b - c, w] == 0:
            s[0].contacts.asleep[c, w] = WOKEN
            s[0].contacts.idle[c, w] = real(0.0)


@wp.func
def wake_touched(s: wp.array(dtype=Collision), w: int) -> None:
    """What sleeps and is touched in this step by a body that moves, or was in the last, wakes, and all that it touches."""
    for k in range(s[0].kept.pairs[w]):
        if s[0].kept.touched[k, w] == 1:
            wake(s, s[0].shapes.body[s[0].kept.a[k, w]], s[0].shapes.body[s[0].kept.b[k, w]], w)
    for p in range(s[0].contacts.count[w]):
        a = s[0].contacts.body_a[p, w]
        b = s[0].contacts.body_b[p, w]
        if s[0].contacts.gap[p, w] < TOUCHING_AT_REST + s[0].broad.way[a, w] + s[0].broad.way[b, w]:
            wake(s, a, b, w)
    spread_waking(s, w)


@wp.func
def wake_both(s: Any, a: int, b: int, w: int) -> int:
    """Of two bodies of one island, one that sleeps wakes if the other one was woken; 1 if so."""
    if s[0].contacts.asleep[a, w] == AWAKE or s[0].contacts.asleep[b, w] == AWAKE:
        return 0
    if s[0].contacts.asleep[a, w] == s[0].contacts.asleep[b, w]:
        return 0
    s[0].contacts.asleep[a, w] = WOKEN
    s[0].contacts.asleep[b, w] = WOKEN
    s[0].contacts.idle[a, w] = real(0.0)
    s[0].contacts.idle[b, w] = real(0.0)
    return 1


@wp.func
def is_tie_active(s: Any, k: int, w: int) -> bool:
    """Whether tie k joins its bodies now: the first ties are the scene's joints, which may be disabled."""
    if k < s[0].contacts.enabled.shape[0]:
        return s[0].contacts.enabled[k, w] != 0
    return True


@wp.func
def spread_waking(s: Any, w: int) -> None:
    """All that contacts and joints join to a body that was woken wakes too."""
    changed = int(1)
    while changed == 1:
        changed = int(0)
        for k in range(s[0].contacts.pairs[w]):
            p = s[0].contacts.pair_first[k, w]
            a = s[0].contacts.body_a[p, w]
            changed = wp.max(changed, wake_both(s, a, s[0].contacts.body_b[p, w], w))
        for k in range(s[0].contacts.joined_a.shape[0]):
            if is_tie_active(s, k, w):
                changed = wp.max(changed, wake_both(s, s[0].contacts.joined_a[k], s[0].contacts.joined_b[k], w))
