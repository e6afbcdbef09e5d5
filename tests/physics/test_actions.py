"""Limits, springs, servos and motors on free axes, and the deadline of a step."""

import numpy as np
import pytest
from scipy.linalg import expm

import sharnir as sh
from sharnir.core.spatial import quat_exp, quat_to_matrix


def rod_on(joint, *, gravity=(0, 0, 0), dt=1e-3, mass=1.0):
    scene = sh.Scene(gravity=gravity)
    scene.add_body("rod", sh.Box(0.5, 0.02, 0.02), mass=mass, position=(0.25, 0, 0))
    scene.add_joint("joint", joint, scene.world, "rod", position=(0, 0, 0))
    return sh.Simulation(scene, dt, solver="sequential")


LIMITED = {
    "revolute": (sh.Revolute("z", limit=(-1, 1)), 0),
    "prismatic": (sh.Prismatic("x", limit=(-1, 1)), 0),
    "cylindrical, slide": (sh.Cylindrical("x", limit={"x": (-1, 1)}), 0),
    "cylindrical, turn": (sh.Cylindrical("x", limit={"rx": (-1, 1)}), 1),
    "universal, first": (sh.Universal(("z", "y"), limit={"rz": (-1, 1)}), 0),
    "universal, second": (sh.Universal(("z", "y"), limit={"ry": (-1, 1)}), 1),
    "planar, x": (sh.Planar("z", limit={"x": (-1, 1)}), 0),
    "planar, turn": (sh.Planar("z", limit={"rz": (-1, 1)}), 2),
}


@pytest.mark.parametrize("name", LIMITED)
def test_a_fast_joint_stops_at_its_limit(name):
    joint, axis = LIMITED[name]
    sim = rod_on(joint)
    view = sim.joint("joint")
    speed = np.zeros(joint.v_size)
    speed[axis] = 20.0
    view.velocity = speed if joint.v_size > 1 else 20.0
    energy, worst, grown = sim.energy().total, 0.0, 0.0
    for _ in range(150):
        sim.step()
        worst = max(worst, np.atleast_1d(view.position)[axis] - 1.0)
        grown = max(grown, sim.energy().total / energy - 1)
    print(f"{name}: overshoot {worst:.1e}, ends {np.atleast_1d(view.position)[axis] - 1:.1e} from the limit, energy {grown:+.1e}")
    assert worst <= 1e-14 and grown < 1e-12
    assert abs(np.atleast_1d(view.position)[axis] - 1) < 1e-12


def test_restitution():
    sim = rod_on(sh.Revolute("z", limit=sh.Limit(-1, 1, restitution=0.5)))
    sim.joint("joint").velocity = 8.0
    sim.run(0.2)
    print(f"8 rad/s into a limit with e = 0.5: {sim.joint('joint').velocity:.4f} rad/s")
    assert sim.joint("joint").velocity == pytest.approx(-4.0, rel=1e-3)


def test_a_violated_limit_is_repaired_without_kinetic_energy():
    sim = rod_on(sh.Revolute("z", limit=(-1, 1)))
    sim.joint("joint").position = 1.3
    sim.step(20)  # 0.02 rad a step
    assert sim.joint("joint").position == pytest.approx(1.0, abs=1e-9) and sim.energy().kinetic == 0.0


def test_a_limit_pushes_and_never_pulls():
    sim = rod_on(sh.Revolute("y", limit=(-1, 0.4)), gravity=(0, 0, -9.81))
    sim.run(2.0)
    torque = 9.81 * 0.25 * np.cos(0.4)
    print(f"rests at {sim.joint('joint').position:.9f} with {sim.joint('joint').limit_force:.6f} N·m of {-torque:.6f}")
    assert sim.joint("joint").position == pytest.approx(0.4, abs=1e-9)
    assert sim.joint("joint").limit_force == pytest.approx(-torque, rel=1e-6)
    sim.joint("joint").effort = -2 * torque
    sim.run(0.1)
    assert sim.joint("joint").limit_force == 0.0 and sim.joint("joint").position < 0.4


def cardan_angles(q):
    """(..., 3) of quaternions (..., 4)."""
    R = np.moveaxis(quat_to_matrix(q), (-2, -1), (0, 1))
    x, y, z = np.arctan2(-R[1, 2], R[2, 2]), np.arcsin(np.clip(R[0, 2], -1, 1)), np.arctan2(-R[0, 1], R[0, 0])
    return np.stack([x, y, z], -1)


