"""What a scene refuses: every message names the object, the value and what is allowed."""

import warnings

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
    "color name": (dict(mass=1.0, color="reddish"), ("color", "#rrggbb", "reddish")),
    "color of 255": (dict(mass=1.0, color=(255, 0, 0)), ("color", "0 to 1", "255")),
    "color NaN": (dict(mass=1.0, color=(0, NAN, 0)), ("color", "nan")),
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
    scene.add_joint("box", sh.Revolute("y"), scene.world, "box", position=(0, 0, 0))  # a joint is not looked for among bodies
    scene.add_spring("box", scene.world, "box", at_a=(0, 0, 1), stiffness=10.0)
    with pytest.raises(sh.SceneError, match="the name 'box' is taken; joints and gears have different names"):
        scene.add_joint("box", sh.Revolute("y"), scene.world, "box", position=(0, 0, 0))
    with pytest.raises(sh.SceneError, match="the name 'box' is taken; bodies, frames and ropes have different names"):
        scene.add_rope("box", (0, 0, 1), (0, 0, 0), segments=3)
    sim = sh.Simulation(scene, dt=0.001)
    sim.joint("box").position = 0.1
    assert abs(sim.body("box").rotation[1]) == pytest.approx(np.sin(0.05))
    with pytest.raises(sh.SceneError, match=r"child 'bax' is not a body of the scene; available: 'world', 'box'"):
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
    refused("not a joint of the scene", sh.Gear("a", "b"))
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
    with pytest.raises(sh.SceneError, match="joint 'sleeve': Cylindrical has 2, say which; allowed: 'z', 'rz'"):
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
    with pytest.raises(sh.SceneError, match="dt is a positive finite number"):
        sh.Simulation(scene_with_box(), dt)


def test_solver_options_are_checked():
    for options, word in (
        (dict(tolerances=1e-9), "tolerances"),
        (dict(threads=0), "threads"),
        (dict(solver="magic"), "solver"),
    ):
        with pytest.raises(sh.SimulationError, match=word):
            sh.Simulation(scene_with_box(), 1e-3, **options)


def test_a_point_mass_cannot_spin():
    scene = sh.Scene()
    scene.add_body("dot", mass=1.0, angular_velocity=(0, 0, 1))
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
    print("gap after assembly", sim.constraint_error().max(), "redundant", sim.redundant)
    assert sim.constraint_error().max() < 1e-9
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
    assert sim.constraint_error().max() < 1e-9
    crank.velocity = 2.0
    assert crank.velocity == pytest.approx(2.0, abs=1e-9)
    before = sim.snapshot()
    with pytest.raises(sh.SimulationError, match=r"joint 'D' cannot be set to .* nothing was changed"):
        sim.joint("D").position = 0.0  # the rocker points away from the crank, out of the coupler's reach
    after = sim.snapshot()
    assert np.allclose(before["state.position"], after["state.position"])


# ---- regressions, named after what broke ---------------------------------------------------------------------------------


def two_links(dt=1e-4, **options):
    scene = sh.Scene(gravity=(0, 0, 0))
    scene.add_body("a", sh.Box(1, 0.1, 0.1), mass=1, position=(0.5, 0, 0))
    scene.add_body("b", sh.Box(1, 0.1, 0.1), mass=1, position=(1.5, 0, 0))
    scene.add_joint("h", sh.Revolute("z"), scene.world, "a", position=(0, 0, 0))
    scene.add_joint("g", sh.Revolute("z"), "a", "b", position=(1, 0, 0))
    return sh.Simulation(scene, dt, **options)


def test_setting_a_position_keeps_the_speeds_of_the_joints():
    sim = two_links()
    sim.joint("h").velocity = 1.0
    sim.joint("g").velocity = 2.0
    sim.joint("g").position = 1.5
    sim.joint("h").position = -0.3
    assert sim.joint("h").velocity == pytest.approx(1.0) and sim.joint("g").velocity == pytest.approx(2.0)
    sim.step()
    print("speeds after the first step", sim.joint("h").velocity, sim.joint("g").velocity)
    assert sim.joint("h").velocity == pytest.approx(1.0, abs=1e-3) and sim.joint("g").velocity == pytest.approx(2.0, abs=2e-3)


def test_setting_a_slider_on_a_turntable_keeps_it_turning():
    scene = sh.Scene(gravity=(0, 0, 0))
    scene.add_body("table", sh.Cylinder(1, 0.1), mass=1)
    scene.add_body("slider", sh.Box(0.1, 0.1, 0.1), mass=1, position=(1, 0, 0))
    scene.add_joint("axle", sh.Revolute("z"), scene.world, "table", position=(0, 0, 0))
    scene.add_joint("rail", sh.Prismatic("x"), "table", "slider", position=(1, 0, 0))
    sim = sh.Simulation(scene, 1e-4)
    sim.joint("axle").velocity = 1.0
    sim.joint("rail").position = 1.0
    assert np.allclose(sim.body("slider").velocity, (0, 2, 0))
    sim.step()
    assert sim.joint("axle").velocity == pytest.approx(1.0, abs=1e-3)


