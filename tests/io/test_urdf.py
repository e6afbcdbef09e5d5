"""Robots from URDF: masses and zeros as the file says, merging that changes no motion, and refusals that name the line."""

import logging
import math
import os
import pathlib
import sys
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

import sharnir as sh
from sharnir.core.spatial import quat_rotate
from sharnir.io import load_urdf

DATA = pathlib.Path(__file__).parents[1] / "data"
INERTIAL = "<inertial><mass value='1'/><inertia ixx='0.1' iyy='0.1' izz='0.1'/></inertial>"
LIMIT = "<limit lower='-1' upper='1' effort='1' velocity='1'/>"


def write(folder, text, name="robot.urdf"):
    file = folder / name
    file.write_text(text, encoding="utf-8")
    return file


def link(name, inside=INERTIAL):
    return f"<link name='{name}'>{inside}</link>\n"


def joint(name, parent, child, inside=LIMIT, kind="revolute"):
    return f"<joint name='{name}' type='{kind}'><parent link='{parent}'/><child link='{child}'/>{inside}</joint>\n"


def robot(*parts):
    return "<robot name='r'>\n" + "".join(parts) + "</robot>\n"


def load(folder, *parts, **options):
    return load_urdf(write(folder, robot(*parts)), **options)


def rotation(roll, pitch, yaw):
    def about(axis, angle):
        c, s = math.cos(angle), math.sin(angle)
        i, j = [(1, 2), (2, 0), (0, 1)][axis]
        R = np.eye(3)
        R[i, i] = R[j, j] = c
        R[i, j], R[j, i] = -s, s
        return R

    return about(2, yaw) @ about(1, pitch) @ about(0, roll)


def shifted(inertia, mass, d):
    return inertia + mass * (d @ d * np.eye(3) - np.outer(d, d))


# ---- what a file says ------------------------------------------------------------------------------------------------


def test_inertia_is_turned_into_link_axes():
    scene = load_urdf(DATA / "arm.urdf")
    upper = scene.bodies["upper"]
    given = np.array([[0.01, 0.001, -0.002], [0.001, 0.02, 0.0005], [-0.002, 0.0005, 0.025]])
    R = rotation(0.3, -0.2, 0.5)
    np.testing.assert_allclose(upper.inertia, R @ given @ R.T, atol=1e-15)
    np.testing.assert_allclose(upper.com, [0.2, 0, 0.01])
    assert upper.mass == 2


def test_fixed_links_are_merged_by_the_parallel_axis_theorem():
    scene = load_urdf(DATA / "arm.urdf")
    assert list(scene.bodies) == ["world", "upper", "lower"]
    assert list(scene.joints) == ["shoulder", "elbow"]
    R = rotation(0, math.pi / 2, 0)
    a, b = np.array([0.15, 0, 0]), np.array([0.3, 0, 0]) + R @ [0, 0, 0.05]
    com = (a + 0.5 * b) / 1.5
    inertia = shifted(np.diag([0.002, 0.01, 0.011]), 1, a - com) + shifted(R @ np.diag([0.003, 0.002, 0.001]) @ R.T, 0.5, b - com)
    lower = scene.bodies["lower"]
    assert lower.mass == pytest.approx(1.5)
    np.testing.assert_allclose(lower.com, com, atol=1e-15)
    np.testing.assert_allclose(lower.inertia, inertia, atol=1e-15)


def test_bodies_stand_where_forward_kinematics_puts_them():
    scene = load_urdf(DATA / "arm.urdf", merge_fixed=False)
    R = rotation(0.1, 0.2, 0.3)
    elbow = np.array([0, 0, 1]) + R @ [0.4, 0, 0]
    R = R @ rotation(0, 0, 0.7)
    tool = elbow + R @ [0.3, 0, 0]
    np.testing.assert_allclose(scene.bodies["lower"].position, elbow, atol=1e-12)
    np.testing.assert_allclose(scene.bodies["tool"].position, tool, atol=1e-12)
    turned = quat_rotate(scene.bodies["tool"].rotation, np.eye(3)).T
    np.testing.assert_allclose(turned, R @ rotation(0, math.pi / 2, 0), atol=1e-12)
    assert "tip" not in scene.bodies  # nothing to be a body of
    assert isinstance(scene.joints["flange"].joint, sh.Fixed)


