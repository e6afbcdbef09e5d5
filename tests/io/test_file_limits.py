"""Files of strangers: sizes are checked before memory is taken, and nothing is read or run that the user did not ask for."""

import re
import struct
import time
import zlib

import numpy as np
import pytest

import sharnir as sh
from sharnir.cli import arguments
from sharnir.io import mcap
from sharnir.io.check import check_file
from sharnir.io.scene_file import read_text

HINGE = """
[body.door]
shape = {type = "Box", x = 0.9, y = 0.04, z = 2.0}
mass = 26.0
position = [0.45, 0, 1]
[joint.hinge]
type = "Revolute"
axis = "z"
parent = "world"
child = "door"
position = [0, 0, 1]
"""


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[rope.line]\nstart = [0, 0, 0]\nend = [1, 0, 0]\nsegments = 10000000\n',
         r"rope\.line\.segments: rope 'line': segments is a whole number from 1 to 20000, or relative lengths, got 10000000"),
        ('[body.s]\nmotion = "fixed"\nshape = {type = "stairs", rise = 0.1, tread = 0.3, width = 1, count = 10000000}\n',
         r"body\.s\.shape: terrain\.stairs: count is a whole number from 1 to 2000, got 10000000"),
        ('[terrain.t]\nheights = {type = "flat", size = [1e6, 1e6]}\n', r"10000001 × 10000001 samples, more than 4000000"),
        ('[body."b{i}{j}{k}"]\nrepeat = {i = 10000, j = 10000, k = 0}\nmass = 1\n', r"at most 10000 entries; \w is 10000"),
        ('[place."p{i}"]\nrepeat = {i = 9000}\npart = "a"\n[part.a.body.b]\nmass = 1\n', "at most 2000 parts are placed"),
        ('[part.a.body."b{i}{j}"]\nrepeat = {i = 9999, j = 9999}\nmass = 1\n[place.x]\npart = "a"\n', "at most 10000 entries"),
        ('[body.b]\nmass = 1\nshape = {type = "Mesh", source = [{type = "array", shape = [99999999, 3], data = ""}, []]}\n',
         "10000000 numbers at most"),
        ('[terrain."t{i}"]\nrepeat = {i = 100}\nheights = {type = "flat", size = [150, 150]}\n', "at most 20000000 numbers"),
    ],
    ids=["segments", "stairs", "terrain", "counts", "parts", "names of a part", "array", "terrains"],
)  # fmt: skip
def test_a_size_that_is_too_large_is_an_error_at_once(text, words):
    assert sh.Simulation  # imported now, since that takes seconds
    started = time.process_time()
    with pytest.raises(sh.SceneFileError, match=words):
        read_text(text)
    assert time.process_time() - started < 10


def test_files_inside_files_are_bounded(tmp_path):
    """Each of 18 files places the next twice: 2¹⁸ parts; and each includes the next twice by two names."""
    for i in range(18):
        (tmp_path / f"a{i}.toml").write_text("".join(f'[place.p{k}]\nfile = "a{i + 1}.toml"\n' for k in range(2)))
        (tmp_path / f"b{i}.toml").write_text(f'include = ["b{i + 1}.toml", "./b{i + 1}.toml"]\n')
    (tmp_path / "a18.toml").write_text("[body.b]\nmass = 1\n")
    (tmp_path / "b18.toml").write_text("[scene]\n")
    started = time.process_time()
    with pytest.raises(sh.SceneFileError, match="at most 2000 parts are placed"):
        sh.load_scene(tmp_path / "a0.toml")
    with pytest.raises(sh.SceneFileError, match="500 in all"):
        sh.load_scene(tmp_path / "b0.toml")
    assert time.process_time() - started < 30


