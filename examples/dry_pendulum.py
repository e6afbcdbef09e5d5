"""A rod swings on a hinge with dry friction: every swing is smaller than the last, until it hangs stuck, not quite straight.

Between two reversals the weight's work is what friction took: m g l (cos a' − cos a) = T (a + a'), l = L / 2.
"""

import numpy as np

import sharnir as sh

MASS, LENGTH, TORQUE = 1.0, 1.0, 0.2
AMPLITUDES = (1.447416748, 1.332134876, 1.223244426, 1.119511258, 1.020006348)  # rad, the roots of the equation above
LAST = 0.015944619  # rad, where it sticks


def make(dt: float = 1e-3) -> sh.Simulation:
    scene = sh.Scene(gravity=(0, 0, -9.81))
    inertia = MASS * LENGTH**2 / 12
    rod = sh.Box(LENGTH, 0.03, 0.03)
    scene.add_body("rod", rod, mass=MASS, inertia=(1e-3, inertia, inertia), position=(LENGTH / 2, 0, 0))
    scene.add_joint("hinge", sh.Revolute("y", friction=TORQUE), scene.world, "rod", position=(0, 0, 0))
    return sh.Simulation(scene, dt)


def reversals(sim: sh.Simulation, count: int) -> list[float]:
    """Angles from the vertical at which the rod turns back, rad; the angle is read every millisecond."""
    hinge, found, side, farthest, held = sim.joint("hinge"), [], 1.0, 0.0, 0
    stride = max(1, round(1e-3 / sim.dt))
    while len(found) < count and held < 10:
        sim.step(stride)
        held = held + 1 if hinge.stuck else 0  # a reversal may take a step of rest, too
        angle = side * (hinge.position - np.pi / 2)
        if angle > 0 and angle < farthest:
            found.append(farthest)
            side, farthest = -side, 0.0
        else:
            farthest = max(farthest, angle)
    return found


def check(sim: sh.Simulation) -> None:
    found = reversals(make(1e-4), len(AMPLITUDES))
    worst = np.abs(np.subtract(found, AMPLITUDES)).max()
    hinge = sim.joint("hinge")
    swings = len(reversals(sim, 100))
    held = hinge.position
    sim.run(10.0)
    zone = np.arcsin(TORQUE / (MASS * 9.81 * LENGTH / 2))
    print(
        f"amplitudes {', '.join(f'{a:.5f}' for a in found)} rad, at most {worst:.1e} off; stuck after {swings} swings and "
        f"{sim.time - 10:.2f} s, {hinge.position - np.pi / 2:+.4f} rad off the vertical (exactly ±{LAST:.4f}, at most {zone:.4f})"
    )
    assert len(found) == len(AMPLITUDES) and worst < 3e-3
    assert hinge.stuck and hinge.position == held and abs(held - np.pi / 2) < zone


if __name__ == "__main__":
    check(make())
