"""The direct pass: all joints of a tree solved at once, exactly, in maximal coordinates (theory: direct pass).

The recursion of `tree` with impulses in place of forces: its "acceleration" of a body is its new velocity, its force the
momentum M V after external forces, a′ what the closing of the joint asks for. Loops are cut as in `articulated.links`, the halves
of a body move as one. One kernel makes whole steps, a thread a world:

    V⁺ = V + M⁻¹(F Δt + Jᵀp),   J V⁺ = −½Δt γ or, closed at position level, G(X ⊕ Δt V⁺) = 0
"""

import warp as wp

from sharnir.articulated.closures import (
    ClosureTable,
    ClosureWork,
    eliminate,
    find_rows,
    response_matrix,
    row_rate,
    solve_rows,
)
from sharnir.joints import AxisTable, GearTable, JointTable, coordinate, free_axis, joint_curvature, joint_gap, joint_pose
from sharnir.kinematics import pose_at
from sharnir.laws import limit_boxes, report_laws
from sharnir.model import BodyTable, Control, State
from sharnir.pivots import ALL_AT_ONCE, linearise, open_laws, solve_one, solve_several
from sharnir.rows import Laws
from sharnir.spatial import advance_rotation, rotated, turned
from sharnir.tree import (
    AxisLaws,
    TreeTable,
    TreeWork,
    backward,
    base_acceleration,
    collect_wrenches,
    forward,
    left_over,
    respond_closing,
)
from sharnir.types import inline_less, mat33, quat, real, vec3

inline_less("sharnir.direct")

KINEMATIC = wp.constant(1)
DYNAMIC = wp.constant(2)
RESOLVED = wp.constant(real(1.5))  # Δt² tr K over two moments of inertia: below, a step follows what tension brings
TORN = wp.constant(real(1.0e-14))  # m², rad²: a larger gap at the start of a step was not made by the step before


@wp.struct
class DirectSettings:
    """Numbers that may change between steps, one element each, so that a captured step reads them."""

    dt: wp.array(dtype=real)
    gravity: wp.array(dtype=vec3)
    erp: wp.array(dtype=real)
    tolerance: wp.array(dtype=real)  # N·s of the laws; m, rad of the gaps
    iterations: wp.array(dtype=wp.int32)  # cap of the passes of the laws, of the closing
    position: wp.array(dtype=wp.int32)  # 1: joints are closed at position level


@wp.struct
class Direct:
    """All that a step reads and writes; bodies are the scene's, then halves."""

    bodies: BodyTable
    whole: BodyTable
    joints: JointTable
    axes: AxisTable
    gears: GearTable
    settings: DirectSettings
    control: Control
    state: State
    tree: TreeTable
    work: TreeWork
    closures: ClosureTable
    rows: ClosureWork
    laws: Laws
    linear: AxisLaws
    mismatch: wp.array2d(dtype=real)
    slid: wp.array2d(dtype=real)
    tau: wp.array2d(dtype=real)
    speed: wp.array2d(dtype=real)  # [speed, world] new speeds of axes
    half_of: wp.array(dtype=wp.int32)
    own: wp.int32
    scene_joints: wp.int32
    acting: wp.int32
    momentum: wp.array2d(dtype=vec3)  # [body, world] L after external torques
    position: wp.array2d(dtype=vec3)  # [body, world] the new pose
    rotation: wp.array2d(dtype=quat)
    rest: wp.array2d(dtype=vec3)
    solved_l: wp.array2d(dtype=vec3)  # [body, world] the new velocity before closing
    solved_a: wp.array2d(dtype=vec3)
    stiff: wp.array2d(dtype=mat33)  # [link, world] Δt² K
    mean: wp.array2d(dtype=vec3)  # [link, world] mean spin of a link and its neighbours, and their number
    near: wp.array2d(dtype=real)
    open: wp.array(dtype=real)  # [world] largest gap at the start of the step, squared
    done: wp.array(dtype=wp.int32)
    residual: wp.array(dtype=real)


# ---- before the pass --------------------------------------------------------------------------------------------------------


