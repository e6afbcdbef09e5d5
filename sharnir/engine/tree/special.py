"""Code for the trees of one model: topology, axes, kinds of joints and which laws act are constants; all values are arrays.

Vectors are in the links' own axes. What the model has now decides which laws the code has (`acting_laws`); values of laws that it
has not are compared with those that it takes for granted, before each call. Where they are others, where joints are disabled, a
tree sleeps or outer forces act, and where a step needs the exact derivative, the world is marked (`TreeStep.mark`) and left to
the code for any forest.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from sharnir.core.shorten import RULES
from sharnir.core.types import PRECISION
from sharnir.emit.algebra import Vector
from sharnir.emit.expressions import value
from sharnir.emit.program import QUOTIENTS, UNDEFINED
from sharnir.engine.tree.around import special_kernel
from sharnir.engine.tree.build import Place, Plan
from sharnir.engine.tree.code import CHOICES, LEFT, LOOSE, SIMULATION, VARIABLES, Unrolled, stored_fields
from sharnir.engine.tree.forest import (
    BALL,
    INERTIAL,
    JOINT_LAWS,
    LAWS,
    LAWS_3,
    OFF,
    PARAMETERS,
    PRESCRIBED,
    SEVERAL,
    Forest,
)
from sharnir.engine.tree.history import KEPT
from sharnir.engine.tree.placement import ALL_MADE, FENCE, IN_SHARED, NUMBER, Placement, read_early
from sharnir.engine.tree.runtime import CPP, LAWS_CHANGED, LOG_ROW, LOGGED, OWN_AXES, ROOM, SLOTS, STEEP
from sharnir.engine.tree.special_call import call_kernel
from sharnir.engine.tree.step import finish, report, solve
from sharnir.engine.tree.storage import IMPULSES, LAW, LAW_3, REPORT, REPORT_3, SIZES, TOGETHER, LinkView, offsets
from sharnir.engine.tree.unrolled import JUDGED_ANEW, JudgedAxes, UnrolledTree
from sharnir.laws.axis import INFINITE

GROUPS: dict[tuple[str, ...], tuple[str, ...]] = {
    ("stiffness",): ("stiffness", "rest"),
    ("damping",): ("damping",),
    ("friction_static", "friction_dynamic"): ("friction_static", "friction_dynamic"),
    ("friction_viscous",): ("friction_viscous",),
    ("friction_stribeck",): ("friction_stribeck",),
    ("friction_load",): ("friction_load",),
    ("limit_lower", "limit_upper"): ("limit_lower", "limit_upper"),
    ("restitution",): ("restitution",),
    ("servo_kp", "servo_kd", "servo_torque"): (
        "servo_kp", "servo_kd", "servo_torque", "servo_position", "servo_velocity", "servo_max_force",
    ),
    ("resistance",): (
        "resistance", "inductance", "torque_constant", "gear_ratio", "efficiency", "voltage", "rotor_inertia",
    ),
    ("implicit",): ("implicit",),
}  # fmt: skip
"""Values of laws that are arrays if one of the first is not that of a law that is absent."""
ENABLING = {name for first in GROUPS for name in first} | {"effort"}
LOGGED_AT = offsets(LOGGED)
PAST = {f"{name}{k}" for name in ("z", "zv", "zl") for k in range(1, KEPT[CPP] + 1)}  # fields that a step reads and writes once
AT_ONCE = 64  # numbers that are read before they are written
POTENT = (
    "stiffness", "damping", "friction_static", "friction_dynamic", "friction_viscous", "friction_load", "limit_lower",
    "limit_upper", "servo_kp", "servo_kd", "servo_torque", "effort", "resistance",
)  # values without which no law acts on an axis  # fmt: skip


def acting_laws(model: Any, control: Any) -> dict[str, np.ndarray]:
    """(speeds, worlds) values of laws by name, as they are now."""
    from sharnir.engine.tree.code import TABLES

    out = {}
    for name in LAWS:
        where = TABLES.get(name, f"control.{name}").split(".")
        owner = control if where[0] == "control" else model.axes
        out[name] = np.clip(np.asarray(getattr(owner, where[1]).numpy(), float), -INFINITE, INFINITE)
    return out


def read_together(pairs: list[tuple[str, str]]) -> Iterator[str]:
    """Statements that read places for numbers: many at a time, before any is written, so that no read waits for another."""
    for k in range(0, len(pairs), AT_ONCE):
        some = list(enumerate(pairs[k : k + AT_ONCE], k))
        yield "{" + " ".join(f"const real read{n} = {place};" for n, (_, place) in some)
        yield " ".join(f"{own} = read{n};" for n, (own, _) in some) + "}"


def is_absent(name: str, place: str) -> str:
    """The condition that a law does not act: its value is that of none."""
    compare = {"limit_lower": "<=", "limit_upper": ">=", "servo_max_force": ">="}.get(name, "==")
    return f"({place} {compare} real({LAWS[name]!r}))"


class SpecialJudged(JudgedAxes):
    """Axes whose laws are judged; laws that none of them has are constants."""

    def __init__(self, program: Any, absent: set[str], listed: Sequence[str] = ()) -> None:
        super().__init__(program)
        self.absent, self.listed = absent, listed

    def get(self, at: str, name: str) -> list[Any]:
        if name in self.absent:
            return [LAWS[name]]
        return [self.program.read(f"listed_{name}({at})")] if name in self.listed else super().get(at, name)

    def put(self, at: str, name: str, x: list[Any]) -> None:
        if name in self.listed:
            self.program.write(f"listed_{name}({at})", x[0])
        else:
            super().put(at, name, x)


class SpecialTree(UnrolledTree):
    """Every number of every link is a variable; parameters are read once, those that cannot vary are constants.

    Args:
        forest: links, with the values of laws that act in some world.
        axes: number of the first speed of every link.
        varied: by name of `INERTIAL`, (links, numbers) whether worlds differ.
    """

    begins, leaves = True, True

    def __init__(
        self, forest: Forest, program: Any, on_gpu: bool, axes: Any, varied: dict[str, np.ndarray], own_axes: bool = True
    ) -> None:  # fmt: skip
        super().__init__(forest, program, own_axes, on_gpu, axes)
        self.varied, self.on_gpu = varied, on_gpu
        self.constants: dict[str, str] = {}  # of the code, and the places that they are read from
        self.checks: dict[str, str] = {}  # places of values that are taken for granted, and their names
        self.present = [self._present(i) for i in range(len(forest))]
        self.listed: dict[str, list[str]] = {}  # numbers of axes that are judged in a loop: in shared memory, at places of it

    def links(self, inward: bool = False) -> Iterator[LinkView]:
        if self.on_gpu:
            self.program.forget(FENCE)
        links: Iterator[LinkView] = super().links(inward)
        return links

    def _present(self, i: int) -> set[str]:
        laws = self.forest.links[i].laws
        if not laws:
            return set()
        several = self.kind_of(i) in SEVERAL and not np.any(laws.get("effort", 0.0))
        out = set() if several else {"effort"}  # three numbers, and what follows from them: only if a force is commanded
        for first, group in GROUPS.items():
            if any(np.any(np.asarray(laws.get(n, LAWS[n]), float) != LAWS[n]) for n in first):
                out |= set(group)
        return out

    def get(self, i: int, name: str) -> list[Any]:
        if name == "command_3" and "effort" not in self.present[i]:
            return [0.0] * 3
        if name in REPORT:
            return [self.program.read(self._logged(i, name, k)) for k in range(SIZES[name])]
        if name not in PARAMETERS:
            return super().get(i, name)
        if (name in LAW or name in LAW_3) and not self.acts(i):
            return [0.0] * SIZES[name]
        return [self._parameter(i, name, k, x) for k, x in enumerate(self.forest.values(i)[name])]

    def _parameter(self, i: int, name: str, k: int, x: float) -> Any:
        of_axis = LAWS_3.get(name, name)
        if name in JOINT_LAWS:
            if name in ("reaction", "loaded"):
                return self.program.read(f"joint_{name}({i})")
            return x
        if of_axis in LAWS:
            several = self.kind_of(i) in SEVERAL
            if several != (name in LAWS_3) or k >= max(1, int(self.forest.links[i].laws.get("slides", 3))):
                return LAWS[of_axis]
            place = f"law_{of_axis}({self.axes[i] + k})"
            if of_axis not in self.present[i]:
                if of_axis in ENABLING:
                    self.checks[place] = of_axis
                return LAWS[of_axis]
            return self._constant(f"{of_axis}_{i}_{k}", place)
        if name == "frame":
            same = not self.varied["frame"][i].any()
        else:
            same = x == 0.0 and not self.varied[name][i, k]
        if same:
            return x
        at = sum(INERTIAL.values()) * i + self.start[name] + k
        if not any(v.any() for v in self.varied.values()):  # at constant places, which many threads read together
            return self.program.read(f"shared_parameter({at})" if self.on_gpu else f"parameters[{at}]")
        return self._constant(f"{name}_{i}_{k}", f"parameter({at})")

    def idle_checks(self) -> Iterator[str]:
        """Conditions that nothing acts on axes without laws."""
        for i, first in enumerate(self.axes):
            if self.acts(i) or first < 0:
                continue
            several = self.kind_of(i) == BALL
            names = [n for n in POTENT if not (several and n.startswith("limit"))]  # of a ball they are the joint's
            each = (is_absent(n, f"law_{n}({first + k})") for n in names for k in range(3 if several else 1))
            yield f"((x.acts.data[{i} + {len(self.forest)}*w] == 0) | ({' & '.join(each)}))"

    def report_idle(self) -> None:
        """Laws give no impulses to axes without them."""
        for i, first in enumerate(self.axes):
            if not self.acts(i) and first >= 0:
                for name in REPORT_3 if self.kind_of(i) == BALL else IMPULSES:
                    self.put(i, name, [0.0] * SIZES[name])

    def put(self, i: int, name: str, x: list[Any]) -> None:
        """What a step reports is logged, vectors in the world's axes."""
        if name not in REPORT:
            if name != "command_3" or "effort" in self.present[i]:
                super().put(i, name, x)
            return
        if len(x) == 3 and name not in REPORT_3:
            base = self.forest.links[i].base
            x = x if base < 0 else list(self.turns[base] @ Vector(*x))
        self.log(i, name, x)

    def log(self, i: int, name: str, x: Any) -> None:
        for k, number in enumerate(x):
            self.program.write(self._logged(i, name, k), number)

    def _logged(self, i: int, name: str, k: int) -> str:
        return f"log_rows[{(LOG_ROW * i + LOGGED_AT[name.removesuffix('_3')] + k) * TOGETHER}]"

    def log_motion(self) -> None:
        """Log velocities of the start of the step, and keep the links' axes of then."""
        self.turns: dict[int, Any] = {}
        scale = 2.0 / self.h
        for link in self.links():
            base = self.forest.links[link.at].base
            frame = link.frame if base < 0 else self.turns[base] @ link.frame
            for joint in link.joints():
                self.turns[link.at] = R = frame @ joint.turned(link)
                self.log(link.at, "V", R @ link.V * scale)
                self.log(link.at, "W", R @ link.W * scale)

    def _constant(self, name: str, place: str) -> Any:
        self.constants[name] = place
        return value(name)

    def judged_links(self) -> Iterator[LinkView]:
        absent = set(LAWS) - {n for p in self.present for n in p}
        rare = {"resistance": ("motor_back", "motor_rotor", "motor_push", "motor_c"), "friction_load": ("load",)}
        none = {field for law, fields in rare.items() if law in absent for field in fields}
        self.judged = tuple(n for n in self.judged if n not in none)
        axes = self.judged_axes()
        laws = [n for n in LAWS if n not in absent and all(n in self.present[i] for i in axes)]
        fields = [*self.judged, *JUDGED_ANEW, *laws]
        if self.on_gpu and axes and len(fields) * len(axes) <= IN_SHARED[CPP]:
            self.listed = {name: [f"{name}_{i}_0" for i in axes] for name in fields}
        for link in super().judged_links():
            if not isinstance(link.tree, JudgedAxes):
                yield link
                continue
            judged = SpecialJudged(self.program, absent, tuple(self.listed))
            judged.laws_are_rows = self.laws_are_rows
            yield LinkView(judged, link.at)

    def gather(self, axes: list[int], names: tuple[str, ...]) -> None:
        if not self.listed:
            super().gather(axes, names)

    def scatter(self, axes: list[int], names: tuple[str, ...]) -> None:
        if not self.listed:
            super().scatter(axes, names)


