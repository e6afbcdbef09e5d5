"""Shared by all tests."""

import importlib.util
import json
import os
import pathlib
import sys

import numpy as np
import pytest

import sharnir as sh
from sharnir.core.types import CPU_FLAGS, mat33, mat66, quat, real, vec3, vec6
from sharnir.engine.tree import around, kernel, model_code, special_call

TIMES = os.environ.get("SHARNIR_TIMES") == "1"  # whether times are asserted: `make test-all` does
EXAMPLES = pathlib.Path(__file__).parent.parent / "examples"


def in_time(took, most, what="this"):
    """Assert that a time keeps its bound, where times are asserted: on a busy machine they say more about what runs beside."""
    assert not TIMES or took < most, f"{what} took {took:.3g}, at most {most:.3g} allowed"


def load_example(name):
    """The module examples/NAME.py."""
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def example_by(name, dt, solver):
    """An example as it starts, by a solver of one's own."""
    made = load_example(name).make(dt)
    if solver == made.solver_name:
        return made
    sim = sh.Simulation(made.model, dt, solver=solver)
    for body in sim.model.body_names:
        if body != "world":
            sim.body(body).velocity, sim.body(body).angular_velocity = made.body(body).velocity, made.body(body).angular_velocity
    return sim


class Stored:
    """Numbers of a test's run, one after the other, that another formulation gave: in coordinates of the bodies, whose joints are
    closed by passes along the trees. They are not written anew by what they are held against.
    """

    def __init__(self, test):
        self._left = iter(json.loads((pathlib.Path(__file__).parent / "data" / "bodies.json").read_text())[test])

    def next(self, like):
        """The numbers that come next, in the shape of those to be held against them."""
        return np.reshape(next(self._left), np.shape(like))

    def meets(self, found, within, what=""):
        """These are the numbers that come next."""
        np.testing.assert_allclose(found, self.next(found), atol=within, err_msg=what)


@pytest.fixture
def stored(request):
    return Stored(f"{request.node.path.name}: {request.node.name}")


@pytest.fixture
def example():
    return load_example


@pytest.fixture
def optimized():
    """Code for one model is compiled as users get it."""


@pytest.fixture
def unoptimized(request, monkeypatch):
    """Code that is written for one test alone is compiled without optimization: in a quarter of the time, and it means the same.

    What it computes differs by rounding at most. Modules that all simulations share are compiled as ever.
    """
    if "optimized" not in request.fixturenames:
        for module in (around, kernel, model_code, special_call):
            monkeypatch.setattr(module, "CPU_FLAGS", f"{CPU_FLAGS} -O0")


def device(func, *args):
    """Call a pure device function with numbers and arrays, and get numbers and arrays back."""
    made = {(3,): vec3, (4,): quat, (6,): vec6, (3, 3): mat33, (6, 6): mat66}

    def given(x):
        if isinstance(x, int):
            return x
        return made[np.shape(x)](*np.ravel(x)) if np.ndim(x) else real(x)

    def plain(x):
        if hasattr(x, "_shape_"):
            return np.array([[float(y) for y in row] for row in x] if len(x._shape_) == 2 else [float(y) for y in x])
        return x if isinstance(x, int) else float(x)

    out = func(*(given(x) for x in args))
    return tuple(plain(x) for x in out) if isinstance(out, tuple) else plain(out)
