"""Sleep (theory: contact): what stands still together is left out of steps until something happens to it.

A free body is idle since it was last anchored (`collision.still`): since then it has not moved by a micrometre. A body of a
mechanism, which may turn round slowly, is idle while it is also slower than 1e-7 of the scene's speed, and its drives do not
change; so is a rope. When all of an island, which joints, springs, gears, cables and contacts join, has been idle for half a
second, and no drive of it is commanded to move, it sleeps: it has no velocity and takes no kick, to others it is fixed, its
joints and points keep their impulses. Where there are ropes, and where nothing acts on joints, a world sleeps as a whole or not
at all. A world in which all sleep does nothing but wait. What wakes a body wakes its island: what a caller does to it, or
commands of its joints, other parameters, gravity or wind, a support that moves, and a moving body that touches it, or did.
"""

from typing import Any

import numpy as np
import warp as wp

from sharnir.collision.contact_cache import ASLEEP, AWAKE, WOKEN, is_tie_active, spread_waking
from sharnir.collision.data import Contacts
from sharnir.core.strided import of_first
from sharnir.core.types import alone, real, vec3
from sharnir.errors import SimulationError
from sharnir.model.joint_types import DriveTable, JointTable
from sharnir.model.kinematics import left_alone
from sharnir.model.model import (
    AXIS_COMMANDS,
    DRIVE_WORDS,
    DYNAMIC,
    FIXED,
    SLEEP_FIELDS,
    BodyTable,
    Control,
    Model,
    State,
    fill,
    scene_scale,
)

AFTER, NEVER_SLEEPS = 0.5, 1e30  # s
SLOWEST = 1e-7  # of the scene's speed (`solver.scene_scale`), about 1 m/s for 1 m: what is slower stands still
SAME_STATE = wp.constant(real(1.0e-9))  # of a drive's state, that may change in a step of one that stands still
NOBODY, ALL_REST, SOME_REST = (wp.constant(k) for k in range(3))  # of a world, who sleeps (`State.resting`)
WORDS_OF_DRIVE = wp.constant(DRIVE_WORDS)
AXIS_WORDS = wp.constant(len(AXIS_COMMANDS))


@wp.struct
class Rest:
    """All that falling asleep and waking read and write. Kernels have it as an array of one element."""

    bodies: BodyTable
    joints: JointTable  # the scene's own
    drives: DriveTable
    control: Control
    state: State  # the solver's: its velocities are those that move bodies
    now: State  # the caller's
    contacts: Contacts  # empty where nothing touches, but for what joins bodies
    dt: wp.array(dtype=real)
    gravity: wp.array(dtype=vec3)
    after: wp.array(dtype=real)  # s; from 1e30 on nothing sleeps
    reach: wp.array(dtype=real)  # [body] m, from the centre of mass to the farthest of its joints, about
    linked: wp.array(dtype=wp.int32)  # [body] 1: of a mechanism
    driven: wp.array(dtype=wp.int32)  # [speed] 1: what its servo does is a drive's of the table
    island: wp.array2d(dtype=wp.int32)  # [body, world]
    busy: wp.array2d(dtype=wp.int32)  # [body, world] 1: the island of which this is the first body stays awake
    slowest: real  # m/s, below which a body of a mechanism stands still
    touching: wp.int32  # 1: bodies may touch
    together: wp.int32  # 1: a world sleeps as a whole
    speeds: wp.int32
    ropes: wp.int32


def sleeps_after(model: Model, sleep: bool) -> Any:
    """s, after which what stands still sleeps, on the device; from 1e30 on it never does."""
    if not isinstance(sleep, bool):
        raise SimulationError(f"sleep is True or False, got {sleep!r}")
    return wp.array([AFTER if sleep else NEVER_SLEEPS], dtype=real, device=model.device)


