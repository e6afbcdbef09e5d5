"""Properties that several bodies or ropes share: `Inertia`, `Collider`, `Visual` for `add_body`, `Rope` for `add_rope`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from sharnir.core.journal import Part

if TYPE_CHECKING:
    from sharnir.collision.material import Material
    from sharnir.geometry.shapes import Shape
    from sharnir.io.meshes import Surface


@dataclass(frozen=True)
class Inertia(Part):
    """Mass, moments and centre of mass of a body, in place of those of its shape: `add_body(…, inertia=Inertia(…))`.

    Args:
        mass: kg. moments: kg·m² about the centre of mass, in the body's axes, (3, 3) or its diagonal; the shape's if None.
        com: centre of mass in the body's frame, m; the shape's if None.
    """

    mass: float
    moments: Any = None
    com: Sequence[float] | None = None

    argument: ClassVar = "inertia"
    words: ClassVar = {"moments": "inertia"}


@dataclass(frozen=True)
class Collider(Part):
    """Collision shapes of a body and their surface: `add_body(…, collision=Collider(…))`.

    Args:
        shapes: a shape or several in the body's frame; the body's own if None.
        material: how the surface rubs and bounces. group, surface_velocity, collide: as in `add_body`.
    """

    shapes: Shape | Sequence[Shape] | None = None
    material: Material | None = None
    group: int | tuple[int, int] | Sequence[tuple[int, int]] | None = None
    surface_velocity: Sequence[float] | None = None
    collide: bool | None = None

    argument: ClassVar = "collision"
    words: ClassVar = {"shapes": "collision"}


@dataclass(frozen=True)
class Visual(Part):
    """Appearance of a body: `add_body(…, visual=Visual(…))`.

    Args:
        shapes: a file (.glb, .obj, …), a `Surface`, or shapes; the body's own if None.
        color: (red, green, blue) from 0 to 1, "#rrggbb" or a name ("red").
        roughness: 0 (polished) to 1 (matt). metalness: 0 (paint, plastic) to 1 (bare metal). None: the file's, or 0.5 and 0.
    """

    shapes: Shape | Surface | Sequence[Shape] | str | None = None
    color: Sequence[float] | str | None = None
    roughness: float | None = None
    metalness: float | None = None

    argument: ClassVar = "visual"
    words: ClassVar = {"shapes": "visual"}


@dataclass(frozen=True)
class Rope(Part):
    """Properties of a rope: `add_rope(name, start, end, like=Rope(…))`. A field that is None has the default of `add_rope`.

    Args:
        radius: m. density: kg/m³, or mass_per_length: kg/m. segments: how many, or their relative lengths.
        E, G: Pa, or EI, GJ: N·m². rest_curvature: 1/m. rest_twist: rad/m. damping: s.
        drag: N·s/m². drag_coefficient: of air across it. breaking_load: N. rod, material, collide: as in `add_rope`.
    """

    radius: float | None = None
    density: float | None = None
    mass_per_length: float | None = None
    segments: int | Sequence[float] | None = None
    E: float | None = None
    G: float | None = None
    EI: float | None = None
    GJ: float | None = None
    rest_curvature: Any = None
    rest_twist: Any = None
    damping: float | None = None
    drag: float | None = None
    drag_coefficient: float | None = None
    breaking_load: float | None = None
    rod: bool | None = None
    material: Material | None = None
    collide: bool | None = None

    argument: ClassVar = "like"
    words: ClassVar = {}
