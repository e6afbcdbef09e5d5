"""The direct pass on mechanisms made at random: order, gaps, laws, joints switched off and on, momenta, bits.

References are integrations of high order in joint coordinates, in which stick, slip and limits are events.
"""

import numpy as np
import pytest
from mechanisms import add_body, kinds
from test_direct import double_alone, one_thread_is_slow

import sharnir as sh
from sharnir.core.spatial import quat_exp, quat_rotate
from sharnir.dynamics import forward_dynamics, from_state, links, reactions
from sharnir.runtime.snapshots import PER_WORLD

pytestmark = [one_thread_is_slow, double_alone]


# ---- mechanisms -------------------------------------------------------------------------------------------------------------


def random_tree(seed, dt, laws=None, floating=False, worlds=1, **options):
    """Two to seven bodies, joints of any kind either way round, on the ground, a moving base or nothing; thrown."""
    rng = np.random.default_rng(seed)
    scene, count = sh.Scene(gravity=(0, 0, 0) if floating else 5 * rng.normal(size=3)), int(rng.integers(2, 8))
    bases, places = ["world"], {}
    if rng.random() < 0.4 and not floating:
        moves = {"velocity": 0.5 * rng.normal(size=3), "angular_velocity": 0.7 * rng.normal(size=3)}
        scene.add_body("cart", motion="kinematic", position=(0.2, 0.3, 0), com=(0.1, 0.05, 0), **moves)
        bases.append("cart")
    for i in range(count):
        alone = i == 0 if floating else rng.random() < 0.2
        base = f"b{rng.integers(max(0, i - 2), i)}" if i and (floating or rng.random() < 0.7) else bases[rng.integers(len(bases))]
        middle = places.get(base, np.zeros(3))
        at = places[f"b{i}"] = (np.zeros(3) if alone else middle) + 0.4 * rng.normal(size=3)
        thrown = {"velocity": 0.8 * rng.normal(size=3), "angular_velocity": 1.5 * rng.normal(size=3)} if alone else {}
        add_body(scene, f"b{i}", rng, at, **thrown)
        if not alone:
            known = kinds(rng)
            make = known[rng.integers(0 if base == "world" else 1, len(known))]
            joint = make(**(laws(rng, make()) if laws and make().v_size else {}))
            pair = (base, f"b{i}") if rng.random() < 0.5 else (f"b{i}", base)
            place = {"position": (middle + at) / 2 + 0.05 * rng.normal(size=3), "rotation": quat_exp(rng.normal(size=3))}
            scene.add_joint(f"j{i}", joint, *pair, **place)
    sim = sh.Simulation(scene, dt, worlds=worlds, **options)
    for name, joint in ((name, made.joint) for name, made in scene.joints.items()):
        if joint.v_size:
            speed = 1.5 * rng.normal(size=joint.v_size)
            sim.joint(name).velocity = speed if worlds == 1 else np.outer(1 + 0.3 * np.arange(worlds), speed)
    return sim


def push(sim, seed):
    """Forces on bodies and on joints, kept on."""
    rng = np.random.default_rng(seed)
    for name in sim.model.body_names:
        if name.startswith("b") and rng.random() < 0.4:
            sim.body(name).apply_force(3 * rng.normal(size=3), once=False)
            sim.body(name).apply_torque(0.3 * rng.normal(size=3), once=False)
    for name in sim.model.joint_names:
        if sim.joint(name).kind.v_size and rng.random() < 0.4:
            sim.joint(name).effort = 0.5 * rng.normal(size=sim.joint(name).kind.v_size)
    return sim


