"""Winches in the steps of trees: a drum, the axis of a joint, winds a rope whose tension turns it (theory: ropes).

The length of the element at the reel is l = l₀ − R q, q the angle of the drum's joint, and in a pass its points slide along it by
an unknown σ (`rope.chain`), with an axial impulse ρ. The row of a winch, beside those of last ends, is ½h ϑ σ + ½R δq = 0. Its
impulse is −¼h δρ, it turns the drum by R ρ, and acts through the rope on the link of the first end, as σ follows that. A last
point that is held stays where it is in this row, by an impulse on what holds it: so the rows of the last end are not coupled with
it but through links.
"""

import warp as wp

from sharnir.core.spatial import matrix
from sharnir.core.types import mat33, real, vec3
from sharnir.engine.direct.roped_data import (
    AT_COM,
    WINCH,
    WINCH_DRIVES,
    WINCH_LEADS,
    RopedTree,
    end_com,
    is_wound,
    mean_com,
)
from sharnir.engine.rope.chain import beyond, is_slack
from sharnir.engine.rope.data import BODY, DRIVEN, LOOP, UNHELD, RopeStep
from sharnir.engine.rope.energy import slide_axis
from sharnir.engine.rope.slack import reel_element
from sharnir.engine.rope.winch import drum_axis
from sharnir.engine.tree.runtime import recall_triple
from sharnir.model.model import DYNAMIC


@wp.struct
class WinchRow:
    """The row of a winch at a rope's first end and at a last end that is held."""

    X: vec3  # by a unit of ρ the link of the first end lacks −X and −Y less
    Y: vec3
    P: vec3  # σ = P·v + Q·ω + B·v_last + G ρ + g
    Q: vec3
    A: vec3  # impulse on what holds the last end, by a unit of ρ
    B: vec3
    leads: vec3  # by how much a unit of ρ would move the last point
    G: real
    g: real


# ---- along the rope ---------------------------------------------------------------------------------------------------------


@wp.func
def beyond_speed(s: wp.array(dtype=RopeStep), i: int, w: int) -> mat33:
    """P of a held last end once element i is eliminated."""
    return s[0].work.P[i, w] - s[0].work.Q[i, w] * (s[0].work.U[i, w] * s[0].work.C[i, w])


@wp.func
def is_end_held(s: wp.array(dtype=RopeStep), k: int) -> bool:
    """Whether a rope's last end is held, by what yields or does not."""
    return s[0].ropes.kind[2 * k + 1] == DRIVEN or s[0].ropes.kind[2 * k + 1] == LOOP


@wp.func
def at_reel(s: wp.array(dtype=RopeStep), e: int, w: int, held: bool) -> WinchRow:
    """The row at the first point of the wound element e; B is what an impulse on the last point does to σ, for now."""
    i = e + 1
    give = s[0].work.slide[i, w]
    row = WinchRow()
    row.X = s[0].work.slide_v[i, w] * -give
    row.Y = s[0].work.slide_w[i, w] * -give + wp.cross(s[0].work.mean_tip[e, w], row.X)
    row.P = s[0].work.felt_v[i, w] * -give
    row.Q = s[0].work.felt_w[i, w] * -give + wp.cross(s[0].work.tip[e, w] * s[0].work.reach[e, w], row.P)
    row.G = give
    row.g = s[0].work.slides[i, w]
    if held:
        row.leads = beyond_speed(s, i, w) * s[0].work.tip[e, w] * give
        row.B = s[0].work.axis[e, w] * beyond(s, i, w, s[0].work.X[i, w], s[0].work.Y[i, w]) * give
    return row


@wp.func
def across_interface(s: wp.array(dtype=RopeStep), row: WinchRow, first: int, j: int, w: int, held: bool) -> WinchRow:
    """The row once the element of point j is eliminated by its interface."""
    U = s[0].work.U[j, w]
    UY = U * row.Y
    QU = row.Q * U
    bends = s[0].work.bar[j, w] > real(0.0)
    t = -s[0].work.bias[j, w]
    if bends:
        t = t + s[0].work.e[j, w]
    out = WinchRow()
    out.leads = row.leads
    out.B = row.B
    if held:
        out.leads = row.leads + s[0].work.Q[j, w] * UY
        out.B = row.B + QU * s[0].work.Y[j, w]
    out.G = row.G + wp.dot(QU, row.Y)
    out.g = row.g + wp.dot(QU, t)
    if j > first:
        if s[0].state.cut[j - 1, w] == 0:
            out.g = out.g + wp.dot(row.P, s[0].work.c[j - 1, w])
    out.X = row.X - s[0].work.B[j, w] * UY
    out.P = row.P - QU * s[0].work.C[j, w]
    if bends:
        out.Y = s[0].work.K[j, w] * UY
        out.Q = QU * s[0].work.J[j, w]
    return out


