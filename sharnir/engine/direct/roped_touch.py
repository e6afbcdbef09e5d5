"""Ropes that touch, in the passes of trees on which they hang: what their points of contact miss, and do (theory: ropes that touch).

Points of contact are rows among those of bodies (`engine.tree.ropes.TouchRow`), solved with these by the one law of contact
(`contact.cones`): so ropes meet shapes that rest, are driven or yield, ropes, and themselves. What holds ropes beside their first
ends are such rows, too. Impulses of rows move the links they act on, the link of a rope's first end by what the rope hands on,
and the rope: its points on which rows act have, while links stay, the mobility S along the rope. To the solver they are
speeds of a further link, with S⁻¹ as its inertia.

The law asks for the speed u at the end of a step, against the surface by its normal n₁ there; the impulse P acts along the mean n̄
of the normals at start and end, so that what slides around a drum does no work across it. It is held where it ends no farther
off than it began, or overlaps. Friction that would drive a point acts on the mean velocity instead (`drives`). What comes in
faster than its gap bears is stopped before the step, by a projection of velocities.
"""

import warp as wp

from sharnir.collision.broad import place, solid
from sharnir.collision.data import MARGIN, Solid
from sharnir.core.spatial import matrix
from sharnir.core.types import mat33, real, vec3
from sharnir.engine.direct.roped_data import (
    AT_COM,
    ENDS_OF,
    TOUCH_ACTS,
    TOUCH_AIMS,
    TOUCH_CHANGE,
    TOUCH_FROM,
    TOUCH_NOW,
    TOUCH_OWN,
    TOUCH_ROW,
    RopedTree,
    lack,
    mean_com,
    touch_impulse,
)
from sharnir.engine.direct.roped_holds import (
    Along,
    across,
    at_last,
    back_along,
    first_link,
    hold_arm,
    hold_slot,
    share_element,
    speed_along,
)
from sharnir.engine.rope.data import DRIVEN, UNHELD
from sharnir.engine.rope.touch import keep_points
from sharnir.engine.rope.touch_data import MOST
from sharnir.engine.rope.touch_find import begin_touch, belt_speed, end_arm, end_foot, surface_foot
from sharnir.engine.rope.touch_pairs import axis_normal, between, nearest_places, pair_gap, spread, thickness
from sharnir.engine.tree.closures import HOLD, TOUCH
from sharnir.engine.tree.runtime import recall_triple
from sharnir.laws.contact import FRICTIONLESS
from sharnir.laws.contact import across as across_normal
from sharnir.model.model import FIXED

IS_TOUCH, IS_HOLD = wp.constant(TOUCH), wp.constant(HOLD)
SMALL = wp.constant(real(5.0e-5))  # m: gaps and overlaps up to this are closed by speeds,
FOLLOWS = wp.constant(real(0.1))  # so much of them in a step
LITTLE = wp.constant(real(1.0e-14))  # of a point's mobility: what is left by rounding
SOFT = wp.constant(real(1.0e-8))  # of it: what each point yields by itself
LEAST = wp.constant(real(1.0e-30))
LANDS = wp.constant(real(0.01))  # m/s: a point that comes in faster lands
SLOW = wp.constant(real(1.0e-6))  # m/s: friction that drives a point slower than this is let
NEARLY = wp.constant(real(0.25))  # of its radius: a rope that is as near may touch in the step


# ---- which points ------------------------------------------------------------------------------------------------------------


@wp.func
def find_contacts(x: wp.array(dtype=RopedTree), w: int):
    """Rows of ropes in the step that begins: of what holds them, and of points that may touch."""
    if x[0].touches == 0:
        return
    t = x[0].tree
    s = x[0].rope
    c = x[0].touch
    h = t[0].settings.dt[0]
    s[0].h[w] = real(2.0) * h  # what is reached in the next step, too, is known before it comes in
    place(x[0].collision, w)
    for n in range(x[0].held):
        b = x[0].held_body[n]
        s[0].body_state.position[b, w] = t[0].state.position[b, w]
        s[0].body_state.rotation[b, w] = t[0].state.rotation[b, w]
        s[0].body.v[b, w] = t[0].state.velocity[b, w]
        s[0].body.w[b, w] = t[0].state.spin[b, w]
    for k in range(s[0].ropes.count):
        first = s[0].ropes.first[k]
        for i in range(first, first + s[0].state.segments[k, w] + 1):
            v = s[0].state.velocity[i, w]
            s[0].work.v[i, w] = v
            s[0].work.r[i, w] = s[0].state.position[i, w] + v * h
    begin_touch(s, c, x[0].collision, w)
    s[0].h[w] = h
    live = int(0)
    for i in range(x[0].place_of.shape[0]):
        x[0].place_of[i, w] = -1
    for n in range(x[0].holds):
        k = x[0].hold_rope[n]
        note_row(x, live, w, int(IS_HOLD), first_link(x, k), x[0].hold_link[n], k, -1 - n)
        note_point(x, live, w, hold_slot(x, n, w))
        live = live + 1
    for m in range(c[0].live[w]):
        e = c[0].entry[m, w]
        if live < x[0].rows_most and is_near(x, e, w, h):
            if e >= c[0].base:
                p = e - c[0].base
                a = c[0].pair_a[p, w]
                b = c[0].pair_b[p, w]
                ka = c[0].rope_of[a]
                kb = c[0].rope_of[b]
                note_row(x, live, w, int(IS_TOUCH), first_link(x, kb), first_link(x, ka), kb, e)
                note_point(x, live, w, b)
                note_point(x, live, w, b + 1)
                note_point(x, live, w, a)
                note_point(x, live, w, a + 1)
            else:
                i = e / MOST
                k = c[0].rope_of[i]
                b = x[0].collision[0].shapes.body[c[0].shape[e, w]]
                note_row(x, live, w, int(IS_TOUCH), first_link(x, k), x[0].link_of[b], k, e)
                note_point(x, live, w, i)
            live = live + 1
    t[0].rope_live[w] = live
    for k in range(s[0].ropes.count):
        first = s[0].ropes.first[k]
        top = first + s[0].state.segments[k, w]
        n = int(0)
        for back in range(top - first + 1):
            i = top - back
            if x[0].place_of[i, w] >= 0:
                x[0].place_of[i, w] = n
                x[0].point_slot[first + n, w] = i
                n = n + 1
        t[0].rope_width[k, w] = 3 * n
    for m in range(live):
        for point in range(t[0].rope_ends[ENDS_OF * m + 4, w]):
            at = ENDS_OF * m + 10 + point
            t[0].rope_ends[at, w] = x[0].place_of[t[0].rope_ends[at, w], w]


