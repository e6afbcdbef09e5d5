"""Rotations, inertias and their motion: pure functions, on the device (`wp.func`) and, below, on the host (NumPy).

Quaternions are (x, y, z, w) and turn body axes into world axes.
"""

import math
import warnings
from collections.abc import Iterable, Sequence

import numpy as np
import warp as wp

from sharnir.core.misspellings import by_name
from sharnir.core.types import EPSILON, mat33, quat, real, vec3
from sharnir.errors import SceneError, SceneWarning, as_numbers, callers_level, number

# The average-momentum rule below stops when it is met to this fraction of the momentum.
ROTATION_TOLERANCE = wp.constant(real(max(1.0e-11, 2.0 * EPSILON)))
ROTATION_ITERATIONS = wp.constant(40)
ROUNDING_OF_TURNS = wp.constant(real(16.0 * EPSILON))


@wp.func
def some(v: vec3) -> bool:
    """Whether a vector is anything but exactly zero."""
    return v[0] != real(0.0) or v[1] != real(0.0) or v[2] != real(0.0)


@wp.func
def worse(most: real, x: real) -> real:
    """The larger of the two; not a number where one of them is none (`wp.max` would hide that)."""
    if x <= most or wp.isnan(most):
        return most
    return x


@wp.func
def matrix(q: quat) -> mat33:
    """The matrix of a unit quaternion: what `wp.quat_to_matrix` returns, at a fourth of its cost."""
    x = q[0] + q[0]
    y = q[1] + q[1]
    z = q[2] + q[2]
    xx = q[0] * x
    yy = q[1] * y
    zz = q[2] * z
    xy = q[0] * y
    xz = q[0] * z
    yz = q[1] * z
    wx = q[3] * x
    wy = q[3] * y
    wz = q[3] * z
    one = real(1.0)
    return mat33(one - yy - zz, xy - wz, xz + wy, xy + wz, one - xx - zz, yz - wx, xz - wy, yz + wx, one - xx - yy)


@wp.func
def rotated(R: mat33, A: mat33) -> mat33:
    """A symmetric tensor given in body axes, in world axes: R A Rᵀ."""
    B = R * A
    r0 = vec3(R[0, 0], R[0, 1], R[0, 2])
    r1 = vec3(R[1, 0], R[1, 1], R[1, 2])
    r2 = vec3(R[2, 0], R[2, 1], R[2, 2])
    b0 = vec3(B[0, 0], B[0, 1], B[0, 2])
    b1 = vec3(B[1, 0], B[1, 1], B[1, 2])
    xy = wp.dot(b0, r1)
    xz = wp.dot(b0, r2)
    yz = wp.dot(b1, r2)
    zz = wp.dot(vec3(B[2, 0], B[2, 1], B[2, 2]), r2)
    return mat33(wp.dot(b0, r0), xy, xz, xy, wp.dot(b1, r1), yz, xz, yz, zz)


@wp.func
def sinc_terms(x2: real) -> tuple[real, real]:
    """sin x / x and (1 − cos x) / x² from x²; by series below x = 0.1, where they are good to the last bit."""
    a = real(1.0) - x2 / real(6.0) * (real(1.0) - x2 / real(20.0) * (real(1.0) - x2 / real(42.0)))
    b = real(0.5) - x2 / real(24.0) * (real(1.0) - x2 / real(30.0) * (real(1.0) - x2 / real(56.0)))
    if x2 > real(0.01):
        x = wp.sqrt(x2)
        a = wp.sin(x) / x
        s = wp.sin(real(0.5) * x)
        b = real(2.0) * s * s / x2
    return a, b


@wp.func
def exp_quat(phi: vec3) -> quat:
    """The unit quaternion of the rotation vector φ."""
    half = real(0.5) * phi
    x2 = wp.dot(half, half)
    a, b = sinc_terms(x2)
    return quat(a * half[0], a * half[1], a * half[2], real(1.0) - x2 * b)


