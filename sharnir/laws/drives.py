"""Drives as a table: what each asks of its axis in a step, from its commands, its own state and the axis' place and speed.

A law is torque + kd (speed − u), bounded by ±most: the servo of the axis, which every solver takes implicitly (`laws.prepare`).
Before each step `set_drives` writes it into the servo's commands. A new kind of drive is a function here, a row of `DRIVE_LAWS`,
and its description with its columns (`drive_tables`); nothing else knows of kinds.

    motor       c M(|N u|) N η,  kd its slope                      M torque over speed, c a command from −1 to 1
    DC motor    voltage = c V of its battery                       V = (E + R Σ c k N u/R_m)/(1 + R Σ c²/R_m), of all it feeds
    engine      clutch: p = G J (ω + τΔt/J − G u),  |p| ≤ G T Δt   locked where that is enough, else it slips; ω from what it gave
    cylinder    A (Q c − A u)/leak,  |F| ≤ pressure · area         Q c a flow; near its ends, of what way is left
"""

from typing import Any

import warp as wp

from sharnir.core.types import real, vec3, vec4
from sharnir.model.actuators import DRIVE_KINDS
from sharnir.model.joint_geometry import coordinate, free_axis
from sharnir.model.joint_types import DriveTable
from sharnir.model.kinematics import pose_at
from sharnir.model.model import DRIVE_WORDS

WORDS_OF_DRIVE = wp.constant(DRIVE_WORDS)  # commands, and states, of a drive
LEAST_FLOW = wp.constant(real(0.05))  # of its flow, that a cylinder still has in a cushion's end


@wp.func
def along(t: DriveTable, first: int, n: int, x: real) -> tuple[real, real]:
    """A curve at x, held beyond its ends, and its slope there."""
    if x <= t.curve[first]:
        return t.curve[first + n], real(0.0)
    for i in range(n - 1):
        a = t.curve[first + i]
        b = t.curve[first + i + 1]
        if x < b:
            slope = (t.curve[first + n + i + 1] - t.curve[first + n + i]) / (b - a)
            return t.curve[first + n + i] + slope * (x - a), slope
    return t.curve[first + 2 * n - 1], real(0.0)


@wp.func
def map_at(t: DriveTable, first: int, n: int, m: int, x: real, y: real) -> real:
    """A map over n speeds and m torques at (x, y), held beyond its edges: bilinear."""
    i = int(0)
    while i < n - 2 and x > t.curve[first + i + 1]:
        i = i + 1
    j = int(0)
    while j < m - 2 and y > t.curve[first + n + j + 1]:
        j = j + 1
    a = t.curve[first + i]
    f = wp.clamp((x - a) / (t.curve[first + i + 1] - a), real(0.0), real(1.0))
    b = t.curve[first + n + j]
    g = wp.clamp((y - b) / (t.curve[first + n + j + 1] - b), real(0.0), real(1.0))
    at = first + n + m + i * m + j
    low = t.curve[at] * (real(1.0) - g) + t.curve[at + 1] * g
    high = t.curve[at + m] * (real(1.0) - g) + t.curve[at + m + 1] * g
    return low * (real(1.0) - f) + high * f


# ---- the laws: (torque, kd, speed, most) ----------------------------------------------------------------------------------


@wp.func
def motor_torque(s: Any, i: int, w: int, q: real, u: real, h: real) -> vec4:
    """c M(|N u|) at the rotor, times N and the gear's efficiency, linear in the speed where it falls."""
    N = s[0].drives.p[i, 0, w]
    eta = s[0].drives.p[i, 1, w]
    c = wp.clamp(s[0].control.drive_command[WORDS_OF_DRIVE * i, w], real(-1.0), real(1.0))
    share = real(1.0)  # of the voltage that its curve is for
    if s[0].drives.battery[i] >= 0:
        share = (
            s[0].state.drive_state[WORDS_OF_DRIVE * s[0].drives.count + 2 * s[0].drives.battery[i], w] / s[0].drives.p[i, 4, w]
        )
        share = wp.max(share, real(1.0e-3))
    M, slope = along(s[0].drives, int(s[0].drives.p[i, 2, w]), int(s[0].drives.p[i, 3, w]), wp.abs(N * u) / share)
    if c * N * u < real(0.0):
        eta = real(1.0) / eta
        slope = real(0.0)
    torque = c * M * N * eta
    s[0].state.drive_state[WORDS_OF_DRIVE * i, w] = c * M
    s[0].state.drive_state[WORDS_OF_DRIVE * i + 1, w] = N * u
    return vec4(torque, wp.max(real(0.0), -wp.abs(c) * slope / share * N * N * eta), u, real(1.0e30))


