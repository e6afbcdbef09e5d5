"""The equations of ropes with floats: against finite differences, their Warp twins, and the dense system they eliminate."""

import math

import numpy as np
import pytest
from conftest import device

from sharnir.core.spatial import quat_exp, quat_multiply, quat_to_matrix, skew
from sharnir.emit.algebra import Matrix, Quaternion, Vector
from sharnir.engine.rope import bend as warped
from sharnir.engine.rope import equations as rope
from sharnir.engine.rope import means

SEEDS = range(5)


def vector(x):
    return Vector(*(float(k) for k in x))


def matrix(x):
    return Matrix([[float(k) for k in row] for row in x])


def quaternion(q):
    return Quaternion(vector(q[:3]), float(q[3]))


def array(x):
    return np.array(list(x)) if isinstance(x, Vector) else np.array(x.rows)


def some_turn(rng, size=1.0):
    q = quat_exp(size * rng.normal(size=3))
    return q if q[3] >= 0 else -q


def bend_of(p):
    """`near_bend` or `far_bend` of a turn."""
    s2, c2 = p.v.x**2 + p.v.y**2, p.v.z**2 + p.w**2
    near = s2 <= rope.NEAR and p.v.z**2 <= rope.NEAR * c2
    return (rope.near_bend if near else rope.far_bend)(p, s2, math.sqrt(c2))


@pytest.mark.parametrize("size", [1e-9, 1e-3, 0.1, 0.3, 1.0, 2.0])
@pytest.mark.parametrize("seed", SEEDS)
def test_strain_gradient_and_stiffness_are_those_of_bend(seed, size):
    rng = np.random.default_rng(seed)
    p, EI, GJ = some_turn(rng, size), 2.0, 0.7
    b = bend_of(quaternion(p))
    np.testing.assert_allclose(array(rope.strain_of(quaternion(p), b)), device(warped.bend_vector, p, np.zeros(3)), atol=2e-15)
    got = array(rope.gradient_of(quaternion(p), b, EI, GJ))
    np.testing.assert_allclose(got, device(warped.bend_gradient, p, EI, GJ), atol=1e-12)
    a = some_turn(rng)
    for straight in (0.0, 1.0):
        K = array(rope.stiffness_of(matrix(quat_to_matrix(a)), quaternion(p), b, EI, GJ, straight))
        wanted = device(warped.turning_stiffness, a, p, EI, GJ, 1.0, bool(straight))
        np.testing.assert_allclose(K, wanted, atol=1e-11)


