"""Contacts of many worlds as arrays: those of each world, their sums on bodies, and memory that stays in its place."""

import numpy as np
import pytest

import sharnir as sh

SOLVERS = ("direct", "sequential")
WORLDS, DT = 3, 0.002
STEPS = {
    "one": lambda sim: sim.step(),
    "several": lambda sim: sim.step(8),
    "budget": lambda sim: sim.step(2, budget=10.0),
    "iterations": lambda sim: sim.step(3, iterations=60),
}


def yard() -> sh.Scene:
    """A stack of two boxes, a ball on its way, and a flap on a hinge that leans on a box and on the ground."""
    scene = sh.Scene()
    scene.add_ground()
    scene.add_body("lower", sh.Box(0.4, 0.4, 0.2), mass=4.0, position=(0, 0, 0.1))
    scene.add_body("upper", sh.Box(0.2, 0.2, 0.2), mass=1.0, position=(0.05, 0, 0.3))
    scene.add_body("ball", sh.Sphere(0.1), mass=0.5, position=(1.0, 0, 0.1), velocity=(1.0, 0, 0))
    scene.add_body("flap", sh.Box(0.5, 0.3, 0.04), mass=2.0, position=(0, 1.0, 0.02))
    scene.add_body("weight", sh.Box(0.1, 0.1, 0.1), mass=0.7, position=(0.1, 1.0, 0.09))
    scene.add_joint("hinge", sh.Revolute("y"), scene.world, "flap", position=(-0.25, 1.0, 0.02))
    return scene


def simulation(solver: str) -> sh.Simulation:
    """Worlds that differ: in the second the upper box is in the air, in the third it is heavier."""
    sim = sh.Simulation(yard(), DT, worlds=WORLDS, solver=solver)
    position = sim.body("upper").position.copy()
    position[1] += (0, 0, 0.5)
    sim.body("upper").position = position
    sim.body("upper").mass = np.array([1.0, 1.0, 3.0])
    return sim


