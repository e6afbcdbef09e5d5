"""Terms of the step of ropes, pure functions: turns by Cayley's map, bend and twist by a discrete gradient (theory: ropes).

A step turns an element (or a body) by the vector θ = ½Δt (ω₀ + w), w = R₀ W₁ the new spin of body axes seen in the old ones:
R₁ = cay(θ) R₀. Every vector fixed to it then moves by exactly θ × ½(start + end), so that rows written with such means do no
work.
"""

import warp as wp

from sharnir.rope.bend import bend_gradient
from sharnir.rope.terms import skew
from sharnir.types import EPSILON, mat33, quat, real, vec3

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
def bend_moment(
    a: quat, turn_a: vec3, turn_b: vec3, g0: vec3, p1: quat, e0: vec3, e1: vec3, EI: real, GJ: real, bar: real, late: real
) -> vec3:
    """Mean moment on element b against a in a step, world axes; a is turned as at the start, V = ½ e·Ke/l̄, l̄ g₀ its slope.

    Both turn by θ_a and θ_b, so that the one turns against the other, in a's old axes, by the Cayley vector
    R_aᵀ (E − ½[θ̂]×) Δ/(1 + ¼ θ_a·θ_b), Δ = θ_b − θ_a, θ̂ their mean. V grows by K ē·(e₁ − e₀)/l̄, to which damping adds
    K late (e₁ − e₀)²/l̄ (`late` = its time over Δt, and ϑ − ½). M·Δ = −(both) is met by the mean of the gradients at start and end
    but for a third order in Δ, and exactly by a correction along Δ.
    """
    change = e1 - e0
    x = (e0 + e1) * real(0.5) + change * late
    grown = (EI * (x[0] * change[0] + x[1] * change[1]) + GJ * x[2] * change[2]) * bar
    slope = (bend_gradient(p1, EI, GJ) * (real(0.5) + late) + g0 * (real(0.5) - late)) * bar
    back = wp.quat_rotate(a, slope)
    half = (turn_a + turn_b) * real(0.5)
    k = real(1.0) / wp.max(real(1.0) + real(0.25) * wp.dot(turn_a, turn_b), real(0.1))
    M = (back + wp.cross(half, back) * real(0.5)) * (-k)
    D = turn_b - turn_a
    return M - D * ((wp.dot(M, D) + grown) / (wp.dot(D, D) + SMALL))
