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

from sharnir.core.spatial import matrix, rotated
from sharnir.core.types import mat33, mat66, real, vec3, vec6
from sharnir.engine.articulated.data import AxisLaws, TreeTable, TreeWork, natural
from sharnir.engine.articulated.matrices import less, shifted, small_inverse, symmetric, times
from sharnir.model.joint_types import JointTable


@wp.func
def link_own_inertia(tree: TreeTable, i: int, w: int, gravity: vec3, k: TreeWork, R: mat33, omega: vec3) -> None:
    """Own inertia, weight, applied force and gyroscopic moment of a link at its rotation and spin."""
    b = natural(tree.row[i].body)
    m = tree.mass[i, w]
    I = rotated(R, tree.inertia[i, w])
    k.D[i, w] = I
    k.Q_l[i, w] = gravity * m + k.force[b, w]
    k.Q_a[i, w] = k.torque[b, w] - wp.cross(omega, I * omega)
    if tree.row[i].gathers == 1:
        k.A[i, w] = mat33(real(0.0))
        k.B[i, w] = mat33(real(0.0))


@wp.func
def link_inertia(tree: TreeTable, i: int, w: int, gravity: vec3, k: TreeWork) -> None:
    """A link's own inertia and force, in the rotation and at the spin that it has now."""
    i = natural(i)
    w = natural(w)
    b = natural(tree.row[i].body)
    link_own_inertia(tree, i, w, gravity, k, matrix(k.rotation[b, w]), k.spin[b, w])


@wp.func
def condition(Y: mat66, y: vec6, scale: real, g: vec6, wanted: real) -> tuple[mat66, vec6]:
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
) -> None:  # fmt: skip
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
def eliminate_one(
    tree: TreeTable, i: int, w: int, tau: wp.array2d(dtype=real), laws: AxisLaws, k: TreeWork,
    A: mat33, B: mat33, D: mat33, ql: vec3, qa: vec3,
) -> tuple[mat33, mat33, mat33, vec3, vec3]:  # fmt: skip
    """What a link with one free axis hands on to its base: inertia and force, less what the axis yields."""
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
) -> tuple[mat33, mat33, mat33, vec3, vec3]:  # fmt: skip
    """What a link with any number of free axes hands on to its base: inertia and force, less what the axes yield."""
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
def hand_on(k: TreeWork, p: int, w: int, A: mat33, B: mat33, D: mat33, ql: vec3, qa: vec3) -> None:
    """Add inertia and force to those gathered at a link."""
    k.A[p, w] = k.A[p, w] + A
    k.B[p, w] = k.B[p, w] + B
    k.D[p, w] = k.D[p, w] + D
    k.Q_l[p, w] = k.Q_l[p, w] + ql
    k.Q_a[p, w] = k.Q_a[p, w] + qa


@wp.func
def backward(t: JointTable, tree: TreeTable, w: int, tau: wp.array2d(dtype=real), laws: AxisLaws, k: TreeWork) -> None:
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
        m = tree.mass[i, w]
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
def base_acceleration(tree: TreeTable, i: int, w: int, k: TreeWork) -> tuple[vec3, vec3]:
    """C a_base of a link."""
    base = natural(tree.row[i].base)
    aa = k.turning[base, w]
    return k.acceleration[base, w] + wp.cross(aa, k.arm[i, w]), aa


@wp.func
def forward_one(
    tree: TreeTable, i: int, w: int, qdd: wp.array2d(dtype=real), laws: AxisLaws, k: TreeWork, al: vec3, aa: vec3
) -> tuple[vec3, vec3]:  # fmt: skip
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
) -> tuple[vec3, vec3]:  # fmt: skip
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
def forward(t: JointTable, tree: TreeTable, i: int, w: int, qdd: wp.array2d(dtype=real), laws: AxisLaws, k: TreeWork) -> None:
    """Accelerations of a link and its axes, from its base's acceleration as stored."""
    i = natural(i)
    w = natural(w)
    al, aa = base_acceleration(tree, i, w, k)
    forward_from(t, tree, i, w, qdd, laws, k, al, aa)
