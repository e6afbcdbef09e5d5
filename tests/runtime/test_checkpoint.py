"""Checkpoints: what is loaded goes on bit for bit; what is damaged or foreign is refused, and nothing is changed."""

import subprocess
import sys

import numpy as np
import pytest

import sharnir as sh
from sharnir.runtime import checkpoint
from sharnir.trainer.failures import weather


def door(size=0.9, **options):
    scene = sh.Scene(gravity=(0, 0, -9.81))
    scene.add_body("door", sh.Box(size, 0.04, 2.0), mass=26.49, position=(0.45, 0, 1))
    scene.add_joint("hinge", sh.Revolute("z", friction=2.0, limit=(-1, 1)), scene.world, "door", position=(0, 0, 1))
    return sh.Simulation(scene, 2e-3, **({"solver": "sequential"} | options))


def crate():
    scene = sh.Scene()
    scene.add_ground()
    scene.add_body(
        "crate", sh.Box(0.4, 0.3, 0.2), mass=5.0, position=(0, 0, 0.11), velocity=(1.0, 0.2, 0), angular_velocity=(0, 0, 3.0)
    )
    return sh.Simulation(scene, 2e-3, solver="sequential")


def states(sim, n):
    out = []
    for _ in range(n):
        sim.step()
        out.append({name: values.tobytes() for name, values in sim.snapshot().items()})
    return out


@pytest.mark.parametrize("make", [door, crate], ids=["door", "crate that slides"])
def test_what_is_loaded_goes_on_bit_for_bit(make, tmp_path):
    sim = make()
    if make is door:
        sim.joint("hinge").velocity, sim.joint("hinge").effort = 2.0, 0.5
        sim.body("door").mass = 20.0
        sim.joint("hinge").limit = (-0.7, 0.9)
    else:
        weather(sim, friction=0.3)
    sim.step(40)
    path = sim.save(tmp_path / "at.sharnir")
    told = states(sim, 60)
    fresh = make()
    fresh.load(path)
    assert fresh.time == pytest.approx(0.08) and states(fresh, 60) == told
    sim.load(path)
    assert states(sim, 60) == told, "and where it was taken, too"
    if make is door:
        assert fresh.body("door").mass == 20.0 and fresh.joint("hinge").limit == sim.joint("hinge").limit
    print(f"{path.stat().st_size} bytes, 60 steps equal in every bit")


def test_every_flip_of_a_byte_is_refused(tmp_path):
    """In all bytes, each with one bit; the running simulation goes on as if nothing had been."""
    sim, twin = door(), door()
    for each in (sim, twin):
        each.joint("hinge").velocity = 1.0
        each.step(10)
    data = checkpoint.dump(sim)
    rng = np.random.default_rng(5)
    for k in range(len(data)):
        damaged = bytearray(data)
        damaged[k] ^= 1 << int(rng.integers(8))
        with pytest.raises(sh.SimulationError, match=r"^file: is "):
            checkpoint.restore(sim, bytes(damaged), "file")
    for cut in rng.integers(0, len(data), 50):
        with pytest.raises(sh.SimulationError, match=r"^file: is "):
            checkpoint.restore(sim, data[:cut], "file")
    with pytest.raises(sh.SimulationError, match="damaged"):
        checkpoint.restore(sim, data + b"\0", "file")
    print(f"{len(data)} bytes, each flipped, all refused")
    assert states(sim, 20) == states(twin, 20)


def test_what_is_foreign_is_refused_by_its_name(tmp_path):
    sim = door()
    sim.step(5)
    path, before = sim.save(tmp_path / "a"), sim.time
    for other, words in ((door(0.8), "another scene"), (door(solver="direct"), "another solver"), (crate(), "another scene")):
        with pytest.raises(sh.SimulationError, match=words):
            other.load(path)
        assert other.time == 0.0
    (tmp_path / "b").write_text("no checkpoint at all, though long enough to have a head of sixty-four bytes and more")
    with pytest.raises(sh.SimulationError, match="is not a checkpoint of sharnir"):
        sim.load(tmp_path / "b")
    with pytest.raises(sh.SimulationError, match="cannot be read"):
        sim.load(tmp_path / "nowhere")
    poisoned, arrays = checkpoint.unpack(checkpoint.dump(sim), "x")
    arrays["state.velocity"][1, 0, 0] = np.nan
    with pytest.raises(sh.SimulationError, match="of body 'door' is nan"):
        checkpoint.restore(sim, checkpoint.pack({k: v for k, v in poisoned.items() if k != "arrays"}, arrays), "x")
    assert sim.time == before


def test_a_hash_is_of_the_scene_and_not_of_what_is_changed_later():
    sim = door()
    sim.body("door").mass = 3.0
    assert sim._content == door()._content != door(0.8)._content


@pytest.mark.slow
def test_the_hash_of_a_scene_is_the_same_in_another_process():
    words = "import sys; sys.path.insert(0, {!r}); from test_checkpoint import *; print(door()._content, crate()._content)"
    here = f"{door()._content} {crate()._content}"
    there = subprocess.run([sys.executable, "-c", words.format(__file__.rpartition("/")[0])], capture_output=True, text=True)
    assert there.stdout.strip() == here != f"{door(0.8)._content} {crate()._content}"
