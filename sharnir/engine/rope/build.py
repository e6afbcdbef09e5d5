"""The device's tables of ropes: which end is eliminated last, in which order, and the arrays of a start."""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp

from sharnir.core.linalg import close_order, row_ends
from sharnir.core.spatial import quat_multiply
from sharnir.core.strided import table
from sharnir.core.types import np_real, quat, real, vec3
from sharnir.engine.rope.data import BODY, DRIVEN, LOOP, PORT, ROPE, UNHELD, RopeTable
from sharnir.engine.rope.describe import RopeDescription, RopeEnd, RopeTie, Winch
from sharnir.errors import SceneError
from sharnir.model.model import DYNAMIC
from sharnir.model.rope_state import RopeControl, RopeState

HALF_TURN = np.array([1.0, 0.0, 0.0, 0.0])  # about the first axis: an element looked at from its other end


def end_kind(end: RopeEnd, motion: np.ndarray) -> int:
    """UNHELD, DRIVEN, BODY or ROPE."""
    if end.rope is not None:
        return int(ROPE)
    if end.body is None:
        return int(UNHELD)
    return int(BODY) if motion[end.body] == DYNAMIC else int(DRIVEN)


class Layout:
    """Which end of each rope comes first, which rope moves which body, and the order of elimination.

    A rope is eliminated towards its first end; a dynamic body is moved by at most one rope (its last end, or a tie) and is the
    first end of all others that it holds: what hangs on it is added up before it moves. So ropes and the dynamic bodies between
    them form a forest.
    """

    def __init__(self, ropes: list[RopeDescription], motion: np.ndarray, trees: bool = False) -> None:
        self.ropes, self.motion = ropes, motion
        self.kinds = [[end_kind(e, motion) for e in r.ends] for r in ropes]
        self.flip = [False] * len(ropes)
        self.owner: dict[int, int] = {}
        self.holds: dict[int, list[int]] = {}
        if trees:
            self.loops = [k for k in range(len(ropes)) if self._on_trees(k)]
            self.order = self._sorted()
            return
        for k, r in enumerate(ropes):
            for tie in r.ties:
                if motion[tie.body] == DYNAMIC:
                    self._own(tie.body, k)
            for end in r.ends:
                if end.body is not None and motion[end.body] == DYNAMIC:
                    self.holds.setdefault(end.body, []).append(k)
        self.loops = self._loops()
        grouped = {e.body for k in self.loops for e in ropes[k].ends}
        todo = [k for k in range(len(ropes)) if not self._simple(k) and k not in self.loops]
        anchored = [k for k in range(len(ropes)) if self.kinds[k].count(BODY) == 1 and DRIVEN in self.kinds[k]]
        held = [ropes[k].ends[self.kinds[k].index(BODY)].body for k in anchored]
        # a body's only rope to the ground moves it and all that hangs on it; several hang on the body, and share its load alike
        for k, body in zip(anchored, held, strict=True):
            side = self.kinds[k].index(BODY)
            assert body is not None
            if body not in self.owner and body not in grouped and held.count(body) == 1:
                self.flip[k] = side == 0
                self._own(body, k)
            else:
                self.flip[k] = side == 1
            self._outward(body, todo)
        for body in [*self.owner, *self.holds]:
            self._outward(body, todo)
        self.order = self._sorted()

    def _on_trees(self, k: int) -> bool:
        """Orient a rope among bodies that joints move: its first end hangs on one, or on a rope. True if one holds its last."""
        kinds, ends = self.kinds[k], self.ropes[k].ends
        if kinds.count(BODY) == 2:
            self.flip[k] = ends[1].clamp and not ends[0].clamp  # a clamped last end has three rows more
            return True
        if BODY in kinds and ROPE in kinds:
            self.flip[k] = kinds.index(ROPE) == 1
            return True
        if BODY in kinds:
            self.flip[k] = kinds.index(BODY) == 1
        else:
            self._simple(k)
        return False

    def _outward(self, body: int, todo: list[int]) -> None:
        """Orient the ropes between dynamic bodies away from one of them."""
        front = [body]
        while front:
            b = front.pop()
            for k in [k for k in todo if k in self.holds.get(b, [])]:
                todo.remove(k)
                side = 0 if self.ropes[k].ends[0].body == b else 1
                self.flip[k] = bool(side)
                other = self.ropes[k].ends[1 - side].body
                assert other is not None
                self._own(other, k)
                front.append(other)

    def _loops(self) -> list[int]:
        """Ropes between dynamic bodies (or from one to itself) that, taken together, do not form a forest."""
        pairs = {k: (r.ends[0].body, r.ends[1].body) for k, r in enumerate(self.ropes) if self.kinds[k].count(BODY) == 2}
        out: list[int] = []
        left = set(pairs)
        while left:
            ropes = {left.pop()}
            while True:
                bodies = {b for k in ropes for b in pairs[k]}
                more = {k for k in left if bodies & set(pairs[k])}
                if not more:
                    break
                ropes |= more
                left -= more
            if len(ropes) >= len(bodies):
                out += sorted(ropes)
        for k in out:
            if self.ropes[k].ends[1].clamp and self.ropes[k].ends[0].clamp:
                raise SceneError(
                    f"rope {self.ropes[k].name!r} is part of a loop of dynamic bodies: one of its ends may be clamped"
                )
            self.flip[k] = self.ropes[k].ends[1].clamp
            if any(b in self.owner for b in pairs[k]):
                raise SceneError(f"rope {self.ropes[k].name!r}: a body in a loop of ropes is not tied to a rope between its ends")
        return out

    def _own(self, body: int, k: int) -> None:
        if body in self.owner:
            raise SceneError(
                f"rope {self.ropes[k].name!r} closes a loop of ropes and dynamic bodies; ropes between them are to form a tree"
            )
        self.owner[body] = k

    def _simple(self, k: int) -> bool:
        """Orient a rope that hangs on another, or has an end that is free or does not yield; False: between dynamic bodies."""
        kinds, ends = self.kinds[k], self.ropes[k].ends
        if kinds.count(BODY) == 2:
            return False
        if ROPE in kinds:
            if kinds.count(ROPE) == 2:
                raise SceneError(f"rope {self.ropes[k].name!r}: both ends are tied to ropes; one may be")
            first = kinds.index(ROPE)
        elif BODY in kinds and DRIVEN in kinds:
            return True
        elif BODY in kinds:
            first = kinds.index(BODY)
        else:
            first = int(kinds[1] == DRIVEN and kinds[0] == UNHELD)
        self.flip[k] = bool(first)
        last = ends[1 - first].body
        if kinds[1 - first] == BODY and last is not None:
            self._own(last, k)
        return True

    def _sorted(self) -> list[int]:
        """Every rope after those that hang on it, or on a body that it moves."""
        names = {r.name: k for k, r in enumerate(self.ropes)}
        after: dict[int, int | None] = {}
        for k, r in enumerate(self.ropes):
            end = r.ends[int(self.flip[k])]
            held = names[end.rope[0]] if end.rope is not None else self.owner.get(-1 if end.body is None else end.body)
            after[k] = held
        out: list[int] = []
        while len(out) < len(after):
            ready = [k for k in after if k not in out and all(j in out for j in after if after[j] == k)]
            if not ready:
                raise SceneError(f"ropes {[self.ropes[k].name for k in after if k not in out]} are tied in a loop")
            out += ready
        return out


