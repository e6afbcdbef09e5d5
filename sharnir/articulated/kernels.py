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
    push_row,
    respond,
    response_matrix,
    row_rate,
    solve_rows,
)
from sharnir.articulated.data import Step
from sharnir.guard import count_step
from sharnir.joints import free_axis, read_coordinates
from sharnir.kinematics import pose_at
from sharnir.laws import limit_boxes, report_laws
from sharnir.pivots import ALL_AT_ONCE, linearise, open_laws, solve_one, solve_several
from sharnir.solver import GRADES
from sharnir.spatial import exp_quat, matrix, turned, unit
from sharnir.tree import (
    any_motion,
    backward,
    base_acceleration,
    collect_wrenches,
    forward_from,
    hand_on,
    hinge_motion,
    left_over,
    link_inertia,
    natural,
    own_inertia,
)
from sharnir.types import inline_less, mat33, mat66, quat, real, vec3, vec6

inline_less("sharnir.articulated")

DYNAMIC = wp.constant(2)
SAME = wp.constant(real(1.0e-12))  # by so much coordinates and bodies may differ and be called one state
SLOW = wp.constant(real(0.01))  # rad: bodies that turn less in half a step need no corrected mean speed
MID_TOLERANCE = wp.constant(real(1.0e-9))
CONTRACTS = wp.constant(real(0.9))  # passes on mean speeds do, if each leaves less than this of the last one's error
DIVIDED = wp.constant(GRADES.index("divided"))
PARTS = wp.constant(16)  # a step is split into at most so many
PROJECTIONS = wp.constant(12)
CLOSED = wp.constant(real(1.0e-12))  # m, rad: a gap that is none


# ---- the state in and out -----------------------------------------------------------------------------------------------


@wp.func
def shift(s: wp.array(dtype=Step), i: int, w: int, q: wp.array2d(dtype=real), v: wp.array2d(dtype=real), dt: real):
    """q ⊕ Δt v of a link's joint, into q; a quaternion turns by the rotation vector in its parent's frame."""
    j = s[0].tree.joint[i]
    n = s[0].joints.v_size[j]
    v0 = s[0].joints.v_start[j]
    q0 = s[0].joints.q_start[j]
    plain = n
    if s[0].joints.turns[j] == 3:
        plain = n - 3
        at = q0 + plain
        p = quat(s[0].state.q[at, w], s[0].state.q[at + 1, w], s[0].state.q[at + 2, w], s[0].state.q[at + 3, w])
        p = unit(exp_quat(vec3(v[v0 + plain, w], v[v0 + plain + 1, w], v[v0 + plain + 2, w]) * dt) * p)
        for c in range(4):
            q[at + c, w] = p[c]
    for c in range(plain):
        q[q0 + c, w] = s[0].state.q[q0 + c, w] + dt * v[v0 + c, w]


@wp.func
def move_all(s: wp.array(dtype=Step), w: int, ahead: real):
    """Coordinates on by a time (s) at the speeds in mid, then poses, S, a′ and inertias of all links.

    What a link needs of the one before it stays in registers; `fastest` becomes the largest |spin|².
    """
    w = natural(w)
    gravity = s[0].settings.gravity[0]
    half = real(0.5) * s[0].settings.kick[w]
    last = int(-1)
    x = vec3(real(0.0))
    R = quat(real(0.0), real(0.0), real(0.0), real(1.0))
    M = mat33(real(0.0))
    omega = vec3(real(0.0))
    fastest = real(0.0)
    for h in range(s[0].tree.count):
        i = natural(h)
        body = natural(s[0].tree.row[i].body)
        if s[0].tree.row[i].hinge == 1:
            q0 = natural(s[0].tree.row[i].q_start)
            v0 = natural(s[0].tree.row[i].v_start)
            angle = s[0].state.q[q0, w]
            speed = s[0].mid[v0, w]
            if ahead > real(0.0):
                angle = angle + ahead * speed
                v = s[0].new_v[v0, w]
                speed = v + half * s[0].qdd[v0, w]
                s[0].state.q[q0, w] = angle
                s[0].state.qd[v0, w] = v
                s[0].mid[v0, w] = speed
            if s[0].tree.row[i].base != last:
                base = natural(s[0].tree.row[i].base)
                x = s[0].work.position[base, w]
                R = s[0].work.rotation[base, w]
                M = matrix(R)
                omega = s[0].work.spin[base, w]
            x, R, M, omega = hinge_motion(s[0].tree, i, w, angle, speed, s[0].work, x, R, M, omega)
        else:
            if ahead > real(0.0):
                shift(s, i, w, s[0].state.q, s[0].mid, ahead)
                for at in range(s[0].tree.row[i].v_start, s[0].tree.row[i].v_start + s[0].tree.row[i].v_size):
                    s[0].state.qd[at, w] = s[0].new_v[at, w]
                    s[0].mid[at, w] = s[0].new_v[at, w] + half * s[0].qdd[at, w]
            any_motion(s[0].joints, s[0].tree, i, w, s[0].state.q, s[0].mid, s[0].work)
            x = s[0].work.position[body, w]
            R = s[0].work.rotation[body, w]
            M = matrix(R)
            omega = s[0].work.spin[body, w]
        last = s[0].tree.row[i].body
        own_inertia(s[0].tree, i, w, gravity, s[0].work, M, omega)
        fastest = wp.max(fastest, wp.length_sq(omega))
    s[0].fastest[w] = fastest


