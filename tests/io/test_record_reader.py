"""Recordings in files: they open where they were cut off, hold what was, and the motion is made again bit for bit."""

import os
import pathlib
import signal
import time
import warnings

import numpy as np
import pytest
from conftest import EXAMPLES

import sharnir as sh
from sharnir.cli import arguments
from sharnir.runtime import checkpoint
from sharnir.trainer.failures import weather


def door(**options):
    scene = sh.Scene(gravity=(0, 0, -9.81))
    scene.add_body("door", sh.Box(0.9, 0.04, 2.0), mass=26.49, position=(0.45, 0, 1))
    scene.add_joint("hinge", sh.Revolute("z", friction=2.0, limit=(-1, 1)), scene.world, "door", position=(0, 0, 1))
    return sh.Simulation(scene, 2e-3, **({"solver": "sequential"} | options))


def crate(**_):
    scene = sh.Scene()
    scene.add_ground()
    scene.add_body(
        "crate", sh.Box(0.4, 0.3, 0.2), mass=5.0, position=(0, 0, 0.11), velocity=(1.0, 0.2, 0), angular_velocity=(0, 0, 3.0)
    )
    return sh.Simulation(scene, 2e-3, solver="sequential")


def drive(sim, rng, n):
    """Everything that somebody may do between steps."""
    hinge = sim.joint("hinge") if sim.model.joint_names else None
    body = sim.body("door" if hinge else "crate")
    start = sim.snapshot()
    for k in range(n):
        what = rng.integers(12)
        if what < 4 and hinge:
            hinge.effort = float(rng.normal(0, 30)) - 2 * hinge.velocity
        elif what == 4:
            body.apply_force(rng.normal(0, 20, 3))
        elif what == 5 and rng.random() < 0.3:
            body.mass = float(rng.uniform(10, 30))
        elif what == 6 and rng.random() < 0.3:
            sim.restore(start)
        elif what == 7 and hinge:
            hinge.velocity = float(rng.normal())
        elif what == 7:
            body.velocity = rng.normal(0, 1, 3)
        elif what == 8 and rng.random() < 0.2:
            sim.gravity = (0.0, 0.0, float(rng.uniform(-11, -9)))
        elif what == 9:
            sim.energy()
        elif what == 10 and not hinge and rng.random() < 0.3:
            weather(sim, friction=float(rng.uniform(0.1, 1.0)))
        if k % 3 == 0:
            sim.step(budget=1e-3)
        else:
            sim.step(int(rng.integers(1, 6)))


@pytest.mark.parametrize("make, solver", [(door, "sequential"), (door, "direct"), (crate, "sequential")])
def test_replay_is_bit_for_bit_whatever_was_done(make, solver, tmp_path):
    sim = make(solver=solver)
    sim.step(3)
    with sim.record_file(tmp_path / "run.mcap") as recorder:
        drive(sim, np.random.default_rng(3), 200)
    recording = sh.Recording(tmp_path / "run.mcap")
    twin = make(solver=solver)
    replayed = recording.replay(twin)
    print(f"{replayed}; {recording.path.stat().st_size / 1024:.0f} kB, {recorder.steps} steps")
    assert replayed.equal and replayed.steps == recorder.steps == recording.steps and recording.whole
    a, b = sim.snapshot(), twin.snapshot()
    assert all(np.array_equal(a[name], b[name]) for name in a), [n for n in a if not np.array_equal(a[n], b[n])]


