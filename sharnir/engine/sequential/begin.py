"""The start of a sequential step: kinematic bodies are driven, the others take forces and half kicks."""

import warp as wp

from sharnir.core.spatial import rotated
from sharnir.core.types import mat33, real, vec3
from sharnir.engine.sequential.actions import show_currents
from sharnir.engine.sequential.data import POSITIONS, VELOCITIES, Step
from sharnir.engine.sequential.prepare import MODE_ACTS
from sharnir.engine.sleep import at_rest_together, sleeps, wake_by_caller
from sharnir.laws.drives import set_drives
from sharnir.model.kinematics import left_alone
from sharnir.model.model import DYNAMIC, KINEMATIC

# ---- half kicks --------------------------------------------------------------------------------------------------------


@wp.func
def is_unmodified(s: wp.array(dtype=Step), w: int) -> bool:
    """Whether bodies stand and move as the last step, or reading it, left them."""
    for b in range(s[0].bodies.count):
        if s[0].bodies.motion[b] == DYNAMIC:
            if not left_alone(s, b, w):
                return False
    return True


@wp.func
def resume_velocities(s: wp.array(dtype=Step), w: int) -> None:
    """Velocities half a step before the pose go on; where a caller changed the state, those of the pose, with half a kick."""
    dt = s[0].settings.dt[0]
    if s[0].settings.halves[0] == 0:  # kicks are whole, whatever forces a caller changed
        s[0].state.stagger[w] = real(0.5) * dt
        for b in range(s[0].bodies.count):
            s[0].state.felt_force[b, w] = s[0].control.force[b, w]
            s[0].state.felt_torque[b, w] = s[0].control.torque[b, w]
        for at in range(s[0].state.felt_joint.shape[0]):
            s[0].state.felt_joint[at, w] = s[0].control.joint_force[at, w]
    elif not is_unmodified(s, w):
        s[0].state.stagger[w] = real(0.0)
        for b in range(s[0].bodies.count):
            s[0].state.velocity[b, w] = s[0].now.velocity[b, w]
            s[0].state.momentum[b, w] = s[0].now.momentum[b, w]
            if s[0].bodies.motion[b] == KINEMATIC:
                s[0].state.momentum[b, w] = s[0].now.spin[b, w]
        for at in range(s[0].state.current.shape[0]):
            s[0].state.current[at, w] = s[0].now.current[at, w]
            s[0].state.creep[at, w] = real(0.0)
    s[0].settings.kick[w] = s[0].state.stagger[w] + real(0.5) * dt


@wp.func
def bring_to_pose(s: wp.array(dtype=Step), w: int) -> None:
    """Velocities are to be brought to the pose: by the half kick that the last step left, if it left one."""
    s[0].work.sweeps[w] = s[0].solves[VELOCITIES].done[w]
    s[0].work.left[w] = s[0].solves[VELOCITIES].residual[w]
    s[0].settings.kick[w] = wp.max(s[0].state.stagger[w], real(1.0e-6) * s[0].settings.dt[0])


@wp.kernel(module="sharnir.impulse")
def show(s: wp.array(dtype=Step), first: int) -> None:
    """Hand what the half kick led to to the caller: velocities and reactions at the pose. The motion goes on without it."""
    w = first + wp.tid()
    solve = s[0].solves[VELOCITIES]
    kick = s[0].settings.kick[w]
    if s[0].state.failed[w] == 0 and is_unmodified(s, w) and s[0].state.stagger[w] > real(0.0):
        for b in range(s[0].bodies.count):
            if s[0].bodies.motion[b] == DYNAMIC:
                v = at_rest(solve.twist.linear[b, w], s[0].settings.nothing[0])
                L = at_rest(taken_momentum(s, b, w), s[0].settings.nothing[1])
                q = s[0].state.rotation[b, w]
                s[0].now.acceleration[b, w] = (v - s[0].state.velocity[b, w]) / kick
                s[0].now.velocity[b, w] = v
                s[0].now.kept_velocity[b, w] = v
                s[0].now.momentum[b, w] = L
                s[0].now.kept_momentum[b, w] = L
                s[0].now.spin[b, w] = wp.quat_rotate(q, s[0].bodies.inv_inertia[b, w] * wp.quat_rotate_inv(q, L))
        for k in range(s[0].joints.count):
            s[0].now.joint_force[k, w] = solve.force[k, w] * (s[0].settings.dt[0] / kick)
            s[0].now.joint_torque[k, w] = solve.torque[k, w] * (s[0].settings.dt[0] / kick)
            if s[0].work.mode[k, w] & MODE_ACTS != 0:
                show_currents(s, solve, k, w)
    solve.done[w] = s[0].work.sweeps[w]
    solve.residual[w] = s[0].work.left[w]


# ---- external forces --------------------------------------------------------------------------------------------------


