"""Cast wheels: the turning of each is one number beside the point at which it touches.

Of a wheel of inertia I whose rim moves along b, a radian a second, at its point (`Contacts.belt_pull`), with its drive's torque
τ + k (ω* − ω₁) and the impulse P of the ground,

    (I + Δt k) ω₁ = I ω₀ + Δt (τ + k ω*) + b·P − brake,         u = u_body + b ω₁

so at its point it is a tyre that leads by b ω_free and yields by b²/(I + Δt k). A brake holds, ω₁ = 0, while what that takes at
the impulse of the last step is within its bound; else it takes its bound. Rolling resistance is a brake by the load.
"""

from typing import Any

import numpy as np
import warp as wp

from sharnir.core.types import real
from sharnir.model.model import CAST_WORDS, Model, fill

CAST = wp.constant(16)  # bit of `Contacts.special`


@wp.struct
class CastTable:
    """Cast wheels, by the number of their belt; `free` and `mobility` are of this step."""

    count: wp.int32  # belts
    state: wp.array(dtype=wp.int32)  # [belt] row of `State.drive_state` with its speed, then its angle; −1: a belt with a body
    command: wp.array(dtype=wp.int32)  # [belt] row of `Control.drive_command`
    inertia: wp.array(dtype=real)  # [belt] kg·m²
    rolling: wp.array(dtype=real)  # [belt] m
    free: wp.array2d(dtype=real)  # [belt, world] rad/s, its speed at the end of the step without the ground's friction
    mobility: wp.array2d(dtype=real)  # [belt, world] 1/(kg·m²); 0: it is held


def cast_table(model: Model) -> Any:
    """The raycast wheels of a model."""
    table = CastTable()
    belts = len(model.collision.belts) if model.casts else 0
    columns: dict[str, list[Any]] = {name: [0] * belts for name in ("state", "command", "inertia", "rolling")}
    columns["state"] = [-1] * belts
    for number, cast in enumerate(model.casts):
        first, words = model.cast_rows
        row = (first + 2 * number, words + CAST_WORDS * number, cast.inertia, cast.rolling)
        for name, value in zip(columns, row, strict=True):
            columns[name][cast.belt] = value
    for name, values in columns.items():
        dtype = CastTable.vars[name].type.dtype  # type: ignore[attr-defined]
        setattr(table, name, wp.array(np.array(values), dtype=dtype, device=model.device))
    table.count = belts
    fill(table, model, belts, "free mobility")
    return table


@wp.func
def wheel_load(s: Any, k: int, w: int, part: real) -> tuple[real, real]:
    """What the ground gives a wheel in a step: N·m·s about its axle, and N·s along the normals; `part` of what stands there."""
    turn = real(0.0)
    load = real(0.0)
    for i in range(s[0].contacts.count[w]):
        special = s[0].contacts.special[i, w]
        if special & CAST != 0 and special >> 8 == k:
            P = s[0].contacts.impulse[i, w] * part
            turn = turn + wp.dot(s[0].contacts.belt_pull[i, w], P)
            load = load + wp.dot(s[0].contacts.normal[i, w], P)
    return turn, load


@wp.func
def open_casts(s: Any, w: int, h: real) -> None:
    """Drives and brakes of a step in which forces act for a time h."""
    for k in range(s[0].casts.count):
        row = s[0].casts.state[k]
        if row >= 0:
            c = s[0].casts.command[k]
            I = s[0].casts.inertia[k]
            omega = s[0].state.drive_state[row, w]
            torque = s[0].control.drive_command[c, w]
            kd = s[0].control.drive_command[c + 2, w]
            most = s[0].control.drive_command[c + 3, w]
            asked = torque + kd * (s[0].control.drive_command[c + 1, w] - omega)
            if wp.abs(asked) * I > most * (I + h * kd):
                torque = wp.sign(asked) * most
                kd = real(0.0)
            size = I + h * kd
            moves = I * omega + h * (torque + kd * s[0].control.drive_command[c + 1, w])
            turn, load = wheel_load(s, k, w, h / s[0].settings.dt[0])
            bound = h * s[0].control.drive_command[c + 4, w] + s[0].casts.rolling[k] * load
            if wp.abs(moves + turn) <= bound:
                s[0].casts.free[k, w] = real(0.0)
                s[0].casts.mobility[k, w] = real(0.0)
            else:
                s[0].casts.free[k, w] = (moves - wp.sign(moves + turn) * bound) / size
                s[0].casts.mobility[k, w] = real(1.0) / size


@wp.func
def close_casts(s: Any, w: int, part: real, h: real, mean: real) -> None:
    """Speeds and angles after a step of length h, whose impulses, but for a `part`, stand in the contacts.

    A wheel turns by its new speed or, with `mean` ½, by the mean of its old one and that.
    """
    for k in range(s[0].casts.count):
        row = s[0].casts.state[k]
        if row >= 0:
            turn, _load = wheel_load(s, k, w, part)
            omega = s[0].casts.free[k, w] + s[0].casts.mobility[k, w] * turn
            before = s[0].state.drive_state[row, w]
            s[0].state.drive_state[row, w] = omega
            way = h * (omega + mean * (before - omega))
            s[0].state.drive_state[row + 1, w] = s[0].state.drive_state[row + 1, w] + way