def reaches(model: Model) -> np.ndarray:
    """(bodies,) m, from the centre of mass: its radius of gyration, or its farthest joint."""
    mass, inertia = of_first(model.bodies.mass), of_first(model.bodies.inertia)
    reach = np.sqrt(np.trace(inertia, axis1=1, axis2=2) / np.where(mass > 0, mass, np.inf))
    joints = model.joints
    if len(model.joint_kinds):
        for bodies, points in ((model.parents, of_first(joints.parent_point)), (model.children, of_first(joints.child_point))):
            np.maximum.at(reach, bodies, np.linalg.norm(points.astype(float), axis=1))
    return np.asarray(reach)


def joining(model: Model, state: State, control: Control) -> Any:
    """Contacts of a scene in which nothing touches: none, but for what joins bodies, and who sleeps."""
    contacts = Contacts()
    fill(contacts, model, None, "count pairs")
    for side, name in zip(model.ties().T, ("joined_a", "joined_b"), strict=True):
        setattr(contacts, name, wp.array(np.ascontiguousarray(side), dtype=wp.int32, device=model.device))
    for name in SLEEP_FIELDS:
        setattr(contacts, name, getattr(state, name))
    contacts.enabled = control.enabled
    return contacts


def rest_of(model: Model, settings: Any, inner: State, now: State, control: Control, contacts: Any) -> Any:
    """The structure, as an array of one, and itself; `inner` has the velocities that move bodies, `now` is the caller's."""
    r, device = Rest(), model.device
    r.bodies, r.joints, r.drives, r.control, r.state, r.now = model.bodies, model.joints, model.drives, control, inner, now
    r.contacts, r.dt, r.gravity, r.after = contacts, settings.dt, settings.gravity, settings.sleep
    r.slowest = SLOWEST * scene_scale(model, float(settings.dt.numpy()[0]))[2]
    r.reach = wp.array(reaches(model), dtype=real, device=device)
    linked, driven = np.zeros(len(model.com), np.int32), np.zeros(model.speeds, np.int32)
    linked[model.ties().ravel()] = 1
    driven[list(model.drive_rows)] = 1
    r.linked, r.driven = (wp.array(x, dtype=wp.int32, device=device) for x in (linked, driven))
    fill(r, model, len(model.com), "island busy")
    r.touching, r.together, r.speeds = int(model.collision is not None), int(model.ropes is not None), model.speeds
    if model.ropes is not None:
        r.ropes = model.ropes.count
    return alone(r, Rest, device), r


@wp.func
def sleeps(s: Any, b: int, w: int) -> bool:
    """Whether a body sleeps in this step of a solver."""
    if s[0].settings.sleep[0] >= real(1.0e30):
        return False
    return s[0].contacts.asleep[b, w] == ASLEEP


@wp.func
def at_rest_together(r: wp.array(dtype=Rest), w: int) -> bool:
    """Whether all of a world sleeps, and nothing is to be done in it."""
    if r[0].after[0] >= real(1.0e30):
        return False
    return r[0].now.resting[w] == ALL_REST


@wp.func
def wait(r: wp.array(dtype=Rest), w: int) -> None:
    """A step of a world that rests."""
    if r[0].now.failed[w] == 0:
        r[0].now.time[w] = r[0].now.time[w] + wp.float64(r[0].dt[0])


# ---- commands ---------------------------------------------------------------------------------------------------------------


@wp.func
def axis_command(c: Control, at: int, w: int, k: int) -> real:
    """One of the commands of an axis, in the order of AXIS_COMMANDS; those from 8 on a drive of the table writes itself."""
    if k == 0:
        return c.joint_force[at, w]
    if k == 1:
        return c.friction_static[at, w]
    if k == 2:
        return c.friction_dynamic[at, w]
    if k == 3:
        return c.friction_load[at, w]
    if k == 4:
        return c.friction_viscous[at, w]
    if k == 5:
        return c.friction_stribeck[at, w]
    if k == 6:
        return c.servo_position[at, w]
    if k == 7:
        return c.servo_kp[at, w]
    if k == 8:
        return c.servo_velocity[at, w]
    if k == 9:
        return c.servo_torque[at, w]
    if k == 10:
        return c.servo_kd[at, w]
    if k == 11:
        return c.servo_max_force[at, w]
    return c.voltage[at, w]


