"""A truck with a combustion engine, clutch and gearbox on its rear axle, and a semi-trailer on its fifth wheel."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from sharnir.errors import number
from sharnir.machine_models.hydraulics import Place
from sharnir.machine_models.inputs import Input
from sharnir.machine_models.vehicles import WHEEL_SIDES, Axle, Hitch, Vehicle
from sharnir.machine_models.wheels import Steering, Wheel, ackermann, add_differential
from sharnir.model.actuators import Engine
from sharnir.scene.scene import Scene

TRUCK_WHEEL = Wheel(0.5, 0.3, 90.0, friction=0.8, rolling=0.008)
FRONT, REAR, TRACK = 2.2, -1.8, 2.0  # m, of the axles from the hull's middle; between wheels
PIN, PIN_AHEAD, PIN_HEIGHT = -1.6, 3.4, 1.15  # m: the fifth wheel on the truck, the king pin on the trailer, their height
STEER_LIMIT, AXLE_BRAKE = 0.6, 12000.0  # rad, N·m a wheel


def engine() -> Engine:
    """1500 N·m from 105 to 150 rad/s, 240 kW; crank turns per turn of the wheels, final drive included."""
    curve = ((0.0, 0.0), (60.0, 900.0), (105.0, 1500.0), (150.0, 1500.0), (220.0, 900.0), (240.0, 0.0))
    return Engine(curve, 3.0, idle=60.0, limit=220.0, drag=0.8, clutch=2200.0, gears=(40.0, 25.0, 15.0, 9.0, 6.0), reverse=40.0)


def hull(name: str = "truck") -> Vehicle:
    """The truck without its rear axle, as data."""
    steering = Steering(limit=0.8, kp=3e5, kd=1e4, mass=60.0)
    axles = {"front": Axle(FRONT, TRUCK_WHEEL, TRACK, steering=steering)}
    return Vehicle(name, 6500.0, (6.2, 2.3, 0.9), 1.0, axles, ahead=0.6, clearance=0.65, color="#c0392b")


@dataclass(frozen=True)
class Truck:
    """A tractor of 7 t with a semi-trailer; figures are chosen for that class, none are a maker's.

    Args:
        name: of the hull. vehicle: the truck without its rear axle, as data.
        motor: engine, clutch and gearbox, on the differential "name rear".
        trailer: kg, of the loaded trailer; 0: none. hitch: limits of the fifth wheel.
    """

    name: str = "truck"
    vehicle: Vehicle = field(default_factory=hull)
    motor: Engine = field(default_factory=engine)
    trailer: float = 12000.0
    hitch: Hitch = field(default_factory=lambda: Hitch(math.radians(10.0), math.radians(20.0), math.radians(85.0)))

    def __post_init__(self) -> None:
        number(f"Truck {self.name!r}", "trailer (kg)", self.trailer, least=0.0)

    def add(self, scene: Scene, position: Sequence[float] = (0.0, 0.0, 0.0), heading: float = 0.0) -> str:
        """Put it on ground of the height of `position` (m); returns the hull's name."""
        body, n = self.vehicle.add(scene, position, heading), self.name
        place = Place(f"Truck {n!r}", position, heading)
        ends = [place.at(REAR, sign * 0.5 * TRACK, TRUCK_WHEEL.radius) for _, sign in WHEEL_SIDES]
        add_differential(scene, f"{n} rear", body, TRUCK_WHEEL, ends[0], ends[1], drive=self.motor, mass=60.0)
        if self.trailer > 0:
            axles = {key: Axle(x, TRUCK_WHEEL, TRACK) for key, x in (("middle", -2.0), ("last", -3.2))}
            load = Vehicle(f"{n} trailer", self.trailer, (8.4, 2.4, 1.4), 1.6, axles, clearance=PIN_HEIGHT, color="#7a8b99")
            tail = load.add(scene, place.at(PIN - PIN_AHEAD, 0, 0), heading)
            pin = place.at(PIN, 0, PIN_HEIGHT)
            scene.add_joint(f"{n} fifth wheel", self.hitch.joint(), body, tail, position=pin, rotation=place.turn)
            for other in (body, *(f"{n} rear {side} wheel" for side, _ in WHEEL_SIDES)):
                scene.ignore(tail, other)
        return body

    def _steer(self, sim: Any, angle: float) -> None:
        for (side, _), turned in zip(WHEEL_SIDES, ackermann(angle, FRONT - REAR, TRACK), strict=True):
            sim.joint(f"{self.name} front {side} strut").drive.position = turned

    def _brake(self, sim: Any, value: float) -> None:
        for key in ("front", "rear"):
            for side, _ in WHEEL_SIDES:
                sim.joint(f"{self.name} {key} {side}").friction = value * AXLE_BRAKE
        for key in ("middle", "last") if self.trailer > 0 else ():
            for side, _ in WHEEL_SIDES:
                sim.joint(f"{self.name} trailer {key} {side}").friction = value * AXLE_BRAKE

    def _tell(self, word: str) -> Any:
        def act(sim: Any, value: float) -> None:
            setattr(sim.joint(f"{self.name} rear").drive, word, value)

        return act

    def inputs(self) -> list[Input]:
        """throttle and clutch 0 to 1, gear −1 to the highest, steer, brake."""
        top = len(self.motor.gears)
        return [
            Input(
                "throttle", self._tell("throttle"), 0.0, 1.0, rate=2.0, about="part of the engine's torque", keys=("w",),
                pad="button 7",
            ),
            Input(
                "clutch", self._tell("engaged"), 0.0, 1.0, rate=1.0, about="how far it is let in", keys=("e", "q"), returns=False
            ),
            Input("gear", self._tell("gear"), -1.0, float(top), about="−1, 0 or the number of the gear", returns=False),
            Input(
                "steer", self._steer, -STEER_LIMIT, STEER_LIMIT, rate=0.5, about="rad, to the left positive",
                keys=("a", "d"), pad="-axis 0",
            ),
            Input("brake", self._brake, 0.0, 1.0, rate=2.0, about="part of the brakes", keys=("s",), pad="button 6"),
        ]  # fmt: skip
