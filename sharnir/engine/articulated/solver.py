"""What solvers that pass along trees share."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import warp as wp

from sharnir.core.types import EPSILON, real
from sharnir.engine.articulated.spanning_tree import Links, Scratch
from sharnir.engine.base import Report, Solver, check_iterations, gravity_of, write
from sharnir.engine.tree.storage import TOGETHER
from sharnir.errors import SimulationError, is_positive
from sharnir.laws.solve import Laws
from sharnir.model.model import Control, Model, State, fill

USUAL_PASSES = 4  # passes of a step in which nothing changes
FINE = max(1e-10, 10 * EPSILON)  # relative: what double, or single, precision can meet


class TreeSolver(Solver):
    """What solvers that pass along trees share: one kernel makes all steps of a call."""

    _kernel: Any
    """The kernel, given the structure, a first world and the number of steps."""
    _pace: float = 0.0
    """How long the slowest pass of late took, s."""
    _passes: Any = None
    """[world] passes of the last step."""

    def step(
        self, state: State, control: Control, n: int = 1, *, budget: float | None = None, iterations: int | None = None
    ) -> Report:
        """Advance every world by n steps; a world that fails keeps its last good state and is marked in `state.failed`.

        Args:
            budget: wall-clock time of a step, s: as many passes are made as fit, going by how long they took before. What
                friction and limits miss then stands in the report, and the next step goes on from there; a step that would have
                to be divided further is ended coarsely.
            iterations: cap of the passes in which laws are found, and of all passes of a step beyond the least (see `_least`);
                what a step reported repeats it bit for bit.
        """
        started = time.perf_counter()
        if self._bound is None or self._bound[0] is not state or self._bound[1] is not control:
            self._bind(state, control)
            started = time.perf_counter()
        if n == 1 and self._one is not None and budget is None and iterations is None:
            return self.once()
        cap = None if iterations is None else check_iterations(iterations, 1)
        if budget is not None:
            fits = max(1, int(budget / self._pace) - USUAL_PASSES)
            cap = fits if cap is None else min(cap, fits)
        try:
            self._cap(cap)
            self._make_steps(n, self._judges_each())
        finally:
            self._cap(None)
        self.report.elapsed = (time.perf_counter() - started) / n
        self.report.deadline_missed = False
        if budget is not None:
            cut = int(np.max(self.report.iterations)) >= fits and not np.all(self.report._met)
            self._learn(self.report.elapsed)
            self.report.deadline_missed = bool(cut or self.report.elapsed > budget)
        return self.report

    def once(self) -> Report:
        """One step of what is bound, by one thread: the usual call, kept short."""
        started = time.perf_counter()
        self._one()
        report = self.report
        report.deadline_missed = False
        report.elapsed = time.perf_counter() - started
        return report

    def _learn(self, took: float) -> None:
        """Follow how long a pass takes; a step much longer than usual is the operating system's."""
        passes = 1 if self._passes is None else max(1, int(self._passes.numpy().max()))
        self._pace = max(0.9 * self._pace, min(took / passes, 2.0 * self._pace))

    def __init__(self, model: Model, dt: float, settings: Any, iterations: int, tolerance: float, threads: int | None) -> None:
        if not is_positive(tolerance):
            raise SimulationError(f"tolerance is a finite impulse above 0 N·s, got {tolerance!r}")
        super().__init__(model, dt, settings, threads)
        self.iterations, self.tolerance = check_iterations(iterations, 1), float(tolerance)
        self.settings.gravity = gravity_of(model)
        self.settings.tolerance = wp.array([tolerance], dtype=real, device=self.device)
        self.settings.iterations = wp.array([iterations], dtype=wp.int32, device=self.device)
        self._capped: int | None = None
        self._graphs: list[Any] = []
        self._more: list[Any] = []  # launches of some steps of a call that was begun
        self._was: tuple[State, Control, Any] | None = None  # what was bound until something might have changed
        self._shape = (False, False, False)  # whether any axis is acted on, by loads, and any joint is out
        self._acting = False
        self._one: Any = None  # makes one step, where one thread makes it
        self._steps, self._single, self._made = (wp.full(model.worlds, 1, dtype=wp.int32, device=self.device) for _ in range(3))
        self._count: int = 1
        self.report: Report = Report(self.done, self.residual, self.tolerance, verdict=self.verdict)

    def _cap(self, iterations: int | None) -> None:
        """Cap the passes of the laws, and of all in a step; None: as usual."""
        if self._capped != iterations:
            self._capped = iterations
            write(self.settings.iterations, self._caps(iterations))

    def _caps(self, iterations: int | None) -> list[int]:
        """Caps of the passes, as the device has them."""
        raise NotImplementedError

    def _judges_each(self) -> bool:
        """Whether each step of a call is a launch, after which the guard judges it: with contacts, and in one world where
        something gives energy. Passive mechanisms and many worlds are judged at the end of a launch.
        """
        driven = self.model.worlds == 1 and (self.driven or self._acting or self.model.ropes is not None)
        return self.collider is not None or driven

    def rebind(self) -> None:
        self._was = self._bound = None

    def acts_changed(self) -> None:
        """To be called when something begins to act on free axes where nothing did, or a joint is taken out or put back."""
        if self._bound is not None:
            self._was, self._bound = self._bound, None

    def rebuild(self) -> None:
        """To be called after tables of the model were changed: the tree is bound anew."""
        self._bound = self._was = None

    def _structure(self, state: State, control: Control) -> tuple[Any, Any]:
        """The device's structure for these arrays, as an array of one and itself."""
        raise NotImplementedError

    def _fit(self, control: Control) -> None:
        """Make the plan of the steps fit what is commanded now; what was bound to another is forgotten."""
        raise NotImplementedError

    def _bind(self, state: State, control: Control) -> None:
        """Hang the tree, and capture the kernel for these arrays; what hangs and acts as before is taken up again."""
        self._acting = bool(control.acts.numpy().any())
        loaded, off = bool((control.friction_load.numpy() > 0).any()), bool((control.enabled.numpy() == 0).any())
        shape = self._acting, loaded, off
        self._fit(control)
        was, self._was = self._was, None
        if was is not None and was[0] is state and was[1] is control and shape == self._shape:
            self._bound = was
            return
        self._shape = shape
        bound, self._kept = self._structure(state, control)  # kept: its arrays stay alive
        self._bound = state, control, bound
        self._graphs, self._more = self._capture(self._launch), []
        self._one = self._capture(self._launch_one)[0] if self._pool is None else None

    def _fill(self, s: Any, tree: Links, scratch: Scratch, state: State, control: Control) -> None:
        """The fields that the structures of all these solvers have."""
        m = self.model
        s.bodies, s.whole, s.joints, s.axes = tree.bodies, m.bodies, tree.joints, m.axes
        s.settings, s.control, s.tree, s.closures = self.settings, control, tree.tree, tree.closures
        s.work, s.rows, s.linear = scratch.tree, scratch.rows, scratch.laws
        s.own, s.scene_joints = len(m.com), len(m.joint_kinds)
        s.acting = int(self._acting)
        s.half_of = wp.array(tree.half_of, dtype=wp.int32, device=self.device)
        laws = Laws()
        fill(laws, m, m.speeds, " ".join(Laws.vars))  # type: ignore[attr-defined]
        laws.lower.fill_(-1e30)
        laws.upper.fill_(1e30)
        s.laws = laws
        s.slid = wp.zeros((m.speeds, m.worlds), dtype=real, device=self.device)
        s.mismatch = wp.zeros((len(tree.links), m.worlds), dtype=real, device=self.device)
        s.done, s.residual = self.done, self.residual
        self._watch(state, control, self._looks(tree))
        s.tally = self.tally

    def _looks(self, tree: Links) -> int:
        """How the guard learns of gaps (`guard.Watch`)."""
        raise NotImplementedError

    def _make(self, step: Any, first: int, worlds: int, steps: Any) -> None:
        threads = -(-worlds // self._lanes) * TOGETHER if self._lanes else worlds
        wp.launch(self._kernel, dim=threads, inputs=[step, first, steps], device=self.device, **self._blocks)

    def _launch(self, step: Any, first: int, worlds: int) -> None:
        self._make(step, first, worlds, self._steps)
        self._look(first, worlds)

    def _launch_one(self, step: Any, first: int, worlds: int) -> None:
        self._make(step, first, worlds, self._single)
        self._look(first, worlds)
