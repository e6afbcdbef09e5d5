"""Turns of a step by Cayley's map, pure functions (theory: ropes).

A step turns an element (or a body) by the vector θ = ½Δt (ω₀ + w), w = R₀ W₁ the new spin of body axes seen in the old ones:
R₁ = cay(θ) R₀. Every vector fixed to it then moves by exactly θ × ½(start + end), so that rows written with such means do no
work.
"""

import warp as wp

from sharnir.core.types import EPSILON, mat33, quat, real, vec3
from sharnir.engine.rope.terms import skew

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