def test_merging_changes_no_motion():
    runs = []
    for merge in (True, False):
        sim = sh.Simulation(
            load_urdf(DATA / "arm.urdf", merge_fixed=merge), dt=1e-3, tolerances=sh.Tolerances(iterations=2000, tolerance=1e-13)
        )
        sim.run(0.1)
        assert abs(sim.joint("shoulder").velocity) > 0.1
        runs.append([sim.joint("shoulder").position, sim.joint("elbow").position, *sim.body("lower").position])
    np.testing.assert_allclose(runs[0], runs[1], atol=1e-6)


def test_limits_drive_damping_friction():
    axis = load_urdf(DATA / "arm.urdf").joints["elbow"].axes[0]
    assert (axis.limit.lower, axis.limit.upper) == (-2, 2.5)
    assert axis.drive == sh.Servo(max_force=30)
    assert (axis.damping, axis.friction.static) == (0.05, 0.2)
    assert load_urdf(DATA / "arm.urdf").joints["shoulder"].axes[0].limit.upper == math.inf


def test_every_joint_type_is_zero_at_the_files_zero():
    scene = load_urdf(DATA / "kinds.urdf")
    assert set(scene.bodies) == {"world", "turn", "spin", "slide", "float", "plane", "swing"}
    kinds = {name: type(j.joint).__name__ for name, j in scene.joints.items()}
    assert kinds == {
        "j_turn": "Revolute", "j_spin": "Revolute", "j_slide": "Prismatic",
        "j_float": "Free", "j_plane": "Planar", "j_swing": "Spherical",
    }  # fmt: skip
    assert scene.bodies["slide"].mass == 2
    limit = scene.joints["j_slide"].axes[0].limit
    assert (limit.lower, limit.upper) == (0, 0)
    sim = sh.Simulation(scene, dt=1e-3)
    for name in ("j_turn", "j_spin", "j_slide", "j_plane"):
        np.testing.assert_allclose(sim.joint(name).position, 0, atol=1e-12)
    high = [sim.body(name).com[2] for name in ("float", "plane")]
    sim.step(10)
    fell = [z - sim.body(name).com[2] for name, z in zip(("float", "plane"), high, strict=True)]
    np.testing.assert_allclose(fell, 0.5 * 9.81 * 0.01**2, rtol=1e-9)  # nothing holds them
    assert sim.joint("j_slide").position == pytest.approx(0.0, abs=1e-10), "its limits leave it no room"
    assert max(sim.joint(name).gap.max() for name in scene.joints) < 1e-14


def test_axes_point_where_the_file_says():
    sim = sh.Simulation(load_urdf(DATA / "kinds.urdf", gravity=(0, 0, 0)), dt=1e-3)
    R = rotation(1, 2, 3)
    before = sim.body("spin").position
    sim.joint("j_turn").position = 0.5
    turned = R @ rotation(0, 0, 0.5) @ R.T
    at = np.array([1.0, 0, 0])
    np.testing.assert_allclose(sim.body("spin").position, at + turned @ (before - at), atol=1e-9)
    (direction,) = sim.joint("j_spin").axes.values()
    expected = R @ rotation(0, 0, 0.5) @ rotation(-1, 0.5, 0) @ np.array([1, 1, 0]) / math.sqrt(2)
    np.testing.assert_allclose(direction, expected, atol=1e-9)


def test_mimic_with_offset_keeps_its_law(tmp_path):
    follow = LIMIT + "<mimic joint='a' multiplier='-0.5' offset='0.3'/>"
    chain = LIMIT + "<mimic joint='b' multiplier='2' offset='0.1'/>"
    scene = load(
        tmp_path, link("base", ""), link("one"), link("two"), link("three"),
        joint("a", "base", "one", LIMIT + "<axis xyz='0 1 0'/>"),
        joint("b", "one", "two", follow + "<origin xyz='0.3 0 0'/>"),
        joint("c", "two", "three", chain + "<origin xyz='0.3 0 0'/>"),
    )  # fmt: skip
    assert sorted(scene.gears) == ["b_mimic", "c_mimic"]
    sim = sh.Simulation(scene, dt=1e-3, tolerances=sh.Tolerances(iterations=200))
    assert sim.joint("a").position == pytest.approx(0, abs=1e-12)
    for _ in range(2):
        a, b, c = (sim.joint(n).position for n in "abc")
        np.testing.assert_allclose([b, c], [-0.5 * a + 0.3, 2 * b + 0.1], atol=1e-5)
        sim.run(0.1)
    assert abs(sim.joint("a").position) > 1e-2


