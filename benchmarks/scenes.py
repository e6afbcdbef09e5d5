"""The mechanisms that are measured, once for each engine: chains of uniform rods, and a tree of arms.

A chain is n rods in a row along x, 1 m and 10 kg in all unless said otherwise, hung on the world and on each other by ball
joints or by hinges about y. Friction is a torque, N·m: of the whole vector with us, of each axis with others.
"""

import math
from typing import Any

import numpy as np

import sharnir as sh

LENGTH = 1.0  # m, of the whole chain
MASS = 10.0  # kg
GRAVITY = 9.81  # m/s²

Vec = tuple[float, float, float]


def joint_of(joint: str, friction: float = 0.0) -> sh.Joint:
    """Our joint."""
    given = {"friction": friction} if friction else {}
    return sh.Spherical(**given) if joint == "ball" else sh.Revolute(axis="y", **given)


def joint_xml(joint: str, friction: float = 0.0) -> str:
    """MuJoCo's."""
    kind = 'type="ball"' if joint == "ball" else 'type="hinge" axis="0 1 0"'
    return f'<joint {kind} frictionloss="{friction!r}"/>'


def rod(n: int, length: float = LENGTH, mass: float = MASS) -> tuple[float, float, Vec]:
    """Length (m), mass (kg) and principal inertias (kg·m², about its centre, long axis x) of one of n rods."""
    l, m = length / n, mass / n
    return l, m, (m * l**2 / 200, m * l**2 / 12, m * l**2 / 12)


def swing_energy(droop: float) -> float:
    """What a straight chain at rest, `droop` rad below the horizontal, can lose until it hangs, J."""
    return MASS * GRAVITY * LENGTH / 2 * (1 - math.sin(droop))


def chain(
    n: int, joint: str, droop: float = 0.0, *, friction: float = 0.0, length: float = LENGTH, mass: float = MASS
) -> sh.Scene:
    """Our chain of n rods: straight, at rest, `droop` rad below the horizontal."""
    l, m, inertia = rod(n, length, mass)
    along = np.array([math.cos(droop), 0.0, -math.sin(droop)])
    turn = (0.0, math.sin(droop / 2), 0.0, math.cos(droop / 2))
    scene = sh.Scene(gravity=(0.0, 0.0, -GRAVITY))
    parent = scene.world
    for i in range(n):
        body = scene.add_body(f"rod {i}", mass=m, inertia=inertia, position=(along * (i + 0.5) * l).tolist(), rotation=turn)
        scene.add_joint(f"joint {i}", joint_of(joint, friction), parent, body, position=along * i * l)
        parent = body
    return scene


def arms(friction: float, arms: int = 4, links: int = 6) -> sh.Scene:
    """A trunk of hinged rods, straight up, and `arms` arms spread out from its top: `links` rods in each of them.

    Hinges turn about y and z in turn (about x where that is the rod's own axis), so the mechanism moves in space.
    """
    l, m, inertia = rod(10)
    scene = sh.Scene(gravity=(0.0, 0.0, -GRAVITY))

    def limb(name: str, parent: str, root: np.ndarray, along: np.ndarray, rotation: Vec4, axes: tuple[Vec, Vec]) -> np.ndarray:
        for i in range(links):
            centre = (root + along * (i + 0.5) * l).tolist()
            body = scene.add_body(f"{name} {i}", mass=m, inertia=inertia, position=centre, rotation=rotation)
            scene.add_joint(f"{name} hinge {i}", sh.Revolute(axis=axes[i % 2], friction=friction), parent, body,
                            position=root + along * i * l)  # fmt: skip
            parent = body
        return root + along * links * l

    up, half = (0.0, -math.sin(math.pi / 4), 0.0, math.cos(math.pi / 4)), 2 * math.pi / arms
    x, y, z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
    ...


def chain_xml(
    n: int, joint: str, droop: float = 0.0, dt: float = 1e-3, *,
    friction: float = 0.0, length: float = LENGTH, mass: float = MASS, noslip: int = 0,
) -> str:  # fmt: skip
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
