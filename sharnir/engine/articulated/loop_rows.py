"""Rows beside the tree: what closes its loops, gears, springs between points; solved by multipliers with the tree's response.

A joint that closes a loop is cut at a body, not at itself: the body is split in two halves, the second hangs on the joint like
any link, and a weld of six rows holds the halves together. So every joint, with all that acts on it, is a joint of the tree.

    J a + γ = wanted,      a = a_free + M⁻¹Jᵀ λ,      (J M⁻¹Jᵀ + softness) λ = wanted − γ − J a_free

M⁻¹ is one backward and one forward pass for a force, over those trees alone that hang on the ground where the row acts (`span`).
Rows that act on different trees do not feel each other: welds are listed so that those which do stand close together, and the
matrix is factored within its envelope (`first`, `last`). Rows may depend on each other, always or in one pose: they share the
load then (`solve_rows`).
"""

import warp as wp

from sharnir.core.spatial import log_quat
from sharnir.core.types import EPSILON, real, vec3, vec6
from sharnir.engine.articulated.data import TreeTable, TreeWork
from sharnir.engine.articulated.motion import link_velocity
from sharnir.model.joint_geometry import joint_curvature, joint_gap, joint_pose
from sharnir.model.joint_types import JointTable
from sharnir.model.model import SpringTable

DIAGONAL_SHARE = wp.constant(real(max(1.0e-9, 100.0 * EPSILON)))  # part of the diagonal that is added to it
REFINEMENTS = wp.constant(4)  # rounds of iterative refinement of the rows' solve
RESPONSE_ROUNDING = wp.constant(real(100.0 * EPSILON))  # part of the response of free bodies that is rounding
GEAR = wp.constant(-1)  # in place of a row's child: rows of axes, and of cables, which hold many bodies
CABLE = wp.constant(-2)
NO_RESPONSE = wp.constant(real(EPSILON))  # part of the largest pivot below which a row has no response of its own


@wp.struct
class ClosureTable:
    """Rows in order: six a weld, one a rod, one a gear, one a run of a cable, one a spring."""

    count: wp.int32
    welds: wp.int32
    rods: wp.int32
    gears: wp.int32
    weld_body: wp.array(dtype=wp.int32)
    weld_half: wp.array(dtype=wp.int32)
    rod_joint: wp.array(dtype=wp.int32)
    gear_q_a: wp.array(dtype=wp.int32)  # coordinate and speed of each side
    gear_q_b: wp.array(dtype=wp.int32)
    gear_v_a: wp.array(dtype=wp.int32)
    gear_v_b: wp.array(dtype=wp.int32)
    gear_ratio: wp.array(dtype=real)
    springs: SpringTable
    span: wp.array2d(dtype=wp.int32)  # [row, 4] the links that a row can move: two ranges, each its first and one past its last
    first: wp.array(dtype=wp.int32)  # [row] the matrix of the rows is 0 left of this column, and stays so when it is factored
    last: wp.array(dtype=wp.int32)  # [row] and in the row's own column below this row


@wp.struct
class ClosureWork:
    """Scratch, [item, world]."""

    child: wp.array(dtype=wp.int32)  # [row] the two bodies; GEAR, CABLE
    parent: wp.array(dtype=wp.int32)
    child_l: wp.array2d(dtype=vec3)  # [row, world] J on each body
    child_a: wp.array2d(dtype=vec3)
    parent_l: wp.array2d(dtype=vec3)
    parent_a: wp.array2d(dtype=vec3)
    gap: wp.array2d(dtype=real)  # [row, world] of a spring, its stretch
    gamma: wp.array2d(dtype=real)  # [row, world] γ
    soft: wp.array2d(dtype=real)  # [row, world] of a spring; negative: the row is out
    rhs: wp.array2d(dtype=real)
    force: wp.array2d(dtype=real)  # [row, world] λ
    matrix: wp.array3d(dtype=real)  # [row, row, world]
    response: wp.array3d(dtype=real)  # [row, row, world] the same before it was factored, in steps
    left: wp.array2d(dtype=real)  # [row, world] of rhs, not yet met
    f_l: wp.array2d(dtype=vec3)  # [link, world] forces whose response is wanted
    f_a: wp.array2d(dtype=vec3)
    u: wp.array2d(dtype=real)  # [speed, world] the same on the axes
    y: wp.array2d(dtype=real)  # [speed, world] accelerations of the response
    a_l: wp.array2d(dtype=vec3)  # [body, world]
    a_a: wp.array2d(dtype=vec3)
    link_of: wp.array(dtype=wp.int32)  # [body] −1: none
    gear_start: wp.array2d(dtype=real)  # [gear, world]


