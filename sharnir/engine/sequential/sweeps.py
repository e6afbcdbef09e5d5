"""The stages of a step in maximal coordinates, as kernels: each reads, calls functions of the physics, writes.

Symbols are those of theory: V = (v, ω) a twist, P = (p, l) an impulse, K and W as in `rows`, G a gap.
"""

import warp as wp

from sharnir.core.spatial import advance_rotation, turned
from sharnir.core.types import compile_quickly, real, vec3, vec6
from sharnir.engine.sequential.actions import apply_axis, open_creep, pseudo_actions, report_actions, take_creep
from sharnir.engine.sequential.begin import at_rest, taken_momentum
from sharnir.engine.sequential.block_contact import goal_of, help_sweeps, put_back_points
from sharnir.engine.sequential.cables import commit_cables, measure_cables, sweep_cables
from sharnir.engine.sequential.contacts import (
    IMPACT_ROUNDS,
    IMPACT_SWEEPS,
    close_round,
    is_struck,
    measure_points,
    open_round,
    push_overlaps_apart,
    store_contacts,
    strike_points,
    sweep_points,
)
from sharnir.engine.sequential.couplings import gap_of_gear, solve_gear, solve_spring
from sharnir.engine.sequential.data import POSITIONS, VELOCITIES, Solve, Step, Work
from sharnir.engine.sequential.patches import warm_points
from sharnir.engine.sequential.prepare import MODE_ACTS, MODE_ASLEEP, MODE_BALL, MODE_BLOCK, warm_start
from sharnir.engine.sleep import at_rest_together, fall_asleep, sleeps, wait
from sharnir.laws.prepare import clear_laws
from sharnir.laws.solve import solve_ball_friction, solve_several_axes, solve_single_axis
from sharnir.model.joint_geometry import breaks, coordinate, free_axis, joint_gap
from sharnir.model.joint_types import JointTable
from sharnir.model.kinematics import pose_at
from sharnir.model.model import DYNAMIC, KINEMATIC, BodyTable

compile_quickly("sharnir.contact")
compile_quickly("sharnir.impulse")
POSITION_ROUNDS = wp.constant(16)  # of position sweeps, at most, where limits of ball joints are passed


# ---- sequential impulses: one sweep serves velocities and pseudo-velocities ---------------------------------------------------


@wp.func
def solve_block(bodies: BodyTable, joints: JointTable, work: Work, solve: Solve, k: int, w: int, per_metre: real) -> real:
    """ΔP = −W (u + bias) of one joint, applied to both bodies; returns |ΔP|², moments over the scene's length."""
    p = joints.parent[k]
    c = joints.child[k]
    r_p = work.r_parent[k, w]
    r_c = work.r_child[k, w]
    w_p = solve.twist.angular[p, w]
    w_c = solve.twist.angular[c, w]
    v_p = solve.twist.linear[p, w]
    v_c = solve.twist.linear[c, w]
    u = (v_c + wp.cross(w_c, r_c)) - (v_p + wp.cross(w_p, r_p) - solve.bias_linear[k, w])
    force = work.W_ll[k, w] * u
    turn_p = work.turn_parent_l[k, w] * u
    turn_c = work.turn_child_l[k, w] * u
    size = real(0.0)
    if joints.free[k] >> 3 != 7:  # without a rotation row the angular blocks of W are zero
        v = w_c - (w_p - solve.bias_angular[k, w])
        B = work.W_la[k, w]
        force = force + B * v
        torque = u * B + work.W_aa[k, w] * v
        turn_p = turn_p + work.turn_parent_a[k, w] * v
        turn_c = turn_c + work.turn_child_a[k, w] * v
        solve.torque[k, w] = solve.torque[k, w] - torque
        size = wp.dot(torque, torque) * per_metre * per_metre
    solve.twist.linear[p, w] = v_p + force * bodies.inv_mass[p, w]
    solve.twist.linear[c, w] = v_c - force * bodies.inv_mass[c, w]
    solve.twist.angular[p, w] = w_p + turn_p
    solve.twist.angular[c, w] = w_c - turn_c
    solve.force[k, w] = solve.force[k, w] - force
    return size + wp.dot(force, force)


