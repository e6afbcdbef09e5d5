"""The state of a simulation as a whole: kept, put back, of all worlds or of some."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import warp as wp

from sharnir.core import strided as tables
from sharnir.core.graphs import LOCK
from sharnir.core.types import np_real
from sharnir.engine.base import pack
from sharnir.errors import SimulationError, is_positive
from sharnir.model import joint_types
from sharnir.model.model import CONTROL_FIELDS, OWNED, STATE_FIELDS
from sharnir.model.rope_state import ROPE_CONTROL_FIELDS, ROPE_STATE_FIELDS

# The Simulation; it stands a floor above, so that it is not named here.
Owner = Any
Snapshot = dict[str, np.ndarray]
PER_WORLD = (
    "state.stagger",
    "state.history",
    "state.open",
    "state.time",
    "state.failed",
    "rope_control.wind",
    "rope_contact.kept_pairs",
    "contact.count",
    "contact.lost",
    "contact.pairs",
    "state.quiet",
    "state.resting",
    "state.pull",
)  # [world], all others [item, world]
CARRIED = tuple(f"state.{name}" for name in (*OWNED, "stagger", "history", "idle", "asleep", "quiet", "resting")) + tuple(
    f"rope.{name}" for name in (
        "started", "was", "now", "before", "smooth", "gain", "spin_smooth", "spin_gain", "reel_rate", "reel_now", "end_mean",
        "body_couple", "kept_velocity", "kept_spin",
    )
)  # fmt: skip
"""Arrays with what one step hands to the next: their meaning depends on the solver, and zeros begin a motion anew."""
# (joints, worlds, …) where joints sit on their parents and children, once a joint was attached; in the order of `joint_types`
FRAME_NAMES = ("joint.point", "joint.frame", "joint.child_point", "joint.child_frame")


class Columns:
    """Copies of memories that hold arrays [item, world], of which single worlds can be put back."""

    def __init__(self, memories: tuple[Any, ...], arrays: list[Any]) -> None:
        self._live = [memory.numpy() for memory in memories]
        self._safe = [np.empty_like(memory) for memory in self._live]
        self._arrays = []
        for array in arrays:
            if array.size:
                values = array.numpy()
                i = next(i for i, m in enumerate(memories) if m.ptr <= array.ptr < m.ptr + m.capacity)
                at = array.ptr - memories[i].ptr
                safe = np.ndarray(values.shape, values.dtype, self._safe[i].data, at)
                self._arrays.append((values, safe, array.ndim - 1))

    def keep(self) -> None:
        """Remember all of it as it is."""
        for live, safe in zip(self._live, self._safe, strict=True):
            safe[:] = live

    def take_back(self, worlds: Any = None) -> None:
        """Put back what was remembered, all of it or of some worlds."""
        if worlds is None:
            for live, safe in zip(self._live, self._safe, strict=True):
                live[:] = safe
            return
        for live, safe, axis in self._arrays:
            where = (slice(None),) * axis + (worlds,)
            live[where] = safe[where]


class Starts:
    """A snapshot laid out by worlds, from which some of them are put back at once, whatever the number of arrays (CPU).

    All that a step changes stands in one memory of words; `at` is where the words of world 0 are, `stride` how far on those of
    the next world.
    """

    def __init__(self, sim: Owner, snapshot: Snapshot) -> None:
        self.of, whole, size = snapshot, sim._transaction.whole, np.dtype(np_real).itemsize
        self._live = whole.numpy().view(np.dtype(f"i{size}"))
        at: list[np.ndarray] = []
        stride: list[np.ndarray] = []
        kept: list[np.ndarray] = []
        self._others = []  # arrays that stand elsewhere, or have smaller items
        for name, values in values_of(sim).items():
            if not values.size or not snapshot[name].size:
                continue
            axis = int(name not in PER_WORLD)
            begin = values.__array_interface__["data"][0] - whole.ptr
            each = values[0, 0].nbytes if axis else values[0].nbytes
            if not 0 <= begin < whole.capacity or each % size or begin % size:
                self._others.append((name, axis))
                continue
            words = each // size
            rows = len(values) if axis else 1
            where = begin // size + words * sim.worlds * np.arange(rows)[:, None] + np.arange(words)
            at.append(where.ravel())
            stride.append(np.full(where.size, words))
            saved = np.ascontiguousarray(snapshot[name]).view(self._live.dtype).reshape(rows, sim.worlds, words)
            kept.append(saved.swapaxes(0, 1).reshape(sim.worlds, -1))
        solver = sim.solver
        self.counted = [solver.whole.numpy(), solver.real.numpy()], solver.parts.numpy(), solver.alarm.numpy()
        self._at, self._stride = np.concatenate(at), np.concatenate(stride)
        self._kept = np.concatenate(kept, 1)

    def put_back(self, sim: Owner, worlds: np.ndarray) -> None:
        """Make some worlds what they were."""
        now, others = values_of(sim), self._others
        if 4 * len(worlds) < sim.worlds:
            self._live[self._at + worlds[:, None] * self._stride] = self._kept[worlds]
        else:  # array by array is quicker
            others = [(name, int(name not in PER_WORLD)) for name, values in now.items() if values.size]
        for name, axis in others:
            values, saved = now[name], self.of[name]
            where = (slice(None),) * axis + (worlds,)
            if len(saved) < len(values) and name.startswith(("contact.", "rope_contact.")):  # room may have been made since
                saved = np.pad(saved, [(0, len(values) - len(saved))] + [(0, 0)] * (values.ndim - 1))
            values[where] = saved[where]


def pack_all(sim: Owner, ropes: bool) -> tuple[Any, list[Any]]:
    """All arrays that a step changes, moved into one memory; that, and the arrays."""
    fields: list[tuple[Any, str]] = [(sim._state, n) for n in STATE_FIELDS] + [(sim.commands, n) for n in CONTROL_FIELDS]
    if ropes:
        fields += [(sim._state.rope, n) for n in ROPE_STATE_FIELDS] + [(sim.commands.rope, n) for n in ROPE_CONTROL_FIELDS]
    whole, packed = pack([getattr(s, n) for s, n in fields], sim.model.device)
    for (struct, name), array in zip(fields, packed, strict=True):
        setattr(struct, name, array)
    return whole, packed


def rope_arrays(sim: Owner) -> dict[str, Any]:
    """What changes of ropes, by name."""
    if not sim._ropes:
        return {}
    out = {f"rope.{n}": getattr(sim._state.rope, n) for n in ROPE_STATE_FIELDS}
    return out | {f"rope_control.{n}": getattr(sim.commands.rope, n) for n in ROPE_CONTROL_FIELDS}


def values_of(sim: Owner) -> dict[str, np.ndarray]:
    """All that a step or a command changes, by name: on the CPU views, taken once, on a GPU copies of now."""
    if sim._views is not None:
        return sim._views  # type: ignore[no-any-return]
    values = {name: array.numpy() for name, array in arrays_of(sim).items()}
    if sim._on_cpu:
        sim._views = values
    return values


def arrays_of(sim: Owner) -> dict[str, Any]:
    """The arrays of all that a step or a command changes, by name."""
    arrays = {f"state.{n}": getattr(sim._state, n) for n in STATE_FIELDS}
    arrays |= {f"control.{n}": getattr(sim.commands, n) for n in CONTROL_FIELDS}
    arrays |= rope_arrays(sim)
    return arrays if sim._contact_monitor is None else arrays | sim._contact_monitor.arrays()


def forget_rows(sim: Owner) -> None:
    """Have the next step make all rows of contact anew: those that are kept from step to step are the same but for rounding."""
    known = getattr(sim.solver.touch, "known", None)
    if known is not None:
        known.zero_()
    if sim._recorder is not None:
        sim._recorder.reads = True


def frames_of(sim: Owner) -> tuple[Any, ...]:
    """Where joints sit on their parents and children: tables of points and of frames."""
    return tuple(getattr(sim.model.joints, name) for name in joint_types.FRAME_FIELDS)


def frames_vary(sim: Owner) -> bool:
    """Whether joints were attached: their frames are then a part of the state."""
    return bool(sim.model.joint_kinds) and not tables.is_shared(sim.model.joints.parent_point)


def vary_frames(sim: Owner) -> None:
    """Give each world frames of its own, before the first joint is attached."""
    if frames_vary(sim):
        return
    t, model = sim.model.joints, sim.model
    for kept, name in zip(FRAME_NAMES, joint_types.FRAME_FIELDS, strict=True):
        array = getattr(t, name)
        values = np.repeat(tables.columns(array), model.worlds // tables.columns(array).shape[1], 1)
        sim._start[kept] = values
        own = wp.array(np.ascontiguousarray(values), dtype=array.dtype, device=model.device)
        own._was = array  # which a mirror may still read
        setattr(t, name, own)
    if int(model.drives.count):
        model.drives.joints = t
    sim._rebuild()
    forget_readers(sim)


def forget_readers(sim: Owner) -> None:
    """Have launches that read joints recorded anew, with the tables of now."""
    sim._reader.forget()
    sim._looks = None


def lay(sim: Owner, snapshot: Snapshot, worlds: Any = slice(None)) -> None:
    """Put joints that were attached back to where a snapshot has them; one from before the first has them as the start does."""
    if FRAME_NAMES[0] in snapshot:
        vary_frames(sim)
    if not frames_vary(sim):
        return
    other = False
    for name, array in zip(FRAME_NAMES, frames_of(sim), strict=True):
        now, then = tables.columns(array), snapshot.get(name, sim._start[name])
        if not np.array_equal(now[:, worlds], then[:, worlds]):
            now[:, worlds] = then[:, worlds]
            tables.put(array, now)
            other = True
    if other:
        sim.solver.relay()
        forget_links(sim)


def forget_links(sim: Owner) -> None:
    """Have `dynamics` hang the model anew."""
    for made in ("_links", "_bound"):
        sim.model.__dict__.pop(made, None)


def scheme_of(sim: Owner) -> str:
    """The solver and the order in which it stores ropes, in words."""
    ropes = "" if sim.model.ropes is None else ", ropes in the order of " + ("trees" if sim.model.ropes.trees else "ropes")
    return f"solver={sim.solver_name!r}{ropes}"


def is_same_scheme(sim: Owner, snapshot: Snapshot) -> bool:
    """Whether a snapshot was taken with the solver of this simulation.

    Raises SimulationError where it cannot be continued: it does not name its solver, or ropes are stored in another order.
    """
    given = np.asarray(snapshot.get("solver", ()))
    if given.dtype != np.uint8 or given.ndim != 1 or not given.size:
        raise SimulationError("restore: the snapshot does not name its solver; those of sharnir 0.2.0 and earlier are not read")
    taken, own = given.tobytes().decode(errors="replace"), scheme_of(sim)
    if taken.partition(", ropes")[2] != own.partition(", ropes")[2]:
        raise SimulationError(f"restore: the snapshot was taken with {taken}, which does not fit {own}; use the same solver")
    return taken == own


def take(sim: Owner) -> Snapshot:
    """All that changes, as a dict of copies; `put_back` continues from it bit for bit."""
    sim._look()
    sim._coordinates()
    forget_rows(sim)
    out = {name: values.copy() if sim._on_cpu else values for name, values in values_of(sim).items()}
    if frames_vary(sim):
        out |= {name: tables.columns(array) for name, array in zip(FRAME_NAMES, frames_of(sim), strict=True)}
    if sim.inputs:
        out["controls"] = sim.inputs.state()
    if sim._air is not None:
        out["wind"] = sim._air.wind.copy()
    out |= sim._sensors.state()
    out["solver"] = np.frombuffer(scheme_of(sim).encode(), np.uint8)
    out |= {"dt": np.array(sim.dt), "gravity": np.array(sim.gravity), "epoch": np.array(sim._epoch)}
    return out


def check(sim: Owner, snapshot: Snapshot, known: bool = False) -> tuple[Snapshot, dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Refuse what is no snapshot of this scene; it padded, the arrays that it fills, and those it does not."""
    if not isinstance(snapshot, dict):
        raise SimulationError(f"restore: takes what snapshot() returned, got {type(snapshot).__name__}")
    if not known:
        check_kinds(sim, snapshot)
    if sim._contact_monitor is not None:
        sim._contact_monitor.fit(snapshot)
    values = dict(values_of(sim))
    fresh = {}
    if not is_same_scheme(sim, snapshot):
        fresh = {name: values.pop(name) for name in CARRIED if name in values}
    for name in values:
        if name.startswith(("contact.", "rope_contact.")) and name in snapshot:  # room may have been made since
            missing = len(values[name]) - len(snapshot[name])
            if missing > 0:
                snapshot = snapshot | {name: np.pad(snapshot[name], [(0, missing)] + [(0, 0)] * (values[name].ndim - 1))}
        if name not in snapshot or snapshot[name].shape != values[name].shape:
            raise SimulationError(f"restore: the snapshot is of another scene ({name!r} does not fit)")
        if not known:
            check_finite(sim, name, np.asarray(snapshot[name]))
    for name, array in zip(FRAME_NAMES, frames_of(sim), strict=True):
        if name in snapshot and snapshot[name].shape != (len(array), sim.worlds, 3 + name.endswith("frame")):
            raise SimulationError(f"restore: the snapshot is of another scene ({name!r} does not fit)")
        if name in snapshot and not known:
            check_finite(sim, name, np.asarray(snapshot[name]))
    if not known:
        check_whole_numbers(sim, snapshot)
    return snapshot, values, fresh


