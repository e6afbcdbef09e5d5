"""Objects that a scene file may name by `type`, and what they take: read from the classes themselves, described nowhere else."""

from __future__ import annotations

import base64
import dataclasses
import functools
import importlib
import inspect
import types
import typing
import zlib
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from sharnir.collision import material
from sharnir.core import misspellings
from sharnir.errors import SceneError
from sharnir.geometry import shapes, terrain
from sharnir.io import meshes
from sharnir.model import actuators, cable_tables, joint_types
from sharnir.runtime import tolerances
from sharnir.sensors import noise

MACHINES = ("crane", "excavator", "forklift", "krt100", "mf4", "tracks", "truck", "vehicles", "wheels")
INNER = ("Shape", "MassProperties", "Axis", "CableNode", "CableDescription")
"""Classes of these modules that are no words of a scene file."""
GROUNDS = ("flat", "hill", "ridge", "ramp", "waves", "rubble", "stairs", "from_file", "from_image")
PATHS = {"Mesh": "source", "Surface": "file", "from_file": "path", "from_image": "path"}
"""Arguments that are files, found from the folder of the scene file."""
MAX_NUMBERS_OF_ARRAY = 10_000_000
"""Numbers of an array, at most."""


def total(of: list[Any]) -> Any:
    """The sum of grounds on the same grid."""
    if not of or not all(isinstance(ground, terrain.Terrain) for ground in of):
        raise SceneError("sum: of is a list of grounds (hill, rubble, …)")
    return functools.reduce(lambda a, b: a + b, of)


def array(shape: list[int], data: str, dtype: str = "f8") -> np.ndarray:
    """Numbers packed into a text: base64 of zlib of little-endian float64 ("f8") or int64 ("i8"), rows first."""
    sizes = shape if isinstance(shape, list) and all(type(n) is int and 0 <= n <= MAX_NUMBERS_OF_ARRAY for n in shape) else [-1]
    count = int(np.prod(sizes, dtype=object))
    if dtype not in ("f8", "i8") or not 0 <= count <= MAX_NUMBERS_OF_ARRAY:
        allowed = f"dtype is 'f8' or 'i8', shape whole numbers, {MAX_NUMBERS_OF_ARRAY} numbers at most"
        raise SceneError(f"array: {allowed}, got {dtype!r}, {shape!r}")
    try:
        packed = zlib.decompressobj()
        values = np.frombuffer(packed.decompress(base64.b64decode(data, validate=True), 8 * count + 1), f"<{dtype}")
        return values.reshape(sizes).astype(dtype)
    except (ValueError, TypeError, zlib.error) as error:
        raise SceneError(f"array: data is no packed array of shape {shape!r}: {error}") from None


def packed(values: np.ndarray) -> dict[str, Any]:
    """What `array` unpacks."""
    dtype = "i8" if np.issubdtype(values.dtype, np.integer) else "f8"
    data = base64.b64encode(zlib.compress(np.ascontiguousarray(values, f"<{dtype}").tobytes(), 9)).decode()
    return {"type": "array", "shape": list(values.shape), "dtype": dtype, "data": data}


@functools.cache
def kinds() -> dict[str, Callable[..., Any]]:
    """Everything that `type` may name."""
    modules = [shapes, actuators, joint_types, cable_tables, material, terrain, meshes, noise, tolerances]
    modules += [importlib.import_module(f"sharnir.machine_models.{name}") for name in MACHINES]
    out: dict[str, Callable[..., Any]] = {}
    for module in modules:
        for name, found in vars(module).items():
            own = inspect.isclass(found) and found.__module__ == module.__name__
            if own and dataclasses.is_dataclass(found) and not name.startswith("_") and name not in INNER:
                out[name] = typing.cast(Callable[..., Any], found)
    return out | {name: getattr(terrain, name) for name in GROUNDS} | {"sum": total, "array": array}


def machines() -> list[str]:
    """Those of them that put themselves into a scene."""
    return [name for name, kind in kinds().items() if hasattr(kind, "add")]


def meant(word: str, known: Iterable[str]) -> str:
    """What to say of a word that is not known."""
    known = list(known)
    return misspellings.meant(word, known).removeprefix("; ") or f"allowed: {', '.join(known)}"


@dataclasses.dataclass(frozen=True)
class Takes:
    """What a class or a method takes: hints by name, which are needed, and the name of a list of positional ones."""

    hints: dict[str, Any]
    needed: tuple[str, ...]
    several: str | None


@functools.cache
def takes(function: Callable[..., Any], owned: bool = False) -> Takes:
    """Of a class or function; of a method without its owner (`owned`)."""
    signature = inspect.signature(function)
    owner = getattr(function, "__init__", None) if inspect.isclass(function) else function
    names = {**typing.get_type_hints(owner)} if owner is not None else {}
    if inspect.isclass(function) and dataclasses.is_dataclass(function):
        names = {**typing.get_type_hints(function), **names}
    hints: dict[str, Any] = {}
    needed: list[str] = []
    several = None
    for name, parameter in list(signature.parameters.items())[int(owned) :]:
        if parameter.kind is parameter.VAR_KEYWORD:
            hints |= {k: v for words in typing.get_args(names.get(name)) for k, v in typing.get_type_hints(words).items()}
            continue
        hints[name] = names.get(name, Any)
        if parameter.kind is parameter.VAR_POSITIONAL:
            several, hints[name] = name, Any
        elif parameter.default is parameter.empty:
            needed.append(name)
    return Takes(hints, tuple(needed), several)


SIMPLE: dict[Any, tuple[tuple[type, ...], str]] = {
    float: ((int, float), "a number"), int: ((int,), "a whole number"), str: ((str,), "a text"),
    bool: ((bool,), "true or false"), type(None): ((type(None),), "none"),
}  # fmt: skip


def misfit(value: Any, hint: Any) -> str | None:
    """What a value should be, in words, where its hint is plain numbers, texts or words and the value is none of them."""
    parts = typing.get_args(hint) if typing.get_origin(hint) in (typing.Union, types.UnionType) else (hint,)
    allowed = []
    for part in parts:
        if typing.get_origin(part) is typing.Literal:
            if isinstance(value, str) and value in typing.get_args(part):
                return None
            allowed += [repr(word) for word in typing.get_args(part)]
        elif part in SIMPLE:
            kinds_, words = SIMPLE[part]
            if isinstance(value, kinds_) and not (isinstance(value, bool) and part is not bool):
                return None
            allowed += [words] if part is not type(None) else []
        else:
            return None  # the class checks it
    return " or ".join(allowed)
