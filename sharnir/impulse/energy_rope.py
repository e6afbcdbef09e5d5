"""Ropes in the step that keeps energy and momenta: joints, laws and ropes in one solve (theory: energy and momentum; ropes).

The passes of `energy` and of `rope.energy` at once. Unknowns are the changes of the velocities at the end of the step: (δv, δφ)
of bodies as in `energy_links`, (δv, δω) of points and elements as in `rope.chain`. A rope that hangs on a link by its first end
is, eliminated towards it, p = Z V + p₀ there, V the change of its end, which moves by the arm r₁ of the end of the step while p
acts at the mean arm r̄: an inertia that is added to the link's, not quite symmetric, and a push −p₀. What ropes have done to
bodies so far is of outside to the tree's balance of momentum. Other ends, clamps and ties are ports (`rope.ports`), with the
tree's response.

The factors of ropes are symmetric, their equations not quite, so passes are mixed (`rope.mixing`), bodies and rows included.
"""

import warp as wp

from sharnir.guard import count_step
from sharnir.impulse.direct import DIVIDED
from sharnir.impulse.direct_data import Direct
from sharnir.impulse.energy import (
    SPENT,
    STALLED,
    UNMET,
    close_gaps,
    commit,
    copy_reals,
    copy_state,
    copy_vectors,
    count_pass,
    displace,
    end_call,
    forget_guess,
    open_attempt,
    open_gaps,
    pushes,
    refresh_locks,
    refresh_springs,
    replayed_by,
    report,
    resume,
    speed_rows,
    spend_once,
    stand_all,
    take_projected,
    worst_body,
)
from sharnir.impulse.energy_laws import outward, relinearise, soften, worst_law
from sharnir.impulse.energy_links import AGAIN, ANEW, follow_all, hand_pushes, inward, skew_times
from sharnir.impulse.energy_rows import ROUNDS, act, close_rows, factor_rows, find_rows, keep_changes, stiffen, stiffen_lines
from sharnir.impulse.means import place, take_driven
from sharnir.pivots import ALL_AT_ONCE
from sharnir.rope.chain import eliminate
from sharnir.rope.data import BODY, MIXED, PORT, ROPE, RopeState, RopeStep
from sharnir.rope.dense import factorise_any, mirror, substitute_any
from sharnir.rope.ends import clear_ties, end_point, is_held, pull_bodies, tie_inertia, tie_point
from sharnir.rope.energy import (
    at_pose,
    hold_driven_ties,
    keep_impulses,
    keep_rope,
    mean_arms,
    move_with,
    note_rope,
    open_pushed,
    rope_change,
    rope_misses,
    rope_pose,
    rope_slopes,
    shift_speeds,
    start_rope,
    take_back_impulses,
    take_speeds,
    thin,
)
from sharnir.rope.energy_bodies import (
    ENDS,
    FACTORS,
    FAR,
    HARDLY,
    ROUGH,
    ROUGHLY,
    ROUND,
    SLOW,
    SNAPS,
    STALLS,
    STUCK,
    WHOLE,
    WILD,
    goes_on,
    not_far,
    pose_arms,
    ropes_length,
    settle_ends,
    settle_rows,
    turn_reels,
)
from sharnir.rope.energy_bodies import STALLED as STILL
from sharnir.rope.energy_kernels import PARTS, any_snaps, clear_snaps, is_settled, note_velocities
from sharnir.rope.kernels import ropes_untouched
from sharnir.rope.mixing import mix_passes, mix_reals, note_pass, note_reals, recall_pass
from sharnir.rope.passes import ropes_inward, ropes_outward, scale_pulls
from sharnir.rope.ports import (
    Ports,
    add_kept,
    apply_ports,
    clear_ports,
    port_columns,
    port_speeds,
    push_unit,
    read_column,
    take_clamps,
)
from sharnir.rope.reel import REPAID, feed, pay_out, take_back, tear
from sharnir.rope.slack import JUDGED, LONGER, OPEN, TRIES, all_at_once, judge, new_span, take_slack, widest_gap
from sharnir.rope.terms import tangent, times_skew
from sharnir.spatial import turned, worse
from sharnir.tree import natural
from sharnir.types import EPSILON, inline_less, real, vec3

inline_less("sharnir.energy_rope")

