"""Dry friction in joints: it holds without creep, slides with Coulomb's direction, and takes the energy it should."""

import numpy as np
import pytest

import sharnir as sh
from sharnir.core.spatial import quat_exp, quat_log, quat_rotate

SLOPE = 0.5
DOWN = (9.81 * np.sin(SLOPE), 0, -9.81 * np.cos(SLOPE))  # gravity seen from a slope along x
HOLDS = {
    "revolute": (sh.Revolute("y", friction=1.5), (0, 0, -9.81)),
    "spherical": (sh.Spherical(friction=1.5), (0, 0, -9.81)),
    "universal": (sh.Universal(("x", "y"), friction=1.5), (0, 0, -9.81)),
    "prismatic": (sh.Prismatic("x", friction=6.0), DOWN),
    "cylindrical": (sh.Cylindrical("x", friction=6.0), DOWN),
    "planar": (sh.Planar("z", friction=6.0), DOWN),
    "any: x rz": (sh.Joint("x rz", friction=6.0), DOWN),
    "any: x y rx ry rz": (sh.Joint("x y rx ry rz", friction=6.0), DOWN),
}


def held_rod(joint, gravity, dt=1e-3):
    scene = sh.Scene(gravity=gravity)
    scene.add_body("rod", sh.Box(0.2, 0.02, 0.02), mass=1.0, position=(0.1, 0, 0))
    scene.add_joint("joint", joint, scene.world, "rod", position=(0, 0, 0))
    return sh.Simulation(scene, dt, solver="sequential")


@pytest.mark.parametrize("name", HOLDS)
def test_a_stuck_joint_does_not_creep_in_a_minute(name):
    sim = held_rod(*HOLDS[name])
    start = np.atleast_1d(sim.joint("joint").position)
    sim.run(60.0)
    moved = np.abs(np.atleast_1d(sim.joint("joint").position) - start).max()
    print(f"{name}: moved by {moved:.1e} in 60 s, stuck {sim.joint('joint').stuck}")
    assert moved <= 4e-16
    assert np.all(sim.joint("joint").stuck)


def test_door_of_the_paper():
    """Pushed to 1.5094 rad/s in 0.33 s, then coasts against 20 N·m: stands at 0.87 s after 37.62° and stays, to the last bit."""
    scene = sh.Scene()
    scene.add_body("door", sh.Box(0.9, 0.04, 2.0), mass=26.49, position=(0.45, 0, 1))
    scene.add_joint("hinge", sh.Revolute("z", friction=20.0), scene.world, "door", position=(0, 0, 1))
    sim = sh.Simulation(scene, 0.01, solver="sequential")
    hinge = sim.joint("hinge")
    inertia = 26.49 * (0.9**2 + 0.04**2) / 12 + 26.49 * 0.45**2
    hinge.effort = 20.0 + inertia * 1.5094 / 0.33
    sim.step(33)
    hinge.effort = 0.0
    sim.step()
    speeds = [hinge.velocity]
    while not hinge.stuck:
        sim.step()
        speeds.append(hinge.velocity)
    bend = np.abs(np.diff(speeds[:-1], 2)).max()
    print(f"stands at {sim.time:.2f} s after {np.degrees(hinge.position):.3f}°, speed linear to {bend:.1e} rad/s")
    assert sim.time == pytest.approx(0.87, abs=0.0101)
    assert np.degrees(hinge.position) == pytest.approx(37.62, abs=0.01)
    assert bend < 1e-6
    angle = hinge.position
    sim.run(60.0)
    assert hinge.position == angle


