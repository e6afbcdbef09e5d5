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
KEPT = ("kept_count", "kept_shape", "kept_state", "kept_n", "kept_impulse")
BY_SLOT = ("count", "kept_count", "v", "w", "pull", "moment")


def touches(model: Model) -> bool:
    """Whether any rope of a model touches anything."""
    return model.collision is not None and model.ropes is not None and any(r.collide for r in model.ropes.described)


def touch_table(model: Model) -> Any:
    """`RopeTouch` of a model's ropes, nothing touched."""
    ropes, worlds, device = model.ropes, model.worlds, model.device
    out = RopeTouch()
    for name, var in RopeTouch.vars.items():  # type: ignore[attr-defined]
        if getattr(var.type, "ndim", 0) == 2:
            rows = ropes.slots * (1 if name in BY_SLOT else int(MOST))
            rows = {"end": 2 * ropes.count, "body_v": len(model.com), "body_w": len(model.com)}.get(name, rows)
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
    out.scale = wp.zeros(worlds, dtype=real, device=device)
    out.looks = wp.zeros(worlds, dtype=wp.int32, device=device)
    return out
