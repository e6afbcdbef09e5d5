"""Steps of a simulation's trees: what the emitted step (`code`) is given, and what the state has after it.

A call begins with what the caller changed: forces, commands, poses or velocities. Where bodies were moved, coordinates and twists
are taken from their poses and velocities, which are then projected on what the joints allow (`load`). Afterwards bodies stand
where the coordinates put them (`store`).
"""

from __future__ import annotations

from typing import Any

import warp as wp

from sharnir.collision.data import Contacts, ShapeTable
from sharnir.core.spatial import exp_quat, unit
from sharnir.core.types import PRECISION, quat, real, vec3
from sharnir.engine.guard import count_step
from sharnir.engine.guard_data import Tally
from sharnir.engine.sleep import Rest, sleeps, wait
from sharnir.engine.tree.build import LOOSE_MASK
from sharnir.engine.tree.code import stored_fields
from sharnir.engine.tree.forest import BALL, FREE, HINGE, OFF, PRESCRIBED, ROTOR, SLIDER, SLIDES, TURNS, WELD
from sharnir.engine.tree.storage import PREPARED, ROW, ROW_APART, START, TOGETHER
from sharnir.laws.casts import CastTable
from sharnir.model.cables import CableTable
from sharnir.model.joint_geometry import child_frame, coordinate, free_axis, parent_frame
from sharnir.model.joint_types import AxisTable, DriveTable, JointTable
from sharnir.model.kinematics import pose_at
from sharnir.model.model import DYNAMIC, KINEMATIC, BodyTable, Control, SpringTable, State

CPP = {"double": "double", "single": "float"}[PRECISION]
IS_PREPARED = wp.constant(PREPARED)  # in the working memory
BROKE = wp.constant(1)  # bits of what may change in a call
IS_LOOSE = wp.constant(LOOSE_MASK)  # of a joint that leaves all six axes free
RESTS = wp.constant(real(1e-9))  # of the largest speed: an axis that is slower is at rest
OWN_AXES = 1024  # is added to the gear that is stored, where twists are in the links' own axes, not in the world's
IS_OWN = wp.constant(real(OWN_AXES))
# why a world is left to the code for any forest: joints are disabled or bodies sleep, outer forces, laws, the exact derivative
OTHER_KINDS, OUTER_FORCES, LAWS_CHANGED, STEEP = range(1, 5)
SLOTS = 3  # last steps of a call that are logged: what joints carry and accelerations at its end follow from them
LOGGED = {"V": 3, "W": 3, "reaction_f": 3, "reaction_n": 3, "mean_axis": 3}
LOGGED |= {"p_axis": 3, "p_friction": 3, "p_limit": 3, "p_drive": 3, "p_lost": 1}
"""In the world's axes: velocity and spin at the start of the step, and what it reports; impulses of up to three axes."""
LOG_ROW = sum(LOGGED.values())
LOG_SIZE = wp.constant(LOG_ROW)
LOG_V, LOG_W, LOG_F, LOG_N, LOG_AXIS, LOG_P_AXIS, LOG_P_FRICTION, LOG_P_LIMIT, LOG_P_DRIVE, LOG_P_LOST = (
    wp.constant(3 * k) for k in range(len(LOGGED))
)
LOG_SLOTS, WARP = wp.constant(SLOTS), wp.constant(TOGETHER)
IS_OTHER, IS_PUSHED, HAS_LAWS, IS_STEEP = (wp.constant(k) for k in (OTHER_KINDS, OUTER_FORCES, LAWS_CHANGED, STEEP))


def _places(kind: int) -> dict[str, Any]:
    """Where fields of a link of some kind are stored, from its first row on."""
    out, at = {}, 0
    for name, size in stored_fields(kind, True, CPP):
        out[name], at = wp.constant(at), at + size
    return out


