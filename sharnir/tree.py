"""The method of separate bodies: recursions along a tree of joints, nothing larger than 6 × 6 (theory: separate bodies).

A link is a body and the joint by which it hangs on its base, ground or another link; links are numbered from the bases
outwards. Of a link with speeds q̇ (twists at centres of mass, world axes, C the shift from the base's centre to the link's):

    V = C V_base + S q̇,      a = C a_base + S q̈ + a′,      a′ what the speeds alone contribute.

A joint may point either way: where the link is the joint's parent, S and a′ change sign with the joint's motion (`sign` −1).

What acts on a joint's axes may depend on the acceleration that it gets: it enters as q̈ = Y (u − Hᵀ C a_base) + y, where for
given forces Y = U⁻¹, y = 0. Resistance adds to U before it is inverted; a locked direction leaves Y and puts its given
acceleration into y (`condition`). So stick, slip, limit and drive change two small quantities of a link, not the pass.
"""

import warp as wp

from sharnir.joints import JointTable, free_axis, joint_pose, joint_transform
from sharnir.model import BodyTable
from sharnir.spatial import kept_unit, matrix, rotated
from sharnir.types import mat33, mat66, quat, real, vec3, vec6


@wp.struct
class LinkRow:
    """What every recursion reads of a link, in one place: many small arrays cost more to address than to compute with.

    A link whose joint is one rotation (`hinge`) has R = R_base · (turn cos ½q + turn_axis sin ½q), turn_axis = turn ∘ (axis, 0),
    and its points on both bodies at hand. Links that another than the next one hangs on gather what is handed to them in memory
    (`gathers`); a chain's stays in registers.
    """

    joint: wp.int32
    body: wp.int32
    base: wp.int32
    base_link: wp.int32
    q_start: wp.int32
    v_start: wp.int32
    v_size: wp.int32
    gathers: wp.int32
    hinge: wp.int32
    kind: wp.int32  # of the direct pass: 1 a ball joint, 4 a body on no joint at all, 0 any other
    mass: real
    parts: real  # how many halves the body has
    least: real  # twice its smallest moment of inertia, about; and its base's
    base_least: real
    inertia: mat33
    turn: quat
    turn_axis: quat
    axis: vec3
    base_axis: vec3
    base_point: vec3
    own_point: vec3


@wp.struct
class TreeTable:
    """Links in order: the joint, the body, the body it hangs on, that body's link (−1: ground), the joint's sense."""

    count: wp.int32
    joint: wp.array(dtype=wp.int32)
    body: wp.array(dtype=wp.int32)
    base: wp.array(dtype=wp.int32)
    base_link: wp.array(dtype=wp.int32)
    sign: wp.array(dtype=wp.int32)
    row: wp.array(dtype=LinkRow)


