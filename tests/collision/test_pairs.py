"""Pair functions against an oracle (Coal) on random pairs: none missed, no phantom, and the depth is the way out."""

import time

import numpy as np
import pytest
from many_pairs import ManyPairs

import sharnir as sh
from sharnir.collision.primitives import Part, parts_of
from sharnir.core.spatial import quat_rotate, quat_to_matrix

coal = pytest.importorskip("coal")
N = 10_000


def random_shape(kind, rng):
    a, b, c = rng.uniform(0.3, 1.0, 3)
    return {
        "sphere": lambda: sh.Sphere(a),
        "capsule": lambda: sh.Capsule(0.5 * a, 2 * b),
        "box": lambda: sh.Box(2 * a, 2 * b, 2 * c),
        "cylinder": lambda: sh.Cylinder(a, 2 * b),
        "wheel": lambda: sh.Cylinder(a, b, rounding=0.2 * min(a, b)),
        "cone": lambda: sh.Cone(a, 2 * b),
        "ellipsoid": lambda: sh.Ellipsoid(a, b, c),
        "hull": lambda: random_hull(rng),
    }[kind]()


def random_hull(rng):
    import trimesh

    points = rng.normal(size=(24, 3))
    points *= 0.7 * rng.uniform(0.6, 1.0, (24, 1)) / np.linalg.norm(points, axis=1, keepdims=True)
    hull = trimesh.convex.convex_hull(points)
    middle = 0.5 * (hull.vertices.min(axis=0) + hull.vertices.max(axis=0))
    return sh.Mesh((hull.vertices - middle, hull.faces))


def oracle_shape(shape):
    if isinstance(shape, sh.Sphere):
        return coal.Sphere(shape.radius)
    if isinstance(shape, sh.Capsule):
        return coal.Capsule(shape.radius, shape.length)
    if isinstance(shape, sh.Box):
        return coal.Box(shape.x, shape.y, shape.z)
    if isinstance(shape, sh.Cylinder):
        made = coal.Cylinder(shape.radius - shape.rounding, shape.length - 2 * shape.rounding)
        made.setSweptSphereRadius(shape.rounding)
        return made
    if isinstance(shape, sh.Cone):
        return coal.Cone(shape.radius, shape.height)
    if isinstance(shape, sh.Ellipsoid):
        return coal.Ellipsoid(shape.x, shape.y, shape.z)
    vertices, faces = shape.mesh()
    points, triangles = coal.StdVec_Vec3s(), coal.StdVec_Triangle()
    for p in vertices:
        points.append(p)
    for f in faces:
        triangles.append(coal.Triangle(*map(int, f)))
    return coal.Convex(points, triangles)


def rotations(n, rng):
    q = rng.normal(size=(n, 4))
    return q / np.linalg.norm(q, axis=1, keepdims=True)


REQUEST = coal.DistanceRequest()
REQUEST.enable_signed_distance = True
REQUEST.gjk_tolerance = REQUEST.epa_tolerance = 1e-9
REQUEST.gjk_max_iterations = REQUEST.epa_max_iterations = 400


def distance(shape_a, place, shape_b, xb, Rb):
    """Signed distance by Coal."""
    return coal.distance(shape_a, place, shape_b, coal.Transform3s(Rb, xb), REQUEST, coal.DistanceResult())


def random_pairs(one, other, n, rng):
    """Shapes and poses; distances of the middles from deep overlap to apart."""
    kinds = [one, other]
    shapes = [[random_shape(k, rng) for _ in range(60)] for k in kinds]
    pick = [rng.integers(60, size=n) for _ in kinds]
    parts = [[parts_of(s, "test", False)[0] for s in side] for side in shapes]
    d = rng.normal(size=(n, 3))
    d /= np.linalg.norm(d, axis=1, keepdims=True)
    x = [rng.normal(size=(n, 3)), None]
    x[1] = x[0] + d * rng.uniform(0.5, 2.2, (n, 1))
    q = [rotations(n, rng), rotations(n, rng)]
    rows = [([parts[k][i] for i in pick[k]], x[k], q[k]) for k in (0, 1)]
    return shapes, pick, x, q, rows


def quickest(pairs, margin, n):
    times = []
    for _ in range(5):
        start = time.process_time()
        pairs.launch(margin)
        times.append(time.process_time() - start)
    return min(times) / n * 1e6


def judge(one, other, tolerance, depths=1.0, n=N):
    rng = np.random.default_rng(5)
    shapes, pick, x, q, rows = random_pairs(one, other, n, rng)
    pairs = ManyPairs(*rows)
    margin = 0.02
    pairs.launch(margin)
    found = pairs.found()
    took = quickest(pairs, margin, n)
    R = [np.ascontiguousarray(quat_to_matrix(side)) for side in q]
    gap = found.deepest
    count = found.count
    oracle = [[oracle_shape(s) for s in side] for side in shapes]
    missed = phantom = 0
    off, apart, together = [], [], []
    for i in range(n):
        a, b = oracle[0][pick[0][i]], oracle[1][pick[1][i]]
        place = coal.Transform3s(R[0][i], x[0][i])
        truth = distance(a, place, b, x[1][i], R[1][i])
        if count[i] == 0:
            missed += truth < -1e-6
            continue
        phantom += gap[i] < -1e-6 and truth > tolerance
        if truth < 0 and -truth < depths:
            # deeper than Coal's would be wrong; one that is less deep and parts them all the same is the better one
            off.append(max(truth - gap[i], 0.0))
            out = found.normal[i]
            apart.append(distance(a, place, b, x[1][i] - out * (gap[i] - 1e-6 - tolerance), R[1][i]))
            together.append(distance(a, place, b, x[1][i] - out * (gap[i] + 1e-6 + 2 * tolerance), R[1][i]))
    off, apart, together = np.abs(off), np.array(apart), np.array(together)
    print(
        f"{one}–{other}: {took:.2f} µs a pair, {(gap < 0).mean():.0%} overlap; {len(off)} depths, too deep by ≤ {off.max():.1e}, "
        f"median {np.median(off):.0e}; moved apart by the depth: gap ≥ {apart.min():.1e}, by less: ≤ {together.max():.1e}"
    )
    assert missed == 0 and phantom == 0, (missed, phantom)
    assert np.allclose(np.linalg.norm(found.normal[count > 0], axis=1), 1.0, atol=1e-9)
    return off, apart, together