@wp.func
def log_quat(q: quat) -> vec3:
    """The rotation vector of a unit quaternion, angle in [0, π]."""
    v = vec3(q[0], q[1], q[2])
    w = q[3]
    if w < real(0.0):
        v = -v
        w = -w
    s = wp.length(v)
    k = real(2.0)
    if s > real(1.0e-9):
        k = real(2.0) * wp.atan2(s, w) / s
    return v * k


@wp.func
def small_turn(q: quat) -> vec3:
    """`log_quat` of what is mostly next to no rotation: then by a series, good to 1e-13 of it."""
    v = vec3(q[0], q[1], q[2])
    s2 = wp.dot(v, v)
    if s2 < real(1.0e-6) and q[3] > real(0.0):
        return v * (real(2.0) + s2 / real(3.0))
    return log_quat(q)


@wp.func
def unit(q: quat) -> quat:
    """A quaternion whose length is 1 but for rounding, brought back to 1 (one Newton step, no root)."""
    return q * (real(1.5) - real(0.5) * wp.dot(q, q))


@wp.func
def kept_unit(q: quat) -> quat:
    """A quaternion scaled to unit length, one that has it left to the bit: coordinates of a pose give that pose again."""
    if wp.abs(wp.dot(q, q) - real(1.0)) > ROUNDING_OF_TURNS:
        return wp.normalize(q)
    return q


@wp.func
def turned(q: quat, phi: vec3) -> quat:
    """Orientation q after the world rotation vector φ."""
    return unit(exp_quat(phi) * q)


@wp.func
def mean_free_spin(l: vec3, guess: vec3, inertia: mat33, dt: real) -> vec3:
    """Ω of a free rotation by the average-momentum rule, in body axes; l is the angular momentum at the start of the step.

        Ω = I⁻¹ ½(ℓ + ℓ⁺),   ℓ⁺ = exp(−Δt Ω) ℓ

    The rotation is about Ω, so ℓ⁺·Ω = ℓ·Ω, and ½ℓ⁺I⁻¹ℓ⁺ − ½ℓI⁻¹ℓ = (ℓ⁺ − ℓ)·Ω = 0: energy and momentum are kept exactly,
    the rule is symmetric (second order), and a spin about a principal axis is exact at any step. Solved by Newton steps with
    the slope I − ½Δt [ℓ⁺]× T, T = E + b[φ]× + (1 − a)/φ² [φ]×² (φ = −Δt Ω); one or two where the guess is good.
    """
    omega = guess
    scale = wp.length_sq(l)
    for _i in range(ROTATION_ITERATIONS):
        phi = omega * (-dt)
        x2 = wp.dot(phi, phi)
        a, b = sinc_terms(x2)
        c = wp.cross(phi, l)
        mean = l + real(0.5) * (a * c + b * wp.cross(phi, c))
        change = inertia * omega - mean
        off = wp.length_sq(change)
        if off <= ROTATION_TOLERANCE * ROTATION_TOLERANCE * scale:
            break
        slope = wp.skew(real(2.0) * mean - l) * (real(0.5) * dt)
        if x2 > real(0.01):
            S = wp.skew(phi)
            slope = slope + slope * S * b + slope * S * S * ((real(1.0) - a) / x2)
        omega = omega - wp.inverse(inertia - slope) * change
        if x2 < real(0.01) and real(100.0) * x2 * off <= ROTATION_TOLERANCE * scale:
            break  # what was off is squared by the step
    return omega


@wp.func
def advance_rotation(q: quat, L: vec3, inertia: mat33, inv_inertia: mat33, dt: real) -> quat:
    """One step of a free rotation with the world angular momentum L kept."""
    l = wp.quat_rotate_inv(q, L)
    omega = inv_inertia * l
    return unit(q * exp_quat(mean_free_spin(l, omega, inertia, dt) * dt))


# ---- the same, on the host -------------------------------------------------------------------------------------------


def unit_quat(given: object, who: str, error: type[Exception] = SceneError) -> np.ndarray:
    """A quaternion (x, y, z, w), or an array of them, scaled to unit length; refused when not finite or far (1e-3) from it."""
    q = as_numbers(given)
    if q.shape[-1:] != (4,) or not np.all(np.isfinite(q)):
        raise error(f"{who}: a rotation is a finite unit quaternion (x, y, z, w), got {given!r}")
    norm = np.linalg.norm(q, axis=-1, keepdims=True)
    if np.any(np.abs(norm - 1.0) > 1e-3):
        raise error(f"{who}: a rotation has unit length to 1e-3, got {q.tolist()} of length {np.ravel(norm)[0]:g}")
    return q / norm


