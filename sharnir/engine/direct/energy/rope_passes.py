"""Passes over joints and ropes together: ropes hang on links, ports stand beside both (theory: ropes)."""

import warp as wp

from sharnir.core.spatial import worse
from sharnir.core.types import real
from sharnir.engine.articulated.data import natural
from sharnir.engine.direct.data import Direct
from sharnir.engine.direct.energy.cables import switch_cables
from sharnir.engine.direct.energy.laws import outward, relinearise, soften, worst_law
from sharnir.engine.direct.energy.links import AGAIN, ANEW, follow_all, hand_pushes, inward, skew_times
from sharnir.engine.direct.energy.means import place
from sharnir.engine.direct.energy.passes import pushes, refresh_locks, refresh_springs
from sharnir.engine.direct.energy.rope_winch import drum_axes, turn_by_ropes, turn_drums
from sharnir.engine.direct.energy.rows import (
    ROUNDS,
    act,
    close_rows,
    factor_rows,
    find_rows,
    keep_changes,
    stiffen,
    stiffen_lines,
)
from sharnir.engine.direct.hung import push_links
from sharnir.engine.rope.data import BODY, PORT, RopeStep
from sharnir.engine.rope.ends import is_held, pull_bodies
from sharnir.engine.rope.energy import hold_driven_ties, mean_arms, note_rope, rope_misses, rope_pose
from sharnir.engine.rope.passes import factor, ropes_inward, ropes_outward
from sharnir.engine.rope.port_data import Ports
from sharnir.engine.rope.ports import (
    add_kept,
    clear_ports,
    port_columns,
    port_factor,
    port_speeds,
    pull_ports,
    push_unit,
    read_column,
    take_clamps,
)
from sharnir.engine.rope.terms import times_skew
from sharnir.laws.linear import ALL_AT_ONCE

# ---- where ropes meet bodies ------------------------------------------------------------------------------------------------


@wp.func
def end_arms(r: wp.array(dtype=RopeStep), w: int):
    """Arms of held and tied points: at the mean, and at the end of the step, as bodies stand there."""
    mean_arms(r, w)
    for end in range(2 * r[0].ropes.count):
        if is_held(r, end):
            r[0].work.end_arm[end, w] = wp.quat_rotate(r[0].body.q[r[0].ropes.body[end], w], r[0].ropes.point[end])
    for t in range(r[0].ropes.ties):
        r[0].work.tie_end[t, w] = wp.quat_rotate(r[0].body.q[r[0].ropes.tie_body[t], w], r[0].ropes.tie_point[t])


@wp.func
def rope_poses(s: wp.array(dtype=Direct), r: wp.array(dtype=RopeStep), w: int):
    """Ropes where their velocities and those of the bodies lead, ropes on which others hang first."""
    turn_drums(s, r, w)
    half = real(0.5) * s[0].drift[w]
    for b in range(s[0].own):
        r[0].body.turn[b, w] = (s[0].work.spin[b, w] + s[0].work.turning[b, w]) * half
    for o in range(r[0].ropes.count):
        rope_pose(r, r[0].ropes.order[r[0].ropes.count - 1 - o], w)


@wp.func
def hang_on_link(s: wp.array(dtype=Direct), r: wp.array(dtype=RopeStep), k: int, w: int):
    """Add a rope's Z to the link that holds its first end: it moves by r₁ and is pulled at r̄."""
    i = s[0].rows.link_of[r[0].ropes.body[2 * k]]
    mean = r[0].work.arm[2 * k, w]
    end = r[0].work.end_arm[2 * k, w]
    A = r[0].work.Z_A[k, w]
    C = r[0].work.Z_C[k, w]
    B = r[0].work.Z_B[k, w] - times_skew(A, end)
    D = r[0].work.Z_D[k, w] - times_skew(C, end)
    s[0].work.A[i, w] = s[0].work.A[i, w] + A
    s[0].work.B[i, w] = s[0].work.B[i, w] + B
    s[0].work_C[i, w] = s[0].work_C[i, w] + C + skew_times(mean, A)
    s[0].work.D[i, w] = s[0].work.D[i, w] + D + skew_times(mean, B)


@wp.func
def hang_ropes(s: wp.array(dtype=Direct), r: wp.array(dtype=RopeStep), w: int):
    """What ropes add to the inertias of links, before these are factored."""
    for k in range(r[0].ropes.count):
        if r[0].ropes.kind[2 * k] == BODY:
            hang_on_link(s, r, k, w)


