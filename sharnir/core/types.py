"""Scalar, vector and matrix types of every kernel, the Warp modules, and the line that tells a user that they compile.

Double precision is the default; `core.precision`, or `SHARNIR_PRECISION=single` in the environment, selects single precision.
"""

import ctypes
import os
import sys
import threading
import time
from collections.abc import Iterable
from concurrent.futures import Future
from typing import Any

import numpy as np
import warp as wp

from sharnir.core.graphs import LOCK, Threads
from sharnir.core.headers import keep_headers
from sharnir.core.kernel_cache import keep_hash, processor, recall_hash, refusal
from sharnir.core.lazy_source import parse_when_needed
from sharnir.core.precision import PRECISIONS, VARIABLE
from sharnir.core.shorten import RULES, shorten_ours
from sharnir.core.trimming import Absent, leave_out, trim_modules
from sharnir.core.warp_preamble import PREAMBLE
from sharnir.errors import SimulationError

wp.config.log_level = wp.LOG_WARNING


def _init_warp() -> None:
    """Start Warp; a Linux machine without an NVIDIA driver is no reason for a warning, which its native part writes to stderr."""
    if not sys.platform.startswith("linux") or os.path.exists("/dev/nvidiactl"):
        wp.init()
        return
    sys.stderr.flush()
    keep, null = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 2)
    try:
        wp.init()
    finally:
        os.dup2(keep, 2)
        os.close(keep)
        os.close(null)


_init_warp()


@wp.struct
class _Any:
    """Some structure, of the class of all structures."""

    x: wp.int32


def _look_once() -> None:
    """Let Warp look into a structure once a module, for types of its own kind and structures that it may hold.

    Warp 1.19 does so for every variable that refers to one, and for every function that takes one: more than half of the time in
    which it writes code for ours, which hold hundreds of arrays. A version that has no such functions is left alone.
    """
    context: Any = getattr(getattr(wp, "_src", None), "context", None)
    builder: Any = getattr(context, "ModuleBuilder", None)
    look, build = (getattr(builder, name, None) for name in ("_collect_native_types", "build_struct_recursive"))
    if look is None or build is None:
        return

    def look_once(self: Any, kind: Any) -> None:
        inner = getattr(kind, "value_type", kind)  # of a reference
        inner = getattr(inner, "dtype", inner)  # of an array
        if isinstance(inner, type(_Any)):
            seen = self.__dict__.setdefault("_looked_into", set())
            if inner in seen:
                return
            seen.add(inner)
        look(self, kind)

    def build_once(self: Any, struct: Any) -> None:
        if struct not in self.structs:
            build(self, struct)

    builder._collect_native_types, builder.build_struct_recursive = look_once, build_once


_look_once()
parse_when_needed()
shorten_ours()
trim_modules()
keep_headers()

WARP_MODULES = (
    "sharnir.bodies", "sharnir.collision", "sharnir.collision_round", "sharnir.contact",
    "sharnir.contact_table", "sharnir.energy_rope",
    "sharnir.energy_rope_touch", "sharnir.guard", "sharnir.guard_bodies",
    "sharnir.guard_contact", "sharnir.guard_touch", "sharnir.impulse",
    "sharnir.kinematics", "sharnir.ode", "sharnir.ode_rough", "sharnir.queries", "sharnir.rays", "sharnir.rope",
    "sharnir.rope_energy", "sharnir.rope_touch", "sharnir.sensors", "sharnir.tangent", "sharnir.tree",
    "sharnir.trees", "sharnir.trees_all", "sharnir.trees_around", "sharnir.trees_balls", "sharnir.trees_rows",
    "sharnir.trees_links", "sharnir.trees_roped", "sharnir.trees_roped_touching", "sharnir.trees_rows_all", "sharnir.tracer",
    "sharnir.waking", "sharnir.worlds",
)  # fmt: skip
"""Warp modules of the library's kernels. They have no adjoints, which halves their compile; a caller's own kernels do."""
MODULE_OPTIONS: dict[str, Any] = {"enable_backward": False}
if hasattr(wp, "ModuleBuildOptions"):  # experimental in Warp 1.19: a later one may not have it
    _preamble = RULES + PREAMBLE
    MODULE_OPTIONS["extra_build_options"] = wp.ModuleBuildOptions(extra_cpu_preamble=_preamble, extra_cuda_preamble=_preamble)
for _name in WARP_MODULES:
    wp.set_module_options(MODULE_OPTIONS, module=_name)

