"""What a scene refuses: every message names the object, the value and what is allowed."""

import numpy as np
import pytest

import sharnir as sh

NAN = float("nan")


def scene_with_box():
    scene = sh.Scene()
    scene.add_body("box", sh.Box(1, 1, 1), mass=1.0)
    return scene


BODY_MISTAKES = {
    "mass zero": (dict(mass=0.0), ("mass", "positive", "0.0")),
    "mass negative": (dict(mass=-2.0), ("mass", "positive", "-2.0")),
    "mass NaN": (dict(mass=NAN), ("mass", "finite", "nan")),
    "density negative": (dict(density=-1.0), ("density", "positive", "-1.0")),
    "both": (dict(mass=1.0, density=1.0), ("mass", "density")),
    "position NaN": (dict(mass=1.0, position=(0, NAN, 0)), ("position", "finite", "nan")),
    "position of two": (dict(mass=1.0, position=(0, 1)), ("position", "three")),
    "position text": (dict(mass=1.0, position="up"), ("position", "three", "up")),
    "velocity inf": (dict(mass=1.0, velocity=(0, float("inf"), 0)), ("velocity", "finite", "inf")),
    "rotation not unit": (dict(mass=1.0, rotation=(1, 1, 0, 0)), ("unit", "1.41")),
    "motion": (dict(mass=1.0, motion="flying"), ("motion", "flying", "dynamic")),
    "path of a dynamic body": (dict(mass=1.0, path=lambda t: (0, 0, t)), ("path", "kinematic")),
    "inertia asymmetric": (dict(mass=1.0, inertia=[[1, 0.5, 0], [0, 1, 0], [0, 0, 1]]), ("symmetric",)),
    "inertia negative": (dict(mass=1.0, inertia=(1, 1, -1)), ("positive",)),
    "inertia triangle": (dict(mass=1.0, inertia=(1, 1, 3)), ("triangle",)),
}


@pytest.mark.parametrize("case", BODY_MISTAKES)
def test_body_mistakes(case):
    options, words = BODY_MISTAKES[case]
    with pytest.raises(sh.SceneError) as error:
        sh.Scene().add_body("thing", sh.Box(1, 1, 1), **options)
    print(error.value)
    assert "'thing'" in str(error.value)
    assert all(word in str(error.value) for word in words)


def test_names():
    scene = scene_with_box()
    with pytest.raises(sh.SceneError, match="'box' is taken"):
        scene.add_body("box", sh.Sphere(1))
    with pytest.raises(sh.SceneError, match="'world' is taken"):
        scene.add_body("world", sh.Sphere(1))
    with pytest.raises(sh.SceneError, match="non-empty string"):
        scene.add_body("", sh.Sphere(1))
    with pytest.raises(sh.SceneError, match=r"child 'bax' is no body of the scene; known: 'world', 'box'"):
        scene.add_joint("j", sh.Fixed(), scene.world, "bax", position=(0, 0, 0))


def test_joint_mistakes():
    scene = scene_with_box()
    scene.add_body("wall", sh.Box(1, 1, 1), motion="fixed")
    scene.add_body("dot", mass=1.0)

    def refused(match, *args, **options):
        with pytest.raises(sh.SceneError, match=match) as error:
            scene.add_joint("j", *args, **options)
        print(error.value)
        assert "'j'" in str(error.value)

    at = {"position": (0, 0, 0)}
    refused("both 'box'", sh.Fixed(), "box", "box", **at)
    refused("neither 'world' nor 'wall' is dynamic", sh.Fixed(), scene.world, "wall", **at)
    refused("give position=", sh.Fixed(), scene.world, "box")
    refused("finite", sh.Fixed(), scene.world, "box", position=(0, NAN, 0))
    refused("unit length", sh.Fixed(), scene.world, "box", position=(0, 0, 0), rotation=(0, 0, 0, 2))
    refused("either position", sh.Fixed(), scene.world, "box", position=(0, 0, 0), parent_frame=((0, 0, 0), (0, 0, 0, 1)))
    refused("two points", sh.Distance(), scene.world, "box", **at)
    refused("are apart", sh.Distance(), scene.world, "box", position=[(0, 0, 0), (0, 0, 0)])
    refused("point mass", sh.Revolute("x"), scene.world, "dot", **at)
    refused("point mass", sh.Spherical(), scene.world, "dot", position=(0, 0, 1))
    refused("one of the joints of sharnir", "hinge", scene.world, "box", **at)
    refused("no joint of the scene", sh.Gear("a", "b"))
    with pytest.raises(sh.SceneError, match="other than zero"):
        sh.Revolute((0, 0, 0))
    with pytest.raises(sh.SceneError, match="'w'"):
        sh.Prismatic("w")
    with pytest.raises(sh.SceneError, match="perpendicular"):
        sh.Universal(("x", (1, 1, 0)))
    with pytest.raises(sh.SceneError, match="unknown; allowed: x y z rx ry rz"):
        sh.Joint("x q")
    with pytest.raises(sh.SceneError, match="twice"):
        sh.Joint("x x")
    with pytest.raises(sh.SceneError, match="positive finite"):
        sh.Distance(-1.0)
    with pytest.raises(sh.SceneError, match="ratio"):
        sh.Gear("a", "b", 0.0)


