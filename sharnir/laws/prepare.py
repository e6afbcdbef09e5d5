"""The laws of free axes in a step: springs, dampers, drives, limits and friction, set up, solved and reported.

Functions take a solver's step, whichever it is, as an array of one structure: `joints`, `axes`, `control`, `state`, `settings`.
"""

from typing import Any

import warp as wp

from sharnir.core.spatial import exp_quat, log_quat
from sharnir.core.types import mat33, quat, real, vec3
from sharnir.laws.solve import Laws
from sharnir.model.joint_geometry import (
    JointPose,
    ball_pull,
    cardan_limits,
    child_frame,
    coordinate,
    parent_frame,
    swing_twist_limits,
)

NO_BOUND = wp.constant(real(1.0e30))
NEAR_LIMIT = wp.constant(real(5.0e-3))  # rad, or of the scene's length: a limit passed by less is returned to by speeds
MOST_REPAIR = wp.constant(real(0.02))  # rad, or of the scene's length: what a step takes back of a passed limit
LEAP = wp.constant(real(-1.0))  # for `mean`: speeds stand half a step before and half a step after the pose


@wp.func
def axis_unit(s: Any, j: int, x: int) -> real:
    """What makes a coordinate of joint j a number that tolerances hold for: 1 for a rotation, 1/m for a translation."""
    if x < s[0].joints.v_size[j] - s[0].joints.turns[j]:
        return s[0].settings.per_metre[0]
    return real(1.0)


@wp.func
def decay(s: Any, at: int, w: int) -> tuple[real, real]:
    """exp(−t R/L) of a motor's current after a kick of t, and the mean of that exponential over it; (0, 0) without inductance."""
    x = s[0].settings.kick[w] * s[0].axes.resistance[at, w]
    L = s[0].axes.inductance[at, w]
    if real(1.0e-3) * x >= L:
        return real(0.0), L / x
    x = x / L
    e = wp.exp(-x)
    return e, (real(1.0) - e) / x


@wp.func
def motor_law(s: Any, at: int, w: int, u_start: real, end: real, start: real) -> tuple[real, real, real]:
    """(a, b, efficiency) of a DC motor: the mean current of the step at speed u, exact, and the rotor's inertia.

    u is made of the speeds at the end and at the start of the step by the shares `end` and `start`.

    i(t) = i∞ + (i − i∞) exp(−t R/L),  i∞ = (V − k N u)/R.
    """
    kick = s[0].settings.kick[w]
    N = s[0].axes.gear_ratio[at, w]
    k = s[0].axes.torque_constant[at, w]
    R = s[0].axes.resistance[at, w]
    eta = s[0].axes.efficiency[at, w]
    if s[0].state.current[at, w] * N * u_start < real(0.0):  # the joint drives the motor
        eta = real(1.0) / eta
    _e, fade = decay(s, at, w)
    rotor = s[0].axes.rotor_inertia[at, w] * N * N
    gain = kick * N * eta * k
    back = gain * (real(1.0) - fade) * k * N / R
    b = -gain * ((real(1.0) - fade) * s[0].control.voltage[at, w] / R + fade * s[0].state.current[at, w]) - rotor * u_start
    return back * end + rotor, b + start * back * u_start, eta


@wp.func
def stop_speed(dt: real, room: real, u: real, e: real, unit: real, tolerance: real) -> real:
    """Least speed at the end of a step by the mean of both speeds: of an axis with so much room to its limit, u at the start.

    The path u̅ Δt ends at the limit, or before it where the axis bounces. For that the axis may be thrown back, by no more than it
    came with; what is beyond restitution an impact takes from it at the end of the step, so that momenta are kept. A limit that
    was passed by a little is returned to in the same way, one that was passed by more by displacements.
    """
    least = real(-2.0) * room / dt - u
    most = wp.max(-u, real(0.0))
    if -room * unit > tolerance and -room * unit <= NEAR_LIMIT:
        most = most - real(2.0) * room / dt
    least = wp.min(least, most)
    if e > real(0.0) and u < real(0.0) and room + dt * u < real(0.0):
        least = wp.max(least, -e * u)
    return least