def check_kinds(sim: Owner, snapshot: Snapshot) -> None:
    """Refuse values of another kind or number of axes, and single values that are out of range, before anything is changed."""
    for name, own in values_of(sim).items():
        found = np.asarray(snapshot.get(name, own))
        same = found.dtype.kind == own.dtype.kind or (found.dtype.kind == "b" and own.dtype.kind in "iu")
        if found.ndim != own.ndim or not same or (found.size and found.shape[1:] != own.shape[1:]):
            raise SimulationError(f"restore: the snapshot is of another scene ({name!r} does not fit)")
    worlds, inputs = sim.worlds, len(sim.inputs)
    shapes: dict[str, tuple[tuple[int, ...], ...]] = {
        "dt": ((),), "epoch": ((),), "gravity": ((3,), (worlds, 3)), "wind": ((worlds, 3),), "controls": ((3, inputs, worlds),),
    }  # fmt: skip
    shapes |= {name: (np.shape(own),) for name, own in sim._sensors.state().items() if name.endswith(".clock")}
    for name, allowed in shapes.items():
        if name not in snapshot:
            continue
        found = np.asarray(snapshot[name])
        if found.shape not in allowed or found.dtype.kind not in "fiu" or not np.isfinite(found).all():
            raise SimulationError(
                f"restore: {name!r} is finite numbers of shape {allowed[0]}, got {found.dtype} of {found.shape}"
            )
    if "gravity" not in snapshot or not is_positive(float(snapshot.get("dt", np.nan))):
        raise SimulationError(f"restore: dt is a positive finite number of seconds, got {snapshot.get('dt')!r}")


