"""A block and tackle of four parts: a drum with a motor of 800 N·m lifts 1 t, which it could not lift on a single line.

The cable has one length, shared by all parts, and one tension: a quarter of the load. A brake at the drum holds it in the end.
"""

import numpy as np

import sharnir as sh

LOAD, R, DRUM, TORQUE, G = 1000.0, 0.12, 0.2, 800.0, 9.81  # kg, m, m, N·m, m/s²
ACROSS = (np.sin(np.pi / 4), 0, 0, np.cos(np.pi / 4))  # z of a cylinder along −y


def make(dt: float = 5e-3) -> sh.Simulation:
    scene = sh.Scene()
    scene.add_body("beam", sh.Box(2.0, 0.3, 0.2), position=(4 * R, 0, 4.2), motion="fixed", color="#5b6470")
    scene.add_body("load", sh.Box(1.0, 0.8, 0.8), mass=LOAD, position=(4 * R, 0, 0.8), color="#c0392b")
    at = (9 * R + DRUM, 0, 0.6)
    scene.add_body("drum", sh.Cylinder(DRUM, 0.6), mass=60.0, position=at, rotation=ACROSS, color="#f2b134")
    winch = sh.Revolute([0, -1, 0], drive=sh.Servo(kd=2e4, max_force=TORQUE))
    scene.add_joint("winch", winch, scene.world, "drum", position=at)
    path = [
        ("beam", (-3 * R, 0, -0.2)),
        sh.Sheave("load", R, at=(-2 * R, 0, 0.6), axis="-y"),
        sh.Sheave("beam", R, at=(0, 0, -0.2)),
        sh.Sheave("load", R, at=(2 * R, 0, 0.6), axis="-y"),
        sh.Sheave("beam", R, at=(4 * R, 0, -0.2)),
        sh.Drum("drum", DRUM, axis="z"),
    ]
    scene.add_cable("tackle", path)
    return sh.Simulation(scene, dt)


def control(sim: sh.Simulation) -> None:
    """Up for five seconds, then the brake."""
    winch = sim.joint("winch")
    winch.drive.velocity = 2.0 * max(0.0, min(sim.time, 1.0, 5.0 - sim.time))
    if sim.time >= 5.5 and winch.friction.static == 0.0:
        winch.drive.kd, winch.friction = 0.0, 2000.0


def check(sim: sh.Simulation) -> None:
    rope, load, most, apart, start = sim.cable("tackle"), sim.body("load"), 0.0, 0.0, sim.body("load").position[2]
    while sim.time < 7.0:
        control(sim)
        sim.step()
        apart = max(apart, np.ptp(rope.tension) / rope.tension[0])
        most = max(most, abs(sim.joint("winch").drive.force))
    risen, taken = load.position[2] - start, DRUM * sim.joint("winch").position
    print(f"load up {risen:.6f} m, a quarter of {taken:.6f} m of cable; drum at most {most:.0f} N·m, tensions apart {apart:.0e}")
    print(f"held by {rope.tension[0]:.3f} N in each part: load/4 is {LOAD * G / 4:.3f} N; single line {LOAD * G * DRUM:.0f} N·m")
    assert abs(risen / (taken / 4) - 1) < 1e-6 and apart < 1e-9 and most < 0.99 * TORQUE < LOAD * G * DRUM
    assert abs(rope.tension[0] / (LOAD * G / 4) - 1) < 1e-3


if __name__ == "__main__":
    check(make())
