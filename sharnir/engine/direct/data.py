"""What a direct step reads and writes."""

import warp as wp

from sharnir.collision.data import Collision, Contacts
from sharnir.core.types import mat33, quat, real, vec2, vec3, vec4, vec6
from sharnir.engine.articulated.data import AxisLaws, TreeTable, TreeWork
from sharnir.engine.articulated.loop_rows import ClosureTable, ClosureWork
from sharnir.engine.guard_data import Tally
from sharnir.engine.rope.data import RopeStep
from sharnir.engine.rope.port_data import Ports
from sharnir.engine.rope.touch_data import RopeTouch
from sharnir.engine.sleep import Rest
from sharnir.laws.casts import CastTable
from sharnir.laws.cone import Cone
from sharnir.laws.solve import Laws
from sharnir.model.cables import CableTable, CableWork
from sharnir.model.joint_types import AxisTable, DriveTable, GearTable, JointTable
from sharnir.model.model import BodyTable, Control, State


@wp.struct
class DirectSettings:
    """Numbers that may change between steps, one element each unless said, so that a captured step reads them."""

    dt: wp.array(dtype=real)
    part: wp.array(dtype=real)  # [world] s, the step, or the part of it that is being made
    kick: wp.array(dtype=real)  # [world] s, duration over which forces act in this part of a step
    gravity: wp.array(dtype=vec3)
    tolerance: wp.array(dtype=real)  # of the laws (see `absolute`); of the gaps; 1, or how much less finely velocities are met
    absolute: wp.array(dtype=wp.int32)  # 1: the laws' tolerance is an impulse, N·s or N·m·s; 0: a part of the speeds of an axis
    per_metre: wp.array(dtype=real)  # 1/m, one over the scene's length: gaps in m times this are compared with those in rad
    iterations: wp.array(dtype=wp.int32)  # caps, see `SolverDirect._caps`
    sleep: wp.array(dtype=real)  # s, after which bodies that stand still sleep; from 1e30 on they never do


@wp.struct
class BallWork:
    """Scratch of ball joints, [link, world]: inertia at the joint's point, world axes.

    A, B, D are what is handed on. A free one hands on A alone: there B is D⁻¹Bᵀ and D is D⁻¹.
    """

    u: wp.array2d(dtype=vec3)  # D⁻¹ q of a free one, q of another
    own_B: wp.array2d(dtype=mat33)  # B and D before the joint yields, and its response; where friction acts
    own_D: wp.array2d(dtype=mat33)
    response: wp.array2d(dtype=mat33)


SIDES = wp.constant(3)  # bodies of a row of a port


@wp.struct
class PortRows:
    """Rows by which ropes tie links together (`rope.ports`), as pushes on bodies, SIDES each: those of the port (a winch has
    two), and of the root.
    """

    count: wp.int32
    body: wp.array2d(dtype=wp.int32)  # [SIDES · row + side, world] −1: none
    push_l: wp.array2d(dtype=vec3)  # [SIDES · row + side, world] what one on a row does to the body, at the mean arm
    push_a: wp.array2d(dtype=vec3)
    rate_l: wp.array2d(dtype=vec3)  # [SIDES · row + side, world] by what the row moves with the body, at the arm of the end
    rate_a: wp.array2d(dtype=vec3)
    x: wp.array2d(dtype=real)  # [row, world]
    matrix: wp.array3d(dtype=real)  # [row, row, world] factored, with its envelope
    first: wp.array(dtype=wp.int32)
    last: wp.array(dtype=wp.int32)
    W: wp.array3d(dtype=real)  # [row of the small problem, row, world] what one on a row does there
    kept_l: wp.array2d(dtype=vec3)  # [body, world] changes without them
    kept_a: wp.array2d(dtype=vec3)


