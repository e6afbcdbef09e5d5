"""Ball joints in the direct pass: three rotations about a point, in world axes, nothing larger than 3 × 3.

At the joint's point P a link's inertia is [A B; Bᵀ D], what acts on it (q, m), and its new spin is free: with the base's new
velocity v of P and spin ω₀, the relative spin u = ω − ω₀ obeys

    D u = r + f,      r = m − Bᵀ v − D ω₀,      |f| ≤ bound, f against u.

Without friction ω = D⁻¹(m − Bᵀ v), and the base feels A − B D⁻¹ Bᵀ, a mass that depends on the direction, at P. Sliding friction
is linear about a solution, f = −C u − slide û with C = slide/|u| (E − û ûᵀ); where it holds, both bodies are one.
"""

import warp as wp

from sharnir.direct.data import Direct
from sharnir.joint_geometry import parent_frame
from sharnir.kinematics import pose_at
from sharnir.laws.linear import SLOWEST, law_miss
from sharnir.laws.prepare import clear_laws, friction_bounds
from sharnir.laws.solve import friction_3d
from sharnir.tree.data import LOOSE, natural
from sharnir.tree.matrices import inverse_symmetric, less_product, packed, packed_times, shifted, symmetric, times
from sharnir.types import mat33, quat, real, vec3

NONE = wp.constant(0)
FREE = wp.constant(1)
SLIDES = wp.constant(2)
HELD = wp.constant(3)


@wp.func
def kind_of(s: wp.array(dtype=Direct), i: int, w: int, scope: int) -> int:
    """What a link's joint is in this step; where nothing acts (scope below 2), the joint tells."""
    if scope < 2:
        return s[0].tree.row[i].kind
    return s[0].work.kind[i, w]


@wp.func
def mass_shifted(A: mat33, r: vec3):
    """`shifted` of a mass alone: B = −A[r], D = [r]ᵀ A [r]."""
    a0 = wp.cross(vec3(A[0, 0], A[0, 1], A[0, 2]), r)
    a1 = wp.cross(vec3(A[0, 1], A[1, 1], A[1, 2]), r)
    a2 = wp.cross(vec3(A[0, 2], A[1, 2], A[2, 2]), r)
    d0 = wp.cross(vec3(a0[0], a1[0], a2[0]), r)
    d1 = wp.cross(vec3(a0[1], a1[1], a2[1]), r)
    d2 = wp.cross(vec3(a0[2], a1[2], a2[2]), r)
    B = mat33(-a0[0], -a0[1], -a0[2], -a1[0], -a1[1], -a1[2], -a2[0], -a2[1], -a2[2])
    return B, symmetric(d0[0], d1[0], d2[0], d1[1], d2[1], d2[2])


@wp.func
def triple(a: wp.array2d(dtype=real), v0: int, w: int) -> vec3:
    return vec3(a[v0, w], a[v0 + 1, w], a[v0 + 2, w])


@wp.func
def put_triple(a: wp.array2d(dtype=real), v0: int, w: int, x: vec3):
    a[v0, w] = x[0]
    a[v0 + 1, w] = x[1]
    a[v0 + 2, w] = x[2]


@wp.func
def joint_axes(s: wp.array(dtype=Direct), j: int, w: int) -> quat:
    """The joint's frame on its parent."""
    return parent_frame(s[0].joints, j, pose_at(s[0].joints, j, w, s[0].work.position, s[0].work.rotation))


@wp.func
def commanded(s: wp.array(dtype=Direct), i: int, w: int) -> vec3:
    """The impulse of the moment a user commands, on the link."""
    if s[0].pushed[w] == 0:
        return vec3(real(0.0))
    j = natural(s[0].tree.row[i].joint)
    v0 = natural(s[0].tree.row[i].v_start)
    past = s[0].state.stagger[w]
    l = triple(s[0].state.felt_joint, v0, w) * past + triple(s[0].control.joint_force, v0, w) * (s[0].kick[w] - past)
    if wp.length_sq(l) > real(0.0):
        l = wp.quat_rotate(joint_axes(s, j, w), l) * real(s[0].tree.sign[i])
    return l


