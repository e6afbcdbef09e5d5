"""Ropes in the step that keeps energy and momenta: joints, laws and ropes in one solve (theory: energy and momentum; ropes).

The passes of `energy` and of `rope.energy` at once. Unknowns are the changes of the velocities at the end of the step: (δv, δφ)
of bodies as in `links`, (δv, δω) of points and elements as in `rope.chain`. A rope that hangs on a link by its first end
is, eliminated towards it, p = Z V + p₀ there, V the change of its end, which moves by the arm r₁ of the end of the step while p
acts at the mean arm r̄: an inertia that is added to the link's, not quite symmetric, and a push −p₀. What ropes have done to
bodies so far is of outside to the tree's balance of momentum. Other ends, clamps and ties are ports (`rope.ports`), with the
tree's response.

The factors of ropes are symmetric, their equations not quite, so passes are mixed (`rope.mixing`), bodies and rows included.
"""

import warp as wp

from sharnir.direct.data import ALL, DIVIDED, Direct
from sharnir.direct.energy.finish import commit, report, worst_body
from sharnir.direct.energy.links import AGAIN, ANEW, follow_all, inward
from sharnir.direct.energy.means import place, take_driven
from sharnir.direct.energy.passes import STALLED, UNMET, count_pass, open_attempt
from sharnir.direct.energy.projection import speed_rows, stand_all, take_projected
from sharnir.direct.energy.repair import close_gaps, displace, open_gaps
from sharnir.direct.energy.rope_passes import (
    after_place,
    couple,
    eliminate_ropes,
    end_arms,
    extent,
    find_change,
    full_pass,
    hang_ropes,
    pull_links,
    push_links,
    rope_poses,
)
from sharnir.direct.energy.rows import ROUNDS, close_rows, factor_rows, keep_changes
from sharnir.direct.energy.step import (
    SPENT,
    copy_reals,
    copy_state,
    copy_vectors,
    end_call,
    forget_guess,
    replayed_by,
    resume,
    spend_once,
)
from sharnir.guard import count_step
from sharnir.rope.data import MIXED, RopeStep
from sharnir.rope.ends import end_point, is_held, tie_point
from sharnir.rope.energy import keep_impulses, keep_rope, start_rope, take_back_impulses, thin
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
from sharnir.rope.energy_kernels import MOST_PARTS, any_snaps, clear_snaps, is_settled, note_velocities
from sharnir.rope.kernels import ropes_untouched
from sharnir.rope.mixing import mix_passes, mix_reals, note_pass, note_reals, recall_pass
from sharnir.rope.passes import ropes_inward, ropes_outward, scale_pulls
from sharnir.rope.ports import Ports
from sharnir.rope.reel import REPAID, feed, pay_out, tear, undo_reeling
from sharnir.rope.slack import JUDGED, LONGER, OPEN, TRIES, all_at_once, judge, new_span, take_slack, widest_gap
from sharnir.rope.speeds import at_pose, move_with, open_pushed, shift_speeds, take_speeds
from sharnir.rope.terms import tangent
from sharnir.rope_state import RopeState
from sharnir.spatial import turned
from sharnir.types import EPSILON, inline_less, real, vec3

inline_less("sharnir.energy_rope")
JOINTS = wp.constant(3)  # what of velocities is settled, beside those of `rope.energy_bodies`


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
        raised = raised + wp.dot(r[0].settings.gravity[w], by) * r[0].work.mass[i, w]
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
    size = int(MOST_PARTS)
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
    while at < MOST_PARTS:
        s[0].drift[w] = dt * (real(size) / real(MOST_PARTS))
        if s[0].passes[w] >= s[0].settings.iterations[2]:
            if s[0].settings.iterations[3] == 1:
                s[0].drift[w] = dt - dt * (real(at) / real(MOST_PARTS))
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
            while size < MOST_PARTS and at % (2 * size) == 0:
                size = 2 * size
        else:
            undo_reeling(r, w)
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
        undo_reeling(r, w)
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
