"""The right-hand side of a mechanism's motion, with all that acts on it, and its changes of mode: stick, slip, limit, impact.

Between changes of mode the motion is smooth. A group of axes that friction holds is locked; one that slides is pushed against
its speed. An axis at its limit is locked too. `margin` is positive as long as the modes hold, `reclassify` and `settle` find
those that hold next, `strike` the speeds after an impact:

    slides:   u·n > 0, n its heading when it began (so the force goes on smoothly past u = 0, until the change is located)
    held:     |force needed| < what can hold                 at a limit:   the limit pushes
"""

import warp as wp

from sharnir.articulated.closures import ClosureTable, ClosureWork, constrain, row_rate, solve_rows
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
STILL = wp.constant(real(1.0e-9))  # m/s, rad/s: no speed
TOUCHING = wp.constant(real(1.0e-9))  # m, rad: at a limit


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
    wanted: wp.array2d(dtype=real)  # [speed, world] in an impact: the change of speed at a limit
    load: wp.array2d(dtype=real)  # [joint, world] N, |constraint force|
    striking: wp.array(dtype=wp.int32)  # [world] 1: the right-hand side is that of an impact, a the change of v
    tries: wp.array(dtype=wp.int32)  # [world] changes of mode at one time


# ---- forces on the axes ---------------------------------------------------------------------------------------------------


@wp.func
def friction_force(m: Motion, j: int, head: int, w: int, speed: real, static: bool) -> real:
    """What friction of a group, named by its first axis, can hold, or its force at a speed."""
    load = m.control.friction_load[head, w] * m.load[j, w]
    high = m.control.friction_static[head, w]
    low = m.control.friction_dynamic[head, w]
    if static:
        return high + load
    s = m.control.friction_stribeck[head, w]
    if s > real(0.0) and high > low:
        return low + (high - low) * wp.exp(-speed * speed / (s * s)) + load
    return low + load


@wp.func
def has_friction(m: Motion, at: int, w: int) -> bool:
    return m.control.friction_static[at, w] > real(0.0) or m.control.friction_load[at, w] > real(0.0)


@wp.func
def motor_current(m: Motion, at: int, w: int) -> real:
    """A; without inductance it follows the speed."""
    row = m.current_of[at]
    if row >= 0:
        return m.current[row, w]
    emf = m.axes.torque_constant[at] * m.axes.gear_ratio[at] * m.v[at, w]
    return (m.control.voltage[at, w] - emf) / m.axes.resistance[at]


@wp.func
def drive_force(m: Motion, at: int, w: int, error: real) -> real:
    """Servo, with its cap, and DC motor; `error` is how far the servo's position is off."""
    u = m.v[at, w]
    cap = m.control.servo_max_force[at, w]
    push = m.control.servo_torque[at, w] - m.control.servo_kp[at, w] * error
    push = push - m.control.servo_kd[at, w] * (u - m.control.servo_velocity[at, w])
    push = wp.clamp(push, -cap, cap)
    if m.axes.resistance[at] > real(0.0):
        i = motor_current(m, at, w)
        N = m.axes.gear_ratio[at]
        eta = m.axes.efficiency[at]
        if i * N * u < real(0.0):
            eta = real(1.0) / eta
        push = push + N * eta * m.axes.torque_constant[at] * i
    return push


