"""Views of one body, spring or gear of a running simulation: names and NumPy values over the arrays beneath.

A view reads and writes the arrays of the simulation it belongs to; values may be set between steps. Of one world on the CPU it
keeps the memory of its own values: a number is read or written in less than a microsecond.
"""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np

from sharnir.core import summaries
from sharnir.core.reading import Reading
from sharnir.core.renamed import Former
from sharnir.core.spatial import cross, quat_conjugate, quat_rotate, unit_quat
from sharnir.errors import LARGEST_STATE, Bound, SimulationError
from sharnir.model import assembly
from sharnir.model.joint_setting import place_mechanism
from sharnir.model.model import DYNAMIC, FIXED, KINEMATIC
from sharnir.runtime import parameters
from sharnir.runtime.arrays import memory
from sharnir.runtime.snapshots import chosen

# The Simulation a view belongs to; it stands a floor above, so that it is not named here.
Owner = Any


class BodyView(Bound):
    """One body of a running simulation; values may be read and set between steps. World axes."""

    __slots__ = ("_com", "_i", "_memory", "_motion", "_once", "_rows", "_sim", "_turns", "name")

    def __init__(self, sim: Owner, index: int, name: str) -> None:
        self._sim, self._i, self.name = sim, index, name
        self._motion = int(sim.model.bodies.motion.numpy()[index])
        self._take_centre()
        self._turns = bool(np.any(sim.model.bodies.inertia.numpy()[index, 0])) or self._motion != DYNAMIC
        self._rows: dict[str, np.ndarray] | None = None  # of one world: (3,) and (4,), and the same as memory
        if sim._on_cpu and sim.worlds == 1:
            fields = ("position", "rotation", "velocity", "spin", "acceleration")
            self._rows = {f: getattr(sim._moving, f)[index, 0] for f in fields}
            self._memory = {f: memory(row) for f, row in self._rows.items()}
            self._once = tuple(memory(getattr(sim._commands, f)[index, 0]) for f in ("force_once", "torque_once"))

    spin, centre = Former("angular_velocity"), Former("com_local")

    def __repr__(self) -> str:
        return summaries.body(self)

    def _take_centre(self) -> None:
        centre = self._sim.model.com[self._i]
        self._com = centre if np.any(centre) else None

    def _get(self, field: str) -> np.ndarray:
        """(worlds, …), a copy."""
        host = self._sim._moving if field in ("position", "rotation") else self._sim._settled()
        return np.array(getattr(host, field)[self._i], float)

    def _value(self, field: str) -> Any:
        """The same, as the user sees it."""
        if self._rows is None:
            return (self._get(field)[0] if self._sim.worlds == 1 else self._get(field)).view(Reading)
        return self._rows[field].astype(float).view(Reading)

    def _checked(self, value: Any, what: str, size: int = 3, state: bool = True) -> np.ndarray:
        return np.asarray(self._sim._in(value, size, f"body {self.name!r}", what, state))

    @property
    def contact_force(self) -> np.ndarray:
        """(3,) N, world axes: of all that touches it, mean over the last step; zero where nothing touches anything."""
        touching = self._sim._contact_monitor
        if touching is None:
            return np.zeros(3) if self._sim.worlds == 1 else np.zeros((self._sim.worlds, 3))
        return np.asarray(touching.force(self.name))

    @property
    def touching(self) -> tuple[str, ...]:
        """Names of the bodies that touch it; of several worlds, in the first."""
        touching = self._sim._contact_monitor
        return () if touching is None else tuple(touching.partners(self.name))

    @property
    def asleep(self) -> Any:
        """Whether it sleeps, see `Simulation(sleep=)`; (worlds,) of several worlds."""
        values = self._sim._moving.asleep[self._i] != 0
        return bool(values[0]) if self._sim.worlds == 1 else values

    def _movable(self, what: str) -> None:
        if self._motion == FIXED:
            raise SimulationError(f"body {self.name!r} is fixed: its {what} cannot be set")

    def _put(self, field: str, value: np.ndarray) -> None:
        """Write to an array of the state; the guard starts from it."""
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
        """(3,) origin of the body's frame, m; settable, of this body alone (`place` takes along what joints hold to it)."""
        if self._com is None:
            return self._value("position")
        return self._sim._out(self._place())

    @position.setter
    def position(self, value: Any) -> None:
        self._movable("position")
        self._sim._settled()
        self._put_place(self._checked(value, "position (m)"))

    def place(
        self,
        position: Any = None,
        rotation: Any = None,
        *,
        velocity: Any = None,
        angular_velocity: Any = None,
        worlds: Any = None,
    ) -> None:
        """Bring the body to a pose, and all bodies that joints hold to it along with it, as one rigid whole; what is not given
        stays, and coordinates and speeds of the joints stay. A robot with a free base is put down so. (To set `position` moves
        this body alone, and opens its joints.)

        Args:
            position: (3,) or (worlds, 3), of the body's frame, m. rotation: (4,) or (worlds, 4), unit quaternion (x, y, z, w).
            velocity: of its centre of mass, m/s. angular_velocity: rad/s.
            worlds: a mask (worlds,) or indices of those where it is placed, all if None; the others are not touched.
        """
        self._movable("place")
        sim, who = self._sim, f"body {self.name!r}"
        if self._motion != DYNAMIC:
            raise SimulationError(f"{who} moves as prescribed: set its position and rotation")
        at = chosen(sim, np.arange(sim.worlds) if worlds is None else worlds)
        sim._settled()
        frame, turn = self._place(), self._get("rotation")
        if position is not None:
            frame = self._checked(position, "position (m)")
        if rotation is not None:
            turn = unit_quat(self._checked(rotation, "rotation", 4), who, SimulationError)
        com = np.zeros(3) if self._com is None else self._com
        centre = frame + quat_rotate(turn, np.broadcast_to(com, frame.shape))
        v = None if velocity is None else self._checked(velocity, "velocity (m/s)")
        s = None if angular_velocity is None else self._checked(angular_velocity, "angular_velocity (rad/s)")
        if s is not None and np.any(s):
            self._solid("angular velocity")
        if sim._ropes:
            rope = next(iter(sim._ropes))
            raise SimulationError(f"{who} cannot be placed: rope {rope!r} would not follow")
        place_mechanism(sim.model, sim.state, self._i, (centre, turn), (v, s), sim._commands.enabled != 0, at)
        sim.changed()

    @property
    def com(self) -> Any:
        """(3,) centre of mass in world axes, m."""
        return self._value("position")

    @property
    def com_local(self) -> np.ndarray:
        """(3,) centre of mass in the body's frame, m; settable, for all worlds: the frame and what is fixed to it stay."""
        return np.array(self._sim.model.com[self._i], float)

    @com_local.setter
    def com_local(self, value: Any) -> None:
        parameters.set_centre(self._sim, self._i, f"body {self.name!r}", value)

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
        if self._rows is None:
            return False
        try:
            x, y, z = value
            if not (
                -LARGEST_STATE < x < LARGEST_STATE and -LARGEST_STATE < y < LARGEST_STATE and -LARGEST_STATE < z < LARGEST_STATE
            ):
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
    def angular_velocity(self) -> Any:
        """(3,) angular velocity, rad/s."""
        if not self._sim._at_pose:
            self._sim._settled()
        return self._value("spin")

    @angular_velocity.setter
    def angular_velocity(self, value: Any) -> None:
        self._movable("angular velocity")
        spin = self._checked(value, "angular_velocity (rad/s)")
        if np.any(spin):
            self._solid("angular velocity")
        self._begin_setting()
        self._put_spin(spin)
        self._note_drive()

    @property
    def acceleration(self) -> Any:
        """(3,) acceleration of the centre of mass, mean over the last step, m/s²."""
        if not self._sim._at_pose:
            self._sim._settled()
        return self._value("acceleration")

    @property
    def mass(self) -> Any:
        """kg; settable, for all worlds or one a world: the inertia goes with it, the speeds stay."""
        return parameters.read(self._sim, self._sim.model.bodies.mass, self._i)

    @mass.setter
    def mass(self, value: Any) -> None:
        parameters.set_mass(self._sim, self._i, f"body {self.name!r}", value)

    @property
    def inertia(self) -> Any:
        """(3, 3) kg·m² about the centre of mass, body axes; settable (or its diagonal), for all worlds or one a world."""
        return parameters.read(self._sim, self._sim.model.bodies.inertia, self._i)

    @inertia.setter
    def inertia(self, value: Any) -> None:
        parameters.set_inertia(self._sim, self._i, f"body {self.name!r}", value)

    def apply_force(self, force: Any, at: Any = None, once: bool = True) -> None:
        """Act with a force (3,) N in the next step, or (`once=False`) until set anew; `at` a world point (m), else the com."""
        if once and self._rows is not None and self._motion == DYNAMIC and self._quick_push(force, at):
            self._sim._forced = True
            return
        f = self._checked(force, "force (N)", state=False)
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
        self._act("torque", self._checked(torque, "torque (N·m)", state=False), once)

    def _act(self, what: str, value: np.ndarray, once: bool) -> None:
        if self._motion != DYNAMIC:
            raise SimulationError(f"body {self.name!r} is not dynamic: a {what} cannot move it")
        if what == "torque" and np.any(value):
            self._solid("torque")
        name = f"{what}_once" if once else what
        with np.errstate(over="ignore"):  # the step reports a sum that is not finite
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


def _of_spring(name: str, doc: str) -> Any:
    """A number of a spring, as a property."""

    def get(self: SpringView) -> Any:
        return parameters.read(self._sim, getattr(self._sim.model.springs, name), self._i)

    def put(self: SpringView, value: Any) -> None:
        given = parameters.checked(self._sim, value, f"spring {self.name!r}", name, least=0.0)
        parameters.write(self._sim, self._sim.model.springs, name, self._i, given)

    return property(get, put, doc=doc)


class SpringView(Bound):
    """One point-to-point spring of a running simulation."""

    __slots__ = ("_i", "_sim", "name")

    def __init__(self, sim: Owner, index: int, name: str) -> None:
        self._sim, self._i, self.name = sim, index, name

    def __repr__(self) -> str:
        return f"<spring {self.name!r}>"

    stiffness = _of_spring("stiffness", "N/m; settable, for all worlds or one a world.")
    rest = _of_spring("rest", "Length without force, m; settable, for all worlds or one a world.")
    damping = _of_spring("damping", "N·s/m along the line; settable, for all worlds or one a world.")

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


class GearView(Bound):
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
