"""Scene files in: TOML, one to one with the methods of a Scene; see docs/tutorials/files.md for what a file may say.

    file ── parse ──▶ Document (tables, lines) ── includes ──▶ Scope (documents, names) ── entries in PHASES ──▶ Scene

Every entry is a call: `[body.door]` is `scene.add_body("door", …)`, its keys are that method's arguments, and nothing is
described here a second time. What is wrong is collected with file, line and key path, so that one reading tells everything.
"""

from __future__ import annotations

import contextlib
import importlib
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from sharnir.core.misspellings import by_name
from sharnir.core.renamed import present_arguments
from sharnir.engine.rope.describe import MAX_SEGMENTS
from sharnir.errors import SceneError, SceneFileError
from sharnir.geometry.terrain import Terrain
from sharnir.io.expressions import evaluate, fill_in
from sharnir.io.folders import Folders
from sharnir.io.lines import Keys, key_lines, line_of
from sharnir.io.objects import PATHS, array, kinds, machines, meant, misfit, takes
from sharnir.io.placing import HERE, compose, place_arguments
from sharnir.io.scopes import Document, Entry, Failed, Names, Scope
from sharnir.io.xml import FilePath, read_bytes
from sharnir.model.joint_types import Gear, Joint
from sharnir.scene.scene import Scene

MAX_NESTED, MAX_ENTRIES = 20, 200_000
"""Parts and files inside each other; entries of a scene."""
MAX_COPIES = 10_000
"""Entries that counts and parts make beside those that are written out, at most: a small file stays a small scene."""
MAX_PLACED, MAX_OPENED = 2_000, 500
"""Parts that are placed, and files that are opened, at most."""
MAX_NUMBERS = 20_000_000
"""Numbers of all arrays, fields of ground and ropes of a scene file together, at most."""
SEGMENT = 200  # numbers that a segment of a rope counts as
RULE_SECTIONS = {"ignore": "ignore", "pair": "set_pair", "tie": "tie_rope", "drive": "set_drive"}
SECTIONS = {
    name[4:]: name for name, method in vars(Scene).items() if name.startswith("add_") and callable(method)
} | RULE_SECTIONS
"""Tables of a file, and the method of a scene that each is."""
FORMER_SECTIONS = {"control": "input", "cast_wheel": "raycast_wheel"}
"""Tables under their former names, which warn."""
NAMED_SECTIONS = {section: "name" in takes(getattr(Scene, method), True).needed for section, method in SECTIONS.items()}
SECTION_ORDER = (
    "ground", "body", "place", "machine", "frame", "joint", "gear", "spring", "cable", "rope", "tie", "belt", "raycast_wheel",
    "drive", "ignore", "pair",
)  # fmt: skip
PHASES = (*SECTION_ORDER, *(section for section in SECTIONS if section not in (*SECTION_ORDER, "terrain")))
OTHERS = ("include", "parameters", "scene", "simulation", "part", "place", "machine")
REFERENCES = (
    "parent", "child", "a", "b", "body", "joint", "joint_a", "joint_b", "attach", "rope", "path", "target", "on", "to", "frame",
    "ignore", "relative_to",
)  # fmt: skip
"""Keys whose texts name objects of the scene: inside a part, those of the part first."""

OTHER_TOOLS = {".urdf": ("urdf", "load_urdf"), ".xml": ("mjcf", "load_mjcf"), ".mjcf": ("mjcf", "load_mjcf")}
SCENE_SUFFIXES = (".toml", *OTHER_TOOLS)


@by_name
def load_scene(path: FilePath, *, roots: Sequence[FilePath] = (), **parameters: Any) -> Scene:
    """The scene of a file: TOML (.toml), a robot (.urdf) or MJCF (.xml, .mjcf). Of these, TOML takes parameters.

    Args:
        path: the file. Files it includes and meshes are found from its folder.
        roots: folders outside of which no file is read; the file's own if empty.
        parameters: values instead of those of its table `[parameters]`.

    A SceneFileError names everything that is wrong, each with file, line, key and what is allowed.
    """
    file = Path(path)
    if file.suffix.lower() in OTHER_TOOLS:
        if parameters:
            raise SceneError(f"{file}: parameters are for .toml files, got {', '.join(parameters)}")
        module, function = OTHER_TOOLS[file.suffix.lower()]
        found: Scene = getattr(importlib.import_module(f"sharnir.io.{module}"), function)(file, roots=roots)
        return found
    reader = Reader(roots)
    scene = reader.read(file, parameters)
    if reader.problems:
        raise SceneFileError(reader.sorted_problems())
    return scene


