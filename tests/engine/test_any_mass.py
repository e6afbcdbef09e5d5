"""Trees of any masses in simulations: from 1e-3 to 1e6 of each other, point masses, needles; stiff drives; random attacks."""

import itertools
import warnings

import numpy as np
import pytest

import sharnir as sh
from sharnir.core.spatial import quat_exp


def test_a_point_mass_at_the_end_of_a_bar_is_a_part_of_it():
    scene, whole = sh.Scene(), sh.Scene()
    scene.add_body("bar", mass=1.0, inertia=(0.001, 0.1, 0.1), position=(0.5, 0, 0))
    scene.add_body("dot", mass=2.0, position=(1, 0, 0))
    scene.add_joint("hold", sh.Spherical(), "bar", "dot", position=(1, 0, 0))
    centre = 2.5 / 3
    inertia = 0.1 + (centre - 0.5) ** 2 + 2 * (1 - centre) ** 2
    whole.add_body("bar", mass=3.0, inertia=(0.001, inertia, inertia), position=(centre, 0, 0))
    angles = []
    for s in (scene, whole):
        s.add_joint("hinge", sh.Revolute("y"), "world", "bar", position=(0, 0, 0))
        sim = sh.Simulation(s, 2e-3)
        sim.run(1.0)
        assert sim.solver._lean
        angles.append(sim.joint("hinge").position)
    assert angles[0] == pytest.approx(angles[1], abs=1e-10)


def test_point_masses_between_bars_keep_energy_and_do_not_turn():
    scene, last = sh.Scene(), "world"
    for i in range(3):
        scene.add_body(f"bar {i}", mass=1.0, inertia=(0.001, 0.01, 0.01), position=(i + 0.5, 0, 0))
        joint = sh.Spherical() if i else sh.Revolute("y")
        scene.add_joint(f"j{i}", joint, last, f"bar {i}", position=(i, 0, 0))
        last = f"dot {i}"
        scene.add_body(last, mass=10.0 ** (3 * i - 3), position=(i + 1, 0, 0))
        scene.add_joint(f"hold {i}", sh.Spherical(), f"bar {i}", last, position=(i + 1, 0, 0))
    sim = sh.Simulation(scene, 2e-3)
    energy, scale = sim.energy().total, 1e3 * 9.81 * 3
    for _ in range(25):
        sim.step(8)
        assert abs(sim.energy().total - energy) < 1e-11 * scale
        assert not np.any([sim.body(f"dot {i}").angular_velocity for i in range(3)])
    assert sim.solver._lean


@pytest.mark.parametrize("ratio", [2e-12, 1e-6])
def test_needles_that_turn_about_themselves_keep_energy(ratio):
    """Bars with next to no inertia about their axis, some of them on a hinge along it."""
    scene, last, rng = sh.Scene(), "world", np.random.default_rng(1)
    for i in range(5):
        scene.add_body(f"n{i}", mass=0.5, inertia=(ratio * 4e-3, 4e-3, 4e-3), position=(0.3 * i + 0.15, 0, 0))
        axis = "x" if i in (2, 4) else rng.normal(size=3)
        scene.add_joint(f"j{i}", sh.Revolute(axis), last, f"n{i}", position=(0.3 * i, 0, 0))
        last = f"n{i}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sh.StepWarning)  # a needle turns half a radian per step
        sim = sh.Simulation(scene, 1e-3)
        energy = sim.energy().total
        for _ in range(10):
            sim.step(20)
            assert abs(sim.energy().total - energy) < 1e-11
    assert sim.solver._lean
    assert sim.health().not_converged == 0


def attack(seed, laws):
    """One to seven bodies on hinges and sliders of any direction, masses over six decades, any step from 0.2 to 50 ms."""
    rng = np.random.default_rng([seed, 7])
    scene, names, places = sh.Scene(), ["world"], {"world": np.zeros(3)}
    dt = float(10 ** rng.uniform(-3.7, -1.3))
    for i in range(int(rng.integers(1, 8))):
        m, size = float(10 ** rng.uniform(-3, 3)), rng.uniform(0.03, 0.3, 3)
        base = names[int(rng.integers(len(names)))] if rng.random() < 0.4 else names[-1]
        at, turn = places[base] + 0.3 * rng.normal(size=3), np.linalg.qr(rng.normal(size=(3, 3)))[0]
        inertia = turn @ np.diag(m / 12 * ((size**2).sum() - size**2)) @ turn.T
        pose = {"position": at, "rotation": quat_exp(rng.normal(size=3)), "com": 0.05 * rng.normal(size=3)}
        scene.add_body(f"b{i}", mass=m, inertia=(inertia + inertia.T) / 2, **pose)
        kind = sh.Revolute if rng.random() < 0.7 else sh.Prismatic
        joint = kind(rng.normal(size=3), **some_laws(rng, 0.09 * m) if laws else {})
        pair = (base, f"b{i}") if rng.random() < 0.8 else (f"b{i}", base)
        scene.add_joint(f"j{i}", joint, *pair, position=at + 0.15 * rng.normal(size=3))
        names.append(f"b{i}")
        places[f"b{i}"] = at
    return scene, dt, rng


