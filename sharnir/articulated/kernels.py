"""Steps in joint coordinates: one kernel that loops over them, a thread a world.

    M(q) (v⁺ − v)/Δt = τ − bias(q, ½(v + v⁺)) + Σ laws(v⁺),      q⁺ = q ⊕ Δt v⁺

Seen with speeds at half steps this is leapfrog: symmetric, second order, its energy swings but does not drift. The mean speed is
foretold from the last acceleration; where bodies turn far in a step it is corrected by further passes.

What acts on the axes is solved exactly where the forward pass meets a joint, given its base's motion; the backward pass needs
it linear, as it was in the pass before. Where the two agree at every joint, the step is solved: usually in one pass, in two or
three where a joint begins to stick or slip or meets a limit.
"""

import warp as wp

from sharnir.articulated.closures import (
    clear_push,
    eliminate,
    find_rows,
    push_forces,
    push_row,
    respond,
    response_matrix,
    row_rate,
    substitute,
)
from sharnir.articulated.data import Step
from sharnir.joints import free_axis, read_coordinates
from sharnir.kinematics import pose_at
from sharnir.laws import limit_boxes, prepare_laws, report_laws
from sharnir.rows import clamp_sign, limit_row, solve_axes, solve_axis
from sharnir.spatial import exp_quat, rotated, turned, unit
from sharnir.tree import (
    backward,
    base_acceleration,
    collect_wrenches,
    forward,
    left_over,
    link_inertia,
    link_motion,
    link_velocity,
)
from sharnir.types import mat33, mat66, quat, real, vec3, vec6

DYNAMIC = wp.constant(2)
SAME = wp.constant(real(1.0e-12))  # by so much coordinates and bodies may differ and be called one state
ALL_AT_ONCE = wp.constant(12)  # passes that correct every wrong joint; later ones settle one of them alone
SLOW = wp.constant(real(0.01))  # rad: bodies that turn less in half a step need no corrected mean speed
MID_TOLERANCE = wp.constant(real(1.0e-9))
PROJECTIONS = wp.constant(12)
CLOSED = wp.constant(real(1.0e-12))  # m, rad: a gap that is none


# ---- the state in and out -----------------------------------------------------------------------------------------------


@wp.func
def move_all(step: wp.array(dtype=Step), w: int, velocities: bool):
    """Poses, S and a′ of all links; velocities too where they are wanted."""
    s = step[0]
    for i in range(s.tree.count):
        link_motion(s.joints, s.tree, i, w, s.state.q, s.mid, s.work)
        if velocities:
            link_velocity(s.joints, s.tree, i, w, s.state.qd, s.work)


@wp.func
def unlike(a: vec3, b: vec3) -> bool:
    d = a - b
    return wp.dot(d, d) > SAME * SAME * (real(1.0) + wp.dot(a, a))


@wp.func
def changed(s: Step, w: int) -> bool:
    """Whether a body is elsewhere, or moves otherwise, than the coordinates say."""
    for b in range(s.own):
        if s.bodies.motion[b] == DYNAMIC:
            q = s.work.rotation[b, w]
            p = s.state.rotation[b, w]
            if wp.abs(wp.abs(wp.dot(q, p)) - real(1.0)) > SAME:
                return True
            if unlike(s.state.position[b, w], s.work.position[b, w]) or unlike(s.state.velocity[b, w], s.work.velocity[b, w]):
                return True
            if unlike(s.state.spin[b, w], s.work.omega[b, w]):
                return True
            turn = wp.quat_inverse(q) * p
            if turn[0] * turn[0] + turn[1] * turn[1] + turn[2] * turn[2] > SAME * SAME:
                return True
    return False


@wp.func
def read_joint(s: Step, j: int, w: int):
    """Coordinates and speeds of a joint from its bodies, as they stand in the work arrays."""
    pose = pose_at(s.joints, j, w, s.work.position, s.work.rotation)
    read_coordinates(s.joints, j, w, pose, s.state.q)
    p = s.joints.parent[j]
    c = s.joints.child[j]
    u_p = s.work.velocity[p, w] + wp.cross(s.work.omega[p, w], pose.child_anchor - s.work.position[p, w])
    u_c = s.work.velocity[c, w] + wp.cross(s.work.omega[c, w], pose.child_anchor - s.work.position[c, w])
    for i in range(s.joints.v_size[j]):
        d, n = free_axis(s.joints, j, i, pose)
        s.state.qd[s.joints.v_start[j] + i, w] = wp.dot(d, u_c - u_p) + wp.dot(n, s.work.omega[c, w] - s.work.omega[p, w])


@wp.func
def take_bodies(s: Step, w: int, every: bool):
    """The bodies' poses and velocities into the work arrays: all, or those alone that are no links."""
    for b in range(s.bodies.count):
        own = s.half_of[b]
        if every or s.rows.link_of[b] < 0:
            s.work.position[b, w] = s.state.position[own, w]
            s.work.rotation[b, w] = s.state.rotation[own, w]
            s.work.velocity[b, w] = s.state.velocity[own, w]
            s.work.spin[b, w] = s.state.spin[own, w]
            s.work.omega[b, w] = s.state.spin[own, w]


