"""A simulation at the pace of the wall clock.

    rt = sh.RealTime(sim, rate=500)
    rt.run(10.0)                                   # here, for 10 s; rt.statistics has its timing
    with rt:                                       # or in a thread of its own
        rt.post(lambda sim: sim.body("load").apply_force((0, 0, 10)))
        frame = rt.latest()

Each tick has an absolute deadline on the monotonic clock, so that lateness does not add up. What is not ready in time is
handled as `overrun` says. Everything that touches the simulation from outside goes through `post`, and what others look at is
`latest`: a copy. Neither ever makes the loop wait.

Other threads have Python's lock while the loop sleeps. A tick keeps it, the solver's work included; when the loop wakes, they
give way at once. What they do without a break, in one call, is what may still delay it.
"""

from __future__ import annotations

import contextlib
import gc
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Literal, TypeVar

import numpy as np

from sharnir.core.graphs import Keeper
from sharnir.core.misspellings import Checked
from sharnir.errors import SceneError, SimulationError, is_positive
from sharnir.io.frames import Frame, Layout
from sharnir.runtime.frame_camera import Camera
from sharnir.runtime.simulation import Simulation
from sharnir.trainer.statistics import Statistics, Times

T = TypeVar("T")
OVERRUN = ("catch-up", "skip", "slow")
SPIN = 1.5e-4  # s before a deadline from which on the loop watches the clock: sleeping is not that exact
SWITCH_INTERVAL = (
    5e-5  # s, after which another thread has to give way to a loop that wakes; Python's own 5 ms is longer than a tick
)
PATIENT = 1e-3  # s, after which the loop gives way to others within a tick
KEEPS = 0.01  # s, the longest tick in which the solver keeps Python's lock
TIDY = 1.0  # s between collections of garbage, where there is idle time
PAUSED = 0.005  # s between looks at what was posted while time stands


class Quiet:
    """While a loop runs: no garbage collection of its own accord, other threads give way soon. Loops in one process share it.

    keeps: whether the solver keeps Python's lock in this thread; two loops at once do not, or they would wait for each other.
    """

    _lock = threading.Lock()
    _users = 0
    _was = (True, 0.005)

    def __init__(self, keeps: bool = False) -> None:
        self._keeps = keeps

    def __enter__(self) -> Quiet:
        with Quiet._lock:
            if Quiet._users == 0:
                Quiet._was = gc.isenabled(), sys.getswitchinterval()
                gc.collect()
                gc.freeze()
                gc.disable()
                sys.setswitchinterval(min(SWITCH_INTERVAL, Quiet._was[1]))
            Quiet._users += 1
            Keeper.thread = threading.get_ident() if self._keeps and Quiet._users == 1 else 0
        return self

    def __exit__(self, *_: object) -> None:
        with Quiet._lock:
            Quiet._users -= 1
            Keeper.thread = 0
            if Quiet._users == 0:
                gc.unfreeze()
                if Quiet._was[0]:
                    gc.enable()
                sys.setswitchinterval(Quiet._was[1])


class Urgent:
    """This thread comes before all ordinary ones of the machine (SCHED_FIFO), where the system allows it (`granted`).

    With `friends`, threads of this library follow it closely: who has Python's lock must not have to wait for a processor.
    """

    def __init__(self, level: int = 1, friends: bool = False) -> None:
        self._level, self._friends = level, friends
        self._was: list[tuple[int, int, Any]] = []  # threads, and how they ran before

    @property
    def granted(self) -> bool:
        """Whether it is so."""
        return bool(self._was)

    def __enter__(self) -> Urgent:
        if not hasattr(os, "sched_setscheduler") or len(os.sched_getaffinity(0)) < 2:  # others need a processor, too
            return self
        self._raise(0, self._level)
        if self._friends and self.granted:
            for thread in threading.enumerate():
                if thread.name.startswith("sharnir") and thread is not threading.current_thread() and thread.native_id:
                    self._raise(thread.native_id, 1)
        return self

    def _raise(self, thread: int, level: int) -> None:
        with contextlib.suppress(OSError):  # not allowed, or gone
            was = thread, os.sched_getscheduler(thread), os.sched_getparam(thread)
            os.sched_setscheduler(thread, os.SCHED_FIFO, os.sched_param(level))
            self._was.append(was)

    def __exit__(self, *_: object) -> None:
        while self._was:
            with contextlib.suppress(OSError):
                os.sched_setscheduler(*self._was.pop())


