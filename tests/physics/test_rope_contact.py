"""Ropes that touch: lying, sliding, running over drums and pulleys, against closed forms; every shape."""

import math

import numpy as np
import pytest

import sharnir as sh

G = 9.81
R, RADIUS, SEGMENT = 0.1, 0.005, 0.012  # of drums, of ropes, m


def wrapped(turn, tail, pitch=0.0):
    """Points of a rope from one straight end around a drum about y to the other, all of them on its surface, and lengths."""
    r = R + RADIUS
    n = round(r * turn / SEGMENT)
    a = np.linspace(0.0, turn, n + 1)
    arc = np.stack([-r * np.cos(a), pitch * a / (2 * np.pi), r * np.sin(a)], 1)
    steps = np.arange(1, round(tail / SEGMENT) + 1)[:, None] * SEGMENT
    points = np.concatenate([arc[0] - steps[::-1] * [0, 0, 1], arc, arc[-1] + steps * [math.sin(turn), 0, math.cos(turn)]])
    return points, np.linalg.norm(np.diff(points, axis=0), axis=1)


def about_y():
    return math.sin(math.pi / 4), 0, 0, math.cos(math.pi / 4)


def over_a_drum(dt, mu, turn, pull, hold=98.1, tail=0.5, solver="auto"):
    """A weightless scene: both ends are pulled along themselves."""
    scene, m = sh.Scene(gravity=(0, 0, 0)), sh.Material(friction=mu)
    scene.add_body("drum", sh.Cylinder(R, 0.4), motion="fixed", rotation=about_y(), material=m, collide=True)
    points, lengths = wrapped(turn, tail, 0.013)
    scene.add_body("light", mass=hold / G, position=points[0])
    scene.add_body("heavy", mass=pull / G, position=points[-1])
    scene.add_rope(
        "rope", points=points, segments=lengths, radius=RADIUS, mass_per_length=0.05, attach=("light", "heavy"), material=m
    )
    sim = sh.Simulation(scene, dt, solver=solver)
    sim.body("light").apply_force((0, 0, -hold), once=False)
    sim.body("heavy").apply_force(pull * np.array([math.sin(turn), 0, math.cos(turn)]), once=False)
    return sim


def ratio(sim):
    """Tension on either side of what is touched, and the angle turned between."""
    rope, found = sim.rope("rope"), sim.contacts()
    T, d = rope.tension, np.diff(rope.position, axis=0)
    near = np.linalg.norm(rope.position[:, None] - found.point[None], axis=2).min(1) < 2 * RADIUS
    pressed = np.zeros(len(near), bool)
    pushes = found.point[np.linalg.norm(found.force, axis=1) > 1e-9]
    pressed[near] = [np.linalg.norm(pushes - p, axis=1).min() < 1.5 * RADIUS for p in rope.position[near]]
    on = np.flatnonzero(pressed)
    along = np.unwrap(np.arctan2(d[:, 2], d[:, 0]))
    a, b = on[0] - 1, on[-1]
    return max(T[a], T[b]) / min(T[a], T[b]), abs(along[b] - along[a])


def capstan(dt, mu, turn, most, solver="auto"):
    sim = over_a_drum(dt, mu, turn, 98.1 * math.exp(mu * turn) * 1.3, solver=solver)
    off, stretch = [], 0.0
    while sim.time < 0.3:
        sim.step()
        stretch = max(stretch, sim.rope("rope").stretch)
        if sim.time > 0.1:
            r, angle = ratio(sim)
            off.append(r / math.exp(mu * angle) - 1)
    deep = -sim.contacts().gap.min()
    print(f"{turn / np.pi:g}π, μ = {mu}, {dt * 1e3:g} ms: ratio off by {np.mean(off):+.2%} on average, {np.abs(off).max():.2%} "
          f"at most (allowed {most:.0%}); stretch {stretch:.0e}, {deep:.0e} m into the drum; "
          f"{sim.health().not_converged} of {round(sim.time / dt)} steps did not converge")  # fmt: skip
    assert abs(np.mean(off)) < most and np.abs(off).max() < 3 * most and stretch < 1e-6 and deep < 1e-4


def test_a_rope_slides_around_a_drum_by_the_capstan_law():
    capstan(0.015, 0.3, np.pi, 0.008)