@wp.func
def limit_box(s: Any, laws: Laws, at: int, w: int, q: real, u_start: real, erp: real, mean: real, unit: real) -> None:
    """Speeds that keep q inside its limits to the end of the step; outside already, none further out (times erp, back in).

    A limit with restitution that the start speed would pass is left at −e times that speed. Where the step goes by the mean of
    both speeds (`mean` 1) see `stop_speed`. `unit`: see `axis_unit`.
    """
    dt = s[0].settings.part[w]
    e = s[0].axes.restitution[at, w]
    low = q - s[0].axes.lower[at, w]
    high = s[0].axes.upper[at, w] - q
    lower = -NO_BOUND
    upper = NO_BOUND
    if low < NO_BOUND:
        lower = -low / dt
        if low < real(0.0):
            lower = wp.min(lower, MOST_REPAIR / (unit * dt)) * erp
        if mean > real(0.0):
            lower = stop_speed(dt, low, u_start, e, unit, s[0].settings.tolerance[1])
        elif e > real(0.0) and u_start < real(0.0) and low + dt * u_start < real(0.0):
            lower = -e * u_start
    if high < NO_BOUND:
        upper = high / dt
        if high < real(0.0):
            upper = wp.max(upper, -MOST_REPAIR / (unit * dt)) * erp
        if mean > real(0.0):
            upper = -stop_speed(dt, high, -u_start, e, unit, s[0].settings.tolerance[1])
        elif e > real(0.0) and u_start > real(0.0) and high - dt * u_start < real(0.0):
            upper = -e * u_start
    laws.lower[at, w] = lower
    laws.upper[at, w] = wp.max(lower, upper)


@wp.func
def ball_limits(s: Any, k: int, w: int, turn: quat) -> tuple[vec3, mat33]:
    """Coordinates that limit a ball joint turned so, and, as columns, their derivatives by its rotations."""
    values = vec3(real(0.0))
    rows = mat33(real(0.0))
    if s[0].joints.ball[k] == 1:
        values, rows = cardan_limits(wp.quat_to_matrix(turn))
    else:
        at = s[0].joints.v_start[k] + s[0].joints.v_size[k] - 3
        values, rows = swing_twist_limits(turn, s[0].axes.upper[at, w], s[0].axes.upper[at + 1, w])
    return values, rows


@wp.func
def limit_ball(s: Any, laws: Laws, k: int, w: int, values: vec3, rows: mat33, omega: vec3, erp: real, mean: real) -> None:
    """The limits of a ball joint from coordinates and their derivatives (`ball_limits`) and its spin."""
    at = s[0].joints.v_start[k] + s[0].joints.v_size[k] - 3
    for j in range(3):
        row = vec3(rows[0, j], rows[1, j], rows[2, j])
        laws.row[at + j, w] = row
        laws.lower[at + j, w] = -NO_BOUND
        laws.upper[at + j, w] = NO_BOUND
        if s[0].joints.ball[k] == 1 or j == 2:
            limit_box(s, laws, at + j, w, values[j], wp.dot(row, omega), erp, mean, real(1.0))
        elif j == 0 and s[0].axes.upper[at, w] < NO_BOUND:
            room = values[0]
            if room < real(0.0):
                room = wp.max(room, -MOST_REPAIR) * erp
            laws.lower[at, w] = -room / s[0].settings.part[w]
            if mean > real(0.0):
                laws.lower[at, w] = stop_speed(
                    s[0].settings.part[w], values[0], wp.dot(row, omega), real(0.0), real(1.0), s[0].settings.tolerance[1]
                )


@wp.func
def limit_boxes(s: Any, laws: Laws, k: int, w: int, pose: JointPose, erp: real, start: bool, mean: real) -> None:
    """The limits of every axis of a joint from its pose and laws.start: at the start of a step, where speeds count
    (restitution), or at its end.
    """
    n = s[0].joints.v_size[k]
    v0 = s[0].joints.v_start[k]
    simple = n
    if s[0].joints.ball[k] != 0:
        simple = n - 3
        at = v0 + simple
        turn = wp.quat_inverse(parent_frame(s[0].joints, k, pose)) * child_frame(s[0].joints, k, pose)
        values, rows = ball_limits(s, k, w, turn)
        omega = vec3(real(0.0))
        if start:
            for j in range(3):
                omega[j] = laws.start[v0 + simple + j, w]
        limit_ball(s, laws, k, w, values, rows, omega, erp, mean)
    for i in range(simple):
        at = v0 + i
        u_start = real(0.0)
        if start:
            u_start = laws.start[at, w]
        if s[0].axes.lower[at, w] > -NO_BOUND or s[0].axes.upper[at, w] < NO_BOUND:
            near = s[0].state.q[s[0].joints.q_start[k] + i, w]
            if not start:
                near = near + s[0].settings.part[w] * laws.start[at, w]
            limit_box(s, laws, at, w, coordinate(s[0].joints, k, i, pose, near), u_start, erp, mean, axis_unit(s, k, i))


