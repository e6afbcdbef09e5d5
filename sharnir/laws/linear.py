"""What acts on the axes of a tree, inside its recursion: which axes are free, locked or resisted.

Unknowns are the new speeds u, forces impulses. The forward pass meets a joint with its base's new motion known, and there all
laws of the joint are solved exactly (`solve_one`, `solve_several`); the backward pass needs them linear about a solution
(`linearise`): a stuck axis or a reached limit is locked, sliding friction of a group resists across its heading and pushes
against it. Where both agree at every joint the tree is solved; else the joints that do not agree are made linear anew, which is
a pivot, or a Newton step for a group's direction.

Functions take an array s of one structure of a solver and read s[0] in place; it has `joints`, `axes`, `control`, `state`,
`settings`, `tree`, `work`, `laws`, `linear` and `slid`.
"""

from typing import Any

import warp as wp

from sharnir.core.types import mat33, mat66, real, vec6
from sharnir.laws.prepare import axis_unit, prepare_laws, share_of_mean
from sharnir.laws.solve import clamp_sign, held_speed, limit_row, solve_axis, solve_several_axes
from sharnir.model.kinematics import pose_at

ALL_AT_ONCE = wp.constant(12)  # passes that correct every wrong joint; later ones correct the first alone, which must end


ENERGY_SPEED_SHARE = wp.constant(real(1.0e-2))  # of the speed that all kinetic energy would give an axis, beside its own speeds
SLOWEST = wp.constant(real(1.0e-15))  # rad, or of the scene's length, a step: sliding friction has no direction below it


@wp.func
def law_miss(s: Any, w: int, by: real, speed: real, A: real) -> real:
    """How far a law is missed whose axis, of the response A, is off by a speed: N·s or N·m·s where the caller gave the tolerance;
    else relative to the speeds that the axis has, or would have without laws, and to what rounding leaves of those of others.
    """
    if s[0].settings.absolute[0] == 1:
        return by / A
    if not by > real(0.0):
        return real(0.0)
    return by / (speed + ENERGY_SPEED_SHARE * wp.sqrt(s[0].energy[w] * A))


@wp.func
def slowest(s: Any, j: int, x: int) -> real:
    """Least speed of axis x of joint j that friction has a direction at, m/s or rad/s."""
    return SLOWEST / (axis_unit(s, j, x) * s[0].settings.dt[0])


@wp.func
def open_laws(s: Any, i: int, w: int, mean: real) -> None:
    """The laws of a link's joint from its speeds in laws.start, and a guess of their solution: it goes on as it does.

    `mean` 1: by the mean of the speeds at both ends of the step.
    """
    j = s[0].tree.joint[i]
    v0 = s[0].joints.v_start[j]
    n = s[0].joints.v_size[j]
    prepare_laws(s, s[0].laws, j, w, pose_at(s[0].joints, j, w, s[0].work.position, s[0].work.rotation), mean)
    for a in range(n):
        at = v0 + a
        u = s[0].laws.start[at, w]
        head = v0 + s[0].axes.group[at]
        s[0].laws.end[at, w] = u
        s[0].slid[at, w] = real(0.0)
        if s[0].laws.hold[head, w] > s[0].laws.slide[head, w]:
            s[0].laws.stuck[at, w] = 1
        if n == 1:
            s[0].laws.friction[at, w] = -wp.sign(u) * s[0].laws.slide[at, w]
            if u == real(0.0) and s[0].laws.hold[at, w] > real(0.0):
                s[0].laws.stuck[at, w] = 1
        if s[0].laws.hold[head, w] <= real(0.0):
            s[0].laws.stuck[at, w] = 0


@wp.func
def one_response(s: Any, i: int, w: int, x: int) -> real:
    """That of axis x of several to itself; apart, so that a hinge does not make room for a matrix of 6 × 6."""
    return s[0].work.inverse[i, w][x, x]


@wp.func
def soften_axes(s: Any, i: int, w: int, spring: real) -> int:
    """Into laws.mean: how far a link takes its axes' laws at the mean (`prepare.share_of_mean`); 1 if any is not altogether."""
    n = s[0].tree.row[i].v_size
    v0 = s[0].tree.row[i].v_start
    found = int(0)
    for x in range(n):
        A = real(0.0)
        if n == 1:
            A = real(1.0) / s[0].work.U[v0, w]
        else:
            A = one_response(s, i, w, x)
        s[0].laws.mean[v0 + x, w] = share_of_mean(s, v0 + x, w, A, spring)
        if s[0].laws.mean[v0 + x, w] < real(1.0):
            found = 1
    return found