@wp.struct
class DirectTouch:
    """Scratch of the points of contact, [point, world]; impulses along the normal and, by the friction, across."""

    r_a: wp.array2d(dtype=vec3)  # the point from each centre of mass
    r_b: wp.array2d(dtype=vec3)
    t1: wp.array2d(dtype=vec3)
    mu: wp.array2d(dtype=vec2)
    p: wp.array2d(dtype=vec3)
    blow: wp.array2d(dtype=vec3)  # of impacts, alike
    roll: wp.array2d(dtype=vec3)  # moments that resist spinning and rolling, by their coefficients
    yields: wp.array2d(dtype=vec2)  # of a tyre, in these axes: u + yields·p + lead = 0 while it holds; else 0
    lead: wp.array2d(dtype=vec2)
    K: wp.array2d(dtype=vec6)  # its response to itself, where points are swept
    G: wp.array2d(dtype=vec4)
    turn_K: wp.array2d(dtype=vec6)  # the same of what resists turning there
    turn_G: wp.array2d(dtype=vec4)
    before: wp.array2d(dtype=real)  # m/s, normal speed at the start of the step
    aim: wp.array2d(dtype=real)  # m, what displacements are to make of a gap
    slip: wp.array2d(dtype=vec3)  # m/s, along the surfaces, at the end of the step
    acts: wp.array2d(dtype=wp.int32)  # 1: it touches in this step; −1: it is of bodies that sleep
    pseudo: wp.array2d(dtype=real)  # what displaces it
    ports: PortRows
    many: wp.array(dtype=wp.int32)  # [world] 1: more points act than the small problem has room for; they are swept
    turn: wp.array(dtype=wp.int32)  # [world] how often the step was solved with other impulses; −1: from the start again
    told: wp.array(dtype=wp.int32)  # [world] 1: points were not met in a part of this step
    pressed: wp.array2d(dtype=wp.int32)  # [first link of a tree, world] 1: contacts push it
    stalled: wp.array(dtype=wp.int32)  # [world] rounds of the step that brought points no nearer
    move_l: wp.array2d(dtype=vec3)  # [body, world] displacements of the trees, as speeds over half a step
    move_a: wp.array2d(dtype=vec3)
    point: wp.array2d(dtype=wp.int32)  # [entry of the small problem, world] which point's it is; of a rope's entry e: −1 − e
    line: wp.array2d(dtype=vec3)  # [3 entry + row, world] its rows
    thrust: wp.array2d(dtype=vec3)  # [3 entry + row, world] of points of ropes, the directions in which impulses act
    push_l: wp.array2d(dtype=vec3)  # [body, world] impulse and moment of all its points
    push_a: wp.array2d(dtype=vec3)
    tree_first: wp.array(dtype=wp.int32)  # [link] the links of its tree
    tree_end: wp.array(dtype=wp.int32)
    near: wp.array2d(dtype=wp.int32)  # [place, world] links that points of the small problem feel
    near_at: wp.array2d(dtype=wp.int32)  # [link + 1, world] how many of them come before it
    residual: wp.array(dtype=real)  # [world] of the largest impulse, that a point missed


