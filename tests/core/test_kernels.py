"""What kernels are made of: names, and hashes that do not depend on what was compiled before."""

import ast
import pathlib

import warp as wp

import sharnir
from sharnir.core.types import WARP_MODULES
from sharnir.engine.guard import GUARD_OF_ALL, JOINTED, guard_of
from sharnir.engine.tree.code import SIMULATION, Loop
from sharnir.engine.tree.forest import BALL, FREE, HINGE
from sharnir.engine.tree.generic import MODULES as MODULES_OF_TREES
from sharnir.engine.tree.generic import module_kernel
from sharnir.model.kinematics import read_joints

EMITTED = tuple(f"sharnir.{word}" for word in ("adjoint", "model_", "motions", "rows_", "tree_", "trees_"))
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
    emitted = {m.name for m in mine if m.name.startswith(EMITTED)}
    assert {m.name for m in mine} <= set(WARP_MODULES) | emitted
    assert not any(m.options["enable_backward"] for m in mine)
    assert wp.config.enable_backward


def jointed(joint):
    scene = sharnir.Scene()
    scene.add_body("arm", sharnir.Box(0.2, 0.1, 0.1))
    scene.add_joint("joint", joint, scene.world, "arm", position=(0, 0, 0))
    return scene


def test_a_scene_compiles_the_laws_of_its_joints_alone():
    hinge, ball = (MODULES_OF_TREES[k] for k in (0, 1))
    assert BALL not in hinge[1] and BALL in ball[1]
    for kinds, rows, name in (
        ([HINGE, FREE], False, "trees"),
        ([HINGE, BALL], False, "trees_balls"),
        ([HINGE], True, "trees_rows"),
    ):
        first = next(m[0] for m in MODULES_OF_TREES if set(kinds) <= set(m[1]) and m[3] == rows)
        assert first == f"sharnir.{name}"
    texts = [Loop("double", SIMULATION, pushed=True, kinds=m[1], second_gear=None, rows=m[3]).simulation() for m in (hinge, ball)]
    assert 2 * len(texts[0]) < len(texts[1])


def test_the_guard_of_jointed_bodies_has_no_code_for_contact_and_ropes():
    assert guard_of(jointed(sharnir.Revolute("y")).build()) is JOINTED
    touching = jointed(sharnir.Revolute("y"))
    touching.add_rope("rope", (0, 0, 0), (1, 0, 0), segments=2)
    assert guard_of(touching.build()) is GUARD_OF_ALL
    assert JOINTED.module.name != GUARD_OF_ALL.module.name


def test_modules_that_every_scene_needs_are_compiled_with_the_same_flags():
    """Warp reads its own headers, which takes seconds, once for each set of flags."""
    modules = [read_joints.module, JOINTED.module, module_kernel(0).module]
    options = [(m.options["cpu_compiler_flags"], m.options["optimization_level"] or 2) for m in modules]
    assert options[0] == options[1] == options[2]
