"""The device's tables of ropes: which end is eliminated last, in which order, and the arrays of a start."""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp

from sharnir.rope.data import BODY, DRIVEN, FREE, RopeControl, RopeState, RopeTable
from sharnir.rope.describe import RopeDescription, RopeEnd
from sharnir.spatial import quat_multiply
from sharnir.types import np_real, quat, real, vec3

DYNAMIC = 2
HALF_TURN = np.array([1.0, 0.0, 0.0, 0.0])  # about the first axis: an element looked at from its other end


def end_kind(end: RopeEnd, motion: np.ndarray) -> int:
    """FREE, DRIVEN or BODY."""
    if end.body is None:
        return int(FREE)
    return int(BODY) if motion[end.body] == DYNAMIC else int(DRIVEN)


def orient(ropes: list[RopeDescription], motion: np.ndarray) -> tuple[list[int], list[bool], list[int]]:
    """Order of elimination, whether each rope is looked at from its other end, and bodies moved by a rope's last end.

    A dynamic body on one rope alone hangs on that rope's last end. A body on several is the first end of all but at most one of
    them: what hangs on it is added up before it moves. Ropes between dynamic bodies are to form a forest.
    """
    kinds = [[end_kind(e, motion) for e in r.ends] for r in ropes]
    bodies = [
        [e.body if kind == BODY else None for e, kind in zip(r.ends, ks, strict=True)] for r, ks in zip(ropes, kinds, strict=True)
    ]
    count: dict[int, int] = {}
    for pair in bodies:
        for b in pair:
            if b is not None:
                count[b] = count.get(b, 0) + 1
    flip = [False] * len(ropes)
    hung: list[int] = []
    links: dict[int, list[int]] = {}
    for k, (a, b) in enumerate(bodies):
        if a is not None and b is not None:
            if a == b:
                raise NotImplementedError(f"rope {ropes[k].name!r}: both ends on one body")
            links.setdefault(a, []).append(k)
            links.setdefault(b, []).append(k)
        else:
            driven = [kind == DRIVEN for kind in kinds[k]]
            yields = [x is not None for x in (a, b)]
            if any(yields) and any(driven):
                body = a if a is not None else b
                first = int(yields[1]) if count[body] > 1 else int(driven[1])
                if count[body] == 1:
                    hung.append(body)
            elif any(yields):
                first = int(yields[1])
            else:
                first = 0 if driven[0] or not driven[1] else 1
            flip[k] = bool(first)
    depth: dict[int, int] = {}
    seen: set[int] = set()
    for root in links:
        if root in seen:
            continue
        seen.add(root)
        front = [(root, -1, 0)]
        while front:
            body, by, level = front.pop()
            for k in links[body]:
                if k == by:
                    continue
                a, b = bodies[k]
                other = b if a == body else a
                if other in seen:
                    raise NotImplementedError(f"rope {ropes[k].name!r} closes a loop of dynamic bodies and ropes")
                seen.add(other)
                flip[k] = a != body
                hung.append(other)
                depth[k] = level + 1
                front.append((other, k, level + 1))
    single = [k for k in range(len(ropes)) if k not in depth]
    order = single + sorted(depth, key=lambda k: -depth[k])
    return order, flip, hung


def turned_round(rope: RopeDescription) -> RopeDescription:
    """The same rope from its other end: elements half a turn about their first axis, û = (−u₁, u₂, u₃)."""
    ends = tuple(RopeEnd(e.body, e.clamp, e.point, quat_multiply(e.frame, HALF_TURN)) for e in (rope.ends[1], rope.ends[0]))
    return RopeDescription(
        rope.name, rope.points[::-1].copy(), rope.lengths[::-1].copy(), quat_multiply(rope.rotations[::-1], HALF_TURN),
        rope.velocity[::-1].copy(), rope.density, rope.radius, rope.EI, rope.GJ, rope.rest[::-1] * (-1.0, 1.0, 1.0), rope.damping,
        rope.drag, rope.air, rope.strength, ends, 1 - rope.reel if rope.reel >= 0 else -1, rope.longest,  # type: ignore[arg-type]
    )  # fmt: skip


