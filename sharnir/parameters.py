"""Masses, springs, limits, motors and the like of a running simulation: one value for all worlds, or one a world."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import fields, replace
from math import inf
from typing import Any

import numpy as np
import warp as wp

from sharnir import snapshots, tables
from sharnir.assembly import read_all, set_position, set_spin
from sharnir.errors import SimulationError, as_numbers
from sharnir.launches import LOCK
from sharnir.model import DYNAMIC, Model
from sharnir.rope.build import Ropes
from sharnir.rope.data import ROPE
from sharnir.spatial import cross, quat_conjugate, quat_multiply, quat_rotate

# The Simulation; it stands a floor above, so that it is not named here.
Owner = Any
MOTOR = ("resistance", "inductance", "torque_constant", "gear_ratio", "efficiency", "rotor_inertia")


def owned(model: Model) -> Model:
    """A model with tables of its own: what one simulation changes is not seen by others."""
    copies = {name: _copy(getattr(model, name), model) for name in ("bodies", "axes", "springs")}
    copies |= {"joints": _with_own_points(_copy(model.joints, model, ("parent_point", "parent_frame"))), "com": model.com.copy()}
    copies["springs"] = _with_own_points(copies["springs"])
    ropes = model.ropes
    if ropes is not None:
        values = {name: getattr(ropes.table, name) for name in _varying(ropes.table)}
        described, motion, worlds, device = ropes.given
        ropes = Ropes(described, motion, worlds, device, trees=ropes.trees)
        for name, array in values.items():
            setattr(ropes.table, name, tables.table(tables.columns(array), array.dtype, model.worlds, model.device))
    return replace(model, **copies, joint_axes=list(model.joint_axes), ropes=ropes)


def _varying(struct: Any) -> list[str]:
    return [name for name in struct._cls.vars if getattr(getattr(struct, name), "ndim", 0) == 2]


def _with_own_points(struct: Any) -> Any:
    """A table whose points on bodies are its own."""
    out = struct._cls()
    for name in struct._cls.vars:
        value = getattr(struct, name)
        own = name in ("parent_point", "child_point") and value.ndim == 1
        setattr(out, name, wp.clone(value) if own else value)
    return out


def _copy(struct: Any, model: Model, names: Collection[str] = ()) -> Any:
    """A table of which those columns are its own that worlds may vary, or those named."""
    out, names = struct._cls(), names or _varying(struct)
    for name in struct._cls.vars:
        value = getattr(struct, name)
        if name in names:
            value = tables.table(tables.columns(value), value.dtype, model.worlds, model.device)
        setattr(out, name, value)
    return out


def read(sim: Owner, array: Any, row: int) -> Any:
    """A value of one item: a float or an array, with a leading world axis where worlds are several."""
    values = tables.columns(array)[row]
    if sim.worlds == 1:
        return float(values[0]) if values[0].ndim == 0 else values[0]
    return np.repeat(values, sim.worlds, 0) if len(values) == 1 else values


def checked(
    sim: Owner, value: Any, who: str, what: str, *, least: float = -inf, above: float = -inf, most: float = inf,
    endless: bool = False,
) -> np.ndarray:  # fmt: skip
    """A user's number as (1,), or one a world as (worlds,)."""
    given = as_numbers(value)
    fine = ~np.isnan(given) if endless else np.isfinite(given)
    fine &= (given >= least) & (given <= most) & ((given > above) | (above == -inf))
    if given.shape not in ((), (1,), (sim.worlds,)) or not fine.all():
        bounds = [f"of at least {least:g}"] * (least > -inf) + [f"above {above:g}"] * (above > -inf)
        bounds += [f"of at most {most:g}"] * (most < inf)
        each = f", or one a world ({sim.worlds})" if sim.worlds > 1 else ""
        number = "a number" if endless else "a finite number"
        raise SimulationError(f"{who}: {what} is {' '.join([number, *bounds])}{each}, got {value!r}")
    return given.reshape(-1)


def write(sim: Owner, struct: Any, name: str, row: int, values: np.ndarray) -> None:
    """Give a row of a table values (1 or worlds, …); solvers are told."""
    array = getattr(struct, name)
    with LOCK:
        sim._settled()  # with what acted in the step that led here
        new = tables.write(array, row, values, array.dtype, sim.worlds, sim.model.device)
        if new is not array:
            setattr(struct, name, new)
            sim._rebuild()
    told(sim)