@wp.struct
class Direct:
    """All that a step reads and writes; bodies are the scene's, then halves.

    `state` is the caller's, and so is `now`.
    """

    bodies: BodyTable
    whole: BodyTable
    joints: JointTable
    axes: AxisTable
    gears: GearTable
    cables: CableTable
    drives: DriveTable
    settings: DirectSettings
    control: Control
    state: State
    now: State  # as `state`; with this name functions read it that other solvers, whose velocities stand at half steps, share
    tree: TreeTable
    work: TreeWork
    balls: BallWork
    closures: ClosureTable
    rows: ClosureWork
    cable: CableWork
    span_start: wp.array2d(dtype=vec3)  # [span, world] of cables: their line, and rims of their ends, at the start of the step
    arm_start: wp.array2d(dtype=vec3)  # [end, world]
    laws: Laws
    linear: AxisLaws
    mismatch: wp.array2d(dtype=real)
    slid: wp.array2d(dtype=real)
    tau: wp.array2d(dtype=real)
    speed: wp.array2d(dtype=real)  # [speed, world] new speeds of axes
    turned: wp.array2d(dtype=real)  # [speed, world] rad, since an angle was last read
    half_of: wp.array(dtype=wp.int32)
    others: wp.array(dtype=wp.int32)  # bodies that are no links
    other_count: wp.int32
    own: wp.int32
    scene_joints: wp.int32
    speeds: wp.int32
    acting: wp.int32
    kick: wp.array(dtype=real)  # [world] s, duration over which forces act in this step
    drift: wp.array(dtype=real)  # [world] s, duration over which bodies move
    momentum: wp.array2d(dtype=vec3)  # [body, world] L after external torques
    position: wp.array2d(dtype=vec3)  # [body, world] the new pose
    rotation: wp.array2d(dtype=quat)
    impulse_l: wp.array2d(dtype=vec3)  # [link, world] its own momentum
    roped: wp.int32  # 1: ropes hang on bodies; [body, world] their inertia and impulse there
    rope_A: wp.array2d(dtype=mat33)
    rope_B: wp.array2d(dtype=mat33)
    rope_D: wp.array2d(dtype=mat33)
    rope_l: wp.array2d(dtype=vec3)
    rope_a: wp.array2d(dtype=vec3)
    touching: wp.int32  # 1: bodies may touch
    rest: wp.array(dtype=Rest)
    contacts: Contacts
    casts: CastTable
    touch: DirectTouch
    cone: wp.array(dtype=Cone)
    row_impulse: wp.array2d(dtype=real)  # [row, world]
    arm1: wp.array2d(dtype=vec3)  # [link, world] work.arm, work.out, S at the end of the step, those being means
    out1: wp.array2d(dtype=vec3)
    end_l: wp.array2d(dtype=vec3)  # [speed, world]
    end_a: wp.array2d(dtype=vec3)
    left_l: wp.array2d(dtype=vec3)  # [speed, world] S̄ᵀ M*
    left_a: wp.array2d(dtype=vec3)
    full_A: wp.array2d(dtype=mat33)  # [link, world] M* less what the joint yields, or what its kind needs of it
    full_B: wp.array2d(dtype=mat33)
    full_C: wp.array2d(dtype=mat33)
    full_D: wp.array2d(dtype=mat33)
    work_C: wp.array2d(dtype=mat33)  # [link, world] C of what is gathered at a link
    ball_push: wp.array2d(dtype=vec3)  # [link, world] moment impulse that a user commands in a ball joint, world axes
    ball_speed: wp.array2d(dtype=vec3)  # [link, world] relative spin at the end of the step, where friction acts
    mean_cl: wp.array2d(dtype=vec3)  # [row, world] rows beside the tree as they act; those of `rows` are of the end
    mean_ca: wp.array2d(dtype=vec3)
    mean_pl: wp.array2d(dtype=vec3)
    mean_pa: wp.array2d(dtype=vec3)
    lock_u: wp.array2d(dtype=real)  # [speed, world] what a locked axis lacks of the speed wanted of it
    parts: wp.array(dtype=wp.int32)  # [world] in how many the last step was made
    pivots: wp.array(dtype=wp.int32)  # [world] most passes in which laws of a part of the step were found
    energy: wp.array(dtype=real)  # [world] J, twice the kinetic energy, after external forces, that rounding of speeds follows
    single: wp.array(dtype=wp.int32)  # [world] 1: passes correct the laws of one axis at a time
    limit_side: wp.array2d(dtype=wp.int32)  # [speed, world] ±(1 + lock) of a lower or upper limit that acts in the linear laws
    row_miss: wp.array2d(dtype=vec3)  # [speed, world] of a ball's limit, by how much its direction lacked in the last pass
    row_share: wp.array2d(dtype=real)  # [speed, world] and the share of that which was made; 0: no pass yet
    at_limit: wp.array2d(dtype=wp.int32)  # [speed, world] 1: a limit was met in this substep, and the axis leaves it
    leaving: wp.array2d(dtype=real)  # [speed, world] at this speed
    stopped: wp.array(dtype=wp.int32)  # [world] 1 + a joint that friction or a limit stopped in this step
    safe: State  # the state at the start of a step that is made in parts
    projected: wp.array(dtype=real)  # [world] J, that velocities lost in this call because they did not fit the joints
    kept_u: wp.array2d(dtype=real)  # [speed, world] what the tree alone changes of the speeds of axes
    gain: wp.array2d(dtype=vec3)  # [link, world] angular momentum gained in the step, beyond what outer torques give
    carried_l: wp.array2d(dtype=vec3)  # [link, world] impulse and moment, at the link's centre, that its joint gives it
    carried_a: wp.array2d(dtype=vec3)
    sum_l: wp.array2d(dtype=vec3)  # [link, world] those of the links that hang on it
    sum_a: wp.array2d(dtype=vec3)
    moved: wp.array2d(dtype=real)  # [speed, world] by which a coordinate moves in the step
    passes: wp.array(dtype=wp.int32)  # [world] of this step, one with new factors counted as more
    made: wp.array(dtype=wp.int32)  # [world] steps of this launch
    pushed: wp.array(dtype=wp.int32)  # [world] 1: a user's forces act
    grades: wp.array2d(dtype=wp.int32)  # [grade, world] steps of the call made so
    done: wp.array(dtype=wp.int32)
    residual: wp.array(dtype=real)
    tally: wp.array(dtype=Tally)  # counts over all steps, for the guard


OUT = wp.constant(-1)  # value of mid_tense: the joint was taken out in that step
DIVIDED = wp.constant(1)  # in `solver.GRADES`


@wp.struct
class Roped:
    """A step of trees with ropes on them: what both are made of, each an array of one element."""

    step: wp.array(dtype=Direct)
    rope: wp.array(dtype=RopeStep)
    ports: wp.array(dtype=Ports)
    other: wp.array(dtype=RopeStep)  # the state at the start of the step
    touches: wp.int32  # 1: ropes touch, and what they touch; else these are none
    touch: wp.array(dtype=RopeTouch)
    collision: wp.array(dtype=Collision)
