"""The step of a forest as C++: the body of a function that advances one world by some steps.

Two functions are written: that of `kernel.TreeRunner`, which has a forest and nothing else, and that of `runtime`, which has the
state of a simulation (`Source`). Each of them in two forms: a loop over the links of any forest, or code for one. What is kept
between calls is stored [number, world], link by link.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

from sharnir.emit.program import QUOTIENTS, UNDEFINED, Program
from sharnir.engine.tree.contact_rows import LawLoopTree
from sharnir.engine.tree.forest import FREE, INERTIAL, JOINT_LAWS, LAWS, ONE_AXIS, PRESCRIBED, SEVERAL, TURNING, Forest
from sharnir.engine.tree.history import FIRST, KEPT
from sharnir.engine.tree.islands import clear_raised, note_momenta, pay_raising, restore_momenta
from sharnir.engine.tree.ropes import TABLES as ROPE_TABLES
from sharnir.engine.tree.ropes import RopedLawTree, RopedLoopTree
from sharnir.engine.tree.row_storage import RowLoopTree
from sharnir.engine.tree.step import close_pose, finish, guess, place_links, project, repair_limits, report, solve, step
from sharnir.engine.tree.storage import (
    BEST_RATE,
    FIELDS_OF,
    FIRST_RATE,
    GATHERED,
    HISTORY,
    MEMORY,
    PREPARED,
    PUSH,
    ROW,
    ROW_APART,
    SIZES,
    START,
    TOGETHER,
    LoopTree,
    all_weights,
)  # fmt: skip
from sharnir.engine.tree.unrolled import UnrolledTree

PER_LINK = sum(INERTIAL.values())
CHOICES = 32  # by which the number of a guess is multiplied, to be stored with the gear, which is less
FINEST, FINEST_OF_ROPES = 1 << 8, 1 << 16  # parts into which a step may be divided
CUTS = 24  # by impacts, at most
LOOSE = 10  # times what changes by rounding: what iterations that come no nearer may miss
VARIABLES = """int count = 0, failed = 0, parts = 0;
real change = real(0.0), before = real(0.0), lost = real(0.0), work = real(0.0);
int changed = 0, wrong = 0, fewest = 0, patience = 0, stopped = 0;
const real tiny = real(sizeof(real) == 4 ? 1e-6 : 1e-14), root_epsilon = real(sizeof(real) == 4 ? 3.5e-4 : 1.5e-8);
bool acted = false, one = false, unknown = false, learned = false, suspect = false;
int gear = 0; bool restarted = false, guesses = true; real onward = real(1.0), smooth = real(0.0), sharper = real(0.0);
bool stale = false; int tries = 0, stalls = 0, choice = FIRST; real left_over = real(0.0);
real missed0, missed1, missed2, missed3, missed4, missed5;""".replace("FIRST", str(FIRST))
SCALED = ("V", "W", *HISTORY)  # fields that are proportional to the step
SHARED = {"row_of_world": "real* const", "kinds": "const int* const", "bases": "const int* const", "acts": "const int* const"}
SHARED |= {"links": "const int", "worlds": "const int", "h": "const real"}
"""What the functions of a loop are given."""


@dataclass(frozen=True)
class Source:
    """Where the code finds what it needs: C++ before the loads, the first row of the stored state, whether it has cosines."""

    head: str
    first: int
    turns: bool
    laws: Callable[[str], str]  # the place of a law's parameter, of the axis (a)
    joint_laws: dict[str, str]  # the same of the joint of link (i)
    owner: str = ""  # what has the tables of rows beside the forest
    goes_on: str = "false"  # C++: whether laws are as they were when steps were made last


def _runner_head() -> str:
    return """const real quarter = real(0.25)*h*h, fall = h*wp::sqrt(gx*gx + gy*gy + gz*gz);
