"""The method of separate bodies: recursions along a tree of joints, nothing larger than 6 × 6 (theory: separate bodies).

A link is a body and the joint by which it hangs on its base, ground or another link; links are numbered from the bases
outwards. Of a link with speeds q̇ (twists at centres of mass, world axes, C the shift from the base's centre to the link's):

    V = C V_base + S q̇,      a = C a_base + S q̈ + a′,      a′ what the speeds alone contribute.

A joint may point either way: where the link is the joint's parent, S and a′ change sign with the joint's motion (`sign` −1).
"""

import warp as wp

from sharnir.joints import JointTable, free_axis, joint_pose, joint_transform
from sharnir.model import BodyTable
from sharnir.spatial import rotated
from sharnir.types import mat33, mat66, quat, real, vec3, vec6


@wp.struct
class TreeTable:
    """Links in order: the joint, the body, the body it hangs on, that body's link (−1: ground), the joint's sense."""

    count: wp.int32
    joint: wp.array(dtype=wp.int32)
    body: wp.array(dtype=wp.int32)
    base: wp.array(dtype=wp.int32)
    base_link: wp.array(dtype=wp.int32)
    sign: wp.array(dtype=wp.int32)


@wp.struct
class TreeWork:
    """Scratch of the recursions, [item, world]; body arrays also hold the ground, at rest unless it is made to move."""

    position: wp.array2d(dtype=vec3)  # [body, world] centre of mass
    rotation: wp.array2d(dtype=quat)
    velocity: wp.array2d(dtype=vec3)
    spin: wp.array2d(dtype=vec3)
    acceleration: wp.array2d(dtype=vec3)
    turning: wp.array2d(dtype=vec3)  # [body, world] angular acceleration
    S_l: wp.array2d(dtype=vec3)  # [speed, world] columns of S
    S_a: wp.array2d(dtype=vec3)
    bias_l: wp.array2d(dtype=vec3)  # [link, world] a′
    bias_a: wp.array2d(dtype=vec3)
    arm: wp.array2d(dtype=vec3)  # [link, world] from the base's centre of mass to the link's
    anchor: wp.array2d(dtype=vec3)  # [link, world] the joint's common point
    A: wp.array2d(dtype=mat33)  # [link, world] articulated or composite inertia: [A B; Bᵀ D]
    B: wp.array2d(dtype=mat33)
    D: wp.array2d(dtype=mat33)
    Q_l: wp.array2d(dtype=vec3)  # [link, world] force and moment
    Q_a: wp.array2d(dtype=vec3)
    H_l: wp.array2d(dtype=vec3)  # [speed, world] columns of M* S
    H_a: wp.array2d(dtype=vec3)
    inverse: wp.array2d(dtype=mat66)  # [link, world] U⁻¹ = (Sᵀ M* S)⁻¹
    u: wp.array2d(dtype=real)  # [speed, world] τ + Sᵀ (Q* − M* a′)


@wp.func
def link_pose(t: JointTable, tree: TreeTable, i: int, w: int, q: wp.array2d(dtype=real), k: TreeWork):
    """Pose of a link from its base's pose and the joint's coordinates; returns the common point."""
    j = tree.joint[i]
    b = tree.base[i]
    offset, turn = joint_transform(t, j, w, q)
    x_b = k.position[b, w]
    R_b = k.rotation[b, w]
    if tree.sign[i] > 0:
        frame = R_b * t.parent_frame[j]
        R = wp.normalize(frame * turn * wp.quat_inverse(t.child_frame[j]))
        point = x_b + wp.quat_rotate(R_b, t.parent_point[j]) + wp.quat_rotate(frame, offset)
        k.rotation[tree.body[i], w] = R
        k.position[tree.body[i], w] = point - wp.quat_rotate(R, t.child_point[j])
        return point
    point = x_b + wp.quat_rotate(R_b, t.child_point[j])
    frame = R_b * t.child_frame[j] * wp.quat_inverse(turn)
    R = wp.normalize(frame * wp.quat_inverse(t.parent_frame[j]))
    k.rotation[tree.body[i], w] = R
    k.position[tree.body[i], w] = point - wp.quat_rotate(frame, offset) - wp.quat_rotate(R, t.parent_point[j])
    return point


