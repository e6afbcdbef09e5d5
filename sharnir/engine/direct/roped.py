"""Ropes in the steps of trees: what the emitted step asks of them in every pass (`engine.tree.ropes`; theory: ropes).

A rope's own quantities are those of `rope.chain`: velocities v of the end of the step, turns φ of elements, impulses. To the tree
it hands impulses times ¼h, and takes from it δu, δθ, half the displacement and half the turn of a link's end pose: in a rope
whose mean velocities have the weight ϑ at the end they are ½hϑ times (δv, φ). Where velocities are projected, ½h times them, and
impulses are times ½h.
"""

import warp as wp

from sharnir.core.spatial import unit, worse
from sharnir.core.types import EPSILON, mat33, real, vec3
from sharnir.engine.rope.chain import bring_back, eliminate, follow
from sharnir.engine.rope.copies import copy_ropes
from sharnir.engine.rope.data import BODY, LOOP, ROPE, UNHELD, RopeStep
from sharnir.engine.rope.ends import clear_ties
from sharnir.engine.rope.energy import (
    hold_driven_ties,
    keep_impulses,
    keep_rope,
    mean_arms,
    rope_misses,
    rope_pose,
    start_rope,
    start_speeds,
    take_back_impulses,
    turns_far,
)
from sharnir.engine.rope.energy_bodies import (
    CURBED,
    ENDS,
    ROUGH,
    ROUGHLY,
    ROUND,
    SNAPS,
    STUCK,
    WHOLE,
    WILD,
    body_pose,
    goes_on,
    pose_arms,
    ropes_length,
    settle_ends,
    settle_rows,
    turn_reels,
)
from sharnir.engine.rope.energy_kernels import any_snaps, clear_snaps, is_settled
from sharnir.engine.rope.kernels import spend_pushes
from sharnir.engine.rope.means import cayley
from sharnir.engine.rope.passes import scale_pulls, tie_bodies
from sharnir.engine.rope.reel import change_segments, pay_out, undo_reeling
from sharnir.engine.rope.slack import JUDGED, LONGER, OPEN, TRIES, all_at_once, judge, take_slack, widest_gap
from sharnir.engine.rope.speeds import at_pose, open_pushed, rope_energy, shift_speeds, take_speeds
from sharnir.engine.rope.terms import skew
from sharnir.engine.tree.ropes import END_SIZE, GAP, HUNG_SIZE, JOINTS, PER_ROW, RATE, SOFT
from sharnir.engine.tree.row_storage import LINK_FIELDS
from sharnir.engine.tree.runtime import MEMORY_APART, MEMORY_ROW, TreeStep, memory_of, recall, recall_triple
from sharnir.engine.tree.storage import START, offsets

FIT_JOINTS = wp.constant(JOINTS)  # what velocities are projected for, beside those of `rope.energy_bodies`
GO_ON, ANEW, GIVE_UP = (wp.constant(k) for k in range(3))  # passes go on, begin anew, or do not converge
STALLED, LONGEST = wp.constant(4), wp.constant(20)  # stalls, and passes, after which passes do not converge,
MORE = wp.constant(real(8.0))  # unless so many more will do
FINE = wp.constant(real(1.0e-6))  # relative to the speeds: a change from which on elements are judged in every pass
AT_V, AT_W, AT_U, AT_G, AT_COM, AT_COM_MEAN, AT_R = (
    wp.constant(START[n]) for n in ("V", "W", "u", "g", "com_w", "com_mean", "R")
)
OF_ROWS = wp.constant(sum(LINK_FIELDS.values()))
AT_ORIGIN, AT_RAISED = (wp.constant(offsets(LINK_FIELDS)[name]) for name in ("origin", "raised"))
HUNG, END, ROW, ROW_RATE, ROW_SOFT, ROW_GAP = (wp.constant(k) for k in (HUNG_SIZE, END_SIZE, PER_ROW, RATE, SOFT, GAP))


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
    end_row: wp.array(
        dtype=wp.int32
    )  # [rope] where the change of the impulse of its last end's first row is in the memory, after
    # what closures have there; −1
    row_size: wp.int32  # from there to the next row
    closure_size: wp.int32  # what a closure has there
    principal: wp.int32  # 1: rows of last ends are along the principal axes of the rope's mobility
    scaled: wp.array(dtype=real)  # [world] s, the step by which twists of links are scaled
    hung: wp.array2d(dtype=real)  # [number of the link, world] see `engine.tree.ropes.HUNG`
    ends: wp.array2d(dtype=real)  # [number of the rope, world] see `engine.tree.ropes.ACT`
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
    """Add to what a link lacks for its ropes, about its origin."""
    for k in range(3):
        x[0].hung[HUNG * i + k, w] = x[0].hung[HUNG * i + k, w] + f[k]
        x[0].hung[HUNG * i + 3 + k, w] = x[0].hung[HUNG * i + 3 + k, w] + n[k]


