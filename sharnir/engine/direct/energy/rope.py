"""Ropes in the step that keeps energy and momenta: joints, laws and ropes in one solve (theory: energy and momentum; ropes).

The passes of `energy` and of `rope.energy` at once. Unknowns are the changes of the velocities at the end of the step: (δv, δφ)
of bodies as in `links`, (δv, δω) of points and elements as in `rope.chain`. A rope that hangs on a link by its first end
is, eliminated towards it, p = Z V + p₀ there, V the change of its end, which moves by the arm r₁ of the end of the step while p
acts at the mean arm r̄: an inertia that is added to the link's, not quite symmetric, and a push −p₀. What ropes have done to
bodies so far is of outside to the tree's balance of momentum. Other ends, clamps and ties are ports (`rope.ports`), with the
tree's response.

The factors of ropes are symmetric, their equations not quite, so passes are mixed (`rope.mixing`), bodies and rows included.
"""

from typing import Any

import warp as wp

from sharnir.core.types import EPSILON, inline_less, real
from sharnir.engine.direct.data import Direct, Roped
from sharnir.engine.direct.energy.cables import any_struck
from sharnir.engine.direct.energy.finish import commit, report, worst_body
from sharnir.engine.direct.energy.links import AGAIN, ANEW
from sharnir.engine.direct.energy.means import place
from sharnir.engine.direct.energy.passes import STALLED, UNMET, begin_again, count_pass, open_attempt
from sharnir.engine.direct.energy.rope_contact import (
    change_all,
    is_over,
    keep_contacts,
    let_go,
    look_at_ends,
    open_ropes,
    push_ropes,
    take_all_apart,
)
from sharnir.engine.direct.energy.rope_passes import after_place, end_arms, extent, find_change, full_pass, pull_links, rope_poses
from sharnir.engine.direct.energy.rope_projection import JOINTS, fit_speeds, project
from sharnir.engine.direct.energy.rope_repair import repair, take_apart
from sharnir.engine.direct.energy.rope_touch import note_ports
from sharnir.engine.direct.energy.rope_winch import drum_axes, note_drums
from sharnir.engine.direct.energy.step import GPU_LEVEL, copy_state, end_call, forget_guess, rest, resume
from sharnir.engine.direct.energy.step import end_step as finish_step
from sharnir.engine.direct.energy.touch import ROUNDS, change_impulses, commit_points, is_last, open_points, push_bodies
from sharnir.engine.guard import count_step
from sharnir.engine.rope.copies import copy_ropes
from sharnir.engine.rope.data import RopeStep
from sharnir.engine.rope.energy import keep_impulses, keep_rope, start_rope, start_speeds, take_back_impulses
from sharnir.engine.rope.energy_bodies import (
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
    WILD,
    not_far,
    ropes_length,
)
from sharnir.engine.rope.energy_bodies import STALLED as STILL
from sharnir.engine.rope.energy_kernels import any_snaps, note_velocities
from sharnir.engine.rope.kernels import ropes_untouched, spend_pushes
from sharnir.engine.rope.mixing import mix_passes, mix_reals, note_pass, note_reals
from sharnir.engine.rope.passes import scale_pulls
from sharnir.engine.rope.port_data import Ports
from sharnir.engine.rope.reel import change_segments, pay_out, undo_reeling
from sharnir.engine.rope.slack import JUDGED, LONGER, OPEN, TRIES, all_at_once, judge, take_slack, widest_gap
from sharnir.engine.sleep import at_rest_together, fall_asleep, wake_by_caller
from sharnir.engine.substeps import SPENT, dividing, halve
from sharnir.laws.drives import set_drives

FIRST_ROUND = wp.constant(real(1.0e-6))  # of the largest speed: what a pass may change in the last of a first round with contacts
inline_less("sharnir.energy_rope", level=GPU_LEVEL, slp=False)
inline_less("sharnir.energy_rope_touch", 100, GPU_LEVEL, slp=False)


# ---- a step -----------------------------------------------------------------------------------------------------------------


