"""Sweeps: the same table whatever runs them, whatever is killed; what cannot be run is told."""

import os
import re
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import sharnir as sh
from sharnir.study import executors
from sharnir.study.design import design
from sharnir.study.job import Runner
from sharnir.study.run import _job, _part

INERTIA = 20.0 * (0.9**2 / 3 + 0.04**2 / 12)  # kg·m², of a door of 20 kg about its hinge


def door(friction=5.0):
    scene = sh.Scene()
    scene.add_body("door", sh.Box(0.9, 0.04, 2.0), mass=20.0, position=(0.45, 0, 1))
    hinge = sh.Revolute("z", limit=(0, 2.0), friction=friction)
    scene.add_joint("hinge", hinge, scene.world, "door", position=(0, 0, 1))
    return scene


def squares(x, seed):
    """A measure that needs no simulation."""
    return {"square": x * x, "draw": [np.random.default_rng(s).random() for s in seed]}


def slow_squares(x):
    time.sleep(0.2)
    return {"square": x * x, "worker": np.full(len(x), float(os.getpid()))}


def same(a, b):
    assert a.names == b.names
    return all(a[name].tobytes() == b[name].tobytes() for name in a.names if name != "failed") and a.failed == b.failed


DOOR = {"joint/hinge.friction": (2.0, 10.0, 4), "body/door.mass": [10.0, 20.0, 40.0], "joint/hinge.qd": [1.5]}


def test_a_coasting_door_stops_where_its_friction_says():
    """θ = ½ I ω²/M, by a grid in one process; a run whose mass is refused is a row that says so."""
    vary = DOOR | {"body/door.mass": [10.0, 20.0, 40.0, -1.0]}
    measure = ["joint/hinge.q", "max(joint/hinge.qd)", "body/door.position"]
    found = sh.run_study(door(), vary, measure, duration=1.2, dt=0.005, chunk=10, workers=1)
    assert len(found) == 16 and found.measured[2:] == [f"body/door.position[{k}]" for k in range(3)]
    mass, friction = found["body/door.mass"], found["joint/hinge.friction"]
    good = mass > 0
    coasts = INERTIA * mass / 20.0 * 1.5 / friction
    angle = INERTIA * mass / 20.0 * 1.5**2 / 2 / friction
    moving = 1.5 * 1.2 - 0.5 * friction / (INERTIA * mass / 20.0) * 1.2**2
    with np.errstate(invalid="ignore"):
        expected = np.where(coasts < 1.2, angle, moving)
    off = np.abs(found["joint/hinge.q"] - expected)[good & (expected < 2.0)]
    print(f"angle at rest, or after 1.2 s: off by at most {off.max():.1e} rad (tolerance 1e-4) in {len(off)} runs")
    assert len(off) >= 8 and off.max() < 1e-4
    assert np.allclose(found["max(joint/hinge.qd)"][good], 1.5, atol=1e-12)
    assert set(found.failed) == set(np.flatnonzero(~good)) and "mass (kg)" in found.failed[3] and "-1" in found.failed[3]
    assert np.isnan(found["joint/hinge.q"][~good]).all()
    assert found.best("joint/hinge.q")["body/door.mass"] == 10.0


@pytest.mark.slow
def test_what_one_chunk_did_is_not_seen_in_the_next():
    """Chunks in another order, each after another one in the same process, give the same bits."""
    columns = design(DOOR, "grid", None, 0)
    job = _job(door(), tuple(columns), "joint/hinge.q", 0.3, 0.01, 1, 4, {})
    parts = [_part(k, 4, columns, np.arange(12)) for k in range(3)]
    one, other = Runner(job), Runner(job)
    forth = [one.rows(part)["joint/hinge.q"].tobytes() for part in parts]
    back = [other.rows(part)["joint/hinge.q"].tobytes() for part in reversed(parts)]
    assert forth == back[::-1]


def test_designs():
    grid = design({"a": "0:1:3", "b": [5, 6]}, "grid", None, 0)
    assert grid["a"].tolist() == [0, 0, 0.5, 0.5, 1, 1] and grid["b"].tolist() == [5, 6] * 3
    assert np.allclose(design({"a": "0.1:10:3:log"}, "list", None, 0)["a"], [0.1, 1, 10])
    for sampling in ("random", "sobol", "latin"):
        a, b = (design({"a": (2.0, 4.0), "b": "1:100:log", "c": [1, 2]}, sampling, 100, seed) for seed in (3, 3))
        other = design({"a": (2.0, 4.0), "b": "1:100:log", "c": [1, 2]}, sampling, 100, 4)
        assert all((a[k] == b[k]).all() for k in a) and not (a["a"] == other["a"]).all()
        assert a["a"].min() >= 2 and a["a"].max() < 4 and set(a["c"]) == {1.0, 2.0} and 0.3 < (a["b"] < 10).mean() < 0.7
        cells = np.bincount(((a["a"] - 2) * 50).astype(int), minlength=100)
        print(f"{sampling}: at most {cells.max()} of 100 values in a hundredth of the range")
        assert sampling != "latin" or (cells == 1).all()


