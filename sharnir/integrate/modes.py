"""The right-hand side of a mechanism's motion, with all that acts on it, and its changes of mode: stick, slip, limit, impact.

Between changes of mode the motion is smooth. A group of axes that friction holds is locked; one that slides is pushed against
its speed. An axis at its limit is locked too. `margin` is positive as long as the modes hold, `reclassify` and `correct_modes`
find those that hold next, `speeds_after_impact` the speeds after an impact:

Functions are given an array m of one `Motion` and read m[0] in place: a copy of so large a structure costs time, most of all the
compiler's.

    slides:   u·n > 0, n its heading when it began (so the force goes on smoothly past u = 0, until the change is located)
    held:     |force needed| < what can hold                 at a limit:   the limit pushes
"""

import warp as wp

from sharnir.core.spatial import exp_quat
from sharnir.core.types import mat66, quat, real, vec3, vec6
from sharnir.engine.articulated.loop_rows import clear_row_forces, row_rate, solve_rows, tree_response
from sharnir.engine.articulated.matrices import small_inverse
from sharnir.engine.articulated.passes import base_acceleration, left_over
from sharnir.integrate.data import BEGUN, Motion
from sharnir.integrate.forces import friction_force, has_friction, has_limit, limit_gaps, row_bend, speed_of_coordinate
from sharnir.laws.solve import friction_3d

MOST_TRIES = wp.constant(400)  # to find the modes at one time
TRIES_TOGETHER = wp.constant(10)  # tries in which all wrong modes change at once; after them one by one, in order
AIMED = wp.constant(real(1.0e-9))  # a heading that is off by less is right
STOPPING_SPEED = wp.constant(real(1.0e-8))  # m/s, rad/s: a vector that slows down to it stops
NO_SPEED = wp.constant(real(1.0e-9))  # m/s, rad/s: no speed
LIMIT_DRIFT = wp.constant(real(1.0e-6))  # m, rad, m/s, rad/s: so far a limit in touch may have come off by rounding
GRAZES = wp.constant(real(1.0e-12))  # m/s, rad/s past zero that do not yet count as a change of mode
PAST_LIMIT = wp.constant(real(1.0e-13))  # m, rad: nor is this, past a limit
AT_LIMIT_GAP = wp.constant(real(1.0e-9))  # m, rad: at a limit
BOUNCE = wp.constant(real(1.0e-11))  # m, rad: one that would rise less is none
NO_ACCELERATION = wp.constant(real(1.0e-11))  # m/s², rad/s²: no acceleration


# ---- modes ------------------------------------------------------------------------------------------------------------------


@wp.func
def lock_force(m: wp.array(dtype=Motion), i: int, w: int) -> vec6:
    """Forces of the locks of a link's joint on its axes, as the right-hand side found them."""
    j = m[0].tree.joint[i]
    n = m[0].joints.v_size[j]
    v0 = m[0].joints.v_start[j]
    al, aa = base_acceleration(m[0].tree, i, w, m[0].work)
    rest = left_over(m[0].joints, m[0].tree, i, w, al, aa, m[0].work)
    if m[0].closures.count > m[0].closures.springs.count:
        for x in range(n):
            rest[x] = rest[x] + m[0].rows.u[v0 + x, w]
    out = vec6()
    if n == 1:
        out[0] = (m[0].work.U[v0, w] + m[0].laws.resist[v0, w]) * m[0].a[v0, w] - rest[0]
        return out
    U = small_inverse(m[0].work.inverse[i, w], n) + m[0].laws.coupled[i, w]
    for x in range(n):
        out[x] = -rest[x]
        for y in range(n):
            out[x] = out[x] + U[x, y] * m[0].a[v0 + y, w]
    return out


@wp.func
def shares(rows: mat66, along: vec6, n: int) -> vec6:
    """Multiples of rows, some of them none, whose sum has the given products with the rows."""
    gram = mat66()
    for x in range(n):
        for y in range(n):
            gram[x, y] = wp.dot(rows[x], rows[y])
        gram[x, x] = gram[x, x] * (real(1.0) + real(1.0e-14))
        if gram[x, x] == real(0.0):
            gram[x, x] = real(1.0)
    return small_inverse(gram, n) * along


