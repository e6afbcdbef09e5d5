"""The direct step: energy, momenta and ledgers at every step, whatever the masses and the step."""

from contextlib import suppress

import numpy as np
import pytest
from mechanisms import kinds
from test_direct import KINDS, chain, double_alone, one_thread_is_slow, row_speeds, tree

import sharnir as sh
from sharnir.core.spatial import quat_exp

pytestmark = [one_thread_is_slow, double_alone]


# ---- mechanisms at random ---------------------------------------------------------------------------------------------------


def random_scene(seed, floating, loops, springs):
    """Two to eight bodies, masses within two decades, joints of any kind either way round; rods, springs, more joints beside."""
    rng = np.random.default_rng(seed)
    scene, places = sh.Scene(gravity=(0, 0, 0) if floating else (0, 0, -9.81)), []
    for i in range(int(rng.integers(2, 9))):
        mass, size = float(10 ** rng.uniform(-1, 1)), rng.uniform(0.1, 0.4, 3)
        base = None if i == 0 else int(rng.integers(max(0, i - 3), i))
        middle = np.zeros(3) if base is None else places[base]
        places.append(middle + 0.5 * rng.normal(size=3))
        pose = {"com": 0.1 * rng.normal(size=3), "position": places[i], "rotation": quat_exp(rng.normal(size=3))}
        if floating and base is None:
            pose |= {"velocity": rng.normal(size=3), "angular_velocity": 2 * rng.normal(size=3)}
        scene.add_body(f"b{i}", sh.Box(*size), mass=mass, **pose)
        if floating and base is None:
            continue
        known = kinds(rng)
        make = known[rng.integers(1, len(known))]
        laws = {"spring": (float(10 ** rng.uniform(0, 3)), 0.0)} if springs and make().v_size and rng.random() < 0.7 else {}
        pair = ("world" if base is None else f"b{base}", f"b{i}")
        at = (places[i] + middle) / 2 + 0.05 * rng.normal(size=3)
        scene.add_joint(
            f"j{i}",
            make(**laws),
            *(pair if rng.random() < 0.5 else pair[::-1]),
            position=at,
            rotation=quat_exp(rng.normal(size=3)),
        )
    for k in range(loops):
        i, j = rng.choice(len(places), 2, replace=False)
        kind = rng.random()
        if kind < 0.4:
            ends = [places[i] + 0.1 * rng.normal(size=3), places[j] + 0.1 * rng.normal(size=3)]
            scene.add_joint(f"rod{k}", sh.Distance(), f"b{i}", f"b{j}", position=ends)
        elif kind < 0.7:
            ends = {"at_a": 0.1 * rng.normal(size=3), "at_b": 0.1 * rng.normal(size=3)}
            scene.add_spring(f"s{k}", f"b{i}", f"b{j}", stiffness=float(10 ** rng.uniform(0, 3)), rest=0.3, **ends)
        else:
            joint = sh.Joint("x y z rx") if rng.random() < 0.5 else sh.PointOnLine("x")
            scene.add_joint(f"l{k}", joint, f"b{i}", f"b{j}", position=(places[i] + places[j]) / 2)
    return scene, rng


def throw(scene, dt, rng):
    sim = sh.Simulation(scene, dt, solver="direct")
    for name, made in scene.joints.items():
        if made.joint.v_size and name.startswith("j"):
            speed = 1.5 * rng.normal(size=made.joint.v_size)
            with suppress(sh.SimulationError):  # on a loop that cannot move so
                sim.joint(name).velocity = speed if len(speed) > 1 else float(speed[0])
    return sim


def passive(seeds, steps, kept, apart):
    worst, gap, moved, divided, count = 0.0, 0.0, 0.0, 0, 0
    for seed in seeds:
        dt, floating = (1e-3, 5e-3, 15e-3)[seed % 3], seed % 4 == 0
        try:
            scene, rng = random_scene(seed, floating, seed % 3 if seed % 2 else 0, seed % 5 < 2)
            sim = throw(scene, dt, rng)
        except sh.SceneError:
            continue  # a loop that cannot be assembled
        sim.step()
        start, momentum, count = sim.energy(), sim.momentum(), count + 1
        scale = start.kinetic + 1e-3
        size = np.linalg.norm(momentum.linear) + 1e-3, np.linalg.norm(momentum.angular) + 1e-3
        for k in range(steps):
            divided += sim.step().fallbacks["divided"]
            e = sim.energy()
            scale = max(scale, e.kinetic, abs(e.potential - start.potential))
            worst = max(worst, abs(e.total - start.total) / scale)
            assert worst < 2e-9, f"scene {seed}, step {k}: energy {worst:.1e} of its scale"
            gap = max(gap, sim.constraint_error().max(initial=0.0))
            if floating:
                now = sim.momentum()
                moved = max(moved, np.abs(now.linear - momentum.linear).max() / size[0])
                moved = max(moved, np.abs(now.angular - momentum.angular).max() / size[1])
    print(f"{count} scenes × {steps} steps at 1, 5, 15 ms: energy {worst:.1e} of its scale at every step, momenta {moved:.1e}, ")
    print(f"gap {gap:.1e} m, {divided} steps divided")
    assert gap < apart and moved < kept


