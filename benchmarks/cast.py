"""A vehicle of four raycast wheels beside MuJoCo's of four wheels on hinges, both driving on a plane: time a step, in turns.

MuJoCo's wheels are cylinders of the same size, each on a hinge with a servo, as its users write them. CPU time, medians.
Run: python -m benchmarks.cast
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

import sharnir as sh
from sharnir.machine_models.vehicles import Axle, Vehicle

STEPS, TURNS, DT = 1000, 9, 0.002
PLACES = ((1.2, 0.7), (1.2, -0.7), (-1.2, 0.7), (-1.2, -0.7))


def ours(cast: bool = True) -> sh.Simulation:
    """880 kg, at 0.9 m/s; `cast` False: wheels on hinges."""
    wheel = sh.Wheel(0.3, 0.2, 20.0, friction=0.8, raycast=cast)
    drive = sh.Servo(velocity=3.0, kd=100.0)
    axles = {"front": Axle(1.2, wheel, 1.4, drive=drive), "rear": Axle(-1.2, wheel, 1.4, drive=drive)}
    scene = sh.Scene()
    scene.add_ground(material=sh.Material(friction=0.8))
    Vehicle("car", 880.0 if cast else 800.0, (3.0, 1.2, 0.5), 0.5, axles, collide=False).add(scene)
    return sh.Simulation(scene, DT)


def theirs() -> tuple[Any, Any]:
    """The same of MuJoCo, with its defaults."""
    import mujoco

    wheels = "".join(
        f'<body pos="{x} {y} -0.2" euler="90 0 0"><joint name="j{i}" type="hinge" axis="0 0 1"/>'
        '<geom type="cylinder" size="0.3 0.1" mass="20"/></body>'
        for i, (x, y) in enumerate(PLACES)
    )
    motors = "".join(f'<velocity joint="j{i}" kv="100"/>' for i in range(4))
    model = mujoco.MjModel.from_xml_string(
        f'<mujoco><option timestep="{DT}"/><worldbody><geom type="plane" size="500 500 1" friction="0.8 0 0"/>'
        '<body pos="0 0 0.5"><freejoint/><geom type="box" size="1.5 0.6 0.25" mass="800" contype="0" conaffinity="0"/>'
        f"{wheels}</body></worldbody><actuator>{motors}</actuator></mujoco>"
    )
    data = mujoco.MjData(model)
    data.ctrl[:] = -3.0
    return model, data


def measure() -> tuple[float, float]:
    """Seconds a step of ours and of MuJoCo's, each turn of one beside a turn of the other."""
    import mujoco

    sim, hinged, (model, data) = ours(), ours(False), theirs()
    steps: dict[str, Callable[[], object]] = {
        "cast": lambda: sim.step(STEPS),
        "MuJoCo": lambda: mujoco.mj_step(model, data, STEPS),
        "hinged": lambda: hinged.step(STEPS),
    }
    took: dict[str, list[float]] = {name: [] for name in steps}
    for turn in range(TURNS + 1):
        for name, step in steps.items():
            started = time.process_time()
            step()
            if turn:
                took[name].append((time.process_time() - started) / STEPS)
    a, b, c = (float(np.median(times)) for times in took.values())
    speeds = sim.body("car").velocity[0], data.qvel[0]
    print(
        f"four raycast wheels {1e6 * a:.1f} µs a step, MuJoCo's hinges {1e6 * b:.1f} µs ({data.ncon} points): {a / b:.2f} ×; "
        f"ours on hinges ({hinged.solver_name}) {1e6 * c:.1f} µs; at {speeds[0]:.4f} and {speeds[1]:.4f} m/s"
    )
    return a, b


if __name__ == "__main__":
    measure()