def loop(kind, seed, dt, **options):
    """A mechanism with loops: a four-bar on a moving base, a floating ring, or a chain with rods, gears or springs."""
    rng = np.random.default_rng(seed)
    scene = sh.Scene(gravity=5 * rng.normal(size=3))

    def join(name, joint, a, b, at):
        scene.add_joint(name, joint, *((b, a) if rng.random() < 0.5 else (a, b)), position=at)

    if kind == "four-bar":
        turn = quat_exp(rng.normal(size=3))
        z, y = (quat_rotate(turn, np.array(v)) for v in ((0.0, 0.0, 1.0), (0.0, 1.0, 0.0)))
        corners = [quat_rotate(turn, np.array(p, float)) for p in ((0, 0, 0), (0.3, 0.45, 0), (0.9, 0.5, 0), (0.8, -0.1, 0))]
        scene.add_body("cart", motion="kinematic", velocity=0.4 * rng.normal(size=3), angular_velocity=0.5 * rng.normal(size=3))
        names = ["cart", "b0", "b1", "b2", "cart"]
        for i in range(3):
            add_body(scene, f"b{i}", rng, (corners[i] + corners[i + 1]) / 2)
        for i, joint in enumerate((sh.Revolute(z), sh.Universal((z, y)), sh.Spherical(), sh.Revolute(z))):
            join(f"j{i}", joint, names[i], names[i + 1], corners[i])
    elif kind == "ring":
        corners = [0.6 * np.array([np.cos(0.4 * np.pi * i), np.sin(0.4 * np.pi * i), 0.3 * rng.normal()]) for i in range(5)]
        for i in range(5):
            add_body(scene, f"b{i}", rng, (corners[i] + corners[(i + 1) % 5]) / 2)
        for i in range(5):
            join(f"j{i}", sh.Universal(("x", "y")) if i == 2 else sh.Spherical(), f"b{(i - 1) % 5}", f"b{i}", corners[i])
    else:
        for i in range(3):
            add_body(scene, f"b{i}", rng, (0.5 * i, 0.1, 0))
        join("j0", sh.Revolute("y") if kind == "gears" else sh.Spherical(), "world", "b0", (0, 0, 0.1))
        join("j1", sh.Revolute((1, 1, 0)), "b0", "b1", (0.3, 0, 0))
        if kind == "gears":
            join("j2", sh.Universal(("x", "y")) if seed % 2 else sh.Prismatic("x"), "b1", "b2", (0.8, 0, 0))
            scene.add_joint("gear", sh.Gear("j0", "j1", float(rng.uniform(1, 3))))
            scene.add_joint("mesh", sh.Gear("j1", ("j2", scene.joints["j2"].joint.free[0]), float(rng.uniform(-3, -1))))
        elif kind == "rods":
            scene.add_joint("rod", sh.Distance(), "world", "b1", position=[(0.3, 0.8, 0.4), (0.6, 0.1, 0.1)])
            scene.add_joint("far", sh.Distance(), "b2", "b1", position=[(0.9, 0.2, 0), (0.5, 0.2, 0.1)])
        else:
            scene.add_spring("s0", "b1", "b2", at_a=(0.1, 0, 0), at_b=(0, 0.2, 0.1), stiffness=40.0, rest=0.3)
            scene.add_spring("s1", "world", "b1", at_a=(0.1, 0.9, 0), at_b=(0, 0.2, 0.1), stiffness=30.0, damping=0.5)
    sim = sh.Simulation(scene, dt, **options)
    size = sim.joint("j0").kind.v_size
    sim.joint("j0").velocity = 1.5 if size == 1 else np.linspace(0.5, 1.5, size)
    return sim


def motion(sim):
    names = [name for name in sim.model.body_names if name.startswith("b")]
    return np.array([(sim.body(n).com, sim.body(n).velocity, sim.body(n).angular_velocity) for n in names])


def order(make, end=0.2):
    """Errors (position, velocity, spin) at 0.5 ms, their least ratio to those of twice the step, and the largest gap."""
    reference = make(1e-3)
    reference.integrate(end, rtol=1e-10, atol=1e-10)
    exact, errors, gap = motion(reference), [], 0.0
    for dt in (2e-3, 1e-3, 5e-4):
        sim = make(dt)
        for _ in range(4):
            sim.run(end / 4)
            gap = max(gap, sim.constraint_error().max(initial=0.0))
        errors.append(np.abs(motion(sim) - exact).max((0, 2)))
    ratios = np.array([errors[0] / (errors[1] + 1e-11), errors[1] / (errors[2] + 1e-11)])
    return errors[2], np.where(errors[2] > 1e-9, ratios.min(0), 4.0), gap


