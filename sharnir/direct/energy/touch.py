"""Contacts beside the joints of a tree, exact together (theory: contacts and trees).

A step is solved with the impulses of the contacts as forces from outside; the response of the trees at the points, W, tells how
they are to change, each by its own law (`laws.cone`); the step is solved again with these, friction and limits of the joints
exact in every round, until nothing changes. The law asks for the speed at the end of the step: u₁ ≥ 0, sliding against u₁,
holding u₁ = 0, or −e u₀ after an impact. What overlap is left is taken back by displacements, which velocities never learn of.
"""

import warp as wp

from sharnir.direct.data import Direct
from sharnir.direct.energy.passes import UNMET
from sharnir.direct.energy.rows import clear_changes
from sharnir.direct.energy.touch_ease import STALLS, any_rigid, free_locks, free_response, is_rigid, locks_of, share_of, stands
from sharnir.direct.energy.touch_points import (
    BOUNCES,
    add_ports,
    axis_of,
    belt_moment,
    count_work,
    find_near,
    find_ports,
    forget_at_points,
    line_of,
    moment_of,
    passing,
    rate_of,
    relative,
    resists_turning,
    respond_at_points,
    row_of,
    softness_of,
    span_of,
    spring_speed,
    work_left,
)
from sharnir.direct.energy.touch_sweeps import sweep_all
from sharnir.direct.touched import lies
from sharnir.laws.casts import CAST, close_casts, open_casts
from sharnir.laws.cone import missed, own_size, projected, rate, solve_cone, strike_round, struck_speed
from sharnir.laws.contact import FRICTIONLESS, SLOP, across, is_spent, tread
from sharnir.model import DYNAMIC
from sharnir.tree.data import LOOSE
from sharnir.types import real, vec2, vec3

ROUNDS = wp.constant(20)  # in which contacts and joints are brought together
MISSED = wp.constant(real(1.0e-6))  # of the largest impulse, or m/s where points are swept: a step with more is not met
FLOPS = wp.constant(real(2.0e-3))  # visits of a link that an entry of the small problem, cubed, takes the time of
AS_BEFORE = wp.constant(real(1.0e-3))  # of the largest impulse: beside ropes the first response serves a second round up to there
ENOUGH = wp.constant(real(1.0e-9))  # of the largest impulse: what a point may miss
NEARLY = wp.constant(real(1.0e-6))  # and what it may where rounds bring it no nearer: on the edge between holding and sliding
LANDS = wp.constant(real(0.01))  # m/s: a point that comes in faster lands
IMPACTS = wp.constant(64)  # rounds of an impact, at most
STRUCK = wp.constant(3)  # turns of a step up to which impacts are solved for again
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

    Along its rim a cast wheel itself yields, too.
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
def push_bodies(s: wp.array(dtype=Direct), w: int):
    """The impulses of all points, as forces on bodies from outside."""
    for b in range(s[0].own):
        s[0].touch.push_l[b, w] = vec3(real(0.0))
        s[0].touch.push_a[b, w] = vec3(real(0.0))
    for i in range(s[0].contacts.count[w]):
        p = s[0].touch.p[i, w] + s[0].touch.blow[i, w]
        if p[0] > real(0.0):
            P = axis_of(s, i, w, 0) * p[0] + axis_of(s, i, w, 1) * p[1] + axis_of(s, i, w, 2) * p[2]
            a = s[0].contacts.body_a[i, w]
            b = s[0].contacts.body_b[i, w]
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
def acts_along(s: wp.array(dtype=Direct), k: int, w: int, x: int) -> bool:
    """Whether row x of an entry can carry anything."""
    if x > 0:
        return s[0].cone[0].rubs[k, w] == 1
    return s[0].cone[0].host[k, w] < 0 or s[0].cone[0].spins[k, w] == 1


@wp.func
def find_response(s: wp.array(dtype=Direct), w: int, share: real):
    """W, and b = u − W p at the speeds that the step led to; held axes yield by a share (`touch_ease`)."""
    locks = locks_of(s, w)
    if share > real(0.0) and locks > 0:
        free_locks(s, w, share)
    respond_all(s, w)
    if any_rigid(s, w):
        if locks > 0 and s[0].touch.alone == 1:
            free_locks(s, w, real(1.0))
            respond_all(s, w)
        loosen(s, w)
    find_speeds(s, w)