def test_files_of_ground_are_measured_before_they_are_read(tmp_path):
    head = str({"descr": "<f8", "fortran_order": False, "shape": (100000, 100000)}).ljust(117).encode() + b"\n"
    (tmp_path / "huge.npy").write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + bytes(64))
    with pytest.raises(sh.SceneError, match=r"huge\.npy' cannot be read as numbers"):
        sh.terrain.from_file(tmp_path / "huge.npy", size=(1, 1))
    image = pytest.importorskip("PIL.Image")
    image.new("L", (4000, 2000)).save(tmp_path / "wide.png")
    with pytest.raises(sh.SceneError, match=r"4000 × 2000 pixels; allowed: 4000000"):
        sh.terrain.from_file(tmp_path / "wide.png", size=(1, 1), height=1.0)


# ---- scene files read inside their folder ----


@pytest.fixture
def apart(tmp_path):
    """A folder with a scene file's place, and a secret beside it."""
    (tmp_path / "secret.toml").write_text(HINGE)
    (tmp_path / "secret.csv").write_text("0,0\n0,0\n")
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "link.toml").symlink_to(tmp_path / "secret.toml")
    return tmp_path


def outside(folder):
    secret, table = folder / "secret.toml", folder / "secret.csv"
    for name in (str(secret), "../secret.toml", "link.toml"):
        yield f'include = "{name}"\n'
        yield f'[place.x]\nfile = "{name}"\n'
    for name in (str(table), "../secret.csv"):
        yield f'[terrain.t]\nheights = {{type = "from_file", path = "{name}", size = [1, 1]}}\n'
        yield f'[body.b]\nmass = 1\nvisual = "{name}"\n'
        yield f'[body.b]\nmass = 1\nshape = {{type = "Mesh", source = "{name}"}}\n'


def test_a_scene_file_reads_inside_its_folder(apart, capsys):
    file = apart / "own" / "scene.toml"
    for text in outside(apart):
        file.write_text(text)
        with pytest.raises(sh.SceneFileError, match=r"^scene\.toml:\d: .*a file inside the roots .*; see roots= of load_scene"):
            sh.load_scene(file)
        assert check_file(file)[0]
    file.write_text('include = "../secret.toml"\n')
    assert "door" in sh.load_scene(file, roots=[apart]).bodies and not check_file(file, roots=[apart])[0]
    assert arguments.main(["check", str(file)]) == 1 and "--root on the command line" in capsys.readouterr().err
    assert arguments.main(["check", str(file), "--root", str(apart)]) == 0
    with pytest.raises(sh.SceneError, match="load_scene: roots is a list of folders"):
        sh.load_scene(file, roots=str(apart))
    (apart / "own" / "in.toml").write_text(HINGE)
    file.write_text('include = "in.toml"\n')
    assert "door" in sh.load_scene(file).bodies


MJCF = '<mujoco>{}<worldbody><body name="b"><freejoint/><geom type="box" size="1 1 1"/></body></worldbody></mujoco>'


def test_mjcf_reads_inside_its_folder(apart):
    pytest.importorskip("mujoco")
    file = apart / "own" / "model.xml"
    (apart / "secret.xml").write_text("<mujoco><option timestep='0.003'/></mujoco>")
    (apart / "secret.png").write_bytes(b"")
    (apart / "own" / "deeper.xml").write_text('<mujoco><include file="../secret.xml"/></mujoco>')
    for text in (
        f'<include file="{apart}/secret.xml"/>', '<include file="../secret.xml"/>', '<include file="deeper.xml"/>',
        '<asset><mesh name="m" file="../secret.stl"/></asset>', '<asset><mesh name="m" file="/etc/passwd"/></asset>',
        '<compiler meshdir=".."/><asset><mesh name="m" file="secret.xml"/></asset>',
        '<compiler assetdir=".."/><asset><hfield name="h" file="secret.png" size="1 1 1 1"/></asset>',
        '<asset><texture name="t" type="cube" fileright="../secret.png"/></asset>',
        '<asset><model name="m" file="../secret.xml"/></asset>',
    ):  # fmt: skip
        file.write_text(MJCF.format(text))
        with pytest.raises(
            sh.SceneError, match=r"^(model\.xml: )?(model|deeper)\.xml:1: .*a file inside the roots .*; see roots= of load_mjcf"
        ):
            sh.load_mjcf(file)
    file.write_text(MJCF.format('<include file="../secret.xml"/>'))
    assert sh.load_mjcf(file, roots=[apart]).options == {"dt": 0.003}
    assert sh.load_scene(file, roots=[apart]).options == {"dt": 0.003}
    (apart / "own" / "deeper.xml").write_text("<mujoco><option timestep='0.004'/></mujoco>")
    file.write_text(MJCF.format('<include file="deeper.xml"/>'))
    assert sh.load_mjcf(file).options == {"dt": 0.004}


