"""Recording: what is written is what was, at the times that were asked for; films without a screen."""

import csv

import numpy as np
import pytest

import sharnir as sh
from sharnir.core.extras import MissingExtra


def swing(**options):
    scene = sh.Scene(gravity=(0, 0, -10))
    scene.add_body("a", sh.Box(0.2, 0.1, 0.1), mass=1.0, position=(0.5, 0, 0))
    scene.add_joint("arm/1", sh.Revolute("y"), scene.world, "a", position=(0, 0, 0))
    scene.add_body("b", sh.Sphere(0.1), mass=1.0, position=(1.0, 0, 0))
    scene.add_joint("arm/2", sh.Revolute("y"), "a", "b", position=(0.75, 0, 0))
    scene.add_frame("tip", "b", position=(0.1, 0, 0))
    return sh.Simulation(scene, 1e-3, **options)


def test_a_log_has_what_steps_one_by_one_show():
    sim, twin = swing(), swing()
    with sim.record("joint/arm/*.q", "body/b.position", "frame/tip.velocity", "sim.energy", every=10) as log:
        sim.run(0.3)
        for _ in range(15):
            sim.step()
    assert log.names == ["joint/arm/1.q", "joint/arm/2.q", "body/b.position", "frame/tip.velocity", "sim.energy"]
    assert np.allclose(log.time, np.arange(32) * 0.01)
    q, x, e = [twin.joint("arm/2").position], [twin.body("b").position], [twin.energy().total]
    for _ in range(31):
        twin.step(10)
        q.append(twin.joint("arm/2").position)
        x.append(twin.body("b").position)
        e.append(twin.energy().total)
    assert np.array_equal(log["joint/arm/2.q"], q) and np.array_equal(log["body/b.position"], x)
    assert np.allclose(log["sim.energy"], e, rtol=1e-13)
    sim.step(50)
    assert len(log) == 32, "nothing is recorded outside"
    drift = np.ptp(log["sim.energy"])
    print(f"energy drifts by {drift:.1e} J in {log.time[-1]:g} s; {log!r}")


def test_a_log_is_written_and_read_back(tmp_path):
    sim = swing(worlds=3)
    with sim.record("joint/*.q", "joint/arm/1.reaction", every=0.01) as log:
        sim.run(0.05)
    assert log["joint/arm/1.q"].shape == (6, 3) and log["joint/arm/1.reaction"].shape == (6, 3, 6)
    with log.to_csv(tmp_path / "new" / "a.csv").open() as stream:
        rows = list(csv.reader(stream))
    assert rows[0][:4] == ["time", "joint/arm/1.q[0]", "joint/arm/1.q[1]", "joint/arm/1.q[2]"] and len(rows) == 7
    assert [float(row[2]) for row in rows[1:]] == log["joint/arm/1.q"][:, 1].tolist()
    back = np.load(log.to_npz(tmp_path / "a.npz"))
    assert np.array_equal(back["joint/arm/1.reaction"], log["joint/arm/1.reaction"]) and np.array_equal(back["time"], log.time)
    try:
        import pyarrow.parquet as parquet
    except ImportError:
        with pytest.raises(MissingExtra, match=r"pip install \"sharnir\[record\]\""):
            log.to_parquet(tmp_path / "a.parquet")
    else:
        table = parquet.read_table(log.to_parquet(tmp_path / "a.parquet"))
        assert table["time"].to_pylist() == log.time.tolist()


def test_a_reeled_rope_is_recorded_whatever_its_segments(tmp_path):
    scene = sh.Scene()
    scene.add_body("load", sh.Box(0.2, 0.2, 0.2), mass=10.0, position=(0, 0, -1.1))
    scene.add_rope("r", (0, 0, 0), (0, 0, -1), segments=5, mass_per_length=0.1, attach=("world", "load"), reel="start", longest=4)
    sim = sh.Simulation(scene, 5e-3)
    sim.rope("r").reel_speed = 0.5
    with sim.record("rope/r.tension", "rope/r.length", every=0.1) as log:
        sim.run(1.0)
    counts = [len(row) for row in log["rope/r.tension"]]
    print(f"segments {counts}, length {log['rope/r.length'][-1]:.4f} of 1.5 m")
    assert counts[-1] > counts[0] and log["rope/r.length"][-1] == pytest.approx(1.5, abs=1e-6)
    columns = log.columns()
    assert np.isnan(columns[f"rope/r.tension[{counts[-1] - 1}]"][0])
    log.to_csv(tmp_path / "r.csv")
    log.to_npz(tmp_path / "r.npz")


def test_words_that_mean_nothing_are_refused():
    sim = swing()
    for word, said in (
        ("joint/leg*.q", r"no joint matches 'leg\*'; available: 'arm/1', 'arm/2'"),
        ("joint/arm/1.postion", "joint 'arm/1' has no 'postion'; allowed: anchor"),
        ("hinge/a.q", "kinds: joint, body"),
        ("sim.enrgy", "sim has no 'enrgy' to record; allowed: energy"),
        ("position", "is not a kind/name.value"),
    ):
        with pytest.raises(sh.SimulationError, match=said):
            sim.record(word)
    with pytest.raises(sh.SimulationError, match="every is a number of steps"):
        sim.record("joint/*.q", every=0)
    with pytest.raises(sh.SimulationError, match="say what"):
        sim.record()
    with sim.record("joint/*.q") as log, pytest.raises(sh.SimulationError, match="'x' is not recorded"):
        log["x"]


def test_a_plot_is_drawn(tmp_path):
    pytest.importorskip("matplotlib").use("Agg")
    sim = swing()
    with sim.record("joint/*.q", "joint/*.qd", every=5) as log:
        sim.run(0.2)
    file = log.plot(tmp_path / "log.png")
    assert file.stat().st_size > 5000
    assert len(log.plot().axes) == 2


def test_a_film_shows_motion(tmp_path):
    image = pytest.importorskip("PIL.Image")
    pytest.importorskip("trimesh")
    sim = swing()
    with sim.video(tmp_path / "swing.gif", fps=20, size=(160, 120)) as film:
        sim.run(0.5)
    picture = image.open(tmp_path / "swing.gif")
    first = np.asarray(picture.convert("RGB"), float)
    picture.seek(picture.n_frames - 1)
    last = np.asarray(picture.convert("RGB"), float)
    moved = np.abs(last - first).max(-1) > 30
    print(f"{picture.n_frames} frames, {moved.mean():.1%} of the pixels changed")
    assert picture.n_frames == len(film) == 11 and 0.005 < moved.mean() < 0.5
    ffmpeg = pytest.importorskip("imageio_ffmpeg", reason="no .mp4 was written: imageio-ffmpeg is not installed")
    with sim.video(tmp_path / "swing.mp4", fps=20, size=(160, 120)) as film:
        sim.run(0.5)
    reader = ffmpeg.read_frames(str(tmp_path / "swing.mp4"))
    told = next(reader)
    assert told["size"] == (160, 120) and told["fps"] == 20 and sum(1 for _ in reader) == len(film) == 11


def test_films_that_cannot_be_are_refused():
    sim = swing()
    with pytest.raises(sh.SimulationError, match=r"ends in .gif or .mp4, got 'x.avi'"):
        sim.video("x.avi")
    with pytest.raises(sh.SimulationError, match="fps is a positive finite number, got 0"):
        sim.video("x.gif", fps=0)