@wp.func
def limit_rows(m: wp.array(dtype=Motion), j: int, w: int) -> mat66:
    """The directions of the limits that a joint touches, inwards."""
    rows = mat66()
    for x in range(m[0].joints.v_size[j]):
        side = m[0].touch[m[0].joints.v_start[j] + x, w]
        if side != 0 and has_limit(m, j, x, w):
            _low, _high, g = limit_gaps(m, j, x, w)
            rows[x] = g * real(side)
    return rows


@wp.func
def limit_forces(m: wp.array(dtype=Motion), j: int, w: int, F: vec6) -> vec6:
    """The part of the locks' forces that each limit in touch takes along its direction, inwards positive: F = Σ g λ."""
    rows = limit_rows(m, j, w)
    return shares(rows, rows * F, m[0].joints.v_size[j])


@wp.func
def limit_share(m: wp.array(dtype=Motion), j: int, w: int, F: vec6) -> vec6:
    """The part of the locks' forces that is left to friction: all but what limits in touch can take."""
    rows = limit_rows(m, j, w)
    taken = shares(rows, rows * F, m[0].joints.v_size[j])
    for x in range(m[0].joints.v_size[j]):
        if taken[x] > real(0.0):
            F = F - rows[x] * taken[x]
    return F


@wp.func
def group_size(m: wp.array(dtype=Motion), j: int, head: int, f: vec6) -> real:
    """Length of a joint's vector within a friction group."""
    size = real(0.0)
    for x in range(head, m[0].joints.v_size[j]):
        if m[0].axes.group[m[0].joints.v_start[j] + x] == head:
            size = size + f[x] * f[x]
    return wp.sqrt(size)


@wp.func
def slack(hold: real, F: vec6) -> real:
    """How far a force may pass its bound without a change of mode, N or N·m."""
    return real(1.0e-11) * (real(1.0) + hold + wp.length(F))


@wp.func
def limit_accelerates(m: wp.array(dtype=Motion), j: int, i: int, g: vec6, w: int) -> real:
    """Acceleration along the direction of a limit, after the right-hand side."""
    a = row_bend(m, j, i, w)
    for x in range(m[0].joints.v_size[j]):
        a = a + g[x] * m[0].a[m[0].joints.v_start[j] + x, w]
    return a


@wp.func
def ahead(m: wp.array(dtype=Motion), j: int, head: int, w: int, u: wp.array2d(dtype=real)) -> real:
    """A group's speed or acceleration along its heading."""
    v0 = m[0].joints.v_start[j]
    along = real(0.0)
    for x in range(head, m[0].joints.v_size[j]):
        if m[0].axes.group[v0 + x] == head:
            along = along + u[v0 + x, w] * m[0].heading[v0 + x, w]
    return along


@wp.func
def members(m: wp.array(dtype=Motion), j: int, head: int) -> tuple[int, wp.vec3i]:
    """How many axes a group has, and which of the joint's they are."""
    index = wp.vec3i(0, 0, 0)
    count = int(0)
    for y in range(head, m[0].joints.v_size[j]):
        if m[0].axes.group[m[0].joints.v_start[j] + y] == head:
            index[count] = y
            count = count + 1
    return count, index


@wp.func
def group_speed(m: wp.array(dtype=Motion), j: int, head: int, w: int) -> real:
    u = vec6()
    for x in range(head, m[0].joints.v_size[j]):
        u[x] = m[0].v[m[0].joints.v_start[j] + x, w]
    return group_size(m, j, head, u)


