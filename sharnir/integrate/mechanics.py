"""Dynamics of trees as functions: what `sharnir.dynamics` hands out."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

import numpy as np
import warp as wp

from sharnir.core.spatial import cross, quat_conjugate, quat_exp, quat_log, quat_multiply, quat_rotate, turn_from, unit_quat
from sharnir.core.strided import of_first
from sharnir.core.types import load_modules, np_real, quat, real, vec3
from sharnir.engine.articulated import functions
from sharnir.engine.articulated.functions import forward_dynamics as forward_dynamics_kernel
from sharnir.engine.articulated.inverse_kinematics import Reach
from sharnir.engine.articulated.spanning_tree import Links, Scratch
from sharnir.engine.articulated.spanning_tree import links as links_of
from sharnir.errors import SceneError, SimulationError, as_numbers, is_positive
from sharnir.integrate.data import Motion
from sharnir.integrate.events import check_events
from sharnir.integrate.integrate import Options, check_drives, drives_for, first_of, run
from sharnir.integrate.integrate import Trajectory as Trajectory
from sharnir.integrate.methods import INTEGRATION_METHODS
from sharnir.model import assembly
from sharnir.model.actuators import Axis
from sharnir.model.joint_setting import disabled
from sharnir.model.model import CONTROL_FIELDS, DRIVE_WORDS, Control, Model, State
from sharnir.scene.scene import Scene


def links(model: Any, without: Collection[int] | None = None) -> Links:
    """The tree of a model, in whose coordinates these functions work; ropes have none. `without` as `tree.hang.links` has it."""
    if without is None and hasattr(model, "model") and hasattr(model, "commands"):  # a Simulation: joints as they are now
        without = np.flatnonzero((model.commands.enabled.numpy() == 0).all(1)).tolist()
    model = model if isinstance(model, Links) else getattr(model, "model", model)
    if not isinstance(model, Scene | Model | Links):
        raise SceneError(f"dynamics: a Scene, a Model or a Simulation is needed first, got {model!r}")
    t = links_of(model, without)
    if t.model.ropes is not None:
        name = next(iter(t.model.ropes.names))
        raise SceneError(f"dynamics: rope {name!r} has no joint coordinates; these functions take mechanisms without ropes")
    return t


def _load(t: Links, n: int, **values: np.ndarray) -> Scratch:
    load_modules([functions.kinematics.module], t.device)
    if n > 1 and t.varied and n != t.model.worlds:
        raise SimulationError(f"dynamics: masses vary from world to world: give one state, or one a world ({t.model.worlds})")
    x = t.work(n)
    for name, value in values.items():
        getattr(x, name).assign(np.ascontiguousarray(value.T, np_real))
    x.tree.force.zero_()  # an integration may have left its own
    x.tree.torque.zero_()
    return x


def _states(t: Links, q: Any, v: Any = None, third: Any = None, name: str = "tau") -> tuple[bool, int, list[np.ndarray]]:
    """Whether there is one state, how many, and q, v, third as (n, size)."""
    n = max(len(x) if np.ndim(x) > 1 else 1 for x in (q, v, third) if x is not None)
    single = all(np.ndim(x) < 2 for x in (q, v, third) if x is not None)
    parts = [t.state("q", q, t.nq, n), t.state("v", v, t.nv, n), t.state(name, third, t.nv, n)]
    return single, n, parts


def _tree(t: Links, who: str) -> None:
    """Refuse, by name, loops where coordinates are moved one by one."""
    if t.loops:
        halves = {link.joint for link in t.links if link.body >= len(t.model.com)} | set(t.rods)
        name = next((n for n, k in t.model.joint_names.items() if k in halves), next(iter(t.model.gear_names), ""))
        what = "couples others" if name in t.model.gear_names else "closes a loop"
        raise SceneError(f"{who}: joint {name!r} {what}; this function takes trees")


def _gravity(t: Links, gravity: Sequence[float] | None) -> Any:
    return vec3(*(t.model.gravity if gravity is None else gravity))


def _launch(kernel: Any, t: Links, n: int, *inputs: Any) -> None:
    wp.launch(kernel, dim=n, inputs=list(inputs), device=t.device)


def forward_dynamics(model: Any, q: Any, v: Any, tau: Any = None, *, gravity: Sequence[float] | None = None) -> np.ndarray:
    """Accelerations of the joints, (nv,) or (n, nv), from coordinates, speeds and forces on the free axes; O(n)."""
    t = links(model)
    single, n, (q, v, tau) = _states(t, q, v, tau)
    x = _load(t, n, q=q, v=v, tau=tau)
    tables = t.joints, t.tree, t.closures, _gravity(t, gravity)
    _launch(forward_dynamics_kernel, t, n, *tables, x.q, x.v, x.tau, x.laws, x.tree, x.rows, x.a)
    a = x.a.numpy().T.astype(float)
    return np.asarray(a[0] if single else a)


def inverse_dynamics(model: Any, q: Any, v: Any, a: Any, *, gravity: Sequence[float] | None = None) -> np.ndarray:
    """Forces on the free axes, (nv,) or (n, nv), that give the accelerations a: recursive Newton–Euler."""
    t = links(model)
    single, n, (q, v, a) = _states(t, q, v, a, "a")
    x = _load(t, n, q=q, v=v, a=a)
    _launch(functions.inverse_dynamics, t, n, t.bodies, t.joints, t.tree, _gravity(t, gravity), x.q, x.v, x.a, x.tree, x.tau)
    tau = x.tau.numpy().T.astype(float)
    return np.asarray(tau[0] if single else tau)


def bias_forces(model: Any, q: Any, v: Any, *, gravity: Sequence[float] | None = None) -> np.ndarray:
    """Gravity, Coriolis and centrifugal forces: the tau that gives no acceleration."""
    return inverse_dynamics(model, q, v, np.zeros(links(model).nv), gravity=gravity)


def gravity_torques(model: Any, q: Any, *, gravity: Sequence[float] | None = None) -> np.ndarray:
    """The tau that holds the mechanism at rest."""
    t = links(model)
    return inverse_dynamics(t, q, np.zeros(t.nv), np.zeros(t.nv), gravity=gravity)


def mass_matrix(model: Any, q: Any) -> np.ndarray:
    """(nv, nv) or (n, nv, nv), by composite inertias."""
    t = links(model)
    single, n, (q, v, _) = _states(t, q)
    x = _load(t, n, q=q, v=v)
    M = wp.zeros((t.nv, t.nv, n), dtype=real, device=t.device)
    _launch(functions.mass_matrix, t, n, t.bodies, t.joints, t.tree, x.q, x.v, x.tree, M)
    out = np.moveaxis(M.numpy().astype(float), -1, 0)
    return np.asarray(out[0] if single else out)


def passive_forces(model: Any, q: Any, v: Any) -> np.ndarray:
    """Forces of the springs, dampers and viscous friction at the joints, on the free axes."""
    t = links(model)
    single, n, (q, v, _) = _states(t, q, v)
    out = np.zeros((n, t.nv))
    for k, kind in enumerate(t.kinds[: len(t.model.joint_kinds)]):
        at, v0 = int(t.q_start[k]), int(t.v_start[k])
        axes = t.model.joint_axes[k]
        for i, axis in enumerate(axes):
            out[:, v0 + i] = -(axis.damping + axis.friction.viscous) * v[:, v0 + i]
            if len(kind.turns) < 3 or i < len(axes) - 3:
                out[:, v0 + i] -= axis.stiffness * (q[:, at + i] - axis.rest)
        if len(kind.turns) == 3 and any(axis.stiffness for axis in axes[-3:]):
            out[:, v0 + len(axes) - 3 : v0 + len(axes)] -= ball_pull(q[:, at + kind.q_size - 4 : at + kind.q_size], axes[-3:])
    return np.asarray(out[0] if single else out)


def ball_pull(turn: np.ndarray, axes: Sequence[Axis]) -> np.ndarray:
    """(n, 3) torque that the springs of a ball joint, at quaternions (n, 4), ask for: J⁻ᵀ K φ (see `joints.ball_pull`)."""
    phi = turn_from(turn, np.array([axis.rest for axis in axes]))
    f = phi * [axis.stiffness for axis in axes]
    half = 0.5 * np.linalg.norm(phi, axis=-1, keepdims=True)
    small = half < 5e-4
    safe = np.where(small, 1.0, half)
    c = np.where(small, 1.0 / 12.0, (1 - safe / np.tan(safe)) / (4 * safe**2))
    once = cross(phi, f)
    return np.asarray(f + 0.5 * once + c * cross(phi, once))


def neutral(model: Any) -> np.ndarray:
    """(nq,) the coordinates of the model's start."""
    t = links(model)
    q = np.zeros(t.nq)
    own = int(sum(k.q_size for k in t.model.joint_kinds))
    q[:own] = t.model.start["q"]
    for k in range(len(t.model.joint_kinds), len(t.kinds)):
        b = t.children[k]
        rotation = t.model.start["rotation"][b]
        place = t.model.start["position"][b] - quat_rotate(rotation, t.model.com[b])
        q[t.q_start[k] : t.q_start[k] + 7] = [*place, *rotation]
    return q


