"""The equations of a rope's elements and interfaces and of their elimination, on the algebra of `emit` (theory: ropes).

Unknowns of a pass are changes of velocities: δv_j of points and φ_j of elements, where Δt ϑ φ is by how much the element at the
end of the step turns. An element turns by θ = Δt ω̄ in the step, R₁ = cay(θ) R₀; d₀, d₁ are its tangents at start and end, s₀, s₁
the distances of its points along them (its length, where it is taut).

    row           r_{j+1} − r_j − s₁ d₁ = 0               δv_{j+1} = δv_j + s₁ φ × d₁ + c (+ σ d₁ where it is slack)
    point         m (v₁ − v₀) + f_j − f_{j−1} = Δt F
    element       L₁ − L₀ + b × f_j − M_j + M_{j+1} = Δt τ,    b = ½ (s₀ d₀ + s₁ d₁)
    interface     M_j = Δt M(q),                          δM_j = e − K φ_j + J φ_{j−1}

What hangs on a point needs there impulse and moment that are linear in δv and φ, by four matrices A, B, C, D: f = A δv + B φ + a,
M = C δv + D φ + b. They are not symmetric: an element moves its points by d₁, and these turn it by b.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from sharnir.emit.algebra import (
    IDENTITY,
    NO_MATRIX,
    ZERO,
    Matrix,
    Quaternion,
    Vector,
    cross,
    dot,
    outer,
    skew,
)
from sharnir.emit.expressions import Scalar, absolute, atan2, maximum, select, sqrt

HALF_TURN = 3.141592653589793
LINEAR = 2.0 * HALF_TURN / 3.0  # rad, up to where a moment is in proportion to the angle (`bend`)
FOLDED = 1.0e-12  # cosine of half a bend that counts as 0
NEAR = 0.25  # square of the sine of half an angle up to which the arc sine is a quotient of polynomials
ARC_P = (
    1.66666666666666657415e-01, -3.25565818622400915405e-01, 2.01212532134862925881e-01, -4.00555345006794114027e-02,
    7.91534994289814532176e-04, 3.47933107596021167570e-05,
)  # fmt: skip
ARC_Q = (1.0, -2.40339491173441421878e00, 2.02094576023350569471e00, -6.88283971605453293030e-01, 7.70381505559019352791e-02)


def scaled(m: Matrix, s: Scalar) -> Matrix:
    """s m."""
    return Matrix([[x * s for x in row] for row in m.rows])


def along_row(x: Vector, m: Matrix) -> Vector:
    """mᵀ x."""
    return Vector(*(dot(m.column(j), x) for j in range(3)))


def times_cross(m: Matrix, a: Vector) -> Matrix:
    """m [a]×: the rows of m, each crossed with a."""
    return Matrix([list(cross(m.row(i), a)) for i in range(3)])


def cross_times(a: Vector, m: Matrix) -> Matrix:
    """[a]× m."""
    return Matrix([list(cross(a, m.column(j))) for j in range(3)]).T


# ---- turns -------------------------------------------------------------------------------------------------------------------


def tangent(q: Quaternion) -> Vector:
    """d₃, the third axis of an element."""
    x, y, z, w = q.entries()
    return Vector((x * z + y * w) * 2.0, (y * z - x * w) * 2.0, 1.0 - (x * x + y * y) * 2.0)


def turned_by(theta: Vector, q: Quaternion) -> Quaternion:
    """cay(θ) R: (θ/2, 1) q, of length 1."""
    return (Quaternion(theta * 0.5, 1.0) * q).normalized()


def carried(theta: Vector, x: Vector, k: Scalar) -> Vector:
    """cay(θ) x, k = 1/(1 + θ²/4)."""
    c = cross(theta, x)
    out: Vector = x + (c + cross(theta, c) * 0.5) * k
    return out


def end_spin(theta: Vector, phi: Vector) -> Vector:
    """The change of w (θ = ½Δt (ω₀ + w)) whose turn at the end is φ: (E − ½[θ]× + ¼ θ θᵀ) φ."""
    out: Vector = phi - cross(theta, phi) * 0.5 + theta * (dot(theta, phi) * 0.25)
    return out


def disc_momentum(i1: Scalar, d: Vector, w: Vector) -> Vector:
    """I ω of a thin disc across d: I₁ (ω + (d·ω) d)."""
    out: Vector = (w + d * dot(d, w)) * i1
    return out


# ---- an element --------------------------------------------------------------------------------------------------------------


class Element(NamedTuple):
    """What an element is in a step: I₁ of it, its turn, tangents and spans at start and end, and the impulse in it."""

    i1: Any
    theta: Vector
    d0: Vector
    d1: Vector
    s0: Any
    s1: Any
    f: Vector

    @property
    def lever(self) -> Vector:
        """b: the arm at which the impulse turns it."""
        out: Vector = (self.d0 * self.s0 + self.d1 * self.s1) * 0.5
        return out

    @property
    def axis(self) -> Vector:
        """d̄ − ¼θ × (d₁ − d₀): the impulse along it works where a slack element becomes longer."""
        return (self.d0 + self.d1) * 0.5 - cross(self.theta, self.d1 - self.d0) * 0.25

    def momentum(self, w: Vector) -> Vector:
        """L₁ = cay(θ) I w, w the spin at the end in the axes of the start."""
        return carried(self.theta, disc_momentum(self.i1, self.d0, w), 1.0 / (1.0 + dot(self.theta, self.theta) * 0.25))

    def slope(self, L1: Vector, end: Scalar) -> Matrix:
        """The derivative of L₁ + b × f by φ; `end` = ϑ Δt."""
        t = self.theta
        I = Matrix(IDENTITY.rows) + outer(self.d1, self.d1)
        T = Matrix(IDENTITY.rows) + scaled(skew(t), 0.5) + scaled(outer(t, t), 0.25)
        turned = scaled(I @ T, self.i1) - scaled(skew(L1), end)
        pulled = outer(self.d1, self.f) - scaled(IDENTITY, dot(self.d1, self.f))
        return turned + scaled(pulled, end * self.s1 * 0.5)


# ---- bend and twist (`bend`) -------------------------------------------------------------------------------------------------


class Bend(NamedTuple):
    """Of the turn p of an element against the one before it: E and C of the bend, z, T and k of the twist."""

    E: Any
    C: Any
    z: Any
    T: Any
    k: Any


def polynomial(coefficients: tuple[float, ...], t: Scalar) -> Scalar:
    """Σ c_n tⁿ."""
    out: Scalar = coefficients[-1]
    for c in reversed(coefficients[:-1]):
        out = out * t + c
    return out


def arc(t: Scalar) -> Scalar:
    """(asin(x)/x − 1)/x² of t = x², up to `NEAR`."""
    return polynomial(ARC_P, t) / polynomial(ARC_Q, t)


def near_bend(p: Quaternion, s2: Scalar, c: Scalar) -> Bend:
    """`Bend` of angles up to 60°."""
    r = 1.0 / c
    x = p.v.z * r
    more = arc(s2)
    return Bend(2.0 + s2 * more * 2.0, (r / (1.0 + c) - more) * 2.0, x * (1.0 + x * x * arc(x * x)) * 2.0, r * r * 2.0, 0.0)


def far_bend(p: Quaternion, s2: Scalar, c: Scalar) -> Bend:
    """`Bend` of any angle."""
    s = sqrt(s2)
    g, slope = bend_size(2.0 * atan2(s, c))
    some = s2 > 1e-30
    E = select(some, g / select(some, s, 1.0), 2.0)
    C = select(s2 > 1e-4, (2.0 * slope / maximum(c, FOLDED) - E) / select(s2 > 1e-4, s2, 1.0), 2.0 / 3.0)
    t = 2.0 * atan2(p.v.z, p.w)
    g, slope = bend_size(absolute(t))
    g = select(t < 0.0, -g, g)
    y = 2.0 * c
    plain = y >= 1.0
    return Bend(
        E,
        C,
        select(plain, g, y * y * (3.0 - 2.0 * y) * g),
        select(plain, 2.0 * slope / select(plain, c * c, 1.0), 8.0 * slope * (3.0 - 2.0 * y)),
        select(plain, 0.0, -24.0 * (1.0 - y) * g),
    )


def bend_size(x: Scalar) -> tuple[Scalar, Scalar]:
    """g(x) and its derivative, for an angle of 0 … π."""
    over = (x - LINEAR) * (1.0 / (HALF_TURN - LINEAR))
    far = x > LINEAR
    return select(far, x - over * (x - LINEAR) * 0.5, x), select(far, 1.0 - over, 1.0)


def by_turn(p: Quaternion, D: Vector, D_w: Scalar) -> Vector:
    """The derivative by a turn on the left of p of what changes by D·dp_v + D_w dp_w."""
    out: Vector = (D * p.w + cross(p.v, D) - p.v * D_w) * 0.5
    return out


def strain_of(p: Quaternion, b: Bend) -> Vector:
    """e: bend about the element's first two axes, and twist."""
    return Vector(b.E * p.v.x, b.E * p.v.y, b.z)


