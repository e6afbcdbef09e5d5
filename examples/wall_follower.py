"""A robot finds its way along a winding wall by lidar, 1.5 m from it, and stops before a crate that stands in the way.

Its 121 ranges are noisy (2 cm), taken 20 times a second and one reading late; of the wall it knows what they tell.
"""

import math

import numpy as np

import sharnir as sh
from sharnir.machine_models.krt100 import Krt100
from sharnir.sensors import Noise

AWAY, STOP, CRATE, FOLLOW = 1.5, 1.5, 11.0, "krt100"  # m: to the wall, to what is ahead, along x; in pictures
ROBOT = Krt100(trailer=None)


def wall(x: float) -> float:
    """y of the wall's face, m: it winds."""
    return -1.5 + 0.7 * (1 - math.cos(0.45 * x))


def make(dt: float = 5e-3) -> sh.Simulation:
    scene = sh.Scene()
    scene.add_ground(material=sh.Material(friction=0.9))
    for i, x in enumerate(np.arange(-3.0, 15.0, 0.5)):
        a, b = (np.array([s, wall(s)]) for s in (x, x + 0.5))
        turn, (px, py) = math.atan2(b[1] - a[1], 0.5), 0.5 * (a + b)
        place = (px + 0.1 * math.sin(turn), py - 0.1 * math.cos(turn), 0.5)
        along = (0, 0, math.sin(turn / 2), math.cos(turn / 2))
        scene.add_body(f"wall {i}", sh.Box(0.56, 0.2, 1.0), position=place, rotation=along, motion="fixed")
    scene.add_body("crate", sh.Box(0.6, 0.6, 0.8), position=(CRATE, wall(CRATE) + AWAY, 0.4), motion="fixed", color="#b06020")
    ROBOT.add(scene)
    for given in ROBOT.inputs():
        scene.add_input(given)
    noise = Noise(sigma=0.02, step=0.005, rate=20.0, latency=1, seed=1)
    mount = {"position": (0.3, 0, 0.25), "count": 121, "field": math.pi, "reach": (0.1, 8.0)}
    scene.add_sensor("scan", "lidar", "krt100", **mount, noise=noise)
    return sh.Simulation(scene, dt, solver="sequential", tolerances=sh.Tolerances(iterations=20))


def control(sim: sh.Simulation) -> None:
    """Steer by a straight line through what is seen on the right; brake for what is ahead."""
    scan = sim.sensor("scan")
    points, right = scan.points, (scan.azimuth < -0.5) & (scan.ranges < 4.0)
    slope, offset = np.polyfit(points[right, 0], points[right, 1], 1) if right.sum() > 4 else (0.0, -AWAY)
    gap = -offset / math.hypot(1.0, slope)
    ahead = np.abs(points[:, 1]) < 0.4
    free = np.min(points[ahead, 0], initial=np.inf)
    sim.inputs["steer"] = 1.2 * math.atan(slope) - 0.8 * (gap - AWAY)
    sim.inputs["throttle"], sim.inputs["brake"] = (0.45, 0.0) if free > STOP else (0.0, 1.0)


def check(sim: sh.Simulation) -> None:
    robot, seen = sim.body("krt100"), []
    while sim.time < 11.5:
        control(sim)
        sim.step(5)
        seen.append(float(robot.position[1]) - wall(float(robot.position[0])))
    left, speed = CRATE - 0.3 - float(robot.position[0]), float(np.linalg.norm(robot.velocity))
    print(f"{min(seen):.2f} to {max(seen):.2f} m from the wall; stands ({speed:.1e} m/s) {left:.2f} m before the crate")
    assert min(seen) > 1.25 and max(seen) < 1.75 and speed < 1e-3 and 1.2 < left < 1.9


if __name__ == "__main__":
    check(make())
