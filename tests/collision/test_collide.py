"""Detection in a scene: what touches, what is kept from step to step, what is filtered, what flies fast."""

import numpy as np
import pytest
import warp as wp

import sharnir as sh
from sharnir.collision.collider import Collider
from sharnir.core.spatial import quat_rotate

QUARTER = (0.0, 0.5**0.5, 0.0, 0.5**0.5)


def collider(scene, dt=1e-3, **room):
    model = scene.build()
    made, state = Collider(model, dt, **room), model.state()
    made.bind(state)
    return made, state


def move(state, model, name, **values):
    """Set a body's position or velocity by hand."""
    for field, value in values.items():
        array = getattr(state, field)
        rows = array.numpy()
        rows[model.body_names[name], :] = value
        array.assign(rows)


def touching(made, world=0):
    names = list(made.model.body_names)
    points = made.contacts(world)
    return {(names[a], names[b]) for a, b in zip(points["body_a"], points["body_b"], strict=True)}


def test_a_box_on_the_ground_has_its_four_corners():
    scene = sh.Scene()
    scene.add_ground(0.2)
    scene.add_body("box", sh.Box(0.2, 0.4, 0.6), position=(1, 2, 0.2 + 0.3 - 1e-4))
    made, _ = collider(scene)
    made.launch()
    points = made.contacts()
    corners = {tuple(p) for p in points["point"].round(6).tolist()}
    assert corners == {(1 + x, 2 + y, round(0.2 - 5e-5, 6)) for x in (-0.1, 0.1) for y in (-0.2, 0.2)}
    assert np.allclose(points["gap"], -1e-4) and np.allclose(points["normal"], [0, 0, 1])
    assert set(points["body_a"]) == {0} and set(points["body_b"]) == {1} and set(points["began"]) == {1}


def test_impulses_follow_their_points():
    """A box that slides and turns a little keeps the impulse of each corner; a new pair starts from none."""
    scene = sh.Scene()
    scene.add_ground()
    scene.add_body("box", sh.Box(0.2, 0.4, 0.6), position=(0, 0, 0.3))
    made, state = collider(scene)
    made.launch()
    corner = made.contacts()["local"].copy()
    impulse = np.zeros((made.data.contacts.capacity, 1, 3))
    impulse[:4, 0] = [[0, 0, k + 1.0] for k in range(4)]
    made.data.contacts.impulse.assign(impulse)
    half = 0.5 * 0.3
    move(state, made.model, "box", position=(0.05, 0.02, 0.3), rotation=(0, 0, np.sin(half), np.cos(half)))
    made.launch()
    points = made.contacts()
    order = [int(np.argmin(np.linalg.norm(corner - p, axis=1))) for p in points["local"]]
    assert np.allclose(points["impulse"][:, 2], np.array(order) + 1.0) and sorted(order) == [0, 1, 2, 3]
    assert set(points["began"]) == {0}
    move(state, made.model, "box", position=(0, 0, 0.4))
    made.launch()
    assert len(made.contacts()["gap"]) == 0
    move(state, made.model, "box", position=(0, 0, 0.3))
    made.launch()
    assert not made.contacts()["impulse"].any() and set(made.contacts()["began"]) == {1}


def test_pairs_are_those_of_all_against_all():
    """A heap of mixed shapes that moves: the kept list misses nothing, and is made anew only now and then."""
    rng = np.random.default_rng(3)
    scene = sh.Scene()
    scene.add_ground()
    shapes = [sh.Sphere(0.05), sh.Box(0.1, 0.06, 0.2), sh.Capsule(0.03, 0.1), sh.Box(2.0, 0.1, 0.1)]
    n = 60
    for i in range(n):
        q = rng.normal(size=4)
        q /= np.linalg.norm(q)
        scene.add_body(f"b{i}", shapes[i % 4 if i < 8 else i % 3], position=rng.uniform(-0.3, 0.3, 3) + [0, 0, 0.3], rotation=q)
    made, state = collider(scene, points=4000, pairs=4000)
    velocity = rng.normal(size=(n + 1, 1, 3)) * 0.5
    velocity[0] = 0
    state.velocity.assign(velocity)
    state.spin.assign(velocity * 4)
    all_of = Collider(made.model, 1e-3, points=4000, pairs=4000)
    all_of.bind(state)
    for _ in range(60):
        state.position.assign(state.position.numpy() + 1e-3 * velocity)
        made.launch()
        all_of.renew()
        all_of.launch()
        kept, fresh = made.contacts(), all_of.contacts()
        assert made.lost == 0 and len(kept["gap"]) == len(fresh["gap"]) > 50
        for name in ("shape_a", "shape_b", "gap", "point"):
            assert np.array_equal(kept[name], fresh[name]), name
        keys = kept["shape_a"].astype(int) * 1000 + kept["shape_b"]
        assert np.all(np.diff(keys) >= 0)
    times = int(made.data.broad.made.numpy()[0])
    print(f"{len(kept['gap'])} points, list made {times} times in 60 steps")
    assert times < 15


