"""Device tables of a collision description."""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp

from sharnir.collision.bvh import mesh_tree
from sharnir.collision.data import KINDS, Materials, ShapeTable, vec2
from sharnir.collision.describe import CollisionDescription
from sharnir.collision.material import Material
from sharnir.core.types import np_real, quat, real, vec3

WIDE_SHAPE = 10.0
"""A shape so many times larger than the median is not swept but tested against all."""

PLANE_REACH = 1e3
"""m, how far a plane reaches where that matters."""

NP_INT, WP_INT = np.int32, wp.int32


def shared_by_worlds(values: np.ndarray, dtype: Any, worlds: int, device: Any) -> Any:
    """An array [item, world] whose worlds are one and the same memory."""
    base = wp.array(values[:, None], dtype=dtype, device=device)
    if worlds == 1 or not len(values):
        return base if worlds == 1 else wp.zeros((0, worlds), dtype=dtype, device=device)
    view = wp.array(
        ptr=base.ptr,
        shape=(len(values), worlds),
        strides=(base.strides[0], 0),
        dtype=dtype,
        device=device,
        capacity=base.capacity,
    )
    view.base = base  # keeps it alive
    return view


def per_world(array: Any) -> Any:
    """The same, a copy a world."""
    made = wp.empty(array.shape, dtype=array.dtype, device=array.device)
    made.assign(np.ascontiguousarray(array.numpy()))
    return made


def material_values(m: Material) -> dict[str, Any]:
    """Fields of `Materials` of a material."""
    shear = m.shear if isinstance(m.shear, tuple) else (0.0, 0.0)
    anisotropic = m.direction is not None and (m.along != m.across or shear[0] != shear[1])
    return {
        "friction": (m.along, m.across),
        "direction": m.direction if anisotropic else (0.0, 0.0, 0.0),
        "dynamic": m.along if m.dynamic is None else m.dynamic,
        "restitution": m.restitution,
        "rolling": m.rolling,
        "torsion": m.torsion,
        "stiffness": m.stiffness or 0.0,
        "damping": m.damping or 0.0,
        "turned": m.turned,
        "shear": shear,
        "relaxation": m.relaxation or 0.0,
    }


def material_table(materials: list[Material], worlds: int, device: Any) -> Materials:
    """Rows of materials, shared by all worlds."""
    table = Materials()
    rows = [material_values(m) for m in materials]
    types = {"friction": vec2, "direction": vec3, "shear": vec2}
    for name in rows[0]:
        values = np.array([row[name] for row in rows], np_real)
        setattr(table, name, shared_by_worlds(values, types.get(name, real), worlds, device))
    return table