@wp.func
def steepen(x: wp.array(dtype=RopedTree), i: int, w: int, A: mat33, B: mat33, C: mat33, D: mat33):
    """Add to the derivative of that."""
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
def row_axis(x: wp.array(dtype=RopedTree), k: int, j: int, w: int) -> vec3:
    """Along which the j-th row of a last end is."""
    at = END * k + ROW * j + 6
    return vec3(x[0].ends[at, w], x[0].ends[at + 1, w], x[0].ends[at + 2, w])


@wp.func
def put_gaps(x: wp.array(dtype=RopedTree), k: int, w: int, gap: vec3):
    """Half the gap of the rows of a last end."""
    for j in range(3):
        x[0].ends[END * k + ROW * j + ROW_GAP, w] = wp.dot(row_axis(x, k, j, w), gap)


@wp.func
def put_rows(x: wp.array(dtype=RopedTree), k: int, w: int, mean: vec3, end: vec3, held: vec3, held_end: vec3, soft: real):
    """The rows of a rope's last end: arms of the first end and of the last, at the mean and at the end; all but their gaps."""
    s = x[0].rope
    X = s[0].work.last_X[k, w]
    Y = s[0].work.last_Y[k, w]
    P = s[0].work.last_P[k, w]
    Q = s[0].work.last_Q[k, w]
    G = wp.inverse(s[0].work.G[k, w]) * soft
    axes = principal_axes(x, G)
    G = wp.transpose(axes) * G * axes
    for j in range(3):
        at = END * k + ROW * j
        e = vec3(axes[0, j], axes[1, j], axes[2, j])
        l = -(X * e)
        put(x, at, w, l)
        put(x, at + 3, w, wp.cross(mean, l) - Y * e)
        put(x, at + 6, w, e)
        put(x, at + 9, w, wp.cross(held, e))
        l = -(wp.transpose(P) * e)
        put(x, at + ROW_RATE, w, l)
        put(x, at + ROW_RATE + 3, w, wp.cross(end, l) - wp.transpose(Q) * e)
        put(x, at + ROW_RATE + 6, w, e)
        put(x, at + ROW_RATE + 9, w, wp.cross(held_end, e))
        put(x, at + ROW_SOFT, w, vec3(G[j, 0], G[j, 1], G[j, 2]))


@wp.func
def row_impulse(x: wp.array(dtype=RopedTree), k: int, w: int) -> vec3:
    """By how much the impulses of the rows at a rope's last end changed in the pass, as they are scaled."""
    t = x[0].tree
    out = vec3(real(0.0))
    closures = t[0].row_tables[w * t[0].row_table_size]
    for j in range(3):
        at = x[0].end_row[k] + x[0].closure_size * closures + j * x[0].row_size
        out = out + row_axis(x, k, j, w) * t[0].memory[at * t[0].memory_number + memory_of(t, w)]
    return out


@wp.func
def mobility(x: wp.array(dtype=RopedTree), k: int, w: int, v: vec3, omega: vec3, mu: vec3) -> vec3:
    """The change of the velocity of a held last point, from that of the first end and the impulse at the last."""
    s = x[0].rope
    free = s[0].work.g[k, w] + s[0].work.last_P[k, w] * v + s[0].work.last_Q[k, w] * omega
    return free + wp.inverse(s[0].work.G[k, w]) * mu


@wp.func
def eliminate_ropes(x: wp.array(dtype=RopedTree), w: int, anew: bool):
    """Z and p₀ of all ropes, those that hang on others first; or with the factors there are p₀."""
    s = x[0].rope
    for k in range(s[0].ropes.count):
        clear_ties(s, k, w, anew)
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
            s[0].work.tie_p[at, w] = s[0].work.tie_p[at, w] + s[0].work.p_l[k, w]


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
            last = mobility(x, k, w, v, omega, row_impulse(x, k, w) * (-per))
        follow(s, k, w, v, omega, last)


