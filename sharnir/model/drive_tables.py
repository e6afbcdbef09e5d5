"""The device's table of drives, made on the host from their descriptions; see `laws.drives`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import warp as wp

from sharnir.core.types import real
from sharnir.errors import SceneError
from sharnir.model.actuators import DRIVE_KINDS, Axis, Battery, DCMotor, Engine, HydraulicCylinder, Motor
from sharnir.model.joint_types import DriveTable, JointTable
from sharnir.model.model import DRIVE_WORDS

DRIVE_COLUMNS = 12  # numbers of a drive, at most


def is_tabled(drive: Any) -> bool:
    """Whether a drive is one of the table's: all but servos, and motors at a given voltage."""
    return isinstance(drive, Motor | Engine | HydraulicCylinder) or (isinstance(drive, DCMotor) and drive.battery is not None)


def drive_table(
    names: Sequence[str], axes: Sequence[tuple[Axis, ...]], joints: JointTable, casts: Sequence[Any], worlds: int, device: Any
) -> dict[str, Any]:
    """What a Model needs of the drives at all joints' axes: the table, its rows by speed, batteries, commands and states.

    Cast wheels (`collision.describe.Cast`) have commands, and speed and angle, behind those of drives and batteries.
    """
    found: list[tuple[int, int, Any, Any]] = [
        (j, i, axis.drive, axis.limit) for j, row in enumerate(axes) for i, axis in enumerate(row) if is_tabled(axis.drive)
    ]
    starts = np.cumsum([0, *(len(row) for row in axes)])
    batteries: list[Battery] = []
    curve: list[float] = []
    rows, commands, state = [], [], []

    def put(*parts: Any) -> int:
        at = len(curve)
        for part in parts:
            curve.extend(float(x) for x in part)
        return at

    def cell(drive: Any) -> int:
        battery = getattr(drive, "battery", None)
        if battery is None:
            return -1
        same = next((i for i, b in enumerate(batteries) if b is battery), None)
        if same is None:
            batteries.append(battery)
        return len(batteries) - 1 if same is None else same

    for j, _i, drive, limit in found:
        try:
            row = [] if isinstance(drive, DCMotor) else drive.columns(put, limit)
        except SceneError as error:
            raise SceneError(f"joint {names[j]!r}: {error}") from None
        rows.append(row + [0.0] * (DRIVE_COLUMNS - len(row)))
        words = [float(getattr(drive, word)) for word in getattr(drive, "words", ("command",))]
        commands += words + [0.0] * (DRIVE_WORDS - len(words))
        state += [drive.idle, drive.idle, 0.0, 0.0] if isinstance(drive, Engine) else [0.0] * DRIVE_WORDS
    t: Any = DriveTable()
    t.joints = joints
    numbers = {
        "kind": [DRIVE_KINDS.index(getattr(drive, "kind", "battery")) for _, _, drive, _ in found],
        "joint": [j for j, *_ in found], "axis": [i for _, i, *_ in found], "at": [int(starts[j]) + i for j, i, *_ in found],
        "battery": [cell(drive) for _, _, drive, _ in found],
    }  # fmt: skip
    t.count, t.batteries = len(found), len(batteries)
    for name, values in numbers.items():
        setattr(t, name, wp.array(np.array(values, np.int32), dtype=wp.int32, device=device))
    p = np.array(rows, float).reshape(len(found), DRIVE_COLUMNS)
    t.p = wp.array(np.repeat(p[:, :, None], worlds, 2), dtype=real, device=device)
    t.curve = wp.array(np.array(curve, float), dtype=real, device=device)
    cells = np.array([x for b in batteries for x in (b.voltage, b.resistance, min(b.capacity, 1e30))], float)
    t.cell = wp.array(np.repeat(cells[:, None], worlds, 1), dtype=real, device=device)
    state += [x for b in batteries for x in (b.voltage, 0.0)] + [x for c in casts for x in (c.speed, 0.0)]
    commands += [x for c in casts for x in c.commands]
    return {
        "drives": t, "drive_rows": {at: i for i, at in enumerate(numbers["at"])}, "batteries": batteries,
        "drive_commands": commands, "drive_state": state, "casts": list(casts),
    }  # fmt: skip
