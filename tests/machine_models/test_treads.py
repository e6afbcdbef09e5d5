"""What wheels and tracks look like: within their size, and without any effect on motion."""

import numpy as np
import pytest

import sharnir as sh
from sharnir.machine_models.treads import outline, shoes, tire
from sharnir.machine_models.wheels import Wheel


def test_a_tire_fills_its_radius_and_no_more():
    vertices = np.asarray(tire(0.3, 0.1).mesh()[0])
    reach = np.hypot(vertices[:, 0], vertices[:, 1]).max()
    print(f"reach {reach:.4f} m of 0.3 m")
    assert 0.29 < reach <= 0.3 + 1e-3 and np.abs(vertices[:, 2]).max() < 0.06


def test_a_belt_around_two_wheels_is_as_long_as_its_closed_form():
    corners = outline([(-0.5, 0.0, 0.2), (0.5, 0.0, 0.2)], fine=720)
    length = np.linalg.norm(np.roll(corners, -1, axis=0) - corners, axis=1).sum()
    assert length == pytest.approx(2 * 1.0 + 2 * np.pi * 0.2, rel=1e-4)
    made = shoes([(-0.5, 0.0, 0.2), (0.5, 0.0, 0.2)], 0.1)
    lowest = min(np.asarray(shoe.mesh()[0])[:, 2].min() for shoe in made)
    print(f"{len(made)} shoes, lowest point {lowest:.4f} m")
    assert -0.205 < lowest < -0.19


def test_a_wheel_shows_its_tire_and_rolls_as_a_disc():
    scene = sh.Scene()
    scene.add_ground()
    scene.add_body("axle", sh.Box(0.2, 0.2, 0.2), mass=5.0, position=(0, 0, 0.3), collide=False)
    Wheel(radius=0.3, width=0.1, mass=2.0).add(scene, "front", "axle", (0, 0, 0.3))
    wheel = scene.bodies["front wheel"]
    assert isinstance(wheel.shape, sh.Cylinder) and len(wheel.visual.shapes) > 30
