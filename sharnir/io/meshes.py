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

from sharnir.core.spatial import quat_to_matrix
from sharnir.errors import SceneError
from sharnir.geometry.shapes import Array, Box, Capsule, Compound, Cylinder, MassProperties, PointMass, Shape, Sphere, Triangles
from sharnir.io.folders import Folders
from sharnir.io.xml import Element, FilePath, log, make_parser, parse, read_bytes
from sharnir.model.descriptions import PLAIN_FINISH

MESH_FORMATS = ("stl", "obj", "ply", "off", "dae", "glb", "gltf")
PAINTED = ("vertex", "face", "texture")


class Meshes:
    """Where meshes may be: inside the roots and nowhere else, symbolic links followed."""

    def __init__(self, file: Path, roots: Sequence[FilePath]) -> None:
        self._folders = Folders("load_urdf", file.parent, roots)
        self.folder, self.roots = file.parent, self._folders.roots
        self.given = [*self.roots, *(Path(os.path.abspath(root)) for root in (roots or [file.parent]))]

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
        inside = [t for t in tries if self._folders.contain(t)]
        if not inside or any(os.path.lexists(t) for t in tries if t not in inside):
            mesh.refuse(f"{self._folders}; meshes=False reads none", "filename")
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


class Beside:
    """Finds what a mesh file refers to (materials, textures, buffers): in its own folder and below, and nowhere else."""

    def __init__(self, folder: Path) -> None:
        self._folder = Path(os.path.realpath(folder))

    def get(self, name: str) -> bytes:
        """The bytes of a file."""
        found = Path(os.path.realpath(self._folder / unquote(str(name)).strip()))
        if not found.is_relative_to(self._folder):
            raise ValueError(f"{name!r} is outside the folder of the file that refers to it")
        return read_bytes(found)

    def __getitem__(self, name: str) -> bytes:
        return self.get(name)

    def namespaced(self, _name: str) -> Beside:
        """Names inside a name are not distinguished."""
        return self

    def keys(self) -> list[str]:
        """What there is, is not told."""
        return []


@dataclass(frozen=True, eq=False)
class Surface(Drawn):
    """The surface of a file, for drawing: read when first drawn, open surfaces too. No volume and no mass.

    Args:
        file: .glb, .gltf, .obj, .stl, .ply, .off or .dae, in its own axes (those of glTF have y up). What it refers to stands in
            the same folder or below. scale: m per unit of the file, one number or three.
    """

    file: Path
    scale: tuple[float, float, float] = (1.0, 1.0, 1.0)
    notes: list[str] = field(repr=False, default_factory=list)
    """Of the scene: a file that cannot be drawn is told of there, too."""
    _read: list[Any] = field(init=False, repr=False, default_factory=list)

    def __post_init__(self) -> None:
        super().__post_init__()
        given = (self.scale,) * 3 if isinstance(self.scale, int | float) else self.scale
        try:
            scale = tuple(float(x) for x in given)
        except (TypeError, ValueError):
            scale = ()
        if len(scale) != 3 or not np.isfinite(scale).all() or not all(scale):
            raise SceneError(f"Surface {str(self.file)!r}: scale is a finite number other than 0, or three, got {self.scale!r}")
        object.__setattr__(self, "scale", scale)
        object.__setattr__(self, "file", Path(self.file))

    def _own_mesh(self) -> Triangles:
        loaded = self.loaded()
        return np.asarray(loaded.vertices), np.asarray(loaded.faces)

    def loaded(self) -> Any:
        """The surface, scaled, with its colours and textures (a `trimesh.Trimesh`); a small ball where it cannot be read."""
        if not self._read:
            try:
                self._read.append(self.load())
            except SceneError as error:
                self.notes.append(f"{self.file.name}: cannot be drawn: {error}")
                log.warning("%s", self.notes[-1])
                self._read.append(_as_surface(*PointMass(mass=1.0).mesh()))
        return self._read[0]

    def load(self) -> Any:
        """Read the file; a SceneError says why it cannot be."""
        import trimesh

        wanting = _missing_reader(self.file)
        if wanting:
            raise SceneError(wanting)
        data, kind = read_bytes(self.file), self.file.suffix[1:].lower()
        if kind == "dae":
            parse(make_parser(self.file.name), self.file.name, data)
        try:
            # From memory, with a resolver that stays in the folder: a mesh cannot draw in other files of the machine.
            found: Any = trimesh.load(io.BytesIO(data), file_type=kind, resolver=Beside(self.file.parent), process=False)
            surface: Any = found.to_mesh() if isinstance(found, trimesh.Scene) else found
            if not len(getattr(surface, "faces", ())) or not np.isfinite(surface.vertices).all():
                raise ValueError("no triangles, or not finite ones")
            surface.vertices = np.array(surface.vertices, np.float64) * self.scale
            if np.prod(self.scale) < 0:
                surface.invert()
        except Exception as error:  # every file format fails in its own way
            raise SceneError(str(error) or type(error).__name__) from error
        return surface

    @property
    def painted(self) -> bool:
        """Whether the file has colours or textures."""
        look = self.loaded().visual
        return bool(look.defined and look.kind in PAINTED)


def _as_surface(vertices: Any, faces: Any) -> Any:
    import trimesh

    return trimesh.Trimesh(vertices, faces, process=False)


def is_painted(shape: Any) -> bool:
    """Whether a shape, or a part of it, has colours of its own."""
    parts = shape.shapes if isinstance(shape, Compound) else ()
    return (isinstance(shape, Surface) and shape.painted) or any(map(is_painted, parts))


