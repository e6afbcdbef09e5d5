"""Steps of ropes, a thread a world: alone with the bodies that hold them, beside another solver; what is read between calls."""

import warp as wp

from sharnir.guard import count_step
from sharnir.model import DYNAMIC
from sharnir.rope.data import BODY, DRIVEN, LOOP, RopeStep
from sharnir.rope.ends import advance_body, commit_body, end_point, end_velocity, own_inertia, predict_body, tie_point
from sharnir.rope.passes import (
    ACCEPTED,
    JUDGED,
    MOST_GAIN,
    MOST_PARTS,
    attempt_part,
    bad_rope,
    commit_rope,
    count,
    factor,
    factor_anew,
    judge_step,
    kinetic,
    lay_out,
    missed,
    missed_speeds,
    one_pass,
    scale_pulls,
    supply,
)
from sharnir.rope.predict import begin_rope, stiffen_bodies
from sharnir.rope.reel import REPAID, feed, pay_out, tear, undo_reeling
from sharnir.rope.slack import take_slack
from sharnir.rope.winch import follow_drums, guess_drums
from sharnir.sleep import at_rest_together, fall_asleep
from sharnir.spatial import matrix, rotated
from sharnir.stepping import IMPLICIT, VELOCITY_LEVEL, dividing, soften
from sharnir.types import real, vec3

OPEN = wp.constant(real(1.0e-3))  # beside another solver: a row open by more of its length is not closed in the next step
DONE = wp.constant(1 << 24)  # more sweeps than there are


# ---- a step -----------------------------------------------------------------------------------------------------------------


@wp.func
def start_step(s: wp.array(dtype=RopeStep), w: int):
    """Nothing of the step is counted yet."""
    s[0].done[w] = 0
    s[0].sudden[w] = 0
    s[0].residual[w] = real(0.0)


@wp.func
def make_part(s: wp.array(dtype=RopeStep), w: int, scope: int, share: real, way: int) -> bool:
    """A part of a step; whether its passes met. Velocities stand half a step before poses: the first step begins with half a
    kick, and the scheme is of second order.
    """
    dt = s[0].settings.dt[0]
    s[0].h[w] = dt * share
    s[0].kick[w] = s[0].body_state.stagger[w] + real(0.5) * s[0].h[w]
    scale_pulls(s, w, share)
    for k in range(s[0].ropes.count):
        pay_out(s, k, w, s[0].h[w])
    off = attempt_part(s, w, way)
    scale_pulls(s, w, dt / s[0].kick[w])
    return not off > ACCEPTED


@wp.func
def keep_part(s: wp.array(dtype=RopeStep), w: int, scope: int, part: int) -> bool:
    """The new state becomes the state, if it is finite; else the world is marked."""
    bad = bad_rope(s, w)
    if bad != 0:
        s[0].body_state.failed[w] = bad
        return False
    for b in range(s[0].bodies.count):
        commit_body(s, b, w)
    keep_ropes(s, w, s[0].h[w], s[0].settings.dt[0])
    s[0].body_state.stagger[w] = real(0.5) * s[0].h[w]
    return True


@wp.func
def ease_step(s: wp.array(dtype=RopeStep), w: int, scope: int, size: int, way: int):
    """After a miss (a whip's end that turns by radians in a step): the tension's direction fully implicit, then smaller parts, in
    the end at velocity level.
    """
    undo_reeling(s, w)
    if size > 1:
        s[0].residual[w] = real(0.0)
    return soften(size, way)


@wp.func
def end_step(s: wp.array(dtype=RopeStep), w: int, parts: int, ways: int):
    """Count how the step was made."""
    damped = (ways >> IMPLICIT) & 1
    velocity = ways >> VELOCITY_LEVEL
    s[0].parts[w] = parts
    count(s, w, wp.max(s[0].sudden[w] - damped - velocity, 0), int(parts > 1), damped, velocity)


make_step = dividing("leap_alone", int(MOST_PARTS), start_step, make_part, keep_part, ease_step, end_step)


@wp.func
def keep_ropes(s: wp.array(dtype=RopeStep), w: int, h: real, dt: real):
    """The new state of ropes becomes their state, after a part of a step of length h; what is torn or reeled in then goes."""
    for k in range(s[0].ropes.count):
        tear(s, k, w, dt)
        commit_rope(s, k, w)
        feed(s, k, w)
        s[0].state.owed[k, w] = s[0].state.owed[k, w] * (real(1.0) - REPAID * h / dt)