@wp.func
def axis_forces(m: Motion, j: int, w: int):
    """τ of a joint: applied forces, springs, dampers, drives, sliding friction."""
    n = m.joints.v_size[j]
    v0 = m.joints.v_start[j]
    q0 = m.joints.q_start[j]
    moves = n - m.joints.turns[j]
    pull = vec3(real(0.0))
    off = vec3(real(0.0))
    if j < m.own and m.joints.turns[j] == 3:
        at = v0 + moves
        _offset, turn = joint_transform(m.joints, j, w, m.q)
        rest = vec3(m.axes.rest[at], m.axes.rest[at + 1], m.axes.rest[at + 2])
        pull = ball_pull(turn, rest, vec3(m.axes.stiffness[at], m.axes.stiffness[at + 1], m.axes.stiffness[at + 2]))
        goal = vec3(m.control.servo_position[at, w], m.control.servo_position[at + 1, w], m.control.servo_position[at + 2, w])
        off = log_quat(turn * wp.quat_inverse(exp_quat(goal)))
    for i in range(n):
        at = v0 + i
        force = m.applied[at, w]
        if j < m.own:
            force = force - (m.axes.damping[at] + m.control.friction_viscous[at, w]) * m.v[at, w]
            error = real(0.0)
            if m.joints.turns[j] == 3 and i >= moves:
                force = force - pull[i - moves]
                error = off[i - moves]
            else:
                force = force - m.axes.stiffness[at] * (m.q[q0 + i, w] - m.axes.rest[at])
                error = m.q[q0 + i, w] - m.control.servo_position[at, w]
            force = force + drive_force(m, at, w, error)
        m.tau[at, w] = force
    if m.rough == 1 and j < m.own:
        for i in range(n):
            if m.axes.group[v0 + i] == i and has_friction(m, v0 + i, w):
                slide(m, j, i, w)


@wp.func
def slide(m: Motion, j: int, head: int, w: int):
    """The force of a group that slides, −F u/|u|; past u = 0 as if it had not turned round, and along its heading at rest."""
    v0 = m.joints.v_start[j]
    n = m.joints.v_size[j]
    size = real(0.0)
    ahead = real(0.0)
    for i in range(head, n):
        if m.axes.group[v0 + i] == head:
            size = size + m.v[v0 + i, w] * m.v[v0 + i, w]
            ahead = ahead + m.v[v0 + i, w] * m.heading[v0 + i, w]
    size = wp.sqrt(size)
    force = friction_force(m, j, v0 + head, w, size, False)
    for i in range(head, n):
        at = v0 + i
        if m.axes.group[at] == head and m.held[at, w] == 0:
            along = m.heading[at, w]
            if size > real(1.0e-12) and ahead != real(0.0):
                along = m.v[at, w] / size * wp.sign(ahead)
            m.tau[at, w] = m.tau[at, w] - force * along


# ---- limits ---------------------------------------------------------------------------------------------------------------


@wp.func
def ball_limits(m: Motion, j: int, w: int, ahead: real):
    """Values and rows of a ball joint's limits, where it will be in a short time."""
    v0 = m.joints.v_start[j] + m.joints.v_size[j] - 3
    _offset, turn = joint_transform(m.joints, j, w, m.q)
    turn = exp_quat(vec3(m.v[v0, w], m.v[v0 + 1, w], m.v[v0 + 2, w]) * ahead) * turn
    if m.joints.ball[j] == 1:
        values, rows = cardan_limits(wp.quat_to_matrix(turn))
        return values, rows
    values, rows = swing_twist_limits(turn, m.axes.upper[v0], m.axes.upper[v0 + 1])
    return values, rows


@wp.func
def limited(m: Motion, j: int, i: int) -> bool:
    at = m.joints.v_start[j] + i
    if m.joints.ball[j] == 2 and i == m.joints.v_size[j] - 2:
        return False  # the second half-angle of a cone
    return m.axes.lower[at] > -INFINITE or m.axes.upper[at] < INFINITE


@wp.func
def limit_gaps(m: Motion, j: int, i: int, w: int):
    """How far axis i is from its lower and upper limit, and its direction among the joint's axes."""
    n = m.joints.v_size[j]
    at = m.joints.v_start[j] + i
    g = vec6()
    g[i] = real(1.0)
    low = -INFINITE
    high = INFINITE
    if m.joints.ball[j] != 0 and i >= n - 3:
        values, rows = ball_limits(m, j, w, real(0.0))
        c = i - (n - 3)
        for h in range(3):
            g[n - 3 + h] = rows[h, c]
        if m.joints.ball[j] == 2 and c == 0:
            return values[0], INFINITE, g
        low = values[c] - m.axes.lower[at]
        high = m.axes.upper[at] - values[c]
    else:
        x = m.q[m.joints.q_start[j] + i, w]
        low = x - m.axes.lower[at]
        high = m.axes.upper[at] - x
    return low, high, g


