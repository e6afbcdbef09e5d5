"""The stages of a step in maximal coordinates, as kernels: each reads, calls functions of the physics, writes.

Symbols are those of theory: V = (v, ω) a twist, P = (p, l) an impulse, K and W as in `rows`, G a gap.
"""

import warp as wp

from sharnir.joints import (
    GearTable,
    JointTable,
    angular_axes,
    coordinate,
    free_axis,
    joint_curvature,
    joint_gap,
    linear_axes,
    masked,
    read_angles,
)
from sharnir.kinematics import pose_at
from sharnir.model import BodyTable, Control, State
from sharnir.rows import Twists, apply_impulse, block_inverse, body_response
from sharnir.spatial import advance_rotation, rotated, turned
from sharnir.types import mat33, quat, real, vec3

KINEMATIC = wp.constant(1)
DYNAMIC = wp.constant(2)


@wp.struct
class Settings:
    """Numbers that may change between steps, one element each, so that a captured step reads them."""

    dt: wp.array(dtype=real)
    gravity: wp.array(dtype=vec3)
    erp: wp.array(dtype=real)
    tolerance: wp.array(dtype=real)
    iterations: wp.array(dtype=wp.int32)
    position_iterations: wp.array(dtype=wp.int32)


@wp.struct
class Work:
    """Scratch of a step; [item, world]."""

    twist: Twists  # V, being solved
    pseudo: Twists  # V*, the split impulses' velocities
    gyro: wp.array2d(dtype=vec3)  # −I⁻¹(ω × L), the angular acceleration of a free body
    spin_start: wp.array2d(dtype=vec3)  # ω after external torques
    momentum: wp.array2d(dtype=vec3)  # L after external torques
    inv_inertia: wp.array2d(dtype=mat33)  # I⁻¹, world axes
    position: wp.array2d(dtype=vec3)  # the new pose
    rest: wp.array2d(dtype=vec3)
    rotation: wp.array2d(dtype=quat)
    r_parent: wp.array2d(dtype=vec3)  # the common point from each centre of mass
    r_child: wp.array2d(dtype=vec3)
    joint_force: wp.array2d(dtype=vec3)  # accumulated P of every joint
    joint_torque: wp.array2d(dtype=vec3)
    gear_impulse: wp.array2d(dtype=real)
    W_ll: wp.array2d(dtype=mat33)
    W_la: wp.array2d(dtype=mat33)
    W_aa: wp.array2d(dtype=mat33)
    turn_parent_l: wp.array2d(dtype=mat33)  # I⁻¹([r]W_ll + W_al) and I⁻¹([r]W_la + W_aa) of each body: the change of ω straight
    turn_parent_a: wp.array2d(dtype=mat33)  # from u, since a sweep is as slow as its longest chain of operations
    turn_child_l: wp.array2d(dtype=mat33)
    turn_child_a: wp.array2d(dtype=mat33)
    curve_linear: wp.array2d(dtype=vec3)  # ½Δt γ
    curve_angular: wp.array2d(dtype=vec3)
    drive_force: wp.array2d(dtype=vec3)  # impulse of the forces applied on free axes
    drive_torque: wp.array2d(dtype=vec3)
    gap_linear: wp.array2d(dtype=vec3)  # ERP·G/Δt at the new pose
    gap_angular: wp.array2d(dtype=vec3)
    pseudo_force: wp.array2d(dtype=vec3)  # what the split impulses add up to, not used again
    pseudo_torque: wp.array2d(dtype=vec3)
    gear_row: wp.array3d(dtype=vec3)  # [gear, 8: (linear, angular) of child a, parent a, child b, parent b, world]
    gear_W: wp.array2d(dtype=real)
    gear_gap: wp.array2d(dtype=real)
    gear_start: wp.array2d(dtype=real)
    iterations: wp.array(dtype=wp.int32)
    residual: wp.array(dtype=real)


