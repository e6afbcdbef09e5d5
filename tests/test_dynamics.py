"""Dynamics of trees: three recursions against each other, against the maximal-coordinate step, and against closed forms."""

import numpy as np
import pytest

import sharnir as sh
from sharnir import dynamics as dyn
from sharnir.core.spatial import quat_exp, quat_rotate

KINDS = [
    sh.Revolute("y"), sh.Revolute((0.3, -0.5, 0.8)), sh.Prismatic("x"), sh.Cylindrical("z"), sh.Universal(("x", "y")),
    sh.Universal(("z", "x")), sh.Spherical(), sh.Planar("y"), sh.Free(), sh.Joint("x rz"), sh.Joint("y rx ry"),
    sh.Joint("x z rx ry rz"), sh.Joint("x y z"), sh.PointOnLine("x"), sh.Fixed(),
]  # fmt: skip


def random_tree(seed, n=6):
    """n bodies on random joints, some of them pointing backwards, fixed to the ground or floating."""
    rng = np.random.default_rng(seed)
    scene = sh.Scene(gravity=rng.normal(size=3) * 5)
    floating = bool(rng.integers(0, 2))
    for i in range(n):
        body = scene.add_body(
            f"b{i}",
            sh.Box(*rng.uniform(0.1, 0.5, 3), position=rng.uniform(-0.1, 0.1, 3), rotation=quat_exp(rng.normal(size=3))),
            mass=rng.uniform(0.5, 3), position=rng.normal(size=3), rotation=quat_exp(rng.normal(size=3)),
        )  # fmt: skip
        other = scene.world if i == 0 else f"b{rng.integers(0, i)}"
        if i == 0 and floating:
            continue
        pair = (other, body) if rng.random() < 0.7 else (body, other)
        joint = KINDS[rng.integers(0, len(KINDS))]
        scene.add_joint(f"j{i}", joint, *pair, position=rng.normal(size=3), rotation=quat_exp(rng.normal(size=3)))
    return scene, rng


def random_state(model, rng):
    t = dyn.links(model)
    q = dyn.moved(t, dyn.neutral(t), rng.normal(size=t.nv) * 0.7)
    return q, rng.normal(size=t.nv), rng.normal(size=t.nv)


@pytest.mark.parametrize("part", range(5))
def test_three_recursions_agree_on_random_trees(part):
    worst = worst_inverse = 0.0
    for seed in range(20 * part, 20 * part + 20):
        scene, rng = random_tree(seed)
        model = scene.build()
        q, v, tau = random_state(model, rng)
        a = dyn.forward_dynamics(model, q, v, tau)
        M, bias = dyn.mass_matrix(model, q), dyn.bias_forces(model, q, v)
        dense = np.linalg.solve(M, tau - bias)
        worst = max(worst, np.abs(a - dense).max() / (1 + np.abs(dense).max()))
        back = dyn.inverse_dynamics(model, q, v, a)
        worst_inverse = max(worst_inverse, np.abs(back - tau).max() / (1 + np.abs(bias).max()))
        assert np.allclose(M, M.T) and np.linalg.eigvalsh(M)[0] > 0
    print(f"20 random trees: articulated bodies against M⁻¹(τ − bias) {worst:.1e}, inverse of forward {worst_inverse:.1e}")
    assert worst < 1e-10 and worst_inverse < 1e-10


def test_many_states_at_once_are_the_single_ones():
    scene, rng = random_tree(3)
    model = scene.build()
    states = [random_state(model, rng) for _ in range(7)]
    q, v, tau = (np.array(x) for x in zip(*states, strict=True))
    many = dyn.forward_dynamics(model, q, v, tau)
    assert many.shape == (7, dyn.links(model).nv)
    assert all(np.array_equal(many[i], dyn.forward_dynamics(model, *states[i])) for i in range(7))
    assert dyn.mass_matrix(model, q).shape == (7, dyn.links(model).nv, dyn.links(model).nv)


