"""Small dense systems, one a world: symmetric and positive by Cholesky's factor, or nearly so by L U without pivots.

Matrices are [row · n + column, world].
"""

import warp as wp

from sharnir.types import EPSILON, mat33, real, vec3

PIVOT_FLOOR = wp.constant(real(16.0 * EPSILON))  # least part of a diagonal entry that elimination leaves of it


@wp.func
def add_block(M: wp.array2d(dtype=real), n: int, row: int, column: int, w: int, block: mat33):
    """Add a 3 × 3 block."""
    for i in range(3):
        for j in range(3):
            at = (row + i) * n + column + j
            M[at, w] = M[at, w] + block[i, j]


@wp.func
def put(x: wp.array2d(dtype=real), at: int, w: int, v: vec3):
    """Add three entries of a right-hand side."""
    for i in range(3):
        x[at + i, w] = x[at + i, w] + v[i]


@wp.func
def take(x: wp.array2d(dtype=real), at: int, w: int) -> vec3:
    """Three entries of a solution."""
    return vec3(x[at, w], x[at + 1, w], x[at + 2, w])


@wp.func
def factorise(M: wp.array2d(dtype=real), n: int, w: int):
    """L of M = L Lᵀ, of which the lower half is read and written."""
    for j in range(n):
        for i in range(j, n):
            x = M[i * n + j, w]
            for h in range(j):
                x = x - M[i * n + h, w] * M[j * n + h, w]
            if i == j:
                M[i * n + j, w] = wp.sqrt(wp.max(x, PIVOT_FLOOR * M[i * n + j, w]))
            else:
                M[i * n + j, w] = x / M[j * n + j, w]


@wp.func
def substitute(M: wp.array2d(dtype=real), x: wp.array2d(dtype=real), n: int, w: int):
    """x ← (L Lᵀ)⁻¹ x."""
    for i in range(n):
        y = x[i, w]
        for h in range(i):
            y = y - M[i * n + h, w] * x[h, w]
        x[i, w] = y / M[i * n + i, w]
    for back in range(n):
        i = n - 1 - back
        y = x[i, w]
        for h in range(i + 1, n):
            y = y - M[h * n + i, w] * x[h, w]
        x[i, w] = y / M[i * n + i, w]


@wp.func
def mirror(M: wp.array2d(dtype=real), n: int, w: int):
    """Fill the upper half with the lower."""
    for i in range(n):
        for j in range(i):
            M[j * n + i, w] = M[i * n + j, w]


@wp.func
def factorise_any(M: wp.array2d(dtype=real), n: int, w: int):
    """L U of M in place, of a matrix whose pivots are positive though it is not quite symmetric."""
    for k in range(n):
        pivot = M[k * n + k, w]
        for i in range(k + 1, n):
            by = M[i * n + k, w] / pivot
            M[i * n + k, w] = by
            for j in range(k + 1, n):
                M[i * n + j, w] = M[i * n + j, w] - by * M[k * n + j, w]


@wp.func
def substitute_any(M: wp.array2d(dtype=real), x: wp.array2d(dtype=real), n: int, w: int):
    """x ← (L U)⁻¹ x."""
    for i in range(n):
        y = x[i, w]
        for h in range(i):
            y = y - M[i * n + h, w] * x[h, w]
        x[i, w] = y
    for back in range(n):
        i = n - 1 - back
        y = x[i, w]
        for h in range(i + 1, n):
            y = y - M[i * n + h, w] * x[h, w]
        x[i, w] = y / M[i * n + i, w]