@wp.func
def row_bend(m: Motion, j: int, i: int, w: int) -> real:
    """ġ·u of a limit's direction: a ball's turns with it."""
    n = m.joints.v_size[j]
    if m.joints.ball[j] == 0 or i < n - 3:
        return real(0.0)
    v0 = m.joints.v_start[j] + n - 3
    u = vec3(m.v[v0, w], m.v[v0 + 1, w], m.v[v0 + 2, w])
    e = real(1.0e-5) / (real(1.0) + wp.length(u))
    _a, after = ball_limits(m, j, w, e)
    _b, before = ball_limits(m, j, w, -e)
    c = i - (n - 3)
    rate = vec3(after[0, c] - before[0, c], after[1, c] - before[1, c], after[2, c] - before[2, c])
    return wp.dot(rate, u) / (real(2.0) * e)


@wp.func
def axis_speed(m: Motion, j: int, g: vec6, w: int) -> real:
    u = real(0.0)
    for i in range(m.joints.v_size[j]):
        u = u + g[i] * m.v[m.joints.v_start[j] + i, w]
    return u


# ---- the right-hand side --------------------------------------------------------------------------------------------------


@wp.func
def set_laws(m: Motion, i: int, w: int):
    """Rotors, and what is locked, for the recursion."""
    j = m.tree.joint[i]
    if j >= m.own:
        return
    n = m.joints.v_size[j]
    v0 = m.joints.v_start[j]
    C = mat66()
    locks = int(0)
    acts = int(0)
    for x in range(n):
        at = v0 + x
        rotor = m.axes.rotor_inertia[at] * m.axes.gear_ratio[at] * m.axes.gear_ratio[at]
        C[x, x] = rotor
        if rotor > real(0.0):
            acts = 1
        m.laws.resist[at, w] = rotor
        m.laws.push[at, w] = real(0.0)
        if m.touch[at, w] != 0 and limited(m, j, x):
            _low, _high, g = limit_gaps(m, j, x, w)
            m.laws.row[v0 + locks, w] = g
            m.laws.wanted[v0 + locks, w] = m.wanted[at, w]
            if m.striking[w] == 0:
                m.laws.wanted[v0 + locks, w] = -row_bend(m, j, x, w)
            locks = locks + 1
    if m.striking[w] == 0:
        for x in range(n):
            if m.held[v0 + x, w] == 1 and locks < n:
                g = vec6()
                g[x] = real(1.0)
                m.laws.row[v0 + locks, w] = g
                m.laws.wanted[v0 + locks, w] = real(0.0)
                locks = locks + 1
    if locks > 0:
        acts = 1
    m.laws.acts[i, w] = acts
    m.laws.locks[i, w] = locks
    m.laws.coupled[i, w] = C


@wp.func
def spring_forces(m: Motion, w: int):
    """Springs between points, added to the forces on the bodies."""
    for k in range(m.closures.springs.count):
        p = m.closures.springs.parent[k]
        c = m.closures.springs.child[k]
        r_p = wp.quat_rotate(m.work.rotation[p, w], m.closures.springs.parent_point[k])
        r_c = wp.quat_rotate(m.work.rotation[c, w], m.closures.springs.child_point[k])
        line = m.work.position[c, w] + r_c - m.work.position[p, w] - r_p
        length = wp.length(line)
        if length > real(1.0e-12):
            n = line / length
            v_c = m.work.velocity[c, w] + wp.cross(m.work.omega[c, w], r_c)
            v_p = m.work.velocity[p, w] + wp.cross(m.work.omega[p, w], r_p)
            pull = m.closures.springs.stiffness[k] * (length - m.closures.springs.rest[k])
            f = n * (-pull - m.closures.springs.damping[k] * wp.dot(n, v_c - v_p))
            m.work.force[c, w] = m.work.force[c, w] + f
            m.work.torque[c, w] = m.work.torque[c, w] + wp.cross(r_c, f)
            m.work.force[p, w] = m.work.force[p, w] - f
            m.work.torque[p, w] = m.work.torque[p, w] - wp.cross(r_p, f)


