"""The right-hand side of a mechanism's motion, with all that acts on it, and its changes of mode: stick, slip, limit, impact.

Between changes of mode the motion is smooth. A group of axes that friction holds is locked; one that slides is pushed against
its speed. An axis at its limit is locked too. `margin` is positive as long as the modes hold, `reclassify` and `settle` find
those that hold next, `strike` the speeds after an impact:

Functions are given an array m of one `Motion` and read m[0] in place: a copy of so large a structure costs time, most of all the
compiler's.

    slides:   u·n > 0, n its heading when it began (so the force goes on smoothly past u = 0, until the change is located)
    held:     |force needed| < what can hold                 at a limit:   the limit pushes
"""

import warp as wp

from sharnir.articulated.closures import ClosureTable, ClosureWork, clear_push, constrain, respond, row_rate, solve_rows
from sharnir.joints import (
    AxisTable,
    JointTable,
    ball_pull,
    cardan_limits,
    free_axis,
    joint_pose,
    joint_transform,
    swing_twist_limits,
)
from sharnir.laws import INFINITE
from sharnir.model import BodyTable, Control
from sharnir.rows import friction_3d
from sharnir.spatial import exp_quat, log_quat, rotated, turned
from sharnir.tree import (
    AxisLaws,
    TreeTable,
    TreeWork,
    backward,
    base_acceleration,
    collect_wrenches,
    forward,
    left_over,
    link_inertia,
    link_motion,
    link_velocity,
    small_inverse,
)
from sharnir.types import EPSILON, mat66, quat, real, vec3, vec6

LOADS = wp.constant(60)  # rounds in which friction and the load it depends on are brought together
TIGHTENED = wp.constant(6)  # rounds that close loops
CLOSED = wp.constant(real(max(3.0e-14, 30.0 * EPSILON)))  # of its size is a gap that is none
MOST_TRIES = wp.constant(400)  # to find the modes at one time
TOGETHER = wp.constant(10)  # of them, those that change all wrong modes at once; then one by one, in order
AIMED = wp.constant(real(1.0e-9))  # a heading that is off by less is right
STOPS = wp.constant(real(1.0e-8))  # m/s, rad/s: a vector that slows down to it stops
STILL = wp.constant(real(1.0e-9))  # m/s, rad/s: no speed
DRIFTS = wp.constant(real(1.0e-6))  # m, rad, m/s, rad/s: so far a limit in touch may have come off by rounding
GRAZES = wp.constant(real(1.0e-12))  # m/s, rad/s: past zero by so much is no change of mode yet
PASSED = wp.constant(real(1.0e-13))  # m, rad: nor is this, past a limit
TOUCHING = wp.constant(real(1.0e-9))  # m, rad: at a limit
BOUNCE = wp.constant(real(1.0e-11))  # m, rad: one that would rise less is none
ALONG = wp.constant(real(1.0e-10))  # of a direction, squared: so little of it left is none
BEGUN = wp.constant(real(1.0e-5))  # m/s, rad/s: ε of a group that begins to slide
PUSHED = wp.constant(real(1.0e-11))  # m/s², rad/s²: no acceleration


@wp.struct
class Motion:
    """A mechanism with its state y = (q, v, currents), [row, world], and all that its right-hand side needs."""

    bodies: BodyTable
    joints: JointTable
    axes: AxisTable
    control: Control
    tree: TreeTable
    work: TreeWork
    laws: AxisLaws
    closures: ClosureTable
    rows: ClosureWork
    probe: ClosureWork  # the same again, to ask for the tree's response without losing what was found
    gravity: wp.array(dtype=vec3)
    own: wp.int32  # joints that are the scene's; those of floating bases follow
    nq: wp.int32
    nv: wp.int32
    currents: wp.int32
    motor: wp.array(dtype=wp.int32)  # [current] the speed whose motor it flows in
    current_of: wp.array(dtype=wp.int32)  # [speed] −1: none
    rough: wp.int32  # 1 where there is friction or a limit
    loaded: wp.int32  # 1 where friction depends on the load
    driven: wp.int32  # 1 where bodies that are no links move
    applied: wp.array2d(dtype=real)  # [speed, world] forces on free axes
    force: wp.array2d(dtype=vec3)  # [body, world] and on bodies
    torque: wp.array2d(dtype=vec3)
    start: wp.array(dtype=real)  # s, when driven bodies were at
    base_position: wp.array2d(dtype=vec3)
    base_rotation: wp.array2d(dtype=quat)
    q: wp.array2d(dtype=real)  # the state at which the right-hand side is wanted
    v: wp.array2d(dtype=real)
    current: wp.array2d(dtype=real)
    tau: wp.array2d(dtype=real)
    a: wp.array2d(dtype=real)
    held: wp.array2d(dtype=wp.int32)  # [speed, world] 1 where friction holds
    touch: wp.array2d(dtype=wp.int32)  # [speed, world] 1 at the lower limit, −1 at the upper
    heading: wp.array2d(dtype=real)  # [speed, world] n
    departs: wp.array2d(dtype=wp.int32)  # [speed, world] 1 where a group slides since it was at rest
    response: wp.array2d(dtype=real)  # [speed, world] accelerations per unit of a force
    wanted: wp.array2d(dtype=real)  # [speed, world] in an impact: the change of speed at a limit
    load: wp.array2d(dtype=real)  # [joint, world] N, |constraint force|
    striking: wp.array(dtype=wp.int32)  # [world] 1: the right-hand side is that of an impact, a the change of v
    tries: wp.array(dtype=wp.int32)  # [world] changes of mode at one time