@wp.func
def velocities(s: wp.array(dtype=Step), w: int):
    """V = C V_base + S q̇ of all links at the present speeds, into `velocity` and `omega`."""
    w = natural(w)
    last = int(-1)
    v = vec3(real(0.0))
    omega = vec3(real(0.0))
    for h in range(s[0].tree.count):
        i = natural(h)
        if s[0].tree.row[i].base != last:
            base = natural(s[0].tree.row[i].base)
            v = s[0].work.velocity[base, w]
            omega = s[0].work.omega[base, w]
        v = v + wp.cross(omega, s[0].work.arm[i, w])
        v0 = natural(s[0].tree.row[i].v_start)
        for a in range(s[0].tree.row[i].v_size):
            speed = s[0].state.qd[v0 + a, w]
            v = v + s[0].work.S_l[v0 + a, w] * speed
            omega = omega + s[0].work.S_a[v0 + a, w] * speed
        last = s[0].tree.row[i].body
        body = natural(last)
        s[0].work.velocity[body, w] = v
        s[0].work.omega[body, w] = omega


@wp.func
def unlike(a: vec3, b: vec3) -> bool:
    d = a - b
    return wp.dot(d, d) > SAME * SAME * (real(1.0) + wp.dot(a, a))


@wp.func
def changed(s: wp.array(dtype=Step), w: int) -> bool:
    """Whether a body is elsewhere, or moves otherwise, than the coordinates say."""
    for b in range(s[0].own):
        if s[0].bodies.motion[b] == DYNAMIC:
            turn = wp.quat_inverse(s[0].work.rotation[b, w]) * s[0].state.rotation[b, w]
            if wp.abs(wp.abs(turn[3]) - real(1.0)) > SAME:
                return True
            if turn[0] * turn[0] + turn[1] * turn[1] + turn[2] * turn[2] > SAME * SAME:
                return True
            if unlike(s[0].state.position[b, w], s[0].work.position[b, w]):
                return True
            if unlike(s[0].state.velocity[b, w], s[0].work.velocity[b, w]):
                return True
            if unlike(s[0].state.spin[b, w], s[0].work.omega[b, w]):
                return True
    return False


@wp.func
def untouched(s: wp.array(dtype=Step), w: int) -> bool:
    """Whether the caller's state is, bit by bit, what was stored: then all that follows from it stands in the work arrays."""
    if s[0].stored[w] != s[0].settings.dt[0]:
        return False
    for i in range(s[0].nq):
        if s[0].q[i, w] != s[0].state.q[i, w]:
            return False
    for i in range(s[0].nv):
        if s[0].qd[i, w] != s[0].state.qd[i, w]:
            return False
    half = real(0.5) * (s[0].stored[w] + s[0].state.lag[w])
    for i in range(s[0].tree.count):  # the last acceleration is the caller's too
        v0 = s[0].tree.row[i].v_start
        for at in range(v0, v0 + s[0].tree.row[i].v_size):
            if s[0].mid[at, w] != s[0].state.qd[at, w] + half * s[0].qdd[at, w]:
                return False
    for b in range(s[0].own):
        if not (s[0].state.position[b, w] == s[0].work.position[b, w] and s[0].state.rotation[b, w] == s[0].work.rotation[b, w]):
            return False
        if not (s[0].state.velocity[b, w] == s[0].work.velocity[b, w] and s[0].state.spin[b, w] == s[0].work.omega[b, w]):
            return False
    return True


@wp.func
def read_joint(s: wp.array(dtype=Step), j: int, w: int):
    """Coordinates and speeds of a joint from its bodies, as they stand in the work arrays."""
    pose = pose_at(s[0].joints, j, w, s[0].work.position, s[0].work.rotation)
    read_coordinates(s[0].joints, j, w, pose, s[0].state.q)
    p = s[0].joints.parent[j]
    c = s[0].joints.child[j]
    u_p = s[0].work.velocity[p, w] + wp.cross(s[0].work.omega[p, w], pose.child_anchor - s[0].work.position[p, w])
    u_c = s[0].work.velocity[c, w] + wp.cross(s[0].work.omega[c, w], pose.child_anchor - s[0].work.position[c, w])
    for i in range(s[0].joints.v_size[j]):
        d, n = free_axis(s[0].joints, j, i, pose)
        turning = wp.dot(n, s[0].work.omega[c, w] - s[0].work.omega[p, w])
        s[0].state.qd[s[0].joints.v_start[j] + i, w] = wp.dot(d, u_c - u_p) + turning


@wp.func
def take_bodies(s: wp.array(dtype=Step), w: int, every: bool):
    """The bodies' poses and velocities into the work arrays: all, or those alone that are no links."""
    for b in range(s[0].bodies.count):
        own = s[0].half_of[b]
        if every or s[0].rows.link_of[b] < 0:
            s[0].work.position[b, w] = s[0].state.position[own, w]
            s[0].work.rotation[b, w] = s[0].state.rotation[own, w]
            s[0].work.velocity[b, w] = s[0].state.velocity[own, w]
            s[0].work.spin[b, w] = s[0].state.spin[own, w]
            s[0].work.omega[b, w] = s[0].state.spin[own, w]


@wp.func
def foretell(s: wp.array(dtype=Step), w: int):
    """The mean speeds of the step, from the last acceleration."""
    half = real(0.5) * s[0].settings.kick[w]
    for i in range(s[0].tree.count):
        j = s[0].tree.joint[i]
        for a in range(s[0].joints.v_start[j], s[0].joints.v_start[j] + s[0].joints.v_size[j]):
            s[0].mid[a, w] = s[0].state.qd[a, w] + half * s[0].qdd[a, w]


