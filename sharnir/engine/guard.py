"""The guard of a step: judges the result that was committed, and stops a motion that has diverged (theory: the guard).

After a step a world's verdict is formed from its state alone: gaps of joints and stretch of ropes, complementarity of contacts
(overlap, push across a gap, friction cone, slip), and the energy balance

    gain = ΔE − W − D

E is the kinetic, potential and elastic energy, W the work of all sources (`balance`), D what corrections of overlaps and passed
limits have lifted. Dissipation makes the gain negative; a positive one is energy without a source. A step has converged if all
tests are within thresholds that follow the scene's masses, sizes, gravity and Δt (`guard_data`). Gains add up to the drift of the
run, losses reduce it to no less than 0:

    A ← max(0, A + gain)

The motion has diverged where A exceeds a fifth of the scale of the motion: its largest kinetic and elastic energy so far, and
what gravity can give within the scene.
"""

from typing import Any

import warp as wp

from sharnir.collision.contact_cache import ASLEEP
from sharnir.core.spatial import worse
from sharnir.core.trimming import Absent
from sharnir.core.types import compile_quickly, quat, real, trimmed_module, vec3
from sharnir.engine.balance import (
    body_energies,
    body_power,
    body_work,
    contact_energy,
    energies,
    power_bound,
    turning_energy,
    work_of_step,
)
from sharnir.engine.guard_data import (
    ALL_PARTS,
    APPROACH_SLACK,
    BAD_CONTACT,
    BAD_ENERGY,
    BAD_JOINT,
    BAD_ROPE,
    BEFORE,
    BODY_KINETIC,
    BODY_LIFTED,
    BODY_POTENTIAL,
    BODY_ROWS,
    BODY_SPEED,
    BODY_SPIN,
    CAUSES,
    COUNT_MISSED,
    COUNT_NOT_CONVERGED,
    COUNT_SEEN,
    DEEP,
    DIVERGED,
    DIVIDED_STEPS,
    DRIFT,
    DRIFT_WARNED,
    ENERGY,
    ENERGY_GAIN,
    ENERGY_ROUNDING,
    ERROR,
    EXCESS,
    FAR_TURN,
    FAST_SPEED,
    FAST_TURNS,
    FIGURE,
    FRESH,
    LOOKED,
    NOT_MET,
    OPEN_GAP,
    OPEN_JOINT,
    OPENED_JOINT,
    OVERLAP,
    PEAK,
    PERSISTS,
    POWER,
    RESIDUAL,
    SEVERE,
    SLIP,
    SLIP_SLACK,
    STEP_GAIN,
    STEPS,
    STILL_SPEED,
    STOP,
    STOP_TOTAL,
    STRETCH,
    SUM_GAP,
    SUM_SCALE,
    SUM_WORK,
    TOLD,
    TOO_FAST,
    TORN_APART,
    TOTAL,
    TROUBLE,
    UNSOLVED,
    VERDICT,
    WARNED,
    WHICH,
    Tally,
    Watch,
)
from sharnir.model.joint_geometry import joint_gap
from sharnir.model.kinematics import left_alone, pose_at
from sharnir.model.model import DYNAMIC, FIXED

# ---- in a step, for every solver ---------------------------------------------------------------------------------------------


@wp.func
def count_step(t: wp.array(dtype=Tally), w: int, residual: real, tolerance: real, parts: int) -> None:
    """A step that was made."""
    t[0].counts[STEPS, w] = t[0].counts[STEPS, w] + 1
    if not residual <= tolerance:
        t[0].counts[COUNT_MISSED, w] = t[0].counts[COUNT_MISSED, w] + 1
        if t[0].counts[TOLD, w] & NOT_MET == 0:
            t[0].alarm[w] = t[0].alarm[w] | NOT_MET
    t[0].sums[RESIDUAL, w] = wp.max(t[0].sums[RESIDUAL, w], residual)
    if parts > 1:
        t[0].counts[DIVIDED_STEPS, w] = t[0].counts[DIVIDED_STEPS, w] + 1
        t[0].counts[ALL_PARTS, w] = t[0].counts[ALL_PARTS, w] + parts


@wp.func
def count_steps(t: wp.array(dtype=Tally), w: int, residual: real, tolerance: real, made: int) -> None:
    """Undivided steps that were made; the residual is that of the last."""
    t[0].counts[STEPS, w] = t[0].counts[STEPS, w] + made
    if not residual <= tolerance:
        t[0].counts[COUNT_MISSED, w] = t[0].counts[COUNT_MISSED, w] + made
        if t[0].counts[TOLD, w] & NOT_MET == 0:
            t[0].alarm[w] = t[0].alarm[w] | NOT_MET
    t[0].sums[RESIDUAL, w] = wp.max(t[0].sums[RESIDUAL, w], residual)


