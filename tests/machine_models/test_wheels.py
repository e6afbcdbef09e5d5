"""Wheels against closed forms: braking, grades, parking, coasting, turning, tipping over; rollers, differentials, bad input."""

import dataclasses
import math

import numpy as np
import pytest

import sharnir as sh
from sharnir.machine_models.vehicles import Axle, Vehicle
from sharnir.machine_models.wheels import ackermann, add_differential, mecanum, omni

G = 9.81
TYRE = sh.Tire(slip=(60e3, 50e3), relaxation=0.3)
SOLVERS = ["sequential", "direct"]
QUICK = ["sequential", pytest.param("direct", marks=pytest.mark.slow)]


def car(mu=0.8, tires=(None, None), mass=800.0, centre=0.5, rolling=0.0, steering=None, drive=None, ahead=0.0):
    front, rear = (sh.Wheel(0.3, 0.2, 20.0, friction=mu, rolling=rolling, tire=tire) for tire in tires)
    axles = {"front": Axle(1.2, front, 1.4, steering=steering), "rear": Axle(-1.2, rear, 1.4, drive=drive)}
    return Vehicle("car", mass, (3.0, 1.2, 0.5), centre, axles, collide=False, ahead=ahead)


def put(vehicle, dt, solver, mu=0.8, slope=0.0, side=0.0, **options):
    """A simulation of it on a plane, that a slope (rad, ahead is up) or a side slope tilts against gravity."""
    down = -G * np.array([math.sin(slope), math.sin(side), math.sqrt(1 - math.sin(slope) ** 2 - math.sin(side) ** 2)])
    scene = sh.Scene(gravity=down)
    scene.add_ground(material=sh.Material(friction=mu))
    vehicle.add(scene, **options)
    return sh.Simulation(scene, dt, solver=solver)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("tire", [None, TYRE])
def test_braking_distance(solver, tire):
    vehicle, v = car(tires=(tire, tire)), 10.0
    sim = put(vehicle, 0.002, solver, speed=v)
    vehicle.brake(sim, 4000.0)
    sim.run(1.35 * v / (0.8 * G))
    way, exact = sim.body("car").position[0], v * v / (2 * 0.8 * G)
    print(
        f"{solver}, {'tires' if tire else 'rigid'}: stops after {way:.4f} m, v²/2μg = {exact:.4f} m, off {way / exact - 1:+.3%}"
    )
    assert abs(way / exact - 1) < 0.01


@pytest.mark.parametrize("solver", QUICK)
@pytest.mark.parametrize("tire", [None, TYRE])
def test_the_steepest_grade_is_the_coefficient_of_friction(solver, tire):
    speeds = []
    for part in (0.99, 1.01):
        sim = put(car(tires=(tire, tire)), 0.005, solver, slope=math.atan(0.8 * part), brake=5e3)
        sim.run(6.0)
        speeds.append(float(np.abs(sim.body("car").velocity).max()))
    print(f"{solver}: 0.99 of the grade {speeds[0]:.2e} m/s, 1.01 of it {speeds[1]:.3f} m/s after 6 s")
    assert speeds[0] < 2e-3 < 0.1 < speeds[1]


def parked(solver, tire, side, settle, watch):
    """How far anything moves in `watch` seconds on a slope of 30° after `settle` seconds, m."""
    vehicle = car(tires=(tire, tire))
    sim = put(vehicle, 0.005, solver, brake=5e3, **{"side" if side else "slope": math.radians(30.0)})
    sim.run(settle)
    names = ["car", *(f"{hinge} wheel" for hinge in vehicle.hinges())]
    start, most = np.array([sim.body(n).position for n in names]), 0.0
    for _ in range(round(watch)):
        sim.run(1.0)
        most = max(most, float(np.abs(np.array([sim.body(n).position for n in names]) - start).max()))
    print(f"{solver}, {'tires' if tire else 'rigid'}, {'across' if side else 'along'} 30°: moves {most:.2e} m in {watch:g} s")
    return most


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("tire", [None, TYRE])
def test_parked_on_a_slope_it_does_not_creep(solver, tire):
    assert parked(solver, tire, False, 15.0, 5.0) < 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("tire", [None, TYRE])
@pytest.mark.parametrize("side", [False, True])
def test_parked_for_a_minute_it_does_not_creep(solver, tire, side):
    assert parked(solver, tire, side, 20.0, 60.0) < 1e-9


@pytest.mark.parametrize("solver", SOLVERS)
def test_coasting_down_by_rolling_resistance(solver):
    c, v = 0.02, 5.0
    vehicle = car(rolling=c)
    wheel = vehicle.axles["front"].wheel
    sim = put(vehicle, 0.005, solver, speed=v)
    sim.run(6.0)
    mass = vehicle.mass + 4 * wheel.mass
    exact = c * G * mass / (mass + 4 * wheel.spin_inertia / wheel.radius**2)
    slowed = (v - sim.body("car").velocity[0]) / 6.0
    print(f"{solver}: slows by {slowed:.6f} m/s², closed form {exact:.6f}, off {slowed / exact - 1:+.3%}")
    assert abs(slowed / exact - 1) < 2e-5


