"""Contact of mechanisms that was, or is known to be wrong, each as the shortest scene that shows it; the latter are strict
expected failures.
"""

import math
from pathlib import Path

import numpy as np
import pytest

import sharnir as sh

pytestmark = pytest.mark.filterwarnings("ignore::sharnir.StepWarning")


def known(reason):
    """An expected failure: the test fails when the scene becomes right, so that the mark is removed."""
    return pytest.mark.xfail(strict=True, raises=(AssertionError, sh.SimulationError), reason=reason)


@pytest.mark.parametrize("dt", [4e-3, 10e-3])
def test_a_falling_chain_of_three_links_lands(dt):
    scene = sh.Scene()
    scene.add_ground()
    for i in range(3):
        place = (0, 0, 0.6 + 0.4 * i)
        scene.add_body(f"b{i}", sh.Box(0.12, 0.1, 0.36), mass=1.0, position=place, velocity=(0.3 * (i == 0), 0, 0))
        if i:
            hinge = sh.Revolute("y", limit=(-1.0, 1.2), friction=0.2)
            scene.add_joint(f"j{i}", hinge, f"b{i - 1}", f"b{i}", position=(0, 0, 0.4 + 0.4 * i))
    sim = sh.Simulation(scene, dt)
    sim.run(2.0)
    assert sim.body("b0").position[2] < 0.2


def test_a_chain_that_bounces_gains_no_energy():
    scene, length = sh.Scene(), 0.05
    scene.add_ground(material=sh.Material(restitution=0.9))
    for i in range(4):
        shape, place = sh.Box(0.3 * length, 0.25 * length, 0.9 * length), (0, 0, 0.6 + length * i)
        scene.add_body(f"b{i}", shape, mass=0.1, position=place, velocity=(0.1 * (i == 3), 0, 0))
        if i:
            scene.add_joint(f"j{i}", sh.Revolute("y"), f"b{i - 1}", f"b{i}", position=(0, 0, 0.6 - length / 2 + length * i))
    sim = sh.Simulation(scene, 6e-3)
    start = sim.energy().total
    for _ in range(62):
        sim.step()
        assert sim.energy().total < (1 + 1e-6) * start


