"""View of a rope of a running simulation, and the energies and momenta of ropes, from its first end to its last."""

from __future__ import annotations

from typing import Any

import numpy as np

from sharnir.core import summaries
from sharnir.core.renamed import Former
from sharnir.core.spatial import quat_conjugate, quat_exp, quat_multiply
from sharnir.core.strided import columns
from sharnir.engine.rope.build import HALF_TURN
from sharnir.errors import LARGEST_STATE, Bound, SimulationError, as_numbers, reachable
from sharnir.runtime import parameters

# The Simulation a view belongs to; it stands a floor above, so that it is not named here.
Owner = Any
LINEAR_ANGLE = 2.0 * np.pi / 3.0


def tangents(q: np.ndarray) -> np.ndarray:
    """Third axes of elements (…, 4)."""
    x, y, z, w = q[..., 0], q[..., 1], q[..., 2], q[..., 3]
    return np.stack([2.0 * (x * z + w * y), 2.0 * (y * z - w * x), 1.0 - 2.0 * (x * x + y * y)], -1)


def bend_size(x: np.ndarray) -> np.ndarray:
    """What angles of 0 … π count for in the energy of bend and twist (`rope.bend`)."""
    over = np.maximum(x - LINEAR_ANGLE, 0.0)
    return np.asarray(x - 0.5 * over**2 / (np.pi - LINEAR_ANGLE))


