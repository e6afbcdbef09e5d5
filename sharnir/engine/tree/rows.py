"""Rows beside the forest: closures between links, solved by impulses with the forest's response (theory, section 4).

A row acts with the means of its vectors at the start and the end of the step, so that closed constraints do no work. In the
scaled quantities of `step`, with J the row's mean directions on its links,

    G₁ = G₀ + 2 J (u, g)            gap at the end of the step, exact: all rows are bilinear in points and axes
    f, n −= Jᵀ λ                    λ is the row's impulse times ¼ h
    ½ δG₁ = J₁ (δu, δg)             J₁: the derivative of the gap, by directions of the end

An iteration corrects λ and the joint speeds together. With the factors that `compute_momenta` made, unit impulses along J and J₁
are carried along the row's path to the ground. They leave y and y₁ on every joint's own equation; x = D y₁, 0 where laws lock the
joint. Then

    W_rs = Σ x_r · y_s              what the impulse of row s does to row r
    Σ x_r · e                       what the joints' own corrections do to row r, y₁ · jump where they are locked
    e += y λ                        what a row's impulse does to a joint's equation

are sums over the joints on the paths: no further sweep is needed. W = L D U within its envelope. A row whose pivot is a small
part of its own response depends on rows before it: it gets no impulse.

A vector r̄ = M r changes with its link's mean twist so that its end changes by δr₁ = 2 (E − [g])⁻¹ (δg × r̄) (`lead_back`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from sharnir.emit.algebra import ZERO, Matrix, Vector, cross, dot, skew
from sharnir.emit.expressions import absolute, maximum, minimum, select, sqrt
from sharnir.engine.tree.ball_friction import BallFriction
from sharnir.engine.tree.ball_laws import FRICTION, BallWithLaws
from sharnir.engine.tree.closures import ANGLE, GEAR, POINT, ROD, ROWS, SPRING
from sharnir.engine.tree.joints import Ball, Free, OneAxis, Prescribed, Slider, Weld
from sharnir.engine.tree.several_axes import SeveralAxes, locked
from sharnir.laws.axis import not_

BLUR = 10.0  # times (|g|² + gap)²: mean directions of dependent rows differ by |g|², and by gaps (rad, of the arms' length)
OPEN, WIDEST = 1e-5, 0.1  # gaps beyond which rows are factored again in the next iteration, and the largest that count
NEAR = 1e-12  # m: ends of a spring that are nearer have no direction
PLAIN_BALL = Ball()
AXES = (Vector(1.0, 0.0, 0.0), Vector(0.0, 1.0, 0.0), Vector(0.0, 0.0, 1.0))


# ---- kinds of closures -------------------------------------------------------------------------------------------------------


Wrenches = list[tuple[Vector, Vector, Vector, Vector]]


def times(m: Matrix, s: Any) -> Matrix:
    """A matrix times a number."""
    return Matrix([[x * s for x in r] for r in m.rows])


def length(x: Vector) -> Any:
    """Length of a vector."""
    return sqrt(dot(x, x))


def choose(condition: Any, x: Vector, y: Vector) -> Vector:
    """One of two vectors."""
    return Vector(*(select(condition, a, b) for a, b in zip(x, y, strict=True)))


def lead_back(g: Vector, x: Vector) -> Vector:
    """(E + [g])⁻¹ x."""
    out: Vector = (x - cross(g, x) + g * dot(g, x)) * (1.0 / (1.0 + dot(g, g)))
    return out


class Kind:
    """What the kinds of closures share. A wrench is force and moment on link a, then on link b, about the links' origins."""

    rows = 1
    closes = True  # whether a pose is closed by displacements until its gaps are none
    bounded = False  # whether laws bound its impulses

    def begin(self, c: Any) -> None:
        """Vectors of the start of the step."""
        c.start_a, c.start_b = c.a.R @ c.point_a, c.b.R @ c.point_b
        c.start = c.b.origin + c.start_b - c.a.origin - c.start_a

    def guess(self, c: Any, k: int) -> Any:
        """The impulse of a row to begin with: as the last two steps lead to."""
        return c.row(k, "last") * 2.0 - c.row(k, "before")

    def start_gap(self, c: Any) -> list[Any]:
        """Gaps at the start of the step."""
        raise NotImplementedError

    def evaluate(self, c: Any) -> list[Any]:
        """Mean vectors; returns half the change of the gaps in the step."""
        raise NotImplementedError

    def unit(self, c: Any) -> Any:
        """1/m²: makes squares of gaps those of angles."""
        r2 = dot(c.arm_a, c.arm_a) + dot(c.arm_b, c.arm_b)
        return select(r2 > 0.0, 1.0 / select(r2 > 0.0, r2, 1.0), 0.0)

    def opening(self, c: Any, gaps: list[Any]) -> Any:
        """Square of the gaps as an angle, or where the pose is closed as they are."""
        unit = select(c.rows.closing, 1.0, self.unit(c)) if self.closes else self.unit(c)
        return dot(gaps, gaps) * unit

    def wrenches(self, c: Any) -> Wrenches:
        """J of every row."""
        n = c.line
        return [(-n, cross(n, c.arm_a), n, cross(c.arm_b, n))]

    def rates(self, c: Any) -> Wrenches:
        """J₁ of every row."""
        return [line_rate(c, c.line_1)]

    def end_rates(self, c: Any) -> Wrenches:
        """J₁ of every row by displacements and turns of the end of the step, as the second gear has them (`exact`)."""
        return [end_line_rate(c, c.line_1)]

    def stiffen(self, c: Any, impulses: list[Any]) -> None:
        """How moments of the row's impulses change with the turns of the links, for the second gear (`exact`)."""
        stiffen_arms(c, c.line * impulses[0])

    def softness(self, c: Any, k: int) -> Any:
        """Compliance of the k-th row, for W; less than 0: the row has no impulse."""
        return 0.0

    def push(self, c: Any, impulses: list[Any]) -> None:
        """Impulses on both links, for the next sweep inwards."""
        total = [ZERO] * 4
        for wrench, p in zip(self.wrenches(c), impulses, strict=True):
            total = [t + x * p for t, x in zip(total, wrench, strict=True)]
        c.a.add(row_f=total[0], row_n=total[1])
        c.b.add(row_f=total[2], row_n=total[3])

    def carries(self, c: Any, impulses: list[Any]) -> Vector:
        """What a step reports: the impulse, in x; of a rod the force on link b."""
        return Vector(impulses[0], 0.0, 0.0)

    def enter(self, c: Any, exact: bool) -> None:
        """Unit impulses on both links, where paths begin."""
        rates = self.end_rates(c) if exact else self.rates(c)
        for k, (act, rate) in enumerate(zip(self.wrenches(c), rates, strict=True)):
            c.rows.add(c.a, k, act[:2], rate[:2], self.bounded)
            c.rows.add(c.b, k, act[2:], rate[2:], self.bounded)
            if self.bounded:
                continue
            l_a, n_a, l_b, n_b = (dot(x, x) for x in act)
            c.put_row(k, "size_l", l_a + l_b)
            c.put_row(k, "size_n", n_a + n_b)