@wp.func
def store(s: wp.array(dtype=Step), w: int):
    """Poses, velocities and coordinates into the caller's state."""
    dt = s[0].settings.dt[0]
    velocities(s, w)
    for b in range(s[0].own):
        v = s[0].work.velocity[b, w]
        R = s[0].work.rotation[b, w]
        omega = s[0].work.omega[b, w]
        s[0].state.position[b, w] = s[0].work.position[b, w]
        s[0].state.rotation[b, w] = R
        s[0].state.velocity[b, w] = v
        s[0].state.spin[b, w] = omega
        s[0].state.rest[b, w] = vec3(real(0.0))
        s[0].state.acceleration[b, w] = (v - s[0].old_velocity[b, w]) / dt
        if s[0].bodies.motion[b] == DYNAMIC:
            s[0].state.momentum[b, w] = wp.quat_rotate(R, s[0].whole.inertia[b] * wp.quat_rotate_inv(R, omega))
    for j in range(s[0].scene_joints):
        if s[0].read[j] == 1:
            read_joint(s, j, w)
    for i in range(s[0].nq):
        s[0].q[i, w] = s[0].state.q[i, w]
    for i in range(s[0].nv):
        s[0].qd[i, w] = s[0].state.qd[i, w]
    s[0].stored[w] = dt


# ---- laws of the axes -----------------------------------------------------------------------------------------------------


@wp.func
def start_laws(s: wp.array(dtype=Step), i: int, w: int):
    """The laws of a link's joint, and a guess of their solution."""
    j = s[0].tree.joint[i]
    on = int(0)
    if j < s[0].scene_joints:
        on = s[0].control.acts[j, w]
    s[0].linear.acts[i, w] = on
    if on == 1:
        for at in range(s[0].joints.v_start[j], s[0].joints.v_start[j] + s[0].joints.v_size[j]):
            s[0].laws.start[at, w] = s[0].state.qd[at, w]
        open_laws(s, i, w, real(0.0))


@wp.func
def make_linear(s: wp.array(dtype=Step), i: int, w: int):
    """The laws of a link, linear about their solution, in accelerations: u = v + Δt q̈."""
    linearise(s, i, w, real(1.0))
    j = s[0].tree.joint[i]
    n = s[0].joints.v_size[j]
    v0 = s[0].joints.v_start[j]
    dt = s[0].settings.kick[w]
    if n == 1:
        v = s[0].laws.start[v0, w]
        s[0].linear.wanted[v0, w] = (s[0].linear.wanted[v0, w] - v) / dt
        s[0].linear.push[v0, w] = (s[0].linear.resist[v0, w] * v + s[0].linear.push[v0, w]) / dt
    else:
        speeds = vec6()
        for x in range(n):
            speeds[x] = s[0].laws.start[v0 + x, w]
        resisted = s[0].linear.coupled[i, w] * speeds
        for x in range(n):
            s[0].linear.push[v0 + x, w] = (resisted[x] + s[0].linear.push[v0 + x, w]) / dt
        for x in range(s[0].linear.locks[i, w]):
            s[0].linear.wanted[v0 + x, w] = (s[0].linear.wanted[v0 + x, w] - wp.dot(s[0].linear.row[v0 + x, w], speeds)) / dt


@wp.func
def solve_laws(s: wp.array(dtype=Step), i: int, w: int) -> real:
    """One link of the forward pass where something acts: the laws exactly, for its base's motion. Returns the mismatch, N·s."""
    j = s[0].tree.joint[i]
    n = s[0].joints.v_size[j]
    v0 = s[0].joints.v_start[j]
    dt = s[0].settings.kick[w]
    al, aa = base_acceleration(s[0].tree, i, w, s[0].work)
    rest = left_over(s[0].joints, s[0].tree, i, w, al, aa, s[0].work)
    off = real(0.0)
    if n == 1:
        v = s[0].laws.start[v0, w]
        A = real(1.0) / s[0].work.U[v0, w]
        linear = v + dt * (s[0].work.Y[v0, w] * rest[0] + s[0].work.y[v0, w])
        off = solve_one(s, v0, w, v + dt * A * rest[0], A, linear, real(1.0))
    else:
        free = s[0].work.inverse[i, w] * rest
        yields = s[0].work.response[i, w] * rest
        for x in range(n):
            v = s[0].laws.start[v0 + x, w]
            free[x] = v + dt * free[x]
            yields[x] = v + dt * (yields[x] + s[0].work.y[v0 + x, w])
        off = solve_several(s, j, w, free, s[0].work.inverse[i, w], yields, real(1.0))
    for at in range(v0, v0 + n):
        y = (s[0].laws.end[at, w] - s[0].laws.start[at, w]) / dt
        s[0].qdd[at, w] = y
        al = al + s[0].work.S_l[at, w] * y
        aa = aa + s[0].work.S_a[at, w] * y
    s[0].work.acceleration[s[0].tree.body[i], w] = al + s[0].work.bias_l[i, w]
    s[0].work.turning[s[0].tree.body[i], w] = aa + s[0].work.bias_a[i, w]
    return off


# ---- the passes -----------------------------------------------------------------------------------------------------------


@wp.func
def drift(s: wp.array(dtype=Step), w: int):
    """Accelerations of the bodies that their speeds alone bring, into the response's arrays."""
    for i in range(s[0].tree.count):
        base = s[0].tree.base[i]
        aa = s[0].rows.a_a[base, w]
        s[0].rows.a_l[s[0].tree.body[i], w] = s[0].rows.a_l[base, w] + wp.cross(aa, s[0].work.arm[i, w]) + s[0].work.bias_l[i, w]
        s[0].rows.a_a[s[0].tree.body[i], w] = aa + s[0].work.bias_a[i, w]
        j = s[0].tree.joint[i]
        for a in range(s[0].joints.v_start[j], s[0].joints.v_start[j] + s[0].joints.v_size[j]):
            s[0].rows.y[a, w] = real(0.0)


