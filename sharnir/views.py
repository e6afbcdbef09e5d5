"""Views of one body, joint, drive, spring or gear of a running simulation: names and NumPy values over the arrays beneath.

A view reads and writes the arrays of the simulation it belongs to; values may be set between steps.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sharnir import assembly
from sharnir.axes import Axis, DCMotor, Friction, Servo, per_axis
from sharnir.errors import SceneError, SimulationError
from sharnir.model import DYNAMIC, KINEMATIC, command_values
from sharnir.spatial import quat_conjugate, quat_rotate, unit_quat

# The Simulation a view belongs to; it stands a floor above, so that it is not named here.
Owner = Any


class BodyView:
    """One body of a running simulation; values may be read and set between steps. World axes."""

    __slots__ = ("_i", "_sim", "name")

    def __init__(self, sim: Owner, index: int, name: str) -> None:
        self._sim, self._i, self.name = sim, index, name

    def __repr__(self) -> str:
        return f"<body {self.name!r}>"

    def _get(self, field: str) -> np.ndarray:
        state = self._sim._state if field in ("position", "rotation") else self._sim.state  # poses need no bringing up to date
        return np.asarray(self._sim._row(getattr(state, field), self._i))

    def _checked(self, value: Any, what: str, size: int = 3) -> np.ndarray:
        return np.asarray(self._sim._in(value, size, f"body {self.name!r}", what))

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
        self._sim._put(self._sim.state.rotation, self._i, q)
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
        self._sim._put(self._moving().velocity, self._i, self._checked(value, "velocity (m/s)"))
        self._note_drive()

    def _note_drive(self) -> None:
        """A driven body that changes its speed gives others any energy."""
        self._sim._forced |= self._sim.model.bodies.motion.numpy()[self._i] == KINEMATIC

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
        self._note_drive()

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
        with np.errstate(over="ignore"):  # of a sum that is not finite the step will tell
            self._sim._write(array, self._i, value + self._sim._row(array, self._i) if once else value)
        self._sim._forced = True

    def _place(self) -> np.ndarray:
        com = np.broadcast_to(self._sim.model.com[self._i], (self._sim.worlds, 3))
        return np.asarray(self._get("position") - quat_rotate(self._get("rotation"), com))

    def _put_place(self, place: np.ndarray) -> None:
        com = np.broadcast_to(self._sim.model.com[self._i], place.shape)
        self._sim._put(self._sim.state.position, self._i, place + quat_rotate(self._get("rotation"), com))

    def _solid(self, what: str) -> None:
        """A point mass cannot turn."""
        if (
            not np.any(self._sim.model.bodies.inertia.numpy()[self._i])
            and self._sim.model.bodies.motion.numpy()[self._i] == DYNAMIC
        ):
            raise SimulationError(f"body {self.name!r} is a point mass: it takes no {what}")

    def _moving(self) -> Any:
        """The state, with velocities of the pose where they are the body's own: those of a driven one are as they were set."""
        driven = self._sim.model.bodies.motion.numpy()[self._i] == KINEMATIC
        return self._sim._state if driven else self._sim.state

    def _put_spin(self, spin: np.ndarray) -> None:
        """ω and, for it, L = R I Rᵀ ω."""
        inertia = self._sim.model.bodies.inertia.numpy()[self._i].astype(float)
        q = self._get("rotation")
        local = quat_rotate(quat_conjugate(q), spin) @ inertia.T
        state = self._moving()
        self._sim._put(state.spin, self._i, spin)
        self._sim._put(state.momentum, self._i, quat_rotate(q, local))