@wp.struct
class Step:
    """All that a step reads and writes. Kernels take it as an array of one element: a launch then costs one pointer."""

    bodies: BodyTable
    joints: JointTable
    gears: GearTable
    settings: Settings
    control: Control
    state: State
    work: Work


# ---- 1. external forces ----------------------------------------------------------------------------------------------


@wp.kernel(module="sharnir.impulse")
def predict(step: wp.array(dtype=Step), first: int):
    """V ← V + M⁻¹ Fᵉ Δt; the gyroscopic moment is in ω = I⁻¹(q) L."""
    s = step[0]
    bodies = s.bodies
    settings = s.settings
    control = s.control
    state = s.state
    work = s.work
    b, i = wp.tid()
    w = first + i
    dt = settings.dt[0]
    v = state.velocity[b, w]
    omega = state.spin[b, w]
    J = mat33(real(0.0))
    if bodies.motion[b] == DYNAMIC:
        J = rotated(wp.quat_to_matrix(state.rotation[b, w]), bodies.inv_inertia[b])
        f = control.force[b, w] + control.force_once[b, w]
        L = state.momentum[b, w] + (control.torque[b, w] + control.torque_once[b, w]) * dt
        v = v + (settings.gravity[0] + f * bodies.inv_mass[b]) * dt
        omega = J * L
        work.momentum[b, w] = L
        work.gyro[b, w] = J * wp.cross(L, omega)
    control.force_once[b, w] = vec3(real(0.0))
    control.torque_once[b, w] = vec3(real(0.0))
    work.inv_inertia[b, w] = J
    work.twist.linear[b, w] = v
    work.twist.angular[b, w] = omega
    work.spin_start[b, w] = omega


# ---- 2. joints: frames, blocks, warm start -----------------------------------------------------------------------------


@wp.kernel(module="sharnir.impulse")
def prepare(step: wp.array(dtype=Step), first: int):
    """Of every joint: W, last step's impulse on the axes of today, ½Δt γ, and the impulse of forces on its free axes.

    JV⁺ = −½Δt γ aims along the chord of the arc that the joint prescribes. With JV⁺ = 0 a body leaves the arc along the tangent,
    and the next projection takes ½(ωΔt)² of its speed; so it keeps its speed, and the gap that is left is of third order.
    """
    s = step[0]
    bodies = s.bodies
    joints = s.joints
    settings = s.settings
    control = s.control
    state = s.state
    work = s.work
    k, i = wp.tid()
    w = first + i
    p = joints.parent[k]
    c = joints.child[k]
    free = joints.free[k]
    pose = pose_at(joints, k, w, state.position, state.rotation)
    r_p = pose.child_anchor - state.position[p, w]
    r_c = pose.child_anchor - state.position[c, w]
    work.r_parent[k, w] = r_p
    work.r_child[k, w] = r_c

    pll, pla, paa = body_response(r_p, bodies.inv_mass[p], work.inv_inertia[p, w])
    cll, cla, caa = body_response(r_c, bodies.inv_mass[c], work.inv_inertia[c, w])
    Fl = mat33(real(0.0))
    Fa = mat33(real(0.0))
    force = state.joint_force[k, w]
    torque = state.joint_torque[k, w]
    if free & 7 != 0 and free & 7 != 7:
        Fl = linear_axes(joints, k, pose)
        force = masked(Fl, free, force)
    if free >> 3 != 0 and free >> 3 != 7:
        Fa = angular_axes(joints, k, pose)
        torque = masked(Fa, free >> 3, torque)
    work.joint_force[k, w] = force
    work.joint_torque[k, w] = torque
    ll, la, aa = block_inverse(Fl, Fa, free, pll + cll, pla + cla, paa + caa)
    work.W_ll[k, w] = ll
    work.W_la[k, w] = la
    work.W_aa[k, w] = aa
    al = wp.transpose(la)
    work.turn_parent_l[k, w] = work.inv_inertia[p, w] * (wp.skew(r_p) * ll + al)
    work.turn_child_l[k, w] = work.inv_inertia[c, w] * (wp.skew(r_c) * ll + al)
    if free >> 3 != 7:
        work.turn_parent_a[k, w] = work.inv_inertia[p, w] * (wp.skew(r_p) * la + aa)
        work.turn_child_a[k, w] = work.inv_inertia[c, w] * (wp.skew(r_c) * la + aa)

    w_p = work.twist.angular[p, w]
    w_c = work.twist.angular[c, w]
    u = work.twist.linear[c, w] + wp.cross(w_c, r_c) - work.twist.linear[p, w] - wp.cross(w_p, r_p)
    linear, angular = joint_curvature(joints, k, pose, w_p, w_c, work.gyro[p, w], work.gyro[c, w], r_p, r_c, u)
    half = real(0.5) * settings.dt[0]
    work.curve_linear[k, w] = linear * half
    work.curve_angular[k, w] = angular * half

    force = vec3(real(0.0))
    torque = vec3(real(0.0))
    for j in range(joints.v_size[k]):
        f = control.joint_force[joints.v_start[k] + j, w] * settings.dt[0]
        if f != real(0.0):
            d, n = free_axis(joints, k, j, pose)
            force = force + d * f
            torque = torque + n * f
    work.drive_force[k, w] = force
    work.drive_torque[k, w] = torque