PRECISION = os.environ.get(VARIABLE, "double")
if PRECISION not in PRECISIONS:
    raise ValueError(f"{VARIABLE} is {PRECISION!r}; allowed: 'single', 'double'")

if PRECISION == "double":
    real, vec3, quat, mat33 = wp.float64, wp.vec3d, wp.quatd, wp.mat33d
    np_real: type[np.floating[Any]] = np.float64
else:
    real, vec3, quat, mat33 = wp.float32, wp.vec3f, wp.quatf, wp.mat33f
    np_real = np.float32

vec6, mat66 = wp.types.vector(length=6, dtype=real), wp.types.matrix(shape=(6, 6), dtype=real)
vec2, vec4 = wp.types.vector(length=2, dtype=real), wp.types.vector(length=4, dtype=real)
EPSILON = float(np.finfo(np_real).eps)


def alone(struct: Any, kind: Any, device: Any) -> Any:
    """A structure as an array of one element, which kernels take; what its arrays hold is kept alive by the structure alone.

    `wp.array([struct], dtype=kind)` is the same, but describes the structure to NumPy each time, 10 ms for those of the solvers.
    """
    source = wp.array(ptr=ctypes.addressof(struct.__ctype__()), dtype=kind, shape=(1,), device="cpu", copy=False)
    out = wp.empty(1, dtype=kind, device=device)
    wp.copy(out, source)
    return out


_loaded: dict[tuple[str, Any], str] = {}  # and where the cache has them
_begun: dict[tuple[str, Any], Future[Any]] = {}
_compilers = Threads(os.cpu_count() or 1)


def inline_less(module: str, most: int = 1000, level: int | None = None, slp: bool = True) -> None:
    """Let a module of long functions inline Warp's builtins as elsewhere, ours where they are short or called once.

    It compiles in half the time on the CPU, and runs no slower. `most`: LLVM's threshold; the longest modules take less of it.
    `level`: how hard a GPU's compiler tries, 3 unless given (the CPU's is 2). `slp`: whether numbers are gathered into vectors,
    which takes longer than it saves where most of the code is emitted.
    """
    hinted = 9 * most
    vectors = "-mllvm=-slp-recursion-max-depth=4" if slp else "-fno-slp-vectorize"
    inlining = f"-mllvm=-inline-threshold={most} -mllvm=-inlinehint-threshold={hinted} {vectors}"
    flags = f"{processor()} -ffp-contract=fast {inlining}"  # fused multiply-add: a tenth quicker
    wp.set_module_options({"cpu_compiler_flags": flags, "optimization_level": level}, module=module)


CPU_FLAGS = f"{processor()} -ffp-contract=fast -fno-slp-vectorize"
"""How the CPU's compiler treats emitted code: fused multiply-add makes it a fifth quicker; vectors of two or four numbers that
are gathered from all over cost more than they save, also while compiling."""
QUICK_FLAGS = f"{CPU_FLAGS} -O1 -mllvm=-inline-threshold=100 -mllvm=-inlinehint-threshold=900"
"""Those of modules that most scenes need: less inlining and fewer optimizations compile in less time, and what runs most, long
sequences of multiplications and additions, is as quick. They are the same for all of these, so that Warp's own headers, 3 s, are
read once for all."""


def compile_quickly(module: str) -> None:
    """Let a module of kernels that run once a call be compiled with the flags that most scenes need in any case.

    A GPU's compiler takes a third of its usual time at level 2, which is that of a CPU in any case.
    """
    wp.set_module_options({"cpu_compiler_flags": QUICK_FLAGS, "optimization_level": 2}, module=module)


def leave_out_of(module: str, absent: Absent) -> None:
    """Declare a module of kernels for scenes that do not have some things."""
    options = dict(MODULE_OPTIONS)
    if hasattr(wp, "ModuleBuildOptions"):
        text = absent.key + RULES + PREAMBLE
        options["extra_build_options"] = wp.ModuleBuildOptions(extra_cpu_preamble=text, extra_cuda_preamble=text)
        leave_out(module, absent)
    wp.set_module_options(options, module=module)


def trimmed_module(module: str, absent: Absent) -> None:
    """The same of one that is compiled quickly (`copied`)."""
    leave_out_of(module, absent)
    compile_quickly(module)


def copied(kernel: Any, module: str) -> Any:
    """A kernel once more, in another module."""
    return wp.kernel(kernel.func, enable_backward=False, module=module)