def told(sim: Owner) -> None:
    """What was changed may give energy; the next step has half a kick of the old values, half of the new."""
    sim.solver.begin_anew(sim.state)
    sim.solver.wake(sim.state)
    sim._versions[1] += 1
    sim._measures = None
    sim._touched = sim._forced = True
    snapshots.forget_links(sim)


# ---- bodies ----


def set_mass(sim: Owner, body: int, who: str, value: Any, scale: bool = True) -> None:
    """kg; the inertia grows with it, as where the density is another (`scale`)."""
    t, mass = sim.model.bodies, checked(sim, value, who, "mass (kg)", above=0.0)
    old = tables.columns(t.mass)[body]
    inertia = tables.columns(t.inertia)[body]
    _keep_spin(sim, body, lambda: _put_body(sim, body, mass, inertia * (mass / old)[:, None, None] if scale else inertia))


def set_inertia(sim: Owner, body: int, who: str, value: Any) -> None:
    """kg·m² about the centre of mass, (3, 3) or its diagonal, one or one a world."""
    given = as_numbers(value)
    if given.shape in ((3,), (sim.worlds, 3)) and given.shape != (3, 3):
        given = given[..., None] * np.eye(3)
    each = given.reshape(-1, 3, 3) if given.shape in ((3, 3), (sim.worlds, 3, 3)) else np.full((1, 3, 3), np.nan)
    good = np.isfinite(each).all() and np.allclose(each, np.swapaxes(each, 1, 2)) and (np.linalg.eigvalsh(each) > 0).all()
    if not good or not tables.columns(sim.model.bodies.inertia)[body].any():
        what = "a point mass, which has none" if good else f"got {value!r}"
        raise SimulationError(f"{who}: inertia is (3, 3) or its diagonal, symmetric and positive, in kg·m²; {what}")
    mass = tables.columns(sim.model.bodies.mass)[body]
    _keep_spin(sim, body, lambda: _put_body(sim, body, mass, each))


def _put_body(sim: Owner, body: int, mass: np.ndarray, inertia: np.ndarray) -> None:
    t, solid = sim.model.bodies, bool(inertia.any())
    inverse = np.linalg.inv(inertia) if solid else np.zeros_like(inertia)
    for name, values in (("mass", mass), ("inv_mass", 1.0 / mass), ("inertia", inertia), ("inv_inertia", inverse)):
        array = getattr(t, name)
        setattr(t, name, tables.write(array, body, values, array.dtype, sim.worlds, sim.model.device))


def _keep_spin(sim: Owner, body: int, change: Any) -> None:
    """Change a body's inertia, its spin being kept."""
    name = next(n for n, b in sim.model.body_names.items() if b == body)
    if int(sim.model.bodies.motion.numpy()[body]) != DYNAMIC:
        raise SimulationError(f"body {name!r} is not dynamic: its mass and inertia act on nothing")
    with LOCK:
        sim._settled()
        view = sim.body(name)
        spin = view._get("spin")
        change()
        view._put_spin(spin)
        sim._rebuild()
    told(sim)


# ---- points on bodies, the same in all worlds ----


def point_of(who: str, what: str, value: Any) -> np.ndarray:
    """(3,) m, in a body's frame."""
    point = as_numbers(value)
    if point.shape != (3,) or not np.isfinite(point).all():
        raise SimulationError(
            f"{who}: {what} is three finite numbers (m, in the body's frame), the same in all worlds, got {value!r}"
        )
    return point


