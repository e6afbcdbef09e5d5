"""Ropes against each other and themselves: elements are capsules, and a point of contact is shared by the ends of both.

With s and t the places of the nearest points on elements a and b,

    u = (1 − t) v_b + t v_{b+1} − (1 − s) v_a − s v_{a+1},        P on b by 1 − t and t, −P on a by 1 − s and s.

Elements that are nearer along the rope than half a turn about its own radius, π r, do not touch. s and t of
elements that lie side by side are drawn to their middles a little: these touch in the middle of their common stretch, and that
place does not jump.
Which elements are near each other is found by boxes around elements, pieces of a few elements, and pieces of these.
"""

import warp as wp

from sharnir.core.types import real, vec3
from sharnir.engine.rope.data import ROPE, RopeStep
from sharnir.engine.rope.touch_data import FAR, NEAR, OPEN, PLACES, SLIDES, RopeTouch, take_over

LEANS = wp.constant(real(0.2))  # by so much, of its length, what leads from one of two parallel elements to the other may lean
FAST = wp.constant(real(0.25))  # of the distance of axes that touch: what comes nearer by more in a step is followed on its way
DRAWN = wp.constant(real(0.01))  # towards the middle, relative to what draws nearest points together, where elements are parallel
WIDE = wp.constant(real(1.5))  # of its radius: by so much boxes are wider than an element's axis


# ---- geometry ---------------------------------------------------------------------------------------------------------------


@wp.func
def nearest_places(a: vec3, a1: vec3, b: vec3, b1: vec3):
    """s and t of the nearest points of two elements, drawn to their middles: the least of |x_a − x_b|² + ε(…) within 0 … 1."""
    u = a1 - a
    v = b1 - b
    d = a - b
    uu = wp.length_sq(u)
    vv = wp.length_sq(v)
    uv = wp.dot(u, v)
    side = uv * uv / wp.max(uu * vv, real(1.0e-30))  # cos² of the angle between them
    drawn = DRAWN * side * side
    p = wp.dot(u, d) - real(0.5) * drawn * uu
    q = wp.dot(v, d) + real(0.5) * drawn * vv
    A = uu * (real(1.0) + drawn)
    C = vv * (real(1.0) + drawn)
    s = wp.clamp((uv * q - p * C) / wp.max(A * C - uv * uv, real(1.0e-30)), real(0.0), real(1.0))
    t = wp.clamp((uv * s + q) / wp.max(C, real(1.0e-30)), real(0.0), real(1.0))
    s = wp.clamp((uv * t - p) / wp.max(A, real(1.0e-30)), real(0.0), real(1.0))
    return s, t


@wp.func
def between(values: wp.array2d(dtype=vec3), t: wp.array(dtype=RopeTouch), p: int, w: int) -> vec3:
    """Of values at points, that on b less that on a."""
    a = t[0].pair_a[p, w]
    b = t[0].pair_b[p, w]
    on_a = values[a, w] + (values[a + 1, w] - values[a, w]) * t[0].pair_s[p, w]
    on_b = values[b, w] + (values[b + 1, w] - values[b, w]) * t[0].pair_t[p, w]
    return on_b - on_a


@wp.func
def spread(values: wp.array2d(dtype=vec3), t: wp.array(dtype=RopeTouch), p: int, P: vec3, w: int):
    """Add P on b and −P on a to values at points."""
    a = t[0].pair_a[p, w]
    b = t[0].pair_b[p, w]
    on_a = t[0].pair_s[p, w]
    on_b = t[0].pair_t[p, w]
    values[a, w] = values[a, w] - P * (real(1.0) - on_a)
    values[a + 1, w] = values[a + 1, w] - P * on_a
    values[b, w] = values[b, w] + P * (real(1.0) - on_b)
    values[b + 1, w] = values[b + 1, w] + P * on_b


@wp.func
def thickness(s: wp.array(dtype=RopeStep), t: wp.array(dtype=RopeTouch), a: int, b: int) -> real:
    """Distance of the axes of two elements that touch, m."""
    return s[0].ropes.radius[t[0].rope_of[a]] + s[0].ropes.radius[t[0].rope_of[b]]