@wp.func
def link_motion(
    t: JointTable, tree: TreeTable, i: int, w: int, q: wp.array2d(dtype=real), qd: wp.array2d(dtype=real), k: TreeWork
):
    """Pose, twist, S and a′ of a link.

    With d, n the axes of the joint, u = Σ d q̇ and Σ n q̇ the child's motion relative to the parent at the common point P:
    a_child(P) = a_parent(P) + 2 ω_parent × u + Σ d q̈,   ω̇_child = ω̇_parent + Σ n q̈ + Σ ṅ q̇.
    """
    j = tree.joint[i]
    body = tree.body[i]
    base = tree.base[i]
    sign = real(tree.sign[i])
    point = link_pose(t, tree, i, w, q, k)
    parent = base
    child = body
    if tree.sign[i] < 0:
        parent = body
        child = base
    pose = joint_pose(t, j, k.position[parent, w], k.rotation[parent, w], k.position[child, w], k.rotation[child, w])
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
    k.anchor[i, w] = point
    k.spin[body, w] = w_i
    k.velocity[body, w] = k.velocity[base, w] + wp.cross(w_b, r) + u * sign + wp.cross(w_i, out)
    bias_a = turning * sign
    k.bias_a[i, w] = bias_a
    coriolis = wp.cross(w_parent, u) * (real(2.0) * sign)
    k.bias_l[i, w] = wp.cross(w_b, wp.cross(w_b, r)) + coriolis + wp.cross(bias_a, out) + wp.cross(w_i, wp.cross(w_i, out))


@wp.func
def link_inertia(bodies: BodyTable, tree: TreeTable, i: int, w: int, gravity: vec3, k: TreeWork):
    """Own inertia, weight and gyroscopic moment of a link."""
    b = tree.body[i]
    m = bodies.mass[b]
    I = rotated(wp.quat_to_matrix(k.rotation[b, w]), bodies.inertia[b])
    omega = k.spin[b, w]
    k.A[i, w] = wp.diag(vec3(m, m, m))
    k.B[i, w] = mat33(real(0.0))
    k.D[i, w] = I
    k.Q_l[i, w] = gravity * m
    k.Q_a[i, w] = -wp.cross(omega, I * omega)


@wp.func
def small_inverse(U: mat66, n: int) -> mat66:
    """Inverse of the leading n × n part of a positive matrix, by Gauss–Jordan."""
    V = mat66()
    for i in range(n):
        V[i, i] = real(1.0)
    for i in range(n):
        pivot = real(1.0) / U[i, i]
        for j in range(n):
            U[i, j] = U[i, j] * pivot
            V[i, j] = V[i, j] * pivot
        for h in range(n):
            if h != i:
                factor = U[h, i]
                for j in range(n):
                    U[h, j] = U[h, j] - factor * U[i, j]
                    V[h, j] = V[h, j] - factor * V[i, j]
    return V


@wp.func
def add_shifted(A: mat33, B: mat33, D: mat33, arm: vec3, p: int, w: int, k: TreeWork):
    """M_base += Cᵀ M C for the shift by `arm`, C = [E −[r]; 0 E]."""
    r = wp.skew(arm)
    ar = A * r
    rb = r * B
    k.A[p, w] = k.A[p, w] + A
    k.B[p, w] = k.B[p, w] + B - ar
    k.D[p, w] = k.D[p, w] + D + rb + wp.transpose(rb) - r * ar


