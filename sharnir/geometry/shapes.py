"""Shapes: what a body looks like, and the mass, centre of mass and inertia that follow from it.

A shape has a placement (``position`` in m, ``rotation`` a quaternion x, y, z, w) inside the body's frame, and
answers for three things in that frame: ``volume``, ``mass_properties()`` and ``mesh()`` for drawing.
A new shape gives its volume, its centre and inertia per kilogram in its own axes, and its mesh; the rest is shared.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sharnir.core.journal import KeepsArguments
from sharnir.core.spatial import quat_to_matrix, unit_quat
from sharnir.errors import SceneError

Array = NDArray[np.float64]
Triangles = tuple[Array, NDArray[np.int64]]

DEFAULT_DENSITY = 1000.0
"""Density of a shape that says nothing about its mass, kg/m³ (water)."""

POINT_RADIUS = 0.03
"""Radius at which a point mass is drawn, m."""

SYMMETRY_SLACK = 1e-6
"""Asymmetry of an inertia tensor taken for rounding (single precision input), relative to its largest entry."""

TRIANGLE_SLACK = 1e-9
"""Excess over the triangle inequality taken for rounding, relative to the largest moment (a plate is at the limit)."""


# ------------------------------------------------------------------------------------------------ mass properties


@dataclass(frozen=True, eq=False)
class MassProperties:
    """Mass (kg), centre of mass (m, shape (3,)) and inertia about it (kg·m², shape (3, 3)), all in one frame's axes."""

    mass: float
    com: Array
    inertia: Array

    def moved(self, position: ArrayLike, rotation: ArrayLike) -> MassProperties:
        """The same body seen from another frame, in which the present frame stands at ``position``, ``rotation``."""
        R = quat_to_matrix(unit_quat(np.asarray(rotation, dtype=np.float64), "MassProperties.moved"))
        return MassProperties(
            self.mass, R @ self.com + _vector("MassProperties.moved", "position", position), R @ self.inertia @ R.T
        )


def combine(parts: Iterable[MassProperties]) -> MassProperties:
    """One rigid body made of ``parts``, all given in one frame (parallel-axis theorem)."""
    parts = list(parts)
    if not parts:
        raise SceneError("combine: needs at least one part, got none")
    mass = sum(part.mass for part in parts)
    if not mass > 0.0:
        raise SceneError(f"combine: the parts must have a positive total mass in kg, got {mass!r}")
    com = sum((part.mass * part.com for part in parts), np.zeros(3)) / mass
    inertia = np.zeros((3, 3))
    for part in parts:
        d = part.com - com
        inertia += part.inertia + part.mass * ((d @ d) * np.eye(3) - np.outer(d, d))
    return MassProperties(mass, com, inertia)


def check_inertia(inertia: ArrayLike, who: str) -> Array:
    """A user's inertia, diagonal (3,) or full (3, 3), as a full tensor that a real body can have; kg·m².

    Principal moments of any distribution of mass are positive and obey I₁ + I₂ ≥ I₃.
    """
    try:
        given = np.array(inertia, dtype=np.float64)
    except (TypeError, ValueError):
        raise SceneError(f"{who}: inertia must be 3 or 3×3 numbers in kg·m², got {inertia!r}") from None
    if given.shape not in ((3,), (3, 3)):
        raise SceneError(f"{who}: inertia must be 3 diagonal or 3×3 values in kg·m², got shape {given.shape}")
    tensor: Array = np.diag(given) if given.ndim == 1 else given
    if not np.isfinite(tensor).all():
        raise SceneError(f"{who}: inertia must be finite, got {given.tolist()}")
    asymmetry, largest = float(np.abs(tensor - tensor.T).max()), float(np.abs(tensor).max())
    if asymmetry > SYMMETRY_SLACK * largest:
        raise SceneError(
            f"{who}: inertia must be symmetric, got {given.tolist()}, where entries across the diagonal differ by "
            f"{asymmetry:.3g} kg·m²"
        )
    tensor = 0.5 * (tensor + tensor.T)
    low, middle, high = (float(moment) for moment in np.linalg.eigvalsh(tensor))
    moments = f"({low:.6g}, {middle:.6g}, {high:.6g}) kg·m²"
    if not low > 0.0:
        raise SceneError(f"{who}: inertia must be positive definite, got principal moments {moments}")
    if high - (low + middle) > TRIANGLE_SLACK * high:
        raise SceneError(
            f"{who}: inertia must obey the triangle inequality (no principal moment above the sum of the other two), "
            f"got principal moments {moments}, where {high:.6g} > {low:.6g} + {middle:.6g}"
        )
    return tensor


