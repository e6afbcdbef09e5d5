"""Worlds shared out among several devices, as one simulation: what is read is gathered, what is written is shared out.

sim = sh.Simulation(scene, 1e-3, worlds=65536, device=["cuda:0", "cuda:1"])
sim.step(100); sim.q                         # (65536, coordinates), gathered
[part.q for part in sim.parts]               # arrays on the devices, nothing copied
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields
from functools import partial
from io import BytesIO
from typing import Any, Unpack
from zipfile import ZIP_STORED, BadZipFile, ZipFile

import numpy as np

from sharnir.core import summaries
from sharnir.core.graphs import Threads
from sharnir.engine.base import Report
from sharnir.errors import SceneError, SimulationError
from sharnir.runtime import checkpoint
from sharnir.runtime.health import Health
from sharnir.runtime.measures import Energy, Momentum
from sharnir.runtime.options import Options
from sharnir.runtime.parameters import randomize
from sharnir.runtime.simulation import Simulation
from sharnir.runtime.snapshots import Snapshot, chosen
from sharnir.scene.scene import Scene


def _nothing(*_given: Any, **_named: Any) -> None:
    """What a part does of which no world is meant."""


PLAIN_VALUE = np.ndarray | str | int | float | bool | None


class Gathered:
    """Views of one object in all parts: values come (worlds, …), and are written for all worlds at once or one for each."""

    __slots__ = ("_owner", "_views")

    def __init__(self, owner: SplitSimulation, views: Sequence[Any]) -> None:
        object.__setattr__(self, "_owner", owner)
        object.__setattr__(self, "_views", views)

    def __repr__(self) -> str:
        return f"<{self._views[0]!r} in {len(self._views)} parts>"

    def __getattr__(self, name: str) -> Any:
        values = [getattr(view, name) for view in self._views]
        if callable(values[0]):
            return lambda *given, **named: self._owner._call(values, given, named)
        if any(isinstance(value, list) for value in values):  # descriptions, one a world; a part of one world gives it bare
            return [one for value in values for one in (value if isinstance(value, list) else [value])]
        if hasattr(values[0], "numpy") or isinstance(values[0], PLAIN_VALUE):
            return self._owner._gather(values)
        return Gathered(self._owner, values)

    def __setattr__(self, name: str, value: Any) -> None:
        depth = np.ndim(self._owner._gather([getattr(view, name) for view in self._views]))
        for view, part in zip(self._views, self._owner._share(value, depth), strict=True):
            setattr(view, name, part)


class GatheredInputs(Gathered, Mapping[str, Any]):
    """The inputs of all parts: a command is one number for all worlds, or one a world."""

    __slots__ = ()

    def __iter__(self) -> Iterator[str]:
        return iter(self._views[0])

    def __len__(self) -> int:
        return len(self._views[0])

    def __getitem__(self, name: str) -> Any:
        values = [inputs[name] for inputs in self._views]
        return values[0] if all(np.ndim(v) == 0 and v == values[0] for v in values) else self._owner._gather(values)

    def __setitem__(self, name: str, value: Any) -> None:
        self.set(name, value)

    def set(self, name: str, value: Any, by: str = "script") -> None:
        """As `Inputs.set`."""
        for inputs, own in zip(self._views, self._owner._share(value, 1), strict=True):
            inputs.set(name, own, by, stacklevel=4)


class GatheredReport(Report):
    """The reports of all parts: values are arrays (worlds,); the time is that of the slowest part."""

    def __init__(self, owner: SplitSimulation, reports: Sequence[Report]) -> None:
        self._owner, self._reports = owner, reports
        self.elapsed = max(report.elapsed for report in reports)
        self.deadline_missed = any(report.deadline_missed for report in reports)

    @property
    def problems(self) -> Any:
        """Tests that the step failed, a tuple for each world."""
        each = zip(self._reports, self._owner.parts, strict=True)
        return [one for report, part in each for one in ([report.problems] if part.worlds == 1 else report.problems)]

    @property
    def fallbacks(self) -> dict[str, Any]:
        """As `Report.fallbacks`, (worlds,) each."""
        counts = [report.fallbacks for report in self._reports]
        return {name: self._owner._gather([of[name] for of in counts]) for name in counts[0]}


for _name in ("iterations", "residual", "converged", "substeps", "projected"):
    _read = partial(lambda self, name: self._owner._gather([getattr(r, name) for r in self._reports]), name=_name)
    setattr(GatheredReport, _name, property(_read, doc=getattr(Report, _name).__doc__))


class GatheredContacts:
    """Contacts of a simulation in parts: called, those of one world."""

    __slots__ = ("_owner",)

    def __init__(self, owner: SplitSimulation) -> None:
        self._owner = owner

    def __call__(self, world: int = 0) -> Any:
        """Points of contact of a world after the last step, as `sim.contacts(world)`."""
        part, own = self._owner._part_of(world, "contacts")
        return part.contacts(own)

    @property
    def arrays(self) -> Any:
        """Refused: arrays of contacts lie on the device of each part."""
        return _refuse("contacts.arrays", LIES)


LIES = "its arrays lie on several devices"


def _refuse(name: str, why: str) -> Any:
    where = f"sim.parts[i].{name}"
    raise SimulationError(f"Simulation: {name} is not there where worlds are shared out among devices, as {why}; use {where}")


def _refused(name: str, why: str) -> Any:
    """What is there of each part alone, as a property that says so."""
    return property(lambda self: _refuse(name, why), doc=f"Refused: {why}; use `sim.parts[i].{name}`.")


def _of_first(name: str) -> Any:
    """A method or value of `Simulation` that is the same for all parts, or concerns the first world."""
    return property(lambda self: getattr(self.parts[0], name), doc=f"`Simulation.{name}`, of the first part.")


def _of_world(name: str) -> Any:
    """A question about one world, as a method that asks the part that holds it."""

    def ask(self: SplitSimulation, *given: Any, world: int = 0, **named: Any) -> Any:
        part, own = self._part_of(world, name)
        return getattr(part, name)(*given, world=own, **named)

    ask.__doc__ = f"As `Simulation.{name}`, of one world."
    return ask


def _array(name: str) -> Any:
    """An array of `Simulation` as a property of one in parts."""

    def get(self: SplitSimulation) -> Any:
        return getattr(Gathered(self, self.parts), name)

    def put(self: SplitSimulation, value: Any) -> None:
        setattr(Gathered(self, self.parts), name, value)

    return property(get, put, doc=f"`Simulation.{name}`, gathered from the parts; assign it as a whole.")


class SplitSimulation(Simulation):
    """A `Simulation` whose worlds are shared out evenly among devices; `Simulation(device=[…])` makes one.

    Args:
        scene: a Scene. dt: step, s. worlds: at least one a device.
        device: a list of them, such as ["cuda:0", "cuda:1"]; one that is named twice gets two shares.
        options: as of `Simulation`.

    World i is the same, to the bit, as in one simulation on one device of that kind. `parts` are the simulations beneath. What
    one world shows (`video`, `html`, `on_contact`) is that of the first; what cannot be gathered is refused by name.
    """

    __slots__ = ("_first", "_pool", "parts")

    def __init__(self, scene: Scene, dt: float, *, worlds: int = 1, device: Sequence[str], **options: Unpack[Options]) -> None:
        if not isinstance(scene, Scene):
            raise SceneError(f"Simulation: worlds of a Scene are shared out among devices, got {scene!r}")
        if not isinstance(device, list | tuple) or not device:
            raise SceneError(f"Simulation: device is a name, or a list of at least one, got {device or 'an empty one'}")
        if worlds.__class__ is not int or worlds < len(device):
            raise SceneError(f"Simulation: worlds is a whole number of at least {len(device)}, one a device, got {worlds!r}")
        shares = [len(share) for share in np.array_split(np.arange(worlds), len(device))]
        self.worlds, self._first = worlds, np.concatenate([[0], np.cumsum(shares)])
        self.parts = [Simulation(scene, dt, worlds=n, device=where, **options) for n, where in zip(shares, device, strict=True)]
        for part, first in zip(self.parts, self._first, strict=False):
            if part._sensors.begin_among(int(first)):
                part._start = part.snapshot()
        self.solver_name, self._pool = self.parts[0].solver_name, Threads(len(device))
        for kind in ("_bodies", "_joints", "_gears", "_springs", "_cables", "_ropes", "_sensors"):
            views = [getattr(part, kind) for part in self.parts]
            setattr(self, kind, {name: Gathered(self, [of[name] for of in views]) for name in views[0]})

    def __repr__(self) -> str:
        return summaries.simulation(self, self.parts)

    # ---- time ----

    def step(self, n: int = 1, *, budget: float | None = None, iterations: int | None = None) -> Report:
        """Advance all worlds by n steps, the devices side by side."""
        return GatheredReport(self, self._each(lambda part: part.step(n, budget=budget, iterations=iterations)))

    def reset(self, worlds: Any = None) -> None:
        """Back to the start: all, or a mask (worlds,) or indices of some."""
        for part, own, _ in self._some(worlds):
            part.reset(None if worlds is None else own)

    def set_state(self, *, q: Any = None, qd: Any = None, worlds: Any = None) -> None:
        """As `Simulation.set_state`: one row for all of the worlds, or one for each of those that are set."""
        for part, own, rows in self._some(worlds):
            given = [None if value is None else value if np.ndim(value) < 2 else np.asarray(value)[rows] for value in (q, qd)]
            part.set_state(q=given[0], qd=given[1], worlds=own)

    def randomize(self, seed: int, **spreads: Any) -> None:
        """As `Simulation.randomize`: the same worlds as on one device."""
        for part, first in zip(self.parts, self._first, strict=False):
            randomize(part, seed, spreads, (self.worlds, int(first)))

    randomise = randomize

    def changed(self) -> None:
        """As `Simulation.changed`, after arrays of the parts were written directly."""
        for part in self.parts:
            part.changed()

    @property
    def time(self) -> float:
        """Time since the start, s."""
        return max(part.time for part in self.parts)

    @time.setter
    def time(self, value: float) -> None:
        for part in self.parts:
            part.time = value

    @property
    def dt(self) -> float:
        """Step, s; may be changed while running."""
        return self.parts[0].dt

    @dt.setter
    def dt(self, value: float) -> None:
        for part in self.parts:
            part.dt = value

    # ---- state as a whole ----

    def snapshot(self) -> Snapshot:
        """All that changes, as a dict of copies, those of part i under "i:…"; `restore` continues from it bit for bit."""
        return {f"{i}:{name}": values for i, part in enumerate(self.parts) for name, values in part.snapshot().items()}

    def restore(self, snapshot: Snapshot) -> None:
        """Continue from a snapshot of this scene, shared out as here."""
        if not isinstance(snapshot, dict) or {str(name).partition(":")[0] for name in snapshot} != set(self._numbers):
            raise SimulationError(f"restore: takes what snapshot() of a simulation in {len(self.parts)} parts returned")
        own = [{n[len(i) + 1 :]: v for n, v in snapshot.items() if n.startswith(f"{i}:")} for i in self._numbers]
        self._put_back([partial(part.restore, values) for part, values in zip(self.parts, own, strict=True)])

    def _dump(self) -> bytes:
        stream = BytesIO()
        with ZipFile(stream, "w") as file:
            for name, part in zip(self._numbers, self.parts, strict=True):
                file.writestr(name, checkpoint.dump(part))
        return stream.getvalue()

    def _load(self, data: bytes, who: str) -> None:
        try:
            with ZipFile(BytesIO(data)) as file:
                plain = all(info.compress_type == ZIP_STORED for info in file.infolist())
                dumped = {name: file.read(name) for name in file.namelist()} if plain else {}
        except BadZipFile as error:
            raise SimulationError(f"{who}: is not a checkpoint of a simulation in parts, or is damaged: {error}") from None
        if list(dumped) != self._numbers:
            raise SimulationError(f"{who}: is of {len(dumped)} parts, this simulation has {len(self.parts)}")
        each = zip(self.parts, dumped.values(), strict=True)
        self._put_back([partial(checkpoint.restore, part, kept, who) for part, kept in each])

    def _put_back(self, jobs: Sequence[Callable[[], None]]) -> None:
        """Put all parts back, or none of them where one refuses."""
        before = [part.snapshot() for part in self.parts]
        try:
            for job in jobs:
                job()
        except SimulationError:
            for part, values in zip(self.parts, before, strict=True):
                part.restore(values)
            raise

    @property
    def _numbers(self) -> list[str]:
        """Names of the parts in snapshots and checkpoints."""
        return [str(i) for i in range(len(self.parts))]

    # ---- values ----

    @property
    def gravity(self) -> np.ndarray:
        """(worlds, 3) m/s²; three for all, or three a world, may be assigned."""
        return np.concatenate([np.broadcast_to(part.gravity, (part.worlds, 3)) for part in self.parts])

    @gravity.setter
    def gravity(self, value: Any) -> None:
        for part, own in zip(self.parts, self._share(value, 2), strict=True):
            part.gravity = own

    @property
    def failed(self) -> np.ndarray:
        """(worlds,) True where a world stopped."""
        return np.concatenate([part.failed for part in self.parts])

    def energy(self) -> Energy:
        """As `Simulation.energy`, (worlds,) J."""
        return self._merge([part.energy() for part in self.parts])  # type: ignore[no-any-return]

    def momentum(self) -> Momentum:
        """As `Simulation.momentum`, (worlds, 3)."""
        return self._merge([part.momentum() for part in self.parts])  # type: ignore[no-any-return]

    def health(self) -> Health:
        """As `Simulation.health`, arrays (worlds,)."""
        return self._merge([part.health() for part in self.parts])  # type: ignore[no-any-return]

    def constraint_error(self) -> np.ndarray:
        """As `Simulation.constraint_error`."""
        return np.concatenate([part.constraint_error() for part in self.parts])

    def constraint_velocity_error(self) -> np.ndarray:
        """As `Simulation.constraint_velocity_error`."""
        return np.concatenate([part.constraint_velocity_error() for part in self.parts])

    def contact_force(self, a: str, b: str | None = None) -> Any:
        """As `Simulation.contact_force`, (worlds, 3) N."""
        return self._gather([part.contact_force(a, b) for part in self.parts])

    @property
    def contacts(self) -> Any:
        """Contacts after the last step: `sim.contacts(world)`."""
        return GatheredContacts(self)

    @property
    def inputs(self) -> Any:
        """The scene's inputs: `sim.inputs["throttle"] = 0.5` is taken at the next step."""
        return GatheredInputs(self, [part.inputs for part in self.parts])

    @property
    def target(self) -> Any:
        """Targets of the drives; assign `position`, `velocity`, `torque`, `voltage` as a whole."""
        return Gathered(self, [part.target for part in self.parts])

    def frame(self, name: str) -> Any:
        """The frame of that name (`scene.add_frame`), or a body's own, in all worlds."""
        return Gathered(self, [part.frame(name) for part in self.parts])

    q, qd, effort, wind = _array("q"), _array("qd"), _array("effort"), _array("wind")
    body_position, body_rotation = _array("body_position"), _array("body_rotation")
    body_velocity, body_angular_velocity = _array("body_velocity"), _array("body_angular_velocity")
    index, redundant, video, html = _of_first("index"), _of_first("redundant"), _of_first("video"), _of_first("html")
    on_contact = _of_first("on_contact")
    ray_cast, shape_cast = _of_world("ray_cast"), _of_world("shape_cast")
    overlaps, distance = _of_world("overlaps"), _of_world("distance")
    model, state, commands = _refused("model", LIES), _refused("state", LIES), _refused("commands", LIES)
    solver, integrate = _refused("solver", "each part has its own"), _refused("integrate", "it goes on by steps of its own")
    view = _refused("view", "it steps the simulation that it shows")
    record = _refused("record", "it looks in between the steps of one simulation")
    record_file = _refused("record_file", "it looks in between the steps of one simulation")

    # ---- sharing out ----

    def _each(self, what: Callable[[Simulation], Any]) -> list[Any]:
        """Something in all parts side by side; what one of them raises is raised when all have ended."""
        jobs = [self._pool.submit(what, part) for part in self.parts]
        for job in jobs:
            job.exception()
        return [job.result() for job in jobs]

    def _gather(self, values: Sequence[Any]) -> Any:
        """(worlds, …) of what the parts gave; a part of one world gives no first axis."""
        if isinstance(values[0], str | type(None)):
            return values[0]
        found = [value.numpy() if hasattr(value, "numpy") else np.asarray(value) for value in values]
        many = [part.worlds for part in self.parts]
        return np.concatenate(
            [np.broadcast_to(v, (n, *v.shape)) if n == 1 or not v.ndim else v for v, n in zip(found, many, strict=True)]
        )

    def _merge(self, values: Sequence[Any]) -> Any:
        """Results of the parts, as energies, as one of their kind, whose values have the worlds first."""
        words = [field.name for field in fields(values[0])]
        return type(values[0])(*(self._gather([getattr(value, word) for value in values]) for word in words))

    def _part_of(self, world: int, who: str) -> tuple[Simulation, int]:
        """The part that holds a world, and its number there."""
        if not isinstance(world, int | np.integer) or not 0 <= world < self.worlds:
            raise SimulationError(f"{who}: world is a whole number from 0 to {self.worlds - 1}, got {world!r}")
        i = int(np.searchsorted(self._first, world, side="right")) - 1
        return self.parts[i], int(world - self._first[i])

    def _share(self, value: Any, depth: int) -> list[Any]:
        """What each part is to get: a slice where the value has a first axis of worlds (`depth` axes in all), else all of it."""
        if np.ndim(value) < max(depth, 1):
            return [value] * len(self.parts)
        given = np.asarray(value)
        if len(given) != self.worlds:
            raise SimulationError(f"Simulation: a value a world is one of {self.worlds}, got {len(given)}")
        own = [given[a:b] for a, b in zip(self._first[:-1], self._first[1:], strict=True)]
        return [v[0] if part.worlds == 1 else v for v, part in zip(own, self.parts, strict=True)]

    def _some(self, worlds: Any) -> list[tuple[Simulation, np.ndarray, np.ndarray]]:
        """Parts that hold some of the worlds: the part, its own numbers of them, and their places among those given."""
        which = np.arange(self.worlds) if worlds is None else chosen(self, worlds)
        out = []
        for part, first in zip(self.parts, self._first, strict=False):
            rows = np.flatnonzero((which >= first) & (which < first + part.worlds))
            if len(rows):
                out.append((part, which[rows] - first, rows))
        return out

    def _call(self, methods: Sequence[Callable[..., Any]], given: Sequence[Any], named: dict[str, Any]) -> Any:
        """A method in all parts, or in those that hold some of the `worlds` named; values of two axes are one row a world."""
        some = {id(part): own for part, own, _ in self._some(named.pop("worlds"))} if "worlds" in named else None
        if some is not None:
            each = zip(self.parts, methods, strict=True)
            methods = [partial(method, worlds=some[id(part)]) if id(part) in some else _nothing for part, method in each]
        shared = [self._share(value, 2) for value in given]
        also = {name: self._share(value, 2) for name, value in named.items()}
        found = [
            method(*(values[i] for values in shared), **{name: values[i] for name, values in also.items()})
            for i, method in enumerate(methods)
        ]
        return None if found[0] is None else self._gather(found)
