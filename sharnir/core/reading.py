"""Arrays that properties return: copies whose elements cannot be assigned, since that would not change the simulation."""

from __future__ import annotations

from typing import Any

import numpy as np


class Reading(np.ndarray):
    """A copy of a value, as a view of a plain array. Results computed from it are plain arrays; its `copy()` can be changed."""

    __slots__ = ()
    _refusal = (
        "this array is a copy, and changing one element would not change the simulation: "
        "assign all of it (body.position = (x, y, z)), or change a copy (p = body.position.copy()) and assign that"
    )

    def __setitem__(self, key: Any, value: Any) -> None:
        if self.base is not None:
            raise ValueError(self._refusal)
        super().__setitem__(key, value)

    def __array_wrap__(self, array: np.ndarray, context: Any = None, return_scalar: bool = False) -> Any:
        return array[()] if return_scalar else array


class Shown(Reading):
    """A view of the coordinates or speeds of a simulation, which is not to be written."""

    __slots__ = ()
    _refusal = (
        "this array is read-only, element by element: change a copy (q = sim.q.copy()) and assign that (sim.q = q), "
        "say sim.set_state(q=…, qd=…), or sim.joint(name).position = …"
    )