def test_sizes_in_mjcf_are_checked_before_it_is_compiled(apart):
    pytest.importorskip("mujoco")
    file = apart / "own" / "model.xml"
    geom = '<geom type="sphere" size="1"/>'
    deep = '<replicate count="1000">' * 3 + geom + "</replicate>" * 3
    for text, words in (
        ('<asset><hfield name="h" nrow="90000" ncol="90000" size="1 1 1 1"/></asset>', "at most 4000000 samples"),
        ('<asset><texture name="t" type="2d" builtin="flat" width="90000" height="90000"/></asset>', "at most 4000000 samples"),
        (f"<worldbody>{deep}</worldbody>", "repetitions make at most 5000 elements"),
        ('<size memory="900G"/>', "at most 1024M"),
        ('<size nuserdata="999999999"/>', "at most 100000"),
    ):
        file.write_text(MJCF.format(text))
        started = time.process_time()
        with pytest.raises(sh.SceneError, match=rf"^model\.xml:1: .*{words}"):
            sh.load_mjcf(file)
        assert time.process_time() - started < 5
    (apart / "own" / "huge.xml").write_text(f"<mujoco><worldbody>{deep}</worldbody></mujoco>")
    file.write_text(MJCF.format('<include file="huge.xml"/>'))
    with pytest.raises(sh.SceneError, match=r"^model\.xml: huge\.xml:1: .*repetitions make at most 5000 elements"):
        sh.load_mjcf(file)


def test_mjcf_is_compiled_without_being_simulated(tmp_path):
    """MuJoCo finds ranges of muscles by simulation, which does not end where an equality throws the mechanism about."""
    pytest.importorskip("mujoco")
    from test_mjcf import MODEL

    (tmp_path / "model.xml").write_text(MODEL.replace('polycoef="0 3 0 0 0"', 'polycoef="5000 3 0 0 0"'))
    assert "screw" in sh.load_mjcf(tmp_path / "model.xml").gears


# ---- recordings ----


def door():
    scene = sh.Scene()
    scene.add_body("door", sh.Box(0.9, 0.04, 2.0), mass=26.0, position=(0.45, 0, 1))
    scene.add_joint("hinge", sh.Revolute("z"), scene.world, "door", position=(0, 0, 1))
    return sh.Simulation(scene, 2e-3, solver="sequential")


SCRIPT = """
import pathlib
import sharnir as sh
pathlib.Path({marker!r}).touch()
def make(dt=2e-3):
    scene = sh.Scene()
    scene.add_body("door", sh.Box(0.9, 0.04, 2.0), mass=26.0, position=(0.45, 0, 1))
    scene.add_joint("hinge", sh.Revolute("z"), scene.world, "door", position=(0, 0, 1))
    return sh.Simulation(scene, dt, solver="sequential")
"""


def test_replay_runs_no_code_unless_it_is_trusted(tmp_path, capsys, monkeypatch):
    """The scene that is in the recording serves; without one, the file that is named is run with --trust alone."""
    marker, script, file = tmp_path / "ran", tmp_path / "evil.py", tmp_path / "run.mcap"
    script.write_text(SCRIPT.format(marker=str(marker)))
    sim = door()
    with sim.record_file(file, name=str(script)):
        sim.step(20)
    assert arguments.main(["replay", str(file)]) == 0 and not marker.exists()
    assert "equal in every bit" in capsys.readouterr().out
    assert arguments.main(["view", str(file), "--html", str(tmp_path / "a.html")]) == 0 and not marker.exists()
    monkeypatch.setattr("sharnir.runtime.record_writer.described", lambda sim: "")
    sim = door()
    with sim.record_file(file, name=str(script)):
        sim.step(20)
    for command in (["replay", str(file)], ["view", str(file), "--html", str(tmp_path / "b.html")]):
        assert arguments.main(command) == 2 and not marker.exists()
        told = capsys.readouterr().err
        assert f"names {str(script)!r}, which is not run unasked" in told and f"--trust will run {str(script)!r}" in told
    assert arguments.main(["replay", str(file), "--trust"]) == 0 and marker.exists()
    marker.unlink()
    assert arguments.main(["replay", str(file), "--scene", str(script)]) == 0 and marker.exists()