@wp.func
def friction_bounds(s: Any, laws: Laws, k: int, i: int, w: int) -> None:
    """Friction bounds of the group of axis i, held and sliding: Δt (static or dynamic) + load · |last constraint impulse|."""
    n = s[0].joints.v_size[k]
    v0 = s[0].joints.v_start[k]
    at = v0 + i
    kick = s[0].settings.kick[w]
    load = s[0].control.friction_load[at, w] * wp.length(s[0].state.joint_force[k, w]) * (kick / s[0].settings.dt[0])
    static = s[0].control.friction_static[at, w] * kick + load
    dynamic = s[0].control.friction_dynamic[at, w] * kick + load
    stribeck = s[0].control.friction_stribeck[at, w]
    hold = static
    slide = dynamic
    if s[0].state.time[w] == wp.float64(0.0) and s[0].control.friction_load[at, w] > real(0.0):
        hold = NO_BOUND  # the load is not known yet: what rests, rests in the first step
        for j in range(n):
            if laws.start[v0 + j, w] != real(0.0):
                hold = static
    if static > dynamic:
        speed2 = real(0.0)
        for j in range(n):
            if s[0].axes.group[v0 + j] == s[0].axes.group[at]:
                u = laws.start[v0 + j, w]
                speed2 = speed2 + u * u
        if stribeck > real(0.0):
            slide = dynamic + (static - dynamic) * wp.exp(-speed2 / (stribeck * stribeck))
        elif s[0].state.stuck[at, w] == 0 and speed2 > real(0.0):
            hold = dynamic
    laws.hold[at, w] = hold
    laws.slide[at, w] = slide


@wp.func
def resolved_spring(dt: real, k: real, c: real, A: real) -> real:
    """How much of the mean rule a spring and damper that see the response A may have: 1 where the step resolves them, down to 0.

    By the mean they would ring for ever where it does not: nothing changes up to Δt² k A = ¼ and Δt c A = ½, and they are
    implicit altogether from four times that on.
    """
    stiff = wp.max(dt * dt * k * A * real(4.0), dt * c * A * real(2.0))
    return real(1.0) - wp.clamp((stiff - real(1.0)) / real(3.0), real(0.0), real(1.0))


@wp.func
def share_of_mean(s: Any, at: int, w: int, A: real, spring: real) -> real:
    """How much of the mean rule the linear laws of an axis with the response A may have; `spring` 0: without its spring."""
    if s[0].axes.implicit[at, w] > real(0.0):
        return real(0.0)
    dt = s[0].settings.part[w]
    c = s[0].axes.damping[at, w] + s[0].control.friction_viscous[at, w] + s[0].control.servo_kd[at, w]
    k = s[0].control.servo_kp[at, w] + s[0].axes.stiffness[at, w] * spring
    if s[0].axes.resistance[at, w] > real(0.0):
        N = s[0].axes.gear_ratio[at, w]
        back = s[0].axes.torque_constant[at, w] * N
        _e, fade = decay(s, at, w)
        c = c + (real(1.0) - fade) * back * back / s[0].axes.resistance[at, w]
        A = A / (real(1.0) + s[0].axes.rotor_inertia[at, w] * N * N * A)
    return resolved_spring(dt, k, c, A)


