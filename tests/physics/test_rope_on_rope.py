"""Ropes that touch each other and themselves: momentum, energy, friction, thickness; a knot."""

import time
import warnings

import numpy as np
import pytest
from conftest import in_time, load_example

import sharnir as sh

G, RADIUS = 9.81, 0.01


def crossing(mu=0.0, speed=2.0, dt=0.005, **more):
    """Two free ropes in space, the second thrown at the first across it, not quite at its middle."""
    scene, m = sh.Scene(gravity=(0, 0, 0), contact=True), sh.Material(friction=mu)
    rope = {"segments": 12, "radius": RADIUS, "mass_per_length": 0.2, "EI": 1e-3, "GJ": 1e-3, "material": m}
    scene.add_rope("a", (-0.3, 0, 0), (0.3, 0, 0), **rope)
    scene.add_rope("b", (0.04, -0.29, 0.05), (0.07, 0.31, 0.06), velocity=(0.3, 0, -speed), **rope)
    return sh.Simulation(scene, dt, **more)


def momenta(sim):
    """Linear and angular momentum of all points of ropes."""
    p, l = np.zeros(3), np.zeros(3)
    for name in "ab":
        x, v = sim.rope(name).position, sim.rope(name).velocity
        m = 0.2 * 0.6 / 12 * np.concatenate([[0.5], np.ones(len(x) - 2), [0.5]])[:, None] * sim.rope(name).length / 0.6
        p, l = p + (m * v).sum(0), l + np.cross(x, m * v).sum(0)
    return p, l


def test_ropes_that_collide_keep_momentum_and_gain_no_energy():
    for mu in (0.0, 0.5):
        sim = crossing(mu)
        (p0, l0), top, met, deep, rise = momenta(sim), sim.energy().total, 0.0, 0.0, 0.0
        last = top
        for _ in range(40):
            sim.step()
            now, found = sim.energy().total, sim.contacts()
            rise, last = max(rise, now - last), now
            met, deep = max(met, np.abs(found.force).max(initial=0.0)), max(deep, -found.gap.min(initial=0.0))
        p, l = momenta(sim)
        turned = np.abs(l - l0).max() / (0.12 * 2 * 0.3)
        print(f"μ = {mu}: pressed by {met:.1f} N, momentum off by {np.abs(p - p0).max():.0e} N·s, its moment by {turned:.0e} of "
              f"its scale, energy rises by at most {rise:.0e} J a step of {top:.2f} J and falls by {top - last:.3f} J; "
              f"{deep:.0e} m inside, {sim.health().not_converged} steps did not converge")  # fmt: skip
        assert met > 1.0 and np.abs(p - p0).max() < 1e-14 and rise < 1e-12 and deep < 0.05 * RADIUS and top - last > 0.01
        assert turned < (2e-3 if mu == 0 else 5e-2)


def test_no_rope_passes_another_at_twice_its_thickness_a_step():
    sim = crossing(0.3, 8.0, on_divergence="ignore")
    for _ in range(5):
        sim.step()
        a, b = sim.rope("a").position, sim.rope("b").position
        x = b[:, 0].mean()
        below = b[:, 2].max() - np.interp(x, a[:, 0], a[:, 2])
        print(f"{sim.time * 1e3:.0f} ms: the one is {below * 1e3:.1f} mm above the other, of {2e3 * RADIUS:.0f}")
        assert below > 1.7 * RADIUS


def test_a_rope_slides_across_two_others():
    scene, m = sh.Scene(contact=True), sh.Material(friction=0.3)
    for k, y in enumerate((-0.12, 0.13)):
        scene.add_rope(
            f"rail {k}", (-0.1, y, 0), (0.6, y, 0), segments=14, radius=RADIUS, rod=True, EI=1e4, GJ=1e4, clamp=(True, True),
            attach=("world", "world"), length=0.7000001, material=m,
        )  # fmt: skip
    stiff = {"rod": True, "EI": 100.0, "GJ": 100.0, "mass_per_length": 0.5}
    scene.add_rope(
        "slides", (0, -0.2, 2 * RADIUS), (0, 0.2, 2 * RADIUS), segments=8, radius=RADIUS, velocity=(1, 0, 0), material=m, **stiff
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sh.SceneWarning)
        sim = sh.Simulation(scene, 0.005)
    sim.run(0.6)
    x, exact = sim.rope("slides").position[:, 0].mean(), 1 / (2 * 0.3 * G)
    load = sim.contact_force("slides", "rail 0")[2] + sim.contact_force("slides", "rail 1")[2]
    print(f"slides {x:.5f} m, exact {exact:.5f}; borne with {load:.5f} N of {0.2 * G:.5f}")
    assert x == pytest.approx(exact, rel=0.02) and load == pytest.approx(0.2 * G, rel=1e-6)
    assert np.abs(sim.rope("slides").velocity).max() < 1e-6


