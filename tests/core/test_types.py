"""Types: what an editor tells a user who misspells a word, and what a running simulation tells him."""

import subprocess
import sys
from pathlib import Path

import pytest

import sharnir as sh

MISSPELLED = Path(__file__).parents[1] / "data" / "misspelled.py"


@pytest.mark.slow
def test_mypy_finds_misspelled_words():
    pytest.importorskip("mypy")
    lines = MISSPELLED.read_text().splitlines()
    wrong = {i + 1 for i, line in enumerate(lines) if line.endswith("# wrong")}
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--follow-imports=silent", str(MISSPELLED)]
    said = subprocess.run(command, capture_output=True, text=True, cwd=MISSPELLED.parents[2], check=False).stdout
    found = {int(line.split(":")[1]) for line in said.splitlines() if line.startswith("tests") or str(MISSPELLED) in line}
    print(f"{len(found & wrong)} of {len(wrong)} found; missed: {[lines[i - 1] for i in sorted(wrong - found)]}")
    assert len(wrong) >= 40 and len(found & wrong) >= 38
    assert not found - wrong, said


def hinge():
    scene = sh.Scene()
    scene.add_body("a", sh.Box(1, 1, 1), mass=1.0)
    scene.add_joint("j", sh.Revolute("y"), scene.world, "a", position=(0, 0, 0.5))
    return scene


@pytest.mark.parametrize(
    ("thing", "word"),
    [("sim", "timestep"), ("sim", "gravty"), ("body", "postion"), ("joint", "velocty"), ("drive", "positon"), ("target", "x")],
)
def test_unknown_attributes_are_refused(thing, word):
    sim = sh.Simulation(hinge(), 1e-3)
    things = {"sim": sim, "body": sim.body("a"), "joint": sim.joint("j"), "drive": sim.joint("j").drive, "target": sim.target}
    with pytest.raises(AttributeError, match=word):
        setattr(things[thing], word, 1.0)
    with pytest.raises(AttributeError, match=word):
        getattr(things[thing], word)


def test_a_scene_takes_no_unknown_words_and_tells_of_late_gravity():
    scene = hinge()
    with pytest.raises(sh.SceneError, match="'gravty' = 3 means nothing; is 'gravity' meant"):
        scene.gravty = 3
    with pytest.raises(sh.SceneError, match="gravity"):
        scene.gravity = (0, 0)
    scene.gravity = (0, 0, -1)
    scene.build()
    with pytest.warns(sh.SceneWarning, match="simulations made so far keep theirs"):
        scene.gravity = (0, 0, -2)


def test_worlds_beside_a_model_are_those_of_the_model():
    model = hinge().build(worlds=4)
    assert sh.Simulation(model, 1e-3).worlds == 4
    with pytest.raises(sh.SimulationError, match="worlds=8 beside a Model that was built with worlds=4"):
        sh.Simulation(model, 1e-3, worlds=8)
    with pytest.raises(
        sh.SimulationError,
        match="'iteratons' is not an option of solver 'direct'; allowed: sleep, specialize, threads, tolerances",
    ):
        sh.Simulation(model, 1e-3, iteratons=3)
