"""What a running simulation refuses by name: numbers that overflow, copies, pickles; and what it does in a forked process."""

import copy
import os
import pickle
import signal
import time
import warnings

import numpy as np
import pytest

import sharnir as sh


def two_bars(solver="auto", worlds=1, **options):
    scene = sh.Scene()
    for i in range(2):
        scene.add_body(f"b{i}", sh.Box(1, 0.1, 0.1), mass=1.0, position=(0.5 + i, 0, 0))
        scene.add_joint(f"j{i}", sh.Revolute("y"), ("world", "b0")[i], f"b{i}", position=(i, 0, 0))
    scene.add_body("free", sh.Sphere(0.1), mass=1.0, position=(0, 3, 0))
    return sh.Simulation(scene, 0.01, solver=solver, worlds=worlds, **options)


def rope(**options):
    scene = sh.Scene()
    scene.add_rope("line", (0, 0, 0), (1, 0, 0), segments=8, mass_per_length=0.1, attach=("world", None))
    return sh.Simulation(scene, 0.005, **options)


@pytest.mark.parametrize("value", [1e300, -1e200, 1e16, np.inf, np.nan])
@pytest.mark.parametrize("worlds", [1, 2])
def test_state_that_overflows_is_refused_by_name(value, worlds):
    sim = two_bars(worlds=worlds)
    body, joint = sim.body("free"), sim.joint("j0")
    before = sim.snapshot()
    for what in ("position", "velocity", "angular_velocity"):
        with pytest.raises(sh.SimulationError, match=f"body 'free': {what}"):
            setattr(body, what, (0, value, 0))
    with pytest.raises(sh.SimulationError, match="body 'free'"):
        body.rotation = (0, 0, value, 1)
    for what in ("position", "velocity"):
        with pytest.raises(sh.SimulationError, match=f"joint 'j0': {what}"):
            setattr(joint, what, value)
    for what, size in (("q", 2), ("qd", 2)):
        with pytest.raises(sh.SimulationError, match=rf"set_state\({what}=…\)"):
            setattr(sim, what, np.full(size, value))
        with pytest.raises(sh.SimulationError, match=rf"set_state\({what}=…\)"):
            sim.set_state(**{what: np.full(size, value)})
    after = sim.snapshot()
    assert all(np.array_equal(before[name], after[name]) for name in before if name.startswith("state."))
    for what in ("body_position", "body_velocity", "body_angular_velocity"):
        getattr(sim, what)[..., 3, 0] = value
        with pytest.raises(sh.SimulationError, match=f"sim.{what}: body 'free' was given"):
            sim.step()
        getattr(sim, what)[..., 3, 0] = 0.0
    sim.step()
    assert np.isfinite(sim.body("free").position).all()


def test_a_rope_and_a_scene_refuse_what_overflows():
    sim = rope()
    for what in ("velocity", "angular_velocity"):
        with pytest.raises(sh.SimulationError, match=f"rope 'line': {what}"):
            setattr(sim.rope("line"), what, (0, 0, 1e300))
    with pytest.raises(sh.SceneError, match=r"body 'a': position \(m\) is at most 1e\+15 in size"):
        sh.Scene().add_body("a", sh.Sphere(0.1), position=(0, 0, 1e300))


@pytest.mark.parametrize("solver", ["sequential", "direct"])
@pytest.mark.parametrize("on", ["joint", "body"])
def test_a_force_far_too_large_is_an_error_by_name(solver, on):
    """What diverges is named; the last good state stays."""
    sim = two_bars(solver)
    if on == "joint":
        sim.joint("j0").effort = 1e12
    else:
        sim.body("b1").apply_force((0, 0, 1e12), once=False)
    with pytest.raises(sh.SimulationError, match=r"'j1'|'j0'|'b0'|'b1'"):
        sim.run(0.5)
    assert np.isfinite(sim.body("b1").position).all() and np.abs(sim.body("b1").position).max() < 10


@pytest.mark.parametrize("word", ["auto", "direct", "sequential"])
def test_ropes_alone_take_every_word_of_a_solver(word):
    sim = rope(solver=word)
    assert sim.solver_name == "rope"
    sim.run(0.05)
    plain = rope()
    plain.run(0.05)
    assert np.array_equal(sim.rope("line").position, plain.rope("line").position)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_process_steps_with_threads():
    """The child makes threads of its own, and the same steps."""
    sim = two_bars(worlds=4, threads=2)
    sim.step(3)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            sim.step(3)
            os.write(write, np.array(sim.joint("j1").position).tobytes())
        finally:
            os._exit(0)
    os.close(write)
    end = time.monotonic() + 20.0
    while os.waitpid(child, os.WNOHANG) == (0, 0):
        if time.monotonic() > end:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            pytest.fail("the forked process hangs")
        time.sleep(0.02)
    found = np.frombuffer(os.read(read, 1000))
    os.close(read)
    sim.step(3)
    assert np.array_equal(found, sim.joint("j1").position)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_simulation_and_its_views_say_what_to_use_instead(copied):
    sim, line = two_bars(), rope()
    with pytest.raises(sh.SimulationError, match=r"a Simulation cannot be copied or pickled.*snapshot\(\).*save\(file\).*Scene"):
        copied(sim)
    views = [sim.body("free"), sim.joint("j0"), sim.joint("j0").drive, sim.target, line.rope("line")]
    for view in views:
        with pytest.raises(sh.SimulationError, match=r"cannot be copied or pickled.*snapshot\(\)"):
            copied(view)