class Special(Unrolled):
    """The C++ of a specialized step: the body of a function that makes some steps of one world."""

    def __init__(self, forest: Forest, real: str, on_gpu: bool, places: list[Place], varied: dict[str, np.ndarray]) -> None:
        axes = [p.axis for p in places]
        super().__init__(forest, real, SIMULATION, True, on_gpu, axes)
        self.places, self.on_gpu = places, on_gpu
        self.bodies = [p.body if p.kind != PRESCRIBED else -1 for p in places]  # of every link; −1: none that may come to rest
        self.tree: Any = self.make_tree(forest, self.program, on_gpu, axes, varied)
        self.tree.kept = KEPT[real]

    make_tree: Any = SpecialTree

    def _copies(self) -> Iterator[tuple[str, str]]:
        for i, link in enumerate(self.forest.links):
            at = self.source.first + ROOM * i
            for name, size in stored_fields(link.kind, self.source.turns, self.real) if link.kind != OFF else ():
                for k in range(size):
                    if f"{name}_{i}_{k}" in self._used:
                        yield f"{name}_{i}_{k}", f"stored({at})"
                    at += 1

    def _past(self) -> set[str]:
        return {own for own, _ in self._copies() if own.rsplit("_", 2)[0] in PAST}

    def _place(self, body: str) -> Placement:
        """Where the numbers of links are kept on a GPU; on a CPU they are variables."""
        if not self.on_gpu:
            return Placement("", self.real, set(), set())
        once = self._past() | {own for own, place in self.tree.constants.items() if place.startswith("parameter(")}
        listed = [name for names in self.tree.listed.values() for name in names]
        self._used |= set(listed)
        shared = 0 if any(v.any() for v in self.tree.varied.values()) else sum(INERTIAL.values()) * len(self.forest)
        return Placement(body, self.real, once, {own for own, _ in self._copies()}, listed, shared)

    def load(self) -> str:
        return "\n".join(read_together(list(self._copies())))

    def store(self) -> str:
        return "\n".join(f"{place} = {own};" for own, place in self._copies() if own in self._changed)

    def simulation(self) -> str:
        p, tree = self.program, self.tree
        with p.block(f"while (!{ALL_MADE}(done)) {{ if (done) continue;" if self.on_gpu else "for (;;) {"):
            self.take_up()
            p.say("if (whole) { whole = false; ++made; hit = stopped; stopped = 0;")
            p.say(self._rests())
            p.say(f"if (made >= steps) {self._rest} count = 0; taken = real(0.0); hit = 0; }}")
            p.say("unknown = false; learned = false;")
            solve(tree)
            p.say(f"if (failed && !(change <= real({LOOSE})*rounding) && !(coarse && count >= most)) {{")
            p.say(f"restarted = true; x.mark.data[w] = {STEEP}; {self._rest} }}")
            p.say("failed = 0;")
            # what stands still may fall asleep in this step; then it is the last one
            p.say(f"const bool early = todo - made > {SLOTS};")
            p.say("const bool reporting = !early || idling;")
            with p.block("if (reporting) {"):
                p.say(f"x.part.data[w] = h; const int slot = early ? 0 : {SLOTS} - (todo - made);")
                rows = LOG_ROW * len(self.forest) * TOGETHER
                p.say(f"real* const log_rows = x.log.data + ((size_t)(w/{TOGETHER})*{SLOTS} + slot)*{rows} + w%{TOGETHER};")
                tree.log_motion()
                report(tree)
                tree.report_idle()
                p.say("if (slot == 0) reported = 0; ++reported; slot_end = slot + 1;")
            finish(tree)
            p.say("whole = true;")
        body = p.finish()
        self._used = set(NUMBER.findall(body))
        self._changed = set(re.findall(r"^([A-Za-z]\w*_\d+_\d+) = ", body, re.M))
        self.placement = self._place(body)
        if self.on_gpu:
            body = read_early(body, self._past())
        return "\n".join(self._lines(body)).replace("{real}", self.real)

    def _rests(self) -> str:
        """How long slow bodies have stood still (`sleep.count_idle`); where some may sleep now, and after the last step, this is
        left to what comes after the launch.
        """
        links = [i for i, body in enumerate(self.bodies) if body >= 0]
        trees = max(1, len(set(self._trees_of(links))))

        def square(name: str, i: int) -> str:
            return "(" + " + ".join(f"{name}_{i}_{k}*{name}_{i}_{k}" for k in range(3)) + ")"

        slow = [
            f"still[{n}] = {square('V', i)} + reach_{n}*{square('W', i)} <= slowest; slow = slow || still[{n}];"
            for n, i in enumerate(links)
        ]
        return f"""if (watching) {{ bool still[{max(1, len(links))}], slow = false;
{" ".join(slow)}
if ((slow || idling) && made < steps) {{ const real after = x.settings.sleep.data[0]; bool due = false;
bool all[{trees}], one[{trees}]; for (int k = 0; k < {trees}; ++k) {{ all[k] = true; one[k] = false; }}
for (int k = 0; k < {len(links)}; ++k) {{ const real idle = x.state.idle.data[bodies[k]*worlds + w];
const bool ready = still[k] && idle + h >= after; all[trees[k]] = all[trees[k]] && ready;
if (ready && wp::floor((idle + h)/after) > wp::floor(idle/after)) one[trees[k]] = true; }}
for (int k = 0; k < {trees}; ++k) due = due || (all[k] && one[k]);
if (due) steps = made;
else {{ idling = slow; for (int k = 0; k < {len(links)}; ++k) {{ real& idle = x.state.idle.data[bodies[k]*worlds + w];
idle = still[k] ? idle + h : real(0.0); }} }}
}} x.slow.data[w] = slow || idling; }} else x.slow.data[w] = false;"""

    def _trees_of(self, links: list[int]) -> list[int]:
        """Numbers of the trees of some links: a tree sleeps as a whole."""
        roots: list[int] = []
        for i, link in enumerate(self.forest.links):
            roots.append(i if link.base < 0 else roots[link.base])
        first = sorted({roots[i] for i in links})
        return [first.index(roots[i]) for i in links]

    def _resting_tables(self) -> Iterator[str]:
        """Bodies that may come to rest, and how far they reach."""
        links = [i for i, body in enumerate(self.bodies) if body >= 0]
        yield f"const int bodies[{max(1, len(links))}] = {{{', '.join(str(self.bodies[i]) for i in links)}}}; (void)bodies;"
        of = self._trees_of(links)
        yield f"const int trees[{max(1, len(of))}] = {{{', '.join(map(str, of))}}}; (void)trees;"
        yield "const real slowest = real(0.25)*h*h*x.slowest*x.slowest;"
        yield from (f"const real reach_{n} = x.reach.data[{i}]*x.reach.data[{i}];" for n, i in enumerate(links))
        some = " | ".join(f"(x.state.idle.data[{self.bodies[i]}*worlds + w] > real(0.0))" for i in links) or "false"
        yield f"bool idling = watching && ({some});"

    @property
    def _rest(self) -> str:
        """C++: a world makes no further steps; on a GPU it waits for the others of its block, whose threads meet before each."""
        return "{ done = true; continue; }" if self.on_gpu else "break;"

    def _lines(self, body: str) -> Iterator[str]:
        tree, names = self.tree, {name: self.source.laws(name) for name in LAWS}
        yield "typedef {real} real;"
        yield "auto& x = t.data[0]; const int todo = x.todo.data[w]; x.now_made.data[w] = 0;"
        yield "int steps = todo - after, reported = 0, slot_end = 0;"
        none = "todo == 0 || (steps <= 0 && checking == 0)"
        yield f"bool done = {none};" if self.on_gpu else f"if ({none}) return 0;"
        yield QUOTIENTS.format(doubles=int(self.real == "double"))
        yield VARIABLES
        yield SPECIAL_HEAD
        yield f"const real tolerance = x.{'acted_tolerance' if tree.any_acts else 'tolerance'};"
        yield from (f"#define law_{name}(a) {place}" for name, place in names.items())
        yield from (f"#define joint_{name}(i) {place}" for name, place in self.source.joint_laws.items())
        checks = [is_absent(name, place) for place, name in sorted(tree.checks.items())] + list(tree.idle_checks())
        if checks:
            # without short circuits, so that no read waits for another
            fit = f"{'done | ' if self.on_gpu else ''}{' & '.join(checks)}"
            yield f"if (checking && !({fit})) {{ x.mark.data[w] = {LAWS_CHANGED}; x.todo.data[w] = 0;"
            yield f"if (x.fresh.data[w]) rows[0] = real(0.0); {'done = true;' if self.on_gpu else 'return 0;'} }}"
        yield "done = done || steps <= 0;" if self.on_gpu else "if (steps <= 0) return 0;"
        yield f"const bool none = {'done' if self.on_gpu else 'false'};"
        placed = self.placement.places
        used = [n for n in sorted(self._used) if n not in tree.constants and not n.startswith("judged_")]
        if self.on_gpu:
            yield from self.placement.begin()
            firsts = {name: self.placement.shared.index(names[0]) for name, names in tree.listed.items()}
            yield from (f"#define listed_{name}(k) shared_number({first} + (k))" for name, first in firsts.items())
            yield from (f"{name} = real(0.0);" for name in used if name in placed)
        yield from read_together([(name, place) for name, place in tree.constants.items() if name in placed])
        yield from (f"const real {name} = {place};" for name, place in tree.constants.items() if name not in placed)
        yield "real " + ", ".join(f"{n} = real(0.0)" for n in used if n not in placed) + ";"
        yield from self._resting_tables()
        yield SPECIAL_BEGIN
        yield self.load()
        yield body
        yield "if (none) return 0;"
        yield f"stored(1) = real({OWN_AXES} + {CHOICES}*choice) + (restarted ? real(0.5) : real(0.0));"
        yield self.store()
        if self.on_gpu:
            yield from self.placement.end()
            yield from (f"#undef listed_{name}" for name in tree.listed)
        yield from (f"#undef {name}" for name in ("stored", "parameter", *(f"law_{n}" for n in names)))
        yield from (f"#undef joint_{name}" for name in JOINT_LAWS)
        yield UNDEFINED
        yield SPECIAL_END


