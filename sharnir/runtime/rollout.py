"""Motions through many steps, with derivatives of their costs: `sh.rollout`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sharnir import dynamics
from sharnir.core.spatial import quat_rotate
from sharnir.errors import SimulationError, as_numbers
from sharnir.runtime.linearization import at_frame, check_covered, columns_of, efforts, rows_of, speed_names, speeds_of

# The Simulation; it stands a floor above, so that it is not named here.
Owner = Any
APART = 1e-3  # of a parameter: by which it is moved to see which numbers of links depend on it, and how; no step is made


@dataclass(frozen=True)
class Gradient:
    """How a cost of a motion changes with what led to it.

    Args:
        q, v: (n,) by the coordinates of the first state along the speeds, and by its speeds, in the order of `Linearization`.
        controls: (steps, m), in the order of the inputs.
        parameters: by word.

    Where there are several worlds, all have a leading axis for them.
    """

    q: np.ndarray
    v: np.ndarray
    controls: np.ndarray
    parameters: dict[str, Any]


class Rollout:
    """A motion from a state, and what is kept of it to go back.

    `q` (steps + 1, nq) and `v` (steps + 1, nv) are its coordinates and speeds, in the order of `sh.dynamics.from_state`, with a
    leading axis for worlds where there are several; `switches` (steps,) tells in which steps something stopped: an axis came to
    rest by friction, or met a limit.
    """

    def __init__(self, sim: Owner, controls: Any, steps: int | None, inputs: Iterable[str] | None) -> None:
        from sharnir.engine.tree.linearize import Motion

        check_covered(sim, "rollout")
        solver, self._sim, self._links = sim.solver, sim, dynamics.links(sim)
        places = solver._trees.plan.places
        asked = efforts(sim, places) if inputs is None else inputs
        columns = columns_of(sim, places, asked) if controls is not None or inputs is not None else []
        self.inputs = tuple(name for name, *_ in columns)
        self.controls = self._given(controls, steps, len(columns))
        self.steps, self.states = self.controls.shape[1], speed_names(sim, self._links)
        self._rows, self._floating = rows_of(places, self._links)
        if solver._bound is None or solver._bound[0] is not sim._state:
            solver._bind(sim._state, sim.commands)
        if sim._state.resting.numpy().any():
            solver.wake(sim._state)
        columns_at = [(i, name, k) for _, i, name, k in columns]
        self._motion = Motion(solver._trees, solver._bound[2], columns_at, self.controls)
        self._was = self._motion.numbers(sim.commands)
        self._make()

    def _given(self, controls: Any, steps: int | None, m: int) -> np.ndarray:
        """(worlds, steps, m)."""
        worlds = self._sim.worlds
        if controls is None:
            if not isinstance(steps, int) or isinstance(steps, bool) or steps < 1:
                raise SimulationError(f"rollout: without controls, steps is a whole number of at least 1, got {steps!r}")
            if m:
                raise SimulationError(f"rollout: inputs are named ({', '.join(self.inputs)}), but no controls are given")
            return np.zeros((worlds, steps, 0))
        given = as_numbers(controls)
        fits = given.ndim in (2, 3) and given.shape[-1] == m and given.shape[-2] > 0 and np.isfinite(given).all()
        if not fits or (given.ndim == 3 and len(given) != worlds) or (steps is not None and steps != given.shape[-2]):
            of_worlds = f", or ({worlds}, steps, {m})" if worlds > 1 else ""
            what = f"(steps, {m}){of_worlds} finite numbers, of {', '.join(self.inputs)}"
            raise SimulationError(
                f"rollout: controls are {what}, got shape {given.shape}{'' if steps is None else f', steps={steps}'}"
            )
        return np.broadcast_to(given, (worlds, *given.shape[-2:])).copy()

    def _make(self) -> None:
        """Make the steps."""
        motion, worlds, n = self._motion, self._sim.worlds, len(self.states)
        nothing = np.zeros((worlds, 0, motion.links, 0))
        speeds, _ = motion.make(nothing, nothing)
        self._q, self._v = np.zeros((worlds, self.steps + 1, self._links.nq)), np.zeros((worlds, self.steps + 1, n))
        for s, (i, number) in enumerate(self._rows):
            self._v[..., s] = speeds[:, :, i, number].T
        self._coordinates()
        self.q, self.v, self.switches = self._out(self._q), self._out(self._v), self._out(motion.hits.T)

    def _coordinates(self) -> None:
        """q of all states; velocities of bodies that float are of their frames' origins."""
        places = self._sim.solver._trees.plan.places
        floating = dict(self._floating)
        self._spins = np.zeros((len(floating), *self._q.shape[:2], 7))
        for i, p in enumerate(places):
            if i in floating:
                at = floating[i]
                k = next(k for k in range(len(self._links.kinds)) if int(self._links.v_start[k]) == at and self._links.kinds[k].v_size)
                com, turn = self._motion.kept(i, "position"), self._motion.kept(i, "rotation")
                arm, spin = rotated(turn, self._sim.model.com[p.body]), self._v[..., at + 3 : at + 6]
                q = int(self._links.q_start[k])
                self._q[..., q : q + 3], self._q[..., q + 3 : q + 7] = com - arm, turn
                self._v[..., at : at + 3] -= np.cross(spin, arm)
                self._spins[list(floating).index(i)] = np.concatenate([turn, spin], -1)
            elif p.axis >= 0 and speeds_of(p) == 3:
                turn = self._motion.kept(i, "rotation")
                self._q[..., p.coordinate : p.coordinate + 4] = turn * ([1, 1, 1, 1] if p.sense > 0 else [-1, -1, -1, 1])
            elif p.axis >= 0 and speeds_of(p) == 1:
                self._q[..., p.coordinate] = self._motion.kept(i, "q")[..., 0]

    def _body(self, i: int) -> int:
        return int(self._sim.solver._trees.plan.places[i].body)

    def _out(self, x: np.ndarray) -> np.ndarray:
        return x[0] if self._sim.worlds == 1 else x

    def __repr__(self) -> str:
        switches = int(np.sum(self.switches))
        return f"Rollout({self.steps} steps, {len(self.inputs)} inputs{f', {switches} switches' if switches else ''})"

    # ---- back

    def gradient(self, q: Any = None, v: Any = None, parameters: Sequence[str] = ()) -> Gradient:
        """How a cost changes with the first state, the controls and parameters, from its derivatives by the motion.

        Args:
            q, v: derivatives of the cost by `Rollout.q` and `Rollout.v`, number by number; zero if None.
            parameters: words such as "body/bob.mass", "joint/hinge.friction", as `run_study` has them.
        """
        sim, worlds, n = self._sim, self._sim.worlds, len(self.states)
        self._check_same()
        by_q, by_v = self._slopes("q", q, self._q), self._slopes("v", v, self._v)
        both = np.concatenate([along_speeds(self._links, self._q, by_q), by_v], -1)
        frames = self._frames()
        for j, (_, at) in enumerate(self._floating):
            own = [*range(at, at + 6), *range(n + at, n + at + 6)]
            both[..., own] = np.einsum("wkab,wka->wkb", frames[j], both[..., own])
        from sharnir.engine.tree.tangent import RESULT_SIZE

        cost = np.zeros((self.steps + 1, worlds, self._motion.links, RESULT_SIZE))
        for s, (i, number) in enumerate(self._rows):
            cost[:, :, i, number] = both[..., s].T
            cost[:, :, i, 6 + number] = both[..., n + s].T
        out, by_parameters = self._motion.back(cost)
        first = np.stack([out[0, :, i, k + at] for at in (0, 6) for i, k in self._rows], -1) if n else np.zeros((worlds, 0))
        for j, (_, at) in enumerate(self._floating):
            own = [*range(at, at + 6), *range(n + at, n + at + 6)]
            first[:, own] = np.linalg.solve(np.swapaxes(frames[j][:, 0], 1, 2), first[:, own, None])[..., 0]
        from sharnir.engine.tree.tangent import SEED, start_of

        given = [out[: self.steps, :, i, start_of(SEED, name) + k] for i, name, k in self._motion.columns]
        controls = np.stack(given, -1) if given else np.zeros((self.steps, worlds, 0))
        found = {w: self._out(s) for w, s in (self._by_words(parameters, by_parameters)).items()}
        return Gradient(self._out(first[:, :n]), self._out(first[:, n:]), self._out(np.swapaxes(controls, 0, 1)), found)

    def _check_same(self) -> None:
        """Refuse to go back along a motion after something was changed on which it depends."""
        bound, motion = self._sim.solver._bound, self._motion
        if bound is None or bound[2] is not motion.bound or not np.array_equal(motion.numbers(self._sim.commands), self._was):
            raise SimulationError("rollout: the simulation was changed after this motion; make a new one for its gradient")

    def _slopes(self, what: str, given: Any, like: np.ndarray) -> np.ndarray:
        if given is None:
            return np.zeros_like(like)
        x = as_numbers(given)
        if x.shape != self._out(like).shape or not np.isfinite(x).all():
            raise SimulationError(
                f"rollout: derivatives by {what} are finite numbers of shape {self._out(like).shape}, got {x.shape}"
            )
        return x.reshape(like.shape).astype(float)

    def _frames(self) -> list[np.ndarray]:
        """Of each floating body: (worlds, steps + 1, 12, 12) changes of its frame from those of its centre of mass."""
        out = []
        for j, (i, _) in enumerate(self._floating):
            turns = self._spins[j].reshape(-1, 7)
            arm = rotated(turns[:, :4], self._sim.model.com[self._body(i)])
            out.append(at_frame(arm, turns[:, 4:]).reshape(*self._spins.shape[1:3], 12, 12))
        return out

    def _by_words(self, words: Sequence[str], slopes: np.ndarray) -> dict[str, np.ndarray]:
        """(worlds,) slopes by parameters, from those by numbers of links."""
        from sharnir.study.words import parameters as found

        sim, out = self._sim, dict[str, np.ndarray]()
        if not words:
            return out
        start = sim.snapshot()
        for parameter in found(sim, list(words)):
            now = parameter.get(sim)
            by = APART * np.where(now != 0, np.abs(now), 1.0)
            both = []
            for way in (now + by, now - by):
                parameter.put(sim, way)
                both.append(self._motion.numbers(sim.commands))
            parameter.put(sim, now)
            change = (both[0] - both[1]) / (2 * by)[:, None, None]
            out[parameter.word] = np.einsum("wip,wip->w", slopes, np.broadcast_to(change, slopes.shape))
        sim.restore(start)
        return out


