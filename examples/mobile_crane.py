"""A mobile crane on its outriggers picks up 5 t, lifts it, slews by 78°, puts it down and lets go.

Boom, slewing and winch are hydraulic; the hoist has four parts. The hook takes the load where it stands, and leaves it there.
"""

import numpy as np

import sharnir as sh
from sharnir.machine_models.crane import MobileCrane

LOAD, G = 5000.0, 9.81  # kg, m/s²
CRANE = MobileCrane(hook=1.6)
PLAN = [  # until when (s), what is held where
    (3.0, {"hoist": 1.0}), (4.5, {}), (13.5, {"slew": 1.0}), (17.0, {}), (20.3, {"hoist": -1.0}), (23.0, {}),
]  # fmt: skip
SLING = "crane sling load"


def make(dt: float = 2e-2) -> sh.Simulation:
    scene = sh.Scene()
    scene.add_ground()
    CRANE.add(scene)
    at = CRANE.head()
    scene.add_body("load", sh.Box(1.6, 1.6, 1.0), mass=LOAD, position=(at[0], 0, 0.5), color="#4e79a7")
    CRANE.add_sling(scene, "load", (0, 0, 0.5))
    for given in CRANE.inputs():
        scene.add_input(given)
    return sh.Simulation(scene, dt)


def control(sim: sh.Simulation) -> None:
    """The operator's plan; the hook takes the load at the start, and lets go when it stands."""
    held = next((what for until, what in PLAN if sim.time < until), {})
    for name in sim.inputs:
        sim.inputs[name] = held.get(name, 0.0)
    if sim.time > 21.5 and sim.joint(SLING).enabled:
        sim.joint(SLING).enabled = False


def check(sim: sh.Simulation) -> None:
    load, rope, start = sim.body("load"), sim.cable("crane cable"), sim.body("load").position
    high, pull, lean = 0.0, 0.0, 0.0
    while sim.time < 23.0:
        control(sim)
        sim.step()
        high, pull = max(high, load.position[2] - 0.5), max(pull, rope.tension.max())
        lean = max(lean, abs(sim.body("crane carrier").position[2]))
    end = load.position
    turn = np.degrees(np.arctan2(end[1], end[0]))
    weight = (LOAD + CRANE.block) * G / CRANE.parts
    print(f"load {high:.2f} m up, turned by {turn:.1f}°, set down at {end[2]:.4f} m, {np.linalg.norm(load.velocity):.0e} m/s")
    print(f"tension at most {pull / weight:.3f} of a quarter of the weight; the carrier moved by {1000 * lean:.2f} mm")
    assert high > 0.5 and 70 < turn < 110 and abs(end[2] - 0.5) < 5e-3 and np.linalg.norm(load.velocity) < 1e-3
    assert abs(np.linalg.norm(end[:2]) - start[0]) < 0.5 and pull < 1.3 * weight and lean < 0.01


if __name__ == "__main__":
    check(make())
