"""A step with contact as code for one model: topology, axes, kinds of joints, laws that act and places of rows are constants.

It makes the same step as the code for any forest (`generic`), by the same functions (`step`, `contact_rows`). What it is not
written for it leaves to that, with the state untouched: a world in which bodies sleep, were moved or are pushed, joints are
disabled, bodies touch each other or at more points than there is room for, and a step that does not converge or is to be divided.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import numpy as np
import warp as wp

from sharnir.collision.data import BOX, CAPSULE, CONE, CYLINDER, ELLIPSOID, KINDS, SPHERE
from sharnir.core.kernel_cache import emitted
from sharnir.core.shorten import RULES
from sharnir.core.types import CPU_FLAGS, MODULE_OPTIONS, PRECISION, real
from sharnir.emit.expressions import Expression, node, select, value
from sharnir.emit.program import QUOTIENTS, UNDEFINED
from sharnir.engine.sleep import NOBODY, fall_asleep_jointed
from sharnir.engine.tree.after import count, keep, store, store_report
from sharnir.engine.tree.branches import BRANCH, Branches, by_branch
from sharnir.engine.tree.build import LOOSE_MASK, Place, Plan
from sharnir.engine.tree.closures import CONTACT, FRICTION, LIMIT
from sharnir.engine.tree.closures import PARAMETERS as GIVEN
from sharnir.engine.tree.code import CHOICES, GLOBAL, LEFT, LOOSE, SET_STEP, VARIABLES, stored_fields
from sharnir.engine.tree.contact_runtime import NEAR_LIMIT, POINTS, clear_axes, clear_points, store_axis, store_point
from sharnir.engine.tree.forest import (
    BALL,
    FREE,
    GROUND,
    HINGE,
    INERTIAL,
    JOINT_LAWS,
    LAWS,
    LAWS_3,
    OFF,
    PARAMETERS,
    SEVERAL,
    SLIDER,
    WELD,
    Forest,
)
from sharnir.engine.tree.generic import NEVER, is_read
from sharnir.engine.tree.model_rows import SlotRows, SlotTables
from sharnir.engine.tree.placement import NUMBER
from sharnir.engine.tree.row_storage import LINK_FIELDS, WORK
from sharnir.engine.tree.runtime import (
    CPP,
    DONE,
    KIND_AT,
    NATIVE,
    ROOM,
    TreeStep,
    begin_counts,
    is_untouched,
    laws_act,
    outer_forces,
)
from sharnir.engine.tree.special import ENABLING, Special, Specialized, SpecialTree, is_absent, read_together, varied_numbers
from sharnir.engine.tree.step import close_pose, finish, guess, place_links, project, repair_limits, report, solve
from sharnir.engine.tree.storage import (
    APART,
    GATHERED,
    LAW,
    LAW_3,
    REPORT,
    ROW,
    ROW_APART,
    SIZES,
    START,
    TOGETHER,
    LinkView,
    numbers,
    offsets,
    pack,
)
from sharnir.engine.tree.turning import with_gyroscopic

JOINTS = (HINGE, SLIDER, BALL, FREE, WELD)
"""Kinds of joints that it is written for; of balls those without laws."""
POINTS_OF = {int(SPHERE): 1, int(CAPSULE): 2, int(ELLIPSOID): 1, int(BOX): 4, int(CYLINDER): 4, int(CONE): 4}
OTHERS, ON_MESHES = 4, 3  # points of other shapes; and more for each shape where there are meshes or terrain
MOST_POINTS = 24
"""For which there is room in a model."""
BLOCK = 32  # threads of a block of a GPU: few, so that few worlds occupy all of it
IS_CONTACT = wp.constant(CONTACT)
RECORD = sum(WORK.values())
KEPT_AT = offsets(WORK)


def points_of_links(plan: Plan) -> list[int]:
    """For how many points of contact with what does not move every link has room."""
    shapes = plan.model.collision.shapes
    fixed = [s for s in shapes if s.body not in plan.link_of]
    rough = any(s.part.kind in ("mesh", "heights") for s in fixed)
    out = [0] * len(plan.places)
    for s in shapes:
        link = plan.link_of.get(s.body)
        if link is not None and any(s.mask & f.group and f.mask & s.group for f in fixed):
            out[link] += POINTS_OF.get(KINDS.index(s.part.kind), OTHERS) + (ON_MESHES if rough else 0)
    return out


def refusal(plan: Plan, materials: list[Any], control: Any) -> str:
    """Why contacts of a model have no code for it alone; "" if they can have."""
    names, acts = list(plan.model.joint_names), control.acts.numpy()
    for p in plan.places:
        if p.kind not in JOINTS:
            return f"joint {names[p.joint]!r} has several axes with laws" if p.joint >= 0 else "a body has a prescribed motion"
        if p.kind == BALL and p.joint >= 0 and acts[p.joint].any():
            return f"joint {names[p.joint]!r} has a law on axes that are solved together"
    if any(m.rolling or m.torsion for m in materials):
        return "a material has rolling or torsional friction"
    if plan.model.collision.belts:
        return "there are belts"
    points = sum(points_of_links(plan))
    if points > MOST_POINTS:
        return f"bodies may touch what does not move at {points} points; at most {MOST_POINTS} are allowed"
    return ""


def hung_forest(plan: Plan, laws: list[dict[str, Any]]) -> Forest:
    """The links as they hang in steps: a joint that leaves all six axes free and does nothing is none, so its body floats."""
    links = []
    for link, p, acts in zip(plan.forest(laws).links, plan.places, laws, strict=True):
        if p.joint >= 0 and plan.model.joint_kinds[p.joint].mask == LOOSE_MASK and not acts:
            kind = FREE if p.body >= 0 else OFF
            link = replace(link, kind=kind, base=GROUND, frame=np.eye(3), laws={})
        links.append(link)
    return Forest(links)


class ModelTree(SpecialTree):
    """Every number of every link is a variable, in world axes; friction and limits of axes are rows, beside those of contact.

    Equal branches are one, in a loop over them (`branches`): a number of their links is an array.
    """

    laws_are_rows, keeps_origins, leaves, more = True, True, False, False
    goes_on, part_of_step = False, 1.0
    real = CPP

    def __init__(self, forest: Forest, program: Any, on_gpu: bool, axes: Any, varied: dict[str, np.ndarray]) -> None:
        super().__init__(forest, program, False, axes, varied, own_axes=False)
        self.factor_always, self.keeps_k = on_gpu, True
        self.derived = ("M", "u_before", "g_before")
        self.equal = Branches(forest, [None] * len(forest))

    def view(self, i: int) -> LinkView:
        return LinkView(self, i)

    def visits(self, inward: bool = False) -> Iterator[tuple[list[int], int]]:
        """Links that the code has, and in how many branches: 0 of a single link."""
        of, visits = self.equal, []
        for i, link in enumerate(self.forest.links):
            if link.kind == OFF or i != of.first(i):
                continue
            if i in of.members:
                visits.append((of.members[i][0], len(of.members[i])))
            elif i not in of.of:
                visits.append(([i], 0))
        return ((list(reversed(links)) if inward else links, n) for links, n in (reversed(visits) if inward else visits))

    def links(self, inward: bool = False) -> Iterator[LinkView]:
        for links, many in self.visits(inward):
            with self.program.block(loop_over(many)) if many else nullcontext():
                for i in links:
                    yield LinkView(self, i)

    def place(self, i: int, name: str, k: int) -> str:
        """A number of a link."""
        return f"{name}_{i}_{k}" + (f"[{BRANCH}]" if i in self.equal.of else "")

    def own(self, i: int, name: str, k: int = 0) -> str:
        return f"{name}_{self.equal.first(i)}_{k}{self.equal.where(i)}"

    def get(self, i: int, name: str) -> list[Any]:
        if name in REPORT:
            return [self.program.read(self._report(i, name, k)) for k in range(REPORT[name])]
        if name in PARAMETERS:
            return super().get(i, name)
        if (name in LAW or name in LAW_3) and not self.acts(i):
            return [0.0] * SIZES[name]
        return [self.program.read(self.place(i, name, k)) for k in range(LINK_FIELDS.get(name) or SIZES[name])]

    def put(self, i: int, name: str, x: list[Any]) -> None:
        for k, number in enumerate(x):
            self.program.write(self._report(i, name, k) if name in REPORT else self.place(i, name, k), number)

    def _report(self, i: int, name: str, k: int) -> str:
        if name in APART:
            first = self.equal.value(i, lambda j: ROW * (len(self.forest) + 1) + ROW_APART * j + START[name] + k)
        else:
            first = self.equal.value(i, lambda j: ROW * (j + 1) + START[name] + k)
        return f"number({first})"

    def _parameter(self, i: int, name: str, k: int, x: float) -> Any:
        of_axis, links = LAWS_3.get(name, name), self.equal.all(i)
        if name in JOINT_LAWS:
            if name in ("reaction", "loaded"):
                return self.program.read(f"joint_{name}({self.equal.value(i, int)})")
            return x
        if of_axis in LAWS:
            several = self.kind_of(i) in SEVERAL
            if several != (name in LAWS_3) or k >= max(1, int(self.forest.links[i].laws.get("slides", 3))):
                return LAWS[of_axis]
            places = [f"law_{of_axis}({self.axes[j] + k})" for j in links]
            if of_axis not in self.present[i]:
                if of_axis in ENABLING:
                    self.checks |= dict.fromkeys(places, of_axis)
                return LAWS[of_axis]
            return self._constants(of_axis, i, k, places)
        values = [self.forest.values(j)[name][k] for j in links]
        varies = any(self.varied[name][j].any() if name == "frame" else self.varied[name][j, k] for j in links)
        if not varies and values == [x] * len(values) and (name == "frame" or x == 0.0):
            return x
        at = [sum(INERTIAL.values()) * j + self.start[name] + k for j in links]
        if not any(v.any() for v in self.varied.values()):
            return self.program.read(f"parameters[{by_branch(at)}]")
        return self._constants(name, i, k, [f"parameter({a})" for a in at])

    def _constants(self, name: str, i: int, k: int, places: list[str]) -> Any:
        """A parameter that the code reads once, of every branch."""
        for j, place in zip(self.equal.all(i), places, strict=True):
            self.constants[self.own(j, name, k)] = place
        return value(self.place(i, name, k))

    def gathered(self, i: int, name: str) -> Any:
        single = [k for k in self.forest.children[i] if k not in self.equal.members and k == self.equal.first(k)]
        total = GATHERED[name]
        for k in single:
            total = total + pack(name, self.get(k, name))
        for k in self.forest.children[i]:
            if k in self.equal.members:
                total = total + pack(name, [self.program.read(f"all_{name}_{k}_{n}") for n in range(SIZES[name])])
        return total

    def hand_on(self, i: int, fields: dict[str, Any]) -> None:
        if i not in self.equal.members:
            super().hand_on(i, fields)
        elif self.forest.links[i].base != GROUND:
            for name, x in fields.items():
                for n, number in enumerate(numbers(x)):
                    total = f"all_{name}_{i}_{n}"
                    before = self.program.read(total)
                    self.program.write(total, select(value(f"({BRANCH} == 0)", "bool"), number, before + number))

    def note_stopped(self, condition: Any, at: Any) -> None:
        if isinstance(condition, Expression):
            number = value(self.equal.value(at, lambda j: j + 1), "int")
            self.program.write("stopped", node("?", condition, number, self.program.read("stopped", "int"), kind="int"))

    def when_factored(self, factor: bool) -> Iterator[None]:
        if self.rests:
            yield
        else:
            yield from super().when_factored(factor)

    def refined(self, link: Any, D: Any, x: Any) -> Any:
        return x if self.rests else with_gyroscopic(link, D, x)


def loop_over(count: int) -> str:
    """C++: the head of a loop over so many branches."""
    return f"for (int {BRANCH} = 0; {BRANCH} < {count}; ++{BRANCH}) {{"


class ModelForm(Special):
    """The C++ of a step with contact of one model.

    Args:
        points: for how many points every link has room.
        absent: parameters of points that are zero, since no surface has them.
    """

    make_tree = ModelTree

    def __init__(
        self, forest: Forest, on_gpu: bool, places: list[Place], varied: dict[str, np.ndarray], points: list[int],
        absent: frozenset[str],
    ) -> None:  # fmt: skip
        super().__init__(forest, CPP, on_gpu, places, varied)
        present = self.tree.present
        single = [i for i, link in enumerate(forest.links) if link.kind in (HINGE, SLIDER) and self.tree.acts(i)]
        rubs = {"friction_static", "friction_dynamic", "friction_load"}
        rubbing = [i for i in single if present[i] & rubs]
        limited = [i for i in single if "limit_lower" in present[i]]
        alike = [(link.kind, self.tree.acts(i), frozenset(present[i]), points[i]) for i, link in enumerate(forest.links)]
        self.branches = self.tree.equal = Branches(forest, alike)
        self.tables = SlotTables(self.branches, points, rubbing, limited)
        self.rows = self.tree.rows = SlotRows(self.tree, self.tables, absent)

    def close(self) -> None:
        """Bodies that overlap, and axes beyond their limits, are displaced, where the ground holds what they hang on."""
        tree, p = self.tree, self.program
        links = self.forest.links
        for root in sorted({i for i, link in enumerate(links) if link.base < 0 and link.kind == FREE}):
            t = self.tables
            slots = [t.own(n) for n, s in enumerate(t.slots) if s.kind == CONTACT and t.root[s.link] == root]
            held = " || ".join(f"there_{n}{k}" for n, k in slots) or "false"
            p.say(f"if (!({held})) {{ astray = true; return; }}  // its momenta are to be kept")
        place_links(tree)
        repair_limits(tree)
        close_pose(tree)
        place_links(tree)

    def take_up(self) -> None:
        """Velocities after impacts, which follow each other in an instant."""
        tree, p = self.tree, self.program
        with p.block("for (impact = 0; ; ++impact) {"):
            place_links(tree)
            tree.rows.choose_impacts()
            project(tree)
            p.say(tree.rows.note_unsolved)
            p.say("if (last_impact) break;")
        p.say("lifted = real(0.0); taken += lost*real(4.0)/(h*h); lost = real(0.0);")

    def simulation(self) -> str:
        p, tree, rows = self.program, self.tree, self.rows
        p.say("unknown = false; learned = false; swept = 0; helped = opened = false;")
        solve(tree)
        p.say(f"if ((failed && !(change <= real({LOOSE})*rounding)) || astray) return 0;")
        rows.find_impact()
        p.say("if (until < real(1.0)) return 0;")
        p.say(LEFT + "failed = 0; " + rows.note_unsolved + " x.part.data[w] = h;")
        with p.block("if (reporting) {"), p.function():
            report(tree)
        with p.function():
            finish(tree)
        with p.block("if (overlaps) {"), p.function():
            self.close()
        p.say("if (astray) return 0;")
        with p.block("if (stopped) {"), p.function():
            self.take_up()
        with p.block("if (overlaps) {"), p.function():
            guess(tree)
        body = p.finish()
        text = body + p.functions()
        self._used = set(NUMBER.findall(text))
        for name in ("z", "q", "stuck"):
            self._used |= {f"{name}_{self.branches.first(s.link)}_0" for s in self.tables.slots if s.kind != CONTACT}
        changed = rf"^([A-Za-z]\w*_\d+_\d+)(?:\[{BRANCH}\])? = "
        self._changed = set(re.findall(changed, text, re.M)) | {n for n in self._used if n.startswith("stuck")}
        return "\n".join(self._lines(body)).replace("{real}", self.real)

    def _lines(self, body: str) -> Iterator[str]:
        tree, names = self.tree, {name: self.source.laws(name) for name in LAWS}
        yield "typedef {real} real;"
        yield QUOTIENTS.format(doubles=int(self.real == "double"))
        yield VARIABLES
        yield self.source.head
        yield "const real* const parameters = x.parameters.data + w*x.parameter_world;"
        yield from (f"#define law_{name}(a) {place}" for name, place in names.items())
        yield from (f"#define joint_{name}(i) {place}" for name, place in self.source.joint_laws.items())
        checks = [is_absent(name, place) for place, name in sorted(tree.checks.items())] + list(tree.idle_checks())
        if checks:
            yield f"if (!({' & '.join(checks)})) return 0;"
        yield "const int kept_choice = (int)stored(1); if (kept_choice % " + f"{CHOICES} != 0) return 0;"
        yield f"h = dt; choice = kept_choice/{CHOICES}; restarted = stored(1) - real(kept_choice) > real(0.25); {SET_STEP}"
        size = "x.memory_size_of_world"
        yield "#ifdef __CUDA_ARCH__"
        yield f"const int column = w%memory_worlds, together = column/{TOGETHER}*{TOGETHER};"
        yield f"real* const row_of_world = numbers + (long long)together*{size} + (column - together);"
        yield f"{GLOBAL}\n#define number(k) Global::at(row_of_world + {TOGETHER}*(k))"
        yield f"#else\nreal* const row_of_world = numbers + w*{size};\n#define number(k) row_of_world[k]\n#endif"
        yield from self.rows.declarations()
        yield "bool astray = false; real taken = real(0.0);"
        constants = {name.split("[")[0] for name in tree.constants}
        yield from (f"const real {name} = {place};" for name, place in tree.constants.items() if "[" not in name)
        used = [n for n in sorted(self._used | constants) if n not in tree.constants and not n.startswith("judged_")]
        yield "real " + ", ".join(f"{n}{self._many(n)}" for n in used) + ";"
        yield from read_together([(name, place) for name, place in tree.constants.items() if "[" in name])
        yield self.load()
        yield from self._load_rows()
        yield self.program.functions().replace("#define separate\n", "#define separate __attribute__((noinline))\n")
        yield body
        yield f"stored(1) = real({CHOICES}*choice) + (restarted ? real(0.5) : real(0.0));"
        yield self.store()
        yield from self._store_rows()
        yield self._slow()
        yield "x.passes.data[w] = count; x.parts.data[w] = 1; x.change.data[w] = left_over; x.taken.data[w] = taken;"
        yield "x.unsolved.data[w] = unmet; x.hit.data[w] = stopped; x.work.data[w] += work;"
        yield from (f"#undef {name}" for name in ("number", "stored", "parameter", "axis_of", *(f"law_{n}" for n in names)))
        yield from (f"#undef joint_{name}" for name in JOINT_LAWS)
        yield from self.rows.undefined()
        yield UNDEFINED
        yield "return 1;"

    def _many(self, name: str) -> str:
        """The declarator of a number: of equal branches an array."""
        field, at, _ = name.rsplit("_", 2)
        of_slot = field.startswith("of_")
        count = len(self.tables.all(int(at))) if of_slot else self.branches.count(int(at))
        one = (of_slot and int(at) not in self.tables.alike) or field.startswith("all_") or count == 0
        return " = real(0.0)" if one else f"[{count}] = {{}}"

    def _copies(self) -> Iterator[tuple[str, str]]:
        for i, link in enumerate(self.forest.links):
            at = self.source.first + ROOM * i
            for name, size in stored_fields(link.kind, self.source.turns, self.real) if link.kind != OFF else ():
                for k in range(size):
                    if f"{name}_{self.branches.first(i)}_{k}" in self._used:
                        yield self.tree.own(i, name, k), f"stored({at})"
                    at += 1

    def store(self) -> str:
        return "\n".join(f"{place} = {own};" for own, place in self._copies() if own.split("[")[0] in self._changed)

    def _slow(self) -> str:
        """Whether a body is slower than what stands still."""
        lines = []
        for i, body in enumerate(self.bodies):
            if body >= 0:
                own = self.tree.own
                v, g = ("(" + " + ".join(f"{own(i, n, k)}*{own(i, n, k)}" for k in range(3)) + ")" for n in "VW")
                lines.append(f"slow = slow || !({v} + x.reach.data[{i}]*x.reach.data[{i}]*{g} > slowest);")
        return (
            "{ const real slowest = real(0.25)*h*h*x.slowest*x.slowest; bool slow = false; if (watching) {"
            + " ".join(lines)
            + "} x.slow.data[w] = slow; }"
        )

    def _load_rows(self) -> Iterator[str]:
        """Which rows there are in this step, and their parameters."""
        t, own = self.tables, self.tree.own
        given, record = offsets(GIVEN), sum(GIVEN.values())
        touches = []
        for n in sorted({t.own(n)[0] for n in range(len(t.slots))}):
            if t.slots[n].kind != FRICTION:
                yield f"bool there_{n}{f'[{len(t.all(n))}]' if n in t.alike else ''};"
        for n, s in enumerate(t.slots):
            first, where = t.own(n)
            there, i, axis = f"there_{first}{where}", s.link, self.tree.axes[s.link]
            yield f"for (int r = {s.first_row}; r < {s.first_row + s.rows}; ++r) row_soft[r] = real(-1.0);"
            if s.kind == CONTACT:
                touches.append(there)
                yield f"{there} = x.point_of.data[{n} + x.most_laws*w] >= 0;"
                pairs = []
                for name in sorted(self._used):
                    found = re.fullmatch(rf"of_(\w+?)_{first}_(\d+)", name)
                    if found and found[1] in given:
                        place = record * n + given[found[1]] + int(found[2])
                        pairs.append((name + where, f"x.row_numbers.data[{place}*x.row_stride + w*x.row_world]"))
                yield f"if ({there}) {{" + "\n".join(read_together(pairs)) + f"}} else row_high[{s.first_row}] = real(-1.0);"
            elif s.kind == FRICTION:
                law = " || ".join(f"law_friction_{kind}({axis}) > real(0.0)" for kind in ("static", "dynamic", "load"))
                yield f"if (!({law})) {own(i, 'stuck')} = real(0.0);"
                yield f"of_last_{first}_0{where} = x.state.friction_impulse.data[{axis}*worlds + w]*(real(0.25)/h);"
            else:
                q, side, impulse = own(i, "q"), f"of_side_{first}_0{where}", f"x.state.limit_impulse.data[{axis}*worlds + w]"
                yield f"{{ const real way = real({NEAR_LIMIT})*(real(2.0)*wp::abs({own(i, 'z')}) + x.fall*h*h);"
                yield f"const bool low = {q} - law_limit_lower({axis}) < way, up = law_limit_upper({axis}) - {q} < way;"
                yield f"if (low && up) return 0;\n{there} = low || up; {side} = low ? real(1.0) : real(-1.0);"
                yield f"of_last_{first}_0{where} = wp::max({side}*{impulse}, real(0.0))*(real(0.25)/h); }}"
        yield t.find_elements(lambda n: "true" if t.slots[n].kind == FRICTION else f"there_{t.own(n)[0]}{t.own(n)[1]}")
        yield f"if ({' || '.join(touches) or 'false'}) tolerance = x.contact_tolerance;"

    def _store_rows(self) -> Iterator[str]:
        """What rows carried, in working memory, for `store_slots`."""
        yield f"const int at_closures = memory_size + {sum(LINK_FIELDS.values())}*(links + 1); (void)at_closures;"
        t = self.tables
        for n, s in enumerate(t.slots):
            first, where = t.own(n)
            kept = {"force": 3} if s.kind != CONTACT else {"force": 3, "blow": 3, "slip": 3, "bend": 1, "end_gap": 1}
            copies = []
            for name, size in kept.items():
                for k in range(size):
                    own = f"of_{name}_{first}_{k}"
                    x = own + where if own in self._used else "real(0.0)"
                    copies.append(f"number(at_closures + {RECORD * n + KEPT_AT[name] + k}) = {x};")
            if s.kind == CONTACT:
                for k in range(3):
                    place = sum(GIVEN.values()) * n + offsets(GIVEN)["axis_a"] + k
                    copies.append(f"x.row_numbers.data[{place}*x.row_stride + w*x.row_world] = of_axis_a_{first}_{k}{where};")
            yield " ".join(copies) if s.kind == FRICTION else f"if (there_{first}{where}) {{ {' '.join(copies)} }}"
            if s.kind == LIMIT:
                yield f"else number(at_closures + {RECORD * n + KEPT_AT['force']}) = real(0.0);"


# ---- around the step ---------------------------------------------------------------------------------------------------------


@wp.func_native(
    f"""{NATIVE}
