"""Ropes beside the tree, in emitted code (theory: ropes).

In every pass a rope is eliminated towards its first end (`rope.chain`): to the link that holds it there it is a momentum and a
derivative more, as if it hung on the link by a joint. A last end that another link holds, a point between the ends and the
orientation of a clamped last end are three rows each beside the forest, whose impulses also act on the link of the first end, by
what the rope hands on; the mobility of the rope is their compliance, and couples the rows of one rope. A last end that the ground
holds, or nothing, is part of the elimination. What is done to ropes is device code of `direct.roped`, which is called here, and
which reads and writes these tables; impulses and momenta are scaled as those of links (`step`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sharnir.emit.algebra import ZERO, Matrix, Symmetric, Vector
from sharnir.emit.expressions import select, value
from sharnir.engine.tree.closures import HOLD, ROPE, ROWS, TOUCH, WINCH
from sharnir.engine.tree.contact_rows import UNBOUNDED, WITH_LAWS, LawLoopTree, LawRows, held
from sharnir.engine.tree.islands import FIXED
from sharnir.engine.tree.row_storage import LoopRows, RowLoopTree
from sharnir.engine.tree.rows import CLOSURES, Kind, Wrenches
from sharnir.engine.tree.storage import FARTHEST, FIRST_RATE, LinkView

HUNG = {"f": 3, "n": 3, "A": 9, "B": 9, "C": 9, "D": 9}
"""Of a link: what it lacks for the ropes on it, about its origin; the derivative of that by half its displacement and turn."""
ACT, RATE, SOFT, GAP, PER_ROW = 0, 12, 24, 27, 28
"""Of a row of an end: its impulses on both links and its derivative, as in `rows`; compliances; half the gap."""
DRIVES, LEADS, WINCH_SIZE = 24, 29, 32
"""Of a winch: impulses of its row on both links and its derivative, as of an end; then compliance, half the gap, by how much it
shortens the rope by a unit of its link's angle, the impulse so far, 1 where it winds; by how much it moves a held last point."""
HUNG_SIZE, END_SIZE = sum(HUNG.values()), ROWS[ROPE] * PER_ROW
CROSS_SIZE = 2 * ROWS[ROPE] ** 2  # of two holds of a rope: what rows of the second do to those of the first, then the reverse
AIMS, FROM, NOW, CHANGE, ACTS, OWN, TOUCH_SIZE = 36, 39, 42, 45, 48, 49, 53
"""Of a closure of ropes that touch: impulses of its three rows on both links, as of an end; what these miss, as speeds; impulses
to begin with, at hand, and what changed them last; 1 where it may push, else −1; own responses, and their mean."""
JOINTS = 3  # what velocities are projected for, beside `rope.energy_bodies`
HARDLY = 0.5 * FARTHEST  # change of ropes, at most, with which passes go on
SYMMETRIC_RATE = 1 / 50  # by which symmetric factors reduce the error of ropes at best: one change that fell more is chance
UNMET = 1e-3  # change of the last pass of a step that was not made to its end, at least
ROUNDS = 60  # in which velocities are projected, at most, until no element of a rope is pressed
TABLES = f"""#define hung(i, k) both.hung.data[({HUNG_SIZE}*(i) + (k))*worlds + w]
#define rope_end(r, k) both.ends.data[({END_SIZE}*(r) + (k))*worlds + w]
#define rope_winch(r, k) both.winch.data[({WINCH_SIZE}*(r) + (k))*worlds + w]
#define rope_touch(m, k) both.touch_rows.data[({TOUCH_SIZE}*(m) + (k))*worlds + w]
#define rope_cross(p, k) both.cross.data[({CROSS_SIZE}*(p) + (k))*worlds + w]"""