@wp.func
def note_point(x: wp.array(dtype=RopedTree), m: int, w: int, i: int):
    """A point on which a row acts."""
    t = x[0].tree
    n = t[0].rope_ends[ENDS_OF * m + 4, w]
    t[0].rope_ends[ENDS_OF * m + 6 + n, w] = x[0].touch[0].rope_of[i]
    t[0].rope_ends[ENDS_OF * m + 10 + n, w] = i
    t[0].rope_ends[ENDS_OF * m + 4, w] = n + 1
    x[0].place_of[i, w] = 0


@wp.func
def note_row(x: wp.array(dtype=RopedTree), m: int, w: int, kind: int, a: int, b: int, k: int, item: int):
    t = x[0].tree
    t[0].rope_ends[ENDS_OF * m, w] = kind
    t[0].rope_ends[ENDS_OF * m + 1, w] = a
    t[0].rope_ends[ENDS_OF * m + 2, w] = b
    t[0].rope_ends[ENDS_OF * m + 3, w] = k
    t[0].rope_ends[ENDS_OF * m + 4, w] = 0
    t[0].rope_ends[ENDS_OF * m + 5, w] = item


@wp.func
def is_near(x: wp.array(dtype=RopedTree), e: int, w: int, h: real) -> bool:
    """Whether a point may touch in the step."""
    s = x[0].rope
    c = x[0].touch
    u = vec3()
    i = e / MOST
    if e >= c[0].base:
        i = c[0].pair_a[e - c[0].base, w]
        u = between(s[0].state.velocity, c, e - c[0].base, w)
    else:
        u = s[0].state.velocity[i, w] - shape_speed(x, e, w)
    r = s[0].ropes.radius[c[0].rope_of[i]]
    return c[0].start[e, w] < NEARLY * r + real(2.0) * h * wp.length(u)


@wp.func
def shape_speed(x: wp.array(dtype=RopedTree), e: int, w: int) -> vec3:
    """Velocity of a shape's surface at a point of contact, at the end of the step as it stands, m/s."""
    s = x[0].rope
    b = x[0].collision[0].shapes.body[x[0].touch[0].shape[e, w]]
    u = belt_speed(x[0].collision, x[0].touch[0].shape[e, w], w)
    if s[0].bodies.motion[b] != FIXED:
        u = u + s[0].body.v[b, w] + wp.cross(s[0].body.w[b, w], x[0].touch[0].arm[e, w])
    return u


@wp.func
def start_speed_of(x: wp.array(dtype=RopedTree), e: int, w: int) -> vec3:
    """Velocity of a rope against what it touches as the last part left it, m/s."""
    s = x[0].rope
    c = x[0].touch
    if e >= c[0].base:
        return between(s[0].state.velocity, c, e - c[0].base, w)
    b = x[0].collision[0].shapes.body[c[0].shape[e, w]]
    u = s[0].state.velocity[e / MOST, w] - belt_speed(x[0].collision, c[0].shape[e, w], w)
    if s[0].bodies.motion[b] != FIXED:
        u = u - s[0].body_state.velocity[b, w] - wp.cross(s[0].body_state.spin[b, w], c[0].arm[e, w])
    return u


@wp.func
def speed_now(x: wp.array(dtype=RopedTree), e: int, w: int) -> vec3:
    """The same at the end of the step as it stands."""
    s = x[0].rope
    if e >= x[0].touch[0].base:
        return between(s[0].work.v, x[0].touch, e - x[0].touch[0].base, w)
    return s[0].work.v[e / MOST, w] - shape_speed(x, e, w)


@wp.func
def solid_at_start(x: wp.array(dtype=RopedTree), j: int, w: int) -> Solid:
    """A shape where a part of the step begins."""
    s = x[0].rope
    c = x[0].collision
    out = solid(c, j, w)
    b = c[0].shapes.body[j]
    if s[0].bodies.motion[b] != FIXED:
        q = s[0].body_state.rotation[b, w]
        out.x = s[0].body_state.position[b, w] + wp.quat_rotate(q, c[0].shapes.position[j])
        out.R = matrix(q * c[0].shapes.rotation[j])
    return out