@wp.func
def spend_pushes(s: wp.array(dtype=RopeStep), w: int):
    """Forces of one step on points of ropes are of no other."""
    for i in range(s[0].control.force_once.shape[0]):
        s[0].control.force_once[i, w] = vec3(real(0.0))


@wp.func
def spend_all(s: wp.array(dtype=RopeStep), w: int):
    """Forces of one step are of no other, those on bodies too."""
    spend_pushes(s, w)
    for b in range(s[0].bodies.count):
        s[0].body_control.force_once[b, w] = vec3(real(0.0))
        s[0].body_control.torque_once[b, w] = vec3(real(0.0))


# ---- beside another solver --------------------------------------------------------------------------------------------------


@wp.func
def take_end(s: wp.array(dtype=RopeStep), end: int, i: int, w: int):
    """A held point after something else moved its body: what its own mass lacks for that is added to its defect."""
    v = end_velocity(s, end, i, w)
    lacks = (v - s[0].work.v[i, w]) * (s[0].work.mass[i, w] + s[0].work.damp[i, w])
    s[0].work.defect[i, w] = s[0].work.defect[i, w] + lacks
    s[0].work.v[i, w] = v
    s[0].work.r[i, w] = end_point(s, end, w)


@wp.func
def take_tie(s: wp.array(dtype=RopeStep), t: int, w: int):
    """A tied point after something else moved its body: what its own mass lacks for that is added to its defect."""
    b = s[0].ropes.tie_body[t]
    i = s[0].ropes.tie_slot[t]
    if s[0].bodies.motion[b] == DYNAMIC:
        v = s[0].body.v[b, w] + wp.cross(s[0].body.w[b, w], s[0].work.tie_arm[t, w])
        lacks = (v - s[0].work.v[i, w]) * (s[0].work.mass[i, w] + s[0].work.damp[i, w])
        s[0].work.defect[i, w] = s[0].work.defect[i, w] + lacks
        s[0].work.v[i, w] = v
        s[0].work.r[i, w] = tie_point(s, t, w)


@wp.func
def begin_beside(s: wp.array(dtype=RopeStep), w: int, attempt: int):
    """Prepare the first pass of ropes whose bodies another solver has predicted."""
    s[0].done[w] = 0
    s[0].residual[w] = real(0.0)
    s[0].hard[w] = attempt
    for b in range(s[0].bodies.count):
        own_inertia(s, b, w)
    stiffen_bodies(s, w)
    for o in range(s[0].ropes.count):
        begin_rope(s, s[0].ropes.order[s[0].ropes.count - 1 - o], w, attempt)
    factor(s, w, True)


@wp.func
def take_bodies(s: wp.array(dtype=RopeStep), w: int):
    """Held and tied points after something else moved their bodies."""
    for b in range(s[0].bodies.count):
        advance_body(s, b, w)
    follow_drums(s, w)
    for k in range(s[0].ropes.count):
        for side in range(2):
            if s[0].ropes.kind[2 * k + side] == BODY or s[0].ropes.kind[2 * k + side] == LOOP:
                take_end(s, 2 * k + side, s[0].ropes.first[k] + side * s[0].state.segments[k, w], w)
    for t in range(s[0].ropes.ties):
        take_tie(s, t, w)


@wp.func
def miss_all(s: wp.array(dtype=RopeStep), w: int) -> real:
    """What ropes miss, rows being closed as `hard` says; returns the largest, as an angle."""
    off = real(0.0)
    for k in range(s[0].ropes.count):
        if s[0].hard[w] == 2:
            missed_speeds(s, k, w, real(1.0))
        else:
            off = wp.max(off, missed(s, k, w, s[0].hard[w]))
    return off


@wp.func
def end_sweeps(s: wp.array(dtype=RopeStep), w: int, swept: wp.array(dtype=wp.int32)):
    """Raise a world's counts of sweeps and passes beyond any cap, so that launches find nothing to do there; once."""
    if swept[w] < DONE:
        s[0].swept[w] = swept[w]
        swept[w] = DONE
        s[0].done[w] = s[0].done[w] + DONE


