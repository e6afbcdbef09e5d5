"""Ropes that touch, beside joints and bodies that do: all contacts in one small problem (theory: ropes that touch).

Points of contact of ropes are found as with sequential impulses (`rope.touch_find`, `rope.touch_pairs`) and obey the same law;
in a step they are solved for as those of bodies are (`touch`): the step is made with their impulses as forces from outside, the
response W of trees and ropes together at all points tells how these are to change, and so on, until nothing does. A column of W
is one more elimination of the ropes, the trees and the ports, with an impulse at one point and nothing else.

The law asks for the speed at the end of the step, u₁·n₁ ≥ 0, against the surface there. Impulses act along the mean n̄ of the
normals at the start and at the end, and at the mean of the arms: what slides around a drum then moves across n̄, and what holds it
there does no work. What overlaps at the end is taken back, and what landed is brought into touch, by displacements.

Tensions between points that hold to one body are determined by no law. So friction gives way by ε w (P − P°), ε = 10⁻³, w the
point's own response and P° its impulse in the last step: tensions stay near those of the last step, what stands does not creep,
and all that a point ever slips by it is ε w Δt times the impulse it comes to have. Gaps and
overlaps of less than 0.05 mm are closed by speeds, a tenth in a step: displacements of a rope that is taut move loads.
"""

import warp as wp

from sharnir.collision.broad import place
from sharnir.collision.data import Collision
from sharnir.core.types import real, vec3
from sharnir.engine.direct.data import Direct, Roped
from sharnir.engine.direct.energy.repair import open_gaps
from sharnir.engine.direct.energy.rope_passes import couple
from sharnir.engine.direct.energy.rope_repair import close_all, displace_all, miss_lengths
from sharnir.engine.direct.energy.rows import clear_changes
from sharnir.engine.direct.energy.touch import ENOUGH, FLOPS, LANDS, NEARLY, ROUNDS, choose, find_acting, take_impulses
from sharnir.engine.direct.energy.touch_parting import aim_points, note_parted, part_entries
from sharnir.engine.direct.energy.touch_points import (
    close_cut,
    push_link,
    rate_of,
    respond,
    row_of,
    softness_of,
    turn_link,
    work_left,
)
from sharnir.engine.direct.energy.touch_response import acts_along, find_speeds
from sharnir.engine.direct.energy.touch_strike import strike
from sharnir.engine.direct.energy.touch_sweeps import part_all, sweep_all
from sharnir.engine.direct.hung import push_links
from sharnir.engine.rope.data import RopeStep
from sharnir.engine.rope.ends import clear_ties
from sharnir.engine.rope.mixing import note_pass, recall_pass
from sharnir.engine.rope.passes import bring_ropes, ropes_outward
from sharnir.engine.rope.port_data import Ports
from sharnir.engine.rope.touch import keep_points
from sharnir.engine.rope.touch_data import MOST, OPEN, STICKS, TOUCHES, RopeTouch
from sharnir.engine.rope.touch_find import begin_touch, belt_speed, end_arm, end_foot, rope_of
from sharnir.engine.rope.touch_pairs import between, pair_gap, spread
from sharnir.laws.cone import missed, own_size, solve_cone
from sharnir.laws.contact import FRICTIONLESS, SLOP, across
from sharnir.model.model import DYNAMIC

YIELDS = wp.constant(
    real(1.0e-3)
)  # of a point's own response: how far friction gives way to a change of its impulse since the last step
SMALL = wp.constant(real(5.0e-5))  # m: gaps and overlaps up to this are closed by speeds,
FOLLOWS = wp.constant(real(0.1))  # so much of them in a step
SLOWLY = wp.constant(real(0.2))  # a round that leaves more of what was missed asks for a new response


# ---- points -----------------------------------------------------------------------------------------------------------------


@wp.func
def at_entry(
    t: wp.array(dtype=RopeTouch), c: wp.array(dtype=Collision), e: int, w: int, arm: vec3,
    points: wp.array2d(dtype=vec3), v: wp.array2d(dtype=vec3), turn: wp.array2d(dtype=vec3),
) -> vec3:  # fmt: skip
    """The velocity of a rope against what it touches, or a change of it: of its points, and of bodies."""
    if e >= t[0].base:
        return between(points, t, e - t[0].base, w)
    b = c[0].shapes.body[t[0].shape[e, w]]
    return points[e / MOST, w] - v[b, w] - wp.cross(turn[b, w], arm)


