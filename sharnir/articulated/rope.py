"""Ropes in joint coordinates: a rope that hangs on a link is, eliminated towards it, one more inertia there (theory: ropes).

A rope's relation at its first end, impulse on the rope = Z (V − V₀) + p, is taken with the velocity V along the chord of the path
that the body's point takes in the step; with V = J q̇ + Δt a − ½Δt J̇ q̇ it is linear in the accelerations of the recursion. So
joints, what acts on them, loops and ropes are one solve; where a rope meets a body besides its first end there are ports
(`rope.ports`). Further passes, over vectors, close the ropes at the new pose, which coordinates give: joints are always closed.
"""

import warp as wp

from sharnir.articulated.closures import clear_push, respond, row_rate, solve_rows
from sharnir.articulated.data import Step
from sharnir.articulated.kernels import (
    PARTS,
    add_losses,
    again,
    begin_call,
    begin_laws,
    begin_velocities,
    drift,
    end_call,
    end_speeds,
    hurry,
    inertias,
    join_parts,
    note_acceleration,
    shift,
    solve,
    take_step,
    velocities,
)
from sharnir.guard import count_step
from sharnir.rope.data import RopeStep
from sharnir.rope.ends import pull_bodies
from sharnir.rope.passes import (
    ACCEPTED,
    GAIN,
    advance_ropes,
    bad_rope,
    begin_rope,
    commit_rope,
    count,
    factor,
    hold_ends,
    kinetic,
    lay_out,
    missed,
    missed_speeds,
    point_energy,
    ropes_inward,
    ropes_outward,
    scale_pulls,
    supply,
)
from sharnir.rope.ports import (
    ROUNDS,
    Ports,
    add_kept,
    clear_ports,
    port_columns,
    port_factor,
    port_speeds,
    pull_ports,
    push_unit,
    read_column,
    take_clamps,
)
from sharnir.rope.reel import REPAID, feed, pay_out, take_back, tear
from sharnir.spatial import matrix, rotated, turned
from sharnir.tree import link_pose
from sharnir.types import inline_less, mat33, real, vec3

inline_less("sharnir.articulated_rope")


# ---- bodies as ropes see them -----------------------------------------------------------------------------------------------


@wp.func
def place_ahead(s: wp.array(dtype=Step), w: int):
    """Poses at the end of the step: q ⊕ Δt q̇⁺ of links; what is driven moves on."""
    h = s[0].settings.part[w]
    for b in range(s[0].bodies.count):
        if s[0].rows.link_of[b] < 0:
            s[0].position[b, w] = s[0].work.position[b, w] + s[0].work.velocity[b, w] * h
            s[0].rotation[b, w] = turned(s[0].work.rotation[b, w], s[0].work.spin[b, w] * h)
    for i in range(s[0].tree.count):
        shift(s, i, w, s[0].new_q, s[0].new_v, h)
        link_pose(s[0].joints, s[0].tree, i, w, s[0].new_q, s[0].position, s[0].rotation)


@wp.func
def chords(s: wp.array(dtype=Step), r: wp.array(dtype=RopeStep), w: int):
    """Twists along the bodies' paths in the step, J q̇⁺ + ½Δt J̇ q̇."""
    half = real(0.5) * s[0].settings.part[w]
    drift(s, w)
    for b in range(s[0].bodies.count):
        if s[0].rows.link_of[b] < 0:
            r[0].body.v[b, w] = s[0].work.velocity[b, w]
            r[0].body.w[b, w] = s[0].work.spin[b, w]
    for i in range(s[0].tree.count):
        b = s[0].tree.body[i]
        base = s[0].tree.base[i]
        omega = r[0].body.w[base, w] - s[0].rows.a_a[base, w] * half
        v = r[0].body.v[base, w] - s[0].rows.a_l[base, w] * half + wp.cross(omega, s[0].work.arm[i, w])
        v0 = s[0].tree.row[i].v_start
        for at in range(v0, v0 + s[0].tree.row[i].v_size):
            v = v + s[0].work.S_l[at, w] * s[0].new_v[at, w]
            omega = omega + s[0].work.S_a[at, w] * s[0].new_v[at, w]
        r[0].body.v[b, w] = v + s[0].rows.a_l[b, w] * half
        r[0].body.w[b, w] = omega + s[0].rows.a_a[b, w] * half