HINGE_AT, SLIDER_AT, BALL_AT, FREE_AT, WELD_AT = (_places(kind) for kind in (HINGE, SLIDER, BALL, FREE, WELD))
# after as many rows as any kind needs, the kind itself
KIND_AT = wp.constant(sum(size for _, size in stored_fields(FREE, real=CPP)))
CHANGE_AT = wp.constant(int(KIND_AT) + 1)  # and how force and moment of its joint changed in the step before
SIGN_AT = wp.constant(int(CHANGE_AT) + 6)  # ±1: by which the product of rotations is that of the body's quaternion
ROOM = int(SIGN_AT) + 1  # rows of a link
Q, STUCK, LIMIT, SU, CURRENT, MOTOR_SPEED = (
    SLIDER_AT[name] for name in ("q", "stuck", "limit", "SU", "current", "rotor")
)  # of a hinge, too
COSINE, SINE = HINGE_AT["c"], HINGE_AT["s"]
FREE_ROTATION, FREE_POSITION, FREE_ZV, FREE_ZL, FREE_ZV1, FREE_ZL1 = (
    FREE_AT[name] for name in ("rotation", "position", "zv", "zl", "zv1", "zl1")
)
BALL_ROTATION, BALL_STUCK, BALL_LIMIT, BALL_HISTORY = (BALL_AT[name] for name in ("rotation", "stuck_3", "limit_3", "zv"))
V_HINGE, V_SLIDER, V_BALL, V_FREE, V_WELD = (at["V"] for at in (HINGE_AT, SLIDER_AT, BALL_AT, FREE_AT, WELD_AT))
SLIDES_AT, TURNS_AT = _places(SLIDES), _places(TURNS)
V_SLIDES, V_TURNS, TURNS_ROTATION = SLIDES_AT["V"], TURNS_AT["V"], TURNS_AT["rotation"]
IS_SLIDES, IS_TURNS = wp.constant(SLIDES), wp.constant(TURNS)
AFTER_ROTATION = wp.constant(4)  # numbers of a rotation, after which those of turns are as those of slides
SLIDES_Q, SLIDES_STUCK, SLIDES_LIMIT = (SLIDES_AT[name] for name in ("position", "stuck_3", "limit_3"))
MEMORY_ROW, MEMORY_APART = wp.constant(ROW), wp.constant(ROW_APART)
P_AXIS_3, P_FRICTION_3, P_LIMIT_3, P_DRIVE_3 = (
    wp.constant(START[n]) for n in ("p_axis_3", "p_friction_3", "p_limit_3", "p_drive_3")
)
REACTION, MOMENT, AXIS_MEAN = (wp.constant(START[n]) for n in ("reaction_f", "reaction_n", "mean_axis"))
PUSH_F, PUSH_N = (wp.constant(START[n]) for n in ("push_f", "push_n"))
P_AXIS, P_FRICTION, P_LIMIT, P_DRIVE, P_LOST = (
    wp.constant(START[n]) for n in ("p_axis", "p_friction", "p_limit", "p_drive", "p_lost")
)
IS_HINGE, IS_SLIDER, IS_BALL, IS_FREE, IS_WELD, IS_PRESCRIBED, IS_ROTOR, IS_OFF = (
    wp.constant(k) for k in (HINGE, SLIDER, BALL, FREE, WELD, PRESCRIBED, ROTOR, OFF)
)


@wp.struct
class TreeSettings:
    """Numbers that may change between steps, one element each unless said, so that a captured step reads them."""

    dt: wp.array(dtype=real)  # s
    gravity: wp.array(dtype=vec3)  # [world] m/s²
    tolerance: wp.array(dtype=real)  # of the guard's counts
    per_metre: wp.array(dtype=real)  # 1/m, one over the scene's length
    # [1] most passes of an iteration, [2] of a step, [3] 1: which then ends as it is; [6] most steps of a launch, [7] 1: a launch
    # of a call that another began, whose counts go on; [8] steps of a call that is made by launches, 0: what each carries is read
    iterations: wp.array(dtype=wp.int32)
    sleep: wp.array(dtype=real)  # s, after which bodies that stand still sleep


@wp.struct
class Impacts:
    """What steps tell of points of contact, [point, world], see `TreeStep`."""

    blow: wp.array2d(dtype=vec3)
    slip: wp.array2d(dtype=vec3)
    bend: wp.array2d(dtype=real)