@wp.func
def battery_voltage(s: Any, i: int, w: int, q: real, u: real, h: real) -> vec4:
    """A DC motor's voltage, from its battery: its own law takes it from there."""
    c = wp.clamp(s[0].control.drive_command[WORDS_OF_DRIVE * i, w], real(-1.0), real(1.0))
    at = s[0].drives.at[i]
    V = s[0].state.drive_state[WORDS_OF_DRIVE * s[0].drives.count + 2 * s[0].drives.battery[i], w]
    s[0].control.voltage[at, w] = c * V
    return vec4(real(0.0), real(0.0), real(0.0), real(1.0e30))


@wp.func
def engine_clutch(s: Any, i: int, w: int, q: real, u: real, h: real) -> vec4:
    """The crank has a speed of its own, which what the clutch gave in the last step, and the engine's torque, change."""
    J = s[0].drives.p[i, 0, w]
    idle = s[0].drives.p[i, 1, w]
    first = WORDS_OF_DRIVE * i
    omega = s[0].state.drive_state[first + 1, w]  # as it would be without the clutch
    old = s[0].state.drive_state[first + 2, w]
    if old != real(0.0):
        omega = omega - s[0].state.drive_impulse[s[0].drives.at[i], w] / (old * J)
    s[0].state.drive_state[first, w] = omega
    throttle = wp.clamp(s[0].control.drive_command[first, w], real(0.0), real(1.0))
    clutch = wp.clamp(s[0].control.drive_command[first + 1, w], real(0.0), real(1.0))
    gear = int(s[0].control.drive_command[first + 2, w])
    throttle = wp.max(throttle, wp.clamp((idle * real(1.05) - omega) / (idle * real(0.1)), real(0.0), real(1.0)))
    if omega > s[0].drives.p[i, 2, w]:
        throttle = real(0.0)
    M, slope = along(s[0].drives, int(s[0].drives.p[i, 5, w]), int(s[0].drives.p[i, 6, w]), omega)
    drag = s[0].drives.p[i, 3, w] - throttle * wp.min(slope, real(0.0))
    tau = throttle * M - s[0].drives.p[i, 3, w] * omega
    free = omega + h * tau / (J + h * drag)  # implicit
    G = real(0.0)
    ratios = int(s[0].drives.p[i, 8, w])
    gear = wp.clamp(gear, -1, ratios - 1)
    if gear == -1:
        G = s[0].drives.curve[int(s[0].drives.p[i, 7, w])]
    elif gear > 0:
        G = s[0].drives.curve[int(s[0].drives.p[i, 7, w]) + gear]
    if clutch == real(0.0):
        G = real(0.0)
    s[0].state.drive_state[first + 1, w] = free
    s[0].state.drive_state[first + 2, w] = G
    if real(0.0) == G:
        return vec4(real(0.0), real(0.0), real(0.0), real(1.0e30))
    return vec4(real(0.0), G * G * J / h, free / G, wp.abs(G) * clutch * s[0].drives.p[i, 4, w])


@wp.func
def cylinder_flow(s: Any, i: int, w: int, q: real, c: real) -> tuple[real, real]:
    """The area of the side that a cylinder is asked to fill, and the flow into it, less near the end of the way."""
    side = s[0].drives.p[i, 0, w]
    room = s[0].drives.p[i, 7, w] - q
    if c < real(0.0):
        side = s[0].drives.p[i, 1, w]
        room = q - s[0].drives.p[i, 6, w]
    flow = c * s[0].drives.p[i, 3, w]
    cushion = s[0].drives.p[i, 5, w]
    if cushion > real(0.0):
        flow = flow * wp.clamp(room / cushion, LEAST_FLOW, real(1.0))
    return side, flow


@wp.func
def cylinder_force(s: Any, i: int, w: int, q: real, u: real, h: real) -> vec4:
    """Flow into the side that is asked for, leaking past the piston; the pressure is bounded, and falls on that side's area."""
    c = wp.clamp(s[0].control.drive_command[WORDS_OF_DRIVE * i, w], real(-1.0), real(1.0))
    area = s[0].drives.p[i, 0, w]
    rod = s[0].drives.p[i, 1, w]
    side, flow = cylinder_flow(s, i, w, q, c)
    kd = side * side / s[0].drives.p[i, 4, w]
    speed = flow / side
    most = s[0].drives.p[i, 2, w] * area
    if kd * (speed - u) < real(0.0) or s[0].state.drive_impulse[s[0].drives.at[i], w] < real(0.0):
        most = s[0].drives.p[i, 2, w] * rod
    s[0].state.drive_state[WORDS_OF_DRIVE * i, w] = speed
    return vec4(real(0.0), kd, speed, most)


DRIVE_LAWS = {"motor": motor_torque, "battery": battery_voltage, "engine": engine_clutch, "cylinder": cylinder_force}
"""The table."""
BATTERY_KIND = DRIVE_KINDS.index("battery")