# ------------------------------------------------------------------------------------------------ what shapes share


@dataclass(frozen=True, kw_only=True)
class Shape(KeepsArguments, ABC):
    """A piece of matter placed in a body's frame.

    ``position`` (m) and ``rotation`` (quaternion x, y, z, w) place the shape's own axes in the body's frame.
    ``density`` (kg/m³) or ``mass`` (kg), at most one of them, is the shape's own; without either the density
    is 1000 kg/m³.
    """

    position: Sequence[float] = (0.0, 0.0, 0.0)
    rotation: Sequence[float] = (0.0, 0.0, 0.0, 1.0)
    density: float | None = None
    mass: float | None = None

    def __post_init__(self) -> None:
        who = type(self).__name__
        rotation = unit_quat(_numbers(who, "rotation", self.rotation, 4, "quaternion (x, y, z, w)"), who)
        object.__setattr__(self, "position", tuple(_vector(who, "position", self.position).tolist()))
        object.__setattr__(self, "rotation", tuple(np.asarray(rotation).tolist()))
        density, mass = _mass_or_density(who, self.mass, self.density)
        object.__setattr__(self, "density", density)
        object.__setattr__(self, "mass", mass)

    @property
    @abstractmethod
    def volume(self) -> float:
        """Volume, m³."""

    def mass_properties(self, *, mass: float | None = None, density: float | None = None) -> MassProperties:
        """Mass, centre of mass and inertia in the body's frame.

        An argument (``mass`` in kg or ``density`` in kg/m³) outranks the shape's own value, which outranks the
        default density of 1000 kg/m³.
        """
        density, mass = _mass_or_density(type(self).__name__, mass, density)
        if density is None and mass is None:
            density, mass = self.density, self.mass
        return self._own_properties(mass, density).moved(self.position, self.rotation)

    def mesh(self) -> Triangles:
        """Triangles for drawing, in the body's frame: vertices (n, 3) in m, faces (m, 3) of vertex indices."""
        vertices, faces = self._own_mesh()
        R = quat_to_matrix(np.asarray(self.rotation, dtype=np.float64))
        return vertices @ R.T + np.asarray(self.position), faces

    def _own_properties(self, mass: float | None, density: float | None) -> MassProperties:
        """Mass properties in the shape's own axes, before placement."""
        if mass is None:
            mass = self.volume * (DEFAULT_DENSITY if density is None else density)
        com, inertia = self._per_kilogram()
        return MassProperties(mass, com, mass * inertia)

    @abstractmethod
    def _per_kilogram(self) -> tuple[Array, Array]:
        """Centre of mass (m) and inertia about it per unit mass (m²), in the shape's own axes."""

    @abstractmethod
    def _own_mesh(self) -> Triangles:
        """Triangles in the shape's own axes, before placement."""

    def _check_lengths(self, *names: str) -> None:
        for name in names:
            value = _positive(type(self).__name__, name, getattr(self, name), "length in m")
            object.__setattr__(self, name, value)


# ------------------------------------------------------------------------------------------------ the shapes


