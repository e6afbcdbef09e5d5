"""Scene files: they say what the API says, to the bit; what is wrong is told with its place, all of it."""

import pathlib
import re
import warnings

import numpy as np
import pytest
from conftest import EXAMPLES, load_example
from damage import damaged, unfinished

import sharnir as sh
from sharnir.cli import arguments
from sharnir.core.spatial import quat_exp, quat_multiply, quat_rotate
from sharnir.io.check import check_file
from sharnir.io.scene_file import Reader, read_text
from sharnir.io.write import content, difference, said_again, scene_text

SCENES = pathlib.Path(EXAMPLES) / "scenes"
FEW = (
    "box_pyramid",
    "catenary",
    "chain",
    "conveyor",
    "elevator",
    "four_bar",
    "krt100_rope",
    "pushed_door",
    "satellite",
    "twisted_ring",
)
BY_FUNCTION = ("hexapod", "thousand_links", "tow_rope", "trailer_hitch", "winch_crane")


class Stopped(Exception):
    pass


@pytest.fixture
def scene_of(monkeypatch):
    """The scene of an example, as it is handed to its simulation."""

    def caught(self, *_, **__):
        raise Stopped(self)

    def scene(name):
        with monkeypatch.context() as patch, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            patch.setattr(sh.Scene, "build", caught)
            try:
                load_example(name).make()
            except Stopped as stopped:
                return stopped.args[0]
            except SystemExit as missing:
                pytest.skip(str(missing))
        return None

    return scene


def round_trip(scene, folder):
    file = folder / "scene.toml"
    scene.save(file)
    again = sh.load_scene(file)
    wanted = content(scene)
    wanted["inputs"] = {name: given for name, given in wanted["inputs"].items() if given.act is None}
    assert difference(wanted, content(again), "scene") is None
    return again