@wp.func
def along_element(s: wp.array(dtype=RopeStep), row: WinchRow, j: int, w: int, held: bool) -> WinchRow:
    """The row at the first point of the element before point j."""
    m = j - 1
    last_X = mat33(real(0.0))
    last_P = mat33(real(0.0))
    if held:
        last_X = beyond(s, j, w, s[0].work.X[j, w], s[0].work.Y[j, w])
        last_P = beyond_speed(s, j, w)
    out = WinchRow()
    out.leads = row.leads
    out.B = row.B
    out.G = row.G
    out.g = row.g
    if s[0].state.cut[m, w] == 1:
        moved = s[0].work.loose[j, w] * row.X
        out.leads = row.leads + last_P * moved
        out.B = row.B + (row.P * s[0].work.loose[j, w]) * last_X
        out.G = row.G + wp.dot(row.P, moved)
        out.g = row.g + wp.dot(row.P, s[0].work.loose_v[j, w])
        return out
    X = row.X
    Y = row.Y
    P = row.P
    Q = row.Q
    if is_slack(s, m, w):
        along = wp.dot(s[0].work.axis[m, w], row.X) * s[0].work.slide[j, w]
        moves = wp.dot(row.P, s[0].work.tip[m, w])
        felt = moves * s[0].work.slide[j, w]
        out.leads = row.leads + last_P * s[0].work.tip[m, w] * along
        out.B = row.B + s[0].work.axis[m, w] * last_X * felt
        out.G = row.G + moves * along
        out.g = row.g + moves * s[0].work.slides[j, w]
        X = X - s[0].work.slide_v[j, w] * along
        Y = Y - s[0].work.slide_w[j, w] * along
        P = P - s[0].work.felt_v[j, w] * felt
        Q = Q - s[0].work.felt_w[j, w] * felt
    out.X = X
    out.P = P
    out.Y = Y + wp.cross(s[0].work.mean_tip[m, w], X)
    out.Q = Q + wp.cross(s[0].work.tip[m, w] * s[0].work.reach[m, w], P)
    return out


@wp.func
def find_winch(s: wp.array(dtype=RopeStep), k: int, w: int) -> WinchRow:
    """From the wound element to the first end, by what the elimination left at the points between (`rope.equations`)."""
    e = reel_element(s, k, w)
    first = s[0].ropes.first[k]
    held = is_end_held(s, k)
    row = at_reel(s, e, w, held)
    for back in range(e - first + 1):
        row = across_interface(s, row, first, e - back, w, held)
        if e - back > first:
            row = along_element(s, row, e - back, w, held)
    X = row.X
    P = row.P
    if held:  # the last point stays: what holds it pushes back
        A = s[0].work.G[k, w] * row.leads
        B = row.B * s[0].work.G[k, w]
        X = X - s[0].work.last_X[k, w] * A
        P = P - B * s[0].work.last_P[k, w]
        row.Y = row.Y - s[0].work.last_Y[k, w] * A
        row.Q = row.Q - B * s[0].work.last_Q[k, w]
        row.G = row.G - wp.dot(B, row.leads)
        row.g = row.g - wp.dot(B, s[0].work.g[k, w])
        row.A = A
        row.B = B
    if s[0].ropes.kind[2 * k] == UNHELD:
        free = wp.inverse(s[0].work.Z_A[k, w])
        row.G = row.G + wp.dot(P, free * X)
        row.g = row.g - wp.dot(P, free * s[0].work.p_l[k, w])
    row.X = X
    row.P = P
    return row


# ---- drums ------------------------------------------------------------------------------------------------------------------


@wp.func
def spin_of_drum(s: wp.array(dtype=RopeStep), k: int, w: int) -> real:
    """How fast a drum turns at the pose, rad/s."""
    child = s[0].body_state.spin[s[0].ropes.drum_child[k], w]
    return wp.dot(drum_axis(s, k, w), child - s[0].body_state.spin[s[0].ropes.drum_parent[k], w])


