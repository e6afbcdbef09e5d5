"""What both solvers share: the step, the threads that split the worlds, captured graphs, the report."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np
import warp as wp

from sharnir.errors import SimulationError, is_positive
from sharnir.model import DYNAMIC, Control, Model, State
from sharnir.types import np_real, real


class Solver:
    """A model, its step, and threads that share its worlds.

    Args:
        settings: the device's structure with an array `dt`; where laws act on axes, `part` too, one a world.
        threads: CPU threads; all cores if None (one world needs one).
    """

    reads = False
    """Whether a step leaves the coordinates of all joints in the state."""
    at_pose = True
    """Whether a step leaves the velocities of its pose in the state; if not, `read_pose` brings them there."""

    def __init__(self, model: Model, dt: float, settings: Any, threads: int | None) -> None:
        if threads is not None and (not isinstance(threads, int) or threads < 1):
            raise SimulationError(f"threads is a whole number of at least 1, got {threads!r}")
        self.model, self.device, self.settings = model, model.device, settings
        settings.dt = wp.zeros(1, dtype=real, device=self.device)
        self._part = wp.zeros(model.worlds, dtype=real, device=self.device)
        if "part" in settings._cls.vars:
            settings.part = settings.kick = self._part
        self.dt = dt
        cores = os.cpu_count() or 1
        on_cpu = wp.get_device(self.device).is_cpu
        self.threads = min(threads or (cores if model.worlds >= 2 * cores else 1), model.worlds) if on_cpu else 1
        self._pool = ThreadPoolExecutor(self.threads, "sharnir") if self.threads > 1 else None
        self._bound: tuple[State, Control, Any] | None = None  # what captured launches point to

    def read_pose(self, state: State, control: Control) -> None:
        """Bring velocities and reactions of the state to its pose; the motion does not depend on it."""

    def begin_anew(self, state: State) -> None:
        """Where velocities stand at half steps: begin the next step from those of the pose."""

    def furnish(self, state: State) -> None:
        """Give a new state the arrays that this solver alone keeps in it."""

    @property
    def dt(self) -> float:
        """Step, s."""
        return self._dt

    @dt.setter
    def dt(self, value: float) -> None:
        if not is_positive(value):
            raise SimulationError(f"dt is a positive finite number of seconds, got {value!r}")
        self._dt = float(value)
        self.settings.dt.assign(np.array([value], np_real))
        self._part.fill_(value)

    def _capture(self, *stages: Callable[[Any, int, int], None]) -> list[Any]:
        """Some stages as graphs, one a thread; a stage is given the bound structure, its first world and their number."""
        assert self._bound is not None
        graphs = []
        for first, last in pairwise(np.linspace(0, self.model.worlds, self.threads + 1).astype(int)):
            with wp.ScopedCapture(device=self.device) as capture:
                for stage in stages:
                    stage(self._bound[2], int(first), int(last - first))
            graphs.append(capture.graph)
        return graphs

    def _replay(self, graphs: list[Any], n: int) -> None:
        if self._pool is None:
            for _ in range(n):
                wp.capture_launch(graphs[0])
        elif n:
            list(self._pool.map(_replay, graphs, [n] * len(graphs)))


def _replay(graph: Any, n: int) -> None:
    for _ in range(n):
        wp.capture_launch(graph)


def check_iterations(value: Any, least: int, what: str = "iterations") -> int:
    """A whole number of at least `least`, or an error that names it."""
    if not isinstance(value, int | np.integer) or value < least:
        raise SimulationError(f"{what} is a whole number of at least {least}, got {value!r}")
    return int(value)


def scene_scale(model: Model, dt: float) -> tuple[float, float, float]:
    """(kg, m, m/s) that a scene's tolerances follow: a usual mass, a usual length, and a speed that is 1 for 1 m, g and 1 ms.

    The length is that of levers and radii of gyration.
    """
    mass, inertia = (a.numpy().astype(float) for a in (model.bodies.mass, model.bodies.inertia))
    on = model.bodies.motion.numpy() == DYNAMIC
    if not on.any():
        return 1.0, 1.0, 1.0
    lengths = np.sqrt(np.trace(inertia[on], axis1=1, axis2=2) / mass[on])
    joints = model.joints
    for point, body in ((joints.parent_point, joints.parent), (joints.child_point, joints.child)):
        if model.joint_kinds:
            lengths = np.append(lengths, np.linalg.norm(point.numpy().astype(float), axis=1)[on[body.numpy()]])
    lengths = lengths[lengths > 0]
    length = float(np.exp(np.log(lengths).mean())) if len(lengths) else 1.0
    usual = float(np.exp(np.log(mass[on]).mean()))
    return usual, length, max(float(np.linalg.norm(model.gravity)) * dt / 0.01, length)


GRADES = ("relative", "divided", "damped", "velocity")


class Report:
    """What the last step did; one object, reused. Values are numbers, or arrays (worlds,) where there are several worlds."""

    def __init__(
        self, done: Any, residual: Any, tolerance: float, grades: Any = None, rope: tuple[Any, float] | None = None,
        projected: Any = None, parts: Any = None,
    ) -> None:  # fmt: skip
        self._projected, self._parts = projected, parts
        self._done, self._residual, self._tolerance, self._grades, self._rope = done, residual, tolerance, grades, rope
        self.elapsed = 0.0
        """Wall-clock time of the step, s (mean, where a call made several)."""
        self.deadline_missed = False
        """Whether the budget cut the step short, or it took longer than its budget."""

    @staticmethod
    def _value(array: Any) -> Any:
        values = array.numpy()
        return values[0].item() if len(values) == 1 else values

    @property
    def iterations(self) -> Any:
        """Sweeps made at velocity level, or passes over the tree."""
        return self._value(self._done)

    @property
    def residual(self) -> Any:
        """Largest impulse of the last sweep, or by how much what acts on an axis was missed; N·s or N·m·s."""
        return self._value(self._residual)

    @property
    def converged(self) -> Any:
        """Whether the residual fell below the tolerance, and ropes beside joints are closed to theirs."""
        met = self.residual <= self._tolerance
        return met if self._rope is None else met & (self._value(self._rope[0]) <= self._rope[1])

    @property
    def parts(self) -> Any:
        """In how many parts the last step was made (`closing="energy"`); 1 where its passes met at once."""
        return 1 if self._parts is None else self._value(self._parts)

    @property
    def projected(self) -> Any:
        """J, of kinetic energy that velocities lost in this call because they did not fit the joints: those that a caller set,
        and what an impact or a joint put back left (`closing="energy"`).
        """
        return 0.0 if self._projected is None else self._value(self._projected)

    @property
    def grades(self) -> dict[str, Any]:
        """Of the direct pass and of ropes: how many steps of the call were made otherwise than plainly.

        "relative": a link turned relative to its neighbours faster than the step resolves, and was held back in that; "divided":
        passes did not close the joints, and the step was made in parts; "damped": a part needed links held back altogether;
        "velocity": or, in the end, joints closed at velocity level, poses being hung on their bases.
        Of ropes: "relative", some tension changed suddenly, and had the direction of the end of the step; "damped", all had.
        """
        if self._grades is None:
            return {}
        counts = self._grades.numpy()
        return {name: int(row[0]) if len(row) == 1 else row for name, row in zip(GRADES, counts, strict=True)}
