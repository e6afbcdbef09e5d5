"""What holds the ends of ropes: bodies, before, during and after a pass."""

import warp as wp

from sharnir.core.spatial import advance_rotation, turned
from sharnir.core.types import mat33, real, vec3
from sharnir.engine.rope.data import BODY, DRIVEN, LOOP, PORT, ROPE, UNHELD, RopeStep
from sharnir.engine.rope.terms import seen_from
from sharnir.model.model import DYNAMIC, KINEMATIC

HEAVY = wp.constant(real(1.0e7))


@wp.func
def advance_body(s: wp.array(dtype=RopeStep), b: int, w: int):
    """X ⊕ Δt V⁺ from the start of the step. L takes the impulses that ω took (`advance_rotation`)."""
    dt = s[0].h[w]
    x = s[0].body_state.position[b, w]
    move = s[0].body.v[b, w] * dt + s[0].body_state.rest[b, w]
    there = x + move
    s[0].body.x[b, w] = there
    s[0].body.rest[b, w] = move - (there - x)
    R = s[0].body_state.rotation[b, w]
    if s[0].bodies.motion[b] == DYNAMIC:
        L = s[0].body.momentum[b, w] + s[0].body.inertia[b, w] * (s[0].body.w[b, w] - s[0].body.start_w[b, w])
        R = advance_rotation(R, L, s[0].bodies.inertia[b, w], s[0].bodies.inv_inertia[b, w], dt)
    elif s[0].bodies.motion[b] == KINEMATIC:
        R = turned(R, s[0].body.w[b, w] * dt)
    s[0].body.q[b, w] = R


@wp.func
def own_inertia(s: wp.array(dtype=RopeStep), b: int, w: int):
    """A body by itself, before ropes hang on it."""
    E = wp.identity(n=3, dtype=real)
    s[0].body.A[b, w] = E * s[0].bodies.mass[b, w]
    s[0].body.B[b, w] = mat33(real(0.0))
    s[0].body.C[b, w] = mat33(real(0.0))
    s[0].body.D[b, w] = s[0].body.inertia[b, w]
    if wp.trace(s[0].bodies.inertia[b, w]) == real(0.0):
        s[0].body.D[b, w] = E  # a point mass is held at its centre alone and never turns


@wp.func
def stiffen_body(s: wp.array(dtype=RopeStep), b: int, w: int, r: vec3, pull: vec3):
    """Geometric stiffness of a body that a rope pulls at a point r off its centre: β Δt² max(0, r·f) (E − r̂ r̂ᵀ)."""
    tension = wp.dot(r, pull)
    if tension > real(0.0):
        K = (wp.identity(n=3, dtype=real) - wp.outer(r, r) / wp.dot(r, r)) * (s[0].h[w] * tension)
        s[0].body.D[b, w] = s[0].body.D[b, w] + K * s[0].settings.beta[0]


@wp.func
def place_end(s: wp.array(dtype=RopeStep), end: int, i: int, w: int):
    """Arm and point of a held end at the start of a step; the point moves as its body does."""
    b = s[0].ropes.body[end]
    arm = wp.quat_rotate(s[0].body_state.rotation[b, w], s[0].ropes.point[end])
    s[0].work.arm[end, w] = arm
    s[0].work.end_arm[end, w] = arm
    s[0].state.position[i, w] = s[0].body_state.position[b, w] + arm


@wp.func
def end_point(s: wp.array(dtype=RopeStep), end: int, w: int) -> vec3:
    """Point of a held end at the end of the step."""
    b = s[0].ropes.body[end]
    return s[0].body.x[b, w] + wp.quat_rotate(s[0].body.q[b, w], s[0].ropes.point[end])


@wp.func
def end_velocity(s: wp.array(dtype=RopeStep), end: int, i: int, w: int) -> vec3:
    """Velocity of the point of a held end: of a body that yields, linear in its twist; else along the chord of its path."""
    b = s[0].ropes.body[end]
    if s[0].ropes.kind[end] != DRIVEN:
        return s[0].body.v[b, w] + wp.cross(s[0].body.w[b, w], s[0].work.arm[end, w])
    return (end_point(s, end, w) - s[0].state.position[i, w]) / s[0].h[w]


