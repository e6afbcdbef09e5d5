"""The host's side of an integration: it launches, gathers recorded steps, looks for events, and hands back a `Trajectory`."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import warp as wp

from sharnir.core.types import alone, load_modules, np_real, real
from sharnir.errors import SimulationError
from sharnir.integrate import kernel as ode
from sharnir.integrate.data import Motion
from sharnir.integrate.events import Event, Watch
from sharnir.integrate.methods import INTEGRATION_METHODS, interpolant
from sharnir.model.actuators import Engine, Motor
from sharnir.model.joint_types import DriveTable

FIRST_STEP = 1e-4  # s
MOST_STEPS, FIRST_STEPS = 500, 200  # in a launch, and of all states in the first; the motion does not depend on it
HEARD = 0.05  # s, after which Python is to be heard
RECORD = 32 << 20  # bytes of recorded steps in one launch, at most


@dataclass(frozen=True)
class Trajectory:
    """A motion at some times (s): q (times, nq) and v (times, nv), or with a leading axis of states; steps made and rejected.

    `events` holds for each event function an array of times, `event_states` q (k, nq) and v (k, nv) there; of several states a
    list of such lists.
    """

    times: np.ndarray
    q: np.ndarray
    v: np.ndarray
    steps: Any
    rejected: Any
    events: list[Any] = field(default_factory=list)
    event_states: list[Any] = field(default_factory=list)
    pieces: Any = field(default=None, repr=False)  # the steps as polynomials, where dense=True asked for them
    currents: Any = field(default=None, repr=False)  # (times, …) A, of motors with an inductance; then A·s that batteries gave

    def at(self, t: Any) -> tuple[np.ndarray, np.ndarray]:
        """q (nq,) and v (nv,) at any time of the motion, s, to its tolerances; (k, …) at k times, all behind the states' axis."""
        if self.pieces is None:
            raise SimulationError("Trajectory.at: the motion between times is kept where integrate was given dense=True")
        q, v = (np.stack(x) for x in zip(*(piece(np.asarray(t, float)) for piece in self.pieces), strict=True))
        return (q[0], v[0]) if self.q.ndim == 2 else (q, v)


def first_of(path: Trajectory) -> Trajectory:
    """The motion of the first state, without the axis of states."""
    made, events, there = (int(path.steps[0]), int(path.rejected[0])), path.events[0], path.event_states[0]
    return Trajectory(path.times, path.q[0], path.v[0], *made, events, there, path.pieces, path.currents[0])


