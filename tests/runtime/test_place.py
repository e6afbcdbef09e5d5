"""A mechanism with a free base is put down somewhere: all that joints hold together goes along."""

import numpy as np
import pytest

import sharnir as sh
from sharnir.core.spatial import quat_rotate


def robot(worlds=1, **options):
    """A trunk with two legs of two links and a loop: a rod between the feet."""
    scene = sh.Scene()
    scene.add_body("trunk", sh.Box(0.4, 0.2, 0.1), mass=4.0, com=(0.05, 0, 0.01))
    for side, x in (("left", -0.1), ("right", 0.1)):
        scene.add_body(f"{side} thigh", sh.Box(0.04, 0.04, 0.2), mass=1.0, position=(x, 0, -0.1))
        scene.add_body(f"{side} shin", sh.Box(0.03, 0.03, 0.2), mass=0.5, position=(x, 0, -0.3))
        scene.add_joint(f"{side} hip", sh.Universal(), "trunk", f"{side} thigh", position=(x, 0, 0))
        scene.add_joint(f"{side} knee", sh.Revolute("y"), f"{side} thigh", f"{side} shin", position=(x, 0, -0.2))
    scene.add_joint("rod", sh.Distance(), "left shin", "right shin", position=[(-0.1, 0, -0.4), (0.1, 0, -0.4)])
    scene.add_body("other", sh.Sphere(0.1), mass=1.0, position=(3, 0, 0))
    return sh.Simulation(scene, 0.002, worlds=worlds, **options)


@pytest.mark.parametrize("solver", ["direct", "sequential"])
def test_all_that_hangs_on_a_body_goes_along(solver):
    sim = robot(solver=solver)
    sim.run(0.1)
    q, qd, kinetic = sim.q.copy(), sim.qd.copy(), sim.energy().kinetic
    before = {name: (body.position.copy(), body.velocity.copy()) for name, body in sim.bodies.items() if name != "world"}
    trunk, start = sim.body("trunk"), sim.body("trunk").rotation.copy()
    turn = sh.rpy(0.3, -0.4, 2.0)
    trunk.place((1, 2, 3), turn, velocity=quat_rotate(turn, trunk.velocity))
    np.testing.assert_allclose(start, (0, 0, 0, 1), atol=0.1)
    np.testing.assert_allclose(trunk.position, (1, 2, 3), atol=1e-14)
    np.testing.assert_allclose(sim.q, q, atol=1e-13)
    np.testing.assert_allclose(sim.qd, qd, atol=1e-12)
    assert np.abs(sim.constraint_error()).max() < 1e-8
    for name in ("position", "velocity"):
        np.testing.assert_array_equal(getattr(sim.body("other"), name), before["other"][name == "velocity"])
    assert sim.step(20).converged
    assert sim.energy().kinetic > 0.5 * kinetic


def test_some_worlds_are_placed_and_the_others_go_on_to_the_bit():
    sims = [robot(4), robot(4)]
    for sim in sims:
        sim.run(0.05)
    sims[0].body("trunk").place((0, 0, 5), velocity=(0, 0, 0), angular_velocity=(0, 0, 1), worlds=[1, 3])
    np.testing.assert_allclose(sims[0].body("trunk").position[[1, 3]], [(0, 0, 5)] * 2, atol=1e-14)
    np.testing.assert_allclose(sims[0].body("trunk").angular_velocity[[1, 3]], [(0, 0, 1)] * 2, atol=1e-14)
    for sim in sims:
        sim.run(0.05)
    a, b = (sim.state.position.numpy() for sim in sims)
    np.testing.assert_array_equal(a[:, [0, 2]], b[:, [0, 2]])
    assert np.abs(a[:, 1] - b[:, 1]).max() > 1.0


def test_a_part_that_came_off_stays():
    sim = robot(2)
    sim.joint("left hip").enabled = np.array([False, True])
    sim.joint("rod").enabled = False
    before = sim.body("left shin").position.copy()
    sim.body("trunk").place((0, 0, 2))
    np.testing.assert_array_equal(sim.body("left shin").position[0], before[0])
    np.testing.assert_allclose(sim.body("left shin").position[1], before[1] + (0, 0, 2), atol=1e-14)


def test_what_cannot_be_placed_is_refused_by_name():
    scene = sh.Scene()
    scene.add_body("arm", sh.Box(1, 0.1, 0.1), mass=1.0, position=(0.5, 0, 0))
    scene.add_joint("pin", sh.Revolute("y"), "world", "arm", position=(0, 0, 0))
    scene.add_body("load", sh.Sphere(0.1), mass=1.0, position=(0, 3, 0))
    scene.add_rope("rope", start=(0, 3, 0.1), end=(0, 3, 1), attach=("load", None), segments=4, mass_per_length=0.1)
    scene.add_body("lift", motion="kinematic", position=(0, 6, 0))
    sim = sh.Simulation(scene, 0.002)
    for name, words in (
        ("arm", "rope 'rope' would not follow"),
        ("lift", "body 'lift' moves as prescribed"),
        ("world", "body 'world' is fixed"),
    ):
        with pytest.raises(sh.SimulationError, match=words):
            sim.body(name).place((0, 0, 1))
    del scene.ropes["rope"]
    sim = sh.Simulation(scene, 0.002)
    with pytest.raises(sh.SimulationError, match="body 'arm' cannot be placed: joints hold it, or what hangs on it, to a body"):
        sim.body("arm").place((0, 0, 1))
    with pytest.raises(sh.SimulationError, match=r"position .m. is 3 finite numbers"):
        sim.body("load").place((0, 0))
    with pytest.raises(sh.SimulationError, match="worlds are a mask of 1 booleans"):
        sim.body("load").place((0, 0, 1), worlds=[2])


def test_drives_of_a_loaded_robot_keep_their_bounds():
    scene = sh.Scene()
    last = "world"
    for i in range(3):
        scene.add_body(f"b{i}", sh.Box(0.1, 0.1, 0.3), mass=1.0, position=(0, 0, -0.15 - 0.3 * i))
        drive = sh.Servo(max_force=30.0) if i < 2 else None
        scene.add_joint(f"hip{i}" if i < 2 else "foot", sh.Revolute("y", drive=drive), last, f"b{i}", position=(0, 0, -0.3 * i))
        last = f"b{i}"
    assert scene.set_drive("hip*", sh.Servo(kp=200.0, kd=20.0)) == ["hip0", "hip1"]
    assert [scene.joints[name].joint.drive.max_force for name in ("hip0", "hip1")] == [30.0, 30.0]
    assert scene.set_drive("foot", sh.Servo(kp=1.0, max_force=2.0)) == ["foot"]
    sim = sh.Simulation(scene, 0.002)
    sim.target.position = [0.3, -0.2, 0.0]
    sim.run(3.0)
    sim.reset()
    assert sim.joint("hip0").drive.kp == 200.0
    sim.target.position = [0.3, -0.2, 0.0]
    sim.run(3.0)
    assert abs(sim.joint("hip0").position - 0.3) < 0.05
    with pytest.raises(sh.SceneError, match="set_drive: no joint is called 'knee'; joints are hip0, hip1, foot"):
        scene.set_drive("knee", sh.Servo())
    with pytest.raises(sh.SceneError, match=r"joint 'hip0' .Revolute.* a drive is a Servo"):
        scene.set_drive("*", 3)
