"""Cast wheels against the closed forms of wheels on hinges: braking, parking, coasting, driving, turning; springs, bad input."""

import math

import numpy as np
import pytest

import sharnir as sh
from sharnir.machine_models.vehicles import Axle, Vehicle
from sharnir.runtime.raycast_wheels import wheel

G = 9.81
TYRE = sh.Tire(slip=(60e3, 50e3), relaxation=0.3)
both = pytest.mark.parametrize("solver", ["sequential", "direct"])


def car(tire=None, rolling=0.0, steering=None, drive=None, suspension=None, centre=0.5):
    one = sh.Wheel(0.3, 0.2, 20.0, friction=0.8, tire=tire, rolling=rolling, raycast=True)
    axles = {
        "front": Axle(1.2, one, 1.4, steering=steering, suspension=suspension),
        "rear": Axle(-1.2, one, 1.4, drive=drive, suspension=suspension),
    }
    return Vehicle("car", 800.0, (3.0, 1.2, 0.5), centre, axles, collide=False)


def put(vehicle, dt, slope=0.0, worlds=1, floor=None, solver="auto", **options):
    scene = sh.Scene(gravity=(-G * math.sin(slope), 0, -G * math.cos(slope)))
    if floor is None:
        scene.add_ground(material=sh.Material(friction=0.8))
    else:
        scene.add_body("floor", floor, motion="fixed", position=(0, 0, -0.5), material=sh.Material(friction=0.8))
    vehicle.add(scene, **options)
    return sh.Simulation(scene, dt, worlds=worlds, solver=solver)


@both
@pytest.mark.parametrize("tire", [None, TYRE])
@pytest.mark.parametrize("floor", [None, sh.Mesh(sh.Box(30.0, 8.0, 1.0).mesh())])
def test_braking_distance(tire, floor, solver):
    vehicle, v = car(tire), 10.0
    sim = put(vehicle, 0.002, floor=floor, speed=v, solver=solver)
    vehicle.brake(sim, 4000.0)
    sim.run(1.35 * v / (0.8 * G))
    way, exact = sim.body("car").position[0], v * v / (2 * 0.8 * G)
    print(f"{'tires' if tire else 'rigid'}: stops after {way:.4f} m, v²/2μg = {exact:.4f} m, off {way / exact - 1:+.3%}")
    assert abs(way / exact - 1) < 3.2e-4


def parked(tire, settle, watch, solver="auto"):
    sim = put(car(tire), 0.005, slope=math.radians(30.0), brake=5e3, solver=solver)
    sim.run(settle)
    start, most = sim.body("car").position, 0.0
    for _ in range(round(watch)):
        sim.run(1.0)
        most = max(most, float(np.abs(sim.body("car").position - start).max()))
    print(f"{'tires' if tire else 'rigid'}, 30°: moves {most:.2e} m in {watch:g} s")
    return most


@both
@pytest.mark.parametrize("tire", [None, TYRE])
def test_parked_on_a_slope_it_does_not_creep(tire, solver):
    assert parked(tire, 8.0, 4.0, solver) < 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("tire", [None, TYRE])
def test_parked_for_a_minute_it_does_not_creep(tire):
    assert parked(tire, 20.0, 60.0) < 1e-9


@both
def test_coasting_down_by_rolling_resistance(solver):
    c, v = 0.02, 5.0
    vehicle = car(rolling=c)
    sim = put(vehicle, 0.005, speed=v, solver=solver)
    sim.run(6.0)
    exact = c * G * 800.0 / (800.0 + 4 * vehicle.axles["front"].wheel.spin_inertia / 0.3**2)
    slowed = (v - sim.body("car").velocity[0]) / 6.0
    print(f"slows by {slowed:.6f} m/s², closed form {exact:.6f}, off {slowed / exact - 1:+.3%}")
    assert abs(slowed / exact - 1) < 1.3e-3