def set_centre(sim: Owner, body: int, who: str, value: Any) -> None:
    """Move a body's centre of mass within it: its frame, its spin and the speed of its frame's origin stay."""
    model, point = sim.model, point_of(who, "centre", value)
    if int(model.bodies.motion.numpy()[body]) != DYNAMIC or not tables.columns(model.bodies.inertia)[body].any():
        raise SimulationError(f"{who}: a centre of mass is moved in dynamic bodies that have an inertia, which it has not")
    by = point - model.com[body]
    tied = [(model.children, model.joints.child_point)]
    tied += [(getattr(model.springs, end).numpy(), getattr(model.springs, f"{end}_point")) for end in ("parent", "child")]
    tied.append((model.cables.body.numpy(), model.cables.center))
    if model.ropes is not None:
        table = model.ropes.table
        tied += [(np.where(table.kind.numpy() == ROPE, -1, table.body.numpy()), table.point)]
        tied += [(table.tie_body.numpy(), table.tie_point)]
    if sim.solver.collider is not None:
        shapes = sim.solver.collider.data.shapes
        tied.append((shapes.body.numpy(), shapes.position))

    def place() -> None:
        state = sim.state
        turn, spin = (getattr(state, name).numpy()[body].astype(float) for name in ("rotation", "spin"))
        arm = quat_rotate(turn, np.broadcast_to(by, (sim.worlds, 3)))
        sim.body(names[body])._put("position", state.position.numpy()[body].astype(float) + arm)
        sim.body(names[body])._put("velocity", state.velocity.numpy()[body].astype(float) + cross(spin, arm))

    names = {b: name for name, b in model.body_names.items()}

    def move() -> None:
        for bodies, points in tied:
            values = points.numpy().copy()
            values[np.asarray(bodies) == body] -= by
            points.assign(values)
        for node in (node for cable in model.cable_paths for node in cable.nodes if node.body == body):
            node.center = node.center - by
        model.com[body] = point
        sim.body(names[body])._take_centre()

    def shift(points: np.ndarray) -> None:
        points[model.parents == body] -= by

    _in_both(sim, place, move, shift)


def set_anchor(sim: Owner, joint: int, who: str, side: int, value: Any) -> None:
    """Move where a joint sits on its parent (side 0) or child (1): coordinates and speeds stay, the child's side follows."""
    model, what = sim.model, ("parent_anchor", "child_anchor")[side]
    body = int((model.parents, model.children)[side][joint])
    point = point_of(who, what, value) - model.com[body]
    if not tables.columns(model.bodies.inertia)[body].any() and int(model.bodies.motion.numpy()[body]) == DYNAMIC:
        raise SimulationError(f"{who}: {what} stays in the centre of a point mass")
    at = slice(int(model.q_start[joint]), int(model.q_start[joint]) + model.joint_kinds[joint].q_size)

    def points() -> np.ndarray:
        return tables.columns(model.joints.parent_point) if side == 0 else model.joints.child_point.numpy().astype(float)

    def put(values: np.ndarray) -> None:
        if side == 0:
            tables.put(model.joints.parent_point, values)
        else:
            model.joints.child_point.assign(values)
        sim.solver.relay()

    def shift(values: np.ndarray) -> None:
        values[joint] = point

    def follow() -> None:
        read_all(model, sim.state)
        there = sim.state.q.numpy()[at].T.astype(float)
        old = points()
        new = old.copy()
        shift(new)
        put(new)
        try:
            set_position(model, sim.state, joint, there)
        except SimulationError:
            put(old)
            read_all(model, sim.state)
            raise
        put(old)

    def change() -> None:
        if side == 1:
            new = points()
            shift(new)
            put(new)

    _in_both(sim, follow, change, shift if side == 0 else None)