def test_dry_pendulum_loses_amplitude_as_it_should():
    exact = [1.447416748, 1.332134876, 1.223244426]

    def amplitudes(dt):
        scene = sh.Scene()
        scene.add_body("rod", sh.Box(1, 0.01, 0.01), mass=1.0, inertia=(1e-4, 1 / 12, 1 / 12), position=(0.5, 0, 0))
        scene.add_joint("hinge", sh.Revolute("y", friction=0.2), scene.world, "rod", position=(0, 0, 0))
        sim = sh.Simulation(scene, dt, solver="sequential")
        hinge, found, last = sim.joint("hinge"), [], 0.0
        while len(found) < 3:
            sim.step()
            v = hinge.velocity
            if last * v < 0:
                found.append(abs(hinge.position - np.pi / 2))
            last = v or last
        return np.array(found)

    errors = [np.abs(amplitudes(dt) - exact).max() for dt in (4e-4, 2e-4, 1e-4)]
    print("amplitudes, worst error at dt = 0.4, 0.2, 0.1 ms:", [f"{e:.1e}" for e in errors])
    assert errors[2] < 2e-8
    assert errors[1] < 0.6 * errors[0] and errors[2] < 0.6 * errors[1]


def test_dry_pendulum_ends_where_it_should():
    scene = sh.Scene()
    scene.add_body("rod", sh.Box(1, 0.01, 0.01), mass=1.0, inertia=(1e-4, 1 / 12, 1 / 12), position=(0.5, 0, 0))
    scene.add_joint("hinge", sh.Revolute("y", friction=0.2), scene.world, "rod", position=(0, 0, 0))
    sim = sh.Simulation(scene, 1e-4, solver="sequential")
    sim.run(18.0)
    end = abs(sim.joint("hinge").position - np.pi / 2)
    print(f"stick angle {end:.9f} (exact 0.015944619, the stick zone is ±0.040786), stuck {sim.joint('hinge').stuck}")
    assert sim.joint("hinge").stuck and end == pytest.approx(0.015944619, abs=1e-6)


@pytest.mark.parametrize("axis", [(1, 0, 0), (0, 0, 1), (1, 1, 0), (0.3, -0.5, 0.8)])
def test_ball_joint_stops_alike_about_every_axis(axis):
    inertia, torque, speed = 0.4, 0.5, 3.0
    scene = sh.Scene(gravity=(0, 0, 0))
    n = np.array(axis) / np.linalg.norm(axis)
    scene.add_body("ball", mass=1.0, inertia=(inertia,) * 3, angular_velocity=speed * n)
    scene.add_joint("joint", sh.Spherical(friction=torque), scene.world, "ball", position=(0, 0, 0))
    sim = sh.Simulation(scene, 1e-3, solver="sequential")
    while not np.all(sim.joint("joint").stuck):
        sim.step()
    angle = np.linalg.norm(quat_log(sim.joint("joint").position))
    turn = inertia * speed**2 / (2 * torque)
    turn = abs((turn + np.pi) % (2 * np.pi) - np.pi)
    print(f"stops at {sim.time:.4f} s (exact {inertia * speed / torque:.4f}), angle {angle:.5f} (exact {turn:.5f})")
    assert sim.time == pytest.approx(inertia * speed / torque, rel=1e-3)
    assert angle == pytest.approx(turn, abs=2e-3)


def test_friction_is_opposite_to_the_slip_of_a_body_with_unequal_inertias():
    scene = sh.Scene(gravity=(0, 0, 0))
    scene.add_body(
        "b", mass=1.0, inertia=(0.05, 0.4, 0.42), angular_velocity=(2.0, 1.5, 0.5), rotation=quat_exp(np.array([0.3, 0.2, 0.1]))
    )
    scene.add_joint("joint", sh.Spherical(friction=0.5), scene.world, "b", position=(0, 0, 0))
    sim = sh.Simulation(scene, 1e-4, solver="sequential")
    worst = 0.0
    for _ in range(200):
        before = sim.snapshot()
        sim.step()
        f = sim.joint("joint").friction_force
        # the speed the law speaks of: at the orientation of the start of the step
        q0 = before["state.rotation"][1, 0]
        inertia = np.diag([0.05, 0.4, 0.42])
        L = sim.state.momentum.numpy()[1, 0]
        u = quat_rotate(q0, np.linalg.solve(inertia, quat_rotate(q0 * [-1, -1, -1, 1], L)))
        angle = np.degrees(np.arccos(np.clip(-f @ u / np.linalg.norm(f) / np.linalg.norm(u), -1, 1)))
        worst = max(worst, angle)
        assert np.linalg.norm(f) == pytest.approx(0.5, rel=1e-9)
    print(f"friction against the slip: at most {worst:.2e}° off")
    assert worst < 0.1


