"""Ropes in the steps of trees: what these read and write, and what a rope is to the links that hold it (theory: ropes).

A rope's own quantities are those of `rope.chain`: velocities v of the end of the step, turns φ of elements, impulses. To the tree
it hands impulses times ¼h, and takes from it δu, δθ, half the displacement and half the turn of a link's end pose: in a rope
whose mean velocities have the weight ϑ at the end they are ½hϑ times (δv, φ). Where velocities are projected, ½h times them, and
impulses are times ½h.
"""

import warp as wp

from sharnir.collision.data import Collision
from sharnir.core.spatial import unit
from sharnir.core.types import mat33, real, vec3
from sharnir.engine.rope.chain import bring_back, eliminate, follow
from sharnir.engine.rope.data import BODY, LOOP, ROPE, UNHELD, WOUND, RopeStep
from sharnir.engine.rope.ends import clear_ties
from sharnir.engine.rope.energy import (
    rope_pose,
)
from sharnir.engine.rope.means import cayley
from sharnir.engine.rope.passes import tie_bodies
from sharnir.engine.rope.reel import turn_drum
from sharnir.engine.rope.slack import reel_element
from sharnir.engine.rope.terms import skew
from sharnir.engine.rope.touch_data import MOST, RopeTouch
from sharnir.engine.rope.touch_pairs import spread
from sharnir.engine.rope.winch import drum_turn
from sharnir.engine.tree.contact_runtime import ROPE_ENDS
from sharnir.engine.tree.ropes import (
    ACTS,
    AIMS,
    CHANGE,
    CROSS_SIZE,
    DRIVES,
    END_SIZE,
    FROM,
    GAP,
    HUNG_SIZE,
    JOINTS,
    LEADS,
    NOW,
    OWN,
    PER_ROW,
    RATE,
    SOFT,
    TOUCH_SIZE,
    WINCH_SIZE,
)
from sharnir.engine.tree.row_storage import LINK_FIELDS
from sharnir.engine.tree.runtime import MEMORY_APART, MEMORY_ROW, TreeStep, memory_of, recall, recall_triple, row_table
from sharnir.engine.tree.storage import START, offsets

FIT_JOINTS = wp.constant(JOINTS)  # what velocities are projected for, beside those of `rope.energy_bodies`
AT_V, AT_W, AT_U, AT_G, AT_COM, AT_COM_MEAN, AT_R = (
    wp.constant(START[n]) for n in ("V", "W", "u", "g", "com_w", "com_mean", "R")
)
OF_ROWS = wp.constant(sum(LINK_FIELDS.values()))
AT_ORIGIN = wp.constant(offsets(LINK_FIELDS)["origin"])
HUNG, END, ROW, ROW_RATE, ROW_SOFT, ROW_GAP = (wp.constant(k) for k in (HUNG_SIZE, END_SIZE, PER_ROW, RATE, SOFT, GAP))
WINCH, WINCH_DRIVES, WINCH_LEADS, CROSS = (wp.constant(k) for k in (WINCH_SIZE, DRIVES, LEADS, CROSS_SIZE))
ENDS_OF = wp.constant(ROPE_ENDS)
TOUCH_ROW, TOUCH_AIMS, TOUCH_FROM, TOUCH_NOW, TOUCH_CHANGE, TOUCH_ACTS, TOUCH_OWN = (
    wp.constant(k) for k in (TOUCH_SIZE, AIMS, FROM, NOW, CHANGE, ACTS, OWN)
)
LAST, TIE, TURN = (wp.constant(k) for k in range(3))  # kinds of a hold: a last end, a tie, the orientation of a last end


