"""The pure functions of the kernels, one by one, against linear algebra, closed forms and finite differences."""

import numpy as np
import pytest
import warp as wp
from conftest import device

from sharnir.core import spatial
from sharnir.core.spatial import quat_exp, quat_multiply, quat_rotate, quat_to_matrix, skew
from sharnir.core.types import mat33, real, vec3
from sharnir.engine.articulated import matrices, passes
from sharnir.engine.direct.energy import means as turns
from sharnir.engine.rope import bend, terms
from sharnir.engine.rope import means as rope_means
from sharnir.laws import prepare as laws
from sharnir.laws import rows, solve
from sharnir.laws.solve import friction_3d
from sharnir.model import joint_geometry as joints
from sharnir.runtime.rope_view import bend_and_twist

SEEDS = range(5)


def positive(rng, n):
    """A positive matrix."""
    X = rng.normal(size=(n, n))
    return X @ X.T + 0.1 * np.eye(n)


def some_turn(rng, size=1.0):
    q = quat_exp(size * rng.normal(size=3))
    return q if q[3] >= 0 else -q


def turned(q, axis, by):
    """q turned on the left by a small angle."""
    return quat_multiply(quat_exp(by * np.eye(3)[axis]), q)


def slopes(f, q, h=1e-6):
    """Derivative of f by a turn on the left of q, by central differences: a column for each axis."""
    return np.stack([(np.asarray(f(turned(q, k, h))) - f(turned(q, k, -h))) / (2 * h) for k in range(3)], -1)


# ---- rotations --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_rotations_of_the_device_are_those_of_the_host(seed):
    rng = np.random.default_rng(seed)
    q, phi = some_turn(rng), rng.uniform(-1.7, 1.7, 3)
    np.testing.assert_allclose(device(spatial.matrix, q), quat_to_matrix(q), atol=1e-14)
    np.testing.assert_allclose(device(spatial.exp_quat, phi), quat_exp(phi), atol=1e-14)
    np.testing.assert_allclose(device(spatial.log_quat, quat_exp(phi)), phi, atol=1e-13)
    A = positive(rng, 3)
    R = quat_to_matrix(q)
    np.testing.assert_allclose(device(spatial.rotated, R, A), R @ A @ R.T, atol=1e-13)


@pytest.mark.parametrize("dt", [1e-3, 0.1, 1.0])
def test_free_rotation_keeps_energy_and_momentum(dt):
    rng = np.random.default_rng(3)
    inertia, q, L = np.diag([0.2, 0.5, 0.6]), some_turn(rng), rng.normal(size=3)

    def energy(q):
        l = quat_to_matrix(q).T @ L
        return 0.5 * l @ np.linalg.solve(inertia, l)

    start = energy(q)
    for _ in range(10):
        q = device(spatial.advance_rotation, q, L, inertia, np.linalg.inv(inertia), dt)
    print(f"energy {energy(q) / start - 1:.1e} off after ten steps of {dt} s")
    assert abs(energy(q) / start - 1) < 2e-11


@pytest.mark.parametrize("seed", SEEDS)
def test_cayley_turns(seed):
    """cay(θ) turns v by exactly θ × ½(v + cay(θ) v), and turns compose as the direct pass says."""
    rng = np.random.default_rng(seed)
    theta, v = rng.normal(size=3), rng.normal(size=3)
    new = device(rope_means.carried, theta, v)
    np.testing.assert_allclose(new - v, np.cross(theta, 0.5 * (v + new)), atol=1e-14)
    q = device(rope_means.cayley, theta)
    np.testing.assert_allclose(quat_rotate(q, v), new, atol=1e-14)
    np.testing.assert_allclose(device(turns.cayley_quat, theta), q, atol=1e-15)
    a = some_turn(rng)
    np.testing.assert_allclose(device(rope_means.turn_between, a, quat_multiply(q, a)), theta, atol=1e-12)


# ---- blocks of two bodies ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("free", [0, 1, 0b100, 0b110000, 0b101, 0b111000, 0b111])
def test_inverse_of_a_joints_block(free):
    """W holds what is held and does nothing along what is free."""
    rng = np.random.default_rng(free)
    K = positive(rng, 6)
    F = [quat_to_matrix(some_turn(rng)) for _ in range(2)]
    ll, la, aa = device(rows.block_inverse, F[0], F[1], free, K[:3, :3], K[:3, 3:], K[3:, 3:])
    W = np.block([[ll, la], [la.T, aa]])
    P = np.zeros((6, 6))
    P[:3, :3], P[3:, 3:] = F
    held = [i for i in range(6) if not free >> i & 1]
    H = P[:, held]
    np.testing.assert_allclose(W, H @ np.linalg.solve(H.T @ K @ H, H.T), atol=1e-10)