@wp.func
def law_shares(s: Any, w: int, mean: real, share: real) -> tuple[real, real, real, real]:
    """(end, start, far, near): a law is taken at the speed end · u₁ + start · u₀ and at the place q + Δt (far · u₁ + near · u₀).

    `mean` 0: at the end of the step; 1: at the mean of its ends; LEAP: u₀ and u₁ lead to and from the pose, and the law is the
    mean of those at q and half a step further on either side, each for as long as its half kick lasts. `share` of that is
    taken, the rest at the end.
    """
    end = real(1.0)
    start = real(0.0)
    far = real(1.0)
    near = real(0.0)
    if mean > real(0.0):
        end = real(0.5)
        start = real(0.5)
        far = real(0.25)
        near = real(0.25)
    if mean < real(0.0):
        kick = s[0].settings.kick[w]
        past = s[0].state.stagger[w]
        whole = kick * s[0].settings.part[w]
        start = past / kick
        end = real(1.0) - start
        far = (kick - past) * (kick - past) / whole
        near = -past * past / whole
    rest = real(1.0) - share
    return end * share + rest, start * share, far * share + rest, near * share


@wp.func
def prepare_laws(s: Any, laws: Laws, k: int, w: int, pose: JointPose, mean: real) -> None:
    """The laws of a joint's axes at velocity level, from laws.start, started from the impulses of the last step.

    All are implicit, at the end of the step; or, `mean` 1, at the mean of its two ends: p = −h k (q + ¼Δt (u₀ + u₁)) of a spring,
    −h c ½(u₀ + u₁) of a damper; or, with LEAP, −h k (q + ¼Δt (u₁ − u₀)): the trapezoidal rule in both, which loses nothing.
    """
    if s[0].joints.v_size[k] == 0:
        return
    kick = s[0].settings.kick[w]
    ahead = s[0].settings.part[w]
    share = kick / s[0].settings.dt[0]
    v0 = s[0].joints.v_start[k]
    limit_boxes(s, laws, k, w, pose, real(0.0), True, mean)
    moves = s[0].joints.v_size[k] - s[0].joints.turns[k]
    spring_turn = vec3(real(0.0))
    servo_turn = vec3(real(0.0))
    if s[0].joints.turns[k] == 3:
        turn = wp.quat_inverse(parent_frame(s[0].joints, k, pose)) * child_frame(s[0].joints, k, pose)
        at = v0 + moves
        rest = vec3(s[0].axes.rest[at, w], s[0].axes.rest[at + 1, w], s[0].axes.rest[at + 2, w])
        stiff = vec3(s[0].axes.stiffness[at, w], s[0].axes.stiffness[at + 1, w], s[0].axes.stiffness[at + 2, w])
        spring_turn = ball_pull(turn, rest, stiff)
        wanted = vec3(real(0.0))
        for i in range(3):
            wanted[i] = s[0].control.servo_position[at + i, w]
        servo_turn = log_quat(turn * wp.quat_inverse(exp_quat(wanted)))
    for i in range(s[0].joints.v_size[k]):
        at = v0 + i
        ball = s[0].joints.turns[k] == 3 and i >= moves
        u = laws.start[at, w]
        end, start, far, near = law_shares(s, w, mean, laws.mean[at, w])
        damping = kick * (s[0].axes.damping[at, w] + s[0].control.friction_viscous[at, w])
        a = damping * end
        b = damping * start * u
        stiffness = s[0].axes.stiffness[at, w]
        kp = s[0].control.servo_kp[at, w]
        kd = s[0].control.servo_kd[at, w]
        stretch = real(0.0)  # how far the spring, and the servo, is off
        error = real(0.0)
        if ball:
            stretch = spring_turn[i - moves]
            error = servo_turn[i - moves]
        elif stiffness > real(0.0) or kp > real(0.0):
            q = coordinate(s[0].joints, k, i, pose, s[0].state.q[s[0].joints.q_start[k] + i, w])
            stretch = stiffness * (q - s[0].axes.rest[at, w])
            error = q - s[0].control.servo_position[at, w]
        if stiffness > real(0.0):
            whole = far
            half = near
            if mean > real(0.0):  # there a spring is to lose nothing, whatever the step
                whole = real(0.25)
                half = real(0.25)
            a = a + kick * ahead * stiffness * whole
            b = b + kick * (stretch + ahead * stiffness * half * u)
        if s[0].axes.resistance[at, w] > real(0.0):
            motor_a, motor_b, eta = motor_law(s, at, w, u, end, start)
            a = a + motor_a
            b = b + motor_b
            laws.efficiency[at, w] = eta
        laws.a[at, w] = a
        laws.b[at, w] = b
        push = kp * error - kd * s[0].control.servo_velocity[at, w] - s[0].control.servo_torque[at, w]
        laws.servo_a[at, w] = kick * (ahead * kp * far + kd * end)
        laws.servo_b[at, w] = kick * (push + (ahead * kp * near + kd * start) * u)
        laws.servo_cap[at, w] = s[0].control.servo_max_force[at, w] * kick
        friction_bounds(s, laws, k, i, w)
        laws.impulse[at, w] = s[0].state.axis_impulse[at, w] * share
        laws.friction[at, w] = s[0].state.friction_impulse[at, w] * share
        laws.limit[at, w] = s[0].state.limit_impulse[at, w] * share
        laws.stuck[at, w] = s[0].state.stuck[at, w]


