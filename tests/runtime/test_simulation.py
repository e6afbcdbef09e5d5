"""The friendly face: state in and out, forces, kinematic bodies, many worlds, failures."""

import time

import numpy as np
import pytest

import sharnir as sh
from sharnir.core.spatial import quat_exp, quat_rotate
from sharnir.engine.rope.solver import SolverRope


def falling(**options):
    scene = sh.Scene(gravity=(0, 0, -10))
    scene.add_body("stone", sh.Box(0.2, 0.3, 0.4), mass=2.0, **options)
    return scene


def test_free_fall_is_exact():
    sim = sh.Simulation(falling(), 0.01, solver="sequential")
    sim.step(100)
    assert sim.time == pytest.approx(1.0)
    assert sim.body("stone").velocity[2] == pytest.approx(-10.0, abs=1e-12)
    assert sim.body("stone").position[2] == pytest.approx(-5.0, abs=1e-12)
    assert sim.body("stone").acceleration[2] == pytest.approx(-10.0, abs=1e-9)


def test_gravity_and_dt_change_while_running():
    sim = sh.Simulation(falling(), 0.01, solver="sequential")
    sim.step(10)
    sim.gravity = (1, 0, 0)
    sim.dt = 0.02
    sim.step(10)
    assert np.allclose(sim.body("stone").velocity, (0.2, 0, -1.0))
    assert sim.time == pytest.approx(0.3)
    with pytest.raises(sh.SimulationError, match="dt"):
        sim.dt = -1
    with pytest.raises(sh.SimulationError, match="gravity"):
        sim.gravity = (0, float("nan"), 0)


def test_reset_and_snapshot():
    sim = sh.Simulation(falling(), 0.01, solver="sequential")
    sim.body("stone").apply_force((3, 0, 0), once=False)
    saved = sim.snapshot()
    sim.step(50)
    there = sim.body("stone").position
    sim.restore(saved)
    sim.step(50)
    assert np.array_equal(sim.body("stone").position, there)
    sim.reset()
    assert sim.time == 0 and np.array_equal(sim.body("stone").position, (0, 0, 0))
    sim.step()
    assert sim.body("stone").velocity[0] == 0.0, "reset clears commands"
    with pytest.raises(sh.SimulationError, match="another scene"):
        sim.restore(sh.Simulation(falling(), 0.01, worlds=2, solver="sequential").snapshot())


def test_forces_once_and_lasting():
    scene = sh.Scene(gravity=(0, 0, 0))
    scene.add_body("b", sh.Sphere(0.5), mass=2.0)
    sim = sh.Simulation(scene, 0.1, solver="sequential")
    body = sim.body("b")
    body.apply_force((4, 0, 0))
    body.apply_force((0, 2, 0))
    sim.step(3)
    assert np.allclose(body.velocity, (0.2, 0.1, 0)), "once means one step, and forces add up"
    body.apply_torque((0, 0, 0.2), once=False)
    sim.step(2)
    inertia = 0.4 * 2.0 * 0.25
    assert body.angular_velocity[2] == pytest.approx(0.2 * 0.2 / inertia)
    body.apply_torque((0, 0, 0), once=False)
    before = body.angular_velocity
    body.apply_force((0, 0, 1), at=body.com + [1, 0, 0])
    sim.step()
    assert np.allclose(body.angular_velocity - before, (0, -0.1 / inertia, 0))


def test_body_frame_and_centre_of_mass():
    scene = sh.Scene(gravity=(0, 0, 0))
    turn = quat_exp(np.array([0, 0, np.pi / 2]))
    scene.add_body("b", sh.Box(1, 1, 1, position=(1, 0, 0)), mass=1.0, position=(5, 0, 0), rotation=turn)
    sim = sh.Simulation(scene, 0.01, solver="sequential")
    body = sim.body("b")
    assert np.allclose(body.position, (5, 0, 0)) and np.allclose(body.com, (5, 1, 0))
    body.rotation = (0, 0, 0, 1)
    assert np.allclose(body.position, (5, 0, 0)) and np.allclose(body.com, (6, 0, 0))
    body.position = (0, 0, 0)
    assert np.allclose(body.com, (1, 0, 0))
    body.angular_velocity = (0, 0, 2.0)
    assert np.allclose(sim.momentum().angular, (0, 0, 2.0 / 6))
    for bad, word in (
        (lambda: setattr(body, "velocity", (1, 2)), "velocity"),
        (lambda: setattr(body, "angular_velocity", (0, 0, np.nan)), "angular_velocity"),
    ):
        with pytest.raises(sh.SimulationError, match=f"body 'b': {word}"):
            bad()


