"""Contacts beside the joints of a tree, exact together (theory: contacts and trees).

A step is solved with the impulses of the contacts as forces from outside; the response of the trees at the points, W, tells how
they are to change, each by its own law (`laws.cone`); the step is solved again with these, friction and limits of the joints
exact in every round, until nothing changes. The law asks for the speed at the end of the step: u₁ ≥ 0, sliding against u₁,
holding u₁ = 0, or −e u₀ after an impact. What overlap is left is taken back by displacements, which velocities never learn of.
"""

import warp as wp

from sharnir.direct.data import Direct
from sharnir.direct.energy.links import follow_some, hand_pushes
from sharnir.direct.energy.passes import attempt
from sharnir.direct.energy.repair import displace
from sharnir.direct.energy.rows import clear_changes, close_rows, keep_changes
from sharnir.laws.cone import missed, solve_cone, strike_round, struck_speed
from sharnir.laws.contact import FRICTIONLESS, SLOP, across, approach, meet_point, softness, tangent_inverse
from sharnir.types import real, vec2, vec3, vec4, vec6

ROUNDS = wp.constant(12)  # in which contacts and joints are brought together
ENOUGH = wp.constant(real(1.0e-9))  # of the largest impulse: what a point may miss
IMPACTS = wp.constant(64)  # rounds of an impact, at most
SWEEPS = wp.constant(60)  # over points that are too many to be solved for at once
MET = wp.constant(real(1.0e-9))  # m/s: what a sweep may change of a point that is met
BOUNCES = wp.constant(real(0.05))  # m/s: slower impacts do not bounce
SLIDES = wp.constant(real(1.0e-3))  # m/s: a point that moves faster slides, and has the dynamic coefficient
PARTED = wp.constant(40)  # sweeps over the overlaps


@wp.func
def relative(s: wp.array(dtype=Direct), i: int, w: int, v: wp.array2d(dtype=vec3), turn: wp.array2d(dtype=vec3)) -> vec3:
    """Velocity of b's point relative to a's; world axes."""
    a = s[0].contacts.body_a[i, w]
    b = s[0].contacts.body_b[i, w]
    u = v[b, w] + wp.cross(turn[b, w], s[0].touch.r_b[i, w])
    return u - v[a, w] - wp.cross(turn[a, w], s[0].touch.r_a[i, w])


@wp.func
def axis_of(s: wp.array(dtype=Direct), i: int, w: int, x: int) -> vec3:
    """Row x of a point: along the normal, or along the surfaces, by its coefficient of friction."""
    n = s[0].contacts.normal[i, w]
    if x == 0:
        return n
    t1 = s[0].touch.t1[i, w]
    mu = s[0].touch.mu[i, w]
    if x == 1:
        return t1 * mu[0]
    return wp.cross(n, t1) * mu[1]


@wp.func
def moment_of(s: wp.array(dtype=Direct), i: int, w: int, x: int) -> vec3:
    """Row x of what resists turning at a point: about the normal, or across it, by its coefficient."""
    n = s[0].contacts.normal[i, w]
    if x == 0:
        return n * s[0].contacts.torsion[i, w]
    t1 = s[0].touch.t1[i, w]
    if x == 1:
        return t1 * s[0].contacts.rolling[i, w]
    return wp.cross(n, t1) * s[0].contacts.rolling[i, w]


@wp.func
def row_of(s: wp.array(dtype=Direct), k: int, w: int, x: int) -> vec3:
    """Row x of an entry of the small problem."""
    i = s[0].touch.point[k, w]
    if s[0].cone[0].host[k, w] >= 0:
        return moment_of(s, i, w, x)
    return axis_of(s, i, w, x)


@wp.func
def rate_of(s: wp.array(dtype=Direct), k: int, w: int, v: wp.array2d(dtype=vec3), turn: wp.array2d(dtype=vec3)) -> vec3:
    """The velocity, or spin, that an entry of the small problem feels."""
    i = s[0].touch.point[k, w]
    if s[0].cone[0].host[k, w] >= 0:
        return turn[s[0].contacts.body_b[i, w], w] - turn[s[0].contacts.body_a[i, w], w]
    return relative(s, i, w, v, turn)


