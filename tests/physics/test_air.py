"""The air on bodies: terminal velocity and the way there in closed form, the same in every solver; a held body; recordings."""

import math

import numpy as np
import pytest

import sharnir as sh
from sharnir.trainer.failures import weather

MASS, AREA, G, RHO = 80.0, 0.7, 9.81, 1.225
TERMINAL = math.sqrt(2 * MASS * G / (RHO * AREA))
SOLVERS = ("sequential", "direct")


def falling(solver, dt, worlds=1):
    scene = sh.Scene(gravity=(0, 0, -G))
    scene.add_body("diver", sh.Sphere(0.3), mass=MASS, drag_area=AREA)
    scene.add_joint("free", sh.Free(), scene.world, "diver")
    return sh.Simulation(scene, dt, solver=solver, worlds=worlds)


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_falling_body_reaches_its_terminal_velocity(solver):
    """v = v∞ tanh(g t / v∞), v∞ = √(2 m g / (ρ c_d A)); first order in the step."""
    off = []
    for dt in (0.02, 0.01):
        sim, worst = falling(solver, dt), 0.0
        for _ in range(round(4.0 / dt)):
            sim.step()
            worst = max(worst, abs(sim.body("diver").velocity[2] + TERMINAL * math.tanh(G * sim.time / TERMINAL)) / TERMINAL)
        off.append(worst)
    sim.run(26.0)
    last = abs(sim.body("diver").velocity[2] + TERMINAL) / TERMINAL
    print(f"{solver}: at most {off[0]:.1e} and, at half the step, {off[1]:.1e} off on the way, {last:.1e} at 30 s")
    assert off[1] < 1e-3 and off[0] / off[1] == pytest.approx(2.0, abs=0.3) and last < 1e-4


def test_solvers_agree_and_worlds_have_their_own_wind():
    """What is at rest in still air drifts with the wind at last; the three solvers take the same forces."""
    ends = []
    for solver in SOLVERS:
        sim = falling(solver, 0.01, worlds=2)
        sim.wind = [[5.0, 0.0, 0.0], [0.0, -9.0, 0.0]]
        sim.run(5.0)
        ends.append(sim.body("diver").velocity.copy())
    print(f"after 5 s: {ends[0].round(4).tolist()} m/s; solvers differ by {np.ptp(ends, axis=0).max():.1e} m/s")
    assert np.ptp(ends, axis=0).max() < 1e-6 and ends[0][0, 0] > 1.0 and ends[0][1, 1] < -2.0


def test_a_held_plate_feels_the_whole_wind():
    """The reaction of its support is ½ ρ c_d A w², whatever the plate weighs and the step is."""
    scene = sh.Scene(gravity=(0, 0, 0))
    scene.add_body("plate", sh.Box(0.02, 2, 2), mass=2.0, drag_area=5.0)
    scene.add_joint("held", sh.Fixed(), scene.world, "plate", position=(0, 0, 0))
    sim = sh.Simulation(scene, 0.002, solver="direct")
    weather(sim, wind=(20.0, 0, 0))
    sim.run(0.1)
    force, exact = sim.joint("held").reaction[0], 0.5 * RHO * 5.0 * 400.0
    print(f"the support holds {-force[0]:.6f} N, ½ ρ c_d A w² = {exact:.6f} N")
    assert force == pytest.approx([-exact, 0, 0], rel=1e-9, abs=1e-6)
    assert sim.inputs.events[-1].name == "wind"


def test_a_leaf_in_a_storm_stays_finite():
    scene = sh.Scene(gravity=(0, 0, -G))
    scene.add_body("leaf", sh.Sphere(0.05), mass=1e-3, drag_area=0.5)
    sim = sh.Simulation(scene, 0.02, solver="sequential")
    sim.wind = (40.0, 0, 0)
    sim.step(100)
    print(f"{sim.body('leaf').velocity} m/s")
    assert sim.body("leaf").velocity[0] == pytest.approx(40.0, rel=1e-3)


def test_wind_is_kept_by_snapshots_and_recordings(tmp_path):
    sim = falling("sequential", 0.01)
    sim.wind = (3.0, 0, 0)
    kept = sim.snapshot()
    sim.step(50)
    first = sim.body("diver").velocity.copy()
    sim.wind = (0.0, 0, 0)
    sim.restore(kept)
    sim.step(50)
    assert np.array_equal(sim.body("diver").velocity, first) and sim.wind.tolist() == [3, 0, 0]
    pytest.importorskip("mcap")
    with sim.record_file(tmp_path / "fall.mcap"):
        sim.step(30)
        sim.wind = (0, -8.0, 0)
        sim.step(30)
    twin = falling("sequential", 0.01)
    found = sh.Recording(tmp_path / "fall.mcap").replay(twin)
    print(found)
    assert found.equal and np.array_equal(twin.body("diver").velocity, sim.body("diver").velocity) and first[0] > 0


def test_mistakes_are_told():
    scene = sh.Scene()
    for wrong in (-1.0, math.nan, (1, 2)):
        with pytest.raises(sh.SceneError, match="body 'a': drag_area"):
            scene.add_body("a", sh.Sphere(0.1), drag_area=wrong)
    scene.add_body("a", sh.Sphere(0.1))
    sim = sh.Simulation(scene, 0.01)
    with pytest.raises(sh.SimulationError, match="drag_area"):
        sim.wind = (1, 0, 0)
