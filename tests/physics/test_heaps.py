"""Heaps of free bodies with `solver="direct"`: they rest, fall asleep, gain no energy and need little memory."""

import time
from typing import Any

import numpy as np
import pytest

import sharnir as sh
from sharnir.engine.tree.contact_runtime import MOST_ENTRIES, entries_of, room_of


def heap_of(shape: Any, count: int, apart: float, mass: float = 1.0, **how: Any) -> sh.Scene:
    """Bodies above the ground, in layers of 3 × 3, slightly out of place."""
    scene, rng = sh.Scene(), np.random.default_rng(1)
    scene.add_ground()
    for i in range(count):
        place = np.array([i % 3, i // 3 % 3, i // 9]) * apart + [0, 0, apart] + 0.1 * apart * rng.uniform(-1, 1, 3)
        turn = rng.normal(size=4)
        scene.add_body(f"b{i}", shape, mass=mass, position=place, rotation=turn / np.linalg.norm(turn), **how)
    return scene


def pile(masses: Any) -> sh.Scene:
    """Boxes on each other, the lowest one first."""
    scene = sh.Scene()
    scene.add_ground()
    for i, mass in enumerate(masses):
        scene.add_body(f"b{i}", sh.Box(0.5, 0.5, 0.5), mass=mass, position=(0, 0, 0.25 + 0.5 * i))
    return scene


@pytest.mark.parametrize("masses", [[1.0] * 10, [1.0, 1e4], [10.0 ** (i % 5) for i in range(10)]])
def test_piles_rest_and_fall_asleep(masses):
    sim = sh.Simulation(pile(masses), 5e-3, solver="direct")
    sim.run(2.0)
    moved = max(abs(sim.body(f"b{i}").position[2] - 0.25 - 0.5 * i) for i in range(len(masses)))
    print(f"moved by {moved:.1e} m")
    assert moved < 5e-7 and all(sim.body(f"b{i}").asleep for i in range(len(masses)))
    assert sim.health().not_converged == 0


def test_a_heap_of_capsules_gains_no_energy():
    sim = sh.Simulation(heap_of(sh.Capsule(0.1, 0.25), 27, 0.5), 4e-3, solver="direct", on_divergence="ignore")
    start = most = sim.energy().total
    for _ in range(400):
        sim.step()
        most = max(most, sim.energy().total)
    print(f"most energy: {most / start - 1:.1e} above the start of {start:.0f} J; at the end {sim.energy().total:.1f} J")
    assert most < start * (1 + 1e-6)


def test_a_heap_beside_a_mechanism_rests():
    """Islands of free bodies are swept, those of mechanisms are solved for at once."""
    scene = pile([1.0] * 3)
    for i in range(3):
        at = (2.0, 0, 0.15 + 0.3 * i)
        scene.add_body(f"link {i}", sh.Box(0.1, 0.1, 0.28), mass=1.0, position=at)
        if i:
            scene.add_joint(f"j{i}", sh.Revolute("y", friction=0.3), f"link {i - 1}", f"link {i}", position=(2.0, 0, 0.3 * i))
    for i in range(30):
        scene.add_body(
            f"ball {i}", sh.Sphere(0.1), mass=1.0, position=(-2 + 0.21 * (i % 5), 0.21 * (i // 5 % 3), 0.1 + 0.22 * (i // 15))
        )
    sim = sh.Simulation(scene, 4e-3)
    start = sim.energy().total
    sim.run(1.0)
    assert sim.energy().total < start and np.abs(sim.body("b2").velocity).max() < 1e-6
    assert min(sim.body(f"ball {i}").position[2] for i in range(30)) > 0.098


def test_room_does_not_grow_with_the_square_of_bodies():
    assert entries_of(60) == 60 * 61 // 2 and entries_of(6000) == MOST_ENTRIES
    # points, axes, links on a path, moments at points, numbers on a path, joint speeds
    rooms = [room_of(16 * links, links, links, 0, 6 * links, 6 * links) for links in (50, 100, 200)]
    chains = [room["responses"] / room["speeds"] for room in rooms]
    assert max(chains) < 1.1 * min(chains)


@pytest.mark.slow
def test_a_heap_costs_about_what_sequential_impulses_cost():
    took = {}
    for solver in ("sequential", "direct"):
        sim = sh.Simulation(heap_of(sh.Capsule(0.1, 0.25), 27, 0.5), 4e-3, solver=solver, on_divergence="ignore")
        sim.step(100)
        start = time.process_time()
        for _ in range(300):
            sim.step()
        took[solver] = time.process_time() - start
    print(f"27 capsules: {took['direct'] / took['sequential']:.2f} of sequential")
    assert took["direct"] < 2.0 * took["sequential"]
