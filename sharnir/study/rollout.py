"""Motions of many steps, with their derivatives: `sh.rollout`."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sharnir import dynamics
from sharnir.core.misspellings import by_name
from sharnir.core.spatial import quat_rotate
from sharnir.errors import SimulationError, StepWarning, as_numbers, callers_level
from sharnir.runtime.linearization import at_frame, check_covered, columns_of, efforts, rows_of, speed_names, speeds_of
from sharnir.study.words import Parameter
from sharnir.study.words import parameters as found_parameters

# The Simulation; it stands a floor above, so that it is not named here.
Owner = Any
APART = 1e-3  # of a parameter: by which it is moved to see how numbers of links depend on it; no step is made for that
KNOWN = {
    "body": ("mass", "inertia", "com_local"),
    "joint": ("damping", "friction", "spring", "parent_anchor", "child_anchor", "drive"),
}  # what parameters are of that motions are differentiated by
OF_DRIVE = ("kp", "kd", "max_force", "resistance", "torque_constant", "gear_ratio", "efficiency", "rotor_inertia")


@dataclass(frozen=True)
class Gradient:
    """How a cost of a motion changes with what led to it.

    Args:
        q, v: (n,) by the coordinates of the first state, along the speeds, and by its speeds, in the order of `Rollout.states`.
        controls: (steps, m), in the order of the inputs.
        parameters: by word.

    Where there are several worlds, all have a leading axis for them.
    """

    q: np.ndarray
    v: np.ndarray
    controls: np.ndarray
    parameters: dict[str, Any]


class Rollout:
    """A motion, and what is kept of it to differentiate it; made by `sh.rollout`.

    `q` (steps + 1, nq) and `v` (steps + 1, nv) are its coordinates and speeds, in the order of `sh.dynamics.from_state`, with a
    leading axis for worlds where there are several; `switches` (steps,) tells in which steps something stopped: an axis came to
    rest by friction, or met a limit. `states` are names for the n speeds, `inputs` those of the m controls.
    """

    def __init__(
        self, sim: Owner, controls: Any, steps: int | None, inputs: Iterable[str] | None, parameters: Sequence[str],
        like: Rollout | None = None,
    ) -> None:  # fmt: skip
        from sharnir.engine.tree.linearize import Motion

        check_covered(sim, "rollout")
        self._sim, self._links, places = sim, dynamics.links(sim), sim.solver._trees.plan.places
        asked = efforts(sim, places) if inputs is None else inputs
        columns = columns_of(sim, places, asked, "rollout") if controls is not None or inputs is not None else []
        self.inputs = tuple(name for name, *_ in columns)
        self.controls = self._given(controls, steps, len(columns))
        self.steps, self.states = self.controls.shape[1], speed_names(sim, self._links)
        self._rows, self._floating = rows_of(places, self._links)
        self.parameters, self._by_words = tuple(parameters), np.zeros((len(parameters), 1, len(places), 0))
        if like is not None:  # numbers of links are linear in parameters
            self._by_words = like._by_words
        elif self.parameters:
            self._by_words = self._differences(found(sim, self.parameters))
        solver = sim.solver
        if solver._bound is None or solver._bound[0] is not sim._state:
            solver._bind(sim._state, sim.commands)
        if sim._state.resting.numpy().any():
            solver.wake(sim._state)
        columns_at = [(i, name, k) for _, i, name, k in columns]
        self._motion = Motion(solver._trees, solver._bound[2], columns_at, self.controls)
        self._was = self._motion.numbers(sim.commands)
        nothing = np.zeros((sim.worlds, 0, len(places), 0))
        self._speeds, _ = self._motion.make(nothing, nothing)
        self._read()
        self._warn_of_shares()

    def _given(self, controls: Any, steps: int | None, m: int) -> np.ndarray:
        """(worlds, steps, m)."""
        worlds = self._sim.worlds
        if controls is None:
            if not isinstance(steps, int) or isinstance(steps, bool) or steps < 1:
                raise SimulationError(f"rollout: without controls, steps is a whole number of at least 1, got {steps!r}")
            if m:
                raise SimulationError(f"rollout: inputs are named ({', '.join(self.inputs)}), but no controls are given")
            return np.zeros((worlds, steps, 0))
        x = as_numbers(controls)
        fits = x.ndim in (2, 3) and x.shape[-1] == m and x.shape[-2] > 0 and np.isfinite(x).all()
        if not fits or (x.ndim == 3 and len(x) != worlds) or steps not in (None, x.shape[-2]):
            each = f" or ({worlds}, steps, {m})" if worlds > 1 else ""
            so_many = "" if steps is None else f" with steps={steps}"
            what = f"(steps, {m}){each} finite numbers, of {', '.join(self.inputs) or 'no input'}"
            raise SimulationError(f"rollout: controls are {what}; got shape {x.shape}{so_many}")
        return np.broadcast_to(x, (worlds, *x.shape[-2:])).copy()

    def _differences(self, parameters: Sequence[Parameter]) -> np.ndarray:
        """(parameter, 1 or worlds, link, number): how numbers of links depend on parameters."""
        from sharnir.engine.tree.linearize import link_numbers

        sim, out = self._sim, []
        start = sim.snapshot()
        for parameter in parameters:
            now: Any = parameter.get(sim)
            by = APART * np.where(now != 0, np.abs(now), 1.0)
            both = []
            for way in (now + by, now - by):
                parameter.put(sim, way)
                both.append(link_numbers(sim.solver._trees, sim.commands))
            parameter.put(sim, now)
            out.append((both[0] - both[1]) / (2 * by[:, None, None]))
        sim.restore(start)
        return np.stack([np.broadcast_to(x, max(out, key=len).shape) for x in out])

    def _read(self) -> None:
        """Coordinates and speeds; of bodies that float those of their frames' origins."""
        motion, places = self._motion, self._sim.solver._trees.plan.places
        shape, floating = (self._sim.worlds, self.steps + 1), dict(self._floating)
        q, v = np.zeros((*shape, self._links.nq)), np.zeros((*shape, len(self.states)))
        for s, (i, number) in enumerate(self._rows):
            v[..., s] = self._speeds[:, :, i, number].T
        self._spins = np.zeros((len(floating), *shape, 7))
        starts = {int(self._links.v_start[k]): int(self._links.q_start[k]) for k, x in enumerate(self._links.kinds) if x.v_size}
        for i, p in enumerate(places):
            if i in floating:
                at, a = floating[i], starts[floating[i]]
                turn, spin = motion.kept(i, "rotation"), v[..., floating[i] + 3 : floating[i] + 6]
                arm = rotated(turn, self._sim.model.com[p.body])
                q[..., a : a + 3], q[..., a + 3 : a + 7] = motion.kept(i, "position") - arm, turn
                v[..., at : at + 3] -= np.cross(spin, arm)
                self._spins[list(floating).index(i)] = np.concatenate([turn, spin], -1)
            elif speeds_of(p) == 3:
                back = [1, 1, 1, 1] if p.sense > 0 else [-1, -1, -1, 1]
                q[..., p.coordinate : p.coordinate + 4] = motion.kept(i, "rotation") * back
            elif speeds_of(p) == 1:
                q[..., p.coordinate] = motion.kept(i, "q")[..., 0]
        begun = dynamics.from_state(self._sim, self._sim.state)[0]
        for a in [int(self._links.q_start[k]) + x.q_size - 4 for k, x in enumerate(self._links.kinds) if len(x.turns) == 3]:
            turns, first = q[..., a : a + 4], begun[:, None, a : a + 4]  # of its two quaternions a rotation has that of the state
            turns *= np.where((turns[:, :1] * first).sum(-1, keepdims=True) < 0, -1.0, 1.0)
        self._q, self._v = q, v
        self.q, self.v, self.switches = self._out(q), self._out(v), self._out(motion.hits.T)

    def _out(self, x: np.ndarray) -> Any:
        return x[0] if self._sim.worlds == 1 else x

    def __repr__(self) -> str:
        switches = int(np.sum(self.switches))
        return f"Rollout({self.steps} steps, {len(self.inputs)} inputs{f', {switches} switches' if switches else ''})"

    def _warn_of_shares(self) -> None:
        """Tell of drives and dampers that steps resolve in part: how much of them is taken at the mean speed is held fixed."""
        for i, stiff in self._motion.stiffness().items():
            if ((stiff > 1.0) & (stiff < 4.0)).any():
                name = list(self._sim.model.joint_names)[self._sim.solver._trees.plan.places[i].joint]
                words = (
                    f"rollout: steps of {self._sim.dt:g} s resolve the drive or damper of joint {name!r} in part; derivatives are"
                )
                warnings.warn(
                    f"{words} inexact there (by about 1e-3): take a smaller dt", StepWarning, stacklevel=callers_level()
                )

    def gradient(self, q: Any = None, v: Any = None) -> Gradient:
        """How a cost changes with the first state, the controls and the parameters, from its derivatives by the motion.

        It is the adjoint of the steps, in the order from the last to the first: about as much work as the motion itself, however
        many numbers it depends on.

        Args:
            q, v: derivatives of the cost by `Rollout.q` and `Rollout.v`, number by number; zero if None.
        """
        from sharnir.engine.tree.tangent import RESULT, RESULT_SIZE, SEED, start_of

        self._check_same()
        n, motion, at = len(self.states), self._motion, start_of(RESULT, "speed")
        both = np.concatenate(
            [along_speeds(self._links, self._q, self._slopes("q", q, self._q)), self._slopes("v", v, self._v)], -1
        )
        frames = self._frames()
        for own, frame in frames:
            both[..., own] = np.einsum("wkab,wka->wkb", frame, both[..., own])
        cost = np.zeros((self.steps + 1, len(both), motion.links, RESULT_SIZE))
        for s, (i, number) in enumerate(self._rows):
            cost[:, :, i, number], cost[:, :, i, at + number] = both[..., s].T, both[..., n + s].T
        out, numbers = motion.back(cost)
        first = np.zeros((len(both), 2 * n))
        for s, (i, number) in enumerate(self._rows):
            first[:, s], first[:, n + s] = out[0, :, i, number], out[0, :, i, start_of(SEED, "speed") + number]
        for own, frame in frames:
            first[:, own] = np.linalg.solve(np.swapaxes(frame[:, 0], 1, 2), first[:, own, None])[..., 0]
        controls = np.zeros_like(self.controls)
        for c, (i, name, number) in enumerate(motion.columns):
            controls[..., c] = out[: self.steps, :, i, start_of(SEED, name) + number].T
        each = [np.einsum("wip,wip->w", numbers, np.broadcast_to(x, numbers.shape)) for x in self._by_words]
        slopes = {word: self._out(x) for word, x in zip(self.parameters, each, strict=True)}
        return Gradient(self._out(first[:, :n]), self._out(first[:, n:]), self._out(controls), slopes)

    def jacobian(self) -> np.ndarray:
        """(steps + 1, 2n, p) how all states, along the speeds, and their speeds change with the p parameters.

        It is found along the motion, for eight parameters at once: of few of them and many numbers of the motion.
        """
        from sharnir.engine.tree.tangent import RESULT, SEED_SIZE, start_of

        self._check_same()
        p, worlds, at = len(self.parameters), self._sim.worlds, start_of(RESULT, "speed")
        seeds = np.zeros((worlds, p, self._motion.links, SEED_SIZE))
        by = np.broadcast_to(np.swapaxes(self._by_words, 0, 1), (worlds, p, *self._by_words.shape[2:]))
        _, found = self._motion.make(seeds, by, begin=False)
        rows = [found[:, :, :, i, number + k] for k in (0, at) for i, number in self._rows]
        out = np.moveaxis(np.stack(rows, -2) if rows else np.zeros((self.steps + 1, worlds, 0, p)), 1, 0)
        for own, frame in self._frames():
            out[:, :, own] = frame @ out[:, :, own]
        return self._out(out)  # type: ignore[no-any-return]

    def gradient_then(self, q: Any, v: Any) -> Gradient:
        """`gradient` of a motion that began at `begun`, also where the simulation was changed since."""
        if self._is_same():
            return self.gradient(q, v)
        sim, now = self._sim, self._sim.snapshot()
        start, values = self.begun
        some = found(sim, self.parameters)
        before = [parameter.get(sim) for parameter in some]
        for parameter, value in zip(some, values, strict=True):
            parameter.put(sim, value)
        sim.restore(start)
        try:
            controls = self.controls if self.inputs else None
            return Rollout(sim, controls, self.steps, self.inputs or None, self.parameters, self).gradient(q, v)
        finally:
            for parameter, value in zip(some, before, strict=True):
                parameter.put(sim, value)  # type: ignore[arg-type]
            sim.restore(now)

    begun: tuple[Any, list[Any]]

    def _is_same(self) -> bool:
        """Whether nothing was changed on which the motion depends."""
        bound, motion = self._sim.solver._bound, self._motion
        if bound is None or bound[2] is not motion.bound:
            return False
        return np.array_equal(motion.numbers(self._sim.commands), self._was)

    def _check_same(self) -> None:
        """Refuse to differentiate a motion after something was changed on which it depends."""
        if not self._is_same():
            raise SimulationError("rollout: the simulation was changed after this motion; make a new one to differentiate it")

    def _slopes(self, what: str, given: Any, like: np.ndarray) -> np.ndarray:
        if given is None:
            return np.zeros_like(like)
        x, shape = as_numbers(given), self._out(like).shape
        if x.shape != shape or not np.isfinite(x).all():
            raise SimulationError(f"rollout: derivatives by {what} are finite numbers of shape {shape}, got shape {x.shape}")
        return x.reshape(like.shape).astype(float)

    def _frames(self) -> list[tuple[list[int], np.ndarray]]:
        """Of each floating body: its numbers in a state, and (worlds, steps + 1, 12, 12) changes of its frame from those of its
        centre of mass."""
        n, out = len(self.states), []
        for (i, at), turns in zip(self._floating, self._spins, strict=True):
            com = self._sim.model.com[self._sim.solver._trees.plan.places[i].body]
            frame = at_frame(rotated(turns[..., :4], com).reshape(-1, 3), turns[..., 4:].reshape(-1, 3))
            out.append(([*range(at, at + 6), *range(n + at, n + at + 6)], frame.reshape(*turns.shape[:2], 12, 12)))
        return out


