"""Drives of the table (`laws.drives`) as forces of the state: those whose law has no memory.

    motor       c M(|N u|) N η
    DC motor    voltage = c V,  V = E − R Σ c i   of all that its battery feeds, their currents being states or (c V − k N u)/R_m
    cylinder    A (Q c − A u)/leak between −pressure · rod area and pressure · area; near its ends, of what way is left

An engine's clutch holds or slips, and a motor with a curve takes power from its battery by the step: these are refused
(`mechanics.integrate`).
"""

import warp as wp

from sharnir.core.types import real
from sharnir.integrate.data import Motion
from sharnir.laws.drives import WORDS_OF_DRIVE, along, cylinder_flow
from sharnir.model.actuators import DRIVE_KINDS

MOTOR_KIND, BATTERY_KIND, CYLINDER_KIND = (wp.constant(DRIVE_KINDS.index(kind)) for kind in ("motor", "battery", "cylinder"))


@wp.func
def command_of(m: wp.array(dtype=Motion), i: int, w: int) -> real:
    return wp.clamp(m[0].control.drive_command[WORDS_OF_DRIVE * i, w], real(-1.0), real(1.0))


@wp.func
def cell_voltage(m: wp.array(dtype=Motion), b: int, w: int) -> tuple[real, real]:
    """V at the terminals of a battery, and the current that it gives, A."""
    E = m[0].drives.cell[3 * b, w]
    R = m[0].drives.cell[3 * b + 1, w]
    conducts = real(0.0)
    flows = real(0.0)  # A, whatever the voltage
    for i in range(m[0].drives.count):
        if m[0].drives.battery[i] == b:
            at = m[0].drives.at[i]
            c = command_of(m, i, w)
            if m[0].current_of[at] >= 0:
                flows = flows + c * m[0].current[m[0].current_of[at], w]
            else:
                r = m[0].axes.resistance[at, w]
                conducts = conducts + c * c / r
                flows = flows - c * m[0].axes.torque_constant[at, w] * m[0].axes.gear_ratio[at, w] * m[0].v[at, w] / r
    V = wp.max((E - R * flows) / (real(1.0) + R * conducts), real(0.0))
    return V, conducts * V + flows


@wp.func
def voltage_at(m: wp.array(dtype=Motion), at: int, w: int) -> real:
    """V at a DC motor: as commanded, or its share of a battery's."""
    i = m[0].drive_of[at]
    if i < 0:
        return m[0].control.voltage[at, w]
    V, _current = cell_voltage(m, m[0].drives.battery[i], w)
    return V * command_of(m, i, w)


@wp.func
def table_force(m: wp.array(dtype=Motion), at: int, q: real, w: int) -> real:
    """Force of an axis' drive of the table, N or N·m, at its coordinate; 0 of a DC motor, whose own law has its voltage."""
    i = m[0].drive_of[at]
    if i < 0:
        return real(0.0)
    u = m[0].v[at, w]
    c = command_of(m, i, w)
    if m[0].drives.kind[i] == MOTOR_KIND:
        N = m[0].drives.p[i, 0, w]
        eta = m[0].drives.p[i, 1, w]
        M, _slope = along(m[0].drives, int(m[0].drives.p[i, 2, w]), int(m[0].drives.p[i, 3, w]), wp.abs(N * u))
        if c * N * u < real(0.0):
            eta = real(1.0) / eta
        return c * M * N * eta
    if m[0].drives.kind[i] == CYLINDER_KIND:
        area = m[0].drives.p[i, 0, w]
        rod = m[0].drives.p[i, 1, w]
        side, flow = cylinder_flow(m, i, w, q, c)
        most = m[0].drives.p[i, 2, w]
        return wp.clamp(side * (flow - side * u) / m[0].drives.p[i, 4, w], -most * rod, most * area)
    return real(0.0)
