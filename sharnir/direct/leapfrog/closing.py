"""Closing the joints of a direct step: rows beside the tree, gaps at the new pose, and passes over vectors that close them."""

import warp as wp

from sharnir.direct.balls import FREE, NONE, ball_close_inward, ball_close_outward, kind_of
from sharnir.direct.data import Direct
from sharnir.direct.gaps import any_gap, axis_gap, gap_size, gear_gap, gear_gap_size, half_gap
from sharnir.direct.leapfrog.links import old_velocity
from sharnir.direct.leapfrog.place import axis_curvature
from sharnir.joint_geometry import joint_gap
from sharnir.kinematics import pose_at
from sharnir.laws.prepare import LEAP, law_shares, resolved_spring
from sharnir.spatial import exp_quat, matrix, mean_spin, turned, unit
from sharnir.tree.around import RAISED, eliminate, find_rows, response_matrix, row_rate, solve_rows, spread
from sharnir.tree.data import LOOSE, natural
from sharnir.tree.matrices import packed_times
from sharnir.tree.passes import loose_response
from sharnir.types import EPSILON, mat33, quat, real, vec3, vec6

STALLED = wp.constant(real(max(1.0e-7, 100.0 * EPSILON)))  # of a gap: passes that stop here are as good as closed


IDLE = wp.constant(real(0.25))  # part of the squares of rows' impulses
NEARLY = wp.constant(real(1.0e-10))  # relative response below which a row is taken to have a given impulse


# ---- rows beside the tree ---------------------------------------------------------------------------------------------------


@wp.func
def soften(s: wp.array(dtype=Direct), r: int, i: int, w: int):
    """Softness and rest of a spring's row: p = −a u − b, by the rule of the springs of joints (`law_shares`)."""
    h = s[0].kick[w]
    dt = s[0].drift[w]
    k = s[0].closures.springs.stiffness[i, w]
    c = s[0].closures.springs.damping[i, w]
    response = s[0].rows.matrix[r, r, w]
    s[0].rows.soft[r, w] = real(-1.0)
    if response <= real(0.0):
        return  # nothing there can move
    if k + c > real(0.0) and wp.length_sq(s[0].rows.child_l[r, w]) > real(0.0):
        end, start, far, near = law_shares(s, w, LEAP, resolved_spring(dt, k, c, response))
        u = old_rate(s, r, w) - real(0.5) * dt * s[0].rows.gamma[r, w]  # the way before was a chord, too
        a = wp.max(h * (dt * k * far + c * end), NEARLY / response)
        b = h * (k * (s[0].rows.gap[r, w] + dt * near * u) + c * start * u)
        s[0].rows.soft[r, w] = real(1.0) / a
        s[0].rows.rhs[r, w] = s[0].rows.rhs[r, w] - b / a


@wp.func
def old_rate(s: wp.array(dtype=Direct), r: int, w: int) -> real:
    """Speed of a row that joins bodies, before the step."""
    c = s[0].rows.child[r]
    p = s[0].rows.parent[r]
    own = wp.dot(s[0].rows.child_l[r, w], old_velocity(s, c, w)) + wp.dot(s[0].rows.child_a[r, w], s[0].work.spin[c, w])
    own = own + wp.dot(s[0].rows.parent_l[r, w], old_velocity(s, p, w))
    return own + wp.dot(s[0].rows.parent_a[r, w], s[0].work.spin[p, w])


@wp.func
def curve_rows(s: wp.array(dtype=Direct), w: int):
    """γ of rods and gears as of the tree's joints: with spins that change by themselves, and axes that turn."""
    first = 6 * s[0].closures.welds
    for r in range(first, first + s[0].closures.rods):
        own = wp.dot(s[0].rows.child_a[r, w], s[0].gyration[s[0].rows.child[r], w])
        s[0].rows.gamma[r, w] += own + wp.dot(s[0].rows.parent_a[r, w], s[0].gyration[s[0].rows.parent[r], w])
    first = first + s[0].closures.rods
    for g in range(s[0].closures.gears):
        a = axis_curvature(s, s[0].gears.joint_a[g], s[0].gears.axis_a[g], w)
        b = axis_curvature(s, s[0].gears.joint_b[g], s[0].gears.axis_b[g], w)
        s[0].rows.gamma[first + g, w] = a - s[0].gears.ratio[g] * b


