"""SolverSequential: maximal coordinates, sequential impulses with warm start and split impulses (theory: a step)."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import warp as wp

from sharnir.collision.collider import Bodies, Collider
from sharnir.core.types import EPSILON, alone, load_modules, real, vec3
from sharnir.engine.base import Report, Solver, check_iterations, gravity_of, need_ropes, with_ropes, write
from sharnir.engine.guard_data import Watch
from sharnir.engine.sequential import bodies, prepare, sweeps
from sharnir.engine.sequential.data import POSITIONS, VELOCITIES, BlockContact, Settings, Solve, Step, Touch, Work
from sharnir.engine.sequential.rope import SWEEPS_WITH_ROPES as ROPE_SWEEPS
from sharnir.engine.sequential.rope import RopePasses
from sharnir.engine.sleep import ALL_REST, joining, rest_of, sleeps_after, wake_called
from sharnir.errors import SimulationError, is_positive
from sharnir.laws.casts import cast_table
from sharnir.laws.rows import AxisRows, Twists
from sharnir.laws.solve import Laws
from sharnir.model import kinematics
from sharnir.model.cable_tables import cable_work
from sharnir.model.model import DYNAMIC, SLEEP_FIELDS, STATE_FIELDS, Control, Model, State, fill, scene_scale

USUAL_SWEEPS, TOUCH_SWEEPS = 20, 50  # cap of the sweeps of a step, where none is given; where bodies may touch
NO_CAP = 1_000_000
CONTACT_TOLERANCE = 1e-4  # of g Δt: the speed by which a sweep may change a point of contact that is met
FEW_BODIES, LONG_ROWS = (
    100,
    96,
)  # bodies of which all points are solved for at once where sweeps are slow, mean length of the matrix's rows
STEPS_OF_GRAPH = 16  # steps in the graph that serves calls for many steps


class SolverSequential(Solver):
    """Steps a model in time.

    Args:
        model: what `Scene.build` returned.
        dt: step, s.
        iterations: cap of the sweeps over joints and contacts at velocity level; if None 20, with ropes 40, where bodies may
            touch 50, but 20 of more than 100 free ones.
        position_iterations: sweeps of the split impulses that close the gaps.
        erp: fraction of a gap closed in a step, 0 < erp ≤ 1.
        tolerance: a step stops iterating when no impulse of a sweep exceeds it, N·s, moments over the scene's length; by default
            it follows the scene's masses, lengths and g·Δt: 1e-10 for 1 kg and 1 m.
        rope_tolerance: to which ropes are closed, see `SolverRope`; 1e-8 if None.
        threads: CPU threads that share the worlds; all cores if None (one world needs one).
        sleep: whether what stands still sleeps after half a second, until something wakes it (see `sleep`): free bodies that
            have not moved by a micrometre, mechanisms that are slower than 0.1 µm/s; beside ropes, a world as a whole.
    """

    def step(
        self, state: State, control: Control, n: int = 1, *, budget: float | None = None, iterations: int | None = None
    ) -> Report:
        """Advance every world by n steps; a world that fails keeps its last good state and is marked in `state.failed`.

        Args:
            budget: wall-clock time of a step, s: sweeps stop when it is about to run out.
            iterations: cap of the sweeps in this call.
        """
        report = self.advance(state, control, n, budget=budget, iterations=iterations)
        if not self.at_pose:
            self.read_pose(state, control)
        return report

    def advance(
        self, state: State, control: Control, n: int = 1, *, budget: float | None = None, iterations: int | None = None
    ) -> Report:
        """`step`, but for velocities and reactions, which the state has after `read_pose` alone."""
        started = time.perf_counter()
        if self._ropes is not None:
            self.grades.zero_()
        if self._bound is None or self._bound[0] is not state or self._bound[1] is not control:
            self._bind(state, control)
        if self._rests():
            self._replay(self._graphs["wait"], n)
            self.report.deadline_missed = False
            self.report.elapsed = (time.perf_counter() - started) / n
            return self.report
        if n == 1 and self._one is not None and budget is None and iterations is None:
            self._one()
            self.report.deadline_missed = False
            self.report.elapsed = time.perf_counter() - started
            return self.report
        if iterations is not None:
            self._cap(iterations)
        try:
            self._advance(n, budget)
        finally:
            if self._cap_now != self.iterations:
                self._cap(self.iterations)
        if budget is None:
            self.report.elapsed = (time.perf_counter() - started) / n
        return self.report

    def _rests(self) -> bool:
        """Beside ropes, where a step is many launches: whether all sleep in all worlds, so that few are enough."""
        if self._resting is None or self._resting.min() != ALL_REST or self._resting.max() != ALL_REST:
            return False
        if "wait" not in self._graphs:
            self._graphs["wake"], self._graphs["wait"] = self._capture(self._wake), self._capture(self._wait)
        self._replay(self._graphs["wake"], 1)
        return bool(self._resting.min() == ALL_REST and self._resting.max() == ALL_REST)

    def _wake(self, step: Any, first: int, worlds: int) -> None:
        self._launch(wake_called, (worlds,), self._rest[0], first)

    def _wait(self, step: Any, first: int, worlds: int) -> None:
        """The stages that do something in a world that rests."""
        assert self._ropes is not None
        self._launch(self._kernels.predict, (worlds,), step, first, 0)
        self._launch(self._sweeps, (worlds,), step, first, POSITIONS)
        self._ropes.commit(first, worlds)
        self._judge(step, first, worlds)

    def _advance(self, n: int, budget: float | None) -> None:
        """The steps of a call, under the cap of now."""
        if budget is not None:
            for _ in range(n):
                self._budgeted(budget)
            return
        self.report.deadline_missed = False
        many, rest = divmod(n, STEPS_OF_GRAPH)
        if many and "chunk" not in self._graphs:
            self._graphs["chunk"] = self._capture(*[self._stages] * STEPS_OF_GRAPH)
        if many:
            self._replay(self._graphs["chunk"], many)
        self._replay(self._graphs["step"], rest)

    def _budgeted(self, budget: float) -> None:
        """One step: begin, sweeps while there is time for one more and the end, end."""
        clock, report = time.perf_counter, self.report
        started = clock()
        if "begin" not in self._graphs:
            for name, stage in (("begin", self._begin), ("iterate", self._iterate), ("end", self._end)):
                self._graphs[name] = self._capture(*[stage] + [self._judge] * (name == "end"))
            started = clock()  # a capture happens once and is no part of a step
        self._sweeps_at_once(1)
        self._replay(self._graphs["begin"], 1)
        cut, sweeps, cap = False, 0, self._cap_now
        while True:
            before = clock()
            if sweeps and before - started + self._takes["iterate"] + self._takes["end"] > budget:
                cut = True
                break
            sweeps += 1  # the first also applies the impulses that a valid state needs
            self._replay(self._graphs["iterate"], 1)
            over = self._solved()
            self._learn("iterate", clock() - before)
            if over:
                break
        before = clock()
        self._sweeps_at_once(NO_CAP)
        if self._ropes is not None:
            self._cap(sweeps)  # a step that is begun again takes no more sweeps than it did, as many as a cap would have left it
        self._replay(self._graphs["end"], 1)
        self._cap(cap)
        now = clock()
        self._learn("end", now - before)
        report.elapsed = now - started
        report.deadline_missed = cut or report.elapsed > budget

    def _learn(self, stage: str, took: float) -> None:
        """Follow how long a stage takes; a sample much longer than usual is the operating system's, not the stage's."""
        usual = self._takes[stage]
        self._takes[stage] = took if usual == 0.0 else usual + 0.2 * (min(took, 2.0 * usual) - usual)

    def _solved(self) -> bool:
        """Whether every world has met the tolerance or its cap; with ropes, `rope_pass` sets a world's count to the cap."""
        if self._ropes is not None:
            done = self.solves[0].done.numpy() if self._host is None else self._host[0]
            return bool(np.all(done >= self._cap_now))
        if self._host is None:
            done, residual = self.solves[0].done.numpy(), self.solves[0].residual.numpy()
        else:
            done, residual, _ = self._host
            if len(done) == 1:
                return bool(done[0] >= self._cap_now or residual[0] <= self.tolerance)
        return bool(np.all((done >= self._cap_now) | (residual <= self.tolerance)))

    def _sweeps_at_once(self, n: int) -> None:
        """How many sweeps one launch may make at velocity level; between passes over ropes one, always."""
        if self._ropes is not None:
            return
        if self._host is None:
            self.settings.sweeps.assign(np.array([n, NO_CAP], np.int32))
        else:
            self._host[2][0] = n

    def _stages(self, step: Any, first: int, worlds: int) -> None:
        """One step of some worlds, a line a stage."""
        self._begin(step, first, worlds)
        for _ in range(1 if self._ropes is None else self.iterations):
            self._iterate(step, first, worlds)
        self._end(step, first, worlds)
        self._judge(step, first, worlds)

    def _begin(self, step: Any, first: int, worlds: int) -> None:
        self._launch(self._kernels.predict, (worlds,), step, first, 0)
        if self.collider is not None:
            self.collider.find(first, worlds)
        self._prepare(step, first, worlds)
        if self._ropes is not None:
            self._ropes.begin(first, worlds)

    def _prepare(self, step: Any, first: int, worlds: int, reading: int = 0) -> None:
        """Points, joints and links of worlds in which no sweep has been made; with the points, what they woke gets its kick."""
        m = self.model
        if self.collider is not None:
            self._launch(self._kernels.prepare_points, (worlds,), step, first, reading)
        self._launch(prepare.prepare, (m.joints.count, worlds), step, first, reading)
        self._launch(
            prepare.prepare_links, (m.gears.count + m.springs.count + int(m.cables.count > 0), worlds), step, first, reading
        )

    def _read(self, step: Any, first: int, worlds: int) -> None:
        """Half a kick that is not kept: velocities and reactions at the pose, for the caller."""
        self._launch(self._kernels.predict, (worlds,), step, first, 1)
        self._prepare(step, first, worlds, 1)
        self._iterate(step, first, worlds)
        self._launch(self._kernels.show, (worlds,), step, first)

    def read_pose(self, state: State, control: Control) -> None:
        """Bring velocities and reactions of the state to its pose; the motion does not depend on it."""
        if self._bound is None or self._bound[0] is not state or self._bound[1] is not control:
            self._bind(state, control)
        if "read" not in self._graphs:
            self._graphs["read"] = self._capture(self._read)
        blow = getattr(self.touch, "blow", None)
        impacts = wp.clone(blow) if isinstance(blow, wp.array) else None  # a mirror has numbers of another simulation there
        self._replay(self._graphs["read"], 1)
        if impacts is not None:  # those of the last step are reported until the next one is made
            wp.copy(blow, impacts)

    def begin_anew(self, state: State) -> None:
        """Begin the next step from the velocities of the pose."""
        state.kept_rotation.zero_()

    def furnish(self, state: State) -> None:
        """Velocities and reactions of half steps, and what the state was when they were made."""
        m = self.model
        if state.felt_force.shape[0] == 0:
            fill(state, m, len(m.com), "felt_force felt_torque")
            fill(state, m, m.speeds, "felt_joint")
        if state.creep.shape[0] == 0:
            fill(state, m, m.speeds, "creep")
        if state.kept_rotation.shape[0] == 0:
            fill(state, m, len(m.com), "kept_position kept_rotation kept_velocity kept_momentum")
        if self._halves and state.mid_velocity.shape[0] == 0:
            fill(state, m, len(m.com), "mid_velocity mid_momentum")
            fill(state, m, len(m.joint_kinds), "mid_force mid_torque")
            fill(state, m, m.speeds, "mid_current")

    def _iterate(self, step: Any, first: int, worlds: int) -> None:
        self._launch(self._sweeps, (worlds,), step, first, VELOCITIES)
        if self._ropes is not None:
            self._ropes.sweep(first, worlds)

    def _end(self, step: Any, first: int, worlds: int) -> None:
        """Take the step or, where ropes went astray, one at velocity level: launches with nothing to do in a world are cheap."""
        if self._ropes is not None:
            self._ropes.judge(first, worlds)
            self._prepare(step, first, worlds)
            for _ in range(self.iterations):
                self._iterate(step, first, worlds)
            self._ropes.calm(first, worlds)
        self._launch(self._sweeps, (worlds,), step, first, POSITIONS)
        if self._ropes is not None:
            self._ropes.commit(first, worlds)

    def _judge(self, step: Any, first: int, worlds: int) -> None:
        """Whether the step can be true; with ropes, `rope_commit` counts it."""
        if self._ropes is None:
            self._launch(
                self._guarding.count, (worlds,), self._watched, self.tally, first, self.residual, self.settings.tolerance
            )
        self._look(first, worlds)

    def __init__(
        self,
        model: Model,
        dt: float,
        *,
        iterations: int | None = None,
        position_iterations: int = 4,
        erp: float = 1.0,
        tolerance: float | None = None,
        rope_tolerance: float | None = None,
        threads: int | None = None,
        sleep: bool = True,
    ) -> None:
        need_ropes(model, rope_tolerance=rope_tolerance)
        model = with_ropes(model, trees=False)
        if iterations is None:
            iterations = USUAL_SWEEPS if model.ropes is None else ROPE_SWEEPS
            if model.collision is not None and (model.ropes is not None or model.joint_kinds or few_move(model)):
                iterations = TOUCH_SWEEPS
        self.iterations = check_iterations(iterations, 1)
        self.position_iterations = check_iterations(position_iterations, 0, "position_iterations")
        if not 0 < erp <= 1:
            raise SimulationError(f"erp is a fraction, 0 < erp ≤ 1, got {erp!r}")
        mass, length, speed = scene_scale(model, dt)
        tolerance = max(1e-10, 10 * EPSILON) * mass * speed if tolerance is None else tolerance
        if not (is_positive(tolerance) or tolerance == 0):
            raise SimulationError(f"tolerance is a finite impulse of at least 0 N·s, got {tolerance!r}")
        super().__init__(model, dt, Settings(), threads)
        # velocities stand half a step before the pose and are brought there to be read; not so with ropes, whose own lead to it
        self._halves, self.at_pose = model.ropes is None, model.ropes is not None
        self._kernels = bodies.BODY_KERNELS if bodies.are_free(model) else bodies.ALL_KERNELS
        load_modules([self._kernels.predict.module, kinematics.read_joints.module], self.device)
        self.work, self.solves = _scratch(model)
        self._spin = wp.zeros((len(model.com), model.worlds), dtype=vec3, device=self.device)
        self.settings.kick = wp.zeros(model.worlds, dtype=real, device=self.device)
        self.settings.halves = wp.array([int(self._halves)], dtype=wp.int32, device=self.device)
        self.solves[0].done, self.solves[0].residual = self.done, self.residual
        self.settings.gravity = gravity_of(model)
        self.settings.erp = wp.array([erp], dtype=real, device=self.device)
        self.settings.tolerance = wp.array([tolerance, 0.0], dtype=real, device=self.device)
        self.settings.per_metre = wp.array([1.0 / length], dtype=real, device=self.device)
        nothing = [1e-18 * speed, 1e-18 * mass * length * speed]
        self.settings.nothing = wp.array(nothing, dtype=real, device=self.device)
        self.settings.iterations = wp.array([iterations, position_iterations], dtype=wp.int32, device=self.device)
        at_once = NO_CAP if model.ropes is None else 1
        self.settings.sweeps = wp.array([at_once, NO_CAP], dtype=wp.int32, device=self.device)
        self._graphs: dict[str, list[Any]] = {}
        self._one: Any = None  # makes one step, where one thread makes it
        self._resting: Any = None  # of worlds beside ropes on a CPU, who sleeps
        self.collider: Any = None if model.collision is None else Collider(model, dt)
        self.settings.touch = wp.array(
            [CONTACT_TOLERANCE * float(np.linalg.norm(model.gravity)) * dt or CONTACT_TOLERANCE], dtype=real, device=self.device
        )
        self.settings.sleep = sleeps_after(model, sleep)
        self._sweeps = sweeps.sweeps_plain
        self.tolerance = float(tolerance)
        self._cap_now = self.iterations
        shared = (self.solves[0].done, self.solves[0].residual, self.settings.sweeps)
        on_cpu = wp.get_device(self.device).is_cpu
        self._host = tuple(a.numpy() for a in shared) if on_cpu else None  # views of the same memory
        self._takes = {"iterate": 0.0, "end": 0.0}  # s, measured while running
        self.report = Report(self.done, self.residual, self.tolerance, verdict=self.verdict)
        self._ropes = None if model.ropes is None else RopePasses(self, self.solves[0], rope_tolerance)
        if self._ropes is not None:
            self.report = self._ropes.report(self.done, self.residual, self.tolerance)

    def _launch(self, kernel: Any, dim: tuple[int, ...], *inputs: Any) -> None:
        if min(dim) > 0:
            wp.launch(kernel, dim=dim, inputs=list(inputs), device=self.device)

    def _bind(self, state: State, control: Control) -> None:
        """Capture the step for these arrays."""
        self._check_ropes(state)
        step = Step()
        for name in ("bodies", "joints", "axes", "gears", "springs", "cables", "drives"):
            setattr(step, name, getattr(self.model, name))
        step.cable = cable_work(self.model.cables, self.model)
        self.furnish(state)
        follows = np.zeros(len(self.model.com), np.int32)
        follows[list(self.model.paths)] = 1
        self.work.follows.assign(follows)
        step.settings, step.control, step.state, step.now, step.work = self.settings, control, state, state, self.work
        if self._halves:
            inner = State()
            for name in STATE_FIELDS:
                setattr(inner, name, getattr(state, name))
            inner.velocity, inner.momentum, inner.spin = state.mid_velocity, state.mid_momentum, self._spin
            inner.joint_force, inner.joint_torque = state.mid_force, state.mid_torque
            inner.current = state.mid_current
            step.state = inner
        step.solves = wp.array(self.solves, dtype=Solve, device=self.device)
        step.contacts = joining(self.model, state, control)
        if self.collider is not None:
            self._touch(step, control)
        self._rest = rest_of(self.model, self.settings, step.state, state, control, step.contacts)
        step.rest = self._rest[0]
        self._guards(state, control, step.state if self._halves else None)
        if self._ropes is not None:
            self._ropes.bind(state, control, self.work, step.rest)
        self._bound = state, control, alone(step, Step, self.device)
        self._step = step  # keeps its arrays alive
        self._sweeps = sweeps.sweeps_acting if control.acts.numpy().any() else sweeps.sweeps_plain
        if self.collider is not None:
            self._sweeps = self._kernels.sweeps
        self._graphs = {"step": self._capture(self._stages)}
        self._resting = state.resting.numpy() if self._ropes is not None and self._host is not None else None
        self._one = self._graphs["step"][0] if self._pool is None else None

    def _touch(self, step: Any, control: Control) -> None:
        """Contacts are found from where bodies stand and how forces would move them."""
        twist = self.solves[VELOCITIES].twist
        self.collider.data.dt = self.settings.dt
        state = step.state
        kept = (getattr(state, name) for name in SLEEP_FIELDS)
        self.collider.bind(Bodies(state.position, state.rotation, twist.linear, twist.angular, *kept), control)
        load_modules([self.collider.kernel.module, self._kernels.prepare_points.module], self.device)
        step.contacts, self.touch = self.collider.data.contacts, Touch()
        fields = set(Touch.vars) - {"patches", "known", "turns"}  # type: ignore[attr-defined]
        fill(self.touch, self.model, step.contacts.capacity, " ".join(fields))
        fill(self.touch, self.model, None, "patches known turns")
        if self.model.casts and self.model.ropes is not None:
            name = self.model.casts[0].name
            raise SimulationError(f"wheel {name!r} is cast, which sweeps beside ropes do not know; give it a hinge")
        step.casts = cast_table(self.model)
        self.block_points = self._block_contact()
        step.touch, step.block = self.touch, self.block_points

    def _block_contact(self) -> BlockContact:
        """Room to solve for all points of a world at once; none where bodies are many.

        And none on a GPU: a factorisation by one thread takes as long there as hundreds of sweeps (heaps of 20 boxes: 5 times
        the time of 50 sweeps).
        """
        block, bodies = BlockContact(), int((self.model.bodies.motion.numpy() == DYNAMIC).sum())
        rows = 6 * bodies
        pays = wp.get_device(self.device).is_cpu and few_move(self.model)
        block.capacity = min(rows * (rows + 1) // 2, LONG_ROWS * rows) if pays else 0
        fill(block, self.model, len(self.model.com), "place line lead kept_v kept_w")
        fill(block, self.model, rows, "base x")
        fill(block, self.model, block.capacity, "H")
        fill(block, self.model, None, "tries failed kept_energy")
        return block

    def _guards(self, state: State, control: Control, inner: State | None = None) -> Any:
        """The guard, which looks at gaps where the split impulses have much to close."""
        self._watch(state, control, 1, inner)
        aims = self.solves[POSITIONS]
        self._guard.aim_linear, self._guard.aim_angular = aims.bias_linear, aims.bias_angular
        if self.collider is not None:
            self._watch_contacts()
        self._watched = alone(self._guard, Watch, self.device)
        return self._watched

    def acts_changed(self) -> None:
        """To be called when something begins to act on free axes where nothing did."""
        if self._sweeps is sweeps.sweeps_plain:
            self._bound = None

    def _cap(self, iterations: int) -> None:
        """Cap the sweeps at velocity level."""
        if iterations == self._cap_now:
            return
        self._cap_now = check_iterations(iterations, 0)
        write(self.settings.iterations, [iterations, self.position_iterations])


def few_move(model: Model) -> bool:
    """Whether so few bodies are dynamic that all points of contact are solved for at once where sweeps are slow."""
    return int((model.bodies.motion.numpy() == DYNAMIC).sum()) <= FEW_BODIES


def _in_trees(model: Model) -> np.ndarray:
    """(joints,) 1 for the joints of mechanisms without a loop or a gear: no other row asks anything of their free axes."""
    dynamic = model.bodies.motion.numpy() == DYNAMIC
    group = list(range(len(dynamic)))

    def root(b: int) -> int:
        while group[b] != b:
            group[b] = group[group[b]]
            b = group[b]
        return b

    ends = list(zip(model.parents, model.children, strict=True))
    for p, c in ends:
        if dynamic[p] and dynamic[c]:
            group[root(p)] = root(c)
    own = np.array([root(c if dynamic[c] else p) for p, c in ends], int)
    held = np.array([not (dynamic[p] and dynamic[c]) for p, c in ends], bool)
    count = len(dynamic)
    spare = np.bincount([root(int(b)) for b in np.flatnonzero(dynamic)], minlength=count) - np.bincount(own, minlength=count)
    spare -= np.bincount(own[held], minlength=count) == 0  # what floats is a tree with one joint less
    for k in (*model.gears.joint_a.numpy(), *model.gears.joint_b.numpy()):
        spare[own[k]] = -1
    return np.asarray(spare[own] >= 0, np.int32)


def _scratch(model: Model) -> tuple[Work, list[Solve]]:
    """Scratch of a step, and its two solves."""
    bodies, joints, gears = len(model.com), len(model.joint_kinds), len(model.gear_names)
    springs, axes = len(model.spring_names), model.speeds
    work = Work()
    fill(work, model, bodies, "gyro spin_start momentum inv_inertia inv_mass position rest rotation")
    fill(work, model, bodies, "driven_v driven_w")
    work.open = wp.array(_in_trees(model), dtype=wp.int32, device=model.device)
    work.follows = wp.zeros(bodies, dtype=wp.int32, device=model.device)
    fill(work, model, None, "sweeps left")
    fill(work, model, joints, "mode r_parent r_child drive_force drive_torque")
    fill(work, model, joints, "W_ll W_la W_aa turn_parent_l turn_parent_a turn_child_l turn_child_a")
    rows = AxisRows()
    fill(rows, model, axes, "d n force torque turn_parent turn_child")
    fill(rows, model, joints, "response")
    work.axis = rows
    fill(work, model, gears, "gear_W")
    fill(work, model, springs, "spring_n spring_r_parent spring_r_child spring_K spring_a spring_b spring_bend")
    work.gear_row = wp.zeros((gears, 8, model.worlds), dtype=vec3, device=model.device)
    solves = []
    for _ in range(2):
        solve, twists, laws = Solve(), Twists(), Laws()
        fill(twists, model, bodies, "linear angular")
        fill(
            laws,
            model,
            axes,
            " ".join(Laws.vars),  # type: ignore[attr-defined]
        )
        laws.lower.fill_(-1e30)
        laws.upper.fill_(1e30)
        solve.twist, solve.laws = twists, laws
        fill(solve, model, joints, "bias_linear bias_angular force torque")
        fill(solve, model, gears, "gear_bias gear_impulse")
        fill(solve, model, springs, "spring_impulse")
        fill(solve, model, None, "done residual")
        solves.append(solve)
    return work, solves
