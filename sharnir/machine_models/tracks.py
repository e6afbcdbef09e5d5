"""Tracks: one belt around wheels, whose one coordinate is the turning of its sprocket (theory: wheels and tracks).

A track has no shoes. What touches the ground are its wheels and the runs of the belt between them, as shapes of the body that
carries them; their surface moves at s' = R φ', and every contact acts on that body's point and on the sprocket's hinge, exactly.
Belt and wheels are the sprocket's inertia, so drive, brake and friction are those of a joint axis.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sharnir.collision.material import Material
from sharnir.core.misspellings import Checked
from sharnir.core.spatial import frame_from_axes, quat_multiply, quat_rotate
from sharnir.errors import SceneError, number
from sharnir.geometry.shapes import Box, Cylinder, Shape
from sharnir.machine_models.wheels import Suspension, positive, where_given
from sharnir.model.actuators import DCMotor, Friction, Servo
from sharnir.model.descriptions import vector
from sharnir.model.joint_types import Prismatic, Revolute
from sharnir.scene.scene import Scene

SAG = 8.0e-3  # m: runs lie so far inside the line over two wheels, so that on even ground wheels alone touch


@dataclass(frozen=True)
class Track(Checked):
    """A belt around wheels in one plane, x ahead and z up in the frame it is put in.

    Args:
        wheels: (x, z, radius) of each, m, in the order in which the belt passes them, the lower run backwards or forwards; where
            there is one, it is a wheel.
        width: m. mass: kg, of the belt.
        sprocket: which wheel drives it.
        wheel_mass: kg, of all wheels together; they turn with the belt.
        friction: coefficient against a ground of the same, or (along, across). dynamic: while it slides along; None: the same.
        tension: N, of the belt at rest.
        rounding: m, of the edges of wheels.
        stiffness, damping: N/m and N·s/m, of the belt's pads where it touches, a point; rigid if None. With it points share the
            load as the ground's shape says, without it as the solver finds it.
        suspension: of each wheel, which then stands on a strut of its own, joint "name strut 0", …; its runs do not touch. None:
            wheels and runs are fast to the body.
    """

    wheels: Sequence[tuple[float, float, float]]
    width: float
    mass: float
    sprocket: int = 0
    wheel_mass: float = 0.0
    friction: float | tuple[float, float] = 0.8
    dynamic: float | None = None
    tension: float = 0.0
    rounding: float = 0.01
    stiffness: float | None = None
    damping: float | None = None
    suspension: Suspension | None = None

    def __post_init__(self) -> None:
        who = "Track"
        if not isinstance(self.wheels, Sequence) or len(self.wheels) < 1:
            raise SceneError(f"{who}: wheels are at least one (x, z, radius), got {self.wheels!r}")
        for k, wheel in enumerate(self.wheels):
            if not isinstance(wheel, Sequence) or len(wheel) != 3:
                raise SceneError(f"{who}: wheels are (x, z, radius), m, got {wheel!r}")
            for value in wheel[:2]:
                number(who, f"place of wheel {k} (m)", value)
            positive(who, f"radius of wheel {k} (m)", wheel[2])
        for what in ("width", "mass"):
            positive(who, what, getattr(self, what))
        for what in ("wheel_mass", "tension", "rounding"):
            number(who, what, getattr(self, what), least=0.0)
        for value in self.friction if isinstance(self.friction, tuple | list) else (self.friction,):
            number(who, "friction", value, least=0.0)
        where_given(who, self, "dynamic", "stiffness", "damping")
        if self.suspension is not None and not isinstance(self.suspension, Suspension):
            raise SceneError(f"{who}: suspension is a Suspension(stiffness, …) or None, got {self.suspension!r}")
        if not isinstance(self.sprocket, int) or not -len(self.wheels) <= self.sprocket < len(self.wheels):
            raise SceneError(f"{who}: sprocket is the number of one of {len(self.wheels)} wheels, got {self.sprocket!r}")

    @property
    def radius(self) -> float:
        """m, of the sprocket: the belt's way a radian."""
        return float(self.wheels[self.sprocket][2])

    @property
    def inertia(self) -> float:
        """kg·m² about the sprocket's axle: belt and wheels, which turn with it."""
        return (self.mass + 0.5 * self.wheel_mass) * self.radius**2

    def material(self, across: Sequence[float] = (0.0, 1.0, 0.0)) -> Material:
        """How it rubs: along the belt, and across it, which is this direction in the axes of the body."""
        pair = self.friction if isinstance(self.friction, tuple | list) else (self.friction, self.friction)
        return Material(
            friction=(float(pair[1]), float(pair[0])), direction=across, dynamic=self._dynamic(pair),
            stiffness=self.stiffness, damping=self.damping,
        )  # fmt: skip

    def _dynamic(self, pair: Sequence[float]) -> float | None:
        return None if self.dynamic is None else self.dynamic * pair[1] / pair[0]

    def shapes(self, place: np.ndarray, turn: np.ndarray) -> list[Shape]:
        """Wheels, and a box for each run between two that the belt passes one after the other, in the frame of the body."""
        out: list[Shape] = []
        across = quat_multiply(turn, frame_from_axes(np.array([0.0, 1.0, 0.0])))
        for x, z, r in self.wheels:
            edge = min(self.rounding, 0.5 * self.width, r)
            at = place + quat_rotate(turn, np.array([x, 0.0, z]))
            out.append(Cylinder(r, self.width, rounding=edge, position=tuple(at), rotation=tuple(across)))
        count = len(self.wheels)
        for k in range(count if count > 2 else count - 1):
            out += self._runs(self.wheels[k], self.wheels[(k + 1) % count], place, turn)
        return out

    def _runs(
        self, a: Sequence[float], b: Sequence[float], place: np.ndarray, turn: np.ndarray
    ) -> list[Shape]:  # fmt: skip
        """The box between two wheels: as high as the smaller of the two, along the line between them."""
        way = np.array([b[0] - a[0], b[1] - a[1]])
        length = float(np.linalg.norm(way))
        slope = -math.atan2(way[1], way[0])
        tilt = np.array([0.0, math.sin(0.5 * slope), 0.0, math.cos(0.5 * slope)])
        out: list[Shape] = []
        lean = math.asin(min(1.0, abs(b[2] - a[2]) / length)) if length > 0 else 0.0
        for side in (1.0, -1.0) if lean > 1e-9 else (0.0,):
            # of equal wheels one box is both runs; else a box each, along the tangent
            angle = side * lean * math.copysign(1.0, a[2] - b[2])
            q = quat_multiply(tilt, np.array([0.0, math.sin(0.5 * angle), 0.0, math.cos(0.5 * angle)]))
            low = min(a[2], b[2]) if side else a[2]
            middle = np.array([0.5 * (a[0] + b[0]), 0.0, 0.5 * (a[1] + b[1])])
            high = 2.0 * (a[2] - SAG)
            if side:
                reach = 0.5 * (a[2] + b[2])
                high = low
                middle = middle + quat_rotate(q, np.array([0.0, 0.0, side * (reach - 0.5 * high - SAG)]))
            at, q = place + quat_rotate(turn, middle), quat_multiply(turn, q)
            out.append(Box(length * math.cos(lean), self.width, high, position=tuple(at), rotation=tuple(q)))
        return out

    def add(
        self,
        scene: Scene,
        name: str,
        body: str,
        position: Sequence[float] = (0.0, 0.0, 0.0),
        rotation: Sequence[float] = (0.0, 0.0, 0.0, 1.0),
        *,
        drive: Servo | DCMotor | None = None,
        brake: float | Friction = 0.0,
        material: Material | None = None,
    ) -> str:
        """Put the track on a body of the scene; returns the name of the sprocket's hinge, which is `name`.

        The body that turns with the belt, and has its mass, is "name sprocket"; it stands in the middle of the wheels.

        Args:
            position, rotation: of the track's frame in the frame of the body. material: of the belt; `material()` if None.
            drive: of the hinge, positive ahead. brake: N·m, settable as `sim.joint(name).friction`.
        """
        who = f"track {name!r}"
        if body not in scene.bodies:
            raise SceneError(f"{who}: {body!r} is not a body of the scene; available: {', '.join(map(repr, scene.bodies))}")
        owner = scene.bodies[body]
        place, turn = vector(position, who, "position (m)"), np.asarray(rotation, float)
        x, z, _ = np.mean(np.asarray(self.wheels, float), axis=0)  # its turning is felt alike wherever it is
        local = place + quat_rotate(turn, np.array([x, 0.0, z]))
        world = owner.position + quat_rotate(owner.rotation, local)
        axle = quat_rotate(owner.rotation, quat_rotate(turn, np.array([0.0, 1.0, 0.0])))
        size = self.inertia
        sprocket = scene.add_body(
            f"{name} sprocket", mass=self.mass + self.wheel_mass, inertia=(size, size, size), position=world,
            rotation=frame_from_axes(axle).tolist(), velocity=owner.velocity.tolist(), collide=False,
        )  # fmt: skip
        scene.add_joint(name, Revolute(axle.tolist(), drive=drive, friction=brake), body, sprocket, position=world)
        given = self.material(quat_rotate(turn, np.array([0.0, 1.0, 0.0])).tolist()) if material is None else material
        if self.suspension is None:
            scene.add_belt(name, body, self.shapes(place, turn), radius=self.radius, material=given)
        else:
            self._spring(scene, name, body, place, turn, self.suspension, material)
        return name

    def _spring(
        self, scene: Scene, name: str, body: str, place: np.ndarray, turn: np.ndarray, strut: Suspension,
        material: Material | None,
    ) -> None:  # fmt: skip
        """Wheels on struts along the track's z, each with the belt around it."""
        owner = scene.bodies[body]
        stand = quat_multiply(owner.rotation, turn).tolist()
        across = tuple(frame_from_axes(np.array([0.0, 1.0, 0.0])))
        size = 0.4 * strut.mass * 0.01
        carriers: list[str] = []
        laws: dict[str, Any] = {"spring": (strut.stiffness, -strut.load / strut.stiffness), "damping": strut.damping}
        for k, (x, z, r) in enumerate(self.wheels):
            at: Any = owner.position + quat_rotate(owner.rotation, place + quat_rotate(turn, np.array([x, 0.0, z])))
            carrier = scene.add_body(
                f"{name} carrier {k}", mass=strut.mass, inertia=(size,) * 3, position=at, rotation=stand,
                velocity=owner.velocity.tolist(),
            )  # fmt: skip
            slide = Prismatic("z", limit=strut.travel, **laws)
            scene.add_joint(f"{name} strut {k}", slide, body, carrier, position=at, rotation=stand)
            wheel = Cylinder(r, self.width, rounding=min(self.rounding, 0.5 * self.width, r), rotation=across)
            given = self.material() if material is None else material
            scene.add_belt(name, carrier, wheel, radius=self.radius, material=given)
            for other in carriers:
                scene.ignore(other, carrier)
            carriers.append(carrier)

    def traction(self, sim: Any, name: str) -> float:
        """N, by which the ground pushes the belt ahead in the last step."""
        hinge = sim.model.joint_names[name]
        sprocket = sim.model.children[hinge]
        data, total = sim.solver.collider.data.contacts, 0.0
        for i in range(int(data.count.numpy()[0])):
            if data.belt_body.numpy()[i, 0] == sprocket:
                total += float(data.impulse.numpy()[i, 0] @ data.belt_pull.numpy()[i, 0])
        return -total / (float(sim.dt) * self.radius)

    def tensions(self, sim: Any, name: str) -> tuple[float, float]:
        """N, of the belt before and behind the sprocket as it drives ahead: at rest both are `tension`.

        Their difference is what the belt carries to the ground; their mean is kept, and the slack side pulls no less than 0.
        """
        pull = self.traction(sim, name)
        return max(self.tension + 0.5 * pull, pull, 0.0), max(self.tension - 0.5 * pull, -pull, 0.0)