@wp.func
def open_points(s: wp.array(dtype=Direct), w: int):
    """Arms and laws of all points at the start of the step, impulses of the last one on the axes of today."""
    h = s[0].drift[w]
    for i in range(s[0].contacts.count[w]):
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
        if mu[0] > real(0.0) and wp.length_sq(u - n * un) > SLIDES * SLIDES:
            mu = mu * (s[0].contacts.dynamic[i, w] / mu[0])
        if mu[0] < FRICTIONLESS or mu[1] < FRICTIONLESS:
            mu = vec2(real(0.0))
        s[0].touch.mu[i, w] = mu
        P = s[0].contacts.impulse[i, w] * (h / s[0].settings.dt[0])
        p = vec3(wp.max(real(0.0), wp.dot(n, P)), real(0.0), real(0.0))
        if mu[0] > real(0.0) and p[0] > real(0.0):
            p = vec3(p[0], wp.dot(t1, P) / mu[0], wp.dot(wp.cross(n, t1), P) / mu[1])
        s[0].touch.acts[i, w] = int(s[0].contacts.gap[i, w] <= SLOP)
        if s[0].touch.acts[i, w] == 0:
            p = vec3(real(0.0))
        s[0].touch.p[i, w] = p
        s[0].touch.blow[i, w] = vec3(real(0.0))
        s[0].touch.roll[i, w] = vec3(real(0.0))


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
def turn_link(s: wp.array(dtype=Direct), i: int, w: int, l: vec3):
    """A moment at a point, on the links of its two bodies."""
    link = s[0].rows.link_of[s[0].contacts.body_b[i, w]]
    if link >= 0:
        s[0].work.Q_a[link, w] = s[0].work.Q_a[link, w] + l
    link = s[0].rows.link_of[s[0].contacts.body_a[i, w]]
    if link >= 0:
        s[0].work.Q_a[link, w] = s[0].work.Q_a[link, w] - l


@wp.func
def push_link(s: wp.array(dtype=Direct), i: int, w: int, P: vec3):
    """An impulse at a point, on the links of its two bodies."""
    link = s[0].rows.link_of[s[0].contacts.body_b[i, w]]
    if link >= 0:
        s[0].work.Q_l[link, w] = s[0].work.Q_l[link, w] + P
        s[0].work.Q_a[link, w] = s[0].work.Q_a[link, w] + wp.cross(s[0].touch.r_b[i, w], P)
    link = s[0].rows.link_of[s[0].contacts.body_a[i, w]]
    if link >= 0:
        s[0].work.Q_l[link, w] = s[0].work.Q_l[link, w] - P
        s[0].work.Q_a[link, w] = s[0].work.Q_a[link, w] - wp.cross(s[0].touch.r_a[i, w], P)


@wp.func
def respond(s: wp.array(dtype=Direct), w: int, start: int, end: int):
    """Changes of the twists of links start … end − 1 by the impulses on them, loops kept closed."""
    hand_pushes(s, w, start, end)
    follow_some(s, w, 2, real(0.0), start, end)


@wp.func
def close_loops(s: wp.array(dtype=Direct), w: int):
    """Rows beside the tree answer to these changes, too."""
    keep_changes(s, w)
    for r in range(s[0].closures.count):
        s[0].rows.gap[r, w] = real(0.0)
    close_rows(s, w, False, 1)


@wp.func
def span_of(s: wp.array(dtype=Direct), i: int, w: int, side: int):
    """The links of the tree that one of a point's bodies belongs to: first, and one past the last."""
    body = s[0].contacts.body_b[i, w]
    if side == 1:
        body = s[0].contacts.body_a[i, w]
    link = s[0].rows.link_of[body]
    if link < 0:
        return 0, 0
    return s[0].touch.tree_first[link], s[0].touch.tree_end[link]