class RealTime(Checked):
    """A simulation that keeps pace with the wall clock.

    Args:
        sim: belongs to the loop while that runs; change it through `post` alone.
        rate: ticks a second at speed 1, Hz: a whole number of steps is made in each (rate = 1/(n dt)); one if None.
        speed: simulated seconds per second.
        control: called with the simulation before each step.
        overrun: what is done about ticks that are behind. "catch-up" makes them as fast as it can, and skips what is more than
            `catch_up` behind; "skip" leaves out whole ticks, so that deadlines stay on their grid; "slow" moves all later
            deadlines.
        catch_up: s of the wall clock.
        budget: share of a tick that its steps may take, above 0: the solver stops iterating in time and says so
            (`statistics.cut`); None: it takes the time it needs.
        frames: how often a second a frame is taken for `latest`, Hz.
        world: which world frames show.
        urgent: True: the loop's thread comes before all ordinary ones of the machine, where the system allows it (Linux, with
            the right to real-time scheduling; more than one processor): `statistics.urgent`. A machine that is busy with other
            things then keeps its deadlines; what runs here must not be endless.
    """

    def __init__(
        self,
        sim: Simulation,
        rate: float | None = None,
        *,
        speed: float = 1.0,
        control: Callable[[Simulation], None] | None = None,
        overrun: Literal["catch-up", "skip", "slow"] = "catch-up",
        catch_up: float = 0.1,
        budget: float | None = 0.8,
        frames: float = 60.0,
        world: int = 0,
        urgent: bool = False,
    ) -> None:
        if not isinstance(sim, Simulation):
            raise SimulationError(f"RealTime: takes a Simulation, got {sim!r}")
        self.sim, self.control = sim, control
        self._per_tick = self._steps_a_tick(sim, rate)
        if overrun not in OVERRUN:
            raise SimulationError(f"RealTime: overrun is one of {', '.join(map(repr, OVERRUN))}, got {overrun!r}")
        for name, value in (("catch_up", catch_up), ("frames", frames), ("budget", 1.0 if budget is None else budget)):
            if not is_positive(value):
                raise SimulationError(f"RealTime: {name} is a positive finite number, got {value!r}")
        self.overrun, self.catch_up, self.budget, self.urgent = overrun, float(catch_up), budget, bool(urgent)
        self._frame_period = 1 / float(frames)
        self.speed = speed
        self.error: SimulationError | SceneError | None = None
        """What stopped time: a step that could not be made. `resume` clears it."""
        self.camera = Camera(sim, world)
        self.statistics = Statistics(Times(), Times(), Times())
        self._posted: deque[tuple[float, Callable[[Any], Any], Future[Any]]] = deque()
        self._boards: list[Any] = []
        self._channels: dict[str, Any] = {}  # what fills the channels of a frame (`sharnir.trainer.channels`)
        self._stop, self._paused, self._running = threading.Event(), False, False
        self._thread: threading.Thread | None = None
        self._due_anew = True  # whether the schedule begins with the next tick
        self._frame_due = self._tidied = 0.0
        self._tidy_cost = 2e-4
        self._latest = self.camera.take()

    @staticmethod
    def _steps_a_tick(sim: Simulation, rate: float | None) -> int:
        if rate is None:
            return 1
        n = 1 / (rate * sim.dt) if is_positive(rate) else 0.0
        if round(n) < 1 or abs(n - round(n)) > 1e-6 * n:
            steps = f"{1 / sim.dt:g} Hz (dt = {sim.dt:g} s) divided by a whole number"
            raise SimulationError(f"RealTime: rate is {steps}, got {rate!r}")
        return round(n)

    # ---- what one can do, from any thread ----

    @property
    def rate(self) -> float:
        """Ticks a second at speed 1, Hz."""
        return 1 / (self._per_tick * self.sim.dt)

    @property
    def speed(self) -> float:
        """Simulated seconds per second; settable while it runs."""
        return self._speed

    @speed.setter
    def speed(self, value: float) -> None:
        if not is_positive(value):
            raise SimulationError(f"RealTime: speed is a positive finite number, got {value!r}")
        self._speed = float(value)

    @property
    def layout(self) -> Layout:
        """Names of what frames hold."""
        return self.camera.layout

    @property
    def running(self) -> bool:
        """Whether the loop runs; time may be paused."""
        return self._running

    @property
    def paused(self) -> bool:
        """Whether time stands while the loop runs."""
        return self._paused

    def pause(self) -> None:
        """Let time stand; what is posted still acts."""
        self._paused = True

    def resume(self) -> None:
        """Let time go on from where it stands."""
        self.error = None
        self._due_anew, self._paused = True, False

    def post(self, what: Callable[[Simulation], T]) -> Future[T]:
        """Have `what(sim)` done before the next step; the future holds what it returned or raised. Never waits."""
        done: Future[T] = Future()
        self._posted.append((time.perf_counter(), what, done))
        return done

    def latest(self) -> Frame:
        """The newest frame: a copy that nobody changes. Never waits."""
        return self._latest

    def add_board(self, board: Any) -> None:
        """Hand every frame to `board.show(frame)`, which must not wait (`sharnir.trainer.shared_frames`)."""
        self._boards.append(board)

    def add_channel(self, name: str, channel: Any) -> None:
        """Have frames carry the values of a channel (`sharnir.trainer.channels`); before the loop is started."""
        if self._running or not isinstance(name, str) or name in self._channels:
            raise SimulationError(f"RealTime: a channel is added before the loop runs, by a name of its own, got {name!r}")
        self._channels[name] = channel
        layout = self.camera.layout
        named = tuple((key, tuple(each.values)) for key, each in self._channels.items())
        self.camera.layout = Layout(layout.bodies, layout.ropes, named)
        self._show(0.0)

    def start(self) -> RealTime:
        """Run in a thread until `stop`."""
        if self._running or self._thread is not None:
            raise SimulationError("RealTime: it runs already")
        self._stop.clear()
        self._thread = threading.Thread(target=self._alone, name="sharnir real time", daemon=True)
        self._thread.start()
        return self

    def stop(self) -> None:
        """End the loop, and wait for its last step; it may be started again."""
        self._stop.set()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()
            self._thread = None

    def __enter__(self) -> RealTime:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def run(self, duration: float | None = None) -> Statistics:
        """Run here, for so many s of simulated time or until `stop` or Ctrl-C; raises what a step raises."""
        if duration is not None and not is_positive(duration):
            raise SimulationError(f"RealTime.run(duration): a positive finite time in s, got {duration!r}")
        if self._running or self._thread is not None:
            raise SimulationError("RealTime: it runs already")
        self._stop.clear()
        ticks = None if duration is None else max(1, round(duration / (self._per_tick * self.sim.dt)))
        self._loop(ticks, alone=False)
        return self.statistics

    # ---- the loop ----

    def _alone(self) -> None:
        self._loop(None, alone=True)

    def _loop(self, ticks: int | None, alone: bool) -> None:
        clock, s = time.perf_counter, self.statistics = time.perf_counter, Statistics(Times(), Times(), Times())
        self._running, self._due_anew = True, True
        due = clock()
        keeps = self._per_tick * self.sim.dt / self._speed <= KEEPS
        try:
            with Quiet(keeps), Urgent(2, friends=True) if self.urgent else contextlib.nullcontext() as urgent:
                s.urgent = urgent is not None and urgent.granted
                while not self._stop.is_set() and (ticks is None or s.ticks < ticks):
                    if self._paused:
                        self._stand()
                        continue
                    if self._due_anew:
                        self._due_anew, due = False, clock()
                    self._wait(due)
                    started = clock()
                    s.late.add(max(0.0, started - due))
                    s.drift = started - due + s.skipped
                    period = self._per_tick * self.sim.dt / self._speed
                    try:
                        self._tick(started, period)
                    except (SimulationError, SceneError) as error:
                        self.error, self._paused = error, True
                        self._show(clock())
                        if not alone:
                            raise
                        continue
                    ended = clock()
                    s.work.add(ended - started)
                    due += period
                    if ended > due:
                        s.misses += 1
                        due = self._behind(due, ended, period)
                    else:
                        self._tidy(due, ended)
        finally:
            self._running = False
            self._show(clock())
            while self._posted:
                self._posted.popleft()[2].cancel()

    def _tick(self, started: float, period: float) -> None:
        """What was posted, and the steps of one tick; then a frame, if one is due."""
        s, sim = self.statistics, self.sim
        waiting = self._do_posted() if self._posted else ()
        budget = None if self.budget is None else self.budget * period / self._per_tick
        for _ in range(self._per_tick):
            if self.control is not None:
                self.control(sim)
            report = sim.step() if budget is None else sim.step(budget=budget)
            s.steps += 1
            if report.deadline_missed:
                s.cut += 1
        s.ticks += 1
        for posted in waiting:
            s.command.add(time.perf_counter() - posted)
        if started >= self._frame_due:
            self._show(started)

    def _do_posted(self) -> list[float]:
        """Do what was posted so far; when each was."""
        times = []
        for _ in range(len(self._posted)):
            posted, what, done = self._posted.popleft()
            if not done.set_running_or_notify_cancel():
                continue
            try:
                done.set_result(what(self.sim))
            except Exception as error:  # is the business of who posted it
                done.set_exception(error)
            times.append(posted)
        return times

    def _stand(self) -> None:
        """Time stands: do what is posted, show it, and sleep a little."""
        if self._do_posted():
            self._frame_due = 0.0
        now = time.perf_counter()
        if now >= self._frame_due:
            self._show(now)
        self._stop.wait(PAUSED)

    def _show(self, now: float) -> None:
        """Take a frame; the next is due a frame's time after this one was."""
        self._frame_due = max(self._frame_due + self._frame_period, now)
        senses = [float(x) for channel in self._channels.values() for x in channel.read()]
        frame = self._latest = self.camera.take(self.statistics.steps, self._paused, np.array(senses))
        for board in self._boards:
            board.show(frame)

    def _wait(self, due: float) -> None:
        """Until a deadline: asleep at first, then watching the clock."""
        clock = time.perf_counter
        left = due - clock()
        if left > SPIN:
            sys.setswitchinterval(SWITCH_INTERVAL)
            time.sleep(left - SPIN)
            sys.setswitchinterval(PATIENT)
        while clock() < due:
            pass

    def _behind(self, due: float, now: float, period: float) -> float:
        """The next deadline, where it has passed already."""
        s, behind = self.statistics, now - due
        if self.overrun == "skip":
            lost = (int(behind / period) + 1) * period
        elif self.overrun == "slow":
            lost = behind
        else:
            lost = max(0.0, behind - self.catch_up)
        s.skipped += lost
        return due + lost

    def _tidy(self, due: float, now: float) -> None:
        """Collect the garbage of late, now and then, where the next deadline is far enough away."""
        if now - self._tidied < TIDY or due - now < 2 * self._tidy_cost + SPIN:
            return
        gc.collect(1)
        self._tidied = time.perf_counter()
        self._tidy_cost = max(0.9 * self._tidy_cost, self._tidied - now)
        self.statistics.collected += 1
