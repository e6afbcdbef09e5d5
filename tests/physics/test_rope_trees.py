"""Ropes beside joints in the direct solver: one solve, exact both ways."""

import numpy as np
import pytest

import sharnir as sh
from sharnir.core.spatial import frame_from_axes

DIRECT = {"solver": "direct"}
HOW = {"alone": {}, "sequential": {"solver": "sequential"}, "direct": DIRECT}


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
    alone, beside = pendulum(False, dt), pendulum(True, dt, solver="direct")
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
        return sh.Simulation(scene, dt, **DIRECT, **options)
    l, along, last = np.linalg.norm(bottom - top) / n, (bottom - top) / np.linalg.norm(bottom - top), "boom"
    m = 0.5 * l
    for i in range(n):
        inertia = (m * l * l / 12, m * l * l / 12, m * 1e-4 / 2)
        scene.add_body(f"r{i}", mass=m, inertia=inertia, position=top + (i + 0.5) * l * along, rotation=frame_from_axes(along))
        scene.add_joint(f"j{i}", sh.Spherical(), last, f"r{i}", position=top + i * l * along)
        last = f"r{i}"
    scene.add_joint("eye", sh.Spherical(), last, "load", position=bottom)
    return sh.Simulation(scene, dt, solver="direct", **options)


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
    assert apart < 5e-4 * way and bend < 1e-4 and np.linalg.norm(forces[0] - forces[1]) < 0.04 * np.linalg.norm(forces[1])


@pytest.mark.parametrize(("load", "dt"), [(50.0, 2e-3), (1000.0, 2e-3), (1000.0, 5e-3), (1000.0, 15e-3)])
def test_a_rope_that_goes_slack_and_jerks_brings_no_energy(load, dt):
    """The boom is let go: its tip falls faster than the load, the rope is pressed, gives way, hangs loose and snatches."""
    sim = boom("rope", sh.Revolute("y"), dt, load)
    start, scale, above, stretch, grades = sim.energy().total, 9.81 * (200 * 2 + load * 4), 0.0, 0.0, np.zeros(4, int)
    for _ in range(round(2.0 / (5 * dt))):
        grades += list(sim.step(5).fallbacks.values())
        above, stretch = max(above, (sim.energy().total - start) / scale), max(stretch, sim.rope("rope").stretch)
    print(f"{load:g} kg, {dt * 1e3:g} ms: at most {100 * above:.2f} % above the start, stretch {stretch:.1e}, grades {grades}")
    assert above < 0.05 and stretch < 1e-3 and sim.constraint_error().max() < 1e-6


def test_a_rope_through_friction_holds_still():
    """Friction of the boom's hinge holds boom and load: nothing moves by a bit once the load hangs straight."""
    scene = sh.Scene()
    scene.add_body("boom", sh.Box(4, 0.3, 0.3), mass=200.0, position=(2, 0, 0))
    scene.add_joint("hinge", sh.Revolute("y", friction=1e5), "world", "boom", position=(0, 0, 0))
    scene.add_body("load", sh.Box(0.5, 0.5, 0.5), mass=500.0, position=(4, 0, -2.25))
    scene.add_rope("rope", (4, 0, 0), (4, 0, -2), segments=10, radius=0.01, mass_per_length=0.5, attach=("boom", "load"))
    sim = sh.Simulation(scene, 5e-3, **DIRECT)
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
    sim = sh.Simulation(scene, 1e-3, solver="direct", worlds=3)
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
    sim = sh.Simulation(scene, 5e-3, worlds=2, **DIRECT)
    sim.rope("rope").reel_speed = np.array([0.3, 0.0])
    sim.run(3.0)
    length, down = sim.rope("rope").length, -np.asarray(sim.body("load").com)[:, 2]
    pulls = [t[-1] for t in sim.rope("rope").tension]
    print(f"paid out to {length} m, loads at {down} m, pulled by {np.round(pulls, 2)} N")
    assert np.allclose(length, [2.9, 2.0], atol=1e-9) and np.allclose(down, [3.05, 2.15], atol=1e-3)
    assert np.allclose(pulls, 50.025 * 9.81, rtol=5e-3)


# ---- ports: clamped ends, bodies tied between the ends, ropes from a rope to a body, rows beside the tree -------------------

LIGHT = {"segments": 20, "radius": 0.01, "mass_per_length": 0.5}
SLING = [(0, 0, 0), (1, 0, -0.5), (2, 0, 0)]


def tied(scene):
    """300 kg off its centre in the middle of a rope between walls."""
    scene.add_body("load", sh.Box(0.4, 0.3, 0.2), mass=300.0, position=(0.9, 0.1, -0.8))
    scene.add_rope("r", points=SLING, attach=("world", "world"), **LIGHT)
    scene.tie_rope("r", 10, "load")


def tied_loose(scene):
    """A body tied to a rope that nothing else holds: thrown, they turn about each other."""
    scene.add_body(
        "load", sh.Box(0.4, 0.3, 0.2), mass=5.0, position=(1, 0.1, -0.2), velocity=(0, 1, 2), angular_velocity=(1, 5, 2)
    )
    scene.add_rope("r", (0, 0, 0), (2, 0, 0.2), **LIGHT)
    scene.tie_rope("r", 10, "load")