@wp.func
def margin(m: wp.array(dtype=Motion), w: int) -> real:
    """Positive while the modes hold at the state of the last right-hand side; what grazes zero is let pass."""
    least = real(1.0e30)
    for i in range(m[0].tree.count):
        j = m[0].tree.joint[i]
        if j < m[0].own:
            n = m[0].joints.v_size[j]
            v0 = m[0].joints.v_start[j]
            F = vec6()
            push = vec6()
            if m[0].laws.locks[i, w] > 0:
                F = lock_force(m, i, w)
                push = limit_forces(m, j, w, F)
            for x in range(n):
                at = v0 + x
                hold = friction_force(m, j, v0 + m[0].axes.group[at], w, real(0.0), True)
                if m[0].axes.group[at] == x and has_friction(m, at, w):
                    if m[0].held[at, w] == 1:
                        least = wp.min(least, hold - group_size(m, j, x, limit_share(m, j, w, F)) + slack(hold, F))
                    elif m[0].touch[at, w] == 0 or n > 1:
                        least = wp.min(least, ahead(m, j, x, w, m[0].v) + GRAZES)
                        count, _index = members(m, j, x)
                        if count > 1 and m[0].departs[at, w] == 0:
                            least = wp.min(least, group_speed(m, j, x, w) - STOPPING_SPEED)
                if has_limit(m, j, x, w):
                    low, high, _g = limit_gaps(m, j, x, w)
                    if m[0].touch[at, w] != 0:
                        room = real(0.0)
                        if n == 1 and has_friction(m, at, w):
                            room = hold
                        least = wp.min(least, push[x] + room + slack(hold, F))
                    else:
                        least = wp.min(least, wp.min(low, high) + PAST_LIMIT)
    return least


@wp.func
def meet_limit(m: wp.array(dtype=Motion), j: int, x: int, w: int) -> None:
    """An axis at its limit: touching or striking it, moved onto it exactly; `wanted` is the change of speed that is due."""
    v0 = m[0].joints.v_start[j]
    at = v0 + x
    low, high, g = limit_gaps(m, j, x, w)
    near = AT_LIMIT_GAP
    slow = NO_SPEED
    if m[0].touch[at, w] != 0:
        near = LIMIT_DRIFT
        slow = LIMIT_DRIFT
    side = real(0.0)
    if low <= near:
        side = real(1.0)
    elif high <= near:
        side = real(-1.0)
    m[0].touch[at, w] = 0
    m[0].wanted[at, w] = real(0.0)
    if side == real(0.0):
        return
    u = speed_of_coordinate(m, j, g, w)
    m[0].wanted[at, w] = -u
    if u * side > slow:
        return
    m[0].touch[at, w] = int(side)
    if u * side < -slow:
        back = -m[0].axes.restitution[at, w] * u
        fall = -limit_accelerates(m, j, x, g, w) * side
        if back * back < real(2.0) * fall * BOUNCE or wp.abs(back) < NO_SPEED:
            back = real(0.0)
        m[0].wanted[at, w] = back - u
        m[0].striking[w] = 1


@wp.func
def move_onto_limits(m: wp.array(dtype=Motion), j: int, w: int) -> None:
    """Bring a joint exactly onto the limits that it touches, and inside those that it leaves."""
    n = m[0].joints.v_size[j]
    v0 = m[0].joints.v_start[j]
    q0 = m[0].joints.q_start[j]
    rows = mat66()
    gaps = vec6()
    any = bool(False)
    for x in range(n):
        if has_limit(m, j, x, w):
            low, high, g = limit_gaps(m, j, x, w)
            if m[0].touch[v0 + x, w] == 1 or (m[0].touch[v0 + x, w] == 0 and low < real(0.0)):
                rows[x] = g
                gaps[x] = -low
                any = True
            elif m[0].touch[v0 + x, w] == -1 or high < real(0.0):
                rows[x] = -g
                gaps[x] = -high
                any = True
    if not any:
        return
    by = wp.transpose(rows) * shares(rows, gaps, n)
    plain = n
    if m[0].joints.turns[j] == 3:
        plain = n - 3
        at = q0 + plain
        turn = exp_quat(vec3(by[plain], by[plain + 1], by[plain + 2]))
        p = turn * quat(m[0].q[at, w], m[0].q[at + 1, w], m[0].q[at + 2, w], m[0].q[at + 3, w])
        for c in range(4):
            m[0].q[at + c, w] = p[c]
    for c in range(plain):
        m[0].q[q0 + c, w] = m[0].q[q0 + c, w] + by[c]


