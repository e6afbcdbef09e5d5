"""What acts on free axes in a direct step: laws at the mean of a step's ends, exact in every pass outwards.

Springs have their discrete gradient, dampers and drives the mean speed; friction that slides takes its bound times the path;
friction that holds and limits act on the speed at the end of the step, so that nothing is thrown back. In speeds: a law sees
u₁ = 2 Δq/Δt − u₀, the speed at the end that the increment Δq stands for.
"""

import warp as wp

from sharnir.core.spatial import exp_quat, log_quat
from sharnir.core.types import real, vec3, vec6
from sharnir.engine.articulated.data import LOOSE, natural
from sharnir.engine.articulated.matrices import small_inverse
from sharnir.engine.direct.balls import (
    FREE,
    HELD,
    NONE,
    SLIDES,
    friction_alone,
    joint_axes,
    open_ball,
    put_triple,
    take_part,
    triple,
)
from sharnir.engine.direct.data import Direct
from sharnir.engine.direct.energy.axes import held_axes, held_axis
from sharnir.engine.direct.energy.limits import leave_limit, limits_alone, pivot_limit, turn_of
from sharnir.engine.direct.energy.links import follow, inverse
from sharnir.laws.linear import law_miss, limit_speed, linearise, open_laws, servo_part, soften_axes, solve_one, solve_several
from sharnir.laws.prepare import axis_unit, decay
from sharnir.laws.solve import friction_3d
from sharnir.model.joint_geometry import ball_pull, free_axis
from sharnir.model.kinematics import pose_at

MEAN = wp.constant(real(0.5))  # share of the speed at the end of the step in the one against which friction slides


# ---- before the passes ------------------------------------------------------------------------------------------------------


@wp.func
def open_link(s: wp.array(dtype=Direct), i: int, w: int):
    """The laws of a link's joint, from the speeds at the start of the step."""
    j = s[0].tree.joint[i]
    on = take_part(s, i, w)
    v0 = s[0].joints.v_start[j]
    if on == 0:
        if j < s[0].scene_joints:
            for at in range(v0, v0 + s[0].joints.v_size[j]):
                s[0].laws.start[at, w] = real(0.0)
        return
    if s[0].tree.row[i].kind == FREE:
        if friction_alone(s, v0, w):
            u = s[0].work.spin[s[0].tree.row[i].body, w] - s[0].work.spin[s[0].tree.row[i].base, w]
            if s[0].state.stuck[v0, w] == 1:
                u = vec3(real(0.0))
            open_ball(s, i, w, u)
            linear_ball(s, i, w)
            return
        s[0].work.kind[i, w] = NONE
    p = s[0].joints.parent[j]
    c = s[0].joints.child[j]
    pose = pose_at(s[0].joints, j, w, s[0].work.position, s[0].work.rotation)
    w_p = s[0].work.spin[p, w]
    w_c = s[0].work.spin[c, w]
    u = s[0].work.velocity[c, w] + wp.cross(w_c, pose.child_anchor - s[0].work.position[c, w])
    u = u - s[0].work.velocity[p, w] - wp.cross(w_p, pose.child_anchor - s[0].work.position[p, w])
    for a in range(s[0].joints.v_size[j]):
        d, n = free_axis(s[0].joints, j, a, pose)
        s[0].laws.start[v0 + a, w] = wp.dot(d, u) + wp.dot(n, w_c - w_p)
        if s[0].axes.rotor_inertia[v0 + a, w] > real(0.0):
            s[0].laws.start[v0 + a, w] = s[0].state.rotor[v0 + a, w]  # a rotor has a speed of its own, with the same mean
        s[0].laws.mean[v0 + a, w] = real(1.0) - s[0].axes.implicit[v0 + a, w]
        if s[0].state.stuck[v0 + a, w] == 1:
            s[0].laws.start[v0 + a, w] = real(0.0)  # what friction held moves by nothing but rounding
    open_laws(s, i, w, real(1.0))
    drop_limits(s, i, w)
    linearise(s, i, w, MEAN)


