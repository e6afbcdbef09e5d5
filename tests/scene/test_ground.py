"""Ground made by formulas, seeds, images and files, and maps of friction."""

import numpy as np
import pytest

import sharnir as sh
from sharnir.geometry import terrain

G = 9.81


def test_fields_have_the_heights_their_formulas_say():
    size = (8.0, 4.0)
    hill = terrain.hill(size=size, height=2.0, radius=3.0, at=(1.0, 0.0))
    assert hill.heights.shape == (81, 41)
    assert hill.height_at(1.0, 0.0) == pytest.approx(2.0) and hill.height_at(2.5, 0.0) == pytest.approx(1.0, abs=1e-9)
    assert hill.height_at(-3.0, 0.0) == 0.0
    ramp = terrain.ramp(size=size, slope=0.3, start=-2.0, length=3.0)
    assert ramp.height_at(-3.0, 1.0) == 0.0 and ramp.height_at(3.0, 1.0) == pytest.approx(3.0 * np.tan(0.3))
    assert ramp.height_at(-0.5, 0.0) == pytest.approx(1.5 * np.tan(0.3), abs=1e-9)
    ridge = terrain.ridge(size=size, height=1.0, length=4.0)
    assert ridge.height_at([0.0, 1.0, 2.0], 0.0) == pytest.approx([1.0, 0.5, 0.0], abs=1e-9)
    waves = terrain.waves(size=size, height=0.2, length=2.0)
    assert waves.height_at([0.0, 1.0], 0.0) == pytest.approx([0.0, 0.2])
    both = hill + ramp
    assert both.height_at(1.0, 0.0) == pytest.approx(2.0 + 3.0 * np.tan(0.3))
    assert (terrain.flat(size=size).heights == 0).all()


def test_rubble_is_that_of_its_seed():
    a, b, c = (terrain.rubble(size=(6, 6), height=0.3, seed=s) for s in (1, 1, 2))
    assert (a.heights == b.heights).all() and not np.allclose(a.heights, c.heights)
    assert a.heights.min() == 0.0 and a.heights.max() == pytest.approx(0.3)
    steep = np.abs(np.diff(a.heights, axis=0)).max()
    fine = terrain.rubble(size=(6, 6), height=0.3, grain=0.01, seed=1).heights
    assert steep < 0.5 * np.abs(np.diff(fine, axis=0)).max()


def test_stairs_carry_a_ball_on_every_step():
    scene = sh.Scene()
    scene.add_body("stairs", terrain.stairs(rise=0.17, tread=0.29, count=4, width=1.0), motion="fixed", collide=True)
    for k in range(4):
        scene.add_body(f"ball {k}", sh.Box(0.1, 0.1, 0.1), mass=1.0, position=(0.29 * (k + 0.5), 0.0, 0.17 * (k + 1) + 0.06))
    sim = sh.Simulation(scene, 0.002)
    sim.step(400)
    heights = [sim.body(f"ball {k}").position[2] for k in range(4)]
    print(f"boxes on steps: {np.round(heights, 6)} m")
    assert heights == pytest.approx([0.17 * (k + 1) + 0.05 for k in range(4)], abs=1e-4)


@pytest.mark.parametrize("solver", ["sequential", "direct"])
def test_friction_of_a_map_is_that_of_the_cell(solver):
    """A block on a slope: μ of its cell decides whether it stays, and how fast it goes."""
    angle = 0.4
    speeds = []
    for mu in (0.2, 0.4):
        scene = sh.Scene(gravity=(G * np.sin(angle), 0.0, -G * np.cos(angle)))
        ground = terrain.flat(size=(20, 4), step=0.5).with_friction(lambda x, y, mu=mu: mu if y > 0 else 0.9)
        scene.add_terrain("ground", ground, material=sh.Material(friction=0.5))
        scene.add_body("slides", sh.Box(0.3, 0.3, 0.1), mass=2.0, position=(0, 1, 0.05), material=sh.Material(friction=0.5))
        scene.add_body("stays", sh.Box(0.3, 0.3, 0.1), mass=2.0, position=(0, -1, 0.05), material=sh.Material(friction=0.5))
        sim = sh.Simulation(scene, 0.001, solver=solver)
        sim.step(1000)
        assert abs(sim.body("stays").velocity[0]) < 1e-6
        speeds.append(sim.body("slides").velocity[0])
    expected = [G * (np.sin(angle) - np.sqrt(mu * 0.5) * np.cos(angle)) for mu in (0.2, 0.4)]
    print(f"{solver}: speed after 1 s {speeds[0]:.5f} m/s, closed form {expected[0]:.5f}; with μ = 0.4 it stays: {speeds[1]:.1e}")
    assert speeds[0] == pytest.approx(expected[0], rel=2e-3)
    assert expected[1] < 0 and abs(speeds[1]) < 1e-6


def test_files_and_images(tmp_path):
    z = np.arange(12.0).reshape(4, 3)
    np.save(tmp_path / "z.npy", z)
    np.savetxt(tmp_path / "z.csv", z, delimiter=",")
    np.savetxt(tmp_path / "z.txt", z)
    for name in ("z.npy", "z.csv", "z.txt"):
        assert (terrain.from_file(tmp_path / name, size=(3, 2)).heights == z).all()
    image = pytest.importorskip("PIL.Image")
    image.fromarray(np.array([[0, 255, 51], [0, 0, 102]], np.uint8)).save(tmp_path / "z.png")
    made = terrain.from_file(tmp_path / "z.png", size=(3, 2), height=5.0)
    assert made.heights == pytest.approx(np.array([[0, 0], [0, 5], [2, 1]]))  # x to the right, y upwards


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: terrain.hill(size=(1, 0), height=1, radius=1), "size.*0"),
        (lambda: terrain.hill(size=3, height=1, radius=1), r"size is \(x, y\).*3"),
        (lambda: terrain.hill(size=(1, 1), height=np.nan, radius=1), "height.*nan"),
        (lambda: terrain.rubble(size=(1e4, 1e4), height=1), "larger step"),
        (lambda: terrain.stairs(rise=0.1, tread=0.3, count=0, width=1), "count.*0"),
        (lambda: terrain.from_array([[1, 2, 3]], size=(1, 1)), r"\(1, 3\)"),
        (lambda: terrain.from_file("nothing.npy", size=(1, 1)), "nothing.npy"),
        (lambda: terrain.from_file("nothing.png", size=(1, 1)), "height="),
        (lambda: terrain.flat(size=(1, 1)) + terrain.flat(size=(2, 1)), "same grid"),
        (lambda: terrain.flat(size=(1, 1)).with_friction(-1.0), "at least 0.*-1"),
        (lambda: terrain.flat(size=(1, 1)).with_friction(np.ones((2, 2))), r"\(10, 10\).*\(2, 2\)"),
        (lambda: sh.Scene().add_terrain("t", np.zeros((3, 3)), size=(1, 1), friction=np.ones((3, 3))), r"\(2, 2\).*\(3, 3\)"),
        (lambda: sh.Scene().add_terrain("t", np.zeros((3, 3))), "size is"),
    ],
)
def test_nonsense_is_refused(make, words):
    with pytest.raises(sh.SceneError, match=words):
        make()
