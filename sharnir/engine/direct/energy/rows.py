"""Rows beside the tree in a direct step: welds of cut loops, rods, gears, cables (`cables`), springs between points.

As of the tree's joints, rows are closed at the end of the step, with vectors of the end, and act with the means of both ends. A
rod's impulse along the mean s̄ of its lines does no work, s̄·Δs = ½(s₁² − s₀²) = 0. A spring has the force of its discrete
gradient along s̄, −k (½(|s₀| + |s₁|) − rest) s̄/½(|s₀| + |s₁|): its work is what its energy loses, whatever the step.
"""

import warp as wp

from sharnir.core.linalg import factorise, substitute
from sharnir.core.types import EPSILON, real, vec3
from sharnir.engine.articulated.loop_rows import CABLE, GEAR, NO_RESPONSE, put_row, row_rate, row_unit, stand_alone
from sharnir.engine.direct.data import Direct
from sharnir.engine.direct.energy.cables import act_cable, cable_rate, cable_response, cable_rows, push_cable, stiffen_cables
from sharnir.engine.direct.energy.links import base_stiffness, follow_all, follow_some, hand_pushes
from sharnir.engine.direct.energy.means import mean_matrix
from sharnir.engine.direct.gaps import gap_size, gear_gap, gear_gap_size

RAISED = wp.constant(real(1.0e-4))  # of the diagonal: more than rows that depend on each other seem not to
HELD = wp.constant(real(1024.0 * EPSILON))  # a response so small, of that of the bodies alone, is rounding
ONE_POINT = wp.constant(real(1.0e-12))  # of the scene's length: ends that are nearer lie on one point
ENOUGH = wp.constant(real(1.0e-9))  # of what rows lack, that may be left
ROUNDS = wp.constant(12)  # at most, on what that leaves over


@wp.func
def put_mean(s: wp.array(dtype=Direct), r: int, w: int, child_l: vec3, child_a: vec3, parent_l: vec3, parent_a: vec3):
    """The row as it acts."""
    s[0].mean_cl[r, w] = child_l
    s[0].mean_ca[r, w] = child_a
    s[0].mean_pl[r, w] = parent_l
    s[0].mean_pa[r, w] = parent_a


@wp.func
def line(s: wp.array(dtype=Direct), p: int, c: int, w: int, at_p: vec3, at_c: vec3):
    """The line between points of two bodies: at the start, at the end, and arms of its ends, mean and at the end."""
    M_p = mean_matrix(s, p, w)
    M_c = mean_matrix(s, c, w)
    start = s[0].work.position[c, w] + wp.quat_rotate(s[0].work.rotation[c, w], at_c)
    start = start - s[0].work.position[p, w] - wp.quat_rotate(s[0].work.rotation[p, w], at_p)
    e_p = wp.quat_rotate(s[0].rotation[p, w], at_p)
    e_c = wp.quat_rotate(s[0].rotation[c, w], at_c)
    return start, s[0].position[c, w] + e_c - s[0].position[p, w] - e_p, M_p * at_p, M_c * at_c, e_p, e_c


@wp.func
def line_row(
    s: wp.array(dtype=Direct), r: int, w: int, n: vec3, e_c: vec3, e_p: vec3, mean: vec3, r_c: vec3, r_p: vec3, gap: real
):
    """A row along a line: n at the end of the step, `mean` as it acts."""
    put_row(s[0].rows, r, w, n, wp.cross(e_c, n), -n, -wp.cross(e_p, n), gap, real(0.0))
    put_mean(s, r, w, mean, wp.cross(r_c, mean), -mean, -wp.cross(r_p, mean))


@wp.func
def weld_rows(s: wp.array(dtype=Direct), i: int, w: int) -> real:
    """Both halves move alike: gaps are differences of their velocities, times ½Δt."""
    b = s[0].closures.weld_body[i]
    half = s[0].closures.weld_half[i]
    h = real(0.5) * s[0].drift[w]
    gap = (s[0].work.acceleration[half, w] - s[0].work.acceleration[b, w]) * h
    turn = (s[0].work.turning[half, w] - s[0].work.turning[b, w]) * h
    zero = vec3(real(0.0))
    for x in range(3):
        e = vec3(real(0.0))
        e[x] = real(1.0)
        put_row(s[0].rows, 6 * i + x, w, e, zero, -e, zero, gap[x], real(0.0))
        put_row(s[0].rows, 6 * i + 3 + x, w, zero, e, zero, -e, turn[x], real(0.0))
        put_mean(s, 6 * i + x, w, e, zero, -e, zero)
        put_mean(s, 6 * i + 3 + x, w, zero, e, zero, -e)
    return gap_size(s, gap, turn)


