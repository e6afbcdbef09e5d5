"""Moving pictures without a screen: a small renderer that draws shaded triangles with Pillow, to a GIF or an MP4.

with sim.video("crane.gif", fps=25):
    sim.run(4.0)
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from sharnir.errors import SimulationError, is_positive
from sharnir.spatial import quat_rotate
from sharnir.view import MissingExtra, need

# The Simulation; it stands a floor above, so that it is not named here.
Owner = Any
PALETTE = ((86, 126, 189), (221, 132, 82), (85, 168, 104), (196, 78, 82), (129, 114, 179), (147, 120, 96), (218, 139, 195))
GREY, SKY, ROPE = (150, 150, 155), (245, 246, 248), (60, 60, 60)
LIGHT = np.array([0.35, -0.5, 0.8]) / np.linalg.norm([0.35, -0.5, 0.8])
FINE = 400  # triangles of a body beyond which every other is left out, and so on


class Camera:
    """A look from `eye` at `target`, z up, through a lens of some degrees."""

    def __init__(self, eye: np.ndarray, target: np.ndarray, size: tuple[int, int], lens: float = 40.0) -> None:
        forward = (target - eye) / max(float(np.linalg.norm(target - eye)), 1e-12)
        side = np.cross(forward, (0.0, 0.0, 1.0))
        side = side / np.linalg.norm(side) if np.linalg.norm(side) > 1e-9 else np.array([1.0, 0.0, 0.0])
        self.axes, self.eye, self.size = np.array([side, np.cross(side, forward), forward]), eye, size
        self.focal = 0.5 * size[1] / np.tan(np.radians(0.5 * lens))

    def project(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(n, 2) pixels and (n,) depths of points (n, 3)."""
        local = (points - self.eye) @ self.axes.T
        depth = np.maximum(local[:, 2], 1e-6)
        out = np.stack(
            [0.5 * self.size[0] + self.focal * local[:, 0] / depth, 0.5 * self.size[1] - self.focal * local[:, 1] / depth]
        )
        return out.T, local[:, 2]


