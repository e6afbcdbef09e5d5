"""Mechanisms and ropes at rest sleep; what turns round slowly, or is told to move, does not; whatever is done wakes them."""

import time

import numpy as np
import pytest

import sharnir as sh
from sharnir.machine_models.vehicles import Axle, Vehicle

DT = 2e-3
ALL = pytest.mark.parametrize("solver", ["sequential", "direct"])

pytestmark = pytest.mark.filterwarnings("ignore:.*did not converge")  # the first, of sweeps without a warm start


def doors(scene=None, friction=3.0):
    """Two doors on leaning hinges that dry friction holds: one of a panel, one of two."""
    scene = sh.Scene() if scene is None else scene
    for name, x in (("a", 0.0), ("b", 3.0)):
        scene.add_body(name, sh.Box(1.0, 0.05, 2.0), mass=10.0, position=(x + 0.5, 0, 1.0))
        hinge = sh.Revolute((0.02, 0.0, 1.0), friction=sh.Friction(friction))
        scene.add_joint(f"hinge {name}", hinge, scene.world, name, position=(x, 0, 1.0))
    scene.add_body("flap", sh.Box(0.5, 0.05, 2.0), mass=5.0, position=(4.25, 0, 1.0))
    scene.add_joint("fold", sh.Revolute("z", friction=sh.Friction(friction)), "b", "flap", position=(4.0, 0, 1.0))
    return scene


def asleep(sim, *names):
    return [bool(sim.body(n).asleep) for n in names]


def per_step(sim, n=300):
    began = time.process_time()
    for _ in range(n):
        sim.step()
    return 1e6 * (time.process_time() - began) / n


@ALL
def test_doors_parked_by_friction_sleep_and_their_world_waits(solver):
    sim = sh.Simulation(doors(), DT, solver=solver)
    sim.run(0.4)
    awake = per_step(sim, 20)
    sim.run(0.3)
    assert asleep(sim, "a", "b", "flap") == [True] * 3
    there, carried = np.array(sim.body_position), np.array(sim.joint("hinge b").reaction[0])
    took = per_step(sim)
    print(f"{solver}: {took:.1f} µs a step asleep, {awake:.0f} µs awake; the hinge of 15 kg carries {carried[2]:.3f} N")
    assert np.array_equal(sim.body_position, there) and np.array_equal(sim.joint("hinge b").reaction[0], carried)
    assert abs(carried[2]) == pytest.approx(15 * 9.81, rel=1e-6) and sim.body("flap").velocity.tolist() == [0, 0, 0]
    sim.joint("fold").effort = 5.0
    sim.step(100)
    print(f"pushed, the flap turned by {np.degrees(sim.joint('fold').position):.1f}°, with door b awake and a asleep")
    assert asleep(sim, "a", "b", "flap") == [True, False, False] and sim.joint("fold").position > 0.02
    assert np.array_equal(sim.body("a").position, there[sim.model.body_names["a"]])
    beside = sh.Simulation(doors(), DT, solver=solver, sleep=False)
    beside.run(0.4)
    beside.step(20 + 150 + 300)
    beside.joint("fold").effort = 5.0
    beside.step(100)
    off = np.abs(np.array(sim.body_position) - beside.body_position).max()
    print(f"{off:.1e} m beside doors that never slept")
    assert off < 1e-6 and asleep(beside, "a", "flap") == [False, False]


@ALL
def test_a_slow_pendulum_does_not_sleep_at_its_turning_points(solver):
    """Period 100 s, amplitude 1 mm: it is within a micrometre of its turning point for a second."""
    scene = sh.Scene(gravity=(0, 0, 0))
    scene.add_body("bob", sh.Sphere(0.05), mass=1.0, position=(1.0, 0, 0))
    inertia = 1.0 + 0.4 * 0.05**2
    k = inertia * (2 * np.pi / 100) ** 2
    scene.add_joint("pivot", sh.Revolute("z", spring=(k, 1e-3)), scene.world, "bob", position=(0, 0, 0))
    sim = sh.Simulation(scene, 0.01, solver=solver)
    worst = 0.0
    for _ in range(11):
        sim.run(5.0)
        worst = max(worst, abs(sim.joint("pivot").position - 1e-3 * (1 - np.cos(2 * np.pi * sim.time / 100))))
    print(f"{solver}: {worst:.1e} rad off 1 mm (1 − cos) within 55 s")
    assert worst < 1e-7 and asleep(sim, "bob") == [False]


