"""Joint coordinates read from the maximal state and written to it: kernels that both formulations and the host use."""

from typing import Any

import warp as wp

from sharnir.core.types import compile_quickly, mat33, quat, vec3
from sharnir.model.joint_geometry import (
    JointPose,
    angular_axes,
    free_axis,
    joint_gap,
    joint_pose,
    joint_transform,
    linear_axes,
    parent_frame,
    read_coordinates,
)
from sharnir.model.joint_types import JointTable
from sharnir.model.model import State

compile_quickly("sharnir.kinematics")


@wp.func
def pose_at(joints: JointTable, k: int, w: int, position: wp.array2d(dtype=vec3), rotation: wp.array2d(dtype=quat)) -> JointPose:
    p = joints.parent[k]
    c = joints.child[k]
    return joint_pose(joints, k, w, position[p, w], rotation[p, w], position[c, w], rotation[c, w])


@wp.kernel(module="sharnir.kinematics")
def read_joints(joints: JointTable, state: State, first: int) -> None:
    """All joint coordinates and speeds from the maximal state, from a first world on."""
    k, at = wp.tid()
    w = first + at
    pose = pose_at(joints, k, w, state.position, state.rotation)
    read_coordinates(joints, k, w, pose, state.q)
    p = joints.parent[k]
    c = joints.child[k]
    u_p = state.velocity[p, w] + wp.cross(state.spin[p, w], pose.child_anchor - state.position[p, w])
    u_c = state.velocity[c, w] + wp.cross(state.spin[c, w], pose.child_anchor - state.position[c, w])
    for i in range(joints.v_size[k]):
        d, n = free_axis(joints, k, i, pose)
        state.qd[joints.v_start[k] + i, w] = wp.dot(d, u_c - u_p) + wp.dot(n, state.spin[c, w] - state.spin[p, w])


@wp.kernel(module="sharnir.kinematics")
def place_child(joints: JointTable, state: State, k: int, position: wp.array(dtype=vec3), rotation: wp.array(dtype=quat)) -> None:
    """The pose the child of joint k has, relative to its parent as it stands, at the coordinates in state.q."""
    w = wp.tid()
    pose = pose_at(joints, k, w, state.position, state.rotation)
    offset, turn = joint_transform(joints, k, w, state.q)
    frame = parent_frame(joints, k, pose)
    q = frame * turn * wp.quat_inverse(joints.child_frame[k, w])
    anchor = pose.parent_anchor + wp.quat_rotate(frame, offset)
    rotation[w] = wp.normalize(q)
    position[w] = anchor - wp.quat_rotate(q, joints.child_point[k, w])


@wp.kernel(module="sharnir.kinematics")
def evaluate_joints(
    joints: JointTable,
    state: State,
    point: wp.array2d(dtype=vec3),
    linear: wp.array2d(dtype=mat33),
    angular: wp.array2d(dtype=mat33),
    gap_linear: wp.array2d(dtype=vec3),
    gap_angular: wp.array2d(dtype=vec3),
    free_linear: wp.array3d(dtype=vec3),
    free_angular: wp.array3d(dtype=vec3),
) -> None:
    """Common point, constrained axes, gaps and free axes of every joint, for work on the host (assembly, rank, setting)."""
    k, w = wp.tid()
    pose = pose_at(joints, k, w, state.position, state.rotation)
    point[k, w] = pose.child_anchor
    linear[k, w] = linear_axes(joints, k, pose)
    angular[k, w] = angular_axes(joints, k, pose)
    g, a = joint_gap(joints, k, pose)
    gap_linear[k, w] = g
    gap_angular[k, w] = a
    for i in range(joints.v_size[k]):
        d, n = free_axis(joints, k, i, pose)
        free_linear[k, i, w] = d
        free_angular[k, i, w] = n


@wp.func
def left_alone(s: Any, b: int, w: int) -> bool:
    """Whether a body stands and moves as the last call left it: nobody changed the caller's state, `now`."""
    same = s[0].now.velocity[b, w] == s[0].now.kept_velocity[b, w]
    same = same and s[0].now.momentum[b, w] == s[0].now.kept_momentum[b, w]
    same = same and s[0].now.position[b, w] == s[0].now.kept_position[b, w]
    return same and s[0].now.rotation[b, w] == s[0].now.kept_rotation[b, w]