def attach(sim: Owner, joint: int, who: str, worlds: Any = None) -> None:
    """Put a joint in where its two bodies stand, in some worlds: its frame on the parent is laid over that on the child, its
    coordinates are 0.
    """
    model, some = sim.model, np.arange(sim.worlds) if worlds is None else snapshots.chosen(sim, worlds)
    if model.joint_kinds[joint].mask and not model.joint_kinds[joint].v_size:
        raise SimulationError(f"{who}: attach() is for joints with a frame, and a Distance has none; set enabled")
    on = sim._commands.enabled[joint] != 0
    if on[some].any():
        where = f" in world {some[on[some]][0]}" if sim.worlds > 1 else ""
        raise SimulationError(f"{who}: it is attached already{where}; set enabled = False there first")
    if not len(some):
        return
    with LOCK:
        snapshots.vary_frames(sim)
        state, t = sim.state, model.joints
        (x_p, q_p), (x_c, q_c) = (
            [getattr(state, name).numpy()[b, some].astype(float) for name in ("position", "rotation")]
            for b in (int(model.parents[joint]), int(model.children[joint]))
        )
        points, frames = tables.columns(t.parent_point), tables.columns(t.parent_frame)
        own_point, own_frame = (
            np.broadcast_to(array.numpy()[joint].astype(float), (len(some), size))
            for array, size in ((t.child_point, 3), (t.child_frame, 4))
        )
        points[joint, some] = quat_rotate(quat_conjugate(q_p), x_c + quat_rotate(q_c, own_point) - x_p)
        frames[joint, some] = quat_multiply(quat_conjugate(q_p), quat_multiply(q_c, own_frame))
        tables.put(t.parent_point, points)
        tables.put(t.parent_frame, frames)
        sim.solver.relay()
        at, size = int(model.q_start[joint]), model.joint_kinds[joint].q_size
        q = state.q.numpy()
        q[at : at + size, some] = 0.0
        if len(model.joint_kinds[joint].turns) == 3:
            q[at + size - 1, some] = 1.0
        state.q.assign(q)
        on[some] = True
        sim._commands.put("enabled", joint, on.astype(np.int32))
    snapshots.forget_links(sim)
    sim._touched = True
    sim._versions[1] += 1
    sim._acts_changed()
    sim.changed()


def _in_both(
    sim: Owner, place: Callable[[], None], change: Callable[[], None], shift: Callable[[np.ndarray], None] | None = None
) -> None:
    """Change tables, and with them the state now and that of the start, to which `reset` goes back.

    `shift` changes points of joints on their parents, which both have of their own where joints were attached.
    """
    with LOCK:
        sim._settled()
        now = snapshots.take(sim)
        try:
            snapshots.put_back(sim, sim._start | {"gravity": sim.gravity}, known=True)
            place()
            start = snapshots.take(sim)
        finally:
            snapshots.put_back(sim, now)
        place()
        change()
        if shift is not None:
            points = tables.columns(sim.model.joints.parent_point)
            shift(points)
            tables.put(sim.model.joints.parent_point, points)
            if snapshots.FRAMES[0] in start:
                shift(start[snapshots.FRAMES[0]])
        sim._start = start
        sim._rebuild()
    told(sim)
    sim.changed()


# ---- joints ----


def axis_values(sim: Owner, joint: int, name: str) -> list[Any]:
    """Of each free axis of a joint, a value of its table."""
    at, size = int(sim.model.v_start[joint]), sim.model.joint_kinds[joint].v_size
    return [read(sim, getattr(sim.model.axes, name), at + i) for i in range(size)]


def set_axis(sim: Owner, joint: int, axis: int, values: dict[str, np.ndarray]) -> None:
    """Give one free axis of a joint values of its tables, by name; laws begin to act there."""
    at = int(sim.model.v_start[joint]) + axis
    for name, value in values.items():
        write(sim, sim.model.axes, name, at, value)
    described = list(sim.model.joint_axes[joint])
    new = {name: float(value[0]) for name, value in values.items() if name in {f.name for f in fields(described[axis])}}
    described[axis] = replace(described[axis], **new)
    sim.model.joint_axes[joint] = tuple(described)
    if not (sim._commands.acts[joint] != 0).all():
        sim._commands.put("acts", joint, 1)
        with LOCK:
            sim._rebuild()
        sim._acts_changed()
    sim.solver.driven = True


# ---- many worlds at once ----

# what `randomise` varies: of which table, which fields, and with which power of the factor
VARIED: dict[str, list[tuple[str, str, int]]] = {
    "mass": [("bodies", "mass", 1), ("bodies", "inertia", 1)],
    "stiffness": [("axes", "stiffness", 1), ("springs", "stiffness", 1)],
    "damping": [("axes", "damping", 1), ("springs", "damping", 1)],
    "limit": [("axes", "lower", 0), ("axes", "upper", 0)],
    "motor": [("axes", "resistance", 1), ("axes", "torque_constant", 1)],
    "rope": [("ropes", "EI", 1), ("ropes", "GJ", 1), ("ropes", "damping", 1)],
    "friction": [("control", "friction_static", 1), ("control", "friction_dynamic", 1)],
    "kp": [("control", "servo_kp", 1)],
    "kd": [("control", "servo_kd", 1)],
    "gravity": [],
}
TOGETHER = ("mass", "friction")  # one factor for all fields


