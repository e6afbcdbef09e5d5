"""Mistakes of newcomers: the message names the object, the value, and what is allowed, so that nobody has to read the docs."""

import re

import numpy as np
import pytest

import sharnir as sh


def two():
    scene = sh.Scene()
    scene.add_body("a", sh.Sphere(0.1), mass=1.0)
    scene.add_body("b", sh.Sphere(0.1), mass=1.0, position=(1, 0, 0))
    return scene


def body(**given):
    sh.Scene().add_body("b", **({"shape": sh.Sphere(0.1), "mass": 1.0} | given))


def joint(kind, parent="world", child="a", **given):
    two().add_joint("j", kind, parent, child, **({"position": (0, 0, 0)} | given))


def loaded(text, folder):
    path = folder / "s.toml"
    path.write_text(text)
    sh.load_scene(path)


DESCRIBED = {
    # numbers, units, shapes of arrays
    "mass is a positive finite number, got -1.0": lambda: body(mass=-1.0),
    "mass is a positive finite number, got 1 kg": lambda: body(mass="1 kg"),
    "inertia must obey the triangle inequality (no principal moment above": lambda: body(inertia=(1, 1, 5)),
    "inertia must be 3 diagonal or 3×3 values in kg·m², got shape (2,)": lambda: body(inertia=(1, 1)),
    "inertia must be positive definite, got principal moments (-1, -1, -1)": lambda: body(inertia=-np.eye(3)),
    "inertia must be symmetric, got [[1.0, 2.0": lambda: body(inertia=[[1, 2, 0], [0, 1, 0], [0, 0, 1]]),
    "position (m) is three finite numbers, got (1, 2)": lambda: body(position=(1, 2)),
    "body 'b': position (m) is three finite numbers, got array([[0.]": lambda: body(position=np.zeros((3, 1))),
    "velocity (m/s) is three finite numbers, got 3.0": lambda: body(velocity=3.0),
    "a rotation is a finite unit quaternion (x, y, z, w), got array([ 0.,  0., 90.])": lambda: body(rotation=(0, 0, 90)),
    "a rotation is a finite unit quaternion (x, y, z, w), got array([[1., 0., 0.]": lambda: body(rotation=np.eye(3)),
    "a rotation has unit length to 1e-3, got [0.0, 0.0, 0.0, 0.0] of length 0": lambda: body(rotation=(0, 0, 0, 0)),
    "takes mass or density, not both, got mass=1.0 and density=1000": lambda: body(density=1000),
    "color is (red, green, blue) from 0 to 1, '#rrggbb' or one of black": lambda: body(color=(255, 0, 0)),
    "gravity (m/s²) is three finite numbers, got -9.81": lambda: sh.Scene(gravity=-9.81),
    "Box: x must be a positive finite length in m, got -1": lambda: sh.Box(-1, 1, 1),
    "Cylinder: missing a required argument: 'length'; it takes radius, length": lambda: sh.Cylinder(0.1),
    "Mesh of 3 vertices, 1 faces: faces must index the vertices 0 to 2, got 0 to 5": lambda: sh.Mesh(
        (np.zeros((3, 3)), np.array([[0, 1, 5]]))
    ),
    "Material: restitution is a number from 0 to 1, got 1.5": lambda: sh.Material(restitution=1.5),
    "Material: friction is a number or (along, across), got (1, 0.5, 0.1)": lambda: sh.Material(friction=(1, 0.5, 0.1)),
    "Servo: position is a finite number, got 'up'": lambda: sh.Servo(position="up"),
    "Friction: dynamic is at most static (1), got 2": lambda: sh.Friction(static=1, dynamic=2),
    "rpy: missing a required argument: 'pitch'; it takes roll, pitch, yaw": lambda: sh.rpy((0, 0, 1)),
    "about: angle (rad) is a finite number, got 'y'": lambda: sh.about(0.8, "y"),
    # the wrong kind of thing
    "shape is one of the shapes of sharnir (Box, Sphere, …), got 'sphere'": lambda: body(shape="sphere"),
    "shape is one of the shapes of sharnir (Box, Sphere, …), got <class": lambda: body(shape=sh.Sphere),
    "body 'b': material is a Material(friction=…), got 'steel'": lambda: body(material="steel"),
    "body 'b': collide is True, False or None, got 'no'": lambda: body(collide="no"),
    "joint is one of the joints of sharnir (Revolute, Spherical, …), got 'revolute'": lambda: joint("revolute"),
    "a drive is a Servo, DCMotor, Motor, Engine or HydraulicCylinder, got 'servo'": lambda: joint(
        sh.Revolute("y", drive="servo")
    ),
    "a spring is (stiffness, rest), got 10": lambda: joint(sh.Revolute("y", spring=10)),
    "a limit is (lower, upper), got 1.0": lambda: joint(sh.Revolute("y", limit=1.0)),
    "a limit is (lower, upper), got (0, None)": lambda: joint(sh.Revolute("y", limit=(0, None))),
    "Limit: lower is at most upper, got (1, -1)": lambda: joint(sh.Revolute("y", limit=(1, -1))),
    "limit needs a free axis, and there is none": lambda: joint(sh.Fixed(limit=(0, 1))),
    "axis is 'x', 'y', 'z' (with or without a minus) or a finite vector other than zero, got 2": lambda: sh.Revolute(2),
    "scene is a Scene or a Model, got 'scene.toml'": lambda: sh.Simulation("scene.toml", 0.01),
    "terrain 't': heights are numbers (along x, along y), got 'hills'": lambda: two().add_terrain("t", "hills"),
    "terrain 't': size is (x, y) in m, got None": lambda: two().add_terrain("t", np.zeros((3, 3))),
    "pair 'a', 'b': material is a Material(friction=…), got 0.5": lambda: two().set_pair("a", "b", 0.5),
    # names, and the order of arguments
    "a name is a non-empty string, got Sphere(": lambda: two().add_body(sh.Sphere(0.1), mass=1.0),
    "the name 'world' is taken": lambda: two().add_body("world", sh.Sphere(0.1), mass=1.0),
    "joint 'j': parent and child are both 'a'; allowed are two different bodies": lambda: joint(sh.Revolute("y"), "a", "a"),
    "joint 'j': child 'c' is not a body of the scene; available: 'world', 'a', 'b'": lambda: joint(sh.Revolute("y"), "a", "c"),
    "joint 'j': child None is not a body of the scene": lambda: two().add_joint("j", sh.Revolute("y"), "a", position=(0, 0, 0)),
    "joint is one of the joints of sharnir (Revolute, Spherical, …), got 'a'": lambda: two().add_joint(
        "j", "a", "b", sh.Revolute("y"), position=(0, 0, 0)
    ),
    "give position= (world anchor, m), or parent_frame= and child_frame=": lambda: joint(sh.Revolute("y"), position=None),
    "a Distance takes two points, position=(on the parent, on the child), got (0, 0, 0)": lambda: joint(sh.Distance()),
    "add_joint: multiple values for argument 'parent'; it takes name, joint, parent": lambda: two().add_joint(
        "j", sh.Revolute("y"), "world", "a", parent="a", position=(0, 0, 0)
    ),
    "ignore: b 'c' is not a body of the scene; available: 'world', 'a', 'b'": lambda: two().ignore("a", "c"),
    "set_drive: no joint is called 'nix'; joints are none": lambda: two().set_drive("nix", sh.Servo(kp=1)),
    "kind is one of 'imu', 'force', 'distance', 'lidar', 'depth', got 'gps'": lambda: two().add_sensor("s", "gps", "a"),
    "rope 'r': start is three finite numbers (m), got 'a'": lambda: two().add_rope("r", "a", "b"),
    "a rope of 0.5 m does not reach over 1 m from start to end": lambda: two().add_rope("r", (0, 0, 0), (1, 0, 0), length=0.5),
    "IMU: missing a required argument: 'where'": lambda: sh.sensors.IMU("c"),
    # of a simulation
    "dt is a positive finite number of seconds, got -0.01": lambda: sh.Simulation(two(), -0.01),
    "the rest is given by name, as worlds=4, got (4,)": lambda: sh.Simulation(two(), 1 / 60, 4),
    "worlds is a whole number of at least 1, got 1.5": lambda: sh.Simulation(two(), 0.01, worlds=1.5),
    "device 'gpu' is not here; available: 'cpu'": lambda: sh.Simulation(two(), 0.01, device="gpu"),
    "solver 'newton' is unknown; allowed: 'auto', 'sequential', 'direct'": lambda: sh.Simulation(two(), 0.01, solver="newton"),
    "precision is 'single' or 'double', got 'float32'": lambda: sh.Simulation(two(), 0.01, precision="float32"),
    "the scene is empty: add a body": lambda: sh.Simulation(sh.Scene(), 0.01),
}