@wp.func
def begin_contacts(x: wp.array(dtype=RopedTree), w: int):
    """Points of contact where a part of the step begins, with the impulses of the last one."""
    s = x[0].rope
    t = x[0].tree
    c = x[0].touch
    h = s[0].h[w]
    part = h / s[0].settings.dt[0]
    for m in range(t[0].rope_live[w]):
        e = t[0].rope_ends[ENDS_OF * m + 5, w]
        for k in range(3):
            x[0].touch_rows[TOUCH_ROW * m + TOUCH_FROM + k, w] = real(0.0)
        if e >= 0:
            if x[0].elapsed[w] > real(0.0):
                start_again(x, e, w)
            n = c[0].n[e, w]
            c[0].first_n[e, w] = n
            c[0].first_arm[e, w] = c[0].arm[e, w]
            c[0].came[e, w] = start_speed_of(x, e, w)
            c[0].speed[e, w] = c[0].came[e, w]
            c[0].gap[e, w] = c[0].start[e, w] + h * wp.dot(n, c[0].came[e, w])
            c[0].back[e, w] = 0
            P = c[0].centre[e, w] * (part * h * real(0.25))
            axes = push_axes(x, e, w)
            mu = friction_of(x, e, w)
            along = wp.transpose(axes) * P
            x[0].touch_rows[TOUCH_ROW * m + TOUCH_FROM, w] = wp.max(along[0], real(0.0))
            for k in range(1, 3):
                if mu > real(0.0):
                    x[0].touch_rows[TOUCH_ROW * m + TOUCH_FROM + k, w] = along[k] / mu
        for k in range(3):
            x[0].touch_rows[TOUCH_ROW * m + TOUCH_NOW + k, w] = x[0].touch_rows[TOUCH_ROW * m + TOUCH_FROM + k, w]


@wp.func
def start_again(x: wp.array(dtype=RopedTree), e: int, w: int):
    """Gap and normal where a later part of the step begins."""
    s = x[0].rope
    c = x[0].touch
    if e >= c[0].base:
        p = e - c[0].base
        a = c[0].pair_a[p, w]
        b = c[0].pair_b[p, w]
        y = s[0].state.position
        on_a, on_b = nearest_places(y[a, w], y[a + 1, w], y[b, w], y[b + 1, w])
        c[0].pair_s[p, w] = on_a
        c[0].pair_t[p, w] = on_b
        d = between(y, c, p, w)
        c[0].n[e, w] = axis_normal(d, wp.cross(y[a + 1, w] - y[a, w], y[b + 1, w] - y[b, w]), c[0].n[e, w])
        c[0].start[e, w] = wp.length(d) - thickness(s, c, a, b)
        return
    i = e / MOST
    j = c[0].shape[e, w]
    r = s[0].ropes.radius[c[0].rope_of[i]]
    at = s[0].state.position[i, w]
    b = x[0].collision[0].shapes.body[j]
    u = s[0].state.velocity[i, w] * s[0].settings.dt[0]
    reach = real(4.0) * r + wp.length(u) + MARGIN
    near = surface_foot(s, x[0].collision, j, solid_at_start(x, j, w), at, reach, w)
    c[0].start[e, w] = near.gap - r
    if near.gap < reach:
        c[0].n[e, w] = near.n
        c[0].arm[e, w] = at - near.n * near.gap - s[0].body_state.position[b, w]


# ---- what rows miss ----------------------------------------------------------------------------------------------------------


@wp.func
def friction_of(x: wp.array(dtype=RopedTree), e: int, w: int) -> real:
    """The coefficient of friction of a point."""
    mu = x[0].touch[0].mu[e, w]
    if mu < FRICTIONLESS:
        return real(0.0)
    return mu


@wp.func
def ask_axes(x: wp.array(dtype=RopedTree), e: int, w: int) -> mat33:
    """Axes along which a contact asks for speeds, as columns: the normal first."""
    n = x[0].touch[0].n[e, w]
    t1 = across_normal(n)
    return wp.matrix_from_cols(n, t1, wp.cross(n, t1))


@wp.func
def push_axes(x: wp.array(dtype=RopedTree), e: int, w: int) -> mat33:
    """Axes along which it pushes."""
    n = x[0].touch[0].n[e, w]
    mean = n + x[0].touch[0].first_n[e, w]
    if wp.length_sq(mean) < real(1.0):
        return ask_axes(x, e, w)
    t1 = across_normal(n)
    mean = wp.normalize(mean)
    t1 = wp.normalize(t1 - mean * wp.dot(mean, t1))
    return wp.matrix_from_cols(mean, t1, wp.cross(mean, t1))


@wp.func
def look_at_ends(x: wp.array(dtype=RopedTree), w: int):
    """Gaps and normals at the end of the step as it stands."""
    s = x[0].rope
    t = x[0].tree
    c = x[0].touch
    for m in range(x[0].holds, t[0].rope_live[w]):
        e = t[0].rope_ends[ENDS_OF * m + 5, w]
        if e >= c[0].base:
            pair_gap(s, c, e - c[0].base, w)
        else:
            near = end_foot(s, c, x[0].collision, e, w)
            c[0].gap[e, w] = near.gap - s[0].ropes.radius[c[0].rope_of[e / MOST]]
            c[0].n[e, w] = near.n
            c[0].arm[e, w] = end_arm(s, c, x[0].collision, e, w, near)
        c[0].speed[e, w] = speed_now(x, e, w)


