"""Contact of mechanisms in single precision, in a process of its own: closed forms, as far as rounding lets them be met."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

import sharnir as sh
from benchmarks.legged import STEP, hexapod, written
from sharnir.io.mjcf import read_mjcf

G = 9.81
AVERAGED = 200  # steps over which forces are averaged: rounding of gaps makes those of single steps differ


def box():
    """A box that stands, with an arm on a hinge that friction holds."""
    scene = sh.Scene()
    scene.add_ground()
    scene.add_body("box", sh.Box(0.2, 0.2, 0.2), mass=1.0, position=(0, 0, 0.1))
    scene.add_body("arm", sh.Box(0.1, 0.1, 0.1), mass=0.2, position=(0, 0, 0.4))
    scene.add_joint("hinge", sh.Revolute("y", friction=0.05), "box", "arm", position=(0, 0, 0.3))
    return scene


def ball():
    """A ball that slides at first; the pendulum makes it a mechanism."""
    scene = sh.Scene()
    scene.add_ground(material=sh.Material(friction=0.5))
    scene.add_body("ball", sh.Sphere(0.1), mass=1.0, position=(0, 0, 0.1), velocity=(2.0, 0, 0))
    scene.add_body("bob", sh.Box(0.05, 0.05, 0.05), mass=0.01, position=(0, 5, 0.5))
    scene.add_joint("hinge", sh.Revolute("y"), "world", "bob", position=(0, 5, 0.6))
    return scene


def chain():
    """Three boxes on hinges with limits and friction, which fall over each other."""
    scene = sh.Scene()
    scene.add_ground()
    for i in range(3):
        speed = (0.3 * (i == 0), 0, 0)
        scene.add_body(f"b{i}", sh.Box(0.12, 0.1, 0.36), mass=1.0, position=(0, 0, 0.6 + 0.4 * i), velocity=speed)
        if i:
            hinge = sh.Revolute("y", limit=(-1.0, 1.2), friction=0.2)
            scene.add_joint(f"j{i}", hinge, f"b{i - 1}", f"b{i}", position=(0, 0, 0.4 + 0.4 * i))
    return scene


def robot():
    """A hexapod on servos with dry friction."""
    with written(hexapod()) as path:
        return read_mjcf(path).scene


SCENES = {"box": (box, 0.5), "ball": (ball, 1.5), "chain": (chain, 2.0), "robot": (robot, 1.0)}


def outcome(name):
    """What a scene came to: numbers of its end, and the largest overlap on the way."""
    scene, until = SCENES[name]
    sim = sh.Simulation(scene(), STEP, solver="direct", sleep=False)
    sim.step(1)
    start, overlap, forces = sim.energy().total, 0.0, []
    while sim.time < until:
        last = sim.time > until - AVERAGED * STEP
        sim.step(1 if last else 10)
        points = sim.contacts()
        overlap = max(overlap, float(-points.gap.min(initial=0.0)))
        if last:
            forces.append(float(np.sum(points.force[:, 2])))
    state, health = sim.state, sim.health()
    return {
        "lean": bool(sim.solver._lean),
        "position": state.position.numpy()[:, 0].tolist(),
        "velocity": state.velocity.numpy()[:, 0].tolist(),
        "spin": state.spin.numpy()[:, 0].tolist(),
        "force": float(np.mean(np.abs(forces))),
        "mass": float(np.sum(sim.model.bodies.mass.numpy())),
        "gained": float(sim.energy().total - start),
        "overlap": overlap,
        "missed": int(health.not_converged) / int(health.steps),
    }


@pytest.fixture(scope="module")
def single():
    """What all scenes came to in single precision."""
    path = os.pathsep.join(filter(None, (os.getcwd(), os.environ.get("PYTHONPATH"))))
    environment = os.environ | {"SHARNIR_PRECISION": "single", "PYTHONPATH": path}
    done = subprocess.run([sys.executable, __file__], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_single_precision_solves_contact_in_joint_coordinates(single):
    for name, end in single.items():
        print(f"{name}: overlap {end['overlap']:.1e} m, not converged {end['missed']:.4f}, gained {end['gained']:.1e} J")
        assert end["lean"]
        assert end["missed"] < 0.01
        assert end["gained"] < 1e-4


def test_a_box_rests_on_its_weight(single):
    end = single["box"]
    assert end["position"][1] == pytest.approx([0, 0, 0.1], abs=2e-5)
    assert np.abs(end["velocity"]).max() < 1e-3
    assert end["force"] == pytest.approx(1.2 * G, rel=1e-3)
    assert end["overlap"] < 2e-5


def test_a_sliding_ball_rolls_at_five_sevenths_of_its_speed(single):
    end = single["ball"]
    assert end["velocity"][1][0] == pytest.approx(2.0 * 5 / 7, rel=1e-4)
    assert end["spin"][1][1] == pytest.approx(2.0 * 5 / 7 / 0.1, rel=1e-4)


def test_a_chain_lands_and_comes_to_rest(single):
    end = single["chain"]
    assert end["overlap"] < 0.02 * 0.1
    assert np.abs(end["velocity"]).max() < 0.02
    assert end["force"] == pytest.approx(3.0 * G, rel=0.02)


def test_a_hexapod_stands_on_its_weight(single):
    end = single["robot"]
    assert end["position"][1][2] == pytest.approx(0.267, abs=1e-3)
    assert end["force"] == pytest.approx(12.6 * G, rel=1e-3)
    assert end["overlap"] < 2e-5


def test_specialized_code_refuses_contact_and_loops():
    """It knows neither: on a GPU, where it is taken unasked, bodies would fall through the ground."""
    sim = sh.Simulation(box(), STEP, solver="direct")
    assert sim.solver._trees.refusal(sim.control) == "bodies touch"
    scene = sh.Scene()
    for name, at in (("left", (0, 0, 0.5)), ("top", (0.5, 0, 1)), ("right", (1, 0, 0.5))):
        scene.add_body(name, sh.Sphere(0.1), mass=1.0, position=at)
    corners = (("world", "left", 0, 0), ("left", "top", 0, 1), ("top", "right", 1, 1), ("right", "world", 1, 0))
    for k, (parent, child, x, z) in enumerate(corners):
        scene.add_joint(f"hinge {k}", sh.Revolute("y"), parent, child, position=(x, 0, z))
    sim = sh.Simulation(scene, STEP, solver="direct")
    assert sim.solver._trees.refusal(sim.control) == "rows beside the tree join bodies"


if __name__ == "__main__":
    print(json.dumps({name: outcome(name) for name in SCENES}))