def test_kinematic_body_follows_its_velocity_and_pushes():
    scene = sh.Scene(gravity=(0, 0, 0))
    scene.add_body("mover", sh.Box(1, 1, 1), motion="kinematic", velocity=(1, 0, 0))
    scene.add_body("towed", sh.Box(0.5, 0.5, 0.5), mass=3.0, position=(2, 0, 0))
    scene.add_joint("bar", sh.Fixed(), "mover", "towed", position=(1, 0, 0))
    sim = sh.Simulation(scene, 0.01, solver="sequential")
    sim.run(1.0)
    assert np.allclose(sim.body("mover").position, (1, 0, 0), atol=1e-12)
    assert np.allclose(sim.body("towed").velocity, (1, 0, 0), atol=1e-9)
    sim.body("mover").velocity = (0, 2, 0)
    sim.run(1.0)
    assert np.allclose(sim.body("towed").velocity, (0, 2, 0), atol=1e-9)
    assert np.allclose(sim.body("mover").position, (1, 2, 0), atol=1e-12)


def test_kinematic_body_follows_its_path():
    scene = sh.Scene()

    def path(t):
        return (np.cos(t), np.sin(t), 0.5), quat_exp(np.array([0, 0, t]))

    scene.add_body("carousel", sh.Box(1, 0.2, 0.2), motion="kinematic", position=(1, 0, 0.5), path=path)
    scene.add_body("rider", sh.Sphere(0.1), mass=1.0, position=(2, 0, 0.5))
    scene.add_joint("seat", sh.Fixed(), "carousel", "rider", position=(1.5, 0, 0.5))
    sim = sh.Simulation(scene, 1e-3, solver="sequential")
    sim.step(2000)
    place, turn = path(2.0)
    assert np.allclose(sim.body("carousel").position, place, atol=1e-9)
    rider = np.asarray(place) + quat_rotate(turn, np.array([1.0, 0, 0]))
    off = np.abs(sim.body("rider").com - rider).max()
    force = sim.joint("seat").reaction[0]
    print(f"rider {off:.1e} m off, force {np.linalg.norm(force[:2]):.3f} N of 2 N inwards, {force[2]:.3f} N up")
    assert off < 1e-5
    assert np.linalg.norm(force[:2]) == pytest.approx(2.0, rel=1e-3)


def test_gear_as_a_screw():
    scene = sh.Scene(gravity=(0, 0, 0))
    scene.add_body("nut", sh.Cylinder(0.1, 0.1), mass=1.0)
    scene.add_joint("thread", sh.Cylindrical("z"), scene.world, "nut", position=(0, 0, 0))
    scene.add_joint("pitch", sh.Gear(("thread", "z"), ("thread", "rz"), 0.01 / (2 * np.pi)))
    sim = sh.Simulation(scene, 1e-3, solver="sequential")
    sim.joint("thread").effort = (0.0, 0.1)
    sim.run(1.0)
    z, angle = sim.joint("thread").position
    lead = 0.01 / (2 * np.pi)
    expected = 0.1 / (0.5 * 1.0 * 0.01 + lead**2)
    speed = sim.joint("thread").velocity[1]
    print(f"{angle / 2 / np.pi:.4f} turns raise the nut by {z * 100:.4f} cm; {speed:.9f} of {expected:.9f} rad/s")
    assert z == pytest.approx(angle * lead, abs=1e-12)
    assert speed == pytest.approx(expected, rel=1e-9)
    assert sim.joint("pitch").reaction == pytest.approx(expected * lead, rel=1e-6)


def test_gear_between_two_wheels_on_one_frame():
    scene = sh.Scene(gravity=(0, 0, 0))
    scene.add_body("frame", sh.Box(1, 0.1, 0.1), mass=1.0)
    for name, x, r in (("small", -0.1, 0.1), ("large", 0.2, 0.2)):
        scene.add_body(name, sh.Cylinder(r, 0.05), mass=1.0, position=(x, 0, 0))
        scene.add_joint(f"{name} axle", sh.Revolute("z"), "frame", name, position=(x, 0, 0))
    scene.add_joint("mesh", sh.Gear("small axle", "large axle", -2.0))
    sim = sh.Simulation(scene, 1e-3, solver="sequential")
    start = sim.momentum()
    sim.body("small").angular_velocity = (0, 0, 10.0)
    spun = sim.momentum().angular[2]
    sim.run(1.0)
    a, b = sim.joint("small axle").velocity, sim.joint("large axle").velocity
    print(f"speeds {a:.6f} and {b:.6f} rad/s; angular momentum {sim.momentum().angular[2]:.9f} of {spun:.9f}")
    assert a == pytest.approx(-2 * b, abs=1e-6)
    assert sim.momentum().angular[2] == pytest.approx(spun, rel=1e-6) and start.angular[2] == 0
    assert sim.joint("small axle").position == pytest.approx(-2 * sim.joint("large axle").position, abs=1e-6)