@pytest.mark.slow
@pytest.mark.parametrize(("dt", "mu", "turn", "most"), [
    (0.005, 0.1, np.pi, 0.01), (0.005, 0.3, np.pi, 0.01), (0.005, 0.1, 2 * np.pi, 0.01), (0.005, 0.3, 2 * np.pi, 0.01),
    (0.015, 0.1, np.pi, 0.03), (0.015, 0.1, 2 * np.pi, 0.03), (0.015, 0.3, 2 * np.pi, 0.03),
])  # fmt: skip
def test_capstan_up_to_one_turn(dt, mu, turn, most):
    capstan(dt, mu, turn, most)


@pytest.mark.slow
@pytest.mark.parametrize("part", [0.97, 1.03])
def test_a_load_over_a_drum_holds_up_to_the_capstan_ratio(part):
    sim = over_a_drum(0.005, 0.3, np.pi, 98.1 * math.exp(0.3 * np.pi) * part)
    start = sim.body("heavy").position[2]
    sim.run(0.2)
    settled = sim.body("heavy").position[2]
    sim.run(1.0)
    moved = settled - sim.body("heavy").position[2]
    print(f"{part} of the ratio: {settled - start:.1e} m at first, then {moved:.1e} m in 1 s")
    assert (abs(moved) < 1e-6) if part < 1 else (moved > 0.02)


def test_a_rope_falls_on_a_floor_and_lies_still():
    scene = sh.Scene()
    scene.add_ground()
    scene.add_rope("rope", (0, 0, 0.03), (0.6, 0, 0.08), segments=20, radius=0.01, mass_per_length=0.2)
    sim = sh.Simulation(scene, 0.005)
    top, energies, stretch = sim.energy().total, [], 0.0
    for _ in range(60):
        sim.step()
        energies.append(sim.energy().total)
        stretch = max(stretch, sim.rope("rope").stretch)
    lies = sim.rope("rope").position
    sim.run(1.0)
    creep = np.abs(sim.rope("rope").position - lies).max()
    speed = np.abs(sim.rope("rope").velocity).max()
    weight, due = sim.contacts().force.sum(0), 0.2 * sim.rope("rope").length * G
    print(f"energy gains at most {np.diff([top, *energies]).max():.1e} J a step; lies at {lies[:, 2].min():.6f} m, creeps "
          f"{creep:.0e} m in 1 s at {speed:.0e} m/s; the floor bears {weight[2]:.6f} N of "
          f"{due:.6f}; stretch {stretch:.0e}")  # fmt: skip
    assert np.diff([top, *energies]).max() < 1e-9 and creep < 1e-9 and speed < 1e-9 and stretch < 1e-6
    assert weight == pytest.approx([0, 0, due], abs=1e-6) and lies[:, 2] == pytest.approx(0.01, abs=2e-5)


def test_a_rope_slides_to_rest_on_a_floor():
    scene, m = sh.Scene(), sh.Material(friction=0.3)
    scene.add_ground(material=m)
    scene.add_rope("rope", (0, 0, RADIUS), (0, 0.3, RADIUS), segments=10, radius=RADIUS, velocity=(1, 0, 0), material=m)
    sim = sh.Simulation(scene, 0.005)
    sim.run(0.6)
    x = sim.rope("rope").position[:, 0]
    print(f"slides {x.mean():.5f} m, exact {1 / (2 * 0.3 * G):.5f}; all points within {np.ptp(x):.0e} m")
    assert x == pytest.approx(1 / (2 * 0.3 * G), rel=0.02) and np.abs(sim.rope("rope").velocity).max() < 1e-9


def over_a_pulley(dt, solver="auto"):
    """Loads of 5 and 6 kg on a rope over a pulley of 2 kg on a hinge; and the mass of all that moves, kg."""
    scene, m = sh.Scene(), sh.Material(friction=0.8)
    scene.add_body("pulley", sh.Cylinder(R, 0.06), mass=2.0, rotation=about_y(), material=m, collide=True)
    scene.add_joint("hinge", sh.Revolute("y"), scene.world, "pulley", position=(0, 0, 0))
    points, lengths = wrapped(np.pi, 0.3)
    scene.add_body("a", mass=5.0, position=points[0])
    scene.add_body("b", mass=6.0, position=points[-1])
    scene.add_rope("rope", points=points, segments=lengths, radius=RADIUS, mass_per_length=0.05, attach=("a", "b"), material=m)
    return sh.Simulation(scene, dt, solver=solver), 11 + 0.05 * lengths.sum() + 0.5 * 2.0


