"""The same scenes on the CPU and on a GPU: do they agree, and how many world-steps a second does the GPU make?

    python -m benchmarks.gpu [PART …] [--device cuda:0] [--worlds 131072]

Parts: `agreement` (CPU against the device), `speed` (several numbers of worlds), `ropes` (both, of a load on a rope, and how long
its kernels take to compile; sequential impulses, which are slower by far, in fewer worlds and steps), and `race`: ten balls, ten
balls with friction and an arm with limits, friction and servos in single precision, every way of ours beside MuJoCo Warp. The
first three run in the precision of SHARNIR_PRECISION, the race in a process of its own. A part that fails says so, and the rest
goes on. `race --device cpu --worlds 64` tries the script where there is no GPU.
"""

import argparse
import os
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp

import sharnir as sh
from benchmarks.scenes import ARM_TARGET, LENGTH, chain, chain_xml, servo_arm, servo_arm_xml, tip
from sharnir.core.types import PRECISION

ROUNDS = 5  # of a speed, after one that warms up


def mixed_scene() -> sh.Scene:
    """A tree with most joint types and most of what can act on them, a loop, a gear and a spring."""
    scene = sh.Scene()
    joints = [
        sh.Revolute("y", drive=sh.DCMotor(voltage=6.0, gear_ratio=20.0, inductance=1e-3)),
        sh.Spherical(friction=0.3, limit=sh.Cardan(x=(-0.4, 0.4), y=(-0.3, 0.3), z=(-0.5, 0.5))),
        sh.Universal(("x", "y"), friction=0.1, damping=0.01),
        sh.Cylindrical("x", spring=(200.0, 0.0), limit={"x": (-0.05, 0.05)}),
        sh.Planar("y", friction=sh.Friction(2.0, 1.0, load=0.05)),
        sh.Joint("x rz", limit={"x": (-0.02, 0.02)}, drive={"rz": sh.Servo(position=0.3, kp=5.0, kd=0.3, max_force=2.0)}),
    ]
    last = scene.world
    for i, joint in enumerate(joints):
        body = scene.add_body(f"b{i}", sh.Box(0.2, 0.05, 0.08), mass=1.0, position=(0.2 * i + 0.1, 0, 0))
        scene.add_joint(f"j{i}", joint, last, body, position=(0.2 * i, 0, 0))
        last = body
    scene.add_body("w", sh.Cylinder(0.1, 0.05), mass=0.5, position=(0, 1, 0))
    scene.add_joint("axle", sh.Revolute("z"), scene.world, "w", position=(0, 1, 0))
    scene.add_joint("mesh", sh.Gear("axle", "j0", 2.0))
    scene.add_body("bob", mass=0.3, position=(1.2, 0, -0.4))
    scene.add_spring("cord", "b5", "bob", at_a=(0.1, 0, 0), stiffness=300.0, damping=2.0)
    scene.add_joint("rod", sh.Distance(), "b1", "b3", position=[(0.3, 0, 0), (0.7, 0, 0)])
    return scene


# What single precision can meet; with the tolerances of double precision every step would make all its passes
MET = sh.Tolerances(tolerance=1e-6) if PRECISION == "single" else sh.Tolerances()
CLOSED = sh.Tolerances(tolerance=1e-6, position_tolerance=1e-6) if PRECISION == "single" else sh.Tolerances()
WAYS: dict[str, dict[str, Any]] = {
    "sequential": {"solver": "sequential"},
    "direct": {"solver": "direct", "tolerances": CLOSED},
}
FIELDS = ("position", "rotation", "velocity", "joint_force")


def run(device: str, way: str) -> dict[str, np.ndarray]:
    """The mixed scene, 16 worlds thrown differently, after 200 steps, and for one of the ways after an integration."""
    sim = sh.Simulation(mixed_scene(), 1e-3, worlds=16, device=device, **WAYS[way])
    sim.body("b5").velocity = np.linspace(0, 1, 16)[:, None] * [0, 1.0, 0.5]
    sim.step(200)
    out = {f: getattr(sim.state, f).numpy().copy() for f in FIELDS} | {"failed": sim.failed}
    if way == "direct":
        sim.integrate(sim.time + 0.05, rtol=1e-6, atol=1e-6)
        out["integrated"] = sim.state.position.numpy().copy()
    return out


ROPES: dict[str, dict[str, Any]] = {
    "rope alone": {}, "rope, direct": {"solver": "direct", "tolerances": CLOSED}, "rope, sequential": {"tolerances": MET},
}  # fmt: skip
FEW = {"rope, sequential": (1024, 32)}  # worlds at most and steps a round: a pass and a sweep are launches of their own