def test_setting_a_loop_keeps_its_speed(example):
    sim = example("four_bar").make(1e-4)
    sim.joint("A").position = sim.joint("A").position + 0.7
    speeds = [sim.joint(n).velocity for n in "ABCD"]
    assert speeds[0] == pytest.approx(6.0, abs=1e-9)
    sim.step()
    assert np.allclose([sim.joint(n).velocity for n in "ABCD"], speeds, atol=0.02)


def geared(ratio, dt=1e-3):
    scene = sh.Scene(gravity=(0, 0, 0))
    scene.add_body("a", mass=1, inertia=(0.5, 0.5, 0.5))
    scene.add_body("b", mass=1, inertia=(0.2, 0.2, 0.2), position=(1, 0, 0))
    scene.add_joint("ja", sh.Revolute("z"), scene.world, "a", position=(0, 0, 0))
    scene.add_joint("jb", sh.Revolute("z"), scene.world, "b", position=(1, 0, 0))
    scene.add_joint("g", sh.Gear("ja", "jb", ratio))
    return scene, dt


def test_setting_a_geared_joint_moves_both():
    scene, dt = geared(2.0)
    sim = sh.Simulation(scene, dt, solver="sequential")
    sim.joint("ja").position = 1.0
    assert sim.joint("jb").position == pytest.approx(0.5, abs=1e-9)
    sim.joint("ja").velocity = 100.0
    assert sim.joint("jb").velocity == pytest.approx(50.0)
    sim.run(2.0)
    assert sim.joint("ja").position == pytest.approx(201.0, abs=1e-6)
    assert sim.joint("g").gap == pytest.approx(0.0, abs=1e-9)


def test_setting_a_screw_against_its_thread_is_refused():
    scene = sh.Scene(gravity=(0, 0, 0))
    scene.add_body("nut", sh.Cylinder(0.1, 0.1), mass=1.0)
    scene.add_joint("c", sh.Cylindrical("z"), scene.world, "nut", position=(0, 0, 0))
    scene.add_joint("thread", sh.Gear(("c", "z"), ("c", "rz"), 0.05))
    sim = sh.Simulation(scene, 1e-3)
    with pytest.raises(sh.SimulationError, match="joint 'c' cannot be set"):
        sim.joint("c").position = (0.05, 0.0)
    sim.joint("c").position = (0.05, 1.0)
    assert np.allclose(sim.joint("c").position, (0.05, 1.0))


def test_turns_are_counted_beyond_half_a_turn_a_step():
    scene = sh.Scene(gravity=(0, 0, 0))
    scene.add_body("a", mass=1, inertia=(0.2, 0.2, 0.3))
    scene.add_joint("h", sh.Revolute("z"), scene.world, "a", position=(0, 0, 0))
    sim = sh.Simulation(scene, 0.01, solver="sequential")
    sim.joint("h").velocity = 400.0
    sim.run(1.0)
    assert sim.joint("h").position == pytest.approx(400.0, abs=1e-6)
    scene, _ = geared(4.0)
    sim = sh.Simulation(scene, 0.01, solver="sequential")
    sim.body("a").angular_velocity, sim.body("b").angular_velocity = (0, 0, 400.0), (0, 0, 100.0)
    sim.step()
    assert sim.joint("jb").position == pytest.approx(1.0, abs=1e-9)


def test_redundant_gears_are_named():
    scene = sh.Scene(gravity=(0, 0, 0))
    for i, name in enumerate("abc"):
        scene.add_body(name, sh.Cylinder(0.1, 0.1), mass=1, position=(i, 0, 0))
        scene.add_joint(f"j{name}", sh.Revolute("z"), scene.world, name, position=(i, 0, 0))
    scene.add_joint("ab", sh.Gear("ja", "jb", 2.0))
    scene.add_joint("bc", sh.Gear("jb", "jc", 3.0))
    scene.add_joint("ac", sh.Gear("ja", "jc", 6.0))
    assert scene.build().redundant == ["ac"]


