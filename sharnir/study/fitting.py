"""`fit`: parameters of a simulation from a recording of the real thing, by least squares, and how sure they are.

With residuals r_i(x) = (y_i(x) − ŷ_i)/σ of the recorded values ŷ_i, Gauss–Newton steps inside a trust region (SciPy) lower ½ r·r.
The columns of J = ∂r/∂x follow the exact derivative of the steps (`study.rollout`): an iteration is one run. Where that is not
known they are central differences: the point and its 2p neighbours are worlds of one model, an iteration is one batch. At the
end Cov x = s² (JᵀJ)⁻¹ with s² = r·r/(n − p), and the interval of a parameter is x ± t √Cov with Student's t.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import Any

import numpy as np

from sharnir.control import command
from sharnir.core.extras import need
from sharnir.core.misspellings import by_name
from sharnir.errors import SimulationError, as_numbers
from sharnir.io.record_reader import Recording
from sharnir.runtime import log as recordings
from sharnir.runtime.linearization import check_covered
from sharnir.runtime.log import Values
from sharnir.runtime.simulation import Simulation
from sharnir.scene.scene import Scene
from sharnir.study.job import called
from sharnir.study.rollout import Rollout
from sharnir.study.rollout import found as differentiable
from sharnir.study.words import Parameter
from sharnir.study.words import parameters as found_parameters

DIFFERENCE_STEP = 1e-4  # of the differences, relative to the size of a parameter
FIT_TOLERANCES = {"ftol": 1e-10, "xtol": 1e-10, "gtol": 1e-10}
TELLABLE = 1e-7  # ratio of singular values (columns of J being scaled) below which parameters cannot be told apart
POSITIVE = "mass friction static dynamic viscous load damping stiffness kp kd EI GJ max_force resistance inductance rotor_inertia"


@dataclass
class Fit:
    """Parameters that a recording shows.

    `values` holds the parameters by word, `error` their standard errors, `interval` (low, high) at the confidence asked for,
    `covariance` (p, p) in the order of `values`, `noise` the root mean square of what is left, by recorded name; `time` (n,) s,
    `simulated` and `recorded` (n, …) by name; `evaluations` how many runs or batches were made, `converged` whether it ended by a
    tolerance, not by the count.
    """

    values: dict[str, float]
    error: dict[str, float]
    interval: dict[str, tuple[float, float]]
    covariance: np.ndarray
    noise: dict[str, float]
    time: np.ndarray
    simulated: dict[str, np.ndarray]
    recorded: dict[str, np.ndarray]
    evaluations: int
    converged: bool
    confidence: float = 0.95

    def __str__(self) -> str:
        width = max(map(len, self.values))
        lines = [
            f"{word:<{width}}  {value:.6g} ± {self.error[word]:.2g}, {100 * self.confidence:g} % in "
            f"[{self.interval[word][0]:.6g}, {self.interval[word][1]:.6g}]"
            for word, value in self.values.items()
        ]
        lines += [f"left of {name}: {rms:.3g}" for name, rms in self.noise.items()]
        return "\n".join(lines)

    def plot(self, path: str | Path | None = None) -> Any:
        """Draw what was recorded beside what was simulated; write it to a file, or return the figure."""
        figure = need("matplotlib.figure", "study").Figure(figsize=(8, 1 + 2.5 * len(self.recorded)), layout="constrained")
        for axis, (name, seen) in zip(
            figure.subplots(len(self.recorded), 1, squeeze=False)[:, 0], self.recorded.items(), strict=True
        ):
            axis.plot(self.time, seen.reshape(len(seen), -1), ".", markersize=2)
            axis.plot(self.time, self.simulated[name].reshape(len(seen), -1), "-", linewidth=1)
            axis.set_ylabel(name)
            axis.set_xlabel("time, s")
            axis.grid(alpha=0.3)
        if path is None:
            return figure
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=120)
        return Path(path)


@by_name
def fit(
    sim: Simulation | Scene | Callable[[int], Simulation],
    recording: Values | Mapping[str, Any],
    parameters: Mapping[str, Any],
    *,
    words: Sequence[str] | None = None,
    control: Callable[[Simulation], None] | Mapping[str, Any] | None = None,
    noise: float | Mapping[str, float] | None = None,
    confidence: float = 0.95,
    iterations: int = 50,
    dt: float | None = None,
    **options: Any,
) -> Fit:
    """Find parameters with which a simulation repeats a recording.

    Args:
        sim: a Simulation that stands where the recording begins (it is left at that start, with what was found), a Scene (with
            `dt`), or a function make(worlds). A Simulation of one world is best where `sh.rollout` covers it, values are those of
            joints and no function controls it; else 2p + 1 worlds for p parameters, so that an iteration is one batch.
        recording: a log of `sim.record`, a `Recording`, or a dict of "time" (n,) in s and of values (n, …) by such words; NaN
            where none is.
        words: which of its values are to be repeated, all if None; of a `Recording` q and qd of the joints, or positions of
            bodies where there are none.
        parameters: first guesses by word (as in `run_study`), or (guess, low, high).
        control: what was commanded while it was recorded: for each step, by inputs as in `Simulation.linearize`
            ({"hinge.effort": (steps,)}), or a function that is called with the simulation before each step.
        noise: standard deviation of the recorded values, one or by name; if None it is estimated, for each name, from what is
            left.
        confidence: of the intervals. iterations: most of them. options: of the Simulation of a Scene.
    """
    if not 0 < confidence < 1:
        raise SimulationError(f"fit: confidence is above 0 and below 1, got {confidence!r}")
    time, seen = _recorded(recording, words)
    guess, low, high = _guesses(parameters)
    run = _runs(sim, time, seen, list(parameters), control, dt, options)
    run.scale = np.where(guess != 0, np.abs(guess), np.where(np.isfinite(high - low), high - low, 1.0))
    run.low, run.high = low, high
    run.sigma = _sigma(seen, noise)
    least_squares = need("scipy.optimize", "study").least_squares
    bounds = {"bounds": (low, high), "x_scale": run.scale, "max_nfev": iterations}
    found = least_squares(run.residuals, guess, jac=run.jacobian, **FIT_TOLERANCES, **bounds)
    if noise is None and len(seen) > 1:  # again, with weights that what is left of each name suggests
        run.sigma = {name: max(rms, 1e-12 * run.sigma[name]) for name, rms in run.left(found.x).items()}
        run.known.clear()
        found = least_squares(run.residuals, found.x, jac=run.jacobian, **FIT_TOLERANCES, **bounds)
    return _told(run, found, confidence, noise is not None)


def _told(run: _Batches, found: Any, confidence: float, known: bool) -> Fit:
    """The result, with its uncertainty."""
    x, r, jacobian, words = found.x, run.residuals(found.x), run.jacobian(found.x), [p.word for p in run.parameters]
    spare = len(r) - len(x)
    if spare < 1:
        raise SimulationError(f"fit: {len(r)} recorded values are too few for {len(x)} parameters")
    norms = np.linalg.norm(jacobian, axis=0)
    if (norms * run.scale <= 1e-12 * np.sqrt(len(r))).any():
        word = words[int((norms * run.scale).argmin())]
        raise SimulationError(f"fit: the recording does not depend on {word!r}; record what does, or leave it out")
    _, sizes, turned = np.linalg.svd(jacobian / norms, full_matrices=False)
    if sizes[-1] < TELLABLE * sizes[0]:
        mixed = [word for word, part in zip(words, np.abs(turned[-1]), strict=True) if part > 0.1]
        raise SimulationError(
            f"fit: {', '.join(map(repr, mixed))} cannot be told apart by this recording: fix one, or record more"
        )
    inverse = (turned.T / sizes**2) @ turned / np.outer(norms, norms)
    covariance = inverse * (1.0 if known else float(r @ r) / spare)
    stats = need("scipy.stats", "study")
    error = np.sqrt(np.diag(covariance))
    wide = error * float((stats.norm if known else stats.t(spare)).ppf(0.5 + 0.5 * confidence))
    simulated = run.values(x)
    left = run.left(x)
    run.settle(x)
    return Fit(
        dict(zip(words, map(float, x), strict=True)), dict(zip(words, map(float, error), strict=True)),
        {word: (float(a), float(b)) for word, a, b in zip(words, x - wide, x + wide, strict=True)},
        covariance, left, run.time, simulated, run.seen, run.count, found.status > 0, confidence,
    )  # fmt: skip


@dataclass
class _Batches:
    """The recorded motion, run for points x with all their neighbours at once."""

    sim: Simulation
    time: np.ndarray
    seen: dict[str, np.ndarray]
    words: list[str]
    control: Callable[[Simulation], None] | None
    scale: np.ndarray = field(default_factory=lambda: np.zeros(0))
    low: np.ndarray = field(default_factory=lambda: np.zeros(0))
    high: np.ndarray = field(default_factory=lambda: np.zeros(0))
    sigma: dict[str, float] = field(default_factory=dict)
    known: dict[bytes, tuple[dict[str, np.ndarray], np.ndarray, np.ndarray]] = field(default_factory=dict)
    count: int = 0

    def __post_init__(self) -> None:
        self.parameters: list[Parameter] = found_parameters(self.sim, self.words)
        self.sources = {name: self._source(name) for name in self.seen}
        self.start = self.sim.snapshot()
        steps = (self.time - self.time[0]) / self.sim.dt
        whole = np.round(steps)
        steps = np.where(np.abs(steps - whole) < 1e-6 * np.maximum(1.0, whole), whole, steps)
        self.before = np.floor(steps).astype(int)
        self.part = steps - self.before

    def _source(self, name: str) -> Callable[[], Any]:
        values = recordings.sources(self.sim, name)
        if list(values) != [name]:
            raise SimulationError(f"fit: {name!r} stands for {len(values)} values; name each by its own")
        return values[name]

    def settle(self, x: np.ndarray) -> None:
        """Leave the simulation at its start with parameters x."""
        self.sim.restore(self.start)
        for parameter, value in zip(self.parameters, x, strict=True):
            parameter.put(self.sim, np.full(self.sim.worlds, value))

    def motions(self, points: np.ndarray) -> dict[str, np.ndarray]:
        """(points, n, …) simulated values by name, for points (points, p); NaN where a world failed."""
        rounds = [self._round(points[k : k + self.sim.worlds]) for k in range(0, len(points), self.sim.worlds)]
        return {name: np.concatenate([r[name] for r in rounds]) for name in self.seen}

    def _round(self, points: np.ndarray) -> dict[str, np.ndarray]:
        sim, n = self.sim, len(points)
        fill = np.concatenate([points, np.repeat(points[-1:], sim.worlds - n, 0)])
        sim.restore(self.start)
        for parameter, column in zip(self.parameters, fill.T, strict=True):
            parameter.put(sim, column)
        wanted = sorted({*self.before.tolist(), *(self.before + 1)[self.part > 0].tolist()})
        at = {step: k for k, step in enumerate(wanted)}
        taken: dict[str, list[np.ndarray]] = {name: [] for name in self.seen}
        made = 0
        for step in wanted:
            while made < step:
                if self.control is not None:
                    self.control(sim)
                more = 1 if self.control is not None else step - made
                sim.step(more)
                made += more
            for name, source in self.sources.items():
                value = np.array(source(), float)
                taken[name].append(value if sim.worlds > 1 else value[None])
        a, b = np.array([at[k] for k in self.before]), np.array([at.get(k + 1, at[k]) for k in self.before])
        out = {}
        for name, rows in taken.items():
            values = np.stack(rows, 1)[:n]
            part = self.part.reshape(-1, *(1,) * (values.ndim - 2))
            out[name] = values[:, a] * (1.0 - part) + values[:, b] * part
            out[name][np.asarray(sim.failed)[:n]] = np.nan
        return out

    def _at(self, x: np.ndarray) -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray]:
        """Values, residuals and Jacobian at x, in one batch."""
        key = x.tobytes()
        if key not in self.known:
            reach = DIFFERENCE_STEP * np.maximum(np.abs(x), self.scale)
            ends = [np.clip(x + sign * np.diag(reach), self.low, self.high) for sign in (1.0, -1.0)]
            motions = self.motions(np.vstack([x[None], *ends]))
            self.count += 1
            weighed = np.concatenate([self._residual(name, values) for name, values in motions.items()], 1)
            weighed = np.where(np.isfinite(weighed), weighed, 1e3)  # a world that failed is far off
            p = len(x)
            apart = np.array([ends[0][k, k] - ends[1][k, k] for k in range(p)])
            self.known[key] = {n: v[0] for n, v in motions.items()}, weighed[0], (weighed[1 : p + 1] - weighed[p + 1 :]).T / apart
        return self.known[key]

    def _residual(self, name: str, values: np.ndarray) -> np.ndarray:
        seen = self.seen[name]
        if values.shape[1:] != seen.shape:
            raise SimulationError(f"fit: {name!r} was recorded as {seen.shape}, and is {values.shape[1:]} in the simulation")
        return np.asarray((values - seen)[:, np.isfinite(seen)] / self.sigma[name])

    def residuals(self, x: np.ndarray) -> np.ndarray:
        """(n,) what is left, in units of the noise."""
        return self._at(x)[1]

    def jacobian(self, x: np.ndarray) -> np.ndarray:
        """(n, p) its derivatives."""
        return self._at(x)[2]

    def values(self, x: np.ndarray) -> dict[str, np.ndarray]:
        """(n, …) simulated values by name."""
        return self._at(x)[0]

    def left(self, x: np.ndarray) -> dict[str, float]:
        """Root mean square of what is left of each name, in its unit."""
        values = self.values(x)
        return {name: float(np.sqrt(np.nanmean((values[name] - seen) ** 2))) for name, seen in self.seen.items()}


class Commands:
    """What is commanded in each step."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        self.values = {name: as_numbers(x) for name, x in given.items()}
        for name, x in self.values.items():
            if x.ndim != 1 or not len(x) or not np.isfinite(x).all():
                raise SimulationError(f"fit: control {name!r} is one finite number a step, got shape {x.shape}")
        self.began: float | None = None

    def of(self, steps: int) -> tuple[list[str], np.ndarray]:
        """Inputs, and (steps, m) commands; the last one stays."""
        at = np.arange(steps)
        return list(self.values), np.stack([x[np.minimum(at, len(x) - 1)] for x in self.values.values()], 1)

    def __call__(self, sim: Simulation) -> None:
        """Give the commands of the next step."""
        began = self.began = sim.time if self.began is None else self.began
        step = round((sim.time - began) / sim.dt)
        values = np.array([x[min(step, len(x) - 1)] for x in self.values.values()])
        command(sim, [name if "." in name else f"{name}.effort" for name in self.values], values)


