"""The loops over a rope as C++, from the equations of `rope.equations`: bodies of the functions in `rope.chain`.

Numbers of a slot are reached by pointers to those of the world, `name[i*S3 + k]`; what the loop carries is in local arrays.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sharnir.core.types import EPSILON, PRECISION
from sharnir.emit.algebra import IDENTITY, NO_MATRIX, ZERO, Matrix, Quaternion, Vector, cross, dot, outer
from sharnir.emit.expressions import Scalar, maximum, select, sqrt, value
from sharnir.emit.program import QUOTIENTS, UNDEFINED, Program
from sharnir.engine.rope.data import BODY, DRIVEN, LOOP, UNHELD, WOUND
from sharnir.engine.rope.equations import (
    NEAR,
    Element,
    Hanging,
    Held,
    Slide,
    Turning,
    along_element,
    along_row,
    disc_momentum,
    end_spin,
    far_bend,
    gradient_of,
    hold_element,
    hold_interface,
    hold_slack,
    mean_moment,
    moment_slopes,
    near_bend,
    scaled,
    slack_along,
    stiffness_of,
    strain_of,
    tangent,
    through_interface,
    turned_by,
)
from sharnir.engine.rope.equations import Bend as Bending

SIZES = {"real": 1, "vec3": 3, "quat": 4, "mat33": 9, "int": 1}
STATE = {
    "position": "vec3", "velocity": "vec3", "rotation": "quat", "spin": "vec3", "pull": "vec3", "moment": "vec3",
    "length": "real", "span": "real", "cut": "int",
}  # fmt: skip
WORK = {
    "mass": "real", "damp": "real", "bar": "real", "d": "vec3", "strain": "vec3", "elastic": "vec3", "extra": "real",
    "slack": "int", "reach": "real", "push_out": "real", "slide": "real", "slide_v": "vec3", "slide_w": "vec3",
    "felt_v": "vec3", "felt_w": "vec3", "slides": "real", "c": "vec3", "e": "vec3", "defect": "vec3", "load": "vec3",
    "A": "mat33", "B": "mat33", "C": "mat33", "U": "mat33", "K": "mat33", "J": "mat33", "bias": "vec3", "X": "mat33",
    "Y": "mat33", "P": "mat33", "Q": "mat33", "loose": "mat33", "loose_v": "vec3", "tie_A": "mat33", "tie_p": "vec3",
    "dv": "vec3", "v": "vec3", "w": "vec3", "r": "vec3", "q": "quat", "push": "vec3", "turn": "vec3",
    "tip": "vec3", "mean_tip": "vec3", "axis": "vec3", "own": "mat33",
}  # fmt: skip
OF_ROPE = {
    "Z_A": "mat33", "Z_B": "mat33", "Z_C": "mat33", "Z_D": "mat33", "p_l": "vec3", "p_a": "vec3", "G": "mat33",
    "last_X": "mat33", "last_Y": "mat33", "last_P": "mat33", "last_Q": "mat33", "g": "vec3", "weight": "real", "rim": "real",
    "slid": "real", "change": "real", "speed": "real",
}  # fmt: skip
REAL = "wp::float64" if PRECISION == "double" else "wp::float32"
SLACK = max(1.0e-8, 1.0e3 * EPSILON)
"""Share of its mobility that a held last point is given in all directions: a straight rope has none along itself."""
LITTLE = max(1.0e-12, 1.0e3 * EPSILON)  # that share where both ends are held
SPIN_FLOOR = 64.0 * EPSILON  # least part of D's trace that an element has about its axis
SMALL = EPSILON ** (2.0 / 3.0)  # square of a relative turn below which its correction is rounding
TWIST = 0.01  # least GJ in the factors, relative to EI: with thin elements alone passes would diverge
BUCKLES = 9.869604401089358  # π²


def _pointer(owner: str, name: str, kind: str, at: str = "w") -> str:
    c = "int" if kind == "int" else "real"
    return f"{c}* const {name}_at = ({c}*)x.{owner}.{name}.data + {SIZES[kind]}*({at});"


def _head(names: set[str]) -> str:
    """Types, and pointers to arrays of slots by name; of ropes, those of rope k."""
    lines = [f"using real = {REAL};", QUOTIENTS.format(doubles=int(PRECISION == "double")), "auto& x = s.data[0];"]
    lines.append("const int S1 = x.work.mass.strides[0]/(int)sizeof(real), S3 = 3*S1, S4 = 4*S1, S9 = 9*S1;")
    lines.append("const int first = x.ropes.first.data[k], n = x.state.segments.data[k*S1 + w];")
    lines.append("const int kind = x.ropes.kind.data[2*k + 1], start_kind = x.ropes.kind.data[2*k];")
    lines.append("(void)S1; (void)S3; (void)S4; (void)S9; (void)kind; (void)start_kind;")
    for owner, table in (("state", STATE), ("work", WORK)):
        lines += [_pointer(owner, name, kind) for name, kind in table.items() if name in names]
    lines += [_pointer("work", name, kind, "k*S1 + w") for name, kind in OF_ROPE.items() if name in names]
    return "\n".join(lines)


def _parameter(name: str) -> str:
    """A parameter of rope k, which may be one for all worlds."""
    at = f"(const char*)x.ropes.{name}.data + k*x.ropes.{name}.strides[0] + w*x.ropes.{name}.strides[1]"
    return f"const real {name} = *(const real*)({at});"


class Loop:
    """Writes one function; slots are reached by the name of their number."""

    def __init__(self) -> None:
        self.p = Program()
        self.used: set[str] = set()

    # -- numbers of slots, of the rope, and local ones

    def _places(self, name: str, i: str | None) -> list[str]:
        table = OF_ROPE if i is None else {**STATE, **WORK}
        self.used.add(name)
        size = SIZES[table[name]]
        return [f"{name}_at[{k}]" if i is None else f"{name}_at[({i})*S{size} + {k}]" for k in range(size)]

    def get(self, name: str, i: str | None = "i") -> Any:
        """A quantity of a slot, or of the rope (None)."""
        return self._shaped([self.p.read(x) for x in self._places(name, i)])

    def put(self, name: str, x: Any, i: str | None = "i") -> None:
        """The reverse."""
        entries = x.entries() if hasattr(x, "entries") else list(x) if isinstance(x, Vector) else [x]
        for place, entry in zip(self._places(name, i), entries, strict=True):
            self.p.write(place, entry)

    @staticmethod
    def _shaped(e: list[Any]) -> Any:
        if len(e) == 1:
            return e[0]
        if len(e) == 3:
            return Vector(*e)
        return Matrix.from_entries(e) if len(e) == 9 else Quaternion(Vector(*e[:3]), e[3])

    def local(self, name: str) -> Any:
        """What the loop carries: matrices in capitals, else vectors."""
        return self._shaped([self.p.read(f"{name}_[{k}]") for k in range(9 if name[0].isupper() else 3)])

    def keep(self, **values: Any) -> None:
        """Give it a value."""
        for name, x in values.items():
            for k, entry in enumerate(x.entries() if isinstance(x, Matrix) else x):
                self.p.write(f"{name}_[{k}]", entry)

    def declare(self, *names: str) -> None:
        """Declare what the loop carries, 0 to begin with."""
        for name in names:
            self.p.say(f"real {name}_[{9 if name[0].isupper() else 3}] = {{}};")

    # -- what hangs on a point

    def hanging(self) -> Hanging:
        return Hanging(*(self.local(name) for name in ("A", "B", "C", "D", "a", "b")))

    def keep_hanging(self, x: Hanging, bias_only: bool = False) -> None:
        names = ("a", "b") if bias_only else ("A", "B", "C", "D", "a", "b")
        self.keep(**{name: getattr(x, name) for name in names})

    def held(self) -> Held:
        return Held(*(self.local(name) for name in ("X", "Y", "P", "Q", "G", "g")))

    def keep_held(self, h: Held) -> None:
        self.keep(**h._asdict())

    @contextmanager
    def when(self, head: str, *needs: Any) -> Iterator[None]:
        """A block."""
        with self.p.block(head, *needs):
            yield

    def text(self, before: str = "", after: str = "") -> str:
        """The body of the function."""
        body = self.p.finish()
        return "\n".join((_head(self.used), before, body, after, UNDEFINED, ""))


def _diagonal(m: Matrix, s: Scalar) -> Matrix:
    return m + scaled(IDENTITY, s)


# ---- the pose that velocities lead to ----------------------------------------------------------------------------------------


def pose_code() -> str:
    """r₁ = r₀ + Δt v̄, R₁ = cay(Δt ω̄) R₀ of a rope."""
    o = Loop()
    end, start = value("end"), value("start")
    with o.when("for (int i = first; i <= first + n; ++i) {"):
        o.put("r", o.get("position") + (o.get("velocity") * start + o.get("v") * end))
        with o.when("if (i < first + n) {"):
            theta = o.get("spin") * start + o.get("w") * end
            o.put("turn", theta)
            o.put("q", turned_by(theta, o.get("rotation")))
    o.used.add("weight")
    return o.text("const real h = x.h.data[w], end = weight_at[0]*h, start = h - end;")


# ---- what is missed, and its slopes ------------------------------------------------------------------------------------------

MISS_HEAD = f"""const real h = x.h.data[w], end = weight_at[0]*h;
const real radius = x.ropes.radius.data[k], thin = real(0.25)*x.ropes.density.data[k]*radius*radius;
const real late = damping/h + weight_at[0] - real(0.5), more = end*(end + damping);
const real twist = wp::max(GJ, real({TWIST})*EI);
const bool exact = x.exact.data[w] == 1;
const real none[4] = {{real(0.0), real(0.0), real(0.0), real(1.0)}};
const auto frame = [&](const auto& frames, int side) -> const real* {{ return x.ropes.clamp.data[2*k + side] == 1
? (const real*)frames.data + 4*((2*k + side)*S1 + w) : none; }};
const auto turn_of = [&](int side) -> const real* {{ return x.ropes.clamp.data[2*k + side] == 1
? (const real*)x.work.frame_turn.data + 3*((2*k + side)*S1 + w) : none; }};
const real *a0 = frame(x.work.frame0, 0), *a1 = frame(x.work.frame1, 0), *turn_a = turn_of(0);
real before[3] = {{}};"""


def _by_pointer(o: Loop, name: str, size: int) -> Any:
    return o._shaped([o.p.read(f"{name}[{k}]") for k in range(size)])


def miss_code() -> str:
    """What points, elements and interfaces of a rope miss at the pose at hand; with `anew`, the slopes of that."""
    o = Loop()
    p = o.p
    h, end, thin, late, EI, GJ = (value(n) for n in ("h", "end", "thin", "late", "EI", "GJ"))
    with o.when("for (int j = 0; j <= n; ++j) {"):
        p.say("const int i = first + j; const bool last = j == n;")
        p.say("const real* const b0 = last ? frame(x.work.frame0, 1) : rotation_at + i*S4;")
        p.say("const real* const b1 = last ? frame(x.work.frame1, 1) : q_at + i*S4;")
        p.say("const real* const turn_b = last ? turn_of(1) : turn_at + i*S3;")
        o.used |= {"rotation", "q", "turn"}
        with o.when("if ({0}) {{", o.get("bar") > 0.0):
            _interface(o, h, late, EI, GJ)
        with o.when("else {"):
            o.put("e", Vector(0.0, 0.0, 0.0))
            with o.when("if (anew) {"):
                o.put("K", NO_MATRIX)
                o.put("J", NO_MATRIX)
        lacks = (o.get("v") - o.get("velocity")) * o.get("mass") + o.get("v") * o.get("damp") - o.get("push")
        lacks = lacks - _by_pointer(o, "before", 3)
        with o.when("if (last) {"):
            o.put("defect", lacks)
        with o.when("else {"):
            f = o.get("pull")
            o.put("defect", lacks + f)
            _element(o, f, h, end, thin)
            for k in range(3):
                p.write(f"before[{k}]", f[k])
        p.say("a0 = b0; a1 = b1; turn_a = turn_b;")
    o.used.add("weight")
    return o.text("\n".join(_parameter(n) for n in ("EI", "GJ", "damping")) + "\n" + MISS_HEAD)


def _interface(o: Loop, h: Any, late: Any, EI: Any, GJ: Any) -> None:
    """e of an interface, and K."""
    p = o.p
    a1, b1 = (_by_pointer(o, n, 4) for n in ("a1", "b1"))
    turn = Quaternion(-a1.v, a1.w) * b1
    p.say("const int at = 3*i; const bool curved = x.ropes.rest.data[i][0] != real(0.0) || x.ropes.rest.data[i][1] != real(0.0)")
    p.say("|| x.ropes.rest.data[i][2] != real(0.0); (void)at; const real straight = curved ? real(0.0) : real(1.0);")
    p.say("real p_[4];")
    for k, x in enumerate(turn.entries()):
        p.write(f"p_[{k}]", x)
    with o.when("if (curved) {"):
        u = Vector(*(p.read(f"x.ropes.rest.data[i][{k}]") for k in range(3))) * (-0.5 / o.get("bar"))
        p.say("real sine, cosine;")
        size = sqrt(dot(u, u))
        p.write("cosine", size)
        p.forget("sine = wp::sin(cosine)/cosine; cosine = wp::cos(cosine);")
        u = Vector(*(p.read(f"x.ropes.rest.data[i][{k}]") for k in range(3))) * (-0.5 / o.get("bar"))
        back = Quaternion(u * p.read("sine"), p.read("cosine"))
        for k, x in enumerate((_by_pointer(o, "p_", 4) * back).entries()):
            p.write(f"p_[{k}]", x)
    with o.when("if ({0}) {{", p.read("p_[3]") < 0.0):
        for k in range(4):
            p.write(f"p_[{k}]", -p.read(f"p_[{k}]"))
    turn = _by_pointer(o, "p_", 4)
    p.say("real s2_, c_, E_, C_, z_, T_, k_;")
    c2 = turn.v.z * turn.v.z + turn.w * turn.w
    p.write("s2_", turn.v.x * turn.v.x + turn.v.y * turn.v.y)
    p.write("c_", sqrt(c2))
    near = (turn.v.x * turn.v.x + turn.v.y * turn.v.y <= NEAR) & (turn.v.z * turn.v.z <= c2 * NEAR)
    for head, terms in (("if ({0}) {{", near_bend), ("else {", far_bend)):
        with o.when(head, *([near] if terms is near_bend else [])):
            found = terms(_by_pointer(o, "p_", 4), p.read("s2_"), p.read("c_"))
            for name, x in found._asdict().items():
                p.write(f"{name}_", x)
    turn = _by_pointer(o, "p_", 4)
    bend = Bending(*(p.read(f"{name}_") for name in Bending._fields))
    e0, e1 = o.get("strain"), strain_of(turn, bend)
    flips = dot(e1 + e0, e1 + e0) < dot(e1 - e0, e1 - e0)
    e1 = Vector(*(select(flips, -x, x) for x in e1))
    x = Turning(
        _by_pointer(o, "turn_a", 3), _by_pointer(o, "turn_b", 3), e0, e1, o.get("elastic"), gradient_of(turn, bend, EI, GJ),
        EI, GJ, late, SMALL,
    )  # fmt: skip
    R = _by_pointer(o, "a0", 4).matrix()
    o.put("e", mean_moment(R, x) * (o.get("bar") * h) - o.get("moment"))
    p.say("")
    with o.when("if (anew && exact) {"):
        R1 = _by_pointer(o, "a1", 4).matrix()
        slopes = moment_slopes(R, R1, x, turn, bend, select(flips, -1.0, 1.0), value("end"))
        for name, slope in zip("KJ", slopes, strict=True):
            o.put(name, scaled(slope, o.get("bar") * h))
    with o.when("else if (anew) {"):
        bend = Bending(*(p.read(f"{name}_") for name in Bending._fields))
        K = stiffness_of(_by_pointer(o, "a1", 4).matrix(), _by_pointer(o, "p_", 4), bend, EI, value("twist"), value("straight"))
        o.put("K", scaled(K, value("more") * o.get("bar")))
        o.put("J", scaled(K, value("more") * o.get("bar")))


def _element(o: Loop, f: Vector, h: Any, end: Any, thin: Any) -> None:
    """c of an element, what its momentum misses, and its levers and slopes."""
    p = o.p
    l = o.get("length")
    o.used |= {"slack", "length"}
    across, d1 = o.get("r", "i + 1") - o.get("r"), tangent(o.get("q"))
    p.say("real s1_;")
    p.write("s1_", select(slack_is(1), dot(d1, across), select(slack_is(-1), -l, l)))
    with o.when("{"):
        s1, l, d0, d1 = p.read("s1_"), o.get("length"), tangent(o.get("rotation")), tangent(o.get("q"))
        f = o.get("pull")
        x = Element(thin * l, o.get("turn"), d0, d1, o.get("span"), s1, f)
        o.put("c", (o.get("r", "i + 1") - o.get("r") - d1 * s1) * (-1.0 / end))
        L0, L1 = disc_momentum(x.i1, d0, o.get("spin")), x.momentum(o.get("w"))
        torque = Vector(*(p.read(f"x.control.torque.data[i*S1 + w][{k}]") for k in range(3)))
        couple = o.get("moment") - o.get("moment", "i + 1") + torque * h - cross(x.lever, f)
        o.put("load", couple - (L1 - L0))
        with o.when("if (slack_at[i*S1] > 0) {"):
            bears = value("EI") * BUCKLES / (l * l) * h
            o.put("push_out", select(slack_is(int(WOUND)), 0.0, bears - dot(x.axis, f)))
        with o.when("if (anew) {"):
            mean = (d0 + d1) * 0.5
            o.put("d", mean)
            o.put("reach", s1)
            with o.when("if (exact) {"):
                o.put("tip", d1)
                o.put("mean_tip", x.lever)
                o.put("axis", x.axis)
                o.put("own", x.slope(L1, end))
            with o.when("else {"):
                o.put("extra", dot(f, mean) * s1 * end * -0.5)


def slack_is(number: int) -> Any:
    """Whether an element is slack so."""
    return value(f"(slack_at[i*S1] == {number})", "bool")


# ---- elimination -------------------------------------------------------------------------------------------------------------


def inward_code(anew: bool) -> str:
    """Backward over a rope: what hangs on each point, then at the first end; `anew`: the matrices too."""
    o = Loop()
    p = o.p
    o.used |= {"cut", "slack", "slide", "rim"}
    for name in ("A", "B", "C", "D", "a", "b"):
        o.declare(name)
    for name in ("X", "Y", "P", "Q", "G", "g"):
        o.declare(name)
    if anew:
        A, B, C, D = (o.get(f"Z_{name}", None) for name in "ABCD")
        o.keep(A=_diagonal(A, o.get("mass", "first + n") + o.get("damp", "first + n")), B=B, C=C, D=D)
    o.keep(a=o.get("p_l", None) + o.get("defect", "first + n"), b=o.get("p_a", None))
    with o.when("if (tied) {"):
        if anew:
            o.keep(A=o.local("A") + o.get("tie_A", "first + n"))
        o.keep(a=o.local("a") + o.get("tie_p", "first + n"))
    if anew:
        with o.when("if (held) {"):
            o.keep(X=IDENTITY, P=IDENTITY)
    with o.when("for (int j = n; j >= 0; --j) {"):
        p.say("const int i = first + j, m = i - 1; const bool joined = j > 0 && cut_at[m*S1] == 0;")
        _at_point(o, anew)
        with o.when("if (bar_at[i*S1] > real(0.0) || (j == n && !with_body)) {"):
            _inwards(o, anew, True)
        with o.when("else {"):
            _inwards(o, anew, False)
    if anew:
        with o.when("if (held) {"):
            _at_held(o)
    _at_first(o, anew)
    return o.text(INWARD_HEAD)


INWARD_HEAD = f"""const bool held = kind == {int(DRIVEN)} || kind == {int(LOOP)}, with_body = kind == {int(BODY)};
const bool tied = x.ropes.tied.data[k] == 1, exact = x.exact.data[w] == 1;
const real radius = x.ropes.radius.data[k], thin = real(0.25)*x.ropes.density.data[k]*radius*radius;
(void)exact; (void)thin; (void)with_body;"""


def _at_point(o: Loop, anew: bool) -> None:
    """What is missed comes in."""
    o.used.add("bar")
    with o.when("if (joined) {"):
        c = o.get("c", "m")
        A, C = (o.local("A"), o.local("C")) if anew else (o.get("A"), o.get("C"))
        o.keep(a=o.local("a") + A @ c, b=o.local("b") + C @ c)
        with o.when("if (held) {"):
            P = o.local("P") if anew else o.get("P")
            o.keep(g=o.local("g") + P @ o.get("c", "m"))
    o.put("bias", o.local("b"))
    if anew:
        for name in "ABC":
            o.put(name, o.local(name))
        with o.when("if (held) {"):
            for name in "XYPQ":
                o.put(name, o.local(name))


def _inwards(o: Loop, anew: bool, bends: bool) -> None:
    """From point j to the one before: through its interface, which `bends` or not, and along the element before it."""
    if bends:
        with o.when("if (j == n && !with_body) {"):  # the frame that holds the end does not yield
            if anew:
                o.put("U", NO_MATRIX)
                o.keep(B=NO_MATRIX, C=NO_MATRIX, D=o.get("J"))
            o.keep(b=o.get("e"))
        with o.when("else {"):
            _through(o, anew, True)
    else:
        _through(o, anew, False)
    with o.when("if (j > 0) {"):
        with o.when("if (!joined) {"):
            _at_cut(o, anew)
        with o.when("else if (slack_at[m*S1] > 0) {"):
            _at_slack(o, anew)
        _to_point_before(o, anew, bends)


def _through(o: Loop, anew: bool, bends: bool) -> None:
    """Eliminate the element of point j by its interface."""
    o.p.say("real t_[3];")
    K, J, e, zero = (o.get("K"), o.get("J"), o.get("e"), ZERO) if bends else (None, None, ZERO, ZERO)
    if anew:
        out, U, t = through_interface(o.hanging(), K, J, e)
        o.put("U", U)
        o.keep(t=t)
        o.keep_hanging(out)
        with o.when("if (held) {"):
            before = Hanging(NO_MATRIX, o.get("B"), o.get("C"), NO_MATRIX, zero, zero)
            K, J = (o.get("K"), o.get("J")) if bends else (None, None)
            o.keep_held(hold_interface(o.held(), before, K, J, o.get("U"), o.local("t")))
        return
    t = o.get("U") @ (e - o.local("b"))
    o.keep(t=t, a=o.local("a") + o.get("B") @ t, b=zero if K is None else e - K @ t)
    with o.when("if (held) {"):
        o.keep(g=o.local("g") + o.get("Q") @ o.local("t"))


def _beyond(o: Loop, i: str = "i") -> Matrix:
    """X once element i is eliminated."""
    out: Matrix = o.get("X", i) - o.get("B", i) @ (o.get("U", i) @ o.get("Y", i))
    return out


def _beyond_speed(o: Loop) -> Matrix:
    """P once element i is eliminated."""
    out: Matrix = o.get("P") - o.get("Q") @ (o.get("U") @ o.get("C"))
    return out


def _at_cut(o: Loop, anew: bool) -> None:
    """A piece that hangs on nothing."""
    if anew:
        o.put("loose", o.local("A").inverse())
        o.p.say("")
    with o.when("{"):
        v = -(o.get("loose") @ o.local("a"))
        o.put("loose_v", v)
        with o.when("if (held) {"):
            P = o.local("P") if anew else _beyond_speed(o)
            o.keep(g=o.local("g") + P @ o.get("loose_v"))
            if anew:
                o.keep(G=o.local("G") + P @ (o.get("loose") @ o.local("X")))
                o.keep(X=NO_MATRIX, Y=NO_MATRIX, P=NO_MATRIX, Q=NO_MATRIX)
    zero = Vector(0.0, 0.0, 0.0)
    o.keep(a=zero, b=zero)
    if anew:
        o.keep(A=NO_MATRIX, B=NO_MATRIX, C=NO_MATRIX, D=NO_MATRIX)


def _at_slack(o: Loop, anew: bool) -> None:
    """A slack or wound element: its points slide along it."""
    p = o.p
    rim = select(value(f"(slack_at[m*S1] == {int(WOUND)})", "bool"), p.read("rim_at[0]"), 0.0)
    if anew:
        with o.when("if (!exact) {"):
            o.put("tip", o.get("d", "m"), "m")
            o.put("axis", o.get("d", "m"), "m")
        d, axis = o.get("tip", "m"), o.get("axis", "m")
        out, s, sigma = slack_along(o.hanging(), d, axis, rim, o.get("push_out", "m"))
        for name, x in zip(("slide", "slide_v", "slide_w", "felt_v", "felt_w"), s, strict=True):
            o.put(name, x)
        o.put("slides", sigma)
        o.keep_hanging(out)
        with o.when("if (held) {"):
            s = Slide(*(o.get(name) for name in ("slide", "slide_v", "slide_w", "felt_v", "felt_w")))
            o.keep_held(hold_slack(o.held(), s, o.get("tip", "m"), o.get("axis", "m"), o.get("slides")))
        return
    sigma = (o.get("push_out", "m") - dot(o.get("axis", "m"), o.local("a"))) * o.get("slide")
    o.put("slides", sigma)
    o.keep(a=o.local("a") + o.get("slide_v") * sigma, b=o.local("b") + o.get("slide_w") * sigma)
    with o.when("if (held) {"):
        o.keep(g=o.local("g") + (_beyond_speed(o) @ o.get("tip", "m")) * o.get("slides"))


def _to_point_before(o: Loop, anew: bool, bends: bool) -> None:
    """Along the element before."""
    if anew:
        with o.when("if (!exact) {"):
            d, extra = o.get("d", "m"), o.get("extra", "m")
            o.put("tip", d, "m")
            o.put("mean_tip", d * o.get("reach", "m"), "m")
            i1 = value("thin") * o.get("length", "m")
            o.put("own", scaled(IDENTITY, i1 + extra) + scaled(outer(d, d), i1 - extra), "m")
        tip, mean_tip = o.get("tip", "m") * o.get("reach", "m"), o.get("mean_tip", "m")
        x = o.hanging()
        if not bends:
            x = x._replace(B=NO_MATRIX, C=NO_MATRIX, D=NO_MATRIX, b=ZERO)
        x = along_element(x, tip, mean_tip, o.get("own", "m"), o.get("load", "m"))
        d = o.get("tip", "m")  # a thin element's spin is not to be lost beside a heavy load
        D = x.D + scaled(outer(d, d), (x.D[0, 0] + x.D[1, 1] + x.D[2, 2]) * SPIN_FLOOR)
        A = _diagonal(x.A, o.get("mass", "m") + o.get("damp", "m"))
        o.keep_hanging(x._replace(A=A, D=D, a=x.a + o.get("defect", "m")))
        with o.when("if (held) {"):
            o.keep_held(hold_element(o.held(), o.get("tip", "m") * o.get("reach", "m"), o.get("mean_tip", "m")))
        with o.when("if (tied) {"):
            o.keep(A=o.local("A") + o.get("tie_A", "m"), a=o.local("a") + o.get("tie_p", "m"))
        return
    a = o.local("a")
    b = o.local("b") if bends else ZERO
    o.keep(a=a + o.get("defect", "m"), b=b + cross(o.get("mean_tip", "m"), a) - o.get("load", "m"))
    with o.when("if (tied) {"):
        o.keep(a=o.local("a") + o.get("tie_p", "m"))


def _at_held(o: Loop) -> None:
    """The inverse mobility of a held last point; of a driven one, what it adds at the first end."""
    G = o.local("G")
    both = value(f"(start_kind == {int(DRIVEN)})", "bool")  # nothing of it is added to a body's inertia
    share = (G[0, 0] + G[1, 1] + G[2, 2]) * select(both, LITTLE, SLACK) + 1.0e-30
    o.put("G", _diagonal(G, share).inverse(), None)
    for name in "XYPQ":
        o.put(f"last_{name}", o.local(name), None)
    with o.when(f"if (kind == {int(DRIVEN)}) {{"):
        XG, YG = o.local("X") @ o.get("G", None), o.local("Y") @ o.get("G", None)
        P, Q = o.local("P"), o.local("Q")
        x = o.hanging()
        o.keep_hanging(Hanging(x.A + XG @ P, x.B + XG @ Q, x.C + YG @ P, x.D + YG @ Q, x.a, x.b))


def _at_first(o: Loop, anew: bool) -> None:
    """Z and p₀ at the first end."""
    with o.when("if (held) {"):
        o.put("g", o.local("g"), None)
        with o.when(f"if (kind == {int(DRIVEN)}) {{"):
            m = o.get("G", None) @ o.local("g")
            o.keep(a=o.local("a") + o.get("last_X", None) @ m, b=o.local("b") + o.get("last_Y", None) @ m)
    if anew:
        for name in "ABCD":
            o.put(f"Z_{name}", o.local(name), None)
    o.put("p_l", o.local("a"), None)
    o.put("p_a", o.local("b"), None)


# ---- outward -----------------------------------------------------------------------------------------------------------------

OUTWARD_HEAD = f"""const bool held = kind == {int(DRIVEN)} || kind == {int(LOOP)};
const bool tied = x.ropes.tied.data[k] == 1, exact = x.exact.data[w] == 1;
real v_[3] = {{end_v[0], end_v[1], end_v[2]}}, o_[3] = {{end_w[0], end_w[1], end_w[2]}}, f_[3], u_[3] = {{}}, t_[3];
real most = real(0.0), fastest = real(0.0);
real* const end_force = (real*)x.state.end_force.data + 3*(2*k*S1 + w);"""


def outward_code() -> str:
    """Forward over a rope: new velocities and impulses; largest squares of a change and of a speed."""
    o = Loop()
    p = o.p
    o.used |= {"cut", "slack", "slid"}
    v, omega = o.local("v"), o.local("o")
    o.keep(f=o.get("Z_A", None) @ v + o.get("Z_B", None) @ omega + o.get("p_l", None))
    with o.when(f"if (start_kind == {int(UNHELD)}) {{"):
        o.keep(f=Vector(0.0, 0.0, 0.0))
    with o.when("if (held) {"):
        free = o.get("g", None) + o.get("last_P", None) @ o.local("v") + o.get("last_Q", None) @ o.local("o")
        last = Vector(*(p.read(f"held_v[{k}]") for k in range(3)))
        o.keep(u=o.get("G", None) @ (last - free))
        with o.when(f"if (kind == {int(LOOP)}) {{"):
            o.keep(f=o.local("f") - o.get("last_X", None) @ o.local("u"))
    for k in range(3):
        p.write(f"end_force[{k}]", p.read(f"end_force[{k}]") + o.local("f")[k])
    with o.when("for (int j = 0; j <= n; ++j) {"):
        p.say("const int i = first + j, m = i - 1; const bool joined = j > 0 && cut_at[m*S1] == 0;")
        with o.when("if (joined && slack_at[m*S1] > 0) {"):
            _slide(o)
        with o.when("{"):
            t = o.get("C") @ o.local("v") + o.get("bias")
            o.keep(t=-t)
        with o.when("if (held) {"):
            o.keep(t=o.local("t") + o.get("Y") @ o.local("u"))
        with o.when("if ({0}) {{", o.get("bar") > 0.0):
            e = o.get("e") + o.get("J") @ o.local("o")
            turn = o.get("U") @ (o.local("t") + e)
            o.put("moment", o.get("moment") + e - o.get("K") @ turn)
            o.keep(o=turn)
        with o.when("else {"):
            o.keep(o=o.get("U") @ o.local("t"))
        with o.when("if (joined) {"):
            o.keep(v=o.local("v") + o.get("c", "m"))
        _move(o)
        with o.when("if (tied) {"):
            o.put("dv", o.local("v"))
            o.keep(f=o.local("f") - o.get("tie_A") @ o.local("v") - o.get("tie_p"))
        with o.when("if (j < n) {"):
            o.keep(f=o.local("f") - o.local("v") * (o.get("mass") + o.get("damp")) - o.get("defect"))
            with o.when("if (cut_at[i*S1] == 1) {"):
                o.keep(f=Vector(0.0, 0.0, 0.0), v=o.get("loose_v", "i + 1"))
                with o.when("if (held) {"):
                    o.keep(v=o.local("v") + o.get("loose", "i + 1") @ (_beyond(o, "i + 1") @ o.local("u")))
            with o.when("else {"):
                o.keep(v=o.local("v") + cross(o.local("o"), o.get("tip")) * o.get("reach"))
            o.put("pull", o.get("pull") + o.local("f"))
    p.say("const int i = first + n;")
    taken = o.local("v") * (o.get("mass") + o.get("damp")) + o.get("defect") - o.local("f")
    for k in range(3):
        p.write(f"end_force[3*S1 + {k}]", p.read(f"end_force[3*S1 + {k}]") + taken[k])
    with o.when(f"if (kind == {int(BODY)}) {{"):
        b = "x.ropes.body.data[2*k + 1]*S1 + w"
        omega = o.local("o")
        arm = Vector(*(p.read(f"x.work.end_arm.data[(2*k + 1)*S1 + w][{k}]") for k in range(3)))
        for k, y in enumerate(o.local("v") - cross(omega, arm)):
            p.write(f"x.body.dv.data[{b}][{k}]", y)
            p.write(f"x.body.dw.data[{b}][{k}]", omega[k])
    p.say("change_at[0] = wp::sqrt(most); speed_at[0] = wp::sqrt(fastest);")
    o.used |= {"change", "speed"}
    return o.text(OUTWARD_HEAD)


def _slide(o: Loop) -> None:
    """By how much a slack element slides, which its points do."""
    o.p.say("real slides_;")
    felt = dot(o.get("felt_v"), o.local("v")) + dot(o.get("felt_w"), o.local("o"))
    o.p.write("slides_", o.get("slides") - felt * o.get("slide"))
    with o.when("if (held) {"):
        more = dot(along_row(o.get("axis", "m"), _beyond(o)), o.local("u")) * o.get("slide")
        o.p.write("slides_", o.p.read("slides_") + more)
    o.p.say(f"if (slack_at[m*S1] == {int(WOUND)}) slid_at[0] = slides_;")
    o.keep(v=o.local("v") + o.get("tip", "m") * o.p.read("slides_"))


def _move(o: Loop) -> None:
    """Velocities of a point and an element, and how much they changed."""
    p = o.p
    p.say("real by_[3];")
    o.keep(by=o.local("o"))
    with o.when("if (exact && j < n) {"):
        o.keep(by=end_spin(o.get("turn"), o.local("o")))
    with o.when("{"):
        by, dv, v, omega = o.local("by"), o.local("v"), o.get("v"), o.get("w")
        v, omega = v + dv, omega + by
        o.put("v", v)
        o.put("w", omega)
        p.say("const real l2_ = j < n ? length_at[i*S1]*length_at[i*S1] : real(0.0); real changed_, moves_;")
        o.used.add("length")
        l2 = value("l2_")
        p.write("changed_", dot(dv, dv) + dot(by, by) * l2)
        p.say("if (changed_ > most || changed_ != changed_) most = changed_;")
        p.write("moves_", maximum(dot(v, v), dot(omega, omega) * l2))
        p.say("fastest = wp::max(fastest, moves_);")
