"""Joint speeds in coordinates in which the joints' own responses are diagonal, and what couples them (`contact.cones`).

The response of every joint alone, with its base at rest and all that hangs on it, is D = ℓ Δ ℓᵀ, ℓ lower with a unit diagonal.
Rows see joint speeds v by J: in coordinates of v in which D is Δ, of a unit impulse (l, n) at the link, carried to its joint as
if no joint yielded (`natural`). What joints that hang on it make of an impulse is L (`gains`): a unit of their own equation
leaves −(l, n) on the base, and that, carried on to the ground, leaves L on every joint of the way. So

    M = L Δ⁻¹ Lᵀ           inertia in joint coordinates
    h = L⁻¹ J              what a unit impulse leaves on every joint, which yields by Δ h
    v = L⁻ᵀ Δ (L⁻¹ τ + ε)  speeds by impulses τ and by what joints lack themselves, ε (`own_speeds`: Δ ε)

A direction that a law locks has Δ = 0 and no L.
"""

from __future__ import annotations

from typing import Any

from sharnir.emit.algebra import ZERO, Vector, dot
from sharnir.emit.expressions import select
from sharnir.engine.tree.ball_friction import BallFriction
from sharnir.engine.tree.joints import Ball, Free, OneAxis, Prescribed, Weld
from sharnir.engine.tree.rows import Impulse, equation, held_response, put_equation
from sharnir.engine.tree.several_axes import SeveralAxes
from sharnir.laws.axis import not_

UNITS = (Vector(1.0, 0.0, 0.0), Vector(0.0, 1.0, 0.0), Vector(0.0, 0.0, 1.0))


def split(D: Any, tiny: Any) -> tuple[Vector, list[Any]]:
    """ℓ₁₀, ℓ₂₀, ℓ₂₁ and Δ of D = ℓ Δ ℓᵀ, D symmetric and at least semi-definite; `tiny`: what is left by rounding."""

    def over(x: Any) -> Any:
        return select(x > 0.0, 1.0 / select(x > 0.0, x, 1.0), 0.0)

    by = over(D[0, 0])
    a, b = D[1, 0] * by, D[2, 0] * by
    second, left = D[1, 1] - a * D[1, 0], D[2, 1] - b * D[1, 0]
    second = select(second > tiny * D[1, 1], second, 0.0)
    c = left * over(second)
    third = D[2, 2] - b * D[2, 0] - c * left
    return Vector(a, b, c), [D[0, 0], second, select(third > tiny * D[2, 2], third, 0.0)]


def lower_times(L: Vector, y: Vector) -> Vector:
    """ℓᵀ y."""
    a, b, c = L
    return Vector(y[0] + a * y[1] + b * y[2], y[1] + c * y[2], y[2])


def lower_solve(L: Vector, x: Vector) -> Vector:
    """ℓ⁻¹ x."""
    a, b, c = L
    second = x[1] - a * x[0]
    return Vector(x[0], second, x[2] - b * x[0] - c * second)


def lower_product(L: Vector, x: Vector) -> Vector:
    """ℓ x."""
    a, b, c = L
    return Vector(x[0], a * x[0] + x[1], b * x[0] + c * x[1] + x[2])


def upper_solve(L: Vector, y: Vector) -> Vector:
    """ℓ⁻ᵀ y."""
    a, b, c = L
    second = y[1] - c * y[2]
    return Vector(y[0] - a * second - b * y[2], second, y[2])


def size_of(joint: Any) -> int:
    """How many speeds a joint has."""
    return 0 if isinstance(joint, Weld) else 1 if isinstance(joint, OneAxis) else 6 if isinstance(joint, Free | Prescribed) else 3


def know_response(joint: Any, link: Any) -> list[Any]:
    """Δ; ℓ stays with the link."""
    if isinstance(joint, OneAxis):
        return [select(link.lock > 0.5, 0.0, link.D)]
    if isinstance(joint, Prescribed):
        return [0.0] * 6
    if isinstance(joint, Weld):
        return []
    if isinstance(joint, Free):
        (link.split_l, linear), (link.split_a, angular) = split(link.A3, link.tree.tiny), split(link.D3, link.tree.tiny)
        return [*linear, *angular]
    several = isinstance(joint, SeveralAxes)
    D = held_response(link) if several else link.V3 if isinstance(joint, BallFriction) else link.D3
    link.split_a, found = split(D, link.tree.tiny)
    return found


