"""Controllers, profiles and sensors against closed forms."""

import numpy as np
import pytest
from conftest import load_example

import sharnir as sh
from sharnir.control import PID, Spline, Trapezoid, computed_torque, gravity_compensation
from sharnir.core.spatial import quat_exp, quat_multiply, quat_rotate


def pendulum(length=1.0, mass=2.0, **hinge):
    scene = sh.Scene(gravity=(0, 0, -10))
    scene.add_body("rod", mass=mass, inertia=(0.1, 0.1, 0.1), position=(length, 0, 0))
    scene.add_joint("hinge", sh.Revolute("y", **hinge), scene.world, "rod", position=(0, 0, 0))
    return scene


def test_pid_holds_a_pendulum_where_proportional_gain_alone_sags():
    sags = {}
    for ki in (0.0, 200.0):
        sim = sh.Simulation(pendulum(), 1e-3)
        hinge, pid = sim.joint("hinge"), PID(kp=200.0, ki=ki, kd=60.0)
        for _ in range(6000):
            hinge.effort = pid(-0.3 - hinge.position, sim.dt)
            sim.step()
        sags[ki] = hinge.position + 0.3
    # at rest kp (target − q) balances gravity, which turns the rod by +m g l cos q
    q = -0.3 + sags[0.0]
    balance = 200.0 * (-0.3 - q) + 20.0 * np.cos(q)
    print(f"sag {sags[0.0]:.4f} rad without, {sags[200.0]:.1e} rad with an integral; balance off by {balance:.1e} N·m")
    assert abs(balance) < 1e-6 and abs(sags[200.0]) < 1e-4 * sags[0.0]


def test_pid_does_not_wind_up():
    pid = PID(kp=1.0, ki=10.0, limit=2.0)
    for _ in range(1000):
        assert pid(5.0, 0.01) == 2.0
    assert pid.integral == 0.0 and pid(-1.0, 0.01) == pytest.approx(-1.1)
    assert np.allclose(PID(kp=2.0)(np.array([1.0, -3.0]), 0.1), [2.0, -6.0])
    with pytest.raises(sh.SceneError, match="PID: kp is a finite number, got nan"):
        PID(kp=float("nan"))
    with pytest.raises(sh.SceneError, match="PID: dt is a positive finite time"):
        PID(kp=1.0)(1.0, 0.0)


@pytest.mark.parametrize(("way", "duration"), [(2.0, 2.0 + 0.25), (0.1, 2 * np.sqrt(0.1 / 4.0)), (-2.0, 2.25), (0.0, 0.0)])
def test_trapezoid_is_the_quickest_motion_within_its_bounds(way, duration):
    move = Trapezoid(1.0, 1.0 + way, speed=1.0, acceleration=4.0, begin=0.5)
    assert move.duration == pytest.approx(duration)
    t = np.linspace(0.0, 4.0, 4001)
    x, v, a = np.array([move(time) for time in t]).T
    assert x[0] == 1.0 and x[-1] == pytest.approx(1.0 + way) and np.abs(v).max() <= 1.0 + 1e-12 and np.abs(a).max() <= 4.0
    off = np.abs(np.diff(x) / 1e-3 - 0.5 * (v[1:] + v[:-1])).max()
    print(f"{way:g}: {move.duration:.4f} s, velocity and the slope of the position differ by {off:.1e}")
    assert off < 2e-3 and np.abs(np.diff(v)).max() <= 4e-3 + 1e-12
    with pytest.raises(sh.SceneError, match="speed is a positive finite number, got 0"):
        Trapezoid(0, 1, speed=0, acceleration=1)
    with pytest.raises(sh.SceneError, match=r"start and end have as many numbers, got \[0\] and \[1, 2\]"):
        Trapezoid([0], [1, 2], speed=1, acceleration=1)