class Video:
    """Frames of a running simulation (its first world), written when it is closed."""

    def __init__(
        self, sim: Owner, path: str | Path, fps: float = 25.0, size: tuple[int, int] = (640, 480), speed: float = 1.0,
        eye: Any = None, target: Any = None,
    ) -> None:  # fmt: skip
        self._sim, self.path = sim, Path(path)
        if self.path.suffix not in (".gif", ".mp4"):
            raise SimulationError(f"video: a file that ends in .gif or .mp4, got {str(path)!r}")
        for what, value in (("fps", fps), ("speed", speed)):
            if not is_positive(value):
                raise SimulationError(f"video: {what} is a positive finite number, got {value!r}")
        self._image, self._draw = need("PIL.Image", "plot"), need("PIL.ImageDraw", "plot")
        if self.path.suffix == ".mp4":
            try:
                need("imageio_ffmpeg", "video")
            except MissingExtra:
                raise MissingExtra('an .mp4 needs ffmpeg: pip install "sharnir[video]", or write a .gif') from None
        self._fps, self.size = fps, size
        self._every = max(1, round(speed / fps / sim.dt))
        self._left: int = self._every
        self._frames: list[Any] = []
        self._meshes = list(meshes(sim))
        low, high = self._extent()
        middle, reach = 0.5 * (low + high), max(float(np.linalg.norm(high - low)), 1e-3)
        goal = middle if target is None else np.asarray(target, float)
        start = goal + reach * np.array([0.7, -1.5, 0.6]) if eye is None else np.asarray(eye, float)
        self.camera = Camera(start, goal, size)

    def __enter__(self) -> Video:
        self._sim._logs.append(self)
        self.take()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self._sim._logs.remove(self)
        if kind is None:
            self.write()

    def due(self) -> int:
        """Steps until the next frame."""
        return int(self._left)

    def made(self, steps: int) -> None:
        """So many steps were made."""
        self._left -= steps
        if self._left <= 0:
            self._left = self._every
            self.take()

    def __len__(self) -> int:
        return int(len(self._frames))

    def _extent(self) -> tuple[np.ndarray, np.ndarray]:
        """The box that holds all that is seen at the start, and a little more where it may swing."""
        points = [p for p, _, _ in self._placed()] + [line for line in self._lines()]
        every = np.concatenate(points) if points else np.zeros((1, 3))
        return every.min(0), every.max(0)

    def _poses(self) -> tuple[np.ndarray, np.ndarray]:
        s = self._sim._moving
        return s.position[:, 0].astype(float), s.rotation[:, 0].astype(float)

    def _placed(self) -> Any:
        """Vertices in the world, faces and colour of every body."""
        x, q = self._poses()
        for b, vertices, faces, colour in self._meshes:
            yield x[b] + quat_rotate(np.broadcast_to(q[b], (len(vertices), 4)), vertices), faces, colour

    def _lines(self) -> list[np.ndarray]:
        """Ropes and springs as polylines."""
        sim = self._sim
        ropes = [sim.rope(name).position for name in sim._ropes]
        lines = [np.asarray(points if sim.worlds == 1 else points[0]) for points in ropes]
        ends = [sim.spring(name).ends for name in sim.model.spring_names]
        return lines + [np.array([np.atleast_2d(a)[0], np.atleast_2d(b)[0]]) for a, b in ends]

    def frame(self) -> Any:
        """The picture of now (a Pillow image)."""
        picture = self._image.new("RGB", self.size, SKY)
        draw = self._draw.Draw(picture)
        jobs: list[tuple[float, Any, tuple[int, int, int], bool]] = []
        for points, faces, colour in self._placed():
            pixels, depth = self.camera.project(points)
            corners = points[faces]
            normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
            length = np.linalg.norm(normal, axis=1)
            seen = ((corners[:, 0] - self.camera.eye) * normal).sum(1) < 0
            bright = 0.45 + 0.55 * np.clip((normal @ LIGHT) / np.maximum(length, 1e-300), 0.0, 1.0)
            for i in np.flatnonzero(seen & (depth[faces] > 1e-6).all(1)):
                shade = tuple(int(c * bright[i]) for c in colour)
                jobs.append((float(depth[faces[i]].mean()), [tuple(p) for p in pixels[faces[i]]], shade, True))  # type: ignore[arg-type]
        for line in self._lines():
            pixels, depth = self.camera.project(line)
            for k in range(len(line) - 1):
                if depth[k] > 1e-6 and depth[k + 1] > 1e-6:
                    jobs.append((float(depth[k : k + 2].mean()), [tuple(pixels[k]), tuple(pixels[k + 1])], ROPE, False))
        for _, shape, colour, filled in sorted(jobs, key=lambda job: -job[0]):
            if filled:
                draw.polygon(shape, fill=colour)
            else:
                draw.line(shape, fill=colour, width=2)
        draw.text((8, 6), f"{self._sim.time:.2f} s", fill=(90, 90, 95))
        return picture

    def take(self) -> None:
        """One more frame."""
        self._frames.append(self.frame())

    def write(self) -> Path:
        """Write what was taken so far."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if self.path.suffix == ".gif":
            first, *others = [f.quantize(64) for f in self._frames]
            first.save(self.path, save_all=True, append_images=others, duration=1000.0 / self._fps, loop=0, optimize=False)
            return self.path
        writer = need("imageio_ffmpeg", "video").write_frames(str(self.path), self.size, fps=self._fps)
        writer.send(None)
        for frame in self._frames:
            writer.send(frame.tobytes())
        writer.close()
        return self.path


def meshes(sim: Owner) -> Any:
    """Body, vertices from its centre of mass, faces and colour of all that has a shape."""
    moving = 0
    for name, b in sim.model.body_names.items():
        shape = sim.model.shapes[b]
        dynamic = int(sim.model.bodies.motion.numpy()[b]) == 2
        moving += dynamic
        if shape is None or name == "world":
            continue
        vertices, faces = (np.asarray(part) for part in shape.mesh())
        if not len(faces):
            continue
        stride = max(1, len(faces) // FINE) if len(faces) > 4 * FINE else 1
        colour = PALETTE[moving % len(PALETTE)] if dynamic else GREY
        yield b, vertices - sim.model.com[b], faces[::stride], colour
