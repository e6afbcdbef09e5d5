"""XML read with care: bounded size and depth, numbers checked, errors that name file, tag and line."""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, NoReturn
from xml.parsers import expat

import numpy as np

from sharnir.errors import SceneError, SceneFileError
from sharnir.geometry.shapes import Array

MAX_FILE_BYTES = 64 * 2**20
"""Largest file that is read, a mesh likewise."""
MAX_ELEMENTS = 1_000_000
MAX_XML_DEPTH = 100
LARGEST_VALUE = 1e30
"""Number of a file, in its unit."""

log = logging.getLogger("sharnir")

FilePath = str | PathLike[str]


_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_INFINITY = re.compile(r"[+-]?inf(inity)?", re.ASCII | re.IGNORECASE)


@dataclass(slots=True, eq=False)
class Element:
    """An element of the file, and the questions a reader asks of it.

    `notes` is one list for all elements of a file: what a reader changed, left out, or found odd, a line each.
    """

    file: str
    line: int
    tag: str
    attributes: dict[str, str]
    notes: list[str]
    parent: Element | None = None
    children: list[Element] = field(default_factory=list)

    def where(self, *attributes: str) -> str:
        """Such as `ur5.urdf:41: <joint name='elbow'> <axis xyz='0 0 0'>`, with the attributes in question."""
        owner: Element | None = self
        while owner is not None and owner.tag not in ("link", "joint"):
            owner = owner.parent
        parts = [] if owner is None or owner is self else [owner._tag("name")]
        named = ("name", *attributes) if owner is self else attributes
        return f"{self.file}:{self.line}: {' '.join([*parts, self._tag(*named)])}"

    def _tag(self, *attributes: str) -> str:
        values = {a: self.attributes[a] for a in dict.fromkeys(attributes) if a in self.attributes}
        shown = [f" {a}={v if len(v) <= 80 else v[:77] + '...'!r}" for a, v in values.items()]
        return f"<{self.tag}{''.join(shown)}>"

    def refuse(self, allowed: str, *attributes: str) -> NoReturn:
        """Raise an error that says what is allowed here."""
        raise SceneError(f"{self.where(*attributes)}: {allowed}")

    def note(self, what: str, *attributes: str, level: int = logging.WARNING) -> None:
        """Keep a line for the user, and log it: something of the file is changed, or odd."""
        self.notes.append(f"{self.where(*attributes)}: {what}")
        log.log(level, "%s", self.notes[-1])

    def leave_out(self, why: str, *attributes: str) -> None:
        """Note that this element is not in the scene, which no motion depends on."""
        self.note(f"left out, {why}", *attributes, level=logging.INFO)

    def all(self, tag: str) -> list[Element]:
        """The child elements of that tag."""
        return [child for child in self.children if child.tag == tag]

    def one(self, tag: str) -> Element | None:
        """The child element of that tag, of which there is at most one."""
        found = self.all(tag)
        if len(found) > 1:
            found[1].refuse(f"at most one <{tag}>, the first is on line {found[0].line}")
        return found[0] if found else None

    def need(self, tag: str) -> Element:
        """The child element of that tag, which has to be there."""
        found = self.one(tag)
        if found is None:
            self.refuse(f"needs <{tag}>")
        return found

    def text(self, attribute: str) -> str:
        """An attribute that has to be there."""
        if not self.attributes.get(attribute):
            self.refuse(f"needs the attribute {attribute!r}, not empty", attribute)
        return self.attributes[attribute]

    def numbers(self, attribute: str, count: int, default: Sequence[float] | None = None) -> Array:
        """An attribute of `count` finite numbers."""
        if attribute not in self.attributes and default is not None:
            return np.array(default, float)
        words = self.text(attribute).split()
        values = [float(w) if _NUMBER.fullmatch(w) else math.nan for w in words]
        if len(values) != count or not all(map(math.isfinite, values)):
            self.refuse("a finite number" if count == 1 else f"{count} finite numbers", attribute)
        if max(map(abs, values), default=0.0) > LARGEST_VALUE:  # whose squares and products would overflow
            self.refuse(f"numbers of at most {LARGEST_VALUE:g}", attribute)
        return np.array(values)

    def number(self, attribute: str, default: float | None = None, *, least: float = -math.inf, infinite: bool = False) -> float:
        """A number of at least `least`, finite unless `infinite`."""
        word = self.attributes.get(attribute, "").strip()
        if infinite and _INFINITY.fullmatch(word):
            value = float(word)
        else:
            value = float(self.numbers(attribute, 1, None if default is None else (default,))[0])
        if value < least:
            self.refuse(f"a number of at least {least:g}", attribute)
        return value


@contextmanager
def naming(file: Path) -> Iterator[None]:
    """Errors of what is made of a file name that file."""
    try:
        yield
    except SceneFileError:
        raise
    except SceneError as error:
        if str(error).startswith((f"{file.name}:", f"{file}:", "load_")):
            raise
        raise SceneError(f"{file.name}: {error}") from None


def read_xml(file: Path) -> Element:
    """The root element. A document type is refused, and with it every entity but the five of XML itself."""
    data = read_bytes(file)
    root: list[Element] = []
    open_elements: list[Element] = []
    notes: list[str] = []
    count = 0

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal count
        count += 1
        line = parser.CurrentLineNumber
        if count > MAX_ELEMENTS or len(open_elements) >= MAX_XML_DEPTH:
            raise SceneError(f"{file.name}:{line}: <{tag}>: at most {MAX_ELEMENTS} elements, {MAX_XML_DEPTH} inside each other")
        parent = open_elements[-1] if open_elements else None
        element = Element(file.name, line, tag, attributes, notes, parent)
        (root if parent is None else parent.children).append(element)
        open_elements.append(element)

    parser = make_parser(file.name)
    parser.StartElementHandler = start
    parser.EndElementHandler = lambda _: open_elements.pop()
    parse(parser, file.name, data)
    return root[0]


def read_bytes(file: Path) -> bytes:
    """All of a regular file of sane size."""
    try:
        if not file.is_file():
            raise SceneError(f"{file}: no such file")
        with file.open("rb") as stream:
            data = stream.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise SceneError(f"{file}: cannot be read: {error.strerror}") from None
    if len(data) > MAX_FILE_BYTES:
        raise SceneError(f"{file}: at most {MAX_FILE_BYTES // 2**20} MB are read")
    return data


def make_parser(name: str) -> expat.XMLParserType:
    """A parser that refuses document types and entities."""

    def refuse(*_: Any) -> NoReturn:
        raise SceneError(f"{name}:{parser.CurrentLineNumber}: <!DOCTYPE> and entities are refused")

    parser = expat.ParserCreate()
    parser.StartDoctypeDeclHandler = refuse
    parser.EntityDeclHandler = refuse
    return parser


def parse(parser: expat.XMLParserType, name: str, data: bytes) -> None:
    """Run a parser over a file, or say on which line that file is no XML."""
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        raise SceneError(f"{name}:{error.lineno}: no well-formed XML: {expat.ErrorString(error.code)}") from None
    except (ValueError, LookupError) as error:  # of an encoding that is unknown here
        if isinstance(error, SceneError):
            raise
        raise SceneError(f"{name}:1: no well-formed XML: {error}") from None
