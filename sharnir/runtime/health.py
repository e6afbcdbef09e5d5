"""How the steps of a simulation went: what is counted, and the messages for steps that fail or go badly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sharnir.core.strided import of_first
from sharnir.engine.guard_data import (
    CAUSES,
    COUNT_ROWS,
    DIVERGED,
    ENERGY,
    FAST_TURNS,
    FIGURE,
    OPEN_GAP,
    STOP,
    SUM_ROWS,
    SUM_SCALE,
    TORN_APART,
    VERDICTS,
    WHICH,
)
from sharnir.engine.substeps import SPENT
from sharnir.errors import DivergenceError, SimulationError, Spelled
from sharnir.model.model import DYNAMIC

# The Simulation; it stands a floor above, so that it is not named here.
Owner = Any
HEALTH = ("steps", "not_converged", "divided", "parts", "gap", "stretch", "residual", "energy_error", "projected")


@dataclass(frozen=True)
class Health(Spelled):
    """How the steps of a simulation went; numbers, or arrays (worlds,)."""

    steps: Any
    """Steps made."""
    not_converged: Any
    """Steps whose result fails a test of `Report.converged`: joints, ropes, contacts or the energy balance."""
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
    """Largest energy that the run gained without a source, relative to the scale of the motion (its largest kinetic and elastic
    energy, and what gravity can give within the scene). Work of drives and commands, and losses, are no error.
    """
    projected: Any
    """Energy that velocities lost because they did not fit the joints, J (on the CPU)."""
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
    rows: dict[str, np.ndarray] = {name: counts[i] for i, name in enumerate(COUNT_ROWS) if name in HEALTH}
    rows |= {name: sums[i] for i, name in enumerate(SUM_ROWS) if name in HEALTH}
    rows["failed"], rows["projected"] = sim._state.failed.numpy() != 0, sim._projected
    return Health(**{name: row[0].item() if sim.worlds == 1 else row.copy() for name, row in rows.items()})


def failure(sim: Owner, code: int, seen: str) -> SimulationError:
    """How a failed step is reported; `code` as in `State.failed`, `seen` what the guard saw."""
    t = sim.time
    if code >= DIVERGED:
        return DivergenceError(
            f"{seen} after t = {t:.6g} s: the step was undone and the last good state stays; {advice(sim, True)}"
        )
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
    which, figure, scale = int(counts[WHICH]), float(sums[FIGURE]), float(sums[SUM_SCALE])
    if bit in (TORN_APART, OPEN_GAP):
        who = next((n for n, k in sim.model.joint_names.items() if k == which), None)
        if who is None:
            rope = list(sim._ropes)[which - len(sim.model.joint_names)]
            return f"an element of rope {rope!r} is longer than it should be by {100 * figure:.3g} %"
        if figure < 0:
            return f"joint {who!r} is turned off its axes by {-figure:.3g} rad"
        return f"joint {who!r} stands open by {100 * figure:.3g} % of the size of its smaller body"
    if bit == ENERGY:
        limit = f"expected at most {float(STOP) * scale:.3g} J, a fifth of the motion's {scale:.3g} J"
        return f"energy grew by {figure:.3g} J without any source ({limit})"
    who = next((n for n, k in sim.model.body_names.items() if k == which), "?")
    if bit == FAST_TURNS:
        late = f"{100 * figure**2 / 12:.2g} %"
        return f"body {who!r} turns by {figure:.2g} rad per step; its angle lags by {late} (not with solver='sequential')"
    return f"body {who!r} moves at {figure:.3g} m/s, too fast for steps of {sim.dt:g} s"


WRONG = {
    "joint": "joints are not held (velocities or gaps are off)",
    "rope": "ropes are stretched",
    "contact": "contacts do not satisfy their laws (overlap, push across a gap, or friction)",
    "energy": "energy grew without a source",
}
UNEQUAL = 100.0  # ratio of masses from which on it is named as a cause
AT_START = 50  # steps, in which overlaps and passed limits are those of the start


def trouble(sim: Owner, w: int = 0) -> str:
    """What persists in the results of a world's steps."""
    counts = sim.solver._counts.numpy()[:, w]
    causes, steps, unmet = int(counts[CAUSES]), int(counts[0]), int(counts[COUNT_ROWS.index("not_converged")])
    what = " and ".join(WRONG[name] for bit, name in VERDICTS.items() if causes & bit)
    return f"{unmet} of {steps} steps did not converge: {what}"


