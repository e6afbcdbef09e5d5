"""Sensors by rays: a lidar and a depth camera, that see the collision shapes of all worlds in one launch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from sharnir.collision.describe import EVERYTHING
from sharnir.collision.trace import Fan
from sharnir.errors import SceneError, SimulationError, as_numbers, is_positive
from sharnir.sensors.bank import Bank, Part
from sharnir.sensors.frames import Frame
from sharnir.sensors.noise import Noise
from sharnir.sensors.sensor import Owner, Sensor, checked_noise

MOST_RAYS = 1 << 24
"""Rays of a sensor, at most."""


def whole(value: Any, who: str, what: str) -> int:
    """A count of at least 1."""
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or not 1 <= value <= MOST_RAYS:
        raise SceneError(f"{who}: {what} is a whole number from 1 to {MOST_RAYS}, got {value!r}")
    return int(value)


def pair(value: Any, who: str) -> tuple[float, float]:
    """A range (least, most) of a measurement, m."""
    given = as_numbers(value)
    if given.shape != (2,) or not 0 <= given[0] < given[1] or math.isinf(given[0]):
        raise SceneError(f"{who}: reach is (least, most) in m, 0 ≤ least < most, got {value!r}")
    return float(given[0]), min(float(given[1]), 1e6)


def angle_within(value: Any, most: float, who: str, what: str) -> float:
    """An angle above 0, rad."""
    if not is_positive(value) or value > most:
        raise SceneError(f"{who}: {what} is an angle above 0, at most {most:.6g} rad, got {value!r}")
    return float(value)


def ignored(value: Any, who: str) -> list[str]:
    """Names of bodies and ropes that are seen through."""
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list | tuple) or not all(isinstance(n, str) for n in names):
        raise SceneError(f"{who}: ignore is a list of names of bodies and ropes, got {value!r}")
    return list(names)


def bits(value: Any, who: str) -> int:
    """Groups that are seen."""
    if not isinstance(value, int) or isinstance(value, bool) or not 0 < value <= EVERYTHING:
        raise SceneError(f"{who}: groups is bits (1 to 2³¹ − 1), got {value!r}")
    return value


class RaySensor(Sensor):
    """What a lidar and a depth camera share: a frame on a body, a table of rays, arrays that are filled again and again.

    The sensor looks along the x of its frame, z is up. It sees ropes, and the collision shapes of all bodies but its own, unless
    that is the world. What is nearer than it can measure reads −∞, what is farther, or nothing, ∞.
    """

    _shape: tuple[int, ...]  # of the values of one world
    _units: np.ndarray  # (…, 3) m, in the frame's axes: where a value of 1 m lies

    def _aim(
        self, sim: Owner, where: str, pose: tuple[Any, Any], rays: tuple[np.ndarray, np.ndarray, tuple[int, int]],
        reach: tuple[float, float], ignore: Any, groups: int, noise: Any, name: str, who: str, bank: Bank | None,
    ) -> None:  # fmt: skip
        self._frame = Frame(sim, where, *pose)
        model = sim.model
        body = model.body_names[self._frame._body.name]
        sight = (Bank(sim) if bank is None else bank).sight(who)
        names, known = ignored(ignore, who), sight.names[:-1]
        unknown = [n for n in names if n not in known]
        if unknown:
            raise SimulationError(
                f"{who}: ignore names bodies or ropes, got {unknown[0]!r}; available: {', '.join(map(repr, known))}"
            )
        unseen = {known.index(n) for n in names} | ({body} if body != 0 else set())
        table, scale, grid = rays
        self._directions = table
        point = self._frame._point - model.com[body]
        self._fan = Fan(
            sight, body, point, self._frame._rotation, table, scale, grid, reach, unseen, bits(groups, who), sim.solver._pool
        )
        part = Part((len(table),), who, reach, fan=self._fan, frame=self._frame)
        self._begin(sim, bank, checked_noise(noise, who), name, part)

    def _by_world(self, values: np.ndarray) -> np.ndarray:
        """Values [ray, world] as the user sees them."""
        shaped = values.reshape(*self._shape, self._sim.worlds)
        return np.ascontiguousarray(shaped[..., 0] if self._sim.worlds == 1 else np.moveaxis(shaped, -1, 0))

    def _host(self) -> np.ndarray:
        return self._by_world(self._reading.value.numpy().astype(float))

    @property
    def names(self) -> np.ndarray:
        """What the last reading met, of the shape of `bodies`: names of bodies and ropes, None for nothing."""
        return np.asarray(np.array(self._fan.sight.names, object)[self.bodies])

    @property
    def bodies(self) -> np.ndarray:
        """What the last reading met, as numbered in `sim.model.body_names`, and after these the ropes, as in
        `sim.model.ropes.names`; −1 for nothing. Noise does not reach it. Shaped as the values are.
        """
        return self._by_world(self._fan.bodies())

    @property
    def array(self) -> Any:
        """The values in the device's own memory, with the worlds first if there are several: to be read, not written; the same
        array every time.
        """
        return self._shown(self._shape)

    @property
    def points(self) -> np.ndarray:
        """(…, 3) m, shaped as the values, in the frame's axes; NaN where nothing is."""
        far = self._host()
        return np.asarray(np.where(np.isfinite(far), far, np.nan)[..., None] * self._units)


