"""What the stages of a step in joint coordinates share: the one structure that a kernel is given."""

import warp as wp

from sharnir.articulated.closures import ClosureTable, ClosureWork
from sharnir.guard import Tally
from sharnir.joints import AxisTable, JointTable
from sharnir.model import BodyTable, Control, State
from sharnir.rows import Laws
from sharnir.tree import AxisLaws, TreeTable, TreeWork
from sharnir.types import mat33, quat, real, vec3


@wp.struct
class Settings:
    """Numbers that may change between steps, one element each unless said, so that a captured step reads them."""

    dt: wp.array(dtype=real)
    part: wp.array(dtype=real)  # [world] s, the step, or the part of it that is being made
    kick: wp.array(dtype=real)  # [world] s: for so long forces act in it
    gravity: wp.array(dtype=vec3)
    tolerance: wp.array(dtype=real)
    iterations: wp.array(dtype=wp.int32)  # cap of the passes


@wp.struct
class Step:
    """All that a step reads and writes. Kernels take it as an array of one element: a launch then costs one pointer.

    Bodies are the scene's, then the second halves of those at which loops are cut; joints are the scene's, then those by which
    floating mechanisms hang on the ground. `state` is the caller's, but for q and qd, which have these joints' coordinates too.
    """

    bodies: BodyTable
    joints: JointTable
    axes: AxisTable
    settings: Settings
    control: Control
    state: State
    tree: TreeTable
    work: TreeWork
    closures: ClosureTable
    rows: ClosureWork
    laws: Laws  # of the axes, as described
    linear: AxisLaws  # and linear about their present solution
    q: wp.array2d(dtype=real)  # the caller's coordinates and speeds
    qd: wp.array2d(dtype=real)
    own: wp.int32  # bodies of the scene
    scene_joints: wp.int32
    nq: wp.int32  # coordinates and speeds of the scene's joints
    nv: wp.int32
    acting: wp.int32  # 1 where something acts on an axis
    loaded: wp.int32  # 1 where friction depends on the load
    whole: BodyTable  # the scene's, uncut
    half_of: wp.array(dtype=wp.int32)  # [body] the body of which it is a half, or itself
    read: wp.array(dtype=wp.int32)  # [joint] 1 where a coordinate is not the tree's and is read off the bodies
    mid: wp.array2d(dtype=real)  # [speed, world] speeds at which gyroscopic and centrifugal forces are taken
    tau: wp.array2d(dtype=real)  # [speed, world]
    qdd: wp.array2d(dtype=real)
    new_v: wp.array2d(dtype=real)
    fastest: wp.array(dtype=real)  # [world] largest |spin|² of a link, (rad/s)²
    stored: wp.array(dtype=real)  # [world] s, step of the state that was stored last; 0: none
    felt: wp.array(dtype=vec3)  # [world] gravity in Q, m/s²
    old_velocity: wp.array2d(dtype=vec3)  # [body, world] before the last step
    mismatch: wp.array2d(dtype=real)  # [link, world] N·s: law against its linearisation in the last pass
    slid: wp.array2d(dtype=real)  # [speed, world] N·s: friction with which an axis was last taken to slide; 0: to hold
    done: wp.array(dtype=wp.int32)  # [world] passes of the last step
    residual: wp.array(dtype=real)  # [world]
    last_qdd: wp.array2d(dtype=real)  # [speed, world] before the step
    as_begun: wp.array(dtype=wp.int32)  # [world] 1 where speeds at the start of the step must do for their mean
    lost: wp.array2d(dtype=real)  # [joint, world] J, by friction and dampers in the parts of a step
    grades: wp.array2d(dtype=wp.int32)  # [grade, world] steps of the call made so
    roped: wp.array(dtype=wp.int32)  # [world] 1 while ropes take part in a pass
    rope_A: wp.array2d(dtype=mat33)  # [body, world] what ropes add to a body's inertia, Z; these and below, where there are ropes
    rope_B: wp.array2d(dtype=mat33)
    rope_D: wp.array2d(dtype=mat33)
    rope_v: wp.array2d(dtype=vec3)  # [body, world] the twist about which ropes are linear, and what they ask for there, N·s
    rope_w: wp.array2d(dtype=vec3)
    rope_l: wp.array2d(dtype=vec3)
    rope_a: wp.array2d(dtype=vec3)
    pull_l: wp.array2d(dtype=vec3)  # [body, world] N, N·m: what ropes did to it in the step
    pull_a: wp.array2d(dtype=vec3)
    position: wp.array2d(dtype=vec3)  # [body, world] the new pose
    rotation: wp.array2d(dtype=quat)
    new_q: wp.array2d(dtype=real)  # [coordinate, world]
    row_force: wp.array2d(dtype=real)  # [row, world] N, N·m
    tally: wp.array(dtype=Tally)  # of all steps, for the guard