@wp.func
def find_loads(m: Motion, w: int) -> real:
    """|constraint force| of the joints with the accelerations found; returns the largest change of a friction force."""
    for i in range(m.tree.count):
        b = m.tree.body[i]
        I = rotated(wp.quat_to_matrix(m.work.rotation[b, w]), m.bodies.inertia[b])
        omega = m.work.spin[b, w]
        m.work.Q_l[i, w] = (m.work.acceleration[b, w] - m.gravity[0]) * m.bodies.mass[b] - m.work.force[b, w]
        m.work.Q_a[i, w] = I * m.work.turning[b, w] + wp.cross(omega, I * omega) - m.work.torque[b, w]
    for r in range(m.closures.count - m.closures.springs.count):
        b = m.rows.child[r]
        if b >= 0:
            link = m.rows.link_of[b]
            force = m.rows.force[r, w]
            if link >= 0:
                m.work.Q_l[link, w] = m.work.Q_l[link, w] - m.rows.child_l[r, w] * force
            link = m.rows.link_of[m.rows.parent[r]]
            if link >= 0:
                m.work.Q_l[link, w] = m.work.Q_l[link, w] - m.rows.parent_l[r, w] * force
    collect_wrenches(m.tree, w, m.work)
    change = real(0.0)
    for i in range(m.tree.count):
        j = m.tree.joint[i]
        if j < m.own:
            p = m.joints.parent[j]
            c = m.joints.child[j]
            pose = joint_pose(
                m.joints, j, m.work.position[p, w], m.work.rotation[p, w], m.work.position[c, w], m.work.rotation[c, w]
            )
            f = m.work.Q_l[i, w]
            most = real(0.0)
            for a in range(m.joints.v_size[j]):
                d, _n = free_axis(m.joints, j, a, pose)
                f = f - d * wp.dot(d, f)
                most = wp.max(most, m.control.friction_load[m.joints.v_start[j] + a, w])
            size = wp.length(f)
            change = wp.max(change, most * wp.abs(size - m.load[j, w]) / (real(1.0) + most * size))
            m.load[j, w] = size
    return change


@wp.func
def shift(m: Motion, i: int, w: int, by: wp.array2d(dtype=real)):
    """Coordinates of a link's joint, moved along its speeds."""
    j = m.tree.joint[i]
    v0 = m.joints.v_start[j]
    q0 = m.joints.q_start[j]
    plain = m.joints.v_size[j]
    if m.joints.turns[j] == 3:
        plain = plain - 3
        at = q0 + plain
        turn = exp_quat(vec3(by[v0 + plain, w], by[v0 + plain + 1, w], by[v0 + plain + 2, w]))
        p = turn * quat(m.q[at, w], m.q[at + 1, w], m.q[at + 2, w], m.q[at + 3, w])
        for c in range(4):
            m.q[at + c, w] = p[c]
    for c in range(plain):
        m.q[q0 + c, w] = m.q[q0 + c, w] + by[v0 + c, w]