def test_axes_of_a_profile_begin_and_end_together():
    move = Trapezoid((0.0, 0.0), (1.0, -0.5), speed=1.0, acceleration=4.0)
    for t in (0.1, 0.6, 1.1):
        x, v, _ = move(t)
        assert np.allclose(x[1], -0.5 * x[0]) and np.allclose(v[1], -0.5 * v[0])


def test_spline_is_exact_for_cubics_and_smooth():
    t = np.array([0.0, 0.3, 1.0, 1.4, 2.0])
    cubic = lambda s: np.stack([s**3 - 2 * s, 1 + 0 * s], -1)  # noqa: E731
    spline = Spline(t, cubic(t), start=(-2.0, 0.0), end=(10.0, 0.0))
    off = max(np.abs(spline(s)[0] - cubic(np.array(s))).max() for s in np.linspace(0, 2, 101))
    accelerations = max(abs(spline(s)[2][0] - 6 * s) for s in np.linspace(0, 2, 101))
    print(f"{off:.1e} off a cubic, its acceleration {accelerations:.1e}")
    assert off < 1e-13 and accelerations < 1e-11
    waves = Spline([0, 1, 2, 3], [0.0, 1.0, -1.0, 0.5])
    for knot in (1.0, 2.0):
        assert np.allclose(waves(knot - 1e-9), waves(knot + 1e-9), atol=1e-7)
    assert waves(5.0) == pytest.approx((0.5, 0.0, 0.0)) and waves(0.0)[1] == 0.0
    with pytest.raises(sh.SceneError, match="times are two or more that rise"):
        Spline([0, 0], [1, 2])


def test_gravity_compensation_and_computed_torque():
    scene = pendulum()
    bound = sh.dynamics.of(scene)
    q = 0.4
    assert gravity_compensation(bound, [q]) == pytest.approx([-20.0 * np.cos(q)], abs=1e-12)
    assert np.array_equal(gravity_compensation(scene, [q]), gravity_compensation(bound, [q]))
    sim = sh.Simulation(scene, 1e-4)
    kp, start, worst = 100.0, 0.3, 0.0
    sim.joint("hinge").position = start
    for k in range(10000):
        sim.effort = computed_torque(bound, sim.q, sim.qd, ([0.0], [0.0], [0.0]), kp=kp)
        sim.step()
        t = (k + 1) * 1e-4
        worst = max(worst, abs(sim.q[0] - start * (1 + 10.0 * t) * np.exp(-10.0 * t)))  # critically damped, ω = 10/s
    print(f"{worst:.1e} rad off the critically damped oscillator")
    assert worst < 2e-4


def test_an_imu_at_rest_in_fall_and_on_a_carousel():
    scene = sh.Scene(gravity=(0, 0, -10))
    scene.add_body("stone", sh.Box(0.1, 0.2, 0.3), mass=1.0, rotation=quat_exp(np.array([0.3, 0.2, 0.1])))
    scene.add_body("disc", sh.Cylinder(1.0, 0.1), mass=5.0, position=(5, 0, 0), angular_velocity=(0, 0, 2.0))
    scene.add_joint("axle", sh.Revolute("z"), scene.world, "disc", position=(5, 0, 0))
    scene.add_body("table", sh.Box(1, 1, 1), motion="fixed", rotation=quat_exp(np.array([np.pi / 2, 0, 0])), position=(9, 0, 0))
    scene.add_frame("rim", "disc", position=(0.8, 0, 0))
    sim = sh.Simulation(scene, 1e-4)
    stone, rim, still = (sh.sensors.IMU(sim, name) for name in ("stone", "rim", "table"))
    for _ in range(100):
        sim.step()
        for imu in (stone, rim, still):
            imu.update()
    inwards = 0.8 * 2.0**2
    print(f"fall {stone.acceleration}, rim {rim.acceleration} of (-{inwards}, 0, 10), rest {still.acceleration}")
    assert np.allclose(stone.acceleration, 0, atol=1e-9)
    assert np.allclose(rim.acceleration, (-inwards, 0, 10), atol=1e-3) and np.allclose(rim.rate, (0, 0, 2.0), atol=1e-12)
    assert np.allclose(still.acceleration, (0, 10, 0), atol=1e-12), "z up is its own y"
    noisy = sh.sensors.IMU(sim, "table", noise=(0.5, 0.0), bias=(0.1, 0.0), seed=4)
    readings = []
    for _ in range(2000):
        sim.step()
        noisy.update()
        readings.append(noisy.acceleration)
    assert np.std(readings, 0) == pytest.approx(0.5, rel=0.05) and np.mean(readings, 0) == pytest.approx(
        [0.1, 10.1, 0.1], abs=0.05
    )


