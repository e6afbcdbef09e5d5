"""What a renderer draws of a simulation: solids with colours on bodies, and tubes of ropes, cables, springs and rods."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from sharnir.collision.data import BOX, CAPSULE, CONE, CYLINDER, ELLIPSOID, MESH, PLANE, SPHERE
from sharnir.collision.primitives import parts_of
from sharnir.core.spatial import quat_multiply, quat_rotate
from sharnir.core.strided import of_first
from sharnir.geometry.shapes import Compound, Cylinder, PointMass, Shape
from sharnir.io.meshes import finishes, is_painted, paint, tints
from sharnir.model.descriptions import PLAIN_FINISH
from sharnir.runtime.measures import poses
from sharnir.view.picture import joined_smoothly, rope_segments
from sharnir.view.pieces import PALETTE, coil, creased, part_mesh

# The Simulation; importing its class would be a circle.
Owner = Any
STONE, SOIL, FLOOR_COLOUR = (150, 150, 155), (168, 158, 134), (196, 198, 200)
TRACED_ROPE, TRACED_ROD, TRACED_SPRING = (64, 60, 56), (110, 115, 125), (96, 120, 96)
DYNAMIC = 2  # `bodies.motion` of a body that forces move
SMOOTH_MOST = 100  # segments of a rope up to which it is drawn as a smooth curve
SOLID_KINDS = {
    "sphere": SPHERE, "box": BOX, "capsule": CAPSULE, "cylinder": CYLINDER, "ellipsoid": ELLIPSOID, "cone": CONE, "plane": PLANE,
}  # fmt: skip
PLAIN_GROUND, CHECKERED_GROUND = 0, 1
UNTURNED = np.array([0.0, 0.0, 0.0, 1.0])


@dataclass
class Surface:
    """Triangles of a solid that has no closed form, in its own axes."""

    vertices: np.ndarray
    faces: np.ndarray
    normals: np.ndarray  # [vertex] unit
    tints: np.ndarray | None = None  # [face] red, green, blue, opacity, 0 to 1 (sRGB); None: the solid's own colour
    finishes: np.ndarray | None = None  # [face] roughness, metalness, 0 to 1; None: the solid's own
    two_sided: bool = False  # whether it is seen from inside


@dataclass
class Solid:
    """One solid on a body: kind, sizes as in `collision.primitives.Part`, pose in the body's frame, colour."""

    body: int
    kind: int
    position: np.ndarray
    rotation: np.ndarray
    size: np.ndarray
    radius: float
    bound: float
    colour: tuple[float, ...]  # red, green, blue, opacity, 0 to 1 (sRGB)
    pattern: int = PLAIN_GROUND
    surface: Surface | None = None
    finish: tuple[float, float] = PLAIN_FINISH  # roughness, metalness, 0 to 1


@dataclass
class Tubes:
    """Capsules from `a` to `b`, m, of one radius and colour each."""

    a: np.ndarray = field(default_factory=lambda: np.zeros((0, 3)))
    b: np.ndarray = field(default_factory=lambda: np.zeros((0, 3)))
    radius: np.ndarray = field(default_factory=lambda: np.zeros(0))
    colour: np.ndarray = field(default_factory=lambda: np.zeros((0, 3)))


def surface(vertices: np.ndarray, faces: np.ndarray, two_sided: bool = False) -> Surface:
    """Triangles with normals that are smooth where the surface is, and not across its edges."""
    vertices, faces = creased(np.asarray(vertices, float), np.asarray(faces))
    corners = vertices[faces]
    flat = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    normals = np.zeros_like(vertices)
    for k in range(3):
        np.add.at(normals, faces[:, k], flat)
    normals /= np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-300)
    return Surface(vertices, faces, normals, two_sided=two_sided)


def painted(shape: Shape, plain: tuple[int, ...]) -> Surface:
    """The triangles of a shape that has colours or textures."""
    made = paint(shape, plain)
    vertices, faces = np.asarray(made.vertices, float), np.asarray(made.faces)
    colours = np.ones((len(vertices), 4))
    colours[:, :3] = tints(made)
    look = made.visual
    own = None if look.kind == "texture" else getattr(look, "vertex_colors", None)
    if own is not None and np.shape(own) == (len(vertices), 4):
        colours[:, 3] = np.asarray(own, float)[:, 3] / 255
    normals = np.array(made.vertex_normals, float)
    return Surface(vertices, faces, normals, colours[faces].mean(1), finishes(made)[faces].mean(1), True)