@wp.func
def end_speed(x: wp.array(dtype=Roped), e: int, w: int) -> vec3:
    """That velocity at the end of the step, a conveyor's belt included."""
    s = x[0].step
    r = x[0].rope
    t = x[0].touch
    c = x[0].collision
    u = at_entry(t, c, e, w, t[0].arm[e, w], r[0].work.v, s[0].work.acceleration, s[0].work.turning)
    return u - belt_of(t, c, e, w)


@wp.func
def belt_of(t: wp.array(dtype=RopeTouch), c: wp.array(dtype=Collision), e: int, w: int) -> vec3:
    """The velocity of a conveyor's belt at a point of contact, m/s."""
    if e >= t[0].base:
        return vec3()
    return belt_speed(c, t[0].shape[e, w], w)


@wp.func
def open_ropes(x: wp.array(dtype=Roped), w: int):
    """All points of contact that ropes may have in this step, with the impulses of the last one."""
    s = x[0].step
    r = x[0].rope
    t = x[0].touch
    c = x[0].collision
    place(c, w)  # where bodies stand at the start of this part of the step
    begin_touch(r, t, c, w)
    part = s[0].drift[w] / s[0].settings.dt[0]
    for m in range(t[0].live[w]):
        e = t[0].entry[m, w]
        t[0].first_n[e, w] = t[0].n[e, w]
        t[0].first_arm[e, w] = t[0].arm[e, w]
        u = at_entry(t, c, e, w, t[0].arm[e, w], r[0].state.velocity, s[0].state.velocity, s[0].state.spin)
        t[0].came[e, w] = u - belt_of(t, c, e, w)
        t[0].pseudo[e, w] = real(0.0)
        t[0].state[e, w] = OPEN
        t[0].impulse[e, w] = vec3()
        if t[0].start[e, w] <= SLOP:
            t[0].state[e, w] = STICKS
            t[0].impulse[e, w] = t[0].centre[e, w] * part


@wp.func
def look_at_ends(x: wp.array(dtype=Roped), w: int) -> int:
    """Gaps, normals and arms at the end of the step; points that meet in it act in it. Returns how many were not known to."""
    r = x[0].rope
    t = x[0].touch
    c = x[0].collision
    more = int(0)
    for m in range(t[0].live[w]):
        e = t[0].entry[m, w]
        if e >= t[0].base:
            pair_gap(r, t, e - t[0].base, w)
        else:
            near = end_foot(r, t, c, e, w)
            t[0].gap[e, w] = near.gap - r[0].ropes.radius[t[0].rope_of[e / MOST]]
            t[0].n[e, w] = near.n
            t[0].arm[e, w] = end_arm(r, t, c, e, w, near)
        if t[0].state[e, w] == OPEN and t[0].gap[e, w] < real(0.0):
            t[0].state[e, w] = STICKS
            more = more + 1
    return more


@wp.func
def push_normal(t: wp.array(dtype=RopeTouch), e: int, w: int) -> vec3:
    """n̄; of what came from afar the normal where it arrived."""
    n = t[0].n[e, w]
    mean = n + t[0].first_n[e, w]
    if t[0].start[e, w] > TOUCHES or wp.length_sq(mean) < real(1.0):
        return n
    return wp.normalize(mean)


@wp.func
def push_arm(t: wp.array(dtype=RopeTouch), e: int, w: int) -> vec3:
    """The mean of the arms; of what came from afar that where it arrived."""
    if t[0].start[e, w] > TOUCHES:
        return t[0].arm[e, w]
    return (t[0].arm[e, w] + t[0].first_arm[e, w]) * real(0.5)


@wp.func
def let_go(r: wp.array(dtype=RopeStep), w: int):
    """Nothing presses on ropes."""
    for i in range(r[0].work.touched.shape[0]):
        r[0].work.touched[i, w] = vec3()


