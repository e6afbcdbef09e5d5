"""The surface: values by name and by array cost next to nothing, are those of the pose, and writing is noticed."""

import resource
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from conftest import in_time

import sharnir as sh
from sharnir.core.spatial import quat_exp

SOLVERS = ("direct", "sequential")
SLOW = 4.0  # this machine's cores are shared: times may be so many times the figure


def arm(n: int = 6, **servo) -> sh.Scene:
    scene = sh.Scene()
    base = scene.world
    servo = {"kp": 200.0, "kd": 20.0, "max_force": 500.0} | servo
    for i in range(n):
        body = scene.add_body(f"link {i}", sh.Box(0.1, 0.1, 0.3), mass=2.0, position=(0, 0, 0.15 + 0.3 * i))
        hinge = sh.Revolute("zy"[i % 2], drive=sh.Servo(**servo))
        scene.add_joint(f"arm/{i}", hinge, base, body, position=(0, 0, 0.3 * i))
        base = body
    return scene


def cost(action, n=700, rounds=7) -> float:
    """µs of CPU time a call, the best of some rounds."""
    for _ in range(20):
        action()
    best = np.inf
    for _ in range(rounds):
        started = time.process_time()
        for _ in range(n // rounds):
            action()
        best = min(best, (time.process_time() - started) / (n // rounds))
    return 1e6 * best


@pytest.mark.parametrize("solver", SOLVERS)
def test_values_by_name_cost_next_to_nothing(solver):
    sim = sh.Simulation(arm(), 1e-3, solver=solver, on_divergence="ignore")
    sim.step()
    joint, body = sim.joint("arm/2"), sim.body("link 3")
    found = {
        "joint.position": (cost(lambda: joint.position), 2.0),
        "joint.velocity": (cost(lambda: joint.velocity), 2.0),
        "body.position": (cost(lambda: body.position), 2.0),
        "body.velocity": (cost(lambda: body.velocity), 2.0),
        "drive.position =": (cost(lambda: setattr(joint.drive, "position", 0.1)), 2.0),
        "joint.effort =": (cost(lambda: setattr(joint, "effort", 0.1)), 2.0),
        "apply_force": (cost(lambda: body.apply_force((0.0, 0.0, 1e-9))), 3.0),
        "energy()": (cost(sim.energy), 15.0),
    }
    print(f"{solver}: " + ", ".join(f"{name} {took:.2f} of {most:g} µs" for name, (took, most) in found.items()))
    for name, (took, most) in found.items():
        in_time(took, SLOW * most, name)


@pytest.mark.parametrize("solver", SOLVERS)
def test_arrays_are_the_values_by_name(solver):
    sim = sh.Simulation(arm(), 1e-3, solver=solver, on_divergence="ignore")
    sim.target.position[:] = np.linspace(-0.3, 0.4, 6)
    sim.step(37)
    names = list(sim.model.joint_names)
    assert sim.q.tolist() == [sim.joint(n).position for n in names]
    assert sim.qd.tolist() == [sim.joint(n).velocity for n in names]
    assert sim.target.position.tolist() == [sim.joint(n).drive.position for n in names]
    for name, i in sim.model.body_names.items():
        assert sim.body_position[i].tolist() == sim.body(name).com.tolist()
        assert sim.body_velocity[i].tolist() == sim.body(name).velocity.tolist()
        assert sim.body_rotation[i].tolist() == sim.body(name).rotation.tolist()
    q = sim.q
    assert np.shares_memory(q, sim.state.q.numpy()), "no copy"
    with pytest.raises(ValueError, match="read-only"):
        q[0] = 1.0
    where = sim.index("arm/[24]")
    assert where.q.tolist() == [2, 4] and where.qd.tolist() == [2, 4]
    with pytest.raises(sh.SimulationError, match=r"no joint matches 'leg\*'; available: 'arm/0'"):
        sim.index("leg*")


@pytest.mark.parametrize("solver", SOLVERS)
def test_targets_by_array_and_by_name_lead_to_the_same_motion(solver):
    ends = []
    for way in ("name", "array", "whole"):
        sim = sh.Simulation(arm(), 1e-3, solver=solver, on_divergence="ignore")
        joints = [sim.joint(n) for n in sim.model.joint_names]
        target = sim.target
        for k in range(100):
            wanted = 0.3 * np.sin(0.01 * k + np.arange(6))
            if way == "name":
                for joint, value in zip(joints, wanted, strict=True):
                    joint.drive.position = value
                joints[1].effort = 0.5 * k
            elif way == "array":
                target.position[:] = wanted
                sim.effort[1] = 0.5 * k
            else:
                target.position = wanted
                sim.effort = [0, 0.5 * k, 0, 0, 0, 0]
            sim.step()
        ends.append(sim.q.tobytes() + sim.body_velocity.tobytes())
    assert ends[0] == ends[1] == ends[2]


@pytest.mark.parametrize("solver", SOLVERS)
def test_reading_and_lending_change_no_motion(solver):
    ends = []
    for looks in (False, True):
        sim = sh.Simulation(arm(), 1e-3, solver=solver, on_divergence="ignore")
        sim.target.position = 0.2
        for _ in range(60):
            sim.step()
            if looks:
                _ = sim.q, sim.qd, sim.body_velocity, sim.body_angular_velocity, sim.body_rotation, sim.energy(), sim.effort
        ends.append(sim.snapshot()["state.position"].tobytes())
    assert ends[0] == ends[1]


@pytest.mark.parametrize("solver", SOLVERS)
def test_bodies_written_as_arrays_are_noticed(solver):
    def scene():
        out = sh.Scene(gravity=(0, 0, 0))
        out.add_body("a", sh.Box(0.1, 0.2, 0.3), mass=2.0)
        out.add_body("b", sh.Box(0.3, 0.2, 0.1), mass=1.0, position=(2, 0, 0))
        out.add_joint("free", sh.Free(), out.world, "a", position=(0, 0, 0))
        return out

    turn = quat_exp(np.array([0.1, 0.2, -0.3]))
    by_name, by_array = (sh.Simulation(scene(), 1e-3, solver=solver, on_divergence="ignore") for _ in range(2))
    for sim in (by_name, by_array):
        sim.step(3)
    a = by_name.body("a")
    a.position, a.rotation, a.velocity, a.angular_velocity = (1, 2, 3), turn, (4, 5, 6), (7, 8, -9)
    i = by_array.model.body_names["a"]
    by_array.body_position[i], by_array.body_rotation[i] = (1, 2, 3), turn
    by_array.body_velocity[i], by_array.body_angular_velocity[i] = (4, 5, 6), (7, 8, -9)
    assert np.allclose(by_array.joint("free").position, by_name.joint("free").position, atol=1e-14)
    assert by_array.energy().total == pytest.approx(by_name.energy().total, rel=1e-13)
    for sim in (by_name, by_array):
        sim.step(50)
    off = np.abs(by_array.body_position - by_name.body_position).max()
    print(f"{solver}: {off:.1e} m apart after 50 steps")
    assert off < 1e-12
    by_array.body_rotation[i] = (0, 0, 0, 2)
    with pytest.raises(sh.SimulationError, match="body 'a' was given a quaternion of length 2"):
        by_array.step()


def test_a_state_is_set_as_a_whole_and_in_some_worlds():
    sim = sh.Simulation(arm(), 1e-3, worlds=5)
    sim.step(5)
    before = sim.q.copy()
    q, qd = np.linspace(0.1, 0.6, 6), np.linspace(-1, 1, 6)
    sim.set_state(q=q, qd=qd, worlds=[1, 3])
    assert np.allclose(sim.q[[1, 3]], q, atol=1e-12) and np.allclose(sim.qd[[1, 3]], qd, atol=1e-9)
    assert np.array_equal(sim.q[[0, 2, 4]], before[[0, 2, 4]])
    sim.step(20)
    alone = sh.Simulation(arm(), 1e-3)
    alone.step(25)
    assert np.array_equal(sim.q[0], alone.q), "the others are not touched, to the bit"
    with pytest.raises(sh.SimulationError, match="set_state"):
        sim.set_state(q=q[:3])
    with pytest.raises(sh.SimulationError, match="worlds are a mask of 5"):
        sim.reset(worlds=[7])


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_state_set_as_a_whole_is_that_of_joints_set_one_by_one(solver):
    def branched():
        scene = arm(3)
        scene.add_body("ball", sh.Sphere(0.1, position=(0.1, 0, 0)), mass=1.0, position=(0.5, 0, 0.9))
        scene.add_joint("socket", sh.Spherical(), "link 2", "ball", position=(0.4, 0, 0.9))
        return sh.Simulation(scene, 1e-3, solver=solver, on_divergence="ignore")

    one, whole = branched(), branched()
    q = np.array([0.3, -0.4, 0.5, *quat_exp(np.array([0.2, 0.1, -0.3]))])
    qd = np.array([1.0, -2.0, 0.5, 0.3, 0.2, 0.1])
    for name, at, v in (("arm/0", [0], [0]), ("arm/1", [1], [1]), ("arm/2", [2], [2]), ("socket", [3, 4, 5, 6], [3, 4, 5])):
        one.joint(name).position = q[at]
        one.joint(name).velocity = qd[v]
    whole.set_state(q=q, qd=qd)
    off = max(np.abs(one.body_position - whole.body_position).max(), np.abs(one.body_velocity - whole.body_velocity).max())
    assert np.allclose(whole.q, q, atol=1e-12) and np.allclose(whole.qd, qd, atol=1e-12)
    for sim in (one, whole):
        sim.step(50)
    after = np.abs(one.q - whole.q).max()
    took = cost(lambda: whole.set_state(q=q, qd=qd), 70)
    print(f"{solver}: {off:.1e} m or m/s apart, {after:.1e} rad after 50 steps; set in {took:.0f} µs")
    assert off < 1e-12 and after < 1e-11


@pytest.mark.parametrize("solver", SOLVERS)
def test_some_worlds_begin_anew(solver):
    sim = sh.Simulation(arm(), 1e-3, worlds=4, solver=solver, on_divergence="ignore")
    sim.target.position = 0.3
    sim.step(40)
    mask = np.array([False, True, True, False])
    sim.reset(worlds=mask)
    assert np.allclose(sim.q[mask], 0.0) and sim.target.position[1].tolist() == [0.0] * 6
    sim.target.position[mask] = 0.3
    sim.step(40)
    ends = []
    for n in (40, 80):
        alone = sh.Simulation(arm(), 1e-3, solver=solver, on_divergence="ignore")
        alone.target.position = 0.3
        alone.step(n)
        ends.append(alone.q.copy())
    assert np.array_equal(sim.q[1], ends[0]) and np.array_equal(sim.q[0], ends[1])


def test_first_steps_from_several_threads():
    ends, errors = [], []

    def work():
        try:
            sim = sh.Simulation(arm(), 1e-3)
            sim.joint("arm/1").drive.position = 0.3
            for _ in range(30):
                sim.step()
                sim.joint("arm/2").velocity  # noqa: B018
            ends.append(sim.q.tobytes())
        except BaseException as error:
            errors.append(repr(error))

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors and len(ends) == 6 and len(set(ends)) == 1


def test_a_path_costs_little():
    def sim(path):
        scene = sh.Scene(gravity=(0, 0, 0))
        scene.add_body("hand", sh.Box(1, 1, 1), motion="kinematic", path=path)
        scene.add_body("load", sh.Box(0.1, 0.1, 0.1), mass=1.0, position=(0, 0, -1))
        scene.add_joint("hinge", sh.Revolute("y"), scene.world, "load", position=(0, 0, 0))
        return sh.Simulation(scene, 1e-3)

    still, led = sim(None), sim(lambda t: (0.1 * t, 0.0, 0.0))
    took = cost(led.step) - cost(still.step)
    led.reset()
    led.run(1.0)
    off = abs(led.body("hand").position[0] - 0.1)
    print(f"a path takes {took:.1f} µs a step; the body is {off:.1e} m off it")
    assert off < 1e-12
    in_time(took, SLOW * 3.0, "a path")


def test_bound_dynamics_are_the_functions_and_quick():
    scene = arm()
    model = scene.build()
    bound = sh.dynamics.of(model)
    rng = np.random.default_rng(3)
    worst = 0.0
    for _ in range(10):
        q, v, a = rng.normal(size=(3, 6))
        pairs = [
            (bound.inverse_dynamics(q, v, a), sh.dynamics.inverse_dynamics(model, q, v, a)),
            (bound.forward_dynamics(q, v, a), sh.dynamics.forward_dynamics(model, q, v, a)),
            (bound.mass_matrix(q), sh.dynamics.mass_matrix(model, q)),
            (bound.bias_forces(q, v), sh.dynamics.bias_forces(model, q, v)),
            (bound.gravity_torques(q), sh.dynamics.gravity_torques(model, q)),
            (bound.jacobian(q, "link 4", (0.1, 0, 0.2)), sh.dynamics.jacobian(model, q, "link 4", (0.1, 0, 0.2))),
            (bound.pose(q, "link 4")[0], sh.dynamics.forward_kinematics(model, q)["link 4"]["position"]),
        ]
        worst = max(worst, *(float(np.abs(x - y).max()) for x, y in pairs))
    place, turn = bound.pose([0.3, 0.5, 0.2, 0.6, 0.1, 0.4], "link 5")
    near = np.array([0.32, 0.47, 0.23, 0.58, 0.12, 0.43])
    found = bound.inverse_kinematics("link 5", place, rotation=turn, start=near)
    times = {
        "inverse": (cost(lambda: bound.inverse_dynamics(q, v, a)), 15.0),
        "forward": (cost(lambda: bound.forward_dynamics(q, v, a)), 15.0),
        "mass matrix": (cost(lambda: bound.mass_matrix(q)), 15.0),
        "inverse kinematics": (cost(lambda: bound.inverse_kinematics("link 5", place, rotation=turn, start=near), 70), 300.0),
    }
    print(f"{worst:.1e} off; " + ", ".join(f"{name} {took:.1f} of {most:g} µs" for name, (took, most) in times.items()))
    assert worst < 1e-12 and np.abs(bound.pose(found, "link 5")[0] - place).max() < 1e-9
    for name, (took, most) in times.items():
        in_time(took, SLOW * most, name)
    for bad, word in (((q[:3], v, a), "shape"), ((q * np.nan, v, a), "nan among"), (("x", v, a), "'x'")):
        with pytest.raises(sh.SimulationError, match=word):
            bound.inverse_dynamics(*bad)
    with pytest.raises(sh.SceneError, match="a Scene, a Model or a Simulation"):
        sh.dynamics.of(3)


def test_help_comes_at_once():
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([sys.executable, "-m", "sharnir", "--help"], capture_output=True, text=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    took = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(f"--help took {took:.2f} s of a processor")
    assert "info" in done.stdout
    in_time(took, 2 * 0.5, "--help")


def test_targets_without_a_gain_are_refused():
    scene = sh.Scene()
    scene.add_body("a", sh.Box(0.1, 0.1, 0.1), mass=1.0)
    scene.add_joint("j", sh.Revolute("y"), scene.world, "a", position=(0, 0, 0.5))
    sim = sh.Simulation(scene, 1e-3)
    with pytest.raises(sh.SimulationError, match=r"joint 'j': drive.position = 0.3 needs a servo with kp above 0"):
        sim.joint("j").drive.position = 0.3
    with pytest.raises(sh.SimulationError, match=r"joint 'j': drive.velocity = 1 needs a servo with kd above 0"):
        sim.joint("j").drive.velocity = 1
    sim.joint("j").drive.kp = 5.0
    sim.joint("j").drive.position = 0.3
    sim.step(10)
    assert sim.joint("j").position > 0
