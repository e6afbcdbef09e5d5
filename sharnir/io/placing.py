"""A part of a scene file put somewhere: which arguments of a scene's methods are places and directions in the world."""

from __future__ import annotations

from typing import Any

import numpy as np

from sharnir.core.spatial import quat_multiply, quat_rotate, unit_quat
from sharnir.errors import SceneError, as_numbers
from sharnir.model.descriptions import vector

Pose = tuple[np.ndarray, np.ndarray]  # position (m), unit quaternion (x, y, z, w)
HERE: Pose = (np.zeros(3), np.array([0.0, 0.0, 0.0, 1.0]))

POINT_KEYS = {
    "body": ("position",), "joint": ("position",), "rope": ("start", "end", "points"), "terrain": ("position",),
    "machine": ("position",),
}  # fmt: skip
VECTOR_KEYS = {"body": ("velocity", "angular_velocity"), "rope": ("velocity",)}
FRAME_KEYS = {"parent": "parent_frame", "child": "child_frame", "a": "at_a", "b": "at_b"}
"""By the key that names a body, the key of a place in its frame: the world's does not move with a part."""


def compose(around: Pose, given: dict[str, Any], who: str) -> Pose:
    """The pose of a part inside another; HERE itself where none is given."""
    if "position" not in given and "rotation" not in given:
        return around
    place = vector(given.get("position", (0.0, 0.0, 0.0)), who, "position (m)")
    turn = unit_quat(given.get("rotation", (0.0, 0.0, 0.0, 1.0)), who)
    return around[0] + quat_rotate(around[1], place), quat_multiply(around[1], turn)


def place_arguments(section: str, arguments: dict[str, Any], pose: Pose) -> dict[str, Any]:
    """The arguments of an entry as they are in the world, of one that was described in a part's frame."""
    out = dict(arguments)
    if section == "ground":
        raise SceneError("a ground belongs to the world, not to a part that is placed")
    held = out.get("relative_to", "world") != "world"  # it moves with another body of the part
    for key in POINT_KEYS.get(section, ()):
        if key in out and not held:
            out[key] = _moved(out[key], pose, key)
    for key in VECTOR_KEYS.get(section, ()):
        if key in out:
            out[key] = quat_rotate(pose[1], _points(out[key], key))
    if section == "body" and not held:
        out.setdefault("position", pose[0])
        out["rotation"] = _turned(out.get("rotation"), pose)
    if section == "terrain":
        _upright(pose, "a terrain")
        out.setdefault("position", pose[0])
    if section == "machine":
        out.setdefault("position", pose[0])
        out["heading"] = float(out.get("heading", 0.0)) + _upright(pose, "a machine")
    if section == "joint" and "parent_frame" not in out and "child_frame" not in out and "joint_a" not in out:
        out["rotation"] = _turned(out.get("rotation"), pose)
    for body, key in FRAME_KEYS.items():
        if out.get(body) == "world" and section in ("joint", "spring") and key in out:
            out[key] = _moved(out[key], pose, key) if key.startswith("at") else _frame(out[key], pose)
    if out.get({"frame": "body", "sensor": "on"}.get(section, "")) == "world":
        out["position"], out["rotation"] = _frame((out.get("position", (0, 0, 0)), out.get("rotation", (0, 0, 0, 1))), pose)
        if out.get("kind") == "distance":  # it has a place, and no axes
            del out["rotation"]
    if section == "cable" and _names_world(out.get("path")):
        raise SceneError("a cable of a part that is placed is not fixed to the world; tie it to a fixed body of the part")
    return out


def _points(value: Any, key: str) -> np.ndarray:
    numbers = as_numbers(value)
    if numbers.shape[-1:] != (3,):
        raise SceneError(f"{key} is three numbers, or a list of them, got {value!r}")
    return numbers


def _moved(value: Any, pose: Pose, key: str) -> np.ndarray:
    return np.asarray(pose[0] + quat_rotate(pose[1], _points(value, key)))


def _turned(rotation: Any, pose: Pose) -> np.ndarray:
    return quat_multiply(pose[1], unit_quat((0.0, 0.0, 0.0, 1.0) if rotation is None else rotation, "rotation"))


def _frame(frame: Any, pose: Pose) -> tuple[np.ndarray, np.ndarray]:
    if not isinstance(frame, list | tuple) or len(frame) != 2:
        raise SceneError(f"a frame is (position, rotation), got {frame!r}")
    return _moved(frame[0], pose, "frame position"), _turned(frame[1], pose)


def _upright(pose: Pose, what: str) -> float:
    """The heading (rad) of a pose that is turned about z alone."""
    if np.abs(pose[1][:2]).max() > 1e-9:
        raise SceneError(f"{what} stands upright: the rotation of its part is about z, got {pose[1].tolist()}")
    return float(2 * np.arctan2(pose[1][2], pose[1][3]))


def _names_world(path: Any) -> bool:
    if isinstance(path, list | tuple):
        return any(_names_world(item) for item in path)
    return path == "world" or getattr(path, "body", None) == "world"