const real gravity0 = quarter*gx, gravity1 = quarter*gy, gravity2 = quarter*gz;
const int* const bases = base_of.data; const int* const kinds = kind_of.data; const int* const acts = acts_on.data;
#define stored(k) state.data[(k)*worlds + w]
#define parameter(k) parameters.data[(k)*parameter_stride + w*parameter_world]
#define axis_of(i) (3*(i))
const int most = 1 << 30; const real per_metre = real(1.0), rounding = real(400.0)*tolerance, closed_gap = rounding;
real* const numbers = memory.data; const int memory_worlds = worlds; (void)memory_worlds;
const int memory_size = {row}*(links + 1);""".replace("{row}", str(ROW + ROW_APART))


def _value(name: str, row: str) -> str:
    columns = [*LAWS, *JOINT_LAWS]
    return f"law_values.data[({columns.index(name)} + {len(columns)}*({row}))*parameter_stride + w*parameter_world]"


RUNNER = Source(_runner_head(), 0, False, lambda name: _value(name, "a"), {n: _value(n, "3*(i)") for n in JOINT_LAWS})

TABLES = {
    "stiffness": "axes.stiffness", "rest": "axes.rest", "damping": "axes.damping", "limit_lower": "axes.lower",
    "limit_upper": "axes.upper", "restitution": "axes.restitution", "effort": "control.joint_force",
    "resistance": "axes.resistance", "inductance": "axes.inductance", "torque_constant": "axes.torque_constant",
    "gear_ratio": "axes.gear_ratio", "efficiency": "axes.efficiency", "rotor_inertia": "axes.rotor_inertia",
    "implicit": "axes.implicit",
}  # fmt: skip
"""Where a simulation has the parameters of laws; those that are not named, in a field of `control` with the same name."""


def _table(name: str) -> str:
    at = TABLES.get(name, f"control.{name}")
    return f"(*(const real*)((const char*)x.{at}.data + (a)*x.{at}.strides[0] + w*x.{at}.strides[1]))"


SIMULATION = Source(
    f"""auto& x = t.data[0];