@wp.func
def start_beside(s: wp.array(dtype=RopeStep), w: int):
    """Begin a step of ropes whose bodies another solver has predicted; what the last one left open tells whether it was hard."""
    hard = int(s[0].body_state.open[w] > ACCEPTED)
    s[0].h[w] = s[0].settings.dt[0]
    s[0].kick[w] = s[0].settings.dt[0]
    s[0].parts[w] = 1
    s[0].sudden[w] = 0
    for b in range(s[0].bodies.count):
        s[0].body.inertia[b, w] = rotated(matrix(s[0].body_state.rotation[b, w]), s[0].bodies.inertia[b, w])
        s[0].body.start_v[b, w] = s[0].body.v[b, w]
    guess_drums(s, w)
    for k in range(s[0].ropes.count):
        pay_out(s, k, w, s[0].h[w])
        for i in range(s[0].ropes.first[k], s[0].ropes.first[k] + s[0].state.segments[k, w]):
            s[0].work.tension[i, w] = s[0].h[w] * s[0].state.tight[i, w]
    s[0].judged[w] = 0
    take_slack(s, w)
    begin_beside(s, w, hard)
    s[0].energy[w] = kinetic(s, w)


@wp.kernel(module="sharnir.rope")
def rope_begin(s: wp.array(dtype=RopeStep), first: int):
    """Begin a step beside another solver."""
    w = first + wp.tid()
    if not at_rest_together(s[0].rest, w):
        start_beside(s, w)


@wp.kernel(module="sharnir.rope")
def rope_pass(
    s: wp.array(dtype=RopeStep), first: int, swept: wp.array(dtype=wp.int32), left: wp.array(dtype=real),
    tolerance: wp.array(dtype=real),
):  # fmt: skip
    """One pass of the ropes, for the twists that their bodies have now; none where sweeps and passes have met.

    `swept` counts the sweeps of the other solver, `left` is the largest impulse of the last one. A world whose last sweep changed
    nothing that counts, and whose rows and moments are met all the same, is done (`end_sweeps`).
    """
    w = first + wp.tid()
    if s[0].done[w] >= s[0].settings.iterations[0] or s[0].body_state.failed[w] != 0 or at_rest_together(s[0].rest, w):
        return
    take_bodies(s, w)
    off = miss_all(s, w)
    if s[0].hard[w] < 2:
        s[0].residual[w] = off
    wrong = int(0)
    if s[0].done[w] > 0 and off <= real(1.0e2) * s[0].settings.tolerance[0] and s[0].judged[w] < JUDGED:
        wrong = judge_step(s, w, s[0].judged[w] < JUDGED / 2)
    if wrong > 0:
        s[0].judged[w] = s[0].judged[w] + 1
        factor_anew(s, w)
        miss_all(s, w)
    elif s[0].done[w] > 0 and left[w] <= tolerance[0] and off <= s[0].settings.tolerance[0]:
        end_sweeps(s, w, swept)
        return
    one_pass(s, w)
    s[0].done[w] = s[0].done[w] + 1


@wp.func
def begin_again(s: wp.array(dtype=RopeStep), w: int):
    """Begin the step of ropes at velocity level; what an attempt left that is not finite is forgotten. It is not met yet."""
    for k in range(s[0].ropes.count):
        for i in range(s[0].ropes.first[k], s[0].ropes.first[k] + s[0].state.segments[k, w]):
            if not wp.isfinite(wp.length_sq(s[0].state.pull[i, w])):
                s[0].state.pull[i, w] = vec3(real(0.0))
    begin_beside(s, w, 2)
    s[0].residual[w] = real(1.0)


@wp.func
def goes_astray(
    s: wp.array(dtype=RopeStep), w: int, swept: wp.array(dtype=wp.int32), most: real, rest: real, closed: bool
) -> bool:  # fmt: skip
    """Look at a step before it is taken: one whose rows are not `closed`, or whose kinetic energy grew by more than a factor
    `most` beyond what it was given (`supply`), is begun again.

    Rows are then closed at velocity level: with both joints and ropes linear, sweeps and passes can only take energy. `swept` is
    −1 in a world that begins again, and beyond any cap in the others.
    """
    end_sweeps(s, w, swept)
    if s[0].body_state.failed[w] != 0:
        return False
    gained = kinetic(s, w) - most * s[0].energy[w] - supply(s, w, rest)
    if closed and gained <= real(0.0):  # not so of what is not a number
        count(s, w, s[0].sudden[w] * (1 - s[0].hard[w]), 0, s[0].hard[w], 0)
        return False
    swept[w] = -1
    for b in range(s[0].bodies.count):
        s[0].body.v[b, w] = s[0].body.start_v[b, w]
        s[0].body.w[b, w] = s[0].body.start_w[b, w]
    begin_again(s, w)
    count(s, w, 0, 0, 0, 1)
    return True


@wp.kernel(module="sharnir.rope")
def rope_judge(s: wp.array(dtype=RopeStep), first: int, swept: wp.array(dtype=wp.int32)):
    """Look at a step before it is taken."""
    w = first + wp.tid()
    if not at_rest_together(s[0].rest, w):
        goes_astray(s, w, swept, MOST_GAIN, real(1.0), s[0].residual[w] <= OPEN)