def test_a_force_sensor_carries_the_weight_in_its_own_axes():
    scene = sh.Scene(gravity=(0, 0, -10))
    turn = quat_exp(np.array([0, np.pi / 2, 0]))
    scene.add_body("tool", sh.Box(0.1, 0.1, 0.1), mass=3.0, position=(0.5, 0, 0), rotation=turn)
    scene.add_joint("wrist", sh.Fixed(), scene.world, "tool", position=(0, 0, 0))
    sim = sh.Simulation(scene, 1e-3)
    sim.step(10)
    sensor = sh.sensors.ForceTorque(sim, "wrist")
    print(sensor.force, sensor.torque)
    assert np.allclose(sensor.force, (-30.0, 0, 0), atol=1e-9), "world z is −x of the tool"
    assert np.allclose(sim.frame("tool").into((0, 0, 1)), (-1, 0, 0), atol=1e-12)
    assert np.linalg.norm(sensor.torque) == pytest.approx(15.0, abs=1e-9)


def test_frames_distances_and_angles():
    scene = sh.Scene(gravity=(0, 0, 0))
    scene.add_body("a", sh.Box(1, 1, 1, position=(0.3, 0, 0)), mass=1.0, position=(1, 0, 0), angular_velocity=(0, 0, 1.0))
    scene.add_body("b", sh.Box(1, 1, 1), mass=1.0, position=(1, 4, 0))
    scene.add_frame("tip", "a", position=(0, 1, 0), rotation=quat_exp(np.array([0, 0, 0.5])))
    sim = sh.Simulation(scene, 1e-3)
    tip, other = sim.frame("tip"), sh.sensors.Frame(sim, "b", position=(0, -1, 0))
    assert np.allclose(tip.position, (1, 1, 0)) and sh.sensors.distance(tip, other) == pytest.approx(2.0)
    assert sh.sensors.angle(tip, other) == pytest.approx(0.5)
    sim.step(1000)
    turned = quat_exp(np.array([0, 0, 1.0]))
    com = np.array([1.3, 0, 0])
    assert np.allclose(tip.position, com + quat_rotate(turned, np.array([-0.3, 1.0, 0])), atol=1e-6)
    assert np.allclose(tip.velocity, np.cross((0, 0, 1.0), tip.position - com), atol=1e-9)
    assert sh.sensors.angle(tip, other) == pytest.approx(1.5, abs=1e-6)
    with pytest.raises(sh.SimulationError, match="no body or frame is named 'tipp'; available: 'world', 'a', 'b', 'tip'"):
        sim.frame("tipp")
    with pytest.raises(sh.SceneError, match="frame 'f': body 'c' is not a body"):
        scene.add_frame("f", "c")


def test_angles_of_a_ball():
    rng = np.random.default_rng(2)
    x, y, z = np.eye(3)
    worst = 0.0
    for _ in range(200):
        a, b, c = rng.uniform(-1.4, 1.4, 3)
        q = quat_multiply(quat_exp(a * x), quat_multiply(quat_exp(b * y), quat_exp(c * z)))
        worst = max(worst, np.abs(sh.sensors.cardan(q) - (a, b, c)).max())
        q = quat_multiply(quat_exp(np.array([a, b, 0.0])), quat_exp(c * z))
        worst = max(worst, np.abs(sh.sensors.swing_twist(q) - (a, b, c)).max())
    print(f"{worst:.1e} rad")
    assert worst < 1e-12
    assert np.allclose(sh.sensors.cardan([0, 0, 0, 1.0]), 0) and np.allclose(sh.sensors.swing_twist([0, 0, 0, -1.0]), 0)


