"""Small systems around an elimination, one a world: L U without pivots, within the envelope of the matrix.

    M x = b,      M[i, j] = 0 for j < first[i] and, its pattern being symmetric, for i < first[j]: so are L and U

Row i then ends at column last[i], the last one with first[j] ≤ i. The matrices are positive though not quite symmetric (means at
both ends of a step, which may even turn a pivot's sign): no larger pivots are looked for. Matrices are [row, column, world],
right-hand sides [row, world].
"""

from collections.abc import Sequence

import numpy as np
import warp as wp

from sharnir.core.types import EPSILON, mat33, real, vec3

PIVOT_FLOOR = wp.constant(real(16.0 * EPSILON))  # least part of a diagonal entry that elimination leaves of it


def close_order(near: Sequence[set[int]]) -> list[int]:
    """Numbers 0 … n − 1 so that those near each other stand close together (Cuthill, McKee 1969); near[i] are those near i."""
    order: list[int] = []
    seen: set[int] = set()
    for start in sorted(range(len(near)), key=lambda i: len(near[i])):
        front = [] if start in seen else [start]
        seen.update(front)
        while front:
            i = front.pop(0)
            order.append(i)
            more = sorted((j for j in sorted(near[i]) if j not in seen), key=lambda j: len(near[j]))
            seen.update(more)
            front += more
    return order


def row_ends(first: Sequence[int]) -> np.ndarray:
    """Last column of each row, from the first ones."""
    last = np.arange(len(first), dtype=np.int32)
    for j, at in enumerate(first):
        last[at : j + 1] = np.maximum(last[at : j + 1], j)
    return last


@wp.func
def factorise(M: wp.array3d(dtype=real), first: wp.array(dtype=wp.int32), last: wp.array(dtype=wp.int32), n: int, w: int) -> None:
    """L U of the leading n rows of M in place; on the diagonal 1 / U."""
    for i in range(n):
        least = PIVOT_FLOOR * wp.abs(M[i, i, w])
        for p in range(first[i], i):
            by = M[i, p, w] * M[p, p, w]
            M[i, p, w] = by
            for j in range(p + 1, wp.min(last[p] + 1, n)):
                M[i, j, w] = M[i, j, w] - by * M[p, j, w]
        pivot = M[i, i, w]
        if wp.abs(pivot) < least:
            pivot = least
        M[i, i, w] = real(1.0) / pivot


@wp.func
def substitute(
    M: wp.array3d(dtype=real), first: wp.array(dtype=wp.int32), last: wp.array(dtype=wp.int32), x: wp.array2d(dtype=real), n: int,
    w: int,
) -> None:  # fmt: skip
    """x ← (L U)⁻¹ x."""
    for i in range(n):
        y = x[i, w]
        for h in range(first[i], i):
            y = y - M[i, h, w] * x[h, w]
        x[i, w] = y
    for back in range(n):
        i = n - 1 - back
        y = x[i, w]
        for h in range(i + 1, wp.min(last[i] + 1, n)):
            y = y - M[i, h, w] * x[h, w]
        x[i, w] = y * M[i, i, w]


@wp.func
def clear(M: wp.array3d(dtype=real), first: wp.array(dtype=wp.int32), last: wp.array(dtype=wp.int32), n: int, w: int) -> None:
    """M = 0, within its envelope."""
    for i in range(n):
        for j in range(first[i], last[i] + 1):
            M[i, j, w] = real(0.0)


@wp.func
def add_block(M: wp.array3d(dtype=real), row: int, column: int, w: int, block: mat33) -> None:
    """Add a 3 × 3 block."""
    for i in range(3):
        for j in range(3):
            M[row + i, column + j, w] = M[row + i, column + j, w] + block[i, j]


@wp.func
def put(x: wp.array2d(dtype=real), at: int, w: int, v: vec3) -> None:
    """Add three entries of a right-hand side."""
    for i in range(3):
        x[at + i, w] = x[at + i, w] + v[i]


@wp.func
def take(x: wp.array2d(dtype=real), at: int, w: int) -> vec3:
    """Three entries of a solution."""
    return vec3(x[at, w], x[at + 1, w], x[at + 2, w])