@wp.func
def note_drums(s: wp.array(dtype=RopeStep), w: int):
    """How fast winches pay out at the pose: a step turns bodies by 2 atan(½Δt ω), and paying out goes with the angle."""
    half = real(0.5) * s[0].h[w]
    for k in range(s[0].ropes.count):
        if s[0].ropes.winch[k] >= 0:
            s[0].state.reel_now[k, w] = -s[0].ropes.drum[k] * wp.atan(half * spin_of_drum(s, k, w)) / half


@wp.func
def spin_in_state(x: wp.array(dtype=RopedTree), b: int, w: int) -> vec3:
    """Spin of a body in the state; of a dynamic one it follows from its momentum."""
    t = x[0].tree
    if t[0].bodies.motion[b] != DYNAMIC:
        return t[0].state.spin[b, w]
    R = matrix(t[0].state.rotation[b, w])
    return R * (t[0].bodies.inv_inertia[b, w] * (t[0].state.momentum[b, w] * R))


@wp.func
def start_drums(x: wp.array(dtype=RopedTree), w: int):
    """How fast winches pay out as a caller left them."""
    s = x[0].rope
    for k in range(s[0].ropes.count):
        if s[0].ropes.winch[k] >= 0:
            b = s[0].ropes.drum_child[k]
            axis = wp.quat_rotate(x[0].tree[0].state.rotation[b, w], s[0].ropes.drum_axis[k])
            spin = spin_in_state(x, b, w) - spin_in_state(x, s[0].ropes.drum_parent[k], w)
            s[0].state.reel_now[k, w] = -s[0].ropes.drum[k] * wp.dot(axis, spin)


# ---- the row ----------------------------------------------------------------------------------------------------------------


@wp.func
def put_three(x: wp.array(dtype=RopedTree), at: int, w: int, v: vec3):
    for k in range(3):
        x[0].winch[at + k, w] = v[k]


@wp.func
def put_wrench(x: wp.array(dtype=RopedTree), at: int, w: int, l: vec3, moment: vec3, arm: vec3, on_last: vec3, held: vec3):
    """What acts on the links of both ends, about their origins."""
    put_three(x, at, w, -l)
    put_three(x, at + 3, w, -(moment + wp.cross(arm, l)))
    put_three(x, at + 6, w, -on_last)
    put_three(x, at + 9, w, -wp.cross(held, on_last))


@wp.func
def put_winch(
    x: wp.array(dtype=RopedTree), k: int, w: int, row: WinchRow, mean: vec3, end: vec3, held: vec3, held_end: vec3, soft: real,
    gap: real,
):  # fmt: skip
    """The row of a winch: arms of the first end and of the last, at the mean and at the end; its compliance, and half its gap."""
    s = x[0].rope
    at = WINCH * k
    put_wrench(x, at, w, row.X, row.Y, mean, row.A, held)
    put_wrench(x, at + 12, w, row.P, row.Q, end, row.B, held_end)
    at = at + WINCH_DRIVES
    x[0].winch[at, w] = row.G * soft
    x[0].winch[at + 1, w] = gap
    x[0].winch[at + 2, w] = -s[0].ropes.drum[k]
    x[0].winch[at + 4, w] = real(1.0)
    put_three(x, WINCH * k + WINCH_LEADS, w, row.leads)


@wp.func
def hang_winch(x: wp.array(dtype=RopedTree), k: int, w: int):
    """The row of a winch in a pass."""
    s = x[0].rope
    x[0].winch[WINCH * k + WINCH_DRIVES + 4, w] = real(0.0)
    if not is_wound(s, k, w):
        return
    mean = vec3(real(0.0))
    end = mean
    held = mean
    held_end = mean
    if s[0].ropes.kind[2 * k] == BODY:
        i = x[0].link_of[s[0].ropes.body[2 * k]]
        mean = mean_com(x, i, w) + s[0].work.arm[2 * k, w]
        end = end_com(x, i, w) + s[0].work.end_arm[2 * k, w]
    if s[0].ropes.kind[2 * k + 1] == LOOP:
        i = x[0].link_of[s[0].ropes.body[2 * k + 1]]
        held = mean_com(x, i, w) + s[0].work.arm[2 * k + 1, w]
        held_end = end_com(x, i, w) + s[0].work.end_arm[2 * k + 1, w]
    row = find_winch(s, k, w)
    weight = s[0].work.weight[k, w]
    put_winch(x, k, w, row, mean, end, held, held_end, real(2.0) * weight, row.g * (real(-0.5) * s[0].h[w] * weight))


