"""SolverRope: steps of ropes and of the bodies that hold them, where no joint is in the scene."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import warp as wp

from sharnir.core.types import EPSILON, alone, load_modules, real, vec3
from sharnir.engine.base import GRADES, Report, Solver, check_iterations, gravity_of, with_ropes, write
from sharnir.engine.caps import HEADWAY, HEARD, LONGEST, MOST_PASSES, NEVER, SMALL_SCENE
from sharnir.engine.rope.build import zeros
from sharnir.engine.rope.data import MIXED, BodyWork, RopeSettings, RopeStep, RopeWork
from sharnir.engine.rope.energy_kernels import energy_steps
from sharnir.engine.sleep import joining, rest_of, sleeps_after
from sharnir.errors import SimulationError
from sharnir.model.model import Control, Model, State, fill

IMPLICIT, RELATIVE = 0.5, 0.25  # β and δ of `predict_elements`
PASSES, TOLERANCE = 30, 1e-12  # of a part of a step
RINGING = 0.8  # ρ of `weights`


def rope_settings(settings: Any, tolerance: float, iterations: list[int], device: Any) -> Any:
    """Fill what ropes need besides dt and gravity.

    iterations: caps of the passes of a part and, of ropes alone, of those of a step; 1: beyond that nothing moves in it, 0: it is
    not made; passes after which a call of many steps is left; and most of a step without a further part made.
    """
    settings.tolerance = wp.array([tolerance], dtype=real, device=device)
    settings.iterations = wp.array(iterations, dtype=wp.int32, device=device)
    settings.beta = wp.array([IMPLICIT, RELATIVE, RINGING], dtype=real, device=device)
    return settings


def rope_step(model: Model, state: State, control: Control, settings: RopeSettings) -> Any:
    """The structure of a step for these arrays, with scratch of its own."""
    r, worlds, device = model.ropes, model.worlds, model.device
    s, work, body = RopeStep(), RopeWork(), BodyWork()
    zeros(work, RopeWork, r.slots, worlds, device)
    rows, ends = 6 * len(r.group), 2 * r.count
    sizes = dict.fromkeys(["arm", "end_arm", "frame0", "frame1", "frame_turn"], ends)
    sizes |= {"kept_end": ends, "kept_tie": r.table.ties}
    columns = int(MIXED) + 1
    sizes |= dict.fromkeys(["mix_fv", "mix_fw", "mix_v", "mix_w", "mix_pull", "mix_moment"], columns * r.slots)
    sizes |= {"mix_end": columns * ends, "mix_tie": columns * r.table.ties}
    of_ropes = "Z_A Z_B Z_C Z_D p_l p_a G last_X last_Y last_P last_Q g change speed weight"
    sizes |= dict.fromkeys([*of_ropes.split(), "paid", "back", "winds", "rim", "slid", "lever", "drum_rate"], r.count)
    for name, size in (sizes | {"tie_arm": r.table.ties, "tie_end": r.table.ties, "dense_p": rows}).items():
        dtype = RopeWork.vars[name].type.dtype  # type: ignore[attr-defined]
        setattr(work, name, wp.zeros((size, worlds), dtype=dtype, device=device))
    work.dense = wp.zeros((rows, rows, worlds), dtype=real, device=device)
    if r.table.exact == 0:
        work.end_arm, work.tie_end = work.arm, work.tie_arm
    zeros(body, BodyWork, len(model.com), worlds, device)
    for name in ("mix_fv", "mix_fw", "mix_v", "mix_w"):
        setattr(body, name, wp.zeros((columns * len(model.com), worlds), dtype=vec3, device=device))
    hung = np.zeros(len(model.com), np.int32)
    hung[r.hung] = 1
    body.hung = wp.array(hung, dtype=wp.int32, device=device)
    s.ropes, s.state, s.control, s.work, s.body, s.settings = r.table, state.rope, control.rope, work, body, settings
    s.bodies, s.body_state, s.body_control = model.bodies, state, control
    s.h, s.kick = (wp.zeros(worlds, dtype=real, device=device) for _ in range(2))
    for name in ("exact", "hard", "done", "parts", "sudden", "swept", "judged", "made", "headway"):
        setattr(s, name, wp.zeros(worlds, dtype=wp.int32, device=device))
    s.residual, s.energy = (wp.zeros(worlds, dtype=real, device=device) for _ in range(2))
    s.grades = wp.zeros((len(GRADES), worlds), dtype=wp.int32, device=device)
    return s


def shared(struct: Any, kind: Any) -> Any:
    """Another structure of the same arrays."""
    out = kind()
    for name in kind.vars:
        setattr(out, name, getattr(struct, name))
    return out


class SolverRope(Solver):
    """Steps ropes in time, with the bodies that hold them.

    Args:
        model: what `Scene.build` returned.
        dt: step, s.
        iterations: cap of the passes of a step or a part of it; 30 if None.
        tolerance: largest change of a velocity in the last pass, of the largest speed; 1e-12 if None.
        sleep: whether what stands still sleeps, see `SolverSequential`.

    Rows are closed by mean vectors, which keeps energy and momenta to rounding at any step; a step whose passes do not meet is
    divided (`rope.energy`).
    """

    cayley = True

    def __init__(
        self, model: Model, dt: float, *, iterations: int | None = None, tolerance: float | None = None,
        threads: int | None = None, sleep: bool = True,
    ) -> None:  # fmt: skip
        self._refuse(model)
        model = with_ropes(model, trees=False)
        super().__init__(model, dt, RopeSettings(), threads)
        iterations = PASSES if iterations is None else iterations
        tolerance = TOLERANCE if tolerance is None else tolerance
        self._kernel = energy_steps
        load_modules([self._kernel.module], self.device)
        self.ropes = model.ropes
        self.iterations = check_iterations(iterations, 1)
        self.settings.gravity = gravity_of(model)
        tolerance = max(tolerance, 100 * EPSILON)
        self._pace, self._leaves = self._takes(), wp.get_device(self.device).is_cpu
        rope_settings(self.settings, tolerance, self._caps(None), self.device)
        self.settings.sleep = sleeps_after(model, sleep)
        self._steps, self._made = (wp.full(model.worlds, 1, dtype=wp.int32, device=self.device) for _ in range(2))
        self.report = Report(self.done, self.residual, tolerance, self.grades, parts=self.parts, verdict=self.verdict)
        self._graphs: list[Any] = []
        self._count = 1

    @staticmethod
    def _refuse(model: Model) -> None:
        """Name what keeps this solver from stepping a model."""
        if model.ropes is None:
            raise SimulationError("SolverRope steps ropes and the bodies that hold them, and the model has no rope")
        held = next(iter([*model.joint_names, *model.spring_names]), None)
        if held is not None:
            what = "joint" if held in model.joint_names else "spring"
            raise SimulationError(f"SolverRope steps ropes alone, and the model has {what} {held!r}; take SolverDirect")

    def furnish(self, state: State) -> None:
        """The state as the last call left it, and what was commanded then."""
        if state.kept_rotation.shape[0] == 0:
            fill(state, self.model, len(self.model.com), "kept_velocity kept_momentum")
            fill(state, self.model, len(self.model.com), "kept_position kept_rotation felt_force felt_torque")

    def _bind(self, state: State, control: Control) -> None:
        """Capture the step for these arrays."""
        self._check_ropes(state)
        self.furnish(state)
        now = rope_step(self.model, state, control, self.settings)
        now.done, now.residual, now.parts, now.grades = self.done, self.residual, self.parts, self.grades
        now.made = self._made
        self._watch(state, control, 0)
        now.tally = self.tally
        self._rest = rest_of(self.model, self.settings, state, state, control, joining(self.model, state, control))
        now.rest = self._rest[0]
        self._kept = now  # its arrays stay alive
        self._bound = state, control, alone(now, RopeStep, self.device)
        self._graphs = self._capture(self._launch)

    def _launch(self, now: Any, first: int, worlds: int) -> None:
        wp.launch(self._kernel, dim=worlds, inputs=[now, first, self._steps], device=self.device)
        self._look(first, worlds)

    def acts_changed(self) -> None:
        """Nothing acts on joints here."""

    def step(
        self, state: State, control: Control, n: int = 1, *, budget: float | None = None, iterations: int | None = None
    ) -> Report:
        """Advance every world by n steps; a world that fails keeps its last good state and is marked in `state.failed`.

        Args:
            budget: wall-clock time of a step, s: passes end when it has run out, going by how long they took before; in what is
                left of the step nothing moves, and the report says so.
            iterations: cap of the passes of a step; what a step reported repeats it bit for bit.
        """
        if self._bound is None or self._bound[0] is not state or self._bound[1] is not control:
            self._bind(state, control)
        started = time.perf_counter()
        cap = None if iterations is None else check_iterations(iterations, 1)
        if budget is not None:
            fits = max(self.iterations, int(budget / self._pace))
            cap = fits if cap is None else min(cap, fits)
        try:
            if cap is not None:
                write(self.settings.iterations, self._caps(cap))
            self._make_steps(n, self.model.worlds == 1)
        finally:
            if cap is not None:
                write(self.settings.iterations, self._caps(None))
        self.report.elapsed = (time.perf_counter() - started) / n
        self.report.deadline_missed = budget is not None and (self.report.elapsed > budget or not np.all(self.report._met))
        if budget is not None:
            sample = self.report.elapsed / max(1, int(self.done.numpy().max()))
            self._pace = max(0.9 * self._pace, min(sample, 2.0 * self._pace))
        return self.report

    def _takes(self) -> float:
        """About how long a pass takes on one core, s."""
        bends = any(rope.EI + rope.GJ > 0 for rope in self.model.ropes.described)
        item = 0.75e-6 if bends else 0.5e-6
        return float(item * (self.model.ropes.slots + len(self.model.com)) + 2e-8 * (6 * len(self.model.ropes.group)) ** 2)

    def _caps(self, iterations: int | None) -> list[int]:
        """Caps of the passes, as the device has them (`rope_settings`)."""
        small = len(self.model.com) <= SMALL_SCENE and self.model.ropes.slots <= 10 * SMALL_SCENE
        headway = max(4 * self.iterations, int(LONGEST / self._takes())) if small else MOST_PASSES
        most = HEADWAY * headway if small else MOST_PASSES
        left = max(1, int(HEARD / self._takes())) if self._leaves else NEVER
        if iterations is None:
            return [self.iterations, most, 0, left, headway]
        return [self.iterations, min(most, iterations), 1, left, NEVER]
