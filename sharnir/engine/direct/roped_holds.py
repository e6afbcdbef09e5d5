"""Where links hold ropes beside their first ends: last ends, their orientation where it is clamped, points between the ends.

Each is three rows beside the forest (`engine.tree.ropes`). The moment of a clamped last end falls by K of its link and grows by J
of the element (`rope.equations`), both of which may be singular: its rows are (K φ_link − J φ_element)/l = σ, and l σ is the
moment. An impulse of such a row moves the link and the rope, hence the link of the first end, by X and Y; the rope moves there by
P and Q of that link's twist. Rows of one rope are coupled along it, too.
"""

import warp as wp

from sharnir.core.types import mat33, real, vec3
from sharnir.engine.direct.roped_data import (
    AT_COM,
    AT_W,
    CROSS,
    LAST,
    TIE,
    TURN,
    HoldRow,
    RopedTree,
    end_com,
    lack,
    mean_com,
    put_gaps,
    put_rows,
    speed_at,
    steepen,
)
from sharnir.engine.rope.chain import SLACK, is_slack
from sharnir.engine.rope.data import BODY, DRIVEN, UNHELD, RopeStep
from sharnir.engine.rope.data import ROPE as HUNG_ON
from sharnir.engine.rope.terms import skew, times_skew
from sharnir.engine.tree.runtime import recall_triple


@wp.struct
class Along:
    """A unit impulse of a hold at some point: what hangs there is less by X and Y, the hold moves by P and Q of its change."""

    X: mat33
    Y: mat33
    P: mat33
    Q: mat33


@wp.struct
class Coupled:
    """Two holds of a rope at its first end: by how much each moves by a unit impulse of the other, the last point free."""

    one: Along
    two: Along
    G_12: mat33
    G_21: mat33


# ---- along the rope ---------------------------------------------------------------------------------------------------------


@wp.func
def begin_along(x: wp.array(dtype=RopedTree), h: int, w: int) -> Along:
    """A hold at its own point."""
    out = Along()
    if x[0].hold_kind[h] == TURN:
        out.Y = wp.identity(n=3, dtype=real) * x[0].hold_by[h, w]
        out.Q = x[0].hold_J[h, w]
    else:
        out.X = wp.identity(n=3, dtype=real)
        out.P = out.X
    return out


@wp.func
def hold_slot(x: wp.array(dtype=RopedTree), h: int, w: int) -> int:
    """The slot at which a hold acts: of an orientation, that of the last element."""
    s = x[0].rope
    k = x[0].hold_rope[h]
    if x[0].hold_kind[h] == TIE:
        return s[0].ropes.tie_slot[x[0].hold_tie[h]]
    return s[0].ropes.first[k] + s[0].state.segments[k, w] - int(x[0].hold_kind[h] == TURN)


@wp.func
def across(s: wp.array(dtype=RopeStep), h: Along, j: int, w: int) -> Along:
    """Once the element of point j is eliminated by its interface."""
    UY = s[0].work.U[j, w] * h.Y
    QU = h.Q * s[0].work.U[j, w]
    out = Along()
    out.X = h.X - s[0].work.B[j, w] * UY
    out.P = h.P - QU * s[0].work.C[j, w]
    if s[0].work.bar[j, w] > real(0.0):
        out.Y = s[0].work.K[j, w] * UY
        out.Q = QU * s[0].work.J[j, w]
    return out


@wp.func
def back_along(s: wp.array(dtype=RopeStep), h: Along, j: int, w: int) -> Along:
    """At the first point of the element before point j."""
    m = j - 1
    out = Along()
    if s[0].state.cut[m, w] == 1:
        return out
    X = h.X
    Y = h.Y
    P = h.P
    Q = h.Q
    if is_slack(s, m, w):
        give = s[0].work.slide[j, w]
        along = (s[0].work.axis[m, w] * h.X) * give
        moves = (h.P * s[0].work.tip[m, w]) * give
        X = X - wp.outer(s[0].work.slide_v[j, w], along)
        Y = Y - wp.outer(s[0].work.slide_w[j, w], along)
        P = P - wp.outer(moves, s[0].work.felt_v[j, w])
        Q = Q - wp.outer(moves, s[0].work.felt_w[j, w])
    out.X = X
    out.P = P
    out.Y = Y + skew(s[0].work.mean_tip[m, w]) * X
    out.Q = Q - times_skew(P, s[0].work.tip[m, w] * s[0].work.reach[m, w])
    return out