# ---- before a call ----------------------------------------------------------------------------------------------------------


@wp.func
def was_changed(g: wp.array(dtype=Watch), w: int) -> bool:
    """Whether a caller changed the state since a solver whose velocities stand at half steps left it."""
    for b in range(g[0].bodies.count):
        if g[0].bodies.motion[b] == DYNAMIC:
            if not left_alone(g, b, w):
                return True
    return False


@wp.func
def is_body_changed(g: wp.array(dtype=Watch), b: int, w: int) -> bool:
    """Whether a body does not move as after the last look, or a force is meant for the next step alone."""
    if not (g[0].last_velocity[b, w] == g[0].state.velocity[b, w] and g[0].last_spin[b, w] == g[0].state.spin[b, w]):
        return True
    once = g[0].control.force_once[b, w]
    turn = g[0].control.torque_once[b, w]
    return wp.dot(once, once) + wp.dot(turn, turn) > real(0.0)


@wp.func
def is_as_left(g: wp.array(dtype=Watch), w: int, energy: real) -> bool:
    """Whether bodies move as after the last look, and no force is meant for the next step alone."""
    if energy != g[0].sums[BEFORE, w] or g[0].counts[LOOKED, w] != g[0].counts[STEPS, w]:
        return False
    for b in range(1, g[0].bodies.count):
        if is_body_changed(g, b, w):
            return False
    for k in range(g[0].rope.count):
        first = g[0].rope.first[k]
        for i in range(first, first + g[0].rope.segments[k, w] + 1):
            if wp.length_sq(g[0].rope.force_once[i, w]) > real(0.0):
                return False
    return True


@wp.func
def save_motion(g: wp.array(dtype=Watch), w: int, at_pose: int) -> None:
    """Keep how bodies stand and move."""
    for b in range(1, g[0].bodies.count):
        g[0].last_position[b, w] = g[0].state.position[b, w]
        if at_pose == 1:
            g[0].last_velocity[b, w] = g[0].now.velocity[b, w]
            g[0].last_spin[b, w] = g[0].now.spin[b, w]
        else:
            g[0].last_velocity[b, w] = g[0].state.velocity[b, w]
            g[0].last_spin[b, w] = g[0].state.spin[b, w]
    for k in range(g[0].rope.count):
        g[0].rope.last_rate[k, w] = g[0].rope.reel_rate[k, w]


# ---- what is found ----------------------------------------------------------------------------------------------------------


@wp.func
def raise_alarm(g: wp.array(dtype=Watch), w: int, what: int, which: int, figure: real, scale: real) -> None:
    """Raise an alarm, once where it is a warning; a world that has diverged is marked."""
    if g[0].counts[TOLD, w] & what != 0:
        return
    torn = g[0].alarm[w] & TORN_APART != 0
    g[0].alarm[w] = g[0].alarm[w] | what
    if torn:  # the report is of the joint or rope that is torn, whatever follows from it
        return
    g[0].counts[WHICH, w] = which
    g[0].sums[FIGURE, w] = figure
    g[0].sums[SUM_SCALE, w] = scale
    if what >= TORN_APART and g[0].strict[0] == 1:
        g[0].state.failed[w] = DIVERGED + what


@wp.func
def blame(g: wp.array(dtype=Watch), w: int, bit: int, excess: real) -> int:
    """A test of which `excess` is the figure over its threshold: its bit where it fails."""
    if excess <= real(1.0):
        return 0
    g[0].sums[EXCESS, w] = wp.max(g[0].sums[EXCESS, w], excess)
    return bit


@wp.func
def look_at_gaps(g: wp.array(dtype=Watch), w: int) -> int:
    """Hold the gaps of all joints against the size of their bodies."""
    worst = real(0.0)
    figure = real(0.0)
    joint = int(0)
    most = real(0.0)
    for k in range(g[0].joints.count):
        if g[0].control.enabled[k, w] != 0:
            linear, angular = joint_gap(g[0].joints, k, pose_at(g[0].joints, k, w, g[0].state.position, g[0].state.rotation))
            gap = wp.length(linear)
            most = wp.max(most, gap)
            share = gap / g[0].size[k]
            turn = wp.length(angular)
            if not wp.max(share, turn) <= worst and not wp.isnan(worst):
                worst = worse(share, turn)
                figure = share
                if turn > share:
                    figure = -turn
                joint = k
    g[0].sums[SUM_GAP, w] = wp.max(g[0].sums[SUM_GAP, w], most)
    if not worst <= real(1.0):
        raise_alarm(g, w, TORN_APART, joint, figure, real(1.0))
    elif worst > WARNED:
        raise_alarm(g, w, OPEN_GAP, joint, figure, WARNED)
    return blame(g, w, BAD_JOINT, worst / OPEN_JOINT)


