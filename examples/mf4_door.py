"""MF-4 drives up to a door, pushes it open with its arm and drives off; the door, held by the friction of its hinge, stands.

Pushed, the door turns as the robot drives; let go, it slows at the constant rate of its friction; then it stands, to the bit.
"""

import math

import numpy as np

import sharnir as sh
from sharnir.machine_models.mf4 import Mf4

DOOR, FRICTION, FOLLOW = 2.4, 20.0, "mf4"  # m along x, N·m
ROBOT, INERTIA = Mf4(), 26.49 * (0.9**2 + 0.04**2) / 12 + 26.49 * 0.45**2

FRAME = sh.Compound(
    sh.Box(0.12, 0.08, 2.1, position=(0, 0.51, 1.05)), sh.Box(0.12, 0.08, 2.1, position=(0, -0.51, 1.05)),
    sh.Box(0.12, 1.1, 0.08, position=(0, 0, 2.1)),
)  # fmt: skip
"""Two posts and a lintel; a picture only."""


def make(dt: float = 4e-3) -> sh.Simulation:
    scene, smooth = sh.Scene(), sh.Material(friction=0.2)
    scene.add_ground(material=sh.Material(friction=0.8))
    scene.add_body("door", sh.Box(0.04, 0.9, 2.0), mass=26.49, position=(DOOR, 0, 1.01), material=smooth, color="#a9744f")
    hinge = sh.Revolute("z", limit=(0.0, 2.2), friction=FRICTION)
    scene.add_joint("hinge", hinge, scene.world, "door", position=(DOOR, 0.45, 1.01))
    scene.add_body("frame", FRAME, position=(DOOR, 0, 0), motion="fixed", collide=False, color="#d9d4c7")
    ROBOT.add(scene, position=(0.0, -0.15, 0.0))
    for given in ROBOT.inputs():
        scene.add_input(given)
    return sh.Simulation(scene, dt, solver="sequential", tolerances=sh.Tolerances(iterations=30))


def control(sim: sh.Simulation) -> None:
    """Unfold the arm, drive up, push for a while, stop, and back off."""
    inputs, t = sim.inputs, sim.time
    inputs["shoulder"], inputs["elbow"], inputs["front"], inputs["rear"] = 2.3, -2.3, 0.117, 0.117
    inputs["throttle"] = 0.0 if t < 4.0 else 0.5 if t < 7.0 else -0.5 if t < 9.0 else 0.0


def check(sim: sh.Simulation) -> None:
    seen, door, exact = [], sim.joint("hinge"), -FRICTION / INERTIA
    while sim.time < 10.0:
        control(sim)
        sim.step()
        seen.append((sim.time, door.position, door.velocity))
    t, angle, speed = np.array(seen).T
    stands = next(k for k in np.flatnonzero(speed == 0.0) if k > np.argmax(speed))
    let_go = stands - 2  # friction stops it within its last step
    while let_go > 0 and abs((speed[let_go] - speed[let_go - 1]) / sim.dt / exact - 1) < 0.05:
        let_go -= 1
    slope = np.polyfit(t[let_go + 1 : stands - 1], speed[let_go + 1 : stands - 1], 1)[0]
    creep = float(np.ptp(angle[stands + 1 :]))
    told = f"let go at {math.degrees(angle[let_go]):.2f}°, {speed[let_go]:.3f} rad/s; slows by {slope:.5f} rad/s²"
    print(f"{told}, −M/J = {exact:.5f} rad/s²;")
    print(f"stands at {math.degrees(angle[-1]):.2f}°, moves by {creep:.1e} rad in {t[-1] - t[stands]:.1f} s")
    assert angle[-1] > 0.3 and abs(slope / exact - 1) < 0.01 and creep == 0.0


if __name__ == "__main__":
    check(make())