@wp.func
def rod_row(s: wp.array(dtype=Direct), i: int, w: int) -> real:
    j = s[0].closures.rod_joint[i]
    p = s[0].joints.parent[j]
    c = s[0].joints.child[j]
    start, end, r_p, r_c, e_p, e_c = line(s, p, c, w, s[0].joints.parent_point[j, w], s[0].joints.child_point[j, w])
    length = wp.length(end)
    gap = length - s[0].joints.rod[j]
    r = 6 * s[0].closures.welds + i
    line_row(s, r, w, end / length, e_c, e_p, wp.normalize(start + end), r_c, r_p, gap)
    if s[0].control.enabled[j, w] == 0:
        s[0].rows.soft[r, w] = real(-1.0)
        s[0].row_impulse[r, w] = real(0.0)
        return real(0.0)
    return wp.abs(gap) * s[0].settings.per_metre[0]


@wp.func
def spring_row(s: wp.array(dtype=Direct), i: int, w: int):
    """A soft row: λ = −Δt k (mean length − rest) − c Δlength; its slope in the speed of the end is ½Δt (½Δt k + c)."""
    p = s[0].closures.springs.parent[i]
    c = s[0].closures.springs.child[i]
    start, end, r_p, r_c, e_p, e_c = line(s, p, c, w, s[0].closures.springs.parent_point[i], s[0].closures.springs.child_point[i])
    h = s[0].drift[w]
    a = wp.length(start)
    b = wp.length(end)
    mean = real(0.5) * (a + b)
    k = s[0].closures.springs.stiffness[i, w]
    damping = s[0].closures.springs.damping[i, w]
    slope = real(0.5) * h * (real(0.5) * h * k + damping)
    r = s[0].closures.count - s[0].closures.springs.count + i
    n = vec3(real(0.0))  # ends on one point: no direction, no force
    m = n
    near = ONE_POINT / s[0].settings.per_metre[0]
    if b > near and mean > near:
        n = end / b
        m = (start + end) * (real(0.5) / mean)
    by = real(0.0)
    if a + b > real(0.0):
        by = wp.dot(start + end, end - start) / (a + b)  # b − a, without rounding
    force = -h * k * (a + real(0.5) * by - s[0].closures.springs.rest[i, w]) - damping * by
    line_row(s, r, w, n, e_c, e_p, m, r_c, r_p, real(0.0))
    s[0].rows.soft[r, w] = real(-1.0)
    if slope > real(0.0) and wp.length_sq(n) > real(0.0):
        s[0].rows.soft[r, w] = real(1.0) / slope
        s[0].rows.gap[r, w] = (s[0].row_impulse[r, w] - force) / slope  # a speed that it lacks
    else:
        s[0].row_impulse[r, w] = real(0.0)


@wp.func
def find_rows(s: wp.array(dtype=Direct), w: int) -> real:
    """All rows and their gaps at the end of the step; returns the largest gap (`gap_size`)."""
    most = real(0.0)
    for i in range(s[0].closures.welds):
        most = wp.max(most, weld_rows(s, i, w))
    for i in range(s[0].closures.rods):
        most = wp.max(most, rod_row(s, i, w))
    zero = vec3(real(0.0))
    for i in range(s[0].closures.gears):
        gap = gear_gap(s, i, w)
        put_row(s[0].rows, 6 * s[0].closures.welds + s[0].closures.rods + i, w, zero, zero, zero, zero, gap, real(0.0))
        most = wp.max(most, gear_gap_size(s, i, gap))
    for i in range(s[0].closures.springs.count):
        spring_row(s, i, w)
    if s[0].cables.count > 0:
        most = wp.max(most, cable_rows(s, w) * s[0].settings.per_metre[0])
    return most


@wp.func
def rate_of(
    s: wp.array(dtype=Direct), r: int, w: int,
    linear: wp.array2d(dtype=vec3), angular: wp.array2d(dtype=vec3), axes: wp.array2d(dtype=real),
) -> real:  # fmt: skip
    """A row times velocities of bodies and axes."""
    if s[0].rows.child[r] == CABLE:
        return cable_rate(s, r, w, linear, angular)
    return row_rate(s[0].closures, s[0].rows, r, w, linear, angular, axes)


