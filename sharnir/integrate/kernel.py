"""Integration of a tree to tolerances, wholly on the device: one thread a state, no return to Python between steps.

A step is made in two rounds of right-hand sides. TRY leaves a result and its error; FINISH, after a result that is good enough,
adds the derivative at the result and what the interpolant needs. The step then stands as a polynomial, from which times asked
for, events and changes of mode are read: y(θ) = Σ_c C[c] θ^c, 0 ≤ θ ≤ 1.
"""

import warp as wp

from sharnir.core.types import inline_less, real
from sharnir.integrate.data import Motion
from sharnir.integrate.forces import plain_right_hand_side, right_hand_side
from sharnir.integrate.modes import NO_SPEED, correct_modes, margin, reclassify, speeds_after_impact

inline_less("sharnir.ode_rough")

AT_BEGIN, AT_TRIAL, AT_FINISH, AT_FAILURE = wp.constant(0), wp.constant(1), wp.constant(2), wp.constant(3)
AT_SWITCH, AT_IMPACT, AT_LOOK = wp.constant(4), wp.constant(5), wp.constant(6)
COUNT_ACCEPTED, COUNT_REJECTED, COUNT_TARGET, COUNT_RECORDED = wp.constant(0), wp.constant(1), wp.constant(2), wp.constant(3)
MOST_STALLED = wp.constant(100)  # changes of mode at one time
QUARTER = wp.constant(real(0.25))  # part of a step after which it is looked at for changes of mode


@wp.struct
class Tableau:
    """A method: stages from `first` to before `trial` give the error, all to before `total` the interpolant; 0 is at y.

    The point of stage `result` is the step's result.
    """

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
class Walk:
    """Where an integration stands between two rounds of right-hand sides."""

    phase: wp.int32
    going: wp.int32  # 0: the launch ends
    target: wp.int32  # number of the next of the times asked for
    recorded: wp.int32  # steps recorded in this launch
    steps: wp.int32  # steps tried in this launch
    retry: wp.int32  # 1 after a step that was rejected
    stalled: wp.int32  # changes of mode at one time
    shape: wp.int32  # 1 where the step's polynomial is wanted
    looks: wp.int32  # how often the modes were looked at in this step
    now: real  # s
    h: real  # s, size of the next step
    step: real  # s, of the one that is being made
    after: real  # s, when it ends
    error: real  # of the last trial, in units of the tolerance
    theta: real  # where the modes are looked at, between lo, where they hold, and hi, where they do not
    lo: real
    hi: real
    g_lo: real  # margins of the modes there
    g_hi: real


@wp.struct
class Course:
    """How far an integration has come, [.., world]; kept between launches."""

    walk: wp.array(dtype=Walk)
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
def store_state(m: wp.array(dtype=Motion), w: int, row: int, value: real) -> None:
    if row < m[0].nq:
        m[0].q[row, w] = value
    elif row < m[0].nq + m[0].nv:
        m[0].v[row - m[0].nq, w] = value
    else:
        m[0].current[row - m[0].nq - m[0].nv, w] = value


