"""Material: how a surface rubs, bounces and yields."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sharnir.core.journal import KeepsArguments
from sharnir.errors import SceneError, as_numbers, is_positive, number


@dataclass(frozen=True)
class Material(KeepsArguments):
    """How a surface rubs, bounces and yields.

    Where two surfaces meet, friction is √(μ_a μ_b), dynamic friction likewise; of restitution, rolling, torsion, stiffness and
    damping the larger holds. `Scene.set_pair` gives two bodies a material of their own instead.

    Args:
        friction: coefficient of dry friction, or (along, across) with a `direction`.
        direction: (3,) in the body's axes, along which friction is the first of the two.
        dynamic: coefficient while it slides, at most `friction` (along it, where there are two; across in proportion); the same
            as `friction` if None.
        restitution: 0 to 1, the part of the speed that bounces.
        rolling: m, the lever of rolling friction: a torque up to rolling · normal force across the normal.
        torsion: m, the lever of drilling friction: a torque up to torsion · normal force about the normal.
        stiffness: N/m a point; rigid if None. damping: N·s/m a point, with a stiffness.
        shear: N/m, how a tread yields along the surface, of all points of a wheel together; or (along, across) with a
            `direction`. Rigid if None.
        relaxation: m, which a tread rolls until it has left the ground, with a shear: at a slip of s the force is
            shear · relaxation · s.
        turned: rad, by which the direction stands turned about the outward normal, as the rollers of a mecanum wheel do.
    """

    friction: float | tuple[float, float] = 0.5
    direction: Sequence[float] | None = None
    dynamic: float | None = None
    restitution: float = 0.0
    rolling: float = 0.0
    torsion: float = 0.0
    stiffness: float | None = None
    damping: float | None = None
    shear: float | tuple[float, float] | None = None
    relaxation: float | None = None
    turned: float = 0.0

    def __post_init__(self) -> None:
        who = "Material"
        if isinstance(self.friction, tuple | list):
            if len(self.friction) != 2:
                raise SceneError(f"{who}: friction is a number or (along, across), got {self.friction!r}")
            pair = tuple(number(who, "friction", v, least=0.0) for v in self.friction)
            object.__setattr__(self, "friction", pair)
            if self.direction is None:
                raise SceneError(f"{who}: friction {pair} along and across needs a direction=(x, y, z) in the body's axes")
        else:
            object.__setattr__(self, "friction", number(who, "friction", self.friction, least=0.0))
        if self.direction is not None:
            object.__setattr__(self, "direction", _direction(self.direction))
        if self.dynamic is not None:
            most = self.along
            if number(who, "dynamic", self.dynamic, least=0.0) > most:
                raise SceneError(f"{who}: dynamic friction is at most friction ({most:g}), got {self.dynamic:g}")
        number(who, "restitution", self.restitution, least=0.0, most=1.0)
        for what in ("rolling", "torsion"):
            number(who, what, getattr(self, what), least=0.0)
        for what in ("stiffness", "damping"):
            if getattr(self, what) is not None:
                number(who, what, getattr(self, what), least=0.0)
        self._check_tread(who)
        if self.damping and not self.stiffness:
            raise SceneError(f"{who}: damping {self.damping:g} N·s/m needs a positive stiffness, got {self.stiffness!r}")

    def _check_tread(self, who: str) -> None:
        number(who, "turned", self.turned)
        if (self.shear is None) != (self.relaxation is None):
            raise SceneError(f"{who}: shear (N/m) and relaxation (m) go together, got {self.shear!r} and {self.relaxation!r}")
        if self.shear is None:
            return
        pair = self.shear if isinstance(self.shear, tuple | list) else (self.shear, self.shear)
        for value in (*pair, self.relaxation):
            if not is_positive(value) or len(pair) != 2:
                raise SceneError(
                    f"{who}: shear is a positive number or (along, across) and relaxation a positive number, "
                    f"got {self.shear!r} and {self.relaxation!r}"
                )
        if pair[0] != pair[1] and self.direction is None:
            raise SceneError(f"{who}: shear {pair} along and across needs a direction=(x, y, z) in the body's axes")
        object.__setattr__(self, "shear", (float(pair[0]), float(pair[1])))

    @property
    def along(self) -> float:
        """Friction along the direction."""
        return self.friction[0] if isinstance(self.friction, tuple) else self.friction

    @property
    def across(self) -> float:
        """Friction across it."""
        return self.friction[1] if isinstance(self.friction, tuple) else self.friction


def _direction(value: Any) -> tuple[float, ...]:
    v = as_numbers(value)
    if v.shape != (3,) or not np.isfinite(v).all() or not np.linalg.norm(v) > 0:
        raise SceneError(f"Material: direction is three finite numbers, not all 0, got {value!r}")
    return tuple((v / np.linalg.norm(v)).tolist())


def checked(value: Any, who: str) -> Material:
    """A Material or the default one, or a SceneError."""
    if value is None:
        return Material()
    if not isinstance(value, Material):
        raise SceneError(f"{who}: material is a Material(friction=…), got {value!r}")
    return value
