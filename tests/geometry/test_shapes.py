"""Mass properties of shapes: closed forms against quadrature over slices and against meshes; every refusal."""

import builtins
import itertools
import math
import re

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.spatial.transform import Rotation

from sharnir.errors import SceneError
from sharnir.geometry.shapes import (
    Box,
    Capsule,
    Compound,
    Cone,
    Cylinder,
    Ellipsoid,
    MassProperties,
    Mesh,
    PointMass,
    Shape,
    Sphere,
    check_inertia,
    combine,
)

TURN = tuple(Rotation.from_euler("xyz", [0.4, -0.7, 1.1]).as_quat())
QUARTER_ABOUT_X = (math.sqrt(0.5), 0.0, 0.0, math.sqrt(0.5))


def capsule_radius(z: float, r: float, length: float) -> float:
    return math.sqrt(max(0.0, r**2 - max(0.0, abs(z) - length / 2) ** 2))


def ellipse(a: float, b: float) -> tuple[float, float, float]:
    return math.pi * a * b, a**2 / 4, b**2 / 4


# Each shape as a stack of slices: z range (with kinks) and z -> (area, mean x², mean y²) of the slice.
SLICES = {
    Box(0.4, 0.7, 1.1): ([-0.55, 0.55], lambda z: (0.4 * 0.7, 0.4**2 / 12, 0.7**2 / 12)),
    Sphere(0.6): ([-0.6, 0.6], lambda z: ellipse(math.sqrt(0.36 - z * z), math.sqrt(0.36 - z * z))),
    Capsule(0.3, 0.8): (
        [-0.7, -0.4, 0.4, 0.7],
        lambda z: ellipse(capsule_radius(z, 0.3, 0.8), capsule_radius(z, 0.3, 0.8)),
    ),
    Cylinder(0.35, 0.9): ([-0.45, 0.45], lambda z: ellipse(0.35, 0.35)),
    Cone(0.5, 1.2): ([-0.6, 0.6], lambda z: ellipse(0.5 * (0.6 - z) / 1.2, 0.5 * (0.6 - z) / 1.2)),
    Ellipsoid(0.3, 0.5, 0.8): (
        [-0.8, 0.8],
        lambda z: ellipse(0.3 * math.sqrt(1 - (z / 0.8) ** 2), 0.5 * math.sqrt(1 - (z / 0.8) ** 2)),
    ),
}
SOLIDS = list(SLICES)


def name(shape: Shape) -> str:
    return type(shape).__name__


def close(what: str, got: object, want: object, tolerance: float) -> None:
    """Print the relative error of a figure, then check it."""
    got, want = np.asarray(got, float), np.asarray(want, float)
    error = np.abs(got - want).max() / max(np.abs(want).max(), 1e-300)
    print(f"{what}: relative error {error:.2e} (allowed {tolerance:.0e})")
    assert error <= tolerance


@pytest.mark.parametrize("shape", SOLIDS, ids=name)
def test_closed_form_equals_quadrature_over_slices(shape: Shape) -> None:
    ends, slice_at = SLICES[shape]

    def integral(f):
        return sum(quad(f, a, b, epsabs=0, epsrel=1e-12)[0] for a, b in itertools.pairwise(ends))

    volume = integral(lambda z: slice_at(z)[0])
    z0 = quad_over(integral, slice_at, lambda z: z) / volume
    xx = integral(lambda z: slice_at(z)[0] * slice_at(z)[1]) / volume
    yy = integral(lambda z: slice_at(z)[0] * slice_at(z)[2]) / volume
    zz = quad_over(integral, slice_at, lambda z: (z - z0) ** 2) / volume

    got = shape.mass_properties(mass=3.0)
    close("volume", shape.volume, volume, 1e-9)
    close("inertia", got.inertia, 3.0 * np.diag([yy + zz, zz + xx, xx + yy]), 1e-9)
    print(f"centre of mass: {got.com} m, quadrature z = {z0:.3e} m")
    np.testing.assert_allclose(got.com, [0, 0, z0], atol=1e-9)


def quad_over(integral, slice_at, weight):
    # A symmetric integrand of odd weight integrates to zero, where a purely relative tolerance cannot be met.
    return integral(lambda z: slice_at(z)[0] * (weight(z) + 1.0)) - integral(lambda z: slice_at(z)[0])


