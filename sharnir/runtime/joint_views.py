"""Views of one joint of a running simulation, and of its drive; see `views`."""

from __future__ import annotations

import warnings
from math import inf
from typing import Any

import numpy as np

from sharnir.core import strided, summaries
from sharnir.core.renamed import Former
from sharnir.core.spatial import in_degrees, unit_quat
from sharnir.errors import Bound, SceneError, SceneWarning, SimulationError, as_numbers, callers_level
from sharnir.model import assembly
from sharnir.model.actuators import Axis, DCMotor, Friction, Limit, Servo, per_axis
from sharnir.model.joint_setting import set_position, set_velocity
from sharnir.model.model import command_values
from sharnir.runtime import parameters
from sharnir.runtime.arrays import READ_ALL, READ_PLACES, memory, warn_beyond_limits
from sharnir.runtime.drive_views import TableDrive

# The Simulation a view belongs to; it stands a floor above, so that it is not named here.
Owner = Any
PLAIN_NUMBER = (float, int)  # a tuple is quicker than a union
NO_LIMIT_AT = 1e29  # m, rad, where a limit stands that was taken away: kernels forget none


class JointView(Bound):
    """One joint of a running simulation; coordinates are the child's motion relative to the parent.

    Coordinates come in the order translations, rotations. A joint with one free axis gives floats; three free rotations give a
    quaternion (x, y, z, w) as coordinates and the relative spin in the parent's joint frame as speeds.
    """

    __slots__ = ("_drive", "_i", "_one", "_place", "_push", "_q", "_reported", "_sim", "_speed", "_v", "kind", "name")
    __setattr__ = object.__setattr__  # type: ignore[assignment]  # in half the time

    def __init__(self, sim: Owner, index: int, name: str) -> None:
        self._sim, self._i, self.name = sim, index, name
        self.kind = sim.model.joint_kinds[index]
        q, v = int(sim.model.q_start[index]), int(sim.model.v_start[index])
        self._q, self._v = slice(q, q + self.kind.q_size), slice(v, v + self.kind.v_size)
        self._one = sim._on_cpu and sim.worlds == 1 and self.kind.v_size == 1  # one number, read straight from the memory
        if self._one:
            self._place, self._speed = memory(sim._moving.q[q]), memory(sim._moving.qd[v])
            self._push = memory(sim._commands.joint_force[v])
        self._drive, self._reported = DriveView(self), False

    force = Former("effort")

    def __repr__(self) -> str:
        return summaries.joint(self)

    def _need_axis(self, what: str) -> None:
        if self.kind.v_size == 0:
            raise SimulationError(f"joint {self.name!r}: {what} needs a free axis, and a {self.kind.kind} joint has none")

    def _axes(self, values: np.ndarray, part: slice) -> Any:
        mine = np.array(values[part], float).T
        return self._sim._out(mine[:, 0] if mine.shape[1] == 1 else mine)

    def _put(self, name: str, value: Any, what: str) -> None:
        """Write a value per free axis (one value serves all) to an array of the commands."""
        size = self.kind.v_size
        given = as_numbers(value)
        if given.ndim == 0 and not np.isnan(given):
            value = np.full(size, given)
        for i, row in enumerate(self._sim._in(value, size, f"joint {self.name!r}", what).T):
            self._sim._commands.put(name, self._v.start + i, row)

    @property
    def position(self) -> Any:
        """Coordinates, m and rad: a float, or (q_size,); angles count turns."""
        if self._sim._read < READ_PLACES:
            self._sim._coordinates(READ_PLACES)
        if self._one:
            return self._place[0]
        return self._axes(self._sim._moving.q, self._q)

    @position.setter
    def position(self, value: Any) -> None:
        self._need_axis("position")
        q = self._sim._in(value, self.kind.q_size, f"joint {self.name!r}", "position", state=True)
        if len(self.kind.turns) == 3:
            q[:, -4:] = unit_quat(q[:, -4:], f"joint {self.name!r}", SimulationError)
        warn_beyond_limits(self._sim, q, np.arange(self._sim.worlds), self._i)
        self._sim._settled()
        set_position(self._sim.model, self._sim.state, self._i, q, self._sim._commands.enabled != 0)
        self._sim.changed()

    @property
    def parent_anchor(self) -> np.ndarray:
        """(3,) m: where it sits on the parent, in that body's frame; settable, for all worlds: coordinates stay, the child's
        side follows, and a loop is assembled or refused.
        """
        return self._anchor(0)

    @parent_anchor.setter
    def parent_anchor(self, value: Any) -> None:
        parameters.set_anchor(self._sim, self._i, f"joint {self.name!r}", 0, value)

    @property
    def child_anchor(self) -> np.ndarray:
        """(3,) m: where it sits on the child, in that body's frame; settable as `parent_anchor` is."""
        return self._anchor(1)

    @child_anchor.setter
    def child_anchor(self, value: Any) -> None:
        parameters.set_anchor(self._sim, self._i, f"joint {self.name!r}", 1, value)

    def _anchor(self, side: int) -> np.ndarray:
        m = self._sim.model
        points = strided.columns((m.joints.parent_point, m.joints.child_point)[side])[self._i]
        points = points + m.com[int((m.parents, m.children)[side][self._i])]
        return np.asarray(points[0] if len(points) == 1 else points)

    @property
    def velocity(self) -> Any:
        """Speeds, m/s and rad/s: a float, or (v_size,)."""
        if self._sim._read < READ_ALL:
            self._sim._coordinates()
        if self._one:
            return self._speed[0]
        return self._axes(self._sim._moving.qd, self._v)

    @velocity.setter
    def velocity(self, value: Any) -> None:
        self._need_axis("velocity")
        v = self._sim._in(value, self.kind.v_size, f"joint {self.name!r}", "velocity", state=True)
        self._sim._settled()
        set_velocity(self._sim.model, self._sim.state, self._i, v, self._sim._commands.enabled != 0)
        self._sim.changed()

    @property
    def effort(self) -> Any:
        """Force or torque that a program puts on the free axes until changed, N and N·m: a float, or (v_size,)."""
        if self._one:
            return self._push[0]
        return self._axes(self._sim._commands.joint_force, self._v)

    @effort.setter
    def effort(self, value: Any) -> None:
        if self._one and isinstance(value, PLAIN_NUMBER) and -inf < value < inf:
            self._push[0] = value
        else:
            self._need_axis("effort")
            f = self._sim._in(value, self.kind.v_size, f"joint {self.name!r}", "effort")
            for i, row in enumerate(f.T):
                self._sim._commands.put("joint_force", self._v.start + i, row)
        self._sim._forced = True

    @property
    def applied_effort(self) -> Any:
        """Force or torque of `effort` and of the drive on the free axes, N and N·m: a float, or (v_size,); the drive's as in the
        last step.
        """
        return self.effort + self._drive.force

    @property
    def reaction(self) -> tuple[Any, Any]:
        """(force (3,) N, torque (3,) N·m) of the constraint on the child at its anchor in the last step, world axes."""
        sim = self._sim
        s = sim._settled()
        force, torque = (np.array(a[self._i], float) / sim.dt for a in (s.joint_force, s.joint_torque))
        return sim._out(force), sim._out(torque)

    @property
    def enabled(self) -> Any:
        """Whether the joint holds; False takes it out, with all that acts on it, until it is set again. Its bodies collide with
        each other while it is disabled.
        """
        values = self._sim._commands.enabled[self._i] != 0
        return bool(values[0]) if self._sim.worlds == 1 else values

    @enabled.setter
    def enabled(self, value: Any) -> None:
        given = self._sim._in(value, 1, f"joint {self.name!r}", "enabled")[:, 0]
        if not np.isin(given, (0.0, 1.0)).all():
            raise SimulationError(f"joint {self.name!r}: enabled is True or False, got {value!r}")
        on = given != 0
        self._sim._commands.put("enabled", self._i, on.astype(np.int32))
        self._sim._modified = True
        self._sim._acts_changed()

    def attach(self, at: Any = None, *, worlds: Any = None) -> None:
        """Enable a disabled joint as its bodies stand now (a hook, a grapple): nothing is moved, its coordinates start at 0.

        Args:
            at: where the joint is put. "parent": where the parent's anchor is now (the tip of a hook), with the joint axes of
                the parent. "child": where the child's anchor is now, with the axes of the child. A world point (3,), m, or one
                per world: there, with the axes of the parent. None: as "parent"; but as "child" if the child's anchor is less
                than half as far from both bodies (distance from the centre of mass in widths of the body, the larger of the two
                counts), or if the parent is the world. A SceneWarning says if the place is more than five widths from both.
            worlds: a mask (worlds,) or indices of the worlds in which it is attached; all if None. Each has its own place.

        `parent_anchor` and `child_anchor` are those of this place from then on. `enabled = False` lets go, `enabled = True`
        brings the bodies back to where the joint was made or last attached, `reset` goes back to the scene's anchors.
        """
        parameters.attach(self._sim, self._i, f"joint {self.name!r}", worlds, at)

    @property
    def friction(self) -> Any:
        """A Friction, where worlds differ a list of one a world, where axes differ a dict by name; set a Friction or a bound, as
        a brake does.

        One value for all axes, a dict by axis name (bounds that were shared stay shared), or a list of one a world. An axis that
        a loop holds still has none.
        """
        self._need_axis("friction")
        c = self._sim._commands
        fields = (c.friction_static, c.friction_dynamic, c.friction_load, c.friction_viscous, c.friction_stribeck)
        by_axis = []
        for at in range(self._v.start, self._v.stop):
            numbers = np.array([field[at] for field in fields], float).T.tolist()
            laws = [Friction(s, d, load, viscous, stribeck or None) for s, d, load, viscous, stribeck in numbers]
            by_axis.append(laws[0] if all(law == laws[0] for law in laws) else laws)
        return by_axis[0] if all(laws == by_axis[0] for laws in by_axis) else dict(zip(self.kind.free, by_axis, strict=False))

    @friction.setter
    def friction(self, value: Any) -> None:
        who = f"joint {self.name!r}"
        self._need_axis("friction")
        self._need_value("friction", value)
        sim, names = self._sim, self.kind.free[: self.kind.v_size]
        try:
            by_axis = per_axis(who, "friction", value, tuple(names))
            for i, axis in enumerate(sim.model.joint_axes[self._i]):
                if names[i] not in by_axis:
                    continue
                given = by_axis[names[i]]
                each = given if isinstance(given, list | tuple | np.ndarray) else [given] * sim.worlds
                laws = [Friction.of(v, who) for v in each]
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

    def _by_axis(self, what: str, value: Any) -> dict[int, Any]:
        """One value for all axes, or a dict by axis name, as values by number."""
        names = tuple(self.kind.free[: self.kind.v_size])
        self._need_value(what, value)
        try:
            return {names.index(n): v for n, v in per_axis(f"joint {self.name!r}", what, value, names).items()}
        except SceneError as error:
            raise SimulationError(str(error)) from None

    def _need_value(self, what: str, value: Any) -> None:
        if value is None or (isinstance(value, dict) and not value):
            none = {"limit": "(-math.inf, math.inf)", "spring": "(0, 0)"}.get(what, "0")
            raise SimulationError(
                f"joint {self.name!r}: {what} is a value, or a dict by axis name, got {value!r}; for none: {none}"
            )

    def _per_axis(self, values: list[Any]) -> Any:
        """One value of a joint with one free axis, else a dict by axis name."""
        self._need_axis("this")
        return values[0] if len(values) == 1 else dict(zip(self.kind.free, values, strict=False))

    @property
    def limit(self) -> Any:
        """(lower, upper) of the free axis, m or rad, ±inf where there is none; of several axes a dict by name. Settable, one
        pair or a dict by axis name; each end for all worlds or one a world. A ball has those of its scene.
        """
        ends = []
        for name, side in (("lower", -inf), ("upper", inf)):
            values = parameters.axis_values(self._sim, self._i, name)
            ends.append([np.where(np.abs(v) < NO_LIMIT_AT, v, side)[()] for v in values])
        return self._per_axis(list(zip(*ends, strict=True)))

    @limit.setter
    def limit(self, value: Any) -> None:
        who = f"joint {self.name!r}"
        for axis, given in self._by_axis("limit", value).items():
            if len(self.kind.turns) == 3 and axis >= self.kind.v_size - 3:
                raise SimulationError(
                    f"{who}: limits of a ball's rotations are those of its scene (Cardan, SwingTwist), got {given!r}"
                )
            ends = (given.lower, given.upper) if isinstance(given, Limit) else given
            try:
                low, high = ends
            except (TypeError, ValueError):
                raise SimulationError(f"{who}: a limit is (lower, upper), got {given!r}") from None
            low, high = (
                parameters.checked(self._sim, v, who, f"{n} limit", endless=True) for n, v in (("lower", low), ("upper", high))
            )
            if np.any(low > high) or np.any(low == inf) or np.any(high == -inf):
                raise SimulationError(f"{who}: the lower limit is at most the upper, got {given!r}")
            turns = axis >= self.kind.v_size - len(self.kind.turns)
            question = in_degrees(f"{who}: a limit", (*low, *high)) if turns else ""
            if question:
                warnings.warn(question, SceneWarning, stacklevel=callers_level())
            values = {"lower": np.maximum(low, -NO_LIMIT_AT), "upper": np.minimum(high, NO_LIMIT_AT)}
            if isinstance(given, Limit):
                values["restitution"] = np.array([given.restitution])
            parameters.set_axis(self._sim, self._i, axis, values)

    @property
    def spring(self) -> Any:
        """(stiffness, rest) of the free axis, N/m and m or N·m/rad and rad; of several axes a dict by name. Settable, one
        pair or a dict by axis name; each number for all worlds or one a world.
        """
        stiffness, rest = (parameters.axis_values(self._sim, self._i, name) for name in ("stiffness", "rest"))
        return self._per_axis(list(zip(stiffness, rest, strict=True)))

    @spring.setter
    def spring(self, value: Any) -> None:
        who = f"joint {self.name!r}"
        for axis, given in self._by_axis("spring", value).items():
            try:
                stiffness, rest = given
            except (TypeError, ValueError):
                raise SimulationError(f"{who}: a spring is (stiffness, rest), got {given!r}") from None
            k = parameters.checked(self._sim, stiffness, who, "spring stiffness", least=0.0)
            parameters.set_axis(
                self._sim, self._i, axis, {"stiffness": k, "rest": parameters.checked(self._sim, rest, who, "spring rest")}
            )

    @property
    def damping(self) -> Any:
        """N·s/m or N·m·s of the free axis; of several a dict by name. Settable, one or a dict, for all worlds or one each."""
        return self._per_axis(parameters.axis_values(self._sim, self._i, "damping"))

    @damping.setter
    def damping(self, value: Any) -> None:
        for axis, given in self._by_axis("damping", value).items():
            number = parameters.checked(self._sim, given, f"joint {self.name!r}", "damping", least=0.0)
            parameters.set_axis(self._sim, self._i, axis, {"damping": number})

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
        """Energy that friction and dampers, and with `solver="direct"` limits, took in the last step, J."""
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
        return self._sim._out(self._sim.constraint_error()[:, self._i])

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


