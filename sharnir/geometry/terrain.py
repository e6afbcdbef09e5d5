"""Ground to drive on: hills, ramps, waves, rubble with a seed, stairs, and fields from images, arrays or files.

A `Terrain` is a grid of heights with its size; `scene.add_terrain(name, terrain)` puts it into a scene. Fields on the same grid
add up: `hill(...) + rubble(...)`.

    ground = sh.terrain.hill(size=(30, 10), height=2.0, radius=6.0) + sh.terrain.rubble(size=(30, 10), height=0.05, seed=1)
    scene.add_terrain("ground", ground.with_friction(lambda x, y: 0.2 if x > 5 else 0.8))
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from sharnir.core.misspellings import by_name
from sharnir.errors import SceneError, as_numbers, number
from sharnir.geometry.shapes import Box, Compound

SPACING = 0.1
"""m between samples, where none is given."""
MAX_SAMPLES = 4_000_000
"""Samples of a field, at most."""
MAX_STAIRS = 2_000
"""Steps of stairs, at most: each is a shape of its own."""


@dataclass(frozen=True)
class Terrain:
    """Heights on an even grid around the origin.

    heights: m, (along x, along y). size: m, full size (x, y). friction: coefficient of each cell, (along x − 1, along y − 1).
    """

    heights: np.ndarray
    size: tuple[float, float]
    friction: np.ndarray | None = None

    def __add__(self, other: Terrain) -> Terrain:
        """The sum of two fields on the same grid; of two maps of friction, the later one's."""
        if not isinstance(other, Terrain):
            return NotImplemented
        if self.heights.shape != other.heights.shape or not np.allclose(self.size, other.size):
            raise SceneError(
                f"terrains add up on the same grid: {self.heights.shape} samples on {self.size} m"
                f" and {other.heights.shape} on {other.size} m"
            )
        friction = self.friction if other.friction is None else other.friction
        return Terrain(self.heights + other.heights, self.size, friction)

    def height_at(self, x: Any, y: Any) -> Any:
        """m, of places given in m from the middle, between samples linear; outside, the edge's."""
        nx, ny = self.heights.shape
        u = np.clip((np.asarray(x, float) / self.size[0] + 0.5) * (nx - 1), 0, nx - 1)
        v = np.clip((np.asarray(y, float) / self.size[1] + 0.5) * (ny - 1), 0, ny - 1)
        i, j = np.minimum(u.astype(int), nx - 2), np.minimum(v.astype(int), ny - 2)
        a, b = u - i, v - j
        z = self.heights
        found = (1 - a) * ((1 - b) * z[i, j] + b * z[i, j + 1]) + a * ((1 - b) * z[i + 1, j] + b * z[i + 1, j + 1])
        return float(found) if found.ndim == 0 else found

    def with_friction(self, friction: float | np.ndarray | Callable[[float, float], float]) -> Terrain:
        """The same ground with a map of friction: one value, an array (along x − 1, along y − 1), or a function of x and y, m."""
        cells = (self.heights.shape[0] - 1, self.heights.shape[1] - 1)
        if callable(friction):
            x, y = (((np.arange(n) + 0.5) / n - 0.5) * full for n, full in zip(cells, self.size, strict=True))
            values = np.array([[float(friction(a, b)) for b in y] for a in x])
        else:
            values = as_numbers(friction)
            values = np.full(cells, values) if values.ndim == 0 else values
        if values.shape != cells:
            raise SceneError(f"terrain: friction has a value a cell, {cells}, got shape {values.shape}")
        if not (np.isfinite(values) & (values >= 0)).all():
            raise SceneError(f"terrain: friction is finite and at least 0, got {values[~(values >= 0)].ravel()[:1]}")
        return replace(self, friction=values)


