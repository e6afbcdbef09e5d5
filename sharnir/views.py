"""Views of one body, joint, drive, spring or gear of a running simulation: names and NumPy values over the arrays beneath.

A view reads and writes the arrays of the simulation it belongs to; values may be set between steps. Of one world on the CPU it
keeps the memory of its own values: a number is read or written in less than a microsecond.
"""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np

from sharnir import assembly
from sharnir.arrays import memory
from sharnir.axes import Axis, DCMotor, Friction, Servo, per_axis
from sharnir.errors import SceneError, SimulationError
from sharnir.model import DYNAMIC, FIXED, KINEMATIC, command_values
from sharnir.spatial import cross, quat_conjugate, quat_rotate, unit_quat

# The Simulation a view belongs to; it stands a floor above, so that it is not named here.
Owner = Any
NUMBER = (float, int)  # a tuple is quicker than a union
PLACES, ALL = 1, 2  # what of the joints has to be read


class BodyView:
    """One body of a running simulation; values may be read and set between steps. World axes."""

    __slots__ = ("_com", "_i", "_memory", "_motion", "_once", "_rows", "_sim", "_turns", "name")

    def __init__(self, sim: Owner, index: int, name: str) -> None:
        self._sim, self._i, self.name = sim, index, name
        self._motion = int(sim.model.bodies.motion.numpy()[index])
        self._com = sim.model.com[index] if np.any(sim.model.com[index]) else None
        self._turns = bool(np.any(sim.model.bodies.inertia.numpy()[index])) or self._motion != DYNAMIC
        self._rows: dict[str, np.ndarray] | None = None  # of one world: (3,) and (4,), and the same as memory
        if sim._on_cpu and sim.worlds == 1:
            fields = ("position", "rotation", "velocity", "spin", "acceleration")
            self._rows = {f: getattr(sim._moving, f)[index, 0] for f in fields}
            self._memory = {f: memory(row) for f, row in self._rows.items()}
            self._once = tuple(memory(getattr(sim._commands, f)[index, 0]) for f in ("force_once", "torque_once"))

    def __repr__(self) -> str:
        return f"<body {self.name!r}>"

    def _get(self, field: str) -> np.ndarray:
        """(worlds, …), a copy."""
        host = self._sim._moving if field in ("position", "rotation") else self._sim._settled()
        return np.array(getattr(host, field)[self._i], float)

    def _value(self, field: str) -> Any:
        """The same, as the user sees it."""
        if self._rows is None:
            return self._get(field)[0] if self._sim.worlds == 1 else self._get(field)
        return self._rows[field].astype(float)

    def _checked(self, value: Any, what: str, size: int = 3) -> np.ndarray:
        return np.asarray(self._sim._in(value, size, f"body {self.name!r}", what))

    @property
    def contact_force(self) -> np.ndarray:
        """(3,) N, world axes: of all that touches it, mean over the last step; zero where nothing touches anything."""
        touching = self._sim._touching
        if touching is None:
            return np.zeros(3) if self._sim.worlds == 1 else np.zeros((self._sim.worlds, 3))
        return np.asarray(touching.force(self.name))

    @property
    def touching(self) -> tuple[str, ...]:
        """Names of the bodies that touch it; of several worlds, in the first."""
        touching = self._sim._touching
        return () if touching is None else tuple(touching.partners(self.name))

    def _movable(self, what: str) -> None:
        if self._motion == FIXED:
            raise SimulationError(f"body {self.name!r} is fixed: its {what} cannot be set")

    def _put(self, field: str, value: np.ndarray) -> None:
        """Write to an array of the state, which the guard is told of."""
        self._sim._moving.put(field, self._i, value)
        self._sim.changed()

    @property
    def rotation(self) -> Any:
        """(4,) unit quaternion (x, y, z, w) of the body's frame."""
        return self._value("rotation")

    @rotation.setter
    def rotation(self, value: Any) -> None:
        self._movable("rotation")
        q = unit_quat(self._checked(value, "rotation", 4), f"body {self.name!r}", SimulationError)
        self._sim._settled()
        place, spin = self._place(), self._get("spin")
        self._put("rotation", q)
        self._put_place(place)
        self._put_spin(spin)

    @property
    def position(self) -> Any:
        """(3,) origin of the body's frame, m."""
        if self._com is None:
            return self._value("position")
        return self._sim._out(self._place())

    @position.setter
    def position(self, value: Any) -> None:
        self._movable("position")
        self._sim._settled()
        self._put_place(self._checked(value, "position (m)"))

    @property
    def com(self) -> Any:
        """(3,) centre of mass, m."""
        return self._value("position")

    @property
    def velocity(self) -> Any:
        """(3,) velocity of the centre of mass, m/s."""
        if not self._sim._at_pose:
            self._sim._settled()
        return self._value("velocity")

    @velocity.setter
    def velocity(self, value: Any) -> None:
        self._movable("velocity")
        self._begin_setting()
        if not self._quick("velocity", value):
            self._put("velocity", self._checked(value, "velocity (m/s)"))
        self._note_drive()

    def _begin_setting(self) -> None:
        """Velocities of the pose, where they are the body's own: those of a driven one are as they were set."""
        if not self._sim._at_pose and self._motion != KINEMATIC:
            self._sim._settled()

    def _quick(self, field: str, value: Any) -> bool:
        """Write three finite numbers to the memory of one world; False where they are not that."""
        if self._rows is None or len(value) != 3:
            return False
        x, y, z = value
        try:
            if not (-inf < x < inf and -inf < y < inf and -inf < z < inf):
                return False
            row = self._memory[field]
            row[0], row[1], row[2] = x, y, z
        except (TypeError, ValueError):
            return False
        self._sim.changed()
        return True

    def _note_drive(self) -> None:
        """A driven body that changes its speed gives others any energy."""
        if self._motion == KINEMATIC:
            self._sim._forced = True

    @property
    def spin(self) -> Any:
        """(3,) angular velocity, rad/s."""
        if not self._sim._at_pose:
            self._sim._settled()
        return self._value("spin")

    @spin.setter
    def spin(self, value: Any) -> None:
        self._movable("spin")
        spin = self._checked(value, "spin (rad/s)")
        if np.any(spin):
            self._solid("spin")
        self._begin_setting()
        self._put_spin(spin)
        self._note_drive()

    @property
    def acceleration(self) -> Any:
        """(3,) acceleration of the centre of mass, mean over the last step, m/s²."""
        if not self._sim._at_pose:
            self._sim._settled()
        return self._value("acceleration")

    def apply_force(self, force: Any, at: Any = None, once: bool = True) -> None:
        """Act with a force (3,) N in the next step, or (`once=False`) until set anew; `at` a world point (m), else the com."""
        if once and self._rows is not None and self._motion == DYNAMIC and self._quick_push(force, at):
            self._sim._forced = True
            return
        f = self._checked(force, "force (N)")
        arm = np.zeros_like(f) if at is None else self._checked(at, "point of a force (m)") - self._get("position")
        self._act("force", f, once)
        if at is not None or not once:
            self._act("torque", cross(arm, f), once)

    def _quick_push(self, force: Any, at: Any) -> bool:
        """Add a force of one step to the memory of one world; False where it is not three finite numbers, or cannot act there."""
        try:
            x, y, z = force
            if not (-inf < x < inf and -inf < y < inf and -inf < z < inf):
                return False
            if at is not None:
                a, b, c = at
                if not (self._turns and -inf < a < inf and -inf < b < inf and -inf < c < inf):
                    return False
                place, turn = self._memory["position"], self._once[1]
                a, b, c = a - place[0], b - place[1], c - place[2]
                turn[0] += b * z - c * y
                turn[1] += c * x - a * z
                turn[2] += a * y - b * x
        except (TypeError, ValueError):
            return False
        push = self._once[0]
        push[0] += x
        push[1] += y
        push[2] += z
        return True

    def apply_torque(self, torque: Any, once: bool = True) -> None:
        """Act with a torque (3,) N·m in the next step, or (`once=False`) until set anew."""
        self._act("torque", self._checked(torque, "torque (N·m)"), once)

    def _act(self, what: str, value: np.ndarray, once: bool) -> None:
        if self._motion != DYNAMIC:
            raise SimulationError(f"body {self.name!r} is not dynamic: a {what} cannot move it")
        if what == "torque" and np.any(value):
            self._solid("torque")
        name = f"{what}_once" if once else what
        with np.errstate(over="ignore"):  # of a sum that is not finite the step will tell
            already = getattr(self._sim._commands, name)[self._i].astype(float) if once else 0.0
            self._sim._commands.put(name, self._i, value + already)
        self._sim._forced = True

    def _place(self) -> np.ndarray:
        if self._com is None:
            return self._get("position")
        com = np.broadcast_to(self._com, (self._sim.worlds, 3))
        return np.asarray(self._get("position") - quat_rotate(self._get("rotation"), com))

    def _put_place(self, place: np.ndarray) -> None:
        com = np.zeros(3) if self._com is None else self._com
        self._put("position", place + quat_rotate(self._get("rotation"), np.broadcast_to(com, place.shape)))

    def _solid(self, what: str) -> None:
        """A point mass cannot turn."""
        if not self._turns:
            raise SimulationError(f"body {self.name!r} is a point mass: it takes no {what}")

    def _put_spin(self, spin: np.ndarray) -> None:
        """ω and, for it, L = R I Rᵀ ω."""
        inertia = self._sim._inertia(np.array([self._i]))[0]
        q = self._get("rotation")
        local = (inertia @ quat_rotate(quat_conjugate(q), spin)[..., None])[..., 0]
        self._put("spin", spin)
        self._put("momentum", quat_rotate(q, local))


