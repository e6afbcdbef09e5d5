"""The right-hand side: what acts on free axes as forces of the state, loops closed, and the rates of all coordinates."""

import warp as wp

from sharnir.core.spatial import exp_quat, log_quat, rotated, turned
from sharnir.core.types import EPSILON, mat33, mat66, quat, real, vec3, vec6
from sharnir.engine.articulated.functions import collect_wrenches
from sharnir.engine.articulated.loop_rows import constrain, row_rate, solve_rows
from sharnir.engine.articulated.motion import link_motion, link_velocity
from sharnir.engine.articulated.passes import backward, forward, link_inertia
from sharnir.integrate.data import BEGUN, Motion
from sharnir.integrate.drives import cell_voltage, table_force, voltage_at
from sharnir.laws.prepare import NO_BOUND
from sharnir.model.joint_geometry import ball_pull, cardan_limits, free_axis, joint_pose, joint_transform, swing_twist_limits

LOADS = wp.constant(60)  # rounds in which friction and the load it depends on are brought together
TIGHTENED = wp.constant(6)  # rounds that close loops
CLOSED_LOOP = wp.constant(real(max(3.0e-14, 30.0 * EPSILON)))  # gap of a loop that counts as closed, relative to its size
LEAST_ALONG = wp.constant(real(1.0e-10))  # squared part of a direction below which nothing of it is left


# ---- forces on the axes ---------------------------------------------------------------------------------------------------


@wp.func
def friction_force(m: wp.array(dtype=Motion), j: int, head: int, w: int, speed: real, static: bool) -> real:
    """The force that friction of a group, named by its first axis, can hold, or its force at a speed."""
    load = m[0].control.friction_load[head, w] * m[0].load[j, w]
    high = m[0].control.friction_static[head, w]
    low = m[0].control.friction_dynamic[head, w]
    if static:
        return high + load
    s = m[0].control.friction_stribeck[head, w]
    if s > real(0.0) and high > low:
        return low + (high - low) * wp.exp(-speed * speed / (s * s)) + load
    return low + load


@wp.func
def has_friction(m: wp.array(dtype=Motion), at: int, w: int) -> bool:
    return m[0].control.friction_static[at, w] > real(0.0) or m[0].control.friction_load[at, w] > real(0.0)


@wp.func
def current_of_motor(m: wp.array(dtype=Motion), at: int, w: int) -> real:
    """A; without inductance it follows the speed."""
    row = m[0].current_of[at]
    if row >= 0:
        return m[0].current[row, w]
    emf = m[0].axes.torque_constant[at, w] * m[0].axes.gear_ratio[at, w] * m[0].v[at, w]
    return (voltage_at(m, at, w) - emf) / m[0].axes.resistance[at, w]


@wp.func
def drive_force(m: wp.array(dtype=Motion), at: int, q: real, w: int, error: real) -> real:
    """Servo, with its cap, DC motor and drives of the table; `error` is how far the servo's position is off."""
    u = m[0].v[at, w]
    cap = m[0].control.servo_max_force[at, w]
    push = m[0].control.servo_torque[at, w] - m[0].control.servo_kp[at, w] * error
    push = push - m[0].control.servo_kd[at, w] * (u - m[0].control.servo_velocity[at, w])
    push = wp.clamp(push, -cap, cap)
    if m[0].drives.count > 0 and m[0].drive_of[at] >= 0:  # steps write theirs where a servo has its own
        push = table_force(m, at, q, w)
    if m[0].axes.resistance[at, w] > real(0.0):
        i = current_of_motor(m, at, w)
        N = m[0].axes.gear_ratio[at, w]
        eta = m[0].axes.efficiency[at, w]
        if i * N * u < real(0.0):
            eta = real(1.0) / eta
        push = push + N * eta * m[0].axes.torque_constant[at, w] * i
    return push


