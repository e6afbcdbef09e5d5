"""A DC motor spins a flywheel up through a gear: the current leaps, and falls as the back-EMF grows with the speed.

J u' = N k i,  L i' = V − R i − N k u,  J = flywheel + N² rotor: two exponentials with s² + (R / L) s + (N k)² / (L J) = 0.
From rest the speed is u = u∞ (1 + (s₂ e^{s₁t} − s₁ e^{s₂t}) / (s₁ − s₂)), u∞ = V / (N k), and the current J u' / (N k).
"""

import numpy as np

import sharnir as sh

MOTOR = sh.DCMotor(voltage=24.0, resistance=1.0, inductance=0.05, torque_constant=0.05, gear_ratio=4.0, rotor_inertia=2e-5)
RADIUS, WIDTH, MASS = 0.1, 0.03, 4.0


def make(dt: float = 1e-4) -> sh.Simulation:
    scene = sh.Scene(gravity=(0, 0, -9.81))
    scene.add_body("stator", sh.Box(0.1, 0.1, 0.1), position=(0, 0, -0.1), motion="fixed")
    scene.add_body("flywheel", sh.Cylinder(RADIUS, WIDTH), mass=MASS)
    scene.add_joint("shaft", sh.Revolute("z", drive=MOTOR), "stator", "flywheel", position=(0, 0, 0))
    return sh.Simulation(scene, dt)


def closed_form(t: float) -> tuple[float, float]:
    """Speed (rad/s) and current (A) at a time after the switch was closed."""
    inertia = 0.5 * MASS * RADIUS**2 + MOTOR.gear_ratio**2 * MOTOR.rotor_inertia
    nk, l = MOTOR.gear_ratio * MOTOR.torque_constant, MOTOR.inductance
    s1, s2 = np.roots([1.0, MOTOR.resistance / l, nk**2 / (l * inertia)])
    final = MOTOR.voltage / nk
    speed = final * (1 + (s2 * np.exp(s1 * t) - s1 * np.exp(s2 * t)) / (s1 - s2))
    return speed, inertia / nk * final * s1 * s2 * (np.exp(s1 * t) - np.exp(s2 * t)) / (s1 - s2)


def check(sim: sh.Simulation) -> None:
    shaft, rows = sim.joint("shaft"), []
    for _ in range(300):
        sim.run(0.01)
        rows.append((shaft.velocity, shaft.drive.current, *closed_form(sim.time)))
    speed, current, exact_speed, exact_current = np.array(rows).T
    worst = [np.abs(a - b).max() / np.abs(b).max() for a, b in ((speed, exact_speed), (current, exact_current))]
    print(
        f"{speed[-1]:.3f} rad/s after 3 s (closed form {exact_speed[-1]:.3f}), peak current {current.max():.3f} A "
        f"({exact_current.max():.3f}); at most {100 * worst[0]:.3f} % of the final speed, {100 * worst[1]:.3f} % of the peak off"
    )
    assert max(worst) < 5e-3


if __name__ == "__main__":
    check(make())