def gradient_of(p: Quaternion, b: Bend, EI: Scalar, GJ: Scalar) -> Vector:
    """The derivative of ½ e·Ke by a turn on the left of p."""
    x, y = p.v.x, p.v.y
    across = EI * b.E * (b.E + b.C * (x * x + y * y)) + GJ * b.z * b.k
    about = GJ * b.z * b.T
    return by_turn(p, Vector(x * across, y * across, about * p.w), -(about * p.v.z))


def strain_gradient(p: Quaternion, b: Bend, y: Vector) -> Vector:
    """Bᵀ y, B the derivative of e by a turn on the left of p."""
    both = b.C * (p.v.x * y.x + p.v.y * y.y) + b.k * y.z
    about = b.T * y.z
    return by_turn(p, Vector(b.E * y.x + p.v.x * both, b.E * y.y + p.v.y * both, about * p.w), -(about * p.v.z))


def gradient_slope(p: Quaternion, b: Bend, EI: Scalar, GJ: Scalar) -> Matrix:
    """The derivative of `gradient_of` by a turn on the left of p, of bends up to `LINEAR`; near it beyond."""
    x, y, z, w = p.entries()
    per = 1.0 / maximum(z * z + w * w, FOLDED)
    s2, bends = x * x + y * y, EI * b.E
    across = bends * (b.E + b.C * s2) + GJ * b.z * b.k
    steeper = EI * b.C * (b.E + b.C * s2) + bends * 2.0 * per * sqrt(per)  # dacross = this (x dx + y dy)
    about = GJ * b.z * b.T
    D, D_w = Vector(x * across, y * across, about * w), -(about * z)
    columns = []
    for k in range(3):
        turn = Vector(*(float(n == k) * 0.5 for n in range(3)))
        v, dw = turn * w + cross(turn, p.v), -dot(turn, p.v)
        d = x * v.x + y * v.y
        more, twisted = steeper * d, GJ * b.T * (b.T * (w * v.z - z * dw)) + about * b.T * d
        dD = Vector(v.x * across + x * more, v.y * across + y * more, about * dw + twisted * w)
        dD_w = -(about * v.z) - twisted * z
        columns.append((D * dw + dD * w + cross(v, D) + cross(p.v, dD) - v * D_w - p.v * dD_w) * 0.5)
    return Matrix([list(c) for c in columns]).T