def test_mimic_with_multiplier_zero_is_held_at_its_offset(tmp_path):
    scene = load(
        tmp_path, link("base"), link("one"), link("two"), joint("a", "base", "one"),
        joint("b", "base", "two", LIMIT + "<mimic joint='a' multiplier='0' offset='0.2'/>"),
    )  # fmt: skip
    assert not scene.gears
    assert scene.joints["b"].axes[0].limit == sh.Limit(0.2, 0.2)
    assert sh.Simulation(scene, dt=1e-3).joint("b").position == pytest.approx(0.2)


def test_followers_of_a_joint_left_out_follow_each_other(tmp_path, caplog):
    with caplog.at_level(logging.INFO, "sharnir"):
        scene = load(
            tmp_path, link("base"), link("one"), link("two"), link("knob", ""), joint("a", "base", "knob"),
            joint("b", "base", "one", LIMIT + "<mimic joint='a' multiplier='2'/>"),
            joint("c", "base", "two", LIMIT + "<mimic joint='a' multiplier='-1'/>"),
        )  # fmt: skip
    assert "<joint name='a'>: left out, there is no mass below it" in caplog.text
    assert list(scene.gears.values()) == [sh.Gear("c", "b", -0.5)]


# ---- the root --------------------------------------------------------------------------------------------------------


def test_root_with_mass_is_a_fixed_body_or_floats(tmp_path):
    parts = link("base"), link("arm"), joint("j", "base", "arm")
    heights = []
    for floating in (False, True):
        sim = sh.Simulation(load(tmp_path, *parts, floating=floating), dt=1e-3)
        sim.run(0.1)
        heights.append(sim.body("base").position[2])
    assert heights[0] == 0
    assert heights[1] == pytest.approx(-9.81 * 0.1**2 / 2, rel=0.02)


def test_colours_are_those_of_the_file(tmp_path):
    def painted(name, material):
        box = f'<visual><geometry><box size="1 1 1"/></geometry>{material}</visual>'
        return link(name, INERTIAL + box)

    scene = load(
        tmp_path, '<material name="blue"><color rgba="0 0 0.8 1"/></material>', painted("base", '<material name="blue"/>'),
        painted("one", '<material name="own"><color rgba="1 0.5 7 1"/></material>'), painted("two", '<material name="none"/>'),
        joint("a", "base", "one"), joint("b", "one", "two"),
    )  # fmt: skip
    assert [scene.bodies[name].color for name in ("base", "one", "two")] == [(0, 0, 0.8), (1, 0.5, 1), None]


def test_massless_root_is_the_world(tmp_path):
    scene = load(tmp_path, link("base", ""), link("arm"), joint("j", "base", "arm"))
    assert list(scene.bodies) == ["world", "arm"]
    assert scene.joints["j"].parent == 0


def test_what_is_fixed_to_a_link_called_world_keeps_its_name(tmp_path):
    place = "<origin xyz='1 2 3' rpy='0.1 0.2 0.3'/>"
    scene = load(
        tmp_path,
        link("world", ""),
        link("base"),
        link("arm"),
        joint("w", "world", "base", place, "fixed"),
        joint("j", "base", "arm"),
    )
    assert list(scene.bodies) == ["world", "base", "arm"]
    np.testing.assert_allclose(scene.bodies["base"].position, [1, 2, 3])
    np.testing.assert_allclose(scene.bodies["arm"].position, [1, 2, 3])
    assert sh.Simulation(scene, dt=1e-3).joint("j").position == pytest.approx(0, abs=1e-12)


def test_massless_root_floats_with_what_is_fixed_to_it(tmp_path):
    parts = link("base", ""), link("trunk"), joint("w", "base", "trunk", "<origin xyz='0 0 1'/>", "fixed")
    for merge in (True, False):
        scene = load(tmp_path, *parts, floating=True, merge_fixed=merge)
        assert list(scene.bodies) == ["world", "base"]
        np.testing.assert_allclose(scene.bodies["base"].com, [0, 0, 1])
    with pytest.raises(sh.SceneError, match=r"robot.urdf:2: <link name='base'>: a link that moves needs a mass"):
        load(tmp_path, link("base", ""), floating=True)


def test_a_joint_with_the_name_of_a_link(tmp_path):
    scene = load(tmp_path, link("base"), link("hip"), joint("hip", "base", "hip"))
    assert list(scene.joints) == ["hip"]
    assert "hip" in scene.bodies
    assert not scene.notes