@wp.func
def share_element(s: wp.array(dtype=RopeStep), one: Along, two: Along, j: int, w: int) -> mat33:
    """What an impulse of the second moves the first by, through the element before point j."""
    m = j - 1
    if s[0].state.cut[m, w] == 1:
        return one.P * s[0].work.loose[j, w] * two.X
    if is_slack(s, m, w):
        return wp.outer(one.P * s[0].work.tip[m, w], (s[0].work.axis[m, w] * two.X) * s[0].work.slide[j, w])
    return mat33(real(0.0))


@wp.func
def couple_along(
    s: wp.array(dtype=RopeStep), k: int, w: int, start_1: Along, at_1: int, start_2: Along, at_2: int
) -> Coupled:  # fmt: skip
    """Two holds of rope k, which act at two slots, or one of them with itself."""
    first = s[0].ropes.first[k]
    top = wp.max(at_1, at_2)
    one = start_1
    two = start_2
    G_12 = mat33(real(0.0))
    G_21 = mat33(real(0.0))
    for back in range(top - first + 1):
        j = top - back
        if j <= at_1 and j <= at_2:
            G_12 = G_12 + one.Q * s[0].work.U[j, w] * two.Y
            G_21 = G_21 + two.Q * s[0].work.U[j, w] * one.Y
        if j <= at_1:
            one = across(s, one, j, w)
        if j <= at_2:
            two = across(s, two, j, w)
        if j > first:
            if j <= at_1 and j <= at_2:
                G_12 = G_12 + share_element(s, one, two, j, w)
                G_21 = G_21 + share_element(s, two, one, j, w)
            if j <= at_1:
                one = back_along(s, one, j, w)
            if j <= at_2:
                two = back_along(s, two, j, w)
    out = Coupled()
    out.one = one
    out.two = two
    out.G_12 = G_12
    out.G_21 = G_21
    return out


@wp.func
def stay(s: wp.array(dtype=RopeStep), k: int, w: int, hold: Along, by_out: mat33, by_in: mat33) -> Along:
    """A hold at the first end of rope k, whose last point stays: what holds it pushes back as the hold pushes, and is felt."""
    G = s[0].work.G[k, w]
    out = Along()
    out.X = hold.X - s[0].work.last_X[k, w] * G * by_out
    out.Y = hold.Y - s[0].work.last_Y[k, w] * G * by_out
    out.P = hold.P - by_in * G * s[0].work.last_P[k, w]
    out.Q = hold.Q - by_in * G * s[0].work.last_Q[k, w]
    return out


@wp.func
def at_last() -> Along:
    """What acts on a last point."""
    out = Along()
    out.X = wp.identity(n=3, dtype=real)
    out.P = out.X
    return out


@wp.func
def cross_rope(s: wp.array(dtype=RopeStep), k: int, w: int, one: Along, at_1: int, two: Along, at_2: int) -> Coupled:
    """Two holds, or one and −1, from slots of rope k to its first end, which may be free, beside a last that does not yield."""
    out = couple_along(s, k, w, one, at_1, two, at_2)
    if s[0].ropes.kind[2 * k + 1] == DRIVEN:
        G = s[0].work.G[k, w]
        n = s[0].ropes.first[k] + s[0].state.segments[k, w]
        by_1 = couple_along(s, k, w, at_last(), n, one, at_1)
        by_2 = couple_along(s, k, w, at_last(), n, two, at_2)
        out.G_12 = out.G_12 - by_1.G_21 * G * by_2.G_12
        out.G_21 = out.G_21 - by_2.G_21 * G * by_1.G_12
        out.one = stay(s, k, w, out.one, by_1.G_12, by_1.G_21)
        out.two = stay(s, k, w, out.two, by_2.G_12, by_2.G_21)
    if s[0].ropes.kind[2 * k] == UNHELD:
        free = wp.inverse(s[0].work.Z_A[k, w])
        out.G_12 = out.G_12 + out.one.P * free * out.two.X
        out.G_21 = out.G_21 + out.two.P * free * out.one.X
    return out


