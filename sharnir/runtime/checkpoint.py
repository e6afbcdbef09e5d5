"""Checkpoints: all that changes of a simulation in one file, from which it goes on bit for bit.

A file is 64 bytes of head (magic, version, sizes, a BLAKE2b digest of all the rest), a description in JSON (scene, solver,
names and shapes of arrays) and the arrays, compressed. Nothing of the simulation is written before all of it was found right.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import struct
import zlib
from typing import Any

import numpy as np

from sharnir.core import strided
from sharnir.core.bounded_json import MessageError, decode, is_text, show
from sharnir.core.graphs import LOCK
from sharnir.core.types import PRECISION
from sharnir.errors import SimulationError
from sharnir.model.joint_types import FRAME_FIELDS
from sharnir.runtime import parameters, snapshots

# The Simulation; it stands a floor above, so that it is not named here.
Owner = Any
SAVE_MAGIC, SAVE_FORMAT = b"SHARNIR\n", 2  # 1 (until 0.2.0) had other arrays, one of them with two meanings
SAVE_HEAD = struct.Struct("<8sIIQ40s")  # magic, version, size of the description, size of the arrays, digest
STRUCTS = ("bodies", "joints", "gears", "axes", "springs", "cables", "drives")
MAX_TOLD = 1 << 26  # bytes of the description
MAX_SPARE = 1 << 28  # bytes that arrays may unpack to beyond twice those of the simulation that loads them (contacts need room)
LAID = tuple(f"joints.{name}" for name in FRAME_FIELDS)  # parameters until a joint is attached, then a part of the state
ARRAY_TYPES = ("<f8", "<f4", "<i4", "<i8", "<u4", "<u8", "|i1", "|u1", "|b1")  # of arrays
UNCOMPARED = ("color", "name")  # of shapes and parts: what is only seen, or said


def content(model: Any) -> str:
    """A hash of what a model was built from: names, bodies, joints, axes, shapes, ropes, contact; the same in every process."""
    h = hashlib.blake2b(digest_size=16)
    for name in ("body_names", "joint_names", "gear_names", "spring_names", "cable_names", "start", "gravity", "com"):
        _feed(h, getattr(model, name))
    for name in STRUCTS:
        _feed(h, getattr(model, name))
    _feed(h, [list(model.parents), list(model.children), model.joint_kinds, model.drive_commands])
    _feed(h, [given.name for given in model.inputs])
    if not model.joint_enabled.all():
        _feed(h, model.joint_enabled)
    if model.ropes is not None:
        _feed(h, [model.ropes.described, model.ropes.names])
    if model.collision is not None:
        _feed(h, model.collision)
    return h.hexdigest()


def _feed(h: Any, value: Any) -> None:
    """Hand a value to a hash, whatever it is made of; what has no content of its own counts by its type."""
    if hasattr(value, "numpy"):
        value = value._base.numpy() if strided.is_shared(value) else value.numpy()
    if isinstance(value, np.ndarray) and value.dtype != object:
        h.update(f"{value.dtype.str}{value.shape}".encode() + np.ascontiguousarray(value).tobytes())
    elif value is None or isinstance(value, bool | int | float | str | np.generic):
        h.update(f"{value!r};".encode() if not isinstance(value, np.generic) else f"{value.item()!r};".encode())
    elif isinstance(value, dict):
        for key, item in value.items():
            _feed(h, key)
            _feed(h, item)
    elif isinstance(value, set | frozenset):
        _feed(h, sorted(value, key=repr))
    elif isinstance(value, list | tuple | np.ndarray):
        h.update(f"[{len(value)}".encode())
        for item in value:
            _feed(h, item)
    elif hasattr(value, "_cls"):  # a structure of the device
        for name in value._cls.vars:
            _feed(h, getattr(value, name))
    else:
        h.update(type(value).__qualname__.encode())
        if dataclasses.is_dataclass(value):
            for field in dataclasses.fields(value):
                if field.name not in UNCOMPARED:
                    _feed(h, getattr(value, field.name))


# ---- parameters: tables of the model that a user may change ----


def parameters_of(sim: Owner) -> dict[str, np.ndarray]:
    """Masses, points, springs, limits, motors, … of now, by name; (items, …) where worlds share them, else (items, worlds, …)."""
    out = {"model.com": sim.model.com}
    for where, table in _tables(sim).items():
        for name in table._cls.vars:
            array = getattr(table, name)
            if f"{where}.{name}" in LAID and snapshots.frames_vary(sim):
                continue  # they are in the snapshot
            if hasattr(array, "numpy") and array.size:
                out[f"{where}.{name}"] = array._base.numpy() if strided.is_shared(array) else array.numpy()
    if sim.solver.collider is not None:
        out |= {f"material.{name}": values for name, values in sim.solver.collider.materials().items()}
    return out


def _tables(sim: Owner) -> dict[str, Any]:
    """The device's tables that change with parameters."""
    model = sim.model
    out = {name: getattr(model, name) for name in ("bodies", "joints", "axes", "springs", "drives")}
    return out if model.ropes is None else out | {"ropes": model.ropes.table}


