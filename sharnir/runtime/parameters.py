"""Masses, springs, limits, motors and the like of a running simulation: one value for all worlds, or one a world."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection
from dataclasses import fields, replace
from math import inf
from typing import Any

import numpy as np
import warp as wp

from sharnir.core import strided
from sharnir.core.graphs import LOCK
from sharnir.core.reading import Reading
from sharnir.core.spatial import cross, quat_conjugate, quat_multiply, quat_rotate
from sharnir.engine.rope.build import Ropes
from sharnir.engine.rope.data import ROPE
from sharnir.errors import SceneWarning, SimulationError, as_numbers, callers_level, reachable
from sharnir.model.assembly import read_all, set_spin
from sharnir.model.joint_setting import MOVED, set_position
from sharnir.model.joint_types import FRAME_FIELDS
from sharnir.model.model import DYNAMIC, Model
from sharnir.runtime import snapshots
from sharnir.scene.joint_placement import FAR_ANCHOR

# The Simulation; it stands a floor above, so that it is not named here.
Owner = Any
MOTOR_FIELDS = ("resistance", "inductance", "torque_constant", "gear_ratio", "efficiency", "rotor_inertia")


def owned(model: Model) -> Model:
    """A model with tables of its own: what one simulation changes is not seen by others."""
    copies = {name: _copy(getattr(model, name), model) for name in ("bodies", "axes", "springs")}
    copies |= {"joints": _copy(model.joints, model, FRAME_FIELDS), "com": model.com.copy()}
    if int(model.drives.count):
        copies["drives"] = _copy(model.drives, model, ("joints",))
        copies["drives"].joints = copies["joints"]
    copies["springs"] = _with_own_points(copies["springs"])
    ropes = model.ropes
    if ropes is not None:
        values = {name: getattr(ropes.table, name) for name in _varying(ropes.table)}
        described, motion, worlds, device = ropes.given
        ropes = Ropes(described, motion, worlds, device, trees=ropes.trees)
        for name, array in values.items():
            setattr(ropes.table, name, strided.table(strided.columns(array), array.dtype, model.worlds, model.device))
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
        if name in names and hasattr(value, "dtype"):
            value = strided.table(strided.columns(value), value.dtype, model.worlds, model.device)
        setattr(out, name, value)
    return out


def read(sim: Owner, array: Any, row: int) -> Any:
    """A value of one item: a float or an array, with a leading world axis where worlds are several."""
    values = strided.columns(array)[row]
    if sim.worlds == 1:
        return float(values[0]) if values[0].ndim == 0 else values[0].view(Reading)
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
    """Give a row of a table values (1 or worlds, …); the solver takes it up."""
    array = getattr(struct, name)
    with LOCK:
        sim._settled()  # with what acted in the step that led here
        new = strided.write(array, row, values, array.dtype, sim.worlds, sim.model.device)
        if new is not array:
            setattr(struct, name, new)
            sim._rebuild()
    note_change(sim)


def note_change(sim: Owner) -> None:
    """After a parameter was changed: it may give energy, and the next step has half a kick of the old values, half of the new."""
    sim.solver.begin_anew(sim.state)
    sim.solver.wake(sim.state)
    sim._versions[1] += 1
    sim._measures = None
    sim._modified = sim._forced = True
    snapshots.forget_links(sim)


# ---- bodies ----


def set_mass(sim: Owner, body: int, who: str, value: Any, scale: bool = True) -> None:
    """kg; the inertia grows with it, as where the density is another (`scale`)."""
    t, mass = sim.model.bodies, checked(sim, value, who, "mass (kg)", above=0.0)
    old = strided.columns(t.mass)[body]
    inertia = strided.columns(t.inertia)[body]
    _keep_spin(sim, body, lambda: _put_body(sim, body, mass, inertia * (mass / old)[:, None, None] if scale else inertia))


def set_inertia(sim: Owner, body: int, who: str, value: Any) -> None:
    """kg·m² about the centre of mass, (3, 3) or its diagonal, one or one a world."""
    given = as_numbers(value)
    if given.shape in ((3,), (sim.worlds, 3)) and given.shape != (3, 3):
        given = given[..., None] * np.eye(3)
    each = given.reshape(-1, 3, 3) if given.shape in ((3, 3), (sim.worlds, 3, 3)) else np.full((1, 3, 3), np.nan)
    good = np.isfinite(each).all() and np.allclose(each, np.swapaxes(each, 1, 2)) and (np.linalg.eigvalsh(each) > 0).all()
    if not good or not strided.columns(sim.model.bodies.inertia)[body].any():
        what = "a point mass, which has none" if good else f"got {value!r}"
        raise SimulationError(f"{who}: inertia is (3, 3) or its diagonal, symmetric and positive, in kg·m²; {what}")
    mass = strided.columns(sim.model.bodies.mass)[body]
    _keep_spin(sim, body, lambda: _put_body(sim, body, mass, each))


def _put_body(sim: Owner, body: int, mass: np.ndarray, inertia: np.ndarray) -> None:
    t, solid = sim.model.bodies, bool(inertia.any())
    inverse = np.linalg.inv(inertia) if solid else np.zeros_like(inertia)
    for name, values in (("mass", mass), ("inv_mass", 1.0 / mass), ("inertia", inertia), ("inv_inertia", inverse)):
        array = getattr(t, name)
        setattr(t, name, strided.write(array, body, values, array.dtype, sim.worlds, sim.model.device))


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
    note_change(sim)


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
    model, point = sim.model, point_of(who, "com_local", value)
    if int(model.bodies.motion.numpy()[body]) != DYNAMIC or not strided.columns(model.bodies.inertia)[body].any():
        raise SimulationError(f"{who}: a centre of mass is moved in dynamic bodies that have an inertia, which it has not")
    by = point - model.com[body]
    tied: list[tuple[Any, Any]] = []
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

    def shift(on_parents: np.ndarray, on_children: np.ndarray) -> None:
        on_parents[model.parents == body] -= by
        on_children[model.children == body] -= by

    _in_both(sim, place, move, shift)


def set_anchor(sim: Owner, joint: int, who: str, side: int, value: Any) -> None:
    """Move where a joint sits on its parent (side 0) or child (1): coordinates and speeds stay, the child's side follows."""
    model, what = sim.model, ("parent_anchor", "child_anchor")[side]
    body = int((model.parents, model.children)[side][joint])
    point = point_of(who, what, value) - model.com[body]
    if not strided.columns(model.bodies.inertia)[body].any() and int(model.bodies.motion.numpy()[body]) == DYNAMIC:
        raise SimulationError(f"{who}: {what} stays in the centre of a point mass")
    at = slice(int(model.q_start[joint]), int(model.q_start[joint]) + model.joint_kinds[joint].q_size)

    name = ("parent_point", "child_point")[side]

    def put(values: np.ndarray) -> None:
        strided.put(getattr(model.joints, name), values)
        sim.solver.relay()

    def shift(*points: np.ndarray) -> None:
        points[side][joint] = point

    def follow() -> None:
        read_all(model, sim.state)
        there = sim.state.q.numpy()[at].T.astype(float)
        old = strided.columns(getattr(model.joints, name))
        new = old.copy()
        new[joint] = point
        on = sim._commands.enabled != 0
        if not on[joint].any():
            return
        kept = {field: getattr(sim.state, field).numpy().copy() for field in MOVED}
        put(new)
        try:
            set_position(model, sim.state, joint, there, on)
            for field, values in kept.items():  # where it is disabled nothing follows
                array = getattr(sim.state, field)
                array.assign(np.where(on[joint].reshape(1, -1, *(1,) * (values.ndim - 2)), array.numpy(), values))
        except SimulationError:
            put(old)
            read_all(model, sim.state)
            raise
        put(old)

    _in_both(sim, follow, lambda: None, shift)