def arms(c: Any) -> Vector:
    """Mean arms of both points; returns half the change of the line from a to b."""
    a, b = c.a, c.b
    r_a, r_b = a.M @ c.start_a, b.M @ c.start_b
    c.arm_a, c.arm_b = r_a, r_b
    half: Vector = b.u + cross(b.g, r_b) - a.u - cross(a.g, r_a)
    return half


def line_rate(c: Any, n: Vector) -> tuple[Vector, Vector, Vector, Vector]:
    """J₁ of the change of the line from a to b along n."""
    return -n, cross(lead_back(c.a.g, n), c.arm_a), n, cross(c.arm_b, lead_back(c.b.g, n))


def end_arms(c: Any) -> tuple[Vector, Vector]:
    """Arms, or axes, of a and b at the end of the step."""
    return c.arm_a * 2.0 - c.start_a, c.arm_b * 2.0 - c.start_b


def end_line_rate(c: Any, n: Vector) -> tuple[Vector, Vector, Vector, Vector]:
    """The same by displacements and turns of the end of the step."""
    a, b = end_arms(c)
    return -n, cross(n, a), n, cross(b, n)


def stiffen_arms(c: Any, force: Vector) -> None:
    """Moments of a force on b, and the opposite on a, as their arms turn."""
    a, b = end_arms(c)
    F = skew(force)
    c.a.add(row_D=F @ skew(a))
    c.b.add(row_D=F @ skew(-b))


