"""Tracks: straight on, on the spot, up stairs; what they take from the sprocket is what the ground takes; bad input."""

import math

import numpy as np
import pytest

import sharnir as sh

G, MU, R, GAUGE = 9.81, 0.7, 0.1, 0.7
SOLVERS = ["sequential", "direct"]
QUICK = ["sequential", pytest.param("direct", marks=pytest.mark.slow)]


def tank(solver, drives=(0.0, 0.0), slope=0.0, brake=0.0, dt=0.005, kd=2000.0, **options):
    """A hull of 280 kg on two tracks of four wheels, on ground that rises along x."""
    scene = sh.Scene(gravity=(-G * math.sin(slope), 0.0, -G * math.cos(slope)))
    scene.add_ground(material=sh.Material(friction=MU))
    scene.add_body("hull", sh.Box(1.0, 0.5, 0.2), mass=280.0, position=(0, 0, 0.2), collide=False)
    wheels = [(x, 0.0, R) for x in (-0.45, -0.15, 0.15, 0.45)]
    track = sh.Track(wheels, 0.12, 8.0, wheel_mass=4.0, friction=MU, stiffness=2e5, damping=2e3, **options)
    for side, y, speed in (("left", 0.5 * GAUGE, drives[0]), ("right", -0.5 * GAUGE, drives[1])):
        drive = sh.Servo(velocity=speed, kd=kd) if not brake else None
        track.add(scene, side, "hull", (0.0, y, -0.1), drive=drive, brake=brake)
    return sh.Simulation(scene, dt, solver=solver), track


def ground(sim):
    """Of all points: from the hull's middle (m), normal force (N), slip (m/s), force (N)."""
    c = sim.contacts()
    return c.point - sim.body("hull").position, c.force[:, 2], c.slip, c.force


@pytest.mark.parametrize("solver", QUICK)
def test_straight_on_it_goes_as_fast_as_its_sprocket(solver):
    sim, _ = tank(solver, (8.0, 8.0))
    sim.run(2.0)
    v, belt = float(sim.body("hull").velocity[0]), R * sim.joint("left").velocity
    print(f"{solver}: {v:.9f} m/s, belt {belt:.9f} m/s")
    assert abs(v - belt) < 1e-6 and abs(v - 0.8) < 1e-3


@pytest.mark.parametrize("solver", QUICK)
def test_a_belt_starts_as_heavy_as_it_is(solver):
    """A constant torque T at each sprocket: a = 2T/R/(m + 2I/R²), the belts' inertia and mass with it."""
    sim, track = tank(solver, (0.0, 0.0), kd=0.0)
    for side in ("left", "right"):
        sim.joint(side).drive.torque = 20.0
    sim.run(1.0)
    exact = 2 * 20.0 / R / (280.0 + 2 * 12.0 + 2 * track.inertia / R**2)
    v, pulls = float(sim.body("hull").velocity[0]), [track.traction(sim, side) for side in ("left", "right")]
    tight, slack = track.tensions(sim, "left")
    print(f"{solver}: {v:.6f} m/s after 1 s, closed form {exact:.6f}; traction {pulls[0]:.3f} N, (m/2) a {152.0 * exact:.3f} N")
    assert v == pytest.approx(exact, rel=1e-3) and pulls == pytest.approx([152.0 * exact] * 2, rel=1e-3)
    assert (tight, slack) == pytest.approx((pulls[0], 0.0))