@wp.func
def predict(s: wp.array(dtype=Direct), b: int, w: int):
    """Pose and velocity after external forces of a body or a half of it, into the work arrays."""
    own = s[0].half_of[b]
    dt = s[0].settings.dt[0]
    R = s[0].state.rotation[own, w]
    v = s[0].state.velocity[own, w]
    omega = s[0].state.spin[own, w]
    if s[0].whole.motion[own] == DYNAMIC:
        f = s[0].control.force[own, w] + s[0].control.force_once[own, w]
        L = s[0].state.momentum[own, w] + (s[0].control.torque[own, w] + s[0].control.torque_once[own, w]) * dt
        v = v + (s[0].settings.gravity[0] + f * s[0].whole.inv_mass[own]) * dt
        omega = wp.quat_rotate(R, s[0].whole.inv_inertia[own] * wp.quat_rotate_inv(R, L))
        s[0].momentum[b, w] = L
    s[0].work.position[b, w] = s[0].state.position[own, w]
    s[0].work.rotation[b, w] = R
    s[0].work.velocity[b, w] = v
    s[0].work.omega[b, w] = omega
    s[0].work.acceleration[b, w] = v  # what is no link has its new velocity already
    s[0].work.turning[b, w] = omega


@wp.func
def gyration(s: wp.array(dtype=Direct), b: int, w: int) -> vec3:
    """Angular acceleration of the body as if it were free."""
    own = s[0].half_of[b]
    if s[0].whole.motion[own] != DYNAMIC:
        return vec3(real(0.0))
    R = s[0].work.rotation[b, w]
    t = wp.cross(s[0].momentum[b, w], s[0].work.omega[b, w])
    return wp.quat_rotate(R, s[0].whole.inv_inertia[own] * wp.quat_rotate_inv(R, t))


@wp.func
def place_link(s: wp.array(dtype=Direct), i: int, w: int):
    """S, arm, inertia, momentum and closing speed of a link where its bodies stand."""
    j = s[0].tree.joint[i]
    body = s[0].tree.body[i]
    base = s[0].tree.base[i]
    sign = real(s[0].tree.sign[i])
    dt = s[0].settings.dt[0]
    p = s[0].joints.parent[j]
    c = s[0].joints.child[j]
    pose = pose_at(s[0].joints, j, w, s[0].work.position, s[0].work.rotation)
    x = s[0].work.position[body, w]
    out = x - pose.child_anchor
    v0 = s[0].joints.v_start[j]
    for a in range(s[0].joints.v_size[j]):
        d, n = free_axis(s[0].joints, j, a, pose)
        s[0].work.S_l[v0 + a, w] = (d + wp.cross(n, out)) * sign
        s[0].work.S_a[v0 + a, w] = n * sign
        force = real(0.0)
        if j < s[0].scene_joints:
            force = s[0].control.joint_force[v0 + a, w]
        s[0].tau[v0 + a, w] = force * dt
    s[0].work.arm[i, w] = x - s[0].work.position[base, w]
    s[0].work.out[i, w] = out
    close_l = vec3(real(0.0))
    close_a = vec3(real(0.0))
    if s[0].joints.free[j] != 63:
        gap, turned_by = joint_gap(s[0].joints, j, pose)
        s[0].open[w] = wp.max(s[0].open[w], wp.max(wp.length_sq(gap), wp.length_sq(turned_by)))
        r_p = pose.child_anchor - s[0].work.position[p, w]
        r_c = pose.child_anchor - s[0].work.position[c, w]
        w_p = s[0].work.omega[p, w]
        w_c = s[0].work.omega[c, w]
        u = s[0].work.velocity[c, w] + wp.cross(w_c, r_c) - s[0].work.velocity[p, w] - wp.cross(w_p, r_p)
        linear, angular = joint_curvature(s[0].joints, j, pose, w_p, w_c, gyration(s, p, w), gyration(s, c, w), r_p, r_c, u)
        close_l = linear * (real(-0.5) * dt * sign)
        close_a = angular * (real(-0.5) * dt * sign)
    s[0].work.bias_l[i, w] = close_l + wp.cross(close_a, out)
    s[0].work.bias_a[i, w] = close_a


@wp.func
def pull(s: wp.array(dtype=Direct), b: int, w: int, point: vec3, force: vec3):
    """Add a joint's part of a body's geometric stiffness: under tension, max(0, r·f) (E − r̂ r̂ᵀ)."""
    link = s[0].rows.link_of[b]
    r = point - s[0].work.position[b, w]
    tension = wp.dot(r, force)
    if link >= 0 and tension > real(0.0):
        E = wp.identity(n=3, dtype=real)
        s[0].stiff[link, w] = s[0].stiff[link, w] + (E - wp.outer(r, r) / wp.dot(r, r)) * tension


