"""Jointed bodies that touch beside ropes, in one direct solve: closed forms, energy, and the same as many sweeps find.

Slow, since the kernel of all of it takes a minute to compile.
"""

import numpy as np
import pytest

import sharnir as sh
from sharnir.machine_models.inputs import Inputs
from sharnir.machine_models.krt100 import Krt100

G = 9.81
pytestmark = pytest.mark.filterwarnings("ignore::sharnir.StepWarning")


def test_a_rope_that_touches_goes_by_sweeps_unless_told():
    scene = sh.Scene()
    scene.add_ground()
    scene.add_body("load", sh.Box(0.5, 0.5, 0.5), mass=300.0, position=(0, 0, 0.5))
    scene.add_rope("line", (0, 0, 3), (0, 0, 0.75), segments=4, attach=("world", "load"))
    assert sh.Simulation(scene, 0.005).solver_name == "sequential"
    assert sh.Simulation(scene, 0.005, solver="direct").solver_name == "direct"


@pytest.mark.slow
@pytest.mark.parametrize("boom", [False, True])
def test_a_load_of_300_kg_on_a_light_rope_is_put_down(boom):
    """By a reel on the world, and on a boom that friction holds: there the rope ties two trees together."""
    scene, top = sh.Scene(), 3.53
    scene.add_ground()
    scene.add_body("load", sh.Box(0.5, 0.5, 0.5), mass=300.0, position=(0, 0, 0.28))
    if boom:
        scene.add_body("boom", sh.Box(2, 0.1, 0.1), mass=50.0, position=(-1, 0, top), collide=False)
        scene.add_joint("hinge", sh.Revolute("y", friction=1e5), scene.world, "boom", position=(-2, 0, top))
    rope = {"segments": 30, "radius": 0.006, "mass_per_length": 0.1, "reel": "start", "longest": 4.0, "collide": False}
    scene.add_rope("rope", (0, 0, top), (0, 0, 0.53), attach=("boom" if boom else "world", "load"), **rope)
    sim = sh.Simulation(scene, 0.005, solver="direct")
    sim.rope("rope").reel_speed = 0.2
    start, above, stretch, heights, missed = sim.energy().total, -np.inf, 0.0, [], 0
    for _ in range(80):
        missed += not sim.step().converged
        heights.append(sim.body("load").position[2])
        came = 0.1 * (sim.rope("rope").length - 3.0) * G * top  # J, of rope that the reel holds no more
        above, stretch = max(above, sim.energy().total - start - came), max(stretch, sim.rope("rope").stretch)
    landed = int(np.argmax(np.array(heights) < 0.2502))
    bounce, pulls = max(heights[landed:]) - min(heights[landed:]), abs(sim.rope("rope").tension[-1])
    speed, due = np.abs(sim.body("load").velocity).max(), 300.0 * G
    bears = sim.contacts().force[:, 2].sum()
    print(f"lands after {landed * 5} ms, then rises by {bounce:.0e} m and moves at {speed:.0e} m/s; the rope pulls with "
          f"{pulls:.0e} N of {due:.0f}, the ground bears {bears - due:.3f} N more; energy at most {above:.0e} J above the "
          f"start; stretch {stretch:.0e}; {missed} steps not met")  # fmt: skip
    assert 0 < landed < 50 and bounce < 1e-5 and speed < 1e-9 and pulls < 1e-6 and missed == 0
    assert above < 1e-6 * 300 * G * 0.03 and stretch < 1e-9 and 0 <= bears - due < 0.1


def tied(solver, dt, **options):
    """Two boxes on the ground, each with an arm on a hinge that rubs, and a rope from arm to arm: one of them slides away."""
    scene, m = sh.Scene(), sh.Material(friction=0.4)
    scene.add_ground(material=m)
    for n, x, v in (("a", 0.0, 0.0), ("b", 1.2, 2.0)):
        moves = {"material": m, "velocity": (v, 0, 0)}
        scene.add_body(n, sh.Box(0.3, 0.3, 0.2), mass=5.0, position=(x, 0, 0.1 + 0.01 * v), **moves)
        scene.add_body(f"{n} arm", sh.Box(0.05, 0.05, 0.3), mass=1.0, position=(x, 0, 0.45), collide=False, **moves)
        scene.add_joint(f"{n} hinge", sh.Revolute("y", friction=0.5), n, f"{n} arm", position=(x, 0, 0.3))
    rope = {"segments": 12, "radius": 0.005, "mass_per_length": 0.05, "collide": False}
    scene.add_rope("rope", (0, 0, 0.6), (1.2, 0, 0.6), attach=("a arm", "b arm"), **rope)
    sim = sh.Simulation(scene, dt, solver=solver, **options)
    energies, missed, path = [sim.energy().total], 0, []
    for _ in range(round(0.4 / dt)):
        missed += not sim.step().converged
        energies.append(sim.energy().total)
        path.append([sim.body(n).position for n in ("a", "a arm", "b", "b arm")])
    return np.array(path), np.diff(energies).max(), missed


