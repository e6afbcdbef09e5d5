"""Limits of joints in a direct step: which of them act, those of ball joints, the impact that leaves them, and return."""

import warp as wp

from sharnir.core.types import EPSILON, mat66, quat, real, vec3, vec6
from sharnir.engine.articulated.data import natural
from sharnir.engine.articulated.matrices import small_inverse
from sharnir.engine.direct.balls import NONE, triple
from sharnir.engine.direct.data import Direct
from sharnir.laws.linear import law_miss, one_response
from sharnir.laws.prepare import NEAR_LIMIT, axis_unit, ball_limits, limit_ball, limit_boxes
from sharnir.model.joint_geometry import child_frame, parent_frame
from sharnir.model.kinematics import pose_at

SAME_ROW = wp.constant(real(max(1.0e-10, 100.0 * EPSILON)))  # a change of a ball's limit direction that counts as none
LEAST_SHARE = wp.constant(real(0.3))  # of a change of such a direction that a pass makes, at least and at most
MOST_SHARE = wp.constant(real(1.5))
LEAST = wp.constant(real(1.0e-30))  # N·s: a limit that acts has an impulse
RESTS = wp.constant(real(1.0e-7))  # of the speed that all kinetic energy would give an axis: a slower one rests at its limit


@wp.func
def turn_of(
    s: wp.array(dtype=Direct), j: int, w: int, position: wp.array2d(dtype=vec3), rotation: wp.array2d(dtype=quat)
) -> quat:
    """The child's frame seen from the parent's."""
    pose = pose_at(s[0].joints, j, w, position, rotation)
    return wp.quat_inverse(parent_frame(s[0].joints, j, pose)) * child_frame(s[0].joints, j, pose)


@wp.func
def limits_alone(s: wp.array(dtype=Direct), i: int, w: int) -> bool:
    """Whether a link has limits along its axes, and no friction."""
    v0 = natural(s[0].tree.row[i].v_start)
    for at in range(v0, v0 + s[0].tree.row[i].v_size):
        if s[0].laws.hold[at, w] > real(0.0) or s[0].laws.slide[at, w] > real(0.0):
            return False
    return True


@wp.func
def limit_direction(s: wp.array(dtype=Direct), i: int, x: int, w: int) -> vec6:
    """Direction of limit x of a link in its axes."""
    j = s[0].tree.row[i].joint
    turn = s[0].tree.row[i].v_size - s[0].joints.turns[j]
    g = vec6()
    if s[0].joints.ball[j] != 0 and x >= turn:
        row = s[0].laws.row[natural(s[0].tree.row[i].v_start) + x, w]
        for h in range(3):
            g[turn + h] = row[h]
    else:
        g[x] = real(1.0)
    return g


@wp.func(inline=False)
def pivot_limit(s: wp.array(dtype=Direct), i: int, w: int, V: mat66, linear: vec6, p: vec6) -> real:
    """The first limit of a link that is wrong at the speeds and impulses of the linear laws acts, or does so no more.

    One at a time, in the order of links and axes, this ends (Murty): what a joint alone would make of all its limits at once
    may go round for ever, since its base answers. Returns `law_miss`.
    """
    n = s[0].tree.row[i].v_size
    v0 = natural(s[0].tree.row[i].v_start)
    start = vec6()
    pushes = vec6()  # impulses of the limits, along the axes
    M = mat66()
    for x in range(n):
        start[x] = s[0].laws.start[v0 + x, w]
        pushes[x] = p[x] + s[0].linear.push[v0 + x, w]
        M[x, x] = real(1.0)
    pushes = pushes + s[0].linear.coupled[i, w] * linear
    along = vec6()  # and along their own directions
    for x in range(n):
        if s[0].limit_side[v0 + x, w] != 0:
            g = limit_direction(s, i, x, w)
            along[x] = wp.dot(g, pushes)
            for y in range(n):
                if s[0].limit_side[v0 + y, w] != 0:
                    M[x, y] = wp.dot(g, limit_direction(s, i, y, w))
    along = small_inverse(M, n) * along
    free = linear - V * p
    off = real(0.0)
    for x in range(n):
        at = v0 + x
        g = limit_direction(s, i, x, w)
        A = wp.dot(g, V * g)
        u = wp.dot(g, linear)
        side = int(0)
        if s[0].limit_side[at, w] != 0:
            side = 1 - 2 * int(s[0].limit_side[at, w] < 0)
        miss = real(0.0)
        to = int(0)
        if side != 0:
            miss = -along[x] * real(side) * A
        elif u < s[0].laws.lower[at, w]:
            miss = s[0].laws.lower[at, w] - u
            to = 1
        elif u > s[0].laws.upper[at, w]:
            miss = u - s[0].laws.upper[at, w]
            to = -1
        speed = wp.max(wp.abs(wp.dot(g, free)), wp.abs(wp.dot(g, start)))
        miss = law_miss(s, w, wp.max(miss, real(0.0)), speed, A)
        if miss > s[0].settings.tolerance[0] and off == real(0.0):
            off = miss
            side = to
        s[0].laws.limit[at, w] = real(side) * wp.max(wp.abs(along[x]), LEAST)
        s[0].laws.end[at, w] = linear[x]
        s[0].laws.friction[at, w] = real(0.0)
        s[0].laws.stuck[at, w] = 0
    return off


