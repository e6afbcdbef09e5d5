"""Trees that `step` runs on: of numbers, or of places in emitted code.

All of them offer links by `links()`, in order or inwards, and a link's fields by name: parameters (`forest.PARAMETERS`), state
and working values. A field is a scalar, vector, matrix or quaternion of `emit.algebra`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from sharnir.emit.algebra import (
    IDENTITY,
    NO_MATRIX,
    NO_SYMMETRIC,
    ZERO,
    AboutZ,
    ByMatrix,
    Chained,
    Identity,
    Matrix,
    Quaternion,
    Symmetric,
    Vector,
    cross,
    mean_rotation,
)  # fmt: skip
from sharnir.emit.expressions import Expression, maximum, node, select, value
from sharnir.emit.program import Program
from sharnir.engine.tree import history
from sharnir.engine.tree.ball_laws import BallWithLaws
from sharnir.engine.tree.forest import (
    BALL,
    FREE,
    GROUND,
    HINGE,
    INERTIAL,
    JOINT_LAWS,
    LAWS_3,
    PARAMETERS,
    PRESCRIBED,
    ROTOR,
    SLIDER,
    SLIDES,
    TURNING,
    TURNS,
    USUAL,
    WELD,
    Forest,
)
from sharnir.engine.tree.joints import Free, Hinge, Prescribed, Slider, Weld
from sharnir.engine.tree.rotor import Rotor
from sharnir.engine.tree.slides import Slides, Turns
from sharnir.laws.axis import not_

FOLDED = (0.0, 1.0, -1.0, 1e30, -1e30)  # values of parameters that become constants of the code
GEAR = 16  # steps that are made in second gear before the first is tried again
STALE_WITH_ROPES = 0.05  # of the error before: where a pass leaves more, factors of ropes are made anew
EARLY = 8  # passes for which factors of ropes beside contacts are always made anew
STALLS = 4  # passes in turn that do not reduce the error: then the exact derivative is needed
SHARPER, SHARPEST = 0.3, 1e-6  # by how much friction is smoothed less in each pass, and at least, of its speed
TRIES = 3  # of that with the exact derivative, each more slowly than the last; one without
FARTHEST = 100.0  # change of a scaled mean speed with which an iteration diverges
PATIENCE = 8  # passes that correct the laws of all joints at once, with no fewer wrong; then one at a time, which ends
TOLERANCE = {"double": 2.5e-14, "single": 2.5e-9}
"""Error of a scaled mean speed (rad, m) that iterations may leave: energy is kept to 1e-9 and 1e-4 of its scale for long."""
CLOSED = {"double": 1e-14, "single": 1e-6}  # rad or scene lengths: a gap that counts as none
FIRST_RATE, BEST_RATE = 1 / 400, 1 / 1000  # by which an iteration reduces the error: while nothing is known, and at best
JOINTS = {HINGE: Hinge(), SLIDER: Slider(), BALL: BallWithLaws(), FREE: Free(), WELD: Weld()}
JOINTS |= {PRESCRIBED: Prescribed(), ROTOR: Rotor(), SLIDES: Slides(), TURNS: Turns()}

# state that is kept between calls
STATE = {
    "q": 1,
    "stuck": 1,
    "limit": 1,
    "SU": 1,
    "current": 1,
    "rotor": 1,
    "rotation": 4,
    "position": 3,
    "V": 3,
    "W": 3,
    "stuck_3": 3,
    "limit_3": 3,
    "current_3": 3,
    "rotor_3": 3,
}
HISTORY = {f"{name}{n}": size for name, size in (("z", 1), ("zv", 3), ("zl", 3)) for n in ("", *range(1, history.MOST + 1))}
WORK = {
    "c": 1, "s": 1, "u": 3, "g": 3, "M": 9, "u_before": 3, "g_before": 3, "U_l": 3, "U_a": 3, "D": 1, "e": 1, "dz": 1, "e3": 3,
    "dl": 3, "D3": 6, "A3": 6, "B": 9, "f": 3, "n": 3, "A": 6, "H": 9, "I": 6, "gravity": 3, "z_new": 1, "zv_new": 3, "zl_new": 3,
    "g_old": 3, "opens": 1, "taken": 1, "k": 1, "KA": 9, "KB": 9, "KC": 9, "KD": 9, "Kinv": 9,
    "lever": 3, "axis_mean": 3, "com_mean": 3,
}  # fmt: skip
LAW_NAMES = (
    "u0", "law_a", "law_b", "servo_a", "servo_b", "hold", "slide", "mode", "goal", "ratio", "given", "slope", "lock", "jump",
    "load", "motor_back", "motor_rotor", "motor_push", "motor_c", "z_free", "safe_lower", "safe_upper",
)  # fmt: skip
LAW = dict.fromkeys(LAW_NAMES, 1)
NUMBERS_3 = ("known_3", "slip_3", "largest_3", "rubs_3", "fresh_3", "anew_3")
VECTORS_3 = (
    "u0_3", "share_3", "a_3", "b_3", "servo_a_3", "servo_b_3", "bound_3", "hold_3", "slide_3", "lower_3", "upper_3", "spring_3",
    "resist_3", "push_3", "held_3", "friction_3", "slid_3", "about_3", "lock_to_3", "locked_3", "side_3", "sat_3", "free_3",
    "y_3", "y_new_3", "sat_new_3", "new_3", "u1_3", "v_3", "given_3", "struck_3", "leaving_3", "value_3", "row_share_3",
    "ratio_3", "command_3", "motor_back_3", "motor_rotor_3", "motor_push_3", "motor_c_3",
)  # fmt: skip
SYMMETRIC_3, MATRICES_3 = ("V3", "C3", "K3", "M3"), ("F3", "UL3", "UA3", "lock3", "row3", "row_miss3", "row_start3")
LAW_3 = dict.fromkeys(NUMBERS_3, 1) | dict.fromkeys(VECTORS_3, 3) | dict.fromkeys(SYMMETRIC_3, 6) | dict.fromkeys(MATRICES_3, 9)
IMPULSES = ("p_axis", "p_friction", "p_limit", "p_drive", "p_lost")
REPORT = {"reaction_f": 3, "reaction_n": 3, "mean_axis": 3} | dict.fromkeys(IMPULSES, 1)
REPORT_3 = dict.fromkeys(("p_axis_3", "p_friction_3", "p_limit_3", "p_drive_3"), 3)
REPORT |= REPORT_3
"""What a step reports: impulse and moment that joints carry, times ¼ h; impulses along axes; what is lost there, J."""
PUSH = {"push_f": 3, "push_n": 3}  # outer force and torque on a link, times ¼ h²
WORLD_AXES = {"R": 9, "axis_w": 3, "anchor_w": 3, "com_w": 3, "inertia_w": 6}
ARMS: tuple[str, ...] = ("lever", "axis_mean", "com_mean")  # mean arms
SIZES = PARAMETERS | STATE | HISTORY | WORK | LAW | LAW_3 | REPORT | PUSH | WORLD_AXES
SYMMETRIC_FIELDS = {"inertia", "inertia_w", "D3", "A3", "A", "I", "V3", "C3", "K3", "M3", "sum_inertia", "round_a", "round_b"}
GATHERED: dict[str, Any] = {"f": ZERO, "n": ZERO, "A": NO_SYMMETRIC, "H": NO_MATRIX, "I": NO_SYMMETRIC}
GATHERED |= dict.fromkeys(("KA", "KB", "KC", "KD"), NO_MATRIX)
AXIS = ("q", "stuck", "limit", "SU", "current", "rotor", "z")
SIX = ("rotation", "position", "zv", "zl")
FIELDS_OF = {
    HINGE: (*AXIS, "c", "s"),
    SLIDER: AXIS,
    BALL: ("rotation", "stuck_3", "limit_3", "zv"),
    FREE: SIX,
    WELD: (),
    PRESCRIBED: SIX,
}
FIELDS_OF |= {ROTOR: FIELDS_OF[HINGE], SLIDES: ("position", "stuck_3", "limit_3", "zv")}
FIELDS_OF[TURNS] = ("rotation", *FIELDS_OF[SLIDES])


def offsets(sizes: dict[str, int]) -> dict[str, int]:
    """Where fields begin that are stored one after the other."""
    ends = list(itertools.accumulate(sizes.values()))
    return dict(zip(sizes, [0, *ends[:-1]], strict=True))


OFTEN = (
    *INERTIAL, "com_w", "inertia_w", "anchor_w", "axis_w", "z", "u", "g", "g_old", "lever", "axis_mean",
    "com_mean", "k", "U_l", "U_a", "D", "e", "dz", "opens",
    "f", "n", "A", "H", "I", "V", "W", "u0", "ratio", "mode", "goal", "law_a", "law_b", "servo_a", "servo_b", "hold", "slide",
    "given", "slope", "lock", "jump", "z_free", "safe_lower", "safe_upper", "q",
)  # what iterations use, so that it lies together  # fmt: skip
OF_SEVERAL = ("stuck_3", "limit_3", "current_3", "rotor_3")  # state of joints with several axes
OUTSIDE = {*LAWS_3, *JOINT_LAWS, "M"}  # what is read where it stands, or derived
APART = {n: s for n, s in SIZES.items() if n in LAW_3 or n in REPORT_3 or n in OF_SEVERAL}
"""Of a link in the working memory of a loop, behind that of all links: few links need these."""
MEMORY = {name: SIZES[name] for name in (*OFTEN, *SIZES) if name not in OUTSIDE and name not in APART}  # the rest, of a link
START, ROW = offsets(MEMORY) | offsets(APART), sum(MEMORY.values())
ROW_APART = sum(APART.values())
TOGETHER = 32  # worlds whose numbers stand beside each other in the memory of a GPU: those of a warp
PREPARED = START["opens"]  # of the ground, which hands nothing on: 1 where the working memory is prepared


def pack(name: str, numbers: list[Any]) -> Any:
    """A field from its numbers."""
    n = len(numbers)
    if n == 1:
        return numbers[0]
    if n == 3:
        return Vector(*numbers)
    if n == 4:
        return Quaternion(Vector(*numbers[:3]), numbers[3])
    return Symmetric(numbers) if name in SYMMETRIC_FIELDS else Matrix.from_entries(numbers)


def numbers(x: Any) -> list[Any]:
    """The numbers of a field."""
    if isinstance(x, Vector):
        return list(x)
    return x.entries() if hasattr(x, "entries") else [x]


def is_converged(first: Any, change: Any, before: Any, tolerance: Any, rounding: Any, best_rate: float = BEST_RATE) -> Any:
    """Whether what is left after the last two changes of an iteration is below a tolerance: no iteration is for checking alone.

    Changes that are small and do not fall any more are rounding.
    """
    small = change * FIRST_RATE <= tolerance
    falls = change * maximum(change, before * best_rate) <= tolerance * before
    return (first & small) | (not_(first) & (falls | ((change <= rounding) & (change * 4.0 > before))))


class LinkView:
    """A link while a sweep visits it: fields by name."""

    __slots__ = ("at", "tree")

    def __init__(self, tree: Any, at: Any) -> None:
        object.__setattr__(self, "tree", tree)
        object.__setattr__(self, "at", at)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("local_"):
            name = name[6:]
            if not self.tree.own_axes:
                name += "_w"
            elif name == "axis":
                return self.frame.column(2)
        if name in self.tree.derived:
            return self.derive(name)
        return pack(name, self.tree.get(self.at, name))

    def derive(self, name: str) -> Any:
        """A field that is not kept."""
        if name == "M":
            if self.tree.stands or (self.tree.rests and not self.tree.keeps_k):
                return IDENTITY
            return mean_rotation(self.g, self.k if self.tree.keeps_k else None)
        if name == "g_before":
            return self.base.g_old
        if name == "com_mean":
            return self.M @ self.local_com
        if name in ARMS:
            return self.base.M @ (self.local_anchor if name == "lever" else self.local_axis)
        if name == "u_before" and self.tree.kind_of(self.at) in (HINGE, BALL):  # joints that do not move the origin
            return self.turn.outward(self.u)
        return pack(name, self.tree.get(self.at, name))

    def __setattr__(self, name: str, x: Any) -> None:
        if name in self.tree.derived and (name != "u_before" or self.tree.kind_of(self.at) in (HINGE, BALL)):
            return
        self.tree.put(self.at, name, numbers(x))

    @property
    def own_axes(self) -> bool:
        return bool(self.tree.own_axes)

    def mean(self, x: Vector) -> Vector:
        """M x, the mean of a vector that turns with the link."""
        if self.tree.stands:
            return x
        mean: Vector = x + self.swept(x) if self.tree.keeps_k else self.M @ x
        return mean

    def swept(self, x: Vector) -> Vector:
        """g × M x = M x − x: half of what the step's rotation changes of a vector, without a matrix where k is kept."""
        g = self.g
        if self.tree.stands or not self.tree.keeps_k:
            return cross(g, self.mean(x))
        swept: Vector = cross(g, x + cross(g, x)) * self.k
        return swept

    @property
    def h(self) -> Any:
        """The step, s."""
        return self.tree.h

    @property
    def per_half_step(self) -> Any:
        """2/h: scaled speeds to speeds."""
        return 2.0 / self.tree.h

    @property
    def fall(self) -> Any:
        """A speed that gravity gives in a step."""
        return self.tree.fall

    def acting(self) -> Iterator[None]:
        """Once if laws act on the joint's axes."""
        acting: Iterator[None] = self.tree.acting(self.at)
        return acting

    @property
    def unit(self) -> Any:
        """Makes a coordinate a number that tolerances hold for."""
        return self.tree.unit(self.at)

    def idle(self) -> Iterator[None]:
        """Once if none do."""
        idle: Iterator[None] = self.tree.idle(self.at)
        return idle

    def when(self, condition: Any) -> Iterator[None]:
        """Once if the condition holds."""
        branch: Iterator[None] = self.tree.when(condition)
        return branch

    @property
    def base(self) -> Any:
        return self.tree.base_of(self.at)

    @property
    def turn(self) -> Any:
        """The rotation between the base's axes and the link's."""
        if not self.tree.own_axes:
            return Identity()
        frame, kind = ByMatrix(self.frame), self.tree.kind_of(self.at)
        if kind in TURNING:
            return Chained(frame, AboutZ(self.c, self.s))
        if kind in (SLIDER, WELD, SLIDES):
            return frame
        return Chained(frame, ByMatrix(self.rotation.matrix()))

    def joints(self) -> Iterator[Any]:
        """The link's joint; in a loop over all links, every kind that there is, each in a branch of its own."""
        joints: Iterator[Any] = self.tree.joints_of(self.at)
        return joints

    def gathered(self, *names: str) -> list[Any]:
        """Sums of what the links that hang on this one hand on."""
        return [self.tree.gathered(self.at, name) for name in names]

    def hand_on(self, **fields: Any) -> None:
        self.tree.hand_on(self.at, fields)

    def add(self, **fields: Any) -> None:
        """Add to sums that `take` takes."""
        for name, x in fields.items():
            setattr(self, name, getattr(self, name) + x)

    def take(self, name: str) -> Any:
        """A sum, which is zero again afterwards."""
        total = getattr(self, name)
        self.tree.put(self.at, name, [0.0] * len(numbers(total)))
        return total


