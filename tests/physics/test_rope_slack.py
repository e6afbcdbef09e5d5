"""A rope does not push: elements that would buckle go slack; reels that pay out to a load that rests or falls."""

import numpy as np
import pytest

import sharnir as sh

G = 9.81
WAYS = {"sequential": {"solver": "sequential"}, "direct": {"solver": "direct"}}


def aside(scene):
    """A mechanism beside the rope, so that the scene is one of joints."""
    scene.add_body("other", sh.Box(0.1, 0.1, 0.1), mass=1.0, position=(9, 0, 0))
    scene.add_joint("far", sh.Spherical(), "world", "other", position=(9, 0, 1))


def hung(mass, length, angle, segments, way, dt, **rope):
    """A load on a rope at an angle (degrees), after 0.1 s."""
    a = np.radians(angle)
    d = np.array([np.sin(a), 0, -np.cos(a)])
    scene = sh.Scene()
    scene.add_body("load", sh.Box(0.2, 0.2, 0.2), mass=mass, position=(length + 0.1) * d)
    if way != "alone":
        aside(scene)
    scene.add_rope("r", (0, 0, 0), length * d, segments=segments, mass_per_length=0.5, attach=("world", "load"), **rope)
    sim = sh.Simulation(scene, dt, **WAYS.get(way, {}))
    sim.run(0.1)
    return sim, sim.body("load"), sim.rope("r")


@pytest.mark.parametrize("way", ["alone", *WAYS])
def test_a_reel_that_runs_ahead_lets_the_load_fall_freely(way):
    for angle in (0, 10):
        sim, load, r = hung(1000, 5, angle, 25, way, 0.005, reel="start", longest=9)
        sim.step()
        r.reel_speed = 6.0
        sim.step(2)
        v, t = load.velocity[2], sim.time
        pushed = stretch = 0.0
        for _ in range(50):
            sim.step()
            pushed, stretch = min(pushed, r.tension.min()), max(stretch, r.stretch)
        fall = -(load.velocity[2] - v) / (sim.time - t) / G
        line = f"{way}, {angle}°: falls at {fall:.6f} g (3e-6), tension above {pushed:.1e} N"
        print(f"{line}, stretch {stretch:.0e} (1e-6), slack {r.slack:.2f} m")
        assert abs(fall - 1) < 3e-6 and pushed > -0.1 and stretch < 1e-6 and r.slack > 1


@pytest.mark.parametrize("way", ["alone", *WAYS])
def test_a_load_that_is_lifted_does_not_feel_its_rope(way):
    """Twice its weight upwards: it rises by ½ g t², whatever the angle at which it hangs."""
    for angle in (0, 1, 10):
        sim, load, r = hung(100, 3, angle, 30, way, 0.005)
        z, v = load.position[2], load.velocity[2]
        load.apply_force((0, 0, 2 * 100 * G), once=False)
        sim.run(0.3)
        rise = (load.position[2] - z) / (0.3 * v + 0.5 * G * 0.3**2)
        print(f"{way}, {angle}°: rises by {rise:.4f} of ½gt² (3 %), stretch {r.stretch:.0e} (1e-6)")
        assert abs(rise - 1) < 0.03 and r.stretch < 1e-6