@wp.func
def push_ropes(x: wp.array(dtype=Roped), w: int):
    """The impulses of all points of ropes, as forces from outside, on ropes and, added to those of contacts, on bodies."""
    s = x[0].step
    r = x[0].rope
    t = x[0].touch
    c = x[0].collision
    let_go(r, w)
    for m in range(t[0].live[w]):
        e = t[0].entry[m, w]
        if t[0].state[e, w] == OPEN:
            continue
        P = t[0].impulse[e, w]
        if e >= t[0].base:
            spread(r[0].work.touched, t, e - t[0].base, P, w)
        else:
            i = e / MOST
            b = c[0].shapes.body[t[0].shape[e, w]]
            r[0].work.touched[i, w] = r[0].work.touched[i, w] + P
            s[0].touch.push_l[b, w] = s[0].touch.push_l[b, w] - P
            s[0].touch.push_a[b, w] = s[0].touch.push_a[b, w] - wp.cross(push_arm(t, e, w), P)


# ---- the small problem ------------------------------------------------------------------------------------------------------


@wp.func
def add_entries(x: wp.array(dtype=Roped), w: int):
    """Points of ropes that act, as entries after those of bodies; what there is no room for is counted (`lost`)."""
    s = x[0].step
    t = x[0].touch
    cone = s[0].cone
    k = cone[0].count[w]
    lost = int(0)
    used = int(0)
    for m in range(t[0].live[w]):
        e = t[0].entry[m, w]
        t[0].column[e, w] = -1
        if t[0].state[e, w] == OPEN:
            continue
        if k >= cone[0].host.shape[0] or 3 * (used + 1) > t[0].columns:
            lost = lost + 1
            continue
        s[0].touch.point[k, w] = -1 - e
        cone[0].host[k, w] = -1
        cone[0].spins[k, w] = 0
        t[0].column[e, w] = k
        mu = t[0].mu[e, w]
        if mu < FRICTIONLESS:
            mu = real(0.0)
        cone[0].rubs[k, w] = int(mu > real(0.0))
        n = t[0].n[e, w]
        t1 = across(n)
        s[0].touch.line[3 * k, w] = n
        s[0].touch.line[3 * k + 1, w] = t1 * mu
        s[0].touch.line[3 * k + 2, w] = wp.cross(n, t1) * mu
        n = push_normal(t, e, w)
        t1 = wp.normalize(t1 - n * wp.dot(n, t1))
        t2 = wp.cross(n, t1)
        s[0].touch.thrust[3 * k, w] = n
        s[0].touch.thrust[3 * k + 1, w] = t1 * mu
        s[0].touch.thrust[3 * k + 2, w] = t2 * mu
        P = t[0].impulse[e, w]
        cone[0].p[3 * k, w] = wp.max(wp.dot(n, P), real(0.0))
        cone[0].p[3 * k + 1, w] = real(0.0)
        cone[0].p[3 * k + 2, w] = real(0.0)
        if mu > real(0.0):
            cone[0].p[3 * k + 1, w] = wp.dot(t1, P) / mu
            cone[0].p[3 * k + 2, w] = wp.dot(t2, P) / mu
        k = k + 1
        used = used + 1
    cone[0].count[w] = k
    t[0].most[w] = wp.max(t[0].most[w], 3 * used)
    t[0].lost[w] = wp.max(t[0].lost[w], lost)


@wp.func
def push_entry(x: wp.array(dtype=Roped), e: int, w: int, P: vec3):
    """An impulse at a point of a rope, on its points and on the body that it touches, for an elimination."""
    r = x[0].rope
    t = x[0].touch
    c = x[0].collision
    if e >= t[0].base:
        spread(r[0].work.tie_p, t, e - t[0].base, -P, w)
    else:
        i = e / MOST
        b = c[0].shapes.body[t[0].shape[e, w]]
        r[0].work.tie_p[i, w] = r[0].work.tie_p[i, w] - P
        if r[0].bodies.motion[b] == DYNAMIC:
            r[0].body.p_l[b, w] = r[0].body.p_l[b, w] + P
            r[0].body.p_a[b, w] = r[0].body.p_a[b, w] + wp.cross(push_arm(t, e, w), P)


@wp.func
def quiet(s: wp.array(dtype=Direct), r: wp.array(dtype=RopeStep), w: int):
    """Nothing acts on bodies and ropes, and nothing changes."""
    clear_changes(s, w, 0, s[0].tree.count)
    for b in range(r[0].bodies.count):
        r[0].body.p_l[b, w] = vec3()
        r[0].body.p_a[b, w] = vec3()
    for k in range(r[0].ropes.count):
        clear_ties(r, k, w, False)


