"""Scene files out: what a scene was told, as TOML that says the same; read back and compared to the bit before it is kept."""

from __future__ import annotations

import dataclasses
import os
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from sharnir.collision.material import Material
from sharnir.core.journal import Call, KeepsArguments, SceneJournal, named
from sharnir.errors import SceneError, SceneWarning
from sharnir.geometry.shapes import Mesh
from sharnir.io.folders import everywhere
from sharnir.io.objects import PATHS, kinds, packed
from sharnir.io.scene_file import SECTIONS, read_text
from sharnir.io.xml import FilePath
from sharnir.model.actuators import Battery
from sharnir.model.joint_types import Joint
from sharnir.scene.inputs import Input
from sharnir.scene.scene import Scene

LONG_ARRAY = 64
"""An array of more numbers is written packed."""
SHARED_TYPES = (Battery, Material, Mesh)
"""Objects that are written once, as parameters, where several things have the same one."""
CURVE_POINTS = 2001
"""Points of a curve that was given as a function, as `add_rope` takes them."""

Plain = dict[str, Any]


def save_scene(scene: Scene, path: FilePath) -> None:
    """Write a scene to a file; see `Scene.save`."""
    file = Path(path)
    text = scene_text(scene.told(), file.parent, scene)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        temporary = file.with_name(f".{file.name}.{os.getpid()}")
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(file)
    except OSError as error:
        raise SceneError(f"{file}: cannot be written: {error.strerror}") from None


def scene_text(told: SceneJournal, folder: FilePath = ".", scene: Scene | None = None) -> str:
    """The TOML text of what a scene was told, `model.told` for one; refused where reading it would not give the same scene.

    Args:
        folder: of the file, from which meshes are found.
        scene: what the text has to give; the calls carried out anew if None.
    """
    writer = Writer(Path(folder))
    text = writer.text(told)
    if writer.refused:
        raise SceneError("the scene cannot be written: " + "; ".join(dict.fromkeys(writer.refused)))
    if writer.left_out:
        which = ", ".join(map(repr, writer.left_out))
        warnings.warn(f"inputs that are Python functions are left out of the file: {which}", SceneWarning, stacklevel=4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SceneWarning)
        wanted = scene if scene is not None else said_again(told)
        found = read_text(text, "the scene as written", folder, everywhere(folder))
    known = content(wanted)
    known["inputs"] = {k: v for k, v in known["inputs"].items() if k not in writer.left_out}
    wrong = difference(known, content(found), "scene")
    if wrong:
        raise SceneError(f"the scene cannot be written: {wrong} differs when read back; was it changed after it was added?")
    return text


def said_again(told: SceneJournal) -> Scene:
    """A scene that is told the same."""
    scene = Scene(told.gravity, told.contact)
    for call in told.calls:
        getattr(scene, call.method)(*call.args, **call.keywords)
    scene.options = dict(told.options)
    return scene


