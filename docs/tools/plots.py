"""Plots for the documentation, from the examples: python docs/tools/plots.py [hitch] [door] [training].

Angles of the trailer's hitch beside its limits (`krt100_trailer`), the three phases of the pushed door (`mf4_door`), the curve
and the film of a training (`learning/ppo`). They are kept beside the text, as the pictures are; needs matplotlib.
"""

import importlib.util
import pathlib
import sys
import warnings
from collections.abc import Callable
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import sharnir as sh
from sharnir.cli import examples

IMAGES = pathlib.Path(__file__).parents[1] / "images"
BLUE, RED, GREY = "#2a6fbb", "#c8453b", "#8a8f98"


def watch(name: str, until: float, look: Callable[[Any, sh.Simulation], Any]) -> tuple[Any, np.ndarray, np.ndarray]:
    """An example, run with its own control: its module, times (s) and what was looked at after every step."""
    module = examples.load(name)
    sim, times, seen = module.make(), [], []
    while sim.time < until:
        module.control(sim)
        sim.step()
        times.append(sim.time)
        seen.append(look(module, sim))
    return module, np.array(times), np.array(seen)


def save(figure: Any, name: str) -> pathlib.Path:
    figure.tight_layout()
    figure.savefig(IMAGES / name, dpi=110)
    plt.close(figure)
    return IMAGES / name


def hitch() -> pathlib.Path:
    """Angles about x, y and z, each between its limits."""
    module, t, seen = watch("krt100_trailer", 13.0, lambda module, sim: module.ROBOT.angles(sim))
    limits = np.degrees(module.LIMITS)
    figure, rows = plt.subplots(3, 1, figsize=(7.5, 5.0), sharex=True)
    for row, angle, limit, axis in zip(rows, np.degrees(seen).T, limits, ("x, roll", "y, pitch", "z, yaw"), strict=True):
        row.axhspan(-limit, limit, color=GREY, alpha=0.12)
        for edge in (-limit, limit):
            row.axhline(edge, color=RED, linewidth=1.0)
        row.plot(t, angle, color=BLUE, linewidth=1.2)
        row.set_ylabel(f"about {axis} (°)")
        row.set_ylim(-1.2 * limit, 1.2 * limit)
    rows[-1].set_xlabel("time (s)")
    rows[0].set_title(f"hitch of KRT100-MP, limits ±{limits[0]:.0f}°, ±{limits[1]:.0f}°, ±{limits[2]:.0f}°: turns, then the hill")
    return save(figure, "hitch_angles.png")


def door() -> pathlib.Path:
    """Speed and angle of the door: pushed, slowed by its friction alone, at rest."""
    module, t, seen = watch("mf4_door", 10.0, lambda module, sim: (sim.joint("hinge").position, sim.joint("hinge").velocity))
    angle, speed = seen.T
    stands = next(k for k in np.flatnonzero(speed == 0.0) if k > np.argmax(speed))
    rate, dt = -module.FRICTION / module.INERTIA, t[1] - t[0]
    let_go = stands - 2
    while let_go > 0 and abs((speed[let_go] - speed[let_go - 1]) / dt / rate - 1) < 0.05:
        let_go -= 1
    pushed = int(np.flatnonzero(speed > 0)[0])
    shown = slice(max(0, pushed - 100), min(len(t), stands + 200))
    figure, rows = plt.subplots(2, 1, figsize=(7.5, 4.4), sharex=True)
    rows[0].plot(t[shown], speed[shown], color=BLUE, linewidth=1.2)
    free = slice(let_go, stands + 1)
    rows[0].plot(t[free], speed[let_go] + rate * (t[free] - t[let_go]), "--", color=RED, linewidth=1.2, label="slope −M/J")
    rows[0].set_ylabel("speed (rad/s)")
    rows[0].legend(frameon=False)
    rows[1].plot(t[shown], np.degrees(angle[shown]), color=BLUE, linewidth=1.2)
    rows[1].set_ylabel("angle (°)")
    rows[1].set_xlabel("time (s)")
    ends = (t[pushed], t[let_go], t[stands], t[shown][-1])
    for row in rows:
        for at in ends[:3]:
            row.axvline(at, color=GREY, linewidth=0.8)
    for a, b, word in zip(ends[:-1], ends[1:], ("pushed", "slows", "stands"), strict=True):
        rows[1].annotate(word, (0.5 * (a + b), 0.06), xycoords=("data", "axes fraction"), ha="center", color=GREY)
    rows[0].set_title(f"door pushed by MF-4: let go at {np.degrees(angle[let_go]):.1f}°, stands at {np.degrees(angle[-1]):.1f}°")
    return save(figure, "door_phases.png")


def training() -> pathlib.Path:
    """Return of an episode over decisions, three seeds; and a film of the last policy."""
    path = pathlib.Path(__file__).parents[2] / "examples" / "learning" / "ppo.py"
    spec = importlib.util.spec_from_file_location("ppo", path)
    assert spec is not None and spec.loader is not None
    ppo = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(ppo)
    figure, axes = plt.subplots(figsize=(7.5, 3.2))
    for seed, color in ((1, BLUE), (2, RED), (3, GREY)):
        policy, curve = ppo.train("CartPole", seed=seed, tell=False)
        decisions, returns = np.array(curve).T
        axes.plot(1e-3 * decisions, returns, color=color, linewidth=1.2, label=f"seed {seed}")
        print(f"seed {seed}: {int(decisions[-1])} decisions, {ppo.evaluate(policy, 'CartPole'):.0f} of 500 without chance")
    axes.axhline(ppo.SOLVED["CartPole"], color=GREY, linewidth=0.8, linestyle=":")
    axes.set_xlabel("decisions (thousands)")
    axes.set_ylabel("return of an episode")
    axes.legend(frameon=False)
    ppo.film(policy, "CartPole", str(IMAGES / "training.gif"))
    return save(figure, "training.png")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for one in (hitch, door, training):
        if one.__name__ in sys.argv[1:] or len(sys.argv) == 1:
            print(one())
