"""What Python costs: values of a six-axis arm read and written by name and by array, beside MuJoCo in the same run."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

import sharnir as sh

DT, LINKS, REPEATS, ROUNDS = 1e-3, 6, 300, 15
AXES = "zyzyzy"


def arm() -> sh.Scene:
    """Six links of 0.3 m and 2 kg with servos, upright."""
    scene = sh.Scene()
    base = scene.world
    for i in range(LINKS):
        body = scene.add_body(f"link {i}", sh.Box(0.1, 0.1, 0.3), mass=2.0, position=(0, 0, 0.15 + 0.3 * i))
        hinge = sh.Revolute(AXES[i], drive=sh.Servo(kp=200.0, kd=20.0, max_force=500.0))
        scene.add_joint(f"joint {i}", hinge, base, body, position=(0, 0, 0.3 * i))
        base = body
    return scene


def arm_xml() -> str:
    """The same for MuJoCo."""
    out = ""
    for i in reversed(range(LINKS)):
        axis = "0 0 1" if AXES[i] == "z" else "0 1 0"
        geom = '<geom type="box" size="0.05 0.05 0.15" pos="0 0 0.15" mass="2" contype="0" conaffinity="0"/>'
        place = "0 0 0.3" if i else "0 0 0"
        out = f'<body name="link {i}" pos="{place}"><joint name="joint {i}" axis="{axis}"/>{geom}{out}</body>'
    servos = "".join(
        f'<position joint="joint {i}" name="servo {i}" kp="200" kv="20" forcerange="-500 500"/>' for i in range(LINKS)
    )
    option = f'<option timestep="{DT}" integrator="implicitfast"/>'
    return f"<mujoco>{option}<worldbody>{out}</worldbody><actuator>{servos}</actuator></mujoco>"


class Peer:
    """MuJoCo's arm, or nothing."""

    def __init__(self) -> None:
        try:
            import mujoco
        except ImportError:
            self.model = None
            return
        self._step, self.model = mujoco.mj_step, mujoco.MjModel.from_xml_string(arm_xml())
        self.data = mujoco.MjData(self.model)

    def step(self) -> None:
        """One step."""
        self._step(self.model, self.data)


def cost(actions: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """µs of CPU time a call of each, taking turns: the median over rounds."""
    times: dict[str, list[float]] = {name: [] for name in actions}
    for action in actions.values():
        for _ in range(20):
            action()
    for _ in range(ROUNDS):
        for name, action in actions.items():
            started = time.process_time()
            for _ in range(REPEATS):
                action()
            times[name].append(1e6 * (time.process_time() - started) / REPEATS)
    return {name: float(np.median(values)) for name, values in times.items()}


def ours(solver: Any) -> dict[str, Callable[[], Any]]:
    """Actions on our arm."""
    sim = sh.Simulation(arm(), DT, solver=solver, on_divergence="ignore")
    sim.step()
    joints = [sim.joint(f"joint {i}") for i in range(LINKS)]
    joint, body, target = joints[2], sim.body("link 3"), sim.target
    place, speed, wanted = target.position, target.velocity, np.full(LINKS, 0.1)

    def by_name() -> None:
        for each in joints:
            each.drive.position = 0.1
            each.drive.velocity = 0.0
        sim.step()
        for each in joints:
            each.position  # noqa: B018

    def by_array() -> Any:
        place[:] = wanted
        speed[:] = 0.0
        sim.step()
        return sim.q

    return {
        "step": sim.step,
        "12 targets, step, 6 readings, by name": by_name,
        "12 targets, step, 6 readings, by array": by_array,
        "read an angle": lambda: joint.position,
        "write a target": lambda: setattr(joint.drive, "position", 0.1),
        "read a body's position": lambda: body.position,
        "apply a force": lambda: body.apply_force((0.0, 0.0, 1e-9)),
        "energy": sim.energy,
    }


def theirs(peer: Peer) -> dict[str, Callable[[], Any]]:
    """The same with MuJoCo."""
    data: Any = peer.data
    names = [(f"joint {i}", f"servo {i}") for i in range(LINKS)]
    wanted = np.full(LINKS, 0.1)

    def by_name() -> None:
        for _, servo in names:
            data.actuator(servo).ctrl = 0.1
            data.actuator(servo).ctrl = 0.1
        peer.step()
        for joint, _ in names:
            data.joint(joint).qpos[0]

    def by_array() -> Any:
        data.ctrl[:] = wanted
        data.ctrl[:] = wanted
        peer.step()
        return data.qpos

    return {
        "step": peer.step,
        "12 targets, step, 6 readings, by name": by_name,
        "12 targets, step, 6 readings, by array": by_array,
        "read an angle": lambda: data.joint("joint 2").qpos[0],
        "write a target": lambda: setattr(data.actuator("servo 2"), "ctrl", 0.1),
        "read a body's position": lambda: data.body("link 3").xpos,
        "apply a force": lambda: setattr(data.body("link 3"), "xfrc_applied", 0.0),
    }


def main() -> None:
    """Print the table."""
    peer = Peer()
    rows = {solver: ours(solver) for solver in ("direct", "sequential")}
    actions = {f"{solver}: {name}": action for solver, table in rows.items() for name, action in table.items()}
    if peer.model is not None:
        actions |= {f"MuJoCo: {name}": action for name, action in theirs(peer).items()}
    found = cost(actions)
    columns = [*rows, "MuJoCo"]
    print(f"{'µs of CPU time, one world':<42}" + "".join(f"{c:>13}" for c in columns))
    for name in rows["direct"]:
        cells = [found.get(f"{column}: {name}") for column in columns]
        print(line(name, cells))
    for way in ("name", "array"):
        pairs = [[f"{column}: {word}" for word in (f"12 targets, step, 6 readings, by {way}", "step")] for column in columns]
        over = [found[both] - found[step] if both in found else None for both, step in pairs]
        print(line(f"  the same over the step, by {way}", over))


def line(name: str, cells: list[float | None]) -> str:
    """A row of the table."""
    return f"{name:<42}" + "".join(f"{c:13.2f}" if c is not None else f"{'–':>13}" for c in cells)


if __name__ == "__main__":
    main()