ALL = wp.constant(2)  # scope: everything there is
JOINTS = wp.constant(3)  # what of velocities is settled, beside those of `rope.energy_bodies`


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
    C = wp.transpose(r[0].work.Z_B[k, w])
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


@wp.func
def push_links(s: wp.array(dtype=Direct), r: wp.array(dtype=RopeStep), w: int):
    """Impulses −p on bodies, as pushes of their links."""
    for n in range(s[0].tree.count):
        b = s[0].tree.body[n]
        s[0].work.Q_l[n, w] = vec3(real(0.0))
        s[0].work.Q_a[n, w] = vec3(real(0.0))
        if b < s[0].own:
            s[0].work.Q_l[n, w] = -r[0].body.p_l[b, w]
            s[0].work.Q_a[n, w] = -r[0].body.p_a[b, w]


@wp.func
def eliminate_ropes(r: wp.array(dtype=RopeStep), p: wp.array(dtype=Ports), w: int):
    """Z of all ropes, and what ports do to them."""
    take_clamps(r, p, w)
    for k in range(r[0].ropes.count):
        clear_ties(r, k, w, True)
    for o in range(r[0].ropes.count):
        k = r[0].ropes.order[o]
        for t in range(r[0].ropes.ties):
            if r[0].ropes.tie_rope[t] == k:
                tie_inertia(r, t, w)
        eliminate(r, k, w)
        if r[0].ropes.kind[2 * k] == ROPE:
            at = r[0].ropes.body[2 * k]
            r[0].work.tie_A[at, w] = r[0].work.tie_A[at, w] + r[0].work.Z_A[k, w]
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
    follow_all(s, w, ALL, real(0.0))
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
        if column == 0:
            mirror(p[0].matrix, 3 * p[0].count, w)
        respond(s, r, w, False, ROUNDS)
        read_column(r, p, column, w)
    factorise_any(p[0].matrix, 3 * p[0].count, w)


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
    substitute_any(p[0].matrix, p[0].rhs, 3 * p[0].count, w)
    apply_ports(r, p, w)
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
    inward(s, w, ALL, mode)


@wp.func
def find_change(s: wp.array(dtype=Direct), r: wp.array(dtype=RopeStep), w: int):
    """Largest change of a speed in the pass, and largest speed, m/s; of what turns, at its radius of inertia."""
    change = real(0.0)
    scale = wp.length(s[0].settings.gravity[0]) * s[0].drift[w]
    for k in range(r[0].ropes.count):
        dv, v = rope_change(r, k, w)
        change = worse(change, dv)
        scale = wp.max(scale, v)
    for n in range(s[0].tree.count):
        i = natural(n)
        b = natural(s[0].tree.row[i].body)
        radius = wp.sqrt(s[0].tree.row[i].least / s[0].tree.row[i].mass)
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
    if mode == ANEW:
        for k in range(r[0].ropes.count):
            rope_slopes(r, k, w)
        eliminate_ropes(r, p, w)
    rope_misses(r, w)
    ropes_inward(r, w)
    all_inward(s, r, w, mode)
    if first and s[0].acting == 1:
        if soften(s, w) == 1:
            refresh_locks(s, w)
            all_inward(s, r, w, ANEW)
    if beside > 0 or ports > 0 or s[0].acting == 0:
        follow_all(s, w, ALL, real(1.0))
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
        outward(s, w)
        off = worst_law(s, w)
        if off > s[0].settings.tolerance[0] and s[0].done[w] < s[0].settings.iterations[0]:
            relinearise(s, w, s[0].done[w] > ALL_AT_ONCE)
            s[0].done[w] = s[0].done[w] + 1
    ropes_outward(r, w)
    hold_driven_ties(r, w)
    gap, _size = place(s, w, ALL, 2)
    return after_place(s, r, w, gap), off


@wp.func
def after_place(s: wp.array(dtype=Direct), r: wp.array(dtype=RopeStep), w: int, gap: real) -> real:
    """What follows from the new poses of bodies; returns the largest gap of joints and rows."""
    if s[0].acting == 1:
        refresh_springs(s, w)
    rope_poses(s, r, w)
    if s[0].closures.count > 0:
        return wp.max(gap, find_rows(s, w))
    return gap


@wp.func
def extent(s: wp.array(dtype=Direct), w: int) -> real:
    """How far bodies are from the origin, m."""
    out = real(0.0)
    for n in range(s[0].tree.count):
        out = wp.max(out, wp.length(s[0].position[s[0].tree.body[n], w]))
    return out