def test_tension_of_a_hanging_rope():
    scene = sh.Scene(gravity=(0, 0, -10))
    scene.add_body("load", sh.Box(0.1, 0.1, 0.1), mass=4.0, position=(0, 0, -2.05))
    scene.add_rope("rope", (0, 0, 0), (0, 0, -2), mass_per_length=0.5, segments=10, attach=("world", "load"))
    sim = sh.Simulation(scene, 1e-3)
    sim.step(5)
    found = sh.sensors.tension(sim, "rope")
    print(f"{found:.6f} N of {40 + 10 * 0.5 * 1.9:.6f}")
    assert found == pytest.approx(40 + 10 * 0.5 * 1.9, rel=1e-6)  # the weight below the middle of the first segment


def two_rods_on_a_cart():
    module = load_example("balanced_pendulum")
    return module, module.upright(0.005)


def test_gains_are_those_of_the_linear_steps():
    """Closed by the gains, the linear steps die out, and cost what the regulator's own equation says."""
    module, sim = two_rods_on_a_cart()
    linear, regulator = sim.linearize(["rail"]), module.regulator(0.005)
    closed = linear.A - linear.B @ regulator.gain
    assert np.abs(np.linalg.eigvals(closed)).max() < 1.0 < np.abs(np.linalg.eigvals(linear.A)).max()
    Q, R = np.diag([10.0, 10, 10, 1, 1, 1]), 0.01

    def cost(gain):
        x, total = np.array([0, 0.05, -0.02, 0, 0, 0]), 0.0
        for _ in range(4000):
            u = -gain @ x
            total += x @ Q @ x + R * u @ u
            x = linear.A @ x + linear.B @ u
        return total

    least = cost(regulator.gain)
    for k in range(6):
        for by in (0.98, 1.02):
            other = regulator.gain.copy()
            other[0, k] *= by
            assert cost(other) > least


def test_a_body_in_the_air_is_kept_in_place_by_forces_on_it():
    scene = sh.Scene()
    scene.add_body("drone", sh.Box(0.3, 0.3, 0.1), mass=1.0, com=(0.02, 0, 0), position=(0, 0, 1))
    sim = sh.Simulation(scene, dt=0.005, solver="direct")
    drone = sim.body("drone")
    drone.apply_force((0, 0, 9.81), once=False)
    regulator = sh.control.lqr(sim, inputs=["drone.force", "drone.torque"])
    assert regulator.commands.tolist() == [0, 0, 9.81, 0, 0, 0]
    drone.apply_force((0, 0, 0), once=False)
    drone.place(position=(0.1, -0.2, 1.3), rotation=sh.rpy(0.2, -0.1, 0.3))
    while sim.time < 12.0:
        regulator.act(sim)
        sim.step()
    assert np.abs(drone.position - (0, 0, 1)).max() < 1e-3
    assert np.abs(drone.rotation[:3]).max() < 1e-3


def test_a_state_that_is_no_equilibrium_is_refused_by_name():
    _, sim = two_rods_on_a_cart()
    sim.joint("upper hinge").position = 0.3
    with pytest.raises(sh.SceneError, match="no equilibrium: upper hinge"):
        sh.control.lqr(sim, inputs=["rail"])
    sim.joint("upper hinge").position = 0.0
    for how, words in (({"state_cost": [1.0, 2.0]}, "state_cost is a number, 6 or"), ({"input_cost": -1.0}, "none negative")):
        with pytest.raises(sh.SceneError, match=words):
            sh.control.lqr(sim, inputs=["rail"], **how)