@wp.func
def take_pulls(s: wp.array(dtype=Step), r: wp.array(dtype=RopeStep), w: int) -> real:
    """Forces of ropes on bodies; returns their work in the step, J."""
    kick = s[0].settings.kick[w]
    pull_bodies(r, w, s[0].pull_l, s[0].pull_a)
    work = real(0.0)
    for b in range(s[0].own):
        v = s[0].rope_v[b, w] + r[0].body.v[b, w]
        omega = s[0].rope_w[b, w] + r[0].body.w[b, w]
        work = work + real(0.5) * (wp.dot(s[0].pull_l[b, w], v) + wp.dot(s[0].pull_a[b, w], omega))
        s[0].pull_l[b, w] = s[0].pull_l[b, w] / kick
        s[0].pull_a[b, w] = s[0].pull_a[b, w] / kick
    return work


# ---- passes -----------------------------------------------------------------------------------------------------------------


@wp.func
def begin_ropes(s: wp.array(dtype=Step), r: wp.array(dtype=RopeStep), p: wp.array(dtype=Ports), w: int, attempt: int):
    """Ropes before the first pass, their bodies moved on at the present speeds: Z of all, and what they ask for."""
    for at in range(s[0].new_v.shape[0]):
        s[0].new_v[at, w] = s[0].state.qd[at, w]
    place_ahead(s, w)
    chords(s, r, w)
    for b in range(s[0].own):
        s[0].rope_v[b, w] = r[0].body.v[b, w]
        s[0].rope_w[b, w] = r[0].body.w[b, w]
        s[0].rope_A[b, w] = mat33(real(0.0))
        s[0].rope_B[b, w] = mat33(real(0.0))
        s[0].rope_D[b, w] = mat33(real(0.0))
        r[0].body.inertia[b, w] = rotated(matrix(s[0].work.rotation[b, w]), s[0].whole.inertia[b])
    hold_ends(r, w)
    for o in range(r[0].ropes.count):  # a rope on which another hangs first
        begin_rope(r, r[0].ropes.order[r[0].ropes.count - 1 - o], w, attempt)
    for k in range(r[0].ropes.count):
        if attempt == 2:
            missed_speeds(r, k, w, real(1.0))
        else:
            missed(r, k, w, attempt)
    take_clamps(r, p, w)
    factor(r, w)
    port_columns(r, p, w)
    ropes_inward(r, w)
    for b in range(s[0].own):
        s[0].rope_l[b, w] = r[0].body.p_l[b, w]
        s[0].rope_a[b, w] = r[0].body.p_a[b, w]


@wp.func
def keep_answer(s: wp.array(dtype=Step), w: int, more: bool):
    """The response at hand becomes the change of this pass, or is added to it."""
    add = real(0.0)
    if more:
        add = real(1.0)
    for i in range(s[0].tree.count):
        b = s[0].tree.body[i]
        s[0].work.change_l[b, w] = s[0].work.change_l[b, w] * add + s[0].rows.a_l[b, w]
        s[0].work.change_a[b, w] = s[0].work.change_a[b, w] * add + s[0].rows.a_a[b, w]
        v0 = s[0].tree.row[i].v_start
        for at in range(v0, v0 + s[0].tree.row[i].v_size):
            s[0].work.change[at, w] = s[0].work.change[at, w] * add + s[0].rows.y[at, w]


@wp.func
def answer(s: wp.array(dtype=Step), r: wp.array(dtype=RopeStep), w: int, keeps: real):
    """Changes of twists and speeds, in work.change, by impulses −p on bodies: laws as linear, loops closed.

    What loops carry then is kept in full (1), or not (0).
    """
    clear_push(s[0].joints, s[0].tree, s[0].rows, w)
    for i in range(s[0].tree.count):
        b = s[0].tree.body[i]
        if b < s[0].own:
            s[0].rows.f_l[i, w] = -r[0].body.p_l[b, w]
            s[0].rows.f_a[i, w] = -r[0].body.p_a[b, w]
    respond(s[0].joints, s[0].tree, s[0].rows, s[0].work, w)
    keep_answer(s, w, False)
    rows = s[0].closures.count
    if rows > 0:
        for row in range(rows):
            off = row_rate(s[0].closures, s[0].rows, row, w, s[0].work.change_l, s[0].work.change_a, s[0].work.change)
            s[0].rows.rhs[row, w] = -off
        solve_rows(s[0].joints, s[0].tree, s[0].closures, s[0].rows, s[0].work, w, rows)
        keep_answer(s, w, True)
        for row in range(rows):
            force = s[0].rows.force[row, w] / s[0].settings.kick[w]
            s[0].row_force[row, w] = s[0].row_force[row, w] + keeps * force


