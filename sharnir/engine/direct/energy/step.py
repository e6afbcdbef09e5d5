"""The step that keeps energy and momenta: joints closed by the means of their vectors (theory: energy and momentum).

    M (V₁ − V₀) = Δt F + J̄ᵀp,     x₁ = x₀ + Δt v̄,  R₁ = cay(Δt ω̄) R₀,  V̄ = ½(V₀ + V₁),     G(x₁, R₁) = 0

J̄ has every arm and axis as the mean of those at the start and at the end of the step (`means`), so that closed joints do no
work, whatever the masses and the step. Velocities belong to the pose. A step is solved about a guess of its end by the passes of
`links`, laws included; passes over vectors with the same factors (`lack_inward`, `place`) then bring momenta, moments and
gaps to rounding. Momentum is met link by link, from the leaves inwards, which gives what each joint carries; what that is along
a free axis, beyond what acts there, is what a pass corrects. Where passes do not meet, the step is made in parts.
"""

from typing import Any

import warp as wp

from sharnir.core.spatial import turned
from sharnir.core.types import inline_less, real, vec3
from sharnir.engine.articulated.data import natural
from sharnir.engine.direct.data import DIVIDED, Direct
from sharnir.engine.direct.energy.cables import any_struck, rest_cables
from sharnir.engine.direct.energy.finish import commit, finish, worst_body
from sharnir.engine.direct.energy.means import take_driven
from sharnir.engine.direct.energy.passes import RESTS, STALLED, UNMET, attempt, hold_again
from sharnir.engine.direct.energy.projection import close_pose, project, project_ahead, stand_all
from sharnir.engine.direct.energy.touch import (
    JAMS,
    ROUNDS,
    change_impulses,
    commit_points,
    gains,
    is_last,
    open_points,
    push_bodies,
    tell_missed,
)
from sharnir.engine.direct.energy.touch_parting import take_apart
from sharnir.engine.direct.modified import any_switched, follow_turns, lies, pushed, untouched
from sharnir.engine.guard import count_step
from sharnir.engine.sleep import at_rest_together, fall_asleep, rise, wait, wake_by_caller
from sharnir.engine.substeps import SPENT, dividing, halve
from sharnir.laws.drives import set_drives
from sharnir.laws.prepare import axis_unit
from sharnir.model.joint_geometry import free_axis
from sharnir.model.kinematics import pose_at
from sharnir.model.model import State

MODULES = ("sharnir.energy", "sharnir.energy_touch")
GPU_LEVEL = 2  # a third of the time to compile; balls step a quarter faster on an H200, with friction a third, an arm 12 % slower
for name in MODULES:  # a quarter less to compile on a CPU; steps take a twentieth longer
    inline_less(name, 150, GPU_LEVEL)
FINEST = wp.constant(1 << 8)  # parts into which a step may be divided
SLICK = wp.constant(2)  # the way in which a part is made without friction in contacts


@wp.func
def replayed_by(s: wp.array(dtype=Direct), w: int, pivots: int) -> int:
    """The cap that leads to the same step (`SolverDirect._caps`); `pivots`: most passes in which laws of a part were found."""
    beyond = wp.min(s[0].passes[w], s[0].settings.iterations[2]) - s[0].settings.iterations[4]
    return wp.max((pivots - 1) * s[0].settings.iterations[5] + 1, beyond)


# ---- a step for which there is no time --------------------------------------------------------------------------------------


@wp.func
def make_coarsely(s: wp.array(dtype=Direct), w: int):
    """What is left of a step, of the length in `drift`, at velocity level: a kick, velocities that fit the joints, poses where
    they lead, closed by displacements. What acts on axes is left out, but for friction that holds. Where joints do not close so,
    bodies stay for the rest of the step: the state is a valid one in any case, and the report tells that the step is not met.
    """
    h = s[0].drift[w]
    took = s[0].projected[w]
    copy_state(s[0].state, s[0].safe, w)
    kick_bodies(s, w)
    lost = project(s, w)
    move_bodies(s, w)
    open = close_pose(s, w)
    lost = lost + project(s, w)
    if not (open <= STALLED and wp.isfinite(lost)):
        copy_state(s[0].safe, s[0].state, w)
        s[0].projected[w] = took
    s[0].state.time[w] = s[0].safe.time[w] + wp.float64(h)
    forget_guess(s, w)
    s[0].residual[w] = wp.max(s[0].residual[w], UNMET * s[0].settings.tolerance[0])


