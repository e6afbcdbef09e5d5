"""Where the links of a direct step stand, what they weigh, and how far the step resolves the tension of their joints."""

import warp as wp

from sharnir.direct.balls import (
    FREE,
)
from sharnir.direct.data import OUT, Direct
from sharnir.joint_geometry import free_axis, joint_curvature
from sharnir.kinematics import pose_at
from sharnir.model import KINEMATIC
from sharnir.spatial import matrix, rotated, turned
from sharnir.tree.data import LOOSE, natural
from sharnir.tree.matrices import packed, times
from sharnir.types import EPSILON, mat33, quat, real, vec3

RESOLVED = wp.constant(real(1.5))  # Δt² tr K over two moments of inertia: below, a step follows what tension brings
AS_ONE = wp.constant(real(max(1.0e-6, 100.0 * EPSILON)))  # relative difference of two bodies' spins below which they turn as one
NEARLY = wp.constant(real(0.1))  # part of a spin by which bodies at half steps may differ
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
    past = s[0].state.stagger[w]
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
        keep_link(s, i, b, w, scope, I, x, R, v, omega, gyration)
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
            r = place_simple(s, i, w, kind, chord, M, x, x_b, omega, gyration, w_b, g_b)
        elif scope > 0:
            place_any(s, i, w, chord)
            r = -s[0].work.out[i, w]
        if j < s[0].scene_joints and kind != LOOSE:
            locked = bool(False)
            if scope > 1 and s[0].closures.count > 0:
                locked = as_one(omega, w_b, gyration, g_b, real(0.5) * s[0].drift[w])
            tight = wp.max(tight, judge_tension(s, i, j, w, r, r + x - x_b, locked))
        elif j < s[0].scene_joints:
            s[0].tense[i, w] = OUT
        x_b = x
        w_b = omega
        g_b = gyration
        last = s[0].tree.row[i].body
    s[0].tight[w] = tight
    s[0].before[w] = energy
    s[0].energy[w] = energy


@wp.func
def keep_link(
    s: wp.array(dtype=Direct), i: int, b: int, w: int, scope: int, I: mat33, x: vec3, R: quat, v: vec3, omega: vec3,
    gyration: vec3,
):  # fmt: skip
    """What later stages read of link i, whose body is b."""
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


@wp.func
def place_simple(
    s: wp.array(dtype=Direct), i: int, w: int, kind: int, chord: real, M: mat33, x: vec3, x_b: vec3, omega: vec3, gyration: vec3,
    w_b: vec3, g_b: vec3,
) -> vec3:  # fmt: skip
    """What a ball joint or a hinge asks of a link, M its rotation, x its centre, x_b its base's; returns its point from x."""
    r = M * s[0].tree.place[i, w].own_point
    lever = x + r - x_b
    out = -r
    own_turn = wp.cross(gyration, r) + wp.cross(omega, wp.cross(omega, r))
    close_l = (own_turn - wp.cross(g_b, lever) - wp.cross(w_b, wp.cross(w_b, lever))) * chord
    s[0].work.out[i, w] = out
    if kind == FREE:
        s[0].work.bias_l[i, w] = close_l
    else:
        axis = M * s[0].tree.place[i, w].axis
        close_a = gyration - g_b + wp.cross(omega, w_b)
        close_a = (close_a - axis * wp.dot(axis, close_a)) * chord
        v0 = natural(s[0].tree.row[i].v_start)
        s[0].work.S_l[v0, w] = wp.cross(axis, out)
        s[0].work.S_a[v0, w] = axis
        s[0].work.bias_l[i, w] = close_l + wp.cross(close_a, out)
        s[0].work.bias_a[i, w] = close_a
        push = real(0.0)
        if s[0].pushed[w] == 1:
            past = s[0].state.stagger[w]
            push = s[0].state.felt_joint[v0, w] * past + s[0].control.joint_force[v0, w] * (s[0].kick[w] - past)
        s[0].tau[v0, w] = push
    return r


@wp.func
def judge_tension(s: wp.array(dtype=Direct), i: int, j: int, w: int, r: vec3, lever: vec3, locked: bool) -> int:
    """Whether the step resolves what joint j's force does to its bodies, into `tense`; 1 where it did not before, either.

    r and `lever` are the joint's point from the link's centre and from its base's.
    """
    f = s[0].state.joint_force[j, w] * (real(s[0].tree.sign[i]) * s[0].drift[w] * s[0].drift[w] / s[0].settings.dt[0])
    near = wp.min(s[0].tree.least[i, w], s[0].tree.base_least[i, w]) * RESOLVED * real(0.25)
    tense = int(0)
    tight = int(0)
    if wp.max(wp.dot(r, f), -wp.dot(lever, f)) > near and not locked:
        tense = 1
        if s[0].state.mid_tense[j, w] == 1:
            tight = 1  # for the second time: a tension, not the blow of a single step
    if wp.length_sq(f) == real(0.0):
        tense = 1  # its force is not known yet; once it is, a single step counts
    s[0].tense[i, w] = tense
    return tight


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
            past = s[0].state.stagger[w]
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