def rope_scene(way: str) -> sh.Scene:
    """A load on a rope of 30 segments, from the ground or from a boom on a hinge."""
    scene, jointed = sh.Scene(), way != "rope alone"
    if jointed:
        scene.add_body("boom", sh.Box(2, 0.2, 0.2), mass=200.0, position=(1, 0, 0))
        scene.add_joint("hinge", sh.Revolute("y", spring=(1e5, 0.0), damping=5e3), scene.world, "boom", position=(0, 0, 0))
    scene.add_body("load", sh.Box(0.3, 0.3, 0.3), mass=50.0, position=(2, 0.3, -2.15))
    ends = ("boom" if jointed else "world", "load")
    scene.add_rope("rope", (2, 0, 0), (2, 0.3, -2), segments=30, radius=0.01, mass_per_length=0.5, EI=0.1, GJ=0.1, attach=ends)
    return scene


def run_rope(device: str, way: str) -> dict[str, np.ndarray]:
    """The load in 16 worlds, thrown differently, after 100 steps of 5 ms."""
    sim = sh.Simulation(rope_scene(way), 5e-3, worlds=16, device=device, **ROPES[way])
    sim.body("load").velocity = np.linspace(0, 1, 16)[:, None] * [1.0, 0.5, 0]
    sim.step(100)
    rope = sim.rope("rope")
    return {"load": np.asarray(sim.body("load").com), "points": np.asarray(rope.position), "failed": sim.failed}


def compile_rope(way: str, device: str) -> None:
    """Seconds to the end of a first step: kernels compiled, or loaded where they are cached on disk, and the step captured."""
    started = time.perf_counter()
    sim = sh.Simulation(rope_scene(way), 5e-3, worlds=16, device=device, **ROPES[way])
    made = time.perf_counter() - started
    sim.step()
    wp.synchronize()
    say(f"{PRECISION}, {way}, {device}: made in {made:.1f} s, the first step {time.perf_counter() - started - made:.1f} s later")


def rope_speed(way: str, worlds: int, device: str) -> None:
    """World-steps a second of the load on its rope."""
    most, steps = FEW.get(way, (worlds, 0))
    worlds = min(worlds, most)
    sim = sh.Simulation(rope_scene(way), 5e-3, worlds=worlds, device=device, **ROPES[way])
    sim.body("load").velocity = np.linspace(0, 1, worlds)[:, None] * [1.0, 0.5, 0]
    found, steps = rate(sim.step, worlds, steps)
    passes, failed = np.asarray(sim.step().iterations), int(sim.failed.sum())
    say(
        f"{PRECISION}, {way}, 30 segments, {worlds} worlds: {found:.3f} M world-steps a second, {1e-3 * worlds / found:.2f} ms a "
        f"step; {steps} steps, at last {passes.min()} to {passes.max()} iterations, failed {failed}"
    )


def agreement(way: str, device: str) -> None:
    """Two runs on each device, and one device against the other."""
    ends, make = {}, run_rope if way in ROPES else run
    for place in ("cpu", device):
        ends[place], again = make(place, way), make(place, way)
        same = all(np.array_equal(again[f], value) for f, value in ends[place].items())
        say(f"{way}, {place}: two runs bitwise equal: {same}; failed {int(again['failed'].sum())}")
    for field, value in ends["cpu"].items():
        if field != "failed":
            say(f"  cpu against {device}, {field:12s} largest difference {np.abs(value - ends[device][field]).max():.2e}")


def rate(step: Callable[[int], object], worlds: int, steps: int = 0) -> tuple[float, int]:
    """Millions of world-steps a second, the median of a few rounds (of `steps`, if given), and the number of steps made."""
    n, times = steps or (200 if worlds < 1e5 else 50), []
    for _ in range(ROUNDS + 1):
        wp.synchronize()
        started = time.perf_counter()
        step(n)
        wp.synchronize()
        times.append(time.perf_counter() - started)
    return n * worlds / float(np.median(times[1:])) / 1e6, n * (ROUNDS + 1)


@dataclass(frozen=True)
class Racer:
    """A mechanism of n rods for both engines, and how many rows of constraints MuJoCo Warp makes room for."""

    name: str
    rods: int
    scene: Callable[[], sh.Scene]
    xml: Callable[[], str]
    rows: int


BALLS = Racer("ten balls", 10, lambda: chain(10, "ball"), lambda: chain_xml(10, "ball", constraints=False), 1)
RUBBED = Racer(
    "ten balls, friction", 10, lambda: chain(10, "ball", friction=0.2), lambda: chain_xml(10, "ball", friction=0.2), 30
)
ARM = Racer("seven hinges, all laws", 7, servo_arm, servo_arm_xml, 14)


