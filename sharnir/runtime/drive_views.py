"""What a user commands and reads of a drive of the table (`laws.drives`), at one joint of a running simulation."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from sharnir.errors import Bound, SimulationError, StepWarning, as_numbers, callers_level
from sharnir.model.actuators import DCMotor, Engine, HydraulicCylinder, Motor
from sharnir.model.model import DRIVE_WORDS

Joint = Any  # the JointView; it stands a floor above, so that it is not named here


def _command(what: str, doc: str, *kinds: type) -> Any:
    """A command of a drive of the table, as a property."""

    def put(self: TableDrive, value: Any) -> None:
        self._say(what, np.round(as_numbers(value)) if what == "gear" else value, *kinds)

    return property(lambda self: self._word(what, *kinds), put, doc=doc)


class TableDrive(Bound):
    """Commands of a motor by its curve, an engine, a cylinder, a motor on a battery: limited to their range, said once."""

    __slots__ = ("_joint", "_reported")

    def __init__(self, joint: Joint) -> None:
        self._joint, self._reported = joint, False

    def _rows(self, what: str, *kinds: type) -> list[tuple[int, Any]]:
        """(number in the table, description) of the joint's drives."""
        model, j = self._joint._sim.model, self._joint._i
        found = [
            (model.drive_rows[at], axis.drive)
            for at, axis in enumerate(model.joint_axes[j], model.v_start[j])
            if at in model.drive_rows and isinstance(axis.drive, kinds)
        ]
        if not found:
            names = ", ".join(kind.__name__ for kind in kinds)
            raise SimulationError(f"joint {self._joint.name!r} has no {names}: {what} is none of its drive's")
        return found

    def _word(self, what: str, *kinds: type) -> Any:
        rows = self._rows(what, *kinds)
        number = getattr(rows[0][1], "words", ("command",)).index(what)
        values = np.array([self._joint._sim._commands.drive_command[DRIVE_WORDS * i + number] for i, _ in rows], float)
        return self._joint._sim._out(values[0] if len(rows) == 1 else values.T)

    def _say(self, what: str, value: Any, *kinds: type) -> None:
        rows, sim = self._rows(what, *kinds), self._joint._sim
        who = f"joint {self._joint.name!r}: drive.{what}"
        given = as_numbers(value)
        if given.shape not in ((), (1,), (sim.worlds,)) or not np.all(np.isfinite(given)):
            raise SimulationError(f"{who} is a finite number, or one a world, got {value!r}")
        for i, drive in rows:
            number = getattr(drive, "words", ("command",)).index(what)
            low, high = getattr(drive, "ranges", ((-1.0, 1.0),))[number]
            limited = np.clip(given, low, high)
            if not self._reported and np.any(limited != given):
                self._reported = True
                words = f"{who} lies from {low:g} to {high:g}, got {value!r}; it is limited to that, and so are later ones"
                warnings.warn(words, StepWarning, stacklevel=callers_level())
            sim._commands.put("drive_command", DRIVE_WORDS * i + number, limited)

    command = _command(
        "command", "−1 to 1: of a Motor's torque, a HydraulicCylinder's flow, a battery's voltage at a DCMotor.",
        Motor, HydraulicCylinder, DCMotor,
    )  # fmt: skip
    throttle = _command("throttle", "0 to 1, of an Engine.", Engine)
    engaged = _command("engaged", "0 to 1: how far an Engine's clutch is let in.", Engine)
    gear = _command("gear", "−1, 0 (none), 1, 2, … of an Engine's gearbox.", Engine)

    @property
    def engine_speed(self) -> Any:
        """rad/s, of an Engine's crank."""
        ((i, drive), *_), sim = self._rows("engine_speed", Engine), self._joint._sim
        state = np.array(sim._moving.drive_state[DRIVE_WORDS * i : DRIVE_WORDS * (i + 1)], float)
        ratio = np.where(state[2] == 0, 1.0, state[2])
        gave = np.array(sim._moving.drive_impulse[self._joint._v.start], float)
        return sim._out(state[1] - np.where(state[2] == 0, 0.0, gave / (ratio * drive.inertia)))

    @property
    def pressure(self) -> Any:
        """Pa, in a HydraulicCylinder, on the side that it pushed with in the last step."""
        ((_, drive), *_), sim = self._rows("pressure", HydraulicCylinder), self._joint._sim
        force = np.array(sim._moving.drive_impulse[self._joint._v.start], float) / sim.dt
        rod = drive.area if drive.rod_area is None else drive.rod_area
        return sim._out(np.abs(force) / np.where(force >= 0, drive.area, rod))

    @property
    def power(self) -> Any:
        """W that a Motor takes in, with its losses; negative where it gives back."""
        ((i, drive), *_), sim = self._rows("power", Motor), self._joint._sim
        torque, speed = (np.array(sim._moving.drive_state[DRIVE_WORDS * i + k], float) for k in range(2))
        share = np.ones_like(torque)
        grid = drive._map()
        if grid is not None:
            share = np.array([_bilinear(grid, abs(x), abs(y)) for x, y in zip(speed, torque, strict=True)])
        out = torque * speed
        return sim._out(np.where(out < 0, out * share, out / share))

    def number(self, name: str) -> Any:
        """A number of the drive's description, such as "pressure", or one a world."""
        i, column = self._column(name)
        return self._joint._sim._out(np.array(self._joint._sim.model.drives.p.numpy()[i, column], float))

    def set_number(self, name: str, value: Any) -> None:
        """Change a number of the drive's description: one for all worlds, or one a world."""
        i, column = self._column(name)
        sim, given = self._joint._sim, as_numbers(value)
        least = 0.0 if name in ("drag", "cushion") else np.finfo(float).tiny
        ok = (
            given.shape in ((), (sim.worlds,))
            and np.all(np.isfinite(given))
            and np.all((given >= least) | (name == "gear_ratio"))
        )
        if not ok or (name == "gear_ratio" and np.any(given == 0)) or (name == "efficiency" and np.any(given > 1)):
            raise SimulationError(
                f"joint {self._joint.name!r}: {name} is what its description allows, one number or one a world, got {value!r}"
            )
        values = sim.model.drives.p.numpy().copy()
        values[i, column] = given
        sim.model.drives.p.assign(values)

    def _column(self, name: str) -> tuple[int, int]:
        (i, drive), *_ = self._rows(name, Motor, Engine, HydraulicCylinder)
        if name not in drive.numbers:
            raise SimulationError(
                f"joint {self._joint.name!r}: {type(drive).__name__} has no number {name!r}; allowed: {', '.join(drive.numbers)}"
            )
        return i, drive.numbers.index(name)

    @property
    def battery_voltage(self) -> Any:
        """V at the terminals of the battery that feeds it."""
        return self._cell(0)

    @property
    def battery_used(self) -> Any:
        """A·s that the battery has given."""
        return self._cell(1)

    def _cell(self, number: int) -> Any:
        (i, _), *_ = self._rows("battery", Motor, DCMotor)
        sim = self._joint._sim
        b = int(sim.model.drives.battery.numpy()[i])
        if b < 0:
            raise SimulationError(f"joint {self._joint.name!r}: its drive has no battery")
        at = DRIVE_WORDS * int(sim.model.drives.count) + 2 * b + number
        return sim._out(np.array(sim._moving.drive_state[at], float))


def _bilinear(grid: tuple[np.ndarray, np.ndarray, np.ndarray], x: float, y: float) -> float:
    """A map at a speed and a torque, held beyond its edges."""
    speeds, torques, values = grid
    return float(np.interp(x, speeds, [np.interp(y, torques, row) for row in values]))
