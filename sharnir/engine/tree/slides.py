"""Several translations, or two rotations, in one link: for friction that bounds their vector.

Without such friction they are a row of sliders or hinges, one link each. Where `sense` is −1 the axes are reversed, and those of
two rotations are in reverse order.
"""

from __future__ import annotations

from typing import Any

from sharnir.emit.algebra import NO_MATRIX, Matrix, Quaternion, Vector, cross, dot, mean_rotation
from sharnir.emit.expressions import cos, select, sin
from sharnir.engine.tree import history
from sharnir.engine.tree.joints import Ball, NoLaws, Slider, arctangent_ratio, carry, largest
from sharnir.engine.tree.several_axes import AXES, AxisOf, SeveralAxes, each
from sharnir.laws.axis import INFINITE, Law, prepare
from sharnir.laws.ball import choose, times

NO_FRICTION = {"friction_static": 0.0, "friction_dynamic": 0.0, "friction_load": 0.0}


class OneLink(SeveralAxes, NoLaws):
    """What both share: zv are the mean speeds, `position` the coordinates. Laws are always solved, also if they are none."""

    def axis_law(self, link: Any, k: int) -> Law:
        x = AxisOf(link, k, unit=link.unit, **NO_FRICTION)
        law = prepare(x, link.h, link.position[k], link.u0_3[k], link.stuck_3[k], link.share_3[k])
        if k < 2:
            return law
        none = Law(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, -INFINITE, INFINITE)
        return Law(*(select(self.third(link), a, b) for a, b in zip(law, none, strict=True)))

    def third(self, link: Any) -> Any:
        """Whether there is a third axis."""
        return False

    def limited(self, link: Any) -> tuple[Vector, Vector, Vector]:
        x, lower, upper = SeveralAxes.limited(self, link)
        third = self.third(link)
        low, high = select(third, lower.z, -INFINITE), select(third, upper.z, INFINITE)
        return x, Vector(lower.x, lower.y, low), Vector(upper.x, upper.y, high)

    def resistances(self, link: Any) -> Vector:
        ohms = link.resistance_3
        return Vector(ohms.x, ohms.y, select(self.third(link), ohms.z, 0.0))

    def effort(self, link: Any) -> Vector:
        p = link.effort_3 * link.h
        return Vector(p.x, p.y, select(self.third(link), p.z, 0.0))

    def inert(self, link: Any) -> Vector:
        return Vector(0.0, 0.0, select(self.third(link), 0.0, 1.0))

    def has_limits(self, link: Any) -> bool:
        return True

    def correct(self, link: Any, u: Vector, g: Vector) -> Any:
        return self.correct_laws(link, u, g)

    def eliminate(self, link: Any, f: Vector, n: Vector, inertia: Any) -> None:
        self.eliminate_laws(link, f, n, inertia)

    def report(self, link: Any, f: Vector, n: Vector) -> None:
        f, n = link.turn.outward(f), link.turn.outward(n)
        S_l, S_a, lever = self.law_axes(link)
        carry(link, lever, f, n)
        self.report_laws(link, S_l.T @ f + S_a.T @ n)

    def predict(self, link: Any) -> None:
        self.keep_laws(link)
        history.keep(link, "zv", self.unit(link))

    def extrapolate(self, link: Any) -> None:
        history.guess(link, "zv")

    def unit(self, link: Any) -> Any:
        """Makes coordinates numbers that tolerances hold for."""
        return 1.0

    def hold(self, link: Any) -> None:
        link.zv_new = link.zv
        link.zv = Vector(0.0, 0.0, 0.0)
        self.update_ratio(link)
        self.hold_laws(link)

    def follow(self, link: Any, u: Vector, g: Vector) -> None:
        self.follow_laws(link, u, g)

    def release(self, link: Any) -> None:
        link.zv = link.zv_new

    def restart(self, link: Any) -> None:
        history.restart(link, "zv")

    def guess(self, link: Any) -> None:
        history.begin(link, "zv", self.start_speeds(link) * (1.0 / link.per_half_step))


