"""Scenes of 0.1 mm and of 10 km, of 1 mg and of 1000 t, land and come to rest alike: tolerances follow the scene."""

import numpy as np
import pytest

import sharnir as sh

SCALES = ((1e-4, 1.0), (1e-4, 1e-6), (1e-2, 1e-6), (1.0, 1e6), (1e2, 1e6), (1e4, 1.0), (1e4, 1e6))  # m, kg


def chain(length, mass):
    """Three capsules on hinges with friction and limits, dropped."""
    scene = sh.Scene()
    scene.add_ground()
    last = None
    for i in range(3):
        capsule = sh.Capsule(0.08 * length, 0.3 * length, rotation=sh.about("y", np.pi / 2))
        rough = sh.Material(friction=0.6)
        body = scene.add_body(f"b{i}", capsule, mass=mass, position=(0.5 * length * i, 0, 0.8 * length), material=rough)
        if last is not None:
            hinge = sh.Revolute("y", limit=(-1.2, 1.2), friction=0.05 * mass * 9.81 * length)
            scene.add_joint(f"j{i}", hinge, last, body, position=(0.5 * length * i - 0.25 * length, 0, 0.8 * length))
        last = body
    return scene


def stack(length, mass):
    """Three boxes that stand a little aside of each other, dropped."""
    scene = sh.Scene()
    scene.add_ground()
    for i in range(3):
        place = 0.1 * i * length, 0, (0.5 + 1.01 * i) * length
        scene.add_body(f"b{i}", sh.Box(length, length, length), mass=mass * (1 + i), position=place)
    return scene


def land(make, length, mass):
    """Places after 200 steps, in lengths of the scene; steps are as long as it falls slowly."""
    sim = sh.Simulation(make(length, mass), 5e-3 * length**0.5, solver="direct")
    for _ in range(200):
        assert sim.step().converged
    return np.array([sim.body(name).position for name in sim.bodies if name != "world"]) / length


@pytest.mark.parametrize("make", [chain, stack])
def test_scenes_of_all_sizes_and_masses_land_alike(make):
    usual = land(make, 1.0, 1.0)
    off = {(length, mass): np.abs(land(make, length, mass) - usual).max() for length, mass in SCALES}
    print(", ".join(f"{length:g} m, {mass:g} kg: {x:.0e}" for (length, mass), x in off.items()), "(1e-8)")
    assert max(off.values()) < 1e-8