def test_a_rope_turns_a_pulley_by_friction():
    sim, mass = over_a_pulley(0.005)
    top = [sim.energy().total]
    while sim.time < 0.3:
        sim.step()
        top.append(sim.energy().total)
    expected = G * sim.time / mass
    speed, rim = -sim.body("b").velocity[2], sim.joint("hinge").velocity * R
    load = sim.contact_force("pulley", "rope")
    print(f"load falls at {speed:.5f} m/s, theory {expected:.5f}; rim {rim:.5f} m/s; energy at most "
          f"{max(top) - top[0]:.1e} J above the start; the rope presses with {-load[2]:.2f} N")  # fmt: skip
    assert speed == pytest.approx(expected, rel=0.01) and rim == pytest.approx(speed, rel=2e-3) and max(top) - top[0] < 1e-3
    assert sim.body("pulley").touching == ("rope",) and 90 < -load[2] < 110


def sling(y, side, radius, top):
    """Points of a rope from a hook at height `top` around three sides of a cube about the origin, in the plane of y, and back."""
    turn = np.linspace(0, np.pi / 2, 9)
    right = np.stack([side / 2 + radius * np.cos(turn), -side / 2 - radius * np.sin(turn)], 1)
    half = np.concatenate([[[0.0, top], [side / 2 + radius, side / 2]], right])
    line = np.concatenate([half, half[::-1] * (-1, 1)])
    out = y * np.minimum((top - line[:, 1]) / (top - side / 2), 1.0)
    points = np.stack([line[:, 0], out, line[:, 1]], 1)
    s = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(points, axis=0), axis=1))])
    at = np.linspace(0, s[-1], round(s[-1] / (1.2 * radius)) + 1)
    return np.stack([np.interp(at, s, x) for x in points.T], 1)


def in_slings(side, mass, radius, top, solver="auto"):
    """A box in two slings whose ends are on a hook."""
    scene, m = sh.Scene(contact=True), sh.Material(friction=0.5)
    scene.add_body("hook", sh.Sphere(0.03), position=(0, 0, top), motion="kinematic", collide=False)
    scene.add_body("box", sh.Box(side, side, side), mass=mass, material=m)
    for k, y in enumerate((-0.08, 0.08)):
        p = sling(y, side, radius, top)
        lengths = np.linalg.norm(np.diff(p, axis=0), axis=1)
        rope = {"radius": radius, "mass_per_length": 0.15, "EI": 1e-3, "GJ": 1e-3, "damping": 0.02, "drag": 1.0, "material": m}
        scene.add_rope(f"sling {k}", points=p, segments=lengths, attach=("hook", "hook"), **rope)
    return sh.Simulation(scene, 0.005, solver=solver)


def carried(settles, lifts):
    """The hook lifts the box."""
    mass, top = 20.0, 0.75
    sim = in_slings(0.3, mass, 0.008, top)
    hook, box, ropes = sim.body("hook"), sim.body("box"), [sim.rope(f"sling {k}") for k in (0, 1)]
    start, rise, stretch = sim.energy().total, 0.0, 0.0
    while sim.time < settles:
        sim.step()
        rise, stretch = max(rise, sim.energy().total - start), max(stretch, ropes[0].stretch, ropes[1].stretch)
    hangs, creep = hook.position[2] - box.position[2], 0.0
    while sim.time < settles + lifts:
        hook.velocity = (0, 0, 0.3 * min((sim.time - settles) / 0.1, 1.0))
        sim.step()
        creep = max(creep, abs(hook.position[2] - box.position[2] - hangs))
    borne = -sum(sim.contact_force(f"sling {k}", "box")[2] for k in (0, 1))
    due = mass * (G + (3.0 if lifts < 0.1 else 0.0))
    ends = sum(rope.tension[[0, -1]].sum() for rope in ropes)
    print(f"hangs {hangs:.5f} m below the hook, lifted by {hook.position[2] - top:.3f} m it creeps {creep:.0e} m and turns by "
          f"{np.linalg.norm(box.rotation[:3]):.0e}; slings bear {borne:.3f} N of {due:.3f}, ends pull with {ends:.1f} N; energy "
          f"at most {rise:.0e} J above the start, stretch {stretch:.0e}, {sim.health().not_converged} steps not met")  # fmt: skip
    assert creep < 1.2e-4 and rise < 1e-9 and stretch < 1e-6 and np.linalg.norm(box.rotation[:3]) < 1e-3
    assert borne == pytest.approx(due, rel=1e-4) and box.position[2] > 0.004


