"""The arrays of ropes that touch, on the host's side."""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp

from sharnir.model import DYNAMIC, Model
from sharnir.rope.touch_data import MOST, RopeTouch
from sharnir.tables import of_first
from sharnir.types import real

STIFF = 1e3  # σ of `touch.law`, in all that moves
BY_SLOT = ("count", "kept_count", "v", "w", "pull", "moment", "alone")
BY_BODY = ("body_v", "body_w", "launch_v", "launch_w", "hat_v", "hat_w", "yields", "place")
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


def touch_table(model: Model, work: Any) -> Any:
    """`RopeTouch` of a model's ropes, nothing touched; `work`: scratch of the joints beside them."""
    ropes, worlds, device = model.ropes, model.worlds, model.device
    out = RopeTouch()
    for name, var in RopeTouch.vars.items():  # type: ignore[attr-defined]
        if getattr(var.type, "ndim", 0) == 2:
            rows = ropes.slots * (1 if name in BY_SLOT else int(MOST))
            rows = {"end": 2 * ropes.count, "listed": 4, "dense": 24 * 25}.get(name, rows)
            rows = len(model.com) if name in BY_BODY else 12 if name.startswith("by_") else rows
            rows = ropes.count if name == "joined" else rows
            if name.startswith("joint_"):
                continue
            setattr(out, name, wp.zeros((rows, worlds), dtype=var.type.dtype, device=device))
    apart = np.zeros((ropes.count, len(model.com)), np.int32)
    for k, rope in enumerate(ropes.described):
        apart[k, sorted(rope.apart)] = 1
    out.apart = wp.array(apart, dtype=wp.int32, device=device)
    out.friction = wp.array([r.material.along for r in ropes.described], dtype=real, device=device)
    slides = [r.material.along if r.material.dynamic is None else r.material.dynamic for r in ropes.described]
    out.dynamic = wp.array(slides, dtype=real, device=device)
    out.touches = wp.array([int(r.collide) for r in ropes.described], dtype=wp.int32, device=device)
    mass = of_first(model.bodies.mass)[model.bodies.motion.numpy() == DYNAMIC].sum()
    mass += sum(r.density * r.lengths.sum() for r in ropes.described)
    out.stiff = wp.array([STIFF * mass], dtype=real, device=device)
    holds, joint = held_bodies(model)
    out.holds, out.joint = (wp.array(v, dtype=wp.int32, device=device) for v in (holds, joint))
    part, body_part = parts_of(model)
    out.parts = len(part)
    out.rope_part, out.body_part = (wp.array(v, dtype=wp.int32, device=device) for v in (part, body_part))
    out.joint_child = model.joints.child
    for name in OF_JOINTS:
        setattr(out, f"joint_{name}", getattr(work, name))
    out.scale = wp.zeros(worlds, dtype=real, device=device)
    out.looks = wp.zeros(worlds, dtype=wp.int32, device=device)
    return out
