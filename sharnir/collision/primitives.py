"""From shapes to what pair functions know: a kind, sizes of a core, a radius, corners, triangles or heights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sharnir.collision.material import Material
from sharnir.core.spatial import quat_multiply, quat_rotate
from sharnir.errors import SceneError, as_numbers, number
from sharnir.geometry.shapes import Box, Capsule, Compound, Cone, Cylinder, Ellipsoid, Mesh, PointMass, Shape, Sphere

UNTURNED = np.array([0.0, 0.0, 0.0, 1.0])
FLAT_HULL = 1e-4
"""A hull whose thinnest side is below this part of its widest is refused as flat."""


@dataclass
class Part:
    """One shape for the pair functions, placed in its body's own frame. See `data.ShapeTable` for size and radius."""

    kind: str
    position: np.ndarray
    rotation: np.ndarray
    size: np.ndarray
    radius: float = 0.0
    bound: float = 0.0
    corners: np.ndarray | None = None  # (n, 3) of a hull; (triangles, 3, 3) of a mesh
    heights: np.ndarray | None = None  # (along x, along y) of a height field, from its middle
    material: Material | None = None  # its own, else the body's
    group: tuple[int, int] | None = None  # (group, mask) of its own, else the body's
    belt: int = -1  # that its surface is
    grip: np.ndarray | None = None  # a cell of a height field: √ of what it has of the material's friction


def parts_of(shape: Shape, who: str, still: bool) -> list[Part]:
    """The parts of a shape. A mesh is its triangles on a body that stands still; its convex hull, or parts, on one that moves."""
    place, turn = np.asarray(shape.position, float), np.asarray(shape.rotation, float)
    if isinstance(shape, Compound):
        inner = [part for child in shape.shapes for part in parts_of(child, who, still)]
        for part in inner:
            part.position = place + quat_rotate(turn, part.position)
            part.rotation = quat_multiply(turn, part.rotation)
        return inner
    if isinstance(shape, PointMass):
        return []
    if isinstance(shape, Mesh) and shape.decompose and not still:
        return [mesh_part(part, who, still) for part in shape.parts]
    simple = _simple(shape)
    if simple is None:
        return [mesh_part(shape, who, still)]
    kind, size, radius, bound = simple
    return [Part(kind, place, turn, np.asarray(size, float), radius, bound)]


def _simple(shape: Shape) -> tuple[str, tuple[float, float, float], float, float] | None:
    """Kind, size, radius and bound of a shape that has a formula; None: it has triangles."""
    if isinstance(shape, Sphere):
        return "sphere", (0.0, 0.0, 0.0), shape.radius, shape.radius
    if isinstance(shape, Capsule):
        half = 0.5 * shape.length
        return "capsule", (0.0, half, 0.0), shape.radius, half + shape.radius
    if isinstance(shape, Box):
        half_sizes = (0.5 * shape.x, 0.5 * shape.y, 0.5 * shape.z)
        return "box", half_sizes, 0.0, float(np.linalg.norm(half_sizes))
    if isinstance(shape, Cylinder):
        edge = shape.rounding
        core = (shape.radius - edge, 0.5 * shape.length - edge, 0.0)
        return "cylinder", core, edge, float(np.hypot(core[0], core[1])) + edge
    if isinstance(shape, Cone):
        return "cone", (shape.radius, 0.5 * shape.height, 0.0), 0.0, float(np.hypot(shape.radius, 0.5 * shape.height))
    if isinstance(shape, Ellipsoid):
        axes = (shape.x, shape.y, shape.z)
        return "ellipsoid", axes, 0.0, max(axes)
    return None


def mesh_part(shape: Shape, who: str, still: bool) -> Part:
    """Triangles or convex hull of a mesh, about the middle of its box."""
    vertices, faces = shape.mesh()
    if not still:
        vertices = hull_corners(vertices, f"{who}: {getattr(shape, 'name', type(shape).__name__)}")
    middle = 0.5 * (vertices.min(axis=0) + vertices.max(axis=0))
    size = 0.5 * (vertices.max(axis=0) - vertices.min(axis=0))
    corners = vertices - middle
    bound = float(np.linalg.norm(corners, axis=1).max())
    if still:
        return Part("mesh", middle, UNTURNED.copy(), size, 0.0, bound, corners[faces])
    return Part("hull", middle, UNTURNED.copy(), size, 0.0, bound, corners)


def hull_corners(points: np.ndarray, who: str) -> np.ndarray:
    """Corners of the convex hull of points that do not lie in a plane."""
    spread = np.linalg.svd(points - points.mean(axis=0), compute_uv=False)
    if len(points) < 4 or spread[2] < FLAT_HULL * spread[0]:
        raise SceneError(f"{who}: a convex hull needs points that do not lie in a plane, got {len(points)} that spread {spread}")
    try:
        import trimesh
    except ImportError:
        raise SceneError(f"{who}: a convex hull needs trimesh, which is not installed: pip install sharnir[io]") from None
    try:
        hull = trimesh.convex.convex_hull(points)
    except Exception as error:  # Qhull's own words
        raise SceneError(f"{who}: has no convex hull: {error}") from None
    return np.asarray(hull.vertices, float)


def terrain_part(name: str, heights: Any, size: Any, friction: Any, material: Material) -> Part:
    """A height field of the full size (x, y) in m, its middle at the body's origin; heights (along x, along y), m."""
    who = f"terrain {name!r}"
    try:
        z = np.array(heights, dtype=float)
    except (TypeError, ValueError):
        raise SceneError(f"{who}: heights are numbers (along x, along y), got {heights!r}") from None
    if z.ndim != 2 or min(z.shape) < 2:
        raise SceneError(f"{who}: heights are an array (along x, along y) of at least 2 by 2, got shape {z.shape}")
    if not np.isfinite(z).all():
        i, j = np.argwhere(~np.isfinite(z))[0]
        raise SceneError(f"{who}: heights are finite, got {z[i, j]} at [{i}, {j}]")
    if as_numbers(size).shape != (2,):
        raise SceneError(f"{who}: size is (x, y) in m, got {size!r}")
    half = [0.5 * number(who, "size (m)", v, least=1e-9) for v in size]
    low, high = float(z.min()), float(z.max())
    middle, reach = 0.5 * (low + high), 0.5 * (high - low)
    box = np.array([half[0], half[1], reach])
    part = Part(
        "heights", np.array([0.0, 0.0, middle]), UNTURNED.copy(), box, 0.0, float(np.linalg.norm(box)), heights=z - middle
    )
    if friction is not None:
        part.grip = _grip(who, friction, (z.shape[0] - 1, z.shape[1] - 1), material)
    return part


def _grip(who: str, friction: Any, cells: tuple[int, int], material: Material) -> np.ndarray:
    """√(μ / the material's) of each cell."""
    values = as_numbers(friction)
    if values.shape != cells:
        raise SceneError(f"{who}: friction has a value a cell, {cells}, one less than heights, got shape {values.shape}")
    wrong = np.argwhere(~(np.isfinite(values) & (values >= 0)))
    if len(wrong):
        i, j = wrong[0]
        raise SceneError(f"{who}: friction is finite and at least 0, got {values[i, j]} at [{i}, {j}]")
    if not material.along > 0:
        raise SceneError(f"{who}: a map of friction scales that of its material, which is {material.along:g}, not above 0")
    return np.sqrt(values / material.along)
