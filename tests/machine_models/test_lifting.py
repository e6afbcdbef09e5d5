"""Cranes and excavators: they stand, move as their oil says, and the hook takes a load as it stands."""

import math

import numpy as np
import pytest

import sharnir as sh
from sharnir.machine_models.crane import MobileCrane
from sharnir.machine_models.excavator import Excavator
from sharnir.machine_models.forklift import Forklift
from sharnir.machine_models.inputs import Inputs
from sharnir.machine_models.truck import Truck


def show(what, error, allowed):
    print(f"{what}: {error:.3g} (allowed {allowed:g})")
    assert error <= allowed, f"{what}: {error:.3g} > {allowed:g}"


def test_jacks_lift_a_crane_and_carry_its_weight():
    """Oil that flows in, less what leaks past the pistons, lifts it: v = (Q c − leak p)/A; together they carry all of it."""
    scene = sh.Scene()
    scene.add_ground(material=sh.Material(friction=0.6))
    crane = MobileCrane(jacks=True)
    crane.add(scene)
    sim = sh.Simulation(scene, dt=0.01)
    hands = Inputs(sim, crane.inputs())
    hands.step(20)
    hands["jacks"] = 0.5
    hands.step(60)
    low = sim.body("crane carrier").position[2]
    hands.step(50)
    rise = (sim.body("crane carrier").position[2] - low) / 0.5
    pressures = [sim.joint(f"crane leg {i} ram").drive.pressure for i in range(4)]
    speed = (0.5 * 1.0e-3 - 1e-13 * np.mean(pressures)) / 0.015
    show("speed of the carrier", abs(rise / speed - 1), 1e-4)
    stands = sum(sim.body(n).mass for n in sim.model.body_names if n != "world" and " leg " not in n)
    show("weight on the jacks", abs(0.015 * sum(pressures) / (stands * 9.81) - 1), 1e-3)


def test_a_crane_lifts_by_its_parts_and_its_oil():
    """The hook rises by R ω / parts, ω the winch's flow over its displacement; slewing is as fast as its flow."""
    scene = sh.Scene()
    scene.add_ground()
    crane = MobileCrane()
    crane.add(scene, heading=0.3)
    sim = sh.Simulation(scene, 0.02)
    hands = Inputs(sim, crane.inputs())
    hands.step(20)
    weight = crane.block * 9.81 / crane.parts
    show("tension of a part", float(max(abs(sim.cable("crane cable").tension / weight - 1))), 1e-3)
    hands["hoist"] = 1.0
    hands.step(80)
    low = sim.body("crane hook").position[2]
    hands.step(50)
    rise = (sim.body("crane hook").position[2] - low) / 1.0
    show("speed of the hook", abs(rise / (0.25 * 3.0e-3 / 6.0e-4 / crane.parts) - 1), 1e-2)
    hands["hoist"], hands["slew"] = 0.0, 1.0
    hands.step(100)
    show("slewing", abs(sim.joint("crane slew").velocity / 0.15 - 1), 1e-2)
    show("the carrier stands, m", float(np.linalg.norm(sim.body("crane carrier").position)), 1e-3)
    with pytest.raises(sh.SceneError, match="MobileCrane 'crane': parts is 2, 4, 6 or 8, got 3"):
        MobileCrane(parts=3)


