"""A trolley carries a load two metres and sets it down without sway: its force is found by the gradient of the motion's cost.

`sh.rollout` makes the motion and goes back through its steps, SciPy's L-BFGS follows the slope by all 120 forces at once.
"""

from functools import cache

import numpy as np
from scipy.optimize import minimize

import sharnir as sh

STEPS, DT, WAY = 120, 0.025, 2.0
WEIGHTS = 1e4 * np.array([1.0, 1.0]), 1e3 * np.array([1.0, 1.0])  # of what is missed at the end: m, rad; m/s, rad/s


def make() -> sh.Simulation:
    scene = sh.Scene()
    scene.add_body("beam", sh.Box(4.0, 0.1, 0.15), position=(1, 0, 2.15), motion="fixed", color="#8a8f98", collide=False)
    scene.add_body("trolley", sh.Box(0.4, 0.3, 0.15), mass=20.0, position=(0, 0, 2))
    scene.add_body("load", sh.Box(0.4, 0.4, 0.4), mass=80.0, position=(0, 0, 0.5), color="orange")
    scene.add_body("sling", sh.Box(0.03, 0.03, 1.3), mass=1.0, position=(0, 0, 1.35))
    scene.add_joint("rail", sh.Prismatic("x", damping=5.0), scene.world, "trolley", position=(0, 0, 2))
    scene.add_joint("hook", sh.Revolute("y", damping=0.5), "trolley", "sling", position=(0, 0, 2))
    scene.add_joint("hold", sh.Fixed(), "sling", "load", position=(0, 0, 0.7))
    return sh.Simulation(scene, DT, solver="direct", sleep=False)


def cost(forces: np.ndarray, sim: sh.Simulation) -> tuple[float, np.ndarray]:
    """Of a motion with some forces in kN, and its slope by them."""
    made = sh.rollout(sim, 1e3 * forces[:, None], inputs=["rail"])
    off, (by_q, by_v) = (made.q[-1] - (WAY, 0), made.v[-1]), (np.zeros_like(x) for x in (made.q, made.v))
    by_q[-1], by_v[-1] = WEIGHTS[0] * off[0], WEIGHTS[1] * off[1]
    missed = sum(0.5 * (w * x * x).sum() for w, x in zip(WEIGHTS, off, strict=True))
    return float(missed + 0.5 * forces @ forces), 1e3 * made.gradient(by_q, by_v).controls[:, 0] + forces


@cache
def forces() -> np.ndarray:
    """The forces of least cost, N."""
    found = minimize(cost, np.zeros(STEPS), make(), jac=True, method="L-BFGS-B")
    return 1e3 * np.asarray(found.x)


def control(sim: sh.Simulation) -> None:
    sim.joint("rail").effort = float(np.append(forces(), 0.0)[min(round(sim.time / DT), STEPS)])


def sway(sim: sh.Simulation, forces: np.ndarray) -> float:
    """The largest angle of the load in five seconds behind the motion, rad."""
    made = sh.rollout(sim, np.concatenate([forces, np.zeros(200)])[:, None], inputs=["rail"])
    return float(np.abs(made.q[STEPS + 1 :, 1]).max())


def check(sim: sh.Simulation) -> None:
    plain = np.repeat([101.0, -101.0], STEPS // 2) * WAY / (0.25 * (STEPS * DT) ** 2)  # as if the load did not swing
    with_sway, without = sway(sim, plain), sway(sim, forces())
    print(f"sway behind the motion {np.degrees(without):.3f}°, of forces that do not know the load {np.degrees(with_sway):.1f}°")
    while sim.time < STEPS * DT + 5.0:
        control(sim)
        sim.step()
    assert without < 0.01 * with_sway and abs(sim.q[0] - WAY) < 0.01


if __name__ == "__main__":
    check(make())