def pile(**more):
    """A rope that falls onto the floor from one end: it lies in loops on itself."""
    scene = sh.Scene()
    scene.add_ground()
    a = np.linspace(0, 18, 46)
    points = np.stack([0.05 * np.cos(a), 0.05 * np.sin(a), 0.01 + 0.004 * a], 1)
    scene.add_rope("rope", points=points, radius=0.008, segments=45, mass_per_length=0.15, EI=1e-4, GJ=1e-4, damping=0.02)
    return sh.Simulation(scene, 0.005, on_divergence="ignore", **more)


def test_a_rope_falls_in_a_heap_on_itself_and_there_is_room_for_all_its_points():
    sim = pile()
    ropes = sim._contact_monitor._ropes
    room, top, rise, deep = ropes.pair_capacity, sim.energy().total, 0.0, 0.0
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", sh.StepWarning)
        for _ in range(40):
            last = sim.energy().total
            sim.step()
            rise, deep = max(rise, sim.energy().total - last), max(deep, -sim.contacts().gap.min(initial=0.0))
    told = [str(w.message) for w in told if "room" in str(w.message)]
    found = sim.contacts()
    own = int((found.body_a == "rope").sum())
    print(f"{own} points on itself, room for {room} at first and {ropes.pair_capacity} now; {len(told)} times too "
          f"little; {deep * 1e3:.2f} mm inside of 16 mm; energy rises by at most {rise:.0e} J of {top:.2f}")  # fmt: skip
    assert own > 10 and deep < 2e-3 and rise < 1e-3 * top
    snapshot = sim.snapshot()
    sim.step(5)
    after = sim.rope("rope").position.copy()
    other = pile(worlds=2, threads=2)
    sim._contact_monitor._grow_ropes(0)
    sim.restore(snapshot)
    sim.step(5)
    assert np.array_equal(sim.rope("rope").position, after)
    other.step(14)
    alone = pile()
    alone.step(14)
    assert np.array_equal(other.rope("rope").position[1], alone.rope("rope").position)


def test_ropes_that_are_to_ignore_each_other_pass():
    scene = sh.Scene(gravity=(0, 0, 0), contact=True)
    scene.add_rope("a", (-0.1, 0, 0), (0.1, 0, 0), segments=4, radius=RADIUS)
    scene.add_rope("b", (0, -0.1, 0.05), (0, 0.1, 0.05), segments=4, radius=RADIUS, velocity=(0, 0, -1))
    scene.ignore("a", "b")
    sim = sh.Simulation(scene, 0.01)
    sim.run(0.1)
    assert sim.rope("b").position[:, 2] == pytest.approx(-0.05) and len(sim.contacts()) == 0


def test_search_for_pairs_is_cheap_on_a_long_rope():
    took = {}
    for passes in (True, False):
        scene = sh.Scene(contact=True)
        s = np.linspace(0, 1, 1501)
        points = np.stack([15 * s, 0.05 * np.sin(400 * s), 0.05 * np.cos(400 * s)], 1)
        scene.add_rope("rope", points=points, radius=0.004, segments=1500, mass_per_length=0.1, EI=1e-4, GJ=1e-4)
        if passes:
            scene.ignore("rope", "rope")
        sim = sh.Simulation(scene, 0.002, on_divergence="ignore")
        sim.step(2)
        start = time.process_time()
        sim.step(8)
        took[passes] = time.process_time() - start
    print(f"1500 segments: {took[True] / 8e-3:.1f} ms a step, {took[False] / 8e-3:.1f} ms with the rope's own pairs looked for")
    in_time(took[False], 1.5 * took[True], "the search for pairs")


@pytest.mark.slow
def test_an_overhand_knot_holds_100_newtons_for_ten_seconds():
    example = load_example("knot")
    example.check(example.make(), 11.0)
