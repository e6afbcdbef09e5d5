"""Contact against closed forms: sliding, rolling, bouncing, standing, holding; all solvers that know it."""

import numpy as np
import pytest

import sharnir as sh

G = 9.81
SOLVERS = ("sequential", "direct")


def ground(mu=0.5, e=0.0, **options):
    """A scene with a floor of one material."""
    scene = sh.Scene()
    scene.add_ground(material=sh.Material(friction=mu, restitution=e, **options))
    return scene, sh.Material(friction=mu, restitution=e, **options)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("angle", [0, 30, 45])
def test_a_block_slides_as_far_as_friction_lets_it(solver, angle):
    scene, m = ground(0.4)
    a = np.radians(angle)
    scene.add_body("block", sh.Box(0.2, 0.2, 0.1), mass=2.0, position=(0, 0, 0.05), material=m,
                   velocity=(5 * np.cos(a), 5 * np.sin(a), 0))  # fmt: skip
    sim = sh.Simulation(scene, 1e-3, solver=solver)
    sim.run(1.6)
    x = sim.body("block").position
    print(f"{solver}, {angle}°: {np.hypot(*x[:2]):.5f} m, exact 3.18552; height {x[2] - 0.05:.1e} m")
    assert np.hypot(*x[:2]) == pytest.approx(25 / (2 * 0.4 * G), rel=5e-3)
    assert x[2] == pytest.approx(0.05, abs=2e-5) and np.linalg.norm(sim.body("block").velocity) < 1e-6


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_sliding_ball_begins_to_roll(solver):
    scene, m = ground(0.2)
    scene.add_body("ball", sh.Sphere(0.1), mass=3.0, position=(0, 0, 0.1), velocity=(7, 0, 0), material=m)
    sim = sh.Simulation(scene, 1e-3, solver=solver)
    begins = None
    while sim.time < 1.5:
        sim.step()
        slip = sim.body("ball").velocity[0] - 0.1 * sim.body("ball").spin[1]
        if begins is None and abs(slip) < 1e-6:
            begins = sim.time
    v = sim.body("ball").velocity[0]
    print(f"{solver}: rolls from {begins:.4f} s (1.01937) on at {v:.6f} m/s (5)")
    assert begins == pytest.approx(1.019367992, rel=5e-3) and v == pytest.approx(5.0, rel=1e-4)


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_sphere_rolls_down(solver):
    scene = sh.Scene(gravity=(G * np.sin(np.pi / 6), 0, -G * np.cos(np.pi / 6)))
    m = sh.Material(friction=0.8)
    scene.add_ground(material=m)
    scene.add_body("ball", sh.Sphere(0.1), mass=3.0, position=(0, 0, 0.1), material=m)
    sim = sh.Simulation(scene, 1e-3, solver=solver)
    sim.run(1.0)
    print(f"{solver}: {sim.body('ball').velocity[0]:.6f} m/s after 1 s, exact 3.503571")
    assert sim.body("ball").velocity[0] == pytest.approx(3.503571429, rel=5e-3)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("over", [0.998, 1.002])
def test_a_block_on_an_incline_sticks_up_to_its_friction(solver, over):
    a = np.arctan(0.5 * over)
    scene = sh.Scene(gravity=(G * np.sin(a), 0, -G * np.cos(a)))
    m = sh.Material(friction=0.5)
    scene.add_ground(material=m)
    scene.add_body("block", sh.Box(0.2, 0.2, 0.05), mass=1.0, position=(0, 0, 0.025), material=m)
    sim = sh.Simulation(scene, 1e-3, solver=solver)
    sim.run(2.0)
    x = sim.body("block").position[0]
    slides = 0.5 * G * (np.sin(a) - 0.5 * np.cos(a)) * 4
    print(f"{solver}: tan α = {over:.3f} μ: {x:.2e} m in 2 s, exact {max(slides, 0):.2e}")
    assert x == pytest.approx(max(slides, 0.0), abs=2e-3 if over > 1 else 1e-6)
    assert (x > 5e-3) == (over > 1)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("e", [0.5, 0.7, 1.0])
def test_a_ball_bounces(solver, e):
    scene, m = ground(0.5, e)
    scene.add_body("ball", sh.Sphere(0.05), mass=1.0, position=(0, 0, 1.05), material=m)
    sim = sh.Simulation(scene, 1e-3, solver=solver)
    tops, last, rising = [], 9.0, False
    for _ in range(2500):
        sim.step()
        z = sim.body("ball").position[2] - 0.05
        if rising and z < last:
            tops.append(last)
        rising, last = z > last, z
    wanted = [e ** (2 * k) for k in range(1, 4)]
    print(f"{solver}, e = {e}: heights {np.round(tops[:3], 4)} of {np.round(wanted, 4)} m")
    for top, exact in zip(tops, wanted, strict=False):
        assert top == pytest.approx(exact, rel=1e-2)


@pytest.mark.parametrize("solver", SOLVERS)
def test_the_last_ball_of_a_cradle_leaves(solver):
    scene = sh.Scene(gravity=(0, 0, 0), contact=True)
    m = sh.Material(friction=0.0, restitution=1.0)
    for i in range(5):
        scene.add_body(f"{i}", sh.Sphere(0.05), mass=1.0, position=(0.1 * i - 0.05 * (i == 0), 0, 0), material=m,
                       velocity=(1.0 * (i == 0), 0, 0))  # fmt: skip
    sim = sh.Simulation(scene, 1e-3, solver=solver)
    sim.run(0.2)
    v = [sim.body(f"{i}").velocity[0] for i in range(5)]
    print(f"{solver}: speeds {np.round(v, 4)}")
    assert v[4] >= 0.99 and np.abs(v[:4]).max() <= 0.01


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("dt", [0.001, 0.005])
def test_a_stack_stands(solver, dt):
    scene, m = ground(0.6)
    for i in range(10):
        scene.add_body(f"{i}", sh.Box(0.2, 0.2, 0.2), mass=8.0, position=(0, 0, 0.1 + 0.2 * i), material=m)
    sim = sh.Simulation(scene, dt, solver=solver)
    sim.run(5.0)
    top = sim.body("9").position - [0, 0, 1.9]
    print(f"{solver}, {dt * 1e3:.0f} ms: the top moved by {1e3 * np.linalg.norm(top):.4f} mm in 5 s")
    assert np.linalg.norm(top) < 1e-4


@pytest.mark.parametrize("dt", [0.001, 0.005, 0.01])
def test_a_grasp_does_not_creep(dt):
    """10 kg between fingers of 0.05 kg that press with 200 N, friction 0.5."""
    m = sh.Material(friction=0.5)
    scene = sh.Scene(contact=True)
    scene.add_body("box", sh.Box(0.1, 0.1, 0.1), mass=10.0, position=(0, 0, 0), material=m)
    for side in (-1, 1):
        name = f"finger {side}"
        scene.add_body(name, sh.Box(0.02, 0.06, 0.06), mass=0.05, position=(side * 0.06, 0, 0), material=m)
        scene.add_joint(f"slide {side}", sh.Prismatic("x"), scene.world, name, position=(side * 0.06, 0, 0))
    sim = sh.Simulation(scene, dt, solver="direct")
    for side in (-1, 1):
        sim.joint(f"slide {side}").force = -200.0 * side
    sim.run(0.1)
    start = sim.body("box").position.copy()
    sim.run(2.0)
    fell = np.abs(sim.body("box").position - start).max()
    print(f"{dt * 1e3:.0f} ms: the box creeps {fell:.1e} m in 2 s")
    assert fell <= 1e-6