class Gallery:
    """The solids of a simulation, found once, and its tubes as they are now. Drawn is the first world."""

    def __init__(self, sim: Owner) -> None:
        self.sim = sim
        self.solids: list[Solid] = []
        model, moving = sim.model, 0
        motion = model.bodies.motion.numpy()
        parts: dict[int, list[Any]] = {}
        for shape in model.collision.shapes if model.collision is not None else ():
            parts.setdefault(shape.body, []).append(shape.part)
        for b, own in enumerate(model.shapes):
            dynamic = int(motion[b]) == DYNAMIC
            moving += dynamic
            shape = model.visuals.get(b, own)
            colour = PALETTE[(moving - 1) % len(PALETTE)] if dynamic else STONE if shape is not None else SOIL
            given = model.colors[b]
            if given is not None:
                colour = (round(255 * given[0]), round(255 * given[1]), round(255 * given[2]))
            if shape is None:
                for part in parts.get(b, ()):
                    self._add_part(b, part, FLOOR_COLOUR if part.kind == "plane" and given is None else colour)
            elif is_painted(shape):
                made = painted(shape, colour)
                made.finishes = None if b in model.finishes else made.finishes
                self._add_surface(b, made, colour)
            else:
                self._add_shape(b, shape, np.zeros(3), UNTURNED, colour, b in model.visuals)

    def _add_shape(self, b: int, shape: Any, position: np.ndarray, rotation: np.ndarray, colour: Any, two_sided: bool) -> None:
        """A shape that has one colour, in a frame on body b."""
        if isinstance(shape, Compound):
            place = position + quat_rotate(rotation, np.asarray(shape.position, float))
            turn = quat_multiply(rotation, np.asarray(shape.rotation, float))
            for child in shape.shapes:
                self._add_shape(b, child, place, turn, colour, two_sided)
            return
        made = None
        if not isinstance(shape, PointMass):
            found = parts_of(shape, "picture", True)
            made = found[0] if len(found) == 1 and found[0].kind in SOLID_KINDS else None
        if made is None:
            vertices, faces = shape.mesh()
            if len(faces):
                vertices = position + quat_rotate(np.tile(rotation, (len(vertices), 1)), np.asarray(vertices, float))
                self._add_surface(b, surface(vertices, faces, two_sided), colour)
            return
        if isinstance(shape, Cylinder):  # drawn without the rounding of its edges
            made.size, made.radius = np.array([shape.radius, 0.5 * shape.length, 0.0]), 0.0
            made.bound = float(np.hypot(shape.radius, 0.5 * shape.length))
        made.position = position + quat_rotate(rotation, made.position)
        made.rotation = quat_multiply(rotation, made.rotation)
        self._add_closed(b, made, colour, PLAIN_GROUND)

    def _add_part(self, b: int, part: Any, colour: Any) -> None:
        """A collision part of a body that has no shape to draw: of the ground, for example."""
        ground = part.kind in ("plane", "heights")
        if part.kind in SOLID_KINDS:
            if part.kind == "cylinder" and part.radius > 0:  # drawn without the rounding of its edges
                part = replace(part, size=part.size + [part.radius, part.radius, 0.0], radius=0.0, bound=part.bound + part.radius)
            self._add_closed(b, part, colour, CHECKERED_GROUND if ground else PLAIN_GROUND)
        elif (mesh := part_mesh(part)) is not None:
            self._add_surface(b, surface(*mesh), colour, CHECKERED_GROUND if ground else PLAIN_GROUND)

    def _add_closed(self, b: int, part: Any, colour: Any, pattern: int) -> None:
        shade = (*(c / 255 for c in colour), 1.0)
        place, turn = np.asarray(part.position, float), np.asarray(part.rotation, float)
        size = np.asarray(part.size, float)
        finish = self.sim.model.finishes.get(b, PLAIN_FINISH)
        self.solids.append(
            Solid(b, SOLID_KINDS[part.kind], place, turn, size, part.radius, part.bound, shade, pattern, None, finish)
        )

    def _add_surface(self, b: int, made: Surface, colour: Any, pattern: int = PLAIN_GROUND) -> None:
        if not len(made.faces):
            return
        middle = 0.5 * (made.vertices.min(0) + made.vertices.max(0))
        made.vertices = made.vertices - middle
        bound = float(np.linalg.norm(made.vertices, axis=1).max())
        size = np.abs(made.vertices).max(0)
        shade = (*(c / 255 for c in colour), 1.0)
        finish = self.sim.model.finishes.get(b, PLAIN_FINISH)
        self.solids.append(Solid(b, MESH, middle, UNTURNED, size, 0.0, bound, shade, pattern, made, finish))

    def poses(self) -> tuple[np.ndarray, np.ndarray]:
        """Frame origins (bodies, 3), m, and rotations (bodies, 4) of the first world."""
        return poses(self.sim, 0)[:2]

    def tubes(self) -> Tubes:
        """Ropes, cables, springs and rods as they are now."""
        sim, model = self.sim, self.sim.model
        found: list[tuple[np.ndarray, float, tuple[int, int, int]]] = []  # segments (n, 2, 3), radius, colour
        for k, name in enumerate(model.ropes.names if model.ropes is not None else ()):
            line, _ = rope_segments(sim, name, 0)
            if 1 < len(line) <= SMOOTH_MOST and np.array_equal(line[:-1, 1], line[1:, 0]):
                line = joined_smoothly(line)
            found.append((line, float(model.ropes.described[k].radius), TRACED_ROPE))
        for name in model.cable_names:
            points = np.asarray(sim.cable(name).points, float)
            found.append((np.stack([points[:-1], points[1:]], 1), 0.0, TRACED_ROPE))
        for name in model.spring_names:
            a, b = (np.atleast_2d(end)[0] for end in sim.spring(name).ends)
            found.append((coil(a, b, 0.04 * float(np.linalg.norm(b - a))), 0.0, TRACED_SPRING))
        place, turn = self.poses()
        centre = place + quat_rotate(turn, model.com)
        table = model.joints
        for j in np.flatnonzero(table.rod.numpy() > 0) if model.joint_kinds else ():
            ends = ((model.parents, of_first(table.parent_point)), (model.children, of_first(table.child_point)))
            line = np.array([[centre[body[j]] + quat_rotate(turn[body[j]], points[j]) for body, points in ends]])
            found.append((line, 0.0, TRACED_ROD))
        found = [one for one in found if len(one[0])]
        if not found:
            return Tubes()
        lines = np.concatenate([line for line, _, _ in found]).astype(float)
        counts = [len(line) for line, _, _ in found]
        radius = np.repeat([r for _, r, _ in found], counts)
        colour = np.repeat(np.array([c for _, _, c in found]) / 255, counts, axis=0)
        return Tubes(lines[:, 0], lines[:, 1], radius, colour)