@wp.func
def tighten(motion: wp.array(dtype=Motion), w: int) -> bool:
    """Bring the state closer to one whose loops are closed, by its own response; whether it was too far off.

    A singular pose asks for it at every right-hand side: there accelerations are exact only as far as the loops are closed.
    """
    m = motion[0]
    rows = m.closures.count - m.closures.springs.count
    off = real(0.0)
    size = real(1.0)
    for r in range(rows):
        off = wp.max(off, wp.abs(m.rows.gap[r, w]))
        rate = row_rate(m.closures, m.rows, r, w, m.work.velocity, m.work.omega, m.v)
        off = wp.max(off, wp.abs(rate))
    for i in range(m.tree.count):
        size = wp.max(size, wp.length(m.work.position[m.tree.body[i], w]))
        size = wp.max(size, wp.length(m.work.velocity[m.tree.body[i], w]))
    if off <= CLOSED * size:
        return False
    for level in range(2):
        for r in range(rows):
            if level == 0:
                m.rows.rhs[r, w] = -m.rows.gap[r, w]
            else:
                m.rows.rhs[r, w] = -row_rate(m.closures, m.rows, r, w, m.work.velocity, m.work.omega, m.v)
        solve_rows(m.joints, m.tree, m.closures, m.rows, m.work, w, rows)
        for i in range(m.tree.count):
            if level == 0:
                shift(m, i, w, m.rows.y)
            else:
                j = m.tree.joint[i]
                for at in range(m.joints.v_start[j], m.joints.v_start[j] + m.joints.v_size[j]):
                    m.v[at, w] = m.v[at, w] + m.rows.y[at, w]
    return True


@wp.func
def right_hand_side(motion: wp.array(dtype=Motion), w: int, stage: int, time: real, K: wp.array3d(dtype=real)):
    """K[stage] = (q̇, q̈, di/dt) at m.q, m.v, m.current and a time; of a quaternion ½ (ω, 0) ∘ p.

    Where loops are open in that state, it is moved to where they are closed.
    """
    m = motion[0]
    count = m.tree.count
    gravity = m.gravity[0]
    if m.striking[w] == 1:
        gravity = vec3(real(0.0))
    for b in range(m.bodies.count):
        m.work.force[b, w] = m.force[b, w]
        m.work.torque[b, w] = m.torque[b, w]
        if m.driven == 1 and m.rows.link_of[b] < 0:
            past = time - m.start[0]
            m.work.position[b, w] = m.base_position[b, w] + m.work.velocity[b, w] * past
            m.work.rotation[b, w] = turned(m.base_rotation[b, w], m.work.omega[b, w] * past)
    loops = m.closures.count > m.closures.springs.count
    for round in range(LOADS):
        for i in range(count):
            link_motion(m.joints, m.tree, i, w, m.q, m.v, m.work)
            if m.closures.springs.count > 0:
                link_velocity(m.joints, m.tree, i, w, m.v, m.work)
        if round == 0:
            spring_forces(m, w)
        for i in range(count):
            link_inertia(m.bodies, m.tree, i, w, gravity, m.work)
            axis_forces(m, m.tree.joint[i], w)
            set_laws(m, i, w)
            if m.striking[w] == 1:
                no_force(m, i, w)
        backward(m.bodies, m.joints, m.tree, w, m.tau, m.laws, m.work)
        for i in range(count):
            forward(m.joints, m.tree, i, w, m.a, m.laws, m.work)
        again = bool(False)
        if loops:
            constrain(m.joints, m.tree, m.closures, m.rows, m.work, w, m.q, m.v, m.a, m.striking[w] == 0)
            if m.striking[w] == 0 and round < TIGHTENED:
                again = tighten(motion, w)
        if m.loaded == 1 and not again:
            again = find_loads(m, w) > real(1.0e-13)
        if not again:
            break
    for i in range(count):
        j = m.tree.joint[i]
        n = m.joints.v_size[j]
        v0 = m.joints.v_start[j]
        q0 = m.joints.q_start[j]
        plain = n
        if m.joints.turns[j] == 3:
            plain = n - 3
            p = quat(m.q[q0 + plain, w], m.q[q0 + plain + 1, w], m.q[q0 + plain + 2, w], m.q[q0 + plain + 3, w])
            rate = quat(m.v[v0 + plain, w], m.v[v0 + plain + 1, w], m.v[v0 + plain + 2, w], real(0.0)) * p
            for c in range(4):
                K[stage, q0 + plain + c, w] = real(0.5) * rate[c]
        for c in range(plain):
            K[stage, q0 + c, w] = m.v[v0 + c, w]
        for c in range(n):
            K[stage, m.nq + v0 + c, w] = m.a[v0 + c, w]
    for c in range(m.currents):
        at = m.motor[c]
        emf = m.axes.torque_constant[at] * m.axes.gear_ratio[at] * m.v[at, w]
        drop = m.axes.resistance[at] * m.current[c, w]
        K[stage, m.nq + m.nv + c, w] = (m.control.voltage[at, w] - emf - drop) / m.axes.inductance[at]


