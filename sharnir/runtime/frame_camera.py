"""Takes frames (`sharnir.io.frames`) of a running simulation."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from sharnir.errors import SimulationError
from sharnir.io.frames import Frame, Layout
from sharnir.runtime.measures import poses

# The Simulation; it stands a floor above, so that it is not named here.
Owner = Any


class Camera:
    """Takes frames of one world of a simulation; `layout` names what they hold. The world itself is body 0 of the model and is
    left out.
    """

    def __init__(self, sim: Owner, world: int = 0) -> None:
        if not (isinstance(world, int) and 0 <= world < sim.worlds):
            raise SimulationError(f"frames: world is a number from 0 to {sim.worlds - 1}, got {world!r}")
        self._sim, self._world = sim, world
        ropes = sim.model.ropes
        self._ropes = [] if ropes is None else [(int(ropes.first[k]), bool(ropes.flip[k])) for k in ropes.names.values()]
        names = sorted(sim.model.body_names, key=sim.model.body_names.__getitem__)
        self.layout = Layout(tuple(names[1:]), () if ropes is None else tuple(ropes.names))
        self._none = np.zeros((0, 3)), np.zeros(0, int)

    def take(self, step: int = 0, paused: bool = False, channels: np.ndarray | None = None) -> Frame:
        """Where everything is now."""
        sim, w = self._sim, self._world
        place, turn, _ = poses(sim, w)
        points, counts = self._none
        if self._ropes:
            position, used = sim._rope_moving.position, sim._rope_moving.segments
            rows = []
            for k, (first, flipped) in enumerate(self._ropes):
                own = position[first : first + int(used[k, w]) + 1, w]
                rows.append(own[::-1] if flipped else own)
            points, counts = np.concatenate(rows).astype(float), np.array([len(own) for own in rows])
        values = np.zeros(0) if channels is None else channels
        return Frame(sim.time, step, time.time(), place[1:], turn[1:], points, counts, values, paused)
