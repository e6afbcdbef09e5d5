"""Ropes in wind, and a reel that stops."""

import numpy as np
import pytest
from test_rope import run

import sharnir as sh


def root(f, low=0.0, high=np.pi / 2):
    """Where a falling function is zero."""
    for _ in range(60):
        low, high = ((low + high) / 2, high) if f((low + high) / 2) > 0 else (low, (low + high) / 2)
    return low


@pytest.mark.parametrize("speed", [5.0, 20.0])
def test_a_rope_in_the_wind_hangs_askew_and_straight(speed):
    """Weight and drag across it balance at one angle everywhere: w sin φ = cU cos φ + ½ρC_d 2r (U cos φ)²; not in still air."""
    air = {"mass_per_length": 0.5, "radius": 0.01, "drag_coefficient": 1.2, "drag": 0.2}
    sim, rope = run(0.01, worlds=2, segments=20, start=(0, 0, 0), end=(0, 0, -2), attach=("world", None), **air)
    sim.wind = [(0, 0, 0), (speed, 0, 0)]
    sim.run(40.0)
    still, x = rope.position
    weight, viscous, across = 0.5 * 9.81, 0.2 * speed, sim.model.ropes.described[0].air * speed**2  # N/m
    phi = root(lambda a: across * np.cos(a) ** 2 + viscous * np.cos(a) - weight * np.sin(a))
    off, aside = np.abs(np.arctan2(x[1:, 0], -x[1:, 2]) - phi).max(), np.abs(still[:, 0]).max()
    print(f"{speed:g} m/s: {np.degrees(phi):.3f}°, off by {np.degrees(off):.1e}°; without wind {aside:.1e} m aside")
    assert off < 1e-3 * phi and aside < 1e-12


def test_a_reel_stops_at_the_longest_and_goes_to_a_length():
    scene = sh.Scene()
    scene.add_body("load", sh.Box(0.3, 0.3, 0.3), mass=50.0, position=(0, 0, -2.15))
    rope = {"segments": 20, "radius": 0.01, "mass_per_length": 0.5, "reel": "start", "longest": 2.5}
    scene.add_rope("r", (0, 0, 0), (0, 0, -2), attach=("world", "load"), **rope)
    sim = sh.Simulation(scene, 5e-3)
    sim.rope("r").reel_speed = 0.5
    sim.run(3.0)
    out = sim.rope("r").length
    sim.rope("r").length = 1.37
    sim.run(2.0)
    on_the_way = sim.rope("r").length
    sim.run(2.0)
    end = sim.rope("r").length
    print(
        f"paid out to {out:.12f} m, taken in to {on_the_way:.4f} and {end:.12f} m; the load at {-sim.body('load').com[2]:.9f} m"
    )
    assert abs(out - 2.5) < 1e-12 and abs(on_the_way - 1.5) < 1e-9 and abs(end - 1.37) < 1e-12
    assert abs(-sim.body("load").com[2] - 1.52) < 1e-4
