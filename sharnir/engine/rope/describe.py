"""What a user says of a rope, checked: its shape at the start, its material, what holds its ends."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from sharnir.collision.material import Material, checked
from sharnir.core.spatial import frame_from_axes, quat_conjugate, quat_exp, quat_log, quat_multiply, quat_rotate
from sharnir.errors import SceneError, as_numbers, is_positive
from sharnir.model.model import MOTIONS

AIR = 1.225  # kg/m³
SOLVED = 1e-13
MAX_SEGMENTS = 20_000  # of one rope
TWISTED = 2.0 * np.pi / 3.0  # rad, of an element against the next: beyond it moments are no longer in proportion (`rope.means`)


@dataclass
class RopeEnd:
    """What holds an end: a body (None: none), the point in its frame, from its centre of mass, and the frame if clamped.

    Or another rope, at one of its points.
    """

    body: int | None = None
    rope: tuple[str, int] | None = None
    clamp: bool = False
    point: np.ndarray = field(default_factory=lambda: np.zeros(3))
    frame: np.ndarray = field(default_factory=lambda: np.array([0.0, 0.0, 0.0, 1.0]))


@dataclass
class RopeTie:
    """A body tied to a point of a rope; the point is in its frame, from its centre of mass."""

    at: int
    body: int
    point: np.ndarray


class Winch(NamedTuple):
    """A joint that winds a rope, by number, as its bodies are; the drum's radius, m, and the axis in the child's axes."""

    joint: int = -1
    child: int = 0
    parent: int = 0
    radius: float = 0.0
    axis: Any = (0.0, 0.0, 1.0)


@dataclass
class RopeDescription:
    """A rope as described, from its first end to its last: SI units, world axes."""

    name: str
    points: np.ndarray  # (n + 1, 3)
    lengths: np.ndarray  # (n,)
    rotations: np.ndarray  # (n, 4) of the elements
    velocity: np.ndarray  # (n + 1, 3)
    density: float  # kg/m
    radius: float
    EI: float
    GJ: float
    rest: np.ndarray  # (n + 1, 3) û at the interfaces
    damping: float
    drag: float
    air: float
    strength: float
    rod: bool  # elements are never slack
    ends: tuple[RopeEnd, RopeEnd]
    reel: int  # the end from which it is paid out, or −1
    longest: float  # m
    winch: Winch | None = None
    ties: list[RopeTie] = field(default_factory=list)
    material: Material = field(default_factory=Material)
    collide: bool = True
    ignored: set[str] = field(default_factory=set)  # bodies and ropes that it does not touch, by name
    apart: set[int] = field(default_factory=set)  # bodies that it does not touch: those, and what holds it


# ---- shapes -----------------------------------------------------------------------------------------------------------------


def segment_lengths(who: str, length: float, segments: Any) -> np.ndarray:
    """Lengths of the segments: a number of equal ones, or their relative lengths."""
    if isinstance(segments, int | np.integer) and not isinstance(segments, bool):
        if not 1 <= segments <= MAX_SEGMENTS:
            raise SceneError(f"{who}: segments is a whole number from 1 to {MAX_SEGMENTS}, or relative lengths, got {segments!r}")
        return np.full(int(segments), length / int(segments))
    parts = as_numbers(segments)
    if parts.ndim != 1 or len(parts) < 1 or not np.all(np.isfinite(parts)) or np.any(parts <= 0):
        raise SceneError(f"{who}: segments is a whole number of at least 1, or positive relative lengths, got {segments!r}")
    return np.asarray(parts * (length / parts.sum()))


def hanging(who: str, start: np.ndarray, end: np.ndarray, lengths: np.ndarray, gravity: np.ndarray) -> np.ndarray:
    """Points of a chain of links that hangs from both ends: link j points along F + w_j, −w_j the weight of points 1 … j.

    Its force F at the start solves Σ l (F + w)/|F + w| = end − start, the gradient of a convex function: Newton's method, damped.
    """
    total = lengths.sum()
    span = end - start
    down = gravity / np.linalg.norm(gravity) if np.any(gravity) else np.array([0.0, 0.0, -1.0])
    w = np.concatenate([[0.0], np.cumsum(0.5 * (lengths[:-1] + lengths[1:]))])[:, None] / total * -down
    level = span - down * (span @ down)
    if np.linalg.norm(level) < 1e-6 * total:  # a fold: a little aside, so that no link is without direction
        level = np.cross(down, np.eye(3)[np.argmin(np.abs(down))])
    level = level / np.linalg.norm(level)
    F = 0.5 * down + 0.1 * level

    def value(F: np.ndarray) -> float:
        return float(lengths @ np.linalg.norm(F + w, axis=1) - F @ span)

    d = np.zeros_like(w)
    for _ in range(200):
        f = F + w
        size = np.maximum(np.linalg.norm(f, axis=1), 1e-12)
        d = f / size[:, None]
        off = lengths @ d - span
        if np.linalg.norm(off) < SOLVED * total:
            break
        H = (lengths / size).sum() * np.eye(3) - np.einsum("i,ij,ik->jk", lengths / size, d, d)
        step = -np.linalg.solve(H + 1e-14 * np.trace(H) * np.eye(3), off)
        scale = 1.0
        while scale > 1e-12 and value(F + scale * step) > value(F) + 1e-4 * scale * (off @ step):
            scale *= 0.5
        F = F + scale * step
    if np.linalg.norm(lengths @ d - span) > 1e-8 * total:
        d = fold(who, span, lengths, F + w, level)
    return np.asarray(start + np.concatenate([np.zeros((1, 3)), np.cumsum(lengths[:, None] * d, 0)]))


def fold(who: str, span: np.ndarray, lengths: np.ndarray, f: np.ndarray, level: np.ndarray) -> np.ndarray:
    """Directions of links (n, 3) that lead over `span`, where one link is too long for the place at which a chain turns round.

    Such a chain (its ends are nearly one above the other) has no place to rest: that link, where the force f is next to nothing,
    and one beside it are laid out as two sides of a triangle.
    """
    j = int(np.argmin(np.linalg.norm(f, axis=1)))
    d = f - f[j]
    d[j] = level
    d = d / np.linalg.norm(d, axis=1)[:, None]
    for k in (j + 1, j - 1):
        if 0 <= k < len(lengths):
            rest = span - lengths @ d + lengths[j] * d[j] + lengths[k] * d[k]
            size = float(np.linalg.norm(rest))
            if abs(lengths[j] - lengths[k]) <= size <= lengths[j] + lengths[k]:
                along = rest / size if size > 0 else level
                across = level - along * (level @ along)
                if np.linalg.norm(across) < 1e-6:
                    across = np.cross(along, np.eye(3)[np.argmin(np.abs(along))])
                across = across / np.linalg.norm(across)
                part = 0.5 * (size + (lengths[j] ** 2 - lengths[k] ** 2) / size) if size > 0 else 0.0
                height = np.sqrt(max(lengths[j] ** 2 - part**2, 0.0))
                d[j] = (along * part + across * height) / lengths[j]
                d[k] = (rest - lengths[j] * d[j]) / lengths[k]
                return np.asarray(d)
    raise SceneError(
        f"{who}: a segment of {lengths[j]:g} m does not fit where it turns round, beside its neighbours; use more segments"
    )


def along(curve: np.ndarray, parts: np.ndarray) -> np.ndarray:
    """Points of a polyline at fractions of its length."""
    at = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(curve, axis=0), axis=1))])
    where = np.concatenate([[0.0], np.cumsum(parts)]) / parts.sum() * at[-1]
    return np.stack([np.interp(where, at, curve[:, k]) for k in range(3)], 1)


def element_frames(points: np.ndarray, twist: np.ndarray) -> np.ndarray:
    """Orientations of the elements: third axis along each, no twist from one to the next but the given angles (n,)."""
    d = np.diff(points, axis=0)
    d /= np.linalg.norm(d, axis=1)[:, None]
    q = frame_from_axes(d[0])
    out = []
    for j, t in enumerate(d):
        if j:
            axis = np.cross(d[j - 1], t)
            turn = np.array([*axis, 1.0 + d[j - 1] @ t])
            if np.linalg.norm(turn) < 1e-9:
                turn = np.array([*quat_rotate(q, np.array([1.0, 0.0, 0.0])), 0.0])
            q = quat_multiply(turn / np.linalg.norm(turn), q)
        out.append(quat_multiply(q, quat_exp(np.array([0.0, 0.0, twist[j]]))))
    return np.array(out)


def end_frame(rotations: np.ndarray, last: bool) -> np.ndarray:
    """The frame at an end of the rope's axis: half an element's turn beyond the outermost element."""
    if len(rotations) == 1:
        return np.asarray(rotations[0])
    a, b = (rotations[-2], rotations[-1]) if last else (rotations[1], rotations[0])
    turn = quat_log(quat_multiply(quat_conjugate(a), b))
    return quat_multiply(b, quat_exp(0.5 * turn))


# ---- the description --------------------------------------------------------------------------------------------------------


def at_least(who: str, what: str, value: Any, least: float = 0.0) -> float:
    """A finite number of at least `least`, or a SceneError."""
    v = as_numbers(value)
    if v.ndim or not np.isfinite(v) or v < least:
        raise SceneError(f"{who}: {what} is a finite number of at least {least:g}, got {value!r}")
    return float(v)


def finite(who: str, what: str, allowed: str, value: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Finite numbers that fill a shape as numpy's rules say, or a SceneError that says what is allowed."""
    try:
        v = np.broadcast_to(np.asarray(value, float), shape)
    except (TypeError, ValueError):
        v = np.full(shape, np.nan)
    if not np.all(np.isfinite(v)):
        raise SceneError(f"{who}: {what} is {allowed}, got {value!r}")
    return v


