"""MF-4 drives up to a door, pushes it open with its arm, and drives off; the door, held by the friction of its hinge, stands.

Three phases of the door: pushed, it turns as the robot drives; let go, it slows at the constant rate that friction asks for;
then it stands, to the bit.
"""

import functools
import math

import numpy as np

import sharnir as sh
from sharnir.machines.controls import Controls
from sharnir.machines.mf4 import Mf4

DOOR, FRICTION, FOLLOW = 2.4, 20.0, "mf4"  # m along x, N·m
ROBOT, INERTIA = Mf4(), 26.49 * (0.9**2 + 0.04**2) / 12 + 26.49 * 0.45**2


def make(dt: float = 2e-3) -> sh.Simulation:
    scene = sh.Scene()
    floor = sh.Material(friction=0.8)
    scene.add_ground(material=floor)
    smooth = sh.Material(friction=0.2)
    scene.add_body(
        "door", sh.Box(0.04, 0.9, 2.0), mass=26.49, position=(DOOR, 0, 1.01), material=smooth, color="#a9744f"
    )  # fmt: skip
    hinge = sh.Revolute("z", limit=(0.0, 2.2), friction=FRICTION)
    scene.add_joint("hinge", hinge, scene.world, "door", position=(DOOR, 0.45, 1.01))
    ROBOT.add(scene, position=(0.0, -0.15, 0.0))
    return sh.Simulation(scene, dt, solver="sequential", iterations=12)


@functools.lru_cache(maxsize=1)
def controls(sim: sh.Simulation) -> Controls:
    return Controls(sim, ROBOT.inputs())


def control(sim: sh.Simulation) -> None:
    """Unfold the arm, drive up, push for a while, stop, and back off."""
    inputs, t = controls(sim), sim.time
    inputs["shoulder"], inputs["elbow"], inputs["front"], inputs["rear"] = 2.3, -2.3, 0.117, 0.117
    inputs["throttle"] = 0.0 if t < 4.0 else 0.5 if t < 7.0 else -0.5 if t < 9.0 else 0.0
    inputs.apply()


def watch(sim: sh.Simulation, until: float = 10.0) -> np.ndarray:
    """(steps, 3): time, angle and speed of the door."""
    seen = []
    while sim.time < until:
        control(sim)
        sim.step()
        door = sim.joint("hinge")
        seen.append((sim.time, door.position, door.velocity))
    return np.array(seen)


def check(sim: sh.Simulation) -> None:
    t, angle, speed = watch(sim).T
    rests = np.flatnonzero(speed == 0.0)
    stands = next(k for k in rests if k > np.argmax(speed))
    free = stands - 2  # friction stops it within its last step
    while free > 0 and abs((speed[free] - speed[free - 1]) / sim.dt + FRICTION / INERTIA) < 0.05 * FRICTION / INERTIA:
        free -= 1
    let_go = free + 1
    slope = np.polyfit(t[let_go : stands - 1], speed[let_go : stands - 1], 1)[0]
    exact = -FRICTION / INERTIA
    creep = float(np.ptp(angle[stands + 1 :]))
    print(
        f"let go at {math.degrees(angle[let_go]):.2f}°, {speed[let_go]:.3f} rad/s; slows by {slope:.5f}, −M/J {exact:.5f} rad/s²;"
    )
    print(f"stands at {math.degrees(angle[-1]):.2f}°, moves by {creep:.1e} rad in {t[-1] - t[stands]:.1f} s")
    assert angle[-1] > 0.3 and abs(slope / exact - 1) < 0.01 and creep == 0.0


if __name__ == "__main__":
    check(make())