@wp.func
def kick_bodies(s: wp.array(dtype=Direct), w: int):
    """Velocities and momenta after gravity and a user's forces."""
    h = s[0].drift[w]
    for n in range(s[0].tree.count):
        b = natural(s[0].tree.row[n].body)
        if b < s[0].own and not lies(s, b, w):
            v = s[0].state.velocity[b, w] + s[0].settings.gravity[w] * h
            L = s[0].state.momentum[b, w]
            if s[0].pushed[w] == 1:
                v = v + (s[0].control.force[b, w] + s[0].control.force_once[b, w]) * (h * s[0].whole.inv_mass[b, w])
                L = L + (s[0].control.torque[b, w] + s[0].control.torque_once[b, w]) * h
            s[0].state.velocity[b, w] = v
            s[0].state.momentum[b, w] = L


@wp.func
def move_bodies(s: wp.array(dtype=Direct), w: int):
    """Bodies where their velocities lead, those that are driven where they are told; angles of joints follow."""
    h = s[0].drift[w]
    take_driven(s, w)
    for n in range(s[0].other_count):
        b = natural(s[0].others[n])
        s[0].state.position[b, w] = s[0].position[b, w]
        s[0].state.rotation[b, w] = s[0].rotation[b, w]
    for n in range(s[0].tree.count):
        b = natural(s[0].tree.row[n].body)
        if b < s[0].own:
            spin = s[0].state.spin[b, w]
            s[0].state.position[b, w] = s[0].state.position[b, w] + s[0].state.velocity[b, w] * h
            s[0].state.rotation[b, w] = turned(s[0].state.rotation[b, w], spin * h)
            s[0].position[b, w] = s[0].state.position[b, w]
            s[0].rotation[b, w] = s[0].state.rotation[b, w]
            s[0].work.turning[b, w] = spin
    for n in range(s[0].tree.count):
        j = natural(s[0].tree.row[n].joint)
        if j < s[0].scene_joints:
            turns = s[0].joints.turns[j]
            if turns > 0 and turns < 3:
                follow_turns(s, j, w, h)
                for at in range(s[0].tree.row[n].v_start, s[0].tree.row[n].v_start + s[0].tree.row[n].v_size):
                    s[0].turned[at, w] = real(0.0)


@wp.func
def forget_guess(s: wp.array(dtype=Direct), w: int):
    """Nothing of the last step tells of the next."""
    s[0].state.history[w] = 0
    for b in range(s[0].own):
        s[0].state.last_v[b, w] = vec3(real(0.0))
        s[0].state.last_w[b, w] = vec3(real(0.0))
        s[0].state.guess_v[b, w] = vec3(real(0.0))
        s[0].state.guess_w[b, w] = vec3(real(0.0))
        s[0].state.trend[b, w] = real(0.0)
    for j in range(s[0].scene_joints):
        s[0].state.mid_force[j, w] = vec3(real(0.0))
        s[0].state.mid_torque[j, w] = vec3(real(0.0))


@wp.func
def spend_once(s: wp.array(dtype=Direct), w: int):
    """Forces of one step are of no other, whether it could be made or not."""
    if s[0].pushed[w] == 1:
        for b in range(s[0].own):
            s[0].control.force_once[b, w] = vec3(real(0.0))
            s[0].control.torque_once[b, w] = vec3(real(0.0))


@wp.func
def copy_vectors(a: wp.array2d(dtype=vec3), b: wp.array2d(dtype=vec3), w: int):
    for i in range(a.shape[0]):
        b[i, w] = a[i, w]


@wp.func
def copy_reals(a: wp.array2d(dtype=real), b: wp.array2d(dtype=real), w: int):
    for i in range(a.shape[0]):
        b[i, w] = a[i, w]


