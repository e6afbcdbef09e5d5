"""Friction of many balls at once: every step of chains and trees is solved, and its friction is the law's."""

import numpy as np
import pytest

import sharnir as sh
from sharnir.core.spatial import quat_exp, quat_to_matrix

INERTIA = np.diag([2 * 0.08**2, 0.3**2 + 0.08**2, 0.3**2 + 0.08**2]) / 12


def balls(seed, count, friction, moving, branching=1, **laws):
    """Rods of 0.3 m on balls, each on one of the last ones, in random directions, from rest or spinning."""
    rng = np.random.default_rng(seed)
    scene, ends, names = sh.Scene(), [np.zeros(3)], ["world"]
    for i in range(count):
        base = int(rng.integers(max(0, i - branching + 1), i + 1))
        way = rng.normal(size=3)
        way /= np.linalg.norm(way)
        axis = np.cross([1.0, 0, 0], way)
        turn = quat_exp(axis / np.linalg.norm(axis) * np.arccos(way[0]))
        mass = float(10 ** rng.uniform(-0.5, 0.5))
        motion = {"angular_velocity": 3 * rng.normal(size=3)} if moving else {}
        scene.add_body(f"b{i}", mass=mass, inertia=INERTIA * mass, position=ends[base] + 0.15 * way, rotation=turn, **motion)
        scene.add_joint(f"j{i}", sh.Spherical(friction=friction, **laws), names[base], f"b{i}", position=ends[base])
        ends.append(ends[base] + 0.3 * way)
        names.append(f"b{i}")
    return scene


class Watched:
    """A simulation whose friction is compared with the law after each step: no more than the bound, and against the slip."""

    def __init__(self, scene, dt, friction):
        self.sim, self.dt, self.friction = sh.Simulation(scene, dt, solver="direct", sleep=False), dt, friction
        m = self.sim.model
        frame = m.joints.parent_frame.numpy()
        self.frames = quat_to_matrix(frame.reshape(len(m.parents), -1, 4)[:, 0])
        self.parents, self.children = np.array(m.parents), np.array(m.children)
        self.passes = 0

    def step(self):
        state = self.sim.state
        R0 = quat_to_matrix(state.rotation.numpy()[:, 0].copy())
        before = self.sim.energy().total
        self.sim.step()
        self.passes += int(self.sim.solver.done.numpy()[0])
        energy = self.sim.energy()
        assert energy.total - before <= 1e-12 * max(energy.kinetic, abs(energy.total))
        R1 = quat_to_matrix(state.rotation.numpy()[:, 0])
        D = R1 @ np.swapaxes(R0, 1, 2)  # mean spins from the turn of each body in the step
        v = np.stack([D[:, 2, 1] - D[:, 1, 2], D[:, 0, 2] - D[:, 2, 0], D[:, 1, 0] - D[:, 0, 1]], 1)
        w = 2 * v / (1 + np.trace(D, axis1=1, axis2=2))[:, None] / self.dt
        slip = w[self.children] - w[self.parents]
        f = np.einsum("jab,jb->ja", R0[self.parents] @ self.frames, state.friction_impulse.numpy()[:, 0].reshape(-1, 3))
        f /= self.dt * self.friction
        if self.sim.solver.parts.numpy()[0] == 1:  # else impulses are those of the last part
            assert np.linalg.norm(f, axis=1).max() <= 1 + 1e-6
            size = np.linalg.norm(slip, axis=1)
            slides = (size > 1e-6 * max(1, size.max())) & (state.stuck.numpy()[::3, 0] == 0)
            np.testing.assert_allclose((f * slip).sum(1)[slides], -size[slides], rtol=1e-4)


@pytest.mark.parametrize(
    ("count", "friction", "moving", "branching", "dt"),
    [
        (20, 0.5, False, 1, 1e-3),
        (45, 0.15, False, 1, 3e-4),  # many begin to slip in one step
        (60, 30.0, True, 1, 5e-4),  # many come to rest in one step
        (40, 2.0, True, 4, 2e-3),
        (24, 0.5, False, 1, 1.9e-2),  # a whip at long steps
        (3, 100.0, True, 1, 2e-2),
    ],
)
def test_all_balls_of_a_tree_obey_the_law(count, friction, moving, branching, dt):
    watched = Watched(balls(count, count, friction, moving, branching), dt, friction)
    assert watched.sim.solver is not None
    for _ in range(25):
        watched.step()
    assert watched.sim.solver._lean
    assert watched.passes < 25 * 150


