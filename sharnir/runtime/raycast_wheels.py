"""Raycast wheels of a running simulation: their state and their commands."""

from __future__ import annotations

from typing import Any

import numpy as np

from sharnir.errors import SimulationError, as_numbers
from sharnir.model.model import CAST_WORDS

COMMAND_WORDS = ("torque", "velocity", "kd", "max_force", "brake")


def wheel(sim: Any, name: str) -> CastWheel:
    """The raycast wheel of that name (`Wheel(raycast=True)`, `Scene.add_raycast_wheel`)."""
    names = [cast.name for cast in sim.model.casts]
    if name not in names:
        raise SimulationError(f"no raycast wheel is named {name!r}; available: {', '.join(map(repr, names)) or 'none'}")
    return CastWheel(sim, names.index(name), name)


def _command(word: str, unit: str, doc: str, least: float = -np.inf) -> Any:
    """A command of a raycast wheel, as a property."""
    return property(lambda self: self._word(word), lambda self, value: self._say(word, unit, value, least), doc=doc)


class CastWheel:
    """A raycast wheel; with several worlds values have a leading world axis."""

    __slots__ = ("_command", "_sim", "_state", "name")

    def __init__(self, sim: Any, number: int, name: str) -> None:
        first, words = sim.model.cast_rows
        self._sim, self.name = sim, name
        self._state, self._command = first + 2 * number, words + CAST_WORDS * number

    def __repr__(self) -> str:
        return f"<raycast wheel {self.name!r}>"

    @property
    def speed(self) -> Any:
        """rad/s, at which it turns; settable."""
        return self._sim._out(np.array(self._sim._moving.drive_state[self._state], float))

    @speed.setter
    def speed(self, value: Any) -> None:
        self._sim._moving.put("drive_state", self._state, self._checked("speed (rad/s)", value))

    @property
    def angle(self) -> Any:
        """rad, by which it has turned."""
        return self._sim._out(np.array(self._sim._moving.drive_state[self._state + 1], float))

    def _checked(self, what: str, value: Any, least: float = -np.inf) -> np.ndarray:
        given = as_numbers(value)
        if given.shape not in ((), (self._sim.worlds,)) or not np.all(np.isfinite(given)) or np.any(given < least):
            more = f" of at least {least:g}" if least > -np.inf else ""
            raise SimulationError(f"wheel {self.name!r}: {what} is a finite number{more}, or one a world, got {value!r}")
        return given

    def _word(self, word: str) -> Any:
        return self._sim._out(np.array(self._sim._commands.drive_command[self._command + COMMAND_WORDS.index(word)], float))

    def _say(self, word: str, unit: str, value: Any, least: float) -> None:
        given = self._checked(f"{word} ({unit})", value, least)
        self._sim._commands.put("drive_command", self._command + COMMAND_WORDS.index(word), given)

    torque = _command("torque", "N·m", "N·m of its drive, besides what holds its speed; settable.")
    velocity = _command("velocity", "rad/s", "rad/s, that its drive holds; settable.")
    brake = _command("brake", "N·m", "N·m, at which it holds; settable.", 0.0)