@wp.func
def stiffen(s: wp.array(dtype=Direct), link: int, w: int, r: vec3, f: vec3):
    """What an impulse at the arm r of the end of the step adds to the derivative of a link's momentum by its turn."""
    if link >= 0:
        s[0].work.D[link, w] = s[0].work.D[link, w] - base_stiffness(r, f, real(0.5) * s[0].drift[w])


@wp.func
def stiffen_lines(s: wp.array(dtype=Direct), w: int):
    """The same of rods and springs, before factors are made."""
    first = 6 * s[0].closures.welds
    for i in range(s[0].closures.rods):
        j = s[0].closures.rod_joint[i]
        p = s[0].joints.parent[j]
        c = s[0].joints.child[j]
        f = s[0].mean_cl[first + i, w] * s[0].row_impulse[first + i, w]
        stiffen(s, s[0].rows.link_of[c], w, wp.quat_rotate(s[0].rotation[c, w], s[0].joints.child_point[j, w]), f)
        stiffen(s, s[0].rows.link_of[p], w, wp.quat_rotate(s[0].rotation[p, w], s[0].joints.parent_point[j, w]), -f)
    if s[0].cables.count > 0:
        stiffen_cables(s, w)
    first = s[0].closures.count - s[0].closures.springs.count
    for i in range(s[0].closures.springs.count):
        p = s[0].closures.springs.parent[i]
        c = s[0].closures.springs.child[i]
        f = s[0].mean_cl[first + i, w] * s[0].row_impulse[first + i, w]
        stiffen(s, s[0].rows.link_of[c], w, wp.quat_rotate(s[0].rotation[c, w], s[0].closures.springs.child_point[i]), f)
        stiffen(s, s[0].rows.link_of[p], w, wp.quat_rotate(s[0].rotation[p, w], s[0].closures.springs.parent_point[i]), -f)


@wp.func
def act(s: wp.array(dtype=Direct), w: int):
    """Impulses of the rows on links and axes, as of outside."""
    for r in range(s[0].closures.count):
        p = s[0].row_impulse[r, w]
        if s[0].rows.child[r] >= 0:
            link = s[0].rows.link_of[s[0].rows.child[r]]
            if link >= 0:
                s[0].sum_l[link, w] = s[0].sum_l[link, w] - s[0].mean_cl[r, w] * p
                s[0].sum_a[link, w] = s[0].sum_a[link, w] - s[0].mean_ca[r, w] * p
            link = s[0].rows.link_of[s[0].rows.parent[r]]
            if link >= 0:
                s[0].sum_l[link, w] = s[0].sum_l[link, w] - s[0].mean_pl[r, w] * p
                s[0].sum_a[link, w] = s[0].sum_a[link, w] - s[0].mean_pa[r, w] * p
        elif s[0].rows.child[r] == CABLE:
            act_cable(s, r, w, p)
        else:
            g = r - 6 * s[0].closures.welds - s[0].closures.rods
            a = s[0].closures.gear_v_a[g]
            b = s[0].closures.gear_v_b[g]
            s[0].tau[a, w] = s[0].tau[a, w] + p
            s[0].tau[b, w] = s[0].tau[b, w] - s[0].closures.gear_ratio[g] * p


@wp.func
def clear_pushes(s: wp.array(dtype=Direct), w: int, start: int, end: int):
    """No impulses on links start … end − 1."""
    for i in range(start, end):
        s[0].work.Q_l[i, w] = vec3(real(0.0))
        s[0].work.Q_a[i, w] = vec3(real(0.0))
        for at in range(s[0].tree.row[i].v_start, s[0].tree.row[i].v_start + s[0].tree.row[i].v_size):
            s[0].rows.u[at, w] = real(0.0)


@wp.func
def push_row(s: wp.array(dtype=Direct), r: int, w: int, p: real):
    """An impulse on a row, added to those on links and axes."""
    if s[0].rows.child[r] >= 0:
        link = s[0].rows.link_of[s[0].rows.child[r]]
        if link >= 0:
            s[0].work.Q_l[link, w] = s[0].work.Q_l[link, w] + s[0].mean_cl[r, w] * p
            s[0].work.Q_a[link, w] = s[0].work.Q_a[link, w] + s[0].mean_ca[r, w] * p
        link = s[0].rows.link_of[s[0].rows.parent[r]]
        if link >= 0:
            s[0].work.Q_l[link, w] = s[0].work.Q_l[link, w] + s[0].mean_pl[r, w] * p
            s[0].work.Q_a[link, w] = s[0].work.Q_a[link, w] + s[0].mean_pa[r, w] * p
    elif s[0].rows.child[r] == CABLE:
        push_cable(s, r, w, p)
    else:
        g = r - 6 * s[0].closures.welds - s[0].closures.rods
        a = s[0].closures.gear_v_a[g]
        b = s[0].closures.gear_v_b[g]
        s[0].rows.u[a, w] = s[0].rows.u[a, w] + p
        s[0].rows.u[b, w] = s[0].rows.u[b, w] - s[0].closures.gear_ratio[g] * p