# ---- a step -----------------------------------------------------------------------------------------------------------------


@wp.func
def begin_attempt(s: wp.array(dtype=Direct), r: wp.array(dtype=RopeStep), w: int):
    """What is expected of a step."""
    open_attempt(s, w, ALL)
    for k in range(r[0].ropes.count):
        start_rope(r, k, w)
    rope_poses(s, r, w)


@wp.func
def attempt(s: wp.array(dtype=Direct), r: wp.array(dtype=RopeStep), p: wp.array(dtype=Ports), w: int) -> bool:
    """Passes of a step of the length in `drift` until velocities stay; False where they do not come to that.

    Factors are made anew where laws were not as expected, where the first pass leads far, and a few times where changes do not
    fall well (`rope.energy_bodies.meet`).
    """
    take_slack(r, w)
    begin_attempt(s, r, w)
    rounding = (ropes_length(r, w) + extent(s, w)) * (real(EPSILON) / s[0].drift[w])  # m/s, of positions
    mode = int(ANEW)
    factors = int(1)
    pivots = int(1)
    since = int(0)
    last = real(1.0e30)
    before = real(1.0e30)
    cap = r[0].settings.iterations[0]
    judged = int(0)
    stuck = int(0)
    all = bool(True)
    fewest = int(1 << 30)
    tries = int(TRIES)
    made = int(0)
    while made < cap and s[0].passes[w] < s[0].settings.iterations[2]:
        count_pass(s, w, mode)
        gap, laws = full_pass(s, r, p, w, mode, made == 0)
        s[0].residual[w] = laws
        s[0].state.open[w] = gap
        change, scale = find_change(s, r, w)
        made = made + 1
        r[0].done[w] = r[0].done[w] + 1
        enough = wp.max(r[0].settings.tolerance[0] * scale, ROUND * rounding)
        if not (wp.isfinite(change + gap) and wp.isfinite(scale)):
            return False
        wild = change >= WILD * scale + enough
        if s[0].done[w] > pivots and made < cap and not wild:  # nothing is said of how passes meet
            pivots = s[0].done[w]
            cap = cap + 1
            mode = ANEW
            since = 0
            last = real(1.0e30)
            before = last
            continue
        closed = gap <= wp.max(STALLED, s[0].settings.tolerance[1])
        met = change <= enough and closed
        parts = bool(False)  # passes do not meet
        falls = wp.sqrt(change / before)
        fresh = int(made == 1 and change > FAR * scale)
        if not met and since > 1 and falls > SLOW:
            still = wp.max(STILL * scale, STALLS * rounding)
            if falls > HARDLY and change <= still and closed:
                met = True
            elif factors < FACTORS and change > still:
                fresh = 1
            else:
                parts = falls > HARDLY or change * wp.pow(falls, real(cap - made)) > real(10.0) * enough
        parts = parts or wild or (made >= cap and not met)
        if met or parts or (judged < ROUGHLY and change <= ROUGH * scale):
            parts = parts or (met and widest_gap(r, w) > OPEN)
            off = change
            if parts:
                off = real(0.0)
                stuck = stuck + 1
            wrong = judge(r, w, scale, off, LONGER, all)
            if wrong > 0 and judged < JUDGED and stuck <= STUCK:
                all, fewest, tries = all_at_once(wrong, fewest, tries)
                judged = judged + 1
                if parts:
                    begin_attempt(s, r, w)
                cap = made + r[0].settings.iterations[0]
                mode = ANEW
                since = 0
                last = real(1.0e30)
                before = last
                continue
            if wrong > 0 or parts:
                return False
        if met:
            return not_far(r, w, wp.min(change / scale, r[0].settings.tolerance[0]))
        mode = AGAIN
        if fresh == 1:
            mode = ANEW
            factors = factors + 1
            since = 0
        else:
            note_pass(r, since, w)
            note_reals(s[0].row_impulse, r[0].work.mix_rows, since, w)
            gamma = mix_passes(r, since, w)
            if since > 0:
                mix_reals(s[0].row_impulse, r[0].work.mix_rows, since, w, gamma)
                gap, _size = place(s, w, ALL, 0)
                after_place(s, r, w, gap)
            since = since + 1
        before = last
        last = change
    return False


