"""Simulation: the friendly face. Names instead of indices, NumPy values, one world or many.

Values have the shapes given below; with several worlds they get a leading world axis, (worlds, …).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from sharnir import assembly, dynamics
from sharnir.axes import Axis, DCMotor, Friction, Servo, per_axis
from sharnir.errors import SceneError, SimulationError, is_positive
from sharnir.impulse.solver import Report, SolverImpulse
from sharnir.model import CONTROL_FIELDS, DYNAMIC, KINEMATIC, STATE_FIELDS, Model, command_values
from sharnir.scene import Scene, path_pose
from sharnir.spatial import quat_conjugate, quat_log, quat_multiply, quat_rotate, turn_from, unit_quat


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


class Simulation:
    """A scene in motion.

    Args:
        scene: a Scene, or a Model that was built from one.
        dt: step, s.
        worlds, device: number of copies that run at once, and where ("cpu" or "cuda:0").
        iterations, position_iterations, erp, tolerance, threads: see `SolverImpulse`.
    """

    def __init__(
        self,
        scene: Scene | Model,
        dt: float,
        *,
        solver: str = "impulse",
        worlds: int = 1,
        device: str = "cpu",
        **options: Any,
    ) -> None:
        if solver != "impulse":
            raise SimulationError(f"solver {solver!r} is unknown; allowed: 'impulse'")
        if not isinstance(scene, Scene | Model):
            raise SceneError(f"Simulation: scene is a Scene or a Model, got {scene!r}")
        if not is_positive(dt):
            raise SceneError(f"Simulation: dt is a positive finite number of seconds, got {dt!r}")
        self.model = scene.build(worlds=worlds, device=device) if isinstance(scene, Scene) else scene
        self.worlds = self.model.worlds
        self.state, self.control = self.model.state(), self.model.control()
        self.solver = SolverImpulse(self.model, dt, **options)
        self._bodies = {name: BodyView(self, i, name) for name, i in self.model.body_names.items()}
        self._joints: dict[str, JointView | GearView] = {n: JointView(self, i, n) for n, i in self.model.joint_names.items()}
        self._joints |= {name: GearView(self, i, name) for name, i in self.model.gear_names.items()}
        self._springs = {name: SpringView(self, i, name) for name, i in self.model.spring_names.items()}
        self._read = False  # whether state.q and state.qd are those of now
        self._gravity = np.array(self.model.gravity)
        self._host_failed = self.state.failed.numpy() if self.model.device == "cpu" else None
        self._start = self.snapshot()

    # ---- time ----

    def step(self, n: int = 1, *, budget: float | None = None, iterations: int | None = None) -> Report:
        """Advance by n steps; returns the report of the last one (an object that is reused).

        Args:
            budget: wall-clock time for a step, s: the solver stops iterating before it runs out, and says so in the report.
            iterations: cap of the sweeps in this call; the counts that budgeted steps reported replay them bit for bit.

        A step whose result is not finite is not made: with one world this raises `SimulationError`, with several the world is
        marked in `failed` and stays at its last good state while the others go on.
        """
        if n.__class__ is not int or n < 1:
            raise SimulationError(f"step(n): n is a whole number of at least 1, got {n!r}")
        if budget is not None and not is_positive(budget):
            raise SimulationError(f"step(budget=…): a positive finite time in s, got {budget!r}")
        self._read = False
        if self.model.paths:
            for _ in range(n):
                self._follow_paths()
                report = self.solver.step(self.state, self.control, 1, budget=budget, iterations=iterations)
        else:
            report = self.solver.step(self.state, self.control, n, budget=budget, iterations=iterations)
        if self._host_failed is not None and self.worlds == 1 and self._host_failed[0]:
            self._raise_failed()
        return report

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
        progress: bool = False,
    ) -> dynamics.Trajectory:
        """Go on to the time t_end by high-order integration in joint coordinates: trees with springs, dampers and joint forces.

        Args:
            rtol, atol: tolerances of a step. integrator: "dop853" or "rk45".
            times: times (s) at which the motion is returned; t_end alone if None.

        Returns the motion at those times; the simulation stands at t_end.
        """
        tree = dynamics.links(self.model)
        dynamics.check_smooth(tree)
        now = self.time
        ends = np.atleast_1d(np.asarray(t_end if times is None else times, float)) - now
        if not is_positive(t_end - now) or ends[-1] > t_end - now + 1e-12:
            raise SimulationError(f"integrate(t_end): a time after {now:g} s, and times up to it, got {t_end!r}")
        wanted = len(ends)
        if ends[-1] < t_end - now:
            ends = np.append(ends, t_end - now)
        q, v = dynamics.from_state(tree, self.state)
        push = np.zeros((self.worlds, tree.nv))
        push[:, : self.model.speeds] = self.control.joint_force.numpy().T
        options: dict[str, Any] = {"rtol": rtol, "atol": atol, "method": integrator, "progress": progress}
        options["gravity"] = tuple(self._gravity)
        path = dynamics.integrate(tree, q, v, ends, tau=push, **options)
        dynamics.to_state(tree, self.state, path.q[:, -1], path.v[:, -1])
        self.state.time.fill_(float(t_end))
        self._read = False
        qs, vs = path.q[:, :wanted], path.v[:, :wanted]
        if self.worlds == 1:
            return dynamics.Trajectory(ends[:wanted] + now, qs[0], vs[0], int(path.steps[0]), int(path.rejected[0]))
        return dynamics.Trajectory(ends[:wanted] + now, qs, vs, path.steps, path.rejected)

    @property
    def time(self) -> float:
        """Time since the start, s (of the worlds that have not failed)."""
        return float(self.state.time.numpy().max())

    @time.setter
    def time(self, value: float) -> None:
        self.state.time.fill_(float(self._in(value, 1, "Simulation", "time (s)")[0, 0]))

    @property
    def dt(self) -> float:
        """Step, s; may be changed while running."""
        return self.solver.dt

    @dt.setter
    def dt(self, value: float) -> None:
        old = self.solver.dt
        self.solver.dt = value
        # impulses of the last step start the next
        impulses = (
            "joint_force joint_torque gear_impulse spring_impulse axis_impulse friction_impulse limit_impulse drive_impulse"
        )
        for name in impulses.split():
            array = getattr(self.state, name)
            array.assign(array.numpy() * (value / old))

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
        self._gravity = g.copy()
        self.solver.settings.gravity.assign(g[None])

    @property
    def failed(self) -> np.ndarray:
        """(worlds,) True where a world stopped because its state would have become non-finite."""
        return np.asarray(self.state.failed.numpy() != 0)

    def _raise_failed(self) -> None:
        body = int(self.state.failed.numpy()[0]) - 1
        self.state.failed.zero_()
        name = next(n for n, i in self.model.body_names.items() if i == body)
        raise SimulationError(
            f"body {name!r} would have a non-finite state after t = {self.time:.6g} s: the step was not made and the last good "
            "state stays; check forces, speeds and dt"
        )

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

    def reset(self) -> None:
        """Back to the start, commands included; the step and gravity stay."""
        dt, gravity = self.dt, self.gravity
        self.restore(self._start)
        self.dt, self.gravity = dt, gravity

    def snapshot(self) -> dict[str, np.ndarray]:
        """All that changes, as a dict of copies; `restore` continues from it bit for bit."""
        out = {f"state.{n}": getattr(self.state, n).numpy().copy() for n in STATE_FIELDS}
        out |= {f"control.{n}": getattr(self.control, n).numpy().copy() for n in CONTROL_FIELDS}
        out |= {"dt": np.array(self.dt), "gravity": self.gravity}
        return out

    def restore(self, snapshot: dict[str, np.ndarray]) -> None:
        """Continue from a snapshot of this scene."""
        arrays = {f"state.{n}": getattr(self.state, n) for n in STATE_FIELDS}
        arrays |= {f"control.{n}": getattr(self.control, n) for n in CONTROL_FIELDS}
        if not isinstance(snapshot, dict):
            raise SimulationError(f"restore: takes what snapshot() returned, got {type(snapshot).__name__}")
        for name, array in arrays.items():
            if name not in snapshot or snapshot[name].shape != array.numpy().shape:
                raise SimulationError(f"restore: the snapshot is of another scene ({name!r} does not fit)")
        self.solver.dt = float(snapshot["dt"])
        self.gravity = snapshot["gravity"]
        for name, array in arrays.items():
            array.assign(snapshot[name])
        self._acts_changed()
        self._read = False

    def energy(self) -> Energy:
        """Kinetic, potential and elastic energy of the dynamic bodies, J."""
        m, x, v, L, w = self._dynamic()
        kinetic = 0.5 * np.einsum("b,bwi,bwi->w", m, v, v) + 0.5 * np.einsum("bwi,bwi->w", L, w)
        kinetic = kinetic + self._rotors()
        potential = -np.einsum("b,bwi,i->w", m, x, self._gravity)
        return Energy(self._out(kinetic), self._out(potential), self._out(self._elastic()))

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
        return Momentum(self._out(p.sum(0)), self._out((np.cross(x, p) + L).sum(0)))

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

    @property
    def redundant(self) -> list[str]:
        """Rows of closed loops ('joint.axis') that follow from others; reactions there are shared in some way."""
        return list(self.model.redundant)

    def gaps(self) -> np.ndarray:
        """(worlds, joints, 2) how far every joint stands open: m, rad."""
        rows = assembly.evaluate(self.model, self.state) if self.model.joint_kinds else []
        out = [np.stack([np.linalg.norm(r.gap_linear, axis=-1), np.linalg.norm(r.gap_angular, axis=-1)], -1) for r in rows]
        return np.array(out).reshape(self.worlds, -1, 2)

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
        array[i].assign(value)
        self._read = False

    def _acts_changed(self) -> None:
        """After a change of what acts on free axes."""
        if self.control.acts.numpy().any():
            self.solver.acts_changed()

    def _coordinates(self) -> None:
        """Bring the joint coordinates up to date, once after each change."""
        if not self._read:
            assembly.read_all(self.model, self.state)
            self._read = True


class BodyView:
    """One body of a running simulation; values may be read and set between steps. World axes."""

    __slots__ = ("_i", "_sim", "name")

    def __init__(self, sim: Simulation, index: int, name: str) -> None:
        self._sim, self._i, self.name = sim, index, name

    def __repr__(self) -> str:
        return f"<body {self.name!r}>"

    def _get(self, field: str) -> np.ndarray:
        return self._sim._row(getattr(self._sim.state, field), self._i)

    def _checked(self, value: Any, what: str, size: int = 3) -> np.ndarray:
        return self._sim._in(value, size, f"body {self.name!r}", what)

    def _movable(self, what: str) -> None:
        if self._sim.model.bodies.motion.numpy()[self._i] not in (DYNAMIC, KINEMATIC):
            raise SimulationError(f"body {self.name!r} is fixed: its {what} cannot be set")

    @property
    def rotation(self) -> Any:
        """(4,) unit quaternion (x, y, z, w) of the body's frame."""
        return self._sim._out(self._get("rotation"))

    @rotation.setter
    def rotation(self, value: Any) -> None:
        self._movable("rotation")
        q = unit_quat(self._checked(value, "rotation", 4), f"body {self.name!r}", SimulationError)
        place, spin = self._place(), self._get("spin")
        self._sim._write(self._sim.state.rotation, self._i, q)
        self._put_place(place)
        self._put_spin(spin)

    @property
    def position(self) -> Any:
        """(3,) origin of the body's frame, m."""
        return self._sim._out(self._place())

    @position.setter
    def position(self, value: Any) -> None:
        self._movable("position")
        self._put_place(self._checked(value, "position (m)"))

    @property
    def com(self) -> Any:
        """(3,) centre of mass, m."""
        return self._sim._out(self._get("position"))

    @property
    def velocity(self) -> Any:
        """(3,) velocity of the centre of mass, m/s."""
        return self._sim._out(self._get("velocity"))

    @velocity.setter
    def velocity(self, value: Any) -> None:
        self._movable("velocity")
        self._sim._write(self._sim.state.velocity, self._i, self._checked(value, "velocity (m/s)"))

    @property
    def spin(self) -> Any:
        """(3,) angular velocity, rad/s."""
        return self._sim._out(self._get("spin"))

    @spin.setter
    def spin(self, value: Any) -> None:
        self._movable("spin")
        spin = self._checked(value, "spin (rad/s)")
        if np.any(spin):
            self._solid("spin")
        self._put_spin(spin)

    @property
    def acceleration(self) -> Any:
        """(3,) acceleration of the centre of mass, mean over the last step, m/s²."""
        return self._sim._out(self._get("acceleration"))

    def apply_force(self, force: Any, at: Any = None, once: bool = True) -> None:
        """Act with a force (3,) N in the next step, or (`once=False`) until set anew; `at` a world point (m), else the com."""
        f = self._checked(force, "force (N)")
        arm = np.zeros_like(f) if at is None else self._checked(at, "point of a force (m)") - self._get("position")
        self._act("force", f, once)
        if at is not None or not once:
            self._act("torque", np.cross(arm, f), once)

    def apply_torque(self, torque: Any, once: bool = True) -> None:
        """Act with a torque (3,) N·m in the next step, or (`once=False`) until set anew."""
        self._act("torque", self._checked(torque, "torque (N·m)"), once)

    def _act(self, what: str, value: np.ndarray, once: bool) -> None:
        if self._sim.model.bodies.motion.numpy()[self._i] != DYNAMIC:
            raise SimulationError(f"body {self.name!r} is not dynamic: a {what} cannot move it")
        if what == "torque" and np.any(value):
            self._solid("torque")
        array = getattr(self._sim.control, f"{what}_once" if once else what)
        self._sim._write(array, self._i, value + self._sim._row(array, self._i) if once else value)

    def _place(self) -> np.ndarray:
        com = np.broadcast_to(self._sim.model.com[self._i], (self._sim.worlds, 3))
        return np.asarray(self._get("position") - quat_rotate(self._get("rotation"), com))

    def _put_place(self, place: np.ndarray) -> None:
        com = np.broadcast_to(self._sim.model.com[self._i], place.shape)
        self._sim._write(self._sim.state.position, self._i, place + quat_rotate(self._get("rotation"), com))

    def _solid(self, what: str) -> None:
        """A point mass cannot turn."""
        if (
            not np.any(self._sim.model.bodies.inertia.numpy()[self._i])
            and self._sim.model.bodies.motion.numpy()[self._i] == DYNAMIC
        ):
            raise SimulationError(f"body {self.name!r} is a point mass: it takes no {what}")

    def _put_spin(self, spin: np.ndarray) -> None:
        """ω and, for it, L = R I Rᵀ ω."""
        inertia = self._sim.model.bodies.inertia.numpy()[self._i].astype(float)
        q = self._get("rotation")
        local = quat_rotate(quat_conjugate(q), spin) @ inertia.T
        self._sim._write(self._sim.state.spin, self._i, spin)
        self._sim._write(self._sim.state.momentum, self._i, quat_rotate(q, local))


