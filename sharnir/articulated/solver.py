"""SolverArticulated: the direct solver with the energy closing, which leaves joint coordinates in the state."""

from __future__ import annotations

from typing import Any

from sharnir.direct.solver import SolverDirect
from sharnir.model import Model


class SolverArticulated(SolverDirect):
    """Steps a model in time and leaves the coordinates and speeds of its joints in the state.

    The step is that of `SolverDirect` with `closing="energy"`: second order, energy and momenta kept to rounding; velocities,
    energies and reactions belong to the pose.

    Args:
        model: what `Scene.build` returned.
        dt: step, s.
        iterations: cap of the passes in which stick, slip and limits are found; one is enough unless one of them changes.
        tolerance: a step is solved when no law of an axis is missed by more than this, N·s or N·m·s; by default see
            `SolverDirect`.
        rope_iterations, rope_tolerance: those of ropes, see `SolverRope`.
        threads: CPU threads that share the worlds; all cores if None (one world needs one).
        sleep: whether what stands still sleeps, see `SolverImpulse`.
    """

    _closings = ("energy",)

    def __init__(
        self, model: Model, dt: float, *, iterations: int = 60, tolerance: float | None = None,
        rope_iterations: int | None = None, rope_tolerance: float | None = None, threads: int | None = None, sleep: bool = True,
    ) -> None:  # fmt: skip
        of_ropes: dict[str, Any] = {"rope_iterations": rope_iterations, "rope_tolerance": rope_tolerance, "sleep": sleep}
        super().__init__(model, dt, iterations=iterations, tolerance=tolerance, threads=threads, **of_ropes)
        self.reads = True