# ---- friction ---------------------------------------------------------------------------------------------------------------


@wp.func
def friction_alone(s: wp.array(dtype=Direct), v0: int, w: int) -> bool:
    """Whether nothing but one friction bound acts on the three axes."""
    for a in range(v0, v0 + 3):
        other = s[0].control.friction_viscous[a, w] + s[0].control.servo_kp[a, w] + s[0].control.servo_kd[a, w]
        if other != real(0.0) or s[0].control.servo_torque[a, w] != real(0.0):
            return False
    return True


@wp.func
def take_part(s: wp.array(dtype=Direct), i: int, w: int) -> int:
    """Note, and return, whether laws act on the axes of a link's joint in this step: not where it is taken out."""
    j = s[0].tree.joint[i]
    on = int(0)
    if j < s[0].scene_joints:
        on = s[0].control.acts[j, w]
    if on == 1 and s[0].work.kind[i, w] == LOOSE:
        on = 0
        if s[0].control.enabled[j, w] == 0:  # what sleeps keeps what it holds
            clear_laws(s, j, w)
    s[0].linear.acts[i, w] = on
    return on


@wp.func
def open_ball(s: wp.array(dtype=Direct), i: int, w: int, u: vec3):
    """Bounds of a ball's friction, and a guess of its solution: it goes on at u. Speeds in `laws` are in world axes."""
    j = natural(s[0].tree.row[i].joint)
    v0 = natural(s[0].tree.row[i].v_start)
    put_triple(s[0].laws.start, v0, w, u)
    put_triple(s[0].laws.end, v0, w, u)
    put_triple(s[0].slid, v0, w, vec3(real(0.0)))
    put_triple(s[0].laws.friction, v0, w, vec3(real(0.0)))
    friction_bounds(s, s[0].laws, j, 0, w)
    hold = s[0].laws.hold[v0, w]
    stuck = s[0].state.stuck[v0, w]
    if hold > s[0].laws.slide[v0, w] or wp.length_sq(u) == real(0.0):
        stuck = 1
    if hold <= real(0.0):
        stuck = 0
    s[0].laws.stuck[v0, w] = stuck


@wp.func
def linear_ball(s: wp.array(dtype=Direct), i: int, w: int):
    """A ball's friction, linear about its solution: what it pushes with, or that it holds."""
    v0 = natural(s[0].tree.row[i].v_start)
    f = triple(s[0].laws.friction, v0, w)
    if s[0].laws.stuck[v0, w] == 1 or wp.dot(f, triple(s[0].slid, v0, w)) < real(0.0):
        s[0].work.kind[i, w] = HELD  # or it may go to and fro
        put_triple(s[0].slid, v0, w, vec3(real(0.0)))
        s[0].balls.push[i, w] = vec3(real(0.0))
    else:
        s[0].work.kind[i, w] = SLIDES
        put_triple(s[0].slid, v0, w, f)
        u = triple(s[0].laws.end, v0, w)
        s[0].balls.push[i, w] = u * (s[0].laws.slide[v0, w] / wp.max(wp.length(u), SLOWEST / s[0].settings.dt[0]))


@wp.func
def sliding_spin(s: wp.array(dtype=Direct), i: int, w: int, v: vec3, spin: vec3) -> vec3:
    """A ball's relative spin with friction as linear, for its base's motion."""
    if s[0].work.kind[i, w] == HELD:
        return vec3(real(0.0))
    r = s[0].balls.u[i, w] - v * s[0].balls.own_B[i, w] - times(s[0].balls.own_D[i, w], spin)
    return times(s[0].balls.response[i, w], r - s[0].balls.push[i, w])


