"""A point mass on a massless rod, released from horizontal: it swings through 180° and comes back after 2.3678 s."""

import numpy as np

import sharnir as sh


def make(dt: float = 1e-3) -> sh.Simulation:
    scene = sh.Scene(gravity=(0, 0, -9.81))
    bob = scene.add_body("bob", sh.Sphere(0.05), mass=1.0, inertia=(1e-9, 1e-9, 1e-9), position=(-1, 0, 0))
    scene.add_joint("rod", sh.Distance(), scene.world, bob, position=[(0, 0, 0), (-1, 0, 0)])
    return sh.Simulation(scene, dt)


def check(sim: sh.Simulation) -> None:
    sim.run(1.0)
    error = np.linalg.norm(sim.body("bob").position - [0.986291751132, 0, -0.165010853126])
    print(f"bob at t = 1 s: {error:.2e} m from the exact place")
    assert error < 1.2e-3


if __name__ == "__main__":
    check(make())
