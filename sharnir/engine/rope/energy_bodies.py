"""Steps where the ropes' own solve moves the bodies that hold them: bodies, and passes over both."""

import warp as wp

from sharnir.core.spatial import matrix, rotated, unit, worse
from sharnir.core.types import EPSILON, real, vec3
from sharnir.engine.rope.data import BODY, DRIVEN, LOOP, ROPE, RopeStep
from sharnir.engine.rope.ends import advance_body, is_held, own_inertia
from sharnir.engine.rope.energy import (
    hold_driven_ties,
    mean_arm,
    mean_arms,
    note_rope,
    rope_misses,
    rope_pose,
    start_rope,
    start_speeds,
    turns_far,
)
from sharnir.engine.rope.means import carried, cayley, free_spin, momentum_slope, turn_between
from sharnir.engine.rope.mixing import mix_passes, note_pass
from sharnir.engine.rope.passes import add_changes, bring_in, factor, factor_and_bring_in, move_bodies, ropes_outward
from sharnir.engine.rope.slack import JUDGED, LONGER, OPEN, TRIES, all_at_once, judge, take_slack, widest_gap
from sharnir.engine.rope.speeds import at_pose, driven_speed, miss_speeds, move_with, open_pushed, shift_speeds, take_speeds
from sharnir.engine.rope.terms import skew
from sharnir.model.model import DYNAMIC

SLOW = wp.constant(real(0.3))  # part of a change that a pass may leave; above it factors are made anew, or the step is divided
HARDLY = wp.constant(real(0.7))  # likewise: passes do not meet, or changes are rounding
STALLED = wp.constant(real(max(1.0e-9, 1.0e3 * EPSILON)))  # relative to the speeds: below it, changes that stay are rounding
FAR = wp.constant(real(0.02))  # relative to the speeds: a first change above which factors belong to another pose and tension
ROUND = wp.constant(real(4.0))  # multiple of what rounding of positions does to a speed, below which a change is rounding
PLACES = wp.constant(real(4.0 if EPSILON > 1.0e-10 else 0.0))  # likewise, by which a driven end is off; none where that is little
STALLS = wp.constant(real(1000.0))  # likewise, where changes hardly fall
WILD = wp.constant(real(1.0e6))  # likewise: passes part, as taut elements may that contradict each other
FACTORS = wp.constant(4)  # most of them in an attempt
WIDE = wp.constant(real(0.3))  # relative to the speeds: a first change that impulses far from right have made
SURE = wp.constant(real(5.0e-3))  # part of the tolerance, for changes that are foreseen and not seen
CURBED = wp.constant(real(0.5))  # part of a change that a pass of Newton's iteration leaves at most, or passes are mixed
GOES_ON = wp.constant(0)  # verdicts on mixed passes that fall slowly: others follow,
SETTLED = wp.constant(1)  # what they still change is rounding,
RENEW = wp.constant(2)  # factors are made anew,
PARTS = wp.constant(3)  # they do not converge
WHOLE = wp.constant(0)  # what of velocities is settled: all,
ENDS = wp.constant(1)  # what driven ends and reels change,
SNAPS = wp.constant(2)  # what elements stop that have become taut
ROUGH = wp.constant(real(1.0e-3))  # relative to the speeds: a change at which it is seen which elements are slack,
ROUGHLY = wp.constant(3)  # as often; then it waits until passes have met, and sees them all
SUDDEN = wp.constant(real(0.1))  # relative to a segment: what a change of a reel's rate pays out more in a step, for an impact
STUCK = wp.constant(3)  # rounds among them that follow passes which do not meet: taut elements may contradict each other


# ---- a body -----------------------------------------------------------------------------------------------------------------


@wp.func
def turns(s: wp.array(dtype=RopeStep), b: int, w: int) -> bool:
    """Whether a body yields and has an inertia."""
    return s[0].bodies.motion[b] == DYNAMIC and wp.trace(s[0].bodies.inertia[b, w]) > real(0.0)


