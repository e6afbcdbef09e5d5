"""More points of contact than can be solved for at once: swept, the trees answering to each visit."""

import warp as wp

from sharnir.core.types import real, vec2, vec3, vec4, vec6
from sharnir.engine.direct.data import Direct
from sharnir.engine.direct.energy.rows import clear_changes
from sharnir.engine.direct.energy.touch_ease import free_response, is_rigid
from sharnir.engine.direct.energy.touch_points import (
    BOUNCES,
    axis_of,
    count_work,
    felt_at,
    forget_response,
    line_of,
    moment_of,
    relative,
    resists_turning,
    respond_to,
    softness_of,
    span_of,
    spring_speed,
    ties_trees,
    work_left,
)
from sharnir.laws.contact import SLOP, meet_point, rub, tangent_inverse

PARTED = wp.constant(40)  # sweeps over the overlaps
SWEEPS = wp.constant(60)  # over points that are too many to be solved for at once
STILL = wp.constant(real(1.0e-9))  # m: a sweep over the overlaps that changes less is the last
FEWEST = wp.constant(4)  # in any case
VISIT = wp.constant(4)  # visits of a link that one of a point takes the time of
MET = wp.constant(real(1.0e-9))  # m/s: what a sweep may change of a point that is met


# ---- more points than can be solved for at once -----------------------------------------------------------------------------


@wp.func
def own_response(s: wp.array(dtype=Direct), i: int, w: int, turns: bool) -> vec6:
    """A point's response to itself: nn, n1, n2, 11, 12, 22; or that of what resists turning there."""
    K = vec6()
    for x in range(3):
        axis = line_of(s, i, w, x, turns)
        if wp.length_sq(axis) > real(0.0):
            respond_to(s, i, w, axis, turns)
            u = felt_at(s, i, w, s[0].work.change_l, s[0].work.change_a, turns)
            for y in range(x, 3):
                rate = wp.dot(line_of(s, i, w, y, turns), u)
                if x == 0:
                    K[y] = rate
                else:
                    K[x + y + 1] = rate
            forget_response(s, i, w)
    return K


@wp.func
def move_span(s: wp.array(dtype=Direct), w: int, start: int, end: int):
    """Add the changes of some links to their velocities at the end of the step."""
    for n in range(start, end):
        b = s[0].tree.body[n]
        s[0].work.acceleration[b, w] = s[0].work.acceleration[b, w] + s[0].work.change_l[b, w]
        s[0].work.turning[b, w] = s[0].work.turning[b, w] + s[0].work.change_a[b, w]


@wp.func
def give(s: wp.array(dtype=Direct), i: int, w: int, d: vec3, turns: bool):
    """An impulse, or a moment, at a point, and what it does to the velocities at the end of the step."""
    P = line_of(s, i, w, 0, turns) * d[0] + line_of(s, i, w, 1, turns) * d[1] + line_of(s, i, w, 2, turns) * d[2]
    respond_to(s, i, w, P, turns)
    if ties_trees(s):
        move_span(s, w, 0, s[0].tree.count)
    else:
        start, end = span_of(s, i, w, 0)
        move_span(s, w, start, end)
        other, last = span_of(s, i, w, 1)
        if other != start:
            move_span(s, w, other, last)
    forget_response(s, i, w)


@wp.func
def visit_point(s: wp.array(dtype=Direct), i: int, w: int) -> real:
    """Meet one point at the velocities of now; returns by how much that changes its speed, m/s."""
    u = relative(s, i, w, s[0].work.acceleration, s[0].work.turning) + s[0].contacts.surface[i, w]
    speeds = vec3(wp.dot(axis_of(s, i, w, 0), u), wp.dot(axis_of(s, i, w, 1), u), wp.dot(axis_of(s, i, w, 2), u))
    K = s[0].touch.K[i, w]
    p = s[0].touch.p[i, w]
    for k in range(2):
        speeds[k + 1] = speeds[k + 1] + s[0].touch.lead[i, w][k] + s[0].touch.yields[i, w][k] * p[k + 1]
    one = vec2(real(1.0), real(1.0))
    bias = spring_speed(s, i, w)
    if s[0].touch.before[i, w] < -BOUNCES:
        bias = s[0].contacts.restitution[i, w] * s[0].touch.before[i, w]
    new = meet_point(p, speeds, K, s[0].touch.G[i, w], one, bias, softness_of(s, i, w))
    d = new - p
    if wp.length_sq(d) == real(0.0):
        return real(0.0)
    s[0].touch.p[i, w] = new
    give(s, i, w, d, False)
    return wp.max(wp.abs(d[0]) * K[0], wp.max(wp.abs(d[1]) * K[3], wp.abs(d[2]) * K[5]))


