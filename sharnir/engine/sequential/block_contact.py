"""All points of a world at once, where sweeps converge slowly: tall stacks, heavy bodies on light ones (theory: contact).

Points that push are rows, held by a penalty ρ about the impulses of now (one proximal step; ρK = 1/√ε, so what is left is
rounding); points that hold have three, those that slide one, and keep their friction; open ones have none:

    (M + Σ Jᵀρ J) ΔV = −Σ Jᵀρ (u + bias)        p ← p − ρ (u + J ΔV + bias)

Friction of those that slide follows the new normal impulses and velocities, and with it the right-hand side is solved for again,
a few times with one factor. At the end impulses are put back into their cones.
The matrix has six rows a body. Bodies stand in the order of a walk along the contacts (Cuthill, McKee 1969), so that each row
begins at its first neighbour (a skyline), and it is factored there. A stack costs as much as ten sweeps; sweeps before and
after it decide which points hold, slide or open.
"""

import warp as wp

from sharnir.core.types import EPSILON, mat33, real, vec3
from sharnir.engine.sequential.data import VELOCITIES, Step
from sharnir.engine.sequential.patches import from_axes, in_axes, push_patch, unscaled

STIFFEST = wp.constant(real(1.0 / EPSILON**0.5))
POINT_OPEN, POINT_SLIDES, POINT_HOLDS = (wp.constant(k) for k in range(3))
SWEEPS_BEFORE, SWEEPS_BETWEEN, MOST_BLOCK_SOLVES = (
    4,
    3,
    4,
)  # sweeps before points are solved for at once, sweeps between, and how often at most
CALM_SHARE, NEARLY_AT_REST = (
    wp.constant(real(1.0e-3)),
    wp.constant(real(100.0)),
)  # of the tolerance: asked for where it is nearly met at once
WILD_ENERGY = wp.constant(
    real(1.5)
)  # of the energy before, and of what gravity gives in a step: points take from it, conveyors apart
FRICTION_UPDATES = wp.constant(8)  # times that friction of sliding points follows
MOST_OPERATIONS = wp.constant(1500)  # operations a point that a factorisation may cost: about twenty sweeps


@wp.func
def goal_of(tolerance: real, done: int, largest: real, goal: real) -> real:
    """What a sweep's largest change (squared) has to come down to, after so many sweeps before this one.

    Where the first one is already near the tolerance, the scene is about at rest, and a thousandth of it is asked for, for a
    while: else what one step leaves and the next one takes back would go on for ever.
    """
    meets = tolerance * tolerance
    if done == 0 and largest <= meets * NEARLY_AT_REST * NEARLY_AT_REST:
        return meets * CALM_SHARE * CALM_SHARE
    if done >= SWEEPS_BEFORE - 1 + 2 * SWEEPS_BETWEEN:
        return meets
    return goal


@wp.func
def restore_points(s: wp.array(dtype=Step), w: int) -> None:
    """To what was remembered: not by differences, in which the digits of velocities gone wild would be lost."""
    twist = s[0].solves[VELOCITIES].twist
    for b in range(s[0].bodies.count):
        twist.linear[b, w] = s[0].block.kept_v[b, w]
        twist.angular[b, w] = s[0].block.kept_w[b, w]
    for i in range(s[0].contacts.count[w]):
        s[0].touch.p[i, w] = s[0].touch.kept[i, w]


@wp.func
def clear_impulses(s: wp.array(dtype=Step), w: int) -> None:
    """No impulses."""
    for k in range(s[0].touch.patches[w]):
        if s[0].touch.patch[k, w].rests == 1:
            continue
        F = vec3(real(0.0))
        T = vec3(real(0.0))
        first = s[0].touch.patch[k, w].first
        for i in range(first, first + s[0].touch.patch[k, w].size):
            d = unscaled(-s[0].touch.p[i, w], s[0].touch.row[i, w].mu)
            s[0].touch.p[i, w] = vec3(real(0.0))
            F = F + d
            T = T + wp.cross(s[0].touch.row[i, w].d, d)
        push_patch(s, s[0].solves[VELOCITIES].twist, k, w, F, T)