@pytest.mark.parametrize("first", [0, *(pytest.param(k, marks=pytest.mark.slow) for k in range(25, 300, 25))])
def test_random_passive_mechanisms_keep_energy_and_momenta(first):
    passive(range(first, first + 25), 150, kept=3e-10, apart=3e-9)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 300, 50))
def test_random_passive_mechanisms_for_thousands_of_steps(first):
    passive(range(first, first + 50), 3000, kept=1e-8, apart=1e-8)


# ---- chains, heavy loads ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dt", [1e-3, 1e-2])
def test_every_joint_type_does_no_work(kind, dt):
    sim = tree(KINDS[kind], dt)
    sim.step()
    start, worst, scale, across = sim.energy().total, 0.0, 0.0, []
    for k in range(300):
        sim.step()
        e = sim.energy()
        scale = max(scale, e.kinetic)
        worst = max(worst, abs(e.total - start))
        if k % 30 == 0:
            across.append(row_speeds(sim))
    gap = sim.constraint_error().max(initial=0.0)
    print(f"{kind}, {dt * 1e3:g} ms: energy within {worst / scale:.1e}; speeds across joints {max(across):.1e}, gap {gap:.0e}")
    assert worst / scale < 1e-10 and gap < 1e-12


@pytest.mark.parametrize(
    ("n", "seconds", "most"), [(30, 10.0, 0.0), (100, 3.0, 0.10), pytest.param(1000, 2.0, 0.6, marks=pytest.mark.slow)]
)
def test_whipping_chains_keep_their_energy_at_every_step(n, seconds, most):
    sim = chain(n, sh.Spherical(), 1e-3, length=1.0 / n, mass=10.0 / n)
    scale, start, worst, divided, steps = 10 * 9.81 * 0.5, sim.energy().total, 0.0, 0, round(seconds / 1e-3)
    for _ in range(steps):
        divided += sim.step().fallbacks["divided"]
        worst = max(worst, abs(sim.energy().total - start) / scale)
    gap = sim.constraint_error().max()
    print(f"{n} balls, {seconds:g} s at 1 ms: energy {worst:.1e} of its scale, gap {gap:.0e}, {divided} of {steps} steps divided")
    assert worst < 1e-9 and gap < 1e-12 and divided <= most * steps


def heavy_pendulum(dt):
    """300 kg on 30 links of 0.3 kg in all, 3 m long, let go at 30 degrees."""
    scene, last, lean = sh.Scene(), "world", np.radians(30)
    down = np.array([np.sin(lean), 0, -np.cos(lean)])
    for i in range(30):
        scene.add_body(
            f"l{i}", mass=0.01, inertia=np.array([1, 1, 0.02]) * 0.01 * 0.1**2 / 12, position=down * 0.1 * (i + 0.5),
            rotation=quat_exp(np.array([0, -lean, 0])),
        )  # fmt: skip
        scene.add_joint(f"j{i}", sh.Spherical(), last, f"l{i}", position=down * 0.1 * i)
        last = f"l{i}"
    scene.add_body("load", sh.Sphere(0.1), mass=300.0, position=down * 3)
    scene.add_joint("hook", sh.Spherical(), last, "load", position=down * 3)
    return sh.Simulation(scene, dt, solver="direct")


