"""Simulation: the friendly face. Names instead of indices, NumPy values, one world or many.

Values have the shapes given below; with several worlds they get a leading world axis, (worlds, …).
"""

from __future__ import annotations

import inspect
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import warp as wp

from sharnir import assembly, dynamics
from sharnir.articulated.solver import SolverArticulated
from sharnir.direct.energy.step import SPENT
from sharnir.errors import DivergenceError, SceneError, SceneWarning, SimulationError, StepWarning, is_positive
from sharnir.guard import (
    COUNTS,
    DIVERGED,
    ENERGY,
    EXCESS,
    FIGURE,
    GAINED,
    NOT_MET,
    OPEN_GAP,
    SCALE,
    SPEED,
    SUMS,
    TOLD,
    TORN,
    TURNS,
    WHICH,
)
from sharnir.model import CONTROL_FIELDS, DYNAMIC, KINEMATIC, OWNED, STATE_FIELDS, Model, State
from sharnir.ode.integrate import first_of
from sharnir.rope.solver import SolverRope
from sharnir.rope.view import RopeView, rope_energy, rope_momentum
from sharnir.rope_state import ROPE_CONTROL_FIELDS, ROPE_STATE_FIELDS
from sharnir.scene import Scene, path_pose
from sharnir.sequential.solver import SolverImpulse
from sharnir.solver import Report, pack
from sharnir.solvers import asked_for, chosen
from sharnir.spatial import quat_conjugate, quat_exp, quat_log, quat_multiply, quat_rotate, turn_from
from sharnir.tree.solver import TreeSolver
from sharnir.views import BodyView, GearView, JointView, SpringView


@dataclass(frozen=True)
class Energy:
    """Energies of all dynamic bodies, J; potential is zero at the origin."""

    kinetic: Any
    potential: Any
    elastic: Any

    @property
    def total(self) -> Any:
        """The sum of the three, J."""
        return self.kinetic + self.potential + self.elastic


@dataclass(frozen=True)
class Momentum:
    """Momenta of all dynamic bodies: linear (3,) kg·m/s, angular (3,) about the origin, kg·m²/s."""

    linear: np.ndarray
    angular: np.ndarray


NOTHING, PLACES, ALL = 0, 1, 2  # what of the joints was read since the last change


ON_DIVERGENCE = ("raise", "warn", "ignore")
HEARD = 0.05  # s, after which at the latest Python is heard in a long call
LOOK_EVERY = 512  # steps, after which at the latest the guard looks at a long call
AS_USUAL: dict[str, Any] = {}
HEALTH = ("steps", "not_converged", "divided", "parts", "gap", "stretch", "residual", "energy_error", "projected")


@dataclass(frozen=True)
class Health:
    """How the steps of a simulation went; numbers, or arrays (worlds,)."""

    steps: Any
    """Steps made."""
    not_converged: Any
    """Steps whose passes or sweeps ended above the tolerance."""
    divided: Any
    """Steps made in parts."""
    parts: Any
    """Parts of those, in all."""
    gap: Any
    """Largest gap of a joint that was seen, m (with the direct pass m or rad)."""
    stretch: Any
    """Largest lengthening of a rope's element that was seen, relative."""
    residual: Any
    """Largest residual of a step, N·s or N·m·s."""
    energy_error: Any
    """Largest energy that steps made of nothing, of the motion's scale; what friction, drives and commands do is no error."""
    projected: Any
    """Energy that velocities lost because they did not fit the joints, J (`closing="energy"`, on the CPU)."""
    failed: Any
    """Whether the world stopped."""

    def __repr__(self) -> str:
        def text(value: Any) -> str:
            if isinstance(value, np.ndarray):
                return f"{value.min():.3g} to {value.max():.3g}" if value.dtype.kind == "f" else f"{value.min()} to {value.max()}"
            return f"{value:.3g}" if isinstance(value, float) else str(value)

        lines = [f"  {name}: {text(getattr(self, name))}" for name in self.__dataclass_fields__]
        return "Health(\n" + "\n".join(lines) + "\n)"


class Sum:
    """Adds up what the report counts in a call, where that is made in several goes."""

    def __init__(self, solver: Any) -> None:
        self._solver = solver
        self._sum: list[Any] | None = None

    def add(self, last: bool) -> None:
        """One more go was made."""
        if last and self._sum is None:
            return
        counted = [self._solver.grades.numpy(), self._solver.projected.numpy()]
        self._sum = [a.copy() for a in counted] if self._sum is None else [a + b for a, b in zip(self._sum, counted, strict=True)]
        if last:
            self._solver.grades.assign(self._sum[0])
            self._solver.projected.assign(self._sum[1])


class Columns:
    """Copies of memories that hold arrays [item, world], of which single worlds can be put back."""

    def __init__(self, memories: tuple[Any, ...], arrays: list[Any]) -> None:
        self._live = [memory.numpy() for memory in memories]
        self._safe = [np.empty_like(memory) for memory in self._live]
        self._arrays = []
        for array in arrays:
            if array.size:
                values = array.numpy()
                i = next(i for i, m in enumerate(memories) if m.ptr <= array.ptr < m.ptr + m.size)
                at = array.ptr - memories[i].ptr
                safe = np.ndarray(values.shape, values.dtype, self._safe[i].data, at)
                self._arrays.append((values, safe, array.ndim - 1))

    def keep(self) -> None:
        """Remember all of it as it is."""
        for live, safe in zip(self._live, self._safe, strict=True):
            safe[:] = live

    def take_back(self, worlds: Any = None) -> None:
        """Put back what was remembered, all of it or of some worlds."""
        if worlds is None:
            for live, safe in zip(self._live, self._safe, strict=True):
                live[:] = safe
            return
        for live, safe, axis in self._arrays:
            where = (slice(None),) * axis + (worlds,)
            live[where] = safe[where]