@wp.func
def speed_against(x: wp.array(dtype=RopedTree), e: int, w: int, asks: mat33, v: vec3) -> vec3:
    """A velocity against the surface as the law takes it, in the axes of asking: small gaps and overlaps at the start in it.

    What ends farther off than it began, or off the surface, is not held: it would be pulled back, and gain energy by that. What
    comes from farther off arrives at the end of the step, and stops in the next.
    """
    t = x[0].touch
    per = real(2.0) / x[0].rope[0].h[w]
    u = wp.transpose(asks) * v
    off = per * t[0].gap[e, w] + u[0] - wp.dot(t[0].n[e, w], t[0].speed[e, w])
    start = t[0].start[e, w]
    if wp.abs(start) <= SMALL:
        follows = start * (real(2.0) * FOLLOWS / x[0].rope[0].settings.dt[0])
        off = off - per * start + wp.min(follows, real(0.0))
        u[0] = u[0] + follows
    u[0] = wp.max(u[0], off)
    if t[0].back[e, w] == 1:
        came = wp.transpose(asks) * t[0].came[e, w]
        u = vec3(u[0], u[1] + came[1], u[2] + came[2])
    return u


@wp.func
def gain_at(x: wp.array(dtype=RopedTree), i: int, w: int) -> vec3:
    """By how much a point's velocity changes in the pass where links stay and rows change nothing."""
    return x[0].free[i, w]


@wp.func
def gain_of(x: wp.array(dtype=RopedTree), e: int, w: int) -> vec3:
    """The same of a rope against what it touches."""
    if e >= x[0].touch[0].base:
        return between(x[0].free, x[0].touch, e - x[0].touch[0].base, w)
    return x[0].free[e / MOST, w]


@wp.func
def press_points(x: wp.array(dtype=RopedTree), w: int):
    """What points of contact push is part of what ropes, and links, miss."""
    t = x[0].tree
    s = x[0].rope
    c = x[0].touch
    scale = real(0.25) * s[0].h[w]
    for m in range(x[0].holds, t[0].rope_live[w]):
        e = t[0].rope_ends[ENDS_OF * m + 5, w]
        axes = push_axes(x, e, w)
        mu = friction_of(x, e, w)
        x[0].touch_push[m, w] = wp.matrix_from_cols(
            vec3(axes[0, 0], axes[1, 0], axes[2, 0]),
            vec3(axes[0, 1], axes[1, 1], axes[2, 1]) * mu,
            vec3(axes[0, 2], axes[1, 2], axes[2, 2]) * mu,
        )
        P = touch_impulse(x, m, w, int(TOUCH_NOW)) / scale
        c[0].impulse[e, w] = P
        if e >= c[0].base:
            spread(s[0].work.defect, c, e - c[0].base, -P, w)
        else:
            i = e / MOST
            s[0].work.defect[i, w] = s[0].work.defect[i, w] - P


@wp.func
def mean_arm(x: wp.array(dtype=RopedTree), e: int, w: int) -> vec3:
    """From the centre of what a point touches to where it is pushed: normal impulses at round surfaces have no moment there."""
    return (x[0].touch[0].first_arm[e, w] + x[0].touch[0].arm[e, w]) * real(0.5)


@wp.func
def press_links(x: wp.array(dtype=RopedTree), w: int):
    """And what they give to links."""
    t = x[0].tree
    c = x[0].touch
    scale = real(0.25) * x[0].rope[0].h[w]
    for m in range(x[0].holds, t[0].rope_live[w]):
        e = t[0].rope_ends[ENDS_OF * m + 5, w]
        if e < c[0].base:
            b = t[0].rope_ends[ENDS_OF * m + 2, w]
            f = c[0].impulse[e, w] * scale
            if b >= 0:
                lack(x, b, w, f, wp.cross(mean_com(x, b, w) + mean_arm(x, e, w), f))


# ---- rows ----------------------------------------------------------------------------------------------------------------------


@wp.func
def carry_on(x: wp.array(dtype=RopedTree), at: int, w: int, h: Along) -> Along:
    """What a point hands on that acts on another one, nearer to the first end, at its slot: at that end."""
    out = Along()
    out.X = x[0].along_X[at, w] * h.X + x[0].turned_X[at, w] * h.Y
    out.Y = x[0].along_Y[at, w] * h.X + x[0].turned_Y[at, w] * h.Y
    out.P = h.P * x[0].along_P[at, w] + h.Q * x[0].turned_P[at, w]
    out.Q = h.P * x[0].along_Q[at, w] + h.Q * x[0].turned_Q[at, w]
    return out


@wp.func
def through(x: wp.array(dtype=RopedTree), at: int, w: int, one: Along, two: Along) -> mat33:
    """What the second moves the first by, beyond such a point."""
    felt = one.P * x[0].own_F[at, w] + one.Q * x[0].own_K[at, w]
    turned = one.P * x[0].own_H[at, w] + one.Q * x[0].own_M[at, w]
    return felt * two.X + turned * two.Y


