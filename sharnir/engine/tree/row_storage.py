"""Trees with rows beside the forest: where `rows` keeps its numbers, as floats or in emitted code."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

from sharnir.emit.algebra import Vector
from sharnir.emit.expressions import Expression, maximum, node, select, value
from sharnir.engine.tree.cable_rows import CABLES
from sharnir.engine.tree.cast_rows import CASTS
from sharnir.engine.tree.closures import OF_CABLES, OF_CASTS, PARAMETERS, RUN, RowTables
from sharnir.engine.tree.forest import GROUND
from sharnir.engine.tree.number_tree import NumberTree
from sharnir.engine.tree.rows import CLOSURES, assemble, factor_rows, substitute
from sharnir.engine.tree.storage import CLOSED, TOGETHER, LinkView, LoopTree, numbers, pack
from sharnir.model.cables import LONGEST_SWITCH

MOST = 3  # rows of a closure
CLOSES = 0.1  # of the gap of a weld, in a step
# in double and in single precision: a pivot that is a smaller part of the row's own response is that of a dependent row; a
# response that is a smaller part of what the joints could do is rounding; a gap, as an angle, that no step may open
DEPENDENT, HELD, WIDE = (1e-10, 1e-4), (1e-13, 1e-6), (1e-9, 1e-4)
# of what a row could respond without joints, and of a step: what responds less is dependent in parts that are shorter
LAST_HELD, LAST_PARTS = 1e-6, 5e-3
FALLS = 0.25  # of the square of the largest gap: what a round that closes the pose leaves of it
# of links, where there are rows
LINK_FIELDS = {"origin": 3, "row_f": 3, "row_n": 3, "row_e": 1, "path_e": 1}
LINK_FIELDS |= dict.fromkeys(("row_bound", "row_friction", "row_limit"), 1)  # of the laws of axes that are rows (`contact_rows`)
# of the second gear: what impulses add to a link's derivative; what its base feels of its joint's motion, by columns
LINK_FIELDS |= {"row_A": 1, "row_B": 9, "row_C": 9, "row_D": 9, "column_l": 3, "column_a": 3, "columns_l": 9, "columns_a": 9}
PATH = ("l", "n", "rate_l", "rate_n")  # force and moment of J, then of J₁
LINK_FIELDS |= {f"path_{part}{k}": 3 for k in range(MOST) for part in PATH}
# of a joint's response, as `joint_speeds` has it
LINK_FIELDS |= {"split_l": 3, "split_a": 3}
# of islands, at the link that numbers them (`islands`)
LINK_FIELDS |= dict.fromkeys(("island_point", "sum_moment", "sum_linear", "sum_angular", "old_angular"), 3)
LINK_FIELDS |= {"sum_inertia": 6} | dict.fromkeys(("island", "sum_mass", "sum_energy", "old_energy", "raised"), 1)
VECTORS = (
    "start_a", "start_b", "start", "arm_a", "arm_b", "line", "line_1", "force", "blow", "slip", "turns_a", "turns_b", "roll_a",
    "roll_b",
)  # fmt: skip
NUMBERS = ("soft", "by_a", "by_b", "hits", "start_gap", "end_gap", "slow", "bend")
WORK = dict.fromkeys(VECTORS, 3) | dict.fromkeys(NUMBERS, 1)  # of closures
# numbers of spans and runs of cables, and those of other closures in whose place they are
OF_SPANS, OF_RUNS = {"weight": "soft", "off": "slow"}, ("taut", "struck", "lead", "led", "many", "came", "rate", "pull")
PLACES = {name: (other, 0) for name, other in (OF_CABLES | OF_SPANS).items()}
PLACES |= {name: (VECTORS[k // 3], k % 3) for k, name in enumerate((*OF_RUNS, "free", "mobility", "given_torque", "given_gain"))}
PLACES |= {name: (("point_a", "point_b", "axis_a", "axis_b")[k // 3], k % 3) for k, name in enumerate(OF_CASTS)}
FIELDS = PARAMETERS | WORK
FIELDS |= {name: FIELDS[other] if name in OF_CABLES else 1 for name, (other, _) in PLACES.items()}
PER_ROW = (
    "impulse",
    "gap",
    "rest",
    "could",
    "soft",
    "turn",
    "pivot",
    "taken",
    "size_l",
    "size_n",
    "last",
    "before",
    "low",
    "high",
    "near",
)
KEPT = ("last", "before")  # of these, between steps
RESPONSES = ("y", "x", "rate")
# of rows whose impulses are bounded: elements and their closures; which joint speeds a closure changes; the matrix of these; and
# what is needed to find a good order of them
LAW_TABLES = ("element", "of", "where_start", "where", "sky_first", "sky_start", "width", "place", "root", "next", "near_start",
              "near", "queue", "island", "first_element", "first_speed", "way",
              "own_first", "own_start")  # fmt: skip
TABLES = (
    "kind", "a", "b", "row_start", "path_start", "path", "offset", "y_start", "block_i", "block_j", "shared_start", "shared_i",
    "shared_j", "first", "matrix_start", "speeds", *LAW_TABLES,
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

    def is_ground(self, side: str) -> Any:
        """Whether a or b is the ground."""
        return self.rows.is_ground(self.at, side)

    @property
    def h(self) -> Any:
        """The step, s."""
        return self.rows.tree.h

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

    def row_range(self) -> Iterator[Any]:
        """Indices of the closure's rows."""
        rows: Iterator[Any] = self.rows.range(self.rows.whole("row_start", self.at), self.rows.whole("row_start", self.at, 1))
        return rows

    def number(self, r: Any) -> Any:
        """Number of row r in the closure."""
        return self.rows.minus(r, self.rows.whole("row_start", self.at))