def tied_twice(walls):
    """Two bodies tied to one rope, which walls hold or nothing does."""

    def scene_of(scene):
        points = np.array([(0, 0, 0), (0.7, 0, -0.5), (1.4, 0, -0.5), (2.1, 0, 0)])
        for name, at, side in (("a", points[1], 0.1), ("b", points[2], -0.1)):
            scene.add_body(name, sh.Box(0.3, 0.3, 0.2), mass=40.0, position=at + (0, side, -0.2), velocity=(0, 0, 0))
        scene.add_rope("r", points=points, attach=("world", "world") if walls else (None, None), **LIGHT)
        along = scene.ropes["r"].points
        for name, at in (("a", points[1]), ("b", points[2])):
            scene.tie_rope("r", int(np.argmin(np.linalg.norm(along - at, axis=1))), name)
        if not walls:
            scene.add_rope("q", along[0], (0, 0, -1), attach=("r", None), **LIGHT)

    scene_of.__name__ = "two tied between walls" if walls else "two tied, thrown"
    return scene_of


def on_a_rope(scene):
    """300 kg on a rope that hangs on another."""
    scene.add_body("load", sh.Box(0.3, 0.3, 0.3), mass=300.0, position=(1, 0, -1.35), velocity=(0, 0.5, 0))
    scene.add_rope("r", points=SLING, attach=("world", "world"), **LIGHT)
    speeds = np.linspace((0, 0, 0), (0, 0.5, 0), 21)
    scene.add_rope("q", (1, 0, -0.5), (1, 0, -1.2), attach=("r", "load"), velocity=speeds, **LIGHT)


def clamped(**stiffness):
    """Two bodies that spin in the air, joined by a rope clamped in both."""

    def scene_of(scene):
        scene.add_body("a", sh.Box(0.4, 0.3, 0.2), mass=5.0, position=(0, 0, 0), velocity=(0, 1, 0), angular_velocity=(1, 2, 3))
        scene.add_body("b", sh.Box(0.3, 0.3, 0.3), mass=3.0, position=(2, 0, 0), angular_velocity=(0, 3, -1))
        scene.add_rope("r", (0.2, 0.1, 0), (1.85, 0, 0), attach=("a", "b"), clamp=(True, True), **LIGHT, **stiffness)

    scene_of.__name__ = f"clamped, EI {stiffness['EI']:g}, GJ {stiffness['GJ']:g}"
    return scene_of


PORTS = [
    (tied, 5e-3), (tied, 15e-3), (tied_twice(True), 5e-3), (tied_twice(False), 5e-3), (tied_loose, 5e-3), (on_a_rope, 2e-3),
    (on_a_rope, 15e-3), (clamped(EI=2.0, GJ=1.0), 2e-3), (clamped(EI=500.0, GJ=300.0), 5e-3), (clamped(EI=0.0, GJ=0.5), 2e-3),
    (clamped(EI=0.5, GJ=0.0), 1e-3), (clamped(EI=0.0, GJ=0.0), 5e-3),
]  # fmt: skip


@pytest.mark.parametrize(("make", "dt"), PORTS, ids=lambda x: getattr(x, "__name__", str(x)))
def test_ports_move_as_ropes_without_joints_do(make, dt):
    """The rope's own solver eliminates the bodies into the ropes, the direct pass the ropes into the bodies."""
    sims = []
    for beside in (False, True):
        scene = sh.Scene()
        make(scene)
        if beside:
            scene.add_body("p", sh.Box(0.1, 0.1, 0.1), mass=1.0, position=(50, 0, 0))
            scene.add_joint("h", sh.Revolute("y"), "world", "p", position=(49.5, 0, 0))
        sims.append(sh.Simulation(scene, dt, **({"solver": "direct"} if beside else {})))
    alone, direct = sims
    bodies, ropes, apart, stretch = [n for n in alone.model.body_names if n != "world"], alone.model.ropes.names, 0.0, 0.0
    for _ in range(round(1.0 / (10 * dt))):
        alone.step(10)
        direct.step(10)
        apart = max([apart] + [np.abs(alone.body(n).com - direct.body(n).com).max() for n in bodies])
        apart = max([apart] + [np.abs(alone.rope(n).position - direct.rope(n).position).max() for n in ropes])
        stretch = max([stretch] + [direct.rope(n).stretch for n in ropes])
    print(f"{make.__name__}, {dt * 1e3:g} ms: {apart:.1e} m apart, stretch {stretch:.1e}")
    assert apart < 1.5e-8 and stretch < 1e-6


def crane(dt, worlds=1, loop=True, **stiffness):
    """All at once: a rope clamped on boom and jib, a load tied to it, a second rope from it to a hook; a loop, rod and spring."""
    scene, sling = sh.Scene(), np.array([(1.5, 0, -0.1), (3.3, 0, -1.6), (4.5, 0, -0.1)])
    scene.add_body("boom", sh.Box(3, 0.2, 0.2), mass=120.0, position=(1.5, 0, 0))
    scene.add_joint("hinge", sh.Revolute("y", friction=20.0), "world", "boom", position=(0, 0, 0))
    scene.add_body("jib", sh.Box(2, 0.2, 0.2), mass=60.0, position=(4, 0, 0))
    scene.add_joint("elbow", sh.Revolute("y", damping=20.0), "boom", "jib", position=(3, 0, 0))
    if loop:
        scene.add_joint("other", sh.Spherical(), "world", "boom", position=(0, 1, 0))
        scene.add_spring("spring", "boom", "jib", at_a=(0, 0, 0.1), at_b=(0.5, 0, 0.1), stiffness=500.0, damping=5.0)
    scene.add_body("load", sh.Box(0.3, 0.3, 0.3), mass=60.0, position=(3.3, 0, -1.75))
    scene.add_body("hook", sh.Box(0.2, 0.2, 0.2), mass=10.0, position=(2.4, 0.2, -2.0))
    rope = {"segments": 30, "radius": 0.01, "mass_per_length": 0.4, **(stiffness or {"EI": 0.02, "GJ": 0.02})}
    scene.add_rope("sling", points=sling, attach=("boom", "jib"), clamp=(True, True), **rope)
    points = scene.ropes["sling"].points
    scene.tie_rope("sling", int(np.argmin(np.linalg.norm(points - sling[1], axis=1))), "load")
    scene.add_rope("fall", points[8], (2.4, 0.2, -1.9), segments=10, radius=0.01, mass_per_length=0.4, attach=("sling", "hook"))
    return sh.Simulation(scene, dt, worlds=worlds, **DIRECT)


