"""Bodies of a joint that is disabled or breaks collide again; a joint to the world does not exclude the ground."""

import numpy as np
import pytest

import sharnir as sh

SOLVERS = ["direct", "sequential"]
quiet = pytest.mark.filterwarnings("ignore::sharnir.StepWarning")


def door(solver, worlds=1, **joint):
    """A door on a hinge to the world, 0.2 m above the ground."""
    scene = sh.Scene()
    scene.add_ground()
    scene.add_body("door", sh.Box(0.9, 0.1, 2.0), mass=20.0, position=(0.45, 0, 1.2))
    scene.add_joint("hinge", sh.Revolute("z"), "world", "door", position=(0, 0, 1.2), **joint)
    return sh.Simulation(scene, 0.005, solver=solver, worlds=worlds)


@quiet
@pytest.mark.parametrize("solver", SOLVERS)
def test_a_door_taken_off_its_hinge_lands_on_the_ground(solver):
    sim = door(solver)
    sim.step(2)
    sim.joint("hinge").enabled = False
    sim.run(1.0)
    assert abs(sim.body("door").position[2] - 1.0) < 1e-3


@quiet
@pytest.mark.parametrize("solver", SOLVERS)
def test_a_door_that_breaks_off_lands_on_the_ground(solver):
    """It breaks inside one long call, on the device."""
    sim = door(solver, break_force=150.0)
    sim.run(1.0)
    assert not sim.joint("hinge").enabled
    assert abs(sim.body("door").position[2] - 1.0) < 1e-3


@quiet
@pytest.mark.parametrize("solver", SOLVERS)
def test_each_world_has_its_own_joints(solver):
    """World 1 lets go, and is as in a simulation of its own, to the bit; a snapshot brings that along."""
    sim, one = door(solver, 3), door(solver)
    sim.joint("hinge").enabled = [True, False, True]
    one.joint("hinge").enabled = False
    for s in (sim, one):
        s.run(0.15)
    kept = sim.snapshot()
    for s in (sim, one):
        s.run(0.6)
    high = sim.body("door").position
    assert np.array_equal(high[1], one.body("door").position)
    assert abs(high[1, 2] - 1.0) < 1e-3 and np.abs(high[[0, 2], 2] - 1.2).max() < 1e-9
    sim.restore(kept)
    sim.run(0.6)
    assert np.array_equal(sim.body("door").position, high)


@quiet
@pytest.mark.parametrize("solver", SOLVERS)
def test_a_hinged_bar_hits_the_ground(solver):
    """A joint to the world does not exclude the ground: a bar falls about its end and comes to lie on the ground."""
    scene = sh.Scene()
    scene.add_ground()
    scene.add_body("bar", sh.Box(1.0, 0.1, 0.1), mass=2.0, position=(0.5, 0, 0.4))
    scene.add_joint("pin", sh.Revolute("y"), "world", "bar", position=(0, 0, 0.4))
    sim = sh.Simulation(scene, 0.002, solver=solver)
    sim.run(1.5)
    angle = sim.joint("pin").position
    low = 0.4 - np.sin(angle) * 1.0 - np.cos(angle) * 0.05
    assert abs(low) < 1e-3, f"its lower edge is at {low} m"


def stacked(solver, joint, overlap=0.02, **options):
    """A box on the ground and a smaller one that a joint holds in it by an overlap."""
    scene = sh.Scene()
    scene.add_ground()
    scene.add_body("low", sh.Box(0.6, 0.6, 0.4), mass=20.0, position=(0, 0, 0.2))
    scene.add_body("high", sh.Box(0.3, 0.3, 0.2), mass=2.0, position=(0, 0, 0.5 - overlap))
    scene.add_joint("weld", joint, "low", "high", position=(0, 0, 0.4), **options)
    return sh.Simulation(scene, 0.005, solver=solver)


@quiet
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("asleep", [False, True])
def test_released_bodies_that_overlap_are_pushed_apart_gently(solver, asleep):
    """Jointed bodies may overlap; when they collide again they end up on each other, without a jump."""
    sim = stacked(solver, sh.Fixed())
    sim.run(2.0 if asleep else 0.1)
    assert sim.body("high").asleep == asleep
    assert sim.body("high").touching == (), "the joint excludes the pair"
    sim.joint("weld").enabled = False
    fastest = 0.0
    for _ in range(100):
        sim.step()
        fastest = max(fastest, float(np.linalg.norm(sim.body("high").velocity)))
    assert "low" in sim.body("high").touching
    assert abs(sim.body("high").position[2] - 0.5) < 2e-3
    assert fastest < 0.1, "no faster than a fall of half a millimetre"


