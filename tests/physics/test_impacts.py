"""Impacts and rolling of few bodies and mechanisms, by closed forms and conserved quantities, at default settings."""

import numpy as np
import pytest

import sharnir as sh
from sharnir.core.spatial import quat_exp

G = 9.81


@pytest.mark.parametrize("dt", [1e-3, 5e-3])
@pytest.mark.parametrize("e", [0.5, 0.9])
def test_a_ball_leaves_with_the_speed_that_it_had_at_the_surface(dt, e):
    scene = sh.Scene()
    scene.add_ground(material=sh.Material(restitution=e))
    scene.add_body("ball", sh.Sphere(0.1), mass=1.0, position=(0, 0, 1.1))
    scene.add_body("arm", sh.Box(0.1, 0.1, 0.4), mass=1.0, position=(2, 0, 3))
    scene.add_joint("hinge", sh.Revolute("y"), "world", "arm", position=(2, 0, 3.2))
    sim = sh.Simulation(scene, dt)
    top, low = 0.0, False
    for _ in range(round(1.0 / dt)):
        sim.step()
        height = sim.body("ball").position[2] - 0.1
        low = low or height < 0.05
        top = max(top, height) if low else 0.0
    print(f"e = {e}, {1e3 * dt:.0f} ms: bounces to {top:.6f} m of {e * e:.6f} m")
    assert top == pytest.approx(e * e, abs=1e-5 + 0.15 * G * dt * dt)  # the top is looked for at steps


def test_a_rolling_ball_keeps_its_energy():
    scene = sh.Scene()
    scene.add_ground(material=sh.Material(friction=0.8))
    scene.add_body("ball", sh.Sphere(0.1), mass=3.0, position=(0, 0, 0.1), velocity=(3, 0, 0), angular_velocity=(0, 30, 0))
    sim = sh.Simulation(scene, 2e-3, solver="direct")
    start = sim.energy().total
    sim.run(2.0)
    print(f"rolls {sim.body('ball').position[0]:.9f} m, energy off by {sim.energy().total / start - 1:.1e}")
    assert abs(sim.energy().total / start - 1) < 1e-9 and sim.body("ball").position[0] == pytest.approx(6.0, abs=1e-9)


def test_a_blow_breaks_a_held_joint_loose_in_the_same_step():
    """A rod held by friction is struck at its tip: it turns at once, by no more than momentum allows."""
    scene = sh.Scene(gravity=(0, 0, 0), contact=True)
    scene.add_body("rod", sh.Box(1.0, 0.1, 0.1), mass=2.0, position=(0.5, 0, 0))
    scene.add_joint("hinge", sh.Revolute("y", friction=5.0), "world", "rod", position=(0, 0, 0))
    scene.add_body("ball", sh.Sphere(0.1), mass=1.0, position=(0.9, 0, 0.16), velocity=(0, 0, -5.0))
    sim = sh.Simulation(scene, 1e-3)
    for _ in range(8):
        sim.step()
    inertia = 2.0 * (1.0 + 0.01) / 12 + 2.0 * 0.25
    shared = 5.0 * 0.9 / (inertia + 0.81)  # rad/s, without friction
    rate = sim.joint("hinge").velocity
    print(f"turns at {rate:.4f} rad/s, without friction {shared:.4f}")
    assert shared - 8e-3 * 5.0 / inertia < rate < shared + 1e-6