@wp.func
def answer(s: wp.array(dtype=Direct), r: wp.array(dtype=RopeStep), p: wp.array(dtype=Ports), w: int):
    """Changes of the twists of bodies by what acts on links and, brought to them before, on ropes; loops and ports hold."""
    respond(s, w, 0, s[0].tree.count)
    close_cut(s, w)
    if p[0].count > 0:
        couple(s, r, p, w, False, False)


@wp.func
def felt_by(x: wp.array(dtype=Roped), e: int, w: int) -> vec3:
    """The change of velocity at a point of a rope in the last elimination."""
    s = x[0].step
    r = x[0].rope
    t = x[0].touch
    return at_entry(t, x[0].collision, e, w, t[0].arm[e, w], r[0].work.dv, s[0].work.change_l, s[0].work.change_a)


@wp.func
def felt(x: wp.array(dtype=Roped), k: int, w: int) -> vec3:
    """The change of velocity that an entry of the small problem feels."""
    s = x[0].step
    i = s[0].touch.point[k, w]
    if i >= 0:
        return rate_of(s, k, w, s[0].work.change_l, s[0].work.change_a)
    return felt_by(x, -1 - i, w)


@wp.func
def find_column(x: wp.array(dtype=Roped), k: int, a: int, w: int):
    """What one on row a of an entry does at all entries: a column of W."""
    s = x[0].step
    r = x[0].rope
    cone = s[0].cone
    quiet(s, r, w)
    i = s[0].touch.point[k, w]
    if i < 0:
        push_entry(x, -1 - i, w, s[0].touch.thrust[3 * k + a, w])
    bring_ropes(r, w)
    push_links(s, r, w)
    if i >= 0:
        if cone[0].host[k, w] >= 0:
            turn_link(s, i, w, row_of(s, k, w, a))
        else:
            push_link(s, i, w, row_of(s, k, w, a))
    answer(s, r, x[0].ports, w)
    ropes_outward(r, w)
    for m in range(cone[0].count[w]):
        u = felt(x, m, w)
        for y in range(3):
            cone[0].W[3 * m + y, 3 * k + a, w] = wp.dot(row_of(s, m, w, y), u)
    recall_pass(r, w)


@wp.func
def soften(x: wp.array(dtype=Roped), k: int, w: int):
    """How far friction at a point of a rope gives way to a change of its impulse."""
    s = x[0].step
    t = x[0].touch
    cone = s[0].cone
    e = -1 - s[0].touch.point[k, w]
    t[0].soft[e, w] = real(0.0)
    if cone[0].rubs[k, w] == 1:
        soft = YIELDS * own_size(cone, k, w)
        t[0].soft[e, w] = soft
        for q in range(3 * k + 1, 3 * k + 3):
            cone[0].W[q, q, w] = cone[0].W[q, q, w] + soft


@wp.func
def find_all_responses(x: wp.array(dtype=Roped), w: int):
    """W of all entries, those of bodies included: trees, ropes and ports answer."""
    s = x[0].step
    r = x[0].rope
    cone = s[0].cone
    note_pass(r, 0, w)
    for k in range(r[0].ropes.count):
        miss_lengths(r, k, w, real(0.0))
    for n in range(s[0].other_count):
        s[0].work.change_l[s[0].others[n], w] = vec3()
        s[0].work.change_a[s[0].others[n], w] = vec3()
    for k in range(cone[0].count[w]):
        for a in range(3):
            if acts_along(s, k, w, a):
                find_column(x, k, a, w)
            else:
                for m in range(3 * cone[0].count[w]):
                    cone[0].W[m, 3 * k + a, w] = real(0.0)
        i = s[0].touch.point[k, w]
        if i < 0:
            soften(x, k, w)
        elif cone[0].host[k, w] < 0:
            cone[0].W[3 * k, 3 * k, w] = cone[0].W[3 * k, 3 * k, w] + softness_of(s, i, w)
            for y in range(2):
                q = 3 * k + y + 1
                cone[0].W[q, q, w] = cone[0].W[q, q, w] + s[0].touch.yields[i, w][y]
    quiet(s, r, w)


@wp.func
def take_points(s: wp.array(dtype=Direct), w: int):
    """Impulses of bodies' points, as the small problem has them."""
    cone = s[0].cone
    for k in range(cone[0].count[w]):
        i = s[0].touch.point[k, w]
        if i >= 0:
            p = s[0].touch.p[i, w]
            if cone[0].host[k, w] >= 0:
                p = s[0].touch.roll[i, w]
            for a in range(3):
                cone[0].p[3 * k + a, w] = p[a]


