"""A forklift: a counterbalanced truck with a mast that tilts, an inner mast on a ram, and forks on a chain over its head."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from sharnir.collision.material import Material
from sharnir.errors import number
from sharnir.geometry.shapes import Box, Compound
from sharnir.machine_models.hydraulics import Place
from sharnir.machine_models.inputs import Input
from sharnir.machine_models.vehicles import Axle, Vehicle
from sharnir.machine_models.wheels import Steering, Wheel
from sharnir.model.actuators import HydraulicCylinder, Servo
from sharnir.model.cable_tables import Sheave
from sharnir.model.joint_types import Prismatic, Revolute
from sharnir.scene.scene import Scene

FORKLIFT_PRESSURE = 1.8e7  # Pa
SPEED_RANGE, STEER_RANGE, WHEEL_BRAKE = 4.0, 0.9, 2000.0  # m/s, rad, N·m a wheel
MAST, STROKE, CHAIN = 1.05, 1.5, 0.06  # m: ahead of the hull's middle, of the inner mast, radius of the chain's sheave


def truck(name: str = "forklift") -> Vehicle:
    """The truck as data: 3 t with its counterweight at the rear, driven by the front wheels, steered by the rear ones."""
    wheel = Wheel(0.3, 0.2, 30.0, friction=0.9, rolling=0.01)
    axles = {
        "front": Axle(0.75, wheel, 0.95, drive=Servo(kd=4000.0, max_force=1500.0)),
        "rear": Axle(-0.75, wheel, 0.9, steering=Steering(limit=1.2, kp=2e4, kd=800.0, mass=20.0)),
    }
    return Vehicle(name, 2600.0, (1.9, 1.0, 0.9), 0.55, axles, ahead=-0.3, clearance=0.12, color="#f2b134")


@dataclass(frozen=True)
class Forklift:
    """A forklift of the 1.5 t class; figures are chosen for that class, none are a maker's.

    The chain runs from the outer mast over the head of the inner one to the forks: they rise by twice what the ram does.

    Args:
        name: of the hull; all else is called after it. vehicle: the truck as data.
        mast, inner, forks: kg.
    """

    name: str = "forklift"
    vehicle: Vehicle = field(default_factory=truck)
    mast: float = 220.0
    inner: float = 120.0
    forks: float = 150.0

    def __post_init__(self) -> None:
        for what in ("mast", "inner", "forks"):
            number(f"Forklift {self.name!r}", f"{what} (kg)", getattr(self, what), least=1.0)

    def add(self, scene: Scene, position: Sequence[float] = (0.0, 0.0, 0.0), heading: float = 0.0) -> str:
        """Put it on ground of the height of `position` (m); returns the hull's name."""
        hull, n = self.vehicle.add(scene, position, heading), self.name
        place = Place(f"Forklift {n!r}", position, heading)
        parts: list[tuple[str, Any, float, tuple[float, float, float], Any]] = [
            ("mast", Box(0.16, 0.9, 2.0), self.mast, (MAST, 0, 1.15), False),
            ("inner mast", Box(0.1, 0.7, 1.9), self.inner, (MAST, 0, 1.1), False),
        ]
        tines = [Box(1.1, 0.12, 0.05, position=(0.6, y, -0.2)) for y in (-0.25, 0.25)]
        parts.append(("forks", Compound(Box(0.06, 0.9, 0.5), *tines), self.forks, (MAST + 0.14, 0, 0.28), None))
        for part, shape, mass, middle, collide in parts:
            scene.add_body(
                f"{n} {part}", shape, mass=mass, position=place.at(*middle), rotation=place.turn, collide=collide,
                material=Material(friction=0.4), color="#3b4252",
            )  # fmt: skip
        tilt = HydraulicCylinder(pressure=FORKLIFT_PRESSURE, flow=2.0e-4, area=2.0e-3, leak=1e-13)
        hinge = Revolute(place.left, drive=tilt, limit=(-0.2, 0.1))
        scene.add_joint(f"{n} tilt", hinge, hull, f"{n} mast", position=place.at(MAST, 0, 0.3))
        lift = HydraulicCylinder(pressure=FORKLIFT_PRESSURE, flow=4.5e-4, area=3.0e-3, leak=1e-14, cushion=0.1)
        for joint, (a, b), slide in (
            ("lift", ("mast", "inner mast"), Prismatic("z", drive=lift, limit=(0.0, STROKE))),
            ("carriage", ("inner mast", "forks"), Prismatic("z", limit=(-0.1, 1.6))),
        ):
            scene.add_joint(f"{n} {joint}", slide, f"{n} {a}", f"{n} {b}", position=place.at(MAST, 0, 0.3), rotation=place.turn)
        over = Sheave(f"{n} inner mast", CHAIN, at=(0.08, 0, 0.9))
        ends = [(f"{n} mast", (0.08 - CHAIN, 0, -0.2)), (f"{n} forks", (0.0, 0, 0.2))]
        scene.add_cable(f"{n} chain", [ends[0], over, ends[1]])
        for part in ("mast", "inner mast", "forks"):
            scene.ignore(hull, f"{n} {part}")
        return hull

    def inputs(self) -> list[Input]:
        """throttle, steer, brake, lift, tilt."""

        def drive(joint: str) -> Any:
            def command(sim: Any, value: Any) -> None:
                sim.joint(joint).drive.command = value

            return command

        return [
            Input(
                "throttle", lambda sim, v: self.vehicle.drive(sim, speed=v), -SPEED_RANGE, SPEED_RANGE, rate=1.5,
                about="m/s, ahead positive", keys=("w", "s"), pad="-axis 1",
            ),
            Input(
                "steer", lambda sim, v: self.vehicle.steer(sim, v), -STEER_RANGE, STEER_RANGE, rate=1.0,
                about="rad, to the left positive", keys=("a", "d"), pad="-axis 0",
            ),
            Input(
                "brake", lambda sim, v: self.vehicle.brake(sim, v * WHEEL_BRAKE), 0.0, 1.0, rate=4.0, about="part of the brakes",
                keys=(" ",), pad="button 0",
            ),
            Input(
                "lift", drive(f"{self.name} lift"), rate=2.0, about="part of 0.15 m/s of the ram, 0.3 m/s of the forks",
                keys=("r", "f"), pad="-axis 3",
            ),
            Input(
                "tilt", drive(f"{self.name} tilt"), rate=2.0, about="part of 0.1 rad/s, forward positive", keys=("e", "q"),
                pad="axis 2",
            ),
        ]  # fmt: skip
