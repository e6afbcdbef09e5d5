"""Fits: what made a recording is found from it, within the interval that is stated."""

import re

import numpy as np
import pytest

import sharnir as sh

FRICTION, MASS, PUSH = 12.0, 20.0, 30.0  # N·m, kg, N·m
DT, SAMPLES, NOISE = 0.01, 150, 0.01
GUESS = {"joint/hinge.friction": 5.0, "body/door.mass": 40.0}


def door(worlds=1):
    scene = sh.Scene()
    scene.add_body("door", sh.Box(0.9, 0.04, 2.0), mass=MASS, position=(0.45, 0, 1))
    scene.add_joint("hinge", sh.Revolute("z", limit=(-3.0, 3.0), friction=FRICTION), scene.world, "door", position=(0, 0, 1))
    return sh.Simulation(scene, DT, worlds=worlds, threads=1)


def push(sim):
    """A known torque for half a second; then the door coasts."""
    sim.joint("hinge").effort = PUSH if sim.time < 0.5 - 0.5 * DT else 0.0


def clean():
    """What would be recorded without noise."""
    sim = door()
    with sim.record("joint/hinge.q", "joint/hinge.qd") as log:
        for _ in range(SAMPLES):
            push(sim)
            sim.step()
    return log


def noisy(log, seed, names=("joint/hinge.q",)):
    """With noise of 1 % of the largest value."""
    rng = np.random.default_rng(seed)
    values = {name: log[name] + NOISE * np.abs(log[name]).max() * rng.standard_normal(len(log)) for name in names}
    return {"time": log.time} | values


def test_from_a_file(tmp_path):
    """What a recorder keeps is enough: q and qd of the joints, unless words say which."""
    sim = door()
    with sim.record_file(tmp_path / "door.mcap"):
        for _ in range(SAMPLES):
            push(sim)
            sim.step()
    recording = sh.Recording(tmp_path / "door.mcap")
    for words in (None, ["joint/hinge.q"]):
        found = sh.fit(door(5), recording, GUESS, words=words, control=push)
        off = max(abs(found.values["joint/hinge.friction"] / FRICTION - 1), abs(found.values["body/door.mass"] / MASS - 1))
        print(f"{words}: off by {off:.1e} (tolerance 1e-7, the file is in single precision)")
        assert found.converged and off < 1e-7
    with pytest.raises(sh.SimulationError, match=r"holds no 'joint/hinge.u'; it holds 'joint/hinge.q'"):
        sh.fit(door(5), noisy(clean(), 1), GUESS, words=["joint/hinge.u"])


def test_friction_and_mass_of_a_door_from_a_noisy_recording():
    log = clean()
    sim = door(5)
    found = sh.fit(sim, noisy(log, 1), GUESS, control=push)
    off = abs(found.values["joint/hinge.friction"] / FRICTION - 1), abs(found.values["body/door.mass"] / MASS - 1)
    print(f"{found}\noff by {off[0]:.2%} and {off[1]:.2%} (tolerance 1 %) after {found.evaluations} batches")
    assert found.converged and max(off) < 0.01 and found.evaluations < 30
    assert found.interval["joint/hinge.friction"][0] < FRICTION < found.interval["joint/hinge.friction"][1]
    assert found.interval["body/door.mass"][0] < MASS < found.interval["body/door.mass"][1]
    left = found.noise["joint/hinge.q"] / (NOISE * np.abs(log["joint/hinge.q"]).max())
    print(f"what is left is {left:.3f} of the noise")
    assert 0.85 < left < 1.15
    assert sim.time == 0.0 and sim.body("door").mass[0] == pytest.approx(found.values["body/door.mass"], abs=1e-12)


def test_without_noise_the_truth_is_found_by_one_world_and_by_five():
    log = clean()
    recording = {"time": log.time[::10], "joint/hinge.qd": log["joint/hinge.qd"][::10]}
    one, five = (sh.fit(door(worlds), recording, GUESS, control=push) for worlds in (1, 5))
    for word, truth in (("joint/hinge.friction", FRICTION), ("body/door.mass", MASS)):
        print(f"{word}: {one.values[word]:.12g}, truth {truth:g}")
        assert one.values[word] == pytest.approx(truth, rel=1e-6) and five.values[word] == pytest.approx(truth, rel=1e-6)


PUSHES = {"hinge.effort": np.where(np.arange(SAMPLES) * DT < 0.5 - 0.5 * DT, PUSH, 0.0)}


