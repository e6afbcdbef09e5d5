"""Kernels that are compiled ahead."""

import subprocess
import sys

import pytest
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


@pytest.mark.parametrize("name", ["predict", "prepare_points"])
def test_a_module_is_compiled_with_the_kernels_that_scenes_load(name):
    """A worker imports one file; a module with fewer kernels than those of a scene would be compiled in vain."""
    code = f"""
import sys
from importlib import import_module
from sharnir.cli.warmup import KERNEL_PLACES, _find
for solver in sys.argv[1:]:
    import_module(f"sharnir.engine.{{solver}}.solver")
print(next(_find(*task).module.get_module_identifier(1) for task in KERNEL_PLACES if task[1] == {name!r}))
"""
    alone, loaded = (
        subprocess.run([sys.executable, "-c", code, *more], capture_output=True, text=True, check=True).stdout
        for more in ([], ["sequential", "direct"])
    )
    assert alone == loaded
