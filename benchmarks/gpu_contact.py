"""Mechanisms with contact on a GPU in one go: do CPU and GPU agree, and how many world-steps a second are made.

    python -m benchmarks.gpu_contact [--device cuda:0] [--worlds N ...] [--quick] [--reference FILE | --write FILE]

The hexapod of `benchmarks.legged`, standing and walking, each world at another phase of its gait; sleep is off. Targets of its
servos are written on the device before each call of ten steps. Contacts are solved in joint coordinates. Rates are of single
precision; in double precision, in a process of its own, it is looked at whether GPU and CPU agree. Beside them the rates of
MuJoCo Warp, measured in the same run where it is installed, else those that it had on an H200. `--write` keeps where the CPU's
bodies are, so that a machine with a GPU need not compile for its CPU; `--reference` compares with that.
"""

from __future__ import annotations

import argparse
import math
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np
import warp as wp

import sharnir as sh
from benchmarks.gpu import say, softly
from benchmarks.legged import CALL, HIPS, STEP, hexapod, written
from sharnir.core.types import PRECISION, real
from sharnir.io.mjcf import read_mjcf

WORLDS = (4096, 65536)
PEER = {4096: 4.2, 65536: 7.6}  # M world-steps/s of MuJoCo Warp on an H200, walking
BOUNDS = {"double": 1e-9, "single": 2e-2}  # m: CPU against GPU after 100 steps
AGREE, STEPS, SPREAD = 16, 100, 64  # worlds and steps of the comparison; phases of the gait
GAITS = {"standing": 0.0, "walking": 1.0}  # amplitudes
STANDS = 0.2, 0.35  # m: heights of the trunk


@wp.kernel(module="sharnir.benchmarks_gait", enable_backward=False)
def gait(target: wp.array2d(dtype=real), axes: wp.array(dtype=int), amplitude: real, phase: real, spread: real):
    """Targets of the 18 servos of a world, as `legged.gait` has them."""
    k, w = wp.tid()
    own = phase + spread * real(w) + real(math.pi) * real(k % 2)
    side = wp.where(k < 3, real(1.0), real(-1.0))
    target[axes[3 * k], w] = amplitude * real(0.25) * side * wp.sin(own)
    target[axes[3 * k + 1], w] = amplitude * real(0.2) * wp.cos(own)


class Walkers:
    """The hexapod in some worlds."""

    def __init__(self, worlds: int, device: str, amplitude: float, **options: Any) -> None:
        with written(hexapod()) as path:
            scene = read_mjcf(path).scene
        self.sim = sh.Simulation(scene, STEP, worlds=worlds, device=device, sleep=False, **options)
        names = [f"{kind} {k}" for k in range(len(HIPS)) for kind in ("yaw", "lift", "knee")]
        axes = [int(self.sim.index(name).qd[0]) for name in names]
        self.axes, self.amplitude, self.calls = wp.array(axes, dtype=int, device=device), amplitude, 0

    def call(self, n: int = CALL) -> Any:
        """A call of n steps, with the targets of its start."""
        phase = 2 * math.pi * self.calls * CALL * STEP
        target, spread = self.sim.commands.servo_position, 2 * math.pi / SPREAD
        inputs = [target, self.axes, self.amplitude, phase, spread]
        wp.launch(gait, dim=(len(HIPS), self.sim.worlds), inputs=inputs, device=self.sim.model.device)
        self.calls += 1
        return self.sim.step(n)

    def heights(self) -> np.ndarray:
        """(worlds,) of the trunk, m."""
        return np.asarray(self.sim.state.position.numpy()[1, :, 2])