class RowMath:
    """What rows of floats and of emitted code share."""

    tree: Any
    plus: Any
    whole: Any
    get: Any
    put: Any

    def factor(self) -> None:
        """Factors of the response of all rows."""
        assemble(self.tree)
        self.soften()
        factor_rows(self.tree)

    def soften(self) -> None:
        """Add compliances that couple rows to the response."""

    def solve(self) -> None:
        """What changes the impulses of all rows, in `rest`, where their gaps are."""
        substitute(self.tree)

    # ---- rows whose impulses are bounded, where there are such (`contact_rows`)

    def begin_carrying(self) -> None:
        """Before unit impulses are carried along paths."""

    def see_speeds(self, joint: Any, link: Any, r: Any, at: Any, act: Any, x: list[Any]) -> None:
        """What is kept beside y and x of a row on a joint."""

    def carry_bounded(self, c: Any) -> None:
        """Unit impulses of other rows."""

    def where_dependent(self) -> Iterator[None]:
        """Code for rows of loops, which have exact responses, and may depend on others."""
        yield

    # ---- cables and raycast wheels (`cable_rows`, `cast_rows`)

    more = True  # whether there may be such

    def beside(self, c: Any, k: int) -> ClosureView:
        """The closure k after another one."""
        return ClosureView(self, self.plus(c.at, k))

    def span_of(self, c: Any, k: int) -> ClosureView:
        """The k-th span of a run, counted from 0."""
        return self._back(c, "spans_back", k)

    def lead_of(self, c: Any) -> ClosureView:
        """The run whose row a run has."""
        return self._back(c, "lead", 0)

    _back: Callable[..., ClosureView]

    def keep_laws(self) -> None:
        """What they did in the step."""

    closures: Any

    def closures_by_path(self) -> Iterator[Any]:
        """Closures whose rows meet the joints' equations link by link."""
        found: Iterator[Any] = self.closures()
        return found

    def answer_along_speeds(self) -> None:
        """Reduce `rest` of the other rows by what the joints' own equations do to them."""

    def correct_along_speeds(self) -> None:
        """Correct the joints' equations by the impulses of the other rows."""

    def clear_taken(self) -> None:
        """Begin to sum up what an impact takes."""

    def pay_lifting(self) -> None:
        """Reduce what is thrown back."""

    def note_impacts(self) -> None:
        """Impulses with which velocities were projected."""

    @property
    def share(self) -> Any:
        """How much of the gap of a weld a step closes: its rounding is not to shake velocities."""
        return select(self.tree.closing, 1.0, CLOSES)

    def responses(self, r: Any, at: Any, name: str, n: int) -> list[Any]:
        """n numbers of row r from `at` on: y, x, or rate (y₁)."""
        return [self.get(name, p) for p in self._places(r, at, n)]

    def put_responses(self, r: Any, at: Any, **numbers_of: list[Any]) -> None:
        for name, values in numbers_of.items():
            for place, x in zip(self._places(r, at, len(values)), values, strict=True):
                self.put(name, place, x)

    def _places(self, r: Any, at: Any, n: int) -> list[Any]:
        start = self.plus(self.whole("y_start", r), at)
        return [self.plus(start, i) for i in range(n)]


