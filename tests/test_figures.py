"""docs/figures.md: every row names the tests that assert it, or says where it was measured."""

import ast
import re
from functools import cache
from pathlib import Path

TESTS = Path(__file__).parent
PAGE = TESTS.parent / "docs" / "figures.md"


def rows():
    """Cells of all table rows, without heads and rules."""
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]
    return [row for row in cells if row[0] not in ("scene", "") and not set(row[0]) <= set("-")]


@cache
def functions(file):
    tree = ast.parse((TESTS / file).read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def test_every_figure_names_its_tests_or_where_it_was_measured():
    found = rows()
    wrong = []
    for row in found:
        named = re.findall(r"`([\w/]+\.py)::(\w+)`", row[2]) if len(row) == 3 else []
        if not named and not (len(row) == 3 and re.match(r"measured on .+, no test", row[2])):
            wrong.append(row[0])
        wrong += [f"{file}::{name}" for file, name in named if not (TESTS / file).exists() or name not in functions(file)]
    print(f"{len(found)} rows, {sum('no test' in row[-1] for row in found)} measured only")
    assert len(found) > 60 and not wrong, wrong
