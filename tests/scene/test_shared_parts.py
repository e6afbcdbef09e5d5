"""Parts that several bodies or ropes have in common stand for the arguments of their fields."""

import numpy as np
import pytest

import sharnir as sh

RUBBER = sh.Material(friction=0.9)


def test_parts_are_what_their_fields_say(tmp_path):
    inertia, collider = sh.Inertia(2.0, (0.1, 0.2, 0.3), com=(0, 0, 0.1)), sh.Collider(sh.Sphere(0.2), material=RUBBER, group=2)
    visual, steel = (
        sh.Visual(sh.Box(0.1, 0.2, 0.3), color="#ff0000"),
        sh.Rope(radius=0.02, mass_per_length=0.5, EI=3.0),
    )
    made, said = sh.Scene(), sh.Scene()
    made.add_body("a", sh.Box(1, 1, 1), inertia=inertia, collision=collider, visual=visual, position=(1, 0, 0))
    made.add_rope("r", (1, 0, 3), (1, 0, 0.5), like=steel, segments=9, attach=("world", "a"))
    said.add_body(
        "a", sh.Box(1, 1, 1), mass=2.0, inertia=(0.1, 0.2, 0.3), com=(0, 0, 0.1), collision=sh.Sphere(0.2), material=RUBBER,
        group=2, visual=sh.Box(0.1, 0.2, 0.3), color="#ff0000", position=(1, 0, 0),
    )  # fmt: skip
    said.add_rope("r", (1, 0, 3), (1, 0, 0.5), radius=0.02, mass_per_length=0.5, segments=9, EI=3.0, attach=("world", "a"))
    files = [tmp_path / "made.toml", tmp_path / "said.toml"]
    for scene, file in zip((made, said), files, strict=True):
        scene.save(file)
    assert len({file.read_text() for file in files}) == 1
    assert made.bodies["a"].mass == 2.0
    np.testing.assert_array_equal(made.bodies["a"].inertia, np.diag((0.1, 0.2, 0.3)))


def test_mistakes_with_parts():
    scene = sh.Scene()
    with pytest.raises(sh.ArgumentError, match=r"mass is given twice, by inertia=Inertia\(mass=…\) and by mass="):
        scene.add_body("a", mass=1.0, inertia=sh.Inertia(2.0, (1, 1, 1)))
    with pytest.raises(sh.ArgumentError, match=r"Scene\.add_body: visual cannot be a Collider; pass it as collision="):
        scene.add_body("a", sh.Sphere(0.1), visual=sh.Collider(sh.Sphere(0.1)))
    with pytest.raises(sh.ArgumentError, match="Rope has no argument 'mass'"):
        sh.Rope(mass=1.0)
    assert list(scene.bodies) == ["world"]