@wp.func
def loosen(s: wp.array(dtype=Direct), w: int):
    """Points that give way to nothing at all get a response of their own, so that they have a law."""
    c = s[0].cone
    for k in range(c[0].count[w]):
        i = s[0].touch.point[k, w]
        if i >= 0 and c[0].host[k, w] < 0:
            if is_rigid(s, i, w, own_size(c, k, w)):
                for x in range(3):
                    if acts_along(s, k, w, x):
                        c[0].W[3 * k + x, 3 * k + x, w] = c[0].W[3 * k + x, 3 * k + x, w] + free_response(s, i, w)


@wp.func
def respond_all(s: wp.array(dtype=Direct), w: int):
    """W of the small problem."""
    c = s[0].cone
    count = c[0].count[w]
    find_near(s, w)
    clear_changes(s, w, 0, s[0].tree.count)
    for n in range(s[0].other_count):
        s[0].work.change_l[s[0].others[n], w] = vec3(real(0.0))
        s[0].work.change_a[s[0].others[n], w] = vec3(real(0.0))
    tied = s[0].touch.ports.count > 0 and s[0].closures.count == 0
    if tied:
        find_ports(s, w)
    for k in range(count):
        i = s[0].touch.point[k, w]
        for x in range(3):
            if acts_along(s, k, w, x):
                respond_at_points(s, i, w, row_of(s, k, w, x), c[0].host[k, w] >= 0)
                for m in range(count):
                    u = rate_of(s, m, w, s[0].work.change_l, s[0].work.change_a)
                    for y in range(3):
                        c[0].W[3 * m + y, 3 * k + x, w] = wp.dot(row_of(s, m, w, y), u)
                if tied:
                    add_ports(s, w, 3 * k + x)
                forget_at_points(s, i, w)
            else:
                for m in range(3 * count):
                    c[0].W[m, 3 * k + x, w] = real(0.0)
    for k in range(count):
        i = s[0].touch.point[k, w]
        p = s[0].touch.p[i, w]
        if c[0].host[k, w] >= 0:
            p = s[0].touch.roll[i, w]
        for x in range(3):
            c[0].p[3 * k + x, w] = p[x]
        if c[0].host[k, w] < 0:
            c[0].W[3 * k, 3 * k, w] = c[0].W[3 * k, 3 * k, w] + softness_of(s, i, w)
            for x in range(2):
                c[0].W[3 * k + x + 1, 3 * k + x + 1, w] = c[0].W[3 * k + x + 1, 3 * k + x + 1, w] + s[0].touch.yields[i, w][x]


@wp.func
def leaving(s: wp.array(dtype=Direct), i: int, w: int, free: real) -> real:
    """The normal speed at the end of the step of a point that bounces in it, m/s; `free`: if it did not.

    It has e² of the energy that it has at the surface, at the place χ + ½Δt (u₀ + u₁) that the step leads to:
    u₁² + 2a (χ + ½Δt (u₀ + u₁)) = e² (u₀² + 2aχ), with a the acceleration towards the surface.
    """
    e = s[0].contacts.restitution[i, w]
    h = s[0].drift[w]
    before = s[0].touch.before[i, w]
    a = wp.max(real(0.0), (before - free) / h)
    gap = wp.max(real(0.0), s[0].contacts.gap[i, w])
    half = real(0.5) * a * h
    room = half * half - real(2.0) * (a * gap + half * before) + e * e * (before * before + real(2.0) * a * gap)
    return wp.max(real(0.0), wp.sqrt(wp.max(real(0.0), room)) - half)