def _law_of(kind: int) -> Any:
    """A function that tells kinds from `kind` on apart."""
    law = DRIVE_LAWS[DRIVE_KINDS[kind]]
    if kind + 1 == len(DRIVE_KINDS):
        return law
    others = _law_of(kind + 1)

    @wp.func(name=f"drive_law_{kind}")
    def drive_law(s: Any, i: int, w: int, q: real, u: real, h: real) -> vec4:
        if s[0].drives.kind[i] == wp.static(kind):
            return law(s, i, w, q, u, h)
        return others(s, i, w, q, u, h)

    return drive_law


drive_law = _law_of(0)


# ---- before a step --------------------------------------------------------------------------------------------------------


@wp.func
def axis_motion(s: Any, i: int, w: int, linear: wp.array2d(dtype=vec3), angular: wp.array2d(dtype=vec3)) -> tuple[real, real]:
    """Coordinate and speed of a drive's axis at the pose."""
    t = s[0].drives.joints
    j = s[0].drives.joint[i]
    p = t.parent[j]
    c = t.child[j]
    pose = pose_at(t, j, w, s[0].state.position, s[0].state.rotation)
    d, n = free_axis(t, j, s[0].drives.axis[i], pose)
    w_p = angular[p, w]
    w_c = angular[c, w]
    u = linear[c, w] + wp.cross(w_c, pose.child_anchor - s[0].state.position[c, w])
    u = u - linear[p, w] - wp.cross(w_p, pose.child_anchor - s[0].state.position[p, w])
    q = coordinate(t, j, s[0].drives.axis[i], pose, s[0].state.q[t.q_start[j] + s[0].drives.axis[i], w])
    return q, wp.dot(d, u) + wp.dot(n, w_c - w_p)


@wp.func
def set_batteries(s: Any, w: int, h: real, linear: wp.array2d(dtype=vec3), angular: wp.array2d(dtype=vec3)) -> None:
    """Terminal voltages: what a battery has, less its own resistance times all currents, at the speeds of now."""
    first = WORDS_OF_DRIVE * s[0].drives.count
    for b in range(s[0].drives.batteries):
        E = s[0].drives.cell[3 * b, w]
        R = s[0].drives.cell[3 * b + 1, w]
        V = s[0].state.drive_state[first + 2 * b, w]
        used = s[0].state.drive_state[first + 2 * b + 1, w]
        if used >= s[0].drives.cell[3 * b + 2, w]:
            E = real(0.0)
        conducts = real(0.0)
        back = real(0.0)  # A, of back-EMF, less those of given power
        for i in range(s[0].drives.count):
            if s[0].drives.battery[i] == b:
                c = wp.clamp(s[0].control.drive_command[WORDS_OF_DRIVE * i, w], real(-1.0), real(1.0))
                if s[0].drives.kind[i] == wp.static(BATTERY_KIND):
                    _q, u = axis_motion(s, i, w, linear, angular)
                    at = s[0].drives.at[i]
                    r = s[0].axes.resistance[at, w]
                    conducts = conducts + c * c / r
                    back = back + c * s[0].axes.torque_constant[at, w] * s[0].axes.gear_ratio[at, w] * u / r
                else:
                    back = back - electric_power(s, i, w) / wp.max(V, real(1.0e-3))
        V = wp.max((E + R * back) / (real(1.0) + R * conducts), real(0.0))
        s[0].state.drive_state[first + 2 * b, w] = V
        s[0].state.drive_state[first + 2 * b + 1, w] = used + h * (conducts * V - back)


@wp.func
def electric_power(s: Any, i: int, w: int) -> real:
    """What a motor with a curve takes from its battery, W; negative where it brakes: at the torque and speed of the last step."""
    M = s[0].state.drive_state[WORDS_OF_DRIVE * i, w]
    omega = s[0].state.drive_state[WORDS_OF_DRIVE * i + 1, w]
    eta = real(1.0)
    n = int(s[0].drives.p[i, 6, w])
    if n > 0:
        eta = map_at(s[0].drives, int(s[0].drives.p[i, 5, w]), n, int(s[0].drives.p[i, 7, w]), wp.abs(omega), wp.abs(M))
    if M * omega < real(0.0):
        return M * omega * eta
    return M * omega / eta


@wp.func
def set_drives(s: Any, w: int, h: real, linear: wp.array2d(dtype=vec3), angular: wp.array2d(dtype=vec3)) -> None:
    """Laws of all drives for a step of h, in the commands of servos and motors; from velocities of bodies."""
    set_batteries(s, w, h, linear, angular)
    for i in range(s[0].drives.count):
        q, u = axis_motion(s, i, w, linear, angular)
        law = drive_law(s, i, w, q, u, h)
        at = s[0].drives.at[i]
        s[0].control.servo_torque[at, w] = law[0]
        s[0].control.servo_kd[at, w] = law[1]
        s[0].control.servo_velocity[at, w] = law[2]
        s[0].control.servo_max_force[at, w] = law[3]
