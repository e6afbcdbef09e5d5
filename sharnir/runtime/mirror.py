"""What a picture looks at: a second simulation of the same model that never steps, and is given copies of the one that does.

Reading a simulation may bring its velocities to the pose, work out coordinates, count contacts. A loop with deadlines has no time
for that, and nobody else may do it while steps are made. So the loop copies memory (`take`), and whoever looks, in another
thread or another process, puts the copy into a mirror and reads there as much as they like: the running simulation is not read.
"""

from __future__ import annotations

import math
import warnings
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from sharnir.core.graphs import LOCK
from sharnir.runtime.snapshots import arrays_of, forget_readers, values_of
from sharnir.runtime.tolerances import Tolerances

# The Simulation; it stands a floor above, so that it is not named here.
Owner = Any
BLOWS = ("blow", "slip")  # what a solver keeps of contacts beside what a snapshot holds


class Copy(NamedTuple):
    """All that changed, at one instant; arrays stand one after the other, in the order of `values_of`, of which this has rows.

    So it is made, and sent to another process, in few calls: all of these are made while the loop might have to wait.
    """

    data: bytes
    rows: list[int]
    blows: dict[str, np.ndarray]
    gravity: np.ndarray
    dt: float
    epoch: float  # s, at which the device's clock began
    at_pose: bool  # whether velocities are those of the pose
    version: int  # how often parameters were changed
    contacts: list[Any]  # of the worlds that are shown, where they are asked for


class Given(NamedTuple):
    """Values in the place of an array of the device."""

    values: np.ndarray

    def numpy(self) -> np.ndarray:
        """As of the array."""
        return self.values


def take(sim: Owner, worlds: int = 0) -> Copy:
    """A copy of now, made where steps are made; with the contacts of so many worlds."""
    values, touch = values_of(sim).values(), sim.solver.touch
    blows = {name: np.array(getattr(touch, name).numpy()) for name in BLOWS if getattr(touch, name, None) is not None}
    contacts = [sim.contacts(w) for w in range(worlds)] if sim._contact_monitor is not None else []
    whole = sim._gravities, sim.solver.dt, sim._epoch, sim._at_pose, sim._versions[1]
    return Copy(b"".join([array.data for array in values]), [len(array) for array in values], blows, *whole, contacts)


def spread(copy: Copy, here: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The arrays of a copy by name, as views. here: those of a simulation of the same model, with rows of their own."""
    out, at = {}, 0
    for (name, like), rows in zip(here.items(), copy.rows, strict=True):
        size = rows * math.prod(like.shape[1:])
        out[name] = np.frombuffer(copy.data, like.dtype, size, at).reshape(rows, *like.shape[1:])
        at += size * like.itemsize
    return out


class Mirror:
    """A simulation that shows what another one does.

    Args:
        sim: of which copies will be put; a twin of it is made, unless `alone`: then it is itself the mirror, as in a process
            whose own copy nobody steps.
    """

    def __init__(self, sim: Owner, alone: bool = False) -> None:
        self.sim = sim if alone else twin(sim)
        """Holds what was last put; never stepped."""
        self.contacts: list[Any] = []
        """Of the worlds whose contacts were asked for."""
        self._version = -1
        self.put(take(sim))
        self.sim.state  # noqa: B018  launches that are recorded when they are first made are made here
        self.sim._coordinates()
        self.sim.energy()

    def put(self, copy: Copy) -> None:
        """Show a copy."""
        sim = self.sim
        with LOCK:
            given_values = spread(copy, values_of(sim))
            if sim._contact_monitor is not None:
                sim._contact_monitor.fit(given_values)
            here = values_of(sim)
            arrays = {} if sim._on_cpu else arrays_of(sim)
            for name, given in given_values.items():
                here[name][: len(given)] = given  # there may be room for more contacts
                if arrays:
                    arrays[name].assign(here[name])
            if copy.blows:  # a solver makes room for them with its first step, which this one never makes
                sim.solver.touch = SimpleNamespace(**{name: Given(values) for name, values in copy.blows.items()})
            if copy.version != self._version or not np.array_equal(copy.gravity, sim._gravities):
                sim._measures, self._version = None, copy.version
                forget_readers(sim)
            sim._gravities, sim._epoch, sim._at_pose = copy.gravity, copy.epoch, copy.at_pose
            if copy.dt != sim.solver.dt:
                sim.solver.dt = copy.dt
            sim.changed()
        self.contacts = copy.contacts


def twin(sim: Owner) -> Owner:
    """A simulation of the same model: what belongs to the model (masses, springs, limits) is shared with the other one."""
    made = object.__new__(type(sim))
    word = sim.solver_name if sim.solver_name in ("direct", "sequential") else "auto"
    with LOCK, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made.model = sim.model
        made._prepare(word, sim.dt, dict(sim.solver.given), "ignore", Tolerances())
    return made