class RopeEnd(Kind):
    """Where link b holds a rope, which the link of its first end moves along. What it carries is kept by the rope."""

    rows = ROWS[ROPE]
    closes = False

    def begin(self, c: Any) -> None: ...

    def stiffen(self, c: Any, impulses: list[Any]) -> None: ...

    def push(self, c: Any, impulses: list[Any]) -> None: ...

    def guess(self, c: Any, k: int) -> Any:
        return 0.0

    def start_gap(self, c: Any) -> list[Any]:
        return [0.0] * self.rows

    def evaluate(self, c: Any) -> list[Any]:
        return [c.rows.rope_number(c, k, GAP) for k in range(self.rows)]

    def unit(self, c: Any) -> Any:
        return 0.0

    def wrenches(self, c: Any) -> Wrenches:
        return self._wrenches(c, ACT)

    def rates(self, c: Any) -> Wrenches:
        return self._wrenches(c, RATE)

    end_rates = rates

    def _wrenches(self, c: Any, first: int) -> Wrenches:
        out = []
        for k in range(self.rows):
            x = [c.rows.rope_number(c, k, first + n) for n in range(12)]
            out.append((Vector(*x[:3]), Vector(*x[3:6]), Vector(*x[6:9]), Vector(*x[9:])))
        return out

    def softness(self, c: Any, k: int) -> Any:
        return select(c.rows.closing, -1.0, 0.0)

    def carries(self, c: Any, impulses: list[Any]) -> Vector:
        return ZERO


class PrincipalRopeEnd(RopeEnd):
    """The same along the principal axes of the rope's mobility: a row of its own yields by its own impulse alone."""

    def softness(self, c: Any, k: int) -> Any:
        return c.rows.rope_number(c, k, SOFT + k)


class WinchRow(Kind):
    """The element of a rope that a drum winds slides as the drum turns, beside a last point that does not move along the rope."""

    closes = False

    def begin(self, c: Any) -> None: ...

    def stiffen(self, c: Any, impulses: list[Any]) -> None: ...

    def guess(self, c: Any, k: int) -> Any:
        return 0.0

    def start_gap(self, c: Any) -> list[Any]:
        return [0.0]

    def evaluate(self, c: Any) -> list[Any]:
        by, ratio = c.rows.winch_number(c, DRIVES + 2), c.rows.drum(c).ratio
        c.by_a = by * select(c.rows.resting, 1.0, ratio)
        return [c.rows.winch_number(c, DRIVES + 1)]

    def unit(self, c: Any) -> Any:
        return 0.0

    def push(self, c: Any, impulses: list[Any]) -> None:
        c.rows.drum(c).add(row_e=c.by_a * c.rows.winch_number(c, DRIVES + 3))

    def wrenches(self, c: Any) -> Wrenches:
        return self._wrench(c, ACT)

    def rates(self, c: Any) -> Wrenches:
        return self._wrench(c, RATE)

    end_rates = rates

    def _wrench(self, c: Any, first: int) -> Wrenches:
        x = [c.rows.winch_number(c, first + n) for n in range(12)]
        return [(Vector(*x[:3]), Vector(*x[3:6]), Vector(*x[6:9]), Vector(*x[9:]))]

    def enter(self, c: Any, exact: bool) -> None:
        super().enter(c, exact)
        c.rows.drum(c).add(path_e=c.by_a)

    def softness(self, c: Any, k: int) -> Any:
        still = c.rows.winch_number(c, DRIVES + 4) < 0.5
        if c.rows.own:  # links alone are displaced
            still = still | c.rows.closing
        return select(still, -1.0, c.rows.winch_number(c, DRIVES))

    def carries(self, c: Any, impulses: list[Any]) -> Vector:
        return ZERO


