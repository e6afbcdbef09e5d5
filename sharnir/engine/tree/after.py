"""After steps of a simulation's trees: poses, velocities, accelerations of bodies, what joints carry, what acts on axes.

Generic steps report in the working memory, in the world's axes; specialized ones in a log of the last steps of a call.
"""

import warp as wp

from sharnir.engine.tree.runtime import (
    AXIS_MEAN,
    BALL_ROTATION,
    BALL_STUCK,
    CHANGE_AT,
    CURRENT,
    FREE_POSITION,
    FREE_ROTATION,
    IS_BALL,
    IS_FREE,
    IS_HINGE,
    IS_PRESCRIBED,
    IS_ROTOR,
    IS_SLIDER,
    IS_SLIDES,
    IS_TURNS,
    IS_WELD,
    LOG_AXIS,
    LOG_F,
    LOG_N,
    LOG_P_AXIS,
    LOG_P_DRIVE,
    LOG_P_FRICTION,
    LOG_P_LIMIT,
    LOG_P_LOST,
    LOG_V,
    LOG_W,
    MOMENT,
    MOTOR_SPEED,
    P_AXIS,
    P_AXIS_3,
    P_DRIVE,
    P_DRIVE_3,
    P_FRICTION,
    P_FRICTION_3,
    P_LIMIT,
    P_LIMIT_3,
    P_LOST,
    REACTION,
    SAME_POSE,
    SIGN_AT,
    SLIDES_Q,
    SLIDES_STUCK,
    STUCK,
    TURNS_ROTATION,
    WARP,
    Q,
    TreeStep,
    get_quat,
    log_place,
    logged,
    put_triple,
    recall,
    recall_apart,
    recall_triple,
    several_row,
    triple,
    twist_row,
)
from sharnir.guard import count_step
from sharnir.joint_geometry import breaks, free_axis
from sharnir.kinematics import pose_at
from sharnir.spatial import some, unit
from sharnir.types import quat, real, vec3

SUDDEN = wp.constant(real(16.0))  # squared ratio of a change to the next one, from which it was a jump,
SLIGHT = wp.constant(real(0.01))  # unless its square is a smaller part of that of the quantity


@wp.func
def store(t: wp.array(dtype=TreeStep), w: int):
    """Poses and velocities of bodies from coordinates and twists; accelerations, if the last store was a step ago."""
    for i in range(t[0].links):
        kind = t[0].kind[i + t[0].links * w]
        if kind < 0:
            continue
        base = t[0].base[i + t[0].links * w]
        turn = quat(real(0.0), real(0.0), real(0.0), real(1.0))
        origin = vec3(real(0.0))
        if base >= 0:
            turn = t[0].turn[base, w]
            origin = t[0].origin[base, w]
        turn, origin = hang(t, i, w, kind, turn, origin)
        t[0].turn[i, w] = turn
        t[0].origin[i, w] = origin
        store_axes(t, i, w, kind)
        b = t[0].body[i]
        if b >= 0:
            store_body(t, i, b, w, kind, turn, origin)


@wp.func
def hang(t: wp.array(dtype=TreeStep), i: int, w: int, kind: int, turn: quat, origin: vec3):
    """Rotation and origin of a link, from those of its base."""
    row = t[0].first[i]
    if kind == IS_FREE or kind == IS_PRESCRIBED:
        return get_quat(t, row + FREE_ROTATION, w), triple(t, row + FREE_POSITION, w)
    at = origin + wp.quat_rotate(turn, t[0].anchor[i, w])
    turned = turn * t[0].frame[i, w]
    if kind == IS_BALL:
        turned = turned * get_quat(t, row + BALL_ROTATION, w)
    elif kind == IS_TURNS:
        turned = turned * get_quat(t, row + TURNS_ROTATION, w)
    elif kind == IS_SLIDES:
        at = at + wp.quat_rotate(turned, triple(t, row + SLIDES_Q, w) * real(t[0].sense[i]))
    elif kind != IS_WELD:
        q = t[0].state.tree[row + Q, w]
        if kind == IS_HINGE or kind == IS_ROTOR:
            turned = turned * quat(real(0.0), real(0.0), wp.sin(real(0.5) * q), wp.cos(real(0.5) * q))
        else:
            at = at + wp.quat_rotate(turned, vec3(real(0.0), real(0.0), q))
    return unit(turned), at