@wp.func
def advance_body(s: wp.array(dtype=Step), b: int, w: int) -> None:
    """X ← X ⊕ Δt V. L takes the impulses that ω took; the rotation keeps L and its energy (`advance_rotation`)."""
    twist = s[0].solves[VELOCITIES].twist
    pseudo = s[0].solves[POSITIONS].twist
    dt = s[0].settings.dt[0]
    omega = twist.angular[b, w]
    q = s[0].state.rotation[b, w]
    # compensated: what rounding drops from x + Δt v is kept for the next step
    x = s[0].state.position[b, w]
    move = twist.linear[b, w] * dt + s[0].state.rest[b, w]
    there = x + move
    s[0].work.position[b, w] = there
    s[0].work.rest[b, w] = move - (there - x)
    if sleeps(s, b, w):
        s[0].work.momentum[b, w] = vec3(real(0.0))
    elif s[0].bodies.motion[b] == DYNAMIC:
        L = taken_momentum(s, b, w)
        s[0].work.momentum[b, w] = L
        q = advance_rotation(q, L, s[0].bodies.inertia[b, w], s[0].bodies.inv_inertia[b, w], dt)
    elif s[0].bodies.motion[b] == KINEMATIC:
        q = turned(q, omega * dt)
    s[0].work.rotation[b, w] = q
    pseudo.linear[b, w] = vec3(real(0.0))
    pseudo.angular[b, w] = vec3(real(0.0))


@wp.func
def measure(s: wp.array(dtype=Step), w: int) -> int:
    """The split impulses' aims: ERP·G/Δt at the new pose, so that what the step opened is closed in it; what sticks stays.

    Returns 1 where curved limits are near, 2 where they are passed: a round of sweeps goes along their tangents alone.
    """
    passed = int(0)
    solve = s[0].solves[POSITIONS]
    rate = s[0].settings.erp[0] / s[0].settings.dt[0]
    widest = real(0.0)
    for k in range(s[0].joints.count):
        if s[0].work.mode[k, w] & MODE_BLOCK != 0:
            linear, angular = joint_gap(s[0].joints, k, pose_at(s[0].joints, k, w, s[0].work.position, s[0].work.rotation))
            solve.bias_linear[k, w] = linear * rate
            solve.bias_angular[k, w] = angular * rate
            widest = wp.max(widest, wp.max(wp.length(linear) * s[0].settings.per_metre[0], wp.length(angular)))
    for k in range(s[0].joints.count):
        if s[0].work.mode[k, w] & MODE_ACTS != 0:
            passed = wp.max(passed, pseudo_actions(s, s[0].solves[VELOCITIES].laws, solve.laws, k, w, widest))
    for g in range(s[0].gears.count):
        solve.gear_bias[g, w] = gap_of_gear(s, g, w) * rate
    if s[0].cables.count > 0:
        measure_cables(s, w)
    return passed


@wp.func
def displace_body(s: wp.array(dtype=Step), b: int, w: int) -> None:
    """X ← X ⊕ Δt V*."""
    dt = s[0].settings.dt[0]
    pseudo = s[0].solves[POSITIONS].twist
    s[0].work.position[b, w] = s[0].work.position[b, w] + pseudo.linear[b, w] * dt
    turn = pseudo.angular[b, w]
    if wp.length_sq(turn) > real(0.0):
        s[0].work.rotation[b, w] = turned(s[0].work.rotation[b, w], turn * dt)


@wp.func
def next_round(s: wp.array(dtype=Step), w: int, left: int) -> int:
    """Move on by the V* of the last round, and aim anew from there; returns how many rounds there still are to be."""
    pseudo = s[0].solves[POSITIONS].twist
    if left < POSITION_ROUNDS:
        for b in range(s[0].bodies.count):
            displace_body(s, b, w)
        for k in range(s[0].joints.count):
            if s[0].work.mode[k, w] & MODE_ACTS != 0:
                take_creep(s, pseudo, s[0].solves[POSITIONS].laws, k, w)
        for b in range(s[0].bodies.count):
            pseudo.linear[b, w] = vec3(real(0.0))
            pseudo.angular[b, w] = vec3(real(0.0))
    passed = measure(s, w)
    if left < POSITION_ROUNDS:
        return left * int(passed == 2)
    if passed == 0 or s[0].settings.erp[0] < real(1.0):
        return 1
    return left


