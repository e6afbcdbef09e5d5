"""SolverArticulated: trees in joint coordinates, loops closed by multipliers (theory: energy and momentum)."""

from __future__ import annotations

from typing import Any

import numpy as np

from sharnir.direct.solver import SolverDirect
from sharnir.model import Model
from sharnir.tables import of_first
from sharnir.tree.solver import FINE


def scales(model: Model) -> tuple[float, float]:
    """What impulses of axes and gaps are measured by: of a scene of 1 kg and 1 m they are 1.

    Moments grow with the square of lengths, forces with lengths; where a scene has both, the smaller of the two is taken.
    """
    mass = float(of_first(model.bodies.mass).sum()) or 1.0
    points = of_first(model.joints.parent_point), of_first(model.joints.child_point)
    arms = [np.linalg.norm(side, axis=1)[model.joint_enabled] for side in points]
    length = float(np.max(arms, initial=0.0)) or 1.0
    turns = all(axis.startswith("r") for kind in model.joint_kinds for axis in kind.free)
    return mass * (length**2 if turns else min(length, length**2)), max(1.0, length)


class SolverArticulated(SolverDirect):
    """Steps a model in time and leaves the coordinates and speeds of its joints in the state.

    The step is that of `SolverDirect` with `closing="energy"`: second order, energy and momenta kept to rounding; velocities,
    energies and reactions belong to the pose.

    Args:
        model: what `Scene.build` returned.
        dt: step, s.
        iterations: cap of the passes in which stick, slip and limits are found; one is enough unless one of them changes.
        tolerance: a step is solved when no law of an axis is missed by more than this, N·s or N·m·s; by default 1e-10 of what the
            masses and lengths of the scene make of 1 rad/s.
        rope_iterations, rope_tolerance: those of ropes, see `SolverRope`.
        threads: CPU threads that share the worlds; all cores if None (one world needs one).
        sleep: whether what stands still sleeps, see `SolverImpulse`.
    """

    _closings = ("energy",)

    def __init__(
        self, model: Model, dt: float, *, iterations: int = 60, tolerance: float | None = None,
        rope_iterations: int | None = None, rope_tolerance: float | None = None, threads: int | None = None, sleep: bool = True,
    ) -> None:  # fmt: skip
        impulse, length = scales(model)
        tolerance = FINE * impulse if tolerance is None else tolerance
        of_ropes: dict[str, Any] = {"rope_iterations": rope_iterations, "rope_tolerance": rope_tolerance, "sleep": sleep}
        super().__init__(model, dt, iterations=iterations, tolerance=tolerance, gap=FINE * length, threads=threads, **of_ropes)
        self.reads = True

    def _slack(self, gap: float) -> float:
        """None: gaps are those of the scene's size."""
        return 1.0