@wp.func
def keep(s: wp.array(dtype=Direct), r: wp.array(dtype=RopeStep), p: wp.array(dtype=Ports), w: int):
    """A part that was met becomes the state; what is torn, inserted or removed then contradicts what was there."""
    dt = s[0].settings.dt[0]
    h = s[0].drift[w]
    s[0].stopped[w] = 0
    end_arms(r, w)
    pull_links(s, r, w)
    report(s, w)
    if s[0].acting == 1:
        repair(s, r, p, w)
    commit(s, w, ALL)
    scale_pulls(r, w, dt / h)
    for k in range(r[0].ropes.count):
        keep_rope(r, k, w)
    keep_impulses(r, w)
    if any_snaps(r, w):
        project(s, r, p, w, SNAPS)
    for k in range(r[0].ropes.count):
        tear(r, k, w, dt)
        n = r[0].state.segments[k, w]
        feed(r, k, w)
        if r[0].state.segments[k, w] != n:
            r[0].state.started[k, w] = 0
        r[0].state.owed[k, w] = r[0].state.owed[k, w] * (real(1.0) - REPAID * h / dt)
    keep_impulses(r, w)


@wp.func
def repair(s: wp.array(dtype=Direct), r: wp.array(dtype=RopeStep), p: wp.array(dtype=Ports), w: int):
    """Take passed limits back in, by displacements alone that leave joints and ropes closed; their energy is the limit's."""
    _most, passed = open_gaps(s, w, True)
    if passed < 0:
        return
    raised = real(0.0)
    note_pass(r, 0, w)
    for _i in range(8):
        for k in range(r[0].ropes.count):
            miss_lengths(r, k, w, real(-2.0) / s[0].drift[w])
        ropes_inward(r, w)
        push_links(s, r, w)
        close_gaps(s, w)
        if p[0].count > 0:
            couple(s, r, p, w, False, False)
        ropes_outward(r, w)
        raised = raised + displace(s, w)
        for k in range(r[0].ropes.count):
            raised = raised + displace_rope(r, k, w, real(0.5) * s[0].drift[w])
        recall_pass(r, w)
        most, _j = open_gaps(s, w, False)
        for k in range(r[0].ropes.count):
            most = wp.max(most, miss_lengths(r, k, w, real(0.0)))
        if most <= s[0].settings.tolerance[1] * real(1.0e-3):
            break
    s[0].state.dissipated[passed, w] = s[0].state.dissipated[passed, w] + raised


@wp.func
def miss_lengths(r: wp.array(dtype=RopeStep), k: int, w: int, rate: real) -> real:
    """Gaps of a rope's rows, times `rate`, and nothing else that is missed; returns the largest gap, m."""
    first = r[0].ropes.first[k]
    n = r[0].state.segments[k, w]
    most = real(0.0)
    for j in range(n + 1):
        i = first + j
        r[0].work.e[i, w] = vec3(real(0.0))
        r[0].work.defect[i, w] = vec3(real(0.0))
        if j < n:
            gap = r[0].work.r[i + 1, w] - r[0].work.r[i, w] - tangent(r[0].work.q[i, w]) * new_span(r, i, w)
            r[0].work.push_out[i, w] = real(0.0)
            r[0].work.c[i, w] = gap * rate
            r[0].work.load[i, w] = vec3(real(0.0))
            if r[0].state.cut[i, w] == 0:
                most = wp.max(most, wp.length(gap))
    return most


@wp.func
def displace_rope(r: wp.array(dtype=RopeStep), k: int, w: int, h: real) -> real:
    """Displacements by the changes of velocities since they were noted, h times; held points go where bodies are.

    Returns the work of gravity, J.
    """
    first = r[0].ropes.first[k]
    n = r[0].state.segments[k, w]
    slots = r[0].work.v.shape[0]
    raised = real(0.0)
    for j in range(n + 1):
        i = first + j
        by = (r[0].work.v[i, w] - r[0].work.mix_v[MIXED * slots + i, w]) * h
        raised = raised + wp.dot(r[0].settings.gravity[0], by) * r[0].work.mass[i, w]
        r[0].work.r[i, w] = r[0].work.r[i, w] + by
        if j < n:
            r[0].work.q[i, w] = turned(r[0].work.q[i, w], (r[0].work.w[i, w] - r[0].work.mix_w[MIXED * slots + i, w]) * h)
    for side in range(2):
        if is_held(r, 2 * k + side):
            r[0].work.r[first + side * n, w] = end_point(r, 2 * k + side, w)
    for t in range(r[0].ropes.ties):
        if r[0].ropes.tie_rope[t] == k:
            r[0].work.r[r[0].ropes.tie_slot[t], w] = tie_point(r, t, w)
    return raised


