"""Conserved quantities: momenta of free bodies and free mechanisms, the energy of a tumbling body, gaps that fall with dt²."""

import numpy as np
import pytest
from conftest import example_by

import sharnir as sh
from sharnir.core.spatial import quat_exp


def test_free_bodies_keep_their_momenta_for_a_hundred_thousand_steps():
    rng = np.random.default_rng(0)
    scene = sh.Scene(gravity=(0, 0, 0))
    for i in range(3):
        scene.add_body(
            f"body{i}", sh.Box(0.1, 0.3, 0.5), mass=1.0 + i, angular_velocity=rng.normal(size=3), velocity=rng.normal(size=3),
            rotation=quat_exp(rng.normal(size=3)), position=rng.normal(size=3),
        )  # fmt: skip
    sim = sh.Simulation(scene, 1e-3, solver="sequential")
    start, L = sim.momentum(), sim.state.momentum.numpy().copy()
    sim.step(100_000)
    now = sim.momentum()
    linear = np.abs(now.linear - start.linear).max() / np.linalg.norm(start.linear)
    own = np.abs(sim.state.momentum.numpy() - L).max()
    angular = np.abs(now.angular - start.angular).max() / np.linalg.norm(start.angular)
    print(f"10⁵ steps: linear momentum {linear:.1e}, spin momentum {own:.1e}, angular momentum about the origin {angular:.1e}")
    assert linear < 1e-12 and own == 0.0 and angular < 1e-12


@pytest.mark.parametrize(("solver", "limit"), [("direct", 9e-13), ("sequential", 1.8e-9)])
def test_energy_of_a_tumbling_body(solver, limit):
    sim = example_by("tumbling_body", 1e-3, solver)
    start, worst = sim.energy().kinetic, 0.0
    for _ in range(10_000):
        sim.step(10)
        worst = max(worst, abs(sim.energy().kinetic / start - 1))
    print(f"tumbling body, {solver}, 100 s at 1 ms: energy within {worst:.1e}")
    assert worst < limit


@pytest.mark.parametrize("speed", [50.0, 150.0, 250.0])
def test_a_fast_rotor_keeps_its_energy_at_a_long_step(speed):
    scene = sh.Scene(gravity=(0, 0, 0))
    scene.add_body("rotor", mass=1.0, inertia=(1, 1.1, 1.9), angular_velocity=(3.0, 0.5, speed))
    sim = sh.Simulation(scene, 0.01, solver="sequential")
    start = sim.energy().kinetic
    sim.step(1000)
    print(f"|ω| dt = {speed * 0.01}: energy {sim.energy().kinetic / start - 1:+.1e}")
    assert abs(sim.energy().kinetic / start - 1) < 1e-6


def free_chain(dt):
    scene = sh.Scene(gravity=(0, 0, 0))
    rng = np.random.default_rng(3)
    for i in range(5):
        scene.add_body(
            f"b{i}", sh.Box(0.2, 0.05, 0.05), mass=1.0, position=(0.2 * i, 0, 0), angular_velocity=rng.normal(size=3) * 3
        )
        if i:
            scene.add_joint(f"j{i}", sh.Spherical(), f"b{i - 1}", f"b{i}", position=(0.2 * i - 0.1, 0, 0))
    return sh.Simulation(scene, dt, solver="sequential")


def test_a_free_mechanism_keeps_its_momenta():
    drift = []
    for dt in (2e-3, 1e-3):
        sim = free_chain(dt)
        start = sim.momentum()
        sim.run(10.0)
        now = sim.momentum()
        linear = np.abs(now.linear - start.linear).max()
        drift.append(np.abs(now.angular - start.angular).max() / np.linalg.norm(start.angular))
        print(f"free chain, 10 s at {dt * 1e3:g} ms: linear momentum {linear:.1e}, angular momentum {drift[-1]:.1e}")
        assert linear < 1e-12
    # gaps are closed by moving bodies, which turns x × p by the third-order gap: it vanishes with dt
    assert drift[1] < 1e-4 and drift[1] < 0.5 * drift[0]


@pytest.mark.parametrize(
    ("name", "link", "limit", "every"),
    [("double_pendulum", 0.5, 1.2e-6, 0.02), ("four_bar", 0.3, 1.3e-5, 0.02), ("chain", 0.1, 7e-5, 1e-3)],
)
def test_gaps_stay_small_and_fall_with_the_square_of_dt(name, link, limit, every):
    """Those of a whipping chain, seen at every step, are for a moment six times as large as what is seen every 20 ms."""
    worst = []
    for dt in (1e-3, 5e-4):
        sim = example_by(name, dt, "sequential")
        gaps = []
        for _ in range(round(10 / every)):
            sim.run(every)
            gaps.append(sim.constraint_error().max() / link)
        worst.append((max(gaps), float(np.mean(gaps))))
        print(f"{name}, 10 s at {dt * 1e3:g} ms: gap at most {max(gaps):.1e} of a link, {np.mean(gaps):.1e} on average")
    assert worst[0][0] < limit
    assert worst[1][0] < worst[0][0] / 3 and worst[1][1] < worst[0][1] / 3.5
