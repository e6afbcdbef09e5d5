"""A robot tows a trailer on 2.8 m of rope: slack at first, it comes taut, drags the trailer off and round a turn, lets it stand.

The trailer slides on a plane with dry friction; steps of 15 ms, soft rope of the paper (E = 0.05 MPa, G = 0.1 MPa).
"""

import numpy as np

import sharnir as sh
from sharnir.core.spatial import quat_exp

SPEED, TURN = 0.8, 0.25  # m/s, rad/s
MASS, FRICTION = 40.0, 30.0  # kg, N


def pose(t: float) -> tuple[np.ndarray, np.ndarray]:
    """Speeds up in 2 s, straight until 6 s, then round a curve; stops within a second at 14 s."""
    s = SPEED * (min(t, 2.0) ** 2 / 4 + max(min(t, 14.0) - 2.0, 0.0) + 0.5 * (1 - (1 - np.clip(t - 14.0, 0, 1)) ** 2))
    straight, R = SPEED * (1 + 4), SPEED / TURN
    turn = max(s - straight, 0.0) / R
    place = np.array([min(s, straight) + R * np.sin(turn), R * (1 - np.cos(turn)), 0.3])
    return place, quat_exp(np.array([0, 0, turn]))


def make(dt: float = 15e-3) -> sh.Simulation:
    scene = sh.Scene(gravity=(0, 0, -9.81))
    scene.add_body("robot", sh.Box(0.8, 0.5, 0.4), motion="kinematic", path=pose)
    scene.add_body("trailer", sh.Box(0.8, 0.5, 0.4), mass=MASS, position=(-3.2, 0, 0.3))
    scene.add_joint("ground", sh.Planar("z", friction=FRICTION), "world", "trailer", position=(-3.2, 0, 0.3))
    scene.add_rope(
        "rope", (-0.4, 0, 0.3), (-2.8, 0, 0.3), length=2.8, segments=40, radius=0.015, density=1200.0, E=0.05e6, G=0.1e6,
        damping=0.05, drag=0.05, attach=("robot", "trailer"),
    )  # fmt: skip
    return sh.Simulation(scene, dt)


def check(sim: sh.Simulation) -> None:
    rope, trailer = sim.rope("rope"), sim.body("trailer")
    started, most, stretch, taut = None, 0.0, 0.0, []
    while sim.time < 18.0:
        sim.step()
        stretch, most = max(stretch, rope.stretch), max(most, rope.tension.max())
        if started is None and np.linalg.norm(trailer.velocity) > 0.05:
            started = sim.time
        if 8.0 < sim.time < 13.0:
            taut.append(rope.tension.mean())
    print(f"starts at {started:.2f} s; pull {np.mean(taut):.1f} N in the turn (friction {FRICTION:.0f}), at most {most:.0f}")
    print(f"stretch {stretch:.0e}; it stands at last: {np.linalg.norm(trailer.velocity):.1e} m/s")
    assert 0.8 < started < 3.0 and stretch < 1e-4 and 20 < np.mean(taut) < 60 and np.linalg.norm(trailer.velocity) < 1e-6


if __name__ == "__main__":
    check(make())