@wp.func
def add_ropes(s: wp.array(dtype=Step), w: int):
    """Ropes that hang on links: Z to the inertias, to the forces −(Z (V − V₀) + p)/Δt without V's part Δt a.

    V is that along the chord of a body's path: J q̇ + Δt a − ½Δt J̇ q̇.
    """
    kick = s[0].settings.kick[w]
    less = kick - real(0.5) * s[0].settings.part[w]
    drift(s, w)
    for i in range(s[0].tree.count):
        b = s[0].tree.body[i]
        if b < s[0].own and s[0].tree.row[i].gathers == 1:
            A = s[0].rope_A[b, w]
            B = s[0].rope_B[b, w]
            D = s[0].rope_D[b, w]
            v = s[0].work.velocity[b, w] - s[0].rows.a_l[b, w] * less - s[0].rope_v[b, w]
            omega = s[0].work.omega[b, w] - s[0].rows.a_a[b, w] * less - s[0].rope_w[b, w]
            f = A * v + B * omega + s[0].rope_l[b, w]
            l = v * B + D * omega + s[0].rope_a[b, w]
            hand_on(s[0].work, i, w, A, B, D, f * (real(-1.0) / kick), l * (real(-1.0) / kick))


@wp.func
def inward(s: wp.array(dtype=Step), w: int):
    if s[0].roped[w] == 1:
        add_ropes(s, w)
    backward(s[0].bodies, s[0].joints, s[0].tree, w, s[0].tau, s[0].linear, s[0].work)


@wp.func
def inertias(s: wp.array(dtype=Step), w: int):
    for i in range(s[0].tree.count):
        link_inertia(s[0].bodies, s[0].tree, i, w, s[0].settings.gravity[0], s[0].work)


@wp.func
def outward(s: wp.array(dtype=Step), w: int, exact: bool) -> real:
    """Accelerations; laws solved exactly, or as linear. Returns the largest mismatch of the two, N·s."""
    w = natural(w)
    most = real(0.0)
    last = int(-1)
    al = vec3(real(0.0))
    aa = vec3(real(0.0))
    for h in range(s[0].tree.count):
        i = natural(h)
        if exact and s[0].linear.acts[i, w] == 1:
            off = solve_laws(s, i, w)
            s[0].mismatch[i, w] = off
            most = wp.max(most, off)
            last = -1
        else:
            if s[0].tree.row[i].base != last:
                base = natural(s[0].tree.row[i].base)
                al = s[0].work.acceleration[base, w]
                aa = s[0].work.turning[base, w]
            al = al + wp.cross(aa, s[0].work.arm[i, w])
            al, aa = forward_from(s[0].joints, s[0].tree, i, w, s[0].qdd, s[0].linear, s[0].work, al, aa)
            last = s[0].tree.row[i].body
    return most


@wp.func
def eliminate_rows(s: wp.array(dtype=Step), w: int, rows: int):
    response_matrix(s[0].joints, s[0].tree, s[0].closures, s[0].rows, s[0].work, w, rows)
    eliminate(s[0].rows, w, rows)


@wp.func
def push_rows(s: wp.array(dtype=Step), w: int, rows: int):
    """Forces on the rows from their right-hand sides, and the tree's response to them."""
    solve_rows(s[0].joints, s[0].tree, s[0].closures, s[0].rows, s[0].work, w, rows)


@wp.func
def soften(s: wp.array(dtype=Step), r: int, i: int, w: int):
    """Softness and rest of a spring's row: p = −a u − b with a = κ (Δt k + c), b = κ k (length − rest), κ the kick."""
    k = s[0].closures.springs.stiffness[i]
    a = s[0].settings.kick[w] * (s[0].settings.part[w] * k + s[0].closures.springs.damping[i])
    s[0].rows.soft[r, w] = real(-1.0)
    if a > real(0.0) and wp.length_sq(s[0].rows.child_l[r, w]) > real(0.0):
        s[0].rows.soft[r, w] = real(1.0) / a
        s[0].rows.rhs[r, w] = s[0].rows.rhs[r, w] - s[0].rows.gap[r, w] * k / a


@wp.func
def close_loops(s: wp.array(dtype=Step), w: int):
    """Forces on the rows so that speeds lead along the chord of the arc that they prescribe, added to the links' u.

    (G⁺ − G)/Δt = J V + κ J (a − drift) + ½Δt (J drift + γ) = 0, κ the kick, Δt itself unless a step is made in parts.
    """
    kick = s[0].settings.kick[w]
    half = real(0.5) * s[0].settings.part[w] / kick
    rows = s[0].closures.count
    velocities(s, w)
    find_rows(s[0].joints, s[0].closures, s[0].rows, s[0].work, s[0].state.q, w)
    drift(s, w)
    hard = rows - s[0].closures.springs.count
    for r in range(rows):
        now = row_rate(s[0].closures, s[0].rows, r, w, s[0].work.velocity, s[0].work.spin, s[0].state.qd)
        arc = row_rate(s[0].closures, s[0].rows, r, w, s[0].rows.a_l, s[0].rows.a_a, s[0].rows.y)
        free = row_rate(s[0].closures, s[0].rows, r, w, s[0].work.acceleration, s[0].work.turning, s[0].qdd)
        s[0].rows.rhs[r, w] = (real(1.0) - half) * arc - half * s[0].rows.gamma[r, w] - now / kick - free
        if r >= hard:
            soften(s, r, r - hard, w)
    eliminate_rows(s, w, rows)
    push_rows(s, w, rows)
    for i in range(s[0].tree.count):
        j = s[0].tree.joint[i]
        for a in range(s[0].joints.v_start[j], s[0].joints.v_start[j] + s[0].joints.v_size[j]):
            s[0].work.u[a, w] = s[0].work.u[a, w] + s[0].rows.u[a, w]


