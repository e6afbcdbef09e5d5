"""Rotors of the tree step: a gyrocompass, what they conserve, and their emitted forms."""

import math
from dataclasses import replace

import numpy as np
import pytest
from test_tree_step import matrix
from test_tree_step import poses as poses_of

from sharnir.engine.tree.forest import FREE, HINGE, ROTOR, Forest, Link, with_rotors
from sharnir.engine.tree.kernel import TreeRunner
from sharnir.engine.tree.number_tree import NumberTree
from sharnir.engine.tree.step import step

pytestmark = pytest.mark.usefixtures("unoptimized")

TO_X = np.array([[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [-1.0, 0.0, 0.0]])  # a frame whose z is along x


def poses(forest, fields):
    """Rotations and centres of mass; a rotor turns as a hinge does."""
    return poses_of(Forest([replace(x, kind=HINGE) if x.kind == ROTOR else x for x in forest.links]), fields)


def set_twists(tree, spins):
    """Bodies at rest but for their spins, rad/s, world axes."""
    for fields, R, spin in zip(tree.fields, poses(tree.forest, tree.fields)[0], spins, strict=True):
        fields["W"] = list(R.T @ spin * (0.5 * tree.h) if tree.own_axes else spin * (0.5 * tree.h))


def set_speeds(tree, speeds):
    """The guess of joint speeds."""
    for i, s in speeds.items():
        for name in ("z", "z1"):
            tree.fields[i][name] = [0.5 * tree.h * s]


def gyrocompass(kind=ROTOR):
    """A platform that turns at (2, 0, 1) rad/s, a frame free about its z, in it a rotor along x at 300 rad/s."""
    turning = np.array([2.0, 0.0, 1.0])
    axis = turning / np.linalg.norm(turning)
    side = np.cross([0.0, 1.0, 0.0], axis)
    P = np.stack([side, np.cross(axis, side), axis], 1)
    links = [
        Link(-1, HINGE, P, inertia=np.eye(3) * 1e9, mass=1.0),
        Link(0, HINGE, P.T, inertia=np.eye(3) * 0.003, mass=1.0),
        Link(1, kind, TO_X, inertia=np.diag([0.012, 0.012, 0.02]), mass=1.0),
    ]
    return links, turning


def exact_gyrocompass():
    """The frame's angle after 1 s, from 0.5 rad: (A + i) φ̈ = A Ω² sin φ cos φ − C (s + Ω cos ½) Ω sin φ."""
    C, A, i, O = 0.02, 0.012, 0.003, 2.0
    total = 300.0 + O * math.cos(0.5)

    def rate(y):
        return np.array([y[1], (A * O**2 * math.sin(y[0]) * math.cos(y[0]) - C * total * O * math.sin(y[0])) / (A + i)])

    y, h = np.array([0.5, 0.0]), 1e-4
    for _ in range(10000):
        a = rate(y)
        b = rate(y + 0.5 * h * a)
        c = rate(y + 0.5 * h * b)
        y = y + h / 6 * (a + 2 * b + 2 * c + rate(y + h * c))
    return y[0]


@pytest.mark.parametrize(("h", "most"), [(5e-3, 2e-2), pytest.param(1e-3, 1e-3, marks=pytest.mark.slow)])
def test_a_gyrocompass_points_where_it_should(h, most):
    links, turning = gyrocompass()
    tree = NumberTree(Forest(links), h, gravity=(0, 0, 0))
    tree.fields[1]["q"] = [0.5]
    tree.place()
    set_twists(tree, [turning, turning, turning + 300 * np.array([math.cos(0.5), math.sin(0.5), 0.0])])
    set_speeds(tree, {0: np.linalg.norm(turning), 2: 300.0})
    for _ in range(round(1 / h)):
        step(tree)
    assert abs(tree.fields[1]["q"][0] - exact_gyrocompass()) < most  # an ordinary hinge: 0.061 and 0.27


def satellite():
    body = np.diag([0.3, 0.5, 0.4])
    wheels = [(np.eye(3), [0.1, 0.0, 0.2]), (TO_X, [0.0, 0.3, 0.0])]
    links = [Link(-1, FREE, inertia=body, mass=5.0)]
    links += [Link(0, HINGE, F, at, [0.0, 0.0, 0.05], np.diag([0.012, 0.012, 0.02]), 0.7) for F, at in wheels]
    return Forest(with_rotors(links))


def whole(tree):
    """Energy, momentum and angular momentum about the origin."""
    R, X = poses(tree.forest, tree.fields)
    T, P, L = 0.0, np.zeros(3), np.zeros(3)
    for i, link in enumerate(tree.forest.links):
        v, w = (np.array(tree.fields[i][n]) * 2 / tree.h for n in "VW")
        if tree.own_axes:
            v, w = R[i] @ v, R[i] @ w
        spin = R[i] @ link.inertia @ R[i].T @ w
        T += 0.5 * link.mass * v @ v + 0.5 * w @ spin
        P = P + link.mass * v
        L = L + link.mass * np.cross(X[i], v) + spin
    return T, P, L


@pytest.mark.parametrize("own_axes", [True, False])
def test_rotors_on_a_free_body_keep_energy_and_momenta(own_axes):
    tree = NumberTree(satellite(), 5e-3, gravity=(0, 0, 0), own_axes=own_axes)
    assert [link.kind for link in tree.forest.links] == [FREE, ROTOR, ROTOR]
    spin = np.array([0.3, -0.2, 0.5])
    set_twists(tree, [spin, spin + [0, 0, 200.0], spin + [300.0, 0, 0]])
    set_speeds(tree, {1: 200.0, 2: 300.0})
    for _ in range(3):
        step(tree)  # velocities of the start, which do not fit the joints, are sorted out
    T, P, L = whole(tree)
    for _ in range(20):
        step(tree)
        t, p, l = whole(tree)
        assert abs(t - T) < 1e-12 * T
        np.testing.assert_allclose(p, P, atol=1e-12)
        np.testing.assert_allclose(l, L, atol=1e-12 * np.abs(L).max())


def test_a_damped_rotor_stops_as_it_should():
    """s₁ = s₀ (1 − ½hc/C)/(1 + ½hc/C): dampers are taken at the mean speed."""
    h, c, C = 1e-3, 2.0, 0.02
    link = Link(-1, ROTOR, inertia=np.diag([0.012, 0.012, C]), mass=1.0, laws={"damping": c})
    tree = NumberTree(Forest([link]), h, gravity=(0, 0, 0))
    set_twists(tree, [np.array([0.0, 0.0, 300.0])])
    for n in range(20):
        step(tree)
        share = 0.5 * h * c / C
        assert tree.fields[0]["W"][2] * 2 / h == pytest.approx(300.0 * ((1 - share) / (1 + share)) ** (n + 1), rel=1e-12)


@pytest.mark.slow  # compiles two forms; rotors in simulations are tested beside this file
def test_all_forms_of_the_step_agree_on_rotors():
    links = satellite().links
    links[1].laws = {"friction_static": 0.5, "friction_dynamic": 0.4, "damping": 1e-3}
    forest = Forest(links)
    tree = NumberTree(forest, 2e-3)
    spin = np.array([0.3, -0.2, 0.5])
    set_twists(tree, [spin, spin + [0, 0, 200.0], spin + [300.0, 0, 0]])
    ends, start = [], [list(f["W"]) for f in tree.fields]
    for specialize in (True, False):
        runner = TreeRunner(forest, 2e-3, specialize=specialize)
        if not specialize:  # this form keeps twists in world axes
            for fields, R in zip(tree.fields, poses(forest, tree.fields)[0], strict=True):
                fields["W"] = list(R @ fields["W"])
        for (i, name), row in runner.rows.items():
            runner.numbers()[row] = np.array(tree.fields[i][name])[:, None]
        runner.step(50)
        ends.append(np.concatenate([runner.numbers()[runner.rows[i, n], 0] for i, n in ((0, "rotation"), (1, "q"), (2, "q"))]))
    for fields, W in zip(tree.fields, start, strict=True):
        fields["W"] = W
    for _ in range(50):
        step(tree)
    reference = np.concatenate([tree.fields[i][n] for i, n in ((0, "rotation"), (1, "q"), (2, "q"))])
    for end in ends:
        np.testing.assert_allclose(end, reference, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(matrix(reference[:4]) @ matrix(reference[:4]).T, np.eye(3), atol=1e-12)


def test_a_rotor_carries_nothing_and_is_symmetric():
    rotor = Link(-1, ROTOR, inertia=np.diag([1.0, 1.0, 2.0]), mass=1.0)
    with pytest.raises(ValueError, match="link 1: it hangs on link 0, a rotor"):
        Forest([rotor, Link(0, HINGE, inertia=np.eye(3), mass=1.0)])
    with pytest.raises(ValueError, match="link 0: a rotor is symmetric about its axis"):
        Forest([Link(-1, ROTOR, inertia=np.diag([1.0, 1.5, 2.0]), mass=1.0)])