@wp.func
def start_body(s: wp.array(dtype=RopeStep), b: int, w: int):
    """Predict a body: it gains velocity as in the last step, and turns under the couple of that step."""
    h = s[0].h[w]
    v = s[0].body_state.velocity[b, w]
    omega = s[0].body_state.spin[b, w]
    s[0].body.start_w[b, w] = omega
    if s[0].bodies.motion[b] == DYNAMIC:
        I = rotated(matrix(s[0].body_state.rotation[b, w]), s[0].bodies.inertia[b, w])
        s[0].body.inertia[b, w] = I
        L = s[0].body_state.momentum[b, w]
        L = L + (s[0].body_control.torque[b, w] + s[0].body_control.torque_once[b, w]) * h
        s[0].body.momentum[b, w] = L
        v = v + s[0].body_state.acceleration[b, w] * h
        if turns(s, b, w):
            omega = free_spin(I, omega, L + s[0].state.body_couple[b, w] * h, omega, h)
    s[0].body.v[b, w] = v
    s[0].body.w[b, w] = omega


@wp.func
def body_pose(s: wp.array(dtype=RopeStep), b: int, w: int):
    """x₁ = x₀ + Δt v̄, R₁ = cay(Δt ω̄) R₀; a body that is driven moves as it is told."""
    half = real(0.5) * s[0].h[w]
    if s[0].bodies.motion[b] != DYNAMIC:
        advance_body(s, b, w)
        s[0].body.turn[b, w] = turn_between(s[0].body_state.rotation[b, w], s[0].body.q[b, w])
        return
    x = s[0].body_state.position[b, w]
    move = (s[0].body_state.velocity[b, w] + s[0].body.v[b, w]) * half + s[0].body_state.rest[b, w]
    there = x + move
    s[0].body.x[b, w] = there
    s[0].body.rest[b, w] = move - (there - x)
    turn = (s[0].body.start_w[b, w] + s[0].body.w[b, w]) * half
    s[0].body.turn[b, w] = turn
    s[0].body.q[b, w] = unit(cayley(turn) * s[0].body_state.rotation[b, w])


@wp.func
def stiffen(s: wp.array(dtype=RopeStep), b: int, w: int, r: vec3, f: vec3):
    """The derivative of −r̄ × f by the body's own turn: ¼Δt ((r·f) E − r fᵀ), or the even part of that."""
    K = wp.identity(n=3, dtype=real) * wp.dot(r, f) - wp.outer(r, f)
    if s[0].ropes.exact == 0:
        K = (K + wp.transpose(K)) * real(0.5)
    s[0].body.D[b, w] = s[0].body.D[b, w] + K * (real(0.25) * s[0].h[w])


@wp.func
def body_slopes(s: wp.array(dtype=RopeStep), w: int):
    """Bodies by themselves: the derivative of L₁ by φ, or the even part of that by w, and what pulls of ropes add."""
    for b in range(s[0].bodies.count):
        own_inertia(s, b, w)
        if turns(s, b, w):
            turn = s[0].body.turn[b, w]
            M = momentum_slope(turn, s[0].body.inertia[b, w], s[0].body.w[b, w], s[0].h[w])
            if s[0].ropes.exact == 1:
                T = wp.identity(n=3, dtype=real) - skew(turn) * real(0.5) + wp.outer(turn, turn) * real(0.25)
                s[0].body.D[b, w] = M * T
            else:
                s[0].body.D[b, w] = (M + wp.transpose(M)) * real(0.5)
    for k in range(s[0].ropes.count):
        for side in range(2):
            kind = s[0].ropes.kind[2 * k + side]
            if kind == BODY or kind == LOOP:
                b = s[0].ropes.body[2 * k + side]
                if turns(s, b, w):
                    stiffen(s, b, w, s[0].work.end_arm[2 * k + side, w], -s[0].state.end_force[2 * k + side, w])
    for t in range(s[0].ropes.ties):
        b = s[0].ropes.tie_body[t]
        if s[0].ropes.tie_kind[t] == BODY and turns(s, b, w):
            i = s[0].ropes.tie_slot[t]
            stiffen(s, b, w, s[0].work.tie_end[t, w], s[0].state.pull[i - 1, w] - s[0].state.pull[i, w])