def paint(shape: Shape, plain: Sequence[int]) -> Any:
    """A shape with its colours and textures, in the body's frame (a `trimesh.Trimesh`); what has none is plain, 0 to 255."""
    import trimesh

    if isinstance(shape, Compound):
        made: Any = trimesh.util.concatenate([paint(part, plain) for part in shape.shapes])
    elif isinstance(shape, Surface) and shape.painted:
        made = shape.loaded().copy()
    else:
        made = _as_surface(*shape._own_mesh())
        made.visual.face_colors = [*plain, 255]
    place = np.eye(4)
    place[:3, :3], place[:3, 3] = quat_to_matrix(np.asarray(shape.rotation, float)), shape.position
    made.apply_transform(place)
    return made


def tints(surface: Any) -> np.ndarray:
    """(vertices, 3) colours of a painted surface, 0 to 1."""
    look, count = surface.visual, len(surface.vertices)
    try:
        colours = np.asarray((look.to_color() if look.kind == "texture" else look).vertex_colors, float)
    except (TypeError, ValueError):  # a texture that is not there
        colours = np.zeros((0, 4))
    if len(colours) != count:
        colours = np.tile(np.asarray(getattr(look.material, "main_color", (150, 155, 160)), float), (count, 1))
        if getattr(look.material, "baseColorFactor", None) is not None:  # which is linear
            return srgb(colours[:, :3] / 255) / 255
    return colours[:, :3] / 255


def finishes(surface: Any) -> np.ndarray:
    """(vertices, 2) roughness and metalness of a painted surface, 0 to 1; glTF takes what a material leaves out as 1."""
    look, count = surface.visual, len(surface.vertices)
    material: Any = getattr(look, "material", None)
    if not hasattr(material, "roughnessFactor"):
        return np.tile(PLAIN_FINISH, (count, 1))
    factors = [1.0 if factor is None else float(factor) for factor in (material.roughnessFactor, material.metallicFactor)]
    out = np.tile(factors, (count, 1))
    if material.metallicRoughnessTexture is not None and look.uv is not None and len(look.uv) == count:
        import trimesh

        out *= trimesh.visual.color.uv_to_color(look.uv, material.metallicRoughnessTexture)[:, 1:3] / 255
    return out


def srgb(share: np.ndarray) -> np.ndarray:
    """sRGB, 0 to 255, of linear shares."""
    curve = np.where(share <= 0.0031308, 12.92 * share, 1.055 * np.maximum(share, 1e-9) ** (1 / 2.4) - 0.055)
    return np.asarray(np.rint(255 * curve), np.uint8)


def linear(colour: np.ndarray) -> np.ndarray:
    """Linear shares of sRGB shares, 0 to 1; the fourth column, opacity, stays."""
    colour = np.asarray(colour, float)
    out = np.where(colour <= 0.04045, colour / 12.92, ((colour + 0.055) / 1.055) ** 2.4)
    out[..., 3:] = colour[..., 3:]
    return np.asarray(out)


def as_glb(surface: Any, finish: Sequence[float] | None = None) -> bytes:
    """A surface (`trimesh.Trimesh`) as a file for a page; its roughness and metalness instead of the material's own."""

    def put(tree: dict[str, Any]) -> None:
        own = "materials" in tree  # of vertices with colours there is none, and pages take metal for granted
        for material in tree.setdefault("materials", [{"doubleSided": True}]):
            given = material.setdefault("pbrMetallicRoughness", {})
            if finish is not None or not own:
                given.pop("metallicRoughnessTexture", None)
                given["roughnessFactor"], given["metallicFactor"] = PLAIN_FINISH if finish is None else finish
        for mesh in tree["meshes"]:
            for primitive in mesh["primitives"]:
                primitive.setdefault("material", 0)

    return bytes(surface.export(file_type="glb", include_normals=True, tree_postprocessor=put))


def coloured(vertices: Any, faces: Any, colour: Sequence[int]) -> Any:
    """Triangles with a material of one colour, 0 to 255 (a `trimesh.Trimesh`)."""
    import trimesh

    material = trimesh.visual.material.PBRMaterial(
        baseColorFactor=[*linear(np.array(colour[:3]) / 255), 1.0], roughnessFactor=PLAIN_FINISH[0],
        metallicFactor=PLAIN_FINISH[1], doubleSided=True,
    )  # fmt: skip
    return trimesh.Trimesh(vertices, faces, visual=trimesh.visual.TextureVisuals(material=material), process=False)


def as_visual(given: Any, who: str) -> Shape | None:
    """What a body looks like, from a file's name, a shape or several; a SceneError names the body and the file."""
    if given is None or isinstance(given, Compound):
        return given
    if isinstance(given, str | PathLike):
        given = Surface(Path(given))
    several = list(given) if isinstance(given, list | tuple) else [given]
    if not several or not all(isinstance(shape, Shape) for shape in several):
        raise SceneError(f"{who}: visual is a file, a Surface, a shape or a list of shapes, got {given!r}")
    for shape in several:
        if isinstance(shape, Surface):
            if not shape.file.is_file():
                raise SceneError(f"{who}: visual {str(shape.file)!r}: no such file")
            if importlib.util.find_spec("trimesh") is not None:
                try:
                    shape._read[:] = [shape.load()]
                except SceneError as error:
                    raise SceneError(f"{who}: visual {str(shape.file)!r} cannot be drawn: {error}") from error
    return several[0] if len(several) == 1 else Drawing(*several)


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