@wp.func
def look_at_joints(g: wp.array(dtype=Watch), w: int) -> int:
    """The verdict on the joints."""
    if g[0].looks == 0:
        g[0].sums[SUM_GAP, w] = wp.max(g[0].sums[SUM_GAP, w], g[0].state.open[w])
        if g[0].state.open[w] <= OPEN_JOINT * wp.min(g[0].least, real(1.0)):
            return 0
        return look_at_gaps(g, w)
    if g[0].looks == 2:
        return look_at_gaps(g, w)
    dt = g[0].dt[0]
    opened = real(0.0)
    for k in range(g[0].joints.count):
        l = wp.length(g[0].aim_linear[k, w]) / g[0].size[k]
        opened = worse(opened, dt * wp.max(l, wp.length(g[0].aim_angular[k, w])))
    if opened <= OPEN_JOINT:
        return 0
    return look_at_gaps(g, w) | blame(g, w, BAD_JOINT, opened / OPENED_JOINT)


@wp.func
def speed_slack(g: wp.array(dtype=Watch), a: int, b: int, w: int) -> real:
    """By how much the slip of two bodies may be off, m/s: a share of g Δt or of how much it changed, a little of the motion."""
    change = real(0.0)
    speed = real(0.0)
    for side in range(2):
        c = wp.where(side == 0, a, b)
        if g[0].bodies.motion[c] == DYNAMIC:
            change = wp.max(change, wp.length(g[0].state.velocity[c, w] - g[0].last_velocity[c, w]))
            speed = wp.max(speed, wp.length(g[0].state.velocity[c, w]) + wp.length(g[0].state.spin[c, w]) * g[0].body_size[c])
    usual = wp.max(change, wp.length(g[0].gravity[w]) * g[0].dt[0])
    return SLIP_SLACK * usual + SLIP * speed + STILL_SPEED * g[0].extent


@wp.func
def look_at_ropes(g: wp.array(dtype=Watch), w: int) -> int:
    """Hold the lengths of all elements that are not torn against what they should be; ropes are counted after the joints."""
    worst = real(0.0)
    rope = int(0)
    for k in range(g[0].rope.count):
        first = g[0].rope.first[k]
        for i in range(first, first + g[0].rope.segments[k, w]):
            if g[0].rope.cut[i, w] == 0:
                apart = wp.length(g[0].rope.position[i + 1, w] - g[0].rope.position[i, w])
                longer = apart / g[0].rope.length[i, w] - real(1.0)
                if not longer <= worst and not wp.isnan(worst):
                    worst = longer
                    rope = k
    g[0].sums[STRETCH, w] = wp.max(g[0].sums[STRETCH, w], worst)
    if not worst <= real(1.0):
        raise_alarm(g, w, TORN_APART, g[0].joints.count + rope, worst, real(1.0))
    elif worst > WARNED:
        raise_alarm(g, w, OPEN_GAP, g[0].joints.count + rope, worst, WARNED)
    return blame(g, w, BAD_ROPE, worst / OPEN_JOINT)


@wp.struct
class Pair:
    """Two bodies that touch, as their points of contact are judged."""

    judged: wp.int32  # 0: both sleep, or neither yields
    usual: real  # N·s, of the lighter body: what gravity gives it in a step
    size: real  # m, of the smaller body
    slack: real  # m/s, see `speed_slack`
    start_a: vec3  # m, where bodies stood when contacts were found, and by how much they have moved and turned since
    start_b: vec3
    moved: vec3
    turn_a: vec3
    turn_b: vec3


@wp.func
def turn_since(g: wp.array(dtype=Watch), b: int, w: int) -> vec3:
    """By how much a body has turned since contacts were found, rad."""
    if g[0].bodies.motion[b] == FIXED:
        return vec3(real(0.0))
    q0 = g[0].contacts.anchor_rotation[b, w]
    q = g[0].state.rotation[b, w] * quat(-q0[0], -q0[1], -q0[2], q0[3])
    return vec3(q[0], q[1], q[2]) * (real(2.0) * wp.where(q[3] < real(0.0), real(-1.0), real(1.0)))