@wp.func
def solve_all(s: wp.array(dtype=Step), r: wp.array(dtype=RopeStep), w: int):
    """Joints, what acts on them, loops and ropes on first ends at once; changes of the twists from those foreseen."""
    s[0].roped[w] = 1
    solve(s, w)
    s[0].roped[w] = 0
    end_speeds(s, w)
    chords(s, r, w)
    for i in range(s[0].tree.count):
        b = s[0].tree.body[i]
        if b < s[0].own:
            s[0].work.change_l[b, w] = r[0].body.v[b, w] - s[0].rope_v[b, w]
            s[0].work.change_a[b, w] = r[0].body.w[b, w] - s[0].rope_w[b, w]
    for row in range(s[0].closures.count):
        s[0].row_force[row, w] = s[0].rows.force[row, w]


@wp.func
def port_matrix(s: wp.array(dtype=Step), r: wp.array(dtype=RopeStep), p: wp.array(dtype=Ports), w: int):
    """The system of the ports, for laws as they are linear now."""
    for column in range(3 * p[0].count):
        push_unit(r, p, column, w)
        answer(s, r, w, real(0.0))
        read_column(r, p, column, w)
    port_factor(p, w)


@wp.func
def couple(s: wp.array(dtype=Step), r: wp.array(dtype=RopeStep), p: wp.array(dtype=Ports), w: int):
    """Ports on top of a solve, exact together with it: all is solved again under their pull, until no law is upset by it."""
    clear_ports(p, w)
    passes = s[0].done[w]
    for turn in range(int(ROUNDS)):
        port_speeds(r, p, w)
        if turn == 0 or s[0].done[w] > 1:
            port_matrix(s, r, p, w)
        pull_ports(r, p, w)
        for b in range(s[0].own):
            s[0].rope_l[b, w] = s[0].rope_l[b, w] + r[0].body.p_l[b, w]
            s[0].rope_a[b, w] = s[0].rope_a[b, w] + r[0].body.p_a[b, w]
        inertias(s, w)
        solve_all(s, r, w)
        passes = wp.max(passes, s[0].done[w])
        if s[0].done[w] == 1:
            break
    s[0].done[w] = passes


@wp.func
def take_changes(s: wp.array(dtype=Step), r: wp.array(dtype=RopeStep), w: int):
    """Speeds, twists and accelerations after a pass."""
    rate = real(1.0) / s[0].settings.kick[w]
    for i in range(s[0].tree.count):
        b = s[0].tree.body[i]
        dv = s[0].work.change_l[b, w]
        dw = s[0].work.change_a[b, w]
        r[0].body.v[b, w] = r[0].body.v[b, w] + dv
        r[0].body.w[b, w] = r[0].body.w[b, w] + dw
        s[0].work.acceleration[b, w] = s[0].work.acceleration[b, w] + dv * rate
        s[0].work.turning[b, w] = s[0].work.turning[b, w] + dw * rate
        v0 = s[0].tree.row[i].v_start
        for at in range(v0, v0 + s[0].tree.row[i].v_size):
            y = s[0].work.change[at, w]
            s[0].qdd[at, w] = s[0].qdd[at, w] + y * rate
            s[0].new_v[at, w] = s[0].new_v[at, w] + y
            if s[0].linear.acts[i, w] == 1:
                s[0].laws.end[at, w] = s[0].laws.end[at, w] + y


@wp.func
def first_pass(s: wp.array(dtype=Step), r: wp.array(dtype=RopeStep), p: wp.array(dtype=Ports), w: int):
    """All at once, then the new pose."""
    if s[0].acting == 1:
        begin_laws(s, w)
    solve_all(s, r, w)
    if p[0].count > 0:
        couple(s, r, p, w)
    ropes_outward(r, w)
    place_ahead(s, w)
    advance_ropes(r, w)


@wp.func
def next_pass(s: wp.array(dtype=Step), r: wp.array(dtype=RopeStep), p: wp.array(dtype=Ports), w: int):
    """A pass over vectors that closes ropes, and the new pose."""
    ropes_inward(r, w)
    answer(s, r, w, real(1.0))
    take_changes(s, r, w)
    if p[0].count > 0:
        clear_ports(p, w)
        port_speeds(r, p, w)
        pull_ports(r, p, w)
        answer(s, r, w, real(1.0))
        take_changes(s, r, w)
        add_kept(r, p, w)
    ropes_outward(r, w)
    place_ahead(s, w)
    advance_ropes(r, w)


