"""Contacts beside the joints of a tree, exact together (theory: contacts and trees).

A step is solved with the impulses of the contacts as forces from outside; the response of the trees at the points, W, tells how
they are to change, each by its own law (`laws.cone`); the step is solved again with these, friction and limits of the joints
exact in every round, until nothing changes. The law asks for the speed at the end of the step: u₁ ≥ 0, sliding against u₁,
holding u₁ = 0, or −e u₀ after an impact. What overlap is left is taken back by displacements, which velocities never learn of.
"""

import warp as wp

from sharnir.core.types import real, vec2, vec3
from sharnir.engine.direct.data import Direct
from sharnir.engine.direct.energy.passes import UNMET
from sharnir.engine.direct.energy.touch_points import (
    axis_of,
    belt_moment,
    count_work,
    line_of,
    moment_of,
    passing,
    relative,
    resists_turning,
    work_left,
)
from sharnir.engine.direct.energy.touch_response import find_response, find_speeds
from sharnir.engine.direct.energy.touch_strike import strike
from sharnir.engine.direct.energy.touch_sweeps import sweep_all
from sharnir.engine.direct.modified import lies
from sharnir.laws.casts import CAST, close_casts, open_casts
from sharnir.laws.cone import missed, solve_cone
from sharnir.laws.contact import FRICTIONLESS, SLOP, across, is_spent, tread
from sharnir.model.model import DYNAMIC

ROUNDS = wp.constant(20)  # in which contacts and joints are brought together
MISSED = wp.constant(real(1.0e-6))  # of the largest impulse, or m/s where points are swept: a step with more is not met
FLOPS = wp.constant(real(2.0e-3))  # visits of a link that an entry of the small problem, cubed, takes the time of
AS_BEFORE = wp.constant(real(1.0e-3))  # of the largest impulse: beside ropes the first response serves a second round up to there
STALLS = wp.constant(real(0.3))  # of what was missed: a round that leaves more is no better
STALLED = wp.constant(9)  # rounds that brought points no nearer, after which no more are made
ENOUGH = wp.constant(real(1.0e-9))  # of the largest impulse: what a point may miss
NEARLY = wp.constant(real(1.0e-6))  # and what it may where rounds bring it no nearer: on the edge between holding and sliding
LANDS = wp.constant(real(0.01))  # m/s: a point that comes in faster lands
SLIDES = wp.constant(real(1.0e-3))  # m/s: a point that moves faster slides, and has the dynamic coefficient


@wp.func
def open_points(s: wp.array(dtype=Direct), w: int):
    """Arms and laws of all points at the start of the step, impulses of the last one on the axes of today."""
    h = s[0].drift[w]
    if s[0].casts.count > 0:
        open_casts(s, w, h)
    for i in range(s[0].contacts.count[w]):
        if rests_between(s, i, w):
            s[0].touch.acts[i, w] = -1
            s[0].touch.p[i, w] = vec3(real(0.0))
            s[0].touch.roll[i, w] = vec3(real(0.0))
            s[0].touch.blow[i, w] = vec3(real(0.0))
            s[0].touch.slip[i, w] = vec3(real(0.0))
            continue
        n = s[0].contacts.normal[i, w]
        t1 = across(n)
        if wp.length_sq(s[0].contacts.along[i, w]) > real(0.0):
            t1 = s[0].contacts.along[i, w]
        s[0].touch.t1[i, w] = t1
        s[0].touch.r_a[i, w] = s[0].contacts.point[i, w] - s[0].state.position[s[0].contacts.body_a[i, w], w]
        s[0].touch.r_b[i, w] = s[0].contacts.point[i, w] - s[0].state.position[s[0].contacts.body_b[i, w], w]
        u = relative(s, i, w, s[0].state.velocity, s[0].state.spin) + s[0].contacts.surface[i, w]
        un = wp.dot(n, u)
        s[0].touch.before[i, w] = un
        mu = s[0].contacts.friction[i, w]
        P = s[0].contacts.impulse[i, w] * (h / s[0].settings.dt[0])
        slides = wp.length_sq(u - n * un) > SLIDES * SLIDES
        tyre = s[0].contacts.special[i, w] & 1 != 0
        if tyre:  # a tread that holds slips, too
            slides = is_spent(vec3(wp.dot(n, P), wp.dot(t1, P), wp.dot(wp.cross(n, t1), P)), mu)
        if mu[0] > real(0.0) and slides:
            mu = mu * (s[0].contacts.dynamic[i, w] / mu[0])
        if mu[0] < FRICTIONLESS or mu[1] < FRICTIONLESS:
            mu = vec2(real(0.0))
        s[0].touch.mu[i, w] = mu
        p = vec3(wp.max(real(0.0), wp.dot(n, P)), real(0.0), real(0.0))
        if mu[0] > real(0.0) and p[0] > real(0.0):
            p = vec3(p[0], wp.dot(t1, P) / mu[0], wp.dot(wp.cross(n, t1), P) / mu[1])
        s[0].touch.acts[i, w] = int(s[0].contacts.gap[i, w] <= SLOP)
        if s[0].touch.acts[i, w] == 0:
            p = vec3(real(0.0))
        s[0].touch.p[i, w] = p
        s[0].touch.yields[i, w] = vec2(real(0.0))
        s[0].touch.lead[i, w] = vec2(real(0.0))
        if tyre and mu[0] > real(0.0):
            for k in range(2):
                yields, lead = tyre_yields(s, i, w, k, p[k + 1] * mu[k])
                s[0].touch.yields[i, w][k] = yields * mu[k] * mu[k]
                s[0].touch.lead[i, w][k] = lead * mu[k]
        s[0].touch.blow[i, w] = vec3(real(0.0))
        s[0].touch.roll[i, w] = vec3(real(0.0))