@wp.func
def on_rope(hold: Along) -> Along:
    """A hold of a rope that hangs on another, at the point of that: it feels forces alone."""
    out = Along()
    out.X = hold.X
    out.P = hold.P
    return out


@wp.func
def couple_holds(x: wp.array(dtype=RopedTree), h_1: int, h_2: int, w: int) -> Coupled:
    """Two holds at the first end of the rope on which both ropes hang, or which they hold."""
    s = x[0].rope
    k_1 = int(x[0].hold_rope[h_1])
    k_2 = int(x[0].hold_rope[h_2])
    at_1 = int(hold_slot(x, h_1, w))
    at_2 = int(hold_slot(x, h_2, w))
    one = begin_along(x, h_1, w)
    two = begin_along(x, h_2, w)
    G_12 = mat33(real(0.0))
    G_21 = mat33(real(0.0))
    hangs = bool(True)
    while hangs:
        k = k_1
        n_1 = at_1
        n_2 = at_2
        if x[0].rank[k_1] < x[0].rank[k_2]:
            n_2 = -1
        elif x[0].rank[k_2] < x[0].rank[k_1]:
            k = k_2
            n_1 = -1
        crossed = cross_rope(s, k, w, one, n_1, two, n_2)
        G_12 = G_12 + crossed.G_12
        G_21 = G_21 + crossed.G_21
        hangs = s[0].ropes.kind[2 * k] == HUNG_ON
        if n_1 >= 0:
            one = crossed.one
            if hangs:
                one = on_rope(one)
                at_1 = s[0].ropes.body[2 * k]
                k_1 = x[0].base[k]
        if n_2 >= 0:
            two = crossed.two
            if hangs:
                two = on_rope(two)
                at_2 = s[0].ropes.body[2 * k]
                k_2 = x[0].base[k]
    out = Coupled()
    out.one = one
    out.two = two
    out.G_12 = G_12
    out.G_21 = G_21
    return out


@wp.func
def free_speed(x: wp.array(dtype=RopedTree), h: int, w: int) -> vec3:
    """g of a hold: how it moves in the pass if the link of the first end does not and nothing pulls there."""
    s = x[0].rope
    k = int(x[0].hold_rope[h])
    top = int(hold_slot(x, h, w))
    own = begin_along(x, h, w)
    g = vec3(real(0.0))
    hangs = bool(True)
    while hangs:
        g = g + speed_along(s, k, w, own, top)
        hangs = s[0].ropes.kind[2 * k] == HUNG_ON
        if hangs:
            crossed = cross_rope(s, k, w, own, top, own, -1)
            own = on_rope(crossed.one)
            top = s[0].ropes.body[2 * k]
            k = x[0].base[k]
    return g


@wp.func
def speed_along(s: wp.array(dtype=RopeStep), k: int, w: int, start: Along, top: int) -> vec3:
    """The part of that which rope k moves by, along which a hold goes from slot `top`."""
    first = s[0].ropes.first[k]
    own = start
    g = vec3(real(0.0))
    for back in range(top - first + 1):
        j = top - back
        t = -s[0].work.bias[j, w]
        if s[0].work.bar[j, w] > real(0.0):
            t = t + s[0].work.e[j, w]
        if j > first:
            if s[0].state.cut[j - 1, w] == 0:
                g = g + own.P * s[0].work.c[j - 1, w]
        g = g + own.Q * (s[0].work.U[j, w] * t)
        own = across(s, own, j, w)
        if j > first:
            if s[0].state.cut[j - 1, w] == 1:
                g = g + own.P * s[0].work.loose_v[j, w]
            elif is_slack(s, j - 1, w):
                g = g + own.P * s[0].work.tip[j - 1, w] * s[0].work.slides[j, w]
            own = back_along(s, own, j, w)
    P = own.P
    if s[0].ropes.kind[2 * k + 1] == DRIVEN:
        by = couple_along(s, k, w, at_last(), first + s[0].state.segments[k, w], start, top)
        g = g - by.G_21 * (s[0].work.G[k, w] * s[0].work.g[k, w])
        P = P - by.G_21 * s[0].work.G[k, w] * s[0].work.last_P[k, w]
    if s[0].ropes.kind[2 * k] == UNHELD:
        g = g - P * (wp.inverse(s[0].work.Z_A[k, w]) * s[0].work.p_l[k, w])
    return g


