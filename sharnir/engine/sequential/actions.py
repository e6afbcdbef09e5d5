"""What acts on the free axes of a joint, with its block: rows and responses, laws at both levels, impulses applied."""

import warp as wp

from sharnir.core.types import EPSILON, mat33, mat66, real, vec3
from sharnir.engine.sequential.data import Solve, Step
from sharnir.laws.prepare import (
    LEAP,
    MOST_REPAIR,
    NO_BOUND,
    limit_boxes,
    mean_motor_current,
    prepare_laws,
    report_laws,
    share_of_mean,
)
from sharnir.laws.rows import AxisRows, Twists
from sharnir.laws.solve import Laws
from sharnir.model.joint_geometry import JointPose, free_axis
from sharnir.model.kinematics import pose_at

OPEN_JOINT_GAP = wp.constant(real(3.0e-3))  # rad, or of the scene's length: gaps of joints from which passed limits wait
BALL_LIMIT_SLACK = wp.constant(
    real(max(1.0e-9, 10.0 * EPSILON))
)  # rad, of a ball joint's limit, that is not taken back in the same step


@wp.func
def prepare_rows(s: wp.array(dtype=Step), k: int, w: int, pose: JointPose, Kll: mat33, Kla: mat33, Kaa: mat33) -> None:
    """B, N and A of a joint's axes: N = (E − W K) Bᵀ keeps the joint closed, A = B K N."""
    n = s[0].joints.v_size[k]
    v0 = s[0].joints.v_start[k]
    p = s[0].joints.parent[k]
    c = s[0].joints.child[k]
    ll = s[0].work.W_ll[k, w]
    la = s[0].work.W_la[k, w]
    aa = s[0].work.W_aa[k, w]
    A = mat66()
    for i in range(n):
        d, m = free_axis(s[0].joints, k, i, pose)
        s[0].work.axis.d[v0 + i, w] = d
        s[0].work.axis.n[v0 + i, w] = m
    for i in range(n):
        d = s[0].work.axis.d[v0 + i, w]
        m = s[0].work.axis.n[v0 + i, w]
        kl = Kll * d + Kla * m
        ka = d * Kla + Kaa * m
        force = -(ll * kl + la * ka)
        torque = -(kl * la + aa * ka)
        s[0].work.axis.force[v0 + i, w] = force
        s[0].work.axis.torque[v0 + i, w] = torque
        Nl = d + force
        Na = m + torque
        s[0].work.axis.turn_parent[v0 + i, w] = s[0].work.inv_inertia[p, w] * (wp.cross(s[0].work.r_parent[k, w], Nl) + Na)
        s[0].work.axis.turn_child[v0 + i, w] = s[0].work.inv_inertia[c, w] * (wp.cross(s[0].work.r_child[k, w], Nl) + Na)
        kl = Kll * Nl + Kla * Na
        ka = Nl * Kla + Kaa * Na
        for j in range(n):
            A[j, i] = wp.dot(s[0].work.axis.d[v0 + j, w], kl) + wp.dot(s[0].work.axis.n[v0 + j, w], ka)
    if n == 3:  # their inverse in the corner that is not used
        inverse = wp.inverse(mat33(A[0, 0], A[0, 1], A[0, 2], A[1, 0], A[1, 1], A[1, 2], A[2, 0], A[2, 1], A[2, 2]))
        for i in range(3):
            for j in range(3):
                A[3 + i, 3 + j] = inverse[i, j]
    s[0].work.axis.response[k, w] = A


@wp.func
def speed_of_axis(
    s: wp.array(dtype=Step), k: int, i: int, w: int, linear: wp.array2d(dtype=vec3), angular: wp.array2d(dtype=vec3)
) -> real:
    """Speed of axis i of joint k (at its rows of this step) for given velocities of the bodies."""
    p = s[0].joints.parent[k]
    c = s[0].joints.child[k]
    w_p = angular[p, w]
    w_c = angular[c, w]
    u = linear[c, w] + wp.cross(w_c, s[0].work.r_child[k, w]) - linear[p, w] - wp.cross(w_p, s[0].work.r_parent[k, w])
    at = s[0].joints.v_start[k] + i
    return wp.dot(s[0].work.axis.d[at, w], u) + wp.dot(s[0].work.axis.n[at, w], w_c - w_p)


@wp.func
def start_laws(s: wp.array(dtype=Step), laws: Laws, k: int, w: int, pose: JointPose, bend_l: vec3, bend_a: vec3) -> None:
    """The laws of a joint's axes at velocity level. The way to the pose was a chord, too: q − q₋ = Δt (u − bend)."""
    for i in range(s[0].joints.v_size[k]):
        at = s[0].joints.v_start[k] + i
        bend = wp.dot(s[0].work.axis.d[at, w], bend_l) + wp.dot(s[0].work.axis.n[at, w], bend_a)
        laws.start[at, w] = speed_of_axis(s, k, i, w, s[0].state.velocity, s[0].state.spin) - bend
        laws.mean[at, w] = share_of_mean(s, at, w, s[0].work.axis.response[k, w][i, i], real(1.0))
    prepare_laws(s, laws, k, w, pose, LEAP)