@wp.func
def gear_body(joints: JointTable, gears: GearTable, g: int, i: int) -> int:
    """The four bodies of a gear: child and parent of its first joint, child and parent of its second."""
    k = gears.joint_a[g]
    if i > 1:
        k = gears.joint_b[g]
    if i % 2 == 0:
        return joints.child[k]
    return joints.parent[k]


@wp.kernel(module="sharnir.impulse")
def prepare_gears(step: wp.array(dtype=Step), first: int):
    """The row of a gear, B_a − ratio · B_b, on its four bodies, and 1 / (J M⁻¹ Jᵀ); two of the bodies may be one."""
    s = step[0]
    bodies = s.bodies
    joints = s.joints
    gears = s.gears
    state = s.state
    work = s.work
    g, j = wp.tid()
    w = first + j
    for side in range(2):
        k = gears.joint_a[g]
        axis = gears.axis_a[g]
        factor = real(1.0)
        if side == 1:
            k = gears.joint_b[g]
            axis = gears.axis_b[g]
            factor = -gears.ratio[g]
        pose = pose_at(joints, k, w, state.position, state.rotation)
        d, n = free_axis(joints, k, axis, pose)
        for body in range(2):
            sign = factor
            r = work.r_child[k, w]
            if body == 1:
                sign = -factor
                r = work.r_parent[k, w]
            work.gear_row[g, 4 * side + 2 * body, w] = d * sign
            work.gear_row[g, 4 * side + 2 * body + 1, w] = (wp.cross(r, d) + n) * sign
    m = real(0.0)
    for i in range(4):
        a = gear_body(joints, gears, g, i)
        for h in range(4):
            if gear_body(joints, gears, g, h) == a:
                m = m + wp.dot(work.gear_row[g, 2 * i, w], work.gear_row[g, 2 * h, w]) * bodies.inv_mass[a]
                m = m + wp.dot(work.gear_row[g, 2 * i + 1, w], work.inv_inertia[a, w] * work.gear_row[g, 2 * h + 1, w])
    work.gear_W[g, w] = real(1.0) / m
    work.gear_impulse[g, w] = state.gear_impulse[g, w]


@wp.func
def warm_start(bodies: BodyTable, joints: JointTable, gears: GearTable, w: int, work: Work):
    """Apply last step's impulses (temporal coherence) and the forces on free axes."""
    for k in range(joints.count):
        p = joints.parent[k]
        c = joints.child[k]
        f = work.joint_force[k, w] + work.drive_force[k, w]
        l = work.joint_torque[k, w] + work.drive_torque[k, w]
        apply_impulse(work.twist, c, w, f, l, work.r_child[k, w], bodies.inv_mass[c], work.inv_inertia[c, w], real(1.0))
        apply_impulse(work.twist, p, w, f, l, work.r_parent[k, w], bodies.inv_mass[p], work.inv_inertia[p, w], real(-1.0))
    for g in range(gears.count):
        apply_gear(bodies, joints, gears, g, w, work.gear_impulse[g, w], work, work.twist)


