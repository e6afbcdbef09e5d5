"""Rows beside the forest in the second gear: unit impulses are carried along paths by the exact derivative (`exact`).

The derivative is not symmetric. An impulse along J acts at mean arms; what it leaves on a joint's base are the columns of the
derivative. J₁ is given by half the displacements δu and turns δθ of the end of the step, so it is shifted by arms of the end;
what it leaves on the base are the rows. The rest is as in the first gear (`rows`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sharnir.emit.algebra import IDENTITY, ZERO, Vector, cross, dot
from sharnir.emit.expressions import absolute, select
from sharnir.engine.tree import rows
from sharnir.engine.tree.ball_friction import BallFriction
from sharnir.engine.tree.ball_laws import either
from sharnir.engine.tree.exact import correct, end_of, linearize, mean_change_matrix, turn_rate
from sharnir.engine.tree.exact_several import held_response, motion_of, respond
from sharnir.engine.tree.joints import Ball, Free, OneAxis, Prescribed, Slider, Weld
from sharnir.engine.tree.rows import (
    Answer,
    Impulse,
    carry_impulses,
    correct_impulses,
    largest_square,
    trace,
)
from sharnir.engine.tree.several_axes import SeveralAxes
from sharnir.engine.tree.slides import Slides
from sharnir.laws.ball import choose

Response = Callable[[Impulse, Impulse, Any, Any, Any], Answer]


def close_rows(tree: Any) -> None:
    """Correct the impulses of all rows, and the joints' equations by them."""
    for _ in tree.rows.as_function("close_rows_exactly"):
        carry_impulses(tree, response_of, True)
        tree.rows.factor()
        correct_impulses(tree, own_answer)


def own_answer(joint: Any, link: Any, read: Callable[[str, int], list[Any]]) -> Any:
    """How a row's gap changes by what the joint itself lacks, see `rows.own_answer`."""
    if isinstance(joint, SeveralAxes):
        return dot(read("rate", 3), respond(link, link.e3) - link.y_3)
    if isinstance(joint, BallFriction):
        return select(link.mode > 0.5, dot(read("rate", 3), link.Kinv @ (link.lock_to_3 - link.zv)), dot(read("x", 3), link.e3))
    return 0.0 if isinstance(joint, Prescribed) else rows.own_answer(joint, link, read)


def response_of(joint: Any, link: Any) -> Response:
    """How a joint answers unit impulses on its link, see `rows.response_of`."""
    for kind, make in RESPONSES:
        if isinstance(joint, kind):
            response: Response = make(joint, link)
            return response
    raise TypeError(f"joint {type(joint).__name__} is not known to rows")


def shifted(link: Any, lever: Vector, start: Vector) -> Callable[[Impulse, Impulse], tuple[Impulse, Impulse]]:
    """Both impulses about the base's origin; `lever` is the mean arm from there, `start` that of the start of the step."""
    arm = lever * 2.0 - start

    def shift(act: Impulse, rate: Impulse) -> tuple[Impulse, Impulse]:
        (l, n), (l1, n1) = act, rate
        return (l, n + cross(lever, l)), (l1, n1 + cross(arm, l1))

    return shift


def of_axis(joint: Any, link: Any) -> Response:
    S_l, S_a, lever = joint.motion(link)
    slides = isinstance(joint, Slider)
    axis = end_of(link.base.M, link.local_axis)
    per = 1.0 if slides else turn_rate(joint, link)
    D = select(link.lock > 0.5, 0.0, link.D)
    lines, columns = (link.U_l, link.U_a), (link.column_l, link.column_a)
    move, turn = dot(S_l, S_l), dot(S_a, S_a)
    shift = shifted(link, lever, joint.start(link) if slides else link.local_anchor)

    def answer(act: Impulse, rate: Impulse, own: Any, size_l: Any, size_n: Any) -> Answer:
        (l, n), (l1, n1) = act, rate
        y = dot(S_l, l) + dot(S_a, n) + own
        rate_y = dot(axis, l1 if slides else n1) * per + own
        x, by = rate_y * D, y * D
        could = absolute((move * (dot(l, l) + size_l) + turn * (dot(n, n) + size_n) + own * own) * D)
        (l, n), rate = shift(act, (l1 - lines[0] * x, n1 - lines[1] * x))
        return [y], [x], [rate_y], could, (l - columns[0] * by, n - columns[1] * by), rate

    return answer