@wp.func
def stiffen(s: wp.array(dtype=Direct), w: int):
    """Geometric stiffness of the links times Δt², where a step does not resolve it, and mean spins of neighbours.

    A joint's force has the direction of the start of the step; a link under tension T resists turning by T·L, and once
    Δt² T L / I passes 4 it would swing ever wider. So its inertia is raised by Δt² K, for the spin relative to its neighbours.
    """
    dt = s[0].settings.dt[0]
    for i in range(s[0].tree.count):
        s[0].stiff[i, w] = mat33(real(0.0))
        s[0].mean[i, w] = s[0].work.omega[s[0].tree.body[i], w]
        s[0].near[i, w] = real(1.0)
    for i in range(s[0].tree.count):
        j = s[0].tree.joint[i]
        if j < s[0].scene_joints:
            p = s[0].joints.parent[j]
            c = s[0].joints.child[j]
            pose = pose_at(s[0].joints, j, w, s[0].work.position, s[0].work.rotation)
            f = s[0].state.joint_force[j, w] / dt
            pull(s, c, w, pose.child_anchor, f)
            pull(s, p, w, pose.child_anchor, -f)
        base = s[0].tree.base_link[i]
        if base >= 0:
            b = s[0].tree.body[i]
            s[0].mean[i, w] = s[0].mean[i, w] + s[0].work.omega[s[0].tree.base[i], w]
            s[0].near[i, w] = s[0].near[i, w] + real(1.0)
            s[0].mean[base, w] = s[0].mean[base, w] + s[0].work.omega[b, w]
            s[0].near[base, w] = s[0].near[base, w] + real(1.0)
    for i in range(s[0].tree.count):
        K = s[0].stiff[i, w] * (dt * dt)
        I = s[0].tree.row[i].inertia
        s[0].mean[i, w] = s[0].mean[i, w] / s[0].near[i, w]
        least = wp.min(wp.min(I[0, 0] + I[1, 1], I[1, 1] + I[2, 2]), I[0, 0] + I[2, 2])
        # nothing where the step resolves it, all of it from twice as far on
        s[0].stiff[i, w] = K * wp.clamp((wp.trace(K) / least - RESOLVED) / RESOLVED, real(0.0), real(1.0))


@wp.func
def momenta(s: wp.array(dtype=Direct), w: int):
    """Inertias of the links, geometric stiffness included, and their momenta after external forces."""
    for i in range(s[0].tree.count):
        b = s[0].tree.body[i]
        m = s[0].bodies.mass[b]
        I = rotated(wp.quat_to_matrix(s[0].work.rotation[b, w]), s[0].bodies.inertia[b])
        s[0].work.D[i, w] = I + s[0].stiff[i, w]
        s[0].work.Q_l[i, w] = s[0].work.velocity[b, w] * m
        s[0].work.Q_a[i, w] = I * s[0].work.omega[b, w] + s[0].stiff[i, w] * s[0].mean[i, w]
        if s[0].tree.row[i].gathers == 1:
            s[0].work.A[i, w] = mat33(real(0.0))
            s[0].work.B[i, w] = mat33(real(0.0))


@wp.func
def start_link(s: wp.array(dtype=Direct), i: int, w: int):
    """The laws of a link's joint, from the speeds before the step."""
    j = s[0].tree.joint[i]
    on = int(0)
    if j < s[0].scene_joints:
        on = s[0].control.acts[j, w]
    s[0].linear.acts[i, w] = on
    if on == 0:
        return
    p = s[0].half_of[s[0].joints.parent[j]]
    c = s[0].half_of[s[0].joints.child[j]]
    pose = pose_at(s[0].joints, j, w, s[0].work.position, s[0].work.rotation)
    w_p = s[0].state.spin[p, w]
    w_c = s[0].state.spin[c, w]
    u = s[0].state.velocity[c, w] + wp.cross(w_c, pose.child_anchor - s[0].state.position[c, w])
    u = u - s[0].state.velocity[p, w] - wp.cross(w_p, pose.child_anchor - s[0].state.position[p, w])
    for a in range(s[0].joints.v_size[j]):
        d, n = free_axis(s[0].joints, j, a, pose)
        s[0].laws.start[s[0].joints.v_start[j] + a, w] = wp.dot(d, u) + wp.dot(n, w_c - w_p)
    open_laws(s, i, w)
    linearise(s, i, w)


# ---- the pass ---------------------------------------------------------------------------------------------------------------