@pytest.mark.parametrize("said", DESCRIBED)
def test_what_is_described_wrongly(said):
    with pytest.raises((sh.SceneError, sh.SimulationError), match=re.escape(said)):
        DESCRIBED[said]()


@pytest.fixture(scope="module")
def sim():
    scene = sh.Scene()
    scene.add_body("rod", sh.Box(1, 0.1, 0.1), mass=1.0, position=(0.5, 0, 0))
    scene.add_joint("pin", sh.Revolute("y"), "world", "rod", position=(0, 0, 0))
    return sh.Simulation(scene, 0.01)


def assign(thing, name, value):
    setattr(thing, name, value)


def put(array, index, value):
    array[index] = value


RUNNING = {
    "no body is named 'rodd'; available: 'world', 'rod'; is 'rod' meant?": lambda sim: sim.body("rodd"),
    "no body is named 'rodd'; available: 'rod'; is 'rod' meant?": lambda sim: sim.bodies["rodd"],
    "a joint is taken by its name in brackets, as ['pin'], not .pin": lambda sim: sim.joints.pin,
    "step(n): n is a whole number of at least 1, got 0.01": lambda sim: sim.step(0.01),
    "Simulation.step has no argument 'dt'; is sharnir.Simulation(scene, dt=…) meant?": lambda sim: sim.step(dt=0.1),
    "Simulation.run: missing a required argument: 'duration'": lambda sim: sim.run(),
    "run(duration): a positive finite time in s, got '2 s'": lambda sim: sim.run("2 s"),
    "Simulation.reset has no argument 'seed'; it takes worlds": lambda sim: sim.reset(seed=3),
    "worlds are a mask of 1 booleans, or indices from 0 to 0, got [5]": lambda sim: sim.reset(worlds=[5]),
    "Simulation.set_state: too many positional arguments; it takes q, qd, worlds, got ([0.1])": lambda sim: sim.set_state([0.1]),
    "set_state(q=…) is finite numbers (1,), got [0, 0]": lambda sim: sim.set_state(q=[0, 0]),
    "this array is read-only, element by element: change a copy (q = sim.q.copy())": lambda sim: put(sim.q, 0, 1.0),
    "assign all of it (body.position = (x, y, z))": lambda sim: put(sim.body("rod").inertia, (0, 0), 5.0),
    "body 'rod': force (N) is 3 finite numbers, got 1.0": lambda sim: sim.body("rod").apply_force(1.0),
    "point of a force (m) is 3 finite numbers, got 'tip'": lambda sim: sim.body("rod").apply_force((0, 0, 1), at="tip"),
    "body 'rod': mass (kg) is a finite number above 0, got -1": lambda sim: assign(sim.body("rod"), "mass", -1),
    "body 'rod': position (m) is 3 finite numbers, got 5": lambda sim: assign(sim.body("rod"), "position", 5),
    "a rotation has unit length to 1e-3, got [[0.0, 0.0, 0.0, 2.0]]": lambda sim: assign(
        sim.body("rod"), "rotation", (0, 0, 0, 2)
    ),
    "joint 'pin': the lower limit is at most the upper, got (1, -1)": lambda sim: assign(sim.joint("pin"), "limit", (1, -1)),
    "needs a servo with kp above 0, and its kp is 0; assign drive = Servo(kp=…)": lambda sim: assign(
        sim.joint("pin").drive, "position", 1.0
    ),
    "gravity is three finite numbers in m/s², got -9.81": lambda sim: assign(sim, "gravity", -9.81),
    "record: joint 'pin' has no 'angle'; allowed: anchor": lambda sim: sim.record("joint/pin.angle"),
    "record: no joint matches 'pim'; available: 'pin'": lambda sim: sim.record("joint/pim.position"),
    "record: nothing was recorded; write `with sim.record(…) as log:`": lambda sim: sim.record("joint/pin.q")["joint/pin.q"],
    "contacts: bodies of this scene do not touch; add a ground, or Scene(contact=True)": lambda sim: sim.contacts(),
    "video: a file that ends in .gif or .mp4, got 'x.txt'": lambda sim: sim.video("x.txt"),
    "Viewer has no argument 'portt'; is 'port' meant?": lambda sim: sim.view(portt=8080),
}


