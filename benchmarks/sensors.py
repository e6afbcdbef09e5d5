"""What sensors cost: rays beside MuJoCo's `mj_multiRay` in the same run, one by one in Python, and noise on top.

python -m benchmarks.sensors [--quick]
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import sharnir as sh
from sharnir.core.spatial import quat_exp
from sharnir.sensors import IMU, DepthCamera, Lidar, Noise

REACH = 30.0


def field(n: int, seed: int = 0) -> tuple[sh.Scene, str]:
    """n balls, boxes and capsules on a plane around a robot, for both engines."""
    rng = np.random.default_rng(seed)
    scene = sh.Scene()
    scene.add_ground()
    scene.add_body("robot", sh.Box(0.4, 0.4, 0.4), position=(0, 0, 1), motion="kinematic")
    text = ['<mujoco><worldbody><geom type="plane" size="0 0 1"/>']
    text.append('<body name="robot" pos="0 0 1"><geom type="box" size=".2 .2 .2"/></body>')
    wide = 2.0 * np.sqrt(n) + 4.0
    for i in range(n):
        x, y = rng.uniform(-wide, wide, 2)
        if np.hypot(x, y) < 1.5:
            x += 3.0
        q = quat_exp(rng.normal(size=3))
        kind, shape = (("sphere", sh.Sphere(0.5)), ("box", sh.Box(1, 0.6, 0.8)), ("capsule", sh.Capsule(0.3, 1.0)))[i % 3]
        size = {"sphere": "0.5", "box": "0.5 0.3 0.4", "capsule": "0.3 0.5"}[kind]
        scene.add_body(f"b{i}", shape, position=(x, y, 0.8), rotation=q, motion="kinematic")
        text.append(f'<body pos="{x} {y} 0.8" quat="{q[3]} {q[0]} {q[1]} {q[2]}"><geom type="{kind}" size="{size}"/></body>')
    return scene, "".join(text) + "</worldbody></mujoco>"


def peer(text: str, directions: np.ndarray, origin: np.ndarray) -> tuple[Callable[[], Any], np.ndarray]:
    """MuJoCo's rays of the same scene: what casts them all, and the distances it writes."""
    import mujoco

    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    n = len(directions)
    way, which, far = np.ascontiguousarray(directions).ravel(), np.zeros(n, np.int32), np.zeros(n)
    own = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_BODY, "robot")

    def cast() -> None:
        mujoco.mj_multiRay(model, data, origin, way, None, 1, own, which, far, None, n, REACH)

    return cast, far


def cost(action: Callable[[], Any], least: float = 0.15) -> float:
    """s of CPU time a call, the best of three."""
    action()
    best = np.inf
    for _ in range(3):
        n, started = 0, time.process_time()
        while time.process_time() - started < least:
            action()
            n += 1
        best = min(best, (time.process_time() - started) / n)
    return best


def compare(n: int, name: str, make: Callable[[Any, Any], Any]) -> dict[str, float]:
    """One sensor among n bodies: µs of a reading, ours, with noise, MuJoCo's; and by how much distances differ."""
    scene, text = field(n)
    sim = sh.Simulation(scene, 0.01)
    sensor, noisy = make(sim, None), make(sim, Noise(sigma=0.01, seed=1))
    rays = sensor._directions
    out = {"ours": cost(sensor._fan.look)}
    out["noise"] = cost(lambda: (noisy._fan.look(), noisy._reading.take(0.01))) - out["ours"]
    try:
        cast, far = peer(text, rays, np.array([0.0, 0.0, 1.0]))
    except ImportError:
        return out
    cast()
    out["peer"] = cost(cast)
    values = sensor._reading.value.numpy()[:, 0] / (rays[:, 0] if isinstance(sensor, DepthCamera) else 1.0)
    values[values > REACH] = np.inf  # of a depth camera a longer ray may reach as deep
    both = np.isfinite(values) & (far >= 0)
    out["off"] = float(np.abs(values[both] - far[both]).max())
    out["alone"] = float((np.isfinite(values) != ((far >= 0) & (far <= REACH))).mean())
    return out


def main(quick: bool = False) -> None:
    """Print the table."""
    kinds: dict[str, Callable[[Any, Any], Any]] = {
        "lidar 360": lambda sim, noise: Lidar(sim, "robot", count=360, noise=noise, reach=(0.0, REACH)),
        "lidar 16 × 900": lambda sim, noise: Lidar(
            sim, "robot", count=900, elevations=np.linspace(-0.3, 0.2, 16), noise=noise, reach=(0.0, REACH)
        ),
        "depth 64 × 48": lambda sim, noise: DepthCamera(sim, "robot", noise=noise, reach=(0.0, REACH)),
        "depth 320 × 240": lambda sim, noise: DepthCamera(sim, "robot", width=320, height=240, noise=noise, reach=(0.0, REACH)),
    }
    print(f"{'sensor':16} {'bodies':>6} {'rays':>7} {'µs':>9} {'ns/ray':>7} {'noise µs':>9} {'MuJoCo µs':>10} {'ratio':>6}  off")
    for n in (10, 100, 1000) if not quick else (10, 100):
        for name, make in kinds.items():
            found = compare(n, name, make)
            rays = {"lidar 360": 360, "lidar 16 × 900": 14400, "depth 64 × 48": 3072, "depth 320 × 240": 76800}[name]
            us = {key: 1e6 * value for key, value in found.items()}
            line = f"{name:16} {n:6} {rays:7} {us['ours']:9.0f} {1e3 * us['ours'] / rays:7.0f} {us['noise']:9.0f}"
            if "peer" in us:
                line += f" {us['peer']:10.0f} {us['peer'] / us['ours']:6.2f}  {found['off']:.0e} ({found['alone']:.1%})"
            print(line)
    sim = sh.Simulation(field(10)[0], 0.01)
    imu = {noise: IMU(sim, "robot", noise=noise) for noise in (None, Noise(0.01))}
    took = [cost(lambda s=s: (s._measure(0.01), s._reading.take(0.01))) for s in imu.values()]  # type: ignore[misc]
    print(f"IMU: {1e6 * took[0]:.0f} µs a reading, with noise {1e6 * took[1]:.0f}")
    d = np.tile([1.0, 0.0, 0.0], (360, 1))
    batch, one = cost(lambda: sim.ray_cast(np.zeros(3) + (0, 0, 3), d)), cost(lambda: sim.ray_cast((0, 0, 3), d[0]))
    print(f"sim.ray: {1e6 * one:.0f} µs one, {1e6 * batch:.0f} µs 360 of them")


if __name__ == "__main__":
    main("--quick" in sys.argv)