@wp.func
def foretell(s: Step, w: int):
    """The mean speeds of the step, from the last acceleration."""
    half = real(0.5) * s.settings.dt[0]
    for i in range(s.tree.count):
        j = s.tree.joint[i]
        for a in range(s.joints.v_start[j], s.joints.v_start[j] + s.joints.v_size[j]):
            s.mid[a, w] = s.state.qd[a, w] + half * s.qdd[a, w]


@wp.func
def store(step: wp.array(dtype=Step), w: int):
    """Poses, velocities and coordinates into the caller's state."""
    s = step[0]
    dt = s.settings.dt[0]
    for i in range(s.tree.count):
        link_velocity(s.joints, s.tree, i, w, s.state.qd, s.work)
    for b in range(s.own):
        v = s.work.velocity[b, w]
        R = s.work.rotation[b, w]
        omega = s.work.omega[b, w]
        s.state.position[b, w] = s.work.position[b, w]
        s.state.rotation[b, w] = R
        s.state.velocity[b, w] = v
        s.state.spin[b, w] = omega
        s.state.rest[b, w] = vec3(real(0.0))
        s.state.acceleration[b, w] = (v - s.old_velocity[b, w]) / dt
        if s.bodies.motion[b] == DYNAMIC:
            s.state.momentum[b, w] = rotated(wp.quat_to_matrix(R), s.whole.inertia[b]) * omega
    for j in range(s.scene_joints):
        if s.read[j] == 1:
            read_joint(s, j, w)
    for i in range(s.nq):
        s.q[i, w] = s.state.q[i, w]
    for i in range(s.nv):
        s.qd[i, w] = s.state.qd[i, w]


# ---- laws of the axes -----------------------------------------------------------------------------------------------------


@wp.func
def open_laws(step: wp.array(dtype=Step), i: int, w: int):
    """The laws of a link's joint, and a guess of their solution: it goes on as it does."""
    s = step[0]
    j = s.tree.joint[i]
    on = int(0)
    if j < s.scene_joints:
        on = s.control.acts[j, w]
    s.linear.acts[i, w] = on
    if on == 0:
        return
    v0 = s.joints.v_start[j]
    for at in range(v0, v0 + s.joints.v_size[j]):
        s.laws.start[at, w] = s.state.qd[at, w]
        s.laws.end[at, w] = s.state.qd[at, w]
    prepare_laws(s, s.laws, j, w, pose_at(s.joints, j, w, s.work.position, s.work.rotation))
    for a in range(s.joints.v_size[j]):
        at = v0 + a
        u = s.laws.start[at, w]
        s.slid[at, w] = real(0.0)
        head = v0 + s.axes.group[at]
        if s.laws.hold[head, w] > s.laws.slide[head, w]:
            s.laws.stuck[at, w] = 1
        if s.joints.v_size[j] == 1:
            s.laws.friction[at, w] = -wp.sign(u) * s.laws.slide[at, w]
            if u == real(0.0) and s.laws.hold[at, w] > real(0.0):
                s.laws.stuck[at, w] = 1
        if s.laws.hold[head, w] <= real(0.0):
            s.laws.stuck[at, w] = 0


@wp.func
def servo_part(s: Step, at: int, w: int, u: real):
    """(a, b) of an axis' linear laws and its servo, free or at its cap, at the speed u: p = −a u − b."""
    a = s.laws.a[at, w]
    b = s.laws.b[at, w]
    servo = -s.laws.servo_a[at, w] * u - s.laws.servo_b[at, w]
    cap = s.laws.servo_cap[at, w]
    if wp.abs(servo) > cap:
        return a, b - clamp_sign(servo, cap)
    return a + s.laws.servo_a[at, w], b + s.laws.servo_b[at, w]


@wp.func
def linear_one(s: Step, i: int, w: int):
    """The laws of a link's only axis, linear about their solution."""
    at = s.joints.v_start[s.tree.joint[i]]
    dt = s.settings.dt[0]
    v = s.laws.start[at, w]
    a, b = servo_part(s, at, w, s.laws.end[at, w])
    limit = s.laws.limit[at, w]
    target = real(0.0)
    locks = s.laws.stuck[at, w]
    if s.laws.friction[at, w] * s.slid[at, w] < real(0.0) and locks == 0:
        locks = 1  # between sliding one way and the other it holds, or passes could go to and fro
    s.slid[at, w] = s.laws.friction[at, w] * real(1 - locks)
    if limit != real(0.0):
        locks = 1
        target = s.laws.lower[at, w]
        if limit < real(0.0):
            target = s.laws.upper[at, w]
    s.linear.locks[i, w] = locks
    s.linear.wanted[at, w] = (target - v) / dt
    s.linear.resist[at, w] = a
    s.linear.push[at, w] = (a * v + b - s.laws.friction[at, w]) / dt


