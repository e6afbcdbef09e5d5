"""Exercises: automatic drivers pass, bad ones fail, failures are injected, and the protocol is a page of its own."""

import functools
import math
import warnings

import numpy as np
import pytest

import sharnir as sh
from sharnir.trainer.exercises.exercise import Exercise, Failure, Fault, Goal, Session, Within
from sharnir.trainer.exercises.three import EXERCISES


@functools.cache
def done(name, driver=None):
    exercise = EXERCISES[name]
    session = Session(exercise)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sh.StepWarning)
        protocol = session.run(exercise.driver if driver is None else driver)
    print(protocol.words())
    return protocol


def hurried(sim):
    """Full speed, and a full stop over the pad."""
    sim.inputs["trolley"] = 1.0 if sim.joint("rail").position < 4.9 else 0.0
    sim.inputs["hoist"] = -1.0 if sim.joint("rail").position > 4.8 else 0.0


BAD = {
    "park_trailer": lambda sim: sim.inputs.set("throttle", 0.5),  # straight on
    "set_down": hurried,
    "through_the_door": lambda sim: (sim.inputs.set("throttle", 0.5), sim.inputs.set("turn", 0.12)),
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name == "set_down" else [pytest.mark.slow]) for name in EXERCISES]
)
def test_the_automatic_driver_passes_and_a_bad_one_fails(name, tmp_path):
    good, bad = done(name), done(name, BAD[name])
    assert good.passed and good.score == 100 and good.time < EXERCISES[name].limit and not good.faults
    assert not bad.passed and bad.score <= 50
    page = good.html(tmp_path / "good.html").read_text()
    assert "passed · 100 of 100" in page and page.count("<svg") == len(good.curves) and "http" not in page
    assert "not passed" in bad.html(tmp_path / "bad.html").read_text()


def test_evenly_over_a_period_leaves_no_swing():
    protocol = done("set_down")
    swing = np.array(protocol.curves["swing, °"])
    still = swing[np.array(protocol.times) > 14.5]
    most = math.degrees(2 * 0.5 / (2 * math.pi * math.sqrt(4 / 9.81)) / 9.81)  # twice a/g while it speeds up
    print(f"swing up to {swing.max():.3f}° (2 a/g = {most:.3f}°), {still.max():.3f}° once it has stopped")
    assert swing.max() == pytest.approx(most, rel=0.05) and still.max() < 0.1


def pushed(**given):
    def make():
        scene = sh.Scene(gravity=(0, 0, 0))
        scene.add_body("arm", sh.Box(1, 0.1, 0.1), mass=1.0)
        scene.add_joint("hinge", sh.Revolute("z", drive=sh.Servo(kd=50.0, max_force=9.0)), scene.world, "arm", position=(0, 0, 0))
        scene.add_input("turn", "joint/hinge.velocity", high=2.0)
        return sh.Simulation(scene, 0.01, solver="sequential")

    goals = [Goal("<b>turned</b>", [Within("joint/hinge.q", 0.5, 1.5)], hold=0.3)]
    faults = [Fault("too fast", [Within("joint/hinge.qd", -1.1, 1.1)], 25.0)]
    return Exercise("arm", "Turn it.", make, goals, faults, **({"limit": 3.0} | given))


def test_goals_are_held_and_faults_counted(tmp_path):
    protocol = Session(pushed()).run(lambda sim: sim.inputs.set("turn", 1.0))
    assert protocol.passed and protocol.reached["<b>turned</b>"] == pytest.approx(0.8, abs=0.05)  # 0.5 rad, and 0.3 s
    page = protocol.html(tmp_path / "p.html").read_text()
    assert "<b>" not in page and "&lt;b&gt;turned" in page  # a name is text
    fast = Session(pushed()).run(lambda sim: sim.inputs.set("turn", 2.0 if 0.1 < sim.time < 0.2 or sim.time > 0.4 else 0.5))
    assert [title for _, title, _ in fast.faults] == ["too fast", "too fast"] and fast.score == 50
    nobody = Session(pushed()).run()
    assert not nobody.passed and nobody.ended == "the time was up" and nobody.time == pytest.approx(3.0, abs=0.02)


def test_failures_are_injected_in_time():
    """A motor that is off coasts: nothing changes its speed any more."""
    session = Session(pushed(failures=[Failure(0.2, "motor", "hinge")], limit=1.0))
    protocol = session.run(lambda sim: sim.inputs.set("turn", 1.0 if sim.time < 0.3 else 0.0))
    assert session.sim.joint("hinge").velocity == pytest.approx(1.0, abs=1e-6)
    assert [(e.kind, e.name) for e in protocol.events if e.by == "exercise"] == [("failure", "motor/hinge")]


@pytest.mark.parametrize(
    ("given", "words"), [({"limit": 0.0}, "limit.*0.0"), ({"goals": []}, "Goal"), ({"goals": [Goal("x", [])]}, "Goal")]
)
def test_exercises_that_cannot_be(given, words):
    with pytest.raises(sh.SceneError, match=words):
        Exercise(**({"name": "a", "about": "", "make": None, "goals": [Goal("x", [Within("joint/a.q")])]} | given))
    with pytest.raises(sh.SceneError, match="low is at most high"):
        Within("joint/a.q", 2.0, 1.0)
