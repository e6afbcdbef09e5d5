"""Cables over sheaves: mechanical advantage, capstan friction, heavy wheels, winches, slack and snatch, against closed forms."""

import math

import numpy as np
import pytest

import sharnir as sh

G = 9.81
SOLVERS = ("direct", "sequential")
BOX = sh.Box(0.1, 0.1, 0.1)
SWEEPS = {
    "direct": {},
    "sequential": {"tolerances": sh.Tolerances(iterations=200)},
}  # that meet its tolerance from a standing start


def show(what, error, allowed):
    print(f"{what}: {error:.3g} (allowed {allowed:g})")
    assert error <= allowed, f"{what}: {error:.3g} > {allowed:g}"


def weight(scene, name, x, z, mass):
    """A weight on a vertical guide."""
    scene.add_body(name, BOX, mass=mass, position=(x, 0, z))
    scene.add_joint(f"{name} guide", sh.Prismatic("z"), scene.world, name, position=(x, 0, z))


def tackle(n, load, haul):
    """A block and tackle: n parts carry the load, the last runs over the crown to the hauling weight."""
    scene, R = sh.Scene(), 0.05
    weight(scene, "load", n * R, 1.0, load)
    weight(scene, "haul", (2 * n + 1) * R, 2.0, haul)
    path = [(scene.world, (R, 0, 3.0)) if n % 2 == 0 else ("load", (R - n * R, 0, 0.3))]
    for k in range(n):
        x = (2 * k + 2) * R
        if (n - k) % 2 == 0:
            path.append(sh.Sheave("load", R, at=(x - n * R, 0, 0.3), axis="-y"))
        else:
            path.append(sh.Sheave(scene.world, R, at=(x, 0, 3.0), axis="y"))
    scene.add_cable("rope", [*path, ("haul", (0, 0, 0.05))])
    return scene


@pytest.mark.parametrize("solver", SOLVERS)
def test_mechanical_advantage_is_exact(solver):
    """Atwood's machine with a tackle: a = g (n m − M)/(n² m + M) of the load, one tension in all parts."""
    worst = 0.0
    for n in (2, 3, 4, 6, 8):
        load, haul = 10.0 * n, 11.0
        sim = sh.Simulation(tackle(n, load, haul), dt=0.005, solver=solver)
        sim.run(0.1)
        a = G * (n * haul - load) / (n * n * haul + load)
        v = sim.body("load").velocity[2]
        tension = load * (G + a) / n
        worst = max(worst, abs(v / (a * 0.1) - 1), *abs(sim.cable("rope").tension / tension - 1), abs(sim.cable("rope").slack))
    show(f"mechanical advantage 2:1 … 8:1, {solver}", worst, 1e-6)


@pytest.mark.parametrize("solver", SOLVERS)
def test_atwoods_machine_with_a_heavy_sheave(solver):
    """a = g (m₁ − m₂)/(m₁ + m₂ + I/R²); tensions of both sides differ by what turns the wheel."""
    scene, R, inertia, m1, m2 = sh.Scene(), 0.2, 0.5, 3.0, 2.0
    scene.add_body("wheel", mass=1.0, inertia=(1.0, inertia, 1.0), position=(0, 0, 3))
    scene.add_joint("hinge", sh.Revolute("y"), scene.world, "wheel", position=(0, 0, 3))
    weight(scene, "a", -R, 1.0, m1)
    weight(scene, "b", R, 1.5, m2)
    scene.add_cable("rope", ["a", sh.Sheave("wheel", R, grips=True), "b"])
    sim = sh.Simulation(scene, dt=0.001, solver=solver, **SWEEPS[solver])
    a = G * (m1 - m2) / (m1 + m2 + inertia / R**2)
    worst = 0.0
    for _ in range(300):
        sim.step()
        v = -sim.body("a").velocity[2]
        wanted = np.array([m1 * (G - a), m2 * (G + a)])
        turned = -sim.joint("hinge").velocity * R
        worst = max(worst, abs(v / (a * sim.time) - 1), abs(turned / (a * sim.time) - 1))
        worst = max(worst, *abs(sim.cable("rope").tension / wanted - 1))
    show(f"Atwood with a heavy sheave, {solver}", worst, 1e-6)


