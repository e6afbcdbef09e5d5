"""What a simulation tells of contacts: points, forces, events; and room for more of them."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sharnir.collision.collider import BODY_FIELDS, HELD_FIELDS, PAIR_FIELDS, POINT_FIELDS, WORLD_FIELDS
from sharnir.collision.describe import EVERYTHING
from sharnir.collision.host_queries import FAR, Hits, Queries
from sharnir.core import summaries
from sharnir.core.renamed import Former
from sharnir.errors import SceneWarning, SimulationError, Spelled, StepWarning, callers_level
from sharnir.geometry.shapes import Shape
from sharnir.runtime.contact_arrays import ContactArrays

# The Simulation; it stands a floor above, so that it is not named here.
Owner = Any
TOUCHES = 1e-5  # m: bodies with a gap up to this touch, whether they push or not
FULL = 0.75  # of the room for points, from which on more is made
ROPE_KEPT = (  # of `rope.touch_data.RopeTouch`
    "kept_count", "kept_shape", "kept_state", "kept_n", "kept_impulse", "kept_pairs", "kept_a", "kept_b",
)  # fmt: skip


@dataclass(frozen=True, repr=False)
class ContactPoints(Spelled):
    """Points of contact of one world after a step; world axes. A gap above 0 is one that may close in the next step."""

    body_a: np.ndarray  # (points,) names; b may be a rope
    body_b: np.ndarray
    point: np.ndarray  # (points, 3) m, midway between the surfaces, at the start of the step
    normal: np.ndarray  # (points, 3) unit, from a to b
    gap: np.ndarray  # (points,) m, negative where they overlap
    force: np.ndarray  # (points, 3) N, on b, mean over the step, impacts included
    slip: np.ndarray  # (points, 3) m/s, of b's surface along a's

    def __len__(self) -> int:
        return len(self.gap)

    def __repr__(self) -> str:
        return summaries.contacts(self)


@dataclass
class Watched:
    """Two bodies whose touch is told of."""

    bodies: frozenset[str]
    begin: Callable[[], None] | None
    end: Callable[[], None] | None
    touched: bool


class ContactMonitor:
    """Contacts of a simulation, as its user sees them."""

    def __init__(self, sim: Owner) -> None:
        self._sim, self._solver = sim, sim.solver
        self._names = np.array(sorted(sim.model.body_names, key=sim.model.body_names.__getitem__), dtype=object)
        self.watched: list[Watched] = []
        self._queries: Queries | None = None
        self._arrays: ContactArrays | None = None
        self._warn_of_overlaps()
        self._look()

    def _warn_of_overlaps(self) -> None:
        """Say which bodies start deep inside each other: they are taken apart, not shot, but that is seldom meant."""
        collider = self._solver.collider
        collider.bind(self._sim._state, self._sim.commands)
        collider.launch()
        for words in collider.deep_at_start():
            warnings.warn(words, SceneWarning, stacklevel=callers_level())
        collider.forget()

    def _look(self) -> None:
        """Take the arrays of now."""
        self._data = self._solver.collider.data.contacts
        self._count, self._lost = (getattr(self._data, n).numpy() if self._sim._on_cpu else None for n in ("count", "lost"))
        ropes = self._ropes if self._sim._on_cpu else None
        self._room = None if ropes is None else tuple(getattr(ropes, n).numpy() for n in ("lost", "most", "pairs", "crowded"))
        self._full = FULL * self._data.capacity
        if self._arrays is not None:
            self._arrays.make_room()
        self._sim._views = None

    def points(self, world: int = 0) -> ContactPoints:
        """All points of a world."""
        if not (isinstance(world, int) and 0 <= world < self._sim.worlds):
            hint = f"; of one body: sim.body({world!r}).contact_force and .touching" if isinstance(world, str) else ""
            raise SimulationError(f"contacts(world): the number of a world, 0 to {self._sim.worlds - 1}, got {world!r}{hint}")
        c, n = self._data, int(self._data.count.numpy()[world])

        def of(array: Any) -> np.ndarray:
            return np.array(array.numpy()[:n, world])

        force, slip = of(c.impulse), np.zeros((n, 3))
        if self._solver.touch is not None:
            force, slip = force + of(self._solver.touch.blow), of(self._solver.touch.slip)
        a, b = (self._names[of(x)] for x in (c.body_a, c.body_b))
        found = a, b, of(c.point), of(c.normal), of(c.gap), force / self._solver.dt, slip
        if self._ropes is None:
            return ContactPoints(*found)
        return ContactPoints(*(np.concatenate(pair) for pair in zip(found, self._rope_points(world), strict=True)))

    @property
    def _ropes(self) -> Any:
        """What ropes touch, where they do."""
        return getattr(self._rope_steps, "touching", None)

    @property
    def _rope_steps(self) -> Any:
        """The part of the solver that steps ropes."""
        return getattr(self._solver, "_ropes", None) or getattr(self._solver, "_trees", None)

    def _rope_points(self, world: int) -> tuple[np.ndarray, ...]:
        """Points of contact of ropes, as `ContactPoints` has them; b is the rope."""
        t, ropes = self._ropes, self._sim.model.ropes
        counts = t.count.numpy()[:, world]
        most = t.base // max(1, len(counts))
        slots = np.repeat(np.arange(len(counts)), counts)
        at = np.array([most * i + k for i, count in enumerate(counts) for k in range(count)], int)
        owner = np.searchsorted(ropes.first, slots, side="right") - 1
        names = np.array(list(ropes.names), dtype=object)
        body = self._solver.collider.data.shapes.body.numpy()[t.shape.numpy()[at, world]]
        position = self._sim._state.rope.position.numpy()[:, world].astype(float)
        radius = np.array([r.radius for r in ropes.described])
        p = np.arange(int(t.pairs.numpy()[world]))
        a, b = (x.numpy()[p, world] for x in (t.pair_a, t.pair_b))
        share = t.pair_t.numpy()[p, world, None].astype(float)
        other, second = (np.searchsorted(ropes.first, x, side="right") - 1 for x in (a, b))
        at, owner = np.concatenate([at, t.base + p]), np.concatenate([owner, second])
        centre = np.concatenate(
            [position[slots], position[b] * (1 - share) + position[np.minimum(b + 1, len(position) - 1)] * share]
        )

        def of(array: Any) -> np.ndarray:
            return np.array(array.numpy()[at, world], float)

        n, gap, miss = of(t.n), of(t.gap), of(t.miss)
        slip = miss - n * np.sum(n * miss, axis=1, keepdims=True)
        point = centre - n * (radius[owner] + 0.5 * gap)[:, None]
        first = np.concatenate([self._names[body], names[other]])
        return first, names[owner], point, n, gap, of(t.impulse) / self._solver.dt, slip

    @property
    def all_worlds(self) -> ContactArrays:
        """Contacts of all worlds after the last step."""
        if self._arrays is None:
            self._arrays = ContactArrays(self._sim)
        self._arrays.update()
        return self._arrays

    def force(self, a: str, b: str | None = None) -> Any:
        """(3,) N on body a, of all that touch it or of body b; (worlds, 3) of several worlds."""
        bodies = self._sim.model.body_names
        if self._sim.worlds > 1 and a in bodies and (b is None or b in bodies):
            if b is None:
                return np.array(self.all_worlds.table.body_force.numpy()[bodies[a]], float)
            return np.array(self.all_worlds.between(a, (b,))._force.numpy(), float)
        out = np.zeros((self._sim.worlds, 3))
        for w in range(self._sim.worlds):
            found = self.points(w)
            for own, other, sign in ((found.body_b, found.body_a, 1.0), (found.body_a, found.body_b, -1.0)):
                where = own == a if b is None else (own == a) & (other == b)
                out[w] += sign * found.force[where].sum(0)
        return out[0] if self._sim.worlds == 1 else out

    def partners(self, name: str, world: int = 0) -> tuple[str, ...]:
        """Bodies that touch one."""
        found = self.points(world)
        near = (found.gap <= TOUCHES) | (np.abs(found.force).sum(1) > 0)
        others = [*found.body_a[near & (found.body_b == name)], *found.body_b[near & (found.body_a == name)]]
        return tuple(dict.fromkeys(others))

    @property
    def queries(self) -> Queries:
        """Rays, casts, overlaps and distances, of bodies where they stand now."""
        if self._queries is None:
            collider = self._solver.collider
            if collider.array is None:
                collider.bind(self._sim._state, self._sim.commands)
            if self._sim._ropes:
                collider.ropes = self._sim._state.rope
            self._queries = Queries(collider)
        return self._queries

    # ---- after a step ----

    def after(self) -> None:
        """Tell of what began or ended; make room before there is too little of it."""
        if self._count is not None and self._lost is not None:
            most, lost = (self._count[0], self._lost[0]) if len(self._count) == 1 else (self._count.max(), self._lost.max())
            if lost or most > self._full:
                self._grow(int(lost))
        if self._room is not None:
            lost, most, pairs, crowded = (int(x.max()) for x in self._room)
            t = self._ropes
            if crowded:
                words = (
                    f"a point of a rope was near more than {t.base // t.count.shape[0]} shapes at once: the farthest are left out"
                )
                warnings.warn(f"{words} (t = {self._sim.time:.6g} s)", StepWarning, stacklevel=callers_level())
                t.crowded.zero_()
            if lost or most > FULL * t.columns or pairs > FULL * t.pair_capacity:
                self._grow_ropes(lost)
        for pair in self.watched:
            touches = any(pair.bodies <= {name, *self.partners(name)} for name in pair.bodies)
            if touches != pair.touched:
                pair.touched = touches
                tell = pair.begin if touches else pair.end
                if tell is not None:
                    tell()

    def _grow(self, lost: int) -> None:
        collider = self._solver.collider
        if lost:
            warnings.warn(
                f"{lost} contacts had no room in the step to t = {self._sim.time:.6g} s: room was made for more", StepWarning,
                stacklevel=callers_level(),
            )  # fmt: skip
        collider.make_room(2 * self._data.pair_capacity, 2 * self._data.capacity)
        self._solver.rebind()
        self._look()

    def _grow_ropes(self, lost: int) -> None:
        if lost:
            warnings.warn(
                f"{lost} contacts of ropes had no room in the step to t = {self._sim.time:.6g} s: room was made for more",
                StepWarning, stacklevel=callers_level(),
            )  # fmt: skip
        self._rope_steps.make_room()
        self._solver.rebind()
        self._look()

    # ---- the state as a whole ----

    def arrays(self) -> dict[str, Any]:
        """What the next step takes over from the last, by name."""
        fields = (*WORLD_FIELDS, *POINT_FIELDS, *PAIR_FIELDS, *BODY_FIELDS, *HELD_FIELDS)
        out = {f"contact.{n}": getattr(self._data, n) for n in fields}
        if self._ropes is not None:
            out |= {f"rope_contact.{n}": getattr(self._ropes, n) for n in ROPE_KEPT}
        return out

    def fit(self, snapshot: dict[str, np.ndarray]) -> None:
        """Make room for the contacts of a snapshot, or for the snapshot's room for fewer."""
        rows = {"contact.gap": self._data.capacity, "contact.pair_size": self._data.pair_capacity}
        points, pairs = (len(snapshot.get(name, ())) for name in rows)
        if points > self._data.capacity or pairs > self._data.pair_capacity:
            self._solver.collider.make_room(max(pairs, self._data.pair_capacity), max(points, self._data.capacity))
            self._solver.rebind()
            self._look()
        kept = len(snapshot.get("rope_contact.kept_a", ()))
        while self._ropes is not None and self._ropes.kept_a.shape[0] < kept:
            self._grow_ropes(0)


