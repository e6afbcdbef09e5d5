"""What all solvers share: the step, the threads that split the worlds, captured graphs, the report."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import warp as wp

from sharnir.core import summaries
from sharnir.core.graphs import LOCK, Threads, record, replayer
from sharnir.core.renamed import Former
from sharnir.core.spatial import quat_rotate
from sharnir.core.strided import of_first
from sharnir.core.types import alone, begin_modules, load_modules, np_real, real, vec3
from sharnir.engine.guard import guard_of, watch_bodies
from sharnir.engine.guard_data import BODY_SUMS, COUNT_ROWS, SUM_ROWS, VERDICT, VERDICTS, RopeWatch, Tally, Watch
from sharnir.errors import SimulationError, Spelled, is_positive
from sharnir.model.model import DYNAMIC, FIXED, KINEMATIC, SLEEP_FIELDS, Control, Model, State

GRADES = ("relative", "divided", "damped", "velocity")
LEAST_SIZE = 0.02  # least size of a body, relative to the scene's extent; point masses have none of their own
REPORT_ROWS = ("iterations", "parts", *GRADES)


class Solver:
    """A model, its step, and threads that share its worlds.

    Args:
        settings: the device's structure with an array `dt`; where laws act on axes, `part` too, one a world.
        threads: CPU threads; all cores if None (one world needs one).
    """

    reads = False
    """Whether a step leaves the coordinates of all joints in the state."""
    at_pose = True
    """Whether a step leaves the velocities of its pose in the state; if not, `read_pose` brings them there."""
    given: dict[str, Any] | None = None
    """The options that it was made with, where a Simulation made it."""
    cayley = False
    """Whether bodies turn by Cayley's map."""
    _leaves = False
    """Whether a launch may return before all its steps are made, because they took long."""
    collider: Any = None
    """Finds the contacts between steps, where bodies may touch."""
    touch: Any = None
    """Scratch of the contacts, with what of the last step a user may read."""
    _steps: Any
    """[world] steps that a launch is to make, where one kernel makes them all, and that it made."""
    _made: Any
    _made_by: Any = None  # the array of which `_made_here` is a view
    _made_here: Any
    _count = 1
    _graphs: Any
    _together = 1 << 30
    """Worlds that go through all stages before the next do."""
    _blocks: ClassVar[dict[str, int]] = {}
    """How many threads a block of a GPU has that makes steps, where that is not the usual number."""
    _lanes = 0
    """Threads of a warp that have a world; 0: all."""

    def __init__(self, model: Model, dt: float, settings: Any, threads: int | None) -> None:
        if threads is not None and (not isinstance(threads, int) or threads < 1):
            raise SimulationError(f"threads is a whole number of at least 1, got {threads!r}")
        self.model, self.device, self.settings = model, model.device, settings
        settings.dt = wp.zeros(1, dtype=real, device=self.device)
        self._part = wp.zeros(model.worlds, dtype=real, device=self.device)
        if "part" in settings._cls.vars:
            settings.part = settings.kick = self._part
        self.dt = dt
        cores = os.cpu_count() or 1
        on_cpu = wp.get_device(self.device).is_cpu
        self.threads = min(threads or (cores if model.worlds >= 2 * cores else 1), model.worlds) if on_cpu else 1
        self._pool = Threads(self.threads) if self.threads > 1 else None
        self._bound: tuple[State, Control, Any] | None = None  # what captured launches point to
        # what the report and the guard keep, in one memory, so that a step that fails can be forgotten at once
        counts, sums = (wp.zeros((n, model.worlds), dtype=d, device=self.device) for n, d in (
            (len(REPORT_ROWS) + len(COUNT_ROWS), wp.int32), (3 + len(SUM_ROWS), real)))  # fmt: skip
        self.memory, (self.whole, self.real) = pack([counts, sums], self.device)
        self.done, self.parts = self.whole[0], self.whole[1]
        self.grades, self._counts = self.whole[2 : 2 + len(GRADES)], self.whole[len(REPORT_ROWS) :]
        self.residual, self.rope_residual, self.projected, self._sums = *(self.real[i] for i in range(3)), self.real[3:]
        self.verdict = self._counts[int(VERDICT)]
        self.parts.fill_(1)
        self._counted: list[tuple[np.ndarray, memoryview, bytes]] | None = None  # what a launch counts, its memory, zeros
        self.driven = False
        """Whether something in the scene can give energy."""
        self.unguarded = 8
        """Steps that may be made in a launch, before the guard looks, where something does."""
        self._watched: Any = None  # the guard, on the device, and the graph that has it look
        self._begins: Any = None
        self._spread = False  # whether threads of bodies, not only of worlds, find what the guard needs after steps
        self._looks_first = True  # whether the guard looks before every call; else steps report worlds that were changed
        self._guards_own: dict[str, Any] = {}
        self.alarm = wp.zeros(model.worlds, dtype=wp.int32, device=self.device)
        self._tally = Tally()
        self._tally.alarm, self._tally.counts, self._tally.sums = self.alarm, self._counts, self._sums
        self.tally = alone(self._tally, Tally, self.device)
        self._guarding = guard_of(model)
        self.strict = wp.zeros(1, dtype=wp.int32, device=self.device)

    def begin_code(self, control: Control) -> None:
        """Let a GPU compile what the first step needs from now on."""
        begin_modules([self._guarding.module], self.device)

    def _watch(self, state: State, control: Control, looks: int, inner: State | None = None) -> Any:
        """The guard of these arrays; `looks`: how it learns of gaps (`guard_data`). `inner` has velocities of half steps."""
        m = self.model
        g = Watch()
        g.bodies, g.joints, g.axes, g.springs, g.cables, g.control = m.bodies, m.joints, m.axes, m.springs, m.cables, control
        g.state, g.now, g.halves = state if inner is None else inner, state, int(inner is not None)
        g.dt, g.gravity, g.parts, g.lost = self.settings.dt, self.settings.gravity, self.parts, self.projected
        size, extent = sizes(m)
        g.size = wp.array(size, dtype=real, device=self.device)
        g.body_size = wp.array(np.maximum(body_sizes(m), LEAST_SIZE * extent), dtype=real, device=self.device)
        g.least, g.extent = float(min(size, default=1.0)), extent
        motion = m.bodies.motion.numpy()
        g.weight = float(of_first(m.bodies.mass)[motion == DYNAMIC].sum())
        g.looks = looks
        g.driven = int((motion == KINEMATIC).any() or conveys(m))
        g.sprung = wp.array(self._sprung(), dtype=wp.int32, device=self.device)
        g.casts = wp.vec3i(len(m.casts), *m.cast_rows)
        g.cast_inertia = wp.array([cast.inertia for cast in m.casts], dtype=real, device=self.device)
        given = [m.axes.stiffness, m.axes.resistance, control.servo_kp, control.servo_kd, control.servo_torque]
        g.cayley = int(self.cayley)
        work = self._measured_work()
        g.taken, g.unsolved = self._told_of_contacts()
        g.bend = wp.zeros((0, m.worlds), dtype=real, device=self.device)
        g.work, g.measured = wp.zeros(0, dtype=real, device=self.device) if work is None else work, int(work is not None)
        exact = np.zeros(len(m.com), np.int32)
        exact[self._rotors()] = 1
        g.exact = wp.array(exact, dtype=wp.int32, device=self.device)
        self.driven = len(m.spring_names) + g.driven + int(m.drives.count) > 0 or any(array.numpy().any() for array in given)
        means = (state.mid_force, state.mid_torque) if inner is None and state.mid_force.shape[0] else None
        g.mean_force, g.mean_torque = means or (g.state.joint_force, g.state.joint_torque)
        none = wp.zeros((0, m.worlds), dtype=vec3, device=self.device)
        g.aim_linear = g.aim_angular = g.blow = g.slip = none
        for name in ("last_position", "last_velocity", "last_spin"):
            setattr(g, name, self._kept_by_guard(name))
        if m.ropes is not None:
            self._watch_ropes(g, state, control)
        g.spread = int(self._spread)
        g.found = wp.zeros((len(BODY_SUMS) * len(m.com) if self._spread else 0, m.worlds), dtype=real, device=self.device)
        g.strict, g.alarm, g.counts, g.sums = self.strict, self.alarm, self._counts, self._sums
        self._guard, self._watched, self._begins = g, alone(g, Watch, self.device), None
        load_modules([self._guarding.module], self.device)
        self._launch_watch(0, m.worlds)
        return self._watched

    def _measured_work(self) -> Any:
        """[world] J, given in the steps of a launch, if steps measure it."""
        return None

    def _told_of_contacts(self) -> tuple[Any, Any]:
        """Arrays for `Watch.taken` and `Watch.unsolved`, if steps fill them."""
        none = wp.zeros(0, dtype=real, device=self.device)
        return none, none

    def _rotors(self) -> list[int]:
        """Bodies that turn by as much as their spin says, however far in a step."""
        return []

    def _sprung(self) -> list[int]:
        """Joints whose axes have springs, or motors with a rotor."""
        m = self.model
        stored = of_first(m.axes.stiffness) + of_first(m.axes.rotor_inertia) if m.joint_kinds else np.zeros(0)
        for name in ("stiffness", "rotor_inertia"):
            values = getattr(m.axes, name).numpy()
            if values.size:
                stored = stored + values.max(1)
        return [k for k, kind in enumerate(m.joint_kinds) if stored[m.v_start[k] : m.v_start[k] + kind.v_size].any()]

    def _kept_by_guard(self, name: str) -> Any:
        """[body, world] an array of the guard that outlives a new binding."""
        if name not in self._guards_own:
            shape = (len(self.model.com), self.model.worlds)
            self._guards_own[name] = wp.zeros(shape, dtype=vec3, device=self.device)
        return self._guards_own[name]

    def _watch_contacts(self) -> None:
        """Let the guard see the contacts, once a solver has room for them."""
        g = self._guard
        g.touching, g.contacts = 1, self.collider.data.contacts
        g.blow, g.slip = self.touch.blow, self.touch.slip
        self._watched, self._begins = alone(g, Watch, self.device), None

    def _look(self, first: int, worlds: int) -> None:
        """Whether the steps of a call can be true."""
        if self._spread:
            dim = len(self.model.com) - 1, worlds
            wp.launch(watch_bodies, dim=dim, inputs=[self._watched, first], device=self.device)
        wp.launch(self._guarding.end, dim=worlds, inputs=[self._watched, first], device=self.device)

    def look_again(self) -> None:
        """To be called after the state was changed from outside: energies are held against those of now."""
        if self._watched is None:
            return
        if self._begins is None:
            self._begins = replayer(record(lambda: self._launch_watch(0, self.model.worlds), self.device))
        self._begins()

    def restart(self) -> None:
        """To be called after the state was put back to an earlier one, all of it."""
        if self.collider is not None:
            self.collider.take_back()

    def wake(self, state: State) -> None:
        """To be called after something was changed that no step sees: all that sleeps wakes."""
        for name in (*SLEEP_FIELDS, "quiet"):
            getattr(state, name).zero_()
        if self.collider is not None:
            self.collider.wake()

    def rebind(self) -> None:
        """To be called when arrays were made anew: the next step records its launches again."""
        self._bound = None

    def rebuild(self) -> None:
        """To be called after tables of the model were changed beyond single values that kernels read in any case."""
        self._bound = None

    def relay(self) -> None:
        """To be called after frames of joints were changed in place."""

    def forget(self) -> None:
        """Reset all counts, as before the first step."""
        self.whole.zero_()
        self.real.zero_()
        self.parts.fill_(1)
        self.alarm.zero_()

    def _launch_watch(self, first: int, worlds: int) -> None:
        wp.launch(self._guarding.begin, dim=worlds, inputs=[self._watched, first], device=self.device)

    def _watch_ropes(self, g: Any, bodies: State, commands: Control) -> None:
        """The arrays of ropes that the guard reads."""
        table, state, control = self.model.ropes.table, bodies.rope, commands.rope
        r = RopeWatch()
        r.count = table.count
        for name in ("first", "density", "radius", "EI", "GJ", "rest", "reel", "kind", "body", "clamp", "frame"):
            setattr(r, name, getattr(table, name))
        for name in ("segments", "cut", "length", "span", "position", "velocity", "rotation", "spin", "pull", "end_force"):
            setattr(r, name, getattr(state, name))
        r.moment, r.tie_force, r.reel_rate = state.moment, state.tie_force, state.reel_rate
        for name in ("force", "force_once", "torque", "reel_speed", "wind"):
            setattr(r, name, getattr(control, name))
        if "last_rate" not in self._guards_own:
            self._guards_own["last_rate"] = wp.zeros((int(table.count), self.model.worlds), dtype=real, device=self.device)
        r.last_rate = self._guards_own["last_rate"]
        bends = [int(rope.EI + rope.GJ > 0) for rope in self.model.ropes.described]
        r.bends = wp.array(bends, dtype=wp.int32, device=self.device)
        g.rope = r
        lengths = [float(rope.lengths.sum()) * rope.density for rope in self.model.ropes.described]
        g.weight = g.weight + float(sum(lengths))

    def read_pose(self, state: State, control: Control) -> None:
        """Bring velocities and reactions of the state to its pose; the motion does not depend on it."""

    def begin_anew(self, state: State) -> None:
        """Begin the next step from the velocities of the pose, where those in use stand at half steps."""

    def furnish(self, state: State) -> None:
        """Give a new state the arrays that this solver alone keeps in it."""

    def _check_ropes(self, state: State) -> None:
        """Refuse a state whose ropes run otherwise than this solver's."""
        ropes = self.model.ropes
        if ropes is not None and (not state.rope.position or bool(state.rope.trees) != ropes.trees):
            raise SimulationError(
                f"{type(self).__name__} lays out ropes in its own way: take state and control from its model, "
                "solver.model.state() and solver.model.control()"
            )

    @property
    def dt(self) -> float:
        """Step, s."""
        return self._dt

    @dt.setter
    def dt(self, value: float) -> None:
        if not is_positive(value):
            raise SimulationError(f"dt is a positive finite number of seconds, got {value!r}")
        self._dt = float(value)
        self.settings.dt.assign(np.array([value], np_real))
        self._part.fill_(value)

    def _capture(self, *stages: Callable[[Any, int, int], None]) -> list[Callable[[], object]]:
        """What replays some stages, one a thread; a stage is given the bound structure, its first world and their number."""
        assert self._bound is not None
        graphs = []
        for thread, (first, last) in enumerate(pairwise(np.linspace(0, self.model.worlds, self.threads + 1).astype(int))):
            bound = self._bound[2][thread] if isinstance(self._bound[2], list) else self._bound[2]
            with LOCK, wp.ScopedCapture(device=self.device) as capture:
                for begin in range(int(first), int(last), self._together):
                    worlds = min(self._together, int(last) - begin)
                    if self.model.worlds > 1 and self._looks_first:  # of one world the simulation knows when it was changed
                        self._launch_watch(begin, worlds)
                    for stage in stages:
                        stage(bound, begin, worlds)
            graphs.append(replayer(capture.graph))
        return graphs

    def _ask(self, n: int) -> None:
        """How many steps a launch makes."""
        if self._count != n:
            self._steps.fill_(n)
            self._made.fill_(n)
            self._count = n

    def _make_steps(self, n: int, judged: bool) -> None:
        """Make n steps: one by one if the guard judges each of them, else in one launch."""
        if judged:
            self._ask(1)
            self._one_by_one(n)
            return
        self._ask(n)
        self._replay(self._graphs, 1)
        if n > 1 and self._leaves:
            self._go_on()

    def _go_on(self) -> None:
        """Make the steps that a launch left because they took long; Python is heard in between."""
        assert self._bound is not None
        if self._made_by is not self._made:  # a view of it: to make one costs as much as a step
            self._made_by, self._made_here = self._made, self._made.numpy()
        made = self._made_here
        if (made[0] if len(made) == 1 else made.min()) >= self._count:
            return
        counted = self.grades.numpy(), self.projected.numpy()
        failed = self._bound[0].failed.numpy()
        left = np.where(failed == 0, self._count - made, 0)
        self._count = 0
        while left.any():
            before = [np.where(left > 0, values, 0) for values in counted]  # a launch counts anew in the worlds that it steps
            self._steps.assign(left.astype(np.int32))
            self._replay(self._graphs, 1)
            for values, more in zip(counted, before, strict=True):
                values += more
            left = np.where(failed == 0, left - np.minimum(made, left), 0)

    def _one_by_one(self, n: int) -> None:
        """Launches of one step each; what the report counts over a call is added up."""
        if n == 1 or not self.grades.device.is_cpu:
            self._replay(self._graphs, n)
            return
        if self._counted is None:
            arrays = self.grades.numpy(), self.projected.numpy()
            self._counted = [(a, memoryview(a.reshape(-1).view(np.uint8)), bytes(a.nbytes)) for a in arrays]
        counted = self._counted
        sums: list[Any] = [None] * len(counted)
        for _ in range(n):
            self._replay(self._graphs, 1)
            for k, (values, raw, zeros) in enumerate(counted):
                if bytes(raw) != zeros:  # as a rule nothing is counted
                    sums[k] = values + (0 if sums[k] is None else sums[k])
        for (values, _, _), total in zip(counted, sums, strict=True):
            if total is not None:
                values[:] = total

    def _replay(self, graphs: list[Callable[[], object]], n: int) -> None:
        if self._pool is None:
            _replay(graphs[0], n)
        elif n:
            others = [self._pool.submit(_replay, graph, n) for graph in graphs[1:]]
            try:
                _replay(graphs[0], n)  # by this thread, which would only wait
            finally:
                for other in others:
                    other.result()


