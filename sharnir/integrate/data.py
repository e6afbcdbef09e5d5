"""The structure of an integration: state, modes and what a right-hand side needs."""

import warp as wp

from sharnir.core.types import quat, real, vec3
from sharnir.engine.articulated.data import AxisLaws, TreeTable, TreeWork
from sharnir.engine.articulated.loop_rows import ClosureTable, ClosureWork
from sharnir.model.joint_types import AxisTable, DriveTable, JointTable
from sharnir.model.model import BodyTable, Control

BEGUN = wp.constant(real(1.0e-5))  # m/s, rad/s: ε of a group that begins to slide


@wp.struct
class Motion:
    """A mechanism with its state y = (q, v, currents and charges), [row, world], and all that its right-hand side needs."""

    bodies: BodyTable
    joints: JointTable
    axes: AxisTable
    control: Control
    tree: TreeTable
    work: TreeWork
    laws: AxisLaws
    closures: ClosureTable
    rows: ClosureWork
    probe: ClosureWork  # a second set, to ask for the tree's response without losing what was found
    gravity: wp.array(dtype=vec3)
    own: wp.int32  # joints that are the scene's; those of floating bases follow
    nq: wp.int32
    nv: wp.int32
    currents: wp.int32  # of motors, then charges that batteries gave
    motor: wp.array(dtype=wp.int32)  # [current] the speed whose motor it flows in, or −1 − a battery
    current_of: wp.array(dtype=wp.int32)  # [speed] −1: none
    drives: DriveTable
    drive_of: wp.array(dtype=wp.int32)  # [speed] its row of the table, −1: none
    rough: wp.int32  # 1 where there is friction or a limit
    loaded: wp.int32  # 1 where friction depends on the load
    driven: wp.int32  # 1 where bodies that are no links move
    applied: wp.array2d(dtype=real)  # [speed, world] forces on free axes
    force: wp.array2d(dtype=vec3)  # [body, world] and on bodies
    torque: wp.array2d(dtype=vec3)
    start: wp.array(dtype=real)  # s, when driven bodies were at
    base_position: wp.array2d(dtype=vec3)
    base_rotation: wp.array2d(dtype=quat)
    q: wp.array2d(dtype=real)  # the state at which the right-hand side is wanted
    v: wp.array2d(dtype=real)
    current: wp.array2d(dtype=real)
    tau: wp.array2d(dtype=real)
    a: wp.array2d(dtype=real)
    held: wp.array2d(dtype=wp.int32)  # [speed, world] 1 where friction holds
    touch: wp.array2d(dtype=wp.int32)  # [speed, world] 1 at the lower limit, −1 at the upper
    heading: wp.array2d(dtype=real)  # [speed, world] n
    departs: wp.array2d(dtype=wp.int32)  # [speed, world] 1 where a group slides since it was at rest
    response: wp.array2d(dtype=real)  # [speed, world] accelerations per unit of a force
    wanted: wp.array2d(dtype=real)  # [speed, world] in an impact: the change of speed at a limit
    load: wp.array2d(dtype=real)  # [joint, world] N, |constraint force|
    striking: wp.array(dtype=wp.int32)  # [world] 1: the right-hand side is that of an impact, a the change of v
    tries: wp.array(dtype=wp.int32)  # [world] changes of mode at one time
