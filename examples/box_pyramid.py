"""A pyramid of 55 boxes stands still: no box sinks or slides by more than a tenth of a millimetre."""

import numpy as np

import sharnir as sh

BASE, SIZE = 10, 0.2


def make(dt: float = 1e-3) -> sh.Simulation:
    wood = sh.Material(friction=0.6)
    scene = sh.Scene(gravity=(0, 0, -9.81))
    scene.add_ground(material=wood)
    for row in range(BASE):
        for k in range(BASE - row):
            place = ((k - (BASE - row - 1) / 2) * 1.025 * SIZE, 0.0, SIZE * (row + 0.5))
            scene.add_body(f"box {row}.{k}", sh.Box(SIZE, SIZE, SIZE), mass=8.0, position=place, material=wood)
    return sh.Simulation(scene, dt)


def check(sim: sh.Simulation) -> None:
    """One second."""
    boxes = [sim.body(name) for name in sim.model.body_names if name.startswith("box")]
    start = np.array([box.position for box in boxes])
    sim.run(1.0)
    moved = np.linalg.norm(np.array([box.position for box in boxes]) - start, axis=1).max()
    weight = -sim.body("world").contact_force[2]
    deepest = -sim.contacts().gap.min()
    print(f"moved by at most {1e3 * moved:.4f} mm, overlap {1e3 * deepest:.4f} mm, the ground carries {weight:.2f} N")
    assert moved < 1e-4 and deepest < 2e-5
    assert abs(weight - 55 * 8.0 * 9.81) < 1.0


if __name__ == "__main__":
    check(make())