def whole_number_ranges(sim: Owner) -> dict[str, tuple[Any, Any]]:
    """The least and the largest value of every whole number that a step reads, by the name in a snapshot."""
    model = sim.model
    body, big = len(model.com) - 1, (1 << 31) - 1
    out: dict[str, tuple[Any, Any]] = {f"state.{name}": (-1, 1) for name in ("stuck", "cable_slides", "mid_tense")}
    out |= {"state.asleep": (0, 2), "state.resting": (0, 2), "state.failed": (0, big), "state.history": (0, 4)}
    out |= {"control.enabled": (0, 1), "control.acts": (0, 1)}
    if sim._ropes:
        capacity = model.ropes.table.capacity.numpy()[:, None]
        out |= {"rope.segments": (1, capacity), "rope.started": (0, 1), "rope.degree": (0, 3)}
        out |= {"rope.cut": (0, 1), "rope.slack": (-1, 1)}
    if sim._contact_monitor is not None:
        values, given = values_of(sim), model.collision
        points, pairs = len(values["contact.gap"]), len(values["contact.pair_size"])
        shape, special = len(given.shapes) - 1, 31 | (len(given.belts) << 8)
        out |= {f"contact.{name}": (0, body) for name in ("body_a", "body_b", "belt_body", "belt_frame")}
        out |= {"contact.shape_a": (0, shape), "contact.shape_b": (0, shape), "contact.special": (0, special)}
        out |= {"contact.count": (0, points), "contact.pairs": (0, pairs), "contact.lost": (0, big), "contact.began": (0, 1)}
        out |= {"contact.held": (-1, 1)}
        out |= {"contact.pair_first": (0, points), "contact.pair_size": (0, points), "contact.pair_feature": (-1, big)}
        if "rope_contact.kept_a" in values:
            kept, each = len(values["rope_contact.kept_a"]), len(values["rope_contact.kept_count"])
            most = (len(values["rope_contact.kept_shape"]) - kept) // max(1, each)
            out |= {"rope_contact.kept_count": (0, most), "rope_contact.kept_pairs": (0, kept)}
            out |= {f"rope_contact.kept_{name}": (-big, big) for name in ("shape", "state", "a", "b")}
    return out