@pytest.mark.parametrize("solver", SOLVERS)
def test_capstan_friction(solver):
    """Over two posts that do not turn: holds to the bit below e^(μφ), slides with exactly that ratio above it."""

    def posts(mass):
        scene = sh.Scene()
        weight(scene, "a", -0.1, 1.0, 2.0)
        weight(scene, "b", 1.1, 1.0, mass)
        first = sh.Sheave(scene.world, 0.1, at=(0, 0, 2), friction=0.3)
        second = sh.Sheave(scene.world, 0.1, at=(1, 0, 2), friction=0.2)
        scene.add_cable("rope", [("a", (0, 0, 0.05)), first, second, ("b", (0, 0, 0.05))])
        return sh.Simulation(scene, dt=0.005, solver=solver)

    quarter = math.pi / 2
    ratio = math.exp(0.5 * quarter)
    sim = posts(2.0 * ratio * 0.98)
    sim.run(1.0)
    show(f"holds below the bound, {solver}: moved", abs(sim.body("b").position[2] - 1.0), 1e-9)
    for way, mass in ((1, 2.0 * ratio * 1.3), (-1, 2.0 / ratio / 1.3)):
        sim = posts(mass)
        sim.run(0.3)
        t = sim.cable("rope").tension
        bounds = np.exp(way * np.array([0.3, 0.2]) * quarter)
        show(f"e^μφ of each post, {solver}", float(max(abs(t[1:] / t[:-1] / bounds - 1))), 1e-2)
        k = ratio**way
        a = G * (mass - 2.0 * k) / (mass + 2.0 * k)
        show(f"slides as the ratio says, {solver}", abs(sim.body("b").velocity[2] / (-a * 0.3) - 1), 1e-3)
        show(f"length is kept, {solver}", abs(sim.cable("rope").slack), 1e-9)


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_winch_lifts_as_its_motor_says(solver):
    """Torque τ at the drum: (τ/R − m g)/(m + I/R²); its tension turns the drum back where the motor is off; a brake holds."""
    scene, R, inertia, m = sh.Scene(), 0.15, 0.08, 20.0
    scene.add_body("drum", mass=5.0, inertia=(1, inertia, 1), position=(0, 0, 3))
    hinge = sh.Revolute("y", drive=sh.Servo(torque=-45.0), friction=0.0)
    scene.add_joint("hinge", hinge, scene.world, "drum", position=(0, 0, 3))
    weight(scene, "load", R, 1.0, m)
    scene.add_cable("rope", [sh.Drum("drum", R), ("load", (0, 0, 0.05))])
    sim = sh.Simulation(scene, dt=0.002, solver=solver, **SWEEPS[solver])
    before = sim.cable("rope").length
    sim.run(0.2)
    a = (45.0 / R - m * G) / (m + inertia / R**2)
    show(f"winch, {solver}", abs(sim.body("load").velocity[2] / (a * 0.2) - 1), 1e-3)
    show(f"rope is taken up, {solver}", abs(before - sim.cable("rope").length + R * sim.joint("hinge").position), 1e-9)
    sim.joint("hinge").drive.torque = 0.0
    sim.joint("hinge").friction = 200.0
    sim.run(0.2)
    held = sim.body("load").position[2]
    sim.run(0.5)
    show(f"the brake holds, {solver}: moved", abs(sim.body("load").position[2] - held), 1e-9)


@pytest.mark.parametrize("solver", SOLVERS)
def test_slack_and_snatch_give_no_energy(solver):
    """A load falls into a slack cable over a sheave at 15 ms: energy never rises, and it hangs at the cable's length."""
    scene = sh.Scene()
    scene.add_body("load", BOX, mass=5.0, position=(0.5, 0, 2), velocity=(0.4, 0.3, 0))
    scene.add_body("other", BOX, mass=8.0, position=(-1.1, 0, 1))
    scene.add_joint("stop", sh.Prismatic("z", limit=(0.0, 2.0)), scene.world, "other", position=(-1.1, 0, 1))
    sheave = sh.Sheave(scene.world, 0.1, at=(-1.0, 0, 3))
    second = sh.Sheave(scene.world, 0.1, at=(0.4, 0, 3))
    path = [("other", (0, 0, 0.05)), sheave, second, ("load", (0, 0, 0.05))]
    scene.add_cable("rope", path, length=5.0)
    sim = sh.Simulation(scene, dt=0.015, solver=solver, **SWEEPS[solver])
    start = least = sim.energy().total
    rises, gap, snatches, was = 0.0, 0.0, 0, 0.0
    for _ in range(300):
        sim.step()
        now = sim.energy().total
        rises, least = max(rises, now - least), min(least, now)
        gap = max(gap, -sim.cable("rope").slack)
        pull = sim.cable("rope").tension[0]
        snatches, was = snatches + (was == 0 and pull > 0), pull
    print(f"energy {start:.4f} → {now:.4f} J, {snatches} snatches")
    assert snatches > 0
    show(f"energy gained, of {abs(start):.0f} J, {solver}", rises / abs(start), 1e-3 if solver == "sequential" else 1e-5)
    show(f"longer than it is, m, {solver}", gap, 1e-9 if solver == "direct" else 3e-5)


