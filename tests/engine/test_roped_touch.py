"""Ropes that touch shapes which do not move, in joint coordinates: closed forms, energy, and what the former passes find."""

import math

import numpy as np
import pytest

import sharnir as sh
from sharnir.engine.direct.trees import Trees

G, R, RADIUS, SEGMENT = 9.81, 0.1, 0.005, 0.012
ABOUT_Y = (math.sin(math.pi / 4), 0, 0, math.cos(math.pi / 4))


def over_a_drum(dt, mu, pull, hold):
    """Half a turn of a rope over a fixed drum, both ends pulled down; without gravity."""
    scene, m = sh.Scene(gravity=(0, 0, 0)), sh.Material(friction=mu)
    scene.add_body("drum", sh.Cylinder(R, 0.4), motion="fixed", rotation=ABOUT_Y, material=m, collide=True)
    a = np.linspace(0.0, np.pi, round((R + RADIUS) * np.pi / SEGMENT) + 1)
    arc = (R + RADIUS) * np.stack([-np.cos(a), 0 * a, np.sin(a)], 1)
    down = np.arange(1, 43)[:, None] * [0, 0, -SEGMENT]
    points = np.concatenate([(arc[0] + down)[::-1], arc, arc[-1] + down])
    scene.add_body("light", mass=hold / G, position=points[0])
    scene.add_body("heavy", mass=pull / G, position=points[-1])
    lengths = np.linalg.norm(np.diff(points, axis=0), axis=1)
    scene.add_rope(
        "rope", points=points, segments=lengths, radius=RADIUS, mass_per_length=0.05, attach=("light", "heavy"), material=m
    )
    sim = sh.Simulation(scene, dt, solver="direct")
    sim.body("light").apply_force((0, 0, -hold), once=False)
    sim.body("heavy").apply_force((0, 0, -pull), once=False)
    return sim


def ratio(sim):
    """Tension beside the drum on both sides, and the angle between the pieces there."""
    rope = sim.rope("rope")
    T, d = rope.tension, np.diff(rope.position, axis=0)
    on = np.flatnonzero(np.abs(np.linalg.norm(rope.position[:, [0, 2]], axis=1) - R - RADIUS) < 2e-5)
    along = np.unwrap(np.arctan2(d[:, 2], d[:, 0]))
    return T[on[-1]] / T[on[0] - 1], abs(along[on[-1]] - along[on[0] - 1])


def given(sim, forces, start):
    """Energy less what forces (N) on bodies gave, J."""
    return sim.energy().total - sum(f * (sim.body(name).position[2] - start[name]) for name, f in forces.items())


@pytest.mark.parametrize(("dt", "mu"), [(2.5e-3, 0.3), (5e-3, 0.3), (5e-3, 0.1), (1.5e-2, 0.3)])
def test_tensions_over_a_drum_are_those_of_the_capstan_at_all_times(dt, mu):
    hold = 98.1
    pull = 1.3 * hold * math.exp(mu * np.pi)
    sim = over_a_drum(dt, mu, pull, hold)
    assert Trees.cover(sim.model)
    forces, start = {"light": -hold, "heavy": -pull}, {n: sim.body(n).position[2] for n in ("light", "heavy")}
    off, energies, stretch, passes, missed = [], [sim.energy().total], 0.0, [], 0
    while sim.time < 0.5:
        report = sim.step()
        missed += not report.converged
        passes.append(report.iterations)
        energies.append(given(sim, forces, start))
        stretch = max(stretch, sim.rope("rope").stretch)
        if sim.time > 0.1:
            r, angle = ratio(sim)
            off.append(r / math.exp(mu * angle) - 1)
    print(f"{dt * 1e3:g} ms, {mu}: ratio off by {np.mean(off):+.2%} on average, {np.abs(off).max():.2%} at most; energy rises by "
          f"at most {np.diff(energies).max():.1e} J a step; stretch {stretch:.0e}; {np.mean(passes):.0f} passes")  # fmt: skip
    assert abs(np.mean(off)) < 5e-3 and np.abs(off).max() < 2e-2 and missed == 0
    assert np.diff(energies).max() < 1e-9 * energies[0] + 1e-9 and stretch < 1e-9 and np.median(passes) < 20


def falling():
    """A rope above the ground, tied to a ball that flies off."""
    scene, m = sh.Scene(), sh.Material(friction=0.5)
    scene.add_ground(material=m)
    scene.add_body("ball", sh.Sphere(0.05), mass=1.0, position=(1.05, 0, 0.1), velocity=(1, 0.5, 0), material=m)
    scene.add_rope("rope", (0, 0, 0.05), (1, 0, 0.1), segments=20, radius=0.01, mass_per_length=0.2, attach=(None, "ball"),
                   material=m)  # fmt: skip
    return scene


def test_a_rope_that_is_dragged_goes_as_the_former_passes_find(monkeypatch):
    now = sh.Simulation(falling(), 1e-3, solver="direct")
    assert Trees.cover(now.model)
    monkeypatch.setattr(Trees, "cover", staticmethod(lambda model: False))
    former = sh.Simulation(falling(), 1e-3, solver="direct")
    for sim in (now, former):
        sim.run(0.3)
    apart = np.abs(now.rope("rope").position - former.rope("rope").position).max()
    weights = [sim.contact_force("rope", "world")[2] for sim in (now, former)]
    print(f"{apart:.1e} m apart, the ground bears {weights} N, stretch {now.rope('rope').stretch:.1e}")
    assert apart < 5e-3 and now.rope("rope").stretch < 1e-9
    assert now.rope("rope").position[:, 2].min() > 0.01 - 1e-4