def begin_modules(modules: Iterable[Any], device: Any) -> None:
    """Let a GPU's modules, which `load_modules` is going to ask for, be compiled in threads of their own from now on.

    NVRTC takes one core for each of them. They are loaded later, never while launches are recorded. On a CPU nothing begins: each
    thread would read Warp's headers anew.
    """
    where = wp.get_device(device)
    if where.is_cpu:
        return
    for module in modules:
        key = str(device), module
        if key not in _loaded and key not in _begun:
            recall_hash(module, where)
            _begun[key] = _compilers.submit(wp.compile_aot_module, module, where)


def loaded_folders(device: str) -> set[str]:
    """The folders in the cache of all modules that were loaded for a device."""
    return {folder for (where, _), folder in _loaded.items() if where == device}


GROUPS = {"poses": ("kinematics",), "checks": ("guard",), "collisions": ("collision",)}
STEPS = ("bodies", "contact", "energy", "impulse", "rope", "tree")
_planned: dict[str, bool] = {}  # groups of kernels that a simulation needs, and whether they were asked for


def plan_groups(contact: bool) -> None:
    """Say which groups of kernels a simulation is going to load, for the line that tells of a compile."""
    _planned.clear()
    _planned.update(dict.fromkeys(["poses", "checks", *(["collisions"] if contact else []), "steps"], False))


def groups_of(modules: Iterable[Any]) -> str:
    """What modules are for, and how many groups of the simulation were asked for with them: "steps (3 of 3)"."""
    names = []
    for module in modules:
        short = str(module.name).removeprefix("sharnir.")
        group = next((group for group, starts in GROUPS.items() if short.startswith(starts)), None)
        name = group or ("steps" if short.startswith(STEPS) else short.replace("_", " "))
        names += [name] if name not in names else []
    _planned.update(dict.fromkeys(set(names) & set(_planned), True))
    counted = f" ({sum(_planned.values())} of {len(_planned)})" if set(names) & set(_planned) else ""
    return " and ".join(names) + counted


def load_modules(modules: Iterable[Any], device: Any) -> float:
    """Compile or load Warp modules for a device; returns the seconds it took.

    A cached module loads in milliseconds and nothing is said; a compile shows a line on stderr that counts the seconds. What was
    loaded before costs nothing, and what has begun is waited for.
    """
    started, modules = time.perf_counter(), list(modules)
    wanted = {(str(device), module): module for module in modules if (str(device), module) not in _loaded}
    if not wanted:
        groups_of(modules)
        return 0.0
    done = threading.Event()
    what = f"kernels for {device}: {groups_of(wanted.values())}"

    def tell() -> None:
        if done.wait(0.8):
            return
        live = sys.stderr.isatty()
        if refusal():
            sys.stderr.write(f"sharnir: {refusal()}\n")
        while True:
            seconds = time.perf_counter() - started
            line = f"sharnir: compiling {what}, only once, later runs read them from disk … {seconds:.0f} s"
            sys.stderr.write(f"\r{line}" if live else f"{line}\n")
            sys.stderr.flush()
            if done.wait(1.0 if live else 10.0):
                break
        seconds = time.perf_counter() - started
        sys.stderr.write(("\r" if live else "") + f"sharnir: compiled {what} in {seconds:.1f} s" + " " * 48 * live + "\n")
        sys.stderr.flush()

    teller = threading.Thread(target=tell, daemon=True)
    teller.start()
    try:
        for key in wanted:
            if key in _begun:
                _begun.pop(key).result()
        with LOCK:
            where = wp.get_device(device)
            for module in wanted.values():
                recall_hash(module, where)
            workers = 1 if where.is_cpu else min(len(wanted), os.cpu_count() or 1)  # on a CPU each would read Warp's headers anew
            wp.force_load(device, list(wanted.values()), max_workers=workers)
            for module in wanted.values():
                keep_hash(module, where)
        sizes = [1 if where.is_cpu else module.options["block_dim"] for module in wanted.values()]
        _loaded.update({key: key[1].get_module_identifier(size) for key, size in zip(wanted, sizes, strict=True)})
    except OSError as error:
        raise SimulationError(
            f"kernels could not be compiled or loaded: {error}; they are kept in {wp.config.kernel_cache_dir}: free some space "
            "there, delete it, or set WARP_CACHE_PATH to a folder that can be written"
        ) from error
    finally:
        done.set()
        teller.join()
    return time.perf_counter() - started