def grid(size: Sequence[float], step: float = SPACING) -> tuple[np.ndarray, np.ndarray]:
    """x and y of the samples, m, each (along x, along y); the spacing is `step` or a little less."""
    if as_numbers(size).shape != (2,):
        raise SceneError(f"terrain: size is (x, y) in m, got {size!r}")
    full = [number("terrain", "size (m)", v, least=1e-6) for v in size]
    step = number("terrain", "step (m)", step, least=1e-9)
    counts = [max(2, int(np.ceil(v / step - 1e-9)) + 1) for v in full]
    if counts[0] * counts[1] > MAX_SAMPLES:
        raise SceneError(
            f"terrain: {counts[0]} × {counts[1]} samples, more than {MAX_SAMPLES}; give a larger step than {step:g} m"
        )
    axes = [np.linspace(-0.5 * v, 0.5 * v, n) for v, n in zip(full, counts, strict=True)]
    x, y = np.meshgrid(*axes, indexing="ij")
    return x, y


def _made(size: Sequence[float], heights: np.ndarray) -> Terrain:
    return Terrain(heights, (float(size[0]), float(size[1])))


@by_name
def flat(*, size: Sequence[float], step: float = SPACING) -> Terrain:
    """Level ground, to add other fields or a map of friction to."""
    return _made(size, 0.0 * grid(size, step)[0])


@by_name
def hill(
    *, size: Sequence[float], height: float, radius: float, at: Sequence[float] = (0.0, 0.0), step: float = SPACING
) -> Terrain:  # fmt: skip
    """A round hill (a hollow where the height is negative): ½ height (1 + cos πr/radius), smooth at top and foot."""
    x, y = grid(size, step)
    far = number("terrain.hill", "radius (m)", radius, least=1e-6)
    r = np.minimum(np.hypot(x - at[0], y - at[1]) / far, 1.0)
    return _made(size, 0.5 * number("terrain.hill", "height (m)", height) * (1 + np.cos(np.pi * r)))


@by_name
def ridge(*, size: Sequence[float], height: float, length: float, at: float = 0.0, step: float = SPACING) -> Terrain:
    """A hill across the way: ½ height (1 + cos 2πx/length) along x, the same at every y."""
    x, _ = grid(size, step)
    half = 0.5 * number("terrain.ridge", "length (m)", length, least=1e-6)
    r = np.minimum(np.abs(x - at) / half, 1.0)
    return _made(size, 0.5 * number("terrain.ridge", "height (m)", height) * (1 + np.cos(np.pi * r)))


@by_name
def ramp(*, size: Sequence[float], slope: float, start: float, length: float, step: float = SPACING) -> Terrain:
    """Level, from x = start up at an angle of `slope` (rad) for `length` m along x, then level again."""
    x, _ = grid(size, step)
    rise = np.tan(number("terrain.ramp", "slope (rad)", slope, least=-1.5, most=1.5))
    along = np.clip(x - start, 0.0, number("terrain.ramp", "length (m)", length, least=1e-6))
    return _made(size, rise * along)


@by_name
def waves(*, size: Sequence[float], height: float, length: float, step: float = SPACING) -> Terrain:
    """A washboard: ½ height (1 − cos 2πx/length)."""
    x, _ = grid(size, step)
    turns = 2 * np.pi * x / number("terrain.waves", "length (m)", length, least=1e-6)
    return _made(size, 0.5 * number("terrain.waves", "height (m)", height) * (1 - np.cos(turns)))


@by_name
def rubble(*, size: Sequence[float], height: float, grain: float = 0.3, seed: int = 0, step: float = SPACING) -> Terrain:
    """Rough ground between 0 and `height`, bumps about `grain` m wide; the same for the same seed."""
    x, _ = grid(size, step)
    spacing = [full / (n - 1) for full, n in zip(size, x.shape, strict=True)]
    values = np.random.default_rng(seed).normal(size=x.shape)
    wide = number("terrain.rubble", "grain (m)", grain, least=1e-6)
    for axis in (0, 1):  # smoothed as by a bell of that width
        waves_ = np.fft.rfftfreq(x.shape[axis], spacing[axis])
        bell = np.exp(-0.5 * (np.pi * wide * waves_) ** 2)
        line = bell[:, None] if axis == 0 else bell[None, :]
        values = np.fft.irfft(np.fft.rfft(values, axis=axis) * line, n=x.shape[axis], axis=axis)
    span = np.ptp(values)
    return _made(size, number("terrain.rubble", "height (m)", height) * (values - values.min()) / (span if span > 0 else 1.0))


