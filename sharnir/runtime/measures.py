"""Energies and momenta of a running simulation, read off its arrays."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp

from sharnir.core.graphs import Recorded
from sharnir.core.spatial import cross, quat_rotate, turn_from
from sharnir.core.strided import columns
from sharnir.errors import SceneWarning, Spelled
from sharnir.model import assembly
from sharnir.model.kinematics import evaluate_joints
from sharnir.model.model import DYNAMIC
from sharnir.runtime.rope_view import rope_energy, rope_momentum

# The Simulation; it stands a floor above, so that it is not named here.
Owner = Any


@dataclass(frozen=True, slots=True)
class Energy(Spelled):
    """Energies of all dynamic bodies, J; potential is zero at the origin, contact is that of materials with a stiffness."""

    kinetic: Any
    potential: Any
    elastic: Any
    contact: Any = 0.0

    @property
    def total(self) -> Any:
        """The sum of the four, J."""
        return self.kinetic + self.potential + self.elastic + self.contact


@dataclass(frozen=True, slots=True)
class Momentum(Spelled):
    """Momenta of all dynamic bodies: linear (3,) kg·m/s, angular (3,) about the origin, kg·m²/s."""

    linear: np.ndarray
    angular: np.ndarray


def per_world(array: Any) -> np.ndarray:
    """(items, 1 or worlds) of a table, as it is shared by all worlds or varied."""
    return columns(array)


class Measures:
    """What energies need of a model, taken once; made anew where masses, springs or gravity change."""

    def __init__(self, sim: Owner) -> None:
        model, self._sim = sim.model, sim
        on = model.bodies.motion.numpy() == DYNAMIC
        mass = (per_world(model.bodies.mass) * on[:, None])[..., None]  # (bodies, 1 or worlds, 1)
        self.mass, self.on = mass, np.broadcast_to(on[:, None, None], (len(on), 1, 1)).astype(float)
        self.weight = mass * sim._gravities  # (bodies, 1 or worlds, 3)
        axes = model.axes
        self.rotors = per_world(axes.rotor_inertia) * per_world(axes.gear_ratio) ** 2
        self.any_rotors = bool(self.rotors.any())
        stiffness, rest = per_world(axes.stiffness), per_world(axes.rest)
        plain: list[tuple[int, int, int]] = []  # coordinate, speed, joint
        self.balls: list[tuple[int, int, int]] = []
        for k, kind in enumerate(model.joint_kinds):
            turning = 3 if len(kind.turns) == 3 and kind.v_size else 0
            for i in range(kind.v_size - turning):
                plain.append((int(model.q_start[k]) + i, int(model.v_start[k]) + i, k))
            if turning and stiffness[model.v_start[k] + kind.v_size - 3 : model.v_start[k] + kind.v_size].any():
                self.balls.append((int(model.q_start[k]) + kind.q_size - 4, int(model.v_start[k]) + kind.v_size - 3, k))
        plain = [row for row in plain if stiffness[row[1]].any()]
        self.at, axis, self.joint = np.array(plain, int).reshape(-1, 3).T
        self.stiffness, self.rest = stiffness, rest
        self.k: Any = stiffness[axis] if plain else None
        self.r: Any = rest[axis] if plain else None
        t = model.springs
        self.springs = [np.array(getattr(t, n).numpy()) for n in ("parent", "child", "parent_point", "child_point")]
        self.spring_k, self.spring_rest = (per_world(a) for a in (t.stiffness, t.rest))
        touch = model.collision
        self.yields = touch is not None and any(m.stiffness for m in (*touch.materials.values(), *touch.rules.values()))
        self._flat = None
        if sim._on_cpu and sim.worlds == 1 and sim._moving.velocity.dtype == float:
            s, n = sim._moving, len(on)
            views = tuple(getattr(s, name).reshape(-1) for name in ("position", "velocity", "momentum", "spin"))
            thrice = (np.broadcast_to(a[:, :1], (n, 1, 3)).reshape(-1).copy() for a in (self.mass, self.on, self.weight))
            self._flat = (*views, *thrice)

    def energy(self) -> Energy:
        """Kinetic, potential and elastic energy of the dynamic bodies and that of contacts that yield, J."""
        sim = self._sim
        s = sim._settled()
        contact = self._contact() if self.yields else np.zeros(sim.worlds)
        if self._flat is not None:
            x, v, L, w, mass, on, weight = self._flat
            kinetic = 0.5 * float(np.dot(mass * v, v) + np.dot(on * L, w))
            potential = -float(np.dot(weight, x))
            if self.any_rotors:
                kinetic += float(self._rotors()[0])
            elastic = self._elastic() if self.k is not None or self.balls or len(self.spring_k) else 0.0
            if not sim._ropes:
                stored = float(elastic[0]) if isinstance(elastic, np.ndarray) else elastic
                return Energy(kinetic, potential, stored, float(contact[0]))
            parts = [np.array([kinetic]), np.array([potential]), np.broadcast_to(elastic, 1)]
        else:
            x, v, L, w = (getattr(s, name).astype(float) for name in ("position", "velocity", "momentum", "spin"))
            kinetic = 0.5 * ((self.mass * v * v).sum((0, 2)) + (self.on * L * w).sum((0, 2)))
            if self.any_rotors:
                kinetic = kinetic + self._rotors()
            parts = [kinetic, -(self.weight * x).sum((0, 2)), self._elastic()]
        for k in range(len(sim._ropes)):
            parts = [a + b for a, b in zip(parts, rope_energy(sim, k, sim._gravities), strict=True)]
        return Energy(*(sim._out(part) for part in (*parts, contact)))

    def _contact(self) -> np.ndarray:
        """(worlds,) energy ½ k δ² of points of contact that yield, J."""
        c = self._sim.solver.collider.data.contacts
        stiffness, gap = (getattr(c, name).numpy().astype(float) for name in ("stiffness", "gap"))
        there = np.arange(len(gap))[:, None] < c.count.numpy()[None]
        return np.asarray(0.5 * (stiffness * np.minimum(gap, 0.0) ** 2 * there).sum(0))

    def _rotors(self) -> np.ndarray:
        """(worlds,) kinetic energy of motors' rotors, J."""
        self._sim._coordinates()
        speeds = self._sim._moving.qd.astype(float)
        return np.asarray(0.5 * (self.rotors * speeds**2).sum(0))

    def _elastic(self) -> np.ndarray:
        """(worlds,) energy of springs at joints and between points, J."""
        sim = self._sim
        out = np.zeros(sim.worlds)
        if self.k is not None or self.balls:
            sim._coordinates(1)
            q, on = sim._moving.q, sim._commands.enabled
            if self.k is not None:
                off = q[self.at] - self.r
                out += 0.5 * (self.k * off * off * (on[self.joint] != 0)).sum(0)
            for at, axis, joint in self.balls:
                k, rest = (a[axis : axis + 3] for a in (self.stiffness, self.rest))
                rests = np.broadcast_to(rest, (3, sim.worlds)).T
                turn = turn_from(q[at : at + 4].T, rests).T
                out += 0.5 * (k * turn**2).sum(0) * (on[joint] != 0)
        if len(self.spring_k):
            parent, child, parent_point, child_point = self.springs
            x, r = (getattr(sim._moving, name).astype(float) for name in ("position", "rotation"))
            shape = (len(parent), sim.worlds, 3)
            ends = [
                x[b] + quat_rotate(r[b], np.broadcast_to(p.astype(float)[:, None], shape))
                for b, p in ((parent, parent_point), (child, child_point))
            ]
            longer = np.sqrt(((ends[1] - ends[0]) ** 2).sum(-1)) - self.spring_rest
            out += 0.5 * (self.spring_k * longer**2).sum(0)
        return out

    def momentum(self) -> Momentum:
        """Linear momentum and angular momentum about the origin of the dynamic bodies."""
        sim = self._sim
        s = sim._settled()
        x, v, L = (getattr(s, name).astype(float) for name in ("position", "velocity", "momentum"))
        p = self.mass * v
        linear, angular = p.sum(0), (cross(x, p) + self.on * L).sum(0)
        for k in range(len(sim._ropes)):
            more = rope_momentum(sim, k)
            linear, angular = linear + more[0], angular + more[1]
        return Momentum(sim._out(linear), sim._out(angular))


