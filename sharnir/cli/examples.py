"""The examples: where they are, and how one is taken."""

from __future__ import annotations

import ast
import importlib.util
import sys
import traceback
from pathlib import Path
from types import ModuleType

from sharnir.core.misspellings import meant


class UsageError(Exception):
    """A wrong word on the command line, reported in one line."""


def example_folder() -> Path | None:
    """Where the examples are: beside the package in a checkout, inside it when installed."""
    package = Path(__file__).resolve().parents[1]
    return next((f for f in (package.parent / "examples", package / "examples") if (f / "pendulum.py").is_file()), None)


def examples() -> dict[str, Path]:
    """The examples by name."""
    folder = example_folder()
    return {p.stem: p for p in sorted(folder.glob("[!_]*.py"))} if folder else {}


def load(name: str) -> ModuleType:
    """The module of an example: `make(dt)` builds its simulation, `check(sim)` runs and judges it."""
    known = examples()
    if name not in known:
        own = f"no example is named {name!r}{meant(name, known)} (a file of your own ends in .py)"
        raise UsageError(f"{own}; there are: {', '.join(known) or 'none'}")
    spec = importlib.util.spec_from_file_location(f"sharnir_example_{name}", known[name])
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def load_file(path: Path) -> ModuleType:
    """The module of a file of one's own; an error in it is reported with its line."""
    if not path.is_file():
        raise UsageError(f"{path} is not a file")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.resolve().parent))
    sys.modules[path.stem] = module  # dataclasses and pickles look there
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise UsageError(error_text(error, path)) from None
    finally:
        sys.path.pop(0)
    return module


def error_text(error: BaseException, path: Path) -> str:
    """An error of a user's file in one line: where in that file, what kind, what it says."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    if isinstance(error, SyntaxError) and error.filename == str(path):
        lines = [error.lineno]
    where = f"{path}, line {lines[-1]}" if lines else str(path)
    return f"{where}: {type(error).__name__}: {error}"


def summary(path: Path) -> str:
    """The first line of an example's docstring, read without running it."""
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return text.partition("\n")[0]
