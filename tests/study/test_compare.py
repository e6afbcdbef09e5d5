"""What a step size costs."""

import numpy as np
import pytest
from conftest import load_example

import sharnir as sh
from sharnir.cli.arguments import main
from sharnir.study.compare import Row


@pytest.mark.parametrize("name", ["double_pendulum", "chain", "tumbling_body", "spinning_top"])
def test_errors_fall_with_the_step(name):
    found = sh.compare(load_example(name).make, duration=0.3, steps=(1e-3, 5e-4, 2.5e-4))
    print(found.table())
    for what in ("position", "energy", "gap"):
        values = [getattr(row, what) for row in found.rows]
        assert all(np.isfinite(values))
        assert values[2] < 0.08 * values[0] or values[2] < 1e-12, (
            what
        )  # of second order: a quarter of the step, 1/16 of the error


def test_springs_and_applied_forces_are_in_both():
    def make(dt):
        scene = sh.Scene()
        scene.add_body("arm", sh.Box(0.5, 0.1, 0.1), mass=1.0, position=(0.25, 0, 0))
        scene.add_joint("hinge", sh.Revolute("y", spring=(20.0, 0.3), damping=0.4), scene.world, "arm", position=(0, 0, 0))
        sim = sh.Simulation(scene, dt)
        sim.joint("hinge").effort = 1.5
        sim.joint("hinge").velocity = 1.0
        return sim

    found = sh.compare(make, duration=0.5, steps=(1e-3, 5e-4))
    print(found.table())
    assert found.rows[1].position < 2e-3 and found.rows[1].position < 0.6 * found.rows[0].position
    assert found.rows[1].reaction < 0.02


@pytest.mark.parametrize("name", ["swinging_door", "four_bar", "dry_pendulum", "satellite", "dc_motor", "stick_slip"])
def test_friction_limits_motors_and_loops(name):
    make = load_example(name).make
    found = sh.compare(make, duration=0.5, steps=(1e-3, 5e-4, 2.5e-4), samples=5)
    print(name)
    print(found.table())
    errors = [row.position for row in found.rows]
    assert errors[2] < max(0.6 * errors[1], 1e-9) and errors[1] < max(0.6 * errors[0], 1e-9)


def test_both_methods_stand_beside_the_reference():
    found = sh.compare(load_example("chain").make, duration=0.3, steps=(1e-3, 5e-4))
    print(found.table())
    assert list(found.methods) == ["direct", "sequential"] and found.rows is found.methods["direct"]
    for rows in found.methods.values():
        assert rows[1].position < 0.6 * rows[0].position and rows[1].position < 1e-3
    assert max(row.gap for row in found.methods["direct"]) < 1e-9
    assert found.table().count("sequential") == found.table().count("direct") == 2


def test_the_method_a_scene_is_made_with_comes_first_and_others_start_in_its_state():
    def make(dt, **options):
        scene = sh.Scene()
        scene.add_body("arm", sh.Box(0.5, 0.1, 0.1), mass=1.0, position=(0.25, 0, 0))
        scene.add_joint("hinge", sh.Revolute("y", friction=0.3), scene.world, "arm", position=(0, 0, 0))
        sim = sh.Simulation(scene, dt, **options)
        sim.joint("hinge").velocity, sim.joint("hinge").effort, sim.joint("hinge").friction = 2.0, 0.5, 0.8
        return sim

    for given, name in (
        ({"solver": "sequential"}, "sequential"),
        ({"solver": "direct"}, "direct"),
    ):
        found = sh.compare(lambda dt, given=given: make(dt, **given), duration=0.3, steps=(1e-3, 5e-4), samples=5)
        print(found.table())
        assert next(iter(found.methods)) == name and set(found.methods) == {name, "sequential", "direct"}
        assert all(row.position < 1e-3 for rows in found.methods.values() for row in rows)
    alone = sh.compare(make, duration=0.1, steps=(1e-3,), samples=2, methods=())
    assert list(alone.methods) == ["direct"]
    with pytest.raises(sh.SceneError, match="method 'exact' is unknown; allowed: 'sequential', 'direct'"):
        sh.compare(make, methods=("exact",))


def test_samples_fall_on_whole_steps_and_rods_carry_their_centripetal_force():
    found = sh.compare(load_example("pendulum").make, duration=0.5, steps=(4e-3, 2e-3, 1e-3), methods=())
    print(found.table())
    errors, forces = [row.position for row in found.rows], [row.reaction for row in found.rows]
    np.testing.assert_allclose(errors, np.array([16, 4, 1]) * errors[2], rtol=0.02)
    np.testing.assert_allclose(forces, np.array([4, 2, 1]) * forces[2], rtol=0.1)  # that of the reference is good to 5e-5


def test_a_method_that_fails_is_told_and_drawn_without(tmp_path):
    row, lost = Row(1e-3, 1e-4, 1e-3, 1e-9, 1e-2, 1e-5), Row(1e-3, np.inf, np.inf, np.inf, np.inf, np.nan)
    found = sh.Comparison(1.0, [row], 10, {"direct": [row], "sequential": [lost]})
    print(found.table())
    assert "fails" in found.table().splitlines()[3]
    assert found.plot(tmp_path / "c.png").stat().st_size > 10_000
    assert "position, m" in sh.Comparison(1.0, [row], 10).table()  # made without `methods`


def test_a_path_is_refused_by_name():
    scene = sh.Scene()
    scene.add_body("cart", sh.Box(1, 1, 1), mass=1.0, motion="kinematic", path=lambda t: (t, 0, 0))
    with pytest.raises(sh.SceneError, match="body 'cart' follows a path"):
        sh.compare(scene)


def test_command(tmp_path, capsys):
    assert main(["compare", "double_pendulum", "--duration", "0.1", "--out", str(tmp_path)]) == 0
    told = capsys.readouterr().out
    assert "position, m" in told and "sequential" in told and "direct" in told
    assert (tmp_path / "compare_double_pendulum.png").stat().st_size > 10_000
