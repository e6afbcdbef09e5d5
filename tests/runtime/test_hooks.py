"""Hooks: joints that start disabled, and joints that are attached where their bodies stand (`attach(at=…)`)."""

import math
import warnings

import numpy as np
import pytest

import sharnir as sh

SOLVERS = ["direct", "sequential"]


def crane(worlds=1, solver="auto", at=(0, 0, 2.9), kind=None, **options):
    """A hook on a vertical servo above a box; the joint of the hook is described at its tip, 1.5 m above the box."""
    scene = sh.Scene(**options)
    scene.add_body("hook", sh.Sphere(0.1), mass=10.0, position=(0, 0, 3))
    scene.add_joint("hoist", sh.Prismatic("z", drive=sh.Servo(kp=1e5, kd=1e4)), "world", "hook", position=(0, 0, 3))
    scene.add_body("box", sh.Box(0.4, 0.4, 0.4), mass=20.0, position=(0, 0, 1.2), velocity=(0, 0, 0))
    scene.add_joint("grab", kind or sh.Spherical(), "hook", "box", position=at, enabled=False)
    return sh.Simulation(scene, 0.005, solver=solver, worlds=worlds)


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_joint_that_starts_disabled_holds_nothing(solver):
    """Frames far apart are not assembled; the box falls as if the joint were not there."""
    scene = sh.Scene()
    scene.add_body("hook", sh.Sphere(0.1), mass=10.0, position=(0, 0, 3))
    scene.add_joint("hold", sh.Fixed(), "world", "hook", position=(0, 0, 3))
    scene.add_body("box", sh.Box(0.4, 0.4, 0.4), mass=20.0, position=(1, 0, 1))
    still = (0, 0, 0, 1)
    scene.add_joint(
        "grab", sh.Fixed(), "hook", "box", parent_frame=((0, 0, -0.1), still), child_frame=((0, 0, 0.2), still), enabled=False
    )
    sim = sh.Simulation(scene, 0.005, solver=solver)
    assert sim.joint("grab").enabled is False
    assert np.array_equal(sim.body("box").position, [1, 0, 1]) and np.array_equal(sim.body("hook").position, [0, 0, 3])
    sim.run(0.2)
    assert abs(sim.body("box").position[2] - (1 - 0.5 * 9.81 * 0.04)) < 2e-2 * 0.2
    assert np.abs(sim.body("hook").position - [0, 0, 3]).max() < 1e-9
    assert np.all(sim.joint("grab").reaction[0] == 0)


def test_enabled_is_true_or_false_and_not_of_gears():
    scene = sh.Scene()
    scene.add_body("a", sh.Box(1, 1, 1))
    with pytest.raises(sh.SceneError, match="joint 'j': enabled is True or False, got 0"):
        scene.add_joint("j", sh.Fixed(), "world", "a", position=(0, 0, 0), enabled=0)
    scene.add_body("b", sh.Box(1, 1, 1))
    for name in "ab":
        scene.add_joint(f"{name} hinge", sh.Revolute("z"), "world", name, position=(0, 0, 0))
    with pytest.raises(sh.SceneError, match="joint 'g': a gear couples two joints"):
        scene.add_joint("g", sh.Gear("a hinge", "b hinge"), enabled=False)


def test_a_saved_scene_keeps_disabled_joints(tmp_path):
    scene = sh.Scene()
    scene.add_body("box", sh.Box(1, 1, 1), position=(0, 0, 1))
    scene.add_joint("grab", sh.Spherical(), "world", "box", position=(0, 0, 2), enabled=False)
    scene.save(tmp_path / "hook.toml")
    assert "enabled = false" in (tmp_path / "hook.toml").read_text()
    made = sh.load_scene(tmp_path / "hook.toml")
    assert not made.joints["grab"].enabled
    sim = sh.Simulation(made, 0.01)
    sim.run(0.1)
    assert sim.body("box").position[2] < 0.96


