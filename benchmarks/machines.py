"""How much faster than real time the machines drive on one core: MF-4 complete at 2 ms, KRT100-MP with rope and trailer at 5 ms.

First as a user gets them, with nothing set (both by the direct solver): 5 s of driving, the
arm moving in the first three, and how many steps did not converge. Then by sweeps with a cap that is stated (and of MF-4, 2
sweeps that close gaps); what that costs is told beside it: how far the machine is from where it comes with the default cap of
50. CPU time, medians of turns.
Run: python -m benchmarks.machines
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np

import sharnir as sh
from sharnir.machine_models.inputs import Inputs
from sharnir.machine_models.krt100 import Krt100
from sharnir.machine_models.mf4 import Mf4

TURN, TURNS = 100, 9


def mf4(iterations: int | None, solver: str = "sequential") -> tuple[sh.Simulation, Inputs]:
    """On a mesh (the triangles of a floor), units down, arm stretched out."""
    scene = sh.Scene()
    floor = sh.Mesh(sh.Box(15.0, 6.0, 0.2).mesh())
    scene.add_body("floor", floor, motion="fixed", position=(4.0, 0.0, -0.1), material=sh.Material(friction=0.8))
    robot = Mf4()
    robot.add(scene)
    caps: dict[str, Any] = (
        {} if iterations is None else {"tolerances": sh.Tolerances(iterations=iterations, position_iterations=2)}
    )
    sim = sh.Simulation(scene, 2e-3, solver=solver, **caps)
    inputs = Inputs(sim, robot.inputs())
    inputs["front"] = inputs["rear"] = 0.117
    inputs["shoulder"], inputs["elbow"], inputs["throttle"] = 1.2, -1.2, 0.5
    return sim, inputs


def krt100(iterations: int | None, solver: str = "sequential") -> tuple[sh.Simulation, Inputs]:
    """In a turn on level ground, its trailer on the rope."""
    scene = sh.Scene()
    scene.add_ground(material=sh.Material(friction=0.9))
    robot = Krt100(trailer="rope")
    robot.add(scene)
    caps: dict[str, Any] = {} if iterations is None else {"tolerances": sh.Tolerances(iterations=iterations)}
    sim = sh.Simulation(scene, 5e-3, solver=solver, **caps)
    inputs = Inputs(sim, robot.inputs())
    inputs["throttle"], inputs["steer"] = 0.5, 0.05
    return sim, inputs


def by_default(name: str, make: Any) -> float:
    """A line of what a user gets; returns how many times faster than real time the whole drive is."""
    sim, inputs = make(None, "auto")
    inputs.step(TURN)  # kernels are loaded
    took = []
    while sim.time < 5.0:
        started = time.process_time()
        inputs.step(TURN)
        took.append((time.process_time() - started) / TURN)
    times, health = float(sim.dt / np.mean(took)), sim.health()
    print(
        f"{name}, {1e3 * sim.dt:g} ms, as given ({sim.solver_name}): {1e6 * np.mean(took):.0f} µs a step, "
        f"{times:.1f} × real time, {sim.dt / np.max(took):.1f} … {sim.dt / np.min(took):.1f} × by turns of {TURN} steps; "
        f"{health.not_converged} of {health.steps} steps not converged",
        flush=True,
    )
    return times


def measure(name: str, hull: str, make: Any, iterations: int) -> float:
    """A line of the table; returns how many times faster than real time."""
    ends = []
    for cap in (None, iterations):
        sim, inputs = make(cap)
        inputs.step(round(2.5 / sim.dt))
        ends.append(sim.body(hull).position)
    took = []
    for _ in range(TURNS):
        started = time.process_time()
        sim.step(TURN)
        took.append((time.process_time() - started) / TURN)
    times = float(sim.dt / np.median(took))
    off, way = np.linalg.norm(ends[1] - ends[0]), np.linalg.norm(ends[0][:2])
    print(
        f"{name}, {1e3 * sim.dt:g} ms, {iterations} sweeps: {1e6 * np.median(took):.0f} µs a step, {times:.1f} × real time; "
        f"{1e3 * off:.2f} mm off after {way:.2f} m; {len(sim.contacts())} points",
        flush=True,
    )
    return times


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    by_default("MF-4", mf4)
    by_default("KRT100-MP with rope and trailer", krt100)
    measure("MF-4", "mf4", mf4, 6)
    measure("KRT100-MP with rope and trailer", "krt100", krt100, 8)
