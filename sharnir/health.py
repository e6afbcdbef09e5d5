"""How the steps of a simulation went: what is counted, and the words by which a step that fails or goes badly is told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sharnir.articulated.solver import SolverArticulated
from sharnir.errors import DivergenceError, SimulationError
from sharnir.guard import COUNTS, DIVERGED, ENERGY, FIGURE, OPEN_GAP, SCALE, SUMS, TORN, TURNS, WHICH
from sharnir.sequential.solver import SolverImpulse
from sharnir.stepping import SPENT

# The Simulation; it stands a floor above, so that it is not named here.
Owner = Any
HEALTH = ("steps", "not_converged", "divided", "parts", "gap", "stretch", "residual", "energy_error", "projected")


@dataclass(frozen=True)
class Health:
    """How the steps of a simulation went; numbers, or arrays (worlds,)."""

    steps: Any
    """Steps made."""
    not_converged: Any
    """Steps whose passes or sweeps ended above the tolerance."""
    divided: Any
    """Steps made in parts."""
    parts: Any
    """Parts of those, in all."""
    gap: Any
    """Largest gap of a joint that was seen, m (with the direct pass m or rad)."""
    stretch: Any
    """Largest lengthening of a rope's element that was seen, relative."""
    residual: Any
    """Largest residual of a step, N·s or N·m·s."""
    energy_error: Any
    """Largest energy that steps made of nothing, of the motion's scale; what friction, drives and commands do is no error."""
    projected: Any
    """Energy that velocities lost because they did not fit the joints, J (`closing="energy"`, on the CPU)."""
    failed: Any
    """Whether the world stopped."""

    def __repr__(self) -> str:
        def text(value: Any) -> str:
            if isinstance(value, np.ndarray):
                return f"{value.min():.3g} to {value.max():.3g}" if value.dtype.kind == "f" else f"{value.min()} to {value.max()}"
            return f"{value:.3g}" if isinstance(value, float) else str(value)

        lines = [f"  {name}: {text(getattr(self, name))}" for name in self.__dataclass_fields__]
        return "Health(\n" + "\n".join(lines) + "\n)"


def health(sim: Owner) -> Health:
    """How the steps went since the start, the last `reset` or `restore`; of several worlds, arrays (worlds,)."""
    counts, sums = sim.solver._counts.numpy(), sim.solver._sums.numpy().astype(float)
    rows: dict[str, np.ndarray] = {name: counts[i] for i, name in enumerate(COUNTS) if name in HEALTH}
    rows |= {name: sums[i] for i, name in enumerate(SUMS) if name in HEALTH}
    rows["failed"], rows["projected"] = sim._state.failed.numpy() != 0, sim._projected
    return Health(**{name: row[0].item() if sim.worlds == 1 else row.copy() for name, row in rows.items()})


def failure(sim: Owner, code: int, seen: str) -> SimulationError:
    """What a failed step is told by; `code` as in `State.failed`, `seen` what the guard saw."""
    t = sim.time
    if code >= DIVERGED:
        return DivergenceError(f"{seen} after t = {t:.6g} s: the step was not made and the last good state stays; {advice(sim)}")
    spent = code <= SPENT
    body = -(code - int(SPENT)) if spent else abs(code) - 1
    names = [f"body {n!r}" for n in sim.model.body_names] + [f"rope {n!r}" for n in sim._ropes]
    who = names[min(body, len(names) - 1)]
    if spent:
        return SimulationError(
            f"the step after t = {t:.6g} s takes too long: divided until its passes were used up, {who} is not met; "
            "the last good state stays; check masses, forces and speeds, or take a smaller dt"
        )
    if code < 0:
        return SimulationError(
            f"the step after t = {t:.6g} s could not be made, however finely it was divided: passes do not meet at "
            f"{who}; the last good state stays; check masses, forces and speeds, or take a smaller dt"
        )
    return SimulationError(
        f"{who} would have a non-finite state after t = {t:.6g} s: the step was not made and the last good "
        "state stays; check forces, speeds and dt"
    )


def sight(sim: Owner, bit: int, w: int = 0) -> str:
    """What the guard saw in a world."""
    counts, sums = sim.solver._counts.numpy()[:, w], sim.solver._sums.numpy()[:, w]
    which, figure, scale = int(counts[WHICH]), float(sums[FIGURE]), float(sums[SCALE])
    if bit in (TORN, OPEN_GAP):
        who = next((n for n, k in sim.model.joint_names.items() if k == which), None)
        if who is None:
            rope = list(sim._ropes)[which - len(sim.model.joint_names)]
            return f"an element of rope {rope!r} is longer than it should be by {100 * figure:.3g} %"
        if figure < 0:
            return f"joint {who!r} is turned off its axes by {-figure:.3g} rad"
        return f"joint {who!r} stands open by {100 * figure:.3g} % of the size of its smaller body"
    if bit == ENERGY:
        return f"the motion has gained {figure:.3g} J that nothing gave it, beside {scale:.3g} J that it can have"
    who = next((n for n, k in sim.model.body_names.items() if k == which), "?")
    if bit == TURNS:
        late = f"{100 * figure**2 / 12:.2g} %"
        return f"body {who!r} turns by {figure:.2g} rad a step; its angle falls behind by {late}, not with 'sequential'"
    return f"body {who!r} moves at {figure:.3g} m/s, more than steps of {sim.dt:g} s can follow"


def advice(sim: Owner) -> str:
    """What helps against steps that go badly."""
    if isinstance(sim.solver, SolverImpulse):
        model = sim.solver.model
        exact = "" if model.ropes is not None and model.collision is not None else "solver='direct', "  # it refuses these
        return (
            f"take {exact}a smaller dt than {sim.dt:g} s, or more iterations than {sim.solver.iterations}; "
            "on_divergence= says whether this is an error"
        )
    if isinstance(sim.solver, SolverArticulated):
        return f"take solver='direct' or a smaller dt than {sim.dt:g} s; on_divergence= says whether this is an error"
    return f"take a smaller dt than {sim.dt:g} s; check masses, forces and paths; on_divergence= says whether this is an error"
