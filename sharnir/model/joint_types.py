"""Joints as data: a mask of free axes, and all that depends on a joint's type.

A joint has a frame on its parent and one on its child; it leaves some of the six relative axes of that frame free:

    slots     0 1 2 = translations x y z        3 4 5 = rotations rx ry rz

Two joint frames coincide when every coordinate is 0. Axes of translation are carried by the parent, and both bodies' rows
are taken at one common point, the child's anchor (theory: a joint). What a mask means for its rotations:

    free rotations   constrained rows                        coordinates
    0                all three, parent axes                  none
    1  (axis a)      the two perpendicular to a              an angle, turns are counted
    2  (a then b)    a on the parent × b on the child        two angles, R = R(a, α) R(b, β), turns are counted
    3                none                                    quaternion; speed = ω relative, in the parent's joint frame

A rod (`Distance`) is one translation row along the line of its two anchors; a `Gear` couples free axes of other joints.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypedDict, Unpack

import numpy as np
import warp as wp

from sharnir.core.journal import KeepsArguments
from sharnir.core.misspellings import Checked
from sharnir.core.spatial import direction_of, frame_from_axes
from sharnir.core.strided import table
from sharnir.core.types import quat, real, vec3
from sharnir.errors import SceneError, is_positive
from sharnir.model.actuators import Axis, Cardan, Drive, Engine, Friction, Limit, SwingTwist, describe_axes, motor_of

AXIS_NAMES = ("x", "y", "z", "rx", "ry", "rz")
LETTERS = ("x", "y", "z")
NO_ROTATION = (0.0, 0.0, 0.0, 1.0)


# ---- the description a user writes -----------------------------------------------------------------------------------


class Actions(TypedDict, total=False):
    """What acts on the free axes of a joint, by keyword; see `Joint`."""

    limit: Limit | Cardan | SwingTwist | Sequence[float] | Mapping[str, Any] | None
    friction: Friction | float | Mapping[str, Any] | None
    spring: Sequence[float] | Mapping[str, Any] | None
    damping: float | Mapping[str, float] | None
    drive: Drive | Mapping[str, Any] | None


@dataclass(frozen=True)
class Joint(KeepsArguments):
    """A joint that leaves the axes named in `free` free, such as `Joint("x rz")`; of two rotations the first is the parent's.

    Axes are those of the joint frame that `Scene.add_joint` places; `frame` turns them further (quaternion). What acts on the
    free axes is given by keyword, for every type of joint: one value for all axes, or a dict by axis name.

    Args:
        limit: (lower, upper) or `Limit(…)`; for three free rotations `Cardan(…)` or `SwingTwist(…)`.
        friction: bound (N, N·m) or `Friction(…)`; one value bounds the vector of the translations, and that of the rotations.
        spring: (stiffness, rest): N/m and m, or N·m/rad and rad. damping: N·s/m or N·m·s.
        drive: `Servo(…)`, `DCMotor(…)`, `Motor(…)`, `Engine(…)` or `HydraulicCylinder(…)`.
    """

    free: str | Sequence[str] = ()
    frame: tuple[float, float, float, float] = field(default=NO_ROTATION, kw_only=True)
    limit: Any = field(default=None, kw_only=True)
    friction: Any = field(default=None, kw_only=True)
    spring: Any = field(default=None, kw_only=True)
    damping: Any = field(default=None, kw_only=True)
    drive: Any = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if not isinstance(self.free, str | tuple | list):
            raise SceneError(f"{self.kind}: free axes are a text such as 'x rz', got {self.free!r}")
        names = tuple(self.free.split()) if isinstance(self.free, str) else tuple(self.free)
        for name in names:
            if name not in AXIS_NAMES:
                raise SceneError(f"{self.kind}: free axis {name!r} is unknown; allowed: {' '.join(AXIS_NAMES)}")
        if len(set(names)) != len(names):
            raise SceneError(f"{self.kind}: a free axis is named twice in {' '.join(names)!r}")
        moves = sorted((n for n in names if n in LETTERS), key=AXIS_NAMES.index)
        turns = [n for n in names if n not in LETTERS]
        if len(turns) != 2:  # the order matters for two rotations alone
            turns.sort(key=AXIS_NAMES.index)
        object.__setattr__(self, "free", (*moves, *turns))

    def axes(self, who: str) -> tuple[Axis, ...]:
        """What acts on each free axis, checked; `who` names the joint in messages."""
        return describe_axes(who, tuple(self.free), self.limit, self.friction, self.spring, self.damping, self.drive)

    @property
    def ball(self) -> Cardan | SwingTwist | None:
        """The limits of three free rotations."""
        return self.limit if isinstance(self.limit, Cardan | SwingTwist) else None

    @property
    def kind(self) -> str:
        """The name of the joint's type, for messages."""
        return type(self).__name__

    @property
    def turns(self) -> list[int]:
        """Which of the rotations 0, 1, 2 are free, in coordinate order."""
        return [AXIS_NAMES.index(n) - 3 for n in self.free if n not in LETTERS]

    @property
    def mask(self) -> int:
        """Bit i is set where slot i is free."""
        return sum(1 << AXIS_NAMES.index(n) for n in self.free)

    @property
    def q_size(self) -> int:
        """Number of coordinates: a quaternion for three free rotations, else one a free axis."""
        return len(self.free) + (len(self.turns) == 3)

    @property
    def v_size(self) -> int:
        """Number of speeds: one a free axis."""
        return len(self.free)


