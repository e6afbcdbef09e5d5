"""KRT100-MP: a small wheeled robot with four motors, steered front wheels, and a trailer on a ball hitch or on a rope."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sharnir.core.spatial import quat_rotate
from sharnir.errors import SceneError, number
from sharnir.geometry.shapes import Box, Compound, Sphere
from sharnir.machine_models.inputs import Input
from sharnir.machine_models.vehicles import Axle, Hitch, Vehicle
from sharnir.machine_models.wheels import Steering, Tire, Wheel
from sharnir.model.actuators import DCMotor
from sharnir.model.descriptions import vector
from sharnir.model.joint_types import Spherical
from sharnir.scene.scene import Scene

KRT_WHEEL = Wheel(0.16, 0.10, 4.0, friction=0.9, rolling=0.015, tire=Tire((6e3, 5e3), 0.12, 4e4, 400.0))
KRT_MOTOR = DCMotor(resistance=0.5, torque_constant=0.05, gear_ratio=30.0, rotor_inertia=2e-5, no_load_friction=0.01)
VOLTS, BRAKE_FORCE, STEER, WHEEL_STEER = 24.0, 60.0, 0.45, 0.6  # V, N·m a wheel, rad of the middle, rad of a wheel


def vehicle(name: str = "krt100") -> Vehicle:
    """The robot as data: 100 kg, wheelbase 0.7 m, track 0.6 m, soft tires, a motor of 24 V in every wheel (30 : 1).

    No figures of its maker are public that we know of; these are chosen for a robot of that class: 2.5 m/s on the level without
    load, 70 N·m a wheel from standstill, centre of mass 0.28 m high.
    """
    steering = Steering(limit=WHEEL_STEER, kp=2e3, kd=60.0, mass=3.0)
    axles = {
        "front": Axle(0.35, KRT_WHEEL, 0.6, steering=steering, drive=KRT_MOTOR),
        "rear": Axle(-0.35, KRT_WHEEL, 0.6, drive=KRT_MOTOR),
    }
    return Vehicle(name, 78.0, (1.0, 0.45, 0.2), 0.28, axles, clearance=0.18, color="#f2b134")


@dataclass(frozen=True)
class Krt100:
    """The robot and, behind it, its trailer: on a ball hitch, on a rope, or none.

    Args:
        name: of the hull. vehicle: the robot as data.
        trailer: "hitch", "rope" or None.
        hitch: limits of the ball. rope: m, its length.
        load: kg, of the trailer's body.
    """

    name: str = "krt100"
    vehicle: Vehicle = field(default_factory=vehicle)
    trailer: str | None = "hitch"
    hitch: Hitch = field(default_factory=Hitch)
    rope: float = 1.2
    load: float = 40.0

    def __post_init__(self) -> None:
        if self.trailer not in ("hitch", "rope", None):
            raise SceneError(f"Krt100: trailer is 'hitch', 'rope' or None, got {self.trailer!r}")
        number("Krt100", "load (kg)", self.load, least=1.0)
        number("Krt100", "rope (m)", self.rope, least=0.2)

    def add(self, scene: Scene, position: Sequence[float] = (0.0, 0.0, 0.0), heading: float = 0.0, *, speed: float = 0.0) -> str:
        """Put it on ground of the height of `position` (m), heading (rad) from x to y, at a speed (m/s); returns its hull."""
        hull = self.vehicle.add(scene, position, heading, speed=speed)
        if self.trailer is not None:
            self._pull(scene, hull, vector(position, "Krt100", "position (m)"), float(heading), float(speed))
        return hull

    def _pull(self, scene: Scene, hull: str, place: np.ndarray, heading: float, speed: float) -> None:
        """The trailer: a box on two wheels with a drawbar; on the rope, a ball that rolls carries the drawbar."""
        turn: Any = np.array([0.0, 0.0, math.sin(0.5 * heading), math.cos(0.5 * heading)])
        ball, tip = -0.6, -0.6 if self.trailer == "hitch" else -0.55 - self.rope
        high = 0.25

        def at(*p: float) -> Any:
            return place + quat_rotate(turn, np.array(p))

        moves: Any = quat_rotate(turn, np.array([speed, 0.0, 0.0]))
        shape = Compound(Box(0.7, 0.45, 0.25, position=(0, 0, 0.1)), Box(0.5, 0.05, 0.05, position=(0.55, 0, 0)))
        body = scene.add_body(
            f"{self.name} trailer", shape, mass=self.load, com=(0.08, 0.0, 0.1), inertia=self.load * np.array([0.03, 0.06, 0.07]),
            position=at(tip - 0.8, 0, high), rotation=turn, velocity=moves, color="#7a8b99",
        )  # fmt: skip
        left = quat_rotate(turn, np.array([0.0, 1.0, 0.0])).tolist()
        for side, y in (("left", 0.3), ("right", -0.3)):
            KRT_WHEEL.add(
                scene, f"{self.name} trailer {side}", body, at(tip - 0.85, y, KRT_WHEEL.radius), axis=left,
                velocity=moves.tolist(),
            )  # fmt: skip
        if self.trailer == "hitch":
            scene.add_joint(f"{self.name} hitch", self.hitch.joint(), hull, body, position=at(ball, 0, high), rotation=turn)
            scene.ignore(hull, body)
            return
        jockey = scene.add_body(f"{self.name} jockey", Sphere(0.08), mass=1.5, position=at(tip - 0.1, 0, 0.08), velocity=moves)
        scene.add_joint(f"{self.name} caster", Spherical(friction=0.05), body, jockey, position=at(tip - 0.1, 0, 0.08))
        scene.add_rope(
            f"{self.name} rope", at(-0.5, 0, high), at(tip, 0, high), segments=6, radius=0.006, mass_per_length=0.1,
            EI=0.02, GJ=0.02, damping=0.02, attach=(hull, body), collide=False, velocity=moves,
        )  # fmt: skip

    def inputs(self) -> list[Input]:
        """throttle −1 … 1 of the voltage, steer rad to the left, brake 0 … 1."""
        return [
            Input(
                "throttle", self._throttle, rate=2.0, about="part of the motors' voltage, ahead positive",
                keys=("w", "s"), pad="-axis 1",
            ),
            Input(
                "steer", self.vehicle.steer, low=-STEER, high=STEER, rate=1.0, about="rad, to the left positive",
                keys=("a", "d"), pad="-axis 0",
            ),
            Input(
                "brake", self._brake, low=0.0, high=1.0, rate=4.0, about="part of the brakes' torque; 1 parks it",
                keys=(" ",), pad="button 0",
            ),
        ]  # fmt: skip

    def _throttle(self, sim: Any, value: float) -> None:
        for hinge in self.vehicle.hinges():
            sim.joint(hinge).drive.voltage = value * VOLTS

    def _brake(self, sim: Any, value: float) -> None:
        self.vehicle.brake(sim, value * BRAKE_FORCE)

    def angles(self, sim: Any) -> np.ndarray:
        """(3,) rad, of the hitch about x, y, z: R = R(x) R(y) R(z); (worlds, 3) with several worlds."""
        x, y, z, w = np.moveaxis(np.asarray(sim.joint(f"{self.name} hitch").position), -1, 0)
        about = (
            np.arctan2(2 * (x * w - y * z), 1 - 2 * (x * x + y * y)),
            np.arcsin(np.clip(2 * (x * z + y * w), -1.0, 1.0)),
            np.arctan2(2 * (z * w - x * y), 1 - 2 * (y * y + z * z)),
        )
        return np.stack(about, axis=-1)
