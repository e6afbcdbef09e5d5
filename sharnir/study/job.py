"""What a worker does: a simulation of as many worlds as a chunk has runs, set, run and measured, chunk by chunk."""

from __future__ import annotations

import gc
import inspect
import pickle
import re
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sharnir.errors import SceneError, SimulationError
from sharnir.runtime import log
from sharnir.study.words import Parameter, is_free

if TYPE_CHECKING:
    from sharnir.runtime.simulation import Simulation

REDUCED_WORD = re.compile(r"(max|min|mean|rms)\((.+)\)")
Columns = dict[str, np.ndarray]


@dataclass(frozen=True)
class Job:
    """What is done in every chunk; it travels to the workers.

    Attributes:
        source: a Scene, a function make(worlds) that returns a Simulation, or (without `measure`) one that does it all.
        words: what varies. measure: words and functions. duration: s, that is run before functions measure, or None.
        dt, options: of the Simulation of a scene. every: steps between the values that max(…) and the like see.
        worlds: runs in a chunk.
    """

    source: Any
    words: tuple[str, ...]
    measure: tuple[Any, ...]
    duration: float | None
    dt: float | None
    options: dict[str, Any]
    every: int
    worlds: int


@dataclass(frozen=True)
class Part:
    """One chunk: its number, its first run, and of each run the seed and the values."""

    number: int
    first: int
    seeds: np.ndarray
    values: Columns

    def __len__(self) -> int:
        return len(self.seeds)

    def rows(self, results: Columns, reasons: Sequence[str]) -> dict[str, Any]:
        """The chunk as a table; numbers of a run that failed are NaN."""
        bad = np.array([reason != "" for reason in reasons])
        runs = np.arange(self.first, self.first + len(self))
        measured = {name: np.where(bad, np.nan, column) for name, column in results.items()}
        return {"run": runs, "seed": self.seeds} | self.values | measured | {"failed": list(reasons)}


class Watch(log.Observer):
    """Follows a word while steps are made: the largest, smallest, mean or effective value of each world."""

    def __init__(self, sim: Simulation, every: int, kind: str, word: str) -> None:
        self._sim, self.kind, self._every = sim, kind, every
        self.sources = log.sources(sim, word)
        self._left, self.count, self.sums = every, 0, dict[str, np.ndarray]()

    def take(self) -> None:
        """Take the values of now."""
        self.count += 1
        for name, source in self.sources.items():
            value = np.array(source(), float)
            value = value * value if self.kind == "rms" else value
            if name not in self.sums:
                self.sums[name] = value
            elif self.kind in ("max", "min"):
                self.sums[name] = (np.maximum if self.kind == "max" else np.minimum)(self.sums[name], value)
            else:
                self.sums[name] = self.sums[name] + value

    def results(self) -> dict[str, np.ndarray]:
        """By name, (worlds, …)."""
        n = self.count if self.kind in ("mean", "rms") else 1
        return {f"{self.kind}({name})": np.sqrt(v / n) if self.kind == "rms" else v / n for name, v in self.sums.items()}