class Writer:
    """Makes tables of calls, and text of tables."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.refused: list[str] = []
        self.left_out: list[str] = []
        self.shared: dict[int, tuple[str, Any]] = {}

    def text(self, told: SceneJournal) -> str:
        """All of a file."""
        tables = [(call, named(getattr(Scene, call.method), [None, *call.args], call.keywords)) for call in told.calls]
        self.share(tables)
        lines = [f"# note: {line}" for note in told.notes for line in note.splitlines()]
        head: Plain = {"gravity": list(told.gravity)} | ({} if told.contact is None else {"contact": told.contact})
        lines += self.table("[scene]", head)
        if told.options:
            lines += self.table("[simulation]", {k: self.plain(v, f"option {k}") for k, v in told.options.items()})
        for name, thing in self.shared.values():
            lines += self.table(f"[parameters.{name}]", self.of_object(thing, name))
        order = {method: section for section, method in SECTIONS.items()}
        for call, arguments in tables:
            lines += self.entry(order[call.method], call, arguments)
        return "\n".join(lines).lstrip("\n") + "\n"

    def share(self, tables: list[tuple[Call, Plain]]) -> None:
        """Find objects that several things have."""
        seen: dict[int, int] = {}
        for thing in (t for _, arguments in tables for t in things(arguments)):
            seen[id(thing)] = seen.get(id(thing), 0) + 1
            if seen[id(thing)] == 2:
                self.shared[id(thing)] = f"{type(thing).__name__.lower()}_{len(self.shared) + 1}", thing

    def entry(self, section: str, call: Call, arguments: Plain) -> list[str]:
        """A table of one call."""
        arguments = dict(arguments)
        name = arguments.pop("name", None)
        if isinstance(name, Input) and name.act is not None:
            self.left_out.append(name.name)
            return ["", f"# left out: input {name.name!r} is a Python function"]
        if isinstance(name, Input):
            arguments |= {k: v for k, v in arguments_of(name).items() if k != "name"}
            name = name.name
        who = f"{section} {name!r}" if name else section
        if callable(arguments.get("points")):
            arguments["points"] = np.array([arguments["points"](x) for x in np.linspace(0.0, 1.0, CURVE_POINTS)])
        plain: Plain = {}
        joint = arguments.pop("joint", None) if call.method == "add_joint" else None
        if joint is not None:
            plain |= self.of_object(joint, who)
        for key, value in arguments.items():
            if value is not None:
                file = key == "visual" and isinstance(value, str | os.PathLike)
                plain[key] = self.file(os.fspath(value)) if file else self.plain(value, f"{who}: {key}")
        heading = f"[[{section}]]" if name is None else f"[{section}.{key_text(escaped(name))}]"
        return self.table(heading, plain)

    def plain(self, value: Any, who: str) -> Any:
        """Numbers, texts, lists and tables that mean a value."""
        if value is None:
            return "= None"
        if isinstance(value, str):
            return f"= {value!r}" if value.startswith("=") else escaped(value)
        if isinstance(value, bool | int | float):
            return value
        if isinstance(value, np.generic):
            return value.item()
        if isinstance(value, np.ndarray):
            return packed(value) if value.size > LONG_ARRAY else value.tolist()
        if isinstance(value, list | tuple):
            numbers = np.asarray(value) if len(value) > LONG_ARRAY and isinstance(value[0], list | tuple | float) else None
            if numbers is not None and numbers.dtype.kind in "if":
                return packed(numbers)
            return [self.plain(v, who) for v in value]
        if isinstance(value, dict):
            return {str(k): self.plain(v, who) for k, v in value.items()}
        if id(value) in self.shared:
            return f"= {self.shared[id(value)][0]}"
        if isinstance(value, os.PathLike):
            return self.file(os.fspath(value))
        if type(value).__name__ in kinds():
            return self.of_object(value, who)
        self.refused.append(f"{who} is a Python function" if callable(value) else f"{who}: a file cannot say {value!r}")
        return ""

    def of_object(self, thing: Any, who: str) -> Plain:
        """A table with the type of an object and what it was made of."""
        name = type(thing).__name__
        out: Plain = {"type": name}
        if name not in kinds():
            self.refused.append(f"{who}: {name} is no type that a file can name")
            return out
        for key, value in arguments_of(thing).items():
            if key == PATHS.get(name) and isinstance(value, str | os.PathLike):
                out[key] = self.file(os.fspath(value))
            elif not (name == "Surface" and key == "notes"):
                out[key] = self.plain(value, f"{who}: {key}")
        return out

    def file(self, name: str) -> str:
        """A file's name as seen from the scene file."""
        full, folder = os.path.abspath(name), os.path.abspath(self.folder)
        inside = (
            os.path.commonpath([full, folder]) == folder
            if os.path.splitdrive(full)[0] == os.path.splitdrive(folder)[0]
            else False
        )
        return escaped(os.path.relpath(full, folder) if inside else full)

    def table(self, heading: str, content: Plain) -> list[str]:
        return ["", heading, *(f"{key_text(key)} = {value_text(value)}" for key, value in content.items())]