def test_mechanisms_that_collide_keep_momenta_and_gain_no_energy():
    scene = sh.Scene(gravity=(0, 0, 0), contact=True)
    m = sh.Material(friction=0.5, restitution=0.3)
    for side, prefix in ((-1, "left"), (1, "right")):
        for i in range(3):
            place = (side * (0.3 + 0.21 * i), 0.03 * side, 0)
            scene.add_body(
                f"{prefix} {i}", sh.Capsule(0.08, 0.05), mass=1.0 + i, position=place, velocity=(-side, 0, 0), material=m
            )
            if i:
                hinge = sh.Revolute("y", friction=0.05, limit=(-0.5, 0.5))
                at = (side * (0.3 + 0.21 * i - 0.105), 0.03 * side, 0)
                scene.add_joint(f"{prefix} joint {i}", hinge, f"{prefix} {i - 1}", f"{prefix} {i}", position=at)
    sim = sh.Simulation(scene, 4e-3)
    start, energy = sim.momentum(), sim.energy().total
    for _ in range(200):
        sim.step()
        now = sim.momentum()
        assert np.abs(np.ravel(now.linear) - np.ravel(start.linear)).max() < 1e-9 * 12
        assert np.abs(np.ravel(now.angular) - np.ravel(start.angular)).max() < 1e-9 * 0.36
        assert sim.energy().total < energy * (1 + 1e-9)
    assert sim.energy().total < 0.95 * energy  # they did collide


ELASTIC = sh.Material(friction=0.0, restitution=1.0)


@pytest.mark.parametrize("dt", [1e-3, 5e-3])
def test_a_struck_ball_leaves_along_the_line_of_centres(dt):
    """Cut shots: the line of centres when both balls touch is off the cue ball's way by asin(offset / 2R)."""
    radius, worst = 0.028575, 0.0
    for offset in np.linspace(0.05, 0.95, 7):
        for speed in (1.0, 4.0, 7.3):
            scene = sh.Scene(gravity=(0, 0, 0), contact=True)
            ball, how = sh.Sphere(radius), {"mass": 0.17, "material": ELASTIC}
            scene.add_body("cue", ball, position=(-0.1003, 0, 0), velocity=(speed, 0, 0), **how)
            scene.add_body("object", ball, position=(0, 2 * radius * offset, 0), **how)
            sim = sh.Simulation(scene, dt, solver="direct")
            sim.run(0.12 / speed + dt)
            x, y, _ = sim.body("object").velocity
            worst = max(worst, abs(np.degrees(np.arctan2(y, x) - np.arcsin(offset))))
            assert np.hypot(x, y) == pytest.approx(speed * np.sqrt(1 - offset**2), rel=1e-4)
    print(f"{1e3 * dt:.0f} ms: at most {worst:.1e} degrees off")
    assert worst < 0.01


@pytest.mark.parametrize("apart", [0.0, 1e-3])
@pytest.mark.parametrize("dt", [5e-4, 2e-3, 1e-2])
def test_a_train_of_equal_balls_hands_the_speed_to_the_last(dt, apart):
    scene = sh.Scene(gravity=(0, 0, 0), contact=True)
    for i in range(6):
        place, speed = ((0.1 + apart) * i - 0.2 * (i == 0), 0, 0), (1.7 * (i == 0), 0, 0)
        scene.add_body(f"ball {i}", sh.Sphere(0.05), mass=0.3, position=place, velocity=speed, material=ELASTIC)
    sim = sh.Simulation(scene, dt, solver="direct")
    start = sim.energy().total
    for _ in range(int(0.3 / dt)):
        sim.step()
        assert sim.energy().total < start * (1 + 1e-12)
    speeds = [sim.body(f"ball {i}").velocity[0] for i in range(6)]
    assert np.abs(speeds - np.array([0, 0, 0, 0, 0, 1.7])).max() < 1e-9


@pytest.mark.parametrize("dt", [1e-3, 5e-3])
def test_a_cradle_of_pendulums_swings_from_end_to_end(dt):
    """The outer balls rise to where the first one began, those between rest."""
    scene, length = sh.Scene(contact=True), 0.5
    for i in range(5):
        turn = 0.5 * (i == 0)
        place = np.array([0.1 * i, 0, 0]) - length * np.array([np.sin(turn), 0, np.cos(turn)])
        scene.add_body(f"ball {i}", sh.Sphere(0.05), mass=0.3, position=place, material=ELASTIC)
        scene.add_joint(f"string {i}", sh.Revolute("y"), "world", f"ball {i}", position=(0.1 * i, 0, 0))
    sim = sh.Simulation(scene, dt)
    start, high = sim.energy().total, length * (1 - np.cos(0.5))
    rise = np.zeros(5)
    for _ in range(int(3.0 / dt)):
        sim.step()
        rise = np.maximum(rise, [length + sim.body(f"ball {i}").position[2] for i in range(5)])
        assert sim.energy().total < start + 1e-6 * 0.3 * G * high
    print(f"rise, relative to the start: {np.array2string(rise / high, precision=6)}")
    assert rise[4] == pytest.approx(high, rel=1e-3) and rise[1:4].max() < 1e-6 * high


