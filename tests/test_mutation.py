"""Mutated files and the memory they take: accepted or refused by a named error, never a crash, a hang or a raw Python error."""

import json
import os
import pathlib
import subprocess
import sys

import mutation
import pytest

from sharnir.runtime import snapshots

HERE = pathlib.Path(__file__).parent
NEEDS = {"mjcf": "mujoco", "recording": "zstandard"}


@pytest.mark.parametrize(("entry", "count"), [("checkpoint", 12), ("recording", 40), ("scene", 20), ("mjcf", 40), ("urdf", 40)])
def test_mutated_files_are_accepted_or_refused(entry, count, tmp_path):
    if entry in NEEDS:
        pytest.importorskip(NEEDS[entry])
    accepted, refused, longest = mutation.run(entry, count, folder=tmp_path)
    print(f"{count} mutated files ({entry}): {accepted} accepted, {refused} refused; the longest took {longest:.2f} s")
    assert refused > 0.3 * count


@pytest.mark.slow
@pytest.mark.parametrize("entry", list(mutation.ENTRIES))
def test_ten_thousand_mutated_files(entry):
    """In a process of its own, so that a crash is seen and memory is that of this entry point alone."""
    if entry in NEEDS:
        pytest.importorskip(NEEDS[entry])
    words = [sys.executable, str(HERE / "mutation.py"), entry, "10000", "1000"]
    path = os.pathsep.join([str(HERE.parent), str(HERE), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(words, capture_output=True, text=True, timeout=7200, env=os.environ | {"PYTHONPATH": path})
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    print(f"10000 mutated files ({entry}): {found}")
    assert found["accepted"] + found["refused"] == 10_000 and found["refused"] > 3000 and found["accepted"] > 100
    assert found["peak_MB"] < 1000


@pytest.mark.parametrize("sim", [mutation.door, lambda: mutation.cart("direct")], ids=["door", "cart"])
def test_every_whole_number_of_a_snapshot_has_a_range(sim):
    """Kernels use them as counts and indices: a new field needs an entry in `snapshots.whole_number_ranges`."""
    made = sim()
    whole = {name for name, values in snapshots.values_of(made).items() if values.dtype.kind != "f"}
    assert whole <= set(snapshots.whole_number_ranges(made)), whole - set(snapshots.whole_number_ranges(made))