@wp.func
def solve_link(s: wp.array(dtype=Direct), i: int, w: int) -> real:
    """One link of the forward pass where something acts: the laws exactly, for its base's motion. Returns the mismatch, N·s."""
    j = s[0].tree.joint[i]
    v0 = s[0].joints.v_start[j]
    vl, va = base_acceleration(s[0].tree, i, w, s[0].work)
    rest = left_over(s[0].joints, s[0].tree, i, w, vl, va, s[0].work)
    off = real(0.0)
    if s[0].joints.v_size[j] == 1:
        A = real(1.0) / s[0].work.U[v0, w]
        off = solve_one(s, v0, w, A * rest[0], A, s[0].work.Y[v0, w] * rest[0] + s[0].work.y[v0, w])
    else:
        linear = s[0].work.response[i, w] * rest
        for x in range(s[0].joints.v_size[j]):
            linear[x] = linear[x] + s[0].work.y[v0 + x, w]
        off = solve_several(s, j, w, s[0].work.inverse[i, w] * rest, s[0].work.inverse[i, w], linear)
    s[0].mismatch[i, w] = off
    for at in range(v0, v0 + s[0].joints.v_size[j]):
        u = s[0].laws.end[at, w]
        s[0].speed[at, w] = u
        vl = vl + s[0].work.S_l[at, w] * u
        va = va + s[0].work.S_a[at, w] * u
    s[0].work.acceleration[s[0].tree.body[i], w] = vl + s[0].work.bias_l[i, w]
    s[0].work.turning[s[0].tree.body[i], w] = va + s[0].work.bias_a[i, w]
    return off


@wp.func
def outward(s: wp.array(dtype=Direct), w: int, exact: bool) -> real:
    """New velocities; laws solved exactly, or as linear. Returns the largest mismatch of the two, N·s."""
    most = real(0.0)
    for i in range(s[0].tree.count):
        if exact and s[0].linear.acts[i, w] == 1:
            most = wp.max(most, solve_link(s, i, w))
        else:
            forward(s[0].joints, s[0].tree, i, w, s[0].speed, s[0].linear, s[0].work)
    return most


@wp.func
def soften(s: wp.array(dtype=Direct), r: int, i: int, w: int):
    """Softness and rest of a spring's row: p = −a u − b with a = Δt (Δt k + c), b = Δt k (length − rest)."""
    dt = s[0].settings.dt[0]
    k = s[0].closures.springs.stiffness[i]
    a = dt * (dt * k + s[0].closures.springs.damping[i])
    s[0].rows.soft[r, w] = real(-1.0)
    if a > real(0.0) and wp.length_sq(s[0].rows.child_l[r, w]) > real(0.0):
        s[0].rows.soft[r, w] = real(1.0) / a
        s[0].rows.rhs[r, w] = s[0].rows.rhs[r, w] - s[0].rows.gap[r, w] * dt * k / a


@wp.func
def close_rows(s: wp.array(dtype=Direct), w: int):
    """Impulses on welds, rods, gears and springs, added to the links' u: J V⁺ = −½Δt γ."""
    rows = s[0].closures.count
    hard = rows - s[0].closures.springs.count
    dt = s[0].settings.dt[0]
    find_rows(s[0].joints, s[0].closures, s[0].rows, s[0].work, s[0].state.q, w)
    for r in range(rows):
        free = row_rate(s[0].closures, s[0].rows, r, w, s[0].work.acceleration, s[0].work.turning, s[0].speed)
        s[0].rows.rhs[r, w] = real(-0.5) * dt * s[0].rows.gamma[r, w] - free
        if r >= hard:
            soften(s, r, r - hard, w)
    response_matrix(s[0].joints, s[0].tree, s[0].closures, s[0].rows, s[0].work, w, rows)
    eliminate(s[0].rows, w, rows)
    solve_rows(s[0].joints, s[0].tree, s[0].closures, s[0].rows, s[0].work, w, rows)
    for i in range(s[0].tree.count):
        j = s[0].tree.joint[i]
        for a in range(s[0].joints.v_start[j], s[0].joints.v_start[j] + s[0].joints.v_size[j]):
            s[0].work.u[a, w] = s[0].work.u[a, w] + s[0].rows.u[a, w]


