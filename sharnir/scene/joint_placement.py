"""Joints as a scene takes them: frames on both bodies, what a joint and its bodies must be, ends of gears."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np

from sharnir.core.spatial import in_degrees, quat_conjugate, quat_multiply, quat_rotate, unit_quat
from sharnir.errors import SceneError, as_numbers
from sharnir.model.actuators import Servo
from sharnir.model.descriptions import BodyDescription, JointDescription, vector
from sharnir.model.joint_types import AXIS_NAMES, Distance, Free, Joint
from sharnir.model.model import DYNAMIC

Frame = tuple[Sequence[float], Sequence[float]]
FAR_ANCHOR = 5.0  # widths of a body: an anchor farther away from it may be a mistake


def describe_joint(
    name: str, joint: Joint, bodies: tuple[BodyDescription, BodyDescription], at: tuple[int, int],
    frames: list[tuple[np.ndarray, np.ndarray]],
) -> JointDescription:  # fmt: skip
    """A joint between two bodies, at these places among the scene's, from its frame in each."""
    who = f"joint {name!r}"
    turn = np.asarray(joint.frame, float)
    points = [p - body.com for (p, _), body in zip(frames, bodies, strict=True)]
    quats = [quat_multiply(q, turn) for _, q in frames]
    axes = joint.axes(f"{who} ({joint.kind})")
    made = JointDescription(name, joint, *at, points[0], points[1], quats[0], quats[1], axes)
    if isinstance(joint, Distance):
        ends = [body.position + quat_rotate(body.rotation, p) for (p, _), body in zip(frames, bodies, strict=True)]
        made.rod = float(np.linalg.norm(ends[1] - ends[0])) if joint.length is None else joint.length
        if made.rod < 1e-9 or np.linalg.norm(ends[1] - ends[0]) < 1e-9:
            raise SceneError(f"{who}: the ends of a rod are apart, here both are at {ends[0].tolist()}; use Spherical()")
    for body, point in zip(bodies, points, strict=True):
        if body.motion == DYNAMIC and not np.any(body.inertia):
            check_point_mass(made, body, float(np.linalg.norm(point)))
    return made


def with_drive(old: JointDescription, drive: Any) -> JointDescription:
    """The same joint with another drive; a servo without a bound gets that of the servo before."""
    who = f"joint {old.name!r} ({old.joint.kind})"
    if not hasattr(old.joint, "drive"):
        raise SceneError(f"set_drive: {who} takes no drive")
    before = old.joint.drive
    if isinstance(drive, Servo) and isinstance(before, Servo) and not np.isfinite(drive.max_force):
        drive = replace(drive, max_force=before.max_force)
    joint = copy(old.joint)
    object.__setattr__(joint, "drive", drive)
    return replace(old, joint=joint, axes=joint.axes(who))


def limits_in_degrees(made: JointDescription) -> str:
    """A question where the limits of a rotation look like degrees; "" where they do not."""
    turns = [axis.limit for name, axis in zip(made.joint.free, made.axes, strict=False) if name.startswith("r")]
    questions = (in_degrees(f"joint {made.name!r}: a limit", (limit.lower, limit.upper)) for limit in turns)
    return next(filter(None, questions), "")


def check_flags(who: str, **flags: Any) -> None:
    """Refuse what is not True or False."""
    for what, value in flags.items():
        if not isinstance(value, bool):
            raise SceneError(f"{who}: {what} is True or False, got {value!r}")


def check_point_mass(made: JointDescription, body: BodyDescription, arm: float) -> None:
    """Refuse what would turn a point mass; `arm` is the distance of the joint from it, m."""
    who, joint = f"joint {made.name!r}", made.joint
    if joint.mask >> 3 != 7 or arm > 1e-9:
        raise SceneError(
            f"{who}: body {body.name!r} is a point mass and takes only joints at its centre that leave all rotations "
            f"free (Spherical, PointOnLine, Distance), got {joint.kind} {arm:g} m off it"
        )
    if joint.v_size >= 3 and (joint.ball is not None or any(axis.acts for axis in made.axes[joint.v_size - 3 : joint.v_size])):
        raise SceneError(
            f"{who}: body {body.name!r} is a point mass, which does not turn: no limit, friction, spring or drive can "
            "act on the rotations of its joint; give it a shape or an inertia"
        )


def width(body: BodyDescription) -> float:
    """m: the diagonal of a box with the mass and inertia of a body; inf for a body that is not dynamic or is a point mass."""
    if body.motion != DYNAMIC or not np.any(body.inertia):
        return np.inf
    return float(np.sqrt(6 * np.trace(body.inertia) / body.mass))