def test_response_of_a_body():
    rng = np.random.default_rng(0)
    r, J = rng.normal(size=3), positive(rng, 3)
    ll, la, aa = device(rows.body_response, r, 0.5, J)
    S = skew(r)
    np.testing.assert_allclose(ll, 0.5 * np.eye(3) - S @ J @ S, atol=1e-13)
    np.testing.assert_allclose(la, -S @ J, atol=1e-13)
    np.testing.assert_allclose(aa, J)


# ---- laws -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("u, f, held", [(0.1, -0.05, 1), (-0.1, 0.05, 1), (3.0, -0.4, 0), (-3.0, 0.4, 0)])
def test_friction_of_one_axis(u, f, held):
    """Holds up to its static bound, slides with the dynamic one."""
    got = device(solve.friction_1d, u, 2.0, 0.5, 0.4, 0.0, 1.0, False)
    np.testing.assert_allclose(got[0], f)
    assert got[1] == held


def test_friction_never_works_for_the_motion():
    rng = np.random.default_rng(1)
    for _ in range(200):
        u, before, A, slide, share = *rng.normal(size=2), rng.uniform(0.1, 3), rng.uniform(0, 2), rng.choice([0.5, 1.0])
        f, _held = device(solve.friction_1d, u, A, slide, slide, before, float(share), False)
        mean = (u + A * f) * share + before * (1 - share)
        assert f * mean <= 1e-14 and abs(f) <= slide * (1 + 1e-12)


@wp.kernel(module="test_device")
def ball_frictions(v: wp.array(dtype=vec3), M: wp.array(dtype=mat33), slide: real, f: wp.array(dtype=vec3)):
    i = wp.tid()
    out, _held = friction_3d(v[i], M[i], wp.inverse(M[i]), slide, slide, real(1.0), vec3(real(0.0)), real(1.0))
    f[i] = out


