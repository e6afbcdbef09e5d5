"""The end of a leapfrog step: passed limits are taken back, reactions collected, the new state committed."""

import warp as wp

from sharnir.direct.balls import FREE, NONE, report_ball
from sharnir.direct.data import OUT, Direct
from sharnir.direct.leapfrog.closing import close_once, halves_apart
from sharnir.direct.leapfrog.links import inward, relinearise
from sharnir.direct.touched import follow_turns, turn_on
from sharnir.joint_geometry import breaks, free_axis
from sharnir.kinematics import pose_at
from sharnir.laws.prepare import axis_unit, limit_boxes, report_laws
from sharnir.model import DYNAMIC
from sharnir.spatial import matrix
from sharnir.tree.around import eliminate, response_matrix
from sharnir.tree.data import LOOSE, natural
from sharnir.types import real, vec3

ROUNDS = wp.constant(12)  # in which passed limits are taken back in, at most


@wp.func
def near_limit(s: wp.array(dtype=Direct), i: int, w: int) -> bool:
    """Whether a limit of a link's joint acts, or is within two steps' way."""
    if s[0].linear.acts[i, w] == 0 or s[0].work.kind[i, w] != NONE:
        return False
    v0 = s[0].tree.row[i].v_start
    speed = real(0.0)
    for at in range(v0, v0 + s[0].tree.row[i].v_size):
        speed = speed + real(2.0) * wp.abs(s[0].laws.end[at, w])
    for at in range(v0, v0 + s[0].tree.row[i].v_size):
        if s[0].laws.lower[at, w] >= -speed or s[0].laws.upper[at, w] <= speed or s[0].laws.limit[at, w] != real(0.0):
            return True
    return False


@wp.func
def repair_link(s: wp.array(dtype=Direct), i: int, w: int) -> int:
    """Speeds that take passed limits of a link's joint back in, added to its a′; 1 where there are any.

    These limits are locked, in laws.limit, or the axes would yield to what is asked of them.
    """
    j = s[0].tree.joint[i]
    n = s[0].joints.v_size[j]
    v0 = s[0].joints.v_start[j]
    for at in range(v0, v0 + n):
        s[0].kept_u[at, w] = s[0].laws.start[at, w]
        s[0].laws.start[at, w] = real(0.0)
    limit_boxes(s, s[0].laws, j, w, pose_at(s[0].joints, j, w, s[0].position, s[0].rotation), real(1.0), False, real(0.0))
    turn = n - s[0].joints.turns[j]
    found = int(0)
    for x in range(n):
        at = v0 + x
        s[0].laws.start[at, w] = s[0].kept_u[at, w]
        off = wp.max(s[0].laws.lower[at, w], real(0.0)) + wp.min(s[0].laws.upper[at, w], real(0.0))
        if wp.abs(off) * s[0].drift[w] * axis_unit(s, j, x) > s[0].settings.tolerance[1]:
            found = 1
            s[0].laws.limit[at, w] = off
            if s[0].joints.ball[j] != 0 and x >= turn:
                row = s[0].laws.row[at, w]
                for h in range(3):
                    by = row[h] * off / wp.dot(row, row)
                    s[0].work.close_l[i, w] = s[0].work.close_l[i, w] + s[0].work.S_l[v0 + turn + h, w] * by
                    s[0].work.close_a[i, w] = s[0].work.close_a[i, w] + s[0].work.S_a[v0 + turn + h, w] * by
            else:
                s[0].work.close_l[i, w] = s[0].work.close_l[i, w] + s[0].work.S_l[at, w] * off
                s[0].work.close_a[i, w] = s[0].work.close_a[i, w] + s[0].work.S_a[at, w] * off
    if found == 1:
        relinearise(s, i, w)
    return found


