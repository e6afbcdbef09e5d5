"""Ropes beside joints with the direct pass: one solve, exact both ways."""

import numpy as np
import pytest

import sharnir as sh
from sharnir.spatial import frame_from_axes


def pendulum(beside, dt, **options):
    """300 kg on 0.3 kg of rope at 30°, held off its centre; a hinge elsewhere has the joints' solver step it."""
    scene, a = sh.Scene(), np.radians(30)
    down = np.array([np.sin(a), 0, -np.cos(a)])
    scene.add_body("load", sh.Box(0.5, 0.5, 0.5), mass=300.0, position=3.2 * down)
    scene.add_rope("rope", (0, 0, 0), 3.0 * down, segments=30, radius=0.005, mass_per_length=0.1, attach=("world", "load"))
    if beside:
        scene.add_body("p", sh.Box(0.1, 0.1, 0.1), mass=1.0, position=(5, 0, 0))
        scene.add_joint("h", sh.Revolute("y"), "world", "p", position=(4.5, 0, 0))
    return sh.Simulation(scene, dt, **options)


@pytest.mark.parametrize("dt", [5e-3, 15e-3])
def test_a_load_swings_as_without_joints(dt):
    alone, beside = pendulum(False, dt), pendulum(True, dt, solver="articulated")
    start, stretch, energy = beside.energy().total, 0.0, 0.0
    for _ in range(round(6.0 / (10 * dt))):
        alone.step(10)
        beside.step(10)
        stretch = max(stretch, beside.rope("rope").stretch)
        energy = max(energy, abs(beside.energy().total - start))
    apart = np.abs(alone.body("load").com - beside.body("load").com).max()
    print(f"300 kg, {dt * 1e3:g} ms: {apart:.1e} m from the rope alone, stretch {stretch:.1e}, energy {energy:.2f} of 1300 J")
    assert apart < 1e-8 and stretch < 1e-6 and energy < 13.0


def boom(kind, joint, dt, load=50.0, n=20, **options):
    """A load on a rope, or on rods with ball joints, from the tip of a boom."""
    scene, top, bottom = sh.Scene(), np.array([4.0, 0, 0]), np.array([4.0, 0.3, -2.0])
    scene.add_body("boom", sh.Box(4, 0.3, 0.3), mass=200.0, position=(2, 0, 0))
    scene.add_joint("hinge", joint, "world", "boom", position=(0, 0, 0))
    scene.add_body("load", sh.Box(0.5, 0.5, 0.5), mass=load, position=(4, 0.3, -2.25))
    if kind == "rope":
        scene.add_rope("rope", top, bottom, segments=n, radius=0.01, mass_per_length=0.5, attach=("boom", "load"))
        return sh.Simulation(scene, dt, solver="articulated", **options)
    l, along, last = np.linalg.norm(bottom - top) / n, (bottom - top) / np.linalg.norm(bottom - top), "boom"
    m = 0.5 * l
    for i in range(n):
        inertia = (m * l * l / 12, m * l * l / 12, m * 1e-4 / 2)
        scene.add_body(f"r{i}", mass=m, inertia=inertia, position=top + (i + 0.5) * l * along, rotation=frame_from_axes(along))
        scene.add_joint(f"j{i}", sh.Spherical(), last, f"r{i}", position=top + i * l * along)
        last = f"r{i}"
    scene.add_joint("eye", sh.Spherical(), last, "load", position=bottom)
    return sh.Simulation(scene, dt, solver="articulated", **options)


@pytest.mark.parametrize("load", [50.0, 1000.0])
def test_a_rope_between_jointed_bodies_moves_as_rods_do(load):
    joint = sh.Revolute("y", spring=(4e5, 0.0), damping=2e4)
    rope, rods = boom("rope", joint, 2e-3, load), boom("rods", joint, 2e-3, load)
    start = rope.body("load").com
    for sim in (rope, rods):
        sim.run(1.0)
    way = np.linalg.norm(rope.body("load").com - start)
    apart = np.linalg.norm(rope.body("load").com - rods.body("load").com)
    bend = abs(rope.joint("hinge").position - rods.joint("hinge").position)
    forces = [np.asarray(sim.joint("hinge").reaction[0]) for sim in (rope, rods)]
    print(
        f"{load:g} kg: {apart:.1e} m apart after {way:.2f} m, hinge {bend:.1e} rad, {forces[0][2]:.0f} and {forces[1][2]:.0f} N"
    )
    assert apart < 5e-4 * way and bend < 1e-4 and np.linalg.norm(forces[0] - forces[1]) < 0.02 * np.linalg.norm(forces[1])


