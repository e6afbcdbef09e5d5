"""A simulation carried on by high-order integration in joint coordinates, instead of steps."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from sharnir import dynamics
from sharnir.core.spatial import quat_exp, quat_multiply, quat_rotate
from sharnir.core.strided import of_first
from sharnir.errors import SimulationError, is_positive
from sharnir.integrate.integrate import first_of
from sharnir.model.joint_setting import disabled
from sharnir.model.model import DRIVE_WORDS, KINEMATIC

# The Simulation; it stands a floor above, so that it is not named here.
Owner = Any


def integrate(sim: Owner, t_end: float, times: Any, options: dict[str, Any]) -> dynamics.Trajectory:
    """The motion up to t_end, at which the simulation stands then, or where a terminal event ended it."""
    if sim._air is not None:
        raise SimulationError("integrate: bodies with a drag_area are stepped, not integrated; use step() or run()")
    if sim._ropes:
        raise SimulationError("integrate: ropes are stepped, not integrated; use step() or run()")
    out = disabled(sim.model, sim.commands)
    tree = dynamics.links(sim.model, out)
    dynamics.check_integrable(tree, sim.commands)
    now = sim.time
    ends = np.atleast_1d(np.asarray(t_end if times is None else times, float))
    if not is_positive(t_end - now) or ends[-1] > t_end + 1e-12:
        raise SimulationError(f"integrate(t_end): a time after {now:g} s, and times up to it, got {t_end!r}")
    asked = len(ends)
    if ends[-1] < t_end:
        ends = np.append(ends, t_end)
    q, v = dynamics.from_state(tree, sim.state)
    for k in out:  # nothing moves along their axes: bodies are read back from the tree
        v[:, tree.v_start[k] : tree.v_start[k] + tree.v_size[k]] = 0.0
    push = np.zeros((sim.worlds, tree.nv))
    push[:, : sim.model.speeds] = sim._commands.joint_force.T
    options |= {"gravity": sim._gravities, "start": now, "control": sim.commands, "state": sim.state}
    path = dynamics.integrate(tree, q, v, ends, tau=push, **options)
    dynamics.to_state(tree, sim.state, path.q[:, -1], path.v[:, -1])
    motors = np.flatnonzero(of_first(sim.model.axes.inductance) > 0)
    current = sim.state.current.numpy()
    current[motors] = path.currents[:, -1, : len(motors)].T
    sim.state.current.assign(current)
    charge_cells(sim, path.currents[:, -1, len(motors) :].T)
    drive_on(sim, path.times[-1] - now)
    sim.state.time.fill_(float(path.times[-1]) - sim._epoch)
    sim.changed()
    if path.times[-1] == ends[-1]:
        path = replace(path, times=path.times[:asked], q=path.q[:, :asked], v=path.v[:, :asked])
    sim._sensors.made(sim._sensors.left)
    return first_of(path) if sim.worlds == 1 else path


def charge_cells(sim: Owner, given: np.ndarray) -> None:
    """Charges that batteries have given (batteries, worlds), A·s; their voltages are read after the next step."""
    if len(given):
        values, first = sim.state.drive_state.numpy(), DRIVE_WORDS * int(sim.model.drives.count)
        values[first + 1 : sim.model.cast_rows[0] : 2] = given
        sim.state.drive_state.assign(values)


def drive_on(sim: Owner, duration: float) -> None:
    """Move kinematic bodies as far as they go in a time, s."""
    for name, i in sim.model.body_names.items():
        if sim.model.bodies.motion.numpy()[i] == KINEMATIC:
            view = sim.body(name)
            spin, rotation = np.atleast_2d(view.angular_velocity), np.atleast_2d(view.rotation)
            com = np.atleast_2d(view.com) + duration * np.atleast_2d(view.velocity)
            turn = quat_multiply(np.array([quat_exp(duration * s) for s in spin]), rotation)
            view.rotation = turn[0] if sim.worlds == 1 else turn
            place = com - quat_rotate(turn, np.broadcast_to(sim.model.com[i], com.shape))
            view.position = place[0] if sim.worlds == 1 else place
