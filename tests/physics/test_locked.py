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


@pytest.mark.parametrize("closing", ["energy", "position", "velocity"])
@pytest.mark.parametrize("hung", [False, True])
def test_two_bodies_on_two_hinges_move_as_one(closing, hung):
    """Rows that say the same, a little differently, pulled the bodies apart by 1e8 N, which the step then held against them."""
    scene = sh.Scene()
    spin = (4.0, -3.0, -4.0)
    scene.add_body("a", sh.Box(1, 1, 1), mass=10.0, spin=spin)
    at = (0.6, -0.2, 0.4)
    scene.add_body("b", sh.Box(0.1, 2, 0.5), mass=1.0, position=at, velocity=np.cross(spin, at), spin=spin)
    scene.add_joint("rough", sh.Revolute((1, 2, 3), friction=0.1), "a", "b", position=(1.3, 0.4, -0.9))
    scene.add_joint("other", sh.Revolute((-1, 2, 0.5)), "a", "b", position=(-0.2, 0.7, 0.8))
    if hung:
        scene.add_joint("hang", sh.Spherical(), "world", "a", position=(0, 0, 0))
    sim = sh.Simulation(scene, 5e-3, method="direct", closing=closing)
    energy = run(sim, 100)
    loads = max(np.linalg.norm(sim.joint(n).reaction[0]) for n in ("rough", "other"))
    print(f"{closing}: energy {np.ptp(energy):.1e} J, loads {loads:.3g} N, {sim.solver.report.grades}")
    assert np.ptp(energy) < 0.01 * sim.energy().kinetic
    assert loads < 1e4
