"""What acts on the free axes, inside a step: the laws of every axis set up, solved with the joint's block, and reported."""

import warp as wp

from sharnir.impulse.data import Solve, Step
from sharnir.joints import (
    JointPose,
    ball_pull,
    cardan_limits,
    child_frame,
    coordinate,
    free_axis,
    parent_frame,
    swing_twist_limits,
)
from sharnir.kinematics import pose_at
from sharnir.rows import AxisRows, Laws, Twists, friction_3d, solve_axis
from sharnir.spatial import exp_quat, log_quat
from sharnir.types import mat33, mat66, real, vec3

INFINITE = wp.constant(real(1.0e30))
MOST_REPAIR = wp.constant(real(0.02))  # m, rad: of a passed limit in one step, or joints would be torn open


@wp.func
def prepare_rows(s: Step, k: int, w: int, pose: JointPose, Kll: mat33, Kla: mat33, Kaa: mat33):
    """B, N and A of a joint's axes: N = (E − W K) Bᵀ keeps the joint closed, A = B K N."""
    n = s.joints.v_size[k]
    v0 = s.joints.v_start[k]
    p = s.joints.parent[k]
    c = s.joints.child[k]
    ll = s.work.W_ll[k, w]
    la = s.work.W_la[k, w]
    aa = s.work.W_aa[k, w]
    A = mat66()
    for i in range(n):
        d, m = free_axis(s.joints, k, i, pose)
        s.work.axis.d[v0 + i, w] = d
        s.work.axis.n[v0 + i, w] = m
    for i in range(n):
        d = s.work.axis.d[v0 + i, w]
        m = s.work.axis.n[v0 + i, w]
        kl = Kll * d + Kla * m
        ka = d * Kla + Kaa * m
        force = -(ll * kl + la * ka)
        torque = -(kl * la + aa * ka)
        s.work.axis.force[v0 + i, w] = force
        s.work.axis.torque[v0 + i, w] = torque
        Nl = d + force
        Na = m + torque
        s.work.axis.turn_parent[v0 + i, w] = s.work.inv_inertia[p, w] * (wp.cross(s.work.r_parent[k, w], Nl) + Na)
        s.work.axis.turn_child[v0 + i, w] = s.work.inv_inertia[c, w] * (wp.cross(s.work.r_child[k, w], Nl) + Na)
        kl = Kll * Nl + Kla * Na
        ka = Nl * Kla + Kaa * Na
        for j in range(n):
            A[j, i] = wp.dot(s.work.axis.d[v0 + j, w], kl) + wp.dot(s.work.axis.n[v0 + j, w], ka)
    if n == 3:  # their inverse in the corner that is not used
        inverse = wp.inverse(mat33(A[0, 0], A[0, 1], A[0, 2], A[1, 0], A[1, 1], A[1, 2], A[2, 0], A[2, 1], A[2, 2]))
        for i in range(3):
            for j in range(3):
                A[3 + i, 3 + j] = inverse[i, j]
    s.work.axis.response[k, w] = A


@wp.func
def axis_speed(s: Step, k: int, i: int, w: int, linear: wp.array2d(dtype=vec3), angular: wp.array2d(dtype=vec3)) -> real:
    """Speed of axis i of joint k (at its rows of this step) for given velocities of the bodies."""
    p = s.joints.parent[k]
    c = s.joints.child[k]
    w_p = angular[p, w]
    w_c = angular[c, w]
    u = linear[c, w] + wp.cross(w_c, s.work.r_child[k, w]) - linear[p, w] - wp.cross(w_p, s.work.r_parent[k, w])
    at = s.joints.v_start[k] + i
    return wp.dot(s.work.axis.d[at, w], u) + wp.dot(s.work.axis.n[at, w], w_c - w_p)


@wp.func
def decay(s: Step, at: int):
    """exp(−Δt R/L) of a motor's current, and the mean of that exponential over the step; (0, 0) without inductance."""
    x = s.settings.dt[0] * s.axes.resistance[at]
    L = s.axes.inductance[at]
    if real(1.0e-3) * x >= L:
        return real(0.0), L / x
    x = x / L
    e = wp.exp(-x)
    return e, (real(1.0) - e) / x