def _axis(kind: str, axis: str | Sequence[float], what: str = "axis") -> tuple[str | None, np.ndarray]:
    """The letter of an axis, if it is one without a minus, and its direction."""
    direction = direction_of(axis, f"{kind}: {what}")
    return (axis if isinstance(axis, str) and axis in LETTERS else None), direction


def _along(kind: str, axis: str | Sequence[float], what: str = "axis") -> tuple[str, tuple[float, ...]]:
    """The letter of an axis and the frame in which it has that letter (z for a general vector)."""
    letter, v = _axis(kind, axis, what)
    return (letter, NO_ROTATION) if letter else ("z", tuple(frame_from_axes(v)))


class Fixed(Joint):
    """No relative motion."""

    def __init__(self, **actions: Unpack[Actions]) -> None:
        super().__init__((), **actions)


class Revolute(Joint):
    """One rotation about `axis`, a letter or a vector in the joint frame."""

    def __init__(self, axis: str | Sequence[float] = "z", **actions: Unpack[Actions]) -> None:
        letter, frame = _along("Revolute", axis)
        super().__init__((f"r{letter}",), frame=frame, **actions)  # type: ignore[arg-type]


class Prismatic(Joint):
    """One translation along `axis`."""

    def __init__(self, axis: str | Sequence[float] = "z", **actions: Unpack[Actions]) -> None:
        letter, frame = _along("Prismatic", axis)
        super().__init__((letter,), frame=frame, **actions)  # type: ignore[arg-type]


class Cylindrical(Joint):
    """A translation along `axis` and a rotation about it."""

    def __init__(self, axis: str | Sequence[float] = "z", **actions: Unpack[Actions]) -> None:
        letter, frame = _along("Cylindrical", axis)
        super().__init__((letter, f"r{letter}"), frame=frame, **actions)  # type: ignore[arg-type]


class Universal(Joint):
    """Two rotations: about `axes[0]` of the parent, then about `axes[1]` of the child; the two are perpendicular."""

    def __init__(self, axes: Sequence[str | Sequence[float]] = ("x", "y"), **actions: Unpack[Actions]) -> None:
        if not isinstance(axes, Sequence | np.ndarray) or len(axes) != 2:
            raise SceneError(f"Universal: axes are two letters or vectors, got {axes!r}")
        (a, u), (b, v) = (_axis("Universal", axis, f"axes[{i}]") for i, axis in enumerate(axes))
        if abs(u @ v) > 1e-6:
            raise SceneError(f"Universal: the two axes are perpendicular, got {axes[0]} and {axes[1]} with cosine {u @ v:.3g}")
        if a and b:
            super().__init__((f"r{a}", f"r{b}"), **actions)
        else:
            super().__init__(("rx", "ry"), frame=tuple(frame_from_axes(u, v, slots=(0, 1))), **actions)


class Spherical(Joint):
    """Three rotations (a ball joint)."""

    def __init__(self, **actions: Unpack[Actions]) -> None:
        super().__init__(("rx", "ry", "rz"), **actions)


class Planar(Joint):
    """Two translations perpendicular to `normal` and a rotation about it."""

    def __init__(self, normal: str | Sequence[float] = "z", **actions: Unpack[Actions]) -> None:
        letter, frame = _along("Planar", normal, "normal")
        super().__init__((*(a for a in LETTERS if a != letter), f"r{letter}"), frame=frame, **actions)  # type: ignore[arg-type]


class Free(Joint):
    """All six axes free: no constraint, but coordinates of the child relative to the parent."""

    def __init__(self, **actions: Unpack[Actions]) -> None:
        super().__init__(AXIS_NAMES, **actions)


