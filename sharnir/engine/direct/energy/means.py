"""Joints by the means of their vectors at the start and at the end of a step (theory: energy and momentum).

Velocities of a step are the means V̄ = ½(V₀ + V₁); bodies move by Δt v̄ and turn by the Cayley map of θ = Δt ω̄, so every vector
fixed in a body moves by exactly r₁ − r₀ = θ × ½(r₀ + r₁). With arms and axes taken as such means, the relative mean twist of a
closed joint at its common point is

    Σ S̄ Δq/Δt,      hence reactions R with S̄ᵀR = τ do the work Σ τ Δq and no other,

whatever the step. This file finds S̄, the increments Δq and the arms; nothing here iterates.
"""

import warp as wp

from sharnir.core.spatial import exp_quat, matrix, small_turn, unit
from sharnir.core.types import mat33, quat, real, vec3
from sharnir.engine.articulated.data import LOOSE, SLIDE, natural
from sharnir.engine.direct.balls import FREE, HELD, NONE, kind_of, triple
from sharnir.engine.direct.data import Direct
from sharnir.engine.direct.gaps import any_gap, axis_gap, gap_size
from sharnir.model.joint_geometry import unit_axis
from sharnir.model.model import KINEMATIC


@wp.func
def cayley_quat(theta: vec3) -> quat:
    """The rotation cay(θ) = (E − ½[θ]×)⁻¹(E + ½[θ]×): by the angle 2 atan(|θ|/2) about θ."""
    h = theta * real(0.5)
    k = real(1.0) / wp.sqrt(real(1.0) + wp.dot(h, h))
    return quat(h[0] * k, h[1] * k, h[2] * k, k)


@wp.func
def cayley_vector(q: quat) -> vec3:
    """θ of a rotation."""
    return vec3(q[0], q[1], q[2]) * (real(2.0) / q[3])


@wp.func
def turn_about(s: real, g: vec3, n: vec3):
    """Turn Δ of another body about the axis of mean n that a body carries which turns by g = ½θ itself; and 2 s/Δ.

    Rotations compose so that g_other − g = s n with s = t (1 + g²)/(1 − t a), t = tan ½Δ, a = g·n.
    """
    m = real(1.0) + wp.dot(g, g) + wp.dot(g, n) * s
    t = s / m
    t2 = t * t
    k = real(1.0) - t2 * (real(1.0 / 3.0) - t2 * (real(0.2) - t2 * real(1.0 / 7.0)))  # atan t / t
    if t2 > real(1.0e-5):
        k = wp.atan(t) / t
    return real(2.0) * t * k, m / k


@wp.func
def half_turn(s: wp.array(dtype=Direct), b: int, w: int) -> vec3:
    """g = ½θ of a body."""
    return (s[0].work.spin[b, w] + s[0].work.turning[b, w]) * (real(0.25) * s[0].drift[w])


@wp.func
def mean_matrix(s: wp.array(dtype=Direct), b: int, w: int) -> mat33:
    """½(R₀ + R₁) of a body."""
    return (matrix(s[0].work.rotation[b, w]) + matrix(s[0].rotation[b, w])) * real(0.5)


@wp.func
def mean_position(s: wp.array(dtype=Direct), b: int, w: int) -> vec3:
    return (s[0].work.position[b, w] + s[0].position[b, w]) * real(0.5)


@wp.func
def take_driven(s: wp.array(dtype=Direct), w: int):
    """Bodies that are no links: where they stand and will stand; twists whose means are their displacements."""
    dt = s[0].drift[w]
    for n in range(s[0].other_count):
        b = s[0].others[n]
        v = s[0].now.velocity[b, w]
        omega = s[0].now.spin[b, w]
        x = s[0].state.position[b, w]
        R = s[0].state.rotation[b, w]
        turning = omega
        s[0].position[b, w] = x
        s[0].rotation[b, w] = R
        if s[0].whole.motion[b] == KINEMATIC:
            turn = exp_quat(omega * dt)
            turning = cayley_vector(turn) * (real(2.0) / dt) - omega
            s[0].position[b, w] = x + (v * dt + s[0].state.rest[b, w])
            s[0].rotation[b, w] = unit(turn * R)
        s[0].work.position[b, w] = x
        s[0].work.rotation[b, w] = R
        s[0].work.velocity[b, w] = v
        s[0].work.spin[b, w] = omega
        s[0].work.omega[b, w] = omega
        s[0].work.acceleration[b, w] = v
        s[0].work.turning[b, w] = turning


