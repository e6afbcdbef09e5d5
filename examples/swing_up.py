"""A pole that hangs from a cart is swung up: the force on the cart, of 5 N at most, is found by the derivative of the steps.

`sh.optimize.ilqr` begins with no force at all. Its plan holds the motion by feedback; above, a regulator keeps the pole up.
"""

from functools import cache

import numpy as np

import sharnir as sh

STEPS, DT = 150, 0.02


def make(dt: float = DT) -> sh.Simulation:
    scene = sh.Scene()
    scene.add_body("cart", sh.Box(0.3, 0.2, 0.1), mass=1.0)
    scene.add_body("pole", sh.Box(0.03, 0.03, 0.6), mass=0.2, position=(0, 0, -0.3), color="orange")
    scene.add_joint("rail", sh.Prismatic("x", damping=0.1), scene.world, "cart", position=(0, 0, 0))
    scene.add_joint("hinge", sh.Revolute("y", damping=0.002), "cart", "pole", position=(0, 0, 0))
    return sh.Simulation(scene, dt, solver="direct")


@cache
def plan() -> sh.optimize.Plan:
    """The way up, in three seconds."""
    costs = {"state_cost": [0.01, 0, 0, 0], "input_cost": 1e-3, "final_cost": [100, 100, 10, 10]}
    return sh.optimize.ilqr(make(), STEPS, goal=[0.0, np.pi], inputs=["rail"], limits=5.0, **costs)


@cache
def above() -> sh.control.Regulator:
    """What keeps the pole up."""
    sim = make()
    sim.joint("hinge").position = np.pi
    return sh.control.lqr(sim, state_cost=[10, 10, 1, 1], input_cost=0.1, inputs=["rail"])


def control(sim: sh.Simulation) -> None:
    step = round(sim.time / DT)
    if step < STEPS:
        plan().act(sim, step)
    else:
        above().act(sim)


def check(sim: sh.Simulation) -> None:
    print(plan())
    while sim.time < 8.0:
        control(sim)
        sim.step()
        if abs(sim.time - STEPS * DT) < 0.5 * DT:
            print(f"after the plan the pole is {np.degrees(sim.q[1] - np.pi):.2f}° off, the cart {sim.q[0]:.3f} m")
            assert abs(sim.q[1] - np.pi) < 0.1
    assert np.abs(sim.q - (0, np.pi)).max() < 1e-2


if __name__ == "__main__":
    check(make())
