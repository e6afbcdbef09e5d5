"""Arrays that a property gives: copies, of which no element is written, since that would change nothing it was read from."""

from __future__ import annotations

from typing import Any

import numpy as np


class Reading(np.ndarray):
    """A copy of what was read, as a view of a plain array. What is computed from it is plain; its `copy()` may be written."""

    __slots__ = ()

    def __setitem__(self, key: Any, value: Any) -> None:
        if self.base is not None:
            whole = "assign all of it (body.position = (x, y, z)), or change a copy (p = body.position.copy()) and assign that"
            raise ValueError(f"what was read is a copy, an element written into it changes nothing in the simulation: {whole}")
        super().__setitem__(key, value)

    def __array_wrap__(self, array: np.ndarray, context: Any = None, return_scalar: bool = False) -> Any:
        return array[()] if return_scalar else array
