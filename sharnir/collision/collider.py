"""Collider: contact detection for a model, on the host's side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp

from sharnir.collision.collide import BLOCK_THREADS, collide_kernel
from sharnir.collision.data import Broad, Collision, Contacts, Kept, Materials, Polytope
from sharnir.collision.describe import CollisionDescription
from sharnir.collision.material import Material
from sharnir.collision.tables import material_table, material_values, per_world, shape_table
from sharnir.core.types import alone, load_modules, np_real, real
from sharnir.errors import SceneError, SimulationError
from sharnir.model.model import DYNAMIC, SLEEP_FIELDS, Model, State, fill

CORNERS, FACES, RIM = 96, 192, 64
"""Room of the generic pair's polytope."""

PAIR_FIELDS = ("pair_first", "pair_size", "pair_feature")
ANCHOR_FIELDS = ("anchor_position", "anchor_rotation")
HELD_FIELDS = ("held",)
WORLD_FIELDS = ("count", "lost", "pairs")
WIDE_FIELDS = tuple(n for n, f in Contacts.vars.items() if getattr(f.type, "ndim", 0) == 2)  # type: ignore[attr-defined]
POINT_FIELDS = tuple(n for n in WIDE_FIELDS if n not in (*PAIR_FIELDS, *ANCHOR_FIELDS, *HELD_FIELDS, *SLEEP_FIELDS, "enabled"))


@dataclass
class Bodies:
    """Arrays of bodies to bind to, [body, world], where they are no State's."""

    position: Any
    rotation: Any
    velocity: Any
    spin: Any
    idle: Any
    asleep: Any
    resting: Any


