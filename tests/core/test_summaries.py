"""What `repr` says of a simulation and its parts, in one line each, and the mappings of bodies, joints and ropes."""

from types import SimpleNamespace

import numpy as np
import pytest

import sharnir as sh
from sharnir.core import summaries


@pytest.fixture(scope="module")
def scene():
    out = sh.Scene()
    out.add_ground()
    out.add_body("post", sh.Box(0.1, 0.1, 1.0), motion="fixed", position=(0, 0, 0.5), collide=False)
    out.add_body("door", sh.Box(0.9, 0.04, 2.0), mass=20.0, position=(0.45, 0, 1.2))
    out.add_body("ball", sh.Sphere(0.1), mass=1.0, position=(3, 0, 0.1))
    out.add_joint("hinge", sh.Revolute("z"), "post", "door", position=(0, 0, 1))
    return out


def test_each_object_says_what_it_is_in_one_line(scene):
    sim = sh.Simulation(scene, dt=0.002)
    report = sim.step(5)
    sim.joint("hinge").velocity = 0.5
    said = {
        repr(scene): "<Scene: 3 bodies, 1 joint; contact on, gravity (0, 0, -9.81) m/s²>",
        repr(sim): "<Simulation: 3 bodies, 1 joint, contact; solver direct, dt = 0.002 s, t = 0.01 s, cpu>",
        repr(sim.body("ball")): "<body 'ball' at (3, 0, 0.1) m, 0 m/s>",
        repr(sim.joint("hinge")): "<joint 'hinge': Revolute, position 0, velocity 0.5>",
    }
    for got, expected in said.items():
        assert got == expected
    assert repr(report).startswith("<Report: converged, ") and "residual" in repr(report)
    assert repr(sim.contacts()).startswith("<1 contact of 1 pair of bodies, 9.81 N in all, smallest gap")
    assert all("\n" not in repr(x) for x in (scene, sim, report, sim.contacts(), *sim.bodies.values()))


def test_many_worlds_are_told_of_in_one_line(scene):
    sim = sh.Simulation(scene, dt=0.002, worlds=3)
    assert repr(sim).endswith("3 worlds on cpu>")
    assert repr(sim.step()).startswith("<Report: 3 of 3 worlds converged, at most ")
    assert repr(sim.body("ball")) == "<body 'ball' in 3 worlds>"


def test_what_fails_is_named_in_the_report():
    made = SimpleNamespace(
        elapsed=1e-3, deadline_missed=True, converged=False, problems=("joint", "energy"), iterations=40, residual=0.1
    )
    said = "<Report: not converged: joint, energy, 40 iterations, residual 0.1, 1000 µs, deadline missed>"
    assert summaries.report(made) == said


def test_a_rope_and_empty_scenes_say_what_they_are():
    assert repr(sh.Scene()) == "<Scene: empty; contact off, gravity (0, 0, -9.81) m/s²>"
    scene = sh.Scene()
    scene.add_rope("line", (0, 0, 0), (0, 0, -1), segments=4, mass_per_length=0.1, attach=("world", None))
    sim = sh.Simulation(scene, dt=0.005)
    assert repr(sim.rope("line")).startswith("<rope 'line': 1 m, tension up to ")


def test_bodies_joints_and_ropes_are_mappings_that_cannot_be_changed(scene):
    sim = sh.Simulation(scene, dt=0.002)
    assert list(sim.bodies) == ["post", "door", "ball"] and list(sim.joints) == ["hinge"] and not sim.ropes
    assert sim.bodies["door"] is sim.body("door")
    assert np.isclose(sum(float(body.mass) for body in sim.bodies.values() if body.name != "post"), 21.0)
    with pytest.raises(TypeError):
        sim.bodies["door"] = None
