"""Inverse kinematics of a tree: the coordinates that bring a point of a body to a place, searched for in one kernel."""

from typing import Any

import numpy as np
import warp as wp

from sharnir.core.graphs import LOCK, Recorded
from sharnir.core.spatial import log_quat, turned
from sharnir.core.types import load_modules, mat66, quat, real, vec3, vec6
from sharnir.engine.articulated.data import TreeTable, TreeWork
from sharnir.engine.articulated.matrices import small_inverse
from sharnir.engine.articulated.motion import link_motion
from sharnir.engine.articulated.spanning_tree import Links, Scratch
from sharnir.model.joint_types import JointTable

GOAL_INTEGERS, GOAL_NUMBERS = ("body", "link", "rows", "iterations"), ("damping", "tolerance", "left")
LONGEST_MOVE = wp.constant(real(0.5))  # m or rad that a coordinate moves at most in an iteration


@wp.struct
class Goal:
    """What is to be reached, in arrays so that a recorded launch takes the values of the moment."""

    body: wp.array(dtype=wp.int32)
    link: wp.array(dtype=wp.int32)  # that moves the body; −1: none
    rows: wp.array(dtype=wp.int32)  # 3: a place, 6: a rotation too
    iterations: wp.array(dtype=wp.int32)  # at most
    point: wp.array(dtype=vec3)  # of the body, from its centre of mass, in its frame
    place: wp.array(dtype=vec3)
    rotation: wp.array(dtype=quat)
    damping: wp.array(dtype=real)
    tolerance: wp.array(dtype=real)  # m and rad, of the error's length
    left: wp.array(dtype=real)  # the length of the error at the end


@wp.func
def jacobian_column(tree: TreeTable, k: TreeWork, link: int, a: int, place: vec3) -> vec6:
    """The twist that a unit of speed a gives to what hangs on a link, at a place."""
    turn = k.S_a[a, 0]
    move = k.S_l[a, 0] + wp.cross(turn, place - k.position[tree.body[link], 0])
    return vec6(move[0], move[1], move[2], turn[0], turn[1], turn[2])


@wp.func
def move_joint(t: JointTable, j: int, scale: real, k: TreeWork, q: wp.array2d(dtype=real)) -> None:
    """Move a joint's coordinates by its part of the step, scaled."""
    v = t.v_start[j]
    at = t.q_start[j]
    plain = t.v_size[j]
    if t.turns[j] == 3:
        plain = plain - 3
        p = at + plain
        by = vec3(k.u[v + plain, 0], k.u[v + plain + 1, 0], k.u[v + plain + 2, 0]) * scale
        turn = wp.normalize(turned(quat(q[p, 0], q[p + 1, 0], q[p + 2, 0], q[p + 3, 0]), by))
        for i in range(4):
            q[p + i, 0] = turn[i]
    for i in range(plain):
        q[at + i, 0] = q[at + i, 0] + k.u[v + i, 0] * scale


@wp.kernel(module="sharnir.tree")
def reach(t: JointTable, tree: TreeTable, goal: Goal, q: wp.array2d(dtype=real), qd: wp.array2d(dtype=real), k: TreeWork) -> None:
    """Damped least squares; the damping shrinks with the error."""
    b = goal.body[0]
    rows = goal.rows[0]
    for _ in range(goal.iterations[0]):
        for i in range(tree.count):
            link_motion(t, tree, i, 0, q, qd, k)
        turn = k.rotation[b, 0]
        place = k.position[b, 0] + wp.quat_rotate(turn, goal.point[0])
        off = goal.place[0] - place
        twisted = vec3(real(0.0))
        if rows == 6:
            twisted = log_quat(goal.rotation[0] * wp.quat_inverse(turn))
        error = vec6(off[0], off[1], off[2], twisted[0], twisted[1], twisted[2])
        size = wp.length(error)
        goal.left[0] = size
        if size <= goal.tolerance[0]:
            break
        N = mat66()
        link = goal.link[0]
        while link >= 0:
            j = tree.joint[link]
            for a in range(t.v_start[j], t.v_start[j] + t.v_size[j]):
                c = jacobian_column(tree, k, link, a, place)
                N = N + wp.outer(c, c)
            link = tree.base_link[link]
        damped = goal.damping[0] * wp.min(real(1.0), size)
        for i in range(6):
            N[i, i] = N[i, i] + damped * damped
        y = small_inverse(N, rows) * error
        most = LONGEST_MOVE
        link = goal.link[0]
        while link >= 0:
            j = tree.joint[link]
            for a in range(t.v_start[j], t.v_start[j] + t.v_size[j]):
                k.u[a, 0] = wp.dot(jacobian_column(tree, k, link, a, place), y)
                most = wp.max(most, wp.abs(k.u[a, 0]))
            link = tree.base_link[link]
        link = goal.link[0]
        while link >= 0:
            move_joint(t, tree.joint[link], LONGEST_MOVE / most, k, q)
            link = tree.base_link[link]


class Reach:
    """Inverse kinematics on the links of a model, with arrays of its own; recorded once."""

    def __init__(self, links: Links) -> None:
        with LOCK:
            load_modules([reach.module], links.device)
            self._x, self._goal = Scratch(links, 1), Goal()
            self._arrays = {"q": self._x.q}
            for kind, names in (
                (wp.int32, GOAL_INTEGERS),
                (real, GOAL_NUMBERS),
                (vec3, ("point", "place")),
                (quat, ("rotation",)),
            ):
                for name in names:
                    self._arrays[name] = wp.zeros(1, dtype=kind, device=links.device)
                    setattr(self._goal, name, self._arrays[name])
        self._links = links
        on_cpu = wp.get_device(links.device).is_cpu
        self._views = {name: array.numpy() for name, array in self._arrays.items()} if on_cpu else {}
        inputs = [links.joints, links.tree, self._goal, self._x.q, self._x.v, self._x.tree]
        self._search = Recorded(lambda: wp.launch(reach, dim=1, inputs=inputs, device=links.device), links.device)

    def _put(self, name: str, value: Any) -> None:
        if self._views:
            self._views[name][...] = value
        else:
            array = self._arrays[name]
            array.assign(np.ascontiguousarray(np.broadcast_to(value, array.numpy().shape)))

    def __call__(self, body: int, point: np.ndarray, place: np.ndarray, rotation: Any, start: np.ndarray,
                 damping: float, tolerance: float, iterations: int) -> tuple[np.ndarray, float]:  # fmt: skip
        """(nq,) the coordinates found from those of a start, and how far from the goal they leave the point, m and rad."""
        com = self._links.model.com[body]
        for name, value in (
            ("body", body), ("link", self._links.link_of.get(body, -1)), ("rows", 3 if rotation is None else 6),
            ("iterations", iterations), ("point", point - com), ("place", place),
            ("damping", damping), ("tolerance", tolerance), ("left", np.inf), ("q", start[:, None]),
        ):  # fmt: skip
            self._put(name, value)
        if rotation is not None:
            self._put("rotation", rotation)
        self._search()
        return self._arrays["q"].numpy()[:, 0].astype(float), float(self._arrays["left"].numpy()[0])
