"""The device's tables of what a scene describes, made on the host: bodies, gears, springs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import warp as wp

from sharnir.core import strided
from sharnir.core.types import mat33, real, vec3
from sharnir.model.descriptions import BodyDescription, SpringDescription
from sharnir.model.joint_types import Gear, GearTable
from sharnir.model.model import DYNAMIC, BodyTable, SpringTable


def body_table(bodies: list[BodyDescription], worlds: int, device: Any) -> BodyTable:
    """Bodies as described; one that does not yield has inverse mass and inertia 0."""
    table: Any = BodyTable()
    table.count = len(bodies)
    motion = np.array([b.motion for b in bodies])
    dynamic = motion == DYNAMIC
    mass, inertia = np.array([b.mass for b in bodies]), np.array([b.inertia for b in bodies])
    solid = dynamic & np.array([bool(np.any(i)) for i in inertia])
    inverse = np.zeros_like(inertia)
    inverse[solid] = np.linalg.inv(inertia[solid])
    table.motion = wp.array(motion, dtype=wp.int32, device=device)
    yields = np.where(dynamic, 1.0 / np.where(mass > 0, mass, 1.0), 0.0)
    table.mass, table.inv_mass = (strided.table(x, real, worlds, device) for x in (mass, yields))
    table.inertia, table.inv_inertia = (strided.table(x, mat33, worlds, device) for x in (inertia, inverse))
    return table  # type: ignore[no-any-return]


def gear_table(gears: Iterable[Gear], ends: list[tuple[tuple[int, int], tuple[int, int]]], device: Any) -> GearTable:
    """Gears, and of each its two ends (joint, number of the axis among its speeds)."""
    table: Any = GearTable()
    table.count = len(ends)
    for side, name in enumerate("ab"):
        for i, what in enumerate(("joint", "axis")):
            setattr(table, f"{what}_{name}", wp.array([e[side][i] for e in ends], dtype=wp.int32, device=device))
    table.ratio = wp.array([g.ratio for g in gears], dtype=real, device=device)
    return table  # type: ignore[no-any-return]


def spring_table(springs: list[SpringDescription], worlds: int, device: Any) -> SpringTable:
    """Point-to-point springs as described."""
    table: Any = SpringTable()
    table.count = len(springs)
    for name in ("parent", "child"):
        setattr(table, name, wp.array([getattr(s, name) for s in springs], dtype=wp.int32, device=device))
    for name in ("parent_point", "child_point"):
        points = np.array([getattr(s, name) for s in springs]).reshape(-1, 3)
        setattr(table, name, wp.array(points, dtype=vec3, device=device))
    for name in ("stiffness", "rest", "damping"):
        setattr(table, name, strided.table([getattr(s, name) for s in springs], real, worlds, device))
    return table  # type: ignore[no-any-return]
