"""Inputs that are data of the scene: targets, keys, a lost operator, snapshots."""

import numpy as np
import pytest

import sharnir as sh
from sharnir.scene.inputs import Input, Inputs

SERVO = sh.Servo(velocity=0.0, kd=100.0, max_force=1e4)


def scene_of(**given):
    scene = sh.Scene(gravity=(0, 0, 0))
    for k, drive in enumerate((SERVO, SERVO, None)):
        scene.add_body(f"arm {k}", sh.Box(1, 0.1, 0.1), mass=1.0, position=(0, 0, k))
        scene.add_joint(f"hinge {k}", sh.Revolute("z", drive=drive), scene.world, f"arm {k}", position=(0, 0, k))
    scene.add_input("turn", "joint/hinge [01].velocity", **({"low": -2, "high": 2, "scale": 0.5, "rate": 1.0} | given))
    scene.add_input("push", "joint/hinge 2.torque", scale=3.0, keys=("w", "S"))
    return scene


def simulation(**given):
    return sh.Simulation(scene_of(**given), 0.01, solver="sequential")


def test_targets_follow_a_command_at_its_rate():
    sim = simulation()
    sim.step()
    assert sim.joint("hinge 2").effort == 0.0 and sim.inputs["turn"] == 0.0
    sim.inputs["turn"] = 1.0
    sim.inputs["push"] = 1.0
    sim.step(50)  # in one call
    assert sim.inputs["turn"] == pytest.approx(0.5) and sim.inputs["push"] == 1.0
    sim.step(150)
    speeds = [sim.joint(f"hinge {k}").velocity for k in (0, 1)]
    inertia = (1 + 0.1**2) / 12
    exact = 3.0 / inertia * 2.0
    print(f"{speeds} rad/s of 0.5; pushed to {sim.joint('hinge 2').velocity:.6f} rad/s of {exact:.6f}")
    assert speeds == pytest.approx([0.5, 0.5], abs=1e-3)
    assert sim.joint("hinge 2").velocity == pytest.approx(exact, rel=1e-9)
    times = {e.name: (e.time, e.value, e.by) for e in sim.inputs.events}
    assert times == {"turn": (pytest.approx(0.01), 1.0, "script"), "push": (pytest.approx(0.01), 1.0, "script")}


def test_a_lost_operator_brings_the_safe_value():
    sim = simulation(safe=0.2)
    sim.inputs.timeout = 0.5
    sim.inputs["turn"] = 2.0
    for _ in range(3):  # heard of in time
        sim.step(40)
        sim.inputs.heartbeat()
    assert sim.inputs["turn"] == pytest.approx(1.4)
    sim.step(51)
    assert sim.inputs.command("turn") == 2.0
    sim.step(2)
    assert sim.inputs.command("turn") == 0.2 and sim.inputs.events[-1].kind == "lost"
    sim.step(200)
    assert sim.inputs["turn"] == 0.2 and not sim.inputs.busy


def test_held_keys_and_sticks():
    sim = simulation(returns=False)
    controls = sim.inputs
    assert controls.described["push"].keys == ("w", "s")
    controls.hold("push", 1)
    assert controls.command("push") == 1.0
    controls.hold("push", -0.5)
    assert controls.command("push") == -0.5
    controls.hold("push", 0)
    assert controls.command("push") == 0.0
    controls.hold("turn", 0.5)  # moves on at half its rate
    sim.step(100)
    assert controls["turn"] == pytest.approx(0.5)
    controls.hold("turn", 0)
    sim.step(50)
    assert controls["turn"] == pytest.approx(0.5)  # and stays
    for wrong in (np.nan, "w", None, [1, 2]):
        with pytest.raises(sh.SimulationError, match="'turn'"):
            controls.hold("turn", wrong)


