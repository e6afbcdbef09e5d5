"""Environments of Gymnasium 1.x over a task: one world, or many that step at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete
from gymnasium.utils import seeding
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

from sharnir.errors import SimulationError
from sharnir.learn.task import Task, Worlds, observed
from sharnir.learn.tasks import TASKS
from sharnir.runtime.simulation import Simulation

PIXELS = (480, 360)


def task_of(given: str | Task | type[Task]) -> Task:
    """A task from its name, its class, or as it is."""
    if isinstance(given, str):
        if given not in TASKS:
            raise SimulationError(f"there is no task {given!r}; available: {', '.join(TASKS)}")
        return TASKS[given]()
    made = given() if isinstance(given, type) and issubclass(given, Task) else given
    if not isinstance(made, Task):
        raise SimulationError(f"task is a name ({', '.join(TASKS)}), a Task or a subclass of it, got {given!r}")
    return made


class Stage:
    """A task in its simulation: what one environment and many share."""

    def __init__(
        self, task: Task, worlds: int, device: str, spread: Mapping[str, float] | None, render_mode: str | None,
        arrays: str | None = None,
    ) -> None:  # fmt: skip
        if render_mode not in (None, "rgb_array"):
            raise SimulationError(f"render_mode is None or 'rgb_array', got {render_mode!r}")
        self.task, self.spread = task, dict(task.spread if spread is None else spread)
        self.sim = Simulation(task.scene(), task.dt, worlds=worlds, device=device, **task.options)
        self.worlds = Worlds(self.sim, arrays)
        self.every = np.arange(worlds)
        self._frames: Any = None
        task.prepare(self.worlds)
        task.start(self.worlds, np.random.default_rng(0), self.every)
        self.observation_space, self.action_space = task.observation_space(self.worlds), task.action_space(self.worlds)
        if not isinstance(self.action_space, Box | Discrete):
            raise SimulationError(f"task {type(task).__name__}: an action space is a Box or Discrete, got {self.action_space!r}")

    def begin(self, random: np.random.Generator, worlds: np.ndarray, vary: bool) -> None:
        """Put some worlds to a start; where an environment was seeded, draw its parameters."""
        if vary and self.spread:
            self.sim.randomize(int(random.integers(2**31)), **self.spread)
        self.sim.reset(worlds=None if len(worlds) == self.sim.worlds else worlds)
        self.task.start(self.worlds, random, worlds)

    def go(self, action: Any) -> None:
        """The steps of a decision."""
        self.task.act(self.worlds, action)
        self.sim.step(self.task.frame_skip)

    def observe(self) -> Any:
        """(worlds, n) in the precision of the space."""
        seen = observed(self.task, self.worlds)
        return seen.astype(np.float32) if isinstance(seen, np.ndarray) else seen.float()

    def picture(self) -> np.ndarray:
        """(height, width, 3) of the first world."""
        if self._frames is None:
            from sharnir.view.video import Video

            self._frames = Video(self.sim, "unwritten.gif", size=PIXELS, **self.task.camera)
            self._eye = self._frames.camera.eye.copy()
            self._from = None if self.task.follow is None else self._seat()
        if self._from is not None:
            self._frames.camera.eye = self._eye + self._seat() - self._from
        return np.array(self._frames.frame(), np.uint8)

    def _seat(self) -> np.ndarray:
        place = np.atleast_2d(self.sim.body(str(self.task.follow)).position)[0]
        return np.asarray(place * (1.0, 1.0, 0.0))


class Staged:
    """What environments of one world and of many have in common."""

    _stage: Stage

    @property
    def sim(self) -> Simulation:
        """The simulation beneath, with as many worlds as there are environments."""
        return self._stage.sim

    @property
    def worlds(self) -> Worlds:
        """Its arrays with the world in front, as a task reads and writes them."""
        return self._stage.worlds

    @property
    def spread(self) -> dict[str, float]:
        """By how much parameters vary; from the next reset of all worlds on."""
        return self._stage.spread

    @spread.setter
    def spread(self, value: Mapping[str, float]) -> None:
        self._stage.spread = dict(value)


class Env(Staged, gymnasium.Env[Any, Any]):
    """One world of a task.

    Args:
        task: a name, a `Task` or its class. device: "cpu" or "cuda:0".
        spread: in place of the task's, by how much parameters vary (`Simulation.randomize`); drawn at each reset. Assign it
            (`env.unwrapped.spread`) to make a task harder as learning goes on.
        render_mode: None or "rgb_array".

    A step that the solver refuses ends the episode, and `info["failed"]` has the reason.
    """

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": 50}  # noqa: RUF012  as in the base

    def __init__(
        self, task: str | Task | type[Task], *, render_mode: str | None = None, device: str = "cpu", spread: Any = None
    ) -> None:
        self.task = task_of(task)
        self._stage = Stage(self.task, 1, device, spread, render_mode)
        self.render_mode = render_mode
        self.observation_space, self.action_space = self._stage.observation_space, self._stage.action_space
        self.metadata = {**self.metadata, "render_fps": round(1.0 / (self.task.dt * self.task.frame_skip))}

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """A new episode."""
        super().reset(seed=seed)
        self._stage.begin(self.np_random, self._stage.every, vary=True)
        return host(self._stage.observe()[0]), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """One decision: observation, reward, terminated, truncated (by Gymnasium's TimeLimit alone), info."""
        stage, info = self._stage, {}
        given = checked(self.action_space, np.asarray(action)[None], stage.worlds)
        failed = False
        try:
            stage.go(given)
        except SimulationError as error:
            failed, info["failed"] = True, str(error)
        reward = float(self.task.reward(stage.worlds, given)[0])
        ended = failed or bool(self.task.terminated(stage.worlds)[0])
        return host(stage.observe()[0]), reward, ended, False, info

    def render(self) -> Any:
        """(height, width, 3) where render_mode is "rgb_array"."""
        return self._stage.picture() if self.render_mode == "rgb_array" else None


class VectorEnv(Staged, gymnasium.vector.VectorEnv[Any, Any, Any]):
    """Many worlds of a task in one simulation.

    Args:
        task: a name, a `Task` or its class. num_envs: worlds. device: "cpu" or "cuda:0".
        arrays: what actions are and what comes back: "numpy" (the default on the CPU) or "torch", tensors on the device (on a GPU
            always).
        max_episode_steps: decisions, the task's own if None.
        autoreset_mode: Gymnasium's: NEXT_STEP (the step after an episode's end begins the next), SAME_STEP (the observation is
            that of the next start, the last one is in `info["final_obs"]`), DISABLED (`reset(options={"reset_mask": …})`).
        spread: in place of the task's, by how much parameters vary from world to world; drawn when `reset` is called for all.
        render_mode: None or "rgb_array": a picture of the first world.

    A world that the solver cannot go on with is terminated, and marked in `info["failed"]`.
    """

    def __init__(
        self, task: str | Task | type[Task], num_envs: int = 1, *, max_episode_steps: int | None = None,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP, device: str = "cpu", spread: Any = None,
        render_mode: str | None = None, arrays: str | None = None,
    ) -> None:  # fmt: skip
        self.task = task_of(task)
        if not isinstance(num_envs, int) or num_envs < 1:
            raise SimulationError(f"num_envs is a whole number of at least 1, got {num_envs!r}")
        self._stage = Stage(self.task, num_envs, device, spread, render_mode, arrays)
        self.num_envs, self.render_mode = num_envs, render_mode
        self.single_observation_space, self.single_action_space = self._stage.observation_space, self._stage.action_space
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.max_episode_steps = self.task.episode if max_episode_steps is None else int(max_episode_steps)
        self._mode = AutoresetMode(autoreset_mode)
        rate = round(1.0 / (self.task.dt * self.task.frame_skip))
        self.metadata = {"render_modes": ["rgb_array"], "render_fps": rate, "autoreset_mode": self._mode}
        self._made = np.zeros(num_envs, int)  # decisions in this episode
        self._over = np.zeros(num_envs, bool)  # worlds whose episode has ended, and that are to begin anew

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """New episodes in all worlds, or in those of `options["reset_mask"]`, (num_envs,) of bool."""
        if seed is not None:
            self._np_random, self._np_random_seed = seeding.np_random(seed)
        mask = np.ones(self.num_envs, bool) if options is None else np.asarray(options.get("reset_mask", True))
        mask = np.broadcast_to(mask, (self.num_envs,)) if mask.ndim == 0 else mask
        if mask.shape != (self.num_envs,) or mask.dtype != bool or not mask.any():
            raise SimulationError(f"reset_mask is {self.num_envs} booleans of which one at least is True, got {mask!r}")
        self._begin(mask, vary=bool(mask.all()))
        return self._stage.observe(), {}

    def _begin(self, mask: np.ndarray, vary: bool = False) -> None:
        self._stage.begin(self.np_random, np.flatnonzero(mask), vary)
        self._made[mask], self._over[mask] = 0, False

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """One decision in every world: observations (num_envs, n), rewards, terminated, truncated (num_envs,), infos."""
        stage, task, w = self._stage, self.task, self._stage.worlds
        begins = self._over.copy()
        if self._mode is AutoresetMode.DISABLED and begins.any():
            raise SimulationError(
                f"the episode of world {int(np.flatnonzero(begins)[0])} has ended, and autoreset is off: "
                'call reset(options={"reset_mask": …}) first'
            )
        given = checked(self.single_action_space, actions, w)
        stage.go(given)
        reward, ended = task.reward(w, given), task.terminated(w)
        failed = self.sim.failed
        self._made += 1
        done, cut, failing = host(ended) | failed, self._made >= self.max_episode_steps, bool(failed.any())
        if begins.any():  # what was stepped there has no meaning: the next episode begins
            self._begin(begins)
            done, cut = done & ~begins, cut & ~begins
            reward = w.xp.where(w.array(begins), 0.0 * reward, reward)
        cut = cut & ~done
        self._over = done | cut
        infos: dict[str, Any] = {"failed": failed, "_failed": failed.copy()} if failing else {}
        seen = stage.observe()
        if self._mode is AutoresetMode.SAME_STEP and self._over.any():
            infos |= {"final_obs": seen, "_final_obs": self._over.copy(), "final_info": {}, "_final_info": self._over.copy()}
            self._begin(self._over.copy())
            seen = stage.observe()
        return seen, reward, w.array(done), w.array(cut), infos

    def render(self) -> Any:
        """A tuple with one picture (height, width, 3), of the first world, where render_mode is "rgb_array"."""
        return (self._stage.picture(),) if self.render_mode == "rgb_array" else None


def host(values: Any) -> np.ndarray:
    """A NumPy array of a NumPy array or a tensor."""
    return values if isinstance(values, np.ndarray) else np.asarray(values.cpu())


def checked(space: Any, action: Any, w: Worlds) -> Any:
    """Actions (worlds, …) of a space, as arrays of the worlds: numbers beyond the range are clipped to it, others are refused."""
    given = w.array(action)
    if isinstance(space, Box):
        shape = (w.count, *space.shape)
        if tuple(given.shape) != shape or not bool(w.xp.isfinite(given).all()):
            raise SimulationError(f"an action is finite numbers {shape}, got {action!r}")
        return w.xp.clip(given, w.array(space.low), w.array(space.high))
    whole = given.dtype.kind in "iu" if isinstance(given, np.ndarray) else given.dtype in (w.xp.int32, w.xp.int64)
    if tuple(given.shape) != (w.count,) or not whole or bool(((given < 0) | (given >= int(space.n))).any()):
        many = "s" * (w.count > 1)
        raise SimulationError(f"an action is {w.count} whole number{many} from 0 to {int(space.n) - 1}, got {action!r}")
    return given


def register_all() -> None:
    """Make the tasks known to Gymnasium as "sharnir/<Task>-v0"."""
    for name, task in TASKS.items():
        if f"sharnir/{name}-v0" not in gymnasium.registry:
            gymnasium.register(
                f"sharnir/{name}-v0", entry_point="sharnir.learn:Env", vector_entry_point="sharnir.learn:VectorEnv",
                max_episode_steps=task.episode, kwargs={"task": name},
            )  # fmt: skip
