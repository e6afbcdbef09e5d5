"""What a scene says about contact, on the host: grounds, terrains, what bodies collide with, rules for pairs of bodies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sharnir.collision.material import Material, checked
from sharnir.collision.primitives import Part, parts_of, terrain_part
from sharnir.core.spatial import direction_of, frame_from_axes, quat_rotate
from sharnir.errors import SceneError, number
from sharnir.geometry.shapes import Compound, Mesh, Shape
from sharnir.model.descriptions import vector
from sharnir.model.model import DYNAMIC

EVERYTHING = 0x7FFFFFFF
"""A mask that touches all groups."""
HOLLOW = 0.02
"""Of its volume: a mesh whose convex hull is larger by more is not taken for convex."""


@dataclass
class BodyContact:
    """What a body collides with: its shapes (None: what it looks like), and how."""

    collide: bool | None = None
    shapes: list[Shape] | None = None
    material: Material = field(default_factory=Material)
    group: int = 1
    mask: int = EVERYTHING
    groups: list[tuple[int, int]] | None = None  # (group, mask) of each shape, where they differ
    surface: np.ndarray = field(default_factory=lambda: np.zeros(3))
    parts: list[Part] = field(default_factory=list)  # planes and height fields, which are no shapes


@dataclass
class Belt:
    """A surface that runs as a joint turns: bodies by index, `body` turns about `axis` (axes of `frame`) in `frame`.

    Of a raycast wheel, which has no body of its own, `body` is 0.
    """

    body: int
    frame: int
    axis: np.ndarray
    radius: float  # m, of its way a radian


@dataclass(frozen=True)
class Cast:
    """A raycast wheel: its belt, what turns with it (kg·m²), rolling resistance (m), rad/s at the start, and its commands."""

    name: str
    belt: int
    inertia: float
    rolling: float
    speed: float
    commands: tuple[float, ...]  # CAST_WORDS: torque N·m, speed rad/s, kd N·m·s, most N·m, brake N·m


@dataclass
class CollisionShape:
    """One convex shape, mesh or height field on a body; poses in the body's own frame."""

    name: str  # for messages
    body: int
    owner: str  # the body's name
    part: Part
    group: int
    mask: int
    surface: np.ndarray


@dataclass
class CollisionDescription:
    """All shapes in an order of their own, the materials of bodies, what holds for pairs of bodies (by index, lower first)."""

    shapes: list[CollisionShape]
    materials: dict[str, Material]  # by body
    rules: dict[tuple[int, int], Material]
    apart: set[tuple[int, int]]
    held: set[tuple[int, int, int]]  # bodies a < b that do not touch while a joint (by index) is enabled
    belts: list[Belt] = field(default_factory=list)