@wp.func
def all_speeds(x: wp.array(dtype=Roped), w: int):
    """b = u − W p of all entries, at the speeds that the step led to."""
    s = x[0].step
    t = x[0].touch
    cone = s[0].cone
    part = s[0].drift[w] / s[0].settings.dt[0]
    find_speeds(s, w)
    for k in range(cone[0].count[w]):
        i = s[0].touch.point[k, w]
        if i < 0:
            e = -1 - i
            u = end_speed(x, e, w)
            for a in range(3):
                left = wp.dot(row_of(s, k, w, a), u)
                if a == 0:
                    left = left + wp.clamp(t[0].start[e, w], -SMALL, SMALL) * (real(2.0) * FOLLOWS / s[0].settings.dt[0])
                if a > 0 and cone[0].rubs[k, w] == 1:
                    last = wp.dot(s[0].touch.thrust[3 * k + a, w], t[0].centre[e, w]) / (t[0].mu[e, w] * t[0].mu[e, w])
                    left = left + t[0].soft[e, w] * (cone[0].p[3 * k + a, w] - last * part)
                for y in range(3 * cone[0].count[w]):
                    left = left - cone[0].W[3 * k + a, y, w] * cone[0].p[y, w]
                cone[0].b[3 * k + a, w] = left


@wp.func
def take_entries(x: wp.array(dtype=Roped), w: int):
    """The impulses of ropes that the small problem led to."""
    s = x[0].step
    t = x[0].touch
    cone = s[0].cone
    for k in range(cone[0].count[w]):
        i = s[0].touch.point[k, w]
        if i < 0:
            P = vec3()
            for a in range(3):
                P = P + s[0].touch.thrust[3 * k + a, w] * cone[0].p[3 * k + a, w]
            t[0].impulse[-1 - i, w] = P


@wp.func
def pass_takes(x: wp.array(dtype=Roped)) -> real:
    """The time of a pass over trees and ropes, in visits of a link."""
    s = x[0].step
    r = x[0].rope
    return real(1.25) * real(s[0].tree.count) + real(0.8) * real(r[0].work.v.shape[0])


@wp.func
def count_visits(x: wp.array(dtype=Roped), w: int, visits: real):
    """Contacts took the time of so many visits of a link: it counts as passes, as far as these are left."""
    s = x[0].step
    passes = int(wp.min(visits / pass_takes(x), real(1.0e6)))
    s[0].passes[w] = s[0].passes[w] + wp.clamp(passes, 0, wp.max(work_left(s, w), 0))


@wp.func
def change_all(x: wp.array(dtype=Roped), w: int, turn: int) -> bool:
    """After a step with the impulses of now: find better ones, of bodies and ropes; returns whether these are good enough.

    Where bodies' points are more than are solved for at once, they are swept in one round and ropes are solved for in the next.
    """
    s = x[0].step
    cone = s[0].cone
    more = find_acting(s, w) + look_at_ends(x, w)
    s[0].touch.many[w] = wp.min(choose(s, w), 1)
    swept = s[0].touch.many[w] == 1
    last = s[0].touch.residual[w]
    if swept and turn % 2 == 0:
        off = sweep_all(s, w, turn)
        s[0].touch.residual[w] = off
        return turn > 0 and off <= ENOUGH and last <= NEARLY
    if swept:
        cone[0].count[w] = 0
    add_entries(x, w)
    s[0].touch.residual[w] = real(0.0)
    if cone[0].count[w] == 0:
        return True
    take_points(s, w)
    anew = turn == 0 or more > 0 or swept
    if not anew:
        all_speeds(x, w)
        off = missed(cone, w)
        s[0].touch.residual[w] = off
        if off <= ENOUGH or (turn > 1 and off <= NEARLY and off > real(0.1) * last):
            return True
        anew = off > SLOWLY * last
    rows = real(3 * cone[0].count[w])
    if anew:
        find_all_responses(x, w)
        count_visits(x, w, rows * real(0.5) * pass_takes(x))
        all_speeds(x, w)
    struck = bool(False)
    if turn == 0:
        struck = strike(s, w)
    off = missed(cone, w)
    s[0].touch.residual[w] = off
    if off <= ENOUGH and not struck:
        return not swept
    solves = solve_cone(cone, w, real(0.5) * ENOUGH, NEARLY)
    count_visits(x, w, FLOPS * rows * rows * rows * real(solves))
    take_impulses(s, w)
    take_entries(x, w)
    return False


