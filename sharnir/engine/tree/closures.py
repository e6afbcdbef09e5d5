"""Constraints and forces between links that are not joints of the forest, and the tables of their rows.

A `Closure` joins two links, or a link and the ground, by one of a few elementary kinds. The parts of a body that is cut are
welded by a point and three right angles (`weld`). Every closure has one row per equation, a point has three. Points and axes are
in the frames of the links that carry them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sharnir.core.linalg import close_order
from sharnir.core.strided import columns
from sharnir.engine.tree.forest import GROUND, Forest

POINT, ANGLE, ROD, SPRING, GEAR, CONTACT, FRICTION, LIMIT, SPINNING, ROLLING, SPAN, RUN, CAST, ROPE, WINCH, TOUCH, HOLD = range(17)
LAW_KINDS = (CONTACT, FRICTION, LIMIT, SPINNING, ROLLING, TOUCH, HOLD)
"""Kinds of which there are others in every step, and whose impulses are bounded (`contact_rows`)."""
ROWS = (3, 1, 1, 1, 1, 3, 1, 1, 1, 1, 0, 1, 0, 3, 1, 3, 3)  # equations by kind
SPEEDS = (1, 1, 3, 6, 0, 6, 1, 3, 3)  # numbers of a row on a link's joint, by the kinds of `forest`
LOOSE = 6  # the same of a joint that may be disabled, so that its link floats
PARAMETERS = {"point_a": 3, "point_b": 3, "axis_a": 3, "axis_b": 3}
PARAMETERS |= dict.fromkeys(("length", "stiffness", "damping", "ratio", "on"), 1)
# of contacts and of the laws of axes
PARAMETERS |= {"surface": 3, "last": 3, "core_a": 3, "core_b": 3, "restitution": 1, "share": 1, "side": 1}
PARAMETERS |= {"balls": 1, "radius_a": 1, "radius_b": 1, "rolls_a": 1, "rolls_b": 1, "round_a": 6, "round_b": 6}
PARAMETERS |= {"friction_along": 1, "friction_across": 1, "shear_along": 1, "shear_across": 1, "fade": 1}
PARAMETERS |= {"lever": 1, "across": 1, "rows_back": 1, "belt": 1, "frame": 1, "cast": 1, "belt_axis": 3, "belt_pull": 3}
OF_CABLES = {"angle_a": "rolls_a", "angle_b": "rolls_b", "slides": "side", "spans_back": "rows_back", "spans": "across"}
OF_CABLES |= {"follows": "share", "joins": "balls", "friction": "friction_along", "mark_a": "core_a", "mark_b": "core_b"}
"""Parameters of cables (`cable_rows`), and those of contacts in whose place they are."""
OF_CASTS = ("omega", "angle", "turn", "load", "inertia", "rolling", "torque", "speed", "gain", "most", "brake")
"""Those of raycast wheels (`cast_rows`), which are in place of the first ones."""
Numbers = Sequence[float] | np.ndarray


def zeros() -> Numbers:
    return (0.0, 0.0, 0.0)


@dataclass
class Closure:
    """One constraint, or spring, between links a and b.

    Args:
        kind: POINT: both points in one place. ANGLE: both axes at a right angle. ROD: points at the distance `length`. SPRING:
            between the points. GEAR: q_a = ratio q_b + length, of the links' own joints, hinges or sliders. SPAN, RUN: of cables.
            CAST: a raycast wheel. ROPE: the last end, another point or the orientation of the last end of a rope on b, which
            hangs on a. WINCH: the element of that rope which a
            drum winds, the link in `along`; b is the ground where nothing that yields holds the last end.
        a, b: indices of links; GROUND.
        point_a, point_b, axis_a, axis_b: (3,) in the links' frames.
        length: m; of a gear, m or rad.
        stiffness, damping: N/m, N·s/m.
        ratio: of a gear.
        on: 0.0 takes the closure out.
        item: number of the joint (of a rod), spring, gear, span, run or cast wheel of the model, of a hold of its ropes, or of a
            winch's rope; −1: a weld.
        surface and what follows: of contacts and of the laws of axes, see `contact_rows`.

    Points, axes and numbers may differ from world to world: (worlds, 3), (worlds,).
    """

    kind: int
    a: int
    b: int
    point_a: Numbers = field(default_factory=zeros)
    point_b: Numbers = field(default_factory=zeros)
    axis_a: Numbers = field(default_factory=zeros)
    axis_b: Numbers = field(default_factory=zeros)
    length: Any = 0.0
    stiffness: Any = 0.0
    damping: Any = 0.0
    ratio: float = 0.0
    on: float = 1.0
    item: int = -1
    surface: Numbers = field(default_factory=zeros)
    last: Numbers = field(default_factory=zeros)
    core_a: Numbers = field(default_factory=zeros)
    core_b: Numbers = field(default_factory=zeros)
    restitution: float = 0.0
    share: float = 0.0
    balls: float = 0.0
    radius_a: float = 0.0
    radius_b: float = 0.0
    rolls_a: float = 0.0
    rolls_b: float = 0.0
    round_a: Numbers = (0.0,) * 6
    round_b: Numbers = (0.0,) * 6
    side: float = 0.0
    friction_along: float = 0.0
    friction_across: float = 0.0
    shear_along: float = 0.0
    shear_across: float = 0.0
    fade: float = 0.0
    lever: float = 0.0
    across: float = 0.0
    rows_back: float = 0.0
    belt: float = GROUND
    frame: float = GROUND
    cast: float = GROUND
    belt_axis: Numbers = field(default_factory=zeros)
    belt_pull: Numbers = field(default_factory=zeros)
    along: Sequence[int] = ()  # links of a run, instead of a and b; of a winch, beside them
    chain: int = -1  # closures that share one of at least 0 keep together, in their order
    rope: int = -1  # of a hold: closures that share one of at least 0 are coupled along it

    def values(self) -> dict[str, list[float]]:
        """The parameters of the first world as lists of numbers, by name."""
        return {name: self._of_worlds(name, size)[0].tolist() for name, size in PARAMETERS.items()}

    def table(self, worlds: int) -> np.ndarray:
        """(numbers, worlds)."""
        rows = [np.broadcast_to(self._of_worlds(name, size).T, (size, worlds)) for name, size in PARAMETERS.items()]
        return np.concatenate(rows)

    def _of_worlds(self, name: str, size: int) -> np.ndarray:
        return np.asarray(getattr(self, name), float).reshape(-1, size)


def weld(a: int, b: int, points: Sequence[Numbers], frames: Sequence[np.ndarray]) -> list[Closure]:
    """Closures that hold two parts of a body together.

    Args:
        a, b: links.
        points: (…, 3) m, of one place of the body in both links' frames.
        frames: (…, 3, 3) the body's axes as columns, in both links' frames.
    """
    angles = [Closure(ANGLE, a, b, axis_a=frames[0][..., i], axis_b=frames[1][..., (i + 1) % 3]) for i in range(3)]
    return [Closure(POINT, a, b, points[0], points[1]), *angles]


class RowTables:
    """Where the numbers of rows are, and which rows feel each other through the forest.

    A closure's *path* are the links on the way from its two links to the ground, outermost first. On every link of the path a row
    has as many numbers as the link's joint has speeds; six, if it is one of the `loose` links, which may float in some worlds.
    Rows are coupled if their paths share links; their matrix is kept within its envelope, row by row, up to the diagonal.
    """

    def __init__(self, forest: Forest, closures: Sequence[Closure], loose: Collection[int] = ()) -> None:
        self.forest = forest
        self.speeds = [LOOSE if i in loose else SPEEDS[link.kind] for i, link in enumerate(forest.links)]
        self.geared = {link for c in closures if c.kind == GEAR for link in (c.a, c.b)}  # links on which laws have to act
        self.geared |= {link for c in closures if c.kind == WINCH for link in c.along}
        for n, c in enumerate(closures):
            for link in (c.a, c.b):
                if not GROUND <= link < len(forest):
                    last = len(forest) - 1
                    raise ValueError(f"closure {n}: link {link} does not exist, allowed: {GROUND} (the ground) to {last}")
        paths = [self._path(c) for c in closures]
        on: dict[int, set[int]] = {}
        for n, path in enumerate(paths):
            for link in path:
                on.setdefault(link, set()).add(n)
        chains = [c.chain if c.chain >= 0 else -1 - n for n, c in enumerate(closures)]
        first = {chain: n for n, chain in reversed(list(enumerate(chains)))}
        together: dict[int, list[int]] = {}
        for n, chain in enumerate(chains):
            together.setdefault(first[chain], []).append(n)
        groups = list(together.values())
        of = {n: k for k, group in enumerate(groups) for n in group}
        along: dict[int, set[int]] = {}
        for n, c in enumerate(closures):
            along.setdefault(c.rope, set()).add(n)
        beside = [{n} if c.rope < 0 else along[c.rope] for n, c in enumerate(closures)]
        near = [
            {of[m] for n in group for some in (beside[n], *(on[link] for link in paths[n])) for m in some} - {k}
            for k, group in enumerate(groups)
        ]
        order = [n for k in close_order(near) for n in groups[k]]
        self.closures = [closures[n] for n in order]
        self.paths = [paths[n] for n in order]
        self.tables = self._tables()

    def _path(self, c: Closure) -> list[int]:
        links = set()
        for link in () if ROWS[c.kind] == 0 else (c.a, c.b, *c.along):
            while link != GROUND:
                links.add(link)
                link = self.forest.links[link].base
        return sorted(links, reverse=True)

    def _tables(self) -> dict[str, list[int]]:
        """Whole numbers by name; lists that end in `_start` have one entry more than there are items."""
        t: dict[str, list[int]] = {"kind": [c.kind for c in self.closures], "a": [c.a for c in self.closures]}
        t |= {"b": [c.b for c in self.closures], "row_start": [0], "path_start": [0], "path": [], "offset": [], "y_start": [0]}
        t |= {"speeds": []}
        places: list[dict[int, int]] = []  # of each closure: link → its first number in a row
        for c, path in zip(self.closures, self.paths, strict=True):
            at, size = {}, 0
            for link in path:
                at[link], size = size, size + self.speeds[link]
            places.append(at)
            t["path"] += path
            t["speeds"] += [self.speeds[link] for link in path]
            t["offset"] += at.values()
            t["path_start"].append(len(t["path"]))
            t["row_start"].append(t["row_start"][-1] + ROWS[c.kind])
            t["y_start"] += [t["y_start"][-1] + size * (k + 1) for k in range(ROWS[c.kind])]
        t |= self._couplings(t["row_start"], places)
        return t

    def _couplings(self, row_start: list[int], places: list[dict[int, int]]) -> dict[str, list[int]]:
        """Pairs of closures (i ≥ j) that share links, the numbers that they share, and the envelope of the matrix."""
        t: dict[str, list[int]] = {"block_i": [], "block_j": [], "shared_start": [0], "shared_i": [], "shared_j": []}
        first = list(range(row_start[-1]))
        for i, path in enumerate(self.paths):
            for j in range(i + 1):
                shared = [link for link in path if link in places[j]]
                if shared or 0 <= self.closures[i].rope == self.closures[j].rope:
                    for r in range(row_start[i], row_start[i + 1]):
                        first[r] = min(first[r], row_start[j])
                if not shared:
                    continue
                t["block_i"].append(i)
                t["block_j"].append(j)
                for link in shared:
                    for k in range(self.speeds[link]):
                        t["shared_i"].append(places[i][link] + k)
                        t["shared_j"].append(places[j][link] + k)
                t["shared_start"].append(len(t["shared_i"]))
        t["first"] = first
        t["matrix_start"] = np.cumsum([0] + [r + 1 - f for r, f in enumerate(first)]).tolist()
        return t

    def __len__(self) -> int:
        return self.tables["row_start"][-1]

    def parameters(self, worlds: int = 1) -> np.ndarray:
        """(numbers per closure · closures, worlds)."""
        return np.concatenate([np.zeros((0, worlds)), *(c.table(worlds) for c in self.closures)])

    def sizes(self) -> dict[str, int]:
        """Numbers of all rows, of their responses and of their matrix."""
        t: Any = self.tables
        return {"rows": len(self), "responses": t["y_start"][-1], "matrix": t["matrix_start"][-1]}


# ---- of a model --------------------------------------------------------------------------------------------------------------


def closures_of(plan: Any, gear_starts: Sequence[float] = ()) -> list[Closure]:
    """Closures of what is beside the forest of a model: welds of cut bodies, rods, springs between points, gears, cables
    and raycast wheels.

    Args:
        plan: the `build.Plan` of the model.
        gear_starts: q_a − ratio q_b to be kept, by gear; 0 unless given.
    """
    model = plan.model
    out: list[Closure] = []
    joints, springs, gears = model.joints, model.springs, model.gears
    for i, place in enumerate(plan.places):
        if place.part:
            ends = plan.link_of[place.body], i
            points = [_local(plan, link, np.zeros((1, 3))) for link in ends]
            frames = [np.swapaxes(plan.own_turn[link], -1, -2) for link in ends]
            out += weld(*ends, points, frames)
    for k in plan.rods:
        a, b = (_end(plan, int(side[k])) for side in (model.parents, model.children))
        points = [columns(x)[k] for x in (joints.parent_point, joints.child_point)]
        at_a, at_b = (_local(plan, end, x) for end, x in zip((a, b), points, strict=True))
        out.append(Closure(ROD, a, b, at_a, at_b, length=float(joints.rod.numpy()[k]), item=k))
    for n in range(int(springs.count)):
        a, b = (_end(plan, int(side.numpy()[n])) for side in (springs.parent, springs.child))
        places = (springs.parent_point, springs.child_point)
        at_a, at_b = (_local(plan, end, x.numpy()[n][None]) for end, x in zip((a, b), places, strict=True))
        rest, stiffness, damping = (columns(x)[n] for x in (springs.rest, springs.stiffness, springs.damping))
        out.append(Closure(SPRING, a, b, at_a, at_b, length=rest, stiffness=stiffness, damping=damping, item=n))
    of_axis = {p.axis + n: i for i, p in enumerate(plan.places) if p.axis >= 0 for n in range(max(1, len(p.slots)))}
    for n in range(len(model.gear_names)):
        sides = ((gears.joint_a, gears.axis_a), (gears.joint_b, gears.axis_b))
        a, b = (of_axis[int(model.v_start[j.numpy()[n]]) + int(x.numpy()[n])] for j, x in sides)
        start = float(gear_starts[n]) if len(gear_starts) else 0.0
        out.append(Closure(GEAR, a, b, ratio=float(gears.ratio.numpy()[n]), length=start, item=n))
    out += cables_of(plan) if model.cable_names else []
    return out + [Closure(CAST, GROUND, GROUND, item=n) for n in range(len(model.casts))]


def cables_of(plan: Any) -> list[Closure]:
    """Spans and runs of cables; those that may slide as one are a chain: its spans, then its runs."""
    t = plan.model.cables
    first, joins, body = t.first.numpy(), t.joins.numpy(), t.body.numpy()
    center, axis, mark, radius = (getattr(t, name).numpy() for name in ("center", "axis", "mark", "radius"))
    link = [_end(plan, int(b)) for b in body]

    def turned(x: int, v: np.ndarray) -> np.ndarray:
        return v if link[x] == GROUND else np.asarray(np.einsum("...ji,j->...i", plan.own_turn[link[x]], v))

    out: list[Closure] = []
    begin = 0
    for end in range(1, int(t.count) + 1):
        if joins[end - 1]:
            continue
        spans, runs = range(first[begin], first[end]), range(begin, end)
        for i in spans:
            a, b = 2 * i, 2 * i + 1
            points = [_local(plan, link[x], center[x][None]) for x in (a, b)]
            axes, marks = ([turned(x, v[x]) for x in (a, b)] for v in (axis, mark))
            c = Closure(SPAN, link[a], link[b], points[0], points[1], axes[0], axes[1], item=i, chain=begin)
            c.radius_a, c.radius_b, c.core_a, c.core_b = radius[a], radius[b], *marks
            out.append(c)
        along = sorted({link[x] for i in spans for x in (2 * i, 2 * i + 1)} - {GROUND})
        for k, r in enumerate(runs):
            c = Closure(RUN, GROUND, GROUND, along=along, item=r, chain=begin)
            c.rows_back, c.across = len(spans) + k - (first[r] - first[begin]), first[r + 1] - first[r]
            c.share, c.balls = float(k > 0), joins[r]
            out.append(c)
        begin = end
    return out


def _end(plan: Any, body: int) -> int:
    """The link of a body."""
    if body == 0:
        return GROUND
    if body not in plan.link_of:
        raise ValueError(f"body {list(plan.model.body_names)[body]!r} has no link: bodies at the ends of closures need one")
    return int(plan.link_of[body])


def _local(plan: Any, link: int, point: np.ndarray) -> np.ndarray:
    """(worlds, 3) a point of a body, from its centre of mass in its axes, in the frame of its link."""
    if link == GROUND:
        return point
    return np.asarray(np.einsum("...ji,...j->...i", plan.own_turn[link], point - plan.own_point[link]))