class Simulation:
    """A scene in motion.

    Args:
        scene: a Scene, or a Model that was built from one.
        dt: step, s.
        solver: "direct" (whole trees in one pass, exact), "sequential" (impulses joint by joint, any topology alike),
            "articulated" (as direct, with joint coordinates in the state), or "auto": direct, unless very many loops meet on one
            tree. `solver_name` tells which it is.
        worlds, device: number of copies that run at once, and where ("cpu" or "cuda:0").
        on_divergence: what is done where joints stand open by a whole body or energy comes from nowhere: "raise" a
            `DivergenceError` (of several worlds that one stops, and is marked in `failed`), "warn" once, or "ignore".
        iterations, position_iterations, erp, tolerance, threads: see `SolverImpulse`;
            `SolverDirect` takes closing, iterations, closing_iterations, tolerance, gap, threads, and `SolverArticulated`
            iterations, tolerance, threads.
    """

    def __init__(
        self,
        scene: Scene | Model,
        dt: float,
        *,
        solver: str = "auto",
        method: str | None = None,
        worlds: int = 1,
        device: str = "cpu",
        on_divergence: str = "raise",
        **options: Any,
    ) -> None:
        if on_divergence not in ON_DIVERGENCE:
            raise SimulationError(f"on_divergence is one of {', '.join(map(repr, ON_DIVERGENCE))}, got {on_divergence!r}")
        word = asked_for(solver, method)
        if not isinstance(scene, Scene | Model):
            raise SceneError(f"Simulation: scene is a Scene or a Model, got {scene!r}")
        if not is_positive(dt):
            raise SceneError(f"Simulation: dt is a positive finite number of seconds, got {dt!r}")
        self.model = scene.build(worlds=worlds, device=device) if isinstance(scene, Scene) else scene
        self.worlds = self.model.worlds
        self._at_pose = True  # whether velocities in the state are those of its pose
        self.solver_name, kind = chosen(self.model, word)
        self._check_options(kind, self.solver_name, options)
        self.solver: SolverImpulse | TreeSolver | SolverRope = kind(self.model, dt, **options)
        self.model = self.solver.model  # with ropes laid out as the solver takes them
        self._state, self.control = self.model.state(), self.model.control()
        self._make: Callable[..., Report] = getattr(self.solver, "advance", self.solver.step)
        self.solver.furnish(self._state)
        self._bodies = {name: BodyView(self, i, name) for name, i in self.model.body_names.items()}
        self._joints: dict[str, JointView | GearView] = {n: JointView(self, i, n) for n, i in self.model.joint_names.items()}
        self._joints |= {name: GearView(self, i, name) for name, i in self.model.gear_names.items()}
        self._springs = {name: SpringView(self, i, name) for name, i in self.model.spring_names.items()}
        ropes = self.model.ropes.names if self.model.ropes is not None else {}
        self._ropes = {name: RopeView(self, i, name) for name, i in ropes.items()}
        self._read = NOTHING  # which of the joints' coordinates and speeds in the state are those of now
        self._gravity = np.array(self.model.gravity)
        self._on_divergence = on_divergence
        self.solver.strict.fill_(int(on_divergence == "raise"))
        self._touched, self._forced = True, False  # whether the state was changed, or forces were set, since the last step
        self._pace = 0.0  # s, that a step took of late
        self._epoch = 0.0  # s, at which the device's clock began: steps do not depend on what a user calls the time
        live = self._pack(), self.solver.memory
        self._one = None  # of one world on the CPU: views of the device's memory
        on_cpu = wp.get_device(self.model.device).is_cpu
        self._lost = self.solver.projected.numpy() if on_cpu else None
        self._projected = np.zeros(self.worlds)
        self._many = self.solver.alarm.numpy() if on_cpu else None
        if on_cpu and self.worlds == 1:
            self._one = memoryview(self._state.failed.numpy()), memoryview(self.solver.alarm.numpy())
            self._live, self._live_report = (memoryview(memory.numpy()) for memory in live)  # copied faster than by NumPy
            self._safe, self._safe_report = (memoryview(memory.numpy().copy()) for memory in live)
        self._kept = Columns(live, self._packed + [self.solver.whole, self.solver.real]) if on_cpu and self.worlds > 1 else None
        self._start = self.snapshot()
        self._note_misfit()

    def _note_misfit(self) -> None:
        """Say where velocities at the start contradict joints; the first step takes off what does not fit."""
        if not self.model.joint_kinds or not (self.model.start["velocity"].any() or self.model.start["spin"].any()):
            return
        off = self.misfit()[0].max(1)
        worst = int(off.argmax())
        if off[worst] > 1e-6:
            name = next(n for n, k in self.model.joint_names.items() if k == worst)
            much = f"{off[worst]:.3g} m/s or rad/s"
            words = f"joint {name!r}: velocities at the start contradict it by {much}; the first step takes that off"
            warnings.warn(words, SceneWarning, stacklevel=3)

    @staticmethod
    def _check_options(kind: Any, name: str, options: dict[str, Any]) -> None:
        """Refuse options that the solver does not have, by name."""
        allowed = {p.name for p in inspect.signature(kind.__init__).parameters.values() if p.kind is p.KEYWORD_ONLY}
        for option in options:
            if option not in allowed:
                what = f"solver {name!r}" if kind is not SolverRope else "a scene of ropes without joints"
                raise SimulationError(f"Simulation: {option!r} is no option of {what}; allowed: {', '.join(sorted(allowed))}")

    # ---- time ----

    def step(self, n: int = 1, *, budget: float | None = None, iterations: int | None = None) -> Report:
        """Advance by n steps; returns the report of the last one (an object that is reused).

        Args:
            budget: wall-clock time for a step, s: the solver stops iterating before it runs out, and says so in the report.
            iterations: cap of the sweeps in this call; the counts that budgeted steps reported replay them bit for bit.

        A step that cannot be made, or whose result is not finite, is not made: with one world this raises `SimulationError`, with
        several the world is marked in `failed` and stays at its last good step while the others go on.
        """
        if n == 1 and budget is None and iterations is None and not self.model.paths:  # the usual call, kept short
            return self._advance(1, AS_USUAL)
        if n.__class__ is not int or n < 1:
            raise SimulationError(f"step(n): n is a whole number of at least 1, got {n!r}")
        if budget is not None and not is_positive(budget):
            raise SimulationError(f"step(budget=…): a positive finite time in s, got {budget!r}")
        how = {"budget": budget, "iterations": iterations}
        done, took, late, tally = 0, 0.0, False, Sum(self.solver)
        while done < n:
            if self.model.paths:
                self._follow_paths()
            part = 1 if self.model.paths or budget is not None else min(n - done, self._chunk())
            report = self._advance(part, how)
            done, took, late = done + part, took + part * report.elapsed, late or report.deadline_missed
            self._pace = report.elapsed
            tally.add(done == n)
        report.elapsed, report.deadline_missed = took / n, late
        return report

    def _chunk(self) -> int:
        """Steps that are made in one go: few enough that Ctrl-C is heard, and that the guard looks in between."""
        if self._touched or self._forced or self._pace == 0.0:
            return 1
        return max(1, min(8 if self.solver.driven else LOOK_EVERY, int(HEARD / self._pace)))

    def _advance(self, n: int, how: dict[str, Any]) -> Report:
        """Some steps in one go; of a world that fails, nothing is left but its last good state."""
        self._was_read = self._read, self._at_pose
        self._read, self._at_pose = ALL * self.solver.reads, self.solver.at_pose
        if self._one is None:
            if self._touched and self.worlds == 1:
                self.solver.look_again()
            self._touched = False
            if self._kept is not None:
                return self._advance_worlds(n, how)
            return self._make(self._state, self.control, n, **how)
        if self._touched:
            self.solver.look_again()
            self._touched = False
        if self._forced:
            self._read, self._at_pose = self._was_read
            return self._advance_forced(how)
        self._safe[:] = self._live
        self._safe_report[:] = self._live_report
        report = self._make(self._state, self.control, n, **how) if how else self._make(self._state, self.control)
        failed, alarm = self._one
        if failed[0] or alarm[0]:
            self._attend(n, how)
        if self._lost[0]:  # type: ignore[index]
            self._projected[0] += self._lost[0]  # type: ignore[index]
        return report

    def _advance_worlds(self, n: int, how: dict[str, Any]) -> Report:
        """Some steps of several worlds; one that fails goes back to its last good step and stops, the others go on."""
        assert self._kept is not None and self._lost is not None
        failed = self._state.failed.numpy()
        before = failed.copy()
        self._kept.keep()
        try:
            report = self._make(self._state, self.control, n, **how)
        except KeyboardInterrupt:  # some worlds may have made more steps than others
            self._kept.take_back()
            self.solver.restart()
            raise
        new = np.flatnonzero((failed != 0) & (before == 0))
        if len(new) and n > 1:  # step by step, to the one that fails; the others do again what they did
            self._kept.take_back()
            self.solver.alarm.zero_()
            self.solver.restart()
            for _ in range(n):
                report = self._advance_worlds(1, how)
            return report
        self._warn_of_worlds()
        if len(new):
            why = failed[new].copy()
            self._kept.take_back(new)
            failed[new] = why
        self._projected += self._lost
        return report

    def _advance_forced(self, how: dict[str, Any]) -> Report:
        """A step in which what a user just set may give any energy: the guard starts from what it leads to."""
        self._forced = False
        strict, sums = self.solver.strict.numpy(), self.solver._sums.numpy()
        kept, strict[0] = int(strict[0]), 0
        before = sums[[GAINED, EXCESS]]
        try:
            report = self._advance(1, how)
        finally:
            strict[0] = kept
        sums[[GAINED, EXCESS]] = before
        self.solver.look_again()
        return report

    def _attend(self, n: int, how: dict[str, Any]) -> None:
        """After some steps of which one failed, or is to be told of."""
        failed, alarm = self._one  # type: ignore[misc]
        code, bits = int(failed[0]), int(alarm[0])
        if self._on_divergence == "raise":  # what has diverged is told by an error; in a forced step, if it is not energy
            far = next((int(bit) for bit in (TORN, SPEED) if bits & bit), 0)
            code, bits = code or (int(DIVERGED) + far if far else 0), bits & int(OPEN_GAP | NOT_MET | TURNS)
        if code == 0:
            self._warn(bits)
            return
        if n > 1:  # step by step, to the one that fails
            self._take_back()
            self.solver.look_at_all(True)
            try:
                for _ in range(n):
                    self._advance(1, how)
            finally:
                self.solver.look_at_all(False)
            return
        seen = self._seen(code - int(DIVERGED)) if code >= DIVERGED else ""
        self._take_back()
        self._forget_once()
        raise self._error(code, seen)

    def _take_back(self) -> None:
        """The state as it was before the last call."""
        self._live[:] = self._safe
        self._live_report[:] = self._safe_report
        self.solver.alarm.zero_()
        self.solver.restart()
        self._read, self._at_pose = self._was_read

    def _forget_once(self) -> None:
        """Forces of one step are of that step, though it was not made."""
        for array in (self.control.force_once, self.control.torque_once):
            array.zero_()
        if self._ropes:
            self.control.rope.force_once.zero_()

    def run(self, duration: float, progress: bool | Callable[[float], None] = False) -> Report:
        """Advance by a time in s (the nearest whole number of steps); `progress` shows a bar, or is called with the time."""
        if not is_positive(duration):
            raise SimulationError(f"run(duration): a positive finite time in s, got {duration!r}")
        total = max(1, round(duration / self.dt))
        if not progress:
            return self.step(total)
        done, chunk = 0, max(1, total // 100)
        while done < total:
            n = min(chunk, total - done)
            report = self.step(n)
            done += n
            if callable(progress):
                progress(self.time)
            else:
                bar = "#" * (30 * done // total)
                sys.stderr.write(f"\r[{bar:<30}] {self.time:8.2f} s" + ("\n" if done == total else ""))
                sys.stderr.flush()
        return report

    def integrate(
        self,
        t_end: float,
        *,
        rtol: float = 1e-9,
        atol: float = 1e-9,
        integrator: str = "dop853",
        times: Any = None,
        events: Any = (),
        dense: bool = False,
        progress: bool = False,
    ) -> dynamics.Trajectory:
        """Go on to the time t_end by high-order integration in joint coordinates, with all that acts on the mechanism.

        Commands and forces stay as they are. Stick, slip and limits are located as events.

        Args:
            rtol, atol: tolerances of a step. integrator: "dop853", "rk45" or "adams".
            times: times (s) at which the motion is returned; t_end alone if None.
            events: functions f(t, q, v) whose passages through zero are found; a terminal one ends the motion (one world).
            dense: keep the motion between the times, for `Trajectory.at`.

        Returns the motion at those times; the simulation stands at t_end, or where a terminal event ended it. See
        `sharnir.dynamics.integrate` for more.
        """
        if self._ropes:
            raise SimulationError("integrate: ropes are stepped, not integrated; use step() or run()")
        tree = dynamics.links(self.model)
        dynamics.check_integrable(tree, self.control)
        now = self.time
        ends = np.atleast_1d(np.asarray(t_end if times is None else times, float))
        if not is_positive(t_end - now) or ends[-1] > t_end + 1e-12:
            raise SimulationError(f"integrate(t_end): a time after {now:g} s, and times up to it, got {t_end!r}")
        asked = len(ends)
        if ends[-1] < t_end:
            ends = np.append(ends, t_end)
        q, v = dynamics.from_state(tree, self.state)
        push = np.zeros((self.worlds, tree.nv))
        push[:, : self.model.speeds] = self.control.joint_force.numpy().T
        options: dict[str, Any] = {"rtol": rtol, "atol": atol, "method": integrator, "progress": progress}
        options |= {"gravity": tuple(self._gravity), "events": events, "dense": dense, "start": now}
        options |= {"control": self.control, "state": self.state}
        path = dynamics.integrate(tree, q, v, ends, tau=push, **options)
        dynamics.to_state(tree, self.state, path.q[:, -1], path.v[:, -1])
        motors = np.flatnonzero(self.model.axes.inductance.numpy() > 0)
        current = self.state.current.numpy()
        current[motors] = path.currents[:, -1].T
        self.state.current.assign(current)
        self._drive_on(path.times[-1] - now)
        self.state.time.fill_(float(path.times[-1]) - self._epoch)
        self.changed()
        if path.times[-1] == ends[-1]:
            path = replace(path, times=path.times[:asked], q=path.q[:, :asked], v=path.v[:, :asked])
        return first_of(path) if self.worlds == 1 else path

    def _drive_on(self, duration: float) -> None:
        """Move kinematic bodies as far as they go in a time, s."""
        for name, i in self.model.body_names.items():
            if self.model.bodies.motion.numpy()[i] == KINEMATIC:
                view = self._bodies[name]
                spin, rotation = np.atleast_2d(view.spin), np.atleast_2d(view.rotation)
                com = np.atleast_2d(view.com) + duration * np.atleast_2d(view.velocity)
                turn = quat_multiply(np.array([quat_exp(duration * s) for s in spin]), rotation)
                view.rotation = turn[0] if self.worlds == 1 else turn
                place = com - quat_rotate(turn, np.broadcast_to(self.model.com[i], com.shape))
                view.position = place[0] if self.worlds == 1 else place

    @property
    def state(self) -> State:
        """The arrays beneath, [item, world]. Velocities and reactions are brought to the pose when the state is asked for: ask
        again after a step.
        """
        if not self._at_pose:
            self._at_pose = True
            self.solver.read_pose(self._state, self.control)
            self._read = min(self._read, PLACES)
        return self._state

    @property
    def time(self) -> float:
        """Time since the start, s (of the worlds that have not failed)."""
        return float(self._state.time.numpy().max()) + self._epoch

    @time.setter
    def time(self, value: float) -> None:
        self._epoch = float(self._in(value, 1, "Simulation", "time (s)")[0, 0]) - float(self.state.time.numpy().max())

    @property
    def dt(self) -> float:
        """Step, s; may be changed while running."""
        return self.solver.dt

    @dt.setter
    def dt(self, value: float) -> None:
        old, state = self.solver.dt, self.state  # which is read with the step that led to it
        self.solver.dt = value
        # impulses of the last step start the next
        impulses = "joint_force joint_torque mid_force mid_torque gear_impulse spring_impulse axis_impulse"
        impulses += " friction_impulse limit_impulse drive_impulse"
        for name in impulses.split():
            array = getattr(state, name)
            array.assign(array.numpy() * (value / old))
        for name in ("rope.pull", "rope.moment", "rope.end_force", "rope.tie_force"):
            if self._ropes:
                self._rope_arrays()[name].assign(self._rope_arrays()[name].numpy() * (value / old))

    @property
    def gravity(self) -> np.ndarray:
        """(3,) m/s²; may be changed while running."""
        return self._gravity.copy()

    @gravity.setter
    def gravity(self, value: Any) -> None:
        try:
            g = np.asarray(value, float)
        except (TypeError, ValueError):
            g = np.full(3, np.nan)
        if g.shape != (3,) or not np.all(np.isfinite(g)):
            raise SimulationError(f"gravity is three finite numbers in m/s², got {value!r}")
        if np.any(g != self._gravity):
            self.solver.begin_anew(self.state)  # half a kick of the old one, half of the new
        self._gravity = g.copy()
        self.solver.settings.gravity.assign(g[None])
        self._touched = True

    @property
    def wind(self) -> Any:
        """(3,) m/s, or (worlds, 3): the speed of the air (or water) that drags on ropes; may be changed while running."""
        self._need_ropes()
        return self._out(self.control.rope.wind.numpy().astype(float))

    @wind.setter
    def wind(self, value: Any) -> None:
        self._need_ropes()
        self.control.rope.wind.assign(self._in(value, 3, "Simulation", "wind (m/s)"))

    def _need_ropes(self) -> None:
        if not self._ropes:
            raise SimulationError("Simulation: wind drags on ropes alone, and the scene has none")

    @property
    def failed(self) -> np.ndarray:
        """(worlds,) True where a world stopped because its state would have become non-finite."""
        return np.asarray(self._state.failed.numpy() != 0)

    def _error(self, code: int, seen: str) -> SimulationError:
        """What a failed step is told by; `code` as in `State.failed`, `seen` what the guard saw."""
        t = self.time
        if code >= DIVERGED:
            return DivergenceError(
                f"{seen} after t = {t:.6g} s: the step was not made and the last good state stays; {self._advice()}"
            )
        spent = code <= SPENT
        body = -(code - int(SPENT)) if spent else abs(code) - 1
        names = [f"body {n!r}" for n in self.model.body_names] + [f"rope {n!r}" for n in self._ropes]
        who = names[min(body, len(names) - 1)]
        if spent:
            return SimulationError(
                f"the step after t = {t:.6g} s takes too long: divided until its passes were used up, {who} is not met; "
                "the last good state stays; check masses, forces and speeds, or take a smaller dt"
            )
        if code < 0:
            return SimulationError(
                f"the step after t = {t:.6g} s could not be made, however finely it was divided: passes do not meet at "
                f"{who}; the last good state stays; check masses, forces and speeds, or take a smaller dt"
            )
        return SimulationError(
            f"{who} would have a non-finite state after t = {t:.6g} s: the step was not made and the last good "
            "state stays; check forces, speeds and dt"
        )

    def _seen(self, bit: int, w: int = 0) -> str:
        """What the guard saw in a world."""
        counts, sums = self.solver._counts.numpy()[:, w], self.solver._sums.numpy()[:, w]
        which, figure, scale = int(counts[WHICH]), float(sums[FIGURE]), float(sums[SCALE])
        if bit in (TORN, OPEN_GAP):
            who = next((n for n, k in self.model.joint_names.items() if k == which), None)
            if who is None:
                rope = list(self._ropes)[which - len(self.model.joint_names)]
                return f"an element of rope {rope!r} is longer than it should be by {100 * figure:.3g} %"
            if figure < 0:
                return f"joint {who!r} is turned off its axes by {-figure:.3g} rad"
            return f"joint {who!r} stands open by {100 * figure:.3g} % of the size of its smaller body"
        if bit == ENERGY:
            return f"the motion has gained {figure:.3g} J that nothing gave it, beside {scale:.3g} J that it can have"
        who = next((n for n, k in self.model.body_names.items() if k == which), "?")
        if bit == TURNS:
            late = f"{100 * figure**2 / 12:.2g} %"
            return f"body {who!r} turns by {figure:.2g} rad a step; its angle falls behind by {late}, not with 'sequential'"
        return f"body {who!r} moves at {figure:.3g} m/s, more than steps of {self.dt:g} s can follow"

    def _advice(self) -> str:
        """What helps against steps that go badly."""
        if isinstance(self.solver, SolverImpulse):
            return (
                f"take solver='direct', a smaller dt than {self.dt:g} s, or more iterations than {self.solver.iterations}; "
                "on_divergence= says whether this is an error"
            )
        if isinstance(self.solver, SolverArticulated):
            return f"take solver='direct' or a smaller dt than {self.dt:g} s; on_divergence= says whether this is an error"
        return (
            f"take a smaller dt than {self.dt:g} s; check masses, forces and paths; on_divergence= says whether this is an error"
        )

    def _warn(self, bits: int, w: int = 0) -> None:
        """Tell, once each, of what does not end the motion."""
        counts = self.solver._counts.numpy()
        counts[TOLD] |= bits
        if not wp.get_device(self.model.device).is_cpu:
            self.solver._counts.assign(counts)
        self.solver.alarm.zero_()
        where = f"world {w}: " if self.worlds > 1 else ""
        if bits & NOT_MET:
            self._say(f"{where}a step did not converge (t = {self.time:.6g} s); health() counts them; {self._advice()}")
        worst = next((b for b in (TORN, ENERGY, SPEED, OPEN_GAP, TURNS) if bits & b), None)
        if worst is not None and (worst in (OPEN_GAP, TURNS) or self._on_divergence == "warn"):
            self._say(f"{where}{self._seen(int(worst), w)} (t = {self.time:.6g} s); {self._advice()}")

    def _warn_of_worlds(self) -> None:
        """Of several worlds, tell of the first in which something is to be told; on a GPU a look would cost a step."""
        if self._many is not None and self._many.any():
            w = int(np.flatnonzero(self._many)[0])
            self._warn(int(self._many[w]), w)

    def _say(self, words: str) -> None:
        if self._on_divergence != "ignore":
            frame, level = sys._getframe(1), 2
            while frame.f_back is not None and frame.f_code.co_filename == __file__:
                frame, level = frame.f_back, level + 1
            warnings.warn(words, StepWarning, stacklevel=level)

    def changed(self) -> None:
        """To be called after arrays of `state` were written directly: the guard then starts from what they hold."""
        self._touched = True
        self._read = NOTHING

    def health(self) -> Health:
        """How the steps went since the start, the last `reset` or `restore`; of several worlds, arrays (worlds,)."""
        counts, sums = self.solver._counts.numpy(), self.solver._sums.numpy().astype(float)
        rows: dict[str, np.ndarray] = {name: counts[i] for i, name in enumerate(COUNTS) if name in HEALTH}
        rows |= {name: sums[i] for i, name in enumerate(SUMS) if name in HEALTH}
        rows["failed"], rows["projected"] = self._state.failed.numpy() != 0, self._projected
        return Health(**{name: row[0].item() if self.worlds == 1 else row.copy() for name, row in rows.items()})

    def _follow_paths(self) -> None:
        """Give kinematic bodies with a path the velocity that takes them where it is at the end of the step."""
        t = self.time + self.dt
        for i, path in self.model.paths.items():
            name = next(n for n, k in self.model.body_names.items() if k == i)
            view = self._bodies[name]
            place, turn = path_pose(path, t, name)
            old_r = np.atleast_2d(view.rotation)
            new_r = np.broadcast_to(turn, old_r.shape)
            com = place + quat_rotate(new_r, np.broadcast_to(self.model.com[i], (len(new_r), 3)))
            view.velocity = (com - np.atleast_2d(view.com)) / self.dt
            view.spin = quat_log(quat_multiply(new_r, quat_conjugate(old_r))) / self.dt

    # ---- state as a whole ----

    def _pack(self) -> Any:
        """All arrays that a step changes, moved into one memory."""
        fields: list[tuple[Any, str]] = [(self._state, n) for n in STATE_FIELDS] + [(self.control, n) for n in CONTROL_FIELDS]
        if self._ropes:
            fields += [(self._state.rope, n) for n in ROPE_STATE_FIELDS] + [(self.control.rope, n) for n in ROPE_CONTROL_FIELDS]
        memory, self._packed = pack([getattr(s, n) for s, n in fields], self.model.device)
        for (struct, name), array in zip(fields, self._packed, strict=True):
            setattr(struct, name, array)
        return memory

    def reset(self) -> None:
        """Back to the start, commands included; the step and gravity stay."""
        dt, gravity = self.dt, self.gravity
        self.restore(self._start)
        self.dt, self.gravity = dt, gravity

    def snapshot(self) -> dict[str, np.ndarray]:
        """All that changes, as a dict of copies; `restore` continues from it bit for bit."""
        self._coordinates()
        out = {f"state.{n}": getattr(self.state, n).numpy().copy() for n in STATE_FIELDS}
        out |= {f"control.{n}": getattr(self.control, n).numpy().copy() for n in CONTROL_FIELDS}
        out |= {n: array.numpy().copy() for n, array in self._rope_arrays().items()}
        out |= {"dt": np.array(self.dt), "gravity": self.gravity, "epoch": np.array(self._epoch)}
        return out

    def _rope_arrays(self) -> dict[str, Any]:
        """What changes of ropes, by name."""
        if not self._ropes:
            return {}
        out = {f"rope.{n}": getattr(self._state.rope, n) for n in ROPE_STATE_FIELDS}
        return out | {f"rope_control.{n}": getattr(self.control.rope, n) for n in ROPE_CONTROL_FIELDS}

    def restore(self, snapshot: dict[str, np.ndarray]) -> None:
        """Continue from a snapshot of this scene."""
        arrays = {f"state.{n}": getattr(self._state, n) for n in STATE_FIELDS}
        arrays |= {f"control.{n}": getattr(self.control, n) for n in CONTROL_FIELDS}
        arrays |= self._rope_arrays()
        if not isinstance(snapshot, dict):
            raise SimulationError(f"restore: takes what snapshot() returned, got {type(snapshot).__name__}")
        foreign = [n for n in arrays if n.removeprefix("state.") in OWNED and len(snapshot.get(n, ())) != len(arrays[n].numpy())]
        fresh = [arrays.pop(name) for name in foreign]  # taken with another solver: this one begins anew
        for name, array in arrays.items():
            if name not in snapshot or snapshot[name].shape != array.numpy().shape:
                raise SimulationError(f"restore: the snapshot is of another scene ({name!r} does not fit)")
            self._check_finite(name, np.asarray(snapshot[name]))
        if not is_positive(float(snapshot.get("dt", np.nan))):
            raise SimulationError(f"restore: dt is a positive finite number of seconds, got {snapshot.get('dt')!r}")
        self.gravity = snapshot.get("gravity")
        self.solver.dt, self._epoch = float(snapshot["dt"]), float(snapshot.get("epoch", 0.0))
        for name, array in arrays.items():
            array.assign(snapshot[name])
        for array in fresh:
            array.zero_()
        self.solver.forget()
        self._projected[:] = 0.0
        self._acts_changed()
        self._at_pose = True
        self.changed()

    def _check_finite(self, name: str, values: np.ndarray) -> None:
        """Refuse a value of a snapshot that is not finite, naming whose it is."""
        if values.dtype.kind != "f" or np.isfinite(values).all():
            return
        row = int(np.argwhere(~np.isfinite(values))[0][0])
        tables = [self.model.body_names, self.model.joint_names] if name.startswith(("state.", "control.")) else []
        rows = [len(self.model.com), len(self.model.joint_kinds)]
        owner = f"row {row}"
        for kind, names, count in zip(("body", "joint"), tables, rows, strict=False):
            if values.ndim > 1 and len(values) == count:
                owner = next((f"{kind} {n!r}" for n, k in names.items() if k == row), owner)
                break
        value = values[row][~np.isfinite(values[row])].ravel()[0]
        raise SimulationError(f"restore: {name!r} of {owner} is {value}; the values of a snapshot are finite")

    def energy(self) -> Energy:
        """Kinetic, potential and elastic energy of the dynamic bodies, J."""
        m, x, v, L, w = self._dynamic()
        kinetic = 0.5 * np.einsum("b,bwi,bwi->w", m, v, v) + 0.5 * np.einsum("bwi,bwi->w", L, w)
        kinetic = kinetic + self._rotors()
        potential = -np.einsum("b,bwi,i->w", m, x, self._gravity)
        elastic = self._elastic()
        for name in self._ropes:
            parts = rope_energy(self, self.model.ropes.names[name], self._gravity)
            kinetic, potential, elastic = kinetic + parts[0], potential + parts[1], elastic + parts[2]
        return Energy(self._out(kinetic), self._out(potential), self._out(elastic))

    def _rotors(self) -> np.ndarray:
        """(worlds,) kinetic energy of motors' rotors, J."""
        inertia = (self.model.axes.rotor_inertia.numpy() * self.model.axes.gear_ratio.numpy() ** 2).astype(float)
        if not np.any(inertia):
            return np.zeros(self.worlds)
        self._coordinates()
        return np.asarray(0.5 * inertia @ self.state.qd.numpy().astype(float) ** 2)

    def _elastic(self) -> np.ndarray:
        """(worlds,) energy of springs at joints and between points, J."""
        out = np.zeros(self.worlds)
        stiffness, rest = self.model.axes.stiffness.numpy().astype(float), self.model.axes.rest.numpy().astype(float)
        if np.any(stiffness):
            self._coordinates()
            q = self.state.q.numpy().astype(float)
            for k, kind in enumerate(self.model.joint_kinds):
                if kind.v_size == 0:
                    continue
                at, v0 = int(self.model.q_start[k]), int(self.model.v_start[k])
                k_axis, rest_axis = stiffness[v0 : v0 + kind.v_size, None], rest[v0 : v0 + kind.v_size, None]
                mine = q[at : at + kind.q_size]
                if len(kind.turns) == 3:
                    turn = turn_from(mine[-4:].T, rest_axis[-3:, 0]).T
                    mine = np.concatenate([mine[:-4], turn + rest_axis[-3:]])
                on = self.control.enabled.numpy()[k] != 0
                out += on * 0.5 * (k_axis * (mine[: kind.v_size] - rest_axis) ** 2).sum(0)
        for name in self.model.spring_names:
            out += (
                0.5 * self._springs[name].stiffness * (np.atleast_1d(self._springs[name].length) - self._springs[name].rest) ** 2
            )
        return out

    def momentum(self) -> Momentum:
        """Linear momentum and angular momentum about the origin of the dynamic bodies."""
        m, x, v, L, _ = self._dynamic()
        p = m[:, None, None] * v
        linear, angular = p.sum(0), (np.cross(x, p) + L).sum(0)
        for k in range(len(self._ropes)):
            more = rope_momentum(self, k)
            linear, angular = linear + more[0], angular + more[1]
        return Momentum(self._out(linear), self._out(angular))

    def _dynamic(self) -> tuple[np.ndarray, ...]:
        """Mass, position, velocity, angular momentum and spin of the dynamic bodies."""
        on = self.model.bodies.motion.numpy() == DYNAMIC
        s = self.state
        return (
            self.model.bodies.mass.numpy()[on].astype(float),
            *(a.numpy()[on].astype(float) for a in (s.position, s.velocity, s.momentum, s.spin)),
        )

    # ---- objects ----

    def body(self, name: str) -> BodyView:
        """The body of that name."""
        if name not in self._bodies:
            raise SimulationError(f"no body is named {name!r}; known: {', '.join(map(repr, self._bodies))}")
        return self._bodies[name]

    def joint(self, name: str) -> Any:
        """The joint (a `JointView`) or gear (a `GearView`) of that name."""
        if name not in self._joints:
            raise SimulationError(f"no joint is named {name!r}; known: {', '.join(map(repr, self._joints)) or 'none'}")
        return self._joints[name]

    def spring(self, name: str) -> SpringView:
        """The point-to-point spring of that name."""
        if name not in self._springs:
            raise SimulationError(f"no spring is named {name!r}; known: {', '.join(map(repr, self._springs)) or 'none'}")
        return self._springs[name]

    def rope(self, name: str) -> RopeView:
        """The rope of that name."""
        if name not in self._ropes:
            raise SimulationError(f"no rope is named {name!r}; known: {', '.join(map(repr, self._ropes)) or 'none'}")
        return self._ropes[name]

    @property
    def redundant(self) -> list[str]:
        """Rows of closed loops ('joint.axis') that follow from others; reactions there are shared in some way."""
        return list(self.model.redundant)

    def gaps(self) -> np.ndarray:
        """(worlds, joints, 2) how far every joint stands open: m, rad."""
        rows = assembly.evaluate(self.model, self._state) if self.model.joint_kinds else []
        out = [np.stack([np.linalg.norm(r.gap_linear, axis=-1), np.linalg.norm(r.gap_angular, axis=-1)], -1) for r in rows]
        return np.array(out).reshape(self.worlds, -1, 2)

    def misfit(self) -> np.ndarray:
        """(worlds, joints, 2) speeds of every joint along what it holds: m/s, rad/s.

        With `closing="energy"` mean velocities fit the joints to rounding, those at the pose to second order.
        """
        x, v, w = (getattr(self.state, name).numpy().astype(float) for name in ("position", "velocity", "spin"))
        out = np.zeros((self.worlds, len(self.model.joint_kinds), 2))
        for i, rows in enumerate(assembly.evaluate(self.model, self.state) if self.model.joint_kinds else []):
            for k, kind in enumerate(self.model.joint_kinds):
                p, c = self.model.parents[k], self.model.children[k]
                u = v[c, i] + np.cross(w[c, i], rows.point[k] - x[c, i]) - v[p, i] - np.cross(w[p, i], rows.point[k] - x[p, i])
                held = [[a for a in range(3) if not kind.mask >> (a + turn) & 1] for turn in (0, 3)]
                out[i, k] = (
                    np.linalg.norm(rows.linear[k].T[held[0]] @ u),
                    np.linalg.norm(rows.angular[k].T[held[1]] @ (w[c, i] - w[p, i])),
                )
        return out

    # ---- shared by the views ----

    def _out(self, values: np.ndarray) -> Any:
        """(worlds, …) as the user sees it."""
        if self.worlds > 1:
            return values
        first = values[0]
        return first.copy() if isinstance(first, np.ndarray) else float(first)

    def _in(self, value: Any, size: int, who: str, what: str) -> np.ndarray:
        """A user's value as (worlds, size), finite."""
        try:
            v = np.asarray(value, float)
        except (TypeError, ValueError):
            raise SimulationError(f"{who}: {what} is {size} finite number(s), got {value!r}") from None
        if size == 1 and v.shape[-1:] != (1,):
            v = v[..., None]
        if v.shape not in ((size,), (self.worlds, size)) or not np.all(np.isfinite(v)):
            raise SimulationError(
                f"{who}: {what} is {size} finite number(s){' a world' * (self.worlds > 1)}, got {np.asarray(value).tolist()}"
            )
        return np.broadcast_to(v, (self.worlds, size)).copy()

    def _row(self, array: Any, i: int) -> np.ndarray:
        """Row i of an [item, world] array, (worlds, …), a copy."""
        return np.array(array[i].numpy(), float)

    def _write(self, array: Any, i: int, value: np.ndarray) -> None:
        """Write to an array of the commands."""
        array[i].assign(value)

    def _put(self, array: Any, i: int, value: np.ndarray) -> None:
        """Write to an array of the state, which the guard is told of."""
        array[i].assign(value)
        self.changed()

    def _acts_changed(self) -> None:
        """After a change of what acts on free axes, or of which joints hold."""
        if isinstance(self.solver, TreeSolver) or self.control.acts.numpy().any():
            self.solver.acts_changed()

    def _coordinates(self, wanted: int = ALL) -> None:
        """Bring the joints' coordinates, and if they are wanted their speeds, up to date, once after each change."""
        if self._read < wanted:
            assembly.read_all(self.model, self.state if wanted == ALL else self._state)
            self._read = ALL if self._at_pose else PLACES