@wp.func
def linear_several(s: Step, i: int, w: int):
    """The laws of a link's axes, linear about their solution.

    Sliding friction of a group, p = −slide u/|u|, has the slope −slide/|u| (E − n nᵀ), n = u/|u|: a resistance across n.
    """
    j = s.tree.joint[i]
    n = s.joints.v_size[j]
    v0 = s.joints.v_start[j]
    dt = s.settings.dt[0]
    C = mat66()
    v = vec6()
    b = vec6()
    for x in range(n):
        at = v0 + x
        v[x] = s.laws.start[at, w]
        a, c = servo_part(s, at, w, s.laws.end[at, w])
        C[x, x] = a
        b[x] = c
    locks = int(0)
    rests = vec6()  # 1 where friction holds the axis
    for x in range(n):
        slide = s.laws.slide[v0 + x, w]
        if s.axes.group[v0 + x] == x and (slide > real(0.0) or s.laws.stuck[v0 + x, w] == 1):
            size = real(0.0)
            along = real(0.0)
            for y in range(x, n):
                if s.axes.group[v0 + y] == x:
                    size = size + s.laws.end[v0 + y, w] * s.laws.end[v0 + y, w]
                    along = along + s.laws.friction[v0 + y, w] * s.slid[v0 + y, w]
            size = wp.max(wp.sqrt(size), real(1.0e-12))
            holds = s.laws.stuck[v0 + x, w] == 1 or along < real(0.0)  # before it slides the other way
            for y in range(x, n):
                if s.axes.group[v0 + y] == x:
                    s.slid[v0 + y, w] = s.laws.friction[v0 + y, w]
                    if holds:
                        s.slid[v0 + y, w] = real(0.0)
                        rests[y] = real(1.0)
                        g = vec6()
                        g[y] = real(1.0)
                        s.linear.row[v0 + locks, w] = g
                        s.linear.wanted[v0 + locks, w] = -v[y] / dt
                        locks = locks + 1
                    else:
                        n_y = s.laws.end[v0 + y, w] / size
                        b[y] = b[y] + slide * n_y
                        C[y, y] = C[y, y] + slide / size
                        for z in range(x, n):
                            if s.axes.group[v0 + z] == x:
                                C[y, z] = C[y, z] - slide / size * n_y * s.laws.end[v0 + z, w] / size
    turn = n - s.joints.turns[j]
    rows = mat33(real(0.0))
    if s.joints.ball[j] != 0:
        for x in range(3):
            row = s.laws.row[v0 + turn + x, w]
            for h in range(3):
                rows[h, x] = row[h]
    for x in range(n):
        limit = s.laws.limit[v0 + x, w]
        if limit != real(0.0) and rests[x] == real(0.0) and locks < n:
            g = limit_row(rows, x, turn, s.joints.ball[j])
            target = s.laws.lower[v0 + x, w]
            if limit < real(0.0):
                target = s.laws.upper[v0 + x, w]
            s.linear.row[v0 + locks, w] = g
            s.linear.wanted[v0 + locks, w] = (target - wp.dot(g, v)) / dt
            locks = locks + 1
    s.linear.locks[i, w] = locks
    s.linear.coupled[i, w] = C
    b = b + C * v
    for x in range(n):
        s.linear.push[v0 + x, w] = b[x] / dt


@wp.func
def linearise(step: wp.array(dtype=Step), i: int, w: int):
    s = step[0]
    if s.joints.v_size[s.tree.joint[i]] == 1:
        linear_one(s, i, w)
    else:
        linear_several(s, i, w)


@wp.func
def solve_one_axis(s: Step, i: int, w: int, rest: real) -> real:
    """All laws of a link's only axis; returns how far off, N·s, they were as linear."""
    at = s.joints.v_start[s.tree.joint[i]]
    dt = s.settings.dt[0]
    v = s.laws.start[at, w]
    U = s.work.U[at, w]
    A = real(1.0) / U
    linear = v + dt * (s.work.Y[at, w] * rest + s.work.y[at, w])
    u = v + dt * A * rest
    change, f, limit, held, taken = solve_axis(
        u, A, real(0.0), s.laws.a[at, w], s.laws.b[at, w], s.laws.servo_a[at, w], s.laws.servo_b[at, w],
        s.laws.servo_cap[at, w], s.laws.hold[at, w], s.laws.slide[at, w], s.laws.lower[at, w], s.laws.upper[at, w],
    )  # fmt: skip
    u = u + A * change
    if held == 1:
        u = real(0.0)
    elif limit > real(0.0):
        u = s.laws.lower[at, w]
    elif limit < real(0.0):
        u = s.laws.upper[at, w]
    s.laws.impulse[at, w] = change
    s.laws.friction[at, w] = f
    s.laws.limit[at, w] = limit
    s.laws.stuck[at, w] = held
    s.laws.taken[at, w] = taken
    s.laws.end[at, w] = u
    s.qdd[at, w] = (u - v) / dt
    return wp.abs(u - linear) * U


