"""What kernels are made of: names, and hashes that do not depend on what was compiled before."""

import ast
import pathlib

import warp as wp

import sharnir
from sharnir.types import MODULES

SOURCES = sorted(pathlib.Path(sharnir.__file__).parent.rglob("*.py"))


def device_functions(tree):
    """All functions of a file that run on the device."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and any(ast.unparse(d).startswith("wp.") for d in node.decorator_list):
            yield node


def test_no_local_variable_hides_a_function_or_constant():
    """Warp takes a variable for the function of the same name when it hashes a module, until it has built it: what one process
    compiles, the next does not find."""
    hidden = []
    for path in SOURCES:
        tree = ast.parse(path.read_text())
        known = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
        for node in tree.body:
            if isinstance(node, ast.ImportFrom):
                known |= {name.asname or name.name for name in node.names}
            if isinstance(node, ast.Assign):
                known |= {ast.unparse(target) for target in node.targets}
        for function in device_functions(tree):
            stored = {n.id for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
            hidden += [f"{path.name}: {name} in {function.name}" for name in sorted(stored & known)]
    assert not hidden, hidden


def test_kernels_of_the_library_have_no_adjoints_and_a_callers_own_have():
    mine = [m for name, m in wp._src.context.user_modules.items() if name.startswith("sharnir.") and m.kernels]
    emitted = {m.name for m in mine if m.name.startswith(("sharnir.tree_", "sharnir.trees_", "sharnir.rows_"))}
    assert {m.name for m in mine} <= set(MODULES) | emitted
    assert not any(m.options["enable_backward"] for m in mine)
    assert wp.config.enable_backward