@wp.func
def begin_attempt(s: wp.array(dtype=Direct), r: wp.array(dtype=RopeStep), w: int):
    """What is expected of a step."""
    open_attempt(s, w)
    for k in range(r[0].ropes.count):
        start_rope(r, k, w)
        start_speeds(r, k, w)
    rope_poses(s, r, w)


@wp.func
def enter_again(s: wp.array(dtype=Direct), w: int) -> bool:
    """Where contacts alone have changed since the last passes, go on from these with the factors there are; whether it is so."""
    if s[0].touching == 0:
        return False
    if s[0].touch.turn[w] <= 0:
        return False
    begin_again(s, w)
    return True


@wp.func
def is_touched(s: wp.array(dtype=Direct), w: int) -> bool:
    """Whether there are points of contact: a first round, before their impulses are known, is made roughly."""
    if s[0].touching == 0:
        return False
    return s[0].contacts.count[w] > 0 and s[0].touch.turn[w] == 0


@wp.func
def close_enough(r: wp.array(dtype=RopeStep), scale: real, rounding: real, rough: bool) -> real:
    """What the last pass may change of speeds, m/s."""
    enough = wp.max(r[0].settings.tolerance[0] * scale, ROUND * rounding)
    if rough:
        enough = wp.max(enough, FIRST_ROUND * scale)
    return enough


@wp.func
def in_budget(s: wp.array(dtype=Direct), r: wp.array(dtype=RopeStep), w: int) -> bool:
    """Whether the step may take more passes: of all that it may take, and of those without a further part made."""
    passes = s[0].passes[w]
    return passes < s[0].settings.iterations[2] and passes - r[0].headway[w] < s[0].settings.iterations[7]


@wp.func
def attempt(s: wp.array(dtype=Direct), r: wp.array(dtype=RopeStep), p: wp.array(dtype=Ports), w: int) -> bool:
    """Passes of a step of the length in `drift` until velocities stay; False where they do not come to that.

    Factors are made anew where laws were not as expected, where the first pass leads far, and a few times where changes do not
    fall well (`rope.energy_bodies.meet`).
    """
    again = enter_again(s, w)
    rough = is_touched(s, w)
    if not again:
        take_slack(r, w)
        begin_attempt(s, r, w)
    rounding = (ropes_length(r, w) + extent(s, w)) * (real(EPSILON) / s[0].drift[w])  # m/s, of positions
    mode = int(ANEW)
    if again:
        mode = AGAIN
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
    while made < cap and in_budget(s, r, w):
        count_pass(s, w, mode)
        gap, laws = full_pass(s, r, p, w, mode, made == 0 and not again)
        s[0].residual[w] = laws
        s[0].state.open[w] = gap / s[0].settings.per_metre[0]
        change, scale = find_change(s, r, w)
        made = made + 1
        r[0].done[w] = r[0].done[w] + 1
        enough = close_enough(r, scale, rounding, rough)
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
                after_place(s, r, w, place(s, w, False))
            since = since + 1
        before = last
        last = change
    return False


@wp.func
def free_attempt(x: wp.array(dtype=Roped), w: int) -> bool:
    """`attempt` where nothing touches."""
    return attempt(x[0].step, x[0].rope, x[0].ports, w)


@wp.func
def touch_attempt(x: wp.array(dtype=Roped), w: int) -> bool:
    """`attempt` with all contacts, in rounds as without ropes (`touch`); where ropes touch, too, theirs among them."""
    s = x[0].step
    r = x[0].rope
    p = x[0].ports
    ropes = x[0].touches == 1
    open_points(s, w)
    s[0].touch.many[w] = 0
    s[0].touch.residual[w] = real(0.0)
    if ropes:
        push_bodies(s, w)
        let_go(r, w)
        take_slack(r, w)
        begin_attempt(s, r, w)
        open_ropes(x, w)
    met = bool(True)
    for turn in range(ROUNDS + 1):
        s[0].touch.turn[w] = turn
        push_bodies(s, w)
        if ropes:
            s[0].touch.turn[w] = -1  # ropes begin anew with other pushes
            push_ropes(x, w)
        met = attempt(s, r, p, w)
        if s[0].touch.turn[w] > 0 and not met:
            s[0].touch.turn[w] = -1
            met = attempt(s, r, p, w)
        if not met:
            break
        if ropes:
            if is_over(x, w, turn):
                look_at_ends(x, w)
                break
            if change_all(x, w, turn):
                break
        else:
            if is_last(s, w, turn):
                break
            note_ports(s, r, p, w)
            if change_impulses(s, w, turn) and turn > 0:
                break
    return met