@wp.func
def mean_frame(s: wp.array(dtype=Direct), j: int, w: int) -> quat:
    """The joint's frame on its parent, turned half way."""
    p = s[0].joints.parent[j]
    a = s[0].work.rotation[p, w]
    b = s[0].rotation[p, w]
    if wp.dot(a, b) < real(0.0):
        b = -b
    return wp.normalize(a + b) * s[0].joints.parent_frame[j, w]


@wp.func
def slide_axes(s: wp.array(dtype=Direct), i: int, w: int):
    """S̄ and Δq of the translations of a link's joint.

    With w the vector between the anchors, carried by axes d of the parent, Δw − θ_p × w̄ = Σ Δq (d̄ − g × (g × d̄)), g = ½θ_p.
    """
    j = s[0].tree.joint[i]
    if s[0].joints.v_size[j] == s[0].joints.turns[j]:
        return
    p = s[0].joints.parent[j]
    c = s[0].joints.child[j]
    dt = s[0].drift[w]
    sign = real(s[0].tree.sign[i])
    g = half_turn(s, p, w)
    M_p = mean_matrix(s, p, w)
    a = M_p * s[0].joints.parent_point[j, w]
    r = mean_matrix(s, c, w) * s[0].joints.child_point[j, w]
    between = mean_position(s, c, w) + r - mean_position(s, p, w) - a
    move = (s[0].work.velocity[c, w] + s[0].work.acceleration[c, w] - s[0].work.velocity[p, w] - s[0].work.acceleration[p, w]) * (
        real(0.5) * dt
    )
    move = move + real(2.0) * (wp.cross(half_turn(s, c, w), r) - wp.cross(g, a))
    v0 = s[0].joints.v_start[j]
    frame = s[0].rotation[p, w] * s[0].joints.parent_frame[j, w]
    for x in range(s[0].joints.v_size[j] - s[0].joints.turns[j]):
        d = M_p * wp.quat_rotate(s[0].joints.parent_frame[j, w], unit_axis(s[0].joints.slot[x, j]))
        by = wp.dot(d, move) + real(2.0) * wp.dot(wp.cross(g, d), between)
        s[0].work.S_l[v0 + x, w] = (d - wp.cross(g, wp.cross(g, d))) * sign
        s[0].work.S_a[v0 + x, w] = vec3(real(0.0))
        s[0].end_l[v0 + x, w] = wp.quat_rotate(frame, unit_axis(s[0].joints.slot[x, j])) * sign
        s[0].end_a[v0 + x, w] = vec3(real(0.0))
        end_speed(s, v0 + x, w, by)


@wp.func
def slide_link(s: wp.array(dtype=Direct), i: int, w: int, M: mat33, M1: mat33, M_b: mat33, x_b: vec3, xm_b: vec3):
    """All that `place` needs of a link that one translation leads along an axis of its base: arms, S̄, Δq (`slide_axes`), and
    the gap. Rotations of the link at the start and at the end are M and M₁, that of the base at the end is M_b.
    """
    b = natural(s[0].tree.row[i].body)
    base = natural(s[0].tree.row[i].base)
    v0 = natural(s[0].tree.row[i].v_start)
    dt = s[0].drift[w]
    x = s[0].position[b, w]
    r1 = M1 * s[0].tree.place[i, w].own_point
    r = (M * s[0].tree.place[i, w].own_point + r1) * real(0.5)
    M_p = (matrix(s[0].work.rotation[base, w]) + M_b) * real(0.5)
    a = M_p * s[0].tree.place[i, w].base_point
    d = M_p * s[0].tree.place[i, w].base_axis
    end = M_b * s[0].tree.place[i, w].base_axis
    g = half_turn(s, base, w)
    move = s[0].work.velocity[b, w] + s[0].work.acceleration[b, w]
    move = (move - s[0].work.velocity[base, w] - s[0].work.acceleration[base, w]) * (real(0.5) * dt)
    move = move + (wp.cross(half_turn(s, b, w), r) - wp.cross(g, a)) * real(2.0)
    between = (s[0].work.position[b, w] + x) * real(0.5) + r - xm_b - a
    across = wp.cross(g, d)
    s[0].work.out[i, w] = -r
    s[0].out1[i, w] = -r1
    s[0].work.S_l[v0, w] = d - wp.cross(g, across)
    s[0].work.S_a[v0, w] = vec3(real(0.0))
    s[0].end_l[v0, w] = end
    s[0].end_a[v0, w] = vec3(real(0.0))
    end_speed(s, v0, w, wp.dot(d, move) + real(2.0) * wp.dot(across, between))
    open = (x - x_b) + (r1 - M_b * s[0].tree.place[i, w].base_point)
    off = s[0].rotation[b, w] * wp.quat_inverse(s[0].rotation[base, w] * s[0].tree.place[i, w].turn)
    return open - end * wp.dot(end, open), small_turn(off)