@wp.func
def hang(s: wp.array(dtype=RopeStep), k: int, w: int):
    """Add a rope's Z to the body that holds its first end."""
    b = s[0].ropes.body[2 * k]
    A = s[0].work.Z_A[k, w]
    mean = s[0].work.arm[2 * k, w]
    B, C, D = seen_from(A, s[0].work.Z_B[k, w], s[0].work.Z_C[k, w], s[0].work.Z_D[k, w], mean, s[0].work.end_arm[2 * k, w])
    s[0].body.A[b, w] = s[0].body.A[b, w] + A
    s[0].body.B[b, w] = s[0].body.B[b, w] + B
    s[0].body.C[b, w] = s[0].body.C[b, w] + C
    s[0].body.D[b, w] = s[0].body.D[b, w] + D


@wp.func
def hang_bias(s: wp.array(dtype=RopeStep), k: int, w: int):
    """Add a rope's p₀ to the body that holds its first end."""
    b = s[0].ropes.body[2 * k]
    p = s[0].work.p_l[k, w]
    s[0].body.p_l[b, w] = s[0].body.p_l[b, w] + p
    s[0].body.p_a[b, w] = s[0].body.p_a[b, w] + s[0].work.p_a[k, w] + wp.cross(s[0].work.arm[2 * k, w], p)


@wp.func
def move_body(s: wp.array(dtype=RopeStep), b: int, w: int):
    """The change of a body's twist in a pass, M V + p = 0, M and p those of all that hangs on it."""
    C = s[0].body.C[b, w]
    D = wp.inverse(s[0].body.D[b, w])
    BD = s[0].body.B[b, w] * D
    v = wp.inverse(s[0].body.A[b, w] - BD * C) * (BD * s[0].body.p_a[b, w] - s[0].body.p_l[b, w])
    s[0].body.dv[b, w] = v
    s[0].body.dw[b, w] = -(D * (s[0].body.p_a[b, w] + C * v))


@wp.func
def first_end(s: wp.array(dtype=RopeStep), k: int, w: int):
    """The change of the twist at a rope's first end in a pass."""
    v = vec3(real(0.0))
    omega = vec3(real(0.0))
    kind = s[0].ropes.kind[2 * k]
    if kind == BODY:
        b = s[0].ropes.body[2 * k]
        omega = s[0].body.dw[b, w]
        v = s[0].body.dv[b, w] + wp.cross(omega, s[0].work.end_arm[2 * k, w])
    elif kind == ROPE:
        v = s[0].work.dv[s[0].ropes.body[2 * k], w]
    elif kind == UNHELD:
        v = -(wp.inverse(s[0].work.Z_A[k, w]) * s[0].work.p_l[k, w])
    return v, omega


@wp.func
def is_held(s: wp.array(dtype=RopeStep), end: int) -> bool:
    """Whether a body holds an end."""
    kind = s[0].ropes.kind[end]
    return kind == DRIVEN or kind == BODY or kind == LOOP or kind == PORT


# ---- bodies and ropes tied to a point between a rope's ends -----------------------------------------------------------------


@wp.func
def tie_place(s: wp.array(dtype=RopeStep), t: int, w: int):
    """A tied point moves with its body; what its own mass lacks for that is its defect."""
    b = s[0].ropes.tie_body[t]
    i = s[0].ropes.tie_slot[t]
    arm = wp.quat_rotate(s[0].body_state.rotation[b, w], s[0].ropes.tie_point[t])
    s[0].work.tie_arm[t, w] = arm
    s[0].work.tie_end[t, w] = arm
    s[0].state.position[i, w] = s[0].body_state.position[b, w] + arm
    v = s[0].body.v[b, w] + wp.cross(s[0].body.w[b, w], arm)
    there = tie_point(s, t, w)
    if s[0].bodies.motion[b] != DYNAMIC:
        v = (there - s[0].state.position[i, w]) / s[0].h[w]
    s[0].work.defect[i, w] = (v - s[0].work.v[i, w]) * (s[0].work.mass[i, w] + s[0].work.damp[i, w])
    s[0].work.v[i, w] = v
    s[0].work.r[i, w] = there


@wp.func
def tie_point(s: wp.array(dtype=RopeStep), t: int, w: int) -> vec3:
    """A tied point at the end of the step."""
    b = s[0].ropes.tie_body[t]
    return s[0].body.x[b, w] + wp.quat_rotate(s[0].body.q[b, w], s[0].ropes.tie_point[t])


@wp.func
def at_tie(s: wp.array(dtype=RopeStep), t: int, w: int):
    """B, C, D⁻¹ of a tied body, with all that hangs on it, at its point."""
    b = s[0].ropes.tie_body[t]
    B, C, D = seen_from(
        s[0].body.A[b, w], s[0].body.B[b, w], s[0].body.C[b, w], s[0].body.D[b, w], -s[0].work.tie_arm[t, w],
        -s[0].work.tie_end[t, w],
    )  # fmt: skip
    return B, C, wp.inverse(D)