def check_whole_numbers(sim: Owner, snapshot: Mapping[str, np.ndarray]) -> None:
    """Refuse counts and indices that are out of range: kernels use them without looking."""
    for name, (low, high) in whole_number_ranges(sim).items():
        found = snapshot.get(name)
        if found is not None and found.size and not ((found >= low) & (found <= high)).all():
            wrong = found[~((found >= low) & (found <= high))].ravel()[0]
            raise SimulationError(f"restore: {name!r} is a whole number from {low} to {np.max(high)}, got {wrong}")
    if sim._contact_monitor is not None:
        first, size = snapshot["contact.pair_first"].astype(np.int64), snapshot["contact.pair_size"]
        if first.size and (first + size).max() > len(snapshot["contact.gap"]):
            raise SimulationError("restore: 'contact.pair_first' and 'contact.pair_size' name points that are not there")


def put_back(sim: Owner, snapshot: Snapshot, known: bool = False) -> None:
    """Continue from a snapshot of this scene."""
    snapshot, values, fresh = check(sim, snapshot, known)
    with LOCK:
        sim.gravity = snapshot.get("gravity")
        if sim._air is not None and "wind" in snapshot and snapshot["wind"].shape == (sim.worlds, 3):
            sim._air.wind = np.array(snapshot["wind"], float)
        sim.solver.dt, sim._epoch = float(snapshot["dt"]), float(snapshot.get("epoch", 0.0))
        acted = [sim._commands.acts.copy(), sim._commands.enabled.copy(), sim._commands.friction_load > 0]
        for name, now in values.items():
            now[...] = snapshot[name]
        for now in fresh.values():
            now[...] = 0
        if not sim._on_cpu:
            for name, array in arrays_of(sim).items():
                array.assign(fresh[name] if name in fresh else values[name])
        lay(sim, snapshot)
        sim.solver.forget()
        forget_rows(sim)
        sim._projected[:] = 0.0
        acts = [sim._commands.acts, sim._commands.enabled, sim._commands.friction_load > 0]
        if any((a != b).any() for a, b in zip(acted, acts, strict=True)):
            sim._acts_changed()
        sim._at_pose = True
        if "controls" in snapshot:
            sim.inputs.put_back(snapshot["controls"])
        sim._sensors.put_back(snapshot)
        sim._versions[1] += 1
        sim._take()  # what was put back was not written by a user: rotations are of unit length
        sim.changed()