def attach(sim: Owner, joint: int, who: str, worlds: Any = None, at: Any = None) -> None:
    """Enable a joint as its two bodies stand, in some worlds: both its frames are laid where `at` says, its coordinates are 0."""
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
        state = sim.state
        poses = [
            [getattr(state, name).numpy()[b, some].astype(float) for name in ("position", "rotation")]
            for b in (int(model.parents[joint]), int(model.children[joint]))
        ]
        points, frames = _place_of(sim, joint, who, at, some, poses)
        snapshots.vary_frames(sim)
        for side, (x, q) in zip(("parent", "child"), poses, strict=True):
            back = quat_conjugate(q)
            new = {"point": quat_rotate(back, points - x), "frame": quat_multiply(back, frames)}
            for kind, values in new.items():
                array = getattr(model.joints, f"{side}_{kind}")
                all_of = strided.columns(array)
                all_of[joint, some] = values
                strided.put(array, all_of)
        sim.solver.relay()
        first, size = int(model.q_start[joint]), model.joint_kinds[joint].q_size
        q = state.q.numpy()
        q[first : first + size, some] = 0.0
        if len(model.joint_kinds[joint].turns) == 3:
            q[first + size - 1, some] = 1.0
        state.q.assign(q)
        on[some] = True
        sim._commands.put("enabled", joint, on.astype(np.int32))
    snapshots.forget_links(sim)
    sim._modified = True
    sim._versions[1] += 1
    sim._acts_changed()
    sim.changed()


