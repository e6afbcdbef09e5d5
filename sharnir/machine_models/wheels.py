"""Wheels: a disc with a rounded edge on a hinge, its tire, what carries and steers it, and what shares a drive between two."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sharnir.collision.material import Material
from sharnir.core.misspellings import Checked
from sharnir.core.renamed import Former, former_arguments
from sharnir.core.spatial import direction_of, frame_from_axes, quat_conjugate, quat_rotate
from sharnir.errors import SceneError, as_numbers, is_positive, number
from sharnir.geometry.shapes import Cylinder
from sharnir.machine_models.treads import tire
from sharnir.model.actuators import DCMotor, Drive, Friction, Servo
from sharnir.model.descriptions import vector
from sharnir.model.joint_types import Cylindrical, Gear, Prismatic, Revolute
from sharnir.scene.scene import Scene


def positive(who: str, what: str, value: Any) -> float:
    """A positive finite number, or a SceneError."""
    if not is_positive(value):
        raise SceneError(f"{who}: {what} is a positive finite number, got {value!r}")
    return float(value)


def pair(who: str, what: str, value: Any) -> tuple[float, float]:
    """One positive number for both, or (along, across)."""
    both = value if isinstance(value, tuple | list) else (value, value)
    if len(both) != 2:
        raise SceneError(f"{who}: {what} is a number or (along, across), got {value!r}")
    return positive(who, what, both[0]), positive(who, what, both[1])


def where_given(who: str, of: Any, *names: str) -> None:
    """Numbers of at least 0, or None."""
    for name in names:
        if getattr(of, name) is not None:
            number(who, name, getattr(of, name), least=0.0)


@dataclass(frozen=True)
class Tire(Checked):
    """A tread that yields: rolling, its force is slip · stiffness; at rest it is a spring, so that a parked wheel stands.

    Args:
        slip: N a unit of slip (along) and N a radian of slip angle (across), one number or (along, across), of a wheel.
        relaxation: m, that the wheel rolls until its force has followed a new slip by 63 %.
        stiffness, damping: N/m and N·s/m, upright; rigid if None.
    """

    slip: float | tuple[float, float]
    relaxation: float = 0.3
    stiffness: float | None = None
    damping: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "slip", pair("Tire", "slip (N)", self.slip))
        positive("Tire", "relaxation (m)", self.relaxation)
        where_given("Tire", self, "stiffness", "damping")


Tyre = Tire
"""The British spelling."""


@dataclass(frozen=True)
class Suspension(Checked):
    """A wheel's strut: a slide with spring, damper and stops.

    Args:
        stiffness: N/m. damping: N·s/m.
        load: N, that the spring carries where the wheel is put.
        travel: m, (lower, upper) stops of the wheel's way, up being positive.
        mass: kg, of the carrier that slides and steers.
    """

    stiffness: float
    damping: float = 0.0
    load: float = 0.0
    travel: tuple[float, float] = (-0.1, 0.1)
    mass: float = 5.0

    def __post_init__(self) -> None:
        positive("Suspension", "stiffness (N/m)", self.stiffness)
        positive("Suspension", "mass (kg)", self.mass)
        for what in ("damping", "load"):
            number("Suspension", what, getattr(self, what), least=0.0)
        ends = as_numbers(self.travel)
        if ends.shape != (2,) or not ends[0] < ends[1]:
            raise SceneError(f"Suspension: travel is (lower, upper) in m, lower < upper, got {self.travel!r}")


@dataclass(frozen=True)
class Steering(Checked):
    """A servo that turns a wheel's carrier about the upright axis.

    Args:
        limit: rad, to either side. kp: N·m/rad. kd: N·m·s. max_force: N·m.
        mass: kg, of the carrier, where there is no suspension.
    """

    limit: float = 0.6
    kp: float = 5.0e4
    kd: float = 2.0e3
    max_force: float = math.inf
    mass: float = 5.0

    def __post_init__(self) -> None:
        positive("Steering", "mass (kg)", self.mass)
        positive("Steering", "limit (rad)", self.limit)
        positive("Steering", "kp (N·m/rad)", self.kp)
        number("Steering", "kd (N·m·s)", self.kd, least=0.0)
        number("Steering", "max_force (N·m)", self.max_force, least=0.0, endless=True)


@dataclass(frozen=True)
class Wheel(Checked):
    """A wheel: a body with a rounded edge on a hinge, with friction along and across its plane, rolling resistance and a tire.

    Args:
        radius, width: m. mass: kg.
        friction: coefficient against a ground of the same, or (along, across); the smaller of an omni or mecanum wheel is
            `roller_friction`.
        dynamic: coefficient along while it slides; `friction` if None.
        rolling: rolling resistance, force a load: 0.01 for a car on asphalt.
        tire: a tread that yields; rigid if None. tyre: the same by its British spelling, read as `tire`.
        rounding: m, radius of the edge; half the width if None, so that it touches a plane in one point.
        inertia: kg·m² about the axle; that of a solid disc if None.
        rollers: rad, from the axle to the axes of rollers on the rim, where they touch, about the outward normal: ±π/4 of a
            mecanum wheel, π/2 of an omni wheel; None: no rollers.
        roller_friction: coefficient across the rollers' axes, of their bearings, against a ground of `friction`.
        raycast: it has no body of its own (`Scene.add_raycast_wheel`), for speed: its mass belongs to the body it is on, its
            turning is one number, read and commanded by `sharnir.runtime.raycast_wheels.wheel`.
    """

    radius: float
    width: float
    mass: float
    friction: float | tuple[float, float] = 0.8
    dynamic: float | None = None
    rolling: float = 0.0
    tire: Tire | None = None
    rounding: float | None = None
    inertia: float | None = None
    rollers: float | None = None
    roller_friction: float = 0.01
    raycast: bool = False

    cast = Former("raycast")

    def __post_init__(self) -> None:
        who = "Wheel"
        for what in ("radius", "width", "mass"):
            positive(who, what, getattr(self, what))
        object.__setattr__(self, "friction", pair(who, "friction", self.friction))
        number(who, "rolling", self.rolling, least=0.0)
        where_given(who, self, "dynamic")
        positive(who, "roller_friction", self.roller_friction)
        if self.tire is not None and not isinstance(self.tire, Tire):
            raise SceneError(f"{who}: tire is a Tire(slip=…, relaxation=…) or None, got {self.tire!r}")
        if self.rollers is not None:
            number(who, "rollers (rad)", self.rollers)
        if self.inertia is not None:
            positive(who, "inertia (kg·m²)", self.inertia)
        if not isinstance(self.raycast, bool) or (self.raycast and self.rollers is not None):
            raise SceneError(f"{who}: raycast is True or False, and False of a wheel with rollers, got {self.raycast!r}")
        self.shape()

    def shape(self) -> Cylinder:
        """What touches: a disc along z."""
        most = min(self.radius, 0.5 * self.width)
        return Cylinder(self.radius, self.width, rounding=most if self.rounding is None else self.rounding)

    @property
    def spin_inertia(self) -> float:
        """kg·m² about the axle."""
        return 0.5 * self.mass * self.radius**2 if self.inertia is None else self.inertia

    @property
    def tyre(self) -> Tire | None:
        """`tire` by its British spelling."""
        return self.tire

    def material(self) -> Material:
        """Friction in the wheel's own axes: first along the axle, or along the rollers' axes, then in the plane of the wheel."""
        along, across = pair("Wheel", "friction", self.friction)
        turned = 0.0
        if self.rollers is not None:
            along, across, turned = self.roller_friction**2 / along, along, self.rollers  # √(μ_a μ_b) with a ground of `friction`
        first = None if self.dynamic is None else self.dynamic * across / along
        tread: dict[str, Any] = {}
        if self.tire is not None:
            slip = pair("Tire", "slip", self.tire.slip)
            tread = {
                "shear": (slip[1] / self.tire.relaxation, slip[0] / self.tire.relaxation),
                "relaxation": self.tire.relaxation,
                "stiffness": self.tire.stiffness,
                "damping": self.tire.damping,
            }
        return Material(
            friction=(across, along), direction=(0.0, 0.0, 1.0), dynamic=first, rolling=self.rolling * self.radius,
            turned=turned, **tread,
        )  # fmt: skip

    def add(
        self,
        scene: Scene,
        name: str,
        body: str,
        position: Sequence[float],
        *,
        axis: str | Sequence[float] = "y",
        up: str | Sequence[float] = "z",
        suspension: Suspension | None = None,
        steering: Steering | None = None,
        drive: Servo | DCMotor | None = None,
        brake: float | Friction = 0.0,
        velocity: Sequence[float] = (0.0, 0.0, 0.0),
        color: Any = "#2f3437",
    ) -> str:
        """Put the wheel on a body of the scene; returns the name of its hinge, which is `name`.

        The wheel's body is called "name wheel". With a suspension or a steering the hinge is on a carrier, "name carrier", which
        the joint "name strut" holds: its axes are z (along `up`) and rz, as far as there are.

        A raycast wheel has no hinge: its name is returned. Its suspension is a spring and damper at its point, along the normal
        of the ground, without stops; steering gives it a carrier, too.

        Args:
            position: of its middle, m, world. axis: of the axle, world; positive turns roll towards axis × up.
            drive: of the hinge. brake: N·m, which the hinge holds; settable as `sim.joint(name).friction`.
            velocity: m/s, at which it rolls at the start.
        """
        who = f"wheel {name!r}"
        axle, upright = direction_of(axis, f"{who}: axis"), direction_of(up, f"{who}: up")
        if abs(axle @ upright) > 0.9:
            raise SceneError(f"{who}: axis and up are across each other, got {axis!r} and {up!r}")
        place: Any = vector(position, who, "position (m)")
        across = 0.5 * self.spin_inertia + self.mass * self.width**2 / 12
        if self.inertia is None:
            across = self.mass * (3 * self.radius**2 + self.width**2) / 12
        moves: Any = vector(velocity, who, "velocity (m/s)")
        if self.raycast:
            return self._raycast(scene, name, body, (place, axle, upright), suspension, steering, (drive, brake, moves))
        holder = self._carry(scene, name, body, place, upright, suspension, steering, moves)
        rim = scene.add_body(
            f"{name} wheel", self.shape(), mass=self.mass, inertia=(across, across, self.spin_inertia), position=place,
            rotation=frame_from_axes(axle).tolist(), material=self.material(), color=color,
            visual=tire(self.radius, self.width), velocity=moves,
            angular_velocity=(axle * (moves @ np.cross(axle, upright) / self.radius)).tolist(),
        )  # fmt: skip
        if holder != body:
            scene.ignore(body, rim)
        return scene.add_joint(name, Revolute(axle.tolist(), drive=drive, friction=brake), holder, rim, position=place)

    def _raycast(
        self, scene: Scene, name: str, body: str, place: tuple[Any, np.ndarray, np.ndarray], suspension: Suspension | None,
        steering: Steering | None, runs: tuple[Any, Any, Any],
    ) -> str:  # fmt: skip
        """Put it on a body as a point of that body; the spring's load is carried where the wheel is put."""
        (at, axle, up), (drive, brake, moves) = place, runs
        holder = scene.bodies[self._carry(scene, name, body, at, up, None, steering, moves)]
        back = quat_conjugate(holder.rotation)
        material, low = self.material(), 0.0
        if suspension is not None:
            soft = 1.0 / suspension.stiffness + (0.0 if not material.stiffness else 1.0 / material.stiffness)
            material = replace(material, stiffness=1.0 / soft, damping=suspension.damping)
            low = suspension.load * soft
        along = quat_rotate(back, axle)
        local = quat_rotate(back, at - low * up - holder.position)
        shape = replace(self.shape(), position=tuple(local), rotation=tuple(frame_from_axes(along)))
        return scene.add_raycast_wheel(
            name, holder.name, shape, axis=along.tolist(), radius=self.radius, inertia=self.spin_inertia, drive=drive,
            brake=brake, material=replace(material, direction=tuple(along.tolist()), rolling=0.0), rolling=self.rolling,
            speed=float(moves @ np.cross(axle, up)) / self.radius,
        )  # fmt: skip

    def _carry(
        self, scene: Scene, name: str, body: str, place: Any, up: np.ndarray, suspension: Suspension | None,
        steering: Steering | None, velocity: Any,
    ) -> str:  # fmt: skip
        """The body that the hinge is on."""
        if suspension is None and steering is None:
            return body
        mass = suspension.mass if suspension is not None else steering.mass if steering is not None else 0.0
        size = 0.4 * mass * (0.5 * self.radius) ** 2
        carrier = scene.add_body(f"{name} carrier", mass=mass, inertia=(size,) * 3, position=place, velocity=velocity)
        laws: dict[str, Any] = {}
        if suspension is not None:
            rest = -suspension.load / suspension.stiffness
            laws = {"spring": {"z": (suspension.stiffness, rest)}, "damping": {"z": suspension.damping}}
            laws["limit"] = {"z": suspension.travel}
        if steering is not None:
            laws.setdefault("limit", {})["rz"] = (-steering.limit, steering.limit)
            laws["drive"] = {"rz": Servo(kp=steering.kp, kd=steering.kd, max_force=steering.max_force)}
        kinds = {(True, True): Cylindrical, (True, False): Prismatic, (False, True): Revolute}
        kind = kinds[suspension is not None, steering is not None]
        turn = frame_from_axes(up).tolist()
        scene.add_joint(f"{name} strut", kind("z", **laws), body, carrier, position=place, rotation=turn)
        return carrier