@pytest.mark.parametrize("x, dt", [(0.0, 0.005), (0.0, 0.015), (0.3, 0.005), (2.0, 0.015)])
@pytest.mark.parametrize("way", list(WAYS))
def test_a_load_is_set_down_rope_paid_out_and_taken_in(way, x, dt):
    scene = sh.Scene()
    scene.add_body("load", sh.Box(1, 1, 1), mass=1000, position=(x, 0, -5.5))
    scene.add_joint("floor", sh.Prismatic("z", limit=(-1, 0.5)), "world", "load", position=(x, 0, -5.5))
    rope = {"segments": 25, "mass_per_length": 0.5, "reel": "start", "longest": 9, "drag": 2.0}  # drag: it comes to rest
    scene.add_rope("r", (0, 0, 0), (x, 0, -5), attach=("world", "load"), **rope)
    sim = sh.Simulation(scene, dt, **WAYS[way])
    r, load, length = sim.rope("r"), sim.body("load"), sim.rope("r").length
    z, stretch, pushed, floor = load.position[2], 0.0, 0.0, 0.0
    for speed, time in ((0.5, 4.0), (-0.5, 3.6), (-0.1, 3.0)):
        r.reel_speed = speed
        if speed < 0:
            r.length = length + (0.2 if speed < -0.4 else 0.0)
        for _ in range(round(time / dt)):
            sim.step()
            stretch, pushed, floor = max(stretch, r.stretch), min(pushed, r.tension.min()), min(floor, load.position[2] - z)
    off = load.position[2] - z
    most, push = (8e-6, 0.01) if way == "sequential" else (6e-11, 1.3e-3)
    print(
        f"{way}, {x} m aside, {dt * 1e3:g} ms: stretch {stretch:.0e} ({most:g}), tension above {pushed:.1e} N, "
        f"lowest {floor:.9f} m, height off by {off:.1e} m (1e-5)"
    )
    assert stretch < most and pushed > -push and abs(floor + 1) < 1e-6 and abs(off) < 1e-5


@pytest.mark.parametrize("way", ["alone", "direct", "sequential"])
def test_what_is_read_while_a_reel_runs(way):
    """Lowered at 0.5 m/s: that is its velocity and momentum, its acceleration none, its weight on the rope."""
    sim, load, r = hung(100, 3, 0, 15, way, 0.005, reel="start", longest=6)
    r.reel_speed = 0.5
    sim.run(0.6)
    weight = r.tension[0] / ((100 + 0.5 * r.length) * G)
    print(f"{way}: velocity {load.velocity[2]:.6f}, acceleration {load.acceleration[2]:.1e}, tension {weight:.6f} of the weight")
    assert abs(load.velocity[2] + 0.5) < 1e-4 and abs(load.acceleration[2]) < 0.05 and abs(weight - 1) < 5e-3


def test_a_rope_between_bodies_thrown_together_goes_slack():
    """Momenta stay, nothing is gained, and two loads that fly towards each other are not held up."""
    scene = sh.Scene(gravity=(0, 0, 0))
    for name, x, v in (("a", -1.1, 1.0), ("b", 1.1, -1.0)):
        scene.add_body(name, sh.Box(0.2, 0.2, 0.2), mass=2.0, position=(x, 0, 0), velocity=(v, 0, 0))
    scene.add_rope("r", (-1, 0, 0), (1, 0, 0), segments=20, mass_per_length=0.1, attach=("a", "b"), velocity=(0, 0, 0))
    sim = sh.Simulation(scene, 0.005)
    start = sim.energy().total
    sim.run(0.5)
    speed, gained, p = sim.body("a").velocity[0], sim.energy().total - start, np.abs(sim.momentum().linear).max()
    near = sim.body("b").position[0] - sim.body("a").position[0]
    print(f"after 0.5 s at {speed:.3f} m/s, {near:.3f} m apart (of 2.2), gained {gained:.0e} J, momentum {p:.0e}")
    assert speed > 0.97 and near < 1.22 and gained < 1e-12 and p < 1e-12 and sim.rope("r").stretch < 1e-9


@pytest.mark.parametrize("EI", [0.0, 0.01])
def test_a_crumpled_rope_in_the_air_keeps_its_momenta(EI):
    """Points thrown at each other and aside: elements go slack, turn and snap taut; momenta stay, energy never rises."""
    n = 20
    rng = np.random.default_rng(5)
    scene = sh.Scene(gravity=(0, 0, 0))
    speeds = rng.normal(size=(n + 1, 3)) * 0.5 - np.linspace(-1, 1, n + 1)[:, None] * (2.0, 0, 0)
    scene.add_rope("r", (-0.5, 0, 0), (0.5, 0, 0), segments=n, mass_per_length=0.3, EI=EI, GJ=EI, velocity=speeds)
    sim = sh.Simulation(scene, 0.002)
    sim.step()
    first, before, gained, slack = sim.momentum(), sim.energy().total, 0.0, 0.0
    for _ in range(200):
        sim.step()
        now = sim.energy().total
        gained, before, slack = max(gained, now - before), now, max(slack, sim.rope("r").slack)
    last = sim.momentum()
    linear, angular = (np.abs(a - b).max() for a, b in ((last.linear, first.linear), (last.angular, first.angular)))
    print(f"EI {EI}: linear {linear:.0e}, angular {angular:.0e} (1e-12), gained {gained:.0e} J, slack up to {slack:.3f} m")
    assert linear < 1e-12 and angular < 1e-12 and gained < 1e-10 and slack > 1e-3


