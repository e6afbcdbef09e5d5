"""Modules under the names of the last release: they warn, and are those at the new place."""

import importlib
import sys

import pytest

FORMER = {
    "sharnir.machines.krt100": "sharnir.machine_models.krt100",
    "sharnir.machines.cast": "sharnir.runtime.raycast_wheels",
    "sharnir.realtime.loop": "sharnir.trainer.loop",
    "sharnir.realtime.beside": "sharnir.trainer.session",
    "sharnir.exercises.three": "sharnir.trainer.exercises.three",
    "sharnir.failures": "sharnir.trainer.failures",
    "sharnir.sweeps.run": "sharnir.study.run",
    "sharnir.spatial": "sharnir.core.spatial",
    "sharnir.terrain": "sharnir.geometry.terrain",
}


@pytest.mark.parametrize(("old", "new"), FORMER.items(), ids=FORMER)
def test_a_former_module_warns_and_gives_the_one_at_its_new_place(old, new):
    package = ".".join(old.split(".")[:2])
    for name in [
        m for m in sys.modules if m == package or m.startswith(package + ".") or m == package.replace(".", ".former.", 1)
    ]:
        del sys.modules[name]
    with pytest.warns(FutureWarning, match=f"{package} is now sharnir") as told:
        former = importlib.import_module(old)
    assert len(told) == 1
    place = importlib.import_module(new)
    public = [name for name in vars(place) if not name.startswith("_")]
    assert public and all(getattr(former, name) is getattr(place, name) for name in public)


def test_a_warning_of_a_former_module_names_the_callers_file():
    sys.modules.pop("sharnir.failures", None)
    sys.modules.pop("sharnir.former.failures", None)
    with pytest.warns(FutureWarning) as told:
        import sharnir.failures  # noqa: F401
    assert told[0].filename == __file__
