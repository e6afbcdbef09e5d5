"""Times that can be trusted on a noisy machine: ratios of short runs that take turns."""

import gc
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Pair:
    """Times of two actions that took turns, s each: (rounds,)."""

    ours: np.ndarray
    peer: np.ndarray

    @property
    def ratio(self) -> float:
        """Ours over the peer's: the median over the rounds, each of which had one and the same machine."""
        return float(np.median(self.ours / self.peer))

    @property
    def difference(self) -> float:
        """Ours less the peer's, s, median over the rounds."""
        return float(np.median(self.ours - self.peer))


def interleave(
    ours: Callable[[], object],
    peer: Callable[[], object],
    *,
    rounds: int,
    steps: tuple[int, int] = (1, 1),
    before: Callable[[], object] = lambda: None,
    warm_up: int = 3,
) -> Pair:
    """Run both actions in every round, each first in every other one.

    Clock speed and neighbours change a time by half within minutes, but hardly between two runs of a few ms.

    Args:
        steps: what one call of each action does; times are divided by it.
        before: done ahead of every round, not timed.
        warm_up: rounds before the first that counts.
    """
    times = np.zeros((warm_up + rounds, 2))
    collecting = gc.isenabled()
    gc.disable()
    try:
        for i, row in enumerate(times):
            before()
            for which in (0, 1) if i % 2 == 0 else (1, 0):
                action = (ours, peer)[which]
                started = time.perf_counter()
                action()
                row[which] = (time.perf_counter() - started) / steps[which]
    finally:
        if collecting:
            gc.enable()
    return Pair(*times[warm_up:].T)
