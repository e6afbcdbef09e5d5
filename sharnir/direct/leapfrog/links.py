"""The links of a direct step: where they stand, what they weigh, and the pass inwards and outwards."""

import warp as wp

from sharnir.direct.balls import (
    FREE,
    NONE,
    ball_inward,
    friction_alone,
    kind_of,
    linear_ball,
    open_ball,
    sliding_spin,
    solve_ball,
)
from sharnir.direct.data import OUT, Direct
from sharnir.joint_geometry import free_axis, joint_curvature
from sharnir.kinematics import pose_at
from sharnir.laws.linear import linearise, open_laws, soften_axes, solve_one, solve_several
from sharnir.laws.prepare import LEAP, clear_laws
from sharnir.model import DYNAMIC, KINEMATIC
from sharnir.spatial import matrix, rotated, turned
from sharnir.tree.data import LOOSE, natural
from sharnir.tree.matrices import packed, shifted, symmetric, times, unpacked
from sharnir.tree.passes import (
    eliminate_axes,
    eliminate_one,
    forward_from,
    forward_one,
    hand_on,
    left_over,
    loose_response,
    loosen,
)
from sharnir.types import EPSILON, mat33, real, vec3

RESOLVED = wp.constant(real(1.5))  # Δt² tr K over two moments of inertia: below, a step follows what tension brings
AS_ONE = wp.constant(real(max(1.0e-6, 100.0 * EPSILON)))  # of the spins of two bodies: they turn as one
NEARLY = wp.constant(real(0.1))  # of what bodies of half steps differ by
LOCKED = wp.constant(real(1.0e6))  # taken off the number of a link's neighbours where it turns as one with one of them


# ---- where links stand ------------------------------------------------------------------------------------------------------


@wp.func
def take_others(s: wp.array(dtype=Direct), w: int):
    """Bodies that are no links have their new velocity already."""
    dt = s[0].drift[w]
    for n in range(s[0].other_count):
        b = s[0].others[n]
        v = s[0].now.velocity[b, w]
        omega = s[0].now.spin[b, w]
        x = s[0].state.position[b, w]
        R = s[0].state.rotation[b, w]
        s[0].work.position[b, w] = x
        s[0].work.rotation[b, w] = R
        s[0].work.velocity[b, w] = v
        s[0].work.spin[b, w] = omega
        s[0].work.omega[b, w] = omega
        s[0].work.acceleration[b, w] = v
        s[0].work.turning[b, w] = omega
        s[0].position[b, w] = x
        s[0].rotation[b, w] = R
        if s[0].whole.motion[b] == KINEMATIC:
            s[0].position[b, w] = x + (v * dt + s[0].state.rest[b, w])
            s[0].rotation[b, w] = turned(R, omega * dt)


