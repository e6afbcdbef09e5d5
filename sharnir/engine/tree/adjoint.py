"""The adjoint of steps: how a cost of a motion changes with what came before, from its last step to the first.

The derivative of a step (`tangent`) is a program that is linear in rates. Its transpose goes the other way: sweeps in reverse
order, links in reverse order, and where a rate is given that depends on others, these are given slopes of the cost. It is made
from the same functions: each way through the code of a link (its kind, whether laws act) is recorded by itself, as straight code,
and transposed (`transposed`). Slopes stand where the derivative has rates; what it overwrites has no slope any more.

Numbers are those of the start of the step with the means that it found, so that nothing has to be kept within it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sharnir.emit.expressions import Expression, node, rate_of, select, value, value_of
from sharnir.emit.program import INFIX, Program
from sharnir.engine.tree.forest import BALL
from sharnir.engine.tree.joints import Ball
from sharnir.engine.tree.step import place_links, update_twists
from sharnir.engine.tree.storage import JOINTS, SIZES, START, LinkView, numbers, pack
from sharnir.engine.tree.tangent import (
    COLUMNS,
    IN_IMPACT,
    IN_STEP,
    PASSES,
    TangentTree,
    end_step,
    follow,
    linearize_laws,
    many,
    meet_impact,
    read_ends,
    seed_commands,
    seed_place,
    seed_pushes,
    seed_speeds,
)  # fmt: skip

LEFT = 1e-10  # of slopes by mean speeds: what passes may leave
AT_REST = {"u": 0.0, "g": 0.0, "k": 1.0, "z": 0.0}
NOTHING = "(reals)(real(0.0))"


class Straight(Program):
    """Straight code that knows what it read where."""

    def __init__(self) -> None:
        super().__init__()
        self.places: dict[str, str] = {}

    def read(self, place: str, kind: str = "real") -> Any:
        found = super().read(place, kind)
        if isinstance(found, Expression) and found.op == "value":
            self.places[str(found.args[0])] = place
        return found

    def straight(self) -> str:
        """The text of all."""
        self._flush([])
        return "\n".join(self.lines)

    def condition(self, e: Any) -> str:
        """C++ of an expression, in terms of places."""
        if not isinstance(e, Expression):
            return f"real({float(e)!r})"
        if e.op == "value":
            return self.places.get(str(e.args[0]), str(e.args[0]))
        a = [self.condition(x) for x in e.args]
        if e.op in INFIX:
            return f"({a[0]} {e.op} {a[1]})"
        raise ValueError(f"a branch on {e.op}")


class AdjointTree(TangentTree):
    """Sweeps that are transposed as they are recorded."""

    branches_on_laws = False
    rated = frozenset(IN_STEP)

    def __init__(self, program: Program, second_gear: Any) -> None:
        super().__init__(program, second_gear)
        self.whole = program

    @contextmanager
    def backwards(self) -> Iterator[None]:
        """The sweeps inside are made in reverse order."""
        self._sweeps: list[str] = []
        yield
        for sweep in reversed(self._sweeps):
            self.whole.say(sweep)

    def links(self, inward: bool = False) -> Iterator[LinkView]:
        """Each way through the code of a link; in the reverse order."""
        lines = ["for (int i = 0; i < links; ++i) {" if inward else "for (int i = links - 1; i >= 0; --i) {"]
        lines += ["if (kinds[i] < 0) continue;", self.place_of_link()]
        self._open: list[list[Any]] = [[]]
        while self._open:
            self._plan, self._made = self._open.pop(), dict[str, Any]()
            self.program, self._rates = Straight(), dict[str, Any]()
            self._sums: list[tuple[str, Any]] = []
            yield LinkView(self, "own")
            lines += self._close()
        self.program = self.whole
        self._sweeps.append("\n".join([*lines, "}"]))

    def decide(self, what: str, options: tuple[Any, ...]) -> Any:
        """Which of some ways the present one is."""
        if what not in self._made:
            n, made = len(self._made), list(self._made.values())
            if n == len(self._plan):
                self._open += [[*made, other] for other in options[1:]]
                self._plan = [*made, options[0]]
            self._made[what] = self._plan[n]
        return self._made[what]

    def _close(self) -> list[str]:
        """The transpose of the present way."""
        part: Any = self.program
        opens = f"number(own + {START['opens']}) > real(0.5)"
        given = [(place, part.read(place, "reals"), rate) for place, rate in self._rates.items()]
        sums = [(place, part.read(place, "reals"), rate) for place, rate in self._sums]
        found = transposed([(slope, rate) for _, slope, rate in [*given, *sums]])
        for place, _, _ in given:
            if not place.startswith("result"):
                part.write(place, found.pop(place, value(NOTHING, "reals")))
        for place, slope in found.items():
            part.add(place, slope)
        if sums:
            part.say(f"if ({opens}) {{ {' '.join(f'{place} = {NOTHING};' for place, _, _ in sums)} }}")
        if not (given or sums):
            return []
        made = self._made.items()
        ways = [what if way is True else f"!({what})" if way is False else f"{what} == {way}" for what, way in made]
        return [f"if ({' && '.join(ways) or 'true'}) {{", part.straight(), "}"]

    def joints_of(self, at: str) -> Iterator[Any]:
        self._kind = self.decide("kinds[i]", self.kinds)
        yield Ball() if self._kind == BALL else JOINTS[self._kind]
        self._kind = None

    def acting(self, at: str) -> Iterator[None]:
        if self.decide("acts[i]", (True, False)):
            yield

    def idle(self, at: str) -> Iterator[None]:
        if not self.decide("acts[i]", (True, False)):
            yield

    def when(self, condition: Any) -> Iterator[None]:
        if isinstance(condition, bool):
            way = condition
        else:
            part: Any = self.program
            way = self.decide(part.condition(condition), (True, False))
        if way:
            yield

    def put(self, at: str, name: str, x: list[Any]) -> None:
        """What is written is known from there on; in memory it stays."""
        for k, number in enumerate(x):
            self.program._known[self.place(at, COLUMNS.get(name, name), k)] = value_of(number)
            if name in self.rated:
                self.put_rate(self.rate_place(at, name, k), rate_of(number))

    def get(self, at: str, name: str) -> list[Any]:
        if self.rests and not self.stands and name in AT_REST:  # before an impact gives them velocities
            return [AT_REST[name]] * SIZES[name]
        return [0.0] if name == "friction_load" else super().get(at, name)

    def rate(self, place: str) -> Any:
        return self._rates.get(place, value(f"@{place}", "reals"))

    def put_rate(self, place: str, rate: Any) -> None:
        self._rates[place] = many(rate)

    def hand_on(self, at: str, fields: dict[str, Any]) -> None:
        for name, field in fields.items():
            if name in self.rated:
                self._sums += [(self.rate_place("base", name, k), many(rate_of(x))) for k, x in enumerate(numbers(field))]

    def gathered(self, at: str, name: str) -> Any:
        return pack(name, self.get(at, name))

    def note_law(self, acts: Any) -> None: ...

    def note_change(self, old: Any, new: Any) -> None: ...


def transposed(outputs: list[tuple[Any, Any]]) -> dict[str, Any]:
    """Slopes of what is read, by place, from those of what is made of it: (slope, rate) that is linear in places."""
    order: list[Expression] = []
    seen: set[int] = set()
    stack: list[tuple[Any, bool]] = [(rate, False) for _, rate in outputs]
    while stack:
        e, ready = stack.pop()
        if ready:
            order.append(e)
        elif is_linear(e) and id(e) not in seen:
            seen.add(id(e))
            stack.append((e, True))
            stack += [(a, False) for a in e.args]
    slopes: dict[int, Any] = {}

    def give(e: Any, slope: Any) -> None:
        if is_linear(e):
            slopes[id(e)] = slopes[id(e)] + slope if id(e) in slopes else slope

    for slope, rate in outputs:
        give(rate, slope)
    found: dict[str, Any] = {}
    for e in reversed(order):
        slope = slopes[id(e)]
        a: tuple[Any, ...] = e.args
        if e.op == "value":
            found[str(a[0])[1:]] = slope
        elif e.op in ("+", "-"):
            give(a[0], slope)
            give(a[1], slope if e.op == "+" else -slope)
        elif e.op == "neg":
            give(a[0], -slope)
        elif e.op == "*":
            linear, by = a if is_linear(a[0]) else a[::-1]
            assert not is_linear(by), "a product of rates is not linear"
            give(linear, slope * by)
        elif e.op == "/":
            give(a[0], node("/", slope, a[1]))
        elif e.op == "?":
            give(a[1], select(a[0], slope, 0.0))
            give(a[2], select(a[0], 0.0, slope))
        else:
            raise ValueError(f"{e.op} of a rate is not linear")
    return found


def is_linear(e: Any) -> bool:
    """Whether an expression depends on rates."""
    return isinstance(e, Expression) and e.kind == "reals" and not (e.op == "value" and e.args[0] == NOTHING)


# ---- a motion ------------------------------------------------------------------------------------------------------------------


def step_adjoint(tree: AdjointTree) -> None:
    """Slopes by the start of a step, and by what acts in it, from those by its end."""
    p = tree.whole
    with tree.backwards():
        end_step(tree)
    p.say("real moved_before = real(0.0);")
    with p.block(f"for (int pass = 0; pass < {PASSES}; ++pass) {{"):
        with tree.backwards():
            update_twists(tree, follow)
        changes = [f"rate(own + {START[n] + k})" for n in ("z", "zv", "zl") for k in range(SIZES[n])]
        changed = " ".join(f"moved += {x}*{x};" for x in changes)
        p.say(f"real moved = real(0.0); for (int i = 0; i < links; ++i) {{ {tree.place_of_link()} {changed} }}")
        with tree.backwards():
            tree.second_gear.linearize(tree, anew=False)
        p.say(f"if (!again || (pass > 0 && moved <= real({LEFT!r})*moved_before)) break;")
        p.say("if (pass == 0) moved_before = moved;")
    with tree.backwards():
        for link in tree.links():
            for joint in link.joints():
                seed_commands(joint, link)
            seed_pushes(link)
        update_twists(tree)
        linearize_laws(tree)


def impact_adjoint(tree: AdjointTree) -> None:
    """Slopes before an impact from those after it; numbers are those that `step.fit_speeds` left."""
    tree.rated, tree.rests = frozenset(IN_IMPACT), True
    with tree.backwards():
        meet_impact(tree)
    tree.rated, tree.rests = frozenset(IN_STEP), False


def state_adjoint(tree: AdjointTree, first: str) -> None:
    """Slopes by the state at the start of a step, from those by how it is read; `first`, C++: whether it is the first."""
    p = tree.whole
    with tree.backwards():
        read_ends(tree)
    with p.block(f"if ({first}) {{"), tree.backwards():
        for link in tree.links():
            for joint in link.joints():
                seed_speeds(joint, link)
    with tree.backwards():
        place_links(tree)
    with p.block(f"if ({first}) {{"), tree.backwards():
        for link in tree.links():
            for joint in link.joints():
                seed_place(joint, link)