@wp.func
def solve_several_axes(s: Step, i: int, w: int, rest: vec6) -> real:
    """All laws of a link's axes; returns how far off, N·s, they were as linear."""
    j = s.tree.joint[i]
    n = s.joints.v_size[j]
    v0 = s.joints.v_start[j]
    dt = s.settings.dt[0]
    A = s.work.inverse[i, w]
    free = A * rest
    linear = s.work.response[i, w] * rest
    u = vec6()
    for x in range(n):
        u[x] = s.laws.start[v0 + x, w] + dt * free[x]
        s.laws.impulse[v0 + x, w] = real(0.0)
    u = u + A * solve_axes(s.laws, s.axes.group, v0, w, n, n - s.joints.turns[j], s.joints.ball[j], u, A)
    off = real(0.0)
    for x in range(n):
        at = v0 + x
        if s.laws.stuck[at, w] == 1:
            u[x] = real(0.0)
        s.laws.end[at, w] = u[x]
        y = (u[x] - s.laws.start[at, w]) / dt
        s.qdd[at, w] = y
        off = wp.max(off, wp.abs(dt * (linear[x] + s.work.y[at, w] - y)) / A[x, x])
    return off


@wp.func
def solve_laws(step: wp.array(dtype=Step), i: int, w: int) -> real:
    """One link of the forward pass where something acts: the laws exactly, for its base's motion. Returns the mismatch, N·s."""
    s = step[0]
    j = s.tree.joint[i]
    n = s.joints.v_size[j]
    v0 = s.joints.v_start[j]
    al, aa = base_acceleration(s.tree, i, w, s.work)
    rest = left_over(s.joints, s.tree, i, w, al, aa, s.work)
    off = real(0.0)
    if n == 1:
        off = solve_one_axis(s, i, w, rest[0])
    else:
        off = solve_several_axes(s, i, w, rest)
    for at in range(v0, v0 + n):
        al = al + s.work.S_l[at, w] * s.qdd[at, w]
        aa = aa + s.work.S_a[at, w] * s.qdd[at, w]
    s.work.acceleration[s.tree.body[i], w] = al + s.work.bias_l[i, w]
    s.work.turning[s.tree.body[i], w] = aa + s.work.bias_a[i, w]
    return off


# ---- the passes -----------------------------------------------------------------------------------------------------------


@wp.func
def inward(step: wp.array(dtype=Step), w: int):
    s = step[0]
    backward(s.bodies, s.joints, s.tree, w, s.tau, s.linear, s.work)


@wp.func
def inertias(step: wp.array(dtype=Step), w: int):
    s = step[0]
    for i in range(s.tree.count):
        link_inertia(s.bodies, s.tree, i, w, s.settings.gravity[0], s.work)


@wp.func
def outward(step: wp.array(dtype=Step), w: int, exact: bool) -> real:
    """Accelerations; laws solved exactly, or as linear. Returns the largest mismatch of the two, N·s."""
    s = step[0]
    most = real(0.0)
    for i in range(s.tree.count):
        if exact and s.linear.acts[i, w] == 1:
            off = solve_laws(step, i, w)
            s.mismatch[i, w] = off
            most = wp.max(most, off)
        else:
            forward(s.joints, s.tree, i, w, s.qdd, s.linear, s.work)
    return most


@wp.func
def eliminate_rows(step: wp.array(dtype=Step), w: int, rows: int):
    s = step[0]
    response_matrix(s.joints, s.tree, s.closures, s.rows, s.work, w, rows)
    eliminate(s.rows, w, rows)


@wp.func
def push_rows(step: wp.array(dtype=Step), w: int, rows: int):
    """Forces on the rows from their right-hand sides, and the tree's response to them."""
    s = step[0]
    substitute(s.rows, w, rows)
    push_forces(s.joints, s.tree, s.closures, s.rows, s.work, w, rows)


@wp.func
def soften(s: Step, r: int, i: int, w: int):
    """Softness and rest of a spring's row: p = −a u − b with a = Δt (Δt k + c), b = Δt k (length − rest)."""
    dt = s.settings.dt[0]
    k = s.closures.springs.stiffness[i]
    a = dt * (dt * k + s.closures.springs.damping[i])
    s.rows.soft[r, w] = real(-1.0)
    if a > real(0.0) and wp.length_sq(s.rows.child_l[r, w]) > real(0.0):
        s.rows.soft[r, w] = real(1.0) / a
        s.rows.rhs[r, w] = s.rows.rhs[r, w] - s.rows.gap[r, w] * k / a


@wp.func
def drift(s: Step, w: int):
    """Accelerations of the bodies that their speeds alone bring, into the response's arrays."""
    for i in range(s.tree.count):
        base = s.tree.base[i]
        aa = s.rows.a_a[base, w]
        s.rows.a_l[s.tree.body[i], w] = s.rows.a_l[base, w] + wp.cross(aa, s.work.arm[i, w]) + s.work.bias_l[i, w]
        s.rows.a_a[s.tree.body[i], w] = aa + s.work.bias_a[i, w]
        j = s.tree.joint[i]
        for a in range(s.joints.v_start[j], s.joints.v_start[j] + s.joints.v_size[j]):
            s.rows.y[a, w] = real(0.0)


