"""A six-axis arm follows a path: inverse dynamics says the torques, a weak servo mends what is left."""

import numpy as np

import sharnir as sh

LENGTHS, MASSES = (0.15, 0.45, 0.40, 0.10, 0.10, 0.08), (8.0, 9.0, 6.0, 2.0, 1.5, 0.8)
AXES = ("z", "y", "y", "x", "y", "x")
AMPLITUDE, RATE = np.array([0.6, 0.4, 0.5, 0.8, 0.6, 1.0]), np.array([1.0, 1.3, 0.9, 1.7, 1.1, 2.0])


def make(dt: float = 1e-3) -> sh.Simulation:
    scene, place, last = sh.Scene(), np.zeros(3), "world"
    for i, (length, mass, axis) in enumerate(zip(LENGTHS, MASSES, AXES, strict=True)):
        along = np.array([0, 0, 1.0]) if i < 1 else np.array([1.0, 0, 0])
        size = (0.08, 0.08, length) if i < 1 else (length, 0.07, 0.07)
        scene.add_body(f"link{i}", sh.Box(*size), mass=mass, position=place + along * length / 2)
        scene.add_joint(f"j{i}", sh.Revolute(axis), last, f"link{i}", position=place)
        place, last = place + along * length, f"link{i}"
    sim = sh.Simulation(scene, dt, tolerances=sh.Tolerances(iterations=100))
    for i, (a, w) in enumerate(zip(AMPLITUDE, RATE, strict=True)):
        sim.joint(f"j{i}").velocity = a * w
    return sim


def path(t: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Angles, speeds and accelerations wanted at a time."""
    s, c = np.sin(RATE * t), np.cos(RATE * t)
    return AMPLITUDE * s, AMPLITUDE * RATE * c, -AMPLITUDE * RATE**2 * s


def control(sim: sh.Simulation) -> None:
    """Torques of the path from inverse dynamics, and a weak correction of what is left."""
    q, v, a = path(sim.time + 0.5 * sim.dt)
    now = [(sim.joint(f"j{i}").position, sim.joint(f"j{i}").velocity) for i in range(6)]
    error = np.array([q[i] - now[i][0] for i in range(6)]), np.array([v[i] - now[i][1] for i in range(6)])
    torque = sh.dynamics.inverse_dynamics(sim.model, q, v, a + 100.0 * error[0] + 20.0 * error[1])
    for i in range(6):
        sim.joint(f"j{i}").effort = torque[i]


def check(sim: sh.Simulation) -> None:
    worst = 0.0
    while sim.time < 2.0:
        control(sim)
        sim.step()
        wanted = path(sim.time)[0]
        worst = max(worst, max(abs(sim.joint(f"j{i}").position - wanted[i]) for i in range(6)))
    print(f"the arm stays within {worst:.2e} rad of its path for 2 s")
    assert worst < 5e-3


if __name__ == "__main__":
    check(make())
