"""Rows beside the forest: closures between links, solved by impulses with the forest's response (theory, section 4).

Vectors are means of the start and the end of the step, so that closed constraints do no work. In the scaled quantities of `step`,
with J the row's mean directions on its links,

    G₁ = G₀ + 2 J (u, g)            gap at the end of the step, exact: all rows are bilinear in points and axes
    f, n −= Jᵀ λ                    λ is the row's impulse times ¼ h

An iteration corrects λ and the joint speeds together. With the factors that `compute_momenta` made, a row's unit impulse is
carried along its path to the ground. It leaves y on every joint's own equation, and x = D y is what the joint does, so that

    W_rs = Σ y_r · x_s              response of one row to another
    Σ x_r · e                       what the joints' own corrections do to a row
    e += y λ                        what a row's impulse does to a joint's equation

sums over the joints on both paths: no further sweep is needed. W = L D Lᵀ within its envelope. A row whose pivot is a small part of
its own response depends on rows before it: it gets no impulse.
"""

from __future__ import annotations

from typing import Any

from sharnir.emit.algebra import Vector, cross, dot
from sharnir.emit.expressions import maximum, select, sqrt
from sharnir.engine.tree.closures import ANGLE, GEAR, PLANE, POINT, ROD, ROWS, SPRING
from sharnir.engine.tree.joints import Ball, Free, OneAxis

DEPENDENT = 1e-10  # a pivot less than this part of the row's own response is that of a dependent row
BLUR = 10.0  # times |g|⁴: mean directions of dependent rows differ by |g|²
HELD = 1e-13  # a response less than this part of what the joints could do is rounding
NEAR = 1e-12  # m: ends of a spring that are nearer have no direction
AXES = (Vector(1.0, 0.0, 0.0), Vector(0.0, 1.0, 0.0), Vector(0.0, 0.0, 1.0))


# ---- kinds of closures -------------------------------------------------------------------------------------------------------


class Kind:
    """What the kinds of closures share. A row acts with (−l, n_a) on link a and with (l, n_b) on link b, about their origins."""

    rows = 1

    def begin(self, c: Any) -> None:
        """Vectors and gap of the start of the step."""
        c.start_a, c.start_b = c.a.R @ c.point_a, c.b.R @ c.point_b
        c.start = c.b.origin + c.start_b - c.a.origin - c.start_a

    def evaluate(self, c: Any) -> list[Any]:
        """Mean directions; returns the gaps of the end of the step."""
        raise NotImplementedError

    def wrenches(self, c: Any) -> list[tuple[Vector, Vector, Vector]]:
        """l, n_a and n_b of every row."""
        return [(c.line, c.n_a, c.n_b)]

    def softness(self, c: Any) -> Any:
        """Compliance of the row, for W; less than 0: the row has no impulse."""
        return 0.0

    def push(self, c: Any, impulses: list[Any]) -> None:
        """Impulses on both links, for the next sweep inwards."""
        for link, side in ((c.a, 0), (c.b, 1)):
            f, n = sum_of(self.wrenches(c), impulses, side)
            link.add(row_f=f, row_n=n)

    def enter(self, c: Any) -> list[Any]:
        """Unit impulses on both links, where paths begin; returns what each row adds to the links' own equations."""
        for k, (l, n_a, n_b) in enumerate(self.wrenches(c)):
            c.a.add(**{f"path_l{k}": -l, f"path_n{k}": n_a})
            c.b.add(**{f"path_l{k}": l, f"path_n{k}": n_b})
        return []

    def extra(self, link: Any) -> Any:
        """Unit impulse on a link's own axis."""
        return 0.0


def sum_of(wrenches: list[tuple[Vector, Vector, Vector]], impulses: list[Any], side: int) -> tuple[Vector, Vector]:
    """Force and moment on link a (side 0) or b (1)."""
    f = n = Vector(0.0, 0.0, 0.0)
    for (l, n_a, n_b), p in zip(wrenches, impulses, strict=True):
        f, n = f + (l if side else -l) * p, n + (n_b if side else n_a) * p
    return f, n


def arms(c: Any) -> tuple[Vector, Vector, Vector]:
    """Mean arms of both points, and half the change of the line from a to b."""
    a, b = c.a, c.b
    r_a, r_b = a.M @ c.start_a, b.M @ c.start_b
    return r_a, r_b, b.u + cross(b.g, r_b) - a.u - cross(a.g, r_a)