@wp.func
def end_speed(s: wp.array(dtype=Direct), at: int, w: int, by: real):
    """Keep an increment of a coordinate, and the speed at the end of the step that it stands for: u₁ = 2 Δq/Δt − u₀."""
    u = real(2.0) * by / s[0].drift[w]
    if at < s[0].speeds:
        s[0].moved[at, w] = by
        u = u - s[0].laws.start[at, w]
    s[0].speed[at, w] = u


@wp.func
def turn_axes(s: wp.array(dtype=Direct), i: int, w: int):
    """S̄ and Δq of the rotations of a link's joint."""
    j = s[0].tree.joint[i]
    if s[0].joints.turns[j] == 0:
        return
    p = s[0].joints.parent[j]
    c = s[0].joints.child[j]
    sign = real(s[0].tree.sign[i])
    turns = s[0].joints.turns[j]
    at = s[0].joints.v_start[j] + s[0].joints.v_size[j] - turns
    g_p = half_turn(s, p, w)
    g_c = half_turn(s, c, w)
    rel = g_c - g_p
    if turns == 3:
        F = matrix(mean_frame(s, j, w))
        for x in range(3):
            n = vec3(F[0, x], F[1, x], F[2, x])
            put_turn(s, i, at + x, w, n * sign, n * sign, real(2.0) * wp.dot(n, rel))
        return
    own = wp.quat_rotate(s[0].joints.parent_frame[j, w], unit_axis(s[0].joints.first[j]))
    n = mean_matrix(s, p, w) * own
    end = wp.quat_rotate(s[0].rotation[p, w], own)
    if turns == 1:
        by, ratio = turn_about(wp.dot(n, rel) / wp.dot(n, n), g_p, n)
        put_turn(s, i, at, w, n * (ratio * sign), end * sign, by)
    elif turns == 2:
        own = wp.quat_rotate(s[0].joints.child_frame[j, w], unit_axis(s[0].joints.second[j]))
        m = mean_matrix(s, c, w) * own
        nn = wp.dot(n, n)
        mm = wp.dot(m, m)
        nm = wp.dot(n, m)
        det = nn * mm - nm * nm
        first = (wp.dot(n, rel) * mm - wp.dot(m, rel) * nm) / det
        second = (wp.dot(m, rel) * nn - wp.dot(n, rel) * nm) / det
        by, ratio = turn_about(first, g_p, n)
        put_turn(s, i, at, w, n * (ratio * sign), end * sign, by)
        by, ratio = turn_about(-second, g_c, m)  # what lies between turns back about the child's axis
        put_turn(s, i, at + 1, w, m * (ratio * sign), wp.quat_rotate(s[0].rotation[c, w], own) * sign, -by)


@wp.func
def put_turn(s: wp.array(dtype=Direct), i: int, at: int, w: int, n: vec3, end: vec3, by: real):
    s[0].work.S_l[at, w] = wp.cross(n, s[0].work.out[i, w])
    s[0].work.S_a[at, w] = n
    s[0].end_l[at, w] = wp.cross(end, s[0].out1[i, w])
    s[0].end_a[at, w] = end
    end_speed(s, at, w, by)