@wp.func
def respond_to(s: wp.array(dtype=Direct), i: int, w: int, P: vec3, turns: bool):
    """Changes of all twists by an impulse, or a moment, at one point."""
    if turns:
        turn_link(s, i, w, P)
    else:
        push_link(s, i, w, P)
    start, end = span_of(s, i, w, 0)
    other, last = span_of(s, i, w, 1)
    if s[0].closures.count > 0:
        start = int(0)
        end = s[0].tree.count
        other = int(0)
    for side in range(2):
        if side == 0 or other != start:
            if side == 1:
                start = other
                end = last
            respond(s, w, start, end)
    if s[0].closures.count > 0:
        close_loops(s, w)


@wp.func
def forget_response(s: wp.array(dtype=Direct), i: int, w: int):
    """No changes any more of the links that `respond_to` may have moved."""
    if s[0].closures.count > 0:
        clear_changes(s, w, 0, s[0].tree.count)
        return
    start, end = span_of(s, i, w, 0)
    clear_changes(s, w, start, end)
    other, last = span_of(s, i, w, 1)
    if other != start:
        clear_changes(s, w, other, last)


@wp.func
def choose(s: wp.array(dtype=Direct), w: int) -> int:
    """The entries of the small problem: points that act, and after each what resists turning; returns how many had no room."""
    c = s[0].cone
    k = int(0)
    lost = int(0)
    for i in range(s[0].contacts.count[w]):
        if s[0].touch.acts[i, w] == 1:
            turns = s[0].contacts.rolling[i, w] > real(0.0) or s[0].contacts.torsion[i, w] > real(0.0)
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
    return lost


@wp.func
def acts_along(s: wp.array(dtype=Direct), k: int, w: int, x: int) -> bool:
    """Whether row x of an entry can carry anything."""
    if x > 0:
        return s[0].cone[0].rubs[k, w] == 1
    return s[0].cone[0].host[k, w] < 0 or s[0].cone[0].spins[k, w] == 1


@wp.func
def find_response(s: wp.array(dtype=Direct), w: int):
    """W, and b = u − W p at the speeds that the step led to."""
    c = s[0].cone
    count = c[0].count[w]
    clear_changes(s, w, 0, s[0].tree.count)
    for n in range(s[0].other_count):
        s[0].work.change_l[s[0].others[n], w] = vec3(real(0.0))
        s[0].work.change_a[s[0].others[n], w] = vec3(real(0.0))
    for k in range(count):
        i = s[0].touch.point[k, w]
        for x in range(3):
            if acts_along(s, k, w, x):
                respond_to(s, i, w, row_of(s, k, w, x), c[0].host[k, w] >= 0)
                for m in range(count):
                    u = rate_of(s, m, w, s[0].work.change_l, s[0].work.change_a)
                    for y in range(3):
                        c[0].W[3 * m + y, 3 * k + x, w] = wp.dot(row_of(s, m, w, y), u)
                forget_response(s, i, w)
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
    find_speeds(s, w)


@wp.func
def softness_of(s: wp.array(dtype=Direct), i: int, w: int) -> real:
    """How far a soft point yields to its own impulse; 0 of a hard one."""
    return softness(s[0].contacts.stiffness[i, w], s[0].contacts.damping[i, w], s[0].drift[w])


