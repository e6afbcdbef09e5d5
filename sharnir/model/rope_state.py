"""What changes of ropes, and what is commanded of them: parts of `model.State` and `model.Control`.

Arrays are [slot, world] or [rope, world], the world last; `rope.data` defines slots.
"""

from typing import Any

import warp as wp

from sharnir.core.types import quat, real, vec3


@wp.struct
class RopeState:
    """What a step changes of ropes: `State.rope`."""

    trees: wp.int32  # 1: slots run as on trees (`rope.build.Layout`), 0: as the ropes' own elimination takes them

    segments: wp.array2d(dtype=wp.int32)  # [rope, world] in use
    length: wp.array2d(dtype=real)  # [slot, world] of the element, m
    position: wp.array2d(dtype=vec3)  # [slot, world] of the point, m
    velocity: wp.array2d(dtype=vec3)  # [slot, world] m/s
    rotation: wp.array2d(dtype=quat)  # [slot, world] of the element; its third axis is the tangent
    spin: wp.array2d(dtype=vec3)  # [slot, world] rad/s, world axes
    pull: wp.array2d(dtype=vec3)  # [slot, world] impulse of the row of element j on point j + 1, N·s; −T Δt along the tangent
    moment: wp.array2d(dtype=vec3)  # [slot, world] impulse moment on element j at interface j, N·m·s
    tight: wp.array2d(dtype=real)  # [slot, world] N, the largest tension or pressure of late
    was: wp.array2d(dtype=real)  # [slot, world] N, the tension one step before the last
    now: wp.array2d(dtype=real)  # [slot, world] N, the tension of the last step
    before: wp.array2d(dtype=vec3)  # [slot, world] elastic moment at the interface one step ago, N·m
    started: wp.array2d(dtype=wp.int32)  # [rope, world] 1 once there was a step
    cut: wp.array2d(dtype=wp.int32)  # [slot, world] 1 where element j holds nothing any more
    slack: wp.array2d(dtype=wp.int32)  # [slot, world] 0 where element j is taut, 1 slack, −1 taut with its points changed over
    span: wp.array2d(dtype=real)  # [slot, world] m, s = d₃·(r_{j+1} − r_j) of the element: its length where it is taut
    owed: wp.array2d(dtype=real)  # [rope, world] m, that the joining of two segments left out
    end_force: wp.array2d(dtype=vec3)  # [end, world] impulse on the rope by what holds it, N·s
    tie_force: wp.array2d(dtype=vec3)  # [tie, world] impulse on the rope by a body of a tree that is tied to it, N·s
    smooth: wp.array2d(dtype=vec3)  # [slot, world] m/s at the pose, as mean velocities lead there; these: not of `sequential`
    gain: wp.array2d(dtype=vec3)  # [slot, world] m/s², by which they change
    spin_smooth: wp.array2d(dtype=vec3)  # [slot, world] rad/s, rad/s²: spins as mean spins lead there, and their change
    spin_gain: wp.array2d(dtype=vec3)
    gain_2: wp.array2d(dtype=vec3)  # [slot, world] m/s³, m/s⁴: by how much gains change per second, and that
    gain_3: wp.array2d(dtype=vec3)
    spin_gain_2: wp.array2d(dtype=vec3)
    spin_gain_3: wp.array2d(dtype=vec3)
    degree: wp.array2d(dtype=wp.int32)  # [rope, world] of the polynomial by which mean velocities are foreseen: 0 … 3
    reel_rate: wp.array2d(dtype=real)  # [rope, world] m/s, at which the reel paid out in the last step
    reel_now: wp.array2d(dtype=real)  # [rope, world] m/s, the same at the pose
    end_mean: wp.array2d(dtype=vec3)  # [end, world] m/s, mean velocity of the end in the last step
    body_couple: wp.array2d(dtype=vec3)  # [body, world] N·m, of ropes on the body in the last step
    kept_velocity: wp.array2d(dtype=vec3)  # [slot, world] velocities as they were left, to see whether they were changed
    kept_spin: wp.array2d(dtype=vec3)


@wp.struct
class RopeControl:
    """What a user commands of ropes between steps: `Control.rope`."""

    force: wp.array2d(dtype=vec3)  # [slot, world] N on the point, until changed
    force_once: wp.array2d(dtype=vec3)  # [slot, world] N in the next step alone
    torque: wp.array2d(dtype=vec3)  # [slot, world] N·m on the element, until changed
    reel_speed: wp.array2d(dtype=real)  # [rope, world] m/s, paid out where positive
    reel_to: wp.array2d(dtype=real)  # [rope, world] m, the length to be reached at that speed; 0: none
    wind: wp.array(dtype=vec3)  # [world] m/s


def arrays_of(struct: Any) -> tuple[str, ...]:
    """Names of the arrays of a Warp struct type, without its numbers and nested structs."""
    return tuple(name for name, var in struct.vars.items() if getattr(var.type, "ndim", 0))


ROPE_STATE_FIELDS = arrays_of(RopeState)
ROPE_CONTROL_FIELDS = arrays_of(RopeControl)