@pytest.mark.parametrize("shape", SOLIDS, ids=name)
def test_drawn_mesh_weighs_what_the_placed_shape_weighs(shape: Shape) -> None:
    placed = type(shape)(
        *(getattr(shape, size) for size in ("x", "y", "z", "radius", "length", "height") if hasattr(shape, size)),
        position=(0.5, -1.0, 2.0),
        rotation=TURN,
    )
    vertices, faces = placed.mesh()
    assert vertices.shape[1] == faces.shape[1] == 3 and np.issubdtype(faces.dtype, np.integer)
    meshed = Mesh((vertices, faces))
    got, want = meshed.mass_properties(mass=2.0), placed.mass_properties(mass=2.0)
    close("volume", meshed.volume, placed.volume, 0.03)
    close("centre of mass", got.com, want.com, 0.003)
    close("inertia", got.inertia, want.inertia, 0.03)


def test_mesh_of_a_box_is_exact_far_from_the_origin_and_scaled() -> None:
    box = Box(1.0, 2.0, 3.0)
    vertices, faces = box.mesh()
    mesh = Mesh((vertices + np.array([1e4, 0.0, 0.0]), faces), scale=0.5, density=700.0)
    got, want = mesh.mass_properties(), Box(0.5, 1.0, 1.5, position=(5e3, 0, 0), density=700.0).mass_properties()
    close("mass", got.mass, want.mass, 1e-9)
    close("centre of mass", got.com, want.com, 1e-12)
    close("inertia", got.inertia, want.inertia, 1e-9)


def test_mesh_from_a_file(tmp_path) -> None:
    trimesh = pytest.importorskip("trimesh")
    path = tmp_path / "brick.stl"
    trimesh.creation.box(extents=(0.2, 0.1, 0.06)).export(path)
    mesh = Mesh(path, scale=2.0)
    close("inertia", mesh.mass_properties().inertia, Box(0.4, 0.2, 0.12).mass_properties().inertia, 1e-6)
    assert "brick.stl" in mesh.name


def test_rotated_placement_turns_the_inertia() -> None:
    upright, lying = Cylinder(0.1, 2.0), Cylinder(0.1, 2.0, rotation=QUARTER_ABOUT_X)
    a, b = upright.mass_properties().inertia, lying.mass_properties().inertia
    close("inertia with y and z exchanged", b, np.diag([a[0, 0], a[2, 2], a[1, 1]]), 1e-12)


def test_moved_keeps_principal_moments_and_moves_the_centre() -> None:
    here = MassProperties(2.0, np.array([0.1, 0.2, 0.3]), np.diag([1.0, 2.0, 2.5]))
    there = here.moved((1.0, 0.0, 0.0), TURN)
    close("principal moments", np.linalg.eigvalsh(there.inertia), [1.0, 2.0, 2.5], 1e-12)
    close("centre", there.com, Rotation.from_quat(TURN).apply(here.com) + np.array([1.0, 0.0, 0.0]), 1e-12)


def test_parallel_axis_of_two_points_is_a_dumbbell() -> None:
    ends = [PointMass(position=(0, 0, -1.0), mass=1.0), PointMass(position=(0, 0, 2.0), mass=3.0)]
    whole = combine(end.mass_properties() for end in ends)
    # reduced mass m₁m₂/(m₁ + m₂) at the distance of the two points
    moment = 1.0 * 3.0 / 4.0 * 3.0**2
    close("inertia", whole.inertia, np.diag([moment, moment, 0.0]), 1e-12)
    close("centre", whole.com, [0, 0, 1.25], 1e-12)


@pytest.mark.parametrize("how", [{}, {"density": 400.0}, {"mass": 5.0}], ids=str)
def test_two_half_boxes_make_one_box(how: dict[str, float]) -> None:
    place = {"position": (1.0, -2.0, 0.5), "rotation": TURN}
    halves = Compound(Box(0.5, 0.4, 0.3, position=(-0.25, 0, 0)), Box(0.5, 0.4, 0.3, position=(0.25, 0, 0)), **place)
    whole = Box(1.0, 0.4, 0.3, **place)
    got, want = halves.mass_properties(**how), whole.mass_properties(**how)
    close("volume", halves.volume, whole.volume, 1e-12)
    close("mass", got.mass, want.mass, 1e-12)
    close("centre", got.com, want.com, 1e-12)
    close("inertia", got.inertia, want.inertia, 1e-12)
    vertices, faces = halves.mesh()
    assert vertices.shape == (16, 3) and faces.shape == (24, 3) and faces.max() == 15


def test_nested_compound_equals_flat_compound() -> None:
    a, b = Sphere(0.2, mass=1.0), Box(0.1, 0.2, 0.3, position=(0.5, 0, 0), density=500.0)
    flat, nested = Compound(a, b), Compound(Compound(a), Compound(b))
    close("inertia", nested.mass_properties(mass=4.0).inertia, flat.mass_properties(mass=4.0).inertia, 1e-12)