@pytest.mark.parametrize("solver", SOLVERS)
def test_turned_on_the_spot_it_takes_the_moment_of_its_points(solver):
    """Belts held: all points slide about the middle, so the moment is Σ μ N |r| and the power that times the rate.

    While it turns slowly: points are told where a step began, slip where it ended.
    """
    sim, _ = tank(solver, brake=1e5)
    sim.body("hull").apply_torque((0.0, 0.0, 1500.0), once=False)
    sim.run(0.05)
    r, N, slip, force = ground(sim)
    moment, exact = -np.cross(r, force)[:, 2].sum(), (MU * N * np.linalg.norm(r[:, :2], axis=1)).sum()
    power, rate = -(force * slip).sum(), np.median(np.linalg.norm(slip, axis=1) / np.linalg.norm(r[:, :2], axis=1))
    print(f"{solver}: moment {moment:.4f} N·m, Σ μ N |r| {exact:.4f}; power {power:.3f} W, moment · rate {exact * rate:.3f} W")
    assert moment == pytest.approx(exact, rel=1e-5) and power == pytest.approx(exact * rate, rel=1e-5)


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_pivot_turn_costs_what_the_ground_takes(solver):
    sim, track = tank(solver, (-8.0, 8.0))
    sim.run(2.0)
    place = sim.body("hull").position[:2]
    r, N, slip, force = ground(sim)
    power = sum(sim.joint(side).drive.force * sim.joint(side).velocity for side in ("left", "right"))
    lost = (MU * N * np.linalg.norm(slip, axis=1)).sum()
    pull = (track.traction(sim, "right") - track.traction(sim, "left")) * 0.5 * GAUGE
    _, _, z, w = sim.body("hull").rotation
    ahead = np.array([1 - 2 * z * z, 2 * z * w, 0.0])
    across = -((r @ ahead) * (force @ np.cross([0, 0, 1], ahead))).sum()  # belts turn it, friction across holds it
    print(
        f"{solver}: {float(sim.body('hull').angular_velocity[2]):.4f} rad/s, drives {power:.2f} W, Σ μ N |u| {lost:.2f} W "
        f"({power / lost - 1:+.3%}); moment of the belts {pull:.3f}, of friction across {across:.3f} N·m; "
        f"off the spot by {1e3 * np.linalg.norm(place):.4f} mm"
    )
    assert power == pytest.approx(lost, rel=0.0037) and np.linalg.norm(place) < 1e-4
    assert pull == pytest.approx(across, rel=0.02)  # of the belt's middle: its edges pull a little differently


@pytest.mark.parametrize("solver", QUICK)
def test_on_a_slope_it_turns_and_slides_as_friction_says(solver):
    """Belts against each other at 5°: it turns; every point slides, so it comes down, as fast as Coulomb's law asks.

    With the places and loads of its own points: the drift d and the rate w for which friction carries the weight.
    """
    slope, speed = math.radians(5.0), 0.8
    sim, _ = tank(solver, (-8.0, 8.0), slope=slope)
    sim.run(1.0)
    start, turned = sim.body("hull").position.copy(), 0.0
    for _ in range(24):
        sim.run(0.1)
        turned += 0.1 * float(sim.body("hull").angular_velocity[2])
    drift = np.linalg.norm((sim.body("hull").position - start)[:2]) / 2.4
    # the same by hand, over all headings: mean of the drift along the slope
    r0 = np.array([(x, y + e) for x in (-0.45, -0.15, 0.15, 0.45) for y in (-0.35, 0.35) for e in (-0.05, 0.05)])
    mass, found = 304.0, []
    for heading in np.linspace(0, math.pi, 13)[:-1]:
        down = -mass * G * math.sin(slope) * np.array([math.cos(heading), -math.sin(heading)])  # in the hull's axes
        N = np.full(16, mass * G * math.cos(slope) / 16)
        x = np.array([0.0, 0.0, 1.3])

        def left(x, N=N, down=down):
            u = x[:2] + x[2] * np.column_stack([-r0[:, 1], r0[:, 0]]) + np.column_stack([np.sign(r0[:, 1]) * speed, 0 * N])
            f = -MU * N[:, None] * u / np.linalg.norm(u, axis=1)[:, None]
            return np.array([*(f.sum(0) + down), (r0[:, 0] * f[:, 1] - r0[:, 1] * f[:, 0]).sum()])

        for _ in range(30):
            J = np.column_stack([(left(x + 1e-6 * e) - left(x - 1e-6 * e)) / 2e-6 for e in np.eye(3)])
            x = x - np.linalg.solve(J, left(x))
        found.append(np.array([math.cos(heading) * x[0] - math.sin(heading) * x[1], x[2]]))
    exact = abs(np.mean(found, axis=0)[0])
    print(f"{solver}: turns by {math.degrees(turned):.0f}°, drifts at {drift:.4f} m/s, by hand (as if level) {exact:.4f} m/s")
    assert turned > 2.0 and drift == pytest.approx(exact, rel=0.1)