def test_inputs_are_part_of_snapshots_and_resets():
    sim = simulation()
    sim.inputs["turn"] = 1.0
    sim.step(30)
    before = sim.snapshot()
    sim.step(30)
    once = sim.snapshot()
    sim.inputs["turn"] = -1.0
    sim.step(10)
    sim.restore(before)
    sim.step(30)
    again = sim.snapshot()
    assert once.keys() == again.keys() and all(np.array_equal(once[k], again[k]) for k in once)
    sim.reset()
    assert sim.inputs["turn"] == 0.0 and sim.inputs.command("turn") == 0.0
    sim.step(5)
    assert sim.joint("hinge 0").velocity == 0.0
    with pytest.raises(sh.SimulationError, match=r"'controls'.*shape"):
        sim.restore(before | {"controls": np.zeros((3, 5, 1))})


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"target": "hinge.torque"}, "kind/name.value.*hinge.torque"),
        ({"target": "joint/elbow.torque"}, "no joint is named 'elbow'.*available: 'hinge 0'"),
        (
            {"target": "joint/hinge 0.drive.torque"},
            "is written 'joint/hinge 0.torque', without 'drive'",
        ),
        ({"target": "joint/hinge 0.voltage"}, "'hinge 0' has no drive that takes 'voltage'; allowed: velocity, torque, effort"),
        ({"target": "joint/hinge 0.colour"}, "a joint is one of.*colour"),
        ({"target": "rope/r.reel_speed"}, "no rope.*available: none"),
        ({"target": None}, "target"),
        ({"target": 3}, "kind/name"),
        ({"keys": ("a", "b", "c")}, "keys"),
        ({"pad": "stick 3"}, "pad.*stick 3"),
        ({"scale": 0.0}, "scale.*0"),
        ({"rate": float("nan")}, "rate.*nan"),
        ({"low": "x"}, "low.*'x'"),
        ({"safe": 7.0}, "safe.*7"),
        ({"name": "turn"}, "twice"),
        ({"name": ""}, "non-empty"),
    ],
)
def test_controls_that_cannot_be(given, words):
    scene = scene_of()
    given = {"name": "boom", "target": "joint/hinge 0.velocity"} | given
    with pytest.raises(sh.SceneError, match=words):
        scene.add_input(given.pop("name"), given.pop("target"), **given)
    assert list(scene.inputs) == ["turn", "push"]


def test_inputs_with_functions_are_the_same_thing():
    scene, seen = scene_of(), []
    scene.add_input(Input("horn", lambda sim, value: seen.append((sim.time, value)), low=0.0))
    sim = sh.Simulation(scene, 0.01, solver="sequential")
    sim.step(3)
    sim.inputs["horn"] = 1.0
    sim.step(3)
    assert seen == [(0.0, 0.0), (pytest.approx(0.03), 1.0)]
    assert list(sim.inputs) == ["turn", "push", "horn"]
    with pytest.raises(sh.SceneError, match="one of the two"):
        Input("horn", print, target="joint/a.effort")
    assert isinstance(sim.inputs, Inputs)
    bare = sh.Scene()
    bare.add_body("ball", sh.Sphere(1.0))
    assert len(sh.Simulation(bare, 0.01).inputs) == 0


@pytest.mark.parametrize("solver", ["direct", "sequential"])
@pytest.mark.parametrize("drive", ["servo", "none"])
def test_a_drive_commanded_before_the_first_step_is_kept(solver, drive):
    """The scene has a control on the same joint; the command holds until that control changes, also after a reset."""
    scene = sh.Scene(gravity=(0, 0, 0))
    scene.add_body("wheel", sh.Cylinder(0.2, 0.1), mass=250.0)
    acts = {"drive": sh.Servo(kd=0.0)} if drive == "servo" else {}
    scene.add_joint("axle", sh.Revolute("z", **acts), scene.world, "wheel", position=(0, 0, 0))
    scene.add_input("motor", "joint/axle.torque", low=-9.0, high=9.0)
    sim = sh.Simulation(scene, 0.01, solver=solver)
    axle = sim.joint("axle")
    inertia = 0.5 * 250.0 * 0.2**2

    def command(value):
        if drive == "servo":
            axle.drive.torque = value
        else:
            axle.effort = value

    for _ in range(2):
        command(5.0)
        sim.run(1.0)
        assert axle.velocity == pytest.approx(5.0 / inertia, rel=1e-5)
        sim.inputs["motor"] = -5.0
        sim.run(1.0)
        assert abs(axle.velocity) < 1.1 * 5.0 / inertia * 0.01, "up to a step's worth"
        sim.reset()
    sim.step()
    assert axle.velocity == 0.0, "a reset takes commands back"