@wp.struct
class TreeWork:
    """Scratch of the recursions, [item, world]; body arrays also hold the ground, at rest unless it is made to move."""

    position: wp.array2d(dtype=vec3)  # [body, world] centre of mass
    rotation: wp.array2d(dtype=quat)
    spin: wp.array2d(dtype=vec3)
    velocity: wp.array2d(dtype=vec3)
    omega: wp.array2d(dtype=vec3)  # `spin` again, where velocities were wanted for other speeds than the recursion's
    acceleration: wp.array2d(dtype=vec3)
    turning: wp.array2d(dtype=vec3)  # [body, world] angular acceleration
    force: wp.array2d(dtype=vec3)  # [body, world] applied, N and N·m
    torque: wp.array2d(dtype=vec3)
    S_l: wp.array2d(dtype=vec3)  # [speed, world] columns of S
    S_a: wp.array2d(dtype=vec3)
    bias_l: wp.array2d(dtype=vec3)  # [link, world] a′
    bias_a: wp.array2d(dtype=vec3)
    arm: wp.array2d(dtype=vec3)  # [link, world] from the base's centre of mass to the link's
    A: wp.array2d(dtype=mat33)  # [link, world] articulated or composite inertia: [A B; Bᵀ D]
    B: wp.array2d(dtype=mat33)
    D: wp.array2d(dtype=mat33)
    Q_l: wp.array2d(dtype=vec3)  # [link, world] force and moment
    Q_a: wp.array2d(dtype=vec3)
    H_l: wp.array2d(dtype=vec3)  # [speed, world] columns of M* S
    H_a: wp.array2d(dtype=vec3)
    U: wp.array2d(dtype=real)  # [speed, world] Sᵀ M* S of a single axis, without what acts on it
    Y: wp.array2d(dtype=real)  # [speed, world] Y of a single axis
    inverse: wp.array2d(dtype=mat66)  # [link, world] of several axes: U⁻¹ without what acts on them
    response: wp.array2d(dtype=mat66)  # [link, world] of several axes: Y
    y: wp.array2d(dtype=real)  # [speed, world]
    u: wp.array2d(dtype=real)  # [speed, world] τ + Sᵀ (Q* − M* a′)
    kind: wp.array2d(dtype=wp.int32)  # [link, world] of the direct pass: as in LinkRow, or what it is in this step
    full_A: wp.array2d(dtype=vec6)  # [link, world] of the direct pass: M* less what the joint yields, A and D packed
    full_B: wp.array2d(dtype=mat33)
    full_D: wp.array2d(dtype=vec6)
    out: wp.array2d(dtype=vec3)  # [link, world] from the joint's common point to the link's centre of mass
    close_l: wp.array2d(dtype=vec3)  # [link, world] more of a′, whose response is wanted
    close_a: wp.array2d(dtype=vec3)
    change_l: wp.array2d(dtype=vec3)  # [body, world] that response
    change_a: wp.array2d(dtype=vec3)
    change: wp.array2d(dtype=real)  # [speed, world]
    change_q: wp.array2d(dtype=vec3)  # [link, world] of a ball joint, what closing asks of it


@wp.struct
class AxisLaws:
    """What acts on axes, linear in the acceleration: τ = −resist q̈ − push, or a direction that is locked; [item, world]."""

    acts: wp.array2d(dtype=wp.int32)  # [link, world] 1 where there is any
    resist: wp.array2d(dtype=real)  # [speed, world] single axes
    push: wp.array2d(dtype=real)  # [speed, world]
    coupled: wp.array2d(dtype=mat66)  # [link, world] resistance of several axes
    locks: wp.array2d(dtype=wp.int32)  # [link, world] number of locked directions
    row: wp.array2d(dtype=vec6)  # [speed, world] the first `locks` of a link: their directions in its axes
    wanted: wp.array2d(dtype=real)  # [speed, world] and accelerations along them


LOOSE = wp.constant(4)  # a link that hangs on nothing: a floating base, or a joint that is taken out


@wp.func
def natural(i: int) -> int:
    """The same number, where it is not negative: an array's index is then not looked at for counting from its end."""
    return i & 0x7FFFFFFF


# ---- outwards: pose, S, a′ ----------------------------------------------------------------------------------------------


@wp.func
def link_pose(
    t: JointTable, tree: TreeTable, i: int, w: int, q: wp.array2d(dtype=real),
    position: wp.array2d(dtype=vec3), rotation: wp.array2d(dtype=quat),
):  # fmt: skip
    """Pose of a link from its base's pose and the joint's coordinates; returns the common point."""
    j = tree.joint[i]
    b = tree.base[i]
    offset, turn = joint_transform(t, j, w, q)
    x_b = position[b, w]
    R_b = rotation[b, w]
    if tree.sign[i] > 0:
        frame = R_b * t.parent_frame[j]
        R = kept_unit(frame * turn * wp.quat_inverse(t.child_frame[j]))
        point = x_b + wp.quat_rotate(R_b, t.parent_point[j]) + wp.quat_rotate(frame, offset)
        rotation[tree.body[i], w] = R
        position[tree.body[i], w] = point - wp.quat_rotate(R, t.child_point[j])
        return point
    point = x_b + wp.quat_rotate(R_b, t.child_point[j])
    frame = R_b * t.child_frame[j] * wp.quat_inverse(turn)
    R = kept_unit(frame * wp.quat_inverse(t.parent_frame[j]))
    rotation[tree.body[i], w] = R
    position[tree.body[i], w] = point - wp.quat_rotate(frame, offset) - wp.quat_rotate(R, t.parent_point[j])
    return point