@wp.func
def copy_state(a: State, b: State, w: int):
    """All that a step changes."""
    copy_vectors(a.position, b.position, w)
    copy_vectors(a.rest, b.rest, w)
    copy_vectors(a.velocity, b.velocity, w)
    copy_vectors(a.spin, b.spin, w)
    copy_vectors(a.momentum, b.momentum, w)
    copy_vectors(a.acceleration, b.acceleration, w)
    copy_vectors(a.last_v, b.last_v, w)
    copy_vectors(a.last_w, b.last_w, w)
    copy_vectors(a.slope_v, b.slope_v, w)
    copy_vectors(a.slope_w, b.slope_w, w)
    copy_vectors(a.older_v, b.older_v, w)
    copy_vectors(a.older_w, b.older_w, w)
    copy_vectors(a.guess_v, b.guess_v, w)
    copy_vectors(a.guess_w, b.guess_w, w)
    copy_vectors(a.joint_force, b.joint_force, w)
    copy_vectors(a.joint_torque, b.joint_torque, w)
    copy_vectors(a.mid_force, b.mid_force, w)
    copy_vectors(a.mid_torque, b.mid_torque, w)
    copy_reals(a.trend, b.trend, w)
    copy_reals(a.rotor, b.rotor, w)
    copy_reals(a.row_force, b.row_force, w)
    copy_reals(a.gear_impulse, b.gear_impulse, w)
    copy_reals(a.spring_impulse, b.spring_impulse, w)
    copy_reals(a.q, b.q, w)
    copy_reals(a.axis_impulse, b.axis_impulse, w)
    copy_reals(a.friction_impulse, b.friction_impulse, w)
    copy_reals(a.limit_impulse, b.limit_impulse, w)
    copy_reals(a.drive_impulse, b.drive_impulse, w)
    copy_reals(a.current, b.current, w)
    copy_reals(a.dissipated, b.dissipated, w)
    copy_reals(a.cable_rest, b.cable_rest, w)
    copy_reals(a.cable_angle, b.cable_angle, w)
    copy_reals(a.cable_impulse, b.cable_impulse, w)
    for i in range(a.cable_slides.shape[0]):
        b.cable_slides[i, w] = a.cable_slides[i, w]
    for i in range(a.rotation.shape[0]):
        b.rotation[i, w] = a.rotation[i, w]
    for i in range(a.stuck.shape[0]):
        b.stuck[i, w] = a.stuck[i, w]
    for i in range(a.mid_tense.shape[0]):
        b.mid_tense[i, w] = a.mid_tense[i, w]
    b.history[w] = a.history[w]
    b.open[w] = a.open[w]
    b.time[w] = a.time[w]


# ---- calls ------------------------------------------------------------------------------------------------------------------


@wp.func
def begin_call(s: wp.array(dtype=Direct), w: int):
    """Where the caller changed the state, velocities that do not fit the joints are projected for good."""
    if resume(s, w):
        if s[0].cables.count > 0:
            stand_all(s, w)
            rest_cables(s, w)
        close_pose(s, w)
        project(s, w)
        release(s, w)


@wp.func
def resume(s: wp.array(dtype=Direct), w: int) -> bool:
    """Nothing is counted yet. Whether the caller changed the state: then nothing of the last step is a guess."""
    for g in range(4):
        s[0].grades[g, w] = 0
    s[0].projected[w] = real(0.0)
    s[0].drift[w] = s[0].settings.dt[0]
    s[0].pushed[w] = pushed(s, w)
    if not untouched(s, w) or any_switched(s, w):
        forget_guess(s, w)
        release(s, w)
        return True
    return False


@wp.func
def release(s: wp.array(dtype=Direct), w: int):
    """What friction held moves, if a caller gave it a speed; rotors turn with their axes."""
    for i in range(s[0].tree.count):  # joints may hold halves of bodies, which the state does not have
        b = natural(s[0].tree.row[i].body)
        s[0].position[b, w] = s[0].state.position[natural(s[0].half_of[b]), w]
        s[0].rotation[b, w] = s[0].state.rotation[natural(s[0].half_of[b]), w]
    for i in range(s[0].other_count):
        s[0].position[s[0].others[i], w] = s[0].state.position[s[0].others[i], w]
        s[0].rotation[s[0].others[i], w] = s[0].state.rotation[s[0].others[i], w]
    fastest = real(0.0)  # m/s
    for b in range(s[0].own):
        turning = wp.length(s[0].state.spin[b, w]) / s[0].settings.per_metre[0]
        fastest = wp.max(fastest, wp.max(wp.length(s[0].state.velocity[b, w]), turning))
    for j in range(s[0].scene_joints):
        v0 = s[0].joints.v_start[j]
        pose = pose_at(s[0].joints, j, w, s[0].position, s[0].rotation)
        p = natural(s[0].half_of[s[0].joints.parent[j]])
        c = natural(s[0].half_of[s[0].joints.child[j]])
        rel = s[0].state.spin[c, w] - s[0].state.spin[p, w]
        u = s[0].state.velocity[c, w] + wp.cross(s[0].state.spin[c, w], pose.child_anchor - s[0].state.position[c, w])
        u = u - s[0].state.velocity[p, w] - wp.cross(s[0].state.spin[p, w], pose.child_anchor - s[0].state.position[p, w])
        for x in range(s[0].joints.v_size[j]):
            d, n = free_axis(s[0].joints, j, x, pose)
            speed = wp.dot(d, u) + wp.dot(n, rel)
            s[0].state.rotor[v0 + x, w] = speed
            if wp.abs(speed) * axis_unit(s, j, x) > RESTS * fastest * s[0].settings.per_metre[0]:
                for y in range(s[0].joints.v_size[j]):
                    if s[0].axes.group[v0 + y] == s[0].axes.group[v0 + x]:
                        s[0].state.stuck[v0 + y, w] = 0


