"""Bitwise: two runs, one thread and two, a world of a batch and the same world alone."""

import numpy as np
import pytest

import sharnir as sh

FIELDS = ("position", "rotation", "velocity", "momentum", "joint_force", "joint_torque")


def chain_scene():
    scene = sh.Scene()
    last = scene.world
    for i in range(6):
        body = scene.add_body(f"b{i}", sh.Box(0.1, 0.02, 0.03), mass=1.0, position=(0.1 * i + 0.05, 0, 0))
        scene.add_joint(f"j{i}", sh.Spherical() if i % 2 else sh.Revolute("y"), last, body, position=(0.1 * i, 0, 0))
        last = body
    return scene


def speeds(worlds):
    return np.linspace(0, 2, worlds)[:, None] * np.array([0.1, 0.5, 1.0])


def run(worlds, threads=None, pick=None):
    sim = sh.Simulation(chain_scene(), 1e-3, worlds=worlds, threads=threads, solver="sequential")
    sim.body("b5").velocity = speeds(8) if pick is None else speeds(8)[pick]
    sim.step(300)
    return {f: getattr(sim.state, f).numpy().copy() for f in FIELDS}


def test_two_runs_are_bitwise_equal():
    a, b = run(8), run(8)
    assert all(np.array_equal(a[f], b[f]) for f in FIELDS)


def test_one_thread_and_two_are_bitwise_equal():
    a, b = run(8, threads=1), run(8, threads=2)
    assert all(np.array_equal(a[f], b[f]) for f in FIELDS)


@pytest.mark.parametrize("world", [0, 3, 7])
def test_a_world_of_a_batch_equals_the_same_world_alone(world):
    a, b = run(8), run(1, pick=world)
    assert all(np.array_equal(a[f][:, world], b[f][:, 0]) for f in FIELDS)


def test_a_restored_run_is_bitwise_equal():
    sim = sh.Simulation(chain_scene(), 1e-3, solver="sequential")
    sim.step(100)
    saved = sim.snapshot()
    sim.step(200)
    end = sim.snapshot()
    sim.restore(saved)
    sim.step(150)
    for _ in range(50):
        sim.step()
    again = sim.snapshot()
    assert all(np.array_equal(end[k], again[k]) for k in end)
