"""The structures of a tree of links: what hangs on what, and what a pass leaves for the next."""

import warp as wp

from sharnir.core.types import mat33, mat66, quat, real, vec3, vec6


@wp.struct
class LinkRow:
    """What every recursion reads of a link, in one place: many small arrays cost more to address than to compute with.

    Links that another than the next one hangs on gather what is handed to them in memory (`gathers`); a chain's stays in
    registers.
    """

    joint: wp.int32
    body: wp.int32
    base: wp.int32
    base_link: wp.int32
    q_start: wp.int32
    v_start: wp.int32
    v_size: wp.int32
    gathers: wp.int32
    hinge: wp.int32  # 1: one rotation; SLIDE: one translation along an axis of its base; 0: any other joint
    kind: wp.int32  # of the direct pass: 1 a ball joint, 4 a body on no joint at all, 0 any other
    parts: real  # how many halves the body has


@wp.struct
class LinkPlace:
    """Where a link's joint sits on both bodies, in their axes.

    If it is one rotation (`hinge`), R = R_base · (turn cos ½q + turn_axis sin ½q), turn_axis = turn ∘ (axis, 0). If it is one
    translation, R = R_base · turn, along base_axis.
    """

    turn: quat
    turn_axis: quat
    axis: vec3
    base_axis: vec3
    base_point: vec3
    own_point: vec3


@wp.struct
class TreeTable:
    """Links in order: the joint, the body, the body it hangs on, that body's link (−1: ground), the joint's sense."""

    count: wp.int32
    joint: wp.array(dtype=wp.int32)
    body: wp.array(dtype=wp.int32)
    base: wp.array(dtype=wp.int32)
    base_link: wp.array(dtype=wp.int32)
    sign: wp.array(dtype=wp.int32)
    row: wp.array(dtype=LinkRow)
    place: wp.array2d(dtype=LinkPlace)  # [link, world] these and below; shared by all worlds until they are varied (`tables`)
    mass: wp.array2d(dtype=real)
    inertia: wp.array2d(dtype=mat33)
    least: wp.array2d(dtype=real)  # twice its smallest moment of inertia, about


@wp.struct
class TreeWork:
    """Scratch of the recursions, [item, world]; body arrays also hold the ground, at rest unless it is made to move."""

    position: wp.array2d(dtype=vec3)  # [body, world] centre of mass
    rotation: wp.array2d(dtype=quat)
    spin: wp.array2d(dtype=vec3)
    velocity: wp.array2d(dtype=vec3)
    omega: wp.array2d(dtype=vec3)  # `spin` again, where velocities were wanted for other speeds than the recursion's
    acceleration: wp.array2d(dtype=vec3)
    turning: wp.array2d(dtype=vec3)  # [body, world] angular acceleration
    force: wp.array2d(dtype=vec3)  # [body, world] applied, N and N·m
    torque: wp.array2d(dtype=vec3)
    S_l: wp.array2d(dtype=vec3)  # [speed, world] columns of S
    S_a: wp.array2d(dtype=vec3)
    bias_l: wp.array2d(dtype=vec3)  # [link, world] a′
    bias_a: wp.array2d(dtype=vec3)
    arm: wp.array2d(dtype=vec3)  # [link, world] from the base's centre of mass to the link's
    A: wp.array2d(dtype=mat33)  # [link, world] articulated or composite inertia: [A B; Bᵀ D]
    B: wp.array2d(dtype=mat33)
    D: wp.array2d(dtype=mat33)
    Q_l: wp.array2d(dtype=vec3)  # [link, world] force and moment
    Q_a: wp.array2d(dtype=vec3)
    H_l: wp.array2d(dtype=vec3)  # [speed, world] columns of M* S
    H_a: wp.array2d(dtype=vec3)
    U: wp.array2d(dtype=real)  # [speed, world] Sᵀ M* S of a single axis, without what acts on it
    Y: wp.array2d(dtype=real)  # [speed, world] Y of a single axis
    inverse: wp.array2d(dtype=mat66)  # [link, world] of several axes: U⁻¹ without what acts on them
    response: wp.array2d(dtype=mat66)  # [link, world] of several axes: Y
    y: wp.array2d(dtype=real)  # [speed, world]
    u: wp.array2d(dtype=real)  # [speed, world] τ + Sᵀ (Q* − M* a′)
    kind: wp.array2d(dtype=wp.int32)  # [link, world] of the direct pass: as in LinkRow, or what it is in this step
    out: wp.array2d(dtype=vec3)  # [link, world] from the joint's common point to the link's centre of mass
    close_l: wp.array2d(dtype=vec3)  # [link, world] more of a′, whose response is wanted
    close_a: wp.array2d(dtype=vec3)
    change_l: wp.array2d(dtype=vec3)  # [body, world] that response
    change_a: wp.array2d(dtype=vec3)
    change: wp.array2d(dtype=real)  # [speed, world]
    change_q: wp.array2d(dtype=vec3)  # [link, world] of a ball joint, what closing asks of it


@wp.struct
class AxisLaws:
    """What acts on axes, linear in the acceleration: τ = −resist q̈ − push, or a direction that is locked; [item, world]."""

    acts: wp.array2d(dtype=wp.int32)  # [link, world] 1 where there is any
    resist: wp.array2d(dtype=real)  # [speed, world] single axes
    push: wp.array2d(dtype=real)  # [speed, world]
    coupled: wp.array2d(dtype=mat66)  # [link, world] resistance of several axes
    locks: wp.array2d(dtype=wp.int32)  # [link, world] number of locked directions
    row: wp.array2d(dtype=vec6)  # [speed, world] the first `locks` of a link: their directions in its axes
    wanted: wp.array2d(dtype=real)  # [speed, world] and accelerations along them


SLIDE = wp.constant(2)  # of `hinge`
LOOSE = wp.constant(4)  # a link that hangs on nothing: a floating base, or a joint that is taken out


@wp.func
def natural(i: int) -> int:
    """An index that is known not to be negative, so that no code is made for counting from an array's end."""
    return i & 0x7FFFFFFF