@wp.func
def note_winches(x: wp.array(dtype=RopedTree), w: int):
    """The impulses along wound elements so far, as they are scaled."""
    s = x[0].rope
    for k in range(s[0].ropes.count):
        total = real(0.0)
        if is_wound(s, k, w):
            i = reel_element(s, k, w)
            total = wp.dot(slide_axis(s, i, w), s[0].state.pull[i, w]) * (real(-0.25) * s[0].h[w])
        x[0].winch[WINCH * k + WINCH_DRIVES + 3, w] = total


@wp.func
def put_standing(x: wp.array(dtype=RopedTree), k: int, w: int, row: WinchRow, gap: real):
    """The row of a winch where nothing moves, without an impulse so far."""
    s = x[0].rope
    arm = vec3(real(0.0))
    held = arm
    if s[0].ropes.kind[2 * k] == BODY:
        arm = recall_triple(x[0].tree, x[0].link_of[s[0].ropes.body[2 * k]], AT_COM, w) + s[0].work.arm[2 * k, w]
    if s[0].ropes.kind[2 * k + 1] == LOOP:
        held = recall_triple(x[0].tree, x[0].link_of[s[0].ropes.body[2 * k + 1]], AT_COM, w) + s[0].work.arm[2 * k + 1, w]
    put_winch(x, k, w, row, arm, arm, held, held, real(1.0), gap)


@wp.func
def stand_winch(x: wp.array(dtype=RopedTree), k: int, w: int):
    """The row of a winch as velocities are projected, which seeks a velocity, not a change of it."""
    s = x[0].rope
    x[0].winch[WINCH * k + WINCH_DRIVES + 3, w] = real(0.0)
    x[0].winch[WINCH * k + WINCH_DRIVES + 4, w] = real(0.0)
    if not is_wound(s, k, w):
        return
    row = find_winch(s, k, w)
    change = s[0].ropes.drum[k] * spin_of_drum(s, k, w) - row.g
    if s[0].ropes.kind[2 * k] == BODY:
        b = s[0].ropes.body[2 * k]
        omega = s[0].body_state.spin[b, w]
        v = s[0].body_state.velocity[b, w] + wp.cross(omega, s[0].work.arm[2 * k, w])
        change = change + wp.dot(row.P, v) + wp.dot(row.Q, omega)
    if s[0].ropes.kind[2 * k + 1] == LOOP:
        b = s[0].ropes.body[2 * k + 1]
        v = s[0].body_state.velocity[b, w] + wp.cross(s[0].body_state.spin[b, w], s[0].work.arm[2 * k + 1, w])
        change = change + wp.dot(row.B, v)
    put_standing(x, k, w, row, change * (real(0.5) * x[0].scaled[w]))


@wp.func
def stand_winch_closing(x: wp.array(dtype=RopedTree), k: int, w: int):
    """The row of a winch as links are displaced."""
    s = x[0].rope
    x[0].winch[WINCH * k + WINCH_DRIVES + 3, w] = real(0.0)
    x[0].winch[WINCH * k + WINCH_DRIVES + 4, w] = real(0.0)
    if is_wound(s, k, w):
        row = find_winch(s, k, w)
        put_standing(x, k, w, row, row.g * (real(-0.5) * x[0].scaled[w]))


@wp.func
def displace_winch(x: wp.array(dtype=RopedTree), k: int, w: int):
    """The element at a winch after displacements, by which its drum was turned."""
    s = x[0].rope
    if is_wound(s, k, w):
        turn = s[0].body.dw[s[0].ropes.drum_child[k], w]
        b = s[0].ropes.drum_parent[k]
        if x[0].link_of[b] >= 0:
            turn = turn - s[0].body.dw[b, w]
        half = real(0.5) * x[0].scaled[w] * wp.dot(drum_axis(s, k, w), turn)
        i = reel_element(s, k, w)
        s[0].state.length[i, w] = s[0].state.length[i, w] - s[0].ropes.drum[k] * real(2.0) * wp.atan(half)
        s[0].state.span[i, w] = s[0].state.length[i, w]
