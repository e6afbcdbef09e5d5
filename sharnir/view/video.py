"""Moving pictures without a screen: a small renderer that draws shaded triangles with Pillow, to a GIF or an MP4.

with sim.video("crane.gif", fps=25):
    sim.run(4.0)
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from sharnir.core.extras import MissingExtra, need
from sharnir.core.spatial import quat_rotate
from sharnir.core.strided import of_first
from sharnir.errors import SimulationError, is_positive
from sharnir.io.meshes import is_painted, paint, tints
from sharnir.runtime.log import Observer
from sharnir.view.pieces import PALETTE, coil, joined, part_mesh, round_length

# The Simulation; it stands a floor above, so that it is not named here.
Owner = Any
GREY, EARTH, SKY = (150, 150, 155), (158, 150, 130), (245, 246, 248)
ROPE, ROD, GRID = (60, 60, 60), (110, 115, 125), (218, 222, 226)
SMOOTH = 2  # pixels are drawn so many times finer each way, and averaged
LIGHT = np.array([0.35, -0.5, 0.8]) / np.linalg.norm([0.35, -0.5, 0.8])
PIECE, ROUNDS, MOST = 0.25, 12, 20_000  # of the depth: a large side; how often faces are halved, and up to how many
NEAR = 1e-3  # m: what is nearer to the camera is not drawn
FINE = 2000  # triangles of a body beyond which every other is left out, and so on


class Camera:
    """A look from `eye` at `target`, z up, through a lens of some degrees."""

    def __init__(self, eye: np.ndarray, target: np.ndarray, size: tuple[int, int], lens: float = 40.0) -> None:
        forward = (target - eye) / max(float(np.linalg.norm(target - eye)), 1e-12)
        side = np.cross(forward, (0.0, 0.0, 1.0))
        side = side / np.linalg.norm(side) if np.linalg.norm(side) > 1e-9 else np.array([1.0, 0.0, 0.0])
        self.axes, self.eye, self.size = np.array([side, np.cross(side, forward), forward]), eye, size
        """Rows: to the right, up, ahead."""
        self.focal = 0.5 * size[1] / np.tan(np.radians(0.5 * lens))
        """Pixels."""

    def project(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(n, 2) pixels and (n,) depths of points (n, 3)."""
        local = (points - self.eye) @ self.axes.T
        return self.pixels(local), local[:, 2]

    def pixels(self, local: np.ndarray) -> np.ndarray:
        """(n, 2) of points (n, 3) in the camera's axes."""
        depth = np.maximum(local[:, 2], 1e-6)
        out = np.stack(
            [0.5 * self.size[0] + self.focal * local[:, 0] / depth, 0.5 * self.size[1] - self.focal * local[:, 1] / depth]
        )
        return np.asarray(out.T)

    def cut_off(self, corners: np.ndarray) -> np.ndarray:
        """(m, 2) pixels of what of a polygon (n, 3) is ahead of the camera."""
        local = (corners - self.eye) @ self.axes.T
        kept = []
        for a, b in zip(local, np.roll(local, -1, axis=0), strict=True):
            if a[2] >= NEAR:
                kept.append(a)
            if (a[2] >= NEAR) != (b[2] >= NEAR):
                kept.append(a + (b - a) * (NEAR - a[2]) / (b[2] - a[2]))
        return self.pixels(np.array(kept).reshape(-1, 3))

    def pieces(self, corners: np.ndarray) -> np.ndarray:
        """(m, 3, 3) triangles (n, 3, 3), those that are large for their depth cut in halves again and again."""
        done = []
        for _ in range(ROUNDS):
            side = np.linalg.norm(np.roll(corners, -1, axis=1) - corners, axis=2)
            depth = (corners - self.eye) @ self.axes[2]
            longest = side.argmax(1)
            large = (depth.max(1) > NEAR) & (side.max(1) > PIECE * np.maximum(depth.mean(1), 0.5))
            done.append(corners[~large])
            if not large.any() or len(corners) > MOST:
                done.append(corners[large])
                break
            a, b, c = (corners[large][np.arange(large.sum()), (longest[large] + k) % 3] for k in range(3))
            middle = 0.5 * (a + b)
            corners = np.concatenate([np.stack([a, middle, c], 1), np.stack([middle, b, c], 1)])
        else:
            done.append(corners)
        return np.concatenate(done)


