"""What a picture looks at: a second simulation of the same model that never steps, and is given copies of the one that does.

Reading a simulation may bring its velocities to the pose, work out coordinates, count contacts. A loop with deadlines has no time
for that, and another thread must not do it while steps are made. So the loop copies memory (`take`), and whoever looks puts
the copy into the mirror (`put`) and reads there as much as they like: the running simulation is neither read nor touched.
"""

from __future__ import annotations

import warnings
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from sharnir.launches import LOCK
from sharnir.snapshots import arrays_of, values_of

# The Simulation; it stands a floor above, so that it is not named here.
Owner = Any
BLOWS = ("blow", "slip")  # what a solver keeps of contacts beside what a snapshot holds


class Copy(NamedTuple):
    """All that changed, at one instant."""

    values: dict[str, np.ndarray]
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


class Mirror:
    """A simulation that shows what another one does."""

    def __init__(self, live: Owner) -> None:
        self._live = live
        self.sim = twin(live)
        """Holds what was last put; never stepped."""
        self._version = -1
        self.contacts: list[Any] = []
        """Of the worlds whose contacts were asked for."""
        self.asked = 0
        """Of how many worlds the contacts are wanted."""
        self._wanted = True  # whether somebody waits for a copy
        self._latest: Copy | None = None
        self.put(self.take())
        self.sim.state  # noqa: B018  launches that are recorded when they are first made are made here
        self.sim._coordinates()
        self.sim.energy()

    def show(self, _frame: Any) -> None:
        """A frame of the loop is due (`RealTime.add_board`): copy, if somebody waits for one. Never waits itself."""
        if self._wanted:
            self._wanted = False
            self._latest = self.take(self.asked)

    def fresh(self) -> Copy | None:
        """The copy that was made since the last call, if there is one; asks for the next."""
        copy, self._latest, self._wanted = self._latest, None, True
        return copy

    def take(self, worlds: int = 0) -> Copy:
        """A copy of now, made where steps are made; with the contacts of so many worlds."""
        live = self._live
        values = {name: np.array(array) for name, array in values_of(live).items()}
        touch = getattr(live.solver, "touch", None)
        blows = {name: np.array(getattr(touch, name).numpy()) for name in BLOWS if getattr(touch, name, None) is not None}
        contacts = [live.contacts(w) for w in range(worlds)] if live._touching is not None else []
        whole = live._gravities, live.solver.dt, live._epoch, live._at_pose, live._versions[1]
        return Copy(values, blows, *whole, contacts)

    def put(self, copy: Copy) -> None:
        """Show a copy."""
        sim = self.sim
        with LOCK:
            if sim._touching is not None:
                sim._touching.fit(copy.values)
            here = values_of(sim)
            arrays = {} if sim._on_cpu else arrays_of(sim)
            for name, given in copy.values.items():
                here[name][: len(given)] = given  # there may be room for more contacts
                if arrays:
                    arrays[name].assign(here[name])
            if copy.blows:  # a solver makes room for them with its first step, which this one never makes
                sim.solver.touch = SimpleNamespace(**{name: Given(values) for name, values in copy.blows.items()})
            if copy.version != self._version or not np.array_equal(copy.gravity, sim._gravities):
                sim._measures, self._version = None, copy.version
            sim._gravities, sim._epoch, sim._at_pose = copy.gravity, copy.epoch, copy.at_pose
            if copy.dt != sim.solver.dt:
                sim.solver.dt = copy.dt
            sim.changed()
        self.contacts = copy.contacts


def twin(live: Owner) -> Owner:
    """A simulation of the same model: what belongs to the model (masses, springs, limits) is shared with the other one."""
    made = object.__new__(type(live))
    with LOCK, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made.model = live.model
        made._prepare(live.solver_name, live.dt, dict(live.solver.given), "ignore")
    return made