@wp.func
def first_bad_body(s: wp.array(dtype=Step), w: int) -> int:
    """1 + the first dynamic body whose new state is not finite, or 0; adds Δt V* to the new poses on the way."""
    twist = s[0].solves[VELOCITIES].twist
    bad = int(0)
    for b in range(s[0].bodies.count):
        displace_body(s, b, w)
        x = s[0].work.position[b, w]
        q = s[0].work.rotation[b, w]
        v = twist.linear[b, w]
        L = s[0].work.momentum[b, w]
        size = wp.dot(x, x) + wp.dot(v, v) + wp.dot(L, L) + wp.dot(q, q)
        if bad == 0 and s[0].bodies.motion[b] == DYNAMIC and not wp.isfinite(size):
            bad = b + 1
    return bad


@wp.func
def count_joint_turns(s: wp.array(dtype=Step), k: int, w: int) -> None:
    """Bring the angles of a joint with one or two free rotations up to date, each on the turn its speed leads to."""
    turns = s[0].joints.turns[k]
    if s[0].joints.v_size[k] == 0 or turns == 0 or turns == 3:
        return
    spin = s[0].solves[VELOCITIES].twist.angular
    turn = (spin[s[0].joints.child[k], w] - spin[s[0].joints.parent[k], w]) * s[0].settings.dt[0]
    pose = pose_at(s[0].joints, k, w, s[0].state.position, s[0].state.rotation)
    for i in range(s[0].joints.v_size[k] - turns, s[0].joints.v_size[k]):
        at = s[0].joints.q_start[k] + i
        near = s[0].state.q[at, w]
        if wp.length_sq(turn) > real(1.0):  # for a slower one the last angle is enough
            _d, n = free_axis(s[0].joints, k, i, pose)
            near = near + wp.dot(n, turn)
        s[0].state.q[at, w] = coordinate(s[0].joints, k, i, pose, near)


@wp.func
def commit_step(s: wp.array(dtype=Step), w: int) -> None:
    """The new state becomes the state; where a number is not finite, the world is marked and its state left alone."""
    if s[0].state.failed[w] != 0:
        return
    bad = first_bad_body(s, w)
    s[0].state.failed[w] = bad
    if bad != 0:
        clear_forces_of_step(s, w)
        return
    dt = s[0].settings.dt[0]
    halves = s[0].settings.halves[0]
    per_kick = dt / s[0].settings.kick[w]
    solve = s[0].solves[VELOCITIES]
    for b in range(s[0].bodies.count):
        v = at_rest(solve.twist.linear[b, w], s[0].settings.nothing[0])
        q = s[0].work.rotation[b, w]
        s[0].state.position[b, w] = s[0].work.position[b, w]
        s[0].state.rest[b, w] = s[0].work.rest[b, w]
        s[0].state.rotation[b, w] = q
        if halves == 0:
            s[0].state.acceleration[b, w] = (v - s[0].state.velocity[b, w]) / dt
        else:
            s[0].state.kept_position[b, w] = s[0].work.position[b, w]
            s[0].state.kept_rotation[b, w] = q
            if s[0].state.stagger[w] == real(0.0):  # a caller's velocities are at work: they are no longer his
                s[0].now.kept_velocity[b, w] = s[0].now.velocity[b, w]
                s[0].now.kept_momentum[b, w] = s[0].now.momentum[b, w]
        s[0].state.felt_force[b, w] = s[0].control.force[b, w]
        s[0].state.felt_torque[b, w] = s[0].control.torque[b, w]
        s[0].state.velocity[b, w] = v
        if s[0].bodies.motion[b] == DYNAMIC:
            L = at_rest(s[0].work.momentum[b, w], s[0].settings.nothing[1])
            s[0].state.momentum[b, w] = L
            s[0].state.spin[b, w] = wp.quat_rotate(q, s[0].bodies.inv_inertia[b, w] * wp.quat_rotate_inv(q, L))
        elif halves == 1 and s[0].bodies.motion[b] == KINEMATIC:
            s[0].state.momentum[b, w] = solve.twist.angular[b, w]
    for k in range(s[0].joints.count):
        if s[0].work.mode[k, w] & MODE_ASLEEP != 0:
            continue
        force = solve.force[k, w] * per_kick
        torque = solve.torque[k, w] * per_kick
        s[0].state.joint_force[k, w] = force
        s[0].state.joint_torque[k, w] = torque
        if breaks(s[0].joints, k, force, torque, dt):
            s[0].control.enabled[k, w] = 0
        for at in range(s[0].joints.v_start[k], s[0].joints.v_start[k] + s[0].joints.v_size[k]):
            s[0].state.felt_joint[at, w] = s[0].control.joint_force[at, w]
        if s[0].work.mode[k, w] & MODE_ACTS != 0:
            report_actions(s, solve, s[0].solves[POSITIONS], k, w)
        elif s[0].control.acts[k, w] != 0:
            clear_laws(s, k, w)
        count_joint_turns(s, k, w)
    for g in range(s[0].gears.count):
        s[0].state.gear_impulse[g, w] = solve.gear_impulse[g, w] * per_kick
    for k in range(s[0].springs.count):
        s[0].state.spring_impulse[k, w] = solve.spring_impulse[k, w] * per_kick
    if s[0].cables.count > 0:
        commit_cables(s, w, per_kick)
    s[0].state.stagger[w] = real(0.5) * dt
    s[0].state.time[w] = s[0].state.time[w] + wp.float64(dt)
    clear_forces_of_step(s, w)