@wp.func
def visit_turning(s: wp.array(dtype=Direct), i: int, w: int) -> real:
    """Meet what resists turning at a point, by the normal impulse of now; returns a speed that tells how much that changes, m/s.

    Moments, by their coefficients, are on the interval about the normal, and on the disc across it, that p_n allows.
    """
    bound = s[0].touch.p[i, w][0]
    l = s[0].touch.roll[i, w]
    K = s[0].touch.turn_K[i, w]
    spin = felt_at(s, i, w, s[0].work.acceleration, s[0].work.turning, True)
    new = vec3(real(0.0))
    u = vec3(wp.dot(moment_of(s, i, w, 0), spin), wp.dot(moment_of(s, i, w, 1), spin), wp.dot(moment_of(s, i, w, 2), spin))
    if K[0] > real(0.0):
        new[0] = wp.clamp(l[0] - u[0] / K[0], -bound, bound)
    if s[0].contacts.rolling[i, w] > real(0.0):
        d = new[0] - l[0]
        a, b = rub(l[1], l[2], u[1] + K[1] * d, u[2] + K[2] * d, s[0].touch.turn_G[i, w], bound)
        new = vec3(new[0], a, b)
    by = new - l
    if wp.length_sq(by) == real(0.0):
        return real(0.0)
    s[0].touch.roll[i, w] = new
    give(s, i, w, by, True)
    # a moment of c p_n moves a point as c/r of an impulse p_n does: told on the scale of that
    return wp.max(wp.abs(by[0]), wp.max(wp.abs(by[1]), wp.abs(by[2]))) * s[0].touch.K[i, w][0]


@wp.func
def find_own(s: wp.array(dtype=Direct), w: int):
    """The response of each point that acts to itself; one that gives way to nothing gets one of its own."""
    for i in range(s[0].contacts.count[w]):
        if s[0].touch.acts[i, w] == 1:
            if resists_turning(s, i, w):
                K = own_response(s, i, w, True)
                s[0].touch.turn_K[i, w] = K
                if s[0].contacts.rolling[i, w] > real(0.0):
                    s[0].touch.turn_G[i, w] = tangent_inverse(K, vec2(real(1.0), real(1.0)))
            K = own_response(s, i, w, False)
            if is_rigid(s, i, w, K[0]):
                K[0] = K[0] + free_response(s, i, w)
                K[3] = K[3] + free_response(s, i, w)
                K[5] = K[5] + free_response(s, i, w)
            s[0].touch.K[i, w] = K
            K[3] = K[3] + s[0].touch.yields[i, w][0]
            K[5] = K[5] + s[0].touch.yields[i, w][1]
            s[0].touch.G[i, w] = vec4(real(0.0))
            if s[0].touch.mu[i, w][0] > real(0.0):
                s[0].touch.G[i, w] = tangent_inverse(K, vec2(real(1.0), real(1.0)))


@wp.func
def sweep_all(s: wp.array(dtype=Direct), w: int, turn: int) -> real:
    """Sweeps over all points that act, trees answering to each visit; returns the first change, m/s, and leaves impulses in p."""
    count = s[0].contacts.count[w]
    clear_changes(s, w, 0, s[0].tree.count)
    for n in range(s[0].other_count):
        s[0].work.change_l[s[0].others[n], w] = vec3(real(0.0))
        s[0].work.change_a[s[0].others[n], w] = vec3(real(0.0))
    find_own(s, w)
    first = real(0.0)
    acts = int(0)
    for i in range(count):
        acts = acts + wp.max(s[0].touch.acts[i, w], 0)
    visits = real(VISIT * wp.max(acts, 1))
    sweeps = wp.clamp(int(real(work_left(s, w)) * real(s[0].tree.count) / visits), FEWEST, SWEEPS)
    for it in range(sweeps):
        count_work(s, w, visits)
        most = real(0.0)
        for k in range(count):
            i = k
            if it % 2 == 1:
                i = count - 1 - k
            if s[0].touch.acts[i, w] == 1:
                most = wp.max(most, visit_point(s, i, w))
                if resists_turning(s, i, w):
                    most = wp.max(most, visit_turning(s, i, w))
        if it == 0:
            first = most
        if most <= MET:
            break
    return first