def because(sim: Owner, how: dict[str, Any], w: int = 0) -> str:
    """The likely cause of the problems of a world's steps, and what to do."""
    counts = sim.solver._counts.numpy()[:, w]
    names = [name for bit, name in VERDICTS.items() if int(counts[CAUSES]) & bit]
    cause, remedy = likely_cause(sim, names, how, int(counts[0]))
    return f"likely cause: {cause}; remedy: {remedy}"


def likely_cause(sim: Owner, names: list[str], how: dict[str, Any], steps: int) -> tuple[str, str]:
    """The likely cause of steps that do not converge, and its remedy."""
    sequential = sim.solver_name == "sequential"
    if how.get("budget") is not None:
        return f"the budget of {how['budget']:g} s per step is too short", "a longer budget, or a simpler scene"
    if how.get("iterations") is not None:
        return f"this call allows {how['iterations']} iterations only", "a larger number in step(iterations=…)"
    if steps <= AT_START and "contact" in names:
        return "bodies overlap, or limits are passed, at the start", "a start pose without overlaps and within the limits"
    ratio, heavy, light = unequal(sim)
    if ratio > UNEQUAL and (sequential or "contact" in names):
        exact = "solver='direct', or " if sequential and "joint" in names else ""
        return f"the mass of {heavy!r} is {ratio:.0f} times that of {light!r}", f"{exact}masses that are less different"
    if sequential:
        exact = "" if sim.model.ropes is not None and sim.model.collision is not None else ", or solver='direct'"
        cause = f"{sim.solver.iterations} iterations are too few for this scene, or dt = {sim.dt:g} s is too long"
        return cause, f"Tolerances(iterations={4 * sim.solver.iterations}), a smaller dt{exact}"
    other = ", or solver='sequential' for many bodies that touch" if "contact" in names else ""
    return f"dt = {sim.dt:g} s is too long for this motion", f"a smaller dt{other}"


def unequal(sim: Owner) -> tuple[float, str, str]:
    """The largest ratio of the masses of two dynamic bodies that are joined, or may touch, with their names."""
    mass, names = of_first(sim.model.bodies.mass), {k: n for n, k in sim.model.body_names.items()}
    moves = sim.model.bodies.motion.numpy() == DYNAMIC
    if sim.model.collision is not None and moves.any():
        on = np.flatnonzero(moves)
        heavy, light = on[mass[on].argmax()], on[mass[on].argmin()]
        return float(mass[heavy] / mass[light]), names[int(heavy)], names[int(light)]
    worst = (1.0, "", "")
    for a, b in sim.model.ties():
        if moves[a] and moves[b]:
            heavy, light = (a, b) if mass[a] >= mass[b] else (b, a)
            worst = max(worst, (float(mass[heavy] / mass[light]), names[int(heavy)], names[int(light)]))
    return worst


def advice(sim: Owner, stopped: bool = False) -> str:
    """What helps against a motion that diverges, or is about to."""
    goes_on = '; set on_divergence="warn" to continue' if stopped else ""
    if sim.solver_name == "sequential":
        model = sim.solver.model
        exact = "" if model.ropes is not None and model.collision is not None else "solver='direct', "  # it refuses these
        return f"try {exact}a smaller dt than {sim.dt:g} s, or more iterations than {sim.solver.iterations}{goes_on}"
    return f"try a smaller dt than {sim.dt:g} s; check masses, forces and paths{goes_on}"