@pytest.mark.parametrize("joint", ["prismatic", "planar"])
def test_stick_threshold_on_an_incline(joint):
    weight = 9.81 * np.sin(SLOPE)
    for factor, sticks in ((1.001, True), (0.999, False)):
        made = {"prismatic": sh.Prismatic, "planar": sh.Planar}[joint]
        sim = held_rod(made("x" if joint == "prismatic" else "z", friction=factor * weight), DOWN)
        sim.run(0.5)
        print(f"{joint}: bound {factor} of the weight along the slope, stuck {sim.joint('joint').stuck}")
        assert bool(np.all(sim.joint("joint").stuck)) == sticks


def test_breakaway_at_static_slides_at_dynamic():
    scene = sh.Scene(gravity=(0, 0, 0))
    scene.add_body("block", sh.Box(0.1, 0.1, 0.1), mass=2.0)
    scene.add_joint(
        "rail", sh.Prismatic("x", friction=sh.Friction(static=5.0, dynamic=3.0)), scene.world, "block", position=(0, 0, 0)
    )
    sim = sh.Simulation(scene, 1e-3, solver="sequential")
    rail = sim.joint("rail")
    rail.effort = 4.99
    sim.run(0.1)
    assert rail.stuck and rail.friction_force == pytest.approx(-4.99)
    rail.effort = 5.01
    sim.run(1.0)
    print(f"slides at {rail.velocity:.6f} m/s after 1 s (exact {(5.01 - 3) / 2:.6f})")
    assert not rail.stuck and rail.velocity == pytest.approx((5.01 - 3.0) / 2, rel=1e-3)
    rail.effort = 4.0  # below static, above dynamic: it slides on
    sim.run(0.5)
    assert not rail.stuck


def test_a_journal_turns_at_mu_r_weight():
    mu, r, mass = 0.2, 0.03, 5.0
    for factor, sticks in ((0.995, True), (1.005, False)):
        scene = sh.Scene()
        scene.add_body("drum", sh.Cylinder(0.2, 0.1), mass=mass)
        scene.add_joint("journal", sh.Revolute("x", friction=sh.Friction(load=mu * r)), scene.world, "drum", position=(0, 0, 0))
        sim = sh.Simulation(scene, 1e-3, solver="sequential")
        sim.step(20)
        sim.joint("journal").effort = factor * mu * r * mass * 9.81
        sim.run(0.5)
        print(f"torque {factor} μ r W: stuck {sim.joint('journal').stuck}, speed {sim.joint('journal').velocity:.2e}")
        assert sim.joint("journal").stuck == sticks


def test_stribeck_and_viscous_friction():
    """A pushed block settles where the bounds, blended by the speed, plus c·u balance the push."""
    law = sh.Friction(static=4.0, dynamic=2.0, viscous=3.0, stribeck=0.5)
    scene = sh.Scene(gravity=(0, 0, 0))
    scene.add_body("block", sh.Box(0.1, 0.1, 0.1), mass=1.0)
    scene.add_joint("rail", sh.Prismatic("x", friction=law), scene.world, "block", position=(0, 0, 0))
    sim = sh.Simulation(scene, 1e-3, solver="sequential")
    sim.joint("rail").effort = 6.0
    sim.run(10.0)
    u = sim.joint("rail").velocity
    balance = 2 + 2 * np.exp(-((u / 0.5) ** 2)) + 3 * u
    print(f"settles at {u:.6f} m/s, where friction is {balance:.6f} N of 6 N")
    assert balance == pytest.approx(6.0, abs=1e-6)