class NumberRows(RowMath):
    """Rows of floats."""

    dependent, held = DEPENDENT[0], HELD[0]

    def __init__(self, tree: Any, tables: RowTables) -> None:
        self.tree, self.tables = tree, tables
        sizes = tables.sizes()
        self.arrays = {name: [0.0] * sizes["rows"] for name in PER_ROW}
        self.arrays |= {name: [0.0] * sizes["responses"] for name in RESPONSES}
        self.arrays |= {"lower": [0.0] * sizes["matrix"], "upper": [0.0] * sizes["matrix"]}
        self.fields = [c.values() | {name: [0.0] * size for name, size in WORK.items()} for c in tables.closures]
        for of in self.fields:
            of |= {name: of.get(other, [0.0]) if name in OF_CABLES else [0.0] for name, (other, _) in PLACES.items()}
        self.switches = self.judged = 0

    @property
    def resting(self) -> bool:
        """Whether velocities are projected, or the pose is closed."""
        return bool(self.tree.rests)

    @property
    def closing(self) -> bool:
        """Whether the pose is closed."""
        return bool(self.tree.closes)

    def as_function(self, name: str) -> Iterator[None]:
        """Once; emitted code has a function of what is done in it, which is called."""
        yield

    def clear_open(self) -> None:
        self.open = 0.0

    def raise_open(self, end: float, start: float) -> None:
        """The largest square of a gap, as an angle, in `open`; that of the start of the step is for emitted code."""
        self.open = max(self.open, end)

    def begin_closing(self) -> None:
        self.before = math.inf

    def is_closed(self) -> bool:
        """Whether `open` is that of no gap, or does not fall any more."""
        done = self.open <= CLOSED["double"] ** 2 or self.open > FALLS * self.before
        self.before = self.open
        return done

    def keep(self, x: float) -> float:
        """A number for the loops that follow."""
        return x

    def factor_again(self, condition: bool) -> None:
        """The next iteration factors anew."""
        self.tree.changed += int(condition)

    def size(self, name: str) -> Any:
        sizes = self.tables.sizes()
        return {"blocks": len(self.tables.tables["block_i"]), "equal": sizes["rows"], **sizes}[name]

    def closures(self) -> Iterator[ClosureView]:
        return (ClosureView(self, c) for c in range(len(self.tables.closures)))

    def kinds_of(self, c: int) -> Iterator[Any]:
        yield (CLOSURES | CABLES | CASTS)[self.tables.closures[c].kind]

    def spans(self, c: ClosureView, count: str) -> Iterator[tuple[ClosureView, ClosureView]]:
        """So many spans from a run's first one on, and the run."""
        first = c.at - int(c.spans_back)
        return ((ClosureView(self, k), c) for k in range(first, first + int(getattr(c, count))))

    def runs(self, kind: int = RUN) -> Iterator[ClosureView]:
        return (c for c in self.closures() if self.whole("kind", c.at) == kind)

    def _back(self, c: ClosureView, name: str, k: int) -> ClosureView:
        return ClosureView(self, c.at - int(getattr(c, name)) + k)

    def clear_switches(self) -> None:
        self.switches = 0

    @property
    def may_switch(self) -> bool:
        return bool(self.switches < LONGEST_SWITCH)

    def switching(self, condition: bool) -> Iterator[None]:
        """Once if the condition holds: then factors are to be made anew."""
        if condition:
            self.switches += 1
            self.tree.changed += 1
            yield

    def first_judgement(self) -> Iterator[None]:
        """Once while rows may switch, then `second_judgement` once if none did."""
        self.judged = self.switches if self.may_switch else -1
        if self.may_switch:
            yield

    def second_judgement(self) -> Iterator[None]:
        if self.switches == self.judged:
            yield

    def note_struck(self, c: ClosureView, condition: bool) -> None:
        """A cable became taut in the step."""
        self.tree.stopped = self.tree.stopped or condition

    def end(self, c: int, side: str) -> Any:
        link = self.whole(side, c)
        return self.tree.ground() if link == GROUND else LinkView(self.tree, link)

    def is_ground(self, c: int, side: str) -> bool:
        return self.whole(side, c) == GROUND

    def path(self, c: ClosureView) -> Iterator[tuple[LinkView, int]]:
        """Links from the closure to the ground, and where the numbers of a row for each begin."""
        for e in range(self.whole("path_start", c.at), self.whole("path_start", c.at, 1)):
            yield LinkView(self.tree, self.whole("path", e)), self.whole("offset", e)

    def take(self, link: Any, k: int) -> tuple[Any, Any]:
        """Unit impulses of the k-th row on a link, along J and J₁, which are zero again afterwards."""
        l, n, rate_l, rate_n = (link.take(f"path_{part}{k}") for part in PATH)
        return (l, n), (rate_l, rate_n)

    def add(self, link: Any, k: int, act: Any, rate: Any, bounded: bool = False) -> None:
        """Add to the unit impulses of the k-th row on a link."""
        link.add(**{f"path_{part}{k}": x for part, x in zip(PATH, (*act, *rate), strict=True)})

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

    plus = staticmethod(operator.add)
    minus = staticmethod(operator.sub)
    most, least = staticmethod(max), staticmethod(min)

    def range(self, start: int, end: int, back: bool = False) -> Iterator[int]:
        return iter(reversed(range(start, end)) if back else range(start, end))