class Point(Kind):
    """Both points in one place: three rows along the axes of the world."""

    rows = ROWS[POINT]

    def evaluate(self, c: Any) -> list[Any]:
        c.n_a, c.n_b, half = arms(c)
        return list(c.start + half * 2.0)

    def wrenches(self, c: Any) -> list[tuple[Vector, Vector, Vector]]:
        r_a, r_b = c.n_a, c.n_b
        return [(e, cross(e, r_a), cross(r_b, e)) for e in AXES]


class Angle(Kind):
    """An axis d of a and an axis e of b at a right angle: G = d·e, the moment is d̄ × ē on a."""

    def begin(self, c: Any) -> None:
        c.start_a, c.start_b = c.a.R @ c.axis_a, c.b.R @ c.axis_b

    def evaluate(self, c: Any) -> list[Any]:
        a, b = c.a, c.b
        m = cross(a.M @ c.start_a, b.M @ c.start_b)
        c.n_a = m
        return [dot(c.start_a, c.start_b) + dot(m, a.g - b.g) * 2.0]

    def wrenches(self, c: Any) -> list[tuple[Vector, Vector, Vector]]:
        return [(Vector(0.0, 0.0, 0.0), c.n_a, -c.n_a)]


class Plane(Kind):
    """Point b in the plane through point a across an axis d of a: G = d·s; the force d̄ acts at point b on both links."""

    def begin(self, c: Any) -> None:
        Kind.begin(self, c)
        c.start_d = c.a.R @ c.axis_a

    def evaluate(self, c: Any) -> list[Any]:
        r_a, r_b, half = arms(c)
        d, s = c.a.M @ c.start_d, c.start + half
        c.line, c.n_a, c.n_b = d, cross(d, r_a + s), cross(r_b, d)
        return [dot(c.start_d, c.start) + (dot(d, half) + dot(cross(c.a.g, d), s)) * 2.0]


class Rod(Kind):
    """Points at a distance: G = (s² − length²) / 2|s̄|, the force acts along s̄."""

    def evaluate(self, c: Any) -> list[Any]:
        r_a, r_b, half = arms(c)
        mean, end = c.start + half, c.start + half * 2.0
        k = 1.0 / sqrt(dot(mean, mean))
        n = mean * k
        c.line, c.n_a, c.n_b = n, cross(n, r_a), cross(r_b, n)
        return [0.5 * k * (dot(end, end) - c.length * c.length)]


class Spring(Kind):
    """A spring and damper between points, by its discrete gradient along s̄ / ½(|s₀| + |s₁|)."""

    def evaluate(self, c: Any) -> list[Any]:
        r_a, r_b, half = arms(c)
        h, start, end = c.h, c.start, c.start + half * 2.0
        a, b = sqrt(dot(start, start)), sqrt(dot(end, end))
        apart = (a > NEAR) & (b > NEAR)
        k = select(apart, 1.0 / select(apart, a + b, 1.0), 0.0)
        n = (start + end) * k
        c.line, c.n_a, c.n_b = n, cross(n, r_a), cross(r_b, n)
        by = dot(start + end, end - start) * k  # b − a
        slope = 0.25 * h * (h * c.stiffness + 2.0 * c.damping)
        acts = apart & (slope > 0.0)
        c.soft = select(acts, 1.0 / select(acts, slope, 1.0), -1.0)
        wanted = -0.25 * h * (h * c.stiffness * (a + 0.5 * by - c.length) + c.damping * by)
        return [select(acts, 2.0 * c.soft * (c.impulse(0) - wanted), 0.0)]

    def softness(self, c: Any) -> Any:
        return -1.0 if c.rests else c.soft


class Gear(Kind):
    """q_a = ratio q_b + length, of the links' own joints; acts on their axes."""

    def begin(self, c: Any) -> None: ...

    def evaluate(self, c: Any) -> list[Any]:
        a, b = c.a, c.b
        c.by_a, c.by_b = (1.0, -c.ratio) if c.rests else (a.ratio, -(c.ratio * b.ratio))
        return [a.q - c.ratio * b.q - c.length + (c.by_a * a.z + c.by_b * b.z) * 2.0]

    def push(self, c: Any, impulses: list[Any]) -> None:
        c.a.add(row_e=c.by_a * impulses[0])
        c.b.add(row_e=c.by_b * impulses[0])

    def enter(self, c: Any) -> list[Any]:
        c.a.add(path_e=c.by_a)
        c.b.add(path_e=c.by_b)
        return []

    def extra(self, link: Any) -> Any:
        return link.take("path_e")