@pytest.mark.parametrize("seed", range(12))
def test_the_mass_matrix_gives_the_energy_and_jacobians_the_velocities(seed):
    scene, rng = random_tree(seed)
    model = scene.build()
    q, v, _ = random_state(model, rng)
    moving = dyn.forward_kinematics(model, q, v)
    kinetic = 0.0
    for name, b in model.body_names.items():
        if name == "world":
            continue
        body = moving[name]
        local = quat_rotate(body["rotation"] * [-1, -1, -1, 1], body["spin"])
        mass, inertia = model.bodies.mass.numpy()[b, 0], model.bodies.inertia.numpy()[b, 0]
        kinetic += 0.5 * mass * body["velocity"] @ body["velocity"] + 0.5 * local @ inertia @ local
        J = dyn.jacobian(model, q, name, model.com[b])
        assert np.allclose(J @ v, [*body["velocity"], *body["spin"]], atol=1e-11)
    error = abs(0.5 * v @ dyn.mass_matrix(model, q) @ v - kinetic)
    # the Jacobian of a point is the derivative of its place
    point, h = np.array([0.1, -0.2, 0.3]), 1e-6
    places = []
    for sign in (1, -1):
        pose = dyn.forward_kinematics(model, dyn.moved(model, q, sign * h * v))["b5"]
        places.append(pose["position"] + quat_rotate(pose["rotation"], point))
    slope = np.abs((places[0] - places[1]) / (2 * h) - dyn.jacobian(model, q, "b5", point)[:3] @ v).max()
    print(f"½vMv against the bodies' energy {error:.1e} J; Jacobian against differences {slope:.1e}")
    assert error < 1e-10 * (1 + kinetic) and slope < 1e-7


@pytest.mark.parametrize("seed", range(10))
def test_both_formulations_move_alike(seed):
    """A short, finely stepped run in maximal coordinates against the right-hand side, integrated by SciPy."""
    from scipy.integrate import solve_ivp

    scene, rng = random_tree(seed, n=4)
    sim = sh.Simulation(scene, 2e-5, tolerances=sh.Tolerances(iterations=400, tolerance=1e-13))
    t = dyn.links(sim.model)
    q, v = dyn.neutral(t), rng.normal(size=t.nv) * 0.5
    start = dyn.forward_kinematics(t, q, v)
    for name in sim.model.body_names:
        if name != "world":
            sim.body(name).velocity, sim.body(name).angular_velocity = start[name]["velocity"], start[name]["spin"]
    end = solve_ivp(dyn.rhs(t), (0, 0.05), [*q, *v], rtol=1e-10, atol=1e-12).y[:, -1]
    sim.run(0.05)
    exact = dyn.forward_kinematics(t, end[: t.nq], end[t.nq :])
    error = max(np.abs(sim.body(n).com - exact[n]["com"]).max() for n in sim.model.body_names)
    print(f"centres of mass differ by {error:.1e} m after 0.05 s at dt = 0.02 ms")
    assert error < 2e-5


def test_small_swings_of_chains():
    def hanging(n):
        scene = sh.Scene(gravity=(0, -9.81, 0))
        l, m, last = 1.0 / n, 10.0 / n, "world"
        for i in range(n):
            scene.add_body(
                f"r{i}", mass=m, inertia=(m * l**2 / 12, 1e-3 * m * l**2, m * l**2 / 12), position=(0, -(i + 0.5) * l, 0)
            )
            scene.add_joint(f"h{i}", sh.Revolute("z"), last, f"r{i}", position=(0, -i * l, 0))
            last = f"r{i}"
        return scene.build()

    for n, exact in ((2, (3.79025358, 10.16631584)), (10, (3.76720852, 8.72832155, 14.04538195))):
        got = dyn.natural_frequencies(hanging(n), np.zeros(n))[: len(exact)]
        print(f"n = {n}: {got} rad/s, off by {np.abs(got - exact).max():.1e}")
        assert np.allclose(got, exact, atol=1e-6)


