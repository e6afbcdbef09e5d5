"""Integration of a tree to tolerances, wholly on the device: one thread a state, no return to Python between steps.

A step is made in two rounds of right-hand sides. TRY leaves a result and its error; FINISH, after a result that is good enough,
adds the derivative at the result and what the interpolant needs. The step then stands as a polynomial, from which times asked
for, events and changes of mode are read: y(θ) = Σ_c C[c] θ^c, 0 ≤ θ ≤ 1.
"""

import warp as wp

from sharnir.ode.adams import Adams, adams_accept, adams_begin, adams_dense, adams_judge, adams_predict, adams_reject
from sharnir.ode.data import Motion
from sharnir.ode.forces import plain_right_hand_side, right_hand_side
from sharnir.ode.modes import STILL, margin, reclassify, settle, strike
from sharnir.types import inline_less, real

inline_less("sharnir.ode_rough")

START, TRY, FINISH, FAILED = wp.constant(0), wp.constant(1), wp.constant(2), wp.constant(3)
SWITCH, STRIKE, LOOK = wp.constant(4), wp.constant(5), wp.constant(6)
ACCEPTED, REJECTED, TARGET, RECORDED = wp.constant(0), wp.constant(1), wp.constant(2), wp.constant(3)
MOST_STALLED = wp.constant(100)  # changes of mode at one time
QUARTER = wp.constant(real(0.25))  # a step is looked at so often for changes of mode


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
    marks: wp.array3d(dtype=real)  # [recorded step, 4, world] its start and size, s, rejected trials until then, its share made
    out: wp.array3d(dtype=real)  # [time, row, world], quaternions not quite of unit length


@wp.func
def put(m: wp.array(dtype=Motion), w: int, row: int, value: real):
    if row < m[0].nq:
        m[0].q[row, w] = value
    elif row < m[0].nq + m[0].nv:
        m[0].v[row - m[0].nq, w] = value
    else:
        m[0].current[row - m[0].nq - m[0].nv, w] = value


@wp.func
def place(
    m: wp.array(dtype=Motion),
    t: Tableau,
    c: Course,
    w: int,
    stage: int,
    phase: int,
    h: real,
    theta: real,
    C: wp.array3d(dtype=real),
) -> real:
    """Bring the state to the point of a stage, or to y(θ); returns its time in units of the step."""
    at = real(0.0)
    if phase == LOOK:
        at = theta
    elif (phase == TRY or phase == FINISH) and t.adams == 1:
        at = real(1.0)
    elif phase == TRY or phase == FINISH:
        for j in range(stage):
            at = at + t.stages[stage, j]
    for r in range(m[0].nq + m[0].nv + m[0].currents):
        value = c.y[r, w]
        if phase == LOOK:
            value = horner(t, C, r, w, theta)
        elif (phase == TRY or phase == FINISH) and t.adams == 1:
            value = c.ahead[r, w]
        elif phase == TRY or phase == FINISH:
            add = real(0.0)
            for j in range(stage):
                weight = t.stages[stage, j]
                if weight != real(0.0):
                    add = add + weight * c.K[j, r, w]
            value = value + h * add
        put(m, w, r, value)
    return at


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
def unit(m: wp.array(dtype=Motion), w: int, y: wp.array2d(dtype=real), along: wp.array3d(dtype=real), count: int):
    """Quaternions of y to unit length; the first `count` of `along`, made of derivatives, change alike: ṗ is linear in p."""
    for i in range(m[0].tree.count):
        j = m[0].tree.joint[i]
        if m[0].joints.turns[j] == 3:
            at = m[0].joints.q_start[j] + m[0].joints.v_size[j] - 3
            size = real(0.0)
            for r in range(at, at + 4):
                size = size + y[r, w] * y[r, w]
            size = real(1.0) / wp.sqrt(size)
            for r in range(at, at + 4):
                y[r, w] = y[r, w] * size
                for k in range(count):
                    along[k, r, w] = along[k, r, w] * size


@wp.func
def horner(t: Tableau, C: wp.array3d(dtype=real), r: int, w: int, theta: real) -> real:
    """A row of the step's polynomial at θ."""
    value = C[t.degree, r, w]
    for d in range(t.degree):
        value = value * theta + C[t.degree - 1 - d, r, w]
    return value


@wp.func
def write(t: Tableau, c: Course, w: int, rows: int, time: int, theta: real, C: wp.array3d(dtype=real)):
    """One of the times asked for, inside a step or (θ ≥ 1) at its end."""
    for r in range(rows):
        value = c.ahead[r, w]
        if theta < real(1.0):
            value = horner(t, C, r, w, theta)
        c.out[time, r, w] = value


@wp.func
def narrow(lo: real, hi: real, g_lo: real, g_hi: real, count: int) -> real:
    """Where to look next for a change of mode between θ = lo, where the margin is g_lo > 0, and hi."""
    middle = real(0.5) * (lo + hi)
    if count % 3 == 0 or g_lo <= real(0.0):
        return middle
    share = wp.clamp(g_lo / (g_lo - g_hi), real(0.02), real(0.98))
    return lo + (hi - lo) * share


@wp.func
def take_back(m: wp.array(dtype=Motion), w: int, y: wp.array2d(dtype=real)):
    """The state that the right-hand side (closing loops) or a change of mode has moved, into y."""
    for r in range(m[0].nq):
        y[r, w] = m[0].q[r, w]
    for r in range(m[0].nv):
        y[m[0].nq + r, w] = m[0].v[r, w]


@wp.func
def largest_speed(m: wp.array(dtype=Motion), c: Course, w: int) -> real:
    most = real(0.0)
    for r in range(m[0].nv):
        most = wp.max(most, wp.abs(c.y[m[0].nq + r, w]))
    return most


