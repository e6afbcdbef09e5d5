"""Controllers and profiles for scripts that drive a simulation: each a few lines on top of what is there.

pid = sh.control.PID(kp=80, ki=20, kd=5, limit=30)
joint.force = pid(target - joint.position, sim.dt)

move = sh.control.Trapezoid(0.0, 1.2, speed=1.0, acceleration=4.0)
joint.drive.position, joint.drive.velocity, _ = move(sim.time)

tau = sh.control.gravity_compensation(arm, sim.q)

balance = sh.control.lqr(sim, inputs=["rail"])  # about the present state
balance.act(sim)  # before each step
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import inf, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from sharnir import dynamics
from sharnir.core.extras import need
from sharnir.core.misspellings import Checked, names_of
from sharnir.errors import SceneError, is_positive, number
from sharnir.integrate.bound import Dynamics


@dataclass
class PID(Checked):
    """A controller kp e + ki ∫e + kd ė of errors e (numbers or arrays), its output within ±limit.

    Args:
        kp, ki, kd: gains. limit: bound of the output; the integral stops growing there (no wind-up).
        smooth: s, time over which the rate of the error is averaged; 0 takes the difference of two calls.
    """

    kp: float = 0.0
    ki: float = 0.0
    kd: float = 0.0
    limit: float = inf
    smooth: float = 0.0
    integral: Any = field(default=0.0, init=False)
    _last: Any = field(default=None, init=False, repr=False)
    _rate: Any = field(default=0.0, init=False, repr=False)

    def __post_init__(self) -> None:
        for what in ("kp", "ki", "kd"):
            number("PID", what, getattr(self, what))
        number("PID", "limit", self.limit, least=0.0, endless=True)
        number("PID", "smooth", self.smooth, least=0.0)

    def __call__(self, error: Any, dt: float, rate: Any = None) -> Any:
        """The output for an error now, dt (s) after the last call; `rate` of the error, where it is known better."""
        if not is_positive(dt):
            raise SceneError(f"PID: dt is a positive finite time in s, got {dt!r}")
        if rate is None:
            raw = 0.0 if self._last is None else (error - self._last) / dt
            self._rate = self._rate + (raw - self._rate) * (dt / (self.smooth + dt))
            rate = self._rate
        self._last = error
        grown = self.integral + error * dt
        wanted = self.kp * error + self.ki * grown + self.kd * rate
        out = np.clip(wanted, -self.limit, self.limit)
        self.integral = np.where((wanted == out) | (wanted * error < 0), grown, self.integral)[()]
        return float(out) if np.ndim(out) == 0 else out

    def reset(self) -> None:
        """Forget errors so far."""
        self.integral, self._last, self._rate = 0.0, None, 0.0


@dataclass(frozen=True)
class Trapezoid:
    """The quickest motion from rest to rest within a speed and an acceleration: a call gives (position, velocity, acceleration).

    Args:
        start, end: numbers or arrays, m or rad; axes of an array begin and end together.
        speed, acceleration: bounds, m/s or rad/s and the same a second. begin: s, when it starts.
    """

    start: Any
    end: Any
    speed: float
    acceleration: float
    begin: float = 0.0

    def __post_init__(self) -> None:
        for what in ("speed", "acceleration"):
            if not is_positive(getattr(self, what)):
                raise SceneError(f"Trapezoid: {what} is a positive finite number, got {getattr(self, what)!r}")
        if not np.isfinite(np.asarray(self.start, float)).all() or not np.isfinite(np.asarray(self.end, float)).all():
            raise SceneError(f"Trapezoid: start and end are finite numbers, got {self.start!r} and {self.end!r}")
        shapes = {np.shape(self.start), np.shape(self.end)} - {()}
        if len(shapes) > 1:
            raise SceneError(f"Trapezoid: start and end have as many numbers, got {self.start!r} and {self.end!r}")

    @property
    def _parts(self) -> tuple[float, float, float]:
        """Way of the longest axis, time of speeding up, time at full speed."""
        way = float(np.abs(np.asarray(self.end, float) - np.asarray(self.start, float)).max(initial=0.0))
        ramp = min(self.speed / self.acceleration, sqrt(way / self.acceleration))
        return way, ramp, (way - self.acceleration * ramp**2) / (self.acceleration * ramp) if ramp > 0 else 0.0

    @property
    def duration(self) -> float:
        """s."""
        _, ramp, flat = self._parts
        return 2 * ramp + flat

    def __call__(self, time: float) -> tuple[Any, Any, Any]:
        """Position, velocity, acceleration at a time, s."""
        way, ramp, flat = self._parts
        a, t = self.acceleration, min(max(time - self.begin, 0.0), self.duration)
        if t < ramp:
            s, v, b = 0.5 * a * t * t, a * t, a
        elif t < ramp + flat:
            s, v, b = a * ramp * (t - 0.5 * ramp), a * ramp, 0.0
        else:
            left = self.duration - t
            s, v, b = way - 0.5 * a * left * left, a * left, -a if left > 0 else 0.0
        if time < self.begin:
            b = 0.0
        span = np.asarray(self.end, float) - np.asarray(self.start, float)
        share = span / way if way > 0 else span
        parts = (np.asarray(self.start, float) + s * share, v * share, b * share)
        x, v, b = (float(p) if np.ndim(p) == 0 else p for p in parts)
        return x, v, b


class Spline:
    """Cubic splines through points, with given speeds at the ends: a call gives (position, velocity, acceleration).

    Args:
        times: s, rising. points: one a time, numbers or arrays.
        start, end: speeds at the ends; at rest by default.
    """

    def __init__(self, times: Any, points: Any, *, start: Any = 0.0, end: Any = 0.0) -> None:
        t, x = np.asarray(times, float), np.asarray(points, float)
        if t.ndim != 1 or len(t) < 2 or not np.isfinite(t).all() or np.any(np.diff(t) <= 0):
            raise SceneError(f"Spline: times are two or more that rise, got {np.asarray(times).tolist()}")
        if len(x) != len(t) or not np.isfinite(x).all():
            raise SceneError(f"Spline: points are finite, one for each of {len(t)} times, got shape {x.shape}")
        h = np.diff(t)
        shape = (-1,) + (1,) * (x.ndim - 1)
        slope = np.diff(x, axis=0) / h.reshape(shape)
        matrix, rhs = np.eye(len(t)), np.empty_like(x)
        rhs[0], rhs[-1] = start, end
        for i in range(1, len(t) - 1):  # the acceleration is continuous
            matrix[i, i - 1 : i + 2] = 1 / h[i - 1], 2 * (1 / h[i - 1] + 1 / h[i]), 1 / h[i]
            rhs[i] = 3 * (slope[i - 1] / h[i - 1] + slope[i] / h[i])
        self._t, self._x, self._h = t, x, h
        self._v = np.linalg.solve(matrix, rhs.reshape(len(t), -1)).reshape(x.shape)

    @property
    def duration(self) -> float:
        """From the first time to the last, s."""
        return float(self._t[-1] - self._t[0])

    def __call__(self, time: float) -> tuple[Any, Any, Any]:
        """Position, velocity, acceleration at a time, s; before and after it stands."""
        t = min(max(time, self._t[0]), self._t[-1])
        i = min(int(np.searchsorted(self._t, t, side="right")) - 1, len(self._h) - 1)
        h, s = self._h[i], (t - self._t[i]) / self._h[i]
        x0, x1, v0, v1 = self._x[i], self._x[i + 1], self._v[i] * h, self._v[i + 1] * h
        c2, c3 = 3 * (x1 - x0) - 2 * v0 - v1, 2 * (x0 - x1) + v0 + v1
        parts = [x0 + s * (v0 + s * (c2 + s * c3)), (v0 + s * (2 * c2 + 3 * s * c3)) / h, (2 * c2 + 6 * s * c3) / h**2]
        if time < self._t[0] or time > self._t[-1]:
            parts[1:] = [0.0 * parts[1], 0.0 * parts[2]]
        x, v, a = (float(p) if np.ndim(p) == 0 else p for p in parts)
        return x, v, a


def _bound(model: Any) -> Dynamics:
    return model if isinstance(model, Dynamics) else dynamics.of(model)


def gravity_compensation(model: Any, q: Any) -> np.ndarray:
    """(nv,) forces on the free axes that hold a mechanism at rest; `model`: `sh.dynamics.of(scene)`, or a scene."""
    return _bound(model).gravity_torques(q)


def computed_torque(
    model: Any, q: Any, v: Any, wanted: tuple[Any, Any, Any], kp: float = 400.0, kd: float | None = None
) -> np.ndarray:
    """(nv,) forces that make errors die out like those of a linear oscillator: M(q) (a + kd ė + kp e) + bias(q, v).

    Args:
        model: `sh.dynamics.of(scene)`, or a scene (slower).
        wanted: position, velocity, acceleration, such as a profile gives. kp: 1/s². kd: 1/s, critical if None.
    """
    number("computed_torque", "kp", kp, least=0.0)
    place, speed, acceleration = (np.asarray(x, float) for x in wanted)
    damping = 2.0 * sqrt(kp) if kd is None else number("computed_torque", "kd", kd, least=0.0)
    now, rate = np.asarray(q, float), np.asarray(v, float)
    return _bound(model).inverse_dynamics(now, rate, acceleration + damping * (speed - rate) + kp * (place - now))


@dataclass(frozen=True)
class Regulator:
    """Commands u = u₀ − K x that lead a simulation back to a state: `lqr` makes it.

    Args:
        gain: K, (m, 2n).
        inputs: names of the m commands, as `Simulation.linearize` has them.
        q, v: the state, as `sh.dynamics.from_state` has it. commands: u₀, (m,).
    """

    gain: np.ndarray
    inputs: tuple[str, ...]
    q: np.ndarray
    v: np.ndarray
    commands: np.ndarray

    def __call__(self, sim: Any) -> np.ndarray:
        """(m,) the commands in the present state."""
        q, v = state_of(sim)
        x = np.concatenate([dynamics.between(sim.model, self.q, q), v - self.v])
        u: np.ndarray = self.commands - self.gain @ x
        return u

    def act(self, sim: Any) -> None:
        """Give the commands to the simulation, for its next step."""
        command(sim, self.inputs, self(sim))


def lqr(sim: Any, state_cost: Any = 1.0, input_cost: Any = 1.0, *, inputs: Iterable[str] | None = None) -> Regulator:
    """The linear–quadratic regulator that keeps a simulation of one world in its present state, which is an equilibrium.

    It minimizes Σ xᵀ Q x + uᵀ R u over all steps to come, x as `Simulation.linearize` has it.

    Args:
        state_cost: Q: a number, (2n,) numbers of its diagonal (of n coordinates, then of n speeds), or (2n, 2n).
        input_cost: R: a number, (m,) or (m, m).
        inputs: commands, see `Simulation.linearize`; those of now keep the equilibrium.
    """
    if sim.worlds > 1:
        raise SceneError(f"lqr: the simulation has {sim.worlds} worlds; one is allowed: gains hold for one state")
    linear = sim.linearize(inputs)
    size, count = linear.A.shape[-1], len(linear.inputs)
    if not count:
        raise SceneError("lqr: there is no input: no joint has one axis; name some, such as 'JOINT.effort' or 'BODY.force'")
    Q, R = weights("lqr", "state_cost", state_cost, size), weights("lqr", "input_cost", input_cost, count)
    q, v = state_of(sim)
    stays(sim, q, v)
    try:
        P = need("scipy.linalg", "study").solve_discrete_are(linear.A, linear.B, Q, R)
    except np.linalg.LinAlgError:
        names = ", ".join(linear.inputs)
        raise SceneError(
            f"lqr: inputs {names} cannot keep this state, or state_cost leaves out what moves off; give others"
        ) from None
    gain = np.linalg.solve(R + linear.B.T @ P @ linear.B, linear.B.T @ P @ linear.A)
    return Regulator(gain, linear.inputs, q, v, commands_of(sim, linear.inputs))


def state_of(sim: Any) -> tuple[np.ndarray, ...]:
    """(nq,), (nv,) of a simulation of one world, in the order of `sh.dynamics`."""
    q, v = np.array(sim.q), np.array(sim.qd)
    if len(q) == dynamics.links(sim.model).nq:
        return q, v
    return tuple(x[0] for x in dynamics.from_state(sim, sim.state))


def weights(who: str, what: str, given: Any, size: int) -> np.ndarray:
    """A symmetric matrix of costs."""
    x = np.asarray(given, float)
    full = x * np.eye(size) if x.ndim == 0 else np.diag(x) if x.shape == (size,) else x
    if full.shape != (size, size) or not np.isfinite(full).all() or np.linalg.eigvalsh(0.5 * (full + full.T)).min() < 0.0:
        raise SceneError(
            f"lqr: {what} is a number, {size} or {size} × {size} of them, none negative, got {np.asarray(given).tolist()}"
        )
    return 0.5 * (full + full.T)


def stays(sim: Any, q: np.ndarray, v: np.ndarray) -> None:
    """Refuse a state that is no equilibrium: the next step leaves it."""
    before = sim.snapshot()
    try:
        sim.step()
        speeds = state_of(sim)[1]
    finally:
        sim.restore(before)
    gained = np.abs(speeds - v) / sim.dt
    worst = int(np.argmax(gained))
    if (
        gained[worst] > EQUILIBRIUM_TOLERANCE * (1.0 + float(np.linalg.norm(sim.gravity)))
        or np.abs(v).max() > EQUILIBRIUM_TOLERANCE
    ):
        name = sim.linearize().states[worst]
        raise SceneError(
            f"lqr: the present state is no equilibrium: {name} moves at {v[worst]:.3g} and gains {gained[worst]:.3g} a second "
            "(m or rad, s); bring it to rest there, with commands that hold it"
        )


def commands_of(sim: Any, inputs: Sequence[str]) -> np.ndarray:
    """Commands of now, by name."""
    found = []
    for name, part, k in map(parted, inputs):
        if part in OF_AXES:
            view = sim.joint(name)
            value = view.effort if part == "effort" else getattr(view.drive, part.partition(".")[2])
        else:
            value = getattr(sim.commands, part).numpy()[sim.model.body_names[name], 0]
        found.append(float(np.atleast_1d(value)[k]))
    return np.array(found)


def command(sim: Any, inputs: Sequence[str], values: np.ndarray) -> None:
    """Give commands by name; forces and torques on bodies for one step."""
    several: dict[tuple[str, str], np.ndarray] = {}
    for (name, part, k), x in zip(map(parted, inputs), values, strict=True):
        several.setdefault((name, part), np.zeros(3))[k] = x
    for (name, part), x in several.items():
        if part in OF_AXES:
            view = sim.joint(name) if part == "effort" else sim.joint(name).drive
            word = part.rpartition(".")[2]
            size = sim.model.joint_kinds[sim.model.joint_names[name]].v_size
            setattr(view, word, x[:size] if size > 1 else float(x[0]))
        else:
            body = sim.body(name)
            (body.apply_force if part == "force" else body.apply_torque)(x)


def parted(word: str) -> tuple[str, str, int]:
    """The joint or body of a command, which it is, and its number."""
    bare, _, number_of = word.rstrip("]").partition("[") if word.endswith("]") else (word, "", "0")
    part = next(part for part in (*OF_AXES, "force", "torque") if bare.endswith("." + part))
    return bare[: -len(part) - 1], part, int(number_of)


OF_AXES = ("effort", "drive.position", "drive.velocity", "drive.voltage")  # commands of a joint
EQUILIBRIUM_TOLERANCE = 1e-6  # m/s², rad/s² and more with gravity: what an equilibrium may be off


if not TYPE_CHECKING:  # or every word would be right
    __getattr__ = names_of(
        "sharnir.control", ("PID", "Regulator", "Spline", "Trapezoid", "computed_torque", "gravity_compensation", "lqr")
    )