@wp.func
def find_mobility(x: wp.array(dtype=RopedTree), k: int, w: int):
    """S⁻¹ = L Δ⁻¹ U of the points of rope k on which rows act, and what they hand on to its first end.

    Along a rope that does not bend all that a point does to those beyond another one is by the velocity of that: S⁻¹ is
    block-tridiagonal. Points are numbered from the last end on.
    """
    s = x[0].rope
    first = s[0].ropes.first[k]
    n = x[0].tree[0].rope_width[k, w] / 3
    unit = wp.identity(n=3, dtype=real)
    for number in range(n):
        q = n - 1 - number
        at = first + q
        top = x[0].point_slot[at, w]
        stop = int(first - 1)
        if number > 0:
            stop = x[0].point_slot[at + 1, w]
        own = at_last()
        turn = Along()
        turn.Y = unit
        turn.Q = unit
        F = mat33(real(0.0))
        H = mat33(real(0.0))
        K = mat33(real(0.0))
        M = mat33(real(0.0))
        for back in range(top - stop):
            j = top - back
            U = s[0].work.U[j, w]
            F = F + own.Q * U * own.Y
            H = H + own.Q * U * turn.Y
            K = K + turn.Q * U * own.Y
            M = M + turn.Q * U * turn.Y
            own = across(s, own, j, w)
            turn = across(s, turn, j, w)
            if j > first:
                F = F + share_element(s, own, own, j, w)
                H = H + share_element(s, own, turn, j, w)
                K = K + share_element(s, turn, own, j, w)
                M = M + share_element(s, turn, turn, j, w)
                own = back_along(s, own, j, w)
                turn = back_along(s, turn, j, w)
        if number > 0:
            x[0].to_next[at, w] = x[0].own_F[at + 1, w] * own.X + x[0].own_H[at + 1, w] * own.Y
            x[0].from_next[at, w] = own.P * x[0].own_F[at + 1, w] + own.Q * x[0].own_K[at + 1, w]
            F = F + through(x, at + 1, w, own, own)
            H = H + through(x, at + 1, w, own, turn)
            K = K + through(x, at + 1, w, turn, own)
            M = M + through(x, at + 1, w, turn, turn)
            own = carry_on(x, at + 1, w, own)
            turn = carry_on(x, at + 1, w, turn)
        elif s[0].ropes.kind[2 * k] == UNHELD:
            free = wp.inverse(s[0].work.Z_A[k, w])
            F = F + own.P * free * own.X
            H = H + own.P * free * turn.X
            K = K + turn.P * free * own.X
            M = M + turn.P * free * turn.X
        x[0].own_F[at, w] = F
        x[0].own_H[at, w] = H
        x[0].own_K[at, w] = K
        x[0].own_M[at, w] = M
        x[0].along_X[at, w] = own.X
        x[0].along_Y[at, w] = own.Y
        x[0].along_P[at, w] = own.P
        x[0].along_Q[at, w] = own.Q
        x[0].turned_X[at, w] = turn.X
        x[0].turned_Y[at, w] = turn.Y
        x[0].turned_P[at, w] = turn.P
        x[0].turned_Q[at, w] = turn.Q
    factor_mobility(x, k, w)


@wp.func
def softened(G: mat33) -> mat33:
    return G + wp.identity(n=3, dtype=real) * (SOFT * wp.trace(G) + LEAST)


@wp.func
def factor_mobility(x: wp.array(dtype=RopedTree), k: int, w: int):
    """The factors of S⁻¹, point by point from the last end on; a last point that does not yield is one more, which stays."""
    s = x[0].rope
    first = s[0].ropes.first[k]
    n = x[0].tree[0].rope_width[k, w] / 3
    excess = mat33(real(0.0))
    if s[0].ropes.kind[2 * k + 1] == DRIVEN:
        excess = hold_last(x, k, w)
    for q in range(n):
        at = first + q
        Q = softened(x[0].own_F[at, w])
        up = mat33(real(0.0))
        down = mat33(real(0.0))
        if q < n - 1:
            next = wp.inverse(softened(x[0].own_F[at + 1, w]))
            down = next * x[0].to_next[at, w]
            up = x[0].from_next[at, w] * next
            Q = softened(x[0].own_F[at, w] - up * x[0].to_next[at, w])
            Q = Q + wp.identity(n=3, dtype=real) * (SOFT * wp.trace(x[0].own_F[at, w]))
        inverse = wp.inverse(Q)
        D = wp.inverse(inverse + excess)
        if q == 0 and s[0].ropes.kind[2 * k + 1] != DRIVEN:
            D = Q
        # D = u δ l, u and l with unit diagonals
        least = LITTLE * wp.abs(wp.trace(D)) + LEAST
        d2 = wp.max(D[2, 2], least)
        u02 = D[0, 2] / d2
        u12 = D[1, 2] / d2
        l20 = D[2, 0] / d2
        l21 = D[2, 1] / d2
        d1 = wp.max(D[1, 1] - u12 * l21 * d2, least)
        u01 = (D[0, 1] - u02 * l21 * d2) / d1
        l10 = (D[1, 0] - u12 * l20 * d2) / d1
        d0 = wp.max(D[0, 0] - u01 * l10 * d1 - u02 * l20 * d2, least)
        zero = real(0.0)
        one = real(1.0)
        l_inverse = mat33(one, zero, zero, -l10, one, zero, l10 * l21 - l20, -l21, one)
        u_inverse = mat33(one, -u01, u01 * u12 - u02, zero, one, -u12, zero, zero, one)
        x[0].touch_delta[3 * at, w] = d0
        x[0].touch_delta[3 * at + 1, w] = d1
        x[0].touch_delta[3 * at + 2, w] = d2
        for r in range(3):
            for c in range(3):
                x[0].touch_L[6 * (3 * at + r) + 3 + c, w] = l_inverse[r, c]
                x[0].touch_U[6 * (3 * at + r) + 3 + c, w] = u_inverse[c, r]
        if q < n - 1:
            low = -(down * inverse * D) * l_inverse
            high = -(u_inverse * (D * inverse * up))
            for r in range(3):
                for c in range(3):
                    x[0].touch_L[6 * (3 * at + 3 + r) + c, w] = low[r, c]
                    x[0].touch_U[6 * (3 * at + 3 + r) + c, w] = high[c, r]
            excess = down * inverse * D * excess * up