@wp.func
def no_force(m: Motion, i: int, w: int):
    """In an impact nothing counts but impulses: no force, and what speeds alone contribute is left out."""
    m.work.Q_l[i, w] = vec3(real(0.0))
    m.work.Q_a[i, w] = vec3(real(0.0))
    m.work.bias_l[i, w] = vec3(real(0.0))
    m.work.bias_a[i, w] = vec3(real(0.0))
    j = m.tree.joint[i]
    for at in range(m.joints.v_start[j], m.joints.v_start[j] + m.joints.v_size[j]):
        m.tau[at, w] = real(0.0)


# ---- modes ------------------------------------------------------------------------------------------------------------------


@wp.func
def lock_force(m: Motion, i: int, w: int) -> vec6:
    """What the locks of a link's joint exert on its axes, after the right-hand side."""
    j = m.tree.joint[i]
    n = m.joints.v_size[j]
    v0 = m.joints.v_start[j]
    al, aa = base_acceleration(m.tree, i, w, m.work)
    rest = left_over(m.joints, m.tree, i, w, al, aa, m.work)
    if m.closures.count > m.closures.springs.count:
        for x in range(n):
            rest[x] = rest[x] + m.rows.u[v0 + x, w]
    out = vec6()
    if n == 1:
        out[0] = (m.work.U[v0, w] + m.laws.resist[v0, w]) * m.a[v0, w] - rest[0]
        return out
    U = small_inverse(m.work.inverse[i, w], n) + m.laws.coupled[i, w]
    for x in range(n):
        out[x] = -rest[x]
        for y in range(n):
            out[x] = out[x] + U[x, y] * m.a[v0 + y, w]
    return out


@wp.func
def limit_share(m: Motion, j: int, w: int, F: vec6) -> vec6:
    """Of what the locks exert, the part that limits in touch can take from friction: that along their directions, inwards."""
    for x in range(m.joints.v_size[j]):
        side = m.touch[m.joints.v_start[j] + x, w]
        if side != 0 and limited(m, j, x):
            _low, _high, g = limit_gaps(m, j, x, w)
            push = wp.dot(g, F) / wp.dot(g, g)
            if push * real(side) > real(0.0):
                F = F - g * push
    return F


@wp.func
def group_size(m: Motion, j: int, head: int, f: vec6) -> real:
    """Length of a joint's vector within a friction group."""
    size = real(0.0)
    for x in range(head, m.joints.v_size[j]):
        if m.axes.group[m.joints.v_start[j] + x] == head:
            size = size + f[x] * f[x]
    return wp.sqrt(size)


