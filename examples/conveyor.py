"""Boxes dropped on a belt are carried along, pushed off by a slanted rail, and slide down a chute into a tray."""

import numpy as np

import sharnir as sh
from sharnir.core.spatial import quat_exp

SPEED = 1.0  # m/s


def make(dt: float = 2e-3) -> sh.Simulation:
    rubber, steel = sh.Material(friction=0.6), sh.Material(friction=0.1)
    scene = sh.Scene(gravity=(0, 0, -9.81))
    scene.add_ground(material=rubber)
    scene.add_body(
        "belt", sh.Box(4.0, 0.6, 0.1), motion="fixed", position=(1.5, 0, 0.75), material=rubber, surface_velocity=(SPEED, 0, 0)
    )
    turn = quat_exp(np.array([0, 0, np.radians(-35)]))
    scene.add_body("rail", sh.Box(1.2, 0.03, 0.2), motion="fixed", position=(2.3, 0.0, 0.9), rotation=turn, material=steel)
    for i in range(4):
        size = (0.2, 0.2, 0.12) if i % 2 else (0.16, 0.12, 0.16)
        scene.add_body(f"parcel {i}", sh.Box(*size), mass=1.0 + i, position=(-0.2 + 0.35 * i, 0.05, 0.95), material=rubber)
    return sh.Simulation(scene, dt)


def check(sim: sh.Simulation) -> None:
    """All parcels leave the belt over its side and come to rest on the ground."""
    sim.run(6.0)
    parcels = [sim.body(f"parcel {i}") for i in range(4)]
    print("; ".join(f"{p.name}: {np.round(p.position, 2)} m" for p in parcels))
    assert all(p.position[2] < 0.3 and p.position[1] < -0.25 for p in parcels)
    assert all(np.linalg.norm(p.velocity) < 1e-2 for p in parcels)


if __name__ == "__main__":
    check(make())
