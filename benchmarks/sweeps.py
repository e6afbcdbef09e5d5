"""Door runs by one process, by two, and by two Ray workers: `python -m benchmarks.sweeps [RUNS]`.

What starting costs (a worker imports and loads kernels for seconds) is told apart: rates are those between the first chunk of
each that comes back and the last.
"""

from __future__ import annotations

import os
import resource
import sys
import time

import sharnir as sh

DURATION, DT, CHUNK = 0.3, 0.01, 1024


def door() -> sh.Scene:
    """Of 20 kg, with dry friction."""
    scene = sh.Scene()
    scene.add_body("door", sh.Box(0.9, 0.04, 2.0), mass=20.0, position=(0.45, 0, 1))
    scene.add_joint("hinge", sh.Revolute("z", limit=(0, 2.0), friction=5.0), scene.world, "door", position=(0, 0, 1))
    return scene


def timed(runs: int, **given: object) -> tuple[sh.StudyResult, float, float]:
    """The table, runs a second while all workers are busy, and seconds in all."""
    came: list[tuple[float, int]] = []
    vary = {"joint/hinge.friction": (2.0, 10.0), "body/door.mass": (10.0, 40.0), "joint/hinge.qd": [1.5]}
    start = time.perf_counter()
    found = sh.run_study(
        door(), vary, "joint/hinge.q", sampling="sobol", runs=runs, duration=DURATION, dt=DT, chunk=CHUNK,
        progress=lambda done, total: came.append((time.perf_counter(), done)), **given,  # type: ignore[arg-type]
    )  # fmt: skip
    workers = int(given["workers"])  # type: ignore[call-overload]
    first, last = came[workers - 1], came[-workers]
    return found, (last[1] - first[1]) / (last[0] - first[0]), time.perf_counter() - start


def main(runs: int) -> None:
    """Print the rates and their ratios."""
    say = sys.stdout.write
    say(f"{runs} door runs of {DURATION:g} s at {DT:g} s, chunks of {CHUNK}; load of the machine {os.getloadavg()[0]:.1f}\n")
    before = time.process_time()
    one, rate, took = timed(runs, workers=1)
    say(f"one process:     {rate:7.0f} runs/s, {took:.1f} s in all, {time.process_time() - before:.1f} s of CPU\n")
    before = time.process_time()
    two, both, took = timed(runs, workers=2)
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    theirs = children.ru_utime + children.ru_stime
    say(f"                 CPU: driver {time.process_time() - before:.1f} s, workers {theirs:.1f} s\n")
    say(f"two processes:   {both:7.0f} runs/s, {took:.1f} s in all: {both / rate:.2f} × one; same bits: {_same(one, two)}\n")
    try:
        import ray  # noqa: F401
    except ImportError:
        say("two Ray workers: left out, ray is not installed: pip install ray\n")
    else:
        far, third, took = timed(runs, workers=2, executor="ray")
        say(f"two Ray workers: {third:7.0f} runs/s, {took:.1f} s in all: {third / both:.2f} × local; same: {_same(one, far)}\n")
    say(f"largest memory of the driver: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB\n")


def _same(a: sh.StudyResult, b: sh.StudyResult) -> bool:
    return all(a[name].tobytes() == b[name].tobytes() for name in a.names if name != "failed")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
