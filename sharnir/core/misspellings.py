"""Misspelt names: what is probably meant by an argument or an attribute that does not exist."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection
from difflib import get_close_matches
from functools import cache
from typing import Any

from sharnir.errors import ArgumentError

ALSO_CALLED = {
    "angle": "position", "angles": "position", "pos": "position", "pose": "position", "qpos": "q", "qvel": "qd",
    "vel": "velocity", "orientation": "rotation", "quat": "rotation", "quaternion": "rotation", "omega": "angular_velocity",
    "angvel": "angular_velocity", "torque": "effort", "tau": "effort", "mu": "friction", "frictionloss": "friction",
    "bounce": "restitution", "elasticity": "restitution", "range": "limit", "motor": "drive", "actuator": "drive",
    "servo": "drive", "timestep": "dt", "time_step": "dt", "link": "body", "anchor": "position", "weight": "mass",
    "Hinge": "Revolute", "Pin": "Revolute", "Slider": "Prismatic", "Slide": "Prismatic", "Ball": "Spherical", "Weld": "Fixed",
    "Cuboid": "Box", "World": "Scene", "Sim": "Simulation",
}  # fmt: skip
"""What other engines call things."""


def meant(word: str, known: Collection[str]) -> str:
    """A question about what was probably meant; "" where nothing is near."""
    near = [ALSO_CALLED[word]] if ALSO_CALLED.get(word) in known else get_close_matches(word, known, 1)
    return f"; is {near[0]!r} meant?" if near else ""


_signature = cache(inspect.signature)


@cache
def arguments_of(cls: type) -> tuple[str, ...]:
    """Names of what the classes of an object take; () where they take any."""
    names: dict[str, None] = {}
    for base in cls.__mro__:
        init = vars(base).get("__init__")
        if init is None or base is object:
            continue
        parameters = list(inspect.signature(init).parameters.values())[1:]
        names |= {p.name: None for p in parameters if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)}
        if not any(p.kind is p.VAR_KEYWORD for p in parameters):
            break
    return tuple(names)


def check_arguments(who: str, function: Callable[..., Any], known: Collection[str], args: Any, keywords: dict[str, Any]) -> None:
    """Refuse arguments that do not exist, or are missing, by name.

    Args:
        who: what is called, for messages.
        function: of which the owner, its first argument, is not among `args`.
        known: names of all arguments, if it takes others by `**keywords`.
    """
    former = getattr(function, "former", {})
    keywords = {former.get(word, word): value for word, value in keywords.items()}
    for word in keywords:
        if word not in known:
            raise ArgumentError(f"{who} has no argument {word!r}{meant(word, known)}; it takes {', '.join(known)}")
    try:
        _signature(function).bind(None, *args, **keywords)
    except TypeError as error:
        given = ", ".join([repr(a) for a in args] + [f"{k}={v!r}" for k, v in keywords.items()])
        raise ArgumentError(f"{who}: {error}; it takes {', '.join(known)}, got ({given})") from None


class Checked:
    """A base of what a user makes with arguments: one that does not exist is refused with what is probably meant."""

    def __new__(cls, *args: Any, **keywords: Any) -> Any:
        if args or keywords:  # a copy is made without
            own: Any = cls
            check_arguments(cls.__name__, own.__init__, arguments_of(own), args, keywords)
        return super().__new__(cls)
