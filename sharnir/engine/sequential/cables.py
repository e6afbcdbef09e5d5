"""Cables over sheaves in sweeps: rows of many bodies, which pull alone (see `sharnir.model.cables`).

    J V⁺ + ½Δt γ + min(C, 0)/Δt ≤ 0,  p ≤ 0,  one of them an equality

γ is the curvature of the path (as of a rod): spans turn while their ends move. A slack row may grow by what it lacks.
What a step leaves open is closed by split impulses.
"""

import warp as wp

from sharnir.core.types import real, vec3
from sharnir.engine.sequential.data import POSITIONS, VELOCITIES, Solve, Step
from sharnir.engine.sleep import sleeps
from sharnir.laws.rows import apply_impulse
from sharnir.model.cables import (
    LONGEST_SWITCH,
    add_end,
    clear_slots,
    keep_lengths,
    lead_runs,
    measure_rows,
    place_span,
    slide_rows,
    slot_rate,
)

HEED = wp.constant(4)  # sweeps between two looks at whether cables slide


@wp.func
def find_cables(s: wp.array(dtype=Step), w: int) -> None:
    """Rows of all runs, and their responses, from spans as they are placed."""
    lead_runs(s, w)
    clear_slots(s, w)
    for r in range(s[0].cables.count):
        lead = s[0].cable.leads[r, w]
        for i in range(s[0].cables.first[r], s[0].cables.first[r + 1]):
            n = s[0].cable.n[i, w]
            f = n * s[0].cable.weight[i, w]
            a = 2 * i
            add_end(s, s[0].cables.slot[lead, a], w, -n, s[0].cable.arm[a, w], -f, s[0].cable.arm[a, w])
            add_end(s, s[0].cables.slot[lead, a + 1], w, n, s[0].cable.arm[a + 1, w], f, s[0].cable.arm[a + 1, w])
    for r in range(s[0].cables.count):
        K = real(0.0)
        rests = bool(False)  # it holds what sleeps: its tension stays
        for x in range(s[0].cables.slot_first[r], s[0].cables.slot_first[r + 1]):
            b = s[0].cables.slot_body[x]
            rests = rests or sleeps(s, b, w)
            K = K + wp.dot(s[0].cable.rate_l[x, w], s[0].cable.force_l[x, w]) * s[0].bodies.inv_mass[b, w]
            K = K + wp.dot(s[0].cable.rate_a[x, w], s[0].work.inv_inertia[b, w] * s[0].cable.force_a[x, w])
        if rests:
            K = real(0.0)
        s[0].cable.K[r, w] = K


@wp.func
def aim_cables(s: wp.array(dtype=Step), w: int, reading: int) -> None:
    """Speeds that rows may have beyond 0: half the bend of their path, less what is slack."""
    dt = s[0].settings.dt[0]
    twist = s[0].solves[VELOCITIES].twist
    measure_rows(s, w, s[0].state.cable_rest)
    for r in range(s[0].cables.count):
        s[0].cable.bias[r, w] = wp.min(s[0].cable.gap[r, w], real(0.0)) / dt
    if reading == 0:
        for r in range(s[0].cables.count):
            lead = s[0].cable.leads[r, w]
            bend = real(0.0)
            for i in range(s[0].cables.first[r], s[0].cables.first[r + 1]):
                bend = bend + span_bend(s, i, w, twist.linear, twist.angular)
            s[0].cable.bias[lead, w] = s[0].cable.bias[lead, w] + real(0.5) * dt * bend


@wp.func
def span_bend(s: wp.array(dtype=Step), i: int, w: int, linear: wp.array2d(dtype=vec3), angular: wp.array2d(dtype=vec3)) -> real:
    """γ of a span: n·(centripetal parts of its circles' centres) + |their speed across n|²/ℓ."""
    p = s[0].cables.body[2 * i]
    c = s[0].cables.body[2 * i + 1]
    n = s[0].cable.n[i, w]
    r_p = wp.quat_rotate(s[0].state.rotation[p, w], s[0].cables.center[2 * i])
    r_c = wp.quat_rotate(s[0].state.rotation[c, w], s[0].cables.center[2 * i + 1])
    w_p = angular[p, w]
    w_c = angular[c, w]
    rate = linear[c, w] + wp.cross(w_c, r_c) - linear[p, w] - wp.cross(w_p, r_p)
    across = rate - n * wp.dot(n, rate)
    turning = wp.cross(w_c, wp.cross(w_c, r_c)) - wp.cross(w_p, wp.cross(w_p, r_p))
    return wp.dot(n, turning) + wp.dot(across, across) / wp.max(s[0].cable.length[i, w], real(1.0e-9))


@wp.func
def prepare_cables(s: wp.array(dtype=Step), w: int, reading: int) -> None:
    """Rows of the pose, started from the tensions of the last step."""
    share = s[0].settings.kick[w] / s[0].settings.dt[0]
    s[0].cable.switched[w] = 0
    for i in range(s[0].cables.spans):
        place_span(s, i, w, s[0].state.position, s[0].state.rotation, s[0].state.cable_angle)
    for r in range(s[0].cables.count):
        s[0].cable.slides[r, w] = s[0].state.cable_slides[r, w]
    find_cables(s, w)
    aim_cables(s, w, reading)
    for r in range(s[0].cables.count):
        s[0].cable.impulse[r, w] = real(0.0)
        if s[0].cable.leads[r, w] == r:
            s[0].cable.impulse[r, w] = -s[0].state.cable_impulse[s[0].cables.first[r], w] * share