@pytest.mark.slow
def test_it_is_what_many_sweeps_lead_to():
    off = []
    for dt in (0.002, 0.001):
        path, gains, missed = tied("direct", dt)
        swept = tied("sequential", dt, tolerances=sh.Tolerances(iterations=2000))[0]
        off.append(np.abs(path - swept).max())
        print(f"{dt * 1e3:g} ms: {1e3 * off[-1]:.2f} mm apart after {swept[-1, 2, 0] - 1.2:.2f} m; energy gains at most "
              f"{gains:.1e} J a step; {missed} steps not met")  # fmt: skip
        assert gains < 0 and missed == 0
    assert off[0] < 5e-3 and off[1] < 0.6 * off[0]


def heap_of(seed):
    """Two trees of bodies of all sizes, tied by ropes, thrown on the ground."""
    rng, scene = np.random.default_rng(seed), sh.Scene()
    m, places = sh.Material(friction=rng.uniform(0, 0.8), restitution=0.0 if seed % 3 else 0.5), ([], [])
    scene.add_ground(material=m)
    for t in range(2):
        at, last, moves = np.array([1.0 * t, 0, rng.uniform(0.5, 0.9)]), None, rng.normal(0, 1, 3)
        for k in range(rng.integers(1, 4)):
            a, b, c = rng.uniform(0.1, 0.25, 3)
            shape = [sh.Box(a, b, c), sh.Sphere(a / 2), sh.Capsule(a / 3, b)][rng.integers(3)]
            name = f"{t} {k}"
            scene.add_body(name, shape, mass=float(10 ** rng.uniform(-1, 1.5)), position=at, material=m, velocity=moves)
            if last:
                joint = [sh.Revolute("y", friction=0.2), sh.Revolute("x"), sh.Revolute("z", limit=(-1, 1))][rng.integers(3)]
                scene.add_joint(f"{name} joint", joint, last, name, position=at + [0, 0, 0.15])
            last = name
            places[t].append((name, at))
            at = at + [rng.uniform(-0.1, 0.1), rng.uniform(0.25, 0.35), 0]
    for i in range(rng.integers(1, 3)):
        (p, x), (q, y) = (places[t][rng.integers(len(places[t]))] for t in range(2))
        long = float(np.linalg.norm(x - y) * rng.uniform(1.0, 1.15))
        rope = {"segments": int(rng.integers(5, 12)), "radius": 0.004, "mass_per_length": 0.05, "collide": False}
        scene.add_rope(f"rope {i}", x, y, length=long, attach=(p, q), **rope)
    return scene


@pytest.mark.slow
def test_random_scenes_gain_no_energy():
    above, deep, missed, made = 0.0, 0.0, 0, 0
    for seed in range(12):
        sim = sh.Simulation(heap_of(seed), 0.005 if seed % 2 else 0.002, solver="direct")
        start = sim.energy()
        for _ in range(round(0.7 / sim.dt)):
            missed += not sim.step().converged
            made += 1
            above = max(above, (sim.energy().total - start.total) / (start.kinetic + abs(start.potential)))
            deep = max(deep, -sim.contacts().gap.min(initial=0.0))
    print(f"energy at most {above:.0e} of its scale above the start; overlap {deep:.0e} m; {missed} of {made} steps not met")
    assert above <= 1e-6 and deep < 3e-5 and missed < 10


@pytest.mark.slow
def test_a_robot_pulls_a_trailer_on_a_rope():
    ends = []
    for solver in ("sequential", "direct"):
        scene, robot = sh.Scene(), Krt100(trailer="rope")
        scene.add_ground(material=sh.Material(friction=0.9))
        robot.add(scene)
        sim = sh.Simulation(scene, 0.005, solver="auto" if solver == "direct" else solver)
        assert sim.solver_name == solver
        inputs, missed = Inputs(sim, robot.inputs()), 0
        inputs["throttle"], inputs["steer"] = 0.6, 0.3
        for _ in range(200):
            inputs.apply()
            missed += not sim.step().converged
        ends.append(np.array([sim.body(n).position for n in ("krt100", "krt100 trailer")]))
        print(f"{solver}: {missed} of 200 steps not met")
    off = np.abs(ends[1] - ends[0]).max()
    print(f"after {np.linalg.norm(ends[0][0]):.2f} m they are {1e3 * off:.1f} mm apart")
    assert off < 0.01 and missed == 0


@pytest.mark.slow
@pytest.mark.parametrize("dt", [1e-3, 5e-3])
def test_a_load_at_rest_on_a_vertical_rope_stays_there_when_something_lands_elsewhere(dt):
    scene = sh.Scene()
    scene.add_ground()
    scene.add_body("box", sh.Box(0.4, 0.4, 0.4), mass=20, position=(3, 0, 0.3))
    scene.add_body("hook", sh.Sphere(0.1), mass=10, position=(0, 0, 2))
    rope = {"segments": 6, "mass_per_length": 0.3, "collide": False}
    scene.add_rope("line", (0, 0, 3), (0, 0, 2.1), attach=("world", "hook"), **rope)
    sim = sh.Simulation(scene, dt=dt, solver="direct")
    start = sim.energy().total
    while sim.time < 0.3:
        sim.step()
        assert sim.energy().total < start + 1e-6 and np.abs(sim.body("hook").position - [0, 0, 2]).max() < 1e-9
    assert abs(sim.body("box").position[2] - 0.2) < 1e-5
