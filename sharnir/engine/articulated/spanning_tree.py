"""The tree of a model: which joint carries which body, what closes the loops, and scratch for the recursions along it."""

from __future__ import annotations

import itertools
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import warp as wp

from sharnir.core.linalg import close_order, row_ends
from sharnir.core.spatial import quat_conjugate, quat_multiply, quat_rotate
from sharnir.core.strided import columns, is_shared, put, table
from sharnir.core.types import mat33, np_real, real
from sharnir.engine.articulated.data import SLIDE, AxisLaws, LinkPlace, LinkRow, TreeTable, TreeWork
from sharnir.engine.articulated.loop_rows import ClosureTable, ClosureWork
from sharnir.errors import SimulationError
from sharnir.model import assembly
from sharnir.model.actuators import Axis
from sharnir.model.cables import CableTable
from sharnir.model.joint_types import FRAME_FIELDS, Free, JointTable
from sharnir.model.model import BodyTable, Model


@dataclass(frozen=True)
class Link:
    """A body and the joint by which it hangs on its base; sense −1 where the body is the joint's parent."""

    joint: int
    body: int
    base: int
    sense: int


class Links:
    """The tree of a model: joints of floating bases, and halves of the bodies at which loops are cut, behind the model's own.

    Args:
        without: joints that are taken out.
        at_com: a floating base's coordinates are those of its centre of mass, not of its frame.
        keeps: there is room for what the passes of a step keep.
        cables: rows of cables stand beside the tree.
    """

    def __init__(
        self, model: Model, *, without: Collection[int] = (), at_com: bool = False, keeps: bool = False,
        cables: bool = False,
    ) -> None:  # fmt: skip
        self.model, self.device, self.keeps = model, model.device, keeps
        self.cables = model.cables if cables else CableTable()
        self.kinds = list(model.joint_kinds)
        self.parents, self.children = model.parents.tolist(), model.children.tolist()
        self.half_of = list(range(len(model.com)))  # of every body
        self.links = self._hang(without)
        self.link_of = {link.body: i for i, link in enumerate(self.links)}
        self.welds = self._in_order([(own, half) for half, own in enumerate(self.half_of) if half >= len(model.com)])
        self.rods = [k for k, kind in enumerate(model.joint_kinds) if kind.mask and not kind.v_size and k not in without]
        self.q_size = np.array([k.q_size for k in self.kinds], int)
        self.v_size = np.array([k.v_size for k in self.kinds], int)
        self.q_start = np.cumsum([0, *self.q_size])[:-1]
        self.v_start = np.cumsum([0, *self.v_size])[:-1]
        self.nq, self.nv = int(self.q_size.sum()), int(self.v_size.sum())
        self.bodies = self._bodies()
        self.joints = self._joint_table(at_com)
        self.tree = self._tree_table()
        self.closures = self._closure_table()
        self._work: dict[int, Scratch] = {}

    @property
    def loops(self) -> bool:
        """Whether coordinates depend on each other."""
        return bool(self.welds or self.rods or self.model.gear_names)

    @property
    def varied(self) -> bool:
        """Whether masses, or frames of joints that were attached, differ from world to world."""
        tables = self.bodies.mass, self.bodies.inertia, self.joints.parent_point
        return not all(is_shared(t) for t in tables if len(t))

    def _hang(self, without: Collection[int]) -> list[Link]:
        """Hang every body: breadth first from the ground, so that loops are cut far from it; then list branch by branch."""
        model = self.model
        dynamic = assembly.yields(model)
        near: dict[int, list[tuple[int, int]]] = {}
        for k, (p, c) in enumerate(zip(self.parents, self.children, strict=True)):
            if k not in without and not (self.kinds[k].mask and not self.kinds[k].v_size):  # a rod carries nothing
                near.setdefault(p, []).append((k, c))
                near.setdefault(c, []).append((k, p))
        seen = {b for b in range(len(dynamic)) if not dynamic[b]}
        found: list[Link] = []
        used: set[int] = set()

        def walk(todo: list[int], loose: bool) -> None:
            while todo:
                base = todo.pop(0)
                for k, other in near.get(base, ()):
                    if other not in seen and (loose or self.kinds[k].mask != 63):
                        seen.add(other)
                        used.add(k)
                        found.append(Link(k, other, base, 1 if self.children[k] == other else -1))
                        todo.append(other)

        walk(sorted(seen), False)
        walk(sorted(seen), True)
        for b in range(len(dynamic)):
            if b not in seen:  # a floating mechanism: its first body hangs on the ground by a joint that allows everything
                self.kinds.append(Free())
                self.parents.append(0)
                self.children.append(b)
                seen.add(b)
                found.append(Link(len(self.kinds) - 1, b, 0, 1))
                walk([b], False)
                walk(sorted(seen), True)
        for k, pairs in sorted({k: (p, c) for p, kids in near.items() for k, c in kids}.items()):
            free = self.kinds[k].mask == 63 and not any(axis.acts for axis in model.joint_axes[k])
            if k not in used and not free and any(dynamic[b] for b in pairs):
                found.append(self._cut(k, dynamic))
        return _branch_by_branch(found)

    def _cut(self, k: int, dynamic: np.ndarray) -> Link:
        """Close a loop: the second half of one of the joint's bodies hangs on the other."""
        parent, child = self.parents[k], self.children[k]
        body, base = (child, parent) if dynamic[child] else (parent, child)
        half = len(self.half_of)
        self.half_of.append(body)
        (self.children if body == child else self.parents)[k] = half
        return Link(k, half, base, 1 if body == child else -1)

    def _bodies(self) -> BodyTable:
        """The model's bodies, and halves: a body cut n times has n + 1 equal parts. A point mass gets an inertia nobody sees."""
        old, t = self.model.bodies, BodyTable()
        parts = np.bincount(self.half_of, minlength=len(self.model.com))[self.half_of]
        mass = columns(old.mass)[self.half_of] / parts[:, None]
        inertia = columns(old.inertia)[self.half_of] / parts[:, None, None, None]
        if inertia.shape[1] != mass.shape[1]:
            mass, inertia = (np.repeat(x, self.model.worlds, 1) if x.shape[1] == 1 else x for x in (mass, inertia))
        points = ~inertia.any((2, 3)) & (mass > 0)
        inertia[points] = np.eye(3) * mass[points][:, None, None]  # rows pass through its centre: its rotation is nobody's
        t.count = len(self.half_of)
        t.motion = wp.array(old.motion.numpy()[self.half_of], dtype=wp.int32, device=self.device)
        t.mass = table(mass, real, self.model.worlds, self.device)
        t.inertia = table(inertia, mat33, self.model.worlds, self.device)
        t.inv_mass, t.inv_inertia = old.inv_mass, old.inv_inertia
        return t

    def _joint_table(self, at_com: bool) -> JointTable:
        """The model's joint table with the halves in it, and the joints of floating bases behind it."""
        added = len(self.kinds) - len(self.model.joint_kinds)
        old, t = self.model.joints, JointTable()
        t.count = len(self.kinds)
        com = self.model.com * (0.0 if at_com else 1.0)
        own = slice(len(self.model.joint_kinds), None)
        extra = {
            "free": [63] * added,
            "turns": [3] * added, "first": [0] * added, "second": [1] * added, "rod": [-1.0] * added,
            "break_force": [1e30] * added, "break_torque": [1e30] * added,
            "q_start": self.q_start[own], "v_start": self.v_start[own], "v_size": [6] * added, "ball": [0] * added,
        }  # fmt: skip
        for name, values in extra.items():
            array = getattr(old, name)
            mine = array.numpy()
            both = np.concatenate([mine, np.array(values, mine.dtype).reshape(added, *mine.shape[1:])])
            setattr(t, name, wp.array(both, dtype=array.dtype, device=self.device))
        still = np.tile([0.0, 0.0, 0.0, 1.0], (added, 1))
        points = -com[self.children[own]].reshape(added, 3)
        for name, start in zip(FRAME_FIELDS, (np.zeros((added, 3)), still, points, still), strict=True):
            mine = columns(getattr(old, name)) if len(self.model.joint_kinds) else np.zeros((0, 1, start.shape[1]))
            both = np.concatenate([mine, np.broadcast_to(start[:, None], (added, *mine.shape[1:]))])
            setattr(t, name, table(both, getattr(old, name).dtype, self.model.worlds, self.device))
        t.parent = wp.array(self.parents, dtype=wp.int32, device=self.device)
        t.child = wp.array(self.children, dtype=wp.int32, device=self.device)
        slot = np.concatenate([old.slot.numpy()[:, : len(self.model.joint_kinds)], np.repeat(np.arange(6)[:, None], added, 1)], 1)
        t.slot = wp.array(slot.astype(np.int32).reshape(6, -1), dtype=wp.int32, device=self.device)
        return t

    def _tree_table(self) -> TreeTable:
        t = TreeTable()
        t.count = len(self.links)
        base_link = [self.link_of.get(link.base, -1) for link in self.links]
        gathers = np.zeros(len(self.links), np.int32)
        for i, p in enumerate(base_link):
            if p not in (-1, i - 1):
                gathers[p] = 1
        numbers = {
            "joint": [link.joint for link in self.links], "body": [link.body for link in self.links],
            "base": [link.base for link in self.links], "sign": [link.sense for link in self.links], "base_link": base_link,
        }  # fmt: skip
        for name, values in numbers.items():
            setattr(t, name, wp.array(values, dtype=wp.int32, device=self.device))
        rows: Any = np.zeros(len(self.links), LinkRow.numpy_dtype())  # type: ignore[attr-defined]
        for name in ("joint", "body", "base", "base_link"):
            rows[name] = numbers[name]
        joints, bodies = rows["joint"], rows["body"]
        for name, sizes in (("q_start", self.q_start), ("v_start", self.v_start), ("v_size", self.v_size)):
            rows[name] = sizes[joints]
        rows["gathers"] = gathers
        rows["hinge"] = [self._hinge(link) for link in self.links]
        mass, inertia = columns(self.bodies.mass)[bodies], columns(self.bodies.inertia)[bodies]
        rows["kind"] = [self._kind(k) if self.keeps else 0 for k in joints]
        rows["parts"] = np.bincount(self.half_of, minlength=len(self.model.com))[self.half_of][bodies]
        moments = np.diagonal(inertia, axis1=2, axis2=3)
        least = (moments + np.roll(moments, 1, 2)).min(2, initial=1e30)
        for name, numbers_of, dtype in (
            ("mass", mass, real), ("inertia", inertia, mat33), ("least", least, real),
        ):  # fmt: skip
            setattr(t, name, table(numbers_of, dtype, self.model.worlds, self.device))
        t.row = wp.array(rows, dtype=LinkRow, device=self.device)
        t.place = table(self._places(), LinkPlace, self.model.worlds, self.device)
        return t

    def relay(self) -> None:
        """After frames of the model's joints were changed in place."""
        for name in FRAME_FIELDS:
            array = getattr(self.joints, name)
            values = columns(array)
            values[: len(self.model.joint_kinds)] = columns(getattr(self.model.joints, name))  # joints of floating bases follow
            put(array, values)
        put(self.tree.place, self._places())

    def _places(self) -> np.ndarray:
        """(links, 1 or worlds) where the joints sit, as `LinkPlace`s."""
        t, at = self.joints, [link.joint for link in self.links]
        forth = np.array([link.sense > 0 for link in self.links], bool).reshape(-1, 1, 1)
        point = columns(t.parent_point)[at], columns(t.child_point)[at]
        frame = columns(t.parent_frame)[at], columns(t.child_frame)[at]
        (base_point, own_point), (base, own) = (
            (np.where(forth, a, b), np.where(forth, b, a)) for a, b in (np.broadcast_arrays(*point), np.broadcast_arrays(*frame))
        )
        slides = np.array([self._hinge(link) == SLIDE for link in self.links], bool)
        slot = np.where(slides, t.slot.numpy()[0, at], t.first.numpy()[at]) if at else np.zeros(0, int)
        first = np.broadcast_to(np.eye(3)[slot][:, None], base_point.shape)
        sense = np.where(forth, 1.0, -1.0)
        out: Any = np.zeros(base_point.shape[:2], LinkPlace.numpy_dtype())  # type: ignore[attr-defined]
        turn, axis = quat_multiply(base, quat_conjugate(own)), sense * quat_rotate(own, first)
        out["turn"], out["axis"] = turn, axis
        out["turn_axis"] = quat_multiply(turn, np.concatenate([axis, np.zeros((*axis.shape[:2], 1))], 2))
        out["base_axis"] = sense * quat_rotate(base, first)
        out["base_point"], out["own_point"] = base_point, own_point
        return np.asarray(out)

    def _hinge(self, link: Link) -> int:
        """Whether a link's joint is one rotation (1), or one translation along an axis that its base carries (`SLIDE`)."""
        kind = self.kinds[link.joint]
        if kind.v_size != 1:
            return 0
        return 1 if len(kind.turns) == 1 else int(SLIDE) * (link.sense > 0)

    def _kind(self, k: int) -> int:
        """How the direct pass takes a joint: 4 as no joint, 1 as a ball, if nothing acts but one friction bound, else 0."""
        kind, own = self.kinds[k], k < len(self.model.joint_kinds)
        axes = self.model.joint_axes[k] if own else ()
        if kind.mask == 63:
            return 0 if own else 4  # forces and laws may be given to a scene's joint at any time
        ball = tuple(kind.free) == ("rx", "ry", "rz") and kind.ball is None
        return int(ball and all(a == Axis(group=0, friction=a.friction) for a in axes))

    def _closure_table(self) -> ClosureTable:
        c = ClosureTable()
        ends = assembly.gear_ends(self.model)
        c.welds, c.rods, c.gears = len(self.welds), len(self.rods), len(ends)
        c.springs = self.model.springs
        c.count = 6 * c.welds + c.rods + c.gears + self.cables.count + c.springs.count
        numbers = {
            "weld_body": [own for own, _ in self.welds], "weld_half": [half for _, half in self.welds], "rod_joint": self.rods,
        }  # fmt: skip
        for side, axes in (("a", [a for a, _, _ in ends]), ("b", [b for _, b, _ in ends])):
            for kind, start in (("q", self.q_start), ("v", self.v_start)):
                numbers[f"gear_{kind}_{side}"] = [int(start[joint]) + i for joint, i in axes]
        for name, values in numbers.items():
            setattr(c, name, wp.array(np.array(values, np.int32), dtype=wp.int32, device=self.device))
        c.gear_ratio = wp.array([ratio for _, _, ratio in ends], dtype=real, device=self.device)
        self._envelope(c, ends)
        return c

    def _cable_bodies(self) -> list[tuple[int, ...]]:
        """Bodies of each row of cables."""
        if not self.cables.count:
            return []
        first, body = self.cables.slot_first.numpy(), self.cables.slot_body.numpy()
        return [tuple(body[a:b].tolist()) for a, b in itertools.pairwise(first)]

    def trees(self) -> tuple[dict[int, int], list[tuple[int, int]]]:
        """Which tree on the ground each body belongs to, and where each tree's links begin and end: they stand together."""
        tree_of: dict[int, int] = {}
        ranges: list[tuple[int, int]] = []
        for i, link in enumerate(self.links):
            if link.base in tree_of:
                ranges[tree_of[link.base]] = (ranges[tree_of[link.base]][0], i + 1)
            else:
                ranges.append((i, i + 1))
            tree_of[link.body] = tree_of.get(link.base, len(ranges) - 1)
        return tree_of, ranges

    def _in_order(self, welds: list[tuple[int, int]]) -> list[tuple[int, int]]:
        """The welds so that those which act on the same trees stand close together."""
        tree_of, _ = self.trees()
        touching: dict[int, list[int]] = {}
        for i, weld in enumerate(welds):
            for tree in {tree_of[body] for body in weld if body in tree_of}:
                touching.setdefault(tree, []).append(i)
        near = [{j for body in weld if body in tree_of for j in touching[tree_of[body]]} - {i} for i, weld in enumerate(welds)]
        return [welds[i] for i in close_order(near)]

    def _envelope(self, c: ClosureTable, gears: list[Any]) -> None:
        """The links that each row can move, and where the matrix of the rows is not 0."""
        tree_of, ranges = self.trees()
        pairs: list[tuple[int, ...]] = [weld for weld in self.welds for _ in range(6)]
        pairs += [(self.children[k], self.parents[k]) for k in self.rods]
        moved = {link.joint: link.body for link in self.links}
        pairs += [(moved.get(a[0], 0), moved.get(b[0], 0)) for a, b, _ in gears]
        pairs += self._cable_bodies()
        if c.springs.count:
            pairs += list(zip(c.springs.child.numpy().tolist(), c.springs.parent.numpy().tolist(), strict=True))
        trees = [sorted({tree_of[body] for body in pair if body in tree_of}) for pair in pairs]
        span = np.zeros((c.count, 4), np.int32)
        lowest: dict[int, int] = {}  # of each tree, the first row on it
        first = np.arange(c.count)
        for r, touched in enumerate(trees):
            for half, tree in enumerate(touched):
                if len(touched) <= 2:
                    span[r, 2 * half : 2 * half + 2] = ranges[tree]
                first[r] = min(first[r], lowest.setdefault(tree, r))
            if len(touched) > 2:  # all there is between the first and the last
                span[r, :2] = ranges[touched[0]][0], ranges[touched[-1]][1]
        self._row_trees = trees
        c.span = wp.array(span, dtype=wp.int32, device=self.device)
        c.first = wp.array(first.astype(np.int32), dtype=wp.int32, device=self.device)
        c.last = wp.array(row_ends(first.tolist()), dtype=wp.int32, device=self.device)

    def moves_with(self) -> list[int]:
        """Of each body, halves included, a number for the trees that an impulse on it moves: those that rows join; −1: none."""
        tree_of, ranges = self.trees()
        joined = list(range(len(ranges)))
        for touched in self._row_trees:
            if touched:
                least = min(joined[tree] for tree in touched)
                merged = {joined[tree] for tree in touched}
                joined = [least if at in merged else at for at in joined]
        return [joined[tree_of[body]] if body in tree_of else -1 for body in range(len(self.half_of))]

    def work(self, n: int) -> Scratch:
        """Scratch for n states; made once."""
        if n not in self._work:
            self._work[n] = Scratch(self, n)
        return self._work[n]

    def state(self, what: str, value: Any, size: int, n: int | None = None) -> np.ndarray:
        """(n, size) from a user's (size,) or (n, size)."""
        try:
            x = np.asarray(value if value is not None else np.zeros(size), float)
        except (TypeError, ValueError):
            raise SimulationError(f"dynamics: {what} is ({size},) or (n, {size}) finite numbers, got {value!r}") from None
        if x.shape[-1:] != (size,) or x.ndim > 2 or not np.all(np.isfinite(x)):
            got = f"shape {x.shape}" if x.shape[-1:] != (size,) or x.ndim > 2 else f"{x[~np.isfinite(x)].ravel()[0]} among them"
            raise SimulationError(f"dynamics: {what} is ({size},) or (n, {size}) finite numbers, got {got}")
        x = np.atleast_2d(x)
        if n is not None and len(x) not in (1, n):
            raise SimulationError(f"dynamics: {what} holds {len(x)} states, the others {n}")
        return x if n is None else np.broadcast_to(x, (n, size))