@wp.func
def body_misses(s: wp.array(dtype=RopeStep), w: int):
    """What bodies lack of momentum: m (v₁ − v₀) − Δt F + f, L₁ − L₀ − Δt τ + r̄ × f, f what they do to ropes."""
    h = s[0].h[w]
    for b in range(s[0].bodies.count):
        l = vec3(real(0.0))
        a = vec3(real(0.0))
        if s[0].bodies.motion[b] == DYNAMIC:
            m = s[0].bodies.mass[b, w]
            F = s[0].settings.gravity[w] * m + s[0].body_control.force[b, w] + s[0].body_control.force_once[b, w]
            l = (s[0].body.v[b, w] - s[0].body_state.velocity[b, w]) * m - F * h
            if turns(s, b, w):
                a = carried(s[0].body.turn[b, w], s[0].body.inertia[b, w] * s[0].body.w[b, w]) - s[0].body.momentum[b, w]
        s[0].body.p_l[b, w] = l
        s[0].body.p_a[b, w] = a
    for k in range(s[0].ropes.count):
        for side in range(2):
            end = 2 * k + side
            kind = s[0].ropes.kind[end]
            if kind == BODY or kind == LOOP:
                b = s[0].ropes.body[end]
                f = s[0].state.end_force[end, w]
                s[0].body.p_l[b, w] = s[0].body.p_l[b, w] + f
                if turns(s, b, w):
                    couple = wp.cross(mean_arm(s, b, w, s[0].ropes.point[end]), f)
                    if s[0].ropes.clamp[end] == 1:
                        i = s[0].ropes.first[k] + side * s[0].state.segments[k, w]
                        couple = couple + s[0].state.moment[i, w] * real(1 - 2 * side)
                    s[0].body.p_a[b, w] = s[0].body.p_a[b, w] + couple


@wp.func
def keep_body(s: wp.array(dtype=RopeStep), b: int, w: int):
    """The new state of a body becomes its state; L₁ = cay(θ) I w."""
    h = s[0].h[w]
    v = s[0].body.v[b, w]
    R = s[0].body.q[b, w]
    s[0].body_state.acceleration[b, w] = (v - s[0].body_state.velocity[b, w]) / h
    s[0].body_state.velocity[b, w] = v
    if s[0].bodies.motion[b] == DYNAMIC:
        L = carried(s[0].body.turn[b, w], s[0].body.inertia[b, w] * s[0].body.w[b, w])
        s[0].state.body_couple[b, w] = (L - s[0].body.momentum[b, w]) / h
        s[0].body_state.momentum[b, w] = L
        s[0].body_state.spin[b, w] = wp.quat_rotate(R, s[0].bodies.inv_inertia[b, w] * wp.quat_rotate_inv(R, L))
    s[0].body_state.position[b, w] = s[0].body.x[b, w]
    s[0].body_state.rest[b, w] = s[0].body.rest[b, w]
    s[0].body_state.rotation[b, w] = R


# ---- passes -----------------------------------------------------------------------------------------------------------------


@wp.func
def vector_pass(s: wp.array(dtype=RopeStep), w: int):
    """New velocities and impulses from what was brought inwards: bodies, outwards."""
    move_bodies(s, w)
    ropes_outward(s, w)
    hold_driven_ties(s, w)
    add_changes(s, w)


@wp.func
def new_pose(s: wp.array(dtype=RopeStep), w: int):
    """Bodies, then ropes, those on which others hang first."""
    for b in range(s[0].bodies.count):
        body_pose(s, b, w)
    for o in range(s[0].ropes.count):
        rope_pose(s, s[0].ropes.order[s[0].ropes.count - 1 - o], w)