def turn(solver, tires, angle, speed, time, ahead=0.0):
    """Radius (m) of the middle of the rear axle, yaw rate (rad/s) and speed (m/s) in a steady turn, rolling freely."""
    vehicle = car(tires=tires, steering=sh.Steering(kp=2e5, kd=4e3), ahead=ahead)
    sim = put(vehicle, 0.005, solver, speed=speed)
    vehicle.steer(sim, angle)
    sim.run(time)
    places = []
    for _ in range(3):
        places.append((sim.body("car rear left wheel").position + sim.body("car rear right wheel").position)[:2] / 2)
        sim.run(0.6)
    a, b, c = (places[1] - places[0], places[2] - places[1], places[2] - places[0])
    radius = np.prod([np.linalg.norm(x) for x in (a, b, c)]) / (2 * abs(a[0] * c[1] - a[1] * c[0]))
    return radius, float(sim.body("car").angular_velocity[2]), float(np.linalg.norm(sim.body("car").velocity[:2]))


@pytest.mark.parametrize(("solver", "tire"), [("sequential", None), ("sequential", TYRE), ("direct", TYRE)])
def test_the_radius_of_a_slow_turn_is_ackermanns(solver, tire):
    angle = math.radians(20.0)
    radius, _, _ = turn(solver, (tire, tire), angle, 0.8, 2.0)
    exact = 2.4 / math.tan(angle)
    print(f"{solver}, {tire}: radius {radius:.4f} m, wheelbase/tan δ {exact:.4f} m, off {radius / exact - 1:+.3%}")
    assert abs(radius / exact - 1) < 8e-4


@pytest.mark.parametrize("solver", QUICK)
def test_the_understeer_gradient_is_that_of_the_single_track(solver):
    tires, ahead = (sh.Tire((60e3, 30e3), 0.2), sh.Tire((60e3, 45e3), 0.2)), 0.1
    angle, speed = math.radians(1.5), 12.0
    _, rate, v = turn(solver, tires, angle, speed, 4.0, ahead)
    measured = (angle - 2.4 * rate / v) / (v * rate)
    front = 40.0 + 10.0 + 800.0 * (1.2 + ahead) / 2.4  # wheels, their carriers, hull
    exact = front / 60e3 - (890.0 - front) / 90e3
    print(
        f"{solver}: {v * rate:.3f} m/s² across, gradient {measured:.6f}, m_f/C_f − m_r/C_r {exact:.6f} s²/m, off "
        f"{measured / exact - 1:+.2%}"
    )
    assert abs(measured / exact - 1) < 0.014


@pytest.mark.parametrize("solver", QUICK)
def test_it_tips_over_where_its_centre_leaves_its_wheels(solver):
    vehicle = car(mu=2.0, centre=0.8)
    masses = vehicle.mass + 80.0
    high = (vehicle.mass * 0.8 + 80.0 * 0.3) / masses
    exact, rolls = math.atan(0.7 / high), []
    for part in (0.99, 1.01):
        sim = put(vehicle, 0.005, solver, mu=2.0, side=exact * part, brake=1e4)
        sim.run(1.5)
        rolls.append(2 * abs(float(sim.body("car").rotation[0])))
    print(f"{solver}: tips at {math.degrees(exact):.2f}°; at 0.99 of it leans {rolls[0]:.1e} rad, at 1.01 {rolls[1]:.2f} rad")
    assert rolls[0] < 1e-4 < 0.02 < rolls[1]


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_spring_carries_its_load(solver):
    wheel = sh.Wheel(0.3, 0.2, 20.0, friction=0.8)
    strut = sh.Suspension(20e3, 2e3, load=800 * G / 4, travel=(-0.1, 0.1), mass=5.0)
    axles = {"front": Axle(1.2, wheel, 1.4, suspension=strut), "rear": Axle(-1.2, wheel, 1.4, suspension=strut)}
    sim = put(Vehicle("car", 800.0, (3.0, 1.2, 0.5), 0.5, axles, collide=False), 0.005, solver, brake=100.0)
    sim.run(3.0)
    way = sim.joint("car front left strut").position
    print(f"{solver}: it stands {1e3 * way:.4f} mm off where the springs carry it")
    assert abs(way) < 1e-4


