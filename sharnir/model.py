"""Model (what never changes), State (what a step changes), Control (what a user commands).

Per-world arrays are [item, world], the world index last; body 0 is the world itself, at rest at the origin.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import warp as wp

from sharnir.joints import GearTable, JointTable
from sharnir.types import mat33, np_real, quat, real, vec3

FIXED, KINEMATIC, DYNAMIC = 0, 1, 2
MOTIONS = {"fixed": FIXED, "kinematic": KINEMATIC, "dynamic": DYNAMIC}


@wp.struct
class BodyTable:
    """Constant data of all bodies: kg, kg·m² about the centre of mass in body axes; inverse 0 where the body does not yield."""

    count: wp.int32
    motion: wp.array(dtype=wp.int32)
    mass: wp.array(dtype=real)
    inv_mass: wp.array(dtype=real)
    inertia: wp.array(dtype=mat33)
    inv_inertia: wp.array(dtype=mat33)


@wp.struct
class State:
    """What a step changes. Positions are those of the centres of mass; world axes throughout."""

    position: wp.array2d(dtype=vec3)  # [body, world] m
    rest: wp.array2d(dtype=vec3)  # [body, world] m, what rounding dropped from `position`
    rotation: wp.array2d(dtype=quat)  # [body, world]
    velocity: wp.array2d(dtype=vec3)  # [body, world] m/s
    spin: wp.array2d(dtype=vec3)  # [body, world] rad/s; of a dynamic body it follows from `momentum`
    momentum: wp.array2d(dtype=vec3)  # [body, world] angular momentum about the centre of mass, kg·m²/s: the stored quantity
    acceleration: wp.array2d(dtype=vec3)  # [body, world] m/s², mean over the last step
    joint_force: wp.array2d(dtype=vec3)  # [joint, world] constraint impulse on the child at its anchor, N·s
    joint_torque: wp.array2d(dtype=vec3)  # [joint, world] constraint impulse moment on the child, N·m·s
    gear_impulse: wp.array2d(dtype=real)  # [gear, world] N·m·s (or N·s) on the first axis
    q: wp.array2d(dtype=real)  # [coordinate, world] m, rad; angles are followed step by step, the rest when read
    qd: wp.array2d(dtype=real)  # [speed, world] m/s, rad/s, when read
    time: wp.array(dtype=wp.float64)  # [world] s
    failed: wp.array(dtype=wp.int32)  # [world] 0, or 1 + the body whose state would have become non-finite


@wp.struct
class Control:
    """What a user commands between steps."""

    force: wp.array2d(dtype=vec3)  # [body, world] N, until changed
    torque: wp.array2d(dtype=vec3)  # [body, world] N·m about the centre of mass, until changed
    force_once: wp.array2d(dtype=vec3)  # [body, world] N in the next step alone
    torque_once: wp.array2d(dtype=vec3)  # [body, world] N·m in the next step alone
    joint_force: wp.array2d(dtype=real)  # [speed, world] N, N·m along the free axes, until changed


@dataclass
class Model:
    """Everything about a scene that does not change while it runs, on one device.

    `bodies`, `joints`, `gears` are the device tables; the names give the index of each object (body 0 is the world).
    """

    bodies: BodyTable
    joints: JointTable
    gears: GearTable
    body_names: dict[str, int]
    joint_names: dict[str, int]
    gear_names: dict[str, int]
    start: dict[str, np.ndarray]
    gravity: tuple[float, float, float]
    worlds: int
    device: Any
    com: np.ndarray  # (bodies, 3) centre of mass in the body's own frame, m
    joint_kinds: list[Any]  # the Joint objects, by index
    parents: np.ndarray  # (joints,)
    children: np.ndarray  # (joints,)
    q_start: np.ndarray
    v_start: np.ndarray
    shapes: list[Any]
    paths: dict[int, Any] = field(default_factory=dict)
    redundant: list[str] = field(default_factory=list)

    def state(self) -> State:
        """A new state at the scene's start."""
        state = State()
        n, k, g, w = len(self.com), len(self.joint_kinds), len(self.gear_names), self.worlds
        shapes: dict[str, tuple[int, Any]] = {
            "position": (n, vec3), "rest": (n, vec3), "rotation": (n, quat), "velocity": (n, vec3), "spin": (n, vec3), "momentum": (n, vec3),
            "acceleration": (n, vec3), "joint_force": (k, vec3), "joint_torque": (k, vec3), "gear_impulse": (g, real),
            "q": (sum(j.q_size for j in self.joint_kinds), real), "qd": (sum(j.v_size for j in self.joint_kinds), real),
        }  # fmt: skip
        for name, (rows, dtype) in shapes.items():
            array = wp.zeros((rows, w), dtype=dtype, device=self.device)
            if name in self.start:
                value = np.asarray(self.start[name], np_real)
                array.assign(np.ascontiguousarray(np.repeat(value[:, None], w, 1)))
            setattr(state, name, array)
        state.time = wp.zeros(w, dtype=wp.float64, device=self.device)
        state.failed = wp.zeros(w, dtype=wp.int32, device=self.device)
        return state

    def control(self) -> Control:
        """Commands that do nothing."""
        control = Control()
        n, w = len(self.com), self.worlds
        for name in ("force", "torque", "force_once", "torque_once"):
            setattr(control, name, wp.zeros((n, w), dtype=vec3, device=self.device))
        speeds = sum(j.v_size for j in self.joint_kinds)
        control.joint_force = wp.zeros((speeds, w), dtype=real, device=self.device)
        return control


STATE_FIELDS = tuple(State.vars)
CONTROL_FIELDS = tuple(Control.vars)