Wheel.__init__ = former_arguments(cast="raycast", tyre="tire")(Wheel.__init__)  # type: ignore[method-assign]


def omni(wheel: Wheel) -> Wheel:
    """The wheel with rollers that let it move freely along its axle."""
    return replace(wheel, rollers=0.5 * math.pi)


def mecanum(wheel: Wheel, hand: int) -> Wheel:
    """The wheel with rollers at 45°, of the left (1) or right (−1) hand."""
    if hand not in (1, -1):
        raise SceneError(f"mecanum: hand is 1 or -1, got {hand!r}")
    return replace(wheel, rollers=hand * 0.25 * math.pi)


def ackermann(angle: Any, wheelbase: float, track: float) -> tuple[Any, Any]:
    """Angles (left, right; rad) of two steered wheels that turn about one point with the middle of the axle at `angle` (rad).

    Positive to the left; wheelbase and track in m. Of an array of angles, arrays.
    """
    for one in np.ravel(angle):
        number("ackermann", "angle (rad)", one.item(), least=-1.5, most=1.5)
    length, half = positive("ackermann", "wheelbase (m)", wheelbase), 0.5 * positive("ackermann", "track (m)", track)
    way, ahead, aside = length * np.sin(angle), length * np.cos(angle), half * np.sin(angle)
    return np.arctan2(way, ahead - aside), np.arctan2(way, ahead + aside)