def rotated(turns: np.ndarray, x: np.ndarray) -> np.ndarray:
    """A vector that turns with bodies, (…, 4)."""
    each = np.broadcast_to(x, (turns.size // 4, 3))
    return quat_rotate(turns.reshape(-1, 4), each).reshape(*turns.shape[:-1], 3)  # type: ignore[no-any-return]


def along_speeds(links: Any, q: np.ndarray, slopes: np.ndarray) -> np.ndarray:
    """Slopes by small motions along the speeds, from those by coordinates."""
    out = np.zeros((*q.shape[:-1], links.nv))
    for k, kind in enumerate(links.kinds):
        a, b, n = int(links.q_start[k]), int(links.v_start[k]), kind.v_size
        if len(kind.turns) != 3:
            out[..., b : b + n] = slopes[..., a : a + n]
            continue
        out[..., b : b + n - 3] = slopes[..., a : a + n - 3]
        Q, S = (x[..., a + n - 3 : a + n + 1] for x in (q, slopes))
        v, w = Q[..., :3], Q[..., 3:]
        out[..., b + n - 3 : b + n] = 0.5 * (w * S[..., :3] + np.cross(v, S[..., :3]) - v * S[..., 3:])
    return out


def rollout(
    sim: Owner, controls: Any = None, *, steps: int | None = None, inputs: Iterable[str] | None = None
) -> Rollout:  # fmt: skip
    """Make steps from the present state of a simulation, and keep what `Rollout.gradient` needs; the state stays as it is.

    Args:
        controls: (steps, m) commands before each step, or (worlds, steps, m); none if None.
        steps: how many, where there are no controls.
        inputs: what they command, see `Simulation.linearize`.
    """
    return Rollout(sim, controls, steps, inputs)
