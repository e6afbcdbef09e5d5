"""Terms of the energy closing, pure functions: turns by Cayley's map, bend and twist by a discrete gradient (theory: ropes).

A step turns an element (or a body) by the vector θ = ½Δt (ω₀ + w), w the new spin of body axes seen in the old ones, R₀ W₁:
R₁ = cay(θ) R₀. Every vector fixed to it then moves by exactly θ × ½(start + end), so that rows written with such means do no work.
"""

import warp as wp

from sharnir.rope.terms import skew
from sharnir.spatial import log_quat, matrix
from sharnir.types import EPSILON, mat33, quat, real, vec3

FULL_TURN = wp.constant(real(6.283185307179586))
SMALL = wp.constant(real(EPSILON ** (2.0 / 3.0)))  # square of a relative turn below which its correction is rounding
NEWTON = wp.constant(20)
MET = wp.constant(real(8.0 * EPSILON))


@wp.func
def cayley(turn: vec3) -> quat:
    """The quaternion of cay(θ): (θ/2, 1)/√(1 + θ²/4)."""
    k = real(1.0) / wp.sqrt(real(1.0) + real(0.25) * wp.dot(turn, turn))
    half = turn * (real(0.5) * k)
    return quat(half[0], half[1], half[2], k)


@wp.func
def carried(turn: vec3, v: vec3) -> vec3:
    """cay(θ) v = v + (θ × v + ½ θ × (θ × v))/(1 + θ²/4)."""
    c = wp.cross(turn, v)
    return v + (c + real(0.5) * wp.cross(turn, c)) / (real(1.0) + real(0.25) * wp.dot(turn, turn))


@wp.func
def turn_between(a: quat, b: quat) -> vec3:
    """θ with b = cay(θ) a."""
    p = b * quat(-a[0], -a[1], -a[2], a[3])
    return vec3(p[0], p[1], p[2]) * (real(2.0) / p[3])


@wp.func
def momentum_slope(turn: vec3, inertia: mat33, w: vec3, dt: real) -> mat33:
    """The derivative of L₁ = cay(θ) I w by w: cay(θ) I − ½Δt [L₁]× (E + ½[θ]×)/(1 + θ²/4); I in world axes at the start."""
    E = wp.identity(n=3, dtype=real)
    S = skew(turn)
    k = real(1.0) / (real(1.0) + real(0.25) * wp.dot(turn, turn))
    C = E + (S + S * S * real(0.5)) * k
    L = C * (inertia * w)
    return C * inertia - skew(L) * (E + S * real(0.5)) * (real(0.5) * dt * k)


@wp.func
def free_spin(inertia: mat33, start: vec3, wanted: vec3, guess: vec3, dt: real) -> vec3:
    """w of a body by itself: cay(½Δt (ω₀ + w)) I w = L₁, by Newton's method."""
    w = guess
    scale = wp.length(wanted)
    for _i in range(NEWTON):
        turn = (start + w) * (real(0.5) * dt)
        off = carried(turn, inertia * w) - wanted
        if wp.length(off) <= MET * scale:
            break
        w = w - wp.inverse(momentum_slope(turn, inertia, w, dt)) * off
    return w


# ---- bend and twist ---------------------------------------------------------------------------------------------------------


@wp.func
def rotation_vector(p: quat, near: vec3) -> vec3:
    """The rotation vector of a quaternion: of those that differ by whole turns the one nearest to that of before."""
    phi = log_quat(p)
    size = wp.length(phi)
    if size > real(0.0):
        whole = wp.round((wp.dot(near, phi) / size - size) / FULL_TURN)
        if whole != real(0.0):
            return phi * (real(1.0) + whole * FULL_TURN / size)
    return phi


@wp.func
def slope_term(x2: real) -> real:
    """k(x) = (1 − (x/2) cot(x/2))/x², by its series where that is good to rounding."""
    out = real(1.0 / 12.0) + x2 * (real(1.0 / 720.0) + x2 * (real(1.0 / 30240.0) + x2 * real(1.0 / 1209600.0)))
    if x2 > real(0.04):
        x = wp.sqrt(x2)
        h = real(0.5) * x
        out = (real(1.0) - h * wp.cos(h) / wp.sin(h)) / x2
    return out


@wp.func
def pulled_back(phi: vec3, m: vec3) -> vec3:
    """J⁻ᵀ m, J⁻¹ = E − ½[φ]× + k [φ]×² the derivative of a rotation vector by a turn on its left."""
    c = wp.cross(phi, m)
    return m + c * real(0.5) + wp.cross(phi, c) * slope_term(wp.dot(phi, phi))


@wp.func
def bend_moment(
    a: quat, turn_a: vec3, turn_b: vec3, phi0: vec3, phi1: vec3, rest: vec3, EI: real, GJ: real, bar: real, late: real
) -> vec3:
    """Mean moment on element b against a in a step, world axes; a is turned as at the start.

    Both turn by θ_a and θ_b, so that the one turns against the other, in a's old axes, by the Cayley vector
    R_aᵀ (E − ½[θ̂]×) Δ/(1 + ¼ θ_a·θ_b), Δ = θ_b − θ_a, θ̂ their mean. With m = K (φ̄ − φ̂₀ + late (φ₁ − φ₀))/l̄ the energy grows by
    m·(φ₁ − φ₀), what damping takes (`late` = its time over Δt, and ϑ − ½) included; M·Δ = −m·(φ₁ − φ₀) is met by what the mean φ gives but
    for a third order in Δ, and exactly by a correction along Δ.
    """
    change = phi1 - phi0
    mean = (phi0 + phi1) * real(0.5)
    x = mean - rest + change * late
    m = vec3(EI * x[0], EI * x[1], GJ * x[2]) * bar
    back = wp.quat_rotate(a, pulled_back(mean, m))
    half = (turn_a + turn_b) * real(0.5)
    k = real(1.0) / wp.max(real(1.0) + real(0.25) * wp.dot(turn_a, turn_b), real(0.1))
    M = (back + wp.cross(half, back) * real(0.5)) * (-k)
    D = turn_b - turn_a
    return M - D * ((wp.dot(M, D) + wp.dot(m, change)) / (wp.dot(D, D) + SMALL))


@wp.func
def turning_stiffness(a: quat, phi: vec3, EI: real, GJ: real, bar: real) -> mat33:
    """The derivative of that moment by the turn of b against a, without the curvature of φ: R_a J⁻ᵀ K J⁻¹ R_aᵀ/l̄."""
    S = skew(phi)
    J = wp.identity(n=3, dtype=real) - S * real(0.5) + S * S * slope_term(wp.dot(phi, phi))
    B = J * wp.transpose(matrix(a))
    t = vec3(B[2, 0], B[2, 1], B[2, 2])
    return (wp.transpose(B) * B * EI + wp.outer(t, t) * (GJ - EI)) * bar