class Point(Kind):
    """Both points in one place: three rows along the axes of the world."""

    rows = ROWS[POINT]

    def start_gap(self, c: Any) -> list[Any]:
        return [x * c.rows.share for x in c.start]

    def evaluate(self, c: Any) -> list[Any]:
        return list(arms(c))

    def wrenches(self, c: Any) -> Wrenches:
        return [(-e, cross(e, c.arm_a), e, cross(c.arm_b, e)) for e in AXES]

    def rates(self, c: Any) -> Wrenches:
        return [line_rate(c, e) for e in AXES]

    def end_rates(self, c: Any) -> Wrenches:
        return [end_line_rate(c, e) for e in AXES]

    def stiffen(self, c: Any, impulses: list[Any]) -> None:
        stiffen_arms(c, Vector(*impulses))


class Angle(Kind):
    """An axis d of a and an axis e of b at a right angle: G = d·e, the moment is d̄ × ē on a."""

    def begin(self, c: Any) -> None:
        c.start_a, c.start_b = c.a.R @ c.axis_a, c.b.R @ c.axis_b

    def start_gap(self, c: Any) -> list[Any]:
        return [dot(c.start_a, c.start_b) * c.rows.share]

    def evaluate(self, c: Any) -> list[Any]:
        a, b = c.a, c.b
        d, e = a.M @ c.start_a, b.M @ c.start_b
        c.arm_a, c.arm_b = d, e
        return [dot(cross(d, e), a.g - b.g)]

    def unit(self, c: Any) -> Any:
        return 1.0

    def wrenches(self, c: Any) -> Wrenches:
        m = cross(c.arm_a, c.arm_b)
        return [(ZERO, m, ZERO, -m)]

    def rates(self, c: Any) -> Wrenches:
        d, e = c.arm_a, c.arm_b
        d1, e1 = end_arms(c)
        return [(ZERO, cross(d, lead_back(c.a.g, e1)), ZERO, cross(e, lead_back(c.b.g, d1)))]

    def end_rates(self, c: Any) -> Wrenches:
        m = cross(*end_arms(c))
        return [(ZERO, m, ZERO, -m)]

    def stiffen(self, c: Any, impulses: list[Any]) -> None:
        """As if both links turned alike, which those do that a weld joins."""
        d1, e1 = end_arms(c)
        change = times(skew(c.arm_b) @ skew(d1) - skew(c.arm_a) @ skew(e1), impulses[0])
        c.a.add(row_D=times(change, -1.0))
        c.b.add(row_D=change)


class Rod(Kind):
    """Points at a distance: G = (s² − length²) / 2|s|, with |s| of the start; the force acts along s̄."""

    def start_gap(self, c: Any) -> list[Any]:
        s2 = dot(c.start, c.start)
        return [0.5 * (s2 - c.length * c.length) / sqrt(s2)]

    def evaluate(self, c: Any) -> list[Any]:
        half = arms(c)
        mean, end = c.start + half, c.start + half * 2.0
        k = 1.0 / sqrt(dot(c.start, c.start))
        c.line, c.line_1, c.soft = mean * k, end * k, k
        return [dot(mean, half) * k]

    def stiffen(self, c: Any, impulses: list[Any]) -> None:
        """Between two links that move the turning of the line is left out: it would join their equations."""
        stiffen_arms(c, c.line * impulses[0])
        for end, other, mean, last in zip((c.a, c.b), "ba", (c.arm_a, c.arm_b), end_arms(c), strict=True):
            F = select(c.is_ground(other), c.soft * impulses[0], 0.0)
            S, E = skew(mean), skew(last)
            end.add(row_A=-F, row_B=times(E, F), row_C=times(S, -F), row_D=times(S @ E, F))

    def carries(self, c: Any, impulses: list[Any]) -> Vector:
        force: Vector = c.line * impulses[0]
        return force