@wp.func
def tyre_yields(s: wp.array(dtype=Direct), i: int, w: int, k: int, p: real):
    """How the tread at a point yields along one of its axes to an impulse, and by which speed it leads; p: that of the last step.

    Along its rim a raycast wheel itself yields, too.
    """
    h = s[0].drift[w]
    yields = real(0.0)
    lead = real(0.0)
    if s[0].contacts.relaxation[i, w] > real(0.0):
        fade = passing(s, i, w) / s[0].contacts.relaxation[i, w]
        yields, lead = tread(s[0].contacts.shear[i, w][k], fade, p, h, h)
    if k == 1 and s[0].contacts.special[i, w] & CAST != 0:
        belt = s[0].contacts.special[i, w] >> 8
        pull = wp.dot(wp.cross(s[0].contacts.normal[i, w], s[0].touch.t1[i, w]), s[0].contacts.belt_pull[i, w])
        yields = yields + pull * pull * s[0].casts.mobility[belt, w]
        lead = lead + pull * s[0].casts.free[belt, w]
    return yields, lead


@wp.func
def rests_between(s: wp.array(dtype=Direct), i: int, w: int) -> bool:
    """Whether both bodies of a point sleep, or are fixed: nothing is to be found out, and it keeps its impulse."""
    a = s[0].contacts.body_a[i, w]
    return lies(s, s[0].contacts.body_b[i, w], w) and (s[0].whole.motion[a] != DYNAMIC or lies(s, a, w))


@wp.func
def press(s: wp.array(dtype=Direct), body: int, w: int):
    """The tree of a body is pushed by contacts."""
    link = s[0].rows.link_of[body]
    if link >= 0:
        s[0].touch.pressed[s[0].touch.tree_first[link], w] = 1