class Ground:
    """The base of links that hang on nothing: it does not turn, and is accelerated against gravity."""

    def __init__(self, gravity: Vector) -> None:
        self.g, self.u, self.M, self.R, self.gravity = ZERO, -gravity, IDENTITY, IDENTITY, gravity
        self.V, self.W, self.local_com, self.g_old, self.origin, self.com_mean = ZERO, ZERO, ZERO, ZERO, ZERO, ZERO

    def add(self, **fields: Any) -> None:
        """What acts on the ground moves nothing."""

    def mean(self, x: Vector) -> Vector:
        return x

    def swept(self, x: Vector) -> Vector:
        return ZERO


class Stage:
    """What a tree computes: a step, or velocities and poses that fit its joints while nothing moves."""

    rests = False  # whether velocities are projected
    closes = False  # whether rows are closed by displacements
    part_of_step: Any = 1.0  # of the whole step, where it is divided at impacts

    def refined(self, link: Any, D: Any, x: Vector) -> Vector:
        """The turning part of a free link's answer to what it lacks, where it is improved."""
        return x

    ropes: Any = None  # beside the tree, `ropes`

    goes_on: Any = False  # whether this is not the first part of a step

    def project_rounds(self) -> Iterator[Any]:
        """Rounds in which velocities are projected: one, but where ropes hang."""
        yield

    keeps_columns = False  # whether the second gear keeps what links leave on their bases: rows need it, and derivatives
    keeps_origins = False  # whether places keep where the links' frames are: rows need it, and derivatives
    laws_are_rows = False  # whether friction and limits of single axes are rows beside the forest (`contact_rows`)
    stands = False  # whether twists are velocities that no vector turns with

    @property
    def resting(self) -> Any:
        """Whether velocities are projected; of code, a condition or what is known."""
        return self.rests

    @property
    def closing(self) -> Any:
        """Whether rows are closed by displacements; of code, a condition or what is known."""
        return self.closes