@pytest.mark.parametrize("kind", ["mecanum", "omni"])
def test_rollers_let_a_cart_go_where_its_wheels_drive_it(kind):
    """Mecanum: the four wheels against each other move it sideways; omni: two wheels alone do not hold it across."""
    scene = sh.Scene()
    scene.add_ground(material=sh.Material(friction=0.8))
    scene.add_body("cart", sh.Box(0.8, 0.5, 0.1), mass=30.0, position=(0, 0, 0.15), collide=False)
    wheel, speed = sh.Wheel(0.1, 0.06, 2.0, friction=0.8), 3.0
    for x, front in ((0.3, 1), (-0.3, -1)):
        for y, left in ((0.3, 1), (-0.3, -1)):
            hand = front * left
            rolled = omni(wheel) if kind == "omni" else mecanum(wheel, hand)
            drive = sh.Servo(velocity=speed * (hand if kind == "mecanum" else 0.0), kd=50.0)
            rolled.add(scene, f"{x}{y}", "cart", (x, y, 0.1), drive=drive)
    sim = sh.Simulation(scene, 0.004, solver="direct")
    if kind == "omni":
        sim.body("cart").apply_force((0.0, 30.0, 0.0), once=False)
    sim.run(2.0)
    v = sim.body("cart").velocity
    print(f"{kind}: moves at {v[0]:+.4f}, {v[1]:+.4f} m/s")
    if kind == "mecanum":  # wheels turn at ω, rollers at 45°: |v_y| = ω R, but for the rollers' bearings
        assert abs(v[0]) < 1e-3 and abs(abs(v[1]) / (speed * 0.1) - 1) < 0.02
    else:  # m a = F − μ m g of the bearings, with the wheels' masses
        assert abs(v[0]) < 1e-3 and v[1] == pytest.approx(2.0 * (30.0 / 38.0 - 0.01 * G), rel=0.01)


@pytest.mark.parametrize("solver", QUICK)
def test_a_differential_shares_the_turns_of_its_case(solver):
    scene = sh.Scene()
    scene.add_ground(material=sh.Material(friction=0.8))
    scene.add_body("hull", sh.Box(2.0, 1.0, 0.3), mass=400.0, position=(0, 0, 0.5), collide=False)
    wheel = sh.Wheel(0.3, 0.2, 15.0, friction=0.8)
    hinges = add_differential(
        scene, "rear", "hull", wheel, (-1, 0.6, 0.3), (-1, -0.6, 0.3), drive=sh.Servo(velocity=6.0, kd=500.0)
    )
    for side, y in (("left", 0.6), ("right", -0.6)):
        wheel.add(scene, f"front {side}", "hull", (1, y, 0.3), steering=sh.Steering(kp=1e5, kd=2e3))
    sim = sh.Simulation(scene, 0.004, solver=solver)
    for side, turned in zip(("left", "right"), ackermann(0.3, 2.0, 1.2), strict=True):
        sim.joint(f"front {side} strut").drive.position = turned
    sim.run(3.0)
    case = sim.joint("rear").velocity
    left, right = (case + sim.joint(h).velocity for h in hinges)
    radius = 2.0 / math.tan(0.3)
    print(
        f"{solver}: case {case:.4f}, left {left:.4f}, right {right:.4f} rad/s, ratio {left / right:.4f}, "
        f"of radii {(radius - 0.6) / (radius + 0.6):.4f}"
    )
    assert abs(left + right - 2 * case) < 1e-4
    assert left / right == pytest.approx((radius - 0.6) / (radius + 0.6), rel=0.01)


def test_ackermann_turns_about_one_point():
    left, right = ackermann(0.4, 2.5, 1.5)
    assert 2.5 / math.tan(left) + 0.75 == pytest.approx(2.5 / math.tan(0.4)) == pytest.approx(2.5 / math.tan(right) - 0.75)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: sh.Wheel(0.0, 0.2, 20.0), "Wheel: radius .*0.0"),
        (lambda: sh.Wheel(0.3, 0.2, -1.0), "Wheel: mass .*-1.0"),
        (lambda: sh.Wheel(0.3, 0.2, 1.0, friction=(1.0, 2.0, 3.0)), "friction .*along, across"),
        (lambda: sh.Wheel(0.3, 0.2, 1.0, tire=3.0), "Tire"),
        (lambda: sh.Tire(slip=0.0), "Tire: slip .*0.0"),
        (lambda: sh.Tire(slip=1e4, relaxation=math.nan), "relaxation .*nan"),
        (lambda: sh.Suspension(0.0), "stiffness .*0.0"),
        (lambda: sh.Steering(limit=0.0), "limit .*0.0"),
        (lambda: sh.Material(shear=1e4), "go together"),
        (lambda: sh.Material(shear=(1e4, 2e4), relaxation=0.1), "needs a direction"),
        (lambda: ackermann(0.3, 0.0, 1.0), "wheelbase .*0.0"),
        (lambda: Vehicle("van", 100.0, (1, 1, 1), 0.5, {}), "van.*at least one axle"),
        (lambda: mecanum(sh.Wheel(0.1, 0.1, 1.0), 2), "hand is 1 or -1"),
    ],
)
def test_bad_wheels_are_named(make, words):
    with pytest.raises(sh.SceneError, match=words):
        make()


def test_both_spellings_of_a_tire():
    assert sh.Tyre is sh.Tire
    american, british = (sh.Wheel(0.3, 0.2, 20.0, **{word: TYRE}) for word in ("tire", "tyre"))
    assert american == british and british.tire is TYRE
    assert dataclasses.replace(british, mass=30.0).tire is TYRE and dataclasses.replace(british, tire=None).tire is None
    with pytest.raises(sh.SceneError, match="tire is a Tire"):
        sh.Wheel(0.3, 0.2, 1.0, tyre=3.0)
