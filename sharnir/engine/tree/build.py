"""The forest of a model: a link for every free axis of a joint and for every body, and where their numbers are kept.

A joint with several free axes is a row of links, translations first; only the last of them has a body. A joint whose child is
nearer to the ground than its parent is the same row reversed. The frame of a link is its joint's frame on the body, with z along
the free axis; of bodies that float, or whose motion is prescribed, it is at the centre of mass, along the body's axes.

A joint that closes a loop is in the forest, too: one of its bodies is cut, a part of it hangs on the joint, and rows beside the
forest weld the parts together (`closures`). So laws, coordinates and reactions of all joints are those of links.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sharnir.core.spatial import quat_to_matrix
from sharnir.core.strided import columns
from sharnir.engine.tree.forest import (
    BALL,
    FREE,
    GROUND,
    HINGE,
    PRESCRIBED,
    ROTOR,
    SLIDER,
    SLIDES,
    TURNS,
    WELD,
    Forest,
    Link,
    is_symmetric,
)
from sharnir.model.assembly import gear_ends
from sharnir.model.model import DYNAMIC, KINEMATIC, Model

ALONG = np.array([[[0, 0, 1], [1, 0, 0], [0, 1, 0]], [[0, 1, 0], [0, 0, 1], [1, 0, 0]], np.eye(3)], float)  # z along x, y, z
BACK = np.diag([1.0, -1.0, -1.0])  # z reversed
LOOSE_MASK = 63  # of a joint that leaves all six axes free


@dataclass(frozen=True)
class Place:
    """What a link is in the model."""

    base: int  # link
    kind: int
    joint: int = -1  # −1: none of the scene's
    body: int = -1  # −1: inside a joint with several axes
    slot: int = -1  # of the axis: 0 1 2 translations, 3 4 5 rotations
    axis: int = -1  # number of its (first) speed
    coordinate: int = -1  # number of its (first) coordinate
    sense: int = 1  # −1: the body is the joint's parent
    first: bool = True  # of the links of its joint
    slots: tuple[int, ...] = ()  # of all axes, if it has several translations or two rotations
    part: bool = False  # of a body that is cut, which another link has

    @property
    def aligned(self) -> np.ndarray:
        """The axes of the link frame, by columns, in those of the joint frame."""
        if self.slots:
            own = np.eye(3)
            first, second = (own[s % 3] for s in self.slots[:2])
            if self.kind == SLIDES:
                return np.stack([first, second, np.cross(first, second)], 1)
            carried, other = (first, second)[:: self.sense]
            return np.stack([other, np.cross(carried, other), carried], 1)
        turn = ALONG[self.slot % 3] if self.slot >= 0 else np.eye(3)
        return turn @ BACK if self.sense < 0 and self.slot >= 0 else turn


class Plan:
    """The spanning forest of a model, and the numbers of its links.

    Welds of bodies that are cut, rods, gears, cables, springs between points and raycast wheels are not in it (`beside`: whether
    there are any).

    Args:
        model: what `Scene.build` returned.
        rough: joints to which friction was given after the model was built; axes that share it are in one link.
        whole: whether all loops stay closed. Then axes that can move in the start pose alone have no links, but those of gears:
            gaps of second order, which are taken for rounding, would let them move, and rows that close these would give energy.
    """

    def __init__(self, model: Model, rough: Collection[int] = (), whole: bool = True) -> None:
        self.model, self.rough = model, frozenset(rough)
        geared = {int(model.v_start[k]) + n for ends in gear_ends(model) for k, n in ends[:2]}
        self.still = set(np.flatnonzero(model.shaky).tolist()) - geared if whole else set()
        self.places: list[Place] = []
        self.link_of: dict[int, int] = {}
        self.rods: list[int] = []  # joints that are not in the forest
        self.parts = np.ones(len(model.com), int)  # links that have a part of each body
        self._hang()
        self.numbers = self._numbers()
        self._find_rotors()

    @property
    def beside(self) -> bool:
        """Whether something joins links beside the forest."""
        m = self.model
        return bool(self.rods or self.parts.max(initial=1) > 1 or m.gear_names or m.spring_names or m.cable_names or m.casts)

    @property
    def most(self) -> int:
        """Links if every axis, but those of balls, had one of its own."""
        return sum(max(1, len(p.slots)) for p in self.places)

    # ---- topology ------------------------------------------------------------------------------------------------------------

    def _hang(self) -> None:
        """Breadth first from what does not yield, so that loops are cut far from it; branch by branch in the end."""
        model = self.model
        dynamic = model.bodies.motion.numpy() == DYNAMIC
        near: dict[int, list[tuple[int, int]]] = {}
        rods = self.rods = [k for k, kind in enumerate(model.joint_kinds) if kind.mask and not kind.v_size]
        for k, (p, c) in enumerate(zip(model.parents, model.children, strict=True)):
            if k not in rods:
                near.setdefault(int(p), []).append((k, int(c)))
                near.setdefault(int(c), []).append((k, int(p)))
        seen = {b for b in range(len(dynamic)) if not dynamic[b]}
        hangs: dict[int, list[tuple[int, int, bool]]] = {}  # of a body: (joint, other body, a part of it) that hang on it
        used = set(rods)
        floating: list[int] = []

        def walk(todo: list[int], loose: bool) -> None:
            while todo:
                base = todo.pop(0)
                for k, other in near.get(base, ()):
                    if other not in seen and (loose or model.joint_kinds[k].mask != LOOSE_MASK):
                        seen.add(other)
                        used.add(k)
                        hangs.setdefault(base, []).append((k, other, False))
                        todo.append(other)

        walk(sorted(seen), False)
        walk(sorted(seen), True)
        for b in range(len(dynamic)):
            if b not in seen:
                seen.add(b)
                floating.append(b)
                walk([b], False)
                walk(sorted(seen), True)
        for k, (p, c) in enumerate(zip(model.parents, model.children, strict=True)):
            if k not in used and (dynamic[p] or dynamic[c]) and not self._idle(k):
                body, base = (int(c), int(p)) if dynamic[c] else (int(p), int(c))
                hangs.setdefault(base, []).append((k, body, True))
                self.parts[body] += 1
        kinematic = model.bodies.motion.numpy() == KINEMATIC
        ends = {int(b) for k in rods for b in (model.parents[k], model.children[k])}
        ends |= {int(b) for side in (model.springs.parent, model.springs.child) if model.spring_names for b in side.numpy()}
        ends |= set(model.cables.body.numpy().tolist()) if model.cable_names else set()
        roots = [
            b for b in range(1, len(dynamic)) if b in floating or kinematic[b] or (not dynamic[b] and (b in hangs or b in ends))
        ]
        for b in (0, *roots):
            if b > 0:
                self.link_of[b] = len(self.places)
                self.places.append(Place(GROUND, FREE if dynamic[b] else PRESCRIBED, body=b))
            self._branch(b, hangs)

    def _idle(self, k: int) -> bool:
        """Whether a joint does nothing: it allows every motion, and no law acts on its axes."""
        return self.model.joint_kinds[k].mask == LOOSE_MASK and not any(axis.acts for axis in self.model.joint_axes[k])

    def _branch(self, root: int, hangs: dict[int, list[tuple[int, int, bool]]]) -> None:
        """The links of all that hangs on a body, depth first."""
        todo = [(root, *what) for what in reversed(hangs.get(root, []))]
        while todo:
            base, k, body, part = todo.pop()
            self._joint(k, base, body, part)
            if not part:
                todo += [(body, *what) for what in reversed(hangs.get(body, []))]

    def _joint(self, k: int, base: int, body: int, part: bool) -> None:
        """The links of a joint; `part`: a part of the body, which is cut, hangs on it."""
        model, kind = self.model, self.model.joint_kinds[k]
        sense = 1 if model.children[k] == body else -1
        v, q = int(model.v_start[k]), int(model.q_start[k])
        slots = [int(s) for s in model.joints.slot.numpy()[: kind.v_size, k]]
        rows = [(SLIDER if s < 3 else HINGE, s, v + i, q + i) for i, s in enumerate(slots)]
        if len(kind.turns) == 3:
            at = kind.v_size - 3
            rows = [*rows[:at], (BALL, -1, v + at, q + at)]
        moves = kind.v_size - len(kind.turns)
        together: dict[int, tuple[int, ...]] = {}  # slots of links that have several of the axes
        if len(kind.turns) == 2 and self._shared(k, slice(moves, kind.v_size)):
            rows = [*rows[:moves], (TURNS, -1, v + moves, q + moves)]
            together[v + moves] = tuple(slots[moves:])
        if moves > 1 and self._shared(k, slice(0, moves)):
            rows = [(SLIDES, -1, v, q), *rows[moves:]]
            together[v] = tuple(slots[:moves])
        counts = {BALL: 3, TURNS: 2, SLIDES: moves}
        rows = [r for r in rows if not self.still.issuperset(range(r[2], r[2] + counts.get(r[0], 1)))]
        rows = rows or [(WELD, -1, -1, -1)]
        at_link = self.link_of.get(base, GROUND)
        for n, (what, slot, axis, coordinate) in enumerate(rows[::sense]):
            last = n == len(rows) - 1
            several = together.get(axis, ())
            own = (body if last else -1, slot, axis, coordinate, sense, n == 0, several, part and last)
            self.places.append(Place(at_link, what, k, *own))
            at_link = len(self.places) - 1
        if not part:
            self.link_of[body] = at_link

    def _shared(self, k: int, axes: slice) -> bool:
        """Whether friction bounds the vector of some axes of a joint."""
        some = self.model.joint_axes[k][axes]
        rough = k in self.rough or any(a.friction.static or a.friction.load or a.friction.dynamic for a in some)
        return rough and len({a.group for a in some}) < len(some)

    def _find_rotors(self) -> None:
        """Links on a hinge that carry nothing and are symmetric about it in all worlds are rotors; not beside rows, which take
        hinges as they are.
        """
        if self.beside or self.model.collision is not None or self.model.ropes is not None:
            return
        bases, x = {p.base for p in self.places}, self.numbers
        for i, p in enumerate(self.places):
            if p.kind == HINGE and p.body >= 0 and i not in bases and is_symmetric(x["inertia"][i], x["com"][i], x["mass"][i]):
                self.places[i] = replace(p, kind=ROTOR)

    # ---- numbers -------------------------------------------------------------------------------------------------------------

    def _numbers(self) -> dict[str, np.ndarray]:
        """Frames, anchors, centres of mass, inertias and masses, (links, 1 or worlds, …)."""
        model, n = self.model, len(self.places)
        t = model.joints
        names = ("parent_point", "child_point", "parent_frame", "child_frame")
        tables = {name: columns(getattr(t, name)) if model.joint_kinds else np.zeros((0, 1, 3)) for name in names}
        mass, inertia = columns(model.bodies.mass), columns(model.bodies.inertia)
        worlds = max(x.shape[1] for x in (mass, inertia, *tables.values()))
        shape = (n, worlds)
        self.own_turn, self.own_point = np.zeros((*shape, 3, 3)), np.zeros((*shape, 3))  # of link frames, in the body's axes
        out = {"frame": np.zeros((*shape, 3, 3)), "anchor": np.zeros((*shape, 3)), "com": np.zeros((*shape, 3))}
        out |= {"inertia": np.zeros((*shape, 3, 3)), "mass": np.zeros(shape)}
        aligned = np.eye(3)
        for i, p in enumerate(self.places):
            out["frame"][i] = self.own_turn[i] = np.eye(3)
            if p.joint >= 0:
                sides = ("parent", "child")[:: p.sense]
                near, far = (quat_to_matrix(tables[f"{side}_frame"][p.joint]) for side in sides)
                turn = p.aligned
                if p.first:
                    base_turn = self.own_turn[p.base] if p.base >= 0 else np.eye(3)[None]
                    base_point = self.own_point[p.base] if p.base >= 0 else np.zeros((1, 3))
                    back = np.swapaxes(base_turn, 1, 2)
                    out["frame"][i] = back @ near @ turn
                    offset = tables[f"{sides[0]}_point"][p.joint] - base_point
                    out["anchor"][i] = np.einsum("wij,wj->wi", np.broadcast_to(back, (len(offset), 3, 3)), offset)
                else:
                    out["frame"][i] = aligned.T @ turn
                aligned = turn
                self.own_turn[i] = far @ turn
                self.own_point[i] = tables[f"{sides[1]}_point"][p.joint]
            if p.body >= 0 and p.kind != PRESCRIBED:
                Q = self.own_turn[i]
                own_mass, own_inertia = mass[p.body] / self.parts[p.body], inertia[p.body] / self.parts[p.body]
                out["mass"][i] = own_mass
                out["com"][i] = -np.einsum("wji,wj->wi", Q, self.own_point[i])
                out["inertia"][i] = np.swapaxes(Q, 1, 2) @ self._inertia(own_inertia, own_mass, out["com"][i]) @ Q
        if worlds > 1 and all((x == x[:, :1]).all() for x in out.values()):
            out = {name: x[:, :1] for name, x in out.items()}
            self.own_turn, self.own_point = self.own_turn[:, :1], self.own_point[:, :1]
        for name, x in out.items():
            clean = np.round(x)
            out[name] = np.where(np.abs(x - clean) < 4e-16, clean, x) if name == "frame" else x
        return out

    @staticmethod
    def _inertia(inertia: np.ndarray, mass: np.ndarray, com: np.ndarray) -> np.ndarray:
        """(worlds, 3, 3) of a body; a point mass gets one that nobody sees: about its joint if that is at the mass itself."""
        point = ~inertia.any((1, 2)) & (mass > 0)
        if not point.any():
            return inertia
        r2 = (com**2).sum(-1)
        own = mass * np.where(r2 > 0, 1e-12 * r2, 1.0)
        return np.where(point[:, None, None], np.eye(3) * own[:, None, None], inertia)

    def forest(self, laws: list[dict[str, float]] | None = None) -> Forest:
        """The links with the numbers of the first world."""
        x = {name: values[:, 0] for name, values in self.numbers.items()}
        return Forest(
            [
                Link(
                    p.base, p.kind, x["frame"][i], x["anchor"][i], x["com"][i], x["inertia"][i], float(x["mass"][i]),
                    laws[i] if laws is not None else {},
                )
                for i, p in enumerate(self.places)
            ]
        )  # fmt: skip

    def table(self) -> np.ndarray:
        """(numbers per link · links, 1 or worlds) in the order of `forest.INERTIAL`."""
        x = self.numbers
        six = np.stack([x["inertia"][..., r, c] for r, c in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))], -1)
        rows = [x["frame"].reshape(*x["frame"].shape[:2], 9), x["anchor"], x["com"], six, x["mass"][..., None]]
        both: Any = np.concatenate(rows, -1)  # (links, worlds, numbers)
        return np.ascontiguousarray(np.swapaxes(both, 1, 2).reshape(-1, both.shape[1]))
