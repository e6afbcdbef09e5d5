"""Recording chosen values of a running simulation: `with sim.record("joint/*.q", "rope/r.tension", every=0.01) as log`.

A word is kind/name.value: kind is joint, body, rope, cable, spring, gear, frame or sensor, name a pattern (`*`, `?`), value what
the view of that name has (q and qd stand for a joint's position and velocity). `sim.energy`, `sim.kinetic`, `sim.potential`,
`sim.elastic` are those of the whole.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Self

import numpy as np

from sharnir.core.extras import need
from sharnir.core.renamed import present_name
from sharnir.errors import SimulationError, is_positive

# The Simulation; it stands a floor above, so that it is not named here.
Owner = Any
SHORT_WORDS = {"q": "position", "qd": "velocity"}
ENERGY_WORDS = {"energy": "total", "kinetic": "kinetic", "potential": "potential", "elastic": "elastic"}
LOGGED_KINDS = ("joint", "body", "rope", "cable", "spring", "gear", "frame", "sensor", "sim")


class Values:
    """Values over time by name, whether they were kept here (`Log`) or read from a file (`sharnir.Recording`)."""

    __slots__ = ()
    _times: list[float]
    _rows: dict[str, Any]

    def __len__(self) -> int:
        return len(self._times)

    @property
    def names(self) -> list[str]:
        """What is recorded."""
        return list(self._rows)

    @property
    def time(self) -> np.ndarray:
        """(n,) s."""
        return np.array(self._times)

    def __getitem__(self, name: str) -> np.ndarray:
        if name not in self._rows:
            raise SimulationError(f"recording: {name!r} is not recorded; there are: {', '.join(self.names)}")
        rows = self._rows[name]
        if len({np.shape(row) for row in rows}) <= 1:
            return np.array(rows)
        out = np.empty(len(rows), object)  # a rope whose segments come and go
        out[:] = rows
        return out

    def columns(self) -> dict[str, np.ndarray]:
        """Every number as a column (n,) of its own, by name: "time", "joint/a.q", "body/b.position[0]", …; NaN where none is."""
        out: dict[str, np.ndarray] = {"time": self.time}
        for name in self.names:
            rows = [np.ravel(np.asarray(row, float)) for row in self._rows[name]]
            shapes = {np.shape(row) for row in self._rows[name]}
            width = max((len(row) for row in rows), default=0)
            table = np.full((len(rows), width), np.nan)
            for i, row in enumerate(rows):
                table[i, : len(row)] = row
            shape = next(iter(shapes)) if len(shapes) == 1 else (width,)
            for k in range(width):
                at = "" if shape == () else str([int(i) for i in np.unravel_index(k, shape)])
                out[name + at.replace(" ", "")] = table[:, k]
        return out

    def to_csv(self, path: str | Path) -> Path:
        """Write all columns as text, one line a time."""
        columns, file = self.columns(), Path(path)
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("w", newline="", encoding="utf-8") as stream:
            writer = csv.writer(stream)
            writer.writerow(columns)
            writer.writerows(zip(*(column.tolist() for column in columns.values()), strict=True))
        return file

    def to_npz(self, path: str | Path) -> Path:
        """Write arrays by name, as `log[name]` gives them, and the time; columns of what changes its shape."""
        file = Path(path)
        file.parent.mkdir(parents=True, exist_ok=True)
        arrays = {name: self[name] for name in self.names}
        ragged = [name for name, array in arrays.items() if array.dtype == object]
        for name in ragged:
            del arrays[name]
            arrays |= {n: c for n, c in self.columns().items() if n.startswith(f"{name}[")}
        np.savez(file, **({"time": self.time} | arrays))  # type: ignore[arg-type]
        return file

    def to_parquet(self, path: str | Path) -> Path:
        """Write all columns as a Parquet table (needs pyarrow)."""
        table = need("pyarrow", "io").table(self.columns())
        file = Path(path)
        file.parent.mkdir(parents=True, exist_ok=True)
        need("pyarrow.parquet", "io").write_table(table, file)
        return file

    def plot(self, path: str | Path | None = None) -> Any:
        """Draw what was recorded over time, a panel for each value; write it to a file, or return the figure."""
        plt = need("matplotlib.pyplot", "view")
        panels: dict[str, dict[str, np.ndarray]] = {}
        for name, column in self.columns().items():
            if name != "time":
                panels.setdefault(name.partition("[")[0].rpartition(".")[2], {})[name] = column
        figure, axes = plt.subplots(len(panels), 1, sharex=True, squeeze=False, figsize=(8, 1 + 2.2 * len(panels)))
        for axis, (value, curves) in zip(axes[:, 0], panels.items(), strict=True):
            for name, column in curves.items():
                axis.plot(self.time, column, label=name if len(curves) <= 12 else None, linewidth=1.2)
            axis.set_ylabel(value)
            axis.grid(alpha=0.3)
            if len(curves) <= 12:
                axis.legend(fontsize="small", frameon=False)
        axes[-1, 0].set_xlabel("time, s")
        figure.tight_layout()
        if path is None:
            return figure
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=120)
        plt.close(figure)
        return Path(path)


class Observer:
    """Looks at a running simulation every few steps, from `with` to its end; it is called before and after steps."""

    __slots__ = ("_every", "_left", "_sim")
    _every: int
    _left: int
    _sim: Owner

    def attach(self) -> None:
        """Look from now on."""
        self._sim._logs.append(self)

    def __enter__(self) -> Self:
        self.attach()
        self.take()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self._sim._logs.remove(self)
        if kind is None:
            self.end()

    def due(self) -> int:
        """Steps until the next look."""
        return self._left

    def before(self, how: Mapping[str, Any]) -> None:
        """Steps are about to be made."""

    def made(self, steps: int) -> None:
        """So many steps were made."""
        self._left -= steps
        if self._left <= 0:
            self._left = self._every
            self.take()

    def take(self) -> None:
        """Look: what a class of its own does."""
        raise NotImplementedError

    def end(self) -> None:
        """What is to be done once nothing more is looked at."""


class Log(Values, Observer):
    """What was recorded: `log.time` (n,), `log["joint/a.q"]` (n, …), `log.names`; with several worlds (n, worlds, …)."""

    __slots__ = ("_rows", "_sources", "_times")

    def __init__(self, sim: Owner, words: tuple[str, ...], every: float | int) -> None:
        self._sim = sim
        if isinstance(every, int) and not isinstance(every, bool) and every >= 1:
            self._every = every
        elif is_positive(every):
            self._every = max(1, round(every / sim.dt))
        else:
            raise SimulationError(f"record: every is a number of steps of at least 1, or a time in s above 0, got {every!r}")
        if not words:
            raise SimulationError("record: say what, such as 'joint/*.q', 'body/hook.position', 'sim.energy'")
        self._sources: dict[str, Callable[[], Any]] = {}
        for word in words:
            self._sources |= sources(sim, word)
        self._left = self._every
        self._times = []
        self._rows = {name: [] for name in self._sources}

    def __repr__(self) -> str:
        return f"<log of {len(self._times)} times: {', '.join(self.names)}>"

    def __getitem__(self, name: str) -> np.ndarray:
        self._check_begun()
        return super().__getitem__(name)

    def columns(self) -> dict[str, np.ndarray]:
        """See `Values.columns`."""
        self._check_begun()
        return super().columns()

    def _check_begun(self) -> None:
        """A log that was never entered has not even the values of its start."""
        if not self._times:
            raise SimulationError("record: nothing was recorded; write `with sim.record(…) as log:` and make the steps inside it")

    def take(self) -> None:
        """Take the values of now."""
        self._times.append(self._sim.time)
        for name, source in self._sources.items():
            value = source()
            self._rows[name].append(value.copy() if isinstance(value, np.ndarray) else value)


def sources(sim: Owner, word: str) -> dict[str, Callable[[], Any]]:
    """The values that a word stands for, by full name."""
    head, _, value = word.rpartition(".") if isinstance(word, str) else ("", "", "")
    kind, _, pattern = head.partition("/")
    if kind not in LOGGED_KINDS or (kind != "sim") == (not pattern):
        raise SimulationError(f"record: {word!r} is not a kind/name.value, such as 'joint/*.q'; kinds: {', '.join(LOGGED_KINDS)}")
    if kind == "sim":
        if value not in ENERGY_WORDS:
            raise SimulationError(f"record: sim has no {value!r} to record; allowed: {', '.join(ENERGY_WORDS)}")
        return {word: lambda: getattr(sim.energy(), ENERGY_WORDS[value])}
    model = sim.model
    known: dict[str, Any] = {
        "joint": model.joint_names, "body": model.body_names, "spring": model.spring_names, "gear": model.gear_names,
        "cable": model.cable_names, "rope": sim._ropes, "frame": model.frames, "sensor": model.sensors,
    }[kind]  # fmt: skip
    names = [name for name in known if fnmatchcase(name, pattern) and not (kind == "body" and name == "world" != pattern)]
    if not names:
        raise SimulationError(f"record: no {kind} matches {pattern!r}; available: {', '.join(map(repr, known)) or 'none'}")
    out: dict[str, Callable[[], Any]] = {}
    for name in names:
        view = getattr(sim, kind)(name)
        field = present_name(view, SHORT_WORDS.get(value, value) if kind == "joint" else value)
        readable = [n for n in dir(type(view)) if not n.startswith("_") and isinstance(getattr(type(view), n), property)]
        if field not in readable:
            raise SimulationError(f"record: {kind} {name!r} has no {value!r}; allowed: {', '.join(readable)}")
        out[f"{kind}/{name}.{value}"] = lambda view=view, field=field: plain(getattr(view, field))  # type: ignore[misc]
        out[f"{kind}/{name}.{value}"]()  # raises now if something cannot be read
    return out


def plain(value: Any) -> Any:
    """A value as numbers: a joint's reaction (force, torque) becomes six of them."""
    if isinstance(value, tuple):
        return np.concatenate([np.asarray(part, float) for part in value], -1)
    if isinstance(value, float | int | bool | np.ndarray | list):
        return value
    raise SimulationError(f"record: {value!r} is not a number")
