"""A door with dry friction in its hinge is pushed for a third of a second, coasts with linearly falling speed, and stands still.

The door of figures 6 and 7 of the friction paper: pushed until 0.33 s, standing at 0.87 s after 37.62°.
"""

import numpy as np

import sharnir as sh

WIDTH, THICKNESS, INERTIA = 0.9, 0.04, 7.155  # m, m, kg·m² about the hinge
MASS = INERTIA / (WIDTH**2 / 3 + THICKNESS**2 / 12)
FRICTION, PUSH, SPEED = 20.0, 0.33, 1.5094  # N·m, s, rad/s at the end of the push
TORQUE = INERTIA * SPEED / PUSH + FRICTION


def make(dt: float = 0.01) -> sh.Simulation:
    scene = sh.Scene(gravity=(0, 0, -9.81))
    door = scene.add_body("door", sh.Box(WIDTH, THICKNESS, 2.0), mass=MASS, position=(WIDTH / 2, 0, 1))
    scene.add_joint("hinge", sh.Revolute("z", limit=(0, 2.0), friction=FRICTION), scene.world, door, position=(0, 0, 1))
    sim = sh.Simulation(scene, dt, solver="sequential")
    control(sim)
    return sim


def control(sim: sh.Simulation) -> None:
    """Push until it is time to let go; the viewer calls this before every picture."""
    sim.joint("hinge").effort = TORQUE if sim.time < PUSH - 0.5 * sim.dt else 0.0


def check(sim: sh.Simulation) -> None:
    hinge = sim.joint("hinge")
    sim.run(PUSH)
    pushed, coasting = hinge.velocity, []
    while not hinge.stuck:
        control(sim)
        sim.step()
        coasting.append(hinge.velocity)
    bend = np.abs(np.diff(coasting[:-2], 2)).max() / pushed  # without the step in which it stops, and the one that tells so
    stopped, angle, force = sim.time, hinge.position, hinge.reaction[0]
    sim.run(60.0)
    print(
        f"{pushed:.4f} rad/s after the push, then a straight line to {bend:.0e} of it; stands at {stopped:.2f} s "
        f"after {np.degrees(angle):.2f}° and turns by {hinge.position - angle:g} in 60 s; the hinge carries {force[2]:.2f} N"
    )
    assert abs(pushed - SPEED) < 1e-4 and bend < 1e-6
    assert abs(stopped - 0.87) < 0.011 and abs(np.degrees(angle) - 37.62) < 0.2
    assert hinge.position == angle and abs(hinge.velocity) < 1e-15 and abs(force[2] - MASS * 9.81) < 1e-6


if __name__ == "__main__":
    check(make())