@wp.func
def solve(s: wp.array(dtype=Direct), w: int):
    """Passes until laws and their linearisations agree: new velocities in work.acceleration and work.turning."""
    passes = int(0)
    off = real(0.0)
    again = int(1)
    while again == 1:
        momenta(s, w)
        backward(s[0].bodies, s[0].joints, s[0].tree, w, s[0].tau, s[0].linear, s[0].work)
        if s[0].closures.count > 0:
            outward(s, w, False)
            close_rows(s, w)
        off = outward(s, w, True)
        passes = passes + 1
        again = 0
        if off > s[0].settings.tolerance[0] and passes < s[0].settings.iterations[0]:
            again = 1
            for i in range(s[0].tree.count):
                if s[0].linear.acts[i, w] == 1 and s[0].mismatch[i, w] > s[0].settings.tolerance[0]:
                    linearise(s, i, w)
                    if passes > ALL_AT_ONCE:
                        break  # one at a time
    s[0].done[w] = passes
    s[0].residual[w] = off


# ---- closing ----------------------------------------------------------------------------------------------------------------


@wp.func
def advance(s: wp.array(dtype=Direct), b: int, w: int):
    """X ⊕ Δt V⁺ from the start of the step. L takes the impulses that ω took (`advance_rotation`)."""
    own = s[0].half_of[b]
    dt = s[0].settings.dt[0]
    x = s[0].state.position[own, w]
    move = s[0].work.acceleration[b, w] * dt + s[0].state.rest[own, w]
    there = x + move
    s[0].position[b, w] = there
    s[0].rest[b, w] = move - (there - x)
    R = s[0].state.rotation[own, w]
    if s[0].whole.motion[own] == DYNAMIC:
        I = s[0].whole.inertia[own]
        taken = wp.quat_rotate_inv(R, s[0].work.turning[b, w] - s[0].work.omega[b, w])
        L = s[0].momentum[b, w] + wp.quat_rotate(R, I * taken)
        R = advance_rotation(R, L, I, s[0].whole.inv_inertia[own], dt)
    elif s[0].whole.motion[own] == KINEMATIC:
        R = turned(R, s[0].work.turning[b, w] * dt)
    s[0].rotation[b, w] = R


@wp.func
def gaps(s: wp.array(dtype=Direct), w: int) -> real:
    """Closing speeds −G/Δt of the tree's joints at the new pose, as a′ of its links; returns the largest gap, m or rad."""
    most = real(0.0)
    rate = real(-1.0) / s[0].settings.dt[0]
    for i in range(s[0].tree.count):
        j = s[0].tree.joint[i]
        linear = vec3(real(0.0))
        angular = vec3(real(0.0))
        if s[0].joints.free[j] != 63:
            linear, angular = joint_gap(s[0].joints, j, pose_at(s[0].joints, j, w, s[0].position, s[0].rotation))
            most = wp.max(most, wp.max(wp.length(linear), wp.length(angular)))
            linear = linear * (rate * real(s[0].tree.sign[i]))
            angular = angular * (rate * real(s[0].tree.sign[i]))
        s[0].work.close_l[i, w] = linear + wp.cross(angular, s[0].work.out[i, w])
        s[0].work.close_a[i, w] = angular
    return most


@wp.func
def new_coordinate(s: wp.array(dtype=Direct), k: int, i: int, w: int) -> real:
    """A coordinate at the new pose; turns are counted from the last one and the speed of the step."""
    pose = pose_at(s[0].joints, k, w, s[0].position, s[0].rotation)
    at = s[0].joints.v_start[k] + i
    return coordinate(
        s[0].joints, k, i, pose, s[0].state.q[s[0].joints.q_start[k] + i, w] + s[0].speed[at, w] * s[0].settings.dt[0]
    )


@wp.func
def gear_gap(s: wp.array(dtype=Direct), g: int, w: int) -> real:
    """q_a − ratio · q_b at the new pose, against its value at the start."""
    q_a = new_coordinate(s, s[0].gears.joint_a[g], s[0].gears.axis_a[g], w)
    q_b = new_coordinate(s, s[0].gears.joint_b[g], s[0].gears.axis_b[g], w)
    return q_a - s[0].gears.ratio[g] * q_b - s[0].state.gear_start[g, w]