@pytest.mark.parametrize("solver", ["direct", "sequential"])
def test_a_hook_takes_a_load_where_it_stands(solver):
    """attach() moves nothing, holds from then on; enabled = False lets go again."""
    scene = sh.Scene()
    scene.add_body("hook", sh.Box(0.2, 0.2, 0.2), mass=5.0, position=(0, 0, 2))
    scene.add_joint("rail", sh.Prismatic("x", drive=sh.Servo(kp=1e4, kd=2e3)), scene.world, "hook", position=(0, 0, 2))
    scene.add_body("load", sh.Box(0.3, 0.3, 0.3), mass=10.0, position=(0.1, 0.05, 1.5), rotation=(0, 0, 0.1, 0.99498744))
    scene.add_joint("grip", sh.Fixed(), "hook", "load", position=(0.1, 0.05, 1.5))
    sim = sh.Simulation(scene, 0.005, solver=solver)
    grip, load = sim.joint("grip"), sim.body("load")
    grip.enabled = False
    sim.run(0.1)
    place = load.position
    show(f"fell freely, {solver}", abs(place[2] - 1.5 + 0.5 * 9.81 * 0.1 * 0.1), 1e-3)
    load.velocity, load.angular_velocity = (0, 0, 0), (0, 0, 0)
    grip.attach()
    with pytest.raises(sh.SimulationError, match="joint 'grip': it is attached already"):
        grip.attach()
    sim.run(0.3)
    off = float(np.linalg.norm(load.position - place))
    show(f"held where it was, {solver}: moved", off, 1e-9 if solver == "direct" else 4e-4)
    force = grip.reaction[0][2]
    show(f"by its weight, {solver}", abs(force / (10.0 * 9.81) - 1), 1e-2)
    grip.enabled = False
    sim.run(0.1)
    assert load.position[2] < place[2] - 0.04


@pytest.mark.parametrize("solver", ["direct", "sequential"])
@pytest.mark.parametrize("kind", ["fixed", "hinge"])
def test_each_world_takes_its_load_where_it_stands_there(solver, kind, tmp_path):
    """Three loads at three heights: each is attached in its own world, as it would be in a world alone; a checkpoint, a
    snapshot and a reset of one world bring the frames with them.
    """
    scene = sh.Scene()
    scene.add_body("hook", sh.Box(0.2, 0.2, 0.2), mass=5.0, position=(0, 0, 2))
    scene.add_joint("rail", sh.Prismatic("x", drive=sh.Servo(kp=1e4, kd=2e3)), scene.world, "hook", position=(0, 0, 2))
    scene.add_body("load", sh.Box(0.3, 0.3, 0.3), mass=10.0, position=(0.1, 0.05, 1.5))
    grip = sh.Fixed() if kind == "fixed" else sh.Revolute("x", damping=20.0)
    scene.add_joint("grip", grip, "hook", "load", position=(0.1, 0.05, 1.6))

    def made(worlds):
        sim = sh.Simulation(scene, 0.005, solver=solver, worlds=worlds)
        sim.joint("grip").enabled = False
        return sim

    spots = np.array([[0.1, 0.05, 1.5], [0.3, 0.2, 1.2], [0.0, -0.1, 1.0]])
    many = made(3)
    many.body("load").position = spots
    many.step()
    before = many.snapshot()
    many.joint("grip").attach(worlds=[0, 2])
    with pytest.raises(sh.SimulationError, match="joint 'grip': it is attached already in world 2"):
        many.joint("grip").attach(worlds=[False, False, True])
    many.step(10)
    fell = many.body("load").position[1, 2]
    show(f"the one that was left falls, {solver}", abs(spots[1, 2] - fell - 0.5 * 9.81 * 0.055**2), 1e-3)
    many.joint("grip").attach(worlds=1)
    file = tmp_path / "lifting"
    many.save(file)
    many.step(20)
    off = 0.0
    for w in (0, 1, 2):
        one = made(1)
        one.body("load").position = spots[w]
        one.step(11 if w == 1 else 1)
        one.joint("grip").attach()
        one.step(20 if w == 1 else 30)
        off = max(off, float(np.abs(one.body("load").position - many.body("load").position[w]).max()))
    show(f"{kind}, {solver}: as in a world alone", off, 1e-12)
    end = many.body("load").position
    again = made(3)
    again.load(file)
    again.step(20)
    show("from a checkpoint, to the bit", float(np.abs(again.body("load").position - end).max()), 0.0)
    many.reset(worlds=[1])
    grip = many.joint("grip")
    show("the scene's own place again, on the hook", float(np.abs(grip.parent_anchor[1] - [0.1, 0.05, -0.4]).max()), 1e-12)
    show("and on the load", float(np.abs(grip.child_anchor[1] - [0.0, 0.0, 0.1]).max()), 1e-12)
    assert np.abs(grip.child_anchor[2] - [0.0, 0.0, 0.1]).max() > 0.1
    many.restore(before)
    many.joint("grip").attach(worlds=np.array([True, False, True]))
    many.step(10)
    show("from before it was attached, to the bit", abs(float(many.body("load").position[1, 2] - fell)), 0.0)


