"""Steps of ropes that touch, beside another solver, a thread a world: `kernels`, with contacts in the passes."""

import warp as wp

from sharnir.collision.data import Collision
from sharnir.core.types import inline_less, real
from sharnir.engine.rope.data import RopeStep
from sharnir.engine.rope.kernels import (
    begin_again,
    begin_beside,
    end_sweeps,
    goes_astray,
    miss_all,
    start_beside,
    take_bodies,
    take_step,
)
from sharnir.engine.rope.passes import JUDGED, MOST_GAIN, judge_step, kinetic, missed_speeds, supply
from sharnir.engine.rope.slack import take_slack, tauten, too_long
from sharnir.engine.rope.touch import (
    all_stand,
    begin_groups,
    begin_pass,
    calm,
    factor_touch,
    go_on,
    is_moved,
    keep_touch,
    look,
    missed_touch,
    mix_touch,
    stop_at_surfaces,
    touch_pass,
)
from sharnir.engine.rope.touch_bodies import note_bodies, push_bodies
from sharnir.engine.rope.touch_data import RopeTouch
from sharnir.engine.rope.touch_find import begin_touch
from sharnir.engine.sleep import at_rest_together, fall_asleep

inline_less("sharnir.rope_touch", 100)
ROUNDS = wp.constant(30)  # passes in a launch
SHARE = wp.constant(real(0.01))  # of what is missed after the first one, where sweeps go on: enough for now
MOST_PASSES = wp.constant(300)  # in a step
IMPACT_GAIN = wp.constant(real(1.001))  # largest ratio by which a step in which something touches may raise the kinetic energy
ASTRAY = wp.constant(real(1.0))  # what rows miss, of their length, where passes lead nowhere
LOOKS = wp.constant(6)  # in a step
ROUGH = wp.constant(real(1.0e-2))  # of the largest impulse: enough to know tensions by
OPENING = wp.constant(real(1.0e-6))  # of an element's length: what a gap may be off
UNSETTLED = wp.constant(8)  # passes after which elements are looked at though points of contact change
STRETCHED = wp.constant(real(1.0e-6))  # of its length: a slack element longer by more is taut then
LEFT_OPEN = wp.constant(real(1.0e-4))  # of its length: what a row, or a slack element, may be too long by at the end of a step
SLOW = wp.constant(6)  # passes in which nothing changed over and rows were open still, after which they are mixed
LACKING = wp.constant(real(1.0e-5))  # of the largest impulse: what sliding friction may lack


@wp.func
def expect_tensions(s: wp.array(dtype=RopeStep), t: wp.array(dtype=RopeTouch), c: wp.array(dtype=Collision), w: int):
    """Begin a first step again, with the tensions of one at velocity level: a rope that turns needs to know of them."""
    for k in range(s[0].ropes.count):
        for i in range(s[0].ropes.first[k], s[0].ropes.first[k] + s[0].state.segments[k, w]):
            s[0].work.extra[i, w] = real(0.0)
    note_bodies(s, t, w)
    begin_groups(s, t, 0, w)
    look(s, t, c, w)
    begin_pass(s, t, c, w)
    for round in range(ROUNDS):
        for k in range(s[0].ropes.count):
            missed_speeds(s, k, w, real(1.0))
        if round > 0:
            missed_touch(s, t, c, w)
            settled = all_stand(t, w)
            go_on(s, t, c, w)
            _open, lacks = missed_touch(s, t, c, w)
            if settled and lacks < ROUGH:
                break
        factor_touch(s, t, c, w)
        touch_pass(s, t, c, w, round > 0)
    keep_touch(s, t, c, w)
    for b in range(s[0].bodies.count):
        s[0].body.v[b, w] = s[0].body.start_v[b, w]
        s[0].body.w[b, w] = s[0].body.start_w[b, w]
    begin_beside(s, w, 0)
    begin_touch(s, t, c, w)


@wp.kernel(module="sharnir.rope_touch")
def touch_begin(s: wp.array(dtype=RopeStep), t: wp.array(dtype=RopeTouch), c: wp.array(dtype=Collision), first: int):
    """Begin a step: where ropes go by themselves, and what they may touch there."""
    w = first + wp.tid()
    if at_rest_together(s[0].rest, w):
        return
    start_beside(s, w)
    begin_touch(s, t, c, w)
    for k in range(s[0].ropes.count):
        if s[0].state.started[k, w] == 0:
            expect_tensions(s, t, c, w)
            break


