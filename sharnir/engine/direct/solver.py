"""SolverDirect: maximal coordinates, a tree of joints solved at once by a backward and a forward pass (theory: direct pass)."""

from __future__ import annotations

from collections.abc import Collection
from time import perf_counter
from typing import Any

import numpy as np
import warp as wp

from sharnir.core.types import alone, load_modules, mat33, real
from sharnir.engine.articulated.solver import FINE, TreeSolver
from sharnir.engine.articulated.spanning_tree import Links
from sharnir.engine.base import Report, check_iterations, need_ropes, with_ropes, write
from sharnir.engine.caps import HEADWAY, HEARD, LONGEST, MOST_PASSES, NEVER, SMALL_SCENE
from sharnir.engine.direct.data import BallWork, Direct, DirectSettings, DirectTouch
from sharnir.engine.direct.trees import Trees, refusal
from sharnir.engine.sleep import joining, rest_of, sleeps_after, wake_called
from sharnir.engine.tree.build import Plan
from sharnir.errors import SimulationError, is_positive
from sharnir.laws.casts import cast_table
from sharnir.laws.cone import Cone
from sharnir.model import kinematics
from sharnir.model.assembly import read_all
from sharnir.model.cable_tables import cable_work
from sharnir.model.model import STATE_FIELDS, Control, Model, State, fill, scene_scale

AT_ONCE = 4  # launches that are recorded, and replayed, together
FACTORS = 4  # that a step may make in any case
POINTS = 32  # of contact that are solved for at once, at most