def _replay(graph: Callable[[], object], n: int) -> None:
    for _ in range(n):
        graph()


def with_ropes(model: Model, trees: bool) -> Model:
    """A model whose ropes are laid out for trees of joints, or for the ropes' own elimination."""
    if model.ropes is None or model.ropes.trees == trees:
        return model
    return replace(model, ropes=model.ropes.laid_out(trees))


def need_ropes(model: Model, **options: Any) -> None:
    """Refuse options that are of ropes alone where there are none."""
    for name, value in options.items():
        if value is not None and model.ropes is None:
            raise SimulationError(f"{name!r} is of ropes, and the model has none")


def conveys(model: Model) -> bool:
    """Whether a surface moves, and may give energy to what lies on it."""
    return model.collision is not None and any(np.any(shape.surface) for shape in model.collision.shapes)


def write(array: Any, values: list[int]) -> None:
    """Small numbers of the settings: on the CPU into the array itself, which costs next to nothing."""
    if array.device.is_cpu:
        array.numpy()[:] = values
    else:
        array.assign(np.array(values, np.int32))


def pack(arrays: list[Any], device: Any) -> tuple[Any, list[Any]]:
    """Arrays moved into one memory, which is copied as a whole: that and the moved ones, which keep it alive.

    It counts words of 8 bytes: an array has at most 2³¹ items, and many worlds need more bytes than that.
    """
    spans = [-(-array.size * wp.types.type_size_in_bytes(array.dtype) // 64) * 64 for array in arrays]
    memory = wp.zeros(max(1, sum(spans) // 8), dtype=wp.uint64, device=device)
    out, at = [], 0
    for array, span in zip(arrays, spans, strict=True):
        moved = array
        if array.size:
            moved = wp.array(ptr=memory.ptr + at, dtype=array.dtype, shape=array.shape, device=memory.device, copy=False)
            moved._memory = memory
            wp.copy(moved, array)
        out.append(moved)
        at += span
    return memory, out


def body_sizes(model: Model) -> np.ndarray:
    """(bodies,) m, of those that move: the diagonal of a box with the body's mass and inertia; 0 for others."""
    mass, inertia = of_first(model.bodies.mass), of_first(model.bodies.inertia)
    moves = (model.bodies.motion.numpy() == DYNAMIC) & (mass > 0)
    return np.asarray(np.sqrt(6 * np.trace(inertia, axis1=1, axis2=2) / np.where(moves, mass, 1.0)) * moves)


def sizes(model: Model) -> tuple[list[float], float]:
    """Sizes of joints, each that of the smaller of its bodies that move, and the extent of the scene, m."""
    motion = model.bodies.motion.numpy()
    moves = (motion == DYNAMIC) & (of_first(model.bodies.mass) > 0)
    size, joints = body_sizes(model), model.joints
    points = of_first(joints.parent_point), of_first(joints.child_point)
    on = model.joint_enabled  # a disabled joint says nothing of its bodies' size
    ends = [(b[on], p[on]) for b, p in zip((model.parents, model.children), points, strict=True)] if len(on) else []
    for bodies, own in ends:
        np.maximum.at(size, bodies, 2 * np.linalg.norm(own, axis=1) * moves[bodies])
    x, q = np.asarray(model.start["position"], float), np.asarray(model.start["rotation"], float)
    places = [x[motion != FIXED]] + [x[b] + quat_rotate(q[b], p) for b, p in ends]
    extent = float(size.max(initial=0.0) + np.ptp(np.concatenate(places), axis=0).max(initial=0.0) if moves.any() else 0.0)
    if model.ropes is not None:
        extent += max(float(rope.lengths.sum()) for rope in model.ropes.described)
    extent = extent if extent > 0 else 1.0
    both = [[size[b] for b in (p, c) if size[b] > 0] for p, c in zip(model.parents, model.children, strict=True)]
    return [max(min(pair, default=extent), LEAST_SIZE * extent) for pair in both], extent


def gravity_of(model: Model) -> Any:
    """[world] m/s² on the device."""
    return wp.array([model.gravity] * model.worlds, dtype=vec3, device=model.device)


def check_iterations(value: Any, least: int, what: str = "iterations") -> int:
    """A whole number of at least `least`, or an error that names it."""
    if not isinstance(value, int | np.integer) or value < least:
        raise SimulationError(f"{what} is a whole number of at least {least}, got {value!r}")
    return int(value)


@dataclass(frozen=True)
class Values:
    """Values that a copied report keeps, in the place of a device array."""

    values: np.ndarray

    def numpy(self) -> np.ndarray:
        """As a device array has it."""
        return self.values


class Report(Spelled):
    """What the last step did; one object, reused. Values are numbers, or arrays (worlds,) where there are several worlds."""

    def __init__(
        self, done: Any, residual: Any, tolerance: float, grades: Any = None, rope: tuple[Any, float] | None = None,
        projected: Any = None, parts: Any = None, verdict: Any = None,
    ) -> None:  # fmt: skip
        self._projected, self._parts, self._verdict = projected, parts, verdict
        self._done, self._residual, self._tolerance, self._grades, self._rope = done, residual, tolerance, grades, rope
        self.elapsed = 0.0
        """Wall-clock time of the step, s (mean, where a call made several)."""
        self.deadline_missed = False
        """Whether the budget cut the step short, or it took longer than its budget."""

    grades, parts = Former("fallbacks"), Former("substeps")

    def __repr__(self) -> str:
        return summaries.report(self)

    def __getstate__(self) -> dict[str, Any]:
        """Of a copy or a pickle: the values of now, which later steps do not change."""

        def kept(value: Any) -> Any:
            if isinstance(value, tuple):
                return tuple(kept(item) for item in value)
            return Values(np.array(value.numpy())) if hasattr(value, "numpy") else value

        return {name: kept(value) for name, value in self.__dict__.items()}

    @staticmethod
    def _value(array: Any) -> Any:
        values = array.numpy()
        return values[0].item() if len(values) == 1 else values

    @property
    def iterations(self) -> Any:
        """Sweeps made at velocity level, passes over the tree in which laws were found or, where it was divided, all beyond
        those of a plain step: the cap (`step(iterations=…)`) that leads to the same step bit for bit.
        """
        return self._value(self._done)

    @property
    def residual(self) -> Any:
        """Largest impulse of the last sweep, N·s or N·m·s (`sequential`); or by how much what acts on an axis was missed:
        relative to its speeds, or N·s or N·m·s where `tolerance` was given (`direct`).
        """
        return self._value(self._residual)

    @property
    def converged(self) -> Any:
        """Whether the result of the step is right: joints are closed, contacts satisfy their laws, and no energy was gained
        without a source, within thresholds that follow the scene's masses, sizes, gravity and Δt. All is recomputed from the
        committed state; whether the iteration met its own tolerance, see `residual`, does not matter (theory: the guard).
        """
        verdict = self._value(self._verdict)
        return verdict == 0

    @property
    def problems(self) -> Any:
        """Tests that the step failed, a tuple of "joint", "rope", "contact", "energy"; () if it has converged. Of several
        worlds, a list of tuples.
        """
        out = [tuple(name for bit, name in VERDICTS.items() if v & bit) for v in self._verdict.numpy()]
        return out[0] if len(out) == 1 else out

    @property
    def _met(self) -> Any:
        """Whether the iteration met its tolerance, and ropes in addition to joints theirs."""
        met = self.residual <= self._tolerance
        return met if self._rope is None else met & (self._value(self._rope[0]) <= self._rope[1])

    @property
    def substeps(self) -> Any:
        """In how many parts the last step was made; 1 where its passes met at once."""
        return 1 if self._parts is None else self._value(self._parts)

    @property
    def projected(self) -> Any:
        """J, of kinetic energy that velocities lost in this call because they did not fit the joints: those that a caller set,
        and what an impact or a joint put back left.
        """
        return 0.0 if self._projected is None else self._value(self._projected)

    @property
    def fallbacks(self) -> dict[str, Any]:
        """How many steps of the call were not plain ones, with the direct pass and with ropes.

        "divided": passes did not close the joints, and the step was made in parts. Of ropes beside sequential impulses:
        "relative", some tension changed suddenly, and had the direction of the end of the step; "damped", all had; "velocity",
        the step was made again with the ropes' rows closed at velocity level.
        """
        if self._grades is None:
            return {}
        counts = self._grades.numpy()
        return {name: int(row[0]) if len(row) == 1 else row for name, row in zip(GRADES, counts, strict=True)}