def test_friction_of_three_axes():
    """What slides is opposed by the bound, exactly against the velocity that is left; what is slow is held."""
    rng = np.random.default_rng(0)
    n, slide = 100, 0.3
    M, v = np.array([positive(rng, 3) for _ in range(n)]), 5 * rng.normal(size=(n, 3))
    v[n // 2 :] *= 1e-3
    f = wp.zeros(n, dtype=vec3)
    wp.launch(ball_frictions, dim=n, inputs=[wp.array(v, dtype=vec3), wp.array(M, dtype=mat33), slide, f])
    f = f.numpy()
    left, size = v + np.einsum("nij,nj->ni", M, f), np.linalg.norm(f, axis=1)
    slides = np.linalg.norm(left, axis=1) > 1e-9
    assert slides.sum() > n // 3 and (~slides).sum() > n // 4
    np.testing.assert_allclose(size[slides], slide, rtol=1e-9)
    left = left[slides]
    np.testing.assert_allclose(f[slides], -slide * left / np.linalg.norm(left, axis=1)[:, None], atol=1e-8)
    assert np.all(size <= slide * (1 + 1e-9))


def test_limit_of_an_axis_stops_it():
    v, f, limit, _ = device(solve.axis_1d, -2.0, 0.5, 0.0, 0.0, -0.1, 1e30, 0.0, 1.0, False)
    assert (v, f) == (-0.1, 0.0)
    np.testing.assert_allclose(limit, 1.9 / 0.5)


def test_linear_laws_of_an_axis_are_met():
    """Δp = −a u⁺ − b − p where nothing is bounded; a servo at its cap gives no more."""
    u, A, p, a, b, servo_a, servo_b = 0.7, 0.3, 0.2, 1.5, -0.4, 2.0, 0.6
    none = (0.0, 0.0, -1e30, 1e30, 0.0, 1.0, False)
    dp = device(solve.solve_axis, u, A, p, a, b, servo_a, servo_b, 1e30, *none)[0]
    np.testing.assert_allclose(p + dp, -(a + servo_a) * (u + A * dp) - b - servo_b, atol=1e-14)
    dp = device(solve.solve_axis, u, A, p, a, b, servo_a, servo_b, 0.1, *none)[0]
    np.testing.assert_allclose(p + dp, -a * (u + A * dp) - b - 0.1, atol=1e-14)


def test_springs_that_a_step_resolves_keep_their_energy():
    assert device(laws.resolved_spring, 0.01, 100.0, 0.0, 1.0) == 1.0
    assert device(laws.resolved_spring, 0.01, 1e9, 0.0, 1.0) == 0.0


# ---- joints -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_rates_of_cardan_angles(seed):
    q = some_turn(np.random.default_rng(seed), 0.5)
    _angles, columns = device(joints.cardan_limits, quat_to_matrix(q))
    wanted = slopes(lambda q: device(joints.cardan_limits, quat_to_matrix(q))[0], q)
    np.testing.assert_allclose(columns.T, wanted, atol=1e-8)


@pytest.mark.parametrize("seed", SEEDS)
def test_rates_of_a_cone_and_its_twist(seed):
    """At the edge of the cone its row is the derivative of the room that is left."""
    rng = np.random.default_rng(seed)
    a, b, psi = 0.9, 0.4, rng.uniform(0, 2 * np.pi)
    s = np.array([np.cos(psi), np.sin(psi), 0])
    q = quat_multiply(quat_exp(s / np.hypot(s[0] / a, s[1] / b)), quat_exp(np.array([0, 0, rng.uniform(-1, 1)])))
    room, columns = device(joints.swing_twist_limits, q, a, b)
    wanted = slopes(lambda q: device(joints.swing_twist_limits, q, a, b)[0], q)
    assert abs(room[0]) < 1e-14
    np.testing.assert_allclose(columns.T[[0, 2]], wanted[[0, 2]], atol=1e-8)


@pytest.mark.parametrize("seed", SEEDS)
def test_spring_of_a_ball_is_the_slope_of_its_energy(seed):
    rng = np.random.default_rng(seed)
    q, rest, k = some_turn(rng), 0.3 * rng.normal(size=3), np.array([1.0, 2.0, 3.0])

    def energy(q):
        p = quat_multiply(q, quat_exp(-rest))
        x = 2 * np.arctan2(np.linalg.norm(p[:3]), abs(p[3]))
        phi = np.sign(p[3]) * p[:3] / np.linalg.norm(p[:3]) * x
        return 0.5 * (k * phi * phi).sum()

    np.testing.assert_allclose(device(joints.ball_pull, q, rest, k), slopes(energy, q), atol=1e-7)


# ---- trees ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 3, 6])
def test_small_inverse(n):
    U = np.zeros((6, 6))
    U[:n, :n] = positive(np.random.default_rng(n), n)
    np.testing.assert_allclose(device(matrices.small_inverse, U, n)[:n, :n], np.linalg.inv(U[:n, :n]), atol=1e-9)


def test_a_direction_that_is_locked():
    rng = np.random.default_rng(0)
    M, f, g, wanted = positive(rng, 6), rng.normal(size=6), rng.normal(size=6), 0.7
    Y = np.linalg.inv(M)
    Z, y = device(passes.condition, Y, Y @ f, np.trace(Y), g, wanted)
    np.testing.assert_allclose(g @ y, wanted)
    np.testing.assert_allclose(Z @ g, 0, atol=1e-10)


def test_inertia_shifted_to_another_point():
    rng = np.random.default_rng(0)
    M, r = positive(rng, 6), rng.normal(size=3)
    A, B, D = M[:3, :3], M[:3, 3:], M[3:, 3:]
    C = np.block([[np.eye(3), -skew(r)], [np.zeros((3, 3)), np.eye(3)]])
    N = C.T @ M @ C
    for got, wanted in zip(device(matrices.shifted, A, B, D, r), (N[:3, 3:], N[3:, 3:]), strict=True):
        np.testing.assert_allclose(got, wanted, atol=1e-12)
    whole = np.block([[A, B], [B.T, D]]) + rng.normal(size=(6, 6))  # nor need it be symmetric, nor both arms the same
    end = rng.normal(size=3)
    rows, columns = np.eye(6), np.eye(6)
    rows[:3, 3:], columns[:3, 3:] = -skew(r), -skew(end)
    N = rows.T @ whole @ columns
    got = device(terms.seen_from, whole[:3, :3], whole[:3, 3:], whole[3:, :3], whole[3:, 3:], r, end)
    for x, wanted in zip(got, (N[:3, 3:], N[3:, :3], N[3:, 3:]), strict=True):
        np.testing.assert_allclose(x, wanted, atol=1e-12)


def test_inverse_of_symmetric_matrices():
    D = positive(np.random.default_rng(0), 3)
    for f in (terms.inverse, rows.positive_inverse):
        np.testing.assert_allclose(device(f, D), np.linalg.inv(D), atol=1e-10)


# ---- bend and twist of ropes ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1e-3, 0.3, 1.0, 2.0])
@pytest.mark.parametrize("seed", SEEDS)
def test_slopes_of_bend_and_twist(seed, size):
    p = some_turn(np.random.default_rng(seed), size)
    e, *B = device(bend.bend_slopes, p)
    np.testing.assert_allclose(e, bend_and_twist(p)[1], atol=1e-13)
    np.testing.assert_allclose(B, slopes(lambda q: bend_and_twist(q)[1], p), atol=1e-7)


def test_bend_is_the_angle_of_tangents_and_twist_the_rest():
    for twist in (0.0, 0.5, 2.0):
        half = quat_exp(np.array([0, 0, twist / 2]))
        p = quat_multiply(half, quat_multiply(quat_exp(np.array([0.3, 0.4, 0.0])), half))
        np.testing.assert_allclose(device(bend.bend_vector, p, np.zeros(3)), [0.3, 0.4, twist], atol=1e-13)
