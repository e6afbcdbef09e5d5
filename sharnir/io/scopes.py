"""Where a value of a scene file stands: documents, the names that expressions may use, parts that are placed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sharnir.core.renamed import warn_renamed
from sharnir.errors import SceneError
from sharnir.io.lines import Keys, line_of, shown
from sharnir.io.placing import HERE, Pose


class Failed(Exception):
    """Something is wrong and has been noted; what needs it is not looked at."""


@dataclass(eq=False)
class Document:
    """A file, or a part of one, as parsed; `base` is the path of keys at which its tables start."""

    file: str
    folder: Path
    data: dict[str, Any]
    lines: dict[Keys, int]
    base: Keys = ()

    def where(self, path: Keys) -> str:
        """Such as `door.toml:7: body.door.mass`."""
        return f"{self.file}:{line_of(self.lines, (*self.base, *path))}: {shown((*self.base, *path))}".rstrip(": ")

    def rename_tables(self, names: Mapping[str, str]) -> None:
        """Take tables under their former names as those of the present ones; each says so."""
        at = len(self.base)
        for former, new in names.items():
            if former in self.data:
                warn_renamed(f"{self.where((former,))}: the table [{former}]", f"[{new}]")
                old = self.data.pop(former)
                self.data[new] = {**self.data.get(new, {}), **old} if isinstance(old, dict) else old
                for path in [p for p in self.lines if len(p) > at and p[at] == former]:
                    self.lines[(*path[:at], new, *path[at + 1 :])] = self.lines.pop(path)


@dataclass(eq=False)
class Scope:
    """Where a value stands: names that expressions may use, and the prefix, pose and own names of a part that is placed."""

    names: Mapping[str, Any]
    prefix: str = ""
    pose: Pose = HERE
    own: frozenset[str] = frozenset()
    depth: int = 0

    def refer(self, text: str, target: bool) -> str:
        """A name as it is in the scene: with the prefix where it is one of the part's own."""
        if target and (found := re.fullmatch(r"(\w+)/(.+)\.(\w+)", text)):
            return f"{found[1]}/{self.refer(found[2], False)}.{found[3]}"
        mine = text in self.own or any(text.startswith(f"{name} ") for name in self.own)
        return self.prefix + text if mine else text


@dataclass(eq=False)
class Entry:
    """A table that is a call, with the document and the key path it stands at."""

    section: str
    name: str | None
    data: Any
    document: Document
    path: Keys


@dataclass
class Names(Mapping[str, Any]):
    """Parameters by name, evaluated when they are first asked for, in any order; beneath them those around a part."""

    value: Callable[..., Any]  # what evaluates them
    raw: dict[str, tuple[Any, Document, Keys]]
    given: dict[str, Any]
    around: Mapping[str, Any] = field(default_factory=dict)
    found: dict[str, Any] = field(default_factory=dict)
    open: list[str] = field(default_factory=list)

    def __getitem__(self, name: str) -> Any:
        if name in self.given:
            return self.given[name]
        if name not in self.raw:
            return self.around[name]
        if name not in self.found:
            data, document, path = self.raw[name]
            if name in self.open:
                raise SceneError(f"the parameter {name!r} is given by itself: {' → '.join([*self.open, name])}")
            self.open.append(name)
            try:
                self.found[name] = self.value(data, Scope(self), document, path)
            finally:
                self.open.pop()
        return self.found[name]

    def __iter__(self) -> Iterator[str]:
        return iter({**self.around, **self.raw, **self.given})

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __contains__(self, name: object) -> bool:
        return name in self.given or name in self.raw or name in self.around