@pytest.mark.parametrize("solver", QUICK)
def test_a_braked_track_holds_on_a_slope(solver):
    sim, _ = tank(solver, slope=math.radians(25.0), brake=1e4)
    sim.run(4.0)
    start = sim.body("hull").position.copy()
    sim.run(2.0)
    off = np.abs(sim.body("hull").position - start).max()
    print(f"{solver}: moves {off:.2e} m in 2 s")
    assert off < 1e-8


@pytest.mark.parametrize("solver", QUICK)
def test_sprung_wheels_press_evenly(solver):
    """Five wheels a side at the middles of equal runs, on soft springs: turned with belts held, the moment is that of uniform
    pressure over the track's length, 2 ∫ μ p |r| dx.
    """
    scene, length = sh.Scene(), 1.0
    scene.add_ground(material=sh.Material(friction=MU))
    scene.add_body("hull", sh.Box(1.0, 0.5, 0.2), mass=280.0, position=(0, 0, 0.2), collide=False)
    strut = sh.Suspension(2e4, 1e3, load=304.0 * G / 10, travel=(-0.05, 0.05), mass=2.0)
    wheels = [(x, 0.0, 0.09) for x in (-0.4, -0.2, 0.0, 0.2, 0.4)]
    track = sh.Track(wheels, 0.06, 8.0, wheel_mass=4.0, friction=MU, suspension=strut)
    for side, y in (("left", 0.5 * GAUGE), ("right", -0.5 * GAUGE)):
        track.add(scene, side, "hull", (0.0, y, -0.11), brake=1e5)
    sim = sh.Simulation(scene, 0.005, solver=solver)
    sim.run(1.0)
    sim.body("hull").apply_torque((0.0, 0.0, 1500.0), once=False)
    sim.run(0.3)
    r, N, _, force = ground(sim)
    moment, own = -np.cross(r, force)[:, 2].sum(), (MU * N * np.linalg.norm(r[:, :2], axis=1)).sum()
    x = (np.arange(1000) + 0.5) / 1000 * length - 0.5 * length
    even = MU * N.sum() * np.hypot(x, 0.5 * GAUGE).mean()
    print(f"{solver}: {moment:.2f} N·m, Σ μ N |r| {own:.2f}, uniform pressure {even:.2f} N·m, off {moment / even - 1:+.2%}")
    assert moment == pytest.approx(own, rel=0.005) and moment == pytest.approx(even, rel=0.03)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: sh.Track([], 0.1, 5.0), r"wheels are at least one .*\[\]"),
        (lambda: sh.Track([(0, 0, 0.0)], 0.1, 5.0), "radius of wheel 0 .*0.0"),
        (lambda: sh.Track([(0, 0)], 0.1, 5.0), "x, z, radius"),
        (lambda: sh.Track([(0, 0, 0.1)], 0.1, 5.0, sprocket=3), "sprocket is the number of one of 1"),
        (lambda: sh.Track([(0, 0, 0.1)], 0.1, 5.0).add(sh.Scene(), "t", "hull"), "'hull' is not a body"),
        (lambda: sh.Scene().add_belt("j", "world", sh.Box(1, 1, 1), radius=0.1), "a belt runs with a hinge; available: none"),
    ],
)
def test_bad_tracks_are_named(make, words):
    with pytest.raises(sh.SceneError, match=words):
        make()