def some_laws(rng, scale):
    """Dampers and gains from next to nothing to far beyond what the step resolves; `scale`, kg·m²."""
    out = {}
    if rng.random() < 0.4:
        out["damping"] = float(scale * 10 ** rng.uniform(-3, 5))
    if rng.random() < 0.4:
        bound = float(scale * 10 ** rng.uniform(1, 5)) if rng.random() < 0.5 else np.inf
        gains = {"kp": float(scale * 10 ** rng.uniform(0, 7)), "kd": float(scale * 10 ** rng.uniform(-2, 4))}
        out["drive"] = sh.Servo(float(rng.normal()), **gains, max_force=bound)
    if rng.random() < 0.4:
        out["friction"] = float(scale * 10 ** rng.uniform(-1, 2))
    if rng.random() < 0.3:
        out["limit"] = (-float(rng.uniform(0.02, 0.5)), float(rng.uniform(0.02, 0.5)))
    return out


def thrown(scene, dt, rng):
    sim = sh.Simulation(scene, dt, solver="direct", sleep=False)
    for name in scene.joints:
        sim.joint(name).velocity = float(rng.normal())
    return sim


def keeps_energy(seed):
    scene, dt, rng = attack(seed, False)
    sim = thrown(scene, dt, rng)
    sim.step()
    start, worst = sim.energy(), 0.0
    for _ in range(40):
        sim.step()
        now = sim.energy()
        scale = max(abs(now.kinetic), abs(now.potential), abs(start.total))
        worst = max(worst, abs(now.total - start.total) / scale)
    return sim, worst


def obeys_commands(seed):
    scene, dt, rng = attack(seed, True)
    sim = thrown(scene, dt, rng)
    for _ in range(20):
        sim.step(int(rng.integers(1, 4)))
        for name, spec in scene.joints.items():
            view = sim.joint(name)
            if isinstance(spec.joint.drive, sh.Servo) and rng.random() < 0.3:
                view.drive.position = float(rng.normal())
            if rng.random() < 0.1:
                view.effort = float(rng.normal())
    return sim


@pytest.mark.parametrize("seeds", [range(12), pytest.param(range(12, 120), marks=pytest.mark.slow)])
def test_trees_of_any_masses_keep_energy_at_any_step(seeds):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in seeds:
            sim, worst = keeps_energy(seed)
            assert sim.solver._lean
            assert worst < 1e-9, f"seed {seed}: energy {worst:.1e} of its scale"


@pytest.mark.parametrize("seeds", [range(12), pytest.param(range(12, 120), marks=pytest.mark.slow)])
def test_drives_of_any_gains_are_obeyed_and_measured(seeds):
    """Commanded while it runs, whatever the gains: steps converge, limits hold, and the guard knows where energy comes from."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in seeds:
            sim = obeys_commands(seed)
            assert sim.solver._lean
            assert np.isfinite(sim.state.velocity.numpy()).all()
            assert sim.health().energy_error < 1e-6, f"seed {seed}"


def servo_arm(dt):
    """Three links whose servos a step of 1 to 4 ms resolves in part: h kd A is between ½ and 2, and A changes as it moves."""
    scene, last = sh.Scene(), "world"
    for i in range(3):
        scene.add_body(f"b{i}", sh.Box(0.3, 0.05, 0.05), mass=1.0 / (1 + i), position=(0.3 * i + 0.15, 0, 0))
        servo = sh.Servo(1.5 * (-1) ** i, kp=300.0 / 6**i, kd=60.0 / 6**i)
        scene.add_joint(f"j{i}", sh.Revolute("y", drive=servo), last, f"b{i}", position=(0.3 * i, 0, 0))
        last = f"b{i}"
    return sh.Simulation(scene, dt)


def test_drives_that_a_step_resolves_in_part_converge():
    """How much of them is taken at the mean follows the response of the last step: any share is a consistent law."""
    exact = servo_arm(1e-3)
    exact.integrate(0.2, rtol=1e-10, atol=1e-10)
    errors = []
    for dt in (4e-3, 2e-3, 1e-3, 5e-4):
        sim = servo_arm(dt)
        sim.run(0.2)
        errors.append(max(abs(sim.joint(f"j{i}").position - exact.joint(f"j{i}").position) for i in range(3)))
    print("errors, rad:", " ".join(f"{e:.1e}" for e in errors))
    assert all(fine < 0.6 * coarse for coarse, fine in itertools.pairwise(errors))
    assert errors[-1] < 1e-3