def test_more_mistakes_are_refused():
    def refused(match, function):
        with pytest.raises((sh.SceneError, sh.SimulationError), match=match) as error:
            function()
        print(error.value)

    scene = sh.Scene()
    refused("fixed body does not move", lambda: scene.add_body("f", sh.Box(1, 1, 1), motion="fixed", velocity=(1, 0, 0)))
    refused("function of time", lambda: scene.add_body("k", sh.Box(1, 1, 1), motion="kinematic", path=3))
    refused("is not where its path starts", lambda: scene.add_body(
        "k", sh.Box(1, 1, 1), motion="kinematic", position=(0, 0, 0), path=lambda t: (1 + t, 0, 0)))  # fmt: skip
    pair = sh.Compound(sh.PointMass(mass=1, position=(1, 0, 0)), sh.PointMass(mass=1, position=(-1, 0, 0)))
    refused("'d': its mass lies on a line", lambda: scene.add_body("d", pair))
    refused("not here", lambda: scene_with_box().build(device="foo"))
    refused("Scene or a Model", lambda: sh.Simulation(None, 0.1))
    refused("free axes are a text", lambda: sh.Joint(None))
    refused("ratio", lambda: sh.Gear("a", "b", "x"))
    wheels, dt = geared(2.0)
    refused("takes no bodies", lambda: wheels.add_joint("h", sh.Gear("ja", "jb"), "a", "b"))
    refused("an end of a gear", lambda: wheels.add_joint("h", sh.Gear("ja", None)))
    sim = sh.Simulation(wheels, dt)
    refused("gravity", lambda: setattr(sim, "gravity", "x"))
    refused("snapshot", lambda: sim.restore(None))
    refused("unit length", lambda: setattr(sim.body("a"), "rotation", (0, 0, 0, 2)))
    with pytest.raises(AttributeError):
        sim.joint("ja").postion = 1
    dot = sh.Scene()
    dot.add_body("dot", mass=1.0)
    point = sh.Simulation(dot, 0.1).body("dot")
    refused("point mass: it takes no angular velocity", lambda: setattr(point, "angular_velocity", (1, 0, 0)))
    refused("point mass: it takes no torque", lambda: point.apply_torque((1, 0, 0)))


def test_a_kinematic_body_starts_where_its_path_does():
    scene = sh.Scene()
    scene.add_body("k", sh.Sphere(0.1), motion="kinematic", path=lambda t: (1 + t, 0, 0))
    assert np.allclose(sh.Simulation(scene, 1e-3).body("k").position, (1, 0, 0))


def expecting(kind, scene):
    """A scene to which something was added that means something in contact alone."""
    box = {"shape": sh.Box(0.1, 0.1, 0.1), "mass": 1.0, "position": (0, 0, 0.5)}
    scene.add_body("a", **box, **({"material": sh.Material(0.3)} if kind == "material" else {}))
    scene.add_body("b", sh.Box(1, 1, 0.1), motion="fixed", **({"surface_velocity": (1, 0, 0)} if kind == "surface" else {}))
    if kind == "pair":
        scene.set_pair("a", "b", sh.Material(0.2))
    if kind == "rope":
        scene.add_rope("r", (0, 0, 3), (0, 0, 2), segments=4, material=sh.Material(0.2))
    if kind == "wheel":
        sh.Wheel(0.1, 0.05, 1.0).add(scene, "w", "a", (0, 0, 0.3))
    return scene


@pytest.mark.parametrize("kind", ["material", "surface", "pair", "rope", "wheel"])
def test_a_scene_that_expects_contact_and_has_none_says_so_once(kind):
    scene = expecting(kind, sh.Scene())
    with pytest.warns(sh.SceneWarning, match=r"no contact.*add_ground\(\) or Scene\(contact=True\)") as told:
        sh.Simulation(scene, 0.01)
    assert len(told) == 1 and told[0].filename == __file__ and str(told[0].message) in scene.notes
    with warnings.catch_warnings():
        warnings.simplefilter("error", sh.SceneWarning)
        sh.Simulation(scene, 0.01)  # it was said
        for given in ({"contact": True}, {"contact": False}):
            expecting(kind, sh.Scene(**given)).build()
        grounded = expecting(kind, sh.Scene())
        grounded.add_ground(-1.0)
        grounded.build()
        expecting("nothing", sh.Scene()).build()


def test_colors_by_name_and_words_of_other_engines():
    scene = sh.Scene()
    scene.add_body("a", sh.Sphere(0.1), color="red")
    assert scene.bodies["a"].color == pytest.approx((0.8, 0.169, 0.169), abs=1e-3)
    with pytest.raises(sh.SceneError, match=r"one of black, white, .*brown, got 'rde'"):
        scene.add_body("b", sh.Sphere(0.1), color="rde")
    with pytest.raises(AttributeError, match="no attribute 'Hinge'; is 'Revolute' meant"):
        _ = sh.Hinge


def test_a_body_may_be_placed_relative_to_another():
    scene = sh.Scene()
    scene.add_body("a", sh.Box(1, 2, 3), mass=1.0, position=(1, 2, 3), rotation=sh.about("z", np.pi / 2))
    scene.add_body("b", sh.Box(1, 2, 3), mass=1.0, position=(1, 0, 0.5), rotation=sh.about("x", 0.4), relative_to="a")
    scene.add_body("c", sh.Box(1, 2, 3), mass=1.0, relative_to="b")
    for name in ("b", "c"):
        np.testing.assert_allclose(scene.bodies[name].position, (1, 3, 3.5), atol=1e-15)
        np.testing.assert_allclose(scene.bodies[name].rotation, sh.rpy(0.4, 0, np.pi / 2), atol=1e-15)
    for wrong in ({"relative_to": "nobody"}, {"relative_to": "a", "motion": "kinematic", "path": lambda t: (0, 0, t)}):
        with pytest.raises(sh.SceneError, match="relative_to"):
            scene.add_body("d", sh.Sphere(1), **wrong)
