"""A cone spinning on its tip at 300 rad/s, leaning by 20°: it precesses slowly instead of falling."""

import numpy as np

import sharnir as sh

LEAN, SPIN = np.radians(20.0), 300.0
RADIUS, HEIGHT = 0.08, 0.1


def make(dt: float = 1e-3) -> sh.Simulation:
    scene = sh.Scene(gravity=(0, 0, -9.81))
    axis = np.array([np.sin(LEAN), 0, np.cos(LEAN)])
    # a cone with its apex down: the shape is turned half a turn about x inside the body's frame
    cone = sh.Cone(RADIUS, HEIGHT, rotation=(1, 0, 0, 0))
    turn = (0, np.sin(LEAN / 2), 0, np.cos(LEAN / 2))
    scene.add_body("top", cone, mass=0.5, position=HEIGHT / 2 * axis, rotation=turn, angular_velocity=SPIN * axis)
    scene.add_joint("tip", sh.Spherical(), scene.world, "top", position=(0, 0, 0))
    return sh.Simulation(scene, dt)


def check(sim: sh.Simulation) -> None:
    # a fast top precesses at m g d / (I₃ ω): d = ¾ h from the apex, I₃ = 0.3 m r²
    rate = 9.81 * 0.75 * HEIGHT / (0.3 * RADIUS**2 * SPIN)
    period = 2 * np.pi / rate
    angles, leans = [], []
    for _ in range(100):
        sim.run(period / 100)
        x, y, z = sim.body("top").com
        angles.append(np.arctan2(y, x))
        leans.append(np.degrees(np.arctan2(np.hypot(x, y), z)))
    turned = np.unwrap(angles)[-1]
    print(
        f"precession in {period:.2f} s: {np.degrees(turned):.1f}° (a fast top: 360°), lean {min(leans):.2f}° to {max(leans):.2f}°"
    )
    assert abs(turned - 2 * np.pi) < 0.03 * 2 * np.pi
    assert min(leans) > 19.9 and max(leans) < 21


if __name__ == "__main__":
    check(make())
