"""A load on a rope over a fixed drum: a seventh of its weight on the other side lets it down slowly, friction does the rest.

The rope slides around half the drum, so the tensions of its two sides are in the ratio e^(μπ).
"""

import math

import numpy as np

import sharnir as sh

R, RADIUS, FRICTION = 0.1, 0.005, 0.6  # of the drum and of the rope, m
LOAD, COUNTER = 35.0, 5.0  # kg


def make(dt: float = 5e-3) -> sh.Simulation:
    rope, r = sh.Material(friction=FRICTION), R + RADIUS
    turn = np.linspace(0, math.pi, 29)
    arc = np.stack([-r * np.cos(turn), 0 * turn, r * np.sin(turn)], 1)
    hangs = np.linspace(0.012, 0.6, 50)[:, None] * (0, 0, -1)
    points = np.concatenate([arc[0] + hangs[::-1], arc, arc[-1] + hangs])
    scene = sh.Scene(gravity=(0, 0, -9.81))
    lying = (math.sin(math.pi / 4), 0, 0, math.cos(math.pi / 4))
    scene.add_body("drum", sh.Cylinder(R, 0.2), motion="fixed", rotation=lying, material=rope, collide=True)
    scene.add_body("counterweight", sh.Sphere(0.04), mass=COUNTER, position=points[0])
    scene.add_body("load", sh.Sphere(0.08), mass=LOAD, position=points[-1])
    scene.add_rope(
        "rope", points=points, segments=np.linalg.norm(np.diff(points, axis=0), axis=1), radius=RADIUS, mass_per_length=0.05,
        attach=("counterweight", "load"), material=rope,
    )  # fmt: skip
    return sh.Simulation(scene, dt)


def check(sim: sh.Simulation) -> None:
    rope, ratios, stretch = sim.rope("rope"), [], 0.0
    start = sim.body("load").position[2]
    while sim.time < 0.6:
        sim.step()
        stretch = max(stretch, rope.stretch)
        if sim.time > 0.2:
            ratios.append(rope.tension[-1] / rope.tension[0])
    theory, pressed = math.exp(FRICTION * math.pi), sim.contact_force("drum", "rope")[2]
    print(f"tensions in the ratio {np.mean(ratios):.3f}, e^(μπ) = {theory:.3f}; the drum bears {-pressed:.0f} N")
    print(f"the load has sunk by {start - sim.body('load').position[2]:.3f} m; stretch {stretch:.0e}")
    assert abs(np.mean(ratios) / theory - 1) < 0.02 and stretch < 1e-6 and sim.body("load").position[2] < start - 0.02


if __name__ == "__main__":
    check(make())
