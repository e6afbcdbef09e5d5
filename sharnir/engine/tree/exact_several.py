"""The second gear (`exact`) for all kinds of joints: also those with several axes in one link, and rotors.

Along the axes of laws the derivative is taken with mean axes and made symmetric, so that what is locked is locked as in the first
gear; all else is as exact as for other joints.
"""

from __future__ import annotations

from typing import Any

from sharnir.emit.algebra import IDENTITY, SYMMETRIC, Matrix, Symmetric, Vector, cross, dot, outer, skew
from sharnir.emit.expressions import absolute, select
from sharnir.engine.tree.ball_laws import FRICTION, BallWithLaws, either
from sharnir.engine.tree.exact import (
    EXACT,
    Derivative,
    ExactBall,
    correct,
    end_of,
    half_turn,
    hand_on,
    linearize,
    mean_change,
    shifted,
    times,
)  # fmt: skip
from sharnir.engine.tree.rotor import Rotor
from sharnir.engine.tree.several_axes import AXES, locked
from sharnir.engine.tree.slides import Slides, Turns
from sharnir.laws.axis import not_
from sharnir.laws.ball import choose


class ExactSeveral:
    """Several axes with laws."""

    @staticmethod
    def eliminate(joint: Any, link: Any, f: Vector, n: Vector, K: Derivative) -> None:
        S_l, S_a, lever = joint.law_axes(link)
        joint.law_terms(link)
        U_l, U_a = K.A @ S_l + K.B @ S_a, K.C @ S_l + K.D @ S_a
        link.UL3, link.UA3 = K.A.T @ S_l + K.C.T @ S_a, K.B.T @ S_l + K.D.T @ S_a
        own, inert = S_l.T @ U_l + S_a.T @ U_a, joint.inert(link)
        link.K3 = Symmetric([(own[i, j] + own[j, i]) * 0.5 + (inert[i] if i == j else 0.0) for i, j in SYMMETRIC])
        link.V3 = (link.K3 + link.C3).inverse()
        joint.find_share(link, link.K3)
        V = link.V3
        for k in AXES:
            V = locked(V, link.lock3.row(k))[0]
        link.e3 = link.given_3 - S_l.T @ f - S_a.T @ n
        by = joint.respond(link, link.e3) - link.y_3
        K = shifted(lever, K)
        L_l, L_a = V @ link.UL3.T, V @ link.UA3.T
        V_a = U_a + skew(lever) @ U_l
        kept = Derivative(K.A - U_l @ L_l, K.B - U_l @ L_a, K.C - V_a @ L_l, K.D - V_a @ L_a)
        start = joint.start(link) if isinstance(joint, Slides) else link.local_anchor
        hand_on(link, lever, lever * 2.0 - start, f + U_l @ by, n + U_a @ by, kept)

    @staticmethod
    def correct(joint: Any, link: Any, u: Vector, g: Vector) -> Any:
        turn = half_turn(link.g_before, g - link.g_before)
        return joint.correct_laws(link, u, link.g_before + turn)


class ExactFriction:
    """A ball on which friction alone acts: the turn δθ of the link is unknown, as in a ball without laws.

    Where friction slides, (D + C T) δθ = given − n − C_K δu + C T_b δθ_b; T δθ = δg, of the link and of its base. Where it does
    not, T δθ = T_b δθ_b + what y lacks.
    """

    @staticmethod
    def eliminate(joint: Any, link: Any, f: Vector, n: Vector, K: Derivative) -> None:
        FRICTION.update_terms(link)
        lever, locked = link.base.M @ link.local_anchor, link.mode > 0.5
        link.K3 = Symmetric([(K.D[i, j] + K.D[j, i]) * 0.5 for i, j in SYMMETRIC])
        C = FRICTION.slope(link, link.K3)
        own, based = mean_change_matrix(link.g), mean_change_matrix(link.base.g)
        inverse = either(locked, half_turn_matrix(link.g), (K.D + C @ own).inverse())
        link.Kinv, link.B, link.UA3 = inverse, K.C, K.D
        e = link.given_3 - n
        link.e3 = e
        turn = inverse @ choose(locked, link.lock_to_3 - link.zv, e)
        by_u = times(inverse @ K.C, select(locked, 0.0, -1.0))
        by_base = inverse @ (either(locked, IDENTITY, C.full) @ based)
        left = Derivative(K.A + K.B @ by_u, K.B @ by_base, K.C + K.D @ by_u, K.D @ by_base)
        hand_on(link, lever, lever * 2.0 - link.local_anchor, f + K.B @ turn, n + K.D @ turn, shifted(lever, left))

    @staticmethod
    def correct(joint: Any, link: Any, u: Vector, g: Vector) -> Any:
        h, du, dg, locked = link.h, u - link.u_before, g - link.g_before, link.mode > 0.5
        turn = link.Kinv @ choose(locked, dg + link.lock_to_3 - link.zv, link.e3 - link.B @ du + link.C3 @ dg)
        y = choose(locked, link.lock_to_3, link.g + mean_change(link.g, turn) - g)
        moment = link.given_3 - link.e3 + link.B @ du + link.UA3 @ turn
        link.free_3 = link.K3 @ (y * (4.0 / h) - link.u0_3) - moment * (4.0 / h) + link.command_3
        return FRICTION.put(link, y)