def port_speeds(sim):
    """How far the velocities of ropes and bodies are apart where they meet, m/s."""
    tie = sim.model.ropes.described[0].ties[0].at
    for rope, point, name in (("sling", 0, "boom"), ("sling", -1, "jib"), ("sling", tie, "load"), ("fall", -1, "hook")):
        body, x, v = sim.body(name), sim.rope(rope).position[point], sim.rope(rope).velocity[point]
        yield np.abs(v - body.velocity - np.cross(body.angular_velocity, x - body.com)).max()


@pytest.mark.parametrize("dt", [2e-3, 5e-3, 15e-3])
def test_a_crane_with_all_kinds_of_ports_brings_no_energy(dt):
    """Friction of the hinge does not hold: the boom falls, ropes go slack and snatch."""
    sim = crane(dt)
    start, above, stretch, gap, off, grades = sim.energy().total, 0.0, 0.0, 0.0, 0.0, np.zeros(4, int)
    for _ in range(round(1.5 / (5 * dt))):
        grades += list(sim.step(5).fallbacks.values())
        above, gap = max(above, sim.energy().total - start), max(gap, sim.constraint_error().max())
        stretch = max(stretch, sim.rope("sling").stretch, sim.rope("fall").stretch)
        off = max(off, *port_speeds(sim))
    lost = start - sim.energy().total
    print(f"{dt * 1e3:g} ms: {above:.1e} J above the start, {lost:.0f} lost, stretch {stretch:.1e}, gap {gap:.1e}, {grades}")
    print(f"at ports ropes are {off:.1e} m/s off the bodies")
    assert above < 1e-6 and stretch < 5e-6 and gap < 1e-8
    assert off < 0.05  # velocities agree in the mean of a step


def test_one_step_a_call_equals_many_with_ports_and_worlds_are_their_own():
    a, b, one = crane(2e-3, 2), crane(2e-3, 2), crane(2e-3)
    for sim in (a, b):
        sim.body("hook").velocity = np.array([(0, 0, 0), (0, 0.5, 0)])
    a.step(60)
    one.step(60)
    for _ in range(60):
        b.step()
    again = b.snapshot()
    assert all(np.array_equal(value, again[name]) for name, value in a.snapshot().items())
    own = np.array_equal(a.rope("fall").position[0], one.rope("fall").position)
    other = np.abs(np.asarray(a.body("hook").com)[1] - np.asarray(a.body("hook").com)[0]).max()
    print(f"the first world is that of one alone: {own}; the second is {other:.2f} m off")
    assert own and other > 0.03


def test_momentum_is_kept_by_ports():
    """Jointed bodies in free fall, with a rope clamped on two of them, a body tied to it and another on a rope from it.

    Angular momentum is kept as well as by ropes without joints: what stiffens and damps their thin elements takes a little of it.
    """
    scene = sh.Scene(gravity=(0, 0, 0))
    scene.add_body("a", sh.Box(1, 0.2, 0.2), mass=5.0, position=(0, 0, 0), angular_velocity=(0, 1, 0.5))
    scene.add_body("b", sh.Box(1, 0.2, 0.2), mass=4.0, position=(1, 0, 0), velocity=(0, 0.3, 0))
    scene.add_joint("ab", sh.Spherical(), "a", "b", position=(0.5, 0, 0))
    scene.add_body("c", sh.Box(0.2, 0.2, 0.2), mass=2.0, position=(0.5, 0, -0.9), velocity=(0.5, 0, 0.5))
    scene.add_body("d", sh.Box(0.2, 0.2, 0.2), mass=1.0, position=(0.2, 0.5, -0.9), velocity=(0, 1, -1))
    rope = {"segments": 20, "radius": 0.01, "mass_per_length": 0.3, "EI": 0.2, "GJ": 0.1}
    ends = [(-0.5, 0, -0.1), (0.5, 0, -0.8), (1.5, 0, -0.1)]
    scene.add_rope("r", points=ends, attach=("a", "b"), clamp=(True, True), **rope)
    points = scene.ropes["r"].points
    scene.tie_rope("r", 10, "c")
    scene.add_rope("q", points[6], (0.2, 0.5, -0.8), segments=8, radius=0.01, mass_per_length=0.3, attach=("r", "d"))
    scene.add_spring("s", "c", "d", stiffness=20.0)
    sim = sh.Simulation(scene, 2e-3, **DIRECT)
    sim.step()
    start, off = sim.momentum(), np.zeros(2)
    for _ in range(50):
        sim.step(10)
        now = sim.momentum()
        off = np.maximum(off, [np.abs(now.linear - start.linear).max(), np.abs(now.angular - start.angular).max()])
    scale = np.linalg.norm(start.linear), np.linalg.norm(start.angular)
    print(f"off by {off[0]:.1e} N·s of {scale[0]:.1f}, {off[1]:.1e} N·m·s of {scale[1]:.1f}")
    assert off[0] < 1e-12 and off[1] < 2e-3 * scale[1]


