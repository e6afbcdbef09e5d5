"""Laws of three axes together, as plain mathematics: friction of a vector, springs and limits of a ball joint.

A ball's rotation q is that of the link's axes in the joint frame on its base; relative spin and all moments are in that frame.
All functions take floats, expressions or dual numbers.
"""

from __future__ import annotations

from typing import Any

from sharnir.emit.algebra import Matrix, Quaternion, Symmetric, Vector, cross, dot
from sharnir.emit.expressions import absolute, atan2, clamp, cos, maximum, select, sin, sqrt

TWELFTH = 1 / 12
LEAST_TURN_SQUARED = 1e-14  # rad²: a turn in a step that is none
FULL_TURN = 6.283185307179586


def length(x: Any) -> Any:
    """|x|."""
    return sqrt(dot(x, x))


def choose(condition: Any, yes: Any, no: Any) -> Vector:
    """`yes` or `no`, vectors, by a condition."""
    return Vector(*(select(condition, a, b) for a, b in zip(yes, no, strict=True)))


def times(a: Any, b: Any) -> Vector:
    """Products component by component."""
    return Vector(*(x * y for x, y in zip(a, b, strict=True)))


# ---- friction of a vector ----------------------------------------------------------------------------------------------------
#
# v is the speed at the end of the step without friction, K the inverse of the response. Friction holds v at zero where
# |K v| ≤ hold. Else it slides against the mean speed ū: f = −slide y, y = ū/|ū| = (sK + ½ slide E)⁻¹ K v̄, v̄ = ½(v + u₀), with
# |y| = 1 and s = |ū| > 0: the secular equation, by the Newton steps of Moré and Sorensen.


def can_hold(need: Vector, hold: Any, u0: Vector) -> tuple[Any, Any]:
    """Whether friction can give the impulse −need; and whether it holds, which is not against its own start."""
    able = dot(need, need) <= hold * hold
    return able, able & (dot(need, u0) >= 0.0) & (hold > 0.0)


def slip_speed(s: Any, half: Vector, K: Symmetric, slide: Any) -> tuple[Vector, Any, Any]:
    """One Newton step to s = |ū|, with `half` = K v̄: y, |y| and the next s."""
    R = Symmetric([a * s + (slide if i < 3 else 0.0) for i, a in enumerate(K.e)]).inverse()
    y = R @ half
    size = length(y)
    return y, size, maximum(0.0, s + size * size / dot(y, R @ (K @ y)) * (size - 1.0))


def is_same_slip(u: Vector, other: Vector) -> Any:
    """Whether two slip speeds have about the same direction and size."""
    size, about = length(u), length(other)
    return (dot(u, other) >= 0.9 * size * about) & (size <= 2.0 * about) & (about <= 2.0 * size)


def slip_slope(other: Vector, mean: Vector, size: Any, slide: Any, slowest: Any) -> Symmetric:
    """½ slide/|ū| (E − n nᵀ): minus the slope of sliding friction by the speed at the end of the step; `size` is |ū|.

    `other` is ū, too, or, of smoothed friction, another vector in the direction of friction; the product is made symmetric.
    """
    per = 1.0 / maximum(size, slowest)
    a, b = other * per, mean * per
    k = 0.5 * slide * per
    pairs = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))
    return Symmetric([(k if i == j else 0.0) - (0.5 * k) * (a[i] * b[j] + a[j] * b[i]) for i, j in pairs])


# ---- rotations ---------------------------------------------------------------------------------------------------------------


def conjugate(q: Quaternion) -> Quaternion:
    """The opposite rotation of a unit quaternion."""
    return Quaternion(-q.v, q.w)


def rotation_of(phi: Vector) -> Quaternion:
    """The unit quaternion of a rotation vector."""
    half = phi * 0.5
    xx = dot(half, half)
    series = xx < 1e-6
    x = sqrt(select(series, 1.0, xx))
    sine = select(series, 1.0 - xx * (1 / 6) * (1.0 - xx * 0.05), sin(x) / x)
    return Quaternion(half * sine, select(series, 1.0 - xx * (0.5 - xx * (1 / 24)), cos(x)))


def rotation_vector(q: Quaternion) -> Vector:
    """The rotation vector of a unit quaternion, of a length up to π."""
    back = select(q.w < 0.0, -1.0, 1.0)
    v, w = q.v * back, q.w * back
    s = length(v)
    near = s <= 1e-9
    return v * select(near, 2.0, 2.0 * atan2(s, w) / select(near, 1.0, s))


def half_rotation(g: Vector) -> Matrix:
    """Half of the rotation cay(2g), as a matrix."""
    return Quaternion(g, 1.0 + sqrt(1.0 + dot(g, g))).normalized().matrix()


# ---- springs -----------------------------------------------------------------------------------------------------------------


def spring_gradient(phi: Vector, stiffness: Vector) -> Vector:
    """Gradient of ½ Σ k φ² along the relative spin, φ the rotation vector from the rest to where the joint is.

    φ̇ = J⁻¹ ω, so the gradient is J⁻ᵀ K φ, J⁻ᵀ = E + ½[φ]× + c[φ]×², c = (1 − (θ/2) cot(θ/2))/θ².
    """
    f = times(stiffness, phi)
    xx = dot(phi, phi)
    small = xx <= 1e-6
    half = 0.5 * sqrt(select(small, 1.0, xx))
    c = select(small, TWELFTH, (1.0 - half * cos(half) / sin(half)) / select(small, 1.0, xx))
    once = cross(phi, f)
    return f + once * 0.5 + cross(phi, once) * c


