"""Tolerances: how exactly a step is solved, and how many iterations it may take."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, fields
from typing import Any, TypedDict

import numpy as np

from sharnir.core.misspellings import Checked
from sharnir.errors import SimulationError, callers_level, is_positive


@dataclass(frozen=True)
class Tolerances(Checked):
    """How exactly a simulation solves each step: `Simulation(scene, dt, tolerances=Tolerances(iterations=60))`.

    Every field is None by default: the value is then chosen for the scene, and the same mechanism in millimetres and in
    kilometres is solved equally well. A field that the solver of the scene does not use is refused.

    Args:
        iterations: largest number of iterations of a step that find forces, at least 1. Sequential: over joints and contacts; 20,
            with ropes 40, where bodies may touch 50, but 20 of more than 100 free ones. Direct: in which stick, slip and limits
            are found; 60. A scene of ropes alone: see `rope_iterations`.
        tolerance: largest impulse error of a step that has converged, N·s or N·m·s. Direct: 1e-10 of the speeds of an axis, 1e-12
            of the scene's impulses for trees without loops, contact and ropes; above 0. Sequential: 1e-10 for 1 kg and 1 m, in
            proportion to the scene's masses, lengths and g·dt; 0 makes all iterations. Moments count over the scene's length.
        position_iterations: largest number of iterations of a step that close joints. Direct: 20, at least 1. Sequential: 4.
        position_tolerance: largest opening of a joint that counts as closed, m or rad, above 0; 1e-10 of the scene's length, or
            rad. A wider one takes fewer iterations; velocities are then less exact in proportion. Direct alone.
        erp: fraction of a joint's opening that is closed in a step, 0 < erp ≤ 1; 1. Sequential alone.
        rope_iterations: largest number of iterations over ropes in a step, at least 1; 30. Direct, and a scene of ropes alone.
        rope_tolerance: largest change of a rope's velocity in the last iteration, of its largest speed, above 0; 1e-12, or 1e-8
            in sequential steps.
    """

    iterations: int | None = None
    tolerance: float | None = None
    position_iterations: int | None = None
    position_tolerance: float | None = None
    erp: float | None = None
    rope_iterations: int | None = None
    rope_tolerance: float | None = None

    def __post_init__(self) -> None:
        for name, least in (("iterations", 1), ("position_iterations", 0), ("rope_iterations", 1)):
            value = getattr(self, name)
            if value is None:
                continue
            if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < least:
                raise SimulationError(f"Tolerances: {name} is a whole number of at least {least}, or None, got {value!r}")
            object.__setattr__(self, name, int(value))
        for name, unit in (("tolerance", "N·s"), ("position_tolerance", "m"), ("rope_tolerance", "of a speed"), ("erp", "")):
            value = getattr(self, name)
            zero = name == "tolerance" and isinstance(value, int | float) and not isinstance(value, bool) and value == 0
            if value is None or zero or (is_positive(value) and not (name == "erp" and value > 1)):
                continue
            allowed = f"a finite number above 0, {unit}," if unit else "a fraction, 0 < erp ≤ 1,"
            if name == "tolerance":
                allowed = "a finite impulse of at least 0 N·s,"
            raise SimulationError(f"Tolerances: {name} is {allowed} or None, got {value!r}")

    def given(self) -> dict[str, Any]:
        """The fields that are not None."""
        return {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) is not None}

    def keywords(self, solver: str) -> dict[str, Any]:
        """Keywords of the solver's class; a field that it does not use is refused."""
        known, out = _KEYWORDS[solver], {}
        for name, value in self.given().items():
            if name not in known:
                what = f"solver {solver!r}" if solver != "rope" else "a scene of ropes without joints"
                raise SimulationError(f"Tolerances: {name!r} is not used by {what}, got {value!r}; it uses {', '.join(known)}")
            if known[name] in out:
                raise SimulationError(
                    f"Tolerances: {name!r} and {name.removeprefix('rope_')!r} mean the same in a scene of ropes alone"
                )
            if solver == "direct" and name == "position_iterations" and value < 1:
                raise SimulationError(f"Tolerances: {name} of solver 'direct' is a whole number of at least 1, got {value!r}")
            out[known[name]] = value
        return out


_KEYWORDS = {
    "direct": {
        "iterations": "iterations", "tolerance": "tolerance", "position_iterations": "closing_iterations",
        "position_tolerance": "gap", "rope_iterations": "rope_iterations", "rope_tolerance": "rope_tolerance",
    },
    "sequential": {
        "iterations": "iterations", "tolerance": "tolerance", "position_iterations": "position_iterations", "erp": "erp",
        "rope_tolerance": "rope_tolerance",
    },
    "rope": {
        "iterations": "iterations", "tolerance": "tolerance", "rope_iterations": "iterations", "rope_tolerance": "tolerance",
    },
}  # fmt: skip
"""Fields that a solver uses, and its keywords for them."""

FIELD_OF = {
    "iterations": "iterations", "tolerance": "tolerance", "closing_iterations": "position_iterations",
    "position_iterations": "position_iterations", "gap": "position_tolerance", "erp": "erp",
    "rope_iterations": "rope_iterations", "rope_tolerance": "rope_tolerance",
}  # fmt: skip
"""Keywords of solvers, which were those of `Simulation` in 0.2.0, and the fields that hold them."""


class FormerOptions(TypedDict, total=False):
    """Keywords of `Simulation` in 0.2.0, which warn until 0.4.0."""

    iterations: int | None
    position_iterations: int | None
    closing_iterations: int | None
    rope_iterations: int | None
    erp: float | None
    tolerance: float | None
    rope_tolerance: float | None
    gap: float | None


def gathered(keywords: dict[str, Any]) -> dict[str, Any]:
    """Keywords of a solver as options of a `Simulation`: those that are tolerances in one object."""
    found = {FIELD_OF[name]: value for name, value in keywords.items() if name in FIELD_OF}
    others = {name: value for name, value in keywords.items() if name not in FIELD_OF}
    return others | {"tolerances": Tolerances(**found)} if found else others


def with_former(tolerances: Tolerances | None, options: dict[str, Any]) -> tuple[Tolerances, dict[str, Any]]:
    """Tolerances with those given by keywords of 0.2.0, which warn; and the other options."""
    if not isinstance(tolerances, Tolerances | None):
        raise SimulationError(f"Simulation: tolerances is a Tolerances(…) or None, got {tolerances!r}")
    former = [name for name in options if name in FIELD_OF]
    if not former:
        return tolerances or Tolerances(), options
    new = {FIELD_OF[name]: options[name] for name in former}
    words = ", ".join(f"{name}={value!r}" for name, value in new.items())
    old = ", ".join(f"{name}={options[name]!r}" for name in former)
    if tolerances is not None or len(new) < len(former):
        raise SimulationError(f"Simulation: {old} beside other tolerances; write tolerances=Tolerances({words}) alone")
    text = f"Simulation: instead of {old} write tolerances=sharnir.Tolerances({words}); the former keywords go in 0.4.0"
    warnings.warn(text, FutureWarning, stacklevel=callers_level())
    return Tolerances(**new), {name: value for name, value in options.items() if name not in FIELD_OF}