@pytest.mark.slow
def test_64_elastic_balls_keep_their_energy():
    scene, rng = sh.Scene(), np.random.default_rng(0)
    scene.add_ground(material=sh.Material(friction=0.0))
    for i in range(64):
        place = np.array([i % 4, i // 4 % 4, i // 16]) * 0.21 + [0, 0, 1.101] + rng.uniform(-0.001, 0.001, 3)
        scene.add_body(f"b{i}", sh.Sphere(0.1), mass=10.0, position=place, material=sh.Material(friction=0.0, restitution=1.0))
    sim = sh.Simulation(scene, dt=2e-3, solver="direct", on_divergence="ignore")
    start = sim.energy().total
    sim.run(0.7)
    assert abs(sim.energy().total / start - 1) < 0.01


@pytest.mark.slow
def test_a_wall_of_44_bricks_stands_still():
    scene, size = sh.Scene(), np.array([0.4, 0.2, 0.2])
    scene.add_ground()
    places = {}
    for row in range(8):
        for k in range(6 - row % 2):
            name = f"brick {row} {k}"
            places[name] = np.array([(k + 0.5 * (row % 2)) * 0.41, 0.0, 0.1 + 0.2 * row])
            scene.add_body(name, sh.Box(*size), mass=5.0, position=places[name])
    sim = sh.Simulation(scene, 5e-3, solver="direct")
    sim.run(2.0)
    moved = max(np.linalg.norm(sim.body(n).position - at) for n, at in places.items())
    print(f"{len(places)} bricks moved by at most {moved:.1e} m; {sim.health().not_converged} steps did not converge")
    asleep = all(sim.body(name).asleep for name in places)
    assert moved < 2e-6 and sim.health().not_converged == 0 and asleep


def over_a_fixed_drum(part, mu=0.3, light=10.0):
    """A rope over half of a fixed drum, with bodies on its ends, the heavy one `part` of what friction holds."""
    scene, material, radius, thin = sh.Scene(), sh.Material(friction=mu), 0.1, 0.005
    turn = (math.sin(math.pi / 4), 0, 0, math.cos(math.pi / 4))
    scene.add_body(
        "drum", sh.Cylinder(radius, 0.4), motion="fixed", position=(0, 0, 2), rotation=turn, material=material, collide=True
    )
    angle, tail, off = np.linspace(0, math.pi, 40), np.linspace(1.5, 2, 40, endpoint=False), radius + thin
    arc = np.stack([-off * np.cos(angle), 0 * angle, 2 + off * np.sin(angle)], 1)
    down = np.stack([off + 0 * tail, 0 * tail, tail], 1)
    points = np.concatenate([down * [-1, 1, 1], arc, down[::-1]])
    scene.add_body("light", mass=light, position=points[0])
    scene.add_body("heavy", mass=light * math.exp(mu * math.pi) * part, position=points[-1])
    rope = {"radius": thin, "mass_per_length": 0.05, "material": material}
    scene.add_rope("rope", points=points, attach=("light", "heavy"), **rope)
    return scene


@pytest.mark.slow
@pytest.mark.parametrize("solver", [pytest.param("direct", marks=known("passes do not meet in the second step")), "sequential"])
def test_a_rope_over_a_fixed_drum_holds_below_the_capstan_ratio(solver):
    sim = sh.Simulation(over_a_fixed_drum(0.9), 0.005, solver=solver)
    sim.run(0.5)
    assert np.abs(sim.body("heavy").velocity).max() < 0.01


@pytest.mark.slow
@pytest.mark.parametrize(
    "solver", [pytest.param("direct", marks=known("4.6 times too fast: friction acts too late")), "sequential"]
)
def test_a_rope_over_a_fixed_drum_slides_above_the_capstan_ratio(solver):
    part = 1.1
    sim = sh.Simulation(over_a_fixed_drum(part), 0.005, solver=solver)
    sim.run(0.5)
    speed = 9.81 * (part - 1) / (part + 1) * sim.time  # m/s, of two masses, the lighter one e^{μπ} times as heavy
    assert abs(-sim.body("heavy").velocity[2] / speed - 1) < 0.1


def tipping(dt):
    """A tower with a jib, from which a rope with a hook hangs, and which falls over."""
    scene, spin = sh.Scene(), np.array([0, 1.2, 0])
    scene.add_ground()
    tower, jib = np.array([0, 0, 2.0]), np.array([1.2, 0, 4.2])
    scene.add_body("tower", sh.Box(1, 1, 4), mass=800, position=tower, angular_velocity=spin, velocity=np.cross(spin, tower))
    scene.add_body("jib", sh.Box(2, 0.2, 0.2), mass=60, position=jib, angular_velocity=spin, velocity=np.cross(spin, jib))
    scene.add_joint("slew", sh.Revolute("z", friction=200.0), "tower", "jib", position=(0.3, 0, 4.1))
    scene.add_body("hook", sh.Sphere(0.12), mass=40, position=(2.2, 0, 1.5))
    scene.add_rope("line", (2.2, 0, 4.2), (2.2, 0, 1.62), segments=20, mass_per_length=0.3, attach=("jib", "hook"))
    return sh.Simulation(scene, dt)


@pytest.mark.slow
@known("the rope is torn apart, or the step is not made: sequential impulses beside a rope that touches")
@pytest.mark.parametrize("dt", [1e-3, 5e-3])
def test_a_machine_with_a_rope_tips_over(dt):
    sim, stretch = tipping(dt), 0.0
    while sim.time < 2.5:
        sim.step()
        stretch = max(stretch, sim.rope("line").stretch)
    assert stretch < 0.01


def test_a_half_cheetah_at_rest_presses_with_its_weight():
    """In every step, at the step of its file."""
    gymnasium = pytest.importorskip("gymnasium")
    file = Path(gymnasium.__file__).parent / "envs" / "mujoco" / "assets" / "half_cheetah.xml"
    sim = sh.Simulation(sh.load_mjcf(file), 0.01)
    mass = sim.model.bodies.mass.numpy()
    weight = 9.81 * sum(float(mass[b, 0]) for name, b in sim.model.body_names.items() if name != "world")
    sim.run(5.0)
    off = 0.0
    for _ in range(100):
        sim.step()
        off = max(off, abs(abs(float(np.sum(sim.contacts().force[..., 2]))) / weight - 1))
    print(f"at most {off:.1e} off its weight")
    assert off < 1e-3