@wp.func
def strike(s: wp.array(dtype=Direct), w: int) -> bool:
    """Impacts, in rounds: each for the points that still approach, so that a blow runs through a row of bodies.

    Returns whether there were any.
    """
    c = s[0].cone
    struck = bool(False)
    for k in range(c[0].count[w]):
        i = s[0].touch.point[k, w]
        if i >= 0:
            struck = struck or (s[0].touch.before[i, w] < -BOUNCES and s[0].contacts.restitution[i, w] > real(0.0))
    if not struck:
        return False
    for k in range(c[0].count[w]):
        if s[0].touch.point[k, w] < 0:  # ropes do not bounce
            for x in range(3):
                c[0].best[3 * k + x, w] = real(0.0)
                c[0].blow[3 * k + x, w] = real(0.0)
                c[0].guess[3 * k + x, w] = real(0.0)
            continue
        start = rate_of(s, k, w, s[0].state.velocity, s[0].state.spin)
        if c[0].host[k, w] < 0:
            start = start + s[0].contacts.surface[s[0].touch.point[k, w], w]
        for x in range(3):
            c[0].best[3 * k + x, w] = wp.dot(row_of(s, k, w, x), start)
            c[0].blow[3 * k + x, w] = real(0.0)
            c[0].guess[3 * k + x, w] = real(0.0)
    for n in range(IMPACTS):
        meets = int(0)
        for k in range(c[0].count[w]):
            i = s[0].touch.point[k, w]
            c[0].aim[k, w] = real(1.0e30)
            for x in range(3):
                c[0].rhs[3 * k + x, w] = real(0.0)
            if c[0].host[k, w] >= 0 or i < 0:
                continue
            u = struck_speed(c, 3 * k, w)
            leaves = -s[0].contacts.restitution[i, w] * u
            if n == 0:  # forces act on it for the rest of the step; not so what others pushed before, and may not after the blow
                free = wp.max(rate(c, 3 * k, w), c[0].b[3 * k, w])
                c[0].rhs[3 * k, w] = wp.max(u - free, real(0.0))
                leaves = leaving(s, i, w, free) - wp.min(free - u, real(0.0))
            if u < -BOUNCES:
                c[0].aim[k, w] = leaves
                meets = meets + 1
        if meets == 0:
            break
        strike_round(c, w, real(1.0e-12))
    for k in range(c[0].count[w]):
        if c[0].host[k, w] >= 0 or s[0].touch.point[k, w] < 0:
            continue
        s[0].touch.blow[s[0].touch.point[k, w], w] = vec3(c[0].blow[3 * k, w], c[0].blow[3 * k + 1, w], c[0].blow[3 * k + 2, w])
    for r in range(3 * c[0].count[w]):
        for x in range(3 * c[0].count[w]):
            c[0].b[r, w] = c[0].b[r, w] + c[0].W[r, x, w] * c[0].blow[x, w]
    return True


@wp.func
def strikes_again(s: wp.array(dtype=Direct), w: int, turn: int) -> bool:
    """Whether there were impacts that met with other axes held than now."""
    return turn <= STRUCK and s[0].touch.alone == 1 and s[0].touch.locks[w] >= 0 and s[0].touch.locks[w] != locks_of(s, w)


@wp.func
def strike_again(s: wp.array(dtype=Direct), w: int, turn: int) -> bool:
    """Impacts at the first round; and again where these broke loose what was held, or stopped it. Whether there were any.

    The last time it is as if nothing were held: a blow that finds more that yields than it was made for would bring energy.
    """
    if turn == 0:
        struck = strike(s, w)
        s[0].touch.locks[w] = wp.where(struck, locks_of(s, w), -1)
        return struck
    if not strikes_again(s, w, turn):
        return False
    c = s[0].cone
    s[0].touch.locks[w] = locks_of(s, w)
    if turn == STRUCK:
        find_response(s, w, real(1.0))
    for k in range(c[0].count[w]):
        blow = s[0].touch.blow[s[0].touch.point[k, w], w]
        for x in range(3):
            c[0].rhs[3 * k + x, w] = blow[x] * real(int(c[0].host[k, w] < 0))
    for r in range(3 * c[0].count[w]):
        for x in range(3 * c[0].count[w]):
            c[0].b[r, w] = c[0].b[r, w] - c[0].W[r, x, w] * c[0].rhs[x, w]
    return strike(s, w)


@wp.func
def end_rate(s: wp.array(dtype=Direct), k: int, w: int) -> vec3:
    """The velocity, or spin, that an entry feels at the end of the step; none of bodies that friction stopped."""
    i = s[0].touch.point[k, w]
    u = rate_of(s, k, w, s[0].work.acceleration, s[0].work.turning)
    if s[0].cone[0].host[k, w] >= 0:
        return u
    a = s[0].contacts.body_a[i, w]
    b = s[0].contacts.body_b[i, w]
    if stands(s, b, w):
        u = u - s[0].work.acceleration[b, w] - wp.cross(s[0].work.turning[b, w], s[0].touch.r_b[i, w])
    if stands(s, a, w):
        u = u + s[0].work.acceleration[a, w] + wp.cross(s[0].work.turning[a, w], s[0].touch.r_a[i, w])
    return u + s[0].contacts.surface[i, w]