@wp.func
def pair_of(g: wp.array(dtype=Watch), a: int, b: int, w: int) -> Pair:
    """What points of contact between two bodies share."""
    pair = Pair()
    pair.judged = 0
    pair.size = real(1.0e30)
    mass = real(1.0e30)
    for side in range(2):
        c = wp.where(side == 0, a, b)
        if g[0].bodies.motion[c] == DYNAMIC:
            mass = wp.min(mass, g[0].bodies.mass[c, w])
            pair.size = wp.min(pair.size, g[0].body_size[c])
            if g[0].contacts.asleep[c, w] != ASLEEP:
                pair.judged = 1
    if pair.judged == 0:
        return pair
    pair.slack = speed_slack(g, a, b, w)
    pair.usual = mass * (wp.length(g[0].gravity[w]) * g[0].dt[0] + pair.slack)
    pair.start_a = g[0].contacts.anchor_position[a, w]
    pair.start_b = g[0].contacts.anchor_position[b, w]
    pair.moved = vec3(real(0.0))
    if g[0].bodies.motion[a] != FIXED:
        pair.moved = pair.start_a - g[0].state.position[a, w]
    if g[0].bodies.motion[b] != FIXED:
        pair.moved = pair.moved + g[0].state.position[b, w] - pair.start_b
    pair.turn_a = turn_since(g, a, w)
    pair.turn_b = turn_since(g, b, w)
    return pair


@wp.func
def look_at_contacts(g: wp.array(dtype=Watch), w: int) -> int:
    """Complementarity of all points of contact that do not yield: the worst of overlaps, gaps and cones, the mean of slips; and
    by how much the solver says that laws were missed."""
    worst = real(0.0)
    if g[0].unsolved.shape[0] > 0:
        worst = g[0].unsolved[w] / UNSOLVED
    slips = real(0.0)
    loaded = real(0.0)
    pair = Pair()
    a = int(-1)
    b = int(-1)
    for i in range(g[0].contacts.count[w]):
        if a != g[0].contacts.body_a[i, w] or b != g[0].contacts.body_b[i, w]:
            a = g[0].contacts.body_a[i, w]
            b = g[0].contacts.body_b[i, w]
            pair = pair_of(g, a, b, w)
        if pair.judged == 1 and g[0].contacts.stiffness[i, w] <= real(0.0) and g[0].contacts.special[i, w] == 0:
            normal, slip = contact_excess(g, i, pair, w)
            worst = worse(worst, normal)
            if slip >= real(0.0):
                slips = slips + slip * slip
                loaded = loaded + real(1.0)
    if loaded > real(0.0):
        worst = worse(worst, wp.sqrt(slips / loaded))
    return blame(g, w, BAD_CONTACT, worst)


@wp.func
def approach_speed(g: wp.array(dtype=Watch), i: int, n: vec3, x: vec3, w: int) -> real:
    """Normal speed at a point of contact, m/s; negative where the bodies approach each other."""
    a = g[0].contacts.body_a[i, w]
    b = g[0].contacts.body_b[i, w]
    u = g[0].state.velocity[b, w] + wp.cross(g[0].state.spin[b, w], x - g[0].state.position[b, w])
    u = u - g[0].state.velocity[a, w] - wp.cross(g[0].state.spin[a, w], x - g[0].state.position[a, w])
    return wp.dot(n, u)


@wp.func
def slip_now(g: wp.array(dtype=Watch), i: int, n: vec3, x: vec3, pair: Pair, w: int) -> vec3:
    """Slip at a point of contact with the committed velocities, m/s; what stops bodies may change them after contacts are met."""
    a = g[0].contacts.body_a[i, w]
    b = g[0].contacts.body_b[i, w]
    u = g[0].state.velocity[b, w] + wp.cross(g[0].state.spin[b, w], x - pair.start_b) + g[0].contacts.surface[i, w]
    u = u - g[0].state.velocity[a, w] - wp.cross(g[0].state.spin[a, w], x - pair.start_a)
    if g[0].contacts.belt_body[i, w] > 0:
        spin = g[0].state.spin[g[0].contacts.belt_body[i, w], w] - g[0].state.spin[g[0].contacts.belt_frame[i, w], w]
        u = u + g[0].contacts.belt_pull[i, w] * wp.dot(g[0].contacts.belt_axis[i, w], spin)
    return u - n * wp.dot(n, u)