@wp.func
def own_response(s: wp.array(dtype=Step), at: int, w: int):
    """Accelerations of all axes, into rows.y, by a unit force on one: all that acts elsewhere as linear, loops closed."""
    rows = s[0].closures.count
    clear_push(s[0].joints, s[0].tree, s[0].rows, w)
    s[0].rows.u[at, w] = real(1.0)
    respond(s[0].joints, s[0].tree, s[0].rows, s[0].work, w)
    if rows > 0:
        for r in range(rows):
            s[0].rows.rhs[r, w] = -row_rate(s[0].closures, s[0].rows, r, w, s[0].rows.a_l, s[0].rows.a_a, s[0].rows.y)
        push_rows(s, w, rows)
        clear_push(s[0].joints, s[0].tree, s[0].rows, w)
        s[0].rows.u[at, w] = real(1.0)
        for r in range(rows):
            push_row(s[0].closures, s[0].rows, r, w, s[0].rows.force[r, w])
        respond(s[0].joints, s[0].tree, s[0].rows, s[0].work, w)


@wp.func
def settle(s: wp.array(dtype=Step), i: int, w: int):
    """The laws of one link exactly, where its base and all else yield, as linear: joints that upset each other come to an end."""
    j = s[0].tree.joint[i]
    n = s[0].joints.v_size[j]
    v0 = s[0].joints.v_start[j]
    dt = s[0].settings.kick[w]
    s[0].linear.locks[i, w] = 0
    s[0].linear.coupled[i, w] = mat66()
    for at in range(v0, v0 + n):
        s[0].linear.resist[at, w] = real(0.0)
        s[0].linear.push[at, w] = real(0.0)
    inertias(s, w)
    inward(s, w)
    outward(s, w, False)
    if s[0].closures.count > 0:
        close_loops(s, w)
        outward(s, w, False)
    u = vec6()
    A = mat66()
    for x in range(n):
        u[x] = s[0].laws.start[v0 + x, w] + dt * s[0].qdd[v0 + x, w]
        s[0].slid[v0 + x, w] = real(0.0)
    for x in range(n):
        own_response(s, v0 + x, w)
        for y in range(n):
            A[y, x] = s[0].rows.y[v0 + y, w]
    if n == 1:
        solve_one(s, v0, w, u[0], A[0, 0], u[0], real(1.0))
    else:
        solve_several(s, j, w, u, A, u, real(1.0))
    make_linear(s, i, w)


@wp.func
def mid_missed(s: wp.array(dtype=Step), w: int, last: real) -> real:
    """By how much the mean speeds were not those foretold, where that matters; puts them right. 0 where they stay.

    Negative where passes on them do not contract: the step is too long for so fast a motion.
    """
    half = real(0.5) * s[0].settings.kick[w]
    off = real(0.0)
    size = real(0.0)
    if s[0].fastest[w] * half * half < SLOW * SLOW or s[0].as_begun[w] == 1:
        return real(0.0)
    for i in range(s[0].tree.count):
        v0 = s[0].tree.row[i].v_start
        for a in range(v0, v0 + s[0].tree.row[i].v_size):
            mean = s[0].state.qd[a, w] + half * s[0].qdd[a, w]
            off = wp.max(off, wp.abs(mean - s[0].mid[a, w]))
            size = wp.max(size, wp.abs(mean))
    if off <= MID_TOLERANCE * size:
        return real(0.0)
    if off > CONTRACTS * last:
        return real(-1.0)
    foretell(s, w)
    return off


@wp.func
def solve(s: wp.array(dtype=Step), w: int) -> bool:
    """Passes until laws and their linearisations agree: new accelerations in qdd. False where mean speeds could not be met."""
    met = bool(True)
    passes = int(0)
    off = real(0.0)
    last = real(1.0e30)
    again = int(1)
    while again == 1:
        inward(s, w)
        if s[0].closures.count > 0:
            outward(s, w, False)
            close_loops(s, w)
        off = outward(s, w, True)
        passes = passes + 1
        again = 0
        if passes < s[0].settings.iterations[0]:
            if off > s[0].settings.tolerance[0]:
                again = 1
                for i in range(s[0].tree.count):
                    if s[0].linear.acts[i, w] == 1 and s[0].mismatch[i, w] > s[0].settings.tolerance[0]:
                        if passes > ALL_AT_ONCE:
                            settle(s, i, w)
                            break
                        make_linear(s, i, w)
            missed = mid_missed(s, w, last)
            if missed > real(0.0):
                again = 1
                last = missed
                move_all(s, w, real(0.0))
            elif missed < real(0.0):
                met = False
                again = 0
            elif again == 1:
                inertias(s, w)
    s[0].done[w] = passes
    s[0].residual[w] = off
    return met


# ---- a state given from outside --------------------------------------------------------------------------------------------


@wp.func
def fit_speeds(s: wp.array(dtype=Step), w: int):
    """Speeds from those of the bodies: what joints and loops do not allow is taken off by impulses, as if they had just closed.

    M(q) q̇ = Sᵀ (m v, I ω) is the recursion with momenta for forces, a driven base's velocity for its acceleration.
    """
    zero = vec3(real(0.0))
    for b in range(s[0].bodies.count):
        if s[0].rows.link_of[b] < 0:
            s[0].work.acceleration[b, w] = s[0].work.velocity[b, w]
            s[0].work.turning[b, w] = s[0].work.omega[b, w]
    for i in range(s[0].tree.count):
        b = s[0].tree.body[i]
        s[0].work.force[b, w] = zero
        s[0].work.torque[b, w] = zero
        link_inertia(s[0].bodies, s[0].tree, i, w, zero, s[0].work)
        s[0].work.Q_l[i, w] = s[0].work.velocity[b, w] * s[0].bodies.mass[b]
        s[0].work.Q_a[i, w] = s[0].work.D[i, w] * s[0].work.omega[b, w]
        s[0].work.bias_l[i, w] = zero
        s[0].work.bias_a[i, w] = zero
        s[0].linear.acts[i, w] = 0
        j = s[0].tree.joint[i]
        for a in range(s[0].joints.v_start[j], s[0].joints.v_start[j] + s[0].joints.v_size[j]):
            s[0].tau[a, w] = real(0.0)
    inward(s, w)
    outward(s, w, False)
    rows = s[0].closures.count - s[0].closures.springs.count
    find_rows(s[0].joints, s[0].closures, s[0].rows, s[0].work, s[0].state.q, w)
    for r in range(rows):
        s[0].rows.rhs[r, w] = -row_rate(s[0].closures, s[0].rows, r, w, s[0].work.acceleration, s[0].work.turning, s[0].qdd)
    eliminate_rows(s, w, rows)
    push_rows(s, w, rows)
    for i in range(s[0].tree.count):
        j = s[0].tree.joint[i]
        for a in range(s[0].joints.v_start[j], s[0].joints.v_start[j] + s[0].joints.v_size[j]):
            s[0].state.qd[a, w] = s[0].qdd[a, w] + s[0].rows.y[a, w]
            s[0].qdd[a, w] = real(0.0)  # the last acceleration tells nothing
    for b in range(s[0].bodies.count):
        if s[0].rows.link_of[b] < 0:
            s[0].work.acceleration[b, w] = zero
            s[0].work.turning[b, w] = zero