@wp.func
def axis_forces(m: wp.array(dtype=Motion), j: int, w: int) -> None:
    """τ of a joint: applied forces, springs, dampers, drives."""
    n = m[0].joints.v_size[j]
    v0 = m[0].joints.v_start[j]
    q0 = m[0].joints.q_start[j]
    moves = n - m[0].joints.turns[j]
    pull = vec3(real(0.0))
    off = vec3(real(0.0))
    if j < m[0].own and m[0].joints.turns[j] == 3:
        at = v0 + moves
        _offset, turn = joint_transform(m[0].joints, j, w, m[0].q)
        rest = vec3(m[0].axes.rest[at, w], m[0].axes.rest[at + 1, w], m[0].axes.rest[at + 2, w])
        pull = ball_pull(
            turn, rest, vec3(m[0].axes.stiffness[at, w], m[0].axes.stiffness[at + 1, w], m[0].axes.stiffness[at + 2, w])
        )
        goal = vec3(
            m[0].control.servo_position[at, w], m[0].control.servo_position[at + 1, w], m[0].control.servo_position[at + 2, w]
        )
        off = log_quat(turn * wp.quat_inverse(exp_quat(goal)))
    for i in range(n):
        at = v0 + i
        force = m[0].applied[at, w]
        if j < m[0].own:
            force = force - (m[0].axes.damping[at, w] + m[0].control.friction_viscous[at, w]) * m[0].v[at, w]
            error = real(0.0)
            if m[0].joints.turns[j] == 3 and i >= moves:
                force = force - pull[i - moves]
                error = off[i - moves]
            else:
                force = force - m[0].axes.stiffness[at, w] * (m[0].q[q0 + i, w] - m[0].axes.rest[at, w])
                error = m[0].q[q0 + i, w] - m[0].control.servo_position[at, w]
            force = force + drive_force(m, at, m[0].q[q0 + i, w], w, error)
        m[0].tau[at, w] = force


@wp.func
def slide(m: wp.array(dtype=Motion), j: int, head: int, w: int) -> None:
    """The force of a group that slides, −F u/|u|; past u = 0 as if it had not turned round, and along its heading at rest.

    Near u = 0 the direction of a vector follows forces within |u|/F: too fast for any step. One that began to slide is therefore
    given a little of its heading, −F (u + ε n)/|u + ε n|, until it is fast.
    """
    v0 = m[0].joints.v_start[j]
    n = m[0].joints.v_size[j]
    size = real(0.0)
    for i in range(head, n):
        if m[0].axes.group[v0 + i] == head:
            size = size + m[0].v[v0 + i, w] * m[0].v[v0 + i, w]
    size = wp.sqrt(size)
    little = real(0.0)
    if m[0].departs[v0 + head, w] == 1:
        share = real(1.0e-3) * size / BEGUN
        little = BEGUN * wp.max(real(0.0), real(1.0) - share * share)
    total = real(0.0)
    along = real(0.0)
    for i in range(head, n):
        at = v0 + i
        if m[0].axes.group[at] == head:
            u = m[0].v[at, w] + little * m[0].heading[at, w]
            total = total + u * u
            along = along + u * m[0].heading[at, w]
    total = wp.sqrt(total)
    force = friction_force(m, j, v0 + head, w, size, False)
    for i in range(head, n):
        at = v0 + i
        if m[0].axes.group[at] == head and m[0].held[at, w] == 0:
            d = m[0].heading[at, w]
            if total > real(1.0e-12) and along != real(0.0):
                d = (m[0].v[at, w] + little * d) / total * wp.sign(along)
            m[0].tau[at, w] = m[0].tau[at, w] - force * d


@wp.func
def slide_all(m: wp.array(dtype=Motion), j: int, w: int) -> None:
    """Sliding friction of a joint's groups, added to τ."""
    if j < m[0].own:
        v0 = m[0].joints.v_start[j]
        for i in range(m[0].joints.v_size[j]):
            if m[0].axes.group[v0 + i] == i and has_friction(m, v0 + i, w):
                slide(m, j, i, w)


# ---- limits ---------------------------------------------------------------------------------------------------------------


@wp.func
def coming_ball_limits(m: wp.array(dtype=Motion), j: int, w: int, ahead: real) -> tuple[vec3, mat33]:
    """Values and rows of a ball joint's limits, where it will be in a short time."""
    v0 = m[0].joints.v_start[j] + m[0].joints.v_size[j] - 3
    _offset, turn = joint_transform(m[0].joints, j, w, m[0].q)
    turn = exp_quat(vec3(m[0].v[v0, w], m[0].v[v0 + 1, w], m[0].v[v0 + 2, w]) * ahead) * turn
    if m[0].joints.ball[j] == 1:
        values, rows = cardan_limits(wp.quat_to_matrix(turn))
        return values, rows
    values, rows = swing_twist_limits(turn, m[0].axes.upper[v0, w], m[0].axes.upper[v0 + 1, w])
    return values, rows