def mean_gradient(start: Quaternion, end: Quaternion, rest: Vector, stiffness: Vector, by: Vector) -> Vector:
    """Discrete gradient of the springs over a step that turns the joint by `by`: its product with that is the energy gained."""
    back = conjugate(rotation_of(rest))
    x, y = rotation_vector(start * back), rotation_vector(end * back)
    mean = (spring_gradient(x, stiffness) + spring_gradient(y, stiffness)) * 0.5
    gained = 0.5 * dot(times(stiffness, x + y), y - x)
    return mean + by * along(gained - dot(mean, by), by)


def along(lacks: Any, by: Vector) -> Any:
    """What times `by` lets a product with `by` be larger by what it lacks."""
    size = dot(by, by)
    moves = size > LEAST_TURN_SQUARED
    return select(moves, lacks / select(moves, size, 1.0), 0.0)


# ---- limits ------------------------------------------------------------------------------------------------------------------


def cardan_angles(R: Matrix) -> tuple[Vector, Matrix]:
    """Angles of R = R(x, α) R(y, β) R(z, γ), and as rows their derivatives by the relative spin."""
    alpha = atan2(-R[1, 2], R[2, 2])
    s = clamp(R[0, 2], -1.0, 1.0)
    beta = atan2(s, sqrt(1.0 - s * s))
    gamma = atan2(-R[0, 1], R[0, 0])
    # the axes of the three rates: x of the base, y after α, z of the link; their duals give the rates
    x, y, z = Vector(1.0, 0.0, 0.0), Vector(0.0, cos(alpha), sin(alpha)), R.column(2)
    volume = dot(x, cross(y, z))
    per = 1.0 / select(absolute(volume) < 1e-3, 1e-3, volume)
    return Vector(alpha, beta, gamma), Matrix([list(cross(y, z) * per), list(cross(z, x) * per), list(cross(x, y) * per)])


def swing_and_twist(q: Quaternion, a: Any, b: Any) -> tuple[Vector, Matrix]:
    """Room left in the elliptic cone of the half-angles a and b, 0, and the twist about z; as rows their derivatives.

    The link's z is at θ from the base's, turned about ŝ = (cos ψ, sin ψ, 0). The cone is θ h(ψ) ≤ 1, h² = cos²ψ/a² + sin²ψ/b²;
    θ̇ = ω·ŝ, sin θ ψ̇ = ω·(z × ŝ); the twist's rate is ω·(z_base + z)/(1 + cos θ).
    """
    z = q.matrix().column(2)
    sine = sqrt(z.x * z.x + z.y * z.y)
    theta = atan2(sine, z.z)
    upright = sine <= 1e-9
    per = 1.0 / select(upright, 1.0, sine)
    s = Vector(select(upright, 1.0, -z.y * per), select(upright, 0.0, z.x * per), 0.0)
    aa, bb = 1.0 / (a * a), 1.0 / (b * b)
    h = sqrt(s.x * s.x * aa + s.y * s.y * bb)
    slope = s.x * s.y * (bb - aa) / h
    swing = -s - cross(z, s) * (theta * slope / (h * maximum(sine, 0.05)))
    twist = 2.0 * atan2(q.v.z, q.w)
    twist = select(twist > 0.5 * FULL_TURN, twist - FULL_TURN, select(twist < -0.5 * FULL_TURN, twist + FULL_TURN, twist))
    about = (Vector(0.0, 0.0, 1.0) + z) * (1.0 / maximum(1.0 + z.z, 1e-3))
    return Vector(1.0 / h - theta, 0.0, twist), Matrix([list(swing), [0.0, 0.0, 0.0], list(about)])


def limit_coordinates(kind: Any, q: Quaternion, upper: Vector) -> tuple[Vector, Matrix]:
    """Coordinates that limit a ball joint, and as rows their derivatives: CARDAN angles, or swing and twist (SWING_TWIST)."""
    cardan, rows = cardan_angles(q.matrix())
    swung, others = swing_and_twist(q, upper.x, upper.y)
    first = kind < 1.5
    return choose(first, cardan, swung), Matrix([list(choose(first, rows.row(k), others.row(k))) for k in range(3)])


CARDAN, SWING_TWIST = 1.0, 2.0


def mean_rows(start: tuple[Vector, Matrix], end: tuple[Vector, Matrix], by: Vector) -> Matrix:
    """Discrete gradients of coordinates over a step that turns the joint by `by`."""
    rows = []
    for k in range(3):
        row = (start[1].row(k) + end[1].row(k)) * 0.5
        lacks = end[0][k] - start[0][k] - dot(row, by)
        lacks = select(absolute(lacks) > 1.0, 0.0, lacks)  # an angle that begins another turn
        rows.append(list(row + by * along(lacks, by)))
    return Matrix(rows)
