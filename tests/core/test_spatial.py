"""Rotations on the host against each other and against SciPy."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from sharnir import SceneError
from sharnir.core.spatial import (
    frame_from_axes,
    matrix_to_quat,
    quat_conjugate,
    quat_exp,
    quat_log,
    quat_multiply,
    quat_rotate,
    quat_to_matrix,
    skew,
    unit_quat,
)

RNG = np.random.default_rng(0)
QUATS = np.array([q / np.linalg.norm(q) for q in RNG.normal(size=(20, 4))])


def test_against_scipy():
    R = Rotation.from_quat(QUATS)
    v = RNG.normal(size=(20, 3))
    assert np.allclose(quat_rotate(QUATS, v), R.apply(v), atol=1e-14)
    assert np.allclose(quat_to_matrix(QUATS), R.as_matrix(), atol=1e-14)
    assert np.allclose(quat_log(QUATS), R.as_rotvec(), atol=1e-13)
    assert np.allclose(quat_to_matrix(quat_multiply(QUATS[:10], QUATS[10:])), (R[:10] * R[10:]).as_matrix(), atol=1e-14)
    assert np.allclose(quat_multiply(QUATS, quat_conjugate(QUATS)), [0, 0, 0, 1], atol=1e-15)
    assert np.allclose(quat_to_matrix(quat_exp(R.as_rotvec())), R.as_matrix(), atol=1e-14)


def test_matrix_to_quat_and_back():
    for q in [*QUATS, (1, 0, 0, 0), (0, 1, 0, 0), (0, 0, 1, 0), (0, 0, 0, 1)]:
        assert np.allclose(quat_to_matrix(matrix_to_quat(quat_to_matrix(np.array(q)))), quat_to_matrix(np.array(q)), atol=1e-14)


def test_frames_from_axes():
    for slots in ((2, 0), (0, 1), (1, 0), (0, 2), (1, 2)):
        for v in [*RNG.normal(size=(5, 3)), -np.eye(3)[slots[0]]]:
            u = np.cross(v, RNG.normal(size=3))
            R = quat_to_matrix(frame_from_axes(v, slots=slots))
            assert np.allclose(R[:, slots[0]], v / np.linalg.norm(v)) and np.linalg.det(R) == pytest.approx(1)
            R = quat_to_matrix(frame_from_axes(v, u, slots=slots))
            assert np.allclose(R[:, slots[1]], u / np.linalg.norm(u)) and np.linalg.det(R) == pytest.approx(1)


def test_skew_is_the_cross_product():
    a, b = RNG.normal(size=(2, 3))
    assert np.allclose(skew(a) @ b, np.cross(a, b))


def test_unit_quat_mends_a_little_and_refuses_much():
    assert np.linalg.norm(unit_quat(np.array([0, 0, 0, 1.0005]), "x")) == pytest.approx(1, abs=1e-15)
    with pytest.raises(SceneError, match="body 'x': a rotation has unit length"):
        unit_quat(np.array([0, 0, 0, 1.1]), "body 'x'")
