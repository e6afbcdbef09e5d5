"""Lets a process load compiled kernels without reading the sources that they were compiled from.

Warp 1.19 names a compiled module by a hash of all functions that its kernels call, which takes it half a second to find for a
scene with contact. The first process that loads a module writes this hash down, and so is the emitted C++ of the steps. Both are
kept in a folder beside the kernels whose name is a digest of every source file of this package: as long as no file changes,
neither do hashes. A version of Warp that has no such functions is left alone.

A wheel may bring all this, compiled (`pack`): what the cache lacks is taken from there, if it was made by the same Warp from the
same sources, for the processors of this machine.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
import tempfile
import weakref
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import warp as wp

from sharnir.core.precision import VARIABLE

SOURCES = Path(__file__).parents[1]
"""The sources of sharnir."""
PACKED = SOURCES / "kernels"
"""Where a wheel has kernels; a checkout has none."""
ABOUT_FILE = "about.json"
NEEDED = ("avx2", "bmi1", "bmi2", "f16c", "fma", "movbe")  # beside what older ones have; in all made since 2015


@cache
def processor() -> str:
    """Flags for the processors that kernels are compiled for: this one alone, or, where a wheel has them, all of x86-64-v3."""
    if os.environ.get("SHARNIR_PACKING") != "1" and not (PACKED / ABOUT_FILE).exists():
        return "-march=native"
    if platform.machine().lower() not in ("x86_64", "amd64"):
        return "-march=native"
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return "-march=native"
    flags = next((line.split() for line in text.splitlines() if line.startswith("flags")), [])
    return "-target-cpu x86-64-v3" if set(NEEDED) <= set(flags) else "-march=native"


@cache
def _digest() -> str:
    """Of the sources of the package, its precision, Warp and the processors."""
    root = SOURCES
    found = hashlib.blake2b(digest_size=12)
    about = (wp.__version__, platform.machine(), processor(), os.environ.get(VARIABLE, "double"))
    found.update(repr(about).encode())
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(name for name in folders if name not in ("__pycache__", "examples"))  # a wheel has those inside
        for name in sorted(files):
            if name.endswith(".py"):
                path = Path(folder, name)
                found.update(str(path.relative_to(root)).encode() + b"\0")
                found.update(path.read_bytes())
    return found.hexdigest()


def _folder() -> Path:
    """Where hashes and emitted code are kept; cleared with the kernels."""
    return Path(wp.config.kernel_cache_dir) / f"wp_sharnir_{_digest()}"


def _read(name: str) -> str | None:
    for folder in (_folder(), PACKED / _folder().name):
        try:
            return (folder / name).read_text(encoding="utf-8")
        except OSError:
            continue
    return None


@cache
def refusal() -> str:
    """Why the kernels of the wheel are not used; "" if they are, or if there are none."""
    try:
        made = json.loads((PACKED / ABOUT_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return ""
    here = about_here()
    words = [f"{name} {made.get(name)}, here is {name} {value}" for name, value in here.items() if made.get(name) != value]
    if not words and not (PACKED / _folder().name).exists():
        words = ["other sources of sharnir: files were changed"]
    return f"the kernels of the wheel were compiled for {words[0]}: others are compiled now" if words else ""


def about_here() -> dict[str, str]:
    """What compiled kernels fit."""
    version = (SOURCES / "__init__.py").read_text(encoding="utf-8").partition('__version__ = "')[2].partition('"')[0]
    return {
        "sharnir": version,
        "Warp": wp.__version__,
        "system": f"{platform.system()} {platform.machine()}",
        "processor": processor(),
        "precision": os.environ.get(VARIABLE, "double"),
    }


def pack(names: list[str], into: Path) -> None:
    """Copy compiled modules, by the names of their folders, with what is known of them, for a wheel.

    Code that they were compiled from is left out; emitted code is needed to declare them.
    """
    cached = Path(wp.config.kernel_cache_dir)
    for name in names:
        (into / name).mkdir(parents=True)
        for file in sorted((cached / name).iterdir()):
            if file.suffix != ".cpp":
                shutil.copyfile(file, into / name / file.name)
    shutil.copytree(_folder(), into / _folder().name)
    (into / ABOUT_FILE).write_text(json.dumps(about_here(), indent=1) + "\n", encoding="utf-8")


def _unpack(name: str) -> None:
    """Copy a module of the wheel into the cache, whole or not at all."""
    if refusal():
        return
    target = Path(wp.config.kernel_cache_dir, name)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent) as folder:
            shutil.copytree(PACKED / name, Path(folder) / name)
            os.replace(Path(folder) / name, target)
    except OSError:
        pass  # it is not there, or another process was first, or the cache cannot be written: then it is compiled


def _write(name: str, text: str) -> None:
    """Write a file whole, or not at all, where the cache cannot be written."""
    try:
        folder = _folder()
        folder.mkdir(parents=True, exist_ok=True)
        handle, place = tempfile.mkstemp(dir=folder)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(place, folder / name)
    except OSError:
        pass


def emitted(name: str, emit: Callable[[], str]) -> str:
    """C++ that follows from the sources of the package alone: as it was kept under that name, or emitted now."""
    text = _read(f"{name}.cpp")
    if text is None:
        text = emit()
        _write(f"{name}.cpp", text)
    return text


class _KnownHash:
    """Stands for Warp's `ModuleHasher`, with what it found in an earlier process."""

    def __init__(self, own: bytes, kernels: dict[Any, bytes]) -> None:
        self.hash, self.kernel_hashes = own, weakref.WeakKeyDictionary(kernels)
        self.unique_kernels: dict[bytes, Any] = {}

    def get_hash(self) -> bytes:
        """The hash of the module."""
        return self.hash