# ---- 3. and 4. sequential impulses: one sweep serves velocities and pseudo-velocities -----------------------------------


@wp.struct
class Rows:
    """One solve over the joints: the velocities it changes, the speeds it aims at (u = −bias), the impulses it adds up."""

    twist: Twists
    bias_linear: wp.array2d(dtype=vec3)
    bias_angular: wp.array2d(dtype=vec3)
    force: wp.array2d(dtype=vec3)
    torque: wp.array2d(dtype=vec3)


@wp.func
def solve_joint(bodies: BodyTable, joints: JointTable, k: int, w: int, work: Work, rows: Rows) -> real:
    """ΔP = −W (u + bias) of one joint, applied to both bodies; returns |ΔP|²."""
    p = joints.parent[k]
    c = joints.child[k]
    free = joints.free[k]
    r_p = work.r_parent[k, w]
    r_c = work.r_child[k, w]
    w_p = rows.twist.angular[p, w]
    w_c = rows.twist.angular[c, w]
    v_p = rows.twist.linear[p, w]
    v_c = rows.twist.linear[c, w]
    u = (v_c + wp.cross(w_c, r_c)) - (v_p + wp.cross(w_p, r_p) - rows.bias_linear[k, w])
    force = work.W_ll[k, w] * u
    turn_p = work.turn_parent_l[k, w] * u
    turn_c = work.turn_child_l[k, w] * u
    size = real(0.0)
    if free >> 3 != 7:  # without a rotation row the angular blocks of W are zero
        v = w_c - (w_p - rows.bias_angular[k, w])
        B = work.W_la[k, w]
        force = force + B * v
        torque = u * B + work.W_aa[k, w] * v
        turn_p = turn_p + work.turn_parent_a[k, w] * v
        turn_c = turn_c + work.turn_child_a[k, w] * v
        rows.torque[k, w] = rows.torque[k, w] - torque
        size = wp.dot(torque, torque)
    rows.twist.linear[p, w] = v_p + force * bodies.inv_mass[p]
    rows.twist.linear[c, w] = v_c - force * bodies.inv_mass[c]
    rows.twist.angular[p, w] = w_p + turn_p
    rows.twist.angular[c, w] = w_c - turn_c
    rows.force[k, w] = rows.force[k, w] - force
    return size + wp.dot(force, force)


@wp.func
def sweep(bodies: BodyTable, joints: JointTable, w: int, back: bool, work: Work, rows: Rows) -> real:
    """Every joint once, from first to last or back; returns the largest |ΔP|²."""
    largest = real(0.0)
    k = int(0)
    stride = int(1)
    if back:
        k = joints.count - 1
        stride = -1
    for _j in range(joints.count):
        if joints.free[k] != 63:
            largest = wp.max(largest, solve_joint(bodies, joints, k, w, work, rows))
        k = k + stride
    return largest


@wp.func
def apply_gear(
    bodies: BodyTable, joints: JointTable, gears: GearTable, g: int, w: int, impulse: real, work: Work, twists: Twists
):
    for i in range(4):
        b = gear_body(joints, gears, g, i)
        apply_impulse(
            twists,
            b,
            w,
            work.gear_row[g, 2 * i, w] * impulse,
            work.gear_row[g, 2 * i + 1, w] * impulse,
            vec3(real(0.0)),
            bodies.inv_mass[b],
            work.inv_inertia[b, w],
            real(1.0),
        )


@wp.func
def solve_gear(
    bodies: BodyTable, joints: JointTable, gears: GearTable, g: int, w: int, work: Work, twists: Twists, bias: real
) -> real:
    """Δp = −(J V + bias) / (J M⁻¹ Jᵀ) of one gear, applied to its bodies."""
    u = bias
    for i in range(4):
        b = gear_body(joints, gears, g, i)
        u = u + wp.dot(work.gear_row[g, 2 * i, w], twists.linear[b, w])
        u = u + wp.dot(work.gear_row[g, 2 * i + 1, w], twists.angular[b, w])
    impulse = -work.gear_W[g, w] * u
    apply_gear(bodies, joints, gears, g, w, impulse, work, twists)
    return impulse


