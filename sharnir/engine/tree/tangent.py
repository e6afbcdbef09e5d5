"""The derivative of a step: how its end changes with its start and with what acts.

Newton's pass with the exact derivative (`exact`) maps mean speeds near the solution to the solution itself, whatever they were.
So the derivative of the solution is that of one pass from the solution, with what is given as dual numbers: the functions of
the step do it as they stand. Laws stay in the active set that the step found. Where laws act a pass is exact but for small
terms (how the ratio of an angle to a mean spin changes), and passes are repeated.

Rates stand beside the numbers of the working memory, `LANES` directions at a time. Factors have none: at the solution they meet
residuals of zero.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from sharnir.emit.algebra import Quaternion, Vector, cross, dot
from sharnir.emit.expressions import Expression, absolute, dual, rate_of, select, value, value_of
from sharnir.emit.program import Program
from sharnir.engine.tree.forest import BALL, LAWS, ROTOR, USUAL
from sharnir.engine.tree.joints import Ball, Free, OneAxis, Prescribed, Slider, Weld, is_locked
from sharnir.engine.tree.step import end_twist, fit_speeds, place_links, update_twists
from sharnir.engine.tree.storage import START, LinkView, LoopTree, numbers
from sharnir.laws.axis import AT_LIMIT, linear_servo
from sharnir.laws.ball import choose

LANES = 8  # directions that are followed at once
PASSES = 12  # of rates, at most
SAME = 1e-5  # of all rates: a change of rates whose square is of no account
KINDS = (*USUAL, ROTOR)
RATED = frozenset(
    ["q", "c", "s", "rotation", "position", "V", "W", "z", "zv", "zl", "u", "g", "g_old", "u_before", "lever", "axis_mean"]
    + ["com_mean", "k", "f", "n", "e", "e3", "dl", "dz", "R", "axis_w", "anchor_w", "com_w", "inertia_w", "u0", "law_b"]
    + [
        "slide",
        "servo_b",
        "goal",
        "ratio",
        "given",
        "jump",
        "z_free",
        "push_f",
        "push_n",
        "effort",
        "servo_position",
        "servo_velocity",
    ]
    + ["voltage", "motor_push", "rotor", "origin"]
)  # fields that have rates
COLUMNS = {"column_l": "mean_axis", "column_a": "reaction_f", "columns_l": "UL3", "columns_a": "F3", "origin": "reaction_n"}
"""What links leave on their bases, and places, stand where reports and the first gear have other things."""
SEED = {
    "place": 6, "speed": 6, "effort": 1, "servo_position": 1, "servo_velocity": 1, "voltage": 1, "push_f": 3, "push_n": 3,
}  # what a direction gives a link, in the order in which it is stored  # fmt: skip
FIXED = {"limit_lower", "limit_upper", "inductance", "implicit", "friction_load", "voltage", "servo_torque"}
OF_LINKS = {"mass": 1, "com": 3, "inertia": 6, "anchor": 3, "frame": 9}
PARAMETERS = OF_LINKS | {name: 1 for name in LAWS if name not in FIXED}  # numbers of links that a motion is differentiated by
PARAMETERS_SIZE = sum(PARAMETERS.values())
IN_STEP = RATED | set(PARAMETERS) | {"law_a", "servo_a", "motor_back", "motor_rotor", "motor_c"}
"""What has rates in a step of many, and what in an impact at its end."""
IN_IMPACT = IN_STEP | {"A", "H", "I", "U_l", "U_a", "D", "D3", "A3", "B", "slope"}
RESULT = {"place": 6, "speed": 6}
ENDS = {"rotation": 4, "W": 3}  # numbers of the end of the step itself
SEED_SIZE, RESULT_SIZE, ENDS_SIZE = (sum(sizes.values()) for sizes in (SEED, RESULT, ENDS))


def start_of(sizes: dict[str, int], name: str) -> int:
    """Where a field begins."""
    names = list(sizes)
    return sum(sizes[n] for n in names[: names.index(name)])


class PlainTree(LoopTree):
    """A loop over links whose balls have no laws."""

    keeps_columns = keeps_origins = True

    def get(self, at: str, name: str) -> list[Any]:
        return super().get(at, COLUMNS.get(name, name))

    def put(self, at: str, name: str, x: list[Any]) -> None:
        super().put(at, COLUMNS.get(name, name), x)

    def joints_of(self, at: str) -> Iterator[Any]:
        for joint in super().joints_of(at):
            yield Ball() if self._kind == BALL else joint


class TangentTree(PlainTree):
    """Dual numbers: every place of a field in RATED has rates."""

    rated = RATED

    def __init__(self, program: Program, second_gear: Any) -> None:
        super().__init__(program, False, False, KINDS, True, second_gear)

    def rate_place(self, at: str, name: str, k: int) -> str:
        """The rates of a number of a field."""
        name = COLUMNS.get(name, name)
        return f"rate({at} + {self.start[name] + k})"

    def get(self, at: str, name: str) -> list[Any]:
        found = super().get(at, name)
        if name not in self.rated:
            return found
        return [dual(x, self.rate(self.rate_place(at, name, k))) for k, x in enumerate(found)]

    def put(self, at: str, name: str, x: list[Any]) -> None:
        super().put(at, name, [value_of(number) for number in x])
        if name in self.rated:
            for k, number in enumerate(x):
                self.put_rate(self.rate_place(at, name, k), rate_of(number))

    def rate(self, place: str) -> Any:
        """The rate at a place: of a number, or what the direction gives."""
        return self.program.read(place, "reals")

    def put_rate(self, place: str, rate: Any) -> None:
        """Give a place a rate: of a number, or of a result."""
        self.program.write(place, many(rate))

    def hand_on(self, at: str, fields: dict[str, Any]) -> None:
        places = [(name, k, x) for name, field in fields.items() for k, x in enumerate(numbers(field))]
        values = [(self.place("base", name, k), value_of(x)) for name, k, x in places]
        values += [(self.rate_place("base", name, k), many(rate_of(x))) for name, k, x in places if name in self.rated]
        p = self.program
        needs = [x for _, x in values if isinstance(x, Expression)]
        with p.block(f"if (number(own + {START['opens']}) > real(0.5)) {{{{", *needs, *needs):
            for where, x in values:
                p.write(where, x)
        with p.block("else {"):
            for where, x in values:
                kind = "reals" if where.startswith("rate") else "real"
                p.write(where, p.read(where, kind) + x)

    # ---- what iterations judge is as the step left it

    def raise_change(self, x: Any) -> None: ...

    def note_suspect(self, condition: Any) -> None: ...

    def note_unknown(self, condition: Any) -> None: ...

    def note_stopped(self, condition: Any, at: Any) -> None: ...

    def note_work(self, energy: Any) -> None: ...

    def note_lost(self, energy: Any) -> None: ...

    def when_pushed(self) -> Iterator[None]:
        yield from ()

    def note_law(self, acts: Any) -> None:
        """Whether a law acts, so that one pass is not all."""
        self.program.write("again", self.program.read("again", "bool") | acts)

    def note_change(self, old: Any, new: Any) -> None:
        """How much a pass changes a rate of a mean speed."""
        p, change = self.program, new - old
        p.write("moved", p.read("moved", "reals") + change * change)
        p.write("size", p.read("size", "reals") + new * new)


def many(rate: Any) -> Any:
    """A rate as several, where it is known to be zero."""
    return rate if isinstance(rate, Expression) else value(f"(reals)(real({float(rate)!r}))", "reals")


def seeds(tree: TangentTree, name: str) -> list[Any]:
    """What the direction gives the link that a sweep is at."""
    at = start_of(SEED, name)
    return [tree.rate(f"seed({at + k})") for k in range(SEED[name])]


def at_rate(x: Any, rate: Any) -> Any:
    """A number, with another rate."""
    return dual(value_of(x), rate)


def vector_at(x: Vector, rates: list[Any]) -> Vector:
    """A vector, with other rates."""
    return Vector(*(at_rate(a, r) for a, r in zip(x, rates, strict=True)))


def turned_at(q: Quaternion, turn: list[Any]) -> Quaternion:
    """A rotation that is followed by a small turn, in the axes that it leads to."""
    q = Quaternion(Vector(*map(value_of, q.v)), value_of(q.w))
    rate = Quaternion(Vector(*turn) * 0.5, 0.0) * q
    return Quaternion(vector_at(q.v, list(rate.v)), at_rate(q.w, rate.w))


def turn_of(q: Quaternion) -> list[Any]:
    """The reverse: the small turn that a rotation with rates is followed by."""
    rate = Quaternion(Vector(*map(rate_of, q.v)), rate_of(q.w))
    back = Quaternion(-Vector(*map(value_of, q.v)), value_of(q.w))
    return [x * 2.0 for x in (rate * back).v]


def rates_of(x: Vector) -> list[Any]:
    return [rate_of(a) for a in x]


# ---- a direction ---------------------------------------------------------------------------------------------------------------


def tangent(tree: TangentTree) -> None:
    """How the end of a step changes in a direction; the tree stands at its start, with mean speeds and derivative of the step."""
    for link in tree.links():
        for joint in link.joints():
            seed_place(joint, link)
        seed_pushes(link)
    place_links(tree)
    for link in tree.links():
        for joint in link.joints():
            seed_speeds(joint, link)
            seed_commands(joint, link)
    update_twists(tree)
    linearize_laws(tree)
    make_passes(tree)
    for link in tree.links():
        end_twist(tree, link)
        for joint in link.joints():
            joint.advance(link)
    place_links(tree)
    read_ends(tree)


def make_passes(tree: TangentTree) -> None:
    """Rates of mean speeds."""
    p = tree.program
    with p.block(f"for (int pass = 0; pass < {PASSES}; ++pass) {{"):
        tree.second_gear.linearize(tree, anew=False)
        p.say("moved = size = (reals)(real(0.0));")
        update_twists(tree, follow)
        p.leave(value(f"(!again || below(moved, size, real({SAME * SAME!r})))", "bool"))


def end_step(tree: TangentTree) -> None:
    """The end of a step that others follow."""
    for link in tree.links():
        end_twist(tree, link)
        for joint in link.joints():
            joint.advance(link)
            if isinstance(joint, OneAxis):
                for _ in link.acting():
                    joint.keep_stop(link, link.mode, link.limit, link.stuck)
                    joint.keep_rare(link, joint.end_speed(link))


def meet_impact(tree: TangentTree) -> None:
    """An impact at the end of a step (`step.project`)."""
    fit_speeds(tree)
    tree.stands = True
    for link in tree.links():
        for joint in link.joints():
            link.V, link.W = link.u + cross(link.g, link.local_com), joint.spin(link, link.g)
            if isinstance(joint, OneAxis):
                joint.turn_rotor(link, 0.0, tree.note_lost)
    tree.stands = False


def seed_pushes(link: LinkView) -> None:
    """Rates of outer forces and torques."""
    h = link.h
    for name in ("push_f", "push_n"):
        setattr(link, name, vector_at(getattr(link, name), [x * (0.25 * (h * h)) for x in seeds(link.tree, name)]))


def seed_commands(joint: Any, link: LinkView) -> None:
    """Rates of what is commanded to an axis."""
    if isinstance(joint, OneAxis):
        for name in ("effort", "servo_position", "servo_velocity", "voltage"):
            setattr(link, name, at_rate(getattr(link, name), seeds(link.tree, name)[0]))


def linearize_laws(tree: TangentTree) -> None:
    """Laws of all axes, in the active set of the step."""
    for link in tree.links():
        for joint in link.joints():
            if isinstance(joint, OneAxis):
                linearize_law(joint, link)


def read_ends(tree: TangentTree) -> None:
    """What all links have in the direction."""
    for link in tree.links():
        for joint in link.joints():
            read_end(joint, link)


def seed_place(joint: Any, link: LinkView) -> None:
    """Rates of coordinates."""
    x = seeds(link.tree, "place")
    if isinstance(joint, OneAxis):
        link.q = at_rate(link.q, x[0])
        if not isinstance(joint, Slider):
            c, s = value_of(link.c), value_of(link.s)
            link.c, link.s = dual(c, -s * x[0]), dual(s, c * x[0])
    elif isinstance(joint, Ball | Free):
        turn = Vector(*x[3:])
        if isinstance(joint, Ball):
            R = Quaternion(Vector(*map(value_of, link.rotation.v)), value_of(link.rotation.w)).matrix()
            turn = choose(link.sense > 0.0, turn, -(R @ turn))
        link.rotation = turned_at(link.rotation, list(turn))
        if isinstance(joint, Free):
            link.position = vector_at(link.position, x[:3])


def seed_speeds(joint: Any, link: LinkView) -> None:
    """Rates of the twist at the start, from those of joint speeds; an axis that friction holds has none.

    Twists of bodies keep by how much they do not fit the joint.
    """
    if isinstance(joint, Prescribed):
        return
    half = 0.5 * link.h
    y, base = [x * half for x in seeds(link.tree, "speed")], link.base
    W = link.W
    if isinstance(joint, Free):
        v = vector_at(link.V - cross(W, link.local_com), y[:3])
        link.W = W = vector_at(W, y[3:])
        link.V = vector_at(link.V, rates_of(v + cross(W, link.local_com)))
        return
    v = base.V + cross(base.W, link.local_anchor - base.local_com)
    along: Any = 0.0
    if isinstance(joint, OneAxis):
        y[0] = select(link.stuck > 0.5, 0.0, y[0])
        along = at_rate(joint.speed(link) * half, y[0])
        link.rotor = at_rate(link.rotor, y[0] * link.per_half_step)
    w = base.W
    if isinstance(joint, Slider):
        v = v + link.local_axis * along
    elif isinstance(joint, OneAxis):
        w = w + link.local_axis * along
    elif isinstance(joint, Ball):
        frame, spin, ahead = base.R @ link.frame, relative_spin(link, base), link.sense > 0.0
        spin = vector_at(spin, y[3:])
        w = w + frame @ choose(ahead, spin, -(link.rotation.matrix() @ spin))
    link.W = W = vector_at(W, rates_of(w))
    link.V = vector_at(link.V, rates_of(v + cross(W, link.local_com)))


class Ends(NamedTuple):
    """Links that have the bodies of a joint, `near` the ground and `far` from it, and the first link of the joint.

    Links between them have no mass; at the end of a step their spins fit the joint less well than those of bodies do.
    """

    near: LinkView
    first: LinkView
    far: LinkView


def ends_of(link: LinkView) -> Ends:
    """Of the joint of the link that a sweep is at."""
    tree = link.tree
    tree.program.say(f"""int first_of = i, far_of = i; const int joint = x.joint.data[i];
