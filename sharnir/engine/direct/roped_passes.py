"""Passes of a step of trees on which ropes hang: ropes eliminated towards links, and following them; which elements are slack."""

import warp as wp

from sharnir.core.spatial import worse
from sharnir.core.types import EPSILON, real
from sharnir.engine.direct.roped_data import (
    AT_COM_MEAN,
    AT_G,
    AT_U,
    HUNG,
    RopedTree,
    clamp_moment,
    clear_hung,
    eliminate_ropes,
    end_com,
    end_poses,
    follow_ropes,
    hang_inertia,
    lack,
    mean_com,
    start_bodies,
)
from sharnir.engine.direct.roped_holds import couple_rows, first_link, hang_hold, report_hold
from sharnir.engine.direct.roped_touch import (
    ask_contacts,
    begin_contacts,
    judge_friction,
    look_at_ends,
    press_links,
    press_points,
    touch_rows,
)
from sharnir.engine.direct.roped_winch import hang_winch, note_drums, note_winches
from sharnir.engine.rope.data import BODY, RopeStep
from sharnir.engine.rope.energy import (
    mean_arms,
    rope_misses,
    start_rope,
    start_speeds,
    turns_far,
)
from sharnir.engine.rope.energy_bodies import (
    CURBED,
    ROUGH,
    ROUGHLY,
    ROUND,
    STUCK,
    WILD,
    ropes_length,
)
from sharnir.engine.rope.slack import JUDGED, LONGER, OPEN, TRIES, all_at_once, judge, take_slack, widest_gap
from sharnir.engine.rope.terms import skew
from sharnir.engine.tree.runtime import recall_triple

GO_ON, ANEW, GIVE_UP = (wp.constant(k) for k in range(3))  # passes go on, begin anew, or do not converge
STALLED, LONGEST = wp.constant(4), wp.constant(20)  # stalls, and passes, after which passes do not converge,
MORE = wp.constant(real(8.0))  # unless so many more will do
TOUCHING = wp.constant(real(1.0e-10))  # of the speeds: what passes of ropes that touch may leave,
EXACT = wp.constant(real(1.0e-14))  # and of the speed that pulls would give to points by themselves
FINE = wp.constant(real(1.0e-6))  # relative to the speeds: a change from which on elements are judged in every pass,
NEAR = wp.constant(real(100.0 if EPSILON > 1.0e-10 else 0.0))  # or in single precision this, times what passes may leave: one
# that leaves more may be the last, but none without it
STRICTER = wp.constant(real(100.0 if EPSILON > 1.0e-10 else 1.0))  # in single precision passes that do not get nearer are
# rounding a few times above what they may leave, not hundreds of times, as of links
LEFT = wp.constant(real(1.0 if EPSILON > 1.0e-10 else ROUND))  # multiple of what rounding of positions does to a speed


@wp.func
def roped_begin(x: wp.array(dtype=RopedTree), w: int):
    """What is expected of a part of the step, or once more, after a verdict on its passes."""
    s = x[0].rope
    start_bodies(x, w)
    note_drums(s, w)
    if x[0].verdict[w] != ANEW:
        take_slack(s, w)
        x[0].judged[w] = 0
        x[0].tries[w] = TRIES
        x[0].fewest[w] = 1 << 30
        x[0].all[w] = 1
        x[0].stuck[w] = 0
    for k in range(s[0].ropes.count):
        start_rope(s, k, w)
        start_speeds(s, k, w)
    if x[0].touches == 1:
        begin_contacts(x, w)
    x[0].stalls[w] = 0
    x[0].last[w] = real(0.0)
    x[0].again[w] = 0