@wp.func
def close_loops(step: wp.array(dtype=Step), w: int):
    """Forces on the rows so that speeds lead along the chord of the arc that they prescribe, added to the links' u.

    (G⁺ − G)/Δt = J V + Δt J (a − ½ drift) + ½Δt γ = 0.
    """
    s = step[0]
    dt = s.settings.dt[0]
    rows = s.closures.count
    for i in range(s.tree.count):
        link_velocity(s.joints, s.tree, i, w, s.state.qd, s.work)
    find_rows(s.joints, s.closures, s.rows, s.work, s.state.q, w)
    drift(s, w)
    hard = rows - s.closures.springs.count
    for r in range(rows):
        now = row_rate(s.closures, s.rows, r, w, s.work.velocity, s.work.spin, s.state.qd)
        arc = row_rate(s.closures, s.rows, r, w, s.rows.a_l, s.rows.a_a, s.rows.y) - s.rows.gamma[r, w]
        free = row_rate(s.closures, s.rows, r, w, s.work.acceleration, s.work.turning, s.qdd)
        s.rows.rhs[r, w] = real(0.5) * arc - now / dt - free
        if r >= hard:
            soften(s, r, r - hard, w)
    eliminate_rows(step, w, rows)
    push_rows(step, w, rows)
    for i in range(s.tree.count):
        j = s.tree.joint[i]
        for a in range(s.joints.v_start[j], s.joints.v_start[j] + s.joints.v_size[j]):
            s.work.u[a, w] = s.work.u[a, w] + s.rows.u[a, w]


@wp.func
def own_response(step: wp.array(dtype=Step), at: int, w: int):
    """Accelerations of all axes, into rows.y, by a unit force on one: all that acts elsewhere as linear, loops closed."""
    s = step[0]
    rows = s.closures.count
    clear_push(s.joints, s.tree, s.rows, w)
    s.rows.u[at, w] = real(1.0)
    respond(s.joints, s.tree, s.rows, s.work, w)
    if rows > 0:
        for r in range(rows):
            s.rows.rhs[r, w] = -row_rate(s.closures, s.rows, r, w, s.rows.a_l, s.rows.a_a, s.rows.y)
        substitute(s.rows, w, rows)
        clear_push(s.joints, s.tree, s.rows, w)
        s.rows.u[at, w] = real(1.0)
        for r in range(rows):
            push_row(s.closures, s.rows, r, w, s.rows.force[r, w])
        respond(s.joints, s.tree, s.rows, s.work, w)


@wp.func
def settle(step: wp.array(dtype=Step), i: int, w: int):
    """The laws of one link exactly, where its base and all else yield, as linear: joints that upset each other come to an end."""
    s = step[0]
    j = s.tree.joint[i]
    n = s.joints.v_size[j]
    v0 = s.joints.v_start[j]
    dt = s.settings.dt[0]
    s.linear.locks[i, w] = 0
    s.linear.coupled[i, w] = mat66()
    for at in range(v0, v0 + n):
        s.linear.resist[at, w] = real(0.0)
        s.linear.push[at, w] = real(0.0)
    inertias(step, w)
    inward(step, w)
    outward(step, w, False)
    if s.closures.count > 0:
        close_loops(step, w)
        outward(step, w, False)
    u = vec6()
    A = mat66()
    for x in range(n):
        u[x] = s.laws.start[v0 + x, w] + dt * s.qdd[v0 + x, w]
        s.laws.impulse[v0 + x, w] = real(0.0)
        s.slid[v0 + x, w] = real(0.0)
    for x in range(n):
        own_response(step, v0 + x, w)
        for y in range(n):
            A[y, x] = s.rows.y[v0 + y, w]
    if n == 1:
        change, f, limit, held, _taken = solve_axis(
            u[0], A[0, 0], real(0.0), s.laws.a[v0, w], s.laws.b[v0, w], s.laws.servo_a[v0, w], s.laws.servo_b[v0, w],
            s.laws.servo_cap[v0, w], s.laws.hold[v0, w], s.laws.slide[v0, w], s.laws.lower[v0, w], s.laws.upper[v0, w],
        )  # fmt: skip
        u[0] = u[0] + A[0, 0] * change
        s.laws.friction[v0, w] = f
        s.laws.limit[v0, w] = limit
        s.laws.stuck[v0, w] = held
    else:
        u = u + A * solve_axes(s.laws, s.axes.group, v0, w, n, n - s.joints.turns[j], s.joints.ball[j], u, A)
    for x in range(n):
        s.laws.end[v0 + x, w] = u[x]
    linearise(step, i, w)


@wp.func
def mid_missed(s: Step, w: int, last: real) -> real:
    """By how much the mean speeds were not those foretold, where that matters; puts them right. 0 where they stay.

    Close to a singular pose of a loop passes on them lead astray: where they do not contract, what there is must do.
    """
    half = real(0.5) * s.settings.dt[0]
    fastest = real(0.0)
    off = real(0.0)
    size = real(0.0)
    for i in range(s.tree.count):
        fastest = wp.max(fastest, wp.length_sq(s.work.spin[s.tree.body[i], w]))
    if fastest * half * half < SLOW * SLOW:
        return real(0.0)
    for i in range(s.tree.count):
        j = s.tree.joint[i]
        for a in range(s.joints.v_start[j], s.joints.v_start[j] + s.joints.v_size[j]):
            mean = s.state.qd[a, w] + half * s.qdd[a, w]
            off = wp.max(off, wp.abs(mean - s.mid[a, w]))
            size = wp.max(size, wp.abs(mean))
    if off <= MID_TOLERANCE * size or (off > last and s.closures.count > s.closures.springs.count):
        return real(0.0)
    for i in range(s.tree.count):
        j = s.tree.joint[i]
        for a in range(s.joints.v_start[j], s.joints.v_start[j] + s.joints.v_size[j]):
            s.mid[a, w] = s.state.qd[a, w] + half * s.qdd[a, w]
    return off