@wp.func
def one_change(s: wp.array(dtype=RopeStep), w: int, anew: int, mixed: bool):
    """A pass, with factors of the pose and impulses at hand where `anew` is 1, one that mixing may use where `mixed`.

    Returns the largest change of a speed, and the largest speed, m/s.
    """
    if mixed:
        for k in range(s[0].ropes.count):
            note_rope(s, k, w)
        for b in range(s[0].bodies.count):
            s[0].body.last_v[b, w] = s[0].body.v[b, w]
            s[0].body.last_w[b, w] = s[0].body.w[b, w]
    mean_arms(s, w)  # a tied body's momentum is met at its point: by the arm of this pose, not of the factors
    rope_misses(s, w, anew)
    body_misses(s, w)
    if anew == 1:
        body_slopes(s, w)
        factor_and_bring_in(s, w)
    else:
        bring_in(s, w)
    vector_pass(s, w)
    change = real(0.0)
    scale = wp.length(s[0].settings.gravity[w]) * s[0].h[w]
    for k in range(s[0].ropes.count):
        change = worse(change, s[0].work.change[k, w])
        scale = wp.max(scale, s[0].work.speed[k, w])
    for b in range(s[0].bodies.count):
        if s[0].bodies.motion[b] == DYNAMIC:
            change = worse(change, wp.length(s[0].body.dv[b, w]))
            scale = wp.max(scale, wp.length(s[0].body.v[b, w]))
    return change, scale


@wp.func
def ropes_length(s: wp.array(dtype=RopeStep), w: int) -> real:
    """Length of all ropes, m."""
    out = real(0.0)
    for k in range(s[0].ropes.count):
        for i in range(s[0].ropes.first[k], s[0].ropes.first[k] + s[0].state.segments[k, w]):
            out = out + s[0].state.length[i, w]
    return out


@wp.func
def not_far(s: wp.array(dtype=RopeStep), w: int, change: real) -> bool:
    """Whether what passes met on is no other branch; notes what they left."""
    for k in range(s[0].ropes.count):
        if turns_far(s, k, w):
            return False
    s[0].residual[w] = wp.max(s[0].residual[w], wp.min(change, s[0].settings.tolerance[0]))
    return True


@wp.func
def begin_part(s: wp.array(dtype=RopeStep), w: int):
    """Predict the step."""
    for k in range(s[0].ropes.count):
        start_rope(s, k, w)
    begin_speeds(s, w)


@wp.func
def begin_speeds(s: wp.array(dtype=RopeStep), w: int):
    """Velocities that are expected, and the pose to which they lead."""
    for b in range(s[0].bodies.count):
        start_body(s, b, w)
    for k in range(s[0].ropes.count):
        start_speeds(s, k, w)
    new_pose(s, w)


@wp.func
def in_budget(s: wp.array(dtype=RopeStep), w: int) -> bool:
    """Whether the step may take more passes: of all that it may take, and of those without a further part made."""
    done = s[0].done[w]
    return done < s[0].settings.iterations[1] and done - s[0].headway[w] < s[0].settings.iterations[4]


@wp.func
def foreseen(change: real, last: real, foretold: real):
    """What passes of Newton's iteration will still change, after one that changed so much; the same once more, for a check.

    Changes fall by the same ratio, or, where the last one was as small as that `foretold`, are C times the square of the last.
    """
    rate = change / last
    square = change * rate * rate
    if change <= real(2.0) * foretold:
        return square, square
    return change * rate, square


@wp.func
def judge_stall(change: real, falls: real, still: real, enough: real, factors: int, left: int) -> int:
    """What becomes of mixed passes whose changes fall slowly, by the part `falls` in each of the `left` passes that may follow.

    Changes below `still` that do not fall any more are rounding.
    """
    if falls > HARDLY and change <= still:
        return SETTLED
    if factors < FACTORS and change > still:
        return RENEW
    if falls > HARDLY or change * wp.pow(falls, real(left)) > real(10.0) * enough:
        return PARTS
    return GOES_ON


