"""The guard of a step: divergence is told, right motions are not, a failed step leaves nothing behind, health() counts."""

import _thread
import signal
import threading
import time
import warnings

import numpy as np
import pytest
from conftest import in_time

import sharnir as sh

SOLVERS = [{}, {"solver": "direct"}]


def links(n=3, dt=1e-3, kind=sh.Revolute, **options):
    """A chain of n rods of 1 m, let go from horizontal."""
    scene, last = sh.Scene(), "world"
    for i in range(n):
        scene.add_body(f"b{i}", sh.Box(1, 0.1, 0.1), mass=1.0, position=(i + 0.5, 0, 0))
        scene.add_joint(f"j{i}", kind("y") if kind is sh.Revolute else kind(), last, f"b{i}", position=(i, 0, 0))
        last = f"b{i}"
    return sh.Simulation(scene, dt, **({"solver": "sequential"} | options))


def quiet(sim, steps, n=1):
    """Make steps without a word of not converging."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sh.StepWarning)
        for _ in range(steps // n):
            sim.step(n)
    return sim


# ---- divergence -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 50])
def test_a_motion_that_diverges_is_told_in_every_kind_of_call(n):
    """Three links at 0.2 s a step: the sequential solver reaches 5e165 J if nobody looks."""
    sim = links(dt=0.2)
    with pytest.raises(sh.DivergenceError, match=r"joint 'j\d' stands open by .* % .*solver='direct'.*dt than 0\.2 s") as error:
        quiet(sim, 200, n)
    print(f"after {sim.time:.1f} s: {error.value}")
    assert abs(sim.energy().total) < 100 and sim.constraint_error().max() < 2, "the last good state stays"


def test_energy_from_nowhere_is_told():
    """Scales the velocities by 1.2 before every step, behind the guard's back."""
    sim = links(n=2, solver="direct", kind=sh.Spherical)
    quiet(sim, 10)
    with pytest.raises(
        sh.DivergenceError,
        match=r"energy grew by .* J without any source \(expected at most .* J.*on_divergence=\"warn\" to continue",
    ):
        for _ in range(200):
            for array in (sim.state.velocity, sim.state.momentum, sim.state.spin):
                array.assign(1.2 * array.numpy())
            sim.step()
    assert sim.health().energy_error < 1


def test_warn_and_ignore_go_on():
    for how, told in (("warn", True), ("ignore", False)):
        sim = links(dt=0.2, on_divergence=how)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            sim.step(6)
        words = [str(w.message) for w in said if w.category is sh.StepWarning]
        print(how, words)
        assert any("stands open" in w for w in words) is told and sim.time == pytest.approx(1.2)
    with pytest.raises(sh.SimulationError, match="on_divergence is one of 'raise', 'warn', 'ignore', got 'shout'"):
        links(on_divergence="shout")


def test_of_many_worlds_the_one_that_diverges_stops():
    sim = links(worlds=3, dt=0.02)
    sim.body("b2").velocity = [(0, 0, 0), (0, 0, 4000.0), (0, 0, 0.1)]
    quiet(sim, 40)
    assert list(sim.failed) == [False, True, False]
    assert np.all(np.isfinite(sim.body("b2").position)) and list(sim.health().steps[[0, 2]]) == [40, 40]


def spun(**options):
    """A rotor at 3000 rad/s on a motor."""
    scene = sh.Scene()
    scene.add_body("rotor", sh.Cylinder(0.1, 0.02), mass=1.0, angular_velocity=(0, 0, 3000.0))
    scene.add_joint(
        "axle", sh.Revolute("z", drive=sh.Servo(kd=1.0, velocity=5000.0, max_force=50.0)), "world", "rotor", position=(0, 0, 0)
    )
    return sh.Simulation(scene, 1e-3, **options)


def carried(**options):
    """A pendulum on a body that is driven to and fro at 5 m/s."""
    scene = sh.Scene()

    def path(t):
        return (0.5 * np.sin(10 * t), 0, 0), (0, 0, 0, 1)

    scene.add_body("cart", sh.Box(1, 1, 1), motion="kinematic", path=path)
    scene.add_body("bob", sh.Box(0.1, 0.1, 1), mass=1.0, position=(0, 0, -0.5))
    scene.add_joint("hinge", sh.Revolute("y"), "cart", "bob", position=(0, 0, 0))
    return sh.Simulation(scene, 1e-3, **options)


def hauled(**options):
    """An arm that a servo lifts and lets down."""
    sim = links(n=2, **options)
    for name in ("j0", "j1"):
        sim.joint(name).drive = sh.Servo(kp=500.0, kd=50.0, position=-1.0)
    return sim


@pytest.mark.parametrize("options", SOLVERS)
@pytest.mark.parametrize("make", [spun, carried, hauled])
def test_work_is_no_divergence(make, options):
    sim = make(**options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sh.StepWarning)
        for k in range(20):
            if make is hauled:
                sim.joint("j0").drive.position = (-1.0) ** k
            sim.step(50)
    print(f"{make.__name__} {options}: energy error {sim.health().energy_error:.1e} of the scale")
    assert sim.health().energy_error < 0.2