@wp.func
def stiffen_ropes(s: wp.array(dtype=Direct), r: wp.array(dtype=RopeStep), w: int):
    """What the pulls of ropes, at arms that turn with bodies, add."""
    for end in range(2 * r[0].ropes.count):
        kind = r[0].ropes.kind[end]
        if kind == BODY or kind == PORT:
            i = s[0].rows.link_of[r[0].ropes.body[end]]
            stiffen(s, i, w, r[0].work.end_arm[end, w], -r[0].state.end_force[end, w])
    for t in range(r[0].ropes.ties):
        if r[0].ropes.tie_kind[t] == PORT:
            i = s[0].rows.link_of[r[0].ropes.tie_body[t]]
            stiffen(s, i, w, r[0].work.tie_end[t, w], -r[0].state.tie_force[t, w])


@wp.func
def pull_links(s: wp.array(dtype=Direct), r: wp.array(dtype=RopeStep), w: int):
    """Impulses of ropes on links so far, as of outside."""
    pull_bodies(r, w, s[0].rope_l, s[0].rope_a)
    for n in range(s[0].tree.count):
        b = s[0].tree.body[n]
        if b < s[0].own:
            s[0].sum_l[n, w] = s[0].sum_l[n, w] - s[0].rope_l[b, w]
            s[0].sum_a[n, w] = s[0].sum_a[n, w] - s[0].rope_a[b, w]
    turn_by_ropes(s, r, w)


@wp.func
def eliminate_ropes(r: wp.array(dtype=RopeStep), p: wp.array(dtype=Ports), w: int):
    """Z of all ropes, and what ports do to them."""
    take_clamps(r, p, w)
    factor(r, w, False)
    port_columns(r, p, w)


# ---- ports ------------------------------------------------------------------------------------------------------------------


@wp.func
def respond(s: wp.array(dtype=Direct), r: wp.array(dtype=RopeStep), w: int, keep: bool, rounds: int):
    """Changes of the twists by impulses −p on bodies alone, into work.change; joints and rows beside the tree hold."""
    push_links(s, r, w)
    for i in range(s[0].tree.count):
        for at in range(s[0].tree.row[i].v_start, s[0].tree.row[i].v_start + s[0].tree.row[i].v_size):
            s[0].rows.u[at, w] = real(0.0)
    hand_pushes(s, w, 0, s[0].tree.count)
    follow_all(s, w, real(0.0))
    if s[0].closures.count > 0:
        for row in range(s[0].closures.count):
            s[0].rows.gap[row, w] = real(0.0)
        keep_changes(s, w)
        close_rows(s, w, keep, rounds)


@wp.func
def port_matrix(s: wp.array(dtype=Direct), r: wp.array(dtype=RopeStep), p: wp.array(dtype=Ports), w: int):
    """The system of the ports, for laws as they are linear now."""
    for column in range(3 * p[0].count):
        push_unit(r, p, column, w)
        respond(s, r, w, False, ROUNDS)
        read_column(r, p, column, w)
    port_factor(p, w)


@wp.func
def couple(s: wp.array(dtype=Direct), r: wp.array(dtype=RopeStep), p: wp.array(dtype=Ports), w: int, anew: bool, keep: bool):
    """Ports on top of the changes that the tree and the ropes have without them; afterwards p is of both."""
    for b in range(s[0].own):
        p[0].p_l[b, w] = r[0].body.p_l[b, w]
        p[0].p_a[b, w] = r[0].body.p_a[b, w]
    clear_ports(p, w)
    port_speeds(r, p, w)
    rounds = int(1)
    if anew:
        rounds = ROUNDS
        port_matrix(s, r, p, w)
    pull_ports(r, p, w)
    respond(s, r, w, keep, rounds)
    add_kept(r, p, w)
    for b in range(s[0].own):
        r[0].body.p_l[b, w] = r[0].body.p_l[b, w] + p[0].p_l[b, w]
        r[0].body.p_a[b, w] = r[0].body.p_a[b, w] + p[0].p_a[b, w]


# ---- a pass -----------------------------------------------------------------------------------------------------------------


@wp.func
def all_inward(s: wp.array(dtype=Direct), r: wp.array(dtype=RopeStep), w: int, mode: int):
    """What acts on links and axes, ropes included, and the pass inwards."""
    pushes(s, w)
    act(s, w)
    pull_links(s, r, w)
    push_links(s, r, w)
    if mode == ANEW:
        stiffen_lines(s, w)
        stiffen_ropes(s, r, w)
        hang_ropes(s, r, w)
    inward(s, w, mode)