@wp.func
def hold_last(x: wp.array(dtype=RopedTree), k: int, w: int) -> mat33:
    """A last point that does not yield pushes back what other points do to it; returns what that adds to S⁻¹ of the first."""
    s = x[0].rope
    first = s[0].ropes.first[k]
    n = x[0].tree[0].rope_width[k, w] / 3
    last = first + s[0].state.segments[k, w]
    own = at_last()
    F = mat33(real(0.0))
    next = int(0)
    to = mat33(real(0.0))
    back_to = mat33(real(0.0))
    F_last = mat33(real(0.0))
    for back in range(last - first + 1):
        j = last - back
        if next < n:
            at = first + next
            if x[0].point_slot[at, w] == j:
                x[0].to_last[at, w] = x[0].own_F[at, w] * own.X + x[0].own_H[at, w] * own.Y
                x[0].from_last[at, w] = own.P * x[0].own_F[at, w] + own.Q * x[0].own_K[at, w]
                if next == 0:
                    to = x[0].to_last[at, w]
                    back_to = x[0].from_last[at, w]
                    F_last = F + through(x, at, w, own, own)
                next = next + 1
        F = F + own.Q * s[0].work.U[j, w] * own.Y
        own = across(s, own, j, w)
        if j > first:
            F = F + share_element(s, own, own, j, w)
            own = back_along(s, own, j, w)
    G = s[0].work.G[k, w]
    for a in range(n):
        at = first + a
        by = x[0].to_last[at, w] * G
        felt = G * x[0].from_last[at, w]
        x[0].held_P[at, w] = x[0].along_P[at, w] - by * own.P
        x[0].held_Q[at, w] = x[0].along_Q[at, w] - by * own.Q
        x[0].held_X[at, w] = x[0].along_X[at, w] - own.X * felt
        x[0].held_Y[at, w] = x[0].along_Y[at, w] - own.Y * felt
    if n > 0:
        inverse = wp.inverse(softened(x[0].own_F[first, w]))
        Q = softened(F_last - back_to * inverse * to)
        Q = Q + wp.identity(n=3, dtype=real) * (SOFT * wp.trace(F_last))
        for a in range(n):
            at = first + a
            x[0].along_P[at, w] = x[0].held_P[at, w]
            x[0].along_Q[at, w] = x[0].held_Q[at, w]
            x[0].along_X[at, w] = x[0].held_X[at, w]
            x[0].along_Y[at, w] = x[0].held_Y[at, w]
        return inverse * to * wp.inverse(Q) * back_to * inverse
    return mat33(real(0.0))


@wp.func
def find_gains(x: wp.array(dtype=RopedTree), k: int, w: int):
    """By how much points on which rows act change their velocity where links stay and rows change nothing."""
    first = x[0].rope[0].ropes.first[k]
    for b in range(x[0].tree[0].rope_width[k, w] / 3):
        i = x[0].point_slot[first + b, w]
        x[0].free[i, w] = speed_along(x[0].rope, k, w, at_last(), i)


@wp.func
def clear_row(x: wp.array(dtype=RopedTree), m: int, w: int):
    for n in range(36):
        x[0].touch_rows[TOUCH_ROW * m + n, w] = real(0.0)
    for n in range(4):
        x[0].touch_rows[TOUCH_ROW * m + TOUCH_OWN + n, w] = real(0.0)


@wp.func
def add_point(x: wp.array(dtype=RopedTree), m: int, side: int, place: int, i: int, by: real, axes: mat33, arm: vec3, w: int):
    """What rows along some axes have at a point of a rope, times `by`; `arm`: of its first end, from the origin of its link;
    `place`: which of the points on which the row acts.
    """
    k = x[0].touch[0].rope_of[i]
    at = x[0].rope[0].ropes.first[k] + x[0].place_of[i, w]
    l = x[0].along_X[at, w] * axes * by
    n = x[0].along_Y[at, w] * axes * by
    for row in range(3):
        f = vec3(l[0, row], l[1, row], l[2, row])
        g = vec3(n[0, row], n[1, row], n[2, row]) + wp.cross(arm, f)
        to = TOUCH_ROW * m + 12 * row + 6 * side
        for r in range(3):
            x[0].touch_rows[to + r, w] = x[0].touch_rows[to + r, w] + f[r]
            x[0].touch_rows[to + 3 + r, w] = x[0].touch_rows[to + 3 + r, w] + g[r]
            x[0].touch_J[36 * m + 12 * row + 3 * place + r, w] = axes[r, row] * by
        e = vec3(axes[0, row], axes[1, row], axes[2, row])
        own = wp.dot(e, x[0].own_F[at, w] * e) * by * by
        place_own = TOUCH_ROW * m + TOUCH_OWN
        x[0].touch_rows[place_own + row, w] = x[0].touch_rows[place_own + row, w] + own
        x[0].touch_rows[place_own + 3, w] = x[0].touch_rows[place_own + 3, w] + own / real(3.0)


@wp.func
def first_arm_of(x: wp.array(dtype=RopedTree), k: int, w: int, stands: bool) -> vec3:
    """Of a rope's first end, from the origin of its link."""
    a = first_link(x, k)
    if a < 0:
        return vec3()
    if stands:
        return recall_triple(x[0].tree, a, AT_COM, w) + x[0].rope[0].work.arm[2 * k, w]
    return mean_com(x, a, w) + x[0].rope[0].work.arm[2 * k, w]