def test_inactive_equalities_of_mjcf_are_disabled_joints(tmp_path):
    pytest.importorskip("mujoco")
    (tmp_path / "hook.xml").write_text("""<mujoco><worldbody>
        <body name="hook" pos="0 0 3"><joint type="slide" axis="0 0 1" stiffness="1e4" damping="1e3"/>
          <geom type="sphere" size=".1" mass="10"/></body>
        <body name="box" pos="0 0 1.2"><freejoint/><geom type="box" size=".2 .2 .2" mass="20"/></body>
        <body name="lid" pos="0 1 1.2"><freejoint/><geom type="box" size=".2 .2 .2" mass="20"/></body>
      </worldbody><equality>
        <connect name="grab" body1="hook" body2="box" anchor="0 0 -.1" active="false"/>
        <weld name="seal" body1="hook" body2="lid" active="false"/></equality></mujoco>""")
    scene = sh.load_mjcf(tmp_path / "hook.xml", contact=False)
    assert not any("equality" in note for note in scene.notes)
    sim = sh.Simulation(scene, 0.005)
    assert sim.joint("grab").enabled is False and sim.joint("seal").enabled is False
    sim.run(0.2)
    assert sim.body("box").position[2] < 1.05
    sim.joint("grab").attach("parent")
    sim.run(0.05)
    assert sim.joint("grab").enabled


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_hook_grabs_a_box_at_its_tip(solver):
    """By default a hook's anchor counts, not the place on the box where the joint was when the scene was described."""
    sim = crane(solver=solver)
    sim.body("hook").position = (0, 0, 1.55)
    grab, box = sim.joint("grab"), sim.body("box")
    sim.joint("hoist").drive.position = sim.joint("hoist").position
    grab.attach()
    assert np.allclose(grab.anchor, [0, 0, 1.45]), "the tip of the hook is 0.1 m below its centre"
    assert np.allclose(grab.parent_anchor, [0, 0, -0.1]) and np.allclose(grab.child_anchor, [0, 0, 0.25])
    assert np.array_equal(box.position, [0, 0, 1.2]), "nothing moves"
    sim.run(0.2)
    assert sim.constraint_error()[0, sim.model.joint_names["grab"], 0] < (1e-9 if solver == "direct" else 1e-3)
    grab.enabled = False
    low = box.position[2]
    sim.run(0.1)
    assert box.position[2] < low - 0.03


def test_the_anchor_of_the_box_counts_if_it_is_much_nearer():
    """A joint described at the lug of the box, 1.6 m below the hook: the hook's own anchor is nowhere near it."""
    sim = crane(at=(0, 0, 1.4))
    sim.body("hook").position = (0, 0, 1.55)
    sim.joint("grab").attach()
    assert np.allclose(sim.joint("grab").anchor, [0, 0, 1.4])
    assert np.allclose(sim.joint("grab").parent_anchor, [0, 0, -0.15])


@pytest.mark.parametrize(
    ("at", "there"), [("parent", (0, 0, 1.45)), ("child", (0, 0, 2.9)), ((0.05, 0, 1.4), (0.05, 0, 1.4))], ids=str
)
def test_attach_at(at, there):
    sim = crane(kind=sh.Revolute("y"))
    sim.body("hook").position = (0, 0, 1.55)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sh.SceneWarning)
        sim.joint("grab").attach(at=at)
    assert np.allclose(sim.joint("grab").anchor, there) and sim.joint("grab").position == 0.0
    sim.run(0.1)
    assert sim.joint("grab").gap[0] < 1e-9


def test_attach_refuses_what_is_no_place():
    sim = crane()
    for at in ("tip", (0, 0), (0, 0, math.nan), (0, 0, 1e300)):
        with pytest.raises(sh.SimulationError, match=r"joint 'grab': attach\(at=…\) is 'parent', 'child' or a world point"):
            sim.joint("grab").attach(at=at)
    assert sim.joint("grab").enabled is False


def test_a_place_far_from_both_bodies_is_warned_of():
    sim = crane()
    with pytest.warns(sh.SceneWarning, match=r"joint 'grab': it is attached 10.1 m from body 'hook' \(0.268 m wide\) and 1"):
        sim.joint("grab").attach(at=(10, 0, 1.5))
    scene = sh.Scene()
    for i in range(2):
        scene.add_body(f"b{i}", sh.Box(0.1, 0.1, 0.1), position=(0, 0, i))
    with pytest.warns(sh.SceneWarning, match=r"joint 'j': its anchor is 5 m from body 'b0' \(0.173 m wide\) and 5.1 m from"):
        scene.add_joint("j", sh.Spherical(), "b0", "b1", position=(5, 0, 0))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scene.add_joint("k", sh.Spherical(), "b0", "b1", position=(5, 0, 0), enabled=False)
        scene.add_joint("l", sh.Spherical(), "world", "b1", position=(5, 0, 0))


def test_a_point_mass_is_held_at_its_centre():
    scene = sh.Scene()
    scene.add_body("hook", sh.Sphere(0.1), mass=10.0, position=(0, 0, 3), motion="fixed")
    scene.add_body("load", mass=1.0, position=(0, 0, 2))
    scene.add_joint("grab", sh.Spherical(), "hook", "load", position=(0, 0, 2), enabled=False)
    sim = sh.Simulation(scene, 0.005)
    sim.step(10)
    with pytest.raises(sh.SimulationError, match="body 'load' is a point mass, and a joint holds it at its centre only"):
        sim.joint("grab").attach(at=(0, 0, 3))
    sim.joint("grab").attach()
    there = sim.body("load").position
    sim.body("load").velocity = (0, 0, 0)
    sim.run(0.1)
    assert np.abs(sim.body("load").position - there).max() < 1e-9


