"""Lets all processes read Warp's headers once: compiled headers are kept in the cache, beside the kernels.

Warp 1.19 compiles its own headers before the first kernel of a process, and again for each set of flags: 3 s each. It keeps them
in a folder that is removed with the process. A version of Warp that has no such folder is left alone.
"""

from __future__ import annotations

import hashlib
import platform
from pathlib import Path
from typing import Any

import warp as wp


def folder() -> Path:
    """Where compiled headers are kept: those of this installation of Warp, made on this machine; cleared with the kernels.

    Their names tell the flags; Clang writes a file whole, or not at all, and Warp does without one that does not fit.
    """
    header = Path(wp.__file__).parent / "native" / "builtin.h"
    key = f"{header} {header.stat().st_mtime_ns} {platform.node()}"
    return Path(wp.config.kernel_cache_dir) / f"wp_headers_{hashlib.sha256(key.encode()).hexdigest()[:12]}"


def keep_headers() -> None:
    """Have Warp keep them from now on, where the cache can be written."""
    runtime: Any = getattr(getattr(getattr(wp, "_src", None), "context", None), "Runtime", None)
    own = getattr(runtime, "get_clang_pch_dir", None)
    if own is None:
        return

    def kept(self: Any) -> Any:
        given = own(self)
        try:
            if given is not None:
                place = folder()
                place.mkdir(parents=True, exist_ok=True)
                given = str(place)
        except OSError:
            pass  # Warp's own folder serves this process
        return given

    runtime.get_clang_pch_dir = kept