def shaken_ball(limit, worlds, steps, seed=0, every=5):
    """Worlds of a hanging box on a limited ball joint, shaken by random torques; yields the joint's quaternions (worlds, 4)."""
    rng = np.random.default_rng(seed)
    scene = sh.Scene()
    scene.add_body("b", sh.Box(0.3, 0.2, 0.5), mass=1.0, position=(0, 0, -0.25))
    scene.add_joint("j", sh.Spherical(limit=limit), scene.world, "b", position=(0, 0, 0))
    sim = sh.Simulation(scene, 1e-3, worlds=worlds, solver="sequential")
    fastest = 0.0
    for _ in range(steps // 20):
        sim.body("b").apply_torque(rng.normal(size=(worlds, 3)) * 1.5, once=False)
        for _ in range(20 // every):
            sim.step(every)
            fastest = max(fastest, np.linalg.norm(sim.body("b").angular_velocity, axis=-1).max())
            yield sim.joint("j").position
    print(f"fastest spin {fastest:.1f} rad/s: |ω| dt = {fastest * 1e-3:.3f}")


@pytest.mark.slow
def test_three_cardan_limits_hold_for_a_hundred_thousand_steps():
    limit = sh.Cardan(x=(-0.314, 0.314), y=(-0.262, 0.2), z=(-0.25, 0.314))
    lower = np.array([r.lower for r in limit.ranges])
    upper = np.array([r.upper for r in limit.ranges])
    worst, reached = 0.0, np.zeros(3, bool)
    for quats in shaken_ball(limit, worlds=50, steps=2000, every=1):  # 50 worlds × 2000 steps
        angles = cardan_angles(quats)
        worst = max(worst, (lower - angles).max(), (angles - upper).max())
        reached |= np.any((angles > upper - 1e-4) | (angles < lower + 1e-4), 0)
    print(f"10⁵ steps: a limit exceeded by at most {worst:.1e} rad; all three reached: {reached.all()}")
    assert worst < 5e-12 and reached.all()


@pytest.mark.parametrize("swing", [(0.5, 0.9), (np.radians(170), np.radians(170)), (np.radians(120), np.radians(30))])
def test_swing_and_twist_limits(swing):
    limit = sh.SwingTwist(swing=swing, twist=(-0.2, 0.4))
    worst_swing = worst_twist = 0.0
    for quats in shaken_ball(limit, worlds=8, steps=2000):
        for q in quats:
            z = quat_to_matrix(q)[:, 2]
            sine = np.hypot(z[0], z[1])
            h = np.hypot(-z[1] / sine / limit.cone[0], z[0] / sine / limit.cone[1]) if sine > 1e-9 else 1e-9
            worst_swing = max(worst_swing, np.arctan2(sine, z[2]) - 1 / h)
            twist = (2 * np.arctan2(q[2], q[3]) + np.pi) % (2 * np.pi) - np.pi
            worst_twist = max(worst_twist, -0.2 - twist, twist - 0.4)
    print(f"swing exceeded by {worst_swing:.1e} rad, twist by {worst_twist:.1e} rad")
    assert worst_swing < 1e-8 and worst_twist < 1e-8


@pytest.mark.parametrize(("axis", "name"), [((1, 0, 0), "x"), ((0, 1, 0), "y"), ((0, 0, 1), "z")])
def test_each_cardan_axis_alone_is_a_revolute_joint(axis, name):
    ends = []
    for joint in (sh.Spherical(limit=sh.Cardan(**{name: (-0.5, 0.3)})), sh.Revolute(axis, limit=(-0.5, 0.3))):
        scene = sh.Scene(gravity=(0, 0, 0))
        scene.add_body("b", sh.Box(0.3, 0.2, 0.1), mass=1.0)
        scene.add_joint("j", joint, scene.world, "b", position=(0, 0, 0))
        sim = sh.Simulation(scene, 1e-3, solver="sequential")
        sim.body("b").angular_velocity = 4.0 * np.array(axis)
        sim.run(0.05)
        angles = [np.dot(axis, cardan_angles(q)) if len(q := np.atleast_1d(sim.joint("j").position)) == 4 else q[0]]
        sim.run(0.2)
        angles += [np.dot(axis, cardan_angles(q)) if len(q := np.atleast_1d(sim.joint("j").position)) == 4 else q[0]]
        ends.append(angles)
    print(f"{name}: ball {ends[0]}, revolute {ends[1]}")
    assert np.allclose(ends[0], ends[1], atol=1e-9) and ends[1][1] == pytest.approx(0.3, abs=1e-9)


def test_spring_energy():
    scene = sh.Scene(gravity=(0, 0, 0))
    scene.add_body("m", mass=1.0, position=(0.7, 0, 0))
    scene.add_spring("s", scene.world, "m", stiffness=100.0, rest=0.5)
    sim = sh.Simulation(scene, 1e-5, solver="sequential")
    start = sim.energy()
    assert start.elastic == pytest.approx(0.5 * 100 * 0.04) and start.kinetic == 0
    sim.run(np.pi / 2 / 10)  # a quarter of the period 2π√(m/k)
    now = sim.energy()
    print(f"elastic {start.elastic:.4f} J becomes kinetic {now.kinetic:.4f} J")
    assert now.kinetic == pytest.approx(2.0, rel=1e-3) and now.total == pytest.approx(2.0, rel=1e-3)


def test_ball_joint_spring_and_damper():
    scene = sh.Scene(gravity=(0, 0, 0))
    scene.add_body("b", mass=1.0, inertia=(0.1, 0.1, 0.1))
    scene.add_joint("j", sh.Spherical(spring=(10.0, 0.0), damping=0.05), scene.world, "b", position=(0, 0, 0))
    sim = sh.Simulation(scene, 1e-4, solver="sequential")
    turn = quat_exp(np.array([0.1, -0.2, 0.15]))
    sim.joint("j").position = turn
    sim.run(np.pi / 10)  # half a period of √(k/I) = 10 rad/s
    back = 2 * sim.joint("j").position[:3]
    print("rotation vector after half a period", back)
    assert np.allclose(back, -np.array([0.1, -0.2, 0.15]) * np.exp(-0.05 / 0.2 * np.pi / 10), atol=5e-3)


def test_servo_holds_a_pose_and_saturates():
    sim = rod_on(sh.Revolute("y", drive=sh.Servo(position=0.5, kp=500.0, kd=20.0)), gravity=(0, 0, -9.81))
    sim.run(3.0)
    sag = 9.81 * 0.25 * np.cos(0.5) / 500
    print(f"holds {sim.joint('joint').position:.6f} rad, torque {sim.joint('joint').drive.force:.4f} N·m")
    assert sim.joint("joint").position == pytest.approx(0.5 + sag, abs=1e-4)
    assert sim.joint("joint").drive.force == pytest.approx(-9.81 * 0.25 * np.cos(sim.joint("joint").position), rel=1e-4)
    sim.joint("joint").drive.max_force = 1.0
    sim.run(0.2)
    assert sim.joint("joint").drive.force == pytest.approx(-1.0) and sim.joint("joint").position > 0.6
    sim.joint("joint").drive.max_force = 100.0
    sim.joint("joint").drive.position = -0.2
    sim.run(3.0)
    assert sim.joint("joint").position == pytest.approx(-0.2, abs=6e-3)


def test_velocity_servo_and_one_given_while_running():
    sim = rod_on(sh.Revolute("z"))
    sim.joint("joint").drive = sh.Servo(velocity=3.0, kd=50.0)
    sim.run(0.5)
    assert sim.joint("joint").velocity == pytest.approx(3.0, rel=1e-6)
    sim.joint("joint").drive.velocity = -1.0
    sim.run(0.5)
    assert sim.joint("joint").velocity == pytest.approx(-1.0, rel=1e-5)


def test_dc_motor_step_response():
    motor = sh.DCMotor(voltage=12, resistance=1.2, inductance=5e-3, torque_constant=0.05, gear_ratio=10, rotor_inertia=2e-5)
    scene = sh.Scene(gravity=(0, 0, 0))
    scene.add_body("wheel", mass=1.0, inertia=(0.01, 0.01, 0.005))
    scene.add_joint("axle", sh.Revolute("z", drive=motor), scene.world, "wheel", position=(0, 0, 0))
    sim = sh.Simulation(scene, 1e-4, solver="sequential")
    inertia = 0.005 + 2e-5 * 100
    A = np.array([[0, 0.5 / inertia], [-0.5 / 5e-3, -1.2 / 5e-3]])
    b = np.array([0, 12 / 5e-3])
    final = np.linalg.solve(A, -b)[0], 12 / 1.2  # top speed, stall current
    for t in (0.002, 0.005, 0.02, 0.05, 0.2):
        sim.run(t - sim.time)
        speed, current = np.linalg.solve(A, (expm(A * t) - np.eye(2)) @ b)
        off = abs(sim.joint("axle").velocity - speed) / final[0], abs(sim.joint("axle").drive.current - current) / final[1]
        print(f"t = {t:5.3f} s: {speed:7.3f} rad/s, {100 * off[0]:.3f} % off; {current:6.3f} A, {100 * off[1]:.3f} % off")
        assert max(off) < 5e-3
    sim.joint("axle").drive.voltage = 0.0
    sim.run(0.5)
    assert abs(sim.joint("axle").velocity) < 1e-2, "it brakes itself when short-circuited"


def test_dc_motor_is_back_drivable_and_has_no_load_friction():
    motor = sh.DCMotor(resistance=1.0, torque_constant=0.1, gear_ratio=5, no_load_friction=0.02)
    scene = sh.Scene(gravity=(0, 0, 0))
    scene.add_body("wheel", mass=1.0, inertia=(0.01, 0.01, 0.005))
    scene.add_joint("axle", sh.Revolute("z", drive=motor), scene.world, "wheel", position=(0, 0, 0))
    sim = sh.Simulation(scene, 1e-3, solver="sequential")
    sim.joint("axle").effort = 0.099  # below 5 · 0.02 N·m at the joint
    sim.run(0.2)
    assert sim.joint("axle").stuck
    sim.joint("axle").effort = 1.1
    sim.run(1.0)
    speed = (1.1 - 0.1) / (0.1 * 5) ** 2
    print(f"driven backwards at {sim.joint('axle').velocity:.6f} rad/s (closed form {speed:.6f})")
    assert sim.joint("axle").velocity == pytest.approx(speed, rel=1e-6)
    assert sim.joint("axle").drive.current == pytest.approx(-0.5 * speed, rel=1e-6)


def test_a_joint_switched_off_lets_go():
    sim = rod_on(sh.Revolute("y", friction=10.0), gravity=(0, 0, -9.81))
    sim.run(0.1)
    sim.joint("joint").enabled = False
    sim.run(0.2)
    assert sim.body("rod").velocity[2] == pytest.approx(-9.81 * 0.2, abs=0.02)
    assert not sim.joint("joint").enabled


def arm_tree(iterations):
    scene = sh.Scene()
    bodies = [scene.world]
    for i in range(30):
        scene.add_body(f"b{i}", sh.Box(0.2, 0.05, 0.05), mass=1.0, position=(0.2 * i, 0.1 * (i % 3), 0))
        parent = bodies[(i + 1) // 2]
        scene.add_joint(f"j{i}", sh.Revolute("y", friction=0.5), parent, f"b{i}", position=(0.2 * i - 0.1, 0.1 * (i % 3), 0))
        bodies.append(f"b{i}")
    return sh.Simulation(scene, 1e-3, tolerances=sh.Tolerances(iterations=iterations, tolerance=1e-14), solver="sequential")


def test_a_budgeted_run_is_replayed_bit_for_bit():
    sim, counts = arm_tree(1000), []
    for _ in range(300):
        report = sim.step(budget=2e-4)
        counts.append(report.iterations)
        assert report.deadline_missed or report.converged or report.iterations == 1000
    print(f"sweeps within 200 µs: {min(counts)} to {max(counts)}")
    again = arm_tree(1000)
    for n in counts:
        again.step(iterations=n)
    assert np.array_equal(sim.state.position.numpy(), again.state.position.numpy())
    assert np.array_equal(sim.state.momentum.numpy(), again.state.momentum.numpy())
    assert again.step().iterations > 1, "the cap of one call does not last"


def test_a_step_out_of_time_ends_in_a_valid_state():
    sim = arm_tree(1000)
    for _ in range(200):
        report = sim.step(budget=1e-6)
        assert report.deadline_missed and report.iterations >= 1
    assert np.isfinite(sim.energy().total)


@pytest.mark.parametrize(
    ("spring", "speed"),
    [
        ((20.0, 0.3), (6, 8, -3)),
        pytest.param((20.0, 0.3), (3, 2, -1), marks=pytest.mark.slow),
        ({"rx": (20, 0), "ry": (40, 0), "rz": (10, 0)}, (3, 2, -1)),
    ],
)
def test_a_ball_joint_spring_keeps_energy(spring, speed):
    worst = []
    for dt in (2e-4, 1e-4):
        scene = sh.Scene(gravity=(0, 0, 0))
        scene.add_body("b", mass=1.0, inertia=(0.1, 0.13, 0.16))
        scene.add_joint("j", sh.Spherical(spring=spring), scene.world, "b", position=(0, 0, 0))
        sim = sh.Simulation(scene, dt, solver="sequential")
        sim.joint("j").velocity = speed
        start, drift = sim.energy().total, 0.0
        for _ in range(20):
            sim.run(0.05)
            drift = max(drift, sim.energy().total / start - 1)
        worst.append(drift)
    print(f"ball spring {spring}: energy above the start by {worst[0]:.1e}, {worst[1]:.1e}")
    assert worst[1] < 1e-2


@pytest.mark.parametrize("target", [(2, -2, 1), (4, 0, 0), (3.2, 0, 0), (0.5, -0.8, 0.3)])
def test_a_ball_joint_servo_reaches_its_target(target):
    scene = sh.Scene(gravity=(0, 0, 0))
    scene.add_body("b", mass=1.0, inertia=(0.1, 0.13, 0.16))
    scene.add_joint("j", sh.Spherical(drive=sh.Servo(kp=50, kd=5)), scene.world, "b", position=(0, 0, 0))
    sim = sh.Simulation(scene, 1e-3, solver="sequential")
    sim.joint("j").drive.position = target
    sim.run(5.0)
    goal = quat_exp(np.array(target, float))
    assert abs(sim.joint("j").position @ goal) == pytest.approx(1.0, abs=1e-9)
    assert np.allclose(sim.joint("j").velocity, 0, atol=1e-6)


def test_a_stiff_spring_that_turns_keeps_its_length():
    scene = sh.Scene(gravity=(0, 0, 0))
    scene.add_body("a", mass=1.0, position=(-0.5, 0, 0), velocity=(0, -3, 0))
    scene.add_body("b", mass=1.0, position=(0.5, 0, 0), velocity=(0, 3, 0))
    scene.add_spring("s", "a", "b", stiffness=1e9)
    sim = sh.Simulation(scene, 0.01, solver="sequential")
    start, worst = sim.energy().total, 0.0
    for _ in range(100):
        sim.step()
        worst = max(worst, abs(sim.spring("s").length - 1.0))
    print(f"length within {worst:.1e} m, energy {sim.energy().total:.4f} J of {start:.4f} J")
    assert worst < 1e-4 and sim.energy().kinetic == pytest.approx(start, rel=2e-2)


def test_brakes_differ_between_worlds_and_axes():
    scene = sh.Scene(gravity=(0, 0, 0))
    scene.add_body("w", sh.Cylinder(0.2, 0.1), mass=5.0)
    scene.add_joint("axle", sh.Revolute("z"), scene.world, "w", position=(0, 0, 0))
    sim = sh.Simulation(scene, 1e-3, worlds=3, solver="sequential")
    sim.joint("axle").velocity = [1.0, 1.0, 1.0]
    sim.joint("axle").friction = [0.0, 0.1, 100.0]
    sim.run(0.1)
    assert np.allclose(sim.joint("axle").velocity, [1.0, 0.9, 0.0], atol=2e-3)
    with pytest.raises(sh.SimulationError, match="one a world"):
        sim.joint("axle").friction = [1.0, 2.0]
    scene = sh.Scene(gravity=(0, 0, 0))
    scene.add_body("b", sh.Sphere(0.1), mass=1.0)
    scene.add_joint("u", sh.Universal(("x", "y"), friction={"rx": 0.0, "ry": 0.0}), scene.world, "b", position=(0, 0, 0))
    one = sh.Simulation(scene, 1e-3, solver="sequential")
    one.joint("u").friction = {"rx": 50.0}
    one.joint("u").effort = (1e-3, 1e-3)
    one.run(0.1)
    assert abs(one.joint("u").velocity[0]) < 1e-15 and one.joint("u").velocity[1] > 0.01


def test_a_joint_switched_off_reports_nothing():
    joint = sh.Prismatic("x", spring=(100.0, 0.2), friction=3.0, limit=(-1, 0.1), drive=sh.Servo(torque=40.0))
    sim = rod_on(joint)
    sim.run(0.2)
    view = sim.joint("joint")
    assert view.limit_force != 0
    view.enabled = False
    sim.run(0.05)
    assert view.drive.force == view.limit_force == view.friction_force == 0 and not view.stuck and sim.energy().elastic == 0


def test_load_friction_holds_from_the_first_step():
    scene = sh.Scene()
    tilt = quat_exp(np.array([0, 0.29, 0]))
    scene.add_body("b", sh.Box(0.1, 0.1, 0.1), mass=2.0)
    scene.add_joint(
        "j", sh.Prismatic("x", friction=sh.Friction(0, load=0.3)), scene.world, "b", position=(0, 0, 0), rotation=tilt
    )
    sim = sh.Simulation(scene, 0.01, solver="sequential")
    sim.run(1.0)
    assert abs(sim.joint("j").position) < 1e-12


def test_more_refusals():
    body = sh.Scene()
    body.add_body("b", sh.Box(1, 1, 1))
    for make, word in (
        (lambda: sh.Joint("", limit=(0, 1)), "free axis"),
        (lambda: sh.Fixed(friction=1.0), "free axis"),
        (lambda: sh.Revolute("z", spring=(np.inf, 0)), "finite"),
        (lambda: sh.Revolute("z", damping=np.inf), "finite"),
        (lambda: sh.Revolute("z", limit=(np.inf, np.inf)), "lower is a number"),
        (lambda: sh.SwingTwist(), "give swing="),
        (lambda: sh.SwingTwist(swing=(0.2, 2.9)), "at most 5 times"),
        (lambda: sh.Limit(-1, 1, 2), "from 0 to 1"),
        (lambda: sh.Friction(viscous=np.inf), "finite"),
    ):
        with pytest.raises(sh.SceneError, match=word) as error:
            body.add_joint("j", make(), body.world, "b", position=(0, 0, 0))
        print(error.value)
    sim = rod_on(sh.Revolute("z", drive=sh.Servo(kp=1.0)))
    sim.joint("joint").drive.max_force = np.inf
    for setter in (lambda: setattr(sim.joint("joint").drive, "kp", "x"), lambda: setattr(sim.joint("joint"), "enabled", "x")):
        with pytest.raises(sh.SimulationError, match="'joint'"):
            setter()


def test_elastic_energy_beside_a_rod():
    scene = sh.Scene(gravity=(0, 0, 0))
    scene.add_body("a", sh.Box(0.1, 0.1, 0.1), mass=1.0)
    scene.add_body("b", sh.Box(0.1, 0.1, 0.1), mass=1.0, position=(1, 0, 0))
    scene.add_joint("rod", sh.Distance(), "a", "b", position=[(0, 0, 0), (1, 0, 0)])
    scene.add_joint("slide", sh.Prismatic("x", spring=(50.0, 0.2)), scene.world, "a", position=(0, 0, 0))
    assert sh.Simulation(scene, 1e-3, solver="sequential").energy().elastic == pytest.approx(1.0)


@pytest.mark.parametrize("method", ["sequential", "direct"])
@pytest.mark.parametrize("kind", ["rod", "ball", "clamp", "clamp by torque"])
def test_a_joint_breaks_where_it_carries_too_much(kind, method):
    """2 kg half a metre out: 19.62 N, and 9.81 N·m in a clamp; three worlds carry a load more each."""
    scene = sh.Scene()
    scene.add_body("b", sh.Box(0.1, 0.1, 0.1), mass=2.0, position=(0, 0, -1) if kind in ("rod", "ball") else (0.5, 0, 0))
    joint = {"rod": sh.Distance(), "ball": sh.Spherical()}.get(kind, sh.Fixed())
    place = [(0, 0, 0), (0, 0, -1)] if kind == "rod" else (0, 0, 0)
    strength = {"break_torque": 12.0} if kind == "clamp by torque" else {"break_force": 24.0}
    scene.add_joint("j", joint, "world", "b", position=place, **strength)
    sim = sh.Simulation(scene, 1e-3, method=method, worlds=3)
    sim.step(10)
    assert np.all(sim.joint("j").enabled)
    sim.body("b").apply_force(np.array([[0, 0, 0], [0, 0, -3.0], [0, 0, -6.0]]), once=False)
    sim.step(100)
    fallen = np.asarray(sim.body("b").velocity)[:, 2]
    print(f"{kind}, {method}: enabled {sim.joint('j').enabled}, velocities {np.round(fallen, 3)} m/s")
    assert sim.joint("j").enabled.tolist() == [True, True, False]
    assert np.all(np.abs(fallen[:2]) < 1e-6) and abs(fallen[2] + 0.1 * (9.81 + 3.0)) < 0.03


def test_a_strength_that_cannot_be_is_named():
    scene = sh.Scene()
    scene.add_body("b", sh.Box(0.1, 0.1, 0.1), mass=2.0)
    with pytest.raises(sh.SceneError, match="joint 'j': break_force is a positive finite number, got -1"):
        scene.add_joint("j", sh.Spherical(), "world", "b", position=(0, 0, 0), break_force=-1)
    scene.add_joint("j", sh.Spherical(), "world", "b", position=(0, 0, 0), break_torque=1.0)
    sim = sh.Simulation(scene, 1e-3, solver="direct")
    sim.step(10)
    assert sim.joint("j").enabled


@pytest.mark.parametrize("command", ["kp", "kd", "position", "velocity", "torque", "max_force", "voltage"])
def test_a_rod_has_no_axis_that_a_drive_could_move(command):
    scene = sh.Scene()
    scene.add_body("a", sh.Box(0.1, 0.1, 0.1), mass=1.0, position=(0, 0, -0.9))
    scene.add_joint("j", sh.Distance(), "world", "a", position=[(0, 0, 0), (0, 0, -0.9)])
    sim = sh.Simulation(scene, 1e-3, solver="sequential")
    with pytest.raises(sh.SimulationError, match=rf"joint 'j': drive.{command} needs a free axis"):
        setattr(sim.joint("j").drive, command, 0.3)
    sim.commands.acts.fill_(1)  # even so, no table is read past its end
    sim.step(10)
    assert np.allclose(sim.body("a").position, (0, 0, -0.9), atol=1e-12)


def test_nothing_acts_on_the_rotations_of_a_point_mass():
    scene = sh.Scene()
    scene.add_body("m", mass=1.0)
    for joint in (sh.Spherical(limit=sh.SwingTwist(swing=0.3)), sh.Spherical(friction=1.0)):
        with pytest.raises(sh.SceneError, match="point mass, which does not turn"):
            scene.add_joint("j", joint, scene.world, "m", position=(0, 0, 0))


def cone_over(limit, q):
    """How far a quaternion is beyond a swing-twist limit with a twist of (-0.2, 0.4), rad."""
    z = quat_to_matrix(q)[:, 2]
    sine = np.hypot(z[0], z[1])
    h = np.hypot(-z[1] / sine / limit.cone[0], z[0] / sine / limit.cone[1]) if sine > 1e-9 else 1e-9
    twist = 2 * np.arctan2(q[2], q[3])
    return max(np.arctan2(sine, z[2]) - 1 / h, -0.2 - twist, twist - 0.4)


def cardan_over(limit, q):
    angles = cardan_angles(q)
    return max(max(r.lower - x, x - r.upper) for r, x in zip(limit.ranges, angles, strict=True))


BALLS = {
    "cardan": (sh.Cardan(x=(-0.314, 0.314), y=(-0.262, 0.2), z=(-0.25, 0.314)), cardan_over),
    "cone": (sh.SwingTwist(swing=(0.5, 0.5), twist=(-0.2, 0.4)), cone_over),
    "unequal cone": (sh.SwingTwist(swing=(0.2, 1.2), twist=(-0.2, 0.4)), cone_over),
}


@pytest.mark.parametrize("solver", ["sequential", "direct"])
@pytest.mark.parametrize("kind", BALLS)
def test_ball_limits_hold_on_a_swinging_base_that_is_shaken(kind, solver):
    limit, over = BALLS[kind]
    rng = np.random.default_rng(1)
    scene = sh.Scene()
    scene.add_body("base", sh.Box(0.3, 0.3, 0.3), mass=3.0, position=(0, 0, 0.3))
    scene.add_joint("hook", sh.Spherical(), scene.world, "base", position=(0, 0, 0.5))
    scene.add_body("b", sh.Box(0.3, 0.2, 0.5), mass=1.0, position=(0, 0, -0.25))
    scene.add_joint("j", sh.Spherical(limit=limit), "base", "b", position=(0, 0, 0))
    sim = sh.Simulation(scene, 1e-3, worlds=8, solver=solver)
    worst = fastest = 0.0
    for _ in range(10):
        sim.body("b").apply_torque(rng.normal(size=(8, 3)) * 12, once=False)
        for _ in range(20):
            sim.step()
            worst = max(worst, max(over(limit, q) for q in sim.joint("j").position))
        fastest = max(fastest, np.abs(sim.body("b").angular_velocity).max())
    print(f"{kind}, {solver}: {worst:.1e} rad beyond at up to {fastest:.0f} rad/s")
    assert worst < {"sequential": 1.5e-9, "direct": 6.5e-9}[solver]


def test_an_arm_that_brakes_hold_goes_back_to_where_it_stood():
    """Sweeps that do not converge let it sag in the first steps: it does not go on, and awake it does not stay."""
    scene, last, x = sh.Scene(), "world", 0.0
    parts = zip("zyyxyx", (0.2, 0.4, 0.4, 0.2, 0.1, 0.1), (8, 8, 5, 2, 1.5, 0.5), (200, 200, 100, 30, 20, 10), strict=True)
    for i, (axis, length, mass, brake) in enumerate(parts):
        scene.add_body(f"b{i}", sh.Box(length, 0.1, 0.1), mass=mass, position=(x + length / 2, 0, 0))
        scene.add_joint(f"j{i}", sh.Revolute(axis, friction=brake), last, f"b{i}", position=(x, 0, 0))
        last, x = f"b{i}", x + length
    sim = sh.Simulation(scene, 1e-3, solver="sequential", sleep=False)  # it would sleep 3e-8 rad off
    off = []
    for _ in range(1000):
        sim.step()
        off.append(max(abs(sim.joint(f"j{i}").position) for i in range(6)))
    sim.run(59.0)
    end = max(abs(sim.joint(f"j{i}").position) for i in range(6))
    print(f"brakes hold six joints: at most {max(off):.1e} rad off, {off[-1]:.1e} after 1 s, {end:.1e} after 60 s")
    assert max(off) < 7e-4 and off[-1] < 2.7e-7 and end < 1e-15


@pytest.mark.parametrize("radius", [1e-3, 1e-4, 1e-5])
def test_a_small_ball_on_a_long_lever(radius):
    """m r²/I up to 2.5e10: a block's inverse loses its condition, not the square of that."""
    scene = sh.Scene()
    scene.add_body("a", sh.Sphere(radius), mass=1.0, position=(1, 0, 0))
    scene.add_joint("j", sh.Revolute("y"), "world", "a", position=(0, 0, 0))
    sim = sh.Simulation(scene, 1e-3, solver="sequential")
    off = []
    for _ in range(20):
        sim.step(50)
        off.append(abs(sim.energy().total))
    print(f"m r²/I = {2.5 / radius**2:.1e}: energy off by {max(off):.1e} J, gap {sim.constraint_error().max():.1e}")
    assert max(off) < 1e-3 and sim.constraint_error().max() < 1e-9


@pytest.mark.parametrize(("length", "mass"), [(1e-6, 1e-9), (1e6, 1e9), (1e-3, 1e6), (1e3, 1e-6)])
def test_a_scaled_pendulum_moves_alike(length, mass):
    def angles(L, M):
        scene, last = sh.Scene(gravity=(0, 0, -9.81 * L)), "world"
        for i in range(3):
            scene.add_body(f"b{i}", sh.Box(0.5 * L, 0.1 * L, 0.1 * L), mass=M * (i + 1), position=(0.5 * L * i + 0.25 * L, 0, 0))
            joint = sh.Revolute("y", damping=0.01 * M * L**2, friction=0.02 * M * L**2)
            scene.add_joint(f"j{i}", joint, last, f"b{i}", position=(0.5 * L * i, 0, 0))
            last = f"b{i}"
        sim = sh.Simulation(scene, 1e-3, tolerances=sh.Tolerances(iterations=200), solver="sequential")
        converged = all(sim.step(25).converged for _ in range(20))
        return np.array([sim.joint(f"j{i}").position for i in range(3)]), converged

    (here, met), (there, also) = angles(1.0, 1.0), angles(length, mass)
    print(f"{length:g} m, {mass:g} kg: {np.abs(here - there).max():.1e} rad from 1 m, 1 kg; converged {met}, {also}")
    assert np.abs(here - there).max() < 1e-6 and met and also
