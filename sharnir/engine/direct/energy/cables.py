"""Cables over sheaves in a direct step: rows beside the tree that pull alone.

A row is closed at the end of the step, with spans as they are then, and acts with the means of both ends (see `rows`): of spans
between points, (s₀ + s₁)/(|s₀| + |s₁|), along which the work of one tension is that of the path's length. Which
rows are taut, and where cables slide over rough sheaves, is found from pass to pass.
"""

import warp as wp

from sharnir.core.types import real, vec3
from sharnir.engine.direct.data import Direct
from sharnir.engine.direct.energy.links import base_stiffness
from sharnir.engine.direct.energy.means import mean_matrix
from sharnir.model.cables import (
    LONGEST_SWITCH,
    SLACKEST,
    add_end,
    clear_slots,
    keep_lengths,
    lead_runs,
    measure_rows,
    place_span,
    slide_rows,
    slot_rate,
)

LEAVES = wp.constant(real(1.0e-9))  # of the scene's length a step: a taut row that closes faster is slack in a projection


@wp.func
def first_cable(s: wp.array(dtype=Direct)) -> int:
    """Number of the first row of cables."""
    return 6 * s[0].closures.welds + s[0].closures.rods + s[0].closures.gears


@wp.func
def place_cables(s: wp.array(dtype=Direct), w: int):
    """Spans at the start of the step, whose vectors and arms are kept, and at its end."""
    for i in range(s[0].cables.spans):
        place_span(s, i, w, s[0].work.position, s[0].work.rotation, s[0].state.cable_angle)
        s[0].span_start[i, w] = s[0].cable.n[i, w] * s[0].cable.length[i, w]
        for x in range(2 * i, 2 * i + 2):
            b = s[0].cables.body[x]
            s[0].arm_start[x, w] = s[0].cable.arm[x, w] - wp.quat_rotate(s[0].work.rotation[b, w], s[0].cables.center[x])
    for i in range(s[0].cables.spans):
        place_span(s, i, w, s[0].position, s[0].rotation, s[0].state.cable_angle)


@wp.func
def cable_rows(s: wp.array(dtype=Direct), w: int) -> real:
    """All rows at the end of the step, and as they act; returns the largest gap of those that are taut, m."""
    place_cables(s, w)
    lead_runs(s, w)
    clear_slots(s, w)
    measure_rows(s, w, s[0].state.cable_rest)
    for r in range(s[0].cables.count):
        lead = s[0].cable.leads[r, w]
        for i in range(s[0].cables.first[r], s[0].cables.first[r + 1]):
            n = s[0].cable.n[i, w]
            end = n * s[0].cable.length[i, w]
            start = s[0].span_start[i, w]
            mean = (start + end) * (s[0].cable.weight[i, w] / (wp.length(start) + wp.length(end)))
            sign = real(-1.0)
            for x in range(2 * i, 2 * i + 2):
                b = s[0].cables.body[x]
                rim = s[0].cable.arm[x, w] - wp.quat_rotate(s[0].rotation[b, w], s[0].cables.center[x])
                arm = mean_matrix(s, b, w) * s[0].cables.center[x] + (s[0].arm_start[x, w] + rim) * real(0.5)
                add_end(s, s[0].cables.slot[lead, x], w, n * sign, s[0].cable.arm[x, w], mean * sign, arm)
                sign = real(1.0)
    most = real(0.0)
    for r in range(s[0].cables.count):
        at = first_cable(s) + r
        s[0].rows.gap[at, w] = s[0].cable.gap[r, w]
        s[0].rows.gamma[at, w] = real(0.0)
        s[0].rows.soft[at, w] = real(0.0)
        if s[0].cable.leads[r, w] != r or s[0].cable.taut[r, w] == 0:
            s[0].rows.soft[at, w] = real(-1.0)
            s[0].row_impulse[at, w] = real(0.0)
        else:
            most = wp.max(most, wp.abs(s[0].cable.gap[r, w]))
    return most


@wp.func
def open_cables(s: wp.array(dtype=Direct), w: int):
    """Before the passes: rows are as the last step left them, or taut where the guess of this one opens them."""
    s[0].cable.switched[w] = 0
    for r in range(s[0].cables.count):
        s[0].cable.slides[r, w] = s[0].state.cable_slides[r, w]
        s[0].cable.taut[r, w] = 1
        s[0].cable.struck[r, w] = 0
    cable_rows(s, w)
    for r in range(s[0].cables.count):
        pulls = s[0].state.row_force[first_cable(s) + r, w] < real(0.0)
        s[0].cable.taut[r, w] = int(pulls or s[0].cable.gap[r, w] >= real(0.0))
        if not pulls:
            s[0].cable.struck[r, w] = s[0].cable.taut[r, w]


@wp.func
def run_tensions(s: wp.array(dtype=Direct), w: int):
    """Tension impulses of all runs, N·s."""
    for r in range(s[0].cables.count):
        p = s[0].row_impulse[first_cable(s) + s[0].cable.leads[r, w], w]
        s[0].cable.impulse[r, w] = -p * s[0].cable.weight[s[0].cables.first[r], w]