@wp.func
def rest_on_limits(m: wp.array(dtype=Motion), j: int, w: int) -> None:
    """Take what is left of a joint's speeds along the limits that it touches."""
    n = m[0].joints.v_size[j]
    v0 = m[0].joints.v_start[j]
    u = vec6()
    for x in range(n):
        u[x] = m[0].v[v0 + x, w]
    rows = limit_rows(m, j, w)
    by = wp.transpose(rows) * shares(rows, rows * u, n)
    for x in range(n):
        m[0].v[v0 + x, w] = m[0].v[v0 + x, w] - by[x]


@wp.func
def meet_friction(m: wp.array(dtype=Motion), j: int, head: int, w: int, slow: real) -> None:
    """A friction group that rests is held, one that moves slides."""
    v0 = m[0].joints.v_start[j]
    n = m[0].joints.v_size[j]
    count, _index = members(m, j, head)
    size = group_speed(m, j, head, w)
    begins = m[0].departs[v0 + head, w] == 1 and size < real(1.0e3) * BEGUN
    turned_back = ahead(m, j, head, w, m[0].v) <= real(0.0)
    stops = size <= NO_SPEED
    if count > 1:
        stops = size <= real(1.01) * STOPPING_SPEED or (turned_back and (size <= slow or (begins and size <= BEGUN)))
    for y in range(head, n):
        at = v0 + y
        if m[0].axes.group[at] == head:
            m[0].held[at, w] = int(stops)
            m[0].departs[at, w] = int(stops or begins)
            if stops:
                m[0].v[at, w] = real(0.0)
            elif turned_back or not begins:
                m[0].heading[at, w] = m[0].v[at, w] / size


@wp.func
def reclassify(m: wp.array(dtype=Motion), w: int, slow: real) -> None:
    """Modes that follow from the state itself: what has come to rest may be held, what has reached a limit touches or strikes it.

    `slow` is the speed below which a vector that turns back counts as at rest: it passes near zero, not through it.
    """
    m[0].tries[w] = 0
    m[0].striking[w] = 0
    for i in range(m[0].tree.count):
        j = m[0].tree.joint[i]
        if j < m[0].own:
            for x in range(m[0].joints.v_size[j]):
                if has_limit(m, j, x, w):
                    meet_limit(m, j, x, w)
    for j in range(m[0].own):
        move_onto_limits(m, j, w)
        if m[0].striking[w] == 0:
            rest_on_limits(m, j, w)
        for x in range(m[0].joints.v_size[j]):
            at = m[0].joints.v_start[j] + x
            if m[0].axes.group[at] == x and has_friction(m, at, w):
                meet_friction(m, j, x, w, slow)


@wp.func
def release_group(m: wp.array(dtype=Motion), j: int, head: int, w: int, F: vec6) -> None:
    """Let a held group go, against what held it."""
    v0 = m[0].joints.v_start[j]
    size = group_size(m, j, head, F)
    for y in range(head, m[0].joints.v_size[j]):
        if m[0].axes.group[v0 + y] == head:
            m[0].held[v0 + y, w] = 0
            m[0].heading[v0 + y, w] = -F[y] / size


@wp.func
def rests(m: wp.array(dtype=Motion), j: int, head: int, w: int) -> bool:
    """Whether a group that slides has not begun to."""
    return group_speed(m, j, head, w) == real(0.0) and m[0].held[m[0].joints.v_start[j] + head, w] == 0


