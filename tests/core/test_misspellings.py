"""Names that do not exist are refused with what is probably meant; likely mistakes in numbers are told."""

import copy
import math
import pickle

import numpy as np
import pytest

import sharnir as sh


def pendulum():
    scene = sh.Scene()
    scene.add_body("rod", sh.Box(1, 0.1, 0.1), mass=1.0, position=(0.5, 0, 0))
    scene.add_joint("pin", sh.Revolute("y"), "world", "rod", position=(0, 0, 0))
    return scene


ARGUMENTS = {
    r"Revolute has no argument 'limts'; is 'limit' meant\?": lambda: sh.Revolute("y", limts=(0, 1)),
    r"Material has no argument 'mu'; is 'friction' meant\?": lambda: sh.Material(mu=0.5),
    r"Servo has no argument 'stiffness'; it takes position, velocity": lambda: sh.Servo(stiffness=1.0),
    r"Box: missing a required argument: 'y'; it takes x, y, z, .* got \(\(1, 1, 1\)\)": lambda: sh.Box((1, 1, 1)),
    r"Sphere: too many positional arguments": lambda: sh.Sphere(1, 2),
    r"Friction has no argument 'statik'; is 'static' meant\?": lambda: sh.Friction(statik=1.0),
    r"Scene.add_body has no argument 'weight'; is 'mass' meant\?": lambda: sh.Scene().add_body("b", sh.Sphere(1), weight=1.0),
    r"Scene.add_joint has no argument 'anchor'; is 'position' meant\?": lambda: pendulum().add_joint(
        "n", sh.Fixed(), "world", "rod", anchor=(0, 0, 0)
    ),
    r"Simulation\(scene, dt\): the step dt in s is missing, as dt=0.01, not timestep": lambda: sh.Simulation(
        pendulum(), timestep=0.01
    ),
}


@pytest.mark.parametrize("said", ARGUMENTS)
def test_arguments_that_do_not_exist_are_refused_by_name(said):
    with pytest.raises(sh.ArgumentError, match=said) as told:
        ARGUMENTS[said]()
    assert isinstance(told.value, sh.SceneError) and isinstance(told.value, TypeError)


def test_attributes_that_do_not_exist_are_refused_by_name():
    sim = sh.Simulation(pendulum(), 0.01)
    for what, name, instead in (
        (sim.joint("pin"), "angle", "position"),
        (sim.body("rod"), "velocty", "velocity"),
        (sim.body("rod"), "quat", "rotation"),
        (sim, "bdy", "body"),
    ):
        with pytest.raises(AttributeError, match=f"has no '{name}'; is '{instead}' meant"):
            getattr(what, name)
    assert not hasattr(sim, "_anything") and getattr(sim, "anything", None) is None


def test_objects_that_check_their_arguments_are_copied_and_pickled():
    for made in (sh.Box(1, 2, 3), sh.Revolute("-y", limit=(0, 1)), sh.Material(friction=0.3), sh.Servo(kp=2.0), sh.Friction(1.0)):
        assert repr(copy.deepcopy(made)) == repr(made) == repr(pickle.loads(pickle.dumps(made)))


def test_an_axis_with_a_minus_turns_the_other_way_round():
    speeds = []
    for axis in ("y", "-y", (0, -2, 0)):
        scene = sh.Scene()
        scene.add_body("rod", sh.Box(1, 0.1, 0.1), mass=1.0, position=(0.5, 0, 0))
        scene.add_joint("pin", sh.Revolute(axis), "world", "rod", position=(0, 0, 0))
        sim = sh.Simulation(scene, 0.01)
        sim.run(0.1)
        speeds.append(float(sim.joint("pin").velocity))
    assert speeds[0] > 0.1 and speeds[1] == pytest.approx(-speeds[0], rel=1e-12) and speeds[2] == pytest.approx(speeds[1])


def test_rotations_by_angles():
    np.testing.assert_allclose(sh.about("x", math.pi), (1, 0, 0, 0), atol=1e-15)
    np.testing.assert_allclose(sh.about("-z", 0.4), sh.about((0, 0, 3), -0.4), atol=1e-15)
    roll, pitch, yaw = 0.3, -0.5, 0.8
    c, s = math.cos, math.sin
    x = np.array([[1, 0, 0], [0, c(roll), -s(roll)], [0, s(roll), c(roll)]])
    y = np.array([[c(pitch), 0, s(pitch)], [0, 1, 0], [-s(pitch), 0, c(pitch)]])
    z = np.array([[c(yaw), -s(yaw), 0], [s(yaw), c(yaw), 0], [0, 0, 1]])
    scene = sh.Scene()
    scene.add_body("b", sh.Box(1, 2, 3), mass=1.0, rotation=sh.rpy(roll, pitch, yaw))
    q = sh.Simulation(scene, 0.01).body("b").rotation
    u, w = q[:3], q[3]
    cross = np.array([[0, -u[2], u[1]], [u[2], 0, -u[0]], [-u[1], u[0], 0]])
    np.testing.assert_allclose((w * w - u @ u) * np.eye(3) + 2 * np.outer(u, u) + 2 * w * cross, z @ y @ x, atol=1e-14)
    for wrong in (lambda: sh.about("w", 1.0), lambda: sh.about("x", math.nan), lambda: sh.about((0, 0, 0), 1.0)):
        with pytest.raises(sh.SceneError):
            wrong()


def test_degrees_and_quaternions_in_another_order_are_told():
    with pytest.warns(sh.SceneWarning, match=r"a limit of 90 rad is 14.3 turns; are degrees meant\? math.radians\(90\)"):
        scene = sh.Scene()
        scene.add_body("b", sh.Sphere(0.1), mass=1.0)
        scene.add_joint("j", sh.Revolute("y", limit=(-90, 90)), "world", "b", position=(0, 0, 0))
    with pytest.warns(sh.SceneWarning, match=r"half a turn about x: quaternions are \(x, y, z, w\)"):
        sh.Scene().add_body("b", sh.Sphere(0.1), mass=1.0, rotation=(1, 0, 0, 0))
