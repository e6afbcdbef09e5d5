"""Keywords of a Simulation: their types, and what each solver takes."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any, TypedDict

from sharnir.core.misspellings import meant
from sharnir.engine.articulated.solver import TreeSolver
from sharnir.engine.base import Solver
from sharnir.errors import SimulationError
from sharnir.runtime.tolerances import FIELD_OF, FormerOptions


class Options(FormerOptions, total=False):
    """What single solvers take beside; see `Simulation`."""

    threads: int | None
    sleep: bool
    specialize: bool | None


class Spreads(TypedDict, total=False):
    """By how much parameters vary from world to world; see `Simulation.randomize`."""

    mass: float
    stiffness: float
    damping: float
    friction: float
    limit: float
    kp: float
    kd: float
    motor: float
    gravity: float
    rope: float


class VideoOptions(TypedDict, total=False):
    """How a film is made; see `Simulation.video`."""

    fps: float
    size: tuple[int, int]
    speed: float
    eye: Any
    target: Any


class ViewOptions(TypedDict, total=False):
    """How a simulation is shown; see `Simulation.view`."""

    commands: Any
    speed: float
    paused: bool
    plot: Sequence[str]
    follow: str | None
    worlds: int
    port: int
    host: str
    block: bool
    wait: bool


OF_ALL = ("dt", "solver", "worlds", "device", "on_divergence", "precision")
"""Keywords of every Simulation."""
REMOVED = {
    "closing": "leave it out: joints and ropes are always closed by the scheme that keeps energy and momentum, which was "
    "closing='energy', the default"
}
"""Options of earlier releases, and what to do instead."""


def check_options(kind: Any, name: str, options: dict[str, Any]) -> None:
    """Refuse options that the solver does not have, by name."""
    allowed: set[str] = set()
    for base in kind.__mro__:
        if "__init__" in vars(base) and base is not Solver and base is not TreeSolver and base is not object:
            kinds = inspect.signature(base.__init__).parameters.values()
            allowed |= {p.name for p in kinds if p.kind is p.KEYWORD_ONLY}
    for option, value in options.items():
        if option in REMOVED:
            raise SimulationError(f"Simulation: {option}={value!r} was removed in 0.3.0; {REMOVED[option]}")
        if option not in allowed:
            others = allowed - set(FIELD_OF) | {"tolerances"}
            near, known = meant(option, [*others, *OF_ALL]), ", ".join(sorted(others))
            what = f"solver {name!r}" if name != "rope" else "a scene of ropes without joints"
            raise SimulationError(f"Simulation: {option!r} is not an option of {what}; allowed: {known}{near}")