def test_where_the_mass_comes_from() -> None:
    def mass(shape: Shape, **how: float) -> float:
        value = shape.mass_properties(**how).mass
        print(f"{shape} {how}: {value:.6g} kg")
        return value

    assert mass(Box(1, 1, 2)) == 2000.0
    assert mass(Box(1, 1, 2, density=10.0)) == 20.0
    assert mass(Box(1, 1, 2, mass=7.0)) == 7.0
    assert mass(Box(1, 1, 2, mass=7.0), density=3.0) == 6.0
    assert mass(Box(1, 1, 2, density=10.0), mass=8.0) == 8.0
    light, heavy, plain = Box(1, 1, 1, mass=1.0), Box(1, 1, 1, density=3.0, position=(1, 0, 0)), Box(1, 1, 1)
    assert mass(Compound(light, heavy)) == 4.0
    assert mass(Compound(light, heavy, density=5.0)) == 10.0
    assert mass(Compound(light, heavy, mass=6.0)) == 6.0
    assert mass(Compound(light, PointMass(mass=2.0)), density=5.0) == 7.0
    # a total mass follows the parts' own masses 1 : 3 ...
    assert Compound(light, heavy, mass=8.0).mass_properties().com[0] == pytest.approx(0.75)
    # ... but their volumes 1 : 1 as soon as one part has no mass of its own
    assert Compound(plain, heavy, mass=8.0).mass_properties().com[0] == pytest.approx(0.5)


def test_point_mass_has_no_inertia_and_is_drawn_small() -> None:
    point = PointMass(position=(1, 2, 3))
    got = point.mass_properties(mass=0.5)
    vertices, _ = point.mesh()
    radius = np.linalg.norm(vertices - np.array([1, 2, 3]), axis=1)
    print(f"volume {point.volume}, inertia {np.abs(got.inertia).max()}, drawn radius {radius.max():.4f} m")
    assert point.volume == 0.0 and not got.inertia.any() and got.com.tolist() == [1, 2, 3]
    assert radius.max() == pytest.approx(0.03, rel=1e-3)


def test_a_nearly_unit_rotation_is_normalised() -> None:
    box = Box(1, 1, 1, rotation=(0, 0, 0, 1.0005))
    print(f"rotation {box.rotation}")
    assert box.rotation == (0.0, 0.0, 0.0, 1.0)