class Spring(Kind):
    """A spring and damper between points, by its discrete gradient along s̄ / ½(|s₀| + |s₁|).

    Its gap is what its impulse is off, as a length.
    """

    closes = False

    def start_gap(self, c: Any) -> list[Any]:
        return [0.0]

    def evaluate(self, c: Any) -> list[Any]:
        half = arms(c)
        h, start, end = c.h, c.start, c.start + half * 2.0
        a, b = sqrt(dot(start, start)), sqrt(dot(end, end))
        apart = (a > NEAR) & (b > NEAR)
        k = select(apart, 1.0 / select(apart, a + b, 1.0), 0.0)
        c.line, c.line_1 = (start + end) * k, end * select(apart, 1.0 / select(apart, b, 1.0), 0.0)
        by = dot(start + end, end - start) * k  # b − a
        slope = 0.25 * h * (h * c.stiffness + 2.0 * c.damping)
        acts = apart & (slope > 0.0)
        soft = select(acts, 1.0 / select(acts, slope, 1.0), -1.0)
        c.soft = soft
        wanted = -0.25 * h * (h * c.stiffness * (a + 0.5 * by - c.length) + c.damping * by)
        return [select(acts, soft * (c.impulse(0) - wanted), 0.0)]

    def softness(self, c: Any, k: int) -> Any:
        return select(c.rows.resting, -1.0, c.soft)

    def unit(self, c: Any) -> Any:
        return 0.0


class Gear(Kind):
    """q_a = ratio q_b + length, of the links' own joints; acts on their axes."""

    def begin(self, c: Any) -> None: ...

    def start_gap(self, c: Any) -> list[Any]:
        return [c.a.q - c.ratio * c.b.q - c.length]

    def evaluate(self, c: Any) -> list[Any]:
        a, b = c.a, c.b
        rests = c.rows.resting
        by_a, by_b = select(rests, 1.0, a.ratio), -(c.ratio * select(rests, 1.0, b.ratio))
        c.by_a, c.by_b = by_a, by_b
        return [by_a * a.z + by_b * b.z]

    unit = Spring.unit

    def push(self, c: Any, impulses: list[Any]) -> None:
        c.a.add(row_e=c.by_a * impulses[0])
        c.b.add(row_e=c.by_b * impulses[0])

    def stiffen(self, c: Any, impulses: list[Any]) -> None: ...

    def enter(self, c: Any, exact: bool) -> None:
        c.a.add(path_e=c.by_a)
        c.b.add(path_e=c.by_b)
        c.put_row(0, "size_l", 0.0)
        c.put_row(0, "size_n", 0.0)


CLOSURES: dict[int, Kind] = {POINT: Point(), ANGLE: Angle(), ROD: Rod(), SPRING: Spring(), GEAR: Gear()}


# ---- joints on a path --------------------------------------------------------------------------------------------------------


Impulse = tuple[Vector, Vector]  # force and moment
Answer = tuple[list[Any], list[Any], list[Any], Any, Impulse, Impulse]