@wp.func
def keep_loose(s: wp.array(dtype=Direct), w: int, back: bool):
    """Velocities of links on no joint, which a pass inwards writes, put aside or back."""
    for i in range(s[0].tree.count):
        if s[0].work.kind[i, w] == LOOSE:
            b = s[0].tree.row[i].body
            if back:
                s[0].work.acceleration[b, w] = s[0].sum_l[i, w]
                s[0].work.turning[b, w] = s[0].sum_a[i, w]
            else:
                s[0].sum_l[i, w] = s[0].work.acceleration[b, w]
                s[0].sum_a[i, w] = s[0].work.turning[b, w]


@wp.func
def repair(s: wp.array(dtype=Direct), w: int, scope: int):
    """Take passed limits back in, by displacements alone: in rounds, since those of ball joints are curved."""
    near = int(0)
    for i in range(s[0].tree.count):
        s[0].work.close_l[i, w] = vec3(real(0.0))
        s[0].work.close_a[i, w] = vec3(real(0.0))
        for at in range(s[0].tree.row[i].v_start, s[0].tree.row[i].v_start + s[0].tree.row[i].v_size):
            s[0].lock_u[at, w] = s[0].laws.limit[at, w]
        if near_limit(s, i, w):
            near = 1
    passed = int(near)
    moved = int(0)
    off = real(0.0)
    for _round in range(ROUNDS):
        if passed == 1:
            passed = int(0)
            for i in range(s[0].tree.count):
                if s[0].linear.acts[i, w] == 1 and s[0].work.kind[i, w] == NONE:
                    passed = wp.max(passed, repair_link(s, i, w))
        if passed == 1 or off > s[0].settings.tolerance[1]:
            if passed == 1:
                moved = 1
                keep_loose(s, w, False)
                inward(s, w, scope)
                keep_loose(s, w, True)
                if s[0].closures.count > 0:
                    response_matrix(s[0].joints, s[0].tree, s[0].closures, s[0].rows, s[0].work, w, s[0].closures.count)
                    eliminate(s[0].closures, s[0].rows, w, s[0].closures.count)
            off = close_once(s, w, scope, 0)
            passed = 1  # perhaps still
        else:
            break
    if moved == 1:
        s[0].state.open[w] = wp.max(off, halves_apart(s, w))
    for i in range(s[0].tree.count):
        for at in range(s[0].tree.row[i].v_start, s[0].tree.row[i].v_start + s[0].tree.row[i].v_size):
            s[0].laws.limit[at, w] = s[0].lock_u[at, w]


@wp.func
def bad_body(s: wp.array(dtype=Direct), w: int) -> int:
    """1 + the first body whose new state is not finite, or 0."""
    for b in range(s[0].own):
        x = s[0].position[b, w]
        v = s[0].work.acceleration[b, w]
        o = s[0].work.turning[b, w]
        R = s[0].rotation[b, w]
        if s[0].whole.motion[b] == DYNAMIC and not wp.isfinite(wp.dot(x, x) + wp.dot(v, v) + wp.dot(o, o) + wp.dot(R, R)):
            return b + 1
    return 0


# ---- after the pass ---------------------------------------------------------------------------------------------------------


@wp.func
def take_rows(s: wp.array(dtype=Direct), w: int):
    """Take what rows beside the tree gave their bodies off the joints' reactions."""
    for r in range(s[0].closures.count):
        if s[0].rows.child[r] >= 0:
            take_row(s, s[0].rows.link_of[s[0].rows.child[r]], w, s[0].rows.child_l[r, w], s[0].rows.child_a[r, w], r)
            take_row(s, s[0].rows.link_of[s[0].rows.parent[r]], w, s[0].rows.parent_l[r, w], s[0].rows.parent_a[r, w], r)


@wp.func
def take_row(s: wp.array(dtype=Direct), link: int, w: int, l: vec3, a: vec3, r: int):
    if link >= 0:
        s[0].work.Q_l[link, w] = s[0].work.Q_l[link, w] - l * s[0].row_impulse[r, w]
        s[0].work.Q_a[link, w] = s[0].work.Q_a[link, w] - a * s[0].row_impulse[r, w]