@wp.func
def slip_at_end(g: wp.array(dtype=Watch), i: int, n: vec3, x: vec3, pair: Pair, w: int) -> vec3:
    """Slip at a point of contact to which its friction belongs, m/s; none where impacts changed it since."""
    if g[0].taken.shape[0] == 0:
        return slip_now(g, i, n, x, pair, w)
    if g[0].taken[w] != real(0.0):
        return vec3(real(0.0))
    return g[0].slip[i, w]


@wp.func
def contact_excess(g: wp.array(dtype=Watch), i: int, pair: Pair, w: int) -> tuple[real, real]:
    """How far a point of contact is from its laws, over the thresholds: overlap, push across a gap and friction cone; and speeds,
    slip and approach of what overlaps, −1 where nothing pushes.
    """
    n = g[0].contacts.normal[i, w]
    x = g[0].contacts.point[i, w]
    blow = g[0].blow[i, w]
    P = g[0].contacts.impulse[i, w] + blow
    push = wp.dot(n, P)
    opened = pair.moved + wp.cross(pair.turn_b, x - pair.start_b) - wp.cross(pair.turn_a, x - pair.start_a)
    gap = g[0].contacts.found[i, w] + wp.dot(n, opened)
    if g[0].bend.shape[0] > 0:
        gap = gap + g[0].bend[i, w]
    gap = gap / (DEEP * pair.size)
    worst = wp.max(-gap, -push / (SLIP_SLACK * pair.usual))
    if push > real(0.1) * pair.usual and g[0].contacts.restitution[i, w] == real(0.0):
        worst = wp.max(worst, gap)
    mu = g[0].contacts.friction[i, w]
    most = wp.max(mu[0], mu[1])
    rubs = P - n * push
    allowed = wp.max(push, real(0.0)) * most * (real(1.0) + SLIP)
    rub2 = wp.dot(rubs, rubs)
    if rub2 > allowed * allowed:
        worst = wp.max(worst, (wp.sqrt(rub2) - allowed) / (SLIP_SLACK * pair.usual))
    off = real(-1.0)
    if push > real(0.0):
        off = real(0.0)
    if gap < -OVERLAP:
        off = wp.max(off, -approach_speed(g, i, n, x, w) / (APPROACH_SLACK * pair.slack))
    slip = slip_at_end(g, i, n, x, pair, w)
    slip2 = wp.dot(slip, slip)
    if slip2 > real(0.01) * pair.slack * pair.slack and push > real(0.0) and mu[0] == mu[1]:
        if wp.dot(blow, blow) == real(0.0) and most > real(0.0):
            slides = wp.min(g[0].contacts.dynamic[i, w], most) * push
            lost = slides * wp.sqrt(slip2) + wp.dot(rubs, slip)  # 0 where it slides against its friction
            off = wp.max(off, lost / (pair.slack * wp.max(slides, real(0.1) * most * pair.usual)))
    return worst, off


@wp.func
def weight(g: wp.array(dtype=Watch), w: int) -> real:
    """The energy that gravity can give within the scene's extent, and one too small to count, J."""
    slow = STILL_SPEED * g[0].extent
    return g[0].weight * (wp.length(g[0].gravity[w]) * g[0].extent + slow * slow)


@wp.func
def lifted(g: wp.array(dtype=Watch), w: int) -> real:
    """What displacements beyond the velocities (of overlaps, passed limits, gaps) have added to the potential energy, J."""
    out = real(0.0)
    for b in range(1, g[0].bodies.count):
        if g[0].spread == 1:
            out = out + g[0].found[BODY_ROWS * b + BODY_LIFTED, w]
        elif g[0].bodies.motion[b] == DYNAMIC:
            out = out + lifted_body(g, b, w)
    return wp.max(out, real(0.0))


@wp.func
def lifted_body(g: wp.array(dtype=Watch), b: int, w: int) -> real:
    """The same of a body, which may be less than nothing."""
    v = g[0].state.velocity[b, w]
    return lifted_by(g, b, w, g[0].state.position[b, w], v, g[0].last_position[b, w], g[0].last_velocity[b, w])


@wp.func
def lifted_by(g: wp.array(dtype=Watch), b: int, w: int, x: vec3, v: vec3, from_x: vec3, from_v: vec3) -> real:
    """The same, from positions and velocities after a step and before it."""
    if g[0].halves == 0:
        v = (v + from_v) * real(0.5)
    return -g[0].bodies.mass[b, w] * wp.dot(g[0].gravity[w], x - from_x - v * g[0].dt[0])


