"""Frames fixed to bodies, and what is measured between them, of balls and of ropes: true values, whenever they are asked for."""

from __future__ import annotations

from math import acos, asin, atan2
from typing import Any

import numpy as np

from sharnir.core.misspellings import Checked
from sharnir.core.spatial import cross, quat_conjugate, quat_multiply, quat_rotate, quat_to_matrix, unit_quat
from sharnir.errors import Bound, SimulationError, as_numbers
from sharnir.model.descriptions import FrameDescription

# The Simulation; it stands a floor above, so that it is not named here.
Owner = Any


class Frame(Checked, Bound):
    """A frame fixed to a body: markers, tools, the place of a sensor. Values have a leading world axis where worlds are several.

    Args:
        where: a body, or the name of a frame of the scene (`scene.add_frame`).
        position, rotation: in the body's frame, m and a unit quaternion (x, y, z, w).
    """

    __slots__ = ("_body", "_point", "_rotation", "_sim", "name")

    def __init__(self, sim: Owner, where: str, position: Any = (0.0, 0.0, 0.0), rotation: Any = (0.0, 0.0, 0.0, 1.0)) -> None:
        known: dict[str, FrameDescription] = sim.model.frames
        who = f"frame on {where!r}"
        self._sim, self.name = sim, where
        point, turn = self.place(who, position, rotation, SimulationError)
        if not isinstance(where, str):
            raise SimulationError(f"a frame or body is found by its name, got {where!r}")
        body = where
        if where in known:
            body, base, basis = known[where].body, known[where].position, known[where].rotation
            point, turn = base + quat_rotate(basis, point), quat_multiply(basis, turn)
        elif where not in sim.model.body_names:
            both = ", ".join(map(repr, [*sim.model.body_names, *known]))
            raise SimulationError(f"no body or frame is named {where!r}; available: {both}")
        self._body, self._point, self._rotation = sim.body(body), point, turn

    @staticmethod
    def place(who: str, position: Any, rotation: Any, error: type[Exception]) -> tuple[np.ndarray, np.ndarray]:
        """A position and a rotation in a body's frame, checked."""
        point, turn = as_numbers(position), unit_quat(rotation, who, error)
        if point.shape != (3,) or not np.isfinite(point).all():
            raise error(f"{who}: position is three finite numbers, got {position!r}")
        return point, turn

    def __repr__(self) -> str:
        return f"<frame {self.name!r} on body {self._body.name!r}>"

    def _turn(self) -> np.ndarray:
        return np.asarray(self._body.rotation)

    def _spread(self, vector: np.ndarray, like: np.ndarray) -> np.ndarray:
        return np.broadcast_to(vector, (*like.shape[:-1], len(vector)))

    def _arm(self) -> np.ndarray:
        """From the centre of mass, world axes."""
        turn, com = self._turn(), np.asarray(self._body.com)
        place = np.asarray(self._body.position) + quat_rotate(turn, self._spread(self._point, turn))
        return np.asarray(place - com)

    @property
    def position(self) -> Any:
        """(3,) m, world."""
        return np.asarray(self._body.com) + self._arm()

    @property
    def rotation(self) -> Any:
        """(4,) unit quaternion (x, y, z, w) of the frame in the world."""
        turn = self._turn()
        return quat_multiply(turn, self._spread(self._rotation, turn))

    @property
    def velocity(self) -> Any:
        """(3,) m/s of its origin, world axes."""
        return np.asarray(self._body.velocity) + cross(np.asarray(self._body.angular_velocity), self._arm())

    @property
    def angular_velocity(self) -> Any:
        """(3,) rad/s, world axes."""
        return self._body.angular_velocity

    def into(self, vector: Any) -> np.ndarray:
        """A vector of world axes in the frame's own."""
        turn = np.asarray(self.rotation)
        return quat_rotate(quat_conjugate(turn), np.broadcast_to(np.asarray(vector, float), (*turn.shape[:-1], 3)))


def distance(a: Frame, b: Frame) -> Any:
    """Between the origins of two frames, m."""
    out = np.linalg.norm(np.asarray(b.position) - np.asarray(a.position), axis=-1)
    return float(out) if out.ndim == 0 else out


def angle(a: Frame, b: Frame) -> Any:
    """By which one frame is turned against another, rad, 0 … π."""
    q = quat_multiply(quat_conjugate(np.asarray(a.rotation)), np.asarray(b.rotation))
    out = 2.0 * np.arctan2(np.linalg.norm(q[..., :3], axis=-1), np.abs(q[..., 3]))
    return float(out) if out.ndim == 0 else out


def cardan(q: Any) -> np.ndarray:
    """(3,) angles x, y, z of a quaternion R = R(x) R(y) R(z), rad: of a ball joint those that `Cardan` limits."""
    p = unit_quat(np.asarray(q, float), "cardan", SimulationError)
    if p.ndim > 1:
        return np.array([cardan(one) for one in p])
    R = quat_to_matrix(p)
    return np.array([atan2(-R[1, 2], R[2, 2]), asin(max(-1.0, min(1.0, float(R[0, 2])))), atan2(-R[0, 1], R[0, 0])])


def swing_twist(q: Any) -> np.ndarray:
    """(3,) swing about x and about y (a rotation vector across z), then twist about z, rad, of a quaternion: swing ∘ twist.

    The two that `SwingTwist` limits: of a ball joint, its swing's size and direction, and its twist.
    """
    p = unit_quat(np.asarray(q, float), "swing_twist", SimulationError)
    if p.ndim > 1:
        return np.array([swing_twist(one) for one in p])
    p = p if p[3] >= 0 else -p
    twist = 2.0 * atan2(p[2], p[3]) if p[2] ** 2 + p[3] ** 2 > 1e-24 else 0.0
    half = 0.5 * twist
    swing = quat_multiply(p, np.array([0.0, 0.0, -np.sin(half), np.cos(half)]))
    sine = float(np.hypot(swing[0], swing[1]))
    size = 2.0 * acos(max(-1.0, min(1.0, float(swing[3])))) / sine if sine > 1e-9 else 2.0
    return np.array([swing[0] * size, swing[1] * size, twist])


def tension(sim: Owner, rope: str) -> Any:
    """Largest tension along a rope in the last step, N."""
    values = sim.rope(rope).tension
    if sim.worlds == 1:
        return float(np.max(values))
    return np.array([np.max(world) for world in values])
