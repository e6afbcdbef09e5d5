"""The links of a direct step: the laws of their axes, and the pass inwards and outwards."""

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
    take_part,
)
from sharnir.direct.data import Direct
from sharnir.direct.leapfrog.place import axis_curvature, place_any
from sharnir.joint_geometry import free_axis
from sharnir.kinematics import pose_at
from sharnir.laws.linear import linearise, open_laws, soften_axes, solve_one, solve_several
from sharnir.laws.prepare import LEAP
from sharnir.model import DYNAMIC
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
from sharnir.types import mat33, real, vec3

# ---- laws of the axes -------------------------------------------------------------------------------------------------------


@wp.func
def start_link(s: wp.array(dtype=Direct), i: int, w: int, chord: real):
    """The laws of a link's joint, from the speeds before the step."""
    j = s[0].tree.joint[i]
    on = take_part(s, i, w)
    if on == 0:
        return
    v0 = s[0].joints.v_start[j]
    if s[0].tree.row[i].kind == FREE:
        if friction_alone(s, v0, w):
            u = s[0].work.spin[s[0].tree.row[i].body, w] - s[0].work.spin[s[0].tree.row[i].base, w]
            open_ball(s, i, w, u)
            linear_ball(s, i, w)
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
    """Velocity of a body before external forces."""
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
        off = solve_one(s, v0, w, A * rest[0], A, s[0].work.Y[v0, w] * rest[0] + s[0].work.y[v0, w], real(1.0), False)
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
    """Clear what is gathered at a link."""
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
