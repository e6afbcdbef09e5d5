"""Rows of joints, gears and springs for one step, and the impulses of the last step put back on the bodies."""

import warp as wp

from sharnir.core.types import mat33, real, vec3
from sharnir.engine.sequential.actions import prepare_rows, start_laws
from sharnir.engine.sequential.cables import prepare_cables, warm_cables
from sharnir.engine.sequential.couplings import apply_gear, apply_spring, prepare_gear, prepare_spring, spring_rests
from sharnir.engine.sequential.data import VELOCITIES, Step
from sharnir.engine.sleep import sleeps
from sharnir.laws.rows import apply_impulse, block_inverse, body_response
from sharnir.laws.solve import only_ball_friction
from sharnir.model.joint_geometry import JointPose, angular_axes, free_axis, joint_curvature, linear_axes, masked
from sharnir.model.kinematics import pose_at

MODE_BLOCK = wp.constant(1)  # bits of a joint's mode
MODE_ACTS = wp.constant(2)
MODE_BALL = wp.constant(4)  # nothing but friction acts, on three rotations as one
MODE_ASLEEP = wp.constant(8)  # its bodies sleep: it keeps its impulses, and does nothing


# ---- joints and links: frames, blocks, laws, warm start ---------------------------------------------------------------------


@wp.func
def axis_impulses(s: wp.array(dtype=Step), k: int, w: int, pose: JointPose, reading: int) -> tuple[vec3, vec3]:
    """What a user's forces on the free axes of a joint do in this step: impulse and moment on the child."""
    kick = s[0].settings.kick[w]
    past = s[0].state.stagger[w]
    pushed = vec3(real(0.0))
    turned_by = vec3(real(0.0))
    for j in range(s[0].joints.v_size[k]):
        at = s[0].joints.v_start[k] + j
        f = s[0].state.felt_joint[at, w] * past + s[0].control.joint_force[at, w] * (kick - past) * real(1 - reading)
        if f != real(0.0):
            d, n = free_axis(s[0].joints, k, j, pose)
            pushed = pushed + d * f
            turned_by = turned_by + n * f
    return pushed, turned_by


@wp.kernel(module="sharnir.impulse")
def prepare(s: wp.array(dtype=Step), first: int, reading: int) -> None:
    """Of every joint: W, last step's impulse on the axes of today, ½Δt γ, the laws of its axes, forces applied on them.

    JV⁺ = −½Δt γ aims along the chord of the arc that the joint prescribes. With JV⁺ = 0 a body leaves the arc along the tangent,
    and the next projection takes ½(ωΔt)² of its speed; so it keeps its speed, and the gap that is left is of third order. What
    is read stands at the pose, with JV⁺ = 0.
    """
    k, i = wp.tid()
    w = first + i
    solve = s[0].solves[VELOCITIES]
    if solve.done[w] >= 0:
        return
    p = s[0].joints.parent[k]
    c = s[0].joints.child[k]
    free = s[0].joints.free[k]
    dt = s[0].settings.dt[0]
    mode = int(0)
    rests = sleeps(s, p, w) or sleeps(s, c, w)
    if rests:
        mode = MODE_ASLEEP
    elif s[0].control.enabled[k, w] != 0:
        if free != 63:
            mode = mode | MODE_BLOCK
        if s[0].control.acts[k, w] != 0 and s[0].joints.v_size[k] > 0:
            mode = mode | MODE_ACTS
    s[0].work.mode[k, w] = mode
    kick = s[0].settings.kick[w]
    force = s[0].state.joint_force[k, w] * (kick / dt)
    torque = s[0].state.joint_torque[k, w] * (kick / dt)
    pushed = vec3(real(0.0))
    turned_by = vec3(real(0.0))
    if not rests and s[0].control.enabled[k, w] == 0:
        force = vec3(real(0.0))
        torque = vec3(real(0.0))
    elif not rests:
        pose = pose_at(s[0].joints, k, w, s[0].state.position, s[0].state.rotation)
        r_p = pose.child_anchor - s[0].state.position[p, w]
        r_c = pose.child_anchor - s[0].state.position[c, w]
        s[0].work.r_parent[k, w] = r_p
        s[0].work.r_child[k, w] = r_c

        pll, pla, paa = body_response(r_p, s[0].bodies.inv_mass[p, w], s[0].work.inv_inertia[p, w])
        cll, cla, caa = body_response(r_c, s[0].bodies.inv_mass[c, w], s[0].work.inv_inertia[c, w])
        Fl = mat33(real(0.0))
        Fa = mat33(real(0.0))
        if free & 7 != 0 and free & 7 != 7:
            Fl = linear_axes(s[0].joints, k, pose)
            force = masked(Fl, free, force)
        if free >> 3 != 0 and free >> 3 != 7:
            Fa = angular_axes(s[0].joints, k, pose)
            torque = masked(Fa, free >> 3, torque)
        ll, la, aa = block_inverse(Fl, Fa, free, pll + cll, pla + cla, paa + caa)
        s[0].work.W_ll[k, w] = ll
        s[0].work.W_la[k, w] = la
        s[0].work.W_aa[k, w] = aa
        al = wp.transpose(la)
        s[0].work.turn_parent_l[k, w] = s[0].work.inv_inertia[p, w] * (wp.skew(r_p) * ll + al)
        s[0].work.turn_child_l[k, w] = s[0].work.inv_inertia[c, w] * (wp.skew(r_c) * ll + al)
        if free >> 3 != 7:
            s[0].work.turn_parent_a[k, w] = s[0].work.inv_inertia[p, w] * (wp.skew(r_p) * la + aa)
            s[0].work.turn_child_a[k, w] = s[0].work.inv_inertia[c, w] * (wp.skew(r_c) * la + aa)

        w_p = solve.twist.angular[p, w]
        w_c = solve.twist.angular[c, w]
        u = solve.twist.linear[c, w] + wp.cross(w_c, r_c) - solve.twist.linear[p, w] - wp.cross(w_p, r_p)
        linear, angular = joint_curvature(s[0].joints, k, pose, w_p, w_c, s[0].work.gyro[p, w], s[0].work.gyro[c, w], r_p, r_c, u)
        chord = real(0.5) * dt * real(1 - reading)
        solve.bias_linear[k, w] = linear * chord
        solve.bias_angular[k, w] = angular * chord

        pushed, turned_by = axis_impulses(s, k, w, pose, reading)
        if mode & MODE_ACTS != 0:
            prepare_rows(s, k, w, pose, pll + cll, pla + cla, paa + caa)
            start_laws(s, solve.laws, k, w, pose, linear * (real(0.5) * dt), angular * (real(0.5) * dt))
            if only_ball_friction(s, solve.laws, k, w):
                s[0].work.mode[k, w] = mode | MODE_BALL
    solve.force[k, w] = force
    solve.torque[k, w] = torque
    s[0].work.drive_force[k, w] = pushed
    s[0].work.drive_torque[k, w] = turned_by


