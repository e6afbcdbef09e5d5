"""What a step size costs: the real-time methods at several steps beside an integration to many digits (`sh.compare`)."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from sharnir.core.misspellings import by_name
from sharnir.engine.choice import SOLVERS
from sharnir.errors import SceneError, SimulationError, is_positive
from sharnir.runtime.measures import Energy
from sharnir.runtime.simulation import Simulation
from sharnir.scene.scene import Scene

SHORT_STEP = 3e-6  # s, of the steps that give reactions: shorter ones are lost in the rounding of positions
COMPARED_SOLVERS = ("sequential", "direct")


@dataclass(frozen=True)
class Row:
    """A method at one step: largest errors over the run; infinite where it failed."""

    dt: float  # s
    position: float  # m, of a centre of mass
    energy: float  # relative to the energy's scale
    gap: float  # m or rad
    reaction: float  # relative to the largest reaction, at the end
    step_time: float  # s a step


@dataclass(frozen=True)
class Comparison:
    """Rows for several steps, and the reference's own effort.

    `rows` are those of the method that the scene was made with, `methods` those of every method by name, that one first.
    """

    duration: float
    rows: list[Row]
    reference_steps: int
    methods: dict[str, list[Row]] = field(default_factory=dict)

    def table(self) -> str:
        """The rows as text."""
        heads = ("method", "dt, ms", "position, m", "energy, %", "gap", "reaction, %", "µs/step", "× real time")
        cells = [heads, *((name, *_cells(row)) for name, rows in (self.methods or {"": self.rows}).items() for row in rows)]
        widths = [max(len(line[i]) for line in cells) for i in range(len(heads))]
        lines = ["  ".join([c[0].ljust(widths[0]), *(x.rjust(w) for x, w in zip(c[1:], widths[1:], strict=True))]) for c in cells]
        lines.insert(1, "  ".join("─" * w for w in widths))
        return "\n".join([*lines, f"over {self.duration:g} s, against an integration of order 8 in {self.reference_steps} steps"])

    def plot(self, path: str | Path) -> Path:
        """Errors over the step, as a picture."""
        from sharnir.view.plots import figure_of_errors

        return figure_of_errors(self, Path(path))


def _cells(r: Row) -> tuple[str, ...]:
    """A row as text."""
    step = f"{r.dt * 1e3:.3g}"
    if not np.isfinite(r.position):
        return (step, "fails", *["–"] * 5)
    errors = f"{r.position:.2e}", f"{100 * r.energy:.3f}", f"{r.gap:.1e}", f"{100 * r.reaction:.3f}"
    return (step, *errors, f"{r.step_time * 1e6:.1f}", f"{r.dt / r.step_time:.0f}")


@by_name
def compare(
    scene: Scene | Callable[[float], Simulation],
    *,
    duration: float = 1.0,
    steps: Sequence[float] = (4e-3, 2e-3, 1e-3, 5e-4),
    samples: int = 20,
    rtol: float = 1e-11,
    methods: Sequence[str] = COMPARED_SOLVERS,
    **options: Any,
) -> Comparison:
    """Run a scene with the real-time methods at several steps and beside a tight integration; what does each step cost?

    Args:
        scene: a Scene, or a function dt → Simulation (as `make` of the examples) that also sets the start.
        duration: s. steps: dt, s. samples: times at which they are compared.
        rtol: of the reference (and its atol).
        methods: solvers, beside the one that the scene is made with; these have their default settings.
        options: of the `Simulation` that a Scene gets, such as solver="direct".
    """
    if not is_positive(duration) or not all(is_positive(dt) for dt in steps):
        raise SceneError(f"compare: duration and steps are positive numbers of s, got {duration!r} and {list(steps)!r}")
    for name in methods:
        if name not in COMPARED_SOLVERS:
            raise SceneError(f"compare: method {name!r} is unknown; allowed: {', '.join(map(repr, COMPARED_SOLVERS))}")
    make = scene if callable(scene) else lambda dt: Simulation(scene, dt, **options)
    reference = make(min(steps))
    if reference.model.ropes is not None:
        name = next(iter(reference.model.ropes.names))
        raise SceneError(f"compare: rope {name!r} is stepped, not integrated: there is nothing to compare it with")
    own = _method(reference)
    begin, made, exact = reference.time, 0, []
    times = {max(steps) * max(1, round(duration * (i + 1) / samples / max(steps))) for i in range(samples)}  # whole steps
    for t in sorted(times):
        made += reference.integrate(begin + t, rtol=rtol, atol=rtol).steps
        exact.append(Sample(reference.time, _places(reference), reference.energy()))
    reactions = _reactions(reference)
    names = dict.fromkeys((own, *methods))
    rows = {name: [_row(_twin(make(dt), name), exact, reactions) for dt in steps] for name in names}
    return Comparison(duration, rows[own], made, rows)


def _method(sim: Simulation) -> str:
    """The name of the solver."""
    if sim.solver_name not in SOLVERS:
        raise SceneError("compare: a scene of ropes alone is stepped, not integrated: there is nothing to compare it with")
    return sim.solver_name


def _twin(sim: Simulation, method: Any) -> Simulation:
    """The simulation itself, or one in the same state that another solver steps."""
    if method == _method(sim):
        return sim
    twin = Simulation(sim.model, sim.dt, solver=method)
    twin.restore(sim.snapshot())
    return twin


@dataclass(frozen=True)
class Sample:
    """The reference at a time, s: centres of mass (bodies, 3) m, and energies."""

    time: float
    places: np.ndarray
    energy: Energy


def _places(sim: Simulation) -> np.ndarray:
    return np.array([sim.body(name).com for name in sim.model.body_names])


def _reactions(sim: Simulation) -> dict[str, np.ndarray]:
    """Of every joint by name the force (3,) of its constraint, N, by short steps of the direct solver from the state.

    Two, since the first takes a rod from its tangent to its chord, with half the centripetal force.
    """
    twin = Simulation(sim.model, SHORT_STEP, solver="direct")
    twin.restore(sim.snapshot() | {"dt": np.array(SHORT_STEP)})
    twin.step(2)
    return {name: twin.joint(name).reaction[0] for name in sim.model.joint_names}


def _row(sim: Simulation, exact: list[Sample], reactions: dict[str, np.ndarray]) -> Row:
    """One step size against the reference."""
    begin, start, before = sim.time, sim.energy(), sim.snapshot()
    with suppress(SimulationError):
        sim.step()  # the first step captures the graph; what is timed is a running simulation
    sim.restore(before)
    scale, position, energy, gap, took = 1e-12, 0.0, 0.0, 0.0, 0.0
    for sample in exact:
        began = time.perf_counter()
        try:
            sim.run(sample.time - sim.time)
        except SimulationError:
            return Row(sim.dt, np.inf, np.inf, np.inf, np.inf, np.nan)
        took += time.perf_counter() - began
        position = max(position, float(np.abs(_places(sim) - sample.places).max()))
        now = sim.energy()
        scale = max(scale, float(now.kinetic), abs(float(now.potential - start.potential)))
        off = [getattr(now, kind) - getattr(sample.energy, kind) for kind in ("kinetic", "potential", "elastic")]
        energy = max(energy, float(np.abs(off).sum()))
        gap = max(gap, float(sim.constraint_error().max(initial=0.0)))
    largest = max((float(np.linalg.norm(f)) for f in reactions.values()), default=1.0) + 1e-12
    missed = max((float(np.linalg.norm(sim.joint(n).reaction[0] - f)) for n, f in reactions.items()), default=0.0)
    steps = max(1, round((exact[-1].time - begin) / sim.dt))
    return Row(sim.dt, position, energy / scale, gap, missed / largest, took / steps)