@wp.func
def settle_ball(s: wp.array(dtype=Direct), i: int, w: int, u: vec3, A: mat33):
    """A ball's friction, whose speed without it is u, where all else yields: A is the response to a moment."""
    v0 = natural(s[0].tree.row[i].v_start)
    f, held = friction_3d(
        u, A, wp.inverse(A), s[0].laws.hold[v0, w], s[0].laws.slide[v0, w], wp.length(u), vec3(real(0.0)), real(1.0)
    )
    put_triple(s[0].slid, v0, w, vec3(real(0.0)))
    put_triple(s[0].laws.friction, v0, w, f)
    put_triple(s[0].laws.end, v0, w, (u + A * f) * real(1 - held))
    s[0].laws.stuck[v0, w] = held
    linear_ball(s, i, w)


@wp.func
def solve_ball(s: wp.array(dtype=Direct), i: int, w: int, v: vec3, spin: vec3):
    """A ball's relative spin with friction, exactly, for its base's motion; and how far off the linear one was (`law_miss`)."""
    v0 = natural(s[0].tree.row[i].v_start)
    D = s[0].balls.own_D[i, w]
    r = s[0].balls.u[i, w] - v * s[0].balls.own_B[i, w] - times(D, spin)
    linear = sliding_spin(s, i, w, v, spin)
    inverse = inverse_symmetric(D)
    hold = s[0].laws.hold[v0, w]
    f, held = friction_3d(
        times(inverse, r), inverse, D, hold, s[0].laws.slide[v0, w], wp.length(linear), vec3(real(0.0)), real(1.0)
    )
    u = times(inverse, r + f)
    if held == 1:
        u = vec3(real(0.0))
    free = times(inverse, r)
    off = law_miss(s, w, wp.length(u - linear), wp.length(free), real(3.0) / wp.trace(D))
    if off <= s[0].settings.tolerance[0] and held == 0:
        u = linear  # as good, and what its base took is exactly what it gave
    put_triple(s[0].laws.friction, v0, w, f)
    put_triple(s[0].laws.end, v0, w, u)
    s[0].laws.stuck[v0, w] = held
    return u, off


@wp.func
def report_ball(s: wp.array(dtype=Direct), i: int, w: int):
    """Keep a ball's friction, in the joint's axes, as of a whole step, and what it took."""
    j = natural(s[0].tree.row[i].joint)
    v0 = natural(s[0].tree.row[i].v_start)
    f = triple(s[0].laws.friction, v0, w)
    start = triple(s[0].laws.start, v0, w)
    end = triple(s[0].laws.end, v0, w)
    s[0].state.dissipated[j, w] = real(0.5) * (wp.max(real(0.0), -wp.dot(f, start)) - wp.dot(f, end))
    f = wp.quat_rotate_inv(joint_axes(s, j, w), f) * (real(s[0].tree.sign[i]) * s[0].settings.dt[0] / s[0].kick[w])
    put_triple(s[0].state.friction_impulse, v0, w, f)
    put_triple(s[0].state.axis_impulse, v0, w, f)
    for a in range(v0, v0 + 3):
        s[0].state.limit_impulse[a, w] = real(0.0)
        s[0].state.drive_impulse[a, w] = real(0.0)
        s[0].state.stuck[a, w] = s[0].laws.stuck[v0, w]


# ---- the passes -------------------------------------------------------------------------------------------------------------


