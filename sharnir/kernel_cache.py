"""Lets a process load compiled kernels without reading the sources that they were compiled from.

Warp 1.19 names a compiled module by a hash of all functions that its kernels call, which takes it half a second to find for a
scene with contact. The first process that loads a module writes this hash down, and so is the emitted C++ of the steps. Both are
kept in a folder beside the kernels whose name is a digest of every source file of this package: as long as no file changes,
neither do hashes. A version of Warp that has no such functions is left alone.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import sys
import tempfile
import weakref
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import warp as wp


@cache
def _digest() -> str:
    """Of the sources of the package, its precision, Warp and Python."""
    root = Path(__file__).parent
    found = hashlib.blake2b(digest_size=12)
    about = (wp.__version__, sys.version, platform.machine(), os.environ.get("SHARNIR_PRECISION", ""))
    found.update(repr(about).encode())
    for folder, folders, files in sorted(os.walk(root)):
        folders[:] = [name for name in folders if name != "__pycache__"]
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
    try:
        return (_folder() / name).read_text(encoding="utf-8")
    except OSError:
        return None


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
    _write(name, json.dumps({"module": hasher.get_hash().hex(), "kernels": about}))
