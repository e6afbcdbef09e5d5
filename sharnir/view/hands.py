"""A hand on the picture: bodies that are pulled with the mouse, and time that is turned back."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np

from sharnir.model import MOTIONS
from sharnir.spatial import quat_conjugate, quat_rotate

# The Simulation and the Viewer; they stand floors above, so that they are not named here.
Owner = Any
EVERY, KEPT = 0.25, 240  # s between pictures of the past, and how many
SOFT = 0.15  # s, in about which a pulled body follows
MOST = 5.0  # times the weight of all that moves (or 9.81 m/s² of it): the bound of a pull
LINE = (230, 126, 34)


class Past:
    """Snapshots of the last minute."""

    def __init__(self, sim: Owner) -> None:
        self._sim = sim
        self._kept: deque[tuple[float, Any]] = deque(maxlen=KEPT)

    def clear(self) -> None:
        """Forget all."""
        self._kept.clear()

    def look(self) -> None:
        """Remember now, if it is time."""
        now = self._sim.time
        if not self._kept or now - self._kept[-1][0] >= EVERY - 1e-9:
            self._kept.append((now, self._sim.snapshot()))

    @property
    def length(self) -> float:
        """s that one can go back."""
        return float(self._sim.time - self._kept[0][0]) if self._kept else 0.0

    def go_back(self, seconds: float) -> bool:
        """Put back the newest snapshot that is at least so old, or the oldest; False where there is none."""
        if not self._kept:
            return False
        wanted = self._sim.time - seconds
        while len(self._kept) > 1 and self._kept[-1][0] > wanted + 1e-9:
            self._kept.pop()
        self._sim.restore(self._kept[-1][1])
        return True


class Pull:
    """A spring between a point of a body and the mouse (shift and the left button), with a bound on its force."""

    def __init__(self, sim: Owner, viewer: Owner) -> None:
        self.sim, self._viewer = sim, viewer
        self.body: str | None = None
        self._arm: Any = np.zeros(3)  # m, of the point, in the body's frame
        self._aim: Any = np.zeros(3)  # m, world
        self.force: Any = np.zeros(3)
        """(3,) N, of the last step."""
        mass = np.asarray(sim.model.bodies.mass.numpy(), float)
        self._mass = mass[:, 0] if mass.ndim == 2 else mass
        motion = sim.model.bodies.motion.numpy()
        self._moving = motion == MOTIONS["dynamic"]
        self.bound = MOST * 9.81 * float(self._mass[self._moving].sum()) if self._moving.any() else 0.0
        """N, the most that a hand pulls with."""
        size = viewer.size
        none = np.zeros((1, 2, 3), np.float32)
        self._line = viewer.server.scene.add_line_segments("/view/0/pull", none, LINE, thickness=0.005 * size, visible=False)
        for name, handle in viewer.handles.items():
            if self._moving[sim.model.body_names[name]] and sim.worlds == 1:
                handle.on_drag("left", modifier="shift")(self._dragged(name))

    @property
    def active(self) -> bool:
        """Whether a hand holds something."""
        return self.body is not None

    def _dragged(self, name: str) -> Any:
        async def drag(event: Any) -> None:
            shift = np.asarray(self._viewer._root.position, float)
            if event.phase == "end":
                self._viewer.post(lambda _: self.let_go())
            elif event.phase == "start" or self.body != name:
                start, end = (np.asarray(p, float) - shift for p in (event.start_position, event.end_position))
                self._viewer.post(lambda _: self.take(name, start, end))
            else:
                self.aim(np.asarray(event.end_position, float) - shift)

        return drag

    def take(self, name: str, point: Any, aim: Any) -> None:
        """Take hold of a body at a point and pull it towards another, both in the world, m."""
        body = self.sim.body(name)
        point, aim = np.asarray(point, float), np.asarray(aim, float)
        if point.shape == aim.shape == (3,) and np.isfinite(point).all() and np.isfinite(aim).all():
            self._arm = quat_rotate(quat_conjugate(body.rotation), point - body.position)
            self._aim = aim
            self.body = name
            self.sim.controls.note("pull", name, None, "operator")

    def aim(self, point: Any) -> None:
        """Pull towards another point, m."""
        if np.shape(point) == (3,) and np.isfinite(point).all():
            self._aim = np.asarray(point, float)

    def let_go(self) -> None:
        """Nothing is held."""
        if self.body is not None:
            self.sim.controls.note("pull", self.body, 0.0, "operator")
        self.body, self.force = None, np.zeros(3)

    def _point(self, sim: Owner, name: str) -> Any:
        body = sim.body(name)
        return body.position + quat_rotate(body.rotation, self._arm)

    def act(self) -> None:
        """The force of the next step: critically damped for the body's mass, within the bound."""
        name = self.body
        if name is None:
            return
        body, point = self.sim.body(name), self._point(self.sim, name)
        mass = max(float(self._mass[self.sim.model.body_names[name]]), 1e-6)
        slow = max(SOFT, 4 * self.sim.dt)  # explicit: the step has to be short beside it
        speed = body.velocity + np.cross(body.spin, point - body.com)
        force = mass * ((self._aim - point) / slow**2 - 2 * speed / slow)
        self.force = force * min(1.0, self.bound / max(float(np.linalg.norm(force)), 1e-300))
        body.apply_force(self.force, at=point)

    def show(self, shown: Owner) -> None:
        """Draw the spring, at the bodies of what is shown."""
        name = self.body
        self._line.visible = name is not None
        if name is not None:
            self._line.points = np.array([[self._point(shown, name), self._aim]], np.float32)
