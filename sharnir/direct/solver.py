"""SolverDirect: maximal coordinates, a tree of joints solved at once by a backward and a forward pass (theory: direct pass)."""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp

from sharnir import kinematics
from sharnir.direct.data import BallWork, Direct, DirectSettings
from sharnir.direct.energy.rope import energy_rope_steps
from sharnir.direct.energy.step import KERNELS as ENERGY_KERNELS
from sharnir.direct.leapfrog.rope import direct_rope_steps
from sharnir.direct.leapfrog.step import KERNELS as LEAPFROG_KERNELS
from sharnir.errors import SimulationError
from sharnir.model import STATE_FIELDS, Control, Model, State, fill
from sharnir.rope.data import MIXED, PORT, RopeControl, RopeSettings, RopeState, RopeStep
from sharnir.rope.ports import Ports, make_ports
from sharnir.rope.solver import CLOSINGS as ROPE_CLOSINGS
from sharnir.rope.solver import HEARD, LONGEST, MOST_PASSES, NEVER, SMALL_SCENE, halves, rope_settings, rope_step, shared
from sharnir.solver import Report, check_iterations, write
from sharnir.tree.hang import Links
from sharnir.tree.solver import FINE, TreeSolver
from sharnir.types import EPSILON, load_modules, real

CLOSINGS = ("energy", "position", "velocity")
FACTORS = 4  # that a step may make in any case