def cross(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a × b over the last axis; several times quicker than np.cross on single vectors."""
    x, y, z = a[..., 0], a[..., 1], a[..., 2]
    u, v, w = b[..., 0], b[..., 1], b[..., 2]
    return np.stack([y * w - z * v, z * u - x * w, x * v - y * u], -1)


def quat_multiply(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The rotation b followed by a; arrays (..., 4)."""
    a, b = np.asarray(a, float), np.asarray(b, float)
    v, w = a[..., :3], a[..., 3:]
    u, t = b[..., :3], b[..., 3:]
    return np.concatenate([w * u + t * v + cross(v, u), w * t - np.sum(v * u, -1, keepdims=True)], -1)


def quat_conjugate(q: np.ndarray) -> np.ndarray:
    """The inverse of a unit quaternion; arrays (..., 4)."""
    return np.asarray(q, float) * np.array([-1.0, -1.0, -1.0, 1.0])


def quat_rotate(q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """v turned by q; arrays (..., 4) and (..., 3)."""
    q, v = np.asarray(q, float), np.asarray(v, float)
    t = 2.0 * cross(q[..., :3], v)
    return v + q[..., 3:] * t + cross(q[..., :3], t)


def quat_exp(phi: np.ndarray) -> np.ndarray:
    """Unit quaternions of rotation vectors (..., 3)."""
    phi = np.asarray(phi, float)
    angle = np.linalg.norm(phi, axis=-1, keepdims=True)
    return np.concatenate([0.5 * np.sinc(angle / (2 * np.pi)) * phi, np.cos(0.5 * angle)], -1)


def in_degrees(what: str, values: Iterable[float]) -> str:
    """A question where all values of an angle look like degrees; "" where they do not."""
    values = [x for x in values if math.isfinite(x)]
    most = max((abs(x) for x in values), default=0.0)
    if not (15.0 <= most <= 360.0 and all(x % 5.0 == 0.0 for x in values)):
        return ""
    return f"{what} of {most:g} rad is {most / (2 * math.pi):.3g} turns; are degrees meant? math.radians({most:g}) has it"


def _ask_of_degrees(who: str, *angles: float) -> None:
    """Warn of angles that look like degrees: whole numbers, as they are written, not as they are computed."""
    question = in_degrees("an angle", angles)
    if question and all(isinstance(angle, int) or angle in (0, 45, 90, 180) for angle in angles):
        warnings.warn(f"{who}: {question}", SceneWarning, stacklevel=callers_level())


@by_name
def rpy(roll: float, pitch: float, yaw: float) -> np.ndarray:
    """The quaternion (x, y, z, w) of turns by roll, pitch and yaw (rad) about the fixed axes x, y, z in turn, as in URDF."""
    for what, angle in (("roll", roll), ("pitch", pitch), ("yaw", yaw)):
        number("rpy", what, angle)
    _ask_of_degrees("rpy", roll, pitch, yaw)
    about_x, about_y, about_z = (quat_exp(angle * e) for angle, e in zip((roll, pitch, yaw), np.eye(3), strict=True))
    return quat_multiply(about_z, quat_multiply(about_y, about_x))


def direction_of(axis: str | Sequence[float] | np.ndarray, who: str) -> np.ndarray:
    """The unit vector of "x", "y", "z", "-x", "-y", "-z" or of a vector; `who` says in messages what it is."""
    letter = axis.removeprefix("-") if isinstance(axis, str) else ""
    if letter and letter in "xyz" and len(letter) == 1:
        return np.eye(3)["xyz".index(letter)] * (1.0 if letter == axis else -1.0)
    v = as_numbers(axis)
    if v.shape != (3,) or not np.all(np.isfinite(v)) or np.linalg.norm(v) < 1e-9:
        raise SceneError(f"{who} is 'x', 'y', 'z' (with or without a minus) or a finite vector other than zero, got {axis!r}")
    out: np.ndarray = v / np.linalg.norm(v)
    return out


@by_name
def about(axis: str | Sequence[float], angle: float) -> np.ndarray:
    """The quaternion (x, y, z, w) of a turn by an angle (rad) about "x", "y", "z", "-x", "-y", "-z" or a vector."""
    number("about", "angle (rad)", angle)
    _ask_of_degrees("about", angle)
    return quat_exp(angle * direction_of(axis, "about: axis"))


def quat_log(q: np.ndarray) -> np.ndarray:
    """Rotation vectors of unit quaternions (..., 4), angle in [0, π]."""
    q = np.asarray(q, float)
    q = np.where(q[..., 3:] < 0, -q, q)
    s = np.linalg.norm(q[..., :3], axis=-1, keepdims=True)
    return np.where(s > 1e-12, 2 * np.arctan2(s, q[..., 3:]) / np.maximum(s, 1e-300), 2.0) * q[..., :3]


def turn_from(q: np.ndarray, rest: np.ndarray) -> np.ndarray:
    """The rotation vector (..., 3) from the rotation vector `rest` (3,) to the quaternions q (..., 4), parent axes."""
    return quat_log(quat_multiply(q, np.broadcast_to(quat_conjugate(quat_exp(rest)), np.shape(q))))


def quat_to_matrix(q: np.ndarray) -> np.ndarray:
    """Rotation matrices (..., 3, 3) of unit quaternions (..., 4)."""
    q = np.asarray(q, float)
    return np.stack([quat_rotate(q, np.broadcast_to(e, (*q.shape[:-1], 3))) for e in np.eye(3)], -1)


def matrix_to_quat(R: np.ndarray) -> np.ndarray:
    """Unit quaternions (..., 4) of rotation matrices (..., 3, 3), w ≥ 0."""
    x, y, z = np.moveaxis(np.asarray(R, float), -1, 0)
    x, y, z = (np.moveaxis(v, -1, 0) for v in (x, y, z))
    # the largest of the four squared components makes the other three well defined
    k = np.array([
        [x[0] - y[1] - z[2], y[0] + x[1], z[0] + x[2], y[2] - z[1]],
        [y[0] + x[1], y[1] - x[0] - z[2], z[1] + y[2], z[0] - x[2]],
        [z[0] + x[2], z[1] + y[2], z[2] - x[0] - y[1], x[1] - y[0]],
        [y[2] - z[1], z[0] - x[2], x[1] - y[0], x[0] + y[1] + z[2]],
    ])  # fmt: skip
    q = np.asarray(np.linalg.eigh(np.moveaxis(k, (0, 1), (-2, -1)))[1][..., -1])
    return np.where(q[..., 3:] >= 0, q, -q)


def skew(v: np.ndarray) -> np.ndarray:
    """The matrix [v]× with [v]× u = v × u."""
    x, y, z = v
    return np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])


def frame_from_axes(first: np.ndarray, second: np.ndarray | None = None, *, slots: tuple[int, int] = (2, 0)) -> np.ndarray:
    """The quaternion of the right-handed frame whose axis `slots[0]` is `first` and whose axis `slots[1]` is `second`.

    Without `second` the frame is the smallest turn that takes the slot's letter axis to `first`.
    """
    a = np.asarray(first, float) / np.linalg.norm(first)
    i, j = slots
    if second is None:
        e = np.eye(3)[i]
        if a @ e < -1 + 1e-12:  # opposite: half a turn about any perpendicular axis
            return np.array([*np.eye(3)[j], 0.0])
        q = np.array([*np.cross(e, a), 1.0 + a @ e])
        return np.asarray(q / np.linalg.norm(q))
    b = np.asarray(second, float) - a * (a @ np.asarray(second, float))
    b /= np.linalg.norm(b)
    k = 3 - i - j
    R = np.zeros((3, 3))
    R[:, i], R[:, j] = a, b
    R[:, k] = np.cross(a, b) * (1.0 if (j - i) % 3 == 1 else -1.0)
    return matrix_to_quat(R)