@wp.func
def has_limit(m: wp.array(dtype=Motion), j: int, i: int, w: int) -> bool:
    at = m[0].joints.v_start[j] + i
    if m[0].joints.ball[j] == 2 and i == m[0].joints.v_size[j] - 2:
        return False  # the second half-angle of a cone
    return m[0].axes.lower[at, w] > -NO_BOUND or m[0].axes.upper[at, w] < NO_BOUND


@wp.func
def limit_gaps(m: wp.array(dtype=Motion), j: int, i: int, w: int) -> tuple[real, real, vec6]:
    """How far axis i is from its lower and upper limit, and its direction among the joint's axes."""
    n = m[0].joints.v_size[j]
    at = m[0].joints.v_start[j] + i
    g = vec6()
    g[i] = real(1.0)
    low = -NO_BOUND
    high = NO_BOUND
    if m[0].joints.ball[j] != 0 and i >= n - 3:
        values, rows = coming_ball_limits(m, j, w, real(0.0))
        c = i - (n - 3)
        for h in range(3):
            g[n - 3 + h] = rows[h, c]
        if m[0].joints.ball[j] == 2 and c == 0:
            return values[0], NO_BOUND, g
        low = values[c] - m[0].axes.lower[at, w]
        high = m[0].axes.upper[at, w] - values[c]
    else:
        x = m[0].q[m[0].joints.q_start[j] + i, w]
        low = x - m[0].axes.lower[at, w]
        high = m[0].axes.upper[at, w] - x
    return low, high, g


@wp.func
def row_bend(m: wp.array(dtype=Motion), j: int, i: int, w: int) -> real:
    """ġ·u of a limit's direction: a ball's turns with it."""
    n = m[0].joints.v_size[j]
    if m[0].joints.ball[j] == 0 or i < n - 3:
        return real(0.0)
    v0 = m[0].joints.v_start[j] + n - 3
    u = vec3(m[0].v[v0, w], m[0].v[v0 + 1, w], m[0].v[v0 + 2, w])
    e = real(1.0e-5) / (real(1.0) + wp.length(u))
    _a, after = coming_ball_limits(m, j, w, e)
    _b, before = coming_ball_limits(m, j, w, -e)
    c = i - (n - 3)
    rate = vec3(after[0, c] - before[0, c], after[1, c] - before[1, c], after[2, c] - before[2, c])
    return wp.dot(rate, u) / (real(2.0) * e)


@wp.func
def speed_of_coordinate(m: wp.array(dtype=Motion), j: int, g: vec6, w: int) -> real:
    u = real(0.0)
    for i in range(m[0].joints.v_size[j]):
        u = u + g[i] * m[0].v[m[0].joints.v_start[j] + i, w]
    return u


# ---- the right-hand side --------------------------------------------------------------------------------------------------


@wp.func
def without(left: mat66, g: vec6) -> mat66:
    """A projection with one more direction taken out."""
    z = left * g
    d = wp.dot(z, z)
    if d > LEAST_ALONG * wp.dot(g, g):
        left = left - wp.outer(z, z) / d
    return left


@wp.func
def set_laws(m: wp.array(dtype=Motion), i: int, w: int) -> None:
    """Rotor inertias and locked axes, for the recursion."""
    j = m[0].tree.joint[i]
    if j >= m[0].own:
        return
    n = m[0].joints.v_size[j]
    v0 = m[0].joints.v_start[j]
    C = mat66()
    left = mat66()  # what is left of the directions beside those that are locked
    locks = int(0)
    acts = int(0)
    for x in range(n):
        left[x, x] = real(1.0)
    for x in range(n):
        at = v0 + x
        rotor = m[0].axes.rotor_inertia[at, w] * m[0].axes.gear_ratio[at, w] * m[0].axes.gear_ratio[at, w]
        C[x, x] = rotor
        if rotor > real(0.0):
            acts = 1
        m[0].laws.resist[at, w] = rotor
        m[0].laws.push[at, w] = real(0.0)
        if m[0].touch[at, w] != 0 and has_limit(m, j, x, w):
            _low, _high, g = limit_gaps(m, j, x, w)
            m[0].laws.row[v0 + locks, w] = g
            m[0].laws.wanted[v0 + locks, w] = m[0].wanted[at, w]
            if m[0].striking[w] == 0:
                m[0].laws.wanted[v0 + locks, w] = -row_bend(m, j, x, w)
            locks = locks + 1
            left = without(left, g)
    if m[0].striking[w] == 0:
        for x in range(n):
            if m[0].held[v0 + x, w] == 1 and left[x, x] > LEAST_ALONG and locks < n:
                g = vec6()
                g[x] = real(1.0)
                m[0].laws.row[v0 + locks, w] = g
                m[0].laws.wanted[v0 + locks, w] = real(0.0)
                locks = locks + 1
                left = without(left, g)
    if locks > 0:
        acts = 1
    m[0].laws.acts[i, w] = acts
    m[0].laws.locks[i, w] = locks
    m[0].laws.coupled[i, w] = C