def response_of(joint: Any, link: Any) -> Callable[[Impulse, Impulse, Any, Any, Any], Answer]:
    """How a joint answers unit impulses on its link: that of J, that of J₁, and one on its own axis that belongs to both.

    The function returns y, x, of a single axis or a prescribed motion y₁, how large W could be by the squared sizes of the row's
    forces and moments (to which rounding is in proportion even if they cancel), and what the link's base feels of either impulse.
    """
    base = link.base
    if isinstance(joint, OneAxis):
        S_l, S_a, lever = joint.motion(link)
        U_l, U_a, D = link.U_l, link.U_a, select(link.lock > 0.5, 0.0, link.D)
        move, turn = dot(S_l, S_l), dot(S_a, S_a)
        shift = shift_of(joint, link)
        slides = isinstance(joint, Slider)
        end = joint.end_axis(link) if isinstance(joint, Slider) else S_a

        def axis(act: Impulse, rate: Impulse, own: Any, size_l: Any, size_n: Any) -> Answer:
            (l, n), (l1, n1) = act, rate
            y = dot(S_l, l) + dot(S_a, n) + own
            rate_y = y if act is rate else dot(end, l1 if slides else n1) + own
            x = rate_y * D
            could = (move * (dot(l, l) + size_l) + turn * (dot(n, n) + size_n) + own * own) * D
            by = y * D
            l, n, l1, n1 = l - U_l * by, n - U_a * by, l1 - U_l * x, n1 - U_a * x
            return [y], [x], [rate_y], could, (l, n + cross(lever, l)), shift(l1, n1)

        return axis
    if isinstance(joint, SeveralAxes):
        motion: tuple[Any, Any, Vector] = joint.law_axes(link)
        across, about, out = motion
        UL, UA, V = link.UL3, link.UA3, held_response(link)
        shift = shift_of(joint, link)

        def several(act: Impulse, rate: Impulse, own: Any, size_l: Any, size_n: Any) -> Answer:
            (l, n), (l1, n1) = act, rate
            y, rate_y = across.T @ l + about.T @ n, across.T @ l1 + about.T @ n1
            by, x = V @ y, V @ rate_y
            could = dot(y, by) + (size_l * largest_square(across) + size_n * largest_square(about)) * trace(V)
            l, n, l1, n1 = l - UL @ by, n - UA @ by, l1 - UL @ x, n1 - UA @ x
            return [*y], [*x], [*rate_y], could, (l, n + cross(out, l)), shift(l1, n1)

        return several
    if isinstance(joint, BallFriction):
        return friction_response(link)
    if isinstance(joint, Ball):
        D3, B, arm = link.D3, link.B, base.M @ link.local_anchor
        shift = shift_of(joint, link)

        def ball(act: Impulse, rate: Impulse, own: Any, size_l: Any, size_n: Any) -> Answer:
            (l, n), (l1, n1) = act, rate
            by, x = D3 @ n, D3 @ n1
            l, l1 = l - B.T @ by, l1 - B.T @ x
            return [*n], [*x], [], dot(n, by) + size_n * trace(D3), (l, cross(arm, l)), shift(l1, ZERO)

        return ball
    if isinstance(joint, Weld):
        arm, shift = base.M @ link.local_anchor, shift_of(joint, link)

        def weld(act: Impulse, rate: Impulse, own: Any, size_l: Any, size_n: Any) -> Answer:
            return [], [], [], 0.0, (act[0], act[1] + cross(arm, act[0])), shift(*rate)

        return weld
    if isinstance(joint, Prescribed):
        still = [0.0] * 6
        return lambda act, rate, own, size_l, size_n: (still, still, [*rate[0], *rate[1]], 0.0, (ZERO, ZERO), (ZERO, ZERO))
    assert isinstance(joint, Free)
    D3, H, A3 = link.D3, link.B, link.A3

    def free(act: Impulse, rate: Impulse, own: Any, size_l: Any, size_n: Any) -> Answer:
        (l, n), (l1, n1) = act, rate
        u = A3 @ (l - H.T @ (D3 @ n))
        g = D3 @ (n - H @ u)
        could = dot(l, u) + dot(n, g) + size_l * trace(A3) + size_n * trace(D3)
        return [*u, *g], [*l1, *n1], [], could, (ZERO, ZERO), (ZERO, ZERO)

    return free


def friction_response(link: Any) -> Callable[[Impulse, Impulse, Any, Any, Any], Answer]:
    """`response_of` a ball on which friction acts alone."""
    base = link.base
    D3, B, K, arm = link.V3, link.B, link.K3, base.M @ link.local_anchor
    shift = shift_of(PLAIN_BALL, link)

    def rubbing(act: Impulse, rate: Impulse, own: Any, size_l: Any, size_n: Any) -> Answer:
        (l, n), (l1, n1) = act, rate
        by, x = D3 @ n, D3 @ n1
        could = dot(n, by) + size_n * trace(D3)
        y, rate_y = [*n], [*n1]
        l, n, l1, n1 = l - B.T @ by, n - K @ by, l1 - B.T @ x, n1 - K @ x
        return y, [*x], rate_y, could, (l, n + cross(arm, l)), shift(l1, n1)

    return rubbing


def held_response(link: Any) -> Any:
    """Response of several axes, without that along directions that laws lock."""
    V = link.V3
    for k in range(3):
        V = locked(V, link.lock3.row(k))[0]
    return V


def largest_square(S: Any) -> Any:
    """About the largest square of a column."""
    columns = [S.column(k) for k in range(3)]
    return sum(dot(c, c) for c in columns)


