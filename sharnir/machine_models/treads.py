"""What wheels and tracks look like: tires with lugs and a hub, belts with shoes. Nothing here has mass or touches anything."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from sharnir.core.spatial import quat_exp, quat_multiply, quat_rotate
from sharnir.geometry.shapes import Box, Compound, Cylinder, Shape

LUGS = 16
"""Lugs of a tire in each of its two rows."""
SKEW = 0.45
"""rad, by which the lugs of a row lean; those of the other lean the other way."""
SHOES = 14
"""Shoes of a belt per turn of its largest wheel."""
HEIGHT = 0.06
"""Height of lugs and shoes, in radii."""


def tire(radius: float, width: float) -> Compound:
    """A tire about local z with two rows of lugs that reach out to its radius, and a hub. Lengths in m."""
    high = HEIGHT * radius
    parts: list[Shape] = [
        Cylinder(radius - high, width),
        Cylinder(0.5 * radius, 1.04 * width),
        Cylinder(0.16 * radius, 1.12 * width),
    ]
    long, middle = 0.9 * math.pi * radius / LUGS, radius - 0.75 * high
    top = math.sqrt(radius**2 - (0.5 * long) ** 2)  # corners of a lug stay within the tire's radius
    deep = 2 * (top - middle)
    for row, side in enumerate((1.0, -1.0)):
        for k in range(LUGS):
            angle = 2 * math.pi * (k + 0.5 * row) / LUGS
            turn = quat_multiply(quat_exp(np.array([0.0, 0.0, angle])), quat_exp(np.array([side * SKEW, 0.0, 0.0])))
            at = (middle * math.cos(angle), middle * math.sin(angle), 0.25 * side * width)
            size = (deep, 0.5 * long, 0.46 * width)
            parts.append(Box(*size, position=at, rotation=tuple(float(x) for x in turn)))
    return Compound(*parts)


def outline(wheels: Sequence[Sequence[float]], fine: int = 96) -> np.ndarray:
    """(n, 2) corners x, z of a belt pulled tight around wheels (x, z, radius), counter-clockwise. Lengths in m."""
    angles = 2 * math.pi * np.arange(fine) / fine
    circle = np.stack([np.cos(angles), np.sin(angles)], 1)
    points = np.concatenate([np.array(w[:2], float) + w[2] * circle for w in wheels])
    points = points[np.lexsort((points[:, 1], points[:, 0]))]

    def half(ordered: np.ndarray) -> list[np.ndarray]:
        kept: list[np.ndarray] = []
        for p in ordered:
            while len(kept) > 1:
                a, b = kept[-1] - kept[-2], p - kept[-2]
                if a[0] * b[1] - a[1] * b[0] > 0.0:
                    break
                kept.pop()
            kept.append(p)
        return kept[:-1]

    return np.array(half(points) + half(points[::-1]))


def shoes(
    wheels: Sequence[Sequence[float]], width: float, place: np.ndarray | None = None, turn: np.ndarray | None = None
) -> list[Shape]:  # fmt: skip
    """Shoes at even spaces on a belt around wheels (x, z, radius), in a frame at `place` with the rotation `turn`."""
    place = np.zeros(3) if place is None else np.asarray(place, float)
    turn = np.array([0.0, 0.0, 0.0, 1.0]) if turn is None else np.asarray(turn, float)
    corners = outline(wheels)
    way = np.roll(corners, -1, axis=0) - corners
    length = np.linalg.norm(way, axis=1)
    along = np.concatenate([[0.0], np.cumsum(length)])
    radius = max(float(w[2]) for w in wheels)
    count = max(6, round(along[-1] / (2 * math.pi * radius / SHOES)))
    pitch, high = float(along[-1]) / count, HEIGHT * radius
    out: list[Shape] = []
    for s in pitch * np.arange(count):
        k = min(int(np.searchsorted(along, s, side="right")) - 1, len(way) - 1)
        ahead = way[k] / max(length[k], 1e-12)
        at = corners[k] + (s - along[k]) * ahead + 0.35 * high * np.array([-ahead[1], ahead[0]])
        lean = quat_exp(np.array([0.0, -math.atan2(ahead[1], ahead[0]), 0.0]))
        position = place + quat_rotate(turn, np.array([at[0], 0.0, at[1]]))
        rotation = quat_multiply(turn, lean)
        size = (0.62 * pitch, 1.04 * width, high)
        out.append(Box(*size, position=tuple(map(float, position)), rotation=tuple(map(float, rotation))))
    return out
