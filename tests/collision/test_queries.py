"""Rays, casts, overlaps and distances against closed forms and Coal."""

import time

import numpy as np
import pytest
import trimesh

import sharnir as sh
from sharnir.collision.collider import Collider
from sharnir.collision.host_queries import Queries


def made(scene, worlds=1):
    model = scene.build(worlds=worlds)
    collider = Collider(model, 1e-3)
    state = model.state()
    collider.bind(state)
    return Queries(collider), state


def one(shape, **more):
    scene = sh.Scene(contact=True)
    scene.add_body("thing", shape, **more)
    return made(scene)[0]


def test_rays_meet_a_ball_where_they_should():
    rng = np.random.default_rng(0)
    ask = one(sh.Sphere(0.7), position=(1, 2, 3))
    origin = np.array([1, 2, 3]) + rng.normal(size=(2000, 3)) * 3
    d = np.array([1, 2, 3]) + rng.normal(size=(2000, 3)) * 0.5 - origin
    d /= np.linalg.norm(d, axis=1, keepdims=True)
    hits = ask.ray_cast(origin, d)
    c = np.array([1, 2, 3]) - origin
    along = np.sum(c * d, axis=1)
    disc = along**2 - np.sum(c * c, axis=1) + 0.49
    outside = np.linalg.norm(c, axis=1) > 0.7
    expected = np.where((disc > 0) & (along > 0), along - np.sqrt(np.maximum(disc, 0)), np.inf)
    clear = outside & (np.abs(disc) > 1e-4)
    assert np.array_equal(np.isfinite(hits.distance[clear]), np.isfinite(expected[clear]))
    there = clear & np.isfinite(expected)
    off = np.abs(hits.distance - expected)[there].max()
    away = origin + d * hits.distance[:, None] - np.array([1, 2, 3])
    lean = np.abs(hits.normal - away / 0.7)[there].max()
    print(f"{there.sum()} rays, distance off by {off:.1e}, normal by {lean:.1e}")
    assert off < 1e-6 and lean < 1e-5


@pytest.mark.parametrize(
    "shape, far",
    [
        (sh.Box(1, 2, 3), 4.5),
        (sh.Capsule(0.5, 2), 4.5),
        (sh.Cylinder(0.5, 2), 4.5),
        (sh.Ellipsoid(0.3, 1, 1), 4.7),
        (sh.Cone(0.5, 2), 4.75),
    ],
    ids=lambda v: type(v).__name__,
)
def test_a_ray_along_x(shape, far):
    hits = one(shape).ray_cast((-5, 0, 0), (2, 0, 0))
    assert hits.body == ["thing"] and abs(hits.distance[0] - far) < 1e-6, hits
    if not isinstance(shape, sh.Cone):
        assert np.allclose(hits.normal[0], [-1, 0, 0], atol=1e-6) and np.allclose(hits.point[0], [far - 5, 0, 0], atol=1e-6)
    assert one(shape).ray_cast((-5, 0, 0), (1, 0, 0), 4.0).body == [None]


def test_rays_on_ground_mesh_and_terrain():
    scene = sh.Scene()
    scene.add_ground(-1.0)
    ball = trimesh.creation.icosphere(subdivisions=4, radius=1.0)
    scene.add_body("mesh", sh.Mesh((ball.vertices, ball.faces)), motion="fixed", position=(0, 0, 5))
    x = np.linspace(-2, 2, 41)
    scene.add_terrain("hill", 0.3 * np.sin(x)[:, None] + 0 * x, size=(4, 4), position=(10, 0, 0))
    scene.add_body("ball", sh.Sphere(0.1), position=(0, 0, 20))
    ask, _ = made(scene)
    rng = np.random.default_rng(1)
    p = rng.uniform(-0.7, 0.7, (300, 2))
    hits = ask.ray_cast(np.column_stack([p, np.full(300, 9.0)]), (0, 0, -1))
    assert set(hits.body) == {"mesh"}
    off = np.abs(9 - hits.distance - 5 - np.sqrt(1 - np.sum(p**2, axis=1))).max()
    print(f"sphere of 5120 triangles: off by {off:.1e}")
    assert off < 5e-3
    hits = ask.ray_cast(np.column_stack([p + [10, 0], np.full(300, 9.0)]), (0, 0, -1))
    exact = np.interp(p[:, 0], x, 0.3 * np.sin(x))
    assert set(hits.body) == {"hill"} and np.abs(9 - hits.distance - exact).max() < 1e-6
    hits = ask.ray_cast((5, 5, 1), (0, 0, -1))
    assert hits.body == ["world"] and abs(hits.distance[0] - 2) < 1e-9
    slanted = ask.ray_cast((4, 0, 3), (1, 0, -0.4))
    assert slanted.body == ["hill"]
    where = np.array([4, 0, 3]) + slanted.distance[0] * np.array([1, 0, -0.4]) / np.hypot(1, 0.4)
    assert abs(where[2] - np.interp(where[0] - 10, x, 0.3 * np.sin(x))) < 1e-6