# ---- passes ------------------------------------------------------------------------------------------------------------------


@wp.func
def roped_begin(x: wp.array(dtype=RopedTree), w: int):
    """What is expected of a part of the step, or once more, after a verdict on its passes."""
    s = x[0].rope
    start_bodies(x, w)
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
    eliminate_ropes(x, w, anew)
    clear_hung(x, w, wp.where(anew, HUNG, 6))
    for k in range(s[0].ropes.count):
        if s[0].ropes.kind[2 * k] == BODY:
            hang_first(x, k, w, anew)
        if s[0].ropes.kind[2 * k + 1] == LOOP:
            hang_last(x, k, w, anew)


@wp.func
def mean_com(x: wp.array(dtype=RopedTree), i: int, w: int) -> vec3:
    return recall_triple(x[0].tree, i, AT_COM_MEAN, w)


@wp.func
def end_com(x: wp.array(dtype=RopedTree), i: int, w: int) -> vec3:
    return recall_triple(x[0].tree, i, AT_COM_MEAN, w) * real(2.0) - recall_triple(x[0].tree, i, AT_COM, w)


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


@wp.func
def hang_last(x: wp.array(dtype=RopedTree), k: int, w: int, anew: bool):
    """What the link of a last end gives to the rope, and its rows."""
    s = x[0].rope
    a = x[0].link_of[s[0].ropes.body[2 * k]]
    b = x[0].link_of[s[0].ropes.body[2 * k + 1]]
    h = s[0].h[w]
    weight = s[0].work.weight[k, w]
    mean = mean_com(x, a, w) + s[0].work.arm[2 * k, w]
    end = end_com(x, a, w) + s[0].work.end_arm[2 * k, w]
    held = mean_com(x, b, w) + s[0].work.arm[2 * k + 1, w]
    held_end = end_com(x, b, w) + s[0].work.end_arm[2 * k + 1, w]
    f = s[0].state.end_force[2 * k + 1, w] * (real(0.25) * h)
    lack(x, b, w, f, wp.cross(held, f))
    if anew:
        none = mat33(real(0.0))
        steepen(x, b, w, none, none, none, skew(f) * skew(held_end))
        put_rows(x, k, w, mean, end, held, held_end, real(2.0) * weight)
    put_gaps(x, k, w, s[0].work.g[k, w] * (real(-0.5) * h * weight))