@wp.func
def push_axis(m: wp.array(dtype=Motion), at: int, w: int) -> None:
    """Accelerations of the axes per unit of force on one of them: `response` with loops cut, probe.y what closing them adds."""
    rows = m[0].closures.count - m[0].closures.springs.count
    clear_row_forces(m[0].joints, m[0].tree, m[0].probe, w, 0, m[0].tree.count)
    m[0].probe.u[at, w] = real(1.0)
    tree_response(m[0].joints, m[0].tree, m[0].probe, m[0].work, w, 0, m[0].tree.count)
    for i in range(m[0].nv):
        m[0].response[i, w] = m[0].probe.y[i, w]
    if rows > 0:
        for r in range(rows):
            m[0].probe.rhs[r, w] = -row_rate(m[0].closures, m[0].probe, r, w, m[0].probe.a_l, m[0].probe.a_a, m[0].probe.y)
        solve_rows(m[0].joints, m[0].tree, m[0].closures, m[0].probe, m[0].work, w, rows)


@wp.func
def depart(m: wp.array(dtype=Motion), j: int, head: int, w: int) -> bool:
    """A group at rest that is to slide: held again if friction can, else its heading is turned to the acceleration that it gets.

    Its acceleration is a = b − W F n with W the mechanism's response; b follows from the a that it has. Whether it changed.
    """
    v0 = m[0].joints.v_start[j]
    count, index = members(m, j, head)
    hold = friction_force(m, j, v0 + head, w, real(0.0), True)
    force = friction_force(m, j, v0 + head, w, real(0.0), False)
    if m[0].tries[w] > 3 * TRIES_TOGETHER:
        hold = force  # where holding one lets another go in a circle, what broke loose stays loose
    W = wp.identity(n=3, dtype=real)
    b = vec3(real(0.0))
    cut = real(0.0)
    closed = real(0.0)
    for c in range(count):
        push_axis(m, v0 + index[c], w)
        cut = cut + m[0].response[v0 + index[c], w]
        b[c] = b[c] + m[0].a[v0 + index[c], w]
        for r in range(count):
            W[r, c] = m[0].response[v0 + index[r], w]
            if m[0].closures.count > m[0].closures.springs.count:
                W[r, c] = W[r, c] + m[0].probe.y[v0 + index[r], w]
            b[r] = b[r] + W[r, c] * force * m[0].heading[v0 + index[c], w]
        closed = closed + W[c, c]
    if closed <= real(1.0e-8) * cut:
        return False  # others hold it
    for c in range(count):
        W[c, c] = W[c, c] + real(1.0e-13) * closed  # a direction may be locked
    f, held = friction_3d(b, W, wp.inverse(W), hold * (real(1.0) - AIMED), force, wp.length(b), vec3(real(0.0)), real(1.0))
    off = real(held)
    for c in range(count):
        at = v0 + index[c]
        m[0].held[at, w] = held
        if held == 0 and force > real(0.0):
            off = wp.max(off, wp.abs(-f[c] / force - m[0].heading[at, w]))
            m[0].heading[at, w] = -f[c] / force
    return off > AIMED


@wp.func
def correct_limit(m: wp.array(dtype=Motion), j: int, x: int, w: int, push: real, F: vec6) -> bool:
    """A limit that pulls lets go, one that an axis at rest on it is driven into holds; whether it changed."""
    n = m[0].joints.v_size[j]
    at = m[0].joints.v_start[j] + x
    low, high, g = limit_gaps(m, j, x, w)
    hold = friction_force(m, j, m[0].joints.v_start[j] + m[0].axes.group[at], w, real(0.0), True)
    if m[0].touch[at, w] != 0:
        room = real(0.5) * slack(hold, F)
        alone = n == 1 and has_friction(m, at, w)
        if alone:
            room = room + hold
        if push >= -room:
            return False
        if alone:
            m[0].held[at, w] = 0
            m[0].heading[at, w] = real(m[0].touch[at, w])
        m[0].touch[at, w] = 0
        return True
    side = int(0)
    if low <= AT_LIMIT_GAP:
        side = 1
    elif high <= AT_LIMIT_GAP:
        side = -1
    if side == 0:
        return False
    u = speed_of_coordinate(m, j, g, w)
    fall = -limit_accelerates(m, j, x, g, w) * real(side)
    if fall <= NO_ACCELERATION or (wp.abs(u) > NO_SPEED and u * u > real(2.0) * fall * BOUNCE):
        return False
    m[0].touch[at, w] = side
    rest_on_limits(m, j, w)
    if n == 1 and has_friction(m, at, w):
        m[0].held[at, w] = 1
    return True