@wp.func
def whole_step(
    s: wp.array(dtype=Direct), r: wp.array(dtype=RopeStep), p: wp.array(dtype=Ports), safe: wp.array(dtype=RopeStep), w: int
):
    """One step; where passes do not meet, in halves, quarters, …: all of it, or nothing."""
    dt = s[0].settings.dt[0]
    at = int(0)
    size = int(PARTS)
    parts = int(0)
    for j in range(s[0].scene_joints):
        s[0].state.dissipated[j, w] = real(0.0)
    copy_state(s[0].state, s[0].safe, w)
    copy_ropes(r[0].state, safe[0].state, w)
    r[0].done[w] = 0
    r[0].residual[w] = real(0.0)
    keep_impulses(r, w)
    s[0].passes[w] = 0
    pivots = int(0)
    while at < PARTS:
        s[0].drift[w] = dt * (real(size) / real(PARTS))
        if s[0].passes[w] >= s[0].settings.iterations[2]:
            if s[0].settings.iterations[3] == 1:
                s[0].drift[w] = dt - dt * (real(at) / real(PARTS))
                stay(s, w)
                parts = parts + 1
            else:
                bad = worst_body(s, w)
                copy_state(s[0].safe, s[0].state, w)
                copy_ropes(safe[0].state, r[0].state, w)
                s[0].state.failed[w] = SPENT - bad
            break
        for k in range(r[0].ropes.count):
            pay_out(r, k, w, s[0].drift[w])
        settle(s, r, p, w)
        met = attempt(s, r, p, w)
        pivots = wp.max(pivots, s[0].done[w])
        if met:
            keep(s, r, p, w)
            if s[0].stopped[w] > 0:
                j = s[0].stopped[w] - 1
                s[0].state.dissipated[j, w] = s[0].state.dissipated[j, w] + project(s, r, p, w, JOINTS)
            parts = parts + 1
            at = at + size
            while size < PARTS and at % (2 * size) == 0:
                size = 2 * size
        else:
            take_back(r, w)
            take_back_impulses(r, w)
            s[0].state.lag[w] = real(0.0)  # again without a guess
            if size == 1:
                bad = worst_body(s, w)
                copy_state(s[0].safe, s[0].state, w)
                copy_ropes(safe[0].state, r[0].state, w)
                s[0].state.failed[w] = -1 - bad
                break
            size = size // 2
    if s[0].state.failed[w] == 0:
        bad = first_bad(s, r, w)
        if bad > 0:
            copy_state(s[0].safe, s[0].state, w)
            copy_ropes(safe[0].state, r[0].state, w)
            s[0].state.failed[w] = bad
    s[0].drift[w] = dt
    spend_once(s, w)
    for i in range(r[0].control.force_once.shape[0]):
        r[0].control.force_once[i, w] = vec3(real(0.0))
    s[0].done[w] = replayed_by(s, w, pivots)
    s[0].parts[w] = parts
    if parts > 1:
        s[0].grades[DIVIDED, w] = s[0].grades[DIVIDED, w] + 1


@wp.func
def stay(s: wp.array(dtype=Direct), w: int):
    """The rest of a step for which there is no time: nothing moves in it, and the report tells that the step is not met."""
    s[0].state.time[w] = s[0].state.time[w] + wp.float64(s[0].drift[w])
    forget_guess(s, w)
    s[0].residual[w] = wp.max(s[0].residual[w], UNMET * s[0].settings.tolerance[0])


@wp.func
def first_bad(s: wp.array(dtype=Direct), r: wp.array(dtype=RopeStep), w: int) -> int:
    """1 + the first body whose state is not finite, or the number of bodies + the rope; 0 if there is none."""
    for b in range(s[0].own):
        x = s[0].state.position[b, w] + s[0].state.velocity[b, w] + s[0].state.momentum[b, w]
        if not wp.isfinite(wp.length_sq(x)):
            return 1 + b
    for k in range(r[0].ropes.count):
        first = r[0].ropes.first[k]
        for i in range(first, first + r[0].state.segments[k, w] + 1):
            if not wp.isfinite(wp.length_sq(r[0].state.position[i, w] + r[0].state.velocity[i, w])):
                return 1 + s[0].own + k
    return 0


