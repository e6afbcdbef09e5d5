"""Motions that cost least, found by the exact derivative of steps (`Simulation.linearize`).

`plan = sh.optimize.ilqr(sim, 150, goal=[0.0, np.pi], inputs=["rail"], limits=20.0)` finds one, and `plan.act(sim, t)` before each
step t follows it, with feedback that holds it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sharnir import dynamics
from sharnir.control import command, commands_of, state_of, weights
from sharnir.core.misspellings import by_name, names_of
from sharnir.errors import SceneError, SimulationError, is_positive

LENGTHS = tuple(0.5**k for k in range(12))  # of the way along a direction of search
LEAST_SHARE_OF_GAIN = 1e-4  # of the gain that is expected: a shorter way is tried where less is gained
LEAST_DAMPING, MOST_DAMPING, DAMPING_FACTOR = (
    1e-9,
    1e9,
    4.0,
)  # of what is added to the curvature where a direction does not lead down, and its growth


@dataclass(frozen=True)
class Plan:
    """Commands of some steps, the motion that they lead to, and feedback that holds it.

    Args:
        commands: (steps, m). inputs: their names, as `Simulation.linearize` has them.
        gains: (steps, m, 2n): what is added to the commands per deviation from the motion.
        q, v: (steps + 1, …) the motion, as `sh.dynamics.from_state` has it.
        costs: of the motion after each iteration. converged: whether the last iteration gained less than was asked for.
        limits: (m, 2) between which commands are.
    """

    commands: np.ndarray
    inputs: tuple[str, ...]
    gains: np.ndarray
    q: np.ndarray
    v: np.ndarray
    costs: tuple[float, ...]
    converged: bool
    limits: np.ndarray

    @property
    def steps(self) -> int:
        """Steps that it is made for."""
        return len(self.commands)

    @property
    def cost(self) -> float:
        """Of the motion."""
        return self.costs[-1]

    def __repr__(self) -> str:
        end = f"after {len(self.costs) - 1} iterations{'' if self.converged else ', not converged'}"
        return f"Plan({self.steps} steps, {', '.join(self.inputs)}, cost {self.cost:.4g} {end})"

    def act(self, sim: Any, t: int) -> None:
        """Give the commands of step t to a simulation, corrected by how far its state is from the plan."""
        q, v = state_of(sim)
        off = np.concatenate([dynamics.between(sim.model, self.q[t], q), v - self.v[t]])
        command(sim, self.inputs, np.clip(self.commands[t] + self.gains[t] @ off, *self.limits.T))


@by_name
def ilqr(
    sim: Any,
    steps: int,
    *,
    goal: Any,
    goal_speed: Any = 0.0,
    inputs: Iterable[str] | None = None,
    state_cost: Any = 0.0,
    input_cost: Any = 1e-3,
    final_cost: Any = 100.0,
    limits: Any = None,
    commands: Any = None,
    iterations: int = 200,
    tolerance: float = 1e-6,
    progress: bool | Callable[[int, float], None] = False,
) -> Plan:
    """Commands that lead a simulation of one world from its present state to a goal at the least cost; the state stays as it is.

    The cost is ½ Σ xᵀ Q x + uᵀ R u over the steps and ½ xᵀ Q_f x at the end, x = (way from the goal, speed beyond the goal's),
    u the commands: the iterative linear–quadratic regulator, with the derivative of each step.

    Args:
        steps: how many are planned.
        goal: (nq,) coordinates, in the order of `sh.dynamics.from_state`. goal_speed: (nv,) or 0.
        inputs: commands, see `Simulation.linearize`.
        state_cost, input_cost, final_cost: Q, R, Q_f: a number, those of a diagonal (2n coordinates and speeds; m), or a matrix.
        limits: of all commands, a number, or (lower, upper), each a number or (m,); none if None.
        commands: (steps, m) to begin with; those of now if None.
        iterations: at most. tolerance: part of the cost that an iteration is to gain, or it was the last.
        progress: show a line an iteration, or a function that is called with (iterations done, cost).
    """
    if sim.worlds > 1:
        raise SceneError(f"ilqr: the simulation has {sim.worlds} worlds; one is allowed")
    for what, value in (("steps", steps), ("iterations", iterations)):
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise SceneError(f"ilqr: {what} is a whole number of at least 1, got {value!r}")
    if not is_positive(tolerance):
        raise SceneError(f"ilqr: tolerance is a positive finite number, got {tolerance!r}")
    search = _Search(sim, steps, inputs, goal, goal_speed, (state_cost, input_cost, final_cost), limits)
    start = sim.snapshot()
    try:
        return search.run(start, commands, iterations, tolerance, progress)
    finally:
        sim.restore(start)
        command(sim, search.inputs, search.before)


class _Search:
    """The iterations of `ilqr`."""

    def __init__(
        self, sim: Any, steps: int, inputs: Iterable[str] | None, goal: Any, goal_speed: Any, costs: tuple[Any, Any, Any],
        limits: Any,
    ) -> None:  # fmt: skip
        self.sim, self.steps = sim, steps
        self.asked = None if inputs is None else tuple(inputs)
        linear = sim.linearize(self.asked)
        self.inputs, self.n, self.m = linear.inputs, len(linear.states), len(linear.inputs)
        if not self.m:
            raise SceneError("ilqr: there is no input: no joint has one axis; name some, such as 'JOINT.effort' or 'BODY.force'")
        self.before = commands_of(sim, self.inputs)
        self.Q = weights("ilqr", "state_cost", costs[0], 2 * self.n)
        self.R = weights("ilqr", "input_cost", costs[1], self.m)
        self.Qf = weights("ilqr", "final_cost", costs[2], 2 * self.n)
        q, v = state_of(sim)
        self.goal, self.goal_speed = filled("goal", goal, len(q)), filled("goal_speed", goal_speed, len(v))
        pair = (-np.inf, np.inf) if limits is None else (-limits, limits) if np.ndim(limits) == 0 else limits
        if np.ndim(pair[0]) > 1 or len(pair) != 2:
            raise SceneError(f"ilqr: limits are a number or (lower, upper), got {limits!r}")
        lower, upper = (np.broadcast_to(np.asarray(x, float), self.m) for x in pair)
        self.limits = np.stack([lower, upper], 1)
        if not (lower < upper).all():
            raise SceneError(f"ilqr: lower limits are below upper ones, got {limits!r}")

    def run(self, start: Any, commands: Any, iterations: int, tolerance: float, progress: Any) -> Plan:
        u = np.tile(self.before, (self.steps, 1)) if commands is None else np.array(commands, float)
        if u.shape != (self.steps, self.m) or not np.isfinite(u).all():
            raise SceneError(f"ilqr: commands are {self.steps} × {self.m} finite numbers, got shape {u.shape}")
        u = np.clip(u, *self.limits.T)
        q, v, cost = self.follow(start, u)
        costs, damping, converged = [cost], 0.0, False
        gains = np.zeros((self.steps, self.m, 2 * self.n))
        slopes = self.differentiate(start, u)
        while len(costs) <= iterations and not converged:
            ways, new_gains, expected = self.descend(q, v, u, slopes, damping)
            found = None
            for length in LENGTHS:
                tried, tq, tv, c = self.along(start, q, v, u, length * ways, new_gains)
                if c < cost - LEAST_SHARE_OF_GAIN * length * expected:
                    found = tried, tq, tv, c
                    break
            if found is None:
                damping = max(LEAST_DAMPING, damping * DAMPING_FACTOR)
                gains = new_gains
                converged = damping > MOST_DAMPING or expected <= tolerance * cost
                continue
            gained = cost - found[3]
            u, q, v, cost = found
            gains, damping = new_gains, 0.0 if damping <= LEAST_DAMPING else damping / DAMPING_FACTOR
            costs.append(cost)
            if callable(progress):
                progress(len(costs) - 1, cost)
            elif progress:
                print(f"ilqr: iteration {len(costs) - 1}, cost {cost:.6g}", flush=True)
            converged = gained <= tolerance * cost
            slopes = self.differentiate(start, u)
        return Plan(u, self.inputs, gains, q, v, tuple(costs), converged, self.limits)

    def off(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """x: the way from the goal."""
        return np.concatenate([dynamics.between(self.sim.model, self.goal, q), v - self.goal_speed], -1)

    def follow(self, start: Any, u: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        """The motion of some commands, and its cost."""
        return self.along(start, None, None, u, np.zeros_like(u), None)[1:]

    def along(self, start: Any, q: Any, v: Any, u: np.ndarray, ways: np.ndarray, gains: Any) -> tuple[Any, Any, Any, float]:
        """Commands that are changed, by feedback too, the motion, and its cost; infinite where a step cannot be made."""
        sim, out = self.sim, u.copy()
        sim.restore(start)
        places = [state_of(sim)]
        for t in range(self.steps):
            if gains is not None:
                now = places[-1]
                away = np.concatenate([dynamics.between(sim.model, q[t], now[0]), now[1] - v[t]])
                out[t] = np.clip(u[t] + ways[t] + gains[t] @ away, *self.limits.T)
            command(sim, self.inputs, out[t])
            try:
                sim.step()
            except SimulationError:
                return out, q, v, np.inf
            places.append(state_of(sim))
        new_q, new_v = (np.array(x) for x in zip(*places, strict=True))
        x = self.off(new_q, new_v)
        running = np.einsum("ti,ij,tj->", x[:-1], self.Q, x[:-1]) + np.einsum("ti,ij,tj->", out, self.R, out)
        return out, new_q, new_v, float(0.5 * (running + x[-1] @ self.Qf @ x[-1]))

    def differentiate(self, start: Any, u: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        """A and B of every step of a motion."""
        sim, found = self.sim, []
        sim.restore(start)
        for t in range(self.steps):
            command(sim, self.inputs, u[t])
            linear = sim.linearize(self.asked)
            found.append((linear.A, linear.B))
            sim.step()
        return found

    def descend(self, q: np.ndarray, v: np.ndarray, u: np.ndarray, slopes: Any, damping: float) -> tuple[Any, Any, float]:
        """How commands are to change, their feedback, and what the change is expected to gain."""
        x = self.off(q, v)
        gains = np.zeros((self.steps, self.m, 2 * self.n))
        ways, expected = np.zeros_like(u), 0.0
        slope, curve = self.Qf @ x[-1], self.Qf
        added = damping * np.eye(2 * self.n)
        for t in reversed(range(self.steps)):
            A, B = slopes[t]
            qx, qu = self.Q @ x[t] + A.T @ slope, self.R @ u[t] + B.T @ slope
            quu, qux = self.R + B.T @ (curve + added) @ B, B.T @ (curve + added) @ A
            way = bounded(quu, qu, self.limits - u[t][:, None])
            free = (way > self.limits[:, 0] - u[t]) & (way < self.limits[:, 1] - u[t])
            gain = np.zeros_like(qux)
            gain[free] = -np.linalg.solve(quu[np.ix_(free, free)], qux[free])
            own = self.R + B.T @ curve @ B
            across = B.T @ curve @ A
            expected -= float(way @ qu + 0.5 * way @ own @ way)
            slope = qx + gain.T @ own @ way + gain.T @ qu + across.T @ way
            curve = self.Q + A.T @ curve @ A + gain.T @ own @ gain + gain.T @ across + across.T @ gain
            curve = 0.5 * (curve + curve.T)
            ways[t], gains[t] = way, gain
        return ways, gains, max(expected, 0.0)


def bounded(H: np.ndarray, g: np.ndarray, limits: np.ndarray) -> np.ndarray:
    """The least of ½ wᵀ H w + g w between limits (m, 2): by active sets, of few commands."""
    way: np.ndarray = np.clip(np.zeros_like(g), limits[:, 0], limits[:, 1])
    for _ in range(4 * len(g) + 4):
        slope = H @ way + g
        held = ((way <= limits[:, 0]) & (slope > 0)) | ((way >= limits[:, 1]) & (slope < 0))
        free = ~held
        new = way.copy()
        if free.any():
            new[free] = -np.linalg.solve(H[np.ix_(free, free)], g[free] + H[np.ix_(free, held)] @ way[held])
        new = np.clip(new, limits[:, 0], limits[:, 1])
        if np.allclose(new, way, rtol=1e-12, atol=0):
            break
        way = new
    return way


def filled(what: str, given: Any, size: int) -> np.ndarray:
    """As many finite numbers."""
    x = np.asarray(given, float)
    if x.shape not in ((), (size,)) or not np.isfinite(x).all():
        raise SceneError(f"ilqr: {what} is {size} finite numbers, got {np.asarray(given).tolist()}")
    full: np.ndarray = np.broadcast_to(x, size).copy()
    return full


if not TYPE_CHECKING:  # or every word would be right
    __getattr__ = names_of("sharnir.optimize", ("Plan", "ilqr"))