# ---- forces on the axes ---------------------------------------------------------------------------------------------------


@wp.func
def friction_force(m: wp.array(dtype=Motion), j: int, head: int, w: int, speed: real, static: bool) -> real:
    """What friction of a group, named by its first axis, can hold, or its force at a speed."""
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
def motor_current(m: wp.array(dtype=Motion), at: int, w: int) -> real:
    """A; without inductance it follows the speed."""
    row = m[0].current_of[at]
    if row >= 0:
        return m[0].current[row, w]
    emf = m[0].axes.torque_constant[at] * m[0].axes.gear_ratio[at] * m[0].v[at, w]
    return (m[0].control.voltage[at, w] - emf) / m[0].axes.resistance[at]


@wp.func
def drive_force(m: wp.array(dtype=Motion), at: int, w: int, error: real) -> real:
    """Servo, with its cap, and DC motor; `error` is how far the servo's position is off."""
    u = m[0].v[at, w]
    cap = m[0].control.servo_max_force[at, w]
    push = m[0].control.servo_torque[at, w] - m[0].control.servo_kp[at, w] * error
    push = push - m[0].control.servo_kd[at, w] * (u - m[0].control.servo_velocity[at, w])
    push = wp.clamp(push, -cap, cap)
    if m[0].axes.resistance[at] > real(0.0):
        i = motor_current(m, at, w)
        N = m[0].axes.gear_ratio[at]
        eta = m[0].axes.efficiency[at]
        if i * N * u < real(0.0):
            eta = real(1.0) / eta
        push = push + N * eta * m[0].axes.torque_constant[at] * i
    return push


@wp.func
def axis_forces(m: wp.array(dtype=Motion), j: int, w: int):
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
        rest = vec3(m[0].axes.rest[at], m[0].axes.rest[at + 1], m[0].axes.rest[at + 2])
        pull = ball_pull(turn, rest, vec3(m[0].axes.stiffness[at], m[0].axes.stiffness[at + 1], m[0].axes.stiffness[at + 2]))
        goal = vec3(
            m[0].control.servo_position[at, w], m[0].control.servo_position[at + 1, w], m[0].control.servo_position[at + 2, w]
        )
        off = log_quat(turn * wp.quat_inverse(exp_quat(goal)))
    for i in range(n):
        at = v0 + i
        force = m[0].applied[at, w]
        if j < m[0].own:
            force = force - (m[0].axes.damping[at] + m[0].control.friction_viscous[at, w]) * m[0].v[at, w]
            error = real(0.0)
            if m[0].joints.turns[j] == 3 and i >= moves:
                force = force - pull[i - moves]
                error = off[i - moves]
            else:
                force = force - m[0].axes.stiffness[at] * (m[0].q[q0 + i, w] - m[0].axes.rest[at])
                error = m[0].q[q0 + i, w] - m[0].control.servo_position[at, w]
            force = force + drive_force(m, at, w, error)
        m[0].tau[at, w] = force


@wp.func
def slide(m: wp.array(dtype=Motion), j: int, head: int, w: int):
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
def slide_all(m: wp.array(dtype=Motion), j: int, w: int):
    """Sliding friction of a joint's groups, added to τ."""
    if j < m[0].own:
        v0 = m[0].joints.v_start[j]
        for i in range(m[0].joints.v_size[j]):
            if m[0].axes.group[v0 + i] == i and has_friction(m, v0 + i, w):
                slide(m, j, i, w)


