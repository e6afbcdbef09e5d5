"""Simulation: the friendly face. Names instead of indices, NumPy values, one world or many.

Values have the shapes given below; with several worlds they get a leading world axis, (worlds, …).
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack

import numpy as np
import warp as wp

from sharnir.core import summaries
from sharnir.core.graphs import LOCK, Recorded
from sharnir.core.journal import OfInit
from sharnir.core.misspellings import likely
from sharnir.core.precision import check_precision
from sharnir.core.reading import Reading
from sharnir.core.renamed import Former
from sharnir.core.strided import columns
from sharnir.core.types import plan_groups
from sharnir.core.world_reset import Image
from sharnir.engine.articulated.solver import TreeSolver
from sharnir.engine.base import Report
from sharnir.engine.choice import asked_for, begin_early, chosen
from sharnir.errors import (
    LARGEST_STATE,
    OF_SIMULATIONS,
    ArgumentError,
    Bound,
    SceneError,
    SceneWarning,
    SimulationError,
    Views,
    as_numbers,
    callers_level,
    is_positive,
    named,
    reachable,
)
from sharnir.model import assembly
from sharnir.model.model import Model, State
from sharnir.runtime import health, snapshots
from sharnir.runtime.arrays import READ_ALL, READ_NOTHING, READ_PLACES, ArrayAccess, Host, Idle, Lent, Targets, memory
from sharnir.runtime.cable_views import CableView
from sharnir.runtime.checkpoint import content
from sharnir.runtime.checkpointing import CheckpointAccess
from sharnir.runtime.contacts import ContactAccess, ContactMonitor
from sharnir.runtime.health import Health
from sharnir.runtime.joint_views import JointView
from sharnir.runtime.kinematic_paths import Follower
from sharnir.runtime.measures import Energy, Measures, Momentum, constraint_error, constraint_velocity_error, note_velocity_error
from sharnir.runtime.options import Options, Spreads, VideoOptions, ViewOptions, check_options
from sharnir.runtime.parameters import owned, randomize
from sharnir.runtime.rope_view import RopeView
from sharnir.runtime.snapshots import Snapshot, rope_arrays
from sharnir.runtime.tolerances import Tolerances, with_former
from sharnir.runtime.transaction import Sum, Transaction
from sharnir.runtime.views import BodyView, GearView, SpringView
from sharnir.runtime.wind import Air, WindAccess
from sharnir.scene.inputs import InputAccess, Inputs
from sharnir.scene.scene import Scene
from sharnir.sensors.table import Sensing, Sensors

if TYPE_CHECKING:
    from sharnir.engine.rope.solver import SolverRope
    from sharnir.engine.sequential.solver import SolverSequential
    from sharnir.integrate.mechanics import Trajectory
    from sharnir.runtime.linearization import Linearization
    from sharnir.view.video import Video
    from sharnir.view.viewer import Viewer

ON_DIVERGENCE = ("raise", "warn", "ignore")
LONG_STEP = 1.0  # s, from which on milliseconds may be meant
HEARD = 0.05  # s, after which at the latest Python is heard in a long call
LOOK_EVERY = 512  # steps, after which at the latest the guard looks at a long call


class Simulation(Bound, ArrayAccess, ContactAccess, InputAccess, WindAccess, CheckpointAccess, Sensing):
    """A scene in motion.

    Args:
        scene: a Scene, or a Model that was built from one.
        dt: step, s.
        solver: "direct" (whole trees in one pass, exact), "sequential" (impulses joint by joint, any topology alike),
            or "auto": direct, but sequential where bodies touch (or wheels are ray cast) in a scene without joints, where ropes
            touch, and where very many loops meet on one tree. `solver_name` tells which it is; ropes without joints and contact
            have one engine of their own, "rope", for every word.
        worlds, device: number of copies that run at once, and where ("cpu" or "cuda:0"; a list of devices shares them out, and
            makes a `SplitSimulation`).
        on_divergence: what is done where joints stand open by a whole body or energy comes from nowhere: "raise" a
            `DivergenceError` (of several worlds that one stops, and is marked in `failed`), "warn" once, or "ignore".
        sleep: whether bodies, mechanisms and ropes at rest sleep until something wakes them (`SolverSequential`).
        tolerances: how exactly each step is solved, and in how many iterations; chosen for the scene if None (`Tolerances`).
        precision: "single" or "double": raises an error if this process computes in the other one (see `set_precision`).
        threads: CPU threads that share the worlds; all cores if None (one world needs one).
        specialize: whether the steps of trees, with contact or without, are compiled for this model (`SolverDirect`); None: on a
            GPU, where that can be.
    """

    __slots__ = (
        "__weakref__", "_air", "_at_pose", "_bodies", "_bodies_lent", "_cables", "_clock", "_commands", "_contact_monitor",
        "_content", "_epoch", "_forced", "_gears", "_gravities", "_idle", "_images", "_inputs", "_joints", "_known", "_lent",
        "_linearizer", "_logs", "_looks", "_measures", "_modified", "_moving", "_nominal", "_on_cpu", "_on_divergence",
        "_pace", "_paths", "_projected", "_read", "_reader", "_recorder", "_rope_commands", "_rope_moving", "_ropes",
        "_sensors", "_shown", "_springs", "_start", "_state", "_target", "_transaction", "_versions", "_views", "commands",
        "model", "solver", "solver_name", "worlds",
    )  # fmt: skip

    __signature__ = OfInit()
    _instead = OF_SIMULATIONS
    __setattr__ = object.__setattr__  # type: ignore[assignment]  # steps write here, and Python's own words cost nothing
    if not TYPE_CHECKING:  # an editor looks at __init__

        def __new__(cls, *given, device="cpu", **options):
            """A list of devices gets a simulation in parts."""
            if len(given) > 2:
                raise ArgumentError(f"Simulation(scene, dt): the rest is given by name, as worlds=4, got {given[2:]!r} besides")
            if given and len(given) < 2 and "dt" not in options:
                other = next((word for word in options if likely(word, ("dt",))), None)
                words = f", as dt={options[other]!r}, not {other}" if other else ""
                raise ArgumentError(f"Simulation(scene, dt): the step dt in s is missing{words}")
            if not isinstance(device, list | tuple):
                return super().__new__(cls)
            from sharnir.runtime.split import SplitSimulation

            return super().__new__(SplitSimulation if cls is Simulation else cls)

    def __init__(
        self,
        scene: Scene | Model,
        dt: float,
        *,
        solver: Literal["auto", "direct", "sequential", "impulse"] = "auto",
        method: Literal["sequential", "direct"] | None = None,
        worlds: int = 1,
        device: str | Sequence[str] = "cpu",
        on_divergence: Literal["raise", "warn", "ignore"] = "raise",
        tolerances: Tolerances | None = None,
        precision: Literal["single", "double"] | None = None,
        **options: Unpack[Options],
    ) -> None:
        if precision is not None:
            check_precision("Simulation", precision)
        if on_divergence not in ON_DIVERGENCE:
            raise SimulationError(f"on_divergence is one of {', '.join(map(repr, ON_DIVERGENCE))}, got {on_divergence!r}")
        word = asked_for(solver, method)
        exact, others = with_former(tolerances, dict(options))
        if not isinstance(scene, Scene | Model):
            raise SceneError(f"Simulation: scene is a Scene or a Model, got {scene!r}")
        if not is_positive(dt):
            raise SceneError(f"Simulation: dt is a positive finite number of seconds, got {dt!r}")
        if isinstance(scene, Model) and worlds not in (1, scene.worlds):
            raise SimulationError(f"Simulation: worlds={worlds!r} beside a Model that was built with worlds={scene.worlds}")
        if dt >= LONG_STEP:
            words = f"Simulation: dt = {dt:g} s is long for a step; are milliseconds meant? dt={dt / 1000:g} has it"
            warnings.warn(words, SceneWarning, stacklevel=callers_level())
        plan_groups(scene.touch.on if isinstance(scene, Scene) else scene.collision is not None)
        try:
            with LOCK:
                if isinstance(scene, Scene):
                    begin = partial(begin_early, worlds=worlds, word=word, specialize=options.get("specialize"))
                    self.model = scene.build(worlds, str(device), begin)
                else:
                    self.model = owned(scene)
                self._prepare(word, dt, others, on_divergence, exact)
        except (MemoryError, RuntimeError) as error:
            if isinstance(error, SimulationError) or "alloc" not in str(error).lower():
                raise
            raise SimulationError(f"Simulation: worlds={worlds} of this scene do not fit the memory of {device!r}") from None
        note_velocity_error(self)

    def _prepare(self, word: str, dt: float, options: dict[str, Any], on_divergence: str, tolerances: Tolerances) -> None:
        """Arrays, solver and views of the model; `options` are keywords of the solver."""
        self.worlds = self.model.worlds
        self._on_cpu: bool = wp.get_device(self.model.device).is_cpu
        self._at_pose = True  # whether velocities in the state are those of its pose
        self.solver_name, kind = chosen(self.model, word)
        if options.get("specialize", True) is None:
            del options["specialize"]
        check_options(kind, self.solver_name, options)
        options |= tolerances.keywords(self.solver_name)
        self.solver: SolverSequential | TreeSolver | SolverRope = kind(self.model, dt, **options)
        self.solver.given = options
        self.model = self.solver.model  # with ropes laid out as the solver takes them
        self._content = content(self.model)  # before anything can change it
        self._state, self.commands = self.model.state(), self.model.control()
        self.solver.furnish(self._state)
        self._gravities = np.array(self.model.gravity)
        self._nominal: dict[str, np.ndarray] | None = None  # parameters as described, where they were varied
        self._on_divergence = on_divergence
        self.solver.strict.fill_(int(on_divergence == "raise"))
        self._modified, self._forced = True, False  # whether the state was changed, or forces were set, since the last step
        # whether arrays of bodies are lent, and which of the joints' coordinates and speeds in the state are those of now
        self._bodies_lent, self._read, self._known = False, READ_NOTHING, READ_NOTHING
        self._lent: list[Lent] = []  # arrays that a user may write
        self._logs: list[Any] = []  # recordings and videos, called at every step
        self._recorder: Any = None  # the one of them that is called when the state is read
        self._versions = [0, 0]  # how often the state was changed from outside, and parameters were or all of it was put back
        self._pace = 0.0  # s, that a step took of late
        self._epoch = 0.0  # s, at which the device's clock began: steps do not depend on what a user calls the time
        self._projected = np.zeros(self.worlds)
        ropes = self.model.ropes.names if self.model.ropes is not None else {}
        packed = snapshots.pack_all(self, bool(ropes))
        self._moving, self._commands = Host(self._state, self._on_cpu), Host(self.commands, self._on_cpu)
        if ropes:
            self._rope_moving, self._rope_commands = Host(self._state.rope, self._on_cpu), Host(self.commands.rope, self._on_cpu)
        self._clock = memory(self._moving.time) if self._on_cpu and self.worlds == 1 else None
        self._reader = Recorded(lambda: assembly.read_all(self.model, self._state), self.model.device)
        self._measures: Measures | None = None
        self._looks: Any = None
        self._views: dict[str, np.ndarray] | None = None  # of all that changes, on the CPU
        self._shown: dict[str, Any] = {}
        self._idle = Idle()
        self._bodies = {name: BodyView(self, i, name) for name, i in self.model.body_names.items()}
        self._joints = {name: JointView(self, i, name) for name, i in self.model.joint_names.items()}
        self._gears = {name: GearView(self, i, name) for name, i in self.model.gear_names.items()}
        self._springs = {name: SpringView(self, i, name) for name, i in self.model.spring_names.items()}
        self._cables = {name: CableView(self, i, name) for name, i in self.model.cable_names.items()}
        self._ropes = {name: RopeView(self, i, name) for name, i in ropes.items()}
        self._contact_monitor = None if self.solver.collider is None else ContactMonitor(self)
        self._transaction = Transaction(self, *packed)
        self._linearizer: Any = None
        names = {i: name for name, i in self.model.body_names.items()}
        self._paths: list[Any] = [Follower(self, i, names[i], path) for i, path in self.model.paths.items()]
        self._air = Air(self, self.model.drag_areas) if self.model.drag_areas else None
        self._paths += [] if self._air is None else [self._air]
        self._target = Targets(self)
        self._inputs = Inputs(self, self.model.inputs)
        self._sensors = Sensors(self, self.model.sensors)
        self._inputs.begin()
        self.solver.begin_code(self.commands)
        self._start = self.snapshot()
        self._images = (
            None if self._on_cpu else [Image(*packed), Image(self.solver.memory, [self.solver.whole, self.solver.real])]
        )

    # ---- time ----

    def step(self, n: int = 1, *, budget: float | None = None, iterations: int | None = None) -> Report:
        """Advance by n steps; returns the report of the last one (an object that is reused).

        Args:
            budget: wall-clock time for a step, s: the solver stops iterating before it runs out, and says so in the report.
            iterations: cap of the sweeps in this call; the counts that budgeted steps reported replay them bit for bit.

        A step that cannot be made, or whose result is not finite, is not made: with one world this raises `SimulationError`, with
        several the world is marked in `failed` and stays at its last good step while the others go on.
        """
        if n == 1 and budget is None and iterations is None and not self._logs:  # the usual call, kept short
            if self._inputs.busy:
                self._inputs.apply()
            if self._paths:
                self._advance_paths()
            report = self._transaction.once()
            if self._contact_monitor is not None:
                self._contact_monitor.after()
            if self._sensors.some:
                self._sensors.made(1)
            return report
        if n.__class__ is not int or n < 1:
            raise SimulationError(f"step(n): n is a whole number of at least 1, got {n!r}")
        if budget is not None and not is_positive(budget):
            raise SimulationError(f"step(budget=…): a positive finite time in s, got {budget!r}")
        if budget is None and iterations is None and self._is_plain and n <= self._chunk():
            report = self._transaction.several(n)
            self._pace = report.elapsed
            if self._contact_monitor is not None:
                self._contact_monitor.after()
            return report
        how = {"budget": budget, "iterations": iterations}
        done, took, late, tally = 0, 0.0, False, Sum(self.solver)
        while done < n:
            if self._inputs.busy:
                self._inputs.apply()
            if self._paths:
                self._advance_paths()
            part = 1 if self._paths or self._inputs.busy or budget is not None else min(n - done, self._chunk())
            part = min(part, self._sensors.left)
            for log in self._logs:
                part = min(part, log.due())
                log.before(how)
            report = self._transaction.advance(part, how)
            if self._contact_monitor is not None:
                self._contact_monitor.after()
            self._sensors.made(part)
            for log in tuple(self._logs):
                log.made(part)
            done, took, late = done + part, took + part * report.elapsed, late or report.deadline_missed
            self._pace = report.elapsed
            tally.add(done == n)
        report.elapsed, report.deadline_missed = took / n, late
        return report

    @property
    def _is_plain(self) -> bool:
        """Whether nothing is done between steps: nobody records or steers, no sensor reads."""
        return not (self._logs or self._inputs.busy or self._paths or self._sensors.some)

    def _chunk(self) -> int:
        """Steps that are made in one go: few enough that Ctrl-C is heard, and that the guard looks in between."""
        if self._modified or self._forced or self._pace == 0.0:
            return 1
        most = self.solver.unguarded if self.solver.driven and self.worlds > 1 else LOOK_EVERY
        if self._contact_monitor is not None:  # there may have to be room for more contacts
            most = 1 if self._contact_monitor.watched else min(most, 16)
        return max(1, min(most, int(HEARD / self._pace)))

    def _advance_paths(self) -> None:
        """Lead kinematic bodies with a path, and let the air push; both give any energy."""
        dt = self.solver.dt
        t = self.time + dt
        for follower in self._paths:
            follower.lead(t, dt)
        self._modified = self._forced = True
        self._read = self._known = READ_NOTHING

    def run(self, duration: float, progress: bool | Callable[[float], None] = False) -> Report:
        """Advance by a time in s (the nearest whole number of steps); `progress` shows a bar, or is called with the time."""
        if not is_positive(duration):
            raise SimulationError(f"run(duration): a positive finite time in s, got {duration!r}")
        total = max(1, round(duration / self.dt))
        if not progress:
            return self.step(total)
        done, chunk = 0, max(1, total // 100)
        while done < total:
            n = min(chunk, total - done)
            report = self.step(n)
            done += n
            if callable(progress):
                progress(self.time)
            else:
                bar, end = "#" * (30 * done // total), "\n" * (done == total)
                print(f"\r[{bar:<30}] {self.time:8.2f} s", end=end, file=sys.stderr, flush=True)
        return report

    def video(self, path: str | Path, **options: Unpack[VideoOptions]) -> Video:
        """Film the first world while steps are made: `with sim.video("out.gif", fps=25): sim.run(4)`; needs no screen.

        Args:
            fps: pictures a second. speed: simulated seconds per second of the film. size: pixels. eye, target: of the camera, m.
        """
        from sharnir.view.video import Video

        return Video(self, path, **options)

    def view(self, title: str = "sharnir", **options: Unpack[ViewOptions]) -> Viewer:
        """Show it in the browser, at http://127.0.0.1:8080, until Ctrl-C; time runs while a page is open.

        Args:
            title: above the controls. control: called with the simulation before each step. speed: simulated seconds per second.
            paused: wait for Play. plot: values as in `record`. follow: a body to move along with. worlds: how many are shown.
            port, host: of the page; other hosts than 127.0.0.1 open it to others. block: False returns at once, and goes on in
                a thread.
        """
        from sharnir.view.viewer import serve

        return serve(self, title, **options)

    def integrate(
        self,
        t_end: float,
        *,
        rtol: float = 1e-9,
        atol: float = 1e-9,
        integrator: str = "dop853",
        times: Any = None,
        events: Any = (),
        dense: bool = False,
        progress: bool = False,
    ) -> Trajectory:
        """Go on to the time t_end by high-order integration in joint coordinates, with all that acts on the mechanism.

        Commands and forces stay as they are. Stick, slip and limits are located as events.

        Args:
            rtol, atol: tolerances of a step. integrator: "dop853" or "rk45".
            times: times (s) at which the motion is returned; t_end alone if None.
            events: functions f(t, q, v) whose passages through zero are found; a terminal one ends the motion (one world).
            dense: keep the motion between the times, for `Trajectory.at`.

        Returns the motion at those times; the simulation stands at t_end, or where a terminal event ended it. See
        `sharnir.dynamics.integrate` for more.
        """
        options = {"rtol": rtol, "atol": atol, "method": integrator, "events": events, "dense": dense, "progress": progress}
        from sharnir.runtime import integration

        with LOCK:
            return integration.integrate(self, t_end, times, options)

    def linearize(self, inputs: Iterable[str] | None = None) -> Linearization:
        """The derivative of the next step by the present state and by what acts: x₁ = A x₀ + B u about it, exactly.

        It is that of the step's own equations in the active set that the step finds (friction that slides or holds, limits that
        are met or not), for trees of joints with one axis and what acts on these, balls and bodies that float. The state stays as
        it is.

        Args:
            inputs: what u has: "JOINT.effort" (or the joint's name alone), "JOINT.drive.position", "JOINT.drive.velocity",
                "JOINT.drive.voltage", "BODY.force", "BODY.torque"; the efforts of all joints with one axis unless given.
        """
        from sharnir.runtime.linearization import linearize

        return linearize(self, inputs)

    @property
    def state(self) -> State:
        """The arrays beneath, [item, world]. Velocities and reactions are brought to the pose when the state is asked for: ask
        again after a step.
        """
        if not self._at_pose:
            if self._recorder is not None:
                self._recorder.reading()
            self._at_pose = True
            if self.solver._bound is None:
                with LOCK:
                    self.solver.read_pose(self._state, self.commands)
            else:
                self.solver.read_pose(self._state, self.commands)
            self._known = min(self._known, READ_PLACES)
            self._read = min(self._read, READ_PLACES)
            if self._lent:
                self._take()
            if self._recorder is not None:
                self._recorder.read()
        return self._state  # type: ignore[no-any-return]

    @property
    def time(self) -> float:
        """Time since the start, s (of the worlds that have not failed)."""
        t = float(self._clock[0] if self._clock is not None else self._moving.time.max())
        whole = round(t / self.solver._dt) * self.solver._dt  # the device adds up steps, and rounding with them
        return (whole if abs(whole - t) <= 1e-9 * t else t) + self._epoch

    @time.setter
    def time(self, value: float) -> None:
        self._epoch = float(self._in(value, 1, "Simulation", "time (s)")[0, 0]) - float(self._moving.time.max())

    @property
    def dt(self) -> float:
        """Step, s; may be changed while running."""
        return self.solver.dt

    @dt.setter
    def dt(self, value: float) -> None:
        if value == self.solver.dt:
            return
        old, state = self.solver.dt, self.state  # which is read with the step that led to it
        with LOCK:
            self.solver.dt = value
            # impulses of the last step start the next
            impulses = "joint_force joint_torque mid_force mid_torque gear_impulse spring_impulse cable_impulse axis_impulse"
            impulses += " friction_impulse limit_impulse drive_impulse"
            for name in impulses.split():
                array = getattr(state, name)
                array.assign(array.numpy() * (value / old))
            for name in ("rope.pull", "rope.moment", "rope.end_force", "rope.tie_force"):
                if self._ropes:
                    rope_arrays(self)[name].assign(rope_arrays(self)[name].numpy() * (value / old))
            if self._contact_monitor is not None:
                impulse = self._contact_monitor.arrays()["contact.impulse"]
                impulse.assign(impulse.numpy() * (value / old))

    @property
    def gravity(self) -> np.ndarray:
        """(3,) m/s², or (worlds, 3) where it varies; may be changed while running."""
        return self._gravities.copy()

    @gravity.setter
    def gravity(self, value: Any) -> None:
        g = as_numbers(value)
        if g.shape not in ((3,), (self.worlds, 3)) or not np.all(np.isfinite(g)):
            each = f", or three a world ({self.worlds})" if self.worlds > 1 else ""
            raise SimulationError(f"gravity is three finite numbers in m/s²{each}, got {value!r}")
        g = g[0] if g.ndim == 2 and (g == g[0]).all() else g
        old, new = (np.broadcast_to(x, (self.worlds, 3)) for x in (self._gravities, g))
        other = (old != new).any(1)
        if other.any():
            kept = self.state.kept_rotation.numpy().copy()
            self.solver.begin_anew(self.state)  # half a kick of the old one, half of the new
            if kept.size and not other.all():
                now = self.state.kept_rotation.numpy()
                now[:, ~other] = kept[:, ~other]
                self.state.kept_rotation.assign(now)
        self._gravities = g.copy()
        self._measures = None
        with LOCK:
            self.solver.settings.gravity.assign(np.ascontiguousarray(new))
        self._modified = True

    def randomize(self, seed: int, **spreads: Unpack[Spreads]) -> None:
        """Vary parameters from world to world, evenly within ± a spread of what the scene described; a call replaces the last.

        Args:
            seed: of the random numbers: the same one gives the same worlds.
            mass, stiffness, damping, friction, kp, kd, motor, gravity, rope: relative spreads, 0 to below 1; an inertia goes
                with its mass, `motor` is resistance and torque constant, `rope` EI, GJ, damping. limit: m and rad, of both ends.
        """
        randomize(self, seed, dict(spreads))  # type: ignore[arg-type]

    randomise = randomize

    def _rebuild(self) -> None:
        """After tables of the model were replaced."""
        self.solver.rebuild()

    @property
    def failed(self) -> np.ndarray:
        """(worlds,) True where a world stopped because its state would have become non-finite."""
        return np.asarray(self._moving.failed != 0)

    def changed(self) -> None:
        """To be called after arrays of `state` were written directly: the guard then starts from what they hold."""
        if self._lent:
            self._look()
        self._modified = True
        self._versions[0] += 1
        self._read = self._known = READ_NOTHING

    def _keep_known(self, known: int) -> None:
        """After some worlds were changed, coordinates and all: what was read of the others holds."""
        self._known = known
        self._read = READ_NOTHING if self._bodies_lent else known

    def health(self) -> Health:
        """How the steps went since the start, the last `reset` or `restore`; of several worlds, arrays (worlds,)."""
        return health.health(self)

    # ---- state as a whole ----

    def reset(self, worlds: Any = None) -> None:
        """Back to the start, commands included; the step and gravity stay.

        Args:
            worlds: a mask (worlds,) or indices of those that begin anew, while the others go on as if nothing had been done; all
                if None.
        """
        if worlds is not None:
            snapshots.put_back_some(self, self._start, snapshots.chosen(self, worlds))
            return
        dt, gravity = self.dt, self.gravity
        snapshots.put_back(self, self._start | {"gravity": gravity}, known=True)
        self.dt = dt

    def snapshot(self) -> Snapshot:
        """All that changes, as a dict of copies; `restore` continues from it bit for bit."""
        return snapshots.take(self)

    def restore(self, snapshot: Snapshot) -> None:
        """Continue from a snapshot of this scene; after another solver, from its poses and velocities alone."""
        snapshots.put_back(self, snapshot)

    def energy(self) -> Energy:
        """Kinetic, potential and elastic energy of the dynamic bodies, J."""
        measures = self._measures
        if measures is None:
            measures = self._measures = Measures(self)
        return measures.energy()

    def momentum(self) -> Momentum:
        """Linear momentum and angular momentum about the origin of the dynamic bodies."""
        if self._measures is None:
            self._measures = Measures(self)
        return self._measures.momentum()

    # ---- objects ----

    def __repr__(self) -> str:
        return summaries.simulation(self)

    @property
    def bodies(self) -> Mapping[str, BodyView]:
        """All bodies but the ground by name, in the order in which they were added; `body` takes one."""
        return Views({name: view for name, view in self._bodies.items() if name != Scene.world}, "body")

    @property
    def joints(self) -> Mapping[str, JointView]:
        """All joints by name, in the order in which they were added."""
        return Views(self._joints, "joint")

    @property
    def ropes(self) -> Mapping[str, RopeView]:
        """All ropes by name, in the order in which they were added."""
        return Views(self._ropes, "rope")

    def body(self, name: str) -> BodyView:
        """The body of that name."""
        return named(self._bodies, name, "body")

    def joint(self, name: str) -> JointView:
        """The joint of that name; of a gear see `gear`."""
        if isinstance(name, str) and name in self._gears:
            return self._gears[name]  # type: ignore[return-value]  # as in the last release
        return named(self._joints, name, "joint")

    def gear(self, name: str) -> GearView:
        """The gear of that name."""
        return named(self._gears, name, "gear")

    def cable(self, name: str) -> CableView:
        """The cable of that name."""
        return named(self._cables, name, "cable")

    def spring(self, name: str) -> SpringView:
        """The point-to-point spring of that name."""
        return named(self._springs, name, "spring")

    def rope(self, name: str) -> RopeView:
        """The rope of that name."""
        return named(self._ropes, name, "rope")

    @property
    def redundant(self) -> list[str]:
        """Rows of closed loops ('joint.axis') that follow from others; reactions there are shared in some way."""
        return list(self.model.redundant)

    def constraint_error(self) -> np.ndarray:
        """(worlds, joints, 2) how far every joint stands open: m, rad."""
        return constraint_error(self)

    gaps, misfit = Former("constraint_error"), Former("constraint_velocity_error")

    def constraint_velocity_error(self) -> np.ndarray:
        """(worlds, joints, 2) speeds of every joint along what it holds: m/s, rad/s.

        With `solver="direct"` mean velocities fit the joints to rounding, those at the pose to second order.
        """
        return constraint_velocity_error(self)

    # ---- shared by the views ----

    def _out(self, values: np.ndarray) -> Any:
        """(worlds, …) as the user sees it."""
        if self.worlds > 1:
            return values.view(Reading)
        first = values[0]
        return first.copy().view(Reading) if isinstance(first, np.ndarray) else float(first)

    def _in(self, value: Any, size: int, who: str, what: str, state: bool = False) -> np.ndarray:
        """A user's value as (worlds, size), finite; a `state` (position, angle, speed) is at most `LARGEST_STATE` in size."""
        try:
            v = np.asarray(value, float)
        except (TypeError, ValueError):
            raise SimulationError(f"{who}: {what} is {size} finite number{'s' * (size > 1)}, got {value!r}") from None
        if size == 1 and v.shape[-1:] != (1,):
            v = v[..., None]
        if v.shape not in ((size,), (self.worlds, size)) or not np.all(np.isfinite(v)):
            each, got = " a world" * (self.worlds > 1), np.asarray(value).tolist()
            raise SimulationError(f"{who}: {what} is {size} finite number{'s' * (size > 1)}{each}, got {got}")
        if state and not reachable(v):
            raise SimulationError(f"{who}: {what} is at most {LARGEST_STATE:g} in size, got {np.asarray(value).tolist()}")
        return np.broadcast_to(v, (self.worlds, size)).copy()

    def _acts_changed(self) -> None:
        """After a change of what acts on free axes, or of which joints hold."""
        if isinstance(self.solver, TreeSolver) or self._commands.acts.any():
            self.solver.acts_changed()

    def _inertia(self, rows: np.ndarray) -> np.ndarray:
        """(rows, 1 or worlds, 3, 3) kg·m² of some bodies about their centres of mass, body axes."""
        return np.asarray(columns(self.model.bodies.inertia)[rows])

    def _begin_looking(self) -> None:
        """From now on arrays of the bodies may be written: what was read counts until somebody looked."""
        self._read, self._bodies_lent = READ_NOTHING, True

    def _efforts_changed(self, _before: bytes = b"") -> None:
        self._forced = True

    def _settled(self) -> Host:
        """The arrays of the state, velocities being those of the pose."""
        if self._lent:
            self._look()
        if not self._at_pose:
            self.state  # noqa: B018
        return self._moving

    def _coordinates(self, wanted: int = READ_ALL) -> None:
        """Bring the joints' coordinates, and if they are wanted their speeds, up to date, once after each change."""
        if self._lent:
            self._look()
        if self._known < wanted:
            if wanted == READ_ALL and not self._at_pose:
                self.state  # noqa: B018
            if self.model.joint_kinds:
                self._reader()
            self._known = READ_ALL if self._at_pose else READ_PLACES
        if not self._bodies_lent:
            self._read = self._known
