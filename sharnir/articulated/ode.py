"""Integration of a tree to tolerances, wholly on the device: one thread a state, no return to Python between steps.

A step is made in two rounds of right-hand sides. TRY leaves a result and its error; FINISH, after a result that is good enough,
adds the derivative at the result and what the interpolant needs. The step then stands as a polynomial, from which times asked
for, events and changes of mode are read: y(θ) = Σ_c C[c] θ^c, 0 ≤ θ ≤ 1.
"""

import warp as wp

from sharnir.articulated.adams import Adams, adams_accept, adams_begin, adams_dense, adams_judge, adams_predict, adams_reject
from sharnir.joints import AxisTable, JointTable, ball_pull, joint_transform
from sharnir.model import BodyTable
from sharnir.tree import AxisLaws, TreeTable, TreeWork, backward, forward, link_inertia, link_motion
from sharnir.types import quat, real, vec3

START, TRY, FINISH, FAILED = wp.constant(0), wp.constant(1), wp.constant(2), wp.constant(3)
ACCEPTED, REJECTED, TARGET, RECORDED = wp.constant(0), wp.constant(1), wp.constant(2), wp.constant(3)


@wp.struct
class Tableau:
    """A method: stages from `first` to before `trial` give the error, all to before `total` the interpolant; 0 is at y.

    The point of stage `result` is the step's result. Adams keeps its differences in K up to `first`, and has two stages: the
    predicted and the corrected state.
    """

    adams: wp.int32  # 1: the tables below are empty
    first: wp.int32
    trial: wp.int32
    result: wp.int32
    total: wp.int32
    order: wp.int32  # of the error estimate
    degree: wp.int32  # of the interpolant
    paired: wp.int32  # 1 where the error is that of a pair, 5 and 3
    stages: wp.array2d(dtype=real)
    error: wp.array2d(dtype=real)  # [one of two, stage]
    dense: wp.array2d(dtype=real)  # [power - 1, stage]


@wp.struct
class Request:
    """What is asked for; a launch ends at `end`, or after a step past `pause`, `most` steps, or as many as can be recorded."""

    fixed: real  # s, a constant step; 0: by the tolerances
    rtol: real
    atol: real
    end: real  # s, hit by a step
    pause: real
    most: wp.int32
    keep: wp.int32  # 1: record the steps
    times: wp.array(dtype=real)  # s, ascending, infinity behind the last


@wp.struct
class Course:
    """How far an integration has come, [.., world]; kept between launches."""

    phase: wp.array(dtype=wp.int32)
    now: wp.array(dtype=real)  # s
    size: wp.array(dtype=real)  # s, the next step
    count: wp.array2d(dtype=wp.int32)  # steps accepted, rejected; times passed; steps recorded in this launch
    y: wp.array2d(dtype=real)
    ahead: wp.array2d(dtype=real)  # the result being tried
    K: wp.array3d(dtype=real)
    C: wp.array4d(dtype=real)  # [recorded step, power, row, world], one step where none are kept
    marks: wp.array3d(dtype=real)  # [recorded step, 3, world] its start and size, s, and the rejected trials until then
    out: wp.array3d(dtype=real)  # [time, row, world], quaternions not quite of unit length


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
def place(m: Motion, t: Tableau, c: Course, w: int, stage: int, phase: int, h: real):
    """Bring m.q, m.v to the point of a stage."""
    for r in range(m.nq + m.nv):
        value = c.y[r, w]
        if phase != START and t.adams == 1:
            value = c.ahead[r, w]
        elif phase != START:
            add = real(0.0)
            for j in range(stage):
                weight = t.stages[stage, j]
                if weight != real(0.0):
                    add = add + weight * c.K[j, r, w]
            value = value + h * add
        put(m, w, r, value)


@wp.func
def judge(t: Tableau, c: Course, w: int, rows: int, h: real, rtol: real, atol: real) -> real:
    """The result of a Runge–Kutta step in c.ahead; returns its error in units of the tolerance."""
    high = real(0.0)
    low = real(0.0)
    for r in range(rows):
        add = real(0.0)
        e = real(0.0)
        e_low = real(0.0)
        for j in range(t.trial):
            k = c.K[j, r, w]
            add = add + t.stages[t.result, j] * k
            e = e + t.error[0, j] * k
            e_low = e_low + t.error[1, j] * k
        new = c.y[r, w] + h * add
        c.ahead[r, w] = new
        scale = real(1.0) / (atol + rtol * wp.max(wp.abs(c.y[r, w]), wp.abs(new)))
        high = high + e * e * scale * scale
        low = low + e_low * e_low * scale * scale
    size = h / wp.sqrt(real(rows))
    if t.paired == 1:
        both = high + real(0.01) * low
        if both == real(0.0):
            return real(0.0)
        return size * high / wp.sqrt(both)
    return size * wp.sqrt(high)


@wp.func
def dense(t: Tableau, a: Adams, c: Course, w: int, rows: int, h: real, C: wp.array3d(dtype=real)):
    """The step as a polynomial in θ: C[power, row]."""
    for r in range(rows):
        C[0, r, w] = c.y[r, w]
    if t.adams == 1:
        adams_dense(a, w, rows, t.degree, h, C)
    else:
        for d in range(t.degree):
            for r in range(rows):
                add = real(0.0)
                for s in range(t.total):
                    add = add + t.dense[d, s] * c.K[s, r, w]
                C[d + 1, r, w] = h * add