class PointOnLine(Joint):
    """The child's anchor stays on the line through the parent's anchor along `axis`; rotations are free."""

    def __init__(self, axis: str | Sequence[float] = "z", **actions: Unpack[Actions]) -> None:
        letter, frame = _along("PointOnLine", axis)
        super().__init__((letter, "rx", "ry", "rz"), frame=frame, **actions)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Distance(Joint):
    """A massless rod between an anchor on the parent and one on the child; `length` in m, or their distance at the start."""

    length: float | None = None

    def axes(self, who: str) -> tuple[Axis, ...]:
        """Nothing acts on a rod but its length."""
        return ()

    def __init__(self, length: float | None = None) -> None:
        if length is not None and not is_positive(length):
            raise SceneError(f"Distance: length is a positive finite number of m, got {length}")
        super().__init__(("y", "z", "rx", "ry", "rz"))  # x is the line of the rod
        object.__setattr__(self, "length", length)

    @property
    def q_size(self) -> int:
        """A rod has no coordinates of its own."""
        return 0

    @property
    def v_size(self) -> int:
        """A rod has no speeds of its own."""
        return 0


@dataclass(frozen=True)
class Gear(Checked):
    """Keeps q_a = ratio · q_b + what it was at the start; `joint_a`, `joint_b` name a joint with one free axis, or (joint, axis).

    A screw is a gear between the two axes of one cylindrical joint: `Gear(("nut", "z"), ("nut", "rz"), pitch / (2 * pi))`.
    """

    joint_a: str | tuple[str, str]
    joint_b: str | tuple[str, str]
    ratio: float = 1.0

    def __post_init__(self) -> None:
        if not isinstance(self.ratio, int | float | np.number) or not (np.isfinite(self.ratio) and self.ratio != 0):
            raise SceneError(f"Gear: ratio is a finite number other than 0, got {self.ratio}")


# ---- the same on the device ------------------------------------------------------------------------------------------


FRAME_FIELDS = ("parent_point", "parent_frame", "child_point", "child_frame")
"""Fields of JointTable that `attach` changes, per world."""


@wp.struct
class JointTable:
    """Constant data of all joints, indexed by joint; points from the centre of mass, in body axes (m)."""

    count: wp.int32
    parent: wp.array(dtype=wp.int32)
    child: wp.array(dtype=wp.int32)
    parent_point: wp.array2d(dtype=vec3)  # [joint, world] points and frames: shared by all worlds until a joint is attached
    child_point: wp.array2d(dtype=vec3)
    parent_frame: wp.array2d(dtype=quat)
    child_frame: wp.array2d(dtype=quat)
    free: wp.array(dtype=wp.int32)  # bit i: slot i is free
    turns: wp.array(dtype=wp.int32)  # number of free rotations
    first: wp.array(dtype=wp.int32)  # rotation axis a of the table above, 0..2
    second: wp.array(dtype=wp.int32)  # rotation axis b
    rod: wp.array(dtype=real)  # length of a rod, negative for every other joint
    q_start: wp.array(dtype=wp.int32)
    v_start: wp.array(dtype=wp.int32)
    v_size: wp.array(dtype=wp.int32)
    slot: wp.array2d(dtype=wp.int32)  # slot[i, joint] of the i-th speed
    break_force: wp.array(dtype=real)  # N, N·m: what it carries before it breaks; 1e30 if it does not
    break_torque: wp.array(dtype=real)
    ball: wp.array(dtype=wp.int32)  # limits of three free rotations: 0 none, 1 Cardan, 2 swing and twist


@wp.struct
class AxisTable:
    """What acts on free axes, [speed, world]; see `axes`. Shared by all worlds until it is varied (`tables`)."""

    group: wp.array(dtype=wp.int32)  # number, within the joint, of the first axis with which it shares a friction bound
    stiffness: wp.array2d(dtype=real)
    rest: wp.array2d(dtype=real)
    damping: wp.array2d(dtype=real)
    lower: wp.array2d(dtype=real)  # unused by a cone, whose half-angles are in `upper` of the first two rotations
    upper: wp.array2d(dtype=real)
    restitution: wp.array2d(dtype=real)
    resistance: wp.array2d(dtype=real)  # of a DC motor; 0 where there is none
    inductance: wp.array2d(dtype=real)
    torque_constant: wp.array2d(dtype=real)
    gear_ratio: wp.array2d(dtype=real)
    efficiency: wp.array2d(dtype=real)
    rotor_inertia: wp.array2d(dtype=real)
    implicit: wp.array2d(dtype=real)  # 1: laws are taken at the end of a step, always


