"""How the momentum of a body that turns fast changes with its mean spin (theory, section 4, "Lean trees")."""

from __future__ import annotations

from typing import Any

from sharnir.emit.algebra import IDENTITY, Matrix, Vector, dot, mean_rotation, outer, skew
from sharnir.emit.expressions import absolute, select
from sharnir.engine.tree.rows import times

LEAST = 0.1  # of the volume that the columns span: with less, the answer stays as it is


def gyroscopic(link: Any) -> Matrix:
    """Derivative of I (g − W) + (M − E) I (2 g − W) by g, the momentum that a link gains by turning, less I."""
    g, I = link.g, link.local_inertia.full
    k, M = 1.0 / (1.0 + dot(g, g)), mean_rotation(g)
    y = I @ (g * 2.0 - link.W)
    turned = times(skew(y), -1.0) + times(IDENTITY, dot(g, y)) + outer(g, y) - times(outer(M @ y, g), 2.0)
    out: Matrix = times(M - IDENTITY, 2.0) @ I + times(turned, k)
    return out


def with_gyroscopic(link: Any, D: Any, x: Vector) -> Vector:
    """(E + D G)⁻¹ x: the answer x of a free body, D its symmetric response, with what its own momentum changes by turning.

    The symmetric factors leave that to the next iterations, which contract by about |g| for it. An error here costs no accuracy.
    """
    A = IDENTITY + D.full @ gyroscopic(link)
    inverse = A.inverse()
    volume = dot(A.column(0), Vector(A[1, 1] * A[2, 2] - A[2, 1] * A[1, 2], A[2, 1] * A[0, 2] - A[0, 1] * A[2, 2],
                                     A[0, 1] * A[1, 2] - A[1, 1] * A[0, 2]))  # fmt: skip
    applies = absolute(volume) > LEAST
    return Vector(*(select(applies, a, b) for a, b in zip(inverse @ x, x, strict=True)))