# ---- the rows at a pose -------------------------------------------------------------------------------------------------


@wp.func
def put_row(
    c: ClosureWork, r: int, w: int, child_l: vec3, child_a: vec3, parent_l: vec3, parent_a: vec3, gap: real, gamma: real
) -> None:
    c.child_l[r, w] = child_l
    c.child_a[r, w] = child_a
    c.parent_l[r, w] = parent_l
    c.parent_a[r, w] = parent_a
    c.gap[r, w] = gap
    c.gamma[r, w] = gamma
    c.soft[r, w] = real(0.0)


@wp.func
def write_weld_rows(table: ClosureTable, c: ClosureWork, k: TreeWork, i: int, w: int) -> None:
    """Both halves in one place, turned alike: J is constant, γ nothing."""
    b = table.weld_body[i]
    half = table.weld_half[i]
    gap = k.position[half, w] - k.position[b, w]
    turn = log_quat(k.rotation[half, w] * wp.quat_inverse(k.rotation[b, w]))
    zero = vec3(real(0.0))
    for h in range(3):
        e = vec3(real(0.0))
        e[h] = real(1.0)
        put_row(c, 6 * i + h, w, e, zero, -e, zero, gap[h], real(0.0))
        put_row(c, 6 * i + 3 + h, w, zero, e, zero, -e, turn[h], real(0.0))


@wp.func
def write_line_row(c: ClosureWork, r: int, w: int, n: vec3, r_child: vec3, r_parent: vec3, gap: real, gamma: real) -> None:
    put_row(c, r, w, n, wp.cross(r_child, n), -n, -wp.cross(r_parent, n), gap, gamma)


@wp.func
def write_rod_row(t: JointTable, table: ClosureTable, c: ClosureWork, k: TreeWork, i: int, w: int) -> None:
    j = table.rod_joint[i]
    p = t.parent[j]
    b = t.child[j]
    pose = joint_pose(t, j, w, k.position[p, w], k.rotation[p, w], k.position[b, w], k.rotation[b, w])
    zero = vec3(real(0.0))
    r_p = pose.child_anchor - k.position[p, w]  # one common point for both bodies
    r_c = pose.child_anchor - k.position[b, w]
    u = k.velocity[b, w] + wp.cross(k.omega[b, w], r_c) - k.velocity[p, w] - wp.cross(k.omega[p, w], r_p)
    linear, _angular = joint_gap(t, j, pose)
    gamma, _g = joint_curvature(t, j, pose, k.omega[p, w], k.omega[b, w], zero, zero, r_p, r_c, u)
    n = wp.normalize(pose.child_anchor - pose.parent_anchor)
    write_line_row(c, 6 * table.welds + i, w, n, r_c, r_p, wp.dot(n, linear), wp.dot(n, gamma))


@wp.func
def write_spring_row(table: ClosureTable, c: ClosureWork, k: TreeWork, i: int, w: int) -> None:
    """The line of a spring; γ as a rod's."""
    p = table.springs.parent[i]
    b = table.springs.child[i]
    r_p = wp.quat_rotate(k.rotation[p, w], table.springs.parent_point[i])
    r_c = wp.quat_rotate(k.rotation[b, w], table.springs.child_point[i])
    line = k.position[b, w] + r_c - k.position[p, w] - r_p
    length = wp.length(line)
    n = vec3(real(0.0))  # ends on one point: no direction, no force
    gamma = real(0.0)
    if length > real(1.0e-12):
        n = line / length
        w_p = k.omega[p, w]
        w_c = k.omega[b, w]
        rate = k.velocity[b, w] + wp.cross(w_c, r_c) - k.velocity[p, w] - wp.cross(w_p, r_p)
        across = rate - n * wp.dot(n, rate)
        turning = wp.cross(w_c, wp.cross(w_c, r_c)) - wp.cross(w_p, wp.cross(w_p, r_p))
        gamma = wp.dot(n, turning) + wp.dot(across, across) / length
    r = 6 * table.welds + table.rods + table.gears + i
    write_line_row(c, r, w, n, r_c, r_p, length - table.springs.rest[i, w], gamma)