@wp.func
def solve(step: wp.array(dtype=Step), w: int):
    """Passes until laws and their linearisations agree: new accelerations in s.qdd."""
    s = step[0]
    passes = int(0)
    off = real(0.0)
    last = real(1.0e30)
    again = int(1)
    while again == 1:
        inward(step, w)
        if s.closures.count > 0:
            outward(step, w, False)
            close_loops(step, w)
        off = outward(step, w, True)
        passes = passes + 1
        again = 0
        if passes < s.settings.iterations[0]:
            if off > s.settings.tolerance[0]:
                again = 1
                for i in range(s.tree.count):
                    if s.linear.acts[i, w] == 1 and s.mismatch[i, w] > s.settings.tolerance[0]:
                        if passes > ALL_AT_ONCE:
                            settle(step, i, w)
                            break
                        linearise(step, i, w)
            missed = mid_missed(s, w, last)
            if missed > real(0.0):
                again = 1
                last = missed
                move_all(step, w, False)
            if again == 1:
                inertias(step, w)
    s.done[w] = passes
    s.residual[w] = off


# ---- a state given from outside --------------------------------------------------------------------------------------------


@wp.func
def fit_speeds(step: wp.array(dtype=Step), w: int):
    """Speeds from those of the bodies: what joints and loops do not allow is taken off by impulses, as if they had just closed.

    M(q) q̇ = Sᵀ (m v, I ω) is the recursion with momenta for forces, and a driven base's velocity for its acceleration.
    """
    s = step[0]
    zero = vec3(real(0.0))
    for b in range(s.bodies.count):
        if s.rows.link_of[b] < 0:
            s.work.acceleration[b, w] = s.work.velocity[b, w]
            s.work.turning[b, w] = s.work.omega[b, w]
    for i in range(s.tree.count):
        b = s.tree.body[i]
        s.work.force[b, w] = zero
        s.work.torque[b, w] = zero
        link_inertia(s.bodies, s.tree, i, w, zero, s.work)
        s.work.Q_l[i, w] = s.work.velocity[b, w] * s.bodies.mass[b]
        s.work.Q_a[i, w] = s.work.D[i, w] * s.work.omega[b, w]
        s.work.bias_l[i, w] = zero
        s.work.bias_a[i, w] = zero
        s.linear.acts[i, w] = 0
        j = s.tree.joint[i]
        for a in range(s.joints.v_start[j], s.joints.v_start[j] + s.joints.v_size[j]):
            s.tau[a, w] = real(0.0)
    inward(step, w)
    outward(step, w, False)
    rows = s.closures.count - s.closures.springs.count
    find_rows(s.joints, s.closures, s.rows, s.work, s.state.q, w)
    for r in range(rows):
        s.rows.rhs[r, w] = -row_rate(s.closures, s.rows, r, w, s.work.acceleration, s.work.turning, s.qdd)
    eliminate_rows(step, w, rows)
    push_rows(step, w, rows)
    for i in range(s.tree.count):
        j = s.tree.joint[i]
        for a in range(s.joints.v_start[j], s.joints.v_start[j] + s.joints.v_size[j]):
            s.state.qd[a, w] = s.qdd[a, w] + s.rows.y[a, w]
            s.qdd[a, w] = real(0.0)  # the last acceleration tells nothing
    for b in range(s.bodies.count):
        if s.rows.link_of[b] < 0:
            s.work.acceleration[b, w] = zero
            s.work.turning[b, w] = zero


@wp.func
def load(step: wp.array(dtype=Step), w: int):
    """Coordinates from the caller's state: its own where they fit its bodies, else read off these."""
    s = step[0]
    for i in range(s.nq):
        s.state.q[i, w] = s.q[i, w]
    for i in range(s.nv):
        s.state.qd[i, w] = s.qd[i, w]
    take_bodies(s, w, True)
    for j in range(s.scene_joints, s.joints.count):
        read_joint(s, j, w)
    foretell(s, w)
    move_all(step, w, True)
    if changed(s, w):
        take_bodies(s, w, True)
        for j in range(s.joints.count):
            read_joint(s, j, w)
        move_all(step, w, False)
        fit_speeds(step, w)
        foretell(s, w)
        move_all(step, w, True)
    for b in range(s.own):
        s.work.force[b, w] = s.control.force[b, w] + s.control.force_once[b, w]
        s.work.torque[b, w] = s.control.torque[b, w] + s.control.torque_once[b, w]
        s.control.force_once[b, w] = vec3(real(0.0))
        s.control.torque_once[b, w] = vec3(real(0.0))


# ---- a step ---------------------------------------------------------------------------------------------------------------