@wp.func
def backward(t: JointTable, tree: TreeTable, i: int, w: int, tau: wp.array2d(dtype=real), k: TreeWork):
    """One link of the backward pass (separate bodies (17)–(19)): its articulated inertia and force, handed to its base."""
    j = tree.joint[i]
    n = t.v_size[j]
    v0 = t.v_start[j]
    A = k.A[i, w]
    B = k.B[i, w]
    D = k.D[i, w]
    ql = k.Q_l[i, w] - (A * k.bias_l[i, w] + B * k.bias_a[i, w])
    qa = k.Q_a[i, w] - (k.bias_l[i, w] * B + D * k.bias_a[i, w])
    U = mat66()
    for a in range(n):
        hl = A * k.S_l[v0 + a, w] + B * k.S_a[v0 + a, w]
        ha = k.S_l[v0 + a, w] * B + D * k.S_a[v0 + a, w]
        k.H_l[v0 + a, w] = hl
        k.H_a[v0 + a, w] = ha
        for c in range(n):
            U[c, a] = wp.dot(k.S_l[v0 + c, w], hl) + wp.dot(k.S_a[v0 + c, w], ha)
        k.u[v0 + a, w] = tau[v0 + a, w] + wp.dot(k.S_l[v0 + a, w], ql) + wp.dot(k.S_a[v0 + a, w], qa)
    V = small_inverse(U, n)
    k.inverse[i, w] = V
    p = tree.base_link[i]
    if p < 0:
        return
    for a in range(n):
        # (U⁻¹ Hᵀ) row by row: what the joint yields is not handed on
        yl = vec3(real(0.0))
        ya = vec3(real(0.0))
        y = real(0.0)
        for c in range(n):
            yl = yl + k.H_l[v0 + c, w] * V[a, c]
            ya = ya + k.H_a[v0 + c, w] * V[a, c]
            y = y + k.u[v0 + c, w] * V[a, c]
        hl = k.H_l[v0 + a, w]
        ha = k.H_a[v0 + a, w]
        A = A - wp.outer(hl, yl)
        B = B - wp.outer(hl, ya)
        D = D - wp.outer(ha, ya)
        ql = ql - hl * y
        qa = qa - ha * y
    arm = k.arm[i, w]
    add_shifted(A, B, D, arm, p, w, k)
    k.Q_l[p, w] = k.Q_l[p, w] + ql
    k.Q_a[p, w] = k.Q_a[p, w] + qa + wp.cross(arm, ql)


@wp.func
def forward(t: JointTable, tree: TreeTable, i: int, w: int, qdd: wp.array2d(dtype=real), k: TreeWork):
    """One link of the forward pass (separate bodies (20), (21)): its joint's and its own acceleration."""
    j = tree.joint[i]
    n = t.v_size[j]
    v0 = t.v_start[j]
    b = tree.body[i]
    base = tree.base[i]
    aa = k.turning[base, w]
    al = k.acceleration[base, w] + wp.cross(aa, k.arm[i, w])
    rest = vec6()
    for a in range(n):
        rest[a] = k.u[v0 + a, w] - wp.dot(k.H_l[v0 + a, w], al) - wp.dot(k.H_a[v0 + a, w], aa)
    y = k.inverse[i, w] * rest
    al = al + k.bias_l[i, w]
    aa = aa + k.bias_a[i, w]
    for a in range(n):
        qdd[v0 + a, w] = y[a]
        al = al + k.S_l[v0 + a, w] * y[a]
        aa = aa + k.S_a[v0 + a, w] * y[a]
    k.acceleration[b, w] = al
    k.turning[b, w] = aa


@wp.kernel(module="sharnir.tree")
def forward_dynamics(
    bodies: BodyTable, t: JointTable, tree: TreeTable, gravity: vec3,
    q: wp.array2d(dtype=real), qd: wp.array2d(dtype=real), tau: wp.array2d(dtype=real), k: TreeWork, qdd: wp.array2d(dtype=real),
):  # fmt: skip
    """q̈ from q, q̇, τ by the articulated-body recursion; poses, twists and accelerations of all bodies on the way."""
    w = wp.tid()
    for i in range(tree.count):
        link_motion(t, tree, i, w, q, qd, k)
        link_inertia(bodies, tree, i, w, gravity, k)
    for h in range(tree.count):
        backward(t, tree, tree.count - 1 - h, w, tau, k)
    for i in range(tree.count):
        forward(t, tree, i, w, qdd, k)