@ALL
def test_stick_and_slip_is_not_slept_through(solver):
    """A block is drawn by a spring whose end moves at 1 mm/s: it sticks for 4 s, then slips when k v t = F."""
    scene = sh.Scene()
    scene.add_body("hand", sh.Sphere(0.02), motion="kinematic", position=(0.5, 0, 0), velocity=(1e-3, 0, 0), collide=False)
    scene.add_body("block", sh.Box(0.1, 0.1, 0.1), mass=1.0, position=(0, 0, 0), collide=False)
    scene.add_joint("slide", sh.Prismatic("x", friction=sh.Friction(2.0, 1.0)), scene.world, "block", position=(0, 0, 0))
    scene.add_spring("spring", "hand", "block", stiffness=500.0)
    sim = sh.Simulation(scene, 0.01, solver=solver)
    sim.run(3.9)
    stuck = abs(sim.joint("slide").position)
    sim.run(0.3)
    print(f"{solver}: moved by {stuck:.1e} m in 3.9 s, by {sim.joint('slide').position:.2e} m in 4.2 s")
    assert stuck < 1e-7 and sim.joint("slide").position > 1e-3


def arm():
    """Two links on servos, held against gravity."""
    scene = sh.Scene()
    scene.add_body("upper", sh.Capsule(0.04, 0.5), mass=2.0, position=(0.25, 0, 1), rotation=(0, 0.5**0.5, 0, 0.5**0.5))
    scene.add_body("lower", sh.Capsule(0.03, 0.5), mass=1.0, position=(0.75, 0, 1), rotation=(0, 0.5**0.5, 0, 0.5**0.5))
    servo = sh.Servo(position=0.0, kp=800.0, kd=60.0)
    scene.add_joint("shoulder", sh.Revolute("y", drive=servo), scene.world, "upper", position=(0, 0, 1))
    scene.add_joint("elbow", sh.Revolute("y", drive=servo, limit=sh.Limit(-2.0, 2.0)), "upper", "lower", position=(0.5, 0, 1))
    return scene


WAKES = {
    "target": lambda sim: setattr(sim.joint("elbow").drive, "position", 0.3),
    "gain": lambda sim: setattr(sim.joint("shoulder").drive, "kp", 700.0),
    "limit": lambda sim: setattr(sim.joint("elbow"), "limit", (0.2, 2.0)),
    "friction": lambda sim: setattr(sim.joint("elbow"), "friction", sh.Friction(1.0)),
    "joint force": lambda sim: setattr(sim.joint("elbow"), "effort", 1.0),
    "force": lambda sim: sim.body("lower").apply_force((0, 0, 20.0)),
    "released": lambda sim: setattr(sim.joint("elbow"), "enabled", False),
    "mass": lambda sim: setattr(sim.body("lower"), "mass", 1.5),
    "speed": lambda sim: setattr(sim.joint("elbow"), "velocity", 0.1),
    "place": lambda sim: setattr(sim.joint("elbow"), "position", 0.1),
    "gravity": lambda sim: setattr(sim, "gravity", (0, 0, -1.6)),
}


@ALL
def test_an_arm_that_servos_hold_sleeps_until_something_is_done_to_it(solver):
    sim = sh.Simulation(arm(), DT, solver=solver)
    sim.run(2.5)
    assert asleep(sim, "upper", "lower") == [True, True]
    kept = sim.snapshot()
    for what, act in WAKES.items():
        sim.restore(kept)
        sim.step()
        assert asleep(sim, "upper", "lower") == [True, True], what
        act(sim)
        sim.step(2)
        assert asleep(sim, "upper", "lower") == [False, False], what
        if what == "released":
            sim.joint("elbow").enabled = True
    sim.restore(kept)
    sim.joint("shoulder").drive.velocity = 1e-6  # told to move, however slowly
    sim.run(2.0)
    assert asleep(sim, "upper", "lower") == [False, False]
    print(f"{solver}: {', '.join(WAKES)} wake both links")


