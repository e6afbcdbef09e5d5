"""`sharnir sweep`: a sweep of a scene in a file."""

from __future__ import annotations

import inspect
import sys
from pathlib import Path
from typing import Any

import sharnir
from sharnir import catalogue
from sharnir.io.scene_file import SUFFIXES
from sharnir.scene import Scene
from sharnir.simulation import Simulation
from sharnir.sweeps.run import sweep as run_sweep

DT = 1e-3  # s, where nobody says


def sweep(words: dict[str, Any]) -> int:
    """Run it, and say where the table is."""
    source, module = _source(Path(words["name"]), words["dt"])
    vary = {}
    for given in words["vary"]:
        word, equals, values = given.rpartition("=")
        if not equals or not word:
            raise catalogue.UsageError(f"--vary takes WORD=VALUES, such as joint/hinge.friction=0.1:2:20, got {given!r}")
        vary[word] = values
    measure = [getattr(module, word) if word.isidentifier() and hasattr(module, word) else word for word in words["measure"]]
    same = ("duration", "out", "sampling", "executor", "address", "runs", "seed", "workers", "chunk", "repeats")
    options = {name: words[name] for name in same if name in words}
    if isinstance(source, Scene):
        options |= {"dt": DT} | source.options | ({} if words["dt"] is None else {"dt": words["dt"]})
    found = run_sweep(source, vary, measure, progress=sys.stderr.isatty(), **options)
    sys.stdout.write(f"{found.path}: {len(found)} runs, {len(found.failed)} failed; columns: {', '.join(found.names)}\n")
    if words["report"] is not None:
        sys.stdout.write(f"{found.report(words['report'], Path(words['name']).stem)}: the report\n")
    return 0


def _source(path: Path, dt: float | None) -> tuple[Any, Any]:
    """The scene of a file, or its function make(worlds), and its module."""
    if path.suffix in SUFFIXES:
        return sharnir.load_scene(path), None
    module = catalogue.load_file(path)
    make = getattr(module, "make", None)
    if callable(make) and "worlds" in inspect.signature(make).parameters:
        if dt is not None:
            raise catalogue.UsageError(f"{path}: make(worlds) has a step of its own; --dt is for scenes")
        return make, module
    try:
        made = module.build() if callable(getattr(module, "build", None)) else getattr(module, "scene", None)
    except Exception as error:
        raise catalogue.UsageError(catalogue.told(error, path)) from None
    if not isinstance(made, Scene):
        got = " (it has one of a single world)" if callable(make) or isinstance(getattr(module, "sim", None), Simulation) else ""
        raise catalogue.UsageError(
            f"{path}: a sweep needs a function build() that returns a Scene, make(worlds) that returns a Simulation of so many "
            f"worlds, or a variable scene{got}"
        )
    return made, module