@wp.kernel(module="sharnir.impulse")
def solve_velocities(step: wp.array(dtype=Step), first: int):
    """Warm start, then sweeps on V, forth and back in turn, until every |ΔP| ≤ ε or the iteration cap."""
    s = step[0]
    w = first + wp.tid()
    warm_start(s.bodies, s.joints, s.gears, w, s.work)
    rows = Rows()
    rows.twist = s.work.twist
    rows.bias_linear = s.work.curve_linear
    rows.bias_angular = s.work.curve_angular
    rows.force = s.work.joint_force
    rows.torque = s.work.joint_torque
    tolerance = s.settings.tolerance[0]
    done = int(0)
    largest = real(0.0)
    for it in range(s.settings.iterations[0]):
        largest = sweep(s.bodies, s.joints, w, it % 2 == 1, s.work, rows)
        for g in range(s.gears.count):
            impulse = solve_gear(s.bodies, s.joints, s.gears, g, w, s.work, s.work.twist, real(0.0))
            s.work.gear_impulse[g, w] = s.work.gear_impulse[g, w] + impulse
            largest = wp.max(largest, impulse * impulse)
        done = it + 1
        if largest <= tolerance * tolerance:
            break
    s.work.iterations[w] = done
    s.work.residual[w] = wp.sqrt(largest)


@wp.func
def close_gaps(s: Step, w: int):
    """Split impulses: the same sweeps on V*, from 0, towards −ERP·G/Δt; V* moves positions, never velocities."""
    for b in range(s.bodies.count):
        s.work.pseudo.linear[b, w] = vec3(real(0.0))
        s.work.pseudo.angular[b, w] = vec3(real(0.0))
    rate = s.settings.erp[0] / s.settings.dt[0]
    for k in range(s.joints.count):
        linear, angular = joint_gap(s.joints, k, pose_at(s.joints, k, w, s.work.position, s.work.rotation))
        s.work.gap_linear[k, w] = linear * rate
        s.work.gap_angular[k, w] = angular * rate
    for g in range(s.gears.count):
        s.work.gear_gap[g, w] = gear_gap(s, g, w) * rate
    rows = Rows()
    rows.twist = s.work.pseudo
    rows.bias_linear = s.work.gap_linear
    rows.bias_angular = s.work.gap_angular
    rows.force = s.work.pseudo_force
    rows.torque = s.work.pseudo_torque
    for it in range(s.settings.position_iterations[0]):
        sweep(s.bodies, s.joints, w, it % 2 == 1, s.work, rows)
        for g in range(s.gears.count):
            solve_gear(s.bodies, s.joints, s.gears, g, w, s.work, s.work.pseudo, s.work.gear_gap[g, w])


@wp.func
def gear_gap(s: Step, g: int, w: int) -> real:
    """q_a − ratio · q_b at the new pose, against its value at the start."""
    a = s.gears.joint_a[g]
    b = s.gears.joint_b[g]
    pose_a = pose_at(s.joints, a, w, s.work.position, s.work.rotation)
    pose_b = pose_at(s.joints, b, w, s.work.position, s.work.rotation)
    q_a = coordinate(s.joints, a, s.gears.axis_a[g], w, pose_a, s.state.q)
    q_b = coordinate(s.joints, b, s.gears.axis_b[g], w, pose_b, s.state.q)
    return q_a - s.gears.ratio[g] * q_b - s.work.gear_start[g, w]


# ---- 5. positions ------------------------------------------------------------------------------------------------------