@wp.func
def ease_rows(s: wp.array(dtype=Direct), w: int):
    """Take out of the rows' impulses what moves nothing, where that is most of them.

    Rows that depend on each other are curved by a little more or less than each other; what the raised diagonal answers to that
    would be read as a load, of any size. The response of each row to itself stands in `mean_cl`.
    """
    rows = s[0].closures.count
    for r in range(rows):
        s[0].rows.force[r, w] = real(0.0)
        s[0].rows.left[r, w] = real(0.0)
        if s[0].rows.soft[r, w] == real(0.0):
            s[0].rows.left[r, w] = -RAISED * s[0].mean_cl[r, w][0] * s[0].row_impulse[r, w]
    spread(s[0].closures, s[0].rows, w, rows)
    all = real(0.0)
    idle = real(0.0)
    for r in range(rows):
        K = s[0].mean_cl[r, w][0]
        all = all + K * s[0].row_impulse[r, w] * s[0].row_impulse[r, w]
        idle = idle + K * s[0].rows.force[r, w] * s[0].rows.force[r, w]
    if idle > IDLE * all:
        for r in range(rows):
            s[0].row_impulse[r, w] = s[0].row_impulse[r, w] + s[0].rows.force[r, w]


@wp.func
def constrain_rows(s: wp.array(dtype=Direct), w: int, chord: real):
    """Impulses on welds, rods, gears and springs, added to the links' u: J V⁺ = chord · γ."""
    rows = s[0].closures.count
    hard = rows - s[0].closures.springs.count
    find_rows(s[0].joints, s[0].closures, s[0].rows, s[0].work, s[0].state.q, w)
    if chord != real(0.0):
        curve_rows(s, w)
    for i in range(s[0].closures.rods):
        if s[0].control.enabled[s[0].closures.rod_joint[i], w] == 0:
            s[0].rows.soft[6 * s[0].closures.welds + i, w] = real(-1.0)
    for r in range(rows):
        free = row_rate(s[0].closures, s[0].rows, r, w, s[0].work.acceleration, s[0].work.turning, s[0].speed)
        s[0].rows.rhs[r, w] = chord * s[0].rows.gamma[r, w] - free
    response_matrix(s[0].joints, s[0].tree, s[0].closures, s[0].rows, s[0].work, w, rows)
    for r in range(hard, rows):
        soften(s, r, r - hard, w)
    for r in range(rows):
        s[0].mean_cl[r, w] = vec3(s[0].rows.matrix[r, r, w], real(0.0), real(0.0))
    eliminate(s[0].closures, s[0].rows, w, rows)
    solve_rows(s[0].joints, s[0].tree, s[0].closures, s[0].rows, s[0].work, w, rows)
    for r in range(rows):
        s[0].row_impulse[r, w] = s[0].rows.force[r, w]
    ease_rows(s, w)
    for i in range(s[0].tree.count):
        j = s[0].tree.joint[i]
        for a in range(s[0].joints.v_start[j], s[0].joints.v_start[j] + s[0].joints.v_size[j]):
            s[0].work.u[a, w] = s[0].work.u[a, w] + s[0].rows.u[a, w]
        if s[0].work.kind[i, w] == LOOSE:
            b = s[0].tree.body[i]
            s[0].work.acceleration[b, w] = s[0].work.acceleration[b, w] + s[0].rows.a_l[b, w]
            s[0].work.turning[b, w] = s[0].work.turning[b, w] + s[0].rows.a_a[b, w]


@wp.func
def row_gaps(s: wp.array(dtype=Direct), w: int) -> real:
    """Gaps of rods and gears at the new pose, in rows.gap; returns the largest."""
    hard = s[0].closures.count - s[0].closures.springs.count
    first = 6 * s[0].closures.welds
    most = real(0.0)
    for r in range(first, hard):
        gap = real(0.0)
        g = r - first
        if g < s[0].closures.rods:
            j = s[0].closures.rod_joint[g]
            linear, _angular = joint_gap(s[0].joints, j, pose_at(s[0].joints, j, w, s[0].position, s[0].rotation))
            gap = wp.dot(s[0].rows.child_l[r, w], linear)
            if s[0].control.enabled[j, w] == 0:
                gap = real(0.0)
            most = wp.max(most, wp.abs(gap) * s[0].settings.per_metre[0])
        else:
            gap = gear_gap(s, g - s[0].closures.rods, w)
            most = wp.max(most, gear_gap_size(s, g - s[0].closures.rods, gap))
        s[0].rows.gap[r, w] = gap
    return most


@wp.func
def halves_apart(s: wp.array(dtype=Direct), w: int) -> real:
    """How far halves of bodies that were cut stand apart: one of them is taken, and the joint of the other is so far open."""
    most = real(0.0)
    for i in range(s[0].closures.welds):
        gap, turn = half_gap(s, i, w)
        most = wp.max(most, gap_size(s, gap, turn))
    return most


