"""SolverArticulated: trees in joint coordinates, O(n), loops closed by multipliers (theory: joint coordinates)."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import warp as wp

from sharnir import kinematics
from sharnir.articulated import kernels
from sharnir.articulated.data import Settings, Step
from sharnir.articulated.links import Links, Scratch
from sharnir.articulated.rope import articulated_rope_steps
from sharnir.errors import SimulationError
from sharnir.model import Control, Model, State, fill
from sharnir.rope.data import RopeControl, RopeSettings, RopeState, RopeStep
from sharnir.rope.ports import Ports, make_ports
from sharnir.rope.solver import rope_settings, rope_step, shared
from sharnir.rows import Laws
from sharnir.solver import Report, Solver, check_iterations
from sharnir.types import EPSILON, load_modules, real, vec3

FINE = max(1e-10, 10 * EPSILON)  # N·s, N·m·s, what double, or single, precision can meet


class TreeSolver(Solver):
    """What solvers that pass along trees share: one kernel makes all steps of a call."""

    _kernel: Any
    """The kernel, given the structure, a first world and the number of steps."""
    _gathering: list[int] | tuple[()] = ()
    """Bodies whose inertia and force others than links add to."""
    _calls = 0
    _all = False
    _pace: float = 0.0
    """Of a pass, as long as the slowest of late, s."""

    def step(
        self, state: State, control: Control, n: int = 1, *, budget: float | None = None, iterations: int | None = None
    ) -> Report:
        """Advance every world by n steps; a world that fails keeps its last good state and is marked in `state.failed`.

        Args:
            budget: wall-clock time of a step, s: as many passes are made as fit, going by how long they took before. The first
                closes the joints; what friction and limits miss then stands in the report, and the next step goes on from there.
            iterations: cap of the passes in this call.
        """
        started = time.perf_counter()
        if self._bound is None or self._bound[0] is not state or self._bound[1] is not control:
            self._bind(state, control)
            started = time.perf_counter()
        if n == 1 and self._one is not None and budget is None and iterations is None:  # the usual call, kept short
            self._calls += 1
            wp.capture_launch(self._one if self._calls & self._blind and not self._all else self._one_watched)
            self.report.deadline_missed = False
            self.report.elapsed = time.perf_counter() - started
            return self.report
        cap = self.iterations if iterations is None else check_iterations(iterations, 1)
        if budget is not None and self._pace > 0:
            cap = max(1, min(cap, int(budget / self._pace)))
        self._cap(cap)
        self._ask(n)
        self._replay(self._graphs, 1)
        self._cap(self.iterations)
        self.report.elapsed = (time.perf_counter() - started) / n
        self.report.deadline_missed = False
        if budget is not None:
            passes = int(np.max(self.report.iterations))
            cut = passes >= cap and not np.all(self.report.converged)
            self._pace = max(0.9 * self._pace, self.report.elapsed / max(1, passes))
            self.report.deadline_missed = bool(cut or self.report.elapsed > budget)
        return self.report

    def __init__(self, model: Model, dt: float, settings: Any, iterations: int, tolerance: float, threads: int | None) -> None:
        if not (np.isfinite(tolerance) and tolerance > 0):
            raise SimulationError(f"tolerance is a finite impulse above 0 N·s, got {tolerance!r}")
        super().__init__(model, dt, settings, threads)
        self.iterations, self.tolerance = check_iterations(iterations, 1), float(tolerance)
        self.settings.gravity = wp.array([model.gravity], dtype=vec3, device=self.device)
        self.settings.tolerance = wp.array([tolerance], dtype=real, device=self.device)
        self.settings.iterations = wp.array([iterations], dtype=wp.int32, device=self.device)
        self._capped: int = self.iterations
        # bits of the number of a call in which the guard does not look, where steps cannot leave joints open: three in four
        self._blind = 3 if model.worlds == 1 else 0
        self._graphs: list[Any] = []
        self._was: tuple[State, Control, Any] | None = None  # what was bound until something might have changed
        # joints taken out of the tree, whether any axis is acted on, by loads, and whether any joint is out
        self._shape: tuple[list[int], bool, bool, bool] = ([], False, False, False)
        self._acting = False
        self._one: Any = None  # the graph of one step, where one thread makes it, and of one that the guard looks at
        self._one_watched: Any = None
        self._steps, self._single = (wp.array([1], dtype=wp.int32, device=self.device) for _ in range(2))
        self._count: int = 1
        self.report: Report = Report(self.done, self.residual, self.tolerance)

    def _ask(self, n: int) -> None:
        """How many steps a launch makes."""
        if self._count != n:
            self._steps.assign(np.array([n], np.int32))
            self._count = n

    def _cap(self, iterations: int) -> None:
        if self._capped != iterations:
            caps = self.settings.iterations.numpy()
            caps[0] = self._capped = iterations
            self.settings.iterations.assign(caps)

    def look_at_all(self, on: bool) -> None:
        """Whether the guard looks at every step."""
        self._all = on

    def acts_changed(self) -> None:
        """To be called when something begins to act on free axes where nothing did, or a joint is taken out or put back."""
        if self._bound is not None:
            self._was, self._bound = self._bound, None

    def _without(self, control: Control) -> list[int]:
        """Joints that are taken out: in all worlds, since these share the tree."""
        on = control.enabled.numpy() != 0
        some = np.flatnonzero(on.any(1) != on.all(1))
        if len(some):
            name = next(n for n, k in self.model.joint_names.items() if k == some[0])
            raise SimulationError(f"joint {name!r}: enabled is the same in all worlds with this solver")
        return [int(k) for k in np.flatnonzero(~on.all(1))]

    def _structure(self, state: State, control: Control, without: list[int]) -> tuple[Any, Any]:
        """The device's structure for these arrays, as an array of one and itself."""
        raise NotImplementedError

    def _bind(self, state: State, control: Control) -> None:
        """Hang the tree, and capture the kernel for these arrays; what hangs and acts as before is taken up again."""
        without = self._without(control)
        for name in ("drive_impulse", "axis_impulse", "friction_impulse", "limit_impulse", "current", "stuck"):
            array = getattr(state, name)
            values = array.numpy()
            for k in without:  # nothing acts on a joint that is taken out
                values[self.model.v_start[k] : self.model.v_start[k] + self.model.joint_kinds[k].v_size] = 0
            array.assign(values)
        acts = control.acts.numpy().copy()
        acts[without] = 0
        self._acting = bool(acts.any())
        shape = without, self._acting, bool((control.friction_load.numpy() > 0).any()), bool((control.enabled.numpy() == 0).any())
        was, self._was = self._was, None
        if was is not None and was[0] is state and was[1] is control and shape == self._shape:
            self._bound = was
            return
        self._shape = shape
        bound, self._kept = self._structure(state, control, without)  # kept: its arrays stay alive
        self._bound = state, control, bound
        self._graphs = self._capture(self._launch)
        self._one = self._capture(self._launch_blind)[0] if self._pool is None else None
        self._one_watched = self._capture(self._launch_one)[0] if self._pool is None else None

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
        self._watch(state, control, self._acting, self._looks(tree))
        s.tally = self.tally

    def _looks(self, tree: Links) -> int:
        """How the guard learns of gaps (`guard.Watch`): in joint coordinates there are none but where loops are closed."""
        return 2 if int(tree.closures.count) > int(tree.closures.springs.count) else 0

    def _make(self, step: Any, first: int, worlds: int, steps: Any) -> None:
        wp.launch(self._kernel, dim=worlds, inputs=[step, first, steps], device=self.device)

    def _launch(self, step: Any, first: int, worlds: int) -> None:
        self._make(step, first, worlds, self._steps)
        self._look(first, worlds)

    def _launch_blind(self, step: Any, first: int, worlds: int) -> None:
        self._make(step, first, worlds, self._single)

    def _launch_one(self, step: Any, first: int, worlds: int) -> None:
        self._make(step, first, worlds, self._single)
        self._look(first, worlds)