@wp.func
def axis_normal(d: vec3, u: vec3, otherwise: vec3) -> vec3:
    """Direction of d or, of axes that meet, across both."""
    far = wp.length(d)
    if far > real(1.0e-9):
        return d / far
    across = wp.length(u)
    if across > real(1.0e-12):
        return u / across
    return otherwise


# ---- which elements -----------------------------------------------------------------------------------------------------------


@wp.func
def overlap(low: vec3, high: vec3, other_low: vec3, other_high: vec3) -> bool:
    """Whether two boxes have a point in common."""
    along = low[0] <= other_high[0] and other_low[0] <= high[0]
    across = low[1] <= other_high[1] and other_low[1] <= high[1]
    return along and across and low[2] <= other_high[2] and other_low[2] <= high[2]


@wp.func
def make_boxes(s: wp.array(dtype=RopeStep), t: wp.array(dtype=RopeTouch), w: int):
    """Boxes of elements on their way by themselves, of chunks and of spans."""
    for p in range(t[0].spans):
        span_low = vec3(FAR, FAR, FAR)
        span_high = -span_low
        for q in range(t[0].span_first[p], t[0].span_end[p]):
            low = vec3(FAR, FAR, FAR)
            high = -low
            k = t[0].rope_of[t[0].chunk_first[q]]
            last = s[0].ropes.first[k] + s[0].state.segments[k, w]
            r = s[0].ropes.radius[k] * WIDE
            wide = vec3(r, r, r)
            for i in range(t[0].chunk_first[q], wp.min(t[0].chunk_end[q], last)):
                a = s[0].state.position[i, w]
                b = s[0].state.position[i + 1, w]
                a1 = s[0].work.r[i, w]
                b1 = s[0].work.r[i + 1, w]
                e_low = wp.min(wp.min(a, b), wp.min(a1, b1)) - wide
                e_high = wp.max(wp.max(a, b), wp.max(a1, b1)) + wide
                t[0].low[i, w] = e_low
                t[0].high[i, w] = e_high
                low = wp.min(low, e_low)
                high = wp.max(high, e_high)
            t[0].chunk_low[q, w] = low
            t[0].chunk_high[q, w] = high
            span_low = wp.min(span_low, low)
            span_high = wp.max(span_high, high)
        t[0].span_low[p, w] = span_low
        t[0].span_high[p, w] = span_high


@wp.func
def from_end(s: wp.array(dtype=RopeStep), end: int, i: int, w: int) -> int:
    """How many elements an element is from an end of its rope."""
    k = end / 2
    if end % 2 == 0:
        return i - s[0].ropes.first[k]
    return s[0].ropes.first[k] + s[0].state.segments[k, w] - 1 - i


@wp.func
def held_together(s: wp.array(dtype=RopeStep), t: wp.array(dtype=RopeTouch), a: int, b: int, w: int) -> bool:
    """Whether elements are near ends that are held at one place, or one at the other."""
    for x in range(2):
        end = 2 * t[0].rope_of[a] + x
        if from_end(s, end, a, w) < t[0].near[end]:
            if s[0].ropes.kind[end] == ROPE and wp.abs(b - s[0].ropes.body[end]) <= t[0].near[end]:
                return True
            for y in range(2):
                other = 2 * t[0].rope_of[b] + y
                same = t[0].hook[end] >= 0 and t[0].hook[end] == t[0].hook[other]
                if same and other != end and from_end(s, other, b, w) < t[0].near[other]:
                    return True
        end = 2 * t[0].rope_of[b] + x
        if s[0].ropes.kind[end] == ROPE and from_end(s, end, b, w) < t[0].near[end]:
            if wp.abs(a - s[0].ropes.body[end]) <= t[0].near[end]:
                return True
    return False


@wp.func
def goes_on(s: wp.array(dtype=RopeStep), k: int, i: int, at: real, d: vec3, side: real, w: int) -> bool:
    """Whether an element that is nearest at one of its ends is left to its neighbour there: d leads to what it is near to.

    At its last end d points beyond it, at its first end back along the element before: so what slides along a rope meets no point
    ahead of it. Elements side by side (`side`, cos² of their angle) are both taken where d leans by little: which of the two is
    nearer is then not for sure.
    """
    along = vec3()
    if at >= real(1.0) and i < s[0].ropes.first[k] + s[0].state.segments[k, w] - 1:
        along = s[0].state.position[i + 1, w] - s[0].state.position[i, w]
    elif at <= real(0.0) and i > s[0].ropes.first[k]:
        along = s[0].state.position[i - 1, w] - s[0].state.position[i, w]
    return wp.dot(d, along) > LEANS * side * side * wp.length(d) * wp.length(along)