class RowNumberTree(NumberTree):
    """Floats, with rows beside the forest."""

    keeps_columns = keeps_origins = True

    def __init__(self, tables: RowTables, h: float, gravity: Any = (0.0, 0.0, -9.81), **keywords: Any) -> None:
        super().__init__(tables.forest, h, gravity, False, **keywords)
        self.rows = NumberRows(self, tables)
        for fields in self.fields:
            fields |= {name: [0.0] * size for name, size in LINK_FIELDS.items()}

    def acts(self, i: int) -> bool:
        return super().acts(i) or i in self.rows.tables.geared


TABLE = f"""#ifdef __CUDA_ARCH__
struct Table {{ int* data; CUDA_CALLABLE int& operator[](int k) const {{
int* const p = data + {TOGETHER}*k; __builtin_assume(__isGlobal(p)); return *p; }}
CUDA_CALLABLE Table operator+(int k) const {{ return {{data + {TOGETHER}*k}}; }} }};
#else
typedef int* Table;
#endif"""
"""C++: an array of whole numbers of a world; on a GPU those of TOGETHER worlds stand beside each other."""


def table_of_world(owner: str) -> str:
    """C++: where the tables of a world begin; `owner` has them."""
    together = f"w/{TOGETHER}*({TOGETHER}*{owner}row_table_size) + w%{TOGETHER}*{owner}row_table_world"
    return f"{{{owner}row_tables.data + {together}}}"


