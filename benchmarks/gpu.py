"""The same scenes on the CPU and on a GPU: do they agree, and how many world-steps a second does the GPU make?

Usage: python -m benchmarks.gpu        (SHARNIR_PRECISION=single for single precision)
"""

import time

import numpy as np
import warp as wp

import sharnir as sh
from sharnir.types import PRECISION


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


def ball_chain(n: int, friction: float | None = None) -> sh.Scene:
    """n uniform rods, 1 m and 10 kg in all, horizontal."""
    scene = sh.Scene()
    l, m, last = 1.0 / n, 10.0 / n, "world"
    for i in range(n):
        inertia = (m * l * l / 200, m * l * l / 12, m * l * l / 12)
        scene.add_body(f"b{i}", mass=m, inertia=inertia, position=((i + 0.5) * l, 0, 0))
        scene.add_joint(f"j{i}", sh.Spherical(friction=friction), last, f"b{i}", position=(i * l, 0, 0))
        last = f"b{i}"
    return scene


def main() -> None:
    """Print agreement and speed."""
    ends = {}
    for device in ("cpu", "cuda:0"):
        sim = sh.Simulation(mixed_scene(), 1e-3, worlds=16, device=device)
        sim.body("b5").velocity = np.linspace(0, 1, 16)[:, None] * [0, 1.0, 0.5]
        sim.step(200)
        ends[device] = {f: getattr(sim.state, f).numpy().copy() for f in ("position", "rotation", "velocity", "joint_force", "q")}
        again = sh.Simulation(mixed_scene(), 1e-3, worlds=16, device=device)
        again.body("b5").velocity = np.linspace(0, 1, 16)[:, None] * [0, 1.0, 0.5]
        again.step(200)
        same = all(np.array_equal(getattr(again.state, f).numpy(), v) for f, v in ends[device].items())
        print(f"{device}: two runs bitwise equal: {same}; energy {sim.energy().total[:3]}; failed {int(sim.failed.sum())}")
    for field, value in ends["cpu"].items():
        print(f"  cpu against gpu, {field:12s} largest difference {np.abs(value - ends['cuda:0'][field]).max():.2e}")
    for worlds, friction in ((1, None), (4096, None), (131072, None), (131072, 0.2)):
        sim = sh.Simulation(ball_chain(10, friction), 1e-3, worlds=worlds, device="cuda:0", tolerance=0.0)
        sim.step(10)
        wp.synchronize()
        n = 200 if worlds < 1e5 else 50
        started = time.perf_counter()
        sim.step(n)
        wp.synchronize()
        took = time.perf_counter() - started
        rate = n * worlds / took / 1e6
        print(f"{PRECISION}, 10-ball chain, friction {friction}, {worlds} worlds, 20 sweeps: {rate:.3f} M world-steps a second")


if __name__ == "__main__":
    main()