@wp.func
def kinetic_of_bodies(s: wp.array(dtype=Step), w: int) -> real:
    """J, of the bodies that are not fixed in this step."""
    twist = s[0].solves[VELOCITIES].twist
    sum = real(0.0)
    for b in range(s[0].bodies.count):
        if s[0].work.inv_mass[b, w] > real(0.0):
            sum = sum + wp.length_sq(twist.linear[b, w]) / s[0].work.inv_mass[b, w]
            sum = sum + wp.dot(twist.angular[b, w], wp.inverse(s[0].work.inv_inertia[b, w]) * twist.angular[b, w])
    return real(0.5) * sum


@wp.func
def save_points(s: wp.array(dtype=Step), w: int) -> None:
    """Remember the impulses of now, the velocities and their energy: that without impulses, where these gave nothing."""
    twist = s[0].solves[VELOCITIES].twist
    s[0].block.tries[w] = s[0].block.tries[w] + 1
    for b in range(s[0].bodies.count):
        s[0].block.kept_v[b, w] = twist.linear[b, w]
        s[0].block.kept_w[b, w] = twist.angular[b, w]
    for i in range(s[0].contacts.count[w]):
        s[0].touch.kept[i, w] = s[0].touch.p[i, w]
    with_them = kinetic_of_bodies(s, w)
    clear_impulses(s, w)
    s[0].block.kept_energy[w] = wp.max(with_them, kinetic_of_bodies(s, w))
    restore_points(s, w)


@wp.func
def ran_wild(s: wp.array(dtype=Step), w: int) -> bool:
    """Whether the points meet their laws at speeds that they cannot have given, as bodies that friction jams may."""
    free = real(0.0)
    for b in range(s[0].bodies.count):
        if s[0].work.inv_mass[b, w] > real(0.0):
            free = free + real(0.5) * wp.length_sq(s[0].settings.gravity[w] * s[0].settings.dt[0]) / s[0].work.inv_mass[b, w]
    return kinetic_of_bodies(s, w) > WILD_ENERGY * (s[0].block.kept_energy[w] + free)


@wp.func
def put_back_points(s: wp.array(dtype=Step), w: int, more: int) -> None:
    """Go back to the impulses that were remembered: sweeps alone take energy away, whatever is left to do.

    If there are to be more of them, and these impulses (the last step's, of a blow perhaps) give energy, back to none.
    """
    s[0].block.failed[w] = s[0].block.failed[w] + 1
    restore_points(s, w)
    if more == 1:
        held = kinetic_of_bodies(s, w)
        clear_impulses(s, w)
        if held <= kinetic_of_bodies(s, w):
            restore_points(s, w)


# ---- which points push, and which hold --------------------------------------------------------------------------------------


@wp.func
def judge_points(s: wp.array(dtype=Step), w: int) -> int:
    """Whether each point is open, slides or holds, as its next visit would find it; open ones let go. Returns how many slide."""
    slides = int(0)
    twist = s[0].solves[VELOCITIES].twist
    for k in range(s[0].touch.patches[w]):
        if s[0].touch.patch[k, w].rests == 1:
            continue
        g = s[0].touch.patch[k, w]
        u_c = twist.linear[g.b, w] + wp.cross(twist.angular[g.b, w], g.c_b)
        u_c = u_c - twist.linear[g.a, w] - wp.cross(twist.angular[g.a, w], g.c_a)
        U = in_axes(g.n, g.t1, g.t2, u_c) + g.slide
        O = in_axes(g.n, g.t1, g.t2, twist.angular[g.b, w] - twist.angular[g.a, w])
        F = vec3(real(0.0))
        T = vec3(real(0.0))
        for i in range(g.first, g.first + g.size):
            row = s[0].touch.row[i, w]
            p = s[0].touch.p[i, w]
            u = U + wp.cross(O, row.d)
            pn = p[0] - (u[0] + row.bias + row.soft * p[0]) * row.inverse
            mode = POINT_OPEN
            if pn > real(0.0):
                u1 = row.mu[0] * (u[1] + row.K[1] * (pn - p[0]))
                u2 = row.mu[1] * (u[2] + row.K[2] * (pn - p[0]))
                a = p[1] - row.G[0] * u1 - row.G[1] * u2
                b = p[2] - row.G[1] * u1 - row.G[2] * u2
                mode = POINT_SLIDES
                if row.G[3] > real(0.0):
                    if a * a + b * b <= pn * pn:
                        mode = POINT_HOLDS
                    else:
                        slides = slides + 1
            else:
                s[0].touch.p[i, w] = vec3(real(0.0))
                d = unscaled(p, row.mu)
                F = F - d
                T = T - wp.cross(row.d, d)
            s[0].touch.mode[i, w] = mode
        push_patch(s, twist, k, w, F, T)
    return slides