@wp.func
def drift_of(g: wp.array(dtype=Watch), w: int, gain: real, raised: real, rounding: real, moving: real) -> real:
    """Add to the drift of the run; returns it over the threshold at which the motion has diverged.

    `raised` of the gain is what displacements have lifted: it is kept apart, in the total, with a threshold of its own.
    """
    drift = wp.max(real(0.0), g[0].sums[DRIFT, w] + gain - raised - rounding)
    total = wp.max(real(0.0), g[0].sums[TOTAL, w] + gain - rounding)
    g[0].sums[DRIFT, w] = drift
    g[0].sums[TOTAL, w] = total
    peak = wp.max(g[0].sums[PEAK, w], moving - drift)
    g[0].sums[PEAK, w] = peak
    scale = peak + weight(g, w)
    if wp.max(drift, total) <= real(0.0):  # nothing was gained; where nothing has a mass the scale is 0 as well
        return real(0.0)
    g[0].sums[ERROR, w] = wp.max(g[0].sums[ERROR, w], wp.max(drift, total) / scale)
    if g[0].counts[TOLD, w] & ENERGY == 0:
        g[0].sums[SUM_SCALE, w] = scale
    return wp.max(drift / (STOP * scale), total / (STOP_TOTAL * scale))


@wp.func
def look_at_turns(g: wp.array(dtype=Watch), w: int) -> None:
    """Whether a body turns so far in a step that its angle falls behind its spin."""
    most = real(0.0)
    body = int(0)
    for b in range(1, g[0].bodies.count):
        turn = real(0.0)
        if g[0].spread == 1:
            turn = g[0].found[BODY_ROWS * b + BODY_SPIN, w]
        else:
            turn = wp.length_sq(g[0].state.spin[b, w])
        if g[0].bodies.motion[b] == DYNAMIC and turn > most and g[0].exact[b] == 0:
            most = turn
            body = b
    most = wp.sqrt(most) * g[0].dt[0]
    if most > FAR_TURN:
        raise_alarm(g, w, FAST_TURNS, body, most, FAR_TURN)


@wp.func
def fastest_body(g: wp.array(dtype=Watch), w: int) -> int:
    most = real(-1.0)
    out = int(0)
    for b in range(1, g[0].bodies.count):
        v2 = wp.length_sq(g[0].state.velocity[b, w])
        if g[0].bodies.motion[b] == DYNAMIC and not v2 <= most:
            most = v2
            out = b
    return out


# ---- after a call -----------------------------------------------------------------------------------------------------------


@wp.func
def store_verdict(g: wp.array(dtype=Watch), w: int, verdict: int, steps: int) -> None:
    """Keep the verdict; a warning is given where trouble persists."""
    missed = g[0].counts[COUNT_MISSED, w] - g[0].counts[COUNT_SEEN, w]
    g[0].counts[COUNT_SEEN, w] = g[0].counts[COUNT_MISSED, w]
    bad = int(verdict != 0)
    if steps > 1:  # of those before the last, a solver's own tolerance tells
        bad = wp.max(bad, wp.min(missed, steps))
    g[0].counts[VERDICT, w] = verdict
    g[0].counts[COUNT_NOT_CONVERGED, w] = g[0].counts[COUNT_NOT_CONVERGED, w] + bad
    trouble = g[0].counts[TROUBLE, w]
    g[0].alarm[w] = g[0].alarm[w] & ~NOT_MET
    if verdict == 0:
        g[0].counts[TROUBLE, w] = wp.max(trouble - steps, 0)
        return
    trouble = wp.min(trouble + wp.where(g[0].sums[EXCESS, w] > SEVERE, 16, 8), 2 * PERSISTS)
    g[0].counts[CAUSES, w] = g[0].counts[CAUSES, w] | verdict
    g[0].counts[TROUBLE, w] = trouble
    if trouble >= PERSISTS and g[0].counts[TOLD, w] & NOT_MET == 0:
        g[0].alarm[w] = g[0].alarm[w] | NOT_MET


# ---- kernels ----------------------------------------------------------------------------------------------------------------


@wp.func
def look_at_body(g: wp.array(dtype=Watch), b: int, w: int, from_x: vec3, from_v: vec3) -> None:
    """What sums over bodies need of one, where threads look at all of them at once; position and velocity before the call."""
    if g[0].bodies.motion[b] != DYNAMIC:
        return
    row = BODY_ROWS * b
    x = g[0].state.position[b, w]
    v = g[0].state.velocity[b, w]
    spin = g[0].state.spin[b, w]
    m = g[0].bodies.mass[b, w]
    v2 = wp.dot(v, v)
    g[0].found[row + BODY_KINETIC, w] = m * v2 + turning_energy(g, b, w, g[0].state.momentum[b, w])
    g[0].found[row + BODY_POTENTIAL, w] = -m * wp.dot(g[0].gravity[w], x)
    g[0].found[row + BODY_SPEED, w] = v2
    g[0].found[row + BODY_SPIN, w] = wp.dot(spin, spin)
    g[0].found[row + BODY_LIFTED, w] = lifted_by(g, b, w, x, v, from_x, from_v)


