"""What is to be learned, described once: a scene, and functions of array views over any number of worlds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium.spaces import Box

from sharnir.errors import SimulationError
from sharnir.scene import Scene
from sharnir.simulation import Simulation


class Worlds:
    """The worlds of a simulation as arrays whose first axis is the world, of one world too.

    On a GPU they are PyTorch tensors on the simulation's own memory (DLPack), without a copy to the host; `xp` is NumPy or torch.
    """

    def __init__(self, sim: Simulation) -> None:
        self.sim, self.count = sim, sim.worlds
        self.on_gpu = not sim._on_cpu
        self.xp: Any = np
        if self.on_gpu:
            from sharnir.view import need

            self.xp = need("torch", "learn")
        self._bodies: dict[str, int] = dict(sim.model.body_names)
        self._effort: np.ndarray | None = None

    def rows(self, values: Any) -> Any:
        """An array of the simulation with the world axis in front."""
        if self.on_gpu:
            values = self.xp.from_dlpack(values)
        return values[None] if self.count == 1 else values

    @property
    def q(self) -> Any:
        """(worlds, coordinates) of all joints, m and rad."""
        return self.rows(self.sim.q)

    @property
    def qd(self) -> Any:
        """(worlds, speeds) of all joints, m/s and rad/s."""
        return self.rows(self.sim.qd)

    def position(self, body: str) -> Any:
        """(worlds, 3) m, of a body's centre of mass."""
        return self._body("position", body)

    def rotation(self, body: str) -> Any:
        """(worlds, 4) quaternion (x, y, z, w) of a body's frame."""
        return self._body("rotation", body)

    def velocity(self, body: str) -> Any:
        """(worlds, 3) m/s, of a body's centre of mass."""
        return self._body("velocity", body)

    def spin(self, body: str) -> Any:
        """(worlds, 3) rad/s."""
        return self._body("spin", body)

    def _body(self, what: str, body: str) -> Any:
        if body not in self._bodies:
            raise SimulationError(f"no body is named {body!r}; known: {', '.join(map(repr, self._bodies))}")
        if self.on_gpu:
            return self.rows(getattr(self.sim, f"body_{what}"))[:, self._bodies[body]]
        host = self.sim._moving if what in ("position", "rotation") else self.sim._settled()
        return getattr(host, what)[self._bodies[body]]  # (worlds, …)

    def columns(self, *parts: Any) -> Any:
        """(worlds, n) from values (worlds,) and (worlds, k), side by side."""
        parts = tuple(p[:, None] if p.ndim == 1 else p for p in parts)
        return self.xp.concatenate(parts, 1)

    def set_effort(self, columns: Any, values: Any) -> None:
        """Forces (N, N·m) on free axes of joints, (worlds, columns), `columns` being indices into `qd`; until changed."""
        if self.on_gpu:
            self.rows(self.sim.effort)[:, columns] = values
            return
        if self._effort is None:
            self._effort = np.zeros((self.count, self.sim.model.speeds))
        self._effort[:, columns] = values
        self.sim.effort = self._effort

    def set_target(self, what: str, columns: Any, values: Any) -> None:
        """What drives are told ("position", "velocity", "torque" or "voltage"), (worlds, columns)."""
        self.rows(getattr(self.sim.target, what))[:, columns] = values

    def target(self, what: str, columns: Any) -> Any:
        """(worlds, columns) what drives are told now; a copy."""
        return self.rows(getattr(self.sim.target, what))[:, columns]


class Task:
    """A task; a subclass says what differs. Everything is written for all worlds at once, arrays being (worlds, …)."""

    dt: float = 0.02
    """Step of the simulation, s."""
    frame_skip: int = 1
    """Steps a decision."""
    episode: int = 500
    """Decisions after which an episode is truncated."""
    options: Mapping[str, Any] = {}
    """Keywords of the Simulation (`solver`, `iterations`, …)."""
    spread: Mapping[str, float] = {}
    """By how much parameters vary from world to world (`Simulation.randomise`); drawn when all worlds are reset."""
    camera: Mapping[str, Any] = {}
    """`eye` and `target` of pictures, m."""
    follow: str | None = None
    """A body with which the camera moves."""

    def scene(self) -> Scene:
        """The scene of one world."""
        raise NotImplementedError(f"task {type(self).__name__}: scene() returns the Scene of one world")

    def prepare(self, w: Worlds) -> None:
        """Called once, after the simulation was made: look up indices, make arrays of goals."""

    def observation_space(self, w: Worlds) -> Box:
        """Of one world: as many numbers as `observe` returns, unbounded if this is not overridden."""
        size = int(self.observe(w).shape[1])
        return Box(-np.inf, np.inf, (size,), np.float32)

    def action_space(self, w: Worlds) -> Any:
        """Of one world: Box(low, high, (n,)), or Discrete."""
        raise NotImplementedError(f"task {type(self).__name__}: action_space() returns the space of one world's action")

    def observe(self, w: Worlds) -> Any:
        """(worlds, n)"""
        raise NotImplementedError(f"task {type(self).__name__}: observe() returns (worlds, n)")

    def act(self, w: Worlds, action: Any) -> None:
        """Write what an action commands, (worlds, n), clipped to its space; before the steps of a decision."""
        raise NotImplementedError(f"task {type(self).__name__}: act() writes commands")

    def reward(self, w: Worlds, action: Any) -> Any:
        """(worlds,) after the steps of a decision."""
        raise NotImplementedError(f"task {type(self).__name__}: reward() returns (worlds,)")

    def terminated(self, w: Worlds) -> Any:
        """(worlds,) whether an episode has come to its end: the goal, or what must not be."""
        return w.xp.zeros(w.count, dtype=bool)

    def start(self, w: Worlds, random: np.random.Generator, worlds: np.ndarray) -> None:
        """Vary the start of some worlds (indices), which have just been reset; draw goals."""


def limits(sim: Simulation, pattern: str) -> tuple[np.ndarray, np.ndarray]:
    """Low and high ends (n,) of the limits of some joints, as in `sim.index(pattern).qd`; infinite where there are none."""
    at, axes = sim.index(pattern).qd, sim.model.axes
    low, high = (np.array(getattr(axes, name).numpy(), float)[at, 0] for name in ("lower", "upper"))
    return np.where(low > high, -np.inf, low), np.where(low > high, np.inf, high)
