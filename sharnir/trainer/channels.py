"""Named channels of a frame: what moves a platform, loads a lever, makes a sound. Read with every frame, sent with it.

rt.add_channel("seat", motion(sim, "cab", (0.2, 0, 1.1)))
rt.add_channel("stick", lever(sim, "boom", scale=1e-4))
rt.add_channel("sound", sound(sim, engine="crank", ropes=("hoist",)))
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sharnir.errors import SimulationError
from sharnir.runtime.arrays import on_host
from sharnir.runtime.simulation import Simulation
from sharnir.sensors import IMU


@dataclass(frozen=True)
class Channel:
    """Values that a frame carries: what each is called, with its unit, and where they come from."""

    values: tuple[str, ...]
    read: Callable[[], Sequence[float]]


def motion(sim: Simulation, where: str, position: Any = (0.0, 0.0, 0.0), rotation: Any = (0.0, 0.0, 0.0, 1.0)) -> Channel:
    """What a motion platform needs at a seat: specific force (m/s², at rest it points up) and angular rates (rad/s).

    Both in the seat's axes; the specific force is the mean since the frame before.

    Args:
        where: a body, or a frame of the scene. position, rotation: of the seat in it, m and (x, y, z, w).
    """
    seat = IMU(sim, where, position, rotation)

    def read() -> Sequence[float]:
        seat.update()
        return [*seat.acceleration, *seat.rate]

    return Channel(("fx m/s²", "fy m/s²", "fz m/s²", "wx rad/s", "wy rad/s", "wz rad/s"), read)


def lever(sim: Simulation, joint: str, *, scale: float = 1.0, most: float = math.inf) -> Channel:
    """What a lever is to push back with: the force of a joint's drive and friction (N, N·m), scaled and bounded.

    Args:
        scale: N·m at the lever per N or N·m at the joint. most: N·m, the strongest that the lever can do.
    """
    view = sim.joint(joint)
    if view.kind.v_size != 1:
        raise SimulationError(f"lever: joint {joint!r} has {view.kind.v_size} free axes; allowed: 1")
    at = int(sim.model.v_start[sim.model.joint_names[joint]])

    def read() -> Sequence[float]:
        load = scale * float(on_host(sim, "axis_impulse")[at, 0]) / sim.dt
        return (min(max(load, -most), most),)

    return Channel(("torque N·m",), read)


def sound(sim: Simulation, *, engine: str | None = None, ropes: Sequence[str] = ()) -> Channel:
    """What is heard: speed of an engine's joint (rad/s), contacts (how many, all their forces N, the fastest slip m/s), and ropes
    (the largest tension N, whether one is torn).
    """
    shaft = None if engine is None else sim.joint(engine)
    lines = [sim.rope(name) for name in ropes]

    def read() -> Sequence[float]:
        speed = 0.0 if shaft is None else float(np.ravel(shaft.velocity)[0])
        count, force, slip = 0, 0.0, 0.0
        if sim.model.collision is not None:
            found = sim.contacts()
            push = np.linalg.norm(found.force, axis=1)
            pushes = push > 0
            count, force = int(pushes.sum()), float(push.sum())
            slip = float(np.linalg.norm(found.slip[pushes], axis=1).max(initial=0.0))
        pull = max([float(np.max(line.tension, initial=0.0)) for line in lines], default=0.0)
        torn = float(any(np.any(line.broken) for line in lines))
        return speed, count, force, slip, pull, torn

    return Channel(("engine rad/s", "contacts", "contact force N", "slip m/s", "tension N", "torn"), read)
