"""What is to be learned, described once: a scene, and functions of array views over any number of worlds."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

import numpy as np
import warp as wp
from gymnasium.spaces import Box

from sharnir.core.renamed import Former
from sharnir.errors import SceneWarning, SimulationError
from sharnir.runtime import arrays
from sharnir.runtime.simulation import Simulation
from sharnir.scene.scene import Scene

ARRAY_KINDS = ("numpy", "torch")
METHOD_SYNONYMS = {"ended": "terminated", "done": "terminated", "is_done": "terminated", "reset": "start", "step": "act"}
"""What other libraries call the methods of a task."""


class Worlds:
    """The worlds of a simulation as arrays whose first axis is the world, of one world too.

    Args:
        arrays: "numpy" (the default on the CPU) or "torch" (on a GPU always): what all arrays are. Tensors stand on the
            simulation's own memory, on the CPU as on a GPU; nothing is copied.

    `xp` is NumPy or torch, `tensors` tells whether it is torch, `on_gpu` whether the simulation runs on a GPU.
    """

    def __init__(self, sim: Simulation, arrays: str | None = None) -> None:
        self.sim, self.count = sim, sim.worlds
        self.on_gpu = not wp.get_device(sim.model.device).is_cpu
        if arrays not in (None, *ARRAY_KINDS):
            raise SimulationError(f"arrays is one of {', '.join(map(repr, ARRAY_KINDS))} or None, got {arrays!r}")
        if self.on_gpu and arrays == "numpy":
            raise SimulationError(f"arrays='numpy' is for the CPU; on {sim.model.device!r} they are tensors, 'torch'")
        self.tensors = self.on_gpu or arrays == "torch"
        self.xp: Any = np
        if self.tensors:
            from sharnir.core.extras import need

            self.xp = need("torch")
            self._device = wp.device_to_torch(wp.get_device(sim.model.device))
        self._bodies: dict[str, int] = dict(sim.model.body_names)
        self._effort: np.ndarray | None = None
        self._shared: dict[str, tuple[Any, Any]] = {}  # arrays of the simulation, and the tensors on their memory

    def array(self, values: Any) -> Any:
        """Values as an array of this kind, on the simulation's device."""
        return self.xp.as_tensor(values, device=self._device) if self.tensors else np.asarray(values)

    def _tensor(self, struct: Any, name: str) -> Any:
        """An array [item, world] of the state or the commands as a tensor (worlds, items) on the same memory."""
        array = getattr(struct, name)
        known = self._shared.get(name)
        if known is None or known[0] is not array:
            known = self._shared[name] = array, wp.to_torch(array, requires_grad=False).transpose(0, 1)
        return known[1]

    def _state(self, name: str) -> Any:
        """An array of the state as it is now, as a tensor."""
        return self._tensor(arrays.on_device(self.sim, name), name)

    def rows(self, values: Any) -> Any:
        """A NumPy array of the simulation with the world axis in front."""
        return values[None] if self.count == 1 else values

    @property
    def q(self) -> Any:
        """(worlds, coordinates) of all joints, m and rad."""
        if self.tensors:
            return self._state("q")
        return self.rows(self.sim.q)

    @property
    def qd(self) -> Any:
        """(worlds, speeds) of all joints, m/s and rad/s."""
        if self.tensors:
            return self._state("qd")
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

    spin = Former("angular_velocity")

    def angular_velocity(self, body: str) -> Any:
        """(worlds, 3) rad/s."""
        return self._body("spin", body)

    def _body(self, what: str, body: str) -> Any:
        if body not in self._bodies:
            raise SimulationError(f"no body is named {body!r}; available: {', '.join(map(repr, self._bodies))}")
        if self.tensors:
            return self._state(what)[:, self._bodies[body]]
        return arrays.on_host(self.sim, what)[self._bodies[body]]  # (worlds, …)

    def columns(self, *parts: Any) -> Any:
        """(worlds, n) from values (worlds,) and (worlds, k), side by side."""
        parts = tuple(p[:, None] if p.ndim == 1 else p for p in parts)
        return self.xp.concatenate(parts, 1)

    def set_effort(self, columns: Any, values: Any) -> None:
        """Forces (N, N·m) on free axes of joints, (worlds, columns), `columns` being indices into `qd`; until changed."""
        if self.tensors:
            target = self._tensor(self.sim.commands, "joint_force")
            target[:, columns] = self.array(values).to(target.dtype)
            arrays.efforts_written(self.sim)
            return
        if self._effort is None:
            self._effort = np.zeros((self.count, self.sim.model.speeds))
        self._effort[:, columns] = values
        self.sim.effort = self._effort

    def set_target(self, what: str, columns: Any, values: Any) -> None:
        """Targets of drives ("position", "velocity", "torque" or "voltage"), (worlds, columns)."""
        target = self._targets(what)
        target[:, columns] = self.array(values).to(target.dtype) if self.tensors else values

    def target(self, what: str, columns: Any) -> Any:
        """(worlds, columns) targets of drives now; a copy."""
        return self._targets(what)[:, columns]

    def _targets(self, what: str) -> Any:
        """(worlds, speeds) targets of all drives; to be written."""
        given = getattr(self.sim.target, what)  # from now on the simulation looks whether it was written
        if self.tensors:
            return self._tensor(self.sim.commands, "voltage" if what == "voltage" else f"servo_{what}")
        return self.rows(given)


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
    """By how much parameters vary from world to world (`Simulation.randomize`); drawn when all worlds are reset."""
    camera: Mapping[str, Any] = {}
    """`eye` and `target` of pictures, m."""
    follow: str | None = None
    """A body with which the camera moves."""

    def __init_subclass__(cls, **keywords: Any) -> None:
        """Warn of a method that nothing calls, where its name is nearly, or in other libraries, that of one of a task."""
        super().__init_subclass__(**keywords)
        known = [name for name in vars(Task) if not name.startswith("_")]
        for name, value in vars(cls).items():
            if callable(value) and not name.startswith("_") and not hasattr(Task, name):
                near = METHOD_SYNONYMS.get(name) or next(iter(get_close_matches(name, known, 1, 0.8)), "")
                if near and near not in vars(cls):
                    warnings.warn(f"task {cls.__name__}: a task has no method {name!r}; is {near!r} meant?", SceneWarning, 2)

    def scene(self) -> Scene:
        """The scene of one world."""
        raise NotImplementedError(f"task {type(self).__name__}: scene() returns the Scene of one world")

    def prepare(self, w: Worlds) -> None:
        """Called once, after the simulation was made: look up indices, make arrays of goals."""

    def observation_space(self, w: Worlds) -> Box:
        """Of one world: as many numbers as `observe` returns, unbounded if this is not overridden."""
        return Box(-np.inf, np.inf, observed(self, w).shape[1:], np.float32)

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
        return w.array(np.zeros(w.count, bool))

    def start(self, w: Worlds, random: np.random.Generator, worlds: np.ndarray) -> None:
        """Vary the start of some worlds (indices), which have just been reset; draw goals."""


def limits(sim: Simulation, pattern: str) -> tuple[np.ndarray, np.ndarray]:
    """Low and high ends (n,) of the limits of some joints, as in `sim.index(pattern).qd`; infinite where there are none."""
    at, axes = sim.index(pattern).qd, sim.model.axes
    low, high = (np.array(getattr(axes, name).numpy(), float)[at, 0] for name in ("lower", "upper"))
    return np.where(low > high, -np.inf, low), np.where(low > high, np.inf, high)


def observed(task: Task, w: Worlds) -> Any:
    """What a task observes, (worlds, …)."""
    seen = task.observe(w)
    shape = tuple(getattr(seen, "shape", ()))
    if len(shape) < 2 or shape[0] != w.count:
        got = f"shape {shape}" if hasattr(seen, "shape") else repr(seen)
        raise SimulationError(
            f"task {type(task).__name__}: observe() returns an array (worlds, n), here ({w.count}, n), got {got}"
        )
    return seen