@quiet
@pytest.mark.parametrize("solver", SOLVERS)
def test_attaching_again_excludes_again(solver):
    sim = stacked(solver, sh.Fixed(), overlap=0.0, enabled=False)
    sim.run(0.3)
    assert "low" in sim.body("high").touching, "a joint that starts disabled excludes nothing"
    sim.joint("weld").attach()
    sim.step(2)
    assert sim.body("high").touching == ()
    assert abs(sim.joint("weld").reaction[0][2] / (2.0 * 9.81) - 1) < 0.05, "the joint carries the box now"
    sim.joint("weld").enabled = False
    sim.run(0.3)
    assert "low" in sim.body("high").touching
    assert abs(sim.body("high").position[2] - 0.5) < 1e-3


@quiet
def test_a_welded_body_may_stand_in_the_ground_until_it_is_released():
    """A weld leaves nothing for a contact to do: a foundation below the ground is not pushed out."""
    scene = sh.Scene()
    scene.add_ground()
    scene.add_body("base", sh.Box(1.0, 1.0, 0.5), mass=100.0, position=(0, 0, 0.2))
    scene.add_joint("bolts", sh.Fixed(), "world", "base", position=(0, 0, 0))
    sim = sh.Simulation(scene, 0.005)
    sim.run(0.2)
    assert sim.body("base").position[2] == pytest.approx(0.2, abs=1e-12) and len(sim.contacts()) == 0
    sim.joint("bolts").enabled = False
    sim.run(0.5)
    assert abs(sim.body("base").position[2] - 0.25) < 2e-3


def test_a_body_that_a_joint_holds_in_the_ground_is_warned_of():
    scene = sh.Scene()
    scene.add_ground()
    scene.add_body("mast", sh.Box(0.4, 0.4, 2.0), mass=100.0, position=(0, 0, 0.95))
    scene.add_joint("slew", sh.Revolute("z"), "world", "mast", position=(0, 0, 1))
    with pytest.warns(sh.SceneWarning, match=r"0.05 m inside each other, where joint 'slew' holds.*ignore\('world', 'mast'\)"):
        sh.Simulation(scene, 0.005)
    scene.ignore("world", "mast")
    sim = sh.Simulation(scene, 0.005)
    sim.joint("slew").velocity = 0.5
    sim.run(0.2)
    assert sim.joint("slew").velocity == pytest.approx(0.5, abs=1e-9)


def test_a_disabled_joint_does_not_keep_a_body_awake():
    """A box on the ground sleeps while the hook that could grab it moves."""
    scene = sh.Scene()
    scene.add_ground()
    scene.add_body("hook", sh.Sphere(0.1), mass=10.0, position=(0, 0, 2))
    scene.add_joint("hoist", sh.Prismatic("z"), "world", "hook", position=(0, 0, 2))
    scene.add_body("box", sh.Box(0.4, 0.4, 0.4), mass=20.0, position=(0, 0, 0.2))
    scene.add_joint("grab", sh.Spherical(), "hook", "box", position=(0, 0, 1.9), enabled=False)
    sim = sh.Simulation(scene, 0.005)
    sim.joint("hoist").drive = sh.Servo(kp=1e4, kd=1e3)
    for i in range(400):
        sim.joint("hoist").drive.position = 0.2 * np.sin(0.02 * i)
        sim.step()
    assert sim.body("box").asleep and not sim.body("hook").asleep


@quiet
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("shape", [sh.Box(0.2, 0.2, 0.2), sh.Sphere(0.1)], ids=["box", "ball"])
@pytest.mark.parametrize("depth", [0.02, 0.1, 0.18])
def test_released_deep_inside_each_other_in_free_space(solver, shape, depth):
    """100 : 1 in mass, restitution 0.9: they are taken apart, and neither moves afterwards."""
    scene = sh.Scene(gravity=(0, 0, 0), contact=True)
    bouncy = sh.Material(restitution=0.9)
    scene.add_body("a", sh.Box(0.4, 0.4, 0.2), mass=10.0, material=bouncy)
    scene.add_body("b", shape, mass=0.1, position=(0.02, 0.01, 0.2 - depth), material=bouncy)
    scene.add_joint("weld", sh.Fixed(), "a", "b", position=(0, 0, 0.1))
    sim = sh.Simulation(scene, 0.005, solver=solver)
    sim.step(5)
    sim.joint("weld").enabled = False
    most = 0.0
    for _ in range(100):
        sim.step()
        most = max(most, sim.energy().kinetic)
    apart = sim.body("b").position - sim.body("a").position
    assert most < 1e-9 and abs(apart[2] - 0.2) < 1e-3, f"{most} J, {apart} m apart"