def stiffness_of(R: Matrix, p: Quaternion, b: Bend, EI: Scalar, GJ: Scalar, straight: Scalar) -> Matrix:
    """R Bᵀ K B Rᵀ, B the derivative of e by a turn on the left of p; symmetric.

    Of a rope that is straight at rest (1), a turn about its own axis does not bend, which the curvature of e would tell.
    """
    x, y, z, w = p.entries()
    B_x = by_turn(p, Vector(b.E + b.C * x * x, b.C * x * y, 0.0), 0.0)
    B_y = by_turn(p, Vector(b.C * x * y, b.E + b.C * y * y, 0.0), 0.0)
    B_z = by_turn(p, Vector(b.k * x, b.k * y, b.T * w), -(b.T * z))
    t = tangent(p)
    B_x = B_x - t * (dot(t, B_x) * straight)
    B_y = B_y - t * (dot(t, B_y) * straight)
    x_, y_, z_ = R @ B_x, R @ B_y, R @ B_z
    return scaled(outer(x_, x_) + outer(y_, y_), EI) + scaled(outer(z_, z_), GJ)


class Turning(NamedTuple):
    """Of a step, at an interface between elements a and b: their turns, strains and slopes of the energy at start and end.

    V = ½ e·Ke/l̄ is the energy, g/l̄ its slope by a turn of b against a, in the axes of a; `late` is the time of damping over Δt,
    and ϑ − ½; `small` keeps what is exact finite where nothing turns.
    """

    a: Vector
    b: Vector
    e0: Vector
    e1: Vector
    g0: Vector
    g1: Vector
    EI: Any
    GJ: Any
    late: Any
    small: Any

    @property
    def change(self) -> Vector:
        """e₁ − e₀."""
        out: Vector = self.e1 - self.e0
        return out

    @property
    def grown(self) -> Scalar:
        """l̄ times what the energy grows by, and damping takes."""
        change = self.change
        x = (self.e0 + self.e1) * 0.5 + change * self.late
        out: Scalar = self.EI * (x.x * change.x + x.y * change.y) + self.GJ * x.z * change.z
        return out

    @property
    def against(self) -> Vector:
        """Δ = θ_b − θ_a."""
        out: Vector = self.b - self.a
        return out

    @property
    def size(self) -> Scalar:
        """1/(1 + ¼ θ_a·θ_b)."""
        return 1.0 / maximum(dot(self.a, self.b) * 0.25 + 1.0, 0.1)

    def back(self, R: Matrix) -> Vector:
        """The mean slope, world axes; R of a at the start."""
        out: Vector = R @ (self.g1 * (self.late + 0.5) + self.g0 * (0.5 - self.late))
        return out

    def moment(self, back: Vector) -> tuple[Vector, Scalar]:
        """−(`back` + ½ θ̂ × `back`) `size`, θ̂ the mean of both turns, and the part of Δ in it beyond what does the work."""
        M = (back + cross((self.a + self.b) * 0.25, back)) * -self.size
        D = self.against
        return M, (dot(M, D) + self.grown) / (dot(D, D) + self.small)


