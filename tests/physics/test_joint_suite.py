"""Every joint type, with either body fixed or both free, in random frames: constrained axes stay constrained, free axes stay
free, action equals reaction, coordinates can be read and set."""

import numpy as np
import pytest

import sharnir as sh
from sharnir.core.spatial import quat_rotate
from sharnir.model import assembly

TILTED = (0.3, -0.5, 0.81)
JOINTS = {
    "fixed": sh.Fixed(),
    "revolute": sh.Revolute("y"),
    "revolute, vector": sh.Revolute(TILTED),
    "prismatic": sh.Prismatic("x"),
    "prismatic, vector": sh.Prismatic(TILTED),
    "cylindrical": sh.Cylindrical("z"),
    "universal": sh.Universal(("x", "y")),
    "universal, x z": sh.Universal(("x", "z")),
    "universal, z y": sh.Universal(("z", "y")),
    "universal, vectors": sh.Universal(((1, 1, 0), (0, 0, 1))),
    "spherical": sh.Spherical(),
    "planar": sh.Planar("z"),
    "planar, vector": sh.Planar(TILTED),
    "free": sh.Free(),
    "point on line": sh.PointOnLine("y"),
    "any: x rz": sh.Joint("x rz"),
    "any: x y z": sh.Joint("x y z"),
    "any: y rx ry": sh.Joint("y rx ry"),
    "any: x y ry rz": sh.Joint("x y ry rz"),
    "any: x z rx ry rz": sh.Joint("x z rx ry rz"),
    "distance": sh.Distance(),
}
SOLVERS = pytest.mark.parametrize("solver", ["direct", "sequential"])
LATE = pytest.mark.xfail(strict=True, reason="Cayley's map: what is no rotor lags by x²/12 if it turns by x rad per step")
TURNS = pytest.mark.parametrize("solver", [pytest.param("direct", marks=LATE), "sequential"])
# gap, m or rad; speed of constrained axes, m/s or rad/s; work on free axes; linear and angular momentum, N·s and N·m·s
BOUNDS = {"direct": (5e-15, 4e-5, 4e-5, 6e-14, 3e-13), "sequential": (1.5e-7, 1e-14, 5e-11, 1e-14, 1.4e-6)}
SIDES = ("first fixed", "second fixed", "both free")


def random_quat(rng):
    q = rng.normal(size=4)
    return q / np.linalg.norm(q)


def random_pair(joint, side, seed, *, gravity=(0, 0, 0), dt=1e-3, solver="sequential"):
    """Two boxes at random poses in random motion, joined somewhere between them in a random frame."""
    rng = np.random.default_rng(seed)
    scene = sh.Scene(gravity=gravity)
    names = []
    for i, name in enumerate(("first", "second")):
        scene.add_body(
            name,
            sh.Box(*rng.uniform(0.2, 0.6, 3), position=rng.uniform(-0.1, 0.1, 3), rotation=random_quat(rng)),
            mass=rng.uniform(0.5, 2),
            position=rng.uniform(-0.5, 0.5, 3) + [i, 0, 0],
            rotation=random_quat(rng),
            motion="fixed" if side == f"{name} fixed" else "dynamic",
            velocity=np.zeros(3) if side == f"{name} fixed" else rng.uniform(-1, 1, 3),
            angular_velocity=np.zeros(3) if side == f"{name} fixed" else rng.uniform(-2, 2, 3),
        )
        names.append(name)
    at = rng.uniform(0, 0.5, 3)
    place = [at, at + rng.uniform(0.2, 0.5, 3)] if isinstance(joint, sh.Distance) else at
    scene.add_joint("joint", joint, *names, position=place, rotation=random_quat(rng))
    options = {"tolerances": sh.Tolerances(tolerance=1e-13, iterations=50)} if solver == "sequential" else {}
    return sh.Simulation(scene, dt, solver=solver, **options)