class Painter:
    """Draws the first world of a simulation, far things first: where large faces pass each other, the order may be wrong."""

    def __init__(self, sim: Owner, size: tuple[int, int]) -> None:
        self._sim, self.size = sim, size
        self._image, self._draw = need("PIL.Image", "view"), need("PIL.ImageDraw", "view")
        self._meshes = list(meshes(sim))
        self._box = self._extent()

    def _extent(self) -> tuple[np.ndarray, np.ndarray]:
        """The box that holds all that is seen at the start, and a little more where it may swing."""
        points = [p for p, _, _ in self._placed()] + [line for line, _, _ in self._lines()]
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

    def _lines(self) -> list[tuple[np.ndarray, tuple[int, int, int], float]]:
        """Ropes, springs and rods as polylines, with their colours and widths in pixels."""
        sim, model = self._sim, self._sim.model
        ropes = [sim.rope(name).position for name in sim._ropes]
        lines: list[Any] = [(np.asarray(points if sim.worlds == 1 else points[0]), ROPE, 2.0) for points in ropes]
        lines += [(sim.cable(name).points, ROPE, 1.5) for name in model.cable_names]
        for name in model.spring_names:
            a, b = (np.atleast_2d(end)[0] for end in sim.spring(name).ends)
            zigzag = coil(a, b, 0.04 * float(np.linalg.norm(b - a)))
            lines.append((np.vstack([zigzag[:, 0], zigzag[-1:, 1]]), ROPE, 1.0))
        x, q = self._poses()
        table = model.joints
        for k in np.flatnonzero(table.rod.numpy() > 0) if model.joint_kinds else ():
            ends = ((model.parents, of_first(table.parent_point)), (model.children, of_first(table.child_point)))
            line = [x[body[k]] + quat_rotate(q[body[k]], points[k]) for body, points in ends]
            lines.append((np.array(line), ROD, 2.5))
        return lines

    def _ground(self) -> list[np.ndarray]:
        """Lines of a grid on the scene's grounds, near what is seen at the start."""
        model = self._sim.model
        planes = [s.part for s in model.collision.shapes if s.part.kind == "plane"] if model.collision is not None else []
        low, high = self._box
        reach = max(float(np.linalg.norm(high - low)), 1e-3)
        cell = round_length(reach / 6)
        across = cell * np.arange(-12, 13)
        out = []
        for plane in planes:
            middle = 0.5 * (low + high)
            normal = quat_rotate(plane.rotation, np.array([0.0, 0.0, 1.0]))
            foot = middle - normal * float((middle - plane.position) @ normal)
            for s in across:
                for ends in (((s, across[0]), (s, across[-1])), ((across[0], s), (across[-1], s))):
                    local = np.array([[*end, 0.0] for end in ends])
                    line = foot + quat_rotate(np.tile(plane.rotation, (2, 1)), local)
                    out.append(line[0] + np.linspace(0, 1, 25)[:, None] * (line[1] - line[0]))
        return out

    def picture(self, camera: Camera, fine: bool = False) -> Any:
        """What a camera sees now (a Pillow image). fine: large faces are drawn in pieces, which stand in the right order."""
        picture = self._image.new("RGB", (SMOOTH * self.size[0], SMOOTH * self.size[1]), SKY)
        draw = self._draw.Draw(picture)
        for line in self._ground():
            pixels, depth = camera.project(line)
            for i in np.flatnonzero((depth[:-1] > 1e-3) & (depth[1:] > 1e-3)):
                draw.line([tuple(SMOOTH * pixels[i]), tuple(SMOOTH * pixels[i + 1])], fill=GRID, width=SMOOTH)
        jobs: list[tuple[float, Any, tuple[int, int, int], float]] = []  # depth, corners, colour, width of a line
        for points, faces, colour in self._placed():
            if fine:
                points = camera.pieces(points[faces]).reshape(-1, 3)
                faces = np.arange(len(points)).reshape(-1, 3)
            pixels, depth = camera.project(points)
            corners = points[faces]
            normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
            length = np.linalg.norm(normal, axis=1)
            seen = ((corners[:, 0] - camera.eye) * normal).sum(1) < 0
            bright = 0.45 + 0.55 * np.clip((normal @ LIGHT) / np.maximum(length, 1e-300), 0.0, 1.0)
            for i in np.flatnonzero(seen & (depth[faces] > NEAR).any(1)):
                shade = tuple(int(c * bright[i]) for c in (colour[i] if np.ndim(colour) == 2 else colour))
                ahead = bool((depth[faces[i]] > NEAR).all())
                shape = pixels[faces[i]] if ahead else camera.cut_off(corners[i])
                jobs.append((float(depth[faces[i]].mean()), [tuple(p) for p in SMOOTH * shape], shade, 0.0))  # type: ignore[arg-type]
        for line, colour, width in self._lines():
            pixels, depth = camera.project(line)
            for k in range(len(line) - 1):
                if depth[k] > 1e-6 and depth[k + 1] > 1e-6:
                    ends = [tuple(SMOOTH * pixels[k]), tuple(SMOOTH * pixels[k + 1])]
                    jobs.append((float(depth[k : k + 2].mean()), ends, colour, width))
        for _, shape, colour, width in sorted(jobs, key=lambda job: -job[0]):
            if width:
                draw.line(shape, fill=colour, width=round(SMOOTH * width))
            else:
                draw.polygon(shape, fill=colour)
        return picture.resize(self.size, self._image.LANCZOS)