def test_both_forms_of_bend_agree():
    rng = np.random.default_rng(0)
    for _ in range(20):
        p = quaternion(some_turn(rng, 0.2))
        s2, c = p.v.x**2 + p.v.y**2, math.sqrt(p.v.z**2 + p.w**2)
        np.testing.assert_allclose(rope.near_bend(p, s2, c), rope.far_bend(p, s2, c), rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("seed", SEEDS)
def test_mean_moment_does_the_work_of_the_energy(seed):
    """M·(θ_b − θ_a) is what the energy of an interface falls by, however far a step turns."""
    rng = np.random.default_rng(seed)
    a, b, rest, EI, GJ, bar = some_turn(rng), some_turn(rng), 0.1 * rng.normal(size=3), 2.0, 0.7, 3.0
    turn_a, turn_b = 0.5 * rng.normal(size=3), 0.5 * rng.normal(size=3)
    p0 = device(warped.from_rest, a, b, rest)
    new = [quat_multiply(device(means.cayley, t), q) for t, q in ((turn_a, a), (turn_b, b))]
    p1 = device(warped.from_rest, *new, rest)
    e0 = device(warped.bend_vector, p0, np.zeros(3))
    e1 = device(warped.bend_vector, p1, e0)
    g0, g1 = (device(warped.bend_gradient, p, EI, GJ) for p in (p0, p1))
    x = rope.Turning(*(vector(x) for x in (turn_a, turn_b, e0, e1, g0, g1)), EI, GJ, 0.0, 1e-12)
    M = bar * array(rope.mean_moment(matrix(quat_to_matrix(a)), x))
    K = np.array([EI, EI, GJ])
    fell = 0.5 * bar * ((K * e0 * e0).sum() - (K * e1 * e1).sum())
    print(f"work {M @ (turn_b - turn_a):.15f}, energy {fell:.15f}")
    np.testing.assert_allclose(M @ (turn_b - turn_a), fell, atol=1e-9)


@pytest.mark.parametrize("size", [0.0, 1e-3, 0.1, 0.6])
@pytest.mark.parametrize("seed", SEEDS)
def test_slopes_of_a_moment_are_its_derivatives(seed, size):
    """By turns φ of both elements at the end: bends of `size` rad at the start, with damping."""
    rng = np.random.default_rng(seed)
    EI, GJ, end, late = 2.0, 0.7, 0.05, 0.3
    a = some_turn(rng)
    start = [a, quat_multiply(a, some_turn(rng, size))]
    turns = [0.3 * size * rng.normal(size=3) for _ in start]
    p0 = quat_multiply(start[0] * [-1, -1, -1, 1], start[1])
    R = matrix(quat_to_matrix(a))

    def at(phi):
        """The moment after the changes φ, and what its slopes are of."""
        theta = [t + end * array(rope.end_spin(vector(t), vector(f))) for t, f in zip(turns, phi, strict=True)]
        new = [quat_multiply(device(means.cayley, t), q) for t, q in zip(theta, start, strict=True)]
        p1 = quat_multiply(new[0] * [-1, -1, -1, 1], new[1])
        p1 = quaternion(p1 if p1[3] >= 0 else -p1)
        b = bend_of(p1)
        e0, g0 = (device(f, p0, *more) for f, more in ((warped.bend_vector, [np.zeros(3)]), (warped.bend_gradient, [EI, GJ])))
        e1, g1 = rope.strain_of(p1, b), rope.gradient_of(p1, b, EI, GJ)
        return (
            rope.Turning(*(vector(x) for x in theta), vector(e0), e1, vector(g0), g1, EI, GJ, late, 1e-12),
            matrix(quat_to_matrix(new[0])),
            p1,
            b,
        )

    phi = np.zeros((2, 3))
    x, R1, p1, b = at(phi)
    got = rope.moment_slopes(R, R1, x, p1, b, 1.0, end)
    step = 1e-5 / end
    for side, sign in ((1, -1.0), (0, 1.0)):
        wanted = np.zeros((3, 3))
        for k in range(3):
            phi[side, k] = step
            wanted[:, k] = array(rope.mean_moment(R, at(phi)[0])) / (2.0 * step)
            phi[side, k] = -step
            wanted[:, k] -= array(rope.mean_moment(R, at(phi)[0])) / (2.0 * step)
            phi[side, k] = 0.0
        np.testing.assert_allclose(array(got[1 - side]), sign * wanted, atol=1e-8)


@pytest.mark.parametrize("seed", SEEDS)
def test_slope_of_an_element_is_its_derivative(seed):
    """L₁ + b × f, by a spin at the end whose turn is φ."""
    rng = np.random.default_rng(seed)
    h, w0, w, q0, f = 0.1, rng.normal(size=3), rng.normal(size=3), some_turn(rng), vector(rng.normal(size=3))

    def element(w):
        theta = vector(0.5 * h * (w0 + w))
        d0, d1 = rope.tangent(quaternion(q0)), rope.tangent(rope.turned_by(theta, quaternion(q0)))
        return rope.Element(0.3, theta, d0, d1, 0.7, 0.8, f)

    def missed(w):
        x = element(w)
        return array(x.momentum(vector(w))) + np.cross(array(x.lever), array(f))

    x = element(w)
    got = array(x.slope(x.momentum(vector(w)), 0.5 * h))
    for k in range(3):
        dw = array(rope.end_spin(x.theta, vector(np.eye(3)[k])))
        wanted = (missed(w + 1e-6 * dw) - missed(w - 1e-6 * dw)) / 2e-6
        np.testing.assert_allclose(got[:, k], wanted, atol=1e-8)
        moved = (array(element(w + 1e-6 * dw).d1) - array(element(w - 1e-6 * dw).d1)) / 2e-6
        np.testing.assert_allclose(moved, 0.5 * h * np.cross(np.eye(3)[k], array(x.d1)), atol=1e-9)  # what rows take


@pytest.mark.parametrize("bends", [False, True])
def test_elimination_of_an_element_is_that_of_the_dense_system(bends):
    """Two points and the element between them, whose end hangs on given matrices, in v and φ before."""
    rng = np.random.default_rng(3)
    A, own, K, J = (rng.normal(size=(3, 3)) + 3 * np.eye(3) for _ in range(4))
    B, C, D = (rng.normal(size=(3, 3)) for _ in range(3)) if bends else (np.zeros((3, 3)),) * 3
    K, J = (K, J) if bends else (np.zeros((3, 3)),) * 2
    a, load, tip, lever = (rng.normal(size=3) for _ in range(4))
    b, e = (rng.normal(size=3) for _ in range(2)) if bends else (np.zeros(3),) * 2
    x = rope.Hanging(*(matrix(m) for m in (A, B, C, D)), vector(a), vector(b))
    y = rope.along_element(x, vector(tip), vector(lever), matrix(own), vector(load))
    y, U, t = rope.through_interface(y, *((matrix(K), matrix(J)) if bends else (None, None)), vector(e))
    v, before = rng.normal(size=3), rng.normal(size=3)
    #  φ of: own φ + lever × f + M₁ − load = M, M = e − K φ + J φ_before, f and M₁ of the end at v + φ × tip
    S = -skew(tip)
    at_end = own + skew(lever) @ (A @ S + B) + C @ S + D + K
    rhs = e + J @ before + load - skew(lever) @ (A @ v + a) - (C @ v + b)
    phi = np.linalg.solve(at_end, rhs)
    f = A @ (v + S @ phi) + B @ phi + a
    M = e - K @ phi + J @ before
    np.testing.assert_allclose(array(y.A) @ v + array(y.B) @ before + array(y.a), f, atol=1e-12)
    np.testing.assert_allclose(array(y.C) @ v + array(y.D) @ before + array(y.b), M, atol=1e-12)
    C_here = array(rope.along_element(x, vector(tip), vector(lever), matrix(own), vector(load)).C)
    np.testing.assert_allclose(array(t) + array(U) @ (J @ before - C_here @ v), phi, atol=1e-12)


def test_a_slack_element_slides_until_its_impulse_is_the_given_one():
    rng = np.random.default_rng(4)
    A, B, C, D = (matrix(rng.normal(size=(3, 3)) + 3 * np.eye(3)) for _ in range(4))
    x = rope.Hanging(A, B, C, D, vector(rng.normal(size=3)), vector(rng.normal(size=3)))
    d, axis, push = vector(rng.normal(size=3)), vector(rng.normal(size=3)), 0.7
    out, _slide, _sigma = rope.slack_along(x, d, axis, 0.0, push)
    v, phi = vector(rng.normal(size=3)), vector(rng.normal(size=3))
    f = array(out.A @ v) + array(out.B @ phi) + array(out.a)
    np.testing.assert_allclose(f @ array(axis), push, atol=1e-12)