@wp.func
def common_point(s: wp.array(dtype=Direct), j: int, w: int):
    """The child's anchor, the common point of all rows: its mean, and where it is at the end."""
    c = s[0].joints.child[j]
    r = s[0].joints.child_point[j, w]
    return mean_position(s, c, w) + mean_matrix(s, c, w) * r, s[0].position[c, w] + wp.quat_rotate(s[0].rotation[c, w], r)


@wp.func
def lock_gaps(s: wp.array(dtype=Direct), i: int, w: int):
    """What locked directions of a link's axes lack of the speeds wanted of them."""
    j = s[0].tree.joint[i]
    n = s[0].joints.v_size[j]
    v0 = s[0].joints.v_start[j]
    for at in range(v0, v0 + n):
        s[0].lock_u[at, w] = real(0.0)
    for k in range(s[0].linear.locks[i, w]):
        if n == 1:
            s[0].lock_u[v0, w] = s[0].linear.wanted[v0, w] - s[0].speed[v0, w]
        else:
            lock_direction(s, v0, n, k, w)


@wp.func(inline=False)
def lock_direction(s: wp.array(dtype=Direct), v0: int, n: int, k: int, w: int):
    """The same of direction k of several axes."""
    g = s[0].linear.row[v0 + k, w]
    lacks = s[0].linear.wanted[v0 + k, w]
    for a in range(n):
        lacks = lacks - g[a] * (s[0].speed[v0 + a, w] + s[0].lock_u[v0 + a, w])
    lacks = lacks / wp.dot(g, g)
    for a in range(n):
        s[0].lock_u[v0 + a, w] = s[0].lock_u[v0 + a, w] + g[a] * lacks


@wp.func
def advance(s: wp.array(dtype=Direct), i: int, w: int, v: vec3, spin: vec3):
    """Where a link stands after the step: x₀ + Δt v̄, cay(Δt ω̄) R₀; ½(R₀ + R₁); and its new angular momentum R₁ I R₀ᵀ w."""
    b = natural(s[0].tree.row[i].body)
    own = natural(s[0].half_of[b])
    half = real(0.5) * s[0].drift[w]
    x = s[0].work.position[b, w] + ((s[0].work.velocity[b, w] + v) * half + s[0].state.rest[own, w])
    R = s[0].work.rotation[b, w]
    g = (s[0].work.spin[b, w] + spin) * (half * real(0.5))
    R1 = wp.normalize(quat(g[0], g[1], g[2], real(1.0)) * R)
    M = matrix(R)
    M1 = matrix(R1)
    s[0].position[b, w] = x
    s[0].rotation[b, w] = R1
    return x, M, M1


