"""Adaptive Runge–Kutta integration of a tree, wholly on the device: one thread a state, no return to Python between steps."""

import warp as wp

from sharnir.joints import AxisTable, JointTable, ball_pull, joint_transform
from sharnir.model import BodyTable
from sharnir.tree import AxisLaws, TreeTable, TreeWork, backward, forward, link_inertia, link_motion
from sharnir.types import quat, real, vec3

MOST_STEPS = wp.constant(2_000_000)  # in one launch


@wp.struct
class Tableau:
    """A Runge–Kutta method: stages[i, j], weights and error weights [j]; order of the error estimate, 0 for none."""

    count: wp.int32
    order: wp.int32
    stages: wp.array2d(dtype=real)
    weights: wp.array(dtype=real)
    error: wp.array(dtype=real)
    error_low: wp.array(dtype=real)
    paired: wp.int32  # 1 where the error is that of a pair, 5 and 3


@wp.struct
class Motion:
    """A tree with its state y = (q, v), [row, world], and all that its right-hand side needs."""

    bodies: BodyTable
    joints: JointTable
    axes: AxisTable
    tree: TreeTable
    work: TreeWork
    laws: AxisLaws
    gravity: wp.array(dtype=vec3)
    own: wp.int32  # joints that are the scene's; those of floating bases follow
    nq: wp.int32
    nv: wp.int32
    applied: wp.array2d(dtype=real)  # [speed, world] forces on free axes
    viscous: wp.array(dtype=real)  # [speed] viscous friction
    q: wp.array2d(dtype=real)  # the state at which the right-hand side is wanted
    v: wp.array2d(dtype=real)
    tau: wp.array2d(dtype=real)
    a: wp.array2d(dtype=real)


@wp.func
def passive(m: Motion, j: int, w: int):
    """τ of a joint: applied forces, springs, dampers."""
    n = m.joints.v_size[j]
    v0 = m.joints.v_start[j]
    moves = n - m.joints.turns[j]
    pull = vec3(real(0.0))
    if j < m.own and m.joints.turns[j] == 3:
        at = v0 + moves
        _offset, turn = joint_transform(m.joints, j, w, m.q)
        rest = vec3(m.axes.rest[at], m.axes.rest[at + 1], m.axes.rest[at + 2])
        pull = ball_pull(turn, rest, vec3(m.axes.stiffness[at], m.axes.stiffness[at + 1], m.axes.stiffness[at + 2]))
    for i in range(n):
        at = v0 + i
        force = m.applied[at, w]
        if j < m.own:
            force = force - (m.axes.damping[at] + m.viscous[at]) * m.v[at, w]
            if m.joints.turns[j] == 3 and i >= moves:
                force = force - pull[i - moves]
            else:
                force = force - m.axes.stiffness[at] * (m.q[m.joints.q_start[j] + i, w] - m.axes.rest[at])
        m.tau[at, w] = force


@wp.func
def right_hand_side(m: Motion, w: int, stage: int, K: wp.array3d(dtype=real)):
    """K[stage] = (q̇, q̈) at m.q, m.v; of a quaternion ½ (ω, 0) ∘ p."""
    count = m.tree.count
    for i in range(count):
        link_motion(m.joints, m.tree, i, w, m.q, m.v, m.work)
        link_inertia(m.bodies, m.tree, i, w, m.gravity[0], m.work)
        passive(m, m.tree.joint[i], w)
    backward(m.bodies, m.joints, m.tree, w, m.tau, m.laws, m.work)
    for i in range(count):
        forward(m.joints, m.tree, i, w, m.a, m.laws, m.work)
        j = m.tree.joint[i]
        n = m.joints.v_size[j]
        v0 = m.joints.v_start[j]
        q0 = m.joints.q_start[j]
        plain = n
        if m.joints.turns[j] == 3:
            plain = n - 3
            p = quat(m.q[q0 + plain, w], m.q[q0 + plain + 1, w], m.q[q0 + plain + 2, w], m.q[q0 + plain + 3, w])
            rate = quat(m.v[v0 + plain, w], m.v[v0 + plain + 1, w], m.v[v0 + plain + 2, w], real(0.0)) * p
            for c in range(4):
                K[stage, q0 + plain + c, w] = real(0.5) * rate[c]
        for c in range(plain):
            K[stage, q0 + c, w] = m.v[v0 + c, w]
        for c in range(n):
            K[stage, m.nq + v0 + c, w] = m.a[v0 + c, w]


@wp.func
def put(m: Motion, w: int, row: int, value: real):
    if row < m.nq:
        m.q[row, w] = value
    else:
        m.v[row - m.nq, w] = value