@wp.func
def find_closures(t: JointTable, table: ClosureTable, c: ClosureWork, k: TreeWork, q: wp.array2d(dtype=real), w: int) -> None:
    """J, gaps and γ of all rows at the bodies' poses and velocities."""
    for i in range(table.welds):
        write_weld_rows(table, c, k, i, w)
    for i in range(table.rods):
        write_rod_row(t, table, c, k, i, w)
    zero = vec3(real(0.0))
    for i in range(table.gears):
        gap = q[table.gear_q_a[i], w] - table.gear_ratio[i] * q[table.gear_q_b[i], w] - c.gear_start[i, w]
        put_row(c, 6 * table.welds + table.rods + i, w, zero, zero, zero, zero, gap, real(0.0))
    for i in range(table.springs.count):
        write_spring_row(table, c, k, i, w)


@wp.func
def row_rate(
    table: ClosureTable, c: ClosureWork, r: int, w: int,
    linear: wp.array2d(dtype=vec3), angular: wp.array2d(dtype=vec3), axes: wp.array2d(dtype=real),
) -> real:  # fmt: skip
    """A row of J times velocities or accelerations of bodies and axes."""
    b = c.child[r]
    if b < 0:
        g = r - 6 * table.welds - table.rods
        return axes[table.gear_v_a[g], w] - table.gear_ratio[g] * axes[table.gear_v_b[g], w]
    p = c.parent[r]
    own = wp.dot(c.child_l[r, w], linear[b, w]) + wp.dot(c.child_a[r, w], angular[b, w])
    return own + wp.dot(c.parent_l[r, w], linear[p, w]) + wp.dot(c.parent_a[r, w], angular[p, w])


# ---- the tree's response ------------------------------------------------------------------------------------------------


@wp.func
def push_closure(table: ClosureTable, c: ClosureWork, r: int, w: int, force: real) -> None:
    """Add a force on a row to those whose response is wanted."""
    b = c.child[r]
    if b < 0:
        g = r - 6 * table.welds - table.rods
        c.u[table.gear_v_a[g], w] = c.u[table.gear_v_a[g], w] + force
        c.u[table.gear_v_b[g], w] = c.u[table.gear_v_b[g], w] - table.gear_ratio[g] * force
        return
    link = c.link_of[b]
    if link >= 0:
        c.f_l[link, w] = c.f_l[link, w] + c.child_l[r, w] * force
        c.f_a[link, w] = c.f_a[link, w] + c.child_a[r, w] * force
    link = c.link_of[c.parent[r]]
    if link >= 0:
        c.f_l[link, w] = c.f_l[link, w] + c.parent_l[r, w] * force
        c.f_a[link, w] = c.f_a[link, w] + c.parent_a[r, w] * force


@wp.func
def clear_row_forces(t: JointTable, tree: TreeTable, c: ClosureWork, w: int, start: int, end: int) -> None:
    """Clear the forces on links start … end − 1."""
    for i in range(start, end):
        c.f_l[i, w] = vec3(real(0.0))
        c.f_a[i, w] = vec3(real(0.0))
        j = tree.joint[i]
        for a in range(t.v_start[j], t.v_start[j] + t.v_size[j]):
            c.u[a, w] = real(0.0)


@wp.func
def clear_response(t: JointTable, tree: TreeTable, c: ClosureWork, w: int, start: int, end: int) -> None:
    """Neither forces on links start … end − 1 nor accelerations of them."""
    clear_row_forces(t, tree, c, w, start, end)
    for i in range(start, end):
        c.a_l[tree.body[i], w] = vec3(real(0.0))
        c.a_a[tree.body[i], w] = vec3(real(0.0))
        j = tree.joint[i]
        for a in range(t.v_start[j], t.v_start[j] + t.v_size[j]):
            c.y[a, w] = real(0.0)