while (joint >= 0 && bases[first_of] >= 0 && x.joint.data[bases[first_of]] == joint) first_of = bases[first_of];
while (joint >= 0 && far_of + 1 < links && x.joint.data[far_of + 1] == joint) ++far_of;
const Place near = {tree.row}*(bases[first_of] + 1), first = {tree.row}*(first_of + 1), far = {tree.row}*(far_of + 1);
(void)near; (void)first; (void)far;""")
    return Ends(*(LinkView(tree, at) for at in ("near", "first", "far")))


def speed_of(joint: OneAxis, link: LinkView, ends: Ends) -> Any:
    """The speed of an axis, as the twists of the joint's bodies have it; scaled."""
    near, first, far = ends
    if not isinstance(joint, Slider):
        return dot(link.local_axis, far.W - near.W)
    ahead = link.sense > 0.0  # speeds are those of the child's anchor
    at = choose(ahead, far.origin, first.origin)
    v = far.V + cross(far.W, at - far.origin - far.local_com)
    return dot(link.local_axis, v - near.V - cross(near.W, at - near.origin - near.local_com))


def relative_spin(link: LinkView, near: LinkView) -> Vector:
    """Speeds of a ball joint: the spin of its child seen from its parent, in the parent's joint frame."""
    own = (link.base.R @ link.frame).T @ (link.W - near.W)
    return choose(link.sense > 0.0, own, -(link.rotation.matrix().T @ own))


