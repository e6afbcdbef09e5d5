"""Inverse and forward dynamics, the mass matrix and positions of links, as kernels for `sharnir.dynamics`."""

import warp as wp

from sharnir.core.types import mat33, real, vec3
from sharnir.engine.articulated.data import AxisLaws, TreeTable, TreeWork
from sharnir.engine.articulated.loop_rows import ClosureTable, ClosureWork, constrain
from sharnir.engine.articulated.matrices import shifted
from sharnir.engine.articulated.motion import link_motion, link_velocity
from sharnir.engine.articulated.passes import backward, base_acceleration, forward, link_inertia
from sharnir.model.joint_types import JointTable
from sharnir.model.model import BodyTable


@wp.func
def collect_wrenches(tree: TreeTable, w: int, k: TreeWork) -> None:
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
) -> None:  # fmt: skip
    """τ from q, q̇, q̈ (recursive Newton–Euler); leaves in Q the wrench at its centre of mass that a link takes from its base."""
    w = wp.tid()
    for i in range(tree.count):
        link_motion(t, tree, i, w, q, qd, k)
        link_inertia(tree, i, w, gravity, k)
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
        k.Q_l[i, w] = al * bodies.mass[b, w] - k.Q_l[i, w]
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
) -> None:  # fmt: skip
    """The mass matrix [speed, speed, world] by composite inertias, each axis handed down to the ground."""
    w = wp.tid()
    for i in range(tree.count):
        mass = bodies.mass[tree.body[i], w]
        link_motion(t, tree, i, w, q, qd, k)
        link_inertia(tree, i, w, vec3(real(0.0)), k)
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
def kinematics(t: JointTable, tree: TreeTable, q: wp.array2d(dtype=real), qd: wp.array2d(dtype=real), k: TreeWork) -> None:
    """Poses, twists and the columns of S of all links."""
    w = wp.tid()
    for i in range(tree.count):
        link_motion(t, tree, i, w, q, qd, k)
        link_velocity(t, tree, i, w, qd, k)


@wp.kernel(module="sharnir.tree")
def forward_dynamics(
    t: JointTable, tree: TreeTable, table: ClosureTable, gravity: vec3,
    q: wp.array2d(dtype=real), qd: wp.array2d(dtype=real), tau: wp.array2d(dtype=real),
    laws: AxisLaws, k: TreeWork, c: ClosureWork, qdd: wp.array2d(dtype=real),
) -> None:  # fmt: skip
    """q̈ from q, q̇, τ by the articulated-body recursion, loops closed by multipliers; poses and accelerations on the way."""
    w = wp.tid()
    for i in range(tree.count):
        link_motion(t, tree, i, w, q, qd, k)
        link_inertia(tree, i, w, gravity, k)
    backward(t, tree, w, tau, laws, k)
    for i in range(tree.count):
        forward(t, tree, i, w, qdd, laws, k)
    if table.count > table.springs.count:
        constrain(t, tree, table, c, k, w, q, qd, qdd, True)