def test_the_derivative_of_the_motion_finds_the_same_as_differences_in_runs_of_one_world():
    recording = noisy(clean(), 1, ("joint/hinge.q", "joint/hinge.qd"))
    made = sh.fit(door(), recording, GUESS, control=PUSHES)
    batches = sh.fit(door(5), recording, GUESS, control=PUSHES)
    print(f"{made.evaluations} runs, {batches.evaluations} batches of five")
    for word in GUESS:
        assert made.values[word] == pytest.approx(batches.values[word], rel=1e-6)
        assert made.error[word] == pytest.approx(batches.error[word], rel=1e-4)
    assert 5 * batches.evaluations >= 4 * made.evaluations
    with pytest.raises(sh.SimulationError, match=r"control 'hinge\.effort' is one finite number a step"):
        sh.fit(door(), recording, GUESS, control={"hinge.effort": [[1.0]]})


def test_times_between_steps_are_read_between():
    """Samples every 1.5 steps of a door at constant speed: exact by a straight line; a step turns by 2 atan(ω Δt/2)."""
    time = np.arange(20) * 1.5 * DT
    sim = door(3)
    sim.joint("hinge").friction = 0.0
    found = sh.fit(sim, {"time": time, "joint/hinge.q": 0.7 * time}, {"joint/hinge.qd": 0.1})
    assert found.values["joint/hinge.qd"] == pytest.approx(2 / DT * np.tan(0.7 * DT / 2), rel=1e-9)


BAD = {
    "coasting": ({}, {"control": None}, "cannot be told apart by this recording|does not depend on"),
    "guess": ({"joint/hinge.friction": (5.0, 6.0, 7.0)}, {}, "'joint/hinge.friction' takes a first guess, or"),
    "word": ({"joint/hinge.frction": 5.0}, {}, "'joint/hinge.frction' is not there"),
    "nothing": ({}, {"recording": {"time": [0.0, 1.0]}}, "holds no values beside the time"),
    "length": (
        {},
        {"recording": {"time": [0.0, 0.1], "joint/hinge.q": [1.0]}},
        r"'joint/hinge.q' has \(1,\) recorded values for 2",
    ),
    "time": ({}, {"recording": {"time": [0.0, 0.0], "joint/hinge.q": [1.0, 1.0]}}, "rising numbers in s"),
    "few": (
        {},
        {"recording": {"time": [0.0, 0.1], "joint/hinge.qd": [0.0, 0.3]}},
        "2 recorded values are too few for 2 parameters",
    ),
    "recorded": ({}, {"recording": {"time": [0.0, 0.1], "joint/hing.q": [1.0, 1.0]}}, "no joint matches 'hing'"),
    "noise": ({}, {"noise": -1.0}, "noise of 'joint/hinge.q' is a positive standard deviation, got -1.0"),
    "dt": ({}, {"dt": 0.1}, "dt belongs to a Scene"),
}


@pytest.fixture(scope="module")
def sim():
    return door(5)


@pytest.mark.parametrize("what", BAD)
def test_a_mistake_is_refused_by_name(what, sim):
    parameters, given, told = BAD[what]
    still = {"time": np.arange(10) * DT, "joint/hinge.q": np.zeros(10)}
    given = {"control": push, "recording": still} | given
    sim.reset()
    with pytest.raises(sh.SimulationError, match=told if re.search(r"[\\|]", told) else re.escape(told)):
        sh.fit(sim, parameters=parameters or GUESS, **given)


@pytest.mark.slow
def test_the_interval_holds_the_truth_in_95_of_100_seeds():
    log, held, worst = clean(), np.zeros(2), 0.0
    sim = door()
    for seed in range(100):
        sim.reset()
        found = sh.fit(sim, noisy(log, seed, ("joint/hinge.q", "joint/hinge.qd")), GUESS, control=PUSHES)
        for k, (word, truth) in enumerate((("joint/hinge.friction", FRICTION), ("body/door.mass", MASS))):
            held[k] += found.interval[word][0] < truth < found.interval[word][1]
            worst = max(worst, abs(found.values[word] / truth - 1))
    print(
        f"the 95 % interval holds friction in {held[0]:.0f}, mass in {held[1]:.0f} of 100 seeds (at least 93); off by {worst:.2%}"
    )
    assert held.min() >= 93 and worst < 0.01