def add_differential(
    scene: Scene, name: str, body: str, wheel: Wheel, left: Sequence[float], right: Sequence[float], *,
    drive: Drive | None = None, ratio: float = 1.0, mass: float = 10.0, brake: float | Friction = 0.0,
) -> tuple[str, str]:  # fmt: skip
    """Two wheels on one axle whose mean turns with the joint `name`, which the drive acts on; returns the names of their hinges.

    The case turns in the body, the wheels turn against each other in the case: ω_left + ω_right = 2 ω_case, a gear row, whatever
    each of them does; `ratio` of their turns in the case is −1 for an open differential. Their hinges, "name left" and "name
    right", tell turns in the case.

    Args:
        left, right: middles of the wheels, m, world; the axle points from right to left.
        mass: kg, of the case. brake: N·m, between each wheel and the case.
    """
    who = f"differential {name!r}"
    if not number(who, "ratio", ratio) > 0:
        raise SceneError(f"{who}: ratio is above 0, got {ratio!r}")
    a: Any = vector(left, who, "left (m)")
    b: Any = vector(right, who, "right (m)")
    axle = direction_of(a - b, f"{who}: left − right (m)")
    size = 0.4 * mass * (0.5 * wheel.radius) ** 2
    case = scene.add_body(f"{name} case", mass=positive(who, "mass (kg)", mass), inertia=(size,) * 3, position=0.5 * (a + b))
    scene.add_joint(name, Revolute(axle.tolist(), drive=drive), body, case, position=0.5 * (a + b))
    hinges = []
    for side, place in (("left", a), ("right", b)):
        hinges.append(wheel.add(scene, f"{name} {side}", case, place, axis=axle.tolist(), up=_across(axle), brake=brake))
        scene.ignore(body, f"{name} {side} wheel")
    scene.add_joint(f"{name} gear", Gear(hinges[0], hinges[1], -ratio))
    return hinges[0], hinges[1]


def _across(axle: np.ndarray) -> Any:
    """Some direction across the axle."""
    return np.cross(axle, np.eye(3)[int(np.argmin(np.abs(axle)))])