@wp.func
def close_part(s: wp.array(dtype=Direct), r: wp.array(dtype=RopeStep), p: wp.array(dtype=Ports), w: int):
    """What acted in a part that was met, exactly; and passed limits taken back in."""
    s[0].stopped[w] = 0
    end_arms(r, w)
    drum_axes(s, r, w, True)
    pull_links(s, r, w)
    report(s, w)
    if s[0].acting == 1:
        repair(s, r, p, w)


@wp.func
def keep(s: wp.array(dtype=Direct), r: wp.array(dtype=RopeStep), p: wp.array(dtype=Ports), w: int):
    """Ropes of a part that was met become the state; what is torn, inserted or removed then contradicts what was there."""
    dt = s[0].settings.dt[0]
    h = s[0].drift[w]
    scale_pulls(r, w, dt / h)
    for k in range(r[0].ropes.count):
        keep_rope(r, k, w)
    keep_impulses(r, w)
    if any_snaps(r, w):
        project(s, r, p, w, SNAPS)
    change_segments(r, w, h, dt)
    keep_impulses(r, w)


@wp.func
def start_step(x: wp.array(dtype=Roped), w: int):
    """Keep the state, to which a step that cannot be made goes back; nothing of the step is counted yet."""
    s = x[0].step
    r = x[0].rope
    safe = x[0].other
    for j in range(s[0].scene_joints):
        s[0].state.dissipated[j, w] = real(0.0)
    copy_state(s[0].state, s[0].safe, w)
    copy_ropes(r[0].state, safe[0].state, w)
    r[0].done[w] = 0
    r[0].residual[w] = real(0.0)
    keep_impulses(r, w)
    if s[0].touching == 1:
        s[0].touch.told[w] = 0
    s[0].passes[w] = 0
    s[0].pivots[w] = 0
    r[0].headway[w] = 0


@wp.func
def passes_left(x: wp.array(dtype=Roped), w: int) -> bool:
    """Whether the step may take more passes."""
    return in_budget(x[0].step, x[0].rope, w)


@wp.func
def stop_step(x: wp.array(dtype=Roped), w: int, share: real) -> int:
    """No passes are left: nothing moves in the rest of the step where that is a caller's cap; else the step is not made."""
    s = x[0].step
    if s[0].settings.iterations[3] == 1:
        s[0].drift[w] = s[0].settings.dt[0] * share
        stay(s, w)
        return 1
    go_back(x, w, SPENT - worst_body(s, w))
    return 0


@wp.func
def go_back(x: wp.array(dtype=Roped), w: int, failed: int):
    """To the state at the start of the step, the world marked."""
    s = x[0].step
    r = x[0].rope
    safe = x[0].other
    copy_state(s[0].safe, s[0].state, w)
    copy_ropes(safe[0].state, r[0].state, w)
    s[0].state.failed[w] = failed


def making(meet: Any, name: str) -> Any:
    """Velocities that fit, then the passes of a part of the step, those of `meet`; whether they met."""

    @wp.func(name=name)
    def make_part(x: wp.array(dtype=Roped), w: int, share: real, way: int) -> bool:
        s = x[0].step
        r = x[0].rope
        p = x[0].ports
        s[0].drift[w] = s[0].settings.dt[0] * share
        note_drums(s, r, w)
        for k in range(r[0].ropes.count):
            pay_out(r, k, w, s[0].drift[w])
        fit_speeds(s, r, p, w)
        met = meet(x, w)
        s[0].pivots[w] = wp.max(s[0].pivots[w], s[0].done[w])
        return met

    return make_part


