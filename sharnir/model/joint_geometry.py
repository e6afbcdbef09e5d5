"""Where a joint stands: its frames, axes, gaps, coordinates and limits, for every mask of free axes."""

import warp as wp

from sharnir.core.spatial import exp_quat, kept_unit, log_quat
from sharnir.core.types import mat33, quat, real, vec3
from sharnir.model.joint_types import JointTable


@wp.struct
class JointPose:
    """Where a joint is: both anchors (world, m), both bodies' rotations, and in which of the worlds."""

    parent_anchor: vec3
    child_anchor: vec3
    parent: quat
    child: quat
    world: wp.int32


@wp.func
def joint_pose(t: JointTable, k: int, w: int, x_parent: vec3, q_parent: quat, x_child: vec3, q_child: quat) -> JointPose:
    pose = JointPose()
    pose.parent_anchor = x_parent + wp.quat_rotate(q_parent, t.parent_point[k, w])
    pose.child_anchor = x_child + wp.quat_rotate(q_child, t.child_point[k, w])
    pose.parent = q_parent
    pose.child = q_child
    pose.world = w
    return pose


@wp.func
def breaks(t: JointTable, k: int, force: vec3, torque: vec3, dt: real) -> bool:
    """Whether a joint does not stand the impulses of a step."""
    return wp.length(force) > t.break_force[k] * dt or wp.length(torque) > t.break_torque[k] * dt


@wp.func
def parent_frame(t: JointTable, k: int, pose: JointPose) -> quat:
    """The joint frame on the parent, in world axes."""
    return pose.parent * t.parent_frame[k, pose.world]


@wp.func
def child_frame(t: JointTable, k: int, pose: JointPose) -> quat:
    """The joint frame on the child, in world axes."""
    return pose.child * t.child_frame[k, pose.world]


@wp.func
def unit_axis(i: int) -> vec3:
    e = vec3(real(0.0))
    e[i] = real(1.0)
    return e


@wp.func
def third_axis(t: JointTable, k: int) -> tuple[int, real]:
    """The constrained rotation c of a joint with two free ones, and +1 where (a, b, c) is right-handed, else −1."""
    a = t.first[k]
    b = t.second[k]
    sign = real(-1.0)
    if (b - a + 3) % 3 == 1:
        sign = real(1.0)
    return 3 - a - b, sign


@wp.func
def frame_from_x(n: vec3) -> mat33:
    """Some orthonormal axes (columns) whose first is the unit vector n."""
    e = vec3(real(1.0), real(0.0), real(0.0))
    if wp.abs(n[0]) > real(0.7):
        e = vec3(real(0.0), real(1.0), real(0.0))
    u = wp.normalize(wp.cross(n, e))
    return wp.matrix_from_cols(n, u, wp.cross(n, u))


@wp.func
def linear_axes(t: JointTable, k: int, pose: JointPose) -> mat33:
    """World directions (columns) of the slots x y z; x of a rod is its line."""
    if t.rod[k] > real(0.0):
        return frame_from_x(wp.normalize(pose.child_anchor - pose.parent_anchor))
    return wp.quat_to_matrix(parent_frame(t, k, pose))


@wp.func
def angular_axes(t: JointTable, k: int, pose: JointPose) -> mat33:
    """World directions (columns) of the slots rx ry rz; with two free rotations the constrained one is n₁ × n₂."""
    F = wp.quat_to_matrix(parent_frame(t, k, pose))
    if t.turns[k] == 2:
        a = t.first[k]
        b = t.second[k]
        c, sign = third_axis(t, k)
        n1 = wp.quat_rotate(parent_frame(t, k, pose), unit_axis(a))
        n2 = wp.quat_rotate(child_frame(t, k, pose), unit_axis(b))
        n3 = wp.normalize(wp.cross(n1, n2)) * sign
        n2 = wp.cross(n3, n1) * sign
        for i in range(3):
            F[i, a] = n1[i]
            F[i, b] = n2[i]
            F[i, c] = n3[i]
    return F


@wp.func
def masked(F: mat33, free: int, g: vec3) -> vec3:
    """The part of a world vector along the constrained columns of F (bits 0..2 of `free` are the free ones)."""
    out = vec3(real(0.0))
    for i in range(3):
        if free & (1 << i) == 0:
            d = vec3(F[0, i], F[1, i], F[2, i])
            out = out + d * wp.dot(d, g)
    return out