@wp.func
def take_pose(s: wp.array(dtype=Direct), b: int, w: int, v: vec3):
    """The new pose becomes the pose; what rounding drops from the move is kept for the next."""
    x = s[0].state.position[b, w]
    move = v * s[0].drift[w] + s[0].state.rest[b, w]
    s[0].state.rest[b, w] = move - ((x + move) - x)
    s[0].state.position[b, w] = s[0].position[b, w]
    s[0].state.rotation[b, w] = s[0].rotation[b, w]


@wp.func
def collect(
    s: wp.array(dtype=Direct), w: int, scope: int, velocity: wp.array2d(dtype=vec3), momentum: wp.array2d(dtype=vec3),
    joint_force: wp.array2d(dtype=vec3), joint_torque: wp.array2d(dtype=vec3), moved: bool,
):  # fmt: skip
    """New velocities and angular momenta of the bodies, poses if they moved, and the joints' impulses, as of a whole step.

    A joint carries the momenta that all links beyond it took, less what acts along its free axes.
    """
    w = natural(w)
    scale = s[0].settings.dt[0] / s[0].kick[w]
    zero = vec3(real(0.0))
    fl = zero
    fa = zero
    handed = int(0)
    if scope > 1 and s[0].closures.count > 0:
        take_rows(s, w)
    for h in range(s[0].tree.count):
        i = natural(s[0].tree.count - 1 - h)
        b = natural(s[0].tree.row[i].body)
        if handed == 0:
            fl = zero
            fa = zero
        v = s[0].work.acceleration[b, w]
        M = matrix(s[0].work.rotation[b, w])
        taken = M * (s[0].tree.inertia[i, w] * ((s[0].work.turning[b, w] - s[0].work.omega[b, w]) * M))
        fl = fl + v * s[0].tree.mass[i, w] - s[0].impulse_l[i, w]
        fa = fa + taken
        if scope > 1 and s[0].roped == 1:
            fl = fl - s[0].rope_l[b, w]
            fa = fa - s[0].rope_a[b, w]
        if s[0].tree.row[i].gathers == 1 or (scope > 1 and s[0].closures.count > 0):
            fl = fl + s[0].work.Q_l[i, w]
            fa = fa + s[0].work.Q_a[i, w]
            s[0].work.Q_l[i, w] = zero
            s[0].work.Q_a[i, w] = zero
        if scope < 2 or b < s[0].own:
            velocity[b, w] = v
            momentum[b, w] = s[0].momentum[b, w] + taken * s[0].tree.row[i].parts
            if moved:
                take_pose(s, b, w, v)
        j = natural(s[0].tree.row[i].joint)
        kind = s[0].tree.row[i].kind
        if scope > 1 and s[0].work.kind[i, w] == LOOSE:
            kind = LOOSE
        if kind == LOOSE:
            fl = zero
            fa = zero
        if j < s[0].scene_joints:
            sign = real(s[0].tree.sign[i]) * scale
            joint_force[j, w] = fl * sign
            if kind == FREE or kind == LOOSE:
                joint_torque[j, w] = zero
            elif s[0].tree.row[i].hinge == 1:
                l = fa + wp.cross(s[0].work.out[i, w], fl)
                n = s[0].work.S_a[natural(s[0].tree.row[i].v_start), w]
                joint_torque[j, w] = (l - n * wp.dot(n, l)) * sign
            elif scope > 0:
                carried_by_any(s, i, w, fl * sign, fa * sign, joint_force, joint_torque)
            if scope > 1 and moved and breaks(s[0].joints, j, joint_force[j, w], joint_torque[j, w], s[0].settings.dt[0]):
                s[0].control.enabled[j, w] = 0
                s[0].tense[i, w] = OUT
        fa = fa + wp.cross(s[0].work.arm[i, w], fl)
        p = s[0].tree.row[i].base_link
        handed = 0
        if p == i - 1:
            handed = 1
        elif p >= 0:
            s[0].work.Q_l[p, w] = s[0].work.Q_l[p, w] + fl
            s[0].work.Q_a[p, w] = s[0].work.Q_a[p, w] + fa