@wp.func
def spring_speed(s: wp.array(dtype=Direct), i: int, w: int) -> real:
    """The speed that stands for the spring of a soft point; 0 of a hard one."""
    if s[0].contacts.stiffness[i, w] <= real(0.0):
        return real(0.0)
    return approach(s[0].contacts.gap[i, w], s[0].contacts.stiffness[i, w], s[0].contacts.damping[i, w], s[0].drift[w])


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
        struck = struck or (s[0].touch.before[i, w] < -BOUNCES and s[0].contacts.restitution[i, w] > real(0.0))
    if not struck:
        return False
    for r in range(3 * c[0].count[w]):
        c[0].blow[r, w] = real(0.0)
        c[0].guess[r, w] = real(0.0)
    for n in range(IMPACTS):
        meets = int(0)
        for k in range(c[0].count[w]):
            i = s[0].touch.point[k, w]
            u = struck_speed(c, 3 * k, w)
            c[0].aim[k, w] = real(1.0e30)
            if c[0].host[k, w] >= 0:
                continue
            leaves = -s[0].contacts.restitution[i, w] * u
            if n == 0:
                leaves = leaving(s, i, w, u)
                u = s[0].touch.before[i, w]
            if u < -BOUNCES:
                c[0].aim[k, w] = leaves
                meets = meets + 1
        if meets == 0:
            break
        strike_round(c, w, real(1.0e-12))
    for k in range(c[0].count[w]):
        if c[0].host[k, w] >= 0:
            continue
        s[0].touch.blow[s[0].touch.point[k, w], w] = vec3(c[0].blow[3 * k, w], c[0].blow[3 * k + 1, w], c[0].blow[3 * k + 2, w])
    for r in range(3 * c[0].count[w]):
        for x in range(3 * c[0].count[w]):
            c[0].b[r, w] = c[0].b[r, w] + c[0].W[r, x, w] * c[0].blow[x, w]
    return True


@wp.func
def find_speeds(s: wp.array(dtype=Direct), w: int):
    """b of the small problem, from what the step with the impulses of now led to."""
    c = s[0].cone
    for k in range(c[0].count[w]):
        u = rate_of(s, k, w, s[0].work.acceleration, s[0].work.turning)
        if c[0].host[k, w] < 0:
            u = u + s[0].contacts.surface[s[0].touch.point[k, w], w]
        for x in range(3):
            r = 3 * k + x
            left = wp.dot(row_of(s, k, w, x), u)
            for y in range(3 * c[0].count[w]):
                left = left - c[0].W[r, y, w] * c[0].p[y, w]
            if x == 0 and c[0].host[k, w] < 0:  # a soft point is pushed by its spring
                i = s[0].touch.point[k, w]
                left = left + spring_speed(s, i, w) + softness_of(s, i, w) * c[0].p[r, w]
            c[0].b[r, w] = left


@wp.func
def take_impulses(s: wp.array(dtype=Direct), w: int):
    """The impulses that the small problem led to."""
    for k in range(s[0].cone[0].count[w]):
        i = s[0].touch.point[k, w]
        p = vec3(s[0].cone[0].p[3 * k, w], s[0].cone[0].p[3 * k + 1, w], s[0].cone[0].p[3 * k + 2, w])
        if s[0].cone[0].host[k, w] >= 0:
            s[0].touch.roll[i, w] = p
        else:
            s[0].touch.p[i, w] = p


# ---- more points than can be solved for at once -----------------------------------------------------------------------------


@wp.func
def own_response(s: wp.array(dtype=Direct), i: int, w: int) -> vec6:
    """A point's response to itself: nn, n1, n2, 11, 12, 22."""
    K = vec6()
    for x in range(3):
        axis = axis_of(s, i, w, x)
        if x == 0 or wp.length_sq(axis) > real(0.0):
            respond_to(s, i, w, axis, False)
            u = relative(s, i, w, s[0].work.change_l, s[0].work.change_a)
            for y in range(x, 3):
                rate = wp.dot(axis_of(s, i, w, y), u)
                if x == 0:
                    K[y] = rate
                else:
                    K[x + y + 1] = rate
            forget_response(s, i, w)
    return K


@wp.func
def move_span(s: wp.array(dtype=Direct), w: int, start: int, end: int):
    """Add the changes of some links to their velocities at the end of the step."""
    for n in range(start, end):
        b = s[0].tree.body[n]
        s[0].work.acceleration[b, w] = s[0].work.acceleration[b, w] + s[0].work.change_l[b, w]
        s[0].work.turning[b, w] = s[0].work.turning[b, w] + s[0].work.change_a[b, w]


@wp.func
def give(s: wp.array(dtype=Direct), i: int, w: int, d: vec3):
    """An impulse at a point, and what it does to the velocities at the end of the step."""
    respond_to(s, i, w, axis_of(s, i, w, 0) * d[0] + axis_of(s, i, w, 1) * d[1] + axis_of(s, i, w, 2) * d[2], False)
    if s[0].closures.count > 0:
        move_span(s, w, 0, s[0].tree.count)
    else:
        start, end = span_of(s, i, w, 0)
        move_span(s, w, start, end)
        other, last = span_of(s, i, w, 1)
        if other != start:
            move_span(s, w, other, last)
    forget_response(s, i, w)


