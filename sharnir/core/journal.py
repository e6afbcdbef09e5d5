"""What was said: arguments of objects and calls, kept as they were given, so that a file can say the same again to the bit."""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Callable
from dataclasses import dataclass, field
from os import PathLike
from typing import Any, ClassVar

import numpy as np

from sharnir.core.misspellings import Checked, check_arguments
from sharnir.errors import ArgumentError

RULE_METHODS = ("ignore", "set_drive", "set_pair", "tie_rope")
"""Methods of a scene that say something and are not called add_…."""


def kept(value: Any) -> Any:
    """A copy of what was given that nobody changes later: of arrays and of lists; other objects are taken as they are."""
    if isinstance(value, np.ndarray):
        return value.copy()
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, tuple):
        return tuple([kept(v) for v in value])
    if isinstance(value, list):
        return [kept(v) for v in value]
    return {key: kept(v) for key, v in value.items()} if isinstance(value, dict) else value


class OfInit:
    """The signature of a class is that of its `__init__`, though it has a `__new__`; keywords of `**options` one by one."""

    def __get__(self, made: Any, cls: type) -> inspect.Signature:
        whole = inspect.signature(cls.__init__)  # type: ignore[misc]
        found: list[inspect.Parameter] = []
        for name, one in list(whole.parameters.items())[1:]:
            if one.kind is not one.VAR_KEYWORD:
                found.append(one)
                continue
            for words in typing.get_args(typing.get_type_hints(cls.__init__).get(name)):  # type: ignore[misc]
                hints = typing.get_type_hints(words).items()
                found += [inspect.Parameter(n, one.KEYWORD_ONLY, default=None, annotation=hint) for n, hint in hints]
        return whole.replace(parameters=found)


class KeepsArguments(Checked):
    """An object that keeps the arguments it was made with: its fields may hold them in another form, a unit vector for one."""

    __signature__ = OfInit()

    def __new__(cls, *args: Any, **keywords: Any) -> Any:
        made = super().__new__(cls, *args, **keywords)
        object.__setattr__(made, "_said", ([kept(a) for a in args], kept(keywords)))
        return made

    def said(self) -> dict[str, Any]:
        """Its arguments by name."""
        args, keywords = self.__dict__["_said"]
        former = getattr(type(self).__init__, "former", {})
        keywords = {former.get(word, word): value for word, value in keywords.items()}
        return named(type(self).__init__, [self, *args], keywords)


def named(function: Callable[..., Any], args: list[Any], keywords: dict[str, Any]) -> dict[str, Any]:
    """Arguments of a method by name, without its owner; those of `**keywords` beside the others."""
    signature = inspect.signature(function)
    found = dict(signature.bind(*args, **keywords).arguments)
    found.pop(next(iter(signature.parameters)))
    for name, parameter in signature.parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD:
            found |= found.pop(name, {})
    return found


@dataclass(frozen=True)
class Call:
    """A method of a scene that was called, and what it was given."""

    method: str
    args: list[Any]
    keywords: dict[str, Any]


@dataclass(frozen=True)
class SceneJournal:
    """All that was said of a scene: what can be written to a file and said again."""

    gravity: tuple[float, ...]  # m/s²
    contact: bool | None
    calls: tuple[Call, ...]
    options: dict[str, Any] = field(default_factory=dict)  # of a simulation, as a file has them
    notes: tuple[str, ...] = ()


class Journaled(Checked):
    """What a Scene shares with the files it can be written to: every method that adds something keeps what it was given."""

    calls: list[Call]
    options: dict[str, Any]
    """What a scene file says of a simulation of it: keywords of `Simulation`, such as dt (s) and solver."""
    _inside: bool

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        for name, method in list(vars(cls).items()):
            if callable(method) and (name.startswith("add_") or name in RULE_METHODS):
                setattr(cls, name, _telling(name, method))

    def told(self) -> SceneJournal:
        """All that was said of it so far."""
        own: Any = self
        gravity = tuple(float(g) for g in own.gravity)
        return SceneJournal(gravity, own.touch.contact, tuple(self.calls), dict(self.options), tuple(own.notes))

    def save(self, path: str | PathLike[str]) -> None:
        """Write the scene to a TOML file, from which `load_scene` makes the same one, to the bit.

        A SceneError names what no file can hold: a path of a kinematic body that is a Python function. Inputs that are
        functions are left out, with a SceneWarning.
        """
        from sharnir.io.write import save_scene

        own: Any = self
        save_scene(own, path)


class Part(Checked):
    """Arguments that several calls share, as one object: each field that is not None replaces an argument."""

    argument: ClassVar[str]
    """Name of the argument that takes it."""
    words: ClassVar[dict[str, str]]
    """Fields that replace an argument of another name."""


def spread(who: str, keywords: dict[str, Any]) -> dict[str, Any]:
    """Keyword arguments, with each `Part` replaced by the arguments in its fields."""
    parts = {word: part for word, part in keywords.items() if isinstance(part, Part)}
    found = {word: value for word, value in keywords.items() if word not in parts}
    for word, part in parts.items():
        if word != part.argument:
            raise ArgumentError(f"{who}: {word} cannot be a {type(part).__name__}; pass it as {part.argument}=")
        for key, value in vars(part).items():
            own = part.words.get(key, key)
            if value is None:
                continue
            if found.get(own) is not None:
                raise ArgumentError(f"{who}: {own} is given twice, by {word}={type(part).__name__}({key}=…) and by {own}=")
            found[own] = value
    return found


def _telling(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    """A method that keeps what it was given once it has been carried out; what it calls itself does not count."""

    parameters = list(inspect.signature(method).parameters.values())[1:]
    known = tuple(p.name for p in parameters)
    anything = any(p.kind is p.VAR_KEYWORD for p in parameters)

    @functools.wraps(method)
    def call(self: Any, *args: Any, **keywords: Any) -> Any:
        keywords = spread(f"Scene.{name}", keywords)
        if self._inside:
            return method(self, *args, **keywords)
        if not anything:
            check_arguments(f"Scene.{name}", method, known, args, keywords)
        self._inside = True
        former = getattr(method, "former", {})
        said = Call(name, kept(list(args)), {former.get(word, word): kept(value) for word, value in keywords.items()})
        try:
            result = method(self, *args, **keywords)
        finally:
            self._inside = False
        self.calls.append(said)
        return result

    return call