@wp.func
def tie_inertia(s: wp.array(dtype=RopeStep), t: int, w: int):
    """A body's inertia at its tied point, its rotation eliminated; a body that does not yield is heavy beyond measure."""
    i = s[0].ropes.tie_slot[t]
    if s[0].ropes.tie_kind[t] == DRIVEN:
        k = s[0].ropes.tie_rope[t]
        total = s[0].ropes.density[k] * s[0].state.length[i, w] * real(s[0].state.segments[k, w])
        s[0].work.tie_A[i, w] = s[0].work.tie_A[i, w] + wp.identity(n=3, dtype=real) * (HEAVY * total)
    if s[0].ropes.tie_kind[t] != BODY:
        return
    B, C, D = at_tie(s, t, w)
    s[0].work.tie_A[i, w] = s[0].work.tie_A[i, w] + s[0].body.A[s[0].ropes.tie_body[t], w] - B * D * C


@wp.func
def tie_bias(s: wp.array(dtype=RopeStep), t: int, w: int):
    """The bias of a tied body at its point."""
    b = s[0].ropes.tie_body[t]
    i = s[0].ropes.tie_slot[t]
    if s[0].ropes.tie_kind[t] != BODY:
        return
    arm = s[0].work.tie_arm[t, w]
    B, _C, D = at_tie(s, t, w)
    p = s[0].body.p_l[b, w]
    s[0].work.tie_p[i, w] = s[0].work.tie_p[i, w] + p - B * (D * (s[0].body.p_a[b, w] - wp.cross(arm, p)))


@wp.func
def tie_move(s: wp.array(dtype=RopeStep), t: int, w: int):
    """The change of a tied body's twist in a pass, from that of its point."""
    b = s[0].ropes.tie_body[t]
    if s[0].ropes.tie_kind[t] != BODY:
        return
    arm = s[0].work.tie_arm[t, w]
    _B, C, D = at_tie(s, t, w)
    v = s[0].work.dv[s[0].ropes.tie_slot[t], w]
    omega = -(D * (C * v + s[0].body.p_a[b, w] - wp.cross(arm, s[0].body.p_l[b, w])))
    s[0].body.dw[b, w] = omega
    s[0].body.dv[b, w] = v - wp.cross(omega, s[0].work.tie_end[t, w])


@wp.func
def clear_ties(s: wp.array(dtype=RopeStep), k: int, w: int, inertia: bool):
    """Clear the sums of what is tied to a rope."""
    if s[0].ropes.tied[k] == 1:
        first = s[0].ropes.first[k]
        for i in range(first, first + s[0].state.segments[k, w] + 1):
            s[0].work.tie_p[i, w] = vec3(real(0.0))
            if inertia:
                s[0].work.tie_A[i, w] = mat33(real(0.0))


# ---- what ropes do to bodies -------------------------------------------------------------------------------------------------


@wp.func
def pull_body(b: int, w: int, arm: vec3, f: vec3, forces: wp.array2d(dtype=vec3), torques: wp.array2d(dtype=vec3)):
    """Add what acts on a body at an arm from its centre."""
    forces[b, w] = forces[b, w] + f
    torques[b, w] = torques[b, w] + wp.cross(arm, f)


@wp.func
def pull_bodies(s: wp.array(dtype=RopeStep), w: int, forces: wp.array2d(dtype=vec3), torques: wp.array2d(dtype=vec3)):
    """The impulses of ropes on bodies of a tree in the step that was made."""
    for b in range(s[0].bodies.count):
        forces[b, w] = vec3(real(0.0))
        torques[b, w] = vec3(real(0.0))
    for k in range(s[0].ropes.count):
        for side in range(2):
            end = 2 * k + side
            kind = s[0].ropes.kind[end]
            if kind == BODY or kind == PORT:
                b = s[0].ropes.body[end]
                pull_body(b, w, s[0].work.arm[end, w], -s[0].state.end_force[end, w], forces, torques)
                if s[0].ropes.clamp[end] == 1:
                    i = s[0].ropes.first[k] + side * s[0].state.segments[k, w]
                    torques[b, w] = torques[b, w] + s[0].state.moment[i, w] * real(2 * side - 1)
    for t in range(s[0].ropes.ties):
        if s[0].ropes.tie_kind[t] == PORT:
            pull_body(s[0].ropes.tie_body[t], w, s[0].work.tie_arm[t, w], -s[0].state.tie_force[t, w], forces, torques)
