"""Failures and weather: what fails does so whatever is commanded, and is whole again after a repair."""

import pytest

import sharnir as sh
from sharnir.machine_models.krt100 import Krt100
from sharnir.trainer.failures import fail, forget, repair, weather


def hinges():
    scene = sh.Scene(gravity=(0, 0, 0))
    for name, drive in (("servo", sh.Servo(kd=50.0, max_force=1e3)), ("motor", sh.DCMotor(resistance=1.0, torque_constant=0.5))):
        scene.add_body(f"{name} arm", sh.Box(1, 0.1, 0.1), mass=1.0, position=(0, 0, len(scene.bodies)))
        scene.add_joint(name, sh.Revolute("z", drive=drive), scene.world, f"{name} arm", position=(0, 0, len(scene.bodies) - 1))
    scene.add_input("servo", "joint/servo.velocity", high=5.0)
    scene.add_input("motor", "joint/motor.voltage", high=24.0)
    return sh.Simulation(scene, 0.01, solver="sequential")


@pytest.mark.parametrize("name", ["servo", "motor"])
def test_a_motor_that_is_off_gives_nothing(name):
    sim = hinges()
    joint = sim.joint(name)
    fail(sim, "motor", name)
    sim.inputs[name] = 2.0
    sim.step(50)
    assert abs(joint.velocity) < 1e-6
    repair(sim)
    sim.step(50)
    assert joint.velocity > 0.5
    seen = [(e.name, e.value) for e in sim.inputs.events if e.kind == "failure"]
    assert seen == [(f"motor/{name}", 1.0), (f"motor/{name}", 0.0)]


def test_a_stuck_brake_holds_and_a_stuck_lever_stays():
    sim = hinges()
    fail(sim, "input", "motor")
    sim.inputs["servo"] = sim.inputs["motor"] = 1.0
    sim.step(30)
    assert sim.inputs["motor"] == 0.0 and sim.joint("motor").velocity == 0.0
    fail(sim, "brake", "servo")
    sim.step(30)
    assert abs(sim.joint("servo").velocity) < 1e-6
    repair(sim, "brake", "servo")
    sim.step(30)
    assert sim.joint("servo").velocity == pytest.approx(1.0, abs=0.01) and list(sim.inputs.faults) == [("input", "motor")]
    forget(sim)
    sim.step(5)
    assert sim.inputs["motor"] == 1.0 and not sim.inputs.faults
    for kind, name, words in (("wing", "servo", "one of 'motor'.*'wing'"), ("motor", "elbow", "elbow"), ("rope", "r", "no rope")):
        with pytest.raises(sh.SimulationError, match=words):
            fail(sim, kind, name)


def test_braking_on_ice_takes_longer():
    """Wheels that lock slide by v²/2μg: on half the friction twice as far."""
    ways = []
    for factor in (1.0, 0.5):
        scene, robot = sh.Scene(), Krt100(trailer=None)
        scene.add_ground(material=sh.Material(friction=0.4))
        robot.add(scene, speed=2.0)
        for given in robot.inputs():
            scene.add_input(given)
        sim = sh.Simulation(scene, 0.005, solver="sequential", tolerances=sh.Tolerances(iterations=20), on_divergence="ignore")
        weather(sim, friction=factor)
        fail(sim, "brake", "krt100 rear left"), fail(sim, "brake", "krt100 rear right")
        fail(sim, "brake", "krt100 front left"), fail(sim, "brake", "krt100 front right")
        sim.run(1.6)
        ways.append(float(sim.body("krt100").position[0]))
    print(f"stops after {ways[0]:.3f} m, on half the friction after {ways[1]:.3f} m: {ways[1] / ways[0]:.3f} times as far")
    assert ways[1] / ways[0] == pytest.approx(2.0, rel=0.1)
    with pytest.raises(sh.SimulationError, match=r"factor.*-1"):
        weather(sim, friction=-1)
