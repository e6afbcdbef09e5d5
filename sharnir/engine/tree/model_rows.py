"""Rows of contact and of laws of axes at fixed places, in code for one model (`model_code`).

Every link has room for some points of contact with what does not move; every axis with friction has a row for it, every axis with
limits one for the limit that is nearer. So which joint speeds a row sees, and which entries the matrix of `contact.cones` has, is
known when the code is written: indices are numbers, unit impulses are carried along paths without a loop, and all worlds take the
same way through the code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sharnir.contact.cones import EITHER, JOINTED, NEWTON, cone_memory
from sharnir.emit.algebra import ZERO, Vector, cross
from sharnir.emit.expressions import node, value
from sharnir.engine.tree.branches import BRANCH, Branches, by_branch
from sharnir.engine.tree.closures import CONTACT, FRICTION, LIMIT, SPEEDS
from sharnir.engine.tree.closures import ROWS as ROWS_OF
from sharnir.engine.tree.contact_rows import LAWS, NUMBERS_OF_STEP, ROUNDING, LawRows, solve_text
from sharnir.engine.tree.forest import GROUND
from sharnir.engine.tree.joint_speeds import add_own, gains, know_response, lever_of, natural, own_speeds, size_of
from sharnir.engine.tree.row_storage import FIELDS, PER_ROW, ClosureView
from sharnir.engine.tree.rows import ways
from sharnir.laws.axis import not_

SPEEDS_OF_ROWS = ("J", "h")
PUSHED_BY_ELEMENTS = """for (int d = 0; d < n_speeds; ++d) cone_eta(d) = real(0.0);
for (int e = 0; e < first_element[n_islands]; ++e) {{ const int many = many_of(e); const Table where = where_of(e);
for (int r = element[e]; r < element[e] + rows_of(e); ++r) {{ const real by = {rest}; const int at = row_at(r);
for (int i = 0; i < many; ++i) cone_eta(where[i]) += along(at, i)*by; }} }}
leave_on_joints(0, n_speeds);"""
"""C++: what impulses of laws, in `rest`, leave on the joints' own equations."""
NOWHERE = {"cast": -1.0, "belt": -1.0, "frame": -1.0, "on": 1.0}  # there are no belts and raycast wheels


@dataclass(frozen=True)
class Slot:
    """A closure at a fixed place: its kind, the link that it acts on, and those on the path to the ground."""

    kind: int
    link: int
    path: tuple[int, ...]
    first_row: int

    @property
    def rows(self) -> int:
        return ROWS_OF[self.kind]