@wp.func
def roped_inward(x: wp.array(dtype=RopedTree), w: int):
    """What ropes miss, eliminated towards the links, and rows of their last ends."""
    s = x[0].rope
    anew = x[0].again[w] == 0
    end_poses(x, w)
    mean_arms(s, w)
    rope_misses(s, w, int(anew))
    if x[0].touches == 1:
        look_at_ends(x, w)
        press_points(x, w)
    eliminate_ropes(x, w, anew, real(0.0))
    clear_hung(x, w, wp.where(anew, HUNG, 6))
    for k in range(s[0].ropes.count):
        if s[0].ropes.kind[2 * k] == BODY:
            hang_first(x, k, w, anew)
        hang_winch(x, k, w)
    for hold in range(x[0].holds):
        hang_hold(x, hold, w, anew)
    if anew:
        couple_rows(x, w, False)
    if x[0].touches == 1:
        press_links(x, w)
        touch_rows(x, w, anew, False)
        ask_contacts(x, w)
    note_winches(x, w)


@wp.func
def hang_first(x: wp.array(dtype=RopedTree), k: int, w: int, anew: bool):
    """A rope on the link of its first end."""
    s = x[0].rope
    i = x[0].link_of[s[0].ropes.body[2 * k]]
    scale = real(0.25) * s[0].h[w]
    by = real(0.5) / s[0].work.weight[k, w]
    mean = mean_com(x, i, w) + s[0].work.arm[2 * k, w]
    end = end_com(x, i, w) + s[0].work.end_arm[2 * k, w]
    pull = s[0].state.end_force[2 * k, w] * scale
    f = pull + s[0].work.p_l[k, w] * scale
    lack(x, i, w, f, wp.cross(mean, f) + (clamp_moment(s, k, w) + s[0].work.p_a[k, w]) * scale)
    if anew:
        hang_inertia(x, k, i, w, by, mean, end, skew(pull) * skew(end))


@wp.func
def roped_follow(x: wp.array(dtype=RopedTree), w: int, made: int, changed: int) -> real:
    """Ropes follow the links; returns by how much they changed, 1 (`STRICTER`) being as much as may be, 0 below.

    Elements that were not slack or taut as they were taken to be change over (`wrong`), and it is seen whether passes converge
    (`verdict`), of which `made` were made before this one; `changed`: laws that did something else in it than expected.
    """
    t = x[0].tree
    s = x[0].rope
    h = s[0].h[w]
    per = real(2.0) / h
    scale = wp.length(s[0].settings.gravity[w]) * h
    far = real(0.0)
    for n in range(x[0].held):
        i = x[0].held_link[n]
        b = x[0].held_body[n]
        far = wp.max(far, wp.length(s[0].body.x[b, w]))
        if i >= 0:
            g = recall_triple(t, i, AT_G, w)
            was = x[0].mean_a[n, w]
            more = g - was
            moved = recall_triple(t, i, AT_U, w) + wp.cross(g, recall_triple(t, i, AT_COM_MEAN, w)) - x[0].mean_l[n, w]
            s[0].body.dv[b, w] = moved * per
            s[0].body.dw[b, w] = (more + wp.cross(was, more)) * (per / (real(1.0) + wp.dot(was, was)))
            scale = wp.max(scale, wp.length(s[0].body.v[b, w]))
    follow_ropes(x, w, real(4.0) / h)
    change = real(0.0)
    for k in range(s[0].ropes.count):
        change = worse(change, s[0].work.change[k, w])
        scale = wp.max(scale, s[0].work.speed[k, w])
    rounding = (ropes_length(s, w) + far) * (real(EPSILON) / h)
    enough = wp.max(s[0].settings.tolerance[0] * scale, LEFT * rounding)
    if x[0].touches == 1:
        enough = wp.max(enough, wp.max(TOUCHING * scale, EXACT * hardest_pull(s, w)))
    judge_passes(x, w, change, scale, enough, made, changed)
    if x[0].touches == 1 and change <= wp.max(FINE * scale, enough):
        x[0].wrong[w] = x[0].wrong[w] + judge_friction(x, w)
    x[0].last[w] = change
    if change <= enough:
        return real(0.0)
    return change / enough * STRICTER