@wp.func
def prepare_pseudo_laws(s: wp.array(dtype=Step), laws: Laws, held: Laws, k: int, w: int, pose: JointPose, widest: real) -> None:
    """The laws at position level: what friction holds stays where it is, a passed limit is closed.

    That waits while joints are open (`widest`, of the scene's length or rad): a few sweeps do not carry a large displacement
    through a mechanism, and limits that were passed at the start, taken back at once, would tear its joints apart.
    """
    v0 = s[0].joints.v_start[k]
    twist = s[0].solves[0].twist
    for i in range(s[0].joints.v_size[k]):
        laws.start[v0 + i, w] = speed_of_axis(s, k, i, w, twist.linear, twist.angular)
    erp = s[0].settings.erp[0] * wp.clamp(real(1.0) - widest / OPEN_JOINT_GAP, real(0.0), real(1.0))
    limit_boxes(s, laws, k, w, pose, erp, False, real(0.0))
    for i in range(s[0].joints.v_size[k]):
        at = v0 + i
        hold = real(0.0)
        if held.stuck[at, w] == 1:
            hold = NO_BOUND
        laws.hold[at, w] = hold
        laws.slide[at, w] = real(0.0)
        laws.impulse[at, w] = real(0.0)
        laws.friction[at, w] = real(0.0)
        laws.limit[at, w] = real(0.0)


@wp.func
def open_creep(s: wp.array(dtype=Step), solve: Solve, laws: Laws, k: int, w: int) -> None:
    """How far what friction holds has crept since it holds, this step included: as a speed that is to be taken back, in laws.end.

    Sweeps that did not converge leave a speed there, and without this an arm that brakes hold would sag step by step. In a loop
    the other joints may ask for that speed: there nothing is taken back.
    """
    for i in range(s[0].joints.v_size[k]):
        at = s[0].joints.v_start[k] + i
        off = real(0.0)
        if solve.laws.stuck[at, w] == 1 and s[0].work.open[k] == 1:
            bend = wp.dot(s[0].work.axis.d[at, w], solve.bias_linear[k, w])
            bend = bend + wp.dot(s[0].work.axis.n[at, w], solve.bias_angular[k, w])
            off = speed_of_axis(s, k, i, w, solve.twist.linear, solve.twist.angular) + bend
            off = off + s[0].state.creep[at, w] / s[0].settings.dt[0]
        laws.end[at, w] = off


@wp.func
def take_creep(s: wp.array(dtype=Step), pseudo: Twists, laws: Laws, k: int, w: int) -> None:
    """Keep the creep that a round of sweeps has not taken back."""
    for i in range(s[0].joints.v_size[k]):
        at = s[0].joints.v_start[k] + i
        if s[0].solves[0].laws.stuck[at, w] == 1 and s[0].work.open[k] == 1:
            laws.end[at, w] = laws.end[at, w] + speed_of_axis(s, k, i, w, pseudo.linear, pseudo.angular)


@wp.func
def apply_axis(
    twist: Twists, rows: AxisRows, force: wp.array2d(dtype=vec3), torque: wp.array2d(dtype=vec3),
    k: int, at: int, w: int, p: int, c: int, inv_mass_p: real, inv_mass_c: real, impulse: real,
) -> None:  # fmt: skip
    """Apply an impulse on a free axis with the constraint impulse that keeps the joint closed."""
    comes = rows.force[at, w]
    Nl = (rows.d[at, w] + comes) * impulse
    twist.linear[p, w] = twist.linear[p, w] - Nl * inv_mass_p
    twist.linear[c, w] = twist.linear[c, w] + Nl * inv_mass_c
    twist.angular[p, w] = twist.angular[p, w] - rows.turn_parent[at, w] * impulse
    twist.angular[c, w] = twist.angular[c, w] + rows.turn_child[at, w] * impulse
    force[k, w] = force[k, w] + comes * impulse
    torque[k, w] = torque[k, w] + rows.torque[at, w] * impulse


@wp.func
def pseudo_actions(s: wp.array(dtype=Step), held: Laws, laws: Laws, k: int, w: int, widest: real) -> int:
    """The laws at position level; returns 1 where limits of a ball joint, which are curved, are near, 2 where they are passed."""
    prepare_pseudo_laws(s, laws, held, k, w, pose_at(s[0].joints, k, w, s[0].work.position, s[0].work.rotation), widest)
    passed = int(0)
    if s[0].joints.ball[k] != 0:
        last = s[0].joints.v_start[k] + s[0].joints.v_size[k]
        for at in range(last - 3, last):
            off = wp.max(laws.lower[at, w], -laws.upper[at, w]) * s[0].settings.dt[0]
            if off > BALL_LIMIT_SLACK:
                passed = 2
            elif off > -MOST_REPAIR:
                passed = wp.max(passed, 1)
    return passed


@wp.func
def report_actions(s: wp.array(dtype=Step), solve: Solve, pseudo: Solve, k: int, w: int) -> None:
    """Keep what acted on a joint's axes, for the next step."""
    take_creep(s, pseudo.twist, pseudo.laws, k, w)
    for i in range(s[0].joints.v_size[k]):
        at = s[0].joints.v_start[k] + i
        s[0].state.creep[at, w] = pseudo.laws.end[at, w] * s[0].settings.dt[0] * real(solve.laws.stuck[at, w] * s[0].work.open[k])
        solve.laws.end[at, w] = speed_of_axis(s, k, i, w, solve.twist.linear, solve.twist.angular)
    report_laws(s, solve.laws, k, w)


@wp.func
def show_currents(s: wp.array(dtype=Step), solve: Solve, k: int, w: int) -> None:
    """Currents of a joint's motors at the pose, for the caller."""
    for i in range(s[0].joints.v_size[k]):
        at = s[0].joints.v_start[k] + i
        if s[0].axes.resistance[at, w] > real(0.0):
            solve.laws.end[at, w] = speed_of_axis(s, k, i, w, solve.twist.linear, solve.twist.angular)
            _mean, end = mean_motor_current(s, solve.laws, at, w)
            s[0].now.current[at, w] = end
