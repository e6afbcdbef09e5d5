"""The command line: what it says, what it writes, how it ends."""

import importlib.util
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from sharnir.cli import arguments, commands, examples
from sharnir.core import extras
from sharnir.view import plots

PNG = b"\x89PNG\r\n\x1a\n"


def test_info_names_versions_devices_and_every_example(capsys):
    assert arguments.main(["info"]) == 0
    out = capsys.readouterr().out
    for word in ("sharnir", "Warp", "precision", "cpu", *examples.examples()):
        assert word in out
    assert "pendulum" in examples.examples()


@pytest.mark.slow  # `make test` begins with this command
def test_info_compile_says_how_long_it_took(capsys):
    assert arguments.main(["info", "--compile"]) == 0
    assert re.search(r"ready in \d+\.\d s", capsys.readouterr().out)


def test_info_of_an_example_lists_bodies_joints_and_redundant_rows(capsys):
    assert arguments.main(["info", "pendulum"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"bob +dynamic +1 +Sphere", out)
    assert re.search(r"rod +Distance .* world → bob", out)
    assert "redundant rows: none" in out


def test_info_of_a_geared_example_lists_the_gear(capsys):
    assert arguments.main(["info", "cart_flywheel"]) == 0
    assert re.search(r"rack +Gear +ratio 10 +axle ~ rail", capsys.readouterr().out)


def test_run_checks_an_example(capsys):
    assert arguments.main(["run", "pendulum"]) == 0
    assert "pendulum: ok" in capsys.readouterr().out


def test_run_of_a_failing_check_ends_with_1(capsys, monkeypatch):
    class Failing:
        @staticmethod
        def make() -> None: ...

        @staticmethod
        def check(sim: Any) -> None:
            raise AssertionError("too far")

    monkeypatch.setattr(examples, "load", lambda name: Failing)
    assert arguments.main(["run", "pendulum"]) == 1
    assert capsys.readouterr().err == "sharnir: pendulum: the check failed: too far\n"


@pytest.mark.parametrize("command", ["info", "run", "view"])
def test_an_unknown_example_is_told_in_one_line(command, capsys):
    assert arguments.main([command, "perpetuum"]) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1 and "'perpetuum'" in err and "pendulum" in err


@pytest.mark.parametrize(
    "words",
    [[], ["dance"], ["view", "pendulum", "--dt", "-1"], ["view", "pendulum", "--dt", "x"], ["view", "pendulum", "--port", "0"]],
)
def test_wrong_words_end_with_2_and_without_a_traceback(words, capsys):
    assert arguments.main(words) == 2
    err = capsys.readouterr().err
    assert "usage:" in err and "Traceback" not in err


def test_demo_prints_finite_numbers_and_writes_pictures(capsys, tmp_path):
    assert arguments.main(["demo", "--out", str(tmp_path / "new")]) == 0
    out = capsys.readouterr().out
    for name, dt, lost in (("swinging door", 1e-2, 2.5), ("chain", 1e-3, 1.0)):
        line = next(line for line in out.splitlines() if line.startswith(name))
        numbers = [float(word) for word in line[len(name) :].split()]
        assert len(numbers) == len(commands.HEADINGS) - 1 and np.isfinite(numbers).all()
        duration, steps, cost, factor, gap, drift, missed = numbers
        assert steps == round(duration / dt) and cost > 0 and factor > 0
        assert gap < 1e-4 and drift < lost and missed <= steps
    page = (tmp_path / "new" / "machine.html").read_text()
    assert "krt100 trailer" in page and "http://" not in page and str(tmp_path / "new" / "machine.html") in out
    for file in ("door.png", "chain.png"):
        picture = (tmp_path / "new" / file).read_bytes()
        assert picture.startswith(PNG) and len(picture) > 10_000
        assert str(tmp_path / "new" / file) in out


@pytest.mark.parametrize(
    ("words", "package", "extra"), [(["demo"], "matplotlib", "view"), (["view", "pendulum"], "viser", "view")]
)
def test_a_missing_package_is_told_in_one_line(words, package, extra, capsys, monkeypatch):
    real = extras.importlib.import_module

    def without(name: str) -> Any:
        if name.partition(".")[0] == package:
            raise ImportError(name)
        return real(name)

    monkeypatch.setattr(extras.importlib, "import_module", without)
    assert arguments.main(words) == 1
    assert capsys.readouterr().err == f'sharnir: {package} is not installed: pip install "sharnir[{extra}]"\n'


def test_a_plot_of_a_still_thing_has_room(tmp_path):
    time = np.linspace(0, 1, 11)
    path = plots.door(tmp_path / "still.png", time, np.zeros(11), np.zeros(11), 0.0, "at rest")
    assert path.read_bytes().startswith(PNG)


def test_ctrl_c_ends_without_a_traceback(capsys, monkeypatch):
    def interrupted(name: str) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(examples, "load", interrupted)
    assert arguments.main(["run", "pendulum"]) == 130
    assert "Traceback" not in capsys.readouterr().err


SCENE = "import sharnir as sh\nscene = sh.Scene()\nscene.add_body('ball', sh.Sphere(0.1))\n"


@pytest.mark.parametrize(
    ("text", "dt"),
    [
        (SCENE, 1e-3),
        (SCENE + "sim = sh.Simulation(scene, 2e-3)", 2e-3),
        (SCENE + "def build():\n    return scene", 1e-3),
        (SCENE + "def make(dt=5e-3):\n    return sh.Simulation(scene, dt)", 5e-3),
    ],
)
def test_a_file_of_ones_own_is_shown(text, dt, tmp_path, monkeypatch):
    shown = []
    viewer = pytest.importorskip("sharnir.view.viewer", exc_type=ImportError)
    monkeypatch.setattr(viewer, "serve", lambda sim, title, **options: shown.append((sim, title, options)))
    file = tmp_path / "my_scene.py"
    file.write_text(text + "\ndef control(sim):\n    pass\n")
    assert arguments.main(["view", str(file), "--speed", "0.5", "--plot", "sim.energy"]) == 0
    sim, title, options = shown[0]
    assert title == "my scene" and sim.dt == dt and "ball" in sim.model.body_names
    assert callable(options["control"]) and options["speed"] == 0.5 and options["plot"] == ["sim.energy"]
    assert arguments.main(["view", str(file), "--dt", "0.004"]) == 0 and shown[1][0].dt == 0.004


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x = 1\n", "a variable sim or scene"),
        ("import sharnir\nscene = 3\n", "got 3"),
        ("\n\nscene = sh.Scene()\n", "line 3: NameError"),
        ("scene = (\n", "line 1: SyntaxError"),
        (SCENE + "scene.add_body('ball')\n", "line 4: SceneError: the name 'ball' is taken"),
        (SCENE + "def build():\n    return 1 / 0\n", "line 5: ZeroDivisionError"),
        (None, "is not a file"),
    ],
)
def test_a_file_that_holds_no_scene_is_told_in_one_line(text, words, tmp_path, capsys):
    file = tmp_path / "mine.py"
    if text is not None:
        file.write_text(text)
    assert arguments.main(["view", str(file)]) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1 and words in err and str(file) in err


