"""Functions of kernels are parsed when a kernel needs them."""

import subprocess
import sys

import pytest

from sharnir.core.spatial import exp_quat, unit

COUNT = """
import gc
import warp as wp
import sharnir.runtime.simulation, sharnir.engine.direct.solver, sharnir.engine.sequential.solver
functions = [f for f in gc.get_objects() if type(f) is wp._src.context.Function and f.func is not None]
ours = [f for f in functions if f.func.__module__.startswith("sharnir.")]
print(len(ours), sum("tree" in vars(f.adj) for f in ours))
"""


def test_an_import_parses_few_functions():
    out = subprocess.run([sys.executable, "-c", COUNT], capture_output=True, text=True, check=True).stdout
    there, parsed = map(int, out.split())
    assert there > 500 and parsed < 0.1 * there


def test_a_function_is_parsed_when_it_is_looked_into():
    adj = exp_quat.adj
    assert adj.tree.body[0].name == "exp_quat" and [a.label for a in adj.args] == list(exp_quat.input_types)
    with pytest.raises(AttributeError, match="nothing_like_it"):
        _ = unit.adj.nothing_like_it