def lever_of(joint: Any, link: Any) -> Vector:
    """The link's origin from that of its base; nothing is carried on to the ground."""
    if isinstance(joint, Free | Prescribed):
        return ZERO
    if isinstance(joint, OneAxis):
        return joint.motion(link)[2]
    if isinstance(joint, SeveralAxes):
        out: Vector = joint.law_axes(link)[2]
        return out
    arm: Vector = link.base.M @ link.local_anchor
    return arm


def natural(joint: Any, link: Any, act: Impulse, own: Any = 0.0) -> list[Any]:
    """J of an impulse on the link, and one on its own axis."""
    l, n = act
    if isinstance(joint, OneAxis):
        S_l, S_a, _ = joint.motion(link)
        return [dot(S_l, l) + dot(S_a, n) + own]
    if isinstance(joint, Free):
        return [*lower_times(link.split_l, l - link.B.T @ (link.D3 @ n)), *lower_times(link.split_a, n)]
    if isinstance(joint, Prescribed):
        return [*l, *n]
    if isinstance(joint, SeveralAxes):
        across, about, _ = joint.law_axes(link)
        return [*lower_times(link.split_a, across.T @ l + about.T @ n)]
    return [*lower_times(link.split_a, n)] if isinstance(joint, Ball | BallFriction) else []


def gains(joint: Any, link: Any, response: list[Any]) -> list[Impulse]:
    """What units of the joint's own equation leave on its base, negative, at the link's origin; `response`: Δ."""
    if isinstance(joint, OneAxis):
        return [(link.U_l * response[0], link.U_a * response[0])]
    if isinstance(joint, Free | Prescribed | Weld):
        return []
    columns = [lower_product(link.split_a, e * x) for e, x in zip(UNITS, response, strict=True)]
    if isinstance(joint, SeveralAxes):
        return [(link.UL3 @ x, link.UA3 @ x) for x in columns]
    if isinstance(joint, BallFriction):
        return [(link.B.T @ x, link.K3 @ x) for x in columns]
    return [(link.B.T @ x, upper_solve(link.split_a, e)) for e, x in zip(UNITS, columns, strict=True)]


def own_speeds(joint: Any, link: Any, response: list[Any]) -> list[Any]:
    """Δ ε: how the joint's speeds change by what it lacks itself, with its base at rest."""
    if isinstance(joint, OneAxis):
        return [select(link.lock > 0.5, link.jump, response[0] * link.e)]
    if isinstance(joint, Free):
        u, g = link.dl, link.e3
        return [*lower_solve(link.split_l, u), *lower_solve(link.split_a, g + link.D3 @ (link.B @ u))]
    if isinstance(joint, Prescribed):
        rows = link.tree.rows
        return [select(rows.resting & not_(rows.closing), x, 0.0) for x in (*link.zl, *link.zv)]
    if isinstance(joint, SeveralAxes | BallFriction):
        now = link.y_3 if isinstance(joint, SeveralAxes) else link.zv
        return [*lower_solve(link.split_a, joint.respond(link, link.e3) - now)]
    if isinstance(joint, Weld):
        return []
    return [a * b for a, b in zip(response, lower_times(link.split_a, link.e3), strict=True)]


def add_own(joint: Any, link: Any, response: list[Any], h: list[Any]) -> None:
    """Add to the joint's own equation what impulses leave on it."""
    if isinstance(joint, OneAxis):
        found = h
    elif isinstance(joint, Free):
        x = [a * b for a, b in zip(response, h, strict=True)]
        u = lower_product(link.split_l, Vector(*x[:3]))
        found = [*u, *(lower_product(link.split_a, Vector(*x[3:])) - link.D3 @ (link.B @ u))]
    elif isinstance(joint, Prescribed | Weld):
        return
    else:
        found = [*upper_solve(link.split_a, Vector(*h))]
    put_equation(joint, link, [a + b for a, b in zip(equation(joint, link), found, strict=True)])


def answer_to_own(joint: Any, link: Any, x: list[Any], response: list[Any]) -> list[Any]:
    """How a row of a loop answers what impulses leave on the joint's own equation; `x` is its exact one, see `rows.Answer`."""
    if isinstance(joint, OneAxis):
        return x
    if isinstance(joint, Free):
        seen = natural(joint, link, (Vector(*x[:3]), Vector(*x[3:])))
        return [a * b for a, b in zip(response, seen, strict=True)]
    return [0.0] * 6 if isinstance(joint, Prescribed) else [*lower_solve(link.split_a, Vector(*x))] if x else []