def trace(m: Any) -> Any:
    return m[0, 0] + m[1, 1] + m[2, 2]


def shift_of(joint: Any, link: Any) -> Callable[[Vector, Vector], Impulse]:
    """How an impulse along J₁ is shifted to the base's origin: by the derivative of what the base carries."""
    base = link.base
    g, M, z = base.g, base.M, link.z

    def hinge(l: Vector, n: Vector) -> Impulse:
        return l, n + cross(M @ link.local_anchor, lead_back(g, l)) + cross((M @ link.local_axis) * z, lead_back(g, n))

    def slider(l: Vector, n: Vector) -> Impulse:
        return l, n + cross(M @ joint.start(link) + (M @ link.local_axis) * (2.0 * z), lead_back(g, l))

    def ball(l: Vector, n: Vector) -> Impulse:
        return l, n + cross(M @ link.local_anchor, lead_back(g, l))

    return ball if isinstance(joint, Ball | Weld | SeveralAxes) else slider if isinstance(joint, Slider) else hinge


def ways(link: Any) -> Iterator[Any]:
    """The link's joint as rows see it: a ball is one without laws, with friction alone, or one of several axes with laws."""
    for joint in link.joints():
        if isinstance(joint, BallWithLaws):
            for _ in link.idle():
                yield PLAIN_BALL
            for _ in link.acting():
                rubs = joint.rubs(link)
                for _ in link.when(rubs):
                    yield FRICTION
                for _ in link.when(not_(rubs)):
                    yield joint
        else:
            yield joint


def own_answer(joint: Any, link: Any, read: Callable[[str, int], list[Any]]) -> Any:
    """How a row's gap changes by what the joint itself lacks; `read` gives the row's numbers x or rate there."""
    e = equation(joint, link)
    if isinstance(joint, OneAxis):
        return select(link.lock > 0.5, read("rate", 1)[0] * link.jump, dot(read("x", 1), e))
    if isinstance(joint, SeveralAxes):
        return dot(read("rate", 3), joint.respond(link, link.e3) - link.y_3)
    if isinstance(joint, BallFriction):
        return dot(read("rate", 3), joint.respond(link, link.e3) - link.zv)
    if isinstance(joint, Prescribed):
        rows = link.tree.rows
        return select(rows.resting & not_(rows.closing), dot(read("rate", 6), [*link.zl, *link.zv]), 0.0)
    return dot(read("x", len(e)), e)


def equation(joint: Any, link: Any) -> list[Any]:
    """What the joint's own equation lacks (of a free joint: its solution)."""
    if isinstance(joint, OneAxis):
        return [link.e]
    if isinstance(joint, Free):
        return [*link.dl, *link.e3]
    return [*link.e3] if isinstance(joint, Ball | SeveralAxes | BallFriction) else []


def put_equation(joint: Any, link: Any, e: list[Any]) -> None:
    if isinstance(joint, OneAxis):
        link.e = e[0]
    elif isinstance(joint, Ball | SeveralAxes | BallFriction):
        link.e3 = Vector(*e)
    elif isinstance(joint, Free):
        link.dl, link.e3 = Vector(*e[:3]), Vector(*e[3:])


# ---- stages of an iteration --------------------------------------------------------------------------------------------------


def begin_rows(tree: Any) -> None:
    """Vectors and gaps of the start of the step; impulses as the last two steps lead to, none where velocities are projected."""
    if tree.rows.more and not tree.rests:
        tree.rows.clear_switches()
    for c in tree.rows.closures():
        for kind in c.kinds():
            kind.begin(c)
            for k in range(kind.rows):
                acts = (c.on > 0.5) & not_(tree.resting)
                c.put_row(k, "impulse", select(acts, kind.guess(c, k), 0.0))


def keep_rows(tree: Any) -> None:
    """Impulses of the step, for the guess of the next; none of rows that depend on others: along these they would add up."""
    rows = tree.rows
    for r in rows.range(0, rows.size("equal")):
        last, impulse = rows.get("last", r), rows.get("impulse", r)
        now = select(absolute(rows.get("pivot", r)) > 0.0, impulse, 0.0)
        rows.put("before", r, select(absolute(last) > 0.0, last, now))
        rows.put("last", r, now)
    rows.keep_laws()