@pytest.mark.parametrize("said", RUNNING)
def test_what_is_asked_wrongly_of_a_simulation(said, sim):
    with pytest.raises((sh.SceneError, sh.SimulationError, AttributeError, ValueError), match=re.escape(said)):
        RUNNING[said](sim)


def test_names_that_are_not_there_are_as_in_a_dict(sim):
    assert "rodd" not in sim.bodies and sim.bodies.get("rodd") is None and list(sim.bodies) == ["rod"] and len(sim.joints) == 1
    with pytest.raises(KeyError):
        sim.joints["pim"]


FILES = {
    "s.toml:1: bodies: an unknown table; is 'body' meant?": "[bodies.rod]\nmass = 1.0\n",
    "s.toml:2: body.rod.shap: unknown key, got 'Box'; is 'shape' meant?": '[body.rod]\nshap = "Box"\nmass = 1.0\n',
    "s.toml:2: body.rod.mass: a number, got '1 kg'": '[body.rod]\nmass = "1 kg"\n',
    "s.toml:3: body.rod.friction: unknown key, got 0.5; is material=sharnir.Material(friction=…) meant?": (
        "[body.rod]\nmass = 1.0\nfriction = 0.5\n"
    ),
    "joint.j.type: type 'hinge' is unknown; is 'Revolute' meant?": (
        '[body.rod]\nmass = 1.0\n[joint.j]\ntype = "hinge"\nparent = "world"\nchild = "rod"\nposition = [0, 0, 0]\n'
    ),
    "s.toml:2: simulation.timestep: unknown key, got 0.01; is 'dt' meant?": (
        "[simulation]\ntimestep = 0.01\n[body.rod]\nmass = 1.0\n"
    ),
    "s.toml:2: scene.gravty: unknown key, got [0, 0, -9.81]; is 'gravity' meant?": (
        "[scene]\ngravty = [0, 0, -9.81]\n[body.rod]\nmass = 1.0\n"
    ),
    "s.toml:1: no TOML: Expected ']'": "[body.rod\nmass = 1.0\n",
}