# ---- overlaps ---------------------------------------------------------------------------------------------------------------


@wp.func
def gap_left(s: wp.array(dtype=Direct), i: int, w: int):
    """What is to be displaced of a point's gap at the end of the step, m; and whether it landed in the step, to stay in touch."""
    u = relative(s, i, w, s[0].work.acceleration, s[0].work.turning) + s[0].contacts.surface[i, w]
    un = wp.dot(s[0].contacts.normal[i, w], u)
    left = s[0].contacts.gap[i, w] + real(0.5) * s[0].drift[w] * (un + s[0].touch.before[i, w])
    if s[0].contacts.stiffness[i, w] > real(0.0):
        left = real(1.0e30)
    landed = left > SLOP and left < real(1.0) and s[0].touch.p[i, w][0] > real(0.0)
    if wp.abs(left) < SLOP:
        left = real(0.0)
    elif left < real(0.0):
        left = left + real(0.5) * SLOP
    return left, landed


@wp.func
def keep_moves(s: wp.array(dtype=Direct), w: int, start: int, end: int):
    """Add the changes of some links to what they are displaced by."""
    for n in range(start, end):
        b = s[0].tree.body[n]
        s[0].touch.move_l[b, w] = s[0].touch.move_l[b, w] + s[0].work.change_l[b, w]
        s[0].touch.move_a[b, w] = s[0].touch.move_a[b, w] + s[0].work.change_a[b, w]


@wp.func
def part_one(s: wp.array(dtype=Direct), i: int, w: int, landed: bool) -> real:
    """Displace the two trees of one point until its gap is as it should be; returns by how much that changed it, m."""
    h = real(0.5) * s[0].drift[w]
    n = s[0].contacts.normal[i, w]
    gap = s[0].touch.aim[i, w] + h * wp.dot(n, relative(s, i, w, s[0].touch.move_l, s[0].touch.move_a))
    new = s[0].touch.pseudo[i, w] - gap / (h * s[0].touch.K[i, w][0])
    if not landed:
        new = wp.max(real(0.0), new)
    d = new - s[0].touch.pseudo[i, w]
    if d == real(0.0):
        return real(0.0)
    s[0].touch.pseudo[i, w] = new
    respond_to(s, i, w, n * d, False)
    start, end = span_of(s, i, w, 0)
    other, last = span_of(s, i, w, 1)
    if ties_trees(s):
        start = int(0)
        end = s[0].tree.count
        other = int(0)
    keep_moves(s, w, start, end)
    if other != start:
        keep_moves(s, w, other, last)
    forget_response(s, i, w)
    return wp.abs(d) * h * s[0].touch.K[i, w][0]


@wp.func
def part_all(s: wp.array(dtype=Direct), w: int) -> bool:
    """What takes back the overlaps at the end of the step, the trees answering to each visit; whether there are any."""
    count = s[0].contacts.count[w]
    off = bool(False)
    for i in range(count):
        s[0].touch.pseudo[i, w] = real(0.0)
        if s[0].touch.acts[i, w] == 1:
            left, landed = gap_left(s, i, w)
            s[0].touch.aim[i, w] = left
            off = off or landed or left < real(0.0)
    if not off:
        return False
    clear_changes(s, w, 0, s[0].tree.count)
    for b in range(s[0].touch.move_l.shape[0]):
        s[0].touch.move_l[b, w] = vec3(real(0.0))
        s[0].touch.move_a[b, w] = vec3(real(0.0))
    for it in range(PARTED):
        most = real(0.0)
        for k in range(count):
            i = k
            if it % 2 == 1:
                i = count - 1 - k
            if s[0].touch.acts[i, w] == 1:
                _left, landed = gap_left(s, i, w)
                most = wp.max(most, part_one(s, i, w, landed))
        if most <= STILL:
            break
    return True
