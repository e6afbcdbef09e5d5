"""Passes that learn from the passes before: Anderson's mixing over the last few of them.

A pass takes velocities z to G(z); f = G − z is its change. Factors are symmetric (rows and columns alike), the equations not
quite, so that changes by themselves fall slowly where elements turn far or moments are large. The next z is

    G_k − Σ γ_i ΔG_i,   γ those for which |f_k − Σ γ_i Δf_i| is least,   Δf_i = f_{i+1} − f_i, ΔG_i likewise,

over all velocities and impulses, lengths |f| weighed by masses. Where passes are linear, that is what GMRES does with them.
"""

import warp as wp

from sharnir.core.types import real, vec3
from sharnir.engine.rope.data import MIXED, RopeStep

INDEPENDENT = wp.constant(real(1.0e-10))  # least part of a column's square that the columns before it leave, for it to be used
gram = wp.types.matrix(shape=(MIXED, MIXED), dtype=real)
sums = wp.types.vector(length=MIXED, dtype=real)


@wp.func
def note(x: wp.array2d(dtype=vec3), past: wp.array2d(dtype=vec3), column: int, w: int):
    """Keep the values of a pass, and in a column by how much they are off those of the one before."""
    n = x.shape[0]
    for i in range(n):
        if column >= 0:
            past[column * n + i, w] = x[i, w] - past[MIXED * n + i, w]
        past[MIXED * n + i, w] = x[i, w]


@wp.func
def note_change(
    x: wp.array2d(dtype=vec3), start: wp.array2d(dtype=vec3), past: wp.array2d(dtype=vec3), column: int, w: int
):  # fmt: skip
    """Keep the changes that a pass made, and in a column by how much they are off those of the one before."""
    n = x.shape[0]
    for i in range(n):
        f = x[i, w] - start[i, w]
        if column >= 0:
            past[column * n + i, w] = f - past[MIXED * n + i, w]
        past[MIXED * n + i, w] = f


@wp.func
def mix(x: wp.array2d(dtype=vec3), past: wp.array2d(dtype=vec3), columns: int, w: int, gamma: sums):
    """x ← x − Σ γ Δ."""
    n = x.shape[0]
    for i in range(n):
        v = x[i, w]
        for c in range(columns):
            v = v - past[c * n + i, w] * gamma[c]  # type: ignore[index]
        x[i, w] = v


@wp.func
def product(s: wp.array(dtype=RopeStep), a: int, b: int, w: int) -> real:
    """Inner product of two columns of changes: Σ m Δv·Δv + m l² Δω·Δω, bodies included."""
    out = real(0.0)
    n = s[0].work.v.shape[0]
    for i in range(n):
        m = s[0].work.mass[i, w]
        l = s[0].state.length[i, w]
        one = wp.dot(s[0].work.mix_fv[a * n + i, w], s[0].work.mix_fv[b * n + i, w])
        out = out + m * (one + l * l * wp.dot(s[0].work.mix_fw[a * n + i, w], s[0].work.mix_fw[b * n + i, w]))
    n = s[0].body.v.shape[0]
    for i in range(s[0].bodies.count):
        one = wp.dot(s[0].body.mix_fv[a * n + i, w], s[0].body.mix_fv[b * n + i, w]) * s[0].bodies.mass[i, w]
        two = wp.dot(s[0].body.mix_fw[a * n + i, w], s[0].body.mix_fw[b * n + i, w])
        out = out + one + two * wp.trace(s[0].bodies.inertia[i, w])
    return out


@wp.func
def least_squares(s: wp.array(dtype=RopeStep), columns: int, w: int) -> sums:
    """γ, by the normal equations; columns that others all but contain are left out."""
    M = gram()
    y = sums()
    for a in range(columns):
        y[a] = product(s, a, MIXED, w)
        for b in range(a + 1):
            M[a, b] = product(s, a, b, w)
    for j in range(columns):  # L Lᵀ in the lower half; 0 for a column that is left out
        x = M[j, j]
        whole = x
        for h in range(j):
            x = x - M[j, h] * M[j, h]
        d = real(0.0)
        if x > INDEPENDENT * whole:
            d = wp.sqrt(x)
        M[j, j] = d
        z = y[j]
        for h in range(j):
            z = z - M[j, h] * y[h]
        y[j] = real(0.0)
        if d > real(0.0):
            y[j] = z / d
        for i in range(j + 1, columns):
            z = M[i, j]
            for h in range(j):
                z = z - M[i, h] * M[j, h]
            M[i, j] = real(0.0)
            if d > real(0.0):
                M[i, j] = z / d
    for back in range(columns):
        j = columns - 1 - back
        z = y[j]
        for i in range(j + 1, columns):
            z = z - M[i, j] * y[i]
        y[j] = real(0.0)
        if M[j, j] > real(0.0):
            y[j] = z / M[j, j]
    return y


