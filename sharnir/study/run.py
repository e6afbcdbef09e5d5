"""`run_study`: many runs of a scene, packed as worlds, over processes or a Ray cluster, into one table."""

from __future__ import annotations

import hashlib
import math
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

import sharnir
from sharnir.core.misspellings import by_name
from sharnir.errors import SimulationError, is_positive
from sharnir.runtime import log
from sharnir.runtime.parameters import _nominal
from sharnir.scene.scene import Scene
from sharnir.study import executors
from sharnir.study.design import design
from sharnir.study.job import REDUCED_WORD, Job, Part, Runner, called, made
from sharnir.study.result import StudyResult
from sharnir.study.store import Memory, Parquet
from sharnir.study.words import is_free, parameters

CHUNK_RUNS = 64, 1024  # runs in a chunk, at least and at most, where nobody says


@by_name
def run_study(
    scene: Scene | Callable[..., Any],
    vary: Mapping[str, Any],
    measure: str | Callable[..., Any] | Sequence[str | Callable[..., Any]] | None = None,
    *,
    runs: int | None = None,
    sampling: Literal["grid", "list", "random", "sobol", "latin"] = "grid",
    repeats: int = 1,
    seed: int = 0,
    duration: float | None = None,
    dt: float | None = None,
    every: int = 1,
    executor: Literal["local", "ray"] = "local",
    address: str | None = None,
    workers: int | None = None,
    chunk: int | None = None,
    out: str | Path | None = None,
    progress: bool | Callable[[int, int], None] = False,
    **options: Any,
) -> StudyResult:
    """Run a scene with many values of its parameters, and measure each run.

    Runs are packed as worlds of one model, a chunk at a time. Which runs make a chunk depends on the study alone, so that the
    numbers are the same to the bit whatever the executor and the number of workers.

    Args:
        scene: a Scene (with `dt` and `duration`), a function make(worlds) that returns a Simulation, or, without `measure`, a
            function that is called with columns (runs in a chunk,) of the varied names and returns a dict of such columns.
        vary: values by word: "joint/hinge.friction", "body/door.mass", "joint/a.drive.kp", "joint/a.limit[1]", "sim.gravity[2]",
            or a name of your own that functions take as a keyword. Values are a list, (low, high), (low, high, count), or a text
            such as "0.1:2:20" or "0.1:10:5:log".
        measure: words as in `sim.record`, read at the end, also max(…), min(…), mean(…), rms(…) over the run; functions of the
            simulation that return an array (worlds,) or a dict of them; or several of both. Without `duration` a function makes
            the run itself. A function that takes `seed` gets an integer a world.
        runs: number of runs, where they are drawn.
        sampling: "grid" (all combinations), "list" (side by side), "random", "sobol" or "latin" (hypercube; SciPy).
        repeats: times that each point is run, each with a seed of its own. seed: of all random numbers.
        duration, dt: s. every: steps between the values that max(…) and the like see.
        executor: "local" (processes of this machine) or "ray" (tasks; address of the cluster, None starts one here).
        workers: processes; all cores if None, 1 runs in this process. chunk: runs in a chunk (64 to 1024 if None).
        out: a Parquet file. Chunks are kept beside it until it is whole: a study that was killed goes on with those that miss.
        progress: show a bar with the time left, or a function that is called with (runs done, runs).
        options: of the Simulation of a Scene, such as solver or device.

    A run that cannot be made is a row whose column "failed" says why; other rows have "" there.
    """
    if executor not in executors.EXECUTORS:
        raise SimulationError(f"executor is one of {', '.join(map(repr, executors.EXECUTORS))}, got {executor!r}")
    for name, value, allowed in (
        ("workers", workers, True),
        ("chunk", chunk, True),
        ("repeats", repeats, False),
        ("every", every, False),
    ):
        if not (value is None and allowed) and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
            raise SimulationError(f"{name} is a whole number of at least 1, got {value!r}")
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise SimulationError(f"seed is a whole number of at least 0, got {seed!r}")
    if duration is not None and not is_positive(duration):
        raise SimulationError(f"duration is a positive finite time in s, got {duration!r}")
    columns = {word: np.repeat(column, repeats) for word, column in design(vary, sampling, runs, seed).items()}
    total = len(next(iter(columns.values())))
    size = chunk or min(CHUNK_RUNS[1], max(CHUNK_RUNS[0], math.ceil(total / 64)))
    job = _job(scene, tuple(columns), measure, duration, dt, every, size, options)
    identity = _checked(job) | {
        "runs": total, "chunk": size, "seed": int(seed), "repeats": repeats, "sampling": sampling, "vary": list(columns),
        "values": _digest(columns.values()),
    }  # fmt: skip
    seeds = np.random.SeedSequence(seed).generate_state(total, np.uint32).astype(np.int64)
    store = Memory() if out is None else Parquet(Path(out), identity)
    missing = store.missing(math.ceil(total / size))
    parts = [_part(k, size, columns, seeds) for k in missing]
    bar = _Bar(progress, total, total - sum(map(len, parts)))
    for part, rows in _done(job, parts, executor, workers, address):
        store.put(part.number, rows)
        bar.more(len(part))
    return StudyResult(list(columns), store.finish(), store.path)