@wp.func
def spring_forces(m: wp.array(dtype=Motion), w: int) -> None:
    """Springs between points, added to the forces on the bodies."""
    for k in range(m[0].closures.springs.count):
        p = m[0].closures.springs.parent[k]
        c = m[0].closures.springs.child[k]
        r_p = wp.quat_rotate(m[0].work.rotation[p, w], m[0].closures.springs.parent_point[k])
        r_c = wp.quat_rotate(m[0].work.rotation[c, w], m[0].closures.springs.child_point[k])
        line = m[0].work.position[c, w] + r_c - m[0].work.position[p, w] - r_p
        length = wp.length(line)
        if length > real(1.0e-12):
            n = line / length
            v_c = m[0].work.velocity[c, w] + wp.cross(m[0].work.omega[c, w], r_c)
            v_p = m[0].work.velocity[p, w] + wp.cross(m[0].work.omega[p, w], r_p)
            pull = m[0].closures.springs.stiffness[k, w] * (length - m[0].closures.springs.rest[k, w])
            f = n * (-pull - m[0].closures.springs.damping[k, w] * wp.dot(n, v_c - v_p))
            m[0].work.force[c, w] = m[0].work.force[c, w] + f
            m[0].work.torque[c, w] = m[0].work.torque[c, w] + wp.cross(r_c, f)
            m[0].work.force[p, w] = m[0].work.force[p, w] - f
            m[0].work.torque[p, w] = m[0].work.torque[p, w] - wp.cross(r_p, f)


@wp.func
def find_loads(m: wp.array(dtype=Motion), w: int) -> real:
    """|constraint force| of the joints with the accelerations found; returns the largest change of a friction force."""
    for i in range(m[0].tree.count):
        b = m[0].tree.body[i]
        I = rotated(wp.quat_to_matrix(m[0].work.rotation[b, w]), m[0].bodies.inertia[b, w])
        omega = m[0].work.spin[b, w]
        m[0].work.Q_l[i, w] = (m[0].work.acceleration[b, w] - m[0].gravity[w]) * m[0].bodies.mass[b, w] - m[0].work.force[b, w]
        m[0].work.Q_a[i, w] = I * m[0].work.turning[b, w] + wp.cross(omega, I * omega) - m[0].work.torque[b, w]
    for r in range(m[0].closures.count - m[0].closures.springs.count):
        b = m[0].rows.child[r]
        if b >= 0:
            link = m[0].rows.link_of[b]
            force = m[0].rows.force[r, w]
            if link >= 0:
                m[0].work.Q_l[link, w] = m[0].work.Q_l[link, w] - m[0].rows.child_l[r, w] * force
            link = m[0].rows.link_of[m[0].rows.parent[r]]
            if link >= 0:
                m[0].work.Q_l[link, w] = m[0].work.Q_l[link, w] - m[0].rows.parent_l[r, w] * force
    collect_wrenches(m[0].tree, w, m[0].work)
    change = real(0.0)
    for i in range(m[0].tree.count):
        j = m[0].tree.joint[i]
        if j < m[0].own:
            p = m[0].joints.parent[j]
            c = m[0].joints.child[j]
            pose = joint_pose(
                m[0].joints,
                j,
                w,
                m[0].work.position[p, w],
                m[0].work.rotation[p, w],
                m[0].work.position[c, w],
                m[0].work.rotation[c, w],
            )
            f = m[0].work.Q_l[i, w]
            most = real(0.0)
            for a in range(m[0].joints.v_size[j]):
                d, _n = free_axis(m[0].joints, j, a, pose)
                f = f - d * wp.dot(d, f)
                most = wp.max(most, m[0].control.friction_load[m[0].joints.v_start[j] + a, w])
            size = wp.length(f)
            change = wp.max(change, most * wp.abs(size - m[0].load[j, w]) / (real(1.0) + most * size))
            m[0].load[j, w] = size
    return change


