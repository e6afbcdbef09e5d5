"""An exercise: what is to be reached and held, what must not happen, what goes wrong on the way, and how it is scored.

session = Session(EXERCISES["set_down"])
protocol = session.run(session.exercise.driver)   # a function of the simulation that commands its inputs
print(protocol.passed, protocol.score)
protocol.html("out/set_down.html")
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sharnir.errors import SceneError, SimulationError, is_positive
from sharnir.runtime.log import sources
from sharnir.trainer.failures import fail

# The Simulation; an exercise uses it, and does not make it.
Owner = Any
Measure = str | Callable[[Any], float]
KEPT_EVERY = 0.05  # s between values that are kept


@dataclass(frozen=True)
class Within:
    """A condition: a value lies from low to high.

    Args:
        measure: a word as `sim.record` takes it, with an index where it is a vector ("body/load.position[2]", "joint/hinge.q",
            "rope/r.tension[0]"), or a function of the simulation. low, high: in its unit.
        about: what it is, and its unit.
    """

    measure: Measure
    low: float = -math.inf
    high: float = math.inf
    about: str = ""

    def __post_init__(self) -> None:
        if not (isinstance(self.measure, str) or callable(self.measure)):
            raise SceneError(f"Within: measure is a word or a function of the simulation, got {self.measure!r}")
        if not self.low <= self.high:
            raise SceneError(f"Within {self.name!r}: low is at most high, got {self.low!r}, {self.high!r}")

    @property
    def name(self) -> str:
        """What is measured."""
        return self.about or (self.measure if isinstance(self.measure, str) else self.measure.__name__)

    def read(self, sim: Owner) -> Callable[[], float]:
        """A function that gives the value now."""
        if not isinstance(self.measure, str):
            measure = self.measure
            return lambda: float(measure(sim))
        found = re.fullmatch(r"(.*?)(?:\[(\d+)\])?", self.measure)
        assert found is not None
        values = list(sources(sim, found[1]).values())
        if len(values) != 1:
            raise SimulationError(f"exercise: {self.measure!r} names {len(values)} values; one is measured")
        source, index = values[0], found[2]
        return lambda: float(np.asarray(source()) if index is None else np.ravel(source())[int(index)])


def touching(a: str, b: str) -> Callable[[Owner], float]:
    """A measure: 1 while two bodies touch, else 0."""

    def touch(sim: Owner) -> float:
        return float(np.any(sim.contact_force(a, b)))

    touch.__name__ = f"{a} touches {b}"
    return touch


@dataclass(frozen=True)
class Goal:
    """Reached when all its conditions hold at once for `hold` s without a break. points: of the score, in proportion."""

    title: str
    conditions: Sequence[Within]
    hold: float = 0.0
    points: float = 1.0


@dataclass(frozen=True)
class Fault:
    """What must not happen: each time that a condition stops holding costs `points`; a fatal one ends the exercise."""

    title: str
    conditions: Sequence[Within]
    points: float = 10.0
    fatal: bool = False


@dataclass(frozen=True)
class Failure:
    """Something that fails on the way: see `sharnir.trainer.failures`. time: s. size: of what a sensor is off by."""

    time: float
    kind: str
    name: str
    size: float | None = None


@dataclass(frozen=True)
class Exercise:
    """What an operator is to do.

    Args:
        name, about: one word, and what is asked for.
        make: makes the simulation, with controls. driver: an automatic operator, called with the simulation before each step.
        goals, faults, failures: see there. limit: s, in which it is to be done.
        follow: a body to look at.
    """

    name: str
    about: str
    make: Callable[[], Any]
    goals: Sequence[Goal]
    faults: Sequence[Fault] = ()
    failures: Sequence[Failure] = ()
    limit: float = 60.0
    driver: Callable[[Any], None] | None = None
    follow: str | None = None

    def __post_init__(self) -> None:
        who = f"exercise {self.name!r}"
        if not self.goals or not all(isinstance(g, Goal) and g.conditions for g in self.goals):
            raise SceneError(f"{who}: it has at least one Goal with a condition, got {self.goals!r}")
        if not is_positive(self.limit):
            raise SceneError(f"{who}: limit is a positive finite time in s, got {self.limit!r}")


@dataclass
class Protocol:
    """How it went: passed, score 0 … 100, time (s), which goals were reached when, which faults happened when, curves."""

    exercise: Exercise
    passed: bool = False
    score: float = 0.0
    time: float = 0.0
    reached: dict[str, float] = field(default_factory=dict)
    faults: list[tuple[float, str, float]] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    curves: dict[str, list[float]] = field(default_factory=dict)
    events: list[Any] = field(default_factory=list)
    ended: str = ""

    def html(self, path: Any) -> Any:
        """Write it as one page with plots; returns its path."""
        from sharnir.trainer.exercises.protocol import write

        return write(self, path)

    def words(self) -> str:
        """It in a few lines."""
        e = self.exercise
        verdict = "passed" if self.passed else "not passed"
        lines = [f"{e.name}: {verdict}, {self.score:.0f} of 100, {self.time:.1f} s ({self.ended})"]
        for goal in e.goals:
            lines.append(f"  {goal.title}: " + (f"at {self.reached[goal.title]:.1f} s" if goal.title in self.reached else "–"))
        lines += [f"  fault at {time:.1f} s: {title} (−{points:g})" for time, title, points in self.faults]
        return "\n".join(lines)


class Session:
    """An exercise that is under way: `look` before each step, by whoever steps the simulation, until `over`."""

    def __init__(self, exercise: Exercise, sim: Owner = None) -> None:
        self.exercise = exercise
        self.sim = exercise.make() if sim is None else sim
        self.over = False
        self.protocol = Protocol(exercise)
        parts: list[Any] = [*exercise.goals, *exercise.faults]
        self._read: dict[Within, Callable[[], float]] = {c: c.read(self.sim) for part in parts for c in part.conditions}
        self._since: dict[str, float] = {}
        self._bad: set[str] = set()
        self._left = list(exercise.failures)
        self._kept = -math.inf
        names = [*(c.name for c in self._read), *(f"input {name}" for name in self.sim.inputs)]
        self.protocol.curves = {name: [] for name in names}

    def look(self, _sim: Owner = None) -> None:
        """See how things are, inject what is due, and end it where it is to end."""
        if self.over:
            return
        p, now = self.protocol, float(self.sim.time)
        values = {c: read() for c, read in self._read.items()}
        if now - self._kept >= KEPT_EVERY - 1e-9:
            self._kept = now
            p.times.append(now)
            for name, value in {c.name: value for c, value in values.items()}.items():  # a goal and a fault may share a value
                p.curves[name].append(value)
            for name, value in self.sim.inputs.items():
                p.curves[f"input {name}"].append(float(np.ravel(value)[0]))
        for failure in [f for f in self._left if f.time <= now]:
            self._left.remove(failure)
            fail(self.sim, failure.kind, failure.name, by="exercise", size=failure.size)
        fatal = self._faults(values, now)
        for goal in self.exercise.goals:
            if not all(c.low <= values[c] <= c.high for c in goal.conditions):
                self._since.pop(goal.title, None)
            elif now - self._since.setdefault(goal.title, now) >= goal.hold - 1e-9:
                p.reached.setdefault(goal.title, now)
        done = len(p.reached) == len(self.exercise.goals)
        if done or fatal or now >= self.exercise.limit:
            self._end("all goals reached" if done else fatal or "the time was up")

    def _faults(self, values: dict[Within, float], now: float) -> str:
        fatal = ""
        for fault in self.exercise.faults:
            bad = not all(c.low <= values[c] <= c.high for c in fault.conditions)
            if bad and fault.title not in self._bad:
                self._bad.add(fault.title)
                self.protocol.faults.append((now, fault.title, fault.points))
                self.sim.inputs.note("fault", fault.title, fault.points, "exercise")
                fatal = fatal or (fault.title if fault.fatal else "")
            elif not bad:
                self._bad.discard(fault.title)
        return fatal

    def _end(self, why: str) -> None:
        p, e = self.protocol, self.exercise
        share = sum(g.points for g in e.goals if g.title in p.reached) / sum(g.points for g in e.goals)
        p.score = max(0.0, 100.0 * share - sum(points for _, _, points in p.faults))
        fatal = {f.title for f in e.faults if f.fatal}
        p.passed = share == 1.0 and p.score >= 50 and not any(title in fatal for _, title, _ in p.faults)
        p.time, p.ended, p.events = float(self.sim.time), why, list(self.sim.inputs.events)
        self.over = True

    def run(self, driver: Callable[[Any], None] | None = None) -> Protocol:
        """Do it without a screen, with an automatic operator (nobody if None)."""
        while True:
            self.look()
            if self.over:
                return self.protocol
            if driver is not None:
                driver(self.sim)
            self.sim.step()