@wp.func
def prepare(s: wp.array(dtype=Direct), w: int, scope: int, chord: real):
    """Velocities after external forces, inertias and what each joint asks for, from the bases outwards.

    `chord` times γ is the speed at which a joint's rows are to move: −½Δt at the start of a step, so that they are closed at its
    end. What a link needs of the one before it stays in registers.
    """
    w = natural(w)
    h = s[0].kick[w]
    dt = s[0].settings.dt[0]
    past = s[0].state.lag[w]
    ahead = h - past
    gravity = s[0].settings.gravity[w]
    last = int(-1)
    x_b = vec3(real(0.0))
    w_b = vec3(real(0.0))
    g_b = vec3(real(0.0))
    tight = int(0)
    energy = real(0.0)
    for n in range(s[0].tree.count):
        i = natural(n)
        b = natural(s[0].tree.row[i].body)
        own = natural(s[0].half_of[b])
        if s[0].tree.row[i].base != last:
            base = natural(s[0].tree.row[i].base)
            x_b = s[0].work.position[base, w]
            w_b = s[0].work.omega[base, w]
            g_b = s[0].gyration[base, w]
        R = s[0].state.rotation[own, w]
        x = s[0].state.position[own, w]
        M = matrix(R)
        L = s[0].state.momentum[own, w]
        v = s[0].state.velocity[own, w] + gravity * h
        inverse = s[0].whole.inv_inertia[own, w]
        omega = M * (inverse * (L * M))
        if scope > 1:
            s[0].work.spin[b, w] = omega
        if s[0].pushed[w] == 1:
            torque = s[0].state.felt_torque[own, w] * past + s[0].control.torque[own, w] * ahead
            L = L + torque + s[0].control.torque_once[own, w] * dt
            omega = M * (inverse * (L * M))
            force = s[0].state.felt_force[own, w] * past + s[0].control.force[own, w] * ahead
            v = v + (force + s[0].control.force_once[own, w] * dt) * s[0].whole.inv_mass[own, w]
        gyration = M * (inverse * (wp.cross(L, omega) * M))
        I = rotated(M, s[0].tree.inertia[i, w])
        turning = wp.dot(omega, L)
        if scope > 1:
            turning = turning / s[0].tree.row[i].parts
        energy = energy + wp.dot(v, v) * s[0].tree.mass[i, w] + turning
        s[0].momentum[b, w] = L
        s[0].work.omega[b, w] = omega
        s[0].inertia[i, w] = packed(I)
        s[0].impulse_l[i, w] = v * s[0].tree.mass[i, w]
        if scope > 1:
            s[0].impulse_a[i, w] = times(I, omega)
        if scope > 0:
            s[0].work.position[b, w] = x  # else these are the state's own
            s[0].work.rotation[b, w] = R
            s[0].work.velocity[b, w] = v
        if scope > 0 or s[0].tree.row[i].gathers == 1:
            s[0].gyration[b, w] = gyration
        s[0].work.arm[i, w] = x - x_b
        kind = s[0].tree.row[i].kind
        j = natural(s[0].tree.row[i].joint)
        if scope > 1:
            if j < s[0].scene_joints and s[0].control.enabled[j, w] == 0:
                kind = LOOSE
            s[0].work.kind[i, w] = kind  # until laws are opened
        r = vec3(real(0.0))
        if kind == LOOSE:
            s[0].work.out[i, w] = vec3(real(0.0))
        elif scope == 0 or kind == FREE or s[0].tree.row[i].hinge == 1:
            r = M * s[0].tree.row[i].own_point
            lever = x + r - x_b
            out = -r
            own_turn = wp.cross(gyration, r) + wp.cross(omega, wp.cross(omega, r))
            close_l = (own_turn - wp.cross(g_b, lever) - wp.cross(w_b, wp.cross(w_b, lever))) * chord
            s[0].work.out[i, w] = out
            if kind == FREE:
                s[0].work.bias_l[i, w] = close_l
            else:
                axis = M * s[0].tree.row[i].axis
                close_a = gyration - g_b + wp.cross(omega, w_b)
                close_a = (close_a - axis * wp.dot(axis, close_a)) * chord
                v0 = natural(s[0].tree.row[i].v_start)
                s[0].work.S_l[v0, w] = wp.cross(axis, out)
                s[0].work.S_a[v0, w] = axis
                s[0].work.bias_l[i, w] = close_l + wp.cross(close_a, out)
                s[0].work.bias_a[i, w] = close_a
                push = real(0.0)
                if s[0].pushed[w] == 1:
                    push = s[0].state.felt_joint[v0, w] * past + s[0].control.joint_force[v0, w] * ahead
                s[0].tau[v0, w] = push
        elif scope > 0:
            place_any(s, i, w, chord)
            r = -s[0].work.out[i, w]
        if j < s[0].scene_joints and kind != LOOSE:
            f = s[0].state.joint_force[j, w] * (real(s[0].tree.sign[i]) * s[0].drift[w] * s[0].drift[w] / dt)
            near = wp.min(s[0].tree.least[i, w], s[0].tree.base_least[i, w]) * RESOLVED * real(0.25)
            tense = int(0)
            locked = bool(False)
            if scope > 1 and s[0].closures.count > 0:
                locked = as_one(omega, w_b, gyration, g_b, real(0.5) * s[0].drift[w])
            if wp.max(wp.dot(r, f), -wp.dot(r + x - x_b, f)) > near and not locked:
                tense = 1
                if s[0].state.mid_tense[j, w] == 1:
                    tight = 1  # for the second time: the blow of a single step is none of a tension's
            if wp.length_sq(f) == real(0.0):
                tense = 1  # not known yet: the first that is counts at once
            s[0].tense[i, w] = tense
        elif j < s[0].scene_joints:
            s[0].tense[i, w] = OUT
        x_b = x
        w_b = omega
        g_b = gyration
        last = s[0].tree.row[i].body
    s[0].tight[w] = tight
    s[0].before[w] = energy