def speed(way: str, worlds: int, racer: Racer, device: str) -> None:
    """World-steps a second of one mechanism, and seconds to its first step."""
    options = WAYS[way] | ({"tolerances": sh.Tolerances(tolerance=0.0)} if way == "sequential" else {})
    started = time.perf_counter()
    sim = sh.Simulation(racer.scene(), 1e-3, worlds=worlds, device=device, **options)
    sim.step()
    wp.synchronize()
    first = time.perf_counter() - started
    found, steps = rate(sim.step, worlds)
    end = np.atleast_2d(tip(sim, racer.rods))[0]
    tell(f"{PRECISION}, {way}", worlds, racer, found, steps + 1, end, f"failed {int(sim.failed.sum())}, first step {first:.1f} s")


def peer_speed(worlds: int, racer: Racer, device: str) -> float:
    """The same in MuJoCo Warp, which computes in single precision: a step captured once as a graph, and launched; M/s."""
    import mujoco  # both optional
    import mujoco_warp

    peer = mujoco.MjModel.from_xml_string(racer.xml())
    data = mujoco.MjData(peer)
    with wp.ScopedDevice(device):
        model = mujoco_warp.put_model(peer)
        worlds_data = mujoco_warp.make_data(peer, nworld=worlds, nconmax=1, njmax=racer.rows)
        worlds_data.ctrl.fill_(ARM_TARGET)
        mujoco_warp.step(model, worlds_data)  # compiles
        with wp.ScopedCapture() as capture:
            mujoco_warp.step(model, worlds_data)

        def step(n: int) -> None:
            for _ in range(n):
                wp.capture_launch(capture.graph)

        begun = round(float(worlds_data.time.numpy()[0]) / 1e-3)  # a capture on a GPU makes no step, one on the CPU does
        found, steps = rate(step, worlds)
    data.qpos[:] = worlds_data.qpos.numpy()[0]
    mujoco.mj_kinematics(peer, data)
    end = data.xpos[-1] + data.xmat[-1].reshape(3, 3)[:, 0] * LENGTH / racer.rods
    tell(f"MuJoCo Warp {mujoco_warp.__version__}", worlds, racer, found, begun + steps, end, "")
    return found


def tell(who: str, worlds: int, racer: Racer, found: float, steps: int, end: np.ndarray, more: str) -> None:
    """One line; the free end shows that all of them step the same mechanism."""
    say(
        f"{racer.name}, {who:28s} {worlds} worlds: {found:9.3f} M world-steps a second; "
        f"free end after {steps} steps {np.round(end, 4).tolist()} {more}"
    )


def softly(part: Callable[..., object], *given: Any) -> None:
    """A part that fails says so, and the others go on."""
    try:
        part(*given)
    except Exception:
        say(f"failed: {part.__name__}{given}\n{traceback.format_exc(limit=-3)}")


def say(line: str) -> None:
    """At once, since a run may be cut short."""
    print(line, flush=True)


def race(worlds: int, device: str) -> None:
    """Every way of ours beside MuJoCo Warp, in single precision."""
    if PRECISION != "single":  # precision is chosen at import: a process of its own
        command = [sys.executable, "-m", "benchmarks.gpu", "race", "--device", device, "--worlds", str(worlds)]
        subprocess.run(command, env=os.environ | {"SHARNIR_PRECISION": "single"}, check=True)
        return
    for racer in (BALLS, RUBBED, ARM):
        softly(peer_speed, worlds, racer, device)
        for way in WAYS:
            softly(speed, way, worlds, racer, device)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print what is asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description="World-steps a second, and CPU against GPU.")
    parts = ("agreement", "speed", "ropes", "race")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(parts)} (default: all)")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--worlds", type=int, default=131072, help="of the race and of the largest speed (default: 131072)")
    chosen = parser.parse_args(arguments)
    for part in chosen.parts or parts:
        if part not in parts:
            parser.error(f"no part is named {part!r}; there are: {', '.join(parts)}")
    wanted = chosen.parts or parts
    for way in WAYS:
        if "agreement" in wanted:
            softly(agreement, way, chosen.device)
        if "speed" in wanted:
            for worlds, racer in ((1, BALLS), (4096, BALLS), (chosen.worlds, BALLS), (chosen.worlds, RUBBED)):
                softly(speed, way, worlds, racer, chosen.device)
    if "ropes" in wanted:
        for way in ROPES:
            softly(compile_rope, way, chosen.device)
            softly(agreement, way, chosen.device)
            for worlds in (4096, min(chosen.worlds, 65536))[: 1 if way in FEW else 2]:
                softly(rope_speed, way, worlds, chosen.device)
    if "race" in wanted:
        softly(race, chosen.worlds, chosen.device)


if __name__ == "__main__":
    main()