def mean_change_matrix(g: Vector) -> Matrix:
    """T: δg of a change δθ."""
    return IDENTITY - skew(g) + outer(g, g)


def half_turn_matrix(g: Vector) -> Matrix:
    """Its inverse."""
    return times(IDENTITY + skew(g), 1.0 / (1.0 + dot(g, g)))


class ExactBallWithLaws:
    """A ball, with laws or without."""

    @staticmethod
    def eliminate(joint: Any, link: Any, f: Vector, n: Vector, K: Derivative) -> None:
        for _ in link.idle():
            ExactBall.eliminate(joint, link, f, n, K)
        for _ in link.acting():
            rubs = joint.rubs(link)
            for _ in link.when(rubs):
                ExactFriction.eliminate(joint, link, f, n, K)
            for _ in link.when(not_(rubs)):
                ExactSeveral.eliminate(joint, link, f, n, K)

    @staticmethod
    def correct(joint: Any, link: Any, u: Vector, g: Vector) -> Any:
        for _ in link.idle():
            link.dz = ExactBall.correct(joint, link, u, g)
        for _ in link.acting():
            rubs = joint.rubs(link)
            for _ in link.when(rubs):
                link.dz = ExactFriction.correct(joint, link, u, g)
            for _ in link.when(not_(rubs)):
                link.dz = ExactSeveral.correct(joint, link, u, g)
        return link.dz


class ExactRotor:
    """A rotor: its momentum turns with the base, which is the gyroscopic part of the derivative."""

    @staticmethod
    def eliminate(joint: Any, link: Any, f: Vector, n: Vector, K: Derivative) -> None:
        e, C, z, g = joint.own_axis(link), link.inertia[2, 2], link.z, link.g
        column = (link.M @ e * 2.0 - e) * C
        n = n + column * z
        for _ in link.acting():
            joint.law_terms(link)
        D = 1.0 / (C + link.slope)
        row = (e - cross(e, g) + g * dot(g, e)) * C
        link.U_a, link.D = row, D
        link.e = link.given - joint.lacks(link)
        is_locked = link.lock > 0.5
        lever = link.lever
        spins = skew(end_of(link.M, e) * (2.0 * C * z))
        K = shifted(lever, Derivative(K.A, K.B, K.C, K.D - spins))
        kept = Derivative(K.A, K.B, K.C, K.D - outer(column * select(is_locked, 0.0, D), row))
        dz = select(is_locked, link.jump, link.e * D)
        hand_on(link, lever, lever * 2.0 - link.local_anchor, f, n + column * dz, kept)

    @staticmethod
    def correct(joint: Any, link: Any, u: Vector, g: Vector) -> Any:
        turn = half_turn(link.g_before, g - link.g_before)
        link.dz = (link.e - dot(link.U_a, turn)) * link.D
        for _ in link.acting():
            joint.check_laws(link)
        link.z = link.z + link.dz
        return absolute(link.dz)


EXACT |= {BallWithLaws: ExactBallWithLaws, Rotor: ExactRotor, Slides: ExactSeveral, Turns: ExactSeveral}

__all__ = ["correct", "linearize"]
