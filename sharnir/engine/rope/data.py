"""What the stages of a rope's step share. Arrays are [slot, world] or [rope, world], the world last.

A rope with n segments occupies a row of slots, n + 1 in use: slot j holds point j, element j (from point j to j + 1) and
interface j, the place where element j − 1 (or what holds the rope's first end) meets element j (or what holds its last end).
"""

import warp as wp

from sharnir.core.types import mat33, quat, real, vec3
from sharnir.engine.guard_data import Tally
from sharnir.engine.sleep import Rest
from sharnir.model.model import BodyTable, Control, State
from sharnir.model.rope_state import RopeControl, RopeState

UNHELD = wp.constant(0)  # kinds of an end: nothing holds it;
DRIVEN = wp.constant(1)  # a body that does not yield holds it;
BODY = wp.constant(2)  # a dynamic body holds it;
ROPE = wp.constant(3)  # a point of another rope holds it;
LOOP = wp.constant(4)  # a dynamic body holds this last end, and something else moves it;
PORT = wp.constant(5)  # a body in a tree of joints holds this last end (`rope.ports`)
WOUND = wp.constant(2)  # of an element, where 0 is taut, 1 slack, −1 taut with its points changed over (`slack`, `reel`)
MIXED = wp.constant(5)  # number of past passes from which the next is mixed (`rope.mixing`)


@wp.struct
class RopeTable:
    """Constant data of all ropes; ends are indexed by 2 · rope + (0: first, 1: last), the first one being eliminated last."""

    count: wp.int32
    order: wp.array(dtype=wp.int32)  # ropes in the order of elimination
    first: wp.array(dtype=wp.int32)  # [rope] its first slot
    capacity: wp.array(dtype=wp.int32)  # [rope] most segments
    density: wp.array(dtype=real)  # [rope] kg/m
    radius: wp.array(dtype=real)  # [rope] m
    EI: wp.array2d(dtype=real)  # [rope, world] N·m²
    GJ: wp.array2d(dtype=real)  # [rope, world] N·m²
    damping: wp.array2d(dtype=real)  # [rope, world] s, of bend and twist
    drag: wp.array2d(dtype=real)  # [rope, world] N·s/m², viscous, per metre
    air: wp.array2d(dtype=real)  # [rope, world] kg/m², ½ ρ C_d 2r: times the square of the normal speed, per metre
    strength: wp.array2d(dtype=real)  # [rope, world] N, breaking load
    rod: wp.array(dtype=wp.int32)  # [rope] 1 where elements are never slack
    reel: wp.array(dtype=wp.int32)  # [rope] the end (0, 1) from which it is paid out, or −1
    segment: wp.array(dtype=real)  # [rope] m, length of a segment that is paid out
    longest: wp.array(dtype=real)  # [rope] m, to which it is paid out at most
    winch: wp.array(dtype=wp.int32)  # [rope] the joint whose axis winds it, or −1; these below: its bodies, and a radius, m
    drum_child: wp.array(dtype=wp.int32)
    drum_parent: wp.array(dtype=wp.int32)
    drum: wp.array(dtype=real)
    drum_axis: wp.array(dtype=vec3)  # [rope] of the joint, in the child's axes
    rest: wp.array(dtype=vec3)  # [slot] û at the interface, element axes, 1/m
    kind: wp.array(dtype=wp.int32)  # [end] UNHELD, DRIVEN, BODY, ROPE, LOOP, PORT
    body: wp.array(dtype=wp.int32)  # [end] or, of a ROPE, the slot of the point
    clamp: wp.array(dtype=wp.int32)  # [end] 1 where orientation is held too
    point: wp.array(dtype=vec3)  # [end] from the body's centre of mass, body axes
    frame: wp.array(dtype=quat)  # [end] the frame that holds the rope, third axis along it, body axes
    group: wp.array(dtype=wp.int32)  # bodies that loops of ropes couple
    grouped: wp.int32  # their number
    exact: wp.int32  # 1 where no body or other rope but at ends tells of a symmetric elimination: there is neither loop nor port
    place: wp.array(dtype=wp.int32)  # [body] its place among them, or −1
    row_first: wp.array(dtype=wp.int32)  # [row] envelope of their system (`envelope`)
    row_last: wp.array(dtype=wp.int32)
    ties: wp.int32  # bodies tied to points between the ends
    tied: wp.array(dtype=wp.int32)  # [rope] 1 where a body or a rope is tied between its ends
    tie_rope: wp.array(dtype=wp.int32)  # [tie]
    tie_kind: wp.array(dtype=wp.int32)  # DRIVEN, BODY, PORT
    tie_slot: wp.array(dtype=wp.int32)
    tie_body: wp.array(dtype=wp.int32)
    tie_point: wp.array(dtype=vec3)


