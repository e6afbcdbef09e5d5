"""Former public names do what the new ones do, and warn."""

import numpy as np
import pytest

import sharnir as sh
from sharnir.core.renamed import Former, present_names
from sharnir.io.scene_file import read_text


def described() -> sh.Scene:
    scene = sh.Scene()
    scene.add_ground()
    scene.add_body("bar", sh.Box(1, 0.1, 0.1), position=(0.5, 0, 2))
    scene.add_joint("hinge", sh.Revolute("y"), scene.world, "bar", position=(0, 0, 2))
    scene.add_rope("rope", (0, 1, 2), (0, 1, 1), segments=4, collide=False)
    scene.add_input("push", "joint/hinge.effort", scale=5.0)
    return scene


def simulation() -> sh.Simulation:
    return sh.Simulation(described(), 0.002)


READ = {
    "body": {"spin": "angular_velocity", "centre": "com_local"},
    "rope": {"spin": "angular_velocity"},
    "joint": {"force": "effort"},
    "simulation": {"body_spin": "body_angular_velocity", "control": "commands", "controls": "inputs"},
    "report": {"grades": "fallbacks", "parts": "substeps"},
}
CALLED = {
    "gaps": ("constraint_error", ()),
    "misfit": ("constraint_velocity_error", ()),
    "ray": ("ray_cast", ((0, 0, 5), (0, 0, -1))),
    "cast": ("shape_cast", (sh.Sphere(0.1), (0, 0, 5), (0, 0, 0, 1), (0, 0, -1))),
}


def same(a, b) -> bool:
    if isinstance(a, dict | list | tuple):
        return a == b
    return a is b or np.array_equal(np.asarray(a), np.asarray(b))


def test_values_are_read_and_written_under_both_names():
    sim = simulation()
    report = sim.step()
    things = {"body": sim.body("bar"), "rope": sim.rope("rope"), "joint": sim.joint("hinge"), "simulation": sim, "report": report}
    for kind, names in READ.items():
        for former, new in names.items():
            with pytest.warns(FutureWarning, match=rf"\.{former} is now {new}"):
                found = getattr(things[kind], former)
            assert same(found, getattr(things[kind], new)), former
            assert new in present_names(type(things[kind])) and former not in present_names(type(things[kind]))
    with pytest.warns(FutureWarning, match="force is now effort"):
        sim.joint("hinge").force = 2.5
    assert sim.joint("hinge").effort == 2.5
    with pytest.warns(FutureWarning, match="spin is now angular_velocity"):
        sim.body("bar").spin = (0, 0.5, 0)
    assert sim.body("bar").angular_velocity[1] == pytest.approx(0.5)


def test_methods_can_be_called_under_both_names():
    sim = simulation()
    sim.step()
    for former, (new, given) in CALLED.items():
        with pytest.warns(FutureWarning, match=f"{former} is now {new}"):
            found = getattr(sim, former)(*given)
        wanted = getattr(sim, new)(*given)
        if hasattr(wanted, "distance"):
            assert found.distance == wanted.distance and found.body == wanted.body
        else:
            assert np.array_equal(found, wanted)


def test_a_scene_takes_former_arguments_tables_and_targets():
    scene = sh.Scene()
    with pytest.warns(FutureWarning, match=r"add_body\(spin=\) is now angular_velocity="):
        scene.add_body("bar", sh.Box(1, 0.1, 0.1), spin=(0, 0, 2.0))
    assert scene.bodies["bar"].angular_velocity[2] == 2.0
    with pytest.raises(sh.ArgumentError, match="one of the two, got both"):
        scene.add_body("b", sh.Box(1, 1, 1), spin=(0, 0, 1), angular_velocity=(0, 0, 1))
    scene.add_joint("hinge", sh.Revolute("z"), scene.world, "bar", position=(0, 0, 0))
    with pytest.warns(FutureWarning, match="add_control is now add_input"):
        scene.add_control("push", "joint/hinge.effort")
    with pytest.warns(FutureWarning, match=r"'joint/hinge\.effort'"):
        scene.add_input("other", "joint/hinge.force")
    with pytest.warns(FutureWarning, match=r"Wheel\(cast=\) is now raycast="):
        assert sh.Wheel(0.3, 0.2, 20.0, cast=True).raycast
    with pytest.warns(FutureWarning, match="SolverSequential"):
        assert sh.SolverImpulse is sh.SolverSequential


FILE = """
[body.bar]
shape = {{type = "Box", x = 1.0, y = 0.1, z = 0.1}}
{spin} = [0.0, 0.0, 2.0]
[joint.hinge]
type = "Revolute"
axis = "z"
parent = "world"
child = "bar"
position = [0.0, 0.0, 0.0]
[{table}.push]
target = "joint/hinge.effort"
"""


def test_a_scene_file_takes_former_keys():
    with pytest.warns(FutureWarning) as told:
        former = read_text(FILE.format(spin="spin", table="control"), "former")
    assert {"[control]" in str(w.message) or "spin" in str(w.message) for w in told} == {True} and len(told) == 2
    new = read_text(FILE.format(spin="angular_velocity", table="input"), "new")
    assert former.bodies["bar"].angular_velocity[2] == new.bodies["bar"].angular_velocity[2] == 2.0
    assert former.inputs == new.inputs


def test_what_a_joint_carries_is_its_effort_and_its_drive():
    """A servo that holds a bar horizontal gives its weight's moment; what a program adds is subtracted by the servo."""
    scene = sh.Scene()
    scene.add_body("bar", mass=2.0, inertia=(0.1, 0.1, 0.1), position=(0.5, 0, 0))
    scene.add_joint("hinge", sh.Revolute("y", drive=sh.Servo(kp=1e4, kd=100.0)), scene.world, "bar", position=(0, 0, 0))
    sim = sh.Simulation(scene, 0.002)
    joint = sim.joint("hinge")
    joint.effort = -3.0
    sim.run(4.0)
    assert joint.applied_effort == pytest.approx(-2.0 * 9.81 * 0.5 * np.cos(joint.position), rel=1e-9)
    assert joint.drive.force == pytest.approx(joint.applied_effort + 3.0, rel=1e-9)


def test_former_is_seen_on_its_class():
    assert isinstance(vars(type(simulation()))["gaps"], Former)


def test_words_of_records_and_studies_take_former_values():
    sim = simulation()
    with pytest.warns(FutureWarning, match="spin is now angular_velocity"), sim.record("body/bar.spin") as log:
        sim.step(3)
    assert log["body/bar.spin"].shape == (4, 3) and np.any(log["body/bar.spin"])
    known = {"duration": 0.02, "dt": 0.002, "workers": 1}
    with pytest.warns(FutureWarning, match="spin is now angular_velocity"):
        former = sh.run_study(described(), {"body/bar.spin[1]": [0.1, 0.2]}, "joint/hinge.qd", **known)
    new = sh.run_study(described(), {"body/bar.angular_velocity[1]": [0.1, 0.2]}, "joint/hinge.qd", **known)
    assert np.array_equal(former["joint/hinge.qd"], new["joint/hinge.qd"]) and np.ptp(new["joint/hinge.qd"]) > 0.02


def test_a_former_target_warns_once_and_is_kept_by_its_new_name():
    scene = described()
    with pytest.warns(FutureWarning) as told:
        scene.add_input("other", "joint/hinge.force", scale=2.0)
        sim = sh.Simulation(scene, 0.002)
    assert [w.filename for w in told] == [__file__] and scene.inputs["other"].target == "joint/hinge.effort"
    sim.inputs["other"] = 1.0
    sim.step()
    assert sim.joint("hinge").effort == 2.0
