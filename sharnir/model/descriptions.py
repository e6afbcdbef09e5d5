"""What a scene keeps of the bodies, joints and springs that a user described: checked numbers, bodies by index."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from sharnir.core.spatial import quat_multiply, quat_rotate, unit_quat
from sharnir.errors import LARGEST_STATE, SceneError, as_numbers, is_positive, reachable
from sharnir.geometry.shapes import Shape, check_inertia
from sharnir.model.actuators import Axis
from sharnir.model.joint_types import Joint


@dataclass
class BodyDescription:
    """A body as described: poses of its own frame, mass properties in it."""

    name: str
    shape: Shape | None
    motion: int
    mass: float
    com: np.ndarray
    inertia: np.ndarray  # (3, 3) about the centre of mass; zero for a point mass
    position: np.ndarray
    rotation: np.ndarray
    velocity: np.ndarray
    angular_velocity: np.ndarray
    path: Callable[[float], Any] | None
    color: tuple[float, float, float] | None = None
    finish: tuple[float, float] | None = None  # roughness, metalness, 0 to 1
    visual: Shape | None = None  # what it looks like, where that is not its shape
    drag_area: float = 0.0  # m²


@dataclass
class JointDescription:
    """A joint as described: bodies by index, its frame on each, from that body's centre of mass."""

    name: str
    joint: Joint
    parent: int
    child: int
    parent_point: np.ndarray
    child_point: np.ndarray
    parent_frame: np.ndarray
    child_frame: np.ndarray
    axes: tuple[Axis, ...]
    rod: float = -1.0
    break_force: float = np.inf
    break_torque: float = np.inf
    enabled: bool = True  # at the start

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in type(self).__dataclass_fields__:
            remedy = "; Scene.set_drive gives it a drive" if name == "drive" else ""
            raise SceneError(f"joint {self.name!r}: its description has no {name!r}{remedy}")
        super().__setattr__(name, value)


@dataclass
class FrameDescription:
    """A frame with a name, fixed to a body: m and a quaternion in the body's frame."""

    body: str
    position: np.ndarray
    rotation: np.ndarray


@dataclass
class SpringDescription:
    """A point-to-point spring: bodies by index, its points from their centres of mass."""

    parent: int
    child: int
    parent_point: np.ndarray
    child_point: np.ndarray
    stiffness: float
    rest: float
    damping: float


def vector(value: Any, who: str, what: str) -> np.ndarray:
    """Three finite numbers, or a SceneError."""
    v = as_numbers(value)
    if v.shape != (3,) or not np.all(np.isfinite(v)):
        raise SceneError(f"{who}: {what} is three finite numbers, got {value!r}")
    if not reachable(v):
        raise SceneError(f"{who}: {what} is at most {LARGEST_STATE:g} in size, got {value!r}")
    return v.copy()  # the user's own array may be changed later


COLORS = {
    "black": "#1a1a1a", "white": "#f5f5f5", "gray": "#808080", "silver": "#c0c0c0", "red": "#cc2b2b", "orange": "#f28c1e",
    "yellow": "#f2cc2e", "green": "#2e9e44", "cyan": "#2bb5c4", "blue": "#2b5fcc", "purple": "#7d3fb0", "pink": "#e87fb0",
    "brown": "#7a4e2d",
}  # fmt: skip
"""Named colours (sRGB), less saturated than pure ones."""