@pytest.mark.parametrize("solver", SOLVERS)
def test_each_world_has_its_own_place(solver, tmp_path):
    """Anchors on both bodies differ from world to world; snapshots, checkpoints and resets bring them along, to the bit."""
    sim = crane(worlds=3, solver=solver)
    sim.body("hook").position = [(0, 0, 1.55), (0, 0, 1.6), (0, 0, 3.0)]
    sim.joint("hoist").drive.position = sim.joint("hoist").position
    grab, start = sim.joint("grab"), sim.snapshot()
    grab.attach(at=[(0, 0, 1.45), (0.1, 0, 1.4), (0, 0, 9)], worlds=[0, 1])
    assert grab.enabled.tolist() == [True, True, False]
    assert np.allclose(grab.child_anchor, [(0, 0, 0.25), (0.1, 0, 0.2), (0, 0, 1.7)])
    sim.step(5)
    now = sim.snapshot()
    sim.save(tmp_path / "hooks")
    sim.step(20)
    end = sim.body("box").position
    assert end[2, 2] < end[0, 2], "the third one falls"
    sim.restore(now)
    sim.step(20)
    assert np.array_equal(sim.body("box").position, end)
    again = crane(worlds=3, solver=solver)
    again.load(tmp_path / "hooks")
    assert np.allclose(again.joint("grab").child_anchor, [(0, 0, 0.25), (0.1, 0, 0.2), (0, 0, 1.7)])
    again.step(20)
    assert np.array_equal(again.body("box").position, end)
    sim.restore(start)
    assert np.allclose(grab.child_anchor, (0, 0, 1.7)) and not grab.enabled.any()
    sim.reset()
    assert not grab.enabled.any()


def test_a_recording_replays_a_hook(tmp_path):
    sim = crane()
    file = tmp_path / "hook.mcap"
    with sim.record_file(file):
        sim.body("hook").position = (0, 0, 1.55)
        sim.step(5)
        sim.joint("grab").attach()
        sim.step(10)
        sim.joint("grab").enabled = False
        sim.step(10)
    assert sh.Recording(file).replay(crane()).equal


@pytest.mark.parametrize("worlds", [1, 3])
def test_a_hook_on_a_rope_is_attached(worlds):
    """With a rope in the scene, in one world and in several."""
    scene = sh.Scene()
    scene.add_body("hook", sh.Sphere(0.1), mass=10.0, position=(0, 0, -1.1))
    scene.add_body("box", sh.Box(0.4, 0.4, 0.4), mass=20.0, position=(0, 0, -1.5))
    scene.add_joint("grab", sh.Spherical(), "hook", "box", position=(0, 0, -1.3))
    scene.add_rope("line", (0, 0, 0), (0, 0, -1), segments=6, mass_per_length=0.3, attach=("world", "hook"))
    sim = sh.Simulation(scene, dt=0.005, worlds=worlds)
    sim.joint("grab").enabled = False
    sim.joint("grab").attach()
    sim.run(0.2)
    assert np.abs(np.atleast_2d(sim.body("box").position) - [0, 0, -1.5]).max() < 1e-6
    tension = np.atleast_2d(sim.rope("line").tension)[:, -1]
    assert np.abs(tension / (30.0 * 9.81) - 1).max() < 0.02


def test_setting_joints_leaves_what_a_disabled_joint_does_not_hold():
    """Coordinates of a hoist move the hook alone, in worlds in which the hook holds nothing; `sim.q` likewise."""
    sim = crane(worlds=2, gravity=(0, 0, 0))
    sim.joint("grab").attach("parent", worlds=[1])
    sim.joint("hoist").position = -0.5
    assert np.allclose(sim.body("hook").position[:, 2], 2.5)
    assert np.allclose(sim.body("box").position[:, 2], [1.2, 0.7])
    sim.joint("hoist").velocity = 1.0
    assert np.allclose(sim.body("box").velocity[:, 2], [0.0, 1.0])
    q = np.array(sim.q)
    q[:, 0] = 0.0
    sim.q = q
    assert np.allclose(sim.body("hook").position[:, 2], 3.0)
    assert np.allclose(sim.body("box").position[:, 2], [1.2, 1.2])