# ---- limits ---------------------------------------------------------------------------------------------------------------


@wp.func
def ball_limits(m: wp.array(dtype=Motion), j: int, w: int, ahead: real):
    """Values and rows of a ball joint's limits, where it will be in a short time."""
    v0 = m[0].joints.v_start[j] + m[0].joints.v_size[j] - 3
    _offset, turn = joint_transform(m[0].joints, j, w, m[0].q)
    turn = exp_quat(vec3(m[0].v[v0, w], m[0].v[v0 + 1, w], m[0].v[v0 + 2, w]) * ahead) * turn
    if m[0].joints.ball[j] == 1:
        values, rows = cardan_limits(wp.quat_to_matrix(turn))
        return values, rows
    values, rows = swing_twist_limits(turn, m[0].axes.upper[v0], m[0].axes.upper[v0 + 1])
    return values, rows


@wp.func
def limited(m: wp.array(dtype=Motion), j: int, i: int) -> bool:
    at = m[0].joints.v_start[j] + i
    if m[0].joints.ball[j] == 2 and i == m[0].joints.v_size[j] - 2:
        return False  # the second half-angle of a cone
    return m[0].axes.lower[at] > -INFINITE or m[0].axes.upper[at] < INFINITE


@wp.func
def limit_gaps(m: wp.array(dtype=Motion), j: int, i: int, w: int):
    """How far axis i is from its lower and upper limit, and its direction among the joint's axes."""
    n = m[0].joints.v_size[j]
    at = m[0].joints.v_start[j] + i
    g = vec6()
    g[i] = real(1.0)
    low = -INFINITE
    high = INFINITE
    if m[0].joints.ball[j] != 0 and i >= n - 3:
        values, rows = ball_limits(m, j, w, real(0.0))
        c = i - (n - 3)
        for h in range(3):
            g[n - 3 + h] = rows[h, c]
        if m[0].joints.ball[j] == 2 and c == 0:
            return values[0], INFINITE, g
        low = values[c] - m[0].axes.lower[at]
        high = m[0].axes.upper[at] - values[c]
    else:
        x = m[0].q[m[0].joints.q_start[j] + i, w]
        low = x - m[0].axes.lower[at]
        high = m[0].axes.upper[at] - x
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
    _a, after = ball_limits(m, j, w, e)
    _b, before = ball_limits(m, j, w, -e)
    c = i - (n - 3)
    rate = vec3(after[0, c] - before[0, c], after[1, c] - before[1, c], after[2, c] - before[2, c])
    return wp.dot(rate, u) / (real(2.0) * e)


@wp.func
def axis_speed(m: wp.array(dtype=Motion), j: int, g: vec6, w: int) -> real:
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
    if d > ALONG * wp.dot(g, g):
        left = left - wp.outer(z, z) / d
    return left


@wp.func
def set_laws(m: wp.array(dtype=Motion), i: int, w: int):
    """Rotors, and what is locked, for the recursion."""
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
        rotor = m[0].axes.rotor_inertia[at] * m[0].axes.gear_ratio[at] * m[0].axes.gear_ratio[at]
        C[x, x] = rotor
        if rotor > real(0.0):
            acts = 1
        m[0].laws.resist[at, w] = rotor
        m[0].laws.push[at, w] = real(0.0)
        if m[0].touch[at, w] != 0 and limited(m, j, x):
            _low, _high, g = limit_gaps(m, j, x, w)
            m[0].laws.row[v0 + locks, w] = g
            m[0].laws.wanted[v0 + locks, w] = m[0].wanted[at, w]
            if m[0].striking[w] == 0:
                m[0].laws.wanted[v0 + locks, w] = -row_bend(m, j, x, w)
            locks = locks + 1
            left = without(left, g)
    if m[0].striking[w] == 0:
        for x in range(n):
            if m[0].held[v0 + x, w] == 1 and left[x, x] > ALONG and locks < n:
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
def spring_forces(m: wp.array(dtype=Motion), w: int):
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
            pull = m[0].closures.springs.stiffness[k] * (length - m[0].closures.springs.rest[k])
            f = n * (-pull - m[0].closures.springs.damping[k] * wp.dot(n, v_c - v_p))
            m[0].work.force[c, w] = m[0].work.force[c, w] + f
            m[0].work.torque[c, w] = m[0].work.torque[c, w] + wp.cross(r_c, f)
            m[0].work.force[p, w] = m[0].work.force[p, w] - f
            m[0].work.torque[p, w] = m[0].work.torque[p, w] - wp.cross(r_p, f)