def put_parameters(sim: Owner, given: dict[str, np.ndarray]) -> None:
    """Make the parameters those given; the caller has seen that they fit (`misfit`)."""
    model, now = sim.model, parameters_of(sim)
    given = {name: values for name, values in given.items() if name in now}
    now = {name: values for name, values in now.items() if name in given}
    other = [n for n in now if now[n].shape != given[n].shape or not np.array_equal(now[n], given[n], equal_nan=True)]
    if not other:
        return
    with LOCK:
        sim._settled()
        for full in other:
            where, _, name = full.partition(".")
            if where == "model":
                model.com[...] = given[full]
                continue
            if where == "material":
                sim.solver.collider.put_materials({name: given[full]})
                continue
            struct_ = _tables(sim)[where]
            array, values = getattr(struct_, name), given[full]
            if now[full].shape == values.shape:
                (array._base if strided.is_shared(array) else array).assign(values)
            else:
                setattr(struct_, name, strided.table(values, array.dtype, sim.worlds, model.device))
        _describe_axes(sim)
        sim._rebuild()
        sim._acts_changed()
    parameters.note_change(sim)


def _describe_axes(sim: Owner) -> None:
    """Bring the described axes in line with their tables."""
    model = sim.model
    for joint, axes in enumerate(model.joint_axes):
        described = []
        for i, axis in enumerate(axes):
            names = {f.name for f in dataclasses.fields(axis)} & {"stiffness", "rest", "damping", "lower", "upper", "restitution"}
            at = int(model.v_start[joint]) + i
            values = {n: float(strided.columns(getattr(model.axes, n))[at, 0]) for n in names}
            described.append(dataclasses.replace(axis, **{n: v for n, v in values.items() if np.isfinite(v) and abs(v) < 1e29}))
        model.joint_axes[joint] = tuple(described)


def misfit(sim: Owner, given: dict[str, np.ndarray]) -> str:
    """Which parameter does not fit this simulation, or "". Whole numbers, which say how it is built, have to be the same."""
    now = parameters_of(sim)
    for name in sorted({*now, *given} - {name for name in LAID if name not in now or name not in given}):
        if name not in now or name not in given:
            return name
        a, b = now[name], given[name]
        varied = b.ndim == a.ndim + 1 and b.shape == (len(a), sim.worlds, *a.shape[1:]) and sim.worlds > 1
        if a.dtype != b.dtype or not (a.shape == b.shape or varied):
            return name
        if b.dtype.kind not in "f" and not np.array_equal(np.broadcast_to(a[:, None], b.shape) if varied else a, b):
            return name
        if b.dtype.kind == "f" and (np.isnan(b) & ~np.isnan(a[:, None] if varied else a)).any():
            return name
    return ""


# ---- bytes ----


def pack(description: dict[str, Any], arrays: dict[str, np.ndarray], level: int = 6) -> bytes:
    """A description and arrays as bytes with a head."""
    whole = {n: np.ascontiguousarray(a) for n, a in arrays.items()}
    listed = [[name, a.dtype.str, list(arrays[name].shape)] for name, a in whole.items()]
    text = json.dumps(description | {"arrays": listed}).encode()
    body = zlib.compress(b"".join(a.tobytes() for a in whole.values()), level)
    digest = _digest(len(text), len(body), text, body)
    return SAVE_HEAD.pack(SAVE_MAGIC, SAVE_FORMAT, len(text), len(body), digest) + text + body


def _digest(text: int, packed: int, *parts: bytes | memoryview) -> bytes:
    h = hashlib.blake2b(SAVE_HEAD.pack(SAVE_MAGIC, SAVE_FORMAT, text, packed, b""), digest_size=40)
    for part in parts:
        h.update(part)
    return h.digest()


