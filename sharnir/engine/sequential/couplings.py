"""Scalar rows beside the joints: gears, which couple two free axes, and springs between two points."""

import warp as wp

from sharnir.core.types import real, vec3
from sharnir.engine.sequential.data import Solve, Step
from sharnir.engine.sleep import sleeps
from sharnir.laws.prepare import LEAP, law_shares, resolved_spring
from sharnir.laws.rows import apply_impulse, body_response
from sharnir.model.joint_geometry import coordinate, free_axis
from sharnir.model.joint_types import GearTable, JointTable
from sharnir.model.kinematics import pose_at


@wp.func
def gear_body(joints: JointTable, gears: GearTable, g: int, i: int) -> int:
    """The four bodies of a gear: child and parent of its first joint, child and parent of its second."""
    k = gears.joint_a[g]
    if i > 1:
        k = gears.joint_b[g]
    if i % 2 == 0:
        return joints.child[k]
    return joints.parent[k]


@wp.func
def gear_rests(s: wp.array(dtype=Step), g: int, w: int) -> bool:
    """Whether bodies of a gear sleep; then all of them do, and it does nothing."""
    rests = bool(False)
    for i in range(4):
        rests = rests or sleeps(s, gear_body(s[0].joints, s[0].gears, g, i), w)
    return rests


@wp.func
def spring_rests(s: wp.array(dtype=Step), k: int, w: int) -> bool:
    """The same of a spring."""
    return sleeps(s, s[0].springs.parent[k], w) or sleeps(s, s[0].springs.child[k], w)


@wp.func
def prepare_gear(s: wp.array(dtype=Step), g: int, w: int) -> None:
    """The row of a gear, B_a − ratio · B_b, on its four bodies, and 1 / (J M⁻¹ Jᵀ); two of the bodies may be one."""
    if gear_rests(s, g, w):
        s[0].work.gear_W[g, w] = real(0.0)
        for i in range(8):
            s[0].work.gear_row[g, i, w] = vec3(real(0.0))
        return
    for side in range(2):
        k = s[0].gears.joint_a[g]
        axis = s[0].gears.axis_a[g]
        factor = real(1.0)
        if side == 1:
            k = s[0].gears.joint_b[g]
            axis = s[0].gears.axis_b[g]
            factor = -s[0].gears.ratio[g]
        pose = pose_at(s[0].joints, k, w, s[0].state.position, s[0].state.rotation)
        d, n = free_axis(s[0].joints, k, axis, pose)
        for body in range(2):
            sign = factor
            r = s[0].work.r_child[k, w]
            if body == 1:
                sign = -factor
                r = s[0].work.r_parent[k, w]
            s[0].work.gear_row[g, 4 * side + 2 * body, w] = d * sign
            s[0].work.gear_row[g, 4 * side + 2 * body + 1, w] = (wp.cross(r, d) + n) * sign
    m = real(0.0)
    for i in range(4):
        a = gear_body(s[0].joints, s[0].gears, g, i)
        for h in range(4):
            if gear_body(s[0].joints, s[0].gears, g, h) == a:
                m = m + wp.dot(s[0].work.gear_row[g, 2 * i, w], s[0].work.gear_row[g, 2 * h, w]) * s[0].bodies.inv_mass[a, w]
                turn = s[0].work.inv_inertia[a, w] * s[0].work.gear_row[g, 2 * h + 1, w]
                m = m + wp.dot(s[0].work.gear_row[g, 2 * i + 1, w], turn)
    s[0].work.gear_W[g, w] = real(1.0) / m


@wp.func
def apply_gear(s: wp.array(dtype=Step), solve: Solve, g: int, w: int, impulse: real) -> None:
    for i in range(4):
        b = gear_body(s[0].joints, s[0].gears, g, i)
        p = s[0].work.gear_row[g, 2 * i, w] * impulse
        l = s[0].work.gear_row[g, 2 * i + 1, w] * impulse
        J = s[0].work.inv_inertia[b, w]
        apply_impulse(solve.twist, b, w, p, l, vec3(real(0.0)), s[0].bodies.inv_mass[b, w], J, real(1.0))


@wp.func
def solve_gear(s: wp.array(dtype=Step), solve: Solve, g: int, w: int) -> real:
    """Δp = −(J V + bias) / (J M⁻¹ Jᵀ) of one gear, applied to its bodies."""
    u = solve.gear_bias[g, w]
    for i in range(4):
        b = gear_body(s[0].joints, s[0].gears, g, i)
        u = u + wp.dot(s[0].work.gear_row[g, 2 * i, w], solve.twist.linear[b, w])
        u = u + wp.dot(s[0].work.gear_row[g, 2 * i + 1, w], solve.twist.angular[b, w])
    impulse = -s[0].work.gear_W[g, w] * u
    apply_gear(s, solve, g, w, impulse)
    solve.gear_impulse[g, w] = solve.gear_impulse[g, w] + impulse
    return impulse


@wp.func
def coordinate_after_step(s: wp.array(dtype=Step), k: int, i: int, w: int) -> real:
    """A coordinate at the new pose; turns are counted from the last one and the speed of the step."""
    pose = pose_at(s[0].joints, k, w, s[0].work.position, s[0].work.rotation)
    old = pose_at(s[0].joints, k, w, s[0].state.position, s[0].state.rotation)
    twist = s[0].solves[0].twist
    _d, n = free_axis(s[0].joints, k, i, old)
    turned = wp.dot(n, twist.angular[s[0].joints.child[k], w] - twist.angular[s[0].joints.parent[k], w]) * s[0].settings.dt[0]
    return coordinate(s[0].joints, k, i, pose, s[0].state.q[s[0].joints.q_start[k] + i, w] + turned)


