"""All kernels compiled ahead for a device, as many at a time as there are cores; each in a process of its own.

Most of a compile is one thread's work (Python writes the source, LLVM compiles it), so processes share it better than threads.
"""

from __future__ import annotations

import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from importlib import import_module
from multiprocessing import get_context
from typing import Any

import sharnir
from sharnir.simulation import Simulation  # with all kernels: a module is compiled with those that are known
from sharnir.types import load_modules

KERNELS: tuple[tuple[str, str, int | None], ...] = (
    ("direct.energy.rope", "energy_rope_steps", None),
    ("direct.energy.step", "TOUCHING", None),
    ("direct.energy.step", "ALONE", None),
    ("engine.tree.generic", "module_kernel", 4),
    ("engine.tree.generic", "module_kernel", 2),
    ("engine.tree.generic", "module_kernel", 1),
    ("engine.tree.generic", "module_kernel", 3),
    ("engine.tree.generic", "module_kernel", 0),
    ("ode.kernel", "integrate_all", None),
    ("sequential.begin", "predict", None),
    ("rope.kernels", "rope_begin", None),
    ("rope.touch_kernels", "touch_begin", None),
    ("rope.energy_kernels", "energy_steps", None),
    ("sequential.patches", "prepare_points", None),
    ("ode.kernel", "integrate_plain", None),
    ("collision.collide", "collide_all", None),
    ("collision.queries", "cast_many", None),
    ("collision.rays", "trace_eye", None),
    ("guard", "TOUCHING", None),
    ("guard", "JOINTED", None),
    ("sleep", "wake_called", None),
    ("kinematics", "read_joints", None),
    ("tree.functions", "kinematics", None),
    ("sensors.kernels", "measure_probes", None),
)
"""Where one kernel of each module stands, the longest compiles first: file of sharnir, name, argument of what makes it."""

RARE: tuple[tuple[str, str, int | None], ...] = (("direct.energy.rope", "TOUCHING", None),)
"""As above: what only scenes with contacts beside ropes take from the direct solver."""

SCENES = ("sequential", "direct", "limits", "rope")
"""Small scenes whose first step needs what is left: solvers, or a rope. Modules of two of them stand above, to be made once."""


def compile_all(rare: bool = True, device: str = "cpu") -> float:
    """Compile or load the kernels that scenes on a device need, the rare ones too if asked; returns the seconds it took."""
    started = time.perf_counter()
    tasks: list[Any] = [*(RARE if rare else ()), *KERNELS, *SCENES]
    workers = min(os.cpu_count() or 1, len(tasks))
    if workers == 1:
        for task in tasks:
            make(task, device)
        return time.perf_counter() - started
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=_quiet) as pool:
        jobs = [pool.submit(make, task, device) for task in tasks]
        for n, job in enumerate(as_completed(jobs), 1):
            job.result()
            if time.perf_counter() - started > 1.0:
                sys.stderr.write(f"sharnir: {n} of {len(tasks)} groups of kernels are ready\n")
                sys.stderr.flush()
    return time.perf_counter() - started


def _quiet() -> None:
    """A worker says nothing: the one who waits for it does."""
    sys.stderr = open(os.devnull, "w")  # noqa: SIM115


def make(task: Any, device: str = "cpu") -> None:
    """Compile one of KERNELS, or what one of SCENES needs."""
    if isinstance(task, tuple):
        file, name, index = task
        found = getattr(import_module(f"sharnir.{file}"), name)
        kernel = found if index is None else found(index)
        load_modules([kernel.module], device)
        return
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
    sim.gaps()
    sim.integrate(sim.time + 1e-3)