PRIMITIVE = [
    ("sphere", "sphere"), ("sphere", "capsule"), ("sphere", "box"), ("capsule", "capsule"), ("capsule", "box"), ("box", "box"),
]  # fmt: skip
GENERIC = [
    ("box", "cylinder"), ("box", "wheel"), ("cylinder", "cylinder"), ("box", "cone"), ("box", "ellipsoid"), ("box", "hull"),
    ("capsule", "cylinder"), ("sphere", "cylinder"), ("sphere", "hull"), ("capsule", "hull"), ("hull", "hull"),
    ("cylinder", "hull"), ("ellipsoid", "ellipsoid"), ("cone", "cone"),
]  # fmt: skip
ALL = [("sphere", "cone"), ("sphere", "ellipsoid"), ("capsule", "cone"), ("capsule", "ellipsoid"), ("cylinder", "cone"),
       ("cylinder", "ellipsoid"), ("cone", "ellipsoid"), ("cone", "hull"), ("ellipsoid", "hull"), ("wheel", "wheel")]  # fmt: skip


@pytest.mark.parametrize("one, other", PRIMITIVE)
def test_primitive_pairs_find_the_way_out(one, other):
    off, apart, together = judge(one, other, 1e-6)
    assert off.max() < 2e-6 and apart.min() > -1e-6 and together.max() < 1e-6


@pytest.mark.parametrize("one, other", GENERIC)
def test_generic_pairs_find_the_way_out(one, other):
    """Overlaps up to a quarter of the smaller size."""
    off, apart, together = judge(one, other, 1e-4, 0.15)
    assert off.max() < 1e-4 and apart.min() > -1e-4 and together.max() < 1e-4


@pytest.mark.slow
@pytest.mark.parametrize("one, other", PRIMITIVE + GENERIC + ALL)
def test_many_more_pairs_find_the_way_out(one, other):
    tolerance = 1e-6 if (one, other) in PRIMITIVE else 1e-4
    off, apart, together = judge(one, other, tolerance, 1.0 if tolerance < 1e-5 else 0.15, 100_000)
    assert off.max() < 2 * tolerance and apart.min() > -tolerance and together.max() < tolerance


PLANE = Part("plane", np.zeros(3), np.array([0.0, 0.0, 0.0, 1.0]), np.zeros(3))


@pytest.mark.parametrize("kind", ["sphere", "capsule", "box", "cylinder", "wheel", "cone", "ellipsoid", "hull"])
def test_plane_finds_the_lowest_point(kind):
    """Against the support function along the normal: exact, and every point lies on the shape."""
    rng = np.random.default_rng(7)
    shapes = [random_shape(kind, rng) for _ in range(60)]
    parts = [parts_of(s, "test", False)[0] for s in shapes]
    n = 2000
    pick = rng.integers(60, size=n)
    x, q = rng.normal(size=(n, 3)), rotations(n, rng)
    ground = (rng.normal(size=(n, 3)), rotations(n, rng))
    pairs = ManyPairs(([PLANE], *ground), ([parts[i] for i in pick], x, q))
    pairs.launch(10.0)
    found = pairs.found()
    up = quat_rotate(ground[1], np.array([0.0, 0.0, 1.0]) * np.ones((n, 1)))
    height = np.sum(up * (x - ground[0]), axis=1)
    local = np.stack([quat_to_matrix(q[i]).T @ up[i] for i in range(n)])
    reach = np.array([support(shapes[k], d) for k, d in zip(pick, -local, strict=True)])
    off = np.abs(found.deepest - (height - reach)).max()
    print(f"plane–{kind}: off by {off:.1e}; {quickest(pairs, 10.0, n):.2f} µs a pair")
    assert off < 1e-12 and np.allclose(found.normal, up)


def support(shape, d):
    """How far a shape reaches along a unit vector, in its own axes."""
    if isinstance(shape, sh.Sphere):
        return shape.radius
    if isinstance(shape, sh.Capsule):
        return 0.5 * shape.length * abs(d[2]) + shape.radius
    if isinstance(shape, sh.Box):
        return 0.5 * np.abs(d) @ [shape.x, shape.y, shape.z]
    across = np.hypot(d[0], d[1])
    if isinstance(shape, sh.Cylinder):
        r = shape.rounding
        return (shape.radius - r) * across + (0.5 * shape.length - r) * abs(d[2]) + r
    if isinstance(shape, sh.Cone):
        return max(0.5 * shape.height * d[2], shape.radius * across - 0.5 * shape.height * d[2])
    if isinstance(shape, sh.Ellipsoid):
        return np.linalg.norm(d * [shape.x, shape.y, shape.z])
    return (shape.mesh()[0] @ d).max()