def test_forces_set_before_every_step_are_no_divergence():
    rng = np.random.default_rng(3)
    sim = links(solver="direct", kind=sh.Spherical)
    for _ in range(300):
        sim.body("b2").apply_force(200 * rng.normal(size=3))
        sim.joint("j0").effort = 100 * rng.normal(size=3)
        sim.step()
    health = sim.health()
    print(f"{sim.energy().kinetic:.0f} J; energy error {health.energy_error:.1e}")
    assert health.steps == 300 and health.not_converged == 0 and not health.failed


# ---- health -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", SOLVERS)
def test_health_counts_every_step(options):
    sim = quiet(links(n=4, **options), 100)
    sim.step(57)
    health = sim.health()
    print(health)
    assert health.steps == 157 and 0 <= health.not_converged <= 157 and not health.failed
    assert health.energy_error < 0.01 and "steps: 157" in repr(health)
    sim.reset()
    assert sim.health().steps == 0


def test_health_adds_up_what_was_projected():
    sim = links(n=2, solver="direct", kind=sh.Spherical)
    lost = 0.0
    for _ in range(3):
        sim.body("b1").velocity = (1.0, 2.0, 3.0)
        lost += sim.step().projected
        sim.step(3)
    assert lost > 0.1 and sim.health().projected == pytest.approx(lost)


def test_an_angle_that_falls_behind_is_told_once():
    """Cayley's map turns (Δt ω)²/12 too little: that is exact in energy and momenta, and is not to be found out by surprise."""

    def turning(shape):
        scene = sh.Scene(gravity=(0, 0, 0))
        scene.add_body("rotor", shape, mass=1.0)
        scene.add_joint("hinge", sh.Revolute("z"), "world", "rotor", position=(0, 0, 0))
        return scene

    bar, disc = turning(sh.Box(0.3, 0.2, 0.1)), turning(sh.Cylinder(0.2, 0.1))
    for scene, solver, spin, told in (
        (bar, "direct", 80.0, 1), (bar, "direct", 30.0, 0), (bar, "sequential", 80.0, 0), (disc, "direct", 80.0, 0),
    ):  # fmt: skip
        sim = sh.Simulation(scene, 0.01, solver=solver)
        sim.joint("hinge").velocity = spin
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            sim.step(40)
            sim.step(40)
        behind = 1 - sim.joint("hinge").position / (spin * sim.time)
        print(f"{solver} at {spin} rad/s: {100 * behind:.2f} % behind, {len(said)} warnings")
        assert len(said) == told and all("'rotor' turns by 0.8 rad per step" in str(w.message) for w in said)
        assert abs(behind - ((spin * 0.01) ** 2 / 12 if solver == "direct" and scene is bar else 0)) < 5e-3


def test_steps_that_do_not_converge_are_warned_of_once():
    """Eight links with a load of 5 t at 10 ms: the sweeps leave their joints open."""
    scene, last = sh.Scene(), "world"
    for i in range(8):
        scene.add_body(f"b{i}", sh.Box(1, 0.1, 0.1), mass=5000.0 if i == 7 else 1.0, position=(i + 0.5, 0, 0))
        scene.add_joint(f"j{i}", sh.Spherical(), last, f"b{i}", position=(i, 0, 0))
        last = f"b{i}"
    sim = sh.Simulation(scene, 0.01, solver="sequential", tolerances=sh.Tolerances(iterations=2), on_divergence="warn")
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for _ in range(120):
            sim.step()
    about = [w for w in said if "likely cause" in str(w.message)]
    print([str(w.message) for w in said], sim.health())
    assert len(about) == 1 and about[0].filename == __file__ and sim.health().not_converged > 40
    assert "the mass of 'b7' is 5000 times that of 'b6'" in str(about[0].message)


# ---- a step is made whole or not at all -------------------------------------------------------------------------------------


def everything(sim):
    out = sim.snapshot()
    report = sim.solver.report
    out |= {"report": np.array([report.residual, report.iterations, report.projected, report.substeps], float)}
    return out | {"fallbacks": np.array(list(report.fallbacks.values()), float), "health": np.array(repr(sim.health()))}


@pytest.mark.parametrize("options", SOLVERS)
@pytest.mark.parametrize("n", [1, 7])
def test_a_step_that_fails_leaves_the_last_good_one(options, n):
    scene = sh.Scene()
    scene.add_body("a", sh.Box(1, 0.1, 0.1), mass=1.0, position=(0.5, 0, 0))
    scene.add_body("b", sh.Box(1, 0.1, 0.1), mass=1.0, position=(1.5, 0, 0))
    scene.add_joint("h", sh.Revolute("y", friction=0.1, damping=0.1), "world", "a", position=(0, 0, 0))
    scene.add_joint("u", sh.Universal(limit=(-1, 1)), "a", "b", position=(1, 0, 0))
    sim = sh.Simulation(scene, 1e-3, **options)
    quiet(sim, 20)
    good = sim.snapshot()
    sim.joint("h").velocity = 1e15
    before = everything(sim)
    with pytest.raises(sh.SimulationError, match="the last good state stays") as error:
        sim.step(n)
    print(error.value)
    after = everything(sim)
    assert not [k for k in before if not np.array_equal(before[k], after[k])]
    sim.restore(good)
    quiet(sim, 5)
    on = sim.snapshot()
    sim.reset()
    quiet(sim, 20)
    assert all(np.array_equal(good[k], v) for k, v in sim.snapshot().items())
    quiet(sim, 5)
    assert all(np.array_equal(on[k], v) for k, v in sim.snapshot().items()), "it goes on as if nothing had been"