@wp.func
def joint_gap(t: JointTable, k: int, pose: JointPose) -> tuple[vec3, vec3]:
    """G: how far the child is displaced (m) and turned (rad) along the constrained axes, as two world vectors.

    The derivative of G along each constrained axis is the joint's row while the gap is small.
    """
    free = t.free[k]
    linear = pose.child_anchor - pose.parent_anchor
    angular = vec3(real(0.0))
    if t.rod[k] > real(0.0):
        distance = wp.length(linear)
        linear = linear * ((distance - t.rod[k]) / distance)
    elif free & 7 != 0:
        linear = masked(wp.quat_to_matrix(parent_frame(t, k, pose)), free, linear)
    turns = t.turns[k]
    if turns == 0:
        angular = log_quat(child_frame(t, k, pose) * wp.quat_inverse(parent_frame(t, k, pose)))
    elif turns == 1:
        n_parent = wp.quat_rotate(parent_frame(t, k, pose), unit_axis(t.first[k]))
        n_child = wp.quat_rotate(child_frame(t, k, pose), unit_axis(t.first[k]))
        angular = wp.cross(n_parent, n_child)
        s = wp.length(angular)
        if s > real(1.0e-9):
            angular = angular * (wp.atan2(s, wp.dot(n_parent, n_child)) / s)
    elif turns == 2:
        n1 = wp.quat_rotate(parent_frame(t, k, pose), unit_axis(t.first[k]))
        n2 = wp.quat_rotate(child_frame(t, k, pose), unit_axis(t.second[k]))
        n3 = wp.cross(n1, n2)
        s = wp.length(n3)
        angular = n3 * (-wp.atan2(wp.dot(n1, n2), s) / wp.max(s, real(1.0e-9)))
    return linear, angular


@wp.func
def joint_curvature(
    t: JointTable,
    k: int,
    pose: JointPose,
    w_parent: vec3,
    w_child: vec3,
    a_parent: vec3,
    a_child: vec3,
    r_parent: vec3,
    r_child: vec3,
    u: vec3,
) -> tuple[vec3, vec3]:
    """γ = G̈ less the part J V̇ of the unknown accelerations, as two world vectors (m/s², rad/s²).

    a are angular accelerations known beforehand (gyroscopic), r the arms of the common point, u its relative velocity.
    Translations, axes on the parent:  γ = c(child) − c(parent) − 2 ω_p × u,   c = a × r + ω × (ω × r).
    One free rotation, rows e on the parent: ė·ω_rel = e·(ω_rel × ω_p).   Two: the row n₁ × n₂ turns with both bodies.
    """
    rel = w_child - w_parent
    c_child = wp.cross(a_child, r_child) + wp.cross(w_child, wp.cross(w_child, r_child))
    c_parent = wp.cross(a_parent, r_parent) + wp.cross(w_parent, wp.cross(w_parent, r_parent))
    linear = c_child - c_parent - real(2.0) * wp.cross(w_parent, u)
    angular = vec3(real(0.0))
    if t.rod[k] > real(0.0):
        # G = |s| − length: n·s̈ + |ṡ across n|² / |s|, taken at the parent's own anchor
        s = pose.child_anchor - pose.parent_anchor
        rate = u + wp.cross(w_parent, s)
        arm = r_parent - s
        n = s / wp.length(s)
        across = rate - n * wp.dot(n, rate)
        c_parent = wp.cross(a_parent, arm) + wp.cross(w_parent, wp.cross(w_parent, arm))
        linear = n * (wp.dot(n, c_child - c_parent) + wp.dot(across, across) / wp.length(s))
    if t.turns[k] < 2:
        angular = a_child - a_parent + wp.cross(rel, w_parent)
    elif t.turns[k] == 2:
        n1 = wp.quat_rotate(parent_frame(t, k, pose), unit_axis(t.first[k]))
        n2 = wp.quat_rotate(child_frame(t, k, pose), unit_axis(t.second[k]))
        rate = wp.cross(wp.cross(w_parent, n1), n2) + wp.cross(n1, wp.cross(w_child, n2))
        c = wp.cross(n1, n2)
        angular = c * ((wp.dot(rate, rel) + wp.dot(c, a_child - a_parent)) / wp.length_sq(c))
    return linear, angular


