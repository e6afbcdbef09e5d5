"""A tree of floats, the reference: the step computes with it as it stands."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from sharnir.emit.algebra import Vector
from sharnir.engine.tree import history
from sharnir.engine.tree.forest import Forest
from sharnir.engine.tree.storage import (
    FARTHEST,
    FIRST_RATE,
    GEAR,
    PATIENCE,
    SHARPER,
    SHARPEST,
    SIZES,
    TRIES,
    OneForest,
    is_converged,
)


class Rounds:
    """At most so many rounds; `leave`, at the end of one, ends them."""

    def __init__(self, most: int) -> None:
        self.most, self.done = most, False

    def __iter__(self) -> Iterator[None]:
        for _ in range(self.most):
            yield
            if self.done:
                return

    def leave(self, condition: bool) -> None:
        self.done = condition


class NumberTree(OneForest):
    """Floats, the reference: `step(tree)` computes."""

    fewest: int
    patience: int
    wrong: int
    one: bool
    guesses = True
    branches_on_laws, compares_once = True, False
    choice = history.FIRST
    tiny, root_epsilon = 1e-14, 1.5e-8  # of a number: what counts as none; the root of rounding
    smooth: float
    sharper: float
    stalls: int
    tries: int

    def __init__(
        self, forest: Forest, h: float, gravity: tuple[float, float, float] = (0.0, 0.0, -9.81), own_axes: bool = True,
        factor_always: bool = False, tolerance: float = 1e-16, limit: int = 50, law_tolerance: float = 1e-12,
        second_gear: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(forest)
        self.second_gear, self.gear, self.restarted = second_gear, 0, False
        self.own_axes, self.factor_always, self.tolerance, self.limit = own_axes, factor_always, tolerance, limit
        self.h, self.law_tolerance = h, law_tolerance
        self.gravity = Vector(*gravity) * (0.25 * h * h)
        self.fall = h * sum(x * x for x in gravity) ** 0.5
        self.change, self.passes, self.changed, self.unknown, self.lost = 0.0, 0, 0, False, 0.0
        self.work = 0.0
        self.suspect = False
        self.fields = [{name: [0.0] * size for name, size in SIZES.items()} | forest.values(i) for i in range(len(forest))]
        for f in self.fields:
            f["rotation"] = [0.0, 0.0, 0.0, 1.0]
        self.place()

    def place(self) -> None:
        """After coordinates were set."""
        for f in self.fields:
            f["c"], f["s"] = [math.cos(f["q"][0])], [math.sin(f["q"][0])]

    def get(self, i: int, name: str) -> list[Any]:
        return self.fields[i][name]

    def put(self, i: int, name: str, x: list[Any]) -> None:
        self.fields[i][name] = list(x)

    def iterations(self) -> Iterator[bool]:
        """Passes of a step: whether each factors anew."""
        k, self.first, self.gear = 0, True, max(self.gear - 1, 0)
        while k < self.limit:
            if self.first:
                self.fewest, self.patience, self.changed, self.smooth, self.tries = 1 << 30, PATIENCE, 0, 0.0, 0
                self.sharper, self.stalls = SHARPER, 0
            if self.tries > 0 and self.patience <= PATIENCE // 4:
                self.fewest, self.patience, self.smooth, self.tries, k = 1 << 30, PATIENCE, 1.0, self.tries - 1, 1
                self.sharper = self.sharper**0.5 if self.tries < TRIES - 1 and self.gear > 0 else self.sharper
            factor = k == 0 or self.changed > 0 or self.factor_always
            self.one, self.wrong, self.changed = self.patience == 0, 0, 0
            yield factor
            k += 1
            self.patience = max(self.patience - 1, 0)
            if self.wrong < self.fewest or self.smooth > 0 or self.wrong == 0:
                self.fewest, self.patience = self.wrong or 1 << 30, PATIENCE
            if self.smooth <= SHARPEST:
                self.smooth = 0.0
            elif self.change <= 0.5 * self.before or self.stalls == 2:
                self.smooth, self.stalls = self.smooth * self.sharper, 0
            elif self.smooth > 0:
                self.stalls += 1
            if self.smooth > 0:
                k = 1
            if self.changed == 0 and is_converged(k == 1, self.change, self.before, self.tolerance, self.tolerance / FIRST_RATE):
                return
            slow = self.changed == 0 and k > 2 and not self.change <= 0.5 * self.before
            diverges = not self.change < FARTHEST
            if self.second_gear is not None and self.gear == 0 and (slow or diverges or k >= self.limit):
                k, self.gear, self.first, self.restarted = 0, GEAR, True, True
            elif diverges:
                break
        self.failed = True

    def note_friction(self) -> None:
        self.tries = TRIES if self.gear > 0 else 1

    def when_smooth(self) -> Iterator[None]:
        if self.smooth > 0:
            yield

    def unless_smooth(self) -> Iterator[None]:
        if self.smooth <= SHARPEST:
            yield

    def in_second_gear(self) -> Iterator[None]:
        if self.gear > 0:
            yield

    def in_first_gear(self) -> Iterator[None]:
        if self.gear == 0:
            yield

    def when_restarted(self) -> Iterator[None]:
        if self.restarted:
            self.restarted = False
            yield

    def branches(self, factor: bool) -> Iterator[bool]:
        yield factor

    def when_factored(self, factor: bool) -> Iterator[None]:
        if factor:
            yield

    def first_iteration(self) -> Iterator[None]:
        if self.first:
            self.first = False
            self.guesses = not self.restarted
            yield

    def choose_start(self) -> None: ...

    def unless_restarted(self) -> Iterator[None]:
        if self.guesses:
            yield

    @property
    def guess_weights(self) -> list[float]:
        return history.weights(*history.GUESSES[self.choice])

    def clear_missed(self) -> None:
        self.missed = [0.0] * len(history.GUESSES)

    def note_missed(self, k: int, x: float) -> None:
        self.missed[k] += x

    def choose_guess(self) -> None:
        self.choice = history.best(self.missed)

    def note_unknown(self, condition: bool) -> None:
        self.unknown = self.unknown or condition

    def when_unknown(self) -> Iterator[bool]:
        if self.unknown:
            yield True
            self.unknown = False

    def when(self, condition: bool) -> Iterator[None]:
        if condition:
            yield

    def rounds(self, most: int) -> Rounds:
        return Rounds(most)

    def note_changed(self, condition: bool) -> None:
        self.changed += int(condition)

    def when_to_linearize(self) -> Iterator[None]:
        if self.wrong == 0 or not self.one:
            yield
        self.wrong += 1
        self.changed += 1

    @property
    def single(self) -> bool:
        """Whether laws are corrected one at a time."""
        return self.one

    def note_suspect(self, condition: bool) -> None:
        self.suspect = self.suspect or condition

    def when_suspect(self) -> Iterator[None]:
        if self.suspect:
            yield
            self.suspect = False

    def clear_stopped(self) -> None:
        self.stopped = False

    def note_stopped(self, condition: bool, at: int) -> None:
        self.stopped = self.stopped or condition

    def when_stopped(self) -> Iterator[None]:
        if self.stopped:
            yield

    def note_lost(self, energy: float) -> None:
        self.lost += energy

    def note_work(self, energy: float) -> None:
        self.work += energy

    def when_pushed(self) -> Iterator[None]:
        yield

    def clear_change(self) -> None:
        self.before, self.change = self.change, 0.0
        self.passes += 1

    def raise_change(self, x: float) -> None:
        if not x <= self.change and self.change == self.change:  # what is not a number stays
            self.change = x
