"""KRT100-MP pulls its trailer through turns and over a hill; the ball hitch turns ±18° about x and z, ±15° about y.

Four motors of 24 V drive it; its tires have slip along and across.
"""

import math

import numpy as np

import sharnir as sh
from sharnir.geometry import terrain
from sharnir.machine_models.krt100 import Krt100

LIMITS, FOLLOW = np.radians((18.0, 15.0, 18.0)), "krt100"  # about x, y, z
ROBOT = Krt100()


def make(dt: float = 5e-3) -> sh.Simulation:
    scene = sh.Scene()
    hill = terrain.ridge(size=(24.0, 8.0), height=0.5, length=4.0, at=2.5, step=0.1)
    scene.add_terrain("hill", hill, position=(9.0, 0.0, 0.0), material=sh.Material(friction=0.9))
    ROBOT.add(scene)
    for given in ROBOT.inputs():
        scene.add_input(given)
    return sh.Simulation(scene, dt, solver="sequential", tolerances=sh.Tolerances(iterations=20))


def control(sim: sh.Simulation) -> None:
    """Turns to the left and to the right, then straight over the hill."""
    inputs, t, robot = sim.inputs, sim.time, sim.body("krt100")
    x, y, z, w = robot.rotation
    heading = math.atan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))
    inputs["throttle"] = 0.55
    inputs["steer"] = 0.42 * math.sin(math.tau * t / 4.0) if t < 4.0 else -0.8 * heading - 0.3 * float(robot.position[1])


def check(sim: sh.Simulation) -> None:
    seen, climbs = [], 0.0
    while sim.time < 13.0:
        control(sim)
        sim.step()
        seen.append(ROBOT.angles(sim))
        climbs = max(climbs, float(sim.body("krt100").position[2]))
    most = np.abs(seen).max(0)
    told = ", ".join(f"{n} {a:.3f}°" for n, a in zip("xyz", np.degrees(most), strict=True))
    past, x = np.degrees((most - LIMITS).max()), float(sim.body("krt100").position[0])
    print(f"hitch turns up to {told}; past a limit by {max(past, 0.0):.1e}°; {climbs - 0.27:.2f} m up, {x:.2f} m on")
    assert past < 1e-3 and most[2] > LIMITS[2] - 1e-3 and climbs > 0.7 and x > 13.5


if __name__ == "__main__":
    check(make())