def test_order_of_bodies_does_not_matter():
    def points(order):
        scene = sh.Scene()
        scene.add_ground()
        for k in order:
            scene.add_body(f"b{k}", sh.Box(0.1, 0.1, 0.1), position=(0.03 * k, 0, 0.05 + 0.1 * k))
        made, _ = collider(scene)
        made.launch()
        return made.contacts()

    one, other = points([0, 1, 2, 3]), points([2, 0, 3, 1])
    for name in ("shape_a", "shape_b", "point", "normal", "gap", "local"):
        assert np.array_equal(one[name], other[name]), name


def two(scene=None, **second):
    scene = scene or sh.Scene(contact=True)
    scene.add_body("a", sh.Box(1, 1, 1))
    scene.add_body("b", sh.Box(1, 1, 1), position=(0, 0, 0.99), **second)
    return scene


def test_filters():
    made, _ = collider(two())
    made.launch()
    assert touching(made) == {("a", "b")}
    for change in ({"collide": False}, {"group": (2, 2)}, {"group": (1, 2)}):
        made, _ = collider(two(**change))
        made.launch()
        assert touching(made) == set(), change
    made, _ = collider(two(group=(2, 3)))
    made.launch()
    assert touching(made) == {("a", "b")}
    scene = two()
    scene.ignore("b", "a")
    made, _ = collider(scene)
    made.launch()
    assert touching(made) == set()
    for asked, expected in ((False, set()), (True, {("a", "b")})):
        scene = two()
        scene.add_joint("hinge", sh.Revolute(axis="y"), "a", "b", position=(0, 0, 0.5), collide=asked)
        made, _ = collider(scene)
        made.launch()
        assert touching(made) == expected


def test_contact_is_on_when_a_scene_says_so():
    scene = sh.Scene()
    scene.add_body("a", sh.Box(1, 1, 1))
    assert scene.build().collision is None
    with pytest.raises(sh.SceneError, match="no contact"):
        Collider(scene.build(), 1e-3)
    scene.add_body("b", sh.Box(1, 1, 1), collide=True)
    assert len(scene.build().collision.shapes) == 2
    off = sh.Scene(contact=False)
    off.add_ground()
    off.add_body("a", sh.Box(1, 1, 1))
    assert off.build().collision is None


def test_materials_are_combined():
    scene = sh.Scene()
    scene.add_ground(material=sh.Material(friction=0.4, dynamic=0.3, restitution=0.2, rolling=0.01))
    rail = sh.Material(friction=(0.9, 0.1), direction=(0, 1, 0), restitution=0.1, torsion=0.02, stiffness=1e4, damping=10)
    scene.add_body("a", sh.Box(1, 1, 1), position=(0, 0, 0.5), rotation=(0, 0, 0.5**0.5, 0.5**0.5), material=rail)
    scene.add_body("c", sh.Box(1, 1, 1), position=(5, 0, 0.5), surface_velocity=(0, 2, 1))
    scene.set_pair("c", "world", sh.Material(friction=0.05))
    made, _ = collider(scene)
    made.launch()
    points = made.contacts()
    assert np.allclose(points["friction"][0], [np.sqrt(0.36), np.sqrt(0.04)])
    assert np.allclose(points["along"][0], [-1, 0, 0]) and np.allclose(points["dynamic"][0], np.sqrt(0.27))
    values = [points[k][0] for k in ("restitution", "rolling", "torsion", "stiffness", "damping")]
    assert np.allclose(values, [0.2, 0.01, 0.02, 1e4, 10])
    last = len(points["gap"]) - 1
    assert np.allclose(points["friction"][last], 0.05) and not points["along"][last].any()
    assert np.allclose(points["surface"][last], [0, 2, 0])
    made.set_material("world", sh.Material(friction=0.9))
    made.launch()
    assert np.allclose(made.contacts()["friction"][0], [0.9, 0.3])