@wp.func
def next_size(order: int, h: real, error: real) -> real:
    """A step that would just keep the tolerance, with a margin."""
    if not wp.isfinite(error):
        return real(0.2) * h
    factor = real(10.0)
    if error > real(1.0e-10):
        factor = wp.clamp(real(0.9) * wp.pow(error, real(-1.0) / real(order + 1)), real(0.2), real(10.0))
    return h * factor


def integrating(plain: bool) -> wp.Kernel:
    """The kernel that integrates: of plain trees, or of all there is; most scenes need not wait for the compile of the latter."""
    right_hand_side_of = plain_right_hand_side if plain else right_hand_side

    @wp.kernel(module="sharnir.ode" if plain else "sharnir.ode_rough")
    def integrate(m: wp.array(dtype=Motion), t: Tableau, ask: Request, c: Course, a: Adams):
        """Steps from c.y at c.now on; see `Request` for where a launch ends. The phase is FAILED where a step became too small.

        With friction or limits it goes SWITCH (modes that the state tells), STRIKE (after an impact), START (modes that the
        forces allow), then TRY, FINISH, LOOK (do they last through the step?) and, where they do not, SWITCH again.
        """
        w = wp.tid()
        rows = m[0].nq + m[0].nv + m[0].currents
        loops = m[0].closures.count > m[0].closures.springs.count
        spare = t.total
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
        theta = real(1.0)  # where the modes are looked at, between lo, where they hold, and hi, where they do not
        lo = real(0.0)
        hi = real(2.0)
        g_lo = real(0.0)
        g_hi = real(0.0)
        looks = int(0)
        g = real(0.0)
        stalled = int(0)
        going = now < ask.end and phase != FAILED
        while going:
            first = int(0)
            last = int(1)
            unsettled = bool(False)
            if phase == TRY:
                room = ask.end - now
                step = wp.min(h, room)
                if room - step < real(1.0e-6) * step:  # no sliver of a step before the end
                    step = room
                after = now + step
                if step == room:
                    after = ask.end
                shape = wp.max(ask.keep, m[0].rough)
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
            elif phase == LOOK or phase == STRIKE:
                first = spare
                last = spare + 1
            C = c.C[recorded]
            for s in range(first, last):
                share = place(m, t, c, w, s, phase, step, theta, C)
                if phase != SWITCH:
                    right_hand_side_of(m, w, s, now + share * step, c.K)
                    if loops and phase == FINISH and s == t.result:
                        take_back(m, w, c.ahead)

            accepted = int(0)
            if wp.static(not plain):
                if phase == SWITCH:
                    reclassify(m, w, real(1.0e-7) * largest_speed(m, c, w) + STILL)
                    take_back(m, w, c.y)
                elif phase == STRIKE:
                    strike(m, w)
                    if m[0].striking[w] == 0:
                        take_back(m, w, c.y)
                elif phase == LOOK:
                    g = margin(m, w)
                elif phase == START and m[0].rough == 1:
                    unsettled = settle(m, w)
            if phase == SWITCH:
                phase = START
                if m[0].striking[w] == 1:
                    phase = STRIKE
            elif phase == STRIKE:
                if m[0].striking[w] == 0:
                    phase = SWITCH
                    stalled = stalled + 1
            elif phase == START:
                phase = TRY
                if loops or m[0].rough == 1:
                    take_back(m, w, c.y)
                if unsettled:
                    phase = START
                if phase == TRY and t.adams == 1:
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
            elif phase == FINISH:
                if shape == 1:
                    dense(t, a, c, w, rows, step, C)
                if m[0].rough == 1:
                    phase = LOOK
                    theta = QUARTER
                    lo = real(0.0)
                    hi = real(2.0)
                    g_lo = real(0.0)
                    looks = 0
                else:
                    accepted = 1
            else:
                looks = looks + 1
                if g < real(0.0):
                    hi = theta
                    g_hi = g
                else:
                    lo = theta
                    g_lo = g
                if hi > real(1.0):
                    theta = theta + QUARTER
                    accepted = int(theta > real(1.0))
                else:
                    theta = narrow(lo, hi, g_lo, g_hi, looks)
                    accepted = int(hi - lo <= real(4.0e-16) * (real(1.0) + wp.abs(now) / step) or looks > 100)

            if accepted == 1:
                phase = TRY
                cut = real(1.0)
                if hi <= real(1.0) and m[0].rough == 1:  # the step ends where a mode does
                    cut = hi
                    phase = SWITCH
                    after = wp.min(after, now + hi * step)
                    for r in range(rows):
                        c.ahead[r, w] = horner(t, C, r, w, hi)
                while ask.times[target] <= after:
                    share = real(1.0)
                    if ask.times[target] < after:
                        share = (ask.times[target] - now) / step
                    write(t, c, w, rows, target, share, C)
                    target = target + 1
                depth = int(1)
                if phase == SWITCH:
                    h = step
                    if ask.fixed > real(0.0):
                        h = c.size[w]
                elif t.adams == 1:
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
                    c.marks[recorded, 3, w] = cut
                    recorded = recorded + 1
                stalled = stalled + 1
                if after - now > real(1.0e-13) * (real(1.0) + wp.abs(now)):
                    stalled = 0
                now = after
                if now >= ask.pause or steps >= ask.most or recorded >= c.C.shape[0]:
                    going = False
            if stalled > MOST_STALLED:
                phase = FAILED
                going = False
        c.now[w] = now
        c.size[w] = h
        c.phase[w] = phase
        c.count[TARGET, w] = target
        c.count[RECORDED, w] = recorded

    return integrate


integrate_plain = integrating(True)
integrate_all = integrating(False)