@wp.func
def is_new(r: wp.array(dtype=Rest), row: int, w: int, value: real, keep: int) -> bool:
    """Whether a value is another than the one that is remembered in a row of `State.told`; it may be remembered."""
    other = value != r[0].now.told[row, w]
    if keep == 1:
        r[0].now.told[row, w] = value
    return other


@wp.func
def joint_told(r: wp.array(dtype=Rest), j: int, w: int, keep: int) -> bool:
    """Whether commands of a joint are others than when its bodies fell asleep; or remember them."""
    other = is_new(r, AXIS_WORDS * r[0].speeds + j, w, real(r[0].control.enabled[j, w]), keep)
    words = int(AXIS_WORDS)  # a variable: Warp would write the loop out
    for at in range(r[0].joints.v_start[j], r[0].joints.v_start[j] + r[0].joints.v_size[j]):
        for k in range(words):
            if k < 8 or r[0].driven[at] == 0:
                other = is_new(r, AXIS_WORDS * at + k, w, axis_command(r[0].control, at, w, k), keep) or other
    return other


@wp.func
def drive_told(r: wp.array(dtype=Rest), i: int, w: int, keep: int) -> bool:
    """The same of a drive of the table; after them come the raycast wheels."""
    first = AXIS_WORDS * r[0].speeds + r[0].joints.count
    other = bool(False)
    for k in range(WORDS_OF_DRIVE * i, WORDS_OF_DRIVE * i + WORDS_OF_DRIVE):
        other = is_new(r, first + k, w, r[0].control.drive_command[k, w], keep) or other
    return other


@wp.func
def wheels_told(r: wp.array(dtype=Rest), w: int, keep: int) -> bool:
    """The same of all raycast wheels."""
    first = AXIS_WORDS * r[0].speeds + r[0].joints.count
    other = bool(False)
    for k in range(WORDS_OF_DRIVE * r[0].drives.count, r[0].control.drive_command.shape[0]):
        other = is_new(r, first + k, w, r[0].control.drive_command[k, w], keep) or other
    return other


@wp.func
def ropes_told(r: wp.array(dtype=Rest), w: int, keep: int) -> bool:
    """The same of all ropes: forces, reels, wind; and whether somebody moved them."""
    if r[0].ropes == 0:
        return False
    at = AXIS_WORDS * r[0].speeds + r[0].joints.count + r[0].control.drive_command.shape[0] + r[0].state.drive_state.shape[0]
    other = bool(False)
    for k in range(r[0].ropes):
        other = is_new(r, at, w, r[0].control.rope.reel_speed[k, w], keep) or other
        other = is_new(r, at + 1, w, r[0].control.rope.reel_to[k, w], keep) or other
        other = is_new(r, at + 2, w, real(r[0].now.rope.segments[k, w]), keep) or other
        at = at + 3
    for i in range(r[0].now.rope.position.shape[0]):
        for x in range(3):
            other = is_new(r, at + x, w, r[0].control.rope.force[i, w][x], keep) or other
            other = is_new(r, at + 3 + x, w, r[0].control.rope.torque[i, w][x], keep) or other
            other = is_new(r, at + 6 + x, w, r[0].now.rope.position[i, w][x], keep) or other
            other = other or r[0].now.rope.velocity[i, w][x] != real(0.0) or r[0].now.rope.spin[i, w][x] != real(0.0)
            other = other or r[0].control.rope.force_once[i, w][x] != real(0.0)
        other = is_new(r, at + 9, w, real(r[0].now.rope.cut[i, w]), keep) or other
        at = at + 10
    for x in range(3):
        other = is_new(r, at + x, w, r[0].control.rope.wind[w][x], keep) or other
    return other


@wp.func
def told_to_move(r: wp.array(dtype=Rest), j: int, w: int) -> bool:
    """Whether a servo of a joint is to turn it, whatever holds it."""
    if r[0].control.enabled[j, w] == 0:
        return False
    for at in range(r[0].joints.v_start[j], r[0].joints.v_start[j] + r[0].joints.v_size[j]):
        if r[0].control.servo_velocity[at, w] * r[0].control.servo_kd[at, w] != real(0.0):
            return True
    return False


