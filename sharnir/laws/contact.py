"""The law of one point of contact: it pushes, and rubs inside a disc (theory: contact).

    Signorini   0 ≤ u_n + bias + c p_n  ⟂  p_n ≥ 0       bias = max(χ − slop, 0)/Δt: no gap closes before the end of a step
    Coulomb     |D⁻¹p_t| ≤ p_n,  p_t = −p_n D²u_t/|D u_t| where it slides        D = diag(μ₁, μ₂), a disc where both are the same
    soft        c = 1/(kΔt² + dΔt), bias = kχ/(kΔt + d): the implicit spring and damper, where a user asks for them

u = (u_n, u_1, u_2) and p are along n, t₁, t₂; K = (nn, n1, n2, 11, 12, 22) is the response of the two bodies at the point. The
tangential part is solved for p' = D⁻¹p, u' = D u, so that an ellipse is a disc of radius p_n.
"""

import warp as wp

from sharnir.core.types import real, vec2, vec3, vec4, vec6

SLOP = wp.constant(real(1.0e-5))  # m: surfaces that are as near touch, an overlap that is as small is left alone
FRICTIONLESS = wp.constant(real(1.0e-9))  # coefficients of friction below it are none


@wp.func
def across(n: vec3) -> vec3:
    """A unit vector across a unit vector, the same for the same vector."""
    if wp.abs(n[0]) < real(0.6):
        return wp.normalize(wp.cross(n, vec3(real(1.0), real(0.0), real(0.0))))
    return wp.normalize(wp.cross(n, vec3(real(0.0), real(1.0), real(0.0))))


@wp.func
def tangent_inverse(K: vec6, mu: vec2) -> vec4:
    """Of D K_tt D: its inverse (11, 12, 22), and one over its largest eigenvalue; zero where there is no friction."""
    if mu[0] < FRICTIONLESS or mu[1] < FRICTIONLESS:
        return vec4(real(0.0))
    a = K[3] * mu[0] * mu[0]
    b = K[4] * mu[0] * mu[1]
    c = K[5] * mu[1] * mu[1]
    det = a * c - b * b
    top = real(0.5) * (a + c) + wp.sqrt(real(0.25) * (a - c) * (a - c) + b * b)
    if det <= real(1.0e-14) * top * top:
        return vec4(real(1.0) / top, real(0.0), real(1.0) / top, real(1.0) / top)
    return vec4(c / det, -b / det, a / det, real(1.0) / top)


@wp.func
def rub(p1: real, p2: real, u1: real, u2: real, G: vec4, bound: real) -> tuple[real, real]:
    """The tangential impulse (scaled) that meets the speed u: it holds if the bound allows, else it is opposite to the slip."""
    a = p1 - G[0] * u1 - G[1] * u2
    b = p2 - G[1] * u1 - G[2] * u2
    if a * a + b * b > bound * bound:
        a = p1 - G[3] * u1
        b = p2 - G[3] * u2
        size = a * a + b * b
        if size > bound * bound:
            k = bound / wp.sqrt(size)
            a = a * k
            b = b * k
    return a, b


@wp.func
def meet_scaled(p: vec3, u: vec3, K: vec6, G: vec4, mu: vec2, bias: real, soft: real, inverse: real) -> vec3:
    """The impulse of a point after one visit: normal first, then the tangential pair on the disc that the new normal allows.

    p is (p_n, D⁻¹p_t), `inverse` 1/(K_nn + soft).
    """
    pn = wp.max(real(0.0), p[0] - (u[0] + bias + soft * p[0]) * inverse)
    if G[3] == real(0.0):
        return vec3(pn, real(0.0), real(0.0))
    d = pn - p[0]
    a, b = rub(p[1], p[2], mu[0] * (u[1] + K[1] * d), mu[1] * (u[2] + K[2] * d), G, pn)
    return vec3(pn, a, b)


@wp.func
def meet_point(p: vec3, u: vec3, K: vec6, G: vec4, mu: vec2, bias: real, soft: real) -> vec3:
    """`meet_scaled` for an impulse as it is."""
    scaled = vec3(p[0], real(0.0), real(0.0))
    if G[3] != real(0.0):
        scaled = vec3(p[0], p[1] / mu[0], p[2] / mu[1])
    new = meet_scaled(scaled, u, K, G, mu, bias, soft, real(1.0) / (K[0] + soft))
    return vec3(new[0], new[1] * mu[0], new[2] * mu[1])


@wp.func
def softness(k: real, d: real, h: real) -> real:
    """c of a soft point; 0 where it is hard (k = 0)."""
    if k <= real(0.0):
        return real(0.0)
    return real(1.0) / (k * h * h + d * h)


@wp.func
def tread(k: real, fade: real, last: real, h: real, kick: real) -> tuple[real, real]:
    """A tyre's tread along one axis: σė + |v|e = σu, force −k e, implicit; `fade` |v|/σ, `last` the impulse of the last step.

    e = (e₀ + Δt u)/(1 + Δt |v|/σ), p = −k e Δt: so u + c p + e₀/Δt = 0, and e₀ is what the last force tells, on its ellipse or
    inside. Returns c and e₀/Δt. `last` and p are impulses over `kick`, the time for which forces act in the step.
    """
    yields = (real(1.0) + h * fade) / (k * kick * h)
    return yields, -last / (k * kick * h)


@wp.func
def is_spent(p: vec3, mu: vec2) -> bool:
    """Whether friction is all that the normal impulse allows."""
    a = p[1] * mu[1]
    b = p[2] * mu[0]
    c = real(0.999) * p[0] * mu[0] * mu[1]
    return a * a + b * b > c * c


@wp.func
def approach(gap: real, k: real, d: real, h: real) -> real:
    """The bias of a point, m/s: a hard one may come as near as its gap in the step, a soft one is pushed by its spring."""
    if k <= real(0.0):
        return wp.max(gap - SLOP, real(0.0)) / h
    return k * gap / (k * h + d)
