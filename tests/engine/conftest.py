"""Shared by the tests of emitted steps."""

import pytest

from sharnir.engine.tree import around, kernel, special_call
from sharnir.types import CPU_FLAGS


@pytest.fixture
def optimized():
    """Code for one model is compiled as users get it."""


@pytest.fixture(autouse=True)
def unoptimized(request, monkeypatch):
    """Code that is written for one test alone is compiled without optimization: in a quarter of the time, and it means the same.

    What it computes differs by rounding at most. Modules that all simulations share are compiled as ever.
    """
    if "optimized" not in request.fixturenames:
        for module in (around, kernel, special_call):
            monkeypatch.setattr(module, "CPU_FLAGS", f"{CPU_FLAGS} -O0")