@wp.func
def clear_forces_of_step(s: wp.array(dtype=Step), w: int) -> None:
    """Forces of one step are of no other."""
    for b in range(s[0].bodies.count):
        s[0].control.force_once[b, w] = vec3(real(0.0))
        s[0].control.torque_once[b, w] = vec3(real(0.0))


# ---- the sweeps ----------------------------------------------------------------------------------------------------------


@wp.func
def sweep_links(s: wp.array(dtype=Step), solve: Solve, w: int, which: int, sweep: int) -> real:
    """Every gear and cable and, at velocity level, every spring once; returns the largest |Δp|²."""
    largest = real(0.0)
    for g in range(s[0].gears.count):
        change = solve_gear(s, solve, g, w)
        largest = wp.max(largest, change * change)
    if which == VELOCITIES:
        for k in range(s[0].springs.count):
            change = solve_spring(s, solve, k, w)
            largest = wp.max(largest, change * change)
    if s[0].cables.count > 0:
        largest = wp.max(largest, sweep_cables(s, solve, w, which, sweep))
    return largest


@wp.func
def open_solve(s: wp.array(dtype=Step), w: int, which: int) -> int:
    """What comes before the first sweep of a solve; returns 1 where this is it."""
    solve = s[0].solves[which]
    if solve.done[w] >= 0:
        return 0
    solve.done[w] = 0
    solve.residual[w] = real(0.0)
    if which == VELOCITIES:
        warm_start(s, w)
    else:
        for b in range(s[0].bodies.count):
            advance_body(s, b, w)
        for k in range(s[0].joints.count):
            if s[0].work.mode[k, w] & MODE_ACTS != 0:
                open_creep(s, s[0].solves[VELOCITIES], solve.laws, k, w)
    return 1


@wp.func
def solve_impacts(s: wp.array(dtype=Step), w: int) -> None:
    """Impacts, round by round: joints are swept with the points that approach."""
    for i in range(s[0].contacts.count[w]):
        s[0].touch.blow[i, w] = vec3(real(0.0))
    if not is_struck(s, w):
        return
    solve = s[0].solves[VELOCITIES]
    for n in range(IMPACT_ROUNDS):
        if open_round(s, w, int(n == 0)) == 0:
            return
        for it in range(IMPACT_SWEEPS):
            for k in range(s[0].joints.count):
                if s[0].work.mode[k, w] & MODE_BLOCK != 0:
                    solve_block(s[0].bodies, s[0].joints, s[0].work, solve, k, w, real(1.0))
            if strike_points(s, w, it % 2) <= s[0].settings.touch[0]:
                break
        close_round(s, w)


