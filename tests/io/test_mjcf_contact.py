"""Bodies of an MJCF file touch where MuJoCo's do: pairs of geoms agree with those that MuJoCo finds."""

import numpy as np
import pytest

import sharnir as sh
from sharnir.collision.collider import Collider
from sharnir.io.mjcf import read_mjcf

mujoco = pytest.importorskip("mujoco")


def geom(k, **more):
    """A ball of a radius of its own, by which it is known again; all balls of a file overlap each other and the planes."""
    rest = " ".join(f'{name}="{value}"' for name, value in more.items())
    return f'<geom name="g{k}" type="sphere" size="{1 + 0.01 * k:.2f}" pos="{0.01 * k:.2f} 0 {0.003 * k * k:.3f}" {rest}/>'


def theirs(file):
    """Pairs of names of geoms of different rigid bodies that touch, of which at least one moves, as MuJoCo finds them."""
    m = mujoco.MjModel.from_xml_path(str(file))
    d = mujoco.MjData(m)
    mujoco.mj_forward(m, d)
    moves = [m.body_weldid[b] != 0 and m.body_mocapid[m.body_weldid[b]] < 0 for b in range(m.nbody)]
    found = set()
    for c in range(d.ncon):
        pair = [int(g) for g in d.contact[c].geom]
        rigid = {int(m.body_weldid[m.geom_bodyid[g]]) for g in pair}
        if any(moves[m.geom_bodyid[g]] for g in pair) and len(rigid) == 2:
            found.add(frozenset(m.geom(g).name for g in pair))
    return found


def ours(file):
    """The same as this scene has them; none if it has no contact. Planes of the world have one name."""
    scene = read_mjcf(file).scene
    model = scene.build()
    if model.collision is None:
        return set()
    collider = Collider(model, 1e-3, points=4000, pairs=1000)
    collider.bind(model.state())
    collider.launch()
    names = []
    for shape in collider.given.shapes:
        plane = shape.part.kind == "plane"
        names.append(f"floor{round(-1000 * shape.part.position[2])}" if plane else f"g{round(100 * (shape.part.radius - 1))}")
    contacts = collider.data.contacts
    count = int(contacts.count.numpy()[0])
    a, b = (getattr(contacts, f"shape_{x}").numpy()[:count, 0] for x in "ab")
    return {frozenset((names[i], names[j])) for i, j in zip(a, b, strict=True)}


def agree(tmp_path, worldbody, contact="", flag="", equality=""):
    """Whether both find the same pairs; returns them."""
    file = tmp_path / "model.xml"
    option = f"<option>{flag}</option>"
    file.write_text(
        f"<mujoco>{option}<worldbody>{worldbody}</worldbody><contact>{contact}</contact><equality>{equality}</equality></mujoco>"
    )
    here, there = ours(file), theirs(file)
    assert here == there, f"only here {sorted(map(sorted, here - there))}, only there {sorted(map(sorted, there - here))}"
    return here


def body(name, inner, joint='<joint type="hinge"/>', **more):
    rest = " ".join(f'{key}="{value}"' for key, value in more.items())
    return f'<body name="{name}" {rest}>{joint}{inner}</body>'


