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


def loaded() -> sh.Scene:
    """An arm over a ground with a ball, a rope, a spring, an input and a sensor."""
    scene = arm()
    scene.add_ground(height=-1.0)
    scene.add_body("ball", sh.Sphere(0.1), mass=1.0, position=(2, 0, -0.9), drag_area=0.01)
    scene.add_body("hook", sh.Box(0.1, 0.1, 0.1), mass=1.0, position=(4, 0, 1))
    scene.add_rope("cord", (4, 0, 2), (4, 0, 1.05), radius=0.01, density=900, segments=3, E=1e8, attach=(None, "hook"))
    scene.add_spring("coil", scene.world, "ball", at_a=(2, 0, 1), stiffness=1.0, rest=1.0)
    scene.add_input("push", target="joint/b.torque", low=-1.0, high=1.0)
    scene.add_sensor("feel", "imu", "lower")
    return scene


REFUSED = ["model", "state", "commands", "control", "solver", "integrate", "view", "record", "record_file", "record_to"]


@pytest.fixture(scope="module")
def pair() -> list[sh.Simulation]:
    """A simulation of three worlds, and one of as many in two parts, after the same steps."""
    sims = [sh.Simulation(loaded(), 1e-3, worlds=3, **where) for where in ({}, {"device": ["cpu", "cpu"]})]
    for sim in sims:
        sim.inputs["push"] = [0.1, 0.2, 0.3]
        sim.wind = (1.0, 0.0, 0.0)
        sim.run(0.02)
    return sims


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_it_is_a_simulation(pair):
    whole, split = pair
    assert isinstance(split, sh.Simulation) and split.solver_name == whole.solver_name
    for name in dir(sh.Simulation):
        if not name.startswith("_") and name not in REFUSED:
            assert getattr(split, name) is not None, name
    for name in REFUSED:
        with pytest.raises(sh.SimulationError, match=f"{name if name not in ('control', 'record_to') else ''}.*use sim.parts"):
            getattr(split, name)
    with pytest.raises(sh.SimulationError, match=r"contacts.arrays .* use sim.parts\[i\].contacts.arrays"):
        split.contacts.arrays  # noqa: B018
    with pytest.raises(AttributeError, match="it has"):
        split.bodys  # noqa: B018


def test_what_it_has_is_that_of_one_simulation(pair):
    whole, split = pair
    for kind in ("bodies", "joints", "ropes", "inputs"):
        assert list(getattr(split, kind)) == list(getattr(whole, kind)), kind
    same = {
        "position": lambda sim: sim.bodies["ball"].position, "rope": lambda sim: sim.ropes["cord"].tension,
        "input": lambda sim: sim.inputs["push"], "effort": lambda sim: sim.joints["b"].drive.torque,
        "momentum": lambda sim: sim.momentum().linear, "health": lambda sim: sim.health().steps, "wind": lambda sim: sim.wind,
        "failed": lambda sim: sim.failed, "error": lambda sim: sim.constraint_error(),
        "frame": lambda sim: sim.frame("lower").position,
        "contact": lambda sim: sim.contact_force("ball"), "gap": lambda sim: [sim.contacts(world=w).gap for w in range(3)],
        "ray": lambda sim: [sim.ray_cast((2, 0, 0), (0, 0, -1), world=w).distance for w in range(3)],
        "sensor": lambda sim: sim.sensor("feel").acceleration, "index": lambda sim: sim.index("b").q,
    }  # fmt: skip
    for name, read in same.items():
        expected, found = np.asarray(read(whole)), np.asarray(read(split))
        assert found.shape == expected.shape and np.allclose(found, expected, 1e-13, 1e-13), name
    assert "3 worlds on cpu" in repr(whole) and "2 worlds on cpu, 1 world on cpu" in repr(split)
    assert repr(split).split(";")[0] == repr(whole).split(";")[0]
    with pytest.raises(sh.SimulationError, match="no sensor is named 'eye'; available: 'feel'"):
        split.sensor("eye")
    with pytest.raises(sh.SimulationError, match="contacts: world is a whole number from 0 to 2, got 3"):
        split.contacts(3)
    report = split.step()
    assert isinstance(report, sh.Report) and report.converged.shape == (3,) and len(report.problems) == 3
    assert (
        report.elapsed > 0.0
        and "3 of 3 worlds converged" in repr(report)
        and set(report.fallbacks) == set(whole.step().fallbacks)
    )


def test_it_is_kept_and_goes_on_to_the_bit(pair, tmp_path):
    whole, split = pair
    kept, file = split.snapshot(), split.save(tmp_path / "run.bin")
    split.step(5)
    then = np.array(split.body_position)
    for go_back in (lambda: split.restore(kept), lambda: split.load(file)):
        go_back()
        split.step(5)
        assert np.array_equal(split.body_position, then)
    with pytest.raises(sh.SimulationError, match="simulation in 2 parts"):
        split.restore(whole.snapshot())
    with pytest.raises(sh.SimulationError, match="simulation in parts"):
        split.load(whole.save(tmp_path / "whole.bin"))
    kept["1:state.position"] = kept["1:state.position"][:1]
    with pytest.raises(sh.SimulationError, match=r"position.* does not fit"):
        split.restore(kept)
    assert np.array_equal(split.body_position, then)  # the first part, too