def test_a_cast_box_lands_flat():
    scene = sh.Scene()
    scene.add_ground()
    scene.add_body("table", sh.Box(1, 1, 0.5), position=(0, 0, 0.25))
    ask, _ = made(scene)
    hits = ask.shape_cast(sh.Box(0.2, 0.2, 0.2), [(0, 0, 3), (5, 0, 3)], (0, 0, 0, 1), (0, 0, -1))
    assert hits.body == ["table", "world"] and np.allclose(hits.distance, [2.4, 2.9], atol=1e-6)
    assert np.allclose(hits.normal, [0, 0, 1], atol=1e-6)
    hull = trimesh.creation.box(extents=(0.2, 0.2, 0.2))
    hits = ask.shape_cast(sh.Mesh((hull.vertices, hull.faces)), (0, 0, 3), (0, 0, 0, 1), (0, 0, -1))
    assert np.allclose(hits.distance, 2.4, atol=1e-6)


def test_overlaps_and_groups():
    scene = sh.Scene()
    scene.add_ground()
    for k in range(5):
        scene.add_body(f"b{k}", sh.Box(0.5, 0.5, 0.5), position=(k, 0, 0.3), group=1 << k)
    ask, state = made(scene)
    names = ask.overlaps(sh.Sphere(0.6), [(0.5, 0, 0.3), (2.0, 0, 5.0), (2.0, 0, 0.8)])
    assert names == [["world", "b0", "b1"], [], ["b2"]]
    assert ask.overlaps(sh.Sphere(0.6), (0.5, 0, 0.3), groups=2) == [["b1"]]
    position = state.position.numpy()
    position[3, 0] = (2, 0, 5)
    state.position.assign(position)
    assert ask.overlaps(sh.Sphere(0.6), (2.0, 0, 5.0)) == [["b2"]], "queries see the state as it is"


def test_distances():
    scene = sh.Scene()
    scene.add_ground()
    scene.add_body("a", sh.Box(1, 1, 1), position=(0, 0, 2))
    scene.add_body("b", sh.Sphere(0.5), position=(3, 0, 2))
    scene.add_body("c", sh.Cylinder(0.5, 1), position=(0, 0, 3.25))
    ask, _ = made(scene)
    got = ask.distance(["a", "b", "a", "world", "a"], ["b", "a", "c", "a", "world"])
    assert np.allclose(got.distance, [2.0, 2.0, 0.25, 1.5, 1.5], atol=1e-9)
    assert np.allclose(got.normal[0], [1, 0, 0]) and np.allclose(got.normal[1], [-1, 0, 0])
    assert np.allclose(got.normal[3], [0, 0, 1]) and np.allclose(got.normal[4], [0, 0, -1])
    assert np.allclose(got.point[1], [2.5, 0, 2]) and np.allclose(got.point[4][2], 1.5)
    with pytest.raises(sh.SimulationError, match="'nobody'"):
        ask.distance("a", "nobody")


def test_many_rays_in_many_worlds():
    scene = sh.Scene()
    scene.add_ground()
    for k in range(20):
        scene.add_body(f"b{k}", sh.Box(0.5, 0.5, 0.5), position=(k, 0, 0.3))
    ask, state = made(scene, worlds=3)
    position = state.position.numpy()
    position[:, 1, 2] += 1.0
    state.position.assign(position)
    n = 3000
    x = np.linspace(0, 19, n)
    world = np.arange(n) % 3
    origin = np.column_stack([x, np.zeros(n), np.full(n, 5.0)])
    hits = ask.ray_cast(origin, (0, 0, -1), world=world)
    start = time.perf_counter()
    hits = ask.ray_cast(origin, (0, 0, -1), world=world)
    took = (time.perf_counter() - start) / n * 1e6
    over = np.abs(x - np.round(x)) < 0.2499
    assert np.allclose(hits.distance[over & (world == 0)], 4.45) and np.allclose(hits.distance[over & (world == 1)], 3.45)
    print(f"{took:.2f} µs a ray, 20 boxes and a plane")
