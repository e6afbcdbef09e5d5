"""An excavator: undercarriage, slewing upper works, boom, stick and bucket on rams."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sharnir.collision.material import Material
from sharnir.errors import number
from sharnir.geometry.shapes import Box, Compound
from sharnir.machine_models.hydraulics import Place, add_ram
from sharnir.machine_models.inputs import Input
from sharnir.model.actuators import HydraulicCylinder
from sharnir.model.joint_types import Revolute
from sharnir.scene.scene import Scene

EXCAVATOR_PRESSURE = 3.0e7  # Pa
BOOM_LENGTH, STICK_LENGTH = 5.2, 2.8  # m
ARM_PIVOT = (0.3, 1.9)  # m, of the boom
EXCAVATOR_INPUTS = {  # about, keys, stick
    "slew": ("part of 0.5 rad/s, to the left positive", ("a", "d"), "-axis 0"),
    "boom": ("part of its ram's flow, up positive", ("r", "f"), "axis 3"),
    "stick": ("part of its ram's flow, in positive", ("s", "w"), "axis 1"),
    "bucket": ("part of 1 rad/s, curling in positive", ("q", "e"), "-axis 2"),
}


@dataclass(frozen=True)
class Excavator:
    """An excavator of the 20 t class, parked; figures are chosen for that class, none are a maker's.

    Args:
        name: its bodies and joints are called after it.
        boom, stick, bucket: rad at the start: of the boom above the level, of the stick below the boom's line, of the bucket
            below the stick's.
        undercarriage, works, arm: kg: below the slewing ring, above it, of boom, stick and bucket together.
    """

    name: str = "excavator"
    boom: float = math.radians(45.0)
    stick: float = math.radians(80.0)
    bucket: float = math.radians(40.0)
    undercarriage: float = 8000.0
    works: float = 10000.0
    arm: float = 3000.0

    def __post_init__(self) -> None:
        who = f"Excavator {self.name!r}"
        number(who, "boom (rad)", self.boom, least=0.0, most=math.radians(65.0))
        number(who, "stick (rad)", self.stick, least=math.radians(30.0), most=math.radians(140.0))
        number(who, "bucket (rad)", self.bucket, least=math.radians(-20.0), most=math.radians(120.0))
        for what in ("undercarriage", "works", "arm"):
            number(who, f"{what} (kg)", getattr(self, what), least=1.0)

    def add(self, scene: Scene, position: Sequence[float] = (0.0, 0.0, 0.0), heading: float = 0.0) -> str:
        """Put it on ground of the height of `position` (m); returns the undercarriage's name."""
        place, n = Place(f"Excavator {self.name!r}", position, heading), self.name
        tracks = [Box(3.8, 0.6, 0.8, position=(0, y, 0.4)) for y in (-1.1, 1.1)]
        scene.add_body(
            f"{n} undercarriage", Compound(*tracks, Box(1.6, 1.6, 0.5, position=(0, 0, 0.75))), mass=self.undercarriage,
            collision=tracks, material=Material(friction=0.9), position=place.at(0, 0, 0), rotation=place.turn, color="#3b4252",
        )  # fmt: skip
        cab = [Box(3.4, 2.4, 1.0, position=(-0.6, 0, 0.5)), Box(1.4, 0.9, 1.5, position=(0.3, 0.7, 1.2))]
        scene.add_body(
            f"{n} works", Compound(*cab), mass=self.works, com=(-0.8, 0, 0.6), position=place.at(0, 0, 1.1), rotation=place.turn,
            collide=False, color="#f2b134",
        )  # fmt: skip
        motor = HydraulicCylinder(pressure=1.2e7, flow=2.5e-3, area=0.005, leak=1e-11)
        scene.add_joint(f"{n} slew", Revolute("z", drive=motor), f"{n} undercarriage", f"{n} works", position=place.at(0, 0, 1.1))
        self._arm(scene, place)
        return f"{n} undercarriage"

    def _arm(self, scene: Scene, place: Place) -> None:
        """Boom, stick and bucket; the rams of the first two, and a motor in place of the bucket's, with its link."""
        n = self.name
        a, b = self.boom, self.boom - self.stick
        c = b - self.bucket
        foot = (ARM_PIVOT[0], 0.0, ARM_PIVOT[1])

        def out(start: tuple[float, float, float], angle: float, along: float, up: float = 0.0) -> tuple[float, float, float]:
            x, z = math.cos(angle), math.sin(angle)
            return start[0] + along * x - up * z, 0.0, start[2] + along * z + up * x

        elbow = out(foot, a, BOOM_LENGTH)
        wrist = out(elbow, b, STICK_LENGTH)
        bodies = (
            ("boom", Box(BOOM_LENGTH, 0.4, 0.5), 0.55, out(foot, a, BOOM_LENGTH / 2), a),
            ("stick", Box(STICK_LENGTH, 0.35, 0.4), 0.3, out(elbow, b, STICK_LENGTH / 2), b),
            ("bucket", Box(1.1, 1.0, 0.5), 0.15, out(wrist, c, 0.55), c),
        )  # fmt: skip
        for part, shape, share, middle, angle in bodies:
            scene.add_body(
                f"{n} {part}", shape, mass=share * self.arm, position=place.at(*middle), rotation=place.turned(angle),
                collide=part != "boom", material=Material(friction=0.5), color="#5b6470" if part == "bucket" else "#f2b134",
            )  # fmt: skip
        scene.add_joint(f"{n} foot", Revolute(place.left), f"{n} works", f"{n} boom", position=place.at(*foot))
        scene.add_joint(f"{n} elbow", Revolute(place.left), f"{n} boom", f"{n} stick", position=place.at(*elbow))
        curl = HydraulicCylinder(pressure=EXCAVATOR_PRESSURE, flow=1.0e-3, area=1.0e-3, leak=1e-14)
        hinge = Revolute(place.left, drive=curl, limit=(-1.2, 2.0))
        scene.add_joint(f"{n} curl", hinge, f"{n} stick", f"{n} bucket", position=place.at(*wrist))
        ram = HydraulicCylinder(pressure=EXCAVATOR_PRESSURE, flow=4.0e-3, area=0.02, leak=1e-14)
        low = (ARM_PIVOT[0] + 0.6, 0.0, ARM_PIVOT[1] - 0.5)
        add_ram(scene, f"{n} boom ram", place, f"{n} works", low, f"{n} boom", out(foot, a, 2.2, -0.25), ram, (-1.2, 1.2), 200.0)
        pull = HydraulicCylinder(pressure=EXCAVATOR_PRESSURE, flow=3.0e-3, area=0.012, leak=1e-14)
        top, tail = out(foot, a, 2.4, 0.35), out(elbow, b, -0.5, 0.3)
        add_ram(scene, f"{n} stick ram", place, f"{n} boom", top, f"{n} stick", tail, pull, (-1.0, 1.0), 150.0)
        scene.ignore(f"{n} stick", f"{n} bucket")

    def inputs(self) -> list[Input]:
        """slew, boom, stick, bucket: each −1 to 1 of its flow."""
        joints = {"slew": "slew", "boom": "boom ram", "stick": "stick ram", "bucket": "curl"}

        def act(joint: str) -> Any:
            def command(sim: Any, value: Any) -> None:
                sim.joint(joint).drive.command = value

            return command

        return [
            Input(word, act(f"{self.name} {joints[word]}"), rate=2.0, about=about, keys=keys, pad=pad)
            for word, (about, keys, pad) in EXCAVATOR_INPUTS.items()
        ]