@wp.func
def any_motion(
    t: JointTable, tree: TreeTable, i: int, w: int, q: wp.array2d(dtype=real), qd: wp.array2d(dtype=real), k: TreeWork
):
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
    k.spin[body, w] = w_i
    bias_a = turning * sign
    k.bias_a[i, w] = bias_a
    coriolis = wp.cross(w_parent, u) * (real(2.0) * sign)
    k.bias_l[i, w] = wp.cross(w_b, wp.cross(w_b, r)) + coriolis + wp.cross(bias_a, out) + wp.cross(w_i, wp.cross(w_i, out))


@wp.func
def hinge_motion(
    tree: TreeTable, i: int, w: int, angle: real, speed: real, k: TreeWork, x_b: vec3, R_b: quat, M_b: mat33, w_b: vec3
):  # fmt: skip
    """The same of a link whose joint is one rotation, whichever way it points, from its base's.

    Takes and returns position, rotation, its matrix and spin.
    """
    half = real(0.5) * angle
    R = R_b * (tree.row[i].turn * wp.cos(half) + tree.row[i].turn_axis * wp.sin(half))
    R = R * (real(1.5) - real(0.5) * wp.dot(R, R))
    M = matrix(R)
    r = M_b * tree.row[i].base_point
    out = -(M * tree.row[i].own_point)
    n = M * tree.row[i].axis
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
):
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
def link_velocity(t: JointTable, tree: TreeTable, i: int, w: int, qd: wp.array2d(dtype=real), k: TreeWork):
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


@wp.func
def own_inertia(tree: TreeTable, i: int, w: int, gravity: vec3, k: TreeWork, R: mat33, omega: vec3):
    """Own inertia, weight, applied force and gyroscopic moment of a link at its rotation and spin."""
    b = natural(tree.row[i].body)
    m = tree.row[i].mass
    I = rotated(R, tree.row[i].inertia)
    k.D[i, w] = I
    k.Q_l[i, w] = gravity * m + k.force[b, w]
    k.Q_a[i, w] = k.torque[b, w] - wp.cross(omega, I * omega)
    if tree.row[i].gathers == 1:
        k.A[i, w] = mat33(real(0.0))
        k.B[i, w] = mat33(real(0.0))


@wp.func
def link_inertia(bodies: BodyTable, tree: TreeTable, i: int, w: int, gravity: vec3, k: TreeWork):
    """The same, as the link stands."""
    i = natural(i)
    w = natural(w)
    b = natural(tree.row[i].body)
    own_inertia(tree, i, w, gravity, k, matrix(k.rotation[b, w]), k.spin[b, w])


# ---- inwards: articulated inertia and force -----------------------------------------------------------------------------


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
def condition(Y: mat66, y: vec6, scale: real, g: vec6, wanted: real):
    """(Y, y) with the direction g locked at an acceleration: g·q̈ = wanted; one that is locked already changes nothing."""
    z = Y * g
    d = wp.dot(g, z)
    if d > real(1.0e-12) * scale * wp.dot(g, g):
        y = y + z * ((wanted - wp.dot(g, y)) / d)
        Y = Y - wp.outer(z, z) / d
    return Y, y


