"""The direct pass: joints exact in one pass, friction that holds from the first step, loops, order and energy."""

import numpy as np
import pytest
from conftest import EXAMPLES, load_example

import sharnir as sh
from sharnir.spatial import quat_exp

KINDS = {
    "fixed": sh.Fixed(),
    "revolute": sh.Revolute((1, 2, 0.5)),
    "prismatic": sh.Prismatic((1, 0.3, 0.2)),
    "cylindrical": sh.Cylindrical("y"),
    "universal": sh.Universal(("x", "y")),
    "spherical": sh.Spherical(),
    "planar": sh.Planar("y"),
    "free": sh.Free(),
    "point on line": sh.PointOnLine("x"),
    "mask": sh.Joint("x rz ry"),
}


def tree(joint, dt, **options):
    """Three bodies of unequal inertias, the last one hung the other way round, thrown."""
    scene = sh.Scene()
    for i in range(3):
        turn = quat_exp(np.array([0.3, 0.2, -0.4]) * i)
        scene.add_body(
            f"b{i}", mass=1.0 + i, inertia=(0.1, 0.2 + 0.05 * i, 0.25), position=(0.5 * i + 0.4, 0.1, 0), rotation=turn
        )
    scene.add_joint("root", sh.Spherical(), "world", "b0", position=(0, 0, 0))
    scene.add_joint("middle", joint, "b0", "b1", position=(0.6, 0, 0))
    scene.add_joint("last", sh.Revolute("y"), "b2", "b1", position=(1.1, 0, 0))
    sim = sh.Simulation(scene, dt, method="direct", **options)
    sim.joint("root").velocity = (0.5, -1.0, 2.0)
    sim.joint("last").velocity = 1.5
    if joint.v_size:
        sim.joint("middle").velocity = 0.7 if joint.v_size == 1 else np.linspace(0.3, 0.8, joint.v_size)
    return sim


@pytest.mark.parametrize("kind", KINDS)
def test_velocities_fit_the_joints_after_one_pass(kind):
    sim = tree(KINDS[kind], 1e-3, closing="velocity")
    sim.step(50)
    report = sim.step()
    speed = max(np.linalg.norm(sim.body(f"b{i}").velocity) for i in range(3))
    first = sim.body("b0")
    anchor = first.velocity + np.cross(first.spin, -first.com)  # of the point that the root joint holds
    print(f"{kind}: the held point moves at {np.linalg.norm(anchor) / speed:.1e} of the speed, gap {sim.gaps().max():.1e}")
    assert report.iterations == 1 and sim.gaps().max(initial=0.0) < 1e-9 and np.linalg.norm(anchor) < 1e-2 * speed


