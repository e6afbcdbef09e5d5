"""The direct pass: all joints of a tree solved at once, exactly, in maximal coordinates (theory: direct pass).

The recursion of `tree` with impulses in place of forces: its "acceleration" of a body is its new velocity, its force the
momentum M V after external forces, a′ what the closing of the joint asks for. Loops are cut as in `tree.hang`, the halves
of a body move as one. One kernel makes whole steps, a thread a world:

    V⁺ = V + M⁻¹(F Δt + Jᵀp),   J V⁺ = −½Δt γ or, closed at position level, G(X ⊕ Δt V⁺) = 0

Velocities stand at half steps, poses at full ones, so the step is symmetric: second order, no drift of the energy. It begins with
half a kick from velocities that belong to the pose, and what a caller reads is brought to the pose by half a kick that is not
kept. A caller who changed the state is met by beginning anew.
"""

from typing import Any

import warp as wp

from sharnir.direct.balls import FREE, NONE, settle_ball
from sharnir.direct.data import DAMPED, DIVIDED, RELATIVE, VELOCITY, Direct
from sharnir.direct.gaps import gap_size
from sharnir.direct.leapfrog.closing import (
    close,
    close_rows,
    constrain_rows,
    ease_rows,
    halves_apart,
    move_all,
    place_outward,
    respond_closing,
    row_gaps,
)
from sharnir.direct.leapfrog.finish import bad_body, collect, commit, repair
from sharnir.direct.leapfrog.links import inward, outward, relinearise, soften_links, start_link
from sharnir.direct.leapfrog.place import prepare, stiffen, take_others
from sharnir.direct.touched import any_switched, pushed, untouched, was_pushed
from sharnir.guard import count_step
from sharnir.joint_geometry import joint_gap
from sharnir.kinematics import pose_at
from sharnir.laws.drives import set_drives
from sharnir.laws.linear import ALL_AT_ONCE, solve_one, solve_several
from sharnir.laws.prepare import INFINITE, motor_current
from sharnir.solver import GRADES
from sharnir.spatial import matrix, some
from sharnir.stepping import dividing
from sharnir.tree.data import natural
from sharnir.types import EPSILON, inline_less, mat33, mat66, real, vec3, vec6

MODULES = ("sharnir.direct_chain", "sharnir.direct_tree", "sharnir.direct")
for name in MODULES[:2]:
    inline_less(name)
inline_less(MODULES[2], 150)  # a quarter less to compile; steps take a twentieth longer

TORN = wp.constant(
    real(max(1.0e-7, 1000.0 * EPSILON))
)  # of a gap: a larger one at the start of a step was not made by the step before
GAIN = wp.constant(real(1.1))  # largest ratio by which closing at the end of a step may raise the kinetic energy
REOPENED = wp.constant(real(max(1.0e-5, 1.0e5 * EPSILON)))  # what displacements that converge slowly may leave
# part of the kinetic energy: displacements that would take more are left to velocities; of trees, and where loops are closed
BENT, BENT_LOOPS = wp.constant(real(1.0e-4)), wp.constant(real(1.0e-7))
PARTS = wp.constant(8)  # substeps of a divided step


# ---- a step -----------------------------------------------------------------------------------------------------------------


@wp.func
def begin(s: wp.array(dtype=Direct), w: int, scope: int, chord: real):
    """Everything before the pass."""
    take_others(s, w)
    prepare(s, w, scope, chord)
    if scope > 1 and s[0].acting == 1:
        for i in range(s[0].tree.count):
            start_link(s, i, w, chord)


