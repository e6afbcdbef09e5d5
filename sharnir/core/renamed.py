"""Former public names: they do what their new names do, and warn, until 0.4.0."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from sharnir.errors import ArgumentError, callers_level

F = TypeVar("F", bound=Callable[..., Any])
BRITISH = ("tyre",)  # spellings that stay, without a warning


def warn_renamed(former: str, new: str) -> None:
    """Tell the caller outside the package that a name has changed."""
    words = f"{former} is now {new}; the former name goes in 0.4.0"
    warnings.warn(words, FutureWarning, stacklevel=callers_level())


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