@wp.func
def load(s: wp.array(dtype=Step), w: int):
    """Coordinates from the caller's state: its own where they fit its bodies, else read off these."""
    for i in range(s[0].nq):
        s[0].state.q[i, w] = s[0].q[i, w]
    for i in range(s[0].nv):
        s[0].state.qd[i, w] = s[0].qd[i, w]
    take_bodies(s, w, True)
    for j in range(s[0].scene_joints, s[0].joints.count):
        read_joint(s, j, w)
    s[0].settings.part[w] = s[0].settings.dt[0]
    s[0].settings.kick[w] = s[0].settings.dt[0] + s[0].state.lag[w]
    foretell(s, w)
    move_all(s, w, real(0.0))
    velocities(s, w)
    if changed(s, w):
        take_bodies(s, w, True)
        for j in range(s[0].joints.count):
            read_joint(s, j, w)
        s[0].state.lag[w] = real(0.0)
        s[0].settings.kick[w] = s[0].settings.dt[0]
        move_all(s, w, real(0.0))
        fit_speeds(s, w)
        foretell(s, w)
        move_all(s, w, real(0.0))
        velocities(s, w)


@wp.func
def take_commands(s: wp.array(dtype=Step), w: int) -> bool:
    """Forces that the caller gives, those for one step too, which are then used up. Whether bodies feel others than before."""
    gravity = s[0].settings.gravity[0]
    other = wp.length_sq(gravity - s[0].felt[w]) != real(0.0)
    s[0].felt[w] = gravity
    for b in range(s[0].own):
        force = s[0].control.force[b, w] + s[0].control.force_once[b, w]
        torque = s[0].control.torque[b, w] + s[0].control.torque_once[b, w]
        if not (force == s[0].work.force[b, w] and torque == s[0].work.torque[b, w]):
            other = True
            s[0].work.force[b, w] = force
            s[0].work.torque[b, w] = torque
        s[0].control.force_once[b, w] = vec3(real(0.0))
        s[0].control.torque_once[b, w] = vec3(real(0.0))
    for at in range(s[0].nv):
        s[0].tau[at, w] = s[0].control.joint_force[at, w]
    return other


# ---- a step ---------------------------------------------------------------------------------------------------------------


@wp.func
def project(s: wp.array(dtype=Step), w: int):
    """Coordinates moved, by the tree's response, until the loops are closed; what is locked stays."""
    rows = s[0].closures.count - s[0].closures.springs.count
    for _i in range(PROJECTIONS):
        find_rows(s[0].joints, s[0].closures, s[0].rows, s[0].work, s[0].state.q, w)
        most = real(0.0)
        for r in range(rows):
            s[0].rows.rhs[r, w] = -s[0].rows.gap[r, w]
            most = wp.max(most, wp.abs(s[0].rows.gap[r, w]))
        if most <= CLOSED or not wp.isfinite(most):
            break
        inertias(s, w)
        inward(s, w)
        eliminate_rows(s, w, rows)
        push_rows(s, w, rows)
        for i in range(s[0].tree.count):
            shift(s, i, w, s[0].state.q, s[0].rows.y, real(1.0))
        move_all(s, w, real(0.0))


@wp.func
def repair_limits(s: wp.array(dtype=Step), i: int, w: int):
    """Speeds in mid that take a passed limit of a link back in, beside those of its motion: they move positions alone."""
    j = s[0].tree.joint[i]
    n = s[0].joints.v_size[j]
    v0 = s[0].joints.v_start[j]
    passed = int(0)
    for at in range(v0, v0 + n):
        if s[0].laws.lower[at, w] >= real(0.0) or s[0].laws.upper[at, w] <= real(0.0):
            passed = 1
    if passed == 0:
        return
    for at in range(v0, v0 + n):
        s[0].laws.start[at, w] = real(0.0)
    pose = pose_at(s[0].joints, j, w, s[0].work.position, s[0].work.rotation)
    limit_boxes(s, s[0].laws, j, w, pose, real(1.0), False, real(0.0))
    least = SAME / s[0].settings.part[w]
    turn = n - s[0].joints.turns[j]
    for x in range(n):
        at = v0 + x
        off = wp.max(s[0].laws.lower[at, w], real(0.0)) + wp.min(s[0].laws.upper[at, w], real(0.0))
        if wp.abs(off) > least:
            if s[0].joints.ball[j] != 0 and x >= turn:
                row = s[0].laws.row[at, w]
                for h in range(3):
                    s[0].mid[v0 + turn + h, w] = s[0].mid[v0 + turn + h, w] + row[h] * off / wp.dot(row, row)
            else:
                s[0].mid[at, w] = s[0].mid[at, w] + off