@wp.func
def place_any(s: wp.array(dtype=Direct), i: int, w: int, chord: real):
    """S, and what the joint asks for, of a link with any joint."""
    j = s[0].tree.joint[i]
    body = s[0].tree.body[i]
    sign = real(s[0].tree.sign[i])
    p = s[0].joints.parent[j]
    c = s[0].joints.child[j]
    pose = pose_at(s[0].joints, j, w, s[0].work.position, s[0].work.rotation)
    out = s[0].work.position[body, w] - pose.child_anchor
    v0 = s[0].joints.v_start[j]
    close_l = vec3(real(0.0))
    close_a = vec3(real(0.0))
    if s[0].joints.free[j] != 63:
        r_p = pose.child_anchor - s[0].work.position[p, w]
        r_c = pose.child_anchor - s[0].work.position[c, w]
        w_p = s[0].work.omega[p, w]
        w_c = s[0].work.omega[c, w]
        u = s[0].work.velocity[c, w] + wp.cross(w_c, r_c) - s[0].work.velocity[p, w] - wp.cross(w_p, r_p)
        close_l, close_a = joint_curvature(s[0].joints, j, pose, w_p, w_c, s[0].gyration[p, w], s[0].gyration[c, w], r_p, r_c, u)
    for a in range(s[0].joints.v_size[j]):
        d, n = free_axis(s[0].joints, j, a, pose)
        s[0].work.S_l[v0 + a, w] = (d + wp.cross(n, out)) * sign
        s[0].work.S_a[v0 + a, w] = n * sign
        close_l = close_l - d * wp.dot(d, close_l)
        close_a = close_a - n * wp.dot(n, close_a)
        force = real(0.0)
        if j < s[0].scene_joints:
            past = s[0].state.lag[w]
            ahead = s[0].kick[w] - past
            force = s[0].state.felt_joint[v0 + a, w] * past + s[0].control.joint_force[v0 + a, w] * ahead
        s[0].tau[v0 + a, w] = force
    close_l = close_l * (chord * sign)
    close_a = close_a * (chord * sign)
    s[0].work.out[i, w] = out
    s[0].work.bias_l[i, w] = close_l + wp.cross(close_a, out)
    s[0].work.bias_a[i, w] = close_a


@wp.func
def axis_curvature(s: wp.array(dtype=Direct), j: int, a: int, w: int) -> real:
    """γ of a joint's own speed: how it changes while both bodies go on as they do; what carries the axis turns it."""
    p = s[0].joints.parent[j]
    c = s[0].joints.child[j]
    pose = pose_at(s[0].joints, j, w, s[0].work.position, s[0].work.rotation)
    d, n = free_axis(s[0].joints, j, a, pose)
    w_p = s[0].work.omega[p, w]
    w_c = s[0].work.omega[c, w]
    a_p = s[0].gyration[p, w]
    a_c = s[0].gyration[c, w]
    slot = s[0].joints.slot[a, j]
    if slot < 3:
        r_p = pose.child_anchor - s[0].work.position[p, w]
        r_c = pose.child_anchor - s[0].work.position[c, w]
        u = s[0].work.velocity[c, w] + wp.cross(w_c, r_c) - s[0].work.velocity[p, w] - wp.cross(w_p, r_p)
        linear, _angular = joint_curvature(s[0].joints, j, pose, w_p, w_c, a_p, a_c, r_p, r_c, u)
        return wp.dot(d, linear)
    carrier = w_p
    if s[0].joints.turns[j] == 2 and slot - 3 == s[0].joints.second[j]:
        carrier = w_c
    return wp.dot(n, a_c - a_p) + wp.dot(wp.cross(carrier, n), w_c - w_p)