def hung_load(hinges=1, friction=0.0, spring=(2e5, 0.0), kind="rope", dt=2e-3):
    """100 kg on a boom's tip, by a rope or at once."""
    scene = sh.Scene()
    scene.add_body("boom", sh.Box(4, 0.3, 0.3), mass=20.0, position=(2, 0, 0))
    acting = {"spring": spring, "damping": 1e3} if spring else {"friction": friction}
    scene.add_joint("hinge", sh.Revolute("y", **acting), "world", "boom", position=(0, 0, 0))
    if hinges == 2:
        scene.add_joint("other", sh.Spherical(), "world", "boom", position=(0, 1, 0))
    side = 0.3 if spring else 0.0
    scene.add_body("load", sh.Box(0.5, 0.5, 0.5), mass=100.0, position=(4, side, -1.25))
    if kind == "rope":
        scene.add_rope("r", (4, 0, 0), (4, side, -1), segments=8, radius=0.005, mass_per_length=1e-3, attach=("boom", "load"))
    else:
        scene.add_joint("eye", sh.Spherical(), "boom", "load", position=(4, 0, 0))
    return sh.Simulation(scene, dt, **DIRECT)


def test_a_rope_beside_a_closed_loop_moves_as_without_it():
    """A second joint on the hinge's axis closes a loop and changes nothing."""
    one, two = hung_load(1), hung_load(2)
    one.run(1.0)
    two.run(1.0)
    apart, bend = np.abs(one.body("load").com - two.body("load").com).max(), one.joint("hinge").position
    print(f"{apart:.1e} m apart, hinge {bend:.4f} rad and {two.joint('hinge').position - bend:.1e} off")
    assert apart < 1e-10 and abs(two.joint("hinge").position - bend) < 1e-10


def test_a_rope_on_a_boom_that_a_rod_stays_swings_as_from_a_wall():
    sims = []
    for held in (False, True):
        scene, a = sh.Scene(), np.radians(20)
        down = np.array([np.sin(a), 0, -np.cos(a)])
        top = np.array([3.0, 0, 0])
        scene.add_body("load", sh.Box(0.4, 0.4, 0.4), mass=200.0, position=top + 1.2 * down)
        if held:
            scene.add_body("boom", sh.Box(3, 0.2, 0.2), mass=50.0, position=(1.5, 0, 0))
            scene.add_joint("hinge", sh.Revolute("y"), "world", "boom", position=(0, 0, 0))
            scene.add_joint("stay", sh.Distance(), "world", "boom", position=[(0, 0, 2), (2.5, 0, 0)])
        else:
            scene.add_body("beside", sh.Box(0.1, 0.1, 0.1), mass=1.0, position=(50, 0, 0))
            scene.add_joint("far", sh.Revolute("y"), "world", "beside", position=(49.5, 0, 0))
        scene.add_rope("r", top, top + down, attach=("boom" if held else "world", "load"), **LIGHT)
        sims.append(sh.Simulation(scene, 5e-3, **DIRECT))
    wall, boom = sims
    wall.run(1.5)
    boom.run(1.5)
    apart = np.abs(wall.body("load").com - boom.body("load").com).max()
    print(f"{apart:.1e} m apart, stay open by {boom.constraint_error().max():.1e} m")
    assert apart < 1.5e-8 and boom.constraint_error().max() < 1e-9


def test_a_rope_on_a_geared_boom_moves_as_on_a_heavier_one():
    """A flywheel geared 1 : 3 to the boom is nine times its inertia there."""
    sims, wheel = [], 4.0
    for geared in (False, True):
        scene = sh.Scene()
        scene.add_body("boom", mass=50.0, inertia=(60, 60.0 + (0 if geared else 9 * wheel), 60), position=(2, 0, 0))
        scene.add_joint("hinge", sh.Revolute("y"), "world", "boom", position=(0, 0, 0))
        if geared:
            scene.add_body("wheel", mass=10.0, inertia=(wheel, wheel, wheel), position=(0, 3, 2))
            scene.add_joint("shaft", sh.Revolute("y"), "world", "wheel", position=(0, 3, 2))
            scene.add_joint("gear", sh.Gear("shaft", "hinge", ratio=3.0))
        scene.add_body("load", sh.Box(0.3, 0.3, 0.3), mass=30.0, position=(4, 0, -1.15))
        scene.add_rope("r", (4, 0, 0), (4, 0, -1), attach=("boom", "load"), **LIGHT)
        sims.append(sh.Simulation(scene, 2e-3, **DIRECT))
    plain, geared = sims
    plain.run(0.5)
    geared.run(0.5)
    apart, turned = np.abs(plain.body("load").com - geared.body("load").com).max(), geared.joint("hinge").position
    print(f"{apart:.1e} m apart after {turned:.3f} rad, hinge {abs(plain.joint('hinge').position - turned):.1e}")
    assert apart < 1e-8 and turned > 0.3  # a turn by means is of second order in its angle