class _Followed(_Batches):
    """The recorded motion of one world, with the derivative of its steps."""

    first: Rollout | None = None

    def _at(self, x: np.ndarray) -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray]:
        key = x.tobytes()
        if key not in self.known:
            self.settle(x)
            self.count += 1
            steps, n = int(self.before.max() + (self.part > 0).any()), int(self.sim.model.speeds)
            try:
                inputs, given = (None, None) if not isinstance(self.control, Commands) else self.control.of(max(1, steps))
                made = Rollout(self.sim, given, max(1, steps), inputs, [p.word for p in self.parameters], self.first)
                self.first = self.first or made
                by, at = made.jacobian(), len(made.states)
                motion = np.concatenate([made.q[:, :n], made.v[:, :n]], 1)
                slopes = np.concatenate([by[:, :n], by[:, at : at + n]], 1)
            except SimulationError:  # far off
                motion, slopes = np.full((steps + 2, 2 * n), np.inf), np.zeros((steps + 2, 2 * n, len(x)))
            values: dict[str, np.ndarray] = {}
            weighed, columns = [], []
            for name, seen in self.seen.items():
                value, slope = (self._recorded(name, some) for some in (motion, slopes))
                values[name] = value.reshape(seen.shape)
                there = np.isfinite(seen).ravel()
                weighed.append(self._residual(name, values[name][None])[0])
                columns.append(slope.reshape(-1, len(x))[there] / self.sigma[name])
            left = np.concatenate(weighed)
            self.known[key] = values, np.where(np.isfinite(left), left, 1e3), np.concatenate(columns)
        return self.known[key]

    def _recorded(self, name: str, motion: np.ndarray) -> np.ndarray:
        """Of numbers of all steps, those of a recorded value at its times."""
        joint, _, what = name.removeprefix("joint/").rpartition(".")
        m, k = self.sim.model, self.sim.model.joint_names[joint]
        at = int(m.v_start[k]) + (motion.shape[1] // 2 if what == "qd" else 0)
        own = motion[:, at : at + m.joint_kinds[k].v_size]
        part = self.part.reshape(-1, *(1,) * (own.ndim - 1))
        found: np.ndarray = own[self.before] * (1.0 - part) + own[np.minimum(self.before + 1, len(own) - 1)] * part
        return found


def _runs(
    sim: Any, time: np.ndarray, seen: dict[str, np.ndarray], words: list[str], control: Any, dt: float | None, options: Any
) -> _Batches:
    """How the motion is run for points: with the derivative of steps where that is known."""
    follows = control is None or isinstance(control, Mapping)
    if isinstance(control, Mapping):
        control = Commands(control)
    given = time, seen, words, control
    if follows and not (isinstance(sim, Simulation) and sim.worlds > 1):
        one = _simulation(sim, 1, dt, options)
        if isinstance(sim, Simulation) or _is_followed(one, seen, words):
            return _Followed(one, *given) if _is_followed(one, seen, words) else _Batches(one, *given)
    return _Batches(_simulation(sim, 2 * len(words) + 1, dt, options), *given)


def _is_followed(sim: Simulation, seen: Mapping[str, Any], words: list[str]) -> bool:
    """Whether the derivative of the motion is known: of recorded values of joints that have no ball."""
    m = sim.model
    names = {
        f"joint/{name}.{what}" for name, k in m.joint_names.items() if len(m.joint_kinds[k].turns) < 3 for what in ("q", "qd")
    }
    try:
        check_covered(sim, "fit")
        differentiable(sim, words)
    except SimulationError:
        return False
    return names.issuperset(seen) and not any(len(kind.turns) == 3 for kind in m.joint_kinds) and len(m.joint_names) > 0


def _simulation(sim: Any, worlds: int, dt: float | None, options: dict[str, Any]) -> Simulation:
    if isinstance(sim, Scene):
        if dt is None:
            raise SimulationError("fit: a Scene needs dt=, the step in s")
        return Simulation(sim, dt, worlds=worlds, **options)
    if dt is not None or options:
        raise SimulationError(f"fit: {', '.join(['dt'] * (dt is not None) + list(options))} belongs to a Scene")
    if not isinstance(sim, Simulation) and callable(sim):
        sim = sim(worlds)
        if not isinstance(sim, Simulation):
            raise SimulationError(f"fit: {called(sim)!r} returns a Simulation, got {sim!r}")
    if not isinstance(sim, Simulation):
        raise SimulationError(f"fit: takes a Simulation, a Scene, or a function make(worlds), got {sim!r}")
    return sim


def _recorded(recording: Values | Mapping[str, Any], words: Sequence[str] | None) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Times and values of a recording, looked at."""
    if isinstance(recording, Values):
        names = recording.names
        if words is None and isinstance(recording, Recording):
            names = [n for n in names if n.endswith((".q", ".qd"))] or [n for n in names if n.endswith(".position")]
        time, values = recording.time, {name: recording[name] for name in names}
    elif isinstance(recording, Mapping) and "time" in recording:
        time, values = as_numbers(recording["time"]), {name: as_numbers(v) for name, v in recording.items() if name != "time"}
    else:
        raise SimulationError(
            f"fit: a recording is a log of sim.record, or a dict of 'time' and of values by word, got {recording!r}"
        )
    if time.ndim != 1 or len(time) < 2 or not np.isfinite(time).all() or not (np.diff(time) > 0).all():
        raise SimulationError("fit: the times of a recording are at least two rising numbers in s")
    for word in words or ():
        if word not in values:
            raise SimulationError(f"fit: the recording holds no {word!r}; it holds {', '.join(map(repr, values))}")
    values = values if words is None else {word: values[word] for word in words}
    if not values:
        raise SimulationError("fit: the recording holds no values beside the time")
    for name, array in values.items():
        if array.shape[:1] != time.shape or not np.isfinite(np.asarray(array, float)).any():
            raise SimulationError(f"fit: {name!r} has {array.shape} recorded values for {len(time)} times; one a time is needed")
    return time, {name: np.asarray(array, float) for name, array in values.items()}


def _guesses(parameters: Mapping[str, Any]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """First guesses and bounds, (p,) each."""
    if not isinstance(parameters, Mapping) or not parameters:
        raise SimulationError(f"fit: parameters is a dict of first guesses by word, got {parameters!r}")
    rows = []
    for word, given in parameters.items():
        numbers = np.atleast_1d(as_numbers(given))
        if numbers.shape == (1,):
            positive = str(word).rpartition(".")[2] in POSITIVE.split()
            numbers = np.array([numbers[0], 0.0 if positive else -inf, inf])
            numbers[1] = 1e-9 * numbers[0] if positive and str(word).endswith("mass") else numbers[1]
        if (
            numbers.shape != (3,)
            or not np.isfinite(numbers[0])
            or not numbers[1] <= numbers[0] <= numbers[2]
            or numbers[1] == numbers[2]
        ):
            raise SimulationError(
                f"fit: {word!r} takes a first guess, or (guess, low, high) with low ≤ guess ≤ high, got {given!r}"
            )
        rows.append(numbers)
    guess, low, high = np.array(rows).T
    return guess, low, high


def _sigma(seen: dict[str, np.ndarray], noise: float | Mapping[str, float] | None) -> dict[str, float]:
    """What a residual is measured by, for each name: the noise, or until that is known how far the values spread."""
    if noise is None:
        return {name: float(np.nanstd(values)) or 1.0 for name, values in seen.items()}
    given = {name: noise.get(name) if isinstance(noise, Mapping) else noise for name in seen}
    for name, value in given.items():
        if not isinstance(value, float | int) or not 0 < value < inf:
            raise SimulationError(f"fit: noise of {name!r} is a positive standard deviation, got {value!r}")
    return {name: float(value) for name, value in given.items() if value is not None}
