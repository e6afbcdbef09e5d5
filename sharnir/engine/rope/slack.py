"""Which elements of a rope are slack: a rope does not push (theory: ropes).

An element that would push harder than the load P = π² EI/l² at which it buckles is slack: its points slide along it,
s = d₃·(r_{j+1} − r_j) within ±l, while it pushes with P. It is taut again at s = l, or at −l, its points changed over. Which
elements are slack in a step is found by pivots, from those of the last step on.
"""

import math

import warp as wp

from sharnir.core.types import EPSILON, real
from sharnir.engine.rope.data import WOUND, RopeStep
from sharnir.engine.rope.terms import tangent

BUCKLES = wp.constant(real(math.pi * math.pi))
PUSH = wp.constant(real(max(1.0e-10, 1.0e2 * EPSILON)))  # relative to a rope's momentum: below it, an impulse is none
LITTLE = wp.constant(real(1.0e-6))  # relative to its weight: push below which it is none
LONGER = wp.constant(real(max(1.0e-8, 1.0e2 * EPSILON)))  # by which a slack element may be too long, relative
TRIES = wp.constant(4)  # rounds in which as many elements are judged wrong as before
OPEN = wp.constant(real(max(1.0e-7, 1.0e3 * EPSILON)))  # relative to its length: gap above which a row is not closed
JUDGED = wp.constant(60)  # rounds in an attempt


@wp.func
def buckling_load(s: wp.array(dtype=RopeStep), k: int, i: int, w: int) -> real:
    """P = π² EI/l² of an element, N."""
    l = s[0].state.length[i, w]
    return BUCKLES * s[0].ropes.EI[k, w] / (l * l)


@wp.func
def new_span(s: wp.array(dtype=RopeStep), i: int, w: int) -> real:
    """s₁ of an element: ±l where it is taut."""
    slack = s[0].work.slack[i, w]
    if slack == 1:
        return wp.dot(tangent(s[0].work.q[i, w]), s[0].work.r[i + 1, w] - s[0].work.r[i, w])
    if slack == -1:
        return -s[0].state.length[i, w]
    return s[0].state.length[i, w]


@wp.func
def side_of(s: wp.array(dtype=RopeStep), i: int, w: int) -> real:
    """−1 where the points of an element have changed over, 1 otherwise."""
    if s[0].work.slack[i, w] == -1:
        return real(-1.0)
    return real(1.0)


@wp.func
def take_slack(s: wp.array(dtype=RopeStep), w: int):
    """Elements are expected to be slack and taut as they were in the last step."""
    for i in range(s[0].work.slack.shape[0]):
        s[0].work.slack[i, w] = s[0].state.slack[i, w]
    for k in range(s[0].ropes.count):
        wind(s, k, w)


@wp.func
def reel_element(s: wp.array(dtype=RopeStep), k: int, w: int) -> int:
    """The element at a rope's reel."""
    return s[0].ropes.first[k] + s[0].ropes.reel[k] * (s[0].state.segments[k, w] - 1)


@wp.func
def wind(s: wp.array(dtype=RopeStep), k: int, w: int):
    """A taut element at a winch is wound: its length is the drum's."""
    if s[0].ropes.winch[k] >= 0:
        i = reel_element(s, k, w)
        s[0].work.slack[i, w] = as_wound(s, k, w, i, s[0].work.slack[i, w])


@wp.func
def as_wound(s: wp.array(dtype=RopeStep), k: int, w: int, i: int, slack: int) -> int:
    """How an element is that is taut or slack so: wound where it is taut, at a winch that winds."""
    if slack == 0 and s[0].ropes.winch[k] >= 0:
        if s[0].work.winds[k, w] == 1 and i == reel_element(s, k, w):
            return WOUND
    return slack


@wp.func
def unwound(slack: int) -> int:
    """As the state has it: a wound element is a taut one."""
    if slack == WOUND:
        return 0
    return slack


@wp.func
def close_beside(s: wp.array(dtype=RopeStep), k: int, w: int, i: int, way: int, over: real):
    """Make taut, too, the slack elements next to one that is too long by `over`, as many as that takes up.

    They would be found too long one after the other, a round each; where they then push, a round makes them all slack again.
    """
    first = s[0].ropes.first[k]
    last = first + s[0].state.segments[k, w] - 1
    left = over
    j = i + way
    while j >= first and j <= last:
        if s[0].state.cut[j, w] == 1 or s[0].work.slack[j, w] != 1:
            break
        span = new_span(s, j, w)
        left = left - wp.max(s[0].state.length[j, w] - wp.abs(span), real(0.0))
        if left < real(0.0):
            break
        s[0].work.slack[j, w] = as_wound(s, k, w, j, taut_at(span))
        j = j + way


@wp.func
def taut_at(span: real) -> int:
    """How an element is taut that becomes so at s: 0, or −1 with its points changed over."""
    if span < real(0.0):
        return -1
    return 0


@wp.func
def short_of(s: wp.array(dtype=RopeStep), i: int, w: int) -> real:
    """By how much a taut element does not reach from point to point, m: its place is too short for it.

    Passes leave that where taut elements and what holds their ends contradict each other, and impulses then tell nothing.
    """
    apart = s[0].work.r[i + 1, w] - s[0].work.r[i, w]
    return s[0].state.length[i, w] - side_of(s, i, w) * wp.dot(tangent(s[0].work.q[i, w]), apart)