class SolverDirect(TreeSolver):
    """Steps a model in time; joints, with all that acts on them, are solved exactly, without iterations along the mechanism.

    Args:
        model: what `Scene.build` returned.
        dt: step, s.
        iterations: cap of the passes in which stick, slip and limits are found; one is enough unless one of them changes.
        closing_iterations: cap of the passes that close the joints.
        tolerance: a step is solved when no law of an axis is missed by more than this, N·s or N·m·s. By default scenes of any
            size are treated alike: 1e-10 of the speeds that the axis has, or would have without the law. Trees without loops,
            contact and ropes meet laws to 1e-12 of the scene's impulses by default, and to no less than 1e-14 of them.
        gap: largest gap of a joint that counts as closed, m or rad; by default 1e-10 of the scene's length, or rad. Where it is
            wider, velocities are met less finely in proportion (3e-13 of their scale at 1e-10), in fewer passes.
        rope_iterations, rope_tolerance: those of ropes, see `SolverRope`.
        threads: CPU threads that share the worlds; all cores if None (one world needs one).
        sleep: whether what stands still sleeps, see `SolverSequential`.
        specialize: whether the steps of trees are compiled for this model; None: on a GPU, where it can be.
    """

    cayley = True
    _trees: Trees | None = None
    _special = False
    """Whether these are specialized."""
    _caps_here: Any = None  # `settings.iterations`, on a CPU

    def __init__(
        self,
        model: Model,
        dt: float,
        *,
        iterations: int = 60,
        closing_iterations: int = 20,
        tolerance: float | None = None,
        gap: float | None = None,
        rope_iterations: int | None = None,
        rope_tolerance: float | None = None,
        threads: int | None = None,
        sleep: bool = True,
        specialize: bool | None = None,
    ) -> None:
        if specialize is not None and not isinstance(specialize, bool):
            raise SimulationError(f"specialize is True, False or None, got {specialize!r}")
        self.specialize = specialize
        need_ropes(model, rope_iterations=rope_iterations, rope_tolerance=rope_tolerance)
        length = 1.0 if gap is not None else scene_scale(model, dt)[1]
        gap = FINE if gap is None else gap
        if not is_positive(gap):
            raise SimulationError(f"gap is a finite length above 0 m, got {gap!r}")
        absolute, tolerance = int(tolerance is not None), FINE if tolerance is None else tolerance
        model = with_ropes(model, trees=True)
        super().__init__(model, dt, DirectSettings(), iterations, tolerance, threads)
        if model.collision is not None:
            from sharnir.collision.collider import Collider

            self.collider = Collider(model, dt)
        self._leaves = wp.get_device(self.device).is_cpu
        load_modules([kinematics.read_joints.module], self.device)
        self._tree = self._hang()
        self._check_winches()
        self._trees = Trees(self) if Trees.cover(model) else None
        self.closing_iterations = check_iterations(closing_iterations, 1, "closing_iterations")
        self._ropes: Any = None
        self.rope_caps = rope_iterations, rope_tolerance
        if model.ropes is not None and self._trees is None:
            from sharnir.engine.direct.ropes import RopesOnTrees

            self._ropes = RopesOnTrees(self, rope_iterations, rope_tolerance)
        self.settings.tolerance = wp.array([tolerance, gap, self._slack(gap)], dtype=real, device=self.device)
        self.settings.absolute = wp.array([absolute], dtype=wp.int32, device=self.device)
        self.settings.per_metre = wp.array([1.0 / length], dtype=real, device=self.device)
        self.settings.iterations = wp.array(self._caps(None), dtype=wp.int32, device=self.device)
        self.settings.sleep = sleeps_after(model, sleep)
        self.settings.kick = wp.zeros(model.worlds, dtype=real, device=self.device)
        # whether a thread steps its worlds one after the other in one kernel; who steps many looks at them, each while it is warm
        alone = self._leaves and model.ropes is None and self.collider is None
        self.reads = alone and model.worlds > 1
        self.report = Report(
            self.done,
            self.residual,
            self.tolerance,
            self.grades,
            projected=self.projected,
            parts=self.parts,
            verdict=self.verdict,
        )
        if specialize:
            self._check_special()

    def _check_special(self) -> None:
        """Refuse, by name, to specialize what cannot be."""
        m, control = self.model, self.model.control()
        why = ""
        if m.ropes is not None:
            why = f"rope {next(iter(m.ropes.names))!r} hangs on bodies"
        elif self._trees is None or self._trees.closures:
            plan = Plan(m)
            loops = [p.joint for p in plan.places if p.part] + plan.rods
            beside = [list(m.joint_names)[k] for k in loops] + [*m.gear_names, *m.spring_names, *m.cable_names]
            why = f"{beside[0]!r} joins bodies beside the tree" if beside else "there is no body that moves"
        else:
            why = refusal(self._trees.plan, self._trees.closures, control)
        if why:
            allowed = (
                "trees of joints that touch nothing or what does not move, without ropes, loops, gears or springs between bodies"
            )
            raise SimulationError(f"Simulation: specialize=True: {why}; allowed: {allowed}; leave it out for the generic form")

    @property
    def _lean(self) -> bool:
        """Whether steps are those of trees in joint coordinates; else ropes hang on bodies in them (`RopesOnTrees`)."""
        return self._trees is not None

    def _slack(self, gap: float) -> float:
        """How many times less finely velocities are met than they can be, where wider gaps count as closed."""
        return max(1.0, gap / FINE)

    def _check_winches(self) -> None:
        """Refuse, by name, winches whose joint closes a loop."""
        links = {link.joint: link for link in self._tree.links}
        for rope in () if self.model.ropes is None else self.model.ropes.described:
            if rope.winch is None:
                continue
            joint = list(self.model.joint_names)[rope.winch.joint]
            link = links.get(rope.winch.joint)
            if link is None or max(link.body, link.base) >= len(self.model.com):
                raise SimulationError(
                    f"{type(self).__name__}: joint {joint!r} winds rope {rope.name!r} and closes a loop; it is to be in the tree"
                )

    def _hang(self) -> Links:
        return Links(self.model, without=[], at_com=True, keeps=True, cables=True)

    def rebuild(self) -> None:
        """To be called after tables of the model were changed: masses of links, and what acts on them, are taken anew."""
        super().rebuild()
        self._tree = self._hang()
        self._plan_trees()

    def _plan_trees(self, rough: Collection[int] = ()) -> None:
        """Plan the trees anew; `rough` are joints that got friction which axes share."""
        if self._trees is not None:
            self._trees = Trees(self, self._trees.plan.rough.union(rough), self._trees.loose)

    def relay(self) -> None:
        """To be called after frames of joints were changed in place."""
        self._tree.relay()
        if self._trees is not None:
            self._plan_trees()
            self.rebind()

    def begin_code(self, control: Control) -> None:
        """Let a GPU compile what the first step needs from now on, what takes longest first."""
        if self._trees is not None and not self._leaves:
            self._trees.begin_code(control)
        super().begin_code(control)

    def furnish(self, state: State) -> None:
        """What one step hands to the next, and what the state was when that was made."""
        if state.last_v.shape[0] == 0:
            fill(state, self.model, len(self.model.com), "felt_force felt_torque")
            fill(state, self.model, len(self.model.com), "kept_position kept_rotation kept_velocity kept_momentum")
            fill(state, self.model, len(self.model.joint_kinds), "mid_force mid_torque mid_tense")
            fill(state, self.model, self.model.speeds, "rotor")
            fill(state, self.model, len(self.model.com), "last_v last_w slope_v slope_w older_v older_w guess_v guess_w trend")
            fill(state, self.model, int(self._tree.closures.count), "row_force")
            fill(state, self.model, 0 if self._trees is None else self._trees.rows, "tree")

    @property
    def _least(self) -> int:
        """Passes that a step may take in any case."""
        return int(self._ropes.iterations) + FACTORS * self._anew

    @property
    def _anew(self) -> int:
        """As how many passes one counts that makes new factors: each row beside the tree takes a part of one."""
        return 1 + int(self._tree.closures.count) // 7 + 2 * int(self._ropes.ports)

    def _takes(self) -> float:
        """About how long a pass with ropes takes on one core, s: more where rows are closed beside the tree, and where something
        acts.
        """
        link = 0.65e-6 * (3 + 2 * self._acting if int(self._tree.closures.count) else 1 + self._acting)
        trees = link * max(1, len(self._tree.links)) + 0.6e-9 * int(self._tree.closures.count) ** 2
        return 1.25 * trees + 0.5e-6 * int(self.model.ropes.slots)

    def _most_passes(self) -> int:
        """Most passes of each part that a step with ropes makes; of a small scene as many as end within LONGEST."""
        if len(self.model.com) > SMALL_SCENE or self._ropes.touching is not None:
            return MOST_PASSES
        return max(2 * self._least, int(LONGEST / self._takes()))

    def _caps(self, iterations: int | None) -> list[int]:
        """Of the passes of the laws, of the closing, of all of a step; 1: beyond that it is made coarsely, 0: not at all; the
        least of a step; as how many one counts that makes new factors; those after which a call of many steps is left; and most
        of a step without a further part made. Trees in joint coordinates have theirs.
        """
        if self._trees is not None:
            return self._trees.caps(iterations)
        most, laws, coarse = self._most_passes(), self.iterations, int(iterations is not None)
        headway = most if iterations is None else NEVER
        if most < MOST_PASSES:
            most = HEADWAY * most
        if iterations is not None:
            most, laws = min(self._least + iterations, most), min(-(-iterations // self._anew), laws)
        left = max(1, int(HEARD / self._takes())) if self._leaves else NEVER
        return [laws, self.closing_iterations, most, coarse, self._least, self._anew, left, headway, 0]

    def _looks(self, tree: Links) -> int:
        """Not at all: `State.open` is what its passes left open; but what overlaps is moved after them."""
        return 0 if self.model.collision is None else 2

    def _fit(self, control: Control) -> None:
        rough = self._trees.roughened(control) if self._trees is not None else None
        if rough:
            self._plan_trees(rough)
            self._was = None
        if self._trees is not None and self._trees.loosen(control):
            self._was = None  # what was bound has no room for them
            if self._trees.plan.still:  # axes that these held still may move
                self._plan_trees()

    def _judges_each(self) -> bool:
        """Trees in joint coordinates do not where they measure what their drives give, and nothing touches."""
        return (self._measured_work() is None or self.collider is not None) and super()._judges_each()

    def _measured_work(self) -> Any:
        return self._trees.work if self._trees is not None and self._trees.measures else None

    def _told_of_contacts(self) -> tuple[Any, Any]:
        return super()._told_of_contacts() if self._trees is None else (self._trees.taken, self._trees.unsolved)

    def _rotors(self) -> list[int]:
        return self._trees.rotors if self._trees is not None else []

    def _structure(self, state: State, control: Control) -> tuple[Any, Any]:
        self._check_ropes(state)
        m = self.model
        self.furnish(state)
        self.unguarded = 16 if self._lean else 8  # energy is exact where iterations converge
        if self._trees is not None:
            bound = self._trees.bind(state, control)
            self._rest = self._trees._rest
            self._special = self._trees.specialized
            return bound
        state.tree.zero_()
        tree = self._tree
        scratch = tree.work(m.worlds)
        s = Direct()
        self._fill(s, tree, scratch, state, control)
        s.gears, s.state, s.now = m.gears, state, state
        s.drives = m.drives
        s.cables, s.cable = tree.cables, cable_work(tree.cables, m)
        fill(s, m, int(tree.cables.spans), "span_start")
        fill(s, m, int(tree.cables.ends), "arm_start")
        s.rows.gear_start = state.gear_start
        s.tau, s.speed = scratch.tau, scratch.a
        others = [b for b in range(len(tree.half_of)) if b not in tree.link_of]
        s.others, s.other_count = wp.array(others, dtype=wp.int32, device=self.device), len(others)
        links, bodies = len(tree.links), len(tree.half_of)
        fill(s, m, bodies, "momentum position rotation")
        fill(s, m, links, "impulse_l")
        fill(
            s, m, links, "gain carried_l carried_a sum_l sum_a arm1 out1 full_A full_B full_C full_D work_C ball_push ball_speed"
        )
        fill(s, m, tree.nv, "turned moved end_l end_a left_l left_a kept_u lock_u")
        fill(s, m, int(s.closures.count), "row_impulse mean_cl mean_ca mean_pl mean_pa")
        fill(s, m, tree.nv, "at_limit leaving limit_side row_miss row_share")
        fill(s, m, None, "energy single pushed passes pivots stopped")
        self._passes, s.made = s.passes, self._made
        s.drift, s.kick = self.settings.part, self.settings.kick
        s.grades, s.projected, s.parts = self.grades, self.projected, self.parts
        safe = State()
        for name in STATE_FIELDS:
            setattr(safe, name, wp.empty_like(getattr(state, name)))
        s.safe = safe
        s.balls = BallWork()
        simple = tree.tree.row.numpy()
        s.work.kind.assign(np.repeat(simple["kind"][:, None], m.worlds, 1))
        s.speeds = m.speeds
        s.contacts = joining(m, state, control)
        if self.collider is not None:
            self._touch(s, state, control, tree)
        self._rest = rest_of(m, self.settings, state, state, control, s.contacts)
        s.rest = self._rest[0]
        fill(s.balls, m, links, " ".join(BallWork.vars))  # type: ignore[attr-defined]
        self._pace = self._takes()
        write(self.settings.iterations, self._caps(self._capped))
        self._ropes.bind(s, state, control, tree.moves_with())
        array = alone(s, Direct, self.device)
        self._ropes.join(array)
        return array, s

    def _touch(self, s: Any, state: State, control: Control, tree: Links) -> None:
        """Contacts, and the small problem that they are solved in."""
        m, at = self.model, self.collider
        at.data.dt = self.settings.dt
        at.bind(state, control)
        load_modules([at.kernel.module], self.device)
        touch, cone = DirectTouch(), Cone()
        fill(touch, m, at.data.contacts.capacity, "r_a r_b t1 mu p blow roll K G before aim slip acts pseudo yields lead")
        fill(touch, m, at.data.contacts.capacity, "turn_K turn_G")
        fill(touch, m, len(tree.half_of), "move_l move_a")
        room = POINTS + self._ropes.entries
        fill(touch, m, room, "point")
        fill(touch, m, 3 * room, "line thrust")
        fill(touch, m, len(tree.links) + 1, "near near_at")
        fill(touch, m, len(m.com), "push_l push_a")
        fill(touch, m, len(tree.links), "pressed")
        fill(touch, m, None, "residual many turn told stalled")
        tree_of, ranges = tree.trees()
        spans = np.array([ranges[tree_of[link.body]] for link in tree.links], np.int32).reshape(-1, 2)
        touch.tree_first, touch.tree_end = (wp.array(x.copy(), dtype=wp.int32, device=self.device) for x in spans.T)
        fill(cone, m, None, "count size")
        fill(cone, m, 3 * room, "b p best guess rhs blow")
        fill(cone, m, room, "rubs aim host spins row law")
        cone.most = POINTS
        cone.W = wp.zeros((3 * room, 3 * room, m.worlds), dtype=real, device=self.device)
        cone.M = wp.zeros((room, room, m.worlds), dtype=mat33, device=self.device)
        s.casts = cast_table(m)
        self.touch = touch
        self._cone = cone  # keeps its arrays alive
        s.touching, s.contacts, s.touch = 1, at.data.contacts, touch
        s.cone = alone(cone, Cone, self.device)
        self._watch_contacts()

    def once(self) -> Report:
        started = perf_counter()
        self._one()
        if self._special:
            self._make_left(1)
        report = self.report
        report.deadline_missed = False
        report.elapsed = perf_counter() - started
        return report

    def several(self, n: int) -> Report:
        """Some steps of what is bound, as usual; in one launch, kept short, where one thread makes them."""
        if self._one is None:
            assert self._bound is not None
            return self.step(self._bound[0], self._bound[1], n)
        started = perf_counter()
        judged = self._judges_each()
        self._ask(1 if judged else n)
        if judged:
            self._one_by_one(n)
        else:
            self._graphs[0]()
        if self._special:
            self._make_left(n)
        elif self._leaves and not judged:
            self._go_on()
        report = self.report
        report.deadline_missed = False
        report.elapsed = (perf_counter() - started) / n
        return report

    def _make_steps(self, n: int, judged: bool) -> None:
        super()._make_steps(n, judged)
        if self._special:
            self._make_left(n)

    def _one_by_one(self, n: int) -> None:
        """Launches of one step each, some of which are replayed at once; they count together."""
        if n <= AT_ONCE or not self._lean or self._special or not self._leaves:
            super()._one_by_one(n)
            return
        if not self._more:
            self._more, self._caps_here = self._capture(*[self._launch] * AT_ONCE), self.settings.iterations.numpy()
        goes_on = self._caps_here
        goes_on[8] = n if self._trees is not None and self._trees.measures else 0  # else the guard reads what each carries
        self._replay(self._graphs, 1)
        goes_on[7] = 1
        try:
            self._replay(self._more, (n - 1) // AT_ONCE)
            self._replay(self._graphs, (n - 1) % AT_ONCE)
        finally:
            goes_on[7] = goes_on[8] = 0

    def _make_left(self, n: int) -> None:
        """Make the steps that specialized code left to the code for any forest."""
        assert self._trees is not None
        if self._trees.is_unfinished():
            self._trees.make_left(n)

    def _go_on(self) -> None:
        if not self._special:
            super()._go_on()

    def _make(self, step: Any, first: int, worlds: int, steps: Any) -> None:
        if self._special:
            assert self._trees is not None
            self._trees.make(step, first, worlds, steps)
            self._read_after(first, worlds)
            return
        if self.collider is not None:
            wp.launch(wake_called, dim=worlds, inputs=[self._rest[0], first], device=self.device)
            self.collider.find(first, worlds)
            if self._trees is not None:
                steps = self._trees.make_by_model(step, first, worlds, steps)
        if self._ropes is None:
            super()._make(step, first, worlds, steps)
        else:
            self._ropes.make(first, worlds, steps)
        self._read_after(first, worlds)

    def _launch(self, step: Any, first: int, worlds: int) -> None:
        self._launch_steps(step, first, worlds, self._steps)

    def _launch_one(self, step: Any, first: int, worlds: int) -> None:
        self._launch_steps(step, first, worlds, self._single)

    def _launch_steps(self, step: Any, first: int, worlds: int, steps: Any) -> None:
        self._make(step, first, worlds, steps)
        if not (self._special and self._trees is not None and self._trees.judges):  # those are judged as they end
            self._look(first, worlds)

    def _read_after(self, first: int, worlds: int) -> None:
        """Coordinates and speeds of joints, where a thread reads those of its worlds while they are warm."""
        if self.reads and self._bound is not None:
            read_all(self.model, self._bound[0], first, worlds)