@dataclass(frozen=True)
class Box(Shape):
    """A box of full sizes ``x``, ``y``, ``z`` (m), centred."""

    x: float
    y: float
    z: float

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_lengths("x", "y", "z")

    @property
    def volume(self) -> float:
        return self.x * self.y * self.z

    def _per_kilogram(self) -> tuple[Array, Array]:
        return _centred_moments(self.x**2 / 12, self.y**2 / 12, self.z**2 / 12)

    def _own_mesh(self) -> Triangles:
        return _drawn(_trimesh().creation.box(extents=(self.x, self.y, self.z)))


@dataclass(frozen=True)
class Sphere(Shape):
    """A ball of ``radius`` (m), centred."""

    radius: float

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_lengths("radius")

    @property
    def volume(self) -> float:
        return 4 / 3 * math.pi * self.radius**3

    def _per_kilogram(self) -> tuple[Array, Array]:
        xx = self.radius**2 / 5
        return _centred_moments(xx, xx, xx)

    def _own_mesh(self) -> Triangles:
        return _drawn(_trimesh().creation.icosphere(subdivisions=3, radius=self.radius))


@dataclass(frozen=True)
class Capsule(Shape):
    """A cylinder of ``radius`` and ``length`` (m) along local z, closed by half balls that ``length`` leaves out."""

    radius: float
    length: float

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_lengths("radius", "length")

    @property
    def volume(self) -> float:
        return math.pi * self.radius**2 * (self.length + 4 / 3 * self.radius)

    def _per_kilogram(self) -> tuple[Array, Array]:
        r, L = self.radius, self.length
        ball = 4 / 3 * r / (L + 4 / 3 * r)  # share of the mass in the two half balls
        tube = 1 - ball
        xx = tube * r**2 / 4 + ball * r**2 / 5
        # A half ball has ⟨s⟩ = 3r/8 and ⟨s²⟩ = r²/5 from its flat face, which stands at L/2 from the centre.
        zz = tube * L**2 / 12 + ball * (r**2 / 5 + L**2 / 4 + 3 / 8 * L * r)
        return _centred_moments(xx, xx, zz)

    def _own_mesh(self) -> Triangles:
        return _drawn(_trimesh().creation.capsule(height=self.length, radius=self.radius, count=[24, 24]))


@dataclass(frozen=True)
class Cylinder(Shape):
    """A solid cylinder of ``radius`` and ``length`` (m) along local z, centred.

    ``rounding`` (m) is the radius of its edges as others feel them, as of a wheel; mass and picture do not have it.
    """

    radius: float
    length: float
    rounding: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_lengths("radius", "length")
        most = min(self.radius, 0.5 * self.length)
        if not isinstance(self.rounding, float | int | np.number) or not 0.0 <= self.rounding <= most:
            raise SceneError(f"Cylinder: rounding must be from 0 to {most:g} m (radius, half length), got {self.rounding!r}")

    @property
    def volume(self) -> float:
        return math.pi * self.radius**2 * self.length

    def _per_kilogram(self) -> tuple[Array, Array]:
        xx = self.radius**2 / 4
        return _centred_moments(xx, xx, self.length**2 / 12)

    def _own_mesh(self) -> Triangles:
        return _drawn(_trimesh().creation.cylinder(radius=self.radius, height=self.length, sections=32))


@dataclass(frozen=True)
class Cone(Shape):
    """A solid cone along local z: base of ``radius`` at z = -height/2, apex at z = +height/2 (m).

    Its centre of mass stands at z = -height/4.
    """

    radius: float
    height: float

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_lengths("radius", "height")

    @property
    def volume(self) -> float:
        return math.pi * self.radius**2 * self.height / 3

    def _per_kilogram(self) -> tuple[Array, Array]:
        xx = 3 / 20 * self.radius**2
        _, inertia = _centred_moments(xx, xx, 3 / 80 * self.height**2)
        return np.array([0.0, 0.0, -self.height / 4]), inertia

    def _own_mesh(self) -> Triangles:
        return _drawn(_trimesh().creation.cone(radius=self.radius, height=self.height, sections=32))