@wp.func
def push_axis(s: wp.array(dtype=Direct), i: int, w: int, x: int):
    """An impulse on an axis of a link's joint: on the link, and reversed on its base. Nothing else is asked for."""
    base = s[0].tree.row[i].base_link
    d = vec3(real(0.0))
    n = vec3(real(0.0))
    if s[0].work.kind[i, w] == NONE:
        d = s[0].work.S_l[s[0].tree.row[i].v_start + x, w]
        n = s[0].work.S_a[s[0].tree.row[i].v_start + x, w]
        # S at the link's centre holds the axis at the joint: (d + n × out, n); an impulse there is (d, n + d × out)
        d = d - wp.cross(n, s[0].work.out[i, w])
    else:
        n[x] = real(1.0)
    for k in range(s[0].tree.count):
        s[0].work.close_l[k, w] = vec3(real(0.0))
        s[0].work.close_a[k, w] = vec3(real(0.0))
        s[0].work.Q_l[k, w] = vec3(real(0.0))
        s[0].work.Q_a[k, w] = vec3(real(0.0))
    for r in range(s[0].closures.count):
        s[0].rows.gap[r, w] = real(0.0)
    out = s[0].work.out[i, w]
    s[0].work.Q_l[i, w] = d
    s[0].work.Q_a[i, w] = n + wp.cross(d, out)
    if base >= 0:
        s[0].work.Q_l[base, w] = s[0].work.Q_l[base, w] - d
        s[0].work.Q_a[base, w] = s[0].work.Q_a[base, w] - n - wp.cross(s[0].work.arm[i, w] - out, d)


@wp.func
def settle_laws(s: wp.array(dtype=Direct), w: int, scope: int, i: int, chord: real):
    """The laws of one link exactly, where its base and all else yield, as linear: joints that upset each other come to an end."""
    j = natural(s[0].tree.row[i].joint)
    n = s[0].tree.row[i].v_size
    v0 = natural(s[0].tree.row[i].v_start)
    ball = s[0].work.kind[i, w] != NONE
    if ball:
        s[0].work.kind[i, w] = FREE
    else:
        s[0].linear.locks[i, w] = 0
        s[0].linear.coupled[i, w] = mat66()
        for at in range(v0, v0 + n):
            s[0].linear.resist[at, w] = real(0.0)
            s[0].linear.push[at, w] = real(0.0)
            s[0].slid[at, w] = real(0.0)
    inward(s, w, scope)
    outward(s, w, scope, False)
    if s[0].closures.count > 0:
        constrain_rows(s, w, chord)
        outward(s, w, scope, False)
    u = vec6()
    A = mat66()
    body = s[0].tree.row[i].body
    base = s[0].tree.row[i].base
    rel = s[0].work.turning[body, w] - s[0].work.turning[base, w]
    for x in range(n):
        if ball:
            u[x] = rel[x]
        else:
            u[x] = s[0].speed[v0 + x, w]
    for x in range(n):
        push_axis(s, i, w, x)
        respond_closing(s, w, scope, True)
        if s[0].closures.count > 0:
            close_rows(s, w, 0)
        turn = s[0].work.change_a[body, w] - s[0].work.change_a[base, w]
        for y in range(n):
            if ball:
                A[y, x] = turn[y]
            else:
                A[y, x] = s[0].work.change[v0 + y, w]
                if s[0].closures.count > 0:
                    A[y, x] = A[y, x] + s[0].rows.y[v0 + y, w]
    if ball:
        M = mat33(A[0, 0], A[0, 1], A[0, 2], A[1, 0], A[1, 1], A[1, 2], A[2, 0], A[2, 1], A[2, 2])
        settle_ball(s, i, w, vec3(u[0], u[1], u[2]), M)
    else:
        if n == 1:
            solve_one(s, v0, w, u[0], A[0, 0], u[0], real(1.0), False)
        else:
            solve_several(s, j, w, u, A, u, real(1.0))
        relinearise(s, i, w)


@wp.func
def solve(s: wp.array(dtype=Direct), w: int, scope: int, chord: real):
    """Passes until laws and their linearisations agree: new velocities in work.acceleration and work.turning."""
    passes = int(0)
    off = real(0.0)
    again = int(1)
    while again == 1:
        inward(s, w, scope)
        if scope > 1 and passes == 0 and s[0].acting == 1:
            if soften_links(s, w) == 1:
                inward(s, w, scope)
        if scope > 1 and s[0].closures.count > 0:
            outward(s, w, scope, False)
            constrain_rows(s, w, chord)
        off = outward(s, w, scope, True)
        passes = passes + 1
        again = 0
        if off > s[0].settings.tolerance[0] and passes < s[0].settings.iterations[0]:
            again = 1
            for i in range(s[0].tree.count):
                if s[0].mismatch[i, w] > s[0].settings.tolerance[0]:
                    if scope > 1 and passes > ALL_AT_ONCE:
                        settle_laws(s, w, scope, i, chord)
                        break  # one at a time
                    relinearise(s, i, w)
    s[0].done[w] = passes
    s[0].residual[w] = off


