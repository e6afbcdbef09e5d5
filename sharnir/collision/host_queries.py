"""Queries from Python, many at once: what a ray or a moving shape meets, what a shape overlaps, how far bodies are apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp

from sharnir.collision.collider import CORNERS, FACES, RIM, Collider
from sharnir.collision.data import KINDS, Collision, Polytope, ShapeTable, vec4
from sharnir.collision.describe import EVERYTHING
from sharnir.collision.primitives import Part, parts_of
from sharnir.collision.queries import Placed, cast_many, distances_many, overlaps_many, place_all
from sharnir.collision.trace import Sight
from sharnir.core.spatial import quat_multiply, quat_rotate, unit_quat
from sharnir.core.types import alone, load_modules, np_real, quat, real, vec3
from sharnir.errors import SimulationError, as_numbers
from sharnir.geometry.shapes import Shape

RAY_LENGTH = 1e6
"""m, how far a ray without a length goes."""

LISTED = 64
"""Bodies that an overlap lists, at first."""

POINT_PART = Part("sphere", np.zeros(3), np.array([0.0, 0.0, 0.0, 1.0]), np.zeros(3))


@dataclass
class Hits:
    """What was met, a row a query: `distance` (m, infinite: nothing), `body` (its name, or that of a rope that a ray met, or
    None), `point`, `normal` out of it."""

    distance: np.ndarray
    body: list[str | None]
    point: np.ndarray
    normal: np.ndarray


class Queries:
    """Asks about the bodies of a collider's state, as they are when it is asked. Shapes with no contact are not there.

    Rays see ropes, too, in group 1; what moves or overlaps does not.
    """

    def __init__(self, collider: Collider) -> None:
        self.collider = collider
        self.device = collider.model.device
        self.threads = 1 if str(self.device) == "cpu" else 256
        polytope = Polytope()
        polytope.capacity, polytope.face_capacity = CORNERS, FACES
        sizes = {"corner": CORNERS, "on_a": CORNERS, "face": FACES, "plane": FACES, "rim": RIM}
        types = {"corner": vec3, "on_a": vec3, "face": wp.vec3i, "plane": vec4, "rim": wp.vec2i}
        for name, size in sizes.items():
            setattr(polytope, name, wp.zeros((size, self.threads), dtype=types[name], device=self.device))
        self.polytope = polytope
        self.names = list(collider.model.body_names)
        self.bodies = np.array([shape.body for shape in collider.given.shapes])
        self._sight: Sight | None = None

    # ---- the four questions ----

    def ray_cast(
        self, origin: Any, direction: Any, length: Any = RAY_LENGTH, *, world: Any = 0, groups: int = EVERYTHING
    ) -> Hits:
        """What rays meet first: `origin` and `direction` (3,) or (n, 3), `length` m; `groups`: bits of those that count."""
        x, way, until = _ways(origin, direction, length)
        if self._sight is None or not self._sight.fits(self.collider):
            self._sight = Sight(self.collider)
        far, shape, normal = self._sight.rays(x, way, until, self._world(world, len(x)), groups)
        hit, sight = shape >= 0, self._sight
        distance = np.where(hit, far.astype(float), np.inf)
        point = np.where(hit[:, None], x + way * np.where(hit, distance, 0.0)[:, None], 0.0)
        return Hits(distance, [sight.names[sight.bodies[k]] for k in shape], point, normal.astype(float))

    def shape_cast(
        self,
        shape: Shape,
        position: Any,
        rotation: Any,
        direction: Any,
        length: Any = RAY_LENGTH,
        *,
        world: Any = 0,
        groups: int = EVERYTHING,
    ) -> Hits:
        """What a shape meets first on its way from a pose, (3,) and (4,) or one a row, along a direction; it does not turn."""
        return self._cast(
            parts_of(_shape(shape, "shape_cast"), "shape_cast", False), position, rotation, direction, length, world, groups
        )

    def overlaps(
        self, shape: Shape, position: Any, rotation: Any = (0.0, 0.0, 0.0, 1.0), *, world: Any = 0, groups: int = EVERYTHING
    ) -> list[list[str]]:
        """Names of the bodies that a shape overlaps at each of some poses. Of a mesh its surface counts, not what is within."""
        x = _vectors(position, "overlaps", "position")
        n = len(x)
        found: list[set[int]] = [set() for _ in range(n)]
        for part in parts_of(_shape(shape, "overlaps"), "overlaps", False):
            array, rows = self._ready(part, x, rotation)
            room = LISTED
            while True:
                count = wp.zeros(n, dtype=wp.int32, device=self.device)
                which = wp.zeros((n, room), dtype=wp.int32, device=self.device)
                inputs = [array, self._worlds(world, n), rows, real(part.bound), groups, self.threads, count, which]
                wp.launch(overlaps_many, dim=self.threads, inputs=inputs, device=self.device)
                counts = count.numpy()
                if counts.max(initial=0) <= room:
                    break
                room = int(counts.max())
            for k, (c, shapes) in enumerate(zip(counts, which.numpy(), strict=True)):
                found[k] |= set(self.bodies[shapes[:c]].tolist())
        return [[self.names[b] for b in sorted(row)] for row in found]

    def distance(self, a: str | list[str], b: str | list[str], *, world: Any = 0) -> Hits:
        """Least gaps of bodies (negative: overlap), row by row: points on a, normals from a to b."""
        left, right = ([x] if isinstance(x, str) else x for x in (a, b))
        if not isinstance(left, list | tuple) or not isinstance(right, list | tuple) or len(left) != len(right):
            raise SimulationError(f"distance: a and b are names of bodies, or lists of as many, got {a!r} and {b!r}")
        pairs = list(zip(left, right, strict=True))
        index = np.array([[self._body(x), self._body(y)] for x, y in pairs], np.int32)
        solid = {int(s.body) for s in self.collider.given.shapes if s.part.kind not in ("plane", "mesh", "heights")}
        turned = np.array([y not in solid for _, y in index])
        if any(x not in solid for x, _ in index[turned]):
            raise SimulationError("distance: one of two bodies has to be other than a ground, a mesh or a height field")
        index[turned] = index[turned][:, ::-1]
        array, _ = self._ready(POINT_PART, np.zeros((1, 3)), (0.0, 0.0, 0.0, 1.0))
        n = len(pairs)
        far, point, normal = (wp.zeros(n, dtype=d, device=self.device) for d in (real, vec3, vec3))
        ends = [wp.array(np.ascontiguousarray(index[:, k]), dtype=wp.int32, device=self.device) for k in (0, 1)]
        inputs = [array, self._worlds(world, n), *ends, self.threads, far, point, normal]
        wp.launch(distances_many, dim=self.threads, inputs=inputs, device=self.device)
        gap, p, normals = far.numpy().astype(float), point.numpy().astype(float), normal.numpy().astype(float)
        p[turned] += (gap[:, None] * normals)[turned]
        normals[turned] *= -1
        return Hits(gap, [y for _, y in pairs], p, normals)

    # ---- how ----

    def _cast(
        self, parts: list[Part], position: Any, rotation: Any, direction: Any, length: Any, world: Any, groups: int
    ) -> Hits:  # fmt: skip
        x, d, until = _ways(position, direction, length)
        n = len(x)
        way = wp.array(d, dtype=vec3, device=self.device)
        best = np.full(n, np.inf)
        which = np.full(n, -1)
        points, normals = np.zeros((n, 3)), np.zeros((n, 3))
        for part in parts:
            array, rows = self._ready(part, x, rotation)
            lengths = wp.array(until.astype(np_real), dtype=real, device=self.device)
            far, shape, point, normal = (wp.zeros(n, dtype=t, device=self.device) for t in (real, wp.int32, vec3, vec3))
            inputs = [array, self._worlds(world, n), rows, real(part.bound), way, lengths, groups, self.threads]
            wp.launch(cast_many, dim=self.threads, inputs=[*inputs, far, shape, point, normal], device=self.device)
            gone = far.numpy()
            nearer = (gone >= 0) & (gone < best)
            best[nearer], which[nearer] = gone[nearer], shape.numpy()[nearer]
            points[nearer], normals[nearer] = point.numpy()[nearer], normal.numpy()[nearer]
        return Hits(best, [self.names[self.bodies[k]] if k >= 0 else None for k in which], points, normals)

    def _ready(self, part: Part, position: np.ndarray, rotation: Any) -> tuple[Any, Placed]:
        """The bodies as they are now, and a shape at some poses."""
        collider = self.collider
        if collider.array is None:
            raise SimulationError("Queries: Collider.bind(state) comes before questions")
        load_modules([place_all.module], self.device)
        data, shapes = Collision(), ShapeTable()
        for name in ShapeTable.vars:  # type: ignore[attr-defined]
            setattr(shapes, name, getattr(collider.data.shapes, name))
        first = 0
        if part.corners is not None:
            table = shapes.corners.numpy()
            first = len(table)
            shapes.corners = wp.array(np.concatenate([table, part.corners]).astype(np_real), dtype=vec3, device=self.device)
        for name in ("broad", "position", "rotation", "velocity", "spin", "dt"):
            setattr(data, name, getattr(collider.data, name))
        data.shapes, data.polytope = shapes, self.polytope
        self._data = data  # keeps its arrays alive
        array = alone(data, Collision, self.device)
        wp.launch(place_all, dim=collider.model.worlds, inputs=[array], device=self.device)
        n = len(position)
        turn = unit_quat(rotation, "rotation of a shape", SimulationError)
        if turn.shape not in ((4,), (1, 4), (n, 4)):
            raise SimulationError(f"rotation of a shape: one, or one a position ({n}), got shape {turn.shape}")
        turn = np.broadcast_to(turn, (n, 4))
        rows = Placed()
        spot = position + _turned(turn, part.position)
        columns: dict[str, tuple[Any, Any]] = {
            "kind": (np.full(n, KINDS.index(part.kind)), wp.int32),
            "size": (np.tile(part.size, (n, 1)), vec3),
            "radius": (np.full(n, part.radius), real),
            "first": (np.full(n, first), wp.int32),
            "length": (np.full(n, 0 if part.corners is None else len(part.corners)), wp.int32),
            "position": (spot, vec3),
            "rotation": (_product(turn, part.rotation), quat),
        }
        for name, (values, dtype) in columns.items():
            plain = np.ascontiguousarray(values).astype(np.int32 if dtype is wp.int32 else np_real)
            setattr(rows, name, wp.array(plain, dtype=dtype, device=self.device))
        return array, rows

    def _world(self, world: Any, n: int) -> np.ndarray:
        given = as_numbers(world)
        if given.shape not in ((), (n,)) or not np.all((given == np.round(given)) & (np.abs(given) < 1 << 31)):
            raise SimulationError(f"world is a whole number, or one for each of the {n} queries, got {world!r}")
        values = np.broadcast_to(given.astype(np.int32), (n,))
        if values.min(initial=0) < 0 or values.max(initial=0) >= self.collider.model.worlds:
            raise SimulationError(f"world is from 0 to {self.collider.model.worlds - 1}, got {world!r}")
        return values

    def _worlds(self, world: Any, n: int) -> Any:
        return wp.array(np.ascontiguousarray(self._world(world, n)), dtype=wp.int32, device=self.device)

    def _body(self, name: str) -> int:
        known = self.collider.model.body_names
        if not isinstance(name, str) or name not in known or known[name] not in self.bodies:
            raise SimulationError(
                f"body {name!r} has no collision shapes; available: {', '.join(map(repr, self._solid_names()))}"
            )
        return int(known[name])

    def _solid_names(self) -> list[str]:
        return [self.names[b] for b in sorted(set(self.bodies.tolist()))]


def _turned(q: np.ndarray, v: np.ndarray) -> np.ndarray:
    return quat_rotate(q, np.broadcast_to(v, (len(q), 3)))


def _product(q: np.ndarray, r: np.ndarray) -> np.ndarray:
    return quat_multiply(q, np.broadcast_to(r, q.shape))


def _ways(position: Any, direction: Any, length: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Starts (n, 3), unit directions (n, 3) and lengths (n,) of what goes somewhere."""
    x, d = _vectors(position, "ray, cast", "position"), _vectors(direction, "ray, cast", "direction")
    if 1 != len(x) != len(d) != 1:
        raise SimulationError(f"ray, cast: there are as many directions as positions, or one, got {len(d)} and {len(x)}")
    x, d = np.broadcast_arrays(x, d)
    norm = np.linalg.norm(d, axis=1, keepdims=True)
    if not np.all(norm > 0):
        raise SimulationError(f"ray, cast: a direction is not 0, got {direction!r}")
    asked = as_numbers(length)
    until = np.minimum(np.broadcast_to(asked if asked.shape in ((), (1,), (len(x),)) else np.nan, (len(x),)), RAY_LENGTH)
    if not np.all(until >= 0):
        raise SimulationError(f"ray, cast: a length is at least 0 m, got {length!r}")
    return x, d / norm, until


def _vectors(value: Any, who: str, what: str) -> np.ndarray:
    """(n, 3) of one vector or of many."""
    given = np.atleast_2d(as_numbers(value))
    if given.ndim != 2 or given.shape[1] != 3 or not np.all(np.isfinite(given)):
        raise SimulationError(f"{who}: {what} is three finite numbers, or many rows (n, 3) of them, got {value!r}")
    return given


def _shape(value: Any, who: str) -> Shape:
    if not isinstance(value, Shape):
        raise SimulationError(f"{who}: shape is a shape, such as sh.Sphere(0.1), got {value!r}")
    return value
