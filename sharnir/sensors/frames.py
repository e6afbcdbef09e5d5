"""What real sensors would measure, read off a running simulation: frames, IMU, force and torque, distances, angles of balls.

tool = sh.sensors.Frame(sim, "wrist", position=(0, 0, 0.1))
imu = sh.sensors.IMU(sim, "tool")            # a frame that `scene.add_frame` gave a name
sim.step(); imu.acceleration, imu.rate, tool.position
"""

from __future__ import annotations

from math import acos, asin, atan2
from typing import Any

import numpy as np

from sharnir.descriptions import FrameDescription
from sharnir.errors import SimulationError, as_numbers
from sharnir.spatial import cross, quat_conjugate, quat_multiply, quat_rotate, quat_to_matrix, unit_quat

# The Simulation; it stands a floor above, so that it is not named here.
Owner = Any


class Frame:
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
        point, turn = as_numbers(position), unit_quat(rotation, who, SimulationError)
        if not isinstance(where, str):
            raise SimulationError(f"a frame or body is found by its name, got {where!r}")
        if point.shape != (3,) or not np.isfinite(point).all():
            raise SimulationError(f"{who}: position is three finite numbers, got {position!r}")
        body = where
        if where in known:
            body, base, basis = known[where].body, known[where].position, known[where].rotation
            point, turn = base + quat_rotate(basis, point), quat_multiply(basis, turn)
        elif where not in sim.model.body_names:
            both = ", ".join(map(repr, [*sim.model.body_names, *known]))
            raise SimulationError(f"no body or frame is named {where!r}; known: {both}")
        self._body, self._point, self._rotation = sim.body(body), point, turn

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
        return np.asarray(self._body.velocity) + cross(np.asarray(self._body.spin), self._arm())

    @property
    def spin(self) -> Any:
        """(3,) rad/s, world axes."""
        return self._body.spin

    def into(self, vector: Any) -> np.ndarray:
        """A vector of world axes in the frame's own."""
        turn = np.asarray(self.rotation)
        return quat_rotate(quat_conjugate(turn), np.broadcast_to(np.asarray(vector, float), (*turn.shape[:-1], 3)))


class IMU(Frame):
    """Accelerometer and gyroscope in a frame: call `update()` once after every step; noise and bias are added if they are given.

    The acceleration is the change of the frame's velocity over the last step, less gravity.

    Args:
        noise: standard deviations (m/s², rad/s) of a reading. bias: (3,) or a number each, the same way. seed: of the noise.
    """

    __slots__ = ("_bias", "_last", "_noise", "_rng", "acceleration", "rate")

    def __init__(
        self, sim: Owner, where: str, position: Any = (0.0, 0.0, 0.0), rotation: Any = (0.0, 0.0, 0.0, 1.0), *,
        noise: tuple[float, float] = (0.0, 0.0), bias: tuple[Any, Any] = (0.0, 0.0), seed: int = 0,
    ) -> None:  # fmt: skip
        super().__init__(sim, where, position, rotation)
        if len(noise) != 2 or not all(np.isfinite(n) and n >= 0 for n in noise):
            raise SimulationError(f"IMU on {where!r}: noise is two standard deviations of at least 0, got {noise!r}")
        self._noise, self._bias, self._rng = noise, bias, np.random.default_rng(seed)
        self._last: tuple[float, Any] = (sim.time, self.velocity)
        self.acceleration: Any = self.into(-sim.gravity)
        """(3,) m/s² in the frame's axes: what an accelerometer shows; at rest it points up."""
        self.rate: Any = self.into(self.spin)
        """(3,) rad/s in the frame's axes."""

    def update(self) -> None:
        """Read it: to be called after a step."""
        now, velocity = self._sim.time, self.velocity
        before, old = self._last
        if now <= before:
            self._last = (now, velocity)
            return
        self._last = (now, velocity)
        pull = self.into((velocity - old) / (now - before) - self._sim.gravity)
        values = [pull, self.into(self.spin)]
        for i, (sigma, bias) in enumerate(zip(self._noise, self._bias, strict=True)):
            values[i] = values[i] + np.asarray(bias, float)
            if sigma > 0:
                values[i] = values[i] + self._rng.normal(0.0, sigma, values[i].shape)
        self.acceleration, self.rate = values


class ForceTorque:
    """A force/torque sensor in a joint: what the parent does to the child, in the axes of a frame.

    Args:
        joint: its name. frame: in whose axes; those of the joint's child if None.
    """

    __slots__ = ("_frame", "_joint")

    def __init__(self, sim: Owner, joint: str, frame: Frame | None = None) -> None:
        self._joint = sim.joint(joint)
        names = {i: n for n, i in sim.model.body_names.items()}
        self._frame = Frame(sim, names[int(sim.model.children[sim.model.joint_names[joint]])]) if frame is None else frame

    @property
    def force(self) -> Any:
        """(3,) N in the last step."""
        return self._frame.into(self._joint.reaction[0])

    @property
    def torque(self) -> Any:
        """(3,) N·m in the last step, at the joint's anchor."""
        return self._frame.into(self._joint.reaction[1])


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