@wp.func
def begin_pair(s: wp.array(dtype=RopeStep), t: wp.array(dtype=RopeTouch), a: int, b: int, w: int):
    """Take two elements as a pair, if they may touch in this step; what they did in the last one is taken over."""
    ka = t[0].rope_of[a]
    kb = t[0].rope_of[b]
    x = s[0].state.position[a, w]
    x1 = s[0].state.position[a + 1, w]
    y = s[0].state.position[b, w]
    y1 = s[0].state.position[b + 1, w]
    on_a, on_b = nearest_places(x, x1, y, y1)
    d = (y + (y1 - y) * on_b) - (x + (x1 - x) * on_a)
    side = wp.dot(x1 - x, y1 - y)
    side = side * side / wp.max(wp.length_sq(x1 - x) * wp.length_sq(y1 - y), real(1.0e-30))
    if goes_on(s, ka, a, on_a, d, side, w) or goes_on(s, kb, b, on_b, -d, side, w):
        return
    gap = wp.length(d) - thickness(s, t, a, b)
    u = s[0].work.v[b, w] - s[0].work.v[a, w]
    v = s[0].work.v[b + 1, w] - s[0].work.v[a + 1, w]
    way = wp.sqrt(wp.max(wp.length_sq(u), wp.length_sq(v))) * s[0].h[w]
    reach = wp.max(wp.min(s[0].ropes.radius[ka], s[0].ropes.radius[kb]), way)
    if gap > reach or held_together(s, t, a, b, w):
        return
    p = t[0].pairs[w]
    if p >= t[0].pair_capacity:
        t[0].lost[w] = t[0].lost[w] + 1
        return
    t[0].pairs[w] = p + 1
    e = t[0].base + p
    t[0].pair_a[p, w] = a
    t[0].pair_b[p, w] = b
    t[0].pair_s[p, w] = on_a
    t[0].pair_t[p, w] = on_b
    n = axis_normal(d, wp.cross(x1 - x, y1 - y), vec3(real(0.0), real(0.0), real(1.0)))
    t[0].start[e, w] = gap
    t[0].n[e, w] = n
    t[0].impulse[e, w] = vec3()
    t[0].centre[e, w] = vec3()
    t[0].state[e, w] = OPEN
    for o in range(t[0].kept_pairs[w]):
        if t[0].kept_a[o, w] == a and t[0].kept_b[o, w] == b:
            take_over(t, e, t[0].base + o, n, w)
    slip = between(s[0].state.velocity, t, p, w)
    slip = slip - n * wp.dot(n, slip)
    mu = wp.sqrt(t[0].friction[ka] * t[0].friction[kb])
    if wp.length_sq(slip) > SLIDES * SLIDES:
        mu = wp.sqrt(t[0].dynamic[ka] * t[0].dynamic[kb])
    t[0].mu[e, w] = mu
    t[0].bound[e, w] = mu * wp.max(wp.dot(n, t[0].centre[e, w]), real(0.0))


@wp.func
def pair_chunks(s: wp.array(dtype=RopeStep), t: wp.array(dtype=RopeTouch), p: int, q: int, w: int):
    """Pairs of the elements of two chunks."""
    k = t[0].rope_of[t[0].chunk_first[p]]
    m = t[0].rope_of[t[0].chunk_first[q]]
    last = s[0].ropes.first[k] + s[0].state.segments[k, w]
    end = s[0].ropes.first[m] + s[0].state.segments[m, w]
    for a in range(t[0].chunk_first[p], wp.min(t[0].chunk_end[p], last)):
        first = t[0].chunk_first[q]
        if k == m:
            first = wp.max(first, a + t[0].skip[k] + 1)
        if s[0].state.cut[a, w] == 0 and overlap(t[0].low[a, w], t[0].high[a, w], t[0].chunk_low[q, w], t[0].chunk_high[q, w]):
            for b in range(first, wp.min(t[0].chunk_end[q], end)):
                if s[0].state.cut[b, w] == 0 and overlap(t[0].low[a, w], t[0].high[a, w], t[0].low[b, w], t[0].high[b, w]):
                    begin_pair(s, t, a, b, w)