@wp.struct
class RopedTree:
    """All that steps of trees on which ropes hang read and write. Kernels have it as an array of one element."""

    tree: wp.array(dtype=TreeStep)
    rope: wp.array(dtype=RopeStep)
    safe: wp.array(dtype=RopeStep)  # with a state to go back to
    held: wp.int32  # bodies that hold ropes
    held_body: wp.array(dtype=wp.int32)
    held_link: wp.array(dtype=wp.int32)  # −1: it does not yield
    link_of: wp.array(dtype=wp.int32)  # [body] −1: likewise
    holds: wp.int32  # where links hold ropes beside their first ends (`roped_holds`)
    hold_kind: wp.array(dtype=wp.int32)  # [hold] LAST, TIE or TURN
    hold_rope: wp.array(dtype=wp.int32)  # [hold]
    hold_tie: wp.array(dtype=wp.int32)  # [hold] which tie, or −1
    hold_link: wp.array(dtype=wp.int32)  # [hold]
    hold_of: wp.array(dtype=wp.int32)  # [rope] its last end, or −1
    base: wp.array(dtype=wp.int32)  # [rope] on which it hangs, or −1
    root: wp.array(dtype=wp.int32)  # [rope] the first on the way to what holds it, or itself
    rank: wp.array(dtype=wp.int32)  # [rope] less than that of the rope on which it hangs
    hold_row: wp.array(dtype=wp.int32)  # [hold] where the change of the impulse of its first row is in the memory, after what
    # closures have there
    hold_by: wp.array2d(dtype=real)  # [hold, world] of an orientation: what a unit of its rows is as a moment,
    hold_K: wp.array2d(dtype=mat33)  # by which these yield as the link turns,
    hold_J: wp.array2d(dtype=mat33)  # and as the element does
    axes: wp.array2d(dtype=mat33)  # [hold, world] along which its rows are, as columns
    pairs: wp.int32  # holds of ropes that hang together
    pair_a: wp.array(dtype=wp.int32)  # [pair] whose rows come after those of
    pair_b: wp.array(dtype=wp.int32)
    pair_row: wp.array(dtype=wp.int32)  # [2 · pair] the numbers of both first rows
    cross: wp.array2d(dtype=real)  # [number of the pair, world] see `engine.tree.ropes.CROSS_SIZE`
    between: wp.int32  # 1 where rows act between the ends of ropes: winches, ties, clamped last ends
    winch_row: wp.array(dtype=wp.int32)  # [rope] likewise, of the row of its winch; −1
    drum_link: wp.array(dtype=wp.int32)  # [rope] the link that turns as its drum; −1: none that yields
    row_size: wp.int32  # from there to the next row
    closure_size: wp.int32  # what a closure has there
    principal: wp.int32  # 1: rows of holds are along the principal axes of the rope's mobility
    scaled: wp.array(dtype=real)  # [world] s, the step by which twists of links are scaled
    hung: wp.array2d(dtype=real)  # [number of the link, world] see `engine.tree.ropes.HUNG`
    ends: wp.array2d(dtype=real)  # [number of the hold, world] see `engine.tree.ropes.ACT`
    winch: wp.array2d(dtype=real)  # [number of the rope, world] see `engine.tree.ropes.DRIVES`
    mean_l: wp.array2d(dtype=vec3)  # [held, world] half the displacement of its centre of mass that factors are made for, and
    mean_a: wp.array2d(dtype=vec3)  # half its turn
    what: wp.array(dtype=wp.int32)  # [world] what velocities are projected for
    wrong: wp.array(dtype=wp.int32)  # [world] elements that were not slack or taut as they were taken to be
    judged: wp.array(dtype=wp.int32)  # [world] rounds in which there were some; and of `slack.all_at_once`
    tries: wp.array(dtype=wp.int32)
    fewest: wp.array(dtype=wp.int32)
    all: wp.array(dtype=wp.int32)
    stuck: wp.array(dtype=wp.int32)  # [world] rounds among them that follow passes which do not converge
    stalls: wp.array(dtype=wp.int32)  # [world] passes in which changes hardly fell
    verdict: wp.array(dtype=wp.int32)  # [world] what becomes of passes: `GO_ON` …
    last: wp.array(dtype=real)  # [world] m/s, change of the last pass
    again: wp.array(dtype=wp.int32)  # [world] 1: the next pass will do with the factors there are
    elapsed: wp.array(dtype=real)  # [world] s, parts of the step that were made
    lost: wp.array(dtype=real)  # [world] J, kinetic energy of ropes that a projection took
    touches: wp.int32  # 1: ropes touch (`roped_touch`); else these are none
    touch: wp.array(dtype=RopeTouch)
    collision: wp.array(dtype=Collision)
    rows_most: wp.int32  # room for closures
    place_of: wp.array2d(dtype=wp.int32)  # [slot, world] number of a point among those of its rope on which rows act, or −1
    point_slot: wp.array2d(dtype=wp.int32)  # [slot of the first end + number, world] its slot; the same of:
    own_F: wp.array2d(dtype=mat33)  # its velocity by impulses,
    own_H: wp.array2d(dtype=mat33)  # and by moments on what hangs on it, whose turn by both this is:
    own_K: wp.array2d(dtype=mat33)
    own_M: wp.array2d(dtype=mat33)
    to_next: wp.array2d(dtype=mat33)  # the velocity of the next one to the first end by impulses on this one,
    from_next: wp.array2d(dtype=mat33)  # and the reverse;
    to_last: wp.array2d(dtype=mat33)  # its velocity by impulses on a last point that does not yield,
    from_last: wp.array2d(dtype=mat33)  # and the reverse; what it hands on to the first end of impulses,
    along_X: wp.array2d(dtype=mat33)
    along_Y: wp.array2d(dtype=mat33)
    along_P: wp.array2d(dtype=mat33)  # and how it moves with that;
    along_Q: wp.array2d(dtype=mat33)
    turned_X: wp.array2d(dtype=mat33)  # the same of moments, and how what hangs on it turns,
    turned_Y: wp.array2d(dtype=mat33)
    turned_P: wp.array2d(dtype=mat33)
    turned_Q: wp.array2d(dtype=mat33)
    held_X: wp.array2d(dtype=mat33)  # and of impulses where the last point stays
    held_Y: wp.array2d(dtype=mat33)
    held_P: wp.array2d(dtype=mat33)
    held_Q: wp.array2d(dtype=mat33)
    free: wp.array2d(dtype=vec3)  # [slot, world] by how much it changes its velocity where neither links nor rows do
    touch_delta: wp.array2d(dtype=real)  # [3 · (slot of the first end + number) + axis, world] Δ of the inertia of such points,
    touch_L: wp.array2d(dtype=real)  # [6 · that + column, world] L and U, by the columns of the point before and its own
    touch_U: wp.array2d(dtype=real)
    touch_rows: wp.array2d(dtype=real)  # [number of the closure, world] see `engine.tree.ropes.AIMS`
    touch_push: wp.array2d(dtype=mat33)  # [closure, world] along which its rows push, as columns, times coefficients of friction
    touch_J: wp.array2d(dtype=real)  # [36 · closure + 12 · row + 3 · point + axis, world] of the velocities of its points
    strikes: wp.array(dtype=wp.int32)  # [world] 1 where points come in that are to be stopped
    open: wp.array(dtype=real)  # [world] m, by which elements miss their points at most, where poses are closed


