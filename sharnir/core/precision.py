"""The precision of a process: that of all kernels, states and arrays, chosen before the library is first used."""

from __future__ import annotations

import os
import sys
from typing import Literal

from sharnir.errors import SimulationError

PRECISIONS = ("single", "double")
VARIABLE = "SHARNIR_PRECISION"
"""The environment variable that holds the precision, also for child processes."""


def set_precision(precision: Literal["single", "double"]) -> None:
    """Compute in "single" or in "double" precision (the default). Call it before anything else of sharnir is used.

    Single precision is for many worlds on a GPU: half the memory, several times the pace, 6 to 7 digits. It holds for
    this process and its child processes. Raises SimulationError if the library is already in use in the other precision.
    """
    check_precision("set_precision", precision)
    os.environ[VARIABLE] = precision


def check_precision(who: str, precision: str) -> None:
    """Raise a SimulationError if this process already computes in another precision, or if there is no such precision."""
    if precision not in PRECISIONS:
        raise SimulationError(f"{who}: precision is 'single' or 'double', got {precision!r}")
    types = sys.modules.get("sharnir.core.types")
    if types is not None and precision != types.PRECISION:
        first = f"call sh.set_precision({precision!r}) right after import sharnir as sh, before anything else of it is used"
        raise SimulationError(
            f"{who}: precision is {precision!r}, but this process computes in {types.PRECISION} precision; {first}"
        )
