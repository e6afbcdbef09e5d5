"""What ropes that touch keep besides: points of contact. [entry, world]: entry 4 · slot + c is the c-th of a rope's point."""

import warp as wp

from sharnir.types import mat33, real, vec3

MOST = wp.constant(4)  # points of contact of one point of a rope

YIELDING = wp.constant(4)  # bodies that yield to ropes in one solve with them
COLUMNS = wp.constant(6 * 4)
OPEN = wp.constant(0)  # how a point of contact is taken in a pass: it does not push;
SLIPS = wp.constant(1)  # it slides;
STICKS = wp.constant(2)  # it holds


@wp.struct
class RopeTouch:
    """Points of contact of ropes, at the rope's own points, which are balls of its radius; n looks from the shape to the rope."""

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
    centre: wp.array2d(dtype=vec3)  # N·s: P of `touch.law`
    bound: wp.array2d(dtype=real)  # N·s: g of `touch.law`
    impulse: wp.array2d(dtype=vec3)  # N·s on the rope, as velocities know of it
    before: wp.array2d(dtype=vec3)  # N·s, the same before the pass
    wanted: wp.array2d(dtype=vec3)  # N·s, what the law makes of it
    state: wp.array2d(dtype=wp.int32)  # OPEN, SLIPS, STICKS in this pass
    slip: wp.array2d(dtype=vec3)  # unit, the way sliding friction pushes in this pass
    miss: wp.array2d(dtype=vec3)  # m/s: r of `touch.law`
    A: wp.array2d(dtype=mat33)  # kg: − d wanted / d velocity
    kept_count: wp.array2d(dtype=wp.int32)  # [slot, world] of the last step
    kept_shape: wp.array2d(dtype=wp.int32)
    kept_state: wp.array2d(dtype=wp.int32)
    kept_n: wp.array2d(dtype=vec3)
    kept_impulse: wp.array2d(dtype=vec3)
    moves: wp.array2d(dtype=vec3)  # m/s, change of the velocity against the surface in the pass
    launch_impulse: wp.array2d(dtype=vec3)  # N·s, before the passes of a launch
    alone: wp.array2d(dtype=vec3)  # [slot, world] changes of velocities if no body yielded
    v: wp.array2d(dtype=vec3)  # [slot, world] what a pass began from
    w: wp.array2d(dtype=vec3)
    pull: wp.array2d(dtype=vec3)
    moment: wp.array2d(dtype=vec3)
    end: wp.array2d(dtype=vec3)  # [end, world]
    body_v: wp.array2d(dtype=vec3)  # [body, world]
    body_w: wp.array2d(dtype=vec3)
    launch_v: wp.array2d(dtype=vec3)
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
    dense: wp.array2d(dtype=real)  # [row · (COLUMNS + 1) + column, world]
    parts: wp.int32  # of the scene that ropes do not couple: a pass goes its own way in each
    joined: wp.array2d(dtype=wp.int32)  # [part, world] 1 where a body that yields in this pass is touched
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
    scale: wp.array(dtype=real)  # [world] N·s, the largest impulse of a point
    looks: wp.array(dtype=wp.int32)  # [world] how often gaps and normals may still be looked at in the step
