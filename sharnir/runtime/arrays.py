"""Arrays of a running simulation as a user sees them: NumPy views of the device's memory on the CPU, device arrays on a GPU.

Beneath, every array is [item, world]; here it is (item, …) where there is one world, and (world, item, …) where there are more.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

import numpy as np

from sharnir.core import strided
from sharnir.core.graphs import LOCK
from sharnir.core.reading import Shown
from sharnir.core.renamed import Former
from sharnir.core.spatial import quat_to_matrix, unit_quat
from sharnir.engine.articulated.body_motion import moving
from sharnir.errors import LARGEST_STATE, Bound, SceneWarning, SimulationError, as_numbers, callers_level, reachable
from sharnir.model.joint_setting import MOVED, by_joints
from sharnir.model.model import FIXED, KINEMATIC
from sharnir.runtime.snapshots import chosen

READ_NOTHING, READ_PLACES, READ_ALL = 0, 1, 2  # what of the joints was read since the last change, or has to be
OPEN_LOOP = 1e-6  # m, rad, by which loops may stand open where joints are set one and all
# The Simulation; it stands a floor above, so that it is not named here.
Owner = Any


def memory(values: np.ndarray) -> Any:
    """The memory of an array: its items are read and written several times quicker than those of the array itself."""
    return memoryview(values)  # type: ignore[arg-type]


class Host:
    """The arrays of a Warp structure as NumPy arrays [item, world, …]: on the CPU views, on a GPU copies of now."""

    def __init__(self, struct: Any, on_cpu: bool) -> None:
        self._struct, self._on_cpu = struct, on_cpu
        if on_cpu:
            for name in struct._cls.vars:
                value = getattr(struct, name)
                if hasattr(value, "numpy"):
                    setattr(self, name, value.numpy())

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._struct, name).numpy()

    def put(self, name: str, i: int, value: Any) -> None:
        """Write row i of an array."""
        if self._on_cpu:
            getattr(self, name)[i] = value
        else:
            array = getattr(self._struct, name)[i]
            array.assign(np.broadcast_to(np.asarray(value, array.numpy().dtype), array.numpy().shape))


class Idle:
    """Speeds of joints on which nothing acts, found anew when that changes."""

    __slots__ = ("_seen", "_speeds")

    def __init__(self) -> None:
        self._seen, self._speeds = b"", np.zeros(0, int)

    def find(self, model: Any, acts: np.ndarray) -> np.ndarray:
        """Their indices; `acts` is `Control.acts`."""
        now = bytes(acts.data)
        if now != self._seen:
            joints = np.repeat(np.arange(len(model.joint_kinds)), [kind.v_size for kind in model.joint_kinds])
            self._seen, self._speeds = now, np.flatnonzero(np.asarray((acts == 0).any(axis=1))[joints])
        return self._speeds


class Lent:
    """An array that was handed out to be written, and a function that is called with its former values when it was.

    On a GPU nobody looks: it counts as written at every look.
    """

    __slots__ = ("_always", "_memory", "_seen", "_tell")

    def __init__(self, values: np.ndarray, tell: Callable[[bytes], None], always: bool = False) -> None:
        self._memory, self._tell, self._always = memory(values.reshape(-1).view(np.uint8)), tell, always
        self._seen = bytes(self._memory)

    def look(self) -> None:
        """Whether somebody wrote since the last look."""
        now = bytes(self._memory)
        if now != self._seen or self._always:
            before, self._seen = self._seen, now
            self._tell(before)

    def take(self) -> None:
        """What stands there is known."""
        self._seen = bytes(self._memory)


class BodyWrites:
    """What follows when a user has written an array of the bodies: angular momenta that fit, and a guard that looks again."""

    __slots__ = ("_name", "_sim")

    def __init__(self, sim: Owner, name: str) -> None:
        self._sim, self._name = sim, name

    def __call__(self, before: bytes) -> None:
        sim = self._sim
        sim._modified = True
        sim._known = 0
        if not sim._on_cpu:
            return
        s, name = sim._moving, self._name
        values = getattr(s, name)
        rows = np.flatnonzero((values != np.frombuffer(before, values.dtype).reshape(values.shape)).any((1, 2)))
        self._check(values, rows)
        if name == "rotation":
            values[rows] /= np.linalg.norm(values[rows], axis=-1, keepdims=True)
        sim._forced |= bool((sim.model.bodies.motion.numpy()[rows] == KINEMATIC).any())
        if name in ("rotation", "spin") and len(rows):
            R = quat_to_matrix(s.rotation[rows].astype(float))
            local = np.einsum("bwji,bwj->bwi", R, s.spin[rows].astype(float))
            inertia = sim._inertia(rows)  # (rows, 1 or worlds, 3, 3)
            s.momentum[rows] = np.einsum("bwij,bwj->bwi", R, (inertia @ local[..., None])[..., 0])

    def _check(self, values: np.ndarray, rows: np.ndarray) -> None:
        """Refuse, by name, what no body can have."""
        for b in rows:
            shown = {"spin": "angular_velocity"}.get(self._name, self._name)
            who = f"sim.body_{shown}: body {next(n for n, k in self._sim.model.body_names.items() if k == b)!r}"
            if not reachable(values[b]):
                raise SimulationError(f"{who} was given {values[b].tolist()}; allowed are finite numbers up to {LARGEST_STATE:g}")
            if self._sim.model.bodies.motion.numpy()[b] == FIXED:
                raise SimulationError(f"{who} is fixed, and was given {values[b].tolist()}")
            if self._name == "rotation":
                length = np.linalg.norm(values[b].astype(float), axis=-1)
                if np.any(np.abs(length - 1.0) > 1e-3):
                    raise SimulationError(f"{who} was given a quaternion of length {length.ravel()[0]:g}; allowed is 1 to 1e-3")


def set_state(sim: Owner, q: Any, qd: Any, worlds: np.ndarray) -> None:
    """Put all joints of some worlds to coordinates and speeds; bodies that no joint holds stay as they are."""
    model = sim.model
    if sim._ropes:
        name = next(iter(sim._ropes))
        raise SimulationError(f"set_state: rope {name!r} would not follow its bodies; set joints before the scene is built")
    given = []
    for what, value, size in (("q", q, int(sum(k.q_size for k in model.joint_kinds))), ("qd", qd, model.speeds)):
        new = None if value is None else checked(value, (len(worlds), size), f"set_state({what}=…)", len(worlds))
        if new is not None and not reachable(new):
            raise SimulationError(f"set_state({what}=…): at most {LARGEST_STATE:g} in size, got {np.abs(new).max():g}")
        given.append(new)
    if given[0] is not None:
        warn_beyond_limits(sim, given[0], worlds)
    groups = by_joints(sim._commands.enabled[:, worlds] != 0)
    kept = [getattr(sim.state, name).numpy().copy() for name in MOVED] if len(groups) > 1 else []
    try:
        for held, at in groups:
            out = sorted(set(range(len(model.joint_kinds))) - set(held))
            q, qd = (None if new is None else new[at] for new in given)
            _set_group(sim, worlds[at], q, qd, out)
    except SimulationError:
        for name, values in zip(MOVED if kept else (), kept, strict=True):
            getattr(sim.state, name).assign(values)
        raise


def warn_beyond_limits(sim: Owner, q: np.ndarray, worlds: np.ndarray, joint: int | None = None) -> None:
    """Warn, once a joint, of coordinates (worlds, …) of all joints, or of one, that lie beyond its limits."""
    model = sim.model
    table = sim._shown.get("limited")
    if table is None:  # coordinate, speed and joint of each axis with a limit of its own, which those of a ball do not have
        rows = [
            (int(model.q_start[k]) + i, int(model.v_start[k]) + i, k)
            for k, kind in enumerate(model.joint_kinds)
            for i in range(kind.v_size - 3 * (len(kind.turns) == 3 and kind.v_size > 0))
        ]
        table = sim._shown["limited"] = np.array(rows, int).reshape(-1, 3)
    if joint is not None:
        table = table[table[:, 2] == joint] - (model.q_start[joint], 0, 0)
    values = q[:, table[:, 0]].T
    low, high = (
        array._base.numpy()[table[:, 1], None] if strided.is_shared(array) else array.numpy()[table[:, 1][:, None], worlds]
        for array in (model.axes.lower, model.axes.upper)
    )
    off = np.maximum(low - values, values - high) > 1e-6 * (1.0 + np.abs(values))
    for row in np.flatnonzero(off.any(1)) if off.any() else ():
        view, w = list(sim._joints.values())[table[row, 2]], int(off[row].argmax())
        if not view._reported and sim._commands.enabled[table[row, 2], worlds[w]]:
            view._reported = True
            first, last = (end[row, w if end.shape[1] > 1 else 0] for end in (low, high))
            where = f" in world {worlds[w]}" * (sim.worlds > 1)
            words = f"joint {view.name!r}: position {values[row, w]:.6g}{where} lies beyond its limits {first:g} to {last:g}"
            words += "; steps push it back: choose a position within them, or set joint.limit first (reported once)"
            warnings.warn(words, SceneWarning, stacklevel=callers_level())


def _set_group(sim: Owner, worlds: np.ndarray, q: np.ndarray | None, qd: np.ndarray | None, out: list[int]) -> None:
    """`set_state` of worlds in which the same joints are disabled, `out`: coordinates of these are not set."""
    if sim._on_cpu and (_set_quickly(sim, q, qd, out) if sim.worlds == 1 else _set_some(sim, worlds, q, qd, out)):
        return
    from sharnir import dynamics

    with LOCK:
        state = sim.state
        tree = dynamics.links(sim.model, out)
        kept = {n: getattr(state, n).numpy().copy() for n in MOVED}
        whole = dynamics.from_state(tree, state)
        for values, new in zip(whole, (q, qd), strict=True):
            if new is not None:
                values[worlds, : new.shape[1]] = new
        unit_coordinates(sim, whole[0])
        dynamics.to_state(tree, state, *whole)
        off = np.delete(sim.constraint_error()[worlds], out, axis=1).max(initial=0.0) if tree.loops else 0.0
        others = np.setdiff1d(np.arange(sim.worlds), worlds)
        for name, values in kept.items():
            array = getattr(state, name)
            now = array.numpy()
            now[:, others] = values[:, others]
            array.assign(now if off < OPEN_LOOP else values)
    if not off < OPEN_LOOP:
        raise SimulationError(f"set_state: closed loops would stand open by {off:.3g} m or rad; nothing was changed")
    sim._at_pose = True
    sim.changed()


def _set_quickly(sim: Owner, q: np.ndarray | None, qd: np.ndarray | None, out: list[int]) -> bool:
    """One world whose joints are a tree on the ground: its bodies go where the coordinates say."""
    if out:
        return False
    from sharnir import dynamics

    bound = dynamics.of(sim)
    tree, s = bound.tree, sim._moving
    if tree.loops or tree.nq != len(s.q) or not tree.links:
        return False
    sim._coordinates()
    places = np.array(s.q[:, 0] if q is None else q[0], float)
    unit_coordinates(sim, places[None])
    position, rotation, velocity, spin = bound.moving(places, s.qd[:, 0] if qd is None else qd[0])
    rows = np.array([link.body for link in tree.links])
    s.position[rows, 0], s.rotation[rows, 0] = position[rows], rotation[rows]
    s.velocity[rows, 0], s.spin[rows, 0] = velocity[rows], spin[rows]
    R = quat_to_matrix(rotation[rows])
    local = np.einsum("bji,bj->bi", R, spin[rows])
    s.momentum[rows, 0] = np.einsum("bij,bj->bi", R, (sim._inertia(rows)[:, 0] @ local[..., None])[..., 0])
    s.q[:, 0] = places
    sim.changed()
    return True


def _set_some(sim: Owner, worlds: np.ndarray, q: np.ndarray | None, qd: np.ndarray | None, out: list[int]) -> bool:
    """Some worlds whose joints are a tree on the ground; what it costs grows with those worlds, not with all."""
    from sharnir import dynamics

    tree, s = dynamics.links(sim.model, out), sim._moving
    if out or tree.loops or tree.nq != len(s.q) or not tree.links or not len(worlds):
        return False
    if q is None or qd is None:
        sim._coordinates()
    else:
        sim._settled()  # the other worlds keep their velocities
    known = sim._known
    places = np.array(s.q[:, worlds].T if q is None else q, float)
    unit_coordinates(sim, places)
    speeds = np.array(s.qd[:, worlds].T if qd is None else qd, float)
    rows = np.array([link.body for link in tree.links])
    at = rows[:, None], worlds
    with LOCK:
        position, rotation, velocity, spin = moving(tree, places, speeds, rows)
    R = _matrices(rotation)
    inertia = sim._inertia(rows)  # (rows, 1 or worlds, 3, 3)
    inertia = inertia if inertia.shape[1] == 1 else inertia[:, worlds]
    local = np.swapaxes(R, -1, -2) @ spin[..., None]
    s.position[at], s.rotation[at], s.velocity[at], s.spin[at] = position, rotation, velocity, spin
    s.momentum[at] = (R @ (inertia @ local))[..., 0]
    s.q[:, worlds], s.qd[:, worlds] = places.T, speeds.T
    sim._at_pose = True
    sim.changed()
    sim._keep_known(known)
    return True


def _products() -> np.ndarray:
    """(16, 9): what products of a quaternion's numbers (x, y, z, w) add to its rotation matrix, beyond that of no rotation."""
    out = np.zeros((4, 4, 3, 3))
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        out[j, j, i, i] = out[k, k, i, i] = -2.0
        out[i, j, i, j] = out[i, j, j, i] = 2.0
        out[k, 3, j, i], out[k, 3, i, j] = 2.0, -2.0
    return out.reshape(16, 9)