@wp.func
def row_gaps(s: wp.array(dtype=Direct), w: int) -> real:
    """Right-hand sides that close rods and gears, and keep halves together, on top of the response of the tree's joints."""
    hard = s[0].closures.count - s[0].closures.springs.count
    first = 6 * s[0].closures.welds
    most = real(0.0)
    dt = s[0].settings.dt[0]
    for r in range(s[0].closures.count):
        s[0].rows.rhs[r, w] = -row_rate(s[0].closures, s[0].rows, r, w, s[0].work.change_l, s[0].work.change_a, s[0].work.change)
        if r >= first and r < hard:
            gap = real(0.0)
            g = r - first
            if g < s[0].closures.rods:
                j = s[0].closures.rod_joint[g]
                linear, _angular = joint_gap(s[0].joints, j, pose_at(s[0].joints, j, w, s[0].position, s[0].rotation))
                gap = wp.dot(s[0].rows.child_l[r, w], linear)
            else:
                gap = gear_gap(s, g - s[0].closures.rods, w)
            most = wp.max(most, wp.abs(gap))
            s[0].rows.rhs[r, w] = s[0].rows.rhs[r, w] - gap / dt
        elif r >= hard and s[0].rows.soft[r, w] < real(0.0):
            s[0].rows.rhs[r, w] = real(0.0)
    return most


@wp.func
def displace(s: wp.array(dtype=Direct), b: int, w: int, v: vec3, omega: vec3):
    """Move a body's new pose alone, as by a velocity for the time of a step."""
    dt = s[0].settings.dt[0]
    s[0].position[b, w] = s[0].position[b, w] + v * dt
    s[0].rotation[b, w] = turned(s[0].rotation[b, w], omega * dt)


@wp.func
def close_once(s: wp.array(dtype=Direct), w: int, level: int) -> real:
    """One pass of closing, by velocities that stay (level 1) or by displacements alone; returns how far joints were open."""
    rows = s[0].closures.count
    off = gaps(s, w)
    respond_closing(s[0].joints, s[0].tree, w, s[0].work)
    if rows > 0:
        off = wp.max(off, row_gaps(s, w))
        solve_rows(s[0].joints, s[0].tree, s[0].closures, s[0].rows, s[0].work, w, rows)
    if off <= s[0].settings.tolerance[1]:
        return off
    for i in range(s[0].tree.count):
        b = s[0].tree.body[i]
        dv = s[0].work.change_l[b, w]
        dw = s[0].work.change_a[b, w]
        if rows > 0:
            dv = dv + s[0].rows.a_l[b, w]
            dw = dw + s[0].rows.a_a[b, w]
        if level == 1:
            s[0].work.acceleration[b, w] = s[0].work.acceleration[b, w] + dv
            s[0].work.turning[b, w] = s[0].work.turning[b, w] + dw
            advance(s, b, w)
        else:
            displace(s, b, w, dv, dw)
    return off


@wp.func
def close(s: wp.array(dtype=Direct), w: int):
    """Close the joints at the end of the step.

    At position level the velocities take what it needs, so that the step is symmetric. A gap that was there before is none of
    theirs, and where passes do not contract they stay as they were: then poses alone are moved.
    """
    level = s[0].settings.position[0]
    if s[0].open[w] > TORN:
        level = 0
    for b in range(s[0].bodies.count):
        s[0].solved_l[b, w] = s[0].work.acceleration[b, w]
        s[0].solved_a[b, w] = s[0].work.turning[b, w]
        advance(s, b, w)
    last = real(1.0e30)
    for _i in range(s[0].settings.iterations[1]):
        off = close_once(s, w, level)
        if off <= s[0].settings.tolerance[1]:
            break
        if level == 1 and not off < last:
            level = 0
            for b in range(s[0].bodies.count):
                s[0].work.acceleration[b, w] = s[0].solved_l[b, w]
                s[0].work.turning[b, w] = s[0].solved_a[b, w]
                advance(s, b, w)
        last = off