@wp.func
def add_link(x: wp.array(dtype=RopedTree), m: int, axes: mat33, arm: vec3, w: int):
    """What rows have on the link of a surface, or of what holds a rope."""
    for row in range(3):
        f = vec3(-axes[0, row], -axes[1, row], -axes[2, row])
        g = wp.cross(arm, f)
        at = TOUCH_ROW * m + 12 * row + 6
        for r in range(3):
            x[0].touch_rows[at + r, w] = f[r]
            x[0].touch_rows[at + 3 + r, w] = g[r]


@wp.func
def link_com(x: wp.array(dtype=RopedTree), b: int, w: int, stands: bool) -> vec3:
    if stands:
        return recall_triple(x[0].tree, b, AT_COM, w)
    return mean_com(x, b, w)


@wp.func
def touch_rows(x: wp.array(dtype=RopedTree), w: int, anew: bool, stands: bool):
    """What rows do to links and ropes; with `anew`, after an elimination with new factors."""
    s = x[0].rope
    t = x[0].tree
    c = x[0].touch
    for k in range(s[0].ropes.count):
        if t[0].rope_width[k, w] > 0:
            if anew:
                find_mobility(x, k, w)
            find_gains(x, k, w)
    if not anew:
        return
    for m in range(t[0].rope_live[w]):
        clear_row(x, m, w)
        e = t[0].rope_ends[ENDS_OF * m + 5, w]
        b = t[0].rope_ends[ENDS_OF * m + 2, w]
        if e < 0:
            axes = wp.identity(n=3, dtype=real)
            k = t[0].rope_ends[ENDS_OF * m + 3, w]
            add_point(x, m, 0, 0, hold_slot(x, m, w), real(1.0), axes, first_arm_of(x, k, w, stands), w)
            if b >= 0:
                add_link(x, m, axes, link_com(x, b, w, stands) + hold_arm(x, m, w, False), w)
        elif e >= c[0].base:
            p = e - c[0].base
            axes = x[0].touch_push[m, w]
            i = c[0].pair_b[p, w]
            kb = c[0].rope_of[i]
            arm = first_arm_of(x, kb, w, stands)
            add_point(x, m, 0, 0, i, real(1.0) - c[0].pair_t[p, w], axes, arm, w)
            add_point(x, m, 0, 1, i + 1, c[0].pair_t[p, w], axes, arm, w)
            i = c[0].pair_a[p, w]
            ka = c[0].rope_of[i]
            arm = first_arm_of(x, ka, w, stands)
            add_point(x, m, 1, 2, i, c[0].pair_s[p, w] - real(1.0), axes, arm, w)
            add_point(x, m, 1, 3, i + 1, -c[0].pair_s[p, w], axes, arm, w)
        else:
            axes = x[0].touch_push[m, w]
            i = e / MOST
            add_point(x, m, 0, 0, i, real(1.0), axes, first_arm_of(x, c[0].rope_of[i], w, stands), w)
            if b >= 0:
                arm = wp.where(stands, c[0].arm[e, w], mean_arm(x, e, w))
                add_link(x, m, axes, link_com(x, b, w, stands) + arm, w)


@wp.func
def aim(x: wp.array(dtype=RopedTree), m: int, w: int, u: vec3, acts: real):
    for k in range(3):
        x[0].touch_rows[TOUCH_ROW * m + TOUCH_AIMS + k, w] = u[k]
    x[0].touch_rows[TOUCH_ROW * m + TOUCH_ACTS, w] = acts


@wp.func
def ask_contacts(x: wp.array(dtype=RopedTree), w: int):
    """What rows miss in a pass."""
    s = x[0].rope
    t = x[0].tree
    scale = real(0.25) * s[0].h[w]
    for m in range(t[0].rope_live[w]):
        e = t[0].rope_ends[ENDS_OF * m + 5, w]
        if e < 0:
            k = t[0].rope_ends[ENDS_OF * m + 3, w]
            aim(x, m, w, x[0].free[hold_slot(x, m, w), w] * (scale * real(2.0) * s[0].work.weight[k, w]), real(1.0))
        else:
            u = speed_against(x, e, w, ask_axes(x, e, w), speed_now(x, e, w) + gain_of(x, e, w))
            mu = friction_of(x, e, w)
            aim(x, m, w, vec3(u[0], u[1] * mu, u[2] * mu) * scale, real(1.0))


@wp.func
def judge_friction(x: wp.array(dtype=RopedTree), w: int) -> int:
    """How many points friction drives, which it stops at the end of the step or slides back, that were not known to be."""
    t = x[0].tree
    c = x[0].touch
    found = int(0)
    for m in range(x[0].holds, t[0].rope_live[w]):
        e = t[0].rope_ends[ENDS_OF * m + 5, w]
        if c[0].back[e, w] == 0:
            P = touch_impulse(x, m, w, int(TOUCH_NOW))
            n = c[0].n[e, w]
            along = P - n * wp.dot(n, P)
            way = c[0].came[e, w] + speed_now(x, e, w)
            if wp.dot(along, way) > SLOW * wp.length(along):
                c[0].back[e, w] = 1
                found = found + 1
    return found


# ---- after a part of a step ----------------------------------------------------------------------------------------------------


