"""Moments that resist how bodies turn on each other at points of contact: rows of torsional and of rolling friction."""

from __future__ import annotations

from typing import Any

from sharnir.emit.algebra import ZERO, Vector, cross, dot
from sharnir.emit.expressions import maximum, select, sqrt
from sharnir.engine.tree.rows import Kind, Wrenches
from sharnir.laws.axis import not_

ALIGNED = 1e-4  # rad, by which the axes of rolling friction may be off


class Turning(Kind):
    """A moment that resists how b turns on a at a point of contact, at most `lever` times the normal impulse of the point.

    That impulse is the one of the pass: it is in the row that stands `rows_back` rows before this one. Impacts know no such
    moments.
    """

    closes, bounded = False, True

    def begin(self, c: Any) -> None:
        c.start = c.b.W - c.a.W
        c.put_row(0, "could", 0.0)

    def start_gap(self, c: Any) -> list[Any]:
        return [0.0]

    def axis(self, c: Any) -> Vector:
        """About which the moment acts."""
        raise NotImplementedError

    def spin(self, c: Any) -> Vector:
        """How b turns on a at the end of the step, times ¼ h."""
        spin: Vector = c.b.g - c.a.g - c.start * select(c.rows.resting, 0.0, 0.5)
        return spin

    def bound(self, c: Any) -> Any:
        most = select(c.rows.resting, 0.0, c.lever * maximum(0.0, c.rows.host_impulse(c)))
        c.put_row(0, "low", -most)
        c.put_row(0, "high", most)
        return most

    def unit(self, c: Any) -> Any:
        return 0.0

    def wrenches(self, c: Any) -> Wrenches:
        e = self.axis(c)
        return [(ZERO, -e, ZERO, e)]

    rates = wrenches

    def choose(self, c: Any) -> Any:
        """Whether the law throws back what has come to it."""
        return False

    def time_of_impact(self, c: Any) -> Any:
        """The part of the step after which something comes to the law that it throws back; 1: nothing does."""
        return 1.0

    def keep(self, c: Any) -> Any:
        return False


class Spinning(Turning):
    """Torsional friction, about the normal `axis_a`."""

    def axis(self, c: Any) -> Vector:
        normal: Vector = c.axis_a
        return normal

    def guess(self, c: Any, k: int) -> Any:
        return 0.0

    def evaluate(self, c: Any) -> list[Any]:
        self.bound(c)
        return [dot(c.axis_a, self.spin(c))]


class Rolling(Turning):
    """One of the two rows of rolling friction across the normal, whose moments together lie in a disc.

    `line` is the direction of the moment that is expected, by the spin and the moment of the last pass; the first row acts along
    it and is bounded by the disc's radius R. The other row, where `across` is 1, follows the first: w + p |spin|/R = 0 is how a
    moment that is opposite to the spin turns with it, and 0 where both are aligned. What is inside the disc is held in both.
    """

    def begin(self, c: Any) -> None:
        super().begin(c)
        n = c.axis_a
        c.line = direction(across_of(n, c.start) * -1.0, c.axis_b)

    def axis(self, c: Any) -> Vector:
        n, d = c.axis_a, c.line
        other = cross(n, d)
        return Vector(*(select(c.across > 0.5, y, x) for x, y in zip(d, other, strict=True)))

    def guess(self, c: Any, k: int) -> Any:
        """As it rolls."""
        spin = across_of(c.axis_a, c.start)
        rolls = (dot(spin, spin) > 0.0) & not_(c.across > 0.5)
        return select(rolls, c.lever * maximum(0.0, c.rows.host_impulse(c)), 0.0)

    def evaluate(self, c: Any) -> list[Any]:
        n, d, second = c.axis_a, c.line, c.across > 0.5
        spin = across_of(n, self.spin(c))
        most = self.bound(c)
        along, across = (select(second, c.row(i, "impulse"), c.row(j, "impulse")) for i, j in ((-1, 0), (0, 1)))
        moment = d * along + cross(n, d) * across
        speed, response = sqrt(dot(spin, spin)), c.row(0, "could") + select(second, c.row(-1, "could"), c.row(1, "could"))
        c.soft = select(second & (most > 0.0), speed / select(most > 0.0, most, 1.0), 0.0)
        aim = moment * response - spin
        ahead = direction(aim, d)
        turned, reach = cross(d, ahead), 0.9 * most * response
        counts = (response > 0.0) & (most > 0.0) & (dot(aim, aim) > reach * reach)
        c.rows.factor_again(counts & (dot(turned, turned) > ALIGNED * ALIGNED))
        c.line_1 = Vector(*(select(counts | not_(response > 0.0), x, y) for x, y in zip(ahead, d, strict=True)))
        c.arm_a, c.arm_b = moment, spin
        return [self.rate(c)]

    def rate(self, c: Any) -> Any:
        """The speed of the row, with what follows the moment."""
        return dot(self.axis(c), c.arm_b) + c.soft * c.impulse(0)

    def softness(self, c: Any, k: int) -> Any:
        return c.soft

    def enter(self, c: Any, exact: bool) -> None:
        """Rows act along other axes from here on, with the same moment."""
        c.line = c.line_1
        c.put_row(0, "impulse", dot(self.axis(c), c.arm_a))
        c.put_row(0, "gap", self.rate(c) * 2.0)
        super().enter(c, exact)


def across_of(n: Vector, x: Vector) -> Vector:
    """What of x is across n."""
    out: Vector = x - n * dot(n, x)
    return out


def direction(x: Vector, other: Vector) -> Vector:
    """The direction of x; `other` where it has none."""
    square = dot(x, x)
    by = select(square > 0.0, 1.0 / sqrt(select(square > 0.0, square, 1.0)), 0.0)
    return Vector(*(select(square > 0.0, y * by, z) for y, z in zip(x, other, strict=True)))