@wp.func
def motor_law(s: Step, at: int, w: int, u_start: real):
    """(a, b, efficiency) of a DC motor: the mean current of the step at speed u, exact, and the rotor's inertia.

    i(t) = i∞ + (i − i∞) exp(−t R/L),  i∞ = (V − k N u)/R.
    """
    dt = s.settings.dt[0]
    N = s.axes.gear_ratio[at]
    k = s.axes.torque_constant[at]
    R = s.axes.resistance[at]
    eta = s.axes.efficiency[at]
    if s.state.current[at, w] * N * u_start < real(0.0):  # the joint drives the motor
        eta = real(1.0) / eta
    _e, mean = decay(s, at)
    rotor = s.axes.rotor_inertia[at] * N * N
    gain = dt * N * eta * k
    a = gain * (real(1.0) - mean) * k * N / R + rotor
    b = -gain * ((real(1.0) - mean) * s.control.voltage[at, w] / R + mean * s.state.current[at, w]) - rotor * u_start
    return a, b, eta


@wp.func
def limit_box(s: Step, laws: Laws, at: int, w: int, q: real, u_start: real, erp: real):
    """Speeds that keep q inside its limits to the end of the step; outside already, none further out (times erp, back in).

    A limit with restitution that the start speed would pass is left at −e times that speed.
    """
    dt = s.settings.dt[0]
    e = s.axes.restitution[at]
    low = q - s.axes.lower[at]
    high = s.axes.upper[at] - q
    lower = -INFINITE
    upper = INFINITE
    if low < INFINITE:
        lower = -low / dt
        if low < real(0.0):
            lower = wp.min(lower, MOST_REPAIR / dt) * erp
        if e > real(0.0) and u_start < real(0.0) and low + dt * u_start < real(0.0):
            lower = -e * u_start
    if high < INFINITE:
        upper = high / dt
        if high < real(0.0):
            upper = wp.max(upper, -MOST_REPAIR / dt) * erp
        if e > real(0.0) and u_start > real(0.0) and high - dt * u_start < real(0.0):
            upper = -e * u_start
    laws.lower[at, w] = lower
    laws.upper[at, w] = wp.max(lower, upper)


@wp.func
def limit_boxes(s: Step, laws: Laws, k: int, w: int, pose: JointPose, erp: real, start: bool):
    """The limits of every axis of a joint, at the start of a step, where speeds count (restitution), or at its end."""
    twist = s.solves[0].twist
    n = s.joints.v_size[k]
    v0 = s.joints.v_start[k]
    simple = n
    if s.joints.ball[k] != 0:
        simple = n - 3
        at = v0 + simple
        turn = wp.quat_inverse(parent_frame(s.joints, k, pose)) * child_frame(s.joints, k, pose)
        values = vec3(real(0.0))
        rows = mat33(real(0.0))
        if s.joints.ball[k] == 1:
            values, rows = cardan_limits(wp.quat_to_matrix(turn))
        else:
            values, rows = swing_twist_limits(turn, s.axes.upper[at], s.axes.upper[at + 1])
        omega = vec3(real(0.0))
        if start:
            for j in range(3):
                omega[j] = axis_speed(s, k, simple + j, w, s.state.velocity, s.state.spin)
        for j in range(3):
            row = vec3(rows[0, j], rows[1, j], rows[2, j])
            laws.row[at + j, w] = row
            laws.lower[at + j, w] = -INFINITE
            laws.upper[at + j, w] = INFINITE
            if s.joints.ball[k] == 1 or j == 2:
                limit_box(s, laws, at + j, w, values[j], wp.dot(row, omega), erp)
            elif j == 0 and s.axes.upper[at] < INFINITE:
                room = values[0]
                if room < real(0.0):
                    room = wp.max(room, -MOST_REPAIR) * erp
                laws.lower[at, w] = -room / s.settings.dt[0]
    for i in range(simple):
        at = v0 + i
        u_start = real(0.0)
        if start:
            u_start = axis_speed(s, k, i, w, s.state.velocity, s.state.spin)
        if s.axes.lower[at] > -INFINITE or s.axes.upper[at] < INFINITE:
            near = s.state.q[s.joints.q_start[k] + i, w]
            if not start:
                near = near + s.settings.dt[0] * axis_speed(s, k, i, w, twist.linear, twist.angular)
            limit_box(s, laws, at, w, coordinate(s.joints, k, i, pose, near), u_start, erp)