def test_a_motion_that_differs_is_told_with_its_step_and_quantity(tmp_path):
    sim = door()
    with sim.record_file(tmp_path / "run.mcap"):
        sim.joint("hinge").velocity = 1.0
        sim.step(30)
        sim.joint("hinge").effort = 5.0
        sim.step(20)
    recording = sh.Recording(tmp_path / "run.mcap")
    contents = recording._contents.messages
    at = [k for k, (topic, _, _) in enumerate(contents) if topic == "/sharnir/commands"][-1]
    topic, when, data = contents[at]
    contents[at] = topic, when, data[:-8] + np.float64(5.0000001).tobytes()
    replayed = recording.replay(door())
    print(replayed)
    assert not replayed.equal and 31 <= replayed.step <= 50 and "velocity of bodies" in replayed.quantity
    other = sh.Scene()
    other.add_body("door", sh.Sphere(0.1))
    with pytest.raises(sh.SimulationError, match="another scene"):
        recording.replay(sh.Simulation(other, 2e-3, solver="sequential"))


def test_values_are_those_that_were(tmp_path):
    sim = door()
    sim.joint("hinge").velocity = 1.5
    path = tmp_path / "run.mcap"
    with sim.record_file(path, rate=50), sim.record("joint/hinge.q", "joint/hinge.qd", "body/door.position", every=10) as log:
        sim.step(500)
    recording = sh.Recording(path)
    assert np.allclose(recording.time, log.time, atol=1e-9) and len(recording) == 51
    for name in log.names:
        assert np.allclose(recording[name], log[name], atol=1e-6), name
    assert list(recording.columns())[:2] == ["time", "body/door.position[0]"]
    assert recording.to_csv(tmp_path / "run.csv").stat().st_size > 1000
    with pytest.raises(sh.SimulationError, match=r"'joint/nobody\.q' is not recorded"):
        recording["joint/nobody.q"]
    step = recording.put(fresh := door(), 10**6)
    assert step == 0 and fresh.time == 0.0 and recording.facts["scene"] == fresh._content


def test_others_read_it(tmp_path):
    """The package of those who made the format finds an index, schemas, and messages that it can tell apart."""
    reader = pytest.importorskip("mcap.reader")
    sim = door()
    path = tmp_path / "run.mcap"
    with sim.record_file(path):
        sim.step(100)
    with path.open("rb") as stream:
        read = reader.make_reader(stream, validate_crcs=True)
        summary = read.get_summary()
        topics = {channel.topic: channel for channel in summary.channels.values()}
        schemas = {s.name: s.encoding for s in summary.schemas.values()}
        counts = {summary.channels[k].topic: n for k, n in summary.statistics.channel_message_counts.items()}
        found = [message.log_time for _, _, message in read.iter_messages(topics=["/tf"])]
        assert [a.name for a in read.iter_attachments()] == ["start", "scene.toml"]
        assert [m.name for m in read.iter_metadata()] == ["sharnir"]
    assert set(topics) >= {"/tf", "/joint_states", "/bodies"} and schemas["tf2_msgs/msg/TFMessage"] == "ros2msg"
    assert counts["/tf"] == len(found) == 13 and found == sorted(found) and len(summary.chunk_indexes) >= 1


def test_a_file_that_ends_anywhere_opens_or_says_why(tmp_path):
    sim = door()
    path = tmp_path / "run.mcap"
    with sim.record_file(path):
        for _ in range(4):
            sim.step(50)
            time.sleep(0.1)
    data, steps = path.read_bytes(), []
    for cut in np.linspace(len(data) - 1, 20, 60).astype(int):
        path.write_bytes(data[:cut])
        try:
            recording = sh.Recording(path)
        except sh.SimulationError as error:
            assert "no recording of sharnir" in str(error) and cut < 8000  # before the state at the start was written
        else:
            steps.append(recording.steps)
    assert steps[0] == 200 and steps == sorted(steps, reverse=True) and len(set(steps)) >= 3
    rng = np.random.default_rng(2)
    for _ in range(60):
        damaged = bytearray(data)
        damaged[int(rng.integers(len(data)))] ^= 1 << int(rng.integers(8))
        path.write_bytes(damaged)
        try:
            assert sh.Recording(path).steps <= 200
        except sh.SimulationError as error:
            assert str(path) in str(error)