@pytest.mark.parametrize("closing", ["position", "velocity"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_joint_type_converges_to_the_integrated_motion(kind, closing):
    reference = tree(KINDS[kind], 1e-3)
    reference.integrate(0.3, rtol=1e-11, atol=1e-11)
    exact = np.array([reference.body(f"b{i}").com for i in range(3)])
    errors = []
    for dt in (2e-3, 1e-3, 5e-4):
        sim = tree(KINDS[kind], dt, closing=closing)
        sim.run(0.3)
        errors.append(np.abs(np.array([sim.body(f"b{i}").com for i in range(3)]) - exact).max())
    print(f"{kind}, {closing}: {errors[0]:.1e}, {errors[1]:.1e}, {errors[2]:.1e} m; gap {sim.gaps().max(initial=0.0):.1e}")
    assert errors[2] < 0.62 * errors[1] < 0.4 * errors[0] and errors[2] < 2e-3
    assert sim.gaps().max(initial=0.0) < 1e-9


NAMES = ["chain", "dry_pendulum", "four_bar", "slider_crank", "satellite", "spinning_top", "cart_flywheel"]


@pytest.mark.parametrize("name", NAMES)
def test_examples_pass_their_own_checks(name, monkeypatch):
    class Direct(sh.Simulation):
        def __init__(self, scene, dt, **options):
            options = {k: v for k, v in options.items() if k in ("worlds", "device", "threads")}
            super().__init__(scene, dt, method="direct", **options)

    monkeypatch.setattr(sh, "Simulation", Direct)
    assert (EXAMPLES / f"{name}.py").exists()
    module = load_example(name)
    module.check(module.make())


def chain(n, joint, dt, **options):
    scene = sh.Scene()
    last = "world"
    for i in range(n):
        scene.add_body(f"l{i}", mass=1.0, inertia=(0.002, 0.01, 0.01), position=(0.3 * i + 0.15, 0, 0))
        scene.add_joint(f"j{i}", joint, last, f"l{i}", position=(0.3 * i, 0, 0))
        last = f"l{i}"
    return sh.Simulation(scene, dt, method="direct", **options)


@pytest.mark.parametrize("joint", [sh.Revolute("y", friction=500.0), sh.Spherical(friction=500.0)], ids=["hinges", "balls"])
def test_ten_links_held_by_friction_do_not_move_one_bit(joint):
    sim = chain(10, joint, 0.01)
    sim.step()
    first = sim.body("l9").com
    sim.run(10.0)
    moved = np.abs(sim.body("l9").com - first).max()
    print(f"ten links held by 500 N·m each: the tip moves by {moved:.1e} m in 10 s, stuck from the first step")
    assert moved == 0.0 and np.all(sim.joint("j9").stuck)


def test_passes_of_a_chain_with_friction():
    sim = chain(10, sh.Revolute("y"), 1e-3)
    bounds = np.geomspace(0.01, 1.0, 10)
    for i, bound in enumerate(bounds):
        sim.joint(f"j{i}").friction = float(bound)
    passes = []
    for _ in range(3000):
        report = sim.step()
        passes.append(report.iterations)
        assert report.converged
    print(f"friction 0.01 to 1 N·m: {np.mean(passes):.2f} passes a step, 99 % at most {np.percentile(passes, 99):.0f}")
    assert np.mean(passes) <= 1.5 and np.percentile(passes, 99) <= 4


def test_energy_of_ten_balls():
    sim = chain(10, sh.Spherical(), 1e-3)
    start, scale, worst = sim.energy().total, 0.0, 0.0
    for _ in range(100):
        sim.run(0.1)
        now = sim.energy()
        scale, worst = max(scale, now.kinetic), max(worst, abs(now.total - start))
    gap = sim.gaps().max()
    print(
        f"ten balls let go from horizontal, 10 s at 1 ms: energy within {100 * worst / scale:.2f} % of its scale, gap {gap:.1e} m"
    )
    assert worst < 0.01 * scale and gap < 1e-6


def test_free_momenta_are_kept():
    scene = sh.Scene(gravity=(0, 0, 0))
    for i in range(4):
        scene.add_body(
            f"b{i}",
            mass=1.0 + i,
            inertia=(0.1, 0.2, 0.25),
            position=(0.5 * i, 0, 0),
            spin=(0.3 * i, 1, 2 - i),
            velocity=(i, 0, 0),
        )
        if i:
            scene.add_joint(
                f"j{i}", sh.Universal(("x", "y"), friction=0.05), f"b{i - 1}", f"b{i}", position=(0.5 * i - 0.25, 0, 0)
            )
    sim = sh.Simulation(scene, 1e-3, method="direct")
    sim.step(10)
    start = sim.momentum()
    sim.run(5.0)
    now = sim.momentum()
    off = max(np.abs(now.linear - start.linear).max(), np.abs(now.angular - start.angular).max())
    print(f"a floating chain of four with friction, 5 s: momenta within {off:.1e}")
    assert off < 1e-10


@pytest.mark.parametrize("dt", [1e-3, 5e-3, 15e-3])
def test_light_links_carry_a_heavy_load(dt):
    """30 links of 0.3 kg in all, 3 m long, with 300 kg at their end, let go at 30°."""
    scene, n, length, last = sh.Scene(), 30, 0.1, "world"
    down = np.array([0.5, 0, -np.sqrt(0.75)])
    m = 0.01
    for i in range(n):
        inertia = (m * length**2 / 12, m * length**2 / 12, m * length**2 / 200)
        turn = quat_exp(np.array([0, -np.pi / 6, 0]))
        scene.add_body(f"l{i}", mass=m, inertia=inertia, position=(i + 0.5) * length * down, rotation=turn)
        scene.add_joint(f"j{i}", sh.Spherical(), last, f"l{i}", position=i * length * down)
        last = f"l{i}"
    scene.add_body("load", sh.Sphere(0.2), mass=300.0, position=3.0 * down)
    scene.add_joint("hook", sh.Spherical(), last, "load", position=3.0 * down)
    sim = sh.Simulation(scene, dt, method="direct")
    stretch, widest = 0.0, 0.0
    for _ in range(200):
        sim.run(0.045)
        x = sim.body("load").com
        stretch = max(stretch, abs(np.linalg.norm(x) / 3.0 - 1.0))
        if sim.time > 5.0:
            widest = max(widest, np.degrees(np.arctan2(abs(x[0]), -x[2])))
    print(f"300 kg on 0.3 kg of links, dt = {dt * 1e3:g} ms: stretch {stretch:.1e}, still swings to {widest:.2f}° after 5 s")
    assert stretch < 1e-5 and widest > 29.8


def test_mistakes_are_named():
    scene = sh.Scene()
    scene.add_body("b", sh.Box(1, 1, 1), mass=1.0)
    with pytest.raises(sh.SimulationError, match="method 'exact' is unknown"):
        sh.Simulation(scene, 1e-3, method="exact")
    with pytest.raises(sh.SimulationError, match="closing is one of 'position', 'velocity'"):
        sh.Simulation(scene, 1e-3, method="direct", closing="never")