# ---- order ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(12))
def test_random_trees_are_of_second_order(seed):
    error, ratio, gap = order(
        lambda dt: push(random_tree(seed, dt, solver="direct", tolerances=sh.Tolerances(position_tolerance=1e-11)), seed)
    )
    print(f"tree {seed}: {error} m, m/s, rad/s at 0.5 ms; twice the step {np.round(ratio, 2)}; gap {gap:.1e}")
    assert np.all(ratio > 3.6) and gap < 1e-9


@pytest.mark.parametrize(("kind", "seed"), [("four-bar", 0), ("ring", 1), ("rods", 2), ("gears", 3), ("gears", 4)])
def test_loops_are_of_second_order(kind, seed):
    error, ratio, gap = order(
        lambda dt: loop(kind, seed, dt, solver="direct", tolerances=sh.Tolerances(position_tolerance=1e-11))
    )
    print(f"{kind} {seed}: {error} at 0.5 ms; twice the step {np.round(ratio, 2)}; gap {gap:.1e}")
    assert np.all(ratio > 3.6) and gap < 1e-9


def test_springs_between_points_are_implicit():
    error, ratio, gap = order(lambda dt: loop("springs", 5, dt, solver="direct"))
    print(f"springs between points: {error} at 0.5 ms; twice the step {np.round(ratio, 2)}; gap {gap:.1e}")
    assert np.all(ratio > 1.9) and error[0] < 1e-3 and gap < 1e-9


# ---- laws -------------------------------------------------------------------------------------------------------------------


def any_laws(rng, joint):
    free, out = joint.free[: joint.v_size], {}
    pick = free[rng.integers(len(free))]
    if rng.random() < 0.5:
        bound = float(rng.uniform(0.01, 0.6))
        friction = [
            bound, sh.Friction(bound, 0.6 * bound), sh.Friction(bound, load=0.01),
            sh.Friction(bound, 0.5 * bound, stribeck=0.2), sh.Friction(bound, viscous=0.1),
        ][rng.integers(5)]  # fmt: skip
        out["friction"] = friction if rng.random() < 0.6 else {pick: friction}
    if rng.random() < 0.4 and len(joint.turns) < 3:
        out["limit"] = {pick: sh.Limit(-0.1, 0.15, restitution=0.0 if rng.random() < 0.7 else 0.4)}
    elif rng.random() < 0.4 and len(joint.turns) == 3:
        out["limit"] = sh.Cardan((-0.2, 0.3), (-0.1, 0.2), None)
    if rng.random() < 0.3:
        out["spring"] = (float(10 ** rng.uniform(0, 2.5)), 0.05)
    if rng.random() < 0.3:
        out["damping"] = float(10 ** rng.uniform(-2, 0.5))
    if rng.random() < 0.5:
        servo = sh.Servo(position=0.2, kp=float(10 ** rng.uniform(0, 2)), kd=1.0, max_force=float(10 ** rng.uniform(-1, 2)))
        motor = sh.DCMotor(voltage=6, inductance=0.01 * rng.integers(2), gear_ratio=10.0, rotor_inertia=1e-3, efficiency=0.9)
        out["drive"] = {pick: servo if rng.random() < 0.5 or len(joint.turns) == 3 else motor}
    return out


LOADED = pytest.mark.xfail(
    strict=True,
    reason="Friction(load=...) at a limit: a step multiplies it with the impulse of the impact, an integration does not; "
    "the two differ by 0.01 rad/s however small the step",
)


