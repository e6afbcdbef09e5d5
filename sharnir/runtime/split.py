"""Worlds shared out among several devices, as one simulation: what is read is gathered, what is written is shared out.

sim = sh.Simulation(scene, 1e-3, worlds=65536, device=["cuda:0", "cuda:1"])
sim.step(100); sim.q                         # (65536, coordinates), gathered
[part.q for part in sim.parts]               # arrays on the devices, nothing copied
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from sharnir.core.graphs import Threads
from sharnir.engine.base import Report
from sharnir.errors import OF_SIMULATIONS, Bound, SceneError, SimulationError
from sharnir.runtime.measures import Energy
from sharnir.runtime.parameters import randomize
from sharnir.runtime.simulation import Simulation
from sharnir.runtime.snapshots import chosen
from sharnir.scene.scene import Scene


def _nothing(*_given: Any, **_named: Any) -> None:
    """What a part does of which no world is meant."""


PLAIN = np.ndarray | str | int | float | bool | None


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
        if hasattr(values[0], "numpy") or isinstance(values[0], PLAIN):
            return self._owner._gather(values)
        return Gathered(self._owner, values)

    def __setattr__(self, name: str, value: Any) -> None:
        depth = np.ndim(self._owner._gather([getattr(view, name) for view in self._views]))
        for view, part in zip(self._views, self._owner._share(value, depth), strict=True):
            setattr(view, name, part)


def _array(name: str) -> Any:
    """An array of `Simulation` as a property of one in parts."""

    def get(self: SplitSimulation) -> Any:
        return getattr(Gathered(self, self.parts), name)

    def put(self: SplitSimulation, value: Any) -> None:
        setattr(Gathered(self, self.parts), name, value)

    return property(get, put, doc=f"`Simulation.{name}`, gathered from the parts; assign it as a whole.")


class SplitSimulation(Bound):
    """As a `Simulation`, its worlds shared out evenly among devices; `Simulation(device=[…])` makes one.

    Args:
        scene: a Scene. dt: step, s. worlds: at least one a device.
        device: a list of them, such as ["cuda:0", "cuda:1"]; one that is named twice gets two shares.
        options: as of `Simulation`.

    World i is the same, to the bit, as in one simulation on one device of that kind. `parts` are the simulations beneath.
    """

    __slots__ = ("_first", "_pool", "parts", "worlds")
    _instead = OF_SIMULATIONS

    def __init__(self, scene: Scene, dt: float, *, worlds: int = 1, device: Sequence[str], **options: Any) -> None:
        if not isinstance(scene, Scene):
            raise SceneError(f"Simulation: worlds of a Scene are shared out among devices, got {scene!r}")
        if not device:
            raise SceneError("Simulation: device is a name, or a list of at least one, got an empty one")
        if worlds.__class__ is not int or worlds < len(device):
            raise SceneError(f"Simulation: worlds is a whole number of at least {len(device)}, one a device, got {worlds!r}")
        shares = [len(share) for share in np.array_split(np.arange(worlds), len(device))]
        self.worlds, self._first = worlds, np.concatenate([[0], np.cumsum(shares)])
        self.parts = [Simulation(scene, dt, worlds=n, device=where, **options) for n, where in zip(shares, device, strict=True)]
        for part, first in zip(self.parts, self._first, strict=False):
            part._sensors.begin_among(int(first))
        self._pool = Threads(len(device))

    def __repr__(self) -> str:
        shares = ", ".join(f"{part.worlds} on {part.model.device}" for part in self.parts)
        return f"<simulation of {self.worlds} worlds: {shares}>"

    # ---- time ----

    def step(self, n: int = 1, *, budget: float | None = None, iterations: int | None = None) -> list[Report]:
        """Advance all worlds by n steps, the devices side by side; the reports of the parts."""
        return self._each(lambda part: part.step(n, budget=budget, iterations=iterations))

    def run(self, duration: float) -> list[Report]:
        """Advance by a time in s."""
        return self._each(lambda part: part.run(duration))

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

    @property
    def time(self) -> float:
        """Time since the start, s."""
        return max(part.time for part in self.parts)

    @property
    def dt(self) -> float:
        """Step, s; may be changed while running."""
        return self.parts[0].dt

    @dt.setter
    def dt(self, value: float) -> None:
        for part in self.parts:
            part.dt = value

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
        """Energies (worlds,), J."""
        found = [part.energy() for part in self.parts]
        return Energy(
            *(self._gather([getattr(e, name) for e in found]) for name in ("kinetic", "potential", "elastic", "contact"))
        )

    q, qd, effort = _array("q"), _array("qd"), _array("effort")
    body_position, body_rotation = _array("body_position"), _array("body_rotation")
    body_velocity, body_angular_velocity = _array("body_velocity"), _array("body_angular_velocity")

    @property
    def target(self) -> Any:
        """What drives are told; assign `position`, `velocity`, `torque`, `voltage` as a whole."""
        return Gathered(self, [part.target for part in self.parts])

    def body(self, name: str) -> Any:
        """The body of that name, in all worlds."""
        return Gathered(self, [part.body(name) for part in self.parts])

    def joint(self, name: str) -> Any:
        """The joint of that name, in all worlds."""
        return Gathered(self, [part.joint(name) for part in self.parts])

    def rope(self, name: str) -> Any:
        """The rope of that name, in all worlds."""
        return Gathered(self, [part.rope(name) for part in self.parts])

    def spring(self, name: str) -> Any:
        """The spring of that name, in all worlds."""
        return Gathered(self, [part.spring(name) for part in self.parts])

    def sensor(self, name: str) -> Any:
        """The sensor of that name, in all worlds: what it reads. What all worlds share (angles, noise) is that of its parts."""
        return Gathered(self, [part.sensor(name) for part in self.parts])

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
        return np.concatenate([v[None] if part.worlds == 1 else v for v, part in zip(found, self.parts, strict=True)])

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