# ---- waking -----------------------------------------------------------------------------------------------------------------


@wp.func
def rouse(r: wp.array(dtype=Rest), b: int, w: int) -> int:
    """Wake a body; 1 if it slept."""
    if r[0].contacts.asleep[b, w] != ASLEEP:
        return 0
    r[0].contacts.asleep[b, w] = WOKEN
    r[0].contacts.idle[b, w] = real(0.0)
    return 1


@wp.func
def is_disturbed(r: wp.array(dtype=Rest), b: int, w: int) -> bool:
    """Whether a caller has done something to a body since the last step; one that is driven is, while it moves."""
    if r[0].bodies.motion[b] == DYNAMIC:
        if not left_alone(r, b, w):
            return True
        quiet = r[0].control.force[b, w] == r[0].now.felt_force[b, w] and r[0].control.torque[b, w] == r[0].now.felt_torque[b, w]
        once = wp.length_sq(r[0].control.force_once[b, w]) + wp.length_sq(r[0].control.torque_once[b, w])
        return not quiet or once > real(0.0)
    return is_led(r, b, w)


@wp.func
def is_led(r: wp.array(dtype=Rest), b: int, w: int) -> bool:
    """Whether a kinematic body moves, or was put elsewhere."""
    if r[0].bodies.motion[b] == FIXED or r[0].bodies.motion[b] == DYNAMIC:
        return False
    moves = wp.length_sq(r[0].now.velocity[b, w]) + wp.length_sq(r[0].now.spin[b, w]) > real(0.0)
    stays = r[0].now.position[b, w] == r[0].now.kept_position[b, w] and r[0].now.rotation[b, w] == r[0].now.kept_rotation[b, w]
    return moves or not stays


@wp.func
def rise(r: wp.array(dtype=Rest), w: int) -> None:
    """What was woken in this step is awake."""
    if r[0].now.resting[w] == NOBODY:
        return
    for b in range(r[0].bodies.count):
        if r[0].contacts.asleep[b, w] == WOKEN:
            r[0].contacts.asleep[b, w] = AWAKE


@wp.func
def may_be_woken(r: wp.array(dtype=Rest), w: int) -> bool:
    """Whether somebody sleeps in a world."""
    if r[0].after[0] >= real(1.0e30):
        return False
    return r[0].now.resting[w] != NOBODY


@wp.func
def wake_by_caller(r: wp.array(dtype=Rest), w: int) -> None:
    """At the start of a step: wake what a caller has done something to, and see whether there is anything to do in this world."""
    if may_be_woken(r, w):
        wake_told(r, w, ropes_told(r, w, 0))


@wp.func
def wake_jointed(r: wp.array(dtype=Rest), w: int) -> None:
    """The same in a scene without ropes."""
    if may_be_woken(r, w):
        wake_told(r, w, False)