const int worlds = x.worlds, links = x.links;
const real dt = x.settings.dt.data[0], law_tolerance = x.law_tolerance, closed_gap = x.closed;
const real per_metre = x.settings.per_metre.data[0], rounding = x.rounding; const bool pushing = x.pushed.data[w] == 1;
const int limit = x.settings.iterations.data[1], most = x.settings.iterations.data[2];
const bool coarse = x.settings.iterations.data[3] == 1, watching = x.settings.sleep.data[0] < real(1.0e30);
const real gx = x.settings.gravity.data[w][0], gy = x.settings.gravity.data[w][1], gz = x.settings.gravity.data[w][2];
real h, fall, gravity0, gravity1, gravity2;
const int* const bases = x.base.data + w*links; const int* const kinds = x.kind.data + w*links;
const int* const acts = x.acts.data + w*links; const int* const axes_of = x.axis.data;
for (int i = 0; i < links; ++i) acted = acted || acts[i];
real tolerance = acted ? x.acted_tolerance : x.tolerance;
#define axis_of(i) axes_of[i]
#define stored(k) x.state.tree.data[(k)*worlds + w]
#define parameter(k) x.parameters.data[(k)*x.parameter_stride + w*x.parameter_world]
real* const numbers = x.memory.data; const int memory_size = {ROW + ROW_APART}*(links + 1), memory_worlds = x.memory_worlds;
(void)memory_worlds;""",
    2,
    True,
    _table,
    {
        "grouped": "real(x.axes.group.data[axes_of[i] + 1] == x.axes.group.data[axes_of[i]])",
        "ball_limit": "real(x.joint.data[i] < 0 ? 0 : x.joints.ball.data[x.joint.data[i]])",
        "sense": "real(x.sense.data[i])",
        "reaction": "(x.joint.data[i] < 0 ? real(0.0) : wp::length(*(wp::vec_t<3, real>*)((char*)x.state.joint_force.data"
        " + x.joint.data[i]*x.state.joint_force.strides[0] + w*x.state.joint_force.strides[1]))/dt)",
        "loaded": "real(x.state.time.data[w] > 0.0)",
        "slides": "real(x.slides.data[i])",
    },
    "x.",
    "x.settings.iterations.data[7] == 1 && x.drives.count == 0 && x.by_model == 0",
)

BESIDE_ROPES = "auto& both = t.data[0]; auto& x = both.tree.data[0];\n" + ROPE_TABLES
ROPED = replace(SIMULATION, head=SIMULATION.head.replace("auto& x = t.data[0];", BESIDE_ROPES))
"""The same where ropes hang on links."""


def stored_fields(kind: int, turns: bool = False, real: str = "double") -> Iterator[tuple[str, int]]:
    """Names and sizes of the state of a link, in the order in which it is stored; `turns`: with cosines and sines of angles.

    `real` is the type of its numbers in C++.
    """
    for name in FIELDS_OF[kind]:
        if name in ("c", "s") and not turns:
            continue
        history = [f"{name}{n}" for n in ("", *range(1, KEPT[real] + 1))] if name in HISTORY else [name]
        for field in history:
            yield field, SIZES[field]
    yield "V", 3
    yield "W", 3


def state_size(forest: Forest, real: str = "double") -> int:
    """Numbers of state of a world."""
    return sum(size for link in forest.links for _, size in stored_fields(link.kind, real=real))


class Form:
    """A form of the code: its tree, and the C++ of what is done with the fields of all links."""

    tree: LoopTree | UnrolledTree
    source: Source
    program: Program

    def each(self, statement: Callable[[Callable[[str, int], str], int | None], list[str]]) -> str:
        """A statement for every link; it is given the place of a field, and the kind, where that is known."""
        raise NotImplementedError

    def load(self) -> str:
        """Fields from what is stored; cosines and sines."""
        raise NotImplementedError

    def store(self) -> str:
        """The reverse."""
        raise NotImplementedError

    def rescale(self) -> str:
        """Fields for a step that is longer by `factor`."""
        push = [(n, "factor*factor") for n in PUSH if self.tree.pushed]
        rows = self.tree.rows.rescale() if self.tree.rows else ""
        return rows + self.each(
            lambda at, kind: [
                f"{at(n, k)} *= {by};"
                for n, by in [*((n, "factor") for n in SCALED if self.has(n, kind)), *push]
                for k in range(SIZES[n])
            ]
        )

    def has(self, name: str, kind: int | None) -> bool:
        """Whether links of a kind have a field."""
        return kind is None or name in dict(stored_fields(kind, real=self.real))

    @property
    def finest(self) -> int:
        """Parts into which a step may be divided."""
        return FINEST_OF_ROPES if self.tree.ropes else FINEST

    def is_slow(self) -> str:
        """Whether a body is slower than what stands still: then it is looked at whether it falls asleep."""
        return self.each(
            lambda at, kind: [
                "{ const real reach = x.reach.data[i];",
                "if (reach >= real(0.0) && !({} + reach*reach*({}) > slowest)) slow = true; }}".format(
                    *(" + ".join(f"{at(n, k)}*{at(n, k)}" for k in range(3)) for n in "VW")
                ),
            ]
        )

    def prepare(self) -> str:
        """What stays the same from call to call."""
        return ""

    def ground(self) -> str:
        """What the ground has of the step."""
        return ""

    def runner(self) -> str:
        """The body for a runner."""
        with self.program.block("for (int step = 0; step < steps; ++step) {"):
            self.program.say("unknown = false; learned = false;")
            step(self.tree)
        return self.whole("", "return count;")

    def take_up(self) -> None:
        """Velocities after something stopped, or the caller changed them, and what is guessed from these."""
        p, tree = self.program, self.tree
        for _ in tree.when_stopped():
            with p.block("for (impact = 0; ; ++impact) {") if tree.laws_are_rows else nullcontext():
                if tree.laws_are_rows:  # what is hit hits others
                    place_links(tree)
                    tree.rows.choose_impacts()
                    if tree.ropes:
                        p.say(tree.ropes.snap_first)
                project(tree)
                if tree.laws_are_rows:
                    p.say(tree.rows.note_unsolved)
                    p.say("if (last_impact) break;")
            if tree.laws_are_rows:
                p.say("lifted = real(0.0);")
            p.say("const real joules = lost*real(4.0)/(h*h); lost = real(0.0);")
            p.say("if (renew) { stopped = 0; x.projected.data[w] += joules; } else taken += joules;")
            if not tree.laws_are_rows:
                p.say("if (stopped > 0) hit = stopped;")
        with p.block("if (renew || overlaps || within > real(0.0)) {" if tree.laws_are_rows else "if (renew) {"):
            guess(tree)
            p.say("renew = false; overlaps = false;" if tree.laws_are_rows else "renew = false;")
        if tree.ropes:
            grow = f"if (within == real(0.0)) {self.grow()}" if tree.laws_are_rows else self.grow()
            p.say(f"if (kept) {{ kept = false; {tree.ropes.feed} {grow} }}")

    def close(self) -> None:
        """Poses that stand open."""
        tree = self.tree
        with self.program.block("if (renew || overlaps) {" if tree.laws_are_rows else "if (renew) {"):
            if not tree.laws_are_rows:
                close_pose(tree)
                return
            place_links(tree)
            note_momenta(tree)
            if tree.ropes:
                clear_raised(tree)
            with self.program.block("if (overlaps) {"):
                repair_limits(tree)
            close_pose(tree)
            place_links(tree)
            restore_momenta(tree)
            if tree.ropes:
                pay_raising(tree)
                tree.ropes.slow()

    def resize(self, factor: str) -> str:
        """C++: the step is longer by a factor."""
        return f"{{ const real factor = {factor}; h *= factor;\n{SET_STEP}{self.ground()}{self.rescale()}restarted = true; }}"

    def divide(self) -> str:
        """C++: a part that cannot be made is divided."""
        if not self.tree.laws_are_rows:
            return f"""if (size == 1 || count >= most) {{ broken = true; break; }}