class Video(Painter, Observer):
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
        if self.path.suffix == ".mp4":
            try:
                need("imageio_ffmpeg", "view")
            except MissingExtra:
                raise MissingExtra('an .mp4 needs ffmpeg: pip install "sharnir[view]", or write a .gif') from None
        super().__init__(sim, size)
        self._fps = fps
        self._every = max(1, round(speed / fps / sim.dt))
        self._left = self._every
        self._frames: list[Any] = []
        self.clock = True  # whether the time is written into the pictures
        low, high = self._box
        middle, reach = 0.5 * (low + high), max(float(np.linalg.norm(high - low)), 1e-3)
        goal = middle if target is None else np.asarray(target, float)
        start = goal + reach * np.array([0.7, -1.5, 0.6]) if eye is None else np.asarray(eye, float)
        self.camera = Camera(start, goal, size)

    def end(self) -> None:
        """Write the file."""
        self.write()

    def __len__(self) -> int:
        return int(len(self._frames))

    def frame(self) -> Any:
        """The picture of now (a Pillow image)."""
        picture = self.picture(self.camera)
        if self.clock:
            self._draw.Draw(picture).text((8, 6), f"{self._sim.time:.2f} s", fill=(90, 90, 95))
        return picture

    def take(self) -> None:
        """One more frame."""
        self._frames.append(self.frame())

    def write(self) -> Path:
        """Write what was taken so far."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if self.path.suffix == ".gif":
            few = self._frames[:: max(1, len(self._frames) // 4)][:5]
            sample = self._image.new("RGB", (self.size[0], self.size[1] * len(few)))
            for k, picture in enumerate(few):
                sample.paste(picture, (0, k * self.size[1]))
            palette = sample.quantize(96)  # one for all, so that what stands still costs nothing
            first, *others = [f.quantize(palette=palette, dither=self._image.Dither.NONE) for f in self._frames]
            first.save(self.path, save_all=True, append_images=others, duration=1000.0 / self._fps, loop=0, optimize=False)
            return self.path
        writer = need("imageio_ffmpeg", "view").write_frames(str(self.path), self.size, fps=self._fps, macro_block_size=2)
        writer.send(None)
        for frame in self._frames:
            writer.send(frame.tobytes())
        writer.close()
        return self.path


def meshes(sim: Owner) -> Any:
    """Body, vertices from its centre of mass, faces and colour of all that has a shape, or touches without one."""
    model, moving = sim.model, 0
    motion = model.bodies.motion.numpy()
    for b, own in enumerate(model.shapes):
        shape = model.visuals.get(b, own)
        dynamic = int(motion[b]) == 2
        moving += dynamic
        parts = [s.part for s in model.collision.shapes if s.body == b] if shape is None and model.collision is not None else []
        found = [mesh for part in parts if (mesh := part_mesh(part)) is not None]
        if shape is None and not found:
            continue
        vertices, faces = (np.asarray(part) for part in (joined(found) if shape is None else shape.mesh()))
        if not len(faces):
            continue
        stride = max(1, len(faces) // FINE) if len(faces) > 4 * FINE and shape is not None else 1
        colour = PALETTE[(moving - 1) % len(PALETTE)] if dynamic else GREY if shape is not None else EARTH
        if model.colors[b] is not None:
            colour = tuple(round(255 * c) for c in model.colors[b])
        if shape is not None and is_painted(shape):
            made = paint(shape, colour)
            vertices, faces = np.asarray(made.vertices), np.asarray(made.faces)
            stride = max(1, len(faces) // FINE) if len(faces) > 4 * FINE else 1
            colour = 255 * tints(made)[faces[::stride]].mean(1)
        yield b, vertices - model.com[b], faces[::stride], colour
