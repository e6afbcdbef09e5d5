"""Compiled kernels are found again without reading the sources that they were compiled from."""

import os
import shutil
import subprocess
import sys

from sharnir import kernel_cache

SCRIPT = """
import warp as wp
from sharnir import types

hashed = []
class Hasher(wp._src.context.ModuleHasher):
    def __init__(self, *given):
        hashed.append(given)
        super().__init__(*given)
wp._src.context.ModuleHasher = Hasher

@wp.kernel(module="sharnir.sample", enable_backward=False)
def double(x: wp.array2d(dtype=float)):
    i, j = wp.tid()
    x[i, j] = 2.0 * x[i, j]

double.module.options["cpu_compiler_flags"] = "-O0"
types.load_modules([double.module], "cpu")
x = wp.array([[3.0, 4.0]], dtype=float, device="cpu")
wp.launch(double, x.shape, inputs=[x], device="cpu")
print(*x.numpy()[0], len(hashed))
"""


def test_a_second_process_loads_kernels_without_hashing_them(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    cache = tmp_path / "cache"

    def run():
        environment = os.environ | {"WARP_CACHE_PATH": str(cache)}
        return subprocess.run(
            [sys.executable, script], env=environment, capture_output=True, text=True, check=True
        ).stdout.strip()

    assert run() == "6.0 8.0 1"
    assert run() == "6.0 8.0 0"
    for folder in cache.rglob("wp_sharnir.sample_*"):
        shutil.rmtree(folder)
    assert run() == "6.0 8.0 1"  # what was compiled is gone
    for file in cache.rglob("wp_sharnir_*/*.json"):
        file.write_text("{}")
    assert run() == "6.0 8.0 1"  # what was written down is damaged


def test_emitted_code_is_kept_until_a_source_changes(tmp_path, monkeypatch):
    monkeypatch.setattr(kernel_cache.wp.config, "kernel_cache_dir", str(tmp_path))
    assert kernel_cache.emitted("code", lambda: "first") == "first"
    assert kernel_cache.emitted("code", lambda: "second") == "first"
    monkeypatch.setattr(kernel_cache, "_digest", lambda: "another")
    assert kernel_cache.emitted("code", lambda: "second") == "second"


def test_a_cache_that_cannot_be_written_does_no_harm(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(kernel_cache.wp.config, "kernel_cache_dir", str(tmp_path / "file"))
    assert kernel_cache.emitted("code", lambda: "first") == "first"
    assert kernel_cache.emitted("code", lambda: "second") == "second"