@wp.func
def one_step(s: wp.array(dtype=Step), r: wp.array(dtype=RopeStep), p: wp.array(dtype=Ports), w: int, attempt: int) -> bool:
    """The new speeds of a step, or a part of it; returns whether its passes closed the ropes, without a gain of energy."""
    velocities(s, w)
    begin_ropes(s, r, p, w, attempt)
    before = kinetic(r, w)
    threads = point_energy(r, w)
    first_pass(s, r, p, w)
    if attempt == 2:  # at velocity level, which takes energy whatever happens
        for o in range(r[0].ropes.count):
            lay_out(r, r[0].ropes.order[r[0].ropes.count - 1 - o], w)
        r[0].residual[w] = real(0.0)
        take_pulls(s, r, w)
        return True
    passes = int(0)
    slack = real(0.0)
    while True:
        slack = real(0.0)
        for k in range(r[0].ropes.count):
            slack = wp.max(slack, missed(r, k, w, attempt))
        if passes >= r[0].settings.iterations[0] or slack <= r[0].settings.tolerance[0]:
            break
        next_pass(s, r, p, w)
        passes = passes + 1
    for row in range(s[0].closures.count):
        s[0].rows.force[row, w] = s[0].row_force[row, w]
    r[0].done[w] = passes
    r[0].residual[w] = slack
    gained = take_pulls(s, r, w) + point_energy(r, w) - threads
    return slack <= ACCEPTED and gained <= (GAIN - real(1.0)) * before + supply(r, w)


@wp.func
def keep(s: wp.array(dtype=Step), r: wp.array(dtype=RopeStep), w: int, over: bool) -> bool:
    """The new state becomes the state, if it is finite."""
    bad = end_speeds(s, w)
    if bad == 0:
        bad = bad_rope(r, w)
    if not take_step(s, w, bad, True, over):
        return False
    dt = s[0].settings.dt[0]
    for k in range(r[0].ropes.count):
        tear(r, k, w, dt)
        commit_rope(r, k, w)
        feed(r, k, w)
        r[0].state.owed[k, w] = r[0].state.owed[k, w] * (real(1.0) - REPAID * s[0].settings.part[w] / dt)
    return True


@wp.func
def whole_step(s: wp.array(dtype=Step), r: wp.array(dtype=RopeStep), p: wp.array(dtype=Ports), w: int, begins: bool) -> bool:
    """One step; returns whether it could be made.

    Where passes do not close the ropes it is made again with the tension's direction fully implicit, then in halves, quarters, …,
    sixteenths, and in the end at velocity level.
    """
    dt = s[0].settings.dt[0]
    level = int(0)
    left = int(PARTS)
    attempt = int(0)
    damped = int(0)
    velocity = int(0)
    made = int(1)
    r[0].sudden[w] = 0
    while left > 0:
        size = wp.max(PARTS >> level, 1)
        share = real(size) / real(PARTS)
        if made == 1:
            note_acceleration(s, w)
        if made == 0 or s[0].settings.part[w] != dt * share:
            again(s, w, dt * share)
        scale = s[0].settings.kick[w] / dt
        scale_pulls(r, w, share)
        for k in range(r[0].ropes.count):
            pay_out(r, k, w, dt * share)
        made = int(one_step(s, r, p, w, attempt))
        s[0].as_begun[w] = 0
        scale_pulls(r, w, real(1.0) / scale)
        if made == 1:
            if left == PARTS:
                begin_velocities(s, w)
            left = left - size
            if not keep(s, r, w, begins and left == 0):
                s[0].settings.part[w] = dt
                return False
            if level > 0:
                add_losses(s, w, left + size == PARTS)
            damped = wp.max(damped, int(attempt == 1))
            velocity = wp.max(velocity, int(attempt == 2))
            attempt = wp.min(attempt, 1)
        else:
            take_back(r, w)
            if size == 1:
                attempt = 2
                hurry(s, w)
            else:
                if attempt > 0:
                    level = level + 1
                attempt = 1
    if level > 0:
        join_parts(s, w)
    count(r, w, wp.max(r[0].sudden[w] - damped - velocity, 0), int(level > 0), damped, velocity)
    for i in range(r[0].control.force_once.shape[0]):
        r[0].control.force_once[i, w] = vec3(real(0.0))
    return True


@wp.kernel(module="sharnir.articulated_rope")
def articulated_rope_steps(
    s: wp.array(dtype=Step), r: wp.array(dtype=RopeStep), p: wp.array(dtype=Ports), first: int, n: wp.array(dtype=wp.int32)
):
    """n steps of a world; where one would not be finite, the world is marked and its state stays."""
    w = first + wp.tid()
    if s[0].state.failed[w] != 0:
        return
    for g in range(r[0].grades.shape[0]):
        r[0].grades[g, w] = 0
    begin_call(s, w)
    for h in range(n[0]):
        if not whole_step(s, r, p, w, h == 0):
            break
        count_step(s[0].tally, w, s[0].residual[w], s[0].settings.tolerance[0], 1)
    end_call(s, w)