@wp.func
def copy_ropes(a: RopeState, b: RopeState, w: int):
    """All that a step changes of ropes."""
    copy_vectors(a.position, b.position, w)
    copy_vectors(a.velocity, b.velocity, w)
    copy_vectors(a.spin, b.spin, w)
    copy_vectors(a.pull, b.pull, w)
    copy_vectors(a.moment, b.moment, w)
    copy_vectors(a.end_force, b.end_force, w)
    copy_vectors(a.tie_force, b.tie_force, w)
    copy_vectors(a.smooth, b.smooth, w)
    copy_vectors(a.gain, b.gain, w)
    copy_vectors(a.spin_smooth, b.spin_smooth, w)
    copy_vectors(a.spin_gain, b.spin_gain, w)
    copy_vectors(a.end_mean, b.end_mean, w)
    copy_vectors(a.before, b.before, w)
    copy_reals(a.length, b.length, w)
    copy_reals(a.tight, b.tight, w)
    copy_reals(a.was, b.was, w)
    copy_reals(a.now, b.now, w)
    copy_reals(a.owed, b.owed, w)
    copy_reals(a.span, b.span, w)
    copy_reals(a.reel_rate, b.reel_rate, w)
    copy_reals(a.reel_now, b.reel_now, w)
    for i in range(a.rotation.shape[0]):
        b.rotation[i, w] = a.rotation[i, w]
        b.cut[i, w] = a.cut[i, w]
        b.slack[i, w] = a.slack[i, w]
    for k in range(a.segments.shape[0]):
        b.segments[k, w] = a.segments[k, w]
        b.started[k, w] = a.started[k, w]


# ---- velocities that do not fit joints or ropes -----------------------------------------------------------------------------


@wp.func
def settle(s: wp.array(dtype=Direct), r: wp.array(dtype=RopeStep), p: wp.array(dtype=Ports), w: int):
    """Velocities that fit, before a part of a step for which reels have paid out: all after a change from outside, else what
    driven ends and reels move otherwise than before.
    """
    take_driven(s, w)
    clear_snaps(r, w)
    whole = not is_settled(r, w)
    if whole or not goes_on(r, w):
        take_back(r, w)
        if whole:
            project(s, r, p, w, WHOLE)
        else:
            project(s, r, p, w, ENDS)
        turn_reels(r, w)
        for k in range(r[0].ropes.count):
            if r[0].ropes.reel[k] >= 0:
                i = r[0].ropes.first[k] + r[0].ropes.reel[k] * (r[0].state.segments[k, w] - 1)
                r[0].state.length[i, w] = r[0].state.length[i, w] + r[0].work.paid[k, w]
            r[0].state.started[k, w] = 1


@wp.func
def ropes_at_pose(r: wp.array(dtype=RopeStep), w: int, what: int):
    """Ropes where they stand, with the speeds by which rows open that are to be settled."""
    for k in range(r[0].ropes.count):
        at_pose(r, k, w)
        pose_arms(r, k, w)
    if what == JOINTS:
        return
    for o in range(r[0].ropes.count):
        settle_ends(r, r[0].ropes.order[r[0].ropes.count - 1 - o], w, what)
    for t in range(r[0].ropes.ties):
        if what != ENDS:
            b = r[0].ropes.tie_body[t]
            v = r[0].body.v[b, w] + wp.cross(r[0].body.w[b, w], r[0].work.tie_arm[t, w])
            move_with(r, r[0].ropes.tie_slot[t], w, v)
    for k in range(r[0].ropes.count):
        settle_rows(r, k, w, what)


