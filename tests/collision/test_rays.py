"""Rays by closed forms against a point that moves until it touches, which knows shapes by their support functions alone."""

from itertools import pairwise

import numpy as np
import pytest
import trimesh
import warp as wp

import sharnir as sh
from sharnir.collision.collider import Collider
from sharnir.collision.host_queries import POINT_PART, Queries
from sharnir.collision.trace import Fan, Sight
from sharnir.core.spatial import quat_conjugate, quat_exp, quat_rotate
from sharnir.sensors.noise import Noise, Reading, noise_launcher


def asked(scene):
    model = scene.build()
    collider = Collider(model, 1e-3)
    state = model.state()
    collider.bind(state)
    return Queries(collider)


def hull():
    rng = np.random.default_rng(3)
    return sh.Mesh((lambda h: (h.vertices, h.faces))(trimesh.convex.convex_hull(rng.normal(size=(30, 3)) * (0.5, 0.4, 0.3))))


SHAPES = {
    "ball": sh.Sphere(0.6), "box": sh.Box(0.8, 1.0, 0.5), "capsule": sh.Capsule(0.3, 0.9), "cylinder": sh.Cylinder(0.4, 0.9),
    "rounded": sh.Cylinder(0.5, 0.4, rounding=0.15), "cone": sh.Cone(0.5, 1.1), "ellipsoid": sh.Ellipsoid(0.7, 0.3, 0.5),
    "hull": hull(),
}  # fmt: skip
SURFACE = {
    "cylinder": lambda p: np.maximum(np.hypot(p[:, 0], p[:, 1]) - 0.4, np.abs(p[:, 2]) - 0.45),
    "ellipsoid": lambda p: np.linalg.norm(p / (0.7, 0.3, 0.5), axis=1) - 1.0,
}
"""Shapes of which the support function alone tells a point's distance to 1e-7 m: 0 on their surface."""


@pytest.mark.parametrize("name", SHAPES)
def test_a_ray_is_a_point_on_its_way(name):
    rng = np.random.default_rng(7)
    scene = sh.Scene(contact=True)
    turn = quat_exp(rng.normal(size=3))
    scene.add_body("thing", SHAPES[name], position=(0.3, -0.2, 0.1), rotation=turn)
    ask = asked(scene)
    n = 600
    x = rng.normal(size=(n, 3))
    x *= (rng.uniform(0.0, 4.0, n) / np.linalg.norm(x, axis=1))[:, None]
    d = rng.normal(size=(n, 3)) * 0.5 - x
    d[:60] = quat_rotate(np.tile(turn, (60, 1)), np.tile([(0, 0, 1.0), (0, 0, -1.0), (1.0, 0, 0)], (20, 1)))  # along its axes
    x[:60] += 0.2 * d[:60]
    ours, other = ask.ray_cast(x, d, 3.0), ask._cast([POINT_PART], x, (0.0, 0.0, 0.0, 1.0), d, 3.0, 0, 0x7FFFFFFF)
    both = np.isfinite(ours.distance) & np.isfinite(other.distance)
    off = np.abs(ours.distance[both] - other.distance[both])
    lean = np.abs(ours.normal - other.normal)[both & (ours.distance > 0)].max(axis=1)
    apart = int((np.isfinite(ours.distance) != np.isfinite(other.distance)).sum())
    inside = int((ours.distance == 0).sum())
    print(f"{both.sum()} of {n} rays meet it, {inside} from inside; off by {off.max():.1e} m, {apart} met by one alone; "
          f"normals off by {np.median(lean):.1e} (median)")  # fmt: skip
    assert both.sum() > 100 and inside > 5
    assert off.max() < (5e-7 if name in SURFACE else 1e-10) and apart == 0
    assert np.median(lean) < (3e-4 if name in SURFACE else 3e-7)
    if name in SURFACE:
        met = both & (ours.distance > 0)
        local = quat_rotate(np.tile(quat_conjugate(turn), (met.sum(), 1)), ours.point[met] - (0.3, -0.2, 0.1))
        print(f"off its surface by {np.abs(SURFACE[name](local)).max():.1e}")
        assert np.abs(SURFACE[name](local)).max() < 1e-14
    way = d[both] / np.linalg.norm(d[both], axis=1, keepdims=True)
    assert np.allclose(ours.point[both], x[both] + way * ours.distance[both, None])


