"""What couples ropes beyond the elimination along them, in the same solve (theory: ropes that touch).

Unknowns of a pass besides those of the elimination are V̂, the changes of the twists of bodies that yield, and δ, the changes of
the impulses of points between two elements of ropes, and between a rope and a body that holds one. A pass is linear in them: the
elimination is gone through once more for each component, which tells by how much it changes the velocity u at every point of
contact, and the rows

    V̂ = − Ω Σ Jᵀ (P⁺ − P),     P⁺ = Π(q) − A (du − J V̂)              δ = Π(q) − P − A (du + W δ),

du what the elimination gives without them, are solved at the end. W, the mobility of pairs of elements, is kept while factors
are.
"""

import warp as wp

from sharnir.collision.data import Collision
from sharnir.core.types import real, vec3
from sharnir.engine.rope.data import RopeStep
from sharnir.engine.rope.ends import clear_ties
from sharnir.engine.rope.passes import bring_ropes, move_all
from sharnir.engine.rope.touch_bodies import carried_surface, give, is_coupled, list_bodies, make_groups
from sharnir.engine.rope.touch_data import MOST, OPEN, RopeTouch
from sharnir.engine.rope.touch_find import rope_of
from sharnir.engine.rope.touch_pairs import between, spread

NO_COLUMN = wp.constant(-1)
NO_ROOM = wp.constant(-2)


@wp.func
def solve_ropes(s: wp.array(dtype=RopeStep), t: wp.array(dtype=RopeTouch), c: wp.array(dtype=Collision), w: int):
    """Changes of velocities in a pass, from what it began from, for surfaces that go on by V̂ and impulses that change by δ."""
    for b in range(s[0].bodies.count):
        s[0].body.p_l[b, w] = vec3()
        s[0].body.p_a[b, w] = vec3()
    for end in range(s[0].state.end_force.shape[0]):
        s[0].state.end_force[end, w] = t[0].end[end, w]
    for k in range(s[0].ropes.count):
        clear_ties(s, k, w, False)
        first = s[0].ropes.first[k]
        for i in range(first, first + s[0].state.segments[k, w] + 1):
            s[0].work.v[i, w] = s[0].work.last_v[i, w]
            s[0].work.w[i, w] = s[0].work.last_w[i, w]
            s[0].state.pull[i, w] = t[0].pull[i, w]
            s[0].state.moment[i, w] = t[0].moment[i, w]
    for m in range(t[0].live[w]):
        e = t[0].entry[m, w]
        P = t[0].given[e, w]
        if e >= t[0].base:
            spread(s[0].work.tie_p, t, e - t[0].base, -P, w)
        else:
            i = e / MOST
            b = c[0].shapes.body[t[0].shape[e, w]]
            if is_coupled(s, t, c, e, w):
                s[0].body.p_l[b, w] = s[0].body.p_l[b, w] + P
                s[0].body.p_a[b, w] = s[0].body.p_a[b, w] + wp.cross(t[0].arm[e, w], P)
            else:
                P = t[0].wanted[e, w] - t[0].impulse[e, w]
                if t[0].place[b, w] >= 0:
                    P = P + t[0].A[e, w] * carried_surface(t, b, e, w)
            s[0].work.tie_p[i, w] = s[0].work.tie_p[i, w] - P
    bring_ropes(s, w)
    move_all(s, w)


@wp.func
def entry_moves(s: wp.array(dtype=RopeStep), t: wp.array(dtype=RopeTouch), c: wp.array(dtype=Collision), e: int, w: int) -> vec3:
    """Change of the velocity at a point of contact in the last solve, m/s."""
    if e >= t[0].base:
        return between(s[0].work.dv, t, e - t[0].base, w)
    out = s[0].work.dv[e / MOST, w]
    b = c[0].shapes.body[t[0].shape[e, w]]
    if is_coupled(s, t, c, e, w):
        return out - s[0].body.dv[b, w] - wp.cross(s[0].body.dw[b, w], t[0].arm[e, w])
    if t[0].place[b, w] >= 0:
        out = out - carried_surface(t, b, e, w)
    return out


