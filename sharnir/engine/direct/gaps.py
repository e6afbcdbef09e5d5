"""How far the halves of cut joints, rods and gears are apart, and joints whose axes are switched."""

import warp as wp

from sharnir.core.spatial import log_quat
from sharnir.core.types import real, vec3
from sharnir.engine.articulated.data import LOOSE
from sharnir.engine.direct.data import Direct
from sharnir.laws.prepare import axis_unit
from sharnir.model.joint_geometry import coordinate, joint_gap
from sharnir.model.kinematics import pose_at


@wp.func
def gap_size(s: wp.array(dtype=Direct), linear: vec3, angular: vec3) -> real:
    """Size of a gap: the larger of its angle, rad, and its length as a part of the scene's length."""
    return wp.max(wp.length(linear) * s[0].settings.per_metre[0], wp.length(angular))


@wp.func
def new_coordinate(s: wp.array(dtype=Direct), k: int, i: int, w: int) -> real:
    """A coordinate at the new pose; turns are counted from the last one and the speed of the step."""
    pose = pose_at(s[0].joints, k, w, s[0].position, s[0].rotation)
    at = s[0].joints.v_start[k] + i
    near = s[0].state.q[s[0].joints.q_start[k] + i, w] + s[0].turned[at, w] + s[0].speed[at, w] * s[0].drift[w]
    return coordinate(s[0].joints, k, i, pose, near)


@wp.func
def gear_gap(s: wp.array(dtype=Direct), g: int, w: int) -> real:
    """q_a − ratio · q_b at the new pose, against its value at the start."""
    q_a = new_coordinate(s, s[0].gears.joint_a[g], s[0].gears.axis_a[g], w)
    q_b = new_coordinate(s, s[0].gears.joint_b[g], s[0].gears.axis_b[g], w)
    return q_a - s[0].gears.ratio[g] * q_b - s[0].state.gear_start[g, w]


@wp.func
def gear_gap_size(s: wp.array(dtype=Direct), g: int, gap: real) -> real:
    """Size of a gear's gap, as `gap_size`: of its first axis."""
    return wp.abs(gap) * axis_unit(s, s[0].gears.joint_a[g], s[0].gears.axis_a[g])


@wp.func
def half_gap(s: wp.array(dtype=Direct), i: int, w: int):
    """How far the second half of a body that was cut stands from the first, m, and is turned against it, rad."""
    b = s[0].closures.weld_body[i]
    half = s[0].closures.weld_half[i]
    turn = log_quat(s[0].rotation[half, w] * wp.quat_inverse(s[0].rotation[b, w]))
    return s[0].position[half, w] - s[0].position[b, w], turn


@wp.func
def axis_gap(n_base: vec3, n: vec3) -> vec3:
    """The turn from one direction to another."""
    c = wp.cross(n_base, n)
    s2 = wp.dot(c, c)
    if s2 < real(1.0e-6) and wp.dot(n_base, n) > real(0.0):
        return c * (real(1.0) + s2 / real(6.0))
    s = wp.sqrt(s2)
    return c * (wp.atan2(s, wp.dot(n_base, n)) / wp.max(s, real(1.0e-30)))


@wp.func
def any_gap(s: wp.array(dtype=Direct), i: int, w: int):
    """Gap of a link's joint at the new pose, the link against its base."""
    j = s[0].tree.joint[i]
    linear = vec3(real(0.0))
    angular = vec3(real(0.0))
    if s[0].joints.free[j] != 63 and s[0].work.kind[i, w] != LOOSE:
        linear, angular = joint_gap(s[0].joints, j, pose_at(s[0].joints, j, w, s[0].position, s[0].rotation))
        linear = linear * real(s[0].tree.sign[i])
        angular = angular * real(s[0].tree.sign[i])
    return linear, angular