class SlotTables:
    """Which rows there are, and what `contact.cones` is told of them.

    Args:
        branches: the links, and which of them are equal branches. Rows of such branches follow each other, branch by branch.
        points: for how many points of contact every link has room.
        rubbing, limited: links whose axes have friction, and limits.
    """

    def __init__(self, branches: Branches, points: Sequence[int], rubbing: Sequence[int], limited: Sequence[int]) -> None:
        self.branches, self.forest = branches, branches.forest
        self.slots: list[Slot] = []
        self.groups: list[list[list[int]]] = []  # of each group of branches, the slots of every branch

        def add(links: Sequence[int]) -> list[int]:
            begin = len(self.slots)
            pressed = [i for i in links for _ in range(points[i])]
            axes = ((FRICTION, [i for i in links if i in rubbing]), (LIMIT, [i for i in links if i in limited]))
            for kind, some in ((CONTACT, pressed), *axes):
                for link in some:
                    rows = self.slots[-1].first_row + self.slots[-1].rows if self.slots else 0
                    self.slots.append(Slot(kind, link, self._path(link), rows))
            return list(range(begin, len(self.slots)))

        self.single = add([i for i in range(len(self.forest)) if i not in branches.of])
        for members in branches.members.values():
            self.groups.append([add(links) for links in members])
        self.rows = sum(s.rows for s in self.slots)
        self.first_point = [next((n for n, s in enumerate(self.slots) if s.kind == CONTACT and s.link == i), 0)
                            for i in range(len(self.forest))]  # fmt: skip
        self.alike = {n: [branch[k] for branch in group] for group in self.groups for k, n in enumerate(group[0])}
        """By slot of a first branch: the slots of all branches for which it stands."""
        self.stands = {k: n for n, some in self.alike.items() for k in some}
        self._order()

    def all(self, n: int) -> list[int]:
        """The slots for which a slot stands."""
        return self.alike.get(n, [n])

    def value(self, n: int, of: Callable[[int], int]) -> str:
        """C++: a whole number of the slot for which slot n stands in the present branch."""
        return by_branch([of(k) for k in self.all(n)])

    def own(self, n: int) -> tuple[int, str]:
        """The slot that stands for a slot, and its index in that one's arrays."""
        first = self.stands.get(n, n)
        return first, f"[{self.alike[first].index(n)}]" if n in self.stands else ""

    def _path(self, link: int) -> tuple[int, ...]:
        out = []
        while link != GROUND:
            out.append(link)
            link = self.forest.links[link].base
        return tuple(out)

    def width(self, i: int) -> int:
        """Joint speeds of a link."""
        return SPEEDS[self.forest.links[i].kind] if any(i in s.path for s in self.slots) else 0

    def _order(self) -> None:
        """Joint speeds of each tree in turn, from its leaves to its root; rows of the matrices, which begin at the first speed
        that shares a row or a branch with theirs.
        """
        links = self.forest.links
        root = [self._path(i)[-1] for i in range(len(links))]
        self.root, self.place, self.island = root, [-1] * len(links), [-1] * len(links)
        self.first_speed, at = [0], 0
        for tree in sorted(set(root)):
            own = [i for i in reversed(range(len(links))) if root[i] == tree and self.width(i)]
            for i in own:
                self.place[i], at = at, at + self.width(i)
            if own:
                self.island[tree] = len(self.first_speed) - 1
                self.first_speed.append(at)
        self.speeds, self.islands = at, len(self.first_speed) - 1
        under = [self.place[i] if self.place[i] >= 0 else at for i in range(len(links))]  # the first speed of what hangs there
        self.own_first = [0] * at
        for i in reversed(range(len(links))):
            for d in range(self.width(i)):
                self.own_first[self.place[i] + d] = min(under[i], self.place[i] + d)
            base = links[i].base
            if base != GROUND:
                under[base] = min(under[base], under[i])
        self.where = [[self.place[i] + d for i in s.path for d in range(self.width(i))] for s in self.slots]
        self.sky_first = list(self.own_first)
        for speeds in self.where:
            for d in speeds:
                self.sky_first[d] = min(self.sky_first[d], *speeds)
        self.y_start, self.where_start, at = [], [0], 0
        for s, speeds in zip(self.slots, self.where, strict=True):
            self.y_start += [at + k * len(speeds) for k in range(s.rows)]
            self.where_start.append(self.where_start[-1] + len(speeds))
            at += s.rows * len(speeds)
        self.responses = at
        self.own_start, self.own_entries = self._starts(self.own_first)
        self.own_start.append(self.own_entries)
        self.sky_start, self.sky_entries = self._starts(self.sky_first)
        of_island = [[n for n, s in enumerate(self.slots) if self.island[root[s.link]] == k] for k in range(self.islands)]
        self.of = [n for some in of_island for n in some]
        self.first_element = [sum(len(some) for some in of_island[:k]) for k in range(self.islands + 1)]
        self.ways = []
        for k, some in enumerate(of_island):
            begin, end = self.first_speed[k], self.first_speed[k + 1]
            work = sum((d - self.sky_first[d] + 1) ** 2 for d in range(begin, end))
            sweep = sum(2 * self.slots[n].rows * len(self.where[n]) for n in some)
            jointed = sum(self.width(i) > 0 for i in range(len(links)) if self.island[root[i]] == k) > 1
            self.ways.append(JOINTED if jointed else NEWTON if work <= 8 * sweep else EITHER)

    @staticmethod
    def _starts(first: list[int]) -> tuple[list[int], int]:
        """Where column 0 of each row would be, and how many entries there are."""
        starts, at = [], 0
        for d, f in enumerate(first):
            starts.append(at - f)
            at += d - f + 1
        return starts, at

    def text(self) -> list[str]:
        """C++: the tables."""
        tables = {
            "kind": [s.kind for s in self.slots], "a": [s.link for s in self.slots], "root": self.root,
            "row_start": [*(s.first_row for s in self.slots), self.rows], "y_start": self.y_start,
            "where_start": self.where_start,
            "where": [d for w in self.where for d in w], "first_speed": self.first_speed, "way": self.ways,
            "own_first": self.own_first, "own_start": self.own_start, "sky_first": self.sky_first, "sky_start": self.sky_start,
        }  # fmt: skip
        out = ["typedef const int* Table;"]
        for name, x in tables.items():
            out.append(f"static const int t_{name}[] = {{{', '.join(map(str, x or [0]))}}};")
        used = ("element", "first_element", "first_speed", "own_first", "own_start", "sky_first", "sky_start")
        many = max(1, len(self.slots))
        out.append(
            f"int t_element[{many}], t_of[{many}], t_first_element[{self.islands + 1}];  // of rows that there are in a step"
        )
        return [*out, *(f"const Table {name} = t_{name};" for name in used)]

    def find_elements(self, there: Callable[[int], str]) -> str:
        """C++ that lists the rows that there are in a step, island by island; `there(n)`: whether there is that at a place."""
        out = ["{ int e = 0;"]
        for k in range(self.islands):
            out.append(f"t_first_element[{k}] = e;")
            for n in self.of[self.first_element[k] : self.first_element[k + 1]]:
                out.append(f"if ({there(n)}) {{ t_element[e] = {self.slots[n].first_row}; t_of[e] = {n}; ++e; }}")
        return "\n".join([*out, f"t_first_element[{self.islands}] = e; }}"])