@wp.func
def correct_modes(m: wp.array(dtype=Motion), w: int) -> bool:
    """Correct the modes that the forces of the last right-hand side do not allow; whether any was wrong."""
    m[0].tries[w] = m[0].tries[w] + 1
    changed = bool(False)
    if m[0].tries[w] > MOST_TRIES:
        return changed
    for j in range(m[0].own):
        for x in range(m[0].joints.v_size[j]):
            at = m[0].joints.v_start[j] + x
            if m[0].axes.group[at] == x and has_friction(m, at, w) and rests(m, j, x, w):
                if not (changed and m[0].tries[w] > TRIES_TOGETHER):
                    if depart(m, j, x, w):
                        changed = True
    if changed:
        return changed
    for i in range(m[0].tree.count):
        j = m[0].tree.joint[i]
        if j < m[0].own:
            n = m[0].joints.v_size[j]
            v0 = m[0].joints.v_start[j]
            F = vec6()
            push = vec6()
            if m[0].laws.locks[i, w] > 0:
                F = lock_force(m, i, w)
                push = limit_forces(m, j, w, F)
            for x in range(n):
                at = v0 + x
                if has_limit(m, j, x, w) and not (changed and m[0].tries[w] > TRIES_TOGETHER):
                    if correct_limit(m, j, x, w, push[x], F):
                        changed = True
                rubs = m[0].axes.group[at] == x and has_friction(m, at, w) and (n > 1 or m[0].touch[at, w] == 0)
                if rubs and not (changed and m[0].tries[w] > TRIES_TOGETHER):
                    if m[0].held[at, w] == 1:
                        hold = friction_force(m, j, at, w, real(0.0), True)
                        need = limit_share(m, j, w, F)
                        if group_size(m, j, x, need) > hold + real(0.5) * slack(hold, F):
                            release_group(m, j, x, w, need)
                            changed = True
    return changed


@wp.func
def speeds_after_impact(m: wp.array(dtype=Motion), w: int) -> None:
    """Speeds after an impact, from the changes in a.

    No limit pulls, and none is left slower than it asks for: until that is so, they let go or hold, and the impact is redone.
    """
    m[0].tries[w] = m[0].tries[w] + 1
    changed = bool(False)
    for i in range(m[0].tree.count):
        j = m[0].tree.joint[i]
        if j < m[0].own and m[0].tries[w] < MOST_TRIES:
            push = vec6()
            if m[0].laws.locks[i, w] > 0:
                push = limit_forces(m, j, w, lock_force(m, i, w))
            for x in range(m[0].joints.v_size[j]):
                at = m[0].joints.v_start[j] + x
                if has_limit(m, j, x, w) and not (changed and m[0].tries[w] > TRIES_TOGETHER):
                    low, high, g = limit_gaps(m, j, x, w)
                    if m[0].touch[at, w] != 0:
                        if push[x] < real(0.0):
                            m[0].touch[at, w] = 0
                            changed = True
                    elif wp.min(low, high) <= AT_LIMIT_GAP:
                        side = int(1)
                        if high < low:
                            side = -1
                        change = real(0.0)
                        for y in range(m[0].joints.v_size[j]):
                            change = change + g[y] * m[0].a[m[0].joints.v_start[j] + y, w]
                        if (change - m[0].wanted[at, w]) * real(side) < real(-0.5) * NO_SPEED:
                            m[0].touch[at, w] = side
                            changed = True
    if not changed:
        for i in range(m[0].tree.count):
            j = m[0].tree.joint[i]
            for at in range(m[0].joints.v_start[j], m[0].joints.v_start[j] + m[0].joints.v_size[j]):
                m[0].v[at, w] = m[0].v[at, w] + m[0].a[at, w]
                m[0].a[at, w] = real(0.0)
                m[0].touch[at, w] = 0
        m[0].striking[w] = 0
