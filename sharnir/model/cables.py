"""Massless cables over sheaves and drums: straight spans from tangent point to tangent point, and arcs between them.

A sheave is a circle of radius R about the point c of a body, along its axis a (a unit vector); the cable turns about a by the
right-hand rule, so that it runs along n at the point c + R n×a/|n×a|². A fixed end has R = 0. Of a span from 1 to 2,

    e = c₂ − c₁ = ℓ n + A×n,   A = R₂ a₂/|n×a₂|² − R₁ a₁/|n×a₁|²,       n = (ℓ e − A×e)/e²,  ℓ = √(e² − A²)  where A is across e

and, with θ the angle of n about a, from a mark on the body, turns counted,

    C = ℓ − R₂ θ₂ + R₁ θ₁,         Ċ = n·(v₂ − v₁)   at the tangent points, moving with the bodies

(C is stationary in n; so its rate has the tangent points, and tension no moment about a but R T, at any angle of the span to a.)
C is what the span holds of the cable, but for a constant: where a body turns, it takes cable up or pays it out. On a sheave that
turns with the cable (`grips`) and on a drum each side is a constraint of its own, C ≤ rest; over a smooth sheave the two sides
are one, and R (θ₁ − θ₂) is the arc between them. So a row of the solvers is a *run* of spans: ΣC ≤ Σrest, with tension ≥ 0.

Over a rough sheave, which does not turn, runs part: T₂/T₁ lies within e^(±μφ), φ the angle of the arc. While it does, both are
rows of their own; where it slides, the two are one row again, whose force on the spans beyond is that much larger or smaller.
"""

from typing import Any

import warp as wp

from sharnir.core.types import EPSILON, quat, real, vec3

SPANS = wp.constant(40)  # rounds, at most, that find n where axes are not across the span
LONGEST_SWITCH = wp.constant(24)  # times, in a step, that a row may become taut, slack, slide or hold
CLOSE_LINE = wp.constant(real(EPSILON * EPSILON))
SLACKEST = wp.constant(real(1.0e-12))  # of the scene's length: a row is open beyond it


@wp.struct
class CableTable:
    """Constant data of all cables. Runs follow each other in order, spans likewise; an end of a span is 2 · span, or one more."""

    count: wp.int32  # runs, which are rows of the solvers
    spans: wp.int32
    ends: wp.int32
    first: wp.array(dtype=wp.int32)  # [run + 1] its first span
    joins: wp.array(dtype=wp.int32)  # [run] 1: a rough sheave lies between it and the next
    friction: wp.array2d(dtype=real)  # [run, world] coefficient of that sheave
    body: wp.array(dtype=wp.int32)  # [end]
    center: wp.array(dtype=vec3)  # [end] m, from the centre of mass, body axes; so are axis and mark
    axis: wp.array(dtype=vec3)  # [end] unit
    mark: wp.array(dtype=vec3)  # [end] unit, across the axis
    radius: wp.array(dtype=real)  # [end] m
    slots: wp.int32
    slot_first: wp.array(dtype=wp.int32)  # [run + 1] a slot is a body of a run and of those that may slide with it
    slot_body: wp.array(dtype=wp.int32)  # [slot]
    slot: wp.array2d(dtype=wp.int32)  # [run, end] the slot, or −1


@wp.struct
class CableWork:
    """Scratch of a solve; [item, world]."""

    n: wp.array2d(dtype=vec3)  # [span, world] direction, m of length, and arms of the ends from the centres of mass
    length: wp.array2d(dtype=real)
    arm: wp.array2d(dtype=vec3)  # [end, world]
    angle: wp.array2d(dtype=real)  # [end, world] θ
    held: wp.array2d(dtype=real)  # [span, world] m, C
    weight: wp.array2d(dtype=real)  # [span, world] of its tension, of the row's
    rate_l: wp.array2d(dtype=vec3)  # [slot, world] the row, as it is closed, and as it acts
    rate_a: wp.array2d(dtype=vec3)
    force_l: wp.array2d(dtype=vec3)
    force_a: wp.array2d(dtype=vec3)
    gap: wp.array2d(dtype=real)  # [run, world] m, ΣC − Σrest of a row
    slides: wp.array2d(dtype=wp.int32)  # [run, world] with the next: 1 towards it, −1 from it
    leads: wp.array2d(dtype=wp.int32)  # [run, world] the run whose row it belongs to
    taut: wp.array2d(dtype=wp.int32)  # [run, world] 1: the row is closed
    struck: wp.array2d(dtype=wp.int32)  # [run, world] 1: it became so in this step
    K: wp.array2d(dtype=real)  # [run, world] response, in sweeps
    bias: wp.array2d(dtype=real)  # [run, world] m/s
    impulse: wp.array2d(dtype=real)  # [run, world] N·s, ≤ 0; in sweeps
    pseudo: wp.array2d(dtype=real)  # [run, world] split impulse
    came: wp.array2d(dtype=real)  # [run, world] m
    switched: wp.array(dtype=wp.int32)  # [world] times, in this step


