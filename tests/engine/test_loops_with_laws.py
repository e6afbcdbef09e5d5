"""Loops with friction and limits in balls, friction that axes share, axes that loops hold still, and bodies of any mass."""

import warnings

import numpy as np
import pytest
from mechanisms import pair_case
from test_tree_rows import body, follow, four_bars, simulate

import sharnir as sh


def ring(first, last, **moving):
    """Three bodies between the ground and the ground again: `first`, balls, `last`."""
    scene, base = sh.Scene(gravity=(1.0, 2.0, -9.0)), "world"
    for i, at in enumerate([(0.4, 0.1, 0), (0.7, 0.5, 0.2), (1.1, 0.4, -0.1)]):
        body(scene, f"b{i}", at)
        joint = first if i == 0 else sh.Spherical()
        scene.add_joint(f"j{i}", joint, base, f"b{i}", position=(0.4 * i, 0.2 * i, 0.1), **moving)
        base = f"b{i}"
    scene.add_joint("last", last, "world", base, position=(1.4, 0.3, 0))
    return scene


LAWS = {
    "a ball that rubs": (sh.Revolute("y"), sh.Spherical(friction=0.2)),
    "balls that rub": (sh.Spherical(friction=0.3), sh.Spherical(friction=0.2)),
    "a cone": (sh.Revolute("y"), sh.Spherical(limit=sh.SwingTwist(0.05, (-0.3, 0.3)))),
    "angles": (sh.Revolute("y"), sh.Spherical(limit=sh.Cardan(x=(-0.05, 0.7), y=(-0.1, 0.4), z=(-1, 1)))),
    "a ball that rubs and springs": (sh.Revolute("y"), sh.Spherical(friction=0.2, spring=(3.0, 0.0), damping=0.02)),
    "a plane": (sh.Revolute("y"), sh.Planar((1, 2, 3), friction=0.4)),
    "two rotations": (sh.Universal(friction=0.2), sh.Spherical()),
}


@pytest.mark.parametrize("law", LAWS)
def test_laws_of_several_axes_act_in_loops(law, stored):
    sim = simulate(ring(*LAWS[law]), dt=2e-3)
    # what universal joints carry is told without their axes of the end
    follow(sim, stored, 20, carried=1e-4 if law == "two rotations" else 1e-7)


@pytest.mark.parametrize("seed", [9, 42, 52, 68, 88, 92, 104, 144])
def test_pairs_of_bodies_that_two_joints_lock(seed, stored):
    """Rows answered through balls as if these had laws of single axes: no step of these pairs could be made."""
    case = pair_case(seed, "direct")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sim = sh.Simulation(case.scene, case.dt, solver="direct", sleep=False)
        sim.step(20)
    assert sim.solver._lean
    stored.meets(sim.state.position.numpy()[:, 0], 1e-10)


@pytest.mark.parametrize("dt", [1e-3, 5e-3])
def test_a_heavy_load_in_a_loop_of_light_links(dt):
    """300 kg on links of 0.3 kg: symmetric factors do not contract, and the exact derivative has to carry the rows."""
    scene, base = sh.Scene(), "world"
    for i in range(4):
        scene.add_body(f"b{i}", sh.Box(0.25, 0.03, 0.03), mass=0.3, position=(0.25 * i + 0.125, 0, 0))
        scene.add_joint(f"j{i}", sh.Spherical(), base, f"b{i}", position=(0.25 * i, 0, 0))
        base = f"b{i}"
    scene.add_body("load", sh.Box(0.5, 0.5, 0.5), mass=300.0, position=(1.0, 0, -0.3))
    scene.add_joint("hold", sh.Spherical(), base, "load", position=(1.0, 0, 0))
    scene.add_joint("stay", sh.Distance(), "world", "load", position=[(0, 0.5, 1.0), (1.0, 0.1, -0.2)])
    scene.add_joint("guide", sh.PointOnLine((1, 0, 0.3)), "world", "b1", position=(0.4, 0, 0))
    sim = sh.Simulation(scene, dt, solver="direct")
    energy = sim.energy().total
    for _ in range(20):
        sim.step(int(2e-2 / dt))
        assert abs(sim.energy().total - energy) < 1e-9 * 300 * 9.81
    assert sim.solver._lean and sim.health().not_converged == 0


# ---- friction that is given later --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("joint", [sh.Universal, sh.Planar])
@pytest.mark.parametrize("loop", [False, True])
def test_shared_friction_that_is_switched_on_later(joint, loop):
    """Axes that share a friction bound are then in one link, as if the joint had had the friction from the start."""

    def make(**laws):
        scene = sh.Scene()
        body(scene, "a", (0.3, 0, 0))
        body(scene, "b", (0.6, 0.2, 0))
        scene.add_joint("j", joint(**laws), "world", "a", position=(0, 0, 0))
        scene.add_joint("k", sh.Spherical(), "a", "b", position=(0.45, 0.1, 0))
        if loop:
            scene.add_joint("rod", sh.Distance(), "world", "b", position=[(0.3, 0.9, 0.4), (0.6, 0.2, 0)])
        return sh.Simulation(scene, 1e-3, solver="direct", sleep=False)

    early, late = make(friction=0.3), make()
    late.step()
    late.reset()
    late.joint("j").friction = 0.3
    for sim in (early, late):
        sim.step(50)
        assert sim.solver._lean
    np.testing.assert_array_equal(late.state.position.numpy(), early.state.position.numpy())
    kept = late.snapshot()
    late.step(5)
    after = late.state.position.numpy()
    late.restore(kept)
    late.step(5)
    np.testing.assert_array_equal(late.state.position.numpy(), after)
    early.restore(kept)
    early.step(5)
    np.testing.assert_array_equal(early.state.position.numpy(), after)


# ---- frames that only just yield ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [1064, 1090])
def test_frames_that_can_move_in_their_start_pose_alone_are_held_still(seed):
    """Gaps of 1e-9 m are motions of 3e-5 m there; rows that closed them gave up to 2 J in a step."""
    case = pair_case(seed, "direct")
    assert case.scene.build().shaky.any()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sim = sh.Simulation(case.scene, case.dt, solver="direct")
        start = [sim.joint(name).position for name in ("rough", "other")]
        sim.step()
        energy = sim.energy()
        for _ in range(40):
            assert sim.step().converged
            assert sim.energy().total < energy.total + 1e-12 * max(energy.kinetic, 1.0)
            assert np.abs(sim.constraint_error()).max() < 1e-13
    np.testing.assert_allclose([sim.joint(name).position for name in ("rough", "other")], start, atol=1e-12)


def test_a_frame_that_was_held_still_moves_when_it_is_opened():
    """Axes that loops let move in the start pose alone are free once a joint of the loop is disabled."""
    case = pair_case(1090, "direct")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sim = sh.Simulation(case.scene, case.dt, solver="direct")
        joint = sim.joint("other")
        joint.effort = (500.0, 500.0, 500.0)
        sim.step(20)
        assert np.abs(joint.position).max() < 1e-12
        sim.joint("rough").enabled = False
        sim.step(20)
    assert np.abs(joint.position).min() > 1e-3


def test_four_bars_in_a_singular_pose_are_not_shaky():
    scene = four_bars(2)
    assert not scene.build().shaky.any()
