"""What can go wrong with a running machine, and what an instructor changes: failures, weather; all noted in `controls.events`.

fail(sim, "motor", "krt100 front left")   # its winding is open: it gives nothing
fail(sim, "rope", "sling")                # torn in the middle
fail(sim, "sensor bias", "front", size=0.2)  # it reads 0.2 m too much
weather(sim, friction=0.3)                # of what the scene's surfaces have
repair(sim)                               # all that can be
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from sharnir.errors import SimulationError, is_positive
from sharnir.model.actuators import DCMotor, HydraulicCylinder, Servo
from sharnir.sensors.noise import FAULTS

# The Simulation; it stands a floor above, so that it is not named here.
Owner = Any
Repair = Callable[[], None]
STUCK_TORQUE, OPEN_RESISTANCE, EMPTY = (
    1e7,
    1e12,
    1.0,
)  # N·m that a stuck brake holds; Ω of an open winding; Pa of a pump that stands


def _motor(sim: Owner, name: str) -> tuple[Callable[[], None], Repair]:
    """A drive gives nothing: a servo's bound is 0, a DC motor's winding open, a cylinder without pressure."""
    joint = sim.joint(name)
    drives = [axis.drive for axis in sim.model.joint_axes[sim.model.joint_names[name]] if axis.drive is not None]
    if not drives or not all(isinstance(d, Servo | DCMotor | HydraulicCylinder) for d in drives):
        kinds = ", ".join(type(d).__name__ for d in drives) or "no drive"
        raise SimulationError(f"failure 'motor' of joint {name!r}: needs a Servo, DCMotor or HydraulicCylinder, got {kinds}")
    drive = joint.drive
    if isinstance(drives[0], HydraulicCylinder):
        kept = np.copy(drive.number("pressure"))
        return lambda: drive.set_number("pressure", EMPTY), lambda: drive.set_number("pressure", kept)
    what, dead = ("max_force", 0.0) if isinstance(drives[0], Servo) else ("resistance", OPEN_RESISTANCE)
    value = getattr(drive, what)
    return lambda: setattr(drive, what, dead), lambda: setattr(drive, what, value)


def _brake(sim: Owner, name: str) -> tuple[Callable[[], None], Repair]:
    """A joint holds as if welded, whatever the brake's command."""
    joint = sim.joint(name)
    kept = joint.friction

    def stick() -> None:
        joint.friction = STUCK_TORQUE

    return stick, lambda: setattr(joint, "friction", kept)


def _joint(sim: Owner, name: str) -> tuple[Callable[[], None], Repair]:
    """A joint breaks; repaired, it holds its bodies as they then stand."""
    joint = sim.joint(name)
    return lambda: setattr(joint, "enabled", False), joint.attach


def _rope(sim: Owner, name: str) -> tuple[Callable[[], None], Repair]:
    """A rope tears in its middle, for good."""
    rope = sim.rope(name)
    middle = (np.shape(rope.position)[-2] - 1) // 2
    rope.cut(middle)

    def never() -> None:
        raise SimulationError(f"rope {name!r} is torn for good; reset() makes it whole")

    return lambda: None, never


def _input(sim: Owner, name: str) -> tuple[Callable[[], None], Repair]:
    """A lever is stuck where it is: commands do nothing."""
    controls = sim.inputs
    controls[name]
    controls.stuck.add(name)
    return lambda: None, lambda: controls.stuck.discard(name)


def _sensor(how: str) -> Callable[..., tuple[Callable[[], None], Repair]]:
    """A sensor freezes, reads NaN, has a bias of a given size, or more noise of a given size."""

    def failure(sim: Owner, name: str, size: Any) -> tuple[Callable[[], None], Repair]:
        sensor = sim.sensor(name)
        return lambda: sensor.fail(how, size), lambda: sensor.repair(how)

    return failure


FAILURES: dict[str, Callable[..., tuple[Callable[[], None], Repair]]] = {
    "motor": _motor, "brake": _brake, "joint": _joint, "rope": _rope, "input": _input,
    **{f"sensor {how}": _sensor(how) for how in FAULTS},
}  # fmt: skip
"""Kinds of failures; motor, brake and joint take the name of a joint."""


def fail(sim: Owner, kind: str, name: str, by: str = "instructor", size: Any = None) -> None:
    """Let something go wrong from the next step on: "motor", "brake" (stuck) or "joint" (breaks) of a joint, "rope", "input", and
    of a sensor of the scene "sensor frozen", "sensor dropout" (NaN), "sensor bias", "sensor noise".

    Args:
        size: of a sensor's bias, or the standard deviation of its further noise, in its unit; if None, ten times its own noise.
    """
    if kind not in FAILURES:
        raise SimulationError(f"a failure is one of {', '.join(map(repr, FAILURES))}, got {kind!r}")
    if (kind, name) in sim.inputs.faults:
        return
    sized = kind in ("sensor bias", "sensor noise")
    if size is not None and not sized:
        raise SimulationError(f"failure {kind!r} of {name!r} has no size, got {size!r}")
    hold, undo = FAILURES[kind](sim, name, size) if kind.startswith("sensor") else FAILURES[kind](sim, name)
    hold()
    sim.inputs.faults[kind, name] = hold, undo
    sim.inputs.note("failure", f"{kind}/{name}", 1.0, by)


def repair(sim: Owner, kind: str | None = None, name: str | None = None, by: str = "instructor") -> None:
    """Undo one failure, or all of them but torn ropes."""
    for key in list(sim.inputs.faults):
        if kind in (None, key[0]) and name in (None, key[1]):
            if key[0] == "rope" and kind is None:
                continue
            _, undo = sim.inputs.faults[key]
            undo()
            del sim.inputs.faults[key]
            sim.inputs.busy = True
            sim.inputs.note("failure", f"{key[0]}/{key[1]}", 0.0, by)


def forget(sim: Owner) -> None:
    """After the start was put back: what failed is whole again, and torn ropes are no longer known of."""
    sim.inputs.faults = {key: value for key, value in sim.inputs.faults.items() if key[0] != "rope"}
    repair(sim)


def weather(sim: Owner, *, friction: float | None = None, wind: Any = None, gravity: Any = None, by: str = "instructor") -> None:
    """Change what surrounds the machine.

    Args:
        friction: a factor on the friction of all surfaces as the scene describes them (rain 0.6, ice 0.1).
        wind: (3,) m/s, of the air that drags on ropes and on bodies with a drag area. gravity: (3,) m/s².
    """
    if gravity is not None:
        sim.gravity = gravity
        sim.inputs.note("parameter", "gravity", np.asarray(gravity, float).tolist(), by)
    if wind is not None:
        sim.wind = wind
        sim.inputs.note("parameter", "wind", np.asarray(wind, float).tolist(), by)
    if friction is None:
        return
    collider = sim.solver.collider
    if collider is None or not is_positive(friction) or friction > 10:
        raise SimulationError(f"weather: friction is a factor above 0, at most 10, of surfaces that touch, got {friction!r}")
    for name, m in collider.given.materials.items():
        along = tuple(friction * f for f in m.friction) if isinstance(m.friction, tuple) else friction * m.friction
        slides = None if m.dynamic is None else friction * m.dynamic
        collider.set_material(name, dataclasses.replace(m, friction=along, dynamic=slides))
    sim.inputs.note("parameter", "friction", float(friction), by)
