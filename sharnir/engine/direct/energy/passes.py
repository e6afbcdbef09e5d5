"""One attempt at a step: passes over the tree and what stands beside it until momenta, moments and gaps are met."""

import warp as wp

from sharnir.core.spatial import matrix
from sharnir.core.types import EPSILON, real, vec3
from sharnir.engine.articulated.data import LOOSE, natural
from sharnir.engine.direct.balls import FREE, HELD, NONE, joint_axes, triple
from sharnir.engine.direct.data import Direct
from sharnir.engine.direct.energy.cables import open_cables, switch_cables
from sharnir.engine.direct.energy.laws import ball_springs, open_link, relinearise, soften, worst_law
from sharnir.engine.direct.energy.limits import ball_rows
from sharnir.engine.direct.energy.links import AGAIN, ANEW, follow_all, inward
from sharnir.engine.direct.energy.means import ball_speeds, lock_gaps, place, take_driven
from sharnir.engine.direct.energy.rows import (
    FINEST,
    RAISED,
    ROUNDS,
    act,
    close_rows,
    ease_rows,
    factor_rows,
    find_rows,
    keep_changes,
    stiffen_lines,
)
from sharnir.engine.direct.modified import lies

OPEN = wp.constant(real(max(1.0e-9, 100.0 * EPSILON)))  # of a gap: joints that a caller left open by more are closed first
RESTS = wp.constant(real(max(1.0e-9, 100.0 * EPSILON)))  # of the largest speed: an axis that friction holds may move so fast
UNMET = wp.constant(real(10.0))  # tolerances: the residual, at least, of a step that was made coarsely
HISTORY = wp.constant(4)  # steps whose velocities the predictor of the next step uses
BLUR = wp.constant(real(4.0 * EPSILON))  # of a body's distance, that rounding may move it by
SINGLE = wp.constant(EPSILON > 1.0e-10)  # precision: no pass can tell a change of velocities from rounding
AMPLIFIED = wp.constant(real(64.0))  # what a loop makes of rounding, at most: all that moves where a mechanism stands still
CURVED = wp.constant(real(100.0))  # of the square of the first change of velocities, of their scale: the second is no larger
BEST = wp.constant(real(1.0e-4))  # of velocities, of a gap: what cannot be met better in a singular pose is taken, and told
PATIENCE = wp.constant(
    3
)  # passes that correct the laws of all joints at once, with no fewer wrong; then one at a time, which ends
FAR = wp.constant(real(6.0e-4))  # a change of velocities, of their scale, after which factors are made anew
SLOW = wp.constant(real(0.1))  # a pass that leaves more of the change before it calls for a new factor
MET = wp.constant(real(max(3.0e-13, 16.0 * EPSILON)))  # change of velocities, of their scale, at which a step is met
STUCK = wp.constant(real(0.5))  # a pass that leaves so much does not meet any more
STALLED = wp.constant(real(max(1.0e-8, 256.0 * EPSILON)))  # and at which rounding may stop it, and a gap


# ---- before the passes ------------------------------------------------------------------------------------------------------


@wp.func
def begin(s: wp.array(dtype=Direct), w: int) -> real:
    """Velocities at the start, momenta after external forces, and a guess of the end (`foresee`).

    Returns the scale of velocities, as twice a kinetic energy, J; that of their rounding is kept in `before`.
    """
    w = natural(w)
    h = s[0].drift[w]
    s[0].kick[w] = h
    gravity = s[0].settings.gravity[w]
    take_driven(s, w)
    scale = real(0.0)
    blur = real(0.0)
    for n in range(s[0].tree.count):
        i = natural(n)
        b = natural(s[0].tree.row[i].body)
        own = natural(s[0].half_of[b])
        m = s[0].tree.mass[i, w]
        R = s[0].state.rotation[own, w]
        M = matrix(R)
        L = s[0].state.momentum[own, w]
        v = s[0].state.velocity[own, w]
        omega = M * (s[0].whole.inv_inertia[own, w] * (L * M))
        s[0].work.velocity[b, w] = v
        s[0].work.spin[b, w] = omega
        turning = wp.dot(omega, L)
        turning = turning / s[0].tree.row[i].parts
        new, L = kicked(s, own, w, v + gravity * h, L, h)
        s[0].momentum[b, w] = L
        s[0].impulse_l[i, w] = new * m
        ahead = h * real(wp.min(s[0].state.history[w], 1))
        s[0].work.acceleration[b, w] = v + s[0].state.guess_v[own, w] * ahead
        s[0].work.turning[b, w] = omega + M * s[0].state.guess_w[own, w] * ahead
        by = new - v
        scale = scale + (wp.dot(v, v) + wp.dot(by, by)) * m + turning
        x = s[0].state.position[own, w]
        r = s[0].tree.place[i, w].own_point
        blur = blur + (wp.dot(x, x) + wp.dot(r, r)) * m
        s[0].work.position[b, w] = s[0].state.position[own, w]
        s[0].work.rotation[b, w] = R
        j = natural(s[0].tree.row[i].joint)
        kind = s[0].tree.row[i].kind
        if j < s[0].scene_joints and s[0].control.enabled[j, w] == 0:
            kind = LOOSE
        if lies(s, own, w):  # what sleeps hangs on nothing, and gives way to nothing
            kind = LOOSE
        s[0].work.kind[i, w] = kind
    s[0].before[w] = blur * (BLUR / h) * (BLUR / h)
    s[0].energy[w] = scale
    return scale


