"""The second gear of the tree's step: Newton's iteration with the exact derivative of the equations (theory, "second gear").

Symmetric factors take all arms and axes at their means. Their derivative is not symmetric: forces act at mean arms, but what a
change of the mean twists moves are arms at the end of the step. With δθ = (δg + g × δg)/(1 + g²), half the turn by which the end
pose of a link changes, and δu, half its displacement, changes follow each other as in a rigid body at the end pose:

    δu_i = δu_base + δθ_base × arm₁ (+ axis₁ δz of a slider),     δθ_i = δθ_base (+ axis₁ δy of a hinge, δy = ½ δΔq)

and K gives what a link and all on it lack for them: (δf, δn) = K (δu, δθ), blocks A, B, C, D, with the stiffness that forces have
because their arms turn. Vectors are in world axes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from sharnir.emit.algebra import IDENTITY, NO_MATRIX, ZERO, Matrix, Vector, cross, dot, outer, skew
from sharnir.emit.expressions import absolute, select
from sharnir.engine.tree.joints import Ball, Free, Hinge, Prescribed, Slider, Weld, largest
from sharnir.engine.tree.rows import stiffen_rows, times
from sharnir.engine.tree.step import missing_momentum


class Derivative(NamedTuple):
    """Blocks of K."""

    A: Matrix
    B: Matrix
    C: Matrix
    D: Matrix


def end_of(M: Matrix, x: Vector) -> Vector:
    """A vector that turns with a link at the end of the step, from that at the start."""
    end: Vector = (M @ x) * 2.0 - x
    return end


def half_turn(g: Vector, dg: Vector) -> Vector:
    """δθ of a change of g."""
    turn: Vector = (dg + cross(g, dg)) * (1.0 / (1.0 + dot(g, g)))
    return turn


def mean_change(g: Vector, turn: Vector) -> Vector:
    """δg of a change δθ."""
    change: Vector = turn - cross(g, turn) + g * dot(g, turn)
    return change


def mean_change_matrix(g: Vector) -> Matrix:
    """T: δg of a change δθ."""
    return IDENTITY - skew(g) + outer(g, g)


def linearize(tree: Any, anew: bool = True) -> None:
    """What every joint lacks, and with `anew` the derivative of that, from the leaves inwards."""
    if tree.rows:
        stiffen_rows(tree)
    for link in tree.links(inward=True):
        com = link.com_mean
        f, n = missing_momentum(link, com)
        K: Any = own_derivative(link, com, f) if anew else None
        if tree.rows:
            own = times(IDENTITY, link.take("row_A")), *(link.take(f"row_{block}") for block in "BCD")
            K = Derivative(*(x + y for x, y in zip(K, own, strict=True)))
            f, n = f - link.take("row_f"), n - link.take("row_n")
        if tree.ropes:
            hung_f, hung_n, *own = tree.ropes.hung(link)
            K = Derivative(*(x + y for x, y in zip(K, own, strict=True)))
            f, n = f + hung_f, n + hung_n
        handed_f, handed_n = link.gathered("f", "n")
        if K is not None:
            K = Derivative(*(x + y for x, y in zip(K, link.gathered("KA", "KB", "KC", "KD"), strict=True)))
        for joint in link.joints():
            EXACT[type(joint)].eliminate(joint, link, f + handed_f, n + handed_n, K)


def correct(joint: Any, link: Any, u: Vector, g: Vector) -> Any:
    """Correct a joint's mean speeds, given the twist that its base carries to it; returns the largest change."""
    return EXACT[type(joint)].correct(joint, link, u, g)


def own_derivative(link: Any, com: Vector, f: Vector) -> Derivative:
    """K of a link alone; f is what it lacks itself."""
    g, I, m = link.g, link.local_inertia.full, link.mass
    end = end_of(link.M, link.local_com)
    momentum = end_of(link.M, I @ (g * 2.0 - link.W))
    turned_I = Matrix([list(end_of(link.M, I.column(k))) for k in range(3)]).T
    from_turn = IDENTITY - skew(g) + outer(g, g)
    S, E = skew(com), skew(end)
    B = times(E, -m)
    D = turned_I @ from_turn - skew(momentum) + S @ B + skew(f) @ E
    return Derivative(times(IDENTITY, m), B, times(S, m), D)