@wp.func
def next_row(s: wp.array(dtype=Direct), at: int, w: int, to: vec3, first: bool) -> vec3:
    """The direction of a limit for the next pass, where the end of the last one makes it `to`.

    A limit that pushes hard turns the end of the step and thereby its own direction, to and fro; how much of a change is to be
    made follows from the last two (Aitken), and passes converge as a secant does. `first`: there was no pass yet.
    """
    now = s[0].laws.row[at, w]
    miss = to - now
    share = real(1.0)
    if first:
        s[0].row_share[at, w] = real(0.0)
        return to
    if s[0].row_share[at, w] > real(0.0) and s[0].limit_side[at, w] != 0:
        more = miss - s[0].row_miss[at, w]
        size = wp.dot(more, more)
        if size > real(0.0):
            share = wp.clamp(-s[0].row_share[at, w] * wp.dot(s[0].row_miss[at, w], more) / size, LEAST_SHARE, MOST_SHARE)
    s[0].row_miss[at, w] = miss
    s[0].row_share[at, w] = share
    return now + miss * share


@wp.func
def ball_rows(s: wp.array(dtype=Direct), i: int, w: int, first: bool):
    """Limits of three rotations by the discrete gradient ḡ of their coordinates φ: ḡ·Δ = φ₁ − φ₀, at the end of the step as it
    stands. So the path ends where φ allows it, and a limit along which a joint slides does no work. `first`: see `next_row`.
    """
    j = natural(s[0].tree.row[i].joint)
    v0 = natural(s[0].tree.row[i].v_start)
    turn = s[0].tree.row[i].v_size - 3
    values, rows = ball_limits(s, j, w, turn_of(s, j, w, s[0].work.position, s[0].work.rotation))
    values1, rows1 = ball_limits(s, j, w, turn_of(s, j, w, s[0].position, s[0].rotation))
    rows = (rows + rows1) * real(0.5)
    by = triple(s[0].moved, v0 + turn, w)
    size = wp.dot(by, by)
    if size > real(1.0e-14):
        lacks = (values1 - values) - by * rows
        for x in range(3):
            if wp.abs(lacks[x]) > real(1.0):
                lacks[x] = real(0.0)  # an angle that begins another turn
        rows = rows + wp.outer(by, lacks / size)
    moves = real(0.0)
    for x in range(3):
        moves = wp.max(moves, wp.length(vec3(rows[0, x], rows[1, x], rows[2, x]) - s[0].laws.row[v0 + turn + x, w]))
    if moves <= SAME_ROW and not first:  # passes end with rows that stay, which keeps momenta
        return
    for x in range(3):
        row = next_row(s, v0 + turn + x, w, vec3(rows[0, x], rows[1, x], rows[2, x]), first)
        for h in range(3):
            rows[h, x] = row[h]
    limit_ball(s, s[0].laws, j, w, values, rows, triple(s[0].laws.start, v0 + turn, w), real(0.0), real(1.0))
    for x in range(turn, turn + 3):
        side = s[0].limit_side[v0 + x, w]
        if side != 0:
            lock = v0 + wp.abs(side) - 1
            s[0].linear.row[lock, w] = limit_direction(s, i, x, w)
            s[0].linear.wanted[lock, w] = s[0].laws.lower[v0 + x, w]
            if side < 0:
                s[0].linear.wanted[lock, w] = s[0].laws.upper[v0 + x, w]


