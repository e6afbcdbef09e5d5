"""Worlds shared out among devices are those of one simulation, to the bit."""

import numpy as np
import pytest

import sharnir as sh


def arm() -> sh.Scene:
    scene = sh.Scene()
    scene.add_body("upper", sh.Box(0.3, 0.05, 0.05), mass=1.0, position=(0.15, 0, 0))
    scene.add_body("lower", sh.Box(0.3, 0.05, 0.05), mass=1.0, position=(0.45, 0, 0))
    scene.add_joint("a", sh.Revolute("y", drive=sh.Servo(kp=20.0, kd=1.0)), scene.world, "upper", position=(0, 0, 0))
    scene.add_joint("b", sh.Revolute("y", friction=0.1, limit=(-1, 1)), "upper", "lower", position=(0.3, 0, 0))
    return scene


def play(sim: sh.Simulation, worlds: int) -> dict[str, np.ndarray]:
    """All that can be told to it, and what comes of it."""
    each = np.linspace(-0.2, 0.2, worlds)
    sim.randomize(3, mass=0.2, friction=0.3, gravity=0.1, limit=0.1)
    sim.set_state(q=np.stack([each, -each], 1))
    sim.joint("a").drive.position = 0.5 * each
    sim.target.velocity = np.zeros((worlds, 2))
    sim.effort = np.stack([0 * each, each], 1)
    sim.step(20)
    sim.body("lower").apply_force(np.outer(each, [0, 0, 5.0]))
    sim.step()
    sim.reset(worlds=[0, worlds - 1])
    sim.set_state(qd=[[1.0, 0.0]], worlds=[worlds - 1])
    sim.gravity = np.outer(1 + each, [0, 0, -9.81])
    sim.run(0.01)
    body = sim.body("lower")
    return {
        "q": np.array(sim.q), "qd": np.array(sim.qd), "place": np.array(body.position), "mass": np.array(body.mass),
        "all": np.array(sim.body_position), "friction": np.array([f.static for f in sim.joint("b").friction]), 
        "energy": np.asarray(sim.energy().total), "gravity": np.array(sim.gravity), "time": np.array([sim.time, sim.dt]),
        "failed": sim.failed,
    }  # fmt: skip


@pytest.mark.parametrize("worlds", [5, 3])  # 3 + 2, 2 + 1
def test_in_parts_they_are_the_same(worlds):
    whole = play(sh.Simulation(arm(), 1e-3, worlds=worlds), worlds)
    split = sh.Simulation(arm(), 1e-3, worlds=worlds, device=["cpu", "cpu"])
    assert isinstance(split, sh.SplitSimulation) and [part.worlds for part in split.parts] == [(worlds + 1) // 2, worlds // 2]
    found = play(split, worlds)
    for name, value in whole.items():
        off = 1e-14 if name == "energy" else 0.0  # whose sum is taken in another order in a part of one world
        assert found[name].shape == value.shape and np.allclose(found[name], value, off, off), name
    assert np.ptp(found["mass"]) > 0.01 and np.ptp(found["q"][:, 0]) > 0.01


def test_mistakes_are_told():
    with pytest.raises(sh.SceneError, match="at least 2, one a device, got 1"):
        sh.Simulation(arm(), 1e-3, device=["cpu", "cpu"])
    with pytest.raises(sh.SceneError, match="at least one, got an empty one"):
        sh.Simulation(arm(), 1e-3, worlds=4, device=[])
    with pytest.raises(sh.SceneError, match="'cuda:7' is not here"):
        sh.Simulation(arm(), 1e-3, worlds=4, device=["cpu", "cuda:7"])
    sim = sh.Simulation(arm(), 1e-3, worlds=4, device=["cpu", "cpu"])
    with pytest.raises(sh.SimulationError, match="one of 4, got 3"):
        sim.gravity = np.zeros((3, 3))
    with pytest.raises(sh.SimulationError, match="no body is named 'leg'"):
        sim.body("leg")
    with pytest.raises(sh.SimulationError, match="indices from 0 to 3, got \\[4\\]"):
        sim.reset(worlds=[4])
    with pytest.raises(AttributeError, match="frm"):
        sim.body("upper").frm = 1.0
    with pytest.raises(AttributeError):
        sim.gravty = (0, 0, 0)