@wp.func
def begin_pairs(s: wp.array(dtype=RopeStep), t: wp.array(dtype=RopeTouch), w: int):
    """All pairs of elements that may touch in this step."""
    t[0].pairs[w] = 0
    if t[0].pair_capacity == 0:
        return
    before = t[0].lost[w]
    t[0].lost[w] = 0
    make_boxes(s, t, w)
    for x in range(t[0].spans):
        k = t[0].rope_of[t[0].chunk_first[t[0].span_first[x]]]
        for y in range(x, t[0].spans):
            m = t[0].rope_of[t[0].chunk_first[t[0].span_first[y]]]
            near = overlap(t[0].span_low[x, w], t[0].span_high[x, w], t[0].span_low[y, w], t[0].span_high[y, w])
            if near and t[0].passes[k, m] == 0:
                for p in range(t[0].span_first[x], t[0].span_end[x]):
                    for q in range(wp.max(p, t[0].span_first[y]), t[0].span_end[y]):
                        if overlap(t[0].chunk_low[p, w], t[0].chunk_high[p, w], t[0].chunk_low[q, w], t[0].chunk_high[q, w]):
                            pair_chunks(s, t, p, q, w)
    t[0].lost[w] = wp.max(t[0].lost[w], before)


# ---- how far off ------------------------------------------------------------------------------------------------------------


@wp.func
def pair_gap(s: wp.array(dtype=RopeStep), t: wp.array(dtype=RopeTouch), p: int, w: int):
    """Gap of a pair at the end of the step, as it stands, along the normal of where they touch, or would have.

    Places and normal are those of the start, as the directions of pulls are, where the two come nearer by less than a quarter of
    their distance: the gap is then linear in velocities. Others are followed on their way, each time as far as they cannot touch
    yet.
    """
    a = t[0].pair_a[p, w]
    b = t[0].pair_b[p, w]
    e = t[0].base + p
    thick = thickness(s, t, a, b)
    way = between(s[0].work.r, t, p, w) - between(s[0].state.position, t, p, w)
    if wp.length(way) > FAST * thick:
        x = s[0].state.position[a, w]
        x1 = s[0].state.position[a + 1, w]
        y = s[0].state.position[b, w]
        y1 = s[0].state.position[b + 1, w]
        ux = s[0].work.r[a, w] - x
        ux1 = s[0].work.r[a + 1, w] - x1
        uy = s[0].work.r[b, w] - y
        uy1 = s[0].work.r[b + 1, w] - y1
        least = wp.max(wp.max(wp.length(uy - ux), wp.length(uy1 - ux)), wp.max(wp.length(uy - ux1), wp.length(uy1 - ux1)))
        part = real(0.0)
        n = t[0].n[e, w]
        on_a = real(0.0)
        on_b = real(0.0)
        for _place in range(PLACES):
            on_a, on_b = nearest_places(x + ux * part, x1 + ux1 * part, y + uy * part, y1 + uy1 * part)
            d = (y + uy * part) * (real(1.0) - on_b) + (y1 + uy1 * part) * on_b
            d = d - (x + ux * part) * (real(1.0) - on_a) - (x1 + ux1 * part) * on_a
            n = axis_normal(d, n, n)
            gap = wp.length(d) - thick
            if gap <= NEAR or part >= real(1.0):
                break
            part = wp.min(part + wp.max(gap, NEAR) / wp.max(least, real(1.0e-12)), real(1.0))
        t[0].n[e, w] = n
        t[0].pair_s[p, w] = on_a
        t[0].pair_t[p, w] = on_b
    t[0].gap[e, w] = wp.dot(t[0].n[e, w], between(s[0].work.r, t, p, w)) - thick
    t[0].speed[e, w] = between(s[0].work.v, t, p, w)
