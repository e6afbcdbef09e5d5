"""SolverImpulseRope: sequential impulses with ropes: in turn a sweep over the joints and an exact pass over the ropes."""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp

from sharnir.model import Control, Model, State
from sharnir.rope.data import RopeControl, RopeSettings, RopeState, RopeStep
from sharnir.rope.kernels import rope_begin, rope_commit, rope_judge, rope_pass
from sharnir.rope.solver import rope_settings, rope_step
from sharnir.sequential.solver import NO_CAP, SolverImpulse
from sharnir.solver import Report
from sharnir.types import EPSILON, load_modules


class SolverImpulseRope(SolverImpulse):
    """Steps a model in time; a rope takes part in the sweeps as one block, with the bodies that hold it.

    Args:
        rope_state, rope_control: of `model.ropes`.
        rope_tolerance: see `SolverRope`. The others are those of `SolverImpulse`.
    """

    at_pose = True
    _halves = False  # velocities of bodies are read as they led to the pose, like those of ropes

    def __init__(
        self, model: Model, dt: float, *, rope_state: RopeState, rope_control: RopeControl, iterations: int = 40,
        rope_tolerance: float = 1e-8, **options: Any,
    ) -> None:  # fmt: skip
        self.rope_state, self.rope_control = rope_state, rope_control
        super().__init__(model, dt, iterations=iterations, **options)
        load_modules([rope_begin.module], self.device)
        rope_tolerance = max(rope_tolerance, 100 * EPSILON)
        settings: Any = rope_settings(RopeSettings(), rope_tolerance, [iterations], self.device)
        settings.dt, settings.gravity, settings.iterations = self.settings.dt, self.settings.gravity, self.settings.iterations
        self.rope_settings = settings
        self.settings.sweeps.assign(np.array([1, NO_CAP], np.int32))
        self.ropes: Any = None
        self.report = Report(self.done, self.residual, self.tolerance, self.grades, (self.rope_residual, rope_tolerance))

    def advance(self, state: State, control: Control, n: int = 1, **given: Any) -> Report:
        """See `SolverImpulse.advance`; the report counts steps that were not plain."""
        self.grades.zero_()
        return super().advance(state, control, n, **given)

    def _solved(self) -> bool:
        """Whether every world has made its sweeps or is put away (`rope_pass`)."""
        done = self.solves[0].done.numpy() if self._host is None else self._host[0]
        return bool(np.all(done >= self._cap_now))

    def _end_within(self, sweeps: int) -> None:
        """A step that is begun again takes no more sweeps than it did: no longer, and as many as a cap would have left it."""
        self._cap(sweeps)

    def _sweeps_at_once(self, n: int) -> None:
        """One sweep between passes of the ropes, always."""

    def _bind(self, state: State, control: Control) -> None:
        rope = rope_step(self.model, self.rope_state, self.rope_control, state, control, self.rope_settings)
        rope.body.v, rope.body.w = self.solves[0].twist.linear, self.solves[0].twist.angular
        rope.body.momentum, rope.body.start_w = self.work.momentum, self.work.spin_start
        rope.grades, rope.residual = self.grades, self.rope_residual
        self._guards(state, control)
        rope.tally = self.tally
        self.ropes = rope
        self._rope_step = wp.array([rope], dtype=RopeStep, device=self.device)
        super()._bind(state, control)

    def _stages(self, step: Any, first: int, worlds: int) -> None:
        self._begin(step, first, worlds)
        for _ in range(self.iterations):
            self._iterate(step, first, worlds)
        self._end(step, first, worlds)
        self._judge(step, first, worlds)

    def _judge(self, step: Any, first: int, worlds: int) -> None:
        """Steps are counted by `rope_commit`."""
        self._look(first, worlds)

    def _begin(self, step: Any, first: int, worlds: int) -> None:
        super()._begin(step, first, worlds)
        self._launch(rope_begin, (worlds,), self._rope_step, first)

    def _iterate(self, step: Any, first: int, worlds: int) -> None:
        super()._iterate(step, first, worlds)
        solve = self.solves[0]
        self._launch(rope_pass, (worlds,), self._rope_step, first, solve.done, solve.residual, self.settings.tolerance)

    def _end(self, step: Any, first: int, worlds: int) -> None:
        """Take the step, or where it went astray one at velocity level: launches that find nothing to do in a world are cheap."""
        done = self.solves[0].done
        self._launch(rope_judge, (worlds,), self._rope_step, first, done)
        self._prepare(step, first, worlds)
        for _ in range(self.iterations):
            self._iterate(step, first, worlds)
        super()._end(step, first, worlds)
        self._launch(rope_commit, (worlds,), self._rope_step, first, done, self.residual, self.settings.tolerance)