@wp.func
def store_axes(t: wp.array(dtype=TreeStep), i: int, w: int, kind: int):
    """Coordinates of a link's joint, what friction holds, and the state of a motor."""
    row = t[0].first[i]
    if kind == IS_BALL:
        for k in range(3):
            t[0].state.stuck[t[0].axis[i] + k, w] = int(t[0].state.tree[row + BALL_STUCK + k, w] > real(0.5))
    elif kind == IS_SLIDES or kind == IS_TURNS:
        at = several_row(kind, row)
        for k in range(t[0].slides[i]):
            q = t[0].state.tree[at + SLIDES_Q + k, w]
            t[0].state.q[t[0].joints.q_start[t[0].joint[i]] + t[0].number[i] + k, w] = q
            t[0].state.stuck[t[0].axis[i] + k, w] = int(t[0].state.tree[at + SLIDES_STUCK + k, w] > real(0.5))
    elif kind == IS_HINGE or kind == IS_SLIDER or kind == IS_ROTOR:
        t[0].state.q[t[0].joints.q_start[t[0].joint[i]] + t[0].number[i], w] = t[0].state.tree[row + Q, w]
        t[0].state.stuck[t[0].axis[i], w] = int(t[0].state.tree[row + STUCK, w] > real(0.5))
        t[0].state.current[t[0].axis[i], w] = t[0].state.tree[row + CURRENT, w]
        t[0].state.rotor[t[0].axis[i], w] = t[0].state.tree[row + MOTOR_SPEED, w]


@wp.func
def store_body(t: wp.array(dtype=TreeStep), i: int, b: int, w: int, kind: int, turn: quat, origin: vec3):
    row = t[0].first[i]
    per = real(1.0) / t[0].settings.dt[0]
    R = turn * wp.quat_inverse(t[0].own_turn[i, w])
    R = R * t[0].state.tree[row + SIGN_AT, w]
    x = origin + wp.quat_rotate(turn, t[0].com[i, w])
    if kind == IS_PRESCRIBED:
        t[0].state.position[b, w] = x
        t[0].state.rotation[b, w] = R
        return
    v = triple(t, row + twist_row(kind), w) * (real(2.0) * per)
    omega = triple(t, row + twist_row(kind) + 3, w) * (real(2.0) * per)
    off = wp.length(x - t[0].state.position[b, w]) * t[0].settings.per_metre[0] + wp.length(R - t[0].state.rotation[b, w])
    if some(v) or some(omega) or off > SAME_POSE:  # what stands still does so to the bit
        t[0].state.position[b, w] = x
        t[0].state.rotation[b, w] = R
    else:
        R = t[0].state.rotation[b, w]
    if t[0].own_axes == 1:
        v = wp.quat_rotate(turn, v)
        omega = wp.quat_rotate(turn, omega)
        store_logged(t, i, b, w, v, omega)
    else:
        store_acceleration(t, b, w, (v - t[0].state.velocity[b, w]) * per)
        t[0].state.last_w[b, w] = (omega - t[0].state.spin[b, w]) * per
    t[0].state.velocity[b, w] = v
    t[0].state.spin[b, w] = omega
    t[0].state.momentum[b, w] = wp.quat_rotate(R, t[0].bodies.inertia[b, w] * wp.quat_rotate_inv(R, omega))


@wp.func
def store_acceleration(t: wp.array(dtype=TreeStep), b: int, w: int, mean: vec3):
    """The acceleration of a body at the end of a step from its mean over the step."""
    change = mean - t[0].state.last_v[b, w]
    t[0].state.acceleration[b, w] = at_end(mean, change, t[0].state.slope_v[b, w])
    t[0].state.slope_v[b, w] = change
    t[0].state.last_v[b, w] = mean


@wp.func
def store_logged(t: wp.array(dtype=TreeStep), i: int, b: int, w: int, v: vec3, omega: vec3):
    """The same after the steps in the log; v and omega are those of their end."""
    per = real(1.0) / t[0].settings.dt[0]
    end = t[0].slot_end[w]
    for slot in range(end - t[0].reported[w], end):
        after = v
        if slot + 1 < end:
            after = logged(t, log_place(t, slot + 1, i, w), LOG_V)
        store_acceleration(t, b, w, (after - logged(t, log_place(t, slot, i, w), LOG_V)) * per)
    if t[0].reported[w] > 0:
        t[0].state.last_w[b, w] = (omega - logged(t, log_place(t, end - 1, i, w), LOG_W)) * per


@wp.func
def at_end(mean: vec3, change: vec3, before: vec3) -> vec3:
    """A quantity at the end of a step from its mean over the step, the change of that mean, and the change before.

    Means f of steps alternate about the true value: f + ½ (last change) would double that, f + ½ (change before the last) has
    none of it, and is of second order, too. A jump is not carried on.
    """
    if wp.length_sq(before) <= wp.max(SUDDEN * wp.length_sq(change), SLIGHT * wp.length_sq(mean)):
        return mean + before * real(0.5)
    return mean


@wp.func
def store_report(t: wp.array(dtype=TreeStep), w: int):
    """What joints carried in the last step and what acted on their axes, as of a whole step."""
    for i in range(t[0].links):
        report_link(t, i, w)