@wp.func
def find_loads(m: wp.array(dtype=Motion), w: int) -> real:
    """|constraint force| of the joints with the accelerations found; returns the largest change of a friction force."""
    for i in range(m[0].tree.count):
        b = m[0].tree.body[i]
        I = rotated(wp.quat_to_matrix(m[0].work.rotation[b, w]), m[0].bodies.inertia[b])
        omega = m[0].work.spin[b, w]
        m[0].work.Q_l[i, w] = (m[0].work.acceleration[b, w] - m[0].gravity[0]) * m[0].bodies.mass[b] - m[0].work.force[b, w]
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
def shift(m: wp.array(dtype=Motion), i: int, w: int, by: wp.array2d(dtype=real)):
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
    if off <= CLOSED * size:
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
def rates(m: wp.array(dtype=Motion), w: int, stage: int, K: wp.array3d(dtype=real)):
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
        emf = m[0].axes.torque_constant[at] * m[0].axes.gear_ratio[at] * m[0].v[at, w]
        drop = m[0].axes.resistance[at] * m[0].current[c, w]
        K[stage, m[0].nq + m[0].nv + c, w] = (m[0].control.voltage[at, w] - emf - drop) / m[0].axes.inductance[at]


@wp.func
def right_hand_side(m: wp.array(dtype=Motion), w: int, stage: int, time: real, K: wp.array3d(dtype=real)):
    """K[stage] = (q̇, q̈, di/dt) at m[0].q, m[0].v, m[0].current and a time.

    Where loops are open in that state, it is moved to where they are closed.
    """
    count = m[0].tree.count
    gravity = m[0].gravity[0]
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
            link_inertia(m[0].bodies, m[0].tree, i, w, gravity, m[0].work)
            axis_forces(m, m[0].tree.joint[i], w)
            slide_all(m, m[0].tree.joint[i], w)
            set_laws(m, i, w)
            if m[0].striking[w] == 1:
                no_force(m, i, w)
        backward(m[0].bodies, m[0].joints, m[0].tree, w, m[0].tau, m[0].laws, m[0].work)
        for i in range(count):
            forward(m[0].joints, m[0].tree, i, w, m[0].a, m[0].laws, m[0].work)
        again = bool(False)
        if loops:
            constrain(
                m[0].joints, m[0].tree, m[0].closures, m[0].rows, m[0].work, w, m[0].q, m[0].v, m[0].a, m[0].striking[w] == 0
            )
            if m[0].striking[w] == 0 and round < TIGHTENED:
                again = tighten(m, w)
        if m[0].loaded == 1 and not again:
            again = find_loads(m, w) > real(1.0e-13)
        if not again:
            break
    rates(m, w, stage, K)


@wp.func
def plain_right_hand_side(m: wp.array(dtype=Motion), w: int, stage: int, time: real, K: wp.array3d(dtype=real)):
    """The same of a tree on a ground at rest, with springs, dampers and drives alone: soon compiled, and fast."""
    for i in range(m[0].tree.count):
        link_motion(m[0].joints, m[0].tree, i, w, m[0].q, m[0].v, m[0].work)
        link_inertia(m[0].bodies, m[0].tree, i, w, m[0].gravity[0], m[0].work)
        axis_forces(m, m[0].tree.joint[i], w)
    backward(m[0].bodies, m[0].joints, m[0].tree, w, m[0].tau, m[0].laws, m[0].work)
    for i in range(m[0].tree.count):
        forward(m[0].joints, m[0].tree, i, w, m[0].a, m[0].laws, m[0].work)
    rates(m, w, stage, K)


@wp.func
def no_force(m: wp.array(dtype=Motion), i: int, w: int):
    """In an impact nothing counts but impulses: no force, and what speeds alone contribute is left out."""
    m[0].work.Q_l[i, w] = vec3(real(0.0))
    m[0].work.Q_a[i, w] = vec3(real(0.0))
    m[0].work.bias_l[i, w] = vec3(real(0.0))
    m[0].work.bias_a[i, w] = vec3(real(0.0))
    j = m[0].tree.joint[i]
    for at in range(m[0].joints.v_start[j], m[0].joints.v_start[j] + m[0].joints.v_size[j]):
        m[0].tau[at, w] = real(0.0)


# ---- modes ------------------------------------------------------------------------------------------------------------------