class LoopRows(RowMath):
    """Rows of any forest in emitted code: indices are texts, tables are arrays of the function (`head`)."""

    def __init__(self, tree: Any) -> None:
        self.tree, self.program = tree, tree.program
        self.functions: dict[str, str] = {}  # names in the program
        self.start: dict[str, int] = {}
        at = 0
        for name, size in WORK.items():
            self.start[name], at = at, at + size
        self.record = at
        self.given: dict[str, int] = {}
        at = 0
        for name, size in PARAMETERS.items():
            self.given[name], at = at, at + size
        self.record_given = at
        self.more = tree.more
        if self.more:
            self.kinds = self.kinds | CABLES | CASTS

    def head(self, owner: str) -> list[str]:
        """Declarations: the table begins with sizes and with where its parts begin. `owner` has row_tables, row_numbers …"""
        lines = ["real " + ", ".join(f"open_{name} = real(0.0)" for name in ("gap", "start", "before")) + ";"]
        bounds = {"dependent": DEPENDENT, "held": HELD, "wide": WIDE}
        parts = [f"{name} = sizeof(real) == 8 ? real({x!r}) : real({y!r})" for name, (x, y) in bounds.items()]
        lines.append("const real " + ", ".join(parts) + "; (void)wide;")
        lines.append(f"{self.table_type}\nconst Table t_all = {self.tables_of_world(owner)};")
        lines += [f"const int n_{name} = t_all[{k}]; (void)n_{name};" for k, name in enumerate(COUNTS)]
        lines += [f"const Table t_{name} = t_all + t_all[{len(COUNTS) + k}];" for k, name in enumerate(TABLES)]
        lines += [f"const int at_links = memory_size, at_closures = at_links + {self.tree.row_size}*(links + 1);"]
        lines += [f"const int at_rows = at_closures + {self.record}*n_closures;"]
        lines += [f"const int at_y = at_rows + {len(PER_ROW)}*n_rows, at_matrix = at_y + {len(self.kept)}*t_y_start[n_equal];"]
        lines += self.last_head(owner)
        lines.append(f"const int given_stride = {owner}row_stride, given_world = w*{owner}row_world;")
        lines.append(f"real* const given_numbers = {owner}row_numbers.data; (void)given_numbers;")
        given = f"given_numbers[({self.record_given}*(c) + (k))*given_stride + given_world]"
        cables = ["int switches = 0, judged = 0;"] if self.more else []
        return [*lines, *cables, f"#define given_of(c, k) {given}", "#define given(k) given_of(c, k)"]

    resting, closing = value("resting", "bool"), value("closing", "bool")
    dependent = value("dependent")

    @property
    def held(self) -> Any:
        """In the finest parts of a step more rows of loops count as dependent: near a singular pose some are, but for rounding,
        and passes part where they get impulses; what they leave open is then closed.
        """
        return value(f"(h < real({LAST_PARTS})*dt ? real({LAST_HELD}) : held)" if self.tree.begins else "held")

    kept: tuple[str, ...] = RESPONSES
    of_speeds: tuple[str, ...] = ()  # numbers of rows on joints, which stand one after the other
    kinds: dict[int, Any] = CLOSURES

    def solver(self) -> list[str]:
        """C++ before the program, of what rows whose impulses are bounded need."""
        return []

    def undefined(self) -> list[str]:
        """C++ after the program."""
        return []

    table_type = "typedef const int* Table;"
    """C++: what an array of whole numbers is."""

    def tables_of_world(self, owner: str) -> str:
        """C++: where the tables of a world begin."""
        return f"{owner}row_tables.data"

    def last_head(self, owner: str) -> list[str]:
        """The last declarations."""
        return ["const int memory_with_rows = at_matrix + 2*n_matrix; (void)memory_with_rows;"]

    def as_function(self, name: str) -> Iterator[None]:
        rests, closes = self.tree.rests, self.tree.closes
        factor = "true" if rests or self.tree.factor_always else "factor"
        arguments = (factor, str(rests).lower(), str(closes).lower())
        if name in self.functions:
            self.program.call(self.functions[name], arguments)
            return
        with self.program.function(("factor", "resting", "closing"), arguments):
            yield
        self.functions[name] = self.program.called

    def clear_open(self) -> None:
        self.program.write("open_gap", 0.0)
        self.program.write("open_start", 0.0)

    def raise_open(self, end: Any, start: Any) -> None:
        self.program.write("open_gap", maximum(self.program.read("open_gap"), end))
        self.program.write("open_start", maximum(self.program.read("open_start"), start))

    def are_apart(self) -> str:
        """C++: whether the step opened rows: they were taken for dependent ones, since they hardly differ at its length."""
        return "(open_gap > wide*wide && open_gap > real(4.0)*open_start)"

    @property
    def open(self) -> Any:
        return self.program.read("open_gap")

    def begin_closing(self) -> None:
        self.program.write("open_before", 1e30)

    def is_closed(self) -> Any:
        before = self.program.read("open_before")
        self.program.write("open_before", self.open)
        return (self.open <= value("(closed_gap*closed_gap)")) | (self.open > before * FALLS)

    def keep(self, x: Any) -> Any:
        name = self.program.name("kept")
        self.program.say(f"real {name} = real(0.0);")
        self.program.write(name, x)
        return value(name)

    def factor_again(self, condition: Any) -> None:
        with self.program.block("if ({0}) {{", condition):
            self.program.say("++changed;")

    def clear(self, i: str) -> str:
        """C++ that clears what link i has for rows."""
        return f"for (int k = 0; k < {self.tree.row_size}; ++k) number({self.tree.row_place(i)} + k) = real(0.0);"

    def _copies(self, text: str, rows: str = "n_equal") -> str:
        """C++ for what is kept of every row's impulse, `own`, and the row of the state where it is stored, `at`."""
        out = []
        for k, name in enumerate(KEPT):
            own, at = self._place(name, "r"), f"stored(x.closure_first + n_equal_closures + {len(KEPT)}*r + {k})"
            out.append(text.format(own=own, at=at))
        return f"for (int r = 0; r < {rows}; ++r) {{ " + " ".join(out) + " }"

    def load(self) -> str:
        return self._copies("{own} = {at};")

    def store(self) -> str:
        return self._copies("{at} = {own};")

    def rescale(self) -> str:
        """For a step that is longer by `factor`."""
        return self._copies("{own} *= factor*factor;", "n_rows")

    def clear_responses(self, condition: str) -> str:
        """C++ that clears what all rows have: links may hang otherwise than they did."""
        return f"if ({condition}) for (int k = at_closures; k < at_matrix; ++k) number(k) = real(0.0);"

    def size(self, name: str) -> str:
        return f"n_{name}"

    def closures(self) -> Iterator[ClosureView]:
        with self.tree.sweep(), self.program.block("for (int c = 0; c < n_closures; ++c) {"):
            self.say_ends()
            yield ClosureView(self, "c")

    def say_ends(self) -> None:
        """Where the links of a closure begin."""
        p, row = self.program, self.tree.row
        p.say(f"const int end_a = {row}*(t_a[c] + 1), end_b = {row}*(t_b[c] + 1);")
        for side in "ab":
            p.say(f"const int rows_end_{side} = {self.tree.row_place(f't_{side}[c]')};")

    def kinds_of(self, c: str) -> Iterator[Any]:
        for kind, closure in self.kinds.items():
            with self.program.block(f"{'else ' if kind else ''}if (t_kind[c] == {kind}) {{"):
                yield closure

    def end(self, c: str, side: str) -> LinkView:
        return LinkView(self.tree, f"end_{side}")

    def is_ground(self, c: str, side: str) -> Any:
        return value(f"(t_{side}[c] < 0)", "bool")

    def path(self, c: ClosureView) -> Iterator[tuple[LinkView, str]]:
        p = self.program
        with p.block("for (int k = t_path_start[c]; k < t_path_start[c + 1]; ++k) {"):
            p.say("const int i = t_path[k], offset = t_offset[k]; if (kinds[i] < 0) continue;")
            self.tree.say_link()
            yield LinkView(self.tree, "own"), "offset"

    def _sums(self, link: LinkView, k: Any) -> list[str]:
        first = self.tree.row_start["path_l0"]
        return [f"number(rows_{link.at} + {first} + {3 * len(PATH)}*({k}) + {n})" for n in range(3 * len(PATH))]

    def take(self, link: LinkView, k: Any) -> tuple[Any, Any]:
        places = self._sums(link, k)
        x = [self.program.read(p) for p in places]
        for p in places:
            self.program.write(p, 0.0)
        return (Vector(*x[:3]), Vector(*x[3:6])), (Vector(*x[6:9]), Vector(*x[9:]))

    def add(self, link: LinkView, k: Any, act: Any, rate: Any, bounded: bool = False) -> None:
        for place, x in zip(self._sums(link, k), (y for vector in (*act, *rate) for y in vector), strict=True):
            if isinstance(x, Expression) or x != 0.0:
                self.program.write(place, self.program.read(place) + x)

    def field_place(self, c: str, name: str, k: int) -> str:
        """The k-th number of a field of a closure."""
        name, k = PLACES[name][0] if name in PLACES else name, k + (PLACES[name][1] if name in PLACES else 0)
        if name in PARAMETERS:
            return f"given({self.given[name] + k})" if c == "c" else f"given_of({c}, {self.given[name] + k})"
        return f"number(at_closures + {self.record}*{c} + {self.start[name] + k})"

    def get_field(self, c: str, name: str) -> list[Any]:
        return [self.program.read(self.field_place(c, name, k)) for k in range(FIELDS[name])]

    def put_field(self, c: str, name: str, x: list[Any]) -> None:
        for k, number in enumerate(x):
            self.program.write(self.field_place(c, name, k), number)

    def at(self, number: Any) -> ClosureView:
        """The closure of a number that a closure has."""
        name = self.program.name("at")
        self.program.say(f"int {name};")
        self.program.write(name, number)
        return ClosureView(self, name)

    def spans(self, c: ClosureView, count: str) -> Iterator[tuple[ClosureView, ClosureView]]:
        p, at = self.program, c.at
        first, many = (f"(int){self.field_place(at, name, 0)}" for name in ("spans_back", count))
        with p.block(f"for (int run = {at}, span = run - {first}, end = span + {many}; span < end; ++span) {{"):
            p.say("const int c = span;")
            self.say_ends()
            yield ClosureView(self, "c"), ClosureView(self, "run")

    def runs(self, kind: int = RUN) -> Iterator[ClosureView]:
        head = f"for (int c = 0; c < n_equal_closures; ++c) if (t_kind[c] == {kind}) {{"
        with self.tree.sweep(), self.program.block(head):
            yield ClosureView(self, "c")

    def _back(self, c: ClosureView, name: str, k: int) -> ClosureView:
        at = self.program.name("at")
        self.program.say(f"const int {at} = {c.at} - (int){self.field_place(c.at, name, 0)} + {k};")
        return ClosureView(self, at)

    def clear_switches(self) -> None:
        self.program.say("switches = 0;")

    may_switch = value(f"(switches < {LONGEST_SWITCH})", "bool")

    def switching(self, condition: Any) -> Iterator[None]:
        with self.program.block("if ({0}) {{", condition):
            self.program.say("++switches; ++changed;")
            yield

    def first_judgement(self) -> Iterator[None]:
        self.program.say("judged = -1;")
        with self.program.block(f"if (switches < {LONGEST_SWITCH}) {{"):
            self.program.say("judged = switches;")
            yield

    def second_judgement(self) -> Iterator[None]:
        with self.program.block("if (switches == judged) {"):
            yield

    def note_struck(self, c: ClosureView, condition: Any) -> None:
        link = value("(t_path[t_path_start[c]] + 1)", "int")
        self.program.write("stopped", node("?", condition, link, self.program.read("stopped", "int"), kind="int"))

    def _place(self, name: str, at: str) -> str:
        if name in ("lower", "upper"):
            return f"number(at_matrix + 2*({at}){' + 1' if name == 'upper' else ''})"
        if name in self.of_speeds:
            return f"number(at_along + {self.of_speeds.index(name)}*n_responses + ({at}))"
        if name in self.kept:
            return f"number(at_y + {len(self.kept)}*({at}) + {self.kept.index(name)})"
        return f"number(at_rows + {len(PER_ROW)}*({at}) + {PER_ROW.index(name)})"

    def get(self, name: str, at: str) -> Any:
        return self.program.read(self._place(name, at))

    def put(self, name: str, at: str, x: Any) -> None:
        self.program.write(self._place(name, at), x)

    def whole(self, name: str, at: str, after: int = 0) -> str:
        return f"t_{name}[{at} + {after}]" if after else f"t_{name}[{at}]"

    def entry(self, r: str, s: str) -> str:
        return f"(t_matrix_start[{r}] + {s} - t_first[{r}])"

    def plus(self, a: Any, b: Any) -> str:
        return f"({a} + {b})" if b != 0 else str(a)

    def minus(self, a: Any, b: Any) -> str:
        return f"({a} - {b})"

    def most(self, a: str, b: str) -> str:
        return f"wp::max({a}, {b})"

    def least(self, a: str, b: str) -> str:
        return f"wp::min({a}, {b})"

    def range(self, start: Any, end: Any, back: bool = False) -> Iterator[str]:
        n = self.program.name("n")
        forth = f"for (int {n} = {start}; {n} < {end}; ++{n}) {{"
        with self.program.block(f"for (int {n} = {end} - 1; {n} >= {start}; --{n}) {{" if back else forth):
            yield n


