"""Trees in joint coordinates, as `SolverDirect` steps them (`engine.tree`)."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import warp as wp

from sharnir.core.spatial import matrix_to_quat
from sharnir.core.strided import table
from sharnir.core.types import PRECISION, alone, begin_modules, load_modules, np_real, quat, real, vec3
from sharnir.engine.base import write
from sharnir.engine.caps import HEARD, MOST_PASSES, NEVER
from sharnir.engine.sleep import SLOWEST, joining, reaches, rest_of
from sharnir.engine.tree.around import BLOCK, begin_links, begin_worlds, end_joints, end_links, end_worlds
from sharnir.engine.tree.build import LOOSE_MASK, Plan
from sharnir.engine.tree.closures import CAST, ROPE, ROWS, WINCH, RowTables, closures_of
from sharnir.engine.tree.closures import PARAMETERS as CLOSURE_NUMBERS
from sharnir.engine.tree.contact_runtime import entries_of, law_memory, room_of, table_room
from sharnir.engine.tree.forest import BALL, HINGE, LAWS, PRESCRIBED, ROTOR, SEVERAL, SLIDER, SLIDES, TURNS
from sharnir.engine.tree.generic import THREADS, generic_kernel, lanes_of_warps
from sharnir.engine.tree.placement import threads
from sharnir.engine.tree.row_storage import KEPT, packed_tables, row_memory
from sharnir.engine.tree.runtime import LAWS_CHANGED, LOG_ROW, ROOM, SLOTS, Impacts, TreeSettings, TreeStep
from sharnir.engine.tree.special import Specialized, acting_laws
from sharnir.engine.tree.storage import CLOSED, ROW, ROW_APART, TOGETHER
from sharnir.errors import StepWarning, callers_level
from sharnir.laws.casts import cast_table
from sharnir.model.model import KINEMATIC, Control, Model, State, fill, scene_scale

TOLERANCE = {"double": 4e-16, "single": 5e-6}  # error of mean speeds that iterations may leave, of the scene's speed
ACTED = {"double": 1e4, "single": 1.0}  # times as much, at most, where laws act: energy is not kept as finely there
FROM_REST = 1e-9  # of what the scene's accelerations change in a step: no more than this is left where laws act, this where
SWEPT_FROM_REST = 1e-7  # bodies are in contact, or about to be, and this where their impulses are swept
LEAST_OF_LOOPS = 400  # passes that a step with loops may always take: one that is cut before may open them
NO_NEARER = 400  # times the tolerance: changes below that do not fall any more are rounding
ROUNDING = {"double": 1e-16, "single": 1e-7}  # rad or scene lengths, times the links: what changes by rounding
LAW_TOLERANCE, LEAST_LAW = 1e-12, 1e-14  # of the scene's impulses: by which a law may be missed, and the least that is asked for
FINEST = 1e-4  # rad or scene lengths in half a step at the scene's speed: finer is rounding
PASSES = 30  # of an iteration: then the step is divided
MOST_MEMORY = 16 << 30  # bytes of working memory on a GPU
SPINS = 1000  # looks at whether steps have ended, before waiting for the device
LARGEST = 24  # links, up to which a model is specialized on a GPU unless told otherwise
MOST = 64  # links, up to which it is where that is asked for: the compiler takes minutes beyond


def materials_of(model: Model) -> list[Any]:
    """All materials of surfaces, and of pairs of them."""
    return [*model.collision.materials.values(), *model.collision.rules.values()]


def refusal(plan: Plan, closures: Sequence[Any], control: Control, most: int = MOST) -> str:
    """Why a model has no specialized code; "" if it can have."""
    m, places = plan.model, plan.places
    names = list(m.joint_names)
    if m.collision is not None:
        return "bodies touch"
    if m.ropes is not None:
        return f"rope {next(iter(m.ropes.names))!r} hangs on bodies"
    if closures:
        return "rows beside the tree join bodies"
    if len(places) > most:
        return f"the model has {len(places)} links; at most {most} are allowed"
    if int(m.drives.count):
        driven = names[int(m.drives.joint.numpy()[0])]
        return f"joint {driven!r} has an engine or a cylinder, whose force is found before each step"
    strength = np.minimum(m.joints.break_force.numpy(), m.joints.break_torque.numpy()) if names else np.ones(0)
    weak: Any = np.flatnonzero(((strength < 1e30) & (strength > 0)).reshape(len(names), -1).any(1)) if names else []
    if len(weak):
        return f"joint {names[weak[0]]!r} may break"
    motors: Any = m.axes.resistance.numpy().any(-1) if m.speeds else np.zeros(0, bool)
    for p in places:
        if p.kind in SEVERAL and motors[p.axis : p.axis + (len(p.slots) or 3)].any():
            return f"joint {names[p.joint]!r} has a motor on axes that are solved together"
    loads: Any = np.flatnonzero((control.friction_load.numpy() > 0).any(-1)) if m.speeds else []
    if len(loads):
        joint = int(np.searchsorted(m.v_start, loads[0], side="right")) - 1
        return f"joint {names[joint]!r} has friction that grows with its load"
    return ""


def begin_early(model: Model, worlds: int, specialize: bool | None) -> None:
    """Have code for a model emitted, and compiled by a GPU while the start of its scene is found; its steps ask for it again."""
    plan, control = Plan(model), model.control()
    closures = closures_of(plan) if plan.beside else []
    if not refusal(plan, closures, control, MOST if specialize else LARGEST):
        compile_code(Specialized(plan, model, control, True), worlds, model.device)


def compile_code(special: Specialized, worlds: int, device: Any) -> int:
    """Threads of a block, for so many worlds; a GPU compiles code, and what is around it, from now on."""
    where, size = wp.get_device(device), np.dtype(np_real).itemsize
    count = threads(worlds, special.placement.numbers, size, where) if where.is_cuda else 0
    begin_modules([special.kernel(count).module, begin_worlds.module, begin_links.module], device)
    return count


class Trees:
    """The trees of a solver's model: what their kernel is given.

    Args:
        solver: the `SolverDirect` whose model it is.
        rough: joints to which friction was given after the model was built.
        loose: joints that may be disabled: in paths of rows they have room for all axes.
    """

    def __init__(self, solver: Any, rough: Collection[int] = (), loose: Collection[int] = ()) -> None:
        self.solver, self.model = solver, solver.model
        self.plan = Plan(self.model, rough, whole=not loose)
        self._special: Specialized | None = None
        self._settled = False  # whether steps were bound to that
        self.specialized = False  # whether the bound steps are
        self.judges = False  # whether the guard's part is done in them
        self._again: list[Any] | None = None
        self._generic: list[Any] | None = None  # launches of the code for any forest, where specialized code leaves steps to it
        self._told = False  # whether the user knows that laws changed
        self.closures = closures_of(self.plan) if self.plan.beside else []
        self.touching: Any = None
        """Points of contact of ropes, where these touch."""
        if self.model.ropes is not None:
            from sharnir.engine.direct.roped_steps import ends_of
            from sharnir.engine.rope.touch_tables import touch_table, touches

            if touches(self.model):
                self.touching = touch_table(self.model, None)
            if self.touching is None:  # else rows that are found in every step (`roped_touch`)
                self.closures += ends_of(self.model.ropes, self.plan)
        self.loose = set(loose)
        m = self.model
        self.measures = m.ropes is None and not (m.bodies.motion.numpy() == KINEMATIC).any()
        """Whether steps measure the energy that is given: all but that of bodies on prescribed motions, and of ropes."""
        self.work, self.taken, self.unsolved = (wp.zeros(m.worlds, dtype=real, device=m.device) for _ in range(3))
        self.rotors = [p.body for p in self.plan.places if p.kind == ROTOR]

    @staticmethod
    def cover(model: Model) -> bool:
        """Whether all of a model is trees, rows beside them, contacts, and ropes that `roped_steps` covers and that touch
        nothing, or touch on a CPU in double precision (`roped_steps.covers_touching`).

        Ropes beside rods in redundant loops are left to the former passes: where these are singular, passes with the exact
        derivative alone, as ropes need them, do not converge.
        """
        if model.ropes is not None:
            from sharnir.engine.direct.roped_steps import covers, covers_touching
            from sharnir.engine.rope.touch_tables import touches

            rods = any(kind.mask and not kind.v_size for kind in model.joint_kinds)
            if touches(model) and not covers_touching(model):
                return False
            if not covers(model.ropes) or (rods and model.redundant):
                return False
        return True

    def make_room(self) -> None:
        """Room for twice as many points of contact of ropes; to be bound again."""
        from sharnir.engine.rope.touch_tables import touch_table

        self.touching = touch_table(self.model, None, self.touching)

    def loosen(self, control: Control) -> bool:
        """Give room to joints that are disabled now, may break or may do nothing; whether more of them have it than had."""
        m = self.model
        if not self.closures or not m.joint_kinds:
            return False
        off = (control.enabled.numpy() == 0).any(-1) | ~m.joint_enabled
        off |= np.minimum(m.joints.break_force.numpy(), m.joints.break_torque.numpy()) < 1e30
        off |= [kind.mask == LOOSE_MASK for kind in m.joint_kinds]
        before, self.loose = self.loose, self.loose | set(np.flatnonzero(off).tolist())
        return self.loose != before

    def roughened(self, control: Control) -> set[int]:
        """Joints with friction that several axes share now, though each of these has a link of its own."""
        m = self.model
        if not m.speeds:
            return set()
        friction = control.friction_static.numpy() + control.friction_dynamic.numpy() + control.friction_load.numpy()
        groups, rough = m.axes.group.numpy(), friction.any(-1)
        alone: dict[int, list[int]] = {}
        for p in self.plan.places:
            if p.axis >= 0 and p.kind not in SEVERAL:
                alone.setdefault(p.joint, []).append(p.axis)
        return {k for k, axes in alone.items() if any(rough[a] and (groups[axes] == groups[a]).sum() > 1 for a in axes)}

    @property
    def rows(self) -> int:
        """Numbers of `State.tree`."""
        closures = len(self.closures) + len(KEPT) * sum(ROWS[c.kind] for c in self.closures)
        return 2 + ROOM * self.plan.most + closures

    @property
    def takes(self) -> float:
        """About how long a pass takes on one core, s."""
        ropes = 0 if self.model.ropes is None else int(self.model.ropes.slots)
        return 0.3e-6 * max(1, len(self.plan.places)) + 0.2e-6 * sum(ROWS[c.kind] for c in self.closures) + 0.5e-6 * ropes

    def caps(self, iterations: int | None) -> list[int]:
        """Most passes of an iteration and of a step; 1 where a step that has used them up ends as it is; steps of a launch."""
        least = LEAST_OF_LOOPS if any(c.kind not in (ROPE, WINCH) for c in self.closures) else 0
        most = MOST_PASSES if iterations is None else max(iterations, least)
        steps = max(1, int(HEARD / (4 * self.takes))) if wp.get_device(self.model.device).is_cpu else NEVER
        return [0, PASSES, most, int(iterations is not None), 0, 1, steps, 0, 0]

    def bind(self, state: State, control: Control) -> tuple[Any, Any]:
        """The structure for these arrays, as an array of one, and itself."""
        solver, m, plan = self.solver, self.model, self.plan
        device, places, n = m.device, plan.places, len(plan.places)
        solver._together = type(solver)._together
        t = TreeStep()
        t.bodies, t.joints, t.axes, t.drives, t.control = m.bodies, m.joints, m.axes, m.drives, control
        t.state = t.now = state
        t.settings = TreeSettings()
        for name in TreeSettings.vars:  # type: ignore[attr-defined]
            setattr(t.settings, name, getattr(solver.settings, name))
        t.tally, t.links, t.worlds = solver.tally, n, m.worlds

        def ints(values: list[int]) -> Any:
            return wp.array(np.array(values, np.int32), dtype=wp.int32, device=device)

        carries: list[int] = []
        number: list[int] = []
        body = -1
        for p in reversed(places):
            body = p.body if p.body >= 0 else body
            carries.insert(0, body)
        for p in places:
            number.append(p.axis - int(m.v_start[p.joint]) if p.axis >= 0 else 0)
        t.base_built, t.kind_built = ints([p.base for p in places]), ints([p.kind for p in places])
        t.joint, t.body = ints([p.joint for p in places]), ints([-1 if p.part else p.body for p in places])
        t.carries, t.number = ints(carries), ints(number)
        t.axis, t.sense = ints([p.axis for p in places]), ints([p.sense for p in places])
        t.slides = ints([3 if p.kind == BALL else len(p.slots) for p in places])
        t.first = ints([2 + ROOM * i for i in range(n)])
        t.base, t.kind, t.acts = (wp.full(n * m.worlds, -2, dtype=wp.int32, device=device) for _ in range(3))
        x = plan.numbers
        t.frame = table(matrix_to_quat(x["frame"]), quat, m.worlds, device)
        t.anchor, t.com = (table(x[name], vec3, m.worlds, device) for name in ("anchor", "com"))
        t.own_turn = table(matrix_to_quat(plan.own_turn), quat, m.worlds, device)
        t.own_point = table(plan.own_point, vec3, m.worlds, device)
        numbers = plan.table()
        varied = numbers.shape[1] > 1
        t.parameters = wp.array(numbers.ravel(), dtype=real, device=device)
        t.parameter_stride, t.parameter_world = numbers.shape[1], int(varied)
        memory = (ROW + ROW_APART) * (n + 1) + self._bind_rows(t, ints)
        self._memory = t.memory_size_of_world = memory
        t.own_axes = 0
        self._set_tolerances(t)
        reach = reaches(m)
        t.reach = wp.array(
            [reach[p.body] if p.body >= 0 and not p.part and p.kind != PRESCRIBED else -1.0 for p in places],
            dtype=real,
            device=device,
        )
        strength = np.minimum(m.joints.break_force.numpy(), m.joints.break_torque.numpy()) if m.joint_kinds else np.ones(0)
        t.breakable = int(((strength < 1e30) & (strength > 0)).any())
        t.work, t.taken, t.unsolved = self.work, self.taken, self.unsolved
        fill(t, m, n, "turn origin")
        fill(t, m, None, "pushed passes to_come change part hit slow loaded todo now_made fresh mark reported slot_end seen")
        t.parts, t.projected, t.done, t.residual = solver.parts, solver.projected, solver.done, solver.residual
        t.grades, t.made = solver.grades, solver._made
        self.specialized = self._is_specialized(control)
        self.begin_code(control)
        self.judges = self.specialized and self._special is not None and self._special.on_gpu
        solver._spread = self.judges and self.measures and not self.model.spring_names
        solver._looks_first = not self.judges or len(solver._sprung()) > 0  # energy of springs may change unseen
        solver._watch(state, control, 0 if solver.collider is None else 2)
        t.contacts = joining(m, state, control)
        if solver.collider is not None:
            self._bind_contacts(t, state, control)
        self._rest = rest_of(m, solver.settings, state, state, control, t.contacts)
        t.rest = self._rest[0]
        return self._bind_steps(t, state, control)

    def _bind_steps(self, t: Any, state: State, control: Control) -> tuple[Any, Any]:
        """The kernel, and what it is given."""
        solver, m, device = self.solver, self.model, self.model.device
        solver._passes, solver._pace = t.passes, self.takes
        write(solver.settings.iterations, solver._caps(solver._capped))
        if self.specialized:
            return self._specialize(t, control)
        solver._kernel = self._generic_kernel()
        touches_on_gpu = solver.collider is not None and wp.get_device(device).is_cuda
        solver._blocks = {"block_dim": THREADS} if touches_on_gpu else {}
        solver._lanes = t.lanes = lanes_of_warps(m.worlds, wp.get_device(device).sm_count) if touches_on_gpu else 0
        load_modules([solver._kernel.module], device)
        if solver.collider is not None and m.worlds > 1 and not solver._blocks and m.ropes is None:
            return self._a_memory_each(t), t
        self._give_memory(t)
        if m.ropes is not None:
            from sharnir.engine.direct.roped_data import RopedTree
            from sharnir.engine.direct.roped_steps import bind

            touch = None if self.touching is None else (self.touching, solver.collider.array)
            roped, self._kept_ropes = bind(t, self._tables, m, state, control, self.plan, solver.rope_caps, touch)
            self._kept = roped
            return alone(roped, RopedTree, device), t
        return alone(t, TreeStep, device), t

    def _a_memory_each(self, t: Any) -> list[Any]:
        """The structure once for each thread: its worlds are stepped one after the other in the same working memory."""
        self._copies = []
        for _ in range(self.solver.threads):
            own = TreeStep()
            for name in TreeStep.vars:  # type: ignore[attr-defined]
                setattr(own, name, getattr(t, name))
            own.memory = wp.zeros(self._memory, dtype=real, device=self.model.device)
            own.memory_number, own.memory_world, own.memory_worlds, own.memory_size_of_world = 1, 0, 1, 0
            self._copies.append(own)
        return [alone(own, TreeStep, self.model.device) for own in self._copies]

    def _give_memory(self, t: Any) -> None:
        """Working memory of generic steps: on a GPU for as many worlds as have room, which are then stepped in turns."""
        device, worlds = wp.get_device(self.model.device), self.model.worlds
        if device.is_cuda:
            size = self._memory * np.dtype(np_real).itemsize
            most = min(MOST_MEMORY, device.total_memory // 8) // size // BLOCK * BLOCK
            worlds = -(-worlds // TOGETHER) * TOGETHER
            worlds = min(worlds, max(BLOCK, min(most, (1 << 31) // self._memory // BLOCK * BLOCK)))
            self.solver._together = worlds
        t.memory = wp.zeros(self._memory * worlds, dtype=real, device=device)
        t.memory_number, t.memory_world = (1, self._memory) if device.is_cpu else (TOGETHER, 1)
        t.memory_worlds = worlds

    def _set_tolerances(self, t: Any) -> None:
        """What iterations may leave, and the speed below which bodies stand still, by the scene's scales."""
        solver, m, places = self.solver, self.model, self.plan.places
        mass, length, speed = scene_scale(m, solver.dt)
        moved = 0.5 * solver.dt * speed / length  # rad: a mean speed of the scene, scaled as they are in a step
        least = TOLERANCE[PRECISION] * max(moved, FINEST)
        t.tolerance = least * max(1.0, 0.1 * float(solver.settings.tolerance.numpy()[2]))
        t.acted_tolerance = max(min(least * ACTED[PRECISION], FROM_REST * 2.0 * moved * moved), t.tolerance)
        t.contact_tolerance = max(t.acted_tolerance, FROM_REST * 2.0 * moved * moved)
        t.swept_tolerance = max(t.acted_tolerance, SWEPT_FROM_REST * 2.0 * moved * moved)
        t.rounding = max(NO_NEARER * t.tolerance, ROUNDING[PRECISION] * len(places))
        impulse = mass * length * speed
        t.law_tolerance, t.per_change = LAW_TOLERANCE * impulse * min(1.0, 1e3 * solver.dt), 1.0
        if int(solver.settings.absolute.numpy()[0]):  # an impulse, N·s or N·m·s
            t.law_tolerance = max(float(solver.settings.tolerance.numpy()[0]), LEAST_LAW * impulse)
            t.per_change = 2.0 * mass * length / solver.dt
            t.acted_tolerance = max(min(t.acted_tolerance, t.law_tolerance / t.per_change), t.tolerance)
        t.slowest = SLOWEST * speed

    def _generic_kernel(self) -> Any:
        kinds = {p.kind for p in self.plan.places if p.kind >= 0}
        m = self.model
        if m.ropes is not None:
            from sharnir.engine.direct.roped_steps import roped_kernel

            return roped_kernel(m.collision is not None)
        more = int(m.drives.count) > 0 or bool(m.cable_names) or bool(m.casts)
        return generic_kernel(more, kinds, bool(self.closures), self.model.collision is not None)

    def _bind_contacts(self, t: Any, state: State, control: Control) -> None:
        """Contacts of the bodies, for these arrays."""
        solver = self.solver
        solver.collider.data.dt = solver.settings.dt
        solver.collider.bind(state, control)
        load_modules([solver.collider.kernel.module], self.model.device)
        solver.touch = Impacts()
        fill(solver.touch, self.model, solver.collider.data.contacts.capacity, "blow slip bend")
        solver._guard.bend = solver.touch.bend
        solver._watch_contacts()
        t.contacts, t.shapes = solver.collider.data.contacts, solver.collider.data.shapes
        t.blow, t.slip, t.bend = solver.touch.blow, solver.touch.slip, solver.touch.bend

    def _bind_rows(self, t: Any, ints: Any) -> int:
        """What rows beside the forest are given; returns how many numbers of working memory they need."""
        m, places = self.model, self.plan.places
        loose = {i for i, p in enumerate(places) if p.joint in self.loose}
        self._tables = tables = RowTables(self.plan.forest(), self.closures, loose)
        alike = {places[i].joint for i in tables.geared if m.joint_kinds[places[i].joint].mask == LOOSE_MASK}
        t.cut = ints([int(p.part) for p in places])
        t.geared = ints([int(i in tables.geared or p.joint in alike) for i, p in enumerate(places)])
        t.casts = cast_table(m)
        t.cast_belt = ints([cast.belt for cast in m.casts])
        belts = {m.casts[c.item].belt: i for i, c in enumerate(tables.closures) if c.kind == CAST}
        t.cast_closure = ints([belts.get(k, -1) for k in range(int(t.casts.count))])
        t.closures, t.closure_first = len(tables.closures), 2 + ROOM * len(places)
        touches = m.collision is not None
        if not tables.closures and not touches and m.ropes is None:
            return 0
        t.closure_kind, t.closure_item = ints([c.kind for c in tables.closures]), ints([c.item for c in tables.closures])
        t.closure_a, t.closure_b = ints([c.a for c in tables.closures]), ints([c.b for c in tables.closures])
        t.springs, t.cables, t.row_stride, t.row_world, t.closed = m.springs, m.cables, m.worlds, 1, CLOSED[PRECISION]
        numbers, memory = tables.parameters(m.worlds), row_memory(tables)
        if not touches:
            t.row_tables = ints(packed_tables(tables))
            t.row_numbers = wp.array(numbers.ravel(), dtype=real, device=m.device)
            return memory
        depth = [1] * len(places)
        for i, place in enumerate(places):
            depth[i] += depth[place.base] if place.base >= 0 else 0
        axes = int(sum(p.kind in (HINGE, SLIDER) for p in places))
        materials = materials_of(m)
        turning = 2 * any(x.rolling for x in materials) + any(x.torsion for x in materials)
        path = min((4 if m.collision.belts else 2) * max(depth, default=0), len(places))
        along = (0, 0)
        if self.touching is not None:
            from sharnir.engine.direct.roped_steps import touch_room

            most, points = touch_room(self.touching, m.ropes)
            along = most, points * m.ropes.count
        room = room_of(int(self.solver.collider.data.contacts.capacity), axes, path, turning, 6 * path, 6 * len(places), along)
        ropes = 0 if self.touching is None else m.ropes.count
        packed = packed_tables(tables, table_room(room, tables, len(places) + ropes))
        self._give_tables(t, np.array(packed, np.int32))
        more = np.zeros((sum(CLOSURE_NUMBERS.values()) * room["closures"], m.worlds))
        t.row_numbers = wp.array(np.concatenate([numbers, more]).ravel(), dtype=real, device=m.device)
        t.most_laws, t.most_rows, t.most_paths = room["closures"], room["rows"], room["paths"]
        t.most_entries = entries_of(room["speeds"])
        t.point_of = wp.zeros(room["closures"] * m.worlds, dtype=wp.int32, device=m.device)
        link_of = [self.plan.link_of.get(b, -1) for b in range(len(m.com))]
        t.link_of = ints(link_of)
        t.fall = 20.0
        return memory + law_memory(room, tables)

    def _give_tables(self, t: Any, packed: np.ndarray) -> None:
        """Tables of rows, of every world its own; on a GPU those of TOGETHER worlds stand beside each other."""
        device, groups = wp.get_device(self.model.device), -(-self.model.worlds // TOGETHER)
        own = np.tile(packed, TOGETHER) if device.is_cpu else np.repeat(packed, TOGETHER)
        t.row_tables = wp.array(np.tile(own, groups), dtype=wp.int32, device=device)
        t.row_table_size = len(packed)
        t.row_table_number, t.row_table_world = (1, len(packed)) if device.is_cpu else (TOGETHER, 1)

    # ---- specialized code ----------------------------------------------------------------------------------------------------

    def _is_specialized(self, control: Control) -> bool:
        asked = self.solver.specialize
        if asked is None:
            return wp.get_device(self.model.device).is_cuda and not refusal(self.plan, self.closures, control, LARGEST)
        return bool(asked)

    def begin_code(self, control: Control) -> None:
        """Emit code for the laws that act now; a GPU compiles it, and what is around it, from now on. After the first step it
        stays as it is.
        """
        if self._settled or not self._is_specialized(control):
            return
        m = self.model
        if self._special is None or not self._special.fits(self.plan, m, control):
            self._special = Specialized(self.plan, m, control, bool(wp.get_device(m.device).is_cuda))
        self._threads = compile_code(self._special, m.worlds, m.device)

    def _specialize(self, t: Any, control: Control) -> tuple[Any, Any]:
        """Bind specialized code, and what leaves single worlds to the code for any forest."""
        solver, m, device = self.solver, self.model, self.model.device
        assert self._special is not None
        t.unfinished, t.going_on = (wp.zeros(n, dtype=wp.int32, device=device) for n in (3, 1))
        t.special = 1
        room = -(-m.worlds // TOGETHER) * TOGETHER
        t.scratch = wp.zeros(self._special.scratch * room, dtype=real, device=device)
        t.log = wp.zeros(SLOTS * len(self.plan.places) * LOG_ROW * room, dtype=real, device=device)
        own = TreeStep()
        for name in TreeStep.vars:  # type: ignore[attr-defined]
            setattr(own, name, getattr(t, name))
        own.own_axes = 1
        self._whole, self._generic, self._again = t, None, None
        self._on_cpu = bool(wp.get_device(device).is_cpu)
        self._open: Any = memoryview(t.unfinished.numpy()) if self._on_cpu else None  # read faster than by NumPy
        self._left = wp.zeros(m.worlds, dtype=wp.int32, device=device)
        self._seen = wp.zeros(3, dtype=wp.int32, device="cpu", pinned=not self._on_cpu)
        self._flags = memoryview(self._seen.numpy())
        self._side: Any = None if self._on_cpu else wp.Stream(device)
        self._settled, solver._kernel = True, self._special.kernel(self._threads)
        around = [begin_links.module, begin_worlds.module] if self._special.on_gpu else []
        load_modules([solver._kernel.module, *around], device)
        return alone(own, TreeStep, device), own

    def make(self, step: Any, first: int, worlds: int, steps: Any) -> None:
        """Launch the specialized steps of some worlds."""
        assert self._special is not None
        if not self._special.on_gpu:
            inputs = [step, first, steps, SLOTS if self._apart else 0]
            wp.launch(self.solver._kernel, dim=worlds, inputs=inputs, device=self.model.device)
            return
        links, guard = len(self.plan.places), self.solver._watched
        self._launch(begin_links, (links, worlds), step, first, steps)
        self._launch(begin_worlds, worlds, step, guard, first, steps)
        parts = (0,) if steps is self.solver._single or not self._apart else tuple(range(SLOTS, -1, -1))
        for after in parts:
            self._launch(self.solver._kernel, worlds, step, first, after, int(after == parts[0]), block=self._threads)
            with self._beside():
                if after == 0 and not self._on_cpu:
                    wp.copy(self._seen, self._whole.unfinished)
                if not self._posed:  # which the other kernel writes
                    self._launch(end_joints, (links, worlds), step, first)
            self._launch(end_links, (links, worlds), step, guard, first)
            self._meet()
            if self._posed:
                self._launch(end_joints, (links, worlds), step, first)
            self._launch(end_worlds, worlds, step, guard, first, steps, after)

    @property
    def _posed(self) -> bool:
        """Whether what a joint carries is read with the poses of both its bodies."""
        return any(p.kind in (SLIDES, TURNS) or p.sense < 0 for p in self.plan.places)

    @contextmanager
    def _beside(self) -> Iterator[None]:
        """On a GPU, launches inside run beside those that follow, until `_meet`."""
        if self._on_cpu:
            yield
            return
        self._side.wait_stream(wp.get_stream(self.model.device))
        with wp.ScopedStream(self._side, sync_enter=False):
            yield

    def _meet(self) -> None:
        if not self._on_cpu:
            wp.get_stream(self.model.device).wait_stream(self._side)

    def _launch(self, kernel: Any, dim: Any, *inputs: Any, block: int = BLOCK) -> None:
        how: dict[str, Any] = {} if self._on_cpu else {"block_dim": block}
        wp.launch(kernel, dim=dim, inputs=list(inputs), device=self.model.device, **how)

    @property
    def _apart(self) -> bool:
        """Whether each of the last steps of a call is a launch: what some joints carry is read with the pose of its own step."""
        return any(p.kind in (SLIDES, TURNS) or (p.sense < 0 and p.kind == SLIDER) for p in self.plan.places)

    def is_unfinished(self) -> bool:
        """Whether the last launch of specialized steps left some to be made; on a GPU, known before all of it has ended."""
        if self._open is not None:
            return bool(self._open[2])
        flags = self._flags
        for _ in range(SPINS):
            if flags[1]:
                break
        else:
            wp.synchronize_device(self.model.device)
        some, flags[1] = flags[0], 0
        return bool(some and self._whole.unfinished.numpy()[2])

    def make_left(self, asked: int) -> None:
        """Make the steps that specialized code left, in turns with the code for any forest, until all worlds have made theirs."""
        solver, t = self.solver, self._whole
        failed = solver._bound[0].failed
        left = np.where(failed.numpy() == 0, asked - solver._made.numpy(), 0)
        t.going_on.fill_(1)
        try:
            while left.any():
                mark = t.mark.numpy()
                if (mark == LAWS_CHANGED).any() and not self._told:
                    self._told = True
                    self._tell(solver._bound[1], int(np.flatnonzero(mark == LAWS_CHANGED)[0]))
                for marked in (True, False):
                    now = np.where(mark != 0, left, 0) if marked else left
                    if now.any():
                        self._left.assign(now.astype(np.int32))
                        solver._replay(self._launches() if marked else self._go_on(), 1)
                        done = np.where(now > 0, np.minimum(solver._made.numpy(), now), 0)
                        left = np.where(failed.numpy() == 0, left - done, 0)
        finally:
            t.going_on.zero_()
            t.unfinished.zero_()
            solver._made.fill_(asked)
            self._flags[1] = 0

    def _launches(self) -> list[Any]:
        """Launches of the code for any forest, recorded when they are first needed."""
        if self._generic is None:
            solver, kernel = self.solver, self._generic_kernel()
            load_modules([kernel.module], self.model.device)
            self._give_memory(self._whole)
            together, solver._together = solver._together, 1 << 30
            whole = alone(self._whole, TreeStep, self.model.device)

            def launch(step: Any, first: int, worlds: int) -> None:
                for begin in range(first, first + worlds, together):
                    some = min(together, first + worlds - begin)
                    wp.launch(kernel, dim=some, inputs=[whole, begin, self._left], device=self.model.device)
                solver._read_after(first, worlds)
                solver._look(first, worlds)

            self._kept = whole
            self._generic = solver._capture(launch)
        return self._generic

    def _go_on(self) -> list[Any]:
        """Launches of specialized steps that a call left."""
        if self._again is None:
            solver = self.solver

            def again(step: Any, first: int, worlds: int) -> None:
                solver._make(step, first, worlds, self._left)
                if not self.judges:
                    solver._look(first, worlds)

            self._again = solver._capture(again)
        return self._again

    def _tell(self, control: Control, w: int) -> None:
        """Tell, once, that a law acts which specialized code does not have."""
        m, special = self.model, self._special
        assert special is not None
        now, names, acts = acting_laws(m, control), list(m.joint_names), control.acts.numpy()
        for p, laws in zip(self.plan.places, special.laws, strict=True):
            n = len(p.slots) or (3 if p.kind == BALL else 1)
            for name, x in now.items():
                acting = p.axis >= 0 and (name == "effort" or acts[p.joint, w])
                if (
                    acting
                    and (x[p.axis : p.axis + n, w] != LAWS[name]).any()
                    and not np.any(laws.get(name, LAWS[name]) != LAWS[name])
                ):
                    where = f" in world {w}" if m.worlds > 1 else ""
                    words = (
                        f"joint {names[p.joint]!r}: {name} acts{where}, which it did not when steps were compiled for the model"
                    )
                    words += ": the generic form makes them there, more slowly"
                    warnings.warn(words, StepWarning, stacklevel=callers_level())
                    return
