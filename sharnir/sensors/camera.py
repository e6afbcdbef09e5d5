"""A camera on a body: a rendered colour image."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from sharnir.core.spatial import quat_to_matrix
from sharnir.sensors.fans import DepthCamera
from sharnir.sensors.frames import Frame, Owner


class Camera(Frame):
    """A colour image from a frame on a body, of the first world.

    It looks along the x of its frame; columns go to the right (its −y), rows down (its −z), as those of `DepthCamera`. The
    picture shows shapes as they look, ropes, cables and springs, lit by a sun that casts shadows, as a film does.

    Args:
        where, position, rotation: as of `Frame`. width, height: pixels. field: rad, the angle that the width covers.
    """

    __slots__ = ("_focal", "_tracer")

    def __init__(
        self, sim: Owner, where: str, position: Any = (0.0, 0.0, 0.0), rotation: Any = (0.0, 0.0, 0.0, 1.0), *,
        width: int = 320, height: int = 240, field: float = 1.2,
    ) -> None:  # fmt: skip
        from sharnir.view.tracer import Tracer

        super().__init__(sim, where, position, rotation)
        DepthCamera.describe(f"Camera on {where!r}", width, height, field)
        self._tracer, self._focal = Tracer(sim, (int(width), int(height))), 0.5 * width / math.tan(0.5 * field)

    @property
    def rgb(self) -> np.ndarray:
        """(height, width, 3) of 0 to 255, drawn when it is asked for."""
        from sharnir.view.video import Camera as Lens

        eye = np.reshape(self.position, (-1, 3))[0]
        x, y, z = quat_to_matrix(np.reshape(self.rotation, (-1, 4))[0]).T
        lens = Lens(eye, eye + x, self._tracer.size)
        lens.axes, lens.focal = np.array([-y, z, x]), self._focal
        return self._tracer.render(lens)
