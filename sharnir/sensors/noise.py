"""What a real sensor does to a true value: one description, `Noise`, which the same kernels apply to every sensor.

    reading = clip(quantise(value + bias + drift + σ·normal)),  delayed by some samples

Random numbers are a function of seed, sensor, world, sample and value alone (a counter put through a mixing function), so a world
reads the same whether it runs alone or among many. What is infinite (a ray that meets nothing) or not a number stays so.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp

from sharnir.core.misspellings import Checked
from sharnir.core.types import alone, load_modules, np_real, real
from sharnir.errors import SceneError, SimulationError, as_numbers, is_positive
from sharnir.sensors.kernels import NoiseTable, advance_drift, apply_noise, apply_noise_to_many

Numbers = float | Sequence[float]
FEW_VALUES = 64
"""Values of a sensor up to which each may have its own noise; of more, a quantity has."""
MOST_DELAYED = 50_000_000
"""Numbers that a sensor may hold back, at most."""


@dataclass(frozen=True)
class Noise(Checked):
    """How a sensor errs and how often it is read. Numbers are in the sensor's unit: one for all its values, or one for each
    quantity (an IMU has two, acceleration and rate), or one for each value (six).

    Args:
        sigma: standard deviation of white noise. bias: constant error.
        walk: growth of a random walk of the bias: after t s its standard deviation is walk·√t; from 0 at the start.
        step: to a multiple of which a reading is rounded; 0: not. low, high: to which it is limited.
        rate: Hz, how often it is read; in between the reading is held. None: after every step.
        latency: by how many readings it lags behind. seed: of the noise; sensors with different names differ all the same.
    """

    sigma: Numbers = 0.0
    bias: Numbers = 0.0
    walk: Numbers = 0.0
    step: Numbers = 0.0
    low: Numbers = -math.inf
    high: Numbers = math.inf
    rate: float | None = None
    latency: int = 0
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("sigma", "bias", "walk", "step", "low", "high"):
            given = as_numbers(getattr(self, name))
            least = 0.0 if name in ("sigma", "walk", "step") else -math.inf
            fine = given.ndim <= 1 and given.size > 0 and bool((given >= least).all())
            fine = fine and (name in ("low", "high") or bool(np.isfinite(given).all()))
            if not fine:
                words = "at least 0" if least == 0.0 else "a number" if name in ("low", "high") else "finite"
                raise SceneError(f"Noise: {name} is {words}, or a list of such numbers, got {getattr(self, name)!r}")
            object.__setattr__(self, name, float(given) if given.ndim == 0 else tuple(given.tolist()))
        if self.rate is not None and not is_positive(self.rate):
            raise SceneError(f"Noise: rate is a positive finite number of readings a second, or None, got {self.rate!r}")
        for name in ("latency", "seed"):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**63:
                raise SceneError(f"Noise: {name} is a whole number of at least 0, got {value!r}")

    def of(self, name: str, sizes: Sequence[int], who: str) -> np.ndarray:
        """One of its numbers for every value of a sensor with quantities of these sizes; of a quantity, where values are many."""
        given, whole = np.ravel(as_numbers(getattr(self, name))), sum(sizes)
        few = whole <= FEW_VALUES
        if len(given) == 1:
            return np.full(whole if few else len(sizes), given[0])
        if len(given) == len(sizes):
            return np.repeat(given, sizes) if few else given
        if len(given) == whole and few:
            return given
        lengths = sorted({1, len(sizes), *((whole,) if few else ())})
        raise SceneError(f"{who}: {name} of its noise is {' or '.join(map(str, lengths))} numbers, got {len(given)}")


NO_NOISE = Noise()
FAULTS = ("frozen", "dropout", "bias", "noise")
"""How a sensor fails: it freezes, reads NaN, has a constant bias, or more noise."""


class Reading:
    """The values of a sensor, to which noise is applied in place.

    Args:
        value: array [value, world] on the device into which true values are written before `noise_launcher` runs.
        sizes: of the sensor's quantities, whose sum is the number of values.
        name: of the sensor, which makes its random numbers its own. within: range to which readings are limited in any case.
        interval: array [1] on the device, s between readings; its own if None.
    """

    def __init__(
        self, value: Any, sizes: Sequence[int], noise: Noise, name: str, who: str,
        within: tuple[float, float] = (-math.inf, math.inf), interval: Any = None,
    ) -> None:  # fmt: skip
        self.value, self.noise, self._sizes, self._who = value, noise, tuple(sizes), who
        self.interval = wp.zeros(1, dtype=real, device=value.device) if interval is None else interval
        self.faults: dict[str, Any] = {}
        """What has failed: one of FAULTS, and by how much."""
        self._rows = {n: noise.of(n, sizes, who) for n in ("sigma", "bias", "walk", "step", "low", "high")}
        if noise.latency * int(np.prod(value.shape)) > MOST_DELAYED:
            raise SceneError(f"{who}: a latency of {noise.latency} readings holds back more than {MOST_DELAYED} numbers")
        exact = all(not self._rows[n].any() for n in ("sigma", "bias", "walk", "step")) and noise.latency == 0
        self._exact = exact and not np.isfinite([*self._rows["low"], *self._rows["high"]]).any()
        self._rows["low"] = np.maximum(self._rows["low"], within[0])
        self._rows["high"] = np.minimum(self._rows["high"], within[1])
        self._key = int.from_bytes(hashlib.blake2b(f"{noise.seed}/{name}".encode(), digest_size=8).digest(), "little")
        self._table: NoiseTable | None = None
        self._first = 0
        if not self._exact:
            self.table()

    @property
    def noisy(self) -> bool:
        """Whether its readings differ from the true values now."""
        return self._table is not None and not (self._exact and not self.faults)

    def table(self) -> NoiseTable:
        """Its noise on the device."""
        if self._table is not None:
            return self._table
        device, (values, worlds) = self.value.device, self.value.shape
        made, rows = NoiseTable(), len(self._rows["sigma"])
        made.latency, made.key, made.value = self.noise.latency, wp.uint64(self._key), self.value
        row_of = np.arange(values) if rows == values else np.repeat(np.arange(len(self._sizes)), self._sizes)
        made.row_of = wp.array(row_of.astype(np.int32), dtype=wp.int32, device=device)
        for name, numbers in self._rows.items():
            setattr(made, name, wp.array(numbers.astype(np_real), dtype=real, device=device))
        made.fault_sigma, made.fault_bias = (wp.zeros(rows, dtype=real, device=device) for _ in range(2))
        made.dropped, made.count = wp.zeros(1, dtype=wp.int32, device=device), wp.zeros(worlds, dtype=wp.int32, device=device)
        made.interval, made.first = self.interval, wp.full(1, self._first, dtype=wp.int32, device=device)
        made.drift = wp.zeros((rows, worlds), dtype=real, device=device)
        made.ring = wp.zeros((self.noise.latency * values, worlds), dtype=real, device=device)
        self._table = made
        return made

    def begin_among(self, first: int) -> None:
        """Start again, its worlds being those from number `first` on of many: each gets the random numbers it has among all."""
        self._first = first
        if self._table is not None:
            self._table.first.fill_(first)
            for array in (self._table.drift, self._table.count, self._table.ring):
                array.zero_()

    # ---- failures ----

    def fail(self, kind: str, size: Any = None) -> None:
        """Fail in one of the ways of FAULTS.

        size: of a bias, or the standard deviation of more noise, as in `Noise`; ten times its own noise if None.
        """
        if kind not in FAULTS:
            raise SimulationError(f"{self._who}: fails by one of {', '.join(map(repr, FAULTS))}, got {kind!r}")
        rows = 10.0 * self._rows["sigma"]
        if size is not None:
            word = "bias" if kind == "bias" else "sigma"
            try:
                rows = Noise(**{word: size}).of(word, self._sizes, self._who)
            except SceneError as error:
                raise SimulationError(f"{self._who}: size of its failure {kind!r}: {error}") from None
        if kind in ("bias", "noise") and not rows.any():
            raise SimulationError(f"{self._who}: has no noise of its own by which its {kind} is told; say its size")
        table = self.table()
        self.faults[kind] = rows
        self._set_faults(table)

    def repair(self, kind: str) -> None:
        """Undo a failure."""
        if self.faults.pop(kind, None) is not None and self._table is not None:
            self._set_faults(self._table)

    def _set_faults(self, table: NoiseTable) -> None:
        nothing = np.zeros(len(self._rows["sigma"]))
        table.fault_bias.assign(np.asarray(self.faults.get("bias", nothing), np_real))
        table.fault_sigma.assign(np.asarray(self.faults.get("noise", nothing), np_real))
        table.dropped.fill_(int("dropout" in self.faults))

    @property
    def frozen(self) -> bool:
        """Whether it stays where it is."""
        return "frozen" in self.faults

    # ---- as part of a snapshot ----

    def arrays(self) -> dict[str, Any]:
        """All that changes, by name; [row, world]."""
        if self._table is None:
            return {"value": self.value}
        return {"value": self.value, **{n: getattr(self._table, n) for n in ("drift", "count", "ring")}}


def noise_launcher(readings: Sequence[Reading], worlds: int, device: Any) -> Callable[[], None]:
    """A function that launches the noise of some sensors; may be captured. It owns the arrays that it takes."""
    noisy = sorted((r for r in readings if r.noisy), key=lambda r: int(r.value.shape[0]))
    if not noisy:
        return lambda: None
    load_modules([apply_noise.module], device)
    tables = wp.empty(len(noisy), dtype=NoiseTable, device=device)
    for k, reading in enumerate(noisy):
        wp.copy(tables, alone(reading.table(), NoiseTable, device), dest_offset=k, count=1)
    few = sum(int(r.value.shape[0]) <= FEW_VALUES for r in noisy)

    def launch() -> None:
        wp.launch(advance_drift, dim=(len(noisy), worlds), inputs=[tables], device=device)
        if few:
            wp.launch(apply_noise, dim=(few, worlds), inputs=[tables], device=device)
        for k, reading in enumerate(noisy[few:], few):
            wp.launch(apply_noise_to_many, dim=reading.value.shape, inputs=[tables, k], device=device)

    return launch