def test_a_sling_carries_a_box():
    carried(0.08, 0.06)


@pytest.mark.slow
def test_a_sling_carries_a_box_a_long_way():
    carried(0.5, 1.5)


def landing(shape, mass, count, steps):
    """Ropes fall on bodies that lie on the ground, one on each: by how much energy rises in a step and above the start, J."""
    scene = sh.Scene()
    scene.add_ground()
    for k in range(count):
        y, z = 0.5 * k, 0.22 + 0.01 * k
        scene.add_body(f"body {k}", shape, mass=mass, position=(0, y, 0.1))
        scene.add_rope(
            f"rope {k}", (-0.25, y + 0.01, z), (0.28, y - 0.01, z + 0.02), segments=14, radius=0.008, mass_per_length=0.3
        )
    sim = sh.Simulation(scene, 0.005, on_divergence="ignore")
    energies, met = [sim.energy().total], 0
    for _ in range(steps):
        sim.step()
        energies.append(sim.energy().total)
        met = max(met, sum(np.linalg.norm(sim.contact_force(f"rope {k}", f"body {k}")) > 0.1 for k in range(count)))
    lost = energies[0] - min(energies)
    print(f"{count} of {mass} kg, {met} met at once: energy rises by at most {np.diff(energies).max():.1e} J a step, "
          f"{max(energies) - energies[0]:.1e} above the start, of {lost:.2f} J lost; {sim.health().not_converged} of {steps} "
          f"steps did not converge")  # fmt: skip
    assert max(energies) <= energies[0] + 1e-9 and np.diff(energies).max() < 3e-3 * lost and met == count


def test_ropes_that_land_on_bodies_that_yield_gain_no_energy():
    landing(sh.Sphere(0.1), 1.0, 6, 30)


@pytest.mark.slow
@pytest.mark.parametrize(("shape", "mass", "count"), [
    (sh.Sphere(0.1), 0.05, 1), (sh.Box(0.2, 0.2, 0.2), 0.05, 1), (sh.Box(0.2, 0.2, 0.2), 1.0, 9),
    pytest.param(sh.Sphere(0.1), 1.0, 9, marks=pytest.mark.xfail(
        strict=True, reason="an unconverged step leaves ropes 3 mm inside; they then lift the spheres: 0.7 % of what is lost")),
])  # fmt: skip
def test_ropes_that_land_on_light_bodies_and_on_many(shape, mass, count):
    landing(shape, mass, count, 80)


def whip(seed):
    """A rope, free or held at one end, with a weight or none, that whips at 10 to 400 rad/s onto three shapes."""
    rng, scene = np.random.default_rng(seed), sh.Scene()
    m, free = sh.Material(friction=rng.uniform(0, 0.9)), seed % 3 == 2
    scene.add_ground(material=m)
    shapes = (sh.Box(0.3, 0.3, 0.3), sh.Sphere(0.15), sh.Cylinder(0.1, 0.4), sh.Capsule(0.08, 0.3), sh.Cone(0.15, 0.3))
    for k in range(3):
        turn = rng.normal(size=4)
        turn, place = turn / np.linalg.norm(turn), (0.6 * k + 0.3, rng.uniform(-0.2, 0.2), rng.uniform(0.3, 0.5))
        heavy = {"mass": float(10 ** rng.uniform(-1, 1))} if free else {"motion": "fixed"}
        scene.add_body(f"shape {k}", shapes[rng.integers(5)], position=place, rotation=turn, material=m, **heavy)
    top, d = np.array([0, 0, 1.0]), np.array([rng.uniform(0.2, 1), rng.uniform(-0.3, 0.3), rng.uniform(0.3, 1)])
    end = top + d / np.linalg.norm(d) * rng.uniform(1, 2)
    if seed % 2:
        scene.add_body("tip", sh.Sphere(0.03), mass=float(10 ** rng.uniform(-1, 0.7)), position=end, material=m)
    ends, density = (scene.world if seed % 4 < 2 else None, "tip" if seed % 2 else None), float(10 ** rng.uniform(-1.3, 0))
    scene.add_rope(
        "rope", top, end, segments=int(rng.integers(12, 40)), radius=0.01, mass_per_length=density, attach=ends, material=m
    )
    sim = sh.Simulation(scene, 0.005 if seed % 2 else 0.002, on_divergence="ignore")
    axis, rate = rng.normal(size=3), 10 ** rng.uniform(1, 2.6)
    moves = np.cross(axis / np.linalg.norm(axis) * rate, sim.rope("rope").position - top)
    sim.rope("rope").velocity = moves
    if seed % 2:
        sim.body("tip").velocity = moves[-1]
    return sim


