"""The step of trees in joint coordinates: what it conserves, its emitted forms, and the direct solver as its oracle."""

import numpy as np
import pytest

import sharnir as sh
from sharnir.engine.tree.forest import BALL, FREE, HINGE, SLIDER, Forest, Link
from sharnir.engine.tree.kernel import TreeRunner
from sharnir.engine.tree.number_tree import NumberTree
from sharnir.engine.tree.step import step

pytestmark = pytest.mark.usefixtures("unoptimized")


def rotation(rng):
    A = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    return A * np.sign(np.linalg.det(A))


def random_forest(seed, kinds, floating=False, links=6):
    rng = np.random.default_rng(seed)
    out = []
    for i in range(links):
        A = rng.normal(size=(3, 3))
        kind = FREE if i == 0 and floating else int(rng.choice(kinds))
        base = -1 if i == 0 else int(rng.integers(max(0, i - 3), i))
        frame = np.eye(3) if kind == FREE else rotation(rng)
        anchor = rng.normal(size=3) * 0.3 if i else np.zeros(3)
        com = np.zeros(3) if kind == FREE else rng.normal(size=3) * 0.3
        out.append(Link(base, kind, frame, anchor, com, A @ A.T * 0.02 + np.eye(3) * 0.02, rng.uniform(0.5, 2)))
    return Forest(out)


def scatter(tree, seed):
    """Random coordinates, at rest."""
    rng = np.random.default_rng(seed)
    for link, fields in zip(tree.forest.links, tree.fields, strict=True):
        fields["q"] = [float(rng.normal() * 0.5)]
        q = rng.normal(size=4)
        fields["rotation"] = [0.0, 0.0, 0.0, 1.0] if link.kind < BALL else [float(x) for x in q / np.linalg.norm(q)]
    tree.place()


def matrix(q):
    x, y, z, w = q
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def poses(forest, fields):
    """Rotations and centres of mass from joint coordinates alone."""
    R, O, X = [], [], []
    for link, f in zip(forest.links, fields, strict=True):
        Rp, Op = (R[link.base], O[link.base]) if link.base >= 0 else (np.eye(3), np.zeros(3))
        F, o = Rp @ link.frame, Op + Rp @ link.anchor
        if link.kind == HINGE:
            c, s = np.cos(f["q"][0]), np.sin(f["q"][0])
            F = F @ np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])
        elif link.kind == SLIDER:
            o = o + F[:, 2] * f["q"][0]
        else:
            F = F @ matrix(f["rotation"])
        if link.kind == FREE:
            o = np.array(f["position"])
        R.append(F)
        O.append(o)
        X.append(o + F @ link.com)
    return R, X


def measure(tree):
    """Kinetic and potential energy, angular momentum about the origin."""
    R, X = poses(tree.forest, tree.fields)
    kinetic = potential = 0.0
    L = np.zeros(3)
    gravity = np.array(list(tree.gravity)) / (0.25 * tree.h**2)
    for i, link in enumerate(tree.forest.links):
        v, w = (np.array(tree.fields[i][n]) * 2 / tree.h for n in "VW")
        if tree.own_axes:
            v, w = R[i] @ v, R[i] @ w
        I = R[i] @ link.inertia @ R[i].T
        kinetic += 0.5 * link.mass * v @ v + 0.5 * w @ I @ w
        potential -= link.mass * gravity @ X[i]
        L += link.mass * np.cross(X[i], v) + I @ w
    return kinetic, potential, L


@pytest.mark.parametrize("own_axes", [True, False])
@pytest.mark.parametrize("kinds", [[HINGE], [HINGE, SLIDER], [HINGE, SLIDER, BALL]])
def test_energy_is_kept_to_rounding(kinds, own_axes):
    tree = NumberTree(random_forest(3, kinds), 5e-3, own_axes=own_axes)
    scatter(tree, 4)
    start, most, worst = sum(measure(tree)[:2]), 0.0, 0.0
    for _ in range(60):
        step(tree)
        kinetic, potential, _ = measure(tree)
        most, worst = max(most, kinetic), max(worst, abs(kinetic + potential - start))
    assert worst < 1e-12 * most


def test_a_floating_tree_keeps_its_angular_momentum():
    tree = NumberTree(random_forest(5, [HINGE, SLIDER, BALL], floating=True), 5e-3)
    scatter(tree, 6)
    tree.fields[0]["V"] = [0.01, 0.0, 0.0]  # and nothing else: the first step has to sort that out
    for _ in range(20):
        step(tree)
    tree.gravity = type(tree.gravity)(0.0, 0.0, 0.0)
    kinetic, _, start = measure(tree)
    for _ in range(40):
        step(tree)
        now, _, L = measure(tree)
        assert abs(now - kinetic) < 1e-12 * kinetic
        np.testing.assert_allclose(L, start, atol=1e-11 * np.abs(start).max())


@pytest.mark.parametrize("floating", [False, True])
def test_all_forms_of_the_step_agree(floating):
    forest = random_forest(7, [HINGE, SLIDER, BALL], floating)
    tree = NumberTree(forest, 2e-3)
    scatter(tree, 8)
    ends = []
    runners = [TreeRunner(forest, 2e-3, specialize=s, worlds=w) for s, w in ((True, 1), (False, 1), (False, 3))]
    for runner in runners:
        for (i, name), row in runner.rows.items():
            runner.numbers()[row] = np.array(tree.fields[i][name])[:, None]
        runner.step(50)
        fields = [{} for _ in forest.links]
        for (i, name), row in runner.rows.items():
            fields[i][name] = list(runner.numbers()[row][:, 0])
        ends.append(np.array(poses(forest, fields)[1]))
    for _ in range(50):
        step(tree)
    reference = np.array(poses(forest, tree.fields)[1])
    for end in ends:
        np.testing.assert_allclose(end, reference, atol=1e-12)
    one, many = runners[1].numbers(), runners[2].numbers()
    assert np.array_equal(many, np.repeat(one, 3, 1))  # a world in a batch equals the same world alone, to the bit


