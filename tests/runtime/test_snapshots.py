"""Snapshots and checkpoints that are continued with another solver."""

import itertools

import numpy as np
import pytest

import sharnir as sh
from sharnir.runtime import checkpoint

SOLVERS = ("direct", "sequential")


def pendulum() -> sh.Scene:
    """A double pendulum that starts horizontal: 0.147 rad/s of the first link after ten steps of 1 ms."""
    scene = sh.Scene()
    for i, name in enumerate(("upper", "lower")):
        scene.add_body(name, sh.Box(0.05, 0.05, 1.0), mass=1.0 + i, position=(0.5 + i, 0, 0), rotation=(0, 0.5**0.5, 0, 0.5**0.5))
        scene.add_joint(f"{name}_hinge", sh.Revolute("y"), "upper" if i else "world", name, position=(float(i), 0, 0))
    return scene


def hung() -> sh.Scene:
    """A rope with a load, both let go from the side."""
    scene = sh.Scene()
    scene.add_body("load", sh.Sphere(0.1), mass=5.0, position=(0.7, 0, -0.8))
    scene.add_rope("line", (0, 0, 0), (0.7, 0, -0.7), segments=8, mass_per_length=0.3, attach=("world", "load"))
    return scene


@pytest.mark.parametrize(("taken", "continued"), list(itertools.permutations(SOLVERS, 2)))
def test_a_snapshot_of_another_solver_continues_without_a_jump(taken, continued):
    scene = pendulum()
    first, second = (sh.Simulation(scene, 1e-3, solver=word) for word in (taken, continued))
    first.run(0.1)
    before = first.joint("upper_hinge").velocity, first.joint("lower_hinge").velocity
    second.restore(first.snapshot())
    expected = sh.Simulation(scene, 1e-3)
    expected.run(0.1)
    energy = second.energy().total
    second.step()
    expected.step()
    for name, was in zip(("upper_hinge", "lower_hinge"), before, strict=True):
        now = second.joint(name).velocity
        assert abs(now - expected.joint(name).velocity) < 2e-4, (name, was, now)  # rad/s, of 1.4; a jump was 57 rad/s
    second.run(0.2)
    assert abs(second.energy().total - energy) < 1e-3, "J, of 20 J that fell"


def test_a_snapshot_of_the_same_solver_continues_bit_for_bit():
    scene = pendulum()
    first, second = (sh.Simulation(scene, 1e-3) for _ in range(2))
    first.run(0.05)
    second.restore(first.snapshot())
    first.run(0.05)
    second.run(0.05)
    a, b = first.snapshot(), second.snapshot()
    assert all(np.array_equal(a[name], b[name]) for name in a)
    assert a["state.history"].dtype.kind == "i"
    assert int(a["state.history"][0]) == 4, "steps that the predictor of the next step uses"
    assert float(a["state.stagger"][0]) == 0.0, "the direct solver has no velocities of half steps"


def test_velocities_of_half_steps_are_half_a_step_early():
    sim = sh.Simulation(pendulum(), 1e-3, solver="sequential")
    sim.run(0.01)
    snapshot = sim.snapshot()
    assert float(snapshot["state.stagger"][0]) == 0.5e-3
    assert int(snapshot["state.history"][0]) == 0


def test_a_body_that_sleeps_wakes_in_another_solver():
    scene = sh.Scene()
    scene.add_body("arm", sh.Box(0.1, 0.1, 1.0), mass=1.0, position=(0, 0, -0.5))
    scene.add_joint("hinge", sh.Revolute("y", friction=5.0), "world", "arm", position=(0, 0, 0))
    first, second = sh.Simulation(scene, 1e-3), sh.Simulation(scene, 1e-3, solver="sequential")
    first.run(1.0)
    assert first.snapshot()["state.asleep"].max() > 0
    second.restore(first.snapshot())
    assert second.snapshot()["state.asleep"].max() == 0


def test_a_snapshot_whose_ropes_are_stored_in_another_order_is_refused_by_name():
    scene = hung()
    scene.add_joint("slide", sh.Prismatic("z", friction=1.0), "world", "load", position=(0.7, 0, -0.8))
    first, second = sh.Simulation(scene, 1e-3), sh.Simulation(scene, 1e-3, solver="sequential")
    with pytest.raises(sh.SimulationError, match=r"solver='direct', ropes.*solver='sequential'.*use the same solver"):
        second.restore(first.snapshot())


def test_a_snapshot_without_a_solver_is_refused():
    sim = sh.Simulation(pendulum(), 1e-3)
    snapshot = sim.snapshot()
    del snapshot["solver"]
    with pytest.raises(sh.SimulationError, match="does not name its solver"):
        sim.restore(snapshot)


def test_a_checkpoint_tells_its_solver_and_one_of_an_earlier_version_is_refused(tmp_path):
    scene = pendulum()
    first, second = sh.Simulation(scene, 1e-3), sh.Simulation(scene, 1e-3, solver="sequential")
    first.run(0.01)
    file = tmp_path / "door.checkpoint"
    first.save(file)
    with pytest.raises(sh.SimulationError, match="another solver: solver 'direct', this simulation has 'sequential'"):
        second.load(file)
    data = bytearray(file.read_bytes())
    data[8:12] = (1).to_bytes(4, "little")
    with pytest.raises(sh.SimulationError, match="version 1; allowed: 2"):
        checkpoint.restore(first, bytes(data), "old")