def test_materials_of_one_world():
    scene = sh.Scene()
    scene.add_ground()
    scene.add_body("a", sh.Box(1, 1, 1), position=(0, 0, 0.5))
    model = scene.build(worlds=3)
    made = Collider(model, 1e-3)
    made.bind(model.state())
    made.launch()
    with wp.ScopedCapture(device="cpu") as capture:
        made.launch()
    made.set_material("a", sh.Material(friction=0.08), world=1)
    wp.capture_launch(capture.graph)
    assert [round(float(made.contacts(w)["friction"][0][0]), 9) for w in range(3)] == [0.5, 0.2, 0.5]


def test_nothing_is_lost_in_silence():
    scene = sh.Scene()
    scene.add_ground()
    for i in range(6):
        scene.add_body(f"b{i}", sh.Box(0.1, 0.1, 0.1), position=(0.2 * i, 0, 0.05))
    made, _ = collider(scene, points=10, pairs=4)
    made.launch()
    assert made.lost > 0
    for _ in range(4):
        if not made.grow():
            break
        made.launch()
    assert made.lost == 0 and len(made.contacts()["gap"]) == 24


def test_a_captured_step_is_the_same():
    scene = sh.Scene()
    scene.add_ground()
    for i in range(5):
        scene.add_body(f"b{i}", sh.Box(0.1, 0.1, 0.1), position=(0.03 * i, 0, 0.05 + 0.1 * i))
    made, _ = collider(scene)
    made.launch()
    plain = {k: v.copy() for k, v in made.contacts().items()}
    with wp.ScopedCapture(device="cpu") as capture:
        made.launch()
    wp.capture_launch(capture.graph)
    for name, value in made.contacts().items():
        if name != "began":
            assert np.array_equal(value, plain[name]), name


FAST = {
    "sphere": sh.Sphere(0.01),
    "box": sh.Box(0.02, 0.03, 0.04),
    "capsule": sh.Capsule(0.005, 0.03),
    "cylinder": sh.Cylinder(0.01, 0.03),
    "wheel": sh.Cylinder(0.03, 0.01, rounding=0.004),
    "cone": sh.Cone(0.01, 0.03),
    "ellipsoid": sh.Ellipsoid(0.01, 0.02, 0.03),
    "hull": sh.Mesh(([(0, 0, 0), (0.03, 0, 0), (0, 0.03, 0), (0, 0, 0.03)], [(0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)])),
}


@pytest.mark.parametrize("kind", FAST)
def test_nothing_passes_a_thin_wall(kind):
    """100 m/s against 1 cm at 2 ms: 0.2 m a step. The gap leads to where it touches, and the normal is the wall's."""
    rng = np.random.default_rng(1)
    worst = 0.0
    for _ in range(20):
        q = rng.normal(size=4)
        q /= np.linalg.norm(q)
        scene = sh.Scene()
        scene.add_body("wall", sh.Box(0.01, 2, 2), motion="fixed", collide=True)
        start = np.array([-rng.uniform(0.05, 0.19), *rng.uniform(-0.3, 0.3, 2)])
        scene.add_body("ball", FAST[kind], position=start, rotation=q, velocity=(100, 20, -10))
        made, _ = collider(scene, dt=2e-3)
        made.launch()
        points = made.contacts()
        assert len(points["gap"]) > 0
        sign = np.where(points["shape_a"] == 0, 1.0, -1.0)
        assert np.allclose(points["normal"] * sign[:, None], [-1, 0, 0], atol=1e-4)
        lowest = points["gap"].min()
        half = made.given.shapes[1].part.bound
        middle = start[0] if kind != "hull" else made.contacts()["point"][:, 0].max() - half  # its own frame is at a corner
        assert -middle - 0.005 - half - 1e-6 <= lowest <= -start[0] - 0.005 + (half if kind == "hull" else 0)
        worst = max(worst, lowest)
    print(f"{kind}: largest gap that was seen {worst:.3f} m")


