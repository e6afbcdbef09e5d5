"""Surfaces of a model file: boxes, cylinders, spheres and mesh files, found and measured."""

from __future__ import annotations

import importlib.util
import io
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np

from sharnir.errors import SceneError
from sharnir.io.xml import Element, FilePath, log, make_parser, parse, read_bytes
from sharnir.shapes import Array, Box, Capsule, Compound, Cylinder, MassProperties, PointMass, Shape, Sphere, Triangles

MESH_FORMATS = ("stl", "obj", "ply", "off", "dae")


class Meshes:
    """Where meshes may be: inside the roots and nowhere else, symbolic links followed."""

    def __init__(self, file: Path, roots: Sequence[FilePath]) -> None:
        if isinstance(roots, str | PathLike):
            raise SceneError(f"load_urdf: roots is a list of folders, got {str(roots)!r}")
        self.folder = file.parent
        self.roots = [Path(os.path.realpath(root)) for root in (roots or [file.parent])]
        self.given = [*self.roots, *(Path(os.path.abspath(root)) for root in (roots or [file.parent]))]
        for given, root in zip(roots, self.roots, strict=False):
            if not root.is_dir():
                raise SceneError(f"load_urdf: roots are folders, got {str(given)!r}")

    def find(self, mesh: Element) -> Path | None:
        """The file of a `<mesh>`, or None with a note where it is missing."""
        name = mesh.text("filename")
        scheme, _, rest = name.rpartition("://")
        if scheme in ("package", "model"):
            rest = unquote(rest)
            tries = [root / r for root in self.roots for r in (rest, rest.partition("/")[2]) if r and not r.startswith("/")]
        elif scheme in ("", "file"):
            tries = [self.folder / (unquote(rest) if scheme else name)]
            if self._foreign(Path(unquote(rest) if scheme else name)):
                mesh.leave_out("a place outside the roots, perhaps on another machine", "filename")
                return None
        else:
            mesh.refuse("a path, package://… or file://…; nothing is read over a network", "filename")
        inside = [t for t in tries if self._inside(t)]
        if not inside or any(os.path.lexists(t) for t in tries if t not in inside):
            roots = ", ".join(repr(str(root)) for root in self.roots)
            mesh.refuse(f"a file inside the roots {roots}; see roots= and meshes=False of load_urdf", "filename")
        found = next((t for t in inside if t.is_file()), None)
        if found is None:
            mesh.leave_out("no such file", "filename")
            return None
        wanting = _missing_reader(found)
        if wanting:
            mesh.leave_out(wanting, "filename")
            return None
        return Path(os.path.realpath(found))

    def _foreign(self, path: Path) -> bool:
        """Whether a path is absolute and does not even pretend to be inside a root; it is not looked at then."""
        return path.is_absolute() and ".." not in path.parts and not any(path.is_relative_to(root) for root in self.given)

    def _inside(self, path: Path) -> bool:
        real = Path(os.path.realpath(path))
        return any(real.is_relative_to(root) for root in self.roots)


def _missing_reader(file: Path) -> str:
    """What is missing to read a mesh file, in words; empty if nothing is."""
    kind = file.suffix[1:].lower()
    if kind not in MESH_FORMATS:
        return f"a mesh is one of {', '.join(MESH_FORMATS)}"
    for module in ("trimesh", "collada") if kind == "dae" else ("trimesh",):
        if importlib.util.find_spec(module) is None:
            return f"it needs {'pycollada' if module == 'collada' else module}, which is not installed"
    return ""


class Drawn(Shape):
    """What is looked at alone: it has no volume and no mass."""

    @property
    def volume(self) -> float:
        return 0.0

    def _per_kilogram(self) -> tuple[Array, Array]:
        return np.zeros(3), np.zeros((3, 3))