CLOSURES = {POINT: Point(), ANGLE: Angle(), PLANE: Plane(), ROD: Rod(), SPRING: Spring(), GEAR: Gear()}


# ---- joints on a path --------------------------------------------------------------------------------------------------------


def respond(joint: Any, link: Any, l: Vector, n: Vector, extra: Any) -> tuple[list[Any], list[Any], Any, Vector, Vector]:
    """y and x of a unit impulse at a link, how much x could be, and what the link's base feels of the impulse."""
    if isinstance(joint, OneAxis):
        S_l, S_a, lever = joint.motion(link)
        D = link.D
        y = dot(S_l, l) + dot(S_a, n) + extra
        x = y * D
        could = (dot(S_l, S_l) * dot(l, l) + dot(S_a, S_a) * dot(n, n) + extra * extra) * D
        l, n = l - link.U_l * x, n - link.U_a * x
        return [y], [x], could, l, n + cross(lever, l)
    if isinstance(joint, Ball):
        x3 = link.D3 @ n
        l = l - link.B.T @ x3
        return [*n], [*x3], dot(n, x3), l, cross(link.base.M @ link.local_anchor, l)
    assert isinstance(joint, Free)
    D, H = link.D3, link.B
    u = link.A3 @ (l - H.T @ (D @ n))
    g = D @ (n - H @ u)
    return [*l, *n], [*u, *g], dot(l, u) + dot(n, g), Vector(0.0, 0.0, 0.0), Vector(0.0, 0.0, 0.0)


def speeds(joint: Any) -> int:
    """Speeds of a joint."""
    if isinstance(joint, OneAxis):
        return 1
    return 3 if isinstance(joint, Ball) else 6


def own_rate(joint: Any, link: Any, y: list[Any], x: list[Any]) -> Any:
    """What the joint's own correction does to a row."""
    if isinstance(joint, OneAxis):
        return x[0] * link.e
    if isinstance(joint, Ball):
        return dot(x, link.e3)
    return dot(y[:3], link.dl) + dot(y[3:], link.e3)


def add_impulse(joint: Any, link: Any, y: list[Any], x: list[Any]) -> None:
    """Add y, a row's numbers times its impulse, to the joint's equation."""
    if isinstance(joint, OneAxis):
        link.e = link.e + y[0]
    elif isinstance(joint, Ball):
        link.e3 = link.e3 + Vector(*y)
    else:
        link.dl, link.e3 = link.dl + Vector(*x[:3]), link.e3 + Vector(*x[3:])


# ---- stages of an iteration --------------------------------------------------------------------------------------------------


def begin_rows(tree: Any) -> None:
    """Vectors and gaps of the start of the step; no impulses yet."""
    for c in tree.rows.closures():
        for kind in c.kinds():
            kind.begin(c)
            for k in range(kind.rows):
                c.put_row(k, "impulse", 0.0)


def evaluate_rows(tree: Any) -> None:
    """Mean directions and gaps of all rows; their impulses act on links."""
    for c in tree.rows.closures():
        for kind in c.kinds():
            for k, gap in enumerate(kind.evaluate(c)):
                c.put_row(k, "gap", gap)
            kind.push(c, [c.impulse(k) for k in range(kind.rows)])


def close_rows(tree: Any, factor: bool, closing: bool = True) -> None:
    """Correct the impulses of all rows, and the joints' equations by them.

    Args:
        factor: whether the factors of the forest are new.
        closing: gaps are closed; else velocities are made to fit.
    """
    for _ in tree.when_factored(factor) if closing else (None,):
        carry_impulses(tree)
        assemble(tree)
        factor_rows(tree)
    rows = tree.rows
    for c in rows.closures():
        for kind in c.kinds():
            for k in range(kind.rows):
                c.put_row(k, "rest", c.row(k, "gap") * -0.5 if closing else 0.0)
            for link, at in rows.path(c):
                for joint in link.joints():
                    for k in range(kind.rows):
                        y, x = c.responses(k, at, speeds(joint))
                        c.put_row(k, "rest", c.row(k, "rest") - own_rate(joint, link, y, x))
    substitute(tree)
    for c in rows.closures():
        for kind in c.kinds():
            by = [c.row(k, "rest") for k in range(kind.rows)]
            for k in range(kind.rows):
                c.put_row(k, "impulse", c.impulse(k) + by[k])
            for link, at in rows.path(c):
                for joint in link.joints():
                    total_y = total_x = [0.0] * speeds(joint)
                    for k in range(kind.rows):
                        y, x = c.responses(k, at, speeds(joint))
                        total_y = [t + a * by[k] for t, a in zip(total_y, y, strict=True)]
                        total_x = [t + a * by[k] for t, a in zip(total_x, x, strict=True)]
                    add_impulse(joint, link, total_y, total_x)