@wp.func
def project(s: wp.array(dtype=Direct), r: wp.array(dtype=RopeStep), p: wp.array(dtype=Ports), w: int, what: int) -> real:
    """The velocities nearest to those of now, by kinetic energy, that fit joints and rows of ropes; returns the energy that took.

    WHOLE: all of them; ENDS: rows of ropes at driven ends and reels; SNAPS: of ropes, after a step in which elements became taut;
    JOINTS: joints alone.
    Elements that this would press go slack, and it is done again.
    """
    h = s[0].drift[w]
    pushed = s[0].pushed[w]
    lost = rope_energy(r, w)
    s[0].pushed[w] = 0
    for _round in range(JUDGED):
        find_projected(s, r, p, w, what, h)
        found = int(0)
        for k in range(r[0].ropes.count):
            found = found + open_pushed(r, k, w, int(what == SNAPS))
        if found == 0:
            break
    s[0].pushed[w] = pushed
    for k in range(r[0].ropes.count):
        if what == WHOLE or what == ENDS:
            take_speeds(r, k, w)
        else:
            shift_speeds(r, k, w)
    take_back_impulses(r, w)
    return lost - rope_energy(r, w) + take_projected(s, w)


@wp.func
def find_projected(
    s: wp.array(dtype=Direct), r: wp.array(dtype=RopeStep), p: wp.array(dtype=Ports), w: int, what: int, h: real
):  # fmt: skip
    """Changes of the velocities for elements that are slack and taut as they are now."""
    joints = what == WHOLE or what == JOINTS
    count_pass(s, w, ANEW)
    stand_all(s, w, ALL)
    take_driven(s, w)
    ropes_at_pose(r, w, what)
    s[0].drift[w] = h * real(1.0e-9)  # the passes of a step that is next to none
    stand_all(s, w, ALL)
    end_arms(r, w)
    eliminate_ropes(r, p, w)
    ropes_inward(r, w)
    for n in range(s[0].tree.count):
        if not joints:
            s[0].work.close_l[n, w] = vec3(real(0.0))
            s[0].work.close_a[n, w] = vec3(real(0.0))
    push_links(s, r, w)
    hang_ropes(s, r, w)
    inward(s, w, ALL, ANEW)
    follow_all(s, w, ALL, real(1.0))
    if s[0].closures.count > 0:
        keep_changes(s, w)
        speed_rows(s, w)
        if not joints:
            for row in range(s[0].closures.count):
                s[0].rows.gap[row, w] = real(0.0)
        factor_rows(s, w)
        close_rows(s, w, False, ROUNDS)
    if p[0].count > 0:
        couple(s, r, p, w, True, False)
    ropes_outward(r, w)
    s[0].drift[w] = h


@wp.func
def rope_energy(r: wp.array(dtype=RopeStep), w: int) -> real:
    """Kinetic energy of ropes, J."""
    out = real(0.0)
    for k in range(r[0].ropes.count):
        first = r[0].ropes.first[k]
        n = r[0].state.segments[k, w]
        before = real(0.0)
        for j in range(n + 1):
            i = first + j
            after = real(0.0)
            if j < n:
                l = r[0].state.length[i, w]
                after = real(0.5) * l
                spin = r[0].state.spin[i, w]
                along = wp.dot(spin, tangent(r[0].state.rotation[i, w]))
                out = out + thin(r, k) * l * (wp.dot(spin, spin) + along * along)
            v = r[0].state.velocity[i, w]
            out = out + r[0].ropes.density[k] * (before + after) * wp.dot(v, v)
            before = after
    return real(0.5) * out


# ---- calls ------------------------------------------------------------------------------------------------------------------


@wp.kernel(module="sharnir.energy_rope")
def energy_rope_steps(
    s: wp.array(dtype=Direct), r: wp.array(dtype=RopeStep), p: wp.array(dtype=Ports), safe: wp.array(dtype=RopeStep), first: int,
    n: wp.array(dtype=wp.int32),
):  # fmt: skip
    """n steps of a world; where one cannot be made, the world is marked and its state stays."""
    w = first + wp.tid()
    if s[0].state.failed[w] != 0 or n[w] == 0:
        return
    if resume(s, w, ALL) or not ropes_untouched(r, w):
        for k in range(r[0].ropes.count):
            r[0].state.started[k, w] = 0
    used = int(0)
    s[0].made[w] = n[w]
    for step in range(n[w]):
        if s[0].state.failed[w] != 0:
            break
        if used > s[0].settings.iterations[6]:
            s[0].made[w] = step
            break
        whole_step(s, r, p, safe, w)
        used = used + s[0].passes[w]
        if s[0].state.failed[w] == 0:
            count_step(s[0].tally, w, s[0].residual[w], s[0].settings.tolerance[0], s[0].parts[w])
    end_call(s, w)
    note_velocities(r, w)
