"""Steps as transactions: the former state is kept; a step that fails is rolled back and reported."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np

from sharnir.core.graphs import LOCK
from sharnir.engine.base import Report
from sharnir.engine.guard_data import DIVERGED, ENERGY, FAST_TURNS, NOT_MET, OPEN_GAP, TOLD, TOO_FAST, TORN_APART
from sharnir.errors import StepWarning, callers_level
from sharnir.runtime.arrays import memory
from sharnir.runtime.health import advice, because, failure, sight, trouble
from sharnir.runtime.snapshots import Columns

# The Simulation; it stands a floor above, so that it is not named here.
Owner = Any
AS_USUAL: dict[str, Any] = {}


class Sum:
    """Adds up what the report counts in a call, where that is made in several goes."""

    def __init__(self, solver: Any) -> None:
        self._solver = solver
        self._sum: list[Any] | None = None

    def add(self, last: bool) -> None:
        """One more go was made."""
        if last and self._sum is None:
            return
        counted = [self._solver.grades.numpy(), self._solver.projected.numpy()]
        self._sum = [a.copy() for a in counted] if self._sum is None else [a + b for a, b in zip(self._sum, counted, strict=True)]
        if last:
            self._solver.grades.assign(self._sum[0])
            self._solver.projected.assign(self._sum[1])


class Transaction:
    """Makes the steps of a simulation.

    Args:
        whole: the memory of all that a step changes. arrays: the arrays in it.
    """

    def __init__(self, sim: Owner, whole: Any, arrays: list[Any]) -> None:
        solver = sim.solver
        self._sim, self._solver = sim, solver
        self.whole, self.starts = whole, None  # the memory, and starts of worlds that are put back (`snapshots.Starts`)
        self._state, self._control = sim._state, sim.commands
        self._make: Callable[..., Report] = getattr(solver, "advance", solver.step)
        self._once: Callable[[], Report] | None = getattr(solver, "once", None)
        self._several: Callable[[int], Report] | None = getattr(solver, "several", None)
        self._leaves = 2 * solver.reads, solver.at_pose  # what of the joints is read after a step, and where velocities stand
        self._was = 0, True
        self._causes: set[str] = set()  # that warnings have named
        live = whole, solver.memory
        on_cpu, one = sim._on_cpu, sim.worlds == 1
        self._one = on_cpu and one
        self._lost = solver.projected.numpy() if on_cpu else None
        self._many = solver.alarm.numpy() if on_cpu else None
        if self._one:
            self._failed, self._alarm = memory(self._state.failed.numpy()), memory(solver.alarm.numpy())
            self._live, self._live_report = (memory(part.numpy()) for part in live)  # copied faster than by NumPy
            self._safe, self._safe_report = (memory(part.numpy().copy()) for part in live)
            self._taken = memory(solver.projected.numpy())
        self._kept = Columns(live, arrays + [solver.whole, solver.real]) if on_cpu and not one else None

    def once(self) -> Report:
        """One step; of one world in which nothing was changed it is made here, in the fewest words."""
        return self._make_bound(1) if self._is_usual(self._once) else self.advance(1, AS_USUAL)

    def several(self, n: int) -> Report:
        """Some steps in one go, in as few words."""
        return self._make_bound(n) if self._is_usual(self._several) else self.advance(n, AS_USUAL)

    def _is_usual(self, make: Callable[..., Report] | None) -> bool:
        """Whether there is one world in which nothing was changed but commands, and what makes its steps."""
        sim = self._sim
        if not self._one or make is None or self._solver._bound is None or sim._bodies_lent:
            return False
        if sim._lent:
            sim._look()
        return not (sim._modified or sim._forced or self._solver._bound is None)

    def _make_bound(self, n: int) -> Report:
        """Steps of one world in which nothing was changed."""
        sim = self._sim
        self._was = sim._known, sim._at_pose
        sim._read, sim._at_pose = self._leaves
        sim._known = sim._read
        self._safe[:] = self._live
        self._safe_report[:] = self._live_report
        report = self._once() if n == 1 else self._several(n)  # type: ignore[misc]
        if self._failed[0] or self._alarm[0]:
            self._attend(n, AS_USUAL)
        if self._taken[0]:
            sim._projected[0] += self._taken[0]
        if sim._lent:
            sim._take()
        return report

    def advance(self, n: int, how: dict[str, Any]) -> Report:
        """Some steps in one go; of a world that fails, nothing is left but its last good state."""
        sim = self._sim
        if not sim._lent and self._solver._bound is not None:  # as usual
            return self._attempt(n, how)
        sim._look()
        with LOCK if self._solver._bound is None else nullcontext():  # the first step records its launches
            report = self._attempt(n, how)
        sim._take()
        return report

    def _attempt(self, n: int, how: dict[str, Any]) -> Report:
        sim = self._sim
        self._was = sim._known, sim._at_pose
        if not self._one:
            self._known(*self._leaves)
            if (sim._modified or sim._forced) and (sim.worlds == 1 or not self._solver._looks_first):
                self._solver.look_again()
            sim._modified = sim._forced = False
            if self._kept is not None:
                return self._advance_worlds(n, how)
            return self._make(self._state, self._control, n, **how)
        if sim._modified or sim._forced:
            self._solver.look_again()
            sim._modified = sim._forced = False
        return self._go(n, how)

    def _go(self, n: int, how: dict[str, Any]) -> Report:
        """Some steps of one world."""
        sim = self._sim
        sim._known, sim._at_pose = self._leaves
        sim._read = 0 if sim._bodies_lent else sim._known
        self._safe[:] = self._live
        self._safe_report[:] = self._live_report
        if n > 1 or how or self._once is None or self._solver._bound is None:
            report = self._make(self._state, self._control, n, **how)
        else:
            report = self._once()
        if self._failed[0] or self._alarm[0]:
            self._attend(n, how)
        if self._taken[0]:
            sim._projected[0] += self._taken[0]
        return report

    def _known(self, read: int, at_pose: bool) -> None:
        """What of the joints is read, and where velocities stand."""
        sim = self._sim
        sim._known, sim._at_pose = read, at_pose
        sim._read = 0 if sim._bodies_lent else read

    def _advance_worlds(self, n: int, how: dict[str, Any]) -> Report:
        """Some steps of several worlds; one that fails goes back to its last good step and stops, the others go on."""
        assert self._kept is not None and self._lost is not None
        failed = self._sim._moving.failed
        before = failed.copy()
        self._kept.keep()
        try:
            report = self._make(self._state, self._control, n, **how)
        except KeyboardInterrupt:  # some worlds may have made more steps than others
            self._kept.take_back()
            self._solver.restart()
            raise
        new = np.flatnonzero((failed != 0) & (before == 0))
        if len(new) and n > 1:  # step by step, to the one that fails; the others do again what they did
            self._kept.take_back()
            self._solver.alarm.zero_()
            self._solver.restart()
            for _ in range(n):
                report = self._advance_worlds(1, how)
            return report
        if self._many is not None and self._many.any():
            w = int(np.flatnonzero(self._many)[0])
            self._warn(int(self._many[w]), how, w)
        if len(new):
            why = failed[new].copy()
            self._kept.take_back(new)
            failed[new] = why
        self._sim._projected += self._lost
        return report

    def _attend(self, n: int, how: dict[str, Any]) -> None:
        """After some steps of which one failed, or is to be reported."""
        sim = self._sim
        code = int(self._failed[0])
        if code == 0:
            self._warn(int(self._alarm[0]), how)
            return
        if n > 1:  # step by step, to the one that fails
            self._take_back()
            for _ in range(n):
                self._attempt(1, how)
            return
        seen = sight(sim, code - int(DIVERGED)) if code >= DIVERGED else ""
        self._take_back()
        self._forget_once()
        raise failure(sim, code, seen)

    def _take_back(self) -> None:
        """The state as it was before the last call."""
        self._live[:] = self._safe
        self._live_report[:] = self._safe_report
        self._solver.alarm.zero_()
        self._solver.restart()
        self._sim._modified = True  # the guard starts from this state
        self._known(*self._was)

    def _forget_once(self) -> None:
        """Forces of one step are of that step, though it was not made."""
        for array in (self._control.force_once, self._control.torque_once):
            array.zero_()
        if self._sim._ropes:
            self._sim.commands.rope.force_once.zero_()

    def _warn(self, bits: int, how: dict[str, Any], w: int = 0) -> None:
        """Warn, once each, of what does not end the motion; on a GPU a look would cost a step."""
        sim = self._sim
        counts = self._solver._counts.numpy()
        if not counts[TOLD].any():  # the counts begin anew
            self._causes.clear()
        counts[TOLD] |= bits
        self._solver.alarm.zero_()
        where = f"world {w}: " if sim.worlds > 1 else ""
        cause = because(sim, how, w)
        known = cause in self._causes
        worst = next((b for b in (TORN_APART, TOO_FAST, ENERGY, OPEN_GAP, FAST_TURNS) if bits & b), None)
        if worst is not None and (worst in (OPEN_GAP, FAST_TURNS) or sim._on_divergence == "warn"):
            if worst == OPEN_GAP and known:
                return
            remedy = advice(sim) if worst != OPEN_GAP else cause
            self._causes |= {cause} if worst == OPEN_GAP else set()
            self._say(f"{where}{sight(sim, int(worst), w)} (t = {sim.time:.6g} s); {remedy}")
        elif bits & NOT_MET and not known:
            self._causes.add(cause)
            self._say(f"{where}{trouble(sim, w)} (t = {sim.time:.6g} s); {cause}")

    def _say(self, words: str) -> None:
        if self._sim._on_divergence != "ignore":
            warnings.warn(words, StepWarning, stacklevel=callers_level())