class SolverDirect(TreeSolver):
    """Steps a model in time; joints, with all that acts on them, are solved exactly, without iterations along the mechanism.

    Args:
        model: what `Scene.build` returned.
        dt: step, s.
        closing: "position": joints are closed at the end of the step by the velocities themselves, which stand at half steps;
            "velocity": velocities follow the chord of each joint's arc, and poses alone are moved to close what is left.
        iterations: cap of the passes in which stick, slip and limits are found; one is enough unless one of them changes.
        closing_iterations: cap of the passes that close the joints.
        tolerance: a step is solved when what acts on an axis is met to so much, N·s or N·m·s.
        gap: a joint is closed to so much, m or rad; by default 1e-10 at position level, else 1e-7.
        threads: CPU threads that share the worlds; all cores if None (one world needs one).
    """

    _closings: tuple[str, ...] = CLOSINGS

    def __init__(
        self,
        model: Model,
        dt: float,
        *,
        closing: str | None = None,
        iterations: int = 60,
        closing_iterations: int = 20,
        tolerance: float = FINE,
        gap: float | None = None,
        threads: int | None = None,
    ) -> None:
        closing = self._closings[0] if closing is None else closing
        if closing not in self._closings:
            raise SimulationError(f"closing is one of {', '.join(map(repr, self._closings))}, got {closing!r}")
        gap = (FINE if closing != "velocity" else max(1e-7, FINE)) if gap is None else gap
        if not (np.isfinite(gap) and gap > 0):
            raise SimulationError(f"gap is a finite length above 0 m, got {gap!r}")
        super().__init__(model, dt, DirectSettings(), iterations, tolerance, threads)
        self.closing, self._leaves = closing, closing == "energy" and wp.get_device(self.device).is_cpu
        load_modules([kinematics.read_joints.module], self.device)
        self._tree = self._hang()
        self.closing_iterations = check_iterations(closing_iterations, 1, "closing_iterations")
        self.settings.tolerance = wp.array([tolerance, gap], dtype=real, device=self.device)
        self.settings.iterations = wp.array(self._caps(None), dtype=wp.int32, device=self.device)
        self.settings.kick = wp.zeros(model.worlds, dtype=real, device=self.device)
        self.settings.position = wp.array([int(closing == "position")], dtype=wp.int32, device=self.device)
        self._blind = self._blind if closing == "energy" else 0
        self.report = Report(self.done, self.residual, self.tolerance, self.grades, projected=self.projected, parts=self.parts)

    def _hang(self) -> Links:
        return Links(self.model, without=[], at_com=True, keeps=True, balls=self.closing == "energy")

    def rebuild(self) -> None:
        """To be called after tables of the model were changed: masses of links, and what acts on them, are taken anew."""
        super().rebuild()
        self._tree = self._hang()

    def begin_anew(self, state: State) -> None:
        """Where velocities stand at half steps: begin the next step from those of the pose."""
        if self.closing != "energy":
            state.kept_rotation.zero_()

    def furnish(self, state: State) -> None:
        """Velocities and reactions of half steps, and what the state was when they were made."""
        if state.mid_velocity.shape[0] == 0:
            fill(state, self.model, len(self.model.com), "mid_velocity mid_momentum felt_force felt_torque")
            fill(state, self.model, len(self.model.com), "kept_position kept_rotation kept_velocity kept_momentum")
            fill(state, self.model, len(self.model.joint_kinds), "mid_force mid_torque mid_tense")
            fill(state, self.model, self.model.speeds, "felt_joint rotor mid_current")
            fill(state, self.model, len(self.model.com), "last_v last_w slope_v slope_w older_v older_w guess_v guess_w trend")
            fill(state, self.model, int(self._tree.closures.count), "row_force")

    @property
    def _least(self) -> int:
        """Passes that a step may take in any case."""
        return self.closing_iterations + FACTORS * self._anew

    @property
    def _anew(self) -> int:
        """As how many passes one counts that makes new factors: each row beside the tree takes a part of one."""
        return 1 + int(self._tree.closures.count) // 7 if self.closing == "energy" else 1

    def _takes(self) -> float:
        """About how long a pass takes on one core, s: more where rows are closed beside the tree, and where something acts."""
        link = 0.65e-6 * (3 + 2 * self._acting if int(self._tree.closures.count) else 1 + self._acting)
        return link * max(1, len(self._tree.links)) + 0.6e-9 * int(self._tree.closures.count) ** 2

    def _most_passes(self) -> int:
        """Passes that a step may take, however finely it is divided: so many that one of a small scene ends within LONGEST."""
        if len(self.model.com) > SMALL_SCENE:
            return MOST_PASSES
        return max(2 * self._least, int(LONGEST / self._takes()))

    def _caps(self, iterations: int | None) -> list[int]:
        """Of the passes of the laws, of the closing, of all of a step; 1: beyond that it is made coarsely, 0: not at all; the
        least of a step; as how many one counts that makes new factors; and those after which a call of many steps is left.
        """
        most, laws, coarse = self._most_passes(), self.iterations, int(iterations is not None)
        if iterations is not None:
            most, laws = min(self._least + iterations, most), min(-(-iterations // self._anew), laws)
        left = max(1, int(HEARD / self._takes())) if self._leaves else NEVER
        return [laws, self.closing_iterations, most, coarse, self._least, self._anew, left]

    def _looks(self, tree: Links) -> int:
        """By the energy closing not at all: `State.open` is what its passes left open."""
        return 0 if self.closing == "energy" else 2

    def _without(self, control: Control) -> list[int]:
        """None: a joint that is taken out stays in the tree and carries nothing, in each world as it is told."""
        return []

    def _structure(self, state: State, control: Control, without: list[int]) -> tuple[Any, Any]:
        m = self.model
        self.furnish(state)
        tree = self._tree
        scratch = tree.work(m.worlds)
        s = Direct()
        self._fill(s, tree, scratch, state, control)
        inner = State()
        for name in STATE_FIELDS:
            setattr(inner, name, getattr(state, name))
        if self.closing != "energy":
            inner.velocity, inner.momentum = state.mid_velocity, state.mid_momentum
            inner.joint_force, inner.joint_torque = state.mid_force, state.mid_torque
            inner.current = state.mid_current
        s.gears, s.state, s.now = m.gears, inner, state
        s.rows.gear_start = state.gear_start
        s.tau, s.speed = scratch.tau, scratch.a
        others = [b for b in range(len(tree.half_of)) if b not in tree.link_of]
        s.others, s.other_count = wp.array(others, dtype=wp.int32, device=self.device), len(others)
        links, bodies = len(tree.links), len(tree.half_of)
        fill(s, m, bodies, "momentum gyration position rotation mean_spin")
        fill(s, m, links, "inertia impulse_l impulse_a stiff mean near tense")
        fill(
            s, m, links, "gain carried_l carried_a sum_l sum_a arm1 out1 full_A full_B full_C full_D work_C ball_push ball_speed"
        )
        fill(s, m, tree.nv, "turned moved end_l end_a left_l left_a kept_u lock_u")
        fill(s, m, int(s.closures.count), "row_impulse mean_cl mean_ca mean_pl mean_pa")
        fill(s, m, None, "before after pushed tight passes stopped loose blurred")
        self._passes, s.made = s.passes, self._made
        s.drift, s.kick = self.settings.part, self.settings.kick
        s.grades, s.projected, s.parts = self.grades, self.projected, self.parts
        if self.closing == "energy":
            safe = State()
            for name in STATE_FIELDS:
                setattr(safe, name, wp.empty_like(getattr(inner, name)))
            s.safe = safe
        s.balls = BallWork()
        simple = tree.tree.row.numpy()
        strength = np.minimum(m.joints.break_force.numpy(), m.joints.break_torque.numpy()) if m.joint_kinds else np.ones(0)
        off = bool((control.enabled.numpy() == 0).any() or (strength < 1e30).any())
        scope = (
            2 if self._acting or int(s.closures.count) or off else 1 - int(np.all((simple["kind"] > 0) | (simple["hinge"] > 0)))
        )
        s.work.kind.assign(np.repeat(simple["kind"][:, None], m.worlds, 1))
        if m.ropes is not None:
            scope = 2
        self._kernel, s.speeds = (ENERGY_KERNELS if self.closing == "energy" else LEAPFROG_KERNELS)[scope], m.speeds
        if scope == 0:
            s.work.position, s.work.rotation = state.position, state.rotation
        if m.ropes is None:
            load_modules([self._kernel.module], self.device)
        fill(s.balls, m, links, " ".join(BallWork.vars))  # type: ignore[attr-defined]
        self._pace = self._takes()
        write(self.settings.iterations, self._caps(self._capped))
        return wp.array([s], dtype=Direct, device=self.device), s


class SolverDirectRope(SolverDirect):
    """The same with ropes: joints, what acts on them, bodies and ropes in one solve; joints are closed as without ropes.

    Args:
        rope_state, rope_control: of `model.ropes`, which are laid out for trees (`Ropes.on_trees`).
        rope_iterations, rope_tolerance: see `SolverRope`. The others are those of `SolverDirect`.
    """

    def __init__(
        self, model: Model, dt: float, *, rope_state: RopeState, rope_control: RopeControl, rope_iterations: int | None = None,
        rope_tolerance: float | None = None, **options: Any,
    ) -> None:  # fmt: skip
        passes, close = ROPE_CLOSINGS["energy" if options.get("closing") in (None, "energy") else "position"]
        rope_iterations = passes if rope_iterations is None else check_iterations(rope_iterations, 1, "rope_iterations")
        self.rope_iterations = rope_iterations
        self.rope_state, self.rope_control = rope_state, rope_control
        super().__init__(model, dt, **options)
        rope_tolerance = close if rope_tolerance is None else rope_tolerance
        settings: Any = rope_settings(RopeSettings(), max(rope_tolerance, 100 * EPSILON), [rope_iterations], self.device)
        settings.dt, settings.gravity = self.settings.dt, self.settings.gravity
        self.rope_settings = settings

    @property
    def _least(self) -> int:
        return self.rope_iterations + FACTORS * self._anew

    @property
    def _anew(self) -> int:
        ports = int((self.model.ropes.table.kind.numpy() == PORT).sum())
        return super()._anew + 2 * ports * (self.closing == "energy")

    def _takes(self) -> float:
        return 1.25 * super()._takes() + 0.5e-6 * int(self.model.ropes.slots)

    def _structure(self, state: State, control: Control, without: list[int]) -> tuple[Any, Any]:
        _, s = super()._structure(state, control, without)
        m = self.model
        rope = rope_step(m, self.rope_state, self.rope_control, state, control, self.rope_settings)
        s.roped = 1
        bodies = s.position.shape[0]
        fill(s, m, bodies, "rope_A rope_B rope_D rope_l rope_a")
        rope.body.A, rope.body.B, rope.body.D = s.rope_A, s.rope_B, s.rope_D
        rope.body.v, rope.body.w, rope.body.x, rope.body.q = s.work.acceleration, s.work.turning, s.position, s.rotation
        rope.body.dv, rope.body.dw = s.work.change_l, s.work.change_a
        rope.h, rope.kick = s.drift, s.kick
        ports = make_ports(m.ropes, bodies)
        if self.closing == "energy":
            return self._bind_energy(s, rope, ports, bodies)
        self._hung: tuple[Any, ...] = *halves(rope), rope, ports
        kinds = (RopeStep, RopeStep, RopeStep, Ports)
        self._ropes = [wp.array([x], dtype=kind, device=self.device) for x, kind in zip(self._hung, kinds, strict=True)]
        load_modules([direct_rope_steps.module], self.device)
        return wp.array([s], dtype=Direct, device=self.device), s

    def _bind_energy(self, s: Any, rope: Any, ports: Any, bodies: int) -> tuple[Any, Any]:
        """Arrays of the energy closing: arms of its own by which points move, mixed passes, a state to go back to."""
        m = self.model
        fill(rope.body, m, bodies, "last_v last_w")
        fill(rope.body, m, (int(MIXED) + 1) * bodies, "mix_fv mix_fw mix_v mix_w")
        fill(rope.work, m, 2 * m.ropes.count, "end_arm")
        fill(rope.work, m, m.ropes.table.ties, "tie_end")
        fill(rope.work, m, (int(MIXED) + 1) * s.row_impulse.shape[0], "mix_rows")
        safe = shared(rope, RopeStep)
        safe.state = RopeState()
        for name in RopeState.vars:  # type: ignore[attr-defined]
            setattr(safe.state, name, wp.empty_like(getattr(rope.state, name)))
        self._hung = rope, ports, safe
        kinds = (RopeStep, Ports, RopeStep)
        self._ropes = [wp.array([x], dtype=kind, device=self.device) for x, kind in zip(self._hung, kinds, strict=True)]
        load_modules([energy_rope_steps.module], self.device)
        return wp.array([s], dtype=Direct, device=self.device), s

    def _make(self, step: Any, first: int, worlds: int, steps: Any) -> None:
        if self.closing == "energy":
            wp.launch(energy_rope_steps, dim=worlds, inputs=[step, *self._ropes, first, steps], device=self.device)
            return
        wp.launch(direct_rope_steps, dim=worlds, inputs=[step, *self._ropes, first, steps], device=self.device)
