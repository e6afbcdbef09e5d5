"""What simulations of trees read: reactions and accelerations at the end of a step, and the energy that drives gave."""

import numpy as np
import pytest

import sharnir as sh


def chain(masses, dt, joint=None, **options):
    """Bars of 0.1 m one behind the other on hinges, let go from level."""
    scene, last = sh.Scene(), "world"
    for i, m in enumerate(masses):
        scene.add_body(f"b{i}", sh.Box(0.1, 0.02, 0.02), mass=m, position=(0.1 * i + 0.05, 0, 0))
        scene.add_joint(f"j{i}", joint or sh.Revolute("y"), last, f"b{i}", position=(0.1 * i, 0, 0))
        last = f"b{i}"
    return sh.Simulation(scene, dt, solver="direct", sleep=False, **options)


@pytest.mark.parametrize("masses", [(1.0, 1e-3, 1e-3, 1e3), (1e3, 1e-3, 1.0, 1e-3, 1e3)])
def test_reactions_of_light_links_between_heavy_ones_do_not_alternate(masses):
    """The light links vibrate too fast for the step: means over steps alternate by several percent, readings do not."""
    sim = chain(masses, 1e-3)
    force = []
    for _ in range(40):
        sim.step()
        force.append([np.linalg.norm(sim.joint(f"j{i}").reaction[0]) for i in range(len(masses))])
    assert sim.solver._lean
    force = np.array(force)[25:]  # after what the start shook
    light = [i for i, m in enumerate(masses) if m < 1e-2]
    for i in light:  # what a link of 1 g takes of 200 N and more is little
        np.testing.assert_allclose(force[:, i], force[:, i + 1], rtol=1e-3)
    alternating = np.abs(force[2:] - 2 * force[1:-1] + force[:-2]) / 4
    print(f"reactions alternate by {(alternating / force[1:-1]).max():.1e}")
    assert (alternating / force[1:-1]).max() < 8e-3


def pendulum_errors(dt, calls):
    """Worst errors of reaction, N, and acceleration, m/s², of a swinging bar against closed forms in its own angle."""
    sim = chain([2.0], dt)
    m, arm = 2.0, 0.05
    inertia = m * (0.1**2 + 0.02**2) / 12 + m * arm**2
    worst = np.zeros(2)
    for _ in range(round(0.3 / dt / calls)):
        sim.step(calls)
        if sim.time < 5 * dt:
            continue
        q, u = sim.joint("j0").position, sim.joint("j0").velocity
        along, down = np.array([np.cos(q), 0, -np.sin(q)]), np.array([-np.sin(q), 0, -np.cos(q)])
        a = down * arm * (m * 9.81 * arm * np.cos(q) / inertia) - along * arm * u**2
        force = m * (a + [0, 0, 9.81])
        found = np.linalg.norm(sim.joint("j0").reaction[0] - force), np.linalg.norm(sim.body("b0").acceleration - a)
        worst = np.maximum(worst, found)
    return worst


@pytest.mark.parametrize("calls", [1, 4])
def test_reactions_and_accelerations_are_of_second_order(calls):
    coarse, fine = pendulum_errors(2e-3, calls), pendulum_errors(1e-3, calls)
    print(f"{calls} steps per call: reaction {coarse[0]:.1e}, {fine[0]:.1e} N, acceleration {coarse[1]:.1e}, {fine[1]:.1e} m/s²")
    assert np.all(fine < 0.3 * coarse)
    assert fine[0] < 0.03


def lifting_arm():
    """A servo lifts 10 kg from hanging to nearly upright, from rest to rest."""
    scene = sh.Scene()
    scene.add_body("arm", sh.Box(0.1, 0.1, 1.0), mass=10, position=(0, 0, -0.5))
    scene.add_joint("j", sh.Revolute("y", drive=sh.Servo(0.0, kp=2e4, kd=2e3)), "world", "arm", position=(0, 0, 0))
    sim = sh.Simulation(scene, 1e-3)
    sim.step(5)
    sim.joint("j").drive.position = 3.0
    return sim