@wp.struct
class RopeWork:
    """Scratch of a step, [slot, world] unless said."""

    mass: wp.array2d(dtype=real)  # of the point, kg
    damp: wp.array2d(dtype=real)  # Δt times its resistance, kg
    bar: wp.array2d(dtype=real)  # 1/l̄ of the interface, 0 where there is none
    d: wp.array2d(dtype=vec3)  # tangent at the start of the step
    strain: wp.array2d(dtype=vec3)  # u at the start of the step
    tension: wp.array2d(dtype=real)  # Δt T of the element, N·s
    elastic: wp.array2d(dtype=vec3)  # elastic moment at the interface at the start of the step, N·m
    past: wp.array2d(dtype=vec3)  # part of the impulse moment that earlier poses give, N·m·s
    extra: wp.array2d(dtype=real)  # Δt² β T l of the element, kg·m²
    slack: wp.array2d(dtype=wp.int32)  # as in the state, of the step that is being made; WOUND: taut, as long as a drum makes it
    reach: wp.array2d(dtype=real)  # m, s of the element where factors are made
    snaps: wp.array2d(dtype=wp.int32)  # 1 where the element has become taut in the step
    push_out: wp.array2d(dtype=real)  # impulse along a slack element that is lacking, N·s
    slide: wp.array2d(dtype=real)  # of the slack element before the point `equations.Slide`, and σ of what is missed
    slide_v: wp.array2d(dtype=vec3)
    slide_w: wp.array2d(dtype=vec3)
    felt_v: wp.array2d(dtype=vec3)
    felt_w: wp.array2d(dtype=vec3)
    slides: wp.array2d(dtype=real)
    c: wp.array2d(dtype=vec3)  # closing speed of the element's row, m/s
    e: wp.array2d(dtype=vec3)  # by how much the moment at the interface is missed, N·m·s
    defect: wp.array2d(dtype=vec3)  # momentum that the point lacks in the first pass, N·s
    load: wp.array2d(dtype=vec3)  # impulse moment on the element from outside, for the first pass, N·m·s
    tip: wp.array2d(dtype=vec3)  # tangent by which the element moves its points (`equations`); m, b at which they turn it
    mean_tip: wp.array2d(dtype=vec3)
    axis: wp.array2d(dtype=vec3)  # of a slack one, along which its impulse is given
    own: wp.array2d(dtype=mat33)  # what its own turn does to its balance of moments, kg·m²
    A: wp.array2d(dtype=mat33)  # [A B; C D] of all that hangs on point j, in (v_j, φ_j) (`chain`)
    B: wp.array2d(dtype=mat33)
    C: wp.array2d(dtype=mat33)
    U: wp.array2d(dtype=mat33)  # (D + K)⁻¹
    K: wp.array2d(dtype=mat33)  # by how much the moment of the interface falls as its element turns, world axes
    J: wp.array2d(dtype=mat33)  # by how much it grows as the element before does
    bias: wp.array2d(dtype=vec3)
    X: wp.array2d(dtype=mat33)  # of a held last point (`equations.Held`)
    Y: wp.array2d(dtype=mat33)
    P: wp.array2d(dtype=mat33)
    Q: wp.array2d(dtype=mat33)
    loose: wp.array2d(dtype=mat33)  # inverse inertia of a piece that hangs on nothing, at its first point
    loose_v: wp.array2d(dtype=vec3)
    tie_A: wp.array2d(dtype=mat33)  # inertia of what is tied to the point, and its bias
    tie_p: wp.array2d(dtype=vec3)
    dv: wp.array2d(dtype=vec3)  # change of the point's velocity in a pass
    v: wp.array2d(dtype=vec3)  # the new velocities
    w: wp.array2d(dtype=vec3)
    r: wp.array2d(dtype=vec3)  # the new pose
    q: wp.array2d(dtype=quat)
    weight: wp.array2d(dtype=real)  # [rope, world] ϑ of mean velocities
    push: wp.array2d(dtype=vec3)  # impulse on the point from outside, N·s; these: not of `sequential`
    touched: wp.array2d(dtype=vec3)  # impulse on the point from what it touches, N·s
    turn: wp.array2d(dtype=vec3)  # by which the element turns, rad
    last_v: wp.array2d(dtype=vec3)  # velocities of the pass before
    last_w: wp.array2d(dtype=vec3)
    kept_pull: wp.array2d(dtype=vec3)  # impulses of the last step, from which a part begins
    kept_moment: wp.array2d(dtype=vec3)
    mix_fv: wp.array2d(dtype=vec3)  # [column · slots + slot, world] changes and values of the last passes
    mix_fw: wp.array2d(dtype=vec3)
    mix_v: wp.array2d(dtype=vec3)
    mix_w: wp.array2d(dtype=vec3)
    mix_pull: wp.array2d(dtype=vec3)
    mix_moment: wp.array2d(dtype=vec3)
    mix_end: wp.array2d(dtype=vec3)  # [column · ends + end, world]
    mix_tie: wp.array2d(dtype=vec3)  # [column · ties + tie, world]
    mix_rows: wp.array2d(dtype=real)  # [column · rows + row, world] impulses of rows beside a tree
    kept_end: wp.array2d(dtype=vec3)  # [end, world]
    kept_tie: wp.array2d(dtype=vec3)  # [tie, world]
    paid: wp.array2d(dtype=real)  # [rope, world] m, by which the element at the reel grew
    back: wp.array2d(dtype=real)  # [rope, world] m of that which returns what is owed
    winds: wp.array2d(dtype=wp.int32)  # [rope, world] 1 where a winch winds it: its drum and the element at the reel are geared
    rim: wp.array2d(dtype=real)  # [rope, world] kg, inertia of a drum at its rim, where its body is moved with the rope
    slid: wp.array2d(dtype=real)  # [rope, world] m/s, σ of its wound element in a pass
    lever: wp.array2d(dtype=vec3)  # [rope, world] m, moment on the drum's child of a unit of axial impulse in that element
    drum_rate: wp.array2d(dtype=vec3)  # [rope, world] m, by which its element is shortened where the child turns
    arm: wp.array2d(dtype=vec3)  # [end, world] from the body's centre of mass, world axes, at the start
    tie_arm: wp.array2d(dtype=vec3)  # [tie, world]
    end_arm: wp.array2d(dtype=vec3)  # [end, world] arms by which points move: those above, unless a solver tells them apart
    tie_end: wp.array2d(dtype=vec3)  # [tie, world]
    Z_A: wp.array2d(dtype=mat33)  # [rope, world] the relation at the first end: impulse on the rope = Z V + p
    Z_B: wp.array2d(dtype=mat33)
    Z_C: wp.array2d(dtype=mat33)
    Z_D: wp.array2d(dtype=mat33)
    p_l: wp.array2d(dtype=vec3)
    p_a: wp.array2d(dtype=vec3)
    G: wp.array2d(dtype=mat33)  # [rope, world] inverse mobility of a held last point
    last_X: wp.array2d(dtype=mat33)  # [rope, world] X, Y, P, Q at the first end
    last_Y: wp.array2d(dtype=mat33)
    last_P: wp.array2d(dtype=mat33)
    last_Q: wp.array2d(dtype=mat33)
    change: wp.array2d(dtype=real)  # [rope, world] m/s, largest change of a speed in the pass, and largest speed
    speed: wp.array2d(dtype=real)
    frame0: wp.array2d(dtype=quat)  # [end, world] frames of clamped ends at the start and at the pose at hand; their turn, rad
    frame1: wp.array2d(dtype=quat)
    frame_turn: wp.array2d(dtype=vec3)
    g: wp.array2d(dtype=vec3)  # [rope, world] velocity of the last point if nothing held it there
    dense: wp.array3d(dtype=real)  # [row, row, world] inertia of the bodies that loops couple, then its factor
    dense_p: wp.array2d(dtype=real)  # [row, world] their bias, then the change of their twists


