"""Which values the runs of a study take: grids, lists, random numbers, Sobol points and Latin hypercubes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from sharnir.core.extras import need
from sharnir.errors import SimulationError, as_numbers

SAMPLINGS = ("grid", "list", "random", "sobol", "latin")


@dataclass(frozen=True)
class Range:
    """Values of one parameter: those listed, or all between two ends."""

    word: str
    values: np.ndarray | None = None
    low: float = 0.0
    high: float = 0.0
    log: bool = False

    def at(self, u: np.ndarray) -> np.ndarray:
        """Values for numbers 0 ≤ u < 1; even in the logarithm where `log`."""
        if self.values is not None:
            return np.asarray(self.values[(u * len(self.values)).astype(int)])
        if self.log:
            return np.asarray(self.low * (self.high / self.low) ** u)
        return self.low + (self.high - self.low) * u


def range_of(word: str, given: Any) -> Range:
    """What a user gave for one word: a list of values, (low, high), (low, high, count), or a text such as "0.1:2:20"."""
    log = False
    if isinstance(given, str):
        parts = given.split(":")
        log = len(parts) > 1 and parts[-1] == "log"
        parts = parts[:-1] if log else parts
        try:
            numbers = [float(part) for part in (parts if len(parts) > 1 else given.split(","))]
        except ValueError:
            raise _wrong(word, given) from None
        given = tuple(numbers) if len(parts) > 1 else numbers
    if isinstance(given, tuple) and len(given) in (2, 3):
        low, high = as_numbers(given[0]), as_numbers(given[1])
        if low.shape or high.shape or not np.isfinite([low, high]).all() or not low < high or (log and not low > 0):
            raise _wrong(word, given)
        if len(given) == 2:
            return Range(word, None, float(low), float(high), log)
        count = given[2]
        if isinstance(count, bool) or not isinstance(count, int | float | np.integer) or count != int(count) or count < 2:
            raise _wrong(word, given)
        spaced = np.geomspace if log else np.linspace
        return Range(word, spaced(float(low), float(high), int(count)))
    values = np.atleast_1d(as_numbers(given))
    if values.ndim != 1 or not len(values) or not np.isfinite(values).all():
        raise _wrong(word, given)
    return Range(word, values)


def _wrong(word: str, given: Any) -> SimulationError:
    return SimulationError(
        f"vary: {word!r} takes a list of numbers, (low, high) or (low, high, count) with low < high and a count of at least 2, "
        f"or a text such as '0.1:2:20', '0.1:10:5:log', '1,2,5'; got {given!r}"
    )


def design(vary: Mapping[str, Any], sampling: str, runs: int | None, seed: int) -> dict[str, np.ndarray]:
    """Columns (runs,) of values by word."""
    if not isinstance(vary, Mapping) or not vary:
        raise SimulationError(
            f"vary is a dict from words to values, such as {{'joint/hinge.friction': (0.1, 2, 20)}}, got {vary!r}"
        )
    if sampling not in SAMPLINGS:
        raise SimulationError(f"sampling is one of {', '.join(map(repr, SAMPLINGS))}, got {sampling!r}")
    if runs is not None and (isinstance(runs, bool) or not isinstance(runs, int | np.integer) or runs < 1):
        raise SimulationError(f"runs is a whole number of at least 1, got {runs!r}")
    ranges = [range_of(word, given) for word, given in vary.items()]
    if sampling in ("grid", "list"):
        return _listed(ranges, sampling, runs)
    if runs is None:
        raise SimulationError(f"sampling={sampling!r} needs runs=, the number of runs")
    u = _unit(sampling, len(ranges), int(runs), seed)
    return {r.word: r.at(u[:, k]) for k, r in enumerate(ranges)}


def _listed(ranges: list[Range], sampling: str, runs: int | None) -> dict[str, np.ndarray]:
    """All combinations (the last word changes fastest), or the lists side by side."""
    lists: list[np.ndarray] = []
    for r in ranges:
        if r.values is None:
            raise SimulationError(
                f"vary: {r.word!r} is a range from {r.low:g} to {r.high:g} without a count; a {sampling} needs (low, high, "
                "count), or take sampling='random', 'sobol' or 'latin'"
            )
        lists.append(r.values)
    if sampling == "list":
        lengths = {r.word: len(values) for r, values in zip(ranges, lists, strict=True)}
        if len(set(lengths.values())) > 1:
            raise SimulationError(f"sampling='list': lists are equally long, got {lengths}")
        columns = lists
    else:
        columns = [mesh.ravel() for mesh in np.meshgrid(*lists, indexing="ij")]
    if runs not in (None, len(columns[0])):
        raise SimulationError(f"runs={runs}, but the {sampling} has {len(columns[0])}; leave it out")
    return {r.word: column for r, column in zip(ranges, columns, strict=True)}


def _unit(sampling: str, width: int, runs: int, seed: int) -> np.ndarray:
    """(runs, width) points in the unit cube."""
    if sampling == "random":
        return np.random.default_rng(seed).random((runs, width))
    qmc = need("scipy.stats.qmc", "study")
    if sampling == "latin":
        return np.asarray(qmc.LatinHypercube(width, rng=np.random.default_rng(seed)).random(runs))
    points = qmc.Sobol(width, rng=np.random.default_rng(seed)).random_base2(max(0, (runs - 1).bit_length()))
    return np.asarray(points)[:runs]