@wp.func
def keep_contacts(x: wp.array(dtype=RopedTree), w: int):
    """Impulses of a part that was made, for the next to begin from and for the caller to read, and whether points come in."""
    s = x[0].rope
    t = x[0].tree
    c = x[0].touch
    whole = s[0].settings.dt[0] / s[0].h[w]
    scale = real(0.25) * s[0].h[w]
    x[0].strikes[w] = 0
    for m in range(c[0].live[w]):
        e = c[0].entry[m, w]
        c[0].impulse[e, w] = vec3()
    for m in range(x[0].holds, t[0].rope_live[w]):
        e = t[0].rope_ends[ENDS_OF * m + 5, w]
        P = touch_impulse(x, m, w, int(TOUCH_NOW)) * (whole / scale)
        c[0].impulse[e, w] = P
        c[0].centre[e, w] = P
        u = speed_now(x, e, w)
        c[0].miss[e, w] = u
        speed = wp.dot(c[0].n[e, w], u)
        if speed + LANDS < -wp.max(c[0].gap[e, w], real(0.0)) / s[0].settings.dt[0]:
            x[0].strikes[w] = 1
    keep_points(c, w)


@wp.func
def strike_points(x: wp.array(dtype=RopedTree), w: int, strikes: bool):
    """Rows as velocities are projected: what comes in faster than a step bears is stopped to arrive at its end."""
    s = x[0].rope
    t = x[0].tree
    c = x[0].touch
    scale = real(0.5) * x[0].scaled[w]
    for m in range(x[0].holds, t[0].rope_live[w]):
        e = t[0].rope_ends[ENDS_OF * m + 5, w]
        c[0].first_n[e, w] = c[0].n[e, w]
        axes = push_axes(x, e, w)
        mu = friction_of(x, e, w)
        x[0].touch_push[m, w] = wp.matrix_from_cols(
            vec3(axes[0, 0], axes[1, 0], axes[2, 0]),
            vec3(axes[0, 1], axes[1, 1], axes[2, 1]) * mu,
            vec3(axes[0, 2], axes[1, 2], axes[2, 2]) * mu,
        )
    touch_rows(x, w, True, True)
    for m in range(t[0].rope_live[w]):
        for k in range(3):
            x[0].touch_rows[TOUCH_ROW * m + TOUCH_NOW + k, w] = real(0.0)
            x[0].touch_rows[TOUCH_ROW * m + TOUCH_CHANGE + k, w] = real(0.0)
        e = t[0].rope_ends[ENDS_OF * m + 5, w]
        k = t[0].rope_ends[ENDS_OF * m + 3, w]
        if e < 0:
            i = hold_slot(x, m, w)
            v = s[0].work.v[i, w] + x[0].free[i, w] - carried_speed(x, i, w)
            aim(x, m, w, v * scale, real(1.0))
        else:
            v = vec3()
            if e >= c[0].base:
                p = e - c[0].base
                v = between(s[0].work.v, c, p, w) + between(x[0].free, c, p, w)
                a = c[0].pair_a[p, w]
                b = c[0].pair_b[p, w]
                on_a = c[0].pair_s[p, w]
                on_b = c[0].pair_t[p, w]
                v = v - carried_speed(x, b, w) * (real(1.0) - on_b) - carried_speed(x, b + 1, w) * on_b
                v = v + carried_speed(x, a, w) * (real(1.0) - on_a) + carried_speed(x, a + 1, w) * on_a
            else:
                i = e / MOST
                v = s[0].work.v[i, w] + x[0].free[i, w] - carried_speed(x, i, w)
                v = v - belt_speed(x[0].collision, c[0].shape[e, w], w)
                b = x[0].collision[0].shapes.body[c[0].shape[e, w]]
                if t[0].rope_ends[ENDS_OF * m + 2, w] < 0 and s[0].bodies.motion[b] != FIXED:
                    v = v - s[0].body.v[b, w] - wp.cross(s[0].body.w[b, w], c[0].arm[e, w])
            u = wp.transpose(ask_axes(x, e, w)) * v
            mu = friction_of(x, e, w)
            off = wp.max(c[0].gap[e, w], real(0.0)) / s[0].settings.dt[0]
            acts = real(-1.0)
            if strikes:
                acts = real(1.0)
            aim(x, m, w, vec3(u[0] + off, u[1] * mu, u[2] * mu) * scale, acts)


@wp.func
def carried_speed(x: wp.array(dtype=RopedTree), i: int, w: int) -> vec3:
    """What the velocity of a rope's first end makes of that of a point."""
    s = x[0].rope
    k = x[0].touch[0].rope_of[i]
    a = first_link(x, k)
    if a < 0:
        return vec3()
    b = s[0].ropes.body[2 * k]
    first = s[0].ropes.first[k]
    n = x[0].place_of[i, w]
    v = s[0].body_state.velocity[b, w] + wp.cross(s[0].body_state.spin[b, w], s[0].work.arm[2 * k, w])
    return x[0].along_P[first + n, w] * v + x[0].along_Q[first + n, w] * s[0].body_state.spin[b, w]


@wp.func
def stand_still(x: wp.array(dtype=RopedTree), w: int):
    """Rows as links are displaced: what holds ropes keeps them, points of contact do nothing."""
    t = x[0].tree
    touch_rows(x, w, True, True)
    for m in range(t[0].rope_live[w]):
        for k in range(3):
            x[0].touch_rows[TOUCH_ROW * m + TOUCH_CHANGE + k, w] = real(0.0)
        if t[0].rope_ends[ENDS_OF * m + 5, w] < 0:
            i = hold_slot(x, m, w)
            aim(x, m, w, x[0].free[i, w] * (real(0.5) * x[0].scaled[w]), real(1.0))
        else:
            aim(x, m, w, vec3(), real(-1.0))