const int links = x.links; int c = 0, lost = 0; bool fits = true;
const int* const kinds = x.kind_built.data; const real h = x.settings.dt.data[0];
for (int k = 0; k < x.slots; ++k) x.point_of.data[k + x.most_laws*w] = -1;
#define give(k) x.row_numbers.data[({sum(GIVEN.values())}*c + (k))*x.row_stride + w*x.row_world]
const auto add = [&](int kind, int a, int b, int rows, int point, int belt = -1, int frame = -1) -> bool {{
if (!fits || a >= 0 || b < 0 || rows != 3) {{ fits = false; return false; }}
const int end = x.slot_first.data[b] + x.slot_points.data[b];
for (c = x.slot_first.data[b]; c < end; ++c) if (x.point_of.data[c + x.most_laws*w] < 0) break;
fits = c < end;
if (fits) {{ x.point_of.data[c + x.most_laws*w] = point; give({offsets(GIVEN)["on"]}) = real(1.0); }}
return fits; }};
{POINTS}
#undef give
{DONE}(void)lost; return fits;"""
)
def gather_slots(t: wp.array(dtype=TreeStep), w: int) -> bool:
    """Give points of contact their places, and rows their parameters; False: some have no room, or both their bodies move."""
    return True


@wp.func_native(
    f"""{NATIVE}const int* const kinds = x.kind.data + (size_t)w*x.links;