@pytest.mark.parametrize("friction", [1000.0, 4000.0, 4400.0])
def test_friction_yields_to_the_pull_of_a_rope(friction):
    """The boom alone needs 390 N·m to be held, with the load on its rope 4316: found stuck without it, the hinge was held by more
    than its friction.
    """
    rope, eye = hung_load(1, friction, None), hung_load(1, friction, None, "eye")
    rope.run(0.3)
    eye.run(0.3)
    a, b = rope.joint("hinge").position, eye.joint("hinge").position
    print(f"{friction:g} N·m: turned by {a:.6f} rad, with the load on the boom itself {b:.6f}")
    assert abs(a - b) < 2e-4 * b + 1e-12 and rope.joint("hinge").stuck == (friction > 4316)


@pytest.mark.parametrize("how", [None, "direct"])
def test_both_parts_of_a_cut_rope_stay_with_what_holds_them(how):
    """The part at the last end fell off its wall; on a jointed body it blew up. Both swing down like each other."""
    scene, ends = sh.Scene(), ("world", "world")
    if how:
        ends = ("a", "b")
        for name, x in zip(ends, (0, 2), strict=True):
            scene.add_body(name, sh.Box(0.2, 0.2, 0.2), mass=50.0, position=(x, 0, 0))
            scene.add_joint(f"j{name}", sh.Revolute("y", friction=1e5), "world", name, position=(x, 0, 0))
    scene.add_rope("r", (0, 0, 0), (2, 0, 0), attach=ends, segments=21, radius=0.01, mass_per_length=0.5)
    assert bool(how) == (not any("without any sag" in words for words in scene.notes))
    sim = sh.Simulation(scene, 2e-3, **HOW[how or "alone"])
    sim.rope("r").cut(10)
    start, worst = sim.energy().total, 0.0
    for _ in range(50):
        sim.step(10)
        x = sim.rope("r").position
        worst = max(worst, np.abs(x[:11] * (-1, 1, 1) + (2, 0, 0) - x[:10:-1]).max())
    print(f"{worst:.1e} m from the mirror image, at {x[10].round(2)}, energy {sim.energy().total - start:.2e} J")
    assert worst < 1e-9 and x[10, 0] < 0.0 and abs(sim.energy().total - start) < 0.1


@pytest.mark.parametrize("dt", [5e-3, 15e-3])
def test_velocities_and_energies_are_those_of_the_pose(dt):
    """As of a rope without joints: positions, velocities and accelerations are one motion, ropes and bodies move together.

    Velocities of points ring about it a little: a step closes rows by its means and keeps the energy of that.
    """
    sim = pendulum(True, dt, solver="direct")
    load, rope, start = sim.body("load"), sim.rope("rope"), sim.energy().total
    x, v, a, r, rv, e, ends = [], [], [], [], [], [], []
    for _ in range(round(4 / dt)):
        sim.step()
        x.append(load.com)
        v.append(load.velocity)
        a.append(load.acceleration)
        r.append(rope.position[15])
        rv.append(rope.velocity[15])
        e.append(sim.energy().total - start)
        ends.append(rope.velocity[-1] - load.velocity - np.cross(load.angular_velocity, rope.position[-1] - load.com))
    x, v, a, r, rv = (np.array(values) for values in (x, v, a, r, rv))
    off_v, off_r = (np.abs((p[2:] - p[:-2]) / (2 * dt) - u[1:-1]).max() for p, u in ((x, v), (r, rv)))
    off_a = np.abs((x[2:] - 2 * x[1:-1] + x[:-2]) / dt**2 - a[1:-1])[10:].max()
    energy, ends = np.abs(e).max() / (300 * 9.81 * 3.2 * (1 - np.cos(np.radians(30)))), np.abs(ends).max()
    print(f"velocity {off_v:.1e} and {off_r:.1e} m/s, acceleration {off_a:.1e} m/s² off differences, energy {energy:.1e}")
    assert off_v < 20 * dt**2 and off_r < 2 * dt and off_a < 10 * dt and energy < 1e-12 and ends < dt**2
    seldom = pendulum(True, dt, solver="direct")
    seldom.step(round(4 / dt))
    assert np.array_equal(seldom.rope("rope").position, rope.position)
    assert np.array_equal(seldom.rope("rope").velocity, rope.velocity)


def test_velocities_of_ropes_beside_joints_may_be_set():
    """A rope and a hinged body in free fall side by side: what is set is had, exact to rounding."""
    scene = sh.Scene()
    scene.add_body("p", sh.Box(0.1, 0.1, 0.1), mass=1.0, position=(5, 0, 0))
    scene.add_joint("h", sh.Revolute("y"), "world", "p", position=(4.5, 0, 0))
    scene.add_rope("r", (0, 0, 0), (2, 0, 0), **LIGHT)
    sim = sh.Simulation(scene, 5e-3, solver="direct")
    rope = sim.rope("r")
    sim.step(20)
    fallen = rope.velocity.mean(0)
    rope.velocity = rope.velocity + (1.0, 0, 0)
    sim.step(20)
    now = rope.velocity.mean(0)
    print(f"{fallen}, then {now} m/s")
    assert np.allclose(fallen, (0, 0, -9.81 * 0.1), atol=1e-9) and np.allclose(now, (1, 0, -9.81 * 0.2), atol=1e-9)


