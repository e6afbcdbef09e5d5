"""KRT100-MP tows its trailer on a rope through turns and over a hill: it hangs slack, snatches, and overruns downhill.

The rope does not stretch and pulls where it is taut; the trailer's drawbar rolls on a ball.
"""

import math

import numpy as np

import sharnir as sh
from sharnir.geometry import terrain
from sharnir.machine_models.krt100 import Krt100

ROBOT, FOLLOW = Krt100(trailer="rope"), "krt100"


def make(dt: float = 5e-3) -> sh.Simulation:
    scene = sh.Scene()
    hill = terrain.ridge(size=(24.0, 8.0), height=0.3, length=6.0, at=2.5, step=0.1)
    scene.add_terrain("hill", hill, position=(9.0, 0.0, 0.0), material=sh.Material(friction=0.9))
    ROBOT.add(scene)
    for given in ROBOT.inputs():
        scene.add_input(given)
    return sh.Simulation(scene, dt, solver="sequential", tolerances=sh.Tolerances(iterations=40))


def control(sim: sh.Simulation) -> None:
    """Turns, then straight over the hill; the robot slows down behind it, and the trailer comes on."""
    inputs, t, robot = sim.inputs, sim.time, sim.body("krt100")
    x, y, z, w = robot.rotation
    heading = math.atan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))
    inputs["throttle"] = 0.55 if robot.position[0] < 13.5 else 0.0
    inputs["steer"] = 0.35 * math.sin(math.tau * t / 4.0) if t < 4.0 else -0.8 * heading - 0.3 * float(robot.position[1])


def check(sim: sh.Simulation) -> None:
    taut, longest, pulls = 0, 0.0, []
    while sim.time < 13.0:
        control(sim)
        sim.step()
        rope = sim.rope("krt100 rope")
        pulls.append(float(np.max(rope.tension)))
        taut += pulls[-1] > 1.0
        longest = max(longest, float(np.linalg.norm(np.diff(rope.position, axis=0), axis=1).sum()) / 1.25 - 1)
    x = float(sim.body("krt100 trailer").position[0])
    print(
        f"taut in {taut / len(pulls):.0%} of the steps, pulls up to {max(pulls):.0f} N, stretched by {longest:.1e}; at {x:.2f} m"
    )
    assert longest < 1e-4 and x > 10.0 and 0.1 < taut / len(pulls) < 1.0


if __name__ == "__main__":
    check(make())