@pytest.mark.parametrize("calls", [1, 7, 100, 1500])
def test_the_guard_measures_what_a_servo_gives_in_a_call(calls, recwarn):
    sim = lifting_arm()
    for _ in range(1500 // calls):
        sim.step(calls)
    assert sim.solver._lean
    health = sim.health()
    assert health.not_converged == 0
    assert health.energy_error < 1e-6
    assert not [w for w in recwarn if issubclass(w.category, sh.StepWarning)]


def test_the_guard_measures_forces_on_bodies_and_on_axes():
    sim = chain([1.0, 0.5, 0.2], 1e-3)
    sim.body("b2").apply_force((3.0, 0, 5.0), once=False)
    sim.body("b0").apply_torque((0.0, 0.7, 0.0), once=False)
    sim.joint("j1").effort = 0.4
    energy = sim.energy().total
    sim.step(300)
    assert abs(sim.energy().total - energy) > 0.1
    assert sim.health().energy_error < 1e-6


def test_an_engine_is_driven_alike_by_one_call_and_by_many():
    """The clutch takes from the crank what it gave to the shaft in the last step."""

    def make():
        engine = sh.Engine(curve=[(0, 100.0), (1000, 100.0)], inertia=0.5, idle=30.0, clutch=80.0, gears=(10.0,), throttle=0.3)
        scene = sh.Scene(gravity=(0, 0, 0))
        scene.add_body("wheel", mass=1.0, inertia=(60.0, 60.0, 60.0))
        scene.add_joint("shaft", sh.Revolute("z", drive=engine), "world", "wheel", position=(0, 0, 0))
        sim = sh.Simulation(scene, 1e-3, solver="direct")
        sim.joint("shaft").drive.gear = 1
        return sim

    one, many = make(), make()
    one.step(200)
    for _ in range(200):
        many.step()
    assert one.solver._lean
    assert one.joint("shaft").velocity == many.joint("shaft").velocity > 0.1
    assert one.joint("shaft").drive.engine_speed == many.joint("shaft").drive.engine_speed


@pytest.mark.parametrize(("tolerance", "held"), [(1e-3, True), (1e-9, False)])
def test_a_tolerance_is_an_impulse_by_which_laws_may_be_missed(tolerance, held):
    """Friction that would hold 1e-4 N·m·s per step, under twice that: it is missed by less than 1e-3 N·m·s."""
    scene = sh.Scene(gravity=(0, 0, 0))
    scene.add_body("wheel", sh.Box(0.3, 0.2, 0.1), mass=1.0)
    scene.add_joint("j", sh.Revolute("z", friction=0.1), "world", "wheel", position=(0, 0, 0))
    sim = sh.Simulation(scene, 1e-3, solver="direct", tolerances=sh.Tolerances(tolerance=tolerance), sleep=False)
    sim.joint("j").effort = 0.2
    sim.step(20)
    assert sim.solver._lean
    assert (abs(sim.joint("j").velocity) < 1e-12) == held
    assert sim.step().residual <= tolerance


@pytest.mark.parametrize("laws", [{}, {"damping": 0.1}, {"friction": 0.05}])
def test_the_guard_measures_moments_commanded_in_a_ball(laws):
    sim = chain([1.0, 0.5], 1e-3, sh.Spherical(**laws))
    rng = np.random.default_rng(3)
    for _ in range(20):
        sim.joint("j0").effort = 2 * rng.normal(size=3)
        sim.step(5)
    assert sim.solver._lean
    assert sim.health().energy_error < 1e-6


def test_a_tolerance_that_is_given_is_asked_of_iterations_as_well():
    """Speeds of axes on which laws act are found as finely as told, N·s, not only to what a default step leaves."""
    scene = sh.Scene()
    parent = scene.world
    for i in range(3):
        body = scene.add_body(f"b{i}", sh.Box(0.3, 0.05, 0.05), mass=1.0, position=(0.15 + 0.3 * i, 0, 0))
        servo = sh.Servo(0.5, kp=40.0, kd=1.0)
        scene.add_joint(f"j{i}", sh.Revolute("yzy"[i], friction=0.1, drive=servo), parent, body, position=(0.3 * i, 0, 0))
        parent = body
    sims = [sh.Simulation(scene, 1e-3, tolerances=sh.Tolerances(tolerance=most)) for most in (None, 1e-9, 1e-13)]
    worst = [max(float(np.max(sim.step().residual)) for _ in range(100)) for sim in sims]
    left = [sim.solver._kept.acted_tolerance for sim in sims]
    assert worst[2] < 1e-13 < worst[1] < 1e-9
    assert left[2] < left[1] == left[0]
    np.testing.assert_allclose(sims[0].q, sims[2].q, rtol=0, atol=1e-11)
