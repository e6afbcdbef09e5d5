"""Two rods stand on a cart, one on the other; the force on the cart alone keeps them up, by an exact derivative of the step.

A regulator leads every small motion back to the upright state: what a step makes of it is `sim.linearize()`, and the gains
that cost least follow from that (`sh.control.lqr`). The rods begin 6° off and are pushed on the way.
"""

from functools import cache

import numpy as np

import sharnir as sh

LENGTH = 0.5  # m, of each rod


def upright(dt: float) -> sh.Simulation:
    scene = sh.Scene()
    scene.add_body("cart", sh.Box(0.3, 0.2, 0.1), mass=1.0)
    scene.add_joint("rail", sh.Prismatic("x", damping=0.5), scene.world, "cart", position=(0, 0, 0))
    below, at = "cart", 0.0
    for name in ("lower", "upper"):
        scene.add_body(name, sh.Box(0.03, 0.03, LENGTH), mass=0.2, position=(0, 0, at + 0.5 * LENGTH), color="orange")
        scene.add_joint(f"{name} hinge", sh.Revolute("y"), below, name, position=(0, 0, at))
        below, at = name, at + LENGTH
    return sh.Simulation(scene, dt, solver="direct")


def make(dt: float = 0.005) -> sh.Simulation:
    sim = upright(dt)
    sim.joint("lower hinge").position = 0.1
    sim.joint("upper hinge").position = -0.05
    return sim


@cache
def regulator(dt: float) -> sh.control.Regulator:
    """About the upright state, at rest."""
    return sh.control.lqr(upright(dt), state_cost=[10, 10, 10, 1, 1, 1], input_cost=0.01, inputs=["rail"])


def control(sim: sh.Simulation) -> None:
    if 4.0 < sim.time < 4.05:
        sim.body("upper").apply_force((2.0, 0, 0))
    regulator(sim.dt).act(sim)


def check(sim: sh.Simulation) -> None:
    farthest = 0.0
    while sim.time < 8.0:
        control(sim)
        sim.step()
        farthest = max(farthest, float(np.abs(sim.q[1:]).max()))
    print(f"the rods lean {np.degrees(farthest):.1f}° at most, and {np.degrees(np.abs(sim.q[1:]).max()):.1e}° in the end")
    assert farthest < 0.3
    assert np.abs(sim.q).max() < 1e-3


if __name__ == "__main__":
    check(make())