@wp.kernel(module="sharnir.guard")
def watch_bodies(g: wp.array(dtype=Watch), first: int) -> None:
    """After steps of generic code: look at one body, and remember how it stands and moves."""
    k, i = wp.tid()
    b = k + 1
    w = first + i
    if g[0].state.failed[w] != 0 or g[0].counts[STEPS, w] == g[0].counts[LOOKED, w]:
        return
    look_at_body(g, b, w, g[0].last_position[b, w], g[0].last_velocity[b, w])
    g[0].last_position[b, w] = g[0].state.position[b, w]
    g[0].last_velocity[b, w] = g[0].state.velocity[b, w]
    g[0].last_spin[b, w] = g[0].state.spin[b, w]


def opening(energy_of: Any, bound_of: Any, touching: bool) -> Any:
    """What is done before a call, with these energies and powers."""

    @wp.func
    def open_call(g: wp.array(dtype=Watch), w: int) -> None:
        """The energy that there is before a call, after whatever a caller may have changed."""
        at_pose = int(0)
        if g[0].halves == 1:
            at_pose = int(was_changed(g, w))  # the next step begins from velocities of the pose
        kinetic, potential, elastic, _fastest = energy_of(g, w, at_pose)
        if at_pose == 0:
            if is_as_left(g, w, kinetic + potential + elastic):
                return
        if wp.static(touching):
            if g[0].touching == 1:
                elastic = elastic - contact_energy(g, w)  # contacts of this pose are not found yet
        g[0].sums[BEFORE, w] = kinetic + potential + elastic
        g[0].sums[PEAK, w] = wp.max(g[0].sums[PEAK, w], kinetic + elastic - g[0].sums[DRIFT, w])
        g[0].sums[POWER, w] = bound_of(g, w, real(0.0))
        g[0].counts[FRESH, w] = 1
        g[0].counts[LOOKED, w] = g[0].counts[STEPS, w]
        save_motion(g, w, at_pose)

    return open_call


def energy_test(energy_of: Any, work_of: Any, bound_of: Any, touching: bool) -> Any:
    """The test of the energy balance."""

    @wp.func
    def look_at_energy(g: wp.array(dtype=Watch), w: int, steps: int) -> int:
        """Hold what energy was gained in the last steps against what was given."""
        dt = g[0].dt[0]
        kinetic, potential, elastic, fastest = energy_of(g, w, 2 * g[0].spread)
        energy = kinetic + potential + elastic
        before = g[0].sums[BEFORE, w]
        if wp.static(touching):
            if g[0].counts[FRESH, w] == 1 and g[0].touching == 1:
                before = before + contact_energy(g, w)
        rounding = ENERGY_ROUNDING * (kinetic + wp.abs(potential) + elastic + g[0].sums[PEAK, w])
        plain = steps == 1 and g[0].counts[FRESH, w] == 0 and g[0].parts[w] <= 1
        given = real(0.0)
        raised = real(0.0)
        if plain:
            raised = lifted(g, w)
        if g[0].measured == 1:
            given = g[0].work[w]
        elif plain:
            given = work_of(g, w)
        else:
            bound = bound_of(g, w, real(0.0))
            given = bound + bound_of(g, w, real(1.0))
            if steps > 1 or g[0].counts[FRESH, w] == 1:
                given = wp.max(given, bound + g[0].sums[POWER, w])
            given = given * dt * real(steps)
            g[0].sums[POWER, w] = bound
            if g[0].driven == 1:
                given = given + wp.max(real(0.0), -g[0].lost[w])
            given = wp.min(given, wp.max(energy - before, real(0.0)))  # a bound is no measure: it takes nothing away
        gain = energy - before - given
        if not wp.isfinite(gain):
            gain = kinetic
        g[0].sums[BEFORE, w] = energy
        g[0].sums[SUM_WORK, w] = g[0].sums[SUM_WORK, w] + given
        drift = drift_of(g, w, gain, wp.min(raised, wp.max(gain, real(0.0))), rounding, kinetic + elastic)
        if drift * STOP > DRIFT_WARNED:
            g[0].counts[TROUBLE, w] = PERSISTS
        if not drift <= real(1.0):
            raise_alarm(g, w, ENERGY, 0, wp.max(g[0].sums[DRIFT, w], g[0].sums[TOTAL, w]), g[0].sums[SUM_SCALE, w])
        if g[0].cayley == 1:
            look_at_turns(g, w)
        reach = FAST_SPEED * g[0].extent / dt
        if not fastest <= reach * reach:
            raise_alarm(g, w, TOO_FAST, fastest_body(g, w), wp.sqrt(fastest), reach)
        slow = wp.length(g[0].gravity[w]) * dt
        allowed = ENERGY_GAIN * (kinetic + elastic + wp.abs(given)) + STEP_GAIN * g[0].weight * slow * slow + rounding
        allowed = allowed + g[0].weight * STILL_SPEED * STILL_SPEED * g[0].extent * g[0].extent
        if gain <= allowed:  # where nothing has a mass both are 0
            return 0
        return blame(g, w, BAD_ENERGY, gain / allowed)

    return look_at_energy


