"""Newton's cradle: five steel balls in a row on hinged rods; the first one swings down, the last one flies up."""

import numpy as np

import sharnir as sh

BALLS, RADIUS, ROD, LIFT = 5, 0.03, 0.3, np.radians(30.0)


def make(dt: float = 1e-3) -> sh.Simulation:
    steel = sh.Material(friction=0.0, restitution=1.0)
    scene = sh.Scene(gravity=(0, 0, -9.81), contact=True)
    for i in range(BALLS):
        turn = -LIFT if i == 0 else 0.0
        top = np.array([2 * RADIUS * i, 0.0, ROD])
        place = top + ROD * np.array([np.sin(turn), 0, -np.cos(turn)])
        rotation = (0.0, -np.sin(turn / 2), 0.0, np.cos(turn / 2))
        scene.add_body(f"ball {i}", sh.Sphere(RADIUS), density=7800.0, position=place, rotation=rotation, material=steel)
        scene.add_joint(f"hinge {i}", sh.Revolute("y"), scene.world, f"ball {i}", position=top)
    return sh.Simulation(scene, dt)


def check(sim: sh.Simulation) -> None:
    """The last ball rises as high as the first one started, the others hardly move."""
    start, highest, others = sim.energy().total, 0.0, 0.0
    low = ROD - ROD * np.cos(LIFT)
    while sim.time < 0.85:
        sim.step()
        if sim.time > 0.35:
            highest = max(highest, sim.body(f"ball {BALLS - 1}").position[2])
            others = max(others, max(sim.body(f"ball {i}").position[2] for i in range(BALLS - 1)))
    print(f"the last ball rises {1e3 * highest:.2f} mm of {1e3 * low:.2f}, the others {1e3 * others:.3f} mm;")
    print(f"energy {sim.energy().total / start - 1:+.1e}")
    assert highest > 0.97 * low and others < 0.03 * low


if __name__ == "__main__":
    check(make())
