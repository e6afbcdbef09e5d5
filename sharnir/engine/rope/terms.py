"""The terms of a rope's equations, one pure function each (theory: ropes)."""

import warp as wp

from sharnir.core.spatial import exp_quat, unit
from sharnir.core.types import mat33, quat, real, vec3


@wp.func
def tangent(q: quat) -> vec3:
    """d₃, the third axis of an element."""
    two = real(2.0)
    return vec3(
        two * (q[0] * q[2] + q[1] * q[3]), two * (q[1] * q[2] - q[0] * q[3]), real(1.0) - two * (q[0] * q[0] + q[1] * q[1])
    )


@wp.func
def skew(v: vec3) -> mat33:
    """[v]×."""
    o = real(0.0)
    return mat33(o, -v[2], v[1], v[2], o, -v[0], -v[1], v[0], o)


@wp.func
def times_skew(M: mat33, v: vec3) -> mat33:
    """M [v]×: the rows of M, each crossed with v."""
    return mat33(
        M[0, 1] * v[2] - M[0, 2] * v[1], M[0, 2] * v[0] - M[0, 0] * v[2], M[0, 0] * v[1] - M[0, 1] * v[0],
        M[1, 1] * v[2] - M[1, 2] * v[1], M[1, 2] * v[0] - M[1, 0] * v[2], M[1, 0] * v[1] - M[1, 1] * v[0],
        M[2, 1] * v[2] - M[2, 2] * v[1], M[2, 2] * v[0] - M[2, 0] * v[2], M[2, 0] * v[1] - M[2, 1] * v[0],
    )  # fmt: skip


@wp.func
def inverse(M: mat33) -> mat33:
    """The inverse of a symmetric matrix, of which the upper half is read; symmetric to the bit."""
    a = M[1, 1] * M[2, 2] - M[1, 2] * M[1, 2]
    b = M[0, 2] * M[1, 2] - M[0, 1] * M[2, 2]
    c = M[0, 1] * M[1, 2] - M[0, 2] * M[1, 1]
    e = M[0, 0] * M[2, 2] - M[0, 2] * M[0, 2]
    f = M[0, 1] * M[0, 2] - M[0, 0] * M[1, 2]
    h = M[0, 0] * M[1, 1] - M[0, 1] * M[0, 1]
    k = real(1.0) / (M[0, 0] * a + M[0, 1] * b + M[0, 2] * c)
    return mat33(a * k, b * k, c * k, b * k, e * k, f * k, c * k, f * k, h * k)


@wp.func
def relative(a: quat, b: quat) -> quat:
    """p = ā b, the turn from element a to element b in a's axes, of two signs the one with p_w ≥ 0."""
    p = quat(-a[0], -a[1], -a[2], a[3]) * b
    if p[3] < real(0.0):
        p = -p
    return p


@wp.func
def darboux(p: quat, bar: real) -> vec3:
    """u = (2/l̄) p_v: bending about d₁, d₂ and twist about d₃, 1/m [rope (12)]."""
    return vec3(p[0], p[1], p[2]) * (real(2.0) * bar)


@wp.func
def moment_on(a: quat, p: quat, m: vec3) -> vec3:
    """Moment on element b from the energy ½ l̄ Σ K (u − û)²: −R_a (p_w E + [p_v]×) m, m = K (u − û) [rope (14)]."""
    return -wp.quat_rotate(a, m * p[3] + wp.cross(vec3(p[0], p[1], p[2]), m))


@wp.func
def element_inertia(i1: real, extra: real, d: vec3) -> mat33:
    """I₁ (E + d dᵀ) + extra (E − d dᵀ): a disc (I₃ = 2 I₁), stiffened across its axis by the tension."""
    return wp.identity(n=3, dtype=real) * (i1 + extra) + wp.outer(d, d) * (i1 - extra)


@wp.func
def turned_element(q: quat, d: vec3, w: vec3, dt: real) -> quat:
    """An element after a step: a free disc turns about L/I₁ = ω + (d·ω) d and spins back about its own axis by d·ω."""
    spin = wp.dot(d, w)
    out = exp_quat((w + d * spin) * dt) * q
    if spin != real(0.0):
        out = out * exp_quat(vec3(real(0.0), real(0.0), -spin * dt))
    return unit(out)


@wp.func
def kept_momentum(d: vec3, new_d: vec3, w: vec3) -> vec3:
    """ω of a disc that has turned from d to new_d with its angular momentum kept in the world."""
    x = w + d * wp.dot(d, w)
    return x - new_d * (real(0.5) * wp.dot(new_d, x))


@wp.func
def air_resistance(c: real, air: real, v: vec3, d: vec3) -> real:
    """Resistance per metre, N·s/m²: viscous c, and ½ρ C_d 2r times the speed across the rope."""
    across = v - d * wp.dot(v, d)
    return c + air * wp.length(across)


@wp.func
def seen_from(A: mat33, B: mat33, C: mat33, D: mat33, mean: vec3, end: vec3):
    """B, C and D of [A B; C D] at a point, seen from another one: the point moves at the arm `end`, impulses turn at `mean`."""
    B1 = B - times_skew(A, end)
    S = skew(mean)
    return B1, C + S * A, D - times_skew(C, end) + S * B1