@wp.func
def kicked(s: wp.array(dtype=Direct), own: int, w: int, v: vec3, L: vec3, h: real):
    """Velocity and momentum of a body after a user's forces and those of its contacts."""
    if s[0].pushed[w] == 1:
        L = L + (s[0].control.torque[own, w] + s[0].control.torque_once[own, w]) * h
        force = (s[0].control.force[own, w] + s[0].control.force_once[own, w]) * h
        v = v + force * s[0].whole.inv_mass[own, w]
    if s[0].touching == 1:
        L = L + s[0].touch.push_a[own, w]
        v = v + s[0].touch.push_l[own, w] * s[0].whole.inv_mass[own, w]
    if lies(s, own, w):
        L = vec3(real(0.0))
        v = vec3(real(0.0))
        s[0].state.guess_v[own, w] = v
        s[0].state.guess_w[own, w] = v
    return v, L


@wp.func
def begin_again(s: wp.array(dtype=Direct), w: int) -> real:
    """The same step with other impulses of contacts: laws, factors, and the end that was found, stay as a guess.

    Returns the scale of velocities (`begin`).
    """
    h = s[0].drift[w]
    scale = real(0.0)
    for n in range(s[0].tree.count):
        i = natural(n)
        b = natural(s[0].tree.row[i].body)
        own = natural(s[0].half_of[b])
        m = s[0].tree.mass[i, w]
        v = s[0].work.velocity[b, w]
        L = s[0].state.momentum[own, w]
        turning = wp.dot(s[0].work.spin[b, w], L) / s[0].tree.row[i].parts
        new, L = kicked(s, own, w, v + s[0].settings.gravity[w] * h, L, h)
        s[0].gain[i, w] = s[0].gain[i, w] + (s[0].momentum[b, w] - L) / s[0].tree.row[i].parts
        s[0].momentum[b, w] = L
        s[0].impulse_l[i, w] = new * m
        by = new - v
        scale = scale + (wp.dot(v, v) + wp.dot(by, by)) * m + turning
    s[0].stopped[w] = 0
    s[0].done[w] = 1
    s[0].energy[w] = scale
    return scale


@wp.func
def pushes(s: wp.array(dtype=Direct), w: int):
    """Impulses that a user commands along free axes."""
    for n in range(s[0].tree.count):
        i = natural(n)
        v0 = natural(s[0].tree.row[i].v_start)
        j = natural(s[0].tree.row[i].joint)
        for at in range(v0, v0 + s[0].tree.row[i].v_size):
            push = real(0.0)
            if s[0].pushed[w] == 1 and j < s[0].scene_joints:
                push = s[0].control.joint_force[at, w] * s[0].drift[w]
            s[0].tau[at, w] = push
        if s[0].pushed[w] == 1 and j < s[0].scene_joints and s[0].tree.row[i].kind == FREE:
            m = triple(s[0].tau, v0, w)
            if wp.length_sq(m) > real(0.0):
                m = wp.quat_rotate(joint_axes(s, j, w), m) * real(s[0].tree.sign[i])
            s[0].ball_push[i, w] = m


# ---- a step -----------------------------------------------------------------------------------------------------------------