def evaluate_rows(tree: Any) -> None:
    """Mean directions and gaps of all rows; their impulses act on links.

    Where velocities are projected, what counts as a gap is the rows' speed alone; where the pose is closed, every gap counts.
    """
    tree.rows.clear_open()
    for c in tree.rows.closures():
        for kind in c.kinds():
            start = [select(tree.resting & not_(tree.closing), 0.0, gap) for gap in kind.start_gap(c)]
            gaps = [gap + change * 2.0 for gap, change in zip(start, kind.evaluate(c), strict=True)]
            for k, gap in enumerate(gaps):
                c.put_row(k, "gap", gap)
            on = select(c.on > 0.5, 1.0, 0.0)
            tree.rows.raise_open(kind.opening(c, gaps) * on, kind.opening(c, start) * on)
            kind.push(c, [c.impulse(k) for k in range(kind.rows)])


def report_rows(tree: Any) -> None:
    """What closures carry, times ¼ h."""
    for c in tree.rows.closures():
        for kind in c.kinds():
            c.force = kind.carries(c, [c.impulse(k) for k in range(kind.rows)])


def close_rows(tree: Any, factor: bool) -> None:
    """Correct the impulses of all rows, and the joints' equations by them; `factor`: the forest's factors are new."""
    for _ in tree.rows.as_function("close_rows"):
        for _ in tree.when_factored(factor):
            carry_impulses(tree, response_of, False)
            tree.rows.factor()
        correct_impulses(tree, own_answer)


def stiffen_rows(tree: Any) -> None:
    """What the impulses of rows contribute to the derivative of links' equations."""
    for c in tree.rows.closures():
        for kind in c.kinds():
            kind.stiffen(c, [c.impulse(k) for k in range(kind.rows)])


def correct_impulses(tree: Any, own_answer: Callable[..., Any]) -> None:
    """Impulses that close the rows, with the factors that there are."""
    rows = tree.rows
    for r in rows.range(0, rows.size("rows")):
        rows.put("rest", r, rows.get("gap", r) * -0.5)
    rows.answer_along_speeds()
    for c in rows.closures_by_path():
        for link, at in rows.path(c):
            for joint in ways(link):
                for r in c.row_range():
                    own = own_answer(joint, link, partial(rows.responses, r, at))
                    rows.put("rest", r, rows.get("rest", r) - own)
    rows.solve()
    for r in rows.range(0, rows.size("rows")):
        rows.put("impulse", r, select(rows.get("soft", r) >= 0.0, rows.get("impulse", r) + rows.get("rest", r), 0.0))
    rows.correct_along_speeds()
    for c in rows.closures_by_path():
        for link, at in rows.path(c):
            for joint in ways(link):
                for r in c.row_range():
                    e, by = equation(joint, link), rows.get("rest", r)
                    y = rows.responses(r, at, "y", len(e))
                    put_equation(joint, link, [a + b * by for a, b in zip(e, y, strict=True)])


def carry_impulses(tree: Any, response_of: Any, exact: bool) -> None:
    """y and x of all rows: their unit impulses, carried to the ground by the joints' responses.

    Of rows whose impulses are bounded W has to be symmetric: for these J₁ is taken to be J, from which the turn in the step
    makes it differ, and there are no y and x (`joint_speeds`).
    """
    rows = tree.rows
    rows.factor_again(rows.open > OPEN * OPEN)
    rows.begin_carrying()
    for c in rows.closures():
        for kind in c.kinds():
            kind.enter(c, exact)
            for k in range(kind.rows):
                c.put_row(k, "could", 0.0)
                c.put_row(k, "soft", select(c.on > 0.5, kind.softness(c, k), -1.0))
                c.put_row(k, "turn", 0.0)
        for _ in rows.where_dependent():
            for link, at in rows.path(c):
                own, turn = link.take("path_e"), dot(link.g, link.g)
                for joint in ways(link):
                    response = response_of(joint, link)
                    for r in c.row_range():
                        act, rate = rows.take(link, c.number(r))
                        sizes = own, rows.get("size_l", r), rows.get("size_n", r)
                        y, x, rate_y, could, act_on, rate_on = response(act, rate, *sizes)
                        rows.put_responses(r, at, y=y, x=x, rate=rate_y)
                        rows.see_speeds(joint, link, r, at, (*act, own), x)
                        rows.add(link.base, c.number(r), act_on, rate_on)
                        rows.put("could", r, rows.get("could", r) + could)
                        rows.put("turn", r, maximum(rows.get("turn", r), turn))
        rows.carry_bounded(c)