def mean_moment(R: Matrix, x: Turning) -> Vector:
    """l̄ times the mean moment on element b against a in a step, world axes; R of a at the start.

    Both turn by θ_a and θ_b, so that the one turns against the other, in a's old axes, by the Cayley vector
    R_aᵀ (E − ½[θ̂]×) Δ/(1 + ¼ θ_a·θ_b). V grows by K ē·(e₁ − e₀)/l̄, to which damping adds K late (e₁ − e₀)²/l̄. M·Δ = −(both) is
    met by the mean of the gradients at start and end but for a third order in Δ, and exactly by a correction along Δ.
    """
    M, more = x.moment(x.back(R))
    out: Vector = M - x.against * more
    return out


def moment_slopes(R: Matrix, R1: Matrix, x: Turning, p: Quaternion, b: Bend, flips: Scalar, end: Scalar) -> tuple[Matrix, Matrix]:
    """−∂/∂φ_b and ∂/∂φ_a of `mean_moment`: R1 of a at the end, p and b there; `flips` −1 where e₁ is that of b turned over."""
    D, k, back = x.against, x.size, x.back(R)
    M, more = x.moment(back)
    per = 1.0 / (dot(D, D) + x.small)
    turns = R @ scaled(gradient_slope(p, b, x.EI, x.GJ), (x.late + 0.5) * -k * end) @ R1.T
    turns = turns + cross_times((x.a + x.b) * 0.25, turns)
    stretched = x.e1 + x.change * (2.0 * x.late)
    work = R1 @ strain_gradient(p, b, Vector(x.EI * stretched.x, x.EI * stretched.y, x.GJ * stretched.z) * (flips * end))
    rest = M - D * (2.0 * more)
    out = []
    for own, other, sign in ((x.b, x.a, 1.0), (x.a, x.b, -1.0)):
        T = scaled(Matrix(IDENTITY.rows) - scaled(skew(own), 0.5) + scaled(outer(own, own), 0.25), end)
        by = scaled(cross_times(back, T) - outer(M, along_row(other, T)), 0.25 * k * sign) + turns
        row = along_row(D, by) + along_row(rest, T) + work
        out.append(scaled(by - scaled(T, more) - outer(D * per, row), -1.0))
    return out[0], out[1]


# ---- elimination -------------------------------------------------------------------------------------------------------------