def forward_kinematics(model: Any, q: Any, v: Any = None) -> dict[str, dict[str, np.ndarray]]:
    """Of every body by name: position and rotation of its frame, com, velocity of the com, spin; (3,), (4,) or (n, …)."""
    t = links(model)
    single, n, (q, v, _) = _states(t, q, v)
    x = _load(t, n, q=q, v=v)
    k = x.tree
    _launch(functions.kinematics, t, n, t.joints, t.tree, x.q, x.v, k)
    fields = {f: getattr(k, f).numpy().astype(float) for f in ("position", "rotation", "velocity", "spin")}
    out = {}
    for name, b in t.model.body_names.items():
        com, rotation = fields["position"][b], fields["rotation"][b]
        place = com - quat_rotate(rotation, np.broadcast_to(t.model.com[b], com.shape))
        parts = {
            "position": place,
            "rotation": rotation,
            "com": com,
            "velocity": fields["velocity"][b],
            "spin": fields["spin"][b],
        }
        out[name] = {f: (a[0] if single else a).copy() for f, a in parts.items()}
    return out


def jacobian(model: Any, q: Any, body: str, point: Sequence[float] = (0.0, 0.0, 0.0)) -> np.ndarray:
    """(6, nv) or (n, 6, nv): velocity of a point of a body (in its frame, m) and its spin, world axes, per unit of speed."""
    t = links(model)
    b = _body(t, body)
    single, n, (q, v, _) = _states(t, q)
    x = _load(t, n, q=q, v=v)
    k = x.tree
    _launch(functions.kinematics, t, n, t.joints, t.tree, x.q, x.v, k)
    S_l, S_a = k.S_l.numpy().astype(float), k.S_a.numpy().astype(float)
    position, rotation = k.position.numpy().astype(float), k.rotation.numpy().astype(float)
    place = position[b] + quat_rotate(rotation[b], np.broadcast_to(np.asarray(point, float) - t.model.com[b], (n, 3)))
    J = np.zeros((n, 6, t.nv))
    link = t.link_of.get(b)
    while link is not None:
        joint, own, base = t.links[link].joint, t.links[link].body, t.links[link].base
        for a in range(t.v_start[joint], t.v_start[joint] + t.v_size[joint]):
            J[:, :3, a] = S_l[a] + cross(S_a[a], place - position[own])
            J[:, 3:, a] = S_a[a]
        link = t.link_of.get(base)
    return np.asarray(J[0] if single else J)