def test_a_robot_is_shown(monkeypatch):
    shown = []
    viewer = pytest.importorskip("sharnir.view.viewer", exc_type=ImportError)
    monkeypatch.setattr(viewer, "serve", lambda sim, title, **options: shown.append(sim))
    assert arguments.main(["view", str(Path(__file__).parents[1] / "data" / "arm.urdf")]) == 0
    assert shown[0].model.joint_names


def test_every_example_says_what_one_sees():
    assert all(examples.summary(path) for path in examples.examples().values())


def test_kernels_are_compiled_for_a_device_into_a_folder(tmp_path, monkeypatch, capsys):
    begun = []

    def run(command, env, check):
        begun.append((command, env))
        return SimpleNamespace(returncode=0)

    monkeypatch.setattr(commands.subprocess, "run", run)
    assert arguments.main(["warmup", "--into", str(tmp_path / "kernels")]) == 0
    (command, env), told = begun[0], capsys.readouterr().out
    assert command[1:] == ["-m", "sharnir", "warmup", "--device", "cpu"]
    assert importlib.util.find_spec(f"{command[2]}.__main__"), "a package is run by its __main__"
    assert env["WARP_CACHE_PATH"] == str(tmp_path / "kernels")
    assert (tmp_path / "kernels").is_dir() and f"WARP_CACHE_PATH={tmp_path / 'kernels'}" in told
    assert arguments.main(["warmup", "--device", "cuda:77"]) != 0
    assert "device 'cuda:77' is not here; available: 'cpu'" in capsys.readouterr().err


COMMANDS = {
    "invalid choice: 'vew'": (["vew", "pendulum"], "; is 'view' meant?"),
    "invalid choice: 'chek'": (["chek", "s.toml"], "; is 'check' meant?"),
    "there is no option --prot": (["view", "pendulum", "--prot", "80"], "; is 'port' meant?"),
    "there is no option --durration": (["run", "pendulum", "--durration", "1"], "; is 'duration' meant?"),
    "no example is named 'penduum'": (["run", "penduum"], "; is 'pendulum' meant?"),
    "invalid choice: 'drak'": (["view", "pendulum", "--theme", "drak"], "; is 'dark' meant?"),
}


@pytest.mark.parametrize("said", COMMANDS)
def test_misspelt_words_of_a_command_line_are_answered_with_what_is_meant(said, capsys):
    words, instead = COMMANDS[said]
    try:
        code = arguments.main(words)
    except SystemExit as end:
        code = end.code
    error = capsys.readouterr().err
    assert code == 2 and said in error and instead in error