def kill_while_recording(sim, path, after):
    """A child process drives, records and tells of every step, until it is killed: steps that it told of, and its recording."""
    ear, mouth = os.pipe()
    child = os.fork()
    if child == 0:
        try:

            def control(sim):
                sim.joint("hinge").effort = 20.0 if sim.time % 1 < 0.5 else -20.0
                os.write(mouth, b".")

            with sim.record_file(path):
                sh.RealTime(sim, rate=500, control=control).run(60.0)
        finally:
            os._exit(1)
    os.close(mouth)
    assert os.read(ear, 1) == b"."
    time.sleep(after)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    told = 1
    while more := os.read(ear, 65536):
        told += len(more)
    os.close(ear)
    return told, sh.Recording(path)


def kills(n, tmp_path, most):
    rng, lost = np.random.default_rng(9), []
    sim, twin = door(), door()
    sim.step(3, budget=1e-3)
    for _ in range(n):
        told, recording = kill_while_recording(sim, tmp_path / "run.mcap", float(rng.uniform(0.02, 1.0)))
        lost.append(2e-3 * (told - recording.steps))
        assert not recording.whole and recording.replay(twin).equal
    print(f"{n} times killed: all open, lost at most {max(lost):.3f} s, in the mean {np.mean(lost):.3f} s")
    assert max(lost) <= most


def test_killed_it_opens_and_is_made_again(tmp_path):
    kills(3, tmp_path, 0.6)  # threads of a machine that tests fill wait for their turn


@pytest.mark.slow
def test_killed_at_any_time_it_loses_a_fifth_of_a_second_at_most(tmp_path):
    kills(200, tmp_path, 0.2)


@pytest.mark.slow
def test_ten_minutes_of_random_driving(tmp_path, example):
    """KRT100 with its trailer, random commands two times a second, budgets that cut; made again in every bit."""
    module = example("krt100_trailer")
    sim, rng = module.make(), np.random.default_rng(1)
    minutes = float(os.environ.get("SHARNIR_MINUTES", "10"))
    path = tmp_path / "drive.mcap"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sh.StepWarning)
        with sim.record_file(path) as recorder:
            while sim.time < 60 * minutes:
                for name, given in sim.inputs.described.items():
                    sim.inputs[name] = float(rng.uniform(given.low, given.high))
                for _ in range(max(1, round(0.5 / sim.dt))):
                    sim.step(budget=2e-3)
    recording = sh.Recording(path)
    replayed = recording.replay(module.make())
    size = path.stat().st_size / 1e6 / minutes
    print(f"{minutes:g} min, {replayed}; {size:.2f} MB a minute")
    assert replayed.equal and replayed.steps == recorder.steps and size < 10


def test_eight_hours_on_the_clock():
    """The device adds up 14.4 million steps of 2 ms; what is told is their number times the step."""
    sim = door()
    sim.step()
    added = np.cumsum(np.full(14_400_000, 2e-3))
    worst = 0.0
    for n in (1, 1000, 1_234_567, 14_400_000):
        sim._state.time.assign(added[n - 1 : n])
        worst = max(worst, abs(sim.time - n * 2e-3))
    off = abs(added[-1] - 28800.0)
    print(f"after 8 h the sum is off by {off:.1e} s, the time by {worst:.1e} s")
    assert worst == 0.0 and off > 1e-6


def test_checkpoints_and_recordings_are_not_confused(tmp_path):
    sim = door()
    sim.save(tmp_path / "a.sharnir")
    with pytest.raises(sh.SimulationError, match="is no MCAP file"):
        sh.Recording(tmp_path / "a.sharnir")
    with pytest.raises(sh.SimulationError, match="cannot be read"):
        sh.Recording(tmp_path / "nowhere.mcap")
    with pytest.raises(sh.SimulationError, match="one world on the CPU, got 2"):
        door(worlds=2).record_file(tmp_path / "b.mcap")
    with sim.record_file(tmp_path / "c.mcap"), pytest.raises(sh.SimulationError, match="is being recorded already"):
        sim.record_file(tmp_path / "d.mcap").__enter__()
    with pytest.raises(sh.SimulationError, match="is not a checkpoint of sharnir"):
        checkpoint.restore(sim, (tmp_path / "c.mcap").read_bytes(), "c")


