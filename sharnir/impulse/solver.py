"""SolverImpulse: maximal coordinates, sequential impulses with warm start and split impulses (theory, section 3)."""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np
import warp as wp

from sharnir import kinematics
from sharnir.errors import SimulationError, is_positive
from sharnir.impulse import kernels
from sharnir.impulse.kernels import Settings, Step, Work
from sharnir.model import Control, Model, State, fill
from sharnir.rows import Twists
from sharnir.types import load_modules, np_real, real, vec3

CHUNK = 16  # steps in the graph that serves calls for many steps


class SolverImpulse:
    """Steps a model in time.

    Args:
        model: what `Scene.build` returned.
        dt: step, s.
        iterations: cap of the sweeps over the joints at velocity level.
        position_iterations: sweeps of the split impulses that close the gaps.
        erp: fraction of a gap closed in a step, 0 < erp ≤ 1.
        tolerance: a step stops iterating when no impulse of a sweep exceeds it, N·s or N·m·s.
        threads: CPU threads that share the worlds; all cores if None (one world needs one).
    """

    def step(self, state: State, control: Control, n: int = 1) -> Report:
        """Advance every world by n steps; a world that fails keeps its last good state and is marked in `state.failed`."""
        started = time.perf_counter()
        if self._bound is None or self._bound[0] is not state or self._bound[1] is not control:
            self._bind(state, control)
        if n < CHUNK:
            self._replay(self._graphs[1], n)
        else:
            many, rest = divmod(n, CHUNK)
            if CHUNK not in self._graphs:
                self._graphs[CHUNK] = self._capture(CHUNK)
            self._replay(self._graphs[CHUNK], many)
            self._replay(self._graphs[1], rest)
        self.report.elapsed = (time.perf_counter() - started) / n
        return self.report

    def _stages(self, step: Any, first: int, worlds: int) -> None:
        """One step of some worlds, a line a stage."""
        bodies, joints, gears = self.model.bodies.count, self.model.joints.count, self.model.gears.count
        self._launch(kernels.predict, (bodies, worlds), step, first)
        self._launch(kernels.prepare, (joints, worlds), step, first)
        self._launch(kernels.prepare_gears, (gears, worlds), step, first)
        self._launch(kernels.solve_velocities, (worlds,), step, first)
        self._launch(kernels.advance, (bodies, worlds), step, first)
        self._launch(kernels.finish, (worlds,), step, first)

    def __init__(
        self,
        model: Model,
        dt: float,
        *,
        iterations: int = 20,
        position_iterations: int = 4,
        erp: float = 1.0,
        tolerance: float = 1e-10,
        threads: int | None = None,
    ) -> None:
        for what, value, least in (("iterations", iterations, 1), ("position_iterations", position_iterations, 0)):
            if not isinstance(value, int | np.integer) or value < least:
                raise SimulationError(f"{what} is a whole number of at least {least}, got {value!r}")
        if not 0 < erp <= 1:
            raise SimulationError(f"erp is a fraction, 0 < erp ≤ 1, got {erp!r}")
        if not (np.isfinite(tolerance) and tolerance >= 0):
            raise SimulationError(f"tolerance is a finite impulse of at least 0 N·s, got {tolerance!r}")
        if threads is not None and (not isinstance(threads, int) or threads < 1):
            raise SimulationError(f"threads is a whole number of at least 1, got {threads!r}")
        self.model, self.device = model, model.device
        load_modules([kernels.predict.module, kinematics.read_joints.module], self.device)
        self.work = _scratch(model)
        self.settings = Settings()
        self.settings.dt = wp.zeros(1, dtype=real, device=self.device)
        self.settings.gravity = wp.array([model.gravity], dtype=vec3, device=self.device)
        self.settings.erp = wp.array([erp], dtype=real, device=self.device)
        self.settings.tolerance = wp.array([tolerance], dtype=real, device=self.device)
        self.settings.iterations = wp.array([iterations], dtype=wp.int32, device=self.device)
        self.settings.position_iterations = wp.array([position_iterations], dtype=wp.int32, device=self.device)
        self.dt = dt
        cores = os.cpu_count() or 1
        on_cpu = wp.get_device(self.device).is_cpu
        self.threads = min(threads or (cores if model.worlds >= 2 * cores else 1), model.worlds) if on_cpu else 1
        self._pool = ThreadPoolExecutor(self.threads, "sharnir") if self.threads > 1 else None
        self._bound: tuple[State, Control, Any] | None = None  # what captured launches point to
        self._graphs: dict[int, list[Any]] = {}  # by number of steps
        self.report = Report(self)

    @property
    def dt(self) -> float:
        """Step, s."""
        return self._dt

    @dt.setter
    def dt(self, value: float) -> None:
        if not is_positive(value):
            raise SimulationError(f"dt is a positive finite number of seconds, got {value!r}")
        self._dt = float(value)
        self.settings.dt.assign(np.array([value], np_real))

    def start_gears(self, state: State) -> None:
        """Take the present coordinates as those from which gears count."""
        t = self.model.gears
        if t.count:
            q, start = state.q.numpy(), self.model.q_start
            a, b = (start[j.numpy()] + i.numpy() for j, i in ((t.joint_a, t.axis_a), (t.joint_b, t.axis_b)))
            self.work.gear_start.assign(q[a] - t.ratio.numpy()[:, None] * q[b])

    def _launch(self, kernel: Any, dim: tuple[int, ...], *inputs: Any) -> None:
        if min(dim) > 0:
            wp.launch(kernel, dim=dim, inputs=list(inputs), device=self.device)

    def _bind(self, state: State, control: Control) -> None:
        """Capture the step for these arrays."""
        step = Step()
        step.bodies, step.joints, step.gears = self.model.bodies, self.model.joints, self.model.gears
        step.settings, step.control, step.state, step.work = self.settings, control, state, self.work
        self._bound = state, control, wp.array([step], dtype=Step, device=self.device)
        self._graphs = {1: self._capture(1)}

    def _capture(self, steps: int) -> list[Any]:
        """Some steps as graphs, one a thread."""
        assert self._bound is not None
        graphs = []
        for first, last in pairwise(np.linspace(0, self.model.worlds, self.threads + 1).astype(int)):
            with wp.ScopedCapture(device=self.device) as capture:
                for _ in range(steps):
                    self._stages(self._bound[2], int(first), int(last - first))
            graphs.append(capture.graph)
        return graphs

    def _replay(self, graphs: list[Any], n: int) -> None:
        if self._pool is None:
            for _ in range(n):
                wp.capture_launch(graphs[0])
        elif n:
            list(self._pool.map(_replay, graphs, [n] * len(graphs)))


