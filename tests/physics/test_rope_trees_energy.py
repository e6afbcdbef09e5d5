"""Ropes beside joints by the direct step: energy, momenta and lengths at every step, whatever the step."""

import numpy as np
import pytest

import sharnir as sh

G = 9.81
ROPE = {"segments": 20, "radius": 0.01, "mass_per_length": 0.5}
BOOM = G * (200 * 2 + 1000 * 4)  # J, scale of the energy of boom and load


def follow(sim, steps, scale):
    """Largest error of the energy over its scale and largest stretch, after a step in which velocities settle; divided steps."""
    sim.step()
    start, energy, stretch, divided = sim.energy().total, 0.0, 0.0, 0
    for _ in range(steps):
        divided += sim.step().fallbacks["divided"]
        energy = max(energy, abs(sim.energy().total - start) / scale)
        stretch = max(stretch, *(sim.rope(name).stretch for name in sim.model.ropes.names))
    return energy, stretch, divided


def boom(dt, joint=None, load=1000.0, clamp=False, side=0.3, **stiffness):
    """A load on a rope from the tip of a boom that nothing holds: the tip falls faster, the rope goes slack and snatches."""
    scene = sh.Scene()
    scene.add_body("boom", sh.Box(4, 0.3, 0.3), mass=200.0, position=(2, 0, 0))
    scene.add_joint("hinge", joint or sh.Revolute("y"), "world", "boom", position=(0, 0, 0))
    scene.add_body("load", sh.Box(0.5, 0.5, 0.5), mass=load, position=(4, side, -2.25))
    ends = (4.0, 0, 0), (4.0, side, -2.0)
    scene.add_rope("rope", *ends, attach=("boom", "load"), clamp=(clamp, clamp), rod=True, **ROPE, **stiffness)
    return scene, dt


def direct(scene, dt, **options):
    return sh.Simulation(scene, dt, solver="direct", **options)


@pytest.mark.parametrize("dt", [1e-3, 5e-3, 15e-3])
@pytest.mark.parametrize("EI", [0.0, 2.0])
def test_a_boom_let_go_with_a_heavy_load_keeps_its_energy(EI, dt):
    sim = direct(*boom(dt, clamp=EI > 0, EI=EI, GJ=0.7 * EI))
    energy, stretch, divided = follow(sim, round(1.0 / dt), BOOM)
    print(f"EI {EI:g}, {dt * 1e3:g} ms: energy {energy:.0e} (5e-12), stretch {stretch:.0e} (3e-13), {divided} divided")
    assert energy < 5e-12 and stretch < 3e-13 and sim.constraint_error().max() < 1e-9


@pytest.mark.parametrize(
    "joint",
    [
        sh.Revolute("y", spring=(2e4, 0.0)),
        sh.Prismatic("z", spring=(2e3, 0.0)),
        sh.Spherical(),
        sh.Universal(("y", "z")),
        sh.Fixed(),
    ],
    ids=lambda j: type(j).__name__,
)
def test_springs_and_other_joints_keep_energy_too(joint):
    energy, stretch, divided = follow(direct(*boom(5e-3, joint, 50.0)), 200, G * (200 * 2 + 50 * 4))
    print(f"{type(joint).__name__}: energy {energy:.0e} (1e-8), stretch {stretch:.0e} (1e-8), {divided} divided")
    assert energy < 1e-8 and stretch < 1e-8