@wp.func
def full_pass(s: wp.array(dtype=Direct), w: int, mode: int, first: bool, one: bool):
    """A pass with laws and rows beside the tree: the largest gap, the size of the change, the mismatch of the laws, and of
    how many joints the laws were not as expected. They are corrected for the next pass: all, or the first one.
    """
    beside = s[0].closures.count
    rows_act(s, w)
    if mode == ANEW:
        stiffen_lines(s, w)
    inward(s, w, mode)
    if first and s[0].acting == 1:
        if soften(s, w) == 1:
            refresh_locks(s, w)
            rows_act(s, w)
            stiffen_lines(s, w)
            inward(s, w, ANEW)
    if beside > 0:
        follow_all(s, w, real(1.0))
        keep_changes(s, w)
        rounds = int(1)
        if mode == ANEW:
            factor_rows(s, w)
            rounds = ROUNDS
        close_rows(s, w, True, rounds)
        if first:
            ease_rows(s, w)
        if s[0].acting == 1:  # once more, now that the rows' impulses are known
            rows_act(s, w)
            inward(s, w, AGAIN)
    how = int(1)
    if s[0].acting == 1:
        how = 3
    elif beside > 0:
        how = 2
    gap, size = place(s, w, how)
    off = real(0.0)
    wrong = int(0)
    if s[0].acting == 1:
        off = worst_law(s, w)
        if off > s[0].settings.tolerance[0] and s[0].done[w] < s[0].settings.iterations[0]:
            wrong = relinearise(s, w, one)
            refresh_locks(s, w)
            s[0].done[w] = s[0].done[w] + 1
        refresh_springs(s, w, False)
    if beside > 0:
        gap = wp.max(gap, find_rows(s, w))
        if s[0].cables.count > 0:
            if switch_cables(s, w):
                gap = wp.max(gap, find_rows(s, w))
                s[0].done[w] = s[0].done[w] + 1
    return gap, size, off, wrong


@wp.func
def rows_act(s: wp.array(dtype=Direct), w: int):
    """Impulses of the rows beside the tree, as of outside, on top of those that a user commands."""
    if s[0].closures.count > 0:
        pushes(s, w)
        act(s, w)


@wp.func
def refresh_locks(s: wp.array(dtype=Direct), w: int):
    """What locked axes and balls that friction holds lack, after laws were made linear anew."""
    for n in range(s[0].tree.count):
        i = natural(n)
        kind = s[0].work.kind[i, w]
        if s[0].linear.acts[i, w] == 1 and kind != LOOSE:
            if kind == NONE:
                lock_gaps(s, i, w)
            else:
                ball_speeds(s, i, w, kind)


@wp.func
def refresh_springs(s: wp.array(dtype=Direct), w: int, first: bool):
    """Springs and limits of ball joints, which are not linear in the speeds; `first`: before the first pass."""
    for i in range(s[0].tree.count):
        if s[0].linear.acts[i, w] == 1 and s[0].work.kind[i, w] == NONE and s[0].joints.turns[s[0].tree.joint[i]] == 3:
            ball_springs(s, i, w)
            if s[0].joints.ball[s[0].tree.joint[i]] != 0:
                ball_rows(s, i, w, first)
                lock_gaps(s, i, w)


@wp.func
def open_attempt(s: wp.array(dtype=Direct), w: int) -> real:
    """Before the passes of a step of the length in `drift`; returns the scale of velocities (`begin`)."""
    scale = begin(s, w)
    s[0].stopped[w] = 0
    s[0].blurred[w] = real(0.0)
    pushes(s, w)
    s[0].done[w] = 1
    if s[0].acting == 1:
        for i in range(s[0].tree.count):
            open_link(s, i, w)
    place(s, w, 0)
    if s[0].acting == 1:
        refresh_springs(s, w, True)
    for r in range(s[0].closures.count):
        s[0].row_impulse[r, w] = s[0].state.row_force[r, w] * s[0].drift[w]
    if s[0].closures.count > 0:
        if s[0].cables.count > 0:
            open_cables(s, w)
        find_rows(s, w)
    return scale


@wp.func
def count_pass(s: wp.array(dtype=Direct), w: int, mode: int):
    """A pass; one that factors anew counts as many as it takes the time of."""
    if mode == ANEW:
        s[0].passes[w] = s[0].passes[w] + s[0].settings.iterations[5]
    else:
        s[0].passes[w] = s[0].passes[w] + 1