@wp.struct
class BodyWork:
    """Bodies that hold ropes during a step, [body, world]."""

    A: wp.array2d(dtype=mat33)  # [A B; C D] at the centre of mass, ropes that hang on it included, in (v, φ) as of elements
    B: wp.array2d(dtype=mat33)
    C: wp.array2d(dtype=mat33)
    D: wp.array2d(dtype=mat33)
    p_l: wp.array2d(dtype=vec3)  # and their bias
    p_a: wp.array2d(dtype=vec3)
    inertia: wp.array2d(dtype=mat33)  # its own, world axes
    momentum: wp.array2d(dtype=vec3)  # L after external torques
    start_w: wp.array2d(dtype=vec3)  # ω after external torques
    v: wp.array2d(dtype=vec3)  # the new velocity
    w: wp.array2d(dtype=vec3)
    dv: wp.array2d(dtype=vec3)  # its change in a pass
    dw: wp.array2d(dtype=vec3)
    x: wp.array2d(dtype=vec3)  # the new pose
    q: wp.array2d(dtype=quat)
    rest: wp.array2d(dtype=vec3)
    turn: wp.array2d(dtype=vec3)  # by which it turns in the step, rad
    last_v: wp.array2d(dtype=vec3)  # velocities of the pass before
    last_w: wp.array2d(dtype=vec3)
    mix_fv: wp.array2d(dtype=vec3)  # [column · bodies + body, world] changes and values of the last passes
    mix_fw: wp.array2d(dtype=vec3)
    mix_v: wp.array2d(dtype=vec3)
    mix_w: wp.array2d(dtype=vec3)
    start_v: wp.array2d(dtype=vec3)  # v after external forces, where another solver sweeps
    hung: wp.array(dtype=wp.int32)  # [body] 1 where it is the last end of a rope: that rope moves it