@wp.kernel(module="sharnir.rope_touch")
def touch_passes(
    s: wp.array(dtype=RopeStep), t: wp.array(dtype=RopeTouch), c: wp.array(dtype=Collision), first: int,
    swept: wp.array(dtype=wp.int32), left: wp.array(dtype=real), tolerance: wp.array(dtype=real),
):  # fmt: skip
    """Passes of the ropes, for the twists that their bodies have now, until rows and contacts are met; see `rope_pass`."""
    w = first + wp.tid()
    if s[0].done[w] >= s[0].settings.iterations[0] or s[0].body_state.failed[w] != 0 or at_rest_together(s[0].rest, w):
        return
    take_bodies(s, w)
    note_bodies(s, t, w)
    enough = s[0].settings.tolerance[0]
    length = real(1.0e30)
    for k in range(s[0].ropes.count):
        length = wp.min(length, s[0].state.length[s[0].ropes.first[k], w])
    lacking = real(LACKING)
    for _launch in range(wp.min(s[0].done[w], 2)):
        lacking = lacking * real(10.0)  # of points that press on each other in many ways, bounds of friction settle slowly
    begins = s[0].done[w] == 0
    if begins:
        t[0].spent[w] = 0
        begin_groups(s, t, wp.where(s[0].hard[w] == 2, 0, int(LOOKS)), w)
        look(s, t, c, w)
        begin_pass(s, t, c, w)
    else:
        for i in range(t[0].moved.shape[0]):
            t[0].moved[i, w] = 0
    t[0].met[w] = 0
    aim = enough
    stood = int(0)
    for round in range(ROUNDS):
        off = miss_all(s, w)
        rows = off
        first_pass = begins and round == 0
        settled = bool(False)
        if not first_pass:
            missed_touch(s, t, c, w)
            settled = all_stand(t, w)
            go_on(s, t, c, w)
            open, lacks = missed_touch(s, t, c, w)
            off = wp.max(off, wp.max(open * (enough / (OPENING * length)), lacks * (enough / lacking)))
        if round == 1 and left[w] > tolerance[0]:
            aim = wp.max(enough, SHARE * off)  # sweeps will change it again
        if s[0].hard[w] < 2:
            t[0].rows[w] = wp.max(rows, too_long(s, w))
            s[0].residual[w] = wp.max(off, t[0].rows[w])
        wrong = int(0)
        if settled and off <= real(1.0e2) * enough and s[0].judged[w] < JUDGED:
            wrong = judge_step(s, w, s[0].judged[w] < JUDGED / 2)
            s[0].judged[w] = s[0].judged[w] + wp.min(wrong, 1)
        elif not settled and s[0].hard[w] < 2 and round % UNSETTLED == UNSETTLED - 1:
            wrong = tauten(s, w, STRETCHED)
        if wrong > 0:
            t[0].stale[w] = 1
        elif settled and off <= aim:
            t[0].met[w] = int(off <= enough)
            if round == 0 and off <= enough and left[w] <= tolerance[0]:
                end_sweeps(s, w, swept)
                return
            break
        t[0].spent[w] = t[0].spent[w] + 1
        if t[0].spent[w] > MOST_PASSES or (round > 2 and rows > ASTRAY):
            push_bodies(s, t, c, w)
            end_sweeps(s, w, swept)
            return
        factor_touch(s, t, c, w)
        if wrong > 0:
            miss_all(s, w)
        touch_pass(s, t, c, w, not first_pass)
        stood = wp.where(settled and wrong == 0 and rows > real(10.0) * enough, stood + 1, 0)
        if stood > SLOW and all_stand(t, w) and s[0].hard[w] < 2:
            mix_touch(s, t, stood - SLOW - 1, w)
        elif stood > SLOW:
            stood = 0
    push_bodies(s, t, c, w)
    s[0].done[w] = s[0].done[w] + 1


@wp.kernel(module="sharnir.rope_touch")
def touch_judge(
    s: wp.array(dtype=RopeStep), t: wp.array(dtype=RopeTouch), c: wp.array(dtype=Collision), first: int,
    swept: wp.array(dtype=wp.int32),
):  # fmt: skip
    """Look at a step before it is taken; one that is begun again has its contacts anew."""
    w = first + wp.tid()
    if at_rest_together(s[0].rest, w):
        return
    most = real(MOST_GAIN)
    rest = real(1.0)
    for m in range(t[0].live[w]):
        if wp.length_sq(t[0].impulse[t[0].entry[m, w], w]) > real(0.0):
            most = real(IMPACT_GAIN)
            rest = real(0.0)
    if goes_astray(s, w, swept, most, rest, t[0].rows[w] <= LEFT_OPEN):
        begin_touch(s, t, c, w)


@wp.kernel(module="sharnir.rope_touch")
def touch_calm(s: wp.array(dtype=RopeStep), t: wp.array(dtype=RopeTouch), c: wp.array(dtype=Collision), first: int):
    """A step that was begun again at velocity level takes energy: where its passes did not come to that, or to nothing that is
    finite, ropes and what they move are stopped at surfaces instead, and the step is not met.
    """
    w = first + wp.tid()
    if s[0].hard[w] < 2 or s[0].body_state.failed[w] != 0:
        return
    most = s[0].energy[w] + supply(s, w, real(0.0))
    if kinetic(s, w) <= most or not wp.isfinite(most):  # neither is so of passes that led to no number; of forces it is told
        return
    done = s[0].done[w]
    for b in range(s[0].bodies.count):
        if is_moved(s, t, c, b, w):
            s[0].body.v[b, w] = s[0].body.start_v[b, w]
            s[0].body.w[b, w] = s[0].body.start_w[b, w]
    take_slack(s, w)
    begin_again(s, w)
    begin_touch(s, t, c, w)
    stop_at_surfaces(s, t, c, w)
    calm(s, t, c, w, most)
    s[0].done[w] = done
    t[0].met[w] = 0


@wp.kernel(module="sharnir.rope_touch")
def touch_commit(
    s: wp.array(dtype=RopeStep), t: wp.array(dtype=RopeTouch), c: wp.array(dtype=Collision), first: int,
    swept: wp.array(dtype=wp.int32), left: wp.array(dtype=real), tolerance: wp.array(dtype=real),
):  # fmt: skip
    """Take the step, and keep its contacts. One at velocity level, as impacts are, has met when its passes have."""
    w = first + wp.tid()
    again = s[0].hard[w] == 2 and t[0].met[w] == 1
    if again:
        s[0].residual[w] = real(0.0)
    if take_step(s, w, swept, left, tolerance[0]):
        keep_touch(s, t, c, w)
        if again:
            s[0].body_state.open[w] = real(1.0)  # what velocities left open is closed softly in the next step
        fall_asleep(s[0].rest, w)