SPECIAL_HEAD = """int off = 0; (void)off; const bool pushing = false; (void)pushing;
const int worlds = x.worlds;
const real h = x.settings.dt.data[0], dt = h, law_tolerance = x.law_tolerance; (void)law_tolerance;
const real per_metre = x.settings.per_metre.data[0], rounding = x.rounding; (void)per_metre; (void)dt;
const int limit = x.settings.iterations.data[1], most = x.settings.iterations.data[2];
const bool coarse = x.settings.iterations.data[3] == 1, watching = x.settings.sleep.data[0] < real(1.0e30);
const real gx = x.settings.gravity.data[w][0], gy = x.settings.gravity.data[w][1], gz = x.settings.gravity.data[w][2];
const real fall = h*wp::sqrt(gx*gx + gy*gy + gz*gz); (void)fall;
const real gravity0 = real(0.25)*h*h*gx, gravity1 = real(0.25)*h*h*gy, gravity2 = real(0.25)*h*h*gz;
real* const rows = x.state.tree.data + w;
const real* const parameters = x.parameters.data + w*x.parameter_world; const int parameter_stride = x.parameter_stride;
#ifdef __CUDA_ARCH__
__builtin_assume(__isGlobal(rows)); __builtin_assume(__isGlobal(parameters));
#endif
#define stored(k) rows[(k)*worlds]
#define parameter(k) parameters[(k)*parameter_stride]"""
SPECIAL_BEGIN = """int made = 0, hit = 0; real taken = real(0.0); const int fresh = x.fresh.data[w];
bool renew = fresh > 0, whole = false; stopped = fresh; if (!none) x.fresh.data[w] = 0;
if (!fresh) { const int kept = (int)stored(1); choice = (kept - OWN)/CHOICES; restarted = stored(1) - real(kept) > real(0.25); }
""".replace("CHOICES", str(CHOICES)).replace("OWN", str(OWN_AXES))
SPECIAL_END = (
    LEFT
    + """x.passes.data[w] = count; x.parts.data[w] = 1; x.change.data[w] = left_over; x.taken.data[w] = taken;
x.reported.data[w] = reported; x.slot_end.data[w] = slot_end;
x.work.data[w] += work; x.hit.data[w] = hit; x.now_made.data[w] = made; x.todo.data[w] = failed ? 0 : todo - made;
return made;"""
)