@wp.func
def row_weights(s: wp.array(dtype=Step), i: int, w: int) -> vec3:
    """ρ of the rows of a point along n, t₁, t₂; 0 where there is none."""
    row = s[0].touch.row[i, w]
    out = vec3(real(0.0))
    if s[0].touch.mode[i, w] != POINT_OPEN:
        out[0] = STIFFEST / (row.K[0] + STIFFEST * row.soft)
    if s[0].touch.mode[i, w] == POINT_HOLDS:
        out[1] = STIFFEST / row.K[3]
        out[2] = STIFFEST / row.K[5]
    return out


# ---- the matrix -------------------------------------------------------------------------------------------------------------


@wp.func
def put_in_line(s: wp.array(dtype=Step), w: int) -> int:
    """Bodies that touch something, in the order of a walk along the contacts; returns how many these are."""
    patches = s[0].touch.patches[w]
    for b in range(s[0].bodies.count):
        s[0].block.place[b, w] = -1
    for k in range(patches):
        for side in range(2):
            b = wp.where(side == 0, s[0].touch.patch[k, w].a, s[0].touch.patch[k, w].b)
            if s[0].work.inv_mass[b, w] > real(0.0):
                s[0].block.place[b, w] = -2
    count = int(0)
    head = int(0)
    for seed in range(s[0].bodies.count):
        if s[0].block.place[seed, w] == -2:
            s[0].block.place[seed, w] = count
            s[0].block.line[count, w] = seed
            count = count + 1
        while head < count:
            b = s[0].block.line[head, w]
            head = head + 1
            for k in range(patches):
                other = int(-1)
                if s[0].touch.patch[k, w].a == b:
                    other = s[0].touch.patch[k, w].b
                elif s[0].touch.patch[k, w].b == b:
                    other = s[0].touch.patch[k, w].a
                if other >= 0:
                    if s[0].block.place[other, w] == -2:
                        s[0].block.place[other, w] = count
                        s[0].block.line[count, w] = other
                        count = count + 1
    return count


@wp.func
def lay_out_matrix(s: wp.array(dtype=Step), count: int, w: int) -> bool:
    """Where each row of the matrix begins, all of it zero; false where there is no room for it, or it costs too much."""
    for at in range(count):
        s[0].block.lead[at, w] = at
    for k in range(s[0].touch.patches[w]):
        i = s[0].block.place[s[0].touch.patch[k, w].a, w]
        j = s[0].block.place[s[0].touch.patch[k, w].b, w]
        if i >= 0 and j >= 0:
            high = wp.max(i, j)
            s[0].block.lead[high, w] = wp.min(s[0].block.lead[high, w], wp.min(i, j))
    entries = int(0)
    dear = int(0)
    for at in range(count):
        lead = 6 * s[0].block.lead[at, w]
        for r in range(6):
            row = 6 * at + r
            s[0].block.base[row, w] = entries - lead
            length = row - lead + 1
            entries = entries + length
            dear = dear + length * length / 2
        if entries > s[0].block.capacity or dear > MOST_OPERATIONS * s[0].contacts.count[w]:
            return False
    for e in range(entries):
        s[0].block.H[e, w] = real(0.0)
    return True


@wp.func
def add_lower_block(H: wp.array2d(dtype=real), base: wp.array2d(dtype=wp.int32), row: int, column: int, A: mat33, w: int) -> None:
    """A 3 × 3 block, as far as it is on or below the diagonal."""
    for i in range(3):
        at = base[row + i, w]
        for j in range(3):
            if column + j <= row + i:
                H[at + column + j, w] = H[at + column + j, w] + A[i, j]


