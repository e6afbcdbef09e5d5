"""Times that can be trusted on a noisy machine: ratios of short runs that take turns."""

import gc
import multiprocessing
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.synchronize import Event

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
    clock: Callable[[], float] = time.thread_time,
) -> Pair:
    """Run both actions in every round, each first in every other one.

    Clock speed and neighbours change a time by half within minutes, but hardly between two runs of a few ms.

    Args:
        steps: what one call of each action does; times are divided by it.
        before: done ahead of every round, not timed.
        warm_up: rounds before the first that counts.
        clock: s; CPU time of the calling thread unless given, which a busy machine changes least.
    """
    times = np.zeros((warm_up + rounds, 2))
    collecting = gc.isenabled()
    gc.disable()
    try:
        for i, row in enumerate(times):
            before()
            for which in (0, 1) if i % 2 == 0 else (1, 0):
                action = (ours, peer)[which]
                started = clock()
                action()
                row[which] = (clock() - started) / steps[which]
    finally:
        if collecting:
            gc.enable()
    return Pair(*times[warm_up:].T)


def wait(duration: float) -> float:
    """Look at the clock until that time is over, s; returns how long it took."""
    started = time.perf_counter()
    while (now := time.perf_counter()) < started + duration:
        pass
    return now - started


def spin(parent: int, started: Event) -> None:
    """Compute until told to stop, or until `parent` is gone."""
    started.set()
    while os.getppid() == parent:
        sum(range(10**6))


@contextmanager
def busy_neighbour() -> Iterator[None]:
    """A second process that computes without a pause."""
    context = multiprocessing.get_context("spawn")
    started = context.Event()
    process = context.Process(target=spin, args=(os.getpid(), started), daemon=True)
    process.start()
    try:
        if not started.wait(60.0):
            raise RuntimeError("the second process did not start within a minute")
        yield
    finally:
        process.terminate()
        process.join()
