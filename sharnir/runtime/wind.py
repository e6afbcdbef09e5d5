"""The air that flows past bodies and ropes: its speed is `sim.wind`; its force on a rope follows from the rope's own drag.

A body with a drag area A (the drag coefficient times the area across the flow, m²) is pushed at its centre of mass by

    F = ½ ρ A |u| u,   u = w − v,   ρ = 1.225 kg/m³

where w is the wind and v the velocity of the centre of mass at the beginning of the step. Of a body so light that this would
turn u round within a step, F is what stops it in one: |F| ≤ m |u| / Δt. A falling body reaches √(2 m g / (ρ A)).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sharnir.core.strided import columns
from sharnir.engine.rope.describe import AIR
from sharnir.errors import SimulationError
from sharnir.model.model import DYNAMIC

# The Simulation; it stands a floor above, so that it is not named here.
Owner = Any


class Air:
    """Pushes bodies before each step, in every solver alike."""

    def __init__(self, sim: Owner, areas: dict[int, float]) -> None:
        self._sim, self.wind = sim, np.zeros((sim.worlds, 3))
        moving = sim.model.bodies.motion.numpy() == DYNAMIC
        self._rows = np.array([i for i in areas if moving[i]], int)
        self._half = np.array([0.5 * AIR * areas[int(i)] for i in self._rows])[:, None, None]

    def lead(self, _t: float, dt: float) -> None:
        """The forces of the next step."""
        sim, rows = self._sim, self._rows
        past = self.wind - sim._settled().velocity[rows].astype(float)  # (rows, worlds, 3)
        mass = np.asarray(columns(sim.model.bodies.mass))[rows][..., None]
        share = np.minimum(self._half * np.sqrt((past * past).sum(-1, keepdims=True)), mass / dt)
        forces = sim.commands.force_once.numpy()
        forces[rows] += share * past
        if not sim._on_cpu:
            sim.commands.force_once.assign(forces)


class WindAccess:
    """The part of a Simulation that is about the air."""

    __slots__ = ()

    if TYPE_CHECKING:
        from sharnir.runtime.rope_view import RopeView

        _air: Air | None
        _ropes: dict[str, RopeView]
        commands: Any

        def _in(self, value: Any, size: int, who: str, what: str) -> np.ndarray: ...

        def _out(self, values: np.ndarray) -> Any: ...

    @property
    def wind(self) -> Any:
        """(3,) m/s, or (worlds, 3): the speed of the air (or water) that drags on ropes and on bodies with a drag area; may be
        changed while running.
        """
        self._need_air()
        return self._out(self._air.wind if self._air is not None else self.commands.rope.wind.numpy().astype(float))

    @wind.setter
    def wind(self, value: Any) -> None:
        self._need_air()
        given = self._in(value, 3, "Simulation", "wind (m/s)")
        if self._air is not None:
            self._air.wind = given
        if self._ropes:
            self.commands.rope.wind.assign(given)

    def _need_air(self) -> None:
        if not self._ropes and self._air is None:
            raise SimulationError("Simulation: wind drags on ropes and on bodies with a drag_area, and the scene has neither")