class ContactReader:
    """Contacts of a simulation: called, those of one world; `arrays`, those of all."""

    __slots__ = ("_sim",)

    def __init__(self, sim: Owner) -> None:
        self._sim = sim

    def __repr__(self) -> str:
        return "<contacts: sim.contacts() has those of one world, sim.contacts.arrays those of all>"

    def __getattr__(self, name: str) -> Any:
        """What is not there, with where it is."""
        raise AttributeError(f"sim.contacts has no {name!r}: call sim.contacts() for one world, or take sim.contacts.arrays")

    def __call__(self, world: int = 0) -> ContactPoints:
        """Points of contact of a world after the last step: bodies, point, normal, gap, force, slip."""
        return self._sim._touch("contacts").points(world)  # type: ignore[no-any-return]

    @property
    def arrays(self) -> ContactArrays:
        """Contacts of all worlds after the last step as arrays on the device, and their sums on each body."""
        return self._sim._touch("contacts.arrays").all_worlds  # type: ignore[no-any-return]


class ContactAccess:
    """The part of a Simulation that is about contact."""

    __slots__ = ()
    _contact_monitor: ContactMonitor | None

    if TYPE_CHECKING:

        def body(self, name: str) -> Any:
            """The body of that name."""

    @property
    def contacts(self) -> ContactReader:
        """Contacts after the last step: `sim.contacts(world)`, the points of one world; `sim.contacts.arrays`, those of all."""
        return ContactReader(self)

    def contact_force(self, a: str, b: str | None = None) -> Any:
        """Force (N, world axes) on body or rope `a` by body or rope `b`, or by all that touches it, mean over the last step."""
        for name in (a,) if b is None else (a, b):
            self._touches(name)
        return self._touch("contact_force").force(a, b)

    ray, cast = Former("ray_cast"), Former("shape_cast")

    def ray_cast(self, origin: Any, direction: Any, length: Any = FAR, *, world: Any = 0, groups: int = EVERYTHING) -> Hits:
        """What rays meet first (m, world axes), one or many at once: distance, body, point, normal."""
        return self._touch("ray_cast").queries.ray_cast(origin, direction, length, world=world, groups=groups)

    def shape_cast(
        self, shape: Shape, position: Any, rotation: Any, direction: Any, length: Any = FAR, *, world: Any = 0,
        groups: int = EVERYTHING,
    ) -> Hits:  # fmt: skip
        """What a shape meets first on its way, from one place or from many at once."""
        return self._touch("shape_cast").queries.shape_cast(
            shape, position, rotation, direction, length, world=world, groups=groups
        )

    def overlaps(
        self, shape: Shape, position: Any, rotation: Any = (0.0, 0.0, 0.0, 1.0), *, world: Any = 0, groups: int = EVERYTHING
    ) -> list[list[str]]:
        """Names of the bodies that a shape overlaps at each of some places."""
        return self._touch("overlaps").queries.overlaps(shape, position, rotation, world=world, groups=groups)

    def distance(self, a: str | list[str], b: str | list[str], *, world: Any = 0) -> Hits:
        """Distances (m) of bodies, negative where they overlap, with points on a and normals from a to b."""
        return self._touch("distance").queries.distance(a, b, world=world)

    def on_contact(
        self, a: str, b: str, *, begin: Callable[[], None] | None = None, end: Callable[[], None] | None = None
    ) -> None:
        """Call `begin` after the step in which two bodies (or a rope and a body) come to touch, `end` when they part."""
        for name in (a, b):
            self._touches(name)
        touching = self._touch("on_contact")
        touching.watched.append(Watched(frozenset((a, b)), begin, end, b in touching.partners(a)))

    def _touches(self, name: str) -> None:
        """Refuse what is neither a body nor a rope."""
        if not isinstance(name, str) or name not in getattr(self, "_ropes", {}):
            self.body(name)

    def _touch(self, what: str) -> ContactMonitor:
        if self._contact_monitor is None:
            raise SimulationError(f"{what}: bodies of this scene do not touch; add a ground, or Scene(contact=True)")
        return self._contact_monitor