def hand_on(link: Any, lever: Vector, arm: Vector, f: Vector, n: Vector, K: Derivative | None) -> None:
    """Give the base what it feels; K has its moments about the base's origin already, `lever` and `arm` are mean and end."""
    link.hand_on(f=f, n=n + cross(lever, f))
    if K is None:
        return
    E = skew(arm)
    link.hand_on(KA=K.A, KB=K.B - K.A @ E, KC=K.C, KD=K.D - K.C @ E + skew(f) @ E)


def shifted(lever: Vector, K: Derivative) -> Derivative:
    """K with moments about the base's origin."""
    S = skew(lever)
    return Derivative(K.A, K.B, K.C + S @ K.A, K.D + S @ K.B)


def slide_bends(axis: Vector, f: Vector, g: Vector) -> Vector:
    """How f along a translation's mean motion changes with δθ of the base, whose g it is: the motion turns."""
    T = cross(axis, f)
    bends: Vector = T * 2.0 - (T + cross(g, T) + g * dot(g, T)) - cross(axis, cross(f, g)) * 2.0
    return bends


class ExactAxis:
    """Hinges and sliders: along one axis, z is unknown."""

    @staticmethod
    def eliminate(joint: Any, link: Any, f: Vector, n: Vector, K: Derivative | None) -> None:
        S_l, S_a, lever = joint.motion(link)
        for _ in link.acting():
            joint.law_terms(link)
        if K is None:
            link.e = link.given - dot(S_l, f) - dot(S_a, n)
            dz = select(link.lock > 0.5, link.jump, link.e * link.D)
            link.hand_on(f=f + link.column_l * dz, n=n + cross(lever, f) + link.column_a * dz)
            return
        base = link.base
        slides = isinstance(joint, Slider)
        start = joint.start(link) if slides else link.local_anchor
        axis = end_of(base.M, link.local_axis)
        rate = 1.0 if slides else turn_rate(joint, link)
        if slides:
            U_l, U_a = (K.A @ axis) * rate, (K.C @ axis) * rate
            turns = slide_bends(axis, f, base.g)
        else:
            U_l, U_a = (K.B @ axis) * rate, (K.D @ axis) * rate
            turns = cross(axis, n)
        row_l, row_a = K.A.T @ S_l + K.C.T @ S_a, K.B.T @ S_l + K.D.T @ S_a + turns
        locked = link.lock > 0.5
        link.D = 1.0 / (dot(S_l, U_l) + dot(S_a, U_a) + link.slope)
        D = select(locked, 0.0, link.D)
        link.U_l, link.U_a, link.e = row_l, row_a, link.given - dot(S_l, f) - dot(S_a, n)
        V_a = U_a + cross(lever, U_l)
        if slides:
            V_a = V_a + cross(axis, f)
        if link.tree.rows:
            link.e = link.e + link.take("row_e")
        if link.tree.keeps_columns:
            link.column_l, link.column_a = U_l, V_a
        K = shifted(lever, K)
        kept = Derivative(
            K.A - outer(U_l * D, row_l), K.B - outer(U_l * D, row_a), K.C - outer(V_a * D, row_l), K.D - outer(V_a * D, row_a)
        )
        dz = select(locked, link.jump, link.e * link.D)
        extra = cross(axis, f) * dz if slides else ZERO
        hand_on(link, lever, lever * 2.0 - start, f + U_l * dz, n + U_a * dz + extra, kept)

    @staticmethod
    def correct(joint: Any, link: Any, u: Vector, g: Vector) -> Any:
        turn = half_turn(link.g_before, g - link.g_before)
        before = link.z
        if isinstance(joint, Slider):
            u = u + cross(turn, end_of(link.base.M, link.local_axis) * (2.0 * link.z))
        else:
            link.z = transported(link, g)
        link.dz = (link.e - dot(link.U_l, u - link.u_before) - dot(link.U_a, turn)) * link.D
        for _ in link.acting():
            joint.check_laws(link, True)
        link.z = link.z + link.dz
        return absolute(link.z - before) * link.unit