def test_an_excavator_holds_and_swings():
    scene = sh.Scene()
    scene.add_ground()
    digger = Excavator()
    digger.add(scene)
    sim = sh.Simulation(scene, 0.02)
    hands = Inputs(sim, digger.inputs())
    hands.step(10)
    start = sim.body("excavator bucket").position
    hands.step(30)
    show("the arm holds, m", float(np.linalg.norm(sim.body("excavator bucket").position - start)), 1e-4)
    hands["boom"] = -0.5
    hands.step(40)
    assert sim.body("excavator bucket").position[2] < start[2] - 0.2
    show("ram, as its flow", abs(sim.joint("excavator boom ram").velocity / (-0.5 * 4.0e-3 / 0.02) - 1), 1e-2)
    with pytest.raises(sh.SceneError, match=r"Excavator 'x': boom \(rad\) is a number from 0 to"):
        Excavator("x", boom=math.pi)


def test_a_forklift_lifts_by_its_chain():
    """The forks rise by twice what the ram does, and the chain carries them and their load; it drives off with it."""
    scene = sh.Scene()
    scene.add_ground()
    lift = Forklift()
    lift.add(scene)
    sim = sh.Simulation(scene, 0.01)
    hands = Inputs(sim, lift.inputs())
    hands.step(50)
    chain, forks = sim.cable("forklift chain"), sim.body("forklift forks")
    show("tension of the chain", abs(chain.tension[0] / (lift.forks * 9.81) - 1), 1e-2)
    start, ram = forks.position[2], sim.joint("forklift lift").position
    hands["lift"] = 1.0
    hands.step(200)
    risen, out = forks.position[2] - start, sim.joint("forklift lift").position - ram
    show("forks rise twice as far as the ram", abs(risen / (2 * out) - 1), 1e-3)
    assert out > 0.2
    hands["lift"], hands["throttle"] = 0.0, 1.0
    hands.step(150)
    show("it drives, m/s", abs(sim.body("forklift").velocity[0] - 1.0), 0.05)


def test_a_truck_pulls_away_through_its_gears():
    """The clutch slips and locks, the crank turns with the wheels in its gear; the trailer follows on its pin."""
    scene = sh.Scene()
    scene.add_ground()
    truck = Truck()
    truck.add(scene)
    sim = sh.Simulation(scene, 0.01)
    hands = Inputs(sim, truck.inputs())
    hands.step(20)
    drive, hinge = sim.joint("truck rear").drive, sim.joint("truck rear")
    hands["gear"], hands["throttle"], hands["clutch"] = 1, 0.4, 1.0
    hands.step(300)
    speed = sim.body("truck").velocity[0]
    print(f"{speed:.2f} m/s after 3 s, crank {drive.engine_speed:.1f} rad/s")
    assert speed > 1.0
    show("locked: crank over wheels, of the gear", abs(drive.engine_speed / (truck.motor.gears[0] * hinge.velocity) - 1), 1e-2)
    apart = np.linalg.norm(sim.body("truck trailer").position - sim.body("truck").position)
    show("the trailer follows, m", abs(apart - np.linalg.norm([5.0, 0.0, 0.75])), 0.02)
    show("straight on, m", abs(sim.body("truck trailer").position[1]), 0.01)
