"""Blocks of rows between two bodies: K, its inverse over the locked axes, and impulses on twists."""

import warp as wp

from sharnir.core.types import mat33, mat66, real, vec3

SINGULAR = wp.constant(real(1.0e-14))


@wp.struct
class Twists:
    """Velocities of all bodies, [body, world]: m/s of the centre of mass, rad/s; world axes."""

    linear: wp.array2d(dtype=vec3)
    angular: wp.array2d(dtype=vec3)


@wp.struct
class AxisRows:
    """Rows of the free axes, [axis, world], and responses, [joint, world]."""

    d: wp.array2d(dtype=vec3)  # B of the axis: speed = d·(relative velocity) + n·(relative spin)
    n: wp.array2d(dtype=vec3)
    force: wp.array2d(dtype=vec3)  # the constraint impulse −W K Bᵀ that comes with a unit impulse on it
    torque: wp.array2d(dtype=vec3)
    turn_parent: wp.array2d(dtype=vec3)  # the change of ω that both bring
    turn_child: wp.array2d(dtype=vec3)
    response: wp.array2d(dtype=mat66)  # A of the joint's axes


@wp.func
def body_response(r: vec3, inv_mass: real, inv_inertia: mat33) -> tuple[mat33, mat33, mat33]:
    """One body's part of K as its blocks (linear-linear, linear-angular, angular-angular)."""
    S = wp.skew(r)
    SJ = S * inv_inertia
    return wp.diag(vec3(inv_mass, inv_mass, inv_mass)) - SJ * S, -SJ, inv_inertia


@wp.func
def positive_inverse(K: mat33) -> mat33:
    """Inverse of a symmetric positive matrix by L D Lᵀ: right to its condition times the rounding, where cofactors lose the
    square of that (a long lever on a small inertia).
    """
    a = K[0, 0]
    l10 = K[1, 0] / a
    l20 = K[2, 0] / a
    b = K[1, 1] - l10 * K[1, 0]
    t = K[2, 1] - l20 * K[1, 0]
    l21 = t / b
    c = K[2, 2] - l20 * K[2, 0] - l21 * t
    m20 = l10 * l21 - l20
    p = real(1.0) / a
    q = real(1.0) / b
    r = real(1.0) / c
    x01 = -l10 * q - m20 * l21 * r
    x02 = m20 * r
    x12 = -l21 * r
    return mat33(
        p + l10 * l10 * q + m20 * m20 * r, x01, x02, x01, q + l21 * l21 * r, x12, x02, x12, r
    )  # fmt: skip


@wp.func
def masked_inverse(F: mat33, free: int, K: mat33) -> mat33:
    """Inverse of the symmetric K on those columns of the frame F whose bit in `free` is not set, zero on the others."""
    if free & 7 == 0:
        return positive_inverse(K)
    if free & 7 == 7:
        return mat33(real(0.0))
    A = wp.transpose(F) * K * F
    for i in range(3):
        if free & (1 << i) != 0:
            for j in range(3):
                A[i, j] = real(0.0)
                A[j, i] = real(0.0)
            A[i, i] = wp.max(wp.max(K[0, 0], K[1, 1]), K[2, 2])
    A = positive_inverse(A)
    for i in range(3):
        if free & (1 << i) != 0:
            A[i, i] = real(0.0)
    return F * A * wp.transpose(F)


@wp.func
def block_inverse(Fl: mat33, Fa: mat33, free: int, Kll: mat33, Kla: mat33, Kaa: mat33) -> tuple[mat33, mat33, mat33]:
    """W as its blocks (ll, la, aa), by the Schur complement of the translations; bits 0..5 of `free` are the free slots."""
    A = masked_inverse(Fl, free, Kll)
    if free >> 3 == 7:
        return A, mat33(real(0.0)), mat33(real(0.0))
    T = A * Kla
    D = masked_inverse(Fa, free >> 3, Kaa - wp.transpose(Kla) * T)
    B = -(T * D)
    return A - B * wp.transpose(T), B, D


@wp.func
def apply_impulse(
    twists: Twists, b: int, w: int, p: vec3, l: vec3, r: vec3, inv_mass: real, inv_inertia: mat33, sign: real
) -> None:
    """Change a body's velocity by the impulse sign·(p at r, l)."""
    twists.linear[b, w] = twists.linear[b, w] + p * (sign * inv_mass)
    twists.angular[b, w] = twists.angular[b, w] + inv_inertia * ((wp.cross(r, p) + l) * sign)