@wp.func
def report_link(t: wp.array(dtype=TreeStep), i: int, w: int):
    """The same of a link; its last one reports of the joint."""
    kind = t[0].kind[i + t[0].links * w]
    j = t[0].joint[i]
    if j < 0 or kind < 0:
        return
    if t[0].acts[i + t[0].links * w] == 1:
        report_axes(t, i, w, kind)
    if t[0].body[i] >= 0 or t[0].cut[i] == 1:
        report_loss(t, i, j, w)
        store_reaction(t, i, j, w, kind)


@wp.func
def report_axes(t: wp.array(dtype=TreeStep), i: int, w: int, kind: int):
    """Impulses along the axes of a link."""
    n = int(0)
    one = kind == IS_HINGE or kind == IS_SLIDER or kind == IS_ROTOR
    if one:
        n = 1
    if kind == IS_BALL or kind == IS_SLIDES or kind == IS_TURNS:
        n = t[0].slides[i]
    for k in range(n):
        at = t[0].axis[i] + k
        friction = impulse_of(t, i, w, wp.where(one, P_FRICTION, -1), P_FRICTION_3 + k, LOG_P_FRICTION + k)
        given = impulse_of(t, i, w, wp.where(one, P_AXIS, -1), P_AXIS_3 + k, LOG_P_AXIS + k)
        limit = impulse_of(t, i, w, wp.where(one, P_LIMIT, -1), P_LIMIT_3 + k, LOG_P_LIMIT + k)
        drive = impulse_of(t, i, w, wp.where(one, P_DRIVE, -1), P_DRIVE_3 + k, LOG_P_DRIVE + k)
        t[0].state.friction_impulse[at, w] = friction
        t[0].state.axis_impulse[at, w] = given
        t[0].state.limit_impulse[at, w] = limit
        t[0].state.drive_impulse[at, w] = drive


@wp.func
def impulse_of(t: wp.array(dtype=TreeStep), i: int, w: int, one: int, apart: int, what: int) -> real:
    """A number that the last step reports of a link, as of a whole step: in the log, or in the working memory of generic steps,
    where −1 says that it is one of several axes.
    """
    per = t[0].settings.dt[0] / t[0].part[w]
    if t[0].own_axes == 1:
        return t[0].log[log_place(t, t[0].slot_end[w] - 1, i, w) + what * WARP] * per
    if one >= 0:
        return recall(t, i, one, w) * per
    return recall_apart(t, i, apart, w) * per


@wp.func
def report_loss(t: wp.array(dtype=TreeStep), i: int, j: int, w: int):
    """What is lost on the axes of a joint whose last link is i."""
    lost = real(0.0)
    if t[0].hit[w] > 0:
        if t[0].joint[t[0].hit[w] - 1] == j:
            lost = t[0].taken[w]
    at = i
    while at >= 0:
        if t[0].joint[at] != j:
            break
        kind = t[0].kind[at + t[0].links * w]
        several = kind == IS_BALL or kind == IS_SLIDES or kind == IS_TURNS
        if t[0].acts[at + t[0].links * w] == 1 and (several or kind == IS_HINGE or kind == IS_SLIDER or kind == IS_ROTOR):
            lost = lost + impulse_of(t, at, w, P_LOST, 0, LOG_P_LOST)
        at = at - 1
    t[0].state.dissipated[j, w] = lost


@wp.func
def without_free_axes(t: wp.array(dtype=TreeStep), i: int, j: int, w: int, f: vec3, l: vec3, slot: int):
    """A force and a moment less their shares along the free axes of a joint, as these are in the mean of the step in a slot of
    the log, or with slot −1 at the end; i is the last link of the joint.
    """
    at = i
    while at >= 0:
        if t[0].joint[at] != j:
            break
        along = t[0].kind[at + t[0].links * w]
        if along == IS_BALL:
            l = vec3(real(0.0))
        elif along == IS_SLIDES or along == IS_TURNS:
            pose = pose_at(t[0].joints, j, w, t[0].state.position, t[0].state.rotation)
            for x in range(t[0].slides[at]):
                d, m = free_axis(t[0].joints, j, t[0].number[at] + x, pose)
                l = l - m * wp.dot(m, l)
                f = f - d * wp.dot(d, f)
        elif along == IS_HINGE or along == IS_ROTOR or along == IS_SLIDER:
            d = wp.quat_rotate(t[0].turn[at, w], vec3(real(0.0), real(0.0), real(1.0)))
            if slot >= 0:
                d = wp.normalize(reported(t, at, w, AXIS_MEAN, LOG_AXIS, slot))
            if along == IS_SLIDER:
                f = f - d * wp.dot(d, f)
            else:
                l = l - d * wp.dot(d, l)
        at = at - 1
    return f, l