@wp.func
def end_call(s: wp.array(dtype=Direct), w: int):
    """Remember the state, to see whether the caller changes it."""
    for b in range(s[0].own):
        s[0].state.felt_force[b, w] = s[0].control.force[b, w]
        s[0].state.felt_torque[b, w] = s[0].control.torque[b, w]
        s[0].now.kept_velocity[b, w] = s[0].now.velocity[b, w]
        s[0].now.kept_momentum[b, w] = s[0].now.momentum[b, w]
        s[0].now.kept_position[b, w] = s[0].now.position[b, w]
        s[0].now.kept_rotation[b, w] = s[0].now.rotation[b, w]


# ---- a step -----------------------------------------------------------------------------------------------------------------


@wp.func
def start_step(s: wp.array(dtype=Direct), w: int):
    """Nothing of the step is counted yet."""
    s[0].loose[w] = 0
    if s[0].touching == 1:
        s[0].touch.told[w] = 0
    s[0].passes[w] = 0
    s[0].pivots[w] = 0


@wp.func
def passes_left(s: wp.array(dtype=Direct), w: int) -> bool:
    """Whether the step may take more passes."""
    return s[0].passes[w] < s[0].settings.iterations[2]


@wp.func
def many_left(s: wp.array(dtype=Direct), w: int) -> bool:
    """Whether a part may be divided for the sake of contacts alone: else they stay as they are found, which is told."""
    return 8 * s[0].passes[w] < s[0].settings.iterations[2]


@wp.func
def stop_step(s: wp.array(dtype=Direct), w: int, share: real) -> int:
    """No passes are left: the rest of the step is made coarsely where that is a caller's cap; else the step is not made."""
    if s[0].settings.iterations[3] == 1:
        s[0].drift[w] = s[0].settings.dt[0] * share
        make_coarsely(s, w)
        return 1
    copy_state(s[0].safe, s[0].state, w)
    s[0].state.failed[w] = SPENT - worst_body(s, w)
    return 0


@wp.func
def touch_attempt(s: wp.array(dtype=Direct), w: int) -> bool:
    """A step of the length in `drift` with all contacts; returns whether its passes met."""
    open_points(s, w)
    s[0].touch.many[w] = 0
    s[0].touch.residual[w] = real(0.0)
    s[0].touch.eased[w] = 0
    met = bool(True)
    for turn in range(ROUNDS + 1):
        s[0].touch.turn[w] = turn
        push_bodies(s, w)
        met = attempt(s, w)
        if not met or is_last(s, w, turn):
            break
        if change_impulses(s, w, turn):
            break
    if met and s[0].touch.slick[w] == 0 and s[0].touch.many[w] == 0 and many_left(s, w):
        if gains(s, w):
            s[0].touch.residual[w] = wp.max(s[0].touch.residual[w], real(2.0) * JAMS)
        met = s[0].touch.residual[w] <= JAMS
    if met:
        take_apart(s, w)
    if s[0].touch.eased[w] == 1:
        hold_again(s, w)
    return met


def making(meet: Any, touching: bool, name: str) -> Any:
    """A part of a step by its passes, those of `meet`."""

    @wp.func(name=name)
    def make_part(s: wp.array(dtype=Direct), w: int, share: real, way: int) -> bool:
        s[0].drift[w] = s[0].settings.dt[0] * share
        if wp.static(touching):
            s[0].touch.slick[w] = int(way == SLICK)
        met = meet(s, w)
        s[0].pivots[w] = wp.max(s[0].pivots[w], s[0].done[w])
        return met

    return make_part


def keeping(touching: bool, name: str) -> Any:
    """A part that was met becomes the state: with contacts or without."""

    @wp.func(name=name)
    def keep_part(s: wp.array(dtype=Direct), w: int, part: int) -> bool:
        hard = s[0].stopped[w]
        s[0].stopped[w] = 0
        if part == 0:
            for j in range(s[0].scene_joints):
                s[0].state.dissipated[j, w] = real(0.0)
        finish(s, w)
        commit(s, w)
        if wp.static(touching):
            commit_points(s, w)
        if s[0].stopped[w] > 0:
            j = s[0].stopped[w] - 1
            s[0].state.dissipated[j, w] = s[0].state.dissipated[j, w] + project(s, w)
        elif hard != 0 and s[0].closures.count > 0:
            project(s, w)  # a singular pose lets in what does not fit the loops
        elif s[0].cables.count > 0:
            if any_struck(s, w):
                project(s, w)  # a cable that becomes taut does not throw back
        return True

    return keep_part