@pytest.mark.parametrize("dt", [5e-4, 2e-3])
def test_a_light_ball_on_a_heavy_one_rises_to_four_times_the_height(dt):
    """The lower ball meets the upper one at once after the ground, and stands still: v₁ = (m₁ − 3m₂)/(m₁ + m₂) v."""
    scene, gap = sh.Scene(), 1e-4
    scene.add_ground(material=ELASTIC)
    scene.add_body("lower", sh.Sphere(0.1), mass=3.0, position=(0, 0, 1.1), material=ELASTIC)
    scene.add_body("upper", sh.Sphere(0.1), mass=1.0, position=(0, 0, 1.3 + gap), material=ELASTIC)
    sim = sh.Simulation(scene, dt, solver="direct")
    top, energy = 0.0, sim.energy().total
    for _ in range(int(1.4 / dt)):
        sim.step()
        top = max(top, sim.body("upper").position[2] - 0.3)
        assert sim.energy().total < energy + 1e-6 * 4 * G
    print(f"{1e3 * dt} ms: rises to {top:.5f} m")
    assert top == pytest.approx(4.0, abs=0.01)  # the gap moves where they meet, and by how much they brake each other


@pytest.mark.parametrize("dt", [1e-3, 5e-3])
@pytest.mark.parametrize("seed", [2, 3, 6, 11])
def test_an_elastic_box_keeps_its_energy(seed, dt):
    """For 10 s without friction; what approaches by less than falling gives it in two steps is not thrown back."""
    rng = np.random.default_rng(seed)
    scene = sh.Scene()
    scene.add_ground(material=ELASTIC)
    turn, spin = quat_exp(rng.normal(size=3)), 3 * rng.normal(size=3)
    shape, moves = sh.Box(*rng.uniform(0.1, 0.4, 3)), {"velocity": rng.normal(size=3), "angular_velocity": spin}
    scene.add_body("box", shape, mass=1.0, position=(0, 0, 1), rotation=turn, material=ELASTIC, **moves)
    sim = sh.Simulation(scene, dt, solver="direct")
    start = sim.energy().total
    for _ in range(100):
        sim.run(0.1)
        assert sim.energy().total < start * (1 + 1e-9)
    print(f"energy after 10 s: {sim.energy().total / start - 1:.1e}")
    assert sim.energy().total > 0.99 * start


@pytest.mark.parametrize("solver", ["sequential", "direct"])
@pytest.mark.parametrize("speed", [0.0, 1.0])
@pytest.mark.parametrize("jointed", [False, True])
def test_an_impact_in_the_first_step_is_reported_once(solver, speed, jointed):
    """Forces act for half of the first step with `sequential`: what they need is scaled to a whole step, an impact is not."""
    scene = sh.Scene()
    scene.add_ground()
    scene.add_body("box", sh.Box(0.2, 0.2, 0.2), mass=1.0, position=(0, 0, 0.1))
    if jointed:
        scene.add_joint("guide", sh.Prismatic("z"), scene.world, "box", position=(0, 0, 0))
    sim = sh.Simulation(scene, 1e-3, solver=solver)
    sim.body("box").velocity = (0, 0, -speed)
    sim.step()
    impulse = sim.contacts().force[:, 2].sum() * sim.dt  # N·s
    weight = 9.81 * sim.dt
    assert speed + 0.5 * weight - 1e-6 <= impulse <= speed + weight + 1e-6
    if speed == 0.0:
        assert impulse == pytest.approx(weight, abs=1e-6 * weight)
