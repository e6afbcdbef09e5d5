"""A drone carries 1.5 kg on 2 m of cord along a square; its controller knows the load's weight alone, which swings and pulls."""

import numpy as np

import sharnir as sh
from sharnir.core.spatial import quat_rotate

MASS, LOAD, CORD = 3.0, 1.5, 2.0  # kg, kg, m
G = 9.81


def target(t: float) -> np.ndarray:
    """Hover, then the corners of a square of 3 m, 3 s each."""
    corners = np.array([(0, 0, 4), (3, 0, 4), (3, 3, 4), (0, 3, 4), (0, 0, 4)], float)
    return corners[min(int(t / 3.0), 4)]


def make(dt: float = 5e-3) -> sh.Simulation:
    scene = sh.Scene(gravity=(0, 0, -G))
    scene.add_body("drone", sh.Box(0.5, 0.5, 0.12), mass=MASS, position=(0, 0, 4))
    scene.add_body("load", sh.Sphere(0.12), mass=LOAD, position=(0, 0, 4 - 0.06 - CORD - 0.12))
    scene.add_rope(
        "cord", (0, 0, 3.94), (0, 0, 3.94 - CORD), segments=25, radius=2e-3, mass_per_length=0.01, attach=("drone", "load"),
        drag_coefficient=1.2,
    )  # fmt: skip
    return sh.Simulation(scene, dt)


def control(sim: sh.Simulation) -> None:
    """Thrust along the drone's own axis, torque that turns the axis to where thrust is wanted."""
    drone = sim.body("drone")
    wanted = 2.0 * (target(sim.time) - drone.com) - 2.6 * drone.velocity
    wanted = np.clip(wanted, -3, 3) + (0, 0, G)
    up = quat_rotate(drone.rotation, np.array([0.0, 0, 1]))
    drone.apply_force((MASS + LOAD) * (wanted @ up) * up)
    lean = np.cross(up, wanted / np.linalg.norm(wanted))
    drone.apply_torque(6.0 * lean - 1.2 * drone.angular_velocity)


def check(sim: sh.Simulation) -> None:
    drone, cord = sim.body("drone"), sim.rope("cord")
    stretch, swing, pull = 0.0, 0.0, []
    while sim.time < 20.0:
        control(sim)
        sim.step()
        away = sim.body("load").com - drone.com
        swing = max(swing, np.degrees(np.arctan2(np.linalg.norm(away[:2]), -away[2])))
        stretch = max(stretch, cord.stretch)
        pull.append(cord.tension[0])
    off = np.linalg.norm((drone.com - target(20.0))[:2])
    print(f"swings to {swing:.0f}°, pulls {min(pull):.1f} to {max(pull):.1f} N of {LOAD * G:.1f}; stretch {stretch:.0e}")
    print(f"{off:.2f} m off its corner at last, {abs(drone.com[2] - 4):.2f} m in height")
    assert stretch < 1e-4 and 10 < swing < 70 and off < 0.3 and abs(drone.com[2] - 4) < 0.2


if __name__ == "__main__":
    check(make())