PRODUCTS, NO_TURN = _products(), np.eye(3).ravel()


def _matrices(turn: np.ndarray) -> np.ndarray:
    """(…, 3, 3) of quaternions (…, 4), as `quat_to_matrix` to rounding, in a fraction of its time where there are few."""
    pairs = (turn[..., :, None] * turn[..., None, :]).reshape(-1, 16)
    return np.asarray((pairs @ PRODUCTS + NO_TURN).reshape(*turn.shape[:-1], 3, 3))


def unit_coordinates(sim: Owner, q: np.ndarray) -> None:
    """Scale quaternions of ball joints to unit length, or refuse them by name."""
    for name, k in sim.model.joint_names.items():
        kind = sim.model.joint_kinds[k]
        if kind.v_size and len(kind.turns) == 3:
            at = int(sim.model.q_start[k]) + kind.q_size - 4
            q[:, at : at + 4] = unit_quat(q[:, at : at + 4], f"joint {name!r}", SimulationError)


class Index(NamedTuple):
    """Where some joints stand in `sim.q` and in `sim.qd`."""

    q: np.ndarray
    qd: np.ndarray


def index(sim: Owner, pattern: str) -> Index:
    """Indices of the joints whose names match a pattern such as "arm/*", in the order of the scene."""
    model = sim.model
    found = [k for name, k in model.joint_names.items() if fnmatchcase(name, pattern)] if isinstance(pattern, str) else []
    if not found:
        known = ", ".join(map(repr, model.joint_names)) or "none"
        raise SimulationError(f"index: no joint matches {pattern!r}; available: {known}")
    parts: list[np.ndarray] = []
    for start, sizes in ((model.q_start, "q_size"), (model.v_start, "v_size")):
        spans = [np.arange(start[k], start[k] + getattr(model.joint_kinds[k], sizes)) for k in found]
        parts.append(np.concatenate(spans).astype(int))
    return Index(parts[0], parts[1])