class SlotRows(LawRows):
    """Rows of a model at fixed places.

    Args:
        tables: which there are.
        absent: parameters of points that are zero, since no surface has them.
    """

    def __init__(self, tree: Any, tables: SlotTables, absent: frozenset[str]) -> None:
        super().__init__(tree)
        self.tables, self.absent = tables, absent
        self.acts: dict[tuple[int, int], tuple[Vector, Vector]] = {}
        self._responses_at: dict[str, str] = {}  # where J of a row begins, by the row

    # ---- C++ around the program

    def declarations(self) -> list[str]:
        """What a program with these rows begins with."""
        t = self.tables
        lines = t.text()
        counts = {"rows": t.rows, "equal": 0, "closures": len(t.slots), "equal_closures": 0, "islands": t.islands}
        lines += [f"const int n_{name} = {n}; (void)n_{name};" for name, n in (counts | {"speeds": t.speeds}).items()]
        lines.append("const int rows = n_rows, speeds = n_speeds; (void)rows; (void)speeds;")
        lines.append("real row_k[1] = {}; (void)row_k;  // of rows of loops, of which there are none")
        lines.append("real open_gap = real(0.0), open_start = real(0.0), open_before = real(0.0); (void)open_start;")
        lines += [f"real row_{name}[{max(1, t.rows)}] = {{}};" for name in PER_ROW]
        lines += [f"real row_{name}[{max(1, t.responses)}] = {{}};" for name in SPEEDS_OF_ROWS]
        memory = cone_memory(t.rows, t.speeds, t.own_entries, t.sky_entries)
        lines.append(f"real cone_numbers[{max(1, memory)}] = {{}}; const int stride = 1; (void)stride;")
        lines.append("#define cone_number(k) cone_numbers[k]")
        rounding = (f"{name} = sizeof(real) == 8 ? real({x!r}) : real({y!r})" for name, (x, y) in ROUNDING.items())
        lines.append(f"const real {', '.join(rounding)};")
        lines.append("(void)yields_free; (void)settled; const real fall_of_step = dt*wp::sqrt(gx*gx + gy*gy + gz*gz);")
        lines.append(f"real {', '.join(f'{name} = real(0.0)' for name in NUMBERS_OF_STEP)};")
        lines.append("bool overlaps = false, last_impact = true; int parting = 0, impact = 0;")
        solver = "\n".join(self.solver()).replace("number(at_cone", "cone_number(0")
        # of the calls in a step, after impacts, and where a pose is closed, each would be the whole solver
        return [*lines, solver.replace("const bool last)\napart -> real", "const bool last)\n__attribute__((noinline)) -> real")]

    def _at_cone(self, name: str, k: Any) -> str:
        return f"cone_{name}({k})"

    def _place(self, name: str, at: Any) -> str:
        return f"row_{name}[{at}]"

    def stage(self, text: str) -> None:
        """C++ that depends on what is computed: a step, velocities after an impact, or a pose that is closed."""
        how = f"const bool resting = {str(self.tree.rests).lower()}, closing = {str(bool(self.tree.closing)).lower()};"
        self.program.forget(f"{{ {how} (void)resting; (void)closing;\n{text} }}")

    # ---- closures

    resting = property(lambda self: bool(self.tree.rests))
    closing = property(lambda self: bool(self.tree.closing))
    by_left = False  # type: ignore[assignment]

    def when(self, condition: Any) -> Iterator[None]:
        branch: Iterator[None] = self.tree.when(condition)
        return branch

    def unless_resting(self) -> Iterator[None]:
        if not self.resting:
            yield

    def as_function(self, name: str) -> Iterator[None]:
        yield

    def closures(self) -> Iterator[ClosureView]:
        for n in self.tables.single:
            yield from self._visit(n)
        for group in self.tables.groups:
            if group[0]:
                with self.program.block(f"for (int {BRANCH} = 0; {BRANCH} < {len(group)}; ++{BRANCH}) {{"):
                    for n in group[0]:
                        yield from self._visit(n)

    def _visit(self, n: int) -> Iterator[ClosureView]:
        if self.tables.slots[n].kind == FRICTION:
            yield ClosureView(self, n)
            return
        with self.program.block(f"if ({self.there(n)}) {{"):
            yield ClosureView(self, n)

    def there(self, n: int) -> str:
        """C++: whether there is a row at a place in this step."""
        return f"there_{n}" + (f"[{BRANCH}]" if n in self.tables.alike else "")

    def laws(self) -> Iterator[tuple[ClosureView, Any]]:
        for c in self.closures():
            yield c, LAWS[self.tables.slots[c.at].kind]

    def kinds_of(self, c: int) -> Iterator[Any]:  # type: ignore[override]
        yield LAWS[self.tables.slots[c].kind]

    def end(self, c: int, side: str) -> Any:  # type: ignore[override]
        slot = self.tables.slots[c]
        if side == ("b" if slot.kind == CONTACT else "a"):
            return self.tree.view(slot.link)
        return self.tree.ground()

    def field_place(self, c: int, name: str, k: int) -> str:  # type: ignore[override]
        return f"of_{name}_{c}_{k}" + (f"[{BRANCH}]" if c in self.tables.alike else "")

    def is_none(self, c: int, name: str) -> bool:
        """Whether a number of a point is zero in all worlds."""
        return name in self.absent and self.tables.slots[c].kind == CONTACT

    def get_field(self, c: int, name: str) -> list[Any]:  # type: ignore[override]
        if name in NOWHERE:
            return [NOWHERE[name]]
        if self.is_none(c, name):
            return [0.0] * FIELDS[name]
        return [self.program.read(self.field_place(c, name, k)) for k in range(FIELDS[name])]

    def whole(self, name: str, at: Any, after: int = 0) -> Any:
        if name != "row_start":
            return super().whole(name, at, after)
        slots = self.tables.slots
        row = self.tables.value(at, lambda n: slots[n].first_row + (slots[n].rows if after else 0))
        self._responses_at[row] = self.tables.value(at, lambda n: self.tables.y_start[slots[n].first_row])
        return row

    def plus(self, a: Any, b: Any) -> Any:
        return str(int(a) + int(b)) if str(a).isdigit() and str(b).isdigit() else super().plus(a, b)

    def size(self, name: str) -> Any:
        return 0 if name == "equal" else super().size(name)

    def range(self, start: Any, end: Any, back: bool = False) -> Iterator[Any]:
        return iter(()) if end == 0 else super().range(start, end, back)

    def closures_by_path(self) -> Iterator[Any]:
        return iter(())

    def factor_again(self, condition: Any) -> None:
        """Gaps of points never need that."""

    def where_dependent(self) -> Iterator[None]:
        return iter(())

    # ---- joint speeds

    def add(self, link: Any, k: Any, act: Any, rate: Any, bounded: bool = False) -> None:
        at = getattr(link, "at", GROUND)
        if at != GROUND:
            l, n = self.acts.get((at, k), (ZERO, ZERO))
            self.acts[at, k] = l + act[0], n + act[1]

    def put_responses(self, r: Any, at: Any, **numbers_of: list[Any]) -> None:
        for name, values in numbers_of.items():
            for m, x in enumerate(values):
                self.program.write(self._place(name, self.plus(self._responses_at[r], at + m)), x)

    def carry_bounded(self, c: Any) -> None:
        t, slot = self.tables, self.tables.slots[c.at]
        if slot.kind != CONTACT:
            return
        for k in range(slot.rows):
            l, n = self.acts.pop((slot.link, k))
            first = t.value(c.at, lambda j, k=k: t.y_start[t.slots[j].first_row + k])  # type: ignore[misc]
            at = 0
            for i in slot.path:
                link = self.tree.view(i)
                for joint in ways(link):
                    seen = natural(joint, link, (l, n))
                    for m, x in enumerate(seen):
                        self.program.write(self._place("J", self.plus(first, at + m)), x)
                    n, at = n + cross(lever_of(joint, link), l), at + len(seen)

    def _with_speeds(self) -> Iterator[tuple[Any, Any, list[str]]]:
        """Links whose joint speeds rows change, their joints, and where these speeds are."""
        t = self.tables
        for link in self.tree.links():
            if t.place[link.at] >= 0:
                for joint in ways(link):
                    places = [t.branches.value(link.at, lambda j, k=k: t.place[j] + k) for k in range(size_of(joint))]  # type: ignore[misc]
                    yield link, joint, places

    def _response(self, places: list[str]) -> list[Any]:  # type: ignore[override]
        return [self.program.read(f"cone_delta({place})") for place in places]

    def begin_carrying(self) -> None:
        t, p = self.tables, self.program
        p.forget("choose_way(rows, speeds, n_islands); by_left = false;")
        for link, joint, places in self._with_speeds():
            response = know_response(joint, link)
            for place, x in zip(places, response, strict=True):
                p.write(f"cone_delta({place})", x)
            lever, path = lever_of(joint, link), t._path(link.at)[1:]
            all_links = t.branches.all(link.at)
            for k, (l, n) in enumerate(gains(joint, link, response)):
                n = n + cross(lever, l)
                for depth, up in enumerate(path):
                    base = self.tree.view(up)
                    for other in ways(base):
                        for m, x in enumerate(natural(other, base, (l, n))):
                            at = by_branch([t.own_start[t.place[t._path(j)[depth + 1]] + m] + t.place[j] + k for j in all_links])
                            p.write(f"cone_gain({at})", x)
                        n = n + cross(lever_of(other, base), l)

    def factor(self) -> None:
        soft, near = self.row_place("soft"), self.row_place("near")
        self.program.forget("couple_joints(n_rows, n_speeds, n_islands);")
        if not self.resting:
            self.stage(f"""for (int i = 0; i < n_islands; ++i)
for (int e = first_element[i]; e < first_element[i + 1]; ++e) {{
const real by = t_way[i] == {JOINTED} ? yields : yields_free; const int kind = t_kind[t_of[e]];
if (kind == {CONTACT} || kind == {LIMIT}) for (int r = element[e]; r < element[e] + rows_of(e); ++r) {{
if (!({soft} == real(0.0))) continue;
real own = real(0.0); const int at = row_at(r); const Table where = where_of(e);
if (kind == {LIMIT}) own = along(at, 0)*along(at, 0)*cone_delta(where[0]);
else for (int k = 0; k < size_of(e); ++k) own += left(at, k)*left(at, k)*cone_delta(where[k]);
{near} = {soft} = by*own; }} }}""")
        self.program.forget("weighed = false;")

    def answer_along_speeds(self) -> None:
        p = self.program
        for link, joint, places in self._with_speeds():
            for place, x in zip(places, own_speeds(joint, link, self._response(places)), strict=True):
                p.write(f"cone_eta({place})", x)
        p.forget(f"""follow_joints(0, n_speeds);
for (int e = 0; e < first_element[n_islands]; ++e) {{ const int many = many_of(e); const Table where = where_of(e);
for (int r = element[e]; r < element[e] + rows_of(e); ++r) {{ const int at = row_at(r);
real sum = real(0.0); for (int i = 0; i < many; ++i) sum += along(at, i)*cone_eta(where[i]);
{self.row_place("rest")} -= sum; }} }}""")

    def correct_along_speeds(self) -> None:
        p = self.program
        p.forget(PUSHED_BY_ELEMENTS.format(rest=self.row_place("rest")))
        for link, joint, places in self._with_speeds():
            add_own(joint, link, self._response(places), [p.read(f"cone_eta({place})") for place in places])

    def solve(self) -> None:
        self.stage(solve_text(self.row_place, self._place, self.tree.real if self.tree.real == "double" else "single"))

    # ---- what laws did

    def _island(self, n: int) -> int:
        return self.tables.island[self.tables.root[self.tables.slots[n].link]]

    def note_rubbing(self, held: Any) -> None:
        for _ in self.when(not_(held)):
            self.program.say(f"rubs[{self.tables.value(self._visited, self._island)}] = true;")

    def keep_laws(self) -> None:
        p, t = self.program, self.tables
        p.forget(f"bool rubs[{max(1, t.islands)}] = {{}}; (void)rubs;")
        for c, law in self.laws():
            self._visited = c.at
            stopped = law.keep(c)
            if stopped is not False:
                number = value(t.value(c.at, lambda n: t.slots[n].link + 1), "int")
                p.write("stopped", node("?", stopped, number, p.read("stopped", "int"), kind="int"))
        for n, s in enumerate(t.slots):
            if s.kind == FRICTION:
                first, where = t.own(n)
                p.say(f"if (of_hits_{first}_0{where} > real(0.5) && !rubs[{self._island(n)}]) stopped = {s.link + 1};")
        p.forget("")