@wp.func
def shift(m: wp.array(dtype=Motion), i: int, w: int, by: wp.array2d(dtype=real)) -> None:
    """Coordinates of a link's joint, moved along its speeds."""
    j = m[0].tree.joint[i]
    v0 = m[0].joints.v_start[j]
    q0 = m[0].joints.q_start[j]
    plain = m[0].joints.v_size[j]
    if m[0].joints.turns[j] == 3:
        plain = plain - 3
        at = q0 + plain
        turn = exp_quat(vec3(by[v0 + plain, w], by[v0 + plain + 1, w], by[v0 + plain + 2, w]))
        p = turn * quat(m[0].q[at, w], m[0].q[at + 1, w], m[0].q[at + 2, w], m[0].q[at + 3, w])
        for c in range(4):
            m[0].q[at + c, w] = p[c]
    for c in range(plain):
        m[0].q[q0 + c, w] = m[0].q[q0 + c, w] + by[v0 + c, w]


@wp.func
def tighten(m: wp.array(dtype=Motion), w: int) -> bool:
    """Bring the state closer to one whose loops are closed, by its own response; whether it was too far off.

    A singular pose asks for it at every right-hand side: there accelerations are exact only as far as the loops are closed.
    """
    rows = m[0].closures.count - m[0].closures.springs.count
    off = real(0.0)
    size = real(1.0)
    for r in range(rows):
        off = wp.max(off, wp.abs(m[0].rows.gap[r, w]))
        rate = row_rate(m[0].closures, m[0].rows, r, w, m[0].work.velocity, m[0].work.omega, m[0].v)
        off = wp.max(off, wp.abs(rate))
    for i in range(m[0].tree.count):
        size = wp.max(size, wp.length(m[0].work.position[m[0].tree.body[i], w]))
        size = wp.max(size, wp.length(m[0].work.velocity[m[0].tree.body[i], w]))
    if off <= CLOSED_LOOP * size:
        return False
    for level in range(2):
        for r in range(rows):
            if level == 0:
                m[0].rows.rhs[r, w] = -m[0].rows.gap[r, w]
            else:
                m[0].rows.rhs[r, w] = -row_rate(m[0].closures, m[0].rows, r, w, m[0].work.velocity, m[0].work.omega, m[0].v)
        solve_rows(m[0].joints, m[0].tree, m[0].closures, m[0].rows, m[0].work, w, rows)
        for i in range(m[0].tree.count):
            if level == 0:
                shift(m, i, w, m[0].rows.y)
            else:
                j = m[0].tree.joint[i]
                for at in range(m[0].joints.v_start[j], m[0].joints.v_start[j] + m[0].joints.v_size[j]):
                    m[0].v[at, w] = m[0].v[at, w] + m[0].rows.y[at, w]
    return True


@wp.func
def rates(m: wp.array(dtype=Motion), w: int, stage: int, K: wp.array3d(dtype=real)) -> None:
    """K[stage] = (q̇, q̈, di/dt); of a quaternion ½ (ω, 0) ∘ p."""
    for i in range(m[0].tree.count):
        j = m[0].tree.joint[i]
        n = m[0].joints.v_size[j]
        v0 = m[0].joints.v_start[j]
        q0 = m[0].joints.q_start[j]
        plain = n
        if m[0].joints.turns[j] == 3:
            plain = n - 3
            p = quat(m[0].q[q0 + plain, w], m[0].q[q0 + plain + 1, w], m[0].q[q0 + plain + 2, w], m[0].q[q0 + plain + 3, w])
            rate = quat(m[0].v[v0 + plain, w], m[0].v[v0 + plain + 1, w], m[0].v[v0 + plain + 2, w], real(0.0)) * p
            for c in range(4):
                K[stage, q0 + plain + c, w] = real(0.5) * rate[c]
        for c in range(plain):
            K[stage, q0 + c, w] = m[0].v[v0 + c, w]
        for c in range(n):
            K[stage, m[0].nq + v0 + c, w] = m[0].a[v0 + c, w]
    for c in range(m[0].currents):
        at = m[0].motor[c]
        if at < 0:
            _V, given = cell_voltage(m, -1 - at, w)
            K[stage, m[0].nq + m[0].nv + c, w] = given
            continue
        emf = m[0].axes.torque_constant[at, w] * m[0].axes.gear_ratio[at, w] * m[0].v[at, w]
        drop = m[0].axes.resistance[at, w] * m[0].current[c, w]
        K[stage, m[0].nq + m[0].nv + c, w] = (voltage_at(m, at, w) - emf - drop) / m[0].axes.inductance[at, w]