def shown(sim: Owner, struct: Any, host: Host, name: str, writeable: bool) -> Any:
    """An array as the user sees it, worlds first; on a GPU a Warp array (DLPack), on the CPU a view."""
    if not sim._on_cpu:
        array = getattr(struct, name)
        return array[:, 0] if sim.worlds == 1 else array.transpose([1, 0])
    values = getattr(host, name)
    view = values[:, 0] if sim.worlds == 1 else values.swapaxes(0, 1)
    if not writeable:
        view = view.view(Shown)
        view.flags.writeable = False
    return view


def on_device(sim: Owner, name: str) -> Any:
    """The state with an array [item, world] of it up to date: coordinates, poses, or anything that goes with velocities."""
    if name in ("q", "qd"):
        sim._coordinates(READ_PLACES if name == "q" else READ_ALL)
    elif name not in ("position", "rotation"):
        sim._settled()
    return sim._state


def on_host(sim: Owner, name: str) -> np.ndarray:
    """An array [item, world, …] of the state as it is now, on the host."""
    on_device(sim, name)
    return np.asarray(getattr(sim._moving, name))


def efforts_written(sim: Owner) -> None:
    """To be called after `commands.joint_force` was written directly."""
    sim._efforts_changed()


def _target(name: str, doc: str) -> Any:
    """A command of all drives, as a property."""
    return property(lambda self: self._get(name), lambda self, value: self._set(name, value), doc=doc)