def varied_numbers(plan: Plan) -> dict[str, np.ndarray]:
    """By name of `INERTIAL`, (links, numbers) whether worlds differ."""
    varied = {}
    for name, x in plan.numbers.items():
        other = np.abs(x - x[:, :1]).max(1) > 0
        if name == "inertia":
            other = np.stack([other[..., r, c] for r, c in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))], -1)
        varied[name] = other.reshape(len(plan.places), -1)
    return varied


class Specialized:
    """The specialized form of a plan: its code, and what it takes for granted."""

    def __init__(self, plan: Plan, model: Any, control: Any, on_gpu: bool) -> None:
        self.on_gpu = on_gpu
        self.laws = self._of_links(plan, model, control)
        self.forest = plan.forest(self.laws)
        self.varied = varied_numbers(plan)
        code = Special(self.forest, CPP, on_gpu, plan.places, self.varied)
        self.body = code.simulation()
        self.placement = code.placement
        self.scratch = len(code.placement.scratch)
        """Numbers of a world in global memory that nothing else uses."""

    def fits(self, plan: Plan, model: Any, control: Any) -> bool:
        """Whether the code is that for the laws that act now, with whatever values."""
        return self._present(self._of_links(plan, model, control)) == self._present(self.laws)

    @staticmethod
    def _present(laws: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """What code depends on: which laws of axes act, and what joints are."""
        return [{n: x if n in JOINT_LAWS else bool(np.any(x != LAWS[n])) for n, x in own.items()} for own in laws]

    @classmethod
    def _of_links(cls, plan: Plan, model: Any, control: Any) -> list[dict[str, Any]]:
        """Values of laws that act in some world."""
        laws = acting_laws(model, control)
        acts: Any = control.acts.numpy().any(-1) if len(model.joint_kinds) else np.zeros(0, bool)
        forced: Any = laws["effort"].any(-1) if model.speeds else np.zeros(0, bool)
        out: list[dict[str, Any]] = []
        for p in plan.places:
            own: dict[str, Any] = {}
            if p.joint >= 0 and p.axis >= 0:
                kind = model.joint_kinds[p.joint]
                first = int(model.v_start[p.joint])
                n = 1 if p.kind not in SEVERAL else (len(p.slots) or 3)
                if acts[p.joint] or forced[first : first + kind.v_size].any() or p.slots:
                    own = {name: cls._told(x[p.axis : p.axis + n], name, n) for name, x in laws.items()}
                    own |= cls._of_joint(model, p, n)
            out.append(own)
        return out

    @staticmethod
    def _told(x: np.ndarray, name: str, n: int) -> Any:
        """Of each axis, a value that is not that of a law that is absent, if a world has one."""
        other = (x != LAWS[name]).any(-1)
        found = np.where(other, x[np.arange(n), (x != LAWS[name]).argmax(-1)], LAWS[name])
        return float(found[0]) if n == 1 else np.append(found, [LAWS[name]] * (3 - n))

    @staticmethod
    def _of_joint(model: Any, p: Any, n: int) -> dict[str, float]:
        groups = model.axes.group.numpy()
        ball = model.joints.ball.numpy()
        grouped = n > 1 and groups[p.axis + 1] == groups[p.axis]
        return {"grouped": float(grouped), "ball_limit": float(ball[p.joint]), "sense": float(p.sense), "slides": float(n)}

    def kernel(self, threads: int = 0) -> Any:
        """The kernel of steps, for blocks of so many threads on a GPU, or of whole calls on a CPU; the same for the same code."""
        name = "sharnir.tree_" + hashlib.sha256(f"{PRECISION}{threads}{RULES}{self.body}".encode()).hexdigest()[:16]
        if name not in _kernels:
            if not self.on_gpu:
                _kernels[name] = call_kernel(self.body, name)
                return _kernels[name]
            shared = self.placement.of_block(threads) if threads else 0
            _kernels[name] = special_kernel(self.body, name, self.placement.enter(), shared)
            _kernels[name].module.options["block_dim"] = threads or 1
        return _kernels[name]


_kernels: dict[str, Any] = {}  # by module name
