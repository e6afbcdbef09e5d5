"""The house: imports point downwards, as CONTRIBUTING lists the floors; files and functions are short enough to read."""

import ast
import pathlib
import re
from functools import cache

import pytest

ROOT = pathlib.Path(__file__).parent.parent
SOURCES = sorted((ROOT / "sharnir").rglob("*.py"))
LONGEST_FILE, LONGEST_FUNCTION = 900, 80
LONG_FUNCTIONS = {
    "engine/direct/energy/links.py: inward": 150,  # one loop over the links: what one hands to the next stays in registers
    "engine/direct/energy/means.py: place": 120,
    "engine/direct/energy/projection.py: stand": 90,
    "engine/direct/energy/rope.py: attempt": 100,
}
"""Functions that are longer, and how long they may be."""


def name_of(path):
    """sharnir/rope/data.py as "sharnir.rope.data", and a package by its own name."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {name_of(path): path for path in SOURCES}


@cache
def imports(path):
    """Modules of the library that a file needs to be imported; what a function imports when it is called is another matter."""
    out = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "sharnir":
            full = [f"{node.module}.{alias.name}" for alias in node.names]
            out |= {name if name in MODULES else node.module for name in full}
        elif isinstance(node, ast.Import):
            out |= {alias.name for alias in node.names if alias.name in MODULES}
    return out - {name_of(path)}


def floors():
    """Rooms (modules and packages right under sharnir/) and the floor of each, 0 the lowest, as CONTRIBUTING lists them."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    block = re.search(r"```floors\n(.*?)```", text, re.DOTALL).group(1)
    return {room: i for i, line in enumerate(reversed(block.strip().splitlines())) for room in line.split()}


def room_of(module, rooms=()):
    """The module or package right under sharnir/, or the one further down that has a floor of its own."""
    parts = module.split(".")[1:]
    inside = [".".join(parts[:n]) for n in range(len(parts), 0, -1)]
    return next((room for room in inside if room in rooms), inside[-1] if inside else "sharnir")


def test_no_circle_of_imports():
    done = set()

    def visit(module, above):
        assert module not in above, " → ".join([*above[above.index(module) :], module])
        if module not in done:
            for lower in sorted(imports(MODULES[module])):
                visit(lower, [*above, module])
            done.add(module)

    for module in MODULES:
        visit(module, [])


def test_imports_point_downwards():
    floor = floors()
    rooms = {module: room_of(module, floor) for module in MODULES}
    assert set(rooms.values()) == set(floor), f"not in CONTRIBUTING, or not there: {set(rooms.values()) ^ set(floor)}"
    wrong = [
        f"{module} (floor {floor[rooms[module]]}) imports {lower} (floor {floor[rooms[lower]]})"
        for module, path in MODULES.items()
        for lower in sorted(imports(path))
        if rooms[lower] != rooms[module] and floor[rooms[lower]] >= floor[rooms[module]]
    ]
    assert not wrong, "\n".join(wrong)


def test_scenes_without_ropes_need_no_code_of_ropes():
    """It takes half a second to emit, and more to compile."""
    needed, left = set(), ["sharnir.runtime.simulation", "sharnir.scene.scene", "sharnir.engine.direct.solver"]
    while left:
        module = left.pop()
        if module not in needed:
            needed.add(module)
            left += imports(MODULES[module])
    assert len(needed) > 100 and not needed & {f"sharnir.engine.rope.{name}" for name in ("code", "chain", "solver")}


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(ROOT / "sharnir")))
def test_files_and_functions_are_short(path):
    short, text = str(path.relative_to(ROOT / "sharnir")), path.read_text()
    assert len(text.splitlines()) <= LONGEST_FILE
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            length, who = node.end_lineno - node.lineno + 1, f"{short}: {node.name}"
            assert length <= LONG_FUNCTIONS.get(who, LONGEST_FUNCTION), f"{who} has {length} lines"