def test_worlds_have_a_leading_axis_and_differ():
    sim = sh.Simulation(falling(), 0.01, worlds=3, solver="sequential")
    sim.body("stone").velocity = [(1, 0, 0), (2, 0, 0), (3, 0, 0)]
    sim.run(1.0)
    assert sim.body("stone").position.shape == (3, 3)
    assert np.allclose(sim.body("stone").position[:, 0], (1, 2, 3))
    assert sim.energy().total.shape == (3,)
    assert sim.step().iterations.shape == (3,)


def explosive(worlds):
    sim = sh.Simulation(falling(), 0.01, worlds=worlds, solver="sequential")
    sim.step(10)
    return sim


def test_a_non_finite_step_is_not_made():
    sim = explosive(1)
    before = sim.snapshot()
    sim.body("stone").apply_force((1e308, 1e308, 0))
    with pytest.raises(sh.SimulationError, match=r"body 'stone' would have a non-finite state after t = 0\.1 s") as error:
        sim.step(5)
    print(error.value)
    after = sim.snapshot()
    assert all(np.array_equal(before[f"state.{f}"], after[f"state.{f}"]) for f in ("position", "velocity", "rotation", "time"))
    sim.step()
    assert np.all(np.isfinite(sim.body("stone").position)), "it goes on from the last good state"


def test_a_failed_world_is_marked_and_the_others_go_on():
    sim = explosive(4)
    forces = np.zeros((4, 3))
    forces[2] = 1e308, 1e308, 0
    sim.body("stone").apply_force(forces)
    sim.step(20)
    z = sim.body("stone").position[:, 2]
    assert list(sim.failed) == [False, False, True, False]
    assert np.all(np.isfinite(z)) and z[2] > z[0] and z[0] == z[1] == z[3]
    sim.reset()
    assert not sim.failed.any()


def test_report_is_reused_and_tells():
    scene = sh.Scene()
    scene.add_body("b", sh.Box(1, 0.1, 0.1), mass=1.0, position=(0.5, 0, 0))
    scene.add_joint("h", sh.Revolute("y"), scene.world, "b", position=(0, 0, 0))
    sim = sh.Simulation(scene, 1e-3, solver="sequential")
    report = sim.step()
    assert report is sim.step()
    assert 1 <= report.iterations <= 20 and report.converged and report.residual < 1e-9 and report.elapsed > 0
    with pytest.raises(sh.SimulationError, match="n is a whole number"):
        sim.step(0)


def test_unknown_names_list_the_known_ones():
    sim = sh.Simulation(falling(), 0.01, solver="sequential")
    with pytest.raises(sh.SimulationError, match="available: 'world', 'stone'"):
        sim.body("stoon")
    with pytest.raises(sh.SimulationError, match="available: none"):
        sim.joint("hinge")


def test_run_shows_progress(capsys):
    sim = sh.Simulation(falling(), 0.01, solver="sequential")
    seen = []
    sim.run(0.5, progress=seen.append)
    assert seen[-1] == pytest.approx(0.5)
    sim.run(0.5, progress=True)
    assert "1.00 s" in capsys.readouterr().err


def test_arrays_and_solver_underneath():
    """The layer for arrays and GPUs: model, state, control, solver."""
    model = falling().build(worlds=5)
    state, control = model.state(), model.control()
    solver = sh.SolverSequential(model, 0.01)
    solver.step(state, control, n=10)
    assert state.position.shape == (2, 5)
    assert np.allclose(state.velocity.numpy()[1, :, 2], -1.0)


def arm_with_a_rope():
    """An arm on a hinge, a rope hung on its tip, and a load that holds the rope's end."""
    scene = sh.Scene()
    scene.add_body("arm", sh.Box(1.0, 0.1, 0.1), mass=2.0, position=(0.5, 0, 0))
    scene.add_joint("hinge", sh.Revolute("y"), scene.world, "arm", position=(0, 0, 0))
    scene.add_body("load", sh.Box(0.1, 0.1, 0.1), mass=1.0, position=(1, 0, -0.5))
    scene.add_rope("rope", (1, 0, 0), (1, 0, -0.5), segments=5, mass_per_length=0.1, attach=("arm", "load"))
    return scene


@pytest.mark.parametrize("word, kind", [("sequential", sh.SolverSequential), ("direct", sh.SolverDirect)])
def test_a_solver_steps_the_ropes_of_its_state(word, kind):
    scene = arm_with_a_rope()
    sim = sh.Simulation(scene, 1e-3, solver=word)
    solver = kind(scene.build(), 1e-3)
    state, control = solver.model.state(), solver.model.control()
    sim.step(50)
    solver.step(state, control, n=50)
    assert np.array_equal(state.rope.position.numpy(), sim.state.rope.position.numpy())
    assert np.array_equal(state.position.numpy(), sim.state.position.numpy())
    assert state.rope.position.numpy()[:, 0, 2].min() < -0.505


