"""Trees with rows beside the forest: where `rows` keeps its numbers, as floats or in emitted code."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from sharnir.emit.expressions import value
from sharnir.engine.tree.closures import PARAMETERS, RowTables
from sharnir.engine.tree.forest import GROUND
from sharnir.engine.tree.rows import CLOSURES
from sharnir.engine.tree.storage import SIZES, LinkView, LoopTree, NumberTree, numbers, pack

MOST = 3  # rows of a closure
LINK_FIELDS = {"origin": 3, "row_f": 3, "row_n": 3, "row_e": 1, "path_e": 1}  # of links, where there are rows
LINK_FIELDS |= {f"path_{part}{k}": 3 for k in range(MOST) for part in "ln"}
WORK = {"start_a": 3, "start_b": 3, "start": 3, "start_d": 3, "n_a": 3, "n_b": 3, "line": 3, "soft": 1, "by_a": 1, "by_b": 1}
PER_ROW = ("impulse", "gap", "rest", "could", "soft", "blur", "pivot")
TABLES = (
    "kind", "a", "b", "row_start", "path_start", "path", "offset", "y_start", "block_i", "block_j", "shared_start", "shared_i",
    "shared_j", "first", "matrix_start",
)  # fmt: skip


class ClosureView:
    """A closure while a loop visits it: parameters and working values by name, and those of its rows."""

    __slots__ = ("at", "rows")

    def __init__(self, rows: Any, at: Any) -> None:
        object.__setattr__(self, "rows", rows)
        object.__setattr__(self, "at", at)

    def __getattr__(self, name: str) -> Any:
        return pack(name, self.rows.get_field(self.at, name))

    def __setattr__(self, name: str, x: Any) -> None:
        self.rows.put_field(self.at, name, numbers(x))

    @property
    def a(self) -> Any:
        return self.rows.end(self.at, "a")

    @property
    def b(self) -> Any:
        return self.rows.end(self.at, "b")

    @property
    def h(self) -> Any:
        """The step, s."""
        return self.rows.tree.h

    @property
    def rests(self) -> bool:
        """Whether velocities are projected."""
        return bool(self.rows.tree.rests)

    def kinds(self) -> Iterator[Any]:
        """The closure's kind; in a loop over all closures, every kind that there is, each in a branch of its own."""
        kinds: Iterator[Any] = self.rows.kinds_of(self.at)
        return kinds

    def _row(self, k: int) -> Any:
        return self.rows.plus(self.rows.whole("row_start", self.at), k)

    def row(self, k: int, name: str) -> Any:
        """A number of the closure's k-th row."""
        return self.rows.get(name, self._row(k))

    def put_row(self, k: int, name: str, x: Any) -> None:
        self.rows.put(name, self._row(k), x)

    def impulse(self, k: int) -> Any:
        return self.row(k, "impulse")

    def _places(self, k: int, at: Any, n: int) -> list[Any]:
        start = self.rows.plus(self.rows.whole("y_start", self._row(k)), at)
        return [self.rows.plus(start, i) for i in range(n)]

    def responses(self, k: int, at: Any, n: int) -> tuple[list[Any], list[Any]]:
        """n numbers y and x of the k-th row from `at` on."""
        places = self._places(k, at, n)
        return [self.rows.get("y", p) for p in places], [self.rows.get("x", p) for p in places]

    def put_responses(self, k: int, at: Any, y: list[Any], x: list[Any]) -> None:
        for p, y_p, x_p in zip(self._places(k, at, len(y)), y, x, strict=True):
            self.rows.put("y", p, y_p)
            self.rows.put("x", p, x_p)


class NumberRows:
    """Rows of floats."""

    def __init__(self, tree: Any, tables: RowTables) -> None:
        self.tree, self.tables = tree, tables
        sizes = tables.sizes()
        self.arrays = {name: [0.0] * sizes["rows"] for name in PER_ROW}
        self.arrays |= {"y": [0.0] * sizes["responses"], "x": [0.0] * sizes["responses"], "matrix": [0.0] * sizes["matrix"]}
        self.fields = [c.values() | {name: [0.0] * size for name, size in WORK.items()} for c in tables.closures]

    def size(self, name: str) -> Any:
        return {"blocks": len(self.tables.tables["block_i"]), **self.tables.sizes()}[name]

    def closures(self) -> Iterator[ClosureView]:
        return (ClosureView(self, c) for c in range(len(self.tables.closures)))

    def kinds_of(self, c: int) -> Iterator[Any]:
        yield CLOSURES[self.tables.closures[c].kind]

    def end(self, c: int, side: str) -> Any:
        link = self.whole(side, c)
        return self.tree.ground() if link == GROUND else LinkView(self.tree, link)

    def path(self, c: ClosureView) -> Iterator[tuple[LinkView, int]]:
        """Links from the closure to the ground, and where the numbers of a row for each begin."""
        for e in range(self.whole("path_start", c.at), self.whole("path_start", c.at, 1)):
            yield LinkView(self.tree, self.whole("path", e)), self.whole("offset", e)

    def get_field(self, c: int, name: str) -> list[Any]:
        return self.fields[c][name]

    def put_field(self, c: int, name: str, x: list[Any]) -> None:
        self.fields[c][name] = list(x)

    def get(self, name: str, at: int) -> Any:
        return self.arrays[name][at]

    def put(self, name: str, at: int, x: Any) -> None:
        self.arrays[name][at] = x

    def whole(self, name: str, at: int, after: int = 0) -> int:
        """A whole number of a table."""
        return self.tables.tables[name][at + after]

    def entry(self, r: int, s: int) -> int:
        """Where W[r, s], s ≤ r, is."""
        return self.whole("matrix_start", r) + s - self.whole("first", r)

    plus = staticmethod(lambda a, b: a + b)
    most, least = staticmethod(max), staticmethod(min)

    def range(self, start: int, end: int, back: bool = False) -> Iterator[int]:
        return iter(reversed(range(start, end)) if back else range(start, end))

    def sum(self, start: int, end: int, term: Callable[[int], Any]) -> Any:
        total: Any = 0.0
        for n in range(start, end):
            total = total + term(n)
        return total


class RowNumberTree(NumberTree):
    """Floats, with rows beside the forest."""

    def __init__(self, tables: RowTables, h: float, *args: Any, **keywords: Any) -> None:
        super().__init__(tables.forest, h, *args, own_axes=False, **keywords)
        self.rows = NumberRows(self, tables)
        for fields in self.fields:
            fields |= {name: [0.0] * size for name, size in LINK_FIELDS.items()}
