"""Materials of surfaces in contact, against closed forms: friction along and across, rolling, torsion, springs, treads, belts."""

import math

import numpy as np
import pytest

import sharnir as sh
from sharnir.engine.direct.trees import Trees

G = 9.81


def block(material, ground=None, velocity=(0.0, 0.0, 0.0), dt=0.002, height=0.05):
    scene = sh.Scene()
    scene.add_ground(material=ground or material)
    scene.add_body("block", sh.Box(0.4, 0.4, 0.1), mass=2.0, position=(0, 0, height), velocity=velocity, material=material)
    return sh.Simulation(scene, dt, solver="direct")


def ball(velocity, spin, **material):
    scene, surface = sh.Scene(), sh.Material(friction=0.6, **material)
    scene.add_ground(material=surface)
    scene.add_body(
        "ball", sh.Sphere(0.1), mass=2.0, position=(0, 0, 0.1), velocity=velocity, angular_velocity=spin, material=surface
    )
    return sh.Simulation(scene, 0.004, solver="direct")


def test_contacts_of_all_materials_are_solved_in_joint_coordinates():
    every = sh.Material((0.5, 0.2), (1, 0, 0), rolling=0.01, torsion=0.01, stiffness=1e5, damping=10.0)
    assert Trees.cover(block(every).model)


@pytest.mark.parametrize("across", [0.1, 0.0])
def test_a_block_slides_by_the_ellipse_of_its_friction(across):
    """v̇ = −g D² v/|D v|, D = diag(0.5, across); where nothing rubs across, that speed is kept."""
    v, D, dt = np.array([1.0, 0.7]), np.array([0.5, across]), 1e-4
    sim = block(sh.Material((0.5, across), (1, 0, 0)), velocity=(*v, 0.0))
    sim.run(0.15)
    for _ in range(1500):
        mid = v - 0.5 * dt * G * D * D * v / np.linalg.norm(D * v)
        v = v - dt * G * D * D * mid / np.linalg.norm(D * mid)
    assert sim.body("block").velocity[:2] == pytest.approx(v, abs=1e-3)
    if across == 0.0:
        assert sim.body("block").velocity[1] == pytest.approx(0.7, abs=1e-12)


@pytest.mark.parametrize(("pull", "moves"), [(0.5, False), (0.65, True)])
def test_a_block_that_rests_holds_as_long_as_static_friction_lets_it(pull, moves):
    """A load between dynamic and static friction does not set it in motion; above, it slides by the dynamic one."""
    sim = block(sh.Material(0.6, dynamic=0.4))
    sim.run(0.1)
    sim.body("block").apply_force((pull * 2.0 * G, 0.0, 0.0), once=False)
    sim.run(0.5)
    v = float(sim.body("block").velocity[0])
    assert v == pytest.approx(0.5 * (pull - 0.4) * G, rel=0.01) if moves else abs(v) < 1e-9


def test_rolling_friction_brakes_a_ball_and_holds_it():
    """Along a slanted way: a = 5 c g/(7 r), from the first step on; then it stands."""
    sim = ball((1.0, 0.5, 0.0), (-5.0, 10.0, 0.0), rolling=0.005)
    sim.run(0.8)
    left = math.hypot(1.0, 0.5) - 5 * 0.005 * G / 0.7 * 0.8
    assert sim.body("ball").velocity[:2] == pytest.approx(left * np.array([1.0, 0.5]) / math.hypot(1.0, 0.5), abs=1e-9)
    sim.run(3.0)
    assert np.abs(sim.body("ball").velocity).max() < 1e-12


def test_rolling_friction_holds_a_ball_on_a_slope_up_to_its_angle():
    """tan α = c/r: a ball stands below it, and rolls above."""
    speeds = []
    for by in (0.99, 1.05):
        slope = math.atan(by * 0.02 / 0.1)
        scene, surface = sh.Scene(gravity=(G * math.sin(slope), 0.0, -G * math.cos(slope))), sh.Material(0.6, rolling=0.02)
        scene.add_ground(material=surface)
        scene.add_body("ball", sh.Sphere(0.1), mass=2.0, position=(0, 0, 0.1), material=surface)
        sim = sh.Simulation(scene, 0.004, solver="direct")
        sim.run(0.5)
        speeds.append(float(sim.body("ball").velocity[0]))
    assert abs(speeds[0]) < 1e-9 and speeds[1] == pytest.approx(0.5 * 5 / 7 * (G * math.sin(slope) - 0.2 * G * math.cos(slope)))


def test_torsional_friction_stops_a_ball_that_spins():
    """α = c g/(0.4 r²)."""
    sim = ball((0.0, 0.0, 0.0), (0.0, 0.0, 20.0), torsion=0.01)
    sim.run(0.6)
    assert sim.body("ball").angular_velocity[2] == pytest.approx(20.0 - 0.01 * G / (0.4 * 0.01) * 0.6, abs=1e-9)
    sim.run(0.6)
    assert abs(sim.body("ball").angular_velocity[2]) < 1e-12