@wp.func
def right_hand_side(m: wp.array(dtype=Motion), w: int, stage: int, time: real, K: wp.array3d(dtype=real)) -> None:
    """K[stage] = (q̇, q̈, di/dt) at m[0].q, m[0].v, m[0].current and a time.

    Where loops are open in that state, it is moved to where they are closed.
    """
    count = m[0].tree.count
    gravity = m[0].gravity[w]
    if m[0].striking[w] == 1:
        gravity = vec3(real(0.0))
    for b in range(m[0].bodies.count):
        m[0].work.force[b, w] = m[0].force[b, w]
        m[0].work.torque[b, w] = m[0].torque[b, w]
        if m[0].driven == 1 and m[0].rows.link_of[b] < 0:
            past = time - m[0].start[0]
            m[0].work.position[b, w] = m[0].base_position[b, w] + m[0].work.velocity[b, w] * past
            m[0].work.rotation[b, w] = turned(m[0].base_rotation[b, w], m[0].work.omega[b, w] * past)
    loops = m[0].closures.count > m[0].closures.springs.count
    for round in range(LOADS):
        for i in range(count):
            link_motion(m[0].joints, m[0].tree, i, w, m[0].q, m[0].v, m[0].work)
            if m[0].closures.springs.count > 0:
                link_velocity(m[0].joints, m[0].tree, i, w, m[0].v, m[0].work)
        if round == 0:
            spring_forces(m, w)
        for i in range(count):
            link_inertia(m[0].tree, i, w, gravity, m[0].work)
            axis_forces(m, m[0].tree.joint[i], w)
            slide_all(m, m[0].tree.joint[i], w)
            set_laws(m, i, w)
            if m[0].striking[w] == 1:
                no_force(m, i, w)
        backward(m[0].joints, m[0].tree, w, m[0].tau, m[0].laws, m[0].work)
        for i in range(count):
            forward(m[0].joints, m[0].tree, i, w, m[0].a, m[0].laws, m[0].work)
        unmet = bool(False)
        if loops:
            constrain(
                m[0].joints, m[0].tree, m[0].closures, m[0].rows, m[0].work, w, m[0].q, m[0].v, m[0].a, m[0].striking[w] == 0
            )
            if m[0].striking[w] == 0 and round < TIGHTENED:
                unmet = tighten(m, w)
        if m[0].loaded == 1 and not unmet:
            unmet = find_loads(m, w) > real(1.0e-13)
        if not unmet:
            break
    rates(m, w, stage, K)


@wp.func
def plain_right_hand_side(m: wp.array(dtype=Motion), w: int, stage: int, time: real, K: wp.array3d(dtype=real)) -> None:
    """The right-hand side of a tree on a ground at rest, with springs, dampers and drives alone: soon compiled, and fast."""
    for i in range(m[0].tree.count):
        link_motion(m[0].joints, m[0].tree, i, w, m[0].q, m[0].v, m[0].work)
        link_inertia(m[0].tree, i, w, m[0].gravity[w], m[0].work)
        axis_forces(m, m[0].tree.joint[i], w)
    backward(m[0].joints, m[0].tree, w, m[0].tau, m[0].laws, m[0].work)
    for i in range(m[0].tree.count):
        forward(m[0].joints, m[0].tree, i, w, m[0].a, m[0].laws, m[0].work)
    rates(m, w, stage, K)


@wp.func
def no_force(m: wp.array(dtype=Motion), i: int, w: int) -> None:
    """In an impact nothing counts but impulses: no force, and what speeds alone contribute is left out."""
    m[0].work.Q_l[i, w] = vec3(real(0.0))
    m[0].work.Q_a[i, w] = vec3(real(0.0))
    m[0].work.bias_l[i, w] = vec3(real(0.0))
    m[0].work.bias_a[i, w] = vec3(real(0.0))
    j = m[0].tree.joint[i]
    for at in range(m[0].joints.v_start[j], m[0].joints.v_start[j] + m[0].joints.v_size[j]):
        m[0].tau[at, w] = real(0.0)
