"""Surroundings of a scene: sun, sky, and ground with squares of known size, in a light and a dark theme."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from sharnir.core.extras import need
from sharnir.errors import SimulationError
from sharnir.view.pieces import Colour
from sharnir.view.tracer import SUN

DOME = 45.0  # radius of the sky, in sizes of the scene
SQUARES = 5  # small squares along the side of a large one


@dataclass(frozen=True)
class Theme:
    """Colours (sRGB, 0 to 255) and strengths of lights."""

    zenith: Colour
    haze: Colour  # of the sky at the horizon, and of what is below it
    ground: Colour
    cell: Colour  # lines between small squares
    section: Colour  # lines between large ones
    scale: Colour
    sun: float
    fill: float
    surroundings: float
    shadow: float  # opacity of shadows on the ground


THEMES = {
    "light": Theme(
        (58, 120, 200), (226, 235, 243), (205, 208, 204), (188, 192, 190), (140, 146, 150), (40, 46, 54), 1.9, 0.45, 0.25, 0.45
    ),
    "dark": Theme((10, 14, 22), (38, 44, 54), (46, 50, 56), (58, 63, 70), (92, 100, 110), (225, 230, 236), 2.0, 0.35, 0.18, 0.6),
}


def square(size: float) -> float:
    """Side of the large squares of the ground, m: a power of ten, 1 m for scenes of 1.3 to 12 m."""
    return float(10.0 ** round(math.log10(size / 4)))


def dome(radius: float, theme: Theme) -> Any:
    """A sky that is seen from inside (`trimesh.Trimesh`): it glows by itself, haze at the horizon and below."""
    trimesh = need("trimesh", "view")
    image = need("PIL.Image", "view")
    rows, around = 32, 48
    height = np.sin(np.linspace(-0.5 * math.pi, 0.5 * math.pi, 256))
    share = (np.clip(height, 0.0, 1.0) ** 0.35)[::-1, None]
    colours = (1 - share) * np.array(theme.haze) + share * np.array(theme.zenith)
    picture = image.fromarray(np.repeat(colours[:, None], 4, 1).round().astype(np.uint8))
    v, u = (a.ravel() for a in np.meshgrid(np.linspace(0, 1, rows), np.linspace(0, 1, around), indexing="ij"))
    up, turn = (v - 0.5) * math.pi, 2 * math.pi * u
    points = radius * np.stack([np.cos(up) * np.cos(turn), np.cos(up) * np.sin(turn), np.sin(up)], 1)
    i = (np.arange(rows - 1)[:, None] * around + np.arange(around - 1)).ravel()
    faces = np.concatenate([np.stack([i, i + around, i + 1], 1), np.stack([i + 1, i + around, i + around + 1], 1)])
    look = trimesh.visual.material.PBRMaterial(
        baseColorFactor=[0, 0, 0, 255], emissiveFactor=[1.0, 1.0, 1.0], emissiveTexture=picture, metallicFactor=0.0,
        roughnessFactor=1.0,
    )  # fmt: skip
    return trimesh.Trimesh(points, faces, visual=trimesh.visual.TextureVisuals(np.stack([u, v], 1), material=look), process=False)


class Stage:
    """Sun, sky and ground of a page; a scene of this size (m, corner to corner) moves about `middle`.

    Args:
        server: of the pages.
        size: of the picture of one world, m; the squares of the ground go by it.
        corners: (2, 3) m, of the box around all worlds.
        planes: the scene's own grounds; without one there is a floor beneath.
    """

    def __init__(self, server: Any, size: float, corners: np.ndarray, planes: list[Any], theme: str = "light") -> None:
        self._server = server
        self._low, self._high = corners
        self._middle = 0.5 * (self._low + self._high)
        self._far = float(np.linalg.norm(self._high - self._low))
        self._planes = planes
        self.section = square(size)
        """Side of the large squares of the ground, m."""
        self.theme = ""
        server.scene.set_up_direction("+z")
        server.scene.configure_default_lights(False)
        self.set_theme(theme)

    @property
    def scale(self) -> str:
        """How large the squares of the ground are, in words."""
        return f"{self.section:g} m, small ones {self.section / SQUARES:g} m"

    @property
    def floor(self) -> float:
        """Height of the ground, m: where the scene has none, z = 0 where it stands on that, else a little below it."""
        level = [float(plane.position[2]) for plane in self._planes if _is_level(plane)]
        if level:
            return max(level)
        on_zero = -1e-3 * self._far <= self._low[2] <= 0.2 * self._far
        return 0.0 if on_zero else float(self._low[2]) - 0.06 * self._far

    def set_theme(self, theme: str) -> None:
        """Light or dark: sky, ground, lights and the panel."""
        one_of("a theme", theme, THEMES)
        if theme == self.theme:
            return
        self.theme, look = theme, THEMES[theme]
        self._server.gui.configure_theme(
            show_logo=False, show_share_button=False, brand_color=(47, 109, 181), dark_mode=theme == "dark"
        )
        scene = self._server.scene
        scene.configure_environment_map("studio", environment_intensity=look.surroundings)
        scene.add_light_directional(
            "/stage/sun", color=(255, 246, 232), intensity=look.sun, cast_shadow=True,
            position=tuple(self._middle + SUN * 3 * self._far),
        )  # fmt: skip
        scene.add_light_hemisphere(
            "/stage/light of the sky", sky_color=(214, 228, 246), ground_color=(150, 146, 138), intensity=look.fill
        )
        sky = dome(DOME * self._far, look)
        scene.add_mesh_trimesh("/stage/sky", sky, cast_shadow=False, receive_shadow=False, position=tuple(self._middle))
        self._add_ground(look)
        self._add_scale(look)

    def _add_ground(self, look: Theme) -> None:
        """Squares on the scene's own grounds, or on a floor beneath the scene."""
        scene, side = self._server.scene, self.section
        x, y = np.round(self._middle[:2] / side) * side
        lines: dict[str, Any] = {
            "infinite_grid": True, "cell_size": side / SQUARES, "section_size": side, "cell_color": look.cell,
            "section_color": look.section, "fade_distance": 8 * self._far, "shadow_opacity": look.shadow,
            "plane_color": look.ground, "plane_opacity": 1.0,
        }  # fmt: skip
        for k, plane in enumerate(self._planes):
            at = (float(x), float(y), float(plane.position[2])) if _is_level(plane) else tuple(plane.position)
            scene.add_grid(f"/view/ground {k}", wxyz=plane.rotation[[3, 0, 1, 2]], position=at, **lines)
        if not self._planes:
            scene.add_grid("/view/floor", position=(float(x), float(y), self.floor), **lines)

    def _add_scale(self, look: Theme) -> None:
        """A bar along a large square in front of the scene, with its length."""
        scene, side = self._server.scene, self.section
        z = self.floor + 0.004 * side
        if wide(self._high - self._low):
            start = np.array([math.floor(self._low[0] / side) * side, math.floor(self._low[1] / side) * side, z])
            along, across = np.eye(3)[:2]
        else:
            start = np.array([math.ceil(self._high[0] / side) * side, math.floor(self._low[1] / side) * side, z])
            across, along = np.eye(3)[:2]
        ends = np.array([start, start + side * along])
        ticks = [ends] + [np.array([end - 0.03 * side * across, end + 0.03 * side * across]) for end in ends]
        scene.add_line_segments("/view/scale", np.array(ticks, np.float32), look.scale, thickness=0.003 * self._far)
        scene.add_label("/view/scale/length", f"{side:g} m", position=tuple(ends.mean(0)), anchor="bottom-center")


def one_of(what: str, word: Any, known: Iterable[str]) -> None:
    """Refuse a word that is not among those known."""
    if word not in tuple(known):
        raise SimulationError(f"view: {what} is one of {', '.join(map(repr, known))}, got {word!r}")


def wide(extent: np.ndarray) -> bool:
    """Whether a box is longer along x than along y: it is first seen from its long side."""
    return bool(extent[0] >= extent[1])


def _is_level(plane: Any) -> bool:
    """Whether a ground is level."""
    return bool(np.abs(np.asarray(plane.rotation)[:2]).max() < 1e-9)