@pytest.mark.parametrize("rod", [True, False])
@pytest.mark.parametrize("dt", [5e-3, 15e-3])
def test_a_mechanism_in_the_air_keeps_its_momenta(dt, rod):
    """Jointed bodies with a rope clamped on two of them, a body tied to it and another on a rope from it; a spring; a loop."""
    scene = sh.Scene(gravity=(0, 0, 0))
    scene.add_body("a", sh.Box(1, 0.2, 0.2), mass=5.0, position=(0, 0, 0), angular_velocity=(0, 1, 0.5))
    scene.add_body("b", sh.Box(1, 0.2, 0.2), mass=4.0, position=(1, 0, 0), velocity=(0, 0.3, 0))
    scene.add_joint("ab", sh.Spherical(), "a", "b", position=(0.5, 0, 0))
    scene.add_body("c", sh.Box(0.2, 0.2, 0.2), mass=2.0, position=(0.5, 0, -0.9), velocity=(0.5, 0, 0.5))
    scene.add_body("d", sh.Box(0.2, 0.2, 0.2), mass=1.0, position=(0.2, 0.5, -0.9), velocity=(0, 1, -1))
    scene.add_joint("rod", sh.Distance(), "a", "b", position=[(0, 0.1, 0.1), (1.2, 0.1, 0.1)])
    rope = {"segments": 20, "radius": 0.01, "mass_per_length": 0.3, "EI": 0.2, "GJ": 0.1, "rod": rod}
    ends = [(-0.5, 0, -0.1), (0.5, 0, -0.8), (1.5, 0, -0.1)]
    scene.add_rope("r", points=ends, attach=("a", "b"), clamp=(True, True), **rope)
    points = scene.ropes["r"].points
    scene.tie_rope("r", 10, "c")
    scene.add_rope("q", points[6], (0.2, 0.5, -0.8), segments=8, radius=0.01, mass_per_length=0.3, attach=("r", "d"), rod=rod)
    scene.add_spring("s", "c", "d", stiffness=20.0)
    sim = direct(scene, dt)
    sim.step()
    start, first, off = sim.momentum(), sim.energy().total, np.zeros(3)
    for _ in range(round(1.0 / dt)):
        sim.step()
        now = sim.momentum()
        gained = sim.energy().total - first  # ropes that are no rods snap taut, which may take some
        changes = now.linear - start.linear, now.angular - start.angular, gained if rod else max(gained, 0.0)
        off = np.maximum(off, [np.abs(x).max() for x in changes])
    print(f"{dt * 1e3:g} ms: {off[0]:.0e} N·s, {off[1]:.0e} N·m·s (1e-9), {off[2]:.0e} J of {first:.1f}")
    assert off[0] < 1e-9 and off[1] < 1e-9 and off[2] < 1e-8 * first


def test_friction_behind_a_rope_holds_to_the_bit():
    """The load swings; the boom is held by friction and does not move by a bit, the load keeps its energy."""
    sim = direct(*boom(5e-3, sh.Revolute("y", friction=1e5), 500.0))
    sim.step(2)
    angle = sim.joint("hinge").position
    energy, stretch, divided = follow(sim, 400, 500 * G)
    turned = sim.joint("hinge").position - angle
    print(f"hinge turned by {turned} rad; energy {energy:.0e}, stretch {stretch:.0e}, {divided} divided")
    assert turned == 0.0 and sim.joint("hinge").stuck and energy < 1e-8 and stretch < 1e-8


def test_friction_that_slides_takes_what_is_lost():
    sim = direct(*boom(5e-3, sh.Revolute("y", friction=300.0), 50.0))
    sim.step()
    start, taken, off = sim.energy().total, 0.0, 0.0
    for _ in range(300):
        sim.step()
        taken += sim.joint("hinge").dissipated
        off = max(off, abs(start - taken - sim.energy().total))
    print(f"{taken:.1f} J taken, energy off by {off:.0e} J")
    assert taken > 100.0 and off < 1e-5


@pytest.mark.parametrize("dt", [5e-3, 15e-3])
def test_a_limit_that_stops_a_boom_leaves_the_rope_closed(dt):
    """Boom and load fall until the hinge's limit stops them; what is passed of it is taken back in, the rope along with it."""
    sim = direct(*boom(dt, sh.Revolute("y", limit=(-0.2, 0.3)), 50.0))
    sim.step()
    start, taken, off, over, stretch = sim.energy().total, 0.0, 0.0, 0.0, 0.0
    for _ in range(round(2.0 / dt)):
        sim.step()
        taken += sim.joint("hinge").dissipated
        off, over = max(off, abs(start - taken - sim.energy().total)), max(over, sim.joint("hinge").position - 0.3)
        stretch = max(stretch, sim.rope("rope").stretch)
    print(f"{dt * 1e3:g} ms: {taken:.0f} J taken, energy off by {off:.0e} J, over by {over:.0e} rad, stretch {stretch:.0e}")
    assert taken > 1000 and off < 1e-3 and over < 1e-9 and stretch < 1e-7


def test_a_force_of_one_step_acts_once_in_a_divided_one():
    """The rope snatches, steps are divided: the impulse is that of the whole step."""
    sim, divided = direct(*boom(15e-3)), 0
    while divided < 2 or sim.time < 0.5:  # the first step that is divided with the force and without
        before = sim.snapshot()
        divided = sim.step().fallbacks["divided"]
        plain, after = sim.body("load").velocity, sim.snapshot()
        if divided:
            sim.restore(before)
            sim.body("load").apply_force((0, 1e4, 0))
            divided += sim.step().fallbacks["divided"]
            if divided < 2:
                sim.restore(after)
    gained = sim.body("load").velocity - plain
    print(f"gained {gained} m/s of 0.15, {divided} of 2 steps divided")
    assert divided == 2 and np.abs(gained - (0, 0.15, 0)).max() < 0.02