@pytest.mark.parametrize("reel", ["start", "end"])
def test_a_reel_on_a_rope_clamped_at_both_ends_pays_out_as_without_joints(reel):
    """Two worlds, one pays out and one takes in: the last slot moves along the arrays."""
    sims = []
    for beside in (False, True):
        scene = sh.Scene(gravity=(0, 0, -2.0))
        scene.add_body("a", sh.Box(0.4, 0.3, 0.2), mass=5.0, position=(0, 0, 0), angular_velocity=(0, 1, 0))
        scene.add_body("b", sh.Box(0.3, 0.3, 0.3), mass=3.0, position=(2, 0, 0), velocity=(0.3, 0, 0))
        rope = {**LIGHT, "EI": 0.2, "GJ": 0.1, "reel": reel, "longest": 2.5}
        scene.add_rope("r", (0.2, 0.1, 0), (1.85, 0, 0), attach=("a", "b"), clamp=(True, True), **rope)
        if beside:
            scene.add_body("p", sh.Box(0.1, 0.1, 0.1), mass=1.0, position=(50, 0, 0))
            scene.add_joint("h", sh.Revolute("y"), "world", "p", position=(49.5, 0, 0))
        sims.append(sh.Simulation(scene, 2e-3, worlds=2, **({"solver": "direct"} if beside else {})))
        sims[-1].rope("r").reel_speed = np.array([0.5, -0.3])
    alone, direct = sims
    alone.run(1.0)
    direct.run(1.0)
    apart = np.abs(np.asarray(alone.body("b").com) - np.asarray(direct.body("b").com)).max()
    segments, stretch = [len(x) - 1 for x in direct.rope("r").position], direct.rope("r").stretch.max()
    print(f"{apart:.1e} m apart, {segments} segments, {direct.rope('r').length.round(3)} m, stretch {stretch:.1e}")
    assert apart < 1e-7 and segments[0] > 22 and segments[1] < 18 and stretch < 1e-6


# ---- joint coordinates against maximal ones ---------------------------------------------------------------------------------


def arm(joint, EI=0.0, n=8):
    """Two bodies on a universal joint and another, ropes of all kinds on them: a tail, clamped if it bends, a stay, a load."""
    scene = sh.Scene()
    scene.add_body("upper", sh.Box(2, 0.3, 0.3), mass=20.0, position=(1, 0, 0))
    scene.add_joint("base", sh.Universal(("y", "z"), damping=2.0), "world", "upper", position=(0, 0, 0))
    scene.add_body("lower", sh.Box(1, 0.2, 0.2), mass=5.0, position=(2.5, 0, 0))
    scene.add_joint("joint", joint, "upper", "lower", position=(2, 0, 0))
    scene.add_body("load", sh.Box(0.3, 0.2, 0.2), mass=8.0, position=(2.6, 0.2, -1.1))
    rope = {"segments": n, "radius": 0.01, "mass_per_length": 1.0, "EI": EI, "GJ": EI}
    scene.add_rope("tail", (3, 0, 0), (3.8, 0.3, -0.4), attach=("lower", None), clamp=(EI > 0, False), **rope)
    scene.add_rope("stay", (1, 0.15, 0), (1, 2, 1), length=2.4, attach=("upper", "world"), **rope)
    scene.add_rope("fall", (2.5, 0, -0.1), (2.6, 0.2, -1.0), attach=("lower", "load"), clamp=(EI > 0, EI > 0), **rope)
    return scene


@pytest.mark.parametrize("EI", [0.0, 2.0])
@pytest.mark.parametrize("joint", [
    sh.Revolute("y"), sh.Revolute("x", spring=(50.0, 0.0), friction=3.0), sh.Prismatic("x", spring=(400.0, 0.0)), sh.Spherical(),
    sh.Cylindrical("x"), sh.Planar("y"), sh.Fixed(),
], ids=lambda j: type(j).__name__)  # fmt: skip
def test_ropes_on_an_arm_converge(joint, EI):
    """Against short steps, from which it differs by the second order; which elements go slack, and when, is left."""

    def ends(dt, **how):
        sim = sh.Simulation(arm(joint, EI), dt, **how)
        sim.run(0.2)
        return np.concatenate([sim.body("lower").com, sim.body("load").com, *(sim.rope(n).position[4] for n in ("tail", "stay"))])

    exact = ends(2.5e-4, **DIRECT)
    coarse, fine = ends(2e-3, **DIRECT), ends(1e-3, **DIRECT)
    off = [np.abs(x - exact).max() for x in (coarse, fine)]
    print(f"{type(joint).__name__}, EI {EI:g}: {off[0]:.1e}, {off[1]:.1e} m off at 2, 1 ms")
    assert off[0] < 3e-5 and off[1] < 2e-5 and (EI == 0 or 3.0 < off[0] / off[1] < 7.0)


def two_ropes(beside):
    """Two bodies that turn in the air, joined by two ropes clamped in both: more than the ropes' own elimination takes."""
    scene = sh.Scene(gravity=(0, 0, 0))
    scene.add_body("a", sh.Box(0.4, 0.3, 0.2), mass=5.0, position=(0, 0, 0), angular_velocity=(1, 2, 3))
    scene.add_body("b", sh.Box(0.3, 0.3, 0.3), mass=3.0, position=(2, 0, 0), angular_velocity=(0, 3, -1))
    for name, y in (("r", -0.1), ("q", 0.1)):
        stiff = {"EI": 1.0, "GJ": 1.0, "clamp": (True, True)}
        scene.add_rope(name, (0.2, y, 0), (1.85, y, 0), attach=("a", "b"), **{**LIGHT, "segments": 15}, **stiff)
    if beside:
        scene.add_body("p", sh.Box(0.1, 0.1, 0.1), mass=1.0, position=(50, 0, 0))
        scene.add_joint("h", sh.Revolute("y"), "world", "p", position=(49.5, 0, 0))
    return scene