@wp.func
def unit(m: Motion, w: int, y: wp.array2d(dtype=real), along: wp.array3d(dtype=real), count: int):
    """Quaternions of y to unit length; the first `count` of `along`, made of derivatives, change alike: ṗ is linear in p."""
    for i in range(m.tree.count):
        j = m.tree.joint[i]
        if m.joints.turns[j] == 3:
            at = m.joints.q_start[j] + m.joints.v_size[j] - 3
            size = real(0.0)
            for r in range(at, at + 4):
                size = size + y[r, w] * y[r, w]
            size = real(1.0) / wp.sqrt(size)
            for r in range(at, at + 4):
                y[r, w] = y[r, w] * size
                for k in range(count):
                    along[k, r, w] = along[k, r, w] * size


@wp.func
def write(t: Tableau, c: Course, w: int, rows: int, time: int, theta: real, C: wp.array3d(dtype=real)):
    """One of the times asked for, inside a step or (θ ≥ 1) at its end."""
    for r in range(rows):
        value = c.ahead[r, w]
        if theta < real(1.0):
            value = C[t.degree, r, w]
            for d in range(t.degree):
                value = value * theta + C[t.degree - 1 - d, r, w]
        c.out[time, r, w] = value


@wp.func
def next_size(order: int, h: real, error: real) -> real:
    """A step that would just keep the tolerance, with a margin."""
    if not wp.isfinite(error):
        return real(0.2) * h
    factor = real(10.0)
    if error > real(1.0e-10):
        factor = wp.clamp(real(0.9) * wp.pow(error, real(-1.0) / real(order + 1)), real(0.2), real(10.0))
    return h * factor


@wp.kernel(module="sharnir.ode")
def integrate(motion: wp.array(dtype=Motion), t: Tableau, ask: Request, c: Course, a: Adams):
    """Steps from c.y at c.now on; see `Request` for where a launch ends. The phase is FAILED where a step became too small."""
    w = wp.tid()
    m = motion[0]
    rows = m.nq + m.nv
    now = c.now[w]
    h = c.size[w]
    phase = c.phase[w]
    target = c.count[TARGET, w]
    step = real(0.0)
    after = real(0.0)
    shape = int(0)  # 1 where the step's polynomial is wanted
    error = real(0.0)
    steps = int(0)
    recorded = int(0)
    retry = int(0)
    going = now < ask.end and phase != FAILED
    while going:
        first = int(0)
        last = int(1)
        if phase == TRY:
            room = ask.end - now
            step = wp.min(h, room)
            if room - step < real(1.0e-6) * step:  # no sliver of a step before the end
                step = room
            after = now + step
            if step == room:
                after = ask.end
            shape = ask.keep
            if ask.times[target] < after:
                shape = 1
            if t.adams == 1:
                adams_predict(a, w, rows, step, c.y, c.ahead, c.K)
            first = t.first
            last = t.trial
        elif phase == FINISH:
            first = t.trial
            last = t.result + 1
            if shape == 1:
                last = t.total
        for s in range(first, last):
            place(m, t, c, w, s, phase, step)
            right_hand_side(m, w, s, c.K)

        if phase == START:
            phase = TRY
            if t.adams == 1:
                h = wp.min(h, adams_begin(a, w, rows, ask.rtol, ask.atol, c.y, c.K))
        elif phase == TRY:
            steps = steps + 1
            if t.adams == 1:
                error = adams_judge(a, w, rows, step, ask.rtol, ask.atol, c.y, c.ahead, c.K[t.first])
            else:
                error = judge(t, c, w, rows, step, ask.rtol, ask.atol)
            if wp.isfinite(error) and (error <= real(1.0) or ask.fixed > real(0.0)):
                phase = FINISH
            elif ask.fixed > real(0.0) or step < real(1.0e-14) * (real(1.0) + wp.abs(now)):
                phase = FAILED
                going = False
            else:
                c.count[REJECTED, w] = c.count[REJECTED, w] + 1
                retry = 1
                if t.adams == 1:
                    h = adams_reject(a, w, step)
                else:
                    h = next_size(t.order, step, error)
        else:
            phase = TRY
            C = c.C[recorded]
            if shape == 1:
                dense(t, a, c, w, rows, step, C)
            # A change of mode inside the step is looked for here, on C (with shape = 1 in such models). The step is cut there
            # by after = now + θ step and c.ahead = y(θ); phase = START makes the method begin anew.
            while ask.times[target] <= after:
                theta = real(1.0)
                if ask.times[target] < after:
                    theta = (ask.times[target] - now) / step
                write(t, c, w, rows, target, theta, C)
                target = target + 1
            depth = int(1)
            if t.adams == 1:
                h = adams_accept(a, w, rows, step, ask.fixed, ask.rtol, ask.atol, c.y, c.ahead, c.K[t.result], c.K)
                depth = a.order[w] + 1
            elif ask.fixed == real(0.0):
                h = next_size(t.order, step, error)
                if retry == 1:
                    h = wp.min(h, step)
            retry = 0
            for r in range(rows):
                c.y[r, w] = c.ahead[r, w]
                c.K[0, r, w] = c.K[t.result, r, w]
            unit(m, w, c.y, c.K, depth)
            c.count[ACCEPTED, w] = c.count[ACCEPTED, w] + 1
            if ask.keep == 1:
                c.marks[recorded, 0, w] = now
                c.marks[recorded, 1, w] = step
                c.marks[recorded, 2, w] = real(c.count[REJECTED, w])
                recorded = recorded + 1
            now = after
            if now >= ask.pause or steps >= ask.most or recorded >= c.C.shape[0]:
                going = False
    c.now[w] = now
    c.size[w] = h
    c.phase[w] = phase
    c.count[TARGET, w] = target
    c.count[RECORDED, w] = recorded