def test_a_brake_while_running():
    scene = sh.Scene(gravity=(0, 0, 0))
    scene.add_body("wheel", sh.Cylinder(0.2, 0.1), mass=5.0)
    scene.add_joint("axle", sh.Revolute("z"), scene.world, "wheel", position=(0, 0, 0))
    sim = sh.Simulation(scene, 1e-3, solver="sequential")
    axle = sim.joint("axle")
    axle.velocity = 10.0
    sim.run(0.5)
    assert axle.velocity == pytest.approx(10.0)
    axle.friction = 2.0
    start, taken = sim.energy().kinetic, 0.0
    while not axle.stuck:
        sim.step()
        taken += axle.dissipated
    inertia = 0.5 * 5.0 * 0.04
    print(f"stops {sim.time - 0.5:.4f} s after (exact {inertia * 10 / 2:.4f}); friction took {taken:.4f} J of {start:.4f} J")
    assert sim.time - 0.5 == pytest.approx(inertia * 10 / 2.0, abs=2e-3)
    assert taken == pytest.approx(start, rel=5e-3)
    axle.friction = 0.0
    axle.effort = 1.0
    sim.step(5)
    assert not axle.stuck and axle.velocity > 0


def test_per_axis_bounds():
    sim = held_rod(sh.Planar("z", friction={"x": 100.0, "y": 1.0}), DOWN)
    sim.joint("joint").effort = (0, 3.0, 0)
    sim.run(0.2)
    x, y, _ = sim.joint("joint").position
    print(f"x {x:.1e}, y {y:.4f}: held along x alone, while it turns")
    assert abs(x) < 1e-6 and y > 0.03


@pytest.mark.parametrize(("options", "words"), [
    (dict(friction=-1.0), ("friction", "at least 0", "-1.0")),
    (dict(limit=(1.0, -1.0)), ("lower is at most upper", "(1, -1)")),
    (dict(limit={"x": (0, 1)}), ("'x'", "not free")),
    (dict(limit=3.0), ("(lower, upper)", "3.0")),
    (dict(spring=5.0), ("(stiffness, rest)", "5.0")),
    (dict(damping=-2.0), ("damping", "at least 0")),
    (dict(drive="fast"), ("Servo, DCMotor", "HydraulicCylinder", "fast")),
    (dict(limit=sh.Cardan(x=(-1, 1))), ("Cardan", "three free rotations")),
])  # fmt: skip
def test_mistakes_name_the_joint(options, words):
    scene = sh.Scene()
    scene.add_body("rod", sh.Box(1, 0.1, 0.1))
    with pytest.raises(sh.SceneError) as error:
        scene.add_joint("elbow", sh.Revolute("z", **options), scene.world, "rod", position=(0, 0, 0))
    print(error.value)
    assert "'elbow'" in str(error.value) and all(word in str(error.value) for word in words)


def test_mistakes_of_the_laws_themselves():
    for make, word in (
        (lambda: sh.Friction(static=1.0, dynamic=2.0), "dynamic is at most static"),
        (lambda: sh.Friction(static=float("nan")), "static"),
        (lambda: sh.SwingTwist(swing=3.2), "at most 175°"),
        (lambda: sh.Cardan(y=(-2, 2)), "within ±85°"),
        (lambda: sh.DCMotor(resistance=0.0), "resistance is a positive"),
        (lambda: sh.DCMotor(efficiency=1.2), "efficiency"),
        (lambda: sh.Servo(kp=-1), "kp"),
        (lambda: sh.Servo(velocity=1.0), "needs kd"),
        (lambda: sh.Limit(0, 1, restitution=2), "restitution"),
        (lambda: sh.Spherical(limit=(0, 1)).axes("joint 'b'"), "Cardan"),
    ):
        with pytest.raises(sh.SceneError, match=word) as error:
            make()
        print(error.value)
    sim = held_rod(*HOLDS["revolute"])
    with pytest.raises(sh.SimulationError, match=r"'joint'.*at least 0"):
        sim.joint("joint").friction = -3.0
    with pytest.raises(sh.SimulationError, match="budget"):
        sim.step(budget=-1.0)