class TouchRow(Kind):
    """A point of contact of a rope: `direct.roped_touch` finds what it misses, and what it does to links and to ropes."""

    rows = ROWS[TOUCH]
    closes, bounded = False, True

    def begin(self, c: Any) -> None:
        for k in range(self.rows):
            c.put_row(k, "near", 0.0)

    def guess(self, c: Any, k: int) -> Any:
        return c.rows.touch_number(c, FROM + k)

    def start_gap(self, c: Any) -> list[Any]:
        return [0.0] * self.rows

    def evaluate(self, c: Any) -> list[Any]:
        c.put_row(0, "high", c.rows.touch_number(c, ACTS))
        return [c.rows.touch_number(c, AIMS + k) + held(self, c, k) for k in range(self.rows)]

    def unit(self, c: Any) -> Any:
        return 0.0

    def push(self, c: Any, impulses: list[Any]) -> None:
        """Links know of it by what hangs on them."""

    def wrenches(self, c: Any) -> Wrenches:
        x = [[c.rows.touch_number(c, 12 * k + n) for n in range(12)] for k in range(self.rows)]
        return [(Vector(*y[:3]), Vector(*y[3:6]), Vector(*y[6:9]), Vector(*y[9:])) for y in x]

    rates = wrenches

    def softness(self, c: Any, k: int) -> Any:
        return 0.0

    def carries(self, c: Any, impulses: list[Any]) -> Vector:
        return ZERO


class HoldRow(TouchRow):
    """What holds a rope beside its first end, where ropes touch: rows without bounds among those that have such."""

    def evaluate(self, c: Any) -> list[Any]:
        for k in range(self.rows):
            c.put_row(k, "low", -UNBOUNDED)
            c.put_row(k, "high", UNBOUNDED)
        return [c.rows.touch_number(c, AIMS + k) for k in range(self.rows)]


class EndRows:
    """What rows with those of ropes' ends have in common."""

    own = True  # whether a row's own compliance is added to the response, not kept with the row
    program: Any

    def rope_number(self, c: Any, k: int, n: int) -> Any:
        """A number of the k-th row of a hold."""
        return self.program.read(f"rope_end(x.closure_item.data[{c.at}], {PER_ROW * k + n})")

    def winch_number(self, c: Any, n: int) -> Any:
        """A number of a winch."""
        return self.program.read(f"rope_winch(x.closure_item.data[{c.at}], {n})")

    def drum(self: Any, c: Any) -> LinkView:
        """The link that turns as the drum of a winch."""
        name = self.program.name("drum")
        link = f"both.drum_link.data[x.closure_item.data[{c.at}]]"
        self.program.say(f"const int {name} = {self.tree.row}*({link} + 1), rows_{name} = {self.tree.row_place(link)};")
        return LinkView(self.tree, name)

    def soften(self: Any) -> None:
        for c in self.closures():
            with self.program.block(f"if (t_kind[{c.at}] == {ROPE}) {{"):
                row = self.whole("row_start", c.at)
                for k in range(ROWS[ROPE]):
                    for j in range(k + 1 if self.own else k):
                        at = self.entry(self.plus(row, k), self.plus(row, j))
                        self.put("lower", at, self.get("lower", at) + self.rope_number(c, k, SOFT + j))
                        if j < k:
                            self.put("upper", at, self.get("upper", at) + self.rope_number(c, j, SOFT + k))
        for p in self.range(0, "both.pairs"):
            rows = [f"both.pair_row.data[2*{p} + {side}]" for side in range(2)]
            for k in range(ROWS[ROPE]):
                for j in range(ROWS[ROPE]):
                    at = self.entry(self.plus(rows[0], k), self.plus(rows[1], j))
                    to, back = (self.program.read(f"rope_cross({p}, {n})") for n in (3 * k + j, 9 + 3 * j + k))
                    self.put("lower", at, self.get("lower", at) + to)
                    self.put("upper", at, self.get("upper", at) + back)

    def undefined(self) -> list[str]:
        return [*super().undefined(), "#undef hung", "#undef rope_end", "#undef rope_winch", "#undef rope_cross", "#undef rope_touch"]  # type: ignore[misc]


class RopedRows(EndRows, LoopRows):
    """Rows of any forest, those of ropes' ends among them."""

    kinds = CLOSURES | {ROPE: RopeEnd(), WINCH: WinchRow()}


