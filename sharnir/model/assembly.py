"""Work on a whole mechanism, done on the host before or between steps: loops, assembly, redundant rows, setting coordinates.

Rows come from the same device functions that a step uses (`kinematics.evaluate_joints`); the linear algebra is dense NumPy on
one mechanism (the bodies connected by joints, ground excepted).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import warp as wp

from sharnir.core.spatial import cross, quat_conjugate, quat_exp, quat_log, quat_multiply, quat_rotate, quat_to_matrix
from sharnir.core.strided import of_first
from sharnir.core.types import EPSILON, mat33, quat, vec3
from sharnir.errors import SceneError
from sharnir.model.joint_types import AXIS_NAMES
from sharnir.model.kinematics import evaluate_joints, place_child, read_joints
from sharnir.model.model import DYNAMIC, Model, State

ASSEMBLED = max(1e-10, 100 * EPSILON)  # gap in m and rad below which a mechanism counts as assembled


@dataclass
class Rows:
    """Constrained and free axes of every joint of one world, evaluated at a state."""

    point: np.ndarray  # (joints, 3) the common point
    linear: np.ndarray  # (joints, 3, 3) axes as columns
    angular: np.ndarray
    gap_linear: np.ndarray  # (joints, 3)
    gap_angular: np.ndarray
    free_linear: np.ndarray  # (joints, 6, 3) rows of the speeds
    free_angular: np.ndarray
    gear_gap: np.ndarray  # (gears,)


def row_arrays(model: Model) -> list[Any]:
    """Arrays for what `kinematics.evaluate_joints` finds, in its order."""
    n, w = len(model.joint_kinds), model.worlds
    shapes: list[tuple[tuple[int, ...], Any]] = [
        ((n, w), vec3), ((n, w), mat33), ((n, w), mat33), ((n, w), vec3), ((n, w), vec3), ((n, 6, w), vec3), ((n, 6, w), vec3),
    ]  # fmt: skip
    return [wp.zeros(shape, dtype=dtype, device=model.device) for shape, dtype in shapes]


def evaluate(model: Model, state: State) -> list[Rows]:
    """The rows of every joint, one `Rows` a world."""
    n, w, device = len(model.joint_kinds), model.worlds, model.device
    arrays = row_arrays(model)
    wp.launch(evaluate_joints, dim=(n, w), inputs=[model.joints, state, *arrays], device=device)
    host = [np.asarray(a.numpy(), float) for a in arrays]
    gears = np.zeros((len(model.gear_names), w))
    if len(gears):
        at = State()
        for name in State.vars:  # type: ignore[attr-defined]
            setattr(at, name, getattr(state, name))
        at.q, at.qd = wp.clone(state.q), wp.clone(state.qd)  # joint coordinates are a state of their own: looking leaves them
        read_all(model, at)
        gears = gear_values(model, at) - state.gear_start.numpy()
    per_world = [[a[:, i] for a in host[:5]] + [a[:, :, i] for a in host[5:]] + [gears[:, i]] for i in range(w)]
    return [Rows(*parts) for parts in per_world]


# ---- the graph ---------------------------------------------------------------------------------------------------------


def yields(model: Model) -> np.ndarray:
    """(bodies,) True where a body is dynamic; all others are ground."""
    return np.asarray(model.bodies.motion.numpy() == DYNAMIC)


def holding(model: Model) -> list[int]:
    """Joints that are enabled at the start."""
    return np.flatnonzero(model.joint_enabled).tolist()


def gear_ends(model: Model) -> list[tuple[tuple[int, int], tuple[int, int], float]]:
    """(joint, axis) of both ends of every gear, and its ratio."""
    t = model.gears
    if t.count == 0:
        return []
    a, i, b, j = (x.numpy().tolist() for x in (t.joint_a, t.axis_a, t.joint_b, t.axis_b))
    return [((a[g], i[g]), (b[g], j[g]), float(r)) for g, r in enumerate(t.ratio.numpy())]


def gear_values(model: Model, state: State) -> np.ndarray:
    """(gears, worlds) q_a − ratio · q_b at the coordinates in state.q."""
    q = state.q.numpy().astype(float)
    rows = [q[model.q_start[a] + i] - r * q[model.q_start[b] + j] for (a, i), (b, j), r in gear_ends(model)]
    return np.array(rows).reshape(len(rows), model.worlds)


def start_gears(model: Model, state: State) -> None:
    """Take the present coordinates as those from which gears count."""
    state.gear_start.assign(gear_values(model, state))


def mechanisms(model: Model, joints: list[int]) -> list[list[int]]:
    """Groups of the given joints that share dynamic bodies or a gear."""
    dynamic = yields(model)
    root = {k: k for k in joints}

    def find(k: int) -> int:
        while root[k] != k:
            root[k] = root[root[k]]
            k = root[k]
        return k

    owner: dict[int, int] = {}
    for k in joints:
        for b in (int(model.parents[k]), int(model.children[k])):
            if dynamic[b]:
                root[find(k)] = find(owner.setdefault(b, k))
    for (a, _), (b, _), _ratio in gear_ends(model):
        if a in root and b in root:
            root[find(a)] = find(b)
    groups: dict[int, list[int]] = {}
    for k in joints:
        groups.setdefault(find(k), []).append(k)
    return list(groups.values())


def loop_joints(model: Model, held: Collection[int]) -> list[int]:
    """Joints, of those `held`, in a closed loop (through ground or not): the edges of the body graph that are no bridges."""
    dynamic = yields(model)
    edges = [
        (int(p) if dynamic[p] else 0, int(c) if dynamic[c] else 0) for p, c in zip(model.parents, model.children, strict=True)
    ]
    near: dict[int, list[tuple[int, int]]] = {}
    for k, (p, c) in enumerate(edges):
        if k in held and model.joint_kinds[k].mask != 63:
            near.setdefault(p, []).append((c, k))
            near.setdefault(c, []).append((p, k))
    order: dict[int, int] = {}
    low: dict[int, int] = {}
    bridges: set[int] = set()
    for start in near:
        if start in order:
            continue
        order[start] = low[start] = len(order)
        stack = [(start, -1, iter(near[start]))]
        while stack:  # depth-first search without recursion: chains may have thousands of bodies
            body, came, rest = stack[-1]
            for other, k in rest:
                if k == came:
                    continue
                if other in order:
                    low[body] = min(low[body], order[other])
                else:
                    order[other] = low[other] = len(order)
                    stack.append((other, k, iter(near[other])))
                    break
            else:
                stack.pop()
                if stack:
                    above = stack[-1][0]
                    low[above] = min(low[above], low[body])
                    if low[body] > order[above]:
                        bridges.add(came)
    linked = {k for rows in near.values() for _, k in rows}
    return sorted(linked - bridges)


# ---- rows of one mechanism as a matrix ----------------------------------------------------------------------------------


class Mechanism:
    """The dense rows of some joints in one world; columns are the twists (v, ω) of their bodies, the world itself excepted.

    A body that is not dynamic has weight 0: its velocity counts, and nothing changes it.
    """

    def __init__(self, model: Model, joints: list[int]) -> None:
        self.model, self.joints = model, joints
        self.bodies = sorted({int(b) for k in joints for b in (model.parents[k], model.children[k]) if b != 0})
        self.column = {b: 6 * i for i, b in enumerate(self.bodies)}
        self.dynamic = np.repeat(yields(model)[self.bodies], 6)  # columns that can change
        self._at = np.full(len(model.com), -1)  # of every body its first column, −1 where it has none
        self._at[self.bodies] = 6 * np.arange(len(self.bodies))
        label = {k: n for n, k in model.joint_names.items()}
        held = [(k, slot) for k in joints for slot in range(6) if not model.joint_kinds[k].mask >> slot & 1]
        self._joint, self._slot = np.array(held, int).reshape(-1, 2).T
        self._names = [f"{label[k]}.{AXIS_NAMES[slot]}" for k, slot in held]
        free = [(k, i) for k in joints for i in range(model.joint_kinds[k].v_size)]
        self.free_joint, self.free_axis = np.array(free, int).reshape(-1, 2).T

    def rows(self, k: np.ndarray, d: np.ndarray, n: np.ndarray, point: np.ndarray, x: np.ndarray) -> np.ndarray:
        """The rows (d, n) of joints k (rows,) at common points (rows, 3); x are the positions of all bodies."""
        J = np.zeros((len(k), 6 * len(self.bodies)))
        for bodies, sign in ((self.model.children[k], 1.0), (self.model.parents[k], -1.0)):
            moved = self._at[bodies] >= 0
            columns = self._at[bodies[moved], None] + np.arange(6)
            arm = point[moved] - x[bodies[moved]]
            J[np.flatnonzero(moved)[:, None], columns] += sign * np.concatenate([d[moved], cross(arm, d[moved]) + n[moved]], 1)
        return J

    def free_rows(self, rows: Rows, x: np.ndarray, k: np.ndarray, i: np.ndarray) -> np.ndarray:
        """Rows of the speeds i (rows,) of joints k (rows,)."""
        return self.rows(k, rows.free_linear[k, i], rows.free_angular[k, i], rows.point[k], x)

    def constraint_rows(self, rows: Rows, x: np.ndarray, skip: int = -1) -> tuple[np.ndarray, np.ndarray, list[str]]:
        """J, G and the name of every constrained row of the joints, all but those of joint `skip`."""
        use = self._joint != skip
        k, slot = self._joint[use], self._slot[use]
        slides = (slot < 3)[:, None]
        d = np.where(slides, rows.linear[k, :, slot % 3], 0.0)
        n = np.where(slides, 0.0, rows.angular[k, :, slot % 3])
        J, G = self.rows(k, d, n, rows.point[k], x), (d * rows.gap_linear[k]).sum(1) + (n * rows.gap_angular[k]).sum(1)
        names = [name for name, used in zip(self._names, use, strict=True) if used]
        for name, gap, (end_a, end_b, ratio) in zip(self.model.gear_names, rows.gear_gap, gear_ends(self.model), strict=True):
            if end_a[0] in self.joints and end_b[0] in self.joints:
                a, b = self.free_rows(rows, x, *np.array([end_a, end_b], int).T)
                J, G = np.vstack([J, a - ratio * b]), np.append(G, gap)
                names.append(name)
        return J, G, names

    def weights(self, rotation: np.ndarray) -> np.ndarray:
        """M⁻¹ of the bodies, block-diagonal, dense."""
        W = np.zeros((6 * len(self.bodies),) * 2)
        t = self.model.bodies
        inv_mass, inv_inertia = of_first(t.inv_mass), of_first(t.inv_inertia)
        turns = quat_to_matrix(rotation[self.bodies])
        for (b, at), R in zip(self.column.items(), turns, strict=True):
            W[at : at + 3, at : at + 3] = np.eye(3) * inv_mass[b]
            W[at + 3 : at + 6, at + 3 : at + 6] = R @ inv_inertia[b] @ R.T
        return W


def least_change(J: np.ndarray, W: np.ndarray, rhs: np.ndarray) -> np.ndarray:
    """The smallest change of the velocities (in the mass metric) with J ΔV = rhs; redundant rows are welcome."""
    WJ = W @ J.T
    A = J @ WJ
    return np.asarray(WJ @ (np.linalg.pinv(A, rcond=1e-11, hermitian=True) @ rhs))


def assemble(model: Model, state: State, world: int, joints: list[int], pin: int = -1, target: np.ndarray | None = None) -> float:
    """Close the gaps of some joints in one world by Gauss–Newton steps; returns the gap that remains (m or rad).

    `pin` names a joint whose coordinates are to become `target` (worlds, q_size): all its six axes are rows then. State arrays
    of the device are changed for the world; velocities are not.
    """
    mechanism = Mechanism(model, joints)
    position, rotation = state.position.numpy().astype(float), state.rotation.numpy().astype(float)
    gap = np.inf
    for _ in range(100):
        rows = evaluate(model, state)[world]
        x = position[:, world]
        J, G, _names = mechanism.constraint_rows(rows, x, skip=pin)
        if pin >= 0 and target is not None:
            anchor, turn = child_pose(model, state, pin, target)
            c = int(model.children[pin])
            # the target pose of the child, seen at its anchor
            point = rows.point[pin]
            there = anchor[world] + quat_rotate(turn[world], quat_rotate(quat_conjugate(rotation[c, world]), point - x[c]))
            error = np.concatenate([point - there, quat_log(quat_multiply(rotation[c, world], quat_conjugate(turn[world])))])
            e = np.eye(6)
            pins = mechanism.rows(np.full(6, pin), e[:, :3], e[:, 3:], np.tile(point, (6, 1)), x)
            J, G = np.vstack([J, pins]), np.concatenate([G, error])
        gap = float(np.abs(G).max(initial=0.0))
        if gap <= ASSEMBLED or not np.isfinite(gap):
            break
        step = least_change(J, mechanism.weights(rotation[:, world]), -G).reshape(-1, 6)
        step *= min(1.0, 0.4 / max(float(np.abs(step[:, 3:]).max(initial=0.0)), 1e-300))
        for b, at in mechanism.column.items():
            position[b, world] += step[at // 6, :3]
            rotation[b, world] = quat_multiply(quat_exp(step[at // 6, 3:]), rotation[b, world])
            rotation[b, world] /= np.linalg.norm(rotation[b, world])
        state.position.assign(position)
        state.rotation.assign(rotation)
    return gap


def assemble_start(model: Model, state: State) -> None:
    """Assemble a scene that does not start assembled (one world), or refuse it with the gap that remains."""
    held = holding(model)
    if not held:
        return
    rows = evaluate(model, state)[0]
    gaps = np.maximum(np.abs(rows.gap_linear).max(1), np.abs(rows.gap_angular).max(1))
    if gaps[held].max() <= ASSEMBLED:
        return
    label = {k: name for name, k in model.joint_names.items()}
    for group in mechanisms(model, held):
        if max(gaps[k] for k in group) <= ASSEMBLED:
            continue
        left = assemble(model, state, 0, group)
        if not left <= 10 * ASSEMBLED:
            after = evaluate(model, state)[0]
            size = np.maximum(np.abs(after.gap_linear).max(1), np.abs(after.gap_angular).max(1))
            worst = max(group, key=lambda k: float(size[k]))
            raise SceneError(
                f"the mechanism of joint {label[worst]!r} cannot be assembled: a gap of {left:.3g} (m or rad) remains there; "
                f"allowed is {ASSEMBLED:.0e}: check lengths, frames and axes, or start closer"
            )


@dataclass
class Pose:
    """A mechanism as it stands in one pose: its rows, and which of them follow from the rows before them."""

    rows: Rows
    x: np.ndarray
    J: np.ndarray
    names: list[str]
    dependent: list[int]

    @property
    def rank(self) -> int:
        """Number of rows that are independent."""
        return len(self.names) - len(self.dependent)


class Loops:
    """A mechanism with closed loops, looked at where it starts and a little further along its free motion.

    A dependence of rows in the start pose alone is that pose's, and not the mechanism's. State is left as it was.
    """

    def __init__(self, model: Model, state: State, joints: list[int]) -> None:
        self.model, self.state, self.joints = model, state, joints
        self.mechanism = Mechanism(model, joints)
        self.start = self._look()

    def _look(self) -> Pose:
        rows, x = evaluate(self.model, self.state)[0], self.state.position.numpy()[:, 0].astype(float)
        J, _, names = self.mechanism.constraint_rows(rows, x)
        return Pose(rows, x, J, names, dependent_rows(J[:, self.mechanism.dynamic]))

    def free(self, pose: Pose) -> np.ndarray:
        """Directions (rows) in which the mechanism can move in a pose."""
        return np.asarray(np.linalg.svd(pose.J[:, self.mechanism.dynamic])[2][pose.rank :])

    @cached_property
    def moved(self) -> Pose | None:
        """The pose a little further on; None if the mechanism cannot be assembled there, or cannot move."""
        keep = [(a, a.numpy().copy()) for a in (self.state.position, self.state.rotation)]
        free = self.free(self.start)
        if not len(free):
            return None
        basis = np.zeros((len(free), self.start.J.shape[1]))
        basis[:, self.mechanism.dynamic] = free
        move = basis.T @ np.cos(np.arange(len(basis)) + 1.0)  # some direction of the free motion, always the same
        move *= 0.05 / np.abs(move).max()
        position, rotation = (value.copy() for _, value in keep)
        for b, at in self.mechanism.column.items():
            position[b, 0] += move[at : at + 3]
            rotation[b, 0] = quat_multiply(quat_exp(move[at + 3 : at + 6]), rotation[b, 0])
        self.state.position.assign(position)
        self.state.rotation.assign(rotation)
        pose = self._look() if assemble(self.model, self.state, 0, self.joints) <= 1e3 * ASSEMBLED else None
        for array, value in keep:
            array.assign(value)
        return pose


def look_at_loops(model: Model, state: State) -> tuple[list[str], np.ndarray, np.ndarray]:
    """The rows that are redundant, the axes that are rigid, and the axes that are shaky, of all mechanisms with loops or gears
    (see below).
    """
    geared = {k for ends in gear_ends(model) for k, _ in ends[:2]}
    held = holding(model)
    everything = mechanisms(model, held)
    looped = loop_joints(model, held)
    both = set(looped).union(*(group for group in everything if geared.intersection(group)))
    groups = {tuple(group): Loops(model, state, group) for group in mechanisms(model, sorted(both))}
    redundant = [name for loops in groups.values() for name in redundant_rows(loops)]
    rigid, shaky = np.zeros(model.speeds, bool), np.zeros(model.speeds, bool)
    for group in mechanisms(model, sorted(looped)):
        loops = groups.get(tuple(group)) or Loops(model, state, group)
        rigid[rigid_axes(loops)] = True
        shaky[shaky_axes(loops)] = True
    return redundant, rigid, shaky


def redundant_rows(loops: Loops) -> list[str]:
    """Names of the rows ('joint.axis') of closed loops that follow from the rows before them, wherever the loop stands."""
    pose = loops.start
    if pose.dependent and loops.mechanism.dynamic.sum() > pose.rank:
        pose = loops.moved or pose
    return [pose.names[i] for i in pose.dependent]


def rigid_axes(loops: Loops) -> list[int]:
    """Numbers of the free axes of joints that the loops they are in hold still, wherever the loop stands: an axis that stands
    still in one pose alone (a dead point) is not one of them.
    """
    found = still_axes(loops, loops.start)
    if found and loops.mechanism.dynamic.sum() > loops.start.rank and loops.moved is not None:
        found &= still_axes(loops, loops.moved)
    return sorted(found)


def still_axes(loops: Loops, pose: Pose) -> set[int]:
    """Numbers of the free axes that loops hold still in a pose."""
    mechanism = loops.mechanism
    k, i = mechanism.free_joint, mechanism.free_axis
    speeds = mechanism.free_rows(pose.rows, pose.x, k, i)[:, mechanism.dynamic]
    rest = np.abs(loops.free(pose) @ speeds.T).max(0, initial=0.0) <= 1e-7 * np.linalg.norm(speeds, axis=1)
    return set((loops.model.v_start[k] + i)[rest].tolist())


def shaky_axes(loops: Loops) -> list[int]:
    """Numbers of the free axes that can move in the start pose alone, and stand still a little further on: of a frame that only
    just yields.
    """
    start, moved = loops.start, loops.moved if loops.start.dependent else None
    if moved is None or moved.rank <= start.rank:
        return []
    return sorted(still_axes(loops, moved) - still_axes(loops, start))


def dependent_rows(J: np.ndarray, tolerance: float = 1e-7) -> list[int]:
    """Indices of rows that are combinations of earlier ones (Gram–Schmidt, each row orthogonalised twice)."""
    basis = np.zeros((min(J.shape), J.shape[1]))
    rank, dependent = 0, []
    for i, row in enumerate(J):
        size = np.linalg.norm(row)
        rest = row.copy()
        for _ in range(2):
            rest -= basis[:rank].T @ (basis[:rank] @ rest)
        left = np.linalg.norm(rest)
        if left <= tolerance * size or rank == len(basis):
            dependent.append(i)
        else:
            basis[rank] = rest / left
            rank += 1
    return dependent


# ---- poses and coordinates of a state ------------------------------------------------------------------------------------


def child_pose(model: Model, state: State, joint: int, target: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(worlds, 3), (worlds, 4): the pose of a joint's child at coordinates (worlds, q_size), its parent as it stands."""
    keep = state.q.numpy().copy()
    q = keep.copy()
    start = int(model.q_start[joint])
    q[start : start + target.shape[1]] = target.T
    state.q.assign(q)
    position = wp.zeros(model.worlds, dtype=vec3, device=model.device)
    rotation = wp.zeros(model.worlds, dtype=quat, device=model.device)
    wp.launch(place_child, dim=model.worlds, inputs=[model.joints, state, joint, position, rotation], device=model.device)
    state.q.assign(keep)
    return position.numpy().astype(float), rotation.numpy().astype(float)


def read_all(model: Model, state: State, first: int = 0, worlds: int | None = None) -> None:
    """Bring state.q and state.qd up to date, in all worlds or in some that follow each other."""
    shape = len(model.joint_kinds), model.worlds if worlds is None else worlds
    if len(model.joint_kinds):
        wp.launch(read_joints, dim=shape, inputs=[model.joints, state, first], device=model.device)


def set_spin(model: Model, state: State, spin: np.ndarray) -> None:
    """Write spins (bodies, worlds, 3) and the angular momenta that belong to them."""
    state.spin.assign(spin)
    R = quat_to_matrix(state.rotation.numpy().astype(float))
    inertia = model.bodies.inertia.numpy().astype(float)
    local = np.einsum("bwji,bwj->bwi", R, spin)
    state.momentum.assign(np.einsum("bwij,bwj->bwi", R, np.einsum("bwij,bwj->bwi", inertia, local)))
