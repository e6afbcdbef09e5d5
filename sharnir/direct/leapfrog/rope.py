"""Ropes in the direct pass: a rope that hangs on a link is, eliminated towards it, one more inertia there (theory: ropes).

The relation of its first end, impulse on the rope = Z V + p₀, adds Z to the link's M and −p₀ to its Q, so bodies, joints, what
acts on them and ropes are one solve. In further passes the gaps of the joints and of the rope's rows are closed together, over
vectors. Where a rope meets a body besides its first end there are ports (`rope.ports`), with the tree's exact response.
"""

import warp as wp

from sharnir.direct.data import ALL, DAMPED, DIVIDED, RELATIVE, VELOCITY, Direct, Roped
from sharnir.direct.hung import push_links
from sharnir.direct.leapfrog.closing import STALLED, close_rows, move_all, place_outward, respond_closing
from sharnir.direct.leapfrog.finish import bad_body, commit, repair
from sharnir.direct.leapfrog.place import stiffen
from sharnir.direct.leapfrog.step import GAIN, begin, begin_anew, begin_call, count, count_once, show, solve, supply
from sharnir.direct.touched import any_switched, untouched
from sharnir.guard import count_step
from sharnir.laws.drives import set_drives
from sharnir.rope.data import RopeStep
from sharnir.rope.ends import pull_bodies
from sharnir.rope.kernels import begin_read, drive_ends, keep_ropes, ropes_untouched, show_ropes, spend_pushes, take_velocities
from sharnir.rope.passes import (
    ACCEPTED,
    JUDGED,
    MOST_PARTS,
    advance_ropes,
    bad_rope,
    factor,
    judge_step,
    kinetic,
    lay_out,
    missed,
    missed_speeds,
    ropes_inward,
    ropes_outward,
    scale_pulls,
)
from sharnir.rope.passes import supply as rope_supply
from sharnir.rope.ports import (
    PORT_ROUNDS,
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
from sharnir.rope.predict import begin_rope, hold_ends
from sharnir.rope.reel import pay_out, undo_reeling
from sharnir.rope.slack import take_slack
from sharnir.spatial import matrix, rotated
from sharnir.stepping import IMPLICIT, VELOCITY_LEVEL, dividing, soften
from sharnir.types import inline_less, mat33, real, vec3

inline_less("sharnir.direct_rope")


# ---- ropes on the ground of the tree ----------------------------------------------------------------------------------------


@wp.func
def begin_ropes(s: wp.array(dtype=Direct), r: wp.array(dtype=RopeStep), w: int, attempt: int):
    """Ropes before the first pass, their bodies as external forces leave them."""
    for i in range(s[0].tree.count):
        b = s[0].tree.body[i]
        s[0].work.acceleration[b, w] = s[0].work.velocity[b, w]
        s[0].work.turning[b, w] = s[0].work.omega[b, w]
    move_all(s, w, ALL, 0)
    for b in range(s[0].bodies.count):
        s[0].rope_A[b, w] = mat33(real(0.0))
        s[0].rope_B[b, w] = mat33(real(0.0))
        s[0].rope_D[b, w] = mat33(real(0.0))
    for b in range(s[0].own):
        r[0].body.inertia[b, w] = rotated(matrix(s[0].work.rotation[b, w]), s[0].whole.inertia[b, w])
    hold_ends(r, w)
    for o in range(r[0].ropes.count):  # a rope on which another hangs first
        begin_rope(r, r[0].ropes.order[r[0].ropes.count - 1 - o], w, attempt)


@wp.func
def factor_ropes(r: wp.array(dtype=RopeStep), p: wp.array(dtype=Ports), w: int):
    """Z of all ropes, added to the bodies, and what ports do to them."""
    take_clamps(r, p, w)
    factor(r, w, True)
    port_columns(r, p, w)


@wp.func
def first_impulse(s: wp.array(dtype=Direct), r: wp.array(dtype=RopeStep), w: int):
    """Add what ropes give to the momenta of bodies in the first pass, whose unknown is the velocity itself: Z V − p₀."""
    ropes_inward(r, w)
    for b in range(s[0].bodies.count):
        v = s[0].work.acceleration[b, w]
        omega = s[0].work.turning[b, w]
        B = s[0].rope_B[b, w]
        s[0].rope_l[b, w] = s[0].rope_A[b, w] * v + B * omega
        s[0].rope_a[b, w] = v * B + s[0].rope_D[b, w] * omega
    for b in range(s[0].own):
        s[0].rope_l[b, w] = s[0].rope_l[b, w] - r[0].body.p_l[b, w]
        s[0].rope_a[b, w] = s[0].rope_a[b, w] - r[0].body.p_a[b, w]


@wp.func
def take_pulls(s: wp.array(dtype=Direct), r: wp.array(dtype=RopeStep), w: int):
    """The impulses of ropes on bodies, now that they are known."""
    for b in range(s[0].bodies.count):
        s[0].rope_A[b, w] = mat33(real(0.0))
        s[0].rope_B[b, w] = mat33(real(0.0))
        s[0].rope_D[b, w] = mat33(real(0.0))
        s[0].rope_l[b, w] = vec3(real(0.0))
        s[0].rope_a[b, w] = vec3(real(0.0))
    pull_bodies(r, w, s[0].rope_l, s[0].rope_a)


# ---- ports ------------------------------------------------------------------------------------------------------------------


@wp.func
def respond(s: wp.array(dtype=Direct), r: wp.array(dtype=RopeStep), w: int, level: int):
    """Changes of the twists by impulses −p on bodies alone, into work.change: joints and rows beside the tree hold, gaps stay."""
    for i in range(s[0].tree.count):
        s[0].work.close_l[i, w] = vec3(real(0.0))
        s[0].work.close_a[i, w] = vec3(real(0.0))
    for row in range(s[0].closures.count):
        s[0].rows.gap[row, w] = real(0.0)
    push_links(s, r, w)
    respond_closing(s, w, ALL, True)
    if s[0].closures.count > 0:
        close_rows(s, w, level)


@wp.func
def port_matrix(s: wp.array(dtype=Direct), r: wp.array(dtype=RopeStep), p: wp.array(dtype=Ports), w: int):
    """The system of the ports, for laws as they are linear now."""
    for column in range(3 * p[0].count):
        push_unit(r, p, column, w)
        respond(s, r, w, 0)
        read_column(r, p, column, w)
    port_factor(p, w)


@wp.func
def take_changes(s: wp.array(dtype=Direct), w: int):
    """Note by how much a solve changed the twists."""
    for i in range(s[0].tree.count):
        b = s[0].tree.body[i]
        s[0].work.change_l[b, w] = s[0].work.acceleration[b, w] - s[0].work.velocity[b, w]
        s[0].work.change_a[b, w] = s[0].work.turning[b, w] - s[0].work.omega[b, w]


@wp.func
def couple(s: wp.array(dtype=Direct), r: wp.array(dtype=RopeStep), p: wp.array(dtype=Ports), w: int, chord: real):
    """Ports on top of a solve, exact together with it: laws that their pull upsets are solved again under it, and so on."""
    clear_ports(p, w)
    passes = s[0].done[w]
    rounds = int(0)
    while True:
        port_speeds(r, p, w)
        if rounds == 0 or s[0].done[w] > 1:
            port_matrix(s, r, p, w)
        pull_ports(r, p, w)
        if s[0].acting == 0:
            respond(s, r, w, 1)
            add_kept(r, p, w)
            break
        for b in range(s[0].own):
            s[0].rope_l[b, w] = s[0].rope_l[b, w] - r[0].body.p_l[b, w]
            s[0].rope_a[b, w] = s[0].rope_a[b, w] - r[0].body.p_a[b, w]
        solve(s, w, ALL, chord)
        take_changes(s, w)
        passes = wp.max(passes, s[0].done[w])
        rounds = rounds + 1
        if s[0].done[w] == 1 or rounds == PORT_ROUNDS:  # laws agreed at once: all was linear
            break
    s[0].done[w] = passes
    for i in range(s[0].tree.count):
        b = s[0].tree.body[i]
        s[0].work.acceleration[b, w] = s[0].work.velocity[b, w] + s[0].work.change_l[b, w]
        s[0].work.turning[b, w] = s[0].work.omega[b, w] + s[0].work.change_a[b, w]


# ---- a step -----------------------------------------------------------------------------------------------------------------


@wp.func
def solve_all(s: wp.array(dtype=Direct), r: wp.array(dtype=RopeStep), p: wp.array(dtype=Ports), w: int, chord: real):
    """Bodies, joints, laws and ropes at once: their new velocities."""
    first_impulse(s, r, w)
    solve(s, w, ALL, chord)
    take_changes(s, w)
    if p[0].count > 0:
        couple(s, r, p, w, chord)
    ropes_outward(r, w)


@wp.func
def first_pass(
    s: wp.array(dtype=Direct), r: wp.array(dtype=RopeStep), p: wp.array(dtype=Ports), w: int, chord: real, attempt: int
):
    """The first solve, from where external forces leave bodies and ropes, and the poses after it.

    Returns how far joints are open then, and the kinetic energy before, J.
    """
    begin_ropes(s, r, w, attempt)
    before = kinetic(r, w)
    for k in range(r[0].ropes.count):
        if attempt == 2:
            missed_speeds(r, k, w, real(1.0))
        else:
            missed(r, k, w, attempt)
    factor_ropes(r, p, w)
    solve_all(s, r, p, w, chord)
    off = move_all(s, w, ALL, 0)
    if attempt == 2:
        place_outward(s, w)
    advance_ropes(r, w)
    return off, before


@wp.func
def close_step(
    s: wp.array(dtype=Direct), r: wp.array(dtype=RopeStep), p: wp.array(dtype=Ports), w: int, chord: real, attempt: int
) -> bool:
    """Passes of a step, elements of ropes slack and taut as they are taken to be; returns whether joints and ropes are closed."""
    begin(s, w, ALL, chord)
    if s[0].tight[w] == 1:
        stiffen(s, w, False)
        s[0].grades[RELATIVE, w] = s[0].grades[RELATIVE, w] + s[0].tight[w]
    off, before = first_pass(s, r, p, w, chord, attempt)
    if attempt == 2:  # at velocity level, which takes energy whatever happens
        for o in range(r[0].ropes.count):
            lay_out(r, r[0].ropes.order[r[0].ropes.count - 1 - o], w)
        s[0].state.open[w] = real(0.0)
        return True
    passes = int(0)
    slack = real(0.0)
    while True:
        slack = real(0.0)
        for k in range(r[0].ropes.count):
            slack = wp.max(slack, missed(r, k, w, attempt))
        if passes >= r[0].settings.iterations[0]:
            break
        if slack <= r[0].settings.tolerance[0] and off <= s[0].settings.tolerance[1]:
            break
        ropes_inward(r, w)
        push_links(s, r, w)
        respond_closing(s, w, ALL, True)
        if s[0].closures.count > 0:
            close_rows(s, w, 1)
        if p[0].count > 0:
            clear_ports(p, w)
            port_speeds(r, p, w)
            pull_ports(r, p, w)
            respond(s, r, w, 1)
            add_kept(r, p, w)
        ropes_outward(r, w)
        off = move_all(s, w, ALL, 1)
        advance_ropes(r, w)
        passes = passes + 1
    r[0].done[w] = passes
    r[0].residual[w] = slack
    s[0].state.open[w] = off
    closed = slack <= ACCEPTED and off <= wp.max(STALLED, s[0].settings.tolerance[1])
    # false of what is not a number, which the largest gap passes over
    return closed and kinetic(r, w) <= GAIN * before + rope_supply(r, w, real(1.0)) + supply(s, w, ALL)


@wp.func
def start_step(x: wp.array(dtype=Roped), w: int):
    """Nothing of the step is counted yet."""
    s = x[0].step
    s[0].passes[w] = 0
    s[0].counted[w] = count(s, w)


@wp.func
def make_part(x: wp.array(dtype=Roped), w: int, scope: int, share: real, way: int) -> bool:
    """A part of a step; returns whether its passes closed joints and ropes."""
    s = x[0].step
    r = x[0].rope
    p = x[0].ports
    dt = s[0].settings.dt[0]
    s[0].drift[w] = dt * share
    take_slack(r, w)
    s[0].kick[w] = s[0].state.stagger[w] + real(0.5) * s[0].drift[w]
    chord = real(-0.5) * s[0].drift[w]
    if way == VELOCITY_LEVEL:
        chord = real(0.0)
    scale_pulls(r, w, s[0].drift[w] / dt)
    for k in range(r[0].ropes.count):
        pay_out(r, k, w, s[0].drift[w])
    closed = bool(False)
    for judged in range(JUDGED):
        closed = close_step(s, r, p, w, chord, way)
        s[0].passes[w] = wp.max(s[0].passes[w], s[0].done[w])
        if judge_step(r, w, judged < JUDGED / 2) == 0:
            return closed
    return closed


@wp.func
def keep_part(x: wp.array(dtype=Roped), w: int, scope: int, part: int) -> bool:
    """The new state becomes the state, if it is finite."""
    s = x[0].step
    r = x[0].rope
    dt = s[0].settings.dt[0]
    if s[0].acting == 1:
        repair(s, w, ALL)
    bad = bad_body(s, w)
    if bad == 0:
        bad = bad_rope(r, w)
    s[0].state.failed[w] = bad
    if bad != 0:
        return False
    take_pulls(s, r, w)
    commit(s, w, ALL)
    scale_pulls(r, w, dt / s[0].kick[w])
    keep_ropes(r, w, s[0].drift[w], dt)
    return True


@wp.func
def ease_step(x: wp.array(dtype=Roped), w: int, scope: int, size: int, way: int):
    """After a miss: the tension's direction fully implicit, then smaller parts, in the end at velocity level."""
    s = x[0].step
    r = x[0].rope
    scale_pulls(r, w, s[0].settings.dt[0] / s[0].kick[w])
    undo_reeling(r, w)
    return soften(size, way)


@wp.func
def end_step(x: wp.array(dtype=Roped), w: int, parts: int, ways: int):
    """Count how the step was made, and the forces of one step as spent."""
    s = x[0].step
    r = x[0].rope
    s[0].parts[w] = parts
    s[0].grades[DIVIDED, w] = s[0].grades[DIVIDED, w] + int(parts > 1)
    if ways >= 1 << VELOCITY_LEVEL:
        s[0].grades[VELOCITY, w] = s[0].grades[VELOCITY, w] + 1
    elif ways >= 1 << IMPLICIT:
        s[0].grades[DAMPED, w] = s[0].grades[DAMPED, w] + 1
    s[0].done[w] = s[0].passes[w]  # the cap that leads to the same step
    count_once(s, w, s[0].counted[w])
    spend_pushes(r, w)


whole_step = dividing("roped_leap", int(MOST_PARTS), start_step, make_part, keep_part, ease_step, end_step)


# ---- full steps and half steps ----------------------------------------------------------------------------------------------


@wp.func
def resume_ropes(s: wp.array(dtype=Direct), r: wp.array(dtype=RopeStep), now: wp.array(dtype=RopeStep), w: int):
    """Velocities at the half step before the pose; where a user changed something, those of the pose and half a kick to come."""
    begin_call(s, w)
    if not untouched(s, w) or any_switched(s, w) or not ropes_untouched(now, w):
        begin_anew(s, w)
        take_velocities(r, now, w)


@wp.func
def read_pose(
    s: wp.array(dtype=Direct), r: wp.array(dtype=RopeStep), now: wp.array(dtype=RopeStep), p: wp.array(dtype=Ports), w: int
):
    """Bring velocities and reactions to the pose for the caller to read, by half a kick with rows that do not move."""
    s[0].kick[w] = s[0].state.stagger[w]
    s[0].drift[w] = s[0].settings.dt[0]
    passes = s[0].done[w]
    off = s[0].residual[w]
    begin_read(r, now, w)
    take_slack(r, w)
    begin(s, w, ALL, real(0.0))
    begin_ropes(s, r, w, 0)
    for k in range(r[0].ropes.count):
        drive_ends(r, k, w)
        missed_speeds(r, k, w, real(0.0))
    factor_ropes(r, p, w)
    solve_all(s, r, p, w, real(0.0))
    s[0].done[w] = passes
    s[0].residual[w] = off
    take_pulls(s, r, w)
    show(s, w, ALL)
    show_ropes(r, now, w)


@wp.kernel(module="sharnir.direct_rope")
def direct_rope_steps(x: wp.array(dtype=Roped), first: int, n: wp.array(dtype=wp.int32)):
    """n steps of a world; where one would not be finite, the world is marked and its state stays."""
    w = first + wp.tid()
    s = x[0].step
    if s[0].state.failed[w] != 0:
        return
    resume_ropes(s, x[0].rope, x[0].now, w)
    for _step in range(n[w]):
        if s[0].state.failed[w] != 0:
            break
        if s[0].drives.count > 0:
            set_drives(s, w, s[0].settings.dt[0], s[0].state.velocity, s[0].state.spin)
        whole_step(x, w, ALL)
        if s[0].state.failed[w] == 0:
            count_step(s[0].tally, w, s[0].residual[w], s[0].settings.tolerance[0], 1)
    if s[0].state.failed[w] == 0:
        read_pose(s, x[0].other, x[0].now, x[0].ports, w)