# ---- masses and inertias no body has ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "taken"),
    [
        ((0, 0, 0), (2e-6, 2e-6, 2e-6)),
        ((0, 1, 1), (2e-6, 1, 1)),
        ((1, 1, 2.5), (1, 1, 2.5)),  # no body has it, and no solver minds
        ((-1e-20, 0, 0), (2e-6, 2e-6, 2e-6)),
    ],
)
def test_inertia_is_lifted_or_kept_with_a_warning(tmp_path, caplog, given, taken):
    inertial = "<inertial><mass value='2'/><inertia ixx='{}' iyy='{}' izz='{}'/></inertial>".format(*given)
    scene = load(tmp_path, link("base"), link("arm", inertial), joint("j", "base", "arm"))
    np.testing.assert_allclose(np.sort(np.diag(scene.bodies["arm"].inertia)), taken)
    assert "robot.urdf:3: <link name='arm'>: no body of 2 kg has the principal moments" in caplog.text
    assert len(scene.notes) == 1 and scene.notes[0] in caplog.text
    assert scene.notes[0].endswith("; kept") == (given == (1, 1, 2.5))


@pytest.mark.parametrize("lift", [1e-3, 1e-9])
def test_a_massless_link_that_moves_gets_a_share_of_what_it_carries(tmp_path, caplog, lift):
    parts = link("a"), link("b", ""), link("c"), joint("j", "a", "b"), joint("k", "b", "c", LIMIT + "<axis xyz='0 1 0'/>")
    scene = load(tmp_path, *parts, lift=lift)
    assert scene.bodies["b"].mass == pytest.approx(lift * 1)
    np.testing.assert_allclose(scene.bodies["b"].inertia, lift * 0.1 * np.eye(3))
    line = f"robot.urdf:3: <link name='b'>: moves without mass; taken as {lift:g} kg, {0.1 * lift:g} kg·m²"
    assert scene.notes == [line] and line in caplog.text
    with pytest.raises(sh.SceneError, match="lift is a number above 0 and at most 1, got 0"):
        load(tmp_path, *parts, lift=0)


def test_inertia_without_mass_is_kept(tmp_path):
    wheel = "<inertial><mass value='0'/><inertia ixx='0.1' iyy='0.2' izz='0.3'/></inertial>"
    scene = load(
        tmp_path, link("base"), link("arm"), link("plate", wheel), link("rotor", wheel), joint("j", "base", "arm"),
        joint("f", "arm", "plate", "", "fixed"), joint("r", "base", "rotor"),
    )  # fmt: skip
    np.testing.assert_allclose(np.diag(scene.bodies["arm"].inertia), [0.2, 0.3, 0.4])
    np.testing.assert_allclose(np.diag(scene.bodies["rotor"].inertia), np.array([0.1, 0.2, 0.3]) + 3e-4)
    assert len(scene.notes) == 1 and "<link name='rotor'>: moves without mass" in scene.notes[0]


def test_a_mimic_of_nobody_moves_by_itself(tmp_path, caplog):
    scene = load(tmp_path, link("a"), link("b"), joint("j", "a", "b", LIMIT + "<mimic joint='x'/>"))
    assert not scene.gears
    line = "robot.urdf:4: <joint name='j'> <mimic joint='x'>: the file has no such joint; this one moves by itself"
    assert scene.notes == [line] and line in caplog.text


def test_a_point_mass_fixed_to_a_body_is_not_lifted(tmp_path, caplog):
    point = "<inertial><mass value='1'/></inertial>"
    scene = load(
        tmp_path, link("base"), link("arm"), link("lamp", point), joint("j", "base", "arm"),
        joint("f", "arm", "lamp", "<origin xyz='1 0 0'/>", "fixed"),
    )  # fmt: skip
    assert "no body" not in caplog.text
    np.testing.assert_allclose(np.diag(scene.bodies["arm"].inertia), [0.1, 0.6, 0.6])


# ---- drawing ---------------------------------------------------------------------------------------------------------

TETRAHEDRON = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\n"  # one side open


def mesh(filename, more=""):
    return link("base", f"<visual><origin xyz='0 0 1'/><geometry><mesh filename='{filename}' {more}/></geometry></visual>")


def test_shapes_are_drawn_and_weigh_nothing():
    pytest.importorskip("trimesh")
    scene = load_urdf(DATA / "arm.urdf")
    vertices, _ = scene.bodies["lower"].shape.mesh()
    # The box reaches from the joint to the flange; the capsule stands on the flange, turned along x.
    np.testing.assert_allclose(vertices[:, 0].min(), 0, atol=1e-9)
    np.testing.assert_allclose(vertices[:, 0].max(), 0.3 + 0.07, atol=1e-9)
    assert scene.bodies["lower"].mass == 1.5