@wp.struct
class RopeSettings:
    """Numbers that may change between steps, one element each, so that a captured step reads them."""

    dt: wp.array(dtype=real)
    gravity: wp.array(dtype=vec3)
    tolerance: wp.array(dtype=real)  # largest gap of a row over its length, and error of an angle, rad
    iterations: wp.array(dtype=wp.int32)  # caps, see `rope_settings`
    sleep: wp.array(dtype=real)  # s, after which what stands still sleeps (`sleep`)
    beta: wp.array(dtype=real)  # how implicit the tension's direction is, and how much of it damps; ρ of bend and twist


@wp.struct
class RopeStep:
    """All that a step reads and writes. Kernels take it as an array of one element: a launch then costs one pointer."""

    ropes: RopeTable
    state: RopeState
    control: RopeControl
    work: RopeWork
    bodies: BodyTable
    body: BodyWork
    body_state: State
    body_control: Control
    settings: RopeSettings
    h: wp.array(dtype=real)  # [world] s, the step or a part of it
    kick: wp.array(dtype=real)  # [world] s, duration over which forces act in this part of a step
    done: wp.array(dtype=wp.int32)  # [world] passes
    headway: wp.array(dtype=wp.int32)  # [world] passes that the step had taken when its last part was made
    made: wp.array(dtype=wp.int32)  # [world] steps of this launch
    parts: wp.array(dtype=wp.int32)  # [world] in how many parts the step was made
    exact: wp.array(dtype=wp.int32)  # [world] 1: factors are those of the true slopes, 0: symmetric ones (`chain`)
    hard: wp.array(
        dtype=wp.int32
    )  # [world] 1 where the direction of tension is fully implicit, 2 where rows close at velocity level
    judged: wp.array(dtype=wp.int32)  # [world] rounds in which elements were judged slack or taut, where another solver sweeps
    sudden: wp.array(dtype=wp.int32)  # [world] 1 where some tension changed suddenly
    grades: wp.array2d(dtype=wp.int32)  # [grade, world] steps of the call made so
    energy: wp.array(dtype=real)  # [world] J, kinetic after external forces, where another solver sweeps
    swept: wp.array(dtype=wp.int32)  # [world] sweeps that it made
    residual: wp.array(dtype=real)
    tally: wp.array(dtype=Tally)  # counts over all steps, for the guard
    rest: wp.array(dtype=Rest)  # where ropes end the step