class JointView:
    """One joint of a running simulation; coordinates are the child's motion relative to the parent.

    Coordinates come in the order translations, rotations. A joint with one free axis gives floats; three free rotations give a
    quaternion (x, y, z, w) as coordinates and the relative spin in the parent's joint frame as speeds.
    """

    __slots__ = ("_drive", "_i", "_q", "_sim", "_v", "kind", "name")

    def __init__(self, sim: Owner, index: int, name: str) -> None:
        self._sim, self._i, self.name = sim, index, name
        self.kind = sim.model.joint_kinds[index]
        q, v = int(sim.model.q_start[index]), int(sim.model.v_start[index])
        self._q, self._v = slice(q, q + self.kind.q_size), slice(v, v + self.kind.v_size)
        self._drive = DriveView(self)

    def __repr__(self) -> str:
        return f"<joint {self.name!r}: {self.kind.kind}>"

    def _need_axis(self, what: str) -> None:
        if self.kind.v_size == 0:
            raise SimulationError(f"joint {self.name!r}: {what} needs a free axis, and a {self.kind.kind} joint has none")

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
        self._sim._coordinates(1)
        return self._axes(self._sim._state.q, self._q)

    @position.setter
    def position(self, value: Any) -> None:
        self._need_axis("position")
        q = self._sim._in(value, self.kind.q_size, f"joint {self.name!r}", "position")
        if len(self.kind.turns) == 3:
            q[:, -4:] = unit_quat(q[:, -4:], f"joint {self.name!r}", SimulationError)
        assembly.set_position(self._sim.model, self._sim.state, self._i, q)
        self._sim.changed()

    @property
    def velocity(self) -> Any:
        """Speeds, m/s and rad/s: a float, or (v_size,)."""
        self._sim._coordinates()
        return self._axes(self._sim.state.qd, self._v)

    @velocity.setter
    def velocity(self, value: Any) -> None:
        self._need_axis("velocity")
        v = self._sim._in(value, self.kind.v_size, f"joint {self.name!r}", "velocity")
        assembly.set_velocity(self._sim.model, self._sim.state, self._i, v)
        self._sim.changed()

    @property
    def force(self) -> Any:
        """Force or torque applied on the free axes until changed, N and N·m: a float, or (v_size,)."""
        return self._axes(self._sim.control.joint_force, self._v)

    @force.setter
    def force(self, value: Any) -> None:
        self._need_axis("force")
        f = self._sim._in(value, self.kind.v_size, f"joint {self.name!r}", "force")
        array = self._sim.control.joint_force
        for i, row in enumerate(f.T):
            self._sim._write(array, self._v.start + i, row)
        self._sim._forced = True

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
        self._sim._touched = True
        self._sim._acts_changed()

    @property
    def friction(self) -> Friction:
        """Friction of the first free axis (first world); set a Friction or a bound, as a brake does.

        One value for all axes, a dict by axis name (bounds that were shared stay shared), or a list of one a world. An axis that
        a loop holds still has none.
        """
        self._need_axis("friction")
        at, c = self._v.start, self._sim.control
        static, dynamic, load, viscous, stribeck = (
            float(a.numpy()[at, 0])
            for a in (c.friction_static, c.friction_dynamic, c.friction_load, c.friction_viscous, c.friction_stribeck)
        )
        return Friction(static, dynamic, load, viscous, stribeck or None)

    @friction.setter
    def friction(self, value: Any) -> None:
        who = f"joint {self.name!r}"
        self._need_axis("friction")
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
                        at = self._v.start + i
                        sim._write(getattr(sim.control, name), at, np.array(row) * (not sim.model.frictionless()[at]))
        except SceneError as error:
            raise SimulationError(str(error)) from None
        self._begin_acting()

    def _begin_acting(self) -> None:
        self._sim.control.acts[self._i].fill_(1)
        self._sim._acts_changed()

    @property
    def stuck(self) -> Any:
        """Whether friction holds the joint: a bool, or (v_size,)."""
        values = self._sim._state.stuck.numpy()[self._v].T != 0
        if values.shape[1] == 1:
            values = values[:, 0]
        return bool(values[0]) if self._sim.worlds == 1 and values.ndim == 1 else self._sim._out(values)

    @property
    def friction_force(self) -> Any:
        """Dry friction of the last step on the child's side, N and N·m: a float, or (v_size,)."""
        return self._axes(self._sim._state.friction_impulse, self._v) / self._sim.dt

    @property
    def limit_force(self) -> Any:
        """Force or torque of the limits in the last step: a float, or (v_size,); of a ball joint, along the limits' rows."""
        return self._axes(self._sim._state.limit_impulse, self._v) / self._sim.dt

    @property
    def dissipated(self) -> Any:
        """Energy that friction and dampers, and with `closing="energy"` limits, took in the last step, J."""
        return self._sim._out(self._sim._row(self._sim._state.dissipated, self._i))

    @property
    def drive(self) -> DriveView:
        """The servo or motor: its targets, gains and voltage may be set; assign a Servo to give the joint one."""
        return self._drive

    @drive.setter
    def drive(self, value: Servo) -> None:
        self._need_axis("drive")
        if not isinstance(value, Servo):
            raise SimulationError(f"joint {self.name!r}: drive takes a Servo, got {value!r}")
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
        rows = assembly.evaluate(self._sim.model, self._sim._state)
        return self._sim._out(np.array([r.point[self._i] for r in rows]))

    @property
    def axes(self) -> dict[str, np.ndarray]:
        """World direction (3,) of every free axis of the first world, by name; for drawing."""
        rows = assembly.evaluate(self._sim.model, self._sim._state)[0]
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
        joint._need_axis(f"drive.{name.removeprefix('servo_')}")
        axes = joint._sim.model.joint_axes[joint._i]
        if kind is DCMotor and not any(isinstance(a.drive, DCMotor) for a in axes):
            raise SimulationError(f"joint {joint.name!r} has no DCMotor: {name} cannot be set")
        joint._put(getattr(joint._sim.control, name), value, name)
        joint._sim.solver.driven = True
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
        return self._joint._axes(self._joint._sim._state.current, self._joint._v)

    @property
    def force(self) -> Any:
        """Force or torque of the drive on the joint in the last step, N or N·m."""
        return self._joint._axes(self._joint._sim._state.drive_impulse, self._joint._v) / self._joint._sim.dt

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

    def __init__(self, sim: Owner, index: int, name: str) -> None:
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
            out.append(sim._out(sim._row(sim._state.position, b) + quat_rotate(sim._row(sim._state.rotation, b), arm)))
        return out[0], out[1]

    @property
    def length(self) -> Any:
        """Distance of its points, m."""
        a, b = self.ends
        return self._sim._out(np.atleast_1d(np.linalg.norm(b - a, axis=-1)))

    @property
    def force(self) -> Any:
        """Force of spring and damper that pushed its points apart in the last step, N."""
        return self._sim._out(self._sim._row(self._sim._state.spring_impulse, self._i) / self._sim.dt)


class GearView:
    """One gear of a running simulation."""

    __slots__ = ("_i", "_sim", "name")

    def __init__(self, sim: Owner, index: int, name: str) -> None:
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
        return self._sim._out(np.array([row.gear_gap[self._i] for row in assembly.evaluate(self._sim.model, self._sim._state)]))
