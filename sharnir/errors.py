"""Errors that a user's mistake raises, and warnings; all say which object, which value, and what is allowed."""

import math
import os
import sys
from collections.abc import Iterator, Mapping
from numbers import Real
from types import FrameType
from typing import TYPE_CHECKING, TypeGuard, TypeVar

import numpy as np

View = TypeVar("View")
PACKAGE_FOLDER = os.path.join(os.path.dirname(__file__), "")


def _is_own(frame: FrameType) -> bool:
    """Whether a frame runs code of sharnir; that of a dataclass has no file."""
    return frame.f_code.co_filename.startswith(PACKAGE_FOLDER) or str(frame.f_globals.get("__name__")).startswith("sharnir.")


def callers_level() -> int:
    """The `stacklevel` with which `warnings.warn`, called right after this, names the first file outside sharnir."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and _is_own(frame):
        frame, level = frame.f_back, level + 1
    return level


class SceneError(ValueError):
    """A scene cannot be built as described: a wrong value, an unknown name, a mechanism that cannot be assembled."""


class ArgumentError(SceneError, TypeError):
    """An argument does not exist, or one is missing: what is probably meant, and what is allowed."""


class SceneFileError(SceneError):
    """A file holds no scene: `problems` has a line for each thing that is wrong, with file, line, key and what is allowed."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


class SimulationError(RuntimeError):
    """A running simulation was asked for something impossible, or its state would have become non-finite."""


class DivergenceError(SimulationError):
    """The motion has diverged: joints stand far open, or energy came from nowhere. The last good state stays."""


class SceneWarning(UserWarning):
    """A scene is built as described, though the description may be a mistake."""


class StepWarning(UserWarning):
    """Steps do not do what they should, though the motion goes on: they do not converge, or joints stand open."""


def as_numbers(value: object) -> np.ndarray:
    """What a user gave, as an array of numbers; a single NaN, which every check refuses, where it is no such thing."""
    try:
        return np.asarray(value, float)
    except (TypeError, ValueError):
        return np.array(np.nan)


LARGEST_STATE = 1e15  # m, rad, m/s, rad/s: state values beyond it would overflow where they are squared and multiplied


def reachable(values: object) -> bool:
    """Whether all numbers are finite and small enough for a position, an angle or a speed (`LARGEST_STATE`)."""
    return bool(np.all(np.abs(as_numbers(values)) <= LARGEST_STATE))


def is_positive(value: object) -> TypeGuard[float]:
    """Whether a value is a finite number above 0."""
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value) and float(value) > 0


OF_SIMULATIONS = (
    "use sim.snapshot() and sim.restore() for its state, sim.save(file) and sim.load(file) for a checkpoint, or make another "
    "Simulation of the same Scene, which can be copied and pickled"
)


class Spelled:
    """A base of what has names that a user may misspell: one that is not there is answered with what is probably meant."""

    __slots__ = ()
    if not TYPE_CHECKING:  # or every word would be right

        def __getattr__(self, name):
            known = getattr(type(self), name, None)
            if isinstance(known, property) and known.fget is not None:  # what it does has failed: that error is the one to see
                return known.fget(self)
            raise AttributeError(_no_such(self, name))


def _no_such(thing: object, name: str) -> str:
    """What to say of an attribute that an object does not have."""
    if name.startswith("_"):
        return f"{type(thing).__name__!r} object has no attribute {name!r}"
    from sharnir.core.misspellings import meant
    from sharnir.core.renamed import present_names

    own = [word for word in getattr(thing, "__dict__", {}) if not word.startswith("_")]
    known = list(dict.fromkeys([*present_names(type(thing)), *own]))
    who = type(thing).__name__
    article = "an" if who[0] in "AEIOU" else "a"
    return f"{article} {who} has no {name!r}{meant(name, known)}; it has {', '.join(known)}"


class Bound(Spelled):
    """A base of objects that hold memory of a device, as a simulation and its views: they are neither copied nor pickled."""

    __slots__ = ()
    _instead = "read and copy the values that you need, or use sim.snapshot()"

    def __init_subclass__(cls, **keywords: object) -> None:
        super().__init_subclass__(**keywords)
        from sharnir.core.misspellings import ask_all

        ask_all(cls)

    def __setattr__(self, name: str, value: object) -> None:  # where values are written in each step: `object.__setattr__`
        try:
            object.__setattr__(self, name, value)
        except AttributeError:
            if hasattr(type(self), name):
                raise
            raise AttributeError(_no_such(self, name)) from None

    def __reduce_ex__(self, protocol: object) -> str:
        name = getattr(self, "name", None)
        who = f"a {type(self).__name__}" + (f" {name!r}" if isinstance(name, str) else "")
        raise SimulationError(f"{who} cannot be copied or pickled: it is bound to memory of the device; {self._instead}")


def named(views: Mapping[str, View], name: str, what: str) -> View:
    """What has that name, of a simulation."""
    try:
        return views[name]
    except (KeyError, TypeError):
        raise SimulationError(_unknown(views, name, what)) from None


def _unknown(views: Mapping[str, object], name: object, what: str) -> str:
    from sharnir.core.misspellings import meant

    near = meant(name, list(views)) if isinstance(name, str) else ""
    return f"no {what} is named {name!r}; available: {', '.join(map(repr, views)) or 'none'}{near}"


class UnknownName(SimulationError, KeyError):
    """A name that nothing of a simulation has."""

    __str__ = Exception.__str__


class Views(Mapping[str, View]):
    """Objects of a simulation by name; `what` they are."""

    def __init__(self, views: dict[str, View], what: str) -> None:
        self._views, self._what = views, what

    def __getitem__(self, name: str) -> View:
        try:
            return self._views[name]
        except (KeyError, TypeError):
            raise UnknownName(_unknown(self._views, name, self._what)) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._views)

    def __len__(self) -> int:
        return len(self._views)

    def __repr__(self) -> str:
        return repr(self._views)

    if not TYPE_CHECKING:

        def __getattr__(self, name):
            if name.startswith("_"):
                raise AttributeError(f"'Views' object has no attribute {name!r}")
            raise AttributeError(
                f"a {self._what} is taken by its name in brackets, as [{next(iter(self._views), name)!r}], not .{name}"
            )


def number(
    who: str, what: str, value: object, *, least: float | None = None, most: float = math.inf, endless: bool = False
) -> float:
    """A finite number (or infinity where `endless`) from `least` to `most`, or a SceneError."""
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        number = math.nan
    bad = math.isnan(number) or (math.isinf(number) and not (endless and number > 0))
    if bad or (least is not None and number < least) or number > most:
        allowed = "a finite number" if least is None else f"a finite number of at least {least:g}"
        if most != math.inf:
            allowed = f"a number from {least:g} to {most:g}"
        raise SceneError(f"{who}: {what} is {allowed}, got {value!r}")
    return number
