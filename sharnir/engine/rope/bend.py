"""Bend and twist of one element against the next, pure functions (theory: ropes).

The turn from rest of an element against the one before it is a unit quaternion p. It is split into half its twist τ about the
rope, a bend by an angle β about an axis n across it, and the other half of the twist:

    p_w = cos ½β cos ½τ,   p_z = cos ½β sin ½τ,   (p_x, p_y) = sin ½β n

so that β is the angle between the tangents and τ the twist that is left when one tangent is carried over to the other along the
shortest way. The strain is e = (g(β) n, f(β) g(τ)), the energy ½ e·Ke/l̄ with K = diag(EI, EI, GJ). g is the angle itself up to
120° and its growth falls to nothing at 180°; f is 1 up to 120° and falls to nothing at 180°, where no shortest way exists. So
moments are in proportion where a rope is resolved, and energy and moment stay smooth where an element folds over the next.
"""

import math

import warp as wp

from sharnir.core.spatial import exp_quat, matrix
from sharnir.core.types import mat33, quat, real, vec3

HALF_TURN = wp.constant(real(math.pi))
LINEAR = wp.constant(real(2.0 * math.pi / 3.0))  # rad, up to where a moment is in proportion to the angle
STRAIGHT = wp.constant(real(0.02))  # sine of half a bend, below which series are used
FOLDED = wp.constant(real(1.0e-12))  # cosine of half a bend that counts as 0


@wp.func
def bend_size(x: real):
    """g(x) and its derivative, for an angle of 0 … π."""
    g = x
    slope = real(1.0)
    if x > LINEAR:
        over = (x - LINEAR) / (HALF_TURN - LINEAR)
        g = x - real(0.5) * over * (x - LINEAR)
        slope = real(1.0) - over
    return g, slope


@wp.func
def bend_terms(s2: real, c: real):
    """E = g/s and C of dE = C s ds, for a bend whose half has the sine s and the cosine c."""
    E = real(2.0) + s2 * (real(1.0 / 3.0) + s2 * (real(3.0 / 20.0) + s2 * real(5.0 / 56.0)))
    C = real(2.0 / 3.0) + s2 * (real(3.0 / 5.0) + s2 * (real(15.0 / 28.0) + s2 * real(35.0 / 72.0)))
    if s2 > STRAIGHT * STRAIGHT:
        s = wp.sqrt(s2)
        g, slope = bend_size(real(2.0) * wp.atan2(s, c))
        E = g / s
        C = (real(2.0) * slope / wp.max(c, FOLDED) - E) / s2
    return E, C


@wp.func
def twist_terms(p: quat, c: real):
    """f(β) g(τ), and T and k of its differential T (p_w dp_z − p_z dp_w) + k (p_x dp_x + p_y dp_y)."""
    t = real(2.0) * wp.atan2(p[2], p[3])
    g, slope = bend_size(wp.abs(t))
    if t < real(0.0):
        g = -g
    y = real(2.0) * c
    if y >= real(1.0):
        return g, real(2.0) * slope / (c * c), real(0.0)
    f = y * y * (real(3.0) - real(2.0) * y)
    return f * g, real(8.0) * slope * (real(3.0) - real(2.0) * y), real(-24.0) * (real(1.0) - y) * g


@wp.func
def from_rest(a: quat, b: quat, rest: vec3) -> quat:
    """The turn of element b against a, in a's axes, less that of the rope at rest (a rotation vector); p_w ≥ 0."""
    p = quat(-a[0], -a[1], -a[2], a[3]) * b * exp_quat(-rest)
    if p[3] < real(0.0):
        p = -p
    return p


@wp.func
def bend_vector(p: quat, near: vec3) -> vec3:
    """e of a turn from rest, rad: about the element's first two axes and along it. Of its two signs that nearest to another e."""
    c = wp.sqrt(p[2] * p[2] + p[3] * p[3])
    E, _C = bend_terms(p[0] * p[0] + p[1] * p[1], c)
    z, _T, _k = twist_terms(p, c)
    e = vec3(E * p[0], E * p[1], z)
    if wp.length_sq(e + near) < wp.length_sq(e - near):
        return -e
    return e


@wp.func
def by_turn(p: quat, D: vec3, D_w: real) -> vec3:
    """The derivative by a turn on the left of p of what changes by D·dp_v + D_w dp_w."""
    v = vec3(p[0], p[1], p[2])
    return (D * p[3] + wp.cross(v, D) - v * D_w) * real(0.5)


@wp.func
def bend_slopes(p: quat):
    """e, and the rows of its derivative B by a turn on the left of p."""
    x = p[0]
    y = p[1]
    c = wp.sqrt(p[2] * p[2] + p[3] * p[3])
    E, C = bend_terms(x * x + y * y, c)
    z, T, k = twist_terms(p, c)
    B_x = by_turn(p, vec3(E + C * x * x, C * x * y, real(0.0)), real(0.0))
    B_y = by_turn(p, vec3(C * x * y, E + C * y * y, real(0.0)), real(0.0))
    B_z = by_turn(p, vec3(k * x, k * y, T * p[3]), -T * p[2])
    return vec3(E * x, E * y, z), B_x, B_y, B_z


@wp.func
def bend_gradient(p: quat, EI: real, GJ: real) -> vec3:
    """The derivative of ½ e·Ke by a turn on the left of p: Bᵀ K e."""
    e, B_x, B_y, B_z = bend_slopes(p)
    return (B_x * e[0] + B_y * e[1]) * EI + B_z * (GJ * e[2])


@wp.func
def damped_moment(a: quat, p: quat, start: vec3, EI: real, GJ: real, least: real, new: real, late: real) -> vec3:
    """l̄ times the moment on element b, world axes: −R_a Bᵀ K (new e + late (e − e₀)), e₀ the strain at the start of the step.

    `least`: what changes of the twist in the step counts as if GJ were that, at least.
    """
    e, B_x, B_y, B_z = bend_slopes(p)
    sign = real(1.0)
    if wp.length_sq(e + start) < wp.length_sq(e - start):
        sign = real(-1.0)
    by = e - start * sign
    x = e * new + by * late
    m = GJ * x[2] + wp.max(least - GJ, real(0.0)) * by[2] * (new + late)
    return -wp.quat_rotate(a, (B_x * x[0] + B_y * x[1]) * EI + B_z * m)


@wp.func
def turning_stiffness(a: quat, p: quat, EI: real, GJ: real, bar: real, straight: bool) -> mat33:
    """The derivative of the moment by the turn of b against a, without the curvature of e: R_a Bᵀ K B R_aᵀ/l̄.

    Of a rope that is straight at rest, a turn of b about its own axis does not bend, which the curvature of e would tell.
    """
    _e, B_x, B_y, B_z = bend_slopes(p)
    if straight:
        t = wp.quat_rotate(p, vec3(real(0.0), real(0.0), real(1.0)))
        B_x = B_x - t * wp.dot(t, B_x)
        B_y = B_y - t * wp.dot(t, B_y)
    R = matrix(a)
    x = R * B_x
    y = R * B_y
    z = R * B_z
    return (wp.outer(x, x) + wp.outer(y, y)) * (EI * bar) + wp.outer(z, z) * (GJ * bar)
