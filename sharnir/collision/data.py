"""What contact detection is given, keeps and hands on: shapes, materials, points of contact, scratch. [item, world] throughout.

Shapes stand in an order that does not depend on that in which bodies were added (fixed ones, kinematic ones, dynamic ones, each
by name), so pairs and points come out in the same order too, and b of a pair is always dynamic.
"""

from typing import Any

import warp as wp

from sharnir.core.types import mat33, quat, real, vec3

vec2 = wp.types.vector(length=2, dtype=real)
vec4: Any = wp.types.vector(length=4, dtype=real)
mat43: Any = wp.types.matrix(shape=(4, 3), dtype=real)
mat83 = wp.types.matrix(shape=(8, 3), dtype=real)

KINDS = ("plane", "sphere", "capsule", "box", "cylinder", "cone", "ellipsoid", "hull", "triangle", "mesh", "heights")
PLANE, SPHERE, CAPSULE, BOX, CYLINDER, CONE, ELLIPSOID, HULL, TRIANGLE, MESH, HEIGHTS = (
    wp.constant(i) for i in range(len(KINDS))
)

MARGIN = wp.constant(real(2.0e-3))  # m: a gap up to which two shapes that stand still have a point
POINTS_A_PAIR = 32  # at most, since a bit a point says which were matched


@wp.struct
class ShapeTable:
    """Constant data of all collision shapes. A shape is a core and a radius around it.

    `size`: box half sizes, ellipsoid half axes, capsule, cylinder and cone (radius of the core, half length, -); a hull, a mesh
    and a height field: half sizes of their box, in whose middle their own axes stand. A plane looks along its own z.
    """

    count: wp.int32
    kind: wp.array(dtype=wp.int32)
    body: wp.array(dtype=wp.int32)
    position: wp.array(dtype=vec3)  # m, from the body's centre of mass, body axes
    rotation: wp.array(dtype=quat)
    size: wp.array(dtype=vec3)
    radius: wp.array(dtype=real)  # m, of a sphere, of a capsule, of a rounded edge
    bound: wp.array(dtype=real)  # m, of a sphere around its middle that holds it; of a plane 0
    first: wp.array(dtype=wp.int32)  # into `corners` (hull), `nodes` (mesh), `heights`
    length: wp.array(dtype=wp.int32)  # how many of these; of a height field its samples along y
    columns: wp.array(dtype=wp.int32)  # of a height field its samples along x
    material: wp.array(dtype=wp.int32)
    group: wp.array(dtype=wp.int32)  # bits: what it is
    mask: wp.array(dtype=wp.int32)  # bits: what it touches
    surface: wp.array2d(dtype=vec3)  # [shape, world] m/s, of a conveyor, body axes
    belt: wp.array(dtype=wp.int32)  # [shape] the belt that its surface is, or −1
    belt_body: wp.array(dtype=wp.int32)  # [belt] the body that turns with it, and the one that this turns in
    belt_frame: wp.array(dtype=wp.int32)
    belt_axis: wp.array(dtype=vec3)  # unit, axes of the latter
    belt_radius: wp.array(dtype=real)  # m, of the belt's way a radian
    swept: wp.array(dtype=wp.int32)  # the shapes that the broad phase sweeps
    wide: wp.array(dtype=wp.int32)  # the others: planes, meshes, what is much larger than most
    sweeps: wp.int32  # how many these are
    wides: wp.int32
    bodies: wp.int32
    motion: wp.array(dtype=wp.int32)  # [body]
    reach: wp.array(dtype=real)  # [body] m, from its centre of mass to its farthest point
    apart_first: wp.array(dtype=wp.int32)  # [body + 1] into `apart`: bodies with a higher number that it does not touch
    apart: wp.array(dtype=wp.int32)
    # joints between bodies that do not touch while one of them is enabled, ordered by the lower body's number
    held_first: wp.array(dtype=wp.int32)  # [body + 1] into the three below
    held_body: wp.array(dtype=wp.int32)  # the lower body
    held_other: wp.array(dtype=wp.int32)  # the higher body
    held_joint: wp.array(dtype=wp.int32)
    rule_first: wp.array(dtype=wp.int32)  # [body + 1] into `rule`: bodies with a higher number with which it has a material
    rule_other: wp.array(dtype=wp.int32)
    rule_material: wp.array(dtype=wp.int32)
    corners: wp.array(dtype=vec3)  # of hulls; three a triangle of meshes, in the order of the tree's leaves
    edges: wp.array(dtype=wp.int32)  # [triangle] bit k: edge k (corner k to k + 1) sticks out, bit 3 + k: corner k does
    node_low: wp.array(dtype=vec3)  # trees of meshes, depth first
    node_high: wp.array(dtype=vec3)
    node_next: wp.array(dtype=wp.int32)  # the node after this one and all below it, from the mesh's first
    node_leaf: wp.array(dtype=wp.int32)  # first triangle · 8 + how many, 0 for none
    heights: wp.array(dtype=real)
    grip_first: wp.array(dtype=wp.int32)  # into `grip`, of a height field with a map of friction; −1: none
    grip: wp.array(dtype=real)  # √ of what a cell has of the material's friction


