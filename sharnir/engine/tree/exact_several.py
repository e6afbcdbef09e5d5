"""The second gear (`exact`) for all kinds of joints: also those with several axes in one link, and rotors.

Laws are linear about the last solution, as in the first gear. That the axes of a ball's laws turn with the step is left out.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from sharnir.emit.algebra import IDENTITY, NO_MATRIX, SYMMETRIC, Matrix, Symmetric, Vector, cross, dot, mean_rotation, outer, skew
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
    mean_change_matrix,
    shifted,
    slide_bends,
)  # fmt: skip
from sharnir.engine.tree.rotor import Rotor
from sharnir.engine.tree.rows import times
from sharnir.engine.tree.several_axes import AXES, DEPENDENT
from sharnir.engine.tree.slides import Slides, Turns
from sharnir.laws.axis import not_
from sharnir.laws.ball import choose


class Motion(NamedTuple):
    """How a link with several axes follows its base and its own joint: δu = δu_c + E_l δy, δθ = P δθ_b + E_a δy.

    c is the point of the base that is at the link's origin at the end of the step.
    """

    E_l: Matrix
    E_a: Matrix
    P: Matrix


def motion_of(joint: Any, link: Any) -> Motion:
    if isinstance(joint, Slides):
        return Motion(joint.end_frame(link), NO_MATRIX, IDENTITY)
    if isinstance(joint, Turns):
        a, b = turned_axes(joint, link)
        return Motion(NO_MATRIX, by_axis(link, a, b), IDENTITY)
    own = half_turn_matrix(link.g)
    return Motion(NO_MATRIX, own @ link.F3, own @ mean_change_matrix(link.base.g))


def turned_axes(joint: Any, link: Any) -> tuple[Vector, Vector]:
    """The axes of two rotations at the end of the step, from the base outwards."""
    a, b = joint.axes(link)
    return end_of(link.base.M, a), end_of(mean_rotation(joint.between(link)[2]), b)


def by_axis(link: Any, a: Vector, b: Vector) -> Matrix:
    """Columns of two rotations in the order of the laws."""
    ahead = link.sense > 0.0
    return Matrix([list(choose(ahead, a, b)), list(choose(ahead, b, a)), [0.0, 0.0, 0.0]]).T


def bending(joint: Any, link: Any, f: Vector, n: Vector) -> tuple[Matrix, Matrix]:
    """How the joint's equations Sᵀ (f, n) change because S turns: with δθ_b (by columns, one for each equation), and with δy."""
    if isinstance(joint, Slides):
        E, g = joint.end_frame(link), link.base.g
        return Matrix([list(slide_bends(E.column(k), f, g)) for k in AXES]).T, NO_MATRIX
    if isinstance(joint, Turns):
        a, b = turned_axes(joint, link)
        r, s = joint.between(link)[3:]
        by_a, by_b = cross(a, n) * (1.0 / r), cross(b, n) * (1.0 / s)
        of_a = dot(a, by_b)  # the first rotation carries the second axis
        ahead = link.sense > 0.0
        own = Matrix([[0.0, select(ahead, 0.0, of_a), 0.0], [select(ahead, of_a, 0.0), 0.0, 0.0], [0.0, 0.0, 0.0]])
        return by_axis(link, by_a, by_b), own
    return NO_MATRIX, NO_MATRIX


def held(V: Matrix, row: Vector) -> tuple[Matrix, Vector]:
    """`several_axes.locked` of a response that is not symmetric."""
    answer, back = V @ row, V.T @ row
    d = dot(row, answer)
    there = absolute(d) > DEPENDENT * absolute(V[0, 0] + V[1, 1] + V[2, 2]) * dot(row, row)
    toward = answer * select(there, 1.0 / select(there, d, 1.0), 0.0)
    return V - outer(toward, back), toward


def held_response(link: Any) -> Matrix:
    """The response without that along directions that laws lock."""
    V: Matrix = link.Kinv
    for k in AXES:
        V = held(V, link.lock3.row(k))[0]
    return V


def respond(link: Any, e: Vector) -> Vector:
    """y where the joint lacks e, with locked directions."""
    V, lock, to = link.Kinv, link.lock3, link.lock_to_3
    y: Vector = link.y_3 + V @ e
    for k in AXES:
        row = lock.row(k)
        V, toward = held(V, row)
        y = y + toward * (to[k] - dot(row, y))
    return y


class ExactSeveral:
    """Several axes with laws: their mean speeds y are unknown."""

    @staticmethod
    def eliminate(joint: Any, link: Any, f: Vector, n: Vector, K: Derivative) -> None:
        S_l, S_a, lever = joint.law_axes(link)
        joint.law_terms(link)
        E_l, E_a, P = motion_of(joint, link)
        bends, own_bends = bending(joint, link, f, n)
        U_l, U_a = K.A @ E_l + K.B @ E_a, K.C @ E_l + K.D @ E_a
        link.UL3, link.UA3 = K.A.T @ S_l + K.C.T @ S_a, P.T @ (K.B.T @ S_l + K.D.T @ S_a) + bends
        own, inert = S_l.T @ U_l + S_a.T @ U_a + own_bends, joint.inert(link)
        own = own + Matrix([[inert[i] if i == j else 0.0 for j in AXES] for i in AXES])
        link.K3 = Symmetric([(own[i, j] + own[j, i]) * 0.5 for i, j in SYMMETRIC])
        link.Kinv = (own + link.C3.full).inverse()
        joint.find_share(link, link.K3)
        V = held_response(link)
        link.e3 = link.given_3 - S_l.T @ f - S_a.T @ n
        by = respond(link, link.e3) - link.y_3
        V_a = U_a + skew(lever) @ U_l
        if isinstance(joint, Slides):
            V_a = V_a - skew(f) @ E_l
        K = shifted(lever, Derivative(K.A, K.B @ P, K.C, K.D @ P))
        L_l, L_a = V @ link.UL3.T, V @ link.UA3.T
        kept = Derivative(K.A - U_l @ L_l, K.B - U_l @ L_a, K.C - V_a @ L_l, K.D - V_a @ L_a)
        if link.tree.keeps_columns:
            link.columns_l, link.columns_a = U_l, V_a
        start = joint.start(link) if isinstance(joint, Slides) else link.local_anchor
        extra = cross(E_l @ by, f)
        hand_on(link, lever, lever * 2.0 - start, f + U_l @ by, n + U_a @ by + extra, kept)

    @staticmethod
    def correct(joint: Any, link: Any, u: Vector, g: Vector) -> Any:
        turn = half_turn(link.g_before, g - link.g_before)
        if isinstance(joint, Slides):
            u = u + cross(turn, joint.end_frame(link) @ (link.zv * 2.0))
        return joint.correct_laws(link, u, link.g_before + turn, respond)


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
        if link.tree.keeps_columns:
            link.columns_l = K.B
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


def half_turn_matrix(g: Vector) -> Matrix:
    """The inverse of `mean_change_matrix`."""
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
    def eliminate(joint: Any, link: Any, f: Vector, n: Vector, K: Derivative | None) -> None:
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
        lever, kept = link.lever, None
        if K is not None:
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
            joint.check_laws(link, True)
        link.z = link.z + link.dz
        return absolute(link.dz)


EXACT |= {BallWithLaws: ExactBallWithLaws, Rotor: ExactRotor, Slides: ExactSeveral, Turns: ExactSeveral}

__all__ = ["correct", "linearize"]
