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


WAYS = {"sequential": {}, "direct": {"method": "direct"}, "articulated": {"solver": "articulated"}}
FIELDS = ("position", "rotation", "velocity", "joint_force")


def run(device: str, way: str) -> dict[str, np.ndarray]:
    """The mixed scene, 16 worlds thrown differently, after 200 steps and, in joint coordinates, an integration."""
    sim = sh.Simulation(mixed_scene(), 1e-3, worlds=16, device=device, **WAYS[way])
    sim.body("b5").velocity = np.linspace(0, 1, 16)[:, None] * [0, 1.0, 0.5]
    sim.step(200)
    out = {f: getattr(sim.state, f).numpy().copy() for f in FIELDS} | {"failed": sim.failed}
    if way == "articulated":
        sim.integrate(sim.time + 0.05, rtol=1e-6, atol=1e-6)
        out["integrated"] = sim.state.position.numpy().copy()
    return out


def agreement(way: str) -> None:
    """Two runs on each device, and one device against the other."""
    ends = {}
    for device in ("cpu", "cuda:0"):
        ends[device], again = run(device, way), run(device, way)
        same = all(np.array_equal(again[f], value) for f, value in ends[device].items())
        print(f"{way}, {device}: two runs bitwise equal: {same}; failed {int(again['failed'].sum())}")
    for field, value in ends["cpu"].items():
        if field != "failed":
            print(f"  cpu against gpu, {field:12s} largest difference {np.abs(value - ends['cuda:0'][field]).max():.2e}")


def speed(way: str, worlds: int, friction: float | None) -> None:
    """World-steps a second of a 10-ball chain."""
    options = WAYS[way] | ({"tolerance": 0.0} if way == "sequential" else {})
    sim = sh.Simulation(ball_chain(10, friction), 1e-3, worlds=worlds, device="cuda:0", **options)
    sim.step(10)
    wp.synchronize()
    n = 200 if worlds < 1e5 else 50
    started = time.perf_counter()
    sim.step(n)
    wp.synchronize()
    rate = n * worlds / (time.perf_counter() - started) / 1e6
    print(
        f"{PRECISION}, 10-ball chain, {way}, friction {friction}, {worlds} worlds: {rate:.3f} M world-steps a second", flush=True
    )


def main() -> None:
    """Print agreement and speed."""
    for way in WAYS:
        agreement(way)
        for worlds, friction in ((1, None), (4096, None), (131072, None), (131072, 0.2)):
            speed(way, worlds, friction)


if __name__ == "__main__":
    main()