@pytest.mark.parametrize("solver", SOLVERS)
def test_the_hook_of_a_trolley_crane_stays_level(solver):
    """Fixed at the jib's tip, over the trolley down to the hook and back, to its root: the trolley moves, the hook does not."""
    scene, r = sh.Scene(), 0.1
    scene.add_body("trolley", sh.Box(0.5, 0.2, 0.2), mass=100.0, position=(3, 0, 10))
    rail = sh.Prismatic("x", drive=sh.Servo(position=0.0, kp=4e4, kd=1e4))
    scene.add_joint("rail", rail, scene.world, "trolley", position=(3, 0, 10))
    scene.add_body("hook", sh.Box(0.2, 0.2, 0.3), mass=500.0, position=(3, 0, 5))
    reeving = [
        (scene.world, (8, 0, 10 + r)), sh.Sheave("trolley", r, at=(0.2, 0, 0), axis="-y"), sh.Sheave("hook", 0.1),
        sh.Sheave("trolley", r, at=(-0.2, 0, 0), axis="-y"), (scene.world, (0, 0, 10 + r)),
    ]  # fmt: skip
    scene.add_cable("hoist", reeving)
    sim = sh.Simulation(scene, dt=0.005, solver=solver)
    sim.run(0.5)
    start = sim.body("hook").position[2]
    low = high = start
    for k in range(600):
        sim.joint("rail").drive.position = 2.0 * min(1.0, k * 0.005 / 2.5)
        sim.step()
        z = sim.body("hook").position[2]
        low, high = min(low, z), max(high, z)
    print(f"trolley moved {sim.joint('rail').position:.3f} m, hook {low - start:.4f} … {high - start:.4f} m")
    assert abs(sim.joint("rail").position - 2.0) < 0.05
    show(f"tension of a part is half the load, {solver}", abs(sim.cable("hoist").tension[1] / (250 * G) - 1), 0.1)
    show(f"length, {solver}", abs(sim.cable("hoist").slack), 1e-9 if solver == "direct" else 2e-7)
    assert high - low < 0.15, "the load swings, no more"


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_rope_hangs_below_a_cable(solver):
    """Hook, rope and load against a counterweight: a = g (M − m)/(M + m); dropped into a slack cable no energy is gained."""

    def scene(slack):
        out = sh.Scene()
        out.add_body("hook", BOX, mass=5.0, position=(0.1, 0, 2))
        out.add_body("load", BOX, mass=20.0, position=(0.1, 0, 0.7))
        weight(out, "counter", -0.1, 1.0, 40.0)
        path = [("hook", (0, 0, 0.05)), sh.Sheave(out.world, 0.1, at=(0, 0, 3), axis="-y"), ("counter", (0, 0, 0.05))]
        out.add_cable("cable", path, length=0.95 + 1.95 + 0.1 * math.pi + slack)
        out.add_rope(
            "rope", (0.1, 0, 1.95), (0.1, 0, 0.75), segments=6, mass_per_length=0.2, radius=0.01, attach=("hook", "load")
        )
        return sh.Simulation(out, 0.005, solver=solver)

    sim, m, M = scene(0.0), 25.24, 40.0
    sim.run(0.2)
    a = G * (M - m) / (M + m)
    show(f"rope below a cable, {solver}", abs(sim.body("load").velocity[2] / (a * 0.2) - 1), 1e-6)
    show(f"tension, {solver}", abs(sim.cable("cable").tension[0] / (m * (G + a)) - 1), 1e-6)
    sim, least, rises = scene(0.3), np.inf, 0.0
    for _ in range(100):
        sim.step()
        now = sim.energy().total
        rises, least = max(rises, now - least), min(least, now)
    show(f"energy gained in a snatch, J, {solver}", rises, 1e-4 if solver == "direct" else 0.1)
    assert sim.cable("cable").tension[0] > 0