def read_text(text: str, name: str = "scene.toml", folder: FilePath = ".", roots: Sequence[FilePath] = ()) -> Scene:
    """The scene of a TOML text, as of a file of that name in that folder."""
    reader = Reader(roots)
    reader.folders = Folders("load_scene", Path(folder), roots)
    scene = reader.read_document(reader.parse(text.encode(), name, Path(folder)), {})
    if reader.problems:
        raise SceneFileError(reader.sorted_problems())
    return scene


class Reader:
    """Reads files into a scene, and keeps what is wrong."""

    def __init__(self, roots: Sequence[FilePath] = ()) -> None:
        self.roots, self.folders = roots, Folders("load_scene", Path(), roots)
        self.problems: list[str] = []
        self.scene = Scene()
        self.failed: set[str] = set()
        self.files: list[Path] = []
        self.entries = self.copies = self.placed = self.opened = self.included_files = self.numbers = 0
        self.parsed: dict[Path, Document] = {}

    def sorted_problems(self) -> list[str]:
        """All problems, sorted by line within each file; files in the order of their first problem."""
        found = [(*[*problem.split(":", 2), ""][:2], problem) for problem in self.problems]
        files = list(dict.fromkeys(file for file, *_ in found))
        return [p for _, _, p in sorted(found, key=lambda f: (files.index(f[0]), int(f[1]) if f[1].isdigit() else 0))]

    def wrong(self, document: Document, path: Keys, words: object) -> Failed:
        """Keep what is wrong at a key."""
        line = f"{document.where(path)}: {words}"
        if line not in self.problems:
            self.problems.append(line)
        return Failed()

    # ---- files ----

    def read(self, file: Path, parameters: dict[str, Any]) -> Scene:
        """A file as a scene; see `problems`."""
        self.folders = Folders("load_scene", file.parent, self.roots)
        try:
            document = self.open(file)
        except Failed:
            return self.scene
        self.files.append(file.resolve())
        return self.read_document(document, parameters)

    def open(self, file: Path) -> Document:
        """A file, parsed; one that was opened before as it was then."""
        found = self.parsed.get(file)
        if found is not None:
            return found
        self.opened += 1
        try:
            if self.opened > MAX_OPENED:
                raise SceneError(f"{file}: a scene opens at most {MAX_OPENED} files")
            data = read_bytes(file)
        except SceneError as error:
            self.problems.append(str(error))
            raise Failed from None
        document = self.parsed[file] = self.parse(data, file.name, file.parent)
        return document

    def open_named(self, file: Path, document: Document, path: Keys) -> Document:
        """A file that another one names; that it cannot be read is told with the place that names it."""
        try:
            return self.open(file)
        except Failed:
            self.problems[-1] = f"{document.where(path)}: {self.problems[-1]}"
            raise

    def parse(self, data: bytes, name: str, folder: Path) -> Document:
        """A TOML text; where it is none, a document without tables."""
        document = Document(name, folder, {}, {})
        try:
            text = data.decode()
            document.lines = key_lines(text)
            document.data = tomllib.loads(text)
        except UnicodeDecodeError as error:
            line = data[: error.start].count(b"\n") + 1
            self.problems.append(f"{name}:{line}: no text in UTF-8: byte {data[error.start]:#04x}")
        except tomllib.TOMLDecodeError as error:
            found = re.search(r"\(at line (\d+), column \d+\)", str(error))
            line = int(found[1]) if found else text.count("\n") + 1
            self.problems.append(f"{name}:{line}: no TOML: {str(error).split(' (at ')[0]}")
        except (RecursionError, ValueError, OverflowError) as error:
            self.problems.append(f"{name}:1: no TOML that can be read: {error or 'values inside values, too many'}")
        return document

    def read_document(self, document: Document, parameters: dict[str, Any]) -> Scene:
        """A parsed file as a scene."""
        with np.errstate(all="ignore"):  # what overflows is not finite, which is refused by name
            documents = self.with_included(document)
            names = self.parameters(documents, parameters, document)
            scope = Scope(names)
            self.head(documents, scope)
            self.fill(documents, scope)
        return self.scene

    def with_included(self, document: Document) -> list[Document]:
        """A document after those it includes, each once."""
        out: list[Document] = []
        for name, path in self.included(document):
            if not self.folders.contain(document.folder / name):
                self.wrong(document, path, f"{self.folders}, got {name!r}")
                continue
            file = (document.folder / name).resolve()
            if file in self.files:
                self.wrong(document, path, f"includes itself: {' → '.join(f.name for f in [*self.files, file])}")
                continue
            self.included_files += 1
            if len(self.files) >= MAX_NESTED or self.included_files > MAX_OPENED:
                self.wrong(document, path, f"at most {MAX_NESTED} files inside each other, and {MAX_OPENED} in all")
                continue
            self.files.append(file)
            with contextlib.suppress(Failed):
                out += self.with_included(self.open_named(file, document, path))
            self.files.pop()
        self.check_sections(document)
        return [*out, document]

    def included(self, document: Document) -> list[tuple[str, Keys]]:
        given = document.data.get("include", [])
        names = [given] if isinstance(given, str) else given
        if not isinstance(names, list) or not all(isinstance(name, str) and "\0" not in name for name in names):
            self.wrong(document, ("include",), f"a file, or a list of files, got {given!r}")
            return []
        return [(name, ("include",)) for name in dict.fromkeys(names)]

    def check_sections(self, document: Document) -> None:
        """Note tables that nobody reads."""
        document.rename_tables(FORMER_SECTIONS)
        known = (*OTHERS, *SECTIONS)
        for key, data in document.data.items():
            if key not in known:
                self.wrong(document, (key,), f"an unknown table; {meant(key, known)}")
            elif key not in ("include", "ground", *RULE_SECTIONS, "belt") and not isinstance(data, dict):
                self.wrong(document, (key,), f"a table, got {data!r}")

    def parameters(self, documents: list[Document], given: dict[str, Any], top: Document, around: Any = None) -> Names:
        """The parameters of documents, the later one's first, and values given instead."""
        raw: dict[str, tuple[Any, Document, Keys]] = {}
        for document in documents:
            table = document.data.get("parameters", {})
            for name, data in (table if isinstance(table, dict) else {}).items():
                if not name.isidentifier():
                    self.wrong(document, ("parameters", name), "a name of letters, digits and _, so that expressions can use it")
                raw[name] = data, document, ("parameters", name)
        names = Names(self.value, raw, dict(given), around or {})
        for name, value in given.items():
            if name not in raw:
                raise SceneError(f"{top.file}: there is no parameter {name!r}; {meant(name, raw) if raw else 'it has none'}")
            kind = type(raw[name][0])
            if kind in (int, float, bool) and (not isinstance(value, int | float) or isinstance(value, bool) != (kind is bool)):
                raise SceneError(f"{top.file}: the parameter {name!r} is {raw[name][0]!r} in the file, a number, got {value!r}")
        for name in raw:  # what is wrong with one is told even if nothing uses it
            try:
                _ = names[name]
            except SceneError as error:
                self.wrong(raw[name][1], raw[name][2], error)
            except Failed:
                pass
        return names

    def head(self, documents: list[Document], scope: Scope) -> None:
        """Gravity, contact, and what a simulation of it is to be like."""
        from sharnir.runtime.simulation import Simulation

        wanted: dict[str, tuple[dict[str, Any], Any]] = {"scene": ({}, Scene), "simulation": ({}, Simulation)}
        for document in documents:
            for key, (found, kind) in wanted.items():
                data = document.data.get(key, {})
                if isinstance(data, dict):
                    try:
                        found |= self.arguments(kind, data, scope, document, (key,), hidden=("scene",))
                    except Failed:
                        continue
        try:
            self.scene = Scene(**wanted["scene"][0])
        except SceneError as error:
            self.wrong(documents[-1], ("scene",), error)
        self.scene.options = wanted["simulation"][0]

    # ---- entries ----

    def fill(self, documents: list[Document], scope: Scope) -> None:
        """Everything that is added, in the order in which things need each other, and else as the files have it."""
        entries = [entry for document in documents for entry in self.entries_of(document)]
        scope = replace(scope, own=frozenset(self.own_names(entries, scope))) if scope.prefix else scope
        for phase in PHASES:
            for entry in entries:
                if entry.section == phase:
                    self.add(entry, scope, documents)

    def entries_of(self, document: Document) -> list[Entry]:
        """The entries of a document; bodies and terrains, which are bodies too, in the order of their lines."""
        out: list[Entry] = []
        for section in (*SECTIONS, "place", "machine"):
            data = document.data.get(section)
            if NAMED_SECTIONS.get(section, True):
                for name, table in (data if isinstance(data, dict) else {}).items():
                    gear = section == "joint" and isinstance(table, dict) and table.get("type") == "Gear"
                    out.append(Entry("gear" if gear else section, name, table, document, (section, name)))
            elif data is not None:
                tables = data if isinstance(data, list) else [data]
                out += [Entry(section, None, t, document, (section, i)) for i, t in enumerate(tables)]
        bodies = [e for e in out if e.section in ("body", "terrain")]
        bodies.sort(key=lambda e: line_of(document.lines, (*document.base, *e.path)))
        return [replace(e, section="body") for e in bodies] + [e for e in out if e.section not in ("body", "terrain")]

    def own_names(self, entries: list[Entry], scope: Scope) -> Iterator[str]:
        """Names that a part gives to its objects, without its prefix."""
        for entry in entries:
            if entry.name is not None and isinstance(entry.data, dict):
                try:
                    for inner in self.repeated(entry, scope):
                        yield fill_in(entry.name, inner.names)
                except (SceneError, Failed):
                    continue

    def add(self, entry: Entry, scope: Scope, documents: list[Document]) -> None:
        """Carry out an entry, as often as it is repeated; what is wrong is kept."""
        document, path = entry.document, entry.path
        if not isinstance(entry.data, dict):
            self.wrong(document, path, f"a table, got {entry.data!r}")
            return
        try:
            for inner in self.repeated(entry, scope):
                self.entries += 1
                if self.entries > MAX_ENTRIES:
                    raise self.wrong(document, path, f"a scene has at most {MAX_ENTRIES} entries")
                if scope.depth:
                    self.copy(f"part {scope.prefix!r}")
                name = None
                try:
                    name = None if entry.name is None else fill_in(entry.name, inner.names)
                    self.add_one(entry, name, inner, documents)
                except SceneError as error:
                    self.failed.add(str(name))
                    self.wrong(document, path, error)
                except Failed:
                    if name is not None:
                        self.failed.add(inner.prefix + name)
        except SceneError as error:
            self.wrong(document, (*path, "repeat"), error)
        except Failed:
            pass

    def repeated(self, entry: Entry, scope: Scope) -> Iterator[Scope]:
        """The scope of every copy: `repeat = {i = 5, j = "= i + 1"}` counts i from 0 to 4 and, for each, j from 0 to i."""
        given = entry.data.get("repeat")
        if given is None:
            yield scope
            return
        if not isinstance(given, dict) or not given or not all(name.isidentifier() for name in given):
            raise self.wrong(entry.document, (*entry.path, "repeat"), f"a table of counts, such as {{i = 5}}, got {given!r}")
        yield from self._counted(entry, scope, list(given.items()))

    def _counted(self, entry: Entry, scope: Scope, left: list[tuple[str, Any]]) -> Iterator[Scope]:
        if not left:
            yield scope
            return
        name, data = left[0]
        count = self.value(data, scope, entry.document, (*entry.path, "repeat", name))
        ends = count if isinstance(count, list) else [0, count]
        if (
            len(ends) != 2
            or not all(type(end) is int and abs(end) <= MAX_ENTRIES for end in ends)
            or ends[1] - ends[0] > MAX_ENTRIES
        ):
            raise SceneError(f"{name} is a count or [first, one past the last], whole numbers up to {MAX_ENTRIES}, got {count!r}")
        for i in range(*ends):
            self.copy(f"{name} is {count!r}")
            yield from self._counted(entry, replace(scope, names={**scope.names, name: i}), left[1:])

    def copy(self, why: str) -> None:
        """Count an entry that is not written out."""
        self.copies += 1
        if self.copies > MAX_COPIES:
            raise SceneError(f"counts and parts of a scene file make at most {MAX_COPIES} entries; {why}")

    def add_one(self, entry: Entry, name: str | None, scope: Scope, documents: list[Document]) -> None:
        """One copy of an entry."""
        document, path = entry.document, entry.path
        data = {key: value for key, value in entry.data.items() if key != "repeat"}
        if entry.section == "place":
            return self.place(name or "", data, scope, document, path, documents)
        if entry.section == "machine":
            return self.add_machine(scope.prefix + (name or ""), data, scope, document, path)
        section = path[0] if isinstance(path[0], str) else ""
        method = getattr(self.scene, SECTIONS[section])
        function = getattr(Scene, SECTIONS[section])
        first = {"name": scope.prefix + name} if name is not None else {}
        if section == "joint":
            cls = self.kind(
                data, document, path, [k for k, v in kinds().items() if isinstance(v, type) and issubclass(v, Joint | Gear)]
            )
            both = {**takes(function, True).hints, **takes(cls).hints}
            self.note_unknown([k for k in data if k not in ("name", "joint")], [*both, "type"], document, path, data)
            mine = {k: v for k, v in data.items() if k in takes(cls).hints}
            rest = {k: v for k, v in data.items() if k in takes(function, True).hints and k not in ("name", "joint")}
            first["joint"] = self.make(cls, mine, scope, document, path)
        else:
            rest = data
        arguments = self.arguments(function, rest, scope, document, path, first, owned=True)
        arguments = place_arguments(section, arguments, scope.pose) if scope.pose is not HERE else arguments
        self.look_for_failed(arguments)
        if section == "rope" and isinstance(arguments.get("segments"), int):
            self.spend(SEGMENT * max(0, min(arguments["segments"], MAX_SEGMENTS)), document, (*path, "segments"))
        if isinstance(arguments.get("visual"), str):
            arguments["visual"] = self.file(arguments["visual"], document, (*path, "visual"))
        self.call(method, {**first, **arguments}, document, path)

    def file(self, name: str, document: Document, path: Keys) -> str:
        """A file that a scene file names, found from its folder."""
        if not self.folders.contain(document.folder / name):
            raise self.wrong(document, path, f"{self.folders}, got {name!r}")
        if not (document.folder / name).is_file():
            raise self.wrong(document, path, f"no such file: {name!r}")
        return str(document.folder / name)

    def add_machine(self, name: str, data: dict[str, Any], scope: Scope, document: Document, path: Keys) -> None:
        """A machine by its class: keys are its own fields, and the arguments of its `add`."""
        cls = self.kind(data, document, path, machines())
        data = present_arguments(document.where(path), {"controls": "inputs"}, data)
        own, placing = takes(cls).hints, takes(cls.add, True).hints
        self.note_unknown(list(data), [*own, *(k for k in placing if k != "scene"), "type", "inputs"], document, path, data)
        inputs = data.pop("inputs", True)
        fields = {k: v for k, v in data.items() if k in own and k != "name"}
        rest = {k: v for k, v in data.items() if k in placing and k not in own and k != "name"}
        called = {"name": name} if "name" in own else {}
        machine = self.make(cls, fields, scope, document, path, called)
        first = {"scene": self.scene} | ({"name": name} if "name" in placing else {})
        arguments = self.arguments(cls.add, rest, scope, document, path, first, owned=True)
        arguments = place_arguments("machine", arguments, scope.pose) if scope.pose is not HERE else arguments
        self.look_for_failed(arguments)
        self.call(machine.add, {**first, **arguments}, document, path)
        if not isinstance(inputs, bool):
            raise self.wrong(document, (*path, "inputs"), f"true or false, got {inputs!r}")
        for given in machine.inputs() if inputs and hasattr(machine, "inputs") else ():
            self.call(self.scene.add_input, {"name": given}, document, path)

    def place(
        self, name: str, data: dict[str, Any], scope: Scope, document: Document, path: Keys, documents: list[Document]
    ) -> None:
        """A part or another file, put somewhere, its names with a prefix."""
        self.note_unknown(list(data), ["part", "file", "prefix", "position", "rotation", "set"], document, path, data)
        given = {k: self.value(v, scope, document, (*path, k)) for k, v in data.items()}
        if scope.depth >= MAX_NESTED:
            raise self.wrong(document, path, f"parts inside each other at most {MAX_NESTED} deep; is it inside itself?")
        self.placed += 1
        if self.placed > MAX_PLACED:
            raise self.wrong(document, path, f"at most {MAX_PLACED} parts are placed in a scene")
        if ("part" in given) == ("file" in given):
            raise self.wrong(document, path, 'needs part = "…" or file = "…", one of them')
        if "file" in given:
            if not isinstance(given["file"], str) or "\0" in given["file"]:
                raise self.wrong(document, (*path, "file"), f"the name of a file, got {given['file']!r}")
            if not self.folders.contain(document.folder / given["file"]):
                raise self.wrong(document, (*path, "file"), f"{self.folders}, got {given['file']!r}")
            top = self.open_named(document.folder / given["file"], document, (*path, "file"))
            inner = self.with_included(top)
            around: Mapping[str, Any] = {}
        else:
            top = self.part(given["part"], document, path, documents)
            self.check_sections(top)
            inner = [top]
            around = scope.names
        sets, prefix = given.get("set", {}), given.get("prefix", f"{name} ")
        if not isinstance(sets, dict) or not isinstance(prefix, str):
            raise self.wrong(document, path, f"set is a table of parameters and prefix a text, got {sets!r}, {prefix!r}")
        pose = compose(scope.pose, given, f"place {name!r}")
        names = self.parameters(inner, sets, top, around)
        self.fill(inner, Scope(names, scope.prefix + prefix, pose, frozenset(), scope.depth + 1))

    def part(self, name: Any, document: Document, path: Keys, documents: list[Document]) -> Document:
        """A table `[part.name]` of these documents, as a document of its own."""
        known = {k: d for d in documents for k in (d.data.get("part", {}) if isinstance(d.data.get("part"), dict) else {})}
        if name not in known or not isinstance(known[name].data["part"][name], dict):
            raise self.wrong(
                document, (*path, "part"), f"{name!r} is no part; {meant(str(name), known) if known else 'there is none'}"
            )
        holder = known[name]
        return Document(holder.file, holder.folder, holder.data["part"][name], holder.lines, (*holder.base, "part", name))

    # ---- values ----

    def value(self, data: Any, scope: Scope, document: Document, path: Keys, refers: bool = False) -> Any:
        """What a value of a file means: expressions, texts with values in them, objects by type."""
        refers = refers or (bool(path) and path[-1] in REFERENCES)
        try:
            if isinstance(data, str):
                if data.startswith("="):
                    return evaluate(data[1:], scope.names)
                text = fill_in(data, scope.names)
                return scope.refer(text, path[-1] == "target") if refers and scope.own else text
            if isinstance(data, list):
                return [self.value(item, scope, document, (*path, i), refers) for i, item in enumerate(data)]
            if isinstance(data, dict):
                if "type" not in data:
                    return {k: self.value(v, scope, document, (*path, k), refers) for k, v in data.items()}
                kind = self.kind(data, document, path, list(kinds()))
                rest = {k: v for k, v in data.items() if k != "type"}
                self.note_unknown(list(rest), list(takes(kind).hints), document, path, data)
                return self.make(kind, rest, scope, document, path, refers=refers)
        except SceneError as error:
            raise self.wrong(document, path, error) from None
        except KeyError:
            raise Failed from None  # a parameter that is wrong has been told of
        if data is None or isinstance(data, bool | int | float):
            return data
        raise self.wrong(document, path, f"a number, a text, true, false, a list or a table, got {data!r}")

    def kind(self, data: dict[str, Any], document: Document, path: Keys, allowed: list[str]) -> Any:
        """The class that a table names."""
        name = data.get("type")
        if not isinstance(name, str) or name not in allowed:
            words = "needs type" if name is None else f"type {name!r} is unknown"
            raise self.wrong(document, (*path, "type"), f"{words}; {meant(str(name), allowed)}")
        return kinds()[name]

    def note_unknown(self, keys: list[str], known: list[str], document: Document, path: Keys, data: dict[str, Any]) -> None:
        for key in keys:
            if key not in known:
                self.wrong(document, (*path, key), f"unknown key, got {data[key]!r}; {meant(key, known)}")

    def arguments(
        self, function: Any, data: dict[str, Any], scope: Scope, document: Document, path: Keys,
        first: Mapping[str, Any] = {}, hidden: tuple[str, ...] = (), refers: bool = False, owned: bool = False,
    ) -> dict[str, Any]:  # fmt: skip
        """Arguments of a function from a table, each checked as far as its type tells; all that is wrong is kept."""
        former = getattr(vars(function).get("__init__") if isinstance(function, type) else function, "former", {})
        data = present_arguments(document.where(path), former, data)
        wants = takes(function, owned)
        self.note_unknown(
            [k for k in data if k not in first or k == "name"],
            [k for k in wants.hints if k not in (*first, *hidden)],
            document,
            path,
            data,
        )
        out, bad = {}, False
        for key, given in data.items():
            if key not in wants.hints or key in (*first, *hidden):
                continue
            try:
                out[key] = self.value(given, scope, document, (*path, key), refers)
            except Failed:
                bad = True
                continue
            allowed = misfit(out[key], wants.hints[key])
            if allowed:
                self.wrong(document, (*path, key), f"{allowed}, got {out[key]!r}")
                bad = True
        missing = [k for k in wants.needed if k not in data and k not in first and k not in hidden and wants.several != k]
        if missing and not hidden:
            self.wrong(document, path, f"needs {', '.join(missing)}")
            bad = True
        if bad:
            raise Failed
        return out

    def make(
        self, kind: Any, data: dict[str, Any], scope: Scope, document: Document, path: Keys,
        first: Mapping[str, Any] = {}, refers: bool = False,
    ) -> Any:  # fmt: skip
        """An object of a class."""
        found = self.arguments(kind, data, scope, document, path, first, refers=refers)
        key = PATHS.get(kind.__name__)
        if key in found and isinstance(found[key], str):
            file = self.file(found[key], document, (*path, key))
            found[key] = file if kind.__name__ != "Surface" else Path(file)
        several = takes(kind).several
        some = found.pop(several, []) if several else []
        if not isinstance(some, list):
            raise self.wrong(document, (*path, several or ""), f"a list, got {some!r}")
        made = self.call(kind, {**first, **found}, document, path, some)
        self.spend(made.heights.size if isinstance(made, Terrain) else np.size(made) if kind is array else 1, document, path)
        return made

    def spend(self, numbers: int, document: Document, path: Keys) -> None:
        """Count the numbers that objects of the file hold."""
        self.numbers += numbers
        if self.numbers > MAX_NUMBERS:
            raise self.wrong(document, path, f"a scene file holds at most {MAX_NUMBERS} numbers in arrays, grounds and ropes")

    def call(
        self, function: Any, arguments: dict[str, Any], document: Document, path: Keys, several: list[Any] | tuple[()] = ()
    ) -> Any:
        """Carry it out; what it refuses is told at the key that its words name, if there is one."""
        try:
            return function(*several, **arguments)
        except Failed:
            raise
        except Exception as error:  # values of a stranger may fail in any way
            words = (
                str(error)
                if isinstance(error, SceneError)
                else f"cannot be made of these values: {type(error).__name__}: {error}"
            )
            own = [key for key in arguments if (*document.base, *path, key) in document.lines]
            places = [(found.start(), key) for key in own if (found := re.search(rf"(?<!['\w]){re.escape(key)}\b", words))]
            raise self.wrong(document, (*path, min(places)[1]) if places else path, words) from None

    def look_for_failed(self, value: Any) -> None:
        """Leave out what names something that could not be made; that has been told of."""
        if isinstance(value, str) and (value in self.failed or value.partition("/")[2].rpartition(".")[0] in self.failed):
            raise Failed  # "NAME", or "joint/NAME.velocity" of an input
        inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        for item in inner:
            self.look_for_failed(item)