def arguments_of(thing: Any) -> Plain:
    """What an object was made of; fields that are as they would be anyway are left out."""
    if isinstance(thing, KeepsArguments):
        return {k: v for k, v in thing.said().items() if v is not None}
    out = {}
    for field in dataclasses.fields(thing):
        value = getattr(thing, field.name)
        made = field.default_factory() if field.default_factory is not dataclasses.MISSING else field.default
        same = type(made) is type(value) and not isinstance(value, np.ndarray) and made == value
        if field.init and not (made is value or same):
            out[field.name] = value
    return out


def things(value: Any) -> Iterator[Any]:
    """Objects inside a value that may be shared."""
    if isinstance(value, list | tuple):
        for item in value:
            yield from things(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from things(item)
    elif isinstance(value, SHARED_TYPES):
        yield value
    elif dataclasses.is_dataclass(value) and not isinstance(value, type) and type(value).__name__ in kinds():
        yield from things(list(arguments_of(value).values()))


# ---- text ----


def escaped(text: str) -> str:
    """A text in which braces are braces."""
    return text.replace("{", "{{").replace("}", "}}")


def key_text(key: str) -> str:
    """A key, quoted where it has to be."""
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else value_text(key)


def value_text(value: Any) -> str:
    """A value of TOML; numbers in digits that give them back to the bit."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str):
        control = re.sub(r'["\\]', lambda m: "\\" + m[0], value)
        return '"' + re.sub(r"[\x00-\x1f\x7f]", lambda m: f"\\u{ord(m[0]):04x}", control) + '"'
    if isinstance(value, list):
        return "[" + ", ".join(map(value_text, value)) + "]"
    return "{" + ", ".join(f"{key_text(k)} = {value_text(v)}" for k, v in value.items()) + "}"


# ---- are two scenes the same? ----


def content(scene: Scene) -> Plain:
    """What a model is built from."""
    out = {
        k: getattr(scene, k) for k in ("gravity", "bodies", "joints", "gears", "springs", "cables", "ropes", "frames", "options")
    }
    others = [k for k in vars(scene) if k not in (*out, "notes", "calls") and not k.startswith("_")]
    return out | {k: getattr(scene, k) for k in others}


def difference(a: Any, b: Any, where: str) -> str | None:
    """Where two descriptions differ, in words; None if they are the same to the bit."""
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        x, y = np.asarray(a), np.asarray(b)
        return None if x.shape == y.shape and x.dtype == y.dtype and x.tobytes() == y.tobytes() else where
    if callable(a) and not isinstance(a, Joint):
        return None if a is b else where
    if type(a) is not type(b) and not (isinstance(a, list | tuple) and isinstance(b, list | tuple)):
        same = isinstance(a, int | float) and isinstance(b, int | float) and float(a) == float(b)
        return None if same else where
    if isinstance(a, dict):
        if list(map(str, a)) != list(map(str, b)) and (len(a) != len(b) or set(a) != set(b) or where in ORDERED):
            return f"{where} ({', '.join(map(str, a))})"
        return next((d for k in a if (d := difference(a[k], b[k], f"{where}: {k}"))), None)
    if isinstance(a, list | tuple):
        if len(a) != len(b):
            return where
        return next((d for i, (x, y) in enumerate(zip(a, b, strict=True)) if (d := difference(x, y, f"{where}, {i}"))), None)
    if isinstance(a, set | frozenset):
        return None if a == b else where
    if dataclasses.is_dataclass(a) or hasattr(a, "__dict__"):
        mine = {k: v for k, v in vars(a).items() if k not in HIDDEN}
        theirs = {k: v for k, v in vars(b).items() if k not in HIDDEN}
        if isinstance(a, Mesh):
            mine["triangles"], theirs["triangles"] = a.mesh(), b.mesh()
        return difference(mine, theirs, where)
    return None if a == b or (a != a and b != b) else where


ORDERED = tuple(f"scene: {kind}" for kind in ("bodies", "joints", "gears", "springs", "cables", "ropes"))
"""Where the order of names is the order of indices."""
HIDDEN = ("_said", "notes", "_surface", "_read", "name", "source", "expected", "apart")
"""Of objects: how they were described, and what building a model adds to them; not what they are."""