@wp.func
def add_pair(
    s: wp.array(dtype=Step), i: int, j: int, c_i: vec3, c_j: vec3, A: mat33, B: mat33, D: mat33, sign: real, w: int
) -> None:  # fmt: skip
    """sign · X_iᵀ S X_j of bodies in places i ≥ j, S = (A B; Bᵀ D) in the middle of a patch, X a body's twist brought there."""
    C_i = wp.skew(c_i)
    C_j = wp.skew(c_j)
    la = B - A * C_j
    H = s[0].block.H
    base = s[0].block.base
    add_lower_block(H, base, 6 * i, 6 * j, A * sign, w)
    add_lower_block(H, base, 6 * i, 6 * j + 3, la * sign, w)
    add_lower_block(H, base, 6 * i + 3, 6 * j, (C_i * A + wp.transpose(B)) * sign, w)
    add_lower_block(H, base, 6 * i + 3, 6 * j + 3, (C_i * la + D - wp.transpose(B) * C_j) * sign, w)


@wp.func
def assemble_block_matrix(s: wp.array(dtype=Step), count: int, w: int) -> None:
    """M + Σ Jᵀρ J."""
    zero = mat33(real(0.0))
    for at in range(count):
        b = s[0].block.line[at, w]
        m = real(1.0) / s[0].work.inv_mass[b, w]
        add_lower_block(s[0].block.H, s[0].block.base, 6 * at, 6 * at, wp.diag(vec3(m, m, m)), w)
        add_lower_block(s[0].block.H, s[0].block.base, 6 * at + 3, 6 * at + 3, wp.inverse(s[0].work.inv_inertia[b, w]), w)
    for k in range(s[0].touch.patches[w]):
        if s[0].touch.patch[k, w].rests == 1:
            continue
        g = s[0].touch.patch[k, w]
        A = zero
        B = zero
        D = zero
        for p in range(g.first, g.first + g.size):
            rho = wp.diag(row_weights(s, p, w))
            d = wp.skew(s[0].touch.row[p, w].d)
            A = A + rho
            B = B - rho * d
            D = D - d * rho * d
        E = wp.matrix_from_rows(g.n, g.t1, g.t2)
        A = wp.transpose(E) * A * E
        B = wp.transpose(E) * B * E
        D = wp.transpose(E) * D * E
        i = s[0].block.place[g.a, w]
        j = s[0].block.place[g.b, w]
        one = real(1.0)
        if i >= 0:
            add_pair(s, i, i, g.c_a, g.c_a, A, B, D, one, w)
        if j >= 0:
            add_pair(s, j, j, g.c_b, g.c_b, A, B, D, one, w)
        if i > j and j >= 0:
            add_pair(s, i, j, g.c_a, g.c_b, A, B, D, -one, w)
        if j > i and i >= 0:
            add_pair(s, j, i, g.c_b, g.c_a, A, B, D, -one, w)


@wp.func
def factor_block_matrix(
    H: wp.array2d(dtype=real), base: wp.array2d(dtype=wp.int32), lead: wp.array2d(dtype=wp.int32), count: int, w: int
) -> bool:  # fmt: skip
    """H = L Lᵀ in its place, the diagonal inverted; false where it is not positive."""
    for i in range(6 * count):
        at_i = base[i, w]
        first = 6 * lead[i / 6, w]
        for j in range(first, i + 1):
            at_j = base[j, w]
            sum = H[at_i + j, w]
            for k in range(wp.max(first, 6 * lead[j / 6, w]), j):
                sum = sum - H[at_i + k, w] * H[at_j + k, w]
            if j < i:
                H[at_i + j, w] = sum * H[at_j + j, w]
            elif sum > real(0.0):
                H[at_i + i, w] = real(1.0) / wp.sqrt(sum)
            else:
                return False
    return True


