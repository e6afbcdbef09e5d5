"""Hydraulic rams between two bodies, and the frame in which a machine is described."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from sharnir.core.spatial import frame_from_axes, quat_multiply, quat_rotate
from sharnir.errors import SceneError
from sharnir.geometry.shapes import Capsule
from sharnir.model.actuators import HydraulicCylinder
from sharnir.model.descriptions import vector
from sharnir.model.joint_types import Prismatic, Revolute
from sharnir.scene.scene import Scene


class Place:
    """Where a machine stands: points and turns of its own frame (x ahead, z up) in the world."""

    def __init__(self, who: str, position: Sequence[float], heading: float) -> None:
        self.origin = vector(position, who, "position (m)")
        if not math.isfinite(heading):
            raise SceneError(f"{who}: heading is a finite angle in rad, got {heading!r}")
        self.turn: Any = np.array([0.0, 0.0, math.sin(0.5 * heading), math.cos(0.5 * heading)])

    def at(self, *p: float) -> Any:
        """A point of the machine's frame, m."""
        return self.origin + quat_rotate(self.turn, np.array(p, float))

    def turned(self, pitch: float = 0.0) -> Any:
        """Rotation of a part that is pitched up by so many rad."""
        return quat_multiply(self.turn, np.array([0.0, -math.sin(0.5 * pitch), 0.0, math.cos(0.5 * pitch)]))

    @property
    def left(self) -> list[float]:
        """The machine's y axis in the world."""
        return [float(x) for x in quat_rotate(self.turn, np.array([0.0, 1.0, 0.0]))]


def add_ram(
    scene: Scene, name: str, place: Place, a: str, from_: Sequence[float], b: str, to: Sequence[float],
    cylinder: HydraulicCylinder, stroke: tuple[float, float], mass: float,
) -> str:  # fmt: skip
    """A ram between a point of body a and one of body b (both in the machine's frame, m), each on a hinge about its y axis.

    Args:
        stroke: m, how far it may retract (negative) and extend from where it is. mass: kg, of barrel and rod together.

    Returns the name of its joint, which the cylinder drives: out is positive.
    """
    start, end = place.at(*from_), place.at(*to)
    along = end - start
    length = float(np.linalg.norm(along))
    half = 0.62 * length
    turn: Any = np.array(frame_from_axes(along / length))  # z along the ram
    scene.add_body(
        f"{name} barrel", Capsule(0.07, max(half - 0.14, 0.05)), mass=0.6 * mass, position=start + along / length * half * 0.5,
        rotation=turn, collide=False, color="#5b6470",
    )  # fmt: skip
    scene.add_body(
        f"{name} rod", Capsule(0.04, max(half - 0.08, 0.05)), mass=0.4 * mass, position=end - along / length * half * 0.5,
        rotation=turn, collide=False, color="#c9ced6",
    )  # fmt: skip
    scene.add_joint(f"{name} foot", Revolute(place.left), a, f"{name} barrel", position=start)
    slide = Prismatic("z", drive=cylinder, limit=stroke)
    scene.add_joint(name, slide, f"{name} barrel", f"{name} rod", position=start, rotation=turn)
    scene.add_joint(f"{name} head", Revolute(place.left), b, f"{name} rod", position=end)
    return name