@wp.func
def roped_follow(x: wp.array(dtype=RopedTree), w: int, made: int, changed: int) -> real:
    """Ropes follow the links; returns by how much they changed, 1 being as much as may be, 0 where that is rounding.

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
    hold_driven_ties(s, w)
    change = real(0.0)
    for k in range(s[0].ropes.count):
        change = worse(change, s[0].work.change[k, w])
        scale = wp.max(scale, s[0].work.speed[k, w])
    rounding = (ropes_length(s, w) + far) * (real(EPSILON) / h)
    enough = wp.max(s[0].settings.tolerance[0] * scale, ROUND * rounding)
    judge_passes(x, w, change, scale, enough, made, changed)
    x[0].last[w] = change
    if change <= enough:
        return real(0.0)
    return change / enough


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
    if parts or change <= FINE * scale or (change <= ROUGH * scale and x[0].judged[w] < ROUGHLY):
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
        for side in range(2):
            kind = s[0].ropes.kind[2 * k + side]
            if kind == BODY or kind == LOOP:
                i = x[0].link_of[s[0].ropes.body[2 * k + side]]
                f = s[0].state.end_force[2 * k + side, w] * scale
                n = wp.cross(mean_com(x, i, w) + s[0].work.arm[2 * k + side, w], f)
                if side == 0:
                    n = n + clamp_moment(s, k, w) * scale
                lack(x, i, w, f, n)


# ---- velocities that do not fit ----------------------------------------------------------------------------------------------


@wp.func
def roped_stand(x: wp.array(dtype=RopedTree), w: int, h: real):
    """Ropes where they stand, with the speeds by which rows open that are to be settled, eliminated towards the links."""
    s = x[0].rope
    what = x[0].what[w]
    x[0].scaled[w] = h
    start_bodies(x, w)
    for n in range(x[0].held):
        b = x[0].held_body[n]
        if x[0].held_link[n] >= 0:
            s[0].body.v[b, w] = s[0].body_state.velocity[b, w]
            s[0].body.w[b, w] = s[0].body_state.spin[b, w]
    for k in range(s[0].ropes.count):
        at_pose(s, k, w)
        pose_arms(s, k, w)
        s[0].work.weight[k, w] = real(1.0)
    if what != FIT_JOINTS:
        for o in range(s[0].ropes.count):
            settle_ends(s, s[0].ropes.order[s[0].ropes.count - 1 - o], w, what)
        for k in range(s[0].ropes.count):
            settle_rows(s, k, w, what)
    eliminate_ropes(x, w, True)
    clear_hung(x, w, HUNG)
    for k in range(s[0].ropes.count):
        if s[0].ropes.kind[2 * k] == BODY:
            stand_first(x, k, w)
        if s[0].ropes.kind[2 * k + 1] == LOOP:
            stand_last(x, k, w)


@wp.func
def speed_at(x: wp.array(dtype=RopedTree), i: int, w: int, arm: vec3) -> vec3:
    """Velocity of a point of a link, at an arm from its centre of mass, as twists are scaled."""
    return recall_triple(x[0].tree, i, AT_V, w) + wp.cross(recall_triple(x[0].tree, i, AT_W, w), arm)


@wp.func
def stand_first(x: wp.array(dtype=RopedTree), k: int, w: int):
    """A rope on the link of its first end, which seeks a velocity, not a change of it."""
    s = x[0].rope
    i = x[0].link_of[s[0].ropes.body[2 * k]]
    scale = real(0.5) * x[0].scaled[w]
    own = s[0].work.arm[2 * k, w]
    arm = recall_triple(x[0].tree, i, AT_COM, w) + own
    v = speed_at(x, i, w, own)
    omega = recall_triple(x[0].tree, i, AT_W, w)
    f = s[0].work.p_l[k, w] * scale - s[0].work.Z_A[k, w] * v - s[0].work.Z_B[k, w] * omega
    n = s[0].work.p_a[k, w] * scale - s[0].work.Z_C[k, w] * v - s[0].work.Z_D[k, w] * omega
    lack(x, i, w, f, n + wp.cross(arm, f))
    hang_inertia(x, k, i, w, real(1.0), arm, arm, mat33(real(0.0)))


@wp.func
def stand_last(x: wp.array(dtype=RopedTree), k: int, w: int):
    """The rows of a last end, likewise."""
    s = x[0].rope
    a = x[0].link_of[s[0].ropes.body[2 * k]]
    b = x[0].link_of[s[0].ropes.body[2 * k + 1]]
    arm = recall_triple(x[0].tree, a, AT_COM, w) + s[0].work.arm[2 * k, w]
    held = recall_triple(x[0].tree, b, AT_COM, w) + s[0].work.arm[2 * k + 1, w]
    put_rows(x, k, w, arm, arm, held, held, real(1.0))
    v = speed_at(x, a, w, s[0].work.arm[2 * k, w])
    omega = recall_triple(x[0].tree, a, AT_W, w)
    gap = s[0].work.last_P[k, w] * v + s[0].work.last_Q[k, w] * omega - speed_at(x, b, w, s[0].work.arm[2 * k + 1, w])
    put_gaps(x, k, w, gap - s[0].work.g[k, w] * (real(0.5) * x[0].scaled[w]))


@wp.func
def roped_settle(x: wp.array(dtype=RopedTree), w: int) -> int:
    """Ropes follow the projected velocities; returns how many elements these would press, which go slack: once more, then."""
    t = x[0].tree
    s = x[0].rope
    what = x[0].what[w]
    per = real(2.0) / x[0].scaled[w]
    for n in range(x[0].held):
        i = x[0].held_link[n]
        if i >= 0:
            b = x[0].held_body[n]
            g = recall_triple(t, i, AT_G, w)
            v = recall_triple(t, i, AT_U, w) + wp.cross(g, recall_triple(t, i, AT_COM, w))
            s[0].body.dv[b, w] = v * per - s[0].body_state.velocity[b, w]
            s[0].body.dw[b, w] = g * per - s[0].body_state.spin[b, w]
    follow_ropes(x, w, per)
    found = int(0)
    for k in range(s[0].ropes.count):
        found = found + open_pushed(s, k, w, int(what == SNAPS))
    if found > 0:
        return found
    lost = rope_energy(s, w)
    for k in range(s[0].ropes.count):
        if what == WHOLE or what == ENDS:
            take_speeds(s, k, w)
        else:
            note_change(s, k, w)
            shift_speeds(s, k, w)
    x[0].lost[w] = lost - rope_energy(s, w)
    take_back_impulses(s, w)
    if what == WHOLE or what == ENDS:
        turn_reels(s, w)
        for k in range(s[0].ropes.count):
            if s[0].ropes.reel[k] >= 0:
                i = s[0].ropes.first[k] + s[0].ropes.reel[k] * (s[0].state.segments[k, w] - 1)
                s[0].state.length[i, w] = s[0].state.length[i, w] + s[0].work.paid[k, w]
            s[0].state.started[k, w] = 1
    x[0].what[w] = FIT_JOINTS
    return 0


@wp.func
def note_change(s: wp.array(dtype=RopeStep), k: int, w: int):
    """By how much a projection changes velocities of points, in `dv`, and of elements, in `c`."""
    first = s[0].ropes.first[k]
    for i in range(first, first + s[0].state.segments[k, w] + 1):
        s[0].work.dv[i, w] = s[0].work.v[i, w] - s[0].state.velocity[i, w]
        s[0].work.c[i, w] = s[0].work.w[i, w] - s[0].state.spin[i, w]


@wp.func
def roped_throw(x: wp.array(dtype=RopedTree), w: int, bounce: real):
    """Ropes leave an impact beyond the projected velocities by a part of what these change."""
    s = x[0].rope
    if bounce == real(0.0):
        return
    lost = x[0].lost[w] + rope_energy(s, w)
    for k in range(s[0].ropes.count):
        first = s[0].ropes.first[k]
        n = s[0].state.segments[k, w]
        for j in range(n + 1):
            s[0].work.v[first + j, w] = s[0].state.velocity[first + j, w] + s[0].work.dv[first + j, w] * bounce
            if j < n:
                s[0].work.w[first + j, w] = s[0].state.spin[first + j, w] + s[0].work.c[first + j, w] * bounce
        shift_speeds(s, k, w)
    x[0].lost[w] = lost - rope_energy(s, w)


@wp.func
def place_of_raised(t: wp.array(dtype=TreeStep), i: int, w: int) -> int:
    """Where the memory has what a link was raised, or the factor of its velocities."""
    first = (MEMORY_ROW + MEMORY_APART) * (t[0].links + 1) + OF_ROWS * (i + 1) + AT_RAISED
    return first * t[0].memory_number + memory_of(t, w)


@wp.func
def roped_stand_closing(x: wp.array(dtype=RopedTree), w: int, h: real):
    """Ropes where they stand, eliminated towards links that are to be displaced; what they seek closes their gaps."""
    s = x[0].rope
    x[0].scaled[w] = h
    start_bodies(x, w)
    for k in range(s[0].ropes.count):
        at_pose(s, k, w)
        pose_arms(s, k, w)
        s[0].work.weight[k, w] = real(1.0)
        first = s[0].ropes.first[k]
        n = s[0].state.segments[k, w]
        for side in range(2):
            end = 2 * k + side
            if s[0].ropes.kind[end] == BODY or s[0].ropes.kind[end] == LOOP:
                b = s[0].ropes.body[end]
                s[0].state.position[first + side * n, w] = s[0].body_state.position[b, w] + s[0].work.arm[end, w]
        for i in range(first, first + n):
            if s[0].state.cut[i, w] == 0:
                apart = s[0].state.position[i + 1, w] - s[0].state.position[i, w]
                if s[0].state.slack[i, w] == 1:
                    s[0].state.span[i, w] = wp.dot(s[0].work.d[i, w], apart)
                    s[0].work.reach[i, w] = s[0].state.span[i, w]
                s[0].work.c[i, w] = (s[0].work.d[i, w] * s[0].state.span[i, w] - apart) / h
    eliminate_ropes(x, w, True)
    clear_hung(x, w, HUNG)
    scale = real(0.5) * h
    for k in range(s[0].ropes.count):
        if s[0].ropes.kind[2 * k] == BODY:
            i = x[0].link_of[s[0].ropes.body[2 * k]]
            arm = recall_triple(x[0].tree, i, AT_COM, w) + s[0].work.arm[2 * k, w]
            f = s[0].work.p_l[k, w] * scale
            lack(x, i, w, f, s[0].work.p_a[k, w] * scale + wp.cross(arm, f))
            hang_inertia(x, k, i, w, real(1.0), arm, arm, mat33(real(0.0)))
        if s[0].ropes.kind[2 * k + 1] == LOOP:
            a = x[0].link_of[s[0].ropes.body[2 * k]]
            b = x[0].link_of[s[0].ropes.body[2 * k + 1]]
            arm = recall_triple(x[0].tree, a, AT_COM, w) + s[0].work.arm[2 * k, w]
            held = recall_triple(x[0].tree, b, AT_COM, w) + s[0].work.arm[2 * k + 1, w]
            put_rows(x, k, w, arm, arm, held, held, real(1.0))
            put_gaps(x, k, w, s[0].work.g[k, w] * -scale)


@wp.func
def roped_raise(x: wp.array(dtype=RopedTree), w: int):
    """Ropes follow links that are displaced; their weight that this raises, times ¼ h², counts as that of a link."""
    t = x[0].tree
    s = x[0].rope
    h = x[0].scaled[w]
    per = real(2.0) / h
    for n in range(x[0].held):
        i = x[0].held_link[n]
        if i >= 0:
            b = x[0].held_body[n]
            g = recall_triple(t, i, AT_G, w)
            s[0].body.dv[b, w] = (recall_triple(t, i, AT_U, w) + wp.cross(g, recall_triple(t, i, AT_COM, w))) * per
            s[0].body.dw[b, w] = g * per
    follow_ropes(x, w, per)
    for k in range(s[0].ropes.count):
        first = s[0].ropes.first[k]
        n = s[0].state.segments[k, w]
        raised = real(0.0)
        for i in range(first, first + n + 1):
            moved = (s[0].work.v[i, w] - s[0].state.velocity[i, w]) * h
            s[0].state.position[i, w] = s[0].state.position[i, w] + moved
            raised = raised - s[0].work.mass[i, w] * wp.dot(t[0].settings.gravity[w], moved)
            if i < first + n:
                turn = (s[0].work.w[i, w] - s[0].state.spin[i, w]) * h
                s[0].state.rotation[i, w] = unit(cayley(turn) * s[0].state.rotation[i, w])
        for side in range(2):
            kind = s[0].ropes.kind[2 * k + side]
            if raised != real(0.0) and (kind == BODY or kind == LOOP):
                i = x[0].link_of[s[0].ropes.body[2 * k + side]]
                if i >= 0:
                    at = place_of_raised(t, i, w)
                    t[0].memory[at] = t[0].memory[at] + raised * (real(0.25) * h * h)
                    raised = real(0.0)
    take_back_impulses(s, w)


@wp.func
def roped_slow(x: wp.array(dtype=RopedTree), w: int):
    """Ropes are slowed as the slowest of the links that hold them."""
    s = x[0].rope
    for k in range(s[0].ropes.count):
        part = real(1.0)
        for side in range(2):
            kind = s[0].ropes.kind[2 * k + side]
            if kind == BODY or kind == LOOP:
                i = x[0].link_of[s[0].ropes.body[2 * k + side]]
                if i >= 0:
                    part = wp.min(part, x[0].tree[0].memory[place_of_raised(x[0].tree, i, w)])
        if part < real(1.0):
            first = s[0].ropes.first[k]
            for i in range(first, first + s[0].state.segments[k, w] + 1):
                s[0].work.v[i, w] = s[0].state.velocity[i, w] * part
                s[0].work.w[i, w] = s[0].state.spin[i, w] * part
            shift_speeds(s, k, w)


# ---- parts of a step ---------------------------------------------------------------------------------------------------------


@wp.func
def roped_prepare(x: wp.array(dtype=RopedTree), w: int, h: real) -> int:
    """Reels pay out for a part of a step, and what drives ends moves; 1 where velocities do not fit that, or were changed."""
    t = x[0].tree
    s = x[0].rope
    x[0].verdict[w] = GO_ON
    s[0].h[w] = h
    s[0].kick[w] = h
    x[0].scaled[w] = h
    if x[0].elapsed[w] == real(0.0):
        keep_impulses(s, w)
    for n in range(x[0].held):
        if x[0].held_link[n] < 0:
            b = x[0].held_body[n]
            if x[0].elapsed[w] == real(0.0):
                s[0].body_state.position[b, w] = t[0].state.position[b, w]
                s[0].body_state.rotation[b, w] = t[0].state.rotation[b, w]
                s[0].body_state.velocity[b, w] = t[0].state.velocity[b, w]
                s[0].body_state.spin[b, w] = t[0].state.spin[b, w]
            s[0].body.v[b, w] = s[0].body_state.velocity[b, w]
            s[0].body.w[b, w] = s[0].body_state.spin[b, w]
            body_pose(s, b, w)
    for k in range(s[0].ropes.count):
        pay_out(s, k, w, h)
    clear_snaps(s, w)
    whole = not is_settled(s, w)
    if not whole and goes_on(s, w):
        return 0
    undo_reeling(s, w)
    x[0].what[w] = ENDS
    if whole:
        x[0].what[w] = WHOLE
    return 1


@wp.func
def roped_miss(x: wp.array(dtype=RopedTree), w: int, whole: int):
    """A part of the step, or the whole one, is not made so."""
    s = x[0].rope
    undo_reeling(s, w)
    take_back_impulses(s, w)
    if whole == 1:
        safe = x[0].safe
        copy_ropes(s[0].state, safe[0].state, w)


@wp.func
def roped_go_back(x: wp.array(dtype=RopedTree), w: int):
    """To the state at the start of the step."""
    s = x[0].rope
    safe = x[0].safe
    copy_ropes(safe[0].state, s[0].state, w)
    x[0].elapsed[w] = real(0.0)


@wp.func
def roped_keep(x: wp.array(dtype=RopedTree), w: int) -> int:
    """Ropes of a part that was made become the state; 1 where elements became taut in it."""
    s = x[0].rope
    scale_pulls(s, w, s[0].settings.dt[0] / s[0].h[w])
    for k in range(s[0].ropes.count):
        keep_rope(s, k, w)
    keep_impulses(s, w)
    for n in range(x[0].held):
        if x[0].held_link[n] < 0:
            b = x[0].held_body[n]
            s[0].body_state.position[b, w] = s[0].body.x[b, w]
            s[0].body_state.rotation[b, w] = s[0].body.q[b, w]
            s[0].body_state.rest[b, w] = s[0].body.rest[b, w]
    x[0].elapsed[w] = x[0].elapsed[w] + s[0].h[w]
    x[0].what[w] = FIT_JOINTS
    if any_snaps(s, w):
        x[0].what[w] = SNAPS
        return 1
    return 0


@wp.func
def roped_feed(x: wp.array(dtype=RopedTree), w: int):
    """What is torn, inserted or removed once velocities fit contradicts what was there."""
    s = x[0].rope
    dt = s[0].settings.dt[0]
    change_segments(s, w, s[0].h[w], dt)
    keep_impulses(s, w)


@wp.func
def roped_spend(x: wp.array(dtype=RopedTree), w: int):
    """A step is made: forces of one step on points of ropes are of no other."""
    spend_pushes(x[0].rope, w)
    x[0].elapsed[w] = real(0.0)


@wp.func
def roped_calls(x: wp.array(dtype=RopedTree), w: int):
    """All that emitted code calls: a kernel that names it has these functions before that code."""
    h = roped_follow(x, w, 0, 0)
    roped_begin(x, w)
    roped_inward(x, w)
    roped_report(x, w)
    roped_stand(x, w, h)
    roped_throw(x, w, h)
    roped_stand_closing(x, w, h)
    roped_raise(x, w)
    roped_slow(x, w)
    n = roped_settle(x, w) + roped_prepare(x, w, h) + roped_look(x, w)
    roped_miss(x, w, n)
    roped_go_back(x, w)
    n = roped_keep(x, w)
    roped_feed(x, w)
    roped_spend(x, w)