def test_torn_elements_do_not_count_as_stretch():
    scene = sh.Scene()
    scene.add_rope("r", (0, 0, 0), (0, 0, -1), segments=10, attach=("world", None))
    sim = sh.Simulation(scene, 0.005)
    sim.rope("r").cut(4)
    sim.run(0.5)
    apart = np.linalg.norm(np.diff(sim.rope("r").position[4:6], axis=0))
    print(f"torn ends {apart:.2f} m apart, stretch {sim.rope('r').stretch:.0e}")
    assert apart > 1 and sim.rope("r").stretch < 1e-9


@pytest.mark.parametrize(
    "end, length, n", [((0, 0, -1), 1.01, 10), ((0, 0, -5), 5.5, 25), ((0, 0, 0), 2.0, 11), ((1e-7, 0, 1), 1.5, 7)]
)
def test_a_slack_rope_ends_where_it_was_told(end, length, n):
    scene = sh.Scene()
    scene.add_rope("r", (0, 0, 0), end, length=length, segments=n, attach=("world", "world"))
    r = sh.Simulation(scene, 0.001).rope("r")
    off = np.linalg.norm(r.position[-1] - end)
    print(f"{length} m from 0 to {end}: ends {off:.0e} m off, stretch {r.stretch:.0e}")
    assert off < 1e-8 and r.stretch < 1e-9


def crane(dt, **options):
    """A slewing and luffing crane: 500 kg on a reeled rope, a light tag on a ball under it."""
    s = sh.Scene()
    s.add_body("tower", sh.Box(0.4, 0.4, 3), mass=300, position=(0, 0, 1.5))
    s.add_body("boom", sh.Box(4, 0.2, 0.2), mass=120, position=(2, 0, 3))
    slew, luff = sh.Servo(position=0.0, kp=4e4, kd=8e3, max_force=2e4), sh.Servo(position=0.0, kp=3e5, kd=5e4, max_force=8e4)
    s.add_joint("slew", sh.Revolute("z", friction=50.0, drive=slew), "world", "tower", position=(0, 0, 0))
    s.add_joint("luff", sh.Revolute("y", limit=(-1.2, 0.3), drive=luff), "tower", "boom", position=(0, 0, 3))
    s.add_body("load", sh.Box(0.6, 0.6, 0.6), mass=500, position=(4, 0, 0.7))
    s.add_body("tag", sh.Sphere(0.03), mass=0.05, position=(4, 0, 0.2))
    s.add_joint("hang", sh.Spherical(), "load", "tag", position=(4, 0, 0.4))
    s.add_rope("r", (4, 0, 3), (4, 0, 1), segments=20, mass_per_length=0.5, attach=("boom", "load"), reel="start", longest=6)
    return sh.Simulation(s, dt, **options)


def operate(sim, until):
    """Jerk the controls every 0.3 s; drop the tag at 2.4 s, in the step in which the reel stops."""
    every = int(0.3 / sim.dt)
    worst, push, k = 0.0, 0.0, 0
    while sim.time < until - 0.5 * sim.dt:
        if k % every == 0:
            c = k // every
            sim.joint("slew").drive.position, sim.joint("luff").drive.position = 0.6 * np.sin(c), -0.3 + 0.3 * np.cos(c)
            sim.rope("r").reel_speed = (0.5, -0.4, 0.0)[c % 3]
            if c == 8:
                sim.joint("hang").enabled = False
        sim.step()
        worst = max(worst, sim.rope("r").stretch)
        push = max(push, -float(np.min(sim.rope("r").tension)))
        k += 1
    return worst, push