@wp.func
def drop_limits(s: wp.array(dtype=Direct), i: int, w: int):
    """Limits that acted in the last step are no guess for this one where they are further off than it goes."""
    j = s[0].tree.joint[i]
    n = s[0].joints.v_size[j]
    v0 = s[0].joints.v_start[j]
    turn = n - s[0].joints.turns[j]
    by = s[0].drift[w] * wp.length(s[0].settings.gravity[w]) * s[0].settings.per_metre[0]
    for x in range(n):
        at = v0 + x
        if s[0].laws.limit[at, w] != real(0.0):
            u = s[0].laws.start[at, w]
            if s[0].joints.ball[j] != 0 and x >= turn:
                u = wp.dot(s[0].laws.row[at, w], triple(s[0].laws.start, v0 + turn, w))
            if wp.abs(limit_speed(s, at, w)) > real(2.0) * wp.abs(u) + by / axis_unit(s, j, x):
                s[0].laws.limit[at, w] = real(0.0)


@wp.func
def linear_ball(s: wp.array(dtype=Direct), i: int, w: int):
    """A ball's friction as it is in the next passes: it slides, linear about its solution, or holds (or keeps its place)."""
    v0 = natural(s[0].tree.row[i].v_start)
    put_triple(s[0].linear.push, v0, w, (triple(s[0].laws.end, v0, w) + triple(s[0].laws.start, v0, w)) * real(0.5))
    f = triple(s[0].laws.friction, v0, w)
    if s[0].laws.stuck[v0, w] == 0 and wp.dot(f, triple(s[0].slid, v0, w)) < real(0.0):
        s[0].laws.stuck[v0, w] = 2  # it stays, if only before it slides the other way
    if s[0].laws.stuck[v0, w] > 0 or (s[0].closures.count > 0 and (s[0].work.kind[i, w] != SLIDES or s[0].done[w] == 1)):
        f = vec3(real(0.0))  # in a loop, where it slides from a guess, or from where it was held, does not tell of a reversal
    put_triple(s[0].slid, v0, w, f)
    s[0].work.kind[i, w] = SLIDES
    if s[0].laws.stuck[v0, w] > 0:
        s[0].work.kind[i, w] = HELD


# ---- in a pass outwards -----------------------------------------------------------------------------------------------------


@wp.func
def is_pressed(s: wp.array(dtype=Direct), i: int, w: int) -> bool:
    """Whether contacts push a link, or another of its tree."""
    if s[0].touching == 1:
        return s[0].touch.pressed[s[0].touch.tree_first[i], w] == 1
    return False


@wp.func
def goes_on(s: wp.array(dtype=Direct), i: int, w: int, u: real) -> bool:
    """Whether friction slides on a link's only axis, as in the linear laws, against the path that ends with the speed u.

    The response of the axis alone, without the rows beside the tree, may tell that it holds; and the reaction where it is held,
    which is that of the loop, that it slides: passes would go round.
    """
    at = natural(s[0].tree.row[i].v_start)
    f = s[0].slid[at, w]
    if s[0].linear.locks[i, w] > 0 or not f * (u + s[0].laws.start[at, w]) < real(0.0):
        return False
    if u < s[0].laws.lower[at, w] or u > s[0].laws.upper[at, w]:
        return False
    a, b = servo_part(s, at, w, u)
    if a != s[0].linear.resist[at, w] or b - f != s[0].linear.push[at, w]:
        return False
    s[0].laws.friction[at, w] = f
    s[0].laws.limit[at, w] = real(0.0)
    s[0].laws.stuck[at, w] = 0
    s[0].laws.end[at, w] = u
    return True