@wp.func
def push_bodies(s: wp.array(dtype=Direct), w: int):
    """The impulses of all points, as forces on bodies from outside."""
    for b in range(s[0].own):
        s[0].touch.push_l[b, w] = vec3(real(0.0))
        s[0].touch.push_a[b, w] = vec3(real(0.0))
    for i in range(s[0].tree.count):
        s[0].touch.pressed[i, w] = 0
    for i in range(s[0].contacts.count[w]):
        p = s[0].touch.p[i, w] + s[0].touch.blow[i, w]
        if p[0] > real(0.0):
            P = axis_of(s, i, w, 0) * p[0] + axis_of(s, i, w, 1) * p[1] + axis_of(s, i, w, 2) * p[2]
            a = s[0].contacts.body_a[i, w]
            b = s[0].contacts.body_b[i, w]
            press(s, a, w)
            press(s, b, w)
            s[0].touch.push_l[a, w] = s[0].touch.push_l[a, w] - P
            s[0].touch.push_a[a, w] = s[0].touch.push_a[a, w] - wp.cross(s[0].touch.r_a[i, w], P)
            s[0].touch.push_l[b, w] = s[0].touch.push_l[b, w] + P
            s[0].touch.push_a[b, w] = s[0].touch.push_a[b, w] + wp.cross(s[0].touch.r_b[i, w], P)
            if s[0].contacts.belt_body[i, w] > 0:
                l_belt = belt_moment(s, i, w, P)
                frame = s[0].contacts.belt_frame[i, w]
                body = s[0].contacts.belt_body[i, w]
                s[0].touch.push_a[frame, w] = s[0].touch.push_a[frame, w] - l_belt
                s[0].touch.push_a[body, w] = s[0].touch.push_a[body, w] + l_belt
            l = s[0].touch.roll[i, w]
            m = moment_of(s, i, w, 0) * l[0] + moment_of(s, i, w, 1) * l[1] + moment_of(s, i, w, 2) * l[2]
            s[0].touch.push_a[a, w] = s[0].touch.push_a[a, w] - m
            s[0].touch.push_a[b, w] = s[0].touch.push_a[b, w] + m


@wp.func
def find_acting(s: wp.array(dtype=Direct), w: int) -> int:
    """Points that meet in the step act in it; returns how many were not known to."""
    more = int(0)
    for i in range(s[0].contacts.count[w]):
        if s[0].touch.acts[i, w] == 0:
            n = s[0].contacts.normal[i, w]
            u = wp.dot(n, relative(s, i, w, s[0].work.acceleration, s[0].work.turning) + s[0].contacts.surface[i, w])
            if s[0].contacts.gap[i, w] + real(0.5) * s[0].drift[w] * (u + s[0].touch.before[i, w]) < real(0.0):
                s[0].touch.acts[i, w] = 1
                more = more + 1
    return more


@wp.func
def choose(s: wp.array(dtype=Direct), w: int) -> int:
    """The entries of the small problem: points that act, and after each what resists turning; returns how many had no room."""
    c = s[0].cone
    k = int(0)
    lost = int(0)
    for i in range(s[0].contacts.count[w]):
        if s[0].touch.acts[i, w] == 1:
            turns = resists_turning(s, i, w)
            if k + int(turns) < c[0].most:
                s[0].touch.point[k, w] = i
                c[0].host[k, w] = -1
                c[0].rubs[k, w] = int(s[0].touch.mu[i, w][0] > real(0.0))
                k = k + 1
                if turns:
                    s[0].touch.point[k, w] = i
                    c[0].host[k, w] = k - 1
                    c[0].rubs[k, w] = int(s[0].contacts.rolling[i, w] > real(0.0))
                    c[0].spins[k, w] = int(s[0].contacts.torsion[i, w] > real(0.0))
                    k = k + 1
            else:
                lost = lost + 1
    c[0].count[w] = k
    for e in range(k):
        for x in range(3):
            s[0].touch.line[3 * e + x, w] = line_of(s, s[0].touch.point[e, w], w, x, c[0].host[e, w] >= 0)
    return lost


@wp.func
def take_impulses(s: wp.array(dtype=Direct), w: int):
    """The impulses that the small problem led to; but for entries of ropes."""
    for k in range(s[0].cone[0].count[w]):
        i = s[0].touch.point[k, w]
        if i < 0:
            continue
        p = vec3(s[0].cone[0].p[3 * k, w], s[0].cone[0].p[3 * k + 1, w], s[0].cone[0].p[3 * k + 2, w])
        if s[0].cone[0].host[k, w] >= 0:
            s[0].touch.roll[i, w] = p
        else:
            s[0].touch.p[i, w] = p