def test_two_ropes_and_one_between_two_links_beside_a_loop():
    """Boom and jib, a rope clamped on both, one to a wall, one with a free end; a joint closes a loop."""
    scene = sh.Scene()
    scene.add_body("boom", sh.Box(3, 0.2, 0.2), mass=120.0, position=(1.5, 0, 0))
    scene.add_joint("hinge", sh.Revolute("y"), "world", "boom", position=(0, 0, 0))
    scene.add_joint("other", sh.Spherical(), "world", "boom", position=(0, 1, 0))
    scene.add_body("jib", sh.Box(2, 0.2, 0.2), mass=60.0, position=(4, 0, 0))
    scene.add_joint("elbow", sh.Universal(("y", "z")), "boom", "jib", position=(3, 0, 0))
    scene.add_spring("spring", "boom", "jib", at_a=(0, 0, 0.1), at_b=(0.5, 0, 0.1), stiffness=500.0)
    rope = {"segments": 12, "radius": 0.01, "mass_per_length": 0.5}
    stiff = {"clamp": (True, True), "EI": 0.5, "GJ": 0.3}
    scene.add_rope("both", (1.5, 0, -0.1), (4.5, 0, -0.1), length=3.6, attach=("boom", "jib"), rod=True, **stiff, **rope)
    scene.add_rope("stay", (2, 0.1, 0), (2, 2, 0.5), length=2.6, attach=("boom", "world"), rod=True, **rope)
    scene.add_rope("tail", (5, 0, 0), (6, 0.3, -0.4), attach=("jib", None), rod=True, **rope)
    for dt in (2e-3, 10e-3):
        sim = direct(scene, dt)
        energy, stretch, divided = follow(sim, round(1.0 / dt), G * (120 * 1.5 + 60 * 4))
        print(f"{dt * 1e3:g} ms: energy {energy:.0e} (1e-8), stretch {stretch:.0e} (1e-8), {divided} divided")
        assert energy < 1e-8 and stretch < 1e-8 and sim.constraint_error().max() < 1e-9


def test_a_reel_on_a_boom_lowers_a_swinging_load():
    """What is paid out under tension takes energy: all the load gives, none is pumped in where points are inserted."""
    scene = sh.Scene()
    scene.add_body("boom", sh.Box(4, 0.3, 0.3), mass=200.0, position=(2, 0, 0))
    scene.add_joint("hinge", sh.Revolute("y", friction=1e5), "world", "boom", position=(0, 0, 0))
    scene.add_body("load", sh.Box(0.5, 0.5, 0.5), mass=50.0, position=(4, 0, -2.25), velocity=(3, 0, 0))
    scene.add_rope("rope", (4, 0, 0), (4, 0, -2), attach=("boom", "load"), reel="start", longest=4.0, **ROPE)
    sim = direct(scene, 5e-3)
    sim.step()
    sim.rope("rope").reel_speed = 0.5
    energies, stretch = [sim.energy().total], 0.0
    for _ in range(10):
        sim.step(40)
        energies.append(sim.energy().total)
        stretch = max(stretch, sim.rope("rope").stretch)
    falls = -np.diff(energies) / 0.2
    print(f"power {falls.min():.0f} to {falls.max():.0f} W of {50 * G * 0.5:.0f} at rest, stretch {stretch:.0e}")
    assert falls.min() > 100 and falls.max() < 500 and stretch < 1e-8


def test_one_step_a_call_equals_many_in_two_worlds():
    a, b = (direct(*boom(5e-3, sh.Revolute("y", friction=300.0), 50.0), worlds=2) for _ in range(2))
    for sim in (a, b):
        sim.body("load").velocity = np.array([(0, 0, 0), (0, 1.0, 0)])
    a.step(60)
    for _ in range(60):
        b.step()
    again = b.snapshot()
    assert all(np.array_equal(value, again[name]) for name, value in a.snapshot().items())


def test_a_step_that_cannot_be_made_leaves_the_state():
    sim = direct(*boom(5e-3))
    sim.step(20)
    before = sim.snapshot()
    sim.commands.force.fill_(1e300)
    with pytest.raises(sh.SimulationError):
        sim.step()
    after = sim.snapshot()
    same = [name for name, value in before.items() if not np.array_equal(value, after[name])]
    print(f"changed: {same}")
    assert not [name for name in same if "force" not in name and "kept" not in name and "failed" not in name]