@wp.func
def hardest_pull(s: wp.array(dtype=RopeStep), w: int) -> real:
    """The largest speed that pulls of the step would give to points by themselves."""
    most = real(0.0)
    for k in range(s[0].ropes.count):
        first = s[0].ropes.first[k]
        for i in range(first, first + s[0].state.segments[k, w]):
            most = wp.max(most, wp.length(s[0].state.pull[i, w]) / s[0].work.mass[i, w])
    return most


@wp.func
def judge_passes(x: wp.array(dtype=RopedTree), w: int, change: real, scale: real, enough: real, made: int, changed: int):
    """Whether passes converge; and which elements are slack, a few times while changes are rough, at last in every pass."""
    x[0].wrong[w] = 0
    x[0].verdict[w] = GO_ON
    if not (wp.isfinite(change) and wp.isfinite(scale)):
        x[0].verdict[w] = GIVE_UP
        return
    if made > 2 and changed == 0 and change > CURBED * x[0].last[w] and change > enough:
        x[0].stalls[w] = x[0].stalls[w] + 1
    far = bool(made >= LONGEST)
    if far and change < CURBED * x[0].last[w]:  # unless a few more will do
        far = change * wp.pow(change / x[0].last[w], MORE) > enough
    parts = x[0].stalls[w] > STALLED or far or change >= WILD * scale + enough
    if parts or change <= wp.max(FINE * scale, NEAR * enough) or (change <= ROUGH * scale and x[0].judged[w] < ROUGHLY):
        off = real(0.0)
        if not parts:
            off = change
            if change < x[0].last[w]:
                off = change * (change / x[0].last[w])
        judge_elements(x, w, scale, off)
        if parts:
            x[0].stuck[w] = x[0].stuck[w] + 1
            x[0].verdict[w] = ANEW
            if x[0].wrong[w] == 0 or x[0].stuck[w] > STUCK:
                x[0].verdict[w] = GIVE_UP
        if x[0].judged[w] > JUDGED:
            x[0].verdict[w] = GIVE_UP


@wp.func
def judge_elements(x: wp.array(dtype=RopedTree), w: int, scale: real, off: real):
    """Elements that are not slack or taut as they were taken to be change over, all of them or one."""
    s = x[0].rope
    end_poses(x, w)
    wrong = judge(s, w, scale, off, LONGER, x[0].all[w] == 1)
    x[0].wrong[w] = wrong
    if wrong > 0:
        all, fewest, tries = all_at_once(wrong, x[0].fewest[w], x[0].tries[w])
        x[0].all[w] = int(all)
        x[0].fewest[w] = fewest
        x[0].tries[w] = tries
        x[0].stalls[w] = 0
        x[0].judged[w] = x[0].judged[w] + 1


@wp.func
def roped_look(x: wp.array(dtype=RopedTree), w: int) -> int:
    """Ropes where passes left them; 1 where these met on what is no step."""
    s = x[0].rope
    end_poses(x, w)
    mean_arms(s, w)
    note_winches(x, w)
    if not widest_gap(s, w) <= OPEN:
        return 1
    for k in range(s[0].ropes.count):
        if turns_far(s, k, w):
            return 1
    return 0


@wp.func
def roped_report(x: wp.array(dtype=RopedTree), w: int):
    """What links gave to their ropes."""
    s = x[0].rope
    scale = real(0.25) * s[0].h[w]
    clear_hung(x, w, HUNG)
    for k in range(s[0].ropes.count):
        i = first_link(x, k)
        if i >= 0:
            f = s[0].state.end_force[2 * k, w] * scale
            lack(x, i, w, f, wp.cross(mean_com(x, i, w) + s[0].work.arm[2 * k, w], f) + clamp_moment(s, k, w) * scale)
    for hold in range(x[0].holds):
        report_hold(x, hold, w)
    if x[0].touches == 1:
        press_links(x, w)