def whips(seeds, seconds, longer):
    above, stretch, missed, made = 0.0, 0.0, 0, 0
    for seed in seeds:
        sim = whip(seed)
        sim.step()
        start = sim.energy()
        while sim.time < seconds:
            missed += not sim.step().converged
            made += 1
            now = sim.energy().total
            assert np.isfinite(sim.rope("rope").position).all() and np.isfinite(sim.body_position).all() and np.isfinite(now)
            above = max(above, (now - start.total) / (start.kinetic + abs(start.potential)))
            stretch = max(stretch, sim.rope("rope").stretch)
    print(f"{len(seeds)} whips: energy at most {above:.0e} of its scale above the start; stretch {stretch:.0e}; "
          f"{missed} of {made} steps not met")  # fmt: skip
    assert above <= 1e-6 and stretch < longer and missed < 0.05 * made


def test_whips_onto_shapes_gain_no_energy():
    whips((0, 3, 5), 0.2, 1e-6)


@pytest.mark.slow
def test_many_whips_onto_shapes_gain_no_energy():
    whips([seed for seed in range(60) if seed != 32], 0.6, 1e-4)


@pytest.mark.slow
def test_a_whip_that_a_surface_all_but_holds_gains_no_energy():
    whips([32], 0.6, 1e-4)


def test_a_step_that_a_rope_on_a_shape_cannot_make_leaves_it_where_it_was():
    scene = sh.Scene()
    scene.add_ground()
    scene.add_body("box", sh.Box(0.3, 0.3, 0.3), motion="fixed", position=(0.5, 0, 0.15))
    scene.add_rope("rope", (0, 0, 0.35), (1, 0, 0.35), segments=20, radius=0.01, mass_per_length=0.1)
    sim = sh.Simulation(scene, 0.005)
    sim.step(20)
    kept, when = sim.rope("rope").position.copy(), sim.time
    sim.rope("rope").apply_force(5, (0.0, 1e200, -1e200))
    with pytest.raises(sh.SimulationError, match="rope 'rope'"):
        sim.step()
    assert np.array_equal(sim.rope("rope").position, kept) and sim.time == when
    sim.step(20)
    off = np.abs(sim.rope("rope").position - kept).max()
    print(f"it goes on from there: {1e3 * off:.1f} mm in 0.1 s")
    assert sim.time == pytest.approx(when + 0.1) and off < 0.2


def test_a_load_of_300_kg_on_a_light_rope_is_put_down():
    scene = sh.Scene()
    scene.add_ground()
    scene.add_body("load", sh.Box(0.5, 0.5, 0.5), mass=300.0, position=(0, 0, 0.28))
    rope = {"segments": 30, "radius": 0.006, "mass_per_length": 0.1, "attach": ("world", "load"), "reel": "start", "longest": 4.0}
    scene.add_rope("rope", (0, 0, 3.53), (0, 0, 0.53), **rope)
    sim = sh.Simulation(scene, 0.005)
    sim.rope("rope").reel_speed = 0.2
    start, above, stretch, heights = sim.energy().total, -np.inf, 0.0, []
    for _ in range(80):
        sim.step()
        heights.append(sim.body("load").position[2])
        above, stretch = max(above, sim.energy().total - start), max(stretch, sim.rope("rope").stretch)
    landed = int(np.argmax(np.array(heights) < 0.2502))
    bounce, pulls = max(heights[landed:]) - min(heights[landed:]), abs(sim.rope("rope").tension[-1])
    print(f"lands after {landed * 5} ms, then rises by {bounce:.0e} m; the rope pulls it with {pulls:.1e} N of 2943; energy at "
          f"most {above:.2f} J from the start; stretch {stretch:.0e}")  # fmt: skip
    assert 0 < landed < 50 and bounce < 1e-6 and pulls < 1e-6 and above <= 0 and stretch < 1e-9