class RopedLawRows(EndRows, LawRows):
    """The same with rows of laws, of contacts among them."""

    kinds = WITH_LAWS | {ROPE: PrincipalRopeEnd(), WINCH: WinchRow(), TOUCH: TouchRow(), HOLD: HoldRow()}
    own = False

    instead = {"own_weight(e)": "own_weight_of(e)"}

    def solver(self) -> list[str]:
        own = f"""const auto own_weight_of = [&](int e) -> real {{ const int c = t_of[e], kind = t_kind[c];
if (kind != {TOUCH} && kind != {HOLD}) return real(0.0); const int m = (int)given({self.given["lever"]});
return rope_touch(m, {OWN} + (kind == {HOLD} ? t_element[e] - t_row_start[c] : 3)); }};"""
        return [own, *super().solver()]

    def touch_number(self, c: Any, n: int) -> Any:
        """A number of a closure of ropes that touch."""
        return self.program.read(f"rope_touch((int)given({self.given['lever']}), {n})")

    def path(self, c: Any) -> Iterator[Any]:
        p = self.program
        with p.block("for (int k = t_path_start[c]; k < t_path_start[c + 1]; ++k) {"):
            p.say("const int i = t_path[k], offset = t_offset[k]; if (i >= links || kinds[i] < 0) continue;")
            self.tree.say_link()
            yield LinkView(self.tree, "own"), "offset"

    def _of_touch(self, text: str) -> None:
        """C++ for all closures of ropes that touch: closure c, of the number m, whose rows begin at r."""
        self.program.forget(f"""for (int c = n_equal_closures; c < n_closures; ++c) if (t_kind[c] == {TOUCH} || t_kind[c] == {HOLD}) {{
const int m = (int)given({self.given["lever"]}), r = t_row_start[c]; {text} }}""")

    def _of_points(self, text: str) -> None:
        """C++ for the speeds of points of ropes: number k of those of a rope, speed d."""
        self.program.forget(f"""if (n_rows > n_equal) {{ const int rows = n_rows, speeds = n_speeds;
for (int rope = 0; rope < x.rope_most; ++rope) if (t_place[links + rope] >= 0)
for (int k = 0; k < t_width[links + rope]; ++k) {{ const int d = t_place[links + rope] + k; {text} }} }}""")

    def begin_impulses(self) -> None:
        """Impulses of the part of a step that begins."""
        place = self._place("impulse", "r + k")
        self._of_touch(f"for (int k = 0; k < 3; ++k) {place} = rope_touch(m, {FROM} + k);")

    def begin_carrying(self) -> None:
        super().begin_carrying()
        self.program.forget("""if (n_rows > n_equal && x.rope_most > 0) { const int rows = n_rows, speeds = n_speeds;
for (int k = 0; k < own_start[speeds]; ++k) cone_gain_up(k) = cone_gain(k); }""")
        self._of_points("""const int at = (3*x.rope_first.data[rope] + k)*worlds + w; cone_delta(d) = both.touch_delta.data[at];
for (int c = own_first[d]; c < d; ++c) { const int other = (6*(3*x.rope_first.data[rope] + k) + c - d + k%3 + 3)*worlds + w;
cone_gain(own_start[d] + c) = both.touch_L.data[other]; cone_gain_up(own_start[d] + c) = both.touch_U.data[other]; }""")

    def carry_bounded(self, c: Any) -> None:
        super().carry_bounded(c)
        J = self._place("J", "t_y_start[r + row] + t_offset[k] + j")
        self.program.forget(f"""if (c >= n_equal_closures && (t_kind[c] == {TOUCH} || t_kind[c] == {HOLD})) {{
const int m = (int)given({self.given["lever"]}), r = t_row_start[c];
for (int k = t_path_start[c]; k < t_path_start[c + 1]; ++k) if (t_path[k] >= links)
for (int row = 0; row < 3; ++row) for (int j = 0; j < 3; ++j)
{J} = both.touch_J.data[(36*m + 12*row + 3*(k - t_path_start[c]) + j)*worlds + w]; }}""")

    def answer_along_speeds(self) -> None:
        self._of_points("cone_eta(d) = real(0.0);")
        super().answer_along_speeds()

    def solve(self) -> None:
        super().solve()
        rest, impulse = (self._place(name, "r + k") for name in ("rest", "impulse"))
        self._of_touch(f"""for (int k = 0; k < 3; ++k) {{ rope_touch(m, {CHANGE} + k) = {rest};
rope_touch(m, {NOW} + k) = {impulse} + {rest}; }}""")

    def find_islands(self) -> None:
        """Islands on which ropes hang are not free: their momentum goes to the ropes."""
        super().find_islands()
        at = self.tree.row_start["island"]
        of = f"number({self.tree.row_place('{}')} + {at})"
        self.program.forget(f"""for (int n = 0; n < both.held; ++n) {{ const int link = both.held_link.data[n];
if (link < 0 || kinds[link] < 0) continue;
const real found = {of.format("link")};
for (int i = 0; i < links; ++i) if (kinds[i] >= 0 && {of.format("i")} == found) {of.format("i")} = real({FIXED}); }}""")