def assemble(tree: Any) -> None:
    """W within its envelope: `lower` has W[r, s], `upper` has W[s, r], s ≤ r."""
    rows = tree.rows
    for at in rows.range(0, rows.size("matrix")):
        rows.put("lower", at, 0.0)
        rows.put("upper", at, 0.0)
    for block in rows.range(0, rows.size("blocks")):
        i, j = rows.whole("block_i", block), rows.whole("block_j", block)
        start, end = rows.whole("shared_start", block), rows.whole("shared_start", block, 1)
        for r in rows.range(rows.whole("row_start", i), rows.whole("row_start", i, 1)):
            for s in rows.range(rows.whole("row_start", j), rows.least(rows.whole("row_start", j, 1), rows.plus(r, 1))):
                at, y_r, y_s = rows.entry(r, s), rows.whole("y_start", r), rows.whole("y_start", s)
                for n in rows.range(start, end):
                    of_r, of_s = rows.plus(y_r, rows.whole("shared_i", n)), rows.plus(y_s, rows.whole("shared_j", n))
                    rows.put("lower", at, rows.get("lower", at) + rows.get("x", of_r) * rows.get("y", of_s))
                    rows.put("upper", at, rows.get("upper", at) + rows.get("x", of_s) * rows.get("y", of_r))


def factor_rows(tree: Any) -> None:
    """W = L D U in place, L and U with unit diagonals; D⁻¹ in `pivot`, 0 for rows that get no impulse."""
    rows = tree.rows
    gap = rows.keep(select(rows.resting & not_(rows.closing), 0.0, minimum(sqrt(rows.open), WIDEST)))  # speeds are no gaps
    for r in rows.range(0, rows.size("equal")):
        first = rows.whole("first", r)
        for s in rows.range(first, r):
            at, start = rows.entry(r, s), rows.most(first, rows.whole("first", s))
            for n in rows.range(start, s):
                of_r, of_s = rows.entry(r, n), rows.entry(s, n)
                rows.put("lower", at, rows.get("lower", at) - rows.get("lower", of_r) * rows.get("upper", of_s))
                rows.put("upper", at, rows.get("upper", at) - rows.get("lower", of_s) * rows.get("upper", of_r))
        rows.put("taken", r, 0.0)
        for s in rows.range(first, r):
            at, pivot = rows.entry(r, s), rows.get("pivot", s)
            lower, upper = rows.get("lower", at), rows.get("upper", at)
            rows.put("taken", r, rows.get("taken", r) + lower * upper * pivot)
            rows.put("lower", at, lower * pivot)
            rows.put("upper", at, upper * pivot)
        own, soft = rows.get("lower", rows.entry(r, r)), rows.get("soft", r)
        blur = rows.get("turn", r) + gap
        least = maximum((rows.dependent + BLUR * (blur * blur)) * absolute(own), rows.held * rows.get("could", r))
        pivot = own - rows.get("taken", r) + soft
        alone = (absolute(pivot) > least) & (soft >= 0.0)
        rows.put("pivot", r, select(alone, 1.0 / select(alone, pivot, 1.0), 0.0))


def substitute(tree: Any) -> None:
    """rest ← W⁻¹ rest."""
    rows = tree.rows
    count = rows.size("equal")
    for r in rows.range(0, count):
        for s in rows.range(rows.whole("first", r), r):
            rows.put("rest", r, rows.get("rest", r) - rows.get("lower", rows.entry(r, s)) * rows.get("rest", s))
    for r in rows.range(0, count):
        rows.put("rest", r, rows.get("rest", r) * rows.get("pivot", r))
    for r in rows.range(0, count, back=True):
        x = rows.get("rest", r)
        for s in rows.range(rows.whole("first", r), r):
            rows.put("rest", s, rows.get("rest", s) - rows.get("upper", rows.entry(r, s)) * x)
