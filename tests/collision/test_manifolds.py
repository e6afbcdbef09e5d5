"""Shapes that touch along a face or an edge have the points that hold them there."""

import numpy as np
import pytest
from many_pairs import ManyPairs

import sharnir as sh
from sharnir.collision.primitives import parts_of
from sharnir.core.spatial import matrix_to_quat

UP = (0.0, 0.0, 0.0, 1.0)
LYING = (0.0, 0.5**0.5, 0.0, 0.5**0.5)


def points(one, other, place, turn=UP, margin=2e-3, base=UP):
    parts = [parts_of(s, "test", False) for s in (one, other)]
    pairs = ManyPairs((parts[0], [np.zeros(3)], [base]), (parts[1], [np.asarray(place, float)], [turn]))
    pairs.launch(margin)
    found = pairs.found()
    k = int(found.count[0])
    return found.normal[0], found.point[0][:k], found.gap[0][:k]


def box_hull(x, y, z):
    import trimesh

    made = trimesh.creation.box(extents=(x, y, z))
    return sh.Mesh((made.vertices, made.faces))


TABLE = sh.Box(2.0, 2.0, 1.0)


@pytest.mark.parametrize("depth", [1e-4, -1e-3])
@pytest.mark.parametrize("table", [TABLE, box_hull(2.0, 2.0, 1.0), sh.Cylinder(1.5, 1.0)], ids=["box", "hull", "cylinder"])
def test_standing_shapes_have_a_square_of_points(table, depth):
    """Their box of points reaches as far as the face does, and every gap is the depth."""
    for shape, half in ((sh.Cylinder(0.3, 0.4), 0.3), (box_hull(0.6, 0.6, 0.4), 0.3), (sh.Cone(0.3, 0.4), 0.3)):
        n, p, gap = points(table, shape, (0.2, 0.1, 0.7 - depth))
        assert np.allclose(n, [0, 0, 1], atol=1e-6) and len(gap) == 4, (shape, n, p)
        assert np.allclose(gap, -depth, atol=1e-6)
        assert np.allclose(p[:, 2], 0.5 - 0.5 * depth, atol=1e-6)
        area = np.ptp(p[:, 0]) * np.ptp(p[:, 1])
        assert area > 1.9 * half * half and np.allclose(p[:, :2].mean(axis=0), [0.2, 0.1], atol=0.05)


@pytest.mark.parametrize("depth", [1e-4, -1e-3])
def test_lying_shapes_have_both_ends(depth):
    for shape in (sh.Cylinder(0.3, 0.8), sh.Cylinder(0.3, 0.8, rounding=0.05), sh.Capsule(0.3, 0.8)):
        for table in (TABLE, box_hull(2.0, 2.0, 1.0)):
            n, p, gap = points(table, shape, (0.2, 0.1, 0.8 - depth), LYING)
            assert np.allclose(n, [0, 0, 1], atol=1e-5) and len(gap) == 2, (shape, p)
            ends = 0.35 if getattr(shape, "rounding", 0) else 0.4
            assert np.allclose(np.sort(p[:, 0]), [0.2 - ends, 0.2 + ends], atol=1e-4) and np.allclose(p[:, 1], 0.1, atol=2e-3)
            assert np.allclose(gap, -depth, atol=1e-5)


@pytest.mark.parametrize("depth", [5e-5, -1e-3])
def test_cylinders_side_by_side_touch_along_their_common_stretch(depth):
    n, p, gap = points(sh.Cylinder(0.3, 0.8), sh.Cylinder(0.2, 0.6), (0.5 - depth, 0, 0.4))
    assert np.allclose(n, [1, 0, 0], atol=1e-5) and len(gap) == 2
    assert np.allclose(np.sort(p[:, 2]), [0.1, 0.4], atol=1e-3) and np.allclose(gap, -depth, atol=1e-5)


def test_a_face_that_reaches_over_the_edge_is_clipped():
    _, p, gap = points(TABLE, box_hull(0.6, 0.6, 0.4), (1.1, 0, 0.7 - 1e-4))
    assert len(gap) == 4 and np.allclose(np.sort(p[:, 0]), [0.8, 0.8, 1.0, 1.0], atol=1e-3)
    assert np.allclose(np.abs(p[:, 1]), 0.3, atol=1e-3)


LATHS = {
    "box": sh.Box(0.6, 0.1, 0.04), "hull": box_hull(0.6, 0.1, 0.04),
    "capsule": sh.Capsule(0.02, 0.6), "cylinder": sh.Cylinder(0.02, 0.6),
}  # fmt: skip