@wp.func
def margin(motion: wp.array(dtype=Motion), w: int) -> real:
    """Positive while the modes hold at the state of the last right-hand side."""
    m = motion[0]
    least = real(1.0e30)
    for i in range(m.tree.count):
        j = m.tree.joint[i]
        if j < m.own:
            n = m.joints.v_size[j]
            v0 = m.joints.v_start[j]
            F = vec6()
            if m.laws.locks[i, w] > 0:
                F = lock_force(m, i, w)
            for x in range(n):
                at = v0 + x
                hold = friction_force(m, j, v0 + m.axes.group[at], w, real(0.0), True)
                if m.axes.group[at] == x and has_friction(m, at, w):
                    if m.held[at, w] == 1:
                        least = wp.min(least, hold - group_size(m, j, x, limit_share(m, j, w, F)))
                    else:
                        ahead = real(0.0)
                        for y in range(x, n):
                            if m.axes.group[v0 + y] == x:
                                ahead = ahead + m.v[v0 + y, w] * m.heading[v0 + y, w]
                        if m.touch[at, w] == 0 or n > 1:
                            least = wp.min(least, ahead)
                if limited(m, j, x):
                    low, high, g = limit_gaps(m, j, x, w)
                    if m.touch[at, w] != 0:
                        room = real(0.0)
                        if n == 1 and has_friction(m, at, w):
                            room = hold
                        least = wp.min(least, wp.dot(g, F) * real(m.touch[at, w]) + room)
                    else:
                        least = wp.min(least, wp.min(low, high))
    return least


@wp.func
def reclassify(motion: wp.array(dtype=Motion), w: int, speed: real):
    """Modes that the state itself tells: what has come to rest may be held, what has reached a limit touches or strikes it.

    `speed` is that below which a group counts as at rest: of vectors that pass near zero, those that mean to stop.
    """
    m = motion[0]
    m.tries[w] = 0
    m.striking[w] = 0
    for i in range(m.tree.count):
        j = m.tree.joint[i]
        if j < m.own:
            n = m.joints.v_size[j]
            v0 = m.joints.v_start[j]
            for x in range(n):
                at = v0 + x
                m.wanted[at, w] = real(0.0)
                if limited(m, j, x):
                    low, high, g = limit_gaps(m, j, x, w)
                    u = axis_speed(m, j, g, w)
                    side = int(0)
                    if low <= TOUCHING and u <= STILL:
                        side = 1
                    elif high <= TOUCHING and u >= -STILL:
                        side = -1
                    m.touch[at, w] = side
                    if side != 0 and wp.abs(u) <= STILL:
                        for y in range(n):
                            m.v[v0 + y, w] = m.v[v0 + y, w] - g[y] * u / wp.dot(g, g)
                    elif side != 0:
                        back = m.axes.restitution[at] * u
                        if wp.abs(back) < real(1.0e-7):
                            back = real(0.0)
                        m.wanted[at, w] = -u - back
                        m.striking[w] = 1
            for x in range(n):
                if m.axes.group[v0 + x] == x and has_friction(m, v0 + x, w):
                    size = real(0.0)
                    ahead = real(0.0)
                    members = int(0)
                    for y in range(x, n):
                        if m.axes.group[v0 + y] == x:
                            size = size + m.v[v0 + y, w] * m.v[v0 + y, w]
                            ahead = ahead + m.v[v0 + y, w] * m.heading[v0 + y, w]
                            members = members + 1
                    size = wp.sqrt(size)
                    rests = size <= speed or (members == 1 and ahead < real(0.0) and m.held[v0 + x, w] == 0)
                    for y in range(x, n):
                        if m.axes.group[v0 + y] == x:
                            if rests:
                                if m.held[v0 + y, w] == 0:
                                    m.held[v0 + y, w] = 1
                                m.v[v0 + y, w] = real(0.0)
                            else:
                                m.held[v0 + y, w] = 0
                                m.heading[v0 + y, w] = m.v[v0 + y, w] / size


@wp.func
def release(m: Motion, j: int, head: int, w: int, F: vec6):
    """Let a held group go, against what held it."""
    v0 = m.joints.v_start[j]
    size = group_size(m, j, head, F)
    for y in range(head, m.joints.v_size[j]):
        if m.axes.group[v0 + y] == head:
            m.held[v0 + y, w] = 0
            m.heading[v0 + y, w] = -F[y] / size


