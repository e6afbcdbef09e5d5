"""Setting the coordinates and speeds of one joint, or the place of one body, while running: what hangs on it follows, a closed
loop is assembled or refused.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import numpy as np

from sharnir.core.spatial import quat_conjugate, quat_multiply, quat_rotate, quat_to_matrix
from sharnir.errors import SimulationError
from sharnir.model.assembly import (
    ASSEMBLED,
    Mechanism,
    assemble,
    child_pose,
    evaluate,
    gear_ends,
    least_change,
    mechanisms,
    read_all,
    set_spin,
    yields,
)
from sharnir.model.model import Control, Model, State


def by_joints(on: np.ndarray) -> list[tuple[list[int], np.ndarray]]:
    """Groups of worlds in which the same joints hold, (these joints, the worlds); `on` (joints, worlds) is where they do."""
    if np.all(on):
        return [(list(range(len(on))), np.arange(np.shape(on)[1]))]
    patterns, group = np.unique(np.asarray(on, bool).T, axis=0, return_inverse=True)
    return [(np.flatnonzero(row).tolist(), np.flatnonzero(group.ravel() == i)) for i, row in enumerate(patterns)]


def disabled(model: Model, control: Control) -> list[int]:
    """Joints that are disabled, by number; an error by name where worlds differ, since an integration takes one tree."""
    on = control.enabled.numpy() != 0
    mixed = np.flatnonzero(on.any(1) != on.all(1))
    if len(mixed):
        name = next(n for n, k in model.joint_names.items() if k == mixed[0])
        raise SimulationError(f"integrate: joint {name!r} is disabled in some worlds only; set it alike in all, or use step()")
    return [int(k) for k in np.flatnonzero(~on.all(1))]


def side_of(model: Model, joint: int, body: int, held: Collection[int]) -> tuple[set[int], bool]:
    """Dynamic bodies reached from `body` by the joints `held` without `joint`, and whether one of them leads to the ground."""
    dynamic = yields(model)
    if not dynamic[body]:
        return set(), True
    links: dict[int, list[int]] = {}
    for k, (p, c) in enumerate(zip(model.parents, model.children, strict=True)):
        if k != joint and k in held and model.joint_kinds[k].mask != 63:
            links.setdefault(int(p), []).append(int(c))
            links.setdefault(int(c), []).append(int(p))
    seen, todo, grounded = {body}, [body], False
    while todo:
        for other in links.get(todo.pop(), ()):
            if not dynamic[other]:
                grounded = True
            elif other not in seen:
                seen.add(other)
                todo.append(other)
    return seen, grounded


def movable_side(model: Model, joint: int, held: Collection[int]) -> tuple[set[int], bool] | None:
    """The bodies that move when a joint's coordinate is set, and whether they are the child's; None on a loop or a gear."""
    if any(joint in (a, b) for (a, _), (b, _), _ratio in gear_ends(model)):
        return None
    parent, child = int(model.parents[joint]), int(model.children[joint])
    side, grounded = side_of(model, joint, child, held)
    if not grounded and parent not in side:
        return side, True
    side, grounded = side_of(model, joint, parent, held)
    return (side, False) if not grounded and child not in side else None


def loop_of(model: Model, joint: int, held: Collection[int]) -> list[int]:
    """All joints, of those `held`, of the mechanism that a joint belongs to."""
    return next(g for g in mechanisms(model, sorted({*held, joint})) if joint in g)


MOVED = ("position", "rotation", "velocity", "spin", "momentum", "q", "qd")  # fields of State that setting a joint changes


def in_groups(state: State, on: np.ndarray, change: Callable[[list[int], np.ndarray], None]) -> None:
    """Call `change` with each group of worlds in which the same joints hold; what it does to other worlds is undone.

    on: (joints, worlds) where joints hold. If a call raises, nothing is changed.
    """
    groups = by_joints(on)
    if len(groups) == 1:
        change(*groups[0])
        return
    arrays = [getattr(state, name) for name in MOVED]
    before = [array.numpy().copy() for array in arrays]
    done = [values.copy() for values in before]
    try:
        for held, worlds in groups:
            change(held, worlds)
            for array, out, start in zip(arrays, done, before, strict=True):
                out[:, worlds] = array.numpy()[:, worlds]
                array.assign(start)
    except SimulationError:
        for array, start in zip(arrays, before, strict=True):
            array.assign(start)
        raise
    for array, out in zip(arrays, done, strict=True):
        array.assign(out)


def set_position(model: Model, state: State, joint: int, value: np.ndarray, on: np.ndarray) -> None:
    """Move a joint to coordinates (worlds, q_size), speeds kept: its child's side follows; a loop is assembled or refused.

    on: (joints, worlds) where joints hold.
    """
    in_groups(state, on, lambda held, worlds: _set_position(model, state, joint, value, held, worlds))


def _set_position(model: Model, state: State, joint: int, value: np.ndarray, held: list[int], worlds: np.ndarray) -> None:
    start, size = int(model.q_start[joint]), model.joint_kinds[joint].q_size
    first, speeds = int(model.v_start[joint]), model.joint_kinds[joint].v_size
    read_all(model, state)
    speed = state.qd.numpy().astype(float)[first : first + speeds].T
    x, r = state.position.numpy().astype(float), state.rotation.numpy().astype(float)
    moved = movable_side(model, joint, held)
    if moved is None:
        for w in worlds:
            gap = assemble(model, state, w, loop_of(model, joint, held), pin=joint, target=value)
            if not gap <= 10 * ASSEMBLED:
                state.position.assign(x)
                state.rotation.assign(r)
                read_all(model, state)
                raise SimulationError(
                    f"joint {joint_name(model, joint)!r} cannot be set to {value[w].tolist()}: its closed loop or gear keeps a "
                    f"gap of {gap:.3g} (m or rad); nothing was changed"
                )
    else:
        side, is_child = moved
        base = int((model.parents if is_child else model.children)[joint])
        fields = velocity_fields(model, state, joint, base, is_child, speed)
        v, s = state.velocity.numpy().astype(float), state.spin.numpy().astype(float)
        own = {b: (v[b] - fields(x[b])[0], s[b] - fields(x[b])[1]) for b in side}  # motion besides the base's and the joint's
        c = int(model.children[joint])
        to_x, to_r = child_pose(model, state, joint, value)
        from_x, from_r = x[c].copy(), r[c].copy()
        if not is_child:  # the child stays: the parent's side makes the inverse motion
            from_x, from_r, to_x, to_r = to_x, to_r, from_x, from_r
        turn = quat_multiply(to_r, quat_conjugate(from_r))
        for b in side:
            x[b] = to_x + quat_rotate(turn, x[b] - from_x)
            r[b] = quat_multiply(turn, r[b])
            r[b] /= np.linalg.norm(r[b], axis=-1, keepdims=True)
        state.position.assign(x)
        state.rotation.assign(r)
        fields = velocity_fields(model, state, joint, base, is_child, speed)
        for b in side:
            field = fields(x[b])
            v[b], s[b] = field[0] + quat_rotate(turn, own[b][0]), field[1] + quat_rotate(turn, own[b][1])
        state.velocity.assign(v)
        set_spin(model, state, s)
    q = state.q.numpy().copy()
    q[start : start + size] = value.T  # the turns that were asked for
    state.q.assign(q)
    read_all(model, state)
    if moved is None:
        _set_velocity(model, state, joint, speed, held, worlds, strict=False)


def velocity_fields(model: Model, state: State, joint: int, base: int, is_child: bool, speed: np.ndarray) -> Any:
    """Velocity and spin, at points (worlds, 3), of the rigid motion of a joint's base body plus that of the joint itself."""
    rows = evaluate(model, state)
    size = speed.shape[1]
    sign = 1.0 if is_child else -1.0
    point = np.array([row.point[joint] for row in rows])
    linear = sign * np.array([speed[w] @ row.free_linear[joint][:size] for w, row in enumerate(rows)]).reshape(-1, 3)
    angular = sign * np.array([speed[w] @ row.free_angular[joint][:size] for w, row in enumerate(rows)]).reshape(-1, 3)
    x, v, s = (a.numpy().astype(float)[base] for a in (state.position, state.velocity, state.spin))

    def at(place: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return v + np.cross(s, place - x) + linear + np.cross(angular, place - point), s + angular

    return at


def place_mechanism(
    model: Model,
    state: State,
    body: int,
    pose: tuple[np.ndarray, np.ndarray],
    motion: tuple[Any, Any],
    on: np.ndarray,
    worlds: np.ndarray,
) -> None:
    """Bring a body to a pose, in some worlds, and all bodies that joints hold to it along with it, as one rigid whole.

    Args:
        pose: position of its centre of mass and rotation, (worlds, …).
        motion: velocity and angular velocity that it has then, (worlds, 3); None: those that it has. The others keep their
            motion relative to it.
        on: (joints, worlds) where joints hold.
        worlds: indices of those where it is placed.
    """

    def change(held: list[int], alike: np.ndarray) -> None:
        chosen = np.intersect1d(alike, worlds)
        if len(chosen):
            _place_mechanism(model, state, body, pose, motion, held, chosen)

    in_groups(state, on, change)


def _place_mechanism(model: Model, state: State, body: int, pose: Any, motion: Any, held: list[int], at: np.ndarray) -> None:
    side, grounded = side_of(model, -1, body, held)
    names = list(model.body_names)
    if grounded:
        raise SimulationError(
            f"body {names[body]!r} cannot be placed: joints hold it, or what hangs on it, to a body that does not yield; set the "
            "positions of these joints"
        )
    x, r, v, s, L = (getattr(state, n).numpy().astype(float) for n in ("position", "rotation", "velocity", "spin", "momentum"))
    inertia = model.bodies.inertia.numpy().astype(float)
    (x0, r0, v0, s0), (x1, r1) = (a[body, at] for a in (x, r, v, s)), (a[at] for a in pose)
    v1, s1 = (old if new is None else new[at] for old, new in zip((v0, s0), motion, strict=True))
    turn = quat_multiply(r1, quat_conjugate(r0))
    for b in side:
        own_v, own_s = v[b, at] - v0 - np.cross(s0, x[b, at] - x0), s[b, at] - s0
        x[b, at] = x1 + quat_rotate(turn, x[b, at] - x0)
        r[b, at] = quat_multiply(turn, r[b, at])
        r[b, at] /= np.linalg.norm(r[b, at], axis=-1, keepdims=True)
        v[b, at] = v1 + np.cross(s1, x[b, at] - x1) + quat_rotate(turn, own_v)
        s[b, at] = s1 + quat_rotate(turn, own_s)
        R = quat_to_matrix(r[b, at])
        L[b, at] = np.einsum("wij,wjk,wlk,wl->wi", R, inertia[b, at], R, s[b, at])
    for name, values in (("position", x), ("rotation", r), ("velocity", v), ("spin", s), ("momentum", L)):
        getattr(state, name).assign(values)


def joint_name(model: Model, joint: int) -> str:
    """The name of a joint by its number."""
    return next(n for n, k in model.joint_names.items() if k == joint)


def set_velocity(model: Model, state: State, joint: int, value: np.ndarray, on: np.ndarray) -> None:
    """Give a joint the speeds (worlds, v_size): its child's side takes them along; on a loop the whole mechanism moves.

    Constrained axes of the joint are brought to rest. A loop that does not allow the speeds raises. on: (joints, worlds) where
    joints hold.
    """
    in_groups(state, on, lambda held, worlds: _set_velocity(model, state, joint, value, held, worlds))


def _set_velocity(
    model: Model, state: State, joint: int, value: np.ndarray, held: list[int], worlds: np.ndarray, strict: bool = True
) -> None:  # fmt: skip
    """`set_velocity` in worlds where the same joints hold; not `strict`, a loop comes as close to the speeds as it can."""
    size = model.joint_kinds[joint].v_size
    x, v, s = (a.numpy().astype(float) for a in (state.position, state.velocity, state.spin))
    moved = movable_side(model, joint, held)
    if moved is not None:
        side, is_child = moved
        base, mover = (int(b[joint]) for b in ((model.parents, model.children) if is_child else (model.children, model.parents)))
        wanted = velocity_fields(model, state, joint, base, is_child, value)
        lead = wanted(x[mover])
        change, spin = lead[0] - v[mover], lead[1] - s[mover]
        for b in side:
            v[b] += change + np.cross(spin, x[b] - x[mover])
            s[b] += spin
    found = evaluate(model, state) if moved is None else []
    for w in worlds if found else ():
        rows, mechanism = found[w], Mechanism(model, loop_of(model, joint, held))
        J, _, _names = mechanism.constraint_rows(rows, x[:, w])
        J = np.vstack([J, mechanism.free_rows(rows, x[:, w], np.full(size, joint), np.arange(size))])
        V = np.concatenate([np.concatenate([v[b, w], s[b, w]]) for b in mechanism.bodies])
        rhs = np.concatenate([np.zeros(len(J) - size), value[w]]) - J @ V
        V = V + least_change(J, mechanism.weights(state.rotation.numpy().astype(float)[:, w]), rhs)
        off = float(np.abs(J @ V - np.concatenate([np.zeros(len(J) - size), value[w]])).max(initial=0.0))
        if strict and not off <= 1e-7 * (1.0 + float(np.abs(value[w]).max())):
            raise SimulationError(
                f"joint {joint_name(model, joint)!r} cannot move at {value[w].tolist()}: its closed loop or gear does not "
                "allow it in this pose; nothing was changed"
            )
        for b, at in mechanism.column.items():
            v[b, w], s[b, w] = V[at : at + 3], V[at + 3 : at + 6]
    state.velocity.assign(v)
    set_spin(model, state, s)
    read_all(model, state)