def _branch_by_branch(found: list[Link]) -> list[Link]:
    """The links so that each stands next to its base where it can: what a chain hands on then stays in registers."""
    hanging: dict[int, list[Link]] = {}
    bodies = {link.body for link in found}
    for link in found:
        hanging.setdefault(link.base, []).append(link)
    out: list[Link] = []
    todo = [link for link in reversed(found) if link.base not in bodies]
    while todo:
        link = todo.pop()
        out.append(link)
        todo.extend(reversed(hanging.get(link.body, [])))
    return out


class Scratch:
    """Arrays of the recursions for n states: `tree`, `laws` (none), `rows`, `probe`, and q, v, a, tau."""

    def __init__(self, links: Links, n: int) -> None:
        self.sizes = {
            "body": len(links.half_of), "link": len(links.links), "speed": links.nv, "row": int(links.closures.count),
            "gear": int(links.closures.gears),
        }  # fmt: skip
        self.n, self.device = n, links.device
        self.kept: Any = None
        self.moving: Any = None  # `moving.Moving`, where many states are set
        self.tree, self.laws, self.rows = TreeWork(), AxisLaws(), ClosureWork()
        self.fill(self.tree, "body", "position rotation spin velocity omega acceleration turning force torque")
        self.fill(self.tree, "link", "bias_l bias_a arm A B D Q_l Q_a inverse response kind")
        self.fill(self.tree, "speed", "S_l S_a H_l H_a U Y y u")
        if links.keeps:
            self.fill(self.tree, "body", "change_l change_a")
            self.fill(self.tree, "link", "out close_l close_a change_q")
            self.fill(self.tree, "speed", "change")
        self.fill(self.laws, "link", "acts coupled locks")
        self.fill(self.laws, "speed", "resist push row wanted")
        self.fill(self.rows, "row", "child_l child_a parent_l parent_a gap gamma soft rhs force left")
        self.fill(self.rows, "link", "f_l f_a")
        self.fill(self.rows, "speed", "u y")
        self.fill(self.rows, "body", "a_l a_a")
        self.fill(self.rows, "gear", "gear_start")
        rows = self.sizes["row"]
        self.rows.matrix = wp.zeros((rows, rows, n), dtype=real, device=self.device)
        kept = rows if links.keeps else 0
        self.rows.response = wp.zeros((kept, kept, n), dtype=real, device=self.device)
        ends = [(half, own) for own, half in links.welds for _ in range(6)]
        parents, children = links.parents, links.children
        ends += [(children[k], parents[k]) for k in links.rods] + [(-1, -1)] * self.sizes["gear"]
        ends += [(-2, -2)] * int(links.cables.count)
        springs = links.model.springs
        if springs.count:
            ends += list(zip(springs.child.numpy().tolist(), springs.parent.numpy().tolist(), strict=True))
        both = np.array(ends, np.int32).reshape(-1, 2)
        self.rows.child = wp.array(np.ascontiguousarray(both[:, 0]), dtype=wp.int32, device=self.device)
        self.rows.parent = wp.array(np.ascontiguousarray(both[:, 1]), dtype=wp.int32, device=self.device)
        link_of = [links.link_of.get(b, -1) for b in range(len(links.half_of))]
        self.rows.link_of = wp.array(link_of, dtype=wp.int32, device=self.device)
        self.probe = ClosureWork()  # the same rows, for other forces
        for name in ClosureWork.vars:  # type: ignore[attr-defined]
            setattr(self.probe, name, getattr(self.rows, name))
        self.fill(self.probe, "row", "rhs force left")
        self.fill(self.probe, "link", "f_l f_a")
        self.fill(self.probe, "speed", "u y")
        self.fill(self.probe, "body", "a_l a_a")
        for name in ("position", "rotation"):
            still = np.repeat(links.model.start[name][links.half_of][:, None], n, 1)
            getattr(self.tree, name).assign(np.ascontiguousarray(still, np_real))
        if links.closures.gears:
            start = np.repeat(np.asarray(links.model.start["gear_start"], np_real)[:, None], n, 1)
            self.rows.gear_start.assign(np.ascontiguousarray(start))
        self.q = wp.zeros((links.nq, n), dtype=real, device=self.device)
        self.v, self.a, self.tau = (wp.zeros((links.nv, n), dtype=real, device=self.device) for _ in range(3))

    def fill(self, struct: Any, item: str, names: str) -> None:
        """Give the named array fields of a struct zeros, [item, state]."""
        for name in names.split():
            dtype = struct._cls.vars[name].type.dtype
            setattr(struct, name, wp.zeros((self.sizes[item], self.n), dtype=dtype, device=self.device))


class Buildable(Protocol):
    """What a model is built from: a Scene, which stands above trees and is not named here."""

    def build(self) -> Model:
        """The model."""


def links(model: Model | Buildable | Links, without: Collection[int] | None = None) -> Links:
    """The tree of a model (kept as long as the model); a Scene is built first.

    without: joints that are left out; those that start disabled if None.
    """
    if isinstance(model, Links):
        return model
    if not isinstance(model, Model):
        model = model.build()
    out = frozenset(np.flatnonzero(~model.joint_enabled).tolist() if without is None else without)
    kept: dict[frozenset[int], Links] = model.__dict__.setdefault("_links", {})  # lives with the model
    if out not in kept:
        for name in model.cable_names:
            raise SimulationError(f"cable {name!r}: what stands in joint coordinates knows no cables; allowed are steps")
        kept[out] = Links(model, without=out)
    return kept[out]