@wp.func
def visit_point(s: wp.array(dtype=Direct), i: int, w: int) -> real:
    """Meet one point at the velocities of now; returns by how much that changes its speed, m/s."""
    u = relative(s, i, w, s[0].work.acceleration, s[0].work.turning) + s[0].contacts.surface[i, w]
    speeds = vec3(wp.dot(axis_of(s, i, w, 0), u), wp.dot(axis_of(s, i, w, 1), u), wp.dot(axis_of(s, i, w, 2), u))
    K = s[0].touch.K[i, w]
    p = s[0].touch.p[i, w]
    one = vec2(real(1.0), real(1.0))
    bias = spring_speed(s, i, w)
    if s[0].touch.before[i, w] < -BOUNCES:
        bias = s[0].contacts.restitution[i, w] * s[0].touch.before[i, w]
    new = meet_point(p, speeds, K, s[0].touch.G[i, w], one, bias, softness_of(s, i, w), real(1.0))
    d = new - p
    if wp.length_sq(d) == real(0.0):
        return real(0.0)
    s[0].touch.p[i, w] = new
    give(s, i, w, d)
    return wp.max(wp.abs(d[0]) * K[0], wp.max(wp.abs(d[1]) * K[3], wp.abs(d[2]) * K[5]))


@wp.func
def sweep_all(s: wp.array(dtype=Direct), w: int, turn: int) -> real:
    """Sweeps over all points that act, trees answering to each visit; returns the first change, m/s, and leaves impulses in p."""
    count = s[0].contacts.count[w]
    clear_changes(s, w, 0, s[0].tree.count)
    for n in range(s[0].other_count):
        s[0].work.change_l[s[0].others[n], w] = vec3(real(0.0))
        s[0].work.change_a[s[0].others[n], w] = vec3(real(0.0))
    for i in range(count):
        if s[0].touch.acts[i, w] == 1:
            K = own_response(s, i, w)
            s[0].touch.K[i, w] = K
            s[0].touch.G[i, w] = vec4(real(0.0))
            if s[0].touch.mu[i, w][0] > real(0.0):
                s[0].touch.G[i, w] = tangent_inverse(K, vec2(real(1.0), real(1.0)))
    first = real(0.0)
    for it in range(SWEEPS):
        most = real(0.0)
        for k in range(count):
            i = k
            if it % 2 == 1:
                i = count - 1 - k
            if s[0].touch.acts[i, w] == 1:
                most = wp.max(most, visit_point(s, i, w))
        if it == 0:
            first = most
        if most <= MET:
            break
    return first


@wp.func
def change_impulses(s: wp.array(dtype=Direct), w: int, turn: int) -> bool:
    """After a step with the impulses of now: find better ones; returns whether these are good enough."""
    find_acting(s, w)
    many = choose(s, w)
    if s[0].cone[0].count[w] == 0:
        return True
    if many > 0:
        off = sweep_all(s, w, turn)
        s[0].touch.residual[w] = off
        return off <= ENOUGH
    find_response(s, w)
    struck = bool(False)
    if turn == 0:
        struck = strike(s, w)
    off = missed(s[0].cone, w)
    s[0].touch.residual[w] = off
    if off <= ENOUGH and not struck:
        return True
    solve_cone(s[0].cone, w, real(0.1) * ENOUGH)
    take_impulses(s, w)
    return False


@wp.func
def touch_attempt(s: wp.array(dtype=Direct), w: int, scope: int) -> bool:
    """A step of the length in `drift` with all contacts; returns whether its passes met."""
    open_points(s, w)
    met = bool(True)
    for turn in range(ROUNDS + 1):
        push_bodies(s, w)
        met = attempt(s, w, scope)
        if not met or s[0].contacts.count[w] == 0 or turn == ROUNDS:
            break
        if change_impulses(s, w, turn):
            break
    if met and s[0].contacts.count[w] > 0:
        part_points(s, w)
    return met


