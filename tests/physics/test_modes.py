"""Integration with friction, limits and loops: changes of mode located as events, against closed forms and published numbers."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from test_reference_numbers import four_bar

import sharnir as sh
from sharnir.core.spatial import quat_rotate

AMPLITUDES = (1.447416748, 1.332134876, 1.223244426, 1.119511258, 1.020006348)
REVERSALS = (0.954641853, 1.885976650, 2.798069703)


@pytest.mark.parametrize("method", ["dop853", "rk45"])
def test_dry_pendulum(method):
    scene = sh.Scene(gravity=(0, -9.81, 0))
    scene.add_body("rod", mass=1, inertia=(1 / 120, 1 / 12, 1 / 12), position=(0, -0.5, 0))
    scene.add_joint("hinge", sh.Revolute("z", friction=0.2), "world", "rod", position=(0, 0, 0))
    sim = sh.Simulation(scene, 1e-3, solver="sequential")
    sim.joint("hinge").position = np.pi / 2
    path = sim.integrate(20.0, rtol=1e-11, atol=1e-11, integrator=method, events=[lambda t, q, v: v[0]])
    angles = np.abs(path.event_states[0][0].ravel())
    off = max(np.abs(angles[:5] - AMPLITUDES).max(), np.abs(path.events[0][:3] - REVERSALS).max())
    rest = abs(abs(sim.joint("hinge").position) - 0.015944619)
    print(f"{method}: amplitudes and reversals within {off:.1e}, sticks within {rest:.1e} rad, {path.steps} steps")
    assert off < 7.5e-10 and rest < 7.5e-10 and sim.joint("hinge").velocity == 0.0


def test_ball_joint_stops():
    scene = sh.Scene(gravity=(0, 0, 0))
    scene.add_body("ball", mass=1.0, inertia=(0.2, 0.2, 0.2))
    scene.add_joint("socket", sh.Spherical(friction=0.5), "world", "ball", position=(0, 0, 0))
    sim = sh.Simulation(scene, 1e-3, solver="sequential")
    sim.joint("socket").velocity = (1.0, -2.0, 0.5)
    omega = np.sqrt(5.25)
    stops = 0.2 * omega / 0.5
    path = sim.integrate(2.0, times=[stops - 1e-3, stops + 1e-3, 2.0], rtol=1e-10, atol=1e-10)
    turned = 2 * np.arctan2(np.linalg.norm(path.q[-1, :3]), abs(path.q[-1, 3]))
    print(f"stands after {stops:.4f} s and {turned:.9f} rad (exactly {0.2 * omega**2 / 1.0:.9f})")
    assert np.linalg.norm(path.v[0]) > 0 and np.all(path.v[1:] == 0.0) and abs(turned - 0.2 * omega**2) < 1e-8


def test_a_mass_bounces_on_its_limit():
    scene = sh.Scene(gravity=(0, 0, -9.81))
    scene.add_body("mass", mass=2.0, inertia=(0.1, 0.1, 0.1), position=(0, 0, 1))
    scene.add_joint("guide", sh.Prismatic("z", limit=sh.Limit(-1.0, 5.0, restitution=0.5)), "world", "mass", position=(0, 0, 1))
    sim = sh.Simulation(scene, 1e-3, solver="sequential")
    fall = np.sqrt(2 / 9.81)
    path = sim.integrate(4.0, times=[1.5 * fall, 2.25 * fall, 4.0], rtol=1e-10, atol=1e-10)
    tops = path.q[:2, 0] + 1.0
    print(f"bounces up to {tops[0]:.9f} and {tops[1]:.9f} m (1/4, 1/16), rests {path.q[-1, 0] + 1:.1e} m off its limit")
    assert np.allclose(tops, (0.25, 0.0625), atol=1e-8) and abs(path.q[-1, 0] + 1.0) < 1e-9 and path.v[-1, 0] == 0.0


def four_bars_at(n, t):
    """Where the first link's end is: all links turn alike, one equation of motion is left."""
    links, weight = (n + 1) / 3 + n, 9.81 * ((n + 1) / 2 + n)
    path = solve_ivp(
        lambda _, y: (y[1], -weight * np.cos(y[0]) / links), (0, t), (np.pi / 2, -1.0), "DOP853", rtol=1e-13, atol=1e-13
    )
    return np.array([np.cos(path.y[0, -1]), np.sin(path.y[0, -1])])


@pytest.mark.parametrize(("n", "limit"), [(2, 1.2e-7), pytest.param(40, 1.8e-8, marks=pytest.mark.slow)])
def test_n_four_bar_for_ten_seconds(n, limit):
    sim = four_bar(n, 1e-3)
    sim.integrate(10.0, rtol=1e-10, atol=1e-10)
    link = sim.body("link0")
    tip = link.position + quat_rotate(link.rotation, np.array([0.5, 0, 0]))
    off = np.linalg.norm(tip[:2] - four_bars_at(n, 10.0))
    print(f"{n} four-bars, 10 s: {off:.1e} m off, loops open by {sim.constraint_error().max():.1e} m")
    assert n > 2 or np.allclose(four_bars_at(2, 10.0), (0.328458111541, 0.944518538179), atol=1e-10)
    assert off < limit and sim.constraint_error().max() < 1e-12