@wp.func
def rim(n: vec3, axis: vec3, R: real) -> vec3:
    """From the centre of a circle to where a line along n touches it."""
    u = wp.cross(n, axis)
    return u * (R / wp.max(wp.dot(u, u), real(1.0e-6)))


@wp.func
def span_line(e: vec3, a: vec3, R_a: real, b: vec3, R_b: real) -> tuple[vec3, real]:
    """Direction n and length ℓ of a span between circles, e from centre to centre: e = ℓ n + A×n.

    Circles that overlap have no tangent: then about none.
    """
    A = b * R_b - a * R_a
    e2 = wp.max(wp.dot(e, e), real(1.0e-24))
    across = A - e * (wp.dot(A, e) / e2)
    l = wp.sqrt(wp.max(e2 - wp.dot(across, across), real(1.0e-12) * e2))
    n = wp.normalize(e * l - wp.cross(across, e))
    if wp.abs(wp.dot(a, e)) * R_a + wp.abs(wp.dot(b, e)) * R_b > real(0.0):
        off = real(1.0)
        for _i in range(SPANS):
            line = e + rim(n, b, R_b) - rim(n, a, R_a)
            l = wp.length(line)
            line = line / wp.max(l, real(1.0e-12))
            last = off
            off = wp.length_sq(line - n)
            n = line
            if off >= last or off < CLOSE_LINE:
                break
    return n, l


@wp.func
def near_angle(n: vec3, axis: vec3, mark: vec3, near: real) -> real:
    """Angle of n about an axis from a mark, on the turn that is nearest to `near`."""
    theta = wp.atan2(wp.dot(axis, wp.cross(mark, n)), wp.dot(mark, n))
    turn = real(6.283185307179586)
    return theta + turn * wp.floor((near - theta) / turn + real(0.5))


@wp.func
def place_span(
    s: Any, i: int, w: int,
    position: wp.array2d(dtype=vec3), rotation: wp.array2d(dtype=quat), near: wp.array2d(dtype=real),
) -> None:  # fmt: skip
    """Line, arms, angles and C of a span at a pose; returns its length less what bodies took up, C."""
    a = 2 * i
    b = a + 1
    p = s[0].cables.body[a]
    c = s[0].cables.body[b]
    r_p = wp.quat_rotate(rotation[p, w], s[0].cables.center[a])
    r_c = wp.quat_rotate(rotation[c, w], s[0].cables.center[b])
    R_p = s[0].cables.radius[a]
    R_c = s[0].cables.radius[b]
    axis_p = wp.quat_rotate(rotation[p, w], s[0].cables.axis[a])
    axis_c = wp.quat_rotate(rotation[c, w], s[0].cables.axis[b])
    e = position[c, w] + r_c - position[p, w] - r_p
    n, l = span_line(e, axis_p, R_p, axis_c, R_c)
    s[0].cable.n[i, w] = n
    s[0].cable.length[i, w] = l
    s[0].cable.arm[a, w] = r_p + rim(n, axis_p, R_p)
    s[0].cable.arm[b, w] = r_c + rim(n, axis_c, R_c)
    held = l
    if R_p > real(0.0):
        theta = near_angle(n, axis_p, wp.quat_rotate(rotation[p, w], s[0].cables.mark[a]), near[a, w])
        s[0].cable.angle[a, w] = theta
        held = held + R_p * theta
    if R_c > real(0.0):
        theta = near_angle(n, axis_c, wp.quat_rotate(rotation[c, w], s[0].cables.mark[b]), near[b, w])
        s[0].cable.angle[b, w] = theta
        held = held - R_c * theta
    s[0].cable.held[i, w] = held


@wp.func
def lead_runs(s: Any, w: int) -> None:
    """Which row each run belongs to, and how its spans share the row's tension."""
    weight = real(1.0)
    for r in range(s[0].cables.count):
        lead = int(r)
        if r > 0:
            if s[0].cables.joins[r - 1] == 1 and s[0].cable.slides[r - 1, w] != 0:
                lead = s[0].cable.leads[r - 1, w]
                weight = weight * hold_ratio(s, r - 1, w, s[0].cable.slides[r - 1, w])
            else:
                weight = real(1.0)
        s[0].cable.leads[r, w] = lead
        for i in range(s[0].cables.first[r], s[0].cables.first[r + 1]):
            s[0].cable.weight[i, w] = weight