@wp.func
def shift(s: Step, i: int, w: int, v: wp.array2d(dtype=real), dt: real):
    """q ⊕ Δt v of a link's joint; a quaternion turns by the rotation vector in its parent's frame."""
    j = s.tree.joint[i]
    n = s.joints.v_size[j]
    v0 = s.joints.v_start[j]
    q0 = s.joints.q_start[j]
    plain = n
    if s.joints.turns[j] == 3:
        plain = n - 3
        at = q0 + plain
        p = quat(s.state.q[at, w], s.state.q[at + 1, w], s.state.q[at + 2, w], s.state.q[at + 3, w])
        p = unit(exp_quat(vec3(v[v0 + plain, w], v[v0 + plain + 1, w], v[v0 + plain + 2, w]) * dt) * p)
        for c in range(4):
            s.state.q[at + c, w] = p[c]
    for c in range(plain):
        s.state.q[q0 + c, w] = s.state.q[q0 + c, w] + dt * v[v0 + c, w]


@wp.func
def project(step: wp.array(dtype=Step), w: int):
    """Coordinates moved, by the tree's response, until the loops are closed; what is locked stays."""
    s = step[0]
    rows = s.closures.count - s.closures.springs.count
    for _i in range(PROJECTIONS):
        find_rows(s.joints, s.closures, s.rows, s.work, s.state.q, w)
        most = real(0.0)
        for r in range(rows):
            s.rows.rhs[r, w] = -s.rows.gap[r, w]
            most = wp.max(most, wp.abs(s.rows.gap[r, w]))
        if most <= CLOSED or not wp.isfinite(most):
            break
        inertias(step, w)
        inward(step, w)
        eliminate_rows(step, w, rows)
        push_rows(step, w, rows)
        for i in range(s.tree.count):
            shift(s, i, w, s.rows.y, real(1.0))
        move_all(step, w, False)


@wp.func
def repair_limits(s: Step, i: int, w: int):
    """Speeds s.mid that take a passed limit of a link back in, beside those of its motion: they move positions alone."""
    j = s.tree.joint[i]
    n = s.joints.v_size[j]
    v0 = s.joints.v_start[j]
    passed = int(0)
    for at in range(v0, v0 + n):
        if s.laws.lower[at, w] >= real(0.0) or s.laws.upper[at, w] <= real(0.0):
            passed = 1
    if passed == 0:
        return
    for at in range(v0, v0 + n):
        s.laws.start[at, w] = real(0.0)
    limit_boxes(s, s.laws, j, w, pose_at(s.joints, j, w, s.work.position, s.work.rotation), real(1.0), False)
    least = SAME / s.settings.dt[0]
    turn = n - s.joints.turns[j]
    for x in range(n):
        at = v0 + x
        off = wp.max(s.laws.lower[at, w], real(0.0)) + wp.min(s.laws.upper[at, w], real(0.0))
        if wp.abs(off) > least:
            if s.joints.ball[j] != 0 and x >= turn:
                row = s.laws.row[at, w]
                for h in range(3):
                    s.mid[v0 + turn + h, w] = s.mid[v0 + turn + h, w] + row[h] * off / wp.dot(row, row)
            else:
                s.mid[at, w] = s.mid[at, w] + off


@wp.func
def keep_reactions(s: Step, w: int):
    """Constraint impulses of the joints: what a link takes from its base, at the anchor, less what acts along the axes."""
    dt = s.settings.dt[0]
    for i in range(s.tree.count):
        b = s.tree.body[i]
        I = rotated(wp.quat_to_matrix(s.work.rotation[b, w]), s.bodies.inertia[b])
        omega = s.work.spin[b, w]
        f_l = s.work.acceleration[b, w] * s.bodies.mass[b] - s.settings.gravity[0] * s.bodies.mass[b] - s.work.force[b, w]
        f_a = I * s.work.turning[b, w] + wp.cross(omega, I * omega) - s.work.torque[b, w]
        s.work.Q_l[i, w] = f_l
        s.work.Q_a[i, w] = f_a
    for r in range(s.closures.count):
        b = s.rows.child[r]
        if b >= 0:
            link = s.rows.link_of[b]
            force = s.rows.force[r, w]
            if link >= 0:
                s.work.Q_l[link, w] = s.work.Q_l[link, w] - s.rows.child_l[r, w] * force
                s.work.Q_a[link, w] = s.work.Q_a[link, w] - s.rows.child_a[r, w] * force
            link = s.rows.link_of[s.rows.parent[r]]
            if link >= 0:
                s.work.Q_l[link, w] = s.work.Q_l[link, w] - s.rows.parent_l[r, w] * force
                s.work.Q_a[link, w] = s.work.Q_a[link, w] - s.rows.parent_a[r, w] * force
    collect_wrenches(s.tree, w, s.work)
    for i in range(s.tree.count):
        j = s.tree.joint[i]
        if j < s.scene_joints:
            sign = real(s.tree.sign[i])
            body = s.tree.body[i]
            pose = pose_at(s.joints, j, w, s.work.position, s.work.rotation)
            f = s.work.Q_l[i, w] * sign
            l = s.work.Q_a[i, w] * sign + wp.cross(s.work.position[body, w] - pose.child_anchor, f)
            for a in range(s.joints.v_size[j]):
                d, n = free_axis(s.joints, j, a, pose)
                share = wp.dot(d, f) + wp.dot(n, l)
                f = f - d * share
                l = l - n * share
            s.state.joint_force[j, w] = f * dt
            s.state.joint_torque[j, w] = l * dt