@wp.func
def switch_cables(s: wp.array(dtype=Direct), w: int) -> bool:
    """Rows that would push become slack, rows that are open taut, sheaves slide or hold; whether any did."""
    if s[0].cable.switched[w] >= LONGEST_SWITCH:
        return False
    changed = int(0)
    for r in range(s[0].cables.count):
        if s[0].cable.leads[r, w] == r:
            at = first_cable(s) + r
            if s[0].cable.taut[r, w] == 1:
                if s[0].row_impulse[at, w] > real(0.0):
                    s[0].cable.taut[r, w] = 0
                    s[0].row_impulse[at, w] = real(0.0)
                    changed = changed + 1
            elif s[0].cable.gap[r, w] > SLACKEST / s[0].settings.per_metre[0]:
                s[0].cable.taut[r, w] = 1
                s[0].cable.struck[r, w] = 1
                changed = changed + 1
    if changed == 0:
        run_tensions(s, w)
        changed = slide_rows(s, w, s[0].state.cable_rest, s[0].cable.impulse)
        if changed > 0:
            lead_runs(s, w)
            for r in range(s[0].cables.count):
                at = first_cable(s) + r
                s[0].row_impulse[at, w] = real(0.0)
                if s[0].cable.leads[r, w] == r:
                    s[0].cable.taut[r, w] = 1
                    s[0].row_impulse[at, w] = -s[0].cable.impulse[r, w]
    s[0].cable.switched[w] = s[0].cable.switched[w] + changed
    return changed > 0


@wp.func
def any_struck(s: wp.array(dtype=Direct), w: int) -> bool:
    """Whether a cable became taut in this step."""
    out = bool(False)
    for r in range(s[0].cables.count):
        if s[0].cable.leads[r, w] == r and s[0].cable.taut[r, w] == 1 and s[0].cable.struck[r, w] == 1:
            out = True
    return out


@wp.func
def cable_speeds(s: wp.array(dtype=Direct), w: int):
    """Speeds of rows, as of gaps, where velocities are projected: those that open a taut one, and after a snatch both."""
    for r in range(s[0].cables.count):
        at = first_cable(s) + r
        rate = slot_rate(s, r, w, s[0].work.acceleration, s[0].work.turning)
        s[0].rows.gap[at, w] = rate * (real(0.5) * s[0].drift[w])
        if s[0].cable.struck[r, w] == 0 and rate < -LEAVES / (s[0].settings.per_metre[0] * s[0].settings.dt[0]):
            s[0].rows.soft[at, w] = real(-1.0)


@wp.func
def cable_rate(
    s: wp.array(dtype=Direct), r: int, w: int, linear: wp.array2d(dtype=vec3), angular: wp.array2d(dtype=vec3)
) -> real:
    """A row of cables, by its number among all rows, times velocities."""
    return slot_rate(s, r - first_cable(s), w, linear, angular)


@wp.func
def act_cable(s: wp.array(dtype=Direct), r: int, w: int, p: real):
    """An impulse on a row, as of outside."""
    k = r - first_cable(s)
    for x in range(s[0].cables.slot_first[k], s[0].cables.slot_first[k + 1]):
        link = s[0].rows.link_of[s[0].cables.slot_body[x]]
        if link >= 0:
            s[0].sum_l[link, w] = s[0].sum_l[link, w] - s[0].cable.force_l[x, w] * p
            s[0].sum_a[link, w] = s[0].sum_a[link, w] - s[0].cable.force_a[x, w] * p


@wp.func
def push_cable(s: wp.array(dtype=Direct), r: int, w: int, p: real):
    """An impulse on a row, added to those on links."""
    k = r - first_cable(s)
    for x in range(s[0].cables.slot_first[k], s[0].cables.slot_first[k + 1]):
        link = s[0].rows.link_of[s[0].cables.slot_body[x]]
        if link >= 0:
            s[0].work.Q_l[link, w] = s[0].work.Q_l[link, w] + s[0].cable.force_l[x, w] * p
            s[0].work.Q_a[link, w] = s[0].work.Q_a[link, w] + s[0].cable.force_a[x, w] * p


@wp.func
def cable_response(s: wp.array(dtype=Direct), r: int, w: int) -> real:
    """About how far a row's impulse would move its bodies if nothing held them."""
    k = r - first_cable(s)
    K = real(0.0)
    for x in range(s[0].cables.slot_first[k], s[0].cables.slot_first[k + 1]):
        link = s[0].rows.link_of[s[0].cables.slot_body[x]]
        if link >= 0:
            K = K + wp.length_sq(s[0].cable.rate_l[x, w]) / s[0].tree.mass[link, w]
            K = K + wp.length_sq(s[0].cable.rate_a[x, w]) / s[0].tree.least[link, w]
    return K


@wp.func
def stiffen_cables(s: wp.array(dtype=Direct), w: int):
    """What tensions add to the derivative of links' momenta by their turns (`rows.stiffen`); rims do not turn with them."""
    for r in range(s[0].cables.count):
        p = s[0].row_impulse[first_cable(s) + s[0].cable.leads[r, w], w]
        if p != real(0.0):
            for i in range(s[0].cables.first[r], s[0].cables.first[r + 1]):
                f = s[0].cable.n[i, w] * (p * s[0].cable.weight[i, w])
                for x in range(2 * i, 2 * i + 2):
                    f = -f
                    b = s[0].cables.body[x]
                    link = s[0].rows.link_of[b]
                    if link >= 0:
                        arm = wp.quat_rotate(s[0].rotation[b, w], s[0].cables.center[x])
                        s[0].work.D[link, w] = s[0].work.D[link, w] - base_stiffness(arm, f, real(0.5) * s[0].drift[w])


@wp.func
def keep_cables(s: wp.array(dtype=Direct), w: int, whole: real):
    """What spans carried, as of a whole step; lengths and angles of the end."""
    cable_rows(s, w)
    for r in range(s[0].cables.count):
        p = s[0].row_impulse[first_cable(s) + s[0].cable.leads[r, w], w]
        for i in range(s[0].cables.first[r], s[0].cables.first[r + 1]):
            s[0].state.cable_impulse[i, w] = -whole * p * s[0].cable.weight[i, w]
        s[0].state.cable_slides[r, w] = s[0].cable.slides[r, w]
    keep_lengths(s, w, s[0].state.cable_rest, s[0].state.cable_angle)