def test_what_is_offered_instead_works():
    """Snapshots and scenes can be copied and pickled, and lead to the same motion."""
    sim = two_bars()
    sim.step(5)
    kept = pickle.loads(pickle.dumps(sim.snapshot()))
    sim.step(5)
    end = sim.body("b1").position
    sim.restore(kept)
    sim.step(5)
    assert np.array_equal(sim.body("b1").position, end)
    scene = sh.Scene()
    scene.add_body("a", sh.Sphere(0.1), position=(0, 0, 1))
    for made in (copy.deepcopy(scene), pickle.loads(pickle.dumps(scene))):
        assert np.array_equal(sh.Simulation(made, 0.01).body("a").position, (0, 0, 1))


@pytest.mark.parametrize("worlds", [1, 2])
def test_a_report_can_be_copied(worlds):
    """A copy keeps the values of its step; the report itself is of the last one."""
    sim = two_bars("sequential", worlds)
    report = sim.step()
    copies = [copy.copy(report), copy.deepcopy(report), pickle.loads(pickle.dumps(report))]
    kept = np.array(report.iterations), np.array(report.residual), np.array(report.converged), report.elapsed
    sim.body("b1").velocity = (0, 0, 5)
    sim.step()
    assert not np.array_equal(report.residual, kept[1])
    for one in copies:
        now = np.array(one.iterations), np.array(one.residual), np.array(one.converged), one.elapsed
        assert all(np.array_equal(a, b) for a, b in zip(now, kept, strict=True))
        assert set(one.fallbacks) == set(report.fallbacks)


@pytest.mark.parametrize("worlds", [1, 3])
def test_a_position_beyond_the_limits_is_told_once(worlds):
    scene = sh.Scene(gravity=(0, 0, 0))
    names = ("arm", "pin", "free")
    joints = (sh.Revolute("y", limit=(-1, 1)), sh.Cylindrical("z", limit={"z": (0, 0.5)}), sh.Revolute("y"))
    for i, (name, joint) in enumerate(zip(names, joints, strict=True)):
        scene.add_body(name, sh.Box(0.1, 0.1, 0.1), mass=1.0, position=(i, 0, 0))
        scene.add_joint(name, joint, scene.world, name, position=(i, 0, 0))
    sim = sh.Simulation(scene, 1e-3, worlds=worlds)
    with pytest.warns(sh.SceneWarning, match=r"joint 'arm': position 2( in world 0)? lies beyond its limits -1 to 1;") as told:
        sim.joint("arm").position = 2.0
    assert len(told) == 1 and told[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sim.joint("arm").position = -3.0  # told once
        sim.joint("free").position = 7.0
        sim.joint("pin").position = (0.5, 9.0)
        sim.q = (0.5, 0.0, 1.0, 2.0)
    q = np.broadcast_to((0.0, -0.1, 0.0, 0.0), (worlds, 4)).copy()
    q[:-1, 1] = 0.0
    with pytest.warns(sh.SceneWarning, match=f"joint 'pin': position -0.1.*{f'world {worlds - 1}' if worlds > 1 else ''} lies"):
        sim.set_state(q=q)


def test_a_parameter_of_none_is_refused():
    sim = two_bars()
    for what in ("limit", "spring", "damping", "friction"):
        for value in (None, {}):
            with pytest.raises(sh.SimulationError, match=f"joint 'j0': {what} is a value, .*; for none: "):
                setattr(sim.joint("j0"), what, value)
    with pytest.raises(sh.SimulationError, match="positive"):
        sim.run(True)


def test_a_world_that_is_no_number_is_refused():
    scene = sh.Scene()
    scene.add_ground()
    scene.add_body("ball", sh.Sphere(0.1), mass=1.0, position=(0, 0, 1))
    sim = sh.Simulation(scene, 0.01)
    for world in (np.nan, "one", None, 0.5, [0, 0], 1e300):
        with pytest.raises(sh.SimulationError, match="world is a whole number, or one for each of the 1 queries"):
            sim.ray_cast((0, 0, 3), (0, 0, -1), world=world)