@wp.func
def hold_again(s: wp.array(dtype=Direct), w: int):
    """What was freed for the response of contacts (`touch_ease`) is held again; factors are to be made anew."""
    s[0].touch.eased[w] = 0
    for i in range(s[0].tree.count):
        if s[0].touch.held[i, w] == 1:
            s[0].work.kind[i, w] = HELD


@wp.func
def enter(s: wp.array(dtype=Direct), w: int):
    """The scale of velocities, and the mode of the first pass: where contacts alone have changed, with the factors there are."""
    if s[0].touching == 1:
        if s[0].touch.turn[w] > 0:
            mode = int(AGAIN)
            if s[0].touch.eased[w] == 1:
                hold_again(s, w)
                mode = int(ANEW)
            return begin_again(s, w), mode
    return open_attempt(s, w), int(ANEW)


@wp.func
def miss_gap(s: wp.array(dtype=Direct), w: int, gap: real):
    """A gap beyond its tolerance counts as a law that is missed by as many tolerances."""
    s[0].residual[w] = wp.max(s[0].residual[w], s[0].settings.tolerance[0] * gap / s[0].settings.tolerance[1])


@wp.func
def attempt(s: wp.array(dtype=Direct), w: int) -> bool:
    """A step of the length in `drift`; returns whether its passes met."""
    scale, mode = enter(s, w)
    again = mode == AGAIN
    last = real(0.0)
    total = s[0].settings.iterations[1]
    most = s[0].settings.iterations[2]
    met = MET * s[0].settings.tolerance[2]
    made = int(0)
    pivots = int(1)
    before = int(1)  # pivots up to the last pass
    fewest = int(1 << 30)  # joints whose laws were not as expected
    patience = int(PATIENCE)
    while made < total and s[0].passes[w] < most:
        gap = real(0.0)
        size = real(0.0)
        laws = real(0.0)
        s[0].single[w] = int(patience == 0)
        s[0].rows_move[w] = 0
        gap, size, laws, wrong = full_pass(s, w, mode, made == 0 and not again, patience == 0)
        s[0].residual[w] = laws
        patience = wp.max(patience - 1, 0)
        if wrong < fewest:
            fewest = wrong
            patience = PATIENCE
        count_pass(s, w, mode)
        made = made + 1
        if not wp.isfinite(size + gap):
            return False
        scale = wp.max(scale, size)
        s[0].energy[w] = scale
        off = real(0.0)
        blur = real(0.0)  # what the rounding of poses makes of velocities
        if size > real(0.0):
            off = wp.sqrt(size / scale)
            blur = wp.sqrt(s[0].before[w] / scale)
        if SINGLE and off <= blur:
            off = real(0.0)
        s[0].state.open[w] = gap / s[0].settings.per_metre[0]
        s[0].blurred[w] = wp.clamp(wp.max(off, gap), FINEST, RAISED)
        small = gap <= s[0].settings.tolerance[1]
        moves = False  # limits of balls: momenta are kept once their directions stay
        moves = s[0].rows_move[w] == 1
        mode = AGAIN
        if off > FAR or moves:
            mode = ANEW
        if s[0].done[w] > pivots:  # a law was not as expected: nothing is said of how the passes meet
            pivots = s[0].done[w]
            total = total + 1
            mode = ANEW
            last = real(0.0)
            off = wp.max(off, FAR)
        if SINGLE and made == 1 and small and s[0].done[w] == 1 and CURVED * off * off <= blur:
            return True  # what a second pass would change is less than rounding
        if last > real(0.0):
            fell = off / last
            if small and off * fell <= met and not moves:
                return True  # the next change would be smaller than that
            if fell > STUCK and off <= wp.max(STALLED, AMPLIFIED * blur) and gap <= wp.max(STALLED, s[0].settings.tolerance[1]):
                if not small:
                    miss_gap(s, w, gap)
                return True  # what is left is rounding, or, in a singular pose, what rows cannot close
            if fell > SLOW:
                mode = ANEW
        elif off <= met and gap <= wp.max(STALLED, s[0].settings.tolerance[1]):
            if not small:
                miss_gap(s, w, gap)
            return True
        if made == total and s[0].loose[w] == 1 and off <= BEST and gap <= BEST:
            miss_gap(s, w, gap)
            s[0].residual[w] = wp.max(s[0].residual[w], s[0].settings.tolerance[0] * off / met)
            s[0].stopped[w] = -1
            return True
        last = off
        if mode == ANEW and pivots > before:
            last = real(0.0)
        before = pivots
    return False