def test_meshes_are_found_in_the_roots_and_scaled(tmp_path):
    pytest.importorskip("trimesh")
    package = tmp_path / "share" / "robot"
    (package / "meshes").mkdir(parents=True)
    (package / "urdf").mkdir()
    file = write(package / "meshes", TETRAHEDRON, "part.obj")
    for name, roots in (
        ("package://robot/meshes/part.obj", [tmp_path / "share"]),
        ("package://robot/meshes/part.obj", [package]),
        ("../meshes/part.obj", [package]),
        (f"file://{file}", [package]),
    ):
        scene = load_urdf(write(package / "urdf", robot(mesh(name, "scale='1 2 -3'"))), roots=roots)
        vertices, faces = scene.bodies["base"].shape.mesh()
        assert vertices.shape[0] >= 4 and len(faces) == 3
        np.testing.assert_allclose([vertices.min(0), vertices.max(0)], [[0, 0, -2], [1, 2, 1]])


def test_a_missing_or_broken_mesh_is_no_error(tmp_path, caplog):
    pytest.importorskip("trimesh")
    write(tmp_path, "solid nothing", "broken.stl")
    write(tmp_path, "text", "notes.txt")
    with caplog.at_level(logging.INFO, "sharnir"):
        for name in ("package://robot/part.stl", "part.stl", "file:///nowhere/part.stl", "notes.txt"):
            assert list(load(tmp_path, mesh(name)).bodies) == ["world"]
        vertices, faces = load(tmp_path, mesh("broken.stl")).bodies["base"].shape.mesh()
    assert len(vertices) and len(faces)
    for note in (
        "robot.urdf:2: <link name='base'> <mesh filename='part.stl'>: left out, no such file",
        "<mesh filename='file:///nowhere/part.stl'>: left out, a place outside the roots",
        "<mesh filename='notes.txt'>: left out, a mesh is one of",
        "broken.stl: cannot be drawn",
    ):
        assert note in caplog.text


def test_what_is_left_out_or_ignored_is_noted(tmp_path):
    extra = "<transmission name='t'/>", "<gazebo/>", "<gazebo/>"
    arm = link("arm") + joint("arm", "base", "arm", LIMIT + "<calibration rising='0'/>")
    scene = load(tmp_path, mesh("part.stl"), arm, *extra)
    found = "\n".join(scene.notes)
    for note in (
        "robot.urdf:2: <link name='base'> <mesh filename='part.stl'>: left out, no such file",
        "<transmission>: ignored, 1 in all", "<gazebo>: ignored, 2 in all", "<calibration>: ignored, 1 in all",
    ):  # fmt: skip
        assert note in found, found
    assert scene.build().notes == scene.notes


def test_what_a_link_collides_with_is_kept_beside_what_is_drawn(tmp_path):
    def both(size):
        pose = "<origin xyz='0 0 1'/>"
        drawn = f"<visual>{pose}<geometry><sphere radius='{size}'/></geometry></visual>"
        return drawn + f"<collision>{pose}<geometry><box size='{size} {size} {size}'/></geometry></collision>"

    tip = link("tip", both(2)) + joint("f", "arm", "tip", "<origin xyz='1 0 0'/>", "fixed")
    scene = load(tmp_path, link("base"), link("arm", INERTIAL + both(1)), joint("j", "base", "arm"), tip)
    arm = scene.bodies["arm"]
    assert [type(part).__name__ for part in arm.shape.shapes] == ["Sphere", "Sphere"]
    assert [(type(part).__name__, part.x, part.position) for part in scene.touch.bodies["arm"].shapes] == [
        ("Box", 1.0, (0, 0, 1)), ("Box", 2.0, (1, 0, 1)),
    ]  # fmt: skip


def test_a_mesh_outside_the_roots_is_refused(tmp_path):
    inside = tmp_path / "robot"
    inside.mkdir()
    secret = write(tmp_path, TETRAHEDRON, "secret.obj")
    os.symlink(secret, inside / "link.obj")
    for name in (
        "../secret.obj",
        "link.obj",
        "package://robot/../../secret.obj",
        "package://../secret.obj",
        f"file://{inside}/../secret.obj",
        "file://%2e%2e/secret.obj",
    ):
        with pytest.raises(sh.SceneError, match=r"robot.urdf:2: <link name='base'> <mesh filename='.*: a file inside the roots"):
            load(inside, mesh(name))
        assert load(inside, mesh(name), meshes=False)
    assert list(load(inside, mesh("package:///etc/passwd")).bodies) == ["world"]  # means etc/passwd in a root: missing
    with pytest.raises(sh.SceneError, match="nothing is read over a network"):
        load(inside, mesh("https://example.org/part.stl"))