class OneForest(Stage):
    """What `NumberTree` and `UnrolledTree` share: a forest whose links are visited one by one."""

    own_axes: bool
    kept = history.MOST  # numbers of mean speeds, see `history`
    gravity: Any
    rows: Any = None  # beside the forest, `rows`
    pushed = False
    derived = ARMS  # fields that are computed where they are needed instead of kept
    keeps_k = False  # whether 1/(1 + g²) is kept

    def __init__(self, forest: Forest) -> None:
        self.forest = forest
        self.rests = False

    @contextmanager
    def at_rest(self, closes: bool = False) -> Iterator[None]:
        """While velocities are projected, or with `closes` rows are closed by displacements, gravity does not act."""
        self.rests, self.closes = True, closes
        yield
        self.rests = self.closes = False

    per_metre: Any = 1.0  # one over the scene's length
    onward: Any = 1.0

    def unit(self, i: int) -> Any:
        return self.per_metre if self.kind_of(i) in (SLIDER, SLIDES) else 1.0

    def judged_links(self) -> Iterator[LinkView]:
        """Links whose laws are judged."""
        return self.links()

    def links(self, inward: bool = False) -> Iterator[LinkView]:
        order = range(len(self.forest))
        return (LinkView(self, i) for i in (reversed(order) if inward else order))

    def base_of(self, i: int) -> Any:
        base = self.forest.links[i].base
        return self.ground() if base == GROUND else LinkView(self, base)

    def ground(self) -> Ground:
        return Ground(ZERO if self.rests else self.gravity)

    def kind_of(self, i: int) -> int:
        return self.forest.links[i].kind

    def joints_of(self, i: int) -> Iterator[Any]:
        yield JOINTS[self.kind_of(i)]

    def acts(self, i: int) -> bool:
        """Whether laws act on a link's axes."""
        return bool(self.forest.links[i].laws)

    def acting(self, i: int) -> Iterator[None]:
        if self.acts(i):
            yield

    def idle(self, i: int) -> Iterator[None]:
        if not self.acts(i):
            yield

    @property
    def any_acts(self) -> bool:
        return any(self.acts(i) for i in range(len(self.forest)))

    def gathered(self, i: int, name: str) -> Any:
        total = GATHERED[name]
        for k in self.forest.children[i]:
            total = total + pack(name, self.get(k, name))
        return total

    def hand_on(self, i: int, fields: dict[str, Any]) -> None:
        if self.forest.links[i].base != GROUND:
            for name, x in fields.items():
                self.put(i, name, numbers(x))

    def get(self, i: int, name: str) -> list[Any]:
        raise NotImplementedError

    def put(self, i: int, name: str, x: list[Any]) -> None:
        raise NotImplementedError