# ---- geometric stiffness ----------------------------------------------------------------------------------------------------


@wp.func
def as_one(a: vec3, b: vec3, gyration_a: vec3, gyration_b: vec3, half: real) -> bool:
    """Whether two bodies turn as one, as those do that a loop locks: neither swings about their joint, whatever it carries.

    Spins of half steps then differ by what each would change by itself on the way to the pose.
    """
    apart = (gyration_a - gyration_b) * half
    off = wp.length_sq(a - b - apart)
    return off <= NEARLY * NEARLY * wp.length_sq(apart) + AS_ONE * AS_ONE * (wp.length_sq(a) + wp.length_sq(b))


@wp.func
def pull(s: wp.array(dtype=Direct), b: int, w: int, point: vec3, force: vec3):
    """Add a joint's part of a body's geometric stiffness: under tension, max(0, r·f) (E − r̂ r̂ᵀ)."""
    link = s[0].rows.link_of[b]
    r = point - s[0].work.position[b, w]
    tension = wp.dot(r, force)
    if link >= 0 and tension > real(0.0):
        E = wp.identity(n=3, dtype=real)
        s[0].stiff[link, w] = s[0].stiff[link, w] + (E - wp.outer(r, r) / wp.dot(r, r)) * tension


@wp.func
def stiffen(s: wp.array(dtype=Direct), w: int, damped: bool):
    """Raise the inertias of links by Δt² K where a step does not resolve their geometric stiffness K.

    A joint's force has the direction of the start of the step; a link under tension T resists turning by T·L, and once
    Δt² T L / I passes 4 it would swing ever wider. The inertia is raised for the spin relative to the mean of its neighbours,
    or, damped, for all of it.
    """
    dt = s[0].settings.dt[0]
    for i in range(s[0].tree.count):
        s[0].stiff[i, w] = mat33(real(0.0))
        s[0].mean[i, w] = s[0].work.omega[s[0].tree.body[i], w]
        s[0].near[i, w] = real(1.0)
    for i in range(s[0].tree.count):
        j = s[0].tree.joint[i]
        if j < s[0].scene_joints and s[0].work.kind[i, w] != LOOSE and (damped or s[0].state.mid_tense[j, w] == 1):
            point = s[0].work.position[s[0].tree.body[i], w] - s[0].work.out[i, w]
            f = s[0].state.joint_force[j, w] * (real(s[0].tree.sign[i]) / dt)
            pull(s, s[0].tree.body[i], w, point, f)
            pull(s, s[0].tree.base[i], w, point, -f)
        base = s[0].tree.base_link[i]
        if base >= 0 and s[0].work.kind[i, w] != LOOSE:
            b = s[0].tree.body[i]
            s[0].mean[i, w] = s[0].mean[i, w] + s[0].work.omega[s[0].tree.base[i], w]
            s[0].near[i, w] = s[0].near[i, w] + real(1.0)
            s[0].mean[base, w] = s[0].mean[base, w] + s[0].work.omega[b, w]
            s[0].near[base, w] = s[0].near[base, w] + real(1.0)
            if s[0].closures.count > 0:
                a = s[0].tree.base[i]
                own = s[0].gyration[b, w]
                if as_one(s[0].work.omega[b, w], s[0].work.omega[a, w], own, s[0].gyration[a, w], real(0.5) * s[0].drift[w]):
                    s[0].near[i, w] = s[0].near[i, w] - LOCKED
                    s[0].near[base, w] = s[0].near[base, w] - LOCKED
    used = int(0)
    for i in range(s[0].tree.count):
        K = s[0].stiff[i, w] * (s[0].drift[w] * s[0].drift[w])
        # nothing where the step resolves it, all of it from twice as far on; a body that is one with another has more than its
        # own inertia, and what would hold it back would hold both
        share = wp.clamp((wp.trace(K) / s[0].tree.least[i, w] - RESOLVED) / RESOLVED, real(0.0), real(1.0))
        if s[0].near[i, w] < real(0.0):
            share = real(0.0)
        if damped:
            share = real(1.0)
        if share > real(0.0):
            used = 1
        b = s[0].tree.body[i]
        I = rotated(matrix(s[0].work.rotation[b, w]), s[0].tree.inertia[i, w])
        K = K * share
        s[0].inertia[i, w] = packed(I + K)
        s[0].impulse_a[i, w] = times(I, s[0].work.omega[b, w])
        if not damped:
            s[0].impulse_a[i, w] = s[0].impulse_a[i, w] + K * s[0].mean[i, w] / s[0].near[i, w]
    if used == 0:
        s[0].tight[w] = 0


