"""Kinematic bodies that follow a function of time: before each step they get the velocity that takes them there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from math import atan2, inf, sqrt
from typing import Any

import numpy as np

from sharnir.core.spatial import quat_conjugate, quat_log, quat_multiply, quat_rotate
from sharnir.model.descriptions import path_pose
from sharnir.runtime.arrays import memory

# The Simulation; it stands a floor above, so that it is not named here.
Owner = Any
LENGTH_TOLERANCE = 2e-3  # by which the square of a quaternion's length may differ from 1


class Follower:
    """One body on its path."""

    __slots__ = ("_com", "_i", "_name", "_path", "_quick", "_sim")

    def __init__(self, sim: Owner, i: int, name: str, path: Any) -> None:
        self._sim, self._i, self._name, self._path = sim, i, name, path
        self._com = tuple(float(x) for x in sim.model.com[i])
        self._quick = None
        if sim._on_cpu and sim.worlds == 1:
            s = sim._moving
            self._quick = tuple(memory(getattr(s, f)[i, 0]) for f in ("position", "rotation", "velocity", "spin"))

    def lead(self, t: float, dt: float) -> None:
        """Give the body the velocities that lead it in a step to where its path is at time t."""
        if self._quick is None:
            self._lead_worlds(t, dt)
            return
        value = self._path(t)
        try:
            place, turn = value if len(value) == 2 else (value, None)
            x, y, z = place
            a, b, c, w = (0.0, 0.0, 0.0, 1.0) if turn is None else turn
            size = a * a + b * b + c * c + w * w
            fine = -inf < x < inf and -inf < y < inf and -inf < z < inf and -LENGTH_TOLERANCE < size - 1.0 < LENGTH_TOLERANCE
        except (TypeError, ValueError):
            fine = False
        if not fine:
            (x, y, z), (a, b, c, w) = (part.tolist() for part in path_pose(lambda _: value, t, self._name))
            size = 1.0
        old, turned, velocity, spin = self._quick
        if turn is not None and size != 1.0:
            scale = 1.0 / sqrt(size)
            a, b, c, w = a * scale, b * scale, c * scale, w * scale
        i, j, k = self._com
        if i != 0.0 or j != 0.0 or k != 0.0:  # v + w t + r × t, t = 2 r × v
            u, v, s = 2.0 * (b * k - c * j), 2.0 * (c * i - a * k), 2.0 * (a * j - b * i)
            x, y, z = x + i + w * u + b * s - c * v, y + j + w * v + c * u - a * s, z + k + w * s + a * v - b * u
        d, e, f = old
        velocity[0], velocity[1], velocity[2] = (x - d) / dt, (y - e) / dt, (z - f) / dt
        d, e, f, g = turned
        if a == d and b == e and c == f and w == g:
            spin[0] = spin[1] = spin[2] = 0.0
            return
        p, q, r, s = (  # the turn from the old to the new
            a * g - w * d - b * f + c * e, b * g - w * e - c * d + a * f, c * g - w * f - a * e + b * d,
            w * g + a * d + b * e + c * f,
        )  # fmt: skip
        sine = sqrt(p * p + q * q + r * r)
        rate = (2.0 * atan2(sine, s) / sine if s >= 0 else 2.0 * atan2(-sine, -s) / sine) / dt if sine > 1e-12 else 2.0 / dt
        spin[0], spin[1], spin[2] = p * rate, q * rate, r * rate

    def _lead_worlds(self, t: float, dt: float) -> None:
        """The same in several worlds, or on a GPU."""
        sim, i = self._sim, self._i
        place, turn = path_pose(self._path, t, self._name)
        old, now = sim._moving.position[i].astype(float), sim._moving.rotation[i].astype(float)
        new = np.broadcast_to(turn, now.shape)
        com = place + quat_rotate(new, np.broadcast_to(self._com, (len(new), 3)))
        sim._moving.put("velocity", i, (com - old) / dt)
        sim._moving.put("spin", i, quat_log(quat_multiply(new, quat_conjugate(now))) / dt)


@contextmanager
def without_paths(sim: Owner) -> Iterator[None]:
    """Steps in which no body is led along its path, and no air pushes: a recording has what they commanded."""
    followers, sim._paths = sim._paths, []
    try:
        yield
    finally:
        sim._paths = followers
