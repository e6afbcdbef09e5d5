"""Times at which functions of the state pass through zero, found on the polynomials of accepted steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from numbers import Real
from typing import Any

import numpy as np

from sharnir.errors import SimulationError, as_numbers

Event = Callable[[float, np.ndarray, np.ndarray], float]
LOOKED_AT = (0.25, 0.5, 0.75, 1.0)  # θ at which a step is looked at: of two crossings a quarter apart none is missed


def check_events(events: Any, states: int) -> tuple[Event, ...]:
    """A user's events as a tuple; an event is a function f(t, q, v) with the attributes `terminal` and `direction` if need be."""
    made = (events,) if callable(events) else tuple(events)
    for i, event in enumerate(made):
        terminal, direction = getattr(event, "terminal", False), getattr(event, "direction", 0)
        if not callable(event):
            raise SimulationError(f"events[{i}] is a function f(t, q, v), got {event!r}")
        if not isinstance(terminal, int | np.bool_ | np.integer) or terminal < 0:
            raise SimulationError(f"{named(event, i)}.terminal is True, False or a count, got {terminal!r}")
        if not isinstance(direction, Real) or direction != direction:
            raise SimulationError(f"{named(event, i)}.direction is negative, 0 or positive, got {direction!r}")
        if terminal and states > 1:
            raise SimulationError(f"{named(event, i)} is terminal; that needs a single state, and there are {states}")
    return made


def named(event: Event, i: int) -> str:
    """What a message calls an event."""
    return f"events[{i}] ({getattr(event, '__name__', type(event).__name__)})"


class Watch:
    """The search for the events of one state, step after step."""

    def __init__(self, events: Sequence[Event]) -> None:
        self.events = events
        self.found: list[list[tuple[float, np.ndarray, np.ndarray]]] = [[] for _ in events]
        self.before: list[float] = []

    def value(self, i: int, t: float, q: np.ndarray, v: np.ndarray) -> float:
        """Event i at a state; refuses what is not a number."""
        got = self.events[i](t, q.copy(), v.copy())
        g = as_numbers(got)
        if g.size != 1 or not np.isfinite(g).all():
            raise SimulationError(f"{named(self.events[i], i)} returns a finite number, got {got!r} at t = {t:.6g} s")
        return float(g.reshape(()))

    def scan(self, start: float, size: float, at: Callable[[Any], tuple[np.ndarray, np.ndarray]]) -> float | None:
        """Look at a step from a time and of a size, s, whose states are at(θ), one or several; returns θ of a terminal event."""

        def along(i: int, theta: float) -> float:
            return self.value(i, start + theta * size, *at(theta))

        if not self.before:
            self.before = [along(i, 0.0) for i in range(len(self.events))]
        exact = 4 * np.finfo(float).eps * (1 + abs(start) / size)
        crossings = []
        looks = list(zip(LOOKED_AT, *at(LOOKED_AT), strict=True))
        for i, event in enumerate(self.events):
            a, g_a, direction = 0.0, self.before[i], getattr(event, "direction", 0)
            for b, q, v in looks:
                g_b = self.value(i, start + b * size, q, v)
                # one that begins on zero was met before, or the motion starts there
                if g_a != 0 and g_a * g_b <= 0 and direction * g_a <= 0:
                    crossings.append((root(partial(along, i), a, b, g_a, g_b, exact), i))
                a, g_a = b, g_b
            self.before[i] = g_a
        for theta, i in sorted(crossings):
            self.found[i].append((start + theta * size, *at(theta)))
            terminal = int(getattr(self.events[i], "terminal", False))
            if terminal and len(self.found[i]) >= terminal:
                return theta
        return None

    def times(self) -> list[np.ndarray]:
        """Times of each event, s."""
        return [np.array([t for t, _, _ in each]) for each in self.found]

    def states(self, nq: int, nv: int) -> list[tuple[np.ndarray, np.ndarray]]:
        """q (k, nq) and v (k, nv) of each event at its times."""
        parts = [([q for _, q, _ in each], [v for _, _, v in each]) for each in self.found]
        return [(np.array(q).reshape(-1, nq), np.array(v).reshape(-1, nv)) for q, v in parts]


def root(f: Callable[[float], float], a: float, b: float, f_a: float, f_b: float, exact: float) -> float:
    """A zero of f between a and b, where it changes sign: Chandrupatla's method.

    Of the last bracket the later end is returned, so that a motion that goes on from there does not meet the same zero again.
    """
    if f_b == 0:
        return b
    share = 0.5
    while True:
        x = a + share * (b - a)
        f_x = f(x)
        if f_x == 0:
            return x
        c, f_c = a, f_a
        if (f_x > 0) != (f_a > 0):
            c, f_c, b, f_b = b, f_b, a, f_a
        a, f_a = x, f_x
        closest = exact / abs(b - a)
        if closest > 0.5:
            return max(a, b)
        xi, phi = (a - b) / (c - b), (f_a - f_b) / (f_c - f_b)
        share = 0.5
        if phi**2 < xi and (1 - phi) ** 2 < 1 - xi:  # the inverse parabola through the three is monotonic
            share = f_a / (f_b - f_a) * f_c / (f_b - f_c) + (c - a) / (b - a) * f_a / (f_c - f_a) * f_b / (f_c - f_b)
        share = min(1 - closest, max(closest, share))