def test_what_the_ropes_own_solver_refuses_the_others_take_without_joints_too():
    alone, beside = sh.Simulation(two_ropes(False), 2e-3), sh.Simulation(two_ropes(True), 2e-3, **DIRECT)
    start = alone.momentum()
    alone.run(0.5)
    beside.run(0.5)
    apart = np.abs(alone.body("b").com - beside.body("b").com).max()
    drift = np.abs(alone.momentum().linear - start.linear).max()
    print(f"{apart:.1e} m apart, momentum off by {drift:.1e} N·s, stretch {alone.rope('r').stretch:.1e}")
    assert apart < 1e-12 and drift < 1e-12 and alone.rope("r").stretch < 1e-6
    with pytest.raises(sh.SceneError, match=r"rope 'r' is part of a loop .* solver='direct'"):
        sh.Simulation(two_ropes(True), 2e-3, solver="sequential")


def stiff(beside, GJ, **options):
    """A rope that resists bending, from the world or from a heavy body on a ball joint."""
    scene, hold = sh.Scene(), "world"
    if beside:
        hold = scene.add_body("load", sh.Box(0.4, 0.3, 0.5), mass=67.0, position=(0.4, 0.0, -0.2))
        scene.add_joint("ball", sh.Spherical(), "world", "load", position=(0, 0, 0))
    rope = {"segments": 14, "radius": 0.01, "mass_per_length": 0.035, "EI": 10.0, "GJ": GJ}
    scene.add_rope("rope", (0.5, 0.1, -0.2), (1.5, 1.2, -1.4), attach=(hold, None), **rope)
    return sh.Simulation(scene, 15e-3, **options)


@pytest.mark.parametrize("how", ["alone", "sequential"])
def test_a_rope_that_bends_stiffly_and_twists_freely_takes_plain_steps(how):
    """Nothing but the inertia of thin elements is in the way of its twist: passes parted, and small steps took the energy."""
    options = {"alone": {}, "sequential": {"solver": "sequential"}}[how]
    free, other = (stiff(how != "alone", GJ, **options) for GJ in (0.0, 7.0))
    hard = 0
    for _ in range(60):
        hard += sum(n for grade, n in free.step().fallbacks.items() if grade != "relative")
        other.step()
    apart = np.abs(free.rope("rope").position - other.rope("rope").position).max()
    energy = free.energy().total - other.energy().total
    print(f"{how}: {hard} of 60 steps not plain, {apart:.1e} m and {energy:.1e} J from a rope that resists twist")
    assert hard == 0 and apart < 1e-4 and abs(energy) < 1e-3


def bracket(iterations=40):
    """A stiff, bent rope from a heavy free body to a light one that slides on a plane, clamped there: sweeps do not close it."""
    scene, EI = sh.Scene(), 100.0
    scene.add_body("slider", sh.Box(0.4, 0.3, 0.5), mass=0.5, position=(0, 0, 0))
    scene.add_joint("plane", sh.Planar("y"), "world", "slider", position=(0, 0, 0))
    scene.add_body("load", sh.Box(0.2, 0.3, 0.4), mass=50.0, position=(0.5, 0.4, -0.1))
    rope = {"segments": 14, "radius": 0.01, "mass_per_length": 0.6, "EI": EI, "GJ": 0.7 * EI}
    scene.add_rope("rope", (0.5, 0.4, -0.1), (0, 0, 0), length=0.74, attach=("load", "slider"), clamp=(False, True), **rope)
    return sh.Simulation(scene, 15e-3, tolerances=sh.Tolerances(iterations=iterations), solver="sequential")


@pytest.mark.parametrize("iterations", [2, 4, 40])
def test_bending_at_velocity_level_takes_energy(iterations):
    """Passes that repeat themselves between sweeps meet the moments of the end of the step, not those of its start."""
    sim = bracket(iterations)
    start, top, hard, kinetic = sim.energy().total, 0.0, 0, 0.0
    for _ in range(60):
        hard += sim.step().fallbacks["velocity"]
        top, kinetic = max(top, sim.energy().total - start), max(kinetic, sim.energy().kinetic)
    print(f"{iterations} sweeps: {hard} of 60 steps at velocity level, {top:.2g} J gained beside {kinetic:.3g} J")
    assert hard > 0 and top < 0.01 * kinetic


def test_a_snapshot_goes_on_bit_for_bit_where_sweeps_find_ropes_hard():
    """Whether the last step was hard, and the tensions of late, are part of the state."""
    sim, other, hard = bracket(), bracket(), 0
    for _ in range(10):
        sim.step(3)
        other.restore(sim.snapshot())
        grades = dict(sim.step(2).fallbacks)
        assert dict(other.step(2).fallbacks) == grades
        hard += grades["damped"] + grades["velocity"]
        a, b = sim.snapshot(), other.snapshot()
        assert all(np.array_equal(a[k], b[k]) for k in a if k not in ("state.q", "state.qd")), grades
    print(f"{hard} of 20 steps were hard")
    assert hard > 0