@wp.func
def apply_cable(s: wp.array(dtype=Step), solve: Solve, r: int, w: int, impulse: real) -> None:
    zero = vec3(real(0.0))
    if s[0].cable.K[r, w] <= real(0.0):
        return
    for x in range(s[0].cables.slot_first[r], s[0].cables.slot_first[r + 1]):
        b = s[0].cables.slot_body[x]
        p = s[0].cable.force_l[x, w] * impulse
        l = s[0].cable.force_a[x, w] * impulse
        apply_impulse(solve.twist, b, w, p, l, zero, s[0].bodies.inv_mass[b, w], s[0].work.inv_inertia[b, w], real(1.0))


@wp.func
def warm_cables(s: wp.array(dtype=Step), w: int) -> None:
    """Tensions of the last step on the bodies."""
    for r in range(s[0].cables.count):
        if s[0].cable.impulse[r, w] != real(0.0):
            apply_cable(s, s[0].solves[VELOCITIES], r, w, s[0].cable.impulse[r, w])


@wp.func
def sweep_cables(s: wp.array(dtype=Step), solve: Solve, w: int, which: int, sweep: int) -> real:
    """Every row once; returns the largest |Δp|²."""
    largest = real(0.0)
    for r in range(s[0].cables.count):
        if s[0].cable.leads[r, w] == r and s[0].cable.K[r, w] > real(0.0):
            u = slot_rate(s, r, w, solve.twist.linear, solve.twist.angular)
            old = s[0].cable.impulse[r, w]
            aim = s[0].cable.bias[r, w]
            if which == POSITIONS:
                old = s[0].cable.pseudo[r, w]
                aim = s[0].cable.gap[r, w] * s[0].settings.erp[0] / s[0].settings.dt[0]
            new = wp.min(old - (u + aim) / s[0].cable.K[r, w], real(0.0))
            if which == POSITIONS:
                s[0].cable.pseudo[r, w] = new
            else:
                s[0].cable.impulse[r, w] = new
            if new != old:
                apply_cable(s, solve, r, w, new - old)
                largest = wp.max(largest, (new - old) * (new - old))
    tolerance = s[0].settings.tolerance[which]
    if which == VELOCITIES and (sweep % HEED == HEED - 1 or largest <= tolerance * tolerance):
        if update_cable_modes(s, solve, w):
            return wp.max(largest, real(1.0))
    return largest


@wp.func
def update_cable_modes(s: wp.array(dtype=Step), solve: Solve, w: int) -> bool:
    """Have cables slide over rough sheaves, or hold, as tensions and speeds of now ask."""
    rough = int(0)
    for r in range(s[0].cables.count):
        rough = rough + s[0].cables.joins[r]
    if rough == 0 or s[0].cable.switched[w] >= LONGEST_SWITCH:
        return False
    for r in range(s[0].cables.count):  # tensions of runs, and lengths that would be theirs a step later but for what slides
        p = s[0].cable.impulse[s[0].cable.leads[r, w], w]
        s[0].cable.pseudo[r, w] = -p * s[0].cable.weight[s[0].cables.first[r], w]
        left = real(0.0)
        for i in range(s[0].cables.first[r], s[0].cables.first[r + 1]):
            left = left + s[0].cable.held[i, w]
            for x in range(2 * i, 2 * i + 2):
                b = s[0].cables.body[x]
                v = solve.twist.linear[b, w] + wp.cross(solve.twist.angular[b, w], s[0].cable.arm[x, w])
                left = left - s[0].settings.dt[0] * wp.dot(s[0].cable.n[i, w], v) * real(2 * (x % 2) - 1)
        s[0].cable.came[r, w] = left
    for r in range(s[0].cables.count):
        if s[0].cable.leads[r, w] == r and s[0].cable.impulse[r, w] != real(0.0):
            apply_cable(s, solve, r, w, -s[0].cable.impulse[r, w])
    changed = slide_rows(s, w, s[0].cable.came, s[0].cable.pseudo)
    if changed > 0:
        find_cables(s, w)
    for r in range(s[0].cables.count):
        s[0].cable.impulse[r, w] = real(0.0)
        if s[0].cable.leads[r, w] == r:
            s[0].cable.impulse[r, w] = -s[0].cable.pseudo[r, w]
            apply_cable(s, solve, r, w, s[0].cable.impulse[r, w])
    if changed > 0:
        aim_cables(s, w, 0)
    s[0].cable.switched[w] = s[0].cable.switched[w] + changed
    return changed > 0


@wp.func
def measure_cables(s: wp.array(dtype=Step), w: int) -> None:
    """Gaps at the new pose, before split impulses."""
    for i in range(s[0].cables.spans):
        place_span(s, i, w, s[0].work.position, s[0].work.rotation, s[0].state.cable_angle)
    measure_rows(s, w, s[0].state.cable_rest)
    for r in range(s[0].cables.count):
        s[0].cable.pseudo[r, w] = real(0.0)


@wp.func
def commit_cables(s: wp.array(dtype=Step), w: int, per_kick: real) -> None:
    """Tensions as of a whole step, lengths and angles of the new pose."""
    for r in range(s[0].cables.count):
        p = s[0].cable.impulse[s[0].cable.leads[r, w], w]
        for i in range(s[0].cables.first[r], s[0].cables.first[r + 1]):
            s[0].state.cable_impulse[i, w] = -p * s[0].cable.weight[i, w] * per_kick
        s[0].state.cable_slides[r, w] = s[0].cable.slides[r, w]
    for i in range(s[0].cables.spans):
        place_span(s, i, w, s[0].state.position, s[0].state.rotation, s[0].state.cable_angle)
    measure_rows(s, w, s[0].state.cable_rest)
    keep_lengths(s, w, s[0].state.cable_rest, s[0].state.cable_angle)