@wp.struct
class Materials:
    """[material, world]; all worlds are one and the same memory until a world gets its own. See `Material`."""

    friction: wp.array2d(dtype=vec2)  # along, across
    direction: wp.array2d(dtype=vec3)  # body axes; 0: the same all around
    dynamic: wp.array2d(dtype=real)
    restitution: wp.array2d(dtype=real)
    rolling: wp.array2d(dtype=real)  # m
    torsion: wp.array2d(dtype=real)  # m
    stiffness: wp.array2d(dtype=real)  # N/m; 0: rigid
    damping: wp.array2d(dtype=real)  # N·s/m
    turned: wp.array2d(dtype=real)  # rad, of the direction about the outward normal
    shear: wp.array2d(dtype=vec2)  # N/m, along, across; 0: rigid
    relaxation: wp.array2d(dtype=real)  # m


@wp.struct
class Contacts:
    """Points of contact, [point, world]; those of a pair of shapes follow each other, pairs in the order of their shapes."""

    capacity: wp.int32  # points
    pair_capacity: wp.int32
    count: wp.array(dtype=wp.int32)  # [world] points
    lost: wp.array(dtype=wp.int32)  # [world] points and pairs of the last step for which there was no room
    shape_a: wp.array2d(dtype=wp.int32)
    shape_b: wp.array2d(dtype=wp.int32)
    body_a: wp.array2d(dtype=wp.int32)
    body_b: wp.array2d(dtype=wp.int32)
    normal: wp.array2d(dtype=vec3)  # unit, from a to b, world axes
    point: wp.array2d(dtype=vec3)  # m, world, midway between the two surfaces
    gap: wp.array2d(dtype=real)  # m; negative: overlap
    found: wp.array2d(dtype=real)  # m, the gap with both bodies at their anchors
    local: wp.array2d(dtype=vec3)  # m, the point in b's axes, from its centre of mass: its identity
    impulse: wp.array2d(dtype=vec3)  # N·s on b, world axes: the solver's of the last step, 0 for a new point
    friction: wp.array2d(dtype=vec2)  # along, across, combined
    along: wp.array2d(dtype=vec3)  # unit, across the normal, world axes: the first axis of friction; 0 where both are the same
    dynamic: wp.array2d(dtype=real)  # of friction along while it slides; across in proportion
    restitution: wp.array2d(dtype=real)
    rolling: wp.array2d(dtype=real)
    torsion: wp.array2d(dtype=real)
    stiffness: wp.array2d(dtype=real)
    damping: wp.array2d(dtype=real)
    surface: wp.array2d(dtype=vec3)  # m/s, of b's surface relative to a's, from conveyors; across the normal, world axes
    # bit 0: it is a tyre's; 1: a belt's; 2: b is a wheel; 3: it is a's tyre; 4: a raycast wheel's, its belt from bit 8 on
    special: wp.array2d(dtype=wp.int32)
    shear: wp.array2d(dtype=vec2)  # N/m, how a tyre's tread yields along the axes of friction
    relaxation: wp.array2d(dtype=real)  # m, σ, that a tyre rolls until its tread has left the ground
    belt_body: wp.array2d(dtype=wp.int32)  # see `ShapeTable`; 0: no belt
    belt_frame: wp.array2d(dtype=wp.int32)
    belt_axis: wp.array2d(dtype=vec3)  # unit, world axes
    belt_pull: wp.array2d(dtype=vec3)  # m: velocity of b's surface relative to a's a radian a second that the belt's body turns
    began: wp.array2d(dtype=wp.int32)  # 1: the pair overlapped or pushed in no point in the step before
    pairs: wp.array(dtype=wp.int32)  # [world] pairs that have points
    pair_first: wp.array2d(dtype=wp.int32)  # [pair, world] their first point
    pair_size: wp.array2d(dtype=wp.int32)
    pair_feature: wp.array2d(dtype=wp.int32)  # what the pair's function wants to know again in the next step
    anchor_position: wp.array2d(dtype=vec3)  # [body, world] the pose in which a body was last looked at closely; 0: none
    anchor_rotation: wp.array2d(dtype=quat)
    idle: wp.array2d(dtype=real)  # [body, world] these and below are of the State: s, since it was anchored
    asleep: wp.array2d(dtype=wp.int32)  # [body, world] `still.AWAKE`, `ASLEEP`, `WOKEN`
    resting: wp.array(dtype=wp.int32)  # [world] 1: all sleep, and nothing is to be done
    enabled: wp.array2d(dtype=wp.int32)  # [joint, world] `Control.enabled`
    held: wp.array2d(dtype=wp.int32)  # [entry of `ShapeTable.held_joint`, world] `enabled` in the last step
    # [tie] bodies that joints (in their order), springs, gears, cables join: they sleep and wake together (`still.is_tied`)
    joined_a: wp.array(dtype=wp.int32)
    joined_b: wp.array(dtype=wp.int32)