class Ropes:
    """The ropes of a tree of emitted code: calls of device code, and what that left for the links."""

    def __init__(self, tree: Any) -> None:
        self.tree, self.program, self.laws = tree, tree.program, tree.laws_are_rows

    def call(self, name: str, more: str = "") -> str:
        """C++ that calls a function of `rope_runtime`."""
        return f"{name}_0(t, w{more})"

    def tell(self, name: str, more: str = "") -> None:
        """Call it; what it leaves in tables is read anew."""
        self.program.forget(f"{self.call(name, more)};")
        if name == "roped_begin" and self.laws:
            self.tree.rows.begin_impulses()

    # C++ of a simulation's steps (`code.Form.simulation`); `prepared`: the part of a step that comes next is

    start = "bool prepared = fresh > 0, kept = false, astray = false; if (fresh) roped_prepare_0(t, w, h);"
    feed = "roped_feed_0(t, w);"
    end_step = "roped_spend_0(t, w);"
    prepare = "if (!prepared) { prepared = true; if (roped_prepare_0(t, w, h) > 0) { stopped = -1; continue; } }"
    look = "astray = roped_look_0(t, w) > 0;"
    keep = "if (roped_keep_0(t, w) > 0 && !stopped) stopped = -1;\nkept = true; prepared = false;"
    go_back = "if (broken) roped_go_back_0(t, w);\n"

    # what hits something in the instant in which elements become taut is not thrown back
    snap_first = f"if (!last_impact && both.what.data[w] != {JOINTS}) {{ bounce = real(0.0); }}"

    def miss(self, whole: str) -> str:
        return f"{{ const int undone = {whole}; roped_miss_0(t, w, undone); }} prepared = false;"

    def stop(self, missed: str) -> str:
        """C++: no passes are left, which is a caller's cap: nothing moves in the rest of the step, and the report tells it."""
        rest = f"failed = 0; restarted = true; left = 0; left_over = wp::max(change, real({UNMET}));"
        rest += " within = real(0.0);" if self.laws else ""
        return f"if ({missed}) {{ {self.miss('0')} {rest} continue; }}"

    def hung(self, link: Any) -> tuple[Any, ...]:
        """f, n and the blocks of the derivative of what hangs on a link."""
        out, at = [], 0
        for size in HUNG.values():
            x = [self.program.read(f"hung(i, {at + k})") for k in range(size)]
            out.append(Vector(*x) if size == 3 else Matrix.from_entries(x))
            at += size
        return tuple(out)

    def hung_inertia(self, link: Any) -> tuple[Symmetric, Matrix, Symmetric]:
        """A, H, I of what hangs on a link where nothing moves."""
        _, _, A, B, C, D = self.hung(link)
        if not self.laws:
            return Symmetric.upper(A), C, Symmetric.upper(D)
        A, H, I = (Matrix([[x * 0.5 for x in r] for r in m.rows]) for m in (A + A.T, C + B.T, D + D.T))
        return Symmetric.upper(A), H, Symmetric.upper(I)

    def inward(self) -> None:
        """Ropes eliminated towards the links; with new factors where the forest has such."""
        if self.laws:
            self.program.say("both.again.data[w] = !factor;")
        self.tell("roped_inward")

    def stand(self) -> None:
        """Ropes where they stand, before velocities are projected."""
        self.tell("roped_stand", ", h")

    def stand_closing(self) -> None:
        """Ropes where they stand, before links are displaced."""
        self.tell("roped_stand_closing", ", h")

    @property
    def open(self) -> Any:
        """The largest square of a gap of ropes, as an angle."""
        return value("(both.open.data[w]*both.open.data[w]*per_metre*per_metre)")

    def raise_links(self) -> None:
        """Ropes follow links that are displaced."""
        self.tell("roped_raise")

    def slow(self) -> None:
        """Ropes are slowed as the links that hold them."""
        self.tell("roped_slow")

    def throw_back(self, bounce: Any) -> Any:
        """Ropes leave an impact as links do; returns what they lost, as energies of links are scaled."""
        if bounce is not None:
            self.program.say("real thrown = real(0.0);")
            self.program.write("thrown", bounce)
            self.tell("roped_throw", ", thrown")
        return value("(both.lost.data[w]*real(0.25)*h*h)")

    def follow(self) -> None:
        """Ropes follow the links; where elements are slack that were taken to be taut, or the reverse, passes go on."""
        moved = f"{self.call('roped_follow', ', pass, changed')}*tolerance*(pass == 0 ? real({1.0 / FIRST_RATE!r}) : real(1.0))"
        far = f"if (moved > real({HARDLY})) moved = real({HARDLY});" if self.laws else ""  # as much in tolerances that are coarse
        self.program.forget(f"{{ real moved = {moved}; {far} if (!(change >= moved)) change = moved; }}")
        self.program.forget("""{ const int verdict = both.verdict.data[w];
if (verdict == 2) { failed = 1; break; }
if (verdict > 0) { pass = -1; continue; }
if (both.wrong.data[w] > 0) { changed += both.wrong.data[w]; pass = 0; }
const real rate = change/before;  // the next pass will do with the factors of ropes that there are, where it is the last,
const bool steady = change < real(1e8)*tolerance && rate > real(0.05) && rate < real(0.6);  // or bending makes new ones no better
both.again.data[w] = pass > 1 && changed == 0 && (steady || change*rate*rate*rate <= tolerance); }""")

    def rounds(self) -> Iterator[Any]:
        """The rounds in which velocities are projected."""
        with self.program.block(f"for (int round = 0; round < {ROUNDS}; ++round) {{"):
            yield
            self.program.forget(f"const bool settled = {self.call('roped_settle')} == 0;")
            self.program.leave(value("settled", "bool"))


class RopedLoopTree(RowLoopTree):
    """Code that loops over the links of any forest, with ropes and rows beside it; by the exact derivative alone."""

    make_rows = RopedRows

    def __init__(self, *args: Any, **keywords: Any) -> None:
        super().__init__(*args, **keywords)
        self.ropes = Ropes(self)

    def iterations(self) -> Iterator[bool]:
        self.program.say("gear = 2;")
        yield from super().iterations()

    def in_second_gear(self) -> Iterator[None]:
        yield

    def in_first_gear(self) -> Iterator[None]:
        return iter(())

    def project_rounds(self) -> Iterator[Any]:
        yield from self.ropes.rounds()
        self.note_lost(value("(both.lost.data[w]*real(0.25)*h*h)"))


class RopedLawTree(LawLoopTree):
    """Code that loops over the links of any forest, with ropes, rows beside it and laws that are rows; by symmetric factors."""

    make_rows = RopedLawRows
    best_rate = SYMMETRIC_RATE

    def __init__(self, *args: Any, **keywords: Any) -> None:
        super().__init__(*args, **keywords)
        self.ropes = Ropes(self)

    def project_rounds(self) -> Iterator[Any]:
        yield from self.ropes.rounds()
