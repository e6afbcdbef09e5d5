"""A cable bent into a ring and twisted: flat until 2π√3·EI/GJ of twist, then it pops out of its plane and throws a loop."""

import numpy as np

import sharnir as sh

LENGTH, EI, GJ = 1.0, 0.02, 0.02  # m, N·m²
CRITICAL = 2 * np.pi * np.sqrt(3) * EI / GJ
START, TURN = 0.97, 0.02 * 2 * np.pi  # of that, rad/s: a ring just past it needs seconds to fall over


def make(dt: float = 2e-3) -> sh.Simulation:
    R = LENGTH / (2 * np.pi)
    scene = sh.Scene(gravity=(0, 0, 0))
    # the first end is held, the last one turned about the tangent (x) where the ends meet
    scene.add_body("chuck", sh.Box(0.02, 0.02, 0.02), motion="kinematic")

    def ring(s: float) -> tuple[float, float, float]:
        return R * np.sin(2 * np.pi * s), R - R * np.cos(2 * np.pi * s), 1e-4 * R * np.sin(2 * np.pi * s) ** 2

    scene.add_rope(
        "ring", points=ring, segments=80, radius=3e-3, mass_per_length=0.05, EI=EI, GJ=GJ, damping=2e-3, twist=START * CRITICAL,
        attach=("world", "chuck"), clamp=(True, True),
    )  # fmt: skip
    sim = sh.Simulation(scene, dt)
    sim.body("chuck").angular_velocity = (TURN, 0, 0)
    return sim


def check(sim: sh.Simulation) -> None:
    ring, popped = sim.rope("ring"), None
    most = 0.0
    while sim.time < 6.0:
        sim.step(5)
        out = np.ptp(ring.position[:, 2]) / LENGTH
        most = max(most, out)
        if popped is None and out > 0.15:
            popped = START * CRITICAL + TURN * sim.time
    print(f"pops out at {popped / CRITICAL:.3f} of 2π√3·EI/GJ = {CRITICAL:.3f} rad, then reaches {most:.2f} of its length")
    assert 0.98 < popped / CRITICAL < 1.02 and most > 0.1 and ring.stretch < 1e-4


if __name__ == "__main__":
    check(make())