@wp.func
def ease_step(s: wp.array(dtype=Direct), w: int, size: int, way: int):
    """After a miss: no guess, then half the part; in a singular pose, where smaller is no easier, what a whole step can do.

    Bodies that jam, where friction lets no impulses be that meet all laws, slide in a part of the step, which is told.
    """
    if way == 0:
        copy_state(s[0].state, s[0].safe, w)  # the first miss of a step is of all of it
    jams = bool(False)
    if s[0].touching == 1:
        jams = s[0].touch.residual[w] > JAMS and way != SLICK
    if s[0].state.history[w] > 0:
        s[0].state.history[w] = 0
        if not jams:
            return size, 1
    if s[0].touching == 1 and way != SLICK and (4 * size <= FINEST or (jams and size < FINEST)):
        return size, SLICK
    if size > 1:
        return halve(size, wp.max(way, 1))
    copy_state(s[0].safe, s[0].state, w)
    if s[0].loose[w] == 0 and s[0].closures.count > 0:
        project_ahead(s, w)
        s[0].loose[w] = 1
        return FINEST, 1
    s[0].state.failed[w] = -1 - worst_body(s, w)
    return 0, 1


@wp.func
def end_step(s: wp.array(dtype=Direct), w: int, parts: int, ways: int):
    """Count the step, and the forces of one step as spent."""
    s[0].drift[w] = s[0].settings.dt[0]
    if s[0].touching == 1:
        tell_missed(s, w)
    spend_once(s, w)
    s[0].done[w] = replayed_by(s, w, s[0].pivots[w])
    s[0].parts[w] = parts
    if parts > 1:
        s[0].grades[DIVIDED, w] = s[0].grades[DIVIDED, w] + 1


def whole(meet: Any, touching: bool, name: str) -> Any:
    """A step in halves, quarters, … where passes do not meet: all of it, or nothing (`stepping`)."""
    make, keep = making(meet, touching, f"make_{name}"), keeping(touching, f"keep_{name}")
    return dividing(
        name, int(FINEST), start_step, make, keep, ease_step, end_step, may=passes_left, stop=stop_step, grows=touching
    )  # fmt: skip


whole_step = whole(attempt, False, "whole_step")
touching_step = whole(touch_attempt, True, "touching_step")


@wp.func
def rest(s: wp.array(dtype=Direct), w: int):
    """A step of a world in which all sleep."""
    for g in range(4):
        s[0].grades[g, w] = 0
    s[0].projected[w] = real(0.0)
    s[0].done[w] = 1
    s[0].parts[w] = 1
    s[0].residual[w] = real(0.0)
    wait(s[0].rest, w)
    count_step(s[0].tally, w, real(0.0), s[0].settings.tolerance[0], 1)


def make_kernel(module: str, touching: bool) -> Any:
    """The kernel for mechanisms without ropes, with contact or without."""

    one_step = touching_step if touching else whole_step

    @wp.kernel(module=module)
    def energy_steps(s: wp.array(dtype=Direct), first: int, n: wp.array(dtype=wp.int32)):
        """n steps of a world; where one cannot be made, the world is marked and its state stays."""
        w = first + wp.tid()
        if s[0].state.failed[w] != 0:
            return
        if n[w] == 0:
            return
        if wp.static(touching):
            rise(s[0].rest, w)
        else:
            wake_by_caller(s[0].rest, w)
        s[0].made[w] = n[w]
        step = int(0)
        if at_rest_together(s[0].rest, w):
            while step < n[w]:
                rest(s, w)
                step = step + 1
            return
        begin_call(s, w)
        used = int(0)
        while step < n[w] and s[0].state.failed[w] == 0:
            if used > s[0].settings.iterations[6]:
                s[0].made[w] = step
                break
            step = step + 1
            if at_rest_together(s[0].rest, w):
                rest(s, w)
                continue
            if s[0].drives.count > 0:
                set_drives(s, w, s[0].settings.dt[0], s[0].state.velocity, s[0].state.spin)
            one_step(s, w)
            used = used + s[0].passes[w]
            if s[0].state.failed[w] == 0:
                count_step(s[0].tally, w, s[0].residual[w], s[0].settings.tolerance[0], s[0].parts[w])
                fall_asleep(s[0].rest, w)
        end_call(s, w)

    return energy_steps


ALONE = make_kernel(MODULES[0], False)
TOUCHING = make_kernel(MODULES[1], True)