@pytest.mark.parametrize("seed", [pytest.param(s, marks=LOADED) if s in (104, 109) else s for s in range(100, 110)])
def test_laws_on_random_trees(seed):
    """Errors are small and fall at first order at least, against an integration in which stick, slip and limits are events."""
    dt, end = 5e-4, 0.15
    reference = random_tree(seed, dt, any_laws)
    reference.integrate(end, rtol=1e-8, atol=1e-8)
    sim = random_tree(seed, dt, any_laws, solver="direct")
    gap = over = taken = 0.0
    for _ in range(round(end / dt)):
        assert sim.step().converged
        gap, lost = max(gap, sim.constraint_error().max(initial=0.0)), 0.0
        for name in sim.model.joint_names:
            view = sim.joint(name)
            if view.kind.v_size == 0:
                continue
            lost += view.dissipated
            for axis, limit in (view.kind.limit if isinstance(view.kind.limit, dict) else {}).items():
                q = np.atleast_1d(view.position)[view.kind.free.index(axis)]
                over = max(over, q - limit.upper, limit.lower - q)
        taken = min(taken, lost)
    coarse = random_tree(seed, 4 * dt, any_laws, solver="direct")
    coarse.run(end)
    off, before = (np.abs(motion(s) - motion(reference)).max((0, 2)) for s in (sim, coarse))
    print(f"laws {seed}: {off} off, {before} at 2 ms; gap {gap:.1e}, limits by {over:.1e}, loss {taken:.1e} J")
    assert gap < 2e-9 and over < 3e-10 and taken > -1e-12
    assert np.all(off < (4e-4, 2.5e-3, 6e-3)) and np.all(off < np.maximum(0.5 * before, (1e-5, 1e-4, 1e-4)))


def test_the_first_step_has_whole_forces_and_rotors():
    scene = sh.Scene()
    for i, joint in enumerate(
        (
            sh.Revolute("y", friction=20.0), sh.Spherical(friction=20.0), sh.Revolute("y", limit=(-1, 0)),
            sh.Revolute("y", drive=sh.DCMotor(voltage=12, gear_ratio=10, rotor_inertia=1e-2)),
        )
    ):  # fmt: skip
        scene.add_body(f"b{i}", mass=1.0, inertia=(0.1, 0.1, 0.1), position=(0.5, i, 0))
        scene.add_joint(f"j{i}", joint, "world", f"b{i}", position=(0, i, 0))
    sim = sh.Simulation(scene, 1e-3, solver="direct")
    sim.step()
    held = sim.joint("j0").friction_force, sim.joint("j1").friction_force[1], sim.joint("j2").limit_force
    rate = sim.joint("j3").velocity / 1e-3
    expected = (6.0 + 4.905) / (0.35 + 1.0)  # 12 V over 1 Ω, 0.05 N·m/A, 10 turns; the rotor weighs 1 kg·m² at the joint
    print(f"after one step friction and limit hold {np.round(held, 6)} N·m of 4.905; a motor starts at {rate:.4f} rad/s²")
    assert np.abs(np.abs(held) - 4.905).max() < 1e-9 and abs(rate - expected) < 0.02


def test_a_rotor_feels_its_axis_turn():
    """A slide on a spinning arm, with a heavy rotor: centrifugal force moves both."""

    def make(dt, **options):
        scene = sh.Scene(gravity=(0, 0, 0))
        scene.add_body("b0", mass=2.0, inertia=(0.2, 0.3, 0.4), position=(0, 0, 0))
        scene.add_body("b1", mass=1.0, inertia=(0.01, 0.02, 0.02), position=(0.5, 0.1, 0))
        scene.add_joint("hub", sh.Revolute("z"), "world", "b0", position=(0, 0, 0))
        slide = sh.Prismatic("x", drive=sh.DCMotor(gear_ratio=20.0, rotor_inertia=5e-3))
        scene.add_joint("slide", slide, "b0", "b1", position=(0.5, 0, 0))
        sim = sh.Simulation(scene, dt, **options)
        sim.joint("hub").velocity = 6.0
        return sim

    exact = make(1e-3)
    exact.integrate(0.3)
    sim = make(5e-4, solver="direct")
    sim.run(0.3)
    off = np.abs(motion(sim) - motion(exact)).max((0, 2))
    print(f"a rotor on a spinning slide: {off} m, m/s, rad/s off at 0.5 ms")
    assert np.all(off < 2e-3)