def _body(t: Links, name: str) -> int:
    if name not in t.model.body_names:
        raise SimulationError(f"dynamics: no body is named {name!r}; available: {', '.join(map(repr, t.model.body_names))}")
    return t.model.body_names[name]


Ball = tuple[slice, slice]


def _coordinates(t: Links) -> Iterator[tuple[slice, slice, Ball | None]]:
    """Of each joint: its plain coordinates and their speeds; its quaternion and the speeds of that, None if it has none."""
    for k, kind in enumerate(t.kinds):
        at, v0, turns = int(t.q_start[k]), int(t.v_start[k]), len(kind.turns) if kind.v_size else 0  # a rod has none
        plain = kind.v_size - (3 if turns == 3 else 0)
        p, w = at + plain, v0 + plain
        yield slice(at, p), slice(v0, w), (slice(p, p + 4), slice(w, w + 3)) if turns == 3 else None


def moved(model: Any, q: Any, step: Any) -> np.ndarray:
    """Coordinates after a small motion `step` (nv,): q + step, a quaternion turned by its rotation vector."""
    q, step = np.array(q, float), np.asarray(step, float)
    out: np.ndarray = q.copy()
    for at, by, ball in _coordinates(links(model)):
        out[..., at] += step[..., by]
        if ball is not None:
            turned = quat_multiply(quat_exp(step[..., ball[1]]), q[..., ball[0]])
            out[..., ball[0]] = turned / np.linalg.norm(turned, axis=-1, keepdims=True)
    return out


