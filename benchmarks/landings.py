"""Mechanisms made at random that land, tip over and collide, with default settings: what goes wrong by family, and what it costs.

Scenes are those of `benchmarks.landing_scenes`: steps of 0.5 to 10 ms, restitution 0 to 1; a scene depends on its family and its
seed alone. Counted are scenes that stop; scenes whose energy exceeds that of the start by more than 1e-6 of the scene's energy
(kinetic, and of height above the ground); scenes with an overlap above 2 % of the smallest half extent of a body; steps not
converged; scenes in which a step warns. Times are those of awake steps with contact, CPU time of a thread: 99th percentile
relative to the scene's median, and the median of these medians. Substeps: in the mean, and the most in one step.

Run: python -m benchmarks.landings [--scenes 2000] [--family NAME ...] [--jobs 2] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

import sharnir as sh
from benchmarks.landing_scenes import FAMILIES, Landing, Watch, make

USUAL = ("chain", "loop", "ragdoll", "vehicle", "heap", "floating")
"""Families without ropes."""
GAIN, OVERLAP = 1e-6, 0.02
"""Bounds: energy above the start, of the scene's energy; overlap, of the smallest half extent of a body."""


@dataclass
class Outcome:
    """How a scene went."""

    family: str
    seed: int
    dt: float
    steps: int = 0
    not_converged: int = 0
    gain: float = 0.0
    """Largest energy above the start, of the scene's energy."""
    overlap: float = 0.0
    """Largest overlap, of the smallest half extent of a body."""
    gap: float = 0.0
    """Largest error of a joint, rad or of the smallest half extent."""
    momentum: float = 0.0
    """Largest change of momenta where nothing external acts, relative."""
    substeps: int = 0
    most_substeps: int = 0
    warned: list[str] = field(default_factory=list)
    stopped: str = ""
    times: list[float] = field(default_factory=list)
    """Of awake steps with contact, relative to their median."""
    median: float = 0.0
    """Of these, s."""


def overlap_of(case: Landing, sim: sh.Simulation) -> tuple[float, int]:
    """Largest overlap, of the smallest half extent of a body, and how many points press."""
    worst, points = case.depth(sim), sim.contacts()
    for a, b, gap in zip(points.body_a, points.body_b, points.gap, strict=True):
        if gap < 0:
            worst = max(worst, -gap / min(case.least(name) for name in (a, b) if name in case.corners))
    return float(worst), int(np.any(points.force, axis=1).sum())


def play(family: str, seed: int) -> Outcome:
    """Run a scene with default settings."""
    case = make(family, seed)
    out = Outcome(family, seed, case.dt)
    times: list[float] = []
    with warnings.catch_warnings(record=True) as got:
        warnings.simplefilter("always")
        sim = sh.Simulation(case.scene, case.dt)
        got.clear()  # of what is wrong with the scene itself
        watch = Watch(case, sim)
        try:
            for k in range(int(case.duration / case.dt)):
                if case.command:
                    case.command(sim, k * case.dt)
                started = time.thread_time()
                report = sim.step()
                took = time.thread_time() - started
                watch.after_step(report)
                overlap, points = overlap_of(case, sim)
                out.overlap = max(out.overlap, overlap)
                out.steps, out.not_converged = out.steps + 1, out.not_converged + (not report.converged)
                out.substeps, out.most_substeps = out.substeps + report.substeps, max(out.most_substeps, report.substeps)
                if k > 0 and points and not all(sim.body(name).asleep for name in case.corners):
                    times.append(took)
        except sh.SimulationError as error:
            out.stopped = f"{sim.time:.4f} s: {str(error).splitlines()[0]}"
    out.warned = sorted({f"{type(w.message).__name__}: {str(w.message).splitlines()[0]}" for w in got})
    out.gain, out.gap = (float(watch.largest.get(kind, 0.0)) for kind in ("energy", "gap"))
    out.momentum = float(watch.largest.get("momentum", 0.0))
    if times:
        out.median = float(np.median(times))
        out.times = (np.array(times) / out.median).tolist()
    return out


def quiet() -> None:
    """Have a worker say nothing while kernels compile."""
    sys.stderr = open(os.devnull, "w")  # noqa: SIM115


def outcomes(scenes: Sequence[tuple[str, int]], jobs: int) -> Iterator[Outcome]:
    """Of all scenes, as they come."""
    if jobs == 1:
        yield from (play(*scene) for scene in scenes)
        return
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), initializer=quiet) as pool:
        for job in as_completed([pool.submit(play, *scene) for scene in scenes]):
            yield job.result()