def test_processes_files_and_seeds_give_the_same_table(tmp_path):
    vary = {"x": (0.0, 1.0)}
    one = sh.run_study(squares, vary, runs=100, sampling="sobol", repeats=2, seed=7, chunk=16, workers=1)
    file = tmp_path / "r.parquet"
    two = sh.run_study(squares, vary, runs=100, sampling="sobol", repeats=2, seed=7, chunk=16, workers=2, out=file)
    assert same(one, two) and len(one) == 200 and len(np.unique(one["seed"])) == 200 and len(np.unique(one["x"])) == 100
    assert not file.with_name("r.parquet.parts").exists()
    was = file.read_bytes()
    again = sh.run_study(squares, vary, runs=100, sampling="sobol", repeats=2, seed=7, chunk=16, out=file)
    assert same(one, again) and file.read_bytes() == was
    with pytest.raises(sh.SimulationError, match=r"r.parquet holds another study \(other: seed, values\)"):
        sh.run_study(squares, vary, runs=100, sampling="sobol", repeats=2, seed=8, chunk=16, out=file)
    assert file.read_bytes() == was


@pytest.mark.slow
def test_a_killed_worker_loses_nothing_and_doubles_nothing():
    """kill -9 in mid-chunk: the chunk is begun anew by another process."""
    columns = {"x": np.arange(40.0)}
    job = _job(slow_squares, ("x",), None, None, None, 1, 4, {})
    parts = [_part(k, 4, columns, np.arange(40)) for k in range(10)]
    killed, rows = [], []

    def watch(ids):
        fresh = [i for i in ids if i not in killed]
        if fresh and len(killed) < 2:
            killed.append(fresh[0])
            threading.Timer(0.1, os.kill, (fresh[0], signal.SIGKILL)).start()

    for part, table in executors.local(executors.packed(job), parts, 2, watch):
        rows += list(zip([part.number] * 4, table["run"], table["square"], table["worker"], table["failed"], strict=True))
    rows.sort()
    workers = {row[3] for row in rows} | set(map(float, killed))  # who is killed early has no rows
    print(f"{len(killed)} of {len(workers)} workers killed; {len(rows)} rows")
    assert len(killed) == 2 and len(workers) >= 3
    assert [row[1] for row in rows] == list(range(40)) and [row[2] for row in rows] == [x * x for x in range(40)]
    assert not any(row[4] for row in rows)


def test_a_study_that_was_stopped_goes_on_to_the_same_file(tmp_path):
    def stopped(done, total):
        if done >= 48:
            raise KeyboardInterrupt

    given = {"vary": {"x": (0.0, 1.0, 100)}, "chunk": 16, "workers": 1}
    whole = sh.run_study(squares, **given, out=tmp_path / "whole.parquet")
    with pytest.raises(KeyboardInterrupt):
        sh.run_study(squares, **given, out=tmp_path / "r.parquet", progress=stopped)
    kept = sorted(p.name for p in (tmp_path / "r.parquet.parts").glob("chunk*"))
    calls = []
    sh.run_study(squares, **given, out=tmp_path / "r.parquet", progress=lambda done, total: calls.append(done))
    assert len(kept) == 3 and calls[0] == 48 and calls[-1] == 100
    assert (tmp_path / "r.parquet").read_bytes() == whole.path.read_bytes()


def broken(sim):
    return 1.0 / 0.0


def short(sim):
    return np.zeros(1)