def bomb(path, size, announced, count=1):
    """A recording with chunks that unpack to much more than they are."""
    zstandard = pytest.importorskip("zstandard")
    packed = zstandard.ZstdCompressor(level=1).compress(bytes(size))
    words = struct.pack("<QQQI", 0, 0, announced, 0) + struct.pack("<I", 4) + b"zstd" + struct.pack("<Q", len(packed)) + packed
    path.write_bytes(
        mcap.MCAP_MAGIC + mcap.record(mcap.OP_HEADER, bytes(8)) + count * mcap.record(mcap.OP_CHUNK, words) + mcap.MCAP_MAGIC
    )


def test_a_small_recording_takes_little_memory(tmp_path):
    import tracemalloc

    path = tmp_path / "bomb.mcap"
    for size, announced, count, words in (
        (300_000_000, 100, 1, "unpacks to 300000000 bytes, 100 are announced"),
        (300_000_000, 300_000_000, 1, r"at most 268435456 bytes"),
        (100_000_000, 100_000_000, 4, "is an MCAP file, but no recording"),
    ):
        bomb(path, size, announced, count)
        tracemalloc.start()
        with pytest.raises(sh.SimulationError, match=rf"bomb\.mcap: .*{words}"):
            sh.Recording(path)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert path.stat().st_size < 200_000 and peak < 600e6, (size, peak)


def test_many_small_messages_count_too(tmp_path):
    """A message of no bytes takes memory in Python all the same."""
    path, zstandard = tmp_path / "bomb.mcap", pytest.importorskip("zstandard")
    plain = mcap.record(mcap.OP_MESSAGE, bytes(22)) * 10_000
    packed = zstandard.ZstdCompressor(level=3).compress(plain)
    words = struct.pack("<QQQI", 0, 0, len(plain), zlib.crc32(plain)) + struct.pack("<I", 4) + b"zstd"
    chunk = mcap.record(mcap.OP_CHUNK, words + struct.pack("<Q", len(packed)) + packed)
    path.write_bytes(mcap.MCAP_MAGIC + mcap.record(mcap.OP_HEADER, bytes(8)) + chunk + mcap.MCAP_MAGIC)
    with pytest.raises(sh.SimulationError, match="at most 1000000 bytes"):
        sh.Recording(path, max_bytes=1_000_000)
    with pytest.raises(sh.SimulationError, match="no recording of sharnir"):
        sh.Recording(path)


def test_roots_of_a_recording(tmp_path, monkeypatch):
    """The scene inside a recording reads no file outside the current folder, unless told."""
    from sharnir.cli.subjects import recorded

    (tmp_path / "hills.csv").write_text("0,0\n0,0\n")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    sim = door()
    scene = f'{HINGE}[terrain.t]\nheights = {{type = "from_file", path = "{tmp_path}/hills.csv", size = [1, 1]}}\n'
    monkeypatch.setattr("sharnir.runtime.record_writer.described", lambda sim: scene)
    with sim.record_file("run.mcap"):
        sim.step(2)
    found = sh.Recording("run.mcap")
    with pytest.raises(sh.SceneFileError, match="a file inside the roots"):
        recorded(found)
    assert "t" in recorded(found, roots=[tmp_path]).model.body_names
    assert re.match(r"<recording", repr(found)) and np.isfinite(found.time).all()
