"""Wheeled vehicles as data: a hull, axles of wheels, who steers, drives and brakes; and a trailer that is pulled."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sharnir.core.spatial import quat_rotate
from sharnir.errors import SceneError, SimulationError, number
from sharnir.geometry.shapes import Box
from sharnir.machine_models.wheels import Steering, Suspension, Wheel, ackermann, positive
from sharnir.model.actuators import Cardan, DCMotor, Friction, Servo
from sharnir.model.descriptions import vector
from sharnir.model.joint_types import Spherical
from sharnir.runtime.raycast_wheels import wheel
from sharnir.scene.scene import Scene

WHEEL_SIDES = (("left", 1.0), ("right", -1.0))


@dataclass(frozen=True)
class Axle:
    """Two wheels across the vehicle, "name left" and "name right".

    Args:
        x: m, ahead of the middle of the hull.
        wheel: what is on it. track: m, between the middles of its wheels.
        suspension, steering: of each wheel; None: none.
        drive: of each hinge; None: it rolls freely.
    """

    x: float
    wheel: Wheel
    track: float
    suspension: Suspension | None = None
    steering: Steering | None = None
    drive: Servo | DCMotor | None = None


@dataclass(frozen=True)
class Vehicle:
    """A wheeled vehicle, ahead along x.

    Args:
        name: of the hull's body; wheels are "name axle side".
        mass: kg, of the hull. size: m, of its box. centre: m, height of the hull's centre of mass above the ground.
        ahead: m, of the centre of mass before the middle of the hull.
        axles: by name, from the front.
        clearance: m, of the hull above the ground.
    """

    name: str
    mass: float
    size: tuple[float, float, float]
    centre: float
    axles: dict[str, Axle]
    ahead: float = 0.0
    clearance: float = 0.25
    collide: bool = True
    color: Any = None
    inertia: tuple[float, float, float] | None = None

    def __post_init__(self) -> None:
        who = f"vehicle {self.name!r}"
        if not self.axles:
            raise SceneError(f"{who}: at least one axle, got none")
        positive(who, "mass (kg)", self.mass)
        positive(who, "centre (m)", self.centre)
        for key, axle in self.axles.items():
            if not isinstance(axle, Axle):
                raise SceneError(f"{who}: axles are Axle(x, wheel, track) by name, got {key!r}: {axle!r}")

    @property
    def wheelbase(self) -> float:
        """m, from the last axle to the first."""
        places = [axle.x for axle in self.axles.values()]
        return max(places) - min(places)

    def hinges(self) -> list[str]:
        """Names of the hinges of all wheels, or of cast ones themselves, axle by axle, left before right."""
        return [f"{self.name} {key} {side}" for key in self.axles for side, _ in WHEEL_SIDES]

    def add(
        self, scene: Scene, position: Sequence[float] = (0.0, 0.0, 0.0), heading: float = 0.0, *, speed: float = 0.0,
        brake: float | Friction = 0.0,
    ) -> str:  # fmt: skip
        """Put it on ground of the height of `position` (m, world; below the middle of the hull), heading (rad) from x to y.

        Args:
            speed: m/s ahead at the start. brake: N·m, of every wheel at the start.
        """
        who = f"vehicle {self.name!r}"
        place = vector(position, who, "position (m)")
        angle = 0.5 * number(who, "heading (rad)", heading)
        turn = np.array([0.0, 0.0, math.sin(angle), math.cos(angle)])

        def at(*p: float) -> list[float]:
            return [float(v) for v in place + quat_rotate(turn, np.array(p))]

        moves = quat_rotate(turn, np.array([number(who, "speed (m/s)", speed), 0.0, 0.0])).tolist()
        middle = self.clearance + 0.5 * self.size[2]
        box = Box(*self.size)
        hull = scene.add_body(
            self.name, box, mass=self.mass, com=(self.ahead, 0.0, self.centre - middle), inertia=self.inertia,
            position=at(0.0, 0.0, middle), rotation=turn.tolist(), velocity=moves, collide=None if self.collide else False,
            color=self.color,
        )  # fmt: skip
        left, up = quat_rotate(turn, np.array([0.0, 1.0, 0.0])).tolist(), (0.0, 0.0, 1.0)
        for key, axle in self.axles.items():
            for side, sign in WHEEL_SIDES:
                axle.wheel.add(
                    scene, f"{self.name} {key} {side}", hull, at(axle.x, 0.5 * sign * axle.track, axle.wheel.radius),
                    axis=left, up=up, suspension=axle.suspension, steering=axle.steering, drive=axle.drive, brake=brake,
                    velocity=moves,
                )  # fmt: skip
        return hull

    # ---- while it runs ----

    def steer(self, sim: Any, angle: Any) -> None:
        """Turn the steered wheels about one point (Ackermann): `angle` (rad, to the left positive) of the axle's middle.

        The point lies on the line of the axles that do not steer. With several worlds, one angle or one a world.
        """
        fixed = [axle.x for axle in self.axles.values() if axle.steering is None]
        if len(fixed) == len(self.axles):
            raise SimulationError(f"vehicle {self.name!r}: no axle steers")
        pole = sum(fixed) / len(fixed) if fixed else 0.0
        first = next(axle for axle in self.axles.values() if axle.steering is not None)
        for one in np.ravel(angle):
            number(f"vehicle {self.name!r}", "angle (rad)", one.item())
        curve = np.tan(angle) / abs(first.x - pole)
        for key, axle in self.axles.items():
            if axle.steering is not None and axle.x != pole:
                turns = ackermann(np.arctan(curve * (axle.x - pole)), abs(axle.x - pole), axle.track)
                for (side, _), turned in zip(WHEEL_SIDES, turns, strict=True):
                    view = sim.joint(f"{self.name} {key} {side} strut")
                    most = axle.steering.limit
                    turned = np.clip(turned, -most, most)
                    view.drive.position = turned if axle.suspension is None else np.stack((0.0 * turned, turned), axis=-1)

    def brake(self, sim: Any, torque: float) -> None:
        """Brake all wheels by a torque (N·m), which holds them at rest: the parking brake."""
        for key, axle in self.axles.items():
            for side, _ in WHEEL_SIDES:
                name = f"{self.name} {key} {side}"
                if axle.wheel.raycast:
                    wheel(sim, name).brake = torque
                else:
                    sim.joint(name).friction = torque

    def drive(self, sim: Any, torque: float = 0.0, speed: float | None = None) -> None:
        """Torque (N·m) of each driven wheel, or the speed (m/s) that their servos hold."""
        for key, axle in self.axles.items():
            if isinstance(axle.drive, Servo):
                for side, _ in WHEEL_SIDES:
                    name = f"{self.name} {key} {side}"
                    view = wheel(sim, name) if axle.wheel.raycast else sim.joint(name).drive
                    view.torque = torque
                    if speed is not None:
                        view.velocity = speed / axle.wheel.radius


@dataclass(frozen=True)
class Hitch:
    """A ball on the pulling vehicle, with limits of its three angles (rad): about x, y and z of the vehicle."""

    x: float = math.radians(18.0)
    y: float = math.radians(15.0)
    z: float = math.radians(18.0)

    def joint(self) -> Spherical:
        """The joint."""
        return Spherical(limit=Cardan(x=(-self.x, self.x), y=(-self.y, self.y), z=(-self.z, self.z)))