@wp.struct
class HoldRow:
    """Three rows of a hold: what a unit of their impulses does to the rope's first end, and how the rope moves there."""

    X: mat33  # the link of the first end lacks −X and −Y less
    Y: mat33
    P: mat33  # P·v + Q·ω + G μ + g
    Q: mat33
    G: mat33
    on: real  # what it does to the link of the hold,
    turns: wp.int32  # 1: as a moment,
    feels: mat33  # which the row then feels turn so


# ---- bodies that hold ropes --------------------------------------------------------------------------------------------------


@wp.func
def origin_of(t: wp.array(dtype=TreeStep), i: int, w: int) -> vec3:
    """Where a link's frame is."""
    first = (MEMORY_ROW + MEMORY_APART) * (t[0].links + 1) + OF_ROWS * (i + 1) + AT_ORIGIN
    out = vec3(real(0.0))
    for k in range(3):
        out[k] = t[0].memory[(first + k) * t[0].memory_number + memory_of(t, w)]
    return out


@wp.func
def start_bodies(x: wp.array(dtype=RopedTree), w: int):
    """Bodies that hold ropes where a part of the step begins, as links have them."""
    t = x[0].tree
    s = x[0].rope
    per = real(2.0) / x[0].scaled[w]
    for n in range(x[0].held):
        i = x[0].held_link[n]
        if i >= 0:
            b = x[0].held_body[n]
            R = mat33(real(0.0))
            for k in range(9):
                R[k // 3, k % 3] = recall(t, i, AT_R + k, w)
            s[0].body_state.rotation[b, w] = wp.normalize(wp.quat_from_matrix(R) * wp.quat_inverse(t[0].own_turn[i, w]))
            s[0].body_state.position[b, w] = origin_of(t, i, w) + recall_triple(t, i, AT_COM, w)
            s[0].body_state.velocity[b, w] = recall_triple(t, i, AT_V, w) * per
            s[0].body_state.spin[b, w] = recall_triple(t, i, AT_W, w) * per


@wp.func
def end_bodies(x: wp.array(dtype=RopedTree), w: int):
    """Bodies that hold ropes where mean twists of the links lead."""
    t = x[0].tree
    s = x[0].rope
    h = s[0].h[w]
    per = real(2.0) / h
    falls = t[0].settings.gravity[w] * (real(0.25) * h * h)
    for n in range(x[0].held):
        i = x[0].held_link[n]
        if i >= 0:
            b = x[0].held_body[n]
            g = recall_triple(t, i, AT_G, w)
            mean = recall_triple(t, i, AT_U, w) + wp.cross(g, recall_triple(t, i, AT_COM_MEAN, w))
            x[0].mean_l[n, w] = mean
            x[0].mean_a[n, w] = g
            mean = mean + falls
            s[0].body.x[b, w] = s[0].body_state.position[b, w] + mean * real(2.0)
            s[0].body.turn[b, w] = g * real(2.0)
            s[0].body.q[b, w] = unit(cayley(g * real(2.0)) * s[0].body_state.rotation[b, w])
            s[0].body.v[b, w] = (mean * real(2.0) - recall_triple(t, i, AT_V, w)) * per
            s[0].body.w[b, w] = (g * real(2.0) - recall_triple(t, i, AT_W, w)) * per


@wp.func
def end_poses(x: wp.array(dtype=RopedTree), w: int):
    """Ropes where their velocities and those of the bodies lead, ropes on which others hang first."""
    s = x[0].rope
    end_bodies(x, w)
    for k in range(s[0].ropes.count):
        if s[0].ropes.winch[k] >= 0:
            turn_drum(s, k, w, drum_turn(s, k, w))
    for o in range(s[0].ropes.count):
        rope_pose(s, s[0].ropes.order[s[0].ropes.count - 1 - o], w)


# ---- tables of the links and of the rows beside them -------------------------------------------------------------------------


@wp.func
def clear_hung(x: wp.array(dtype=RopedTree), w: int, numbers: int):
    """Nothing hangs on links: the first so many numbers of each."""
    for n in range(x[0].held):
        i = x[0].held_link[n]
        if i >= 0:
            for k in range(numbers):
                x[0].hung[HUNG * i + k, w] = real(0.0)


@wp.func
def lack(x: wp.array(dtype=RopedTree), i: int, w: int, f: vec3, n: vec3):
    """Add to what a link lacks for its ropes, about its origin; nothing to the ground, −1."""
    if i < 0:
        return
    for k in range(3):
        x[0].hung[HUNG * i + k, w] = x[0].hung[HUNG * i + k, w] + f[k]
        x[0].hung[HUNG * i + 3 + k, w] = x[0].hung[HUNG * i + 3 + k, w] + n[k]


@wp.func
def steepen(x: wp.array(dtype=RopedTree), i: int, w: int, A: mat33, B: mat33, C: mat33, D: mat33):
    """Add to the derivative of that."""
    if i < 0:
        return
    at = HUNG * i + 6
    for k in range(9):
        x[0].hung[at + k, w] = x[0].hung[at + k, w] + A[k // 3, k % 3]
        x[0].hung[at + 9 + k, w] = x[0].hung[at + 9 + k, w] + B[k // 3, k % 3]
        x[0].hung[at + 18 + k, w] = x[0].hung[at + 18 + k, w] + C[k // 3, k % 3]
        x[0].hung[at + 27 + k, w] = x[0].hung[at + 27 + k, w] + D[k // 3, k % 3]


@wp.func
def put(x: wp.array(dtype=RopedTree), at: int, w: int, v: vec3):
    for k in range(3):
        x[0].ends[at + k, w] = v[k]


@wp.func
def principal_axes(x: wp.array(dtype=RopedTree), G: mat33) -> mat33:
    """Principal axes of a mobility, as columns; those of the world, where rows are along these."""
    zero = real(0.0)
    one = real(1.0)
    axes = mat33(one, zero, zero, zero, one, zero, zero, zero, one)
    if x[0].principal == 1:
        axes, _sizes = wp.eig3((G + wp.transpose(G)) * real(0.5))
    return axes


@wp.func
def put_gaps(x: wp.array(dtype=RopedTree), h: int, w: int, gap: vec3):
    """Half the gap of the rows of a hold."""
    along = gap * x[0].axes[h, w]
    for j in range(3):
        x[0].ends[END * h + ROW * j + ROW_GAP, w] = along[j]


@wp.func
def put_rows(
    x: wp.array(dtype=RopedTree), h: int, w: int, row: HoldRow, mean: vec3, end: vec3, held: vec3, held_end: vec3, soft: real
):
    """The rows of a hold: arms of the first end and of the hold, at the mean and at the end; all but their gaps."""
    G = row.G * soft
    axes = principal_axes(x, G)
    x[0].axes[h, w] = axes
    G = wp.transpose(axes) * G * axes
    for j in range(3):
        at = END * h + ROW * j
        e = vec3(axes[0, j], axes[1, j], axes[2, j])
        own = e * row.on
        l = -(row.X * e)
        put(x, at, w, l)
        put(x, at + 3, w, wp.cross(mean, l) - row.Y * e)
        rate = -(wp.transpose(row.P) * e)
        put(x, at + ROW_RATE, w, rate)
        put(x, at + ROW_RATE + 3, w, wp.cross(end, rate) - wp.transpose(row.Q) * e)
        f = own
        n = wp.cross(held, own)
        n_end = wp.cross(held_end, own)
        if row.turns == 1:
            f = vec3(real(0.0))
            n = own
            n_end = e * row.feels
        put(x, at + 6, w, f)
        put(x, at + 9, w, n)
        put(x, at + ROW_RATE + 6, w, f)
        put(x, at + ROW_RATE + 9, w, n_end)
        put(x, at + ROW_SOFT, w, vec3(G[j, 0], G[j, 1], G[j, 2]))


@wp.func
def row_change(x: wp.array(dtype=RopedTree), row: int, w: int) -> real:
    """By how much the impulse of a row changed in the pass, as it is scaled; `row` is a number of `hold_row` or `winch_row`."""
    t = x[0].tree
    at = row + x[0].closure_size * row_table(t, 0, w)
    return t[0].memory[at * t[0].memory_number + memory_of(t, w)]


@wp.func
def touch_impulse(x: wp.array(dtype=RopedTree), m: int, w: int, which: int) -> vec3:
    """Impulses of a point of contact, as they are scaled; `which`: `TOUCH_NOW`, at hand, or `TOUCH_CHANGE`."""
    at = TOUCH_ROW * m + which
    return x[0].touch_push[m, w] * vec3(x[0].touch_rows[at, w], x[0].touch_rows[at + 1, w], x[0].touch_rows[at + 2, w])


@wp.func
def row_impulse(x: wp.array(dtype=RopedTree), h: int, w: int) -> vec3:
    """By how much the impulses of the rows of a hold changed in the pass, as they are scaled."""
    out = vec3(real(0.0))
    if x[0].touches == 1:
        for j in range(3):
            out[j] = -x[0].touch_rows[TOUCH_ROW * h + TOUCH_CHANGE + j, w]
        return out
    for j in range(3):
        out[j] = row_change(x, x[0].hold_row[h] + j * x[0].row_size, w)
    return x[0].axes[h, w] * out


@wp.func
def is_wound(s: wp.array(dtype=RopeStep), k: int, w: int) -> bool:
    """Whether a drum winds a rope now: what the element at its reel pulls turns the drum."""
    if s[0].ropes.winch[k] < 0:
        return False
    i = reel_element(s, k, w)
    return s[0].work.slack[i, w] == WOUND and s[0].state.cut[i, w] == 0


@wp.func
def wound_back(x: wp.array(dtype=RopedTree), k: int, w: int) -> vec3:
    """The impulse on a held last point that comes with that of its winch, whose row leaves the point where it is."""
    s = x[0].rope
    if not is_wound(s, k, w):
        return vec3(real(0.0))
    at = WINCH * k + WINCH_LEADS
    leads = vec3(x[0].winch[at, w], x[0].winch[at + 1, w], x[0].winch[at + 2, w])
    return s[0].work.G[k, w] * leads * -s[0].work.push_out[reel_element(s, k, w), w]


@wp.func
def last_impulse(x: wp.array(dtype=RopedTree), k: int, w: int, per: real) -> vec3:
    """The change of the impulse on a last point that a link holds."""
    return row_impulse(x, x[0].hold_of[k], w) * (-per) + wound_back(x, k, w)


@wp.func
def mobility(x: wp.array(dtype=RopedTree), k: int, w: int, v: vec3, omega: vec3, mu: vec3) -> vec3:
    """The change of the velocity of a held last point, from that of the first end and the impulse at the last."""
    s = x[0].rope
    free = s[0].work.g[k, w] + s[0].work.last_P[k, w] * v + s[0].work.last_Q[k, w] * omega
    return free + wp.inverse(s[0].work.G[k, w]) * mu


@wp.func
def push_points(x: wp.array(dtype=RopedTree), w: int, per: real):
    """What rows of contact changed as what acts on ropes; `per` makes impulses those of ropes."""
    s = x[0].rope
    t = x[0].tree
    for m in range(x[0].holds, t[0].rope_live[w]):
        e = t[0].rope_ends[ENDS_OF * m + 5, w]
        P = touch_impulse(x, m, w, TOUCH_CHANGE) * -per
        if e >= x[0].touch[0].base:
            spread(s[0].work.tie_p, x[0].touch, e - x[0].touch[0].base, P, w)
        else:
            s[0].work.tie_p[e / MOST, w] = s[0].work.tie_p[e / MOST, w] + P


@wp.func
def take_turns(x: wp.array(dtype=RopedTree), w: int):
    """Interfaces of clamped last ends, out of the elimination into rows."""
    s = x[0].rope
    for h in range(x[0].holds):
        if x[0].hold_kind[h] == TURN:
            k = x[0].hold_rope[h]
            i = s[0].ropes.first[k] + s[0].state.segments[k, w]
            K = s[0].work.K[i, w]
            size = wp.sqrt(wp.sqrt(wp.ddot(K, K))) + real(1.0e-30)
            x[0].hold_by[h, w] = size
            x[0].hold_K[h, w] = K / size
            x[0].hold_J[h, w] = s[0].work.J[i, w] / size
            s[0].work.K[i, w] = mat33(real(0.0))
            s[0].work.J[i, w] = mat33(real(0.0))


@wp.func
def pull_holds(x: wp.array(dtype=RopedTree), w: int, per: real):
    """Impulses of rows at ties, and moments at clamped last ends, as what acts on ropes; `per` makes them those of ropes."""
    s = x[0].rope
    for h in range(x[0].holds):
        k = x[0].hold_rope[h]
        if x[0].hold_kind[h] == TIE:
            t = x[0].hold_tie[h]
            mu = row_impulse(x, h, w) * -per
            s[0].state.tie_force[t, w] = s[0].state.tie_force[t, w] + mu
            i = s[0].ropes.tie_slot[t]
            s[0].work.tie_p[i, w] = s[0].work.tie_p[i, w] - mu
        elif x[0].hold_kind[h] == TURN:
            i = s[0].ropes.first[k] + s[0].state.segments[k, w]
            s[0].work.e[i, w] = s[0].work.e[i, w] + row_impulse(x, h, w) * (x[0].hold_by[h, w] * per)


@wp.func
def eliminate_ropes(x: wp.array(dtype=RopedTree), w: int, anew: bool, per: real):
    """Z and p₀ of all ropes, those that hang on others first; or with the factors there are p₀, and what rows pull by `per`."""
    s = x[0].rope
    for k in range(s[0].ropes.count):
        clear_ties(s, k, w, anew)
    if anew:
        take_turns(x, w)
    if per > real(0.0):
        pull_holds(x, w, per)
        if x[0].touches == 1:
            push_points(x, w, per)
    for o in range(s[0].ropes.count):
        k = s[0].ropes.order[o]
        tie_bodies(s, k, w, anew, True)
        if anew:
            eliminate(s, k, w)
        else:
            bring_back(s, k, w)
        if s[0].ropes.kind[2 * k] == ROPE:
            at = s[0].ropes.body[2 * k]
            if anew:
                s[0].work.tie_A[at, w] = s[0].work.tie_A[at, w] + s[0].work.Z_A[k, w]
            p = s[0].work.p_l[k, w]
            if per > real(0.0) and s[0].ropes.kind[2 * k + 1] == LOOP:
                p = p - s[0].work.last_X[k, w] * last_impulse(x, k, w, per)
            s[0].work.tie_p[at, w] = s[0].work.tie_p[at, w] + p


@wp.func
def wind_ropes(x: wp.array(dtype=RopedTree), w: int, per: real):
    """What impulses between their ends do to ropes, of winches along their elements too: these are brought inwards once more."""
    s = x[0].rope
    if x[0].between == 0:
        return
    for k in range(s[0].ropes.count):
        if is_wound(s, k, w):
            s[0].work.push_out[reel_element(s, k, w), w] = row_change(x, x[0].winch_row[k], w) * (-per)
    eliminate_ropes(x, w, False, per)


@wp.func
def clamp_moment(s: wp.array(dtype=RopeStep), k: int, w: int) -> vec3:
    """The impulse moment at a clamped first end."""
    if s[0].ropes.clamp[2 * k] == 1:
        return s[0].state.moment[s[0].ropes.first[k], w]
    return vec3(real(0.0))


@wp.func
def follow_ropes(x: wp.array(dtype=RopedTree), w: int, per: real):
    """Ropes from the changes of the bodies in `body.dv` and `body.dw`; `per` makes impulses of rows those of ropes."""
    s = x[0].rope
    wind_ropes(x, w, per)
    for o in range(s[0].ropes.count):
        k = s[0].ropes.order[s[0].ropes.count - 1 - o]
        weight = s[0].work.weight[k, w]
        v = vec3(real(0.0))
        omega = v
        last = v
        kind = s[0].ropes.kind[2 * k]
        if kind == BODY:
            b = s[0].ropes.body[2 * k]
            omega = s[0].body.dw[b, w] / weight
            v = s[0].body.dv[b, w] / weight + wp.cross(omega, s[0].work.end_arm[2 * k, w])
        elif kind == ROPE:
            v = s[0].work.dv[s[0].ropes.body[2 * k], w]
        elif kind == UNHELD:
            v = -(wp.inverse(s[0].work.Z_A[k, w]) * s[0].work.p_l[k, w])
        if s[0].ropes.kind[2 * k + 1] == LOOP:
            last = mobility(x, k, w, v, omega, last_impulse(x, k, w, per))
        follow(s, k, w, v, omega, last)


@wp.func
def speed_at(x: wp.array(dtype=RopedTree), i: int, w: int, arm: vec3) -> vec3:
    """Velocity of a point of a link, at an arm from its centre of mass, as twists are scaled."""
    if i < 0:
        return vec3(real(0.0))
    return recall_triple(x[0].tree, i, AT_V, w) + wp.cross(recall_triple(x[0].tree, i, AT_W, w), arm)


@wp.func
def mean_com(x: wp.array(dtype=RopedTree), i: int, w: int) -> vec3:
    return recall_triple(x[0].tree, i, AT_COM_MEAN, w)


@wp.func
def end_com(x: wp.array(dtype=RopedTree), i: int, w: int) -> vec3:
    return recall_triple(x[0].tree, i, AT_COM_MEAN, w) * real(2.0) - recall_triple(x[0].tree, i, AT_COM, w)


@wp.func
def hang_inertia(x: wp.array(dtype=RopedTree), k: int, i: int, w: int, by: real, mean: vec3, end: vec3, turns: mat33):
    """Its Z on a link, times `by`, and the derivative of moments as arms turn."""
    s = x[0].rope
    E = skew(end)
    S = skew(mean)
    A = s[0].work.Z_A[k, w] * by
    B = s[0].work.Z_B[k, w] * by - A * E
    C = s[0].work.Z_C[k, w] * by
    D = s[0].work.Z_D[k, w] * by - C * E + S * B + turns
    steepen(x, i, w, A, B, C + S * A, D)
