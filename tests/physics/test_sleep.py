"""Bodies at rest sleep, and wake as if they had not."""

import time

import numpy as np
import pytest

import sharnir as sh

DT = 2e-3
SOLVERS = pytest.mark.parametrize("solver", ["sequential", "direct"])


def two_stacks(ball=False):
    """Two stacks of four boxes far from each other, a ball that flies at the first one from afar, a plate under the second."""
    m = sh.Material(friction=0.6)
    scene = sh.Scene()
    scene.add_ground(material=m)
    scene.add_body("plate", sh.Box(0.6, 0.6, 0.1), motion="kinematic", position=(5.0, 0, 0.05), material=m)
    for k, x in enumerate((0.0, 5.0)):
        for i in range(4):
            scene.add_body(f"{k}{i}", sh.Box(0.2, 0.2, 0.2), mass=2.0, position=(x, 0, 0.1 * k + 0.1 + 0.2 * i), material=m)
    if ball:
        scene.add_body("ball", sh.Sphere(0.1), mass=2.0, position=(-4.0, 0, 4.9), velocity=(4.0, 0, 0), material=m)
    return scene


def names(k):
    return [f"{k}{i}" for i in range(4)]


def asleep(sim, k):
    return all(sim.body(n).asleep for n in names(k))


def places(sim):
    return np.array(sim.body_position)


@SOLVERS
def test_a_stack_sleeps_and_its_world_waits(solver):
    sim = sh.Simulation(two_stacks(), DT, solver=solver)
    start = places(sim)
    sim.run(0.4)
    assert not asleep(sim, 0)
    sim.run(0.3)
    assert asleep(sim, 0) and asleep(sim, 1)
    there, energy = places(sim), sim.energy().total
    weight = sim.contact_force("00", "world")
    began = time.process_time()
    for _ in range(500):
        sim.step()
    took = (time.process_time() - began) / 500
    moved = np.abs(there - start).max()
    print(f"{solver}, asleep: {1e6 * took:.1f} µs a step, moved by {moved:.1e} m before, weight {weight[2]:.6f} N")
    assert np.array_equal(places(sim), there) and sim.energy().total == energy and sim.time == pytest.approx(1.7)
    assert sim.body("03").velocity.tolist() == [0, 0, 0] and weight[2] == pytest.approx(4 * 2.0 * 9.81, rel=1e-6)
    assert np.abs(there - start).max() < 1e-7
    awake = sh.Simulation(two_stacks(), DT, solver=solver, sleep=False)
    awake.run(0.7)
    assert not asleep(awake, 0)


@SOLVERS
@pytest.mark.filterwarnings("ignore:.*did not converge")  # of direct, in the blow, asleep or not
def test_a_thrown_ball_wakes_what_it_hits_alone(solver):
    """The stack moves as one that never slept, as far as a blow on many points that rub determines it; the other sleeps on."""
    sims = [sh.Simulation(two_stacks(ball=True), DT, solver=solver, sleep=sleep) for sleep in (True, False)]
    for sim in sims:
        sim.run(0.8)
    assert asleep(sims[0], 0)
    for sim in sims:
        sim.run(0.3)
    off = np.abs(places(sims[0]) - places(sims[1])).max()
    moved = np.abs(places(sims[0])[sims[0].model.body_names["03"]] - [0, 0, 0.7]).max()
    print(f"the stack moved by {moved:.3f} m, {off:.1e} m beside one that did not sleep")
    assert moved > 0.05 and off < 5e-4 and not asleep(sims[0], 0) and asleep(sims[0], 1)


WAKES = {
    "force": lambda sim: sim.body("10").apply_force((40.0, 0, 0)),
    "steady force": lambda sim: sim.body("12").apply_torque((0, 0, 0.1), once=False),
    "velocity": lambda sim: setattr(sim.body("11"), "velocity", (0.1, 0, 0)),
    "position": lambda sim: setattr(sim.body("13"), "position", (5.0, 0, 0.9)),
    "support": lambda sim: setattr(sim.body("plate"), "velocity", (0.5, 0, 0)),
    "support elsewhere": lambda sim: setattr(sim.body("plate"), "position", (7.0, 0, 0.05)),
}
WAKE_ALL = {
    "gravity": lambda sim: setattr(sim, "gravity", (1.0, 0, -9.81)),
    "mass": lambda sim: setattr(sim.body("10"), "mass", 3.0),
    "material": lambda sim: sim.solver.collider.set_material("10", sh.Material(friction=0.01)),
}


@SOLVERS
def test_what_wakes(solver):
    sim = sh.Simulation(two_stacks(), DT, solver=solver)
    sim.run(0.7)
    kept = sim.snapshot()
    for what, act in (WAKES | WAKE_ALL).items():
        sim.restore(kept)
        sim.step()
        assert asleep(sim, 0) and asleep(sim, 1), what
        act(sim)
        sim.step()
        awake = [not any(sim.body(n).asleep for n in names(k)) for k in range(2)]
        print(f"{what}: awake {awake}")
        assert awake == [what in WAKE_ALL, True], what
    sim.restore(kept)
    sim.body("plate").velocity = (0, 0, -0.5)
    sim.run(0.16)  # it falls freely until it has caught up, after 2 v / g = 0.10 s
    fell = 0.2 - sim.body("10").position[2]
    print(f"a support that sinks by 80 mm is followed by {1e3 * fell:.2f} mm")
    assert fell == pytest.approx(0.08, abs=1e-4)
    sim.reset()
    assert not asleep(sim, 0)


def test_sleep_is_the_same_every_time_and_everywhere():
    """Twice, in a batch on one or two threads, and after a restore: to the bit, through sleep and waking."""
    alone = sh.Simulation(two_stacks(ball=True), DT)
    alone.step(380)
    kept = alone.snapshot()
    assert asleep(alone, 0)
    alone.step(170)
    there = places(alone)
    alone.restore(kept)
    alone.step(170)
    assert np.array_equal(places(alone), there)
    other = sh.Simulation(two_stacks(ball=True), DT)
    other.restore(kept)
    other.step(170)
    assert np.array_equal(places(other), there)
    for threads in (1, 2):
        batch = sh.Simulation(two_stacks(ball=True), DT, worlds=3, threads=threads)
        batch.step(550)
        assert np.array_equal(places(batch), np.broadcast_to(there, places(batch).shape))