BAD = {
    "no such joint": ({"joint/hing.friction": [1.0]}, {}, "no joint is named 'hing'; available: 'hinge'"),
    "no such value": (
        {"joint/hinge.frction": [1.0]}, {}, "'joint/hinge.frction' is not there, or the same in all worlds; allowed: "
    ),
    "read only": ({"joint/hinge.stuck": [1.0]}, {}, "'joint/hinge.stuck' is read, not set"),
    "one for all worlds": ({"body/door.com_local[0]": [0.0]}, {}, "'body/door.com_local[0]' cannot be one number a world"),
    "one step for all": ({"sim.dt": [0.1]}, {}, "'sim.dt' is not there, or the same in all worlds; allowed: gravity, wind"),
    "no law": ({"joint/hinge.friction.wet": [1.0]}, {}, "'joint/hinge.friction.wet': a friction has static, dynamic, load"),
    "no word": ({"hinge friction": [1.0]}, {}, "'hinge friction' is not a kind/name.value"),
    "a name nobody takes": ({"gain": [1.0]}, {}, "'gain' is not a kind/name.value, and there is no function that could take it"),
    "empty list": ({"joint/hinge.friction": []}, {}, "'joint/hinge.friction' takes a list of numbers"),
    "empty range": ({"joint/hinge.friction": (2.0, 2.0, 5)}, {}, "with low < high"),
    "no count": ({"joint/hinge.friction": (1.0, 2.0)}, {}, "without a count"),
    "nothing varies": ({}, {}, "vary is a dict"),
    "no runs": ({"joint/hinge.friction": (1.0, 2.0)}, {"sampling": "sobol"}, "sampling='sobol' needs runs="),
    "sampling": ({"joint/hinge.friction": [1.0]}, {"sampling": "sobl"}, "sampling is one of 'grid'"),
    "executor": ({"joint/hinge.friction": [1.0]}, {"executor": "dask"}, "executor is one of 'local', 'ray', got 'dask'"),
    "workers": ({"joint/hinge.friction": [1.0]}, {"workers": 0}, "workers is a whole number of at least 1, got 0"),
    "measure": ({"joint/hinge.friction": [1.0]}, {"measure": "joint/hinge.w"}, "joint 'hinge' has no 'w'"),
    "no duration": ({"joint/hinge.friction": [1.0]}, {"duration": None}, "duration= in s"),
    "raises": ({"joint/hinge.friction": [1.0]}, {"measure": broken}, "'broken' raised ZeroDivisionError: "),
    "shape": ({"joint/hinge.friction": [1.0]}, {"measure": short}, "'short' gives one number a world (64,), got (1,)"),
}  # fmt: skip


@pytest.mark.parametrize("what", BAD)
def test_a_mistake_is_refused_by_name(what):
    vary, given, told = BAD[what]
    given = {"measure": "joint/hinge.q", "duration": 0.01, "dt": 0.01, "workers": 1} | given
    with pytest.raises(sh.SimulationError, match=re.escape(told)):
        sh.run_study(door(), vary, **given)


def test_a_measure_that_raises_leaves_what_was_written(tmp_path):
    def picky(x):
        if x.max() > 60:
            raise ValueError("too much")
        return {"y": x}

    with pytest.raises(sh.SimulationError, match=r"'picky' raised ValueError: too much .* in runs 60 to 79"):
        sh.run_study(picky, {"x": (0.0, 99.0, 100)}, chunk=20, workers=1, out=tmp_path / "r.parquet")
    assert len(list((tmp_path / "r.parquet.parts").glob("chunk*.parquet"))) == 3


def test_plots_and_report(tmp_path):
    found = sh.run_study(lambda a, b: {"y": a * b, "z": a - b}, {"a": (0.0, 1.0, 9), "b": (1.0, 2.0, 5)}, workers=1)
    for kind in ("curves", "heat", "parallel"):
        assert found.plot(kind, tmp_path / f"{kind}.png").stat().st_size > 3000
    text = found.report(tmp_path / "r.html", "A <title>").read_text()
    assert text.count("<img") == 6 and "A &lt;title&gt;" in text and "45 runs, 0 failed" in text and "http" not in text
    with pytest.raises(sh.SimulationError, match="'w' was not measured; there are: y, z"):
        found.plot("heat", measure="w")


FILE = """
import sharnir as sh

scene = sh.Scene()
scene.add_body("door", sh.Box(0.9, 0.04, 2.0), mass=20.0, position=(0.45, 0, 1))
scene.add_joint("hinge", sh.Revolute("z", limit=(0, 2.0), friction=5.0), scene.world, "door", position=(0, 0, 1))


def angle(sim):
    return sim.joint("hinge").position
"""


def test_the_command(tmp_path, capsys, monkeypatch):
    from sharnir.cli.arguments import main

    monkeypatch.chdir(tmp_path)
    (tmp_path / "door_of_mine.py").write_text(FILE)
    words = ["study", "door_of_mine.py", "--vary", "joint/hinge.friction=2:10:3", "--vary", "joint/hinge.qd=1.5"]
    words += ["--measure", "angle", "--measure", "max(joint/hinge.qd)", "--duration", "0.1", "--dt", "0.01", "--report", "r.html"]
    assert main(words) == 0
    told = capsys.readouterr().out
    assert "results.parquet: 3 runs, 0 failed" in told and "angle" in told and (tmp_path / "r.html").exists()
    assert main(["study", "door_of_mine.py", "--vary", "joint/hing.q=1,2", "--measure", "angle", "--duration", "1"]) == 1
    assert "no joint is named 'hing'" in capsys.readouterr().err
    assert main(["study", "door_of_mine.py", "--vary", "0.1:2", "--measure", "angle"]) == 2
    assert "--vary takes WORD=VALUES" in capsys.readouterr().err