@wp.func
def several_axes(t: JointTable, tree: TreeTable, i: int, w: int, tau: wp.array2d(dtype=real), laws: AxisLaws, k: TreeWork,
    A: mat33, B: mat33, D: mat33, ql: vec3, qa: vec3,
):  # fmt: skip
    """H, U⁻¹, u and (Y, y) of a link with several axes."""
    j = tree.joint[i]
    n = t.v_size[j]
    v0 = t.v_start[j]
    U = mat66()
    for a in range(n):
        sl = k.S_l[v0 + a, w]
        sa = k.S_a[v0 + a, w]
        hl = A * sl + B * sa
        ha = sl * B + D * sa
        k.H_l[v0 + a, w] = hl
        k.H_a[v0 + a, w] = ha
        for c in range(n):
            U[c, a] = wp.dot(k.S_l[v0 + c, w], hl) + wp.dot(k.S_a[v0 + c, w], ha)
        k.u[v0 + a, w] = tau[v0 + a, w] + wp.dot(sl, ql) + wp.dot(sa, qa)
        k.y[v0 + a, w] = real(0.0)
    V = small_inverse(U, n)
    k.inverse[i, w] = V
    if laws.acts[i, w] == 1:
        V = small_inverse(U + laws.coupled[i, w], n)
        push = vec6()
        scale = real(0.0)
        for a in range(n):
            push[a] = laws.push[v0 + a, w]
            scale = scale + V[a, a]
        y = -(V * push)
        for a in range(laws.locks[i, w]):
            V, y = condition(V, y, scale, laws.row[v0 + a, w], laws.wanted[v0 + a, w])
        for a in range(n):
            k.y[v0 + a, w] = y[a]
    k.response[i, w] = V


@wp.func
def times(A: mat33, v: vec3) -> vec3:
    """A v of a symmetric A; here and below the upper half alone is read, so nothing is computed twice."""
    x = vec3(A[0, 0], A[0, 1], A[0, 2])
    y = vec3(A[0, 1], A[1, 1], A[1, 2])
    z = vec3(A[0, 2], A[1, 2], A[2, 2])
    return vec3(wp.dot(x, v), wp.dot(y, v), wp.dot(z, v))


@wp.func
def symmetric(xx: real, xy: real, xz: real, yy: real, yz: real, zz: real) -> mat33:
    return mat33(xx, xy, xz, xy, yy, yz, xz, yz, zz)


@wp.func
def packed(A: mat33) -> vec6:
    """The upper half of a symmetric matrix: xx xy xz yy yz zz."""
    return vec6(A[0, 0], A[0, 1], A[0, 2], A[1, 1], A[1, 2], A[2, 2])


@wp.func
def unpacked(a: vec6) -> mat33:
    return symmetric(a[0], a[1], a[2], a[3], a[4], a[5])


@wp.func
def packed_times(a: vec6, v: vec3) -> vec3:
    """A v of a packed A."""
    return vec3(
        a[0] * v[0] + a[1] * v[1] + a[2] * v[2], a[1] * v[0] + a[3] * v[1] + a[4] * v[2], a[2] * v[0] + a[4] * v[1] + a[5] * v[2]
    )


@wp.func
def inverse_symmetric(D: mat33) -> mat33:
    """The inverse of a symmetric matrix, from its upper half."""
    xx = D[1, 1] * D[2, 2] - D[1, 2] * D[1, 2]
    xy = D[0, 2] * D[1, 2] - D[0, 1] * D[2, 2]
    xz = D[0, 1] * D[1, 2] - D[0, 2] * D[1, 1]
    s = real(1.0) / (D[0, 0] * xx + D[0, 1] * xy + D[0, 2] * xz)
    yy = (D[0, 0] * D[2, 2] - D[0, 2] * D[0, 2]) * s
    yz = (D[0, 1] * D[0, 2] - D[0, 0] * D[1, 2]) * s
    zz = (D[0, 0] * D[1, 1] - D[0, 1] * D[0, 1]) * s
    return symmetric(xx * s, xy * s, xz * s, yy, yz, zz)