@wp.func
def reported(t: wp.array(dtype=TreeStep), i: int, w: int, recalled: int, what: int, slot: int) -> vec3:
    """A vector that a step reports of a link, in the world's axes: in the log, or in the working memory of generic steps."""
    if t[0].own_axes == 1:
        return logged(t, log_place(t, slot, i, w), what)
    return recall_triple(t, i, recalled, w)


@wp.func
def carried_by(t: wp.array(dtype=TreeStep), i: int, j: int, w: int, slot: int):
    """Impulse and moment of a joint on its child in a step, at the child's anchor, without the share of the free axes."""
    scale = real(4.0) * t[0].settings.dt[0] / (t[0].part[w] * t[0].part[w])
    f = reported(t, i, w, REACTION, LOG_F, slot) * scale
    l = reported(t, i, w, MOMENT, LOG_N, slot) * scale
    if t[0].sense[i] < 0:
        pose = pose_at(t[0].joints, j, w, t[0].state.position, t[0].state.rotation)
        l = -l - wp.cross(pose.parent_anchor - pose.child_anchor, f)
        f = -f
    f, l = without_free_axes(t, i, j, w, f, l, slot)
    return f, l


@wp.func
def store_reaction(t: wp.array(dtype=TreeStep), i: int, j: int, w: int, kind: int):
    """What a joint carries at the end of the last step, from that in the last ones."""
    zero = vec3(real(0.0))
    f = t[0].state.mid_force[j, w]
    l = t[0].state.mid_torque[j, w]
    row = t[0].first[i] + CHANGE_AT
    change_f = triple(t, row, w)
    change_l = triple(t, row + 3, w)
    before_f = zero
    before_l = zero
    slots = int(1)
    end = int(1)
    if t[0].own_axes == 1:
        slots = t[0].reported[w]
        end = t[0].slot_end[w]
    for slot in range(end - slots, end):
        new_f = zero
        new_l = zero
        if kind != IS_FREE:
            new_f, new_l = carried_by(t, i, j, w, slot)
        before_f = change_f
        before_l = change_l
        change_f = new_f - f
        change_l = new_l - l
        if not (some(f) or some(l)):  # the first step
            change_f = zero
            change_l = zero
            before_f = zero
            before_l = zero
        f = new_f
        l = new_l
    if slots == 0:
        return
    end_f, end_l = without_free_axes(t, i, j, w, at_end(f, change_f, before_f), at_end(l, change_l, before_l), -1)
    t[0].state.joint_force[j, w] = end_f
    t[0].state.joint_torque[j, w] = end_l
    put_triple(t, row, w, change_f)
    put_triple(t, row + 3, w, change_l)
    t[0].state.mid_force[j, w] = f
    t[0].state.mid_torque[j, w] = l


@wp.func
def break_joints(t: wp.array(dtype=TreeStep), w: int) -> bool:
    """Disable joints that do not stand what they carried in the last step."""
    broke = bool(False)
    for j in range(t[0].joints.count):
        if t[0].control.enabled[j, w] != 0:
            if breaks(t[0].joints, j, t[0].state.mid_force[j, w], t[0].state.mid_torque[j, w], t[0].settings.dt[0]):
                t[0].control.enabled[j, w] = 0
                broke = True
    return broke


@wp.func
def keep(t: wp.array(dtype=TreeStep), w: int):
    """Remember the state, to see whether the caller changes it."""
    for b in range(t[0].bodies.count):
        keep_body(t, b, w)


@wp.func
def keep_body(t: wp.array(dtype=TreeStep), b: int, w: int):
    t[0].state.felt_force[b, w] = t[0].control.force[b, w]
    t[0].state.felt_torque[b, w] = t[0].control.torque[b, w]
    t[0].state.kept_velocity[b, w] = t[0].state.velocity[b, w]
    t[0].state.kept_momentum[b, w] = t[0].state.momentum[b, w]
    t[0].state.kept_position[b, w] = t[0].state.position[b, w]
    t[0].state.kept_rotation[b, w] = t[0].state.rotation[b, w]


@wp.func
def count(t: wp.array(dtype=TreeStep), w: int, made: int):
    """Steps that were made."""
    t[0].residual[w] = t[0].change[w] * t[0].per_change
    t[0].done[w] = t[0].passes[w]
    t[0].state.open[w] = real(0.0)
    t[0].state.history[w] = wp.min(t[0].state.history[w] + made, 4)
    for _k in range(made):
        t[0].state.time[w] = t[0].state.time[w] + wp.float64(t[0].settings.dt[0])
        count_step(t[0].tally, w, t[0].residual[w], t[0].settings.tolerance[0], t[0].parts[w])
    if t[0].parts[w] > 1:
        t[0].grades[1, w] = t[0].grades[1, w] + 1