@wp.func
def aim(m: Motion, i: int, j: int, head: int, w: int) -> bool:
    """Turn the heading of a group that begins to slide towards the acceleration that it gets; whether it turned."""
    v0 = m.joints.v_start[j]
    n = m.joints.v_size[j]
    speed = real(0.0)
    scale = real(1.0e30)
    for y in range(head, n):
        if m.axes.group[v0 + y] == head:
            speed = speed + wp.abs(m.v[v0 + y, w])
            if n > 1:
                scale = wp.min(scale, real(1.0) / m.work.inverse[i, w][y, y])
    if speed > real(0.0) or n == 1:
        return False
    force = friction_force(m, j, v0 + head, w, real(0.0), False)
    x = vec6()
    for y in range(head, n):
        if m.axes.group[v0 + y] == head:
            x[y] = scale * m.a[v0 + y, w] + force * m.heading[v0 + y, w]
    size = group_size(m, j, head, x)
    if size == real(0.0):
        return False
    off = real(0.0)
    for y in range(head, n):
        if m.axes.group[v0 + y] == head:
            new = x[y] / size
            off = wp.max(off, wp.abs(new - m.heading[v0 + y, w]))
            m.heading[v0 + y, w] = new
    return off > real(1.0e-12)


@wp.func
def settle(motion: wp.array(dtype=Motion), w: int) -> bool:
    """Correct the modes that the forces of the last right-hand side do not allow; whether any was wrong."""
    m = motion[0]
    m.tries[w] = m.tries[w] + 1
    changed = bool(False)
    for i in range(m.tree.count):
        j = m.tree.joint[i]
        if j < m.own and not (changed and m.tries[w] > 20):
            n = m.joints.v_size[j]
            v0 = m.joints.v_start[j]
            F = vec6()
            if m.laws.locks[i, w] > 0:
                F = lock_force(m, i, w)
            for x in range(n):
                at = v0 + x
                hold = friction_force(m, j, v0 + m.axes.group[at], w, real(0.0), True)
                slack = real(1.0e-12) * (real(1.0) + hold)
                if m.touch[at, w] != 0 and limited(m, j, x):
                    _low, _high, g = limit_gaps(m, j, x, w)
                    push = wp.dot(g, F) * real(m.touch[at, w])
                    room = slack
                    if n == 1 and has_friction(m, at, w):
                        room = hold + slack
                    if push < -room:
                        if n == 1 and has_friction(m, at, w):
                            m.held[at, w] = 0
                            m.heading[at, w] = real(m.touch[at, w])
                        m.touch[at, w] = 0
                        changed = True
                if m.axes.group[at] == x and has_friction(m, at, w) and (n > 1 or m.touch[at, w] == 0) and not changed:
                    if m.held[at, w] == 1:
                        need = limit_share(m, j, w, F)
                        if group_size(m, j, x, need) > hold + slack:
                            release(m, j, x, w, need)
                            changed = True
                    elif m.tries[w] < 300 and aim(m, i, j, x, w):
                        changed = True
    return changed


@wp.func
def strike(motion: wp.array(dtype=Motion), w: int):
    """Speeds after an impact, from the changes in m.a; where a limit in touch would pull, it lets go and the impact is redone."""
    m = motion[0]
    m.tries[w] = m.tries[w] + 1
    again = bool(False)
    for i in range(m.tree.count):
        j = m.tree.joint[i]
        if j < m.own and m.laws.locks[i, w] > 0 and m.tries[w] < 50:
            F = lock_force(m, i, w)
            for x in range(m.joints.v_size[j]):
                at = m.joints.v_start[j] + x
                if m.touch[at, w] != 0:
                    _low, _high, g = limit_gaps(m, j, x, w)
                    if wp.dot(g, F) * real(m.touch[at, w]) < real(0.0) and m.wanted[at, w] == real(0.0):
                        m.touch[at, w] = 0
                        again = True
    if not again:
        for i in range(m.tree.count):
            j = m.tree.joint[i]
            for at in range(m.joints.v_start[j], m.joints.v_start[j] + m.joints.v_size[j]):
                m.v[at, w] = m.v[at, w] + m.a[at, w]
        m.striking[w] = 0
