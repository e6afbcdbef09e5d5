"""A ball whose centre of mass lies low is spun fast: it turns over and stands on its head, as sliding friction makes it do.

Friction acts at the foot, so it has no moment about the line from the centre of mass to the foot, turned to the vertical: L · a
(Jellett 1872) is kept on the way, whatever the friction.
"""

import numpy as np

import sharnir as sh

RADIUS, LOW, MASS, SPIN = 0.02, 0.004, 0.02, 140.0  # m, m below the middle, kg, rad/s
INERTIA = 0.4 * MASS * RADIUS**2  # kg·m², about all axes


def make(dt: float = 5e-4) -> sh.Simulation:
    scene = sh.Scene(gravity=(0, 0, -9.81))
    wood = sh.Material(friction=0.3)
    scene.add_ground(material=wood)
    lean = np.radians(5.0)
    scene.add_body(
        "top", sh.Sphere(RADIUS), mass=MASS, com=(0, 0, -LOW), inertia=(INERTIA, INERTIA, INERTIA), position=(0, 0, RADIUS),
        rotation=(np.sin(lean / 2), 0, 0, np.cos(lean / 2)), angular_velocity=(0, 0, SPIN), material=wood,
    )  # fmt: skip
    return sh.Simulation(scene, dt)


def upright(sim: sh.Simulation) -> float:
    """Cosine of the angle between the top's axis and the vertical: 1 as it is put down, −1 on its head."""
    x, y, *_ = sim.body("top").rotation
    return float(1 - 2 * (x * x + y * y))


def jellett(sim: sh.Simulation) -> float:
    """Spin times the way from the foot to the centre of mass, kg·m³/s."""
    top = sim.body("top")
    return float(INERTIA * np.dot(top.angular_velocity, top.com - top.position + (0, 0, RADIUS)))


def check(sim: sh.Simulation) -> None:
    start, kept, most, energy, gained = upright(sim), jellett(sim), 0.0, sim.energy().total, 0.0
    when = None
    while sim.time < 4.0 and (when is None or sim.time < when + 0.5):
        sim.step(20)
        most = max(most, abs(jellett(sim) / kept - 1))
        gained = max(gained, sim.energy().total - energy)
        if when is None and upright(sim) < -0.95:
            when = sim.time
    spin = sim.body("top").angular_velocity[2]
    assert when is not None
    print(f"from {start:.3f} to {upright(sim):.3f} upright, on its head after {when:.2f} s; it spins at {spin:.1f} rad/s")
    print(f"Jellett's number is kept to {most:.1e}; {1e3 * gained:.1e} mJ above the start")
    assert upright(sim) < -0.95 and spin > 0 and most < 0.02 and gained < 1e-6 * energy


if __name__ == "__main__":
    check(make())
