"""Run the benchmarks and print one table.

    python -m benchmarks [--quick] [--only NAME …] [--json FILE]

Every speed is the median of ratios of short runs that take turns, so it holds on a busy machine; the µs beside it may not.
"""

import argparse
import fnmatch
import json
import os
import platform
import sys
import traceback
from collections.abc import Sequence
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import sharnir
from benchmarks.suite import BENCHMARKS, ITERATIONS, POSITION_ITERATIONS, Benchmark, Figure

Result = tuple[Benchmark, Figure | None]  # no figure where a benchmark crashed
HEAD = ("benchmark", "ours", "peer", "ratio", "target", "met")


def main(arguments: Sequence[str] | None = None, benchmarks: Sequence[Benchmark] = BENCHMARKS) -> int:
    """0, or 1 if a benchmark crashed; a target that is not met is no crash."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Speed and accuracy beside MuJoCo, in one table.")
    parser.add_argument("--quick", action="store_true", help="fewer rounds, shorter runs, no cold compile: a look, not a result")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="some benchmarks, by name or pattern ('ball*')")
    parser.add_argument("--json", metavar="FILE", type=Path, help="write the figures to a file as well")
    options = parser.parse_args(arguments)
    chosen = [b for b in benchmarks if not (options.quick and b.slow)]
    if options.only:
        for pattern in options.only:
            if not fnmatch.filter([b.name for b in benchmarks], pattern):
                parser.error(f"no benchmark is named {pattern!r}; known: {', '.join(b.name for b in benchmarks)}")
        chosen = [b for b in benchmarks if any(fnmatch.fnmatch(b.name, pattern) for pattern in options.only)]

    results = [(b, run(b, options.quick, f"{i}/{len(chosen)}")) for i, b in enumerate(chosen, 1)]
    say("")
    print(setting(options.quick))
    print(table(results))
    if options.json:
        options.json.write_text(json.dumps(record(results), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return int(any(figure is None for _, figure in results))


def run(benchmark: Benchmark, quick: bool, number: str) -> Figure | None:
    """The figure of one benchmark; a crash is shown, and the others go on."""
    say(f"[{number}] {benchmark.name} …")
    try:
        return benchmark.measure(quick)
    except Exception:
        say("")
        traceback.print_exc()
        return None


def say(line: str) -> None:
    """The progress line, on stderr: rewritten in place on a terminal."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\033[K{line}")
    elif line:
        sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def setting(quick: bool) -> str:
    """What was measured with what; a load near the number of cores spoils all that is about threads."""
    sweeps = f"{ITERATIONS} velocity and {POSITION_ITERATIONS} position iterations"
    load = f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"
    lines = [", ".join(f"{name} {found}" for name, found in versions().items()), f"{sweeps}; {load}"]
    return "\n".join([*lines, "quick: few rounds, and 1 s in place of 10"] if quick else lines)


def versions() -> dict[str, str]:
    """Of all that takes part."""
    found = {"sharnir": sharnir.__version__, "Python": platform.python_version()}
    for name in ("warp-lang", "mujoco", "rapier3d", "pyelastica", "numpy"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = f"none (pip install {name})"
    return found


def table(results: Sequence[Result]) -> str:
    """Aligned text: what is measured on the left, numbers on the right."""
    rows = [HEAD, *(row(*result) for result in results)]
    widths = [max(len(r[i]) for r in rows) for i in range(len(HEAD))]
    lines = ["  ".join([r[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(r[1:], widths[1:], strict=True))]) for r in rows]
    lines.insert(1, "─" * len(lines[0]))
    return "\n".join(line.rstrip() for line in lines)


def row(benchmark: Benchmark, figure: Figure | None) -> tuple[str, ...]:
    """The cells of one benchmark."""
    target = str(benchmark.target or "–")
    if figure is None:
        return (benchmark.about, "crashed", "–", "–", target, "–")
    ratio = "–" if figure.ratio is None else f"{number(figure.ratio)} ×"
    met = {None: "–", True: "yes", False: "no"}[benchmark.target.met(figure) if benchmark.target else None]
    return (benchmark.about, cell(figure.ours, benchmark.unit), cell(figure.peer, benchmark.unit), ratio, target, met)


def cell(value: float | None, unit: str) -> str:
    """A number with its unit."""
    return "–" if value is None else f"{number(value)} {unit}".strip()


def number(value: float) -> str:
    """Three digits, plain where that is short."""
    if value == 0 or not 1e-3 <= abs(value) < 1e5:
        return f"{value:.1e}"
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:#.3g}"


def record(results: Sequence[Result]) -> dict[str, object]:
    """What the JSON file holds."""
    return {
        "versions": versions(),
        "cores": os.cpu_count(),
        "machine": platform.machine(),
        "iterations": ITERATIONS,
        "position_iterations": POSITION_ITERATIONS,
        "benchmarks": [
            {
                "name": b.name,
                "about": b.about,
                "unit": b.unit,
                **(asdict(figure) if figure else {"crashed": True}),
                "target": str(b.target) if b.target else None,
                "met": b.target.met(figure) if b.target and figure else None,
            }
            for b, figure in results
        ],
    }


if __name__ == "__main__":
    sys.exit(main())