@wp.func
def solve_only(s: wp.array(dtype=Direct), i: int, w: int, v: vec3, turn: vec3) -> real:
    """The laws of a link's only axis, exactly, at the changes of its twist but for that axis; returns `law_miss`."""
    v0 = natural(s[0].tree.row[i].v_start)
    felt = wp.dot(s[0].left_l[v0, w], v) + wp.dot(s[0].left_a[v0, w], turn)
    more = s[0].work.change[v0, w] - felt
    by = s[0].lock_u[v0, w]
    if by != real(0.0):
        more = more - by * (wp.dot(s[0].left_l[v0, w], s[0].end_l[v0, w]) + wp.dot(s[0].left_a[v0, w], s[0].end_a[v0, w]))
    A = real(1.0) / s[0].work.U[v0, w]
    now = s[0].speed[v0, w]
    linear = now + by + held_axis(s, i, w, s[0].work.Y[v0, w] * more)
    off = solve_one(s, v0, w, now + A * (s[0].work.u[v0, w] - felt), A, linear, MEAN, is_pressed(s, i, w))
    if s[0].single[w] == 1 and s[0].closures.count > 0 and off > s[0].settings.tolerance[0]:
        if goes_on(s, i, w, linear):
            off = real(0.0)
    return off


@wp.func(inline=False)
def solve_axes(s: wp.array(dtype=Direct), i: int, w: int, v: vec3, turn: vec3) -> real:
    """The same of several axes; apart, so that a hinge does not make room for matrices of 6 × 6."""
    n = s[0].tree.row[i].v_size
    v0 = natural(s[0].tree.row[i].v_start)
    rest = vec6()
    more = vec6()
    for x in range(n):
        felt = wp.dot(s[0].left_l[v0 + x, w], v) + wp.dot(s[0].left_a[v0 + x, w], turn)
        rest[x] = s[0].work.u[v0 + x, w] - felt
        more[x] = s[0].work.change[v0 + x, w] - felt
        for y in range(n):
            by = s[0].lock_u[v0 + y, w]
            if by != real(0.0):
                more[x] = more[x] - by * (
                    wp.dot(s[0].left_l[v0 + x, w], s[0].end_l[v0 + y, w]) + wp.dot(s[0].left_a[v0 + x, w], s[0].end_a[v0 + y, w])
                )
    V = s[0].work.inverse[i, w]
    by_law = held_axes(s, i, w, s[0].work.response[i, w] * more)
    for x in range(n):
        by_law[x] = by_law[x] + s[0].lock_u[v0 + x, w]
    p = small_inverse(V, n) * by_law - rest  # the impulses of the linear laws
    for x in range(n):
        more[x] = by_law[x] + s[0].speed[v0 + x, w]
    if s[0].single[w] == 1:
        if limits_alone(s, i, w):
            return pivot_limit(s, i, w, V, more, p)
    # laws want a symmetric response: of what the pass has, the difference counts at these impulses
    V = (V + wp.transpose(V)) * real(0.5)
    return solve_several(s, s[0].tree.joint[i], w, more - V * p, V, more, MEAN)


@wp.func
def solve_link(s: wp.array(dtype=Direct), i: int, w: int, v: vec3, turn: vec3):
    """Changes of a link's twist where something acts on its axes, the laws exactly, from its base's; and `law_miss`."""
    n = s[0].tree.row[i].v_size
    v0 = natural(s[0].tree.row[i].v_start)
    v = v + wp.cross(turn, s[0].arm1[i, w]) + s[0].work.close_l[i, w]
    turn = turn + s[0].work.close_a[i, w]
    off = real(0.0)
    if n == 1:
        off = solve_only(s, i, w, v, turn)
    else:
        off = solve_axes(s, i, w, v, turn)
    for at in range(v0, v0 + n):
        by = s[0].laws.end[at, w] - s[0].speed[at, w]
        s[0].rows.y[at, w] = by
        v = v + s[0].end_l[at, w] * by
        turn = turn + s[0].end_a[at, w] * by
    return v, turn, off


