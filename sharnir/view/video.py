"""Moving pictures without a screen, to a GIF or an MP4, rendered by `view.tracer`.

with sim.video("crane.gif", fps=25):
    sim.run(4.0)
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from sharnir.core.extras import MissingExtra, need
from sharnir.errors import SimulationError, is_positive
from sharnir.runtime.log import Observer

# The Simulation; importing its class would be a circle.
Owner = Any
MOST_PIXELS = 8192  # along one side of a picture


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


class Video(Observer):
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
        if len(size) != 2 or not all(isinstance(n, int | np.integer) and 1 <= n <= MOST_PIXELS for n in size):
            raise SimulationError(f"video: size is (width, height), whole numbers from 1 to {MOST_PIXELS}, got {size!r}")
        self._image, self._draw = need("PIL.Image", "view"), need("PIL.ImageDraw", "view")
        from sharnir.view.tracer import Tracer

        self.size = (int(size[0]), int(size[1]))
        self.tracer = Tracer(sim, self.size)
        self._fps = fps
        self._every = max(1, round(speed / fps / sim.dt))
        self._left = self._every
        self._frames: list[Any] = []
        self.clock = True  # whether the time is written into the pictures
        low, high = self.tracer.box()
        middle, reach = 0.5 * (low + high), max(float(np.linalg.norm(high - low)), 1e-3)
        goal = middle if target is None else np.asarray(target, float)
        start = goal + reach * np.array([0.6, -1.3, 0.52]) if eye is None else np.asarray(eye, float)
        self.camera = Camera(start, goal, size)

    def end(self) -> None:
        """Write the file."""
        self.write()

    def __len__(self) -> int:
        return int(len(self._frames))

    def frame(self) -> Any:
        """The picture of now (a Pillow image)."""
        picture = self._image.fromarray(self.tracer.render(self.camera))
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
            how = self._image.Quantize.MAXCOVERAGE  # colours of small things stay
            palette = sample.quantize(96, method=how)  # one for all, so that what stands still costs nothing
            first, *others = [f.quantize(palette=palette, dither=self._image.Dither.NONE) for f in self._frames]
            first.save(self.path, save_all=True, append_images=others, duration=1000.0 / self._fps, loop=0, optimize=False)
            return self.path
        writer = need("imageio_ffmpeg", "view").write_frames(str(self.path), self.size, fps=self._fps, macro_block_size=2)
        writer.send(None)
        for frame in self._frames:
            writer.send(frame.tobytes())
        writer.close()
        return self.path