@wp.func
def try_step(
    m: Motion, t: Tableau, w: int, h: real, rtol: real, atol: real, y: wp.array2d(dtype=real), K: wp.array3d(dtype=real)
) -> real:
    """One step from y: leaves the result in m.q, m.v and returns its error in units of the tolerance. K[0] = f(y) beforehand."""
    rows = m.nq + m.nv
    for s in range(1, t.count):
        for r in range(rows):
            add = real(0.0)
            for j in range(s):
                c = t.stages[s, j]
                if c != real(0.0):
                    add = add + c * K[j, r, w]
            put(m, w, r, y[r, w] + h * add)
        right_hand_side(m, w, s, K)
    high = real(0.0)
    low = real(0.0)
    for r in range(rows):
        add = real(0.0)
        e = real(0.0)
        e_low = real(0.0)
        for j in range(t.count):
            k = K[j, r, w]
            add = add + t.weights[j] * k
            e = e + t.error[j] * k
            e_low = e_low + t.error_low[j] * k
        new = y[r, w] + h * add
        put(m, w, r, new)
        scale = atol + rtol * wp.max(wp.abs(y[r, w]), wp.abs(new))
        high = high + (e / scale) * (e / scale)
        low = low + (e_low / scale) * (e_low / scale)
    size = wp.abs(h) / wp.sqrt(real(rows))
    if t.paired == 1:
        both = high + real(0.01) * low
        if both == real(0.0):
            return real(0.0)
        return size * high / wp.sqrt(both)
    return size * wp.sqrt(high)


@wp.func
def normalise(m: Motion, w: int):
    """Quaternions back to unit length."""
    for i in range(m.tree.count):
        j = m.tree.joint[i]
        if m.joints.turns[j] == 3:
            at = m.joints.q_start[j] + m.joints.v_size[j] - 3
            size = real(0.0)
            for c in range(4):
                size = size + m.q[at + c, w] * m.q[at + c, w]
            size = real(1.0) / wp.sqrt(size)
            for c in range(4):
                m.q[at + c, w] = m.q[at + c, w] * size


@wp.kernel(module="sharnir.ode")
def integrate(
    motion: wp.array(dtype=Motion), t: Tableau, fixed: real, rtol: real, atol: real,
    times: wp.array(dtype=real), first: int, last: int,
    clock: wp.array2d(dtype=real), y: wp.array2d(dtype=real), K: wp.array3d(dtype=real),
    out: wp.array3d(dtype=real), counts: wp.array2d(dtype=wp.int32),
):  # fmt: skip
    """From y at clock[0] through times[first:last], each hit by a step of its own; clock[1] keeps the step size in between.

    counts: steps accepted, steps rejected, 1 where a step became too small or not finite. A positive `fixed` is a constant step.
    """
    w = wp.tid()
    m = motion[0]
    rows = m.nq + m.nv
    now = clock[0, w]
    h = clock[1, w]
    for r in range(rows):
        put(m, w, r, y[r, w])
    right_hand_side(m, w, 0, K)
    power = real(-1.0) / real(t.order + 1)
    steps = int(0)
    for target in range(first, last):
        end = times[target]
        while now < end and counts[2, w] == 0 and steps < MOST_STEPS:
            steps = steps + 1
            room = end - now
            step = wp.min(h, room)
            sliver = real(1.0e-3)
            if fixed > real(0.0):
                step = wp.min(fixed, room)
                sliver = real(1.0e-6)
            if room - step < sliver * step:
                step = room
            error = try_step(m, t, w, step, rtol, atol, y, K)
            if fixed > real(0.0):
                error = real(0.0)
            if not wp.isfinite(error) or step < real(1.0e-14) * (real(1.0) + wp.abs(now)):
                counts[2, w] = 1
            elif error <= real(1.0):
                normalise(m, w)
                for r in range(m.nq):
                    y[r, w] = m.q[r, w]
                for r in range(m.nv):
                    y[m.nq + r, w] = m.v[r, w]
                now = now + step
                if step == room:
                    now = end
                right_hand_side(m, w, 0, K)
                counts[0, w] = counts[0, w] + 1
                grow = real(10.0)
                if error > real(1.0e-10):
                    grow = wp.min(real(10.0), real(0.9) * wp.pow(error, power))
                if step >= h or grow < real(1.0) or step * grow > h:
                    h = step * grow
            else:
                for r in range(rows):
                    put(m, w, r, y[r, w])
                right_hand_side(m, w, 0, K)
                counts[1, w] = counts[1, w] + 1
                h = step * wp.max(real(0.2), real(0.9) * wp.pow(error, power))
        for r in range(rows):
            out[target, r, w] = y[r, w]
    clock[0, w] = now
    clock[1, w] = h