for (int i = 0; i < x.links; ++i) {{ const int kind = x.model_kind.data[i], j = x.joint.data[i];
if (kinds[i] != kind || cell(state.tree, x.first.data[i] + {int(KIND_AT)}) != real(kind)) return false;
if (j < 0) continue;
if (kind == x.kind_built.data[i]) {{ if (shared(control.enabled, j) == 0) return false; continue; }}
if (shared(control.acts, j) != 0) return false;
for (int k = 0; k < x.joints.v_size.data[j]; ++k)
if (shared(control.joint_force, x.joints.v_start.data[j] + k) != real(0.0)) return false; }}
{DONE}return true;"""
)
def hangs_as_written(t: wp.array(dtype=TreeStep), w: int) -> bool:
    """Whether all links of a world hang as the code takes for granted, as they did in the last step."""
    return True


@wp.func
def is_plain(t: wp.array(dtype=TreeStep), w: int) -> bool:
    """Whether code for the model may step a world: it goes on as the last step left it, all hangs as built, nothing is pushed."""
    if t[0].settings.sleep[0] < NEVER and t[0].now.resting[w] != NOBODY:
        return False
    return is_untouched(t, w) and hangs_as_written(t, w) and outer_forces(t, w) == 0 and t[0].pushed[w] == 0


@wp.func
def store_slots(t: wp.array(dtype=TreeStep), w: int):
    """Impulses of points of contact, of friction and of limits, as of a whole step."""
    clear_points(t, w)
    clear_axes(t, w)
    scale = real(4.0) * t[0].settings.dt[0] / (t[0].part[w] * t[0].part[w])
    for k in range(t[0].slots):
        p = t[0].point_of[k + t[0].most_laws * w]
        if p >= 0:
            store_point(t, k, p, w, scale)
        elif t[0].slot_kind[k] != IS_CONTACT:
            store_axis(t, k, t[0].slot_kind[k], t[0].slot_axis[k], w, scale)


def model_kernel(body: str, name: str) -> Any:
    """The kernel that makes a step of each world by `body`, emitted C++."""

    @wp.func_native(body)
    def advance(t: wp.array(dtype=TreeStep), w: int, reporting: int) -> int:
        """A step of a world; 0 if it is to be left to the code for any forest."""
        return 0

    @wp.kernel(module=name, enable_backward=False)
    def model_steps(t: wp.array(dtype=TreeStep), first: int, n: wp.array(dtype=wp.int32), left: wp.array(dtype=wp.int32)):
        """A step of a world; `left`: how many steps of each are left to the code for any forest."""
        w = first + wp.tid()
        left[w] = 0
        if t[0].state.failed[w] != 0 or n[w] == 0:
            return
        left[w] = n[w]
        if n[w] != 1 or not is_plain(t, w):
            return
        for i in range(t[0].links):
            t[0].acts[i + t[0].links * w] = laws_act(t, i, w, t[0].kind_built[i])
        begin_counts(t, w)
        if not gather_slots(t, w):
            return
        reporting = is_read(t, w, 1, 1, False)
        if advance(t, w, reporting) == 0:
            return
        left[w] = 0
        t[0].made[w] = 1
        store(t, w)
        if reporting == 1:
            store_report(t, w)
        store_slots(t, w)
        count(t, w, 1)
        if t[0].slow[w] == 1:
            fall_asleep_jointed(t[0].rest, w)
        keep(t, w)

    options = {"fast_math": PRECISION == "single", "cpu_compiler_flags": CPU_FLAGS, "optimization_level": 2, "block_dim": BLOCK}
    model_steps.module.options |= MODULE_OPTIONS | options
    return model_steps


class ModelCode:
    """Code of steps with contact for one model: its kernel, and what it takes for granted."""

    def __init__(self, plan: Plan, model: Any, control: Any, materials: list[Any], on_gpu: bool) -> None:
        self.laws = Specialized._of_links(plan, model, control)
        self.points = points_of_links(plan)
        forest = hung_forest(plan, self.laws)
        self.kinds = [link.kind for link in forest.links]
        given = (forest, on_gpu, plan.places, varied_numbers(plan), self.points, absent_parameters(materials))
        form = ModelForm(*given)
        self.slot_kinds = [s.kind for s in form.tables.slots]
        self.slot_axes = [plan.places[s.link].axis for s in form.tables.slots]
        self.first_point = form.tables.first_point
        self.body = emitted(f"model_{fingerprint(*given)}", form.simulation)

    def kernel(self) -> Any:
        """The kernel; the same for the same code."""
        name = "sharnir.model_" + hashlib.sha256(f"{PRECISION}{RULES}{self.body}".encode()).hexdigest()[:16]
        if name not in _kernels:
            _kernels[name] = model_kernel(self.body, name)
        return _kernels[name]


def fingerprint(forest: Forest, on_gpu: bool, places: list[Place], varied: dict[str, np.ndarray], *more: Any) -> str:
    """A name for all that emitted code depends on beside the sources of the package."""
    numbers = [(link.base, link.kind, forest.values(i), sorted(link.laws)) for i, link in enumerate(forest.links)]
    arrays = [(name, x.tobytes()) for name, x in sorted(varied.items())]
    options = [sorted(x) if isinstance(x, frozenset) else x for x in more]
    return hashlib.sha256(repr((PRECISION, on_gpu, numbers, places, arrays, options)).encode()).hexdigest()[:24]


def absent_parameters(materials: list[Any]) -> frozenset[str]:
    """Parameters of points that are zero, since no surface has them."""
    absent = {"belt_axis", "belt_pull", "soft", "by_a"}
    if not any(m.stiffness for m in materials):
        absent |= {"stiffness", "damping"}
    if not any(m.shear for m in materials):
        absent |= {"shear_along", "shear_across", "fade"}
    return frozenset(absent)


_kernels: dict[str, Any] = {}  # by module name