@wp.kernel(module="sharnir.impulse")
def advance(step: wp.array(dtype=Step), first: int):
    """X ← X ⊕ Δt V. L takes the impulses that ω took; the rotation keeps L and its energy (`advance_rotation`)."""
    s = step[0]
    bodies = s.bodies
    settings = s.settings
    state = s.state
    work = s.work
    b, i = wp.tid()
    w = first + i
    dt = settings.dt[0]
    omega = work.twist.angular[b, w]
    q = state.rotation[b, w]
    # compensated: what rounding drops from x + Δt v is kept for the next step
    x = state.position[b, w]
    move = work.twist.linear[b, w] * dt + state.rest[b, w]
    there = x + move
    work.position[b, w] = there
    work.rest[b, w] = move - (there - x)
    if bodies.motion[b] == DYNAMIC:
        taken = wp.quat_rotate_inv(q, omega - work.spin_start[b, w])
        L = work.momentum[b, w] + wp.quat_rotate(q, bodies.inertia[b] * taken)
        work.momentum[b, w] = L
        q = advance_rotation(q, L, bodies.inertia[b], bodies.inv_inertia[b], dt)
    elif bodies.motion[b] == KINEMATIC:
        q = turned(q, omega * dt)
    work.rotation[b, w] = q


@wp.func
def first_bad_body(s: Step, w: int) -> int:
    """1 + the first dynamic body whose new state is not finite, or 0; adds Δt V* to the new poses on the way."""
    dt = s.settings.dt[0]
    bad = int(0)
    for b in range(s.bodies.count):
        x = s.work.position[b, w] + s.work.pseudo.linear[b, w] * dt
        q = s.work.rotation[b, w]
        turn = s.work.pseudo.angular[b, w]
        if wp.length_sq(turn) > real(0.0):
            q = turned(q, turn * dt)
        s.work.position[b, w] = x
        s.work.rotation[b, w] = q
        v = s.work.twist.linear[b, w]
        L = s.work.momentum[b, w]
        if (
            bad == 0
            and s.bodies.motion[b] == DYNAMIC
            and not wp.isfinite(wp.dot(x, x) + wp.dot(v, v) + wp.dot(L, L) + wp.dot(q, q))
        ):
            bad = b + 1
    return bad


@wp.func
def commit(s: Step, w: int):
    """The new state becomes the state."""
    dt = s.settings.dt[0]
    for b in range(s.bodies.count):
        v = s.work.twist.linear[b, w]
        q = s.work.rotation[b, w]
        s.state.acceleration[b, w] = (v - s.state.velocity[b, w]) / dt
        s.state.position[b, w] = s.work.position[b, w]
        s.state.rest[b, w] = s.work.rest[b, w]
        s.state.rotation[b, w] = q
        s.state.velocity[b, w] = v
        if s.bodies.motion[b] == DYNAMIC:
            L = s.work.momentum[b, w]
            s.state.momentum[b, w] = L
            s.state.spin[b, w] = wp.quat_rotate(q, s.bodies.inv_inertia[b] * wp.quat_rotate_inv(q, L))
    for k in range(s.joints.count):
        s.state.joint_force[k, w] = s.work.joint_force[k, w]
        s.state.joint_torque[k, w] = s.work.joint_torque[k, w]
        if s.joints.v_size[k] > 0 and (s.joints.turns[k] == 1 or s.joints.turns[k] == 2):
            read_angles(s.joints, k, w, pose_at(s.joints, k, w, s.state.position, s.state.rotation), s.state.q)
    for g in range(s.gears.count):
        s.state.gear_impulse[g, w] = s.work.gear_impulse[g, w]
    s.state.time[w] = s.state.time[w] + wp.float64(dt)


@wp.kernel(module="sharnir.impulse")
def finish(step: wp.array(dtype=Step), first: int):
    """Close the gaps at the new pose, and commit; where a number is not finite, mark the world and leave its state alone."""
    s = step[0]
    w = first + wp.tid()
    if s.state.failed[w] != 0:
        return
    close_gaps(s, w)
    bad = first_bad_body(s, w)
    s.state.failed[w] = bad
    if bad == 0:
        commit(s, w)