def closing(test_energy: Any, touching: bool) -> Any:
    """What is done after a call."""

    @wp.func
    def close_call(g: wp.array(dtype=Watch), w: int) -> None:
        """The verdict on the steps since the last look: on the one that was made, or on the end of several and their energy."""
        if g[0].state.failed[w] != 0:
            return
        steps = g[0].counts[STEPS, w] - g[0].counts[LOOKED, w]
        if steps == 0:
            return
        g[0].sums[EXCESS, w] = real(0.0)
        verdict = int(0)
        if g[0].joints.count > 0:
            verdict = verdict | look_at_joints(g, w)
        if wp.static(touching):
            if g[0].rope.count > 0:
                verdict = verdict | look_at_ropes(g, w)
            if g[0].touching == 1:
                verdict = verdict | look_at_contacts(g, w)
        verdict = verdict | test_energy(g, w, steps)
        if g[0].spread == 0:
            save_motion(g, w, 0)
        g[0].counts[LOOKED, w] = g[0].counts[STEPS, w]
        g[0].counts[FRESH, w] = 0
        store_verdict(g, w, verdict, steps)

    return close_call


class Guard:
    """Kernels of the guard: `begin` before a call, where a caller may have changed the state, `end` after it, and before that
    `count`, after a step of a solver whose stages are kernels of their own.

    Args:
        module: their Warp module.
        touching: they know contact, ropes, cables and raycast wheels, which are more than half of the code.
        absent: what the scenes do not have of all this.
    """

    def __init__(self, module: str, touching: bool, absent: Absent | None = None) -> None:
        compile_quickly(module)
        if absent is not None:
            trimmed_module(module, absent)
        balance = (energies, work_of_step, power_bound) if touching else (body_energies, body_work, body_power)
        open_call = opening(balance[0], balance[2], touching)
        close_call = closing(energy_test(*balance, touching), touching)

        @wp.kernel(module=module)
        def watch_begin(g: wp.array(dtype=Watch), first: int) -> None:
            open_call(g, first + wp.tid())

        @wp.kernel(module=module)
        def watch_end(g: wp.array(dtype=Watch), first: int) -> None:
            close_call(g, first + wp.tid())

        @wp.kernel(module=module)
        def watch_step(
            g: wp.array(dtype=Watch),
            t: wp.array(dtype=Tally),
            first: int,
            residual: wp.array(dtype=real),
            tolerance: wp.array(dtype=real),
        ) -> None:
            w = first + wp.tid()
            if g[0].state.failed[w] == 0:
                count_step(t, w, residual[w], tolerance[0], 1)

        self.begin, self.end, self.count, self.module = watch_begin, watch_end, watch_step, watch_end.module
        self.open_call, self.close_call = open_call, close_call


ROPE_PARTS = ("rope.count", "cables.ends", "casts")
JOINT_PARTS = ("joints.count", "springs.count", "sprung.shape")
JOINTED, GUARD_OF_ALL = Guard("sharnir.guard", False), Guard("sharnir.guard_touch", True)
GUARD_OF_CONTACT = Guard("sharnir.guard_contact", True, Absent(ROPE_PARTS))
GUARD_OF_BODIES = Guard("sharnir.guard_bodies", True, Absent((*ROPE_PARTS, *JOINT_PARTS)))


def guard_of(model: Any) -> Guard:
    """The guard of a scene."""
    if model.ropes is not None or len(model.casts) > 0 or int(model.cables.ends) > 0:
        return GUARD_OF_ALL
    if model.collision is None:
        return JOINTED
    return GUARD_OF_CONTACT if len(model.joint_kinds) + len(model.spring_names) + len(model.gear_names) else GUARD_OF_BODIES
