"""A rope of 2 m hung over 1 m: it starts as a catenary and stays one; pulled aside and let go, it swings and comes back."""

import numpy as np

import sharnir as sh

SAG, TENSION, ANGLE = 0.796388355860, 1.026028570938, 77.066815  # m, of ρ g, degrees; exact


def make(dt: float = 5e-3) -> sh.Simulation:
    scene = sh.Scene(gravity=(0, 0, -9.81))
    scene.add_rope("rope", (0, 0, 0), (1, 0, 0), length=2.0, segments=50, radius=0.01, attach=("world", "world"), drag=0.3)
    return sh.Simulation(scene, dt)


def check(sim: sh.Simulation) -> None:
    rope = sim.rope("rope")

    def compare() -> float:
        force = rope.end_force[0] / (1000 * np.pi * 0.01**2 * 9.81)
        angle = np.degrees(np.arctan2(force[2], -force[0]))
        off = -rope.position[:, 2].min() / SAG - 1, np.linalg.norm(force) / TENSION - 1, angle / ANGLE - 1
        print(f"sag {off[0]:+.1e}, tension at the end {off[1]:+.1e}, angle there {off[2]:+.1e}; stretch {rope.stretch:.0e}")
        return float(np.abs(off).max())

    sim.run(1.0)
    start = compare()
    rope.apply_force(25, (1.5, 2.0, 0.0), once=False)
    sim.run(3.0)
    print(f"pulled aside: the middle at {rope.position[25].round(3)}")
    rope.apply_force(25, (0, 0, 0), once=False)
    sim.run(30.0)
    assert start < 3e-3 and compare() < 3e-3 and rope.stretch < 1e-6


if __name__ == "__main__":
    check(make())