def linearize_law(joint: OneAxis, link: LinkView) -> None:
    """Laws of an axis, in the active set of the step."""
    for _ in link.acting():
        link.u0 = select(link.stuck > 0.5, 0.0, joint.speed(link))
        joint.begin_rare(link)
        law = joint.prepare_law(link)
        link.law_b, link.slide = law.b, law.slide
        servo_a, link.servo_b = linear_servo(law, value_of(joint.end_speed(link)))
        if "law_a" in link.tree.rated:
            link.law_a, link.servo_a = law.a, servo_a
        u0, mode = link.u0, link.mode
        at_limit = absolute(mode) > AT_LIMIT - 0.5
        stays = select((mode > 2.5) & (mode < AT_LIMIT - 0.5), 0.0, u0)
        goal = select(at_limit, select(mode > 0.0, law.lower, law.upper) + u0, stays)
        link.goal = at_rate(link.goal, rate_of(goal))
        acts = is_locked(mode) | (absolute(value_of(link.given)) > 0.0)
        link.tree.note_law(acts)


def follow(joint: Any, link: LinkView, u: Vector, g: Vector) -> Any:
    """`exact.correct`, which tells by how much rates change."""
    tree = link.tree
    names = {Free: ("zl", "zv"), Ball: ("zv",), Weld: (), Prescribed: ()}.get(type(joint), ("z",))
    before = [rate_of(x) for name in names for x in numbers(getattr(link, name))]
    tree.second_gear.correct(joint, link, u, g)
    for old, x in zip(before, [x for name in names for x in numbers(getattr(link, name))], strict=True):
        tree.note_change(old, rate_of(x))
    return 0.0