@wp.func
def bodies_alone(s: wp.array(dtype=Step), w: int) -> bool:
    """Whether points of contact are all that is swept, and may be solved for at once."""
    if s[0].block.capacity == 0 or s[0].joints.count + s[0].gears.count + s[0].springs.count + s[0].cables.count > 0:
        return False
    return s[0].touch.turns[w] == 0


@wp.func
def changes_of_axes(
    joints: JointTable, work: Work, solve: Solve, groups: wp.array(dtype=wp.int32), k: int, w: int, mode: int, u: vec3, v: vec3,
    back: real,
) -> vec6:  # fmt: skip
    """Impulses that the laws of a joint with several axes ask for, at its relative velocities u and v."""
    n = joints.v_size[k]
    v0 = joints.v_start[k]
    A = work.axis.response[k, w]
    speeds = vec6()
    for i in range(n):
        speeds[i] = wp.dot(work.axis.d[v0 + i, w], u) + wp.dot(work.axis.n[v0 + i, w], v)
        speeds[i] = speeds[i] + solve.laws.end[v0 + i, w] * back
    if mode & MODE_BALL != 0:
        changes = vec6()
        by = solve_ball_friction(solve.laws, v0, w, vec3(speeds[0], speeds[1], speeds[2]), A)
        for i in range(3):
            changes[i] = by[i]
        return changes
    return solve_several_axes(solve.laws, groups, v0, w, n, n - joints.turns[k], joints.ball[k], speeds, A, real(1.0))


@wp.func
def size_of_changes(changes: vec6, n: int, turns: int, per_metre: real) -> real:
    """The largest square of a joint's impulses, moments over the scene's length."""
    largest = real(0.0)
    for i in range(n):
        size = changes[i]
        if i >= n - turns:
            size = size * per_metre
        largest = wp.max(largest, size * size)
    return largest


@wp.func
def sweep_blocks(bodies: BodyTable, joints: JointTable, work: Work, solve: Solve, w: int, done: int, per_metre: real) -> real:
    """Every joint on whose axes nothing acts once, forth and back in turn; returns the largest |ΔP|²."""
    largest = real(0.0)
    k = (joints.count - 1) * (done % 2)
    for _j in range(joints.count):
        if work.mode[k, w] & MODE_BLOCK != 0:
            largest = wp.max(largest, solve_block(bodies, joints, work, solve, k, w, per_metre))
        k = k + 1 - 2 * (done % 2)
    return largest


@wp.func
def sweep_joints(
    s: wp.array(dtype=Step), bodies: BodyTable, joints: JointTable, work: Work, solve: Solve, w: int, which: int, done: int,
    per_metre: real,
) -> real:  # fmt: skip
    """Every joint and its axes once, forth and back in turn; returns the largest |ΔP|². A function for each axis is slower."""
    largest = real(0.0)
    k = (joints.count - 1) * (done % 2)
    for _j in range(joints.count):
        mode = work.mode[k, w]
        if mode & MODE_BLOCK != 0:
            largest = wp.max(largest, solve_block(bodies, joints, work, solve, k, w, per_metre))
        if mode & MODE_ACTS != 0:
            n = joints.v_size[k]
            v0 = joints.v_start[k]
            p = joints.parent[k]
            c = joints.child[k]
            w_p = solve.twist.angular[p, w]
            v = solve.twist.angular[c, w] - w_p
            u = solve.twist.linear[c, w] + wp.cross(solve.twist.angular[c, w], work.r_child[k, w])
            u = u - solve.twist.linear[p, w] - wp.cross(w_p, work.r_parent[k, w])
            if which == VELOCITIES:  # along the chord, too: then q⁺ = q + Δt · speed to third order
                u = u + solve.bias_linear[k, w]
                v = v + solve.bias_angular[k, w]
            back = real(which)  # at position level, what friction holds goes back to where it was
            changes = vec6()
            if n == 1:
                speed = wp.dot(work.axis.d[v0, w], u) + wp.dot(work.axis.n[v0, w], v)
                speed = speed + solve.laws.end[v0, w] * back
                changes[0] = solve_single_axis(solve.laws, v0, w, speed, work.axis.response[k, w][0, 0])
            else:
                changes = changes_of_axes(joints, work, solve, s[0].axes.group, k, w, mode, u, v, back)
            for i in range(n):
                if changes[i] != real(0.0):
                    at = v0 + i
                    apply_axis(
                        solve.twist, work.axis, solve.force, solve.torque, k, at, w, p, c,
                        bodies.inv_mass[p, w], bodies.inv_mass[c, w], changes[i],
                    )  # fmt: skip
            largest = wp.max(largest, size_of_changes(changes, n, joints.turns[k], per_metre))
        k = k + 1 - 2 * (done % 2)
    return largest