# ---- laws of the axes -------------------------------------------------------------------------------------------------------


@wp.func
def start_link(s: wp.array(dtype=Direct), i: int, w: int, chord: real):
    """The laws of a link's joint, from the speeds before the step."""
    j = s[0].tree.joint[i]
    on = int(0)
    if j < s[0].scene_joints:
        on = s[0].control.acts[j, w]
    if on == 1 and s[0].work.kind[i, w] == LOOSE:
        on = 0
        clear_laws(s, j, w)
    s[0].linear.acts[i, w] = on
    if on == 0:
        return
    v0 = s[0].joints.v_start[j]
    if s[0].tree.row[i].kind == FREE:
        if friction_alone(s, v0, w):
            open_ball(s, i, w)
            return
        s[0].work.kind[i, w] = NONE
        place_any(s, i, w, chord)
    p = s[0].joints.parent[j]
    c = s[0].joints.child[j]
    pose = pose_at(s[0].joints, j, w, s[0].work.position, s[0].work.rotation)
    w_p = s[0].work.spin[p, w]
    w_c = s[0].work.spin[c, w]
    u = old_velocity(s, c, w) + wp.cross(w_c, pose.child_anchor - s[0].work.position[c, w])
    u = u - old_velocity(s, p, w) - wp.cross(w_p, pose.child_anchor - s[0].work.position[p, w])
    for a in range(s[0].joints.v_size[j]):
        d, n = free_axis(s[0].joints, j, a, pose)
        s[0].laws.start[v0 + a, w] = wp.dot(d, u) + wp.dot(n, w_c - w_p)
        s[0].laws.mean[v0 + a, w] = real(1.0)
    open_link(s, i, w)


@wp.func
def open_link(s: wp.array(dtype=Direct), i: int, w: int):
    """The laws of a link's joint from its speeds in laws.start."""
    j = s[0].tree.joint[i]
    v0 = s[0].joints.v_start[j]
    open_laws(s, i, w, LEAP)
    for a in range(s[0].joints.v_size[j]):
        N = s[0].axes.gear_ratio[v0 + a, w]
        rotor = s[0].axes.rotor_inertia[v0 + a, w] * N * N
        if rotor > real(0.0):  # its speed changes too as the axis turns
            s[0].laws.b[v0 + a, w] = s[0].laws.b[v0 + a, w] + rotor * axis_curvature(s, j, a, w) * s[0].kick[w]
    linearise(s, i, w, real(1.0))


@wp.func
def soften_links(s: wp.array(dtype=Direct), w: int) -> int:
    """Laws that the step does not resolve are taken at its end, as far as need be; returns 1 if there are any."""
    found = int(0)
    for m in range(s[0].tree.count):
        i = natural(m)
        if s[0].linear.acts[i, w] == 1 and s[0].work.kind[i, w] == NONE:
            if soften_axes(s, i, w, real(1.0)) == 1:
                open_link(s, i, w)
                found = 1
    return found


@wp.func
def old_velocity(s: wp.array(dtype=Direct), b: int, w: int) -> vec3:
    """Of a body before external forces."""
    own = s[0].half_of[b]
    if s[0].whole.motion[own] == DYNAMIC:
        return s[0].state.velocity[own, w]
    return s[0].work.velocity[b, w]