def arm(axes, **laws):
    """A chain of boxes along x; the joint frames have the hinge axis along z."""
    to = {"x": [[0, 0, 1], [1, 0, 0], [0, 1, 0]], "y": [[0, 1, 0], [0, 0, 1], [1, 0, 0]], "z": np.eye(3)}
    Z = [np.array(to[a], float) for a in axes]
    links = []
    for i, F in enumerate(Z):
        P = Z[i - 1] if i else np.eye(3)
        I = F.T @ np.diag([2 * 0.08**2, 0.3**2 + 0.08**2, 0.3**2 + 0.08**2]) @ F / 12
        links.append(Link(i - 1, HINGE, P.T @ F, P.T @ [0.3 if i else 0.0, 0, 0], F.T @ [0.15, 0, 0], I, 1.0, dict(laws)))
    return Forest(links)


def same_arm(axes, **keywords):
    scene, last = sh.Scene(), None
    for i, a in enumerate(axes):
        body = scene.add_body(f"l{i}", sh.Box(0.3, 0.08, 0.08), mass=1.0, position=(0.15 + 0.3 * i, 0, 0))
        scene.add_joint(f"j{i}", sh.Revolute(a, **keywords), last or scene.world, body, position=(0.3 * i, 0, 0))
        last = body
    return sh.Simulation(scene, 1e-3, solver="direct", sleep=False)


LAWS = {
    "nothing": ({}, {}),
    "dampers": ({"damping": 0.1}, {"damping": 0.1}),
    "springs": ({"stiffness": 5.0, "rest": 0.1}, {"spring": (5.0, 0.1)}),
    "friction": ({"friction_static": 0.05, "friction_dynamic": 0.05}, {"friction": 0.05}),
    "friction that falls": ({"friction_static": 0.9, "friction_dynamic": 0.5}, {"friction": sh.Friction(0.9, 0.5)}),
}


@pytest.mark.parametrize("what", LAWS)
def test_the_direct_solver_makes_the_same_steps(what):
    laws, keywords = LAWS[what]
    runner, sim = TreeRunner(arm("yzyzy", **laws), 1e-3), same_arm("yzyzy", **keywords)
    rows = [runner.rows[i, "q"].start for i in range(5)]
    for i, row in enumerate(rows):
        sim.joint(f"j{i}").position = runner.numbers()[row, 0] = 0.3 * np.sin(1.7 * i)
    off = 0.0
    for _ in range(200):
        sim.step()
        runner.step()
        off = max(off, np.abs(runner.numbers()[rows, 0] - np.array(sim.q)).max())
    assert off < 1e-10


def test_all_forms_of_the_step_agree_with_laws():
    laws = {
        "friction_static": 3.0, "friction_dynamic": 2.0, "limit_lower": -0.5, "limit_upper": 0.4, "restitution": 0.3,
        "servo_kp": 20.0, "servo_kd": 0.1, "servo_position": 0.3, "servo_max_force": 4.0, "damping": 0.01,
    }  # fmt: skip
    forest = arm("yzy", **laws)
    tree = NumberTree(forest, 2e-3)
    ends = []
    for specialize in (True, False):
        runner = TreeRunner(forest, 2e-3, specialize=specialize, tolerance=1e-16)
        runner.step(150)
        ends.append([runner.numbers()[runner.rows[i, "q"], 0] for i in range(3)])
    stuck = struck = 0.0
    for _ in range(150):
        step(tree)
        stuck += sum(f["stuck"][0] for f in tree.fields)
        struck += sum(abs(f["limit"][0]) > 0 for f in tree.fields)
    assert stuck > 10 and struck > 10  # friction held axes, and limits were met
    reference = [f["q"] for f in tree.fields]
    for end in ends:
        np.testing.assert_allclose(end, reference, atol=1e-9)


def test_friction_of_a_long_chain_settles_in_few_iterations():
    n = 30
    runner = TreeRunner(arm("yz" * (n // 2), friction_static=0.05, friction_dynamic=0.05), 1e-3)
    for i in range(n):
        runner.numbers()[runner.rows[i, "q"]] = 0.3 * np.sin(1.7 * i)
    counts = []
    for _ in range(100):
        runner.step()
        counts.append(runner.iterations.numpy()[0])
    assert np.mean(counts) < 5
    assert max(counts) < 20  # of 30 at most


def test_a_bounce_off_a_limit_keeps_the_momenta_of_a_floating_tree():
    base, link = random_forest(11, [HINGE], floating=True, links=2).links
    link.laws = {"limit_upper": 0.2, "limit_lower": -1.0, "restitution": 0.5, "effort": 2.0}
    tree = NumberTree(Forest([base, link]), 1e-3, gravity=(0.0, 0.0, 0.0))
    bounced, last = False, 0.0
    for _ in range(400):
        step(tree)
        q = tree.fields[1]["q"][0]
        bounced, last = bounced or q < last - 1e-5, q
        kinetic, _, L = measure(tree)
        assert np.abs(L).max() < 1e-11 * max(1.0, kinetic)
    assert bounced