@wp.func
def supply(s: wp.array(dtype=Direct), w: int, scope: int) -> real:
    """Generous bound of twice the energy that laws, a user's forces on axes and driven bodies may bring in a step, J."""
    for n in range(s[0].other_count):
        if some(s[0].work.velocity[s[0].others[n], w]) or some(s[0].work.omega[s[0].others[n], w]):
            return INFINITE  # it may carry the mechanism along
    out = real(0.0)
    for i in range(s[0].tree.count):
        v0 = s[0].tree.row[i].v_start
        rel = s[0].work.turning[s[0].tree.row[i].body, w] - s[0].work.turning[s[0].tree.row[i].base, w]
        if s[0].pushed[w] == 1 and s[0].tree.row[i].joint < s[0].scene_joints:
            for a in range(v0, v0 + s[0].tree.row[i].v_size):
                push = wp.abs(s[0].state.felt_joint[a, w]) + wp.abs(s[0].control.joint_force[a, w])
                out = out + push * s[0].kick[w] * (wp.abs(s[0].speed[a, w]) + wp.length(rel))
        if scope > 1 and s[0].acting == 1 and s[0].linear.acts[i, w] == 1:
            for a in range(v0, v0 + s[0].tree.row[i].v_size):
                speeds = wp.abs(s[0].laws.start[a, w]) + wp.abs(s[0].laws.end[a, w])
                out = out + real(2.0) * wp.abs(s[0].laws.impulse[a, w]) * speeds
    return out


@wp.func
def bent(s: wp.array(dtype=Direct), scope: int) -> real:
    """What part of the kinetic energy displacements may take at velocity level."""
    if scope > 1 and s[0].closures.count > s[0].closures.springs.count:
        return BENT_LOOPS
    return BENT


@wp.func
def one_step(s: wp.array(dtype=Direct), w: int, scope: int, last: bool) -> bool:
    """A step of the length in `drift`; returns whether its passes closed the joints.

    If it is the last way it is made again where they did not: with links damped, in the end at velocity level.
    """
    s[0].kick[w] = s[0].state.stagger[w] + real(0.5) * s[0].drift[w]
    chord = real(-0.5) * s[0].drift[w]
    level = s[0].settings.position[0]
    if s[0].state.open[w] > TORN:
        level = 0  # velocities are not to close what they did not open
    begin(s, w, scope, chord)
    if s[0].tight[w] == 1:
        stiffen(s, w, False)
        s[0].grades[RELATIVE, w] = s[0].grades[RELATIVE, w] + s[0].tight[w]
    grade = int(0)
    off = real(-1.0)
    while off < real(0.0):
        solve(s, w, scope, chord)
        s[0].passes[w] = wp.max(s[0].passes[w], s[0].done[w])
        if grade < 2:
            off = close(s, w, scope, level)
            if level == 0 and s[0].state.open[w] <= REOPENED and s[0].shifted[w] > bent(s, scope) * s[0].after[w]:
                level = 1  # near a pose where a loop is singular speeds alone lead astray
                off = close(s, w, scope, level)
            if s[0].after[w] > GAIN * s[0].before[w] and s[0].after[w] > GAIN * s[0].before[w] + supply(s, w, scope):
                off = real(-1.0)  # closed, but on another branch: impulses of joints bring no energy
            if off < real(0.0):
                if not last:
                    return False
                grade = grade + 1
                if level == 0:
                    grade = 2
                if grade == 1:
                    s[0].grades[DAMPED, w] = s[0].grades[DAMPED, w] + 1
                else:
                    s[0].grades[VELOCITY, w] = s[0].grades[VELOCITY, w] + 1
                    chord = real(0.0)
                    begin(s, w, scope, chord)
                stiffen(s, w, True)
        else:
            move_all(s, w, scope, 0)
            place_outward(s, w)
            off = real(0.0)
            if scope > 1 and s[0].closures.count > 0:
                off = row_gaps(s, w)
    if scope > 1:
        off = wp.max(off, halves_apart(s, w))
        ease_rows(s, w)
    s[0].state.open[w] = off
    if scope > 1 and s[0].acting == 1:
        repair(s, w, scope)
    return True