@wp.func
def find_change(s: wp.array(dtype=Direct), r: wp.array(dtype=RopeStep), w: int):
    """Largest change of a speed in the pass, and largest speed, m/s; of what turns, at its radius of inertia."""
    change = real(0.0)
    scale = wp.length(s[0].settings.gravity[w]) * s[0].drift[w]
    for k in range(r[0].ropes.count):
        change = worse(change, r[0].work.change[k, w])
        scale = wp.max(scale, r[0].work.speed[k, w])
    for n in range(s[0].tree.count):
        i = natural(n)
        b = natural(s[0].tree.row[i].body)
        radius = wp.sqrt(s[0].tree.least[i, w] / s[0].tree.mass[i, w])
        change = worse(change, wp.length(s[0].work.change_l[b, w]))
        change = worse(change, wp.length(s[0].work.change_a[b, w]) * radius)
        v = wp.max(wp.length(s[0].work.acceleration[b, w]), wp.length(s[0].work.turning[b, w]) * radius)
        scale = wp.max(scale, v)
    return change, scale


@wp.func
def full_pass(s: wp.array(dtype=Direct), r: wp.array(dtype=RopeStep), p: wp.array(dtype=Ports), w: int, mode: int, first: bool):
    """A pass over the tree, its laws, rows beside it and ropes: the largest gap of joints and the mismatch of the laws, N·s."""
    beside = s[0].closures.count
    ports = p[0].count
    for k in range(r[0].ropes.count):
        note_rope(r, k, w)
    for b in range(r[0].body.v.shape[0]):
        r[0].body.last_v[b, w] = r[0].body.v[b, w]
        r[0].body.last_w[b, w] = r[0].body.w[b, w]
    end_arms(r, w)
    drum_axes(s, r, w, True)
    if mode == ANEW:
        rope_misses(r, w, 1)
        eliminate_ropes(r, p, w)
    else:
        rope_misses(r, w, 0)
    ropes_inward(r, w)
    all_inward(s, r, w, mode)
    if first and s[0].acting == 1:
        if soften(s, w) == 1:
            refresh_locks(s, w)
            all_inward(s, r, w, ANEW)
    if beside > 0 or ports > 0 or s[0].acting == 0:
        follow_all(s, w, real(1.0))
    if beside > 0:
        keep_changes(s, w)
        rounds = int(1)
        if mode == ANEW:
            factor_rows(s, w)
            rounds = ROUNDS
        close_rows(s, w, True, rounds)
    if ports > 0:
        couple(s, r, p, w, mode == ANEW, True)
    off = real(0.0)
    if s[0].acting == 1:
        if beside > 0 or ports > 0:  # once more, now that the impulses of rows and ports are known
            all_inward(s, r, w, AGAIN)
        s[0].single[w] = int(s[0].done[w] > ALL_AT_ONCE)
        outward(s, w)
        off = worst_law(s, w)
        if off > s[0].settings.tolerance[0] and s[0].done[w] < s[0].settings.iterations[0]:
            relinearise(s, w, s[0].done[w] > ALL_AT_ONCE)
            s[0].done[w] = s[0].done[w] + 1
    ropes_outward(r, w)
    hold_driven_ties(r, w)
    gap = after_place(s, r, w, place(s, w, True))
    if s[0].cables.count > 0:
        if switch_cables(s, w):
            gap = wp.max(gap, find_rows(s, w))
            s[0].done[w] = s[0].done[w] + 1
    return gap, off


@wp.func
def after_place(s: wp.array(dtype=Direct), r: wp.array(dtype=RopeStep), w: int, gap: real) -> real:
    """What follows from the new poses of bodies; returns the largest gap of joints and rows."""
    if s[0].acting == 1:
        refresh_springs(s, w, False)
    rope_poses(s, r, w)
    if s[0].closures.count > 0:
        gap = wp.max(gap, find_rows(s, w))
    return gap


@wp.func
def extent(s: wp.array(dtype=Direct), w: int) -> real:
    """How far bodies are from the origin, m."""
    out = real(0.0)
    for n in range(s[0].tree.count):
        out = wp.max(out, wp.length(s[0].position[s[0].tree.body[n], w]))
    return out