def test_sleep_of_mechanisms_is_the_same_every_time_and_everywhere(tmp_path):
    """In calls of one step or of many, in batches, after a restore and from a file: to the bit, through sleep and waking."""

    def push(sim, many):
        sim.step(300) if many else [sim.step() for _ in range(300)]
        sim.joint("fold").effort = 5.0
        sim.step(200) if many else [sim.step() for _ in range(200)]
        return np.array(sim.body_position)

    for solver in ("direct", "sequential"):
        alone = sh.Simulation(doors(), DT, solver=solver)
        there = push(alone, False)
        other = sh.Simulation(doors(), DT, solver=solver)
        assert np.array_equal(push(other, True), there)
        batch = sh.Simulation(doors(), DT, solver=solver, worlds=3, threads=2)
        assert np.array_equal(push(batch, True), np.broadcast_to(there, (3, *there.shape)))
        alone.reset()
        alone.step(290)
        kept = alone.snapshot()
        alone.save(tmp_path / f"{solver}.sharnir")
        fresh = sh.Simulation(doors(), DT, solver=solver)
        fresh.load(tmp_path / f"{solver}.sharnir")
        assert asleep(fresh, "a", "b", "flap") == [True] * 3
        for sim in (alone, fresh):
            sim.restore(kept) if sim is alone else None
            sim.step(10)
            sim.joint("fold").effort = 5.0
            sim.step(200)
            assert np.array_equal(sim.body_position, there)


@pytest.mark.parametrize("solver", ["sequential", "direct"])
def test_a_mechanism_wakes_when_something_lands_on_it_or_its_base_moves(solver):
    """A lever on a kinematic post, held by friction; a ball falls on its end; another lever stands apart and sleeps on."""
    scene = sh.Scene()
    scene.add_ground()
    for name, x in (("near", 0.0), ("far", 5.0)):
        scene.add_body(f"{name} post", sh.Box(0.1, 0.1, 0.5), motion="kinematic", position=(x, 0, 0.25))
        scene.add_body(name, sh.Box(1.0, 0.1, 0.04), mass=2.0, position=(x + 0.5, 0, 0.7))
        hinge = sh.Revolute("y", friction=sh.Friction(15.0))
        scene.add_joint(f"{name} hinge", hinge, f"{name} post", name, position=(x, 0, 0.7))
    scene.add_body("ball", sh.Sphere(0.1), mass=3.0, position=(0.9, 0, 5.0))
    sim = sh.Simulation(scene, DT, solver=solver)
    sim.run(0.8)
    assert asleep(sim, "near", "far") == [True, True]
    sim.run(0.15)
    print(f"{solver}: hit at the end, it turned by {np.degrees(sim.joint('near hinge').position):.1f}°")
    assert asleep(sim, "near", "far") == [False, True] and sim.joint("near hinge").position > 0.01
    sim.body("far post").velocity = (0, 0, 0.1)
    sim.run(0.05)
    assert sim.joint("far hinge").anchor[2] == pytest.approx(0.705, abs=1e-6) and asleep(sim, "far") == [False]


def test_a_braked_vehicle_sleeps_on_a_slope_and_drives_off():
    """Wheels on hinges, held by their brakes at 10°; it wakes when the brakes open."""
    scene = sh.Scene(gravity=(-9.81 * np.sin(0.17), 0, -9.81 * np.cos(0.17)))
    scene.add_ground(material=sh.Material(friction=0.9))
    wheel = sh.Wheel(radius=0.3, width=0.2, mass=20.0)
    axles = {"front": Axle(0.7, wheel, 1.2), "rear": Axle(-0.7, wheel, 1.2)}
    cart = Vehicle("cart", 300.0, (2.0, 1.0, 0.5), 0.6, axles)
    cart.add(scene, brake=2000.0)
    sim = sh.Simulation(scene, DT, solver="sequential")
    sim.run(3.0)
    there = sim.body("cart").position.copy()
    assert asleep(sim, *sim.model.body_names) == [False] + [True] * 5
    took = per_step(sim, 100)
    print(f"parked after {sim.time:.1f} s: {took:.1f} µs a step")
    assert np.array_equal(sim.body("cart").position, there)
    for hinge in cart.hinges():
        sim.joint(hinge).friction = sh.Friction(0.0)
    sim.run(0.5)
    assert sim.body("cart").position[0] < there[0] - 0.05