@wp.func
def servo_part(s: Any, at: int, w: int, u: real) -> tuple[real, real]:
    """(a, b) of an axis' linear laws and its servo, free or at its cap, at the speed u: p = −a u − b."""
    a = s[0].laws.a[at, w]
    b = s[0].laws.b[at, w]
    servo = -s[0].laws.servo_a[at, w] * u - s[0].laws.servo_b[at, w]
    cap = s[0].laws.servo_cap[at, w]
    if wp.abs(servo) > cap:
        return a, b - clamp_sign(servo, cap)
    return a + s[0].laws.servo_a[at, w], b + s[0].laws.servo_b[at, w]


@wp.func
def limit_speed(s: Any, at: int, w: int) -> real:
    """The speed at which the limit that acts holds."""
    if s[0].laws.limit[at, w] > real(0.0):
        return s[0].laws.lower[at, w]
    return s[0].laws.upper[at, w]


@wp.func
def linear_one(s: Any, i: int, w: int, share: real) -> None:
    """The laws of a link's only axis, linear about their solution."""
    at = s[0].joints.v_start[s[0].tree.joint[i]]
    a, b = servo_part(s, at, w, s[0].laws.end[at, w])
    wanted = held_speed(s[0].laws.stuck[at, w], s[0].laws.start[at, w], share)
    locks = wp.min(s[0].laws.stuck[at, w], 1)
    if s[0].laws.friction[at, w] * s[0].slid[at, w] < real(0.0) and locks == 0:
        locks = 1  # between sliding one way and the other it stays, or passes could go to and fro
        wanted = held_speed(2, s[0].laws.start[at, w], share)
    s[0].slid[at, w] = s[0].laws.friction[at, w] * real(1 - locks)
    if s[0].laws.limit[at, w] != real(0.0):
        locks = 1
        wanted = limit_speed(s, at, w)
    s[0].linear.locks[i, w] = locks
    s[0].linear.wanted[at, w] = wanted
    s[0].linear.resist[at, w] = a
    s[0].linear.push[at, w] = b - s[0].laws.friction[at, w]


@wp.func
def lock(s: Any, at: int, w: int, g: vec6, wanted: real) -> None:
    s[0].linear.row[at, w] = g
    s[0].linear.wanted[at, w] = wanted


@wp.func
def mean_speed(s: Any, at: int, w: int, share: real) -> real:
    return s[0].laws.end[at, w] * share + s[0].laws.start[at, w] * (real(1.0) - share)


@wp.func
def linear_several(s: Any, i: int, w: int, share: real) -> None:
    """The laws of a link's axes, linear about their solution.

    Sliding friction of a group, p = −slide u/|u|, has the slope −slide/|u| (E − n nᵀ), n = u/|u|: a resistance across n. u is
    `share` of the speed at the end of the step, the rest being of that at its start.
    """
    j = s[0].tree.joint[i]
    n = s[0].joints.v_size[j]
    v0 = s[0].joints.v_start[j]
    C = mat66()
    for x in range(n):
        a, b = servo_part(s, v0 + x, w, s[0].laws.end[v0 + x, w])
        C[x, x] = a
        s[0].linear.push[v0 + x, w] = b
    locks = int(0)
    rests = vec6()  # 1 where friction holds the axis
    for x in range(n):
        head = s[0].axes.group[v0 + x]
        slide = s[0].laws.slide[v0 + head, w]
        size = real(0.0)
        along = real(0.0)
        for y in range(n):
            if s[0].axes.group[v0 + y] == head:
                u = mean_speed(s, v0 + y, w, share)
                size = size + u * u
                along = along + s[0].laws.friction[v0 + y, w] * s[0].slid[v0 + y, w]
        held = s[0].laws.stuck[v0 + head, w]
        if held == 0 and along < real(0.0):
            held = 2  # it stays, if only before it slides the other way
        if held > 0:
            g = vec6()
            g[x] = real(1.0)
            rests[x] = real(1.0)
            lock(s, v0 + locks, w, g, held_speed(held, s[0].laws.start[v0 + x, w], share))
            locks = locks + 1
        elif slide > real(0.0):
            size = wp.max(wp.sqrt(size), slowest(s, j, x))
            heading = mean_speed(s, v0 + x, w, share) / size
            s[0].linear.push[v0 + x, w] = s[0].linear.push[v0 + x, w] + slide * heading
            slope = slide / size * share
            C[x, x] = C[x, x] + slope
            for y in range(n):
                if s[0].axes.group[v0 + y] == head:
                    C[x, y] = C[x, y] - slope * heading * mean_speed(s, v0 + y, w, share) / size
            if share < real(1.0):  # the push is that of the solution, not that at rest
                for y in range(n):
                    if s[0].axes.group[v0 + y] == head:
                        across = -slope * heading * mean_speed(s, v0 + y, w, share) / size
                        if x == y:
                            across = across + slope
                        s[0].linear.push[v0 + x, w] = s[0].linear.push[v0 + x, w] - across * s[0].laws.end[v0 + y, w]
    for x in range(n):
        s[0].slid[v0 + x, w] = s[0].laws.friction[v0 + x, w] * (real(1.0) - rests[x])
    turn = n - s[0].joints.turns[j]
    rows = mat33(real(0.0))
    if s[0].joints.ball[j] != 0:
        for x in range(3):
            row = s[0].laws.row[v0 + turn + x, w]
            for h in range(3):
                rows[h, x] = row[h]
    for x in range(n):
        s[0].limit_side[v0 + x, w] = 0
        if s[0].laws.limit[v0 + x, w] != real(0.0) and rests[x] == real(0.0) and locks < n:
            s[0].limit_side[v0 + x, w] = int(wp.sign(s[0].laws.limit[v0 + x, w])) * (1 + locks)
            lock(s, v0 + locks, w, limit_row(rows, x, turn, s[0].joints.ball[j]), limit_speed(s, v0 + x, w))
            locks = locks + 1
    s[0].linear.locks[i, w] = locks
    s[0].linear.coupled[i, w] = C