@pytest.mark.parametrize("way", ["direct"])
def test_a_crane_whose_controls_are_jerked(way):
    """Passes that lead to what is not a number were once taken for met: the last body's change hid those of all others."""
    options = {"solver": "direct"} if way == "direct" else {"solver": way}
    sim = crane(5e-3, **options)
    worst, push = operate(sim, 3.0)
    print(f"{way}: stretch {worst:.1e}, push {push:.1e} N, {sim.health().divided} of {sim.health().steps} steps divided")
    assert worst < 1e-6 and push < 0.1 and sim.health().not_converged == 0


def test_a_rope_that_is_torn_apart_by_sweeps_is_told():
    """Sequential impulses do not hold this rope at long steps: the guard names it."""
    sim = crane(15e-3, solver="sequential", on_divergence="raise")
    with pytest.warns(sh.StepWarning), pytest.raises(sh.DivergenceError, match="element of rope 'r' is longer"):
        operate(sim, 6.0)
    print(f"told at {sim.time:.3f} s, stretch then {sim.rope('r').stretch:.2f}")
    assert sim.rope("r").stretch < 1.0


LIGHT = pytest.mark.xfail(strict=True, raises=AssertionError, reason="velocities are fitted to a rope this light to 10 % only")
LIGHTEST = pytest.param(True, 1e-3, marks=[LIGHT, pytest.mark.slow])


@pytest.mark.parametrize(("jointed", "density"), [(False, 1e-3), (True, 0.1), LIGHTEST])
def test_a_reel_that_starts_at_once_does_not_throw_its_load(jointed, density):
    """300 kg on a rope of 1 g/m, swinging from 0.2 rad, are taken in by 2 m in 4 s: the rope never goes slack."""
    scene, down = sh.Scene(), np.array([np.sin(0.2), 0, -np.cos(0.2)])
    scene.add_body("load", sh.Sphere(0.2), mass=300, position=4 * down)
    if jointed:  # in the direct solve, beside a tree
        scene.add_body("arm", sh.Box(1, 0.1, 0.1), mass=1, position=(5, 0, 0))
        scene.add_joint("hinge", sh.Revolute("y"), "world", "arm", position=(4.5, 0, 0))
    rope = {"segments": 40, "mass_per_length": density, "reel": "start", "longest": 4.0}
    scene.add_rope("r", (0, 0, 0), 4 * down, attach=("world", "load"), **rope)
    sim = sh.Simulation(scene, 0.005)
    r, load = sim.rope("r"), sim.body("load")
    r.reel_speed = -0.5
    sim.step()
    along = float(load.velocity @ load.position / np.linalg.norm(load.position))
    least, stretch = np.inf, 0.0
    while sim.time < 4.0 - 1e-9:
        sim.step()
        least, stretch = min(least, float(np.min(r.tension))), max(stretch, r.stretch)
    print(f"after a step it moves at {along:.4f} m/s along the rope; then at least {least:.0f} N; stretch {stretch:.0e}")
    assert abs(along + 0.5) < 0.005 and least > 0.5 * 300 * 9.81 and stretch < 1e-6 and abs(r.length - 2.0) < 1e-9


def test_a_load_at_rest_on_a_vertical_rope_stays_there_when_a_limit_is_met_elsewhere():
    """Displacements take a passed limit back in: that of the arm does not move the hook."""
    scene = sh.Scene()
    scene.add_body("hook", sh.Sphere(0.1), mass=10, position=(0, 0, 2))
    scene.add_rope("line", (0, 0, 3), (0, 0, 2.1), segments=6, mass_per_length=0.3, attach=("world", "hook"))
    scene.add_body("arm", sh.Box(1, 0.1, 0.1), mass=5, position=(3.5, 0, 1))
    scene.add_joint("hinge", sh.Revolute("y", limit=(-0.5, 0.5)), "world", "arm", position=(3, 0, 1))
    sim = sh.Simulation(scene, 0.005)
    start, met = sim.energy().total, False
    for _ in range(150):
        sim.step()
        met = met or abs(sim.joint("hinge").position) > 0.499
        assert np.abs(sim.body("hook").position - [0, 0, 2]).max() < 1e-9 and sim.energy().total < start + 1e-6
    assert met and sim.rope("line").stretch < 1e-9
