"""Friction of balls against its own law: moments that joints carried follow from the motion alone, by the balance of momenta."""

import numpy as np
import pytest

import sharnir as sh
from sharnir.core.spatial import quat_exp, quat_to_matrix

BALLS = 10


def chain(seed):
    """Bodies of any inertia, thrown or at rest, on balls whose friction bounds span two decades."""
    rng = np.random.default_rng([seed, BALLS])
    scene, base, at, bounds = sh.Scene(), "world", np.zeros(3), []
    rests = rng.random() < 0.4
    for i in range(BALLS):
        along = rng.normal(size=3)
        along *= 0.3 / np.linalg.norm(along)
        Q = quat_to_matrix(quat_exp(rng.normal(size=3)))
        moving = {} if rests else {"angular_velocity": 3 * rng.normal(size=3), "velocity": 0.5 * rng.normal(size=3)}
        mass, inertia = float(rng.uniform(0.2, 1)), Q @ np.diag(2e-3 * rng.uniform(1, 2, 3)) @ Q.T
        scene.add_body(f"b{i}", mass=mass, inertia=inertia, position=at + 0.5 * along, **moving)
        bounds.append(float(10 ** rng.uniform(-2, 0.3)))
        scene.add_joint(f"j{i}", sh.Spherical(friction=bounds[-1]), base, f"b{i}", position=at)
        at, base = at + along, f"b{i}"
    return scene, bounds, float(rng.choice([1e-3, 2e-3, 5e-3]))


def motion(sim):
    state = sim.state
    x, q, v, w = (np.array(getattr(state, n).numpy()[1:, 0], float) for n in ("position", "rotation", "velocity", "spin"))
    return x, np.array([quat_to_matrix(p) for p in q]), v, w


def mean_spin(R0, R1, dt):
    """ω̄ of R₁ = cay(dt ω̄) R₀."""
    turn = R1 @ R0.T
    S = (turn - np.eye(3)) @ np.linalg.inv(turn + np.eye(3))
    return 2 / dt * np.array([S[2, 1], S[0, 2], S[1, 0]])


def moments(sim, before, after):
    """Moment impulses of the joints on their children in a step, and the mean spins of the bodies; impacts come after it."""
    (x0, R0, v0, w0), (x1, R1, _, _) = before, after
    model, dt, n = sim.model, sim.dt, len(x0)
    mass, I = model.bodies.mass.numpy()[1:, 0], model.bodies.inertia.numpy()[1:, 0]
    at_parent, at_child = (t.numpy()[:, 0] for t in (model.joints.parent_point, model.joints.child_point))
    spins = np.array([mean_spin(R0[i], R1[i], dt) for i in range(n)])
    handed, moment, out = np.zeros(3), np.zeros(3), np.zeros((n, 3))
    for i in reversed(range(n)):
        mean, W = 0.5 * (R0[i] + R1[i]), R0[i].T @ w0[i]
        own = mass[i] * (2 * (x1[i] - x0[i]) / dt - 2 * v0[i] - dt * np.array(model.gravity)) + handed
        turned = R1[i] @ I[i] @ (2 * R0[i].T @ spins[i] - W) - R0[i] @ I[i] @ W
        moment = turned - np.cross(mean @ at_child[i], own) + moment
        if i + 1 < n:
            moment = moment + np.cross(mean @ at_parent[i + 1], handed)
        out[i], handed = moment, own
    return out, spins


def missed(moment, bound, mean, start):
    """By how much friction misses its law: it slides at its bound against the mean, or less of it holds, or keeps the pose."""
    over = max(0.0, np.linalg.norm(moment) / bound - 1)
    slides = np.linalg.norm(moment / bound + mean / max(np.linalg.norm(mean), 1e-300))
    return min(slides, np.linalg.norm(2 * mean - start) + over, np.linalg.norm(mean) + over)


@pytest.mark.parametrize("seed", [4, 22, 26, 30])
def test_friction_of_balls_meets_its_law_in_every_step(seed):
    """In these chains balls stop and reverse, and another solver finds other solutions of the same law."""
    scene, bounds, dt = chain(seed)
    sim = sh.Simulation(scene, dt, solver="direct", sleep=False)
    sim.step()
    worst = 0.0
    for _ in range(20):
        before = motion(sim)
        sim.step()
        found, spins = moments(sim, before, motion(sim))
        relative = [np.diff(np.vstack([np.zeros(3), x]), axis=0) for x in (spins, before[3])]
        worst = max(worst, *(missed(*x) for x in zip(found, np.array(bounds) * dt, *relative, strict=True)))
    assert sim.solver._lean
    assert worst < 1e-6