# ---- joints taken out and put back ------------------------------------------------------------------------------------------


def test_a_plain_joint_lets_go_at_once():
    scene = sh.Scene()
    scene.add_body("b", mass=1.0, inertia=(0.1, 0.1, 0.1), position=(0.5, 0, 0))
    scene.add_joint("j", sh.Spherical(), "world", "b", position=(0, 0, 0))
    sim = sh.Simulation(scene, 1e-3, solver="direct")
    sim.step(10)
    sim.joint("j").enabled = False
    before = sim.body("b").velocity
    sim.step(100)
    fallen = (sim.body("b").velocity - before)[2]
    saved = sim.snapshot()
    sim.reset()
    sim.step(10)
    sim.restore(saved)
    before = sim.body("b").velocity
    sim.step(100)
    again = (sim.body("b").velocity - before)[2]
    print(f"gains {fallen:.9f} m/s in 0.1 s, restored {again:.9f}")
    assert abs(fallen + 0.981) < 1e-10 and abs(again + 0.981) < 1e-10


@pytest.mark.parametrize("seed", range(4))
def test_put_back_joints_close_without_a_jump(seed):
    sim = random_tree(seed, 1e-3, solver="direct")
    name = next(n for n in sim.model.joint_names if sim.joint(n).kind.mask != 63)
    sim.step(10)
    sim.joint(name).enabled = False
    sim.step(100)
    apart, fastest = sim.joint(name).gap.max(), np.abs(motion(sim)[:, 1:]).max()
    sim.joint(name).enabled = True
    sim.step(5)
    after = np.abs(motion(sim)[:, 1:]).max()
    sim.step(500)
    print(
        f"tree {seed}, {name}: {apart:.2e} apart, fastest {fastest:.2f}, then {after:.2f}; gap {sim.constraint_error().max():.1e}"
    )
    assert after < 5 * fastest + 1 and sim.constraint_error().max() < 1e-6


# ---- bits -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(200, 204))
def test_steps_snapshots_and_worlds_agree_bit_for_bit(seed):
    laws = any_laws if seed % 2 else None
    a, b, c = (random_tree(seed, 1e-3, laws, solver="direct") for _ in range(3))
    start = c.snapshot()
    a.step(40)
    for _ in range(40):
        b.step()
    c.step(10)
    saved = c.snapshot()
    c.step(10)
    c.restore(saved)
    c.step(30)
    first = a.snapshot()
    c_now = c.snapshot()
    c.restore(start)
    c.step(40)
    for other in (b.snapshot(), c_now, c.snapshot()):
        assert [k for k in first if not np.array_equal(first[k], other[k])] == []
    batch = random_tree(seed, 1e-3, laws, worlds=3, solver="direct")
    for field, value in start.items():
        if field.startswith("state.") and field not in PER_WORLD:
            array = getattr(batch.state, field.removeprefix("state."))
            values = array.numpy().copy()
            values[:, 1] = value[:, 0]
            array.assign(values)
    batch.step(40)
    together = batch.snapshot()
    fields = [k for k in first if k.startswith("state.") and k not in PER_WORLD]
    assert [k for k in fields if not np.array_equal(first[k][:, 0], together[k][:, 1])] == []