def test_an_example_by_its_name(tmp_path, capsys, example):
    """The runs are those of its own simulation, told the same."""
    from sharnir.cli.arguments import main

    out, words = tmp_path / "dry.parquet", ["--measure", "joint/hinge.q", "--duration", "0.1"]
    assert main(["study", "dry_pendulum", "--vary", "joint/hinge.friction=0.1,0.4", "--out", str(out), *words]) == 0
    assert "2 runs, 0 failed" in capsys.readouterr().out
    found = pytest.importorskip("pyarrow.parquet").read_table(out)["joint/hinge.q"].to_numpy()
    for friction, angle in zip((0.1, 0.4), found, strict=True):
        sim = example("dry_pendulum").make()
        sim.joint("hinge").friction = friction
        sim.run(0.1)
        assert sim.joint("hinge").position == angle
    assert main(["study", "swinging_door", "--vary", "joint/hinge.friction=1,2", *words]) == 2
    assert "control(sim), which a study of its scene would not call" in capsys.readouterr().err


SLOW_SCRIPT = """
import sys, time
import sharnir as sh

def squares(x):
    time.sleep(0.1)
    return {"square": x * x}

sh.run_study(squares, {"x": (0.0, 1.0, 400)}, chunk=10, workers=2, out=sys.argv[1])
"""


@pytest.mark.slow
def test_a_study_killed_with_9_goes_on_to_the_same_file(tmp_path):
    """The driver itself dies, workers and all, wherever it stands; the same script again ends with the same bytes."""
    script = tmp_path / "script.py"
    script.write_text(SLOW_SCRIPT)

    def start(name):
        return subprocess.Popen([sys.executable, str(script), str(tmp_path / name)])

    assert start("whole.parquet").wait() == 0
    kept, killed = 0, 0
    for _ in range(5):
        process = start("r.parquet")
        parts = tmp_path / "r.parquet.parts"
        while process.poll() is None and len(list(parts.glob("chunk*.parquet"))) < kept + 5:
            time.sleep(0.01)
        process.kill()
        killed += process.wait() == -signal.SIGKILL
        kept = len(list(parts.glob("chunk*.parquet")))
    assert start("r.parquet").wait() == 0
    print(f"killed {killed} times, the last with {kept} of 40 chunks")
    assert killed == 5 and (tmp_path / "r.parquet").read_bytes() == (tmp_path / "whole.parquet").read_bytes()


@pytest.mark.slow
def test_the_memory_of_the_driver_is_flat_over_a_million_rows(tmp_path):
    code = "import sys, resource, sharnir as sh\n"
    code += (
        "sh.run_study(lambda x: {'y': x * x, 'z': -x}, {'x': (0.0, 1.0)}, runs=int(sys.argv[1]), sampling='random', workers=1,\n"
    )
    code += "         chunk=1000, out=sys.argv[2])\nprint(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)\n"
    sizes = []
    for runs in (100_000, 1_000_000):
        out = str(tmp_path / f"{runs}.parquet")
        sizes.append(float(subprocess.run([sys.executable, "-c", code, str(runs), out], capture_output=True, check=True).stdout))
    print(
        f"largest memory of the driver: {sizes[0]:.0f} MB at 10⁵ rows, {sizes[1]:.0f} MB at 10⁶ (values and seeds are 16 B a row)"
    )
    assert sizes[1] - sizes[0] < 150


def test_names_of_the_last_release_warn(capsys):
    from sharnir.cli.arguments import main

    with pytest.warns(FutureWarning, match=r"sharnir\.sweep is now sharnir\.run_study; .* 0\.4\.0") as told:
        assert sh.sweep is sh.run_study
    assert len(told) == 1 and told[0].filename == __file__
    with pytest.warns(FutureWarning, match=r"sharnir\.SweepResult is now sharnir\.StudyResult"):
        assert sh.SweepResult is sh.StudyResult
    assert main(["sweep", "door_of_mine.py", "--vary", "0.1:2", "--measure", "angle"]) == 2
    assert "the command sweep is now study; the former name goes in 0.4.0" in capsys.readouterr().err
