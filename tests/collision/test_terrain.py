"""Static meshes and height fields."""

import numpy as np
import pytest
import trimesh

import sharnir as sh
from sharnir.collision.bvh import mesh_tree, outer_edges
from sharnir.collision.collider import Collider

SHAPES = {
    "sphere": sh.Sphere(0.1),
    "box": sh.Box(0.2, 0.2, 0.2),
    "capsule": sh.Capsule(0.05, 0.2),
    "cylinder": sh.Cylinder(0.1, 0.2),
    "cone": sh.Cone(0.1, 0.2),
    "ellipsoid": sh.Ellipsoid(0.1, 0.08, 0.1),
}


def slab(parts=6, size=2.0):
    """A box of 1 m height whose top is at 0, its faces cut into many triangles."""
    made = trimesh.creation.box(extents=(size, size, 1.0))
    for _ in range(parts // 2):
        made = made.subdivide()
    made.apply_translation((0, 0, -0.5))
    return sh.Mesh((made.vertices, made.faces))


def contacts(scene, dt=1e-3, times=1):
    model = scene.build()
    made = Collider(model, dt)
    made.bind(model.state())
    for _ in range(times):
        made.launch()
    assert made.lost == 0
    return made.contacts()


def on(surface, shape, position, velocity=(0, 0, 0), rotation=(0, 0, 0, 1), dt=1e-3):
    scene = sh.Scene(contact=True)
    if isinstance(surface, sh.Shape):
        scene.add_body("a floor", surface, motion="fixed")
    else:
        heights, size = surface
        scene.add_terrain("a floor", heights, size=size)
    scene.add_body("body", shape, position=position, velocity=velocity, rotation=rotation)
    return contacts(scene, dt)


def test_a_tree_holds_every_triangle_once():
    surface = slab(6)
    vertices, faces = surface.mesh()
    tree = mesh_tree(vertices[faces], 0)
    leaves = tree.leaf[tree.leaf > 0]
    assert (leaves % 8).sum() == len(faces) == len(tree.triangles)
    covered = np.concatenate([np.arange(k // 8, k // 8 + k % 8) for k in leaves])
    assert np.array_equal(np.sort(covered), np.arange(len(faces)))
    for k, leaf in enumerate(tree.leaf):
        if leaf:
            own = tree.triangles[leaf // 8 : leaf // 8 + leaf % 8]
            assert np.all(own >= tree.low[k] - 1e-12) and np.all(own <= tree.high[k] + 1e-12)
    assert tree.next[0] == len(tree.low)


def test_only_edges_that_stick_out_are_edges():
    made = trimesh.creation.box()
    bits = outer_edges(made.vertices[made.faces])
    assert all(bin(b & 7).count("1") == 2 for b in bits), "of a cube's triangles two edges are the cube's"


@pytest.mark.parametrize("kind", SHAPES)
@pytest.mark.parametrize("floor", ["mesh", "terrain"])
def test_a_flat_floor_of_triangles_is_flat(kind, floor):
    """Anywhere on it: normals up, the depth that of a plane, points enough to stand on."""
    rng = np.random.default_rng(2)
    surface = slab() if floor == "mesh" else (np.zeros((17, 17)), (2.0, 2.0))
    lowest = {"capsule": 0.15, "ellipsoid": 0.1}.get(kind, 0.1)
    for _ in range(12):
        x, y = rng.uniform(-0.7, 0.7, 2)
        points = on(surface, SHAPES[kind], (x, y, lowest - 1e-4))
        assert len(points["gap"]) >= (4 if kind in ("box", "cylinder", "cone") else 1)
        assert np.allclose(points["normal"], [0, 0, 1], atol=1e-4), (points["normal"], points["gap"])
        assert np.allclose(points["gap"], -1e-4, atol=2e-6), points["gap"]
        assert np.allclose(points["point"][:, :2].mean(axis=0), [x, y], atol=0.06)
        if kind == "box":
            assert np.ptp(points["point"][:, 0]) > 0.19 and np.ptp(points["point"][:, 1]) > 0.19


def test_a_lying_capsule_has_two_points_or_more():
    points = on(slab(), SHAPES["capsule"], (0.03, 0.02, 0.05 - 1e-4), rotation=(0, 0.5**0.5, 0, 0.5**0.5))
    assert np.ptp(points["point"][:, 0]) > 0.199 and np.allclose(points["gap"], -1e-4, atol=2e-6)
    assert np.allclose(points["normal"], [0, 0, 1], atol=1e-4)


def test_an_edge_of_the_mesh_is_felt():
    """A ball beside the slab's upper edge: normal from the edge to its middle."""
    d = np.array([0.06, 0, 0.07])
    d *= 0.0999 / np.linalg.norm(d)
    points = on(slab(), SHAPES["sphere"], np.array([1.0, 0.13, 0.0]) + d)
    assert len(points["gap"]) == 1 and np.allclose(points["normal"][0], d / 0.0999, atol=1e-6)
    assert np.isclose(points["gap"][0], -1e-4, atol=1e-7)


def test_a_ball_on_a_height_field_meets_the_same_triangles_as_a_mesh():
    rng = np.random.default_rng(4)
    n, size = 12, 2.0
    heights = 0.1 * rng.normal(size=(n, n))
    x = np.linspace(-1, 1, n)
    top = np.array([[x[i], x[j], heights[i, j]] for i in range(n) for j in range(n)])
    faces = []
    for i in range(n - 1):
        for j in range(n - 1):
            a, b, c, d = i * n + j, (i + 1) * n + j, (i + 1) * n + j + 1, i * n + j + 1
            faces += [(a, b, c), (a, c, d)]
    triangles = top[np.array(faces)]

    def nearest(p):
        q = trimesh.triangles.closest_point(triangles, np.repeat(p[None], len(triangles), 0))
        far = np.linalg.norm(q - p, axis=1)
        return q[far.argmin()], far.min()

    worst, compared = 0.0, 0
    for _ in range(60):
        place = np.array([*rng.uniform(-0.8, 0.8, 2), 0.0])
        for _ in range(40):  # down until it touches
            near, far = nearest(place)
            place[2] += 0.0995 - far if place[2] > near[2] else 0.05
        points = on((heights, (size, size)), SHAPES["sphere"], place)
        near, far = nearest(place)
        if place[2] > near[2] and far < 0.1:
            compared += 1
            worst = max(worst, abs(points["gap"].min() - (far - 0.1)))
    print(f"gap off by at most {worst:.1e}, {compared} compared")
    assert compared > 30
    assert worst < 1e-6


@pytest.mark.parametrize("kind", SHAPES)
@pytest.mark.parametrize("floor", ["mesh", "terrain"])
def test_nothing_falls_through(kind, floor):
    """100 m/s at 2 ms: 0.2 m a step."""
    surface = slab() if floor == "mesh" else (np.zeros((17, 17)), (2.0, 2.0))
    rng = np.random.default_rng(6)
    for _ in range(6):
        q = rng.normal(size=4)
        height = rng.uniform(0.18, 0.25)
        points = on(surface, SHAPES[kind], (0.1, -0.2, height), (30, 10, -100), q / np.linalg.norm(q), dt=2e-3)
        assert len(points["gap"]) > 0 and np.allclose(points["normal"], [0, 0, 1], atol=1e-4)
        assert 0 < points["gap"].min() < height


def test_a_box_slides_over_triangles_without_a_bump():
    """Along a flat floor of many triangles no normal leans, wherever it is."""
    surface = slab()
    worst = 0.0
    for x in np.linspace(-0.6, 0.6, 40):
        points = on(surface, SHAPES["box"], (x, 0.37 * x, 0.1 - 5e-5), (3, 1, 0))
        worst = max(worst, np.abs(points["normal"][:, :2]).max())
        assert len(points["gap"]) == 4
    print(f"largest lean {worst:.1e}")
    assert worst < 1e-6


def test_an_inverted_mesh_is_refused():
    made = trimesh.creation.box()
    with pytest.raises(sh.SceneError, match="inside out"):
        sh.Mesh((made.vertices, made.faces[:, ::-1]))
    with pytest.raises(sh.SceneError, match="holes"):
        sh.Mesh((made.vertices, made.faces[1:]))


def test_a_cup_in_convex_parts_is_hollow():
    """Of a moving cup the hull would fill the hollow; its parts leave it open."""
    cup = trimesh.creation.annulus(r_min=0.4, r_max=0.5, height=1.0, sections=12)
    shape = sh.Mesh((cup.vertices, cup.faces))
    parts = shape.convex_parts(0.03)
    whole = sum(part.volume for part in parts)
    print(f"{len(parts)} parts, {whole:.3f} of {shape.volume:.3f} m³")
    assert len(parts) > 5 and abs(whole / shape.volume - 1) < 0.15
    hull, hollow = (sh.Mesh((cup.vertices, cup.faces), decompose=each) for each in (False, True))
    for collision, touches in ((hull, True), (hollow, False), (parts, False)):
        scene = sh.Scene(contact=True)
        scene.add_body("cup", shape, collision=collision)
        scene.add_body("ball", sh.Sphere(0.3))
        assert (len(contacts(scene)["gap"]) > 0) == touches
        assert not scene.notes


def test_a_moving_mesh_that_is_not_convex_warns_unless_it_is_said_what_touches():
    cup = trimesh.creation.annulus(r_min=0.4, r_max=0.5, height=1.0, sections=12)
    source = cup.vertices, cup.faces

    def build(shape, **given):
        scene = sh.Scene(contact=True)
        scene.add_body("cup", shape, **given)
        return scene.build()

    with pytest.warns(sh.SceneWarning, match=r"body 'cup': its mesh is not convex; .* 178% larger: Mesh\(…, decompose=True\)"):
        build(sh.Mesh(source))
    build(sh.Mesh(source), motion="fixed")  # which is its triangles
    build(sh.Mesh(source), collide=False)
    build(sh.Mesh(source, decompose=False))
    build(sh.Mesh((trimesh.creation.box().vertices, trimesh.creation.box().faces)))
    with pytest.raises(sh.SceneError, match="decompose is True"):
        sh.Mesh(source, decompose=3)