size /= 2; {self.resize("real(0.5)")}
continue; }}"""
        return f"""if (size*part <= real(1.0) || count >= most) {{ broken = true; break; }}
if (within > real(0.0) || part < real(1.0)) part *= real(0.5); else size /= 2;
{self.resize("real(0.5)")}
continue; }}"""

    def is_whole(self) -> str:
        """C++: whether the part that is made is a whole step."""
        of_laws = " && part == real(1.0) && within == real(0.0)" if self.tree.laws_are_rows else ""
        return f"size == {self.finest}{of_laws}"

    def meet_impact(self) -> None:
        """A step in which something bounces is divided when that is closed; there, at once, is an impact."""
        self.program.say("if (cuts < most_cuts) {")
        self.tree.rows.find_impact()
        undo = self.tree.ropes.miss(self.is_whole()) if self.tree.ropes else ""
        self.program.say(f"""if (until == real(0.0)) {{ ++cuts; failed = 0; stopped = 1; restarted = true; {undo} continue; }}
if (until < real(1.0)) {{ ++cuts; failed = 0; {undo} part *= until; tolerance *= until;
{self.resize("until")}
continue; }} }}""")

    def go_on(self) -> str:
        """C++: after a part of a step."""
        if not self.tree.laws_are_rows:
            return "left -= size; ++parts;"
        return f"""++parts; within += part; {{ const bool all = within > real(1.0) - real(sizeof(real) == 8 ? 1e-12 : 1e-5);
const real rest = (all ? real(1.0) : real(1.0) - within)/part;
if (all) {{ within = real(0.0); left -= size; }}
if (rest != real(1.0)) {{ part *= rest; tolerance *= rest;
{self.resize("rest")} }} }}"""

    def grow(self) -> str:
        """C++: parts become larger again behind what made them small."""
        return f"""{{ int grown = size; while (left > 0 && grown < {self.finest} && left % (2*grown) == 0) grown *= 2;
if (grown > size) {{ {self.resize("real(grown/size)")} size = grown; }} }}"""

    def simulation(self) -> str:
        """The body for a simulation: it divides steps that do not converge, and may stop early, where a body is slow."""
        p, tree = self.program, self.tree
        tree.begins = True
        with p.block("for (;;) {"):
            if tree.rows:
                self.close()
            self.take_up()
            p.say("if (left == 0) {")
            if tree.ropes:
                p.say(tree.ropes.end_step)
            p.say(f"++made; left = {self.finest}; {'hit = stopped; ' if tree.laws_are_rows else ''}stopped = 0;")
            p.say(f"if (size < {self.finest}) {{ {self.resize(f'real({self.finest}/size)')} size = {self.finest}; h = dt; }}")
            p.say("const real slowest = real(0.25)*h*h*x.slowest*x.slowest; bool slow = false;")
            p.say("if (watching) {" + self.is_slow() + "}")
            p.say("x.slow.data[w] = slow; if (slow) steps = made;")
            p.say("if (made >= steps) break; count = 0; parts = 0; taken = real(0.0); hit = 0;")
            if tree.laws_are_rows:
                p.say("unmet = real(0.0);")
            p.say("}")
            if tree.ropes:
                p.say(tree.ropes.prepare)
            p.say("unknown = false; learned = false;")
            if tree.laws_are_rows:
                p.say(f"if (n_rows > n_equal) tolerance = {tree.rows.tolerance()};")
                p.say("swept = 0; helped = opened = false;")
            solve(tree)
            missed = f"(failed && !(change <= real({LOOSE})*rounding))"
            if tree.rows:
                long = "size*part > real(1.0)" if tree.laws_are_rows else "size > 1"  # enough to be divided
                missed = f"({missed} || ({long} && {tree.rows.are_apart()}))"
            if tree.ropes:
                p.say(tree.ropes.look)
                missed = f"({missed} || astray)"
            p.say(f"if ({missed} && !(coarse && count >= most)) {{")
            if tree.ropes:
                p.say(tree.ropes.miss(self.is_whole()))
            more = "if (onward > real(0.0)) { onward = real(0.0); restarted = true; continue; }"
            p.say(f"failed = 0; {'' if tree.ropes else more}")  # what is expected of ropes would be the same
            p.say("onward = real(1.0);")
            p.say(f"if ({self.is_whole()}) {{ {self.store()} }}")
            p.say(self.divide())
            if tree.ropes:
                p.say(tree.ropes.stop(missed))
            if tree.rows:
                p.say(f"const bool cut = {missed};")
            if tree.laws_are_rows:
                self.meet_impact()
            p.say(LEFT + "failed = 0; onward = real(1.0);")
            if tree.laws_are_rows:
                p.say(tree.rows.note_unsolved)
            p.say("x.part.data[w] = h;")
            with p.block("if (reporting) {"):
                report(tree)
            finish(tree)
            if tree.rows:  # what a step that was cut short leaves open is closed, and velocities fit again
                p.say("if (cut) { renew = true; stopped = 1; }")
            if tree.ropes:
                p.say(tree.ropes.keep)
            p.say(self.go_on())
        before = f"""int made = 0, left = {self.finest}, size = {self.finest}, hit = 0; real taken = real(0.0);