def winch(how, reel):
    """A load on a rope that is reeled in from the world, or from an arm on a spring."""
    scene, hold = sh.Scene(), "world"
    if how != "alone":
        hold = scene.add_body("arm", sh.Box(0.5, 0.1, 0.1), mass=5.0, position=(0.25, 0, 0))
        scene.add_joint("hinge", sh.Revolute("y", spring=(500.0, 0.0), damping=20.0), "world", "arm", position=(0, 0, 0))
    scene.add_body("load", sh.Sphere(0.1), mass=3.0, position=(0.5, 0, -2.1))
    way = 1 if reel == "start" else -1
    ends, attach = [(0.5, 0, 0), (0.5, 0, -2)][::way], (hold, "load")[::way]
    scene.add_rope("rope", *ends, attach=attach, segments=8, radius=0.005, mass_per_length=0.1, reel=reel, longest=4.0)
    return sh.Simulation(scene, 5e-3, **HOW[how])


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("reel", ["start", "end"])
@pytest.mark.parametrize("torn", [0, 1, 3])
def test_a_reel_takes_in_up_to_a_tear_and_does_not_mend_it(torn, reel, how):
    sim = winch(how, reel)
    rope = sim.rope("rope")
    sim.step(20)
    at = rope.position[0 if reel == "start" else -1]
    rope.cut(torn if reel == "start" else -1 - torn)
    rope.reel_speed = -0.5
    sim.step(200)
    left = rope.length - 0.25 * (8 - torn)
    print(f"{how}, {reel}: torn {torn} from the reel: {left:.3f} m before it, load fell to {sim.body('load').com[2]:.1f} m")
    assert rope.broken.sum() == 1 and np.all(at - rope.position[0 if reel == "start" else -1] < 0.2)
    assert abs(left - (0.0 if torn == 0 else 0.025 if torn == 1 else 0.25)) < 0.01 and sim.body("load").com[2] < -6.0


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("speed", [-20.0, -200.0])
def test_a_reel_faster_than_its_segments_leaves_no_negative_length(speed, how):
    sim = winch(how, "start")
    sim.rope("rope").reel_speed = speed
    stretch = 0.0
    for _ in range(60):
        sim.step()
        stretch = max(stretch, sim.rope("rope").stretch)
    print(f"{how}: {speed:g} m/s, {sim.rope('rope').length:.3f} m left, stretch {stretch:.1e}")
    assert sim.rope("rope").length == pytest.approx(0.025, abs=1e-3) and stretch < 1e-4


def test_a_rope_tied_to_the_body_at_its_end_is_a_loop():
    """The rope's own elimination would need the body's motion before it is known; ports do not."""
    scene = sh.Scene()
    scene.add_body("ring", sh.Box(0.3, 0.2, 0.25), mass=2.0, position=(1, 0, 0))
    points = [(1.1, 0, 0), (1.3, 0, -0.5), (1.0, 0.1, -0.2), (0.5, 0, 0.2), (0, 0, 0)]
    scene.add_rope("rope", points=points, segments=12, radius=0.005, mass_per_length=0.1, attach=("ring", "world"))
    scene.tie_rope("rope", 5, "ring")
    alone = sh.Simulation(scene, 5e-3)
    scene.add_body("p", sh.Box(0.1, 0.1, 0.1), mass=1.0, position=(5, 0, 0))
    scene.add_joint("h", sh.Revolute("y"), "world", "p", position=(4.5, 0, 0))
    with pytest.raises(sh.SceneError, match="loop"):
        sh.Simulation(scene, 5e-3, solver="sequential")
    beside = sh.Simulation(scene, 5e-3, **DIRECT)
    start, stretch = [sim.energy().total for sim in (alone, beside)], 0.0
    for _ in range(100):
        alone.step()
        beside.step()
        stretch = max(stretch, alone.rope("rope").stretch, beside.rope("rope").stretch)
    gain = [sim.energy().total - e for sim, e in zip((alone, beside), start, strict=True)]
    apart = np.abs(alone.body("ring").com - beside.body("ring").com).max()
    print(f"{apart:.1e} m from the rope alone, stretch {stretch:.1e}, {gain[0]:.2f} and {gain[1]:.2f} J")
    assert apart < 0.1 and stretch < 1e-4 and max(gain) < 0.1


def test_a_part_of_a_step_that_is_not_a_number_is_made_again():
    """A rod across a cross joint that is straight: passes overflow, and the largest gap passes over what is not a number."""
    scene = sh.Scene()
    at, other = np.array([0.458, -0.3, -1.058]), np.array([0.854, -0.483, -2.185])
    scene.add_body("slider", sh.Box(0.186, 0.377, 0.501), mass=0.73, position=at)
    scene.add_body("hung", sh.Box(0.415, 0.577, 0.301), mass=0.14, position=other)
    scene.add_joint("slide", sh.Prismatic("x", friction=2.7), "world", "slider", position=(0, 0, 0))
    scene.add_joint("cross", sh.Universal(("y", "z")), "slider", "hung", position=(at + other) / 2)
    scene.add_joint("rod", sh.Distance(), "slider", "hung", position=(at, other))
    scene.add_joint("ball", sh.Spherical(), "slider", "world", position=at / 2)
    rope = {"segments": 4, "radius": 0.01, "mass_per_length": 0.4, "EI": 0.1, "GJ": 0.0}
    scene.add_rope("rope", (0.385, -0.325, -0.861), (0.47, -0.241, 0.115), attach=("slider", None), **rope)
    sim = sh.Simulation(scene, 1e-3, solver="direct")
    start = sim.energy().total
    grades = sim.step(600).fallbacks
    print(
        f"{grades['divided']} of 600 steps in parts, {sim.energy().total - start:.2f} J, gap {sim.constraint_error().max():.1e}"
    )
    assert sim.energy().total < start + 0.01 and sim.constraint_error().max() < 1e-6