def test_a_mesh_draws_no_file_of_another_folder_in(tmp_path):
    pytest.importorskip("trimesh")
    folder = tmp_path / "robot"
    folder.mkdir()
    write(tmp_path, "newmtl red\nmap_Kd picture.png\n", "colours.mtl")
    write(folder, "mtllib ../colours.mtl\n" + TETRAHEDRON, "part.obj")
    shape = load(folder, mesh("part.obj")).bodies["base"].shape
    opened = []
    sys.addaudithook(lambda event, args: opened.append(str(args[0])) if event == "open" else None)
    shape.mesh()
    assert any("part.obj" in name for name in opened)
    assert not any("colours.mtl" in name for name in opened)


def test_roots_are_folders(tmp_path):
    with pytest.raises(sh.SceneError, match="roots is a list of folders"):
        load(tmp_path, link("base"), roots=str(tmp_path))
    with pytest.raises(sh.SceneError, match="roots are folders, got"):
        load(tmp_path, link("base"), roots=[tmp_path / "none"])


# ---- refusals --------------------------------------------------------------------------------------------------------

A, B = link("a"), link("b")
REFUSED = {
    "no robot": ("<sdf/>", "robot.urdf:1: <sdf>: a URDF starts with <robot>"),
    "no link": (robot(), "robot.urdf:1: <robot name='r'>: needs at least one <link>"),
    "not XML": ("<robot>\n<link>\n</robot>", "robot.urdf:3: no well-formed XML: mismatched tag"),
    "empty": ("", "robot.urdf:1: no well-formed XML: no element found"),
    "unknown encoding": ("<?xml version='1.0' encoding='klingon'?><robot/>", "no well-formed XML: unknown encoding"),
    "macro": (robot("<xacro:include filename='x'/>"), "robot.urdf:2: <xacro:include>: a macro; expand the file with xacro first"),
    "deep": (robot("<x>" * 200 + "</x>" * 200), "robot.urdf:2: <x>: at most 1000000 elements, 100 inside each other"),
    "link twice": (robot(A, B, A), "robot.urdf:4: <link name='a'>: a name of its own, line 2 has the same"),
    "joint twice": (
        robot(A, B, link("c"), joint("j", "a", "b"), joint("j", "b", "c")),
        "robot.urdf:6: <joint name='j'>: a name of its own, line 5 has the same",
    ),
    "no name": (robot("<link/>"), "robot.urdf:2: <link>: needs the attribute 'name', not empty"),
    "no parent": (
        robot(A, "<joint name='j' type='fixed'><child link='a'/></joint>"),
        "robot.urdf:3: <joint name='j'>: needs <parent>",
    ),
    "no child": (
        robot(A, "<joint name='j' type='fixed'><parent link='a'/></joint>"),
        "robot.urdf:3: <joint name='j'>: needs <child>",
    ),
    "unknown link": (
        robot(A, joint("j", "a", "x")),
        "robot.urdf:3: <joint name='j'> <child link='x'>: the name of a link of the file",
    ),
    "two parents": (
        robot(A, B, link("c"), joint("j", "a", "c"), joint("k", "b", "c")),
        "robot.urdf:6: <joint name='k'> <child link='c'>: a link with one parent; joint 'j', line 5, has it too",
    ),
    "itself": (robot(A, joint("j", "a", "a")), "robot.urdf:3: <joint name='j'>: parent and child are two links, both are 'a'"),
    "cycle": (
        robot(A, B, link("c"), joint("j", "b", "c"), joint("k", "c", "b")),
        "robot.urdf:6: <joint name='k'>: a tree; 'c' and 'b' are in a cycle, or behind one",
    ),
    "cycle without a root": (
        robot(A, B, joint("j", "a", "b"), joint("k", "b", "a")),
        "robot.urdf:5: <joint name='k'>: a tree; 'b' and 'a' are in a cycle, or behind one",
    ),
    "two roots": (robot(A, B), "robot.urdf:3: <link name='b'>: one link without a parent, the root; 'a', 'b' have none"),
    "joint type": (
        robot(A, B, joint("j", "a", "b", "", "screw")),
        "robot.urdf:4: <joint name='j' type='screw'>: type is one of revolute, continuous, prismatic, fixed, floating, planar",
    ),
    "no limit": (robot(A, B, joint("j", "a", "b", "")), "robot.urdf:4: <joint name='j'>: a revolute joint needs <limit lower="),
    "limit upside down": (
        robot(A, B, joint("j", "a", "b", "<limit lower='1' upper='-1'/>")),
        "robot.urdf:4: <joint name='j'> <limit lower='1' upper='-1'>: lower is at most upper",
    ),
    "junk limit": (
        robot(A, B, joint("j", "a", "b", "<limit lower='pi' upper='1'/>")),
        "robot.urdf:4: <joint name='j'> <limit lower='pi'>: a finite number",
    ),
    "negative damping": (
        robot(A, B, joint("j", "a", "b", LIMIT + "<dynamics damping='-1'/>")),
        "robot.urdf:4: <joint name='j'> <dynamics damping='-1'>: a number of at least 0",
    ),
    "zero axis": (
        robot(A, B, joint("elbow", "a", "b", LIMIT + "\n<axis xyz='0 0 0'/>")),
        "robot.urdf:5: <joint name='elbow'> <axis xyz='0 0 0'>: a vector other than zero",
    ),
    "two numbers": (
        robot(A, B, joint("j", "a", "b", LIMIT + "<origin xyz='0 0'/>")),
        "robot.urdf:4: <joint name='j'> <origin xyz='0 0'>: 3 finite numbers",
    ),
    "underscore": (
        robot(A, B, joint("j", "a", "b", LIMIT + "<origin rpy='0 0 1_0'/>")),
        "<origin rpy='0 0 1_0'>: 3 finite numbers",
    ),
    "overflow": (
        robot(A, B, joint("j", "a", "b", LIMIT + "<origin xyz='0 0 1e999'/>")),
        "<origin xyz='0 0 1e999'>: 3 finite numbers",
    ),
    "two rotations": (
        robot(A, B, joint("j", "a", "b", LIMIT + "<origin rpy='0 0 0' quat_xyzw='0 0 0 1'/>")),
        "<origin rpy='0 0 0' quat_xyzw='0 0 0 1'>: rpy or quat_xyzw, not both",
    ),
    "two inertials": (
        robot(link("a", INERTIAL + INERTIAL)),
        "robot.urdf:2: <link name='a'> <inertial>: at most one <inertial>, the first is on line 2",
    ),
    "no mass": (robot(link("a", "<inertial/>")), "robot.urdf:2: <link name='a'> <inertial>: needs <mass>"),
    "nan mass": (
        robot(link("a", "<inertial><mass value='nan'/></inertial>")),
        "robot.urdf:2: <link name='a'> <mass value='nan'>: a finite number",
    ),
    "negative mass": (
        robot(link("a", "<inertial><mass value='-1'/></inertial>")),
        "robot.urdf:2: <link name='a'> <mass value='-1'>: a number of at least 0",
    ),
    "negative moment": (
        robot(link("a", "<inertial><mass value='1'/><inertia ixx='-1' iyy='1' izz='1'/></inertial>")),
        "<inertia ixx='-1'>: a number of at least -1e-09",
    ),
    "no moment": (
        robot(link("a", "<inertial><mass value='1'/><inertia ixx='1' iyy='1'/></inertial>")),
        "robot.urdf:2: <link name='a'> <inertia>: needs the attribute 'izz', not empty",
    ),
    "geometry": (
        robot(link("a", "<visual><geometry><torus/></geometry></visual>")),
        "robot.urdf:2: <link name='a'> <geometry>: one of <box>, <sphere>, <cylinder>, <capsule>, <mesh>, got <torus>",
    ),
    "negative size": (
        robot(link("a", "<collision><geometry><box size='1 -1 1'/></geometry></collision>")),
        "robot.urdf:2: <link name='a'> <box size='1 -1 1'>: a size of at least 0",
    ),
    "mimic itself": (
        robot(A, B, joint("j", "a", "b", LIMIT + "<mimic joint='j'/>")),
        "<mimic joint='j'>: no circle of joints that follow each other",
    ),
    "mimic a weld": (
        robot(A, B, link("c"), joint("f", "a", "c", "", "fixed"), joint("j", "a", "b", LIMIT + "<mimic joint='f'/>")),
        "<mimic joint='f'>: one free axis follows another, here revolute and fixed",
    ),
    "mimic turns": (
        robot(A, B, link("c"), joint("i", "a", "b"), joint("j", "b", "c", LIMIT + "<mimic joint='i' offset='4'/>")),
        "<mimic offset='4'>: an angle starts within ±π",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_refusals_name_file_line_element_and_value(tmp_path, case):
    text, message = REFUSED[case]
    with pytest.raises(sh.SceneError) as caught:
        load_urdf(write(tmp_path, text))
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "declaration",
    [
        "<!DOCTYPE robot>",
        "<!DOCTYPE robot SYSTEM 'file:///etc/passwd'>",
        "<!DOCTYPE r [<!ENTITY a 'ha'><!ENTITY b '&a;&a;&a;&a;'><!ENTITY c '&b;&b;&b;&b;'>]>",
        "<!DOCTYPE r [<!ENTITY x SYSTEM 'file:///etc/passwd'>]>",
    ],
)
def test_document_types_and_entities_are_refused(tmp_path, declaration):
    text = f"<?xml version='1.0'?>\n{declaration}\n" + robot("<link name='&c;'/>" if "c " in declaration else A)
    for encoding in ("utf-8", "utf-16"):
        file = tmp_path / "robot.urdf"
        file.write_bytes(text.encode(encoding))
        with pytest.raises(sh.SceneError, match=r"robot.urdf:2: <!DOCTYPE> and entities are refused"):
            load_urdf(file)


def test_files_that_cannot_be_read(tmp_path, monkeypatch):
    with pytest.raises(sh.SceneError, match="no such file"):
        load_urdf(tmp_path / "none.urdf")
    with pytest.raises(sh.SceneError, match="no such file"):
        load_urdf(tmp_path)
    monkeypatch.setattr("sharnir.io.xml.MAX_FILE_BYTES", 100)
    with pytest.raises(sh.SceneError, match="MB are read"):
        load_urdf(DATA / "arm.urdf")


def test_a_long_chain_needs_no_deep_stack(tmp_path):
    n = sys.getrecursionlimit() + 200
    parts = [link("l0")] + [link(f"l{i}") + joint(f"j{i}", f"l{i - 1}", f"l{i}", "", "fixed") for i in range(1, n)]
    assert load(tmp_path, *parts).bodies["l0"].mass == n


# ---- robots of the world ---------------------------------------------------------------------------------------------

EMPTY = "ur3.urdf"  # has no links
UNTOUCHED = (": ignored, ", "filename=", ": called ", "outside its limit", "a size is 0")
"""In notes that say nothing of a repair."""
NOTED = {  # how many lines of notes are repairs
    "alex_psyonic_hands.urdf": 8, "human.urdf": 19, "icub.urdf": 10, "icub_reduced.urdf": 7, "romeo.urdf": 24,
    "romeo_laas_small.urdf": 6, "romeo_small.urdf": 2,
}  # fmt: skip


def example_robots():
    """The folder of the package example-robot-data, where it is installed."""
    for place in sys.path:
        folder = pathlib.Path(place) / "cmeel.prefix" / "share" / "example-robot-data" / "robots"
        if folder.is_dir():
            return folder
    pytest.skip("pip install example-robot-data")


@pytest.mark.slow
def test_example_robots_load_with_all_their_mass():
    folder, loaded = example_robots(), 0
    for file in sorted(folder.rglob("*.urdf")):
        if file.name == EMPTY:
            with pytest.raises(sh.SceneError, match="needs at least one <link>"):
                load_urdf(file)
            continue
        scene = load_urdf(file, roots=[folder, folder.parent.parent], lift=1e-13)
        masses = [float(m.get("value")) for m in ElementTree.parse(file).getroot().findall("link/inertial/mass")]
        assert sum(body.mass for body in scene.bodies.values()) == pytest.approx(sum(masses), rel=1e-12)
        repairs = [n for n in scene.notes if not any(word in n for word in UNTOUCHED)]
        assert len(repairs) == NOTED.get(file.name, 0), repairs
        loaded += 1
    print(f"{loaded} robots")
    assert loaded > 0


def test_an_example_arm_moves():
    scene = load_urdf(next(example_robots().rglob("ur5_robot.urdf")), meshes=False)
    sim = sh.Simulation(scene, dt=1e-3)
    sim.run(0.1)
    assert 0.1 < abs(sim.joint("shoulder_lift_joint").velocity) < 10
    assert np.abs(sim.constraint_error()).max() < 1e-3