@pytest.mark.parametrize("said", FILES)
def test_what_is_wrong_in_a_file(said, tmp_path):
    with pytest.raises(sh.SceneFileError, match=re.escape(said)):
        loaded(FILES[said], tmp_path)


def upside_down(**gravity):
    scene = sh.Scene(**gravity)
    scene.add_ground()
    scene.add_body("b", sh.Sphere(0.1), mass=1.0, position=(0, 0, 1))
    scene.build()


WARNED = {
    "gravity=(0, 0, 9.81) does not press bodies onto the ground; z is up": lambda: upside_down(gravity=(0, 0, 9.81)),
    "gravity=(0, -9.81, 0) does not press bodies onto the ground; z is up": lambda: upside_down(gravity=(0, -9.81, 0)),
    "rpy: an angle of 90 rad is 14.3 turns; are degrees meant?": lambda: sh.rpy(0, 0, 90),
    "about: an angle of 45 rad is 7.16 turns; are degrees meant?": lambda: sh.about("y", 45.0),
    "dt = 10 s is long for a step; are milliseconds meant? dt=0.01 has it": lambda: sh.Simulation(two(), 10),
    "a limit of 90 rad is 14.3 turns": lambda: joint(sh.Revolute("y", limit=(-90, 90))),
    "(1, 0, 0, 0) is half a turn about x: quaternions are (x, y, z, w)": lambda: body(rotation=(1, 0, 0, 0)),
}


@pytest.mark.parametrize("said", WARNED)
def test_what_may_be_meant_otherwise(said):
    with pytest.warns(sh.SceneWarning, match=re.escape(said)) as told:
        WARNED[said]()
    assert told[0].filename == __file__


def test_limits_in_degrees_are_told_while_running(sim):
    before = sim.joint("pin").limit
    with pytest.warns(sh.SceneWarning, match=r"joint 'pin': a limit of 90 rad is 14.3 turns; are degrees meant\?"):
        sim.joint("pin").limit = (-90, 90)
    sim.joint("pin").limit = before


@pytest.mark.filterwarnings("error")
def test_what_is_right_is_not_told():
    for gravity, normal in (((0, 0, 0), "z"), ((0, -9.81, 0), "y"), ((1, 0, -9.81), "z")):
        scene = sh.Scene(gravity=gravity)
        scene.add_ground(normal=normal)
        scene.add_body("b", sh.Sphere(0.1), mass=1.0, position=(1, 1, 1))
        scene.build()
    sh.rpy(0, 0, 3)
    sh.about("z", 17.5)
    sh.about("z", -12)