def test_statics_linearisation_and_inverse_kinematics():
    scene = sh.Scene()
    scene.add_body("upper", sh.Box(0.5, 0.05, 0.05), mass=2.0, position=(0.25, 0, 0))
    scene.add_body("lower", sh.Box(0.4, 0.05, 0.05), mass=1.0, position=(0.7, 0, 0))
    scene.add_joint("shoulder", sh.Revolute("y", spring=(30.0, 0.0), damping=0.5), scene.world, "upper", position=(0, 0, 0))
    scene.add_joint("elbow", sh.Revolute("y", spring=(10.0, 0.0), damping=0.2), "upper", "lower", position=(0.5, 0, 0))
    model = scene.build()
    q = dyn.static_equilibrium(model)
    sim = sh.Simulation(scene, 1e-3)
    sim.run(60.0)
    settled = [sim.joint(n).position for n in ("shoulder", "elbow")]
    print(f"equilibrium {q}, a simulation settles at {settled}")
    assert np.allclose(q, settled, atol=1e-6)
    A, B = dyn.linearize(model, q)
    slowest = np.linalg.eigvals(A).real.max()
    assert slowest < 0 and B.shape == (4, 2)
    goal = np.array([0.5, 0.0, -0.4])
    reached = dyn.inverse_kinematics(model, "lower", goal, point=(0.2, 0, 0))
    pose = dyn.forward_kinematics(model, reached)["lower"]
    off = np.linalg.norm(pose["position"] + quat_rotate(pose["rotation"], np.array([0.2, 0, 0])) - goal)
    print(f"inverse kinematics {off:.1e} m off")
    assert off < 1e-9
    with pytest.raises(sh.SimulationError, match="cannot be brought"):
        dyn.inverse_kinematics(model, "lower", (3.0, 0, 0), point=(0.2, 0, 0))


def test_inverse_kinematics_through_balls():
    scene = sh.Scene()
    for i, name in enumerate("abc"):
        joint = sh.Spherical() if i else sh.Revolute("y")
        scene.add_body(name, sh.Box(0.1, 0.1, 0.5), mass=1.0, position=(0, 0, 0.5 * i + 0.25))
        scene.add_joint(f"to {name}", joint, "abc"[i - 1] if i else scene.world, name, position=(0, 0, 0.5 * i))
    bound, rng, worst, tip = sh.dynamics.of(scene), np.random.default_rng(0), 0.0, (0, 0, 0.25)
    for _ in range(50):
        place, turn = bound.pose(bound.moved(bound.neutral(), 0.7 * rng.normal(size=bound.nv)), "c", tip)
        there, so = bound.pose(bound.inverse_kinematics("c", place, rotation=turn, point=tip), "c", tip)
        worst = max(worst, np.abs(there - place).max(), 1.0 - abs(so @ turn))
    print(f"inverse kinematics through two balls: {worst:.1e} m off")
    assert worst < 1e-9
    with pytest.raises(sh.SimulationError, match="position is three finite numbers"):
        bound.inverse_kinematics("c", (0.1, np.nan, 0.2))


def test_reactions_are_those_of_the_step():
    scene = sh.Scene()
    scene.add_body("upper", sh.Box(0.5, 0.05, 0.05), mass=2.0, position=(0.25, 0, 0))
    scene.add_body("lower", sh.Box(0.4, 0.05, 0.05), mass=1.0, position=(0.7, 0, 0))
    scene.add_joint("shoulder", sh.Revolute("y"), scene.world, "upper", position=(0, 0, 0))
    scene.add_joint("elbow", sh.Revolute("y"), "lower", "upper", position=(0.5, 0, 0))  # points backwards
    sim = sh.Simulation(scene, 1e-6, tolerances=sh.Tolerances(iterations=300, tolerance=1e-16))
    sim.step(3)
    exact = dyn.reactions(sim.model, dyn.neutral(sim.model), np.zeros(2))
    for name, (force, torque) in exact.items():
        f, m = sim.joint(name).reaction
        print(name, force, f)
        assert np.allclose(force, f, atol=1e-3) and np.allclose(torque, m, atol=1e-3)


def test_mistakes_are_named():
    scene, _ = random_tree(0)
    model = scene.build()
    with pytest.raises(sh.SimulationError, match="q is"):
        dyn.forward_dynamics(model, [1.0], [1.0])
    with pytest.raises(sh.SimulationError, match="no body is named 'x'"):
        dyn.jacobian(model, dyn.neutral(model), "x")


def test_small_motions_of_a_loop_are_refused_by_name(example):
    model = example("four_bar").make().model
    with pytest.raises(sh.SceneError, match=r"linearize: joint '.' closes a loop"):
        dyn.linearize(model, dyn.neutral(model))


def test_both_spellings_of_linearize():
    assert sh.dynamics.linearise is sh.dynamics.linearize and {"linearise", "linearize"} <= set(sh.dynamics.__all__)
    assert sh.dynamics.Dynamics.linearise is sh.dynamics.Dynamics.linearize