@wp.func
def is_over(x: wp.array(dtype=Roped), w: int, turn: int) -> bool:
    """Whether no better impulses are looked for after a round."""
    s = x[0].step
    if x[0].touch[0].live[w] + s[0].contacts.count[w] == 0 or turn == ROUNDS:
        return True
    return turn > 0 and work_left(s, w) <= 0


# ---- overlaps ---------------------------------------------------------------------------------------------------------------


@wp.func
def aim_entries(x: wp.array(dtype=Roped), w: int) -> bool:
    """What is to become of the gaps of ropes' points, into `aim`; whether anything is to be displaced.

    Of an overlap no more than the rope's radius is taken back at once.
    """
    s = x[0].step
    r = x[0].rope
    t = x[0].touch
    cone = s[0].cone
    off = bool(False)
    for k in range(cone[0].count[w]):
        i = s[0].touch.point[k, w]
        if i < 0:
            e = -1 - i
            cone[0].guess[3 * k, w] = real(0.0)
            gap = t[0].gap[e, w]
            thick = r[0].ropes.radius[rope_of(t, e, w)]
            landed = gap > SMALL and gap < thick and wp.dot(t[0].n[e, w], t[0].impulse[e, w]) > real(0.0)
            if wp.abs(gap) < SMALL:
                gap = real(0.0)
            elif gap < real(0.0):
                gap = wp.max(gap + real(0.5) * SMALL, -thick)
            cone[0].aim[k, w] = gap
            cone[0].spins[k, w] = int(landed)
            off = off or landed or gap < real(0.0)
    return off


@wp.func
def take_all_apart(x: wp.array(dtype=Roped), w: int):
    """Overlaps at the end of the step are taken back by displacements of trees and ropes."""
    s = x[0].step
    r = x[0].rope
    p = x[0].ports
    t = x[0].touch
    cone = s[0].cone
    ropes = aim_entries(x, w)
    swept = bool(False)
    bodies = bool(False)
    if s[0].touch.many[w] == 1:
        swept = part_all(s, w)
    elif s[0].contacts.count[w] > 0:
        bodies = aim_points(s, w)
    if not (ropes or swept or bodies):
        return
    for i in range(s[0].contacts.count[w]):
        if not swept:
            s[0].touch.pseudo[i, w] = real(0.0)
    if ropes or bodies:
        part_entries(s, w)
    note_pass(r, 0, w)
    for k in range(r[0].ropes.count):
        miss_lengths(r, k, w, real(0.0))
    quiet(s, r, w)
    for k in range(cone[0].count[w]):
        i = s[0].touch.point[k, w]
        if i < 0:
            push_entry(x, -1 - i, w, s[0].touch.thrust[3 * k, w] * cone[0].guess[3 * k, w])
    bring_ropes(r, w)
    push_links(s, r, w)
    for i in range(s[0].contacts.count[w]):
        if s[0].touch.acts[i, w] == 1:
            push_link(s, i, w, s[0].contacts.normal[i, w] * s[0].touch.pseudo[i, w])
    answer(s, r, p, w)
    note_parted(s, w)
    h = real(0.5) * s[0].drift[w]
    displace_all(s, r, w)
    for m in range(t[0].live[w]):
        e = t[0].entry[m, w]
        t[0].gap[e, w] = t[0].gap[e, w] + h * wp.dot(t[0].n[e, w], felt_by(x, e, w))
    open_gaps(s, w, False)
    close_all(s, r, p, w)  # what turned by that


@wp.func
def keep_contacts(x: wp.array(dtype=Roped), w: int):
    """Impulses of ropes' points, for the next step to begin from and for the caller to read."""
    s = x[0].step
    t = x[0].touch
    whole = s[0].settings.dt[0] / s[0].drift[w]
    for m in range(t[0].live[w]):
        e = t[0].entry[m, w]
        t[0].miss[e, w] = end_speed(x, e, w)
        t[0].impulse[e, w] = t[0].impulse[e, w] * whole
    keep_points(t, w)
    for m in range(t[0].live[w]):
        e = t[0].entry[m, w]
        if wp.dot(t[0].n[e, w], t[0].came[e, w]) < -LANDS:  # what stopped it is no guess of what carries it
            t[0].kept_impulse[e, w] = vec3()