class Ropes:
    """The ropes of a scene on a device: tables, and new states."""

    def __init__(self, ropes: list[RopeDescription], motion: np.ndarray, worlds: int, device: Any) -> None:
        self.order, self.flip, self.hung = orient(ropes, motion)
        self.names = {r.name: k for k, r in enumerate(ropes)}
        self.described = [turned_round(r) if f else r for r, f in zip(ropes, self.flip, strict=True)]
        self.worlds, self.device, self.count = worlds, device, len(ropes)
        most = [self._capacity(r) for r in self.described]
        self.capacity = np.array(most, int)
        self.first = np.concatenate([[0], np.cumsum(self.capacity + 1)])[:-1].astype(int)
        self.slots = int((self.capacity + 1).sum())
        self.table = self._table(motion)

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
        for name in ("density", "radius", "EI", "GJ", "damping", "drag", "air"):
            setattr(t, name, put([getattr(r, name) for r in d], real))
        t.strength = put([min(r.strength, 1e30) for r in d], real)
        t.reel = put([r.reel for r in d], wp.int32)
        t.segment = put([r.lengths[-1 if r.reel == 1 else 0] for r in d], real)
        rest = np.zeros((self.slots, 3))
        for r, at, most in zip(d, self.first, self.capacity, strict=True):
            rest[at : at + most + 1] = r.rest[-1]
            rest[at : at + len(r.rest)] = r.rest
        t.rest = put(rest, vec3)
        ends = [e for r in d for e in r.ends]
        t.kind = put([end_kind(e, motion) for e in ends], wp.int32)
        t.body = put([e.body or 0 for e in ends], wp.int32)
        t.clamp = put([int(e.clamp) for e in ends], wp.int32)
        t.point = put(np.array([e.point for e in ends]).reshape(-1, 3), vec3)
        t.frame = put(np.array([e.frame for e in ends]).reshape(-1, 4), quat)
        return t

    def state(self) -> RopeState:
        """A new state at the start."""
        s = RopeState()
        zeros(s, RopeState, self.slots, self.worlds, self.device)
        s.started = wp.zeros((self.count, self.worlds), dtype=wp.int32, device=self.device)
        s.owed = wp.zeros((self.count, self.worlds), dtype=real, device=self.device)
        s.end_force = wp.zeros((2 * self.count, self.worlds), dtype=vec3, device=self.device)
        s.segments = wp.array(
            self._columns([len(r.lengths) for r in self.described], np.int32), dtype=wp.int32, device=self.device
        )
        rotation = np.zeros((self.slots, 4))
        rotation[:, 3] = 1.0
        values = {"length": np.ones(self.slots), "position": np.zeros((self.slots, 3)), "velocity": np.zeros((self.slots, 3))}
        values["rotation"] = rotation
        for r, at in zip(self.described, self.first, strict=True):
            n = len(r.lengths)
            values["length"][at : at + n] = r.lengths
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
        c.reel_speed = wp.zeros((self.count, self.worlds), dtype=real, device=self.device)
        c.wind = wp.zeros(1, dtype=vec3, device=self.device)
        return c

    def _columns(self, values: Any, dtype: Any) -> np.ndarray:
        return np.ascontiguousarray(np.repeat(np.asarray(values, dtype)[:, None], self.worlds, 1))


def zeros(struct: Any, kind: Any, rows: int, worlds: int, device: Any) -> None:
    """Give every [item, world] array of a struct zeros."""
    for name, var in kind.vars.items():
        if getattr(var.type, "ndim", 0) == 2:
            setattr(struct, name, wp.zeros((rows, worlds), dtype=var.type.dtype, device=device))