@wp.func
def meet(s: wp.array(dtype=RopeStep), w: int) -> bool:
    """Passes until velocities stay; False where they do not come to that.

    Newton's iteration, where factors of the last pass do once changes are small. Where slopes are symmetric ones (`chain`), or
    that does not get nearer, passes are mixed, with factors that are made anew a few times; then it is given up once it is seen
    that the passes left will not do. How they fall is judged over two passes: mixed ones may rise in between.
    """
    take_slack(s, w)
    begin_part(s, w)
    rounding = ropes_length(s, w) * (real(EPSILON) / s[0].h[w])  # m/s, of positions
    cap = s[0].settings.iterations[0]
    most, factors, anew, tries, fewest = cap, int(1), int(1), int(TRIES), int(1 << 30)
    i, since, judged, stuck, begun = int(-1), int(0), int(0), int(0), int(0)
    last, before, foretold = real(1.0e30), real(1.0e30), real(0.0)
    all, mixed = bool(True), s[0].ropes.exact == 0
    while i + 1 < most and in_budget(s, w):
        i = i + 1
        change, scale = one_change(s, w, anew, mixed)
        s[0].done[w] = s[0].done[w] + 1
        enough = wp.max(s[0].settings.tolerance[0] * scale, ROUND * rounding)
        finite = wp.isfinite(change) and wp.isfinite(scale)
        met = change <= enough and finite
        if not mixed and not met and (not finite or (since > 2 and change > CURBED * last)):
            mixed = True
            begin_part(s, w)
            begun, most = i + 1, i + 1 + cap
            anew, since, last, before = int(1), int(0), real(1.0e30), real(1.0e30)
            continue
        if not finite:
            return False
        if i == 0 and change > WIDE * scale and not mixed and not met:
            begin_speeds(s, w)  # impulses were far off: velocities once more, with those that were found
            continue
        reused = int(0)  # whether the next pass will do with the factors there are
        if not mixed and change <= last and last < real(1.0e30):
            left, square = foreseen(change, last, foretold)
            foretold = square * real(anew)
            reused = int(square * (change / last) <= enough)
            if met or left <= SURE * enough:
                met = True
                change = wp.min(change, left)
        parts, falls = bool(False), wp.sqrt(change / before)  # whether passes do not meet
        anew = int(i == begun and change > FAR * scale)
        if not mixed:
            anew = 1 - reused
        elif not met and since > 1 and falls > SLOW:
            still = wp.max(STALLED * scale, STALLS * rounding)
            verdict = judge_stall(change, falls, still, enough, factors, most - i - 1)
            met = verdict == SETTLED
            anew = wp.max(anew, int(verdict == RENEW))
            parts = verdict == PARTS
        parts = parts or change >= WILD * scale + enough or (i + 1 >= most and not met)
        if met or parts or (judged < ROUGHLY and change <= ROUGH * scale):
            new_pose(s, w)
            parts = parts or (met and widest_gap(s, w) > OPEN)
            off = wp.where(parts, real(0.0), change)
            stuck = stuck + int(parts)
            wrong = judge(s, w, scale, off, LONGER, all)
            if wrong > 0 and judged < JUDGED and stuck <= STUCK:
                all, fewest, tries = all_at_once(wrong, fewest, tries)
                judged = judged + 1
                if parts:
                    begin_part(s, w)
                anew, most, since, last, before = int(1), i + 1 + cap, int(0), real(1.0e30), real(1.0e30)
                continue
            if wrong > 0 or parts:
                return False
        if met:
            return not_far(s, w, wp.min(change / scale, s[0].settings.tolerance[0]))
        if not mixed:
            since = since + 1
        elif anew == 1:
            factors, since = factors + 1, int(0)
        else:
            note_pass(s, since, w)
            mix_passes(s, since, w)
            since = since + 1
        new_pose(s, w)
        before, last = last, change
    return False


# ---- velocities that contradict the rows ------------------------------------------------------------------------------------