@wp.kernel(module="sharnir.tree")
def inverse_dynamics(
    bodies: BodyTable, t: JointTable, tree: TreeTable, gravity: vec3,
    q: wp.array2d(dtype=real), qd: wp.array2d(dtype=real), qdd: wp.array2d(dtype=real), k: TreeWork, tau: wp.array2d(dtype=real),
):  # fmt: skip
    """τ from q, q̇, q̈ (recursive Newton–Euler); leaves in Q the wrench at its centre of mass that a link takes from its base."""
    w = wp.tid()
    for i in range(tree.count):
        link_motion(t, tree, i, w, q, qd, k)
        link_inertia(bodies, tree, i, w, gravity, k)
        j = tree.joint[i]
        b = tree.body[i]
        base = tree.base[i]
        aa = k.turning[base, w]
        al = k.acceleration[base, w] + wp.cross(aa, k.arm[i, w]) + k.bias_l[i, w]
        aa = aa + k.bias_a[i, w]
        for a in range(t.v_start[j], t.v_start[j] + t.v_size[j]):
            al = al + k.S_l[a, w] * qdd[a, w]
            aa = aa + k.S_a[a, w] * qdd[a, w]
        k.acceleration[b, w] = al
        k.turning[b, w] = aa
        k.Q_l[i, w] = k.A[i, w] * al - k.Q_l[i, w]
        k.Q_a[i, w] = k.D[i, w] * aa - k.Q_a[i, w]
    for h in range(tree.count):
        i = tree.count - 1 - h
        j = tree.joint[i]
        for a in range(t.v_start[j], t.v_start[j] + t.v_size[j]):
            tau[a, w] = wp.dot(k.S_l[a, w], k.Q_l[i, w]) + wp.dot(k.S_a[a, w], k.Q_a[i, w])
        p = tree.base_link[i]
        if p >= 0:
            k.Q_l[p, w] = k.Q_l[p, w] + k.Q_l[i, w]
            k.Q_a[p, w] = k.Q_a[p, w] + k.Q_a[i, w] + wp.cross(k.arm[i, w], k.Q_l[i, w])


@wp.kernel(module="sharnir.tree")
def mass_matrix(
    bodies: BodyTable, t: JointTable, tree: TreeTable, q: wp.array2d(dtype=real), qd: wp.array2d(dtype=real), k: TreeWork,
    M: wp.array3d(dtype=real),
):  # fmt: skip
    """The mass matrix [speed, speed, world] by composite inertias, each axis handed down to the ground."""
    w = wp.tid()
    for i in range(tree.count):
        link_motion(t, tree, i, w, q, qd, k)
        link_inertia(bodies, tree, i, w, vec3(real(0.0)), k)
    for h in range(tree.count):
        i = tree.count - 1 - h
        j = tree.joint[i]
        v0 = t.v_start[j]
        n = t.v_size[j]
        A = k.A[i, w]
        B = k.B[i, w]
        D = k.D[i, w]
        for a in range(v0, v0 + n):
            f = A * k.S_l[a, w] + B * k.S_a[a, w]
            m = k.S_l[a, w] * B + D * k.S_a[a, w]
            link = int(i)
            while link >= 0:
                jj = tree.joint[link]
                for c in range(t.v_start[jj], t.v_start[jj] + t.v_size[jj]):
                    value = wp.dot(k.S_l[c, w], f) + wp.dot(k.S_a[c, w], m)
                    M[a, c, w] = value
                    M[c, a, w] = value
                m = m + wp.cross(k.arm[link, w], f)
                link = tree.base_link[link]
        p = tree.base_link[i]
        if p >= 0:
            add_shifted(A, B, D, k.arm[i, w], p, w, k)


@wp.kernel(module="sharnir.tree")
def kinematics(t: JointTable, tree: TreeTable, q: wp.array2d(dtype=real), qd: wp.array2d(dtype=real), k: TreeWork):
    """Poses, twists and the columns of S of all links."""
    w = wp.tid()
    for i in range(tree.count):
        link_motion(t, tree, i, w, q, qd, k)