@SOLVERS
@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("name", JOINTS)
def test_constrained_axes_hold_and_free_axes_do_no_work(name, side, solver):
    worst_gap = worst_work = worst_linear = worst_angular = worst_speed = 0.0
    for seed in range(3 if solver == "sequential" else 1):
        sim = random_pair(JOINTS[name], side, seed, solver=solver)
        start = sim.momentum()
        sim.step()
        for _ in range(20):
            sim.step(10)
            worst_gap = max(worst_gap, float(sim.constraint_error().max()))
        rows = assembly.evaluate(sim.model, sim.state)[0]
        force, torque = sim.joint("joint").reaction
        size = 1e-2 + np.linalg.norm(force) + np.linalg.norm(torque)
        for i in range(JOINTS[name].v_size):
            work = rows.free_linear[0, i] @ force + rows.free_angular[0, i] @ torque
            worst_work = max(worst_work, abs(work) / size)
        # velocities are those of the pose: the constrained rows of the relative velocity are at rest
        mechanism = assembly.Mechanism(sim.model, [0])
        J, _, _ = mechanism.constraint_rows(rows, sim.state.position.numpy()[:, 0])
        V = np.concatenate([np.r_[sim.state.velocity.numpy()[b, 0], sim.state.spin.numpy()[b, 0]] for b in mechanism.bodies])
        if len(J):
            worst_speed = max(worst_speed, float(np.abs(J @ V).max()))
        if side == "both free":
            now = sim.momentum()
            worst_linear = max(worst_linear, float(np.abs(now.linear - start.linear).max()))
            worst_angular = max(worst_angular, float(np.abs(now.angular - start.angular).max()))
    found = worst_gap, worst_speed, worst_work, worst_linear, worst_angular
    words = "gap", "constrained speed", "work on free axes", "momentum", "angular momentum"
    print(f"{name}, {side}, {solver}: " + ", ".join(f"{w} {x:.1e}" for w, x in zip(words, found, strict=True)))
    assert np.all(np.array(found) < BOUNDS[solver])


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("name", [n for n, j in JOINTS.items() if j.v_size])
def test_coordinates_are_set_and_read_back(name, side):
    joint = JOINTS[name]
    rng = np.random.default_rng(5)
    for seed in range(2):
        sim = random_pair(joint, side, seed)
        view = sim.joint("joint")
        q = rng.uniform(-1, 1, joint.q_size)
        if len(joint.turns) == 3:
            q[-4:] /= np.linalg.norm(q[-4:])
        value = q if joint.q_size > 1 else q[0]
        view.position = value
        got = np.atleast_1d(view.position)
        if len(joint.turns) == 3 and got[-4:] @ q[-4:] < 0:
            got[-4:] *= -1
        qd = rng.uniform(-1, 1, joint.v_size)
        view.velocity = qd if joint.v_size > 1 else qd[0]
        errors = np.abs(got - q).max(), np.abs(np.atleast_1d(view.velocity) - qd).max(), sim.constraint_error().max()
        print(f"{name}, {side}: position {errors[0]:.1e}, velocity {errors[1]:.1e}, gap {errors[2]:.1e}")
        assert max(errors) < 1e-12


@SOLVERS
@pytest.mark.parametrize("name", [n for n, j in JOINTS.items() if j.v_size])
def test_speeds_are_the_rates_of_the_coordinates(name, solver):
    joint = JOINTS[name]
    sim = random_pair(joint, "first fixed", 2, dt=1e-6, solver=solver)
    view = sim.joint("joint")
    view.velocity = np.random.default_rng(1).uniform(-1, 1, joint.v_size) if joint.v_size > 1 else 0.7
    sim.step()
    before, speed = np.atleast_1d(view.position), np.atleast_1d(view.velocity)
    sim.step()
    after = np.atleast_1d(view.position)
    moves = joint.v_size - len(joint.turns)
    rate = (after - before) / sim.dt
    if len(joint.turns) == 3:  # p' = ½ (ω, 0) ∘ p with ω in the parent's joint frame
        p, dp = before[moves:], rate[moves:]
        omega = 2 * (dp[:3] * p[3] - p[:3] * dp[3] - np.cross(dp[:3], p[:3]))
        rate = np.r_[rate[:moves], omega]
    error = np.abs(rate - speed).max()
    print(f"{name}: |dq/dt − speed| = {error:.1e}")
    assert error < 3e-6