# ---- momenta, reactions, references -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("laws", [None, lambda rng, joint: {k: v for k, v in any_laws(rng, joint).items() if k != "limit"}])
@pytest.mark.parametrize("seed", range(300, 304))
def test_floating_trees_keep_their_momenta(seed, laws):
    sim = random_tree(seed, 1e-3, laws, floating=True, solver="direct")
    sim.step()
    start, energy = sim.momentum(), sim.energy().total
    sim.run(1.0)
    now = sim.momentum()
    off = max(np.abs(now.linear - start.linear).max(), np.abs(now.angular - start.angular).max())
    gained = sim.energy().total / energy - 1
    print(f"floating {seed}, laws {laws is not None}: momenta within {off:.1e}; energy {100 * gained:+.4f} %")
    assert off < 1e-9 and (laws is not None or abs(gained) < 1e-3)


@pytest.mark.parametrize("seed", range(3))
def test_reactions_of_random_trees_converge(seed):
    """Against the forces that the equations of motion give in the state of an integration; those of a step alternate by O(dt)."""
    reference = random_tree(seed, 1e-3)
    reference.integrate(0.2, rtol=1e-10, atol=1e-10)
    tree = links(reference.model)
    q, v = from_state(tree, reference.state)
    exact = {name: force for name, (force, _) in reactions(tree, q[0], v[0]).items()}
    errors, most = [], max(np.linalg.norm(force) for force in exact.values())
    for dt in (1e-3, 5e-4):
        sim = random_tree(seed, dt, solver="direct")
        sim.run(0.2)
        errors.append(max(np.linalg.norm(sim.joint(name).reaction[0] - force) for name, force in exact.items()) / most)
    print(f"tree {seed}: reactions {errors[0]:.1e} off at 1 ms, {errors[1]:.1e} at 0.5 ms")
    assert errors[1] < 3e-4 and errors[1] < 0.55 * errors[0] + 1e-7


@pytest.mark.parametrize("friction", [None, 0.01])
def test_integrations_follow_forces_on_bodies(friction):
    def make(**options):
        scene = sh.Scene(gravity=(0, 0, 0))
        for i in range(2):
            scene.add_body(f"b{i}", mass=2.0, inertia=(1, 1, 1), position=(i, 0, 0))
        scene.add_joint("j", sh.Revolute("z", friction=friction), "b0", "b1", position=(0.5, 0, 0))
        sim = sh.Simulation(scene, 1e-3, **options)
        sim.body("b0").apply_force((4, 1, 0), once=False)
        sim.body("b1").apply_torque((0, 0.3, 1), once=False)
        return sim

    exact, sim = make(), make(solver="direct")
    exact.integrate(0.5)
    sim.run(0.5)
    off = np.abs(motion(sim) - motion(exact)).max()
    tree = links(exact.model)
    q, v = from_state(tree, exact.state)
    left = np.abs(forward_dynamics(tree, q, 0 * v)).max()
    print(f"friction {friction}: {off:.1e} apart after 0.5 s; forward dynamics at rest afterwards {left:.1e}")
    assert off < 1e-6 and left == 0.0


@pytest.mark.parametrize("joint", [sh.Free(limit=sh.Cardan((-0.2, 0.3), (-0.1, 0.2), None)), sh.Free()], ids=["limits", "force"])
def test_a_free_joint_is_a_joint(joint):
    def make(**options):
        scene = sh.Scene(gravity=(1, 2, 3))
        scene.add_body("b", mass=1.0, inertia=(0.1, 0.2, 0.25), position=(0.3, 0, 0))
        scene.add_joint("j", joint, "world", "b", position=(0, 0, 0))
        sim = sh.Simulation(scene, 1e-3, **options)
        sim.joint("j").velocity = (0.3, 0.5, 0.1, 1.0, 0.7, 0.5)
        sim.joint("j").effort = (1.0, -2.0, 0.5, 0.1, 0.0, -0.1)
        return sim

    exact, sim = make(), make(solver="direct")
    exact.integrate(0.29)
    sim.run(0.29)
    off = np.abs(motion(sim) - motion(exact)).max((0, 2))
    print(f"a free joint: {off} m, m/s, rad/s off at 1 ms")
    assert np.all(off < 2e-3)  # of the first order where a limit is met inside a step