def test_a_soft_contact_carries_and_swings_as_its_spring():
    """Four points of k: it sinks by m g/4k, and swings with ω = √(4k/m)."""
    soft = sh.Material(0.5, stiffness=2000.0, damping=40.0)
    sim = block(soft, dt=0.001)
    sim.run(2.0)
    assert sim.body("block").position[2] == pytest.approx(0.05 - 2.0 * G / 8000.0, abs=1e-7)
    light = block(sh.Material(0.0, stiffness=2000.0, damping=0.0), dt=1e-4, height=0.05)
    period = 2 * math.pi / math.sqrt(8000.0 / 2.0)
    light.run(0.5 * period)
    assert light.body("block").position[2] == pytest.approx(0.05 - 2 * 2.0 * G / 8000.0, rel=2e-3)


def test_a_tread_yields_and_fades_as_it_is_said():
    """A ball that does not turn, pulled sideways: m ẍ = F − k e, σ ė + |ẋ| e = σ ẋ; beyond μ N it slides."""
    scene = sh.Scene()
    tire = sh.Material(0.8, shear=5e4, relaxation=0.3)
    scene.add_ground(material=sh.Material(0.8))
    scene.add_body("ball", sh.Sphere(0.2), mass=20.0, position=(0, 0, 0.2), material=tire)
    scene.add_body("cart", mass=1.0, position=(0, 0, 0.2), inertia=(0.1,) * 3)
    scene.add_joint("slide", sh.Prismatic("x"), "world", "cart", position=(0, 0, 0.2))
    scene.add_joint("lift", sh.Prismatic("z"), "cart", "ball", position=(0, 0, 0.2))
    sim = sh.Simulation(scene, 1e-4, solver="direct")
    sim.step(4)
    sim.body("ball").apply_force((100.0, 0.0, 0.0), once=False)
    x = v = e = 0.0
    dt, most = 1e-5, 0.0
    for _ in range(5000):
        v += dt * (100.0 - 5e4 * e) / 21.0
        e += dt * (v - abs(v) * e / 0.3)
        x += dt * v
        most = max(most, x)
    sim.run(0.05)
    assert sim.body("ball").position[0] == pytest.approx(x, abs=0.01 * most)
    sim.body("ball").apply_force((200.0, 0.0, 0.0), once=False)
    sim.run(0.5)
    assert sim.body("ball").velocity[0] == pytest.approx(0.5 * (200.0 - 0.8 * 20.0 * G) / 21.0, rel=0.1)


def test_a_belt_carries_what_lies_on_it_and_its_motor_feels_that():
    """A torque on the sprocket moves belt and load: a = (T/r)/(m + I/r²) as long as the load does not slide."""
    scene, rubber = sh.Scene(), sh.Material(0.6)
    scene.add_body("frame", mass=50.0, inertia=(1.0,) * 3, position=(0, 0, 0.5))
    scene.add_joint("stand", sh.Fixed(), "world", "frame", position=(0, 0, 0.5))
    scene.add_body("sprocket", mass=1.0, inertia=(0.1, 0.1, 0.1), position=(0, 0, 0.5))
    scene.add_joint("turn", sh.Revolute("y"), "frame", "sprocket", position=(0, 0, 0.5))
    scene.add_belt("turn", "frame", sh.Box(4.0, 0.4, 0.2), radius=0.1, material=rubber)
    scene.add_body("load", sh.Box(0.2, 0.2, 0.1), mass=5.0, position=(0, 0, 0.65), material=rubber)
    sim = sh.Simulation(scene, 0.004, solver="direct")
    sim.joint("turn").effort = 2.0
    sim.run(0.4)
    exact = 0.4 * (2.0 / 0.1) / (5.0 + 0.1 / 0.1**2)
    assert abs(sim.body("load").velocity[0]) == pytest.approx(exact, rel=1e-3)
    assert abs(sim.joint("turn").velocity) == pytest.approx(exact / 0.1, rel=1e-3)


def ring(rolling):
    """Four capsules in a ring of hinges, which falls from half a metre."""
    material, scene = sh.Material(friction=0.6, rolling=rolling), sh.Scene()
    scene.add_ground(material=material)
    corners = np.array([[0, 0, 0.8], [0.3, 0, 0.85], [0.3, 0, 1.15], [0, 0, 1.1]])
    for k in range(4):
        a, b = corners[k], corners[(k + 1) % 4]
        half = 0.5 * (np.pi / 2 - np.arctan2(b[2] - a[2], b[0] - a[0]))
        shape, turn = sh.Capsule(0.03, 0.8 * float(np.linalg.norm(b - a))), (0, np.sin(half), 0, np.cos(half))
        scene.add_body(f"link {k}", shape, mass=1.0, position=(a + b) / 2, rotation=turn, material=material)
    for k in range(4):
        scene.add_joint(f"hinge {k}", sh.Revolute("y"), f"link {k}", f"link {(k + 1) % 4}", position=corners[(k + 1) % 4])
    return scene


def test_a_ring_whose_links_resist_rolling_lands():
    """Moments at points of contact are no part of the derivative of the loop's gaps: it stopped at 0.67 s where they were."""
    sim = sh.Simulation(ring(0.01), 1e-3, solver="direct", sleep=False)
    start = sim.energy().total
    for _ in range(75):
        assert sim.step(10).converged
        assert sim.energy().total <= start + 1e-6 and np.abs(sim.constraint_error()[0]).max() < 1e-9