@dataclass(frozen=True)
class Ellipsoid(Shape):
    """A solid ellipsoid, centred; ``x``, ``y``, ``z`` are its SEMI-axes (m): half its extent, as a ball's radius is."""

    x: float
    y: float
    z: float

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_lengths("x", "y", "z")

    @property
    def volume(self) -> float:
        return 4 / 3 * math.pi * self.x * self.y * self.z

    def _per_kilogram(self) -> tuple[Array, Array]:
        return _centred_moments(self.x**2 / 5, self.y**2 / 5, self.z**2 / 5)

    def _own_mesh(self) -> Triangles:
        vertices, faces = _drawn(_trimesh().creation.icosphere(subdivisions=3, radius=1.0))
        return vertices * np.array([self.x, self.y, self.z]), faces


@dataclass(frozen=True, eq=False)
class Mesh(Shape):
    """A closed surface filled with matter: a file's path, or (vertices (n, 3), faces (m, 3)), ``scale`` times as large.

    Refused unless it is watertight, wound one way and encloses a positive volume. Needs ``pip install sharnir[io]``.

    On a body that moves, contact takes its convex hull, or, with ``decompose=True``, its `convex_parts`; unless ``decompose``
    says which of them is meant, a mesh that is not convex warns.
    """

    source: str | PathLike[str] | tuple[ArrayLike, ArrayLike] = field(repr=False)
    scale: float = 1.0
    decompose: bool | None = None
    name: str = field(init=False)
    _surface: Any = field(init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "scale", _positive("Mesh", "scale", self.scale, "factor"))
        if self.decompose not in (None, True, False):
            raise SceneError(f"Mesh: decompose is True (convex parts), False (the hull) or None, got {self.decompose!r}")
        name, surface = _load_surface(self.source)
        surface.apply_scale(self.scale)
        if not surface.is_watertight:
            raise SceneError(f"{name}: must be watertight (two triangles at each edge), got a surface with holes")
        if not surface.is_winding_consistent:
            raise SceneError(f"{name}: triangles must all be wound one way, got neighbours wound against each other")
        if not surface.volume > 0.0:
            raise SceneError(f"{name}: must enclose a positive volume, got {surface.volume:.6g} m³ (negative: wound inside out)")
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "_surface", surface)

    def convex_parts(self, threshold: float = 0.05, most: int = 32) -> list[Mesh]:
        """Convex pieces that fill about the same space, for ``collision=`` of a body that moves; ``decompose=True`` takes them.

        ``threshold`` is how far they may be off, as a part of its size; at most ``most`` of them. Needs
        ``pip install sharnir[io]``.
        """
        try:
            import coacd
        except ImportError:
            raise SceneError(f"{self.name}: convex_parts needs CoACD, not installed: pip install sharnir[io]") from None
        threshold = _positive("Mesh.convex_parts", "threshold", threshold, "part of its size")
        coacd.set_log_level("error")
        vertices, faces = self._own_mesh()
        found = coacd.run_coacd(coacd.Mesh(vertices, faces), threshold=threshold, max_convex_hull=int(most), seed=0)
        hulls = [_trimesh().convex.convex_hull(np.asarray(v, dtype=np.float64)) for v, _ in found]
        return [Mesh((h.vertices, h.faces), position=self.position, rotation=self.rotation) for h in hulls]

    @cached_property
    def parts(self) -> list[Mesh]:
        """Its `convex_parts`, found once."""
        return self.convex_parts()

    @cached_property
    def hollow(self) -> float:
        """By which part of its own volume its convex hull is larger; 0 of what is convex."""
        return float(_trimesh().convex.convex_hull(np.asarray(self._surface.vertices)).volume) / self.volume - 1.0

    @property
    def volume(self) -> float:
        return float(self._surface.volume)

    def _per_kilogram(self) -> tuple[Array, Array]:
        # Moments are taken about a point near the centre: a mesh drawn far from its origin would lose digits.
        near = self._surface.copy()
        middle = near.bounds.mean(axis=0)
        near.apply_translation(-middle)
        return middle + near.center_mass, np.asarray(near.moment_inertia, dtype=np.float64) / near.volume

    def _own_mesh(self) -> Triangles:
        return np.array(self._surface.vertices, dtype=np.float64), np.array(self._surface.faces, dtype=np.int64)