@pytest.mark.parametrize("dt", [1e-3, 5e-3, 15e-3, 50e-3])
def test_light_links_hold_a_heavy_load_at_any_step(dt):
    sim, angles = heavy_pendulum(dt), []
    start, worst, stretch = sim.energy().total, 0.0, 0.0
    for _ in range(round(10 / dt)):
        sim.step()
        x = sim.body("load").com
        angles.append(np.degrees(np.arctan2(x[0], -x[2])))
        worst = max(worst, abs(sim.energy().total - start) / (300 * 9.81 * 3))
        stretch = max(stretch, sim.constraint_error().max())
    angles = np.array(angles)
    up = np.flatnonzero((angles[:-1] < 0) & (angles[1:] >= 0))
    period = np.diff((up - angles[up] / (angles[up + 1] - angles[up])) * dt).mean()
    a = np.radians(30)
    exact = 2 * np.pi * np.sqrt(3 / 9.81) * (1 + a**2 / 16 + 11 * a**4 / 3072 + 173 * a**6 / 737280)
    widest = np.abs(angles[-round(4 / dt) :]).max()
    print(f"{dt * 1e3:g} ms: energy {worst:.1e}, stretch {stretch:.0e} m, {widest:.3f} of 30°, period {period / exact - 1:+.1e}")
    assert worst < 2e-12 and stretch < 3e-14 and widest > 29.99 and abs(period / exact - 1) < 1e-3


# ---- laws -------------------------------------------------------------------------------------------------------------------


def slider(dt, mass=1.0, **laws):
    scene = sh.Scene(gravity=(0, 0, 0))
    scene.add_body("b", sh.Box(0.2, 0.2, 0.2), mass=mass)
    scene.add_joint("j", sh.Prismatic("x", **laws), "world", "b", position=(0, 0, 0))
    return sh.Simulation(scene, dt, solver="direct")


@pytest.mark.parametrize("hertz", [1.0, 5.0, 10.0])
@pytest.mark.parametrize("dt", [1e-3, 5e-3, 1e-2])
def test_undamped_springs_keep_their_energy(hertz, dt):
    sim = slider(dt, spring=((2 * np.pi * hertz) ** 2, 0.0))
    sim.joint("j").position = 0.1
    start, worst = sim.energy().total, 0.0
    for _ in range(1000):
        sim.step()
        worst = max(worst, abs(sim.energy().total / start - 1))
    print(f"{hertz:g} Hz at {dt * 1e3:g} ms: energy within {worst:.1e}")
    assert worst < 1e-13


def test_a_ball_joint_s_springs_keep_their_energy():
    scene = sh.Scene(gravity=(0, 0, 0))
    scene.add_body("b", mass=1.0, inertia=(0.1, 0.2, 0.25), position=(0.5, 0, 0))
    scene.add_joint(
        "j", sh.Spherical(spring={"rx": (30.0, 0.1), "ry": (10.0, 0), "rz": (50.0, 0)}), "world", "b", position=(0, 0, 0)
    )
    sim = sh.Simulation(scene, 1e-2, solver="direct")
    sim.joint("j").velocity = (1.0, 2.0, 3.0)
    start, worst = sim.energy().total, 0.0
    for _ in range(1000):
        sim.step()
        worst = max(worst, abs(sim.energy().total / start - 1))
    print(f"a body on a ball joint with three springs, 10 ms: energy within {worst:.1e}")
    assert worst < 1e-9


LAWS = {
    "spring": {"spring": (40.0, 0.1)},
    "damper": {"damping": 1.5},
    "servo": {"drive": sh.Servo(position=0.3, kp=60.0, kd=4.0)},
    "motor": {"drive": sh.DCMotor(voltage=12.0, gear_ratio=5.0, rotor_inertia=1e-3, inductance=0.05)},
}


@pytest.mark.parametrize("law", LAWS)
def test_laws_are_of_second_order(law):
    def end(dt=None):
        scene = sh.Scene()
        scene.add_body("a", mass=1.0, inertia=(0.02, 0.1, 0.1), position=(0.4, 0, 0))
        scene.add_body("b", mass=0.7, inertia=(0.02, 0.05, 0.06), position=(1.0, 0, 0))
        scene.add_joint("j", sh.Revolute("y", **LAWS[law]), "world", "a", position=(0, 0, 0))
        scene.add_joint("k", sh.Spherical(), "a", "b", position=(0.8, 0, 0))
        sim = sh.Simulation(scene, dt or 1e-3, solver="direct")
        sim.joint("j").velocity, sim.joint("k").velocity = 0.5, (0.5, 1.0, -2.0)
        if dt is None:
            sim.integrate(0.4, rtol=1e-11, atol=1e-11)
        else:
            sim.run(0.4)
        return np.array([(sim.body(n).com, sim.body(n).velocity, sim.body(n).angular_velocity) for n in "ab"])

    exact = end()
    errors = [np.abs(end(dt) - exact).max() for dt in (2e-3, 1e-3, 5e-4)]
    ratios = errors[0] / errors[1], errors[1] / errors[2]
    print(f"{law}: {errors[2]:.1e} off at 0.5 ms; twice the step is {ratios[0]:.2f}, {ratios[1]:.2f} times as far off")
    assert all(3.8 < r < 4.2 for r in ratios)


