"""What ropes add to sequential impulses: after each sweep over the joints, one exact pass over the ropes."""

from __future__ import annotations

from typing import Any

import warp as wp

from sharnir.core.types import EPSILON, alone, load_modules
from sharnir.engine.base import Report
from sharnir.engine.rope.data import RopeSettings, RopeStep, RopeTable
from sharnir.engine.rope.kernels import rope_begin, rope_commit, rope_judge, rope_pass
from sharnir.engine.rope.solver import rope_settings, rope_step, shared
from sharnir.engine.rope.touch_data import RopeTouch
from sharnir.engine.rope.touch_kernels import touch_begin, touch_calm, touch_commit, touch_judge, touch_passes
from sharnir.engine.rope.touch_tables import touch_table, touches
from sharnir.model.model import Control, State

SWEEPS_WITH_ROPES = 40  # cap of the sweeps of a step, where none is given
ROPE_TOLERANCE = 1e-8


class RopePasses:
    """The ropes of a `SolverSequential`: a rope takes part in its sweeps as one block, with the bodies that hold it.

    Args:
        solver: which has the model, the settings, and its two solves (`velocities`: that of the velocities).
        tolerance: see `SolverRope`.
    """

    def __init__(self, solver: Any, velocities: Any, tolerance: float | None) -> None:
        self.solver, self.velocities = solver, velocities
        self.tolerance = max(ROPE_TOLERANCE if tolerance is None else tolerance, 100 * EPSILON)
        self.touching: Any = touch_table(solver.model, solver.work) if touches(solver.model) else None
        load_modules([(rope_begin if self.touching is None else touch_begin).module], solver.device)
        settings: Any = rope_settings(RopeSettings(), self.tolerance, [1], solver.device)
        for name in ("dt", "gravity", "iterations"):
            setattr(settings, name, getattr(solver.settings, name))
        self.settings = settings

    def report(self, done: Any, residual: Any, tolerance: float) -> Report:
        """A report that also counts what ropes left open, and steps that were not plain."""
        ropes, verdict = (self.solver.rope_residual, self.tolerance), self.solver.verdict
        return Report(done, residual, tolerance, self.solver.grades, ropes, verdict=verdict)

    def bind(self, state: State, control: Control, work: Any, rest: Any) -> None:
        """The structure of the ropes for these arrays; the bodies' velocities are those of the sweeps."""
        rope = rope_step(self.solver.model, state, control, self.settings)
        rope.body.v, rope.body.w = self.velocities.twist.linear, self.velocities.twist.angular
        rope.body.momentum, rope.body.start_w = work.momentum, work.spin_start
        rope.rest = rest
        rope.grades, rope.residual, rope.tally = self.solver.grades, self.solver.rope_residual, self.solver.tally
        if self.touching is not None:  # surfaces act on a rope's points as what is tied to them does
            table = shared(rope.ropes, RopeTable)
            table.tied = wp.full(table.count, 1, dtype=wp.int32, device=self.solver.device)
            rope.ropes = table
        self._kept = rope  # its arrays stay alive
        self._step = [alone(rope, RopeStep, self.solver.device)]
        if self.touching is not None:
            self._step.append(alone(self.touching, RopeTouch, self.solver.device))

    def make_room(self) -> None:
        """Room for twice as many points of contact between ropes, and unknowns; to be bound again."""
        self.touching = touch_table(self.solver.model, self.solver.work, self.touching)

    def begin(self, first: int, worlds: int) -> None:
        """Where the ropes' elements and the bodies that hold them stand without any impulse."""
        if self.touching is not None:
            self._launch(touch_begin, worlds, self.solver.collider.array, first)
        else:
            self._launch(rope_begin, worlds, first)

    def sweep(self, first: int, worlds: int) -> None:
        """One pass over all ropes."""
        tolerance = self.solver.settings.tolerance
        inputs = first, self.velocities.done, self.velocities.residual, tolerance
        if self.touching is not None:
            self._launch(touch_passes, worlds, self.solver.collider.array, *inputs)
        else:
            self._launch(rope_pass, worlds, *inputs)

    def judge(self, first: int, worlds: int) -> None:
        """Whether the step went astray, and is to be made again at velocity level."""
        if self.touching is not None:
            self._launch(touch_judge, worlds, self.solver.collider.array, first, self.velocities.done)
        else:
            self._launch(rope_judge, worlds, first, self.velocities.done)

    def calm(self, first: int, worlds: int) -> None:
        """Where ropes touch, a step that was made again gains no energy, met or not."""
        if self.touching is not None:
            self._launch(touch_calm, worlds, self.solver.collider.array, first)

    def commit(self, first: int, worlds: int) -> None:
        """Take the step, and count it."""
        solver = self.solver
        inputs = first, self.velocities.done, solver.residual, solver.settings.tolerance
        if self.touching is not None:
            self._launch(touch_commit, worlds, solver.collider.array, *inputs)
        else:
            self._launch(rope_commit, worlds, *inputs)

    def _launch(self, kernel: Any, worlds: int, *inputs: Any) -> None:
        wp.launch(kernel, dim=worlds, inputs=[*self._step, *inputs], device=self.solver.device)
