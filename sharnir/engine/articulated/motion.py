"""Pose, free directions and velocity of a link from its joint coordinates."""

import warp as wp

from sharnir.core.spatial import kept_unit, matrix
from sharnir.core.types import mat33, quat, real, vec3
from sharnir.engine.articulated.data import TreeTable, TreeWork, natural
from sharnir.model.joint_geometry import free_axis, joint_pose, joint_transform
from sharnir.model.joint_types import JointTable

# ---- outwards: pose, S, a′ ----------------------------------------------------------------------------------------------


@wp.func
def link_pose(
    t: JointTable, tree: TreeTable, i: int, w: int, q: wp.array2d(dtype=real),
    position: wp.array2d(dtype=vec3), rotation: wp.array2d(dtype=quat),
) -> vec3:  # fmt: skip
    """Pose of a link from its base's pose and the joint's coordinates; returns the common point."""
    j = tree.joint[i]
    b = tree.base[i]
    offset, turn = joint_transform(t, j, w, q)
    x_b = position[b, w]
    R_b = rotation[b, w]
    if tree.sign[i] > 0:
        frame = R_b * t.parent_frame[j, w]
        R = kept_unit(frame * turn * wp.quat_inverse(t.child_frame[j, w]))
        point = x_b + wp.quat_rotate(R_b, t.parent_point[j, w]) + wp.quat_rotate(frame, offset)
        rotation[tree.body[i], w] = R
        position[tree.body[i], w] = point - wp.quat_rotate(R, t.child_point[j, w])
        return point
    point = x_b + wp.quat_rotate(R_b, t.child_point[j, w])
    frame = R_b * t.child_frame[j, w] * wp.quat_inverse(turn)
    R = kept_unit(frame * wp.quat_inverse(t.parent_frame[j, w]))
    rotation[tree.body[i], w] = R
    position[tree.body[i], w] = point - wp.quat_rotate(frame, offset) - wp.quat_rotate(R, t.parent_point[j, w])
    return point


@wp.func
def any_motion(
    t: JointTable, tree: TreeTable, i: int, w: int, q: wp.array2d(dtype=real), qd: wp.array2d(dtype=real), k: TreeWork
) -> None:
    """Pose, spin, S and a′ of a link with any joint.

    With d, n the axes of the joint, u = Σ d q̇ and Σ n q̇ the child's motion relative to the parent at the common point P:
    a_child(P) = a_parent(P) + 2 ω_parent × u + Σ d q̈,   ω̇_child = ω̇_parent + Σ n q̈ + Σ ṅ q̇.
    """
    j = tree.joint[i]
    body = tree.body[i]
    base = tree.base[i]
    sign = real(tree.sign[i])
    point = link_pose(t, tree, i, w, q, k.position, k.rotation)
    parent = base
    child = body
    if tree.sign[i] < 0:
        parent = body
        child = base
    pose = joint_pose(t, j, w, k.position[parent, w], k.rotation[parent, w], k.position[child, w], k.rotation[child, w])
    n_axes = t.v_size[j]
    v0 = t.v_start[j]
    x = k.position[body, w]
    out = x - point
    r = point - k.position[base, w]
    u = vec3(real(0.0))
    rel = vec3(real(0.0))
    for a in range(n_axes):
        d, n = free_axis(t, j, a, pose)
        k.S_l[v0 + a, w] = (d + wp.cross(n, out)) * sign
        k.S_a[v0 + a, w] = n * sign
        u = u + d * qd[v0 + a, w]
        rel = rel + n * qd[v0 + a, w]
    w_b = k.spin[base, w]
    w_i = w_b + rel * sign
    w_parent = w_b
    w_child = w_i
    if tree.sign[i] < 0:
        w_parent = w_i
        w_child = w_b
    turning = vec3(real(0.0))  # Σ ṅ q̇: axes are carried by the parent, a universal joint's second by the child
    for a in range(n_axes):
        slot = t.slot[a, j]
        if slot > 2:
            _d, n = free_axis(t, j, a, pose)
            carrier = w_parent
            if t.turns[j] == 2 and slot - 3 == t.second[j]:
                carrier = w_child
            turning = turning + wp.cross(carrier, n) * qd[v0 + a, w]
    k.arm[i, w] = x - k.position[base, w]
    k.spin[body, w] = w_i
    bias_a = turning * sign
    k.bias_a[i, w] = bias_a
    coriolis = wp.cross(w_parent, u) * (real(2.0) * sign)
    k.bias_l[i, w] = wp.cross(w_b, wp.cross(w_b, r)) + coriolis + wp.cross(bias_a, out) + wp.cross(w_i, wp.cross(w_i, out))


@wp.func
def hinge_motion(
    tree: TreeTable, i: int, w: int, angle: real, speed: real, k: TreeWork, x_b: vec3, R_b: quat, M_b: mat33, w_b: vec3
) -> tuple[vec3, quat, mat33, vec3]:  # fmt: skip
    """Pose, motion and bias of a link on one hinge, whichever way that points, from its base's.

    Takes and returns position, rotation, its matrix and spin.
    """
    half = real(0.5) * angle
    R = R_b * (tree.place[i, w].turn * wp.cos(half) + tree.place[i, w].turn_axis * wp.sin(half))
    R = R * (real(1.5) - real(0.5) * wp.dot(R, R))
    M = matrix(R)
    r = M_b * tree.place[i, w].base_point
    out = -(M * tree.place[i, w].own_point)
    n = M * tree.place[i, w].axis
    arm = r + out
    x = x_b + arm
    spin = w_b + n * speed
    turning = wp.cross(w_b, n) * speed
    body = natural(tree.row[i].body)
    v0 = natural(tree.row[i].v_start)
    k.rotation[body, w] = R
    k.position[body, w] = x
    k.spin[body, w] = spin
    k.arm[i, w] = arm
    k.S_l[v0, w] = wp.cross(n, out)
    k.S_a[v0, w] = n
    k.bias_a[i, w] = turning
    k.bias_l[i, w] = wp.cross(w_b, wp.cross(w_b, r)) + wp.cross(turning, out) + wp.cross(spin, wp.cross(spin, out))
    return x, R, M, spin


@wp.func
def link_motion(
    t: JointTable, tree: TreeTable, i: int, w: int, q: wp.array2d(dtype=real), qd: wp.array2d(dtype=real), k: TreeWork
) -> None:
    """Pose, spin, S and a′ of a link from its base's."""
    i = natural(i)
    w = natural(w)
    if tree.row[i].hinge == 1:
        base = natural(tree.row[i].base)
        R = k.rotation[base, w]
        angle = q[natural(tree.row[i].q_start), w]
        speed = qd[natural(tree.row[i].v_start), w]
        hinge_motion(tree, i, w, angle, speed, k, k.position[base, w], R, matrix(R), k.spin[base, w])
    else:
        any_motion(t, tree, i, w, q, qd, k)


@wp.func
def link_velocity(t: JointTable, tree: TreeTable, i: int, w: int, qd: wp.array2d(dtype=real), k: TreeWork) -> None:
    """V = C V_base + S q̇, into `velocity` and `omega`."""
    j = tree.joint[i]
    base = tree.base[i]
    omega = k.omega[base, w]
    v = k.velocity[base, w] + wp.cross(omega, k.arm[i, w])
    for a in range(t.v_start[j], t.v_start[j] + t.v_size[j]):
        v = v + k.S_l[a, w] * qd[a, w]
        omega = omega + k.S_a[a, w] * qd[a, w]
    k.velocity[tree.body[i], w] = v
    k.omega[tree.body[i], w] = omega