class RowLoopTree(LoopTree):
    """Code that loops over the links of any forest and over any rows beside it; fields of links for rows are kept apart."""

    def __init__(self, *args: Any, more: bool = False, **keywords: Any) -> None:
        super().__init__(*args, **keywords)
        self.row_start, self.row_size, self.more = {}, 0, more
        for name, size in LINK_FIELDS.items():
            self.row_start[name], self.row_size = self.row_size, self.row_size + size
        self.rows: LoopRows = self.make_rows(self)

    make_rows: Any = LoopRows
    keeps_columns = keeps_origins = True

    def sweep(self) -> AbstractContextManager[None]:
        """Loops are functions: there are so many that one long function would be compiled twice as long."""
        return self.program.function(("resting", "closing"), (str(self.rests).lower(), str(self.closes).lower()))

    @property
    def resting(self) -> Any:
        return self.rows.resting

    @property
    def closing(self) -> Any:
        return self.rows.closing

    def row_place(self, i: str) -> str:
        """Where the fields for rows of link i begin."""
        return f"at_links + {self.row_size}*({i} + 1)"

    def say_link(self) -> None:
        super().say_link()
        self.program.say(f"const Place rows_own = {self.row_place('i')}, rows_base = {self.row_place('bases[i]')};")

    def place(self, at: str, name: str, k: int) -> str:
        if name in LINK_FIELDS:
            return f"number(rows_{at} + {self.row_start[name] + k})"
        return super().place(at, name, k)

    def get(self, at: str, name: str) -> list[Any]:
        if name in LINK_FIELDS:
            return [self.program.read(self.place(at, name, k)) for k in range(LINK_FIELDS[name])]
        return super().get(at, name)