@pytest.mark.parametrize("dt", [1e-3, 1e-2])
@pytest.mark.parametrize(
    "law", [{"friction": 0.8}, {"damping": 0.4}, {"limit": (-0.6, 0.5)}, {"limit": (-0.6, 0.5), "friction": 0.3, "damping": 0.2}]
)
def test_ledgers_close_at_every_step(law, dt):
    """Kinetic + potential + elastic + what friction, dampers and limits took."""
    sim = chain(3, sh.Revolute("y", **law), dt, length=0.4)
    sim.joint("j0").velocity = 3.0
    sim.step()
    start, taken, worst, least = sim.energy().total, 0.0, 0.0, 0.0
    for _ in range(round(3 / dt)):
        assert sim.step().converged
        part = sim.state.dissipated.numpy()[:, 0]
        taken, least = taken + part.sum(), min(least, part.min() if "friction" in law and len(law) == 1 else 0.0)
        worst = max(worst, abs(sim.energy().total + taken - start))
    print(f"{law}, {dt * 1e3:g} ms: {taken:.3f} J taken, ledger within {worst:.1e} J; least taken in a step {least:.0e} J")
    assert worst < 1e-11 * max(1.0, abs(taken)) and least >= -1e-12


def test_stiff_drives_do_not_ring():
    sim = slider(1e-2, drive=sh.Servo(position=0.1, kp=1e9, kd=1e4))
    for _ in range(200):
        sim.step()
    off, speed = sim.joint("j").position - 0.1, sim.joint("j").velocity
    print(f"a servo of 1e9 N/m at 10 ms: {off:.1e} m off, {speed:.1e} m/s")
    assert abs(off) < 1e-9 and abs(speed) < 1e-9


# ---- what a caller does -----------------------------------------------------------------------------------------------------


def test_velocities_that_contradict_joints_are_projected_and_told():
    sim = tree(sh.Revolute("z"), 1e-3)
    sim.body("b1").velocity = (5.0, -3.0, 2.0)
    before = sim.energy().kinetic
    report = sim.step()
    now = sim.energy()
    speed = row_speeds(sim)
    assert (
        abs(sim.constraint_velocity_error().max() - speed) < 2e-4 * speed + 1e-9 or sim.constraint_velocity_error().max() >= speed
    )
    assert report.substeps == 1
    print(f"{report.projected:.4f} J of {before:.4f} taken by the projection; rows move at {speed:.1e} m/s after a step")
    assert 0 < report.projected < before and speed < 1e-4
    worst = max(abs(sim.step() and sim.energy().total - now.total) for _ in range(200))
    assert worst < 1e-10


def test_a_step_that_cannot_be_made_leaves_the_last_good_state():
    sim = chain(4, sh.Spherical(friction=0.1), 1e-3)
    sim.run(0.05)
    before = sim.snapshot()
    sim.body("l2").apply_force((1e300, 0, 0))
    with pytest.raises(sh.SimulationError, match="could not be made"):
        sim.step()
    after = sim.snapshot()
    for name, value in before.items():
        if name.startswith("state.") and name != "state.open":
            assert np.array_equal(value, after[name]), name
    sim.reset()
    sim.run(0.05)
    assert np.isfinite(sim.energy().total)


@pytest.mark.parametrize("friction", [0.1, 0.5, 1.0, 5.0])
def test_friction_of_balls_is_found_from_rest(friction):
    """A straight chain of balls with dry friction, let go from rest: which of them slide is found, whatever the bound."""
    scene = sh.Scene()
    parent = scene.world
    for i in range(20):
        scene.add_body(f"rod {i}", mass=0.5, inertia=(1e-5, 1e-4, 1e-4), position=((i + 0.5) * 0.05, 0.0, 0.0))
        scene.add_joint(f"ball {i}", sh.Spherical(friction=friction), parent, f"rod {i}", position=(i * 0.05, 0.0, 0.0))
        parent = f"rod {i}"
    sim = sh.Simulation(scene, 1e-3, solver="direct")
    start, taken, worst = sim.energy().total, 0.0, 0.0
    for _ in range(200):
        assert sim.step().converged
        taken += float(sim.state.dissipated.numpy()[:, 0].sum())
        worst = max(worst, abs(sim.energy().total + taken - start))
    print(f"friction {friction} N·m: {taken:.3f} J taken, ledger off by {worst:.1e} J")
    assert worst < 1e-8 and taken > 0
