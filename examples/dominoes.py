"""A row of twenty dominoes; the first one is pushed, and the wave runs to the end at a steady speed."""

import numpy as np

import sharnir as sh

COUNT, GAP, SIZE = 20, 0.025, (0.0075, 0.024, 0.048)  # m
PUSH = 5.0  # rad/s, with which the first one is tipped


def make(dt: float = 1e-3) -> sh.Simulation:
    plastic = sh.Material(friction=0.3)
    scene = sh.Scene(gravity=(0, 0, -9.81))
    scene.add_ground(material=sh.Material(friction=0.9))
    for i in range(COUNT):
        tips = PUSH if i == 0 else 0.0  # rad/s, about its lower edge
        scene.add_body(
            f"domino {i:02d}", sh.Box(*SIZE), mass=0.01, position=(GAP * i, 0, SIZE[2] / 2), material=plastic,
            angular_velocity=(0, tips, 0), velocity=(tips * SIZE[2] / 2, 0, tips * SIZE[0] / 2),
        )  # fmt: skip
    return sh.Simulation(scene, dt)


def check(sim: sh.Simulation) -> None:
    """All fall, one after the other."""
    fell: dict[int, float] = {}
    while sim.time < 2.5 and len(fell) < COUNT:
        sim.step(2)
        for i in range(COUNT):
            q = sim.body(f"domino {i:02d}").rotation
            if i not in fell and 2 * np.arcsin(min(1.0, abs(q[1]))) > np.radians(45):
                fell[i] = sim.time
    times = np.array([fell[i] for i in range(COUNT)])
    speed = GAP * 10 / (times[14] - times[4])
    print(f"all {COUNT} fell within {times.max():.2f} s; the wave runs at {speed:.2f} m/s")
    assert (np.diff(times) >= -2e-3).all() and 0.4 < speed < 1.5


if __name__ == "__main__":
    check(make())