class Targets(Bound):
    """Targets of the drives of all joints, in the order of `sim.qd`; write into them, or assign them as a whole."""

    __slots__ = ("_sim", "_views")

    def __init__(self, sim: Owner) -> None:
        self._sim = sim
        self._views: dict[str, Any] = {}

    def __repr__(self) -> str:
        return f"<targets of {self._sim.model.speeds} axes: position, velocity, torque, voltage>"

    def _get(self, name: str) -> Any:
        view = self._views.get(name)
        if view is None:
            view = self._views[name] = shown(self._sim, self._sim.commands, self._sim._commands, name, True)
            if name == "servo_torque":  # which acts without a gain
                self._sim._lend(name, self._sim._commands, self._sim._targets_changed)
        return view

    def _set(self, name: str, value: Any) -> None:
        sim = self._sim
        given = checked(value, (sim.worlds, sim.model.speeds), f"target.{name.removeprefix('servo_')}", sim.worlds)
        sim._fill(name, given)
        sim._targets_changed(b"")

    position = _target("servo_position", "(speeds,) or (worlds, speeds): m or rad, towards which servos with a kp pull.")
    velocity = _target("servo_velocity", "(speeds,) or (worlds, speeds): m/s or rad/s, towards which servos with a kd pull.")
    torque = _target("servo_torque", "(speeds,) or (worlds, speeds): N or N·m that servos add.")
    voltage = _target("voltage", "(speeds,) or (worlds, speeds): V at DC motors.")


