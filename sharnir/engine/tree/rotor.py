"""Rotors: links on a hinge that are symmetric about it and carry nothing (theory, section 4, "Rotors").

The mean of a spin in body axes is off by φ²/12 if the body turns by φ in a step. The inertia of a rotor is the same in the axes
of its base, so its momentum is taken there: the base's balance has R₁π₁ − R₀π₀, π = I(W + s e), with the base's rotations, and
the hinge's is e·I(ΔW + Δs e). Energy and momentum are kept, any rate of spin is right, and Δq = h s̄.
"""

from __future__ import annotations

from typing import Any

from sharnir.emit.algebra import ZERO, Vector, dot, square
from sharnir.emit.expressions import cos, select, sin
from sharnir.engine.tree.joints import Hinge, carry, hand_on, turned


class Rotor(Hinge):
    """A hinge whose link's twist is, but for the rate of spin, its base's: g, M are those of the base."""

    def own_axis(self, link: Any) -> Vector:
        """The axis in the axes in which the link's vectors are."""
        return Vector(0.0, 0.0, 1.0) if link.own_axes else link.local_axis

    def moved(self, link: Any, u: Vector, g: Vector) -> tuple[Vector, Vector]:
        return u, g

    def ratio(self, link: Any) -> Any:
        return 1.0

    def lacks(self, link: Any) -> Any:
        """What the hinge's own equation lacks: momentum along the axis, less that of an outer moment."""
        e = self.own_axis(link)
        momentum = link.inertia[2, 2] * (dot(e, link.g) + link.z - dot(e, link.W))
        if link.tree.pushed and not link.tree.rests:
            momentum = momentum - dot(link.M @ e, link.push_n)
        return momentum

    def eliminate(self, link: Any, f: Vector, n: Vector, inertia: Any) -> None:
        turn, e, C, z = link.turn, self.own_axis(link), link.inertia[2, 2], link.z
        n = n + (link.M @ e * 2.0 - e) * (C * z)
        f, n = turn.outward(f), turn.outward(n)
        if not link.tree.rests:
            for _ in link.acting():
                self.law_terms(link)
        locked = link.lock > 0.5
        if inertia is not None:
            A, H, I = turned(turn, inertia)
            D = 1.0 / (C + link.slope)
            link.U_l, link.U_a, link.D = ZERO, link.local_axis * C, D
            inertia = A, H, I - square(link.U_a, select(locked, 0.0, D))
        link.e = link.given - self.lacks(link)
        dz = select(locked, link.jump, link.e * link.D)
        hand_on(link, link.lever, f, n + link.U_a * dz, inertia)

    def report(self, link: Any, f: Vector, n: Vector) -> None:
        turn, e, C, z = link.turn, self.own_axis(link), link.inertia[2, 2], link.z
        n = n + (link.M @ e * 2.0 - e) * (C * z)
        link.mean_axis = link.base.M @ link.local_axis
        carry(link, link.lever, turn.outward(f), turn.outward(n))
        for _ in link.acting():
            self.report_laws(link, self.lacks(link) / (0.25 * link.h))

    def advance(self, link: Any) -> None:
        z, e = link.z, self.own_axis(link)
        if link.tree.pushed:
            for _ in link.tree.when_pushed():
                link.tree.note_work(dot(link.push_n, link.M @ e) * z * (8.0 / (link.h * link.h)))
        link.q = link.q + z * 2.0
        dc, ds = cos(z * 2.0), sin(z * 2.0)
        c, s = link.c, link.s
        c, s = c * dc - s * ds, s * dc + c * ds
        fit = 1.5 - 0.5 * (c * c + s * s)
        link.c, link.s = c * fit, s * fit
        if link.own_axes:  # from axes that turn with the base to those of the end of the step
            link.V, link.W = about_z(link.V, dc, ds), about_z(link.W + e * (z * 2.0), dc, ds)
        else:
            link.W = link.W + (link.M @ e * 2.0 - e) * (z * 2.0)

    def spin(self, link: Any, g: Vector) -> Vector:
        whole: Vector = g + self.own_axis(link) * link.z
        return whole


def about_z(x: Vector, c: Any, s: Any) -> Vector:
    """A vector in axes that are turned about z."""
    return Vector(c * x.x + s * x.y, c * x.y - s * x.x, x.z)
