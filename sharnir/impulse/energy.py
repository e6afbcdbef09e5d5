"""The step that keeps energy and momenta: joints closed by the means of their vectors (theory: energy and momentum).

    M (V₁ − V₀) = Δt F + J̄ᵀp,     x₁ = x₀ + Δt v̄,  R₁ = cay(Δt ω̄) R₀,  V̄ = ½(V₀ + V₁),     G(x₁, R₁) = 0

J̄ has every arm and axis as the mean of those at the start and at the end of the step (`means`), so that closed joints do no
work, whatever the masses and the step. Velocities belong to the pose. A step is solved about a guess of its end by the passes of
`direct_links`, laws included; passes over vectors with the same factors (`lack_inward`, `place`) then bring momenta, moments and
gaps to rounding. Momentum is met link by link, from the leaves inwards, which gives what each joint carries; what that is along
a free axis, beyond what acts there, is what a pass corrects. Where passes do not meet, the step is made in parts.
"""

from typing import Any

import warp as wp

from sharnir.articulated.closures import row_rate
from sharnir.guard import count_step
from sharnir.impulse.balls import FREE, NONE, joint_axes, kind_of, triple
from sharnir.impulse.closing import any_gap, half_gap
from sharnir.impulse.direct import DIVIDED, any_switched, follow_turns, untouched
from sharnir.impulse.direct_data import Direct
from sharnir.impulse.direct_links import OUT
from sharnir.impulse.energy_laws import (
    ball_springs,
    near_limit,
    open_link,
    passed_limits,
    relinearise,
    report_link,
    soften,
    worst_law,
)
from sharnir.impulse.energy_links import AGAIN, ANEW, GAPS, balance, follow_all, inward
from sharnir.impulse.energy_rows import (
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
from sharnir.impulse.means import ball_speeds, lock_gaps, place, take_driven
from sharnir.joints import breaks, coordinate, free_axis
from sharnir.kinematics import pose_at
from sharnir.model import State
from sharnir.spatial import matrix, turned
from sharnir.tree import LOOSE, natural
from sharnir.types import EPSILON, inline_less, mat66, real, vec3

MODULES = ("sharnir.energy_chain", "sharnir.energy_tree", "sharnir.energy")
for name in MODULES:
    inline_less(name)

OPEN = wp.constant(real(max(1.0e-9, 100.0 * EPSILON)))  # m, rad: joints that a caller left open by more are closed first
RESTS = wp.constant(real(max(1.0e-9, 100.0 * EPSILON)))  # m/s, rad/s: what friction holds may be read to move at so much
# of a link's inertia: what friction holds resists so much while velocities are projected; a lock, which yields to rows beside
# the tree, would need more than one pass to keep momenta
HOLDS = wp.constant(real(1.0e10))
REPAIRS = wp.constant(30)  # displacements, at most, that take passed limits back in
HALVINGS = wp.constant(8)  # of a step, at most
SPENT = wp.constant(-(1 << 20))  # of `State.failed`, less a body: the step needs more passes than it may take
UNMET = wp.constant(real(10.0))  # tolerances: the residual, at least, of a step that was made coarsely
ENOUGH = wp.constant(real(4.0))  # steps, whose velocities a guess of the next is made from
BLUR = wp.constant(real(4.0 * EPSILON))  # of a body's distance, that rounding may move it by
SINGLE = wp.constant(EPSILON > 1.0e-10)  # precision: no pass can tell a change of velocities from rounding
CURVED = wp.constant(real(100.0))  # of the square of the first change of velocities, of their scale: the second is no larger
BEST = wp.constant(real(1.0e-4))  # of velocities; m, rad: what cannot be met better in a singular pose is taken, and told
PATIENCE = wp.constant(
    3
)  # passes that correct the laws of all joints at once, with no fewer wrong; then one at a time, which ends
FAR = wp.constant(real(6.0e-4))  # a change of velocities, of their scale, after which factors are made anew
SLOW = wp.constant(real(0.1))  # a pass that leaves more of the change before it calls for a new factor
MET = wp.constant(real(max(3.0e-13, 16.0 * EPSILON)))  # change of velocities, of their scale, at which a step is met
STUCK = wp.constant(real(0.5))  # a pass that leaves so much does not meet any more
STALLED = wp.constant(real(max(1.0e-8, 256.0 * EPSILON)))  # and at which rounding may stop it; m or rad, of a gap


@wp.func
def some(v: vec3) -> bool:
    return v[0] != real(0.0) or v[1] != real(0.0) or v[2] != real(0.0)


@wp.func
def pushed(s: wp.array(dtype=Direct), w: int) -> int:
    """1 where a user's forces act in this call."""
    for b in range(s[0].own):
        if some(s[0].control.force[b, w]) or some(s[0].control.force_once[b, w]):
            return 1
        if some(s[0].control.torque[b, w]) or some(s[0].control.torque_once[b, w]):
            return 1
    for a in range(s[0].speeds):
        if s[0].control.joint_force[a, w] != real(0.0):
            return 1
    return 0


# ---- before the passes ------------------------------------------------------------------------------------------------------


@wp.func
def begin(s: wp.array(dtype=Direct), w: int, scope: int) -> real:
    """Velocities at the start, momenta after external forces, and a guess of the end (`foresee`).

    Returns the scale of velocities, as twice a kinetic energy, J; that of their rounding is kept in `before`.
    """
    w = natural(w)
    h = s[0].drift[w]
    s[0].kick[w] = h
    gravity = s[0].settings.gravity[0]
    take_driven(s, w)
    scale = real(0.0)
    blur = real(0.0)
    for n in range(s[0].tree.count):
        i = natural(n)
        b = natural(s[0].tree.row[i].body)
        own = natural(s[0].half_of[b])
        m = s[0].tree.row[i].mass
        R = s[0].state.rotation[own, w]
        M = matrix(R)
        L = s[0].state.momentum[own, w]
        v = s[0].state.velocity[own, w]
        omega = M * (s[0].whole.inv_inertia[own] * (L * M))
        s[0].work.velocity[b, w] = v
        s[0].work.spin[b, w] = omega
        turning = wp.dot(omega, L)
        if scope > 1:
            turning = turning / s[0].tree.row[i].parts
        new = v + gravity * h
        if s[0].pushed[w] == 1:
            L = L + (s[0].control.torque[own, w] + s[0].control.torque_once[own, w]) * h
            force = (s[0].control.force[own, w] + s[0].control.force_once[own, w]) * h
            new = new + force * s[0].whole.inv_mass[own]
        s[0].momentum[b, w] = L
        s[0].impulse_l[i, w] = new * m
        ahead = h * wp.min(s[0].state.lag[w], real(1.0))
        s[0].work.acceleration[b, w] = v + s[0].state.guess_v[own, w] * ahead
        s[0].work.turning[b, w] = omega + M * s[0].state.guess_w[own, w] * ahead
        by = new - v
        scale = scale + (wp.dot(v, v) + wp.dot(by, by)) * m + turning
        x = s[0].state.position[own, w]
        r = s[0].tree.row[i].own_point
        blur = blur + (wp.dot(x, x) + wp.dot(r, r)) * m
        if scope > 0:
            s[0].work.position[b, w] = s[0].state.position[own, w]
            s[0].work.rotation[b, w] = R
        if scope > 1:
            j = natural(s[0].tree.row[i].joint)
            kind = s[0].tree.row[i].kind
            if j < s[0].scene_joints and s[0].control.enabled[j, w] == 0:
                kind = LOOSE
            s[0].work.kind[i, w] = kind
    s[0].before[w] = blur * (BLUR / h) * (BLUR / h)
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
    """A pass with laws and rows beside the tree: the largest gap, the size of the change, the mismatch of the laws, N·s, and of
    how many joints the laws were not as expected. They are corrected for the next pass: all, or the first one.
    """
    beside = s[0].closures.count
    rows_act(s, w)
    if mode == ANEW:
        stiffen_lines(s, w)
    inward(s, w, 2, mode)
    if first and s[0].acting == 1:
        if soften(s, w) == 1:
            refresh_locks(s, w)
            rows_act(s, w)
            stiffen_lines(s, w)
            inward(s, w, 2, ANEW)
    if beside > 0:
        follow_all(s, w, 2, real(1.0))
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
            inward(s, w, 2, AGAIN)
    how = int(1)
    if s[0].acting == 1:
        how = 3
    elif beside > 0:
        how = 2
    gap, size = place(s, w, 2, how)
    off = real(0.0)
    wrong = int(0)
    if s[0].acting == 1:
        off = worst_law(s, w)
        if off > s[0].settings.tolerance[0] and s[0].done[w] < s[0].settings.iterations[0]:
            wrong = relinearise(s, w, one)
            refresh_locks(s, w)
            s[0].done[w] = s[0].done[w] + 1
        refresh_springs(s, w)
    if beside > 0:
        gap = wp.max(gap, find_rows(s, w))
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
def refresh_springs(s: wp.array(dtype=Direct), w: int):
    """Springs of ball joints, which are not linear in the speeds."""
    for i in range(s[0].tree.count):
        if s[0].linear.acts[i, w] == 1 and s[0].work.kind[i, w] == NONE and s[0].joints.turns[s[0].tree.joint[i]] == 3:
            ball_springs(s, i, w)


@wp.func
def open_attempt(s: wp.array(dtype=Direct), w: int, scope: int) -> real:
    """Before the passes of a step of the length in `drift`; returns the scale of velocities (`begin`)."""
    scale = begin(s, w, scope)
    s[0].stopped[w] = 0
    s[0].blurred[w] = real(0.0)
    if scope > 0 or s[0].pushed[w] == 1:
        pushes(s, w)
    s[0].done[w] = 1
    if scope > 1:
        if s[0].acting == 1:
            for i in range(s[0].tree.count):
                open_link(s, i, w)
    place(s, w, scope, 0)
    if scope > 1:
        if s[0].acting == 1:
            refresh_springs(s, w)
        for r in range(s[0].closures.count):
            s[0].row_impulse[r, w] = s[0].state.row_force[r, w] * s[0].drift[w]
        if s[0].closures.count > 0:
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
def attempt(s: wp.array(dtype=Direct), w: int, scope: int) -> bool:
    """A step of the length in `drift`; returns whether its passes met."""
    scale = open_attempt(s, w, scope)
    last = real(0.0)
    mode = int(ANEW)
    total = s[0].settings.iterations[1]
    most = s[0].settings.iterations[2]
    made = int(0)
    pivots = int(1)
    before = int(1)  # pivots up to the last pass
    fewest = int(1 << 30)  # joints whose laws were not as expected
    patience = int(PATIENCE)
    while made < total and s[0].passes[w] < most:
        gap = real(0.0)
        size = real(0.0)
        laws = real(0.0)
        if scope < 2:
            inward(s, w, scope, mode)
            gap, size = place(s, w, scope, 1)
        else:
            gap, size, laws, wrong = full_pass(s, w, mode, made == 0, patience == 0)
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
        off = real(0.0)
        blur = real(0.0)  # what the rounding of poses makes of velocities
        if size > real(0.0):
            off = wp.sqrt(size / scale)
            blur = wp.sqrt(s[0].before[w] / scale)
        if SINGLE and off <= blur:
            off = real(0.0)
        s[0].state.open[w] = gap
        s[0].blurred[w] = wp.clamp(wp.max(off, gap), FINEST, RAISED)
        small = gap <= s[0].settings.tolerance[1]
        mode = AGAIN
        if off > FAR:
            mode = ANEW
        if scope > 1:
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
            if small and off * fell <= MET:
                return True  # the next change would be smaller than that
            if fell > STUCK and off <= wp.max(STALLED, blur) and gap <= wp.max(STALLED, s[0].settings.tolerance[1]):
                if not small:
                    s[0].residual[w] = wp.max(s[0].residual[w], gap / s[0].drift[w])
                return True  # what is left is rounding, or, in a singular pose, what rows cannot close
            if fell > SLOW:
                mode = ANEW
        elif off <= MET and gap <= wp.max(STALLED, s[0].settings.tolerance[1]):
            if not small:
                s[0].residual[w] = wp.max(s[0].residual[w], gap / s[0].drift[w])
            return True
        if made == total and s[0].loose[w] == 1 and off <= BEST and gap <= BEST:
            s[0].residual[w] = wp.max(s[0].residual[w], off * wp.sqrt(scale))
            s[0].stopped[w] = -1
            return True
        last = off
        if mode == ANEW and pivots > before:
            last = real(0.0)
        before = pivots
    return False


@wp.func
def foresee(s: wp.array(dtype=Direct), i: int, own: int, w: int, dv: vec3, dw: vec3) -> real:
    """Guess how a body's velocity will change in the next step, from dv and dw a second in this one; 1 where it goes on so.

    Differences d of the changes follow each other as d₊ = 2c d − d₋ with one c, in slow motion (c = 1), in a vibration that the
    step hardly resolves, and in one that it does not, which goes to and fro (c = −1). Where that would not have told this
    change well, the next one is thought to be the same, or to go back, or none.
    """
    m = s[0].tree.row[i].mass
    I = s[0].tree.row[i].least
    lv = s[0].state.last_v[own, w]
    lw = s[0].state.last_w[own, w]
    s[0].state.last_v[own, w] = dv
    s[0].state.last_w[own, w] = dw
    on = real(0.0)
    gv = vec3(real(0.0))
    gw = vec3(real(0.0))
    av = dv - lv
    aw = dw - lw
    none = m * wp.dot(dv, dv) + I * wp.dot(dw, dw)
    same = m * wp.dot(av, av) + I * wp.dot(aw, aw)
    if same < none:
        on = real(1.0)
        gv = dv
        gw = dw
    else:
        before = m * wp.dot(lv, lv) + I * wp.dot(lw, lw)
        both = m * wp.dot(lv, dv) + I * wp.dot(lw, dw)
        if both < real(0.0):
            back = wp.max(both / before, real(-1.0))
            gv = dv * back
            gw = dw * back
    bv = s[0].state.slope_v[own, w]
    bw = s[0].state.slope_w[own, w]
    sv = av + s[0].state.older_v[own, w]
    sw = aw + s[0].state.older_w[own, w]
    s[0].state.slope_v[own, w] = av
    s[0].state.slope_w[own, w] = aw
    s[0].state.older_v[own, w] = bv
    s[0].state.older_w[own, w] = bw
    bb = m * wp.dot(bv, bv) + I * wp.dot(bw, bw)
    c2 = real(0.0)
    if bb > real(0.0):
        c2 = wp.clamp((m * wp.dot(sv, bv) + I * wp.dot(sw, bw)) / bb, real(-2.0), real(2.0))
    sv = sv - bv * c2
    sw = sw - bw * c2
    missed = m * wp.dot(sv, sv) + I * wp.dot(sw, sw)
    if s[0].state.lag[w] >= ENOUGH and missed < wp.min(same, none):
        gv = dv + av * c2 - bv
        gw = dw + aw * c2 - bw
    s[0].state.guess_v[own, w] = gv
    s[0].state.guess_w[own, w] = gw
    return on


@wp.func
def commit(s: wp.array(dtype=Direct), w: int, scope: int):
    """The end of the step becomes the state."""
    w = natural(w)
    h = s[0].drift[w]
    whole = s[0].settings.dt[0] / h
    for n in range(s[0].tree.count):
        i = natural(n)
        b = natural(s[0].tree.row[i].body)
        own = natural(s[0].half_of[b])
        j = natural(s[0].tree.row[i].joint)
        if scope < 2 or b < s[0].own:
            v0 = s[0].state.velocity[own, w]
            v = s[0].work.acceleration[b, w]
            x = s[0].work.position[b, w]
            M = matrix(s[0].work.rotation[b, w])
            M1 = matrix(s[0].rotation[b, w])
            W = s[0].work.turning[b, w] * M
            I = s[0].whole.inertia[own]
            L = M1 * (I * W)
            move = (s[0].work.velocity[b, w] + v) * (real(0.5) * h) + s[0].state.rest[own, w]
            s[0].state.rest[own, w] = move - ((x + move) - x)
            dv = (v - v0) / h
            dw = (W - s[0].work.spin[b, w] * M) / h
            last = s[0].state.last_v[own, w]
            on = foresee(s, i, own, w, dv, dw)
            s[0].state.acceleration[own, w] = at_the_end(dv, last, on)
            s[0].state.trend[own, w] = on
            s[0].state.velocity[own, w] = v
            s[0].state.momentum[own, w] = L
            s[0].state.spin[own, w] = M1 * W
            s[0].state.position[own, w] = s[0].position[b, w]
            s[0].state.rotation[own, w] = s[0].rotation[b, w]
        if j < s[0].scene_joints:
            keep_reaction(s, i, j, w, scope, whole, s[0].state.trend[own, w])
    if scope > 1:
        keep_rows(s, w, whole)
    for n in range(s[0].other_count):
        b = s[0].others[n]
        x = s[0].state.position[b, w]
        move = s[0].state.velocity[b, w] * h + s[0].state.rest[b, w]
        s[0].state.rest[b, w] = move - ((x + move) - x)
        s[0].state.position[b, w] = s[0].position[b, w]
        s[0].state.rotation[b, w] = s[0].rotation[b, w]
    s[0].state.lag[w] = wp.min(s[0].state.lag[w] + real(1.0), ENOUGH)
    for n in range(s[0].tree.count):
        i = natural(n)
        count_turns(s, i, w, scope)
        j = natural(s[0].tree.row[i].joint)
        if scope > 1 and j < s[0].scene_joints:
            if breaks(s[0].joints, j, s[0].state.mid_force[j, w], s[0].state.mid_torque[j, w], s[0].settings.dt[0]):
                s[0].control.enabled[j, w] = 0
            s[0].state.mid_tense[j, w] = OUT * (1 - s[0].control.enabled[j, w])
    if scope > 1:
        for i in range(s[0].closures.rods):
            j = s[0].closures.rod_joint[i]
            if breaks(s[0].joints, j, s[0].state.joint_force[j, w], vec3(real(0.0)), s[0].settings.dt[0]):
                s[0].control.enabled[j, w] = 0
            s[0].state.mid_tense[j, w] = OUT * (1 - s[0].control.enabled[j, w])
    s[0].state.time[w] = s[0].state.time[w] + wp.float64(h)


@wp.func
def count_turns(s: wp.array(dtype=Direct), i: int, w: int, scope: int):
    """Follow the angles of a link's joint: read them, on the turn that speeds led to, before they are a turn off."""
    if s[0].tree.row[i].kind == FREE:
        return
    j = natural(s[0].tree.row[i].joint)
    turns = s[0].joints.turns[j]
    if j >= s[0].scene_joints or turns == 0 or turns == 3:
        return
    if kind_of(s, i, w, scope) == LOOSE:
        follow_turns(s, j, w, s[0].drift[w])
        return
    n = s[0].tree.row[i].v_size
    b = natural(s[0].tree.row[i].body)
    base = natural(s[0].tree.row[i].base)
    rel = s[0].work.turning[b, w] + s[0].work.spin[b, w] - s[0].work.turning[base, w] - s[0].work.spin[base, w]
    for a in range(n - turns, n):
        at = natural(s[0].tree.row[i].v_start + a)
        by = s[0].turned[at, w] + wp.dot(s[0].work.S_a[at, w], rel) * (real(0.5) * s[0].drift[w])
        if wp.abs(by) > real(1.0):
            q = s[0].joints.q_start[j] + a
            pose = pose_at(s[0].joints, j, w, s[0].position, s[0].rotation)
            s[0].state.q[q, w] = coordinate(s[0].joints, j, a, pose, s[0].state.q[q, w] + by)
            by = real(0.0)
        s[0].turned[at, w] = by


@wp.func
def keep_rows(s: wp.array(dtype=Direct), w: int, whole: real):
    """What rows beside the tree carried; of rods, gears and springs as of a whole step."""
    for r in range(s[0].closures.count):
        s[0].state.row_force[r, w] = s[0].row_impulse[r, w] / s[0].drift[w]
    at = 6 * s[0].closures.welds
    for i in range(s[0].closures.rods):
        j = s[0].closures.rod_joint[i]
        s[0].state.joint_force[j, w] = s[0].mean_cl[at + i, w] * (whole * s[0].row_impulse[at + i, w])
    at = at + s[0].closures.rods
    for i in range(s[0].closures.gears):
        s[0].state.gear_impulse[i, w] = whole * s[0].row_impulse[at + i, w]
    at = at + s[0].closures.gears
    for i in range(s[0].closures.springs.count):
        s[0].state.spring_impulse[i, w] = whole * s[0].row_impulse[at + i, w]


@wp.func
def at_the_end(now: vec3, before: vec3, on: real) -> vec3:
    """What means over this step and the last one lead to at the end of this one, where things go on steadily; else the mean."""
    if on < real(1.0):
        return now
    return now + (now - before) * real(0.5)


@wp.func
def keep_reaction(s: wp.array(dtype=Direct), i: int, j: int, w: int, scope: int, whole: real, on: real):
    """What a joint carries at the end of the step, as an impulse of a whole one, on its child, less the share of the free axes.

    The means over the step are kept for the next.
    """
    sign = real(s[0].tree.sign[i]) * whole
    f = s[0].carried_l[i, w]
    l = s[0].carried_a[i, w] + wp.cross(s[0].work.out[i, w], f)
    kind = kind_of(s, i, w, scope)
    if kind == LOOSE:
        f = vec3(real(0.0))
        l = f
    elif s[0].tree.row[i].kind == FREE:
        l = vec3(real(0.0))
    else:
        v0 = natural(s[0].tree.row[i].v_start)
        for at in range(v0, v0 + s[0].tree.row[i].v_size):
            n = s[0].work.S_a[at, w]
            if wp.length_sq(n) > real(0.0):
                l = l - n * (wp.dot(n, l) / wp.dot(n, n))
            else:
                d = s[0].work.S_l[at, w]
                f = f - d * (wp.dot(d, f) / wp.dot(d, d))
    f = f * sign
    l = l * sign
    if wp.length_sq(s[0].state.mid_force[j, w]) + wp.length_sq(s[0].state.mid_torque[j, w]) == real(0.0):
        on = real(0.0)  # the first step
    s[0].state.joint_force[j, w] = at_the_end(f, s[0].state.mid_force[j, w], on)
    s[0].state.joint_torque[j, w] = at_the_end(l, s[0].state.mid_torque[j, w], on)
    s[0].state.mid_force[j, w] = f
    s[0].state.mid_torque[j, w] = l


@wp.func
def finish(s: wp.array(dtype=Direct), w: int, scope: int):
    """What acted in the step, exactly; and passed limits taken back in."""
    if scope > 1:
        report(s, w)
        if s[0].acting == 1:
            repair(s, w)


@wp.func
def report(s: wp.array(dtype=Direct), w: int):
    """What acted in the step, exactly."""
    rows_act(s, w)
    balance(s, w, 2)
    if s[0].acting == 1:
        for n in range(s[0].tree.count):
            if s[0].linear.acts[n, w] == 1:
                report_link(s, n, w)


@wp.func
def open_gaps(s: wp.array(dtype=Direct), w: int, limits: bool):
    """Gaps of the tree's joints where bodies stand now, and how far limits are passed, as speeds in work.close.

    Returns the largest gap, m or rad, and the last joint with a passed limit or −1.
    """
    rate = real(-2.0) / s[0].drift[w]
    most = real(0.0)
    passed = int(-1)
    for n in range(s[0].tree.count):
        s[0].work.Q_l[n, w] = vec3(real(0.0))
        s[0].work.Q_a[n, w] = vec3(real(0.0))
        for at in range(s[0].tree.row[n].v_start, s[0].tree.row[n].v_start + s[0].tree.row[n].v_size):
            s[0].rows.u[at, w] = real(0.0)
            s[0].lock_u[at, w] = real(0.0)
        linear, angular = any_gap(s, n, w)
        most = wp.max(most, wp.max(wp.length(linear), wp.length(angular)))
        s[0].work.close_a[n, w] = angular * rate
        s[0].work.close_l[n, w] = linear * rate
        if s[0].work.kind[n, w] == NONE:
            s[0].work.close_l[n, w] = linear * rate + wp.cross(angular * rate, s[0].out1[n, w])
        if limits:
            if passed_limits(s, n, w) == 1:
                passed = s[0].tree.joint[n]
    return most, passed


@wp.func
def repair(s: wp.array(dtype=Direct), w: int):
    """Take passed limits back in, by displacements alone; the energy of that is the limit's."""
    near = bool(False)
    for n in range(s[0].tree.count):
        near = near or near_limit(s, n, w)
    if not near:
        return
    _most, passed = open_gaps(s, w, True)
    if passed < 0:
        return
    raised = real(0.0)
    left = real(1.0)
    beyond = int(passed)
    for i in range(REPAIRS):
        close_gaps(s, w)
        raised = raised + displace(s, w)
        left, beyond = open_gaps(s, w, 3 * i < 2 * REPAIRS)  # the last ones close what that opened
        left = wp.max(left, half_gaps(s, w))
        if left <= s[0].settings.tolerance[1] * real(1.0e-3) and beyond < 0:
            break
    if not left <= wp.max(STALLED, s[0].settings.tolerance[1]):
        place(s, w, 2, 0)  # a loop lets none of it be: bodies stay where velocities led them
        return
    for j in range(s[0].scene_joints):  # of several limits, it is put down to the one that took most
        if s[0].state.dissipated[j, w] > s[0].state.dissipated[passed, w]:
            passed = j
    s[0].state.dissipated[passed, w] = s[0].state.dissipated[passed, w] + raised


@wp.func
def half_gaps(s: wp.array(dtype=Direct), w: int) -> real:
    """Gaps between the halves of bodies that were cut, where they stand now, into those of their rows; the largest, m or rad."""
    most = real(0.0)
    for i in range(s[0].closures.welds):
        gap, turn = half_gap(s, i, w)
        for x in range(3):
            s[0].rows.gap[6 * i + x, w] = gap[x]
            s[0].rows.gap[6 * i + 3 + x, w] = turn[x]
        most = wp.max(most, wp.max(wp.length(gap), wp.length(turn)))
    return most


@wp.func
def close_gaps(s: wp.array(dtype=Direct), w: int):
    """Displacements, as speeds in work.change, that close the gaps in work.close and of the rows, under the pushes in work.Q."""
    inward(s, w, 2, GAPS)
    follow_all(s, w, 2, real(1.0))
    if s[0].closures.count > 0:
        keep_changes(s, w)  # before responses of rows are found, which stand there afterwards
        find_rows(s, w)
        for r in range(s[0].closures.count - s[0].closures.springs.count, s[0].closures.count):
            s[0].rows.soft[r, w] = real(-1.0)  # a displacement is no motion that springs would answer
        factor_rows(s, w)
        half_gaps(s, w)
        close_rows(s, w, False, 1)


@wp.func
def displace(s: wp.array(dtype=Direct), w: int) -> real:
    """Make them; returns the work of gravity, J."""
    h = real(0.5) * s[0].drift[w]
    raised = real(0.0)
    for n in range(s[0].tree.count):
        b = s[0].tree.body[n]
        by = s[0].work.change_l[b, w] * h
        raised = raised + wp.dot(s[0].settings.gravity[0], by) * s[0].tree.row[n].mass
        s[0].position[b, w] = s[0].position[b, w] + by
        s[0].rotation[b, w] = turned(s[0].rotation[b, w], s[0].work.change_a[b, w] * h)
    return raised


@wp.func
def whole_step(s: wp.array(dtype=Direct), w: int, scope: int):
    """One step; where passes do not meet, in halves, quarters, …: all of it, or nothing.

    Where it needs more passes than it may take, it is not made; or, where that is a caller's cap, its rest is made coarsely.
    """
    dt = s[0].settings.dt[0]
    left = int(1 << HALVINGS)
    size = left
    parts = int(0)
    saved = bool(False)
    s[0].loose[w] = 0
    s[0].passes[w] = 0
    pivots = int(0)
    while left > 0:
        s[0].drift[w] = dt * (real(size) / real(1 << HALVINGS))
        if s[0].passes[w] >= s[0].settings.iterations[2]:
            if s[0].settings.iterations[3] == 1:
                s[0].drift[w] = dt * (real(left) / real(1 << HALVINGS))
                make_coarsely(s, w, scope)
                parts = parts + 1
            else:
                copy_state(s[0].safe, s[0].state, w)
                s[0].state.failed[w] = SPENT - worst_body(s, w)
            break
        met = attempt(s, w, scope)
        pivots = wp.max(pivots, s[0].done[w])
        if met:
            hard = s[0].stopped[w]
            s[0].stopped[w] = 0
            if scope > 1 and parts == 0:
                for j in range(s[0].scene_joints):
                    s[0].state.dissipated[j, w] = real(0.0)
            finish(s, w, scope)
            commit(s, w, scope)
            if scope > 1:
                if s[0].stopped[w] > 0:
                    j = s[0].stopped[w] - 1
                    s[0].state.dissipated[j, w] = s[0].state.dissipated[j, w] + project(s, w, scope)
                elif hard != 0 and s[0].closures.count > 0:
                    project(s, w, scope)  # a singular pose lets in what does not fit the loops
            parts = parts + 1
            left = left - size
        else:
            if not saved:
                copy_state(s[0].state, s[0].safe, w)
                saved = True
            if s[0].state.lag[w] > real(0.0):
                s[0].state.lag[w] = real(0.0)  # again without a guess
            elif size == 1 and s[0].loose[w] == 0 and s[0].closures.count > 0:
                copy_state(s[0].safe, s[0].state, w)  # in a singular pose smaller parts are no easier: what a whole step can do
                settle(s, w, scope)
                s[0].loose[w] = 1
                left = 1 << HALVINGS
                size = left
                parts = 0
            elif size == 1:
                copy_state(s[0].safe, s[0].state, w)
                s[0].state.failed[w] = -1 - worst_body(s, w)
                break
            else:
                size = size >> 1
    s[0].drift[w] = dt
    spend_once(s, w)
    s[0].done[w] = replayed_by(s, w, pivots)
    s[0].parts[w] = parts
    if parts > 1:
        s[0].grades[DIVIDED, w] = s[0].grades[DIVIDED, w] + 1


@wp.func
def replayed_by(s: wp.array(dtype=Direct), w: int, pivots: int) -> int:
    """The cap that leads to the same step (`SolverDirect._caps`); `pivots`: most passes in which laws of a part were found."""
    beyond = wp.min(s[0].passes[w], s[0].settings.iterations[2]) - s[0].settings.iterations[4]
    return wp.max((pivots - 1) * s[0].settings.iterations[5] + 1, beyond)


# ---- a step for which there is no time --------------------------------------------------------------------------------------


@wp.func
def make_coarsely(s: wp.array(dtype=Direct), w: int, scope: int):
    """What is left of a step, of the length in `drift`, at velocity level: a kick, velocities that fit the joints, poses where
    they lead, closed by displacements. What acts on axes is left out, but for friction that holds. Where joints do not close so,
    bodies stay for the rest of the step: the state is a valid one in any case, and the report tells that the step is not met.
    """
    h = s[0].drift[w]
    took = s[0].projected[w]
    copy_state(s[0].state, s[0].safe, w)
    kick_bodies(s, w)
    lost = project(s, w, scope)
    move_bodies(s, w)
    open = close_pose(s, w, scope)
    lost = lost + project(s, w, scope)
    if not (open <= STALLED and wp.isfinite(lost)):
        copy_state(s[0].safe, s[0].state, w)
        s[0].projected[w] = took
    s[0].state.time[w] = s[0].safe.time[w] + wp.float64(h)
    forget_guess(s, w)
    s[0].residual[w] = wp.max(s[0].residual[w], UNMET * s[0].settings.tolerance[0])


@wp.func
def kick_bodies(s: wp.array(dtype=Direct), w: int):
    """Velocities and momenta after gravity and a user's forces."""
    h = s[0].drift[w]
    for n in range(s[0].tree.count):
        b = natural(s[0].tree.row[n].body)
        if b < s[0].own:
            v = s[0].state.velocity[b, w] + s[0].settings.gravity[0] * h
            L = s[0].state.momentum[b, w]
            if s[0].pushed[w] == 1:
                v = v + (s[0].control.force[b, w] + s[0].control.force_once[b, w]) * (h * s[0].whole.inv_mass[b])
                L = L + (s[0].control.torque[b, w] + s[0].control.torque_once[b, w]) * h
            s[0].state.velocity[b, w] = v
            s[0].state.momentum[b, w] = L


@wp.func
def move_bodies(s: wp.array(dtype=Direct), w: int):
    """Bodies where their velocities lead, those that are driven where they are told; angles of joints follow."""
    h = s[0].drift[w]
    take_driven(s, w)
    for n in range(s[0].other_count):
        b = natural(s[0].others[n])
        s[0].state.position[b, w] = s[0].position[b, w]
        s[0].state.rotation[b, w] = s[0].rotation[b, w]
    for n in range(s[0].tree.count):
        b = natural(s[0].tree.row[n].body)
        if b < s[0].own:
            spin = s[0].state.spin[b, w]
            s[0].state.position[b, w] = s[0].state.position[b, w] + s[0].state.velocity[b, w] * h
            s[0].state.rotation[b, w] = turned(s[0].state.rotation[b, w], spin * h)
            s[0].position[b, w] = s[0].state.position[b, w]
            s[0].rotation[b, w] = s[0].state.rotation[b, w]
            s[0].work.turning[b, w] = spin
    for n in range(s[0].tree.count):
        j = natural(s[0].tree.row[n].joint)
        if j < s[0].scene_joints:
            turns = s[0].joints.turns[j]
            if turns > 0 and turns < 3:
                follow_turns(s, j, w, h)
                for at in range(s[0].tree.row[n].v_start, s[0].tree.row[n].v_start + s[0].tree.row[n].v_size):
                    s[0].turned[at, w] = real(0.0)


@wp.func
def forget_guess(s: wp.array(dtype=Direct), w: int):
    """Nothing of the last step tells of the next."""
    s[0].state.lag[w] = real(0.0)
    for b in range(s[0].own):
        s[0].state.last_v[b, w] = vec3(real(0.0))
        s[0].state.last_w[b, w] = vec3(real(0.0))
        s[0].state.guess_v[b, w] = vec3(real(0.0))
        s[0].state.guess_w[b, w] = vec3(real(0.0))
        s[0].state.trend[b, w] = real(0.0)
    for j in range(s[0].scene_joints):
        s[0].state.mid_force[j, w] = vec3(real(0.0))
        s[0].state.mid_torque[j, w] = vec3(real(0.0))


@wp.func
def spend_once(s: wp.array(dtype=Direct), w: int):
    """Forces of one step are of no other, whether it could be made or not."""
    if s[0].pushed[w] == 1:
        for b in range(s[0].own):
            s[0].control.force_once[b, w] = vec3(real(0.0))
            s[0].control.torque_once[b, w] = vec3(real(0.0))


@wp.func
def worst_body(s: wp.array(dtype=Direct), w: int) -> int:
    """The body whose momentum passes missed most."""
    worst = int(0)
    most = real(-1.0)
    for i in range(s[0].tree.count):
        f = s[0].carried_l[i, w]
        size = wp.dot(f, f)
        if not size <= most:
            most = size
            worst = s[0].half_of[s[0].tree.body[i]]
    return worst


@wp.func
def copy_vectors(a: wp.array2d(dtype=vec3), b: wp.array2d(dtype=vec3), w: int):
    for i in range(a.shape[0]):
        b[i, w] = a[i, w]


@wp.func
def copy_reals(a: wp.array2d(dtype=real), b: wp.array2d(dtype=real), w: int):
    for i in range(a.shape[0]):
        b[i, w] = a[i, w]


@wp.func
def copy_state(a: State, b: State, w: int):
    """All that a step of the energy closing changes."""
    copy_vectors(a.position, b.position, w)
    copy_vectors(a.rest, b.rest, w)
    copy_vectors(a.velocity, b.velocity, w)
    copy_vectors(a.spin, b.spin, w)
    copy_vectors(a.momentum, b.momentum, w)
    copy_vectors(a.acceleration, b.acceleration, w)
    copy_vectors(a.last_v, b.last_v, w)
    copy_vectors(a.last_w, b.last_w, w)
    copy_vectors(a.slope_v, b.slope_v, w)
    copy_vectors(a.slope_w, b.slope_w, w)
    copy_vectors(a.older_v, b.older_v, w)
    copy_vectors(a.older_w, b.older_w, w)
    copy_vectors(a.guess_v, b.guess_v, w)
    copy_vectors(a.guess_w, b.guess_w, w)
    copy_vectors(a.joint_force, b.joint_force, w)
    copy_vectors(a.joint_torque, b.joint_torque, w)
    copy_vectors(a.mid_force, b.mid_force, w)
    copy_vectors(a.mid_torque, b.mid_torque, w)
    copy_reals(a.trend, b.trend, w)
    copy_reals(a.rotor, b.rotor, w)
    copy_reals(a.row_force, b.row_force, w)
    copy_reals(a.gear_impulse, b.gear_impulse, w)
    copy_reals(a.spring_impulse, b.spring_impulse, w)
    copy_reals(a.q, b.q, w)
    copy_reals(a.axis_impulse, b.axis_impulse, w)
    copy_reals(a.friction_impulse, b.friction_impulse, w)
    copy_reals(a.limit_impulse, b.limit_impulse, w)
    copy_reals(a.drive_impulse, b.drive_impulse, w)
    copy_reals(a.current, b.current, w)
    copy_reals(a.dissipated, b.dissipated, w)
    for i in range(a.rotation.shape[0]):
        b.rotation[i, w] = a.rotation[i, w]
    for i in range(a.stuck.shape[0]):
        b.stuck[i, w] = a.stuck[i, w]
    for i in range(a.mid_tense.shape[0]):
        b.mid_tense[i, w] = a.mid_tense[i, w]
    b.lag[w] = a.lag[w]
    b.open[w] = a.open[w]
    b.time[w] = a.time[w]


# ---- velocities that do not fit the joints ----------------------------------------------------------------------------------


@wp.func
def stand(s: wp.array(dtype=Direct), i: int, w: int, scope: int):
    """A link where it stands, its axes, and the speed that its joint's rows lack, −J V, as of a gap."""
    b = natural(s[0].tree.row[i].body)
    own = natural(s[0].half_of[b])
    base = natural(s[0].tree.row[i].base)
    j = natural(s[0].tree.row[i].joint)
    x = s[0].state.position[own, w]
    R = s[0].state.rotation[own, w]
    M = matrix(R)
    L = s[0].state.momentum[own, w]
    v = s[0].state.velocity[own, w]
    omega = M * (s[0].whole.inv_inertia[own] * (L * M))
    s[0].work.velocity[b, w] = v
    s[0].work.spin[b, w] = omega
    s[0].work.acceleration[b, w] = v
    s[0].work.turning[b, w] = omega
    if scope > 0:
        s[0].work.position[b, w] = x
        s[0].work.rotation[b, w] = R
    s[0].position[b, w] = x
    s[0].rotation[b, w] = R
    s[0].momentum[b, w] = L
    s[0].impulse_l[i, w] = v * s[0].tree.row[i].mass
    s[0].gain[i, w] = vec3(real(0.0))
    kind = s[0].tree.row[i].kind
    if scope > 1:
        if j < s[0].scene_joints and s[0].control.enabled[j, w] == 0:
            kind = LOOSE
        s[0].work.kind[i, w] = kind
        s[0].linear.acts[i, w] = 0
        s[0].linear.locks[i, w] = 0
    arm = x - s[0].position[base, w]
    v_b = s[0].work.acceleration[base, w]
    w_b = s[0].work.turning[base, w]
    l = v_b + wp.cross(w_b, arm) - v
    a = w_b - omega
    out = vec3(real(0.0))
    if kind != LOOSE:
        pose = pose_at(s[0].joints, j, w, s[0].position, s[0].rotation)
        out = x - pose.child_anchor
        if kind == FREE:
            l = l - wp.cross(a, out)  # at the joint's point
        else:
            sign = real(s[0].tree.sign[i])
            v0 = natural(s[0].tree.row[i].v_start)
            n_axes = s[0].tree.row[i].v_size
            p_l = l - wp.cross(a, out)
            p_a = a
            C = mat66()
            for k in range(n_axes):
                d, n = free_axis(s[0].joints, j, k, pose)
                at = v0 + k
                s[0].work.S_l[at, w] = (d + wp.cross(n, out)) * sign
                s[0].work.S_a[at, w] = n * sign
                s[0].end_l[at, w] = s[0].work.S_l[at, w]
                s[0].end_a[at, w] = s[0].work.S_a[at, w]
                s[0].tau[at, w] = real(0.0)
                s[0].speed[at, w] = real(0.0)
                s[0].lock_u[at, w] = real(0.0)
                held = int(0)
                if scope > 1 and j < s[0].scene_joints:
                    s[0].linear.resist[at, w] = real(0.0)
                    s[0].linear.push[at, w] = real(0.0)
                    held = s[0].state.stuck[at, w]
                if held == 1:
                    s[0].linear.acts[i, w] = s[0].acting
                    holds = HOLDS * s[0].tree.row[i].mass * wp.length_sq(d)
                    lever = s[0].tree.row[i].mass * wp.length_sq(out)
                    holds = holds + HOLDS * (s[0].tree.row[i].least + lever) * wp.length_sq(n)
                    s[0].linear.resist[at, w] = holds
                    C[k, k] = holds
                else:
                    u = wp.dot(d, p_l) + wp.dot(n, p_a)
                    l = l - (d + wp.cross(n, out)) * u
                    a = a - n * u
            if scope > 1:
                s[0].linear.coupled[i, w] = C
    s[0].work.arm[i, w] = arm
    s[0].arm1[i, w] = arm
    s[0].work.out[i, w] = out
    s[0].out1[i, w] = out
    s[0].work.close_l[i, w] = l
    s[0].work.close_a[i, w] = a
    if kind == LOOSE:
        s[0].work.close_l[i, w] = vec3(real(0.0))
        s[0].work.close_a[i, w] = vec3(real(0.0))


@wp.func
def project(s: wp.array(dtype=Direct), w: int, scope: int) -> real:
    """The velocities nearest to those of now, by kinetic energy, that fit the joints; returns the energy that took, J."""
    h = s[0].drift[w]
    forces = s[0].pushed[w]
    s[0].pushed[w] = 0
    count_pass(s, w, ANEW)
    s[0].drift[w] = h * real(1.0e-9)  # the passes of a step that is next to none
    stand_all(s, w, scope)
    inward(s, w, scope, ANEW)
    follow_all(s, w, scope, real(1.0))
    if scope > 1:
        if s[0].closures.count > 0:
            keep_changes(s, w)
            speed_rows(s, w)
            s[0].blurred[w] = FINEST  # rows are closed, and of one pose
            factor_rows(s, w)
            s[0].blurred[w] = real(0.0)
            close_rows(s, w, False, ROUNDS)
    s[0].drift[w] = h
    s[0].pushed[w] = forces
    return take_projected(s, w)


@wp.func
def settle(s: wp.array(dtype=Direct), w: int, scope: int):
    """Take out of velocities what rows stop a step later: a singular pose lets it in, and no step of any length can make it.

    They are projected where they lead to, then where bodies stand, which is kept in `safe`.
    """
    h = s[0].settings.dt[0]
    s[0].drift[w] = h
    for n in range(s[0].tree.count):
        b = natural(s[0].tree.row[n].body)
        if b < s[0].own:
            old = s[0].state.rotation[b, w]
            R = turned(old, s[0].state.spin[b, w] * h)
            s[0].state.position[b, w] = s[0].state.position[b, w] + s[0].state.velocity[b, w] * h
            s[0].state.rotation[b, w] = R
            W = wp.quat_rotate_inv(R, s[0].state.spin[b, w])
            s[0].state.momentum[b, w] = wp.quat_rotate(R, s[0].whole.inertia[b] * W)
    project(s, w, scope)
    for n in range(s[0].tree.count):
        b = natural(s[0].tree.row[n].body)
        if b < s[0].own:
            R = s[0].safe.rotation[b, w]
            s[0].state.position[b, w] = s[0].safe.position[b, w]
            s[0].state.rotation[b, w] = R
            W = wp.quat_rotate_inv(R, s[0].state.spin[b, w])
            s[0].state.momentum[b, w] = wp.quat_rotate(R, s[0].whole.inertia[b] * W)
    project(s, w, scope)


@wp.func
def stand_all(s: wp.array(dtype=Direct), w: int, scope: int):
    """All bodies where they stand."""
    for n in range(s[0].other_count):
        b = s[0].others[n]
        s[0].work.position[b, w] = s[0].state.position[b, w]
        s[0].work.rotation[b, w] = s[0].state.rotation[b, w]
        s[0].position[b, w] = s[0].state.position[b, w]
        s[0].rotation[b, w] = s[0].state.rotation[b, w]
        s[0].work.velocity[b, w] = s[0].now.velocity[b, w]
        s[0].work.spin[b, w] = s[0].now.spin[b, w]
        s[0].work.acceleration[b, w] = s[0].now.velocity[b, w]
        s[0].work.turning[b, w] = s[0].now.spin[b, w]
    for n in range(s[0].tree.count):
        stand(s, natural(n), w, scope)


@wp.func
def close_pose(s: wp.array(dtype=Direct), w: int, scope: int) -> real:
    """Close joints that stand open, as one that was put back may, by displacements alone: velocities never learn of it.

    Returns what was open in the end, m or rad.
    """
    h = s[0].drift[w]
    s[0].drift[w] = h * real(1.0e-9)
    half = real(0.5) * s[0].drift[w]
    most = real(0.0)
    for _i in range(20):
        stand_all(s, w, scope)
        most = real(0.0)
        for n in range(s[0].tree.count):
            i = natural(n)
            linear = vec3(real(0.0))
            angular = vec3(real(0.0))
            if kind_of(s, i, w, scope) != LOOSE:
                linear, angular = any_gap(s, i, w)
            most = wp.max(most, wp.max(wp.length(linear), wp.length(angular)))
            angular = angular / (-half)
            s[0].work.close_l[i, w] = linear / (-half)
            s[0].work.close_a[i, w] = angular
            if kind_of(s, i, w, scope) == NONE:
                s[0].work.close_l[i, w] = linear / (-half) + wp.cross(angular, s[0].out1[i, w])
        beside = int(0)
        if scope > 1:
            beside = s[0].closures.count
            if beside > 0:
                most = wp.max(most, find_rows(s, w))
        if most <= OPEN:
            break
        inward(s, w, scope, ANEW)
        follow_all(s, w, scope, real(1.0))
        if scope > 1:
            if beside > 0:
                keep_changes(s, w)
                for r in range(beside - s[0].closures.springs.count, beside):
                    s[0].rows.soft[r, w] = real(-1.0)
                s[0].blurred[w] = wp.clamp(most, FINEST, RAISED)
                factor_rows(s, w)
                s[0].blurred[w] = real(0.0)
                close_rows(s, w, False, ROUNDS)
        widest = real(1.0e-30)
        for n in range(s[0].tree.count):
            widest = wp.max(widest, wp.length(s[0].work.change_a[s[0].tree.body[n], w]) * half)
        share = half * wp.min(real(1.0), real(0.3) / widest)
        for n in range(s[0].tree.count):
            b = natural(s[0].tree.body[n])
            if b < s[0].own:
                old = s[0].state.rotation[b, w]
                R = turned(old, s[0].work.change_a[b, w] * share)
                s[0].state.position[b, w] = s[0].state.position[b, w] + s[0].work.change_l[b, w] * share
                s[0].state.momentum[b, w] = wp.quat_rotate(R, wp.quat_rotate_inv(old, s[0].state.momentum[b, w]))
                s[0].state.spin[b, w] = wp.quat_rotate(R, wp.quat_rotate_inv(old, s[0].state.spin[b, w]))
                s[0].state.rotation[b, w] = R
    s[0].drift[w] = h
    return most


@wp.func
def speed_rows(s: wp.array(dtype=Direct), w: int):
    """Rows beside the tree where bodies stand, and their speeds, as of a gap; springs are none."""
    rows = s[0].closures.count
    find_rows(s, w)
    for r in range(rows):
        rate = row_rate(s[0].closures, s[0].rows, r, w, s[0].work.acceleration, s[0].work.turning, s[0].speed)
        if s[0].rows.child[r] < 0:
            rate = gear_rate(s, r, w)
        s[0].rows.gap[r, w] = rate * (real(0.5) * s[0].drift[w])
        if r >= rows - s[0].closures.springs.count:
            s[0].rows.soft[r, w] = real(-1.0)


@wp.func
def take_projected(s: wp.array(dtype=Direct), w: int) -> real:
    """Velocities after the change that was found; returns the energy that took, J."""
    lost = real(0.0)
    for n in range(s[0].tree.count):
        b = natural(s[0].tree.row[n].body)
        if b < s[0].own:
            M = matrix(s[0].state.rotation[b, w])
            I = s[0].whole.inertia[b]
            v = s[0].state.velocity[b, w]
            L = s[0].state.momentum[b, w]
            W = s[0].work.turning[b, w] * M
            lost = lost + wp.dot(v, v) * s[0].whole.mass[b] + wp.dot(W, L * M)
            v = v + s[0].work.change_l[b, w]
            W = W + s[0].work.change_a[b, w] * M
            lost = lost - wp.dot(v, v) * s[0].whole.mass[b] - wp.dot(W, I * W)
            s[0].state.velocity[b, w] = v
            s[0].state.momentum[b, w] = M * (I * W)
            s[0].state.spin[b, w] = M * W
    lost = real(0.5) * lost
    s[0].projected[w] = s[0].projected[w] + lost
    return lost


@wp.func
def gear_rate(s: wp.array(dtype=Direct), r: int, w: int) -> real:
    """Speed of a gear's row at the velocities of now."""
    g = r - 6 * s[0].closures.welds - s[0].closures.rods
    a = axis_speed(s, s[0].gears.joint_a[g], s[0].gears.axis_a[g], w)
    return a - s[0].gears.ratio[g] * axis_speed(s, s[0].gears.joint_b[g], s[0].gears.axis_b[g], w)


@wp.func
def axis_speed(s: wp.array(dtype=Direct), j: int, x: int, w: int) -> real:
    """Speed of a joint's axis at the velocities of now."""
    p = s[0].joints.parent[j]
    c = s[0].joints.child[j]
    pose = pose_at(s[0].joints, j, w, s[0].position, s[0].rotation)
    d, n = free_axis(s[0].joints, j, x, pose)
    u = s[0].work.acceleration[c, w] + wp.cross(s[0].work.turning[c, w], pose.child_anchor - s[0].position[c, w])
    u = u - s[0].work.acceleration[p, w] - wp.cross(s[0].work.turning[p, w], pose.child_anchor - s[0].position[p, w])
    return wp.dot(d, u) + wp.dot(n, s[0].work.turning[c, w] - s[0].work.turning[p, w])


# ---- calls ------------------------------------------------------------------------------------------------------------------


@wp.func
def begin_call(s: wp.array(dtype=Direct), w: int, scope: int):
    """Where the caller changed the state, velocities that do not fit the joints are projected for good."""
    if resume(s, w, scope):
        close_pose(s, w, scope)
        project(s, w, scope)
        if scope > 1:
            release(s, w)


@wp.func
def resume(s: wp.array(dtype=Direct), w: int, scope: int) -> bool:
    """Nothing is counted yet. Whether the caller changed the state: then nothing of the last step is a guess."""
    for g in range(4):
        s[0].grades[g, w] = 0
    s[0].projected[w] = real(0.0)
    s[0].drift[w] = s[0].settings.dt[0]
    s[0].pushed[w] = pushed(s, w)
    if not untouched(s, w) or any_switched(s, w):
        forget_guess(s, w)
        if scope > 1:
            release(s, w)
        return True
    return False


@wp.func
def release(s: wp.array(dtype=Direct), w: int):
    """What friction held moves, if a caller gave it a speed; rotors turn with their axes."""
    for i in range(s[0].tree.count):  # joints may hold halves of bodies, which the state does not have
        b = natural(s[0].tree.row[i].body)
        s[0].position[b, w] = s[0].state.position[natural(s[0].half_of[b]), w]
        s[0].rotation[b, w] = s[0].state.rotation[natural(s[0].half_of[b]), w]
    for i in range(s[0].other_count):
        s[0].position[s[0].others[i], w] = s[0].state.position[s[0].others[i], w]
        s[0].rotation[s[0].others[i], w] = s[0].state.rotation[s[0].others[i], w]
    for j in range(s[0].scene_joints):
        v0 = s[0].joints.v_start[j]
        pose = pose_at(s[0].joints, j, w, s[0].position, s[0].rotation)
        p = natural(s[0].half_of[s[0].joints.parent[j]])
        c = natural(s[0].half_of[s[0].joints.child[j]])
        rel = s[0].state.spin[c, w] - s[0].state.spin[p, w]
        u = s[0].state.velocity[c, w] + wp.cross(s[0].state.spin[c, w], pose.child_anchor - s[0].state.position[c, w])
        u = u - s[0].state.velocity[p, w] - wp.cross(s[0].state.spin[p, w], pose.child_anchor - s[0].state.position[p, w])
        for x in range(s[0].joints.v_size[j]):
            d, n = free_axis(s[0].joints, j, x, pose)
            s[0].state.rotor[v0 + x, w] = wp.dot(d, u) + wp.dot(n, rel)
            if wp.abs(wp.dot(d, u) + wp.dot(n, rel)) > RESTS:
                for y in range(s[0].joints.v_size[j]):
                    if s[0].axes.group[v0 + y] == s[0].axes.group[v0 + x]:
                        s[0].state.stuck[v0 + y, w] = 0


@wp.func
def end_call(s: wp.array(dtype=Direct), w: int):
    """Remember the state, to see whether the caller changes it."""
    for b in range(s[0].own):
        s[0].now.kept_velocity[b, w] = s[0].now.velocity[b, w]
        s[0].now.kept_momentum[b, w] = s[0].now.momentum[b, w]
        s[0].now.kept_position[b, w] = s[0].now.position[b, w]
        s[0].now.kept_rotation[b, w] = s[0].now.rotation[b, w]


def make_kernel(scope: int, module: str) -> Any:
    """The kernel for a mechanism of hinges and balls on which nothing acts (0), of any joints (1), with all there is (2)."""

    @wp.kernel(module=module)
    def energy_steps(s: wp.array(dtype=Direct), first: int, n: wp.array(dtype=wp.int32)):
        """n steps of a world; where one cannot be made, the world is marked and its state stays."""
        w = first + wp.tid()
        if s[0].state.failed[w] != 0:
            return
        if n[w] == 0:
            return
        begin_call(s, w, wp.static(scope))
        used = int(0)
        s[0].made[w] = n[w]
        for step in range(n[w]):
            if s[0].state.failed[w] != 0:
                break
            if used > s[0].settings.iterations[6]:
                s[0].made[w] = step
                break
            whole_step(s, w, wp.static(scope))
            used = used + s[0].passes[w]
            if s[0].state.failed[w] == 0:
                count_step(s[0].tally, w, s[0].residual[w], s[0].settings.tolerance[0], s[0].parts[w])
        end_call(s, w)

    return energy_steps


KERNELS = [make_kernel(scope, module) for scope, module in enumerate(MODULES)]
