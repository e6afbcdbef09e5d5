"""All kernels compiled ahead for a device, as many at a time as there are cores; each in a process of its own.

Most of a compile is one thread's work (Python writes the source, LLVM compiles it), so processes share it better than threads.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from importlib import import_module
from inspect import isfunction
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import warp as wp

import sharnir
from sharnir.core.kernel_cache import pack, processor
from sharnir.core.types import load_modules, loaded_folders
from sharnir.runtime.simulation import Simulation  # with all kernels: a module is compiled with those that are known

KERNEL_PLACES: tuple[tuple[str, str, int | None], ...] = (
    ("engine.direct.energy.rope", "energy_rope_steps", None), ("engine.direct.roped_steps", "roped_kernel", 1),
    ("engine.direct.roped_steps", "roped_kernel", 0), ("engine.tree.generic", "module_kernel", 6),
    ("engine.tree.generic", "module_kernel", 4), ("engine.tree.generic", "module_kernel", 2),
    ("engine.tree.generic", "module_kernel", 5), ("engine.tree.generic", "module_kernel", 1),
    ("engine.tree.generic", "module_kernel", 3), ("engine.tree.generic", "module_kernel", 0),
    ("engine.tree.tangent_code", "tangent_kernel", None), ("integrate.kernel", "integrate_all", None),
    ("engine.sequential.begin", "predict", None), ("engine.rope.kernels", "rope_begin", None),
    ("engine.rope.touch_kernels", "touch_begin", None), ("engine.rope.energy_kernels", "energy_steps", None),
    ("engine.sequential.patches", "prepare_points", None), ("integrate.kernel", "integrate_plain", None),
    ("engine.sequential.bodies", "BODY_KERNELS", None), ("collision.collide", "collide_all", None),
    ("collision.collide", "collide_round", None), ("collision.queries", "cast_many", None),
    ("collision.rays", "trace_eye", None), ("view.tracer", "trace_pixels", None), ("engine.guard", "GUARD_OF_ALL", None),
    ("engine.guard", "GUARD_OF_CONTACT", None), ("engine.guard", "GUARD_OF_BODIES", None), ("engine.guard", "JOINTED", None),
    ("engine.sleep", "wake_called", None), ("model.kinematics", "read_joints", None),
    ("engine.articulated.functions", "kinematics", None), ("sensors.kernels", "measure_probes", None),
    ("collision.contact_table", "fill_contacts", None),
)  # fmt: skip
"""Where one kernel of each module stands, the longest compiles first: file of sharnir, name, argument of what makes it."""

RARE_KERNELS: tuple[tuple[str, str, int | None], ...] = (("engine.direct.energy.rope", "TOUCHING", None),)
"""As above: what only scenes with contacts beside ropes take from the direct solver."""

DEMO: tuple[tuple[str, str, int | None], ...] = (
    ("engine.tree.generic", "module_kernel", 0), ("engine.sequential.begin", "predict", None),
    ("engine.guard", "JOINTED", None), ("model.kinematics", "read_joints", None),
)  # fmt: skip
"""As above: those of the demonstration's first pictures."""

DEMO_MACHINE: tuple[tuple[str, str, int | None], ...] = (
    ("engine.sequential.patches", "prepare_points", None), ("collision.collide", "collide_all", None),
    ("engine.guard", "GUARD_OF_CONTACT", None),
)  # fmt: skip
"""As above: those that its machine needs, too."""

SCENES = ("sequential", "direct", "limits", "rope")
"""Small scenes whose first step needs what is left: solvers, or a rope. Modules of two of them stand above, to be made once."""


def compile_all(rare: bool = True, device: str = "cpu") -> float:
    """Compile or load the kernels that scenes on a device need, the rare ones too if asked; returns the seconds it took."""
    started = time.perf_counter()
    _compile([*(RARE_KERNELS if rare else ()), *KERNEL_PLACES, *SCENES], device)
    return time.perf_counter() - started


def pack_all(folder: str | Path) -> None:
    """Compile or load the kernels that scenes on a CPU need, and copy them into a folder, for a wheel.

    Nothing is copied where kernels are compiled for the processor of this machine alone.
    """
    if "native" in processor():
        sys.stderr.write("sharnir: kernels are compiled for the processor of this machine alone: the wheel has none\n")
        return
    pack(sorted(_compile([*RARE_KERNELS, *KERNEL_PLACES, *SCENES], "cpu", apart=True)), Path(folder))


def compile_ahead(kernels: Iterable[tuple[str, str, int | None]]) -> None:
    """Compile those of some kernels that the cache does not have for the CPU, as many at a time as there are cores."""
    missing = [kernel for kernel in kernels if not folder_of(_find(*kernel).module).exists()]
    if len(missing) > 1:
        _compile(missing, "cpu")


def folder_of(module: Any) -> Path:
    """Where Warp keeps a module for the CPU, whose blocks have one thread."""
    return Path(wp.config.kernel_cache_dir) / str(module.get_module_identifier(1))


def _compile(tasks: list[Any], device: str, apart: bool = False) -> set[str]:
    """Make the tasks, as many at a time as there are cores; returns the names of the modules' folders, of a CPU.

    `apart`: each in a process of its own, so that what a module has does not depend on the tasks before.
    """
    started = time.perf_counter()
    workers = min(os.cpu_count() or 1, len(tasks))
    folders: set[str] = set()
    if workers == 1 and not apart:
        return folders.union(*(make(task, device) for task in tasks))
    once = 1 if apart else None
    with ProcessPoolExecutor(workers, get_context("spawn"), _quiet, max_tasks_per_child=once) as pool:
        jobs = [pool.submit(make, task, device) for task in tasks]
        for n, job in enumerate(as_completed(jobs), 1):
            folders |= job.result()
            if time.perf_counter() - started > 1.0:
                sys.stderr.write(f"sharnir: {n} of {len(tasks)} groups of kernels are ready\n")
                sys.stderr.flush()
    return folders


def _quiet() -> None:
    """A worker says nothing: the one who waits for it does."""
    sys.stderr = open(os.devnull, "w")  # noqa: SIM115


def _find(file: str, name: str, index: int | None) -> Any:
    """The kernel that a line of KERNELS names, or what it names makes."""
    if file.startswith("engine.sequential."):  # its modules have kernels of several files
        import_module("sharnir.engine.sequential.solver")
    found = getattr(import_module(f"sharnir.{file}"), name)
    if index is None:
        return found() if isfunction(found) else found
    return found(index)


def make(task: Any, device: str = "cpu") -> set[str]:
    """Compile one of KERNELS, or what one of SCENES needs; returns the folders of all that this process has loaded for a CPU."""
    if isinstance(task, tuple):
        load_modules([_find(*task).module], device)
    else:
        _try(task, device)
    return loaded_folders("cpu")


def _try(task: str, device: str) -> None:
    """The first step of one of SCENES."""
    scene = sharnir.Scene()
    if task == "rope":
        scene.add_rope("rope", (0, 0, 0), (1, 0, 0), segments=2)
        Simulation(scene, 1e-3, device=device).step()
        return
    scene.add_body("arm", sharnir.Box(0.2, 0.1, 0.1))
    limit = (-1.0, 1.0) if task == "limits" else None  # an integration with a limit has kernels of its own
    scene.add_joint("hinge", sharnir.Revolute("y", limit=limit), scene.world, "arm", position=(0, 0, 0))
    sim = Simulation(scene, 1e-3, solver="sequential" if task == "sequential" else "direct", device=device)
    sim.step()
    sim.constraint_error()
    sim.integrate(sim.time + 1e-3)