@wp.func
def ball_inward(s: wp.array(dtype=Direct), i: int, w: int, scope: int, A: mat33, B: mat33, D: mat33, ql: vec3, qa: vec3):
    """What a ball's base feels of all that hangs on it, at the base's centre, from the same at the link's.

    `scope` 2: friction may act.
    """
    out = s[0].work.out[i, w]
    lever = s[0].work.arm[i, w] - out
    e = s[0].work.bias_l[i, w]
    B, D = shifted(A, B, D, out)
    qa = qa + wp.cross(out, ql) - e * B
    ql = ql - times(A, e)
    drive = commanded(s, i, w)
    qa = qa + drive
    kind = kind_of(s, i, w, scope)
    if kind == FREE:
        W = inverse_symmetric(D)
        G = W * wp.transpose(B)
        u = times(W, qa)
        A = less_product(A, B, G)
        ql = ql - B * u
        s[0].balls.u[i, w] = u
        s[0].work.full_A[i, w] = packed(A)
        s[0].work.full_B[i, w] = G
        s[0].work.full_D[i, w] = packed(W)
        B, D = mass_shifted(A, lever)
        qa = wp.cross(lever, ql) - drive
    else:
        s[0].balls.u[i, w] = qa
        s[0].balls.own_B[i, w] = B
        s[0].balls.own_D[i, w] = D
        if kind == SLIDES:
            push = s[0].balls.push[i, w]
            v0 = natural(s[0].tree.row[i].v_start)
            C = mat33(real(0.0))
            slide = s[0].laws.slide[v0, w]
            if slide > real(0.0):
                n = push / slide
                size = wp.max(wp.length(triple(s[0].laws.end, v0, w)), SLOWEST / s[0].settings.dt[0])
                C = (wp.identity(n=3, dtype=real) - wp.outer(n, n)) * (slide / size)
            W = inverse_symmetric(D + C)
            y = times(W, qa - push)
            ql = ql - B * y
            qa = qa - times(D, y)
            BW = B * W
            A = less_product(A, BW, wp.transpose(B))
            B = B - BW * D
            D = less_product(D, D * W, D)
            s[0].balls.response[i, w] = W
        s[0].work.full_A[i, w] = packed(A)
        s[0].work.full_B[i, w] = B
        s[0].work.full_D[i, w] = packed(D)
        B, D = shifted(A, B, D, lever)
        qa = qa + wp.cross(lever, ql) - drive
    return A, B, D, ql, qa


@wp.func
def ball_close_inward(s: wp.array(dtype=Direct), i: int, w: int, scope: int, ql: vec3, qa: vec3, m: vec3):
    """What a ball's base feels of forces alone, with a gap to be closed in place of a′, and a moment m of the joint."""
    out = s[0].work.out[i, w]
    e = s[0].work.close_l[i, w]
    qa = qa + wp.cross(out, ql)
    both = qa + m
    kind = kind_of(s, i, w, scope)
    ql = ql - packed_times(s[0].work.full_A[i, w], e)
    s[0].work.change_q[i, w] = both
    if kind == FREE:
        s[0].work.change_q[i, w] = packed_times(s[0].work.full_D[i, w], both)
        ql = ql - both * s[0].work.full_B[i, w]
        qa = -m
    else:
        qa = qa - e * s[0].work.full_B[i, w]
        if kind == SLIDES:
            y = times(s[0].balls.response[i, w], both)
            ql = ql - s[0].balls.own_B[i, w] * y
            qa = qa - times(s[0].balls.own_D[i, w], y)
    return ql, qa + wp.cross(s[0].work.arm[i, w] - out, ql)


@wp.func
def ball_close_outward(s: wp.array(dtype=Direct), i: int, w: int, scope: int, v: vec3, spin: vec3):
    """Changes of a link's velocity and spin by closing, from its base's."""
    out = s[0].work.out[i, w]
    v = v + wp.cross(spin, s[0].work.arm[i, w] - out) + s[0].work.close_l[i, w]
    kind = kind_of(s, i, w, scope)
    q = s[0].work.change_q[i, w]
    if kind == FREE:
        spin = q - s[0].work.full_B[i, w] * v
    elif kind == SLIDES:
        r = q - v * s[0].balls.own_B[i, w] - times(s[0].balls.own_D[i, w], spin)
        spin = spin + times(s[0].balls.response[i, w], r)
    return v + wp.cross(spin, out), spin
