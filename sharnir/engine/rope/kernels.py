"""Steps of ropes beside another solver, a thread a world; what was changed between calls."""

import warp as wp

from sharnir.core.spatial import matrix, rotated
from sharnir.core.types import real, vec3
from sharnir.engine.guard import count_step
from sharnir.engine.rope.data import BODY, LOOP, RopeStep
from sharnir.engine.rope.ends import advance_body, end_point, end_velocity, own_inertia, tie_point
from sharnir.engine.rope.passes import (
    ACCEPTED,
    JUDGED,
    MOST_GAIN,
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
    supply,
)
from sharnir.engine.rope.predict import begin_rope, stiffen_bodies
from sharnir.engine.rope.reel import REPAID, feed, pay_out, tear
from sharnir.engine.rope.slack import take_slack
from sharnir.engine.rope.winch import follow_drums, guess_drums
from sharnir.engine.sleep import at_rest_together, fall_asleep
from sharnir.model.model import DYNAMIC

OPEN = wp.constant(real(1.0e-3))  # beside another solver: a row open by more of its length is not closed in the next step
DONE = wp.constant(1 << 24)  # more sweeps than there are


# ---- a step -----------------------------------------------------------------------------------------------------------------


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


# ---- between calls ----------------------------------------------------------------------------------------------------------


@wp.func
def differ(a: vec3, b: vec3) -> bool:
    """Whether two vectors are not the same, bit for bit."""
    return a[0] != b[0] or a[1] != b[1] or a[2] != b[2]


@wp.func
def ropes_untouched(s: wp.array(dtype=RopeStep), w: int) -> bool:
    """Whether points and elements move as the last call left them."""
    for i in range(s[0].state.velocity.shape[0]):
        if differ(s[0].state.velocity[i, w], s[0].state.kept_velocity[i, w]):
            return False
        if differ(s[0].state.spin[i, w], s[0].state.kept_spin[i, w]):
            return False
    return True