def sweeping(acting: bool, touching: bool, module: str) -> wp.Kernel:
    """The kernel that sweeps, with or without what acts on free axes, and contacts: a scene without them is solved faster so."""

    @wp.kernel(module=module)
    def sweeps(s: wp.array(dtype=Step), first: int, which: int) -> None:
        """Sweeps on V or V*, forth and back in turn, until every |ΔP| ≤ ε, the cap, or as many as one launch may make.

        The first launch of a solve warm-starts, or moves and measures; the one on V* commits: few launches, because each costs.
        """
        w = first + wp.tid()
        if at_rest_together(s[0].rest, w):
            if which == POSITIONS:
                wait(s[0].rest, w)
            return
        began = open_solve(s, w, which)
        if wp.static(touching):
            if began == 1 and which == VELOCITIES:
                solve_impacts(s, w)
                warm_points(s, w)
        solve = s[0].solves[which]
        bodies = s[0].bodies  # copies of what sweeps read most; of all of `Step` they take a GPU's compiler ten minutes
        joints = s[0].joints
        work = s[0].work
        tolerance = s[0].settings.tolerance[which]
        per_metre = s[0].settings.per_metre[0]
        done = int(solve.done[w])
        cap = wp.min(s[0].settings.iterations[which], done + s[0].settings.sweeps[which])
        if which == VELOCITIES and done > cap:  # this world already converged in an earlier launch
            return
        largest = real(0.0)
        goal = tolerance * tolerance
        solves = int(0)  # times that all points were solved for at once; −1: they are not any more
        alone = bodies_alone(s, w)
        left = int(1)  # rounds of sweeps
        if which == POSITIONS:
            left = POSITION_ROUNDS
        while left > 0:
            if which == POSITIONS:
                left = next_round(s, w, left)
                if wp.static(touching):
                    if measure_points(s, w) == 0 and joints.count + s[0].gears.count + s[0].cables.count == 0:
                        left = 0
                done = 0
                if left == 0:
                    break
            for _it in range(done, cap):
                if wp.static(acting):
                    largest = sweep_joints(s, bodies, joints, work, solve, w, which, done, per_metre)
                else:
                    largest = sweep_blocks(bodies, joints, work, solve, w, done, per_metre)
                largest = wp.max(largest, sweep_links(s, solve, w, which, done))
                if wp.static(touching):
                    if which == VELOCITIES:
                        size = sweep_points(s, w, done % 2) * tolerance / s[0].settings.touch[0]
                        largest = wp.max(largest, size * size)
                        if alone:
                            goal = goal_of(tolerance, done, largest, goal)
                            solves, largest = help_sweeps(s, w, done, solves, largest, goal)
                    else:
                        size = push_overlaps_apart(s, w)
                        largest = wp.max(largest, size * size)
                done = done + 1
                if largest <= goal:
                    break
            left = left - 1
        if wp.static(touching):
            if solves > 0 and largest > tolerance * tolerance:
                put_back_points(s, w, 0)
        solve.done[w] = done
        solve.residual[w] = wp.sqrt(largest)
        if which == POSITIONS:
            if wp.static(touching):
                if s[0].state.failed[w] == 0:
                    store_contacts(s, w)
            commit_step(s, w)
            if s[0].state.failed[w] == 0 and s[0].settings.halves[0] == 1:  # with ropes, it is they who end the step
                fall_asleep(s[0].rest, w)

    return sweeps


sweeps_plain = sweeping(False, False, "sharnir.impulse")
sweeps_acting = sweeping(True, False, "sharnir.impulse")
sweeps_touching = sweeping(True, True, "sharnir.contact")
