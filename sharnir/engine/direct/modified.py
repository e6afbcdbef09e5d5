"""What a caller changed since the last step: a step that follows on may use what the last one found."""

import warp as wp

from sharnir.core.spatial import some
from sharnir.core.types import real, vec3
from sharnir.engine.articulated.data import natural
from sharnir.engine.direct.data import OUT, Direct
from sharnir.engine.sleep import sleeps
from sharnir.model.joint_geometry import coordinate, free_axis
from sharnir.model.kinematics import left_alone, pose_at


@wp.func
def follow_turns(s: wp.array(dtype=Direct), j: int, w: int, h: real):
    """The angles of a joint that is taken out, on the turn that the speeds of its bodies led to in a time (s)."""
    rel = s[0].work.turning[s[0].joints.child[j], w] - s[0].work.turning[s[0].joints.parent[j], w]
    pose = pose_at(s[0].joints, j, w, s[0].position, s[0].rotation)
    n = s[0].joints.v_size[j]
    for a in range(n - s[0].joints.turns[j], n):
        at = s[0].joints.q_start[j] + a
        _d, axis = free_axis(s[0].joints, j, a, pose)
        s[0].state.q[at, w] = coordinate(s[0].joints, j, a, pose, s[0].state.q[at, w] + wp.dot(axis, rel) * h)


@wp.func
def turn_on(s: wp.array(dtype=Direct), i: int, w: int, turns: int, rel: vec3, h: real):
    """The angles of a link's joint after turning at `rel` for a time (s): read, on that turn, before they are a turn off."""
    j = natural(s[0].tree.row[i].joint)
    n = s[0].tree.row[i].v_size
    for a in range(n - turns, n):
        at = natural(s[0].tree.row[i].v_start + a)
        by = s[0].turned[at, w] + wp.dot(s[0].work.S_a[at, w], rel) * h
        if wp.abs(by) > real(1.0):
            q = s[0].joints.q_start[j] + a
            pose = pose_at(s[0].joints, j, w, s[0].position, s[0].rotation)
            s[0].state.q[q, w] = coordinate(s[0].joints, j, a, pose, s[0].state.q[q, w] + by)
            by = real(0.0)
        s[0].turned[at, w] = by


@wp.func
def untouched(s: wp.array(dtype=Direct), w: int) -> bool:
    """Whether bodies stand and move as the last call left them."""
    for n in range(s[0].tree.count):
        b = s[0].tree.row[n].body
        if b < s[0].own:
            if not left_alone(s, b, w):
                return False
    return True


@wp.func
def lies(s: wp.array(dtype=Direct), b: int, w: int) -> bool:
    """Whether a body of the scene sleeps in this step."""
    return sleeps(s, b, w)


@wp.func
def pushed(s: wp.array(dtype=Direct), w: int) -> int:
    """1 where a user's forces act in this call."""
    for b in range(s[0].own):
        if some(s[0].control.force[b, w]) or some(s[0].control.force_once[b, w]):
            return 1
        if some(s[0].control.torque[b, w]) or some(s[0].control.torque_once[b, w]):
            return 1
    for a in range(s[0].speeds):
        if s[0].control.joint_force[a, w] != real(0.0):
            return 1
    return 0


@wp.func
def switched(s: wp.array(dtype=Direct), j: int, w: int) -> bool:
    """Whether a joint was taken out, or put back, after the last step."""
    return j < s[0].scene_joints and (s[0].state.mid_tense[j, w] == OUT) == (s[0].control.enabled[j, w] == 1)


@wp.func
def any_switched(s: wp.array(dtype=Direct), w: int) -> bool:
    found = bool(False)
    for i in range(s[0].tree.count):
        found = found or switched(s, s[0].tree.row[i].joint, w)
    for i in range(s[0].closures.rods):
        found = found or switched(s, s[0].closures.rod_joint[i], w)
    return found
