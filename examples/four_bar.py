"""A crank, a coupler and a rocker: a closed loop, described unassembled, that closes itself and then turns round and round."""

import numpy as np

import sharnir as sh
from sharnir.core.spatial import quat_exp

CRANK, COUPLER, ROCKER, GROUND = 0.3, 0.9, 0.7, 0.8


def make(dt: float = 1e-3) -> sh.Simulation:
    scene = sh.Scene(gravity=(0, 0, 0))
    starts = {
        "crank": (CRANK, (0, 0, 0.1), -1.5),
        "coupler": (COUPLER, (0.4, 0, 0.6), -0.4),
        "rocker": (ROCKER, (0.8, 0, 0.3), -1.8),
    }
    for name, (length, place, angle) in starts.items():
        scene.add_body(name, sh.Box(length, 0.03, 0.03), mass=length, position=place, rotation=quat_exp(np.array([0, angle, 0])))
    still, hinge = (0, 0, 0, 1), sh.Revolute("y")

    def ends(length: float) -> tuple:
        return ((-length / 2, 0, 0), still), ((length / 2, 0, 0), still)

    scene.add_joint("A", hinge, scene.world, "crank", parent_frame=((0, 0, 0), still), child_frame=ends(CRANK)[0])
    scene.add_joint("B", hinge, "crank", "coupler", parent_frame=ends(CRANK)[1], child_frame=ends(COUPLER)[0])
    scene.add_joint("C", hinge, "coupler", "rocker", parent_frame=ends(COUPLER)[1], child_frame=ends(ROCKER)[1])
    scene.add_joint("D", hinge, scene.world, "rocker", parent_frame=((GROUND, 0, 0), still), child_frame=ends(ROCKER)[0])
    sim = sh.Simulation(scene, dt)
    sim.joint("A").velocity = 6.0
    return sim


def check(sim: sh.Simulation) -> None:
    energy, gap = sim.energy().total, 0.0
    start = sim.joint("A").position
    for _ in range(200):
        sim.run(0.01)
        gap = max(gap, sim.constraint_error().max())
    turns = (sim.joint("A").position - start) / (2 * np.pi)
    drift = sim.energy().total / energy - 1
    print(f"crank made {turns:.2f} turns, loop gap {gap:.1e} m, energy changed by {drift:+.1e}, redundant rows: {sim.redundant}")
    assert abs(turns) > 1.5 and gap < 6e-5 and abs(drift) < 2e-3 and len(sim.redundant) == 3


if __name__ == "__main__":
    check(make())
