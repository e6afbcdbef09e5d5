"""What ropes that touch keep besides: points of contact, [entry, world].

Entry 4 · slot + c is the c-th of a rope's point, at a shape; entry `base` + p is pair p, of two elements of ropes.
"""

import warp as wp

from sharnir.core.types import mat33, real, vec3

MOST = wp.constant(4)  # points of contact of one point of a rope

OPEN = wp.constant(0)  # how a point of contact is taken in a pass: it does not push;
SLIPS = wp.constant(1)  # it slides;
STICKS = wp.constant(2)  # it holds;
LIFTED = wp.constant(3)  # it does not push, but still rubs by the bound of the passes before

PLACES = wp.constant(16)  # at which what is on its way is looked at
NEAR = wp.constant(real(1.0e-5))  # m: it has arrived
SLIDES = wp.constant(real(1.0e-3))  # m/s: what moves faster slides, and has the dynamic coefficient
TOUCHES = wp.constant(real(1.0e-4))  # m: what is as near at the start of a step has the normal of the start, as tensions have
FAR = wp.constant(real(1.0e9))


@wp.struct
class RopeTouch:
    """Points of contact of ropes: at the rope's own points, which are balls of its radius, n looking from the shape to the rope;
    and of two elements a and b, which are capsules, n looking from a to b, on which P acts.
    """

    base: wp.int32  # entries of shapes; those of pairs follow
    pair_capacity: wp.int32
    columns: wp.int32  # room for unknowns beside the elimination (`touch_couple`)
    rope_of: wp.array(dtype=wp.int32)  # [slot]
    passes: wp.array2d(dtype=wp.int32)  # [rope, rope] 1 where these two (or a rope and itself) do not touch
    skip: wp.array(dtype=wp.int32)  # [rope] elements as far from each other along it do not touch
    hook: wp.array(dtype=wp.int32)  # [end] number of what holds it with other ends at the same place, or −1
    near: wp.array(dtype=wp.int32)  # [end] elements from there on that do not touch those of these
    chunks: wp.int32  # pieces of ropes, of a few elements each
    chunk_first: wp.array(dtype=wp.int32)  # [chunk] its first slot
    chunk_end: wp.array(dtype=wp.int32)
    spans: wp.int32  # longer pieces, of a few chunks each
    span_first: wp.array(dtype=wp.int32)  # [span] its first chunk
    span_end: wp.array(dtype=wp.int32)
    low: wp.array2d(dtype=vec3)  # [slot, world] boxes around elements on their way
    high: wp.array2d(dtype=vec3)
    chunk_low: wp.array2d(dtype=vec3)
    chunk_high: wp.array2d(dtype=vec3)
    span_low: wp.array2d(dtype=vec3)
    span_high: wp.array2d(dtype=vec3)
    pairs: wp.array(dtype=wp.int32)  # [world] pairs of elements in this step
    pair_a: wp.array2d(dtype=wp.int32)  # [pair, world] the element's slot
    pair_b: wp.array2d(dtype=wp.int32)
    pair_s: wp.array2d(dtype=real)  # where on a, 0 to 1: its end points take part by 1 − s and s
    pair_t: wp.array2d(dtype=real)  # where on b
    lost: wp.array(dtype=wp.int32)  # [world] pairs, or points whose impulses are unknowns, for which there was no room at once
    crowded: wp.array(dtype=wp.int32)  # [world] 1 where a point of a rope was near more shapes than there is room for
    most: wp.array(dtype=wp.int32)  # [world] unknowns that a pass had, at most
    live: wp.array(dtype=wp.int32)  # [world] entries in use,
    entry: wp.array2d(dtype=wp.int32)  # and their list
    kept_pairs: wp.array(dtype=wp.int32)  # [world] of the last step
    kept_a: wp.array2d(dtype=wp.int32)
    kept_b: wp.array2d(dtype=wp.int32)
    column: wp.array2d(dtype=wp.int32)  # first of its three unknowns in this pass, or −1
    given: wp.array2d(dtype=vec3)  # N·s, by which its impulse changes in a solve, where the elimination does not know it
    alone_moves: wp.array2d(dtype=vec3)  # `moves` with no unknown but those of the elimination
    used_A: wp.array2d(dtype=mat33)  # A with which factors were made
    stale: wp.array(dtype=wp.int32)  # [world] 1 where factors are to be made anew in any case
    known: wp.array2d(dtype=wp.int32)  # [pair, world] 1 where its columns of W are those of the factors at hand
    W: wp.array2d(dtype=real)  # [(3 · pair + axis) · 3 · pair_capacity + 3 · pair + axis, world] 1/kg, mobility of pairs
    friction: wp.array(dtype=real)  # [rope] of its own surface
    dynamic: wp.array(dtype=real)
    touches: wp.array(dtype=wp.int32)  # [rope] 1 where it touches anything
    apart: wp.array2d(dtype=wp.int32)  # [rope, body] 1 where these two do not touch
    stiff: wp.array(dtype=real)  # kg: σ of `touch.law`, one element
    count: wp.array2d(dtype=wp.int32)  # [slot, world] points of contact, found or expected in this step
    shape: wp.array2d(dtype=wp.int32)
    start: wp.array2d(dtype=real)  # m, the gap at the start of the step
    gap: wp.array2d(dtype=real)  # m, at the end of it, when it was last looked at,
    speed: wp.array2d(dtype=vec3)  # m/s, and the velocity against the surface then: in between gaps are linear in it
    n: wp.array2d(dtype=vec3)
    mu: wp.array2d(dtype=real)
    arm: wp.array2d(dtype=vec3)  # m, from the body's centre of mass
    first_n: wp.array2d(dtype=vec3)  # these: of `direct.energy.rope_contact`: n and arm of the start,
    first_arm: wp.array2d(dtype=vec3)
    came: wp.array2d(dtype=vec3)  # m/s, the velocity against the surface then,
    soft: wp.array2d(dtype=real)  # 1/kg, by which friction gives way,
    pseudo: wp.array2d(dtype=real)  # and what displaces it
    centre: wp.array2d(dtype=vec3)  # N·s: P of `touch.law`
    bound: wp.array2d(dtype=real)  # N·s: g of `touch.law`
    impulse: wp.array2d(dtype=vec3)  # N·s on the rope, as velocities know of it
    before: wp.array2d(dtype=vec3)  # N·s, the same before the pass
    wanted: wp.array2d(dtype=vec3)  # N·s, what the law makes of it
    state: wp.array2d(dtype=wp.int32)  # OPEN, SLIPS, STICKS in this pass
    back: wp.array2d(dtype=wp.int32)  # 1 where friction acts on its mean velocity in the step (`direct.roped_touch`)
    slip: wp.array2d(dtype=vec3)  # unit, the way sliding friction pushes in this pass
    miss: wp.array2d(dtype=vec3)  # m/s: r of `touch.law`
    A: wp.array2d(dtype=mat33)  # kg: − d wanted / d velocity
    kept_count: wp.array2d(dtype=wp.int32)  # [slot, world] of the last step, and below by entry
    kept_shape: wp.array2d(dtype=wp.int32)
    kept_state: wp.array2d(dtype=wp.int32)
    kept_n: wp.array2d(dtype=vec3)
    kept_impulse: wp.array2d(dtype=vec3)
    moves: wp.array2d(dtype=vec3)  # m/s, change of the velocity against the surface in the pass
    launch_impulse: wp.array2d(dtype=vec3)  # N·s, before the passes of a launch
    mixed: wp.array2d(dtype=vec3)  # [column · entries + entry, world] impulses of the last passes (`rope.mixing`)
    pull: wp.array2d(dtype=vec3)  # [slot, world] what a pass began from
    moment: wp.array2d(dtype=vec3)
    end: wp.array2d(dtype=vec3)  # [end, world]
    launch_v: wp.array2d(dtype=vec3)  # [body, world]
    launch_w: wp.array2d(dtype=vec3)
    hat_v: wp.array2d(dtype=vec3)  # V̂ of `touch_bodies`
    hat_w: wp.array2d(dtype=vec3)
    yields: wp.array2d(dtype=wp.int32)  # 1 where it did in this launch
    place: wp.array2d(dtype=wp.int32)  # its place among those that yield in this pass, or −1
    listed: wp.array2d(dtype=wp.int32)  # [place, world] the body
    by_force_v: wp.array2d(dtype=vec3)  # [3 · place + axis, world] Ω
    by_force_w: wp.array2d(dtype=vec3)
    by_torque_v: wp.array2d(dtype=vec3)
    by_torque_w: wp.array2d(dtype=vec3)
    dense: wp.array2d(dtype=real)  # [row · (columns + 1) + column, world]
    asked: wp.array2d(dtype=wp.int32)  # [part, or parts + body, world] the unknown of a group whose column is sought, or −1, −2
    owner: wp.array2d(dtype=wp.int32)  # [column, world] the group of an unknown
    of_entry: wp.array2d(dtype=wp.int32)  # [column, world] the entry of an unknown impulse
    parts: wp.int32  # of the scene that ropes do not tie together
    group: wp.array2d(dtype=wp.int32)  # [part, or parts + body, world] another one with which a pass goes one way, or itself
    rope_part: wp.array(dtype=wp.int32)  # [rope]
    body_part: wp.array(dtype=wp.int32)  # [body] or −1
    holds: wp.array(dtype=wp.int32)  # [body] 1 where it holds a rope
    joint: wp.array(dtype=wp.int32)  # [body] a joint that holds it to what does not move, or −1
    joint_child: wp.array(dtype=wp.int32)  # [joint] these: as in `sequential.data.Work`
    joint_mode: wp.array2d(dtype=wp.int32)
    joint_r_parent: wp.array2d(dtype=vec3)
    joint_r_child: wp.array2d(dtype=vec3)
    joint_W_ll: wp.array2d(dtype=mat33)
    joint_W_la: wp.array2d(dtype=mat33)
    joint_W_aa: wp.array2d(dtype=mat33)
    rows: wp.array(dtype=real)  # [world] by how much of its length a row is open, or a slack element too long, in a step
    spent: wp.array(dtype=wp.int32)  # [world] passes of this step
    met: wp.array(dtype=wp.int32)  # [world] 1 where the last passes met rows and contacts
    looks: wp.array2d(dtype=wp.int32)  # [part, or parts + body, world] how often gaps and normals of a group may yet be looked at
    moved: wp.array2d(dtype=wp.int32)  # [part, or parts + body, world] 1 where the last pass was gone in part, or changed states


@wp.func
def take_over(t: wp.array(dtype=RopeTouch), e: int, old: int, n: vec3, w: int):
    """State and impulse of the last step, its part across the normal turned with the normal."""
    P = t[0].kept_impulse[old, w]
    before = t[0].kept_n[old, w]
    normal = wp.dot(before, P)
    along = P - before * normal
    turned = along - n * wp.dot(n, along)
    size = wp.length(turned)
    if size > real(0.0):
        turned = turned * (wp.length(along) / size)
    t[0].centre[e, w] = n * normal + turned
    t[0].state[e, w] = t[0].kept_state[old, w]
