"""MF-4: a robot of about 300 kg on four track units that pitch, with a six-axis arm and a gripper."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from sharnir.core.spatial import quat_rotate
from sharnir.errors import number
from sharnir.geometry.shapes import Box, Compound
from sharnir.machine_models.inputs import Input
from sharnir.machine_models.tracks import Track
from sharnir.machine_models.treads import shoes
from sharnir.model.actuators import Friction, Servo
from sharnir.model.descriptions import vector
from sharnir.model.joint_types import Prismatic, Revolute
from sharnir.scene.scene import Scene

WHEEL_CORNERS = (("front left", 1, 1), ("front right", 1, -1), ("rear left", -1, 1), ("rear right", -1, -1))
ARM_AXES = ("yaw", "shoulder", "elbow", "roll", "wrist", "tool")
LETTER = {"yaw": "z", "shoulder": "y", "elbow": "y", "roll": "x", "wrist": "y", "tool": "x"}
KEYS = {
    "yaw": ("y", "h"), "shoulder": ("u", "j"), "elbow": ("i", "k"), "roll": ("o", "l"), "wrist": ("n", "b"), "tool": ("m", ","),
}  # fmt: skip
ARM_PAD = {"yaw": "-axis 2", "shoulder": "-axis 3"}
COLOURS = {"hull": "#4e5d3a", "unit": "#2f3437", "arm": "#f2b134", "finger": "#3b4252"}


def unit() -> Track:
    """A track unit: a wheel of 0.13 m on the hull's axle, which drives it, one of 0.09 m, 0.34 m before it.

    The belt is crowned over them, so that each touches level ground in one point.
    """
    return Track(
        [(0.0, 0.0, 0.13), (0.34, 0.0, 0.09)], 0.10, 3.0, wheel_mass=4.0, friction=0.8, tension=400.0, rounding=0.05,
        stiffness=1e6, damping=5e3,
    )  # fmt: skip


@dataclass(frozen=True)
class Mf4:
    """The robot as data; the arm stands folded over the hull at the start.

    No figures of its maker are public that we know of; these are chosen for a robot of that class: hull 205 kg (0.9 × 0.5 × 0.22
    m), four units of 15 kg each, an arm of 0.5 + 0.45 + 0.2 m and 33 kg, 1 m/s on the level.

    Args:
        name: of the hull; joints are "name front left" (belt), "name front left pitch", "name arm yaw", …, "name grip left".
        track: of each unit.
        arm: whether it has one.
        friction: of the arm's joints, N·m, from the hull outwards.
        speed: m/s, at full throttle. torque: N·m a sprocket, at most.
    """

    name: str = "mf4"
    track: Track = field(default_factory=unit)
    arm: bool = True
    friction: tuple[float, ...] = (15.0, 20.0, 12.0, 5.0, 5.0, 3.0)
    speed: float = 1.0
    torque: float = 150.0

    def __post_init__(self) -> None:
        number("Mf4", "speed (m/s)", self.speed, least=1e-3)
        number("Mf4", "torque (N·m)", self.torque, least=0.0)

    def add(self, scene: Scene, position: Sequence[float] = (0.0, 0.0, 0.0), heading: float = 0.0) -> str:
        """Put it on ground of the height of `position` (m), units along the hull, heading (rad) from x to y; returns its hull."""
        place = vector(position, "Mf4", "position (m)")
        angle = 0.5 * number("Mf4", "heading (rad)", heading)
        turn = np.array([0.0, 0.0, math.sin(angle), math.cos(angle)])
        axle = self.track.radius

        def at(*p: float) -> Any:
            return place + quat_rotate(turn, np.array(p))

        hull = scene.add_body(
            self.name, Box(0.9, 0.5, 0.22), mass=205.0, position=at(0, 0, axle + 0.06), rotation=turn.tolist(),
            color=COLOURS["hull"],
        )  # fmt: skip
        left = quat_rotate(turn, np.array([0.0, 1.0, 0.0])).tolist()
        drive = Servo(kd=400.0, max_force=self.torque)
        for corner, front, side in WHEEL_CORNERS:
            pivot = at(0.36 * front, 0.33 * side, axle)
            track = self.track if front > 0 else replace(self.track, wheels=[(-x, z, r) for x, z, r in self.track.wheels])
            body = scene.add_body(
                f"{self.name} {corner} unit", _picture(track), mass=8.0, inertia=(0.03, 0.12, 0.12), com=(0.17 * front, 0.0, 0.0),
                position=pivot, rotation=turn.tolist(), collide=False, color=COLOURS["unit"],
            )  # fmt: skip
            pitch = Revolute(left, limit=(-1.6, 1.6), drive=Servo(kp=8e3, kd=300.0, max_force=500.0))
            scene.add_joint(f"{self.name} {corner} pitch", pitch, hull, body, position=pivot)
            track.add(scene, f"{self.name} {corner}", body, drive=drive)
        if self.arm:
            self._arm(scene, hull, at, turn, left)
        return hull

    def _arm(self, scene: Scene, hull: str, at: Any, turn: np.ndarray, left: list[float]) -> None:
        """Six hinges with friction and servos, two fingers on slides."""
        ahead = quat_rotate(turn, np.array([1.0, 0.0, 0.0])).tolist()
        axes = {"x": ahead, "y": left, "z": [0.0, 0.0, 1.0]}
        base, deck = 0.1, self.track.radius + 0.17
        links = (  # name, mass, centre, size, hinge: folded, from the yaw axis at x = base
            ("yaw", 8.0, (0.0, 0.0, 0.06), (0.16, 0.16, 0.12), (0.0, 0.0, 0.0)),
            ("shoulder", 9.0, (-0.25, 0.0, 0.14), (0.5, 0.08, 0.08), (0.0, 0.0, 0.14)),
            ("elbow", 7.0, (-0.275, 0.0, 0.24), (0.45, 0.07, 0.07), (-0.5, 0.0, 0.24)),
            ("roll", 3.0, (0.02, 0.0, 0.24), (0.1, 0.06, 0.06), (-0.05, 0.0, 0.24)),
            ("wrist", 3.0, (0.1, 0.0, 0.24), (0.1, 0.06, 0.06), (0.07, 0.0, 0.24)),
            ("tool", 2.0, (0.19, 0.0, 0.24), (0.06, 0.14, 0.05), (0.16, 0.0, 0.24)),
        )
        gains = {"yaw": 4e3, "shoulder": 6e3, "elbow": 4e3, "roll": 1e3, "wrist": 1e3, "tool": 500.0}
        parent, names = hull, []
        for (part, mass, centre, size, hinge), friction in zip(links, self.friction, strict=True):
            body = scene.add_body(
                f"{self.name} arm {part} link", Box(*size), mass=mass, position=at(base + centre[0], centre[1], deck + centre[2]),
                rotation=turn.tolist(), color=COLOURS["arm"],
            )  # fmt: skip
            drive = Servo(kp=gains[part], kd=0.1 * gains[part], max_force=400.0)
            joint = Revolute(axes[LETTER[part]], friction=Friction(friction), drive=drive)
            scene.add_joint(
                f"{self.name} arm {part}", joint, parent, body, position=at(base + hinge[0], hinge[1], deck + hinge[2])
            )
            names.append(body)
            parent = body
        for side, sign in (("left", 1.0), ("right", -1.0)):
            finger = scene.add_body(
                f"{self.name} finger {side}", Box(0.12, 0.02, 0.04), mass=0.5, rotation=turn.tolist(), color=COLOURS["finger"],
                position=at(base + 0.28, 0.055 * sign, deck + 0.24),
            )  # fmt: skip
            way = (np.array(left) * -sign).tolist()
            slide = Prismatic(way, limit=(0.0, 0.05), drive=Servo(kp=4e3, kd=100.0, max_force=200.0))
            scene.add_joint(
                f"{self.name} grip {side}", slide, parent, finger, position=at(base + 0.22, 0.055 * sign, deck + 0.24)
            )
            names.append(finger)
        for i, a in enumerate(names):  # the arm passes itself and the hull where it is folded
            scene.ignore(hull, a)
            for b in names[i + 1 :]:
                if not (a.startswith(f"{self.name} finger") and b.startswith(f"{self.name} finger")):
                    scene.ignore(a, b)

    # ---- inputs ----

    def inputs(self) -> list[Input]:
        """throttle and turn (−1 … 1), front and rear (rad, tips down positive), the arm's six angles (rad), grip (0 … 1)."""
        made = [
            Input(
                "throttle", self._belts("throttle"), rate=4.0, about="part of the speed, ahead positive",
                keys=("w", "s"), pad="-axis 1",
            ),
            Input(
                "turn", self._belts("turn"), rate=4.0, about="part of the speed, to the left positive",
                keys=("a", "d"), pad="-axis 0",
            ),
            Input(
                "front", self._pitch("front"), low=-1.5, high=1.5, rate=0.8, about="rad, of the front units, down positive",
                keys=("r", "f"), returns=False,
            ),
            Input(
                "rear", self._pitch("rear"), low=-1.5, high=1.5, rate=0.8, about="rad, of the rear units, down positive",
                keys=("t", "g"), returns=False,
            ),
        ]  # fmt: skip
        if self.arm:
            made += [
                Input(
                    part, self._joint(part), low=-3.1, high=3.1, rate=0.6, about="rad, from folded",
                    keys=KEYS[part], pad=ARM_PAD.get(part, ""), returns=False,
                )
                for part in ARM_AXES
            ]  # fmt: skip
            made.append(
                Input("grip", self._grip, 0.0, 1.0, rate=2.0, about="0 open, 1 closed", keys=("c", "v"), returns=False)
            )  # fmt: skip
        return made

    def _belts(self, part: str) -> Any:
        """Sets the mean of the two sides' speeds, or half their difference, and leaves the other as it is."""

        def act(sim: Any, value: float) -> None:
            sides = {side: sim.joint(f"{self.name} {corner}").drive for corner, _, side in WHEEL_CORNERS}
            left, right = (sides[side].velocity * self.track.radius for side in (1, -1))
            ahead, turn = 0.5 * (right + left), 0.5 * (right - left)
            ahead, turn = (self.speed * value, turn) if part == "throttle" else (ahead, self.speed * value)
            for corner, _, side in WHEEL_CORNERS:
                sim.joint(f"{self.name} {corner}").drive.velocity = (ahead - side * turn) / self.track.radius

        return act

    def _pitch(self, end: str) -> Any:
        def act(sim: Any, value: float) -> None:
            sign = 1.0 if end == "front" else -1.0
            for side in ("left", "right"):
                sim.joint(f"{self.name} {end} {side} pitch").drive.position = sign * value

        return act

    def _joint(self, part: str) -> Any:
        def act(sim: Any, value: float) -> None:
            sim.joint(f"{self.name} arm {part}").drive.position = value

        return act

    def _grip(self, sim: Any, value: float) -> None:
        for side in ("left", "right"):
            sim.joint(f"{self.name} grip {side}").drive.position = 0.05 * value


def _picture(track: Track) -> Compound:
    """What a unit looks like: wheels, runs and the shoes of its belt."""
    return Compound(*track.shapes(np.zeros(3), np.array([0.0, 0.0, 0.0, 1.0])), *shoes(track.wheels, track.width))