def between(model: Any, q0: Any, q: Any) -> np.ndarray:
    """The motion (nv,) from coordinates q0 to q: `moved(model, q0, between(model, q0, q))` is q."""
    t, q0, q = links(model), np.asarray(q0, float), np.asarray(q, float)
    out: np.ndarray = np.zeros((*np.broadcast_shapes(q0.shape, q.shape)[:-1], t.nv))
    for at, by, ball in _coordinates(t):
        out[..., by] = q[..., at] - q0[..., at]
        if ball is not None:
            out[..., ball[1]] = quat_log(quat_multiply(q[..., ball[0]], quat_conjugate(q0[..., ball[0]])))
    return out


def rates(model: Any, q: Any, v: Any) -> np.ndarray:
    """q̇ (…, nq) of coordinates q at speeds v; of a quaternion ½ (ω, 0) ∘ p."""
    q, v = np.asarray(q, float), np.asarray(v, float)
    out: np.ndarray = np.zeros_like(q)
    for at, by, ball in _coordinates(links(model)):
        out[..., at] = v[..., by]
        if ball is not None:
            p = q[..., ball[0]]
            omega = np.concatenate([v[..., ball[1]], np.zeros((*p.shape[:-1], 1))], -1)
            out[..., ball[0]] = 0.5 * quat_multiply(omega, p)
    return out


def rhs(
    model: Any, tau: Callable[[float, np.ndarray, np.ndarray], Any] | None = None
) -> Callable[[float, np.ndarray], np.ndarray]:
    """The right-hand side f(t, y), y = (q, v), for SciPy's `solve_ivp`; springs and dampers act, `tau(t, q, v)` adds forces."""
    t = links(model)

    def f(time: float, y: np.ndarray) -> np.ndarray:
        q, v = y[: t.nq], y[t.nq :]
        force = passive_forces(t, q, v)
        if tau is not None:
            force = force + np.asarray(tau(time, q, v), float)
        return np.concatenate([rates(t, q, v), forward_dynamics(t, q, v, force)])

    return f