def poses(sim: Owner, world: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of one world: frame origins (bodies, 3), m, rotations (bodies, 4) as x, y, z, w, and centres of mass (bodies, 3), m."""
    turn, centre = (array.numpy()[:, world].astype(float) for array in (sim._state.rotation, sim._state.position))
    return centre - quat_rotate(turn, sim.model.com), turn, centre


class Looks:
    """Where the joints of a simulation stand (`kinematics.evaluate_joints`): arrays and the launch, made once."""

    def __init__(self, sim: Owner) -> None:
        self.arrays = assembly.row_arrays(sim.model)
        inputs = [sim.model.joints, sim._state, *self.arrays]
        shape = (len(sim.model.joint_kinds), sim.worlds)

        def launch() -> None:
            wp.launch(evaluate_joints, dim=shape, inputs=inputs, device=sim.model.device)

        self.launch = Recorded(launch, sim.model.device)
        self._host = [array.numpy() for array in self.arrays] if sim._on_cpu else None

    def errors(self) -> np.ndarray:
        """(worlds, joints, 2) m, rad."""
        self.launch()
        host = self._host if self._host is not None else [array.numpy() for array in self.arrays]
        both = np.stack([host[3], host[4]], -2).astype(float)
        return np.ascontiguousarray(np.sqrt((both * both).sum(-1)).swapaxes(0, 1))


def constraint_error(sim: Owner) -> np.ndarray:
    """(worlds, joints, 2) how far every joint stands open: m, rad."""
    if not sim.model.joint_kinds:
        return np.zeros((sim.worlds, 0, 2))
    if sim._looks is None:
        sim._looks = Looks(sim)
    return np.asarray(sim._looks.errors())


def constraint_velocity_error(sim: Owner) -> np.ndarray:
    """(worlds, joints, 2) speeds of every joint along what it holds: m/s, rad/s."""
    s = sim._settled()
    x, v, w = (getattr(s, name).astype(float) for name in ("position", "velocity", "spin"))
    out = np.zeros((sim.worlds, len(sim.model.joint_kinds), 2))
    for i, rows in enumerate(assembly.evaluate(sim.model, sim._state) if sim.model.joint_kinds else []):
        for k, kind in enumerate(sim.model.joint_kinds):
            p, c = sim.model.parents[k], sim.model.children[k]
            u = v[c, i] + np.cross(w[c, i], rows.point[k] - x[c, i]) - v[p, i] - np.cross(w[p, i], rows.point[k] - x[p, i])
            held = [[a for a in range(3) if not kind.mask >> (a + turn) & 1] for turn in (0, 3)]
            out[i, k] = (
                np.linalg.norm(rows.linear[k].T[held[0]] @ u),
                np.linalg.norm(rows.angular[k].T[held[1]] @ (w[c, i] - w[p, i])),
            )
    return out


def note_velocity_error(sim: Owner) -> None:
    """Say where velocities at the start contradict joints; the first step takes off what does not fit."""
    if not sim.model.joint_kinds or not (sim.model.start["velocity"].any() or sim.model.start["spin"].any()):
        return
    off = sim.constraint_velocity_error()[0].max(1)
    worst = int(off.argmax())
    if off[worst] > 1e-6:
        name = next(n for n, k in sim.model.joint_names.items() if k == worst)
        much = f"{off[worst]:.3g} m/s or rad/s"
        words = f"joint {name!r}: velocities at the start contradict it by {much}; the first step takes that off"
        warnings.warn(words, SceneWarning, stacklevel=4)
