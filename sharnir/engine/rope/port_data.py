"""What is known of ports of ropes (`ports`)."""

import warp as wp

from sharnir.core.types import mat33, real, vec3


@wp.struct
class Ports:
    """Ports of all ropes. A leg is the part of a port's path on one rope, from a slot down to that rope's first."""

    count: wp.int32
    rope: wp.array(dtype=wp.int32)  # [port]
    body: wp.array(dtype=wp.int32)  # [port]
    tie: wp.array(dtype=wp.int32)  # [port] which tie, or −1: the rope's last end
    turn: wp.array(dtype=wp.int32)  # [port] 1: the rows of a clamp's moment, 2: of a winch, 0: those of the point
    leg: wp.array(dtype=wp.int32)  # [port + 1] its first leg
    leg_rope: wp.array(dtype=wp.int32)  # [leg]
    leg_at: wp.array(dtype=wp.int32)  # [leg] entry of the rope's first slot
    X: wp.array2d(dtype=mat33)  # [entry, world] what μ does to what hangs on that slot's point
    Y: wp.array2d(dtype=mat33)
    UY: wp.array2d(dtype=mat33)  # spin that it gives to that slot's element, its point at rest
    root_X: wp.array2d(dtype=mat33)  # [leg, world] at the rope's first end
    root_Y: wp.array2d(dtype=mat33)
    driven: wp.array2d(dtype=mat33)  # [leg, world] velocity that μ gives to the rope's last point, where that is to be held
    own: wp.array2d(dtype=mat33)  # [port, world] G of a port by itself
    L: wp.array2d(dtype=mat33)  # [port, world] of a clamp
    matrix: wp.array3d(dtype=real)  # [row, row, world], then its factor
    first: wp.array(dtype=wp.int32)  # [row] its envelope (`envelope`)
    last: wp.array(dtype=wp.int32)
    rhs: wp.array2d(dtype=real)  # [row, world], then μ
    sum: wp.array2d(dtype=vec3)  # [port, world] σ in this pass so far
    dv: wp.array2d(dtype=vec3)  # [body, world] changes that were there before
    dw: wp.array2d(dtype=vec3)
    p_l: wp.array2d(dtype=vec3)  # [body, world] and what ropes did to bodies without μ
    p_a: wp.array2d(dtype=vec3)
