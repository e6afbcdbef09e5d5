"""The arrays of ropes that touch, on the host's side."""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp

from sharnir.core.strided import of_first
from sharnir.core.types import real, vec3
from sharnir.engine.rope.data import MIXED
from sharnir.engine.rope.describe import RopeDescription
from sharnir.engine.rope.touch_data import MOST, RopeTouch
from sharnir.model.model import DYNAMIC, Model

STIFF = 1e3  # σ of `touch.law`, in all that moves
CHUNK = 8  # elements of a piece, and pieces of a longer one, in the search of pairs
BLOCK = 512
FEW = 16  # pairs of elements for which there is room at first
YIELDING = 4  # bodies that yield for which there is
ENTRIES = 32  # points of contact that are solved for together with those of bodies, for which there is (`direct`)
BY_SLOT = ("count", "kept_count", "pull", "moment", "low", "high")
BY_PAIR = ("pair_a", "pair_b", "pair_s", "pair_t", "kept_a", "kept_b", "known")
BY_WORLD = ("pairs", "kept_pairs", "lost", "crowded", "most", "live", "stale", "rows", "met", "spent")
KEPT = ("kept_count", "kept_shape", "kept_state", "kept_n", "kept_impulse", "kept_a", "kept_b", "kept_pairs")
BY_BODY = ("launch_v", "launch_w", "hat_v", "hat_w", "yields", "place")
OF_JOINTS = ("mode", "r_parent", "r_child", "W_ll", "W_la", "W_aa")


def touches(model: Model) -> bool:
    """Whether any rope of a model touches anything."""
    return model.collision is not None and model.ropes is not None and any(r.collide for r in model.ropes.described)


def held_bodies(model: Model) -> tuple[np.ndarray, np.ndarray]:
    """(bodies,) 1 where a body holds a rope; (bodies,) a joint that holds it to what does not move, or −1."""
    holds, joint = np.zeros(len(model.com), np.int32), np.full(len(model.com), -1, np.int32)
    for rope in model.ropes.described:
        holds[[end.body for end in rope.ends if end.body is not None] + [tie.body for tie in rope.ties]] = 1
    dynamic = model.bodies.motion.numpy() == DYNAMIC
    for k, (p, c) in enumerate(zip(model.parents, model.children, strict=True)):
        if dynamic[p] != dynamic[c] and joint[c if dynamic[c] else p] < 0:
            joint[c if dynamic[c] else p] = k
    return holds, joint


def parts_of(model: Model) -> tuple[list[int], np.ndarray]:
    """(ropes,) and (bodies,) which of the parts of a scene that ropes tie together each belongs to; −1: none."""
    ropes, dynamic = model.ropes.described, model.bodies.motion.numpy() == DYNAMIC
    part, body = list(range(len(ropes))), np.full(len(dynamic), -1, np.int32)

    def join(a: int, b: int) -> None:
        old, new = part[a], part[b]
        part[:] = [new if p == old else p for p in part]

    first: dict[int, int] = {}
    for k, rope in enumerate(ropes):
        for b in [*(e.body for e in rope.ends), *(tie.body for tie in rope.ties)]:
            if b is not None and dynamic[b]:
                join(k, first.setdefault(b, k))
        for end in rope.ends:
            if end.rope is not None:
                join(k, model.ropes.names[end.rope[0]])
    for b, k in first.items():
        body[b] = part[k]
    return part, body


def may_meet(model: Model) -> np.ndarray:
    """(ropes, ropes) whether two ropes, or a rope and itself, touch where they meet."""
    ropes = model.ropes.described
    out = [[a.collide and b.collide and b.name not in a.ignored and a.name not in b.ignored for b in ropes] for a in ropes]
    return np.array(out, bool)


def skipped(rope: RopeDescription) -> int:
    """So many elements after one do not touch it: what is less than half a turn about its radius away, along the rope."""
    return 1 + int(np.ceil(np.pi * rope.radius / rope.lengths.mean() - 1e-9))