def read_motion(tree: PlainTree) -> None:
    """Speeds of all joints, as `read_end` has their rates."""
    for link in tree.links():
        for joint in link.joints():
            ends, per = ends_of(link), link.per_half_step
            out = [0.0] * RESULT["speed"]
            if isinstance(joint, OneAxis):
                out[0] = speed_of(joint, link, ends)
            elif isinstance(joint, Ball):
                out[3:] = list(relative_spin(link, ends.near))
            elif isinstance(joint, Free):
                out = [*(link.V - cross(link.W, link.local_com)), *link.W]
            for k, x in enumerate(out):
                tree.program.write(f"seen({k})", x * per)


def read_end(joint: Any, link: LinkView) -> None:
    """What the end of the step has in the direction."""
    out: list[Any] = [0.0] * RESULT_SIZE
    per = link.per_half_step
    ends = ends_of(link)
    if isinstance(joint, OneAxis):
        out[0], out[6] = rate_of(link.q), rate_of(speed_of(joint, link, ends)) * per
    elif isinstance(joint, Ball):
        Q = link.rotation
        ahead, turn = link.sense > 0.0, turn_of(Q)
        R = Quaternion(Vector(*map(value_of, Q.v)), value_of(Q.w)).matrix()
        out[3:6] = list(choose(ahead, Vector(*turn), -(R.T @ Vector(*turn))))
        out[9:12] = [x * per for x in rates_of(relative_spin(link, ends.near))]
    elif isinstance(joint, Free):
        out[:3], out[3:6] = rates_of(link.position), turn_of(link.rotation)
        out[6:9] = [x * per for x in rates_of(link.V - cross(link.W, link.local_com))]
        out[9:12] = [x * per for x in rates_of(link.W)]
    for k, x in enumerate(out):
        link.tree.put_rate(f"result({k})", x)