@wp.struct
class TreeStep:
    """All that steps of trees read and write. Kernels have it as an array of one element."""

    bodies: BodyTable
    joints: JointTable
    axes: AxisTable
    drives: DriveTable
    control: Control
    state: State
    now: State  # the same
    settings: TreeSettings
    contacts: Contacts  # none, but for who sleeps
    rest: wp.array(dtype=Rest)
    tally: wp.array(dtype=Tally)
    links: wp.int32
    worlds: wp.int32
    base_built: wp.array(dtype=wp.int32)  # [link] as all joints hold
    kind_built: wp.array(dtype=wp.int32)
    joint: wp.array(dtype=wp.int32)  # [link] −1: none of the scene's
    body: wp.array(dtype=wp.int32)  # [link] −1: inside a joint with several axes, or a part of a body that another link has
    cut: wp.array(dtype=wp.int32)  # [link] 1: such a part
    geared: wp.array(dtype=wp.int32)  # [link] 1: a gear acts on its axis, or on one of a joint that leaves all six free
    carries: wp.array(dtype=wp.int32)  # [link] the body that its joint carries
    number: wp.array(dtype=wp.int32)  # [link] of its (first) axis among those of its joint
    axis: wp.array(dtype=wp.int32)  # [link] of its (first) axis among all speeds; −1: none
    sense: wp.array(dtype=wp.int32)  # [link] −1: the body is the joint's parent
    slides: wp.array(dtype=wp.int32)  # [link] axes of one that has several
    first: wp.array(dtype=wp.int32)  # [link] first row in `State.tree`
    frame: wp.array2d(dtype=quat)  # [link, world] of the joint in the base's link frame
    anchor: wp.array2d(dtype=vec3)  # [link, world] m
    com: wp.array2d(dtype=vec3)  # [link, world] m, of the body in the link frame
    own_turn: wp.array2d(dtype=quat)  # [link, world] the link frame in the body's axes
    own_point: wp.array2d(dtype=vec3)  # [link, world] m, its origin from the centre of mass
    base: wp.array(dtype=wp.int32)  # [link + links · world] as it is
    kind: wp.array(dtype=wp.int32)
    acts: wp.array(dtype=wp.int32)  # whether laws act on its axes
    parameters: wp.array(dtype=real)  # [number of the link, world or all] see `Plan.table`
    parameter_stride: wp.int32
    parameter_world: wp.int32
    memory: wp.array(dtype=real)  # working memory of the emitted code; on a GPU [worlds / TOGETHER, number, world of these]
    memory_number: wp.int32  # strides: of a number, and of a world among TOGETHER of them
    memory_world: wp.int32
    lanes: wp.int32  # threads of a warp that have a world, on a GPU; 0: all
    memory_worlds: wp.int32  # that have it at a time; fewer than all: those of one launch, 0: none
    closures: wp.int32  # beside the forest; see `closures`
    closure_kind: wp.array(dtype=wp.int32)
    closure_a: wp.array(dtype=wp.int32)  # [closure] links
    closure_b: wp.array(dtype=wp.int32)
    closure_item: wp.array(dtype=wp.int32)  # [closure] joint, gear, spring, span, run or cast wheel
    closure_first: wp.int32  # row of `State.tree` from which on it says which closures hold
    springs: SpringTable
    cables: CableTable
    casts: CastTable
    cast_belt: wp.array(dtype=wp.int32)  # [cast wheel] its belt
    cast_closure: wp.array(dtype=wp.int32)  # [belt] of a raycast wheel
    row_tables: wp.array(dtype=wp.int32)  # `row_storage.packed_tables`
    row_numbers: wp.array(dtype=real)  # [number of the closure, world]
    row_stride: wp.int32
    row_world: wp.int32
    row_table_size: wp.int32  # where every world has its own tables: their size, and strides as those of `memory`
    row_table_number: wp.int32
    row_table_world: wp.int32
    memory_size_of_world: wp.int32  # numbers of working memory of a world; 0: worlds of a thread share one
    link_of: wp.array(dtype=wp.int32)  # [body] −1: it is fixed
    most_laws: wp.int32  # closures, rows and links on their paths for which there is room, of contacts and laws of axes
    most_rows: wp.int32
    most_paths: wp.int32
    most_entries: wp.int32  # of the matrices of islands
    point_of: wp.array(dtype=wp.int32)  # [closure of these + most_laws · world] its point of contact, −1: none
    shapes: ShapeTable
    blow: wp.array2d(dtype=vec3)  # [point, world] N·s on b, of impacts; and m/s, how it slips at the end of the step
    slip: wp.array2d(dtype=vec3)
    bend: wp.array2d(dtype=real)  # [point, world] m, of its gap at the end of the step: what turning adds beyond its first order
    unsolved: wp.array(dtype=real)  # [world] by how much laws of contacts were missed in the last step, see `contact.cones`
    fall: real  # 1/s², about the largest acceleration of an axis, of the scene
    closed: real  # rad or m, of a gap that counts as none
    own_axes: wp.int32  # 1: twists are stored in the links' own axes
    acted_tolerance: real  # the same where laws act
    tolerance: real  # error of a scaled mean speed, rad or scene lengths, that a step's iterations may leave
    rounding: real  # changes of it that do not fall any more and are below this are rounding
    law_tolerance: real  # N·s, N·m·s, by which a law may be missed
    reach: wp.array(dtype=real)  # [link] m, see `sleep.Rest`; −1 where nothing is to be looked at
    slowest: real  # m/s
    breakable: wp.int32
    loaded: wp.array(dtype=wp.int32)  # [world] 1: friction grows with what joints carry, so that this is found in every step
    turn: wp.array2d(dtype=quat)  # [link, world] link frames in the world
    origin: wp.array2d(dtype=vec3)
    pushed: wp.array(dtype=wp.int32)  # [world] 1: outer forces are in the working memory
    to_come: wp.array(dtype=wp.int32)  # [world] steps of a call that is made by launches, with the one that is made
    passes: wp.array(dtype=wp.int32)  # [world] of the last step
    parts: wp.array(dtype=wp.int32)
    change: wp.array(dtype=real)
    part: wp.array(dtype=real)  # s, length of the part that was reported
    taken: wp.array(dtype=real)  # J, that the last step's impacts took
    work: wp.array(dtype=real)  # J, that commands, drives and outer forces gave in the steps of a launch
    contact_tolerance: real  # where there are points of contact
    swept_tolerance: real  # where impulses of contacts are swept
    per_change: real  # makes a change of the last iteration the residual that is reported
    hit: wp.array(dtype=wp.int32)  # 1 + the link that stopped in the last step
    slow: wp.array(dtype=wp.int32)
    projected: wp.array(dtype=real)
    done: wp.array(dtype=wp.int32)
    residual: wp.array(dtype=real)
    grades: wp.array2d(dtype=wp.int32)
    made: wp.array(dtype=wp.int32)
    special: wp.int32  # 1: specialized code makes the steps that it can; those below are for it
    todo: wp.array(dtype=wp.int32)  # [world] steps that it is still to make in this call
    now_made: wp.array(dtype=wp.int32)  # [world] steps of the last launch
    reported: wp.array(dtype=wp.int32)  # [world] how many of these are in the log
    slot_end: wp.array(dtype=wp.int32)  # [world] the slot after that of the last of them
    log: wp.array(dtype=real)  # [worlds / TOGETHER, slot, link, number, world of these] see `LOGGED`
    scratch: wp.array(dtype=real)  # [worlds / TOGETHER, number, world of these] see `placement`
    seen: wp.array(dtype=wp.int32)  # [world] 1: something is not as the last call left it, or not as built
    fresh: wp.array(dtype=wp.int32)  # [world] 1: coordinates were taken from the bodies
    mark: wp.array(dtype=wp.int32)  # [world] why it makes none: `OTHER_KINDS` …
    unfinished: wp.array(dtype=wp.int32)  # [3] 1: a world stopped before its last step; all have ended; some has steps left
    going_on: wp.array(dtype=wp.int32)  # [1] 1: the call was begun by another launch
    rope_most: wp.int32  # ropes, where these touch (`direct.roped_touch`); else 0
    rope_live: wp.array(dtype=wp.int32)  # [world] closures of theirs in this step: points of contact and what holds ropes
    rope_ends: wp.array2d(dtype=wp.int32)  # [14 · closure + …, world] kind, links a and b, rope, number of points, item; the
    # rope of each point, up to four, and its number there
    rope_first: wp.array(dtype=wp.int32)  # [rope] its first slot
    rope_width: wp.array2d(dtype=wp.int32)  # [rope, world] speeds of its points on which these act