@wp.func
def relinearise(s: wp.array(dtype=Direct), i: int, w: int):
    """The laws of a link's joint, linear about their last solution."""
    if s[0].work.kind[i, w] == NONE:
        linearise(s, i, w, real(1.0))
    else:
        linear_ball(s, i, w)


@wp.func
def solve_link(s: wp.array(dtype=Direct), i: int, w: int, vl: vec3, va: vec3):
    """A link's new velocity where something acts, the laws exactly, from C V_base; and the mismatch, N·s."""
    n = s[0].tree.row[i].v_size
    v0 = natural(s[0].tree.row[i].v_start)
    rest = left_over(s[0].joints, s[0].tree, i, w, vl, va, s[0].work)
    off = real(0.0)
    if n == 1:
        A = real(1.0) / s[0].work.U[v0, w]
        off = solve_one(s, v0, w, A * rest[0], A, s[0].work.Y[v0, w] * rest[0] + s[0].work.y[v0, w], real(1.0))
    else:
        linear = s[0].work.response[i, w] * rest
        for x in range(n):
            linear[x] = linear[x] + s[0].work.y[v0 + x, w]
        j = natural(s[0].tree.row[i].joint)
        off = solve_several(s, j, w, s[0].work.inverse[i, w] * rest, s[0].work.inverse[i, w], linear, real(1.0))
    for at in range(v0, v0 + n):
        u = s[0].laws.end[at, w]
        s[0].speed[at, w] = u
        vl = vl + s[0].work.S_l[at, w] * u
        va = va + s[0].work.S_a[at, w] * u
    return vl + s[0].work.bias_l[i, w], va + s[0].work.bias_a[i, w], off


# ---- the pass ---------------------------------------------------------------------------------------------------------------


@wp.func
def inward(s: wp.array(dtype=Direct), w: int, scope: int):
    """The backward pass; what is handed to the next link in turn stays in registers."""
    w = natural(w)
    zero = vec3(real(0.0))
    none = mat33(real(0.0))
    A = none
    B = none
    D = none
    ql = zero
    qa = zero
    handed = int(0)
    for h in range(s[0].tree.count):
        i = natural(s[0].tree.count - 1 - h)
        m = s[0].tree.mass[i, w]
        if handed == 0:
            A = none
            B = none
            D = none
            ql = zero
            qa = zero
        if s[0].tree.row[i].gathers == 1:
            A = A + s[0].work.A[i, w]
            B = B + s[0].work.B[i, w]
            D = D + s[0].work.D[i, w]
            ql = ql + s[0].work.Q_l[i, w]
            qa = qa + s[0].work.Q_a[i, w]
            clear_link(s, i, w)
        A = symmetric(A[0, 0] + m, A[0, 1], A[0, 2], A[1, 1] + m, A[1, 2], A[2, 2] + m)
        D = D + unpacked(s[0].inertia[i, w])
        ql = ql + s[0].impulse_l[i, w]
        if scope > 1 or s[0].tight[w] == 1:
            qa = qa + s[0].impulse_a[i, w]
        else:
            qa = qa + s[0].momentum[natural(s[0].tree.row[i].body), w]
        if scope > 1 and s[0].roped == 1:
            body = natural(s[0].tree.row[i].body)
            A = A + s[0].rope_A[body, w]
            B = B + s[0].rope_B[body, w]
            D = D + s[0].rope_D[body, w]
            ql = ql + s[0].rope_l[body, w]
            qa = qa + s[0].rope_a[body, w]
        kind = kind_of(s, i, w, scope)
        if kind == LOOSE:
            b = natural(s[0].tree.row[i].body)
            loosen(s[0].work, i, w, A, B, D)
            v, omega = loose_response(s[0].work, i, w, ql, qa)
            s[0].work.acceleration[b, w] = v
            s[0].work.turning[b, w] = omega
            A = none
            B = none
            D = none
            ql = zero
            qa = zero
        elif kind != NONE:
            A, B, D, ql, qa = ball_inward(s, i, w, scope, A, B, D, ql, qa)
        else:
            bl = s[0].work.bias_l[i, w]
            ba = s[0].work.bias_a[i, w]
            ql = ql - (times(A, bl) + B * ba)
            qa = qa - (bl * B + times(D, ba))
            if scope == 0:
                A, B, D, ql, qa = eliminate_one(s[0].tree, i, w, s[0].tau, s[0].linear, s[0].work, A, B, D, ql, qa)
            else:
                A, B, D, ql, qa = eliminate_axes(s[0].joints, s[0].tree, i, w, s[0].tau, s[0].linear, s[0].work, A, B, D, ql, qa)
            s[0].work.full_A[i, w] = packed(A)
            s[0].work.full_B[i, w] = B
            s[0].work.full_D[i, w] = packed(D)
            arm = s[0].work.arm[i, w]
            B, D = shifted(A, B, D, arm)
            qa = qa + wp.cross(arm, ql)
        p = s[0].tree.row[i].base_link
        handed = 0
        if p == i - 1:
            handed = 1
        elif p >= 0:
            hand_on(s[0].work, p, w, A, B, D, ql, qa)