@wp.func
def leave_limit(s: wp.array(dtype=Direct), i: int, at: int, w: int, limit: real) -> real:
    """Whether a limit that acted throws its axis back by more than restitution, and at which speed the axis is to leave it; an
    impact sees to that (`projection.stand`). Returns the impulse of that impact, about.
    """
    s[0].at_limit[at, w] = 0
    if limit == real(0.0):
        return real(0.0)
    j = natural(s[0].tree.row[i].joint)
    v0 = natural(s[0].tree.row[i].v_start)
    u = s[0].speed[at, w]
    before = s[0].laws.start[at, w]
    turn = v0 + s[0].tree.row[i].v_size - 3
    if s[0].joints.ball[j] != 0 and at >= turn:
        before = wp.dot(s[0].laws.row[at, w], triple(s[0].laws.start, turn, w))
        _values, rows = ball_limits(s, j, w, turn_of(s, j, w, s[0].position, s[0].rotation))
        row = vec3(rows[0, at - turn], rows[1, at - turn], rows[2, at - turn])
        s[0].laws.row[at, w] = row  # the impact is at the end of the step
        u = wp.dot(row, triple(s[0].speed, turn, w))
    leaves = -s[0].axes.restitution[at, w] * before
    if before * limit >= real(0.0):
        leaves = real(0.0)
    more = u - leaves
    A = real(0.0)
    if s[0].tree.row[i].v_size == 1:
        A = real(1.0) / s[0].work.U[at, w]
    else:
        A = one_response(s, i, w, at - v0)
    slow = RESTS * wp.sqrt(s[0].energy[w] * A)
    if wp.abs(more) <= slow or more * limit > real(0.0):  # what rests at a limit stays there in an impact at another one
        s[0].at_limit[at, w] = 1
        s[0].leaving[at, w] = leaves
    if not more * limit > real(0.0):
        return real(0.0)
    s[0].stopped[w] = j + 1
    return more / A


@wp.func
def near_limit(s: wp.array(dtype=Direct), i: int, w: int) -> bool:
    """Whether a limit of a link's joint acts, or is within a step's way."""
    if s[0].linear.acts[i, w] == 0 or s[0].work.kind[i, w] != NONE:
        return False
    v0 = natural(s[0].tree.row[i].v_start)
    if s[0].joints.ball[s[0].tree.row[i].joint] != 0:
        return True  # its limits are not those of single axes
    for at in range(v0, v0 + s[0].tree.row[i].v_size):
        speed = wp.abs(s[0].speed[at, w])
        if s[0].laws.lower[at, w] >= -speed or s[0].laws.upper[at, w] <= speed or s[0].laws.limit[at, w] != real(0.0):
            return True
    return False


@wp.func
def passed_limits(s: wp.array(dtype=Direct), i: int, w: int) -> int:
    """Displacements, added as speeds to work.close, that take passed limits of a link's joint back in; 1 where there are any."""
    j = s[0].tree.joint[i]
    n = s[0].joints.v_size[j]
    v0 = s[0].joints.v_start[j]
    if not near_limit(s, i, w):
        return 0
    for x in range(n):
        s[0].kept_u[v0 + x, w] = s[0].laws.start[v0 + x, w]
        s[0].laws.start[v0 + x, w] = s[0].moved[v0 + x, w] / s[0].drift[w]
    limit_boxes(s, s[0].laws, j, w, pose_at(s[0].joints, j, w, s[0].position, s[0].rotation), real(1.0), False, real(0.0))
    turn = n - s[0].joints.turns[j]
    found = int(0)
    so_far = vec3(real(0.0))  # of a ball, by the limits before this one
    for x in range(n):
        at = v0 + x
        s[0].laws.start[at, w] = s[0].kept_u[at, w]
        # speeds of limit_boxes are a way over Δt, those of a pass over ½Δt
        off = (wp.max(s[0].laws.lower[at, w], real(0.0)) + wp.min(s[0].laws.upper[at, w], real(0.0))) * real(2.0)
        if wp.abs(off) * s[0].drift[w] * axis_unit(s, j, x) > NEAR_LIMIT:
            found = 1
            g = vec6()
            g[x] = real(1.0)
            if s[0].joints.ball[j] != 0 and x >= turn:
                row = s[0].laws.row[at, w]
                by = row * ((off - wp.dot(row, so_far)) / wp.dot(row, row))
                so_far = so_far + by
                g[x] = real(0.0)
                for h in range(3):
                    g[turn + h] = row[h]
                    displace_by(s, i, v0 + turn + h, w, by[h])
            else:
                displace_by(s, i, at, w, off)
            if s[0].linear.locks[i, w] < n:  # or the axis would go back where it came from
                s[0].linear.row[v0 + s[0].linear.locks[i, w], w] = g
                s[0].linear.locks[i, w] = s[0].linear.locks[i, w] + 1
    return found


@wp.func
def displace_by(s: wp.array(dtype=Direct), i: int, at: int, w: int, u: real):
    s[0].work.close_l[i, w] = s[0].work.close_l[i, w] + s[0].end_l[at, w] * u
    s[0].work.close_a[i, w] = s[0].work.close_a[i, w] + s[0].end_a[at, w] * u
