"""Cables as a user describes them, checked, and the device's tables of them; see `cables` for what they do."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp

from sharnir.core import strided
from sharnir.core.spatial import direction_of, quat_rotate
from sharnir.core.types import real, vec3
from sharnir.errors import SceneError, is_positive, number
from sharnir.model.cables import CableTable, CableWork
from sharnir.model.descriptions import BodyDescription, vector
from sharnir.model.model import DYNAMIC, Model, fill

WIDEST_ARC = 1.5 * math.pi + 1e-6  # rad: an arc that is longer is likely the other way round


@dataclass(frozen=True)
class Sheave:
    """A wheel that a cable runs over; from the cable's first end to its last, it turns about `axis` by the right-hand rule.

    Args:
        body: whose wheel it is: a block or boom (massless then, and without a bearing's friction) or, with `grips`, the wheel.
        radius: m, of the cable's line.
        at: its centre, in the body's frame, m. axis: a letter or a vector, in the body's frame; −y turns the other way round.
        grips: the body is the wheel itself, on a hinge: cable and wheel move as one, its inertia and bearing count.
        friction: coefficient between the cable and a wheel that does not turn: tensions differ by e^(friction · angle) at most.
        turns: whole turns in addition.
    """

    body: str
    radius: float
    at: Sequence[float] = (0.0, 0.0, 0.0)
    axis: str | Sequence[float] = "y"
    grips: bool = False
    friction: float = 0.0
    turns: int = 0


@dataclass(frozen=True)
class Drum:
    """A drum that an end of a cable is wound on: a body on a hinge (or any body that turns), which takes up and pays out.

    Cable runs on and off as over a `Sheave`: where the body turns about `axis`, a drum at the cable's first end pays out, one at
    its last end takes up.

    Args:
        body, radius, at, axis: as of a `Sheave`.
    """

    body: str
    radius: float
    at: Sequence[float] = (0.0, 0.0, 0.0)
    axis: str | Sequence[float] = "y"


@dataclass
class CableNode:
    """A place on a cable's path, checked: body by index, its centre from the centre of mass; radius 0: an end is fixed."""

    body: int
    center: np.ndarray
    axis: np.ndarray
    mark: np.ndarray
    radius: float
    grips: bool
    friction: float
    turns: int


@dataclass
class CableDescription:
    """A cable as described."""

    name: str
    nodes: list[CableNode]
    length: float | None


def _unit(who: str, axis: Any) -> tuple[np.ndarray, np.ndarray]:
    """An axis from a letter, with or without a minus, or from a vector; and a direction across it."""
    v = direction_of(axis, f"{who}: axis")
    mark = np.cross(v, np.eye(3)[int(np.argmin(np.abs(v)))])
    return v, mark / np.linalg.norm(mark)


def _node(cable: str, i: int, last: int, given: Any, bodies: dict[str, BodyDescription]) -> CableNode:
    """One place of a path."""
    who = f"{cable}, place {i} of its path"
    fixed, end = not isinstance(given, Sheave | Drum), i in (0, last)
    if fixed:
        pair = (given, (0.0, 0.0, 0.0)) if isinstance(given, str) else given
        if not isinstance(pair, tuple | list) or len(pair) != 2 or not isinstance(pair[0], str):
            raise SceneError(f"{who}: allowed are a body, (body, point), Sheave(…) and Drum(…), got {given!r}")
        given = Drum(pair[0], 0.0, pair[1])
    if not isinstance(given.body, str) or given.body not in bodies:
        raise SceneError(f"{who}: {given.body!r} is not a body of the scene; available: {', '.join(map(repr, bodies))}")
    what = type(given).__name__
    if not fixed and not is_positive(given.radius):
        raise SceneError(f"{who}: radius of the {what} on {given.body!r} is a finite length above 0 m, got {given.radius!r}")
    if end and isinstance(given, Sheave):
        raise SceneError(f"{who}: an end is a body, (body, point) or Drum(…), got Sheave on {given.body!r}")
    if not end and isinstance(given, Drum):
        raise SceneError(f"{who}: between its ends a cable runs over Sheave(…), got a fixed point or Drum on {given.body!r}")
    body = bodies[given.body]
    center = vector(given.at, who, "at (m)")
    axis, mark = _unit(who, given.axis)
    if body.motion == DYNAMIC and not np.any(body.inertia) and (not fixed or np.linalg.norm(center - body.com) > 1e-9):
        raise SceneError(f"{who}: body {given.body!r} is a point mass, which a cable can only hold at its centre")
    sheave = given if isinstance(given, Sheave) else None
    mu = number(who, "friction", sheave.friction, least=0.0) if sheave else 0.0
    if sheave and not isinstance(sheave.grips, bool):
        raise SceneError(f"{who}: grips is True or False, got {sheave.grips!r}")
    turns = sheave.turns if sheave else 0
    if not isinstance(turns, int) or turns < 0:
        raise SceneError(f"{who}: turns is a whole number of at least 0, got {turns!r}")
    if sheave and sheave.grips and mu > 0:
        raise SceneError(f"{who}: a sheave that grips has no friction with the cable, got {mu:g}; give its hinge some")
    index = list(bodies).index(given.body)
    grips = bool(sheave and sheave.grips)
    return CableNode(index, center - body.com, axis, mark, 0.0 if fixed else float(given.radius), grips, mu, turns)


def describe_cable(name: str, path: Any, length: Any, bodies: dict[str, BodyDescription]) -> CableDescription:
    """A cable as a user wrote it, checked."""
    who = f"cable {name!r}"
    if not isinstance(path, Sequence) or isinstance(path, str) or len(path) < 2:
        raise SceneError(f"{who}: path is at least two places, ends and sheaves between them, got {path!r}")
    nodes = [_node(who, i, len(path) - 1, given, bodies) for i, given in enumerate(path)]
    motions = [body.motion for body in bodies.values()]
    if not any(motions[node.body] == DYNAMIC for node in nodes):
        raise SceneError(f"{who}: none of its bodies is dynamic; at least one has to be")
    for a, b in itertools.pairwise(nodes):
        if a.body == b.body and not a.radius and not b.radius and len(nodes) == 2:
            raise SceneError(f"{who}: both ends are on one body; allowed are two different bodies")
    if length is not None and not is_positive(length):
        raise SceneError(f"{who}: length is a finite length above 0 m, got {length!r}")
    cable = CableDescription(name, nodes, None if length is None else float(length))
    com = [body.position + quat_rotate(body.rotation, body.com) for body in bodies.values()]
    lay(cable, np.array(com), np.array([body.rotation for body in bodies.values()]))
    return cable


def centre(node: CableNode, position: np.ndarray, rotation: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Centre and axis of a place at a pose of all bodies."""
    turn = rotation[node.body]
    return position[node.body] + quat_rotate(turn, node.center), quat_rotate(turn, node.axis)


def rim(n: np.ndarray, axis: np.ndarray, radius: float) -> np.ndarray:
    """From the centre of a circle to where a line along n touches it."""
    u = np.cross(n, axis)
    return np.asarray(u * (radius / max(float(u @ u), 1e-6)))


def span(who: str, a: CableNode, b: CableNode, position: np.ndarray, rotation: np.ndarray) -> tuple[np.ndarray, float]:
    """Direction and length of a span, as `cables.span_line` finds them."""
    (c1, a1), (c2, a2) = centre(a, position, rotation), centre(b, position, rotation)
    e, A = c2 - c1, a2 * b.radius - a1 * a.radius
    e2 = float(e @ e)
    across = A - e * (A @ e / max(e2, 1e-24))
    if e2 <= max(float(across @ across), 1e-24) * (1 + 1e-9):
        raise SceneError(
            f"{who}: two places of its path are {math.sqrt(e2):.4g} m apart, and no line touches both circles; allowed is more "
            f"than {np.linalg.norm(across):.4g} m"
        )
    l = math.sqrt(e2 - float(across @ across))
    n = (e * l - np.cross(across, e)) / e2
    for _ in range(40 if abs(float(a1 @ e)) * a.radius + abs(float(a2 @ e)) * b.radius > 0 else 0):
        line = e + rim(n, a2, b.radius) - rim(n, a1, a.radius)
        l, before = float(np.linalg.norm(line)), n
        n = line / l
        if np.abs(n - before).max() < 1e-15:
            break
    return n, l


def lay(cable: CableDescription, position: np.ndarray, rotation: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """Lay a cable along its path at a pose of the bodies: angles of the ends of its spans, what spans hold (C), and its length.

    A SceneError where the path is longer than the cable.
    """
    who, nodes = f"cable {cable.name!r}", cable.nodes
    spans = [span(who, a, b, position, rotation) for a, b in itertools.pairwise(nodes)]
    angle, held = np.zeros(2 * len(spans)), np.array([l for _, l in spans])

    def theta(node: CableNode, n: np.ndarray) -> float:
        axis, mark = quat_rotate(rotation[node.body], node.axis), quat_rotate(rotation[node.body], node.mark)
        return math.atan2(axis @ np.cross(mark, n), mark @ n)

    total = float(held.sum())
    for i, node in enumerate(nodes):
        if not node.radius:
            continue
        if i > 0:
            angle[2 * i - 1] = theta(node, spans[i - 1][0])
        if i < len(spans):
            angle[2 * i] = theta(node, spans[i][0])
        if 0 < i < len(spans):
            arc = (angle[2 * i] - angle[2 * i - 1]) % (2 * math.pi)
            arc = arc - 2 * math.pi if arc > 2 * math.pi - 1e-6 else arc
            if arc > WIDEST_ARC and not node.turns:
                raise SceneError(
                    f"{who}: at place {i} of its path it would wind {math.degrees(arc):.0f}° about axis "
                    f"{np.round(node.axis, 3).tolist()}; turn the axis round, or give turns="
                )
            angle[2 * i] = angle[2 * i - 1] + arc + 2 * math.pi * node.turns
            total += node.radius * (arc + 2 * math.pi * node.turns)
    radii = np.array([node.radius for node in nodes])
    held = held + radii[:-1] * angle[0::2] - radii[1:] * angle[1::2]
    if cable.length is not None and cable.length < total * (1 - 1e-9):
        raise SceneError(
            f"{who}: it is {cable.length:g} m long, and its path at the start {total:.9g} m; allowed is that or more"
        )
    return angle, held, total


def runs_of(cable: CableDescription) -> list[tuple[int, int, float | None]]:
    """Its runs as (first span, one past the last, friction of the rough sheave that follows or None)."""
    out, first, last = [], 0, len(cable.nodes) - 1
    for i in range(1, last + 1):
        node = cable.nodes[i]
        if i == last or node.grips or node.friction > 0:
            out.append((first, i, node.friction if i < last and not node.grips else None))
            first = i
    return out


def cable_table(cables: Sequence[CableDescription], worlds: int, device: Any) -> CableTable:
    """The device's table; see `CableTable`."""
    t: Any = CableTable()
    ends: list[CableNode] = []
    first, joins, friction, groups = [0], [], [], []
    for cable in cables:
        base = len(ends) // 2
        runs = runs_of(cable)
        for k, (_a, b, mu) in enumerate(runs):
            first.append(base + b)
            joins.append(int(mu is not None))
            friction.append(mu or 0.0)
            reach = next(i for i in range(k, len(runs)) if runs[i][2] is None)  # the last run that may slide with it
            groups.append((base + runs[k][0], base + runs[reach][1]))
        for one, other in itertools.pairwise(cable.nodes):
            ends += [one, other]
    t.count, t.spans, t.ends = len(joins), len(ends) // 2, len(ends)
    slot_body: list[int] = []
    slot, slot_first = np.full((len(joins), len(ends)), -1, np.int32), [0]
    for r, (a, b) in enumerate(groups):
        known: dict[int, int] = {}
        for x in range(2 * a, 2 * b):
            if ends[x].body not in known:
                known[ends[x].body] = len(slot_body)
                slot_body.append(ends[x].body)
            slot[r, x] = known[ends[x].body]
        slot_first.append(len(slot_body))
    t.slots = len(slot_body)
    numbers = {
        "first": first, "joins": joins, "body": [e.body for e in ends], "slot_first": slot_first, "slot_body": slot_body,
    }  # fmt: skip
    for name, values in numbers.items():
        setattr(t, name, wp.array(np.array(values, np.int32), dtype=wp.int32, device=device))
    t.slot = wp.array(slot, dtype=wp.int32, device=device)
    for name in ("center", "axis", "mark"):
        points = np.array([getattr(e, name) for e in ends]).reshape(-1, 3)
        setattr(t, name, wp.array(points, dtype=vec3, device=device))
    t.radius = wp.array([e.radius for e in ends], dtype=real, device=device)
    t.friction = strided.table(friction, real, worlds, device)
    return t


def cable_start(cables: Sequence[CableDescription], position: np.ndarray, rotation: np.ndarray) -> dict[str, np.ndarray]:
    """Angles and lengths at the start: all runs taut, but for what the cable is longer, which lies in its last run."""
    angles, rests = [], []
    for cable in cables:
        angle, held, total = lay(cable, position, rotation)
        rest = [float(held[a:b].sum()) for a, b, _ in runs_of(cable)]
        rest[-1] += 0.0 if cable.length is None else cable.length - total
        angles += angle.tolist()
        rests += rest
    return {"cable_angle": np.array(angles), "cable_rest": np.array(rests)} if cables else {}


def cable_work(t: CableTable, model: Model) -> CableWork:
    """Scratch of a solver."""
    work = CableWork()
    fill(work, model, int(t.spans), "n length held weight")
    fill(work, model, int(t.ends), "arm angle")
    fill(work, model, int(t.slots), "rate_l rate_a force_l force_a")
    fill(work, model, int(t.count), "gap slides leads taut struck K bias impulse pseudo came")
    fill(work, model, None, "switched")
    return work