@wp.func
def solve_ball(s: wp.array(dtype=Direct), i: int, w: int, v: vec3, turn: vec3):
    """The same of a ball with friction alone."""
    v0 = natural(s[0].tree.row[i].v_start)
    out1 = s[0].out1[i, w]
    v = v + wp.cross(turn, s[0].arm1[i, w] - out1) + s[0].work.close_l[i, w]
    D = s[0].balls.own_D[i, w]
    now = s[0].ball_speed[i, w]
    felt = s[0].balls.own_B[i, w] * v + D * turn
    linear = now + s[0].work.close_a[i, w]
    if s[0].work.kind[i, w] == SLIDES:
        linear = now + s[0].balls.response[i, w] * (s[0].work.change_q[i, w] - felt)
    p = D * (linear - now) - s[0].balls.u[i, w] + felt  # the impulse of friction as linear
    D = (D + wp.transpose(D)) * real(0.5)
    M = inverse(D)
    before = triple(s[0].laws.start, v0, w)
    hold = s[0].laws.hold[v0, w]
    free = linear - M * p
    f, held = friction_3d(free, M, D, hold, s[0].laws.slide[v0, w], real(0.5) * wp.length(linear + before), before, MEAN)
    u = free + M * f
    if held == 1:
        u = vec3(real(0.0))
    elif held > 1:
        u = -before
    off = law_miss(s, w, wp.length(u - linear), wp.max(wp.length(free), wp.length(before)), real(3.0) / wp.trace(D))
    if off <= s[0].settings.tolerance[0] and held == 0:
        u = linear
    put_triple(s[0].laws.friction, v0, w, f)
    put_triple(s[0].laws.end, v0, w, u)
    s[0].laws.stuck[v0, w] = held
    mean = (u + before) * real(0.5)
    about = triple(s[0].linear.push, v0, w)
    if held == 0 and wp.dot(mean, about) > real(0.9) * wp.length(mean) * wp.length(about):
        put_triple(s[0].linear.push, v0, w, mean)  # it goes on sliding much the same way
    turn = turn + u - now
    return v + wp.cross(turn, out1), turn, off


@wp.func
def solve_acting(s: wp.array(dtype=Direct), i: int, w: int, v: vec3, turn: vec3):
    """Changes of a link's twist from its base's, with the laws exactly; `law_miss` in `mismatch`."""
    off = real(0.0)
    kind = s[0].work.kind[i, w]
    if s[0].linear.acts[i, w] == 0 or kind == LOOSE:
        v, turn = follow(s, i, w, v, turn, real(1.0))
    elif kind == NONE and s[0].closures.count > 0:
        # rows beside the tree were closed with the linear laws: exact ones, which do not know of the rows, are but compared
        _v, _turn, off = solve_link(s, i, w, v, turn)
        v, turn = follow(s, i, w, v, turn, real(1.0))
    elif kind == NONE:
        v, turn, off = solve_link(s, i, w, v, turn)
    else:
        v, turn, off = solve_ball(s, i, w, v, turn)
    s[0].mismatch[i, w] = off
    return v, turn


@wp.func
def outward(s: wp.array(dtype=Direct), w: int):
    """Changes of all twists, into work.change, with the laws exactly."""
    for n in range(s[0].tree.count):
        i = natural(n)
        base = natural(s[0].tree.row[i].base)
        v, turn = solve_acting(s, i, w, s[0].work.change_l[base, w], s[0].work.change_a[base, w])
        b = natural(s[0].tree.row[i].body)
        s[0].work.change_l[b, w] = v
        s[0].work.change_a[b, w] = turn


@wp.func
def worst_law(s: wp.array(dtype=Direct), w: int) -> real:
    """The largest mismatch of the laws with the linear ones (`law_miss`)."""
    most = real(0.0)
    for i in range(s[0].tree.count):
        most = wp.max(most, s[0].mismatch[i, w])
    return most


@wp.func
def relinearise(s: wp.array(dtype=Direct), w: int, one: bool) -> int:
    """Laws whose solution the last pass did not expect, linear about it, all or the first alone; returns their number."""
    wrong = int(0)
    for n in range(s[0].tree.count):
        i = natural(n)
        if s[0].mismatch[i, w] > s[0].settings.tolerance[0]:
            if wrong == 0 or not one:
                if s[0].work.kind[i, w] == NONE:
                    linearise(s, i, w, MEAN)
                else:
                    linear_ball(s, i, w)
            wrong = wrong + 1
    return wrong


# ---- what a step does not resolve -------------------------------------------------------------------------------------------


