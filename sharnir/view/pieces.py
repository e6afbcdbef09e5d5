"""What pictures are put together from: triangles of pins, arrows, rods and terrains; words and figures of the panel."""

from __future__ import annotations

import html
import math
from typing import Any

import numpy as np

from sharnir.core.extras import need
from sharnir.core.spatial import quat_rotate
from sharnir.geometry.shapes import Box, Capsule, Cone, Cylinder, Ellipsoid, Shape, Sphere, Triangles

Colour = tuple[int, int, int]
PALETTE: tuple[Colour, ...] = (
    (78, 121, 167), (242, 142, 43), (89, 161, 79), (225, 87, 89), (118, 183, 178),
    (176, 122, 161), (237, 201, 72), (156, 117, 95), (255, 157, 167), (100, 143, 206),
)  # fmt: skip

# ---- triangles ----


def along(direction: np.ndarray) -> np.ndarray:
    """(n, 4) rotations (w, x, y, z) that take local z to the given directions (n, 3)."""
    d = direction / np.maximum(np.linalg.norm(direction, axis=1, keepdims=True), 1e-12)
    w, x, y = 1 + d[:, 2], -d[:, 1], d[:, 0]
    back = w < 1e-9  # straight down: half a turn about x
    q = np.stack([np.where(back, 0.0, w), np.where(back, 1.0, x), np.where(back, 0.0, y), np.zeros_like(w)], axis=1)
    return np.asarray(q / np.linalg.norm(q, axis=1, keepdims=True))


def creased(vertices: np.ndarray, faces: np.ndarray) -> Triangles:
    """The same surface with vertices doubled at sharp edges, so that boxes look like boxes and balls like balls."""
    trimesh = need("trimesh", "view")
    smooth = trimesh.graph.smooth_shade(trimesh.Trimesh(vertices, faces, process=True), angle=math.radians(35))
    return np.asarray(smooth.vertices), np.asarray(smooth.faces)


def cylinder(radius: float, length: float) -> Triangles:
    """A pin along z."""
    mesh = need("trimesh.creation", "view").cylinder(radius=radius, height=length, sections=20)
    return creased(np.asarray(mesh.vertices), np.asarray(mesh.faces))


def ball(radius: float) -> Triangles:
    """A ball about the origin."""
    mesh = need("trimesh.creation", "view").icosphere(subdivisions=3, radius=radius)
    return np.asarray(mesh.vertices), np.asarray(mesh.faces)


def sector(anchor: np.ndarray, axis: np.ndarray, toward: np.ndarray, ends: tuple[float, float], radius: float) -> Triangles:
    """A flat ring about an axis at an anchor, seen from both sides: from one angle to another (rad), counted from `toward`."""
    angles = np.linspace(*ends, max(3, round(abs(ends[1] - ends[0]) / 0.12)))[:, None]
    way = np.cos(angles) * toward + np.sin(angles) * np.cross(axis, toward)
    vertices = np.concatenate([anchor + 0.86 * radius * way, anchor + radius * way])
    i, n = np.arange(len(angles) - 1), len(angles)
    faces = np.concatenate([np.stack([i, i + n, i + n + 1], 1), np.stack([i, i + n + 1, i + 1], 1)])
    return vertices, np.concatenate([faces, faces[:, ::-1]])


def smooth(points: np.ndarray, fine: int = 4) -> np.ndarray:
    """(fine (n − 1) + 1, 3) points of a smooth curve through points (n, 3), after Catmull and Rom."""
    if len(points) < 3:
        return points
    a, b = np.vstack([points[:1], points[:-2]]), points[:-1]
    c, d = points[1:], np.vstack([points[2:], points[-1:]])
    t = (np.arange(fine) / fine)[None, :, None]
    a, b, c, d = (x[:, None] for x in (a, b, c, d))
    curve = 0.5 * (2 * b + (c - a) * t + (2 * a - 5 * b + 4 * c - d) * t**2 + (3 * b - a - 3 * c + d) * t**3)
    return np.vstack([curve.reshape(-1, 3), points[-1:]])


def double_arrow(radius: float, half: float) -> Triangles:
    """A double arrow along z of length 2 · half: the axis of a slide."""
    create = need("trimesh.creation", "view")
    height = min(8 * radius, half)
    parts = [create.cylinder(radius=radius, height=max(2 * (half - height), 1e-3 * half), sections=20)]
    for end in (1.0, -1.0):
        head = create.cone(radius=3 * radius, height=height, sections=24)
        head.apply_translation((0, 0, half - height))
        if end < 0:
            head.apply_transform(np.diag([1.0, -1.0, -1.0, 1.0]))
        parts.append(head)
    both = need("trimesh", "view").util.concatenate(parts)
    return creased(np.asarray(both.vertices), np.asarray(both.faces))