@wp.func
def close_rows(s: wp.array(dtype=Direct), w: int, level: int):
    """Close rods and gears and keep halves together, on top of what closing the tree's joints changes.

    By velocities (level 1) it takes impulses, by displacements alone (0) none.
    """
    rows = s[0].closures.count
    hard = rows - s[0].closures.springs.count
    first = 6 * s[0].closures.welds
    rate = real(1.0) / s[0].drift[w]
    for r in range(rows):
        s[0].rows.rhs[r, w] = -row_rate(s[0].closures, s[0].rows, r, w, s[0].work.change_l, s[0].work.change_a, s[0].work.change)
        if r >= first and r < hard:
            s[0].rows.rhs[r, w] = s[0].rows.rhs[r, w] - s[0].rows.gap[r, w] * rate
    solve_rows(s[0].joints, s[0].tree, s[0].closures, s[0].rows, s[0].work, w, rows)
    for r in range(rows):
        s[0].row_impulse[r, w] = s[0].row_impulse[r, w] + s[0].rows.force[r, w] * real(level)
    for i in range(s[0].tree.count):
        b = s[0].tree.body[i]
        s[0].work.change_l[b, w] = s[0].work.change_l[b, w] + s[0].rows.a_l[b, w]
        s[0].work.change_a[b, w] = s[0].work.change_a[b, w] + s[0].rows.a_a[b, w]


# ---- gaps of the tree's joints ----------------------------------------------------------------------------------------------


@wp.func
def advance(s: wp.array(dtype=Direct), i: int, w: int, first: bool, v: vec3, spin: vec3, change: vec3):
    """X ⊕ Δt V of a link from the start of the step, and ω·L; the guess of Ω is that of the last pass, if there was one."""
    b = natural(s[0].tree.row[i].body)
    own = natural(s[0].half_of[b])
    dt = s[0].drift[w]
    x = s[0].work.position[b, w] + (v * dt + s[0].state.rest[own, w])
    R = s[0].work.rotation[b, w]
    I = s[0].whole.inertia[own, w]
    spin = wp.quat_rotate_inv(R, spin)
    l = I * spin
    guess = spin
    if first:
        guess = spin - s[0].whole.inv_inertia[own, w] * wp.cross(spin, l) * (real(0.5) * dt)
    else:
        guess = s[0].mean_spin[b, w] + wp.quat_rotate_inv(R, change)
    omega = mean_spin(l, guess, I, dt)
    s[0].mean_spin[b, w] = omega
    return x, unit(R * exp_quat(omega * dt)), wp.dot(l, spin)


@wp.func
def displace(s: wp.array(dtype=Direct), i: int, w: int, v: vec3, spin: vec3):
    """The new pose of a link, moved on by what a pass changed."""
    b = s[0].tree.row[i].body
    dt = s[0].drift[w]
    return s[0].position[b, w] + v * dt, turned(s[0].rotation[b, w], spin * dt)


