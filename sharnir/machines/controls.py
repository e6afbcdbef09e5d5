"""Named inputs of a machine: a range, a rate, a safe value, and what they set.

controls = Controls(sim, [Input("throttle", lambda sim, v: ..., low=-1, high=1, rate=2.0)])
controls["throttle"] = 0.5
controls.step(100)  # moves the inputs at their rates, hands them to the simulation, steps it
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from sharnir.errors import SceneError, SimulationError, StepWarning, as_numbers


@dataclass(frozen=True)
class Input:
    """One input of an operator.

    Args:
        name: "throttle", "steer", "boom", …
        act: called as act(sim, value) before a step, whenever the value has changed.
        low, high: the range of the value, in the unit that `about` names.
        rate: by how much the value may change in a second.
        safe: the value at the start, and when the operator is lost.
        about: what it does and its unit.
    """

    name: str
    act: Callable[[Any, Any], None]
    low: float = -1.0
    high: float = 1.0
    rate: float = math.inf
    safe: float = 0.0
    about: str = ""

    def __post_init__(self) -> None:
        who = f"input {self.name!r}"
        if not callable(self.act):
            raise SceneError(f"{who}: act is called as act(sim, value), got {self.act!r}")
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low < self.high):
            raise SceneError(f"{who}: low and high are finite, low < high, got {self.low!r}, {self.high!r}")
        if not self.rate > 0:
            raise SceneError(f"{who}: rate is above 0 a second, got {self.rate!r}")
        if not self.low <= self.safe <= self.high:
            raise SceneError(f"{who}: safe is within {self.low:g} to {self.high:g}, got {self.safe!r}")


class Controls(Mapping[str, Any]):
    """The inputs of a machine in a simulation. `controls[name]` reads the value in effect; setting it is a command.

    A command beyond its range is limited, and said once; one that is no number is refused. With several worlds a command is one
    number for all, or one a world.
    """

    def __init__(self, sim: Any, inputs: Iterable[Input]) -> None:
        self.sim = sim
        self.inputs: dict[str, Input] = {}
        for given in inputs:
            if given.name in self.inputs:
                raise SceneError(f"input {given.name!r} is there twice")
            self.inputs[given.name] = given
        self._told: set[str] = set()
        self._command: dict[str, Any] = {}
        self._value: dict[str, Any] = {}
        self._acted: dict[str, Any] = {}
        self.reset()

    def reset(self) -> None:
        """All inputs at their safe values at once; to be called after the simulation's own reset."""
        self._command = {name: given.safe for name, given in self.inputs.items()}
        self._value, self._acted = dict(self._command), {}

    def release(self) -> None:
        """Command the safe value of every input: nobody drives. They are reached at their rates."""
        self._command = {name: given.safe for name, given in self.inputs.items()}

    def _input(self, name: str) -> Input:
        if name not in self.inputs:
            raise SimulationError(f"there is no input {name!r}; known: {', '.join(self.inputs)}")
        return self.inputs[name]

    def __setitem__(self, name: str, value: Any) -> None:
        given = self._input(name)
        numbers = as_numbers(value)
        worlds = getattr(self.sim, "worlds", 1)
        if numbers.shape not in ((), (worlds,)) or not np.isfinite(numbers).all():
            what = "a finite number" if worlds == 1 else f"a finite number, or {worlds} of them"
            raise SimulationError(f"input {name!r} is {what} within {given.low:g} to {given.high:g}, got {value!r}")
        limited = np.clip(numbers, given.low, given.high)
        if name not in self._told and (limited != numbers).any():
            self._told.add(name)
            warnings.warn(
                f"input {name!r} is limited to {given.low:g} … {given.high:g}, got {value!r} (told once)",
                StepWarning,
                stacklevel=2,
            )
        self._command[name] = float(limited) if limited.ndim == 0 else limited

    def __getitem__(self, name: str) -> Any:
        self._input(name)
        return self._value[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.inputs)

    def __len__(self) -> int:
        return len(self.inputs)

    def command(self, name: str) -> Any:
        """What was asked for and is reached at the input's rate."""
        self._input(name)
        return self._command[name]

    def apply(self) -> None:
        """Move every input by one step's worth towards its command, and hand on those that changed."""
        for name, given in self.inputs.items():
            value = self._value[name]
            if name in self._acted and self._command[name] is value:  # it is where it should be
                continue
            most = given.rate * self.sim.dt
            change = self._command[name] - value
            moved = value + np.clip(change, -most, most) if np.ndim(change) else value + min(max(change, -most), most)
            if np.all(moved == self._command[name]):
                moved = self._command[name]
            self._value[name] = moved
            if name not in self._acted or np.any(self._acted[name] != moved):
                given.act(self.sim, moved)
                self._acted[name] = moved

    def step(self, n: int = 1) -> Any:
        """`apply` and a step of the simulation, n times; returns the report of the last."""
        report = None
        for _ in range(n):
            self.apply()
            report = self.sim.step()
        return report