@dataclass(frozen=True)
class PointMass(Shape):
    """Mass at a point: no volume and no inertia, so it needs a ``mass`` (kg). Drawn as a small ball."""

    @property
    def volume(self) -> float:
        return 0.0

    def _own_properties(self, mass: float | None, density: float | None) -> MassProperties:
        if mass is None:
            given = "none" if density is None else f"density={density!r}"
            raise SceneError(f"PointMass: has no volume and needs a mass in kg, got {given}")
        return super()._own_properties(mass, None)

    def _per_kilogram(self) -> tuple[Array, Array]:
        return np.zeros(3), np.zeros((3, 3))

    def _own_mesh(self) -> Triangles:
        return _drawn(_trimesh().creation.icosphere(subdivisions=2, radius=POINT_RADIUS))


@dataclass(frozen=True, init=False)
class Compound(Shape):
    """Several shapes fixed to each other, placed in the compound's frame; where they overlap matter counts twice.

    Without ``mass`` and ``density`` each part uses its own. A ``density`` replaces that of every part (a part without
    volume keeps its mass). A total ``mass`` scales the parts' own masses if every part has one (or a density), and is
    shared by volume otherwise.
    """

    shapes: tuple[Shape, ...]

    def __init__(
        self,
        *shapes: Shape,
        position: Sequence[float] = (0.0, 0.0, 0.0),
        rotation: Sequence[float] = (0.0, 0.0, 0.0, 1.0),
        density: float | None = None,
        mass: float | None = None,
    ) -> None:
        if not shapes:
            raise SceneError("Compound: needs at least one shape, got none")
        for shape in shapes:
            if not isinstance(shape, Shape):
                raise SceneError(f"Compound: parts must be shapes, got {shape!r}")
        own = {"shapes": shapes, "position": position, "rotation": rotation, "density": density, "mass": mass}
        for name, value in own.items():
            object.__setattr__(self, name, value)
        super().__post_init__()

    @property
    def volume(self) -> float:
        return sum(shape.volume for shape in self.shapes)

    def _own_properties(self, mass: float | None, density: float | None) -> MassProperties:
        if mass is None:
            return combine(shape.mass_properties(density=density if shape.volume > 0.0 else None) for shape in self.shapes)
        if all(_knows_its_mass(shape) for shape in self.shapes):
            parts = [shape.mass_properties() for shape in self.shapes]
        else:
            for number, shape in enumerate(self.shapes):
                if shape.volume == 0.0:
                    raise SceneError(
                        f"Compound: mass={mass!r} cannot be shared by volume, part {number} ({type(shape).__name__}) "
                        "has none; give every part its own mass or density"
                    )
            parts = [shape.mass_properties(mass=shape.volume) for shape in self.shapes]
        scale = mass / sum(part.mass for part in parts)
        return combine(MassProperties(scale * part.mass, part.com, scale * part.inertia) for part in parts)

    def _per_kilogram(self) -> tuple[Array, Array]:
        whole = self._own_properties(1.0, None)
        return whole.com, whole.inertia

    def _own_mesh(self) -> Triangles:
        meshes = [shape.mesh() for shape in self.shapes]
        first = np.cumsum([0] + [len(vertices) for vertices, _ in meshes])
        faces = [faces + start for (_, faces), start in zip(meshes, first, strict=False)]
        return np.concatenate([vertices for vertices, _ in meshes]), np.concatenate(faces)


# ------------------------------------------------------------------------------------------------ helpers


def _knows_its_mass(shape: Shape) -> bool:
    if shape.mass is not None or shape.density is not None:
        return True
    return isinstance(shape, Compound) and all(_knows_its_mass(part) for part in shape.shapes)