@wp.func
def less_product(A: mat33, B: mat33, G: mat33) -> mat33:
    """A − B G, symmetric."""
    b0 = vec3(B[0, 0], B[0, 1], B[0, 2])
    b1 = vec3(B[1, 0], B[1, 1], B[1, 2])
    b2 = vec3(B[2, 0], B[2, 1], B[2, 2])
    g0 = vec3(G[0, 0], G[1, 0], G[2, 0])
    g1 = vec3(G[0, 1], G[1, 1], G[2, 1])
    g2 = vec3(G[0, 2], G[1, 2], G[2, 2])
    return symmetric(
        A[0, 0] - wp.dot(b0, g0), A[0, 1] - wp.dot(b0, g1), A[0, 2] - wp.dot(b0, g2),
        A[1, 1] - wp.dot(b1, g1), A[1, 2] - wp.dot(b1, g2), A[2, 2] - wp.dot(b2, g2),
    )  # fmt: skip


@wp.func
def loosen(k: TreeWork, i: int, w: int, A: mat33, B: mat33, D: mat33):
    """Keep of a link that hangs on nothing what `loose_response` needs: A⁻¹, B and (D − Bᵀ A⁻¹ B)⁻¹."""
    P = inverse_symmetric(A)
    k.full_A[i, w] = packed(P)
    k.full_B[i, w] = B
    k.full_D[i, w] = packed(inverse_symmetric(less_product(D, wp.transpose(B), P * B)))


@wp.func
def loose_response(k: TreeWork, i: int, w: int, ql: vec3, qa: vec3):
    """M*⁻¹ (q, m) of a link that hangs on nothing."""
    P = k.full_A[i, w]
    B = k.full_B[i, w]
    omega = packed_times(k.full_D[i, w], qa - packed_times(P, ql) * B)
    return packed_times(P, ql - B * omega), omega


@wp.func
def less(A: mat33, h: vec3, y: vec3) -> mat33:
    """A − h yᵀ, both symmetric."""
    return symmetric(
        A[0, 0] - h[0] * y[0], A[0, 1] - h[0] * y[1], A[0, 2] - h[0] * y[2],
        A[1, 1] - h[1] * y[1], A[1, 2] - h[1] * y[2], A[2, 2] - h[2] * y[2],
    )  # fmt: skip


@wp.func
def crossed(a0: vec3, a1: vec3, a2: vec3, r: vec3) -> mat33:
    """A [r]× by the rows of A."""
    b0 = wp.cross(a0, r)
    b1 = wp.cross(a1, r)
    b2 = wp.cross(a2, r)
    return mat33(b0[0], b0[1], b0[2], b1[0], b1[1], b1[2], b2[0], b2[1], b2[2])


@wp.func
def shifted(A: mat33, B: mat33, D: mat33, r: vec3):
    """B and D of Cᵀ M C for the shift by r, C = [E −[r]; 0 E]: B − A[r] and D − X − Xᵀ, X = (B − ½ A[r])ᵀ [r]."""
    ar = crossed(
        vec3(A[0, 0], A[0, 1], A[0, 2]), vec3(A[0, 1], A[1, 1], A[1, 2]), vec3(A[0, 2], A[1, 2], A[2, 2]), r
    )  # fmt: skip
    half = B - ar * real(0.5)
    X = crossed(
        vec3(half[0, 0], half[1, 0], half[2, 0]), vec3(half[0, 1], half[1, 1], half[2, 1]),
        vec3(half[0, 2], half[1, 2], half[2, 2]), r,
    )  # fmt: skip
    D = symmetric(
        D[0, 0] - (X[0, 0] + X[0, 0]), D[0, 1] - (X[0, 1] + X[1, 0]), D[0, 2] - (X[0, 2] + X[2, 0]),
        D[1, 1] - (X[1, 1] + X[1, 1]), D[1, 2] - (X[1, 2] + X[2, 1]), D[2, 2] - (X[2, 2] + X[2, 2]),
    )  # fmt: skip
    return B - ar, D