def reactions(model: Any, q: Any, v: Any, tau: Any = None) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Of every joint by name: force (3,) N and torque (3,) N·m of the constraint on its child at the anchor; one state."""
    t = links(model)
    a = forward_dynamics(t, q, v, tau)
    applied = inverse_dynamics(t, q, v, a)
    k = t.work(1).tree
    Q_l, Q_a, position, rotation = (getattr(k, f).numpy().astype(float)[:, 0] for f in ("Q_l", "Q_a", "position", "rotation"))
    S_l, S_a = k.S_l.numpy().astype(float)[:, 0], k.S_a.numpy().astype(float)[:, 0]
    points = of_first(t.joints.child_point)
    names = {i: n for n, i in t.model.joint_names.items()}
    out = {}
    for i, link in enumerate(t.links):
        joint, sign, child = link.joint, link.sense, t.children[link.joint]
        if joint not in names:
            continue
        anchor = position[child] + quat_rotate(rotation[child], points[joint])
        force, torque = Q_l[i], Q_a[i] + np.cross(position[link.body] - anchor, Q_l[i])
        for s in range(t.v_start[joint], t.v_start[joint] + t.v_size[joint]):
            # the axis itself, seen at the anchor: a translation's S_l, a rotation's S_a
            force = force - applied[s] * (S_l[s] if not np.any(S_a[s]) else 0.0)
            torque = torque - applied[s] * S_a[s]
        out[names[joint]] = (sign * force, sign * torque)
    return out


def inverse_kinematics(
    model: Any,
    body: str,
    position: Sequence[float],
    *,
    rotation: Sequence[float] | None = None,
    point: Sequence[float] = (0.0, 0.0, 0.0),
    start: Any = None,
    damping: float = 1e-2,
    tolerance: float = 1e-10,
    iterations: int = 200,
) -> np.ndarray:
    """(nq,) coordinates that bring a point of a body (in its frame) to a place (m), and its frame to a rotation if given.

    Damped least squares from `start` (the model's if None); the damping shrinks with the error. Raises where it is out of reach.
    """
    return reached(links(model), None, body, position, rotation, point, start, (damping, tolerance, iterations))


def reached(
    t: Links, search: Reach | None, body: str, position: Sequence[float], rotation: Sequence[float] | None,
    point: Sequence[float], start: Any, how: tuple[float, float, int],
) -> np.ndarray:  # fmt: skip
    """`inverse_kinematics` with a search that was recorded before, or with one of its own."""
    _tree(t, "inverse_kinematics")
    b = _body(t, body)
    begin = neutral(t) if start is None else t.state("start", start, t.nq)[0]
    place, at = as_numbers(position), as_numbers(point)
    for name, given, value in (("position", position, place), ("point", point, at)):
        if value.shape != (3,) or not np.isfinite(value).all():
            raise SimulationError(f"inverse_kinematics: {name} is three finite numbers (m), got {given!r}")
    turn = None if rotation is None else unit_quat(np.asarray(rotation, float), "inverse_kinematics", SimulationError)
    q, left = (search or Reach(t))(b, at, place, turn, begin, *how)
    if not left <= how[1]:
        raise SimulationError(
            f"inverse_kinematics: body {body!r} cannot be brought to {list(map(float, place))}: {left:.3g} (m, rad) remain"
        )
    return q


def linearize(model: Any, q: Any, v: Any = None, *, step: float = 1e-6) -> tuple[np.ndarray, np.ndarray]:
    """A (2nv, 2nv), B (2nv, nv) of small motions x = (δq, δv) about a state, δq along the speeds: ẋ = A x + B tau.

    Springs and dampers of the joints act. Central differences; q and v are one state, v zero if None.
    """
    t = links(model)
    _tree(t, "linearize")
    q, v = t.state("q", q, t.nq)[0], t.state("v", v, t.nv)[0]
    eye = np.eye(t.nv) * step

    def accelerations(qs: np.ndarray, vs: np.ndarray) -> np.ndarray:
        return forward_dynamics(t, qs, vs, passive_forces(t, qs, vs))

    many = np.repeat(q[None], t.nv, 0)
    still = np.repeat(v[None], t.nv, 0)
    dq = (accelerations(moved(t, many, eye), still) - accelerations(moved(t, many, -eye), still)) / (2 * step)
    dv = (accelerations(many, still + eye) - accelerations(many, still - eye)) / (2 * step)
    A = np.block([[np.zeros((t.nv, t.nv)), np.eye(t.nv)], [dq.T, dv.T]])
    B = np.vstack([np.zeros((t.nv, t.nv)), np.linalg.inv(mass_matrix(t, q))])
    return A, B


def natural_frequencies(model: Any, q: Any) -> np.ndarray:
    """(nv,) undamped frequencies of small motions about an equilibrium, rad/s, ascending; NaN where it is unstable."""
    t = links(model)
    _tree(t, "natural_frequencies")
    q = t.state("q", q, t.nq)[0]
    step = 1e-5
    eye = np.eye(t.nv) * step
    many = np.repeat(q[None], t.nv, 0)

    def force(qs: np.ndarray) -> Any:
        return gravity_torques(t, qs) - passive_forces(t, qs, np.zeros((len(qs), t.nv)))

    K = ((force(moved(t, many, eye)) - force(moved(t, many, -eye))) / (2 * step)).T
    squares = np.linalg.eigvals(np.linalg.solve(mass_matrix(t, q), 0.5 * (K + K.T))).real
    return np.sqrt(np.where(np.sort(squares) >= -1e-9 * np.abs(squares).max(), np.maximum(np.sort(squares), 0.0), np.nan))


def static_equilibrium(
    model: Any, start: Any = None, *, tau: Any = None, tolerance: float = 1e-10, iterations: int = 200
) -> np.ndarray:
    """(nq,) coordinates at which gravity, springs and tau balance: Newton steps, bounded, from `start` (the model's if None)."""
    t = links(model)
    _tree(t, "static_equilibrium")
    q = neutral(t) if start is None else t.state("start", start, t.nq)[0].copy()
    push = t.state("tau", tau, t.nv)[0]

    def force(qs: np.ndarray) -> Any:
        return gravity_torques(t, qs) - passive_forces(t, qs, np.zeros((len(qs), t.nv))) - push

    eye = np.eye(t.nv) * 1e-6
    off = np.inf
    for _ in range(iterations):
        here = force(q[None])[0]
        off = float(np.abs(here).max(initial=0.0))
        if off <= tolerance * (1.0 + float(np.abs(gravity_torques(t, q)).max(initial=0.0))):
            return q
        many = np.repeat(q[None], t.nv, 0)
        K = ((force(moved(t, many, eye)) - force(moved(t, many, -eye))) / 2e-6).T
        # towards a minimum of the energy: directions of negative stiffness are followed downhill
        values, vectors = np.linalg.eigh(0.5 * (K + K.T))
        step = -vectors @ ((vectors.T @ here) / np.maximum(np.abs(values), 1e-9 * np.abs(values).max()))
        q = moved(t, q, step * min(1.0, 0.3 / max(float(np.abs(step).max()), 1e-300)))
    raise SimulationError(f"static_equilibrium: no balance found; a force of {off:.3g} N or N·m remains")


def integrate(
    model: Any,
    q: Any,
    v: Any,
    times: Any,
    *,
    start: float = 0.0,
    tau: Any = None,
    method: str = "dop853",
    rtol: float = 1e-9,
    atol: float = 1e-9,
    step: float | None = None,
    events: Callable[[float, np.ndarray, np.ndarray], float] | Sequence[Callable[[float, np.ndarray, np.ndarray], float]] = (),
    dense: bool = False,
    gravity: Sequence[float] | None = None,
    control: Control | None = None,
    state: State | None = None,
    progress: bool = False,
) -> Trajectory:
    """The motion of a mechanism from (q, v) at time `start` through the given times (a number: just its end), s, to tolerances.

    Runs on the model's device without returning to Python between steps; times before the last are read off the polynomials that
    stand for the steps. All that the scene describes acts: springs, dampers, drives, friction, limits; `tau` (nv,) is constant.
    Changes between stick and slip, and limits reached or left, are located inside the steps; an impact at a limit changes speeds
    at once, with its restitution and without friction. Loops are kept closed.

    Args:
        method: "dop853" (order 8), "rk45" (order 5), or "rk4" (order 4, needs `step`).
        rtol, atol: a step's error is below atol + rtol |y|.
        step: a constant step, s, instead of error control.
        events: functions f(t, q, v) of one state, q (nq,), v (nv,); the times at which one passes through zero are found on the
            motion. Attributes as with SciPy: `direction` > 0 counts a rise alone, < 0 a fall; `terminal` (or the count of
            passages after which to stop) ends the motion there. A zero at the start does not count.
        dense: keep the motion between the times, for `Trajectory.at`.
        control: commands, constant (the model's own if None), [item, state]. state: poses and velocities of driven bodies, and
            motors' currents (the model's start if None).
        progress: show a bar.
    """
    _check_options(method, rtol=rtol, atol=atol, step=step)
    t = links(model)
    single, n, (q, v, tau) = _states(t, q, v, tau)
    ends = np.atleast_1d(np.asarray(times, float))
    if ends.ndim != 1 or not len(ends) or not np.all(np.isfinite(ends)) or ends[0] < start or np.any(np.diff(ends) <= 0):
        raise SimulationError(f"integrate: times rise from {start:g} s or later, got {np.asarray(times).tolist()}")
    watched = check_events(events, n)
    turns = [int(t.q_start[k] + kind.q_size - 4) for k, kind in enumerate(t.kinds) if kind.v_size and len(kind.turns) == 3]
    how = Options(method, rtol, atol, step, dense, progress)
    motion, currents = _motion(t, n, q, v, tau, gravity, start, state, control)
    path = run(motion, np.concatenate([q, v, currents], 1), start, ends, turns, watched, how)
    return first_of(path) if single else path


def _check_options(method: str, **numbers: Any) -> None:
    if method not in INTEGRATION_METHODS:
        raise SimulationError(f"integrate: method is one of {', '.join(map(repr, INTEGRATION_METHODS))}, got {method!r}")
    if method == "rk4" and numbers["step"] is None:
        raise SimulationError("integrate: rk4 has no error estimate and needs step=")
    for what, number in numbers.items():
        if number is not None and not is_positive(number):
            raise SimulationError(f"integrate: {what} is a positive finite number, got {number!r}")


def _motion(
    t: Links, n: int, q: np.ndarray, v: np.ndarray, tau: np.ndarray, gravity: Sequence[float] | None,
    start: float, state: State | None, control: Control | None,
) -> tuple[Motion, np.ndarray]:  # fmt: skip
    """The mechanism and all that acts on it, as the device's integration takes them; and the motors' currents (n, motors)."""
    x, m, model = _load(t, n, q=q, v=v), Motion(), t.model
    check_drives(model)
    control, state = control or model.control(), state or model.state()

    def columns(array: Any) -> np.ndarray:
        """[item, n] of a device array whose worlds may be fewer."""
        values = array.numpy()
        return np.ascontiguousarray(values if values.shape[1] == n else np.repeat(values[:, :1], n, 1))

    def on_device(values: Any, dtype: Any = real) -> Any:
        return wp.array(np.ascontiguousarray(values), dtype=dtype, device=t.device)

    m.bodies, m.joints, m.axes, m.tree, m.closures = t.bodies, t.joints, model.axes, t.tree, t.closures
    m.work, m.laws, m.rows, m.probe, m.q, m.v, m.a, m.tau = x.tree, x.laws, x.rows, x.probe, x.q, x.v, x.a, x.tau
    commands = Control()
    for name in CONTROL_FIELDS:
        array = getattr(control, name)
        setattr(commands, name, on_device(columns(array), array.dtype))
    m.control = commands
    each = np.broadcast_to(np.asarray(model.gravity if gravity is None else gravity, float), (n, 3))
    m.gravity = wp.array(np.ascontiguousarray(each), dtype=vec3, device=t.device)
    m.own, m.nq, m.nv = len(model.joint_kinds), t.nq, t.nv
    inductance = of_first(model.axes.inductance)
    motors = np.flatnonzero(inductance > 0).astype(np.int32)
    current_of = np.full(t.nv, -1, np.int32)
    current_of[motors] = np.arange(len(motors))
    m.drives, m.drive_of, cells = drives_for(model, t.nv, n)
    rows = np.concatenate([motors, -1 - np.arange(cells, dtype=np.int32)])
    m.currents, m.motor, m.current_of = len(rows), on_device(rows, wp.int32), on_device(current_of, wp.int32)
    charge = columns(state.drive_state)[DRIVE_WORDS * int(model.drives.count) + 1 : model.cast_rows[0] : 2]
    currents = np.concatenate([columns(state.current)[motors], charge]).astype(float)
    m.current = wp.zeros((len(rows), n), dtype=real, device=t.device)
    limits = np.isfinite(model.axes.lower.numpy()).any() or np.isfinite(model.axes.upper.numpy()).any()
    friction = any((getattr(control, f"friction_{kind}").numpy() > 0).any() for kind in ("static", "load"))
    m.rough, m.loaded = int(limits or friction), int((control.friction_load.numpy() > 0).any())
    halves = np.array(t.half_of)
    velocity, spin = columns(state.velocity)[halves], columns(state.spin)[halves]
    still = np.array([b not in t.link_of for b in range(len(halves))])
    m.driven = int(np.any(velocity[still]) or np.any(spin[still]))
    x.tree.velocity.assign(velocity)
    x.tree.spin.assign(spin)
    x.tree.omega.assign(spin)
    own = np.arange(len(halves)) == halves
    m.force, m.torque = (
        on_device(columns(array)[halves] * own[:, None, None], vec3) for array in (control.force, control.torque)
    )
    x.tree.force.assign(m.force)  # the kernel of plain trees leaves them there
    x.tree.torque.assign(m.torque)
    m.start = on_device([start])
    m.base_position, m.base_rotation = (
        on_device(columns(state.position)[halves], vec3),
        on_device(columns(state.rotation)[halves], quat),
    )
    x.tree.position.assign(m.base_position)
    x.tree.rotation.assign(m.base_rotation)
    m.applied = on_device(tau.T.astype(np_real))
    for name in ("held", "touch", "departs", "heading", "response", "wanted"):
        setattr(m, name, wp.zeros((t.nv, n), dtype=Motion.vars[name].type.dtype, device=t.device))  # type: ignore[attr-defined]
    m.load = wp.zeros((len(t.kinds), n), dtype=real, device=t.device)
    m.striking, m.tries = (wp.zeros(n, dtype=wp.int32, device=t.device) for _ in range(2))
    x.rows.gear_start.assign(columns(state.gear_start))
    return m, currents.T


# ---- between joint coordinates and the bodies' state ----------------------------------------------------------------------


def check_integrable(model: Any, control: Control) -> None:
    """Refuse, by name, what an integration does not follow: paths, gears on disabled joints."""
    m = links(model).model
    off = disabled(m, control)
    for name, ends in zip(m.gear_names, assembly.gear_ends(m), strict=True):
        for joint in (ends[0][0], ends[1][0]):
            if joint in off:
                other = next(n for n, k in m.joint_names.items() if k == joint)
                raise SimulationError(f"integrate: gear {name!r} couples joint {other!r}, which is disabled (enabled = False)")
    if m.paths:
        name = next(n for n, b in m.body_names.items() if b in m.paths)
        raise SceneError(f"integrate: body {name!r} follows a path; an integration takes bodies driven at a constant speed")


def from_state(model: Any, state: State) -> tuple[np.ndarray, np.ndarray]:
    """(worlds, nq), (worlds, nv) of the bodies' state."""
    t = links(model)
    m = t.model
    assembly.read_all(m, state)
    q, v = np.zeros((m.worlds, t.nq)), np.zeros((m.worlds, t.nv))
    q[:, : len(state.q.numpy())], v[:, : len(state.qd.numpy())] = state.q.numpy().T, state.qd.numpy().T
    fields = (state.position, state.rotation, state.velocity, state.spin)
    for k in range(len(m.joint_kinds), len(t.kinds)):  # floating bases
        b = t.children[k]
        com, rotation, velocity, spin = (a.numpy()[b].astype(float) for a in fields)
        arm = quat_rotate(rotation, np.broadcast_to(m.com[b], com.shape))
        q[:, t.q_start[k] : t.q_start[k] + 7] = np.concatenate([com - arm, rotation], 1)
        v[:, t.v_start[k] : t.v_start[k] + 6] = np.concatenate([velocity - cross(spin, arm), spin], 1)
    return q, v


def to_state(model: Any, state: State, q: np.ndarray, v: np.ndarray) -> None:
    """Give the bodies the poses and velocities of joint coordinates (worlds, nq), (worlds, nv); turns are those of q."""
    t = links(model)
    moving = forward_kinematics(t, q, v)
    for field, key in (("position", "com"), ("rotation", "rotation"), ("velocity", "velocity")):
        array = getattr(state, field)
        values = array.numpy().astype(float)
        for name, b in t.model.body_names.items():
            if b in t.link_of:
                values[b] = moving[name][key]
        array.assign(values)
    spin = state.spin.numpy().astype(float)
    for name, b in t.model.body_names.items():
        if b in t.link_of:
            spin[b] = moving[name]["spin"]
    assembly.set_spin(t.model, state, spin)
    state.q.assign(np.ascontiguousarray(q[:, : len(state.q.numpy())].T, np_real))
    assembly.read_all(t.model, state)