@wp.func
def take_step(
    s: wp.array(dtype=RopeStep), w: int, swept: wp.array(dtype=wp.int32), left: wp.array(dtype=real), tolerance: real
) -> bool:  # fmt: skip
    """The new state of ropes becomes their state, where that of the bodies did. Returns whether it did."""
    if at_rest_together(s[0].rest, w):
        count_step(s[0].tally, w, real(0.0), tolerance, 1)
        return False
    if swept[w] >= DONE:
        swept[w] = s[0].swept[w]
        s[0].done[w] = s[0].done[w] - DONE
    else:  # begun again: the cap that leads to the same step
        swept[w] = wp.max(swept[w], s[0].swept[w])
    if s[0].body_state.failed[w] != 0:
        return False
    if s[0].hard[w] == 2:
        for b in range(s[0].bodies.count):
            s[0].body.x[b, w] = s[0].body_state.position[b, w]
            s[0].body.q[b, w] = s[0].body_state.rotation[b, w]
        for o in range(s[0].ropes.count):
            lay_out(s, s[0].ropes.order[s[0].ropes.count - 1 - o], w)
        for b in range(s[0].bodies.count):
            s[0].body_state.position[b, w] = s[0].body.x[b, w]
    bad = bad_rope(s, w)
    if bad != 0:
        s[0].body_state.failed[w] = bad
        return False
    s[0].body_state.open[w] = s[0].residual[w]
    keep_ropes(s, w, s[0].h[w], s[0].h[w])
    worst = wp.max(left[w] / wp.max(tolerance, real(1.0e-30)), s[0].residual[w] / s[0].settings.tolerance[0])
    count_step(s[0].tally, w, worst, real(1.0), 1)
    spend_pushes(s, w)
    return True


@wp.kernel(module="sharnir.rope")
def rope_commit(
    s: wp.array(dtype=RopeStep), first: int, swept: wp.array(dtype=wp.int32), left: wp.array(dtype=real),
    tolerance: wp.array(dtype=real),
):  # fmt: skip
    """Take the step."""
    w = first + wp.tid()
    if take_step(s, w, swept, left, tolerance[0]):
        fall_asleep(s[0].rest, w)


@wp.kernel(module="sharnir.rope")
def rope_steps(s: wp.array(dtype=RopeStep), first: int, n: wp.array(dtype=wp.int32)):
    """n steps of a world; where one would not be finite, the world is marked and its state stays."""
    w = first + wp.tid()
    for g in range(s[0].grades.shape[0]):
        s[0].grades[g, w] = 0
    for _step in range(n[w]):
        if s[0].body_state.failed[w] != 0:
            break
        make_step(s, w, 0)
        spend_all(s, w)
        if s[0].body_state.failed[w] == 0:
            s[0].body_state.time[w] = s[0].body_state.time[w] + wp.float64(s[0].settings.dt[0])
            count_step(s[0].tally, w, s[0].residual[w], s[0].settings.tolerance[0], s[0].parts[w])


# ---- between calls ----------------------------------------------------------------------------------------------------------


@wp.func
def differ(a: vec3, b: vec3) -> bool:
    """Whether two vectors are not the same, bit for bit."""
    return a[0] != b[0] or a[1] != b[1] or a[2] != b[2]


@wp.func
def ropes_untouched(now: wp.array(dtype=RopeStep), w: int) -> bool:
    """Whether points and elements move as the last call left them."""
    for i in range(now[0].state.velocity.shape[0]):
        if differ(now[0].state.velocity[i, w], now[0].state.kept_velocity[i, w]):
            return False
        if differ(now[0].state.spin[i, w], now[0].state.kept_spin[i, w]):
            return False
    return True


@wp.func
def take_velocities(s: wp.array(dtype=RopeStep), now: wp.array(dtype=RopeStep), w: int):
    """Go on from the velocities at the pose."""
    for i in range(now[0].state.velocity.shape[0]):
        s[0].state.velocity[i, w] = now[0].state.velocity[i, w]
        s[0].state.spin[i, w] = now[0].state.spin[i, w]


@wp.func
def begin_read(s: wp.array(dtype=RopeStep), now: wp.array(dtype=RopeStep), w: int):
    """Prepare a kick that is not kept, with the tensions of the last step."""
    for i in range(now[0].state.pull.shape[0]):
        s[0].state.pull[i, w] = now[0].state.pull[i, w]