def _block(module: Any, device: Any) -> int:
    """The number of threads of a block for which Warp compiles a module."""
    if device.is_cpu:
        return 1
    return int(module.options["block_dim"])


def _key(module: Any, kernels: list[Any], options: dict[str, Any]) -> str:
    """A file's name for a module with these kernels and options."""
    about = [module.name, sorted(kernel.key for kernel in kernels), sorted((k, str(v)) for k, v in options.items())]
    return hashlib.blake2b(repr(about).encode(), digest_size=12).hexdigest() + ".json"


def _known(module: Any, block: int) -> tuple[str, list[Any], dict[str, Any]] | None:
    """The file of a module's hashes, its kernels and options; None where they cannot be known beforehand."""
    live, resolve = getattr(module, "_get_live_kernels", None), getattr(module, "resolve_options", None)
    if live is None or resolve is None or not hasattr(module, "hashers") or not str(module.name).startswith("sharnir."):
        return None
    kernels = list(live())
    if len({kernel.key for kernel in kernels}) < len(kernels) or any(kernel.is_generic for kernel in kernels):
        return None
    options = resolve(wp.config, block_dim=block)
    return _key(module, kernels, options), kernels, options


def recall_hash(module: Any, device: Any) -> None:
    """Give Warp the hash of a module that an earlier process compiled, if what it compiled is there."""
    block = _block(module, device)
    known = _known(module, block)
    if known is None or block in module.hashers:
        return
    name, kernels, options = known
    text = _read(name)
    if text is None:
        return
    try:
        resolve = wp._src.codegen.resolve_grid_stride
        found = json.loads(text)
        hashes = {kernel: bytes.fromhex(found["kernels"][kernel.key][0]) for kernel in kernels}
        unresolved, module.has_unresolved_static_expressions = module.has_unresolved_static_expressions, False
        module.hashers[block] = _KnownHash(bytes.fromhex(found["module"]), hashes)
        module.resolved_options[block] = options
        compiled = Path(wp.config.kernel_cache_dir, module.get_module_identifier(block))
        if not compiled.exists():
            _unpack(compiled.name)
        if not (compiled / module._get_compile_output_name(device, block_dim=block)).exists():  # deleted: it is compiled anew
            del module.hashers[block], module.resolved_options[block]
            module.has_unresolved_static_expressions = unresolved
            return
        for kernel, own in hashes.items():
            kernel.adj.kernel_dim, kernel.adj.tid_extent_limit_candidate = found["kernels"][kernel.key][1:]
            kernel.hash, kernel.grid_stride = own, resolve(kernel.options, options.get("default_grid_stride", False))
    except (ValueError, KeyError, TypeError, AttributeError):
        module.hashers.pop(block, None)


def keep_hash(module: Any, device: Any) -> None:
    """Write down the hash of a module that was compiled or loaded, for processes to come."""
    block = _block(module, device)
    known = _known(module, block)
    hasher = getattr(module, "hashers", {}).get(block)
    if known is None or hasher is None or isinstance(hasher, _KnownHash):
        return
    name, kernels, _ = known
    try:
        about = {k.key: (hasher.kernel_hashes[k].hex(), k.adj.kernel_dim, k.adj.tid_extent_limit_candidate) for k in kernels}
    except (KeyError, AttributeError):
        return
    _write(name, json.dumps({"module": hasher.get_hash().hex(), "kernels": about}, sort_keys=True))