def sums(sim: sh.Simulation, world: int, com: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Forces and moments about `com` on all bodies of a world, from its points one by one."""
    force, moment = np.zeros_like(com), np.zeros_like(com)
    points, number = sim.contacts(world), sim.model.body_names
    for a, b, x, f in zip(points.body_a, points.body_b, points.point, points.force, strict=True):
        for name, sign in ((a, -1.0), (b, 1.0)):
            force[number[name]] += sign * f
            moment[number[name]] += sign * np.cross(x - com[number[name]], f)
    return force, moment


@pytest.mark.parametrize("how", STEPS)
@pytest.mark.parametrize("solver", SOLVERS)
def test_arrays_hold_what_each_world_has(solver, how):
    sim = simulation(solver)
    names = {number: name for name, number in sim.model.body_names.items()}
    for _ in range(4):
        STEPS[how](sim)
        arrays = sim.contacts.arrays
        assert len(set(arrays.count.tolist())) > 1  # worlds differ
        com = np.array(sim.body_position - DT * sim.body_velocity)
        for w in range(WORLDS):
            points, n = sim.contacts(w), arrays.count[w]
            assert n == len(points) > 4
            for name in ("body_a", "body_b"):
                assert [names[i] for i in getattr(arrays, name)[w, :n]] == getattr(points, name).tolist()
                assert (getattr(arrays, name)[w, n:] == -1).all()
            for name in ("point", "normal", "gap", "force"):
                assert np.array_equal(getattr(arrays, name)[w, :n], getattr(points, name))
                assert not getattr(arrays, name)[w, n:].any()
            along = np.sum(points.force * points.normal, axis=1)
            assert np.allclose(arrays.normal_force[w, :n], along, rtol=0, atol=1e-12 * np.abs(points.force).max())
            assert np.allclose(
                arrays.friction_force[w, :n], points.force - along[:, None] * points.normal, atol=1e-12 * np.abs(along).max()
            )
            force, moment = sums(sim, w, com[w])
            assert np.allclose(arrays.body_force[w], force, rtol=0, atol=1e-12 * np.abs(force).max())
            assert np.allclose(arrays.body_moment[w], moment, rtol=0, atol=1e-12 * np.abs(moment).max())


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_resting_box_is_carried_by_its_weight(solver):
    sim = simulation(solver)
    sim.run(1.0)
    arrays, number = sim.contacts.arrays, sim.model.body_names
    weights = {"upper": np.array([1.0, 1.0, 3.0]), "weight": np.full(3, 0.7)}
    for name, mass in weights.items():
        force = arrays.body_force[:, number[name]]
        off = np.abs(force - np.outer(mass * 9.81, (0, 0, 1))).max()
        print(f"{solver}, {name}: off its weight by {off:.2g} N")
        assert off < 1e-9
    assert np.abs(arrays.body_moment[:, number["upper"]]).max() < 1e-9
    held = arrays.between("upper", "lower").force
    assert np.allclose(held[0], arrays.body_force[0, number["upper"]])


@pytest.mark.parametrize("solver", SOLVERS)
def test_memory_stays_where_it_is(solver):
    sim = simulation(solver)
    sim.step()
    arrays = sim.contacts.arrays
    between = arrays.between("lower", ("up*", "world"))
    fields = ("count", "body_a", "force", "body_force", "body_moment")
    held = {name: getattr(arrays, name) for name in fields}
    addresses = {name: getattr(arrays.table, name).ptr for name in fields}
    force, before = between.force, held["body_force"].copy()
    for steps in (1, 20, 50):
        sim.step(steps)
        assert sim.contacts.arrays is arrays
        assert arrays.between("lower", ("up*", "world")) is between
        assert {name: getattr(arrays.table, name).ptr for name in fields} == addresses
        assert all(np.shares_memory(held[name], getattr(arrays, name)) for name in fields)
        assert np.allclose(force, held["body_force"][:, sim.model.body_names["lower"]])
        assert np.allclose(force, sim.body("lower").contact_force)
    assert not np.array_equal(before, held["body_force"])
    assert np.shares_memory(np.from_dlpack(held["force"]), held["force"])


@pytest.mark.parametrize("solver", SOLVERS)
def test_impacts_count_where_arrays_were_asked_for_before_the_first_step(solver):
    scene = sh.Scene()
    scene.add_ground(material=sh.Material(restitution=0.5))
    scene.add_body("ball", sh.Sphere(0.1), mass=1.0, position=(0, 0, 0.15), velocity=(0, 0, -2.0))
    sim = sh.Simulation(scene, DT, worlds=2, solver=solver)
    arrays, ball = sim.contacts.arrays, sim.model.body_names["ball"]
    assert not arrays.count.any()
    impulse = np.zeros((2, 3))
    for step in range(40):
        if step == 10:
            sim.body("ball").mass = 1.0  # tables of the solver are made anew
        sim.step()
        impulse += DT * sim.contacts.arrays.body_force[:, ball]
        assert np.array_equal(arrays.body_force[1, ball], sim.contacts(1).force.sum(0))
    gained = sim.body("ball").velocity[:, 2] + 2.0 + 9.81 * 40 * DT
    assert np.allclose(impulse[:, 2], gained, rtol=1e-9) and (gained > 3.0).all()


def test_forces_between_bodies_are_opposite_and_are_those_of_pairs():
    sim = simulation("direct")
    sim.run(0.5)
    arrays = sim.contacts.arrays
    on_flap, on_weight = arrays.between("flap", "weight"), arrays.between("weight", "flap")
    assert np.array_equal(on_flap.force, -on_weight.force) and (on_weight.force[:, 2] > 6.0).all()
    for w in range(WORLDS):
        points = sim.contacts(w)
        pair = (points.body_a == "flap") & (points.body_b == "weight") | (points.body_a == "weight") & (points.body_b == "flap")
        assert np.allclose(np.linalg.norm(points.force[pair].sum(0)), np.linalg.norm(on_flap.force[w]))
    assert np.array_equal(sim.contact_force("flap", "weight"), on_flap.force)
    arm = (sim.body_position - DT * sim.body_velocity)[:, [sim.model.body_names[n] for n in ("flap", "weight")]]
    turned = on_flap.moment + on_weight.moment
    assert np.allclose(turned, np.cross(arm[:, 1] - arm[:, 0], on_flap.force), atol=1e-12)


def test_room_for_more_contacts_keeps_the_sums():
    scene = sh.Scene()
    scene.add_ground()
    for i in range(40):
        scene.add_body(f"ball {i}", sh.Sphere(0.1), mass=1.0, position=(0.2 * (i % 2), 0.01 * (i % 3), 0.1 + 0.2 * (i // 2)))
    sim = sh.Simulation(scene, DT, worlds=2)
    arrays = sim.contacts.arrays
    force, room = arrays.body_force, arrays.capacity
    sim.solver.collider.make_room(4 * room, 4 * room)
    sim.solver.rebind()
    sim._contact_monitor._look()
    sim.step(5)
    again = sim.contacts.arrays
    assert again is arrays and again.capacity == 4 * room and np.shares_memory(force, again.body_force)
    for w in range(2):
        expected, _ = sums(sim, w, np.array(sim.body_position[w]))
        assert np.allclose(force[w], expected, atol=1e-9) and force[w].any()


@pytest.mark.parametrize("solver", SOLVERS)
def test_ropes_push_the_bodies_that_they_lie_on(solver):
    scene = sh.Scene()
    scene.add_ground()
    scene.add_body("bar", sh.Capsule(0.1, 1.0), motion="fixed", position=(0, 0, 1.0), rotation=sh.about("x", np.pi / 2))
    scene.add_rope("line", points=[(-0.5, 0, 1.13), (0.5, 0, 1.13)], radius=0.02, density=1000.0, segments=12)
    sim = sh.Simulation(scene, 0.002, worlds=2, solver=solver)
    sim.run(0.2)
    arrays, bar = sim.contacts.arrays, sim.model.body_names["bar"]
    for w in range(2):
        points = sim.contacts(w)
        on_bar = -points.force[points.body_a == "bar"].sum(0)
        assert on_bar[2] < -1.0
        assert np.allclose(arrays.body_force[w, bar], on_bar, rtol=1e-12)
    assert np.allclose(sim.body("bar").contact_force, arrays.body_force[:, bar])


def test_what_is_not_there_is_refused_by_name():
    sim = simulation("direct")
    sim.step()
    with pytest.raises(sh.SimulationError, match="between: no body matches 'cat'; available: 'world', 'lower'"):
        sim.contacts.arrays.between("lower", ("upper", "cat"))
    with pytest.raises(sh.SimulationError, match="no body is named 'cat'"):
        sim.contacts.arrays.between("cat", "lower")
    bare = sh.Scene()
    bare.add_body("stone", sh.Sphere(0.1), mass=1.0)
    with pytest.raises(sh.SimulationError, match=r"contacts\.arrays: bodies of this scene do not touch"):
        sh.Simulation(bare, DT).contacts.arrays  # noqa: B018


def test_contacts_that_are_asked_for_in_another_way_are_said_to_be_elsewhere():
    sim = simulation("direct")
    sim.run(0.2)
    with pytest.raises(AttributeError, match=r"call sim\.contacts\(\) for one world, or take sim\.contacts\.arrays"):
        sim.contacts.count  # noqa: B018
    with pytest.raises(sh.SimulationError, match=r"0 to 2, got 'lower'; of one body: sim\.body\('lower'\)\.contact_force"):
        sim.contacts("lower")
    assert np.array_equal(sim.contact_force("lower"), sim.body("lower").contact_force)
    alone = sh.Simulation(yard(), DT)
    alone.run(0.2)
    assert np.allclose(alone.contact_force("lower"), alone.body("lower").contact_force)
    assert repr(alone.contacts).startswith("<contacts: sim.contacts()")