@wp.func
def free_axis(t: JointTable, k: int, i: int, pose: JointPose) -> tuple[vec3, vec3]:
    """Row B of the i-th speed at the child's anchor, as (d, n): speed = d·(relative velocity) + n·(relative spin)."""
    slot = t.slot[i, k]
    frame = parent_frame(t, k, pose)
    if slot < 3:
        return wp.quat_rotate(frame, unit_axis(slot)), vec3(real(0.0))
    # a universal joint's second axis is the child's; its two axes are perpendicular, hence their own duals
    if t.turns[k] == 2 and slot - 3 == t.second[k]:
        frame = child_frame(t, k, pose)
    return vec3(real(0.0)), wp.quat_rotate(frame, unit_axis(slot - 3))


@wp.func
def nearest_turn(angle: real, last: real) -> real:
    """`angle` plus the multiple of 2π that brings it next to `last`."""
    two_pi = real(6.283185307179586)
    return angle + two_pi * wp.round((last - angle) / two_pi)


@wp.func
def joint_angles(t: JointTable, k: int, pose: JointPose) -> tuple[real, real]:
    """The one or two angles of a joint with as many free rotations, each within a turn of 0."""
    a = t.first[k]
    if t.turns[k] == 1:
        p = wp.quat_inverse(parent_frame(t, k, pose)) * child_frame(t, k, pose)
        return real(2.0) * wp.atan2(p[a], p[3]), real(0.0)
    b = t.second[k]
    c, sign = third_axis(t, k)
    b_child = wp.quat_rotate(child_frame(t, k, pose), unit_axis(b))
    c_parent = wp.quat_rotate(parent_frame(t, k, pose), unit_axis(c))
    b_parent = wp.quat_rotate(parent_frame(t, k, pose), unit_axis(b))
    a_parent = wp.quat_rotate(parent_frame(t, k, pose), unit_axis(a))
    c_child = wp.quat_rotate(child_frame(t, k, pose), unit_axis(c))
    a_child = wp.quat_rotate(child_frame(t, k, pose), unit_axis(a))
    alpha = wp.atan2(sign * wp.dot(b_child, c_parent), wp.dot(b_child, b_parent))
    beta = wp.atan2(sign * wp.dot(a_parent, c_child), wp.dot(a_parent, a_child))
    return alpha, beta


@wp.func
def coordinate(t: JointTable, k: int, i: int, pose: JointPose, near: real) -> real:
    """The i-th coordinate, a translation or an angle, at a pose; of an angle, the turn next to the value `near`."""
    moves = t.v_size[k] - t.turns[k]
    if i < moves:
        return wp.quat_rotate_inv(parent_frame(t, k, pose), pose.child_anchor - pose.parent_anchor)[t.slot[i, k]]
    alpha, beta = joint_angles(t, k, pose)
    if i > moves:
        alpha = beta
    return nearest_turn(alpha, near)


@wp.func
def read_angles(t: JointTable, k: int, w: int, pose: JointPose, q: wp.array2d(dtype=real)) -> None:
    """Write a joint's angles behind its translations in q, each on the turn nearest to the value that stands there."""
    for i in range(t.v_size[k] - t.turns[k], t.v_size[k]):
        q[t.q_start[k] + i, w] = coordinate(t, k, i, pose, q[t.q_start[k] + i, w])


@wp.func
def read_coordinates(t: JointTable, k: int, w: int, pose: JointPose, q: wp.array2d(dtype=real)) -> None:
    """Write all coordinates of a joint: translations, then angles or a quaternion."""
    if t.v_size[k] == 0:
        return
    moves = t.v_size[k] - t.turns[k]
    for i in range(moves):
        q[t.q_start[k] + i, w] = coordinate(t, k, i, pose, real(0.0))
    if t.turns[k] == 1 or t.turns[k] == 2:
        read_angles(t, k, w, pose, q)
    elif t.turns[k] == 3:
        p = wp.quat_inverse(parent_frame(t, k, pose)) * child_frame(t, k, pose)
        for i in range(4):
            q[t.q_start[k] + moves + i, w] = p[i]


@wp.func
def ball_pull(turn: quat, rest: vec3, stiffness: vec3) -> vec3:
    """Gradient of ½ Σ k φ² along the speeds of a ball joint, φ the rotation vector from its rest to where it is, parent frame.

    φ̇ = J⁻¹ ω, so the gradient is J⁻ᵀ K φ, J⁻ᵀ = E + ½[φ]× + c[φ]×², c = (1 − (θ/2) cot(θ/2))/θ².
    """
    phi = log_quat(turn * wp.quat_inverse(exp_quat(rest)))
    f = wp.cw_mul(stiffness, phi)
    x2 = wp.dot(phi, phi)
    c = real(1.0 / 12.0)
    if x2 > real(1.0e-6):
        half = real(0.5) * wp.sqrt(x2)
        c = (real(1.0) - half * wp.cos(half) / wp.sin(half)) / x2
    once = wp.cross(phi, f)
    return f + real(0.5) * once + c * wp.cross(phi, once)