def keeping(touching: bool, name: str) -> Any:
    """A part that was met becomes the state: with contacts or without."""

    @wp.func(name=name)
    def keep_part(x: wp.array(dtype=Roped), w: int, part: int) -> bool:
        s = x[0].step
        r = x[0].rope
        p = x[0].ports
        close_part(s, r, p, w)
        r[0].headway[w] = s[0].passes[w]
        if wp.static(touching):
            if x[0].touches == 1:
                take_all_apart(x, w)
            else:
                take_apart(s, r, p, w)
        commit(s, w)
        if wp.static(touching):
            commit_points(s, w)
            if x[0].touches == 1:
                keep_contacts(x, w)
        keep(s, r, p, w)
        if s[0].stopped[w] > 0:
            j = s[0].stopped[w] - 1
            s[0].state.dissipated[j, w] = s[0].state.dissipated[j, w] + project(s, r, p, w, JOINTS)
        elif s[0].cables.count > 0:
            if any_struck(s, w):
                project(s, r, p, w, JOINTS)  # a cable that becomes taut does not throw back
        return True

    return keep_part


@wp.func
def ease_step(x: wp.array(dtype=Roped), w: int, size: int, way: int):
    """After a miss: half the part, without a guess."""
    s = x[0].step
    r = x[0].rope
    undo_reeling(r, w)
    take_back_impulses(r, w)
    s[0].state.history[w] = 0
    if size == 1:
        go_back(x, w, -1 - worst_body(s, w))
    return halve(size, way)


@wp.func
def end_step(x: wp.array(dtype=Roped), w: int, parts: int, ways: int):
    """What is not finite is not taken; count the step, and the forces of one step as spent."""
    s = x[0].step
    r = x[0].rope
    if s[0].state.failed[w] == 0:
        bad = first_bad(s, r, w)
        if bad > 0:
            go_back(x, w, bad)
    finish_step(s, w, parts, ways)
    spend_pushes(r, w)


def whole(meet: Any, touching: bool, name: str) -> Any:
    """A step in halves, quarters, … where passes do not meet."""
    make, keep = making(meet, f"make_{name}"), keeping(touching, f"keep_{name}")
    return dividing(name, 1 << 16, start_step, make, keep, ease_step, end_step, may=passes_left, stop=stop_step, grows=True)


whole_step = whole(free_attempt, False, "roped_step")
touching_step = whole(touch_attempt, True, "roped_touching_step")


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


# ---- calls ------------------------------------------------------------------------------------------------------------------


def make_kernel(module: str, touching: bool = False) -> Any:
    """The kernel for scenes in which nothing touches, or for those in which bodies do."""

    one_step = touching_step if touching else whole_step

    @wp.kernel(module=module)
    def energy_rope_steps(x: wp.array(dtype=Roped), first: int, n: wp.array(dtype=wp.int32)):
        """n steps of a world; where one cannot be made, the world is marked and its state stays."""
        w = first + wp.tid()
        s = x[0].step
        r = x[0].rope
        if s[0].state.failed[w] != 0 or n[w] == 0:
            return
        if wp.static(not touching):
            wake_by_caller(s[0].rest, w)
        if at_rest_together(s[0].rest, w):
            s[0].made[w] = n[w]
            for _step in range(n[w]):
                rest(s, w)
            return
        if resume(s, w) or not ropes_untouched(r, w):
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
            if at_rest_together(s[0].rest, w):
                rest(s, w)
                continue
            if s[0].drives.count > 0:
                set_drives(s, w, s[0].settings.dt[0], s[0].state.velocity, s[0].state.spin)
            one_step(x, w)
            used = used + s[0].passes[w]
            if s[0].state.failed[w] == 0:
                count_step(s[0].tally, w, s[0].residual[w], s[0].settings.tolerance[0], s[0].parts[w])
                fall_asleep(s[0].rest, w)
        end_call(s, w)
        note_velocities(r, w)

    return energy_rope_steps


energy_rope_steps = make_kernel("sharnir.energy_rope")
TOUCHING = make_kernel("sharnir.energy_rope_touch", True)