def found(sim: Owner, words: Sequence[str]) -> list[Parameter]:
    """Parameters of words, of which motions are differentiated by."""
    for word in words:
        parameter = Parameter(word)
        path = parameter.path
        fits = path[0] in KNOWN.get(parameter.kind, ()) and (path[0] != "drive" or path[-1] in OF_DRIVE)
        if not fits or path[-1] in ("load", "stribeck"):
            each = [f"{kind}/NAME.{name}" for kind, names in KNOWN.items() for name in names if name != "drive"]
            each += [f"joint/NAME.drive.{name}" for name in OF_DRIVE]
            raise SimulationError(f"rollout: parameter {word!r}; allowed: {', '.join(each)}")
    return found_parameters(sim, list(words))


def rotated(turns: np.ndarray, x: np.ndarray) -> np.ndarray:
    """A vector that turns with bodies, (…, 4)."""
    each = np.broadcast_to(x, (turns.size // 4, 3))
    return quat_rotate(turns.reshape(-1, 4), each).reshape(*turns.shape[:-1], 3)


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


@by_name
def rollout(
    sim: Owner,
    controls: Any = None,
    *,
    steps: int | None = None,
    inputs: Iterable[str] | None = None,
    parameters: Sequence[str] | Mapping[str, Any] = (),
) -> Rollout:
    """A motion from the present state, whose costs can be differentiated; the state of the simulation stays as it is.

    It covers what `Simulation.linearize` does; impacts at limits, and where friction stops an axis, too.

    Args:
        controls: (steps, m) commands before each step, or (worlds, steps, m); none if None.
        steps: how many, where there are no controls.
        inputs: what they command, see `Simulation.linearize`; the efforts of all joints with one axis if None.
        parameters: words such as "body/bob.mass", "joint/hinge.friction" or "joint/hinge.child_anchor[2]" that costs are
            differentiated by, or their values by such words, which are given to the simulation.

    Where controls or parameters are PyTorch's tensors, `q` and `v` are such, and `backward()` goes through the motion.
    """
    values = list(parameters.values()) if isinstance(parameters, Mapping) else []
    if isinstance(parameters, Mapping):
        for parameter, value in zip(found(sim, list(parameters)), values, strict=True):
            parameter.put(sim, np.broadcast_to(plain(value), sim.worlds))
    made = Rollout(sim, plain(controls), steps, inputs, tuple(parameters))
    if any(is_tensor(x) for x in (controls, *values)):
        from sharnir.study.tensors import attach

        made.begun = sim.snapshot(), [np.array(np.broadcast_to(plain(value), sim.worlds), float) for value in values]
        attach(made, controls, values)
    return made


def is_tensor(x: Any) -> bool:
    """Whether something is a tensor of PyTorch, which is not imported for that."""
    return type(x).__module__.partition(".")[0] == "torch"


def plain(x: Any) -> Any:
    """A tensor as an array."""
    return x.detach().cpu().numpy().astype(float) if is_tensor(x) else x