@wp.func
def settle_speeds(s: wp.array(dtype=RopeStep), w: int, what: int):
    """Change velocities at the pose so that rows do not open, by as little kinetic energy as that takes.

    WHOLE: all rows; ENDS: those alone that an end or a reel moves which does not go on as before: the change then passes along
    the rope, and what second-order errors left in other rows stays; SNAPS: all, after a step in which elements became taut.
    Elements that this would press go slack, and it is done again.
    """
    for _round in range(JUDGED):
        begin_settling(s, w)
        for o in range(s[0].ropes.count):
            settle_ends(s, s[0].ropes.order[s[0].ropes.count - 1 - o], w, what)
        for t in range(s[0].ropes.ties):
            if what != ENDS:
                b = s[0].ropes.tie_body[t]
                v = s[0].body.v[b, w] + wp.cross(s[0].body.w[b, w], s[0].work.tie_arm[t, w])
                move_with(s, s[0].ropes.tie_slot[t], w, v)
        for k in range(s[0].ropes.count):
            settle_rows(s, k, w, what)
        factor(s, w, True)
        bring_in(s, w)
        vector_pass(s, w)
        found = int(0)
        for k in range(s[0].ropes.count):
            found = found + open_pushed(s, k, w, int(what == SNAPS))
        if found == 0:
            break
    for b in range(s[0].bodies.count):
        if s[0].bodies.motion[b] == DYNAMIC:
            s[0].body_state.velocity[b, w] = s[0].body.v[b, w]
            if turns(s, b, w):
                dw = s[0].body.w[b, w] - s[0].body_state.spin[b, w]
                s[0].body_state.momentum[b, w] = s[0].body_state.momentum[b, w] + s[0].body.inertia[b, w] * dw
                s[0].body_state.spin[b, w] = s[0].body.w[b, w]
    for k in range(s[0].ropes.count):
        if what == SNAPS:
            shift_speeds(s, k, w)
        else:
            take_speeds(s, k, w)


@wp.func
def begin_settling(s: wp.array(dtype=RopeStep), w: int):
    """Bodies and ropes where they stand, as they move."""
    for b in range(s[0].bodies.count):
        s[0].body.v[b, w] = s[0].body_state.velocity[b, w]
        s[0].body.w[b, w] = s[0].body_state.spin[b, w]
        s[0].body.inertia[b, w] = rotated(matrix(s[0].body_state.rotation[b, w]), s[0].bodies.inertia[b, w])
        s[0].body.p_l[b, w] = vec3(real(0.0))
        s[0].body.p_a[b, w] = vec3(real(0.0))
        own_inertia(s, b, w)
    for k in range(s[0].ropes.count):
        at_pose(s, k, w)
        pose_arms(s, k, w)


@wp.func
def pose_arms(s: wp.array(dtype=RopeStep), k: int, w: int):
    """Arms of a rope's held and tied points at the pose."""
    for side in range(2):
        if is_held(s, 2 * k + side):
            b = s[0].ropes.body[2 * k + side]
            arm = wp.quat_rotate(s[0].body_state.rotation[b, w], s[0].ropes.point[2 * k + side])
            s[0].work.arm[2 * k + side, w] = arm
            s[0].work.end_arm[2 * k + side, w] = arm
    for t in range(s[0].ropes.ties):
        if s[0].ropes.tie_rope[t] == k:
            b = s[0].ropes.tie_body[t]
            arm = wp.quat_rotate(s[0].body_state.rotation[b, w], s[0].ropes.tie_point[t])
            s[0].work.tie_arm[t, w] = arm
            s[0].work.tie_end[t, w] = arm


@wp.func
def settle_ends(s: wp.array(dtype=RopeStep), k: int, w: int, what: int):
    """Held ends move as what holds them does; after a step, driven ones as they did."""
    for side in range(2):
        end = 2 * k + side
        i = s[0].ropes.first[k] + side * s[0].state.segments[k, w]
        if is_held(s, end):
            b = s[0].ropes.body[end]
            arm = s[0].work.arm[end, w]
            if s[0].ropes.kind[end] == DRIVEN:
                if what != SNAPS:
                    move_with(s, i, w, driven_speed(s, k, side, w))
            elif what != ENDS:
                move_with(s, i, w, s[0].body.v[b, w] + wp.cross(s[0].body.w[b, w], arm))
    if s[0].ropes.kind[2 * k] == ROPE and what != ENDS:
        move_with(s, s[0].ropes.first[k], w, s[0].work.v[s[0].ropes.body[2 * k], w])