@wp.func
def drive_ends(s: wp.array(dtype=RopeStep), k: int, w: int):
    """Ends that do not yield move as their bodies do at the pose, not along the chord of a step."""
    for side in range(2):
        if s[0].ropes.kind[2 * k + side] == DRIVEN:
            i = s[0].ropes.first[k] + side * s[0].state.segments[k, w]
            b = s[0].ropes.body[2 * k + side]
            s[0].work.v[i, w] = s[0].body.v[b, w] + wp.cross(s[0].body.w[b, w], s[0].work.arm[2 * k + side, w])


@wp.func
def show_ropes(s: wp.array(dtype=RopeStep), now: wp.array(dtype=RopeStep), w: int):
    """Hand the velocities that it led to to the caller; nothing moves in slots that are not in use."""
    for k in range(s[0].ropes.count):
        at = s[0].ropes.first[k]
        last = at + s[0].state.segments[k, w]
        for i in range(at, at + s[0].ropes.capacity[k] + 1):
            now[0].state.velocity[i, w] = vec3(real(0.0))
            now[0].state.spin[i, w] = vec3(real(0.0))
            if i <= last:
                now[0].state.velocity[i, w] = s[0].work.v[i, w]
            if i < last:
                now[0].state.spin[i, w] = s[0].work.w[i, w]
    for i in range(now[0].state.velocity.shape[0]):
        now[0].state.kept_velocity[i, w] = now[0].state.velocity[i, w]
        now[0].state.kept_spin[i, w] = now[0].state.spin[i, w]


@wp.kernel(module="sharnir.rope")
def rope_resume(s: wp.array(dtype=RopeStep), now: wp.array(dtype=RopeStep), first: int):
    """Velocities at the half step before the pose; where a user changed those at the pose, these, and half a kick to come."""
    w = first + wp.tid()
    if s[0].body_state.failed[w] != 0:
        return
    changed = int(0)
    for b in range(s[0].bodies.count):
        if s[0].bodies.motion[b] != DYNAMIC:
            s[0].body_state.velocity[b, w] = now[0].body_state.velocity[b, w]
        else:
            if differ(now[0].body_state.velocity[b, w], now[0].body_state.kept_velocity[b, w]):
                changed = 1
            if differ(now[0].body_state.momentum[b, w], now[0].body_state.kept_momentum[b, w]):
                changed = 1
    if changed == 1 or not ropes_untouched(now, w):
        s[0].body_state.stagger[w] = real(0.0)
        for b in range(s[0].bodies.count):
            s[0].body_state.velocity[b, w] = now[0].body_state.velocity[b, w]
            s[0].body_state.momentum[b, w] = now[0].body_state.momentum[b, w]
        take_velocities(s, now, w)


@wp.kernel(module="sharnir.rope")
def rope_read(s: wp.array(dtype=RopeStep), now: wp.array(dtype=RopeStep), first: int):
    """Bring velocities to the pose for a user to read, by half a kick with rows that do not move; it is not kept."""
    w = first + wp.tid()
    half = s[0].body_state.stagger[w]
    if s[0].body_state.failed[w] != 0 or half == real(0.0):
        return
    s[0].h[w] = s[0].settings.dt[0]
    s[0].kick[w] = half
    begin_read(s, now, w)
    take_slack(s, w)
    for b in range(s[0].bodies.count):
        predict_body(s, b, w)
        own_inertia(s, b, w)
    stiffen_bodies(s, w)
    for o in range(s[0].ropes.count):
        k = s[0].ropes.order[s[0].ropes.count - 1 - o]
        begin_rope(s, k, w, 0)
        drive_ends(s, k, w)
    factor(s, w, True)
    for k in range(s[0].ropes.count):
        missed_speeds(s, k, w, real(0.0))
    one_pass(s, w)
    for b in range(s[0].bodies.count):
        if s[0].bodies.motion[b] == DYNAMIC:
            R = s[0].body_state.rotation[b, w]
            v = s[0].body.v[b, w]
            L = s[0].body.momentum[b, w] + s[0].body.inertia[b, w] * (s[0].body.w[b, w] - s[0].body.start_w[b, w])
            now[0].body_state.acceleration[b, w] = (v - s[0].body_state.velocity[b, w]) / half
            now[0].body_state.velocity[b, w] = v
            now[0].body_state.momentum[b, w] = L
            now[0].body_state.spin[b, w] = wp.quat_rotate(R, s[0].bodies.inv_inertia[b, w] * wp.quat_rotate_inv(R, L))
            now[0].body_state.kept_velocity[b, w] = v
            now[0].body_state.kept_momentum[b, w] = L
    show_ropes(s, now, w)