def far_from_both(made: JointDescription, bodies: tuple[BodyDescription, BodyDescription]) -> str | None:
    """A warning for an anchor that is more than FAR widths away from each of the two bodies, both dynamic; else None."""
    if isinstance(made.joint, Free | Distance):
        return None
    arms = [float(np.linalg.norm(point)) for point in (made.parent_point, made.child_point)]
    widths = [width(body) for body in bodies]
    if not all(arm > FAR_ANCHOR * wide for arm, wide in zip(arms, widths, strict=True)):
        return None
    each = " and ".join(
        f"{arm:.3g} m from body {body.name!r} ({wide:.3g} m wide)" for arm, body, wide in zip(arms, bodies, widths, strict=True)
    )
    return f"joint {made.name!r}: its anchor is {each}; is it meant to be there?"


def neighbours(joints: Sequence[JointDescription]) -> list[tuple[int, int, int]]:
    """(body, body, joint) by index, of joints that keep their two bodies from touching while they are enabled.

    `Free` and `Distance` leave bodies far apart. The world's shapes are its grounds: only a weld, which leaves nothing for a
    contact to do, excludes them.
    """
    return [
        (j.parent, j.child, k)
        for k, j in enumerate(joints)
        if not isinstance(j.joint, Free | Distance) and (0 not in (j.parent, j.child) or j.joint.mask == 0)
    ]


def joint_frames(
    who: str, joint: Joint, a: BodyDescription, b: BodyDescription,
    position: Any, rotation: Any, parent_frame: Frame | None, child_frame: Frame | None,
) -> list[tuple[np.ndarray, np.ndarray]]:  # fmt: skip
    """The joint frame in each body's own frame."""
    still = (0.0, 0.0, 0.0, 1.0)
    if parent_frame is not None or child_frame is not None:
        if position is not None or rotation is not None:
            raise SceneError(f"{who}: give either position and rotation, or parent_frame and child_frame")
        given = [(f if f is not None else ((0.0, 0.0, 0.0), still)) for f in (parent_frame, child_frame)]
        for what, f in zip(("parent_frame", "child_frame"), given, strict=True):
            if len(f) != 2:
                raise SceneError(f"{who}: {what} is (position, rotation), got {f!r}")
        return [(vector(p, who, "frame position (m)"), unit_quat(q, who)) for p, q in given]
    if position is None:
        if not isinstance(joint, Free):
            raise SceneError(f"{who}: give position= (world anchor, m), or parent_frame= and child_frame=")
        position = b.position
    points = [position, position]
    if isinstance(joint, Distance):
        if as_numbers(position).shape != (2, 3):
            raise SceneError(f"{who}: a Distance takes two points, position=(on the parent, on the child), got {position}")
        points = list(position)
    turn = unit_quat(still if rotation is None else rotation, who)
    frames = []
    for body, point in zip((a, b), points, strict=True):
        back = quat_conjugate(body.rotation)
        frames.append((quat_rotate(back, vector(point, who, "position (m)") - body.position), quat_multiply(back, turn)))
    return frames


def gear_axis(joints: dict[str, JointDescription], who: str, end: str | tuple[str, str]) -> tuple[int, int]:
    """(joint, number of the axis among its speeds) of one end of a gear."""
    if not isinstance(end, str) and not (isinstance(end, tuple | list) and len(end) == 2):
        raise SceneError(f"{who}: an end of a gear is a joint's name or (joint, axis), got {end!r}")
    name, axis = (end, None) if isinstance(end, str) else end
    if name not in joints:
        raise SceneError(f"{who}: {name!r} is not a joint of the scene; available: {', '.join(map(repr, joints)) or 'none'}")
    joint = joints[name].joint
    if axis is None and joint.v_size == 1:
        axis = joint.free[0]
    if axis not in joint.free[: joint.v_size] or (axis in AXIS_NAMES[3:] and len(joint.turns) == 3):
        allowed = [a for a in joint.free[: joint.v_size] if a in AXIS_NAMES[:3] or len(joint.turns) < 3]
        if not allowed:
            raise SceneError(f"{who}: joint {name!r} ({joint.kind}) has no single angle or slide that a gear could couple")
        words = f"{joint.kind} has {len(allowed)}, say which" if axis is None else f"got {axis!r}"
        raise SceneError(
            f"{who}: a gear takes one angle or slide of joint {name!r}: {words}; allowed: {', '.join(map(repr, allowed))}"
        )
    return list(joints).index(name), joint.free.index(axis)