@wp.func
def friction_bounds(s: Step, laws: Laws, k: int, i: int, w: int):
    """What holds and what slides on the group of axis i: Δt (static or dynamic) + load · |last constraint impulse|."""
    n = s.joints.v_size[k]
    v0 = s.joints.v_start[k]
    at = v0 + i
    dt = s.settings.dt[0]
    load = s.control.friction_load[at, w] * wp.length(s.state.joint_force[k, w])
    static = s.control.friction_static[at, w] * dt + load
    dynamic = s.control.friction_dynamic[at, w] * dt + load
    stribeck = s.control.friction_stribeck[at, w]
    hold = static
    slide = dynamic
    if s.state.time[w] == wp.float64(0.0) and s.control.friction_load[at, w] > real(0.0):
        hold = INFINITE  # the load is not known yet: what rests, rests in the first step
        for j in range(n):
            if axis_speed(s, k, j, w, s.state.velocity, s.state.spin) != real(0.0):
                hold = static
    if static > dynamic:
        speed2 = real(0.0)
        for j in range(n):
            if s.axes.group[v0 + j] == s.axes.group[at]:
                u = axis_speed(s, k, j, w, s.state.velocity, s.state.spin)
                speed2 = speed2 + u * u
        if stribeck > real(0.0):
            slide = dynamic + (static - dynamic) * wp.exp(-speed2 / (stribeck * stribeck))
        elif s.state.stuck[at, w] == 0 and speed2 > real(0.0):
            hold = dynamic
    laws.hold[at, w] = hold
    laws.slide[at, w] = slide


@wp.func
def prepare_laws(s: Step, laws: Laws, k: int, w: int, pose: JointPose):
    """The laws of a joint's axes at velocity level, started from the impulses of the last step."""
    dt = s.settings.dt[0]
    v0 = s.joints.v_start[k]
    limit_boxes(s, laws, k, w, pose, real(0.0), True)
    moves = s.joints.v_size[k] - s.joints.turns[k]
    spring_turn = vec3(real(0.0))
    servo_turn = vec3(real(0.0))
    if s.joints.turns[k] == 3:
        turn = wp.quat_inverse(parent_frame(s.joints, k, pose)) * child_frame(s.joints, k, pose)
        at = v0 + moves
        rest = vec3(s.axes.rest[at], s.axes.rest[at + 1], s.axes.rest[at + 2])
        spring_turn = ball_pull(turn, rest, vec3(s.axes.stiffness[at], s.axes.stiffness[at + 1], s.axes.stiffness[at + 2]))
        wanted = vec3(s.control.servo_position[at, w], s.control.servo_position[at + 1, w], s.control.servo_position[at + 2, w])
        servo_turn = log_quat(turn * wp.quat_inverse(exp_quat(wanted)))
    for i in range(s.joints.v_size[k]):
        at = v0 + i
        ball = s.joints.turns[k] == 3 and i >= moves
        laws.start[at, w] = axis_speed(s, k, i, w, s.state.velocity, s.state.spin)
        a = dt * (s.axes.damping[at] + s.control.friction_viscous[at, w])
        b = real(0.0)
        stiffness = s.axes.stiffness[at]
        kp = s.control.servo_kp[at, w]
        kd = s.control.servo_kd[at, w]
        stretch = real(0.0)  # how far the spring, and the servo, is off
        error = real(0.0)
        if ball:
            stretch = spring_turn[i - moves]
            error = servo_turn[i - moves]
        elif stiffness > real(0.0) or kp > real(0.0):
            q = coordinate(s.joints, k, i, pose, s.state.q[s.joints.q_start[k] + i, w])
            stretch = stiffness * (q - s.axes.rest[at])
            error = q - s.control.servo_position[at, w]
        if stiffness > real(0.0):
            a = a + dt * dt * stiffness
            b = dt * stretch
        if s.axes.resistance[at] > real(0.0):
            motor_a, motor_b, eta = motor_law(s, at, w, laws.start[at, w])
            a = a + motor_a
            b = b + motor_b
            laws.efficiency[at, w] = eta
        laws.a[at, w] = a
        laws.b[at, w] = b
        push = kp * error - kd * s.control.servo_velocity[at, w] - s.control.servo_torque[at, w]
        laws.servo_a[at, w] = dt * (dt * kp + kd)
        laws.servo_b[at, w] = dt * push
        laws.servo_cap[at, w] = s.control.servo_max_force[at, w] * dt
        friction_bounds(s, laws, k, i, w)
        laws.impulse[at, w] = s.state.axis_impulse[at, w]
        laws.friction[at, w] = s.state.friction_impulse[at, w]
        laws.limit[at, w] = s.state.limit_impulse[at, w]
        laws.stuck[at, w] = s.state.stuck[at, w]