def coil(a: np.ndarray, b: np.ndarray, radius: float, turns: int = 8) -> np.ndarray:
    """(segments, 2, 3) a zigzag from a to b, as a spring is drawn."""
    reach = b - a
    way = reach / max(float(np.linalg.norm(reach)), 1e-12)
    aside = np.cross(way, (0.0, 0.0, 1.0) if abs(way[2]) < 0.9 else (1.0, 0.0, 0.0))
    aside = aside / np.linalg.norm(aside)
    s = np.linspace(0.15, 0.85, 2 * turns)
    swing = radius * np.where(np.arange(2 * turns) % 2, 1.0, -1.0)
    swing[[0, -1]] = 0.0
    points = np.vstack([a, a + s[:, None] * reach + swing[:, None] * aside, b])
    return np.stack([points[:-1], points[1:]], 1)


def terrain(heights: np.ndarray, size: np.ndarray) -> Triangles:
    """The surface of a height field of half sizes (x, y); each cell is two triangles, as collisions see it."""
    x, y = (np.linspace(-half, half, n) for half, n in zip(size[:2], heights.shape, strict=True))
    vertices = np.stack([*np.meshgrid(x, y, indexing="ij"), heights], -1).reshape(-1, 3)
    rows, columns = heights.shape
    i = (np.arange(rows - 1)[:, None] * columns + np.arange(columns - 1)).ravel()
    faces = np.concatenate([np.stack([i, i + columns, i + columns + 1], 1), np.stack([i, i + columns + 1, i + 1], 1)])
    return vertices, faces


def part_mesh(part: Any) -> Triangles | None:
    """Triangles of a collision part (`collision.parts.Part`) in its body's frame; None of a plane, which has no end."""
    size, kind = part.size, part.kind
    if kind == "heights":
        vertices, faces = terrain(part.heights, size)
    elif kind == "mesh":
        vertices, faces = part.corners.reshape(-1, 3), np.arange(3 * len(part.corners)).reshape(-1, 3)
    elif kind == "hull":
        mesh = need("trimesh", "view").convex.convex_hull(part.corners)
        vertices, faces = np.asarray(mesh.vertices), np.asarray(mesh.faces)
    else:
        shapes: dict[str, Any] = {
            "sphere": lambda: Sphere(part.radius),
            "capsule": lambda: Capsule(part.radius, 2 * size[1]),
            "box": lambda: Box(*(2 * size)),
            "cylinder": lambda: Cylinder(size[0] + part.radius, 2 * (size[1] + part.radius)),
            "cone": lambda: Cone(size[0], 2 * size[1]),
            "ellipsoid": lambda: Ellipsoid(*size),
        }
        if kind not in shapes:
            return None
        shape: Shape = shapes[kind]()
        vertices, faces = shape.mesh()
    return part.position + quat_rotate(np.tile(part.rotation, (len(vertices), 1)), vertices), faces


def joined(meshes: list[Triangles]) -> Triangles:
    """Several meshes as one."""
    first = np.cumsum([0] + [len(vertices) for vertices, _ in meshes])
    faces = [faces + start for (_, faces), start in zip(meshes, first, strict=False)]
    return np.concatenate([vertices for vertices, _ in meshes]), np.concatenate(faces)


def outermost(vertices: np.ndarray) -> np.ndarray:
    """A few vertices that reach as far as all of them, in many directions."""
    if len(vertices) <= 64:
        return vertices
    i = np.arange(64) + 0.5
    z, around = 1 - i / 32, i * math.pi * (1 + math.sqrt(5))  # a spiral that covers the sphere evenly
    directions = np.stack([np.sqrt(1 - z**2) * np.cos(around), np.sqrt(1 - z**2) * np.sin(around), z])
    directions = np.concatenate([directions, np.eye(3), -np.eye(3)], axis=1)
    return np.asarray(vertices[np.unique((vertices @ directions).argmax(0))])


# ---- words ----


def round_length(length: float) -> float:
    """The largest of 1, 2, 5 · 10ⁿ that is not above a length."""
    power = 10.0 ** math.floor(math.log10(length))
    return next(m * power for m in (5.0, 2.0, 1.0) if m * power <= length * (1 + 1e-9))


def figures(value: float) -> str:
    """Five significant figures that do not jump about while a value changes slowly."""
    if abs(value) < 1e-9:
        return "0"
    if not 1e-3 <= abs(value) < 1e6:
        return f"{value:.3e}".replace("-", "−")
    digits = 5 - (math.floor(math.log10(abs(value))) + 1 if abs(value) >= 1 else 1)
    return f"{value:.{max(digits, 0)}f}".replace("-", "−")


def safe(name: str) -> str:
    """A body's name as one segment of a path."""
    return name.replace("/", "∕")


def table(*rows: tuple[str, str, str]) -> str:
    """Rows of (what, value, unit) as HTML."""
    cells = "".join(
        f'<tr><td style="color:#66737f;padding:1px 0">{html.escape(what)}</td><td style="text-align:right;font-variant-numeric:'
        f'tabular-nums;padding:1px 4px 1px 0">{html.escape(value)}</td><td style="width:1em">{unit}</td></tr>'
        for what, value, unit in rows
    )
    return f'<table style="width:calc(100% - 2em);margin:0.4em 1em;font-size:0.86em;border-collapse:collapse">{cells}</table>'