class Piecewise:
    """The steps of one state as polynomials.

    Args:
        nq, nv: how many rows are coordinates, and then speeds. turns: the first rows of quaternions.
    """

    def __init__(self, nq: int, nv: int, turns: Sequence[int]) -> None:
        self.nq, self.nv, self.turns = nq, nv, turns
        self.starts: list[float] = []
        self.sizes: list[float] = []
        self.end = 0.0
        self.coefficients: list[np.ndarray] = []  # of a step (powers, rows)

    def add(self, start: float, size: float, coefficients: np.ndarray) -> None:
        """One more step, from a time and of a size in s."""
        self.starts.append(start)
        self.sizes.append(size)
        self.coefficients.append(coefficients)
        self.end = start + size

    def rows(self, C: np.ndarray, theta: Any) -> np.ndarray:
        """All rows of the state there."""
        y = np.asarray(theta)[..., None] ** np.arange(len(C)) @ C
        for i in self.turns:
            y[..., i : i + 4] /= np.linalg.norm(y[..., i : i + 4], axis=-1, keepdims=True)
        return np.asarray(y)

    def value(self, C: np.ndarray, theta: Any) -> tuple[np.ndarray, np.ndarray]:
        """q (nq,) and v (nv,) in a step of coefficients C, 0 ≤ θ ≤ 1; (k, …) at k places."""
        y = self.rows(C, theta)
        return y[..., : self.nq], y[..., self.nq : self.nq + self.nv]

    def __call__(self, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        first = self.starts[0] if self.starts else self.end
        slack = 1e-12 * (1 + abs(self.end))
        if not self.starts or not np.all((t >= first - slack) & (t <= self.end + slack)):
            raise SimulationError(f"Trajectory.at: times from {first:g} to {self.end:g} s, got {t.tolist()}")
        steps = np.clip(np.searchsorted(self.starts, t.ravel(), side="right") - 1, 0, None)
        theta = (t.ravel() - np.take(self.starts, steps)) / np.take(self.sizes, steps)
        parts = [self.value(self.coefficients[i], x) for i, x in zip(steps.tolist(), theta.tolist(), strict=True)]
        q, v = np.array([q for q, _ in parts]), np.array([v for _, v in parts])
        return q.reshape(*t.shape, -1), v.reshape(*t.shape, -1)


@dataclass(frozen=True)
class Options:
    """How to integrate: see `sharnir.dynamics.integrate`."""

    method: str
    rtol: float
    atol: float
    step: float | None
    dense: bool
    progress: bool


def run(
    motion: Motion, y: np.ndarray, start: float, ends: np.ndarray, turns: Sequence[int], events: Sequence[Event], how: Options
) -> Trajectory:
    """The motion of states y (n, rows) from time `start` through the times `ends`; results have a leading axis of states."""
    device, nq, nv = motion.q.device, int(motion.nq), int(motion.nv)
    keep = how.dense or bool(events)
    table = tableau(how.method, device)
    course = begin(table, how, y, start, ends, keep, device, bool(motion.rough))
    ask = request(how, ends, keep, device)
    kernel = kernel_for(motion)
    load_modules([kernel.module], device)
    holder = alone(motion, Motion, device)
    pieces, watches = [Piecewise(nq, nv, turns) for _ in y], [Watch(events) for _ in y]
    now, last, stop = float(np_real(start)), float(ask.end), None
    ask.most = max(1, FIRST_STEPS // len(y))
    while now < last and stop is None:
        ask.pause = min(now + 0.02 * (last - start), last) if how.progress else last
        began = time.perf_counter()
        wp.launch(kernel, dim=len(y), inputs=[holder, table, ask, course], device=device)
        clocks = course.now.numpy()
        ask.most = steps_within(ask.most, time.perf_counter() - began)
        now = float(clocks.min())
        failed = course.phase.numpy() == int(ode.AT_FAILURE)
        if failed.any():
            why = "is not finite with this step; a smaller one?" if how.step else "needs too small a step; tolerances or motion?"
            raise SimulationError(f"integrate: the motion {why} (t = {clocks[failed][0]:.6g} s)")
        if keep:
            stop = gather(course, pieces, watches, how.dense)
        if how.progress:
            show(now if stop is None else stop[0], start, last, stop is not None)
    count = course.count.numpy()
    values = np.moveaxis(course.out.numpy().astype(float), -1, 0)  # (n, times, rows)
    steps, rejected = count[0].copy(), count[1].copy()
    if stop is not None:
        end, there, steps, rejected = stop
        before = ends < end
        ends, values = np.append(ends[before], end), np.concatenate([values[:, before], there[None, None]], 1)
    for i in turns:
        values[..., i : i + 4] /= np.linalg.norm(values[..., i : i + 4], axis=-1, keepdims=True)
    return Trajectory(
        ends, values[..., :nq], values[..., nq : nq + nv], steps, rejected,
        [watch.times() for watch in watches], [watch.states(nq, nv) for watch in watches],
        pieces if how.dense else None, values[..., nq + nv :],
    )  # fmt: skip


def steps_within(steps: int, took: float) -> int:
    """Steps that the next launch may make, after so many took a time (s): few enough that Python is heard in between."""
    return int(np.clip(steps * HEARD / max(took, 1e-6), 1, min(4 * steps, MOST_STEPS)))


def kernel_for(motion: Motion) -> Any:
    """The kernel for plain trees, or that for all there is."""
    rotors = bool(motion.axes.rotor_inertia.numpy().any())
    plain = not (motion.rough or motion.closures.count or motion.driven or rotors)
    return ode.integrate_plain if plain else ode.integrate_all


def gather(course: Any, pieces: list[Piecewise], watches: list[Watch], dense: bool) -> tuple[float, Any, Any, Any] | None:
    """Take over the steps recorded in a launch; at a terminal event its time, the state there, steps made and rejected."""
    count, marks, coefficients = (array.numpy() for array in (course.count, course.marks, course.C))
    for w, (piece, watch) in enumerate(zip(pieces, watches, strict=True)):
        recorded = int(count[3, w])
        for i in range(recorded):
            start, size, rejected, cut = marks[i, :, w].tolist()
            C = coefficients[i, :, :, w].astype(float) * (cut ** np.arange(coefficients.shape[1]))[:, None]
            size *= cut
            if dense:
                piece.add(start, size, C)
            theta = watch.scan(start, size, partial(piece.value, C)) if watch.events else None
            if theta is not None:
                piece.end = start + theta * size
                made = np.array([count[0, w] - recorded + i + 1])
                return piece.end, piece.rows(C, theta), made, np.array([int(rejected)])
    return None


def request(how: Options, ends: np.ndarray, keep: bool, device: Any) -> Any:
    """What the device is asked for, all of it in one launch unless steps are kept."""
    ask = ode.Request()
    ask.fixed, ask.rtol, ask.atol, ask.keep, ask.most = how.step or 0.0, how.rtol, how.atol, int(keep), 1
    ask.end = float(np_real(ends[-1]))  # as the device's clock will show it
    ask.times = wp.array(np.append(ends, np.inf), dtype=real, device=device)
    return ask


def begin(table: Any, how: Options, y: np.ndarray, start: float, ends: np.ndarray, keep: bool, device: Any, rough: bool) -> Any:
    """The course of n states (n, rows) before the first step."""
    n, rows = y.shape
    powers = int(table.degree) + 1
    slots = int(np.clip(RECORD // (powers * rows * n * np.dtype(np_real).itemsize), 4, 256)) if keep else 1
    first = how.step or FIRST_STEP
    course = ode.Course()
    course.walk = wp.zeros(n, dtype=ode.Walk, device=device)
    course.phase = wp.full(n, int(ode.AT_SWITCH if rough else ode.AT_BEGIN), dtype=wp.int32, device=device)
    course.now = wp.full(n, start, dtype=real, device=device)
    course.size = wp.full(n, first, dtype=real, device=device)
    passed = int(np.sum(ends <= start))
    count = np.zeros((4, n), np.int32)
    count[2] = passed
    course.count = wp.array(count, device=device)
    state = np.ascontiguousarray(y.T, np_real)
    course.y = wp.array(state, dtype=real, device=device)
    course.ahead = wp.zeros((rows, n), dtype=real, device=device)
    course.K = wp.zeros((int(table.total) + 1, rows, n), dtype=real, device=device)
    course.C = wp.zeros((slots, powers, rows, n), dtype=real, device=device)
    course.marks = wp.zeros((slots, 4, n), dtype=real, device=device)
    out = np.zeros((len(ends), rows, n), np_real)
    out[:passed] = state
    course.out = wp.array(out, dtype=real, device=device)
    return course


def tableau(name: str, device: Any) -> Any:
    """A method's coefficients on the device."""
    table = ode.Tableau()
    method = INTEGRATION_METHODS[name]
    P, count = interpolant(method), len(method.stages)

    def on_device(weights: Sequence[dict[int, float]]) -> Any:
        return wp.array([[row.get(j, 0.0) for j in range(count)] for row in weights], dtype=real, device=device)

    table.first, table.trial, table.result, table.total = 1, method.trial, method.result, count
    table.order, table.degree, table.paired = method.error_order, len(P), int(bool(method.error_low))
    table.stages, table.error = on_device(method.stages), on_device([method.error, method.error_low])
    table.dense = wp.array(P, dtype=real, device=device)
    return table


def show(now: float, start: float, last: float, stopped: bool) -> None:
    """A bar on stderr."""
    share = (now - start) / (last - start)
    line = "\n" if stopped or now >= last else ""
    sys.stderr.write(f"\r[{'#' * int(30 * share):<30}] {now:8.2f} s{line}")
    sys.stderr.flush()


# ---- drives ----------------------------------------------------------------------------------------------------------------


def check_drives(model: Any) -> None:
    """Refuse, by name, drives whose law is that of a step."""
    for name, k in model.joint_names.items():
        for axis in model.joint_axes[k]:
            drive = axis.drive
            battery = getattr(drive, "battery", None)
            why = ""
            if isinstance(drive, Engine):
                why = "an Engine's clutch holds or slips"
            elif isinstance(drive, Motor) and battery is not None:
                why = "a Motor with a curve takes power from its Battery step by step"
            elif battery is not None and battery.capacity < math.inf:
                why = f"Battery {battery.name!r} runs out, after {battery.capacity:g} A·s"
            if why:
                raise SimulationError(
                    f"integrate: joint {name!r}: {why}, which steps alone know; allowed are Servo, DCMotor, Motor without a "
                    "battery, HydraulicCylinder"
                )


def drives_for(model: Any, speeds: int, n: int) -> tuple[Any, Any, int]:
    """The table of drives for n states, the row of each speed, and how many batteries there are."""
    given, t = model.drives, DriveTable()
    for name in DriveTable.vars:  # type: ignore[attr-defined]
        setattr(t, name, getattr(given, name))
    drive_of = np.full(speeds, -1, np.int32)
    drive_of[given.at.numpy()] = np.arange(int(given.count))
    if given.p.shape[2] != n:
        device = given.p.device
        t.p = wp.array(np.repeat(given.p.numpy()[:, :, :1], n, 2), dtype=real, device=device)
        t.cell = wp.array(np.repeat(given.cell.numpy()[:, :1], n, 1), dtype=real, device=device)
    return t, wp.array(drive_of, dtype=wp.int32, device=given.p.device), int(given.batteries)