@both
def test_a_torque_drives_it_and_what_turns_is_felt(solver):
    """M a = 2 τ/R with M = m + 4 I/R², the front wheels rolling along; and the energy is accounted for."""
    vehicle = car(drive=sh.Servo(torque=150.0))
    sim = put(vehicle, 0.002, solver=solver)
    sim.run(0.5)
    before = float(sim.body("car").velocity[0])
    sim.run(0.5)
    turns = vehicle.axles["front"].wheel.spin_inertia / 0.3**2
    exact = 2 * 150.0 / 0.3 / (800.0 + 4 * turns)
    speed, front = float(sim.body("car").velocity[0]), wheel(sim, "car front left")
    rate = (speed - before) / 0.5
    print(f"{rate:.9f} m/s², closed form {exact:.9f}; energy {sim.health().energy_error:.1e}")
    assert abs(rate / exact - 1) < 1e-6 and abs(front.speed * 0.3 / speed - 1) < 2e-3 and front.angle > 1.0
    assert sim.health().energy_error < 1e-3


def test_it_turns_as_ackermann_says():
    angle = math.radians(20.0)
    vehicle = car(TYRE, steering=sh.Steering(kp=2e5, kd=4e3))
    sim = put(vehicle, 0.005, speed=0.8)
    vehicle.steer(sim, angle)
    sim.run(3.0)
    places = []
    for _ in range(3):  # of the middle of the rear axle
        q = sim.body("car").rotation
        yaw = 2 * math.atan2(q[2], q[3])
        places.append(sim.body("car").position[:2] - 1.2 * np.array([math.cos(yaw), math.sin(yaw)]))
        sim.run(0.6)
    a, b, c = places[1] - places[0], places[2] - places[1], places[2] - places[0]
    radius = np.prod([np.linalg.norm(x) for x in (a, b, c)]) / (2 * abs(a[0] * c[1] - a[1] * c[0]))
    exact = 2.4 / math.tan(angle)
    print(f"radius {radius:.4f} m, wheelbase/tan δ {exact:.4f} m, off {radius / exact - 1:+.3%}")
    assert abs(radius / exact - 1) < 4.5e-4


def test_its_spring_carries_the_load_where_the_wheel_is_put():
    sim = put(car(suspension=sh.Suspension(20e3, 2e3, load=200 * G)), 0.005, brake=100.0)
    sim.run(3.0)
    print(f"it stands {1e3 * (sim.body('car').position[2] - 0.5):.4f} mm off where the springs carry it")
    assert abs(sim.body("car").position[2] - 0.5) < 1e-4


@both
def test_worlds_have_their_own_wheels_and_a_snapshot_has_them(solver):
    vehicle = car(drive=sh.Servo(kd=200.0))
    sim = put(vehicle, 0.005, worlds=2, solver=solver)
    wheel(sim, "car rear left").velocity = wheel(sim, "car rear right").velocity = [0.0, 5.0]
    sim.run(0.5)
    kept = sim.snapshot()
    sim.run(0.5)
    ends = sim.body("car").position, wheel(sim, "car rear left").speed
    sim.restore(kept)
    sim.run(0.5)
    print(f"x {ends[0][:, 0]}, wheels {ends[1]} rad/s")
    assert abs(ends[0][0, 0]) < 1e-7 and ends[0][1, 0] > 0.3
    assert np.array_equal(sim.body("car").position, ends[0]) and np.array_equal(wheel(sim, "car rear left").speed, ends[1])


def test_what_cast_wheels_refuse():
    with pytest.raises(sh.SceneError, match="cast is True or False, and False of a wheel with rollers"):
        sh.Wheel(0.3, 0.2, 20.0, raycast=True, rollers=0.7)
    with pytest.raises(sh.SceneError, match=r"wheel 'car rear left'.*Servo of its speed or torque, with kp=0"):
        put(car(drive=sh.DCMotor()), 0.01)
    scene = sh.Scene()
    scene.add_ground()
    car().add(scene)
    sim = sh.Simulation(scene, 0.01)
    with pytest.raises(sh.SimulationError, match=r"no raycast wheel is named 'x'; available: 'car front left'"):
        wheel(sim, "x")
    with pytest.raises(sh.SimulationError, match=r"wheel 'car front left': brake \(N·m\) is .* at least 0.*got -1"):
        wheel(sim, "car front left").brake = -1
    scene.add_rope("rope", (0, 0, 3), (0, 0, 2), segments=4, attach=("world", None), collide=False)
    with pytest.raises(sh.SimulationError, match="wheel 'car front left' is cast, which sweeps beside ropes do not know"):
        sh.Simulation(scene, 0.01, solver="sequential").step()


@pytest.mark.slow
def test_four_cast_wheels_take_no_longer_than_mujoco():
    machines = pytest.importorskip("benchmarks.cast")
    ours, theirs = machines.measure()
    assert ours < 3 * theirs