@wp.func
def gap_of_gear(s: wp.array(dtype=Step), g: int, w: int) -> real:
    """q_a − ratio · q_b at the new pose, against its value at the start."""
    q_a = coordinate_after_step(s, s[0].gears.joint_a[g], s[0].gears.axis_a[g], w)
    q_b = coordinate_after_step(s, s[0].gears.joint_b[g], s[0].gears.axis_b[g], w)
    return q_a - s[0].gears.ratio[g] * q_b - s[0].state.gear_start[g, w]


@wp.func
def prepare_spring(s: wp.array(dtype=Step), k: int, w: int) -> None:
    """Line, responses and law of a spring along the line of now, by the rule of the springs of joints (`law_shares`)."""
    p = s[0].springs.parent[k]
    c = s[0].springs.child[k]
    dt = s[0].settings.dt[0]
    r_p = wp.quat_rotate(s[0].state.rotation[p, w], s[0].springs.parent_point[k])
    r_c = wp.quat_rotate(s[0].state.rotation[c, w], s[0].springs.child_point[k])
    line = s[0].state.position[c, w] + r_c - s[0].state.position[p, w] - r_p
    length = wp.length(line)
    n = vec3(real(0.0))  # ends on one point: no direction, no force
    if length > real(1.0e-12):
        n = line / length
    pll, _pla, _paa = body_response(r_p, s[0].bodies.inv_mass[p, w], s[0].work.inv_inertia[p, w])
    cll, _cla, _caa = body_response(r_c, s[0].bodies.inv_mass[c, w], s[0].work.inv_inertia[c, w])
    s[0].work.spring_n[k, w] = n
    s[0].work.spring_r_parent[k, w] = r_p
    s[0].work.spring_r_child[k, w] = r_c
    s[0].work.spring_K[k, w] = wp.dot(n, (pll + cll) * n)
    # ½Δt times the rate of the line's speed, n·(centripetal parts) + |ṡ across n|²/length: the length is that of the chord
    twist = s[0].solves[0].twist
    w_p = twist.angular[p, w]
    w_c = twist.angular[c, w]
    rate = twist.linear[c, w] + wp.cross(w_c, r_c) - twist.linear[p, w] - wp.cross(w_p, r_p)
    across = rate - n * wp.dot(n, rate)
    turning = wp.cross(w_c, wp.cross(w_c, r_c)) - wp.cross(w_p, wp.cross(w_p, r_p))
    bend = wp.dot(n, turning)
    if length > real(1.0e-12):
        bend = bend + wp.dot(across, across) / length
    s[0].work.spring_bend[k, w] = real(0.5) * dt * bend
    before = s[0].state.velocity[c, w] + wp.cross(s[0].state.spin[c, w], r_c)
    before = before - s[0].state.velocity[p, w] - wp.cross(s[0].state.spin[p, w], r_p)
    # the way before was a chord, too
    u = wp.dot(n, before) - real(0.5) * dt * bend
    stiffness = s[0].springs.stiffness[k, w]
    damping = s[0].springs.damping[k, w]
    end, start, far, near = law_shares(s, w, LEAP, resolved_spring(dt, stiffness, damping, s[0].work.spring_K[k, w]))
    kick = s[0].settings.kick[w]
    s[0].work.spring_a[k, w] = kick * (dt * stiffness * far + damping * end)
    s[0].work.spring_b[k, w] = kick * (stiffness * (length - s[0].springs.rest[k, w] + dt * near * u) + damping * start * u)


@wp.func
def apply_spring(s: wp.array(dtype=Step), solve: Solve, k: int, w: int, impulse: real) -> None:
    p = s[0].springs.parent[k]
    c = s[0].springs.child[k]
    f = s[0].work.spring_n[k, w] * impulse
    zero = vec3(real(0.0))
    r_p = s[0].work.spring_r_parent[k, w]
    r_c = s[0].work.spring_r_child[k, w]
    apply_impulse(solve.twist, c, w, f, zero, r_c, s[0].bodies.inv_mass[c, w], s[0].work.inv_inertia[c, w], real(1.0))
    apply_impulse(solve.twist, p, w, f, zero, r_p, s[0].bodies.inv_mass[p, w], s[0].work.inv_inertia[p, w], real(-1.0))


@wp.func
def solve_spring(s: wp.array(dtype=Step), solve: Solve, k: int, w: int) -> real:
    """The law of a spring, given all other impulses: returns the change of its impulse."""
    if spring_rests(s, k, w):
        return real(0.0)
    p = s[0].springs.parent[k]
    c = s[0].springs.child[k]
    v_c = solve.twist.linear[c, w] + wp.cross(solve.twist.angular[c, w], s[0].work.spring_r_child[k, w])
    v_p = solve.twist.linear[p, w] + wp.cross(solve.twist.angular[p, w], s[0].work.spring_r_parent[k, w])
    K = s[0].work.spring_K[k, w]
    a = s[0].work.spring_a[k, w]
    b = s[0].work.spring_b[k, w]
    u0 = wp.dot(s[0].work.spring_n[k, w], v_c - v_p) + s[0].work.spring_bend[k, w] - K * solve.spring_impulse[k, w]
    impulse = -(a * u0 + b) / (real(1.0) + a * K)
    change = impulse - solve.spring_impulse[k, w]
    solve.spring_impulse[k, w] = impulse
    apply_spring(s, solve, k, w, change)
    return change
