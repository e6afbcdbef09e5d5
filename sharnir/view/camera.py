"""A camera that rides with a body, as it looks when it is put there, or that looks along a frame of the scene."""

from __future__ import annotations

from typing import Any

import numpy as np

from sharnir.core.spatial import quat_conjugate, quat_rotate
from sharnir.sensors import Frame

# The Simulation; it stands a floor above, so that it is not named here.
Owner = Any
AHEAD = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])  # of a frame: eye, what is looked at, up


class Ride:
    """Moves the cameras of all pages along with a body or a frame; of several worlds, those of the first."""

    def __init__(self, server: Any, sim: Owner) -> None:
        self._server, self._sim = server, sim
        self.where: str | None = None
        """The body or frame, if there is one."""
        self._frame: Frame | None = None
        self._seats: dict[int, np.ndarray] = {}  # of each page: eye, what is looked at, up, in the body's axes

    def choose(self, where: str | None) -> None:
        """Ride with a body or frame, or with none."""
        self._frame = None if where is None else Frame(self._sim, where)
        self.where, self._seats = where, {}

    def show(self, shift: np.ndarray) -> None:
        """Move the cameras to where the body is now; the picture is shifted by so much, m."""
        if self._frame is None:
            return
        place, turn = (np.reshape(x, (-1, n))[0] for x, n in ((self._frame.position, 3), (self._frame.rotation, 4)))
        place = place + shift
        for number, client in self._server.get_clients().items():
            camera = client.camera
            if number not in self._seats:
                points = np.array([camera.position - place, camera.look_at - place, camera.up_direction], float)
                own = quat_rotate(np.tile(quat_conjugate(turn), (3, 1)), points)
                self._seats[number] = AHEAD if self.where in self._sim.model.frames else own
            eye, at, up = quat_rotate(np.tile(turn, (3, 1)), self._seats[number])
            with client.atomic():
                camera.up_direction, camera.position = up, place + eye
                camera.look_at = place + at