COUNTS = ("closures", "rows", "blocks", "responses", "matrix", "equal", "equal_closures", "islands", "speeds")
"""Of all; `equal` and `equal_closures` are those whose impulses are not bounded, which come first; `speeds`: those that rows
change."""


def packed_tables(tables: RowTables, room: dict[str, int] | None = None) -> list[int]:
    """Sizes, where the tables begin, and the tables; `room`: how many entries more some of them get."""
    more = room or {}
    sizes = tables.sizes() | {"closures": len(tables.closures), "blocks": len(tables.tables["block_i"])}
    sizes |= {"equal": sizes["rows"], "equal_closures": sizes["closures"], "islands": 0, "speeds": 0}
    head = [sizes[name] for name in COUNTS]
    at = len(COUNTS) + len(TABLES)
    for name in TABLES:
        head.append(at)
        at += len(tables.tables.get(name, ())) + more.get(name, 0)
    return head + [x for name in TABLES for x in [*tables.tables.get(name, ()), *[0] * more.get(name, 0)]]


def row_memory(tables: RowTables) -> int:
    """Numbers of working memory that rows need, beside those of the links."""
    sizes = tables.sizes()
    links = sum(LINK_FIELDS.values()) * (len(tables.forest) + 1)
    closures = sum(WORK.values()) * len(tables.closures)
    return links + closures + len(PER_ROW) * sizes["rows"] + len(RESPONSES) * sizes["responses"] + 2 * sizes["matrix"]
