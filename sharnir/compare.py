"""What a step size costs: the real-time solver at several steps beside an integration to many digits (`sh.compare`)."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sharnir.errors import SceneError, is_positive
from sharnir.scene import Scene
from sharnir.simulation import Energy, Simulation

SHORT = 1e-7  # s


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
    **options: Any,
) -> Comparison:
    """Run a scene with the real-time solver at several steps and beside a tight integration; what does each step cost?

    Args:
        scene: a Scene, or a function dt → Simulation (as `make` of the examples) that also sets the start.
        duration: s. steps: dt, s. samples: times at which the two are compared.
        rtol: of the reference (and its atol).
        options: of the `Simulation` that a Scene gets, such as method="direct".
    """
    if not is_positive(duration) or not all(is_positive(dt) for dt in steps):
        raise SceneError(f"compare: duration and steps are positive numbers of s, got {duration!r} and {list(steps)!r}")
    make = scene if callable(scene) else lambda dt: Simulation(scene, dt, **options)
    reference = make(min(steps))
    begin, made, exact = reference.time, 0, []
    for i in range(samples):
        made += reference.integrate(begin + duration * (i + 1) / samples, rtol=rtol, atol=rtol).steps
        exact.append(Sample(reference.time, _places(reference), reference.energy()))
    return Comparison(duration, [_row(make(dt), exact, _reactions(reference)) for dt in steps], made)


@dataclass(frozen=True)
class Sample:
    """The reference at a time, s: centres of mass (bodies, 3) m, and energies."""

    time: float
    places: np.ndarray
    energy: Energy


def _places(sim: Simulation) -> np.ndarray:
    return np.array([sim.body(name).com for name in sim.model.body_names])


def _reactions(sim: Simulation) -> dict[str, np.ndarray]:
    """Of every joint by name the force (3,) of its constraint, N: that of a short step in joint coordinates from the state."""
    twin = Simulation(sim.model, SHORT, solver="articulated")
    twin.restore(sim.snapshot() | {"dt": np.array(SHORT)})
    twin.step()
    return {name: twin.joint(name).reaction[0] for name in sim.model.joint_names}


def _row(sim: Simulation, exact: list[Sample], reactions: dict[str, np.ndarray]) -> Row:
    """One step size against the reference."""
    begin, start = sim.time, sim.energy()
    scale, position, energy, gap, took = 1e-12, 0.0, 0.0, 0.0, 0.0
    for sample in exact:
        began = time.perf_counter()
        sim.run(sample.time - sim.time)
        took += time.perf_counter() - began
        position = max(position, float(np.abs(_places(sim) - sample.places).max()))
        now = sim.energy()
        scale = max(scale, float(now.kinetic), abs(float(now.potential - start.potential)))
        off = [getattr(now, kind) - getattr(sample.energy, kind) for kind in ("kinetic", "potential", "elastic")]
        energy = max(energy, float(np.abs(off).sum()))
        gap = max(gap, float(sim.gaps().max(initial=0.0)))
    largest = max((float(np.linalg.norm(f)) for f in reactions.values()), default=1.0) + 1e-12
    missed = max((float(np.linalg.norm(sim.joint(n).reaction[0] - f)) for n, f in reactions.items()), default=0.0)
    steps = max(1, round((exact[-1].time - begin) / sim.dt))
    return Row(sim.dt, position, energy / scale, gap, missed / largest, took / steps)
