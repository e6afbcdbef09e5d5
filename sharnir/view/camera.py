"""Cameras: that ride with a body or look along a frame, and that see all of a scene from a side."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from sharnir.core.spatial import quat_conjugate, quat_rotate
from sharnir.sensors import Frame
from sharnir.view.stage import one_of, wide

# The Simulation; it stands a floor above, so that it is not named here.
Owner = Any
LOOKING_AHEAD = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])  # of a frame: eye, what is looked at, up
VIEW_ROOM = 1.15  # around what is seen
FOV = math.radians(45)  # of height
VIEWS = {
    "all": (0.45, -1.0, 0.38), "front": (1.0, 0.0, 0.12), "side": (0.0, -1.0, 0.12), "top": (0.0, -1e-3, 1.0),
}  # fmt: skip
"""Directions from a scene to the camera: front is seen from ahead (x), side from the right."""


def view_of(name: str, corners: np.ndarray, aspect: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """(3,) m, where a camera stands that sees all of a box (2, 3), and (3,) m, what it looks at.

    On a page that is higher than wide it stands further off, and the box is in the upper half: the panel lies over the lower.
    """
    one_of("a camera", name, VIEWS)
    extent = corners[1] - corners[0]
    way = np.array(VIEWS[name])
    if name == "all" and not wide(extent):
        way = np.array([1.0, -0.45, 0.38])
    middle = corners.mean(0)
    half = math.atan(math.tan(FOV / 2) * min(aspect, 1.0))
    reach = VIEW_ROOM * 0.5 * max(float(np.linalg.norm(extent)), 1e-3) / math.tan(half)
    way = way / np.linalg.norm(way)
    right = np.cross((0.0, 0.0, 1.0), way)
    up = np.cross(way, right / np.linalg.norm(right))
    middle = middle - min(2 * (1 - min(aspect, 1.0)), 1.0) * 0.5 * reach * math.tan(FOV / 2) * up
    return middle + way * reach, middle


class Views:
    """Puts the cameras of pages where all is seen, from a side; `corners()` are (2, 3) m, of what there is to see now."""

    def __init__(self, server: Any, corners: Callable[[], np.ndarray], name: str, first: np.ndarray) -> None:
        self._server, self._corners, self._first, self._name = server, corners, first, name
        camera, size = server.initial_camera, float(np.linalg.norm(first[1] - first[0]))
        at, middle = view_of(name, first)
        camera.fov, camera.near, camera.far = FOV, 0.005 * size, 200 * size
        camera.position, camera.look_at = tuple(at), tuple(middle)
        server.on_client_connect(self._begin)

    def _begin(self, client: Any) -> None:
        """A page that is higher than wide, as on a phone, sees all as well."""
        if client.camera.aspect < 1.0:
            self._put(client, *view_of(self._name, self._first, client.camera.aspect))

    @staticmethod
    def _put(client: Any, at: np.ndarray, middle: np.ndarray) -> None:
        with client.atomic():
            client.camera.up_direction = (0.0, 0.0, 1.0)
            client.camera.position, client.camera.look_at = at, middle

    def look_from(self, name: str, client: Any = None) -> None:
        """Put the camera of a page, or of all pages and of those to come, so that all is seen."""
        corners = self._corners()
        at, middle = view_of(name, corners)
        if client is None:
            self._name, self._first = name, corners
            camera = self._server.initial_camera
            camera.position, camera.look_at = tuple(at), tuple(middle)
        for one in self._server.get_clients().values() if client is None else (client,):
            self._put(one, *view_of(name, corners, one.camera.aspect))


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
                self._seats[number] = LOOKING_AHEAD if self.where in self._sim.model.frames else own
            eye, at, up = quat_rotate(np.tile(turn, (3, 1)), self._seats[number])
            with client.atomic():
                camera.up_direction, camera.position = up, place + eye
                camera.look_at = place + at