@pytest.mark.parametrize("solver", ["auto", "direct", "sequential"])
def test_a_load_that_hangs_at_rest_sleeps_and_wakes_by_wind(solver):
    """On a rope from the world, and (direct, sequential) from a slide that a servo holds."""
    scene = sh.Scene()
    top = scene.world
    if solver != "auto":
        top = scene.add_body("lift", sh.Box(0.2, 0.2, 0.1), mass=5.0, position=(0, 0, 0.05))
        servo = sh.Servo(position=0.0, kp=2e4, kd=2e3)
        scene.add_joint("slide", sh.Prismatic("z", drive=servo), scene.world, top, position=(0, 0, 0))
    scene.add_body("load", sh.Sphere(0.1), mass=5.0, position=(0, 0, -1.0))
    scene.add_rope("rope", (0, 0, 0), (0, 0, -0.9), segments=6, radius=0.005, drag_coefficient=1.0, attach=(top, "load"))
    sim = sh.Simulation(scene, DT, solver=solver)
    sim.run(2.5)
    pull = sim.rope("rope").tension[-1]
    there = sim.body("load").position.copy()
    took = per_step(sim, 100)
    print(f"{solver}: asleep {asleep(sim, 'load')}, tension {pull:.4f} N, {took:.1f} µs a step")
    assert asleep(sim, "load") == [True] and pull == pytest.approx(5 * 9.81, rel=0.02)
    assert np.array_equal(sim.body("load").position, there)
    sim.wind = (5.0, 0, 0)
    sim.run(0.3)
    assert asleep(sim, "load") == [False] and sim.rope("rope").position[3][0] > 1e-5


def test_a_rope_that_lies_on_the_floor_sleeps_until_it_is_pulled():
    scene = sh.Scene()
    scene.add_ground(material=sh.Material(friction=0.5))
    scene.add_rope("rope", (0, 0, 0.011), (0.5, 0, 0.011), segments=6, radius=0.01, EI=0.01, GJ=0.01, damping=0.05)
    sim = sh.Simulation(scene, DT)
    sim.run(2.0)
    there = np.array(sim.rope("rope").position)
    took = per_step(sim, 100)
    print(f"{sim.solver_name}: {took:.1f} µs a step, asleep {sim.rope('rope').asleep}")
    assert sim.rope("rope").asleep and np.array_equal(sim.rope("rope").position, there)
    sim.rope("rope").apply_force(0, (0, 0, 20.0), once=False)
    sim.run(0.1)
    assert sim.rope("rope").position[0][2] > 0.02


CASES = [({}, False), ({"specialize": True}, False), ({"solver": "sequential"}, False), ({}, True)]


@pytest.mark.parametrize(("how", "ground"), CASES, ids=["generic", "specialized", "sequential", "beside contact"])
def test_what_joints_carry_is_that_of_the_step_in_which_they_fell_asleep(how, ground):
    """An arm that lies on its limit: its weight turns it with 0.5 m·g·cos 0.6, whatever calls its steps were made in."""
    loads = []
    for calls in ((1500,), (700, 800), (1,) * 1500):
        scene = sh.Scene(contact=ground)
        if ground:
            scene.add_ground(height=-3.0)
        scene.add_body("arm", sh.Box(1.0, 0.1, 0.1), mass=1.0, position=(0.5, 0, 0))
        scene.add_joint("hinge", sh.Revolute("y", limit=(-1.0, 0.6)), scene.world, "arm", position=(0, 0, 0))
        sim = sh.Simulation(scene, DT, **how)
        for n in calls:
            sim.step(n)
        hinge = sim.joint("hinge")
        assert sim.body("arm").asleep
        loads.append([hinge.limit_force, *hinge.reaction[0]])
    due = 9.81 * 0.5 * np.cos(0.6)
    print(f"limit {loads[0][0]:.6f} N·m of {-due:.6f}, hinge {loads[0][3]:.6f} N; calls differ by {np.ptp(loads, 0).max():.0e}")
    np.testing.assert_allclose(loads, [[-due, 0, 0, 9.81]] * 3, atol=2e-3 if how.get("solver") else 1e-6)