@SOLVERS
@pytest.mark.parametrize("name", [n for n, j in JOINTS.items() if j.v_size])
def test_a_force_on_a_free_axis_does_the_work_it_should(name, solver):
    """Power of joint.effort equals the gain of kinetic energy: Δ(½mv² + ½ωL) = Σ force · speed · dt."""
    joint = JOINTS[name]
    sim = random_pair(joint, "both free", 3, dt=1e-4, solver=solver)
    view = sim.joint("joint")
    sim.step(5)
    force = np.linspace(1.0, 2.0, joint.v_size)
    view.effort = force if joint.v_size > 1 else force[0]
    start, work = sim.energy().kinetic, 0.0
    for _ in range(200):
        before = np.atleast_1d(view.velocity)
        sim.step()
        work += force @ (before + np.atleast_1d(view.velocity)) / 2 * sim.dt
    gain = sim.energy().kinetic - start
    print(f"{name}: gain {gain:.6f} J, work {work:.6f} J")
    assert abs(gain - work) < 5e-4 * max(abs(work), 0.05)


@SOLVERS
def test_angles_count_turns(solver):
    scene = sh.Scene(gravity=(0, 0, 0))
    body = scene.add_body("rotor", sh.Cylinder(0.1, 0.2), mass=1.0)
    scene.add_joint("axle", sh.Revolute("z"), scene.world, body, position=(0, 0, 0))
    sim = sh.Simulation(scene, 1e-3, solver=solver)
    sim.joint("axle").velocity = 100.0
    sim.run(2.0)
    print(f"angle after 2 s at 100 rad/s: {sim.joint('axle').position:.9f}")
    assert sim.joint("axle").position == pytest.approx(200.0, abs=1e-9)
    sim.joint("axle").velocity = -100.0
    sim.run(3.0)
    assert sim.joint("axle").position == pytest.approx(-100.0, abs=1e-9)


@TURNS
def test_universal_angles_count_turns(solver):
    scene = sh.Scene(gravity=(0, 0, 0))
    body = scene.add_body("cross", sh.Sphere(0.1), mass=1.0)
    scene.add_joint("u", sh.Universal(("x", "y")), scene.world, body, position=(0, 0, 0))
    sim = sh.Simulation(scene, 1e-3, solver=solver)
    sim.joint("u").velocity = (20.0, 0.0)
    sim.run(1.0)
    assert np.allclose(sim.joint("u").position, (20.0, 0.0), atol=1e-9)


def test_child_anchor_is_the_common_point_of_a_displaced_slider():
    """A torque-free slider far from its anchor gives its parent no moment beyond the force at the slider."""
    scene = sh.Scene(gravity=(0, 0, 0))
    base = scene.add_body("base", sh.Box(1, 1, 1), mass=5.0)
    slider = scene.add_body("slider", sh.Box(0.1, 0.1, 0.1), mass=1.0)
    scene.add_joint("rail", sh.Prismatic("x"), base, slider, position=(0, 0, 0))
    sim = sh.Simulation(scene, 1e-3, tolerances=sh.Tolerances(iterations=100), solver="sequential")
    sim.joint("rail").position = 2.0
    sim.body("slider").apply_force((0, 0, 3.0), once=False)
    sim.step(2)
    centre = (5 * sim.body("base").com + sim.body("slider").com) / 6
    rate = np.cross(sim.body("slider").com - centre, (0, 0, 3.0)) * 2e-3
    spin_momentum = sim.momentum().angular - np.cross(centre, sim.momentum().linear)
    print("angular momentum", spin_momentum, "moment of the force × time", rate)
    assert np.allclose(spin_momentum, rate, atol=1e-8)
    assert np.allclose(quat_rotate(sim.body("base").rotation, [1, 0, 0]), sim.joint("rail").axes["x"], atol=1e-12)
