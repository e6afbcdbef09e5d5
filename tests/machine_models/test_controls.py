"""Named inputs: ranges, rates, safe values."""

import numpy as np
import pytest

import sharnir as sh
from sharnir.machine_models.inputs import Input, Inputs


@pytest.fixture
def driven():
    scene = sh.Scene(gravity=(0, 0, 0))
    scene.add_body("arm", sh.Box(1, 0.1, 0.1), mass=1.0)
    scene.add_joint(
        "hinge", sh.Revolute("z", drive=sh.Servo(velocity=0.0, kd=100.0, max_force=1e4)), scene.world, "arm", position=(0, 0, 0)
    )

    def turn(sim, value):
        sim.joint("hinge").drive.velocity = value

    def make(**given):
        sim = sh.Simulation(scene, 0.01, **given)
        return sim, Inputs(sim, [Input("turn", turn, low=-2.0, high=2.0, rate=1.0, about="rad/s")])

    return make


def test_an_input_moves_at_its_rate(driven):
    sim, controls = driven()
    controls["turn"] = 0.5
    seen = []
    for _ in range(60):
        controls.step()
        seen.append(controls["turn"])
    assert np.diff([0.0, *seen]) == pytest.approx([0.01] * 50 + [0.0] * 10)
    assert sim.joint("hinge").velocity == pytest.approx(0.5, abs=0.01)
    controls.release()
    controls.step(100)
    assert controls["turn"] == 0.0 and controls.command("turn") == 0.0
    assert abs(sim.joint("hinge").velocity) < 1e-2


def test_commands_are_limited_and_it_is_said_once(driven):
    _, controls = driven()
    with pytest.warns(sh.StepWarning, match="'turn'.*-2 … 2.*7"):
        controls["turn"] = 7.0
    controls["turn"] = -7.0  # a second warning would be an error here
    assert controls.command("turn") == -2.0
    for wrong in (np.nan, np.inf, "fast", None, [1.0, 2.0]):
        with pytest.raises(sh.SimulationError, match="'turn'"):
            controls["turn"] = wrong
    with pytest.raises(sh.SimulationError, match="no input 'boom'; available: turn"):
        controls["boom"] = 1.0


def test_worlds_are_commanded_apart(driven):
    sim, controls = driven(worlds=3)
    controls["turn"] = [0.1, -0.2, 0.3]
    controls.step(100)
    assert sim.joint("hinge").velocity == pytest.approx([0.1, -0.2, 0.3], abs=0.01)


@pytest.mark.parametrize(
    ("given", "words"),
    [({"low": 1.0, "high": 0.0}, "low < high"), ({"rate": 0.0}, "rate.*0"), ({"safe": 3.0}, "safe.*3"), ({"act": 1}, "act")],
)
def test_inputs_that_cannot_be(given, words):
    with pytest.raises(sh.SceneError, match=words):
        Input(**{"name": "boom", "act": print, **given})
    with pytest.raises(sh.SceneError, match="twice"):
        Inputs(None, [Input("a", print), Input("a", print)])