@pytest.mark.parametrize("name", FEW)
def test_example_comes_back_to_the_bit(name, scene_of, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        round_trip(scene_of(name), tmp_path)


@pytest.mark.slow
def test_all_examples_and_random_scenes_come_back_to_the_bit(scene_of, tmp_path):

    from mechanisms import any_case

    names = sorted(p.stem for p in pathlib.Path(EXAMPLES).glob("*.py") if p.stem not in BY_FUNCTION)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in names:
            round_trip(scene_of(name), tmp_path)
        for seed in range(1000, 1060):
            round_trip(any_case(seed).scene, tmp_path)
    print(f"{len(names)} examples and 60 random scenes come back to the bit")


@pytest.mark.parametrize("name", BY_FUNCTION[2:])
def test_a_path_that_is_a_function_is_refused_by_name(name, scene_of, tmp_path):
    with pytest.raises(sh.SceneError, match=r"body '\w+': path is a Python function"):
        scene_of(name).save(tmp_path / "scene.toml")
    assert not list(tmp_path.iterdir())


def test_the_model_of_a_saved_scene_moves_alike(tmp_path):
    made = load_example("swinging_door").make()
    text = scene_text(made.model.told)
    again = sh.Simulation(read_text(text), made.dt, solver="sequential")
    for sim in (made, again):
        sim.joint("hinge").effort = 50.0
        sim.step(30)
    assert np.array_equal(made.q, again.q) and np.array_equal(made.qd, again.qd) and made.qd[0] > 1


def test_a_scene_with_a_rope_is_saved_after_its_model_was_built(tmp_path):
    scene = sh.Scene()
    scene.add_ground()
    scene.add_body("load", sh.Sphere(0.1), position=(0, 0, 0.9))
    scene.add_rope("line", (0, 0, 2), (0, 0, 1), segments=5, attach=("world", "load"))
    scene.build()
    scene.save(tmp_path / "line.toml")
    assert list(sh.load_scene(tmp_path / "line.toml").ropes) == ["line"]


def test_every_kind_of_object_comes_back(tmp_path):
    scene = sh.Scene((0, 0.1, -9.81), contact=True)
    rng = np.random.default_rng(5)
    battery, place = sh.Battery(24.0, 0.1, name="cell {1}"), np.zeros(3)
    for i in range(3):
        place += (1 / 3, 0, 0)
        scene.add_body(f"= b{{{i}}}", sh.Box(0.1, 0.2, 0.3, rotation=quat_exp(rng.normal(size=3))), position=place, group=(1, 3))
    names = list(scene.bodies)[1:]
    motor = sh.DCMotor(battery=battery, command=0.5)
    scene.add_joint(
        "j0", sh.Revolute(rng.normal(size=3), drive=motor, limit=sh.Limit(-1, 1, 0.2)), "world", names[0], position=(0, 0, 0)
    )
    scene.add_joint(
        "j1", sh.Universal((rng.normal(size=3) * (1, 1, 0), "z"), drive={"ry": motor}), names[0], names[1], position=(0, 0, 1)
    )
    ball = sh.Spherical(limit=sh.SwingTwist((0.5, 0.6), (-1, 1)), friction=sh.Friction(2.0, 1.0, stribeck=0.1))
    scene.add_joint("j2", ball, names[1], names[2], position=(0, 1, 1), break_force=1e3)
    scene.add_joint("gear", sh.Gear("j0", ("j1", "rx"), 2.5))
    scene.add_terrain("hills", sh.terrain.rubble(size=(4, 4), height=0.2, step=0.2), position=(0, 0, -3))
    scene.add_body("after", motion="kinematic", position=(0, 0, 9), velocity=(1, 0, 0))
    scene.add_ground(-9, normal=(0, 0.1, 1), material=sh.Material((0.5, 0.4), (1, 1, 0)))
    scene.add_spring("spring", names[0], names[2], stiffness=3, damping=0.1)
    scene.add_cable("cable", [("world", (0, 0, 3)), sh.Sheave(names[0], 0.05, axis="-y", friction=0.1), names[2]], length=20)
    scene.add_rope("rope", points=lambda s: (s, np.sin(s), 2), segments=12, attach=(None, "world"), EI=0.1, clamp=(False, True))
    scene.add_frame("eye", names[1], position=(0.1, 0, 0))
    scene.ignore(names[0], names[2])
    scene.set_pair(names[0], "world", sh.Material(0.1))
    scene.set_drive("j2", sh.Servo(kd=1.0, max_force=5.0))
    scene.add_belt("j0", "world", sh.Box(1, 1, 1), radius=0.2)
    scene.add_raycast_wheel("rim", names[1], sh.Sphere(0.1), axis=(0, 1, 0), radius=0.1, inertia=0.2, drive=sh.Servo(kd=3.0))
    mesh = sh.Box(1, 2, 3).mesh()
    scene.add_body("mesh", sh.Compound(sh.Mesh(mesh), sh.Sphere(0.1, position=(0, 0, 2))), density=800.0)
    scene.add_input("j0", "joint/j0.command", rate=2.0, keys=("w", "s"), about="{part}")
    again = round_trip(scene, tmp_path)
    assert again.joints["j0"].axes[0].drive.battery is again.joints["j1"].axes[1].drive.battery
    assert difference(content(scene), content(said_again(scene.told())), "") is None
    scene.bodies["mesh"].mass *= 1.0 + 1e-15
    with pytest.raises(sh.SceneError, match="bodies: mesh: mass differs when read back"):
        scene.save(tmp_path / "other.toml")


SAME = {"door": "swinging_door", "chain": "chain", "four_bar": "four_bar", "box_pyramid": "box_pyramid"}


@pytest.mark.parametrize("name", sorted(p.stem for p in SCENES.glob("*.toml")))
def test_scene_file_of_the_examples(name, scene_of):
    problems, _ = check_file(SCENES / f"{name}.toml")
    assert not problems
    if name == "trailer_hitch":
        assert list(sh.load_scene(SCENES / f"{name}.toml").inputs) == ["throttle", "steer", "brake"]
    if name in SAME:
        scene, wanted = sh.load_scene(SCENES / f"{name}.toml"), scene_of(SAME[name])
        for kind in ("bodies", "joints"):
            mine, theirs = getattr(scene, kind), getattr(wanted, kind)
            assert len(mine) == len(theirs)
            for a, b in zip(mine.values(), theirs.values(), strict=True):
                for key, value in vars(a).items():
                    if isinstance(value, np.ndarray | float):
                        assert np.allclose(value, getattr(b, key), rtol=1e-15, atol=1e-15), (a.name, key)


def test_parameters_repeats_and_expressions():
    scene = sh.load_scene(SCENES / "chain.toml", rods=4, mass=2)
    assert list(scene.bodies) == ["world", "rod0", "rod1", "rod2", "rod3"] and scene.bodies["rod2"].mass == 0.5
    assert scene.joints["hinge0"].parent == 0 and scene.joints["hinge3"].parent == 3 and scene.options == {"dt": 1e-3}
    with pytest.raises(sh.SceneError, match="there is no parameter 'rod'; is 'rods' meant"):
        sh.load_scene(SCENES / "chain.toml", rod=4)
    with pytest.raises(sh.SceneError, match="'rods' is 10 in the file, a number, got 'x'"):
        sh.load_scene(SCENES / "chain.toml", rods="x")


PARTS = """
include = "leg.toml"
[body.hull]
mass = 5
inertia = [1, 1, 1]
[place.left]
part = "leg"
position = [0, 1, 0]
rotation = [0, 0, 0.6, 0.8]
set = {hull = "hull", length = 2}
[place."r{i}"]
repeat = {i = 2}
part = "leg"
prefix = "r{i}."
position = ["= i", -1, 0]
"""
LEG = """
[parameters]
color = "#ff0000"
[part.leg.parameters]
hull = "hull"
length = 1.5
[part.leg.body.thigh]
shape = {type = "Box", x = 0.1, y = 0.1, z = "= length"}
position = [0, 0.5, 1]
velocity = [1, 0, 0]
color = "{color}"
[part.leg.joint.hip]
type = "Revolute"
axis = "x"
parent = "{hull}"
child = "thigh"
position = [0, 0.5, 0]
"""


def test_parts_and_includes(tmp_path):
    (tmp_path / "leg.toml").write_text(LEG)
    (tmp_path / "all.toml").write_text(PARTS)
    scene = sh.load_scene(tmp_path / "all.toml")
    assert list(scene.bodies) == ["world", "hull", "left thigh", "r0.thigh", "r1.thigh"]
    turn, thigh = np.array([0, 0, 0.6, 0.8]), scene.bodies["left thigh"]
    assert np.allclose(thigh.position, [0, 1, 0] + quat_rotate(turn, np.array([0, 0.5, 1.0])), atol=1e-15)
    assert np.allclose(thigh.rotation, quat_multiply(turn, np.array([0, 0, 0, 1.0]))) and thigh.shape.z == 2
    assert np.allclose(thigh.velocity, quat_rotate(turn, np.array([1.0, 0, 0]))) and thigh.color == (1, 0, 0)
    hip = scene.joints["left hip"]
    along = quat_rotate(hip.parent_frame, np.array([1.0, 0, 0]))
    assert np.allclose(along, quat_rotate(turn, np.array([1.0, 0, 0]))) and hip.parent == 1 and scene.joints["r1.hip"].child == 4
    (tmp_path / "leg.toml").write_text('include = "all.toml"\n' + LEG)
    with pytest.raises(sh.SceneFileError, match=r"leg.toml:1: include: includes itself: all.toml → leg.toml → all.toml"):
        sh.load_scene(tmp_path / "all.toml")


def test_a_body_relative_to_another_moves_with_the_part(tmp_path):
    (tmp_path / "s.toml").write_text(
        "[part.arm.body.base]\nmass = 1\nposition = [1, 0, 0]\n[part.arm.body.tip]\nmass = 1\nposition = [0, 2, 0]\n"
        'rotation = [0, 0, 0.6, 0.8]\nrelative_to = "base"\n'
        '[place.left]\npart = "arm"\nposition = [0, 0, 5]\nrotation = [0, 0, 0.7071067811865475, 0.7071067811865476]\n'
    )
    bodies = sh.load_scene(tmp_path / "s.toml").bodies
    assert np.allclose(bodies["left base"].position, (0, 1, 5)) and np.allclose(bodies["left tip"].position, (-2, 1, 5))
    assert np.allclose(
        bodies["left tip"].rotation, quat_multiply(np.array([0, 0, 0.5**0.5, 0.5**0.5]), np.array([0, 0, 0.6, 0.8]))
    )


WRONG = """[scene]
gravty = 1
[parameters]
a = "= b"
b = "= a + 1"
[body.door]
shape = {type = "Boxx", x = 1}
[body.d2]
shape = {type = "Box", x = 1, y = -2, z = 1}
masss = 4
[body.d3]
mass = "heavy"
motion = "dynamik"
[body.d4]
mass = -3
[joint.hinge]
type = "Revolute"
axis = "w"
parent = "world"
child = "door"
[joint.far]
type = "Revolute"
parent = "world"
child = "doors"
position = [0, 0, 0]
[bodyy.x]
[body.many]
repeat = {i = 1e9}
mass = "= __import__('os')"
"""
TOLD = (
    r":2: scene.gravty: unknown key, got 1; is 'gravity' meant",
    r":4: parameters.a: .*given by itself: b → a → b",
    r":7: body.door.shape.type: type 'Boxx' is unknown; is 'Box' meant",
    r":9: body.d2.shape: Box: y must be a positive finite length in m, got -2",
    r":10: body.d2.masss: unknown key, got 4; is 'mass' meant",
    r":12: body.d3.mass: a number, got 'heavy'",
    r":13: body.d3.motion: 'dynamic' or 'fixed' or 'kinematic', got 'dynamik'",
    r":15: body.d4.mass: body 'd4': mass is a positive finite number, got -3",
    r":18: joint.hinge.axis: Revolute: axis is 'x', 'y', 'z' \(with or without a minus\) or a finite vector",
    r":24: joint.far.child: joint 'far': child 'doors' is not a body",
    r":26: bodyy: an unknown table; is 'body' meant",
    r":28: body.many.repeat: i is a count",
)


def test_all_that_is_wrong_is_told_with_its_place(tmp_path, capsys):
    file = tmp_path / "wrong.toml"
    file.write_text(WRONG)
    problems, _ = check_file(file)
    for pattern in TOLD:
        assert any(re.search(r"^wrong\.toml" + pattern, line) for line in problems), (pattern, problems)
    assert len(problems) == len(TOLD) + 1, problems  # b → a → b is told from either side
    assert arguments.main(["check", str(file)]) == 1
    assert capsys.readouterr().err.count("wrong.toml:") == len(problems)
    (tmp_path / "wrong.urdf").write_text(
        "<robot name='r'>\n<link/>\n<link name='a'/>\n<joint name='j' type='hinge'/>\n<joint name='k' type='fixed'/>\n</robot>"
    )
    problems, _ = check_file(tmp_path / "wrong.urdf")
    assert [line.split(":")[1] for line in problems] == ["2", "4", "5"]


def test_commands_take_scene_files(capsys):
    door = str(SCENES / "door.toml")
    assert arguments.main(["check", door, "--set", "friction=3"]) == 0
    assert arguments.main(["info", door]) == 0 and "Revolute" in capsys.readouterr().out
    assert arguments.main(["run", door, "--duration", "0.1"]) == 0 and "10 ms, sequential" in capsys.readouterr().out
    assert arguments.main(["run", door, "--set", "fraction=3"]) == 1 and "is 'friction' meant" in capsys.readouterr().err


def attack(texts, seeds, folder):
    """Read damaged files: how many were refused, and how long the longest took (s)."""
    import time

    refused, longest = 0, 0.0
    for seed in seeds:
        rng = np.random.default_rng(seed)
        text = damaged(texts[seed % len(texts)], rng)
        (folder / "bad.toml").write_bytes(text.encode("utf-8", "replace" if seed % 2 else "surrogatepass"))
        started, reader = time.process_time(), Reader()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                scene = reader.read(folder / "bad.toml", {})
            except sh.SceneError as error:
                raise AssertionError(f"seed {seed}: raised, not told: {error}") from error
        longest = max(longest, time.process_time() - started)
        if reader.problems:
            refused += 1
            for line in reader.problems:
                assert re.match(r"^(bad|leg|all)\.toml:\d+:? ", line), (seed, line)
        else:
            assert not unfinished(scene), seed
    return refused, longest


def originals(folder):
    (folder / "leg.toml").write_text(LEG)
    return [p.read_text() for p in sorted(SCENES.glob("*.toml"))] + [PARTS]


def test_damaged_files_are_refused_with_a_place(tmp_path):
    refused, longest = attack(originals(tmp_path), range(60), tmp_path)
    print(f"60 damaged files: {refused} refused, each with its place; the longest took {longest:.2f} s")
    assert refused > 20


@pytest.mark.slow
def test_two_thousand_damaged_files(tmp_path):
    refused, longest = attack(originals(tmp_path), range(2000), tmp_path)
    print(f"2000 damaged files: {refused} refused, each with its place; the longest took {longest:.2f} s")
    assert refused > 1000 and longest < 20


def test_what_follows_from_a_mistake_is_not_told_and_lines_are_in_order(tmp_path):
    file = tmp_path / "crane.toml"
    file.write_text(
        '[body.post]\nshape = { type = "Box", x = 0.1, y = 0.1, z = 1.0 }\n'
        '[input.turn]\ntarget = "joint/slew.velocity"\n[input.other]\ntarget = "joint/lift.velocity"\n'
        '[joint.slew]\ntype = "Hinge"\nparent = "world"\nchild = "post"\nposition = [0, 0, 0]\n'
    )
    problems, _ = check_file(file)
    assert [re.match(r"crane.toml:(\d+): (\S+):", problem).groups() for problem in problems] == [
        ("5", "input.other"), ("8", "joint.slew.type"),
    ]  # fmt: skip
    assert "is 'Revolute' meant?" in problems[1]
