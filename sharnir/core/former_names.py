"""Modules under the names of an earlier release: they pass on what now stands elsewhere, and warn once."""

from __future__ import annotations

import sys
import warnings
from importlib import import_module
from types import ModuleType
from typing import Any


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
    warnings.warn(f"{former} is now {place}; the former name goes in 0.4.0", FutureWarning, stacklevel=3)
    module = _FormerModule(former, place)
    module.__path__ = []
    sys.modules[name] = sys.modules[former] = module
    for part, where in ({part: f"{place}.{part}" for part in parts.split()} | moved).items():
        sys.modules[f"{former}.{part}"] = inner = _FormerModule(f"{former}.{part}", where)
        setattr(module, part, inner)