@wp.struct
class DriveTable:
    """All drives that are no plain servo or motor (`laws.drives`); [drive], or [drive, column, world]."""

    count: wp.int32
    batteries: wp.int32
    kind: wp.array(dtype=wp.int32)
    joint: wp.array(dtype=wp.int32)
    axis: wp.array(dtype=wp.int32)  # number among the joint's speeds
    at: wp.array(dtype=wp.int32)  # the speed
    battery: wp.array(dtype=wp.int32)  # −1: none
    p: wp.array3d(dtype=real)
    curve: wp.array(dtype=real)  # all curves: of each its speeds, then its values
    cell: wp.array2d(dtype=real)  # [3 · battery + (voltage V, resistance Ω, capacity A·s), world]
    joints: JointTable  # the scene's own, without halves


@wp.struct
class GearTable:
    """Row i: speed[a] − ratio · speed[b] = 0, where an axis is (joint, number among its speeds)."""

    count: wp.int32
    joint_a: wp.array(dtype=wp.int32)
    joint_b: wp.array(dtype=wp.int32)
    axis_a: wp.array(dtype=wp.int32)
    axis_b: wp.array(dtype=wp.int32)
    ratio: wp.array(dtype=real)


def joint_tables(joints: Sequence[Any], worlds: int, device: Any) -> JointTable:
    """The device table of joints given as (joint, parent, child, parent_frame, child_frame, rod length)."""
    n = len(joints)
    t = JointTable()
    t.count = n
    q_sizes = [j.joint.q_size for j in joints]
    v_sizes = [j.joint.v_size for j in joints]

    def put(values: Any, dtype: Any, shape: tuple[int, ...] = ()) -> Any:
        return wp.array(np.array(values).reshape(n, *shape), dtype=dtype, device=device)

    t.parent = put([j.parent for j in joints], wp.int32)
    t.child = put([j.child for j in joints], wp.int32)
    for name in FRAME_FIELDS:
        dtype, size = (vec3, 3) if name.endswith("point") else (quat, 4)
        setattr(t, name, table(np.array([getattr(j, name) for j in joints]).reshape(n, size), dtype, worlds, device))
    t.free = put([j.joint.mask for j in joints], wp.int32)
    t.turns = put([len(j.joint.turns) for j in joints], wp.int32)
    t.first = put([(*j.joint.turns, 0)[0] for j in joints], wp.int32)
    t.second = put([(*j.joint.turns, 0, 0)[1] for j in joints], wp.int32)
    t.rod = put([j.rod for j in joints], real)
    t.break_force = put([min(j.break_force, 1e30) for j in joints], real)
    t.break_torque = put([min(j.break_torque, 1e30) for j in joints], real)
    t.q_start = put(np.cumsum([0, *q_sizes])[:-1], wp.int32)
    t.v_start = put(np.cumsum([0, *v_sizes])[:-1], wp.int32)
    t.v_size = put(v_sizes, wp.int32)
    slot = np.zeros((6, max(n, 1)), np.int32)
    for k, j in enumerate(joints):
        for i, name in enumerate(j.joint.free[: j.joint.v_size]):
            slot[i, k] = AXIS_NAMES.index(name)
    t.slot = wp.array(slot, dtype=wp.int32, device=device)
    kinds = {type(None): 0, Cardan: 1, SwingTwist: 2}
    t.ball = put([kinds[type(j.joint.ball)] for j in joints], wp.int32)
    return t


def axis_table(joints: Sequence[Any], worlds: int, device: Any) -> AxisTable:
    """The device table of what acts on the free axes of joints, given their descriptions."""
    rows: list[dict[str, Any]] = []
    for j in joints:
        limits = [axis.limit for axis in j.axes]
        if isinstance(j.joint.ball, Cardan):
            limits[-3:] = j.joint.ball.ranges
        elif isinstance(j.joint.ball, SwingTwist):
            limits[-3:] = [*(Limit(-np.inf, half) for half in j.joint.ball.cone), j.joint.ball.range]
        for axis, limit in zip(j.axes, limits, strict=True):
            motor = motor_of(axis.drive)
            row = {"group": axis.group, "stiffness": axis.stiffness, "rest": axis.rest, "damping": axis.damping}
            row |= {"lower": limit.lower, "upper": limit.upper, "restitution": limit.restitution}
            for name in ("resistance", "inductance", "torque_constant", "gear_ratio", "efficiency", "rotor_inertia"):
                row[name] = getattr(motor, name) if motor else 0.0
            row["implicit"] = float(isinstance(axis.drive, Engine))
            rows.append(row)
    t = AxisTable()
    for name in AxisTable.vars:  # type: ignore[attr-defined]
        values = [row[name] for row in rows]
        if name == "group":
            t.group = wp.array(values, dtype=wp.int32, device=device)
        else:
            setattr(t, name, table(values, real, worlds, device))
    return t