@wp.func
def clear_link(s: wp.array(dtype=Direct), i: int, w: int):
    """Nothing is gathered at a link."""
    s[0].work.A[i, w] = mat33(real(0.0))
    s[0].work.B[i, w] = mat33(real(0.0))
    s[0].work.D[i, w] = mat33(real(0.0))
    s[0].work.Q_l[i, w] = vec3(real(0.0))
    s[0].work.Q_a[i, w] = vec3(real(0.0))


@wp.func
def outward(s: wp.array(dtype=Direct), w: int, scope: int, exact: bool) -> real:
    """New velocities; laws solved exactly, or as linear. Returns the largest mismatch of the two, N·s."""
    w = natural(w)
    most = real(0.0)
    last = int(-1)
    v = vec3(real(0.0))
    omega = vec3(real(0.0))
    for n in range(s[0].tree.count):
        i = natural(n)
        if s[0].tree.row[i].base != last:
            base = natural(s[0].tree.row[i].base)
            v = s[0].work.acceleration[base, w]
            omega = s[0].work.turning[base, w]
        off = real(0.0)
        kind = kind_of(s, i, w, scope)
        if kind == LOOSE:
            v = s[0].work.acceleration[natural(s[0].tree.row[i].body), w]
            omega = s[0].work.turning[natural(s[0].tree.row[i].body), w]
        elif kind != NONE:
            out = s[0].work.out[i, w]
            v = v + wp.cross(omega, s[0].work.arm[i, w] - out)
            if kind == FREE:
                omega = s[0].balls.u[i, w] - s[0].work.full_B[i, w] * v
            elif exact:
                u, off = solve_ball(s, i, w, v, omega)
                omega = omega + u
            else:
                omega = omega + sliding_spin(s, i, w, v, omega)
            v = v + s[0].work.bias_l[i, w] + wp.cross(omega, out)
        else:
            v = v + wp.cross(omega, s[0].work.arm[i, w])
            if exact and scope > 1 and s[0].acting == 1 and s[0].linear.acts[i, w] == 1:
                v, omega, off = solve_link(s, i, w, v, omega)
            elif scope == 0:
                v, omega = forward_one(s[0].tree, i, w, s[0].speed, s[0].linear, s[0].work, v, omega)
                v = v + s[0].work.bias_l[i, w]
                omega = omega + s[0].work.bias_a[i, w]
            else:
                v, omega = forward_from(s[0].joints, s[0].tree, i, w, s[0].speed, s[0].linear, s[0].work, v, omega)
        last = s[0].tree.row[i].body
        s[0].work.acceleration[last, w] = v
        s[0].work.turning[last, w] = omega
        if scope > 1 and s[0].acting == 1:
            s[0].mismatch[i, w] = off
            most = wp.max(most, off)
    return most