def block():
    """A cube of 0.2 m as a mesh."""
    corners = np.array([[x, y, z] for x in (-0.1, 0.1) for y in (-0.1, 0.1) for z in (-0.1, 0.1)])
    quads = [[0, 1, 3, 2], [4, 6, 7, 5], [0, 4, 5, 1], [2, 3, 7, 6], [0, 2, 6, 4], [1, 5, 7, 3]]
    return sh.Mesh((corners, np.array([[q[0], q[k], q[k + 1]] for q in quads for k in (1, 2)])))


SHAPES = {
    "sphere": lambda: sh.Sphere(0.1),
    "box": lambda: sh.Box(0.2, 0.2, 0.2),
    "capsule": lambda: sh.Capsule(0.1, 0.2),
    "cylinder": lambda: sh.Cylinder(0.1, 0.2),
    "cone": lambda: sh.Cone(0.1, 0.2),
    "ellipsoid": lambda: sh.Ellipsoid(0.1, 0.15, 0.1),
    "mesh": block,
    "hills": None,
}


@pytest.mark.parametrize("kind", SHAPES)
def test_a_rope_falls_over_every_kind_of_shape(kind):
    scene = sh.Scene()
    scene.add_ground(-0.2)
    if kind == "hills":
        heights = 0.02 * np.cos(np.linspace(0, 20, 21))[:, None] * np.ones(5)
        scene.add_terrain(kind, heights, size=(0.6, 0.4))
    else:
        scene.add_body(kind, SHAPES[kind](), motion="fixed")
    z = {"capsule": 0.2, "hills": 0.02}.get(kind, 0.1) + 0.02
    scene.add_rope("rope", (-0.15, 0.01, z), (0.16, 0.02, z), segments=12, radius=0.008)
    sim = sh.Simulation(scene, 0.005, on_divergence="ignore")
    energies, deep, met = [sim.energy().total], 0.0, 0.0
    for _ in range(40):
        sim.step()
        energies.append(sim.energy().total)
        deep = max(deep, -sim.contacts().gap.min(initial=0.0))
        met = max(met, sim.contact_force("rope", kind)[2])
    lost, rise, stretch = energies[0] - min(energies), np.diff(energies).max(), sim.rope("rope").stretch
    print(f"{kind}: pressed by {met:.1f} N, {deep:.0e} m inside at most, stretch {stretch:.0e}, energy rises by at most "
          f"{rise:.0e} J a step of {lost:.2f} J lost; {sim.health().not_converged} of 40 steps did not converge")  # fmt: skip
    assert met > 1.0 and deep < 2e-3 and stretch < 1e-6 and rise < 6e-5


def test_points_of_a_rope_know_how_far_a_hull_is():
    scene = sh.Scene(gravity=(0, 0, 0), contact=True)
    scene.add_body("hull", block(), mass=50.0)  # a mesh that moves is its hull
    scene.add_rope("rope", (-0.104, 0.01, 0.109), (0.08, 0.02, 0.109), segments=6, radius=0.008)
    sim = sh.Simulation(scene, 0.005)
    sim.step()
    found = sim.contacts()
    p = sim.rope("rope").position
    out = np.maximum(np.abs(p) - 0.1, 0) * np.sign(p)
    far = np.linalg.norm(out, axis=1)
    off = np.abs(found.gap - (far - 0.008)).max(), np.abs(found.normal - out / far[:, None]).max()
    print(f"{len(found)} points, gaps {off[0]:.0e} m off, normals {off[1]:.0e}")
    assert len(found) == 7 and off[0] < 1e-9 and off[1] < 1e-6 and set(found.body_a) == {"hull"}


def test_what_is_said_of_a_rope_that_touches_is_checked():
    scene = sh.Scene()
    with pytest.raises(sh.SceneError, match=r"rope 'r'.*material.*'rubber'"):
        scene.add_rope("r", (0, 0, 0), (1, 0, 0), material="rubber")
    with pytest.raises(sh.SceneError, match=r"rope 'r'.*collide.*1"):
        scene.add_rope("r", (0, 0, 0), (1, 0, 0), collide=1)
    scene.add_ground()
    scene.add_rope("through", (0, 0, 0.02), (0.1, 0, 0.02), segments=2)
    scene.ignore("through", "world")
    sim = sh.Simulation(scene, 0.01)
    sim.run(0.2)
    assert sim.rope("through").position[:, 2].max() < -0.1 and len(sim.contacts()) == 0