@pytest.mark.parametrize("kind", LATHS)
def test_a_lath_across_an_edge_has_the_end_that_comes_down(kind):
    """It touches an edge of the table, askew and tilted by 1°: its end above the table is 5 mm from it, and within the margin."""
    tilt, skew = np.deg2rad(1.0), np.deg2rad(20.0)
    along = np.array([-np.cos(skew) * np.cos(tilt), np.sin(skew) * np.cos(tilt), np.sin(tilt)])  # to the end above the table
    across = np.cross([0.0, 0.0, 1.0], along)
    across /= np.linalg.norm(across)
    axes = [along, across, np.cross(along, across)] if kind in ("box", "hull") else [across, np.cross(along, across), along]
    turn = matrix_to_quat(np.stack(axes, 1))
    middle = np.array([1.0, 0.0, 0.5 + 0.02 / np.cos(tilt) + 1e-4])
    n, p, gap = points(TABLE, LATHS[kind], middle, turn, margin=8e-3)
    near = points(TABLE, LATHS[kind], middle, turn, margin=1e-3)[2]
    end = middle + 0.3 * along - 0.02 * np.array([0, 0, 1])
    high = (end - [0, 0, 0.5])[2]
    far = np.linalg.norm(p[:, :2] - end[:2], axis=1)
    print(f"{kind}: normal {np.round(n, 4)}, gaps {np.round(1e3 * gap, 2)} mm, end at {1e3 * high:.2f} mm")
    assert n[2] > 0.99 and far.min() < 0.07 and abs(gap[far.argmin()] - high) < 1.2e-3
    assert gap.min() == pytest.approx(1e-4, abs=4e-4) and near.max() < 1e-3 < gap.max()


def test_a_wheel_on_a_box_has_its_tread():
    """A disc with a rounded edge, upright: two points at the ends of the tread; leaning: one on the rounded edge."""
    wheel = sh.Cylinder(0.3, 0.2, rounding=0.05)
    rolling = (0.5**0.5, 0.0, 0.0, 0.5**0.5)
    n, p, gap = points(TABLE, wheel, (0, 0, 0.8 - 1e-4), rolling)
    assert len(gap) == 2 and np.allclose(np.sort(p[:, 1]), [-0.05, 0.05], atol=1e-4)
    lean = 0.2
    turn = (np.sin(np.pi / 4 + lean / 2), 0.0, 0.0, np.cos(np.pi / 4 + lean / 2))
    height = 0.25 * np.cos(lean) + 0.05 * np.sin(lean) + 0.05
    n, p, gap = points(TABLE, wheel, (0, 0, 0.5 + height - 1e-4), turn)
    assert len(gap) == 1 and np.allclose(n, [0, 0, 1], atol=1e-5) and abs(gap[0] + 1e-4) < 1e-7


def test_a_resting_manifold_does_not_flicker():
    """Small turns and shifts of a cylinder, as it has at rest: the same points each time."""
    rng = np.random.default_rng(0)
    _, first, _ = points(TABLE, sh.Cylinder(0.3, 0.4), (0.2, 0.1, 0.7 - 1e-5))
    for _ in range(50):
        q = np.array([*rng.normal(size=3) * 2e-6, 1.0])
        _, p, _ = points(TABLE, sh.Cylinder(0.3, 0.4), np.array([0.2, 0.1, 0.7 - 1e-5]) + rng.normal(size=3) * 1e-6, q)
        assert len(p) == len(first)
        assert all(np.linalg.norm(first - x, axis=1).min() < 1e-2 for x in p)


EVERY = [
    sh.Sphere(0.3), sh.Capsule(0.2, 0.4), sh.Box(0.4, 0.5, 0.6), sh.Cylinder(0.3, 0.4), sh.Cylinder(0.3, 0.2, rounding=0.05),
    sh.Cone(0.3, 0.4), sh.Ellipsoid(0.2, 0.3, 0.4), box_hull(0.4, 0.5, 0.6),
]  # fmt: skip


@pytest.mark.parametrize("one", EVERY, ids=lambda s: type(s).__name__)
def test_shapes_in_odd_places_have_finite_points(one):
    """Middles that coincide, axes that do, poses that are not a number: a unit normal and finite gaps, or nothing; no hang."""
    for other in EVERY:
        for place in (np.zeros(3), np.array([0, 0, 1e-13]), np.array([0.1, 0, 0]), np.array([0, 0, 0.15])):
            n, p, gap = points(one, other, place)
            assert len(gap) > 0, (one, other, place)
            assert abs(np.linalg.norm(n) - 1) < 1e-9 and np.isfinite(p).all() and np.isfinite(gap).all() and gap.min() < 0
        n, p, gap = points(one, other, (0, 0, 0.1), LYING)
        assert len(gap) > 0 and np.isfinite(p).all()
        points(one, other, (np.nan, 0, 0))
        points(one, other, (0, 0, 0), (np.nan, 0, 0, 1))
        assert len(points(one, other, (0, 0, 5.0))[2]) == 0
