"""Where rows are kept: chunk by chunk in a folder beside the Parquet file until the study is whole, or in memory."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np

from sharnir.core.extras import need
from sharnir.errors import SimulationError

KEY = b"sharnir.sweep"  # metadata of the file: which study it is


class Memory:
    """Rows of a study without a file."""

    path: Path | None = None

    def __init__(self) -> None:
        self.chunks: dict[int, dict[str, Any]] = {}

    def missing(self, count: int) -> list[int]:
        """Numbers of the chunks that are not there yet."""
        return [k for k in range(count) if k not in self.chunks]

    def put(self, number: int, rows: dict[str, Any]) -> None:
        """Keep a chunk."""
        self.chunks[number] = rows

    def finish(self) -> dict[str, np.ndarray]:
        """All columns, in the order of the runs."""
        parts = [self.chunks[k] for k in sorted(self.chunks)]
        names = order([list(part) for part in parts])
        lengths = [len(part["run"]) for part in parts]
        return {
            name: np.concatenate([np.asarray(part.get(name, np.full(n, np.nan))) for part, n in zip(parts, lengths, strict=True)])
            for name in names
        }


class Parquet:
    """Rows of a study on disk: `results.parquet.parts/` holds a file a chunk while it runs, then `results.parquet` all of them.

    A chunk is written under another name and then renamed, so that one is there whole or not at all; so is the table. It holds
    the chunks in their order, a row group each, whatever the order they came in: a study that was killed and resumed leaves the
    same bytes.
    """

    def __init__(self, path: Path, identity: dict[str, Any]) -> None:
        self.pa, self.pq = need("pyarrow", "study"), need("pyarrow.parquet", "study")
        self.path, self.folder, self.identity = path, path.with_name(path.name + ".parts"), identity
        self.whole = path.exists()
        if self.whole:
            try:
                known = (self.pq.read_schema(path).metadata or {}).get(KEY)
            except (self.pa.ArrowInvalid, OSError) as error:
                raise SimulationError(
                    f"run_study: {path} is there, and no results file of a study ({error}); it was left alone"
                ) from None
            self._same(path, json.loads(known) if known else None)
            return
        about = self.folder / "sweep.json"
        if about.exists():
            self._same(self.folder, json.loads(about.read_text(encoding="utf-8")))
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        fresh = self.folder / "sweep.json.tmp"
        fresh.write_text(json.dumps(identity), encoding="utf-8")
        fresh.replace(about)

    def _same(self, where: Path, known: dict[str, Any] | None) -> None:
        if known is None:
            raise SimulationError(f"run_study: {where} is there, and holds no study; it was left alone, take another out=")
        other = [name for name in self.identity | known if self.identity.get(name) != known.get(name)]
        if other:
            raise SimulationError(
                f"run_study: {where} holds another study (other: {', '.join(other)}); it was left alone, take another out="
            )

    def missing(self, count: int) -> list[int]:
        """Numbers of the chunks that are not there yet."""
        return [] if self.whole else [k for k in range(count) if not self._chunk(k).exists()]

    def _chunk(self, number: int) -> Path:
        return self.folder / f"chunk-{number:07d}.parquet"

    def put(self, number: int, rows: dict[str, Any]) -> None:
        """Write a chunk."""
        fresh = self.folder / f"chunk-{number:07d}.tmp"
        self.pq.write_table(self.pa.table(rows), fresh)
        fresh.replace(self._chunk(number))

    def finish(self) -> None:
        """Make one table of the chunks, reading one at a time, and remove them."""
        if self.whole:
            return
        files = sorted(self.folder.glob("chunk-*.parquet"))
        schemas = [self.pq.read_schema(file) for file in files]
        types = {field.name: field.type for schema in schemas for field in schema}
        about = {KEY: json.dumps(self.identity).encode()}
        schema = self.pa.schema([(name, types[name]) for name in order([s.names for s in schemas])], metadata=about)
        fresh = self.path.with_name(self.path.name + ".tmp")
        with self.pq.ParquetWriter(fresh, schema) as writer:
            for file in files:
                table = self.pq.read_table(file)
                none = self.pa.array(np.full(len(table), np.nan))
                columns = [table[name] if name in table.column_names else none for name in schema.names]
                writer.write_table(self.pa.table(columns, schema=schema), row_group_size=max(1, len(table)))
        fresh.replace(self.path)
        shutil.rmtree(self.folder)
        self.whole = True


def order(lists: list[list[str]]) -> list[str]:
    """All names in the order in which they first appear; "failed", which every chunk has, last."""
    names = dict.fromkeys(name for names in lists for name in names)
    names.pop("failed", None)
    return [*names, "failed"]