@wp.func
def carried_by_any(
    s: wp.array(dtype=Direct), i: int, w: int, f: vec3, l: vec3,
    joint_force: wp.array2d(dtype=vec3), joint_torque: wp.array2d(dtype=vec3),
):  # fmt: skip
    """An impulse at a link's centre, as its joint's at the common point, without the share of the free axes."""
    j = s[0].tree.joint[i]
    l = l + wp.cross(s[0].work.out[i, w], f)
    pose = pose_at(s[0].joints, j, w, s[0].work.position, s[0].work.rotation)
    for a in range(s[0].joints.v_size[j]):
        d, n = free_axis(s[0].joints, j, a, pose)
        share = wp.dot(d, f) + wp.dot(n, l)
        f = f - d * share
        l = l - n * share
    joint_force[j, w] = f
    joint_torque[j, w] = l


@wp.func
def count_turns(s: wp.array(dtype=Direct), i: int, w: int):
    """Follow the angles of a link's joint: read them, on the turn that speeds led to, before they are a turn off."""
    if s[0].tree.row[i].kind == FREE:
        return
    j = natural(s[0].tree.row[i].joint)
    turns = s[0].joints.turns[j]
    if j >= s[0].scene_joints or turns == 0 or turns == 3:
        return
    if s[0].work.kind[i, w] == LOOSE:
        follow_turns(s, j, w, s[0].drift[w])
        return
    rel = s[0].work.turning[s[0].tree.row[i].body, w] - s[0].work.turning[s[0].tree.row[i].base, w]
    turn_on(s, i, w, turns, rel, s[0].drift[w])


@wp.func
def commit(s: wp.array(dtype=Direct), w: int, scope: int):
    """The new state becomes the state."""
    dt = s[0].drift[w]
    collect(s, w, scope, s[0].state.velocity, s[0].state.momentum, s[0].state.joint_force, s[0].state.joint_torque, True)
    for n in range(s[0].tree.count):
        i = natural(n)
        count_turns(s, i, w)
        j = natural(s[0].tree.row[i].joint)
        if j < s[0].scene_joints:
            s[0].state.mid_tense[j, w] = s[0].tense[i, w]
        if s[0].pushed[w] == 1 and j < s[0].scene_joints:
            for a in range(s[0].tree.row[i].v_start, s[0].tree.row[i].v_start + s[0].tree.row[i].v_size):
                s[0].state.felt_joint[a, w] = s[0].control.joint_force[a, w]
        if scope > 1 and s[0].acting == 1 and s[0].linear.acts[i, w] == 1:
            if s[0].work.kind[i, w] == NONE:
                report_laws(s, s[0].laws, s[0].tree.joint[i], w)
            else:
                report_ball(s, i, w)
    if scope > 1:
        for i in range(s[0].closures.rods):
            at = 6 * s[0].closures.welds + i
            j = s[0].closures.rod_joint[i]
            f = s[0].rows.child_l[at, w] * (s[0].row_impulse[at, w] * s[0].settings.dt[0] / s[0].kick[w])
            if breaks(s[0].joints, j, f, vec3(real(0.0)), s[0].settings.dt[0]):
                s[0].control.enabled[j, w] = 0
            s[0].state.mid_tense[j, w] = OUT * (1 - s[0].control.enabled[j, w])
    for n in range(s[0].other_count):
        take_pose(s, natural(s[0].others[n]), w, s[0].now.velocity[s[0].others[n], w])
    if s[0].pushed[w] == 1:
        for b in range(s[0].own):
            s[0].state.felt_force[b, w] = s[0].control.force[b, w]
            s[0].state.felt_torque[b, w] = s[0].control.torque[b, w]
            s[0].control.force_once[b, w] = vec3(real(0.0))
            s[0].control.torque_once[b, w] = vec3(real(0.0))
    s[0].state.stagger[w] = real(0.5) * dt
    s[0].state.time[w] = s[0].state.time[w] + wp.float64(dt)