@wp.func
def soften(s: wp.array(dtype=Direct), w: int) -> int:
    """Drives and dampers that the step cannot resolve are taken at its end instead of its mean; returns 1 if there are any."""
    found = int(0)
    for m in range(s[0].tree.count):
        i = natural(m)
        if s[0].linear.acts[i, w] == 1 and s[0].work.kind[i, w] == NONE:
            if soften_axes(s, i, w, real(0.0)) == 1:  # a spring is to lose nothing, whatever the step
                open_laws(s, i, w, real(1.0))
                drop_limits(s, i, w)
                linearise(s, i, w, MEAN)
                found = 1
    return found


# ---- springs of ball joints -------------------------------------------------------------------------------------------------


@wp.func
def ball_springs(s: wp.array(dtype=Direct), i: int, w: int):
    """Springs of three rotations by their discrete gradient, at the end of the step as it stands.

    The mean of the gradients at both ends, and along the increments Δ what lets their product be the change of ½ Σ k φ².
    """
    j = s[0].tree.joint[i]
    at = s[0].joints.v_start[j] + s[0].joints.v_size[j] - 3
    stiff = vec3(s[0].axes.stiffness[at, w], s[0].axes.stiffness[at + 1, w], s[0].axes.stiffness[at + 2, w])
    if wp.length_sq(stiff) == real(0.0):
        return
    h = s[0].drift[w]
    rest = vec3(s[0].axes.rest[at, w], s[0].axes.rest[at + 1, w], s[0].axes.rest[at + 2, w])
    a = turn_of(s, j, w, s[0].work.position, s[0].work.rotation)
    b = turn_of(s, j, w, s[0].position, s[0].rotation)
    back = wp.quat_inverse(exp_quat(rest))
    x = log_quat(a * back)
    y = log_quat(b * back)
    grad = (ball_pull(a, rest, stiff) + ball_pull(b, rest, stiff)) * real(0.5)
    by = triple(s[0].moved, at, w)
    size = wp.dot(by, by)
    if size > real(1.0e-14):
        gained = wp.dot(wp.cw_mul(stiff, x + y), y - x) * real(0.5)
        grad = grad + by * ((gained - wp.dot(grad, by)) / size)
    for k in range(3):
        # the law's b, so that −a u − b is that impulse at the speed of now
        slope = real(0.25) * h * h * stiff[k]
        u = s[0].speed[at + k, w]
        start = s[0].laws.start[at + k, w]
        damping = h * (s[0].axes.damping[at + k, w] + s[0].control.friction_viscous[at + k, w])
        new = h * grad[k] - slope * u + damping * real(0.5) * s[0].laws.mean[at + k, w] * start
        s[0].linear.push[at + k, w] = s[0].linear.push[at + k, w] + new - s[0].laws.b[at + k, w]
        s[0].laws.b[at + k, w] = new


# ---- after the passes -------------------------------------------------------------------------------------------------------


@wp.func
def report_link(s: wp.array(dtype=Direct), i: int, w: int):
    """Keep what acted on a link's axes, as of a whole step; what friction, dampers and limits took is added up."""
    h = s[0].drift[w]
    whole = s[0].settings.dt[0] / h
    j = natural(s[0].tree.row[i].joint)
    v0 = natural(s[0].tree.row[i].v_start)
    taken = real(0.0)
    for at in range(v0, v0 + s[0].tree.row[i].v_size):
        s[0].at_limit[at, w] = 0
    if s[0].work.kind[i, w] != NONE:
        f = s[0].carried_a[i, w] + wp.cross(s[0].work.out[i, w], s[0].carried_l[i, w]) - user(s, i, w)
        mean = (s[0].ball_speed[i, w] + triple(s[0].laws.start, v0, w)) * real(0.5)
        taken = -wp.dot(f, mean)
        f = wp.quat_rotate_inv(joint_axes(s, j, w), f) * (real(s[0].tree.sign[i]) * whole)
        put_triple(s[0].state.friction_impulse, v0, w, f)
        put_triple(s[0].state.axis_impulse, v0, w, f)
        for at in range(v0, v0 + 3):
            s[0].state.limit_impulse[at, w] = real(0.0)
            s[0].state.drive_impulse[at, w] = real(0.0)
            held = holds(s[0].laws.stuck[v0, w])
            if held > s[0].state.stuck[at, w]:
                s[0].stopped[w] = j + 1
            s[0].state.stuck[at, w] = held
    else:
        for at in range(v0, v0 + s[0].tree.row[i].v_size):
            taken = taken + report_axis(s, i, at, w, h, whole)
    s[0].state.dissipated[j, w] = s[0].state.dissipated[j, w] + taken


