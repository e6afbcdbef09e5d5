"""Compiled headers of Warp are kept for the processes that follow."""

import warp as wp

from sharnir.core import headers


def compiled(number):
    """What a kernel writes that nobody has compiled yet."""
    constant = wp.constant(number)

    @wp.kernel(enable_backward=False, module="unique", module_options={"cpu_compiler_flags": "-O0"})
    def write(out: wp.array(dtype=int)):
        out[0] = constant

    out = wp.zeros(1, dtype=int, device="cpu")
    wp.launch(write, 1, outputs=[out], device="cpu")
    return out.numpy()[0]


def test_headers_are_kept_in_the_cache_and_a_damaged_file_is_replaced(tmp_path, monkeypatch):
    monkeypatch.setattr(wp.config, "kernel_cache_dir", str(tmp_path))
    assert compiled(3) == 3
    (kept,) = headers.folder().iterdir()
    made = kept.stat().st_mtime_ns
    assert kept.stat().st_size > 1e6
    assert compiled(4) == 4
    assert kept.stat().st_mtime_ns == made  # it was used
    kept.write_bytes(b"nothing")
    assert compiled(5) == 5
    assert not kept.exists() or kept.stat().st_size > 1e6


def test_without_a_cache_that_can_be_written_warp_takes_its_own_folder(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(wp.config, "kernel_cache_dir", str(tmp_path / "file" / "cache"))
    own = wp._src.context.runtime.get_clang_pch_dir()
    assert own is not None and not own.startswith(str(tmp_path))
