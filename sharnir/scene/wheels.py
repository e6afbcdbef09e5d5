"""Belts, and wheels without a body of their own, as a scene takes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sharnir.collision.describe import Belt, Cast
from sharnir.collision.material import Material
from sharnir.core.spatial import quat_rotate
from sharnir.errors import SceneError, is_positive, number
from sharnir.geometry.shapes import Shape
from sharnir.model.actuators import Servo
from sharnir.model.descriptions import vector


def raycast_wheel(
    self: Any, name: str, body: str, shape: Shape, *, axis: Sequence[float], radius: float, inertia: float,
    material: Material | None = None, rolling: float = 0.0, drive: Servo | None = None, brake: float = 0.0, speed: float = 0.0,
) -> str:  # fmt: skip
    """A wheel of a body that has no body of its own: where its shape touches deepest it is a point of that body with a tyre.

    Its turning is one number, which the ground and its drive act on. It is quicker than a wheel on a hinge, and needs
    solver="sequential". What turns it turns the body through the ground alone: that its own spin has an angular momentum is left
    out. `sharnir.runtime.raycast_wheels.wheel(sim, name)` reads and commands it.

    Args:
        shape: in the frame of the body; a disc or ball. axis: of the axle, in that frame; positive turns roll towards axis × up.
        radius: m, at which it rolls. inertia: kg·m² about the axle.
        material: how it rubs, along the axle first; with `stiffness` and `damping` the point is its suspension, along the normal
            of the ground.
        rolling: rolling resistance, force a load. drive: a Servo of its speed or torque (kp 0).
        brake: N·m, at which it holds. speed: rad/s at the start.
    """
    who = f"wheel {name!r}"
    if not isinstance(name, str) or not name:
        raise SceneError(f"{who}: the name of a raycast wheel is a text that is not empty")
    owner = self._body(who, "body", body)
    if name in [cast.name for cast in self.touch.casts]:
        raise SceneError(f"{who}: there is a raycast wheel of that name already")
    if not isinstance(shape, Shape):
        raise SceneError(f"{who}: shape is a Shape in the frame of its body, got {shape!r}")
    along = vector(axis, who, "axis")
    if not np.linalg.norm(along) > 0:
        raise SceneError(f"{who}: axis is a vector that is not 0, got {axis!r}")
    for what, value in (("radius (m)", radius), ("inertia (kg·m²)", inertia)):
        if not is_positive(value):
            raise SceneError(f"{who}: {what} is a positive finite number, got {value!r}")
    if drive is not None and (not isinstance(drive, Servo) or drive.kp != 0):
        raise SceneError(f"{who}: a raycast wheel's drive is a Servo of its speed or torque, with kp=0, got {drive!r}")
    servo = drive or Servo()
    number(who, "rolling", rolling, least=0.0)
    commands = (servo.torque, servo.velocity, servo.kd, min(servo.max_force, 1e30), number(who, "brake (N·m)", brake, least=0.0))
    belt = Belt(0, list(self.bodies).index(owner.name), along / np.linalg.norm(along), float(radius))
    k = len(self.touch.belts)
    self.touch.add_belt(owner.name, shape, belt, material, who)
    start = number(who, "speed (rad/s)", speed)
    self.touch.casts.append(Cast(name, k, float(inertia), float(rolling) * float(radius), start, commands))
    return name


def add_belt(
    self: Any, joint: str, body: str, shapes: Shape | Sequence[Shape], *, radius: float, material: Material | None = None
) -> None:
    """Shapes of a body, besides what it has, whose surface runs as a hinge turns, as of a track or a driven conveyor.

    What touches them acts on the body and, along the belt, on the hinge, whose drive, friction and inertia are the belt's.

    Args:
        joint: the hinge; its child turns with the belt, positive as a wheel would that the belt is wound on.
        shapes: one or several, in the frame of the body.
        radius: m, of the belt's way a radian of the hinge.
        material: how the belt rubs; `Material()` if None.
    """
    who = f"belt of joint {joint!r}"
    owner = self._body(who, "body", body)
    hinges = [n for n, j in self.joints.items() if j.joint.free in (("rx",), ("ry",), ("rz",))]
    if joint not in hinges:
        raise SceneError(f"{who}: a belt runs with a hinge; available: {', '.join(map(repr, hinges)) or 'none'}")
    if not is_positive(radius):
        raise SceneError(f"{who}: radius is a positive finite number (m), got {radius!r}")
    hinge = self.joints[joint]
    axis = quat_rotate(hinge.parent_frame, np.eye(3)["xyz".index(hinge.joint.free[0][1])])
    self.touch.add_belt(owner.name, shapes, Belt(hinge.child, hinge.parent, axis, float(radius)), material, who)
