"""Scenes that are alike but for their units move alike: from 1e-4 m and 1e-6 kg to 1e4 m and 1e6 kg, whatever the solver."""

import numpy as np
import pytest
from mechanisms import SOLVERS
from scaled import SCENES, Units, motion

import sharnir as sh

SMALL_LIGHT, LARGE_HEAVY, LARGE_LIGHT, SMALL_HEAVY = Units(-7, -20), Units(7, 20), Units(7, -20), Units(-7, 20)
DT, STEPS = 2.0**-9, 150  # 0.3 s in units of the first scene


def off(name, solver, units):
    """How far a motion in these units is from that in metres and kilograms, without units; and steps not converged, both."""
    here, missed = motion(SCENES[name], Units(), DT, STEPS, **SOLVERS[solver])
    there, missed_there = motion(SCENES[name], units, DT, STEPS, **SOLVERS[solver])
    assert np.ptp(here, axis=0).max() > 0.01, "the mechanism moves"
    return np.abs(there - here).max(), missed, missed_there


@pytest.mark.parametrize("name", SCENES)
def test_small_light_scenes_move_like_large_heavy_ones(name):
    """With default settings."""
    for units in (SMALL_LIGHT, LARGE_HEAVY):
        apart, missed, missed_there = off(name, "direct", units)
        assert apart < 1e-9
        assert missed == missed_there == 0


@pytest.mark.slow
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("name", SCENES)
def test_every_solver_is_alike_in_all_units(name, solver):
    for units in (SMALL_LIGHT, LARGE_HEAVY, LARGE_LIGHT, SMALL_HEAVY):
        apart, missed, missed_there = off(name, solver, units)
        assert apart < 1e-7
        assert missed == missed_there or solver == "sequential"


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_small_arm_falls_against_little_friction(solver):
    """8 mm long, 5 mg, half a percent of friction at 0.1 ms: as good as free, and not held for ever."""
    scene, length, mass = sh.Scene(), 8e-3, 5e-6
    inertia = mass * length**2 / 12
    scene.add_body("arm", mass=mass, inertia=np.diag([inertia / 100, inertia, inertia]), position=(length / 2, 0, 0))
    friction = 0.005 * mass * 9.81 * length / 2
    scene.add_joint("j", sh.Revolute("y", friction=friction), "world", "arm", position=(0, 0, 0))
    sim = sh.Simulation(scene, 1e-4, **SOLVERS[solver])
    sim.run(0.01)
    expected = 0.5 * (0.995 * 9.81 * 1.5 / length) * 0.01**2  # ½ α t² while it is nearly level
    assert abs(sim.joint("j").position - expected) < 0.02 * expected


def test_a_tolerance_that_is_given_is_an_impulse():
    """Whoever says 1e-3 N·m·s has friction hold what is below it."""
    u = SMALL_LIGHT
    sim = sh.Simulation(SCENES["rubbing"](u), DT * u.time, tolerances=sh.Tolerances(tolerance=1e-3))
    sim.step(20)
    assert np.abs(sim.joint("j0").position) == 0.0