@wp.struct
class Broad:
    """The broad phase: inflated boxes, the order of the sweep, the list of pairs, kept from step to step."""

    capacity: wp.int32  # pairs
    centre: wp.array2d(dtype=vec3)  # [shape, world] where the shape's own axes stand
    frame: wp.array2d(dtype=mat33)
    low: wp.array2d(dtype=vec3)  # [shape, world] the inflated box
    high: wp.array2d(dtype=vec3)
    order: wp.array2d(dtype=wp.int32)  # [swept, world]
    edge: wp.array2d(dtype=real)  # [swept, world] lower ends along the axis, in that order
    side: wp.array2d(dtype=vec4)  # [swept, world] the other two intervals, likewise
    raw_a: wp.array2d(dtype=wp.int32)  # [pair, world] as they are found
    raw_b: wp.array2d(dtype=wp.int32)
    first: wp.array2d(dtype=wp.int32)  # [shape + 1, world]
    a: wp.array2d(dtype=wp.int32)  # [pair, world] in order; a < b
    b: wp.array2d(dtype=wp.int32)
    rule: wp.array2d(dtype=wp.int32)  # material of the pair, or −1
    count: wp.array(dtype=wp.int32)  # [world]
    lost: wp.array(dtype=wp.int32)  # [world] pairs without room when the list was made
    made: wp.array(dtype=wp.int32)  # [world] how often it was; 0 asks for a new one
    held: wp.array2d(dtype=wp.int32)  # [entry of `ShapeTable.held_joint`, world] `Contacts.enabled` when the list was made
    still: wp.array2d(dtype=wp.int32)  # [body, world] 1: it stands near its anchor, off it by so much
    moved: wp.array2d(dtype=vec3)  # m
    turned: wp.array2d(dtype=vec3)  # rad
    way: wp.array2d(dtype=real)  # [body, world] m, that no point of it moves farther in a step
    thrown: wp.array2d(dtype=real)  # [body, world] m, that a blow of this step may throw it,
    thrown_by: wp.array2d(dtype=wp.int32)  # [body, world] of which other body, −1: of none,
    thrown_next: wp.array2d(dtype=real)  # [body, world] and that any but this may


@wp.struct
class Kept:
    """Points of the step before."""

    pairs: wp.array(dtype=wp.int32)
    a: wp.array2d(dtype=wp.int32)  # [pair, world]
    b: wp.array2d(dtype=wp.int32)
    first: wp.array2d(dtype=wp.int32)
    size: wp.array2d(dtype=wp.int32)
    feature: wp.array2d(dtype=wp.int32)
    touched: wp.array2d(dtype=wp.int32)
    local: wp.array2d(dtype=vec3)  # [point, world]
    impulse: wp.array2d(dtype=vec3)


@wp.struct
class Polytope:
    """Scratch of the generic convex pair where cores overlap, [item, world]; empty where no pair needs it."""

    capacity: wp.int32  # corners
    face_capacity: wp.int32
    corner: wp.array2d(dtype=vec3)
    on_a: wp.array2d(dtype=vec3)
    face: wp.array2d(dtype=wp.vec3i)
    plane: wp.array2d(dtype=vec4)
    rim: wp.array2d(dtype=wp.vec2i)


@wp.struct
class Collision:
    """All that `collide` reads and writes. Kernels take it as an array of one element."""

    shapes: ShapeTable
    materials: Materials
    contacts: Contacts
    broad: Broad
    kept: Kept
    polytope: Polytope
    dt: wp.array(dtype=real)
    position: wp.array2d(dtype=vec3)  # [body, world] the caller's: centres of mass, rotations, velocities, spins
    rotation: wp.array2d(dtype=quat)
    velocity: wp.array2d(dtype=vec3)
    spin: wp.array2d(dtype=vec3)


@wp.struct
class Solid:
    """A convex shape where it is: what pair functions are given. `first`, `length`: its corners."""

    kind: wp.int32
    size: vec3
    radius: real
    x: vec3
    R: mat33
    first: wp.int32
    length: wp.int32


@wp.struct
class Manifold:
    """What a pair function returns: unit normal from A to B, up to four points midway between the surfaces, their gaps.

    Without points and with a normal: `apart` is how far the two are from each other along it, at least.
    """

    n: vec3
    apart: real
    when: real  # of points that will be: the part of the step after which they are
    count: wp.int32
    p: mat43
    gap: vec4
    feature: wp.int32


@wp.func
def put(m: Manifold, p: vec3, gap: real) -> Manifold:
    """The manifold with a point more."""
    k = m.count
    m.p[k, 0] = p[0]
    m.p[k, 1] = p[1]
    m.p[k, 2] = p[2]
    m.gap[k] = gap
    m.count = k + 1
    return m


@wp.func
def frame_axis(R: mat33, k: int) -> vec3:
    """Axis k of a frame."""
    return vec3(R[0, k], R[1, k], R[2, k])