@wp.func
def only_ball_friction(s: Step, laws: Laws, k: int, w: int) -> bool:
    """Whether a joint has three rotations with one friction bound, and nothing else acts on them."""
    v0 = s.joints.v_start[k]
    if s.joints.v_size[k] != 3 or s.joints.turns[k] != 3 or s.joints.ball[k] != 0:
        return False
    plain = s.axes.group[v0 + 1] == 0 and s.axes.group[v0 + 2] == 0
    for i in range(v0, v0 + 3):
        if laws.a[i, w] + laws.servo_a[i, w] != real(0.0) or laws.b[i, w] != real(0.0) or laws.servo_b[i, w] != real(0.0):
            plain = False
    return plain


@wp.func
def prepare_pseudo_laws(s: Step, laws: Laws, held: Laws, k: int, w: int, pose: JointPose):
    """The laws at position level: what friction holds stays where it is, a passed limit is closed."""
    v0 = s.joints.v_start[k]
    limit_boxes(s, laws, k, w, pose, s.settings.erp[0], False)
    for i in range(s.joints.v_size[k]):
        at = v0 + i
        hold = real(0.0)
        if held.stuck[at, w] == 1:
            hold = INFINITE
        laws.hold[at, w] = hold
        laws.slide[at, w] = real(0.0)
        laws.impulse[at, w] = real(0.0)
        laws.friction[at, w] = real(0.0)
        laws.limit[at, w] = real(0.0)


@wp.func
def apply_axis(
    twist: Twists, rows: AxisRows, force: wp.array2d(dtype=vec3), torque: wp.array2d(dtype=vec3),
    k: int, at: int, w: int, p: int, c: int, inv_mass_p: real, inv_mass_c: real, impulse: real,
):  # fmt: skip
    """Apply an impulse on a free axis with the constraint impulse that keeps the joint closed."""
    comes = rows.force[at, w]
    Nl = (rows.d[at, w] + comes) * impulse
    twist.linear[p, w] = twist.linear[p, w] - Nl * inv_mass_p
    twist.linear[c, w] = twist.linear[c, w] + Nl * inv_mass_c
    twist.angular[p, w] = twist.angular[p, w] - rows.turn_parent[at, w] * impulse
    twist.angular[c, w] = twist.angular[c, w] + rows.turn_child[at, w] * impulse
    force[k, w] = force[k, w] + comes * impulse
    torque[k, w] = torque[k, w] + rows.torque[at, w] * impulse


@wp.func
def solve_one(laws: Laws, at: int, w: int, u: real, A: real) -> real:
    """The laws of a joint's only axis; returns the change of its impulse."""
    f = laws.friction[at, w]
    slide = laws.slide[at, w]
    a = laws.a[at, w] + laws.servo_a[at, w]
    inside = u > laws.lower[at, w] and u < laws.upper[at, w]
    slides = laws.stuck[at, w] == 0 and u * f < real(0.0) and wp.abs(f) == slide
    if slides and inside and a == real(0.0) and laws.limit[at, w] == real(0.0):
        laws.taken[at, w] = -f * u
        return real(0.0)  # it slides on, as it did
    change, f, limit, held, taken = solve_axis(
        u, A, laws.impulse[at, w], laws.a[at, w], laws.b[at, w], laws.servo_a[at, w], laws.servo_b[at, w],
        laws.servo_cap[at, w], laws.hold[at, w], slide, laws.lower[at, w], laws.upper[at, w],
    )  # fmt: skip
    laws.impulse[at, w] = laws.impulse[at, w] + change
    laws.friction[at, w] = f
    laws.limit[at, w] = limit
    laws.stuck[at, w] = held
    laws.taken[at, w] = taken
    return change