def _replay(graph: Any, n: int) -> None:
    for _ in range(n):
        wp.capture_launch(graph)


class Report:
    """What the last step did; one object, reused. Values are numbers, or arrays (worlds,) where there are several worlds."""

    def __init__(self, solver: SolverImpulse) -> None:
        self._work, self._worlds = solver.work, solver.model.worlds
        self._tolerance = solver.settings.tolerance
        self.elapsed = 0.0
        """Wall-clock time of the step, s (mean, where a call made several)."""

    def _value(self, array: Any) -> Any:
        values = array.numpy()
        return values[0].item() if self._worlds == 1 else values

    @property
    def iterations(self) -> Any:
        """Sweeps made at velocity level."""
        return self._value(self._work.iterations)

    @property
    def residual(self) -> Any:
        """Largest impulse of the last sweep, N·s or N·m·s."""
        return self._value(self._work.residual)

    @property
    def converged(self) -> Any:
        """Whether the residual fell below the tolerance."""
        return self.residual <= self._tolerance.numpy()[0]


def _scratch(model: Model) -> Work:
    bodies, joints, gears = len(model.com), len(model.joint_kinds), len(model.gear_names)
    work = Work()
    for name in ("twist", "pseudo"):
        twists = Twists()
        fill(twists, model, bodies, "linear angular")
        setattr(work, name, twists)
    fill(work, model, bodies, "gyro spin_start momentum inv_inertia position rest rotation")
    fill(work, model, joints, "r_parent r_child joint_force joint_torque drive_force drive_torque")
    fill(work, model, joints, "W_ll W_la W_aa turn_parent_l turn_parent_a turn_child_l turn_child_a")
    fill(work, model, joints, "curve_linear curve_angular gap_linear gap_angular pseudo_force pseudo_torque")
    fill(work, model, gears, "gear_impulse gear_W gear_gap gear_start")
    fill(work, model, None, "iterations residual")
    work.gear_row = wp.zeros((gears, 8, model.worlds), dtype=vec3, device=model.device)
    return work