@wp.func
def keep_rows(s: Step, w: int):
    """Impulses of rods, gears and springs."""
    dt = s.settings.dt[0]
    at = 6 * s.closures.welds
    for i in range(s.closures.rods):
        j = s.closures.rod_joint[i]
        s.state.joint_force[j, w] = s.rows.child_l[at + i, w] * (s.rows.force[at + i, w] * dt)
    at = at + s.closures.rods
    for i in range(s.closures.gears):
        s.state.gear_impulse[i, w] = s.rows.force[at + i, w] * dt
    at = at + s.closures.gears
    for i in range(s.closures.springs.count):
        s.state.spring_impulse[i, w] = s.rows.force[at + i, w] * dt


@wp.func
def begin_step(step: wp.array(dtype=Step), w: int):
    """Forces, inertias and laws at the present coordinates."""
    s = step[0]
    for i in range(s.tree.count):
        j = s.tree.joint[i]
        for at in range(s.joints.v_start[j], s.joints.v_start[j] + s.joints.v_size[j]):
            force = real(0.0)
            if j < s.scene_joints:
                force = s.control.joint_force[at, w]
            s.tau[at, w] = force
    inertias(step, w)
    if s.acting == 1:
        for i in range(s.tree.count):
            open_laws(step, i, w)
            if s.linear.acts[i, w] == 1:
                linearise(step, i, w)


@wp.func
def bad_link(s: Step, w: int) -> int:
    """1 + the body of the first link whose new speed is not finite, or 0; new speeds into s.new_v."""
    dt = s.settings.dt[0]
    for i in range(s.tree.count):
        j = s.tree.joint[i]
        for at in range(s.joints.v_start[j], s.joints.v_start[j] + s.joints.v_size[j]):
            v = s.state.qd[at, w] + dt * s.qdd[at, w]
            if s.linear.acts[i, w] == 1:
                v = s.laws.end[at, w]
            s.new_v[at, w] = v
            if not wp.isfinite(v):
                return 1 + s.half_of[s.tree.body[i]]
    return 0


@wp.func
def make_step(step: wp.array(dtype=Step), w: int, last: bool) -> int:
    """One step; where its result would not be finite, the world is marked and its state stays. Returns 1 where it was made."""
    s = step[0]
    dt = s.settings.dt[0]
    begin_step(step, w)
    solve(step, w)
    bad = bad_link(s, w)
    s.state.failed[w] = bad
    if bad != 0:
        for i in range(s.tree.count):
            j = s.tree.joint[i]
            for at in range(s.joints.v_start[j], s.joints.v_start[j] + s.joints.v_size[j]):
                s.qdd[at, w] = real(0.0)
        return 0
    if last or s.loaded == 1:
        keep_reactions(s, w)
        keep_rows(s, w)
        for i in range(s.tree.count):
            link_velocity(s.joints, s.tree, i, w, s.state.qd, s.work)
        for b in range(s.own):
            s.old_velocity[b, w] = s.work.velocity[b, w]
    if s.acting == 1:
        for i in range(s.tree.count):
            if s.linear.acts[i, w] == 1:
                report_laws(s, s.laws, s.tree.joint[i], w)
    for b in range(s.bodies.count):
        if s.rows.link_of[b] < 0:  # what is driven moves on
            s.work.position[b, w] = s.work.position[b, w] + s.work.velocity[b, w] * dt
            s.work.rotation[b, w] = turned(s.work.rotation[b, w], s.work.spin[b, w] * dt)
    for i in range(s.tree.count):
        j = s.tree.joint[i]
        for at in range(s.joints.v_start[j], s.joints.v_start[j] + s.joints.v_size[j]):
            s.mid[at, w] = s.new_v[at, w]
        if s.linear.acts[i, w] == 1:
            repair_limits(s, i, w)
        shift(s, i, w, s.mid, dt)
        for at in range(s.joints.v_start[j], s.joints.v_start[j] + s.joints.v_size[j]):
            s.state.qd[at, w] = s.new_v[at, w]
    foretell(s, w)
    move_all(step, w, False)
    if s.closures.count > s.closures.springs.count:
        project(step, w)
    s.state.time[w] = s.state.time[w] + wp.float64(dt)
    return 1


@wp.kernel(module="sharnir.articulated")
def steps(step: wp.array(dtype=Step), first: int, n: wp.array(dtype=wp.int32)):
    """n steps of a world."""
    w = first + wp.tid()
    s = step[0]
    if s.state.failed[w] != 0:
        return
    load(step, w)
    count = n[0]
    for h in range(count):
        if make_step(step, w, h == count - 1) == 0:
            break
        if h == 0:
            for b in range(s.own):
                s.work.force[b, w] = s.control.force[b, w]
                s.work.torque[b, w] = s.control.torque[b, w]
    store(step, w)
