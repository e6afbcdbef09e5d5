"""The mechanisms that are measured, once for each engine: chains of uniform rods.

n rods in a row along x, 1 m and 10 kg in all, hung on the world and on each other by ball joints or by hinges about y.
"""

import math
from typing import Any

import numpy as np

import sharnir as sh

LENGTH = 1.0  # m, of the whole chain
MASS = 10.0  # kg
GRAVITY = 9.81  # m/s²

# joint: (ours, MuJoCo's element)
JOINTS: dict[str, tuple[sh.Joint, str]] = {
    "ball": (sh.Spherical(), '<joint type="ball"/>'),
    "hinge": (sh.Revolute(axis="y"), '<joint type="hinge" axis="0 1 0"/>'),
}


def rod(n: int) -> tuple[float, float, tuple[float, float, float]]:
    """Length (m), mass (kg) and principal inertias (kg·m², about its centre, long axis x) of one of n rods."""
    l, m = LENGTH / n, MASS / n
    return l, m, (m * l**2 / 200, m * l**2 / 12, m * l**2 / 12)


def swing_energy(droop: float) -> float:
    """What a straight chain at rest, `droop` rad below the horizontal, can lose until it hangs, J."""
    return MASS * GRAVITY * LENGTH / 2 * (1 - math.sin(droop))


def chain(n: int, joint: str, droop: float = 0.0) -> sh.Scene:
    """Our chain of n rods: straight, at rest, `droop` rad below the horizontal."""
    l, m, inertia = rod(n)
    along = np.array([math.cos(droop), 0.0, -math.sin(droop)])
    turn = (0.0, math.sin(droop / 2), 0.0, math.cos(droop / 2))
    scene = sh.Scene(gravity=(0.0, 0.0, -GRAVITY))
    parent = scene.world
    for i in range(n):
        body = scene.add_body(f"rod {i}", mass=m, inertia=inertia, position=(along * (i + 0.5) * l).tolist(), rotation=turn)
        scene.add_joint(f"joint {i}", JOINTS[joint][0], parent, body, position=along * i * l)
        parent = body
    return scene


def chain_xml(n: int, joint: str, droop: float = 0.0, dt: float = 1e-3) -> str:
    """The same for MuJoCo: nested bodies, Euler's method, no contacts."""
    l, m, inertia = rod(n)
    turn = f"{math.cos(droop / 2)!r} 0 {math.sin(droop / 2)!r} 0"
    diagonal = " ".join(map(repr, inertia))
    bodies = ""
    for i in reversed(range(n)):
        place = f'quat="{turn}"' if i == 0 else f'pos="{l!r} 0 0"'
        inertial = f'<inertial pos="{l / 2!r} 0 0" mass="{m!r}" diaginertia="{diagonal}"/>'
        bodies = f"<body {place}>{JOINTS[joint][1]}{inertial}{bodies}</body>"
    option = f'timestep="{dt!r}" integrator="Euler" gravity="0 0 {-GRAVITY!r}"'
    return f'<mujoco><option {option}><flag contact="disable"/></option><worldbody>{bodies}</worldbody></mujoco>'


class MujocoChain:
    """A chain in MuJoCo, with the few values that are compared."""

    def __init__(self, n: int, joint: str, droop: float = 0.0, dt: float = 1e-3) -> None:
        import mujoco  # the peer is optional, and slow to import

        self._mujoco: Any = mujoco
        self.model = mujoco.MjModel.from_xml_string(chain_xml(n, joint, droop, dt))
        self.data = mujoco.MjData(self.model)
        self._rod = rod(n)[0]

    def step(self, n: int) -> None:
        """Advance by n steps in one call."""
        self._mujoco.mj_step(self.model, self.data, n)

    def step_each(self, n: int) -> None:
        """Advance by n steps, one a call."""
        step, model, data = self._mujoco.mj_step, self.model, self.data
        for _ in range(n):
            step(model, data)

    def energy(self) -> tuple[float, float]:
        """Potential and kinetic energy now, J; the former is zero at the origin."""
        self._mujoco.mj_fwdPosition(self.model, self.data)
        self._mujoco.mj_fwdVelocity(self.model, self.data)
        self._mujoco.mj_energyPos(self.model, self.data)
        self._mujoco.mj_energyVel(self.model, self.data)
        return float(self.data.energy[0]), float(self.data.energy[1])

    def tip(self) -> np.ndarray:
        """(3,) free end of the last rod now, m."""
        self._mujoco.mj_kinematics(self.model, self.data)
        return np.array(self.data.xpos[-1] + self.data.xmat[-1].reshape(3, 3)[:, 0] * self._rod)