class JointView:
    """One joint of a running simulation; coordinates are the child's motion relative to the parent.

    Coordinates come in the order translations, rotations. A joint with one free axis gives floats; three free rotations give a
    quaternion (x, y, z, w) as coordinates and the relative spin in the parent's joint frame as speeds.
    """

    __slots__ = ("_drive", "_i", "_q", "_sim", "_v", "kind", "name")

    def __init__(self, sim: Simulation, index: int, name: str) -> None:
        self._sim, self._i, self.name = sim, index, name
        self.kind = sim.model.joint_kinds[index]
        q, v = int(sim.model.q_start[index]), int(sim.model.v_start[index])
        self._q, self._v = slice(q, q + self.kind.q_size), slice(v, v + self.kind.v_size)
        self._drive = DriveView(self)

    def __repr__(self) -> str:
        return f"<joint {self.name!r}: {self.kind.kind}>"

    def _axes(self, array: Any, part: slice) -> Any:
        values = np.array(array.numpy()[part], float).T
        return self._sim._out(values[:, 0] if values.shape[1] == 1 else values)

    def _put(self, array: Any, value: Any, what: str) -> None:
        """Write a value per free axis (one value serves all)."""
        size = self.kind.v_size
        if np.ndim(value) == 0:
            value = np.full(size, value)
        for i, row in enumerate(self._sim._in(value, size, f"joint {self.name!r}", what).T):
            self._sim._write(array, self._v.start + i, row)

    @property
    def position(self) -> Any:
        """Coordinates, m and rad: a float, or (q_size,); angles count turns."""
        self._sim._coordinates()
        return self._axes(self._sim.state.q, self._q)

    @position.setter
    def position(self, value: Any) -> None:
        q = self._sim._in(value, self.kind.q_size, f"joint {self.name!r}", "position")
        if len(self.kind.turns) == 3:
            q[:, -4:] = unit_quat(q[:, -4:], f"joint {self.name!r}", SimulationError)
        assembly.set_position(self._sim.model, self._sim.state, self._i, q)
        self._sim._read = False

    @property
    def velocity(self) -> Any:
        """Speeds, m/s and rad/s: a float, or (v_size,)."""
        self._sim._coordinates()
        return self._axes(self._sim.state.qd, self._v)

    @velocity.setter
    def velocity(self, value: Any) -> None:
        v = self._sim._in(value, self.kind.v_size, f"joint {self.name!r}", "velocity")
        assembly.set_velocity(self._sim.model, self._sim.state, self._i, v)
        self._sim._read = False

    @property
    def force(self) -> Any:
        """Force or torque applied on the free axes until changed, N and N·m: a float, or (v_size,)."""
        return self._axes(self._sim.control.joint_force, self._v)

    @force.setter
    def force(self, value: Any) -> None:
        f = self._sim._in(value, self.kind.v_size, f"joint {self.name!r}", "force")
        array = self._sim.control.joint_force
        for i, row in enumerate(f.T):
            self._sim._write(array, self._v.start + i, row)

    @property
    def reaction(self) -> tuple[Any, Any]:
        """(force (3,) N, torque (3,) N·m) of the constraint on the child at its anchor in the last step, world axes."""
        sim = self._sim
        force, torque = (sim._row(a, self._i) / sim.dt for a in (sim.state.joint_force, sim.state.joint_torque))
        return sim._out(force), sim._out(torque)

    @property
    def enabled(self) -> Any:
        """Whether the joint holds; False takes it out, with all that acts on it, until it is set again."""
        values = self._sim.control.enabled[self._i].numpy() != 0
        return bool(values[0]) if self._sim.worlds == 1 else values

    @enabled.setter
    def enabled(self, value: Any) -> None:
        on = self._sim._in(value, 1, f"joint {self.name!r}", "enabled")[:, 0] != 0
        self._sim.control.enabled[self._i].assign(on.astype(np.int32))

    @property
    def friction(self) -> Friction:
        """Friction of the first free axis (first world); set a Friction or a bound, as a brake does.

        One value for all axes, a dict by axis name (bounds that were shared stay shared), or a list of one a world.
        """
        if self.kind.v_size == 0:
            raise SimulationError(f"joint {self.name!r}: friction needs a free axis, and there is none")
        at, c = self._v.start, self._sim.control
        static, dynamic, load, viscous, stribeck = (
            float(a.numpy()[at, 0])
            for a in (c.friction_static, c.friction_dynamic, c.friction_load, c.friction_viscous, c.friction_stribeck)
        )
        return Friction(static, dynamic, load, viscous, stribeck or None)

    @friction.setter
    def friction(self, value: Any) -> None:
        who = f"joint {self.name!r}"
        if self.kind.v_size == 0:
            raise SimulationError(f"{who}: friction needs a free axis, and there is none")
        sim, names = self._sim, self.kind.free[: self.kind.v_size]
        try:
            by_axis = per_axis(who, "friction", value, tuple(names))
            for i, axis in enumerate(sim.model.joint_axes[self._i]):
                if names[i] not in by_axis:
                    continue
                given = by_axis[names[i]]
                laws = [Friction.of(v, who) for v in (given if np.ndim(given) == 1 else [given] * sim.worlds)]
                if len(laws) != sim.worlds:
                    raise SceneError(f"{who}: friction is one value, or one a world ({sim.worlds}), got {len(laws)}")
                drive = axis.drive if isinstance(axis.drive, DCMotor) else None
                for name, row in command_values([Axis(friction=law, drive=drive) for law in laws]).items():
                    if name.startswith("friction"):
                        sim._write(getattr(sim.control, name), self._v.start + i, np.array(row))
        except SceneError as error:
            raise SimulationError(str(error)) from None
        self._begin_acting()

    def _begin_acting(self) -> None:
        self._sim.control.acts[self._i].fill_(1)
        self._sim._acts_changed()

    @property
    def stuck(self) -> Any:
        """Whether friction holds the joint: a bool, or (v_size,)."""
        values = self._sim.state.stuck.numpy()[self._v].T != 0
        if values.shape[1] == 1:
            values = values[:, 0]
        return bool(values[0]) if self._sim.worlds == 1 and values.ndim == 1 else self._sim._out(values)

    @property
    def friction_force(self) -> Any:
        """Dry friction of the last step on the child's side, N and N·m: a float, or (v_size,)."""
        return self._axes(self._sim.state.friction_impulse, self._v) / self._sim.dt

    @property
    def limit_force(self) -> Any:
        """Force or torque of the limits in the last step: a float, or (v_size,); of a ball joint, along the limits' rows."""
        return self._axes(self._sim.state.limit_impulse, self._v) / self._sim.dt

    @property
    def dissipated(self) -> Any:
        """Energy that friction and dampers took in the last step, J."""
        return self._sim._out(self._sim._row(self._sim.state.dissipated, self._i))

    @property
    def drive(self) -> DriveView:
        """The servo or motor: its targets, gains and voltage may be set; assign a Servo to give the joint one."""
        return self._drive

    @drive.setter
    def drive(self, value: Servo) -> None:
        if not isinstance(value, Servo) or self.kind.v_size == 0:
            raise SimulationError(f"joint {self.name!r}: a Servo can be given to a joint with a free axis, got {value!r}")
        for name, (number,) in command_values([Axis(drive=value)]).items():
            if name.startswith("servo"):
                self._put(getattr(self._sim.control, name), number, name)
        self._begin_acting()

    @property
    def gap(self) -> Any:
        """(2,) how far the joint stands open: m, rad."""
        return self._sim._out(self._sim.gaps()[:, self._i])

    @property
    def anchor(self) -> Any:
        """(3,) the child's anchor, m."""
        rows = assembly.evaluate(self._sim.model, self._sim.state)
        return self._sim._out(np.array([r.point[self._i] for r in rows]))

    @property
    def axes(self) -> dict[str, np.ndarray]:
        """World direction (3,) of every free axis of the first world, by name; for drawing."""
        rows = assembly.evaluate(self._sim.model, self._sim.state)[0]
        names = self.kind.free[: self.kind.v_size]
        both = rows.free_linear[self._i] + rows.free_angular[self._i]
        return {name: both[i] for i, name in enumerate(names)}


