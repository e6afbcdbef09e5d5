"""Three hundred boxes, balls, capsules and laths are poured into a box, roll about and come to rest in a heap."""

import numpy as np

import sharnir as sh

COUNT, WALL, HIGH = 300, 0.5, 0.6  # m, half the width of the box and its height
SHAPES = (sh.Box(0.1, 0.08, 0.06), sh.Sphere(0.04), sh.Capsule(0.03, 0.06), sh.Box(0.14, 0.05, 0.03))


def make(dt: float = 2e-3) -> sh.Simulation:
    rng = np.random.default_rng(1)
    wood = sh.Material(friction=0.5, restitution=0.2, rolling=1e-3)
    scene = sh.Scene(gravity=(0, 0, -9.81))
    scene.add_ground(material=wood)
    for x, y in ((1, 0), (-1, 0), (0, 1), (0, -1)):
        size = (0.1 if x else 2 * WALL, 0.1 if y else 2 * WALL, HIGH)
        place = ((WALL + 0.05) * x, (WALL + 0.05) * y, HIGH / 2)
        scene.add_body(f"wall {x} {y}", sh.Box(*size), motion="fixed", position=place, material=wood)
    for i in range(COUNT):
        layer, k = divmod(i, 25)
        place = np.array([(k % 5 - 2) * 0.18, (k // 5 - 2) * 0.18, 0.1 + 0.17 * layer]) + rng.uniform(-0.01, 0.01, 3)
        turn = rng.normal(size=4)
        turn /= np.linalg.norm(turn)
        scene.add_body(f"{i:03d}", SHAPES[i % 4], density=700.0, position=place, rotation=turn, material=wood)
    return sh.Simulation(scene, dt, on_divergence="warn")


def check(sim: sh.Simulation) -> None:
    """2 s: none leaves the box, energy is only lost, and at rest none is pressed into another."""
    bodies = [sim.model.body_names[f"{i:03d}"] for i in range(COUNT)]
    start, fell = sim.energy().total, 0.0
    while sim.time < 2.0 - 0.5 * sim.dt:
        sim.step(8)
        fell = max(fell, -sim.contacts().gap.min(initial=0.0))
    points, left, places = sim.contacts(), sim.energy().total, sim.body_position[bodies]
    rests, speed = -points.gap.min(), np.linalg.norm(sim.body_velocity[bodies], axis=1)
    asleep = sum(sim.body(f"{i:03d}").asleep for i in range(COUNT))
    print(f"{start:.1f} J become {left:.1f} J; median speed {np.median(speed):.1e} m/s, {asleep} asleep; {len(points)} points")
    print(f"overlap {1e3 * fell:.1f} mm while they fall on each other, {1e3 * rests:.3f} mm at the end")
    assert np.abs(places[:, :2]).max() < WALL and places[:, 2].min() > 0.01 and left < start
    assert rests < 1e-3 and np.median(speed) < 0.01


if __name__ == "__main__":
    check(make())