@wp.func
def wake_told(r: wp.array(dtype=Rest), w: int, told: bool) -> None:
    """Wake what a caller has done something to; all, if they are told so."""
    same = r[0].now.pull[w] == r[0].gravity[w]
    all = told or not same or wheels_told(r, w, 0)
    woke = int(0)
    moves = int(0)
    for b in range(r[0].bodies.count):
        if r[0].contacts.asleep[b, w] == ASLEEP:
            if all or is_disturbed(r, b, w):
                woke = woke + rouse(r, b, w)
        elif is_led(r, b, w):
            moves = 1
            for k in range(r[0].contacts.joined_a.shape[0]):
                if not is_tie_active(r, k, w):
                    continue
                if r[0].contacts.joined_a[k] == b:
                    woke = woke + rouse(r, r[0].contacts.joined_b[k], w)
                if r[0].contacts.joined_b[k] == b:
                    woke = woke + rouse(r, r[0].contacts.joined_a[k], w)
    all = all or (moves == 1 and r[0].together == 1)
    for j in range(r[0].joints.count):
        c = r[0].joints.child[j]
        p = r[0].joints.parent[j]
        if r[0].contacts.asleep[c, w] == ASLEEP or r[0].contacts.asleep[p, w] == ASLEEP:
            if joint_told(r, j, w, 0):
                woke = woke + rouse(r, c, w) + rouse(r, p, w)
    for i in range(r[0].drives.count):
        if drive_told(r, i, w, 0):
            j = r[0].drives.joint[i]
            woke = woke + rouse(r, r[0].joints.child[j], w) + rouse(r, r[0].joints.parent[j], w)
    if all or woke > 0:
        if r[0].together == 1:
            for b in range(r[0].bodies.count):
                rouse(r, b, w)
            r[0].now.quiet[w] = real(0.0)
        spread_waking(r, w)
        rise(r, w)
    if all or woke + moves > 0:  # whoever moves may wake others
        r[0].now.resting[w] = SOME_REST
        if r[0].together == 1:
            r[0].now.resting[w] = NOBODY


@wp.kernel(module="sharnir.waking")
def wake_called(r: wp.array(dtype=Rest), first: int) -> None:
    """Before contacts are looked for: a caller wakes what he does something to."""
    w = first + wp.tid()
    if r[0].now.failed[w] == 0:
        wake_by_caller(r, w)


# ---- falling asleep ---------------------------------------------------------------------------------------------------------


@wp.func
def count_idle(r: wp.array(dtype=Rest), w: int) -> bool:
    """After a step: how long bodies and ropes have stood still. Whether one has just done so for long enough, or for a multiple
    of that: then it is seen who may sleep.
    """
    dt = r[0].dt[0]
    after = r[0].after[0]
    due = bool(False)
    for k in range(r[0].state.drive_state.shape[0]):
        row = AXIS_WORDS * r[0].speeds + r[0].joints.count + r[0].control.drive_command.shape[0] + k
        now = r[0].state.drive_state[k, w]
        if wp.abs(now - r[0].now.told[row, w]) > SAME_STATE * (real(1.0) + wp.abs(now)):
            r[0].now.told[row, w] = now
            stir_drive(r, k, w)
    for b in range(r[0].bodies.count):
        if r[0].bodies.motion[b] == DYNAMIC and r[0].contacts.asleep[b, w] == AWAKE:
            idle = r[0].contacts.idle[b, w]
            if r[0].touching == 0 or r[0].linked[b] == 1:
                turning = wp.length_sq(r[0].state.spin[b, w]) * r[0].reach[b] * r[0].reach[b]
                if not wp.length_sq(r[0].state.velocity[b, w]) + turning <= r[0].slowest * r[0].slowest:
                    idle = real(0.0)
                elif r[0].touching == 0:  # where bodies touch, it is counted where contacts are found
                    idle = idle + dt
                r[0].contacts.idle[b, w] = idle
            if idle >= after:
                due = due or comes_round(idle, after, dt)
    if r[0].ropes > 0:
        quiet = r[0].now.quiet[w] + dt
        for i in range(r[0].now.rope.velocity.shape[0]):
            length = r[0].now.rope.length[i, w]
            turning = wp.length_sq(r[0].now.rope.spin[i, w]) * length * length
            if not wp.length_sq(r[0].now.rope.velocity[i, w]) + turning <= r[0].slowest * r[0].slowest:
                quiet = real(0.0)
        r[0].now.quiet[w] = quiet
        if quiet >= after:
            due = due or comes_round(quiet, after, dt)
    return due


@wp.func
def comes_round(idle: real, after: real, dt: real) -> bool:
    """Whether a time has just come to the one after which bodies sleep, or to a multiple of it."""
    return wp.floor(idle / after) > wp.floor((idle - dt) / after)