class Hanging(NamedTuple):
    """What hangs on a point, or on the point before it through an element: f = A δv + B φ + a, M = C δv + D φ + b."""

    A: Matrix
    B: Matrix
    C: Matrix
    D: Matrix
    a: Vector
    b: Vector


def through_interface(x: Hanging, K: Matrix | None, J: Matrix | None, e: Vector) -> tuple[Hanging, Matrix, Vector]:
    """Eliminate φ of an element by its interface, K None where nothing bends: x in the φ of the element before; U and t.

    φ = U (e − b + J φ_before − C δv), U = (D + K)⁻¹.
    """
    if K is None or J is None:
        U = x.D.inverse()
        t = U @ -x.b
        return Hanging(x.A - x.B @ (U @ x.C), NO_MATRIX, NO_MATRIX, NO_MATRIX, x.a + x.B @ t, ZERO), U, t
    U = (x.D + K).inverse()
    t = U @ (e - x.b)
    UC, UJ = U @ x.C, U @ J
    out = Hanging(x.A - x.B @ UC, x.B @ UJ, K @ UC, J - K @ UJ, x.a + x.B @ t, e - K @ t)
    return out, U, t


def along_element(x: Hanging, tip: Vector, lever: Vector, own: Matrix, load: Vector) -> Hanging:
    """The same for the point before, and the φ of the element between: `tip` = s₁ d₁, `lever` = b."""
    B = x.B - times_cross(x.A, tip)
    C = x.C + cross_times(lever, x.A)
    D = x.D + own + cross_times(lever, B) - times_cross(x.C, tip)
    return Hanging(x.A, B, C, D, x.a, x.b + cross(lever, x.a) - load)


class Slide(NamedTuple):
    """σ = (ρ − axis·f)/α of a slack element: 1/α, what σ does to f and M, and what δv and φ do to axis·f."""

    give: Any
    f: Vector
    m: Vector
    v: Vector
    w: Vector


def slack_along(x: Hanging, d1: Vector, axis: Vector, rim: Scalar, push: Scalar) -> tuple[Hanging, Slide, Scalar]:
    """Eliminate σ of a slack element, `rim` the inertia of a drum there and `push` = ρ; and σ of what is missed."""
    s = Slide(0.0, x.A @ d1, x.C @ d1, along_row(axis, x.A), along_row(axis, x.B))
    s = s._replace(give=1.0 / (dot(axis, s.f) + rim))
    f, m = s.f * s.give, s.m * s.give
    sigma = (push - dot(axis, x.a)) * s.give
    out = Hanging(
        x.A - outer(f, s.v), x.B - outer(f, s.w), x.C - outer(m, s.v), x.D - outer(m, s.w), x.a + s.f * sigma, x.b + s.m * sigma
    )
    return out, s, sigma


class Held(NamedTuple):
    """Of a held last end, whose unknown impulse is μ: f and M are less by X μ and Y μ, its velocity is P δv + Q φ + G μ + g."""

    X: Matrix
    Y: Matrix
    P: Matrix
    Q: Matrix
    G: Matrix
    g: Vector


def hold_interface(h: Held, x: Hanging, K: Matrix | None, J: Matrix | None, U: Matrix, t: Vector) -> Held:
    """`through_interface` of a held end; x before it."""
    UY = U @ h.Y
    QU = h.Q @ U
    Y, Q = (NO_MATRIX, NO_MATRIX) if K is None or J is None else (K @ UY, QU @ J)
    return Held(h.X - x.B @ UY, Y, h.P - QU @ x.C, Q, h.G + QU @ h.Y, h.g + h.Q @ t)


def hold_slack(h: Held, s: Slide, d1: Vector, axis: Vector, sigma: Scalar) -> Held:
    """`slack_along` of a held end."""
    slides, moved = along_row(axis, h.X) * s.give, h.P @ d1
    return Held(
        h.X - outer(s.f, slides),
        h.Y - outer(s.m, slides),
        h.P - outer(moved, s.v * s.give),
        h.Q - outer(moved, s.w * s.give),
        h.G + outer(moved, slides),
        h.g + moved * sigma,
    )


def hold_element(h: Held, tip: Vector, lever: Vector) -> Held:
    """`along_element` of a held end."""
    return h._replace(Y=h.Y + cross_times(lever, h.X), Q=h.Q - times_cross(h.P, tip))