FREE, DOWN = "<freejoint/>", 'euler="180 0 0"'
SLIDES = '<joint name="{0}x" type="slide" axis="1 0 0"/><joint name="{0}r" type="hinge" axis="0 1 0"/>'
SKEW = '<joint name="{0}s" type="hinge" axis="1 0 0"/><joint name="{0}t" type="hinge" axis="1 1 0"/>'
CASES = {
    "free bodies without a plane": body("a", geom(1), FREE) + body("b", geom(2), FREE),
    "a body and a geom of the world": geom(0) + body("a", geom(1), FREE),
    "a body and a fixed body": body("post", geom(0), "") + body("a", geom(1), FREE),
    "a body on a fixed body": body("post", geom(0) + body("a", geom(1)), ""),
    "a chain": body("a", geom(1) + body("b", geom(2) + body("c", geom(3)))),
    "welded parts": body(
        "a", geom(1) + body("a2", geom(2) + body("b", geom(3) + body("b2", geom(4) + body("c", geom(5)), "")), "")
    ),
    "several joints": body("a", geom(1) + body("b", geom(2) + body("c", geom(3), SKEW.format("c")), SLIDES.format("b"))),
    "nothing touches": body("a", geom(1) + body("b", geom(2))),
    "bits": geom(0, contype=2, conaffinity=1) + body("a", geom(1) + geom(2, contype=2, conaffinity=4), FREE)
    + body("b", geom(3, contype=0, conaffinity=2) + geom(4, contype=4, conaffinity=0), FREE)
    + body("c", geom(5, contype=0, conaffinity=0) + geom(6, contype=6, conaffinity=1), FREE),
    "planes of two kinds": '<geom name="floor0" type="plane" size="1 1 1" contype="2" conaffinity="2"/>'
    '<geom name="floor5" type="plane" size="1 1 1" pos="0 0 -0.005"/>' + body("a", geom(1), FREE)
    + body("b", geom(2, contype=2, conaffinity=2), FREE) + body("c", geom(3, contype=1, conaffinity=2), FREE),
    "a body that is led": '<body name="m" mocap="true">' + geom(0) + "</body>" + body("a", geom(1), FREE) + geom(2),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_pairs_are_those_of_mujoco(tmp_path, case):
    found, none = agree(tmp_path, CASES[case]), case == "nothing touches"
    notes = sh.load_mjcf(tmp_path / "model.xml").notes
    assert bool(found) != none and any("no two geoms" in note for note in notes) == none


@pytest.mark.parametrize("flag", ["", '<flag filterparent="disable"/>', '<flag contact="disable"/>'])
def test_rules_of_the_file_are_kept(tmp_path, flag):
    """Exclusions of moving, welded and fixed bodies; pairs that touch in spite of bits, of a joint and of an exclusion."""
    tree = body("a", geom(1) + body("a2", geom(2), "") + body("b", geom(3) + geom(4) + body("c", geom(5))))
    world = body("post", geom(6), "") + body("pole", geom(7), "") + tree + body("d", geom(8, contype=0, conaffinity=0), FREE)
    rules = '<exclude body1="a2" body2="c"/><exclude body1="post" body2="b"/><exclude body1="d" body2="pole"/>'
    rules += '<pair geom1="g1" geom2="g3"/><pair geom1="g8" geom2="g2"/><pair geom1="g8" geom2="g7"/>'
    ties = (
        '<connect body1="d" body2="c" anchor="0 0 0"/><weld body1="d" body2="post"/><connect body1="b" body2="a" anchor="0 0 0"/>'
    )
    found = agree(tmp_path, world, rules, flag, ties)
    assert bool(found) == ("contact" not in flag)


def random_model(rng):
    """Bodies in a tree, some fixed or welded, with geoms of random bits; exclusions and pairs at random."""
    count, number, names = int(rng.integers(2, 7)), 0, []
    inner: list[str] = [""] * count
    parent = [int(rng.integers(-1, k)) if k else -1 for k in range(count)]
    text = ""
    for k in range(count):
        for _ in range(int(rng.integers(0, 3))):
            bits = {} if rng.random() < 0.5 else {"contype": rng.integers(0, 4), "conaffinity": rng.integers(0, 4)}
            inner[k] += geom(number, **bits)
            names.append((f"g{number}", k))
            number += 1
    for k in reversed(range(count)):
        some = [
            FREE if parent[k] < 0 else "",
            '<joint type="hinge"/>',
            '<joint type="ball"/>',
            "",
            SKEW.format(k),
            SLIDES.format(k),
        ]
        joint = some[int(rng.integers(len(some)))]
        mass = '<inertial mass="1" pos="0 0 0" diaginertia="1 1 1"/>'
        made = f'<body name="b{k}">{joint}{mass}{inner[k]}</body>'
        if parent[k] < 0:
            text += made
        else:
            inner[parent[k]] += made
    rules = ""
    for _ in range(int(rng.integers(0, 3))):
        a, b = rng.choice(count, 2, replace=False)
        rules += f'<exclude body1="b{a}" body2="b{b}"/>'
    for _ in range(int(rng.integers(0, 3)) if len(names) > 1 else 0):
        a, b = rng.choice(len(names), 2, replace=False)
        rules += f'<pair geom1="{names[a][0]}" geom2="{names[b][0]}"/>'
    return text, rules


@pytest.mark.parametrize("seed", [*range(20), *(pytest.param(k, marks=pytest.mark.slow) for k in range(20, 400))])
def test_pairs_of_random_models_are_those_of_mujoco(tmp_path, seed):
    rng = np.random.default_rng(seed)
    agree(tmp_path, *random_model(rng))


def friction_of(file):
    """Friction (sliding, torsion, rolling) of all pairs of geoms that touch, here and in MuJoCo."""
    m = mujoco.MjModel.from_xml_path(str(file))
    d = mujoco.MjData(m)
    mujoco.mj_forward(m, d)
    there = {}
    for c in range(d.ncon):
        values = np.where(np.array([3, 4, 6]) <= d.contact[c].dim, d.contact[c].friction[[0, 2, 3]], 0.0)
        there[frozenset(m.geom(int(g)).name for g in d.contact[c].geom)] = values.tolist()
    model = read_mjcf(file).scene.build()
    collider = Collider(model, 1e-3, points=400, pairs=100)
    collider.bind(model.state())
    collider.launch()
    found, here = collider.data.contacts, {}
    names = ["floor" if x.part.kind == "plane" else f"g{round(100 * (x.part.radius - 1))}" for x in collider.given.shapes]
    for p in range(int(found.count.numpy()[0])):
        pair = frozenset(names[int(getattr(found, f"shape_{x}").numpy()[p, 0])] for x in "ab")
        here[pair] = [
            float(found.friction.numpy()[p, 0][0]),
            *(float(getattr(found, x).numpy()[p, 0]) for x in ("torsion", "rolling")),
        ]
    return here, there


def test_friction_of_pairs_is_that_of_mujoco(tmp_path):
    """The larger friction and condim hold, those of the higher priority alone; feet with condim 1 hold on a floor with 3."""
    file, floor = tmp_path / "model.xml", '<geom name="floor" type="plane" size="5 5 1" condim="3" friction="1 0.005 0.0001"/>'
    kinds = [{"condim": 1, "friction": "2 0.1 0.1"}, {"condim": 1}, {"condim": 6, "friction": "0.3 0.02 0.001"}]
    kinds += [{"condim": 4, "friction": "0.5 0.03 0.1", "priority": 1}, {"condim": 1, "priority": 2}, {"condim": 3}]
    geoms = [body(f"b{k}", geom(k, **kind), FREE) for k, kind in enumerate(kinds)]
    file.write_text(f"<mujoco><worldbody>{floor}{''.join(geoms)}</worldbody></mujoco>")
    here, there = friction_of(file)
    assert len(there) == 21 and here.keys() == there.keys()
    for pair, values in there.items():
        assert here[pair] == pytest.approx(values, abs=1e-12), f"{sorted(pair)}: {here[pair]} and {values}"


def test_a_box_rests_on_a_fixed_box_of_a_file_without_a_plane(tmp_path):
    file = tmp_path / "model.xml"
    file.write_text("""<mujoco><worldbody><geom type="box" size="1 1 0.1"/>
      <body name="box" pos="0 0 0.5"><freejoint/><geom type="box" size="0.1 0.1 0.1"/></body></worldbody></mujoco>""")
    sim = sh.Simulation(sh.load_mjcf(file), 0.005)
    sim.run(1.0)
    print(sim.body("box").position)
    assert sim.body("box").position[2] == pytest.approx(0.2, abs=1e-3) and sim.contacts().body_a.tolist() != []


@pytest.mark.parametrize("contact", [True, False])
def test_a_range_finder_sees_with_and_without_contact(tmp_path, contact):
    """A box with a range finder that looks down, above a plane and above another box."""
    file = tmp_path / "model.xml"
    box = '<body name="{0}" pos="{1} 0 1"><freejoint/><geom type="box" size="0.1 0.1 0.1"/><site name="s{0}" {2}/></body>'
    file.write_text(f"""<mujoco><worldbody><geom type="plane" size="5 5 1"/><geom type="box" size="0.3 0.3 0.4" pos="2 0 0"/>
      {box.format("a", 0, DOWN)}{box.format("b", 2, DOWN)}</worldbody>
      <sensor><rangefinder name="ra" site="sa"/><rangefinder name="rb" site="sb"/></sensor></mujoco>""")
    sim = sh.Simulation(sh.load_mjcf(file, contact=contact), 0.005)
    assert (sim.model.collision is not None) == contact
    assert [sim.sensor(name).ranges[0] for name in ("ra", "rb")] == pytest.approx([1.0, 0.6])
    sim.run(0.2)
    fallen = 1.0 - sim.body("a").position[2]
    assert fallen > 0.19 and sim.sensor("ra").ranges[0] == pytest.approx(1.0 - fallen, abs=1e-9)
    sim.run(1.0)
    assert (sim.body("a").position[2] > 0) == contact


def test_what_a_user_adds_touches_what_mujoco_would(tmp_path):
    """A ground beside a file whose geoms have bits: those with bit 1 land on it, the others fall through."""
    file = tmp_path / "model.xml"
    ball = '<body name="{0}" pos="{1} 0 1"><freejoint/><geom type="sphere" size="0.1" contype="{2}" conaffinity="{3}"/></body>'
    balls = [("plain", 0, 1, 1), ("asks", 1, 2, 1), ("other", 2, 2, 2), ("none", 3, 0, 0)]
    file.write_text(f"<mujoco><worldbody>{''.join(ball.format(*b) for b in balls)}</worldbody></mujoco>")
    scene = sh.load_mjcf(file)
    scene.add_ground()
    sim = sh.Simulation(scene, 0.005)
    sim.run(1.0)
    assert [sim.body(b[0]).position[2] > 0 for b in balls] == [True, True, False, False]


def test_groups_of_shapes_come_through_files(tmp_path):
    file = tmp_path / "model.xml"
    file.write_text(f"<mujoco><worldbody>{CASES['bits']}</worldbody></mujoco>")
    scene = sh.load_mjcf(file)
    scene.save(tmp_path / "scene.toml")
    again = sh.load_scene(tmp_path / "scene.toml")
    pick = [[(s.name, s.group, s.mask) for s in x.build().collision.shapes] for x in (scene, again)]
    assert pick[0] == pick[1] and len({group for _, group, _ in pick[0]}) > 3