@by_name
def stairs(*, rise: float, tread: float, count: int, width: float) -> Compound:
    """Stairs up along x from the origin, as a shape for a fixed body: `count` steps, each `rise` m high and `tread` m deep."""
    who = "terrain.stairs"
    rise, tread = number(who, "rise (m)", rise, least=1e-6), number(who, "tread (m)", tread, least=1e-6)
    width = number(who, "width (m)", width, least=1e-6)
    if not isinstance(count, int) or isinstance(count, bool) or not 1 <= count <= MAX_STAIRS:
        raise SceneError(f"{who}: count is a whole number from 1 to {MAX_STAIRS}, got {count!r}")
    steps = [
        Box(tread * (count - k), width, rise, position=(0.5 * tread * (count + k), 0.0, (k + 0.5) * rise)) for k in range(count)
    ]
    return Compound(*steps)


@by_name
def from_array(heights: Any, *, size: Sequence[float]) -> Terrain:
    """Heights in m, (along x, along y)."""
    z = as_numbers(heights)
    if z.ndim != 2 or min(z.shape) < 2:
        raise SceneError(f"terrain: heights are an array (along x, along y) of at least 2 by 2, got shape {z.shape}")
    if z.size > MAX_SAMPLES:
        raise SceneError(f"terrain: {z.shape[0]} × {z.shape[1]} samples are more than {MAX_SAMPLES}")
    grid(size, max(size))
    return _made(size, z)


@by_name
def from_image(path: str | Path, *, size: Sequence[float], height: float) -> Terrain:
    """A grey image: black 0, white `height` m. Its width runs along x, its upper edge is at the largest y. Needs Pillow."""
    try:
        from PIL import Image
    except ImportError:
        raise SceneError(f"terrain {str(path)!r}: images need Pillow, which is not installed: pip install pillow") from None
    try:
        with Image.open(path) as image:
            if image.width * image.height > MAX_SAMPLES:
                raise SceneError(f"terrain: {str(path)!r} has {image.width} × {image.height} pixels; allowed: {MAX_SAMPLES}")
            deep = image.mode.startswith("I") or image.mode == "F"
            grey = np.asarray(image if deep else image.convert("L"), float)
    except SceneError:
        raise
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise SceneError(f"terrain: {str(path)!r} is not an image that can be read: {error}") from None
    white = 255.0 if not deep else (65535.0 if grey.max() > 1.0 else 1.0)
    return from_array(grey[::-1].T / white * number("terrain.from_image", "height (m)", height), size=size)


@by_name
def from_file(path: str | Path, *, size: Sequence[float], height: float | None = None) -> Terrain:
    """Heights from .npy, .csv or .txt (m, a line a step along x), or from an image (with its `height`)."""
    suffix = Path(path).suffix.lower()
    if suffix not in (".npy", ".csv", ".txt"):
        if height is None:
            raise SceneError(f"terrain: {str(path)!r}, an image, needs height= (m) of what is white")
        return from_image(path, size=size, height=height)
    try:
        if suffix == ".npy":
            values = np.load(path, mmap_mode="r", allow_pickle=False)  # a size that the file has not is an error, and no memory
        else:
            if Path(path).stat().st_size > 25 * MAX_SAMPLES:
                raise ValueError(f"at most {25 * MAX_SAMPLES} bytes are read")
            values = np.loadtxt(path, delimiter="," if suffix == ".csv" else None, ndmin=2)
        if values.size > MAX_SAMPLES:
            raise ValueError(f"{values.shape} samples are more than {MAX_SAMPLES}")
    except (OSError, ValueError, OverflowError, SyntaxError) as error:
        raise SceneError(f"terrain: {str(path)!r} cannot be read as numbers: {error}") from None
    return from_array(values, size=size)
