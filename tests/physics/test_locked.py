"""Joints that loops lock, limits beside springs, friction that stops what floats: what a hostile tester found, kept as it was."""

import warnings

import numpy as np
import pytest

import sharnir as sh


def run(sim, steps):
    """Total energies after the first step and those that follow."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        out = []
        for _ in range(steps):
            sim.step()
            out.append(sim.energy().total)
    return np.array(out)


@pytest.mark.parametrize("hung", [False, True])
def test_two_bodies_on_two_hinges_move_as_one(hung):
    """Rows that say the same, a little differently, pulled the bodies apart by 1e8 N, which the step then held against them."""
    scene = sh.Scene()
    spin = (4.0, -3.0, -4.0)
    scene.add_body("a", sh.Box(1, 1, 1), mass=10.0, angular_velocity=spin)
    at = (0.6, -0.2, 0.4)
    scene.add_body("b", sh.Box(0.1, 2, 0.5), mass=1.0, position=at, velocity=np.cross(spin, at), angular_velocity=spin)
    scene.add_joint("rough", sh.Revolute((1, 2, 3), friction=0.1), "a", "b", position=(1.3, 0.4, -0.9))
    scene.add_joint("other", sh.Revolute((-1, 2, 0.5)), "a", "b", position=(-0.2, 0.7, 0.8))
    if hung:
        scene.add_joint("hang", sh.Spherical(), "world", "a", position=(0, 0, 0))
    sim = sh.Simulation(scene, 5e-3, solver="direct")
    energy = run(sim, 100)
    loads = max(np.linalg.norm(sim.joint(n).reaction[0]) for n in ("rough", "other"))
    print(f"energy {np.ptp(energy):.1e} J, loads {loads:.3g} N, {sim.solver.report.fallbacks}")
    assert np.ptp(energy) < 0.01 * sim.energy().kinetic
    assert loads < 1e4


def test_limits_in_loops_are_taken_back_in():
    """Tries moved a body beside, on a spring, and nothing else: it gained 120 J in 150 steps, the limit stayed passed."""
    scene = sh.Scene()
    scene.add_body("arm", sh.Box(0.5, 0.2, 0.1), mass=1.0, position=(0.3, 0, 0))
    scene.add_body("load", sh.Box(0.2, 0.2, 0.2), mass=1.0, position=(0.5, 0.3, -0.4))
    limit = (-0.25, 0.2)
    plane = sh.Planar((0, 1, 0.2), limit=limit, spring=(8.0, 0.0), damping=0.2)
    scene.add_joint("plane", plane, "world", "arm", position=(0, 0, 0))
    scene.add_joint("ball", sh.Spherical(), "world", "arm", position=(0.2, 0, 0.1))
    scene.add_spring("spring", "arm", "load", stiffness=200.0, damping=0.1)
    sim = sh.Simulation(scene, 5e-3, solver="direct")
    energy = run(sim, 150)
    print(f"energy {energy[0]:.3f} J, at most {energy.max():.3f} J")
    assert energy.max() < energy[0] + 0.01 * np.ptp(energy)
    assert np.all(sim.joint("plane").position < limit[1] + 1e-6)


def test_friction_that_stops_what_floats_keeps_momenta():
    """Velocities that stopping leaves are projected; where a spring was beside, what friction held yielded to it: 1e-7."""
    rng = np.random.default_rng(3)
    scene = sh.Scene(gravity=(0, 0, 0))
    for i in range(4):
        moving = {"velocity": 0.5 * rng.normal(size=3), "angular_velocity": rng.normal(size=3)}
        scene.add_body(f"b{i}", sh.Box(0.3, 0.2, 0.1), mass=1.0, position=(0.4 * i, 0, 0), **moving)
        if i:
            joint = sh.Universal(friction=0.05) if i == 1 else sh.Revolute(rng.normal(size=3), friction=0.03)
            scene.add_joint(f"j{i}", joint, f"b{i - 1}", f"b{i}", position=(0.4 * i - 0.2, 0, 0))
    scene.add_spring("spring", "b0", "b3", stiffness=5.0, damping=0.1)
    sim = sh.Simulation(scene, 2e-3, solver="direct")
    run(sim, 1)
    start, stuck = sim.momentum(), 0
    run(sim, 400)
    stuck = sum(int(np.sum(sim.joint(f"j{i}").stuck)) for i in (1, 2, 3))
    end = sim.momentum()
    off = [np.linalg.norm(getattr(end, n) - getattr(start, n)) / np.linalg.norm(getattr(start, n)) for n in ("linear", "angular")]
    print(f"momenta off by {off[0]:.1e}, {off[1]:.1e}; {stuck} axes stick")
    assert max(off) < 1e-11
