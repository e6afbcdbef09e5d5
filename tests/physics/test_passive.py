"""Random passive mechanisms: limits, friction and dampers take energy in every step and never give any."""

import numpy as np
import pytest

import sharnir as sh
from sharnir.core.spatial import quat_exp

WORLDS, STEPS = 50, 300


def random_actions(rng, joint):
    """Keywords for a joint: some of limits, friction, damping."""
    out = {}
    if rng.random() < 0.6:
        out["friction"] = sh.Friction(
            static=(f := rng.uniform(0.01, 0.5)), dynamic=f * rng.uniform(0.5, 1), load=rng.choice([0, 0.01])
        )
    if rng.random() < 0.4:
        out["damping"] = rng.uniform(0.0, 0.2)
    if rng.random() < 0.6:
        if joint is sh.Spherical:
            out["limit"] = (
                sh.Cardan(x=(-0.5, 0.7), y=(-0.4, 0.4), z=(-1, 1)) if rng.random() < 0.5 else sh.SwingTwist(0.6, (-0.5, 0.5))
            )
        else:
            out["limit"] = (-rng.uniform(0.1, 0.8), rng.uniform(0.1, 0.8))
    return out


def mechanism(seed, passive):
    """A chain, a tree or a loop of 3 to 7 bodies on random joints; `passive` adds what takes energy."""
    rng = np.random.default_rng(seed)
    scene = sh.Scene(gravity=(0, 0, -9.81 * rng.integers(0, 2)))
    shape, n = rng.choice(["chain", "tree", "loop"]), int(rng.integers(3, 8))
    last = scene.world
    for i in range(n):
        body = scene.add_body(
            f"b{i}", sh.Box(*rng.uniform(0.05, 0.3, 3)), mass=rng.uniform(0.3, 2), position=(0.3 * i, 0, 0),
            rotation=quat_exp(rng.normal(size=3)),
        )  # fmt: skip
        parent = last if shape != "tree" or i == 0 else f"b{rng.integers(0, i)}"
        kind = rng.choice([sh.Revolute, sh.Spherical, sh.Universal, sh.Prismatic, sh.Cylindrical, sh.Planar])
        actions = random_actions(rng, kind)
        joint = kind(**(actions if passive else {}))
        scene.add_joint(f"j{i}", joint, parent, body, position=(0.3 * i - 0.15, 0, 0), rotation=quat_exp(rng.normal(size=3)))
        last = body
    if shape == "loop":
        scene.add_joint("close", sh.Distance(), scene.world, last, position=[(0.3 * n, 0.5, 0), (0.3 * n - 0.2, 0.1, 0)])
    speeds = [(np.random.default_rng([seed, i]).normal(size=(WORLDS, 3)) * 0.5) for i in range(2 * n)]
    return scene, speeds


def energies(seed, passive, worlds=WORLDS, steps=STEPS):
    """Energy over the steps, (steps, worlds), and the least energy dissipated by a joint in a step."""
    scene, speeds = mechanism(seed, passive)
    sim = sh.Simulation(scene, 1e-3, worlds=worlds, solver="sequential")
    bodies = [n for n in sim.model.body_names if n != "world"]
    for i, name in enumerate(bodies):
        sim.body(name).velocity, sim.body(name).angular_velocity = speeds[2 * i][:worlds], speeds[2 * i + 1][:worlds]
    sim.step(10)  # speeds that the joints do not allow are taken off
    out, least = [sim.energy().total], 0.0
    for _ in range(steps // 5):
        for _ in range(5):
            sim.step()
            least = min(least, float(sim.state.dissipated.numpy().min()))
        out.append(sim.energy().total)
    assert not sim.failed.any() and np.all(np.isfinite(out))
    return np.array(out), least


def check_seeds(seeds):
    worst, least = -np.inf, 0.0
    for seed in seeds:
        free, _ = energies(seed, passive=False)
        held, taken = energies(seed, passive=True)
        scale = np.abs(free - free[0]).max(0) + np.abs(free[0]) + 0.1
        excess = (held.max(0) - held[0]) - (free.max(0) - free[0])
        worst, least = max(worst, float((excess / scale).max())), min(least, taken)
    print(
        f"{len(seeds) * WORLDS} mechanisms × {STEPS} steps: above the start by {worst:.1e} of the scale more than the free twin"
    )
    print(f"least energy taken in a step: {least:.1e} J")
    assert worst < 2e-3
    assert least >= -1e-15


@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.slow) for part in range(1, 10))])
def test_passive_mechanisms_lose_energy(part):
    check_seeds(range(2 * part, 2 * part + 2))  # 10 × 2 mechanisms × 50 starts = 1000 seeds


@pytest.mark.slow
@pytest.mark.parametrize("part", range(20))
def test_passive_mechanisms_lose_energy_at_length(part):
    check_seeds(range(1000 + 100 * part, 1100 + 100 * part))  # 10⁵ seeds
