"""Two rods hinged end to end, released from horizontal: a chaotic dance whose energy stays what it was."""

import numpy as np

import sharnir as sh
from sharnir.core.spatial import quat_rotate


def make(dt: float = 1e-3) -> sh.Simulation:
    scene = sh.Scene(gravity=(0, 0, -9.81))
    rod = sh.Box(0.5, 0.02, 0.02)
    scene.add_body("upper", rod, mass=5.0, inertia=(1e-3, 5 / 48, 5 / 48), position=(0.25, 0, 0))
    scene.add_body("lower", rod, mass=5.0, inertia=(1e-3, 5 / 48, 5 / 48), position=(0.75, 0, 0))
    scene.add_joint("shoulder", sh.Revolute("y"), scene.world, "upper", position=(0, 0, 0))
    scene.add_joint("elbow", sh.Revolute("y"), "upper", "lower", position=(0.5, 0, 0))
    return sh.Simulation(scene, dt)


def check(sim: sh.Simulation) -> None:
    sim.run(1.0)
    lower = sim.body("lower")
    tip = lower.position + quat_rotate(lower.rotation, np.array([0.25, 0, 0]))
    error = np.linalg.norm(tip - [-0.9644093773, 0, 0.0420495857])
    print(f"tip at t = 1 s: {error:.2e} m from an independent integration; energy {sim.energy().total:+.4f} J of 0")
    assert error < 3e-3


if __name__ == "__main__":
    check(make())
