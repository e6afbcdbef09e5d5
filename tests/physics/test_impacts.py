"""Impacts and rolling of few bodies and mechanisms, by closed forms and conserved quantities, at default settings."""

import numpy as np
import pytest

import sharnir as sh

G = 9.81


@pytest.mark.parametrize("dt", [1e-3, 5e-3])
@pytest.mark.parametrize("e", [0.5, 0.9])
def test_a_ball_leaves_with_the_speed_that_it_had_at_the_surface(dt, e):
    scene = sh.Scene()
    scene.add_ground(material=sh.Material(restitution=e))
    scene.add_body("ball", sh.Sphere(0.1), mass=1.0, position=(0, 0, 1.1))
    scene.add_body("arm", sh.Box(0.1, 0.1, 0.4), mass=1.0, position=(2, 0, 3))
    scene.add_joint("hinge", sh.Revolute("y"), "world", "arm", position=(2, 0, 3.2))
    sim = sh.Simulation(scene, dt)
    top, low = 0.0, False
    for _ in range(round(1.0 / dt)):
        sim.step()
        height = sim.body("ball").position[2] - 0.1
        low = low or height < 0.05
        top = max(top, height) if low else 0.0
    print(f"e = {e}, {1e3 * dt:.0f} ms: bounces to {top:.6f} m of {e * e:.6f} m")
    assert top == pytest.approx(e * e, abs=1e-5 + 0.15 * G * dt * dt)  # the top is looked for at steps


def test_a_rolling_ball_keeps_its_energy():
    scene = sh.Scene()
    scene.add_ground(material=sh.Material(friction=0.8))
    scene.add_body("ball", sh.Sphere(0.1), mass=3.0, position=(0, 0, 0.1), velocity=(3, 0, 0), spin=(0, 30, 0))
    sim = sh.Simulation(scene, 2e-3, solver="direct")
    start = sim.energy().total
    sim.run(2.0)
    print(f"rolls {sim.body('ball').position[0]:.9f} m, energy off by {sim.energy().total / start - 1:.1e}")
    assert abs(sim.energy().total / start - 1) < 1e-9 and sim.body("ball").position[0] == pytest.approx(6.0, abs=1e-9)


def test_a_blow_breaks_a_held_joint_loose_in_the_same_step():
    """A rod held by friction is struck at its tip: it turns at once, by no more than momentum allows."""
    scene = sh.Scene(gravity=(0, 0, 0), contact=True)
    scene.add_body("rod", sh.Box(1.0, 0.1, 0.1), mass=2.0, position=(0.5, 0, 0))
    scene.add_joint("hinge", sh.Revolute("y", friction=5.0), "world", "rod", position=(0, 0, 0))
    scene.add_body("ball", sh.Sphere(0.1), mass=1.0, position=(0.9, 0, 0.16), velocity=(0, 0, -5.0))
    sim = sh.Simulation(scene, 1e-3)
    for _ in range(8):
        sim.step()
    inertia = 2.0 * (1.0 + 0.01) / 12 + 2.0 * 0.25
    shared = 5.0 * 0.9 / (inertia + 0.81)  # rad/s, without friction
    rate = sim.joint("hinge").velocity
    print(f"turns at {rate:.4f} rad/s, without friction {shared:.4f}")
    assert shared - 8e-3 * 5.0 / inertia < rate < shared + 1e-6


def test_mechanisms_that_collide_keep_linear_momentum_and_gain_no_energy():
    """Angular momentum is kept but for what displacements of bodies that passed into each other change."""
    scene = sh.Scene(gravity=(0, 0, 0), contact=True)
    m = sh.Material(friction=0.5, restitution=0.3)
    for side, prefix in ((-1, "left"), (1, "right")):
        for i in range(3):
            place = (side * (0.3 + 0.21 * i), 0.03 * side, 0)
            scene.add_body(
                f"{prefix} {i}", sh.Capsule(0.08, 0.05), mass=1.0 + i, position=place, velocity=(-side, 0, 0), material=m
            )
            if i:
                hinge = sh.Revolute("y", friction=0.05, limit=(-0.5, 0.5))
                at = (side * (0.3 + 0.21 * i - 0.105), 0.03 * side, 0)
                scene.add_joint(f"{prefix} joint {i}", hinge, f"{prefix} {i - 1}", f"{prefix} {i}", position=at)
    sim = sh.Simulation(scene, 4e-3)
    start, energy = sim.momentum(), sim.energy().total
    for _ in range(200):
        sim.step()
        now = sim.momentum()
        assert np.abs(np.ravel(now.linear) - np.ravel(start.linear)).max() < 1e-9 * 12
        assert np.abs(np.ravel(now.angular) - np.ravel(start.angular)).max() < 0.01  # of 0.36 kg·m²/s
        assert sim.energy().total < energy * (1 + 1e-9)
    assert sim.energy().total < 0.95 * energy  # they did collide