def as_color(value: Any, who: str) -> tuple[float, float, float] | None:
    """Red, green and blue from 0 to 1 of three (or, with opacity, four) such numbers, "#rrggbb" or a name; None stays None."""
    if value is None:
        return None
    if isinstance(value, str):
        value = COLORS.get(value, value)
    if isinstance(value, str) and re.fullmatch("#[0-9a-fA-F]{6}", value):
        given = np.array([int(value[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    else:
        given = as_numbers(value)
    if given.shape not in ((3,), (4,)) or not np.all((given >= 0) & (given <= 1)):
        raise SceneError(
            f"{who}: color is (red, green, blue) from 0 to 1, '#rrggbb' or one of {', '.join(COLORS)}, got {value!r}"
        )
    return float(given[0]), float(given[1]), float(given[2])


def mass_properties(
    who: str,
    shape: Shape | None,
    mass: float | None,
    density: float | None,
    com: Any,
    inertia: Any,
    strict: bool = True,
) -> tuple[float, np.ndarray, np.ndarray]:
    """Mass, its centre and the inertia about it, in a body's frame: the shape's, unless they are given."""
    if not isinstance(strict, bool):
        raise SceneError(f"{who}: strict is True or False, got {strict!r}")
    for what, value in (("mass", mass), ("density", density)):
        if value is not None and not is_positive(value):
            raise SceneError(f"{who}: {what} is a positive finite number, got {value}")
    total, centre, tensor = float(mass or 0.0), np.zeros(3), np.zeros((3, 3))
    if shape is not None:
        try:
            parts = shape.mass_properties(mass=mass, density=density)
        except SceneError as error:
            raise SceneError(f"{who}: {error}") from None
        total, centre, tensor = parts.mass, parts.com, parts.inertia
    if com is not None:
        centre = vector(com, who, "com (m)")
    if inertia is not None:
        tensor = check_inertia(inertia, who) if strict else as_numbers(inertia)
        if tensor.shape != (3, 3) or not np.isfinite(tensor).all():
            raise SceneError(f"{who}: inertia (kg·m²) is 3×3 finite numbers, got {inertia!r}")
    if np.any(tensor) and np.linalg.eigvalsh(tensor)[0] <= 1e-12 * np.linalg.eigvalsh(tensor)[2]:
        raise SceneError(f"{who}: its mass lies on a line, about which it has no inertia; give inertia=, got {tensor.tolist()}")
    return total, centre, tensor


def path_pose(path: Callable[[float], Any], t: float, name: str) -> tuple[np.ndarray, np.ndarray]:
    """A path's pose at time t: (position, rotation), or a position alone."""
    value = path(t)
    place, turn = value if len(value) == 2 else (value, (0.0, 0.0, 0.0, 1.0))
    who = f"path of body {name!r} at t = {t:g} s"
    return vector(place, who, "position (m)"), unit_quat(turn, who)


PLAIN_FINISH = (0.5, 0.0)  # roughness, metalness of what has none


def as_finish(roughness: Any, metalness: Any, who: str) -> tuple[float, float] | None:
    """Roughness and metalness from 0 to 1; None where neither is given."""
    for what, value in (("roughness", roughness), ("metalness", metalness)):
        if value is not None and (as_numbers(value).shape != () or not 0 <= as_numbers(value) <= 1):
            raise SceneError(f"{who}: {what} is a number from 0 to 1, got {value!r}")
    if roughness is None and metalness is None:
        return None
    return float(PLAIN_FINISH[0] if roughness is None else roughness), float(PLAIN_FINISH[1] if metalness is None else metalness)


def looks(color: Any, roughness: Any, metalness: Any, visual: Any, drag_area: Any, who: str) -> dict[str, Any]:
    """What pictures and the air need of a body; files of visuals are read a floor above."""
    if as_numbers(drag_area).shape != () or not 0 <= as_numbers(drag_area) < np.inf:
        raise SceneError(f"{who}: drag_area is a finite number of m², at least 0, got {drag_area!r}")
    found: dict[str, Any] = {"color": as_color(color, who), "drag_area": float(drag_area)}
    found["finish"] = as_finish(roughness, metalness, who)
    if visual is not None:
        from sharnir.io.meshes import as_visual

        found["visual"] = as_visual(visual, who)
    return found


def start_pose(
    name: str, path: Any, position: Any, rotation: Any, other: BodyDescription | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Where a body's frame is at first: as given, in the frame of another body if there is one, else at the start of its path,
    else at the origin.
    """
    who = f"body {name!r}"
    place, turn = np.zeros(3), np.array([0.0, 0.0, 0.0, 1.0])
    if path is not None:
        place, turn = path_pose(path, 0.0, name)
    if position is not None:
        given = vector(position, who, "position (m)")
        if path is not None and np.abs(given - place).max() > 1e-6:
            raise SceneError(f"{who}: position {given.tolist()} is not where its path starts, {place.tolist()}")
        place = given
    turn = turn if rotation is None else unit_quat(as_numbers(rotation), who)
    if other is not None:
        if path is not None:
            raise SceneError(f"{who}: a path is in world axes, got relative_to={other.name!r} besides")
        place, turn = other.position + quat_rotate(other.rotation, place), quat_multiply(other.rotation, turn)
    return place, turn