@wp.func
def count(s: wp.array(dtype=Direct), w: int) -> wp.vec4i:
    """The grades counted so far."""
    return wp.vec4i(s[0].grades[0, w], s[0].grades[1, w], s[0].grades[2, w], s[0].grades[3, w])


@wp.func
def count_once(s: wp.array(dtype=Direct), w: int, before: wp.vec4i):
    """A step counts once in a grade, however many of its parts were made so."""
    for g in range(4):
        s[0].grades[g, w] = wp.min(s[0].grades[g, w], before[g] + 1)


@wp.func
def start_step(s: wp.array(dtype=Direct), w: int):
    """Nothing of the step is counted yet."""
    s[0].passes[w] = 0
    s[0].counted[w] = count(s, w)


@wp.func
def make_part(s: wp.array(dtype=Direct), w: int, scope: int, share: real, way: int) -> bool:
    """A part of a step; returns whether its passes closed the joints. The smallest are made in any case (`one_step`)."""
    s[0].drift[w] = s[0].settings.dt[0] * share
    return one_step(s, w, scope, share < real(1.0))


@wp.func
def keep_part(s: wp.array(dtype=Direct), w: int, scope: int, part: int) -> bool:
    """The new state becomes the state, if it is finite; else the world is marked."""
    bad = bad_body(s, w)
    s[0].state.failed[w] = bad
    if bad == 0:
        commit(s, w, scope)
    return bad == 0


@wp.func
def ease_step(s: wp.array(dtype=Direct), w: int, scope: int, size: int, way: int):
    """After a miss of the whole step: the smallest parts."""
    return 1, way


@wp.func
def end_step(s: wp.array(dtype=Direct), w: int, parts: int, ways: int):
    """Count how the step was made."""
    s[0].parts[w] = parts
    s[0].grades[DIVIDED, w] = s[0].grades[DIVIDED, w] + int(parts > 1)
    s[0].done[w] = s[0].passes[w]  # the cap that leads to the same step
    count_once(s, w, s[0].counted[w])


whole_step = dividing("leap_step", int(PARTS), start_step, make_part, keep_part, ease_step, end_step)


@wp.func
def gap_of(s: wp.array(dtype=Direct), j: int, w: int) -> real:
    """How far a joint stands open (`gap_size`); 0 if it is taken out."""
    if j < s[0].scene_joints and s[0].control.enabled[j, w] == 0:
        return real(0.0)
    linear, angular = joint_gap(s[0].joints, j, pose_at(s[0].joints, j, w, s[0].position, s[0].rotation))
    return gap_size(s, linear, angular)


@wp.func
def resume(s: wp.array(dtype=Direct), w: int, scope: int):
    """Velocities at the half step before the pose; or, where there are none, those of the pose and half a kick to come."""
    begin_call(s, w)
    if not untouched(s, w) or any_switched(s, w):
        begin_anew(s, w)


@wp.func
def begin_call(s: wp.array(dtype=Direct), w: int):
    for g in range(wp.static(len(GRADES))):
        s[0].grades[g, w] = 0
    s[0].pushed[w] = wp.max(pushed(s, w), was_pushed(s, w))


@wp.func
def begin_anew(s: wp.array(dtype=Direct), w: int):
    """From the velocities of the pose, with half a kick to come."""
    s[0].state.stagger[w] = real(0.0)
    for b in range(s[0].own):
        s[0].state.velocity[b, w] = s[0].now.velocity[b, w]
        s[0].state.momentum[b, w] = s[0].now.momentum[b, w]
    for at in range(s[0].speeds):
        s[0].state.current[at, w] = s[0].now.current[at, w]
    for b in range(s[0].bodies.count):
        own = s[0].half_of[b]
        s[0].position[b, w] = s[0].state.position[own, w]
        s[0].rotation[b, w] = s[0].state.rotation[own, w]
    most = real(0.0)
    for i in range(s[0].tree.count):
        most = wp.max(most, gap_of(s, s[0].tree.joint[i], w))
    for i in range(s[0].closures.rods):
        most = wp.max(most, gap_of(s, s[0].closures.rod_joint[i], w))
    s[0].state.open[w] = most


