"""A rope that a joint's axis winds: torque, inertia and brake of the drum, and the rope's tension that turns it."""

import numpy as np
import pytest

import sharnir as sh

R, J, M, LONG = 0.1, 0.5, 50.0, 5.0  # m, kg·m², kg, m


def show(what, error, allowed):
    print(f"{what}: {error:.3g} (allowed {allowed:g})")
    assert error <= allowed, f"{what}: {error:.3g} > {allowed:g}"


def winch(solver, dt=0.002, *, thin=1e-4, reel="start", worlds=1, **axis):
    """A load on a light rope from a drum on the world."""
    scene = sh.Scene()
    scene.add_body("drum", mass=20.0, inertia=(1.0, J, 1.0), position=(0, 0, 1))
    scene.add_joint("axle", sh.Revolute("y", **axis), scene.world, "drum", position=(0, 0, 1))
    scene.add_body("load", sh.Box(0.3, 0.3, 0.3), mass=M, position=(0, 0, -LONG - 0.15))
    ends, held = ((0, 0, 0), (0, 0, -LONG)), ("world", "load")
    if reel == "end":
        ends, held = ends[::-1], held[::-1]
    rope = {"segments": 10, "mass_per_length": thin, "reel": reel, "longest": 8.0}
    scene.add_rope("rope", *ends, attach=held, winch=("axle", R), **rope)
    return sh.Simulation(scene, dt, solver=solver, worlds=worlds)


def wound(sim):
    """By how much the length differs from what the drum's angle tells, m."""
    return float(np.max(np.abs(sim.rope("rope").length + R * sim.joint("axle").position - LONG)))


@pytest.mark.parametrize(("solver", "reel"), [("direct", "start"), ("direct", "end"), ("sequential", "start")])
def test_a_load_rises_as_the_motors_torque_says(solver, reel):
    """a = (τ/R − m g)/(m + J/R²), while elements at the drum are joined; the work of the torque is in the energy."""
    sim, torque = winch(solver, reel=reel), 80.0
    axle, start = sim.joint("axle"), sim.energy().total
    axle.effort = torque
    sim.run(0.5)
    a = (torque / R - M * 9.81) / (M + J / R**2)
    show(f"acceleration, {solver}", abs(sim.body("load").velocity[2] / 0.5 / a - 1), 1e-3)
    show("tension", abs(sim.rope("rope").tension[0] / (M * (9.81 + a)) - 1), 1e-3)
    show("length against the drum's angle, m", wound(sim), 1e-6)
    taken = LONG - sim.rope("rope").length
    show("rope taken in", abs(taken / (0.5 * a * 0.25) - 1), 1e-2)
    work = torque * axle.position
    show("energy against work", abs(sim.energy().total - start - work) / work, 1e-4 if solver == "direct" else 3e-2)


@pytest.mark.parametrize("solver", ["direct", "sequential"])
def test_a_brake_holds_a_load_and_stops_it(solver):
    sim = winch(solver, friction=100.0)
    load, axle = sim.body("load"), sim.joint("axle")
    sim.run(0.2)
    show(f"sinks in 0.2 s, {solver}, m", abs(load.position[2] + LONG + 0.15), 1e-9 if solver == "direct" else 1e-4)
    show("tension", abs(sim.rope("rope").tension[0] / (M * 9.81) - 1), 1e-3)
    axle.friction = 0.0
    sim.run(0.3)
    fall = M * 9.81 / (M + J / R**2) * 0.3
    show("falls", abs(-load.velocity[2] / fall - 1), 2e-3)
    axle.friction = 200.0
    sim.run(0.5)
    show("stands again, m/s", abs(load.velocity[2]), 1e-6 if solver == "direct" else 1e-3)
    show("length against the drum's angle, m", wound(sim), 1e-6)


@pytest.mark.parametrize("solver", ["direct", "sequential"])
def test_a_dc_motor_lifts_at_its_steady_speed(solver):
    """τ = N k (V − k N ω)/R_a; two worlds at two voltages."""
    k, n, ohm = 0.05, 60.0, 0.5
    sim = winch(solver, 0.005, worlds=2, drive=sh.DCMotor(resistance=ohm, torque_constant=k, gear_ratio=n))
    volts = np.array([48.0, 36.0])
    sim.joint("axle").drive.voltage = volts
    sim.run(1.0)
    speed = (volts - M * 9.81 * R * ohm / (n * k)) / (k * n)
    show(f"drum, {solver}", float(np.abs(sim.joint("axle").velocity / speed - 1).max()), 1e-3)
    show("load", float(np.abs(sim.body("load").velocity[:, 2] / (R * speed) - 1).max()), 1e-3)
    show("length against the drum's angle, m", wound(sim), 1e-6)