@wp.func
def substitute_block_matrix(
    H: wp.array2d(dtype=real), base: wp.array2d(dtype=wp.int32), lead: wp.array2d(dtype=wp.int32), x: wp.array2d(dtype=real),
    count: int, w: int,
) -> None:  # fmt: skip
    """x ← (L Lᵀ)⁻¹ x."""
    n = 6 * count
    for i in range(n):
        at = base[i, w]
        sum = x[i, w]
        for k in range(6 * lead[i / 6, w], i):
            sum = sum - H[at + k, w] * x[k, w]
        x[i, w] = sum * H[at + i, w]
    for r in range(n):
        i = n - 1 - r
        at = base[i, w]
        xi = x[i, w] * H[at + i, w]
        x[i, w] = xi
        for k in range(6 * lead[i / 6, w], i):
            x[k, w] = x[k, w] - H[at + k, w] * xi


# ---- the step ---------------------------------------------------------------------------------------------------------------


@wp.func
def change_of(s: wp.array(dtype=Step), b: int, w: int) -> tuple[vec3, vec3]:
    """ΔV of a body: velocity and spin."""
    at = 6 * s[0].block.place[b, w]
    v = vec3(real(0.0))
    o = vec3(real(0.0))
    if at >= 0:
        v = vec3(s[0].block.x[at, w], s[0].block.x[at + 1, w], s[0].block.x[at + 2, w])
        o = vec3(s[0].block.x[at + 3, w], s[0].block.x[at + 4, w], s[0].block.x[at + 5, w])
    return v, o


@wp.func
def add_force(s: wp.array(dtype=Step), b: int, w: int, sign: real, P: vec3, L: vec3) -> None:
    """To the right-hand side."""
    at = 6 * s[0].block.place[b, w]
    if at >= 0:
        for k in range(3):
            s[0].block.x[at + k, w] = s[0].block.x[at + k, w] + sign * P[k]
            s[0].block.x[at + 3 + k, w] = s[0].block.x[at + 3 + k, w] + sign * L[k]


@wp.func
def slid(p: vec3, a: real, b: real) -> vec3:
    """An impulse (p_n, D⁻¹p_t) on the edge of its cone, p_t turned by (−a, −b)."""
    pn = wp.max(p[0], real(0.0))
    x = p[1] - a
    y = p[2] - b
    size = wp.sqrt(x * x + y * y)
    if size == real(0.0):
        return vec3(pn, real(0.0), real(0.0))
    return vec3(pn, x * pn / size, y * pn / size)


@wp.func
def project_on_cones(s: wp.array(dtype=Step), w: int) -> None:
    """No point pulls, none holds by more than friction can."""
    for k in range(s[0].touch.patches[w]):
        if s[0].touch.patch[k, w].rests == 1:
            continue
        F = vec3(real(0.0))
        T = vec3(real(0.0))
        first = s[0].touch.patch[k, w].first
        for i in range(first, first + s[0].touch.patch[k, w].size):
            p = s[0].touch.p[i, w]
            new = p
            if p[0] <= real(0.0):
                new = vec3(real(0.0))
            elif p[1] * p[1] + p[2] * p[2] > p[0] * p[0]:
                new = slid(p, real(0.0), real(0.0))
            s[0].touch.p[i, w] = new
            d = unscaled(new - p, s[0].touch.row[i, w].mu)
            F = F + d
            T = T + wp.cross(s[0].touch.row[i, w].d, d)
        push_patch(s, s[0].solves[VELOCITIES].twist, k, w, F, T)