@wp.func
def lock_force(m: wp.array(dtype=Motion), i: int, w: int) -> vec6:
    """What the locks of a link's joint exert on its axes, after the right-hand side."""
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
        if side != 0 and limited(m, j, x):
            _low, _high, g = limit_gaps(m, j, x, w)
            rows[x] = g * real(side)
    return rows


@wp.func
def limit_forces(m: wp.array(dtype=Motion), j: int, w: int, F: vec6) -> vec6:
    """Of what the locks of a joint exert, how much each limit in touch takes along its direction, inwards positive: F = Σ g λ."""
    rows = limit_rows(m, j, w)
    return shares(rows, rows * F, m[0].joints.v_size[j])


@wp.func
def limit_share(m: wp.array(dtype=Motion), j: int, w: int, F: vec6) -> vec6:
    """Of what the locks exert, what friction has to: all but the part that limits in touch can take."""
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
    """By so much, N or N·m, a force may pass its bound without a change of mode."""
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
def members(m: wp.array(dtype=Motion), j: int, head: int):
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
                            least = wp.min(least, group_speed(m, j, x, w) - STOPS)
                if limited(m, j, x):
                    low, high, _g = limit_gaps(m, j, x, w)
                    if m[0].touch[at, w] != 0:
                        room = real(0.0)
                        if n == 1 and has_friction(m, at, w):
                            room = hold
                        least = wp.min(least, push[x] + room + slack(hold, F))
                    else:
                        least = wp.min(least, wp.min(low, high) + PASSED)
    return least


@wp.func
def meet_limit(m: wp.array(dtype=Motion), j: int, x: int, w: int):
    """An axis at its limit: touching or striking it, moved onto it exactly; `wanted` is the change of speed that is due."""
    v0 = m[0].joints.v_start[j]
    at = v0 + x
    low, high, g = limit_gaps(m, j, x, w)
    near = TOUCHING
    slow = STILL
    if m[0].touch[at, w] != 0:
        near = DRIFTS
        slow = DRIFTS
    side = real(0.0)
    if low <= near:
        side = real(1.0)
    elif high <= near:
        side = real(-1.0)
    m[0].touch[at, w] = 0
    m[0].wanted[at, w] = real(0.0)
    if side == real(0.0):
        return
    u = axis_speed(m, j, g, w)
    m[0].wanted[at, w] = -u
    if u * side > slow:
        return
    m[0].touch[at, w] = int(side)
    if u * side < -slow:
        back = -m[0].axes.restitution[at] * u
        fall = -limit_accelerates(m, j, x, g, w) * side
        if back * back < real(2.0) * fall * BOUNCE or wp.abs(back) < STILL:
            back = real(0.0)
        m[0].wanted[at, w] = back - u
        m[0].striking[w] = 1


@wp.func
def move_onto_limits(m: wp.array(dtype=Motion), j: int, w: int):
    """Bring a joint exactly onto the limits that it touches, and inside those that it leaves."""
    n = m[0].joints.v_size[j]
    v0 = m[0].joints.v_start[j]
    q0 = m[0].joints.q_start[j]
    rows = mat66()
    gaps = vec6()
    any = bool(False)
    for x in range(n):
        if limited(m, j, x):
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
def rest_on_limits(m: wp.array(dtype=Motion), j: int, w: int):
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
def meet_friction(m: wp.array(dtype=Motion), j: int, head: int, w: int, slow: real):
    """A friction group that rests is held, one that moves slides."""
    v0 = m[0].joints.v_start[j]
    n = m[0].joints.v_size[j]
    count, _index = members(m, j, head)
    size = group_speed(m, j, head, w)
    begins = m[0].departs[v0 + head, w] == 1 and size < real(1.0e3) * BEGUN
    turned_back = ahead(m, j, head, w, m[0].v) <= real(0.0)
    stops = size <= STILL
    if count > 1:
        stops = size <= real(1.01) * STOPS or (turned_back and (size <= slow or (begins and size <= BEGUN)))
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
def reclassify(m: wp.array(dtype=Motion), w: int, slow: real):
    """Modes that the state itself tells: what has come to rest may be held, what has reached a limit touches or strikes it.

    `slow` is the speed below which a vector that turns back counts as at rest: it passes near zero, not through it.
    """
    m[0].tries[w] = 0
    m[0].striking[w] = 0
    for i in range(m[0].tree.count):
        j = m[0].tree.joint[i]
        if j < m[0].own:
            for x in range(m[0].joints.v_size[j]):
                if limited(m, j, x):
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
def release(m: wp.array(dtype=Motion), j: int, head: int, w: int, F: vec6):
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
def push_axis(m: wp.array(dtype=Motion), at: int, w: int):
    """Accelerations of the axes per unit of force on one of them: `response` with loops cut, probe.y what closing them adds."""
    rows = m[0].closures.count - m[0].closures.springs.count
    clear_push(m[0].joints, m[0].tree, m[0].probe, w, 0, m[0].tree.count)
    m[0].probe.u[at, w] = real(1.0)
    respond(m[0].joints, m[0].tree, m[0].probe, m[0].work, w, 0, m[0].tree.count)
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
    if m[0].tries[w] > 3 * TOGETHER:
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
def settle_limit(m: wp.array(dtype=Motion), j: int, x: int, w: int, push: real, F: vec6) -> bool:
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
    if low <= TOUCHING:
        side = 1
    elif high <= TOUCHING:
        side = -1
    if side == 0:
        return False
    u = axis_speed(m, j, g, w)
    fall = -limit_accelerates(m, j, x, g, w) * real(side)
    if fall <= PUSHED or (wp.abs(u) > STILL and u * u > real(2.0) * fall * BOUNCE):
        return False
    m[0].touch[at, w] = side
    rest_on_limits(m, j, w)
    if n == 1 and has_friction(m, at, w):
        m[0].held[at, w] = 1
    return True