@wp.func
def move_all(s: wp.array(dtype=Direct), w: int, scope: int, how: int) -> real:
    """New poses: from the start (0), or after what closing changes, by velocities (1) or displacements alone (2).

    Gaps become a′ of the links; returns the largest, m or rad. What a link needs of the one before it stays in registers.
    """
    w = natural(w)
    rate = real(-1.0) / s[0].drift[w]
    most = real(0.0)
    energy = real(0.0)
    last = int(-1)
    x_b = vec3(real(0.0))
    M_b = mat33(real(0.0))
    dv = vec3(real(0.0))
    dw = vec3(real(0.0))
    for n in range(s[0].tree.count):
        i = natural(n)
        b = natural(s[0].tree.row[i].body)
        if s[0].tree.row[i].base != last:
            base = natural(s[0].tree.row[i].base)
            x_b = s[0].position[base, w]
            M_b = matrix(s[0].rotation[base, w])
            if how > 0:
                dv = s[0].work.change_l[base, w]
                dw = s[0].work.change_a[base, w]
        if how > 0:
            if scope > 1 and (s[0].closures.count > 0 or s[0].roped == 1):
                dv = s[0].work.change_l[b, w]
                dw = s[0].work.change_a[b, w]
            else:
                dv, dw = close_outward(s, i, w, scope, dv, dw)
                if s[0].tree.row[i].gathers == 1:
                    s[0].work.change_l[b, w] = dv
                    s[0].work.change_a[b, w] = dw
        x = vec3(real(0.0))
        R = quat()
        if how == 2:
            x, R = displace(s, i, w, dv, dw)
            l = wp.quat_rotate_inv(R, dw)
            energy = energy + wp.dot(dv, dv) * s[0].tree.mass[i, w] + wp.dot(l, s[0].whole.inertia[s[0].half_of[b], w] * l)
        else:
            v = s[0].work.acceleration[b, w] + dv
            spin = s[0].work.turning[b, w] + dw
            if how == 1:
                s[0].work.acceleration[b, w] = v
                s[0].work.turning[b, w] = spin
            x, R, turning = advance(s, i, w, how == 0, v, spin, dw)
            if scope > 1:
                turning = turning / s[0].tree.row[i].parts
            energy = energy + wp.dot(v, v) * s[0].tree.mass[i, w] + turning
        s[0].position[b, w] = x
        s[0].rotation[b, w] = R
        M = matrix(R)
        linear = vec3(real(0.0))
        angular = vec3(real(0.0))
        kind = kind_of(s, i, w, scope)
        if kind != LOOSE and (scope == 0 or s[0].tree.row[i].kind == FREE or s[0].tree.row[i].hinge == 1):
            linear = (x - x_b) + (M * s[0].tree.place[i, w].own_point - M_b * s[0].tree.place[i, w].base_point)
            if s[0].tree.row[i].hinge == 1:
                angular = axis_gap(M_b * s[0].tree.place[i, w].base_axis, M * s[0].tree.place[i, w].axis)
        elif scope > 0 and kind == NONE:
            linear, angular = any_gap(s, i, w)
        most = wp.max(most, gap_size(s, linear, angular))
        if kind == NONE:
            angular = angular * rate
            s[0].work.close_l[i, w] = linear * rate + wp.cross(angular, s[0].work.out[i, w])
            s[0].work.close_a[i, w] = angular
        else:
            s[0].work.close_l[i, w] = linear * rate
        x_b = x
        M_b = M
        last = s[0].tree.row[i].body
    if how < 2:
        s[0].after[w] = energy
        s[0].shifted[w] = real(0.0)
    else:
        s[0].shifted[w] = wp.max(s[0].shifted[w], energy)
    if scope > 1 and s[0].closures.count > 0:
        most = wp.max(most, row_gaps(s, w))
    return most


# ---- passes over vectors ----------------------------------------------------------------------------------------------------


@wp.func
def close_inward(s: wp.array(dtype=Direct), w: int, scope: int, pushed: bool):
    """Gaps as a′, in work.close, handed inwards with the factors of the last inward pass: over vectors alone.

    Links may be pushed, too, by impulses in work.Q.
    """
    w = natural(w)
    zero = vec3(real(0.0))
    ql = zero
    qa = zero
    handed = int(0)
    for h in range(s[0].tree.count):
        i = natural(s[0].tree.count - 1 - h)
        if handed == 0:
            ql = zero
            qa = zero
        if pushed or s[0].tree.row[i].gathers == 1:
            ql = ql + s[0].work.Q_l[i, w]
            qa = qa + s[0].work.Q_a[i, w]
            s[0].work.Q_l[i, w] = zero
            s[0].work.Q_a[i, w] = zero
        kind = kind_of(s, i, w, scope)
        if kind == LOOSE:
            dv, dw = loose_response(s[0].work, i, w, ql, qa)
            s[0].work.change_l[s[0].tree.row[i].body, w] = dv
            s[0].work.change_a[s[0].tree.row[i].body, w] = dw
            ql = zero
            qa = zero
        elif kind != NONE:
            ql, qa = ball_close_inward(s, i, w, scope, ql, qa, zero)
        else:
            n = s[0].tree.row[i].v_size
            v0 = natural(s[0].tree.row[i].v_start)
            el = s[0].work.close_l[i, w]
            ea = s[0].work.close_a[i, w]
            B = s[0].work.full_B[i, w]
            fl = ql - (packed_times(s[0].work.full_A[i, w], el) + B * ea)
            fa = qa - (el * B + packed_times(s[0].work.full_D[i, w], ea))
            for a in range(v0, v0 + n):
                s[0].work.change[a, w] = wp.dot(s[0].work.S_l[a, w], ql) + wp.dot(s[0].work.S_a[a, w], qa)
            if n == 1:
                y = s[0].work.Y[v0, w] * s[0].work.change[v0, w]
                fl = fl - s[0].work.H_l[v0, w] * y
                fa = fa - s[0].work.H_a[v0, w] * y
            elif scope > 0 and n > 1:
                for a in range(n):
                    y = real(0.0)
                    for b in range(n):
                        y = y + s[0].work.response[i, w][a, b] * s[0].work.change[v0 + b, w]
                    fl = fl - s[0].work.H_l[v0 + a, w] * y
                    fa = fa - s[0].work.H_a[v0 + a, w] * y
            ql = fl
            qa = fa + wp.cross(s[0].work.arm[i, w], fl)
        p = s[0].tree.row[i].base_link
        handed = 0
        if p == i - 1:
            handed = 1
        elif p >= 0:
            s[0].work.Q_l[p, w] = s[0].work.Q_l[p, w] + ql
            s[0].work.Q_a[p, w] = s[0].work.Q_a[p, w] + qa


