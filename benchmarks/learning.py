"""World-steps a second of many cart-poles, beside Gymnasium's own vector environments and MuJoCo's, in the same run.

    python -m benchmarks.learning [--worlds 1024] [--rounds 15]

A world-step is one decision of one world: 20 ms of a cart-pole (MuJoCo's InvertedPendulum: 40 ms, in two steps of its own).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np

import sharnir as sh

PEERS = {
    "Gymnasium CartPole-v1, SyncVectorEnv": ("CartPole-v1", "sync"),
    "Gymnasium CartPole-v1, its own vector form (NumPy)": ("CartPole-v1", "vector_entry_point"),
    "MuJoCo InvertedPendulum-v5, SyncVectorEnv": ("InvertedPendulum-v5", "sync"),
}


def stepping(env: Any, seed: int = 1) -> Callable[[], Any]:
    """One decision in all worlds, by actions drawn beforehand."""
    env.reset(seed=seed)
    env.action_space.seed(seed)
    actions = [env.action_space.sample() for _ in range(32)]
    made = [0]

    def step() -> Any:
        made[0] += 1
        return env.step(actions[made[0] % 32])

    return step


Times = dict[str, np.ndarray]  # s of a step: on the wall and of the CPU, ours and the peer's, (rounds,) each


def taking_turns(ours: Callable[[], Any], peer: Callable[[], Any], rounds: int) -> Times:
    """Both in every round, each first in every other one; the first two rounds do not count."""
    times: dict[str, list[float]] = {f"{who} {clock}": [] for who in ("ours", "peer") for clock in ("wall", "cpu")}
    for i in range(rounds + 2):
        for who in ("ours", "peer") if i % 2 else ("peer", "ours"):
            wall, cpu = time.perf_counter(), time.process_time()
            (ours if who == "ours" else peer)()
            times[f"{who} wall"].append(time.perf_counter() - wall)
            times[f"{who} cpu"].append(time.process_time() - cpu)
    return {name: np.array(values[2:]) for name, values in times.items()}


def beside(worlds: int, rounds: int) -> dict[str, Times]:
    """Ours and each peer that is installed."""
    ours = stepping(sh.gym.VectorEnv("CartPole", num_envs=worlds))
    out: dict[str, Times] = {}
    for name, (id_, mode) in PEERS.items():
        try:
            env = gymnasium.make_vec(id_, num_envs=worlds, vectorization_mode=mode)
        except (ImportError, gymnasium.error.Error) as error:
            print(f"{name}: left out ({error})")
            continue
        out[name] = taking_turns(ours, stepping(env), rounds)
        env.close()
    return out


def autoreset(worlds: int, rounds: int) -> tuple[float, float]:
    """A step in which some episodes begin anew over one in which none does, and how many do: CPU time, medians."""
    env = sh.gym.VectorEnv("CartPole", num_envs=worlds)
    step, plain, with_resets, begun = stepping(env), [], [], []
    for _ in range(8 * rounds):
        begins = int(env._over.sum())
        started = time.process_time()
        step()
        (with_resets if begins else plain).append(time.process_time() - started)
        begun.append(begins)
    return float(np.median(with_resets) / np.median(plain)), float(np.mean([n for n in begun if n]))


def main() -> None:
    words = argparse.ArgumentParser(prog="python -m benchmarks.learning", description=__doc__)
    words.add_argument("--worlds", type=int, default=1024)
    words.add_argument("--rounds", type=int, default=15)
    given = words.parse_args()
    for name, times in beside(given.worlds, given.rounds).items():
        ours, peer = (given.worlds / float(np.median(times[f"{who} wall"])) for who in ("ours", "peer"))
        wall, cpu = (float(np.median(times[f"peer {clock}"] / times[f"ours {clock}"])) for clock in ("wall", "cpu"))
        print(f"{name}: {peer:,.0f} world-steps a second, ours {ours:,.0f}: {wall:.3g} × on the wall, {cpu:.3g} × in CPU time")
    ratio, begun = autoreset(given.worlds, given.rounds)
    print(f"a step in which {begun:.0f} episodes begin anew costs {ratio:.2f} × one in which none does")


if __name__ == "__main__":
    main()