@wp.func
def tree_response(t: JointTable, tree: TreeTable, c: ClosureWork, k: TreeWork, w: int, start: int, end: int) -> None:
    """Accelerations of axes (c.y) and bodies (c.a) by the forces pushed, of links start … end − 1, which hang on no others;
    leaves in c.u what they add to the links' u."""
    for h in range(end - start):
        i = end - 1 - h
        j = tree.joint[i]
        n = t.v_size[j]
        v0 = t.v_start[j]
        ql = c.f_l[i, w]
        qa = c.f_a[i, w]
        for a in range(v0, v0 + n):
            c.u[a, w] = c.u[a, w] + wp.dot(k.S_l[a, w], ql) + wp.dot(k.S_a[a, w], qa)
        p = tree.base_link[i]
        if p >= 0:
            for a in range(n):
                y = real(0.0)
                if n == 1:
                    y = k.Y[v0, w] * c.u[v0, w]
                else:
                    V = k.response[i, w]
                    for b in range(n):
                        y = y + V[a, b] * c.u[v0 + b, w]
                ql = ql - k.H_l[v0 + a, w] * y
                qa = qa - k.H_a[v0 + a, w] * y
            c.f_l[p, w] = c.f_l[p, w] + ql
            c.f_a[p, w] = c.f_a[p, w] + qa + wp.cross(k.arm[i, w], ql)
    for i in range(start, end):
        j = tree.joint[i]
        n = t.v_size[j]
        v0 = t.v_start[j]
        base = tree.base[i]
        aa = c.a_a[base, w]
        al = c.a_l[base, w] + wp.cross(aa, k.arm[i, w])
        rest = vec6()
        for a in range(n):
            rest[a] = c.u[v0 + a, w] - wp.dot(k.H_l[v0 + a, w], al) - wp.dot(k.H_a[v0 + a, w], aa)
        if n == 1:
            rest[0] = rest[0] * k.Y[v0, w]
        elif n > 1:
            rest = k.response[i, w] * rest
        for a in range(n):
            c.y[v0 + a, w] = rest[a]
            al = al + k.S_l[v0 + a, w] * rest[a]
            aa = aa + k.S_a[v0 + a, w] * rest[a]
        c.a_l[tree.body[i], w] = al
        c.a_a[tree.body[i], w] = aa


@wp.func
def response_matrix(t: JointTable, tree: TreeTable, table: ClosureTable, c: ClosureWork, k: TreeWork, w: int, rows: int) -> None:
    """J M⁻¹ Jᵀ of the first rows, within its envelope."""
    clear_response(t, tree, c, w, 0, tree.count)
    for r in range(rows):
        push_closure(table, c, r, w, real(1.0))
        for half in range(2):
            tree_response(t, tree, c, k, w, table.span[r, 2 * half], table.span[r, 2 * half + 1])
        for s in range(table.first[r], wp.min(table.last[r] + 1, rows)):
            c.matrix[s, r, w] = row_rate(table, c, s, w, c.a_l, c.a_a, c.y)
        if r >= 6 * table.welds and c.matrix[r, r, w] <= RESPONSE_ROUNDING * free_row_response(tree, c, r, w):
            c.matrix[r, r, w] = real(0.0)  # a rod between bodies that are joined rigidly already
        for half in range(2):
            clear_response(t, tree, c, w, table.span[r, 2 * half], table.span[r, 2 * half + 1])


@wp.func
def free_row_response(tree: TreeTable, c: ClosureWork, r: int, w: int) -> real:
    """About what a row's bodies would do if they were free, 1/kg; 0 for a row that does not push."""
    out = real(0.0)
    b = c.child[r]
    if b >= 0:
        link = c.link_of[b]
        if link >= 0:
            out = out + wp.length_sq(c.child_l[r, w]) / tree.mass[link, w]
        link = c.link_of[c.parent[r]]
        if link >= 0:
            out = out + wp.length_sq(c.parent_l[r, w]) / tree.mass[link, w]
    return out


@wp.func
def stand_alone(table: ClosureTable, c: ClosureWork, r: int, w: int, rows: int) -> None:
    """Take a row out of the matrix."""
    for s in range(table.first[r], wp.min(table.last[r] + 1, rows)):
        c.matrix[s, r, w] = real(0.0)
        c.matrix[r, s, w] = real(0.0)
    c.matrix[r, r, w] = real(1.0)


@wp.func
def row_unit(c: ClosureWork, r: int, w: int) -> int:
    """Rows whose responses have one unit: 0 along lines, 1/kg; 1 about axes, 1/(kg·m²); 2 of gears, which may be either."""
    if c.child[r] == GEAR:
        return 2
    if c.child[r] >= 0 and wp.length_sq(c.child_l[r, w]) == real(0.0):
        return 1
    return 0


