"""KRT100-MP and MF-4: what an operator's inputs do, what the hitch allows, that both solvers drive them alike."""

import gc
import math
import os
from pathlib import Path

import numpy as np
import pytest

import sharnir as sh
from benchmarks import machines
from sharnir.machine_models.inputs import Inputs
from sharnir.machine_models.krt100 import Krt100
from sharnir.machine_models.mf4 import Mf4

LIMITS = np.degrees((0.3141592653589793, 0.2617993877991494, 0.3141592653589793))


def put(machine, dt, solver, mu, **options):
    scene = sh.Scene()
    scene.add_ground(material=sh.Material(friction=mu))
    machine.add(scene)
    sim = sh.Simulation(scene, dt, solver=solver, **options)
    return sim, Inputs(sim, machine.inputs())


def test_both_solvers_pull_a_trailer_alike():
    ends = []
    for solver in ("sequential", "direct"):
        robot = Krt100()
        sim, inputs = put(robot, 0.005, solver, 0.9)
        inputs["throttle"], inputs["steer"] = 0.6, 0.3
        inputs.step(200)
        ends.append(np.array([sim.body(n).position for n in ("krt100", "krt100 trailer")]))
    off = np.abs(ends[1] - ends[0]).max()
    print(f"after {np.linalg.norm(ends[0][0]):.2f} m they are {1e3 * off:.2f} mm apart")
    assert off < 0.01


def drive_at_random(seed, drives, time):
    """(drives,) degrees by which drives with random inputs pass a limit of the hitch, each in a world of its own."""
    rng, robot = np.random.default_rng(seed), Krt100()
    sim, inputs = put(robot, 0.005, "sequential", 0.9, tolerances=sh.Tolerances(iterations=20), worlds=drives)
    most = np.zeros((drives, 3))
    for _ in range(round(time / 1.5)):
        inputs["throttle"], inputs["brake"] = rng.uniform(0.3, 1, drives), rng.uniform(0, 0.2, drives)
        inputs["steer"] = rng.choice((-0.45, 0.45), drives)
        for _ in range(300):
            inputs.apply()
            sim.step()
            most = np.maximum(most, np.degrees(np.abs(robot.angles(sim))))
    return (most - LIMITS).max(axis=1)


def test_the_hitch_keeps_its_limits_in_random_drives():
    past = drive_at_random(0, 3, 3.0).max()
    print(f"past a limit of the hitch by at most {past:.1e}°")
    assert -0.1 < past < 1e-7


@pytest.mark.slow
def test_the_hitch_keeps_its_limits_in_many_random_drives():
    past = drive_at_random(1, 1000, 4.5)
    reached = int((past > -1e-3).sum())
    print(f"1000 drives, {reached} of them to a limit of the hitch: past it by at most {past.max():.1e}°")
    assert reached > 100 and past.max() < 1e-3


def test_mf4_goes_turns_and_stands_as_it_is_told():
    robot = Mf4()
    sim, inputs = put(robot, 0.002, "sequential", 0.8, tolerances=sh.Tolerances(iterations=12))
    mass = sum(sim.body(n).mass for n in sim.model.body_names if n != "world")
    inputs["front"] = inputs["rear"] = 0.117
    inputs["throttle"] = 0.5
    inputs.step(750)
    speed = float(sim.body("mf4").velocity[0])
    inputs["throttle"], inputs["turn"] = 0.0, 0.4
    inputs.step(750)
    rate = float(sim.body("mf4").angular_velocity[2])
    inputs["turn"] = 0.0
    inputs.step(750)
    still = float(np.abs(sim.body("mf4").velocity).max())
    print(f"{mass:.0f} kg: {speed:.4f} m/s at half throttle, turns at {rate:.3f} rad/s, stands to {still:.1e} m/s")
    assert 280 < mass < 320 and abs(speed - 0.5) < 0.01 and rate > 0.2 and still < 1e-4


def test_mf4_lifts_its_arm_to_where_it_is_told():
    robot = Mf4()
    sim, inputs = put(robot, 0.002, "sequential", 0.8, tolerances=sh.Tolerances(iterations=12))
    inputs["shoulder"], inputs["elbow"] = 1.0, -0.5
    inputs.step(1250)
    angles = [sim.joint(f"mf4 arm {part}").position for part in ("shoulder", "elbow")]
    print(f"shoulder {angles[0]:.4f}, elbow {angles[1]:.4f} rad")
    assert angles == pytest.approx([1.0, -0.5], abs=0.03)


def test_points_of_tracks_that_all_but_slide_are_met_at_once():
    """While the arm moves, sixteen points share a load that W all but leaves open; most steps took all the passes there are."""
    robot = Mf4()
    _sim, inputs = put(robot, 0.002, "direct", 0.8)
    inputs["front"] = inputs["rear"] = 0.117
    inputs["shoulder"], inputs["elbow"], inputs["throttle"] = 1.2, -1.2, 0.5
    inputs.step(300)
    passes, met = [], []
    for _ in range(60):
        report = inputs.step(1)
        passes.append(int(report.iterations))
        met.append(bool(report.converged))
    print(f"passes a step: median {np.median(passes):.0f}, at most {max(passes)}; {sum(met)} of {len(met)} steps met")
    assert np.mean(met) > 0.95 and np.mean(np.array(passes) > 150) < 0.05


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Krt100(trailer="chain"), "trailer is 'hitch', 'rope' or None, got 'chain'"),
        (lambda: Krt100(load=0.0), "load .*0.0"),
        (lambda: Mf4(speed=math.nan), "speed .*nan"),
    ],
)
def test_bad_machines_are_named(make, words):
    with pytest.raises(sh.SceneError, match=words):
        make()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_they_drive_as_fast_as_is_said():
    """A third of what the figures say, since nobody knows what else the machine does."""
    assert machines.by_default("MF-4", machines.mf4) > 8.3 / 3
    assert machines.by_default("KRT100-MP with rope and trailer", machines.krt100) > 7 / 3
    assert machines.measure("MF-4", "mf4", machines.mf4, 6) > 10 / 3
    assert machines.measure("KRT100-MP with rope and trailer", "krt100", machines.krt100, 8) > 20 / 3


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs /proc")
def test_an_hour_of_driving_takes_no_memory():
    """KRT100-MP at 10 ms, other inputs every second; what is resident after a minute and after the hour."""
    robot = Krt100(trailer=None)
    sim, inputs = put(robot, 0.01, "auto", 0.9)
    rng = np.random.default_rng(7)

    def drive(seconds):
        for _ in range(seconds):
            inputs["throttle"], inputs["steer"], inputs["brake"] = (
                rng.uniform(0.1, 1),
                rng.uniform(-0.4, 0.4),
                rng.uniform(0, 0.2),
            )
            inputs.apply()
            sim.step(100)

    def resident():
        gc.collect()
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6

    drive(60)
    before = resident()
    drive(3540)
    grown, health = resident() - before, sim.health()
    print(f"{sim.time:.0f} s of driving: {grown:.2f} MB; {health.not_converged} of {health.steps} steps not converged")
    assert grown < 1.0 and health.not_converged < 1e-3 * health.steps
