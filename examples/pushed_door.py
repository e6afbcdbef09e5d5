"""An arm's hand pushes a door open for 0.33 s, stops, and the door swings on: the three phases of the friction paper, by contact.

Pushed, it turns faster evenly; dry friction in its hinge slows it evenly; it stands at 0.87 s after 37.62°, as in the paper.
"""

import numpy as np

import sharnir as sh

WIDTH, THICKNESS, INERTIA = 0.9, 0.04, 7.155  # m, m, kg·m² about the hinge
MASS = INERTIA / (WIDTH**2 / 3 + THICKNESS**2 / 12)
FRICTION, PUSH, SPEED = 20.0, 0.33, 1.5094  # N·m, s, rad/s of the door at the end of the push
REACH, HAND, POST = 0.6, 0.05, 1.3  # m: the arm, its hand, and from the door's hinge to the arm's


def make(dt: float = 1e-3) -> sh.Simulation:
    scene = sh.Scene(gravity=(0, 0, -9.81), contact=True)
    skin = sh.Material(friction=0.3)
    door = scene.add_body("door", sh.Box(WIDTH, THICKNESS, 2.0), mass=MASS, position=(WIDTH / 2, 0, 1), material=skin)
    scene.add_joint("hinge", sh.Revolute("z", limit=(0, 2.0), friction=FRICTION), scene.world, door, position=(0, 0, 1))
    post = (POST, -THICKNESS / 2 - HAND, 1.0)  # the arm turns about it, from along −x towards +y
    hand = scene.add_body("hand", sh.Sphere(HAND), mass=3.0, position=(POST - REACH, post[1], 1.0), material=skin)
    servo = sh.Servo(position=0.0, velocity=0.0, kp=1e6, kd=2000.0, max_force=200.0)
    scene.add_joint("shoulder", sh.Revolute("z", drive=servo), scene.world, hand, position=post)
    sim = sh.Simulation(scene, dt)
    control(sim)
    return sim


def arm_angle(t: float) -> float:
    """Of the arm (rad) while its hand touches a door that turns by ½ SPEED t²/PUSH: R sin(θ + φ) = p sin θ − h (1 − cos θ)."""
    turned = 0.5 * SPEED / PUSH * t * t
    return np.arcsin((POST * np.sin(turned) - (THICKNESS / 2 + HAND) * (1 - np.cos(turned))) / REACH) - turned


def control(sim: sh.Simulation) -> None:
    """Push along, until it is time to stop; the viewer calls this before every picture."""
    drive, t, dt = sim.joint("shoulder").drive, sim.time + sim.dt, sim.dt
    pushes = t < PUSH + 0.5 * dt
    drive.position = -arm_angle(min(t, PUSH))
    drive.velocity = -(arm_angle(t) - arm_angle(t - dt)) / dt if pushes else 0.0


def check(sim: sh.Simulation) -> None:
    hinge, rows = sim.joint("hinge"), []
    while not (hinge.stuck and sim.time > PUSH) and sim.time < 3.0:
        control(sim)
        sim.step()
        rows.append((sim.time, hinge.velocity, np.linalg.norm(sim.contact_force("door", "hand"))))
    time, speed, force = np.array(rows).T
    last = int(np.flatnonzero(force)[-1])
    free = speed[last + 2 : -2]
    line = np.polyfit(time[last + 2 : -2], free, 1)
    off = np.abs(np.polyval(line, time[last + 2 : -2]) - free).max() / free[0]
    stood, angle = sim.time, hinge.position
    sim.run(2.0)
    print(f"pushed until {time[last]:.3f} s with at most {force.max():.0f} N, to {speed[last + 1]:.3f} rad/s")
    print(f"swings free for {stood - time[last]:.3f} s, slowed by {-line[0]:.5f} rad/s² (friction / inertia:"
          f" {FRICTION / INERTIA:.5f}), straight to {off:.0e} of its speed")  # fmt: skip
    print(f"stands at {stood:.3f} s after {np.degrees(angle):.2f}°, and turns by {hinge.position - angle:g} in 2 s")
    assert PUSH - 0.01 < time[last] < PUSH + 0.01 and len(free) > 100 and abs(line[0] * INERTIA / FRICTION + 1) < 1e-4
    assert off < 1e-4 and hinge.position == angle and abs(stood - 0.87) < 0.005 and abs(np.degrees(angle) - 37.62) < 0.1


if __name__ == "__main__":
    check(make())