@wp.func
def push_rows(s: wp.array(dtype=Direct), w: int):
    """Changes of twists and axes by the impulses on all rows that stand in rows.force."""
    clear_pushes(s, w, 0, s[0].tree.count)
    for r in range(s[0].closures.count):
        push_row(s, r, w, s[0].rows.force[r, w])
    hand_pushes(s, w, 0, s[0].tree.count)
    follow_all(s, w, real(0.0))


@wp.func
def clear_changes(s: wp.array(dtype=Direct), w: int, start: int, end: int):
    """No changes of links start … end − 1, nor impulses on them."""
    clear_pushes(s, w, start, end)
    for i in range(start, end):
        b = s[0].tree.body[i]
        s[0].work.change_l[b, w] = vec3(real(0.0))
        s[0].work.change_a[b, w] = vec3(real(0.0))
        for at in range(s[0].tree.row[i].v_start, s[0].tree.row[i].v_start + s[0].tree.row[i].v_size):
            s[0].rows.y[at, w] = real(0.0)


@wp.func
def factor_rows(s: wp.array(dtype=Direct), w: int):
    """The response of all rows to each other, within the envelope of their matrix."""
    rows = s[0].closures.count
    clear_changes(s, w, 0, s[0].tree.count)
    for r in range(rows):
        push_row(s, r, w, real(1.0))
        for half in range(2):
            start = s[0].closures.span[r, 2 * half]
            end = s[0].closures.span[r, 2 * half + 1]
            hand_pushes(s, w, start, end)
            follow_some(s, w, real(0.0), start, end)
        for x in range(s[0].closures.first[r], s[0].closures.last[r] + 1):
            K = rate_of(s, x, w, s[0].work.change_l, s[0].work.change_a, s[0].rows.y)
            s[0].rows.matrix[x, r, w] = K
            s[0].rows.response[x, r, w] = K
        for half in range(2):
            clear_changes(s, w, s[0].closures.span[r, 2 * half], s[0].closures.span[r, 2 * half + 1])
    eliminate(s, w, rows)


@wp.func
def free_response(s: wp.array(dtype=Direct), r: int, w: int) -> real:
    """About how far a row's impulse would move its bodies if nothing held them: what the tree's response is rounded to."""
    if s[0].rows.child[r] == CABLE:
        return cable_response(s, r, w)
    if s[0].rows.child[r] < 0:
        return real(0.0)  # of a gear: axes that are held do not move at all
    K = real(0.0)
    link = s[0].rows.link_of[s[0].rows.child[r]]
    if link >= 0:
        K = wp.length_sq(s[0].rows.child_l[r, w]) / s[0].tree.mass[link, w]
        K = K + wp.length_sq(s[0].rows.child_a[r, w]) / s[0].tree.least[link, w]
    link = s[0].rows.link_of[s[0].rows.parent[r]]
    if link >= 0:
        K = K + wp.length_sq(s[0].rows.parent_l[r, w]) / s[0].tree.mass[link, w]
        K = K + wp.length_sq(s[0].rows.parent_a[r, w]) / s[0].tree.least[link, w]
    return K


@wp.func
def spread(s: wp.array(dtype=Direct), w: int, rows: int):
    """Add to the rows' force what the eliminated matrix makes of what is left."""
    substitute(s[0].rows.matrix, s[0].closures.first, s[0].closures.last, s[0].rows.left, rows, w)
    for r in range(rows):
        s[0].rows.force[r, w] = s[0].rows.force[r, w] + s[0].rows.left[r, w]


