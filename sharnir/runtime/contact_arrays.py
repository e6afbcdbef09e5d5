"""Contacts of all worlds as arrays: read on the device of the simulation, without a loop over worlds."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
import warp as wp

from sharnir.collision.contact_table import ContactTable, add_ropes, fill_contacts, sum_between
from sharnir.core.graphs import LOCK, Recorded
from sharnir.core.types import load_modules, np_real, real, vec3
from sharnir.errors import Bound, SimulationError
from sharnir.model.model import fill
from sharnir.runtime.arrays import Host, shown

# The Simulation and its contacts; they stand beside this, and hold it.
Owner = Any
CONTACT_FIELDS = ("body_a", "body_b", "point", "normal", "gap", "force", "normal_force", "friction_force")
BODY_SUM_FIELDS = ("body_force", "body_moment")


class ForceBetween(Bound):
    """Sum of the contact forces on a body by some others, in every world; `sim.contacts.arrays` updates it."""

    __slots__ = ("_force", "_moment", "body", "others")

    def __init__(self, sim: Owner, body: str, others: tuple[str, ...]) -> None:
        self.body, self.others = body, others
        self._force, self._moment = (wp.zeros(sim.worlds, dtype=vec3, device=sim.model.device) for _ in range(2))

    def __repr__(self) -> str:
        return f"<contact force on {self.body!r} by {', '.join(map(repr, self.others))}>"

    @property
    def force(self) -> Any:
        """(worlds, 3) N on the body, world axes, mean over the step."""
        return self._force.numpy() if self._force.device.is_cpu else self._force

    @property
    def moment(self) -> Any:
        """(worlds, 3) N·m of these forces about the body's centre of mass, world axes."""
        return self._moment.numpy() if self._moment.device.is_cpu else self._moment


def _array(name: str, doc: str) -> Any:
    """An array of the table, as a property."""
    return property(lambda self: self._view(name), doc=doc)