def turned_round(rope: RopeDescription) -> RopeDescription:
    """The same rope from its other end: elements half a turn about their first axis, û = (−u₁, u₂, u₃)."""
    ends = tuple(
        RopeEnd(e.body, e.rope, e.clamp, e.point, quat_multiply(e.frame, HALF_TURN)) for e in (rope.ends[1], rope.ends[0])
    )
    return RopeDescription(
        rope.name, rope.points[::-1].copy(), rope.lengths[::-1].copy(), quat_multiply(rope.rotations[::-1], HALF_TURN),
        rope.velocity[::-1].copy(), rope.density, rope.radius, rope.EI, rope.GJ, rope.rest[::-1] * (-1.0, 1.0, 1.0), rope.damping,
        rope.drag, rope.air, rope.strength, rope.rod, ends, 1 - rope.reel if rope.reel >= 0 else -1, rope.longest, rope.winch,  # type: ignore[arg-type]
        [RopeTie(len(rope.lengths) - t.at, t.body, t.point) for t in rope.ties], rope.material, rope.collide, rope.ignored,
        rope.apart,
    )  # fmt: skip


class Ropes:
    """The ropes of a scene on a device: tables, and new states.

    Where ropes and the bodies between them do not form what the ropes' own elimination takes (`refused` says why), they are laid
    out for trees, on which ropes meet bodies at ports.
    """

    def __init__(self, ropes: list[RopeDescription], motion: np.ndarray, worlds: int, device: Any, trees: bool = False) -> None:
        self.refused = ""
        try:
            layout = Layout(ropes, motion)
        except SceneError as error:
            self.refused = str(error)
        self.trees = trees = trees or bool(self.refused)
        if trees:
            layout = Layout(ropes, motion, trees)
        self.given = ropes, motion, worlds, device
        self.order, self.flip, self.loops = layout.order, layout.flip, layout.loops
        self.group, self.row_first = ([], []) if trees else self._couple(ropes)
        self.hung = [*layout.owner, *self.group]
        self.names = {r.name: k for k, r in enumerate(ropes)}
        self.described = [turned_round(r) if f else r for r, f in zip(ropes, self.flip, strict=True)]
        self.worlds, self.device, self.count = worlds, device, len(ropes)
        most = [self._capacity(r) for r in self.described]
        self.capacity = np.array(most, int)
        self.first = np.concatenate([[0], np.cumsum(self.capacity + 1)])[:-1].astype(int)
        self.slots = int((self.capacity + 1).sum())
        self.table = self._table(motion)

    def _couple(self, ropes: list[RopeDescription]) -> tuple[list[int], list[int]]:
        """The bodies that loops of ropes couple, neighbours close together, and where each of their six rows begins."""
        pairs = [tuple(int(e.body) for e in ropes[k].ends if e.body is not None) for k in self.loops]
        bodies = sorted({b for pair in pairs for b in pair})
        near = [{bodies.index(b) for pair in pairs if body in pair for b in pair} - {i} for i, body in enumerate(bodies)]
        order = close_order(near)
        place = {i: at for at, i in enumerate(order)}
        first = [6 * min([at, *(place[j] for j in near[i])]) for at, i in enumerate(order)]
        return [bodies[i] for i in order], [x for x in first for _ in range(6)]

    def laid_out(self, trees: bool) -> Ropes:
        """These ropes among bodies that joints move (on trees: no rope moves a body), or for the ropes' own elimination."""
        if trees == self.trees:
            return self
        if self.refused:
            raise SceneError(f"{self.refused}; or use solver='direct'")
        return Ropes(*self.given, trees=trees)

    @staticmethod
    def _capacity(rope: RopeDescription) -> int:
        n = len(rope.lengths)
        if rope.reel < 0:
            return n
        return n + int(np.ceil((rope.longest - rope.lengths.sum()) / rope.lengths[0 if rope.reel == 0 else -1])) + 1

    def _table(self, motion: np.ndarray) -> RopeTable:
        def put(values: Any, dtype: Any) -> Any:
            return wp.array(values, dtype=dtype, device=self.device)

        d, t = self.described, RopeTable()
        t.count = len(d)
        t.order, t.first, t.capacity = (put(v, wp.int32) for v in (self.order, self.first, self.capacity))
        for name in ("density", "radius"):
            setattr(t, name, put([getattr(r, name) for r in d], real))
        for name in ("EI", "GJ", "damping", "drag", "air"):
            setattr(t, name, table([getattr(r, name) for r in d], real, self.worlds, self.device))
        t.strength = table([min(r.strength, 1e30) for r in d], real, self.worlds, self.device)
        t.rod = put([int(r.rod) for r in d], wp.int32)
        t.reel = put([r.reel for r in d], wp.int32)
        t.longest = put([r.longest for r in d], real)
        winches = [r.winch or Winch() for r in d]
        t.winch = put([winch.joint for winch in winches], wp.int32)
        t.drum_child = put([winch.child for winch in winches], wp.int32)
        t.drum_parent = put([winch.parent for winch in winches], wp.int32)
        t.drum = put([winch.radius for winch in winches], real)
        t.drum_axis = put(np.array([winch.axis for winch in winches]).reshape(-1, 3), vec3)
        t.segment = put([r.lengths[-1 if r.reel == 1 else 0] for r in d], real)
        rest = np.zeros((self.slots, 3))
        for r, at, most in zip(d, self.first, self.capacity, strict=True):
            rest[at : at + most + 1] = r.rest[-1]
            rest[at : at + len(r.rest)] = r.rest
        t.rest = put(rest, vec3)
        ends = [e for r in d for e in r.ends]
        kinds = [end_kind(e, motion) for e in ends]
        for k in self.loops:
            kinds[2 * k + 1] = int(PORT if self.trees else LOOP)
        t.kind = put(kinds, wp.int32)
        t.group, t.grouped = put(self.group, wp.int32), len(self.group)
        t.exact = int(not self.trees and not self.loops)
        t.row_first, t.row_last = put(self.row_first, wp.int32), put(row_ends(self.row_first), wp.int32)
        t.place = put([self.group.index(b) if b in self.group else -1 for b in range(len(motion))], wp.int32)
        t.body = put([e.body or 0 if e.rope is None else self._slot(*e.rope) for e in ends], wp.int32)
        t.clamp = put([int(e.clamp) for e in ends], wp.int32)
        t.point = put(np.array([e.point for e in ends]).reshape(-1, 3), vec3)
        t.frame = put(np.array([e.frame for e in ends]).reshape(-1, 4), quat)
        ties = [(k, tie) for k, r in enumerate(d) for tie in r.ties]
        held = {self.names[e.rope[0]] for e in ends if e.rope is not None} | {k for k, _ in ties}
        t.ties = len(ties)
        t.tied = put([int(k in held) for k in range(len(d))], wp.int32)
        t.tie_rope = put([k for k, _ in ties], wp.int32)
        yields = int(PORT if self.trees else BODY)
        t.tie_kind = put([yields if motion[tie.body] == DYNAMIC else int(DRIVEN) for _, tie in ties], wp.int32)
        t.tie_slot = put([self.first[k] + tie.at for k, tie in ties], wp.int32)
        t.tie_body = put([tie.body for _, tie in ties], wp.int32)
        t.tie_point = put(np.array([tie.point for _, tie in ties]).reshape(-1, 3), vec3)
        return t

    def _slot(self, name: str, point: int) -> int:
        """Slot of a point that was counted from a rope's first end as described."""
        k = self.names[name]
        n = len(self.described[k].lengths)
        return int(self.first[k] + (n - point if self.flip[k] else point))

    def state(self) -> RopeState:
        """A new state at the start."""
        s = RopeState()
        s.trees = int(self.trees)
        zeros(s, RopeState, self.slots, self.worlds, self.device)
        s.started, s.degree = (wp.zeros((self.count, self.worlds), dtype=wp.int32, device=self.device) for _ in range(2))
        s.owed = wp.zeros((self.count, self.worlds), dtype=real, device=self.device)
        s.reel_rate, s.reel_now = (wp.zeros((self.count, self.worlds), dtype=real, device=self.device) for _ in range(2))
        s.body_couple = wp.zeros((len(self.given[1]), self.worlds), dtype=vec3, device=self.device)
        s.end_mean = wp.zeros((2 * self.count, self.worlds), dtype=vec3, device=self.device)
        s.end_force = wp.zeros((2 * self.count, self.worlds), dtype=vec3, device=self.device)
        s.tie_force = wp.zeros((self.table.ties, self.worlds), dtype=vec3, device=self.device)
        s.segments = wp.array(
            self._columns([len(r.lengths) for r in self.described], np.int32), dtype=wp.int32, device=self.device
        )
        rotation = np.zeros((self.slots, 4))
        rotation[:, 3] = 1.0
        values = {"length": np.ones(self.slots), "position": np.zeros((self.slots, 3)), "velocity": np.zeros((self.slots, 3))}
        values |= {"rotation": rotation, "span": np.ones(self.slots)}
        for r, at in zip(self.described, self.first, strict=True):
            n = len(r.lengths)
            values["length"][at : at + n] = values["span"][at : at + n] = r.lengths
            values["position"][at : at + n + 1] = r.points
            values["velocity"][at : at + n + 1] = r.velocity
            rotation[at : at + n] = r.rotations
        for name, value in values.items():
            getattr(s, name).assign(self._columns(value, np_real))
        return s

    def control(self) -> RopeControl:
        """Commands that do nothing."""
        c = RopeControl()
        zeros(c, RopeControl, self.slots, self.worlds, self.device)
        c.reel_speed, c.reel_to = (wp.zeros((self.count, self.worlds), dtype=real, device=self.device) for _ in range(2))
        c.wind = wp.zeros(self.worlds, dtype=vec3, device=self.device)
        return c

    def _columns(self, values: Any, dtype: Any) -> np.ndarray:
        return np.ascontiguousarray(np.repeat(np.asarray(values, dtype)[:, None], self.worlds, 1))


def zeros(struct: Any, kind: Any, rows: int, worlds: int, device: Any) -> None:
    """Give every [item, world] array of a struct zeros."""
    for name, var in kind.vars.items():
        if getattr(var.type, "ndim", 0) == 2:
            setattr(struct, name, wp.zeros((rows, worlds), dtype=var.type.dtype, device=device))
