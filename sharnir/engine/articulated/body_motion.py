"""Where all bodies of a tree are, and how they move, in many states at once; on the CPU."""

from __future__ import annotations

import numpy as np
import warp as wp

from sharnir.core.graphs import Recorded
from sharnir.core.types import load_modules
from sharnir.engine.articulated import functions
from sharnir.engine.articulated.spanning_tree import Links


class Moving:
    """Kinematics of up to so many states, whose launch is recorded."""

    def __init__(self, t: Links, size: int) -> None:
        load_modules([functions.kinematics.module], t.device)
        x = t.work(size)
        self.q, self.v = x.q.numpy(), x.v.numpy()
        inputs = [t.joints, t.tree, x.q, x.v, x.tree]
        self.run = Recorded(lambda: wp.launch(functions.kinematics, dim=size, inputs=inputs, device=t.device), t.device)
        self.fields = [getattr(x.tree, name).numpy() for name in ("position", "rotation", "velocity", "spin")]


def moving(t: Links, q: np.ndarray, v: np.ndarray, bodies: np.ndarray) -> tuple[np.ndarray, ...]:
    """Centres of mass, rotations, velocities and spins of some bodies (bodies, n, …) in states (n, nq), (n, nv)."""
    n = len(q)
    scratch = t.work(1 << (n - 1).bit_length())  # few sizes, of which scratch is kept
    if scratch.moving is None:
        scratch.moving = Moving(t, scratch.n)
    k = scratch.moving
    k.q[:, :n], k.v[:, :n] = q.T, v.T
    k.run()
    return tuple(field[bodies, :n].astype(float) for field in k.fields)