class Collider:
    """Finds the points of contact of all worlds of a model.

    Args:
        dt: s, a step; points that close within one are found.
        points, pairs: room for so many points of contact and pairs of near shapes in each world; see `grow`.
    """

    def __init__(self, model: Model, dt: float, *, points: int | None = None, pairs: int | None = None) -> None:
        if not isinstance(model.collision, CollisionDescription):
            raise SceneError("the scene has no contact: add a ground, or a body with collide=True")
        self.model, self.given = model, model.collision
        motion = model.bodies.motion.numpy()
        self.data = Collision()
        self.data.shapes = shape_table(self.given, model.com, motion, model.worlds, model.device)
        rows = [*self.given.materials.values(), *self.given.rules.values()]
        self.data.materials = material_table(rows or [Material()], model.worlds, model.device)
        self.data.dt = wp.full(1, real(dt), dtype=real, device=model.device)
        self._kept: Any = State()  # who sleeps, until a state is bound
        fill(self._kept, model, len(model.com), "idle asleep")
        fill(self._kept, model, None, "resting")
        self._enabled = model.control_enabled()  # which joints hold, until a control is bound
        self._ties = [wp.array(np.ascontiguousarray(x), dtype=wp.int32, device=model.device) for x in model.ties().T]
        guess_pairs, guess_points = self._room(motion)
        self.make_room(guess_pairs if pairs is None else pairs, guess_points if points is None else points)
        polytope = Polytope()
        kinds = {shape.part.kind for shape in self.given.shapes}
        self.kernel = collide_kernel(kinds)
        """Which finds the points of all worlds."""
        generic = bool(kinds - {"plane", "sphere", "capsule", "box"})
        polytope.capacity, polytope.face_capacity = (CORNERS, FACES) if generic else (0, 0)
        fill(polytope, model, polytope.capacity, "corner on_a")
        fill(polytope, model, polytope.face_capacity, "face plane")
        fill(polytope, model, RIM if generic else 0, "rim")
        self.data.polytope = polytope
        self.array: Any = None
        """The `Collision` as kernels take it; None before `bind`."""
        self.ropes: Any = None
        """A `RopeState`, for rays; None where there are no ropes, or none that it knows of."""
        self.changes = 0
        """How often materials were changed."""

    # ---- room ----

    def _room(self, motion: np.ndarray) -> tuple[int, int]:
        """Pairs and points that a world may have at once, as far as can be guessed."""
        moving = sum(motion[s.body] == DYNAMIC for s in self.given.shapes)
        n = len(self.given.shapes)
        wide = int(self.data.shapes.wides)
        most = moving * (moving - 1) // 2 + moving * (n - moving)
        rough = sum(s.part.kind in ("mesh", "heights") for s in self.given.shapes)
        pairs = max(1, min(most, moving * (16 + wide) + 16))
        return pairs, max(4, min(4 * most + 28 * rough * moving, 16 * moving + 32 + 16 * moving * min(rough, 1)))

    def make_room(self, pairs: int, points: int) -> None:
        """Arrays for so many; what was in smaller ones is kept."""
        model, n = self.model, len(self.given.shapes)
        contacts, broad, kept = Contacts(), Broad(), Kept()
        contacts.capacity, contacts.pair_capacity, broad.capacity = points, pairs, pairs
        fill(contacts, model, None, " ".join(WORLD_FIELDS))
        fill(contacts, model, points, " ".join(POINT_FIELDS))
        fill(contacts, model, pairs, " ".join(PAIR_FIELDS))
        fill(contacts, model, len(model.com), " ".join(ANCHOR_FIELDS))
        fill(broad, model, n, "centre frame low high")
        fill(broad, model, int(self.data.shapes.sweeps), "order edge side")
        fill(broad, model, pairs, "raw_a raw_b a b rule")
        fill(broad, model, n + 1, "first")
        fill(broad, model, None, "count lost made")
        for struct in (contacts, broad):
            fill(struct, model, len(self.data.shapes.held_joint), "held")
        fill(broad, model, len(model.com), "still moved turned way thrown thrown_by thrown_next")
        fill(kept, model, None, "pairs")
        fill(kept, model, pairs, "a b first size feature touched")
        fill(kept, model, points, "local impulse")
        swept = self.data.shapes.swept.numpy()
        broad.order.assign(np.ascontiguousarray(np.repeat(swept[:, None], model.worlds, 1)))
        old = self.data.contacts
        if getattr(self, "_has_room", False):
            for name in (*WORLD_FIELDS, *ANCHOR_FIELDS, *HELD_FIELDS):
                wp.copy(getattr(contacts, name), getattr(old, name))
            for name, rows in [(f, old.capacity) for f in POINT_FIELDS] + [(f, old.pair_capacity) for f in PAIR_FIELDS]:
                values = getattr(contacts, name).numpy()
                values[:rows] = getattr(old, name).numpy()
                getattr(contacts, name).assign(values)
        else:
            contacts.held.assign(self._enabled.numpy()[self.data.shapes.held_joint.numpy()])
        self._has_room = True
        contacts.enabled = self._enabled
        contacts.joined_a, contacts.joined_b = self._ties
        for name in SLEEP_FIELDS:
            setattr(contacts, name, getattr(self._kept, name))
        self.data.contacts, self.data.broad, self.data.kept = contacts, broad, kept

    @property
    def lost(self) -> int:
        """Points and pairs of the last step for which some world had no room."""
        return int(self.data.contacts.lost.numpy().max())

    def grow(self) -> bool:
        """Make room where the last step had too little, between steps. True: all arrays are new; bind and capture again."""
        lost = self.lost
        if lost == 0:
            return False
        contacts = self.data.contacts
        pairs = contacts.pair_capacity + 2 * int(self.data.broad.lost.numpy().max())
        points = contacts.capacity
        if int(self.data.broad.lost.numpy().max()) < lost or int(contacts.count.numpy().max()) >= points:
            points = 2 * points + 2 * lost
        self.make_room(max(pairs, contacts.pair_capacity), points)
        if self.array is not None:
            self._upload()
        return True

    # ---- a step ----

    def bind(self, state: Any, control: Any = None) -> None:
        """Take positions, rotations, velocities and spins from a state, or from whatever has arrays of these names; and which
        joints are enabled from a control. Without one, they are as they were.
        """
        if control is not None:
            self._enabled = control.enabled
            self.data.contacts.enabled = self._enabled
        self.data.position, self.data.rotation = state.position, state.rotation
        self.data.velocity, self.data.spin = state.velocity, state.spin
        self._kept = state
        for name in SLEEP_FIELDS:
            setattr(self.data.contacts, name, getattr(state, name))
        if self.model.ropes is not None:
            self.ropes = getattr(state, "rope", self.ropes)
        self._upload()

    def _upload(self) -> None:
        self.array = alone(self.data, Collision, self.model.device)

    def launch(self) -> None:
        """Find all points; may be captured."""
        if self.array is None:
            raise SimulationError("Collider: bind(state) comes before launch()")
        load_modules([self.kernel.module], self.model.device)
        self.find(0, self.model.worlds)

    def find(self, first: int, worlds: int) -> None:
        """Find the points of some worlds, with the kernel loaded."""
        wp.launch(self.kernel, dim=worlds, inputs=[self.array, first], device=self.model.device, block_dim=BLOCK_THREADS)

    def take_back(self) -> None:
        """After the last step was taken back: points are those that it started from, as far as the next one needs them."""
        contacts, kept = self.data.contacts, self.data.kept
        for name, old in (("pairs", "pairs"), ("pair_first", "first"), ("pair_size", "size"), ("pair_feature", "feature"),
                          ("local", "local"), ("impulse", "impulse")):  # fmt: skip
            getattr(contacts, name).assign(getattr(kept, old))
        self.wake()
        pairs, first, size = (getattr(kept, n).numpy() for n in ("pairs", "first", "size"))
        count = contacts.count.numpy()
        shapes = [(getattr(contacts, f"shape_{n}").numpy(), getattr(kept, n).numpy()) for n in "ab"]
        for w, n in enumerate(pairs):
            count[w] = size[:n, w].sum()
            for now, before in shapes:
                now[first[:n, w], w] = before[:n, w]
        contacts.count.assign(count)
        for (now, _), n in zip(shapes, "ab", strict=True):
            getattr(contacts, f"shape_{n}").assign(now)

    def forget(self) -> None:
        """No points, nor anything of the step before."""
        contacts = self.data.contacts
        for array in (contacts.count, contacts.pairs, self.data.kept.pairs, self.data.broad.made):
            array.zero_()
        self.wake()

    def renew(self) -> None:
        """Forget the list of near pairs: after bodies were put elsewhere by hand that does not matter, after filters it does."""
        self.data.broad.made.zero_()
        self.wake()

    def wake(self) -> None:
        """Look at all bodies anew in the next step, also at those that sleep."""
        self.data.contacts.anchor_rotation.zero_()
        for name in SLEEP_FIELDS:
            getattr(self.data.contacts, name).zero_()

    @property
    def dt(self) -> float:
        """s."""
        return float(self.data.dt.numpy()[0])

    @dt.setter
    def dt(self, value: float) -> None:
        self.data.dt.fill_(real(value))

    # ---- materials ----

    def set_material(self, body: str, material: Material, world: int | None = None) -> None:
        """Give all shapes of a body another material, in all worlds or in one."""
        owners = [k for k, name in enumerate(self.given.materials) if name == body or name.startswith(f"{body} ")]
        if not owners:
            raise SimulationError(
                f"body {body!r} has no collision shapes; available: {', '.join(map(repr, self.given.materials))}"
            )
        for row in owners:
            self._set_row(row, material, world)

    def _set_row(self, row: int, material: Material, world: int | None) -> None:
        for name, value in material_values(material).items():
            array = self._material_array(name, world is not None)
            values = array.numpy()
            values[row, slice(None) if world is None else world] = np.asarray(value, np_real)
            array.assign(values)
        self._materials_changed()

    def materials(self) -> dict[str, np.ndarray]:
        """(materials, worlds, …) of now, a field of `Materials` each; copies."""
        return {name: np.array(getattr(self.data.materials, name).numpy()) for name in Materials.vars}  # type: ignore[attr-defined]

    def put_materials(self, given: dict[str, np.ndarray]) -> None:
        """Make the materials what `materials` returned."""
        for name, values in given.items():
            array = self._material_array(name, bool((values != values[:, :1]).any()))
            array.assign(np.ascontiguousarray(values[:, : array.shape[1]]))
        self._materials_changed()

    def _material_array(self, name: str, apart: bool) -> Any:
        """Where a field of the materials is written: [material, 1] while all worlds share it, and none is to be apart."""
        array = getattr(self.data.materials, name)
        shared = array.shape[1] > 1 and array.strides[1] == 0
        if shared and apart:
            array = per_world(array)
            setattr(self.data.materials, name, array)
        return array.base if shared and not apart else array

    def _materials_changed(self) -> None:
        self.changes += 1
        self.wake()  # points that are kept have their material
        if self.array is not None:  # in its place: captured steps go on with it
            wp.copy(self.array, alone(self.data, Collision, self.model.device))

    # ---- what was found ----

    def contacts(self, world: int = 0) -> dict[str, np.ndarray]:
        """The points of a world: (points, …) a field of `Contacts`; on the CPU views, until the next step."""
        count = int(self.data.contacts.count.numpy()[world])
        return {name: getattr(self.data.contacts, name).numpy()[:count, world] for name in POINT_FIELDS}

    def _joint_to_world(self, a: int, b: int) -> str | None:
        """The name of an enabled joint that holds a body in the world, if one of two bodies is the world; None if none does."""
        model = self.model
        for name, k in model.joint_names.items():
            pair = {int(model.parents[k]), int(model.children[k])}
            if pair == {a, b} and 0 in pair and model.joint_enabled[k]:
                return name
        return None

    def deep_at_start(self, part: float = 0.25, held: float = 0.01) -> list[str]:
        """A line for each pair of shapes that overlap now by more than a part of the smaller one's size; nothing is solved.

        `held`: the same part for a ground and a body that a joint holds in the world: they cannot be pushed apart freely.
        """
        words = []
        points = self.contacts()
        shapes = self.given.shapes
        seen: set[tuple[int, int]] = set()
        for i in np.argsort(points["gap"]).tolist():
            a, b = int(points["shape_a"][i]), int(points["shape_b"][i])
            sizes = [s for s in (shapes[a].part.bound, shapes[b].part.bound) if s > 0]
            depth = -float(points["gap"][i])
            cast = any(s.part.belt >= 0 and self.given.belts[s.part.belt].body == 0 for s in (shapes[a], shapes[b]))
            if cast or (a, b) in seen:  # how deep a raycast wheel stands is its suspension's
                continue
            joint = self._joint_to_world(shapes[a].body, shapes[b].body)
            if depth > (part if joint is None else held) * min(sizes):
                seen.add((a, b))
                words.append(f"{shapes[a].name} and {shapes[b].name} start {depth:.3g} m inside each other")
                if joint is not None:
                    names = {b: name for name, b in self.model.body_names.items()}
                    bodies = ", ".join(repr(names[shapes[k].body]) for k in (a, b))
                    words[-1] += f", where joint {joint!r} holds it; if this is meant, use scene.ignore({bodies})"
        return words