def test_a_rope_that_comes_to_touch_itself_is_handed_over():
    scene, m = sh.Scene(), sh.Material(friction=0.3)
    scene.add_ground(material=m)
    scene.add_body("ball", sh.Sphere(0.05), mass=1.0, position=(0, 0, 1.05), velocity=(0, 0, -3), material=m)
    a = np.linspace(0, 1.0, 26)
    points = np.stack([0.03 * np.sin(12 * a), 0.03 * np.cos(12 * a), 1 - 0.9 * a], 1)
    lengths = np.linalg.norm(np.diff(points, axis=0), axis=1)
    scene.add_rope("rope", points=points, segments=lengths, radius=0.012, mass_per_length=0.2, attach=("ball", None), material=m)
    sim = sh.Simulation(scene, 5e-3, solver="direct")
    assert Trees.cover(sim.model)
    start, above = sim.energy().total, 0.0
    for _ in range(60):
        sim.step()
        above = max(above, sim.energy().total - start)
    missed = sim.health().not_converged
    position = sim.rope("rope").position
    print(f"energy {above:.1e} J above the start, {missed} not converged, lowest point at {position[:, 2].min():.4f} m")
    assert np.isfinite(position).all() and above < 1e-6 * start and position[:, 2].min() > 0.0


def test_what_was_handed_over_goes_on_from_snapshots_and_begins_anew_bit_for_bit():
    scene, m = sh.Scene(), sh.Material(friction=0.3)
    scene.add_ground(material=m)
    scene.add_body("ball", sh.Sphere(0.05), mass=1.0, position=(0, 0, 1.05), velocity=(0, 0, -3), material=m)
    a = np.linspace(0, 1.0, 26)
    points = np.stack([0.03 * np.sin(12 * a), 0.03 * np.cos(12 * a), 1 - 0.9 * a], 1)
    lengths = np.linalg.norm(np.diff(points, axis=0), axis=1)
    scene.add_rope("rope", points=points, segments=lengths, radius=0.012, mass_per_length=0.2, attach=("ball", None), material=m)
    sim = sh.Simulation(scene, 5e-3, solver="direct")

    def positions(steps):
        found = []
        for _ in range(steps):
            sim.step()
            found.append(sim.rope("rope").position.copy())
        return np.array(found)

    sim.run(0.015)
    early, before = sim.snapshot(), positions(40)
    assert "handed_over" not in early and "handed_over" in sim.snapshot()
    late, after = sim.snapshot(), positions(5)
    sim.restore(early)
    assert np.array_equal(positions(40), before) and np.array_equal(positions(5), after)
    sim.restore(early)
    sim.restore(late)
    assert np.array_equal(positions(5), after)
    sim.reset()
    sim.run(0.015)
    assert np.array_equal(positions(40), before)


def random_scene(seed):
    """A rope that a thrown ball lays over a drum or a tilted box, or drags over the ground; seeds say which."""
    rng, scene = np.random.default_rng(seed), sh.Scene()
    m = sh.Material(friction=float(rng.uniform(0, 0.8)))
    kind, mass, segments = seed % 3, float(rng.uniform(0.2, 3)), int(rng.integers(10, 40))
    ends, velocity, ends_at = ((-0.4, 0, 0.2), (0.6, 0, 0.2)), (0, 0, -rng.uniform(1, 8)), (0.62, 0, 0.2)
    if kind == 0:
        scene.add_body("drum", sh.Cylinder(0.1, 0.6), motion="fixed", rotation=ABOUT_Y, material=m, collide=True)
    elif kind == 1:
        tilted = (math.cos(0.2), 0, math.sin(0.2), 0)
        scene.add_body("box", sh.Box(0.3, 0.4, 0.3), motion="fixed", rotation=tilted, material=m, collide=True)
        ends, velocity, ends_at = ((-0.5, 0, 0.25), (0.5, 0, 0.25)), rng.normal(size=3), (0.52, 0, 0.25)
    else:
        scene.add_ground(material=m)
        ends, velocity, ends_at = ((0, 0, 0.01), (1, 0, 0.01)), (*rng.normal(size=2), 0.5), (1, 0, 0.05)
    scene.add_body("ball", sh.Sphere(0.03), mass=mass, position=ends_at, velocity=velocity, material=m)
    held = (None, "ball") if kind == 2 else ("world", "ball")
    scene.add_rope("rope", *ends, segments=segments, radius=0.01, mass_per_length=0.2, attach=held, material=m)
    return scene


@pytest.mark.parametrize("seed", range(15))
def test_ropes_on_shapes_at_rest_gain_no_energy_and_keep_their_length(seed):
    sim = sh.Simulation(random_scene(seed), 5e-3, solver="direct")
    assert Trees.cover(sim.model)
    scale = sim.energy().kinetic + 9.81 * (float(sim.body("ball").mass) + 0.2) * 0.3
    start = before = sim.energy().total
    gain, above, stretch, deep = 0.0, 0.0, 0.0, 0.0
    while sim.time < 0.5 and not sim.solver.handed_over:
        assert sim.step().converged or sim.solver.handed_over
        energy = sim.energy().total
        if not sim.solver.handed_over:
            gain, above = max(gain, energy - before), max(above, energy - start)
            stretch = max(stretch, sim.rope("rope").stretch)
            deep = max(deep, -sim.contacts().gap.min(initial=0.0))
        before = energy
    print(f"gains {gain / scale:.1e} in a step, {above / scale:.1e} in all, stretch {stretch:.1e}, overlaps {deep:.1e} m, "
          f"{'handed over' if sim.solver.handed_over else 'to the end'} at {sim.time:.3f} s")  # fmt: skip
    assert gain < 5e-4 * scale and above < 1e-6 * scale and stretch < 2e-5 and deep < 1e-3