@wp.func
def eliminate_one(
    tree: TreeTable, i: int, w: int, tau: wp.array2d(dtype=real), laws: AxisLaws, k: TreeWork,
    A: mat33, B: mat33, D: mat33, ql: vec3, qa: vec3,
):  # fmt: skip
    """A link's inertia and force without what its only axis yields: what is left is handed on."""
    v0 = natural(tree.row[i].v_start)
    sl = k.S_l[v0, w]
    sa = k.S_a[v0, w]
    hl = times(A, sl) + B * sa
    ha = sl * B + times(D, sa)
    U = wp.dot(sl, hl) + wp.dot(sa, ha)
    u = tau[v0, w] + wp.dot(sl, ql) + wp.dot(sa, qa)
    Y = real(1.0) / U
    yield_ = Y * u
    if laws.acts[i, w] == 1:
        y = laws.wanted[v0, w]
        if laws.locks[i, w] == 1:
            Y = real(0.0)
        else:
            Y = real(1.0) / (U + laws.resist[v0, w])
            y = -Y * laws.push[v0, w]
        k.y[v0, w] = y
        k.U[v0, w] = U
        yield_ = Y * u + y
    k.H_l[v0, w] = hl
    k.H_a[v0, w] = ha
    k.Y[v0, w] = Y
    k.u[v0, w] = u
    ya = ha * Y
    return less(A, hl, hl * Y), B - wp.outer(hl, ya), less(D, ha, ya), ql - hl * yield_, qa - ha * yield_


@wp.func
def eliminate_axes(
    t: JointTable, tree: TreeTable, i: int, w: int, tau: wp.array2d(dtype=real), laws: AxisLaws, k: TreeWork,
    A: mat33, B: mat33, D: mat33, ql: vec3, qa: vec3,
):  # fmt: skip
    """The same of any number of axes."""
    n = tree.row[i].v_size
    v0 = natural(tree.row[i].v_start)
    if n == 1:
        A, B, D, ql, qa = eliminate_one(tree, i, w, tau, laws, k, A, B, D, ql, qa)
    elif n > 1:
        several_axes(t, tree, i, w, tau, laws, k, A, B, D, ql, qa)
        V = k.response[i, w]
        for a in range(n):
            # (Y Hᵀ) row by row: what the joint yields is not handed on
            yl = vec3(real(0.0))
            ya = vec3(real(0.0))
            yield_ = k.y[v0 + a, w]
            for c in range(n):
                yl = yl + k.H_l[v0 + c, w] * V[a, c]
                ya = ya + k.H_a[v0 + c, w] * V[a, c]
                yield_ = yield_ + k.u[v0 + c, w] * V[a, c]
            hl = k.H_l[v0 + a, w]
            ha = k.H_a[v0 + a, w]
            A = A - wp.outer(hl, yl)
            B = B - wp.outer(hl, ya)
            D = D - wp.outer(ha, ya)
            ql = ql - hl * yield_
            qa = qa - ha * yield_
    return A, B, D, ql, qa


@wp.func
def hand_on(k: TreeWork, p: int, w: int, A: mat33, B: mat33, D: mat33, ql: vec3, qa: vec3):
    """Add to what is gathered at a link."""
    k.A[p, w] = k.A[p, w] + A
    k.B[p, w] = k.B[p, w] + B
    k.D[p, w] = k.D[p, w] + D
    k.Q_l[p, w] = k.Q_l[p, w] + ql
    k.Q_a[p, w] = k.Q_a[p, w] + qa