@wp.func
def cardan_limits(R: mat33) -> tuple[vec3, mat33]:
    """Angles of R = R(x, α) R(y, β) R(z, γ), and as columns the rows of their rates: α̇ = a·ω with the dual axes, parent frame."""
    alpha = wp.atan2(-R[1, 2], R[2, 2])
    beta = wp.asin(wp.clamp(R[0, 2], real(-1.0), real(1.0)))
    gamma = wp.atan2(-R[0, 1], R[0, 0])
    # the axes of the three rates: x of the parent, y after α, z of the child; their duals give the rates
    x = vec3(real(1.0), real(0.0), real(0.0))
    y = vec3(real(0.0), wp.cos(alpha), wp.sin(alpha))
    z = vec3(R[0, 2], R[1, 2], R[2, 2])
    volume = wp.dot(x, wp.cross(y, z))
    if wp.abs(volume) < real(1.0e-3):
        volume = real(1.0e-3)
    rows = wp.matrix_from_cols(wp.cross(y, z) / volume, wp.cross(z, x) / volume, wp.cross(x, y) / volume)
    return vec3(alpha, beta, gamma), rows


@wp.func
def swing_twist_limits(p: quat, a: real, b: real) -> tuple[vec3, mat33]:
    """Room left in the elliptic cone (rad) and the twist, and as columns their rows in the parent frame; p is child in parent.

    The child's z is at θ from the parent's, turned about ŝ = (cos ψ, sin ψ, 0). The cone is θ h(ψ) ≤ 1, h² = cos²ψ/a² + sin²ψ/b²;
    θ̇ = ω·ŝ, sin θ ψ̇ = ω·(z_c × ŝ); the twist's rate is ω·(z_p + z_c)/(1 + cos θ).
    """
    R = wp.quat_to_matrix(p)
    z = vec3(R[0, 2], R[1, 2], R[2, 2])
    sine = wp.sqrt(z[0] * z[0] + z[1] * z[1])
    theta = wp.atan2(sine, z[2])
    s = vec3(real(1.0), real(0.0), real(0.0))
    if sine > real(1.0e-9):
        s = vec3(-z[1] / sine, z[0] / sine, real(0.0))
    h = wp.sqrt(s[0] * s[0] / (a * a) + s[1] * s[1] / (b * b))
    slope = s[0] * s[1] * (real(1.0) / (b * b) - real(1.0) / (a * a)) / h
    room = real(1.0) / h - theta
    swing = -s - wp.cross(z, s) * (theta * slope / (h * wp.max(sine, real(0.05))))
    up = vec3(real(0.0), real(0.0), real(1.0))
    twist = real(2.0) * wp.atan2(p[2], p[3])
    if twist > real(3.141592653589793):
        twist = twist - real(6.283185307179586)
    if twist < real(-3.141592653589793):
        twist = twist + real(6.283185307179586)
    rows = wp.matrix_from_cols(swing, vec3(real(0.0)), (up + z) / wp.max(real(1.0) + z[2], real(1.0e-3)))
    return vec3(room, real(0.0), twist), rows


@wp.func
def joint_transform(t: JointTable, k: int, w: int, q: wp.array2d(dtype=real)) -> tuple[vec3, quat]:
    """The child's joint frame seen from the parent's, from the coordinates: (offset, rotation)."""
    moves = t.v_size[k] - t.turns[k]
    offset = vec3(real(0.0))
    for i in range(moves):
        offset[t.slot[i, k]] = q[t.q_start[k] + i, w]
    turn = quat(real(0.0), real(0.0), real(0.0), real(1.0))
    at = t.q_start[k] + moves
    if t.turns[k] == 3:
        turn = kept_unit(quat(q[at, w], q[at + 1, w], q[at + 2, w], q[at + 3, w]))
    elif t.turns[k] > 0:
        turn = exp_quat(unit_axis(t.first[k]) * q[at, w])
        if t.turns[k] == 2:
            turn = turn * exp_quat(unit_axis(t.second[k]) * q[at + 1, w])
    return offset, turn