@wp.func
def too_long(s: wp.array(dtype=RopeStep), w: int) -> real:
    """By how much of its length a slack element is too long, at most."""
    most = real(0.0)
    for k in range(s[0].ropes.count):
        first = s[0].ropes.first[k]
        for i in range(first, first + s[0].state.segments[k, w]):
            if s[0].state.cut[i, w] == 0 and s[0].work.slack[i, w] == 1:
                most = wp.max(most, wp.abs(new_span(s, i, w)) / s[0].state.length[i, w] - real(1.0))
    return most


@wp.func
def tauten(s: wp.array(dtype=RopeStep), w: int, over: real) -> int:
    """Take slack elements to be taut that are too long by more than `over` of their length; how many these are."""
    found = int(0)
    for k in range(s[0].ropes.count):
        first = s[0].ropes.first[k]
        for i in range(first, first + s[0].state.segments[k, w]):
            if s[0].state.cut[i, w] == 0 and s[0].work.slack[i, w] == 1:
                span = new_span(s, i, w)
                if wp.abs(span) > (real(1.0) + over) * s[0].state.length[i, w]:
                    s[0].work.slack[i, w] = taut_at(span)
                    found = found + 1
    return found


@wp.func
def widest_gap(s: wp.array(dtype=RopeStep), w: int) -> real:
    """Largest gap of a row, of its length."""
    most = real(0.0)
    for k in range(s[0].ropes.count):
        first = s[0].ropes.first[k]
        for i in range(first, first + s[0].state.segments[k, w]):
            if s[0].state.cut[i, w] == 0:
                d = tangent(s[0].work.q[i, w])
                gap = s[0].work.r[i + 1, w] - s[0].work.r[i, w] - d * new_span(s, i, w)
                most = wp.max(most, wp.length(gap) / s[0].state.length[i, w])
    return most


@wp.func
def judge_slack(s: wp.array(dtype=RopeStep), k: int, w: int, speed: real, change: real, shorter: real, flip: int) -> int:
    """How many elements push too hard, or are slack and too long; `flip` of them, from the last one on, change over.

    What is less than the error of passes whose last change was `change`, or rounding beside the largest `speed`, m/s, or next to
    nothing beside what the rope bears, does not count. `shorter`: by so much of its length a taut element does not fit its place.
    """
    if s[0].ropes.rod[k] == 1:
        return 0
    first = s[0].ropes.first[k]
    n = s[0].state.segments[k, w]
    h = s[0].h[w]
    length = real(0.0)
    pull = real(0.0)
    for i in range(first, first + n):
        length = length + s[0].state.length[i, w]
        pull = wp.max(pull, wp.length_sq(s[0].state.pull[i, w]))
    mass = s[0].ropes.density[k] * length
    weight = mass * wp.length(s[0].settings.gravity[w]) * h
    none = mass * (PUSH * speed + change) + LITTLE * weight + LONGER * wp.sqrt(pull)
    found = int(0)
    for back in range(n):
        i = first + n - 1 - back
        if s[0].state.cut[i, w] == 0:
            slack = s[0].work.slack[i, w]
            better = int(slack)
            if slack == 1:
                l = s[0].state.length[i, w]
                span = new_span(s, i, w)
                over = wp.abs(span) - l
                if over > LONGER * l + change * h:
                    better = as_wound(s, k, w, i, taut_at(span))
                    if flip > n:
                        close_beside(s, k, w, i, -1, over)
                        close_beside(s, k, w, i, 1, over)
            else:
                d = (tangent(s[0].state.rotation[i, w]) + tangent(s[0].work.q[i, w])) * real(0.5)
                push = wp.dot(s[0].state.pull[i, w], d) - buckling_load(s, k, i, w) * h
                if (slack != -1 and push > none) or (slack == -1 and push < -none):
                    better = 1
                if short_of(s, i, w) > shorter * s[0].state.length[i, w] + change * h:
                    better = 1
            if better != slack:
                if found < flip:
                    s[0].work.slack[i, w] = better
                found = found + 1
    return found


@wp.func
def judge(s: wp.array(dtype=RopeStep), w: int, speed: real, change: real, shorter: real, all: bool) -> int:
    """How many elements are not slack or taut as they were taken to be, at the pose at hand; all or the last change over."""
    found = int(0)
    for k in range(s[0].ropes.count):
        flip = int(1 << 30)
        if not all:
            flip = wp.max(1 - found, 0)
        found = found + judge_slack(s, k, w, speed, change, shorter, flip)
    return found


@wp.func
def all_at_once(found: int, fewest: int, tries: int):
    """Whether all wrong elements are to change over the next time, the fewest so far, and how often that may fail to fall.

    Block principal pivoting (Júdice, Pires 1994): all of them as long as their number falls, or a few times more; then the last
    one alone, which leads to an end, until there are fewer than ever.
    """
    if found < fewest:
        return True, found, int(TRIES)
    return tries > 1, fewest, wp.max(tries - 1, 0)