@wp.func
def backward(bodies: BodyTable, t: JointTable, tree: TreeTable, w: int, tau: wp.array2d(dtype=real), laws: AxisLaws, k: TreeWork):
    """The backward pass (separate bodies (17)–(19)): every link's articulated inertia and force, handed to its base.

    What is handed to the next link in turn stays in registers.
    """
    w = natural(w)
    zero = vec3(real(0.0))
    A = mat33(real(0.0))
    B = mat33(real(0.0))
    D = mat33(real(0.0))
    ql = zero
    qa = zero
    handed = int(0)
    for h in range(tree.count):
        i = natural(tree.count - 1 - h)
        m = tree.row[i].mass
        if handed == 0:
            A = mat33(real(0.0))
            B = mat33(real(0.0))
            D = mat33(real(0.0))
            ql = zero
            qa = zero
        if tree.row[i].gathers == 1:
            A = A + k.A[i, w]
            B = B + k.B[i, w]
        A = symmetric(A[0, 0] + m, A[0, 1], A[0, 2], A[1, 1] + m, A[1, 2], A[2, 2] + m)
        D = D + k.D[i, w]
        bl = k.bias_l[i, w]
        ba = k.bias_a[i, w]
        ql = ql + k.Q_l[i, w] - (times(A, bl) + B * ba)
        qa = qa + k.Q_a[i, w] - (bl * B + times(D, ba))
        A, B, D, ql, qa = eliminate_axes(t, tree, i, w, tau, laws, k, A, B, D, ql, qa)
        arm = k.arm[i, w]
        B, D = shifted(A, B, D, arm)
        qa = qa + wp.cross(arm, ql)
        p = tree.row[i].base_link
        handed = 0
        if p == i - 1:
            handed = 1
        elif p >= 0:
            hand_on(k, p, w, A, B, D, ql, qa)


# ---- outwards again: accelerations --------------------------------------------------------------------------------------


@wp.func
def left_over(t: JointTable, tree: TreeTable, i: int, w: int, al: vec3, aa: vec3, k: TreeWork) -> vec6:
    """u − Hᵀ C a_base of a link's axes, for its base's acceleration brought to the link's centre."""
    rest = vec6()
    v0 = t.v_start[tree.joint[i]]
    for a in range(t.v_size[tree.joint[i]]):
        rest[a] = k.u[v0 + a, w] - wp.dot(k.H_l[v0 + a, w], al) - wp.dot(k.H_a[v0 + a, w], aa)
    return rest


@wp.func
def base_acceleration(tree: TreeTable, i: int, w: int, k: TreeWork):
    """C a_base of a link."""
    base = natural(tree.row[i].base)
    aa = k.turning[base, w]
    return k.acceleration[base, w] + wp.cross(aa, k.arm[i, w]), aa


@wp.func
def forward_one(
    tree: TreeTable, i: int, w: int, qdd: wp.array2d(dtype=real), laws: AxisLaws, k: TreeWork, al: vec3, aa: vec3
):  # fmt: skip
    """A link with one axis in the forward pass, from C a_base: its joint's acceleration, and its own without a′."""
    v0 = natural(tree.row[i].v_start)
    y = k.Y[v0, w] * (k.u[v0, w] - wp.dot(k.H_l[v0, w], al) - wp.dot(k.H_a[v0, w], aa))
    if laws.acts[i, w] == 1:
        y = y + k.y[v0, w]
    qdd[v0, w] = y
    return al + k.S_l[v0, w] * y, aa + k.S_a[v0, w] * y


@wp.func
def forward_from(
    t: JointTable, tree: TreeTable, i: int, w: int, qdd: wp.array2d(dtype=real), laws: AxisLaws, k: TreeWork,
    al: vec3, aa: vec3,
):  # fmt: skip
    """One link of the forward pass (separate bodies (20), (21)) from C a_base: its joint's and its own acceleration."""
    n = tree.row[i].v_size
    v0 = natural(tree.row[i].v_start)
    b = natural(tree.row[i].body)
    if n == 1:
        al, aa = forward_one(tree, i, w, qdd, laws, k, al, aa)
    elif n > 1:
        z = k.response[i, w] * left_over(t, tree, i, w, al, aa, k)
        for a in range(n):
            y = z[a] + k.y[v0 + a, w]
            qdd[v0 + a, w] = y
            al = al + k.S_l[v0 + a, w] * y
            aa = aa + k.S_a[v0 + a, w] * y
    al = al + k.bias_l[i, w]
    aa = aa + k.bias_a[i, w]
    k.acceleration[b, w] = al
    k.turning[b, w] = aa
    return al, aa