@wp.func
def synchronise(s: wp.array(dtype=Direct), w: int, scope: int):
    """Bring velocities and reactions to the pose for the caller to read, by half a kick with rows that do not move."""
    s[0].kick[w] = s[0].state.stagger[w]
    s[0].drift[w] = s[0].settings.dt[0]
    passes = s[0].done[w]
    off = s[0].residual[w]
    begin(s, w, scope, real(0.0))
    solve(s, w, scope, real(0.0))
    s[0].done[w] = passes
    s[0].residual[w] = off
    show(s, w, scope)


@wp.func
def show(s: wp.array(dtype=Direct), w: int, scope: int):
    """Show the caller the velocities and reactions that half a kick led to."""
    half = s[0].kick[w]
    collect(s, w, scope, s[0].now.velocity, s[0].now.momentum, s[0].now.joint_force, s[0].now.joint_torque, False)
    for n in range(s[0].tree.count):
        b = natural(s[0].tree.row[n].body)
        if b < s[0].own:
            M = matrix(s[0].work.rotation[b, w])
            v = s[0].now.velocity[b, w]
            L = s[0].now.momentum[b, w]
            s[0].now.spin[b, w] = M * (s[0].whole.inv_inertia[b, w] * (L * M))
            s[0].now.acceleration[b, w] = (v - s[0].state.velocity[b, w]) / half
            s[0].now.kept_velocity[b, w] = v
            s[0].now.kept_momentum[b, w] = L
            s[0].now.kept_position[b, w] = s[0].now.position[b, w]
            s[0].now.kept_rotation[b, w] = s[0].now.rotation[b, w]
    if scope > 1 and s[0].acting == 1:
        for n in range(s[0].tree.count):
            if s[0].linear.acts[n, w] == 1 and s[0].work.kind[n, w] == NONE:
                for at in range(s[0].tree.row[n].v_start, s[0].tree.row[n].v_start + s[0].tree.row[n].v_size):
                    if s[0].axes.resistance[at, w] > real(0.0):
                        _mean, end = motor_current(s, s[0].laws, at, w)
                        s[0].now.current[at, w] = end
    scale = s[0].settings.dt[0] / half
    at = 6 * s[0].closures.welds
    for i in range(s[0].closures.rods):
        f = s[0].rows.child_l[at + i, w] * (scale * s[0].row_impulse[at + i, w])
        s[0].now.joint_force[s[0].closures.rod_joint[i], w] = f
    at = at + s[0].closures.rods
    for i in range(s[0].closures.gears):
        s[0].now.gear_impulse[i, w] = scale * s[0].row_impulse[at + i, w]
    at = at + s[0].closures.gears
    for i in range(s[0].closures.springs.count):
        s[0].now.spring_impulse[i, w] = scale * s[0].row_impulse[at + i, w]


def make_kernel(scope: int, module: str) -> Any:
    """The kernel for a mechanism of hinges and balls on which nothing acts (0), of any joints (1), with all there is (2)."""

    @wp.kernel(module=module)
    def direct_steps(s: wp.array(dtype=Direct), first: int, n: wp.array(dtype=wp.int32)):
        """n steps of a world; where one would not be finite, the world is marked and its state stays."""
        w = first + wp.tid()
        if s[0].state.failed[w] != 0:
            return
        resume(s, w, wp.static(scope))
        for _step in range(n[w]):
            if s[0].state.failed[w] != 0:
                break
            if wp.static(scope > 1):
                if s[0].drives.count > 0:
                    set_drives(s, w, s[0].settings.dt[0], s[0].state.velocity, s[0].state.spin)
            whole_step(s, w, wp.static(scope))
            if s[0].state.failed[w] == 0:
                count_step(s[0].tally, w, s[0].residual[w], s[0].settings.tolerance[0], s[0].parts[w])
        if s[0].state.failed[w] == 0:
            synchronise(s, w, wp.static(scope))

    return direct_steps


KERNELS = [make_kernel(scope, module) for scope, module in enumerate(MODULES)]
