"""An overhand knot is pulled tight, first gently, then with 100 N: it jams and holds.

The rope touches itself: its strands press on each other and rub, and none passes through another.
"""

import numpy as np

import sharnir as sh

RADIUS, SEGMENT, TAIL = 0.005, 0.007, 0.12  # m
PULL, TAKES = 100.0, 0.8  # N, and the time in which it grows to that, s


def along(points: np.ndarray, count: int) -> np.ndarray:
    """So many points at equal distances along a line."""
    s = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(points, axis=0), axis=1))])
    return np.stack([np.interp(np.linspace(0, s[-1], count), s, x) for x in points.T], 1)


def loose_knot() -> np.ndarray:
    """A trefoil that is cut open at one of its bows, with two ends that lead away from there; all of it rounded."""
    a, out, away = np.linspace(0.3, 2 * np.pi - 0.3, 2001), np.array([1.2, 0, 0]), np.array([0, 0.894, 0.447])
    bows = np.stack([(2 + np.cos(3 * a)) * np.cos(2 * a), (2 + np.cos(3 * a)) * np.sin(2 * a), np.sin(3 * a)], 1)
    size = 2.1 * RADIUS
    first, last = bows[0] + out, bows[-1] + out
    line = along(size * np.stack([first + away * TAIL / size, first, *bows, last, last - away * TAIL / size]), 2001)
    for _ in range(3):
        padded = np.concatenate([2 * line[:1] - line[60:0:-1], line, 2 * line[-1:] - line[-2:-62:-1]])
        line = np.stack([np.convolve(x, np.full(121, 1 / 121), "valid") for x in padded.T], 1)
    return along(line, round(np.linalg.norm(np.diff(line, axis=0), axis=1).sum() / SEGMENT) + 1)


def make(dt: float = 5e-3) -> sh.Simulation:
    points = loose_knot()
    scene = sh.Scene(gravity=(0, 0, 0), contact=True)
    scene.add_body("hand", sh.Sphere(0.012), mass=1.0, position=points[-1], collide=False)
    scene.add_rope(
        "rope", points=points, segments=np.linalg.norm(np.diff(points, axis=0), axis=1), radius=RADIUS, mass_per_length=0.08,
        EI=2e-4, GJ=2e-4, damping=0.05, drag=3.0, attach=("world", "hand"), material=sh.Material(friction=0.3),
    )  # fmt: skip
    return sh.Simulation(scene, dt)


def control(sim: sh.Simulation) -> None:
    """Pull the hand away from where the other end is held."""
    points, hand = sim.rope("rope").position, sim.body("hand")
    away = (points[-1] - points[0]) / np.linalg.norm(points[-1] - points[0])
    hand.apply_force(PULL * min(sim.time / TAKES, 1.0) * away - 80.0 * hand.velocity)


def check(sim: sh.Simulation, lasts: float = 1.2) -> None:
    rope, thin, ends = sim.rope("rope"), 0.0, []
    while sim.time < lasts:
        control(sim)
        sim.step()
        thin = max(thin, -sim.contacts().gap.min(initial=0.0))
        ends.append(np.linalg.norm(rope.position[-1] - rope.position[0]))
    slips = max(ends[-40:]) - min(ends[-40:])
    print(f"pulled by {rope.tension[0]:.2f} N the knot slips by {slips:.0e} m in 0.2 s and takes {rope.length - ends[-1]:.3f} m "
          f"of rope; strands overlap by {thin * 1e3:.2f} mm of {2e3 * RADIUS:.0f} mm at most")  # fmt: skip
    assert abs(rope.tension[0] / PULL - 1) < 1e-3 and slips < 3e-5 and thin < 0.1 * RADIUS and rope.stretch < 1e-6
    assert rope.length - ends[-1] > 12 * RADIUS and sim.health().not_converged == 0


if __name__ == "__main__":
    check(make())
