"""Rotors of motors in impacts: they turn with their axes.

Their inertia is part of the axis' own equation, their momentum of its right side.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sharnir.emit.expressions import select
from sharnir.laws.axis import is_zero, rotor_inertia


def hold_rotor(link: Any) -> None:
    """Before velocities are projected: what the rotor of a motor adds to the equation of its one axis."""
    if is_zero(link.resistance):
        return
    for _ in link.when(link.resistance > 0.0):
        inertia = rotor_inertia(link)
        link.slope = inertia
        link.given = select(link.tree.closing, 0.0, inertia * link.rotor / link.per_half_step)


def turn_rotor(link: Any, bounce: Any, note: Callable[[Any], None], turns: bool = True) -> None:
    """The speed of the rotor after an impact; tells `note` the kinetic energy that it loses, times ¼ h²."""
    if is_zero(link.resistance):
        return
    for _ in link.acting():
        for _ in link.when(link.resistance > 0.0):
            before = link.rotor / link.per_half_step
            after = link.z + (link.z - before) * bounce
            note(0.5 * rotor_inertia(link) * (before * before - after * after))
            if turns:
                link.rotor = after * link.per_half_step
