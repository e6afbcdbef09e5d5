"""What a step size costs: the real-time solver at several steps beside an integration to many digits (`sh.compare`)."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sharnir import dynamics as dyn
from sharnir.errors import SceneError, is_positive
from sharnir.scene import Scene
from sharnir.simulation import Simulation


@dataclass(frozen=True)
class Row:
    """The real-time solver at one step: largest errors over the run."""

    dt: float  # s
    position: float  # m, of a centre of mass
    energy: float  # of the energy's scale
    gap: float  # m or rad
    reaction: float  # of the largest reaction, at the end
    step_time: float  # s a step


@dataclass(frozen=True)
class Comparison:
    """Rows for several steps, and the reference's own effort."""

    duration: float
    rows: list[Row]
    reference_steps: int

    def table(self) -> str:
        """The rows as text."""
        heads = ("dt, ms", "position, m", "energy, %", "gap", "reaction, %", "µs/step", "× real time")
        lines = ["  ".join(f"{head:>{width}}" for head, width in zip(heads, (8, 11, 9, 8, 11, 7, 11), strict=True))]
        lines += [
            f"{r.dt * 1e3:8.3g}  {r.position:11.2e}  {100 * r.energy:9.3f}  {r.gap:8.1e}  {100 * r.reaction:11.3f}  "
            f"{r.step_time * 1e6:7.1f}  {r.dt / r.step_time:11.0f}"
            for r in self.rows
        ]
        return "\n".join([*lines, f"over {self.duration:g} s, against an integration of order 8 in {self.reference_steps} steps"])

    def plot(self, path: str | Path) -> Path:
        """Errors over the step, as a picture."""
        from sharnir.view.plots import figure_of_errors

        return figure_of_errors(self, Path(path))


def compare(
    scene: Scene | Callable[[float], Simulation],
    *,
    duration: float = 1.0,
    steps: Sequence[float] = (4e-3, 2e-3, 1e-3, 5e-4),
    samples: int = 20,
    rtol: float = 1e-11,
) -> Comparison:
    """Run a scene with the real-time solver at several steps and beside a tight integration; what does each step cost?

    Args:
        scene: a Scene, or a function dt → Simulation (as `make` of the examples) that also sets the start.
        duration: s. steps: dt, s. samples: times at which the two are compared.
        rtol: of the reference (and its atol).
    """
    if not is_positive(duration) or not all(is_positive(dt) for dt in steps):
        raise SceneError(f"compare: duration and steps are positive numbers of s, got {duration!r} and {list(steps)!r}")
    make = scene if callable(scene) else lambda dt: Simulation(scene, dt)
    first = make(steps[0])
    t = dyn.links(first.model)
    dyn.check_smooth(t)
    q, v = dyn.from_state(t, first.state)
    q, v = q[0], v[0]
    push = np.zeros(t.nv)
    push[: len(first.control.joint_force.numpy())] = first.control.joint_force.numpy()[:, 0]
    times = duration * np.arange(1, samples + 1) / samples
    exact = dyn.integrate(t, q, v, times, tau=push, rtol=rtol, atol=rtol)
    moving = dyn.forward_kinematics(t, exact.q, exact.v)
    reactions = dyn.reactions(t, exact.q[-1], exact.v[-1], push + dyn.passive_forces(t, exact.q[-1], exact.v[-1]))
    return Comparison(duration, [_row(make(dt), times, moving, reactions) for dt in steps], int(exact.steps))


def _row(sim: Simulation, times: np.ndarray, moving: Any, reactions: Any) -> Row:
    """One step size against the reference; energies against the simulation's own start (applied forces do work in both)."""
    names = [n for n in sim.model.body_names if n != "world"]
    mass = {n: float(sim.model.bodies.mass.numpy()[sim.model.body_names[n]]) for n in names}
    start, scale, position, energy, gap, took = sim.energy(), 1e-12, 0.0, 0.0, 0.0, 0.0
    for i, end in enumerate(times):
        began = time.perf_counter()
        sim.run(end - sim.time)
        took += time.perf_counter() - began
        position = max(position, *(float(np.abs(sim.body(n).com - moving[n]["com"][i]).max()) for n in names))
        now = sim.energy()
        scale = max(scale, float(now.kinetic), abs(float(now.potential - start.potential)))
        high = sum(-mass[n] * float(moving[n]["com"][i] @ sim.gravity) for n in names)
        energy = max(energy, abs(float(now.potential) - high) + abs(float(now.kinetic) - _kinetic(sim, moving, names, i)))
        gap = max(gap, float(sim.gaps().max(initial=0.0)))
    largest = max((float(np.linalg.norm(f)) for f, _ in reactions.values()), default=1.0) + 1e-12
    off = max((float(np.linalg.norm(sim.joint(n).reaction[0] - f)) for n, (f, _) in reactions.items()), default=0.0)
    return Row(sim.dt, position, energy / scale, gap, off / largest, took / max(1, round(times[-1] / sim.dt)))


def _kinetic(sim: Simulation, moving: Any, names: list[str], i: int) -> float:
    """Kinetic energy of the reference at sample i, J."""
    from sharnir.spatial import quat_conjugate, quat_rotate

    total = 0.0
    for n in names:
        b, body = sim.model.body_names[n], moving[n]
        local = quat_rotate(quat_conjugate(body["rotation"][i]), body["spin"][i])
        v = body["velocity"][i]
        total += 0.5 * float(sim.model.bodies.mass.numpy()[b]) * v @ v + 0.5 * local @ sim.model.bodies.inertia.numpy()[b] @ local
    return float(total)
