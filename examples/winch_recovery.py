"""A vehicle of 2.5 t is stuck on a wet slope: its winch alone does not move it; over a snatch block at a tree it does.

The cable runs from the winch's drum to a block on the tree and back to the vehicle, so that it is pulled with twice the tension.
"""

import numpy as np

import sharnir as sh

MASS, SLOPE, MU, DRUM, TORQUE, G = 2500.0, np.radians(15), 0.7, 0.08, 1500.0, 9.81  # kg, rad, –, m, N·m, m/s²


def make(dt: float = 5e-3, blocks: int = 1) -> sh.Simulation:
    up = np.array([np.cos(SLOPE), 0, np.sin(SLOPE)])
    normal = np.array([-np.sin(SLOPE), 0, np.cos(SLOPE)])
    turn = (0, -np.sin(SLOPE / 2), 0, np.cos(SLOPE / 2))
    scene = sh.Scene()
    mud = sh.Material(friction=MU)
    scene.add_ground(0.0, normal=normal, material=mud)
    hull = sh.Box(3.6, 1.7, 0.9)
    scene.add_body("vehicle", hull, mass=MASS, material=mud, position=0.45 * normal, rotation=turn, color="#4e79a7")
    tree = 14.0 * up + 0.6 * normal
    scene.add_body(
        "tree", sh.Cylinder(0.25, 4.0), motion="fixed", position=14.3 * up + (0, 0, 2.0), collide=False, color="#59a14f"
    )
    nose = 1.9 * up + 0.45 * normal
    scene.add_body(
        "drum",
        sh.Cylinder(DRUM, 0.3),
        mass=15.0,
        position=nose,
        rotation=(np.sin(np.pi / 4), 0, 0, np.cos(np.pi / 4)),
        collide=False,
    )
    winch = sh.Revolute("y", drive=sh.Servo(torque=0.0), friction=10.0)
    scene.add_joint("winch", winch, "vehicle", "drum", position=nose)
    local = tree - np.array([14.3 * up[0], 0, 14.3 * up[2] + 2.0])
    path = [sh.Drum("drum", DRUM, axis="z"), ("tree", local)]
    if blocks:
        path = [sh.Drum("drum", DRUM, axis="z"), sh.Sheave("tree", 0.15, at=local, axis="-y"), ("vehicle", (1.8, 0, 0.4))]
    scene.add_cable("line", path)
    return sh.Simulation(scene, dt)


def control(sim: sh.Simulation) -> None:
    """The winch pulls harder and harder, up to its torque; no faster than 0.5 m/s of cable."""
    speed = abs(sim.joint("winch").velocity) * DRUM
    sim.joint("winch").drive.torque = TORQUE * min(sim.time, 1.0) * min(1.0, max(0.0, 5.0 * (0.5 - speed)))


def check(sim: sh.Simulation) -> None:
    needed = MASS * G * (np.sin(SLOPE) + MU * np.cos(SLOPE))
    for blocks in (0, 1):
        sim = make(sim.dt, blocks)
        start, tension = sim.body("vehicle").position, 0.0
        while sim.time < 8.0:
            control(sim)
            sim.step()
            tension = max(tension, sim.cable("line").tension.max())
        way = np.linalg.norm(sim.body("vehicle").position - start)
        print(f"{blocks} blocks: {way:.4f} m up, tension at most {tension:.0f} N; {needed:.0f} N are needed")
        assert (way > 1.0) == bool(blocks) and (blocks or way < 0.01)


if __name__ == "__main__":
    check(make())