@wp.func
def factor_rows(table: ClosureTable, c: ClosureWork, w: int, rows: int) -> None:
    """L D Lᵀ of matrix + softness, its diagonal raised a little (see `solve_rows`), in place; rows that are out stand alone.

    No `envelope`: where rows nearly depend on each other, in a singular pose, the factors have to be symmetric to the last bit.
    """
    largest = vec3(real(0.0))  # by the unit of rows
    for r in range(rows):
        unit = row_unit(c, r, w)
        largest[unit] = wp.max(largest[unit], c.matrix[r, r, w])
    for r in range(rows):
        if c.matrix[r, r, w] <= NO_RESPONSE * largest[row_unit(c, r, w)] and c.soft[r, w] == real(0.0):
            c.soft[r, w] = real(-1.0)  # the tree cannot move so
        if c.soft[r, w] < real(0.0):
            stand_alone(table, c, r, w, rows)
        else:
            c.matrix[r, r, w] = c.matrix[r, r, w] * (real(1.0) + DIAGONAL_SHARE) + c.soft[r, w]
    for p in range(rows):
        pivot = c.matrix[p, p, w]
        end = wp.min(table.last[p] + 1, rows)
        for s in range(p + 1, end):
            if table.first[s] <= p:
                factor = c.matrix[s, p, w] / pivot
                for h in range(p + 1, s + 1):
                    if table.first[h] <= p:
                        c.matrix[s, h, w] = c.matrix[s, h, w] - factor * c.matrix[h, p, w]
        for s in range(p + 1, end):
            c.matrix[s, p, w] = c.matrix[s, p, w] / pivot


@wp.func
def solve_factored_rows(table: ClosureTable, c: ClosureWork, w: int, rows: int) -> None:
    """Add to c.force what the eliminated matrix makes of c.left."""
    for s in range(rows):
        x = c.left[s, w]
        for h in range(table.first[s], s):
            x = x - c.matrix[s, h, w] * c.left[h, w]
        c.left[s, w] = x
    for h in range(rows):
        s = rows - 1 - h
        x = c.left[s, w] / c.matrix[s, s, w]
        for r in range(s + 1, wp.min(table.last[s] + 1, rows)):
            if table.first[r] <= s:
                x = x - c.matrix[r, s, w] * c.left[r, w]
        c.left[s, w] = x
        c.force[s, w] = c.force[s, w] + x


@wp.func
def solve_rows(t: JointTable, tree: TreeTable, table: ClosureTable, c: ClosureWork, k: TreeWork, w: int, rows: int) -> None:
    """Forces on the rows for c.rhs, and the tree's response to them.

    The raised diagonal makes rows that depend on each other share the load, and takes what rows nearly depend on, in a singular
    pose, out of the solution smoothly; elsewhere a few rounds on what is left over bring it to the last digits.
    """
    for r in range(rows):
        c.force[r, w] = real(0.0)
        c.left[r, w] = c.rhs[r, w]
        if c.soft[r, w] < real(0.0):
            c.left[r, w] = real(0.0)
    rounds = int(REFINEMENTS)  # no constant: the loop is not to be unrolled
    for i in range(rounds):
        if i > 0:
            for r in range(rows):
                got = row_rate(table, c, r, w, c.a_l, c.a_a, c.y) + wp.max(c.soft[r, w], real(0.0)) * c.force[r, w]
                c.left[r, w] = c.rhs[r, w] - got
                if c.soft[r, w] < real(0.0):
                    c.left[r, w] = real(0.0)
        solve_factored_rows(table, c, w, rows)
        clear_row_forces(t, tree, c, w, 0, tree.count)
        for r in range(rows):
            push_closure(table, c, r, w, c.force[r, w])
        tree_response(t, tree, c, k, w, 0, tree.count)


@wp.func
def constrain(
    t: JointTable, tree: TreeTable, table: ClosureTable, c: ClosureWork, k: TreeWork, w: int,
    q: wp.array2d(dtype=real), qd: wp.array2d(dtype=real), qdd: wp.array2d(dtype=real), bend: bool,
) -> None:  # fmt: skip
    """Accelerations that keep the loops closed, from those of the cut tree: J a + γ = 0; without `bend`, J a = 0.

    Springs are no constraint.
    """
    rows = table.count - table.springs.count
    for i in range(tree.count):
        link_velocity(t, tree, i, w, qd, k)
    find_closures(t, table, c, k, q, w)
    for r in range(rows):
        c.rhs[r, w] = -row_rate(table, c, r, w, k.acceleration, k.turning, qdd)
        if bend:
            c.rhs[r, w] = c.rhs[r, w] - c.gamma[r, w]
    response_matrix(t, tree, table, c, k, w, rows)
    factor_rows(table, c, w, rows)
    solve_rows(t, tree, table, c, k, w, rows)
    for i in range(tree.count):
        b = tree.body[i]
        k.acceleration[b, w] = k.acceleration[b, w] + c.a_l[b, w]
        k.turning[b, w] = k.turning[b, w] + c.a_a[b, w]
        j = tree.joint[i]
        for a in range(t.v_start[j], t.v_start[j] + t.v_size[j]):
            qdd[a, w] = qdd[a, w] + c.y[a, w]