def shape_points(
    who: str, start: Any, end: Any, points: Any, length: float | None, segments: Any, gravity: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Points and lengths of the segments at the start: straight, hanging, along a polyline or a curve."""
    if (points is None) == (start is None or end is None):
        raise SceneError(f"{who}: give start= and end=, or points= (a polyline, or a function of a fraction 0 … 1)")
    if points is None:
        for what, p in (("start", start), ("end", end)):
            if as_numbers(p).shape != (3,):
                raise SceneError(f"{who}: {what} is three finite numbers (m), got {p!r}")
        a, b = (finite(who, what, "three finite numbers (m)", p, (3,)) for what, p in (("start", start), ("end", end)))
        distance = float(np.linalg.norm(b - a))
        total = distance if length is None else length
        if total <= 0:
            raise SceneError(f"{who}: start and end are one point {a.tolist()}; give length= (m) for a rope that hangs from it")
        if total < distance * (1.0 - 1e-9):
            raise SceneError(f"{who}: a rope of {total:g} m does not reach over {distance:g} m from start to end")
        lengths = segment_lengths(who, total, segments)
        if total > distance * (1.0 + 1e-9):
            if 2 * lengths.max() > (total + distance) * (1.0 - 1e-9):  # the others do not lead back from its end
                raise SceneError(
                    f"{who}: a segment of {lengths.max():g} m does not fit in a rope of {total:g} m that hangs between ends "
                    f"{distance:g} m apart; use more segments"
                )
            return hanging(who, a, b, lengths, gravity), lengths
        s = np.concatenate([[0.0], np.cumsum(lengths)]) / total
        return a + s[:, None] * (b - a), lengths
    given = [points(x) for x in np.linspace(0.0, 1.0, 2001)] if callable(points) else points
    fine = as_numbers(given)
    if fine.ndim != 2 or fine.shape[1] != 3 or len(fine) < 2 or not np.all(np.isfinite(fine)):
        raise SceneError(f"{who}: points is two or more points (m), or a function that returns one, got shape {fine.shape}")
    placed = along(fine, segment_lengths(who, 1.0, segments))
    lengths = np.linalg.norm(np.diff(placed, axis=0), axis=1)
    if np.any(lengths <= 1e-9 * lengths.sum()):
        raise SceneError(f"{who}: its points fold back on themselves; use more segments")
    if length is not None and abs(length / lengths.sum() - 1.0) > 0.02:
        raise SceneError(f"{who}: its points lie on {lengths.sum():g} m, length= says {length:g} m; give one of them")
    return placed, lengths


def describe(
    name: str, start: Any, end: Any, *, points: Any, length: Any, segments: Any, radius: Any, density: Any, mass_per_length: Any,
    E: Any, G: Any, EI: Any, GJ: Any, rest_curvature: Any, rest_twist: Any, twist: Any, damping: Any, drag: Any,
    drag_coefficient: Any, breaking_load: Any, rod: Any, reel: Any, longest: Any, velocity: Any, gravity: np.ndarray,
) -> RopeDescription:  # fmt: skip
    """A rope, its ends free. What is given is unchecked; `Scene.add_rope` says what each is, and its default."""
    who = f"rope {name!r}"
    numbers = {"radius": radius, "density": density, "length": length, "mass_per_length": mass_per_length}
    for what, value in (numbers | {"breaking_load (N)": breaking_load}).items():
        if value is not None and not is_positive(value):
            raise SceneError(f"{who}: {what} is a positive finite number, got {value!r}")
    placed, lengths = shape_points(who, start, end, points, length, segments, gravity)
    n = len(lengths)
    total = float(lengths.sum())
    if (E is not None and EI is not None) or (G is not None and GJ is not None):
        raise SceneError(f"{who}: give a material (E, G) or measured stiffnesses (EI, GJ), not both")
    bend = at_least(who, "EI (N·m²)", EI if EI is not None else at_least(who, "E (Pa)", E or 0.0) * np.pi * radius**4 / 4)
    turn = at_least(who, "GJ (N·m²)", GJ if GJ is not None else at_least(who, "G (Pa)", G or 0.0) * np.pi * radius**4 / 2)
    middle = np.cumsum(lengths) - 0.5 * lengths
    rest = np.zeros((n + 1, 3))
    each = f"or one of them for each of {n + 1} places"
    two = f"two finite numbers (1/m, about the element's first two axes), {each}"
    rest[:, :2] = finite(who, "rest_curvature", two, rest_curvature, (n + 1, 2))
    rest[:, 2] = finite(who, "rest_twist", f"a finite number (rad/m), {each}", rest_twist, (n + 1,))
    turned = float(finite(who, "twist", "a finite number (rad)", twist, ()))
    speeds = finite(who, "velocity", f"three finite numbers (m/s), or three for each of {n + 1} points", velocity, (n + 1, 3))
    turns = (
        np.interp(middle, np.concatenate([[0.0], np.cumsum(lengths)]), np.cumsum(rest[:, 2]) * total / n) - rest[0, 2] * total / n
    )
    each_turn = abs(turned) * float(np.diff(middle).max(initial=0.0)) / total
    if turn > 0 and each_turn > TWISTED:
        needed = int(np.ceil(n * each_turn / TWISTED))
        raise SceneError(
            f"{who}: twist of {turned:g} rad over {n} segments turns one against the next by {each_turn:.3g} rad; up to "
            f"{TWISTED:.3g} rad their moment is in proportion, so give segments={needed} or more"
        )
    rotations = element_frames(placed, turns + turned * middle / total)
    if not isinstance(rod, bool | np.bool_):
        raise SceneError(f"{who}: rod is True (elements that push like rods) or False, got {rod!r}")
    strength = float("inf")
    if breaking_load is not None:
        strength = at_least(who, "breaking_load (N)", breaking_load)
        if strength == 0.0:
            raise SceneError(
                f"{who}: breaking_load is a positive number (N), or None for a rope that does not tear, got {breaking_load!r}"
            )
    if reel not in (None, "start", "end"):
        raise SceneError(f"{who}: reel is 'start', 'end' or None, got {reel!r}")
    if longest is not None and reel is None:
        raise SceneError(f"{who}: longest goes with reel='start' or 'end', got longest={longest!r} and reel=None")
    if longest is not None and not (is_positive(longest) and longest >= total * (1.0 - 1e-9)):
        raise SceneError(f"{who}: longest is a finite length of at least its own {total:g} m, got {longest!r}")
    most = float(longest) if longest is not None else 4.0 * total if reel else total
    return RopeDescription(
        name, placed, lengths, rotations, speeds.copy(),
        float(mass_per_length if mass_per_length is not None else density * np.pi * radius**2),
        float(radius), bend, turn, rest, at_least(who, "damping (s)", damping), at_least(who, "drag (N·s/m²)", drag),
        0.5 * AIR * at_least(who, "drag_coefficient", drag_coefficient) * 2.0 * radius,
        strength,
        bool(rod), (RopeEnd(), RopeEnd()), {None: -1, "start": 0, "end": 1}[reel], max(most, total),
    )  # fmt: skip


def tie_point(rope: RopeDescription, point: int, body: Any, index: int) -> None:
    """Tie a body (`BodyDescription` and its number) to a point between the ends, where that point is."""
    who, n = f"rope {rope.name!r}", len(rope.lengths)
    whole = isinstance(point, int | np.integer) and not isinstance(point, bool)
    if rope.reel >= 0 or not whole or not 0 < point < n:
        raise SceneError(f"{who}: a body is tied to a point from 1 to {n - 1} of a rope without a reel, got {point!r}")
    at = quat_rotate(quat_conjugate(body.rotation), rope.points[point] - body.position) - body.com
    if body.motion == MOTIONS["dynamic"] and not np.any(body.inertia) and np.linalg.norm(at) > 1e-9:
        raise SceneError(f"{who}: body {body.name!r} is a point mass; a rope holds it at its centre")
    rope.ties.append(RopeTie(int(point), index, at))


def too_tight(rope: RopeDescription, gravity: np.ndarray) -> str | None:
    """What is to be said of a rope between two fixed points that would have to bear its weight without any sag."""
    span = rope.points[-1] - rope.points[0]
    distance, total = float(np.linalg.norm(span)), float(rope.lengths.sum())
    across = np.linalg.norm(np.cross(span, gravity)) > 1e-9 * distance * np.linalg.norm(gravity)
    if rope.reel >= 0 or total > distance * (1.0 + 1e-9) or not across:
        return None
    return (
        f"rope {rope.name!r}: it is {total:g} m long and its fixed ends are {distance:g} m apart: without any sag its weight "
        f"pulls without bound, and steps cannot be made; give length={1.0001 * distance:g} m (which sags by 0.6 % of it) or more"
    )


def hold(
    rope: RopeDescription, last: bool, body: int, position: np.ndarray, rotation: np.ndarray, com: np.ndarray, clamp: Any
) -> None:
    """Tie an end to a body (pose of its frame, centre of mass in it) where the rope's end is; clamp it as it stands.

    A clamp may be the direction (3,) in which the rope leaves the first end or runs into the last.
    """
    end = rope.ends[int(last)]
    back = quat_conjugate(rotation)
    end.body, end.clamp = body, clamp is not False and clamp is not None
    end.point = quat_rotate(back, rope.points[-1 if last else 0] - position) - com
    frame = end_frame(rope.rotations, last)
    if end.clamp and clamp is not True:
        allowed = "True, False or a direction of three finite numbers, not all 0"
        if np.shape(clamp) != (3,) or not np.any(np.asarray(clamp) != 0):
            raise SceneError(f"rope {rope.name!r}: clamp is {allowed}, got {clamp!r}")
        d = finite(f"rope {rope.name!r}", "clamp", allowed, clamp, (3,))
        t = quat_rotate(frame, np.array([0.0, 0.0, 1.0]))
        d = d / np.linalg.norm(d)
        turn = np.array([*np.cross(t, d), 1.0 + t @ d])
        if np.linalg.norm(turn) < 1e-9:
            raise SceneError(f"rope {rope.name!r}: its clamp points against the rope")
        frame = quat_multiply(turn / np.linalg.norm(turn), frame)
    end.frame = quat_multiply(back, frame)


def wind(rope: RopeDescription, winch: Any, joints: dict[str, Any]) -> None:
    """Let the axis of a joint wind a rope at its reel."""
    who = f"rope {rope.name!r}"
    if not isinstance(winch, tuple | list) or len(winch) != 2:
        raise SceneError(f"{who}: winch is a joint's name and the radius of its drum (m), got {winch!r}")
    name, radius = winch
    if not isinstance(name, str) or name not in joints:
        raise SceneError(
            f"{who}: winch is a joint that was added before, available: {', '.join(map(repr, joints))}; got {name!r}"
        )
    joint = joints[name]
    if tuple(joint.joint.free) not in (("rx",), ("ry",), ("rz",)):
        raise SceneError(f"{who}: winch is a joint of one rotation, and {name!r} is {joint.joint.kind} ({joint.joint.free})")
    if rope.reel < 0:
        raise SceneError(f"{who}: winch goes with reel='start' or 'end', from which it is wound, got reel=None")
    if not is_positive(abs(radius) if isinstance(radius, int | float | np.number) else radius):
        raise SceneError(f"{who}: the radius of its drum is a finite number of m other than 0, got {radius!r}")
    axis = quat_rotate(joint.child_frame, np.eye(3)["xyz".index(joint.joint.free[0][1])])
    rope.winch = Winch(list(joints).index(name), joint.child, joint.parent, float(radius), axis)


# ---- what it touches --------------------------------------------------------------------------------------------------------


def touch_as(rope: RopeDescription, material: Any, collide: Any) -> None:
    """How a rope's surface rubs, and whether it touches anything; unchecked."""
    who = f"rope {rope.name!r}"
    if not isinstance(collide, bool):
        raise SceneError(f"{who}: collide is True or False, got {collide!r}")
    rope.material, rope.collide = checked(material, who), collide


def ignore_rope(ropes: dict[str, RopeDescription], bodies: Iterable[str], a: str, b: str) -> bool:
    """Let a rope and a body pass through each other, if one of the two names is a rope's."""
    if not any(isinstance(name, str) and name in ropes for name in (a, b)):
        return False
    for rope, other in ((a, b), (b, a)):
        if not isinstance(other, str) or (other not in ropes and other not in bodies):
            raise SceneError(f"ignore: {other!r} is not a body of the scene; available: {', '.join(map(repr, bodies))}")
        if rope in ropes:
            ropes[rope].ignored.add(other)
    return True


def keep_apart(ropes: Iterable[RopeDescription], bodies: list[str]) -> None:
    """Number the bodies that each rope does not touch: what holds it, the world excepted, and what it is to ignore."""
    for rope in ropes:
        held = {end.body for end in rope.ends if end.body} | {tie.body for tie in rope.ties if tie.body}
        rope.apart = held | {i for i, name in enumerate(bodies) if name in rope.ignored}


def tie_end(rope: RopeDescription, side: int, other: RopeDescription, clamp: Any) -> None:
    """Tie an end to the point of another rope that is there."""
    who, mine = f"rope {rope.name!r}", rope.points[-side]
    if clamp is not False or other.reel >= 0:
        raise SceneError(f"{who}: an end on a rope is not clamped, and rope {other.name!r} has no reel")
    at = int(np.argmin(np.linalg.norm(other.points - mine, axis=1)))
    if np.linalg.norm(other.points[at] - mine) > 1e-6 * rope.lengths.sum():
        near = other.points[at].tolist()
        raise SceneError(f"{who}: its end {mine.tolist()} is at no point of rope {other.name!r}; the nearest is {near}")
    rope.ends[side].rope = (other.name, at)
