"""SolverArticulated: trees in joint coordinates, loops closed by multipliers (theory: energy and momentum, on a tree)."""

from __future__ import annotations

from typing import Any

from sharnir.articulated.solver import FINE
from sharnir.impulse.direct_solver import SolverDirect, SolverDirectRope
from sharnir.model import Model


class SolverArticulated(SolverDirect):
    """Steps a model in time, in the coordinates of its joints, by the rule that keeps energy and momenta.

    The passes are those of `SolverDirect` with `closing="energy"`.

    Args:
        model: what `Scene.build` returned.
        dt: step, s.
        iterations: cap of the passes in which stick, slip and limits are found; one is enough unless one of them changes.
        tolerance: a step is solved when what acts on an axis is met to so much, N·s or N·m·s.
        threads: CPU threads that share the worlds; all cores if None (one world needs one).
    """

    _closings = ("energy",)

    def __init__(
        self, model: Model, dt: float, *, iterations: int = 60, tolerance: float = FINE, threads: int | None = None
    ) -> None:
        super().__init__(model, dt, iterations=iterations, tolerance=tolerance, threads=threads)


class SolverArticulatedRope(SolverDirectRope):
    """The same with ropes: joints, what acts on them, loops and ropes in one solve. Arguments are those of `SolverDirectRope`."""

    _closings = ("energy",)

    def __init__(self, model: Model, dt: float, *, iterations: int = 60, tolerance: float = FINE, **options: Any) -> None:
        super().__init__(model, dt, iterations=iterations, tolerance=tolerance, **options)
