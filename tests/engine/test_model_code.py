"""Steps with contact by code for one model are those of the code for any forest."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import sharnir as sh
from sharnir.engine.direct.trees import materials_of
from sharnir.engine.tree.branches import Branches, by_branch
from sharnir.engine.tree.build import Plan
from sharnir.engine.tree.forest import FREE, HINGE, Forest, Link
from sharnir.engine.tree.model_code import refusal
from sharnir.errors import SimulationError


def walker(legs: int = 4, restitution: float = 0.0) -> sh.Scene:
    """A trunk on legs of two hinges with servos, friction and limits, on balls; one leg is longer."""
    scene = sh.Scene()
    grip = sh.Material(friction=0.8, restitution=restitution)
    scene.add_ground(material=grip)
    scene.add_body("trunk", sh.Box(0.4, 0.3, 0.1), mass=4.0, position=(0, 0, 0.35), material=grip)
    for k in range(legs):
        way, down = 2 * math.pi * (k + 0.5) / legs, 0.1 - 0.02 * (k == 1)
        x, y = 0.2 * math.cos(way), 0.15 * math.sin(way)
        thigh, shin = f"thigh {k}", f"shin {k}"
        scene.add_body(thigh, sh.Sphere(0.02), mass=0.3, position=(1.2 * x, 1.2 * y, 0.28), collide=False)
        scene.add_body(shin, sh.Sphere(0.025), mass=0.2, position=(1.3 * x, 1.3 * y, down), material=grip)
        servo = sh.Servo(position=0.0, kp=60.0, kd=1.0, max_force=8.0)
        hip = sh.Revolute("y", drive=servo, friction=0.05, limit=(-0.6, 0.6))
        knee = sh.Revolute("y", drive=servo, friction=0.05, limit=(-0.5, 0.7))
        scene.add_joint(f"hip {k}", hip, "trunk", thigh, position=(x, y, 0.32))
        scene.add_joint(f"knee {k}", knee, thigh, shin, position=(1.25 * x, 1.25 * y, 0.22))
    return scene


def tumbler() -> sh.Scene:
    """A box with an arm on a slider and a ball at its end, thrown onto the ground beside a capsule that rolls."""
    scene = sh.Scene()
    scene.add_ground()
    scene.add_body("box", sh.Box(0.3, 0.2, 0.1), mass=2.0, position=(0, 0, 0.4), angular_velocity=(1, 2, 0.5))
    scene.add_body("arm", sh.Capsule(0.03, 0.2), mass=0.4, position=(0.3, 0, 0.4), collide=False)
    scene.add_body("load", sh.Sphere(0.05), mass=0.3, position=(0.45, 0, 0.4))
    slide = sh.Prismatic("x", limit=(-0.05, 0.1), spring=(200.0, 0.0), damping=2.0)
    scene.add_joint("slide", slide, "box", "arm", position=(0.2, 0, 0.4))
    scene.add_joint("ball", sh.Spherical(), "arm", "load", position=(0.4, 0, 0.4))
    lies = (math.sqrt(0.5), 0, 0, math.sqrt(0.5))
    scene.add_body("log", sh.Capsule(0.06, 0.3), mass=1.0, position=(0, 2, 0.06), rotation=lies, velocity=(1, 0, 0))
    return scene


SCENES: dict[str, tuple[Callable[[], sh.Scene], float, int]] = {
    "walker": (walker, 2e-3, 200),
    "three legs that bounce": (lambda: walker(3, 0.5), 2e-3, 100),
    "tumbler": (tumbler, 2e-3, 120),
}


def commanded(sim: sh.Simulation, k: int) -> None:
    """Targets of the servos, every twenty steps others."""
    if "hip 0" not in sim.joints:
        return
    for n, name in enumerate(name for name in sim.joints if name.startswith("hip")):
        sim.joint(name).drive.position = 0.3 * math.sin(0.4 * k + n)


@pytest.mark.usefixtures("unoptimized")
@pytest.mark.parametrize("name", SCENES)
def test_both_forms_make_the_same_steps(name: str) -> None:
    make, dt, steps = SCENES[name]
    sims = [sh.Simulation(make(), dt, solver="direct", specialize=how, sleep=False) for how in (False, True)]
    left = 0
    for k in range(steps // 10):
        for sim in sims:
            commanded(sim, k)
        for _ in range(10):
            reports = [sim.step() for sim in sims]
            assert reports[0].converged == reports[1].converged, f"{reports}"
            left += steps_left(sims[1])
        a, b = (np.asarray(sim.state.position.numpy()) for sim in sims)
        assert np.abs(a - b).max() < 1e-8, f"after {10 * (k + 1)} steps"
        for body in sims[0].bodies:
            a, b = (np.asarray(sim.body(body).contact_force) for sim in sims)
            assert np.abs(a - b).max() < 1e-6 * (1.0 + np.abs(a).max()), f"{body}, after {10 * (k + 1)} steps"
    assert left < steps // 4, "code for the model makes most steps"


@pytest.mark.usefixtures("unoptimized")
def test_what_the_code_is_not_written_for_is_left_to_the_other_form() -> None:
    sims = [sh.Simulation(walker(), 2e-3, solver="direct", specialize=how, sleep=False) for how in (False, True)]
    left = []
    for k in range(40):
        for sim in sims:
            if k == 10:
                sim.body("trunk").apply_force((30.0, 0.0, 0.0))
            if k == 20:
                sim.joint("knee 2").enabled = False
            if k == 30:
                sim.body("trunk").velocity = (0.1, 0.0, 0.0)
            sim.step()
        left.append(steps_left(sims[1]))
    a, b = (np.asarray(sim.state.position.numpy()) for sim in sims)
    assert np.abs(a - b).max() < 1e-9
    assert left[5] == 0 and left[10] == 1 and left[15] == 0, "the step with a push is left"
    assert left[20:30] == [1] * 10, "steps with a disabled joint are left"


@pytest.mark.usefixtures("unoptimized")
def test_worlds_that_fall_asleep_and_are_woken() -> None:
    """Three worlds at different heights come to rest, sleep, and one of them is pushed."""
    sims = [sh.Simulation(walker(3), 4e-3, solver="direct", specialize=how, worlds=3) for how in (False, True)]
    for k in range(45):
        for sim in sims:
            if k == 0:
                sim.body("trunk").velocity = np.array([[0, 0, 0], [0, 0, 0.3], [0, 0, 0.6]])
            if k == 40:
                sim.body("trunk").velocity = np.array([[0, 0, 0], [0.2, 0, 0], [0, 0, 0]])
            sim.step(10)
        if k >= 39:
            sleepers = [np.asarray(sim.state.asleep.numpy())[1:].all(0).tolist() for sim in sims]
            assert sleepers == 2 * [[True, k < 40, True]]
    a, b = (np.asarray(sim.state.position.numpy()) for sim in sims)
    assert np.abs(a - b).max() < 1e-7


def steps_left(sim: sh.Simulation) -> int:
    """Steps that the code for the model left in the last step."""
    return int(sim.solver._trees._left_over.numpy()[0])


def test_equal_branches_are_found() -> None:
    """A trunk with three equal legs of two links and another one of one link."""
    legs = [Link(0, HINGE), Link(1, HINGE), Link(0, HINGE), Link(3, HINGE), Link(0, HINGE), Link(5, HINGE), Link(0, HINGE)]
    forest = Forest([Link(-1, FREE), *legs])
    found = Branches(forest, [link.kind for link in forest.links])
    assert found.members == {1: [[1, 2], [3, 4], [5, 6]]}
    assert [found.first(i) for i in range(8)] == [0, 1, 2, 1, 2, 1, 2, 7]
    assert found.all(2) == [2, 4, 6] and found.count(7) == 0
    assert by_branch([3, 5, 7]) == "(3 + 2*branch)" and by_branch([4, 4]) == "4"
    other = Branches(forest, [*"abcbcbxb"])
    assert other.members == {1: [[1, 2], [3, 4]]}, "a leg that differs in what has to be equal is none of them"


def rolls(scene: sh.Scene) -> None:
    scene.add_body("ball", sh.Sphere(0.1), mass=1, position=(3, 0, 1), material=sh.Material(rolling=0.01))


def many_boxes(scene: sh.Scene) -> None:
    for k in range(7):
        scene.add_body(f"box {k}", sh.Box(0.1, 0.1, 0.1), mass=1, position=(3 + k, 0, 1))


def stiff_neck(scene: sh.Scene) -> None:
    scene.add_body("head", sh.Sphere(0.1), mass=1, position=(3, 0, 1))
    scene.add_joint("neck", sh.Spherical(friction=0.1), scene.world, "head", position=(3, 0, 1.2))


REFUSED = [(rolls, "rolling or torsional friction"), (many_boxes, "28 points; at most 24"),
           (stiff_neck, "'neck' has a law on axes that are solved together")]  # fmt: skip


@pytest.mark.parametrize(("change", "words"), REFUSED)
def test_what_has_no_code_is_refused_by_name(change: Any, words: str) -> None:
    scene = sh.Scene()
    scene.add_ground()
    change(scene)
    model = scene.build()
    assert words in refusal(Plan(model), materials_of(model), model.control())
    with pytest.raises(SimulationError, match=words):
        sh.Simulation(scene, 1e-3, solver="direct", specialize=True)