@wp.func
def change_impulses(s: wp.array(dtype=Direct), w: int, turn: int) -> bool:
    """After a step with the impulses of now: find better ones; returns whether these are good enough."""
    more = find_acting(s, w)
    if turn == 0 or more > 0 or s[0].touch.many[w] == 1:
        s[0].touch.many[w] = wp.min(choose(s, w), 1)
    last = s[0].touch.residual[w]
    s[0].touch.residual[w] = real(0.0)
    if s[0].cone[0].count[w] == 0:
        return True
    if s[0].touch.many[w] == 1:
        off = sweep_all(s, w, turn)
        s[0].touch.residual[w] = off
        return off <= ENOUGH
    rows = real(3 * s[0].cone[0].count[w])
    anew = bool(True)
    if turn == 0:
        s[0].touch.stalled[w] = 0
    if turn > 0 and more == 0:  # speeds alone tell what is missed: W is needed where that is too much
        find_speeds(s, w)
        off = missed(s[0].cone, w)
        s[0].touch.residual[w] = off
        if off <= ENOUGH or (turn > 1 and off <= NEARLY and off > real(0.1) * last):
            return True
        anew = turn > 1 or off > AS_BEFORE
        if turn > 1 and off > STALLS * last:
            s[0].touch.stalled[w] = s[0].touch.stalled[w] + 1
    if anew:
        find_response(s, w)
        count_work(s, w, rows * (real(4.0) + real(0.1) * rows))
    struck = bool(False)
    if turn == 0:
        struck = strike(s, w)
    off = missed(s[0].cone, w)
    s[0].touch.residual[w] = off
    if off <= ENOUGH and not struck:
        return True
    solves = solve_cone(s[0].cone, w, real(0.5) * ENOUGH, NEARLY)
    count_work(s, w, FLOPS * rows * rows * rows * real(solves))
    take_impulses(s, w)
    return False


@wp.func
def is_last(s: wp.array(dtype=Direct), w: int, turn: int) -> bool:
    """Whether no better impulses are looked for after a round."""
    if s[0].contacts.count[w] == 0 or turn == ROUNDS:
        return True
    return turn > 0 and (work_left(s, w) <= 0 or s[0].touch.stalled[w] >= STALLED)


@wp.func
def tell_missed(s: wp.array(dtype=Direct), w: int):
    """The report tells where points were not met in a part of the step."""
    if s[0].touch.told[w] == 1:
        s[0].residual[w] = wp.max(s[0].residual[w], UNMET * s[0].settings.tolerance[0])


@wp.func
def commit_points(s: wp.array(dtype=Direct), w: int):
    """Impulses of the step, for the next one to start from and for the caller to read."""
    if s[0].touch.residual[w] > MISSED:
        s[0].touch.told[w] = 1
    whole = s[0].settings.dt[0] / s[0].drift[w]
    for i in range(s[0].contacts.count[w]):
        if s[0].touch.acts[i, w] < 0:
            continue
        p = s[0].touch.p[i, w] * whole
        hard = s[0].contacts.stiffness[i, w] <= real(0.0)
        if hard and s[0].touch.before[i, w] < -LANDS:  # what stopped it is no guess of what carries it
            s[0].touch.blow[i, w] = s[0].touch.blow[i, w] + s[0].touch.p[i, w]
            p = vec3(real(0.0))
        s[0].contacts.impulse[i, w] = axis_of(s, i, w, 0) * p[0] + axis_of(s, i, w, 1) * p[1] + axis_of(s, i, w, 2) * p[2]
        p = s[0].touch.blow[i, w]
        s[0].touch.blow[i, w] = axis_of(s, i, w, 0) * p[0] + axis_of(s, i, w, 1) * p[1] + axis_of(s, i, w, 2) * p[2]
        u = relative(s, i, w, s[0].work.acceleration, s[0].work.turning) + s[0].contacts.surface[i, w]
        un = wp.dot(s[0].contacts.normal[i, w], u)
        s[0].contacts.gap[i, w] = s[0].contacts.gap[i, w] + real(0.5) * s[0].drift[w] * (un + s[0].touch.before[i, w])
        s[0].touch.slip[i, w] = u - s[0].contacts.normal[i, w] * wp.dot(s[0].contacts.normal[i, w], u)
    if s[0].casts.count > 0:
        close_casts(s, w, s[0].drift[w] / s[0].settings.dt[0], s[0].drift[w], real(0.5))