@wp.func
def reel_start(s: wp.array(dtype=RopeStep), k: int, w: int) -> real:
    """Speed of a rope's reel at the start of a step, m/s: the mean of its rates u₀ in the last step and u₁ in this one.

    A step of mean rate u₁ that starts there ends at ½(3u₁ − u₀). What is above u₁ is taken from a load by the next step, but a
    rope cannot push: after a jump of the rate the load would be thrown ahead of it. A change by more than gravity makes up for
    in a step is an impact: the step starts at u₁. One above SUDDEN is left to the step, whose tension then shows its work.
    """
    rate = s[0].work.paid[k, w] / s[0].h[w]
    last = s[0].state.reel_rate[k, w]
    dt = s[0].settings.dt[0]
    change = wp.abs(rate - last)
    if change > wp.length(s[0].settings.gravity[w]) * dt and change * dt < SUDDEN * s[0].ropes.segment[k]:
        return rate
    return real(0.5) * (rate + last)


@wp.func
def settle_rows(s: wp.array(dtype=RopeStep), k: int, w: int, what: int):
    """Closing speeds: of all rows, or of those at driven ends; and at the reel."""
    first = s[0].ropes.first[k]
    n = s[0].state.segments[k, w]
    if what != ENDS:
        miss_speeds(s, k, w)
    else:
        for side in range(2):
            if s[0].ropes.kind[2 * k + side] == DRIVEN:
                i = first + side * n
                sign = real(1 - 2 * side)
                moved = (s[0].work.v[i, w] - s[0].state.velocity[i, w]) * sign
                s[0].work.c[i - side, w] = s[0].work.c[i - side, w] + moved
    if s[0].ropes.reel[k] >= 0:
        i = first + s[0].ropes.reel[k] * (n - 1)
        start = reel_start(s, k, w)
        more = start - s[0].state.reel_now[k, w]
        if what == WHOLE:
            more = start
        elif what == SNAPS:
            more = s[0].state.reel_now[k, w]
        if s[0].ropes.winch[k] >= 0:  # as its drum turns
            more = real(0.0)
            if what != ENDS:
                more = s[0].state.reel_now[k, w]
        s[0].work.c[i, w] = s[0].work.c[i, w] + s[0].work.d[i, w] * more


@wp.func
def turn_reels(s: wp.array(dtype=RopeStep), w: int):
    """Once velocities are settled: reels run at the pose as the rows there were asked to."""
    for k in range(s[0].ropes.count):
        if s[0].ropes.reel[k] >= 0 and s[0].ropes.winch[k] < 0:
            s[0].state.reel_now[k, w] = reel_start(s, k, w)


@wp.func
def goes_on(s: wp.array(dtype=RopeStep), w: int) -> bool:
    """Whether ends that are driven and reels go on as in the last step; in single precision, but for rounding of positions."""
    for k in range(s[0].ropes.count):
        for side in range(2):
            if s[0].ropes.kind[2 * k + side] == DRIVEN:
                i = s[0].ropes.first[k] + side * s[0].state.segments[k, w]
                v = driven_speed(s, k, side, w)
                rounding = PLACES * wp.length(s[0].state.position[i, w]) * (real(EPSILON) / s[0].h[w])
                if wp.length(v - s[0].state.velocity[i, w]) > STALLED * wp.length(v) + rounding:
                    return False
        if s[0].ropes.reel[k] >= 0 and s[0].ropes.winch[k] < 0:
            rate = s[0].work.paid[k, w] / s[0].h[w]
            if wp.abs(reel_start(s, k, w) - s[0].state.reel_now[k, w]) > STALLED * wp.abs(rate):
                return False
    return True