# ---- the rows ---------------------------------------------------------------------------------------------------------------


@wp.func
def set_hat(t: wp.array(dtype=RopeTouch), column: int, value: real, w: int):
    """One component of V̂."""
    b = t[0].listed[column / 6, w]
    a = column % 6
    if a < 3:
        v = t[0].hat_v[b, w]
        v[a] = value
        t[0].hat_v[b, w] = v
    else:
        omega = t[0].hat_w[b, w]
        omega[a - 3] = value
        t[0].hat_w[b, w] = omega


@wp.func
def set_unit(t: wp.array(dtype=RopeTouch), e: int, a: int, value: real, w: int):
    """One component of δ."""
    P = t[0].given[e, w]
    P[a] = value
    t[0].given[e, w] = P


@wp.func
def set_column(t: wp.array(dtype=RopeTouch), q: int, of_bodies: int, value: real, w: int):
    """One unknown."""
    if q < of_bodies:
        set_hat(t, q, value, w)
    else:
        e = t[0].of_entry[q, w]
        set_unit(t, e, q - t[0].column[e, w], value, w)


@wp.func
def add_rows(t: wp.array(dtype=RopeTouch), row: int, P: vec3, column: int, w: int):
    """Add to three rows of a column; the last column is the right-hand side."""
    wide = t[0].columns + 1
    for a in range(3):
        i = (row + a) * wide + column
        t[0].dense[i, w] = t[0].dense[i, w] + P[a]


@wp.func
def list_coupled(s: wp.array(dtype=RopeStep), t: wp.array(dtype=RopeTouch), c: wp.array(dtype=Collision), bodies: int, w: int):
    """Columns of the points whose impulses are unknowns; returns how many columns there are, and whether W serves."""
    n = 6 * bodies
    plain = bodies == 0
    lost = int(0)
    for m in range(t[0].live[w]):
        e = t[0].entry[m, w]
        t[0].column[e, w] = NO_COLUMN
        t[0].given[e, w] = vec3()
        if is_coupled(s, t, c, e, w):
            plain = plain and e >= t[0].base
            if t[0].state[e, w] == OPEN:
                t[0].given[e, w] = t[0].wanted[e, w] - t[0].impulse[e, w]
            elif n + 3 > t[0].columns:
                t[0].column[e, w] = NO_ROOM
                lost = lost + 1
            else:
                t[0].column[e, w] = n
                n = n + 3
    t[0].most[w] = wp.max(t[0].most[w], n)
    t[0].lost[w] = wp.max(t[0].lost[w], lost)
    return n, plain


@wp.func
def fill_columns(s: wp.array(dtype=RopeStep), t: wp.array(dtype=RopeTouch), c: wp.array(dtype=Collision), w: int):
    """What the last solve did at the points of contact beyond what it does alone, as a column of the rows, one of each group."""
    for m in range(t[0].live[w]):
        e = t[0].entry[m, w]
        row = t[0].column[e, w]
        A = t[0].A[e, w]
        column = t[0].asked[t[0].group[t[0].rope_part[rope_of(t, e, w)], w], w]
        if column < 0:
            continue
        if row >= 0:
            add_rows(t, row, A * (entry_moves(s, t, c, e, w) - t[0].alone_moves[e, w]), column, w)
        elif not is_coupled(s, t, c, e, w):
            at = t[0].place[c[0].shapes.body[t[0].shape[e, w]], w]
            if at >= 0:
                P = A * (entry_moves(s, t, c, e, w) - t[0].alone_moves[e, w])
                v, omega = give(t, at, w, P, wp.cross(t[0].arm[e, w], P))
                add_rows(t, 6 * at, -v, column, w)
                add_rows(t, 6 * at + 3, -omega, column, w)