def by_lower(pairs: dict[tuple[int, int], int], bodies: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(first [body + 1], other, value) of pairs (lower, higher) → value, in order."""
    first = np.zeros(bodies + 1, NP_INT)
    keys = sorted(pairs)
    for a, _ in keys:
        first[a + 1 :] += 1
    return first, np.array([b for _, b in keys], NP_INT), np.array([pairs[k] for k in keys], NP_INT)


def shape_table(given: CollisionDescription, com: np.ndarray, motion: np.ndarray, worlds: int, device: Any) -> ShapeTable:
    """All shapes, in the description's order."""
    table = ShapeTable()
    shapes = given.shapes
    table.count = len(shapes)

    def put(values: Any, dtype: Any, columns: int = 0) -> Any:
        plain = NP_INT if dtype is WP_INT else np_real
        rows = np.asarray(values, plain).reshape((-1, columns) if columns else -1)
        return wp.array(np.ascontiguousarray(rows), dtype=dtype, device=device)

    owners = list(given.materials)
    parts = [s.part for s in shapes]
    table.kind = put([KINDS.index(p.kind) for p in parts], WP_INT)
    table.body = put([s.body for s in shapes], WP_INT)
    table.position = put([p.position - com[s.body] for s, p in zip(shapes, parts, strict=True)], vec3, 3)
    table.rotation = put([p.rotation for p in parts], quat, 4)
    table.size = put([p.size for p in parts], vec3, 3)
    table.radius = put([p.radius for p in parts], real)
    bounds = np.array([p.bound for p in parts])
    table.bound = put(bounds, real)
    table.material = put([owners.index(s.owner) for s in shapes], WP_INT)
    table.group = put([s.group for s in shapes], WP_INT)
    table.mask = put([s.mask for s in shapes], WP_INT)
    table.surface = shared_by_worlds(np.array([s.surface for s in shapes], np_real).reshape(-1, 3), vec3, worlds, device)
    table.belt = put([s.part.belt for s in shapes], WP_INT)
    table.belt_body, table.belt_frame = (put([getattr(b, n) for b in given.belts], WP_INT) for n in ("body", "frame"))
    table.belt_axis = put([b.axis for b in given.belts], vec3, 3)
    table.belt_radius = put([b.radius for b in given.belts], real)
    table.motion, table.bodies = put(motion, WP_INT), len(com)
    reach = np.zeros(len(com))
    for s in shapes:
        far = PLANE_REACH if s.part.kind == "plane" else s.part.bound + np.linalg.norm(s.part.position - com[s.body])
        reach[s.body] = max(reach[s.body], far)
    table.reach = put(reach, real)
    never = np.array([p.kind in ("plane", "mesh", "heights") for p in parts], bool)
    small = np.median(bounds[~never]) if (~never).any() else 0.0
    wide = never | (bounds > WIDE_SHAPE * small)
    table.swept, table.wide = put(np.flatnonzero(~wide), WP_INT), put(np.flatnonzero(wide), WP_INT)
    table.sweeps, table.wides = int((~wide).sum()), int(wide.sum())
    first, other, _ = by_lower(dict.fromkeys(given.apart, 0), len(com))
    table.apart_first, table.apart = put(first, WP_INT), put(other, WP_INT)
    held = sorted(given.held)
    first = np.searchsorted([a for a, _, _ in held], np.arange(len(com) + 1))
    table.held_first = put(first, WP_INT)
    for k, name in enumerate(("held_body", "held_other", "held_joint")):
        setattr(table, name, put([entry[k] for entry in held], WP_INT))
    rules = {pair: len(owners) + k for k, pair in enumerate(given.rules)}
    first, other, material = by_lower(rules, len(com))
    table.rule_first, table.rule_other, table.rule_material = put(first, WP_INT), put(other, WP_INT), put(material, WP_INT)
    _geometry(table, parts, put)
    return table


def _geometry(table: ShapeTable, parts: list[Any], put: Any) -> None:
    """Corners of hulls, triangles and trees of meshes, heights; where each shape's own begin."""
    corners: list[np.ndarray] = []
    edges: list[np.ndarray] = []
    nodes: list[tuple[np.ndarray, ...]] = []
    heights: list[np.ndarray] = []
    first, length = np.zeros(len(parts), int), np.zeros(len(parts), int)
    counts = {"triangles": 0, "nodes": 0, "heights": 0}
    for part in (p for p in parts if p.kind == "mesh"):  # triangles first: three corners each from a multiple of three
        k = next(i for i, p in enumerate(parts) if p is part)
        tree = mesh_tree(part.corners, counts["triangles"])
        first[k], length[k] = counts["nodes"], len(tree.low)
        counts["nodes"] += len(tree.low)
        counts["triangles"] += len(tree.triangles)
        corners.append(tree.triangles.reshape(-1, 3))
        edges.append(tree.edges)
        nodes.append((tree.low, tree.high, tree.next, tree.leaf))
    start = 3 * counts["triangles"]
    for k, part in enumerate(parts):
        if part.kind == "hull":
            first[k], length[k] = start, len(part.corners)
            start += len(part.corners)
            corners.append(part.corners)
        if part.kind == "heights":
            first[k], length[k] = counts["heights"], part.heights.shape[1]
            counts["heights"] += part.heights.size
            heights.append(part.heights.ravel())
    table.first, table.length = put(first, WP_INT), put(length, WP_INT)
    table.columns = put([0 if p.heights is None else p.heights.shape[0] for p in parts], WP_INT)
    table.corners = put(np.concatenate([*corners, np.zeros((0, 3))]), vec3, 3)
    table.edges = put(np.concatenate([*edges, np.zeros(0)]), WP_INT)
    table.node_low = put(np.concatenate([*(n[0] for n in nodes), np.zeros((0, 3))]), vec3, 3)
    table.node_high = put(np.concatenate([*(n[1] for n in nodes), np.zeros((0, 3))]), vec3, 3)
    table.node_next = put(np.concatenate([*(n[2] for n in nodes), np.zeros(0)]), WP_INT)
    table.node_leaf = put(np.concatenate([*(n[3] for n in nodes), np.zeros(0)]), WP_INT)
    table.heights = put(np.concatenate([*heights, np.zeros(0)]), real)
    grips = [np.zeros(0) if p.grip is None else p.grip.ravel() for p in parts]
    starts = np.cumsum([0, *(len(g) for g in grips)])[:-1]
    table.grip_first = put([-1 if p.grip is None else at for p, at in zip(parts, starts, strict=True)], WP_INT)
    table.grip = put(np.concatenate([*grips, np.zeros(0)]), real)
