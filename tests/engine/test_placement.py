"""Where specialized code keeps its numbers on a GPU."""

from types import SimpleNamespace

import pytest

from sharnir.engine.tree.placement import FENCE, Placement, read_early, threads

PROGRAM = f"""for (;;) {{
{FENCE}
if (x > real(0.0)) {{
z1_0_0 = z_0_0 - z1_0_0;
}}
z2_0_0 = z1_0_0*z2_0_0;
z_0_0 = z1_1_0;
}}
z_1_0 = z1_0_0;"""


def test_numbers_in_global_memory_are_read_where_a_sweep_begins():
    """All at once, under a name of the sweep; what is read after it was written, or outside of the sweep, stays as it is."""
    found = read_early(PROGRAM, {"z1_0_0", "z2_0_0", "z1_1_0"}).split("\n")
    assert found[2:5] == [f"const real early1_{name} = {name};" for name in ("z1_0_0", "z2_0_0", "z1_1_0")]
    assert found[5:] == [
        "if (x > real(0.0)) {",
        "z1_0_0 = z_0_0 - early1_z1_0_0;",
        "}",
        "z2_0_0 = z1_0_0*early1_z2_0_0;",
        "z_0_0 = early1_z1_1_0;",
        "}",
        "z_1_0 = z1_0_0;",
    ]


def test_what_is_read_by_number_stands_in_shared_memory_one_after_another():
    listed = ["z_0_0", "z_1_0"]
    placed = Placement(PROGRAM, "float", {"z1_0_0"}, set(), listed, parameters=48)
    assert placed.shared[:2] == listed
    assert placed.scratch == ["z1_0_0"]
    assert placed.of_block(32) == 48 + 32 * placed.numbers
    assert Placement(PROGRAM, "float", set(), set(), parameters=1000).parameters == 0  # which stay where they are


@pytest.mark.parametrize(("worlds", "numbers", "expected"), [(131072, 220, 256), (131072, 300, 160), (4096, 220, 32)])
def test_warps_that_find_room_on_a_multiprocessor_are_one_block(worlds, numbers, expected):
    device = SimpleNamespace(max_shared_memory_per_block=232448, sm_count=132)
    assert threads(worlds, numbers, 4, device) == expected