@wp.func
def solve_ball(laws: Laws, v0: int, w: int, u: vec3, A: mat66) -> vec3:
    """Three axes with one friction bound and nothing else; returns the changes of their impulses."""
    M = mat33(A[0, 0], A[0, 1], A[0, 2], A[1, 0], A[1, 1], A[1, 2], A[2, 0], A[2, 1], A[2, 2])
    p = vec3(laws.impulse[v0, w], laws.impulse[v0 + 1, w], laws.impulse[v0 + 2, w])
    inverse = mat33(A[3, 3], A[3, 4], A[3, 5], A[4, 3], A[4, 4], A[4, 5], A[5, 3], A[5, 4], A[5, 5])
    f, held = friction_3d(u - M * p, M, inverse, laws.hold[v0, w], laws.slide[v0, w], wp.length(u))
    v = u + M * (f - p)
    if held == 1:
        v = vec3(real(0.0))
    for j in range(3):
        laws.taken[v0 + j, w] = -f[j] * v[j]
        laws.impulse[v0 + j, w] = f[j]
        laws.friction[v0 + j, w] = f[j]
        laws.stuck[v0 + j, w] = held
    return f - p


@wp.func
def report_actions(s: Step, solve: Solve, k: int, w: int):
    """Keep the impulses for the next step, advance motor currents, add up what friction and dampers took."""
    dt = s.settings.dt[0]
    v0 = s.joints.v_start[k]
    # the work of an impulse is that at the mean of the speeds before and after; a speed that turned round counts from 0
    before = real(0.0)
    taken = real(0.0)
    for i in range(s.joints.v_size[k]):
        at = v0 + i
        u = axis_speed(s, k, i, w, solve.twist.linear, solve.twist.angular)
        before = before - real(0.5) * solve.laws.friction[at, w] * solve.laws.start[at, w]
        taken = (
            taken + real(0.5) * solve.laws.taken[at, w] + dt * (s.axes.damping[at] + s.control.friction_viscous[at, w]) * u * u
        )
        servo = -solve.laws.servo_a[at, w] * u - solve.laws.servo_b[at, w]
        drive = wp.clamp(servo, -solve.laws.servo_cap[at, w], solve.laws.servo_cap[at, w])
        if s.axes.resistance[at] > real(0.0):
            end = (s.control.voltage[at, w] - s.axes.torque_constant[at] * s.axes.gear_ratio[at] * u) / s.axes.resistance[at]
            e, mean = decay(s, at)
            i_mean = end + (s.state.current[at, w] - end) * mean
            drive = dt * s.axes.gear_ratio[at] * solve.laws.efficiency[at, w] * s.axes.torque_constant[at] * i_mean
            s.state.current[at, w] = end + (s.state.current[at, w] - end) * e
        s.state.drive_impulse[at, w] = drive
        s.state.axis_impulse[at, w] = solve.laws.impulse[at, w]
        s.state.friction_impulse[at, w] = solve.laws.friction[at, w]
        s.state.limit_impulse[at, w] = solve.laws.limit[at, w]
        s.state.stuck[at, w] = solve.laws.stuck[at, w]
    s.state.dissipated[k, w] = taken + wp.max(real(0.0), before)


@wp.func
def clear_actions(s: Step, k: int, w: int):
    """Nothing acts on a joint that is switched off."""
    for at in range(s.joints.v_start[k], s.joints.v_start[k] + s.joints.v_size[k]):
        s.state.drive_impulse[at, w] = real(0.0)
        s.state.axis_impulse[at, w] = real(0.0)
        s.state.friction_impulse[at, w] = real(0.0)
        s.state.limit_impulse[at, w] = real(0.0)
        s.state.current[at, w] = real(0.0)
        s.state.stuck[at, w] = 0
    s.state.dissipated[k, w] = real(0.0)


@wp.func
def pseudo_actions(s: Step, held: Laws, laws: Laws, k: int, w: int):
    prepare_pseudo_laws(s, laws, held, k, w, pose_at(s.joints, k, w, s.work.position, s.work.rotation))