def carry_impulses(tree: Any) -> None:
    """y and x of all rows: their unit impulses, carried to the ground."""
    rows = tree.rows
    for c in rows.closures():
        for kind in c.kinds():
            kind.enter(c)
            g2 = maximum(dot(c.a.g, c.a.g), dot(c.b.g, c.b.g))
            for k in range(kind.rows):
                c.put_row(k, "could", 0.0)
                c.put_row(k, "soft", kind.softness(c))
                c.put_row(k, "blur", DEPENDENT + BLUR * (g2 * g2))
            for link, at in rows.path(c):
                for joint in link.joints():
                    extra = kind.extra(link)
                    for k in range(kind.rows):
                        l, n = link.take(f"path_l{k}"), link.take(f"path_n{k}")
                        y, x, could, l, n = respond(joint, link, l, n, extra)
                        c.put_responses(k, at, y, x)
                        c.put_row(k, "could", c.row(k, "could") + could)
                        link.base.add(**{f"path_l{k}": l, f"path_n{k}": n})


def assemble(tree: Any) -> None:
    """W, within its envelope."""
    rows = tree.rows
    for at in rows.range(0, rows.size("matrix")):
        rows.put("matrix", at, 0.0)
    for block in rows.range(0, rows.size("blocks")):
        i, j = rows.whole("block_i", block), rows.whole("block_j", block)
        start, end = rows.whole("shared_start", block), rows.whole("shared_start", block, 1)
        for r in rows.range(rows.whole("row_start", i), rows.whole("row_start", i, 1)):
            y_r = rows.whole("y_start", r)
            for s in rows.range(rows.whole("row_start", j), rows.least(rows.whole("row_start", j, 1), rows.plus(r, 1))):
                x_s = rows.whole("y_start", s)

                def term(n: Any, y_r: Any = y_r, x_s: Any = x_s) -> Any:
                    y = rows.get("y", rows.plus(y_r, rows.whole("shared_i", n)))
                    return y * rows.get("x", rows.plus(x_s, rows.whole("shared_j", n)))

                rows.put("matrix", rows.entry(r, s), rows.sum(start, end, term))


def factor_rows(tree: Any) -> None:
    """L D Lᵀ in place: L below the diagonal, D⁻¹ in `pivot`, 0 for rows that have no impulse."""
    rows = tree.rows
    for r in rows.range(0, rows.size("rows")):
        first = rows.whole("first", r)
        for s in rows.range(first, r):
            start = rows.most(first, rows.whole("first", s))

            def term(n: Any, r: Any = r, s: Any = s) -> Any:
                return rows.get("matrix", rows.entry(r, n)) * rows.get("matrix", rows.entry(s, n))

            at = rows.entry(r, s)
            by = rows.sum(start, s, term)
            rows.put("matrix", at, rows.get("matrix", at) - by)

        def scale(n: Any, r: Any = r) -> Any:
            at = rows.entry(r, n)
            g = rows.get("matrix", at)
            l = g * rows.get("pivot", n)
            rows.put("matrix", at, l)
            return g * l

        taken = rows.sum(first, r, scale)
        own = rows.get("matrix", rows.entry(r, r))
        soft = rows.get("soft", r)
        least = maximum(rows.get("blur", r) * own, HELD * rows.get("could", r))
        pivot = own - taken + soft
        alone = (pivot > least) & (soft >= 0.0)
        rows.put("pivot", r, select(alone, 1.0 / select(alone, pivot, 1.0), 0.0))


def substitute(tree: Any) -> None:
    """rest ← W⁻¹ rest."""
    rows = tree.rows
    count = rows.size("rows")
    for r in rows.range(0, count):

        def below(n: Any, r: Any = r) -> Any:
            return rows.get("matrix", rows.entry(r, n)) * rows.get("rest", n)

        by = rows.sum(rows.whole("first", r), r, below)
        rows.put("rest", r, rows.get("rest", r) - by)
    for r in rows.range(0, count):
        rows.put("rest", r, rows.get("rest", r) * rows.get("pivot", r))
    for r in rows.range(0, count, back=True):
        x = rows.get("rest", r)
        for s in rows.range(rows.whole("first", r), r):
            rows.put("rest", s, rows.get("rest", s) - rows.get("matrix", rows.entry(r, s)) * x)