@wp.kernel(module="sharnir.impulse")
def predict(s: wp.array(dtype=Step), first: int, reading: int) -> None:
    """How long the kick lasts, and what external forces do in it; or, for reading, in the half kick to the pose."""
    w = first + wp.tid()
    if reading == 1:
        bring_to_pose(s, w)
    elif s[0].state.failed[w] == 0:
        wake_by_caller(s[0].rest, w)
        if at_rest_together(s[0].rest, w):
            s[0].solves[VELOCITIES].done[w] = 0
            s[0].solves[VELOCITIES].residual[w] = real(0.0)
            return
        resume_velocities(s, w)
    for b in range(s[0].bodies.count):
        kick_body(s, b, w, reading)
    if s[0].drives.count > 0 and reading == 0:
        twist = s[0].solves[VELOCITIES].twist
        set_drives(s, w, s[0].settings.dt[0], twist.linear, twist.angular)
    s[0].solves[VELOCITIES].done[w] = -1  # neither solve has begun
    s[0].solves[POSITIONS].done[w] = -1


@wp.func
def drive_body(s: wp.array(dtype=Step), b: int, w: int, reading: int) -> tuple[vec3, vec3]:
    """Velocity and spin of a kinematic body: as they are set; at the pose, where they lead along a path, as they change.

    Those of the step before are in state.velocity and, a driven body having no momentum, state.momentum.
    """
    v = s[0].now.velocity[b, w]
    omega = s[0].now.spin[b, w]
    if reading == 0:
        s[0].work.driven_v[b, w] = s[0].state.velocity[b, w]
        s[0].work.driven_w[b, w] = s[0].state.momentum[b, w]
    elif s[0].work.follows[b] == 1:
        v = v + (v - s[0].work.driven_v[b, w]) * real(0.5)
        omega = omega + (omega - s[0].work.driven_w[b, w]) * real(0.5)
    return v, omega


@wp.func
def kick_body(s: wp.array(dtype=Step), b: int, w: int, reading: int) -> None:
    """V ← V + M⁻¹ Fᵉ h, h the kick; the gyroscopic moment is in ω = I⁻¹(q) L.

    A caller's force acts from the step in which it is set on: half a kick is the last step's, half this one's.
    """
    twist = s[0].solves[VELOCITIES].twist
    dt = s[0].settings.dt[0]
    kick = s[0].settings.kick[w]
    v = s[0].now.velocity[b, w]
    omega = s[0].now.spin[b, w]
    before = omega
    J = mat33(real(0.0))
    s[0].work.inv_mass[b, w] = real(0.0)
    if sleeps(s, b, w):
        v = vec3(real(0.0))
        omega = v
        before = v
        s[0].work.momentum[b, w] = v
        s[0].work.gyro[b, w] = v
    elif s[0].bodies.motion[b] == DYNAMIC:
        s[0].work.inv_mass[b, w] = s[0].bodies.inv_mass[b, w]
        v = s[0].state.velocity[b, w]
        L = s[0].state.momentum[b, w]
        J = rotated(wp.quat_to_matrix(s[0].state.rotation[b, w]), s[0].bodies.inv_inertia[b, w])
        before = J * L
        past = s[0].state.stagger[w]
        f = s[0].state.felt_force[b, w] * past
        l = s[0].state.felt_torque[b, w] * past
        if reading == 0:
            f = f + s[0].control.force[b, w] * (kick - past) + s[0].control.force_once[b, w] * dt
            l = l + s[0].control.torque[b, w] * (kick - past) + s[0].control.torque_once[b, w] * dt
        L = L + l
        v = v + s[0].settings.gravity[w] * kick + f * s[0].bodies.inv_mass[b, w]
        omega = J * L
        s[0].work.momentum[b, w] = L
        s[0].work.gyro[b, w] = J * wp.cross(L, omega)
    elif s[0].bodies.motion[b] == KINEMATIC:
        v, omega = drive_body(s, b, w, reading)
        before = s[0].state.momentum[b, w]
    s[0].work.inv_inertia[b, w] = J
    twist.linear[b, w] = v
    twist.angular[b, w] = omega
    s[0].work.spin_start[b, w] = omega
    s[0].state.spin[b, w] = before


# ---- positions ------------------------------------------------------------------------------------------------------------


@wp.func
def taken_momentum(s: wp.array(dtype=Step), b: int, w: int) -> vec3:
    """L after the impulses that ω took."""
    q = s[0].state.rotation[b, w]
    taken = wp.quat_rotate_inv(q, s[0].solves[VELOCITIES].twist.angular[b, w] - s[0].work.spin_start[b, w])
    return s[0].work.momentum[b, w] + wp.quat_rotate(q, s[0].bodies.inertia[b, w] * taken)


@wp.func
def at_rest(v: vec3, nothing: real) -> vec3:
    """v, or zero where nothing is left of it: speeds of held joints shrink for ever, and denormal numbers are slow."""
    if wp.length_sq(v) < nothing * nothing:
        return vec3(real(0.0))
    return v