def test_what_passes_is_not_caught():
    """A ball that flies past a box's edge, near enough to meet the plane of its nearest point, has no contact."""
    scene = sh.Scene()
    scene.add_body("box", sh.Box(0.2, 0.2, 0.2), motion="fixed", collide=True)
    scene.add_body("ball", sh.Sphere(0.01), position=(-0.15, 0, 0.115), velocity=(100, 0, 0))
    made, _ = collider(scene, dt=2e-3)
    made.launch()
    assert len(made.contacts()["gap"]) == 0


def test_a_fast_rod_that_turns_is_caught():
    scene = sh.Scene()
    scene.add_ground()
    scene.add_body("rod", sh.Capsule(0.01, 2.0), position=(0, 0, 0.1), rotation=QUARTER, angular_velocity=(0, 60, 0))
    made, _ = collider(scene, dt=2e-3)
    made.launch()
    points = made.contacts()
    assert len(points["gap"]) == 1 and points["point"][0][0] > 0.9


@pytest.mark.parametrize(
    "make, words",
    [
        (lambda: sh.Material(friction=-0.1), "friction.*-0.1"),
        (lambda: sh.Material(friction=(0.5, 0.2)), "direction"),
        (lambda: sh.Material(friction=0.3, dynamic=0.4), "dynamic.*0.4"),
        (lambda: sh.Material(restitution=1.5), "restitution.*1.5"),
        (lambda: sh.Material(damping=3.0), "stiffness"),
        (lambda: sh.Scene().add_ground(normal=(0, 0, 0)), "normal"),
        (lambda: sh.Scene().add_ground(float("nan")), "height"),
        (lambda: sh.Scene().add_terrain("hill", [[0, 1], [np.nan, 2]], size=(1, 1)), r"'hill'.*\[1, 0\]"),
        (lambda: sh.Scene().add_terrain("hill", [[0, 1]], size=(1, 1)), r"\(1, 2\)"),
        (lambda: sh.Scene().add_terrain("hill", np.zeros((2, 2)), size=(1, 0)), "size.*0"),
        (lambda: sh.Scene().add_body("a", sh.Sphere(1), material=0.5), "'a'.*0.5"),
        (lambda: sh.Scene().add_body("a", sh.Sphere(1), group=0), "'a'.*group.*0"),
        (lambda: sh.Scene().add_body("a", sh.Sphere(1), collision=[3]), "'a'.*3"),
        (lambda: sh.Scene().ignore("a", "b"), "'a'"),
        (lambda: sh.Cylinder(1.0, 1.0, rounding=0.7), "rounding.*0.7"),
    ],
)
def test_bad_input_is_named(make, words):
    with pytest.raises(sh.SceneError, match=words):
        make()


def test_a_deep_start_is_told():
    scene = sh.Scene(contact=True)
    scene.add_body("a", sh.Box(1, 1, 1))
    scene.add_body("b", sh.Sphere(0.5), position=(0, 0, 0.6))
    made, _ = collider(scene)
    made.launch()
    (line,) = made.deep_at_start()
    assert "'a'" in line and "'b'" in line and "0.4 m" in line


def test_a_world_in_a_batch_is_the_same_as_alone():
    """All kinds in a heap, several worlds with different poses: to the bit."""
    rng = np.random.default_rng(8)

    def heap(worlds):
        scene = sh.Scene()
        scene.add_ground()
        scene.add_terrain("hill", 0.05 * np.sin(np.arange(30))[:, None] * np.ones(30), size=(2, 2))
        for i, shape in enumerate([*FAST.values(), sh.Sphere(0.03), sh.Box(0.1, 0.05, 0.03)] * 2):
            scene.add_body(f"b{i}", shape)
        model = scene.build(worlds=worlds)
        return Collider(model, 1e-3), model.state()

    alone, one = heap(1)
    batch, many = heap(3)
    n = many.position.shape[0]
    x = rng.uniform(-0.06, 0.06, (n, 3, 3)) + [0, 0, 0.08]
    q = rng.normal(size=(n, 3, 4))
    q /= np.linalg.norm(q, axis=2, keepdims=True)
    v = rng.normal(size=(n, 3, 3))
    for field, values in (("position", x), ("rotation", q), ("velocity", v), ("spin", 3 * v)):
        values[:2] = many.__getattribute__(field).numpy()[:2]
        getattr(many, field).assign(values)
    batch.bind(many)
    alone.bind(one)
    for _ in range(2):
        batch.launch()
    assert batch.lost == 0
    for w in range(3):
        for field in ("position", "rotation", "velocity", "spin"):
            getattr(one, field).assign(np.ascontiguousarray(getattr(many, field).numpy()[:, w : w + 1]))
        alone.data.contacts.pairs.zero_()
        alone.renew()
        for _ in range(2):
            alone.launch()
        here, there = alone.contacts(), batch.contacts(w)
        assert len(here["gap"]) > 20
        for name, value in here.items():
            assert np.array_equal(value, there[name]), name