NATIVE_TYPES = f"typedef {CPP} real; typedef wp::vec_t<3, real> vec; "
NATIVE = f"""{NATIVE_TYPES}auto& x = t.data[0]; const int worlds = x.worlds;
#define shared(a, k) wp::address(x.a, k, w)[0]
#ifdef __CUDA_ARCH__
#define cell(a, k) shared(a, k)  // which tells the compiler that arrays are in global memory
#else
#define cell(a, k) x.a.data[(k)*worlds + w]
#endif
(void)worlds;
"""
"""Before code that is written in C++, since what it does is little beside the addresses that Warp would compute. Arrays of the
state are [item, world] without gaps; those of parameters and commands may have one value for all worlds."""
DONE = "\n#undef cell\n#undef shared\n"


# ---- numbers that are stored -------------------------------------------------------------------------------------------------


@wp.func
def triple(t: wp.array(dtype=TreeStep), row: int, w: int) -> vec3:
    return vec3(t[0].state.tree[row, w], t[0].state.tree[row + 1, w], t[0].state.tree[row + 2, w])


@wp.func
def put_triple(t: wp.array(dtype=TreeStep), row: int, w: int, v: vec3):
    for k in range(3):
        t[0].state.tree[row + k, w] = v[k]


@wp.func
def put_quat(t: wp.array(dtype=TreeStep), row: int, w: int, q: quat):
    for k in range(4):
        t[0].state.tree[row + k, w] = q[k]


@wp.func
def get_quat(t: wp.array(dtype=TreeStep), row: int, w: int) -> quat:
    x = t[0].state.tree
    return quat(x[row, w], x[row + 1, w], x[row + 2, w], x[row + 3, w])


@wp.func
def memory_of(t: wp.array(dtype=TreeStep), w: int) -> int:
    """Where the working memory of a world begins."""
    column = w
    if w >= t[0].memory_worlds:
        column = w % t[0].memory_worlds
    return column // WARP * (WARP * t[0].memory_size_of_world) + column % WARP * t[0].memory_world


@wp.func
def row_table(t: wp.array(dtype=TreeStep), k: int, w: int) -> int:
    """An entry of the tables of rows of a world that has its own."""
    first = w // WARP * (WARP * t[0].row_table_size) + w % WARP * t[0].row_table_world
    return t[0].row_tables[first + k * t[0].row_table_number]


@wp.func
def forget_memory(t: wp.array(dtype=TreeStep), w: int):
    """Have the next generic step prepare the working memory of a world anew."""
    if t[0].memory_worlds > 0:
        t[0].memory[IS_PREPARED * t[0].memory_number + memory_of(t, w)] = real(0.0)


@wp.func
def forget_other_memory(t: wp.array(dtype=TreeStep), w: int):
    """The same where it was another world's, or specialized steps were made."""
    if t[0].special == 1 or t[0].memory_worlds < t[0].worlds:
        forget_memory(t, w)


@wp.func
def recall(t: wp.array(dtype=TreeStep), i: int, what: int, w: int) -> real:
    """A number of a link in the working memory."""
    return t[0].memory[(MEMORY_ROW * (i + 1) + what) * t[0].memory_number + memory_of(t, w)]


@wp.func
def recall_triple(t: wp.array(dtype=TreeStep), i: int, what: int, w: int) -> vec3:
    return vec3(recall(t, i, what, w), recall(t, i, what + 1, w), recall(t, i, what + 2, w))