@wp.func
def forward(t: JointTable, tree: TreeTable, i: int, w: int, qdd: wp.array2d(dtype=real), laws: AxisLaws, k: TreeWork):
    """The same, its base's acceleration from memory."""
    i = natural(i)
    w = natural(w)
    al, aa = base_acceleration(tree, i, w, k)
    forward_from(t, tree, i, w, qdd, laws, k, al, aa)


@wp.func
def collect_wrenches(tree: TreeTable, w: int, k: TreeWork):
    """Wrenches of the links alone, in Q, summed to those that joints carry: all that hangs on a link included."""
    for h in range(tree.count):
        i = tree.count - 1 - h
        p = tree.base_link[i]
        if p >= 0:
            k.Q_l[p, w] = k.Q_l[p, w] + k.Q_l[i, w]
            k.Q_a[p, w] = k.Q_a[p, w] + k.Q_a[i, w] + wp.cross(k.arm[i, w], k.Q_l[i, w])


# ---- the passes as kernels ----------------------------------------------------------------------------------------------


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
        al, aa = base_acceleration(tree, i, w, k)
        al = al + k.bias_l[i, w]
        aa = aa + k.bias_a[i, w]
        for a in range(t.v_start[j], t.v_start[j] + t.v_size[j]):
            al = al + k.S_l[a, w] * qdd[a, w]
            aa = aa + k.S_a[a, w] * qdd[a, w]
        k.acceleration[b, w] = al
        k.turning[b, w] = aa
        k.Q_l[i, w] = al * bodies.mass[b] - k.Q_l[i, w]
        k.Q_a[i, w] = k.D[i, w] * aa - k.Q_a[i, w]
    collect_wrenches(tree, w, k)
    for i in range(tree.count):
        j = tree.joint[i]
        for a in range(t.v_start[j], t.v_start[j] + t.v_size[j]):
            tau[a, w] = wp.dot(k.S_l[a, w], k.Q_l[i, w]) + wp.dot(k.S_a[a, w], k.Q_a[i, w])


@wp.kernel(module="sharnir.tree")
def mass_matrix(
    bodies: BodyTable, t: JointTable, tree: TreeTable, q: wp.array2d(dtype=real), qd: wp.array2d(dtype=real), k: TreeWork,
    M: wp.array3d(dtype=real),
):  # fmt: skip
    """The mass matrix [speed, speed, world] by composite inertias, each axis handed down to the ground."""
    w = wp.tid()
    for i in range(tree.count):
        mass = bodies.mass[tree.body[i]]
        link_motion(t, tree, i, w, q, qd, k)
        link_inertia(bodies, tree, i, w, vec3(real(0.0)), k)
        k.A[i, w] = wp.diag(vec3(mass, mass, mass))
        k.B[i, w] = mat33(real(0.0))
    for h in range(tree.count):
        i = tree.count - 1 - h
        j = tree.joint[i]
        A = k.A[i, w]
        B = k.B[i, w]
        D = k.D[i, w]
        for a in range(t.v_start[j], t.v_start[j] + t.v_size[j]):
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
            B, D = shifted(A, B, D, k.arm[i, w])
            k.A[p, w] = k.A[p, w] + A
            k.B[p, w] = k.B[p, w] + B
            k.D[p, w] = k.D[p, w] + D


@wp.kernel(module="sharnir.tree")
def kinematics(t: JointTable, tree: TreeTable, q: wp.array2d(dtype=real), qd: wp.array2d(dtype=real), k: TreeWork):
    """Poses, twists and the columns of S of all links."""
    w = wp.tid()
    for i in range(tree.count):
        link_motion(t, tree, i, w, q, qd, k)
        link_velocity(t, tree, i, w, qd, k)