def all_weights() -> str:
    """C++ of the table of weights of all guesses."""
    rows = ", ".join(f"{{{', '.join(f'real({x!r})' for x in history.weights(*g))}}}" for g in history.GUESSES)
    return f"const real all_weights[{len(history.GUESSES)}][{history.MOST}] = {{{rows}}}; (void)all_weights;"


class EmittedRounds:
    """The same as a loop of emitted code."""

    def __init__(self, program: Program, most: int) -> None:
        self.program, self.most = program, most

    def __iter__(self) -> Iterator[None]:
        with self.program.block(f"for (int round = 0; round < {self.most}; ++round) {{"):
            yield

    def leave(self, condition: Any) -> None:
        self.program.leave(condition)


class Emitted(Stage):
    """What trees of emitted code share: the variables h, tolerance, limit, count and change of the function."""

    factor_always: bool
    program: Program
    second_gear: Any = None  # `exact`, where the code has it
    begins = False  # whether velocities that do not fit the joints may be given
    best_rate = BEST_RATE
    leaves = False  # whether iterations that contract slowly are left to other code
    any_acts: Any  # whether laws act on some axis
    links: Any
    rows: Any

    def iterations(self) -> Iterator[bool]:
        """The loop of passes; one that is converged leaves it. Factoring and not are branches, unless it is always done."""
        p = self.program
        laws = self.any_acts
        if self.second_gear:
            p.say("if (gear > 0) --gear;")
        with p.block("for (int pass = 0; ; ++pass) {"):
            if laws:
                anew = f"fewest = 1 << 30; patience = {PATIENCE};"
                p.say(f"if (pass == 0) {{ changed = 0; {anew} smooth = real(0.0); tries = 0; stalls = 0; }}")
                p.say(f"if (tries > 0 && patience <= {PATIENCE // 4}) {{ {anew} smooth = real(1.0); pass = 1;")
                p.say(f"sharper = tries == {TRIES} || gear == 0 ? real({SHARPER}) : wp::sqrt(sharper); --tries; }}")
                stale = " || stale" if self.laws_are_rows else ""
                stale += f" || pass < {EARLY}" if self.ropes and self.laws_are_rows else ""
                p.say(f"const bool factor = pass == 0 || changed > 0{stale}; one = patience == 0; wrong = 0; changed = 0;")
            else:
                p.say("const bool factor = pass == 0;")
            yield True
            if laws:
                p.say(f"if (patience > 0) --patience; if (wrong < fewest) {{ fewest = wrong; patience = {PATIENCE}; }}")
                p.say(f"if (wrong == 0) {{ {anew} }}")
                p.say(f"if (smooth > real(0.0)) {{ {anew} if (smooth <= real({SHARPEST})) smooth = real(0.0);")
                p.say("else if (change <= real(0.5)*before || stalls == 2) { smooth *= sharper; stalls = 0; pass = 1; }")
                p.say("else { ++stalls; pass = 1; } }")
            if self.laws_are_rows:
                p.say(f"stale = pass > 1 && !(change <= real({STALE_WITH_ROPES if self.ropes else 0.5})*before);")
            settled: Any = value("(changed == 0)", "bool") if laws else True
            change, before = p.read("change"), p.read("before")
            limits = value("tolerance"), value("rounding"), self.best_rate
            p.leave(is_converged(value("(pass == 0)", "bool"), change, before, *limits) & settled)
            p.say(f"const bool diverges = !(change < real({FARTHEST}));")
            if self.second_gear:
                settled_text = "changed == 0 && " if laws else ""
                slow = f"({settled_text}pass > 1 && !(change <= real(0.5)*before))"
                p.say(f"if (gear == 0 && ({slow} || pass == limit || diverges)) {{")
                p.say(f"gear = {GEAR}; restarted = true; pass = -1; continue; }}")
                p.say("if (gear == 0 && !acted && pass > 1) { const real rate = change/before, r2 = rate*rate, r4 = r2*r2;")
                p.say(f"if (change*r4*r4*r4 > rounding) gear = {GEAR}; }}  // it would come near in more than a dozen passes")
            if self.leaves:
                p.say(f"off = pass > 0 && {'changed == 0 && ' if laws else ''}!(change <= real(0.5)*before) ? off + 1 : 0;")
                p.say(f"if (off >= {STALLS}) {{ failed = 1; break; }}")
            p.say("if (pass == limit || count >= most || diverges) { failed = 1; break; }")

    @property
    def goes_on(self) -> Any:
        """Whether this is not the first part of a step; of a runner, which makes whole ones, False."""
        return value("(parts > 0)", "bool") if self.begins else False

    def note_friction(self) -> None:
        """Friction of a ball acts."""
        self.program.say(f"tries = gear > 0 ? {TRIES} : 1;")

    @property
    def smooth(self) -> Any:
        """By how much friction of balls is smoothed in this pass."""
        return value("smooth")

    def when_smooth(self) -> Iterator[None]:
        with self.program.block("if (smooth > real(0.0)) {"):
            yield

    def unless_smooth(self) -> Iterator[None]:
        with self.program.block(f"if (smooth <= real({SHARPEST})) {{"):
            yield

    def in_second_gear(self) -> Iterator[None]:
        if self.second_gear:
            with self.program.block("if (gear > 0) {"):
                yield

    def in_first_gear(self) -> Iterator[None]:
        if not self.second_gear:
            yield
            return
        with self.program.block("else {"):
            yield

    def when_restarted(self) -> Iterator[None]:
        if self.begins:
            with self.program.block("if (restarted) {"):
                self.program.say("restarted = false;")
                yield

    def branches(self, factor: bool) -> Iterator[bool]:
        """Code with factors and, where it pays, code without."""
        if self.factor_always:
            yield True
            return
        with self.program.block("if (factor) {"):
            yield True
        with self.program.block("else {"):
            yield False

    def when_factored(self, factor: bool) -> Iterator[None]:
        with nullcontext() if self.factor_always else self.program.block("if (factor) {"):
            yield

    def note_unknown(self, condition: Any) -> None:
        self.program.write("unknown", self.program.read("unknown", "bool") | condition)

    @property
    def single(self) -> Any:
        """Whether laws are corrected one at a time."""
        return value("one", "bool")

    def note_suspect(self, condition: Any) -> None:
        self.program.write("suspect", self.program.read("suspect", "bool") | condition)

    @property
    def branches_on_laws(self) -> bool:
        """Whether what laws seldom do is code of its own; on a GPU all is computed, and selected."""
        return not self.factor_always

    @property
    def compares_once(self) -> bool:
        """Whether laws are compared when factors are made, and their range is kept for the iterations with these."""
        return not (self.factor_always or self.rows)

    def unless_factored(self) -> Iterator[None]:
        """Code for a pass with the factors of another, after that of `when_factored`."""
        with self.program.block("else {"):
            yield

    def when_suspect(self) -> Iterator[None]:
        """Code for laws that may do something else than expected."""
        if self.any_acts:
            with self.program.block("if (suspect) {"):
                self.program.write("suspect", False)
                yield

    def first_iteration(self) -> Iterator[None]:
        with self.program.block("if (pass == 0) {"):
            self.program.say("if (restarted) guesses = false; else if (!learned) guesses = true;")
            yield

    # ---- guesses of mean speeds, see `history`

    kept: int

    def choose_start(self) -> None:
        """The weights of the guess."""
        if self.kept == history.MOST:
            self.program.say(all_weights())
            self.program.say("const real* const weights = all_weights[choice]; (void)weights;")

    def unless_restarted(self) -> Iterator[None]:
        if self.kept == history.MOST:
            with self.program.block("if (guesses) {"):
                yield

    @property
    def guess_weights(self) -> list[Any]:
        return [value(f"weights[{k}]") for k in range(history.MOST)]

    def clear_missed(self) -> None:
        if self.kept == history.MOST:
            for k in range(len(history.GUESSES)):
                self.program.write(f"missed{k}", 0.0)

    def note_missed(self, k: int, x: Any) -> None:
        self.program.write(f"missed{k}", self.program.read(f"missed{k}") + x)

    def choose_guess(self) -> None:
        """The one that missed least; what is not a number is larger than all."""
        if self.kept == history.MOST:
            self.program.say("{ real least = missed0; choice = 0;")
            for k in range(1, len(history.GUESSES)):
                self.program.say(f"if (missed{k} < least) {{ least = missed{k}; choice = {k}; }}")
            self.program.say("}")

    def when_unknown(self) -> Iterator[bool]:
        """Code for responses that were not known; after it the iteration begins again."""
        if self.any_acts:
            with self.program.block("if (unknown && !learned) {"):
                yield False
                self.program.say("unknown = false; learned = true; --pass; continue;")

    def when(self, condition: Any) -> Iterator[None]:
        if isinstance(condition, bool):
            if condition:
                yield
            return
        with self.program.block("if ({0}) {{", condition):
            yield

    def rounds(self, most: int) -> EmittedRounds:
        return EmittedRounds(self.program, most)

    def note_changed(self, condition: Any) -> None:
        with self.program.block("if ({0}) {{", condition):
            self.program.say("++changed;")

    def when_to_linearize(self) -> Iterator[None]:
        p = self.program
        with p.block("if (wrong == 0 || !one) {"):
            yield
        p.say("++wrong; ++changed;")

    def clear_stopped(self) -> None:
        self.program.write("stopped", value("0", "int"))

    def note_stopped(self, condition: Any, at: Any) -> None:
        """An axis of a link stopped: `stopped` is 1 + its number."""
        if isinstance(condition, Expression):
            number = value("(i + 1)" if at == "own" else str(at + 1), "int")
            self.program.write("stopped", node("?", condition, number, self.program.read("stopped", "int"), kind="int"))

    def when_stopped(self) -> Iterator[None]:
        if self.any_acts or self.begins:
            with self.program.block("if (stopped) {"):
                yield

    def note_lost(self, energy: Any) -> None:
        self.program.write("lost", self.program.read("lost") + energy)

    def note_work(self, energy: Any) -> None:
        """Energy that commands, drives and outer forces give in the step, J."""
        self.program.write("work", self.program.read("work") + energy)

    def when_pushed(self) -> Iterator[None]:
        """Code for outer forces."""
        with self.program.block("if (pushing) {"):
            yield

    def clear_change(self) -> None:
        self.program.say("count += 1;")
        self.program.write("before", self.program.read("change"))
        self.program.write("change", 0.0)

    def raise_change(self, x: Any) -> None:
        """What is not a number is larger than all, and stays."""
        change = self.program.read("change")
        self.program.write("change", select((change >= x) | not_(change >= change), change, x))

    @property
    def h(self) -> Any:
        return value("h")

    @property
    def fall(self) -> Any:
        return value("fall")

    @property
    def law_tolerance(self) -> Any:
        return value("law_tolerance")

    @property
    def tiny(self) -> Any:
        """Of a number: what counts as none."""
        return value("tiny")

    @property
    def root_epsilon(self) -> Any:
        """The square root of rounding."""
        return value("root_epsilon")

    @property
    def onward(self) -> Any:
        """How much of the last change a restart extrapolates."""
        return value("onward")

    @property
    def per_metre(self) -> Any:
        """One over the scene's length, 1/m."""
        return value("per_metre")

    @property
    def gravity(self) -> Vector:
        return Vector(*(value(f"gravity{k}") for k in range(3)))