@wp.func
def repair_link(s: wp.array(dtype=Direct), i: int, w: int) -> int:
    """Speeds that take passed limits of a link's joint back in, as its a′; 1 where there are any."""
    s[0].work.close_l[i, w] = vec3(real(0.0))
    s[0].work.close_a[i, w] = vec3(real(0.0))
    j = s[0].tree.joint[i]
    n = s[0].joints.v_size[j]
    v0 = s[0].joints.v_start[j]
    passed = int(0)
    if s[0].linear.acts[i, w] == 1:
        for at in range(v0, v0 + n):
            if s[0].laws.lower[at, w] >= real(0.0) or s[0].laws.upper[at, w] <= real(0.0):
                passed = 1
    if passed == 0:
        return 0
    for at in range(v0, v0 + n):
        s[0].laws.start[at, w] = real(0.0)
    limit_boxes(s, s[0].laws, j, w, pose_at(s[0].joints, j, w, s[0].position, s[0].rotation), real(1.0), False)
    turn = n - s[0].joints.turns[j]
    found = int(0)
    for x in range(n):
        at = v0 + x
        off = wp.max(s[0].laws.lower[at, w], real(0.0)) + wp.min(s[0].laws.upper[at, w], real(0.0))
        if wp.abs(off) * s[0].settings.dt[0] > s[0].settings.tolerance[1]:
            found = 1
            if s[0].joints.ball[j] != 0 and x >= turn:
                row = s[0].laws.row[at, w]
                for h in range(3):
                    by = row[h] * off / wp.dot(row, row)
                    s[0].work.close_l[i, w] = s[0].work.close_l[i, w] + s[0].work.S_l[v0 + turn + h, w] * by
                    s[0].work.close_a[i, w] = s[0].work.close_a[i, w] + s[0].work.S_a[v0 + turn + h, w] * by
            else:
                s[0].work.close_l[i, w] = s[0].work.close_l[i, w] + s[0].work.S_l[at, w] * off
                s[0].work.close_a[i, w] = s[0].work.close_a[i, w] + s[0].work.S_a[at, w] * off
    return found


@wp.func
def repair(s: wp.array(dtype=Direct), w: int):
    """Take passed limits back in, by displacements alone."""
    passed = int(0)
    for i in range(s[0].tree.count):
        passed = wp.max(passed, repair_link(s, i, w))
    if passed == 1:
        respond_closing(s[0].joints, s[0].tree, w, s[0].work)
        for i in range(s[0].tree.count):
            b = s[0].tree.body[i]
            displace(s, b, w, s[0].work.change_l[b, w], s[0].work.change_a[b, w])


# ---- after the pass ---------------------------------------------------------------------------------------------------------


@wp.func
def reactions(s: wp.array(dtype=Direct), w: int):
    """Constraint impulses of the joints: the momenta that links took, less those of rows and along free axes."""
    for i in range(s[0].tree.count):
        b = s[0].tree.body[i]
        I = rotated(wp.quat_to_matrix(s[0].work.rotation[b, w]), s[0].bodies.inertia[b])
        s[0].work.Q_l[i, w] = (s[0].work.acceleration[b, w] - s[0].work.velocity[b, w]) * s[0].bodies.mass[b]
        s[0].work.Q_a[i, w] = I * (s[0].work.turning[b, w] - s[0].work.omega[b, w])
    for r in range(s[0].closures.count):
        if s[0].rows.child[r] >= 0:
            take_row(s, s[0].rows.link_of[s[0].rows.child[r]], w, s[0].rows.child_l[r, w], s[0].rows.child_a[r, w], r)
            take_row(s, s[0].rows.link_of[s[0].rows.parent[r]], w, s[0].rows.parent_l[r, w], s[0].rows.parent_a[r, w], r)
    collect_wrenches(s[0].tree, w, s[0].work)
    for i in range(s[0].tree.count):
        j = s[0].tree.joint[i]
        if j < s[0].scene_joints:
            sign = real(s[0].tree.sign[i])
            f = s[0].work.Q_l[i, w] * sign
            pose = pose_at(s[0].joints, j, w, s[0].work.position, s[0].work.rotation)
            l = s[0].work.Q_a[i, w] * sign + wp.cross(s[0].work.position[s[0].tree.body[i], w] - pose.child_anchor, f)
            for a in range(s[0].joints.v_size[j]):
                d, n = free_axis(s[0].joints, j, a, pose)
                share = wp.dot(d, f) + wp.dot(n, l)
                f = f - d * share
                l = l - n * share
            s[0].state.joint_force[j, w] = f
            s[0].state.joint_torque[j, w] = l


@wp.func
def take_row(s: wp.array(dtype=Direct), link: int, w: int, l: vec3, a: vec3, r: int):
    if link >= 0:
        s[0].work.Q_l[link, w] = s[0].work.Q_l[link, w] - l * s[0].rows.force[r, w]
        s[0].work.Q_a[link, w] = s[0].work.Q_a[link, w] - a * s[0].rows.force[r, w]


@wp.func
def bad_body(s: wp.array(dtype=Direct), w: int) -> int:
    """1 + the first body whose new state is not finite, or 0."""
    for b in range(s[0].own):
        x = s[0].position[b, w]
        v = s[0].work.acceleration[b, w]
        o = s[0].work.turning[b, w]
        R = s[0].rotation[b, w]
        if s[0].whole.motion[b] == DYNAMIC and not wp.isfinite(wp.dot(x, x) + wp.dot(v, v) + wp.dot(o, o) + wp.dot(R, R)):
            return b + 1
    return 0