def _place_of(
    sim: Owner, joint: int, who: str, at: Any, some: np.ndarray, poses: list[list[np.ndarray]]
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """World points (some, 3) and frames (some, 4) where `attach(at=…)` puts a joint; poses of its parent and its child."""
    t, bodies = sim.model.joints, (int(sim.model.parents[joint]), int(sim.model.children[joint]))
    anchors, frames = [], []
    for side, (x, q) in zip(("parent", "child"), poses, strict=True):
        own = [strided.columns(getattr(t, f"{side}_{kind}"))[joint] for kind in ("point", "frame")]
        point, frame = (np.broadcast_to(v if len(v) == 1 else v[some], (len(some), v.shape[1])) for v in own)
        anchors.append(x + quat_rotate(q, point))
        frames.append(quat_multiply(q, frame))
    widths = [_width(sim, b) for b in bodies]

    def arms(points: np.ndarray) -> np.ndarray:
        """(2, some) distances from the centres of mass of both bodies, in widths of each."""
        return np.array([np.linalg.norm(points - x, axis=1) / max(w, 1e-9) for (x, _), w in zip(poses, widths, strict=True)])

    if at is None:
        nearer = arms(anchors[1]).max(0) < 0.5 * arms(anchors[0]).max(0)
        at_child = (nearer | (bodies[0] == 0) | (widths[1] == 0.0)) & (widths[0] > 0.0)
        points, out = (np.where(at_child[:, None], b, a) for a, b in (anchors, frames))
    elif isinstance(at, str) and at in ("parent", "child"):
        points, out = anchors[at == "child"], frames[at == "child"]
    else:
        given = as_numbers(at)
        if given.shape not in ((3,), (sim.worlds, 3), (len(some), 3)) or not reachable(given):
            each = f", or one per world ({sim.worlds}, 3)" if sim.worlds > 1 else ""
            raise SimulationError(f"{who}: attach(at=…) is 'parent', 'child' or a world point (3,) in m{each}, got {at!r}")
        given = given if given.ndim == 1 or len(given) == len(some) else given[some]
        points, out = np.broadcast_to(given, (len(some), 3)), frames[0]
    for b, width, (x, _) in zip(bodies, widths, poses, strict=True):
        if width == 0.0 and np.linalg.norm(points - x, axis=1).max() > 1e-9:
            name = next(n for n, k in sim.model.body_names.items() if k == b)
            raise SimulationError(f"{who}: body {name!r} is a point mass, and a joint holds it at its centre only, got at={at!r}")
    far = arms(points).min(0)
    if max(widths) < inf and far.max() > FAR_ANCHOR:
        worst, names = int(far.argmax()), {b: n for n, b in sim.model.body_names.items()}
        each = " and ".join(
            f"{arm * w:.3g} m from body {names[b]!r} ({w:.3g} m wide)"
            for arm, w, b in zip(arms(points)[:, worst], widths, bodies, strict=True)
        )
        warnings.warn(f"{who}: it is attached {each}; is it meant to be there?", SceneWarning, stacklevel=callers_level())
    return points, out


def _width(sim: Owner, body: int) -> float:
    """m: the diagonal of a box with a body's mass and inertia; 0 of a point mass, inf where the body is not dynamic."""
    t = sim.model.bodies
    if int(t.motion.numpy()[body]) != DYNAMIC:
        return inf
    return float(np.sqrt(6 * np.trace(strided.of_first(t.inertia)[body]) / strided.of_first(t.mass)[body]))


def _in_both(
    sim: Owner, place: Callable[[], None], change: Callable[[], None], shift: Callable[..., None]
) -> None:  # fmt: skip
    """Change tables, and with them the state now and that of the start, to which `reset` goes back.

    `shift` changes points of joints on their parents and on their children, two arrays (joints, 1 or worlds, 3): those of now,
    and those of the start where joints were attached.
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
        tied = [sim.model.joints.parent_point, sim.model.joints.child_point]
        points = [strided.columns(array) for array in tied]
        shift(*points)
        for array, values in zip(tied, points, strict=True):
            strided.put(array, values)
        if snapshots.FRAME_NAMES[0] in start:
            shift(start[snapshots.FRAME_NAMES[0]], start[snapshots.FRAME_NAMES[2]])
        sim._start = start
        sim._rebuild()
    note_change(sim)
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

# what `randomize` varies: of which table, which fields, and with which power of the factor
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
ONE_FACTOR = ("mass", "friction")  # one factor for all fields


class Draw:
    """Random numbers for worlds of a simulation that may hold some of many: the same as if it held them all."""

    def __init__(self, seed: int, worlds: int, of: int, first: int) -> None:
        self._rng, self._of, self._own = np.random.default_rng(seed), of, slice(first, first + worlds)

    def __call__(self, items: int) -> np.ndarray:
        """(items, worlds) from -1 to 1."""
        return self._rng.uniform(-1.0, 1.0, (items, self._of))[:, self._own]


def randomize(sim: Owner, seed: int, spreads: dict[str, float], among: tuple[int, int] | None = None) -> None:
    """Vary parameters around those that the scene described; see `Simulation.randomize`.

    `among`: of how many worlds those of the simulation are a part, and the number of their first.
    """
    for what, spread in spreads.items():
        if what not in VARIED:
            raise SimulationError(f"randomize: {what!r} is not among {', '.join(VARIED)}")
        if not isinstance(spread, float | int) or not 0 <= spread < (inf if what == "limit" else 1):
            raise SimulationError(f"randomize: {what} = {spread!r}; a spread is a number from 0 to below 1")
    if not isinstance(seed, int | np.integer) or seed < 0:
        raise SimulationError(f"randomize: seed is a whole number of at least 0, got {seed!r}")
    draw = Draw(seed, sim.worlds, *(among or (sim.worlds, 0)))
    if sim._nominal is None:
        sim._nominal = _nominal(sim)
    with LOCK:
        spin = sim._settled().spin.astype(float).copy()
        for what in (name for name in VARIED if name in spreads):
            _vary(sim, what, spreads[what], draw)
        sim._rebuild()
        set_spin(sim.model, sim._state, spin)
    note_change(sim)
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
        if drawn is None or what not in ONE_FACTOR:
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
        setattr(struct, name, strided.table(values, array.dtype, worlds, model.device))
        if where == "bodies":
            inverse = np.zeros_like(values)
            some = values.reshape(*values.shape[:2], -1).any(-1) & (model.bodies.motion.numpy() == DYNAMIC)[:, None]
            inverse[some] = 1.0 / values[some] if name == "mass" else np.linalg.inv(values[some])
            setattr(struct, f"inv_{name}", strided.table(inverse, array.dtype, worlds, model.device))


def _nominal(sim: Owner) -> dict[str, np.ndarray]:
    """Values that the scene described, (items, 1 or worlds, …)."""
    model = sim.model
    structs = {"bodies": model.bodies, "axes": model.axes, "springs": model.springs}
    if model.ropes is not None:
        structs["ropes"] = model.ropes.table
    out = {f"{where}.{name}": strided.columns(getattr(s, name)) for where, s in structs.items() for name in _varying(s)}
    for where, name, _ in (row for rows in VARIED.values() for row in rows):
        if where == "control":
            out[f"control.{name}"] = np.array(getattr(sim._commands, name), float)
    out["gravity"] = np.array(model.gravity, float)
    return out