def put_back_some(sim: Owner, snapshot: Snapshot, worlds: np.ndarray) -> None:
    """Continue from the start in some worlds alone; the others go on as if nothing had been done."""
    with LOCK:
        sim.state  # noqa: B018  which is read with the step that led to it: the others keep it
        if not len(worlds):
            return
        lay(sim, snapshot, worlds)
        if sim._images is not None:  # on a GPU, without leaving it
            for image in sim._images:
                image.put_back(worlds)
            sim._sensors.put_back(snapshot, worlds)
            sim._versions[1] += 1
            sim.changed()
            return
        sim._look()
        known = sim._known
        shared = [sim._commands.acts.copy(), sim._commands.enabled.copy(), sim._commands.friction_load > 0]
        starts = sim._transaction.starts
        if starts is None or starts.of is not snapshot:
            starts = sim._transaction.starts = Starts(sim, snapshot)
        starts.put_back(sim, worlds)
        counted, parts, alarm = starts.counted
        for values in counted:
            values[:, worlds] = 0
        parts[worlds], alarm[worlds] = 1, 0
        sim._projected[worlds] = 0.0
        acts = [sim._commands.acts, sim._commands.enabled, sim._commands.friction_load > 0]
        if any((a != b).any() for a, b in zip(shared, acts, strict=True)):
            sim._acts_changed()
        sim._sensors.put_back(snapshot, worlds)
        sim._versions[1] += 1
        sim._take()
        sim.changed()
        sim._keep_known(known)  # the snapshot holds coordinates and speeds too


def check_finite(sim: Owner, name: str, values: np.ndarray) -> None:
    """Refuse a value of a snapshot that is not finite, naming whose it is."""
    if values.dtype.kind != "f" or np.isfinite(values).all():
        return
    row = int(np.argwhere(~np.isfinite(values))[0][0])
    tables = [sim.model.body_names, sim.model.joint_names] if name.startswith(("state.", "control.")) else []
    rows = [len(sim.model.com), len(sim.model.joint_kinds)]
    owner = f"row {row}"
    for kind, names, count in zip(("body", "joint"), tables, rows, strict=False):
        if values.ndim > 1 and len(values) == count:
            owner = next((f"{kind} {n!r}" for n, k in names.items() if k == row), owner)
            break
    value = values[row][~np.isfinite(values[row])].ravel()[0]
    raise SimulationError(f"restore: {name!r} of {owner} is {value}; the values of a snapshot are finite")


def chosen(sim: Owner, worlds: Any) -> np.ndarray:
    """Indices of worlds from a mask or indices."""
    try:
        given = np.atleast_1d(np.asarray(worlds))
    except ValueError:
        given = np.array([np.nan])
    if given.dtype == bool and given.shape == (sim.worlds,):
        return np.flatnonzero(given)
    if (
        given.dtype.kind not in "iu"
        or given.ndim != 1
        or not all(0 <= w < sim.worlds for w in (given.min(initial=0), given.max(initial=0)))
    ):
        raise SimulationError(
            f"Simulation: worlds are a mask of {sim.worlds} booleans, or indices from 0 to {sim.worlds - 1}, got {worlds!r}"
        )
    return given.astype(int)