@wp.func
def place(s: wp.array(dtype=Direct), w: int, changes: bool) -> real:
    """The end of the step at the velocities found so far, or, where it `changes` them, after what a pass adds to them.

    Leaves arms and axes at the mean and at the end, in `close` the speeds that joints lack, in `gain` the angular momenta gained
    beyond what acts from outside. Returns the largest gap (`gap_size`). What a link needs of the one before it stays in
    registers.
    """
    w = natural(w)
    rate = real(-2.0) / s[0].drift[w]
    quarter = real(0.25) * s[0].drift[w]
    most = real(0.0)
    last = int(-1)
    x_b = vec3(real(0.0))
    xm_b = vec3(real(0.0))
    M_b = mat33(real(0.0))
    for n in range(s[0].tree.count):
        i = natural(n)
        b = natural(s[0].tree.row[i].body)
        if s[0].tree.row[i].base != last:
            base = natural(s[0].tree.row[i].base)
            x_b = s[0].position[base, w]
            xm_b = mean_position(s, base, w)
            M_b = matrix(s[0].rotation[base, w])
        v = s[0].work.acceleration[b, w]
        spin = s[0].work.turning[b, w]
        if changes:
            turn = s[0].work.change_a[b, w]
            g = (s[0].work.spin[b, w] + spin) * quarter
            v = v + s[0].work.change_l[b, w]
            spin = spin + turn - wp.cross(g, turn) + g * wp.dot(g, turn)
            s[0].work.acceleration[b, w] = v
            s[0].work.turning[b, w] = spin
        x, M, M1 = advance(s, i, w, v, spin)
        L = M1 * (s[0].tree.inertia[i, w] * (spin * M))
        start = s[0].momentum[b, w]
        start = start / s[0].tree.row[i].parts
        s[0].gain[i, w] = L - start
        xm = (s[0].work.position[b, w] + x) * real(0.5)
        s[0].work.arm[i, w] = xm - xm_b
        s[0].arm1[i, w] = x - x_b
        linear = vec3(real(0.0))
        angular = vec3(real(0.0))
        kind = kind_of(s, i, w)
        if kind == LOOSE:
            s[0].work.out[i, w] = vec3(real(0.0))
            s[0].out1[i, w] = vec3(real(0.0))
        elif s[0].tree.row[i].kind == FREE or s[0].tree.row[i].hinge == 1:
            r1 = M1 * s[0].tree.place[i, w].own_point
            r = (M * s[0].tree.place[i, w].own_point + r1) * real(0.5)
            linear = (x - x_b) + (r1 - M_b * s[0].tree.place[i, w].base_point)
            s[0].work.out[i, w] = -r
            s[0].out1[i, w] = -r1
            if s[0].tree.row[i].hinge == 1:
                end = M1 * s[0].tree.place[i, w].axis
                axis = (M * s[0].tree.place[i, w].axis + end) * real(0.5)
                angular = axis_gap(M_b * s[0].tree.place[i, w].base_axis, end)
                v0 = natural(s[0].tree.row[i].v_start)
                # the link turns about an axis that its base carries: by Δq
                g = half_turn(s, natural(s[0].tree.row[i].base), w)
                rel = (s[0].work.spin[b, w] + spin) * quarter - g
                by, ratio = turn_about(wp.dot(axis, rel) / wp.dot(axis, axis), g, axis)
                axis = axis * ratio
                end_speed(s, v0, w, by)
                s[0].work.S_l[v0, w] = -wp.cross(axis, r)
                s[0].work.S_a[v0, w] = axis
                s[0].end_l[v0, w] = -wp.cross(end, r1)
                s[0].end_a[v0, w] = end
            elif kind == NONE:  # more acts than friction
                turn_axes(s, i, w)
            elif kind != FREE:
                ball_speeds(s, i, w, kind)
        elif s[0].tree.row[i].hinge == SLIDE:
            linear, angular = slide_link(s, i, w, M, M1, M_b, x_b, xm_b)
        else:
            point, end_point = common_point(s, s[0].tree.joint[i], w)
            s[0].work.out[i, w] = xm - point
            s[0].out1[i, w] = x - end_point
            linear, angular = any_gap(s, i, w)
            slide_axes(s, i, w)
            turn_axes(s, i, w)
        most = wp.max(most, gap_size(s, linear, angular))
        if kind == NONE:
            angular = angular * rate
            s[0].work.close_l[i, w] = linear * rate + wp.cross(angular, s[0].out1[i, w])
            s[0].work.close_a[i, w] = angular
            if s[0].acting == 1:
                if s[0].linear.acts[i, w] == 1:
                    lock_gaps(s, i, w)
        else:
            s[0].work.close_l[i, w] = linear * rate
        x_b = x
        xm_b = xm
        M_b = M1
        last = s[0].tree.row[i].body
    return most


@wp.func
def ball_speeds(s: wp.array(dtype=Direct), i: int, w: int, kind: int):
    """The relative spin at the end of the step of a ball with friction, world axes; what it lacks where friction holds."""
    b = natural(s[0].tree.row[i].body)
    base = natural(s[0].tree.row[i].base)
    u = s[0].work.spin[b, w] + s[0].work.turning[b, w] - s[0].work.spin[base, w] - s[0].work.turning[base, w]
    u = u - triple(s[0].laws.start, natural(s[0].tree.row[i].v_start), w)
    s[0].ball_speed[i, w] = u
    s[0].work.close_a[i, w] = vec3(real(0.0))
    if kind == HELD:
        s[0].work.close_a[i, w] = -u
        if s[0].laws.stuck[natural(s[0].tree.row[i].v_start), w] > 1:
            s[0].work.close_a[i, w] = -u - triple(s[0].laws.start, natural(s[0].tree.row[i].v_start), w)