def test_controls_and_ropes_are_recorded_and_exported(tmp_path):
    """A cart on rails with a rope behind it, driven by an input: values, events, USD."""
    pxr = pytest.importorskip("pxr.Usd")
    scene = sh.Scene()
    scene.add_body("cart", sh.Box(0.4, 0.3, 0.2), mass=5.0, color="#a9744f")
    scene.add_joint("rail", sh.Prismatic("x"), scene.world, "cart", position=(0, 0, 0))
    scene.add_rope("tail", (0, 0, 0), (-1, 0, 0), segments=6, radius=0.01, mass_per_length=0.1, EI=0.01, GJ=0.01,
                   attach=("cart", None))  # fmt: skip
    scene.add_input("push", "joint/rail.effort", scale=20.0, rate=40.0)
    sim = sh.Simulation(scene, 5e-3)
    path = tmp_path / "cart.mcap"
    with sim.record_file(path, rate=50):
        for k in range(10):
            sim.inputs["push"] = 1.0 if k % 4 < 2 else -0.5
            sim.step(10)
    recording = sh.Recording(path)
    replayed = recording.replay(sh.Simulation(scene, 5e-3))
    print(f"{replayed}; {path.stat().st_size / 1024:.0f} kB")
    assert replayed.equal and recording["rope/tail.position"].shape == (26, 7, 3)
    assert np.allclose(recording["rope/tail.position"][-1], sim.rope("tail").position, atol=1e-6)
    assert recording["control/push"].max() == 1.0 and [e["kind"] for e in recording.events()].count("command") >= 5
    file = recording.to_usd(tmp_path / "cart.usda")
    stage = pxr.Stage.Open(str(file))
    move = stage.GetPrimAtPath("/World/cart").GetAttribute("xformOp:translate")
    last = stage.GetEndTimeCode()
    assert np.allclose(move.Get(last), recording["body/cart.position"][-1], atol=1e-6) and move.GetNumTimeSamples() == 26
    assert len(stage.GetPrimAtPath("/World/tail").GetAttribute("points").Get(last)) == 7
    assert stage.GetTimeCodesPerSecond() == pytest.approx(50)
    with pytest.raises(sh.SimulationError, match="ends with one of"):
        recording.to_usd(tmp_path / "cart.obj")


def test_from_the_command_line(tmp_path, capsys):
    from sharnir.cli.arguments import main

    out = tmp_path / "door.mcap"
    assert main(["record", "swinging_door", "--out", str(out), "--duration", "0.5"]) == 0
    assert main(["replay", str(out), "--csv", str(tmp_path / "door.csv")]) == 0
    said = capsys.readouterr().out
    assert "MB a minute" in said and "equal in every bit" in said and (tmp_path / "door.csv").exists()
    assert main(["replay", str(tmp_path / "none.mcap")]) == 1
    sim = door(tolerances=sh.Tolerances(iterations=15))
    with sim.record_file(out):
        sim.step(20)
    assert "[body.door]" in sh.Recording(out).scene and main(["replay", str(out)]) == 0, "its scene is in it"


def test_a_recording_of_a_scene_file_becomes_a_page(tmp_path, capsys):
    scene, file, page = tmp_path / "door.toml", tmp_path / "run.mcap", tmp_path / "run.html"
    scene.write_text((pathlib.Path(EXAMPLES) / "scenes" / "door.toml").read_text())
    assert arguments.main(["record", str(scene), "--duration", "0.5", "--out", str(file)]) == 0
    assert arguments.main(["view", str(file), "--html", str(page)]) == 0
    assert str(page) in capsys.readouterr().out and "door" in page.read_text()
