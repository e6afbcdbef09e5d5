"""`sharnir study`: many runs of a scene in a file."""

from __future__ import annotations

import inspect
import sys
from pathlib import Path
from typing import Any

import sharnir
from sharnir.cli import examples
from sharnir.io.folders import everywhere
from sharnir.io.scene_file import SCENE_SUFFIXES, read_text
from sharnir.io.write import scene_text
from sharnir.runtime.simulation import Simulation
from sharnir.runtime.tolerances import gathered
from sharnir.scene.scene import Scene
from sharnir.study.run import run_study

DT = 1e-3  # s, where nobody says


def study(words: dict[str, Any]) -> int:
    """Run it, and say where the table is."""
    source, module, options = _source(words["name"], words["dt"])
    vary = {}
    for given in words["vary"]:
        word, equals, values = given.rpartition("=")
        if not equals or not word:
            raise examples.UsageError(f"--vary takes WORD=VALUES, such as joint/hinge.friction=0.1:2:20, got {given!r}")
        vary[word] = values
    measure = [getattr(module, word) if word.isidentifier() and hasattr(module, word) else word for word in words["measure"]]
    same = ("duration", "out", "sampling", "executor", "address", "runs", "seed", "workers", "chunk", "repeats")
    options |= {name: words[name] for name in same if name in words}
    if isinstance(source, Scene):
        options |= {"dt": DT} | source.options | ({} if words["dt"] is None else {"dt": words["dt"]})
    found = run_study(source, vary, measure, progress=sys.stderr.isatty(), **options)
    sys.stdout.write(f"{found.path}: {len(found)} runs, {len(found.failed)} failed; columns: {', '.join(found.names)}\n")
    if words["report"] is not None:
        sys.stdout.write(f"{found.report(words['report'], Path(words['name']).stem)}: the report\n")
    return 0


def _source(name: str, dt: float | None) -> tuple[Any, Any, dict[str, Any]]:
    """The scene of an example or a file, or its function make(worlds); its module; options of its simulation."""
    path = Path(name)
    if path.suffix in SCENE_SUFFIXES:
        return sharnir.load_scene(path), None, {}
    module = examples.load_file(path) if path.suffix or "/" in name else examples.load(name)
    make = getattr(module, "make", None)
    if callable(make) and "worlds" in inspect.signature(make).parameters:
        if dt is not None:
            raise examples.UsageError(f"{path}: make(worlds) has a step of its own; --dt is for scenes")
        return make, module, {}
    try:
        made = module.build() if callable(getattr(module, "build", None)) else getattr(module, "scene", None)
        if made is None:
            made = make() if callable(make) else getattr(module, "sim", None)
    except Exception as error:
        raise examples.UsageError(examples.error_text(error, path)) from None
    if isinstance(made, Simulation):
        return *_scene_of(made, module, path), gathered(made.solver.given or {})
    if not isinstance(made, Scene):
        raise examples.UsageError(
            f"{path}: a study needs a function build() that returns a Scene, make(worlds) that returns a Simulation of so many "
            "worlds, or a variable scene"
        )
    return made, module, {}


def _scene_of(sim: Simulation, module: Any, path: Path) -> tuple[Scene, Any]:
    """The scene of a simulation that a module made; it is read from its journal."""
    if callable(getattr(module, "control", None)):
        raise examples.UsageError(
            f"{path}: has a function control(sim), which a study of its scene would not call; write make(worlds), and a measure "
            "that makes the run"
        )
    if sim.model.told is None:
        raise examples.UsageError(f"{path}: its simulation was not made from a Scene")
    scene = read_text(scene_text(sim.model.told), str(path), roots=everywhere(path))
    scene.options = {"dt": sim.dt, "solver": sim.solver_name}
    return scene, module