@wp.func
def pull(s: wp.array(dtype=Step), k: int, w: int, moved: int) -> tuple[vec3, vec3]:
    """−ρ (u + bias) of the points of patch k, as a force and a torque; with `moved`, after ΔV, and the points take it."""
    twist = s[0].solves[VELOCITIES].twist
    g = s[0].touch.patch[k, w]
    va = twist.linear[g.a, w]
    wa = twist.angular[g.a, w]
    vb = twist.linear[g.b, w]
    wb = twist.angular[g.b, w]
    if moved == 1:
        dv, do = change_of(s, g.a, w)
        va = va + dv
        wa = wa + do
        ev, eo = change_of(s, g.b, w)
        vb = vb + ev
        wb = wb + eo
    U = in_axes(g.n, g.t1, g.t2, vb + wp.cross(wb, g.c_b) - va - wp.cross(wa, g.c_a)) + g.slide
    O = in_axes(g.n, g.t1, g.t2, wb - wa)
    F = vec3(real(0.0))
    T = vec3(real(0.0))
    for i in range(g.first, g.first + g.size):
        rho = row_weights(s, i, w)
        row = s[0].touch.row[i, w]
        p = s[0].touch.p[i, w]
        u = U + wp.cross(O, row.d)
        f = vec3(-rho[0] * (u[0] + row.bias + row.soft * p[0]), -rho[1] * u[1], -rho[2] * u[2])
        if moved == 1:
            new = vec3(p[0] + f[0], p[1], p[2])
            if s[0].touch.mode[i, w] == POINT_HOLDS:
                new = vec3(p[0] + f[0], p[1] + f[1] / row.mu[0], p[2] + f[2] / row.mu[1])
            elif s[0].touch.mode[i, w] == POINT_SLIDES:
                new = slid(new, row.G[3] * row.mu[0] * u[1], row.G[3] * row.mu[1] * u[2])
            s[0].touch.p[i, w] = new
            f = unscaled(new - p, row.mu)
        F = F + f
        T = T + wp.cross(row.d, f)
    return F, T


@wp.func
def correct(s: wp.array(dtype=Step), count: int, w: int) -> None:
    """One solve with the factor at hand."""
    twist = s[0].solves[VELOCITIES].twist
    for i in range(6 * count):
        s[0].block.x[i, w] = real(0.0)
    for k in range(s[0].touch.patches[w]):
        if s[0].touch.patch[k, w].rests == 0:
            g = s[0].touch.patch[k, w]
            F, T = pull(s, k, w, 0)
            P = from_axes(g.n, g.t1, g.t2, F)
            L = from_axes(g.n, g.t1, g.t2, T)
            add_force(s, g.a, w, real(-1.0), P, L + wp.cross(g.c_a, P))
            add_force(s, g.b, w, real(1.0), P, L + wp.cross(g.c_b, P))
    substitute_block_matrix(s[0].block.H, s[0].block.base, s[0].block.lead, s[0].block.x, count, w)
    for k in range(s[0].touch.patches[w]):  # impulses first: velocities are those of before until all are known
        if s[0].touch.patch[k, w].rests == 0:
            F, T = pull(s, k, w, 1)
            s[0].touch.force[k, w] = F
            s[0].touch.torque[k, w] = T
    for k in range(s[0].touch.patches[w]):
        if s[0].touch.patch[k, w].rests == 0:
            push_patch(s, twist, k, w, s[0].touch.force[k, w], s[0].touch.torque[k, w])


@wp.func
def solve_block_contact(s: wp.array(dtype=Step), w: int, times: int) -> int:
    """All points at once, about the impulses of now; returns how often now, or −1 where it cannot be or costs too much."""
    count = put_in_line(s, w)
    if not lay_out_matrix(s, count, w):
        return -1
    slides = judge_points(s, w)
    assemble_block_matrix(s, count, w)
    if not factor_block_matrix(s[0].block.H, s[0].block.base, s[0].block.lead, count, w):
        return -1
    for _again in range(FRICTION_UPDATES):
        correct(s, count, w)
        if slides == 0:
            break
    project_on_cones(s, w)
    return times + 1


@wp.func
def help_sweeps(s: wp.array(dtype=Step), w: int, done: int, times: int, largest: real, goal: real) -> tuple[int, real]:
    """After a sweep: solve for all at once, if its goal is not met and it is time to, or drop what that led to.

    done: sweeps before this one; times: how often it was done, −1: not any more; largest: its change. Returns these of now.
    """
    if times > 0 and largest <= goal and ran_wild(s, w):
        put_back_points(s, w, 1)
        return -1, real(4.0) * goal
    since = done - (SWEEPS_BEFORE - 1)
    if times < 0 or since < 0 or since % SWEEPS_BETWEEN != 0 or largest <= goal:
        return times, largest
    if since == SWEEPS_BETWEEN * MOST_BLOCK_SOLVES:
        if times > 0:
            put_back_points(s, w, 1)
        return -1, largest
    if times == 0:
        save_points(s, w)
    now = solve_block_contact(s, w, times)
    if now < 0 and times > 0:
        put_back_points(s, w, 1)
    return now, largest