@wp.func
def find_hold(x: wp.array(dtype=RopedTree), h: int, w: int) -> HoldRow:
    """The rows of a hold at the first end of its rope."""
    s = x[0].rope
    k = x[0].hold_rope[h]
    row = HoldRow()
    row.on = real(1.0)
    if x[0].hold_kind[h] == LAST and s[0].ropes.kind[2 * k] != HUNG_ON:
        row.X = s[0].work.last_X[k, w]
        row.Y = s[0].work.last_Y[k, w]
        row.P = s[0].work.last_P[k, w]
        row.Q = s[0].work.last_Q[k, w]
        row.G = wp.inverse(s[0].work.G[k, w])
        return row
    found = couple_holds(x, h, h, w)
    row.X = found.one.X
    row.Y = found.one.Y
    row.P = found.one.P
    row.Q = found.one.Q
    share = real(1.0)  # σ itself
    if x[0].hold_kind[h] != TURN:
        share = SLACK * wp.trace(found.G_12) + real(1.0e-30)
    else:
        row.turns = 1
        row.on = x[0].hold_by[h, w]
        row.feels = x[0].hold_K[h, w]
    row.G = found.G_12 + wp.identity(n=3, dtype=real) * share
    return row


@wp.func
def speed_of(x: wp.array(dtype=RopedTree), h: int, w: int) -> vec3:
    """g of a hold."""
    k = x[0].hold_rope[h]
    if x[0].hold_kind[h] == LAST and x[0].rope[0].ropes.kind[2 * k] != HUNG_ON:
        return x[0].rope[0].work.g[k, w]
    return free_speed(x, h, w)