def unpack(data: bytes, who: str, most: int = MAX_SPARE) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """What `pack` was given; an error that says why where the bytes are not whole, or unpack to more than `most` bytes."""
    if len(data) < SAVE_HEAD.size or data[:8] != SAVE_MAGIC:
        raise SimulationError(f"{who}: is not a checkpoint of sharnir (it begins with {data[:8]!r})")
    _, version, text, packed, digest = SAVE_HEAD.unpack_from(data)
    if version != SAVE_FORMAT:
        raise SimulationError(f"{who}: is a checkpoint of version {version}; allowed: {SAVE_FORMAT}, written since sharnir 0.3.0")
    if len(data) != SAVE_HEAD.size + text + packed:
        raise SimulationError(f"{who}: is damaged: {len(data)} bytes, {SAVE_HEAD.size + text + packed} announced")
    view = memoryview(data)
    if _digest(text, packed, view[SAVE_HEAD.size : SAVE_HEAD.size + text], view[SAVE_HEAD.size + text :]) != digest:
        raise SimulationError(f"{who}: is damaged: its check does not fit")
    try:
        description = decode(view[SAVE_HEAD.size : SAVE_HEAD.size + text], max_bytes=MAX_TOLD)
        listed = [read_array(item) for item in description.items("arrays", MAX_TOLD)]
    except MessageError as error:
        raise SimulationError(f"{who}: is damaged: {error}") from None
    if len({name for name, _, _ in listed}) < len(listed):
        raise SimulationError(f"{who}: is damaged: an array is given twice")
    sizes = [math.prod(shape) * kind.itemsize for _, kind, shape in listed]
    if sum(sizes) > most:
        raise SimulationError(f"{who}: unpacks to {sum(sizes)} bytes; allowed: {most}")
    try:
        body = zlib.decompressobj().decompress(view[SAVE_HEAD.size + text :], max(1, sum(sizes) + 1))
    except zlib.error as error:
        raise SimulationError(f"{who}: is damaged: {error}") from None
    if len(body) != sum(sizes):
        raise SimulationError(f"{who}: is damaged: {len(body)} bytes of arrays, {sum(sizes)} announced")
    arrays, at = {}, 0
    for (name, kind, shape), size in zip(listed, sizes, strict=True):
        arrays[name] = np.frombuffer(body, kind, math.prod(shape), at).reshape(shape).copy()
        at += size
    return description.fields, arrays


def read_array(item: Any) -> tuple[str, np.dtype[Any], tuple[int, ...]]:
    """Name, type and shape of an array that a description lists."""
    name, kind, shape = item if isinstance(item, list) and len(item) == 3 else ("", "", [])
    sizes = isinstance(shape, list) and len(shape) <= 8 and all(type(n) is int and 0 <= n <= MAX_TOLD for n in shape)
    if not is_text(name, 4096) or not isinstance(kind, str) or kind not in ARRAY_TYPES or not sizes:
        raise MessageError(f"an array is [name, one of {', '.join(ARRAY_TYPES)}, whole numbers], got {show(item)}")
    return name, np.dtype(kind), tuple(shape)


def dump(sim: Owner, level: int = 6) -> bytes:
    """All that changes, as bytes."""
    return pack(facts(sim), snapshots.take(sim) | kept_parameters(sim), level)


def kept_parameters(sim: Owner) -> dict[str, np.ndarray]:
    """Copies of the parameters, as a checkpoint names them."""
    return {f"parameter:{name}": values.copy() for name, values in parameters_of(sim).items()}


def facts(sim: Owner) -> dict[str, Any]:
    """What a checkpoint or a recording belongs to."""
    import sharnir

    return {
        "what": "checkpoint", "sharnir": sharnir.__version__, "scene": sim._content, "solver": sim.solver_name,
        "precision": PRECISION, "worlds": sim.worlds, "time": sim.time,
    }  # fmt: skip


def restore(sim: Owner, data: bytes, who: str) -> None:
    """Go on from bytes of `dump`; where they are not of this scene or not whole, nothing is changed."""
    here = [*snapshots.values_of(sim).values(), *parameters_of(sim).values()]
    description, arrays = unpack(data, who, MAX_SPARE + 2 * sum(values.nbytes for values in here))
    if description.get("what") != "checkpoint":
        raise SimulationError(f"{who}: is not a checkpoint but {description.get('what')!r}")
    words = {name: f"another {name}" for name in ("scene", "solver", "precision")} | {"worlds": "other worlds"}
    own = facts(sim)
    for name, what in words.items():
        if description.get(name) != own[name]:
            raise SimulationError(f"{who}: is of {what}: {name} {description.get(name)!r}, this simulation has {own[name]!r}")
    given = {n.removeprefix("parameter:"): a for n, a in arrays.items() if n.startswith("parameter:")}
    state = {n: a for n, a in arrays.items() if not n.startswith("parameter:")}
    wrong = misfit(sim, given)
    if wrong:
        raise SimulationError(f"{who}: parameter {wrong!r} does not fit this simulation")
    if snapshots.frames_vary(sim) and all(name in given for name in LAID):  # it is from before the first joint was attached
        each = [np.repeat(given[name][:, None], sim.worlds, 1) for name in LAID]
        state |= dict(zip(snapshots.FRAME_NAMES, each, strict=True))
    try:
        snapshots.check(sim, state)
    except SimulationError as error:
        raise SimulationError(f"{who}: is damaged: {str(error).removeprefix('restore: ')}") from None
    put_parameters(sim, given)
    snapshots.put_back(sim, state)