class DriveView:
    """The servo or DC motor of a joint: a float, or (v_size,) where the joint has several free axes."""

    __slots__ = ("_joint",)

    def __init__(self, joint: JointView) -> None:
        self._joint = joint

    def _get(self, name: str) -> Any:
        return self._joint._axes(getattr(self._joint._sim.control, name), self._joint._v)

    def _set(self, name: str, value: Any, kind: type) -> None:
        joint = self._joint
        axes = joint._sim.model.joint_axes[joint._i]
        if kind is DCMotor and not any(isinstance(a.drive, DCMotor) for a in axes):
            raise SimulationError(f"joint {joint.name!r} has no DCMotor: {name} cannot be set")
        joint._put(getattr(joint._sim.control, name), value, name)
        joint._begin_acting()

    @property
    def position(self) -> Any:
        """Target of the servo, m or rad."""
        return self._get("servo_position")

    @position.setter
    def position(self, value: Any) -> None:
        self._set("servo_position", value, Servo)

    @property
    def velocity(self) -> Any:
        """Target speed of the servo, m/s or rad/s."""
        return self._get("servo_velocity")

    @velocity.setter
    def velocity(self, value: Any) -> None:
        self._set("servo_velocity", value, Servo)

    @property
    def torque(self) -> Any:
        """Force or torque the servo adds, N or N·m."""
        return self._get("servo_torque")

    @torque.setter
    def torque(self, value: Any) -> None:
        self._set("servo_torque", value, Servo)

    @property
    def kp(self) -> Any:
        """Stiffness of the servo, N/m or N·m/rad."""
        return self._get("servo_kp")

    @kp.setter
    def kp(self, value: Any) -> None:
        self._set("servo_kp", self._at_least_zero("kp", value), Servo)

    @property
    def kd(self) -> Any:
        """Damping of the servo, N·s/m or N·m·s."""
        return self._get("servo_kd")

    @kd.setter
    def kd(self, value: Any) -> None:
        self._set("servo_kd", self._at_least_zero("kd", value), Servo)

    @property
    def max_force(self) -> Any:
        """Bound on the servo's force or torque, N or N·m."""
        return self._get("servo_max_force")

    @max_force.setter
    def max_force(self, value: Any) -> None:
        bound = self._at_least_zero("max_force", value)
        self._set("servo_max_force", np.minimum(np.asarray(bound, float), 1e30), Servo)

    @property
    def voltage(self) -> Any:
        """Voltage at the motor, V."""
        return self._get("voltage")

    @voltage.setter
    def voltage(self, value: Any) -> None:
        self._set("voltage", value, DCMotor)

    @property
    def current(self) -> Any:
        """Current in the motor, A."""
        return self._joint._axes(self._joint._sim.state.current, self._joint._v)

    @property
    def force(self) -> Any:
        """Force or torque of the drive on the joint in the last step, N or N·m."""
        return self._joint._axes(self._joint._sim.state.drive_impulse, self._joint._v) / self._joint._sim.dt

    def _at_least_zero(self, what: str, value: Any) -> Any:
        try:
            numbers = np.asarray(value, float)
        except (TypeError, ValueError):
            numbers = np.array(np.nan)
        if not np.all(numbers >= 0):
            raise SimulationError(f"joint {self._joint.name!r}: {what} is at least 0, got {value!r}")
        return value