class Draw:
    """Random numbers for worlds of a simulation that may hold some of many: the same as if it held them all."""

    def __init__(self, seed: int, worlds: int, of: int, first: int) -> None:
        self._rng, self._of, self._own = np.random.default_rng(seed), of, slice(first, first + worlds)

    def __call__(self, items: int) -> np.ndarray:
        """(items, worlds) from -1 to 1."""
        return self._rng.uniform(-1.0, 1.0, (items, self._of))[:, self._own]


def randomise(sim: Owner, seed: int, spreads: dict[str, float], among: tuple[int, int] | None = None) -> None:
    """Vary parameters around those that the scene described; see `Simulation.randomise`.

    `among`: of how many worlds those of the simulation are a part, and the number of their first.
    """
    for what, spread in spreads.items():
        if what not in VARIED:
            raise SimulationError(f"randomise: {what!r} is not among {', '.join(VARIED)}")
        if not isinstance(spread, float | int) or not 0 <= spread < (inf if what == "limit" else 1):
            raise SimulationError(f"randomise: {what} = {spread!r}; a spread is a number from 0 to below 1")
    if not isinstance(seed, int | np.integer) or seed < 0:
        raise SimulationError(f"randomise: seed is a whole number of at least 0, got {seed!r}")
    draw = Draw(seed, sim.worlds, *(among or (sim.worlds, 0)))
    if sim._nominal is None:
        sim._nominal = _nominal(sim)
    with LOCK:
        spin = sim._settled().spin.astype(float).copy()
        for what in (name for name in VARIED if name in spreads):
            _vary(sim, what, spreads[what], draw)
        sim._rebuild()
        set_spin(sim.model, sim._state, spin)
    told(sim)
    sim.changed()


def _vary(sim: Owner, what: str, spread: float, draw: Draw) -> None:
    """Draw one kind of parameter anew for all worlds."""
    model, worlds = sim.model, sim.worlds
    if what == "gravity":
        factors = 1.0 + spread * draw(1).T
        sim.gravity = sim._nominal["gravity"] * (factors if worlds > 1 else factors[0, 0])
        return
    drawn: np.ndarray | None = None
    for where, name, power in VARIED[what]:
        nominal = sim._nominal.get(f"{where}.{name}")
        if nominal is None or not len(nominal):
            continue
        if drawn is None or what not in TOGETHER:
            drawn = draw(len(nominal))
            if where == "bodies":
                drawn[model.bodies.motion.numpy() != DYNAMIC] = 0.0
        by = drawn.reshape(*drawn.shape, *(1,) * (nominal.ndim - 2))
        values = nominal + spread * by if power == 0 else nominal * (1.0 + spread * by) ** power
        if where == "control":
            sim._fill(name, values.T)
            continue
        struct = model.ropes.table if where == "ropes" else getattr(model, where)
        array = getattr(struct, name)
        setattr(struct, name, tables.table(values, array.dtype, worlds, model.device))
        if where == "bodies":
            inverse = np.zeros_like(values)
            some = values.reshape(*values.shape[:2], -1).any(-1) & (model.bodies.motion.numpy() == DYNAMIC)[:, None]
            inverse[some] = 1.0 / values[some] if name == "mass" else np.linalg.inv(values[some])
            setattr(struct, f"inv_{name}", tables.table(inverse, array.dtype, worlds, model.device))


def _nominal(sim: Owner) -> dict[str, np.ndarray]:
    """Values that the scene described, (items, 1 or worlds, …)."""
    model = sim.model
    structs = {"bodies": model.bodies, "axes": model.axes, "springs": model.springs}
    if model.ropes is not None:
        structs["ropes"] = model.ropes.table
    out = {f"{where}.{name}": tables.columns(getattr(s, name)) for where, s in structs.items() for name in _varying(s)}
    for where, name, _ in (row for rows in VARIED.values() for row in rows):
        if where == "control":
            out[f"control.{name}"] = np.array(getattr(sim._commands, name), float)
    out["gravity"] = np.array(model.gravity, float)
    return out