@wp.func
def stir_drive(r: wp.array(dtype=Rest), k: int, w: int) -> None:
    """A word of the drives' state has changed: bodies of that drive are not idle; of a battery or a raycast wheel, none is."""
    if k < WORDS_OF_DRIVE * r[0].drives.count:
        j = r[0].drives.joint[k // WORDS_OF_DRIVE]
        r[0].contacts.idle[r[0].joints.child[j], w] = real(0.0)
        r[0].contacts.idle[r[0].joints.parent[j], w] = real(0.0)
    else:
        for b in range(r[0].bodies.count):
            r[0].contacts.idle[b, w] = real(0.0)


@wp.func
def join_islands(r: wp.array(dtype=Rest), a: int, b: int, w: int) -> int:
    """Two bodies are of one island; 1 where they were not."""
    if r[0].bodies.motion[a] != DYNAMIC or r[0].bodies.motion[b] != DYNAMIC:
        return 0
    if r[0].island[a, w] == r[0].island[b, w]:
        return 0
    least = wp.min(r[0].island[a, w], r[0].island[b, w])
    r[0].island[a, w] = least
    r[0].island[b, w] = least
    return 1


@wp.func
def find_islands(r: wp.array(dtype=Rest), w: int) -> None:
    """Bodies that joints and contacts join get one number, that of the first of them."""
    for b in range(r[0].bodies.count):
        r[0].island[b, w] = b * (1 - r[0].together)
        r[0].busy[b, w] = 0
    changed = int(1 - r[0].together)
    while changed > 0:
        changed = int(0)
        for k in range(r[0].contacts.joined_a.shape[0]):
            if is_tie_active(r, k, w):
                changed = changed + join_islands(r, r[0].contacts.joined_a[k], r[0].contacts.joined_b[k], w)
        for k in range(r[0].contacts.pairs[w]):
            p = r[0].contacts.pair_first[k, w]
            changed = changed + join_islands(r, r[0].contacts.body_a[p, w], r[0].contacts.body_b[p, w], w)


@wp.func
def find_busy(r: wp.array(dtype=Rest), w: int) -> None:
    """Islands that stay awake: of which a body has moved of late, or is led, or has a drive that is commanded to move."""
    for b in range(r[0].bodies.count):
        if r[0].bodies.motion[b] == DYNAMIC and r[0].contacts.asleep[b, w] == AWAKE and r[0].contacts.idle[b, w] < r[0].after[0]:
            r[0].busy[r[0].island[b, w], w] = 1
    if r[0].together == 1:
        for b in range(r[0].bodies.count):
            if is_led(r, b, w):
                r[0].busy[0, w] = 1
    for k in range(r[0].contacts.joined_a.shape[0]):
        a = r[0].contacts.joined_a[k]
        b = r[0].contacts.joined_b[k]
        if not is_tie_active(r, k, w):
            continue
        if is_led(r, a, w):
            r[0].busy[r[0].island[b, w], w] = 1
        if is_led(r, b, w):
            r[0].busy[r[0].island[a, w], w] = 1
    for j in range(r[0].joints.count):
        if told_to_move(r, j, w):
            r[0].busy[r[0].island[r[0].joints.child[j], w], w] = 1
            r[0].busy[r[0].island[r[0].joints.parent[j], w], w] = 1
    if r[0].ropes > 0:
        if r[0].now.quiet[w] < r[0].after[0]:
            r[0].busy[0, w] = 1
        for k in range(r[0].ropes):
            if r[0].now.rope.reel_rate[k, w] != real(0.0):
                r[0].busy[0, w] = 1


@wp.func
def lay_down(r: wp.array(dtype=Rest), b: int, w: int) -> None:
    """A body sleeps from now on: it has no velocity left. What it is left as, and what acts on it, is remembered."""
    zero = vec3(real(0.0))
    r[0].contacts.asleep[b, w] = ASLEEP
    r[0].state.velocity[b, w] = zero
    r[0].state.momentum[b, w] = zero
    r[0].state.spin[b, w] = zero
    r[0].now.velocity[b, w] = zero
    r[0].now.momentum[b, w] = zero
    r[0].now.spin[b, w] = zero
    r[0].now.acceleration[b, w] = zero
    r[0].now.kept_velocity[b, w] = zero
    r[0].now.kept_momentum[b, w] = zero
    r[0].now.kept_position[b, w] = r[0].now.position[b, w]
    r[0].now.kept_rotation[b, w] = r[0].now.rotation[b, w]
    r[0].now.felt_force[b, w] = r[0].control.force[b, w]
    r[0].now.felt_torque[b, w] = r[0].control.torque[b, w]


@wp.func
def save_commands(r: wp.array(dtype=Rest), w: int) -> None:
    """What is commanded of what sleeps; all else that may wake it."""
    for j in range(r[0].joints.count):
        if r[0].contacts.asleep[r[0].joints.child[j], w] == ASLEEP or r[0].contacts.asleep[r[0].joints.parent[j], w] == ASLEEP:
            joint_told(r, j, w, 1)
    for i in range(r[0].drives.count):
        drive_told(r, i, w, 1)
    wheels_told(r, w, 1)
    for b in range(r[0].bodies.count):
        if r[0].bodies.motion[b] != DYNAMIC:
            r[0].now.kept_position[b, w] = r[0].now.position[b, w]
            r[0].now.kept_rotation[b, w] = r[0].now.rotation[b, w]
    r[0].now.pull[w] = r[0].gravity[w]


@wp.func
def look_round(r: wp.array(dtype=Rest), w: int) -> None:
    """Who sleeps in a world, where somebody does: all, unless one is awake or is led."""
    rests = int(ALL_REST)
    for b in range(r[0].bodies.count):
        if r[0].bodies.motion[b] == DYNAMIC:
            if r[0].contacts.asleep[b, w] != ASLEEP:
                rests = SOME_REST
        elif is_led(r, b, w):
            rests = SOME_REST
    r[0].now.resting[w] = rests


@wp.func
def lay_islands(r: wp.array(dtype=Rest), w: int) -> int:
    """Islands that are not busy sleep; 1 if there is one."""
    find_islands(r, w)
    find_busy(r, w)
    slept = int(0)
    for b in range(r[0].bodies.count):
        if r[0].bodies.motion[b] == DYNAMIC and r[0].contacts.asleep[b, w] == AWAKE:
            if r[0].busy[r[0].island[b, w], w] == 0:
                lay_down(r, b, w)
                slept = 1
    return slept


@wp.func
def fall_asleep(r: wp.array(dtype=Rest), w: int) -> None:
    """At the end of a step: islands that have been idle long enough sleep. It is looked for when one has just been so."""
    if r[0].after[0] >= real(1.0e30):
        return
    if count_idle(r, w):
        slept = lay_islands(r, w)
        if r[0].ropes > 0 and r[0].busy[0, w] == 0:
            lay_ropes(r, w)
            slept = 1
        if slept == 1:
            save_commands(r, w)
            look_round(r, w)
    elif r[0].now.resting[w] == SOME_REST:
        look_round(r, w)


@wp.func
def fall_asleep_jointed(r: wp.array(dtype=Rest), w: int) -> None:
    """The same in a scene without ropes."""
    if r[0].after[0] >= real(1.0e30):
        return
    if count_idle(r, w):
        if lay_islands(r, w) == 1:
            save_commands(r, w)
            look_round(r, w)
    elif r[0].now.resting[w] == SOME_REST:
        look_round(r, w)


@wp.func
def lay_ropes(r: wp.array(dtype=Rest), w: int) -> None:
    """All ropes sleep from now on."""
    zero = vec3(real(0.0))
    for i in range(r[0].now.rope.velocity.shape[0]):
        r[0].now.rope.velocity[i, w] = zero
        r[0].now.rope.spin[i, w] = zero
        r[0].now.rope.kept_velocity[i, w] = zero
        r[0].now.rope.kept_spin[i, w] = zero
        r[0].now.rope.gain[i, w] = zero
        r[0].now.rope.spin_gain[i, w] = zero
        r[0].now.rope.smooth[i, w] = zero
        r[0].now.rope.spin_smooth[i, w] = zero
    ropes_told(r, w, 1)
