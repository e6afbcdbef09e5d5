"""The stages of a step in maximal coordinates, as kernels: each reads, calls functions of the physics, writes.

Symbols are those of theory: V = (v, ω) a twist, P = (p, l) an impulse, K and W as in `rows`, G a gap.
"""

import warp as wp

from sharnir.joints import (
    GearTable,
    JointTable,
    angular_axes,
    free_axis,
    joint_gap,
    linear_axes,
    masked,
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
    spin_start: wp.array2d(dtype=vec3)  # ω after external torques
    momentum: wp.array2d(dtype=vec3)  # L after external torques
    inv_inertia: wp.array2d(dtype=mat33)  # I⁻¹, world axes
    position: wp.array2d(dtype=vec3)  # the new pose
    rotation: wp.array2d(dtype=quat)
    r_parent: wp.array2d(dtype=vec3)  # the common point from each centre of mass
    r_child: wp.array2d(dtype=vec3)
    joint_force: wp.array2d(dtype=vec3)  # accumulated P of every joint
    joint_torque: wp.array2d(dtype=vec3)
    gear_impulse: wp.array2d(dtype=real)
    W_ll: wp.array2d(dtype=mat33)
    W_la: wp.array2d(dtype=mat33)
    W_aa: wp.array2d(dtype=mat33)
    drive_force: wp.array2d(dtype=vec3)  # impulse of the forces applied on free axes
    drive_torque: wp.array2d(dtype=vec3)
    gap_linear: wp.array2d(dtype=vec3)
    gap_angular: wp.array2d(dtype=vec3)
    gear_row: wp.array3d(dtype=vec3)  # [gear, 8: (linear, angular) of child a, parent a, child b, parent b, world]
    gear_W: wp.array2d(dtype=real)
    gear_gap: wp.array2d(dtype=real)
    gear_start: wp.array2d(dtype=real)
    iterations: wp.array(dtype=wp.int32)
    residual: wp.array(dtype=real)


# ---- 1. external forces ----------------------------------------------------------------------------------------------


@wp.kernel(module="sharnir.impulse")
def predict(bodies: BodyTable, settings: Settings, control: Control, state: State, first: int, work: Work):
    """V ← V + M⁻¹ Fᵉ Δt; the gyroscopic moment is in ω = I⁻¹(q) L."""
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
    control.force_once[b, w] = vec3(real(0.0))
    control.torque_once[b, w] = vec3(real(0.0))
    work.inv_inertia[b, w] = J
    work.twist.linear[b, w] = v
    work.twist.angular[b, w] = omega
    work.spin_start[b, w] = omega


# ---- 2. joints: frames, blocks, warm start -----------------------------------------------------------------------------


@wp.kernel(module="sharnir.impulse")
def prepare(
    bodies: BodyTable, joints: JointTable, settings: Settings, control: Control, state: State, first: int, work: Work
):
    """The block W of every joint, last step's impulse on the axes of today, the impulse of forces on free axes."""
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

    force = vec3(real(0.0))
    torque = vec3(real(0.0))
    for j in range(joints.v_size[k]):
        d, n = free_axis(joints, k, j, pose)
        f = control.joint_force[joints.v_start[k] + j, w] * settings.dt[0]
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
def prepare_gears(bodies: BodyTable, joints: JointTable, gears: GearTable, state: State, first: int, work: Work):
    """The row of a gear, B_a − ratio · B_b, on its four bodies, and 1 / (J M⁻¹ Jᵀ); two of the bodies may be one."""
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
                m = m + wp.dot(
                    work.gear_row[g, 2 * i + 1, w], work.inv_inertia[a, w] * work.gear_row[g, 2 * h + 1, w]
                )
    work.gear_W[g, w] = real(1.0) / m
    work.gear_impulse[g, w] = state.gear_impulse[g, w]


@wp.kernel(module="sharnir.impulse")
def warm_start(bodies: BodyTable, joints: JointTable, gears: GearTable, first: int, work: Work):
    """Apply last step's impulses (temporal coherence) and the forces on free axes."""
    w = first + wp.tid()
    for k in range(joints.count):
        p = joints.parent[k]
        c = joints.child[k]
        f = work.joint_force[k, w] + work.drive_force[k, w]
        l = work.joint_torque[k, w] + work.drive_torque[k, w]
        apply_impulse(
            work.twist, c, w, f, l, work.r_child[k, w], bodies.inv_mass[c], work.inv_inertia[c, w], real(1.0)
        )
        apply_impulse(
            work.twist, p, w, f, l, work.r_parent[k, w], bodies.inv_mass[p], work.inv_inertia[p, w], real(-1.0)
        )
    for g in range(gears.count):
        apply_gear(bodies, joints, gears, g, w, work.gear_impulse[g, w], work, work.twist)


# ---- 3. and 4. sequential impulses: one sweep serves velocities and pseudo-velocities -----------------------------------


@wp.func
def solve_joint(bodies: BodyTable, joints: JointTable, k: int, w: int, work: Work, twists: Twists, bias_l: vec3, bias_a: vec3):
    """ΔP = −W (u + bias) of one joint, applied to both bodies."""
    p = joints.parent[k]
    c = joints.child[k]
    r_p = work.r_parent[k, w]
    r_c = work.r_child[k, w]
    w_p = twists.angular[p, w]
    w_c = twists.angular[c, w]
    u = twists.linear[c, w] + wp.cross(w_c, r_c) - twists.linear[p, w] - wp.cross(w_p, r_p) + bias_l
    J_p = work.inv_inertia[p, w]
    J_c = work.inv_inertia[c, w]
    force = vec3(real(0.0))
    torque = vec3(real(0.0))
    if joints.free[k] >> 3 == 7:  # no rotation row: the angular blocks of W are zero
        force = -(work.W_ll[k, w] * u)
    else:
        v = w_c - w_p + bias_a
        B = work.W_la[k, w]
        force = -(work.W_ll[k, w] * u + B * v)
        torque = -(u * B + work.W_aa[k, w] * v)
    twists.linear[p, w] = twists.linear[p, w] - force * bodies.inv_mass[p]
    twists.angular[p, w] = w_p - J_p * (wp.cross(r_p, force) + torque)
    twists.linear[c, w] = twists.linear[c, w] + force * bodies.inv_mass[c]
    twists.angular[c, w] = w_c + J_c * (wp.cross(r_c, force) + torque)
    return force, torque


@wp.func
def apply_gear(bodies: BodyTable, joints: JointTable, gears: GearTable, g: int, w: int, impulse: real, work: Work, twists: Twists):
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
def solve_gear(bodies: BodyTable, joints: JointTable, gears: GearTable, g: int, w: int, work: Work, twists: Twists, bias: real) -> real:
    """Δp = −(J V + bias) / (J M⁻¹ Jᵀ) of one gear, applied to its bodies."""
    u = bias
    for i in range(4):
        b = gear_body(joints, gears, g, i)
        u = u + wp.dot(work.gear_row[g, 2 * i, w], twists.linear[b, w])
        u = u + wp.dot(work.gear_row[g, 2 * i + 1, w], twists.angular[b, w])
    impulse = -work.gear_W[g, w] * u
    apply_gear(bodies, joints, gears, g, w, impulse, work, twists)
    return impulse


@wp.func
def largest(a: vec3, b: vec3) -> real:
    return wp.max(wp.max(wp.abs(a)), wp.max(wp.abs(b)))


@wp.kernel(module="sharnir.impulse")
def solve_velocities(bodies: BodyTable, joints: JointTable, gears: GearTable, settings: Settings, first: int, work: Work):
    """Sweep over the joints, forth and back in turn, until every |ΔP| ≤ ε or the iteration cap."""
    w = first + wp.tid()
    zero = vec3(real(0.0))
    cap = settings.iterations[0]
    done = int(0)
    residual = real(0.0)
    for it in range(cap):
        residual = real(0.0)
        for j in range(joints.count):
            k = j
            if it % 2 == 1:
                k = joints.count - 1 - j
            if joints.free[k] != 63:
                force, torque = solve_joint(bodies, joints, k, w, work, work.twist, zero, zero)
                work.joint_force[k, w] = work.joint_force[k, w] + force
                work.joint_torque[k, w] = work.joint_torque[k, w] + torque
                residual = wp.max(residual, largest(force, torque))
        for g in range(gears.count):
            impulse = solve_gear(bodies, joints, gears, g, w, work, work.twist, real(0.0))
            work.gear_impulse[g, w] = work.gear_impulse[g, w] + impulse
            residual = wp.max(residual, wp.abs(impulse))
        done = it + 1
        if residual <= settings.tolerance[0]:
            break
    work.iterations[w] = done
    work.residual[w] = residual


@wp.kernel(module="sharnir.impulse")
def solve_positions(bodies: BodyTable, joints: JointTable, gears: GearTable, settings: Settings, first: int, work: Work):
    """Split impulses: the same sweep on V*, from 0, towards −ERP·G/Δt; V* moves positions, never velocities."""
    w = first + wp.tid()
    rate = settings.erp[0] / settings.dt[0]
    for b in range(bodies.count):
        work.pseudo.linear[b, w] = vec3(real(0.0))
        work.pseudo.angular[b, w] = vec3(real(0.0))
    for it in range(settings.position_iterations[0]):
        for j in range(joints.count):
            k = j
            if it % 2 == 1:
                k = joints.count - 1 - j
            if joints.free[k] != 63:
                solve_joint(
                    bodies, joints, k, w, work, work.pseudo, work.gap_linear[k, w] * rate, work.gap_angular[k, w] * rate
                )
        for g in range(gears.count):
            solve_gear(bodies, joints, gears, g, w, work, work.pseudo, work.gear_gap[g, w] * rate)


# ---- 5. positions ------------------------------------------------------------------------------------------------------


@wp.kernel(module="sharnir.impulse")
def advance(bodies: BodyTable, settings: Settings, state: State, first: int, work: Work):
    """X ← X ⊕ Δt V. L takes the impulses that ω took; the rotation keeps L and its energy (`advance_rotation`)."""
    b, i = wp.tid()
    w = first + i
    dt = settings.dt[0]
    omega = work.twist.angular[b, w]
    q = state.rotation[b, w]
    work.position[b, w] = state.position[b, w] + work.twist.linear[b, w] * dt
    if bodies.motion[b] == DYNAMIC:
        I = rotated(wp.quat_to_matrix(q), bodies.inertia[b])
        L = work.momentum[b, w] + I * (omega - work.spin_start[b, w])
        work.momentum[b, w] = L
        q = advance_rotation(q, L, bodies.inertia[b], bodies.inv_inertia[b], dt)
    elif bodies.motion[b] == KINEMATIC:
        q = turned(q, omega * dt)
    work.rotation[b, w] = q


@wp.kernel(module="sharnir.impulse")
def measure_gaps(joints: JointTable, first: int, work: Work):
    """G of every joint at the new pose: what this step's straight motion opened is closed in this step."""
    k, i = wp.tid()
    w = first + i
    linear, angular = joint_gap(joints, k, pose_at(joints, k, w, work.position, work.rotation))
    work.gap_linear[k, w] = linear
    work.gap_angular[k, w] = angular


@wp.func
def axis_value(joints: JointTable, k: int, i: int, w: int, q: wp.array2d(dtype=real)) -> real:
    return q[joints.q_start[k] + i, w]


@wp.kernel(module="sharnir.impulse")
def measure_gears(joints: JointTable, gears: GearTable, settings: Settings, first: int, state: State, work: Work):
    """q_a − ratio · q_b against its value at the start, at the new pose (the last one advanced by the speeds of the row)."""
    g, j = wp.tid()
    w = first + j
    u = real(0.0)
    for i in range(4):
        b = gear_body(joints, gears, g, i)
        u = u + wp.dot(work.gear_row[g, 2 * i, w], work.twist.linear[b, w])
        u = u + wp.dot(work.gear_row[g, 2 * i + 1, w], work.twist.angular[b, w])
    a = axis_value(joints, gears.joint_a[g], gears.axis_a[g], w, state.q)
    c = axis_value(joints, gears.joint_b[g], gears.axis_b[g], w, state.q)
    work.gear_gap[g, w] = a - gears.ratio[g] * c - work.gear_start[g, w] + u * settings.dt[0]


@wp.kernel(module="sharnir.impulse")
def commit(bodies: BodyTable, joints: JointTable, gears: GearTable, settings: Settings, first: int, work: Work, state: State):
    """Add Δt V*, and make the new state the state, unless a number in it is not finite: then nothing changes."""
    w = first + wp.tid()
    if state.failed[w] != 0:
        return
    dt = settings.dt[0]
    for b in range(bodies.count):
        x = work.position[b, w] + work.pseudo.linear[b, w] * dt
        q = work.rotation[b, w]
        if wp.length_sq(work.pseudo.angular[b, w]) > real(0.0):
            q = turned(q, work.pseudo.angular[b, w] * dt)
        work.position[b, w] = x
        work.rotation[b, w] = q
        v = work.twist.linear[b, w]
        L = work.momentum[b, w]
        size = wp.dot(x, x) + wp.dot(v, v) + wp.dot(L, L) + wp.dot(q, q)
        if not wp.isfinite(size) and state.failed[w] == 0:
            state.failed[w] = b + 1
    if state.failed[w] != 0:
        return
    for b in range(bodies.count):
        v = work.twist.linear[b, w]
        q = work.rotation[b, w]
        state.acceleration[b, w] = (v - state.velocity[b, w]) / dt
        state.position[b, w] = work.position[b, w]
        state.rotation[b, w] = q
        state.velocity[b, w] = v
        if bodies.motion[b] == DYNAMIC:
            L = work.momentum[b, w]
            state.momentum[b, w] = L
            state.spin[b, w] = wp.quat_rotate(q, bodies.inv_inertia[b] * wp.quat_rotate_inv(q, L))
    for k in range(joints.count):
        state.joint_force[k, w] = work.joint_force[k, w]
        state.joint_torque[k, w] = work.joint_torque[k, w]
    for g in range(gears.count):
        state.gear_impulse[g, w] = work.gear_impulse[g, w]
    state.time[w] = state.time[w] + wp.float64(dt)
