"""A cart free to roll along a rail carries a geared flywheel; a pull on the cart spins the wheel through a rack and pinion."""

import numpy as np

import sharnir as sh

RADIUS, PULL = 0.1, 3.0  # the pinion turns 1 / RADIUS rad for every metre of the cart


def make(dt: float = 1e-3) -> sh.Simulation:
    scene = sh.Scene(gravity=(0, 0, -9.81))
    scene.add_body("cart", sh.Box(0.6, 0.3, 0.1), mass=2.0, position=(0, 0, 0.2))
    upright = (np.sqrt(0.5), 0, 0, np.sqrt(0.5))
    scene.add_body("flywheel", sh.Cylinder(0.2, 0.05, rotation=upright), mass=1.0, position=(0, 0, 0.5))
    scene.add_joint("rail", sh.Prismatic("x"), scene.world, "cart", position=(0, 0, 0.2))
    scene.add_joint("axle", sh.Revolute("y"), "cart", "flywheel", position=(0, 0, 0.5))
    scene.add_joint("rack", sh.Gear("axle", "rail", ratio=1 / RADIUS))
    sim = sh.Simulation(scene, dt)
    sim.body("cart").apply_force((PULL, 0, 0), once=False)
    return sim


def check(sim: sh.Simulation) -> None:
    sim.run(2.0)
    inertia = 0.5 * 1.0 * 0.2**2
    expected = PULL / (3.0 + inertia / RADIUS**2) * 2.0
    speed, wheel = sim.joint("rail").velocity, sim.joint("axle").velocity
    slip = sim.joint("axle").position - sim.joint("rail").position / RADIUS
    print(f"cart at {speed:.6f} m/s (closed form {expected:.6f}), wheel at {wheel:.4f} rad/s, slip of the rack {slip:.1e} rad")
    assert abs(speed - expected) < 2e-5 and abs(wheel - speed / RADIUS) < 2e-4 and abs(slip) < 1e-9


if __name__ == "__main__":
    check(make())