@wp.func
def part_points(s: wp.array(dtype=Direct), w: int):
    """Overlaps at the end of the step are taken back by displacements of the trees; a point that landed in it stays in touch."""
    c = s[0].cone
    h = real(0.5) * s[0].drift[w]
    off = bool(False)
    for k in range(c[0].count[w]):
        i = s[0].touch.point[k, w]
        c[0].guess[3 * k, w] = real(0.0)
        if c[0].host[k, w] < 0:
            u = relative(s, i, w, s[0].work.acceleration, s[0].work.turning) + s[0].contacts.surface[i, w]
            left = s[0].contacts.gap[i, w] + h * (wp.dot(s[0].contacts.normal[i, w], u) + s[0].touch.before[i, w])
            if s[0].contacts.stiffness[i, w] > real(0.0):
                left = real(1.0e30)
            landed = left > SLOP and left < real(1.0) and s[0].touch.p[i, w][0] > real(0.0)
            if wp.abs(left) < SLOP:
                left = real(0.0)
            elif left < real(0.0):
                left = left + real(0.5) * SLOP
            s[0].touch.aim[i, w] = left
            c[0].spins[k, w] = int(landed)
            off = off or landed or left < real(0.0)
    if not off:
        return
    for _it in range(PARTED):
        for k in range(c[0].count[w]):
            if c[0].host[k, w] < 0:
                gap = s[0].touch.aim[s[0].touch.point[k, w], w]
                for m in range(c[0].count[w]):
                    gap = gap + h * c[0].W[3 * k, 3 * m, w] * c[0].guess[3 * m, w]
                push = c[0].guess[3 * k, w] - gap / (h * c[0].W[3 * k, 3 * k, w])
                if c[0].spins[k, w] == 0:
                    push = wp.max(real(0.0), push)
                c[0].guess[3 * k, w] = push
    clear_changes(s, w, 0, s[0].tree.count)
    for k in range(c[0].count[w]):
        i = s[0].touch.point[k, w]
        push_link(s, i, w, s[0].contacts.normal[i, w] * c[0].guess[3 * k, w])
    respond(s, w, 0, s[0].tree.count)
    if s[0].closures.count > 0:
        close_loops(s, w)
    displace(s, w)
    for k in range(c[0].count[w]):  # what that made of the gaps, for the next step and the caller
        i = s[0].touch.point[k, w]
        if c[0].host[k, w] < 0:
            moved = wp.dot(s[0].contacts.normal[i, w], relative(s, i, w, s[0].work.change_l, s[0].work.change_a))
            s[0].contacts.gap[i, w] = s[0].contacts.gap[i, w] + h * moved


@wp.func
def commit_points(s: wp.array(dtype=Direct), w: int):
    """Impulses of the step, for the next one to start from and for the caller to read."""
    whole = s[0].settings.dt[0] / s[0].drift[w]
    for i in range(s[0].contacts.count[w]):
        p = s[0].touch.p[i, w] * whole
        s[0].contacts.impulse[i, w] = axis_of(s, i, w, 0) * p[0] + axis_of(s, i, w, 1) * p[1] + axis_of(s, i, w, 2) * p[2]
        p = s[0].touch.blow[i, w]
        s[0].touch.blow[i, w] = axis_of(s, i, w, 0) * p[0] + axis_of(s, i, w, 1) * p[1] + axis_of(s, i, w, 2) * p[2]
        u = relative(s, i, w, s[0].work.acceleration, s[0].work.turning) + s[0].contacts.surface[i, w]
        un = wp.dot(s[0].contacts.normal[i, w], u)
        s[0].contacts.gap[i, w] = s[0].contacts.gap[i, w] + real(0.5) * s[0].drift[w] * (un + s[0].touch.before[i, w])
        s[0].touch.slip[i, w] = u - s[0].contacts.normal[i, w] * wp.dot(s[0].contacts.normal[i, w], u)