@wp.func
def settle(m: wp.array(dtype=Motion), w: int) -> bool:
    """Correct the modes that the forces of the last right-hand side do not allow; whether any was wrong."""
    m[0].tries[w] = m[0].tries[w] + 1
    changed = bool(False)
    if m[0].tries[w] > MOST_TRIES:
        return changed
    for j in range(m[0].own):
        for x in range(m[0].joints.v_size[j]):
            at = m[0].joints.v_start[j] + x
            if m[0].axes.group[at] == x and has_friction(m, at, w) and rests(m, j, x, w):
                if not (changed and m[0].tries[w] > TOGETHER):
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
                if limited(m, j, x) and not (changed and m[0].tries[w] > TOGETHER):
                    if settle_limit(m, j, x, w, push[x], F):
                        changed = True
                rubs = m[0].axes.group[at] == x and has_friction(m, at, w) and (n > 1 or m[0].touch[at, w] == 0)
                if rubs and not (changed and m[0].tries[w] > TOGETHER):
                    if m[0].held[at, w] == 1:
                        hold = friction_force(m, j, at, w, real(0.0), True)
                        need = limit_share(m, j, w, F)
                        if group_size(m, j, x, need) > hold + real(0.5) * slack(hold, F):
                            release(m, j, x, w, need)
                            changed = True
    return changed


@wp.func
def strike(m: wp.array(dtype=Motion), w: int):
    """Speeds after an impact, from the changes in a.

    No limit pulls, and none is left slower than it asks for: until that is so, they let go or hold, and the impact is redone.
    """
    m[0].tries[w] = m[0].tries[w] + 1
    again = bool(False)
    for i in range(m[0].tree.count):
        j = m[0].tree.joint[i]
        if j < m[0].own and m[0].tries[w] < MOST_TRIES:
            push = vec6()
            if m[0].laws.locks[i, w] > 0:
                push = limit_forces(m, j, w, lock_force(m, i, w))
            for x in range(m[0].joints.v_size[j]):
                at = m[0].joints.v_start[j] + x
                if limited(m, j, x) and not (again and m[0].tries[w] > TOGETHER):
                    low, high, g = limit_gaps(m, j, x, w)
                    if m[0].touch[at, w] != 0:
                        if push[x] < real(0.0):
                            m[0].touch[at, w] = 0
                            again = True
                    elif wp.min(low, high) <= TOUCHING:
                        side = int(1)
                        if high < low:
                            side = -1
                        change = real(0.0)
                        for y in range(m[0].joints.v_size[j]):
                            change = change + g[y] * m[0].a[m[0].joints.v_start[j] + y, w]
                        if (change - m[0].wanted[at, w]) * real(side) < real(-0.5) * STILL:
                            m[0].touch[at, w] = side
                            again = True
    if not again:
        for i in range(m[0].tree.count):
            j = m[0].tree.joint[i]
            for at in range(m[0].joints.v_start[j], m[0].joints.v_start[j] + m[0].joints.v_size[j]):
                m[0].v[at, w] = m[0].v[at, w] + m[0].a[at, w]
                m[0].a[at, w] = real(0.0)
                m[0].touch[at, w] = 0
        m[0].striking[w] = 0