def bend_and_twist(p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Bend about the first two axes and twist about the third (…, 3), rad, of turns (…, 4); and what they count for."""
    across, c = np.linalg.norm(p[..., :2], axis=-1), np.linalg.norm(p[..., 2:], axis=-1)
    bend, twist = 2.0 * np.arctan2(across, c), 2.0 * np.arctan2(p[..., 2], p[..., 3])
    n = p[..., :2] / np.maximum(across, 1e-300)[..., None]
    y = np.minimum(2.0 * c, 1.0)
    counts = y * y * (3.0 - 2.0 * y) * np.sign(twist) * bend_size(np.abs(twist))
    return (
        np.concatenate([n * bend[..., None], twist[..., None]], axis=-1),
        np.concatenate([n * bend_size(bend)[..., None], counts[..., None]], axis=-1),
    )


def strains(sim: Owner, k: int, w: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Darboux vectors (n + 1, 3), element axes, 1/m, by how much they are off those at rest, and lengths (n + 1,) over which they
    are taken; 0 where nothing is held."""
    ropes, s = sim.model.ropes, sim._rope_moving
    at, n = int(ropes.first[k]), int(s.segments[k, w])
    q = s.rotation[at : at + n, w].astype(float)
    l = s.length[at : at + n, w].astype(float)
    bar = 0.5 * (np.append(l, 0.0) + np.append(0.0, l))
    bar[1:][s.cut[at : at + n, w] != 0] = 0.0
    ends = ropes.described[k].ends
    frames = []
    for side, end in enumerate(ends):
        if end.clamp:
            frames.append(quat_multiply(sim._moving.rotation[end.body, w].astype(float), end.frame))
        else:
            frames.append(q[-side])
            bar[-side] = 0.0
    q = np.concatenate([frames[:1], q, frames[1:]])
    p = quat_multiply(quat_conjugate(q[:-1]), q[1:])
    p = np.where(p[:, 3:] < 0, -p, p)
    held = bar > 0
    turn, _counts = bend_and_twist(p)
    per = np.where(held, bar, 1.0)[:, None]
    rest = ropes.table.rest.numpy()[at : at + n + 1].astype(float)
    turned = quat_multiply(p, quat_exp(-rest * per))
    off = bend_and_twist(np.where(turned[:, 3:] < 0, -turned, turned))[1] / per
    return np.where(held[:, None], turn / per, 0.0), np.where(held[:, None], off, 0.0), bar


def masses(sim: Owner, k: int, w: int) -> tuple[np.ndarray, np.ndarray, slice]:
    """Masses of points (n + 1,) and of elements (n,), and the slots of the points."""
    ropes, s = sim.model.ropes, sim._rope_moving
    at, n = int(ropes.first[k]), int(s.segments[k, w])
    l = s.length[at : at + n, w].astype(float) * ropes.described[k].density
    return 0.5 * (np.append(l, 0.0) + np.append(0.0, l)), l, slice(at, at + n + 1)


def rope_energy(sim: Owner, k: int, gravity: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Kinetic, potential and elastic energy (worlds,) of a rope, J."""
    out = np.zeros((3, sim.worlds))
    rope, s = sim.model.ropes.described[k], sim._rope_moving
    table = [columns(getattr(sim.model.ropes.table, name)) for name in ("EI", "GJ")]
    for w in range(sim.worlds):
        m, each, at = masses(sim, k, w)
        inner = slice(at.start, at.stop - 1)
        v, x = (a[at, w].astype(float) for a in (s.velocity, s.position))
        spin, q = (a[inner, w].astype(float) for a in (s.spin, s.rotation))
        i1 = 0.25 * each * rope.radius**2
        twice = (spin**2).sum(-1) + (spin * tangents(q)).sum(-1) ** 2
        _, off, bar = strains(sim, k, w)
        off = off**2
        out[0, w] = 0.5 * (m * (v**2).sum(-1)).sum() + 0.5 * (i1 * twice).sum()
        out[1, w] = -(m[:, None] * x).sum(0) @ (gravity if gravity.ndim == 1 else gravity[w])
        EI, GJ = (stiffness[k, w % stiffness.shape[1]] for stiffness in table)
        out[2, w] = 0.5 * (bar * (EI * (off[:, 0] + off[:, 1]) + GJ * off[:, 2])).sum()
        l, span = (a[inner, w].astype(float) for a in (s.length, s.span))
        held = s.cut[inner, w] == 0
        out[2, w] += (np.pi**2 * EI / l**2 * (l - span))[held].sum()
    return out[0], out[1], out[2]


def rope_momentum(sim: Owner, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Linear momentum and angular momentum about the origin (worlds, 3) of a rope."""
    linear, angular = np.zeros((sim.worlds, 3)), np.zeros((sim.worlds, 3))
    rope, s = sim.model.ropes.described[k], sim._rope_moving
    for w in range(sim.worlds):
        m, each, at = masses(sim, k, w)
        inner = slice(at.start, at.stop - 1)
        p = m[:, None] * s.velocity[at, w].astype(float)
        spin, q = (a[inner, w].astype(float) for a in (s.spin, s.rotation))
        d = tangents(q)
        own = (0.25 * each * rope.radius**2)[:, None] * (spin + d * (spin * d).sum(-1)[:, None])
        linear[w] = p.sum(0)
        angular[w] = np.cross(s.position[at, w].astype(float), p).sum(0) + own.sum(0)
    return linear, angular


def _of_rope(what: str, doc: str, name: str = "") -> Any:
    """A number of a rope, as a property; `name`: that of the table, where it is another."""
    name = name or what

    def get(self: RopeView) -> Any:
        values = columns(getattr(self._sim.model.ropes.table, name))[self._k]
        if self._sim.worlds == 1:
            return float(values[0])
        return np.repeat(values, self._sim.worlds) if len(values) == 1 else values

    def put(self: RopeView, value: Any) -> None:
        given = self._sim._in(value, 1, f"rope {self.name!r}", what)[:, 0]
        if np.any(given < 0):
            raise SimulationError(f"rope {self.name!r}: {what} is at least 0, got {value!r}")
        parameters.write(self._sim, self._sim.model.ropes.table, name, self._k, given)

    return property(get, put, doc=doc)


class RopeView(Bound):
    """One rope of a running simulation, from its first end to its last; values may be read and set between steps. World axes.

    Where worlds have different numbers of segments (reels), values of several worlds are lists.
    """

    __slots__ = ("_k", "_reel", "_sim", "name")

    def __init__(self, sim: Owner, index: int, name: str) -> None:
        self._sim, self._k, self.name = sim, index, name
        self._reel: Any = None  # of one world on the CPU: the memory of its speed, and of the length it goes to
        if sim._on_cpu and sim.worlds == 1:
            self._reel = tuple(memoryview(getattr(sim._rope_commands, f)[index]) for f in ("reel_speed", "reel_to"))

    spin = Former("angular_velocity")

    def __repr__(self) -> str:
        return summaries.rope(self)

    @property
    def _now(self) -> Any:
        """The arrays of all ropes, velocities being those of the pose."""
        self._sim._settled()
        return self._sim._rope_moving

    @property
    def _flipped(self) -> bool:
        return bool(self._sim.model.ropes.flip[self._k])

    def _rows(self, array: Any, more: int) -> list[np.ndarray]:
        """Rows of an [item, world] array that are the rope's, a world each, from its first end on."""
        at = int(self._sim.model.ropes.first[self._k])
        values, counts = array, self._now.segments[self._k]
        rows = [values[at : at + n + more, w].astype(float) for w, n in enumerate(counts)]
        return [r[::-1].copy() for r in rows] if self._flipped else rows

    def _shown(self, rows: list[np.ndarray]) -> Any:
        if self._sim.worlds == 1:
            return rows[0]
        return np.array(rows) if len({len(r) for r in rows}) == 1 else rows

    @property
    def segments(self) -> Any:
        """Number of segments in use, n."""
        counts = self._now.segments[self._k]
        return int(counts[0]) if self._sim.worlds == 1 else counts.copy()

    @property
    def position(self) -> Any:
        """(n + 1, 3) points, m."""
        return self._shown(self._rows(self._now.position, 1))

    @property
    def velocity(self) -> Any:
        """(n + 1, 3) of the points, m/s; settable."""
        return self._shown(self._rows(self._now.velocity, 1))

    @velocity.setter
    def velocity(self, value: Any) -> None:
        self._set(self._sim.state.rope.velocity, value, 1, "velocity (m/s)")

    @property
    def rotation(self) -> Any:
        """(n, 4) orientations of the elements; the third axis is the tangent."""
        rows = self._rows(self._now.rotation, 0)
        return self._shown([quat_multiply(r, HALF_TURN) for r in rows] if self._flipped else rows)

    @property
    def angular_velocity(self) -> Any:
        """(n, 3) of the elements, rad/s; settable."""
        return self._shown(self._rows(self._now.spin, 0))

    @angular_velocity.setter
    def angular_velocity(self, value: Any) -> None:
        self._set(self._sim.state.rope.spin, value, 0, "angular_velocity (rad/s)")

    @property
    def tension(self) -> Any:
        """(n,) force along the elements in the last step, N; negative where they are pressed."""
        pulls = self._rows(self._now.pull, 0)
        ways = [tangents(q) for q in self._rows(self._now.rotation, 0)]
        over = [np.where(s < 0, 1.0, -1.0) for s in self._rows(self._now.span, 0)]
        return self._shown([(p * d).sum(-1) * o / self._sim.dt + 0.0 for p, d, o in zip(pulls, ways, over, strict=True)])

    @property
    def end_force(self) -> Any:
        """(2, 3) force on the rope by what holds its first and its last end, N; weight and inertia of half a segment included."""
        both = self._now.end_force[2 * self._k : 2 * self._k + 2].astype(float) / self._sim.dt
        rows = [both[::-1, w] if self._flipped else both[:, w] for w in range(self._sim.worlds)]
        return self._shown(rows)

    @property
    def moment(self) -> Any:
        """(n + 1, 3) at the points: bending and twisting moment by the part after on the part before, N·m."""
        sign = 1.0 if self._flipped else -1.0
        return self._shown([r * (sign / self._sim.dt) for r in self._rows(self._now.moment, 1)])

    def _strain(self) -> list[np.ndarray]:
        rows = [strains(self._sim, self._k, w)[0] for w in range(self._sim.worlds)]
        return [r[::-1] * (-1.0, 1.0, 1.0) for r in rows] if self._flipped else rows

    @property
    def curvature(self) -> Any:
        """(n + 1, 2) about the first two axes of the elements, 1/m, at the points."""
        return self._shown([r[:, :2].copy() for r in self._strain()])

    @property
    def twist(self) -> Any:
        """(n + 1,) rad/m at the points; 0 at an end that is not clamped."""
        return self._shown([r[:, 2].copy() for r in self._strain()])

    @property
    def length(self) -> Any:
        """Length as reeled out, m; settable: the reel goes there at `reel_speed` (its size), then stands."""
        rows = self._rows(self._now.length, 0)
        owed = self._now.owed[self._k]
        return self._sim._out(np.array([r.sum() + o for r, o in zip(rows, owed, strict=True)]))

    @length.setter
    def length(self, value: Any) -> None:
        described = self._reeled()
        wanted = self._sim._in(value, 1, f"rope {self.name!r}", "length (m)")[:, 0]
        if np.any(wanted <= 0) or np.any(wanted > described.longest * (1 + 1e-9)):
            raise SimulationError(
                f"rope {self.name!r}: length is above 0 and at most longest, {described.longest:g} m, got {value!r}"
            )
        if not np.all(self._sim._rope_commands.reel_speed[self._k].astype(float)):
            raise SimulationError(f"rope {self.name!r}: set reel_speed first, at which its length is to be reached; it is 0")
        self._sim._rope_commands.put("reel_to", self._k, wanted)

    def _lengths(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Distances between the points of elements that are not torn, and their lengths, a world each."""
        arrays = (self._now.position, self._now.length, self._now.cut)
        rows = zip(*(self._rows(a, int(n == 0)) for n, a in enumerate(arrays)), strict=True)
        return [(np.linalg.norm(np.diff(x, axis=0), axis=1)[cut == 0], l[cut == 0]) for x, l, cut in rows]

    @property
    def stretch(self) -> Any:
        """Largest lengthening of a segment that is not torn, relative; of a rod, error of its length."""
        rod = self._sim.model.ropes.described[self._k].rod
        off = [distance / l - 1.0 for distance, l in self._lengths()]
        return self._sim._out(np.array([max(np.abs(x).max(initial=0.0) if rod else x.max(initial=0.0), 0.0) for x in off]))

    @property
    def asleep(self) -> Any:
        """Whether it sleeps, with all of its world, see `Simulation(sleep=)`; (worlds,) of several worlds."""
        values = self._sim._moving.resting == 1
        return bool(values[0]) if self._sim.worlds == 1 else values

    @property
    def slack(self) -> Any:
        """By how much the segments that are not torn are shorter than their lengths, all together, m."""
        return self._sim._out(np.array([np.maximum(l - distance, 0.0).sum() for distance, l in self._lengths()]))

    @property
    def reel_speed(self) -> Any:
        """m/s at which the reel pays out (negative: takes in), 0 where all of the rope is out; settable, which forgets a length
        that was asked for. Of a winch it is read alone: its joint turns it."""
        if self._sim.model.ropes.described[self._k].winch is not None:
            return self._sim._out(self._now.reel_now[self._k].astype(float))
        speed = self._sim._rope_commands.reel_speed[self._k].astype(float)
        longest = self._sim.model.ropes.described[self._k].longest
        out = np.array([r.sum() for r in self._rows(self._now.length, 0)])
        return self._sim._out(np.where((speed > 0) & (out >= longest * (1 - 1e-9)), 0.0, speed))

    @reel_speed.setter
    def reel_speed(self, value: Any) -> None:
        self._reeled()
        if self._reel is not None and isinstance(value, float | int) and -np.inf < value < np.inf:
            self._reel[0][0], self._reel[1][0] = value, 0.0
            return
        speed = self._sim._in(value, 1, f"rope {self.name!r}", "reel_speed (m/s)")[:, 0]
        self._sim._rope_commands.put("reel_speed", self._k, speed)
        self._sim._rope_commands.put("reel_to", self._k, np.zeros_like(speed))

    def _reeled(self) -> Any:
        """The description of a rope with a reel."""
        described = self._sim.model.ropes.described[self._k]
        if described.reel < 0:
            raise SimulationError(f"rope {self.name!r} has no reel; give reel='start' or 'end' to add_rope")
        if described.winch is not None:
            joint = list(self._sim.model.joint_names)[described.winch.joint]
            raise SimulationError(f"rope {self.name!r} is wound by joint {joint!r}: its length follows from that joint's angle")
        return described

    EI = _of_rope("EI", "N·m², bending stiffness; settable, for all worlds or one a world.")
    GJ = _of_rope("GJ", "N·m², torsional stiffness; settable, for all worlds or one a world.")
    damping = _of_rope("damping", "s, how long bend and twist lag behind their moments; settable, for all worlds or one a world.")
    breaking_load = _of_rope(
        "breaking_load",
        "N, at which an element tears; 1e30 where it does not; settable, for all worlds or one a world.",
        "strength",
    )

    @property
    def broken(self) -> Any:
        """(n,) True where an element is torn."""
        return self._shown([r != 0 for r in self._rows(self._now.cut, 0)])

    def cut(self, element: int) -> None:
        """Tear an element."""
        self._put_one(self._sim.state.rope.cut, element, 1, 0)

    def apply_force(self, point: int, force: Any, once: bool = True) -> None:
        """A force (3,) N on a point (counted from the first end), in the next step alone or until changed."""
        f = self._sim._in(force, 3, f"rope {self.name!r}", "force (N)")
        self._put_one(self._sim.commands.rope.force_once if once else self._sim.commands.rope.force, point, f, 1)

    def apply_torque(self, element: int, torque: Any) -> None:
        """A torque (3,) N·m on an element (counted from the first end), until changed."""
        self._put_one(self._sim.commands.rope.torque, element, self._sim._in(torque, 3, f"rope {self.name!r}", "torque (N·m)"), 0)

    def _put_one(self, array: Any, index: int, value: Any, more: int) -> None:
        counts = self._now.segments[self._k] + more
        at = int(self._sim.model.ropes.first[self._k])
        values = array.numpy()
        if not isinstance(index, int | np.integer) or isinstance(index, bool):
            raise SimulationError(f"rope {self.name!r}: {'a point' if more else 'an element'} is a whole number, got {index!r}")
        for w, n in enumerate(counts):
            if not -n <= index < n:
                kind = "points" if more else "elements"
                raise SimulationError(
                    f"rope {self.name!r} has {n} {kind}, 0 to {n - 1} (or −1 to −{n} from its end), got {index}"
                )
            i = index % n
            values[at + (n - 1 - i if self._flipped else i), w] = value if np.ndim(value) == 0 else value[w]
        if not self._sim._on_cpu:
            array.assign(values)
        self._sim._forced = True

    def _set(self, array: Any, value: Any, more: int, what: str) -> None:
        counts = self._now.segments[self._k] + more
        at = int(self._sim.model.ropes.first[self._k])
        values, worlds = array.numpy(), self._sim.worlds
        given = as_numbers(value)
        for w, n in enumerate(counts):
            mine = given[w % len(given)] if given.ndim == 3 and len(given) in (1, worlds) else given
            if mine.shape not in ((3,), (1, 3), (n, 3)) or not np.all(np.isfinite(mine)):
                allowed = f"three finite numbers, or three for each of {n}" + (
                    f", or that for each of {worlds} worlds" if worlds > 1 else ""
                )
                got = repr(value) if np.size(given) < 10 else f"shape {given.shape}"
                raise SimulationError(f"rope {self.name!r}: {what} is {allowed}, got {got}")
            if not reachable(mine):
                raise SimulationError(
                    f"rope {self.name!r}: {what} is at most {LARGEST_STATE:g} in size, got {np.abs(mine).max():g}"
                )
            rows = np.broadcast_to(mine, (n, 3))
            values[at : at + n, w] = rows[::-1] if self._flipped else rows
        if not self._sim._on_cpu:
            array.assign(values)
        self._sim.changed()