def test_states_and_scenes_that_a_solver_cannot_step_are_refused_by_name():
    model = arm_with_a_rope().build()
    solver = sh.SolverSequential(model, 1e-3)
    with pytest.raises(sh.SimulationError, match=r"SolverSequential lays out ropes in its own way: take .* solver\.model\.state"):
        solver.step(model.state(), model.control())
    with pytest.raises(sh.SimulationError, match="SolverRope steps ropes alone, and the model has joint 'hinge'"):
        SolverRope(model, 1e-3)
    with pytest.raises(sh.SimulationError, match=r"SolverRope steps ropes .* the model has no rope"):
        SolverRope(falling().build(), 1e-3)


def test_a_thousand_link_chain_builds_and_steps_quickly():
    scene = sh.Scene()
    last = scene.world
    for i in range(1000):
        body = scene.add_body(
            f"b{i}",
            sh.Box(0.1, 0.02, 0.02),
            mass=0.1,
            position=(0, 0, -0.1 * i - 0.05),
            rotation=(0, np.sqrt(0.5), 0, np.sqrt(0.5)),
        )
        scene.add_joint(f"j{i}", sh.Spherical(), last, body, position=(0, 0, -0.1 * i))
        last = body
    started = time.perf_counter()
    sim = sh.Simulation(scene, 1e-3, solver="sequential")
    sim.step(10)
    print(f"build and 10 steps: {time.perf_counter() - started:.2f} s")
    assert np.isfinite(sim.energy().total)


def test_words_of_the_last_release_are_taken_with_a_warning():
    scene = sh.Scene()
    scene.add_body("arm", sh.Box(1, 0.1, 0.1), mass=1.0, position=(0.5, 0, 0))
    scene.add_joint("hinge", sh.Revolute("y"), scene.world, "arm", position=(0, 0, 0))
    assert sh.Simulation(scene, 1e-3).solver_name == "direct"
    for given, name in (
        ({"method": "direct"}, "direct"), ({"solver": "impulse"}, "sequential"),
        ({"solver": "impulse", "method": "direct"}, "direct"), ({"method": "sequential"}, "sequential"),
    ):  # fmt: skip
        with pytest.warns(FutureWarning, match=f"is now solver='{name}'"):
            assert sh.Simulation(scene, 1e-3, **given).solver_name == name
    with pytest.raises(sh.SimulationError, match="method='direct' beside solver='sequential'; give solver= alone"):
        sh.Simulation(scene, 1e-3, solver="sequential", method="direct")
    with pytest.raises(sh.SimulationError, match="solver 'exact' is unknown; allowed: 'auto', 'sequential', 'direct'"):
        sh.Simulation(scene, 1e-3, solver="exact")


def test_what_was_removed_is_refused_with_what_to_use_instead():
    scene = sh.Scene()
    scene.add_body("arm", sh.Box(1, 0.1, 0.1), mass=1.0, position=(0.5, 0, 0))
    scene.add_joint("hinge", sh.Revolute("y"), scene.world, "arm", position=(0, 0, 0))
    with pytest.raises(sh.SimulationError, match=r"solver='articulated' was removed in 0\.3\.0.*use solver='direct'"):
        sh.Simulation(scene, 1e-3, solver="articulated")
    for word in ("energy", "position", "velocity"):
        with pytest.raises(sh.SimulationError, match=f"closing='{word}' was removed in 0.3.0; leave it out"):
            sh.Simulation(scene, 1e-3, closing=word)
    with pytest.raises(AttributeError, match=r"SolverArticulated was removed in 0\.3\.0.*use SolverDirect"):
        sh.SolverArticulated  # noqa: B018


def test_auto_takes_sweeps_where_many_loops_meet_on_one_tree():
    def mesh(loops):
        scene = sh.Scene()
        scene.add_body("hub", sh.Box(1, 1, 0.1), mass=1.0)
        scene.add_joint("root", sh.Spherical(), scene.world, "hub", position=(0, 0, 0))
        for i in range(loops):
            scene.add_body(f"b{i}", sh.Box(0.1, 0.1, 0.1), mass=0.1, position=(i, 1, 0))
            scene.add_joint(f"a{i}", sh.Revolute("z"), "hub", f"b{i}", position=(i, 0.5, 0))
            scene.add_joint(f"c{i}", sh.Universal(), "hub", f"b{i}", position=(i, 0.5, 0))
        return sh.Simulation(scene, 1e-3)

    assert mesh(5).solver_name == "direct" and mesh(25).solver_name == "sequential"