@wp.func
def find_speeds(s: wp.array(dtype=Direct), w: int):
    """b of the small problem, from what the step with the impulses of now led to; but for entries of ropes."""
    c = s[0].cone
    for k in range(c[0].count[w]):
        if s[0].touch.point[k, w] < 0:
            continue
        u = end_rate(s, k, w)
        for x in range(3):
            r = 3 * k + x
            left = wp.dot(row_of(s, k, w, x), u)
            for y in range(3 * c[0].count[w]):
                left = left - c[0].W[r, y, w] * c[0].p[y, w]
            if x == 0 and c[0].host[k, w] < 0:  # a soft point is pushed by its spring
                i = s[0].touch.point[k, w]
                left = left + spring_speed(s, i, w) + softness_of(s, i, w) * c[0].p[r, w]
            elif c[0].host[k, w] < 0:
                i = s[0].touch.point[k, w]
                left = left + s[0].touch.lead[i, w][x - 1] + s[0].touch.yields[i, w][x - 1] * c[0].p[r, w]
            c[0].b[r, w] = left


@wp.func
def tree_mass(s: wp.array(dtype=Direct), i: int, w: int) -> real:
    """Of the lighter tree that floats, of a point's two, kg: what the point gives way by is no less than its inverse.

    1e30 where none floats, and where rows beside the trees may hold them.
    """
    least = real(1.0e30)
    if s[0].closures.count > 0:
        return least
    for side in range(2):
        start, end = span_of(s, i, w, side)
        if end > start and s[0].work.kind[start, w] == LOOSE:
            if lies(s, s[0].half_of[s[0].tree.body[start]], w):
                continue
            mass = real(0.0)
            for n in range(start, end):
                mass = mass + s[0].tree.mass[n, w]
            least = wp.min(least, mass)
    return least


@wp.func
def meets_already(s: wp.array(dtype=Direct), w: int) -> bool:
    """Whether the impulses of the last step are those of this one: then no response is asked for.

    What each point misses, as `missed` tells it, with a bound of its own response in its place.
    """
    c = s[0].cone
    most = real(0.0)
    largest = real(1.0e-300)
    for k in range(c[0].count[w]):
        i = s[0].touch.point[k, w]
        if c[0].host[k, w] >= 0 or s[0].touch.before[i, w] < -LANDS:
            return False
        p = s[0].touch.p[i, w]
        mu = s[0].touch.mu[i, w]
        yields = s[0].touch.yields[i, w]
        u = relative(s, i, w, s[0].work.acceleration, s[0].work.turning) + s[0].contacts.surface[i, w]
        soft = softness_of(s, i, w)
        response = real(1.0) / tree_mass(s, i, w)
        if mu[0] > real(0.0):
            response = (response * (real(1.0) + wp.dot(mu, mu)) + soft + yields[0] + yields[1]) / real(3.0)
        else:
            response = response + soft
        q = vec3(p[0] - (wp.dot(axis_of(s, i, w, 0), u) + spring_speed(s, i, w) + soft * p[0]) / response, real(0.0), real(0.0))
        for x in range(2):
            slip = wp.dot(axis_of(s, i, w, x + 1), u) + s[0].touch.lead[i, w][x] + yields[x] * p[x + 1]
            q[x + 1] = p[x + 1] - slip / response
        most = wp.max(most, wp.length(p - projected(q)))
        largest = wp.max(largest, p[0])
    s[0].touch.residual[w] = most / largest
    return most <= ENOUGH * largest


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
    if turn == 0 and s[0].touch.alone == 1 and meets_already(s, w):
        s[0].touch.known[w] = 0
        return True
    s[0].touch.known[w] = 1
    rows = real(3 * s[0].cone[0].count[w])
    anew = bool(True)
    if turn == 0:
        s[0].touch.stalled[w] = 0
    if turn > 0 and more == 0:  # speeds alone tell what is missed: W is needed where that is too much
        find_speeds(s, w)
        off = missed(s[0].cone, w)
        s[0].touch.residual[w] = off
        if (off <= ENOUGH or (turn > 1 and off <= NEARLY and off > real(0.1) * last)) and not strikes_again(s, w, turn):
            return True
        anew = turn > 1 or off > AS_BEFORE or s[0].touch.alone == 1
        if turn > 1 and off > STALLS * last:
            s[0].touch.stalled[w] = s[0].touch.stalled[w] + 1
    if anew:
        find_response(s, w, share_of(s, w))
        count_work(s, w, rows * (real(4.0) + real(0.1) * rows))
    struck = strike_again(s, w, turn)
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
    return turn > 0 and work_left(s, w) <= 0


@wp.func
def tell_missed(s: wp.array(dtype=Direct), w: int):
    """The report tells where points are not met."""
    if s[0].touch.residual[w] > MISSED:
        s[0].residual[w] = wp.max(s[0].residual[w], UNMET * s[0].settings.tolerance[0])


@wp.func
def commit_points(s: wp.array(dtype=Direct), w: int):
    """Impulses of the step, for the next one to start from and for the caller to read."""
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