@pytest.mark.parametrize(("load", "dt"), [(50.0, 2e-3), (1000.0, 2e-3), (1000.0, 5e-3), (1000.0, 15e-3)])
def test_a_rope_that_goes_slack_and_jerks_brings_no_energy(load, dt):
    """The boom is let go: its tip falls faster than the load, the rope is pressed, gives way, hangs loose and snatches."""
    sim = boom("rope", sh.Revolute("y"), dt, load)
    start, scale, above, stretch, grades = sim.energy().total, 9.81 * (200 * 2 + load * 4), 0.0, 0.0, np.zeros(4, int)
    for _ in range(round(2.0 / (5 * dt))):
        grades += list(sim.step(5).grades.values())
        above, stretch = max(above, (sim.energy().total - start) / scale), max(stretch, sim.rope("rope").stretch)
    print(f"{load:g} kg, {dt * 1e3:g} ms: at most {100 * above:.2f} % above the start, stretch {stretch:.1e}, grades {grades}")
    assert above < 0.05 and stretch < 1e-3 and sim.gaps().max() < 1e-6


def test_a_rope_through_friction_holds_still():
    """Friction of the boom's hinge holds boom and load: nothing moves by a bit once the load hangs straight."""
    scene = sh.Scene()
    scene.add_body("boom", sh.Box(4, 0.3, 0.3), mass=200.0, position=(2, 0, 0))
    scene.add_joint("hinge", sh.Revolute("y", friction=1e5), "world", "boom", position=(0, 0, 0))
    scene.add_body("load", sh.Box(0.5, 0.5, 0.5), mass=500.0, position=(4, 0, -2.25))
    scene.add_rope("rope", (4, 0, 0), (4, 0, -2), segments=10, radius=0.01, mass_per_length=0.5, attach=("boom", "load"))
    sim = sh.Simulation(scene, 5e-3, solver="articulated")
    sim.step(2)
    angle = sim.joint("hinge").position
    sim.run(5.0)
    tension = sim.rope("rope").tension
    print(f"hinge turned by {sim.joint('hinge').position - angle:.1e} rad; tension {tension[0]:.3f} to {tension[-1]:.3f} N")
    assert sim.joint("hinge").position == angle and sim.joint("hinge").stuck
    assert abs(tension[-1] - 500.05 * 9.81) < 0.5


def test_what_does_not_fit_is_named():
    scene = sh.Scene()
    scene.add_body("a", sh.Box(0.1, 0.1, 0.1), mass=1.0, position=(0, 0, 0))
    scene.add_joint("j", sh.Revolute("y"), "world", "a", position=(0, 0, 1))
    scene.add_rope("rope", (0, 0, 0), (1, 0, 0), segments=5, radius=0.01, mass_per_length=0.5, attach=("a", None))
    with pytest.raises(sh.SimulationError, match="need solver='impulse'"):
        sh.Simulation(scene, 1e-3, solver="articulated")
    sim = sh.Simulation(scene, 1e-3, solver="articulated", worlds=3)
    sim.step(20)
    assert np.isfinite(sim.energy().total).all()


def test_one_step_a_call_equals_many():
    joint = sh.Revolute("y", spring=(4e5, 0.0), damping=2e4, friction=50.0)
    a, b = boom("rope", joint, 2e-3), boom("rope", joint, 2e-3)
    a.step(60)
    for _ in range(20):
        b.step()
    saved = b.snapshot()
    b.step(7)
    b.restore(saved)
    b.step(40)
    again = b.snapshot()
    assert all(np.array_equal(value, again[name]) for name, value in a.snapshot().items())


def test_a_reel_on_a_boom_in_two_worlds():
    scene = sh.Scene()
    scene.add_body("boom", sh.Box(2, 0.2, 0.2), mass=200.0, position=(1, 0, 0))
    scene.add_joint("hinge", sh.Revolute("y", friction=1e5), "world", "boom", position=(0, 0, 0))
    scene.add_body("load", sh.Box(0.3, 0.3, 0.3), mass=50.0, position=(2, 0, -2.15))
    rope = {"segments": 20, "radius": 0.01, "mass_per_length": 0.5, "reel": "start", "longest": 4.0}
    scene.add_rope("rope", (2, 0, 0), (2, 0, -2), attach=("boom", "load"), **rope)
    sim = sh.Simulation(scene, 5e-3, solver="articulated", worlds=2)
    sim.rope("rope").reel_speed = np.array([0.3, 0.0])
    sim.run(3.0)
    length, down = sim.rope("rope").length, -np.asarray(sim.body("load").com)[:, 2]
    pulls = [t[-1] for t in sim.rope("rope").tension]
    print(f"paid out to {length} m, loads at {down} m, pulled by {np.round(pulls, 2)} N")
    assert np.allclose(length, [2.9, 2.0], atol=1e-9) and np.allclose(down, [3.05, 2.15], atol=1e-3)
    assert np.allclose(pulls, 50.025 * 9.81, rtol=5e-3)