@wp.func
def fill_right(s: wp.array(dtype=RopeStep), t: wp.array(dtype=RopeTouch), c: wp.array(dtype=Collision), n: int, w: int):
    """The right-hand sides, from the solve without unknowns; rows begin as those of 1."""
    wide = t[0].columns + 1
    for r in range(n):
        for q in range(n):
            t[0].dense[r * wide + q, w] = wp.where(r == q, real(1.0), real(0.0))
        t[0].dense[r * wide + wide - 1, w] = real(0.0)
    for m in range(t[0].live[w]):
        e = t[0].entry[m, w]
        moves = entry_moves(s, t, c, e, w)
        t[0].alone_moves[e, w] = moves
        P = t[0].wanted[e, w] - t[0].A[e, w] * moves - t[0].impulse[e, w]
        row = t[0].column[e, w]
        if row >= 0:
            add_rows(t, row, P, wide - 1, w)
        elif not is_coupled(s, t, c, e, w):
            at = t[0].place[c[0].shapes.body[t[0].shape[e, w]], w]
            if at >= 0:
                v, omega = give(t, at, w, P, wp.cross(t[0].arm[e, w], P))
                add_rows(t, 6 * at, -v, wide - 1, w)
                add_rows(t, 6 * at + 3, -omega, wide - 1, w)


@wp.func
def learn_pair(s: wp.array(dtype=RopeStep), t: wp.array(dtype=RopeTouch), c: wp.array(dtype=Collision), p: int, w: int):
    """The columns of W of a pair."""
    wide = 3 * t[0].pair_capacity
    e = t[0].base + p
    for a in range(3):
        set_unit(t, e, a, real(1.0), w)
        solve_ropes(s, t, c, w)
        set_unit(t, e, a, real(0.0), w)
        for q in range(t[0].pairs[w]):
            moves = between(s[0].work.dv, t, q, w) - t[0].alone_moves[t[0].base + q, w]
            for r in range(3):
                t[0].W[(3 * q + r) * wide + 3 * p + a, w] = moves[r]
    t[0].known[p, w] = 1


@wp.func
def fill_pair(t: wp.array(dtype=RopeTouch), p: int, w: int):
    """The columns of a pair, A W."""
    wide = 3 * t[0].pair_capacity
    column = t[0].column[t[0].base + p, w]
    for q in range(t[0].pairs[w]):
        row = t[0].column[t[0].base + q, w]
        if row >= 0:
            A = t[0].A[t[0].base + q, w]
            for a in range(3):
                at = 3 * q * wide + 3 * p + a
                add_rows(t, row, A * vec3(t[0].W[at, w], t[0].W[at + wide, w], t[0].W[at + 2 * wide, w]), column + a, w)


@wp.func
def eliminate_dense(t: wp.array(dtype=RopeTouch), n: int, w: int):
    """Solve the rows in place, with pivots: the result stands in the last column."""
    wide = t[0].columns + 1
    last = wide - 1
    for p in range(n):
        best = int(p)
        for r in range(p + 1, n):
            if wp.abs(t[0].dense[r * wide + p, w]) > wp.abs(t[0].dense[best * wide + p, w]):
                best = r
        if best != p:
            for q in range(p, n + 1):
                col = wp.where(q == n, last, q)
                keep = t[0].dense[p * wide + col, w]
                t[0].dense[p * wide + col, w] = t[0].dense[best * wide + col, w]
                t[0].dense[best * wide + col, w] = keep
        inverse = real(1.0) / t[0].dense[p * wide + p, w]
        for r in range(p + 1, n):
            ratio = t[0].dense[r * wide + p, w] * inverse
            if ratio != real(0.0):
                for q in range(p + 1, n):
                    t[0].dense[r * wide + q, w] = t[0].dense[r * wide + q, w] - ratio * t[0].dense[p * wide + q, w]
                t[0].dense[r * wide + last, w] = t[0].dense[r * wide + last, w] - ratio * t[0].dense[p * wide + last, w]
    for back in range(n):
        p = n - 1 - back
        x = t[0].dense[p * wide + last, w]
        for q in range(p + 1, n):
            x = x - t[0].dense[p * wide + q, w] * t[0].dense[q * wide + last, w]
        t[0].dense[p * wide + last, w] = x / t[0].dense[p * wide + p, w]


