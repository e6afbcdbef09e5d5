"""Small symmetric matrices and the blocks [A B; Bᵀ D] of a spatial inertia, shifted and reduced."""

import warp as wp

from sharnir.core.types import mat33, mat66, real, vec3

# ---- inwards: articulated inertia and force -----------------------------------------------------------------------------


@wp.func
def small_inverse(U: mat66, n: int) -> mat66:
    """Inverse of the leading n × n part of a positive matrix, by Gauss–Jordan."""
    V = mat66()
    for i in range(n):
        V[i, i] = real(1.0)
    for i in range(n):
        pivot = real(1.0) / U[i, i]
        for j in range(n):
            U[i, j] = U[i, j] * pivot
            V[i, j] = V[i, j] * pivot
        for h in range(n):
            if h != i:
                factor = U[h, i]
                for j in range(n):
                    U[h, j] = U[h, j] - factor * U[i, j]
                    V[h, j] = V[h, j] - factor * V[i, j]
    return V


@wp.func
def times(A: mat33, v: vec3) -> vec3:
    """A v of a symmetric A; here and below the upper half alone is read, so nothing is computed twice."""
    x = vec3(A[0, 0], A[0, 1], A[0, 2])
    y = vec3(A[0, 1], A[1, 1], A[1, 2])
    z = vec3(A[0, 2], A[1, 2], A[2, 2])
    return vec3(wp.dot(x, v), wp.dot(y, v), wp.dot(z, v))


@wp.func
def symmetric(xx: real, xy: real, xz: real, yy: real, yz: real, zz: real) -> mat33:
    return mat33(xx, xy, xz, xy, yy, yz, xz, yz, zz)


@wp.func
def less(A: mat33, h: vec3, y: vec3) -> mat33:
    """A − h yᵀ, both symmetric."""
    return symmetric(
        A[0, 0] - h[0] * y[0], A[0, 1] - h[0] * y[1], A[0, 2] - h[0] * y[2],
        A[1, 1] - h[1] * y[1], A[1, 2] - h[1] * y[2], A[2, 2] - h[2] * y[2],
    )  # fmt: skip


@wp.func
def crossed(a0: vec3, a1: vec3, a2: vec3, r: vec3) -> mat33:
    """A [r]× by the rows of A."""
    b0 = wp.cross(a0, r)
    b1 = wp.cross(a1, r)
    b2 = wp.cross(a2, r)
    return mat33(b0[0], b0[1], b0[2], b1[0], b1[1], b1[2], b2[0], b2[1], b2[2])


@wp.func
def shifted(A: mat33, B: mat33, D: mat33, r: vec3) -> tuple[mat33, mat33]:
    """B and D of Cᵀ M C for the shift by r, C = [E −[r]; 0 E]: B − A[r] and D − X − Xᵀ, X = (B − ½ A[r])ᵀ [r]."""
    ar = crossed(
        vec3(A[0, 0], A[0, 1], A[0, 2]), vec3(A[0, 1], A[1, 1], A[1, 2]), vec3(A[0, 2], A[1, 2], A[2, 2]), r
    )  # fmt: skip
    half = B - ar * real(0.5)
    X = crossed(
        vec3(half[0, 0], half[1, 0], half[2, 0]), vec3(half[0, 1], half[1, 1], half[2, 1]),
        vec3(half[0, 2], half[1, 2], half[2, 2]), r,
    )  # fmt: skip
    D = symmetric(
        D[0, 0] - (X[0, 0] + X[0, 0]), D[0, 1] - (X[0, 1] + X[1, 0]), D[0, 2] - (X[0, 2] + X[2, 0]),
        D[1, 1] - (X[1, 1] + X[1, 1]), D[1, 2] - (X[1, 2] + X[2, 1]), D[2, 2] - (X[2, 2] + X[2, 2]),
    )  # fmt: skip
    return B - ar, D