def _centred_moments(xx: float, yy: float, zz: float) -> tuple[Array, Array]:
    """Centre and inertia per kilogram of a centred body whose mean squares are ⟨x²⟩, ⟨y²⟩, ⟨z²⟩ (m²)."""
    return np.zeros(3), np.diag([yy + zz, zz + xx, xx + yy])


def _numbers(who: str, name: str, value: ArrayLike, count: int, what: str) -> Array:
    try:
        array = np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        array = np.full(0, np.nan)
    if array.shape != (count,) or not np.isfinite(array).all():
        raise SceneError(f"{who}: {name} must be a {what} of {count} finite numbers, got {value!r}")
    return array


def _vector(who: str, name: str, value: ArrayLike) -> Array:
    return _numbers(who, name, value, 3, "vector in m")


def _positive(who: str, name: str, value: Any, what: str) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not (math.isfinite(number) and number > 0.0):
        raise SceneError(f"{who}: {name} must be a positive finite {what}, got {value!r}")
    return number


def _mass_or_density(who: str, mass: float | None, density: float | None) -> tuple[float | None, float | None]:
    """(density, mass), checked: each None or positive, not both."""
    if mass is not None and density is not None:
        raise SceneError(f"{who}: takes mass or density, not both, got mass={mass!r} and density={density!r}")
    if density is not None:
        density = _positive(who, "density", density, "density in kg/m³")
    if mass is not None:
        mass = _positive(who, "mass", mass, "mass in kg")
    return density, mass


def _trimesh() -> Any:
    """trimesh, an optional dependency, imported when a mesh is read or drawn."""
    try:
        import trimesh
        import trimesh.creation
    except ImportError:
        raise SceneError("a mesh needs trimesh, which is not installed: pip install sharnir[io]") from None
    return trimesh


def _drawn(surface: Any) -> Triangles:
    """Vertices and faces of a generated surface, its bounding box centred (generators differ on this)."""
    vertices = np.array(surface.vertices, dtype=np.float64)
    vertices -= 0.5 * (vertices.min(axis=0) + vertices.max(axis=0))
    return vertices, np.array(surface.faces, dtype=np.int64)


def _load_surface(source: str | PathLike[str] | tuple[ArrayLike, ArrayLike]) -> tuple[str, Any]:
    """A name for messages and the trimesh surface of a file or of (vertices, faces), coinciding vertices merged."""
    trimesh = _trimesh()
    if isinstance(source, (str, PathLike)):
        name = f"Mesh {str(source)!r}"
        if not Path(source).is_file():
            raise SceneError(f"{name}: no such file")
        try:
            return name, trimesh.load_mesh(str(source))
        except Exception as error:  # every file format fails in its own way
            raise SceneError(f"{name}: cannot be read: {error}") from error
    try:
        given_vertices, given_faces = source
        vertices, faces = np.array(given_vertices, dtype=np.float64), np.array(given_faces)
    except (TypeError, ValueError):
        raise SceneError(f"Mesh: must be a file's path or (vertices, faces), got {source!r}") from None
    if vertices.ndim == 0 or faces.ndim == 0:
        raise SceneError(f"Mesh: must be a file's path or (vertices, faces), got {source!r}")
    name = f"Mesh of {len(vertices)} vertices, {len(faces)} faces"
    if vertices.ndim != 2 or vertices.shape[1] != 3 or not np.isfinite(vertices).all():
        raise SceneError(f"{name}: vertices must be finite and of shape (n, 3), got shape {vertices.shape}")
    if faces.ndim != 2 or faces.shape[1] != 3 or not np.issubdtype(faces.dtype, np.integer):
        raise SceneError(f"{name}: faces must be integers of shape (m, 3), got {faces.dtype} of shape {faces.shape}")
    if faces.size and (faces.min() < 0 or faces.max() >= len(vertices)):
        raise SceneError(f"{name}: faces must index the vertices 0 to {len(vertices) - 1}, got {faces.min()} to {faces.max()}")
    return name, trimesh.Trimesh(vertices, faces)
