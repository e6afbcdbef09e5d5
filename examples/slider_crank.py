"""A crank drives a piston through a connecting rod under a constant torque: rotation becomes stroke."""

import numpy as np

import sharnir as sh
from sharnir.core.spatial import frame_from_axes

CRANK, ROD = 0.1, 0.3


def make(dt: float = 1e-3) -> sh.Simulation:
    scene = sh.Scene(gravity=(0, 0, -9.81))
    pin, piston = np.array([0, 0, CRANK]), np.array([np.sqrt(ROD**2 - CRANK**2), 0, 0])
    lean = frame_from_axes(piston - pin, slots=(0, 2))
    scene.add_body("crank", sh.Cylinder(0.15, 0.04, rotation=(np.sqrt(0.5), 0, 0, np.sqrt(0.5))), mass=5.0)
    scene.add_body("rod", sh.Box(ROD, 0.03, 0.02), mass=0.5, position=(pin + piston) / 2, rotation=lean)
    scene.add_body("piston", sh.Box(0.08, 0.08, 0.08), mass=1.0, position=piston)
    scene.add_joint("axle", sh.Revolute("y"), scene.world, "crank", position=(0, 0, 0))
    scene.add_joint("pin", sh.Revolute("y"), "crank", "rod", position=pin)
    scene.add_joint("wrist", sh.Revolute("y"), "rod", "piston", position=piston)
    scene.add_joint("bore", sh.Prismatic("x"), scene.world, "piston", position=piston)
    sim = sh.Simulation(scene, dt)
    sim.joint("axle").effort = 2.0
    return sim


def check(sim: sh.Simulation) -> None:
    axle, bore = sim.joint("axle"), sim.joint("bore")
    start, worst = sim.energy().total, 0.0
    for _ in range(150):
        sim.run(0.01)
        x = CRANK * np.sin(axle.position) + np.sqrt(ROD**2 - (CRANK * np.cos(axle.position)) ** 2)  # the pin starts on top
        worst = max(worst, abs(bore.position + np.sqrt(ROD**2 - CRANK**2) - x))
    gain, work = sim.energy().total - start, 2.0 * axle.position
    turns = axle.position / (2 * np.pi)
    print(f"{turns:.2f} turns; stroke {worst:.1e} m off the crank formula; energy {gain:.3f} J of {work:.3f} J put in")
    assert worst < 1e-5 and abs(gain - work) < 0.02 * work


if __name__ == "__main__":
    check(make())
