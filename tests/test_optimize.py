"""Planned motions: where the answer is known, their gradient, and a pole that is swung up."""

import numpy as np
import pytest
from conftest import load_example

import sharnir as sh
from sharnir.optimize import bounded


def sliding(**acts):
    """A mass of 2 kg on a rail, at 0.5 m: each step is linear."""
    scene = sh.Scene(gravity=(0, 0, 0))
    scene.add_body("mass", sh.Box(0.1, 0.1, 0.1), mass=2.0)
    scene.add_joint("rail", sh.Prismatic("x", **acts), scene.world, "mass", position=(0, 0, 0))
    sim = sh.Simulation(scene, 0.02, solver="direct")
    sim.joint("rail").position = 0.5
    return sim


def test_one_iteration_solves_a_linear_problem():
    sim = sliding(spring=(30.0, 0.0), damping=1.0)
    Q, R, Qf, n = np.diag([3.0, 0.5]), 0.02, np.diag([50.0, 20.0]), 60
    plan = sh.optimize.ilqr(
        sim, n, goal=0.2, state_cost=np.diag(Q), input_cost=R, final_cost=np.diag(Qf), inputs=["rail"], iterations=3
    )
    linear = sim.linearize(["rail"])
    # all states are x = F x₀ + G u + what the spring's rest gives; the least of the quadratic cost in u is a linear equation
    A, B = linear.A, linear.B
    x0 = np.array([0.5, 0.0])
    F = [np.linalg.matrix_power(A, t) for t in range(n + 1)]
    G = [np.hstack([F[t - 1 - s] @ B if s < t else np.zeros((2, 1)) for s in range(n)]) for t in range(n + 1)]
    goal, weights = np.array([0.2, 0.0]), [*[Q] * n, Qf]
    H = R * np.eye(n) + sum(g.T @ w @ g for g, w in zip(G, weights, strict=True))
    slope = sum(g.T @ w @ (f @ x0 - goal) for f, g, w in zip(F, G, weights, strict=True))
    assert np.allclose(plan.commands[:, 0], -np.linalg.solve(H, slope), atol=1e-8)
    assert plan.converged
    assert plan.costs[1] == pytest.approx(plan.cost, rel=1e-12)  # the first iteration was the last
    assert sim.q[0] == 0.5 and sim.time == 0.0 and sim.joint("rail").effort == 0.0  # as it was


def test_no_small_change_of_the_commands_costs_less():
    module = load_example("swing_up")
    plan, sim = module.plan(), module.make()
    start = sim.snapshot()

    def cost(commands):
        sim.restore(start)
        total = 0.0
        for u in commands:
            x = np.array([sim.q[0], sim.q[1] - np.pi, *sim.qd])
            total += 0.5 * (0.01 * x[0] ** 2 + 1e-3 * u[0] ** 2)
            sim.joint("rail").effort = u[0]
            sim.step()
        x = np.array([sim.q[0], sim.q[1] - np.pi, *sim.qd])
        return total + 0.5 * x @ np.diag([100, 100, 10, 10]) @ x

    assert cost(plan.commands) == pytest.approx(plan.cost, rel=1e-9)
    rng = np.random.default_rng(0)
    inside = np.abs(plan.commands) < 5.0 - 1e-9
    for _ in range(20):
        way = rng.normal(size=plan.commands.shape) * inside
        up, down = (cost(plan.commands + by * way) for by in (1e-4, -1e-4))
        assert abs(up - down) / 2e-4 < 0.02 * np.linalg.norm(way)  # the gradient
        assert up + down > 2.0 * plan.cost


def test_a_pole_is_swung_up_within_the_limits():
    module = load_example("swing_up")
    assert np.abs(module.plan().commands).max() == 5.0
    module.check(module.make())


def test_least_between_limits():
    rng = np.random.default_rng(1)
    for _ in range(50):
        root = rng.normal(size=(3, 3))
        H, g = root @ root.T + 0.1 * np.eye(3), rng.normal(size=3)
        limits = np.stack([-rng.uniform(0, 1, 3), rng.uniform(0, 1, 3)], 1)
        way = bounded(H, g, limits)
        slope = H @ way + g
        for k in range(3):  # no way down that is allowed
            assert slope[k] == pytest.approx(0.0, abs=1e-9) or (
                (way[k] == limits[k, 0] and slope[k] > 0) or (way[k] == limits[k, 1] and slope[k] < 0)
            )


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"goal": [0.0, 1.0]}, "goal is 1 finite numbers"),
        ({"goal": 0.0, "limits": -1.0}, "lower limits are below"),
        ({"goal": 0.0, "commands": np.zeros((3, 1))}, "commands are 10 × 1"),
        ({"goal": 0.0, "state_cost": -1.0}, "state_cost is a number"),
        ({"goal": 0.0, "inputs": ["rial"]}, "is 'rail' meant"),
        ({"goal": 0.0, "limit": 1.0}, "is 'limits' meant"),
    ],
)
def test_mistakes_are_named(how, words):
    with pytest.raises((sh.SceneError, sh.SimulationError, sh.ArgumentError), match=words):
        sh.optimize.ilqr(sliding(), 10, **how)
