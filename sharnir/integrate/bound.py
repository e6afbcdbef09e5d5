"""The functions of `sharnir.dynamics` bound to one mechanism: one state costs microseconds, launches being recorded once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import warp as wp

from sharnir.core.graphs import LOCK, Recorded
from sharnir.core.spatial import quat_rotate
from sharnir.core.types import load_modules, real
from sharnir.engine.articulated import functions
from sharnir.engine.articulated.inverse_kinematics import Reach
from sharnir.engine.articulated.spanning_tree import Links, Scratch
from sharnir.integrate import mechanics

Chain = tuple[int, Any, np.ndarray, tuple[float, ...]]


class Dynamics:
    """`sh.dynamics.of(scene)`: the functions of `sharnir.dynamics` for one mechanism, without its first argument.

    One state (nq,), (nv,) takes the quick way, on the CPU; several at once, (n, nq), are given to the functions themselves.
    Gravity is the scene's; where a simulation's masses change, ask for it anew. An object serves one thread at a time.
    """

    __slots__ = (
        "_M", "_S_a", "_S_l", "_a", "_bias", "_chains", "_fixed", "_forward", "_inverse", "_kept", "_kinematics", "_mass",
        "_on_cpu", "_place", "_q", "_reach", "_rotation", "_t", "_tau", "_v", "_zero_q", "_zero_v", "nq", "nv",
    )  # fmt: skip

    def __init__(self, t: Links) -> None:
        self._t, self.nq, self.nv = t, t.nq, t.nv
        self._on_cpu: bool = wp.get_device(t.device).is_cpu
        self._chains: dict[str, Chain] = {}
        self._reach: Reach | None = None  # made when it is first asked for
        self._zero_q, self._zero_v = np.zeros(self.nq), np.zeros(self.nv)
        if not self._on_cpu:
            return
        with LOCK:
            load_modules([functions.kinematics.module], t.device)
            x = Scratch(t, 1)
            M = wp.zeros((t.nv, t.nv, 1), dtype=real, device=t.device)
        self._kept = x, M
        gravity = mechanics._gravity(t, None)
        bodies, joints, tree, k = t.bodies, t.joints, t.tree, x.tree

        def recorded(kernel: Any, *inputs: Any) -> Recorded:
            return Recorded(lambda: wp.launch(kernel, dim=1, inputs=list(inputs), device=t.device), t.device)

        self._inverse = recorded(functions.inverse_dynamics, bodies, joints, tree, gravity, x.q, x.v, x.a, k, x.tau)
        self._mass = recorded(functions.mass_matrix, bodies, joints, tree, x.q, x.v, k, M)
        self._kinematics = recorded(functions.kinematics, joints, tree, x.q, x.v, k)
        self._forward = recorded(
            functions.forward_dynamics, joints, tree, t.closures, gravity, x.q, x.v, x.tau, x.laws, k, x.rows, x.a
        )
        self._q, self._v, self._a, self._tau = (array.numpy()[:, 0] for array in (x.q, x.v, x.a, x.tau))
        self._M, self._S_l, self._S_a = M.numpy()[:, :, 0], k.S_l.numpy()[:, 0], k.S_a.numpy()[:, 0]
        self._place, self._rotation = k.position.numpy()[:, 0], k.rotation.numpy()[:, 0]

    @property
    def tree(self) -> Links:
        """The tree in whose coordinates these functions work."""
        return self._t

    def __repr__(self) -> str:
        return f"<dynamics of {self.nq} coordinates, {self.nv} speeds>"

    def _put(self, into: np.ndarray, value: Any, zero: np.ndarray) -> bool:
        """Write one finite state; False where there are several, or it is something else."""
        if value.__class__ is not np.ndarray:
            try:
                value = np.asarray(value, float)
            except (TypeError, ValueError):
                return False
        if value.shape != zero.shape:
            return False
        into[:] = value
        return bool(zero.dot(into) == 0.0)  # 0 times what is not finite is not 0

    def inverse_dynamics(self, q: Any, v: Any, a: Any) -> np.ndarray:
        """(nv,) forces on the free axes that give the accelerations a: recursive Newton–Euler."""
        if self._on_cpu and self._put(self._q, q, self._zero_q) and self._put(self._v, v, self._zero_v):
            if self._put(self._a, a, self._zero_v):
                self._inverse()
                return np.array(self._tau, float)
        return mechanics.inverse_dynamics(self._t, q, v, a)

    def bias_forces(self, q: Any, v: Any) -> np.ndarray:
        """(nv,) gravity, Coriolis and centrifugal forces: the tau that gives no acceleration."""
        return self.inverse_dynamics(q, v, self._zero_v)

    def gravity_torques(self, q: Any) -> np.ndarray:
        """(nv,) the tau that holds the mechanism at rest."""
        return self.inverse_dynamics(q, self._zero_v, self._zero_v)

    def forward_dynamics(self, q: Any, v: Any, tau: Any = None) -> np.ndarray:
        """(nv,) accelerations of the joints from coordinates, speeds and forces on the free axes; O(n)."""
        if self._on_cpu and self._put(self._q, q, self._zero_q) and self._put(self._v, v, self._zero_v):
            if self._put(self._tau, self._zero_v if tau is None else tau, self._zero_v):
                self._forward()
                return np.array(self._a, float)
        return mechanics.forward_dynamics(self._t, q, v, tau)

    def mass_matrix(self, q: Any) -> np.ndarray:
        """(nv, nv) by composite inertias."""
        if self._on_cpu and self._put(self._q, q, self._zero_q):
            self._v[:] = 0.0
            self._mass()
            return np.array(self._M, float)
        return mechanics.mass_matrix(self._t, q)

    def _chain(self, body: str) -> Chain:
        """A body, the speeds that move it, the bodies that these move first, and its centre of mass in its frame."""
        if body not in self._chains:
            t = self._t
            b = mechanics._body(t, body)
            columns: list[int] = []
            owners: list[int] = []
            link = t.link_of.get(b)
            while link is not None:
                joint = t.links[link].joint
                columns += range(t.v_start[joint], t.v_start[joint] + t.v_size[joint])
                owners += [t.links[link].body] * int(t.v_size[joint])
                link = t.link_of.get(t.links[link].base)
            order = np.argsort(columns)
            which: Any = np.array(columns, int)[order]
            if len(which) == t.nv:
                which = slice(None)  # of all a view is enough
            com = tuple(float(c) for c in t.model.com[b])
            self._chains[body] = b, which, np.array(owners, int)[order], com
        return self._chains[body]

    def _look(self, q: Any) -> bool:
        """Bring all bodies to coordinates; False where this is not the quick way."""
        if not (self._on_cpu and self._put(self._q, q, self._zero_q)):
            return False
        self._v[:] = 0.0
        self._kinematics()
        return True

    def moving(self, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, ...]:
        """Centres of mass, rotations, velocities and spins of all bodies (bodies, …) at a state, on the CPU; views."""
        self._q[:], self._v[:] = q, v
        self._kinematics()
        k = self._kept[0].tree
        return tuple(getattr(k, name).numpy()[:, 0] for name in ("position", "rotation", "velocity", "spin"))

    def pose(self, q: Any, body: str, point: Sequence[float] = (0.0, 0.0, 0.0)) -> tuple[np.ndarray, np.ndarray]:
        """(3,) place of a point of a body (in its frame, m), and (4,) the body's rotation; one state."""
        if not self._look(q):
            return self._slow_pose(q, body, point)
        b, _columns, _owners, com = self._chain(body)
        return np.array(self._point(b, com, point)), np.array(self._rotation[b], float)

    def _slow_pose(self, q: Any, body: str, point: Sequence[float]) -> tuple[np.ndarray, np.ndarray]:
        mechanics._body(self._t, body)
        where = mechanics.forward_kinematics(self._t, q)[body]
        return where["position"] + quat_rotate(where["rotation"], np.asarray(point, float)), where["rotation"]

    def _point(self, b: int, com: tuple[float, ...], point: Sequence[float]) -> tuple[float, float, float]:
        """Where a point of a body is, with the poses of now."""
        i, j, k = point
        i, j, k = i - com[0], j - com[1], k - com[2]
        a, b_, c, w = self._rotation[b].tolist()
        x, y, z = self._place[b].tolist()
        u, v, s = 2.0 * (b_ * k - c * j), 2.0 * (c * i - a * k), 2.0 * (a * j - b_ * i)
        return x + i + w * u + b_ * s - c * v, y + j + w * v + c * u - a * s, z + k + w * s + a * v - b_ * u

    def jacobian(self, q: Any, body: str, point: Sequence[float] = (0.0, 0.0, 0.0)) -> np.ndarray:
        """(6, nv): velocity of a point of a body (in its frame, m) and its spin, world axes, per unit of speed."""
        if not self._look(q):
            return mechanics.jacobian(self._t, q, body, point)
        b, columns, owners, com = self._chain(body)
        J = np.zeros((6, self.nv))
        J[:, columns] = self._rows(columns, owners, self._point(b, com, point))
        return J

    def _rows(self, columns: Any, owners: np.ndarray, place: tuple[float, float, float]) -> np.ndarray:
        """(6, columns) of the Jacobian of a place, with the poses of now."""
        turn = self._S_a[columns].T
        x, y, z = turn
        u, v, w = self._place.take(owners, 0).T
        u, v, w = place[0] - u, place[1] - v, place[2] - w
        out = np.empty((6, len(owners)))
        out[0], out[1], out[2] = y * w - z * v, z * u - x * w, x * v - y * u
        out[:3] += self._S_l[columns].T
        out[3:] = turn
        return out

    def inverse_kinematics(
        self, body: str, position: Sequence[float], *, rotation: Sequence[float] | None = None,
        point: Sequence[float] = (0.0, 0.0, 0.0), start: Any = None, damping: float = 1e-2, tolerance: float = 1e-10,
        iterations: int = 200,
    ) -> np.ndarray:  # fmt: skip
        """(nq,) coordinates that bring a point of a body to a place, and its frame to a rotation if given.

        See `sharnir.dynamics.inverse_kinematics`.
        """
        if self._reach is None:
            self._reach = Reach(self._t)
        how = damping, tolerance, iterations
        return mechanics.reached(self._t, self._reach, body, position, rotation, point, start, how)

    def neutral(self) -> np.ndarray:
        """(nq,) the coordinates of the scene's start."""
        return mechanics.neutral(self._t)

    def forward_kinematics(self, q: Any, v: Any = None) -> dict[str, dict[str, np.ndarray]]:
        """Of every body by name: position and rotation of its frame, com, velocity of the com, spin."""
        return mechanics.forward_kinematics(self._t, q, v)

    def passive_forces(self, q: Any, v: Any) -> np.ndarray:
        """(nv,) forces of the springs, dampers and viscous friction at the joints, on the free axes."""
        return mechanics.passive_forces(self._t, q, v)

    def moved(self, q: Any, step: Any) -> np.ndarray:
        """(nq,) coordinates after a small motion `step` (nv,)."""
        return mechanics.moved(self._t, q, step)

    def between(self, q0: Any, q: Any) -> np.ndarray:
        """(nv,) the motion from coordinates q0 to q."""
        return mechanics.between(self._t, q0, q)

    def linearize(self, q: Any, v: Any = None, *, step: float = 1e-6) -> tuple[np.ndarray, np.ndarray]:
        """A (2nv, 2nv), B (2nv, nv) of small motions about a state."""
        return mechanics.linearize(self._t, q, v, step=step)

    linearise = linearize

    def natural_frequencies(self, q: Any) -> np.ndarray:
        """(nv,) undamped frequencies of small motions about an equilibrium, rad/s."""
        return mechanics.natural_frequencies(self._t, q)

    def static_equilibrium(self, start: Any = None, *, tau: Any = None) -> np.ndarray:
        """(nq,) coordinates at which gravity, springs and tau balance."""
        return mechanics.static_equilibrium(self._t, start, tau=tau)

    def integrate(self, q: Any, v: Any, times: Any, **options: Any) -> mechanics.Trajectory:
        """The motion through the given times; options are those of `sharnir.dynamics.integrate`."""
        return mechanics.integrate(self._t, q, v, times, **options)