@wp.func
def linearise(s: Any, i: int, w: int, share: real) -> None:
    if s[0].joints.v_size[s[0].tree.joint[i]] == 1:
        linear_one(s, i, w, share)
    else:
        linear_several(s, i, w, share)


@wp.func
def solve_one(s: Any, at: int, w: int, u: real, A: real, linear: real, share: real, firm: bool) -> real:
    """All laws of a joint's only axis, whose speed without them is u, with them as linear `linear`, response A: new speed in
    laws.end. Returns how far off the linear ones were (`law_miss`).
    """
    change, f, limit, held, taken = solve_axis(
        u, A, real(0.0), s[0].laws.a[at, w], s[0].laws.b[at, w], s[0].laws.servo_a[at, w], s[0].laws.servo_b[at, w],
        s[0].laws.servo_cap[at, w], s[0].laws.hold[at, w], s[0].laws.slide[at, w], s[0].laws.lower[at, w], s[0].laws.upper[at, w],
        s[0].laws.start[at, w], share, firm,
    )  # fmt: skip
    free = u
    s[0].laws.impulse[at, w] = change
    s[0].laws.friction[at, w] = f
    s[0].laws.limit[at, w] = limit
    s[0].laws.stuck[at, w] = held
    s[0].laws.taken[at, w] = taken
    u = u + A * change
    if held > 0:
        u = held_speed(held, s[0].laws.start[at, w], share)
    elif limit != real(0.0):
        u = limit_speed(s, at, w)
    off = law_miss(s, w, wp.abs(u - linear), wp.max(wp.abs(free), wp.abs(s[0].laws.start[at, w])), A)
    if off <= s[0].settings.tolerance[0] and held == 0:
        u = linear  # as good, and what its base took is exactly what it gave
    s[0].laws.end[at, w] = u
    return off


@wp.func
def solve_several(s: Any, j: int, w: int, u: vec6, A: mat66, linear: vec6, share: real) -> real:
    """All laws of a joint with several axes, as `solve_one` those of one."""
    n = s[0].joints.v_size[j]
    v0 = s[0].joints.v_start[j]
    for x in range(n):
        s[0].laws.impulse[v0 + x, w] = real(0.0)
    free = u
    u = u + A * solve_several_axes(
        s[0].laws, s[0].axes.group, v0, w, n, n - s[0].joints.turns[j], s[0].joints.ball[j], u, A, share
    )
    off = real(0.0)
    for x in range(n):
        if s[0].laws.stuck[v0 + x, w] > 0:
            u[x] = held_speed(s[0].laws.stuck[v0 + x, w], s[0].laws.start[v0 + x, w], share)
        speed = wp.max(wp.abs(free[x]), wp.abs(s[0].laws.start[v0 + x, w]))
        off = wp.max(off, law_miss(s, w, wp.abs(linear[x] - u[x]), speed, A[x, x]))
    for x in range(n):
        if off <= s[0].settings.tolerance[0] and s[0].laws.stuck[v0 + x, w] == 0:
            u[x] = linear[x]
        s[0].laws.end[v0 + x, w] = u[x]
    return off