class SolverArticulated(TreeSolver):
    """Steps a model in time, in the coordinates of its joints: these never open, and loops are closed to 1e-9 m.

    Args:
        model: what `Scene.build` returned.
        dt: step, s.
        iterations: cap of the passes over the tree in a step; one is enough unless a joint begins to stick, slip or meet a limit.
        tolerance: a step is solved when what acts on an axis is met to so much, N·s or N·m·s.
        threads: CPU threads that share the worlds; all cores if None (one world needs one).
    """

    reads = True
    _kernel = kernels.steps

    def __init__(
        self, model: Model, dt: float, *, iterations: int = 60, tolerance: float = FINE, threads: int | None = None
    ) -> None:
        for name, k in model.joint_names.items():
            if min(model.joints.break_force.numpy()[k], model.joints.break_torque.numpy()[k]) < 1e30:
                raise SimulationError(f"joint {name!r} may break; joint coordinates cannot follow that: use solver='impulse'")
        super().__init__(model, dt, Settings(), iterations, tolerance, threads)
        load_modules([self._kernel.module, kinematics.read_joints.module], self.device)
        self.settings.kick = wp.zeros(model.worlds, dtype=real, device=self.device)
        self.report = Report(self.done, self.residual, self.tolerance, self.grades)

    def _structure(self, state: State, control: Control, without: list[int]) -> tuple[Any, Any]:
        m = self.model
        tree = Links(m, without=without, at_com=True, gathering=self._gathering)
        scratch = tree.work(m.worlds)
        step = Step()
        self._fill(step, tree, scratch, state, control)
        step.rows.gear_start = state.gear_start
        inner = State()
        for name in State.vars:  # type: ignore[attr-defined]
            setattr(inner, name, getattr(state, name))
        inner.q, inner.qd = scratch.q, scratch.v
        step.state, step.q, step.qd = inner, state.q, state.qd
        step.nq, step.nv = len(state.q.numpy()), m.speeds
        step.loaded = int((control.friction_load.numpy() > 0).any())
        held = {link.joint for link in tree.links}
        step.read = wp.array([int(k not in held) for k in range(step.scene_joints)], dtype=wp.int32, device=self.device)
        step.tau, step.qdd = scratch.tau, state.qdd
        step.mid, step.new_v = (wp.zeros((tree.nv, m.worlds), dtype=real, device=self.device) for _ in range(2))
        step.fastest, step.stored = (wp.zeros(m.worlds, dtype=real, device=self.device) for _ in range(2))
        step.felt = wp.zeros(m.worlds, dtype=vec3, device=self.device)
        fill(step, m, len(m.com), "old_velocity")
        fill(step, m, tree.nv, "last_qdd")
        fill(step, m, step.scene_joints, "lost")
        step.grades = self.grades
        fill(step, m, len(tree.half_of), "pull_l pull_a")
        fill(step, m, None, "roped as_begun")
        return wp.array([step], dtype=Step, device=self.device), step

    def restart(self) -> None:
        """Coordinates are taken from the state."""
        if self._bound is not None:
            self._kept.stored.zero_()


