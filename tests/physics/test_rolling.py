"""Rolling of curved bodies on a plane against the equation of rolling without slip: rattleback, Euler's disc, top."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import sharnir as sh
from sharnir.core.spatial import quat_exp, quat_to_matrix

G, UP = 9.81, np.array([0.0, 0.0, 1.0])


def matrix(q):
    return np.reshape(quat_to_matrix(np.reshape(q, (1, 4))), (3, 3))


def solve_rolling(support, mass, inertia, turn, spin, duration):
    """Rotation matrices (n, 3, 3) and spins (n, 3) at every millisecond.

    Args:
        support: the lowest point from the centre of mass, for the upward direction, both in the body's axes, m.
        inertia: (3, 3) kg·m².
    """

    def rate(_, y):
        q, w = y[:4] / np.linalg.norm(y[:4]), y[4:]
        R = matrix(q)
        up, small = R.T @ UP, 1e-6
        r, up_rate = R @ support(up), -np.cross(R.T @ w, up)
        r_rate = R @ (support(up + small * up_rate) - support(up - small * up_rate)) / (2 * small) + np.cross(w, r)
        S = np.array([[0, -r[2], r[1]], [r[2], 0, -r[0]], [-r[1], r[0], 0]])
        J = R @ inertia @ R.T
        moment = np.cross(r, mass * (G * UP - np.cross(w, r_rate))) - np.cross(w, J @ w)
        turning = 0.5 * np.append(q[3] * w + np.cross(w, q[:3]), -w @ q[:3])
        return np.append(turning, np.linalg.solve(J + mass * S.T @ S, moment))

    times = np.arange(round(1000 * duration) + 1) / 1000
    found = solve_ivp(rate, (0, duration), np.append(turn, spin), "DOP853", times, rtol=1e-9, atol=1e-11).y.T
    return np.array([matrix(q / np.linalg.norm(q)) for q in found[:, :4]]), found[:, 4:]


def roll(support, shape, mass, inertia, com, turn, spin, duration, dt, low):
    """Likewise of a simulation, at every step; the energy above that at rest with the centre at `low`, m, to the start's."""
    ground = sh.Material(friction=5.0)
    scene = sh.Scene()
    scene.add_ground(material=ground)
    R = matrix(turn)
    r, offset = R @ support(R.T @ UP), R @ com
    scene.add_body(
        "body", shape, mass=mass, inertia=inertia, com=com, position=-r[2] * UP - offset, rotation=turn,
        velocity=np.cross(spin, -r - offset), angular_velocity=spin, material=ground,
    )  # fmt: skip
    sim = sh.Simulation(scene, dt, solver="direct")
    rotations, spins, energies = [R], [spin], [sim.energy().total]
    for _ in range(round(duration / dt)):
        sim.step()
        rotations.append(matrix(sim.body("body").rotation))
        spins.append(sim.body("body").angular_velocity)
        energies.append(sim.energy().total)
    energies = np.array(energies) - mass * G * low
    return np.array(rotations), np.array(spins), energies / energies[0]


def test_a_rattleback_reverses():
    """The one of Kane and Levinson, given 5 rad/s against its sense, at 1 ms."""
    squares, com, turn = np.diag([0.2, 0.03, 0.02]) ** 2, np.array([0, 0, -0.01]), quat_exp(np.radians([0.5, 0.5, 0]))
    inertia = np.array([[2e-4, -2e-5, 0], [-2e-5, 1.6e-3, 0], [0, 0, 1.7e-3]])

    def support(up):
        return -squares @ up / np.sqrt(up @ squares @ up) - com

    about = support, 1.0, inertia, turn, np.array([0, 0, -5.0]), 4.0
    _, exact = solve_rolling(*about)
    _, spins, energy = roll(support, sh.Ellipsoid(0.2, 0.03, 0.02), 1.0, inertia, com, *about[3:], 1e-3, 0.01)
    top, exact_top = spins[:, 2].max(), exact[:, 2].max()
    print(f"reverses to {top:.3f} of {exact_top:.3f} rad/s, energy off by {energy[-1] - 1:.1e}")
    assert top > 0.93 * exact_top > 2.5
    assert energy.max() < 1 + 1e-6 and energy[-1] > 0.99
    calm = slice(0, 500)  # before it rattles, which is chaotic
    assert np.abs(spins[calm, 2] - exact[calm, 2]).max() < 0.05


@pytest.mark.parametrize("tilt", [0.1, 0.35, 1.0])
@pytest.mark.parametrize("dt", [1e-3, 2e-3])
def test_a_disc_that_rolls_on_its_rim_keeps_its_energy(tilt, dt):
    """Euler's disc: as it begins, its middle about rests, for 1 s."""
    radius, height, mass = 0.0375, 0.00635, 0.4
    inertia = np.diag([mass * (radius**2 / 4 + height**2 / 12)] * 2 + [mass * radius**2 / 2])

    def support(up):
        return -radius * np.array([up[0], up[1], 0]) / np.hypot(up[0], up[1]) - 0.5 * height * np.sign(up[2]) * UP

    turn = quat_exp(np.array([tilt, 0, 0]))
    out = matrix(turn) @ support(matrix(turn).T @ UP)
    spin = out / np.linalg.norm(out) * np.sqrt(4 * G * np.cos(tilt) * np.sin(tilt) / radius)
    about = support, mass, inertia, turn, spin, 1.0
    exact, _ = solve_rolling(*about)
    found, _, energy = roll(support, sh.Cylinder(radius, height), mass, inertia, np.zeros(3), *about[3:], dt, 0.5 * height)
    angles = [np.degrees(np.arccos(R[:, 2, 2])) for R in (exact[:: round(1000 * dt)], found)]
    off = np.abs(angles[0] - angles[1]).max()
    print(f"{1e3 * dt:.0f} ms, {tilt} rad: energy {energy[-1] - 1:.1e}, tilt off by {off:.3f} degrees")
    assert np.abs(energy - 1).max() < 1e-6
    assert off < 0.5 * (1e3 * dt) ** 2


@pytest.mark.parametrize("spin", [150.0, 300.0])
def test_a_top_moves_as_its_equation_says(spin):
    """On a small ball; 0.15 rad a step, and 0.3: the error falls by four as steps are halved."""
    radius, length, mass = 0.005, 0.04, 0.1
    inertia, com, turn = np.diag([4e-5, 4e-5, 3e-5]), np.array([0, 0, length]), quat_exp(np.array([0.3, 0, 0]))

    def support(up):
        return -radius * up / np.linalg.norm(up) - com

    about = support, mass, inertia, turn, matrix(turn) @ [0, 0, spin], 1.0
    exact, _ = solve_rolling(*about)
    off = []
    for dt in (1e-3, 5e-4):
        found, _, energy = roll(support, sh.Sphere(radius), mass, inertia, com, *about[3:], dt, 0.0)
        cosines = np.einsum("ni,ni->n", found[:: round(1e-3 / dt), :, 2], exact[:, :, 2])
        off.append(float(np.degrees(np.arccos(np.minimum(cosines, 1.0))).max()))
        assert energy.max() < 1 + 1e-9 and energy[-1] > 0.999
    print(f"{spin} rad/s: axis off by {off[0]:.3f} and {off[1]:.3f} degrees")
    assert off[0] < 1.0 and off[1] < 0.35 * off[0]