@pytest.mark.slow
def test_random_trees_of_balls_obey_the_law():
    passes = []
    for seed in range(60):
        rng = np.random.default_rng(1000 + seed)
        count, friction = int(np.exp(rng.uniform(np.log(3), np.log(100)))), float(10 ** rng.uniform(-3, 2))
        dt = float(10 ** rng.uniform(np.log10(2e-4), np.log10(5e-3)))
        watched = Watched(balls(seed, count, friction, rng.random() < 0.5, int(rng.integers(1, 7))), dt, friction)
        for _ in range(30):
            watched.step()
        passes.append(watched.passes / 30)
    assert np.median(passes) < 10


@pytest.mark.parametrize(("seed", "count", "friction", "moving"), [(6, 3, 0.1, True), (8, 12, 0.2, False)])
def test_friction_with_other_laws_is_as_friction_alone(seed, count, friction, moving):
    """A spring so weak that it does nothing takes the other way through the code."""
    ends = []
    for laws in ({}, {"spring": (1e-14, 0.0)}):
        sim = sh.Simulation(balls(seed, count, friction, moving, **laws), 1e-3, solver="direct", sleep=False)
        sim.step(60)
        ends.append(sim.state.position.numpy()[:, 0].copy())
    np.testing.assert_allclose(ends[1], ends[0], atol=1e-12)


def test_many_balls_with_friction_and_springs_come_to_rest():
    sim = sh.Simulation(balls(10, 20, 2.0, True, spring=(1e-3, 0.0)), 1e-3, solver="direct", sleep=False)
    for _ in range(40):
        sim.step()
    assert sim.solver._lean
    assert np.isfinite(sim.state.position.numpy()).all()


def beyond(limit):
    scene = sh.Scene(gravity=(0, 0, 0))
    scene.add_body("b", sh.Box(0.3, 0.08, 0.08), mass=1.0, position=(0.0, 0, 0))
    scene.add_joint("j", sh.Spherical(limit=limit), "world", "b", position=(0, 0, 0))
    return scene


@pytest.mark.parametrize("limit", [sh.Cardan(x=(-0.3, 0.3)), sh.SwingTwist((0.3, 0.4), (-0.3, 0.3))])
def test_a_ball_far_beyond_its_limit_returns_without_speed(limit):
    """By displacements, as an axis does; speeds would throw it back."""
    sim = sh.Simulation(beyond(limit), 1e-3, solver="direct", sleep=False)
    sim.body("b").rotation = quat_exp(np.array([0.5, 0.0, 0.0]))
    sim.step(40)
    assert sim.solver._lean
    angle = 2 * np.arctan2(sim.state.rotation.numpy()[1, 0, 0], sim.state.rotation.numpy()[1, 0, 3])
    assert 0.3 - 1e-9 <= angle <= 0.3 + 6e-3
    assert np.abs(sim.state.spin.numpy()[1, 0]).max() < 0.3


SHARED = {
    "plane": lambda: sh.Planar("z", friction=3.0),
    "universal": lambda: sh.Universal(("x", "y"), friction=0.05),
    "translations": lambda: sh.Joint("x y z", friction=5.0, damping=0.5),
}


@pytest.mark.parametrize("kind", SHARED)
def test_one_step_a_call_is_many_to_the_bit_where_axes_share_friction(kind):
    sims = []
    for _ in range(2):
        scene = sh.Scene(gravity=(1.0, 2.0, -9.81))
        scene.add_body("a", sh.Box(0.3, 0.1, 0.1), mass=1.0, position=(0.1, 0, 0), velocity=(0.5, 0.3, 0))
        scene.add_joint("shared", SHARED[kind](), "world", "a", position=(0, 0, 0))
        scene.add_body("b", sh.Box(0.3, 0.1, 0.1), mass=0.5, position=(0.4, 0, 0))
        scene.add_joint("hinge", sh.Revolute("y", friction=0.02), "a", "b", position=(0.25, 0, 0))
        sims.append(sh.Simulation(scene, 1e-3, solver="direct", sleep=False))
    for _ in range(60):
        sims[0].step()
    sims[1].step(60)
    assert sims[0].solver._lean
    for name in ("position", "rotation", "velocity", "spin", "friction_impulse"):
        np.testing.assert_array_equal(*(getattr(s.state, name).numpy() for s in sims), err_msg=name)
