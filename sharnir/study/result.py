"""What a study found: a table with a row a run, its plots and its report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from sharnir.core.extras import need
from sharnir.errors import SimulationError

RUN_COLUMNS = ("run", "seed", "failed")


class StudyResult:
    """Rows of a study: `result["body/door.mass"]` is a column (runs,), `len(result)` the number of runs.

    `varied` holds the words that vary, `measured` the names of what was measured, `path` the Parquet file or None. Columns of a
    file are read when they are asked for.
    """

    __slots__ = ("_columns", "_names", "path", "varied")

    def __init__(self, varied: list[str], columns: dict[str, np.ndarray] | None, path: Path | None) -> None:
        self.varied, self.path, self._columns = varied, path, columns
        self._names = list(columns) if columns is not None else list(self._parquet().read_schema(path).names)

    @staticmethod
    def _parquet() -> Any:
        return need("pyarrow.parquet", "study")

    @property
    def names(self) -> list[str]:
        """All columns: run, seed, what varied, what was measured, failed."""
        return list(self._names)

    @property
    def measured(self) -> list[str]:
        """Names of what was measured."""
        return [name for name in self._names if name not in self.varied and name not in RUN_COLUMNS]

    def __len__(self) -> int:
        if self._columns is not None:
            return len(self._columns["run"])
        return int(self._parquet().read_metadata(self.path).num_rows)

    def __getitem__(self, name: str) -> np.ndarray:
        if name not in self._names:
            raise SimulationError(f"run_study: no column is named {name!r}; there are: {', '.join(self._names)}")
        if self._columns is not None:
            return self._columns[name].copy()
        return np.asarray(self._parquet().read_table(self.path, columns=[name])[name].to_numpy())

    def __repr__(self) -> str:
        return f"<study of {len(self)} runs over {', '.join(self.varied)}: {', '.join(self.measured)}>"

    @property
    def failed(self) -> dict[int, str]:
        """Runs that could not be made, and why."""
        reasons = self["failed"]
        return {int(k): str(reasons[k]) for k in np.flatnonzero(reasons != "")}

    def best(self, name: str, largest: bool = False) -> dict[str, float]:
        """The run with the smallest (or largest) value of a measure, as a dict of its numbers."""
        column = self[name].astype(float)
        if not np.isfinite(column).any():
            raise SimulationError(f"run_study: {name!r} has no finite value in any run")
        at = int(np.nanargmax(column) if largest else np.nanargmin(column))
        return {n: float(self[n][at]) for n in self._names if n != "failed"}

    def to_parquet(self, path: str | Path) -> Path:
        """Write the table to a Parquet file."""
        file = Path(path)
        file.parent.mkdir(parents=True, exist_ok=True)
        self._parquet().write_table(need("pyarrow", "study").table({name: self[name] for name in self._names}), file)
        return file

    def plot(self, kind: str | None = None, path: str | Path | None = None, measure: str | None = None) -> Any:
        """Draw curves, a heat map or parallel coordinates; write the picture, or return the figure.

        Args:
            kind: "curves" (each measure over each varied value), "heat" (a measure over the first two), "parallel" (all runs, a
                line each); by the number of varied words if None.
            measure: which one is shown; the first if None.
        """
        from sharnir.study import plots

        return plots.draw(self, kind, path, measure)

    def report(self, path: str | Path, title: str = "Sweep") -> Path:
        """Write one HTML file: what varied, what was measured, plots, runs that failed. It needs nothing beside it."""
        from sharnir.study import plots

        return plots.report(self, Path(path), title)