class SolverArticulatedRope(SolverArticulated):
    """The same with ropes: joints, what acts on them, loops and ropes in one solve.

    Args:
        rope_state, rope_control: of `model.ropes`, which are laid out for trees (`Ropes.on_trees`).
        rope_iterations, rope_tolerance: see `SolverRope`. The others are those of `SolverArticulated`.
    """

    _kernel = articulated_rope_steps

    def __init__(
        self, model: Model, dt: float, *, rope_state: RopeState, rope_control: RopeControl, rope_iterations: int = 12,
        rope_tolerance: float = 1e-8, **options: Any,
    ) -> None:  # fmt: skip
        ends = {e.body for rope in model.ropes.described for e in rope.ends if e.body is not None}
        self._gathering = sorted(ends | {tie.body for rope in model.ropes.described for tie in rope.ties})
        super().__init__(model, dt, **options)
        self.rope_state, self.rope_control = rope_state, rope_control
        rope_tolerance = max(rope_tolerance, 100 * EPSILON)
        settings: Any = rope_settings(RopeSettings(), rope_tolerance, rope_iterations, self.device)
        settings.dt, settings.gravity = self.settings.dt, self.settings.gravity
        self.rope_settings = settings
        self.report = Report(self.done, self.residual, self.tolerance, self.grades, (self.rope_residual, rope_tolerance))

    def _structure(self, state: State, control: Control, without: list[int]) -> tuple[Any, Any]:
        _, s = super()._structure(state, control, without)
        m, bodies = self.model, s.pull_l.shape[0]
        fill(s, m, bodies, "rope_A rope_B rope_D rope_v rope_w rope_l rope_a position rotation")
        fill(s, m, s.state.q.shape[0], "new_q")
        fill(s, m, int(s.closures.count), "row_force")
        fill(s.work, m, bodies, "change_l change_a")
        fill(s.work, m, s.new_v.shape[0], "change")
        begun = shared(state, State)
        begun.position, begun.rotation = s.work.position, s.work.rotation
        begun.velocity, begun.spin = s.work.velocity, s.work.omega
        rope = rope_step(m, self.rope_state, self.rope_control, begun, control, self.rope_settings)
        rope.body.A, rope.body.B, rope.body.D = s.rope_A, s.rope_B, s.rope_D
        fill(rope.body, m, bodies, "v w")
        rope.body.x, rope.body.q = s.position, s.rotation
        rope.body.dv, rope.body.dw = s.work.change_l, s.work.change_a
        rope.h, rope.kick = s.settings.part, s.settings.kick
        rope.residual, rope.grades = self.rope_residual, self.grades
        ports = make_ports(m.ropes, bodies)
        self._hung = rope, ports
        self._ropes, self._ports = (wp.array([x], dtype=k, device=self.device) for x, k in ((rope, RopeStep), (ports, Ports)))
        return wp.array([s], dtype=Step, device=self.device), s

    def _make(self, step: Any, first: int, worlds: int, steps: Any) -> None:
        wp.launch(self._kernel, dim=worlds, inputs=[step, self._ropes, self._ports, first, steps], device=self.device)