@wp.func
def count_turns(s: wp.array(dtype=Direct), k: int, w: int):
    """Bring the angles of a joint with one or two free rotations up to date, each on the turn its speed leads to."""
    turns = s[0].joints.turns[k]
    if s[0].joints.v_size[k] == 0 or turns == 0 or turns == 3:
        return
    p = s[0].half_of[s[0].joints.parent[k]]
    c = s[0].half_of[s[0].joints.child[k]]
    turn = (s[0].work.turning[c, w] - s[0].work.turning[p, w]) * s[0].settings.dt[0]
    pose = joint_pose(
        s[0].joints, k, s[0].state.position[p, w], s[0].state.rotation[p, w], s[0].state.position[c, w], s[0].state.rotation[c, w]
    )
    for i in range(s[0].joints.v_size[k] - turns, s[0].joints.v_size[k]):
        at = s[0].joints.q_start[k] + i
        near = s[0].state.q[at, w]
        if wp.length_sq(turn) > real(1.0):  # a slower one is told by the last angle alone
            _d, n = free_axis(s[0].joints, k, i, pose)
            near = near + wp.dot(n, turn)
        s[0].state.q[at, w] = coordinate(s[0].joints, k, i, pose, near)


@wp.func
def commit(s: wp.array(dtype=Direct), w: int):
    """The new state becomes the state."""
    dt = s[0].settings.dt[0]
    reactions(s, w)
    for i in range(s[0].tree.count):
        if s[0].linear.acts[i, w] == 1:
            report_laws(s, s[0].laws, s[0].tree.joint[i], w)
    for b in range(s[0].own):
        v = s[0].work.acceleration[b, w]
        R = s[0].rotation[b, w]
        s[0].state.acceleration[b, w] = (v - s[0].state.velocity[b, w]) / dt
        s[0].state.velocity[b, w] = v
        if s[0].whole.motion[b] == DYNAMIC:
            old = s[0].state.rotation[b, w]
            taken = wp.quat_rotate_inv(old, s[0].work.turning[b, w] - s[0].work.omega[b, w])
            L = s[0].momentum[b, w] + wp.quat_rotate(old, s[0].whole.inertia[b] * taken)
            s[0].state.momentum[b, w] = L
            s[0].state.spin[b, w] = wp.quat_rotate(R, s[0].whole.inv_inertia[b] * wp.quat_rotate_inv(R, L))
        s[0].state.position[b, w] = s[0].position[b, w]
        s[0].state.rest[b, w] = s[0].rest[b, w]
        s[0].state.rotation[b, w] = R
        s[0].control.force_once[b, w] = vec3(real(0.0))
        s[0].control.torque_once[b, w] = vec3(real(0.0))
    for k in range(s[0].scene_joints):
        count_turns(s, k, w)
    at = 6 * s[0].closures.welds
    for i in range(s[0].closures.rods):
        s[0].state.joint_force[s[0].closures.rod_joint[i], w] = s[0].rows.child_l[at + i, w] * s[0].rows.force[at + i, w]
    at = at + s[0].closures.rods
    for i in range(s[0].closures.gears):
        s[0].state.gear_impulse[i, w] = s[0].rows.force[at + i, w]
    at = at + s[0].closures.gears
    for i in range(s[0].closures.springs.count):
        s[0].state.spring_impulse[i, w] = s[0].rows.force[at + i, w]
    s[0].state.time[w] = s[0].state.time[w] + wp.float64(dt)


@wp.kernel(module="sharnir.direct")
def direct_steps(s: wp.array(dtype=Direct), first: int, n: wp.array(dtype=wp.int32)):
    """n steps of a world; where one would not be finite, the world is marked and its state stays."""
    w = first + wp.tid()
    for _step in range(n[0]):
        if s[0].state.failed[w] != 0:
            break
        for b in range(s[0].bodies.count):
            predict(s, b, w)
        s[0].open[w] = real(0.0)
        for i in range(s[0].tree.count):
            place_link(s, i, w)
            if s[0].acting == 1:
                start_link(s, i, w)
        stiffen(s, w)
        solve(s, w)
        close(s, w)
        if s[0].acting == 1:
            repair(s, w)
        bad = bad_body(s, w)
        s[0].state.failed[w] = bad
        if bad == 0:
            commit(s, w)