@wp.func
def log_place(t: wp.array(dtype=TreeStep), slot: int, i: int, w: int) -> int:
    """Where the numbers of a link begin in the log of specialized steps."""
    return ((w // WARP * LOG_SLOTS + slot) * t[0].links + i) * (LOG_SIZE * WARP) + w % WARP


@wp.func
def logged(t: wp.array(dtype=TreeStep), place: int, what: int) -> vec3:
    at = place + what * WARP
    return vec3(t[0].log[at], t[0].log[at + WARP], t[0].log[at + 2 * WARP])


@wp.func
def put_memory(t: wp.array(dtype=TreeStep), i: int, what: int, w: int, v: vec3):
    for k in range(3):
        t[0].memory[(MEMORY_ROW * (i + 1) + what + k) * t[0].memory_number + memory_of(t, w)] = v[k]


@wp.func
def twist_row(kind: int) -> int:
    """Where V is stored, after the first row of a link."""
    if kind == IS_BALL:
        return V_BALL
    if kind == IS_FREE or kind == IS_PRESCRIBED:
        return V_FREE
    if kind == IS_WELD:
        return V_WELD
    if kind == IS_SLIDES:
        return V_SLIDES
    if kind == IS_TURNS:
        return V_TURNS
    if kind == IS_SLIDER:
        return V_SLIDER
    return V_HINGE


@wp.func
def several_row(kind: int, row: int) -> int:
    """Where the numbers of slides, and of turns after their rotation, begin."""
    if kind == IS_TURNS:
        return row + AFTER_ROTATION
    return row


# ---- before steps ------------------------------------------------------------------------------------------------------------


@wp.func
def laws_act(t: wp.array(dtype=TreeStep), i: int, w: int, kind: int) -> int:
    """1 if laws act on the axes of a link of some kind."""
    j = t[0].joint[i]
    if j < 0:
        return 0
    if t[0].geared[i] == 1 or kind == IS_SLIDES or kind == IS_TURNS:
        return 1
    return int(is_driven(t, j, w))


@wp.func
def is_driven(t: wp.array(dtype=TreeStep), j: int, w: int) -> bool:
    """Whether laws or efforts act on the axes of a joint."""
    driven = t[0].control.acts[j, w] != 0
    for k in range(t[0].joints.v_size[j]):
        driven = driven or t[0].control.joint_force[t[0].joints.v_start[j] + k, w] != real(0.0)
    return driven


@wp.func
def leaves_alone(t: wp.array(dtype=TreeStep), i: int, w: int, j: int) -> bool:
    """Whether the joint of a link is disabled, or allows every motion and does nothing (specialized code has its axes)."""
    if t[0].control.enabled[j, w] == 0:
        return True
    idle = t[0].special == 0 and t[0].joints.free[j] == IS_LOOSE and t[0].geared[i] == 0
    return idle and not is_driven(t, j, w)


@wp.func
def set_kinds(t: wp.array(dtype=TreeStep), w: int) -> bool:
    """How links hang in this world now: those of joints that do nothing float, those that sleep are left out; what acts."""
    changed = bool(False)
    t[0].loaded[w] = t[0].breakable
    for a in range(t[0].control.friction_load.shape[0]):
        if t[0].control.friction_load[a, w] > real(0.0):
            t[0].loaded[w] = 1
    for i in range(t[0].links):
        at = i + t[0].links * w
        kind = t[0].kind_built[i]
        base = t[0].base_built[i]
        j = t[0].joint[i]
        if j >= 0:
            if leaves_alone(t, i, w, j):
                kind = IS_OFF
                base = -1
                if t[0].body[i] >= 0 or t[0].cut[i] == 1:
                    kind = IS_FREE
        acts = laws_act(t, i, w, kind)
        if kind != IS_PRESCRIBED and sleeps(t, t[0].carries[i], w):
            kind = IS_OFF
        new = real(kind) != t[0].state.tree[t[0].first[i] + KIND_AT, w]
        if kind != IS_OFF:
            changed = changed or new
        elif new:  # what falls asleep leaves the others as they are
            forget_memory(t, w)
        t[0].state.tree[t[0].first[i] + KIND_AT, w] = real(kind)
        t[0].kind[at] = kind
        t[0].base[at] = base
        t[0].acts[at] = acts
        if acts == 0 and (kind == IS_HINGE or kind == IS_SLIDER):  # what friction held is free
            t[0].state.tree[t[0].first[i] + STUCK, w] = real(0.0)
    return changed


@wp.func_native(
    f"""{NATIVE}const vec zero(real(0.0)); int found = 0;
for (int i = 0; i < x.links; ++i) {{
const int b = x.body.data[i];
if (b < 0) continue;
if (!(shared(control.force_once, b) == zero && shared(control.torque_once, b) == zero)) found |= 2;
if (!(shared(control.force, b) == zero && shared(control.torque, b) == zero)) found |= 1;
}}
{DONE}return found;"""
)
def outer_forces(t: wp.array(dtype=TreeStep), w: int) -> int:
    """Whether outer forces act on bodies in the next step: 1, of it alone: 2, or both: 3."""
    return 0


@wp.func
def push(t: wp.array(dtype=TreeStep), w: int) -> bool:
    """Outer forces of the next step, in the working memory; whether some are of that step alone."""
    found = outer_forces(t, w)
    if found == 0 and t[0].pushed[w] == 0 and t[0].memory_worlds >= t[0].worlds:  # else it may have those of another world
        return False
    scale = real(0.25) * t[0].settings.dt[0] * t[0].settings.dt[0]
    for i in range(t[0].links):
        b = t[0].body[i]
        f = vec3(real(0.0))
        n = vec3(real(0.0))
        if b >= 0:
            f = (t[0].control.force[b, w] + t[0].control.force_once[b, w]) * scale
            n = (t[0].control.torque[b, w] + t[0].control.torque_once[b, w]) * scale
            t[0].control.force_once[b, w] = vec3(real(0.0))
            t[0].control.torque_once[b, w] = vec3(real(0.0))
        put_memory(t, i, PUSH_F, w, f)
        put_memory(t, i, PUSH_N, w, n)
    t[0].pushed[w] = int(found > 0)
    return found > 1


@wp.func
def prescribe(t: wp.array(dtype=TreeStep), w: int):
    """Where bodies are whose motion is given, and how they move."""
    for i in range(t[0].links):
        if t[0].kind_built[i] == IS_PRESCRIBED:
            prescribe_link(t, i, w)


@wp.func
def prescribe_link(t: wp.array(dtype=TreeStep), i: int, w: int):
    h = t[0].settings.dt[0]
    b = t[0].body[i]
    row = t[0].first[i]
    v = vec3(real(0.0))
    omega = vec3(real(0.0))
    if t[0].bodies.motion[b] == KINEMATIC:
        v = t[0].state.velocity[b, w]
        omega = t[0].state.spin[b, w]
    turn = exp_quat(omega * h)
    put_quat(t, row + FREE_ROTATION, w, t[0].state.rotation[b, w])
    put_triple(t, row + FREE_POSITION, w, t[0].state.position[b, w])
    put_triple(t, row + FREE_ZL, w, v * (real(0.5) * h))
    put_triple(t, row + FREE_ZL1, w, v * (real(0.5) * h))
    put_triple(t, row + FREE_ZV, w, vec3(turn[0], turn[1], turn[2]) * (real(1.0) / turn[3]))
    put_triple(t, row + FREE_ZV1, w, omega * (real(0.5) * h))
    put_twist(t, i, w, row + V_FREE, v, omega, t[0].state.rotation[b, w])


@wp.func
def put_twist(t: wp.array(dtype=TreeStep), i: int, w: int, row: int, v: vec3, omega: vec3, turn: quat):
    """The twist of a link, stored as the emitted code has it."""
    half = real(0.5) * t[0].settings.dt[0]
    if t[0].own_axes == 1:
        v = wp.quat_rotate_inv(turn, v)
        omega = wp.quat_rotate_inv(turn, omega)
    put_triple(t, row, w, v * half)
    put_triple(t, row + 3, w, omega * half)


@wp.func
def load(t: wp.array(dtype=TreeStep), w: int):
    """Coordinates and twists from the poses and velocities of the bodies."""
    t[0].state.tree[0, w] = t[0].settings.dt[0]
    t[0].state.history[w] = 0
    for j in range(t[0].joints.count):
        t[0].state.mid_force[j, w] = vec3(real(0.0))
        t[0].state.mid_torque[j, w] = vec3(real(0.0))
    fastest = real(0.0)
    for b in range(t[0].bodies.count):
        fastest = wp.max(fastest, wp.length(t[0].state.velocity[b, w]))
        fastest = wp.max(fastest, wp.length(t[0].state.spin[b, w]) / t[0].settings.per_metre[0])
    for i in range(t[0].links):
        kind = t[0].kind[i + t[0].links * w]
        row = t[0].first[i]
        b = t[0].body[i]
        if t[0].cut[i] == 1:
            b = t[0].carries[i]
        if kind >= 0 and kind != IS_PRESCRIBED:
            turn = quat(real(0.0), real(0.0), real(0.0), real(1.0))
            if b >= 0:
                turn = t[0].state.rotation[b, w] * t[0].own_turn[i, w]
            if kind == IS_FREE:
                put_quat(t, row + FREE_ROTATION, w, unit(turn))
                x = t[0].state.position[b, w] + wp.quat_rotate(t[0].state.rotation[b, w], t[0].own_point[i, w])
                put_triple(t, row + FREE_POSITION, w, x)
            elif kind != IS_WELD:
                load_axis(t, i, w, kind, row, fastest * t[0].settings.per_metre[0])
            if b >= 0:
                put_twist(t, i, w, row + twist_row(kind), t[0].state.velocity[b, w], t[0].state.spin[b, w], turn)
            else:
                zero = vec3(real(0.0))
                put_twist(t, i, w, row + twist_row(kind), zero, zero, turn)
    load_signs(t, w)


@wp.func
def own_turn_of(t: wp.array(dtype=TreeStep), kind: int, row: int, w: int) -> quat:
    """Rotation of a link in its joint's frame."""
    if kind == IS_BALL:
        return get_quat(t, row + BALL_ROTATION, w)
    if kind == IS_TURNS:
        return get_quat(t, row + TURNS_ROTATION, w)
    half = real(0.0)
    if kind == IS_HINGE or kind == IS_ROTOR:
        half = real(0.5) * t[0].state.tree[row + Q, w]
    return quat(real(0.0), real(0.0), wp.sin(half), wp.cos(half))


@wp.func
def load_signs(t: wp.array(dtype=TreeStep), w: int):
    """Signs of quaternions, once: while links turn these do not depend on when they are looked at."""
    for i in range(t[0].links):
        kind = t[0].kind[i + t[0].links * w]
        row = t[0].first[i]
        b = t[0].body[i]
        if kind < 0:
            continue
        base = t[0].base[i + t[0].links * w]
        turn = quat(real(0.0), real(0.0), real(0.0), real(1.0))
        if base >= 0:
            turn = t[0].turn[base, w]
        if kind == IS_FREE or kind == IS_PRESCRIBED:
            turn = get_quat(t, row + FREE_ROTATION, w)
        else:
            turn = unit(turn * t[0].frame[i, w] * own_turn_of(t, kind, row, w))
        t[0].turn[i, w] = turn
        if b >= 0:
            sign = real(1.0)
            if wp.dot(turn * wp.quat_inverse(t[0].own_turn[i, w]), t[0].state.rotation[b, w]) < real(0.0):
                sign = real(-1.0)
            t[0].state.tree[row + SIGN_AT, w] = sign


@wp.func
def load_axis(t: wp.array(dtype=TreeStep), i: int, w: int, kind: int, row: int, fastest: real):
    """The coordinates of a link's joint; what friction held is free, if the caller gave it a speed."""
    j = t[0].joint[i]
    pose = pose_at(t[0].joints, j, w, t[0].state.position, t[0].state.rotation)
    if kind == IS_BALL:
        turn = wp.quat_inverse(parent_frame(t[0].joints, j, pose)) * child_frame(t[0].joints, j, pose)
        if t[0].sense[i] < 0:
            turn = wp.quat_inverse(turn)
        put_quat(t, row + BALL_ROTATION, w, unit(turn))
        load_ball(t, i, w, row, fastest)
        return
    n = t[0].number[i]
    if kind == IS_SLIDES or kind == IS_TURNS:
        load_several(t, i, w, kind, row, fastest)
        return
    near = t[0].state.q[t[0].joints.q_start[j] + n, w]
    q = coordinate(t[0].joints, j, n, pose, near)
    t[0].state.tree[row + Q, w] = q
    if kind == IS_HINGE or kind == IS_ROTOR:
        t[0].state.tree[row + COSINE, w] = wp.cos(q)
        t[0].state.tree[row + SINE, w] = wp.sin(q)
    p = t[0].joints.parent[j]
    c = t[0].joints.child[j]
    d, e = free_axis(t[0].joints, j, n, pose)
    u = t[0].state.velocity[c, w] + wp.cross(t[0].state.spin[c, w], pose.child_anchor - t[0].state.position[c, w])
    u = u - t[0].state.velocity[p, w] - wp.cross(t[0].state.spin[p, w], pose.child_anchor - t[0].state.position[p, w])
    speed = wp.dot(d, u) + wp.dot(e, t[0].state.spin[c, w] - t[0].state.spin[p, w])
    unit_of = real(1.0)
    if kind == IS_SLIDER:
        unit_of = t[0].settings.per_metre[0]
    stuck = real(t[0].state.stuck[t[0].axis[i], w])
    if wp.abs(speed) * unit_of > RESTS * fastest:
        stuck = real(0.0)
    t[0].state.tree[row + STUCK, w] = stuck
    t[0].state.tree[row + LIMIT, w] = real(0.0)
    t[0].state.tree[row + SU, w] = real(0.0)
    t[0].state.tree[row + CURRENT, w] = t[0].state.current[t[0].axis[i], w]
    t[0].state.tree[row + MOTOR_SPEED, w] = speed


@wp.func
def load_several(t: wp.array(dtype=TreeStep), i: int, w: int, kind: int, row: int, fastest: real):
    """The same of several translations, or two rotations, in one link."""
    j = t[0].joint[i]
    pose = pose_at(t[0].joints, j, w, t[0].state.position, t[0].state.rotation)
    p = t[0].joints.parent[j]
    c = t[0].joints.child[j]
    u = t[0].state.velocity[c, w] + wp.cross(t[0].state.spin[c, w], pose.child_anchor - t[0].state.position[c, w])
    u = u - t[0].state.velocity[p, w] - wp.cross(t[0].state.spin[p, w], pose.child_anchor - t[0].state.position[p, w])
    at = several_row(kind, row)
    unit_of = real(1.0)
    if kind == IS_SLIDES:
        unit_of = t[0].settings.per_metre[0]
    moves = bool(False)
    q = vec3(real(0.0))
    for k in range(t[0].slides[i]):
        n = t[0].number[i] + k
        q[k] = coordinate(t[0].joints, j, n, pose, t[0].state.q[t[0].joints.q_start[j] + n, w])
        d, e = free_axis(t[0].joints, j, n, pose)
        speed = wp.dot(d, u) + wp.dot(e, t[0].state.spin[c, w] - t[0].state.spin[p, w])
        t[0].state.rotor[t[0].axis[i] + k, w] = speed
        moves = moves or wp.abs(speed) * unit_of > RESTS * fastest
    put_triple(t, at + SLIDES_Q, w, q)
    for k in range(3):
        stuck = real(0.0)
        if k < t[0].slides[i] and not moves:
            stuck = real(t[0].state.stuck[t[0].axis[i] + k, w])
        t[0].state.tree[at + SLIDES_STUCK + k, w] = stuck
        t[0].state.tree[at + SLIDES_LIMIT + k, w] = real(0.0)
    if kind == IS_TURNS:
        put_quat(t, row + TURNS_ROTATION, w, turns_quat(q, t[0].sense[i]))


@wp.func
def turns_quat(q: vec3, sense: int) -> quat:
    """The rotation of two angles: about z, then about x; in reverse order and reversed where `sense` is −1."""
    a = real(0.5) * q[0]
    b = real(0.5) * q[1]
    if sense < 0:
        a = real(-0.5) * q[1]
        b = real(-0.5) * q[0]
    zero = real(0.0)
    return quat(zero, zero, wp.sin(a), wp.cos(a)) * quat(wp.sin(b), zero, zero, wp.cos(b))


@wp.func
def load_ball(t: wp.array(dtype=TreeStep), i: int, w: int, row: int, fastest: real):
    """What friction held is free, if the caller gave it a spin."""
    j = t[0].joint[i]
    spin = t[0].state.spin[t[0].joints.child[j], w] - t[0].state.spin[t[0].joints.parent[j], w]
    pose = pose_at(t[0].joints, j, w, t[0].state.position, t[0].state.rotation)
    own = wp.quat_rotate_inv(parent_frame(t[0].joints, j, pose), spin)
    for k in range(3):
        t[0].state.rotor[t[0].axis[i] + k, w] = own[k]
        stuck = real(t[0].state.stuck[t[0].axis[i] + k, w])
        if wp.length(spin) > RESTS * fastest:
            stuck = real(0.0)
        t[0].state.tree[row + BALL_STUCK + k, w] = stuck
        t[0].state.tree[row + BALL_LIMIT + k, w] = real(0.0)


@wp.func_native(
    f"""{NATIVE}if (x.state.tree.data[w] != x.settings.dt.data[0]) return false;
for (int b = 1; b < x.bodies.count; ++b)
if (x.bodies.motion.data[b] == {int(DYNAMIC)} && !(cell(state.velocity, b) == cell(state.kept_velocity, b)
&& cell(state.momentum, b) == cell(state.kept_momentum, b) && cell(state.position, b) == cell(state.kept_position, b)
&& cell(state.rotation, b) == cell(state.kept_rotation, b))) return false;
{DONE}return true;"""
)
def is_untouched(t: wp.array(dtype=TreeStep), w: int) -> bool:
    """Whether bodies stand and move as the last call left them (`kinematics.left_alone`), and the step is as long."""
    return True


# ---- calls -------------------------------------------------------------------------------------------------------------------


@wp.func
def hardest_body(t: wp.array(dtype=TreeStep), w: int) -> int:
    """The body that is moved most by what is commanded, or the fastest one."""
    h = t[0].settings.dt[0]
    most = real(-1.0)
    found = int(0)
    for i in range(t[0].links):
        b = t[0].carries[i]
        force = wp.length(t[0].control.force[b, w]) + wp.length(t[0].control.torque[b, w]) * t[0].settings.per_metre[0]
        if t[0].axis[i] >= 0:
            force = force + wp.abs(t[0].control.joint_force[t[0].axis[i], w])
        speed = wp.length(t[0].state.velocity[b, w]) + force * h * t[0].bodies.inv_mass[b, w]
        if not speed <= most:
            most = speed
            found = b
    return found


@wp.func
def begin_counts(t: wp.array(dtype=TreeStep), w: int):
    """What a call counts begins anew, unless another launch has begun it."""
    if t[0].special == 1:
        if t[0].going_on[0] == 1:
            return
    t[0].work[w] = real(0.0)  # the guard judges launches one by one
    if t[0].settings.iterations[7] == 1:
        return
    t[0].to_come[w] = t[0].settings.iterations[8]
    t[0].projected[w] = real(0.0)
    for g in range(4):
        t[0].grades[g, w] = 0


@wp.func
def idle_step(t: wp.array(dtype=TreeStep), w: int):
    """A step of a world in which all sleep."""
    t[0].change[w] = real(0.0)
    t[0].passes[w] = 1
    t[0].parts[w] = 1
    wait(t[0].rest, w)
    t[0].residual[w] = real(0.0)
    t[0].done[w] = 1
    count_step(t[0].tally, w, real(0.0), t[0].settings.tolerance[0], 1)
