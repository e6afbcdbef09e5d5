"""Cost of derivatives: `Simulation.linearize` beside steps, and MuJoCo's `mjd_transitionFD` with the same model; `sh.rollout` and
its gradient beside the motion.

A 7-joint arm with limits, friction and servos, and chains of hinges; A and B of all efforts. CPU time of one thread, the median
of ratios of runs that take turns.

Run: python -m benchmarks.derivatives [--quick]
"""

import sys
from typing import Any

import mujoco
import numpy as np

import sharnir as sh
from benchmarks.scenes import servo_arm, servo_arm_xml
from benchmarks.timing import interleave


def chain(n: int) -> sh.Scene:
    """n bars on hinges about y and z in turn."""
    scene = sh.Scene()
    below = scene.world
    for i in range(n):
        scene.add_body(f"bar {i}", sh.Box(0.3, 0.05, 0.05), mass=1.0, position=(0.3 * i + 0.15, 0, 0))
        scene.add_joint(f"hinge {i}", sh.Revolute("yz"[i % 2], damping=0.01), below, f"bar {i}", position=(0.3 * i, 0, 0))
        below = f"bar {i}"
    return scene


def chain_xml(n: int, dt: float) -> str:
    """The same for MuJoCo."""
    inertia = " ".join(str(1.0 / 12.0 * x) for x in (2 * 0.05**2, 0.3**2 + 0.05**2, 0.3**2 + 0.05**2))
    bodies = ""
    for i in range(n):
        axis = "0 1 0" if i % 2 == 0 else "0 0 1"
        bodies += f'<body pos="{0.3 if i else 0} 0 0"><joint name="h{i}" axis="{axis}" damping="0.01"/>'
        bodies += f'<inertial pos="0.15 0 0" mass="1" diaginertia="{inertia}"/>'
    motors = "".join(f'<motor joint="h{i}"/>' for i in range(n))
    option = f'<option timestep="{dt}" integrator="Euler"><flag contact="disable"/></option>'
    return f"<mujoco>{option}<worldbody>{bodies}{'</body>' * n}</worldbody><actuator>{motors}</actuator></mujoco>"


def measure(name: str, scene: sh.Scene, xml: str, dt: float, rounds: int) -> None:
    sim: Any = sh.Simulation(scene, dt, solver="direct", sleep=False)
    model = mujoco.MjModel.from_xml_string(xml)
    data = mujoco.MjData(model)
    q = 0.3 * np.sin(np.arange(1, model.nq + 1))
    sim.q, data.qpos[:] = q, q
    sim.step(20)
    mujoco.mj_step(model, data, 20)
    A, B = np.zeros((2 * model.nv, 2 * model.nv)), np.zeros((2 * model.nv, model.nu))

    def differences() -> None:
        mujoco.mjd_transitionFD(model, data, 1e-6, True, A, B, None, None)

    def steps() -> None:
        for _ in range(10):
            sim.step()

    step = interleave(sim.linearize, steps, rounds=rounds, steps=(1, 10))
    many = interleave(sim.linearize, lambda: sim.step(200), rounds=rounds, steps=(1, 200))
    peer = interleave(sim.linearize, differences, rounds=rounds)
    us = float(np.median(peer.ours)) * 1e6
    text = f"{step.ratio:.1f} × a step made alone, {many.ratio:.1f} × one of many, {peer.ratio:.2f} × mjd_transitionFD"
    print(f"{name}: linearize {us:.0f} µs, {text}", flush=True)


def go_back(name: str, scene: sh.Scene, steps: int, rounds: int) -> None:
    """A motion of so many steps with commands in each, and the gradient of a cost of all its states by them and by the start."""
    sim: Any = sh.Simulation(scene, 1e-3, solver="direct", sleep=False)
    sim.q = 0.3 * np.sin(np.arange(1, len(sim.q) + 1))
    sim.step(20)
    commands, start = np.zeros((steps, len(sim.q))), sim.snapshot()
    slopes = np.ones_like(sh.rollout(sim, commands).q)

    def both() -> None:
        sh.rollout(sim, commands).gradient(slopes)

    def make() -> None:
        sh.rollout(sim, commands)

    def in_one_call() -> None:
        sim.restore(start)
        sim.step(steps)

    def from_python() -> None:
        sim.restore(start)
        for command in commands:
            sim.effort = command
            sim.step()

    own = interleave(both, make, rounds=rounds, steps=(steps, steps))
    one = interleave(both, in_one_call, rounds=rounds, steps=(steps, steps))
    each = interleave(both, from_python, rounds=rounds, steps=(steps, steps))
    us = float(np.median(own.ours)) * 1e6
    text = f"{own.ratio:.1f} × the motion, {one.ratio:.1f} × steps of one call, {each.ratio:.2f} × steps commanded from Python"
    print(f"{name}: motion and gradient {us:.1f} µs a step, {text}", flush=True)


def main(arguments: list[str]) -> None:
    rounds = 9 if "--quick" in arguments else 101
    measure("7-joint arm", servo_arm(), servo_arm_xml(), 1e-3, rounds)
    for n in (10, 30) if "--quick" in arguments else (10, 30, 100):
        measure(f"{n} hinges", chain(n), chain_xml(n, 1e-3), 1e-3, rounds if n < 100 else max(5, rounds // 10))
    go_back("7-joint arm, 1000 steps", servo_arm(), 1000, max(5, rounds // 10))
    go_back("30 hinges, 1000 steps", chain(30), 1000, max(5, rounds // 20))


if __name__ == "__main__":
    main(sys.argv[1:])