def checked(value: Any, shape: tuple[int, ...], what: str, worlds: int) -> np.ndarray:
    """Finite numbers of a shape (worlds, …) or without its first axis, or one number for all; as (worlds, …)."""
    given = as_numbers(value)
    if given.shape not in ((), shape[1:], shape) or not np.isfinite(given).all():
        alone = f"{shape[1:]}" + (f" or {shape}" if worlds > 1 else "")
        got = repr(value) if given.size < 10 else f"shape {given.shape}, not all finite" * bool(given.shape in (shape[1:], shape))
        raise SimulationError(f"Simulation: {what} is finite numbers {alone}, got {got or f'shape {given.shape}'}")
    return given if given.shape == shape else np.broadcast_to(given, shape)


class ArrayAccess:
    """The arrays of a Simulation, which is one."""

    __slots__ = ()
    worlds: int
    model: Any
    solver: Any
    commands: Any
    _state: Any
    _on_cpu: bool
    _moving: Host
    _commands: Host
    _shown: dict[str, Any]
    _lent: list[Lent]
    _target: Targets
    _coordinates: Callable[..., None]
    _settled: Callable[[], Host]
    _begin_looking: Callable[[], None]
    _efforts_changed: Callable[..., None]
    _acts_changed: Callable[[], None]
    _idle: Idle

    @property
    def q(self) -> Any:
        """(coordinates,) or (worlds, coordinates): of all joints, m and rad (of a ball a quaternion); ask again after a step.

        A view that is not to be written; assign it as a whole, or use `set_state`.
        """
        self._coordinates(READ_PLACES)
        return self._view("q")

    @q.setter
    def q(self, value: Any) -> None:
        self.set_state(q=value)

    @property
    def qd(self) -> Any:
        """(speeds,) or (worlds, speeds): those of all joints, m/s and rad/s; ask again after a step. Assign it as a whole."""
        self._coordinates()
        return self._view("qd")

    @qd.setter
    def qd(self, value: Any) -> None:
        self.set_state(qd=value)

    @property
    def effort(self) -> Any:
        """(speeds,) or (worlds, speeds): force or torque applied along the free axes until changed, N and N·m; to be written."""
        view = self._shown.get("effort")
        if view is None:
            view = self._shown["effort"] = shown(self, self.commands, self._commands, "joint_force", True)
            self._lend("joint_force", self._commands, self._efforts_changed)
        return view

    @effort.setter
    def effort(self, value: Any) -> None:
        self._fill("joint_force", checked(value, (self.worlds, self.model.speeds), "effort", self.worlds))
        self._efforts_changed()

    @property
    def target(self) -> Targets:
        """Targets of the drives of all joints, in the order of `qd`: position, velocity, torque, voltage; to be written."""
        return self._target

    @property
    def body_position(self) -> Any:
        """(bodies, 3) or (worlds, bodies, 3): centres of mass, m, in the order of `model.body_names` (0 is the world); may be
        written.
        """
        return self._lent_view("position")

    @property
    def body_rotation(self) -> Any:
        """(bodies, 4) or (worlds, bodies, 4): unit quaternions (x, y, z, w) of the bodies' frames; may be written."""
        return self._lent_view("rotation")

    @property
    def body_velocity(self) -> Any:
        """(bodies, 3) or (worlds, bodies, 3): of the centres of mass, m/s; may be written; ask again after a step."""
        self._settled()
        return self._lent_view("velocity")

    @property
    def body_angular_velocity(self) -> Any:
        """(bodies, 3) or (worlds, bodies, 3): rad/s; may be written; ask again after a step."""
        self._settled()
        return self._lent_view("spin")

    control, body_spin = Former("commands"), Former("body_angular_velocity")

    def index(self, pattern: str) -> Index:
        """Indices into `q` and into `qd` of the joints whose names match a pattern such as "arm/*" (a ball has 4 and 3)."""
        return index(self, pattern)

    def set_state(self, *, q: Any = None, qd: Any = None, worlds: Any = None) -> None:
        """Put all joints to coordinates and speeds; what is not given stays.

        Args:
            q, qd: (coordinates,) and (speeds,), or one row for each of the worlds.
            worlds: a mask (worlds,) or indices of those that are set, all if None; the others are not touched.
        """
        set_state(self, q, qd, chosen(self, np.arange(self.worlds) if worlds is None else worlds))

    def _view(self, name: str) -> Any:
        view = self._shown.get(name)
        if view is None:
            view = self._shown[name] = shown(self, self._state, self._moving, name, False)
        return view

    def _lent_view(self, name: str) -> Any:
        """An array of the bodies that a user may write."""
        view = self._shown.get(name)
        if view is None:
            view = self._shown[name] = shown(self, self._state, self._moving, name, True)
            self._lend(name, self._moving, BodyWrites(self, name))
            self._begin_looking()
        return view

    def _lend(self, name: str, host: Host, tell: Callable[[bytes], None]) -> None:
        """An array is given out to be written; on a GPU nobody looks at commands: a servo's torque acts from now on."""
        if not self._on_cpu and host is self._commands:
            if name == "servo_torque":
                self.commands.acts.fill_(1)
                self._acts_changed()
            return
        self._lent.append(Lent(getattr(host, name), tell) if self._on_cpu else Lent(np.zeros(1), tell, always=True))

    def _look(self) -> None:
        """Whether arrays that were lent have been written."""
        for lent in self._lent:
            lent.look()

    def _take(self) -> None:
        """What stands in arrays that were lent is known."""
        for lent in self._lent:
            lent.take()

    def _fill(self, name: str, values: np.ndarray) -> None:
        """Write an array of the commands, (worlds, rows)."""
        if self._on_cpu:
            getattr(self._commands, name)[...] = values.T
        else:
            getattr(self.commands, name).assign(np.ascontiguousarray(values.T))

    def _targets_changed(self, _before: bytes = b"") -> None:
        """Targets were written as arrays: joints on which nothing acted so far begin to be driven."""
        self.solver.driven = True
        c = self._commands
        idle = self._idle.find(self.model, c.acts)
        if not len(idle) or not c.servo_torque[idle].any():
            return
        for k, kind in enumerate(self.model.joint_kinds):
            first = int(self.model.v_start[k])
            if c.servo_torque[first : first + kind.v_size].any():
                c.put("acts", k, 1)
        self._acts_changed()