def turn_rate(joint: Any, link: Any) -> Any:
    """δy/δz of a hinge: ½Δq = atan(z k)."""
    k, t = joint.half_tangent(link)
    g = link.base.g
    return (1.0 + dot(g, g)) * k * k / (1.0 + t * t)


def transported(link: Any, g: Vector) -> Any:
    """The z that has the same Δq where the base's twist has changed to g."""
    before = link.g_before
    a = link.local_axis
    t = link.z / (1.0 + dot(before, before) + link.z * dot(before, a))
    return t * (1.0 + dot(g, g)) / (1.0 - t * dot(g, a))


class ExactBall:
    """All rotations are free."""

    @staticmethod
    def eliminate(joint: Any, link: Any, f: Vector, n: Vector, K: Derivative | None) -> None:
        lever = link.lever
        if K is None:
            link.e3 = -n
            hand_on(link, lever, lever, f - link.columns_l @ (link.Kinv @ n), ZERO, None)
            return
        inverse = K.D.inverse()
        link.Kinv, link.B = inverse, K.C
        if link.tree.keeps_columns:
            link.columns_l = K.B
        e = -n
        link.e3 = e
        f = f + K.B @ (inverse @ e)
        A = K.A - K.B @ (inverse @ K.C)
        kept = shifted(lever, Derivative(A, NO_MATRIX, NO_MATRIX, NO_MATRIX))
        hand_on(link, lever, lever * 2.0 - link.local_anchor, f, ZERO, kept)

    @staticmethod
    def correct(joint: Any, link: Any, u: Vector, g: Vector) -> Any:
        turn = link.Kinv @ (link.e3 - link.B @ (u - link.u_before))
        new = link.g + mean_change(link.g, turn) - g
        change = new - link.zv
        link.zv = new
        return largest(change)


class ExactFree:
    """All six axes are free, on the ground."""

    @staticmethod
    def eliminate(joint: Any, link: Any, f: Vector, n: Vector, K: Derivative | None) -> None:
        if K is None:
            inverse, C, B, A = link.Kinv, link.B, link.columns_l, link.columns_a
        else:
            inverse, C, B = K.D.inverse(), K.C, K.B
            A = (K.A - B @ (inverse @ C)).inverse()
        du = A @ (B @ (inverse @ n) - f)
        if link.tree.keeps_columns and K is not None:
            link.Kinv, link.B, link.columns_l, link.columns_a = inverse, C, B, A
        link.dl, link.e3 = du, inverse @ (-n - C @ du)

    @staticmethod
    def correct(joint: Any, link: Any, u: Vector, g: Vector) -> Any:
        change = mean_change(link.g, link.e3)
        link.zl, link.zv = link.zl + link.dl, link.zv + change
        return largest((*(link.dl * link.tree.per_metre), *change))


class ExactWeld:
    """No axis."""

    @staticmethod
    def eliminate(joint: Any, link: Any, f: Vector, n: Vector, K: Derivative | None) -> None:
        lever = link.lever
        hand_on(link, lever, lever * 2.0 - link.local_anchor, f, n, None if K is None else shifted(lever, K))

    @staticmethod
    def correct(joint: Any, link: Any, u: Vector, g: Vector) -> Any:
        return 0.0


class ExactPrescribed(ExactWeld):
    """A motion that is given."""

    @staticmethod
    def eliminate(joint: Any, link: Any, f: Vector, n: Vector, K: Derivative | None) -> None: ...


EXACT: dict[type, Any] = {
    Hinge: ExactAxis, Slider: ExactAxis, Ball: ExactBall, Free: ExactFree, Weld: ExactWeld, Prescribed: ExactPrescribed,
}  # fmt: skip
