"""Trees on a GPU in one go: do CPU and GPU agree, how many world-steps a second are made, and what each kernel takes.

    python -m benchmarks.gpu_trees [--device cuda:0] [--worlds 131072] [--quick] [--reference FILE | --write FILE]

An arm with limits, friction and servos, ten balls, and ten balls with friction, as default simulations: guard and sleep on. Rates
are of whole calls of `Simulation.step`, single precision first, then double precision in a process of its own; beside them the
rates of MuJoCo Warp, measured in the same run where it is installed, else those that it had on an H200. `--write` keeps where the
CPU's bodies are after 200 steps, so that a machine with a GPU need not compile for its CPU; `--reference` compares with that.
`--device cpu --worlds 64` tries the script where there is no GPU.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import warp as wp

import sharnir as sh
from benchmarks.gpu import ARM, BALLS, RUBBED, Racer, peer_speed, say, softly
from sharnir.core.types import PRECISION
from sharnir.engine.tree import placement
from sharnir.engine.tree.runtime import CPP

RACERS = {"arm": ARM, "ten balls": BALLS, "ten balls, friction": RUBBED}
PEER = {"arm": 42.8, "ten balls": 14.1, "ten balls, friction": 9.4, "few": 12.0}
"""M world-steps/s of MuJoCo Warp on an H200, 131,072 worlds; of the arm in 4096 worlds. Measured anew where it is installed."""
FEW = 4096
ASKED = 20.0  # times its rate
BOUNDS = {"double": 1e-9, "single": 2e-2}  # m: CPU against GPU after 200 steps
AGREE, STEPS = 16, 200  # worlds and steps of the comparison
ROUND = 300  # steps of a round


def thrown(racer: Racer, worlds: int, device: str) -> sh.Simulation:
    """A mechanism whose last rod is thrown differently in all worlds; the same form of the steps on all devices."""
    sim = sh.Simulation(racer.scene(), 1e-3, worlds=worlds, device=device, specialize=True)
    last = sim.body(f"rod {racer.rods - 1}")
    last.velocity = np.linspace(0.0, 1.0, worlds)[:, None] * [0.0, 0.3, 0.2]
    return sim


def ends(racer: Racer, device: str) -> np.ndarray:
    """(bodies, worlds, 3) positions after 200 steps, ten a call."""
    sim = thrown(racer, AGREE, device)
    for _ in range(STEPS // 10):
        sim.step(10)
    assert not sim.failed.any(), f"{racer.name} on {device}: {int(sim.failed.sum())} worlds failed"
    return np.asarray(sim.state.position.numpy(), float)


def agreement(device: str, reference: str | None, names: Sequence[str]) -> None:
    """The same steps on CPU and GPU."""
    known = np.load(reference) if reference else {}
    for name in names:
        racer = RACERS[name]
        key = f"{PRECISION} {name}"
        cpu = known[key] if key in known else ends(racer, "cpu")
        off = float(np.abs(cpu - ends(racer, device)).max())
        good = "agree" if off <= BOUNDS[PRECISION] else "DO NOT AGREE"
        say(f"{PRECISION}, {name}: CPU and {device} {good}: {off:.1e} m after {STEPS} steps (bound {BOUNDS[PRECISION]:.0e})")


def timed(sim: sh.Simulation, steps: int, worlds: int, quick: bool) -> float:
    """M world-steps a second of calls with so many steps, the best of a few rounds: 300 steps from the same start, in which all
    bodies move. Later they come to rest, and sleep.
    """
    best, calls, start = 0.0, ROUND // steps, sim.snapshot()
    for _ in range(3 if quick else 6):
        sim.restore(start)
        sim.step(steps)
        wp.synchronize()
        started = time.perf_counter()
        for _ in range(calls):
            sim.step(steps)
        wp.synchronize()
        best = max(best, calls * steps * worlds / (time.perf_counter() - started) / 1e6)
    sim.restore(start)
    for _ in range(10):
        sim.step(steps)
    return best


def row(
    what: str, racer: Racer, worlds: int, steps: int, device: str, quick: bool, change: Callable[[Any], object] | None
) -> float:
    """Measure one row of the table, and print it."""
    started = time.perf_counter()
    sim = sh.Simulation(racer.scene(), 1e-3, worlds=worlds, device=device)
    sim.step(steps)
    wp.synchronize()
    first = time.perf_counter() - started
    if change is not None:
        change(sim)
    sim.step(steps)
    rate = timed(sim, steps, worlds, quick)
    trees = sim.solver._trees
    passes = float(np.mean(np.asarray(sim.step(steps).iterations)))
    fine = bool(np.isfinite(sim.state.position.numpy()).all())
    say(
        f"{PRECISION:6s} {what:32s} {worlds:7d} worlds {steps:3d} steps: {rate:9.1f} M/s  first {first:5.1f} s, "
        f"passes {passes:.2f}, failed {int(sim.failed.sum())}, finite {fine}, specialized {trees.specialized}, "
        f"generic needed {trees.specialized and trees._generic is not None}"
    )
    if "--kernels" in sys.argv or not quick:
        kernels(sim, worlds)
    return rate


def kernels(sim: sh.Simulation, worlds: int) -> None:
    """What each kernel of a call takes, launched one by one."""
    if not wp.get_device(sim.model.device).is_cuda:
        return
    solver = sim.solver
    with wp.ScopedTimer("kernels", cuda_filter=wp.TIMING_KERNEL, print=False, synchronize=True) as timer:
        solver._launch_watch(0, worlds)
        solver._launch(solver._bound[2], 0, worlds)
    parts = (f"{r.name.replace('forward kernel ', '').split('_cuda')[0]} {1e3 * r.elapsed:.0f}" for r in timer.timing_results)
    say("       µs: " + ", ".join(parts))


def random_targets(sim: sh.Simulation) -> None:
    """Other targets of the servos in every world."""
    rng = np.random.default_rng(0)
    for i in range(7):
        sim.joint(f"joint {i}").drive.position = rng.uniform(-0.5, 0.5, sim.worlds)


def random_both(sim: sh.Simulation) -> None:
    """Other masses, too."""
    sim.randomize(1, mass=0.2)
    random_targets(sim)


def table(device: str, worlds: int, quick: bool, rates: Path | None, names: Sequence[str]) -> None:
    """All rows in this precision; `rates` is a file with those of single precision, for double precision."""
    found = {name: row(name, RACERS[name], worlds, 10, device, quick, None) for name in names}
    if PRECISION == "single" and "arm" in names:
        few = min(FEW, worlds)
        found["1"] = row("arm", ARM, few, 1, device, quick, None)
        found["10"] = row("arm", ARM, few, 10, device, quick, None)
        found["mass"] = row("arm, random masses", ARM, worlds, 10, device, quick, lambda sim: sim.randomize(1, mass=0.2))
        found["targets"] = row("arm, random targets", ARM, worlds, 10, device, quick, random_targets)
        found["both"] = row("arm, random masses and targets", ARM, worlds, 10, device, quick, random_both)
        one, ten = found["1"] / PEER["few"], found["10"] / PEER["few"]
        say(f"arm in {few} worlds, 1 / 10 steps: {one:.1f} / {ten:.1f} × (asked 4 / 15)")
        say(f"random masses: {found['mass'] / found['arm']:.2f} of equal worlds (asked 0.8)")
        say(f"random masses beside random targets: {found['both'] / found['targets']:.2f}")
    if PRECISION == "single":
        for name in names:
            say(f"{name}: {found[name] / PEER[name]:.1f} × MuJoCo Warp (asked {ASKED:g})")
    if rates is not None:
        before = [float(x) for x in rates.read_text().split()] if rates.exists() else []
        rates.write_text(" ".join(str(found[name]) for name in names))
        if before:
            parts = (f"{name} {found[name] / x:.2f}" for name, x in zip(names, before, strict=True))
            say(f"double of single precision: {', '.join(parts)} (asked 0.25)")


def main(arguments: Sequence[str] | None = None) -> None:
    """Print what is asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu_trees", description="Trees on a GPU, in one go.")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--worlds", type=int, default=131072)
    parser.add_argument("--quick", action="store_true", help="fewer rounds, and no kernels one by one")
    parser.add_argument("--kernels", action="store_true", help="kernels one by one, also with --quick")
    parser.add_argument("--reference", help="file that --write wrote")
    parser.add_argument("--write", help="write where the bodies of the CPU are, and end")
    parser.add_argument("--no-check", action="store_true", help="rates alone")
    parser.add_argument("--no-peer", action="store_true", help="do not measure MuJoCo Warp")
    parser.add_argument("--only", choices=tuple(RACERS), help="one mechanism")
    parser.add_argument("--registers", type=int, help="numbers of links that specialized code keeps in registers")
    parser.add_argument("--shared", type=int, help="and in shared memory, at most")
    parser.add_argument("--rates", help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    wp.config.quiet = True
    for table_of, given in ((placement.IN_REGISTERS, chosen.registers), (placement.IN_SHARED, chosen.shared)):
        if given is not None:
            table_of[CPP] = given
    if "SHARNIR_PRECISION" not in os.environ:  # precision is chosen at import
        with tempfile.TemporaryDirectory() as folder:
            given = list(sys.argv[1:] if arguments is None else arguments)
            command = [sys.executable, "-m", "benchmarks.gpu_trees", *given, "--rates", os.path.join(folder, "rates")]
            for precision in ("single", "double"):
                subprocess.run(command, env=os.environ | {"SHARNIR_PRECISION": precision}, check=True)
        return
    names = [chosen.only] if chosen.only else list(RACERS)
    if chosen.write:
        kept = dict(np.load(chosen.write)) if os.path.exists(chosen.write) else {}
        np.savez(chosen.write, **kept | {f"{PRECISION} {name}": ends(racer, "cpu") for name, racer in RACERS.items()})
        return
    if not chosen.no_check:
        softly(agreement, chosen.device, chosen.reference, names)
    if PRECISION == "single" and not chosen.no_peer and find_spec("mujoco_warp") and wp.get_device(chosen.device).is_cuda:
        for name, racer, worlds in (*((n, r, chosen.worlds) for n, r in RACERS.items()), ("few", ARM, FEW)):
            softly(lambda n, *given: PEER.__setitem__(n, peer_speed(*given)), name, worlds, racer, chosen.device)
    softly(table, chosen.device, chosen.worlds, chosen.quick, Path(chosen.rates) if chosen.rates else None, names)


if __name__ == "__main__":
    main()
