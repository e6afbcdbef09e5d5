"""The precision of a process: kernels, states and arrays have the one that was chosen before the library's first use."""

from __future__ import annotations

import os
import sys
from typing import Literal

from sharnir.errors import SimulationError

NAMES = ("single", "double")
VARIABLE = "SHARNIR_PRECISION"
"""The environment variable in which a process finds its precision, and those that it starts."""


def set_precision(precision: Literal["single", "double"]) -> None:
    """Compute in "single" or in "double" precision (the default): the first call of a program to sharnir.

    Single precision is for many worlds on a GPU: half the memory, several times the pace, 6 to 7 digits. It holds for the
    process and for those that it starts. A SimulationError says that something of the library was used before in the other one.
    """
    if precision not in NAMES:
        raise SimulationError(f"set_precision: precision is 'single' or 'double', got {precision!r}")
    check_precision("set_precision", precision)
    os.environ[VARIABLE] = precision


def check_precision(who: str, precision: str) -> None:
    """A SimulationError where types of this process are of another precision already."""
    types = sys.modules.get("sharnir.core.types")
    if types is not None and precision != types.PRECISION:
        first = f"call sh.set_precision({precision!r}) right after import sharnir as sh, before anything else of it is used"
        raise SimulationError(
            f"{who}: precision is {precision!r}, but this process computes in {types.PRECISION} precision; {first}"
        )