def test_gear_mistakes():
    scene = scene_with_box()
    scene.add_joint("ball", sh.Spherical(), scene.world, "box", position=(0, 0, 0))
    scene.add_body("rod", sh.Box(1, 1, 1))
    scene.add_joint("sleeve", sh.Cylindrical("z"), "box", "rod", position=(0, 0, 0))
    with pytest.raises(sh.SceneError, match=r"joint 'sleeve', got None; allowed: \['z', 'rz'\]"):
        scene.add_joint("g", sh.Gear("sleeve", "sleeve"))
    with pytest.raises(sh.SceneError, match="'ball'"):
        scene.add_joint("g", sh.Gear(("ball", "rx"), ("sleeve", "z")))
    with pytest.raises(sh.SceneError, match="twice"):
        scene.add_joint("g", sh.Gear(("sleeve", "z"), ("sleeve", "z")))


def test_a_scene_needs_a_body():
    with pytest.raises(sh.SceneError, match="empty"):
        sh.Scene().build()
    with pytest.raises(sh.SceneError, match="gravity"):
        sh.Scene(gravity=(0, 0))
    with pytest.raises(sh.SceneError, match="worlds"):
        scene_with_box().build(worlds=0)


@pytest.mark.parametrize("dt", [0.0, -1e-3, NAN, float("inf")])
def test_dt_is_positive(dt):
    with pytest.raises(sh.SimulationError, match="dt is a positive finite number"):
        sh.Simulation(scene_with_box(), dt)


def test_solver_options_are_checked():
    for options, word in (
        (dict(iterations=0), "iterations"),
        (dict(erp=1.5), "erp"),
        (dict(tolerance=-1.0), "tolerance"),
        (dict(threads=0), "threads"),
        (dict(solver="magic"), "solver"),
    ):
        with pytest.raises(sh.SimulationError, match=word):
            sh.Simulation(scene_with_box(), 1e-3, **options)


def test_a_point_mass_cannot_spin():
    scene = sh.Scene()
    scene.add_body("dot", mass=1.0, spin=(0, 0, 1))
    with pytest.raises(sh.SceneError, match="'dot' is a point mass"):
        scene.build()


# ---- loops --------------------------------------------------------------------------------------------------------------


def triangle(length):
    """A rod of the given length whose ends are to meet two pivots 1 m apart."""
    scene = sh.Scene()
    scene.add_body("rod", sh.Box(length, 0.1, 0.1), mass=1.0, position=(0.4, 0, 0.2))
    still = (0, 0, 0, 1)
    scene.add_joint(
        "left", sh.Spherical(), scene.world, "rod", parent_frame=((0, 0, 0), still), child_frame=((-length / 2, 0, 0), still)
    )
    scene.add_joint(
        "right", sh.Spherical(), scene.world, "rod", parent_frame=((1, 0, 0), still), child_frame=((length / 2, 0, 0), still)
    )
    return scene


def test_an_unassembled_scene_is_assembled():
    sim = sh.Simulation(triangle(1.0), 1e-3)
    print("gap after assembly", sim.gaps().max(), "redundant", sim.redundant)
    assert sim.gaps().max() < 1e-9
    assert np.allclose(sim.body("rod").position, (0.5, 0, 0), atol=1e-6)


def test_a_loop_that_cannot_close_is_refused_with_its_gap():
    with pytest.raises(sh.SceneError, match=r"joint '(left|right)' cannot be assembled: a gap of 0\.1") as error:
        triangle(0.8).build()
    print(error.value)


def test_redundant_rows_of_a_doubly_hinged_door():
    scene = sh.Scene()
    scene.add_body("door", sh.Box(0.9, 0.04, 2.0), mass=20.0, position=(0.45, 0, 1))
    scene.add_joint("lower", sh.Revolute("z"), scene.world, "door", position=(0, 0, 0.2))
    scene.add_joint("upper", sh.Revolute("z"), scene.world, "door", position=(0, 0, 1.8))
    sim = sh.Simulation(scene, 1e-3)
    assert sim.redundant == ["upper.x", "upper.y", "upper.z", "upper.rx", "upper.ry"]
    sim.joint("lower").velocity = 1.0
    sim.run(2.0)
    down = sum(sim.joint(n).reaction[0][2] for n in ("lower", "upper"))
    print(f"angle {sim.joint('upper').position:.6f}, weight on both hinges {down:.4f} N of {20 * 9.81:.4f} N")
    assert sim.joint("upper").position == pytest.approx(2.0, abs=1e-4)
    assert down == pytest.approx(20 * 9.81, abs=1e-6)


def test_a_singular_start_pose_is_not_redundancy():
    """A planar four-bar folded flat has one more dependent row than it has elsewhere."""
    scene = sh.Scene(gravity=(0, 0, 0))
    for i, (x, length) in enumerate(((0.5, 1.0), (1.5, 1.0), (1.5, 1.0))):
        scene.add_body(f"bar{i}", sh.Box(length, 0.1, 0.1), mass=1.0, position=(x, 0, 0))
    for name, parent, child, x in (
        ("A", "world", "bar0", 0),
        ("B", "bar0", "bar1", 1),
        ("C", "bar1", "bar2", 2),
        ("D", "world", "bar2", 1),
    ):
        scene.add_joint(name, sh.Revolute("z"), parent, child, position=(x, 0, 0))
    model = scene.build()
    print("redundant", model.redundant)
    assert len(model.redundant) == 3


def test_setting_a_joint_of_a_loop_assembles_it_again(example):
    sim = example("four_bar").make()
    crank = sim.joint("A")
    crank.position = crank.position + 0.5
    assert sim.gaps().max() < 1e-9
    crank.velocity = 2.0
    assert crank.velocity == pytest.approx(2.0, abs=1e-9)
    before = sim.snapshot()
    with pytest.raises(sh.SimulationError, match=r"joint 'D' cannot be set to .* nothing was changed"):
        sim.joint("D").position = 0.0  # the rocker points away from the crank, out of the coupler's reach
    after = sim.snapshot()
    assert np.allclose(before["state.position"], after["state.position"])