def _done(job: Job, parts: list[Part], executor: str, workers: int | None, address: str | None) -> executors.Done:
    """Chunks as they come back."""
    if not parts:
        return iter(())
    if executor == "ray":
        return executors.on_ray(executors.packed(job, far=True), parts, workers, address)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    count = min(workers or cores, len(parts))
    if count == 1:
        return executors.here(lambda: Runner(job), iter(parts))
    return executors.local(executors.packed(job), parts, count)


def _part(number: int, size: int, columns: dict[str, np.ndarray], seeds: np.ndarray) -> Part:
    rows = slice(number * size, (number + 1) * size)
    return Part(number, number * size, seeds[rows], {word: column[rows] for word, column in columns.items()})


def _job(
    scene: Any, words: tuple[str, ...], measure: Any, duration: float | None, dt: float | None, every: int, size: int,
    options: dict[str, Any],
) -> Job:  # fmt: skip
    """What was asked for, put in order."""
    if not isinstance(scene, Scene) and not callable(scene):
        raise SimulationError(f"run_study: takes a Scene, or a function make(worlds) that returns a Simulation, got {scene!r}")
    measures = () if measure is None else (measure,) if isinstance(measure, str) or callable(measure) else tuple(measure)
    for one in measures:
        if not isinstance(one, str) and not callable(one):
            raise SimulationError(f"measure: a word such as 'joint/hinge.q' or 'max(joint/hinge.qd)', or a function; got {one!r}")
    functions = [one for one in measures if callable(one)]
    if not measures:
        if isinstance(scene, Scene):
            raise SimulationError("run_study: say what to measure of a scene: measure='joint/hinge.q', or a function")
        functions = [scene]
    elif not functions and duration is None:
        raise SimulationError("run_study: say for how long a run goes on, duration= in s; words are read at its end")
    free = [word for word in words if is_free(word)]
    if free and not functions:
        raise SimulationError(f"vary: {free[0]!r} is not a kind/name.value, and there is no function that could take it by name")
    if not isinstance(scene, Scene) and (options or dt is not None):
        given = ", ".join(["dt"] * (dt is not None) + list(options))
        raise SimulationError(f"run_study: {given} belongs to a Scene; {called(scene)!r} makes its own simulation")
    if isinstance(scene, Scene):
        options = {"threads": 1} | options  # worlds of a chunk by one thread: the cores are shared by chunks
    return Job(scene, words, measures, duration, dt, options, every, max(2, size))  # two worlds at least: arrays, never numbers


def _checked(job: Job) -> dict[str, Any]:
    """See, with two worlds and in this process, that all words are there; the kernels are compiled on the way.

    Returns what tells this job from another.
    """
    about: dict[str, Any] = {
        "sharnir": sharnir.__version__,
        "measure": [called(one) for one in job.measure] or [called(job.source)],
    }
    about |= {"duration": job.duration, "every": job.every}
    if not job.measure:
        return about | {"scene": called(job.source)}
    sim = made(job, 2)
    start = [
        *_nominal(sim).values(),
        *(np.asarray(v) for v in sim.snapshot().values() if isinstance(v, np.ndarray | float | int)),
    ]
    parameters(sim, [word for word in job.words if not is_free(word)])
    for one in job.measure:
        if isinstance(one, str):
            match = REDUCED_WORD.fullmatch(one)
            log.sources(sim, match[2] if match else one)
    names = [*sim.model.body_names, *sim.model.joint_names]
    sim.step()
    return about | {"scene": _digest(start, names), "dt": sim.dt, "solver": sim.solver_name}


def _digest(arrays: Any, names: Sequence[str] = ()) -> str:
    found = hashlib.sha256(repr(list(names)).encode())
    for array in arrays:
        found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()[:16]


class _Bar:
    """Shows how many runs are done and how long the others will take."""

    def __init__(self, progress: bool | Callable[[int, int], None], total: int, done: int) -> None:
        self.progress, self.total, self.done, self.before, self.start = progress, total, done, done, time.monotonic()
        if done:
            self.more(0)

    def more(self, runs: int) -> None:
        """So many runs came back."""
        self.done += runs
        if callable(self.progress):
            self.progress(self.done, self.total)
        elif self.progress:
            made, took = self.done - self.before, time.monotonic() - self.start
            left = f"{took / made * (self.total - self.done):.0f} s left" if made else "resumed"
            bar = "#" * (30 * self.done // self.total)
            end = f"{took:.0f} s in all\n" if self.done == self.total else left
            sys.stderr.write(f"\r[{bar:<30}] {self.done}/{self.total} runs, {end:<16}")
            sys.stderr.flush()