@wp.func
def keep_reactions(s: wp.array(dtype=Step), w: int):
    """Constraint impulses of the joints as of a whole step: what a link takes from its base, less what acts along the axes."""
    dt = s[0].settings.dt[0]
    for i in range(s[0].tree.count):
        b = s[0].tree.body[i]
        if s[0].tree.row[i].gathers == 1:  # what was handed to it stands in D and Q
            link_inertia(s[0].bodies, s[0].tree, i, w, s[0].settings.gravity[0], s[0].work)
        f = s[0].work.acceleration[b, w] * s[0].bodies.mass[b] - s[0].work.Q_l[i, w] - s[0].pull_l[b, w]
        l = s[0].work.D[i, w] * s[0].work.turning[b, w] - s[0].work.Q_a[i, w] - s[0].pull_a[b, w]
        s[0].work.Q_l[i, w] = f
        s[0].work.Q_a[i, w] = l
    for r in range(s[0].closures.count):
        b = s[0].rows.child[r]
        if b >= 0:
            link = s[0].rows.link_of[b]
            force = s[0].rows.force[r, w]
            if link >= 0:
                s[0].work.Q_l[link, w] = s[0].work.Q_l[link, w] - s[0].rows.child_l[r, w] * force
                s[0].work.Q_a[link, w] = s[0].work.Q_a[link, w] - s[0].rows.child_a[r, w] * force
            link = s[0].rows.link_of[s[0].rows.parent[r]]
            if link >= 0:
                s[0].work.Q_l[link, w] = s[0].work.Q_l[link, w] - s[0].rows.parent_l[r, w] * force
                s[0].work.Q_a[link, w] = s[0].work.Q_a[link, w] - s[0].rows.parent_a[r, w] * force
    collect_wrenches(s[0].tree, w, s[0].work)
    for i in range(s[0].tree.count):
        j = s[0].tree.joint[i]
        if j < s[0].scene_joints:
            sign = real(s[0].tree.sign[i])
            body = s[0].tree.body[i]
            f = s[0].work.Q_l[i, w] * sign
            l = s[0].work.Q_a[i, w] * sign
            if s[0].tree.row[i].hinge == 1:
                n = s[0].work.S_a[s[0].joints.v_start[j], w]
                l = l - wp.cross(wp.quat_rotate(s[0].work.rotation[body, w], s[0].tree.row[i].own_point), f)
                l = l - n * wp.dot(n, l)
            else:
                pose = pose_at(s[0].joints, j, w, s[0].work.position, s[0].work.rotation)
                l = l + wp.cross(s[0].work.position[body, w] - pose.child_anchor, f)
                for a in range(s[0].joints.v_size[j]):
                    d, n = free_axis(s[0].joints, j, a, pose)
                    share = wp.dot(d, f) + wp.dot(n, l)
                    f = f - d * share
                    l = l - n * share
            s[0].state.joint_force[j, w] = f * dt
            s[0].state.joint_torque[j, w] = l * dt


@wp.func
def keep_rows(s: wp.array(dtype=Step), w: int):
    """Impulses of rods, gears and springs, as of a whole step."""
    dt = s[0].settings.dt[0]
    at = 6 * s[0].closures.welds
    for i in range(s[0].closures.rods):
        j = s[0].closures.rod_joint[i]
        s[0].state.joint_force[j, w] = s[0].rows.child_l[at + i, w] * (s[0].rows.force[at + i, w] * dt)
    at = at + s[0].closures.rods
    for i in range(s[0].closures.gears):
        s[0].state.gear_impulse[i, w] = s[0].rows.force[at + i, w] * dt
    at = at + s[0].closures.gears
    for i in range(s[0].closures.springs.count):
        s[0].state.spring_impulse[i, w] = s[0].rows.force[at + i, w] * dt


@wp.func
def begin_laws(s: wp.array(dtype=Step), w: int):
    """What acts on the axes at the present coordinates."""
    for i in range(s[0].tree.count):
        start_laws(s, i, w)
        if s[0].linear.acts[i, w] == 1:
            make_linear(s, i, w)


@wp.func
def end_speeds(s: wp.array(dtype=Step), w: int) -> int:
    """New speeds into new_v and mid; 1 + the body of the first link whose speed is not finite, or 0."""
    dt = s[0].settings.kick[w]
    nothing = real(0.0)
    for h in range(s[0].new_v.shape[0]):
        at = natural(h)
        v = s[0].state.qd[at, w] + dt * s[0].qdd[at, w]
        s[0].new_v[at, w] = v
        s[0].mid[at, w] = v
        nothing = nothing + (v - v)
    if nothing == real(0.0) and s[0].acting == 0:
        return 0
    for i in range(s[0].tree.count):
        j = s[0].tree.joint[i]
        for at in range(s[0].joints.v_start[j], s[0].joints.v_start[j] + s[0].joints.v_size[j]):
            if s[0].linear.acts[i, w] == 1:
                s[0].new_v[at, w] = s[0].laws.end[at, w]
                s[0].mid[at, w] = s[0].laws.end[at, w]
            if not wp.isfinite(s[0].new_v[at, w]):
                return 1 + s[0].half_of[s[0].tree.body[i]]
    return 0


@wp.func
def begin_velocities(s: wp.array(dtype=Step), w: int):
    """How fast bodies were before a step."""
    for b in range(s[0].own):
        s[0].old_velocity[b, w] = s[0].work.velocity[b, w]