class JointView:
    """One joint of a running simulation; coordinates are the child's motion relative to the parent.

    Coordinates come in the order translations, rotations. A joint with one free axis gives floats; three free rotations give a
    quaternion (x, y, z, w) as coordinates and the relative spin in the parent's joint frame as speeds.
    """

    __slots__ = ("_drive", "_i", "_one", "_place", "_push", "_q", "_sim", "_speed", "_v", "kind", "name")

    def __init__(self, sim: Owner, index: int, name: str) -> None:
        self._sim, self._i, self.name = sim, index, name
        self.kind = sim.model.joint_kinds[index]
        q, v = int(sim.model.q_start[index]), int(sim.model.v_start[index])
        self._q, self._v = slice(q, q + self.kind.q_size), slice(v, v + self.kind.v_size)
        self._one = sim._on_cpu and sim.worlds == 1 and self.kind.v_size == 1  # one number, read straight from the memory
        if self._one:
            self._place, self._speed = memory(sim._moving.q[q]), memory(sim._moving.qd[v])
            self._push = memory(sim._commands.joint_force[v])
        self._drive = DriveView(self)

    def __repr__(self) -> str:
        return f"<joint {self.name!r}: {self.kind.kind}>"

    def _need_axis(self, what: str) -> None:
        if self.kind.v_size == 0:
            raise SimulationError(f"joint {self.name!r}: {what} needs a free axis, and a {self.kind.kind} joint has none")

    def _axes(self, values: np.ndarray, part: slice) -> Any:
        mine = np.array(values[part], float).T
        return self._sim._out(mine[:, 0] if mine.shape[1] == 1 else mine)

    def _put(self, name: str, value: Any, what: str) -> None:
        """Write a value per free axis (one value serves all) to an array of the commands."""
        size = self.kind.v_size
        if np.ndim(value) == 0:
            value = np.full(size, value)
        for i, row in enumerate(self._sim._in(value, size, f"joint {self.name!r}", what).T):
            self._sim._commands.put(name, self._v.start + i, row)

    @property
    def position(self) -> Any:
        """Coordinates, m and rad: a float, or (q_size,); angles count turns."""
        if self._sim._read < PLACES:
            self._sim._coordinates(PLACES)
        if self._one:
            return self._place[0]
        return self._axes(self._sim._moving.q, self._q)

    @position.setter
    def position(self, value: Any) -> None:
        self._need_axis("position")
        q = self._sim._in(value, self.kind.q_size, f"joint {self.name!r}", "position")
        if len(self.kind.turns) == 3:
            q[:, -4:] = unit_quat(q[:, -4:], f"joint {self.name!r}", SimulationError)
        self._sim._settled()
        assembly.set_position(self._sim.model, self._sim.state, self._i, q)
        self._sim.changed()

    @property
    def velocity(self) -> Any:
        """Speeds, m/s and rad/s: a float, or (v_size,)."""
        if self._sim._read < ALL:
            self._sim._coordinates()
        if self._one:
            return self._speed[0]
        return self._axes(self._sim._moving.qd, self._v)

    @velocity.setter
    def velocity(self, value: Any) -> None:
        self._need_axis("velocity")
        v = self._sim._in(value, self.kind.v_size, f"joint {self.name!r}", "velocity")
        self._sim._settled()
        assembly.set_velocity(self._sim.model, self._sim.state, self._i, v)
        self._sim.changed()

    @property
    def force(self) -> Any:
        """Force or torque applied on the free axes until changed, N and N·m: a float, or (v_size,)."""
        if self._one:
            return self._push[0]
        return self._axes(self._sim._commands.joint_force, self._v)

    @force.setter
    def force(self, value: Any) -> None:
        if self._one and isinstance(value, NUMBER) and -inf < value < inf:
            self._push[0] = value
        else:
            self._need_axis("force")
            f = self._sim._in(value, self.kind.v_size, f"joint {self.name!r}", "force")
            for i, row in enumerate(f.T):
                self._sim._commands.put("joint_force", self._v.start + i, row)
        self._sim._forced = True

    @property
    def reaction(self) -> tuple[Any, Any]:
        """(force (3,) N, torque (3,) N·m) of the constraint on the child at its anchor in the last step, world axes."""
        sim = self._sim
        s = sim._settled()
        force, torque = (np.array(a[self._i], float) / sim.dt for a in (s.joint_force, s.joint_torque))
        return sim._out(force), sim._out(torque)

    @property
    def enabled(self) -> Any:
        """Whether the joint holds; False takes it out, with all that acts on it, until it is set again."""
        values = self._sim._commands.enabled[self._i] != 0
        return bool(values[0]) if self._sim.worlds == 1 else values

    @enabled.setter
    def enabled(self, value: Any) -> None:
        on = self._sim._in(value, 1, f"joint {self.name!r}", "enabled")[:, 0] != 0
        self._sim._commands.put("enabled", self._i, on.astype(np.int32))
        self._sim._touched = True
        self._sim._acts_changed()

    @property
    def friction(self) -> Friction:
        """Friction of the first free axis (first world); set a Friction or a bound, as a brake does.

        One value for all axes, a dict by axis name (bounds that were shared stay shared), or a list of one a world. An axis that
        a loop holds still has none.
        """
        self._need_axis("friction")
        at, c = self._v.start, self._sim._commands
        static, dynamic, load, viscous, stribeck = (
            float(a[at, 0])
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
                        sim._commands.put(name, at, np.array(row) * (not sim.model.frictionless()[at]))
        except SceneError as error:
            raise SimulationError(str(error)) from None
        self._begin_acting()

    def _begin_acting(self) -> None:
        self._sim._commands.put("acts", self._i, 1)
        self._sim._acts_changed()

    @property
    def stuck(self) -> Any:
        """Whether friction holds the joint: a bool, or (v_size,)."""
        values = self._sim._moving.stuck[self._v].T != 0
        if values.shape[1] == 1:
            values = values[:, 0]
        return bool(values[0]) if self._sim.worlds == 1 and values.ndim == 1 else self._sim._out(values)

    @property
    def friction_force(self) -> Any:
        """Dry friction of the last step on the child's side, N and N·m: a float, or (v_size,)."""
        return self._axes(self._sim._moving.friction_impulse, self._v) / self._sim.dt

    @property
    def limit_force(self) -> Any:
        """Force or torque of the limits in the last step: a float, or (v_size,); of a ball joint, along the limits' rows."""
        return self._axes(self._sim._moving.limit_impulse, self._v) / self._sim.dt

    @property
    def dissipated(self) -> Any:
        """Energy that friction and dampers, and with `closing="energy"` limits, took in the last step, J."""
        return self._sim._out(np.array(self._sim._moving.dissipated[self._i], float))

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
                self._put(name, number, name)
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

    __slots__ = ("_acts", "_joint", "_kd", "_kp", "_position", "_torque", "_velocity")

    def __init__(self, joint: JointView) -> None:
        self._joint = joint
        self._acts: Any = None  # the memory of one number each, where there is no more
        if joint._one:
            c, at = joint._sim._commands, joint._v.start
            self._acts, self._kp, self._kd = memory(c.acts[joint._i]), memory(c.servo_kp[at]), memory(c.servo_kd[at])
            self._position, self._velocity = memory(c.servo_position[at]), memory(c.servo_velocity[at])
            self._torque = memory(c.servo_torque[at])

    def __repr__(self) -> str:
        return f"<drive of joint {self._joint.name!r}>"

    def _get(self, name: str) -> Any:
        return self._joint._axes(getattr(self._joint._sim._commands, name), self._joint._v)

    def _set(self, name: str, value: Any, kind: type, gain: str = "") -> None:
        joint, what = self._joint, name.removeprefix("servo_")
        joint._need_axis(f"drive.{what}")
        axes = joint._sim.model.joint_axes[joint._i]
        if kind is DCMotor and not any(isinstance(a.drive, DCMotor) for a in axes):
            raise SimulationError(f"joint {joint.name!r} has no DCMotor: {name} cannot be set")
        if gain and np.any(value) and not np.any(getattr(joint._sim._commands, f"servo_{gain}")[joint._v]):
            raise SimulationError(
                f"joint {joint.name!r}: drive.{what} = {value!r} needs a servo with {gain} above 0, and its {gain} is 0; "
                f"assign drive = Servo({gain}=…), or set drive.{gain} first"
            )
        joint._put(name, value, what)
        joint._sim.solver.driven = True
        joint._begin_acting()

    @property
    def position(self) -> Any:
        """Target of the servo, m or rad."""
        return self._get("servo_position") if self._acts is None else self._position[0]

    @position.setter
    def position(self, value: Any) -> None:
        if self._acts is not None and self._acts[0] and self._kp[0] > 0.0 and isinstance(value, NUMBER) and -inf < value < inf:
            self._position[0] = value
        else:
            self._set("servo_position", value, Servo, "kp")

    @property
    def velocity(self) -> Any:
        """Target speed of the servo, m/s or rad/s."""
        return self._get("servo_velocity") if self._acts is None else self._velocity[0]

    @velocity.setter
    def velocity(self, value: Any) -> None:
        if self._acts is not None and self._acts[0] and self._kd[0] > 0.0 and isinstance(value, NUMBER) and -inf < value < inf:
            self._velocity[0] = value
        else:
            self._set("servo_velocity", value, Servo, "kd")

    @property
    def torque(self) -> Any:
        """Force or torque the servo adds, N or N·m."""
        return self._get("servo_torque") if self._acts is None else self._torque[0]

    @torque.setter
    def torque(self, value: Any) -> None:
        if self._acts and self._acts[0] and isinstance(value, NUMBER) and -inf < value < inf:
            self._torque[0] = value
            self._joint._sim.solver.driven = True
        else:
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
        return self._joint._axes(self._joint._sim._settled().current, self._joint._v)

    @property
    def force(self) -> Any:
        """Force or torque of the drive on the joint in the last step, N or N·m."""
        return self._joint._axes(self._joint._sim._moving.drive_impulse, self._joint._v) / self._joint._sim.dt

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
            place, turn = (np.array(a[b], float) for a in (sim._moving.position, sim._moving.rotation))
            out.append(sim._out(place + quat_rotate(turn, arm)))
        return out[0], out[1]

    @property
    def length(self) -> Any:
        """Distance of its points, m."""
        a, b = self.ends
        return self._sim._out(np.atleast_1d(np.linalg.norm(b - a, axis=-1)))

    @property
    def force(self) -> Any:
        """Force of spring and damper that pushed its points apart in the last step, N."""
        return self._sim._out(np.array(self._sim._moving.spring_impulse[self._i], float) / self._sim.dt)


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
        return self._sim._out(np.array(self._sim._settled().gear_impulse[self._i], float) / self._sim.dt)

    @property
    def gap(self) -> Any:
        """How far the gear is off: q_a − ratio · q_b against its start, m or rad."""
        return self._sim._out(np.array([row.gear_gap[self._i] for row in assembly.evaluate(self._sim.model, self._sim._state)]))