@wp.func
def hold_ratio(s: Any, r: int, w: int, way: int) -> real:
    """e^(±μφ) of the rough sheave after run r: the most, or least, that the tension after it is of that before."""
    i = s[0].cables.first[r + 1]
    phi = wp.max(s[0].cable.angle[2 * i, w] - s[0].cable.angle[2 * i - 1, w], real(0.0))
    return wp.exp(real(way) * s[0].cables.friction[r, w] * phi)


@wp.func
def clear_slots(s: Any, w: int) -> None:
    """No rows yet."""
    for x in range(s[0].cables.slots):
        s[0].cable.rate_l[x, w] = vec3(real(0.0))
        s[0].cable.rate_a[x, w] = vec3(real(0.0))
        s[0].cable.force_l[x, w] = vec3(real(0.0))
        s[0].cable.force_a[x, w] = vec3(real(0.0))


@wp.func
def add_end(s: Any, x: int, w: int, n: vec3, arm: vec3, mean: vec3, mean_arm: vec3) -> None:
    """An end of a span to its row: n at the arm as it is closed, `mean` as it acts."""
    s[0].cable.rate_l[x, w] = s[0].cable.rate_l[x, w] + n
    s[0].cable.rate_a[x, w] = s[0].cable.rate_a[x, w] + wp.cross(arm, n)
    s[0].cable.force_l[x, w] = s[0].cable.force_l[x, w] + mean
    s[0].cable.force_a[x, w] = s[0].cable.force_a[x, w] + wp.cross(mean_arm, mean)


@wp.func
def slot_rate(s: Any, r: int, w: int, linear: wp.array2d(dtype=vec3), angular: wp.array2d(dtype=vec3)) -> real:
    """A row times velocities of bodies."""
    out = real(0.0)
    for x in range(s[0].cables.slot_first[r], s[0].cables.slot_first[r + 1]):
        b = s[0].cables.slot_body[x]
        out = out + wp.dot(s[0].cable.rate_l[x, w], linear[b, w]) + wp.dot(s[0].cable.rate_a[x, w], angular[b, w])
    return out


@wp.func
def measure_rows(s: Any, w: int, rest: wp.array2d(dtype=real)) -> None:
    """Gaps of all rows, of those that lead: ΣC − Σrest."""
    for r in range(s[0].cables.count):
        gap = -rest[r, w]
        for i in range(s[0].cables.first[r], s[0].cables.first[r + 1]):
            gap = gap + s[0].cable.held[i, w]
        s[0].cable.gap[r, w] = real(0.0)
        lead = s[0].cable.leads[r, w]
        s[0].cable.gap[lead, w] = s[0].cable.gap[lead, w] + gap


@wp.func
def run_gap(s: Any, r: int, w: int, rest: wp.array2d(dtype=real)) -> real:
    """What a run holds beyond what it had: cable that came over the sheave."""
    gap = -rest[r, w]
    for i in range(s[0].cables.first[r], s[0].cables.first[r + 1]):
        gap = gap + s[0].cable.held[i, w]
    return gap


@wp.func
def keep_lengths(s: Any, w: int, rest: wp.array2d(dtype=real), angle: wp.array2d(dtype=real)) -> None:
    """Angles are those of now; what slid over rough sheaves stays there, the length of the whole being kept."""
    for x in range(s[0].cables.ends):
        angle[x, w] = s[0].cable.angle[x, w]
    for r in range(s[0].cables.count):
        if s[0].cable.leads[r, w] == r:
            end = int(r + 1)
            while end < s[0].cables.count and s[0].cable.leads[wp.min(end, s[0].cables.count - 1), w] == r:
                end = end + 1
            if end > r + 1:
                over = s[0].cable.gap[r, w] / real(end - r)
                for x in range(r, end):
                    rest[x, w] = rest[x, w] + run_gap(s, x, w, rest) - over


@wp.func
def slide_rows(s: Any, w: int, rest: wp.array2d(dtype=real), tension: wp.array2d(dtype=real)) -> int:
    """Have rough sheaves slide where tensions (of runs) lie beyond their bounds, hold where the cable would come back.

    Returns how many changed.
    """
    changed = int(0)
    came = real(0.0)  # m, over the sheave, from the next run: those of the row up to it hold so much more
    for r in range(s[0].cables.count):
        if s[0].cable.leads[r, w] == r:
            came = real(0.0)
        came = came + run_gap(s, r, w, rest)
        if s[0].cables.joins[r] == 1:
            way = s[0].cable.slides[r, w]
            if way == 0:
                before = tension[r, w]
                after = tension[r + 1, w]
                most = hold_ratio(s, r, w, 1)
                small = real(1.0e-9) * (before + after)
                if after > before * most + small:
                    way = 1
                elif before > after * most + small:
                    way = -1
            elif came * real(way) > SLACKEST / s[0].settings.per_metre[0]:
                way = 0
            if way != s[0].cable.slides[r, w]:
                s[0].cable.slides[r, w] = way
                changed = changed + 1
    return changed