@wp.kernel(module="sharnir.impulse")
def prepare_links(s: wp.array(dtype=Step), first: int, reading: int) -> None:
    """The rows of gears, springs and cables (all of a world by one thread), started from the impulses of the last step."""
    i, j = wp.tid()
    w = first + j
    solve = s[0].solves[VELOCITIES]
    if solve.done[w] >= 0:
        return
    share = s[0].settings.kick[w] / s[0].settings.dt[0]
    if i < s[0].gears.count:
        prepare_gear(s, i, w)
        solve.gear_impulse[i, w] = s[0].state.gear_impulse[i, w] * share
    elif i == s[0].gears.count + s[0].springs.count:
        prepare_cables(s, w, reading)
    else:
        i = i - s[0].gears.count
        prepare_spring(s, i, w)
        solve.spring_impulse[i, w] = s[0].state.spring_impulse[i, w] * share
        if reading == 1:
            s[0].work.spring_bend[i, w] = real(0.0)


@wp.func
def warm_start(s: wp.array(dtype=Step), w: int) -> None:
    """Apply last step's impulses (temporal coherence) and the forces on free axes."""
    solve = s[0].solves[VELOCITIES]
    for k in range(s[0].joints.count):
        if s[0].work.mode[k, w] & MODE_ASLEEP != 0:
            continue
        p = s[0].joints.parent[k]
        c = s[0].joints.child[k]
        f = solve.force[k, w] + s[0].work.drive_force[k, w]
        l = solve.torque[k, w] + s[0].work.drive_torque[k, w]
        if s[0].work.mode[k, w] & MODE_ACTS != 0:
            for j in range(s[0].joints.v_start[k], s[0].joints.v_start[k] + s[0].joints.v_size[k]):
                f = f + s[0].work.axis.d[j, w] * solve.laws.impulse[j, w]
                l = l + s[0].work.axis.n[j, w] * solve.laws.impulse[j, w]
        apply_impulse(
            solve.twist, c, w, f, l, s[0].work.r_child[k, w], s[0].bodies.inv_mass[c, w], s[0].work.inv_inertia[c, w], real(1.0)
        )
        apply_impulse(
            solve.twist, p, w, f, l, s[0].work.r_parent[k, w], s[0].bodies.inv_mass[p, w], s[0].work.inv_inertia[p, w], real(-1.0)
        )
    for g in range(s[0].gears.count):
        apply_gear(s, solve, g, w, solve.gear_impulse[g, w])
    for k in range(s[0].springs.count):
        if not spring_rests(s, k, w):
            apply_spring(s, solve, k, w, solve.spring_impulse[k, w])
    if s[0].cables.count > 0:
        warm_cables(s, w)
