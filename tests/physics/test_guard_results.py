"""The guard judges results: right motions are never stopped nor warned of, wrong ones are reported and stopped."""

import math
import warnings

import numpy as np
import pytest
from conftest import load_example
from mechanisms import passive_case

import sharnir as sh


def spring(solver="auto", **options):
    """2 kg on an undamped spring of 7 Hz, let go from 0.1 m."""
    scene = sh.Scene(gravity=(0, 0, 0))
    scene.add_body("b", sh.Box(0.1, 0.1, 0.1), mass=2.0, position=(0.3, 0, 0))
    law = (2 * (2 * math.pi * 7) ** 2, -0.1)
    scene.add_joint("s", sh.Prismatic("x", spring=law), "world", "b", position=(0.3, 0, 0))
    return sh.Simulation(scene, 0.01, solver=solver, **options)


def elastic_balls(solver, **options):
    """64 balls with restitution 1 that fall onto smooth ground."""
    scene, rng = sh.Scene(), np.random.default_rng(0)
    scene.add_ground(material=sh.Material(friction=0.0))
    for i in range(64):
        place = np.array([i % 4, i // 4 % 4, i // 16]) * 0.21 + [0, 0, 1.101] + rng.uniform(-0.001, 0.001, 3)
        material = sh.Material(friction=0.0, restitution=1.0)
        scene.add_body(f"b{i}", sh.Sphere(0.1), mass=10.0, material=material, position=place)
    return sh.Simulation(scene, dt=2e-3, solver=solver, **options)


def speed_up(sim, factor):
    """Scale all velocities without the simulation's knowledge, as a wrong solver would."""
    for array in (sim._state.velocity, sim._state.momentum, sim._state.spin):
        array.assign(factor * array.numpy())


def hanging(ratio, size=1.0, mass=1.0, **options):
    """A chain of 20 links, let go from horizontal, with a load at its end."""
    scene, last, l = sh.Scene(), "world", 0.1 * size
    for i in range(20):
        scene.add_body(f"b{i}", sh.Box(l, 0.2 * l, 0.2 * l), mass=0.1 * mass, position=(l * i + 0.5 * l, 0, 0))
        scene.add_joint(f"j{i}", sh.Spherical(), last, f"b{i}", position=(l * i, 0, 0))
        last = f"b{i}"
    scene.add_body("load", sh.Box(2 * l, 2 * l, 2 * l), mass=0.1 * ratio * mass, position=(21 * l, 0, 0))
    scene.add_joint("hook", sh.Spherical(), last, "load", position=(20 * l, 0, 0))
    return sh.Simulation(scene, 2e-3 * math.sqrt(size), **options)


def warned(sim, steps, **how):
    """Warnings about steps that single steps give."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for _ in range(steps):
            sim.step(**how)
    return [str(w.message) for w in said if w.category is sh.StepWarning]


# ---- right results ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["direct", "sequential"])
def test_a_spring_that_keeps_its_energy_is_not_stopped(solver):
    sim = spring(solver)
    start = sim.energy().total
    assert all(sim.step().converged for _ in range(100))
    print(f"{solver}: energy off by {abs(sim.energy().total / start - 1):.1e}, energy error {sim.health().energy_error:.1e}")
    assert sim.health().not_converged == 0 and sim.health().energy_error < 1e-9
    assert abs(sim.energy().total / start - 1) < 1e-9


def andrews(solver, dt):
    """Andrews' squeezer: seven bodies of some grams, three loops, a stiff spring, driven by 0.033 N·m from rest."""
    b, g, f, d, o, e = (
        -0.0617138900142764,
        0.455279819163070,
        0.222668390165886,
        0.487364979543843,
        -0.222668390165886,
        1.23054744454982,
    )
    A, B, C = np.array([-0.06934, -0.00227]), np.array([-0.03635, 0.03273]), np.array([0.014, 0.072])
    rr, zt, u = 0.007, 0.04, 0.04

    def at(angle):
        return np.array([math.cos(angle), math.sin(angle)])

    def across(angle):
        return np.array([math.sin(angle), -math.cos(angle)])

    crank, elbow5, elbow7 = rr * at(b), A + zt * at(d), A + u * across(e)
    P = crank - 0.028 * at(b)
    places = {
        "1": 0.00092 * at(b), "2": crank - 0.0115 * at(b), "3": B + 0.01874 * across(g) + 0.01043 * at(g),
        "4": elbow5 + (0.02 - 0.01421) * across(f + d), "5": A + 0.02308 * at(d) - 0.00916 * across(d),
        "6": elbow7 + (0.02 - 0.01421) * at(o + e), "7": A + 0.01228 * across(e) - 0.00449 * at(e),
    }  # fmt: skip
    masses = (0.04325, 0.00365, 0.02373, 0.00706, 0.0705, 0.00706, 0.05498)
    inertias = (2.194e-6, 4.41e-7, 5.255e-6, 5.667e-7, 1.169e-5, 5.667e-7, 1.912e-5)
    scene = sh.Scene(gravity=(0, 0, 0))
    for (name, place), mass, inertia in zip(places.items(), masses, inertias, strict=True):
        scene.add_body(name, mass=mass, inertia=(inertia,) * 3, position=(*place, 0))
    pins = {
        "crank": ("world", "1", np.zeros(2)), "rod": ("1", "2", crank), "b3": ("world", "3", B), "b5": ("world", "5", A),
        "b7": ("world", "7", A), "54": ("5", "4", elbow5), "76": ("7", "6", elbow7), "p3": ("2", "3", P), "p4": ("2", "4", P),
        "p6": ("2", "6", P),
    }  # fmt: skip
    for name, (parent, child, place) in pins.items():
        scene.add_joint(name, sh.Revolute("z"), parent, child, position=(*place, 0))
    D = B + 0.018 * across(g) + 0.02 * at(g)
    scene.add_spring("spring", "3", "world", at_a=(*(D - places["3"]), 0), at_b=(*C, 0), stiffness=4530.0, rest=0.07785)
    sim = sh.Simulation(scene, dt, solver=solver)
    sim.joint("crank").effort = 0.033
    return sim


@pytest.mark.parametrize("solver", ["direct", "sequential"])
def test_andrews_mechanism_is_not_stopped(solver):
    sim = andrews(solver, 1e-4)
    start = sim.energy().total
    turned = sim.joint("crank").position
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sh.StepWarning)  # sweeps leave its loops open by 0.1 mm
        sim.run(0.03)
    given = 0.033 * (sim.joint("crank").position - turned)
    off = sim.energy().total - start - given
    print(f"{solver}: {given:.4f} J given, energy off by {off:.1e} J; {sim.health()}")
    assert sim.health().energy_error < 0.02 and given > 0.1 and abs(off) < (1e-6 if solver == "direct" else 0.05) * given


@pytest.mark.parametrize("solver", ["direct", "sequential"])
def test_a_box_that_slides_down_a_ramp_as_it_should_has_converged(solver):
    scene, a, mu = sh.Scene(), math.radians(20), 0.2
    scene.add_ground(normal=(math.sin(a), 0, math.cos(a)), material=sh.Material(friction=mu))
    place, turn = (0.1 * math.sin(a), 0, 0.1 * math.cos(a)), (0, math.sin(a / 2), 0, math.cos(a / 2))
    scene.add_body("box", sh.Box(0.4, 0.4, 0.2), mass=2.0, position=place, rotation=turn, material=sh.Material(friction=mu))
    sim = sh.Simulation(scene, 0.005, solver=solver)
    said = warned(sim, 200)
    way = np.linalg.norm(sim.body("box").position - place)
    rate = 9.81 * (math.sin(a) - mu * math.cos(a))
    print(f"{solver}: {way:.7f} m, closed form {0.5 * rate * sim.time**2:.7f}")
    assert way == pytest.approx(0.5 * rate * sim.time**2, abs=1e-3)
    assert not said and sim.health().not_converged == 0 and sim.health().energy_error < 1e-9


@pytest.mark.parametrize("solver", ["direct", "sequential"])
def test_a_stack_at_rest_has_converged(solver):
    scene = sh.Scene()
    scene.add_ground()
    for i in range(5):
        scene.add_body(f"b{i}", sh.Box(0.4, 0.4, 0.2), mass=2.0, position=(0, 0, 0.1 + 0.2 * i))
    sim = sh.Simulation(scene, 0.005, solver=solver, sleep=False)
    assert not warned(sim, 100) and sim.health().not_converged == 0


def test_few_iterations_that_lead_to_the_right_result_have_converged():
    sims = [hanging(1.0, solver="sequential", tolerances=sh.Tolerances(iterations=n)) for n in (3, 300)]
    for sim in sims:
        assert not warned(sim, 40) and sim.health().not_converged == 0
    off = np.linalg.norm(sims[0].body("load").position - sims[1].body("load").position)
    print(f"3 iterations: {off:.1e} m from 300, residual {sims[0].step().residual:.1e} N·s")
    assert off < 1e-3  # of a chain of 2 m


def test_the_work_of_a_servo_is_measured():
    """A bound on what a servo may have given would hide a tenth of the motion's energy from nowhere; its measure does not."""
    scene = sh.Scene()
    scene.add_body("arm", sh.Box(1, 0.1, 0.1), mass=3.0, position=(0.5, 0, 0))
    servo = sh.Servo(kp=400.0, kd=40.0, position=-1.2)
    scene.add_joint("hinge", sh.Revolute("y", drive=servo), "world", "arm", position=(0, 0, 0))
    sim = sh.Simulation(scene, 2e-3)
    assert all(sim.step().converged for _ in range(60)) and sim.health().energy_error < 1e-5
    sim.solver.strict.fill_(0)
    speed_up(sim, 1.05)
    report = sim.step()
    assert not report.converged and report.problems == ("energy",)


# ---- wrong results ----------------------------------------------------------------------------------------------------------


def test_energy_without_a_source_stops_a_run():
    """A budget that leaves time for one pass of an iteration: five links thrown into their limits gain energy."""
    scene, last = sh.Scene(), "world"
    for i in range(5):
        scene.add_body(f"b{i}", sh.Box(0.1, 0.02, 0.02), mass=1.0, position=(0.1 * i + 0.05, 0, 0))
        hinge = sh.Revolute("y", friction=0.3, limit=(-0.2, 0.2))
        scene.add_joint(f"j{i}", hinge, last, f"b{i}", position=(0.1 * i, 0, 0))
        last = f"b{i}"
    sim = sh.Simulation(scene, 1e-3)
    sim.joint("j0").velocity = 20.0
    sim.step(budget=1.0)  # measures how long a pass takes
    start = sim.energy().total
    with pytest.raises(sh.DivergenceError, match=r"energy grew by .* J without any source \(expected at most"):
        for _ in range(300):
            sim.step(budget=1e-9)
    assert sim.energy().total < 1.5 * start, "the last good state stays"


def test_energy_without_a_source_is_reported():
    wrong = elastic_balls("direct", on_divergence="warn")
    right = [elastic_balls("sequential"), elastic_balls("direct")]
    start = wrong.energy().total
    wrong.run(0.5)
    speed_up(wrong, 1.5)
    with pytest.warns(sh.StepWarning, match="energy grew"):
        wrong.run(0.2)
    for sim in right:
        sim.run(0.7)
    for sim in (wrong, *right):
        print(f"{sim.solver_name}: {sim.energy().total / start:.3f} of the energy, {sim.health()}")
    assert wrong.energy().total > 1.2 * start and wrong.health().energy_error > 0.2 and wrong.health().not_converged > 0
    assert all(sim.energy().total < 1.01 * start and sim.health().energy_error < 0.01 for sim in right)


def test_a_mass_ratio_is_named_once():
    sim = hanging(1000.0, solver="sequential", on_divergence="warn")
    said = warned(sim, 200)
    print(said, sim.health())
    assert 1 <= len(said) <= 2 and sim.health().not_converged > 50
    assert "the mass of 'load' is 1000 times that of 'b19'" in said[0] and "solver='direct'" in said[0]
    exact = hanging(1000.0)
    assert not warned(exact, 200) and exact.health().not_converged == 0


def test_a_budget_is_named():
    sim = hanging(1000.0, solver="sequential", on_divergence="warn")
    said = warned(sim, 200, budget=1e-5)
    assert said and "the budget of 1e-05 s per step is too short" in said[0]


@pytest.mark.parametrize(("size", "mass"), [(1e-4, 1e-6), (1e4, 1e6)])
def test_verdicts_scale_with_the_scene(size, mass):
    """Lengths by `size`, masses by `mass`, time by √size: the same motion, the same verdicts."""
    for ratio in (1.0, 1000.0):
        sims = [hanging(ratio, *scale, solver="sequential", on_divergence="ignore") for scale in ((1, 1), (size, mass))]
        unmet = []
        for sim in sims:
            warned(sim, 100)
            unmet.append(sim.health().not_converged)
        print(f"load {ratio:g}: {unmet} of 100 steps not converged, errors {[s.health().energy_error for s in sims]}")
        assert unmet[0] == unmet[1] == 0 if ratio == 1.0 else abs(unmet[0] - unmet[1]) <= 5 and min(unmet) > 20


def test_contacts_that_yield_store_energy():
    scene = sh.Scene()
    soft = sh.Material(stiffness=2000.0, friction=0.0)
    scene.add_ground(material=soft)
    scene.add_body("ball", sh.Sphere(0.1), mass=1.0, position=(0, 0, 0.15), material=soft)
    sim = sh.Simulation(scene, 5e-4, solver="sequential")
    start, most = sim.energy().total, 0.0
    for _ in range(400):
        sim.step()
        most = max(most, sim.energy().contact)
    print(f"contact energy up to {most:.3f} J of {start:.3f}; total {sim.energy().total / start:.4f}")
    assert 0.3 * start < most < 1.01 * start and sim.energy().total < 1.01 * start


# ---- examples and random scenes ---------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", ["marble_run", "newtons_cradle", "dominoes", "branching_tree", "wall_follower"])
def test_examples_that_are_right_have_converged(name):
    """All were said not to converge while only the iteration was asked."""
    module = load_example(name)
    sim = module.make()
    module.check(sim)
    assert sim.health().not_converged == 0


def false_alarms(solver, seeds, steps):
    """Passive scenes that were stopped, or warned of, though their energy stays and their joints hold."""
    wrong, reported = [], 0
    for seed in seeds:
        case = passive_case(seed, solver)
        try:
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                sim = case.simulation()
                sim.step(steps)
            stopped = any(w.category is sh.StepWarning and "rad per step" not in str(w.message) for w in said)
        except sh.DivergenceError:
            stopped = True
        if not stopped:
            continue
        reported += 1
        sim = case.simulation(on_divergence="ignore")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            start, rise, gap, scale = None, 0.0, 0.0, 0.0
            for _ in range(steps):
                sim.step()
                energy = sim.energy()
                start = energy.total if start is None else start
                rise, scale = max(rise, energy.total - start), max(scale, energy.kinetic + energy.elastic)
                gap = max(gap, sim.constraint_error().max(initial=0.0))
        if rise < 1e-3 * scale and gap < 1e-3:
            wrong.append(f"seed {seed}: energy +{rise / scale:.1e} of its scale, gap {gap:.1e}")
    print(f"{solver}: {reported} of {len(seeds)} reported, {len(wrong)} of them right")
    return wrong, reported


@pytest.mark.parametrize("solver", ["direct", "sequential"])
def test_no_right_passive_scene_is_stopped(solver):
    wrong, reported = false_alarms(solver, range(12), 60)
    assert not wrong and (solver == "sequential" or reported == 0)


@pytest.mark.slow
@pytest.mark.parametrize("solver", ["direct", "sequential"])
@pytest.mark.parametrize("run", range(10))
def test_no_right_passive_scene_of_many_is_stopped(solver, run):
    wrong, reported = false_alarms(solver, range(5000 + 100 * run, 5100 + 100 * run), 100)
    assert not wrong and (solver == "sequential" or reported == 0)