def show(done: int, total: int, started: float) -> None:
    """The progress bar, on stderr: rewritten in place on a terminal, else a line at every tenth."""
    live, took = sys.stderr.isatty(), time.monotonic() - started
    if not live and done * 10 // total == (done - 1) * 10 // total:
        return
    left = f"{took:.0f} s in all" if done == total else f"{took / done * (total - done):.0f} s left"
    bar = f"[{'#' * (30 * done // total):<30}] {done}/{total} scenes, {left:<16}"
    sys.stderr.write(f"\r{bar}" + ("\n" if done == total else "") if live else f"{bar}\n")
    sys.stderr.flush()


HEAD = ("family", "scenes", "stop", "energy", "overlap", "not conv.", "warn", "p99/med.", "median", "substeps", "most")


def line(name: str, found: Sequence[Outcome]) -> tuple[str, ...]:
    """The cells of a family."""
    steps = max(1, sum(o.steps for o in found))
    times = [t for o in found for t in o.times]
    return (
        name,
        str(len(found)),
        str(sum(bool(o.stopped) for o in found)),
        str(sum(not o.gain <= GAIN for o in found)),
        str(sum(not o.overlap <= OVERLAP for o in found)),
        f"{100 * sum(o.not_converged for o in found) / steps:.2f} %",
        f"{100 * sum(bool(o.warned) for o in found) / len(found):.1f} %",
        f"{np.percentile(times, 99):.1f}" if times else "–",
        f"{1e6 * np.median([o.median for o in found if o.times]):.0f} µs" if times else "–",
        f"{sum(o.substeps for o in found) / steps:.2f}",
        str(max(o.most_substeps for o in found)),
    )


def table(found: Sequence[Outcome]) -> str:
    """Families, one a line, and all of them."""
    families = sorted({o.family for o in found}, key=list(FAMILIES).index)
    rows = [HEAD, *(line(family, [o for o in found if o.family == family]) for family in families)]
    if len(families) > 1:
        rows.append(line("all", found))
    widths = [max(len(row[i]) for row in rows) for i in range(len(HEAD))]
    return "\n".join(
        "  ".join([r[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(r[1:], widths[1:], strict=True))]) for r in rows
    )


def worst(found: Sequence[Outcome], most: int = 8) -> Iterator[str]:
    """The worst seeds by what is wrong with them."""

    def name(o: Outcome) -> str:
        return f"{o.family} {o.seed} ({1e3 * o.dt:.1f} ms)"

    for o in [o for o in found if o.stopped][: 2 * most]:
        yield f"stops: {name(o)} at {o.stopped}"
    bounds = {"gain": GAIN, "overlap": OVERLAP, "gap": 1e-3, "momentum": 1e-9, "not_converged": 0}
    for what, bound in bounds.items():
        over = sorted((o for o in found if not getattr(o, what) <= bound), key=lambda o: -getattr(o, what))
        if over:
            yield f"{what} ({len(over)} scenes above {bound:g}): " + ", ".join(
                f"{name(o)} {getattr(o, what):.2g}" for o in over[:most]
            )
    slow = sorted((o for o in found if o.times), key=lambda o: -float(np.percentile(o.times, 99)))[:most]
    yield "p99/median: " + ", ".join(f"{name(o)} {np.percentile(o.times, 99):.1f}" for o in slow)
    words: dict[str, list[Outcome]] = {}
    for o in found:
        for text in o.warned:
            words.setdefault(text.split(";")[0].split("(")[0].strip(), []).append(o)
    for text, those in sorted(words.items(), key=lambda item: -len(item[1]))[:most]:
        yield f"warns ({len(those)} scenes, such as {name(those[0])}): {text}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a table and the worst seeds; 0 if no scene stopped."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.landings", description="Random mechanisms that land and collide.")
    parser.add_argument("--scenes", type=int, default=2000, help="of all families together (2000)")
    parser.add_argument(
        "--family", nargs="+", choices=list(FAMILIES), default=list(USUAL), help="all but those with ropes if left out"
    )
    parser.add_argument("--first", type=int, default=0, help="seed at which each family begins (0)")
    parser.add_argument("--jobs", type=int, default=1, help="scenes at a time (1)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write how each scene went to a file as well")
    options = parser.parse_args(arguments)
    each = -(-options.scenes // len(options.family))
    scenes = [(family, seed) for seed in range(options.first, options.first + each) for family in options.family]
    scenes = scenes[: options.scenes]
    found: list[Outcome] = []
    started = time.monotonic()
    for outcome in outcomes(scenes, options.jobs):
        found.append(outcome)
        show(len(found), len(scenes), started)
    found.sort(key=lambda o: (o.family, o.seed))
    print(table(found))
    for text in worst(found):
        print(text)
    if options.json:
        rows: list[dict[str, Any]] = [{k: v for k, v in asdict(o).items() if k != "times"} for o in found]
        options.json.write_text(json.dumps(rows, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return int(any(o.stopped for o in found))


if __name__ == "__main__":
    sys.exit(main())
