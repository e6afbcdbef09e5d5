"""Kernels that are compiled ahead."""

import warp as wp

from sharnir.cli import warmup
from sharnir.core.types import load_modules


def test_what_the_cache_does_not_have_is_compiled_ahead(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(warmup, "_compile", lambda kernels, device: asked.append((kernels, device)))
    monkeypatch.setattr(wp.config, "kernel_cache_dir", str(tmp_path))
    warmup.compile_ahead(warmup.DEMO)
    assert asked == [(list(warmup.DEMO), "cpu")]
    for kernel in warmup.DEMO[:-2]:
        warmup.folder_of(warmup._find(*kernel).module).mkdir()
    warmup.compile_ahead(warmup.DEMO)
    assert asked[1:] == [(list(warmup.DEMO[-2:]), "cpu")]
    warmup.folder_of(warmup._find(*warmup.DEMO[-1]).module).mkdir()
    warmup.compile_ahead(warmup.DEMO)  # one alone takes no processes
    assert len(asked) == 2


def test_modules_are_looked_for_where_warp_keeps_them():
    kernel = warmup._find("model.kinematics", "read_joints", None)
    load_modules([kernel.module], "cpu")
    assert len(list(warmup.folder_of(kernel.module).glob("*.o"))) == 1