class Slides(OneLink):
    """Translations along x and y, and z if there are three, of the joint frame, which the base carries."""

    turned = Slider.turned

    def unit(self, link: Any) -> Any:
        return link.tree.per_metre

    def third(self, link: Any) -> Any:
        return link.slides > 2.5

    def frame(self, link: Any) -> Matrix:
        """The axes at the start of the step."""
        frame: Matrix = link.frame if link.own_axes else link.base.R @ link.frame
        return Matrix([[x * link.sense for x in row] for row in frame.rows])

    def end_frame(self, link: Any) -> Matrix:
        """The same at the end of the step; axes that are none are zero."""
        start = self.frame(link)
        both = link.base.M @ start
        columns = [both.column(k) * 2.0 - start.column(k) for k in AXES]
        columns[2] = columns[2] * select(self.third(link), 1.0, 0.0)
        return Matrix([list(c) for c in columns]).T

    def anchor(self, link: Any) -> Any:
        return link.anchor + link.frame @ (link.position * link.sense)

    def start(self, link: Any) -> Any:
        """Arm of the link's origin at the start of the step."""
        return link.local_anchor + self.frame(link) @ link.position if link.own_axes else link.local_anchor

    def carried(self, link: Any) -> tuple[Vector, Vector]:
        base = link.base
        return base.u + cross(base.g, base.M @ self.start(link)), base.g

    def moved(self, link: Any, u: Vector, g: Vector) -> tuple[Vector, Vector]:
        return u + self.end_frame(link) @ link.zv, g

    def law_axes(self, link: Any) -> tuple[Matrix, Matrix, Vector]:
        E, base = self.end_frame(link), link.base
        S = Matrix([list(E.column(k) - cross(base.g, E.column(k))) for k in AXES]).T
        return S, NO_MATRIX, base.M @ self.start(link) + E @ link.zv

    def start_speeds(self, link: Any) -> Vector:
        base, turn = link.base, link.turn
        v = turn.outward(link.V - cross(link.W, link.local_com))
        u = self.frame(link).T @ (v - base.V - cross(base.W, self.start(link) - base.local_com)) * link.per_half_step
        return Vector(u.x, u.y, u.z * select(self.third(link), 1.0, 0.0))

    def displace(self, link: Any, by: Vector) -> None:
        link.position = link.position + by

    def update_ratio(self, link: Any) -> None:
        link.y_3 = link.zv

    def put_speeds(self, link: Any, y: Vector) -> Any:
        change = largest(y - link.zv)
        link.zv = y
        return change * link.unit

    def advance(self, link: Any) -> None:
        link.position = link.position + link.zv * 2.0


class Turns(OneLink):
    """Two rotations: about z of the joint frame, which the base carries, then about x of the link; `rotation` is both."""

    turned, anchor, arms, carried = Ball.turned, Ball.anchor, Ball.arms, Ball.carried

    def axes(self, link: Any) -> tuple[Vector, Vector]:
        """The axis that the base carries, and the other one, at the start of the step."""
        frame = link.frame if link.own_axes else link.base.R @ link.frame
        return frame.column(2) * link.sense, (frame @ link.rotation.matrix()).column(0) * link.sense

    def in_order(self, link: Any, x: Any) -> tuple[Any, Any]:
        """Two values by axis, in the order from the base outwards."""
        return select(link.sense > 0.0, x[0], x[1]), select(link.sense > 0.0, x[1], x[0])

    def between(self, link: Any) -> tuple[Vector, Vector, Vector, Any, Any]:
        """Mean axes, g of what is between the two, and the ratios Δq/2z."""
        a, b = self.axes(link)
        z, y = self.in_order(link, link.zv)
        g = link.base.g
        mean = link.base.M @ a
        g_mid = g + mean * z
        rests = link.tree.resting  # velocities are projected: nothing turns
        if rests is True:
            return mean, b, g_mid, 1.0, 1.0
        first, second = (1.0 / (1.0 + dot(p, p) + x * dot(p, axis)) for p, x, axis in ((g, z, a), (g_mid, y, b)))
        r, s = (k * arctangent_ratio((x * k) * (x * k)) for k, x in ((first, z), (second, y)))
        r, s = (select(rests, 1.0, x) for x in (r, s))
        return mean, choose(rests, b, mean_rotation(g_mid) @ b), g_mid, r, s

    def moved(self, link: Any, u: Vector, g: Vector) -> tuple[Vector, Vector]:
        _, axis, g_mid, _, _ = self.between(link)
        return u, g_mid + axis * self.in_order(link, link.zv)[1]

    def law_axes(self, link: Any) -> tuple[Matrix, Matrix, Vector]:
        a, b, _, r, s = self.between(link)
        a, b = a * (1.0 / r), b * (1.0 / s)
        ahead = link.sense > 0.0
        S = Matrix([list(choose(ahead, a, b)), list(choose(ahead, b, a)), [0.0, 0.0, 0.0]]).T
        return NO_MATRIX, S, link.lever

    def start_speeds(self, link: Any) -> Vector:
        spin = (link.turn.outward(link.W) - link.base.W) * link.per_half_step
        a, b = self.axes(link)
        return Vector(*self.in_order(link, (dot(a, spin), dot(b, spin))), 0.0)

    def ratios(self, link: Any) -> Vector:
        _, _, _, r, s = self.between(link)
        return Vector(*self.in_order(link, (r, s)), 1.0)

    def update_ratio(self, link: Any) -> None:
        link.ratio_3 = self.ratios(link)
        link.y_3 = times(link.ratio_3, link.zv)

    def put_speeds(self, link: Any, y: Vector) -> Any:
        z = each(lambda k: y[k] / link.ratio_3[k])
        change = largest(z - link.zv)
        link.zv = z
        return change

    def advance(self, link: Any) -> None:
        self.displace(link, times(self.ratios(link), link.zv) * 2.0)

    def displace(self, link: Any, by: Vector) -> None:
        link.position = link.position + by
        a, b = self.in_order(link, link.position * (0.5 * link.sense))
        first = Quaternion(Vector(0.0, 0.0, sin(a)), cos(a))
        link.rotation = first * Quaternion(Vector(sin(b), 0.0, 0.0), cos(b))