@wp.func
def eliminate(s: wp.array(dtype=Direct), w: int, rows: int):
    """L U of matrix + softness, its diagonal raised a little, in place; rows that are out stand alone.

    The raised diagonal makes rows that depend on each other share the load (`tree.around.solve_rows`). It is raised by the mean
    (geometric) of a row's own response and the largest there is: by its own alone, rows along which nearly nothing moves would
    take the more for it; by the largest alone, light bodies between heavy ones would not be held.
    """
    largest = vec3(real(0.0))  # by the unit of rows
    freest = real(0.0)  # the largest response, of that of the bodies alone
    for r in range(rows):
        unit = row_unit(s[0].rows, r, w)
        largest[unit] = wp.max(largest[unit], s[0].rows.matrix[r, r, w])
    for r in range(rows):
        if s[0].rows.soft[r, w] == real(0.0) and s[0].rows.child[r] != GEAR:
            least = NO_RESPONSE * largest[row_unit(s[0].rows, r, w)]
            freest = wp.max(freest, s[0].rows.matrix[r, r, w] / wp.max(free_response(s, r, w), least))
    for r in range(rows):
        least = wp.max(NO_RESPONSE * largest[row_unit(s[0].rows, r, w)], HELD * free_response(s, r, w))
        if s[0].rows.matrix[r, r, w] <= least and s[0].rows.soft[r, w] == real(0.0):
            s[0].rows.soft[r, w] = real(-1.0)  # the tree cannot move so
        if s[0].rows.soft[r, w] < real(0.0):
            stand_alone(s[0].closures, s[0].rows, r, w, rows)
        else:
            K = s[0].rows.matrix[r, r, w]
            raised = wp.abs(K)
            if s[0].rows.soft[r, w] == real(0.0) and s[0].rows.child[r] != GEAR:
                raised = wp.sqrt(raised * freest * free_response(s, r, w))
            s[0].rows.gamma[r, w] = raised * RAISED
            s[0].rows.matrix[r, r, w] = K + raised * RAISED + s[0].rows.soft[r, w]
    factorise(s[0].rows.matrix, s[0].closures.first, s[0].closures.last, rows, w)


@wp.func
def keep_changes(s: wp.array(dtype=Direct), w: int):
    """Keep what the tree alone changes, while responses of rows are found."""
    for i in range(s[0].tree.count):
        b = s[0].tree.body[i]
        s[0].rows.a_l[b, w] = s[0].work.change_l[b, w]
        s[0].rows.a_a[b, w] = s[0].work.change_a[b, w]
        for at in range(s[0].tree.row[i].v_start, s[0].tree.row[i].v_start + s[0].tree.row[i].v_size):
            s[0].kept_u[at, w] = s[0].rows.y[at, w]


@wp.func
def felt(s: wp.array(dtype=Direct), r: int, w: int) -> real:
    """What the impulses in rows.force do to a row, by the factored response."""
    out = s[0].rows.soft[r, w] * s[0].rows.force[r, w]
    for x in range(s[0].closures.first[r], s[0].closures.last[r] + 1):
        out = out + s[0].rows.response[r, x, w] * s[0].rows.force[x, w]
    return out


@wp.func
def close_rows(s: wp.array(dtype=Direct), w: int, keep: bool, rounds: int):
    """On top of the changes that were kept, those by impulses that close the rows; these may be added to `row_impulse`.

    More rounds than one only with factors of the rows as they are: along what rows nearly share they would part.
    """
    rows = s[0].closures.count
    rate = real(2.0) / s[0].drift[w]
    soft = rows - s[0].closures.springs.count
    for r in range(rows):
        free = rate_of(s, r, w, s[0].rows.a_l, s[0].rows.a_a, s[0].kept_u)
        gap = s[0].rows.gap[r, w]
        if r < soft:
            gap = gap * rate
        s[0].rows.rhs[r, w] = -free - gap
        s[0].rows.force[r, w] = real(0.0)
    first = real(0.0)
    for round in range(rounds):
        most = real(0.0)
        for r in range(rows):
            left = real(0.0)
            if s[0].rows.soft[r, w] >= real(0.0):
                left = s[0].rows.rhs[r, w]
                if round > 0:
                    left = left - felt(s, r, w)
            s[0].rows.left[r, w] = left
            if row_unit(s[0].rows, r, w) == 0:
                left = left * s[0].settings.per_metre[0]
            most = wp.max(most, wp.abs(left))
        if round == 0:
            first = most
        if round > 0 and most <= ENOUGH * first:
            break
        spread(s, w, rows)
    push_rows(s, w)
    if keep:
        for r in range(rows):
            s[0].row_impulse[r, w] = s[0].row_impulse[r, w] + s[0].rows.force[r, w]
    for i in range(s[0].tree.count):
        b = s[0].tree.body[i]
        s[0].work.change_l[b, w] = s[0].work.change_l[b, w] + s[0].rows.a_l[b, w]
        s[0].work.change_a[b, w] = s[0].work.change_a[b, w] + s[0].rows.a_a[b, w]
