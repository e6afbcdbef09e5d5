"""Many pairs of shapes at once, given one by one: where they touch, without a scene."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp

from sharnir.collision.collider import CORNERS, FACES, RIM
from sharnir.collision.data import KINDS, Collision, Polytope, ShapeTable, mat43, vec4
from sharnir.collision.pairs import manifold
from sharnir.collision.primitives import Part
from sharnir.collision.queries import Placed, placed_solid
from sharnir.core.types import alone, inline_less, np_real, quat, real, vec3

inline_less("tests.many_pairs")


@wp.kernel(module="tests.many_pairs", enable_backward=False)
def manifolds_of(
    s: wp.array(dtype=Collision),
    a: Placed,
    b: Placed,
    count: int,
    threads: int,
    margin: real,
    n: wp.array(dtype=vec3),
    points: wp.array(dtype=wp.int32),
    p: wp.array(dtype=mat43),
    gap: wp.array(dtype=vec4),
):
    """Each thread takes every so many-th pair, since the scratch of the generic pair is a thread's own."""
    w = wp.tid()
    i = int(w)
    while i < count:
        A = placed_solid(a, i)
        B = placed_solid(b, i)
        flip = A.kind > B.kind
        if flip:
            A = placed_solid(b, i)
            B = placed_solid(a, i)
        m = manifold(s, A, B, margin, -1, w)
        n[i] = wp.where(flip, -m.n, m.n)
        points[i] = m.count
        p[i] = m.p
        gap[i] = m.gap
        i = i + threads


@dataclass
class Found:
    """Normals (n, 3) from a to b, numbers of points (n,), points (n, 4, 3) m, gaps (n, 4) m."""

    normal: np.ndarray
    count: np.ndarray
    point: np.ndarray
    gap: np.ndarray

    @property
    def deepest(self) -> np.ndarray:
        """(n,) m, the least gap; infinite where there is no point."""
        there = np.arange(4) < self.count[:, None]
        return np.where(there, self.gap, np.inf).min(axis=1)


class ManyPairs:
    """Pairs (part, position, rotation) against (part, position, rotation), row by row.

    Args:
        a, b: lists of `Part` (one for all, or one a pair), positions (n, 3), rotations (n, 4).
    """

    def __init__(self, a: tuple[list[Part], Any, Any], b: tuple[list[Part], Any, Any], device: str = "cpu") -> None:
        self.device, self.count = device, len(a[1])
        self.threads = 1 if device == "cpu" else 256
        data, shapes, polytope = Collision(), ShapeTable(), Polytope()
        self.corners: list[np.ndarray] = []
        self.first: dict[int, int] = {}
        self.rows = [self._rows(*side) for side in (a, b)]
        shapes.corners = wp.array(np.concatenate([*self.corners, np.zeros((1, 3))]), dtype=vec3, device=device)
        polytope.capacity, polytope.face_capacity = CORNERS, FACES
        sizes = {"corner": CORNERS, "on_a": CORNERS, "face": FACES, "plane": FACES, "rim": RIM}
        types = {"corner": vec3, "on_a": vec3, "face": wp.vec3i, "plane": vec4, "rim": wp.vec2i}
        for name, size in sizes.items():
            setattr(polytope, name, wp.zeros((size, self.threads), dtype=types[name], device=device))
        data.shapes, data.polytope = shapes, polytope
        self.data = data  # keeps its arrays alive
        self.array = alone(data, Collision, device)
        self.out = [wp.zeros(self.count, dtype=d, device=device) for d in (vec3, wp.int32, mat43, vec4)]

    def _rows(self, parts: list[Part], position: Any, rotation: Any) -> Placed:
        n = self.count
        if len(parts) == 1:
            parts = parts * n
        for part in parts:
            if part.corners is not None and id(part) not in self.first:
                self.first[id(part)] = sum(len(c) for c in self.corners)
                self.corners.append(np.asarray(part.corners).reshape(-1, 3))
        made = Placed()
        columns = {
            "kind": ([KINDS.index(p.kind) for p in parts], wp.int32),
            "size": ([p.size for p in parts], vec3),
            "radius": ([p.radius for p in parts], real),
            "first": ([self.first.get(id(p), 0) for p in parts], wp.int32),
            "length": ([0 if p.corners is None else len(p.corners) for p in parts], wp.int32),
            "position": (position, vec3),
            "rotation": (rotation, quat),
        }
        for name, (values, dtype) in columns.items():
            plain = np.asarray(values, np.int32 if dtype is wp.int32 else np_real)
            setattr(made, name, wp.array(plain, dtype=dtype, device=self.device))
        return made

    def launch(self, margin: float) -> None:
        """Find the points whose gap is below the margin, m."""
        inputs = [self.array, *self.rows, self.count, self.threads, real(margin), *self.out]
        wp.launch(manifolds_of, dim=self.threads, inputs=inputs, device=self.device)

    def found(self) -> Found:
        """What was found."""
        return Found(*(x.numpy() for x in self.out))
