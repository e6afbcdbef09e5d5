"""Proximal policy optimisation (Schulman et al. 2017, arXiv:1707.06347) in one file of NumPy, over the worlds of a simulation.

python examples/learning/ppo.py CartPole --video pole.gif  # balances it for 475 of 500 decisions, in a minute or two on two cores
Two networks, one for the policy and one for the value of a state, learn from what all worlds did in the last `horizon` decisions.
"""

from __future__ import annotations

import argparse
import os
import runpy
import time
from itertools import pairwise

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # for matrices as small as these, threads cost more than they give

import numpy as np
from gymnasium.spaces import Discrete
from gymnasium.vector import AutoresetMode

import sharnir as sh

SOLVED = {"CartPole": 475.0, "Crane": 110.0}  # mean return of an episode at which training may stop


class Net:
    """Layers of tanh, the last one linear; `backward` gives the gradients of what `forward` last did. Adam moves the weights."""

    def __init__(self, sizes: list[int], random: np.random.Generator, last: float) -> None:
        self.weights = []
        for k, (a, b) in enumerate(pairwise(sizes)):
            scale = (last if k == len(sizes) - 2 else 1.0) / np.sqrt(a)
            self.weights += [random.normal(0.0, scale, (a, b)), np.zeros(b)]
        self.moments = [(np.zeros_like(w), np.zeros_like(w)) for w in self.weights]
        self.steps = 0

    def forward(self, x: np.ndarray) -> np.ndarray:
        self.seen = [x]
        for k in range(0, len(self.weights), 2):
            x = x @ self.weights[k] + self.weights[k + 1]
            if k < len(self.weights) - 2:
                x = np.tanh(x)
            self.seen.append(x)
        return x

    def backward(self, slope: np.ndarray) -> list[np.ndarray]:
        """Gradients of the weights from that of the output, (n, outputs)."""
        out: list[np.ndarray] = []
        for k in range(len(self.weights) - 2, -1, -2):
            if k < len(self.weights) - 2:
                slope = slope * (1.0 - self.seen[k // 2 + 1] ** 2)
            out = [self.seen[k // 2].T @ slope, slope.sum(0), *out]
            slope = slope @ self.weights[k].T
        return out

    def step(self, gradients: list[np.ndarray], rate: float, most: float = 0.5) -> None:
        self.steps += 1
        size = np.sqrt(sum(float((g * g).sum()) for g in gradients))
        for w, g, (m, v) in zip(self.weights, gradients, self.moments, strict=True):
            g = g * min(1.0, most / (size + 1e-12))
            m += 0.1 * (g - m)
            v += 0.001 * (g * g - v)
            w -= rate * (m / (1 - 0.9**self.steps)) / (np.sqrt(v / (1 - 0.999**self.steps)) + 1e-8)


class Policy:
    """Chances of actions: of a few choices, or numbers spread about a mean."""

    def __init__(self, env: sh.gym.VectorEnv, random: np.random.Generator) -> None:
        n, space = int(env.single_observation_space.shape[0]), env.single_action_space
        self.random, self.choices = random, isinstance(space, Discrete)
        outputs = int(space.n) if self.choices else int(space.shape[0])
        self.actor, self.critic = Net([n, 64, 64, outputs], random, 0.01), Net([n, 64, 64, 1], random, 1.0)
        self.spread = Net([1, outputs], random, 0.0)  # logarithm of the spread: the bias of one layer
        self.spread.weights[1][:] = -0.5
        self.count, self.mean, self.square = 1e-4, np.zeros(n), np.ones(n)

    def scaled(self, seen: np.ndarray, learn: bool = False) -> np.ndarray:
        """Observations about 0, of size 1, by what was seen so far."""
        if learn:
            self.count += len(seen)
            share = len(seen) / self.count
            self.mean += share * (seen.mean(0) - self.mean)
            self.square += share * ((seen**2).mean(0) - self.square)
        size = np.sqrt(np.maximum(self.square - self.mean**2, 1e-6))
        return np.clip((seen - self.mean) / size, -10.0, 10.0)

    def draw(self, x: np.ndarray, best: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """Actions, and the logarithms of their chances."""
        out = self.actor.forward(x)
        if self.choices:
            noise = 0.0 if best else self.random.gumbel(size=out.shape)
            action = np.argmax(out + noise, 1)
        else:
            action = out + (0.0 if best else np.exp(self.spread.weights[1]) * self.random.normal(size=out.shape))
        return action, self.chance(out, action)[0]

    def chance(self, out: np.ndarray, action: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Logarithms of chances (n,), and their slopes over the actor's outputs and over the spreads (n, outputs)."""
        if self.choices:
            p = np.exp(out - out.max(1, keepdims=True))
            p /= p.sum(1, keepdims=True)
            rows = np.arange(len(out))
            slope = -p
            slope[rows, action] += 1.0
            return np.log(p[rows, action]), slope, np.zeros_like(out)
        spread = np.exp(self.spread.weights[1])
        off = (action - out) / spread
        chance = (-0.5 * off**2 - self.spread.weights[1] - 0.919).sum(1)
        return chance, off / spread, off**2 - 1.0

    def learn(self, batch: dict[str, np.ndarray], rate: float, clip: float) -> None:
        """One step on a part of the data: the clipped objective, and the squared error of the values."""
        out = self.actor.forward(batch["x"])
        now, slope, wide = self.chance(out, batch["action"])
        ratio, gain = np.exp(now - batch["chance"]), batch["gain"]
        used = np.where(gain > 0, ratio < 1 + clip, ratio > 1 - clip)
        push = -(used * ratio * gain / len(gain))[:, None]
        self.actor.step(self.actor.backward(push * slope), rate)
        if not self.choices:
            self.spread.step([np.zeros_like(self.spread.weights[0]), (push * wide).sum(0)], rate)
        off = self.critic.forward(batch["x"])[:, 0] - batch["value"]
        self.critic.step(self.critic.backward((off / len(off))[:, None]), rate)


def train(
    name: str | type, *, worlds: int = 64, horizon: int = 64, rounds: int = 200, seed: int = 1, rate: float = 1e-3,
    clip: float = 0.2, discount: float = 0.99, trace: float = 0.95, epochs: int = 6, parts: int = 8,
    seconds: float = 600.0, tell: bool = True,
) -> tuple[Policy, list[tuple[int, float]]]:  # fmt: skip
    """Train until the stated reward, the rounds or the time are over; returns the policy and its curve (decisions, return)."""
    env, random = sh.gym.VectorEnv(name, num_envs=worlds, autoreset_mode=AutoresetMode.SAME_STEP), np.random.default_rng(seed)
    policy, curve, began = Policy(env, random), [], time.perf_counter()
    seen, sums, returns = env.reset(seed=seed)[0], np.zeros(worlds), []
    for turn in range(rounds):
        data: dict[str, list[np.ndarray]] = {k: [] for k in ("x", "action", "chance", "value", "reward", "end")}
        for _ in range(horizon):
            x = policy.scaled(seen, learn=True)
            (action, chance), value = policy.draw(x), policy.critic.forward(x)[:, 0]
            seen, reward, ended, cut, info = env.step(action)
            sums += reward
            reward = (1 - discount) * reward  # values stay about 1
            if cut.any():  # what would have come is worth what the critic says
                reward[cut] += discount * policy.critic.forward(policy.scaled(info["final_obs"][cut]))[:, 0]
            over = ended | cut
            returns, sums = returns + sums[over].tolist(), np.where(over, 0.0, sums)
            for key, part in zip(data, (x, action, chance, value, reward, over), strict=True):
                data[key].append(part)
        last = policy.critic.forward(policy.scaled(seen))[:, 0]
        gain, ahead = np.zeros((horizon, worlds)), np.zeros(worlds)
        for t in reversed(range(horizon)):  # generalised advantages
            goes_on = 1.0 - data["end"][t]
            ahead = data["reward"][t] + discount * goes_on * last - data["value"][t] + discount * trace * goes_on * ahead
            gain[t], last = ahead, data["value"][t]
        flat = {k: np.concatenate(data[k]) for k in ("x", "action", "chance")}
        flat |= {"value": (gain + data["value"]).ravel(), "gain": ((gain - gain.mean()) / (gain.std() + 1e-8)).ravel()}
        for _ in range(epochs):
            for rows in np.array_split(random.permutation(horizon * worlds), parts):
                policy.learn({k: v[rows] for k, v in flat.items()}, rate * (1 - turn / rounds), clip)
        returns, late = returns[-worlds:], time.perf_counter() - began
        curve.append(((turn + 1) * horizon * worlds, float(np.mean(returns)) if returns else float("nan")))
        if tell and turn % 10 == 9:
            print(f"{curve[-1][0]:9d} decisions, {late:5.0f} s: return {curve[-1][1]:8.2f}")
        if late > seconds or (len(returns) == worlds and curve[-1][1] >= SOLVED.get(name, np.inf)):
            break
    return policy, curve


def evaluate(policy: Policy, name: str | type, worlds: int = 64, seed: int = 1000) -> float:
    """Mean return of one whole episode in each of some worlds, without chance in the actions."""
    env = sh.gym.VectorEnv(name, num_envs=worlds)
    sums, alive, seen = np.zeros(worlds), np.ones(worlds, bool), env.reset(seed=seed)[0]
    for _ in range(env.max_episode_steps):
        seen, reward, ended, cut, _ = env.step(policy.draw(policy.scaled(seen), best=True)[0])
        sums += alive * reward
        alive &= ~(ended | cut)
    return float(sums.mean())


def film(policy: Policy, name: str | type, path: str, seconds: float = 8.0, seed: int = 1000) -> None:
    """A film (.gif or .mp4) of what the policy does."""
    env = sh.gym.Env(name)
    seen = env.reset(seed=seed)[0]
    with env.sim.video(path, fps=12.5, size=(360, 220), **env.task.camera):
        while env.sim.time < seconds:
            seen = env.step(policy.draw(policy.scaled(seen[None]), best=True)[0][0])[0]


if __name__ == "__main__":
    words = argparse.ArgumentParser(description="Train a policy")
    words.add_argument("task", nargs="?", default="CartPole", help=f"{', '.join(sh.gym.TASKS)}, or file.py:Class")
    words.add_argument("--seed", type=int, default=1)
    words.add_argument("--seconds", type=float, default=600.0)
    words.add_argument("--video", metavar="FILE", help="a film of the policy, .gif or .mp4")
    given = words.parse_args()
    task = runpy.run_path(given.task.split(":")[0])[given.task.split(":")[1]] if ":" in given.task else given.task
    trained, _ = train(task, seed=given.seed, seconds=given.seconds)
    print(f"mean return of 64 episodes: {evaluate(trained, task):.2f} (stated: {SOLVED.get(task, 'none')})")
    if given.video:
        film(trained, task, given.video)
