"""Compiled kernels are found again without reading the sources that they were compiled from."""

import json
import os
import shutil
import subprocess
import sys

import pytest

from sharnir.core import kernel_cache

SCRIPT = """
import warp as wp
from sharnir.core import types

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


KEPT = kernel_cache.processor, kernel_cache._digest, kernel_cache.refusal


@pytest.fixture(autouse=True)
def forget():
    """What depends on the wheel is found anew by each test, and after them."""
    yield
    for kept in KEPT:
        kept.cache_clear()


def pack_wheel(folder, monkeypatch, script):
    """Kernels of the script as a wheel has them, made from a cache of its own."""
    cache = folder / "first"
    monkeypatch.setenv("SHARNIR_PACKING", "1")
    for kept in KEPT:
        kept.cache_clear()
    run(script, cache)
    version = next(cache.iterdir())
    monkeypatch.setattr(kernel_cache.wp.config, "kernel_cache_dir", str(version))
    names = [path.name for path in version.glob("wp_sharnir.sample_*")]
    assert len(names) == 1
    kernel_cache.pack(names, folder / "packed")
    monkeypatch.delenv("SHARNIR_PACKING")
    return folder / "packed"


def run(script, cache, packed=None):
    """What the script prints; `packed` in place of the wheel's folder."""
    environment = os.environ | {"WARP_CACHE_PATH": str(cache), "PACKED": str(packed or "")}
    return subprocess.run([sys.executable, script], env=environment, capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "script.py"
    place = "kernel_cache.PACKED = pathlib.Path(os.environ['PACKED'] or 'none')"
    path.write_text(f"import os, pathlib\nfrom sharnir.core import kernel_cache\n{place}\n{SCRIPT}")
    return path


def test_a_second_process_loads_kernels_without_hashing_them(tmp_path, script):
    cache = tmp_path / "cache"
    assert run(script, cache) == "6.0 8.0 1"
    assert run(script, cache) == "6.0 8.0 0"
    for folder in cache.rglob("wp_sharnir.sample_*"):
        shutil.rmtree(folder)
    assert run(script, cache) == "6.0 8.0 1"  # what was compiled is gone
    for file in cache.rglob("wp_sharnir_*/*.json"):
        file.write_text("{}")
    assert run(script, cache) == "6.0 8.0 1"  # what was written down is damaged


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


def test_kernels_of_a_wheel_serve_an_empty_cache(tmp_path, monkeypatch, script):
    packed = pack_wheel(tmp_path, monkeypatch, script)
    assert not list(packed.rglob("wp_sharnir.sample_*.cpp"))
    assert run(script, tmp_path / "second", packed) == "6.0 8.0 0"
    assert not list((tmp_path / "second").rglob("wp_sharnir.sample_*.cpp"))  # nothing was compiled
    for file in packed.rglob("wp_sharnir.sample_*.o"):
        file.unlink()
    assert run(script, tmp_path / "third", packed) == "6.0 8.0 1"


@pytest.mark.parametrize("name, words", [("Warp", "Warp 1.2.3, here is Warp"), ("sharnir", "sharnir 1.2.3, here is sharnir")])
def test_kernels_of_another_version_are_refused_by_name(name, words, tmp_path, monkeypatch, script):
    packed = pack_wheel(tmp_path, monkeypatch, script)
    about = json.loads((packed / "about.json").read_text())
    (packed / "about.json").write_text(json.dumps(about | {name: "1.2.3"}))
    assert run(script, tmp_path / "second", packed) == "6.0 8.0 1"
    monkeypatch.setattr(kernel_cache, "PACKED", packed)
    for kept in KEPT:
        kept.cache_clear()
    assert words in kernel_cache.refusal()