@wp.func
def take_step(s: wp.array(dtype=Step), w: int, bad: int, keep: bool, over: bool) -> bool:
    """Move on by the speeds that were found; keep what joints carried, if asked; commands for one step may be over.

    Where the result would not be finite, the world is marked and its state stays.
    """
    dt = s[0].settings.part[w]
    if bad != 0:
        s[0].state.failed[w] = bad
        for at in range(s[0].mid.shape[0]):
            s[0].qdd[at, w] = real(0.0)
        return False
    if keep:
        keep_reactions(s, w)
        keep_rows(s, w)
    if s[0].acting == 1:
        for i in range(s[0].tree.count):
            if s[0].linear.acts[i, w] == 1:
                report_laws(s, s[0].laws, s[0].tree.joint[i], w)
                repair_limits(s, i, w)
    for b in range(s[0].bodies.count):
        if s[0].rows.link_of[b] < 0:  # what is driven moves on
            s[0].work.position[b, w] = s[0].work.position[b, w] + s[0].work.velocity[b, w] * dt
            s[0].work.rotation[b, w] = turned(s[0].work.rotation[b, w], s[0].work.spin[b, w] * dt)
    s[0].settings.kick[w] = dt  # of the next one, if that is as long
    s[0].state.lag[w] = real(0.5) * (dt - s[0].settings.dt[0])
    if over:
        for b in range(s[0].own):
            s[0].work.force[b, w] = s[0].control.force[b, w]
            s[0].work.torque[b, w] = s[0].control.torque[b, w]
    move_all(s, w, dt)
    if s[0].closures.count > s[0].closures.springs.count:
        project(s, w)
    s[0].state.time[w] = s[0].state.time[w] + wp.float64(dt)
    return True


# ---- parts of a step ------------------------------------------------------------------------------------------------------


@wp.func
def note_acceleration(s: wp.array(dtype=Step), w: int):
    """The last acceleration, before a solve puts another in its place."""
    for at in range(s[0].last_qdd.shape[0]):
        s[0].last_qdd[at, w] = s[0].qdd[at, w]


@wp.func
def again(s: wp.array(dtype=Step), w: int, part: real):
    """All that a step of this length begins with; its kick takes speeds from half the last step to half this one."""
    s[0].settings.part[w] = part
    s[0].settings.kick[w] = real(0.5) * (s[0].settings.dt[0] + part) + s[0].state.lag[w]
    for at in range(s[0].last_qdd.shape[0]):
        s[0].qdd[at, w] = s[0].last_qdd[at, w]
    foretell(s, w)
    move_all(s, w, real(0.0))


@wp.func
def hurry(s: wp.array(dtype=Step), w: int):
    """Make do with the speeds at the start in the next solve."""
    s[0].as_begun[w] = 1
    for at in range(s[0].last_qdd.shape[0]):
        s[0].last_qdd[at, w] = real(0.0)


@wp.func
def add_losses(s: wp.array(dtype=Step), w: int, first: bool):
    """What friction and dampers took in the parts of a step so far."""
    for j in range(s[0].scene_joints):
        before = s[0].lost[j, w]
        if first:
            before = real(0.0)
        s[0].lost[j, w] = before + s[0].state.dissipated[j, w]


@wp.func
def join_parts(s: wp.array(dtype=Step), w: int):
    """After a step in parts: the next one is whole again."""
    for j in range(s[0].scene_joints):
        s[0].state.dissipated[j, w] = s[0].lost[j, w]
    note_acceleration(s, w)
    again(s, w, s[0].settings.dt[0])


@wp.func
def make_step(s: wp.array(dtype=Step), w: int, begins: bool, ends: bool) -> bool:
    """One step, the first or last of a call; returns whether it could be made.

    In one part, wherever mean speeds are met and the result is finite; else in halves, quarters, …, sixteenths. Where these
    do not meet them either (a universal joint passes its singular pose), gyroscopic forces are those of the speeds at the start.
    """
    dt = s[0].settings.dt[0]
    keep = ends or s[0].loaded == 1
    level = int(0)
    left = int(PARTS)
    while left > 0:
        size = wp.max(PARTS >> level, 1)
        share = real(size) / real(PARTS)
        if s[0].settings.part[w] != dt * share:
            again(s, w, dt * share)
        note_acceleration(s, w)
        if s[0].acting == 1:
            begin_laws(s, w)
        met = solve(s, w)
        bad = end_speeds(s, w)
        made = True
        if (met and bad == 0) or s[0].as_begun[w] == 1:
            s[0].as_begun[w] = 0
            if keep:
                if not begins or level > 0:
                    velocities(s, w)
                if left == PARTS:
                    begin_velocities(s, w)
            left = left - size
            made = take_step(s, w, bad, keep, begins and left == 0)
            if level > 0:
                note_acceleration(s, w)
                add_losses(s, w, left + size == PARTS)
        elif size == 1:
            hurry(s, w)
            again(s, w, s[0].settings.part[w])
        else:
            level = level + 1
        if not made:
            s[0].settings.part[w] = dt
            return False
    if level > 0:
        join_parts(s, w)
        s[0].grades[DIVIDED, w] = s[0].grades[DIVIDED, w] + 1
    return True


@wp.func
def begin_call(s: wp.array(dtype=Step), w: int):
    """The caller's state and commands."""
    if not untouched(s, w):
        load(s, w)
    if take_commands(s, w):
        inertias(s, w)


@wp.func
def end_call(s: wp.array(dtype=Step), w: int):
    """The state back to the caller."""
    store(s, w)
    if s[0].state.failed[w] != 0:
        s[0].stored[w] = real(0.0)


@wp.kernel(module="sharnir.articulated")
def steps(s: wp.array(dtype=Step), first: int, n: wp.array(dtype=wp.int32)):
    """n steps of a world."""
    w = first + wp.tid()
    if s[0].state.failed[w] != 0:
        return
    begin_call(s, w)
    for g in range(s[0].grades.shape[0]):
        s[0].grades[g, w] = 0
    count = n[0]
    for h in range(count):
        divided = s[0].grades[DIVIDED, w]
        if not make_step(s, w, h == 0, h == count - 1):
            break
        parts = 1 + (PARTS - 1) * (s[0].grades[DIVIDED, w] - divided)
        count_step(s[0].tally, w, s[0].residual[w], s[0].settings.tolerance[0], parts)
    end_call(s, w)