def _of_motor(name: str, doc: str, **bounds: Any) -> Any:
    """A number of a drive's DC motor, as a property."""
    return property(lambda self: self._motors(name), lambda self, value: self._motor(name, value, **bounds), doc=doc)


def _gain(name: str, doc: str) -> Any:
    """A gain of a drive's servo, as a property."""

    def put(self: DriveView, value: Any) -> None:
        self._set(f"servo_{name}", self._at_least_zero(name, value), Servo)

    return property(lambda self: self._get(f"servo_{name}"), put, doc=doc)


class DriveView(TableDrive):
    """The drive of a joint: a float, or (v_size,) where the joint has several free axes."""

    __slots__ = ("_acts", "_kd", "_kp", "_position", "_torque", "_velocity")
    __setattr__ = object.__setattr__  # type: ignore[assignment]  # in half the time

    def __init__(self, joint: JointView) -> None:
        super().__init__(joint)
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
        if gain and np.any(as_numbers(value)) and not np.any(getattr(joint._sim._commands, f"servo_{gain}")[joint._v]):
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
        if (
            self._acts is not None
            and self._acts[0]
            and self._kp[0] > 0.0
            and isinstance(value, PLAIN_NUMBER)
            and -inf < value < inf
        ):
            self._position[0] = value
        else:
            self._set("servo_position", value, Servo, "kp")

    @property
    def velocity(self) -> Any:
        """Target speed of the servo, m/s or rad/s."""
        return self._get("servo_velocity") if self._acts is None else self._velocity[0]

    @velocity.setter
    def velocity(self, value: Any) -> None:
        if (
            self._acts is not None
            and self._acts[0]
            and self._kd[0] > 0.0
            and isinstance(value, PLAIN_NUMBER)
            and -inf < value < inf
        ):
            self._velocity[0] = value
        else:
            self._set("servo_velocity", value, Servo, "kd")

    @property
    def torque(self) -> Any:
        """Force or torque the servo adds, N or N·m."""
        return self._get("servo_torque") if self._acts is None else self._torque[0]

    @torque.setter
    def torque(self, value: Any) -> None:
        if self._acts and self._acts[0] and isinstance(value, PLAIN_NUMBER) and -inf < value < inf:
            self._torque[0] = value
            self._joint._sim.solver.driven = True
        else:
            self._set("servo_torque", value, Servo)

    kp = _gain("kp", "Stiffness of the servo, N/m or N·m/rad.")
    kd = _gain("kd", "Damping of the servo, N·s/m or N·m·s.")

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

    def _motor(self, name: str, value: Any, **bounds: Any) -> None:
        joint = self._joint
        sim, who = joint._sim, f"joint {joint.name!r}"
        given = parameters.checked(sim, value, who, name, **bounds)
        driven = [i for i, axis in enumerate(sim.model.joint_axes[joint._i]) if isinstance(axis.drive, DCMotor)]
        if not driven:
            raise SimulationError(f"{who} has no DCMotor: {name} cannot be set")
        for i in driven:
            parameters.set_axis(sim, joint._i, i, {name: given})

    def _motors(self, name: str) -> Any:
        return self._joint._per_axis(parameters.axis_values(self._joint._sim, self._joint._i, name))

    resistance = _of_motor(
        "resistance", "Ω of the motor; 0 where there is none; settable, for all worlds or one a world.", above=0.0
    )
    inductance = _of_motor("inductance", "H of the motor; settable, for all worlds or one a world.", least=0.0)
    torque_constant = _of_motor(
        "torque_constant", "N·m/A, and V·s, of the motor; settable, for all worlds or one a world.", above=0.0
    )
    gear_ratio = _of_motor(
        "gear_ratio", "Motor turns per turn (or radians per metre) of the joint; settable, for all worlds or one a world."
    )
    efficiency = _of_motor(
        "efficiency", "Of the motor's gear, 0 to 1; settable, for all worlds or one a world.", above=0.0, most=1.0
    )
    rotor_inertia = _of_motor("rotor_inertia", "kg·m² of the motor's rotor; settable, for all worlds or one a world.", least=0.0)

    def _at_least_zero(self, what: str, value: Any) -> Any:
        if not np.all(as_numbers(value) >= 0):
            raise SimulationError(f"joint {self._joint.name!r}: {what} is at least 0, got {value!r}")
        return value
