"""Former public names, of attributes, arguments and modules: they do what the new ones do, and warn, until 0.4.0."""

from __future__ import annotations

import functools
import sys
import warnings
from collections.abc import Callable, Mapping
from importlib import import_module
from types import ModuleType
from typing import Any, TypeVar

from sharnir.errors import ArgumentError, callers_level

F = TypeVar("F", bound=Callable[..., Any])
BRITISH = ("tyre",)  # spellings that stay, without a warning


def warn_renamed(former: str, new: str, level: int | None = None) -> None:
    """Tell the caller outside the package, or at that stack level, that a name has changed."""
    words = f"{former} is now {new}; the former name goes in 0.4.0"
    warnings.warn(words, FutureWarning, stacklevel=callers_level() if level is None else level)


class Former:
    """An attribute or method of a class under its former name; `new` is the present one."""

    def __init__(self, new: str) -> None:
        self.new = new
        self.former = self.owner = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self.owner, self.former = owner.__name__, name

    def __get__(self, one: Any, owner: type | None = None) -> Any:
        if one is None:
            return self
        self._warn()
        return getattr(one, self.new)

    def __set__(self, one: Any, value: Any) -> None:
        self._warn()
        setattr(one, self.new, value)

    def _warn(self) -> None:
        warn_renamed(f"{self.owner}.{self.former}", self.new)


def present_name(thing: Any, name: str) -> str:
    """The present name of an attribute of an object; a former one warns."""
    found = getattr(type(thing), name, None)
    if not isinstance(found, Former):
        return name
    found._warn()
    return found.new


def present_names(cls: type) -> list[str]:
    """Public attributes of a class, without former names."""
    return [name for name in dir(cls) if not name.startswith("_") and not isinstance(getattr(cls, name, None), Former)]


def former_arguments(**names: str) -> Callable[[F], F]:
    """A decorator: keywords under their former names are taken as the present ones, with a warning."""

    def decorate(function: F) -> F:
        @functools.wraps(function)
        def call(*args: Any, **keywords: Any) -> Any:
            return function(*args, **present_arguments(function.__qualname__.removesuffix(".__init__"), names, keywords))

        call.former = names  # type: ignore[attr-defined]
        return call  # type: ignore[return-value]

    return decorate


def present_arguments(who: str, names: Mapping[str, str], keywords: dict[str, Any]) -> dict[str, Any]:
    """Keywords by their present names; `names` maps the former ones to these."""
    for former in [word for word in keywords if word in names]:
        if names[former] in keywords:
            raise ArgumentError(f"{who}: {former!r} is the former name of {names[former]!r}; one of the two, got both")
        if former not in BRITISH:
            warn_renamed(f"{who}({former}=)", f"{names[former]}=")
        keywords = {names.get(word, word) if word == former else word: value for word, value in keywords.items()}
    return keywords


class _FormerModule(ModuleType):
    """Has the attributes of the module at its new place, which is imported when the first of them is used."""

    def __init__(self, name: str, place: str) -> None:
        super().__init__(name, f"The former name of `{place}`.")
        self._place = place

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(import_module(self._place), name)

    def __dir__(self) -> list[str]:
        return dir(import_module(self._place))


def stand_for(name: str, place: str, parts: str = "", **moved: str) -> None:
    """Let `import name` give the module at `place`; `parts` are modules of it, `moved` those that went elsewhere."""
    former = name.replace(".former", "")
    warn_renamed(former, place, 4)  # of an import: machinery of imports does not count
    module = _FormerModule(former, place)
    module.__path__ = []
    sys.modules[name] = sys.modules[former] = module
    for part, where in ({part: f"{place}.{part}" for part in parts.split()} | moved).items():
        sys.modules[f"{former}.{part}"] = inner = _FormerModule(f"{former}.{part}", where)
        setattr(module, part, inner)
