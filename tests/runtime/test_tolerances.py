"""How exactly steps are solved: one object for all solvers; the keywords of the last release warn."""

import dataclasses
import math
import pickle

import pytest

import sharnir as sh
from sharnir.io.scene_file import read_text
from sharnir.runtime.tolerances import gathered


def arm():
    scene = sh.Scene()
    scene.add_body("arm", sh.Box(1, 0.1, 0.1), mass=1.0, position=(0.5, 0, 0))
    scene.add_joint("hinge", sh.Revolute("y"), scene.world, "arm", position=(0, 0, 0))
    return scene


def rope():
    scene = sh.Scene()
    scene.add_rope("r", (0, 0, 0), (1, 0, 0), segments=4, attach=("world", None))
    return scene


def test_every_field_is_optional_and_nothing_can_be_changed():
    assert set(dataclasses.asdict(sh.Tolerances()).values()) == {None}
    with pytest.raises(dataclasses.FrozenInstanceError):
        sh.Tolerances().iterations = 3
    made = sh.Tolerances(iterations=3, tolerance=1e-9)
    assert pickle.loads(pickle.dumps(made)) == made and made.given() == {"iterations": 3, "tolerance": 1e-9}
    assert all(field.name + ":" in sh.Tolerances.__doc__ for field in dataclasses.fields(made))


@pytest.mark.parametrize(
    ("field", "value", "allowed"),
    [
        ("iterations", 0, "a whole number of at least 1"),
        ("iterations", True, "a whole number of at least 1"),
        ("iterations", 2.5, "a whole number of at least 1"),
        ("position_iterations", -1, "a whole number of at least 0"),
        ("rope_iterations", 0, "a whole number of at least 1"),
        ("tolerance", -1.0, "at least 0 N·s"),
        ("tolerance", math.nan, "at least 0 N·s"),
        ("tolerance", "fine", "at least 0 N·s"),
        ("position_tolerance", 0.0, "above 0, m"),
        ("position_tolerance", math.inf, "above 0, m"),
        ("rope_tolerance", 0, "above 0"),
        ("erp", 1.5, "0 < erp ≤ 1"),
        ("erp", 0.0, "0 < erp ≤ 1"),
    ],
)
def test_a_wrong_value_is_refused_with_what_is_allowed(field, value, allowed):
    with pytest.raises(sh.SimulationError, match=f"Tolerances: {field} is .*{allowed}.*got ") as told:
        sh.Tolerances(**{field: value})
    assert str(told.value).endswith(f"got {value!r}")


def test_a_misspelt_field_is_refused_with_what_is_meant():
    with pytest.raises(sh.ArgumentError, match="Tolerances has no argument 'iteratons'; is 'iterations' meant"):
        sh.Tolerances(iteratons=3)
    with pytest.raises(sh.SimulationError, match=r"tolerances is a Tolerances\(…\) or None, got 1e-09"):
        sh.Simulation(arm(), 1e-3, tolerances=1e-9)


def test_they_reach_the_solvers():
    fine = sh.Tolerances(iterations=7, tolerance=1e-9, position_iterations=5, position_tolerance=1e-6)
    solver = sh.Simulation(arm(), 1e-3, tolerances=fine).solver
    assert (solver.iterations, solver.tolerance, solver.closing_iterations) == (7, 1e-9, 5)
    assert solver.settings.tolerance.numpy()[1] == pytest.approx(1e-6)
    coarse = sh.Tolerances(iterations=7, tolerance=0.0, position_iterations=0, erp=0.5)
    solver = sh.Simulation(arm(), 1e-3, solver="sequential", tolerances=coarse).solver
    assert (solver.iterations, solver.tolerance, solver.position_iterations) == (7, 0.0, 0)
    assert solver.settings.erp.numpy()[0] == 0.5
    one, other = (
        sh.Simulation(rope(), 1e-3, tolerances=t) for t in (sh.Tolerances(iterations=9), sh.Tolerances(rope_iterations=9))
    )
    assert one.solver.iterations == other.solver.iterations == 9
    split = sh.Simulation(arm(), 1e-3, worlds=2, device=["cpu", "cpu"], tolerances=sh.Tolerances(iterations=7))
    assert [part.solver.iterations for part in split.parts] == [7, 7]