@wp.func
def close_outward(s: wp.array(dtype=Direct), i: int, w: int, scope: int, v: vec3, omega: vec3):
    """Change of a link's velocity and spin by the closing, from that of its base's."""
    kind = kind_of(s, i, w, scope)
    if kind == LOOSE:
        return s[0].work.change_l[s[0].tree.row[i].body, w], s[0].work.change_a[s[0].tree.row[i].body, w]
    if kind != NONE:
        return ball_close_outward(s, i, w, scope, v, omega)
    n = s[0].tree.row[i].v_size
    v0 = natural(s[0].tree.row[i].v_start)
    v = v + wp.cross(omega, s[0].work.arm[i, w]) + s[0].work.close_l[i, w]
    omega = omega + s[0].work.close_a[i, w]
    if n == 1:
        y = s[0].work.change[v0, w] - wp.dot(s[0].work.H_l[v0, w], v) - wp.dot(s[0].work.H_a[v0, w], omega)
        y = y * s[0].work.Y[v0, w]
        s[0].work.change[v0, w] = y
        v = v + s[0].work.S_l[v0, w] * y
        omega = omega + s[0].work.S_a[v0, w] * y
    elif scope > 0 and n > 1:
        rest = vec6()
        for a in range(n):
            felt = wp.dot(s[0].work.H_l[v0 + a, w], v) + wp.dot(s[0].work.H_a[v0 + a, w], omega)
            rest[a] = s[0].work.change[v0 + a, w] - felt
        rest = s[0].work.response[i, w] * rest
        for a in range(n):
            s[0].work.change[v0 + a, w] = rest[a]
            v = v + s[0].work.S_l[v0 + a, w] * rest[a]
            omega = omega + s[0].work.S_a[v0 + a, w] * rest[a]
    return v, omega


@wp.func
def respond_closing(s: wp.array(dtype=Direct), w: int, scope: int, pushed: bool):
    """What all links and axes do in response to what closes them, into work.change."""
    close_inward(s, w, scope, pushed)
    for i in range(s[0].tree.count):
        base = s[0].tree.row[i].base
        v, omega = close_outward(s, i, w, scope, s[0].work.change_l[base, w], s[0].work.change_a[base, w])
        s[0].work.change_l[s[0].tree.row[i].body, w] = v
        s[0].work.change_a[s[0].tree.row[i].body, w] = omega


@wp.func
def close_once(s: wp.array(dtype=Direct), w: int, scope: int, level: int) -> real:
    """One pass, by velocities that stay (level 1) or by displacements alone (0); returns how far joints are open after it."""
    if scope > 1 and s[0].closures.count > 0:
        respond_closing(s, w, scope, False)
        close_rows(s, w, level)
    else:
        close_inward(s, w, scope, False)
    return move_all(s, w, scope, 2 - level)


@wp.func
def close(s: wp.array(dtype=Direct), w: int, scope: int, level: int) -> real:
    """Close the joints at the end of the step; returns how far they stay open, negative where passes did not contract.

    At position level (1) the velocities take what it needs, so that the step is symmetric; else (0) poses alone are moved.
    """
    tolerance = s[0].settings.tolerance[1]
    off = move_all(s, w, scope, 0)
    last = off
    slow = int(0)
    for _i in range(s[0].settings.iterations[1]):
        if not off > tolerance:
            break
        last = off
        off = close_once(s, w, scope, level)
        if not off < real(0.5) * last:
            slow = slow + 1
            if slow == 2 or not off < real(4.0) * last:
                break
    if off > tolerance and not off <= STALLED:
        return -off
    return off


@wp.func
def place_outward(s: wp.array(dtype=Direct), w: int):
    """Hang every link on its base where that stands: joints of the tree are closed, whatever speeds are."""
    for i in range(s[0].tree.count):
        b = s[0].tree.body[i]
        for _i in range(4):
            linear, angular = any_gap(s, i, w)
            s[0].rotation[b, w] = turned(s[0].rotation[b, w], -angular)
            s[0].position[b, w] = s[0].position[b, w] - linear