BOX = Box(1.0, 1.0, 1.0)
VERTICES, FACES = [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1.0]], [[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]]
REFUSED = {
    "Box: x must be a positive finite length in m, got -1.0": lambda: Box(-1.0, 1, 1),
    "Box: z must be a positive finite length in m, got inf": lambda: Box(1, 1, math.inf),
    "Box: y must be a positive finite length in m, got 'wide'": lambda: Box(1, "wide", 1),
    "Sphere: radius must be a positive finite length in m, got 0.0": lambda: Sphere(0.0),
    "Capsule: length must be a positive finite length in m, got nan": lambda: Capsule(1, math.nan),
    "Cylinder: radius must be a positive finite length in m, got -2": lambda: Cylinder(-2, 1),
    "Cone: height must be a positive finite length in m, got 0": lambda: Cone(1, 0),
    "Ellipsoid: y must be a positive finite length in m, got None": lambda: Ellipsoid(1, None, 1),
    "Box: position must be a vector in m of 3 finite numbers, got (1, 2)": lambda: Box(1, 1, 1, position=(1, 2)),
    "Box: rotation must be a quaternion (x, y, z, w) of 4 finite numbers, got (0, 0, 1)": lambda: Box(
        1, 1, 1, rotation=(0, 0, 1)
    ),
    "Sphere: density must be a positive finite density in kg/m³, got 0": lambda: Sphere(1, density=0),
    "Box: mass must be a positive finite mass in kg, got -3.0": lambda: BOX.mass_properties(mass=-3.0),
    "Box: takes mass or density, not both, got mass=1 and density=2": lambda: Box(1, 1, 1, mass=1, density=2),
    "Box: takes mass or density, not both, got mass=3 and density=4": lambda: BOX.mass_properties(mass=3, density=4),
    "PointMass: has no volume and needs a mass in kg, got none": lambda: PointMass().mass_properties(),
    "PointMass: has no volume and needs a mass in kg, got density=5.0": lambda: PointMass().mass_properties(density=5),
    "Compound: needs at least one shape, got none": lambda: Compound(),
    "Compound: parts must be shapes, got 'box'": lambda: Compound(BOX, "box"),
    "Compound: mass=2.0 cannot be shared by volume, part 1 (PointMass) has none": lambda: Compound(
        BOX, PointMass(mass=1.0)
    ).mass_properties(mass=2.0),
    "combine: needs at least one part, got none": lambda: combine([]),
    "combine: the parts must have a positive total mass in kg, got 0.0": lambda: combine(
        [MassProperties(0.0, np.zeros(3), np.zeros((3, 3)))]
    ),
    "Mesh: scale must be a positive finite factor, got -1": lambda: Mesh((VERTICES, FACES), scale=-1),
    "Mesh 'nowhere.stl': no such file": lambda: Mesh("nowhere.stl"),
    "Mesh: must be a file's path or (vertices, faces), got 7": lambda: Mesh(7),
    "Mesh of 4 vertices, 3 faces: must be watertight": lambda: Mesh((VERTICES, FACES[:3])),
    "Mesh of 4 vertices, 4 faces: triangles must all be wound one way": lambda: Mesh((VERTICES, [*FACES[:3], FACES[3][::-1]])),
    "Mesh of 4 vertices, 4 faces: must enclose a positive volume, got -0.166667 m³": lambda: Mesh(
        (VERTICES, [face[::-1] for face in FACES])
    ),
    "Mesh of 4 vertices, 4 faces: vertices must be finite and of shape (n, 3), got shape (4, 2)": lambda: Mesh(
        (np.zeros((4, 2)), FACES)
    ),
    "Mesh of 4 vertices, 4 faces: faces must be integers of shape (m, 3), got float64 of shape (4, 3)": lambda: Mesh(
        (VERTICES, np.zeros((4, 3)))
    ),
    "Mesh of 4 vertices, 1 faces: faces must index the vertices 0 to 3, got 0 to 9": lambda: Mesh((VERTICES, [[0, 1, 9]])),
    "door: inertia must be 3 diagonal or 3×3 values in kg·m², got shape (2,)": lambda: check_inertia([1, 1], "door"),
    "door: inertia must be 3 or 3×3 numbers in kg·m², got 'big'": lambda: check_inertia("big", "door"),
    "door: inertia must be finite, got [1.0, nan, 1.0]": lambda: check_inertia([1, math.nan, 1], "door"),
    "door: inertia must be symmetric, got [[1.0, 0.1, 0.0], [0.2, 1.0, 0.0], [0.0, 0.0, 1.0]], where entries across "
    "the diagonal differ by 0.1 kg·m²": lambda: check_inertia([[1, 0.1, 0], [0.2, 1, 0], [0, 0, 1]], "door"),
    "door: inertia must be positive definite, got principal moments (-1, 2, 2) kg·m²": lambda: check_inertia([2, -1, 2], "door"),
    "door: inertia must obey the triangle inequality (no principal moment above the sum of the other two), got "
    "principal moments (1, 2, 4) kg·m², where 4 > 1 + 2": lambda: check_inertia([1, 4, 2], "door"),
}


@pytest.mark.parametrize("message", REFUSED)
def test_a_mistake_is_named(message: str) -> None:
    with pytest.raises(SceneError, match=re.escape(message)) as caught:
        REFUSED[message]()
    print(caught.value)


def test_a_rotation_far_from_unit_length_is_refused() -> None:
    with pytest.raises(SceneError, match=r"^Box: .*0\.9") as caught:
        Box(1, 1, 1, rotation=(0, 0, 0, 0.9))
    print(caught.value)


def test_a_mesh_without_trimesh_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    real_import = builtins.__import__

    def no_trimesh(module: str, *args, **kwargs):
        if module.startswith("trimesh"):
            raise ImportError(module)
        return real_import(module, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", no_trimesh)
    with pytest.raises(SceneError, match=re.escape("pip install sharnir[io]")) as caught:
        Mesh((VERTICES, FACES))
    print(caught.value)


def test_check_inertia_accepts_real_bodies() -> None:
    for given in ([1.0, 1.0, 2.0], Cone(0.5, 1.0, rotation=TURN).mass_properties().inertia, [1e-9, 1e-9, 1e-9]):
        tensor = check_inertia(given, "body")
        print(f"principal moments {np.linalg.eigvalsh(tensor)}")
        assert tensor.shape == (3, 3) and (tensor == tensor.T).all()
    close("diagonal", check_inertia([1.0, 1.0, 2.0], "plate"), np.diag([1.0, 1.0, 2.0]), 0.0)