def test_restore_refuses_what_is_not_finite():
    sim = links()
    snapshot = sim.snapshot()
    snapshot["state.velocity"][2, 0, 1] = np.nan
    before = sim.snapshot()
    with pytest.raises(sh.SimulationError, match=r"restore: 'state.velocity' of body 'b1' is nan"):
        sim.restore(snapshot)
    assert all(np.array_equal(before[k], v) for k, v in sim.snapshot().items())


# ---- time -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", SOLVERS)
def test_ctrl_c_is_heard_in_a_long_call(options):
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job may have been started without it
    sim = quiet(links(**options), 20)
    pressed = []

    def press():
        pressed.append(time.perf_counter())
        _thread.interrupt_main()

    timer = threading.Timer(0.3, press)
    timer.start()
    with pytest.raises(KeyboardInterrupt), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sim.step(30_000_000)
    late = time.perf_counter() - pressed[0]
    print(f"heard after {1e3 * late:.0f} ms")
    in_time(late, 0.4, "Ctrl-C")
    assert np.isfinite(sim.step().residual)


@pytest.mark.parametrize("options", SOLVERS)
def test_one_call_and_many_are_the_same_to_the_bit(options):
    a, b = links(n=4, **options), links(n=4, **options)
    quiet(a, 300, 300)
    quiet(b, 300)
    one, many = a.snapshot(), b.snapshot()
    assert not [k for k in one if not np.array_equal(one[k], many[k])]


def test_what_the_time_is_called_changes_nothing():
    """Friction that depends on the load holds in the first step, whatever the clock shows."""
    ends = []
    for start in (None, 5.0):
        scene = sh.Scene()
        scene.add_body("block", sh.Box(1, 1, 1), mass=1.0)
        scene.add_joint("slide", sh.Prismatic((1, 0, -0.3), friction=sh.Friction(load=0.5)), "world", "block", position=(0, 0, 0))
        sim = sh.Simulation(scene, 1e-3, solver="sequential")
        if start is not None:
            sim.time = start
        sim.step(20)
        ends.append(sim.joint("slide").position)
    assert sim.time == pytest.approx(5.02) and ends[0] == ends[1]


# ---- mistakes ---------------------------------------------------------------------------------------------------------------


def test_options_and_ropes_are_refused_by_name():
    with pytest.raises(
        sh.SimulationError, match=r"'iteratons' is not an option of solver 'sequential'; allowed: sleep, threads, tolerances"
    ):
        links(iteratons=3)
    scene = sh.Scene()
    scene.add_rope("r", (0, 0, 0), (1, 0, 0), segments=4, attach=("world", None))
    with pytest.raises(sh.SimulationError, match=r"'erp' is not used by a scene of ropes without joints, got 0\.5; it uses iter"):
        sh.Simulation(scene, 1e-3, tolerances=sh.Tolerances(erp=0.5))
    bare = sh.Scene()
    bare.add_body("b", sh.Box(1, 1, 1))
    with pytest.raises(sh.SimulationError, match="'rope_tolerance' is of ropes, and the model has none"):
        sh.Simulation(bare, 1e-3, tolerances=sh.Tolerances(rope_tolerance=1e-6))
    with pytest.raises(sh.SimulationError, match=r"'erp' is not used by a scene of ropes without joints, got 0\.5; it uses iter"):
        sh.Simulation(scene, 1e-3, solver="sequential", tolerances=sh.Tolerances(erp=0.5))
    with pytest.raises(sh.SceneError, match="rope 'r' has no joint coordinates"):
        sh.dynamics.gravity_torques(scene.build(), [])
    with pytest.raises(sh.SceneError, match="breaking_load"):
        scene.add_rope("s", (0, 0, 0), (1, 0, 0), segments=4, breaking_load=0)
    scene.add_body("load", sh.Box(1, 1, 1), mass=1.0, position=(1, 0, -12))
    with pytest.warns(sh.SceneWarning, match="its end is 12 m from body 'load'"):
        scene.add_rope("t", (0, 0, 0), (1, 0, 0), segments=4, attach=("world", "load"))
    assert len(scene.notes) == 1


def test_torn_elements_do_not_count_as_stretch():
    scene = sh.Scene()
    scene.add_rope("r", (0, 0, 0), (0, 0, -1), segments=10, mass_per_length=0.1, attach=("world", None))
    sim = sh.Simulation(scene, 1e-3)
    sim.step(5)
    sim.rope("r").cut(4)
    sim.step(300)
    assert sim.rope("r").stretch < 1e-9