class ContactArrays(Bound):
    """Contacts between bodies in all worlds after the last step, and their sums on each body.

    Arrays are NumPy views on the CPU and Warp arrays on a GPU, (contacts, …), or (worlds, contacts, …) with several worlds. Those
    of a world are its first `count`; the rows after them hold body −1 and zeros, so that sums over rows need no mask. Bodies are
    numbers in the order of `model.body_names` (0 is the world). Ropes count in sums on bodies alone.

    The memory stays where it is: take the arrays once, and ask for `sim.contacts.arrays` after each step that they are to show.
    Only where a step on a CPU finds so many contacts that room is made for more (see `capacity`), the arrays of contacts are new
    ones; the sums stay.
    """

    __slots__ = ("_between", "_collider", "_host", "_impacts", "_replay", "_sim", "_slot_radius", "_table", "_views")

    def __init__(self, sim: Owner) -> None:
        self._sim, self._collider, self._table = sim, sim.solver.collider, ContactTable()
        self._between: dict[tuple[str, tuple[str, ...]], tuple[ForceBetween, Any]] = {}
        fill(self._table, sim.model, None, "count")
        fill(self._table, sim.model, len(sim.model.com), " ".join(BODY_SUM_FIELDS))
        ropes, radii = sim.model.ropes, np.zeros(0, np_real)
        if ropes is not None:
            slots = np.arange(sim._state.rope.position.shape[0])
            owner = np.searchsorted(ropes.first, slots, side="right") - 1
            radii = np.array([rope.radius for rope in ropes.described], np_real)[owner]
        self._slot_radius = wp.array(radii, dtype=real, device=sim.model.device)
        self._replay, self._impacts = Recorded(self._launch, sim.model.device), sim.solver.touch
        with LOCK:
            load_modules([fill_contacts.module], sim.model.device)
        self.make_room()

    def __repr__(self) -> str:
        return f"<contacts of {self._sim.worlds} worlds, room for {self.capacity} in each>"

    def make_room(self) -> None:
        """Arrays for as many contacts as the solver has room for now; those of the sums stay."""
        points = self._collider.data.contacts.capacity
        self._table.count.zero_()
        fill(self._table, self._sim.model, points, " ".join(CONTACT_FIELDS))
        for name in ("body_a", "body_b"):
            getattr(self._table, name).fill_(-1)
        self._host = Host(self._table, self._sim._on_cpu)
        self._views: dict[str, Any] = {}
        self._replay.forget()

    def _launch(self) -> None:
        sim, solver, c, t = self._sim, self._sim.solver, self._collider.data.contacts, self._table
        device = sim.model.device
        impact = c.impulse[:0] if solver.touch is None else solver.touch.blow
        motion = [solver.settings.dt, sim._state.position, sim._state.velocity, t]
        found = [c.count, c.body_a, c.body_b, c.point, c.normal, c.gap, c.impulse, impact]
        wp.launch(fill_contacts, dim=sim.worlds, inputs=[*found, *motion], device=device)
        ropes = sim._contact_monitor._ropes
        if ropes is not None:
            most, body = ropes.base // max(1, len(self._slot_radius)), self._collider.data.shapes.body
            lines = [sim._state.rope.position, self._slot_radius]
            found = [ropes.count, most, ropes.shape, body, ropes.n, ropes.gap, ropes.impulse, *lines]
            wp.launch(add_ropes, dim=sim.worlds, inputs=[*found, *motion], device=device)
        for pair, others in self._between.values():
            number = sim.model.body_names[pair.body]
            inputs = [number, others, *motion, pair._force, pair._moment]
            wp.launch(sum_between, dim=sim.worlds, inputs=inputs, device=device)

    def update(self) -> None:
        """Bring all arrays up to date with the last step; `sim.contacts.arrays` does so itself."""
        self._sim._settled()
        if self._impacts is not self._sim.solver.touch:  # made when the solver is bound to its arrays
            self._impacts = self._sim.solver.touch
            self._replay.forget()
        self._replay()

    def between(self, body: str, others: str | Iterable[str]) -> ForceBetween:
        """Force on a body by some others, in every world; the same object for the same bodies.

        Args:
            body: its name. others: names, or patterns such as "finger/*", of the bodies that push it; one or several.
        """
        names = self._sim.model.body_names
        self._sim.body(body)
        wanted = (others,) if isinstance(others, str) else tuple(others)
        each = [[n for n in names if isinstance(p, str) and (n == p or fnmatchcase(n, p))] for p in wanted]
        missed = [p for p, matching in zip(wanted, each, strict=True) if not matching]
        if missed or not each:
            known = ", ".join(map(repr, names))
            raise SimulationError(f"between: no body matches {', '.join(map(repr, missed)) or 'nothing'}; available: {known}")
        found = tuple(name for name in names if any(name in matching for matching in each))
        if (body, found) not in self._between:
            mask = np.zeros(len(self._sim.model.com), np.int32)
            mask[[names[name] for name in found]] = 1
            array = wp.array(mask, dtype=wp.int32, device=self._sim.model.device)
            self._between[body, found] = ForceBetween(self._sim, body, found), array
            self._replay.forget()
            self.update()
        return self._between[body, found][0]

    def _view(self, name: str) -> Any:
        if name not in self._views:
            self._views[name] = shown(self._sim, self._table, self._host, name, True)
        return self._views[name]

    @property
    def table(self) -> Any:
        """The Warp arrays beneath, by the same names: [contact, world] and [body, world]."""
        return self._table

    @property
    def capacity(self) -> int:
        """Contacts that a world has room for."""
        return int(self._table.body_a.shape[0])

    @property
    def count(self) -> Any:
        """(worlds,) contacts of each world."""
        return self._host.count if self._sim._on_cpu else self._table.count

    body_a = _array("body_a", "Number of the first body of each contact; −1 in rows from `count` on.")
    body_b = _array("body_b", "Number of the second body of each contact, on which the force acts; −1 in rows from `count` on.")
    point = _array("point", "(…, 3) m, world axes, midway between the surfaces, at the start of the step.")
    normal = _array("normal", "(…, 3) unit vector from a to b.")
    gap = _array("gap", "Distance of the surfaces, m; negative where they overlap: the penetration is −gap.")
    force = _array("force", "(…, 3) N on b, world axes, mean over the step, impacts included.")
    normal_force = _array("normal_force", "Part of the force along the normal, N.")
    friction_force = _array("friction_force", "(…, 3) part of the force across the normal, N, world axes.")
    body_force = _array(
        "body_force", "(bodies, 3) or (worlds, bodies, 3): N on each body by all that touches it, ropes included."
    )
    body_moment = _array(
        "body_moment",
        "(bodies, 3) or (worlds, bodies, 3): N·m of these forces about the body's centre of mass. Without the torques of rolling "
        "and torsional friction, which act beside forces at points.",
    )