def looked(device):
    """Ranges and bodies of a fan of rays in three worlds, and the same with noise."""
    scene = sh.Scene(contact=True)
    scene.add_ground(-2.0)
    rng = np.random.default_rng(4)
    for i, shape in enumerate(SHAPES.values()):
        scene.add_body(f"b{i}", shape, position=3 * rng.normal(size=3), rotation=quat_exp(rng.normal(size=3)), group=(1, 2))
    scene.add_terrain("rough", rng.uniform(0, 1, (9, 9)), size=(20, 20), position=(0, 0, -3))
    model = scene.build(worlds=3, device=device)
    collider, state = Collider(model, 1e-3), model.state()
    place = state.position.numpy()
    place[:, 1:] += 0.2 * rng.normal(size=place[:, 1:].shape)
    state.position.assign(place)
    collider.bind(state)
    rays = rng.normal(size=(500, 3))
    rays /= np.linalg.norm(rays, axis=1, keepdims=True)
    fan = Fan(Sight(collider), 1, np.zeros(3), np.array([0.0, 0, 0, 1]), rays, np.ones(500), (20, 25), (0.0, 30.0), {1}, 1)
    fan.look()
    true = fan.value.numpy().copy()
    reading = Reading(fan.value, (500,), Noise(0.1, 0.2, step=1e-3, latency=1, seed=7), "x", "x")
    noise_launcher([reading], collider.model.worlds, collider.model.device)()
    return true, fan.bodies(), fan.value.numpy()


def test_every_device_sees_the_same():
    device = wp.get_devices()[-1].alias  # a GPU, where there is one
    (true, met, read), other = looked("cpu"), looked(device)
    hit = np.isfinite(true)
    off, apart = (np.abs(a[hit] - b[hit]).max() for a, b in ((true, other[0]), (read, other[2])))
    print(f"{device}: {hit.sum()} of {true.size} rays, off by {off:.1e} m, readings by {apart:.1e} m")
    assert np.array_equal(hit, np.isfinite(other[0])) and np.array_equal(met, other[1]) and hit.sum() > 500
    assert off < 1e-12 and apart < 1.001e-3, "but for a step of a millimetre"
    assert abs((read[hit] - true[hit]).mean() - 0.2) < 4 * 0.1 / np.sqrt(hit.sum())


@pytest.mark.parametrize("name", SHAPES)
def test_rays_along_edges_and_through_tips_are_numbers(name):
    scene = sh.Scene(contact=True)
    scene.add_body("thing", SHAPES[name])
    ask = asked(scene)
    places = np.array([-1.0, -0.5, -0.4, 0.0, 0.3, 0.55, 1e5])
    x = np.array(np.meshgrid(places, places, places)).reshape(3, -1).T
    d = np.array([e for e in np.ndindex(3, 3, 3) if e != (1, 1, 1)], float) - 1.0
    hits = ask.ray_cast(np.repeat(x, len(d), 0), np.tile(d, (len(x), 1)))
    met = np.isfinite(hits.distance)
    assert not np.isnan(hits.distance).any() and met.sum() > 500 and (hits.distance >= 0).all()
    assert np.abs(np.linalg.norm(hits.normal[met], axis=1) - 1.0).max() < 1e-12


