"""Names that do not exist are refused with what is probably meant; likely mistakes in numbers are told."""

import copy
import math
import pickle

import numpy as np
import pytest

import sharnir as sh
from sharnir.errors import Spelled


def pendulum():
    scene = sh.Scene()
    scene.add_body("rod", sh.Box(1, 0.1, 0.1), mass=1.0, position=(0.5, 0, 0))
    scene.add_joint("pin", sh.Revolute("y"), "world", "rod", position=(0, 0, 0))
    return scene


ARGUMENTS = {
    r"Revolute has no argument 'limts'; is 'limit' meant\?": lambda: sh.Revolute("y", limts=(0, 1)),
    r"Material has no argument 'mu'; is 'friction' meant\?": lambda: sh.Material(mu=0.5),
    r"Servo has no argument 'stiffness'; is 'kp' meant\?; it takes position, velocity": lambda: sh.Servo(stiffness=1.0),
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


WORDS = {
    # of arguments: (what is called, the wrong word, what is meant)
    "shapes": lambda: [
        (sh.Sphere, "radious", "'radius'"), (sh.Sphere, "r", "'radius'"), (sh.Sphere, "diameter", "radius (half of it)"),
        (sh.Box, "size", "x, y, z (full lengths, m)"), (sh.Box, "half_extents", "x, y, z (full lengths, m)"),
        (sh.Box, "rotaton", "'rotation'"), (sh.Capsule, "lenght", "'length'"), (sh.Cylinder, "height", "'length'"),
        (sh.Mesh, "file", "'source'"), (sh.Compound, "pos", "'position'"),
    ],
    "joints": lambda: [
        (sh.Revolute, "limits", "'limit'"), (sh.Revolute, "range", "'limit'"), (sh.Revolute, "lower", "limit=(lower, upper)"),
        (sh.Revolute, "frictionloss", "'friction'"), (sh.Revolute, "stiffness", "spring=(stiffness, rest)"),
        (sh.Revolute, "kp", "drive=sharnir.Servo(kp=…, kd=…)"), (sh.Revolute, "motor", "'drive'"),
        (sh.Revolute, "armature", "drive=sharnir.Servo(armature=…)"), (sh.Servo, "stiffness", "'kp'"),
        (sh.Servo, "damping", "'kd'"),
        (sh.Servo, "max_torque", "'max_force'"), (sh.Servo, "forcerange", "'max_force'"), (sh.Gear, "ration", "'ratio'"),
    ],
    "materials": lambda: [
        (sh.Material, "friction_coefficient", "'friction'"), (sh.Material, "lateral_friction", "'friction'"),
        (sh.Material, "bounce", "'restitution'"), (sh.Material, "bounciness", "'restitution'"),
        (sh.Material, "rolling_friction", "'rolling'"), (sh.Material, "spinning_friction", "'torsion'"),
        (sh.Material, "static_friction", "'friction'"),
    ],
    "scenes": lambda: [
        (sh.Scene, "dt", "sharnir.Simulation(scene, dt=…)"), (sh.Scene, "gravty", "'gravity'"),
        (sh.Scene().add_body, "pos", "'position'"), (sh.Scene().add_body, "quat", "'rotation'"),
        (sh.Scene().add_body, "orientation", "'rotation'"),
        (sh.Scene().add_body, "euler", "rotation=sharnir.rpy(roll, pitch, yaw)"),
        (sh.Scene().add_body, "fixed", "motion='fixed'"), (sh.Scene().add_body, "static", "motion='fixed'"),
        (sh.Scene().add_body, "friction", "material=sharnir.Material(friction=…)"),
        (sh.Scene().add_body, "restitution", "material=sharnir.Material(restitution=…)"),
        (sh.Scene().add_body, "rgba", "'color'"), (sh.Scene().add_body, "size", "shape=sharnir.Box(x, y, z)"),
        (sh.Scene().add_body, "geom", "'shape'"), (sh.Scene().add_ground, "mu", "material=sharnir.Material(friction=…)"),
        (sh.Scene().add_joint, "axis", "joint=sharnir.Revolute(axis='y')"), (sh.Scene().add_joint, "enable", "'enabled'"),
        (sh.Scene().add_joint, "limit", "joint=sharnir.Revolute('y', limit=(lower, upper))"),
        (sh.Scene().add_joint, "pivot", "'position'"), (sh.Scene().add_spring, "k", "'stiffness'"),
        (sh.Scene().add_spring, "rest_length", "'rest'"), (sh.Scene().add_rope, "diameter", "radius (half of it)"),
        (sh.Scene().add_rope, "start_body", "attach=(…, …) (bodies at the ends)"), (sh.terrain.hill, "hight", "'height'"),
        (sh.Wheel, "raduis", "'radius'"), (sh.sensors.Lidar, "cout", "'count'"),
    ],
}  # fmt: skip


@pytest.mark.parametrize("of", WORDS)
def test_misspelt_and_foreign_arguments_are_answered_with_ours(of):
    for called, word, instead in WORDS[of]():
        with pytest.raises(sh.ArgumentError) as told:
            called(**{word: 1.0})
        assert f"has no argument {word!r}; is {instead} meant?; it takes " in str(told.value)


NAMES = {
    "the library": (lambda: sh, {
        "Hinge": "'Revolute'", "HingeJoint": "'Revolute'", "BallJoint": "'Spherical'", "Slider": "'Prismatic'", "Weld": "'Fixed'",
        "FixedJoint": "'Fixed'", "FreeJoint": "'Free'", "Cuboid": "'Box'", "Plane": "Scene.add_ground()",
        "Ground": "Scene.add_ground()", "World": "'Scene'", "Simulator": "'Simulation'",
        "RigidBody": "Scene.add_body(name, shape)",
        "loadURDF": "'load_urdf'", "load_sdf": "'load_urdf'", "sphere": "'Sphere'", "Spere": "'Sphere'",
        "connect": "Simulation(scene, dt)",
    }),
    "a scene": (sh.Scene, {
        "add_sphere": "add_body(name, sharnir.Sphere(radius), mass=…)", "add_plane": "'add_ground'", "add_floor": "'add_ground'",
        "add_hinge": "add_joint(name, sharnir.Revolute('y'), parent, child, position=…)", "add_bdy": "'add_body'",
        "add_motor": "'set_drive'", "add_wheel": "sharnir.Wheel(radius, width, mass).add(scene, …)", "addBody": "'add_body'",
    }),
    "a simulation": (lambda: sh.Simulation(pendulum(), 0.01), {
        "setp": "'step'", "timestep": "'dt'", "qpos": "'q'", "qvel": "'qd'", "ctrl": "'commands'", "render": "'view'",
        "simulate": "'run'", "raycast": "'ray_cast'", "num_joints": "'joints'", "mj_step": "'step'",
    }),
    "a body": (lambda: sh.Simulation(pendulum(), 0.01).body("rod"), {
        "postion": "'position'", "xpos": "'position'", "quat": "'rotation'", "linear_velocity": "'velocity'",
        "omega": "'angular_velocity'", "add_force": "'apply_force'", "set_position": "'position'", "apply_impulse": "'velocity'",
    }),
    "a joint": (lambda: sh.Simulation(pendulum(), 0.01).joint("pin"), {
        "angle": "'position'", "qpos": "'position'", "torque": "'effort'", "range": "'limit'", "set_target": "drive.position",
        "target": "drive.position", "get_position": "'position'", "veloctiy": "'velocity'",
    }),
    "values": (lambda: sh.Simulation(pendulum(), 0.01).energy(), {"kinetik": "'kinetic'", "kinetic_energy": "'kinetic'"}),
    "modules": (lambda: sh.dynamics, {"jacobean": "'jacobian'", "ik": "'inverse_kinematics'", "massmatrix": "'mass_matrix'"}),
}  # fmt: skip


@pytest.mark.parametrize("of", NAMES)
def test_misspelt_and_foreign_attributes_are_answered_with_ours(of):
    make, words = NAMES[of]
    thing = make()
    for word, instead in words.items():
        with pytest.raises(AttributeError) as told:
            getattr(thing, word)
        assert repr(word) in str(told.value) and f"; is {instead} meant?" in str(told.value)


def test_a_misspelt_attribute_cannot_be_assigned():
    sim = sh.Simulation(pendulum(), 0.01)
    for word, instead in (("postion", "position"), ("speed", "velocity")):
        with pytest.raises(AttributeError, match=f"has no {word!r}; is '{instead}' meant"):
            setattr(sim.body("rod"), word, 1.0)
    for thing, word in ((sim, "gravitee"), (sim.joint("pin"), "angle"), (sim.joint("pin").drive, "target")):  # often written to
        with pytest.raises(AttributeError, match=f"no attribute {word!r}"):
            setattr(thing, word, 1.0)


OPTIONS = {
    "num_envs": "'worlds'", "gravity": "sharnir.Scene(gravity=(0, 0, -9.81))", "substeps": "dt=… (a smaller step, s)",
    "integrator": "'solver'", "thread": "'threads'",
}  # fmt: skip


@pytest.mark.parametrize("word", OPTIONS)
def test_options_of_a_simulation_that_do_not_exist(word):
    with pytest.raises(sh.SimulationError) as told:
        sh.Simulation(pendulum(), 0.01, **{word: 1})
    words = str(told.value)
    assert f"{word!r} is not an option of solver 'direct'; allowed: sleep" in words and words.endswith(
        f"; is {OPTIONS[word]} meant?"
    )


def test_words_that_are_like_nothing_are_not_guessed_at():
    for word in ("close", "sprocket", "xyzzy"):
        with pytest.raises(AttributeError) as told:
            getattr(sh.Simulation(pendulum(), 0.01), word)
        assert "meant?" not in str(told.value)


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


def test_an_error_inside_a_property_is_not_taken_for_a_misspelling():
    class Thing(Spelled):
        @property
        def size(self):
            raise AttributeError("deep inside")

    with pytest.raises(AttributeError, match="deep inside"):
        _ = Thing().size