@wp.func
def ask_next(t: wp.array(dtype=RopeTouch), n: int, of_bodies: int, w: int) -> int:
    """Set the next unknown of every group to 1; how many groups have one."""
    found = int(0)
    for i in range(t[0].group.shape[0]):
        last = t[0].asked[i, w]
        if t[0].group[i, w] == i and last > -2:
            q = int(last + 1)
            while q < n and t[0].owner[wp.min(q, n - 1), w] != i:
                q = q + 1
            t[0].asked[i, w] = wp.where(q < n, q, -2)
            if q < n:
                found = found + 1
                set_column(t, q, of_bodies, real(1.0), w)
    return found


@wp.func
def find_columns(
    s: wp.array(dtype=RopeStep), t: wp.array(dtype=RopeTouch), c: wp.array(dtype=Collision), n: int, of_bodies: int, w: int
):  # fmt: skip
    """All columns, those of groups that do not touch each other at once: each is asked for its next one until none has any."""
    make_groups(s, t, c, w)
    nodes = t[0].group.shape[0]
    for i in range(nodes):
        t[0].asked[i, w] = -1
    for q in range(of_bodies):
        t[0].owner[q, w] = t[0].group[t[0].parts + t[0].listed[q / 6, w], w]
    for m in range(t[0].live[w]):
        e = t[0].entry[m, w]
        first = t[0].column[e, w]
        for a in range(wp.where(first >= 0, 3, 0)):
            t[0].owner[first + a, w] = t[0].group[t[0].rope_part[rope_of(t, e, w)], w]
            t[0].of_entry[first + a, w] = e
    more = ask_next(t, n, of_bodies, w)
    while more > 0:
        solve_ropes(s, t, c, w)
        fill_columns(s, t, c, w)
        for i in range(nodes):
            if t[0].group[i, w] == i and t[0].asked[i, w] >= 0:
                set_column(t, t[0].asked[i, w], of_bodies, real(0.0), w)
        more = ask_next(t, n, of_bodies, w)


@wp.func
def solve_coupled(s: wp.array(dtype=RopeStep), t: wp.array(dtype=RopeTouch), c: wp.array(dtype=Collision), w: int):
    """Changes of velocities in a pass, of ropes, of what couples them, and of the bodies that they touch."""
    bodies = list_bodies(s, t, c, w)
    n, plain = list_coupled(s, t, c, bodies, w)
    solve_ropes(s, t, c, w)
    if n == 0:
        return
    fill_right(s, t, c, n, w)
    if plain:
        for m in range(t[0].live[w]):
            e = t[0].entry[m, w]
            if t[0].column[e, w] >= 0:
                if t[0].known[e - t[0].base, w] == 0:
                    learn_pair(s, t, c, e - t[0].base, w)
                fill_pair(t, e - t[0].base, w)
    else:
        find_columns(s, t, c, n, 6 * bodies, w)
    eliminate_dense(t, n, w)
    last = t[0].columns
    for q in range(6 * bodies):
        set_hat(t, q, t[0].dense[q * (last + 1) + last, w], w)
    for m in range(t[0].live[w]):
        e = t[0].entry[m, w]
        if t[0].column[e, w] >= 0:
            for a in range(3):
                set_unit(t, e, a, t[0].dense[(t[0].column[e, w] + a) * (last + 1) + last, w], w)
    solve_ropes(s, t, c, w)
    for at in range(bodies):
        b = t[0].listed[at, w]
        s[0].body.v[b, w] = s[0].body.v[b, w] + t[0].hat_v[b, w]
        s[0].body.w[b, w] = s[0].body.w[b, w] + t[0].hat_w[b, w]
