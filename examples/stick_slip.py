"""A block rides a running belt, held back by a spring: it sticks and is carried along, tears loose, jumps back, sticks again.

Stick: x grows at the belt's speed V until the spring pulls with the static bound, k x = F_s.
Slip:  m x'' = F_d − k x from there, x' = V: a harmonic motion about F_d / k with A = (F_s − F_d) / k, ω = √(k / m),
       x − F_d / k = A cos ωt + (V / ω) sin ωt, back at the speed V where tan(ωt / 2) = −A ω / V, at x = F_d / k − A.
So one period takes 2 A / V to stick and (2π − 2 atan(A ω / V)) / ω to slip, and its stroke is A + √(A² + (V / ω)²).
"""

import numpy as np

import sharnir as sh

MASS, STIFFNESS, STATIC, DYNAMIC, BELT = 1.0, 100.0, 10.0, 6.0, 0.05  # kg, N/m, N, N, m/s


def make(dt: float = 5e-4) -> sh.Simulation:
    scene = sh.Scene(gravity=(0, 0, -9.81))
    scene.add_body("belt", sh.Box(4.0, 0.3, 0.02), position=(-1.4, 0, 0), velocity=(BELT, 0, 0), motion="kinematic")
    scene.add_body("wall", sh.Box(0.02, 0.3, 0.3), position=(-0.5, 0, 0.15), motion="fixed")
    scene.add_body("block", sh.Box(0.15, 0.15, 0.15), mass=MASS, position=(0, 0, 0.085), velocity=(BELT, 0, 0))
    rub = sh.Prismatic("x", friction=sh.Friction(STATIC, DYNAMIC))
    scene.add_joint("rub", rub, "belt", "block", position=(0, 0, 0.01))
    scene.add_spring("spring", "wall", "block", at_a=(0, 0, -0.065), at_b=(0, 0, 0), stiffness=STIFFNESS)
    return sh.Simulation(scene, dt)


def check(sim: sh.Simulation) -> None:
    a, omega = (STATIC - DYNAMIC) / STIFFNESS, np.sqrt(STIFFNESS / MASS)
    period = 2 * a / BELT + 2 * (np.pi - np.arctan(a * omega / BELT)) / omega
    stroke = a + np.hypot(a, BELT / omega)
    rub, block = sim.joint("rub"), sim.body("block")
    loose, places, stuck = [], [], True
    while sim.time < 5 * period:
        sim.step()
        if stuck and not rub.stuck:
            loose.append(sim.time)
        stuck = rub.stuck
        if loose:
            places.append(block.position[0])
    measured = np.diff(loose)
    print(
        f"tears loose every {measured.mean():.5f} s (closed form {period:.5f}, {100 * (measured.mean() / period - 1):+.2f} %; "
        f"spread {np.ptp(measured):.4f} s), stroke {np.ptp(places):.5f} m (closed form {stroke:.5f})"
    )
    assert len(measured) >= 3 and np.abs(measured / period - 1).max() < 0.01
    assert abs(np.ptp(places) / stroke - 1) < 0.01


if __name__ == "__main__":
    check(make())