@dataclass(frozen=True, eq=False)
class Surface(Drawn):
    """The triangles of a file, for drawing: read when first drawn, open surfaces too. No volume and no mass."""

    file: Path
    scale: tuple[float, float, float] = (1.0, 1.0, 1.0)
    notes: list[str] = field(repr=False, default_factory=list)
    """Of the scene: a file that cannot be drawn is told of there, too."""
    _read: list[Triangles] = field(init=False, repr=False, default_factory=list)

    def _own_mesh(self) -> Triangles:
        if not self._read:
            self._read.append(self._triangles())
        return self._read[0]

    def _triangles(self) -> Triangles:
        import trimesh

        try:
            data = read_bytes(self.file)
            kind = self.file.suffix[1:].lower()
            if kind == "dae":
                parse(make_parser(self.file.name), self.file.name, data)
            # From memory and without a resolver: a mesh cannot draw other files in.
            surface: Any = trimesh.load_mesh(io.BytesIO(data), file_type=kind, resolver=None)
            vertices = np.array(surface.vertices, dtype=np.float64) * self.scale
            faces = np.array(surface.faces, dtype=np.int64)
            if not len(faces) or not np.isfinite(vertices).all():
                raise ValueError("no triangles, or not finite ones")
        except Exception as error:  # every file format fails in its own way
            self.notes.append(f"{self.file.name}: cannot be drawn: {error}")
            log.warning("%s", self.notes[-1])
            return PointMass(mass=1.0).mesh()
        return vertices, faces[:, ::-1] if np.prod(self.scale) < 0 else faces


@dataclass(frozen=True, eq=False)
class Skin(Drawn):
    """Triangles for drawing, open surfaces too: vertices (n, 3) in m and faces (m, 3). No volume and no mass."""

    vertices: Any
    faces: Any

    def __post_init__(self) -> None:
        super().__post_init__()
        vertices, faces = np.array(self.vertices, np.float64), np.array(self.faces, np.int64)
        inside = faces.size == 0 or (faces.min() >= 0 and faces.max() < len(vertices))
        if vertices.ndim != 2 or vertices.shape[1] != 3 or faces.ndim != 2 or faces.shape[1] != 3 or not inside:
            raise SceneError(f"Skin: vertices are (n, 3) and faces (m, 3) of them, got {vertices.shape} and {faces.shape}")
        object.__setattr__(self, "vertices", vertices)
        object.__setattr__(self, "faces", faces)

    def _own_mesh(self) -> Triangles:
        return self.vertices, self.faces


class Drawing(Compound):
    """Shapes that are drawn and weigh nothing; the body's mass is given apart from them."""

    @property
    def volume(self) -> float:
        return 0.0

    def _own_properties(self, mass: float | None, density: float | None) -> MassProperties:
        return MassProperties(mass or 0.0, np.zeros(3), np.zeros((3, 3)))


Maker = Callable[..., Shape]


def _sizes(geometry: Element, sizes: Sequence[float], *names: str) -> Sequence[float] | None:
    """Positive lengths; None, with a note, where one is 0: there is nothing to draw."""
    if min(sizes) < 0:
        geometry.refuse("a size of at least 0", *names)
    if min(sizes) > 0:
        return sizes
    geometry.leave_out("a size is 0", *names)
    return None


def _box(geometry: Element, meshes: Meshes | None) -> Maker | None:
    sizes = _sizes(geometry, geometry.numbers("size", 3).tolist(), "size")
    return None if sizes is None else lambda **place: Box(*sizes, **place)


def _round(kind: type[Shape], *names: str) -> Callable[[Element, Meshes | None], Maker | None]:
    def make(geometry: Element, meshes: Meshes | None) -> Maker | None:
        sizes = _sizes(geometry, [geometry.number(name) for name in names], *names)
        return None if sizes is None else lambda **place: kind(*sizes, **place)

    return make


def _mesh(geometry: Element, meshes: Meshes | None) -> Maker | None:
    if meshes is None:
        return None
    scale = geometry.numbers("scale", 3, (1.0, 1.0, 1.0))
    if not scale.all():
        geometry.leave_out("a scale is 0", "scale")
        return None
    file = meshes.find(geometry)
    return None if file is None else (lambda **place: Surface(file, tuple(scale.tolist()), geometry.notes, **place))


GEOMETRIES: dict[str, Callable[[Element, Meshes | None], Maker | None]] = {
    "box": _box,
    "sphere": _round(Sphere, "radius"),
    "cylinder": _round(Cylinder, "radius", "length"),
    "capsule": _round(Capsule, "radius", "length"),
    "mesh": _mesh,
}


def read_geometry(owner: Element, meshes: Meshes | None) -> Maker | None:
    """What makes the shape of a `<visual>` or `<collision>`; None where there is nothing to draw."""
    geometry = owner.need("geometry")
    known = [child for child in geometry.children if child.tag in GEOMETRIES]
    if len(known) != 1:
        got = ", ".join(f"<{child.tag}>" for child in geometry.children) or "nothing"
        geometry.refuse(f"one of {', '.join(f'<{g}>' for g in GEOMETRIES)}, got {got}")
    return GEOMETRIES[known[0].tag](known[0], meshes)