def near_at_start(model: Model) -> int:
    """Pairs of elements that are within a diameter of touching at the start, about."""
    ropes, meet = model.ropes.described, may_meet(model)
    middle = np.concatenate([0.5 * (r.points[1:] + r.points[:-1]) for r in ropes])
    reach = np.concatenate([1.5 * r.radius + 0.25 * r.lengths for r in ropes])
    owner = np.repeat(np.arange(len(ropes)), [len(r.lengths) for r in ropes])
    skip = np.array([skipped(r) for r in ropes])[owner]
    order = np.arange(len(owner))
    count = 0
    for k in range(0, len(owner), BLOCK):
        a = slice(k, k + BLOCK)
        apart = np.linalg.norm(middle[a, None] - middle[None, k:], axis=2) < reach[a, None] + reach[None, k:]
        later = order[None, k:] - order[a, None] > np.where(owner[a, None] == owner[None, k:], skip[a, None], 0)
        count += int((apart & later & meet[owner[a, None], owner[None, k:]]).sum())
    return count


def hooks(ropes: list[RopeDescription]) -> tuple[np.ndarray, np.ndarray]:
    """(ends,) number of what holds ends at one place, or −1; (ends,) how many elements from there on do not touch each other.

    Ropes that are held at one place overlap there: as far as they do at the start, and a little farther.
    """
    ends = [(r, side, r.ends[side]) for r in ropes for side in (0, 1)]
    hook, near = np.full(len(ends), -1, np.int32), np.zeros(len(ends), np.int32)

    def out(rope: RopeDescription, side: int) -> np.ndarray:
        return rope.points[::-1] if side else rope.points

    for a, (rope, side, end) in enumerate(ends):
        thick = 2 * rope.radius
        if end.rope is not None:
            near[a] = 1 + int(np.ceil(2 * thick / rope.lengths.mean()))
        for b, (other, way, also) in enumerate(ends[:a]):
            reach = rope.radius + other.radius
            if end.body is None or end.body != also.body or np.linalg.norm(end.point - also.point) > 2 * reach:
                continue
            hook[a] = hook[b] = b if hook[b] < 0 else hook[b]
            n = min(len(rope.points), len(other.points))
            apart = np.linalg.norm(out(rope, side)[:n] - out(other, way)[:n], axis=1)
            far = np.flatnonzero(apart > reach)
            least = (int(far[0]) if len(far) else n) + 1 + int(np.ceil(thick / rope.lengths.mean()))
            near[a], near[b] = max(near[a], least), max(near[b], least)
    return hook, near


def pieces(out: Any, model: Model) -> None:
    """Chunks of ropes and spans of chunks, for the search of pairs."""
    ropes = model.ropes
    chunks: list[tuple[int, int]] = []
    spans: list[tuple[int, int]] = []
    for first, most in zip(ropes.first, ropes.capacity, strict=True):
        start = len(chunks)
        chunks += [(i, min(i + CHUNK, first + most)) for i in range(first, first + most, CHUNK)]
        spans += [(i, min(i + CHUNK, len(chunks))) for i in range(start, len(chunks), CHUNK)]
    for name, found in (("chunk", chunks), ("span", spans)):
        setattr(out, f"{name}s", len(found))
        for part, column in (("first", 0), ("end", 1)):
            values = wp.array([x[column] for x in found], dtype=wp.int32, device=model.device)
            setattr(out, f"{name}_{part}", values)
        for side in ("low", "high"):
            setattr(out, f"{name}_{side}", wp.zeros((len(found), model.worlds), dtype=vec3, device=model.device))