def ends(amplitude: float, device: str) -> np.ndarray:
    """(bodies, worlds, 3) positions after 100 steps."""
    walkers = Walkers(AGREE, device, amplitude)
    for _ in range(STEPS // CALL):
        walkers.call()
    assert not walkers.sim.failed.any(), f"{int(walkers.sim.failed.sum())} worlds failed"
    return np.asarray(walkers.sim.state.position.numpy(), float)


def agreement(device: str, reference: str | None) -> None:
    """The same steps on CPU and GPU."""
    known = np.load(reference) if reference else {}
    for name, amplitude in GAITS.items():
        key = f"{PRECISION} {name}"
        cpu = known[key] if key in known else ends(amplitude, "cpu")
        off = float(np.abs(cpu - ends(amplitude, device)).max())
        good = "agree" if off <= BOUNDS[PRECISION] else "DO NOT AGREE"
        say(f"{PRECISION}, {name}: CPU and {device} {good}: {off:.1e} m after {STEPS} steps (bound {BOUNDS[PRECISION]:.0e})")


def measure(name: str, worlds: int, device: str, quick: bool) -> float:
    """M world-steps a second, the best of a few rounds of ten calls; prints them."""
    started = time.perf_counter()
    walkers = Walkers(worlds, device, GAITS[name])
    walkers.call()
    wp.synchronize()
    first, best = time.perf_counter() - started, 0.0
    before = walkers.sim.health()
    for _ in range(3 if quick else 6):
        wp.synchronize()
        started = time.perf_counter()
        for _ in range(10):
            walkers.call()
        wp.synchronize()
        best = max(best, 10 * CALL * worlds / (time.perf_counter() - started) / 1e6)
    health, heights = walkers.sim.health(), walkers.heights()
    steps, missed = health.steps - before.steps, health.not_converged - before.not_converged
    stands = float(np.mean((heights > STANDS[0]) & (heights < STANDS[1])))
    passes = float(np.mean(np.asarray(walkers.sim.step(1).iterations)))
    assert stands > 0.99, f"{name}: {100 * (1 - stands):.1f} % of the robots do not stand"
    times = best / PEER.get(worlds, math.nan)
    say(
        f"{PRECISION:6s} {name:10s} {worlds:6d} worlds: {best:7.2f} M/s, {times:.2f} × MuJoCo Warp  first {first:5.1f} s, "
        f"passes {passes:.2f}, not converged {np.sum(missed)} of {np.sum(steps)}, failed {int(walkers.sim.failed.sum())}, "
        f"upright {100 * stands:.2f} %, code for the model {by_model(walkers.sim):.4f}"
    )
    kernels(walkers.sim, worlds)
    return best


def by_model(sim: sh.Simulation) -> float:
    """Share of worlds whose last step the code for the model made."""
    trees = sim.solver._trees
    return 0.0 if trees.by_model is None else float(np.mean(trees._left_over.numpy() == 0))


def kernels(sim: sh.Simulation, worlds: int) -> None:
    """What each kernel of a step takes, launched one by one."""
    solver = sim.solver
    if not wp.get_device(sim.model.device).is_cuda:
        return
    with wp.ScopedTimer("kernels", cuda_filter=wp.TIMING_KERNEL, print=False, synchronize=True) as timer:
        solver._launch(solver._bound[2], 0, worlds)
    parts = (f"{r.name.replace('forward kernel ', '').split('_cuda')[0]} {1e3 * r.elapsed:.0f}" for r in timer.timing_results)
    say("       µs: " + ", ".join(parts))


def peer_speed(name: str, worlds: int, device: str) -> float:
    """The same robot in MuJoCo Warp: ten steps captured once as a graph, between two writes of its commands; M/s."""
    import mujoco  # both optional
    import mujoco_warp

    peer = mujoco.MjModel.from_xml_string(hexapod())
    data = mujoco.MjData(peer)
    mujoco.mj_forward(peer, data)
    axes = wp.array(np.arange(18), dtype=int, device=device)
    with wp.ScopedDevice(device):
        model = mujoco_warp.put_model(peer)
        made = mujoco_warp.put_data(peer, data, nworld=worlds, nconmax=8, njmax=64)
        ctrl = wp.zeros((18, worlds), dtype=real)

        def command(call: int) -> None:
            inputs = [ctrl, axes, GAITS[name], 2 * math.pi * call * CALL * STEP, 2 * math.pi / SPREAD]
            wp.launch(gait, dim=(len(HIPS), worlds), inputs=inputs)
            wp.copy(made.ctrl, ctrl.transpose().contiguous())

        mujoco_warp.step(model, made)  # compiles
        wp.synchronize()
        with wp.ScopedCapture() as capture:
            for _ in range(CALL):
                mujoco_warp.step(model, made)
        best = 0.0
        for k in range(4):
            wp.synchronize()
            started = time.perf_counter()
            for n in range(10):
                command(10 * k + n)
                wp.capture_launch(capture.graph)
            wp.synchronize()
            best = max(best, 10 * CALL * worlds / (time.perf_counter() - started) / 1e6)
    say(f"MuJoCo Warp {mujoco_warp.__version__}, {name}, {worlds} worlds: {best:.2f} M/s")
    return best


def main(arguments: Sequence[str] | None = None) -> None:
    """Print what is asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu_contact", description="Contact on a GPU, in one go.")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--worlds", type=int, nargs="*", default=WORLDS)
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    parser.add_argument("--reference", help="file that --write wrote")
    parser.add_argument("--write", help="write where the bodies of the CPU are, and end")
    parser.add_argument("--no-check", action="store_true", help="rates alone")
    parser.add_argument("--no-peer", action="store_true", help="do not measure MuJoCo Warp")
    chosen = parser.parse_args(arguments)
    wp.config.quiet = True
    if "SHARNIR_PRECISION" not in os.environ:  # precision is chosen at import
        given = list(sys.argv[1:] if arguments is None else arguments)
        for precision in ("single", "double"):
            command = [sys.executable, "-m", "benchmarks.gpu_contact", *given]
            subprocess.run(command, env=dict(os.environ) | {"SHARNIR_PRECISION": precision}, check=True)
        return
    if chosen.write:
        kept = dict(np.load(chosen.write)) if os.path.exists(chosen.write) else {}
        np.savez(chosen.write, **kept | {f"{PRECISION} {name}": ends(by, "cpu") for name, by in GAITS.items()})
        return
    if not chosen.no_check:
        softly(agreement, chosen.device, chosen.reference)
    if PRECISION == "double":
        return
    for worlds in chosen.worlds:
        if not chosen.no_peer and find_spec("mujoco_warp") and wp.get_device(chosen.device).is_cuda:
            softly(lambda n: PEER.__setitem__(n, peer_speed("walking", n, chosen.device)), worlds)
        for name in GAITS:
            softly(measure, name, worlds, chosen.device, chosen.quick)


if __name__ == "__main__":
    main()
