"""Rays from the host's side: what they see of a collider, rays from anywhere, and fans of rays from a point of a body."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import warp as wp

from sharnir.collision.collider import Collider
from sharnir.collision.data import Collision, vec4
from sharnir.collision.rays import Eye, Faces, Lines, trace_eye, trace_many
from sharnir.core.graphs import LOCK, Recorded, record, replayer
from sharnir.core.types import alone, load_modules, np_real, quat, real, vec3
from sharnir.errors import SimulationError

BUSY = 1 << 16
"""Threads that a GPU wants to have: tiles are smaller where rays are few."""
TILE = 64
"""Rays of a tile, at most."""


def hull_planes(corners: Any) -> np.ndarray:
    """(n, 4) unit normals and distances from the origin of the faces of a convex hull, each plane once, no corner outside.

    The plane of a sliver, whose normal is not to be trusted, may cut off corners: its neighbours bound the hull without it.
    """
    import trimesh

    hull = trimesh.convex.convex_hull(corners)
    normals = np.asarray(hull.face_normals, float)
    size = max(float(np.abs(corners).max()), 1e-12)
    farthest = (normals @ np.asarray(corners).T).max(axis=1)
    fine = (farthest - np.sum(normals * hull.triangles[:, 0], axis=1) < 1e-6 * size) & (np.linalg.norm(normals, axis=1) > 0.5)
    planes = np.column_stack([normals, farthest])[fine]
    _, first = np.unique(np.round(planes / (1.0, 1.0, 1.0, size), 9), axis=0, return_index=True)
    return np.asarray(planes[np.sort(first)])


class Sight:
    """The shapes of a collider, and the ropes, as rays see them, where its state has them."""

    def __init__(self, collider: Collider) -> None:
        if collider.array is None:
            raise SimulationError("Sight: Collider.bind(state) comes before rays")
        self.collider, self.device, self.worlds = collider, collider.model.device, collider.model.worlds
        load_modules([trace_eye.module], self.device)
        shapes = collider.given.shapes
        planes = [hull_planes(s.part.corners) if s.part.kind == "hull" else np.zeros((0, 4)) for s in shapes]
        faces = Faces()
        faces.plane = wp.array(np.concatenate([*planes, np.zeros((0, 4))]).astype(np_real), dtype=vec4, device=self.device)
        faces.first = self.numbers(np.cumsum([0, *(len(p) for p in planes)]))
        data = Collision()
        for name in ("shapes", "position", "rotation"):
            setattr(data, name, getattr(collider.data, name))
        lines = self._lines(collider)
        self._kept = data, faces, lines  # which own the arrays
        self._batch: Batch | None = None
        self.bodies = np.array([*(s.body for s in shapes), *(len(collider.model.com) + np.arange(lines.count)), -1], int)
        """Of what rays meet, shapes and then ropes: the body, or the number of bodies plus the rope's; the last: nothing."""
        self.names = [*collider.model.body_names, *(collider.model.ropes.names if lines.count else ()), None]
        """Of these bodies and ropes; the last is for nothing."""
        kinds = Collision, Faces, Lines
        self.arrays = [wp.array([part], dtype=kind, device=self.device) for part, kind in zip(self._kept, kinds, strict=True)]

    def _lines(self, collider: Collider) -> Any:
        """The ropes, all of them: light does not ask what touches."""
        out, ropes, state = Lines(), collider.model.ropes, collider.ropes
        if state is not None:
            out.count, out.first = ropes.count, self.numbers(ropes.first)
            out.radius = wp.array([r.radius for r in ropes.described], dtype=real, device=self.device)
            out.segments, out.cut, out.position = state.segments, state.cut, state.position
        return out

    def numbers(self, values: Any) -> Any:
        """Whole numbers on the device."""
        return wp.array(np.ascontiguousarray(values, np.int32), dtype=wp.int32, device=self.device)

    def fits(self, collider: Collider) -> bool:
        """Whether it still sees what the collider is bound to."""
        same = self._kept[0].position.ptr == collider.data.position.ptr
        return bool(same and (collider.ropes is None or self._kept[2].position.ptr == collider.ropes.position.ptr))

    def rays(
        self, origin: np.ndarray, direction: np.ndarray, length: np.ndarray, world: np.ndarray, groups: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Distances (n,), −1 for none, shapes (n,) and normals (n, 3) of what rays meet first; directions are unit vectors."""
        key = len(origin), groups
        if self._batch is None or self._batch.key != key:
            self._batch = Batch(self, *key)
        return self._batch.trace(world, origin, direction, length)


class Batch:
    """So many rays from anywhere: arrays that are kept, as long as as many are asked for again, and a launch that is recorded."""

    def __init__(self, sight: Sight, n: int, groups: int) -> None:
        self.key, device = (n, groups), sight.device
        kinds = (wp.int32, vec3, vec3, real, real, wp.int32, vec3)
        self._arrays = [wp.zeros(n, dtype=kind, device=device) for kind in kinds]
        given, found = self._arrays[:4], self._arrays[4:]
        self._host = [a.numpy() for a in self._arrays] if wp.get_device(device).is_cpu else None
        inputs = [*sight.arrays, *given, groups, *found]
        self._replay = Recorded(lambda: wp.launch(trace_many, dim=n, inputs=inputs, device=device), device)

    def trace(self, *given: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Worlds, origins, directions and lengths in; distances, shapes and normals out."""
        with LOCK:
            if self._host is not None:
                for array, values in zip(self._host, given, strict=False):
                    array[...] = values
                self._replay()
                far, shape, normal = (array.copy() for array in self._host[4:])
                return far, shape, normal
            for to, values in zip(self._arrays, given, strict=False):
                to.assign(np.ascontiguousarray(values, np.int32 if to.dtype is wp.int32 else np_real))
            self._replay()
            return self._arrays[4].numpy(), self._arrays[5].numpy(), self._arrays[6].numpy()


class Fan:
    """Rays that start in a point of a body, of all worlds, in one launch; its arrays are made once and filled again and again.

    Args:
        body, point, turn: the body's index, the point from its centre of mass (m, body axes), the eye's axes in the body's.
        direction: (n, 3) unit, the eye's axes. scale: (n,) of the value, a metre along the ray.
        grid: (rows, columns) where rays are the pixels of an image, row by row.
        near: range of the value (m): nearer is −∞, farther ∞.
        unseen: bodies and ropes that rays pass through, numbered as in `Sight.bodies`. groups: bits of those that count.
        pool: threads (of a CPU) that share the worlds.
    """

    def __init__(
        self, sight: Sight, body: int, point: np.ndarray, turn: np.ndarray, direction: np.ndarray, scale: np.ndarray,
        grid: tuple[int, int], near: tuple[float, float], unseen: set[int], groups: int, pool: Any = None,
    ) -> None:  # fmt: skip
        self.sight = sight
        device, n, worlds = sight.device, len(direction), sight.worlds
        few = TILE if wp.get_device(device).is_cpu else max(1, min(TILE, n * worlds // BUSY))
        tiles = tiled(grid, few)
        order = np.concatenate(tiles)
        axis = np.array([direction[t].mean(0) for t in tiles])
        size = np.linalg.norm(axis, axis=1, keepdims=True)
        axis = np.where(size > 1e-6, axis / np.maximum(size, 1e-300), (1.0, 0.0, 0.0))
        widest = np.array([np.arccos(np.clip(direction[t] @ a, -1, 1)).max() for t, a in zip(tiles, axis, strict=True)])
        widest = np.where(widest < 0.49 * np.pi, widest, np.pi)  # wider than half a space: it may see anything
        eye = Eye()
        eye.body, eye.point, eye.turn = body, vec3(*point), quat(*turn)
        eye.least, eye.most = near
        eye.direction, eye.axis = (wp.array(v.astype(np_real), dtype=vec3, device=device) for v in (direction, axis))
        columns = {"scale": scale, "cosine": np.cos(widest), "sine": np.sin(widest)}
        for name, values in columns.items():
            setattr(eye, name, wp.array(np.ascontiguousarray(values, np_real), dtype=real, device=device))
        eye.tile, eye.order = sight.numbers(np.cumsum([0, *map(len, tiles)])), sight.numbers(order)
        shapes = sight.collider.given.shapes
        group = [*(s.group for s in shapes), *[1] * (len(sight.bodies) - len(shapes))]
        eye.seen = sight.numbers([b not in unseen and g & groups != 0 for b, g in zip(sight.bodies, group, strict=True)])
        eye.value = wp.full((n, worlds), real(np.inf), dtype=real, device=device)
        eye.shape = wp.full((n, worlds), -1, dtype=wp.int32, device=device)
        self.value, self.shape = eye.value, eye.shape
        """[ray, world], on the device."""
        self._eye, self._array = eye, alone(eye, Eye, device)
        self._tiles = len(tiles)
        self._pool, self._threads = pool, 1 if pool is None else min(worlds, pool.count)
        self._replays: list[Callable[[], object]] = []

    def launch(self, first: int, worlds: int) -> None:
        """Look, once, in some worlds; may be captured."""
        inputs = [*self.sight.arrays, self._array, first]
        wp.launch(trace_eye, dim=(self._tiles, worlds), inputs=inputs, device=self.sight.device)

    def look(self) -> None:
        """Look, from where the bodies are now."""
        with LOCK:
            if not self._replays:
                device, ends = self.sight.device, np.linspace(0, self.sight.worlds, self._threads + 1).astype(int).tolist()
                for first, last in pairwise(ends):
                    graph = record(lambda a=first, n=last - first: self.launch(a, n), device)  # type: ignore[misc]
                    self._replays.append(replayer(graph))
            if self._pool is None:
                self._replays[0]()
            else:
                for job in [self._pool.submit(replay) for replay in self._replays]:
                    job.result()

    def move(self, point: np.ndarray) -> None:
        """Put its point elsewhere, m from the body's centre of mass."""
        self._eye.point = vec3(*point)
        wp.copy(self._array, alone(self._eye, Eye, self.sight.device))  # in its place, for what is recorded

    def bodies(self) -> np.ndarray:
        """(rays, worlds) the body that each ray met, or the number of bodies plus that of the rope; −1 for none."""
        return np.asarray(self.sight.bodies[self.shape.numpy()])


def tiled(grid: tuple[int, int], most: int) -> list[np.ndarray]:
    """Indices of the pixels of an image (rows, columns) in blocks that are as square as they can be, of at most so many."""
    rows, columns = grid
    high = max(1, min(rows, int(np.sqrt(most))))
    wide = max(1, most // high)
    index = np.arange(rows * columns).reshape(grid)
    return [
        index[i : i + high, j : j + wide].ravel() for i in range(0, rows, high) for j in range(0, columns, wide)
    ]  # fmt: skip