class LoopTree(Emitted):
    """Code that loops over the links of any forest; row 0 of the working memory is the ground's."""

    rows: Any = None  # beside the forest, `rows`
    kept = history.MOST

    def __init__(
        self, program: Program, own_axes: bool = False, factor_always: bool = False, kinds: Any = None, pushed: bool = False,
        second_gear: Any = None,
    ) -> None:  # fmt: skip
        self.program, self.own_axes, self.factor_always, self.pushed = program, own_axes, factor_always, pushed
        self.second_gear = second_gear
        self.kinds = USUAL if kinds is None else tuple(kinds)
        self.start, self.row = START, ROW
        self._kind: int | None = None
        self.rests = False
        self.derived: tuple[str, ...] = ("M", "g_before") if own_axes else ("M", "u_before", "g_before")

    def links(self, inward: bool = False) -> Iterator[LinkView]:
        head = "for (int i = links - 1; i >= 0; --i) {" if inward else "for (int i = 0; i < links; ++i) {"
        with self.sweep(), self.program.block(head):
            self.program.say("if (kinds[i] < 0) continue;")
            self.say_link()
            yield LinkView(self, "own")

    def say_link(self) -> None:
        self.program.say(self.place_of_link())

    def place_of_link(self) -> str:
        """C++: where the numbers of link i and of its base begin."""
        own = f"const Place own = {self.row}*(i + 1), base = {self.row}*(bases[i] + 1); const int axis = axis_of(i); (void)axis;"
        return f"{own}\nconst Place apart = {self.row}*(links + 1) + {ROW_APART}*i; (void)apart;"

    def sweep(self) -> AbstractContextManager[None]:
        """What a loop over links or rows is recorded in."""
        return nullcontext()

    def choose_start(self) -> None:
        """Weights are those of the number of the guess."""

    @property
    def guess_weights(self) -> list[Any]:
        return [value(f"all_weights[choice][{k}]") for k in range(history.MOST)]

    def base_of(self, at: str) -> Any:
        return LinkView(self, "base")

    any_acts = True
    keeps_k = True

    def judged_links(self) -> Iterator[LinkView]:
        """Links whose laws are judged."""
        return self.links()

    @contextmanager
    def at_rest(self, closes: bool = False) -> Iterator[None]:
        """While velocities are projected, or with `closes` rows are closed by displacements, gravity does not act."""
        u = self.start["u"]
        self.program.say(" ".join(f"number({u + k}) = real(0.0);" for k in range(3)))
        self.rests, self.closes = True, closes
        yield
        self.rests = self.closes = False
        self.program.say(" ".join(f"number({u + k}) = -gravity{k};" for k in range(3)))

    def unit(self, at: str) -> Any:
        return self.per_metre if self._kind in (SLIDER, SLIDES) else 1.0

    def acting(self, at: str) -> Iterator[None]:
        with self.program.block("if (acts[i]) {"):
            yield

    def idle(self, at: str) -> Iterator[None]:
        with self.program.block("if (!acts[i]) {"):
            yield

    def kind_of(self, at: str) -> int:
        assert self._kind is not None
        return self._kind

    def joints_of(self, at: str) -> Iterator[Any]:
        for n, kind in enumerate(self.kinds):
            last = n == len(self.kinds) - 1
            head = "else {" if last and n else f"{'else ' if n else ''}if (kinds[i] == {kind}) {{"
            with nullcontext() if len(self.kinds) == 1 else self.program.block(head):
                self._kind = kind
                yield JOINTS[kind]
                self._kind = None

    def place(self, at: str, name: str, k: int) -> str:
        """A number of a field."""
        return f"number({'apart' if name in APART else at} + {self.start[name] + k})"

    def gathered(self, at: str, name: str) -> Any:
        """Sums; those of a link on which nothing hangs are zero from the start."""
        return pack(name, self.get(at, name))

    def hand_on(self, at: str, fields: dict[str, Any]) -> None:
        """The first link in a sweep that hands something to its base gives it, those after it add to it."""
        values = [(self.place("base", name, k), x) for name, field in fields.items() for k, x in enumerate(numbers(field))]
        p = self.program
        needs = [x for _, x in values if isinstance(x, Expression)]
        with p.block(f"if (number(own + {START['opens']}) > real(0.5)) {{{{", *needs, *needs):  # twice: both branches use them
            for place, x in values:
                p.write(place, x)
        with p.block("else {"):
            for place, x in values:
                p.write(place, p.read(place) + x)

    def get(self, at: str, name: str) -> list[Any]:
        if name in LAWS_3:
            return [self.program.read(f"law_{LAWS_3[name]}(axis + {k})") for k in range(3)]
        if name in JOINT_LAWS:
            return [self.program.read(f"joint_{name}(i)")]
        return [self.program.read(self.place(at, name, k)) for k in range(SIZES[name])]

    def put(self, at: str, name: str, x: list[Any]) -> None:
        for k, number in enumerate(x):
            self.program.write(self.place(at, name, k), number)