class Lidar(RaySensor):
    """A scanner: ranges along rays that fan out from a frame, about its z; layers are turned up or down.

    Args:
        where: a body or a frame of the scene. position, rotation: in it, m and a unit quaternion (x, y, z, w).
        count: rays of a layer. field: rad, the angle over which they are spread, about the frame's x, from right to left.
        elevations: rad, one a layer, above the frame's x-y plane.
        reach: (least, most) m that it measures: nearer is −∞, farther ∞.
        ignore: bodies, besides its own, and ropes that it sees through. groups: bits of the groups that it sees; ropes are in 1.
        noise: m; see `Noise`.
    """

    words = ("ranges",)

    def __init__(
        self, sim: Owner, where: str, position: Any = (0.0, 0.0, 0.0), rotation: Any = (0.0, 0.0, 0.0, 1.0), *,
        count: int = 360, field: float = 2 * math.pi, elevations: Sequence[float] = (0.0,),
        reach: tuple[float, float] = (0.05, 30.0), ignore: Sequence[str] = (), groups: int = EVERYTHING,
        noise: Noise | None = None, name: str | None = None, bank: Bank | None = None,
    ) -> None:  # fmt: skip
        who = f"Lidar on {where!r}"
        azimuth, heights, near = self.describe(who, count, field, elevations, reach)
        self._azimuth = azimuth
        a, e = (x.ravel() for x in np.meshgrid(azimuth, heights))
        table = np.column_stack([np.cos(e) * np.cos(a), np.cos(e) * np.sin(a), np.sin(e)])
        rays, self._shape = (table, np.ones(len(table)), (len(heights), len(azimuth))), (len(table),)
        self._units = table
        self._aim(sim, where, (position, rotation), rays, near, ignore, groups, noise, name or f"lidar {where}", who, bank)

    @staticmethod
    def describe(
        who: str, count: Any = 360, field: Any = 2 * math.pi, elevations: Any = (0.0,), reach: Any = (0.05, 30.0)
    ) -> tuple[np.ndarray, np.ndarray, tuple[float, float]]:
        """Angles of a layer, of the layers, and the range, checked."""
        n, wide = whole(count, who, "count"), angle_within(field, 2 * math.pi + 1e-9, who, "field")
        heights = np.atleast_1d(as_numbers(elevations))
        if heights.ndim != 1 or not heights.size or not (np.abs(heights) <= 0.5 * math.pi).all() or n * len(heights) > MOST_RAYS:
            raise SceneError(f"{who}: elevations are angles within ±π/2 rad, one a layer, got {elevations!r}")
        around = wide > 2 * math.pi - 1e-6
        azimuth = -0.5 * wide + wide * (np.arange(n) / n if around else np.arange(n) / max(1, n - 1))
        return azimuth if n > 1 else np.zeros(1), heights, pair(reach, who)

    @property
    def azimuth(self) -> np.ndarray:
        """(count,) rad, about the frame's z, from its x; the same in all layers."""
        return self._azimuth.copy()

    @property
    def directions(self) -> np.ndarray:
        """(rays, 3) unit vectors in the frame's axes, layer by layer."""
        return self._directions.copy()

    @property
    def ranges(self) -> Any:
        """(rays,) m, layer by layer: ∞ where nothing is, −∞ where something is too near; NaN while it fails."""
        return self._host()


class DepthCamera(RaySensor):
    """An image of depths: of every pixel the distance along the camera's axis (not along the ray) to what is seen there, m.

    The camera looks along the x of its frame; columns go to the right (its −y), rows down (its −z). Pixels are square.

    Args:
        where, position, rotation, ignore, groups, noise: as of `Lidar`.
        width, height: pixels. field: rad, the angle that the width covers. reach: (least, most) m of depth.
    """

    words = ("depth",)

    def __init__(
        self, sim: Owner, where: str, position: Any = (0.0, 0.0, 0.0), rotation: Any = (0.0, 0.0, 0.0, 1.0), *,
        width: int = 64, height: int = 48, field: float = 1.2, reach: tuple[float, float] = (0.1, 20.0),
        ignore: Sequence[str] = (), groups: int = EVERYTHING, noise: Noise | None = None, name: str | None = None,
        bank: Bank | None = None,
    ) -> None:  # fmt: skip
        who = f"DepthCamera on {where!r}"
        plane, near = self.describe(who, width, height, field, reach)
        length = np.linalg.norm(plane.reshape(-1, 3), axis=1)
        self._shape, self._units = (height, width), plane
        rays = plane.reshape(-1, 3) / length[:, None], 1.0 / length, (height, width)
        self._aim(sim, where, (position, rotation), rays, near, ignore, groups, noise, name or f"depth {where}", who, bank)

    @staticmethod
    def describe(
        who: str, width: Any = 64, height: Any = 48, field: Any = 1.2, reach: Any = (0.1, 20.0)
    ) -> tuple[np.ndarray, tuple[float, float]]:
        """(height, width, 3) points in front of the camera at depth 1, and the range, checked."""
        w, h = whole(width, who, "width"), whole(height, who, "height")
        if w * h > MOST_RAYS:
            raise SceneError(f"{who}: width × height is at most {MOST_RAYS} pixels, got {w} × {h}")
        focal = 0.5 * w / math.tan(0.5 * angle_within(field, 3.0, who, "field"))
        rows, columns = np.meshgrid((np.arange(h) + 0.5 - 0.5 * h) / focal, (np.arange(w) + 0.5 - 0.5 * w) / focal, indexing="ij")
        return np.stack([np.ones((h, w)), -columns, -rows], -1), pair(reach, who)

    @property
    def depth(self) -> Any:
        """(height, width) m along the camera's axis: ∞ where nothing is, −∞ where something is too near; NaN while it fails."""
        return self._host()