def test_what_a_solver_does_not_use_is_refused():
    for made, solver, field, words in (
        (arm(), "direct", "erp", "solver 'direct'"),
        (arm(), "sequential", "position_tolerance", "solver 'sequential'"),
        (arm(), "sequential", "rope_iterations", "solver 'sequential'"),
        (rope(), "auto", "erp", "a scene of ropes without joints"),
    ):
        with pytest.raises(sh.SimulationError, match=f"{field!r} is not used by {words}, got 1; it uses iterations, tolerance"):
            sh.Simulation(made, 1e-3, solver=solver, tolerances=sh.Tolerances(**{field: 1}))
    with pytest.raises(sh.SimulationError, match="'rope_tolerance' is of ropes, and the model has none"):
        sh.Simulation(arm(), 1e-3, tolerances=sh.Tolerances(rope_tolerance=1e-6))
    with pytest.raises(sh.SimulationError, match="position_iterations of solver 'direct' is a whole number of at least 1, got 0"):
        sh.Simulation(arm(), 1e-3, tolerances=sh.Tolerances(position_iterations=0))
    with pytest.raises(sh.SimulationError, match=r"tolerance is a finite impulse above 0 N·s, got 0"):
        sh.Simulation(arm(), 1e-3, tolerances=sh.Tolerances(tolerance=0))
    with pytest.raises(sh.SimulationError, match="'rope_iterations' and 'iterations' mean the same"):
        sh.Simulation(rope(), 1e-3, tolerances=sh.Tolerances(iterations=9, rope_iterations=9))


def test_keywords_of_the_last_release_warn_once_and_mean_the_same():
    with pytest.warns(FutureWarning) as told:
        sim = sh.Simulation(arm(), 1e-3, iterations=7, closing_iterations=5, gap=1e-6)
    assert len(told) == 1 and told[0].filename == __file__
    words = "iterations=7, position_iterations=5, position_tolerance=1e-06"
    assert f"write tolerances=sharnir.Tolerances({words}); the former keywords go in 0.4.0" in str(told[0].message)
    assert (sim.solver.iterations, sim.solver.closing_iterations) == (7, 5)
    with pytest.warns(FutureWarning, match=r"Tolerances\(erp=0\.5\)"):
        assert sh.Simulation(arm(), 1e-3, solver="sequential", erp=0.5).solver.settings.erp.numpy()[0] == 0.5
    with pytest.raises(sh.SimulationError, match="iterations=7 beside other tolerances"):
        sh.Simulation(arm(), 1e-3, iterations=7, tolerances=sh.Tolerances(tolerance=1e-9))


def test_keywords_of_a_recording_become_tolerances():
    sim = sh.Simulation(arm(), 1e-3, sleep=False, tolerances=sh.Tolerances(iterations=7, position_tolerance=1e-6))
    assert sim.solver.given == {"sleep": False, "iterations": 7, "gap": 1e-6}
    assert gathered(sim.solver.given) == {"sleep": False, "tolerances": sh.Tolerances(iterations=7, position_tolerance=1e-6)}
    assert gathered({"sleep": False}) == {"sleep": False}


def test_a_scene_file_holds_them(tmp_path):
    text = '[simulation]\ndt = 1e-3\ntolerances = {type = "Tolerances", iterations = 7}\n'
    text += '[body.a]\nshape = {type = "Sphere", radius = 1}\nmass = 1.0\n'
    scene = read_text(text, "a.toml")
    assert scene.options["tolerances"] == sh.Tolerances(iterations=7)
    assert sh.Simulation(scene, **scene.options).solver.iterations == 7
    scene.save(tmp_path / "again.toml")
    assert sh.load_scene(tmp_path / "again.toml").options == scene.options


def test_a_study_gives_them_to_its_runs():
    given = {"duration": 0.01, "dt": 1e-3, "workers": 1, "solver": "sequential"}
    words = {"joint/hinge.friction": [0.1, 0.2]}, lambda sim: {"cap": [sim.solver.iterations] * sim.worlds}
    found = sh.run_study(arm(), *words, tolerances=sh.Tolerances(iterations=9), **given)
    assert list(found["cap"]) == [9, 9]
