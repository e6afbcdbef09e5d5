"""Code that Warp writes for our kernels is shortened before it is compiled, and computes the same."""

from pathlib import Path

import numpy as np
import pytest
import warp as wp

from sharnir.core.shorten import shorten
from sharnir.core.types import load_modules


@wp.struct
class Numbers:
    """A table, as kernels take it."""

    count: int
    x: wp.array2d(dtype=wp.float64)
    last: wp.array(dtype=wp.int32)


@wp.struct
class Held:
    """A structure around it."""

    numbers: Numbers
    factor: wp.float64


@wp.func
def running_sum(numbers: Numbers, held: wp.array(dtype=Held), w: int):
    """Σ of x up to the first that is above 3, and the largest: variables that are set anew in loops and branches."""
    total = wp.float64(0.0)
    largest = wp.float64(-1.0)
    i = int(0)
    while i < numbers.count:
        before = numbers.x[i, w]
        numbers.x[i, w] = before * held[0].factor  # an element is read before it is written
        if before > largest:
            largest = before
        i = i + 1
        if before > wp.float64(3.0):
            break
        total = total + before
    held[0].numbers.last[w] = i - 1
    return total, largest


@wp.func
def element(x: wp.array2d(dtype=wp.float64), i: int, w: int) -> wp.float64:
    row = x[i]
    return row[w]


wp.set_module_options({"enable_backward": False}, module="sharnir.tree_shortened")


@wp.kernel(module="sharnir.tree_shortened")
def sums(held: wp.array(dtype=Held), out: wp.array2d(dtype=wp.float64)):
    w = wp.tid()
    a, b = running_sum(held[0].numbers, held, w)
    out[0, w] = a
    out[1, w] = b
    out[2, w] = wp.where(a > b, wp.float64(1.0), wp.float64(-1.0)) - element(held[0].numbers.x, 1, w)


def test_shortened_kernels_compute_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr(wp.config, "kernel_cache_dir", str(tmp_path))
    load_modules([sums.module], "cpu")
    (source,) = Path(tmp_path).glob("*/*.cpp")
    text = source.read_text()
    assert "running_sum" in text and "wp::load(" not in text and "adj_running_sum" not in text
    assert "const Numbers" in text  # a table is not copied for a function that takes it
    x = np.random.default_rng(1).uniform(-1.0, 4.0, (6, 20))
    held = Held()
    held.factor = 0.5
    held.numbers.count, held.numbers.x, held.numbers.last = 6, wp.array(x, dtype=wp.float64), wp.zeros(20, dtype=wp.int32)
    out = wp.zeros((3, 20), dtype=wp.float64)
    wp.launch(sums, dim=20, inputs=[wp.array([held], dtype=Held), out])
    ends = np.where((x > 3.0).any(0), (x > 3.0).argmax(0), 5)
    seen = np.arange(6)[:, None] <= ends
    total = np.where(seen & (x <= 3.0), x, 0.0).sum(0)
    largest = np.maximum(np.where(seen, x, -1.0).max(0), -1.0)
    after = np.where(seen, 0.5 * x, x)
    assert (held.numbers.last.numpy() == ends).all() and np.allclose(held.numbers.x.numpy(), after, 0, 1e-15)
    expected = [total, largest, np.where(total > largest, 1.0, -1.0) - after[1]]
    assert np.allclose(out.numpy(), expected, 0, 1e-14)


BODY = """static void f_0(
    wp::array_t<Numbers_01234567> var_t,
    wp::int32 var_w)
{
    //---------
    // primal vars
    const wp::int32 var_0 = 0;
    Numbers_01234567* var_1;
    wp::array_t<wp::float64>* var_2;
    wp::float64* var_3;
    wp::array_t<wp::float64> var_4;
    wp::int32 var_5;
    wp::float64 var_6;
    wp::float64 var_7;
    //---------
    // forward
    // x = t[0].x[i]                                            <L 1>
    var_1 = wp::address(var_t, var_0);
    var_2 = &(((*wp::address(var_t, var_0))).x);
    var_4 = wp::load(var_2);
    var_3 = wp::address(var_4, var_5);
    {between}
    var_6 = wp::load(var_3);
    var_7 = wp::add(var_6, var_6);
    wp::array_store(var_4, var_5, var_7);
}
"""


@pytest.mark.parametrize(
    ("between", "read"),
    [
        ("var_7 = 1.0;", "var_6 = *wp::address(((*wp::address(var_t, 0)).x), var_5);"),
        ("wp::assign(var_5, var_w);", "var_6 = *var_3;"),  # the place is that of the index before
    ],
)
def test_an_element_is_read_where_its_index_is_the_same(between, read):
    out = shorten(BODY.replace("{between}", f"var_5 = wp::copy(var_w);\n    {between}" if "assign" in between else between))
    lines = [line.strip().replace("((*", "(*").replace("))).x", ")).x").replace("((*", "(*") for line in out.splitlines()]
    assert read.replace("((*", "(*") in lines
    assert not any("var_1" in line or "var_4" in line for line in lines)


def test_what_looks_different_is_left_alone():
    strange = BODY.replace("wp::load", "wp::fetch").replace("// primal vars", "// variables").replace("static ", "")
    assert shorten(strange) == strange


def test_on_a_cpu_long_functions_stay_functions_where_little_is_inlined():
    source = (
        "static void short_0(\n    int a)\n{\n    f(a);\n}\n\nstatic int long_0(\n    int a)\n{\n" + "    f(a);\n" * 30 + "}\n"
    )
    assert shorten(source) == source
    out = shorten(source, apart=True)
    assert "static void short_0(" in out
    assert "static sharnir_apart int long_0(" in out
    assert out.replace("sharnir_apart ", "") == source
