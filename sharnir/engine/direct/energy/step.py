"""The step that keeps energy and momenta, without its ropes: joints closed by the means of their vectors (theory).

    M (V₁ − V₀) = Δt F + J̄ᵀp,     x₁ = x₀ + Δt v̄,  R₁ = cay(Δt ω̄) R₀,  V̄ = ½(V₀ + V₁),     G(x₁, R₁) = 0

J̄ has every arm and axis as the mean of those at the start and at the end of the step (`means`), so that closed joints do no
work, whatever the masses and the step. Velocities belong to the pose. A step is solved about a guess of its end by the passes of
`links`, laws included; passes over vectors with the same factors (`lack_inward`, `place`) then bring momenta, moments and
gaps to rounding. Momentum is met link by link, from the leaves inwards, which gives what each joint carries; what that is along
a free axis, beyond what acts there, is what a pass corrects. Where passes do not meet, the step is made in parts.
"""

import warp as wp

from sharnir.core.types import real, vec3
from sharnir.engine.articulated.data import natural
from sharnir.engine.direct.data import DIVIDED, Direct
from sharnir.engine.direct.energy.passes import RESTS
from sharnir.engine.direct.energy.touch import tell_missed
from sharnir.engine.direct.modified import any_switched, pushed, untouched
from sharnir.engine.guard import count_step
from sharnir.engine.sleep import wait
from sharnir.laws.prepare import axis_unit
from sharnir.model.joint_geometry import free_axis
from sharnir.model.kinematics import pose_at
from sharnir.model.model import State

GPU_LEVEL = 2  # a third of the time to compile; balls step a quarter faster on an H200, with friction a third, an arm 12 % slower


@wp.func
def replayed_by(s: wp.array(dtype=Direct), w: int, pivots: int) -> int:
    """The cap that leads to the same step (`SolverDirect._caps`); `pivots`: most passes in which laws of a part were found."""
    beyond = wp.min(s[0].passes[w], s[0].settings.iterations[2]) - s[0].settings.iterations[4]
    return wp.max((pivots - 1) * s[0].settings.iterations[5] + 1, beyond)


# ---- a step for which there is no time --------------------------------------------------------------------------------------


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