class SpringView:
    """One point-to-point spring of a running simulation."""

    __slots__ = ("_i", "_sim", "name")

    def __init__(self, sim: Simulation, index: int, name: str) -> None:
        self._sim, self._i, self.name = sim, index, name

    def __repr__(self) -> str:
        return f"<spring {self.name!r}>"

    @property
    def stiffness(self) -> float:
        """N/m."""
        return float(self._sim.model.springs.stiffness.numpy()[self._i])

    @property
    def rest(self) -> float:
        """Length without force, m."""
        return float(self._sim.model.springs.rest.numpy()[self._i])

    @property
    def ends(self) -> tuple[Any, Any]:
        """Its two points, (3,) m, world."""
        t, sim = self._sim.model.springs, self._sim
        out = []
        for body, point in ((t.parent, t.parent_point), (t.child, t.child_point)):
            b = int(body.numpy()[self._i])
            arm = np.broadcast_to(point.numpy()[self._i].astype(float), (sim.worlds, 3))
            out.append(sim._out(sim._row(sim.state.position, b) + quat_rotate(sim._row(sim.state.rotation, b), arm)))
        return out[0], out[1]

    @property
    def length(self) -> Any:
        """Distance of its points, m."""
        a, b = self.ends
        return self._sim._out(np.atleast_1d(np.linalg.norm(b - a, axis=-1)))

    @property
    def force(self) -> Any:
        """Force of spring and damper that pushed its points apart in the last step, N."""
        return self._sim._out(self._sim._row(self._sim.state.spring_impulse, self._i) / self._sim.dt)


class GearView:
    """One gear of a running simulation."""

    __slots__ = ("_i", "_sim", "name")

    def __init__(self, sim: Simulation, index: int, name: str) -> None:
        self._sim, self._i, self.name = sim, index, name

    def __repr__(self) -> str:
        return f"<gear {self.name!r}>"

    @property
    def reaction(self) -> Any:
        """Torque (N·m) or force (N) of the gear on its first axis in the last step; −ratio times it acts on the second."""
        return self._sim._out(self._sim._row(self._sim.state.gear_impulse, self._i) / self._sim.dt)

    @property
    def gap(self) -> Any:
        """How far the gear is off: q_a − ratio · q_b against its start, m or rad."""
        return self._sim._out(np.array([row.gear_gap[self._i] for row in assembly.evaluate(self._sim.model, self._sim.state)]))