def test_an_integration_leaves_disabled_joints_out():
    """The box falls freely while the hook hangs on its servo: both have closed forms."""
    sim = crane()
    sim.integrate(0.3)
    assert abs(sim.body("box").position[2] - (1.2 - 0.5 * 9.81 * 0.09)) < 1e-8
    assert abs(sim.body("hook").position[2] - (3 - 98.1 / 1e5)) < 1e-4
    late = crane()
    late.body("hook").position = (0, 0, 1.55)
    late.joint("hoist").drive.position = late.joint("hoist").position
    late.joint("grab").attach()
    late.integrate(0.1)  # a joint that started disabled is in the tree now
    assert late.joint("grab").gap[0] < 1e-9 and abs(late.body("box").position[2] - 1.2) < 5e-3
    several = crane(worlds=2)
    several.joint("grab").attach("parent", worlds=[0])
    with pytest.raises(sh.SimulationError, match="integrate: joint 'grab' is disabled in some worlds only"):
        several.integrate(0.3)


@pytest.mark.parametrize("side", ["parent_anchor", "child_anchor"])
@pytest.mark.parametrize("solver", SOLVERS)
def test_an_anchor_that_is_set_is_as_in_a_fresh_scene(side, solver):
    """A second, free body in the scene: the motion is that of a scene that was described with that anchor."""

    def made(parent, child):
        scene = sh.Scene()
        scene.add_body("bar", sh.Box(0.1, 0.1, 1.0), mass=2.0, position=np.subtract(parent, child))
        scene.add_body("other", sh.Sphere(0.1), mass=1.0, position=(3, 0, 0))
        still = (0, 0, 0, 1)
        scene.add_joint("pin", sh.Revolute("y"), "world", "bar", parent_frame=(parent, still), child_frame=(child, still))
        return sh.Simulation(scene, 0.005, solver=solver)

    place = {"parent_anchor": (0.3, 0, 0.2), "child_anchor": (0, 0, 0.3)}[side]
    anchors = {"parent_anchor": (0, 0, 0), "child_anchor": (0, 0, 0.5)} | {side: place}
    sim, fresh = made((0, 0, 0), (0, 0, 0.5)), made(*anchors.values())
    setattr(sim.joint("pin"), side, place)
    assert np.allclose(getattr(sim.joint("pin"), side), place)
    for s in (sim, fresh):
        s.joint("pin").position = 0.4
        s.run(0.3)
    assert np.abs(sim.body("bar").position - fresh.body("bar").position).max() < 1e-12
    sim.reset()
    fresh.reset()
    assert np.abs(sim.body("bar").position - fresh.body("bar").position).max() < 1e-12


def test_an_anchor_of_a_disabled_joint_moves_nothing():
    sim = crane()
    sim.joint("grab").child_anchor = (0, 0, 0.2)
    assert np.array_equal(sim.body("box").position, [0, 0, 1.2]) and np.allclose(sim.joint("grab").child_anchor, (0, 0, 0.2))


def test_a_servo_on_an_attached_joint_works():
    """Drives of the table read the joint where it is attached."""
    sim = crane(kind=sh.Revolute("y", drive=sh.Servo(kp=500.0, kd=50.0)))
    sim.body("hook").position = (0, 0, 1.55)
    sim.joint("grab").attach()
    sim.joint("grab").drive.position = 0.3
    sim.run(1.5)
    assert abs(sim.joint("grab").position - 0.3) < 0.1 and sim.joint("grab").gap[0] < 1e-9


KINDS = {
    "fixed": sh.Fixed(), "hinge": sh.Revolute("y"), "slide": sh.Prismatic("x"), "cylinder": sh.Cylindrical("z"),
    "universal": sh.Universal(axes=("x", "y")), "ball": sh.Spherical(), "plane": sh.Planar("z"), "mask": sh.Joint("x rz"),
}  # fmt: skip


@pytest.mark.parametrize("at", [None, "parent", "child", (0.2, 0.1, 2.4)], ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_joint_is_attached_closed(kind, at):
    """Whatever the pose: nothing moves, no gap, coordinates 0; and it stays closed."""
    sim = crane(kind=KINDS[kind], at=(0, 0, 2.6))
    sim.body("box").rotation = np.array([0.3, -0.2, 0.4, 0.84]) / np.linalg.norm([0.3, -0.2, 0.4, 0.84])
    sim.body("box").position = (0.3, 0.2, 2.3)
    before = sim.body("box").position, sim.body("box").rotation
    grab, k = sim.joint("grab"), sim.model.joint_names["grab"]
    grab.attach(at)
    assert np.array_equal(sim.body("box").position, before[0]) and np.array_equal(sim.body("box").rotation, before[1])
    assert sim.constraint_error()[0, k].max() < 1e-12
    if grab.kind.v_size:
        still = [0, 0, 0, 1] if len(grab.kind.turns) == 3 else np.zeros(grab.kind.q_size)
        assert np.allclose(grab.position, still, atol=1e-12)
    sim.step(10)
    assert sim.constraint_error()[0, k].max() < 1e-9