def test_rays_over_rough_ground_and_meshes():
    """Against the straight surface between samples, cell by cell, and Trimesh's own rays."""
    rng = np.random.default_rng(2)
    heights = rng.uniform(0.0, 0.6, (17, 9))
    knot = trimesh.creation.torus(1.0, 0.35, major_sections=40, minor_sections=20)
    scene = sh.Scene()
    scene.add_terrain("rubble", heights, size=(8.0, 4.0))
    scene.add_body("ring", sh.Mesh((knot.vertices, knot.faces)), motion="fixed", position=(20, 0, 0))
    ask = asked(scene)
    n = 400
    x = np.column_stack([rng.uniform(-3, 3, n), rng.uniform(-1.5, 1.5, n), rng.uniform(0.7, 2, n)])
    d = np.column_stack([rng.normal(size=(n, 2)), rng.uniform(-1.0, -0.1, n)])
    hits, other = ask.ray_cast(x, d, 9.0), ask._cast([POINT_PART], x, (0.0, 0.0, 0.0, 1.0), d, 9.0, 0, 0x7FFFFFFF)
    both = np.isfinite(hits.distance) & np.isfinite(other.distance)
    off = np.abs(hits.distance[both] - other.distance[both]).max()
    apart = int((np.isfinite(hits.distance) != np.isfinite(other.distance)).sum())
    print(f"rubble: {both.sum()} of {n} rays, off by {off:.1e} m, {apart} met by one alone")
    assert both.sum() > 200 and off < 1e-12 and apart == 0
    straight = ask.ray_cast((0.0, 0.0, 2.0), (0, 0, -1))  # onto a sample, where six triangles meet
    assert straight.distance[0] == pytest.approx(2.0 - heights[8, 4], abs=1e-12)
    below = ask.ray_cast((0.1, 0.1, -1.0), (0, 0, 1))
    assert below.body == [None], "from below it is not there"
    x, d = rng.normal(size=(n, 3)) * 2.0, rng.normal(size=(n, 3))
    d[: n // 2] = rng.normal(size=(n // 2, 3)) * 0.7 - x[: n // 2]
    d /= np.linalg.norm(d, axis=1, keepdims=True)
    hits = ask.ray_cast(x + (20, 0, 0), d, 9.0)
    exact = np.full(n, np.inf)
    a, u, v = (knot.triangles[:, 0], knot.triangles[:, 1] - knot.triangles[:, 0], knot.triangles[:, 2] - knot.triangles[:, 0])
    for i in range(n):
        solved = np.linalg.solve(np.stack([u, v, np.broadcast_to(-d[i], u.shape)], -1), (x[i] - a)[..., None])[..., 0]
        inside = (solved[:, :2] >= 0).all(1) & (solved[:, :2].sum(1) <= 1) & (solved[:, 2] > 0) & (np.cross(u, v) @ d[i] < 0)
        exact[i] = solved[inside & (solved[:, 2] < 9.0), 2].min(initial=np.inf)
    met = np.isfinite(exact)
    assert np.array_equal(met, np.isfinite(hits.distance)) and met.sum() > 100
    print(f"ring of {len(u)} triangles: {met.sum()} rays, off by {np.abs(exact[met] - hits.distance[met]).max():.1e} m")
    assert np.abs(exact[met] - hits.distance[met]).max() < 1e-12


def test_rays_see_a_straight_rope():
    """Closed forms: a cylinder across the ray and askew, half balls at the ends; its name, its normals, worlds, `groups`."""
    r, h = 0.02, 0.7
    scene = sh.Scene(contact=True)
    scene.add_ground(-1.0)
    scene.add_rope("line", (0, 0, 0), (2, 0, 0), segments=8, radius=r, collide=False)
    ask = asked(scene)
    turn, z = np.radians(np.linspace(0.0, 50.0, 6)), np.linspace(-0.9, 0.9, 6) * r
    tip, tilt = 0.6 * r, 0.3
    x = (
        [(1.0, -h, k) for k in z]
        + [(0.5, -h, 0.0)] * 6
        + [(-h, 0.0, tip), (3.0, 0.0, -tip), (1.0, 0.0, 0.5 * r), (1.0, -h, 1.01 * r)]
    )
    d = [(0, 1.0, 0)] * 6 + [(np.sin(t), np.cos(t), 0) for t in turn] + [(1.0, 0, 0), (-1.0, 0, 0), (0, 1.0, 0), (0, 1.0, 0)]
    exact = [*(h - np.sqrt(r * r - z * z)), *((h - r) / np.cos(turn)), h - 0.8 * r, 1.0 - 0.8 * r, 0.0, np.inf]
    found = ask.ray_cast(x, d, 5.0)
    off = np.abs(found.distance[:-1] - exact[:-1]).max()
    lean = np.abs(found.normal[:6] - np.column_stack([0 * z, -np.sqrt(r * r - z * z), z]) / r).max()
    print(f"{len(x)} rays at a rope: off by {off:.1e} m, normals by {lean:.1e}; met: {set(found.body)}")
    assert off < 1e-13 and lean < 1e-12 and found.distance[-1] == np.inf and found.body == ["line"] * 15 + [None]
    assert np.allclose(found.normal[12], (-0.8, 0, 0.6)) and found.normal[14].tolist() == [0, -1, 0], "at its end; from inside"
    past = ask.ray_cast((1.0, 0, 1.0), (0, 0, -1), groups=2)
    down = ask.ray_cast((1.0, 0, 1.0), (np.sin(tilt), 0, -np.cos(tilt)))
    assert past.body == [None] and down.body == ["line"] and abs(down.distance[0] - (1 - r) / np.cos(tilt)) < 1e-13


def test_a_bent_rope_is_a_chain_of_capsules():
    """Rays from anywhere and a fan, in two worlds, beside bodies that are capsules where the rope's elements are; one is cut."""
    rng, r, n = np.random.default_rng(5), 0.06, 7
    scene, other = sh.Scene(contact=True), sh.Scene(contact=True)
    scene.add_body("post", sh.Sphere(0.2), position=(0, 0, 3.0), group=2)
    scene.add_rope("first", (5, 5, 5), (5, 6, 5), segments=2, collide=False)
    scene.add_rope("line", (0, 0, 0), (1.4, 0, 0), segments=n, radius=r, collide=False)
    model = scene.build(worlds=2)
    collider, state = Collider(model, 1e-3), model.state()
    place, begin = state.rope.position.numpy(), int(model.ropes.first[1])
    place[begin : begin + n + 1, 1] = points = np.cumsum(rng.normal(size=(n + 1, 3)) * 0.3, axis=0)
    state.rope.cut.numpy()[begin + 3, 1] = 1
    other.add_body("post", sh.Sphere(0.2), position=(0, 0, 3.0))
    for j, (a, b) in enumerate(pairwise(points)):
        axis = (b - a) / np.linalg.norm(b - a)
        turn = quat_exp(np.arccos(axis[2]) * np.cross((0, 0, 1), axis) / np.hypot(*axis[:2]))
        if j != 3:
            other.add_body(f"e{j}", sh.Capsule(r, float(np.linalg.norm(b - a))), position=0.5 * (a + b), rotation=turn)
    collider.bind(state)
    x = rng.normal(size=(2000, 3)) * 1.5 + points.mean(axis=0)
    d = points[rng.integers(0, n + 1, 2000)] + rng.normal(size=(2000, 3)) * 0.15 - x
    ask = Queries(collider)
    ours, theirs = ask.ray_cast(x, d, 4.0, world=1), asked(other).ray_cast(x, d, 4.0)
    met = np.isfinite(ours.distance)
    assert np.array_equal(met, np.isfinite(theirs.distance)) and {b or "" for b in ours.body} <= {"", "line", "post"}
    off, lean = (np.abs(a[met] - b[met]).max() for a, b in ((ours.distance, theirs.distance), (ours.normal, theirs.normal)))
    rays = points[rng.integers(0, n + 1, 600)] + rng.normal(size=(600, 3)) * 0.1 - (0, 0, 3.0)
    rays /= np.linalg.norm(rays, axis=1, keepdims=True)
    fan = Fan(Sight(collider), 1, np.zeros(3), np.array([0.0, 0, 0, 1]), rays, np.ones(600), (20, 30), (0.0, 30.0), {1}, 1)
    fan.look()
    alone, seen, hit = ask.ray_cast((0, 0, 3.0), rays, 30.0, world=1, groups=1), fan.value.numpy()[:, 1], fan.bodies()[:, 1] == 3
    apart = np.abs(seen[hit] - alone.distance[hit]).max()
    print(f"{met.sum()} of {len(x)} rays meet rope or ball: off by {off:.1e} m, normals by {lean:.1e}; "
          f"a fan of {len(rays)}: {hit.sum()}, off by {apart:.1e} m")  # fmt: skip
    assert met.sum() > 500 and off < 1e-12 and lean < 1e-9
    assert hit.sum() > 100 and apart < 1e-13 and np.array_equal(hit, [b == "line" for b in alone.body])
    hidden = Fan(Sight(collider), 1, np.zeros(3), np.array([0.0, 0, 0, 1]), rays, np.ones(600), (20, 30), (0.0, 30.0), {1, 3}, 1)
    hidden.look()
    assert not (hidden.bodies()[:, 1] == 3).any(), "a rope that is ignored"