@wp.func
def law_speed(s: Any, laws: Laws, at: int, w: int) -> real:
    """The speed at which an axis' dampers and motor were taken."""
    end, start, _far, _near = law_shares(s, w, LEAP, laws.mean[at, w])
    return laws.end[at, w] * end + laws.start[at, w] * start


@wp.func
def mean_motor_current(s: Any, laws: Laws, at: int, w: int) -> tuple[real, real]:
    """A motor's mean current over the kick, and that at its end; the speed at the end in laws.end."""
    back = s[0].axes.torque_constant[at, w] * s[0].axes.gear_ratio[at, w] * law_speed(s, laws, at, w)
    last = (s[0].control.voltage[at, w] - back) / s[0].axes.resistance[at, w]
    e, fade = decay(s, at, w)
    off = s[0].state.current[at, w] - last
    return last + off * fade, last + off * e


@wp.func
def report_laws(s: Any, laws: Laws, k: int, w: int) -> None:
    """Keep the impulses as of a whole step, advance motor currents, add up what friction and dampers took; speeds in laws.end."""
    kick = s[0].settings.kick[w]
    whole = s[0].settings.dt[0] / kick
    v0 = s[0].joints.v_start[k]
    # the work of an impulse is that at the mean of the speeds before and after; a speed that turned round counts from 0
    before = real(0.0)
    taken = real(0.0)
    for i in range(s[0].joints.v_size[k]):
        at = v0 + i
        u = laws.end[at, w]
        before = before - real(0.5) * laws.friction[at, w] * laws.start[at, w]
        damping = kick * (s[0].axes.damping[at, w] + s[0].control.friction_viscous[at, w])
        seen = law_speed(s, laws, at, w)
        taken = taken + real(0.5) * laws.taken[at, w] + damping * seen * seen
        servo = -laws.servo_a[at, w] * u - laws.servo_b[at, w]
        drive = wp.clamp(servo, -laws.servo_cap[at, w], laws.servo_cap[at, w])
        if s[0].axes.resistance[at, w] > real(0.0):
            mean, end = mean_motor_current(s, laws, at, w)
            motor = kick * s[0].axes.gear_ratio[at, w] * laws.efficiency[at, w] * s[0].axes.torque_constant[at, w] * mean
            drive = drive + motor
            s[0].state.current[at, w] = end
        s[0].state.drive_impulse[at, w] = drive * whole
        s[0].state.axis_impulse[at, w] = laws.impulse[at, w] * whole
        s[0].state.friction_impulse[at, w] = laws.friction[at, w] * whole
        s[0].state.limit_impulse[at, w] = laws.limit[at, w] * whole
        s[0].state.stuck[at, w] = laws.stuck[at, w]
    s[0].state.dissipated[k, w] = taken + wp.max(real(0.0), before)


@wp.func
def clear_laws(s: Any, k: int, w: int) -> None:
    """Clear the laws of a joint that is switched off."""
    for at in range(s[0].joints.v_start[k], s[0].joints.v_start[k] + s[0].joints.v_size[k]):
        s[0].state.drive_impulse[at, w] = real(0.0)
        s[0].state.axis_impulse[at, w] = real(0.0)
        s[0].state.friction_impulse[at, w] = real(0.0)
        s[0].state.limit_impulse[at, w] = real(0.0)
        s[0].state.current[at, w] = real(0.0)
        s[0].state.stuck[at, w] = 0
    s[0].state.dissipated[k, w] = real(0.0)