def test_a_winch_on_a_floating_base_turns_it_back():
    """Base, drum and load float without gravity: a torque on the axle moves all three, their momenta stay 0, energy is its work.

    The rope is as light as may be: what is taken in takes its momentum along.
    """
    scene = sh.Scene(gravity=(0, 0, 0))
    scene.add_body("base", sh.Box(1, 1, 0.5), mass=200.0)
    scene.add_body("drum", mass=20.0, inertia=(1.0, J, 1.0), position=(0, 0, 0.5))
    scene.add_joint("axle", sh.Revolute("y"), "base", "drum", position=(0, 0, 0.5))
    scene.add_body("load", sh.Box(0.3, 0.3, 0.3), mass=M, position=(0.4, 0.1, -3.25))
    rope = {"segments": 8, "mass_per_length": 1e-5, "reel": "start"}
    scene.add_rope("rope", (0.4, 0.1, -0.25), (0.4, 0.1, -3.1), attach=("base", "load"), winch=("axle", R), **rope)
    sim = sh.Simulation(scene, 0.002, solver="direct")
    sim.joint("axle").effort = 20.0
    sim.run(0.4)
    p, work = sim.momentum(), 20.0 * sim.joint("axle").position
    scale = M * float(np.linalg.norm(sim.body("load").velocity))
    show("linear momentum", float(np.abs(p.linear).max()) / scale, 1e-6)
    show("angular momentum", float(np.abs(p.angular).max()) / scale, 1e-6)
    show("energy against work", abs(sim.energy().total - work) / work, 1e-5)
    assert sim.body("load").velocity[2] > 0.1 and abs(sim.body("base").angular_velocity[1]) > 1e-3


@pytest.mark.parametrize("solver", ["direct", "sequential"])
def test_a_winch_lets_a_load_down_takes_up_slack_and_lifts_it_again(solver):
    """The load stands 0.2 m lower on a floor, rope is paid out beyond that; taken in, it comes up again, never pushed."""
    scene = sh.Scene()
    scene.add_body("drum", mass=20.0, inertia=(1.0, J, 1.0), position=(0, 0, 1))
    scene.add_joint("axle", sh.Revolute("y", drive=sh.Servo(kd=2000.0)), scene.world, "drum", position=(0, 0, 1))
    scene.add_body("load", sh.Box(0.3, 0.3, 0.3), mass=M, position=(0, 0, -2.15))
    scene.add_joint("rail", sh.Prismatic("z", limit=(-0.2, 1.0)), scene.world, "load", position=(0, 0, -2.15))
    scene.add_rope("rope", (0, 0, 0), (0, 0, -2), segments=8, mass_per_length=0.1, attach=("world", "load"), reel="start",
                   longest=3.0, winch=("axle", R))  # fmt: skip
    sim = sh.Simulation(scene, 0.005, solver=solver)
    for speed in (-5.0, 5.0):
        sim.joint("axle").drive.velocity = speed
        sim.run(0.8)
        least = float(np.min(sim.rope("rope").tension))
        show(f"{solver}: pushes, N", max(-least, 0.0), 1e-2)
        if speed < 0:
            show("stands on the floor, m", abs(sim.joint("rail").position + 0.2), 1e-5)
            assert sim.rope("rope").slack > 0.1
    off = abs(sim.joint("rail").position - R * sim.joint("axle").position)
    show("as high as the drum's angle tells, m", off, 1e-9 if solver == "direct" else 5e-4)
    show("stretch", sim.rope("rope").stretch, 1e-4)


def test_what_no_winch_can_be_is_refused():
    scene = sh.Scene()
    scene.add_body("drum", sh.Cylinder(0.1, 0.2), mass=1.0)
    scene.add_joint("slide", sh.Prismatic("z"), scene.world, "drum", position=(0, 0, 0))
    scene.add_joint("axle", sh.Revolute("y"), scene.world, "drum", position=(0, 0, 0))
    ends = ("rope", (0, 0, 0), (0, 0, -1))
    with pytest.raises(sh.SceneError, match="rope 'rope': winch is a joint of one rotation, and 'slide' is Prismatic"):
        scene.add_rope(*ends, reel="start", winch=("slide", 0.1))
    with pytest.raises(sh.SceneError, match="rope 'rope': winch goes with reel='start' or 'end'"):
        scene.add_rope(*ends, winch=("axle", 0.1))
    with pytest.raises(sh.SceneError, match="the radius of its drum is a finite number of m other than 0, got 0"):
        scene.add_rope(*ends, reel="start", winch=("axle", 0))
    with pytest.raises(sh.SceneError, match="winch is a joint that was added before, available: 'slide', 'axle'; got 'axel'"):
        scene.add_rope(*ends, reel="start", winch=("axel", 0.1))
    sim = winch("direct")
    with pytest.raises(sh.SimulationError, match="rope 'rope' is wound by joint 'axle'"):
        sim.rope("rope").reel_speed = 1.0