@wp.func
def note_pass(s: wp.array(dtype=RopeStep), since: int, w: int):
    """Keep what a pass did, the first since factors were made (0), the second (1), …"""
    column = since - 1
    if since > 0:
        column = (since - 1) % MIXED
    note_change(s[0].work.v, s[0].work.last_v, s[0].work.mix_fv, column, w)
    note_change(s[0].work.w, s[0].work.last_w, s[0].work.mix_fw, column, w)
    note_change(s[0].body.v, s[0].body.last_v, s[0].body.mix_fv, column, w)
    note_change(s[0].body.w, s[0].body.last_w, s[0].body.mix_fw, column, w)
    note(s[0].work.v, s[0].work.mix_v, column, w)
    note(s[0].work.w, s[0].work.mix_w, column, w)
    note(s[0].body.v, s[0].body.mix_v, column, w)
    note(s[0].body.w, s[0].body.mix_w, column, w)
    note(s[0].state.pull, s[0].work.mix_pull, column, w)
    note(s[0].state.moment, s[0].work.mix_moment, column, w)
    note(s[0].state.end_force, s[0].work.mix_end, column, w)
    note(s[0].state.tie_force, s[0].work.mix_tie, column, w)


@wp.func
def mix_passes(s: wp.array(dtype=RopeStep), since: int, w: int) -> sums:
    """From what the last passes did to where the next begins; returns γ."""
    columns = wp.min(since, MIXED)
    gamma = sums()
    if columns == 0:
        return gamma
    gamma = least_squares(s, columns, w)
    mix(s[0].work.v, s[0].work.mix_v, columns, w, gamma)
    mix(s[0].work.w, s[0].work.mix_w, columns, w, gamma)
    mix(s[0].body.v, s[0].body.mix_v, columns, w, gamma)
    mix(s[0].body.w, s[0].body.mix_w, columns, w, gamma)
    mix(s[0].state.pull, s[0].work.mix_pull, columns, w, gamma)
    mix(s[0].state.moment, s[0].work.mix_moment, columns, w, gamma)
    mix(s[0].state.end_force, s[0].work.mix_end, columns, w, gamma)
    mix(s[0].state.tie_force, s[0].work.mix_tie, columns, w, gamma)
    return gamma


@wp.func
def note_reals(x: wp.array2d(dtype=real), past: wp.array2d(dtype=real), since: int, w: int):
    """`note` of numbers beside the ropes."""
    n = x.shape[0]
    for i in range(n):
        if since > 0:
            past[((since - 1) % MIXED) * n + i, w] = x[i, w] - past[MIXED * n + i, w]
        past[MIXED * n + i, w] = x[i, w]


@wp.func
def mix_reals(x: wp.array2d(dtype=real), past: wp.array2d(dtype=real), since: int, w: int, gamma: sums):
    """`mix` of them."""
    n = x.shape[0]
    for i in range(n):
        v = x[i, w]
        for c in range(wp.min(since, MIXED)):
            v = v - past[c * n + i, w] * gamma[c]  # type: ignore[index]
        x[i, w] = v


@wp.func
def recall(x: wp.array2d(dtype=vec3), past: wp.array2d(dtype=vec3), w: int):
    """Values as they were noted last."""
    n = x.shape[0]
    for i in range(n):
        x[i, w] = past[MIXED * n + i, w]


@wp.func
def recall_pass(s: wp.array(dtype=RopeStep), w: int):
    """All velocities and impulses as they were noted last."""
    recall(s[0].work.v, s[0].work.mix_v, w)
    recall(s[0].work.w, s[0].work.mix_w, w)
    recall(s[0].body.v, s[0].body.mix_v, w)
    recall(s[0].body.w, s[0].body.mix_w, w)
    recall(s[0].state.pull, s[0].work.mix_pull, w)
    recall(s[0].state.moment, s[0].work.mix_moment, w)
    recall(s[0].state.end_force, s[0].work.mix_end, w)
    recall(s[0].state.tie_force, s[0].work.mix_tie, w)
