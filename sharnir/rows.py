"""A block of rows between two bodies and its solve, shared by every kind of row.

An impulse P = (p, l) acts on the child at the common point and with the opposite sign on the parent; r is that point from
the body's centre of mass. The relative velocity there, u = V_child − V_parent, changes by K P,

    K = Σ over both bodies  [ E/m − [r]I⁻¹[r]   −[r]I⁻¹ ]
                            [ I⁻¹[r]              I⁻¹   ]

and W, the inverse of K on the constrained axes and zero on the free ones, gives the impulse that stops u there: P = −W u.
"""

import warp as wp

from sharnir.types import mat33, real, vec3


@wp.struct
class Twists:
    """Velocities of all bodies, [body, world]: m/s of the centre of mass, rad/s; world axes."""

    linear: wp.array2d(dtype=vec3)
    angular: wp.array2d(dtype=vec3)


@wp.func
def body_response(r: vec3, inv_mass: real, inv_inertia: mat33):
    """One body's part of K as its blocks (linear-linear, linear-angular, angular-angular)."""
    S = wp.skew(r)
    SJ = S * inv_inertia
    return wp.diag(vec3(inv_mass, inv_mass, inv_mass)) - SJ * S, -SJ, inv_inertia


@wp.func
def masked_inverse(F: mat33, free: int, K: mat33) -> mat33:
    """Inverse of the symmetric K on those columns of the frame F whose bit in `free` is not set, zero on the others."""
    if free & 7 == 0:
        return wp.inverse(K)
    if free & 7 == 7:
        return mat33(real(0.0))
    A = wp.transpose(F) * K * F
    for i in range(3):
        if free & (1 << i) != 0:
            for j in range(3):
                A[i, j] = real(0.0)
                A[j, i] = real(0.0)
            A[i, i] = real(1.0)
    A = wp.inverse(A)
    for i in range(3):
        if free & (1 << i) != 0:
            A[i, i] = real(0.0)
    return F * A * wp.transpose(F)


@wp.func
def block_inverse(Fl: mat33, Fa: mat33, free: int, Kll: mat33, Kla: mat33, Kaa: mat33):
    """W as its blocks (ll, la, aa), by the Schur complement of the translations; bits 0..5 of `free` are the free slots."""
    A = masked_inverse(Fl, free, Kll)
    if free >> 3 == 7:
        return A, mat33(real(0.0)), mat33(real(0.0))
    T = A * Kla
    D = masked_inverse(Fa, free >> 3, Kaa - wp.transpose(Kla) * T)
    B = -(T * D)
    return A - B * wp.transpose(T), B, D


@wp.func
def apply_impulse(twists: Twists, b: int, w: int, p: vec3, l: vec3, r: vec3, inv_mass: real, inv_inertia: mat33, sign: real):
    """Change a body's velocity by the impulse sign·(p at r, l)."""
    twists.linear[b, w] = twists.linear[b, w] + p * (sign * inv_mass)
    twists.angular[b, w] = twists.angular[b, w] + inv_inertia * ((wp.cross(r, p) + l) * sign)
