"""Learning with Gymnasium: a task that is described once, as one environment (`Env`) or over many worlds (`VectorEnv`).

env = sh.gym.VectorEnv("CartPole", num_envs=1024)
observation, info = env.reset(seed=1)
observation, reward, terminated, truncated, info = env.step(env.action_space.sample())

The same under Gymnasium's own names, once this package was imported: `gymnasium.make_vec("sharnir/CartPole-v0", num_envs=64)`.
"""

from __future__ import annotations

from sharnir.core.extras import need

need("gymnasium", "learn")

from sharnir.learn.env import Env, VectorEnv, register_all, task_of  # noqa: E402
from sharnir.learn.task import Task, Worlds  # noqa: E402
from sharnir.learn.tasks import TASKS  # noqa: E402

__all__ = ["TASKS", "Env", "Task", "VectorEnv", "Worlds", "task_of"]

register_all()