def test_a_held_axis_keeps_holding_when_its_load_equals_the_sliding_bound():
    scene = sh.Scene(gravity=(0, 0, 0))
    scene.add_body("b", sh.Box(1, 1, 1), mass=1.0)
    scene.add_joint("j", sh.Prismatic("x", friction=sh.Friction(10.0, 6.0)), scene.world, "b", position=(0, 0, 0))
    sim = sh.Simulation(scene, 1e-3, solver="sequential")
    for force in (3.0, 6.0, 7.0):
        sim.joint("j").effort = force
        sim.step(5)
        assert sim.joint("j").stuck and sim.joint("j").velocity == 0.0
        assert sim.joint("j").friction_force == pytest.approx(-force)


@pytest.mark.parametrize("dt", [0.1, 0.01, 0.001])
def test_friction_takes_all_the_energy_there_was(dt):
    scene = sh.Scene(gravity=(0, 0, 0))
    scene.add_body("b", sh.Box(1, 1, 1), mass=1.0, velocity=(1, 0, 0))
    scene.add_joint("j", sh.Prismatic("x", friction=2.0), scene.world, "b", position=(0, 0, 0))
    sim = sh.Simulation(scene, dt, solver="sequential")
    taken = 0.0
    while not sim.joint("j").stuck:
        sim.step()
        taken += sim.joint("j").dissipated
    print(f"dt = {dt} s: {taken:.9f} J of 0.5 J")
    assert taken == pytest.approx(0.5, abs=1e-9)


@pytest.mark.parametrize("solver", ["sequential", "direct"])
def test_friction_on_a_joint_that_a_loop_holds_still(solver):
    """A bolt beside a hinge with friction: what friction does there is undetermined, and must not disturb the motion."""
    scene = sh.Scene()
    scene.add_body("frame", sh.Box(0.1, 0.1, 2), mass=10.0, position=(0, 0, -1))
    scene.add_body("door", sh.Box(0.9, 0.04, 2), mass=30.0, position=(0.5, 0, -1))
    scene.add_joint("hang", sh.Spherical(), "world", "frame", position=(0, 0, 0))
    scene.add_joint("hinge", sh.Revolute("z", friction=5.0), "frame", "door", position=(0.05, 0, -1))
    scene.add_joint("bolt", sh.Fixed(), "frame", "door", position=(0.95, 0, -1))
    sim = sh.Simulation(scene, 1e-3, solver=solver)
    start, most = sim.energy().total, -np.inf
    for _ in range(20):
        sim.step(50)
        most = max(most, sim.energy().total - start)
    sim.joint("hinge").friction = 3.0
    assert sim.joint("hinge").friction.static == 0.0, "the loop holds it"
    print(f"{solver}: energy at most {most:.1e} J above the start, gap {sim.constraint_error().max():.1e}")
    assert most < 0.05 and sim.constraint_error().max() < 1e-4


@pytest.mark.parametrize("touches", [False, True])
def test_a_brake_that_is_taken_off_and_put_on_again_stops_what_turns(touches):
    """What it held before counts no more: a wheel that has come to turn does not go to and fro under its brake."""
    scene = sh.Scene()
    if touches:
        scene.add_ground()
    scene.add_body("wheel", mass=1.0, inertia=(0.02, 0.03, 0.04), position=(0, 0, 3))
    scene.add_joint("axle", sh.Revolute("y", friction=5.0), "world", "wheel", position=(0, 0, 3))
    sim = sh.Simulation(scene, 5e-3, solver="direct", sleep=False)
    axle = sim.joint("axle")
    sim.run(0.05)
    axle.friction = 0.0
    sim.body("wheel").apply_torque((0, 0.3 / 5e-3, 0))
    sim.run(0.1)
    assert axle.velocity == pytest.approx(10.0, rel=1e-6)
    axle.friction = 5.0
    sim.run(0.1)
    speeds = []
    for _ in range(20):
        sim.step()
        speeds.append(abs(axle.velocity))
    print(f"{'with a ground' if touches else 'alone'}: at most {max(speeds):.1e} rad/s, stuck {axle.stuck}")
    assert max(speeds) < 1e-15 and axle.stuck