class Runner:
    """Does a job, chunk after chunk. Each has a simulation of its own, so that nothing of one is left in the next."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.free = [word for word in job.words if is_free(word)]

    def rows(self, part: Part) -> dict[str, Any]:
        """Run a chunk; runs that are refused, or that raise, are found by dividing it, and say so in their rows."""
        all_of = np.arange(len(part))
        try:
            return part.rows(*self._batch(part, all_of))
        except Refused:
            reasons = self._refused(part)
        except (SceneError, SimulationError) as error:
            some = {0, len(part) // 2, len(part) - 1}
            if not self.job.measure or (len(some) == 3 and all(self._raises(part, k) for k in some)):
                raise SimulationError(
                    f"run_study: runs {part.first} to {part.first + len(part) - 1} all fail: {error}"
                ) from error
            reasons = [""] * len(part)
        results: Columns = {}
        todo = [np.array([k for k in all_of if not reasons[k]], int)]
        while todo:
            who = todo.pop()
            if not len(who):
                continue
            try:
                found, why = self._batch(part, who)
            except (SceneError, SimulationError) as error:
                if len(who) == 1:
                    reasons[who[0]] = str(error)
                else:
                    todo += np.array_split(who, 2)
                continue
            for name, column in found.items():
                results.setdefault(name, np.full(len(part), np.nan))[who] = column
            for k, reason in zip(who, why, strict=True):
                reasons[k] = reason
        return part.rows(results, reasons)

    def _raises(self, part: Part, run: int) -> bool:
        try:
            self._batch(part, np.array([run]))
        except (SceneError, SimulationError):
            return True
        return False

    def _refused(self, part: Part) -> list[str]:
        """Of each run, why its values are refused, or ""."""
        sim, reasons = made(self.job, 2), []
        for k in range(len(part)):
            try:
                self._put(sim, part, np.array([k, k]))
                reasons.append("")
            except Refused as error:
                reasons.append(re.sub(r"array\(\[\s*([^\],]+)[^)]*\)", r"\1", str(error)))
        return reasons

    def _put(self, sim: Simulation, part: Part, runs: np.ndarray) -> None:
        """Give the worlds the values of some runs."""
        for word in self.job.words:
            if word in self.free:
                continue
            try:
                Parameter(word).put(sim, part.values[word][runs])
            except (SceneError, SimulationError) as error:
                raise Refused(str(error)) from None

    def _batch(self, part: Part, who: np.ndarray) -> tuple[Columns, list[str]]:
        """Some runs of a chunk at once; the last fills the worlds that are left over. Returns results and reasons of failure."""
        job, n = self.job, len(who)
        if not job.measure:
            columns = {word: part.values[word][who] for word in job.words}
            return self._numbers(job.source, self._call(job.source, part, (), columns, part.seeds[who]), n, n), [""] * n
        sim = made(job, job.worlds)
        fill = np.concatenate([who, np.full(sim.worlds - n, who[-1])])
        self._put(sim, part, fill)
        watches = [Watch(sim, job.every, *m.groups()) for m in map(REDUCED_WORD.fullmatch, self._words()) if m is not None]
        for watch in watches:
            watch.take()
            watch.attach()
        if job.duration is not None:
            sim.run(job.duration)
        found: dict[int, Columns] = {}
        free = {word: part.values[word][fill] for word in self.free}
        for i in sorted(range(len(job.measure)), key=lambda k: isinstance(job.measure[k], str)):  # a function may make the run
            measure = job.measure[i]
            if callable(measure):
                given = self._call(measure, part, (sim,), free, part.seeds[fill])
            elif REDUCED_WORD.fullmatch(measure):
                given = watches.pop(0).results()
            else:
                given = {name: source() for name, source in log.sources(sim, measure).items()}
            found[i] = self._numbers(measure, given, sim.worlds, n)
        results = {name: column for i in sorted(found) for name, column in found[i].items()}
        stopped = sim.failed[:n]
        times = sim.state.time.numpy()[:n] if stopped.any() else np.zeros(n)
        return results, [
            f"stopped at {t:g} s: its state would have diverged" if f else "" for f, t in zip(stopped, times, strict=True)
        ]

    def _words(self) -> list[str]:
        return [measure for measure in self.job.measure if isinstance(measure, str)]

    def _call(self, function: Callable[..., Any], part: Part, given: Any, columns: Columns, seeds: np.ndarray) -> Any:
        """Call a user's function with the columns it knows by name; what it raises is told with its line."""
        known = inspect.signature(function).parameters
        every = any(p.kind is p.VAR_KEYWORD for p in known.values())
        words = {w: c for w, c in columns.items() if w in known or every}
        if "seed" in known:
            words["seed"] = seeds
        try:
            return function(*given, **words)
        except (SceneError, SimulationError):
            raise
        except Exception as error:
            last = traceback.extract_tb(error.__traceback__)[-1]
            raise Broken(
                f"run_study: {called(function)!r} raised {type(error).__name__}: {error} ({last.filename}, line {last.lineno}) "
                f"in runs {part.first} to {part.first + len(part) - 1}"
            ) from error

    def _numbers(self, who: Any, given: Any, worlds: int, n: int) -> Columns:
        """What a measure gave, as columns (n,); more numbers a world get columns of their own."""
        if not isinstance(given, dict):
            given = {called(who): given}
        out: Columns = {}
        for name, value in given.items():
            try:
                array = np.asarray(value, float)
            except (TypeError, ValueError):
                array = np.empty(0)
            if array.ndim == 0 or len(array) != worlds:
                got = array.shape if array.size else repr(value)
                raise Broken(f"run_study: {called(who)!r} gives one number a world ({worlds},), got {got} for {name!r}")
            flat = array.reshape(worlds, -1)[:n]
            for k in range(flat.shape[1]):
                at = "" if array.ndim == 1 else str([int(i) for i in np.unravel_index(k, array.shape[1:])]).replace(" ", "")
                out[f"{name}{at}"] = flat[:, k].copy()
        return out


class Refused(SimulationError):
    """Values that a simulation does not take."""


class Broken(Exception):
    """A user's function raised, or gave no numbers: the study ends, and says so."""


def called(function: Any) -> str:
    """The name of a measure."""
    return function if isinstance(function, str) else getattr(function, "__name__", type(function).__name__)


def made(job: Job, worlds: int) -> Simulation:
    """The simulation of a job, with so many worlds."""
    from sharnir.runtime.simulation import Simulation
    from sharnir.scene.scene import Scene

    gc.collect()  # the simulation of the last chunk is in a circle of references: its arrays are many, its objects few
    if isinstance(job.source, Scene):
        if job.dt is None:
            raise SimulationError("run_study: a Scene needs dt=, the step in s")
        return Simulation(job.source, job.dt, worlds=worlds, **job.options)
    sim = job.source(worlds)
    if not isinstance(sim, Simulation) or sim.worlds != worlds:
        got = f"{sim.worlds} worlds" if isinstance(sim, Simulation) else repr(sim)
        raise SimulationError(
            f"run_study: {called(job.source)!r} returns a Simulation of so many worlds as it is told ({worlds}), got {got}"
        )
    return sim


_served: dict[bytes, Runner] = {}  # of this worker, by job


def answer(data: bytes, part: Part) -> tuple[bool, Any]:
    """In a worker: the rows of a chunk, or what was wrong."""
    try:
        if data not in _served:
            _served.clear()
            _served[data] = Runner(pickle.loads(data))
        return True, _served[data].rows(part)
    except (SceneError, SimulationError, Broken) as error:
        return False, (type(error).__name__, str(error))
    except Exception as error:
        return False, ("Exception", f"run_study: {type(error).__name__} in a worker: {error}")