def test_urdf_collision_geometry_is_what_touches(tmp_path):
    file = tmp_path / "robot.urdf"
    file.write_text("""<robot name="r">
    <link name="base"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1"/></inertial>
      <visual><geometry><sphere radius="3"/></geometry></visual>
      <collision><origin xyz="0 0 -0.5"/><geometry><box size="0.2 0.2 0.2"/></geometry></collision>
      <collision><origin xyz="0.5 0 -0.5"/><geometry><cylinder radius="0.1" length="0.2"/></geometry></collision></link>
    </robot>""")
    scene = sh.load_urdf(file, floating=True)
    scene.add_ground(-0.6)
    made, _ = collider(scene)
    assert [s.part.kind for s in made.given.shapes] == ["plane", "box", "cylinder"]
    made.launch()
    assert len(made.contacts()["gap"]) == 8 and np.allclose(made.contacts()["gap"], 0, atol=1e-12)


def test_scenes_with_next_to_nothing_in_them():
    scene = sh.Scene()
    scene.add_ground()
    scene.add_body("point", mass=1.0)
    made, _ = collider(scene)
    made.launch()
    assert len(made.contacts()["gap"]) == 0
    scene = sh.Scene(contact=True)
    scene.add_body("point", mass=1.0)
    made, _ = collider(scene)
    made.launch()
    assert len(made.contacts()["gap"]) == 0


def test_a_state_that_is_not_a_number_ends():
    scene = sh.Scene()
    scene.add_ground()
    scene.add_terrain("hill", np.zeros((5, 5)), size=(2, 2))
    for i, shape in enumerate(FAST.values()):
        scene.add_body(f"b{i}", shape, position=(0.01 * i, 0, 0.02))
    made, state = collider(scene)
    made.launch()
    for field in ("position", "velocity", "rotation", "spin"):
        values = getattr(state, field).numpy()
        values[3] = np.nan
        getattr(state, field).assign(values)
        made.launch()
        assert 0 <= int(made.data.contacts.count.numpy()[0]) <= made.data.contacts.capacity


def test_a_large_body_that_moves_meets_the_ground_and_small_ones():
    """What is not swept: planes, and what is much larger than most."""
    scene = sh.Scene()
    scene.add_ground()
    scene.add_body("slab", sh.Box(20, 20, 1), position=(0, 0, 0.5))
    for i in range(4):
        scene.add_body(f"b{i}", sh.Sphere(0.1), position=(i, 0, 1.1))
    made, _ = collider(scene)
    assert int(made.data.shapes.wides) == 2
    made.launch()
    assert touching(made) == {("world", "slab")} | {(f"b{i}", "slab") for i in range(4)}


def test_shapes_stand_where_their_body_is_not_where_its_centre_is():
    """Compounds and several collision shapes, turned bodies, centres of mass off the frame."""
    q = np.array([0.1, -0.2, 0.3, 0.9])
    q /= np.linalg.norm(q)
    parts = [sh.Box(0.2, 0.2, 0.2, position=(0, 0, 0.1)), sh.Sphere(0.1, position=(0.5, 0, 0.1), mass=50.0)]
    for given in (
        {"shape": sh.Compound(*parts)},
        {"shape": sh.Sphere(0.3, mass=2.0), "collision": parts, "com": (0.1, 0.2, 0.3)},
    ):
        scene = sh.Scene(contact=True)
        up = np.array([0, 0, 1.0])
        n = quat_rotate(q, up)
        scene.add_ground(0.0, normal=tuple(n))
        scene.add_body("body", position=(0, 0, 0), rotation=q, **given)
        made, _ = collider(scene)
        made.launch()
        points = made.contacts()
        assert len(points["gap"]) == 5 and np.allclose(points["gap"], 0, atol=1e-12), given
        ball = quat_rotate(q, np.array([0.5, 0, 0]))
        assert np.linalg.norm(points["point"] - ball, axis=1).min() < 1e-12