def touch_table(model: Model, work: Any, old: Any = None) -> Any:
    """`RopeTouch` of a model's ropes, nothing touched; `work`: scratch of the joints beside them, if these are swept.

    With an `old` one that had too little room: one with twice as much, and all else the same.
    """
    ropes, worlds, device = model.ropes, model.worlds, model.device
    out = RopeTouch()
    meet = may_meet(model)
    moving = int((model.bodies.motion.numpy() == DYNAMIC).sum())
    out.base = int(MOST) * ropes.slots
    if old is None:
        expected = near_at_start(model) if meet.any() else 0
        out.pair_capacity = max(FEW, 2 * expected) if meet.any() else 0
        out.columns = (
            6 * min(moving, YIELDING) + 3 * max(FEW // 2, expected) * int(meet.any()) if work is not None else 3 * ENTRIES
        )
    else:
        out.pair_capacity, out.columns = 2 * old.pair_capacity, max(2 * old.columns, 6)
    sizes = {"end": 2 * ropes.count, "listed": out.columns // 6 + 1, "dense": out.columns * (out.columns + 1)}
    sizes |= dict.fromkeys(("group", "asked", "looks", "moved"), ropes.count + len(model.com))
    sizes |= {"owner": out.columns, "of_entry": out.columns, "known": out.pair_capacity, "W": (3 * out.pair_capacity) ** 2}
    sizes["mixed"] = (int(MIXED) + 1) * (out.base + out.pair_capacity)
    if work is None:  # the small problem is the solver's own
        sizes |= dict.fromkeys(("listed", "dense", "owner", "of_entry", "W", "mixed"), 0)
    for name, var in RopeTouch.vars.items():  # type: ignore[attr-defined]
        if name.startswith(("joint_", "chunk_", "span_")) or name in ("apart", "passes"):
            continue
        if getattr(var.type, "ndim", 0) == 2:
            rows = ropes.slots if name in BY_SLOT else out.base + out.pair_capacity
            rows = len(model.com) if name in BY_BODY else 3 * sizes["listed"] if name.startswith("by_") else rows
            rows = out.pair_capacity if name in BY_PAIR else sizes.get(name, rows)
            setattr(out, name, wp.zeros((rows, worlds), dtype=var.type.dtype, device=device))
        elif name in BY_WORLD:
            setattr(out, name, wp.zeros(worlds, dtype=var.type.dtype, device=device))
    apart = np.zeros((ropes.count, len(model.com)), np.int32)
    for k, rope in enumerate(ropes.described):
        apart[k, sorted(rope.apart)] = 1
    hook, near = hooks(ropes.described)
    rope_of = np.repeat(np.arange(ropes.count), ropes.capacity + 1)
    whole: dict[str, Any] = {"apart": apart, "passes": ~meet, "hook": hook, "near": near, "rope_of": rope_of}
    whole |= {"skip": [skipped(r) for r in ropes.described], "touches": [int(r.collide) for r in ropes.described]}
    whole["holds"], whole["joint"] = held_bodies(model)
    whole["rope_part"], whole["body_part"] = parts_of(model)
    for name, values in whole.items():
        setattr(out, name, wp.array(np.asarray(values, np.int32), dtype=wp.int32, device=device))
    out.parts = ropes.count
    pieces(out, model)
    out.friction = wp.array([r.material.along for r in ropes.described], dtype=real, device=device)
    slides = [r.material.along if r.material.dynamic is None else r.material.dynamic for r in ropes.described]
    out.dynamic = wp.array(slides, dtype=real, device=device)
    mass = of_first(model.bodies.mass)[model.bodies.motion.numpy() == DYNAMIC].sum()
    mass += sum(r.density * r.lengths.sum() for r in ropes.described)
    out.stiff = wp.array([STIFF * mass], dtype=real, device=device)
    out.joint_child = model.joints.child
    for name in OF_JOINTS if work is not None else ():
        setattr(out, f"joint_{name}", getattr(work, name))
    if old is not None:
        keep(out, old)
    return out


def keep(out: Any, old: Any) -> None:
    """What the last step left, in larger arrays."""
    for name in (*KEPT, *BY_WORLD, "count", "shape", "pair_a", "pair_b", "pair_s", "pair_t", "n", "gap", "miss", "impulse"):
        values = getattr(out, name).numpy()
        before = getattr(old, name).numpy()
        values[: len(before)] = before
        getattr(out, name).assign(values)
    out.lost.zero_()
    out.most.zero_()
