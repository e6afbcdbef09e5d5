"""Statistics of a loop that runs for hours: histograms of a fixed size, and summaries of them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

FIRST_BIN, RATIO = 1e-7, 1.02  # s, of the first bin; from one bin to the next
BINS = 1100  # up to 290 s
BINS_PER_LOG = 1 / math.log(RATIO)


class Times:
    """Durations, s: counted in bins that are 2 % apart, so that hours of them take no more memory than seconds."""

    __slots__ = ("_bins", "count", "max", "sum")

    def __init__(self) -> None:
        self._bins = [0] * BINS
        self.count, self.max, self.sum = 0, 0.0, 0.0

    def add(self, value: float) -> None:
        """One more."""
        self._bins[min(int(math.log(value / FIRST_BIN) * BINS_PER_LOG) + 1, BINS - 1) if value > FIRST_BIN else 0] += 1
        self.count += 1
        self.sum += value
        if value > self.max:
            self.max = value

    def percentile(self, share: float) -> float:
        """s, below which that many per cent of them lie, to 2 %."""
        if not self.count:
            return 0.0
        k = int(np.searchsorted(np.cumsum(self._bins), share / 100 * self.count))
        return min(FIRST_BIN * RATIO**k, self.max)

    @property
    def mean(self) -> float:
        """s."""
        return self.sum / self.count if self.count else 0.0

    def __repr__(self) -> str:
        p = [1e6 * self.percentile(share) for share in (50, 99, 99.9)]
        return f"<{self.count}: p50 {p[0]:.0f}, p99 {p[1]:.0f}, p99.9 {p[2]:.0f}, max {1e6 * self.max:.0f} µs>"


@dataclass(slots=True)
class Statistics:
    """How a loop kept its deadlines since it was started, all times in s of the wall clock.

    A tick is *late* by the time from its deadline to its beginning; it is *missed* where it ended after the next one's deadline.
    """

    work: Times  # of a tick: commands, control and steps
    late: Times  # from a deadline to the beginning of its tick
    command: Times  # from `post` to the end of the step in which the command acted
    ticks: int = 0
    steps: int = 0
    misses: int = 0  # ticks that ended after the next deadline
    cut: int = 0  # steps that the budget cut short
    skipped: float = 0.0  # s that were not simulated because there was no time
    drift: float = 0.0  # s, by which simulated time is behind the wall clock: the last tick's lateness and what was skipped
    collected: int = 0  # times that garbage was collected in idle time
    urgent: bool = False  # whether the loop's thread came before all ordinary ones

    @property
    def missed_share(self) -> float:
        """Share of the ticks that were missed, 0 to 1."""
        return self.misses / self.ticks if self.ticks else 0.0

    def table(self) -> str:
        """All of it as text."""
        lines = [f"{'':<22}{'p50':>9}{'p99':>9}{'p99.9':>9}{'max':>9}  µs"]
        for name, times in (
            ("work of a tick", self.work),
            ("lateness of a tick", self.late),
            ("command to motion", self.command),
        ):
            if times.count:
                values = [*(times.percentile(share) for share in (50, 99, 99.9)), times.max]
                lines.append(f"{name:<22}" + "".join(f"{1e6 * value:9.0f}" for value in values))
        lines.append(
            f"{self.ticks} ticks, {self.steps} steps, {self.misses} missed ({100 * self.missed_share:.3f} %), {self.cut} cut by "
            f"the budget; {1e3 * self.skipped:.3f} ms skipped, drift {1e3 * self.drift:.3f} ms"
        )
        return "\n".join(lines)