def of_several(joint: Any, link: Any) -> Response:
    across, about, lever = joint.law_axes(link)
    move, turn, P = motion_of(joint, link)
    lines, columns, V = (link.UL3, link.UA3), (link.columns_l, link.columns_a), held_response(link)
    shift = shifted(link, lever, joint.start(link) if isinstance(joint, Slides) else link.local_anchor)

    def answer(act: Impulse, rate: Impulse, own: Any, size_l: Any, size_n: Any) -> Answer:
        (l, n), (l1, n1) = act, rate
        y, rate_y = across.T @ l + about.T @ n, move.T @ l1 + turn.T @ n1
        by, x = V @ y, V.T @ rate_y
        could = absolute(dot(y, by) + (size_l * largest_square(across) + size_n * largest_square(about)) * trace(V))
        (l, n), rate = shift(act, (l1 - lines[0] @ x, P.T @ n1 - lines[1] @ x))
        return [*y], [*x], [*rate_y], could, (l - columns[0] @ by, n - columns[1] @ by), rate

    return answer


def of_ball(joint: Any, link: Any) -> Response:
    inverse, C, B = link.Kinv, link.B, link.columns_l
    shift = shifted(link, link.lever, link.local_anchor)

    def answer(act: Impulse, rate: Impulse, own: Any, size_l: Any, size_n: Any) -> Answer:
        (l, n), (l1, n1) = act, rate
        by, x = inverse @ n, inverse.T @ n1
        could = absolute(dot(n, by) + size_n * trace(inverse))
        return [*n], [*x], [], could, *shift((l - B @ by, ZERO), (l1 - C.T @ x, ZERO))

    return answer


def of_friction(joint: Any, link: Any) -> Response:
    """See `exact_several.ExactFriction`: where the ball is locked, its link turns with the base."""
    inverse, C, B, D, held = link.Kinv, link.B, link.columns_l, link.UA3, link.mode > 0.5
    by_base = inverse @ (either(held, IDENTITY, link.C3.full) @ mean_change_matrix(link.base.g))
    shift = shifted(link, link.base.M @ link.local_anchor, link.local_anchor)

    def answer(act: Impulse, rate: Impulse, own: Any, size_l: Any, size_n: Any) -> Answer:
        (l, n), (l1, n1) = act, rate
        by, x = choose(held, ZERO, inverse @ n), choose(held, ZERO, inverse.T @ n1)
        could = absolute(dot(n, by) + select(held, 0.0, size_n * trace(inverse)))
        handed = shift((l - B @ by, n - D @ by), (l1 - C.T @ x, by_base.T @ n1))
        return [*n], [*x], [*n1], could, *handed

    return answer


def of_free(joint: Any, link: Any) -> Response:
    inverse, C, B, A = link.Kinv, link.B, link.columns_l, link.columns_a

    def answer(act: Impulse, rate: Impulse, own: Any, size_l: Any, size_n: Any) -> Answer:
        (l, n), (l1, n1) = act, rate
        u = A @ (l - B @ (inverse @ n))
        turn = inverse @ (n - C @ u)
        could = absolute(dot(l, u) + dot(n, turn) + size_l * trace(A) + size_n * trace(inverse))
        return [*u, *turn], [*l1, *n1], [], could, (ZERO, ZERO), (ZERO, ZERO)

    return answer


def of_weld(joint: Any, link: Any) -> Response:
    shift = shifted(link, link.lever, link.local_anchor)
    return lambda act, rate, own, size_l, size_n: ([], [], [], 0.0, *shift(act, rate))


def of_prescribed(joint: Any, link: Any) -> Response:
    still = [0.0] * 6
    return lambda act, rate, own, size_l, size_n: (still, still, still, 0.0, (ZERO, ZERO), (ZERO, ZERO))


RESPONSES = (
    (OneAxis, of_axis), (SeveralAxes, of_several), (BallFriction, of_friction), (Ball, of_ball), (Free, of_free), (Weld, of_weld),
    (Prescribed, of_prescribed),
)  # fmt: skip

__all__ = ["close_rows", "correct", "linearize"]