@wp.func
def place_stage(
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
    if phase == AT_LOOK:
        at = theta
    elif phase == AT_TRIAL or phase == AT_FINISH:
        for j in range(stage):
            at = at + t.stages[stage, j]
    for r in range(m[0].nq + m[0].nv + m[0].currents):
        value = c.y[r, w]
        if phase == AT_LOOK:
            value = horner(t, C, r, w, theta)
        elif phase == AT_TRIAL or phase == AT_FINISH:
            add = real(0.0)
            for j in range(stage):
                weight = t.stages[stage, j]
                if weight != real(0.0):
                    add = add + weight * c.K[j, r, w]
            value = value + h * add
        store_state(m, w, r, value)
    return at


@wp.func
def step_error(t: Tableau, c: Course, w: int, rows: int, h: real, rtol: real, atol: real) -> real:
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
def dense(t: Tableau, c: Course, w: int, rows: int, h: real, C: wp.array3d(dtype=real)) -> None:
    """The step as a polynomial in θ: C[power, row]."""
    for r in range(rows):
        C[0, r, w] = c.y[r, w]
    for d in range(t.degree):
        for r in range(rows):
            add = real(0.0)
            for s in range(t.total):
                add = add + t.dense[d, s] * c.K[s, r, w]
            C[d + 1, r, w] = h * add


@wp.func
def normalize_quaternions(m: wp.array(dtype=Motion), w: int, y: wp.array2d(dtype=real), along: wp.array3d(dtype=real)) -> None:
    """Quaternions of y to unit length; the first of `along`, their derivatives, change alike: ṗ is linear in p."""
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
                along[0, r, w] = along[0, r, w] * size


@wp.func
def horner(t: Tableau, C: wp.array3d(dtype=real), r: int, w: int, theta: real) -> real:
    """A row of the step's polynomial at θ."""
    value = C[t.degree, r, w]
    for d in range(t.degree):
        value = value * theta + C[t.degree - 1 - d, r, w]
    return value


@wp.func
def write(t: Tableau, c: Course, w: int, rows: int, time: int, theta: real, C: wp.array3d(dtype=real)) -> None:
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
def read_back(m: wp.array(dtype=Motion), w: int, y: wp.array2d(dtype=real)) -> None:
    """Read into y the state that the right-hand side (closing loops) or a change of mode has moved."""
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


# ---- the phases of a step ----------------------------------------------------------------------------------------------


@wp.func
def choose_step(m: wp.array(dtype=Motion), ask: Request, c: Course, w: int) -> None:
    """How long the next step is to be."""
    x = c.walk
    now = x[w].now
    room = ask.end - now
    step = wp.min(x[w].h, room)
    if room - step < real(1.0e-6) * step:  # no sliver of a step before the end
        step = room
    x[w].step = step
    x[w].after = now + step
    if step == room:
        x[w].after = ask.end
    x[w].shape = wp.max(ask.keep, m[0].rough)
    if ask.times[x[w].target] < x[w].after:
        x[w].shape = 1


@wp.func
def stages(t: Tableau, phase: int, shape: int) -> tuple[int, int]:
    """The right-hand sides that a phase needs: from the first to before the last; those of LOOK and STRIKE are spare."""
    if phase == AT_TRIAL:
        return t.first, t.trial
    if phase == AT_FINISH:
        if shape == 1:
            return t.trial, t.total
        return t.trial, t.result + 1
    if phase == AT_LOOK or phase == AT_IMPACT:
        return t.total, t.total + 1
    return 0, 1


@wp.func
def after_modes(m: wp.array(dtype=Motion), c: Course, w: int, unsettled: bool) -> None:
    """From SWITCH, STRIKE and START on to the next, until the modes are those of the forces."""
    x = c.walk
    phase = x[w].phase
    if phase == AT_SWITCH:
        x[w].phase = AT_BEGIN
        if m[0].striking[w] == 1:
            x[w].phase = AT_IMPACT
    elif phase == AT_IMPACT:
        if m[0].striking[w] == 0:
            x[w].phase = AT_SWITCH
            x[w].stalled = x[w].stalled + 1
    else:
        if m[0].closures.count > m[0].closures.springs.count or m[0].rough == 1:
            read_back(m, w, c.y)
        if not unsettled:
            x[w].phase = AT_TRIAL


@wp.func
def after_try(t: Tableau, ask: Request, c: Course, w: int, rows: int) -> None:
    """Whether the result is good enough; if not, a shorter step is tried."""
    x = c.walk
    step = x[w].step
    x[w].steps = x[w].steps + 1
    error = step_error(t, c, w, rows, step, ask.rtol, ask.atol)
    x[w].error = error
    if wp.isfinite(error) and (error <= real(1.0) or ask.fixed > real(0.0)):
        x[w].phase = AT_FINISH
    elif ask.fixed > real(0.0) or step < real(1.0e-14) * (real(1.0) + wp.abs(x[w].now)):
        x[w].phase = AT_FAILURE
        x[w].going = 0
    else:
        c.count[COUNT_REJECTED, w] = c.count[COUNT_REJECTED, w] + 1
        x[w].retry = 1
        x[w].h = next_size(t.order, step, error)


@wp.func
def after_finish(m: wp.array(dtype=Motion), t: Tableau, c: Course, w: int, rows: int, C: wp.array3d(dtype=real)) -> bool:
    """The step as a polynomial, where one is wanted; whether it is accepted as it is, or its modes are to be looked at."""
    x = c.walk
    if x[w].shape == 1:
        dense(t, c, w, rows, x[w].step, C)
    if m[0].rough == 0:
        return True
    x[w].phase = AT_LOOK
    x[w].theta = QUARTER
    x[w].lo = real(0.0)
    x[w].hi = real(2.0)
    x[w].g_lo = real(0.0)
    x[w].looks = 0
    return False


@wp.func
def after_look(c: Course, w: int, g: real) -> bool:
    """Where to look next, g being the margin of the modes at θ; whether enough is known to accept the step, or a part of it."""
    x = c.walk
    x[w].looks = x[w].looks + 1
    if g < real(0.0):
        x[w].hi = x[w].theta
        x[w].g_hi = g
    else:
        x[w].lo = x[w].theta
        x[w].g_lo = g
    if x[w].hi > real(1.0):
        x[w].theta = x[w].theta + QUARTER
        return x[w].theta > real(1.0)
    x[w].theta = narrow(x[w].lo, x[w].hi, x[w].g_lo, x[w].g_hi, x[w].looks)
    return x[w].hi - x[w].lo <= real(4.0e-16) * (real(1.0) + wp.abs(x[w].now) / x[w].step) or x[w].looks > 100


@wp.func
def size_after(t: Tableau, ask: Request, c: Course, w: int) -> None:
    """The size of the step after an accepted one."""
    x = c.walk
    step = x[w].step
    if x[w].phase == AT_SWITCH:
        x[w].h = step
        if ask.fixed > real(0.0):
            x[w].h = c.size[w]
    elif ask.fixed == real(0.0):
        h = next_size(t.order, step, x[w].error)
        if x[w].retry == 1:
            h = wp.min(h, step)
        x[w].h = h


@wp.func
def accept(m: wp.array(dtype=Motion), t: Tableau, ask: Request, c: Course, w: int, rows: int, C: wp.array3d(dtype=real)) -> None:
    """Take a step, or the part of it in which its modes hold; hand over the times asked for that it passed."""
    x = c.walk
    now = x[w].now
    step = x[w].step
    hi = x[w].hi
    x[w].phase = AT_TRIAL
    cut = real(1.0)
    if hi <= real(1.0) and m[0].rough == 1:  # the step ends where a mode does
        cut = hi
        x[w].phase = AT_SWITCH
        x[w].after = wp.min(x[w].after, now + hi * step)
        for r in range(rows):
            c.ahead[r, w] = horner(t, C, r, w, hi)
    after = x[w].after
    while ask.times[x[w].target] <= after:
        share = real(1.0)
        if ask.times[x[w].target] < after:
            share = (ask.times[x[w].target] - now) / step
        write(t, c, w, rows, x[w].target, share, C)
        x[w].target = x[w].target + 1
    size_after(t, ask, c, w)
    x[w].retry = 0
    for r in range(rows):
        c.y[r, w] = c.ahead[r, w]
        c.K[0, r, w] = c.K[t.result, r, w]
    normalize_quaternions(m, w, c.y, c.K)
    c.count[COUNT_ACCEPTED, w] = c.count[COUNT_ACCEPTED, w] + 1
    recorded = x[w].recorded
    if ask.keep == 1:
        c.marks[recorded, 0, w] = now
        c.marks[recorded, 1, w] = step
        c.marks[recorded, 2, w] = real(c.count[COUNT_REJECTED, w])
        c.marks[recorded, 3, w] = cut
        recorded = recorded + 1
        x[w].recorded = recorded
    x[w].stalled = x[w].stalled + 1
    if after - now > real(1.0e-13) * (real(1.0) + wp.abs(now)):
        x[w].stalled = 0
    x[w].now = after
    if after >= ask.pause or x[w].steps >= ask.most or recorded >= c.C.shape[0]:
        x[w].going = 0


@wp.func
def take_up(ask: Request, c: Course, w: int) -> None:
    """Go on from where the last launch ended."""
    x = c.walk
    x[w].now = c.now[w]
    x[w].h = c.size[w]
    x[w].phase = c.phase[w]
    x[w].target = c.count[COUNT_TARGET, w]
    x[w].hi = real(2.0)
    x[w].step = real(0.0)
    x[w].shape = 0
    x[w].steps = 0
    x[w].recorded = 0
    x[w].retry = 0
    x[w].stalled = 0
    x[w].theta = real(1.0)
    x[w].going = int(c.now[w] < ask.end and c.phase[w] != AT_FAILURE)


@wp.func
def store_walk(c: Course, w: int) -> None:
    """Leave what the next launch goes on from."""
    c.now[w] = c.walk[w].now
    c.size[w] = c.walk[w].h
    c.phase[w] = c.walk[w].phase
    c.count[COUNT_TARGET, w] = c.walk[w].target
    c.count[COUNT_RECORDED, w] = c.walk[w].recorded


def integrating(plain: bool) -> wp.Kernel:
    """The kernel that integrates: of plain trees, or of all there is; most scenes need not wait for the compile of the latter."""
    right_hand_side_of = plain_right_hand_side if plain else right_hand_side

    @wp.kernel(module="sharnir.ode" if plain else "sharnir.ode_rough")
    def integrate(m: wp.array(dtype=Motion), t: Tableau, ask: Request, c: Course) -> None:
        """Steps from c.y at c.now on; see `Request` for where a launch ends. The phase is FAILED where a step became too small.

        With friction or limits it goes SWITCH (modes that the state tells), STRIKE (after an impact), START (modes that the
        forces allow), then TRY, FINISH, LOOK (do they last through the step?) and, where they do not, SWITCH again.
        """
        w = wp.tid()
        rows = m[0].nq + m[0].nv + m[0].currents
        loops = m[0].closures.count > m[0].closures.springs.count
        x = c.walk
        take_up(ask, c, w)
        while x[w].going == 1:
            phase = x[w].phase
            if phase == AT_TRIAL:
                choose_step(m, ask, c, w)
            first, last = stages(t, phase, x[w].shape)
            C = c.C[x[w].recorded]
            for s in range(first, last):
                share = place_stage(m, t, c, w, s, phase, x[w].step, x[w].theta, C)
                if phase != AT_SWITCH:
                    right_hand_side_of(m, w, s, x[w].now + share * x[w].step, c.K)
                    if loops and phase == AT_FINISH and s == t.result:
                        read_back(m, w, c.ahead)
            unsettled = bool(False)
            g = real(0.0)
            if wp.static(not plain):
                if phase == AT_SWITCH:
                    reclassify(m, w, real(1.0e-7) * largest_speed(m, c, w) + NO_SPEED)
                    read_back(m, w, c.y)
                elif phase == AT_IMPACT:
                    speeds_after_impact(m, w)
                    if m[0].striking[w] == 0:
                        read_back(m, w, c.y)
                elif phase == AT_LOOK:
                    g = margin(m, w)
                elif phase == AT_BEGIN and m[0].rough == 1:
                    unsettled = correct_modes(m, w)
            accepted = bool(False)
            if phase == AT_TRIAL:
                after_try(t, ask, c, w, rows)
            elif phase == AT_FINISH:
                accepted = after_finish(m, t, c, w, rows, C)
            elif phase == AT_LOOK:
                accepted = after_look(c, w, g)
            else:
                after_modes(m, c, w, unsettled)
            if accepted:
                accept(m, t, ask, c, w, rows, C)
            if x[w].stalled > MOST_STALLED:
                x[w].phase = AT_FAILURE
                x[w].going = 0
        store_walk(c, w)

    return integrate


integrate_plain = integrating(True)
integrate_all = integrating(False)
