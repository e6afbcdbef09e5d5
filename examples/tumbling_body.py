"""A free body spun about its middle axis: it turns over again and again (Dzhanibekov), momentum and energy kept."""

import numpy as np

import sharnir as sh
from sharnir.core.spatial import quat_conjugate, quat_rotate

PERIOD = 39.105734197288


def make(dt: float = 1e-3) -> sh.Simulation:
    scene = sh.Scene(gravity=(0, 0, 0))
    wing = sh.Compound(sh.Box(0.2, 1.2, 0.1), sh.Box(0.8, 0.2, 0.1, position=(0.4, 0, 0)))
    scene.add_body("wing nut", wing, mass=1.0, com=(0, 0, 0), inertia=(1, 2, 3), angular_velocity=(0.01, 1.0, 0.01))
    return sh.Simulation(scene, dt)


def check(sim: sh.Simulation) -> None:
    body = sim.body("wing nut")
    energy, momentum = sim.energy().total, sim.momentum().angular
    sim.run(10.0)
    omega = quat_rotate(quat_conjugate(body.rotation), body.angular_velocity)
    error = np.abs(omega - [-0.874573437891, 0.484996187341, 0.505001220548]).max()
    drift = abs(sim.energy().total / energy - 1)
    kept = np.abs(sim.momentum().angular - momentum).max()
    print(f"spin at t = 10 s: {error:.1e} rad/s off; energy changed by {drift:.1e}, angular momentum by {kept:.1e}")
    assert error < 1e-6 and drift < 1e-9 and kept < 1e-12


if __name__ == "__main__":
    check(make())