@wp.func
def couple_rows(x: wp.array(dtype=RopedTree), w: int, standing: bool):
    """What rows of ropes that hang together do to each other along these."""
    for p in range(x[0].pairs):
        a = x[0].pair_a[p]
        b = x[0].pair_b[p]
        soft_a = real(1.0)
        soft_b = real(1.0)
        if not standing:
            soft_a = real(2.0) * x[0].rope[0].work.weight[x[0].hold_rope[a], w]
            soft_b = real(2.0) * x[0].rope[0].work.weight[x[0].hold_rope[b], w]
        found = couple_holds(x, a, b, w)
        lower = wp.transpose(x[0].axes[a, w]) * found.G_12 * x[0].axes[b, w] * soft_a
        upper = wp.transpose(x[0].axes[b, w]) * found.G_21 * x[0].axes[a, w] * soft_b
        for j in range(9):
            x[0].cross[CROSS * p + j, w] = lower[j // 3, j % 3]
            x[0].cross[CROSS * p + 9 + j, w] = upper[j // 3, j % 3]


# ---- on links ---------------------------------------------------------------------------------------------------------------


@wp.func
def hold_arm(x: wp.array(dtype=RopedTree), h: int, w: int, end: bool) -> vec3:
    """From the centre of a hold's body to its point, at the mean or at the end of the step."""
    s = x[0].rope
    if x[0].hold_kind[h] == TIE:
        if end:
            return s[0].work.tie_end[x[0].hold_tie[h], w]
        return s[0].work.tie_arm[x[0].hold_tie[h], w]
    if end:
        return s[0].work.end_arm[2 * x[0].hold_rope[h] + 1, w]
    return s[0].work.arm[2 * x[0].hold_rope[h] + 1, w]


@wp.func
def first_link(x: wp.array(dtype=RopedTree), k: int) -> int:
    """The link of a rope's first end; −1: none holds it that yields."""
    s = x[0].rope
    if s[0].ropes.kind[2 * k] == BODY:
        return x[0].link_of[s[0].ropes.body[2 * k]]
    return -1


@wp.func
def last_moment(s: wp.array(dtype=RopeStep), k: int, w: int) -> vec3:
    """The impulse moment of a clamped last end on its link."""
    return s[0].state.moment[s[0].ropes.first[k] + s[0].state.segments[k, w], w]


@wp.func
def hold_force(x: wp.array(dtype=RopedTree), h: int, w: int) -> vec3:
    """What a hold gives to its rope at a point."""
    s = x[0].rope
    if x[0].hold_kind[h] == TIE:
        return s[0].state.tie_force[x[0].hold_tie[h], w]
    return s[0].state.end_force[2 * x[0].hold_rope[h] + 1, w]


@wp.func
def hang_hold(x: wp.array(dtype=RopedTree), h: int, w: int, anew: bool):
    """What the link of a hold gives to the rope in a pass, and the rows."""
    s = x[0].rope
    k = x[0].hold_rope[h]
    root = x[0].root[k]
    a = first_link(x, root)
    b = x[0].hold_link[h]
    step = s[0].h[w]
    weight = s[0].work.weight[k, w]
    mean = vec3(real(0.0))
    end = mean
    if a >= 0:
        mean = mean_com(x, a, w) + s[0].work.arm[2 * root, w]
        end = end_com(x, a, w) + s[0].work.end_arm[2 * root, w]
    held = mean_com(x, b, w) + hold_arm(x, h, w, False)
    held_end = end_com(x, b, w) + hold_arm(x, h, w, True)
    if x[0].hold_kind[h] == TURN:
        last = s[0].ropes.first[k] + s[0].state.segments[k, w]
        lack(x, b, w, vec3(real(0.0)), (last_moment(s, k, w) + s[0].work.e[last, w]) * (real(-0.25) * step))
    else:
        f = hold_force(x, h, w) * (real(0.25) * step)
        lack(x, b, w, f, wp.cross(held, f))
        if anew:
            none = mat33(real(0.0))
            steepen(x, b, w, none, none, none, skew(f) * skew(held_end))
    if x[0].touches == 1:
        return
    if anew:
        row = find_hold(x, h, w)
        row.P = row.P * (weight / s[0].work.weight[root, w])
        row.Q = row.Q * (weight / s[0].work.weight[root, w])
        put_rows(x, h, w, row, mean, end, held, held_end, real(2.0) * weight)
    put_gaps(x, h, w, speed_of(x, h, w) * (real(-0.5) * step * weight))


@wp.func
def report_hold(x: wp.array(dtype=RopedTree), h: int, w: int):
    """What a link gave."""
    s = x[0].rope
    scale = real(0.25) * s[0].h[w]
    b = x[0].hold_link[h]
    if x[0].hold_kind[h] == TURN:
        lack(x, b, w, vec3(real(0.0)), last_moment(s, x[0].hold_rope[h], w) * -scale)
    else:
        f = hold_force(x, h, w) * scale
        lack(x, b, w, f, wp.cross(mean_com(x, b, w) + hold_arm(x, h, w, False), f))


@wp.func
def stand_hold(x: wp.array(dtype=RopedTree), h: int, w: int, closing: bool):
    """The rows of a hold as velocities are projected, which seek a velocity, not a change of it; or as links are displaced."""
    s = x[0].rope
    if x[0].touches == 1:
        return
    root = x[0].root[x[0].hold_rope[h]]
    a = first_link(x, root)
    b = x[0].hold_link[h]
    arm = vec3(real(0.0))
    if a >= 0:
        arm = recall_triple(x[0].tree, a, AT_COM, w) + s[0].work.arm[2 * root, w]
    own = hold_arm(x, h, w, False)
    held = recall_triple(x[0].tree, b, AT_COM, w) + own
    row = find_hold(x, h, w)
    put_rows(x, h, w, row, arm, arm, held, held, real(1.0))
    gap = speed_of(x, h, w) * (real(-0.5) * x[0].scaled[w])
    if not closing:
        if x[0].hold_kind[h] != TURN:
            gap = gap - speed_at(x, b, w, own)
        if a >= 0:
            gap = gap + row.P * speed_at(x, a, w, s[0].work.arm[2 * root, w]) + row.Q * recall_triple(x[0].tree, a, AT_W, w)
    put_gaps(x, h, w, gap)