class ContactScene:
    """The part of a Scene that is about contact; the scene's methods pass on to it.

    Args:
        contact: True, False, or None: on as soon as there is a ground, a terrain or a body with collide=True.
    """

    def __init__(self, contact: bool | None) -> None:
        if contact is not None and not isinstance(contact, bool):
            raise SceneError(f"Scene: contact is True, False or None, got {contact!r}")
        self.contact = contact
        self.bodies: dict[str, BodyContact] = {}
        self.ignored: set[frozenset[str]] = set()
        self.pairs: dict[frozenset[str], Material] = {}
        self.asked: set[frozenset[str]] = set()
        self.belts: list[Belt] = []
        self.casts: list[Cast] = []
        self.expected: list[str] = []
        """What a user gave that means something in contact alone, for a warning where there is none."""

    @property
    def on(self) -> bool:
        """Whether bodies touch each other in this scene."""
        if self.contact is not None:
            return self.contact
        return bool(self.belts) or any(body.collide for body in self.bodies.values())

    def add_body(
        self, name: str, collide: Any, shapes: Any, material: Any, group: Any, surface_velocity: Any
    ) -> None:  # fmt: skip
        """What `Scene.add_body` was given about contact."""
        who = f"body {name!r}"
        if collide is not None and not isinstance(collide, bool):
            raise SceneError(f"{who}: collide is True, False or None, got {collide!r}")
        made = BodyContact(collide, None, checked(material, who))
        if collide is None:
            given = {"material": material, "surface_velocity": surface_velocity}
            self.expected += [f"{who} has a {what}" for what, value in given.items() if value is not None]
        if shapes is not None:
            made.shapes = list(shapes) if isinstance(shapes, list | tuple) else [shapes]
            for shape in made.shapes:
                if not isinstance(shape, Shape):
                    raise SceneError(f"{who}: collision is a shape or a list of shapes, got {shape!r}")
        if isinstance(group, list | tuple) and len(group) > 0 and all(isinstance(one, list | tuple) for one in group):
            if made.shapes is None or len(made.shapes) != len(group):
                shapes_there = 0 if made.shapes is None else len(made.shapes)
                raise SceneError(f"{who}: group is one (bits, mask) per shape of collision={shapes_there} shapes, got {group!r}")
            made.groups = [_group(one, who) for one in group]
        elif group is not None:
            made.group, made.mask = _group(group, who)
        if surface_velocity is not None:
            made.surface = vector(surface_velocity, who, "surface_velocity (m/s, body axes)")
        self.bodies[name] = made

    def add_ground(self, world: str, height: Any, normal: Any, material: Any, group: Any) -> None:
        """A plane of the world, at `height` along its normal."""
        n = direction_of(normal, "ground: normal")
        plane = Part("plane", n * number("ground", "height (m)", height), frame_from_axes(n), np.zeros(3))
        plane.material = checked(material, "ground")
        plane.group = None if group is None else _group(group, "ground")
        ground = self.bodies.setdefault(world, BodyContact())
        ground.collide = True
        ground.parts.append(plane)

    def add_terrain(self, name: str, heights: Any, size: Any, material: Any, friction: Any, group: Any) -> None:
        """A height field on the fixed body of that name."""
        made = BodyContact(True, [], checked(material, f"terrain {name!r}"))
        if group is not None:
            made.group, made.mask = _group(group, f"terrain {name!r}")
        made.parts.append(terrain_part(name, heights, size, friction, made.material))
        self.bodies[name] = made

    def add_belt(self, body: str, shapes: Any, belt: Belt, material: Any, who: str) -> None:
        """Shapes of a body, besides those it has, whose surface is a belt."""
        given = list(shapes) if isinstance(shapes, list | tuple) else [shapes]
        if not given or not all(isinstance(shape, Shape) for shape in given):
            raise SceneError(f"{who}: shapes is a shape or a list of at least one, got {shapes!r}")
        owner = self.bodies.setdefault(body, BodyContact())
        for part in (p for shape in given for p in parts_of(shape, who, False)):
            part.belt, part.material = len(self.belts), checked(material, who)
            owner.parts.append(part)
        self.belts.append(belt)

    def upside_down(self, gravity: np.ndarray) -> str:
        """A warning where gravity presses nothing onto the ground; "" where all is well, or there is none of the two."""
        planes = [part for contact in self.bodies.values() for part in contact.parts if part.kind == "plane"]
        up = [quat_rotate(plane.rotation, np.array([0.0, 0.0, 1.0])) for plane in planes]
        if not up or not gravity.any() or any(n @ gravity < -1e-9 * np.linalg.norm(gravity) for n in up):
            return ""
        words = ", ".join(f"{g:g}" for g in gravity)
        return (
            f"Scene: gravity=({words}) does not press bodies onto the ground; z is up unless add_ground(normal=…): (0, 0, -9.81)"
        )

    def missing(self) -> str | None:
        """A warning if the user expects contact and the scene has none; None where all is well, or contact=False was said."""
        if self.contact is not None or self.on or not self.expected:
            return None
        others = "" if len(self.expected) == 1 else f" (and {len(self.expected) - 1} more like it)"
        return (
            f"Scene: {self.expected[0]}{others}, but the scene has no contact: bodies pass through each other; "
            "add_ground() or Scene(contact=True) turns it on, Scene(contact=False) says that none is meant"
        )

    def filled(self, bodies: Sequence[Any]) -> list[str]:
        """Warnings of meshes that move, whose hollows contact fills though nobody said so."""

        def hollows(shape: Shape) -> list[float]:
            inner = shape.shapes if isinstance(shape, Compound) else [shape]
            return [m.hollow for m in inner if isinstance(m, Mesh) and m.decompose is None and m.hollow > HOLLOW]

        words = []
        for body in bodies if self.on else ():
            most = max((h for shape in self.shapes_of(body) for h in hollows(shape)), default=0.0)
            if most and body.motion == DYNAMIC:
                words.append(
                    f"body {body.name!r}: its mesh is not convex; others touch its convex hull, which is {most:.0%} larger: "
                    "Mesh(…, decompose=True) takes convex parts of it, decompose=False says that the hull is meant"
                )
        return words

    def shapes_of(self, body: Any) -> list[Shape]:
        """The shapes of a body that others touch."""
        given = self.bodies.get(body.name, BodyContact())
        if given.collide is False:
            return []
        return given.shapes if given.shapes is not None else ([body.shape] if body.shape is not None else [])

    def pair(self, what: str, a: str, b: str) -> frozenset[str]:
        """Two different bodies."""
        if a == b:
            raise SceneError(f"{what}: two different bodies, got {a!r} twice")
        return frozenset((a, b))

    def build(
        self, bodies: Sequence[Any], neighbours: Sequence[tuple[int, int, int]], seen: bool = False
    ) -> CollisionDescription | None:
        """The description that a model takes along; None if there is no contact.

        neighbours: (body, body, joint) by index, of joints that keep their bodies from touching while they are enabled.
        seen: also without contact, for rays.
        """
        if not self.on and not seen:
            return None
        found: list[tuple[Any, CollisionShape]] = []
        materials: dict[str, Material] = {}
        for index, body in enumerate(bodies):
            given = self.bodies.get(body.name, BodyContact())
            parts = []
            for k, shape in enumerate(self.shapes_of(body)):
                own = parts_of(shape, f"body {body.name!r}", body.motion != DYNAMIC)
                for part in own:
                    part.group = None if given.groups is None else given.groups[k]
                parts += own
            for number_, part in enumerate(parts + given.parts):
                owner = body.name if part.material is None else f"{body.name} {number_}"
                materials[owner] = given.material if part.material is None else part.material
                name = f"{part.kind} of body {body.name!r}"
                group, mask = (given.group, given.mask) if part.group is None else part.group
                made = CollisionShape(name, index, owner, part, group, mask, given.surface)
                found.append(((body.motion, body.name, number_), made))
        found.sort(key=lambda pair: pair[0])
        where = {body.name: i for i, body in enumerate(bodies)}

        def indices(pair: frozenset[str]) -> tuple[int, int]:
            a, b = sorted(where[name] for name in pair)
            return a, b

        asked = {indices(pair) for pair in (self.asked | set(self.pairs))}
        held = {(min(a, b), max(a, b), joint) for a, b, joint in neighbours if (min(a, b), max(a, b)) not in asked}
        apart = {indices(pair) for pair in self.ignored}
        rules = {indices(pair): material for pair, material in self.pairs.items()}
        return CollisionDescription([shape for _, shape in found], materials, rules, apart, held, self.belts)


def _group(value: Any, who: str) -> tuple[int, int]:
    """(group, mask) of group= : bits, or (bits, bits of what it touches)."""
    given = value if isinstance(value, tuple | list) else (value, EVERYTHING)
    whole = [isinstance(v, int | np.integer) and not isinstance(v, bool) for v in given]
    if len(given) != 2 or not all(whole) or not 0 < int(given[0]) <= EVERYTHING or not 0 <= int(given[1]) <= EVERYTHING:
        raise SceneError(f"{who}: group is bits (1 to 2³¹ − 1), or (bits, mask of the groups it touches), got {value!r}")
    return int(given[0]), int(given[1])