bool renew = fresh > 0, broken = false;
h = dt; stopped = fresh; if (!fresh) {{ const int kept = (int)stored(1);
gear = kept % {CHOICES}; choice = kept/{CHOICES}; restarted = stored(1) - real(kept) > real(0.25); }} {SET_STEP}"""
        if tree.rows:
            before += tree.rows.clear_responses("fresh")
        if tree.laws_are_rows:
            before += tree.rows.clear_laws()
            before += f"real part = real(1.0), within = real(0.0); int cuts = 0; const int most_cuts = {CUTS};"
        if tree.ropes:
            before += tree.ropes.start
        after = "x.passes.data[w] = count; x.parts.data[w] = parts; x.change.data[w] = left_over; x.taken.data[w] = taken;"
        if tree.laws_are_rows:
            after += " x.unsolved.data[w] = unmet;"
        after += " x.hit.data[w] = hit; x.work.data[w] += work; return broken ? -1 - made : made;"
        if tree.ropes:
            after = tree.ropes.go_back + after
        kept = f"stored(1) = real(gear + {CHOICES}*choice) + (restarted ? real(0.5) : real(0.0));"
        return self.whole(before, after, f"if (!broken) {{ {kept} {self.store()} }}")

    def whole(self, before: str, after: str, store: str | None = None) -> str:
        """The body, with the program that was recorded."""
        body = self.program.finish()
        names = {name: self.source.laws(name) for name in LAWS}
        size = "memory_with_rows" if self.tree.rows else "memory_size"
        lines = [
            "typedef {real} real;",
            QUOTIENTS.format(doubles=int(self.real == "double")),
            VARIABLES,
            self.source.head,
            *(self.tree.rows.head(self.source.owner) if self.tree.rows else ()),
            *(f"#define law_{name}(a) {place}" for name, place in names.items()),
            *(f"#define joint_{name}(i) {place}" for name, place in self.source.joint_laws.items()),
            "#ifdef __CUDA_ARCH__",
            f"const int column = w%memory_worlds, together = column/{TOGETHER}*{TOGETHER};",
            f"real* const row_of_world = numbers + (long long)together*{size} + (column - together);",
            GLOBAL,
            f"#define number(k) Global::at(row_of_world + {TOGETHER}*(k))",
            f"const int stride = {TOGETHER}; (void)stride;",
            "typedef int Place;",
            "#else",
            "typedef long long Place;  // as wide as an address: a place and its offset are one operand",
            f"real* const row_of_world = numbers + w*{size};",
            "#define number(k) row_of_world[k]",
            "const int stride = 1; (void)stride;",
            "#endif",
            *self.declare(body),
            *(self.tree.rows.solver() if self.tree.rows else ()),
            self.program.functions(),
            before,
            self.prepare(),
            self.ground(),
            self.load(),
            body,
            self.store() if store is None else store,
            *(f"#undef {name}" for name in ("number", "stored", "parameter", "axis_of", *(f"law_{n}" for n in names))),
            *(f"#undef joint_{name}" for name in JOINT_LAWS),
            *(["#undef given", "#undef given_of", *self.tree.rows.undefined()] if self.tree.rows else ()),
            UNDEFINED,
            after,
        ]
        return "\n".join(lines).replace("{real}", self.real)

    real = "double"

    def declare(self, body: str) -> list[str]:
        """Variables of the form."""
        return []


LEFT = f"""left_over = failed ? change : wp::min(change, change*(count < 2 ? real({FIRST_RATE!r})
: change > real({BEST_RATE!r})*before ? change/before : real({BEST_RATE!r})));
"""  # what is left after the last change of a step, see `storage.is_converged`
GLOBAL = """struct Global { static CUDA_CALLABLE real& at(real* p) { __builtin_assume(__isGlobal(p)); return *p; } };"""
"""A number of working memory on a GPU: that it is not on the stack of a thread tells the compiler that writes leave variables as
they are, so that these stay in registers, and are not read anew."""
SET_STEP = """fall = h*wp::sqrt(gx*gx + gy*gy + gz*gz);
gravity0 = real(0.25)*h*h*gx; gravity1 = real(0.25)*h*h*gy; gravity2 = real(0.25)*h*h*gz;
"""


class Unrolled(Form):
    """Code for one forest."""

    def __init__(
        self, forest: Forest, real: str, source: Source, own_axes: bool = True, factor_always: bool = False, axes: object = None
    ) -> None:
        self.program, self.source, self.real, self.forest = Program(), source, real, forest
        self.tree = UnrolledTree(forest, self.program, own_axes, factor_always, axes)
        self.tree.kept = KEPT[real]

    def each(self, statement: Callable[[Callable[[str, int], str], int | None], list[str]]) -> str:
        out = []
        for i, link in enumerate(self.forest.links):

            def at(name: str, k: int, i: int = i) -> str:
                return f"{name}_{i}_{k}"

            out += [f"{{ const int i = {i}; (void)i;", *statement(at, link.kind), "}"]
        return "\n".join(out)

    def _copies(self) -> Iterator[tuple[str, str]]:
        at = self.source.first
        for i, link in enumerate(self.forest.links):
            for name, size in stored_fields(link.kind, self.source.turns, self.real):
                for k in range(size):
                    yield f"{name}_{i}_{k}", f"stored({at})"
                    at += 1

    def load(self) -> str:
        turns = [
            f"c_{i}_0 = wp::cos(q_{i}_0); s_{i}_0 = wp::sin(q_{i}_0);"
            for i, link in enumerate(self.forest.links)
            if link.kind in TURNING and not self.source.turns
        ]
        return "\n".join([*(f"{own} = {place};" for own, place in self._copies()), *turns])

    def store(self) -> str:
        return "\n".join(f"{place} = {own};" for own, place in self._copies())

    def declare(self, body: str) -> list[str]:
        assert isinstance(self.tree, UnrolledTree)
        text = body + self.load() + self.rescale()
        names = [
            f"{name}_{i}_{k}" for name, size in self.tree.stored.items() for i in range(len(self.forest)) for k in range(size)
        ]
        return ["real " + ", ".join(f"{n} = real(0.0)" for n in names if n in text) + ";"]


class Loop(Form):
    """Code for any forest (with joints of some kinds)."""

    def __init__(
        self, real: str, source: Source, own_axes: bool = False, factor_always: bool = False,
        kinds: tuple[int, ...] | None = None, pushed: bool = False, second_gear: Any = None, rows: bool = False,
        touches: bool = False, more: bool = False, ropes: bool = False,
    ) -> None:  # fmt: skip
        self.program, self.source, self.real = Program(remembers=not rows, shared=SHARED), source, real
        form: Any = RowLoopTree if rows else LoopTree
        if touches or ropes:
            form = RopedLawTree if touches and ropes else LawLoopTree if touches else RopedLoopTree
        kept = {"more": more} if rows else {}
        self.tree: LoopTree = form(self.program, own_axes, factor_always, kinds, pushed, second_gear, **kept)
        if isinstance(self.tree, LawLoopTree):
            self.tree.real = real
        self.tree.kept = KEPT[real]

    def declare(self, body: str) -> list[str]:
        return [all_weights()]

    def each(self, statement: Callable[[Callable[[str, int], str], int | None], list[str]]) -> str:
        lines = statement(lambda name, k: f"number(own + {START[name] + k})", None)
        head = f"for (int i = 0; i < links; ++i) {{ if (kinds[i] < 0) continue; const Place own = {ROW}*(i + 1);"
        return "\n".join([head, *lines, "}"])

    def ground(self) -> str:
        lines = []
        if self.tree.rows:
            lines.append(self.tree.rows.clear("-1"))
        for k in range(3):
            lines += [f"number({START['u'] + k}) = -gravity{k};", f"number({START['gravity'] + k}) = gravity{k};"]
        return "\n".join(lines)

    def prepare(self) -> str:
        """What is the same in all calls, until links hang otherwise: the ground, sums of leaves, parameters.

        Working memory keeps it; the ground's `PREPARED` tells whether it does.
        """
        known = f"!fresh && number({PREPARED}) > real(0.5)" if self.source.first else "false"  # of a runner parameters may change
        lines = [f"const bool known = {known};", f"const bool same_laws = known && {self.source.goes_on}; (void)same_laws;"]
        lines.append("if (!known) {")
        lines.append(f"for (int k = 0; k < {ROW}; ++k) number(k) = real(0.0);")
        lines += [f"number({START['R'] + k}) = real(1.0);" for k in (0, 4, 8)] + [f"number({START['k']}) = real(1.0);"]
        lines.append(f"for (int i = 0; i < links; ++i) {{ const Place own = {ROW}*(i + 1);")
        lines += [f"number(own + {START[n] + k}) = real(0.0);" for n in (*GATHERED, "taken") for k in range(SIZES[n])]
        lines += [f"number(own + {START['frame'] + k}) = parameter({PER_LINK}*i + {k});" for k in range(PER_LINK)]
        if self.tree.rows:  # sums, which are taken as they are made
            lines.append(self.tree.rows.clear("i"))
        lines.append(f"if (kinds[i] == {FREE} || kinds[i] == {PRESCRIBED}) {{")  # on the ground, whatever they hung on
        lines += [f"number(own + {START['frame'] + k}) = real({int(k % 4 == 0)});" for k in range(9)]
        opens, taken = f"number({ROW}*(i + 1) + {START['opens']})", f"number({ROW}*(bases[i] + 1) + {START['taken']})"
        first = f"{opens} = {taken} > real(0.5) ? real(0.0) : real(1.0); {taken} = real(1.0);"
        lines.append(f"}} }}\nfor (int i = links - 1; i >= 0; --i) if (kinds[i] >= 0) {{ {first} }}")
        return "\n".join([*lines, f"number({PREPARED}) = real(1.0); }}"])

    def _copy(self, load: bool) -> str:
        out = ["{ real* kept = &stored(0); for (int i = 0; i < links; ++i) {", f"const Place own = {ROW}*(i + 1);"]
        if self.source.first:
            out.append("kept = &stored(x.first.data[i]);")
        out.append(f"const Place apart = {ROW}*(links + 1) + {ROW_APART}*i; (void)apart;")
        for kind in self.tree.kinds:
            out.append(f"if (kinds[i] == {kind}) {{")
            for name, size in stored_fields(kind, self.source.turns, self.real):
                for k in range(size):
                    place = self.tree.place("own", name, k)
                    out.append(f"{place} = *kept;" if load else f"*kept = {place};")
                    out.append("kept += worlds;")
            if load and kind in ONE_AXIS:  # laws stand together, where the passes need them
                out.append("if (acts[i] && !same_laws) { const int axis = axis_of(i);")
                out += [f"{self.tree.place('own', name, 0)} = law_{name}(axis);" for name in LAWS]
                out.append("}")
            if kind in SEVERAL and self.source.first:
                out += self._copy_motors(load)
            if load and kind in SEVERAL:
                out += [f"{self.tree.place('own', name, 0)} = real(0.0);" for name in ("known_3", "rubs_3")]
            if load and kind in TURNING and not self.source.turns:
                q, c, s = (f"number(own + {START[n]})" for n in "qcs")
                out.append(f"{c} = wp::cos({q}); {s} = wp::sin({q});")
            out.append("}")
        if load:
            out += [f"number(own + {START[n]}) = real(0.0);" for n in ("given", "slope", "lock", "jump", "mode", "goal")]
        return "\n".join([*out, "}}"])

    def _copy_motors(self, load: bool) -> list[str]:
        """Currents and rotors of joints with several axes, where a simulation has them."""
        out = ["for (int k = 0; k < x.slides.data[i]; ++k) {"]
        for name in ("current", "rotor"):
            own, at = f"number(apart + {START[name + '_3']} + k)", f"x.state.{name}"
            place = f"(*(real*)((char*){at}.data + (axis_of(i) + k)*{at}.strides[0] + w*{at}.strides[1]))"
            out.append(f"{own} = {place};" if load else f"{place} = {own};")
        return [*out, "}"]

    def load(self) -> str:
        return self._copy(True) + (self.tree.rows.load() if self.tree.rows and self.source.first else "")

    def store(self) -> str:
        return self._copy(False) + (self.tree.rows.store() if self.tree.rows and self.source.first else "")


assert list(MEMORY)[: len(INERTIAL)] == list(INERTIAL)  # so that they are copied as they stand


def unrolled_code(forest: Forest, real: str = "double", own_axes: bool = True, factor_always: bool = False) -> str:
    """Code for one forest, of a runner."""
    return Unrolled(forest, real, RUNNER, own_axes, factor_always).runner()


def loop_code(
    real: str = "double", own_axes: bool = False, factor_always: bool = False, kinds: tuple[int, ...] | None = None,
    rows: bool = False,
) -> str:  # fmt: skip
    """Code for any forest (with joints of these kinds), of a runner; with any rows beside the forest, or without."""
    return Loop(real, RUNNER, own_axes, factor_always, kinds, rows=rows).runner()


def loop_memory(forest: Forest) -> int:
    """Numbers of working memory of a world."""
    return (ROW + ROW_APART) * (len(forest) + 1)