@wp.func
def user(s: wp.array(dtype=Direct), i: int, w: int) -> vec3:
    if s[0].pushed[w] == 1:
        return s[0].ball_push[i, w]
    return vec3(real(0.0))


@wp.func
def holds(code: int) -> int:
    """Whether friction holds from now on."""
    return int(code == 1 or code == 3)


@wp.func
def report_axis(s: wp.array(dtype=Direct), i: int, at: int, w: int, h: real, whole: real) -> real:
    """One axis; returns what friction, dampers and limits took, J."""
    u = s[0].speed[at, w]
    before = s[0].laws.start[at, w]
    mean = s[0].moved[at, w] / h
    seen = u * (real(1.0) - real(0.5) * s[0].laws.mean[at, w]) + before * (real(0.5) * s[0].laws.mean[at, w])
    carried = wp.dot(s[0].work.S_l[at, w], s[0].carried_l[i, w]) + wp.dot(s[0].work.S_a[at, w], s[0].carried_a[i, w])
    p = carried - s[0].tau[at, w]
    linear = -s[0].laws.a[at, w] * u - s[0].laws.b[at, w]
    servo = wp.clamp(
        -s[0].laws.servo_a[at, w] * u - s[0].laws.servo_b[at, w], -s[0].laws.servo_cap[at, w], s[0].laws.servo_cap[at, w]
    )
    damper = -h * (s[0].axes.damping[at, w] + s[0].control.friction_viscous[at, w]) * seen
    drive = servo
    if s[0].axes.resistance[at, w] > real(0.0):
        N = s[0].axes.gear_ratio[at, w]
        end = (s[0].control.voltage[at, w] - s[0].axes.torque_constant[at, w] * N * seen) / s[0].axes.resistance[at, w]
        e, fade = decay(s, at, w)
        now = s[0].state.current[at, w]
        motor = h * N * s[0].laws.efficiency[at, w] * s[0].axes.torque_constant[at, w] * (end + (now - end) * fade)
        s[0].state.current[at, w] = end + (now - end) * e
        drive = drive + motor - s[0].axes.rotor_inertia[at, w] * N * N * (u - before)
        s[0].state.drive_impulse[at, w] = (servo + motor) * whole
    else:
        s[0].state.drive_impulse[at, w] = servo * whole
    spring = linear - damper - (drive - servo)
    rest = p - linear - servo
    friction = s[0].laws.friction[at, w]
    limit = real(0.0)
    if s[0].joints.ball[s[0].tree.row[i].joint] != 0:
        limit = s[0].laws.limit[at, w]  # along a row of its own, not along the axis
    elif s[0].laws.limit[at, w] != real(0.0):
        limit = rest - friction
    elif s[0].laws.stuck[at, w] > 0:
        friction = rest
    back = leave_limit(s, i, at, w, limit)
    s[0].state.axis_impulse[at, w] = (p - back) * whole
    s[0].state.friction_impulse[at, w] = friction * whole
    s[0].state.limit_impulse[at, w] = (limit - back) * whole
    held = holds(s[0].laws.stuck[at, w])
    if held > s[0].state.stuck[at, w] or (limit != real(0.0) and wp.abs(before) > real(0.0)):
        s[0].stopped[w] = s[0].tree.row[i].joint + 1  # what stops leaves velocities that do not quite fit the joints
    s[0].state.stuck[at, w] = held
    s[0].state.rotor[at, w] = u
    if s[0].at_limit[at, w] == 1 and s[0].joints.ball[s[0].tree.row[i].joint] == 0:
        s[0].state.rotor[at, w] = s[0].leaving[at, w]  # the impact that follows is its rotor's as well
    if held == 1:
        s[0].state.rotor[at, w] = real(0.0)
    return -(p - spring - drive) * mean
