"""The end of a step: reactions, reports, coordinates, and the guess from which the next step starts."""

import warp as wp

from sharnir.core.spatial import matrix
from sharnir.core.types import real, vec3
from sharnir.engine.articulated.data import LOOSE, natural
from sharnir.engine.direct.balls import FREE, kind_of
from sharnir.engine.direct.data import OUT, Direct
from sharnir.engine.direct.energy.cables import keep_cables
from sharnir.engine.direct.energy.laws import report_link
from sharnir.engine.direct.energy.links import balance
from sharnir.engine.direct.energy.passes import HISTORY, rows_act
from sharnir.engine.direct.modified import follow_turns, lies, turn_on
from sharnir.model.joint_geometry import breaks


@wp.func
def foresee(s: wp.array(dtype=Direct), i: int, own: int, w: int, dv: vec3, dw: vec3) -> real:
    """Guess how a body's velocity will change in the next step, from dv and dw a second in this one; 1 where it goes on so.

    Differences d of the changes follow each other as d₊ = 2c d − d₋ with one c, in slow motion (c = 1), in a vibration that the
    step hardly resolves, and in one that it does not, which goes to and fro (c = −1). Where that would not have told this
    change well, the next one is thought to be the same, or to go back, or none.
    """
    m = s[0].tree.mass[i, w]
    I = s[0].tree.least[i, w]
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
    if s[0].state.history[w] >= HISTORY and missed < wp.min(same, none):
        gv = dv + av * c2 - bv
        gw = dw + aw * c2 - bw
    s[0].state.guess_v[own, w] = gv
    s[0].state.guess_w[own, w] = gw
    return on


@wp.func
def commit(s: wp.array(dtype=Direct), w: int):
    """The end of the step becomes the state."""
    w = natural(w)
    h = s[0].drift[w]
    whole = s[0].settings.dt[0] / h
    for n in range(s[0].tree.count):
        i = natural(n)
        b = natural(s[0].tree.row[i].body)
        own = natural(s[0].half_of[b])
        j = natural(s[0].tree.row[i].joint)
        moves = b < s[0].own
        if b < s[0].own:
            moves = not lies(s, b, w)
        if moves:
            v0 = s[0].state.velocity[own, w]
            v = s[0].work.acceleration[b, w]
            x = s[0].work.position[b, w]
            M = matrix(s[0].work.rotation[b, w])
            M1 = matrix(s[0].rotation[b, w])
            W = s[0].work.turning[b, w] * M
            I = s[0].whole.inertia[own, w]
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
        if j < s[0].scene_joints and not (lies(s, own, w)):
            keep_reaction(s, i, j, w, whole, s[0].state.trend[own, w])
    keep_rows(s, w, whole)
    for n in range(s[0].other_count):
        b = s[0].others[n]
        x = s[0].state.position[b, w]
        move = s[0].state.velocity[b, w] * h + s[0].state.rest[b, w]
        s[0].state.rest[b, w] = move - ((x + move) - x)
        s[0].state.position[b, w] = s[0].position[b, w]
        s[0].state.rotation[b, w] = s[0].rotation[b, w]
    s[0].state.history[w] = wp.min(s[0].state.history[w] + 1, HISTORY)
    for n in range(s[0].tree.count):
        i = natural(n)
        count_turns(s, i, w)
        j = natural(s[0].tree.row[i].joint)
        if j < s[0].scene_joints:
            if breaks(s[0].joints, j, s[0].state.mid_force[j, w], s[0].state.mid_torque[j, w], s[0].settings.dt[0]):
                s[0].control.enabled[j, w] = 0
            s[0].state.mid_tense[j, w] = OUT * (1 - s[0].control.enabled[j, w])
    for i in range(s[0].closures.rods):
        j = s[0].closures.rod_joint[i]
        if breaks(s[0].joints, j, s[0].state.joint_force[j, w], vec3(real(0.0)), s[0].settings.dt[0]):
            s[0].control.enabled[j, w] = 0
        s[0].state.mid_tense[j, w] = OUT * (1 - s[0].control.enabled[j, w])
    s[0].state.time[w] = s[0].state.time[w] + wp.float64(h)


@wp.func
def count_turns(s: wp.array(dtype=Direct), i: int, w: int):
    """Follow the angles of a link's joint: read them, on the turn that speeds led to, before they are a turn off."""
    if s[0].tree.row[i].kind == FREE:
        return
    j = natural(s[0].tree.row[i].joint)
    turns = s[0].joints.turns[j]
    if j >= s[0].scene_joints or turns == 0 or turns == 3:
        return
    if kind_of(s, i, w) == LOOSE:
        follow_turns(s, j, w, s[0].drift[w])
        return
    b = natural(s[0].tree.row[i].body)
    base = natural(s[0].tree.row[i].base)
    rel = s[0].work.turning[b, w] + s[0].work.spin[b, w] - s[0].work.turning[base, w] - s[0].work.spin[base, w]
    turn_on(s, i, w, turns, rel, real(0.5) * s[0].drift[w])


@wp.func
def keep_rows(s: wp.array(dtype=Direct), w: int, whole: real):
    """What rows beside the tree carried; of rods, gears and springs as of a whole step."""
    for r in range(s[0].closures.count):
        s[0].state.row_force[r, w] = s[0].row_impulse[r, w] / s[0].drift[w]
    at = 6 * s[0].closures.welds
    for i in range(s[0].closures.rods):
        j = s[0].closures.rod_joint[i]
        if lies(s, natural(s[0].half_of[s[0].joints.child[j]]), w):
            continue
        s[0].state.joint_force[j, w] = s[0].mean_cl[at + i, w] * (whole * s[0].row_impulse[at + i, w])
    at = at + s[0].closures.rods
    for i in range(s[0].closures.gears):
        s[0].state.gear_impulse[i, w] = whole * s[0].row_impulse[at + i, w]
    if s[0].cables.count > 0:
        keep_cables(s, w, whole)
    at = s[0].closures.count - s[0].closures.springs.count
    for i in range(s[0].closures.springs.count):
        s[0].state.spring_impulse[i, w] = whole * s[0].row_impulse[at + i, w]


@wp.func
def at_the_end(now: vec3, before: vec3, on: real) -> vec3:
    """What means over this step and the last one lead to at the end of this one, where things go on steadily; else the mean."""
    if on < real(1.0):
        return now
    return now + (now - before) * real(0.5)


@wp.func
def keep_reaction(s: wp.array(dtype=Direct), i: int, j: int, w: int, whole: real, on: real):
    """What a joint carries at the end of the step, as an impulse of a whole one, on its child, less the share of the free axes.

    The means over the step are kept for the next.
    """
    sign = real(s[0].tree.sign[i]) * whole
    f = s[0].carried_l[i, w]
    l = s[0].carried_a[i, w] + wp.cross(s[0].work.out[i, w], f)
    kind = kind_of(s, i, w)
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
def report(s: wp.array(dtype=Direct), w: int):
    """What acted in the step, exactly."""
    rows_act(s, w)
    balance(s, w)
    if s[0].acting == 1:
        for n in range(s[0].tree.count):
            if s[0].linear.acts[n, w] == 1:
                report_link(s, n, w)


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
