"""Rows beside the tree: loops, rods, gears, springs and cables, against stored steps in coordinates of the bodies."""

import numpy as np
import pytest

import sharnir as sh
from sharnir.core.spatial import matrix_to_quat, quat_exp, quat_to_matrix
from sharnir.engine.tree.build import Plan
from sharnir.engine.tree.closures import POINT, Closure, RowTables, closures_of
from sharnir.engine.tree.forest import BALL, HINGE, Forest, Link
from sharnir.engine.tree.kernel import TreeRunner
from sharnir.engine.tree.row_storage import RowNumberTree
from sharnir.engine.tree.step import close_pose, step

pytestmark = pytest.mark.usefixtures("unoptimized")

CARRIED = "mid_force mid_torque gear_impulse spring_impulse axis_impulse friction_impulse limit_impulse"
CARRIED += " cable_impulse cable_rest cable_angle"


def body(scene, name, at):
    """One of any inertia."""
    rng = np.random.default_rng(len(scene.bodies))
    Q = quat_to_matrix(quat_exp(rng.normal(size=3)))
    scene.add_body(name, mass=float(rng.uniform(0.5, 2)), inertia=Q @ np.diag([0.03, 0.04, 0.05]) @ Q.T, position=at)


def simulate(scene, *, speed=(), dt=1e-3, **options):
    """The scene after its first step."""
    sim = sh.Simulation(scene, dt, solver="direct", **{"sleep": False} | options)
    for name, value in speed:
        sim.joint(name).velocity = value
    sim.step()
    assert sim.solver._lean
    return sim


def follow(sim, stored, steps, pose=1e-10, carried=1e-7):
    """It makes the stored steps, with their energy, and reports their impulses."""
    for k in range(1, steps + 1):
        sim.step()
        if k % 5 == 0:
            stored.meets(sim.state.position.numpy(), pose, f"positions after {k} steps")
            e = sim.energy()
            energy = e.kinetic + e.potential + e.elastic
            wanted = float(stored.next(energy))
            assert abs(energy - wanted) < 1e-9 * (1.0 + abs(wanted))
    stored.meets(sim.state.velocity.numpy(), 1e-8, "velocities")
    stored.meets(sim.q, 1e-9, "coordinates")
    rods = np.array([bool(kind.mask) and not kind.v_size for kind in sim.model.joint_kinds])
    stored.meets(sim.state.joint_force.numpy()[rods], 1e-8, "forces of rods")
    for name in CARRIED.split():
        found = getattr(sim.state, name).numpy()
        if name.startswith("mid"):  # means over the step, which only joints of the tree have
            found = np.delete(found, np.flatnonzero(rods), 0)
        wanted = stored.next(found)
        np.testing.assert_allclose(found, wanted, atol=carried * max(1e-3, np.abs(wanted).max(initial=0)), err_msg=name)


# ---- what closes loops -------------------------------------------------------------------------------------------------------


def ring(free, seed=1, **acts):
    """Three bodies between balls on the ground, and a joint of any kind that closes the ring."""
    rng = np.random.default_rng(seed)
    scene = sh.Scene(gravity=5 * rng.normal(size=3))
    pins = [rng.normal(size=3) * 0.1 + np.array(p) for p in ((0, 0, 0), (0.4, 0.1, 0.2), (0.8, -0.1, 0.1), (1.2, 0.2, -0.2))]
    for i, name in enumerate("abc"):
        body(scene, name, (pins[i] + pins[i + 1]) / 2)
    scene.add_joint("j_a", sh.Spherical(), "world", "a", position=pins[0])
    scene.add_joint("j_b", sh.Spherical(), "a", "b", position=pins[1])
    scene.add_joint("j_c", sh.Spherical(), "world", "c", position=pins[3])
    scene.add_joint("close", sh.Joint(free, **acts), "b", "c", position=pins[2], rotation=quat_exp(rng.normal(size=3)))
    return scene


MASKS = ["", "rz", "x", "x ry", "rx ry", "rx ry rz", "x y rz", "x rx ry rz", "x rz ry", "x y z", "x y", "x y rx ry rz"]


@pytest.mark.parametrize("free", MASKS)
def test_closing_joints_of_every_kind(free, stored):
    sim = simulate(ring(free), speed=[("j_a", (0.5, 1.0, 1.5))] if free else ())
    follow(sim, stored, 20, carried=2e-4 if "x" in free.split() else 1e-7)  # along slides, moments are taken at the step's end


LAWS = {
    "friction": {"friction": 0.3},
    "damper": {"damping": 0.5},
    "spring": {"spring": (20.0, 0.2)},
    "servo": {"drive": sh.Servo(0.4, kp=50.0, kd=0.5, max_force=2.0)},
    "limit": {"limit": sh.Limit(-0.01, 0.01, restitution=0.5)},
    "motor": {"drive": sh.DCMotor(12.0, 0.5, 2e-3, 0.05, 10.0, 0.8, 1e-4, 2e-3)},
}


@pytest.mark.parametrize("law", LAWS)
def test_laws_act_on_closing_joints(law, stored):
    sim = simulate(ring("rz", **LAWS[law]), speed=[("j_a", (0.5, 1.0, 1.5))])
    follow(sim, stored, 40, pose=1e-9, carried=1e-4)


def test_forces_act_on_closing_joints(stored):
    sim = simulate(ring("x rz"))
    sim.joint("close").effort = (3.0, 0.5)
    follow(sim, stored, 20, carried=1e-3)


def chain(joints, gravity=(1.0, 2.0, -9.0)):
    scene = sh.Scene(gravity=gravity)
    for i, joint in enumerate(joints):
        body(scene, f"b{i}", (0.2 + 0.4 * i, 0.1, 0.05 * i))
        scene.add_joint(f"j{i}", joint, f"b{i - 1}" if i else "world", f"b{i}", position=(0.4 * i, 0, 0))
    return scene


def test_rods(stored):
    def make():
        scene = chain([sh.Spherical(), sh.Revolute("y"), sh.Spherical()])
        scene.add_joint("near", sh.Distance(), "world", "b1", position=[(0.3, 0.8, 0.4), (0.6, 0.1, 0.1)])
        scene.add_joint("far", sh.Distance(), "b2", "b0", position=[(0.9, 0.2, 0), (0.2, 0.3, 0.1)])
        return scene

    follow(simulate(make(), speed=[("j1", 1.5)]), stored, 20)


def test_gears(stored):
    def make():
        scene = chain([sh.Revolute("y"), sh.Revolute("x"), sh.Prismatic("x")])
        scene.add_joint("g0", sh.Gear("j0", "j1", 1.7))
        scene.add_joint("g1", sh.Gear("j1", "j2", -2.3))
        return scene

    follow(simulate(make(), speed=[("j0", 1.5)]), stored, 20)


def test_springs_between_points(stored):
    def make():
        scene = chain([sh.Spherical(), sh.Revolute("y"), sh.Spherical()])
        scene.add_spring("s0", "b1", "b2", at_a=(0.1, 0, 0.25), at_b=(0, 0.1, 0), stiffness=40.0, rest=0.3)
        scene.add_spring("s1", "world", "b1", at_a=(0.1, 0.9, 0), at_b=(-0.1, 0.1, 0), stiffness=30.0, damping=0.5, rest=0.0)
        return scene

    sim = simulate(make(), speed=[("j1", 1.5)])
    follow(sim, stored, 50)
    sim.spring("s0").stiffness = 400.0
    sim.spring("s1").rest = 0.4
    follow(sim, stored, 50)


def weight(scene, name, x, z, mass):
    """A weight on a vertical guide."""
    scene.add_body(name, sh.Box(0.1, 0.1, 0.1), mass=mass, position=(x, 0, z))
    scene.add_joint(f"{name} guide", sh.Prismatic("z"), "world", name, position=(x, 0, z))


def over_a_swinging_block():
    """A cable that lies askew in a sheave whose block swings, between two bodies that float."""
    scene = sh.Scene()
    scene.add_body("arm", sh.Box(0.2, 0.2, 1.0), mass=8, position=(0, 0, 2.5))
    scene.add_joint("top", sh.Spherical(), "world", "arm", position=(0, 0, 3))
    scene.add_body("l", sh.Box(0.1, 0.1, 0.1), mass=3, position=(-0.12, 0.3, 1), velocity=(0.5, 0.4, 0))
    scene.add_body("r", sh.Box(0.1, 0.1, 0.1), mass=3.5, position=(0.15, -0.1, 1.2), velocity=(-0.2, 0.3, 0))
    scene.add_cable("rope", [("l", (0, 0.01, 0.05)), sh.Sheave("arm", 0.1, at=(0, 0, -0.5)), ("r", (0.02, 0, 0.05))])
    return scene


def over_heavy_wheels():
    """A drum, a wheel that grips, and a block and tackle, one after the other."""
    scene = sh.Scene()
    scene.add_body("drum", mass=5.0, inertia=(1, 0.08, 1), position=(0, 0, 3))
    scene.add_joint("winch", sh.Revolute("y", damping=2.0), "world", "drum", position=(0, 0, 3))
    scene.add_body("wheel", mass=1.0, inertia=(1.0, 0.3, 1.0), position=(1.0, 0, 3.5))
    scene.add_joint("hinge", sh.Revolute("y"), "world", "wheel", position=(1.0, 0, 3.5))
    scene.add_body("load", sh.Box(0.1, 0.1, 0.1), mass=20, position=(1.4, 0.1, 1), velocity=(0.3, 0.2, 0))
    path = [
        sh.Drum("drum", 0.15),
        sh.Sheave("wheel", 0.2, grips=True),
        sh.Sheave("load", 0.1, axis="-y"),
        ("world", (1.5, 0, 3.2)),
    ]
    scene.add_cable("rope", path)
    return scene


def over_rough_posts(ratio):
    """Over two posts that do not turn: with the ratio of weights 2.2 it just slides."""
    scene = sh.Scene()
    weight(scene, "a", -0.1, 1.0, 2.0)
    weight(scene, "b", 1.1, 1.0, 2.0 * ratio)
    posts = [sh.Sheave("world", 0.1, at=(x, 0, 2), friction=mu) for x, mu in ((0, 0.3), (1, 0.2))]
    scene.add_cable("rope", [("a", (0, 0, 0.05)), *posts, ("b", (0, 0, 0.05))])
    return scene


CABLES = {"swinging": over_a_swinging_block, "wheels": over_heavy_wheels}
CABLES |= {f"posts {r}": lambda r=r: over_rough_posts(r) for r in (2.1, 2.8, 0.36)}


@pytest.mark.parametrize("name", CABLES)
def test_cables(name, stored):
    sim = simulate(CABLES[name](), dt=5e-3)
    follow(sim, stored, 20)
    slides = sim.state.cable_slides.numpy()
    np.testing.assert_array_equal(slides, stored.next(slides))


def test_a_cable_between_floating_bodies_keeps_energy_and_momenta():
    """Two bodies that tumble about each other, held by a cable at points beside their middles: it stays taut."""
    scene = sh.Scene(gravity=(0, 0, 0))
    for name, x in (("a", -0.5), ("b", 0.5)):
        body(scene, name, (x, 0, 0))
    scene.add_cable("rope", [("a", (0.1, 0.05, 0.02)), ("b", (-0.1, 0.03, 0.0))])
    sim = sh.Simulation(scene, 5e-3, solver="direct", sleep=False)
    for name, speed in (("a", -1.0), ("b", 1.2)):
        sim.body(name).velocity, sim.body(name).angular_velocity = (0.02 * speed, speed, 0.1), (0.1, -0.2, 1.5)
    sim.step()
    energies, momenta, least = [], [], np.inf
    for _ in range(100):
        sim.step()
        energies.append(sim.energy().kinetic)
        momenta.append([*sim.momentum().linear, *sim.momentum().angular])
        least = min(least, sim.cable("rope").tension[0])
    print(f"energy {np.ptp(energies) / energies[0]:.1e}, momenta {np.ptp(momenta, axis=0).max():.1e}, tension {least:.2f} N")
    assert least > 0
    assert sim.solver._lean
    assert np.ptp(energies) < 1e-12 * energies[0]
    assert np.ptp(momenta, axis=0).max() < 1e-12 * np.abs(momenta[0]).max()
    assert abs(sim.cable("rope").slack) < 1e-12


def test_a_winch_lifts_a_load_off_the_ground(stored):
    """Taken up, lifted, set down and slack: contact and the cable are solved together; every step converges."""

    def make():
        scene, R = sh.Scene(), 0.15
        scene.add_ground()
        scene.add_body("drum", mass=5.0, inertia=(1, 0.08, 1), position=(0, 0, 3))
        drive = sh.Servo(velocity=0.0, kd=1e3, max_force=60.0)
        scene.add_joint("hinge", sh.Revolute("y", drive=drive), scene.world, "drum", position=(0, 0, 3))
        scene.add_body("load", sh.Box(0.4, 0.4, 0.4), mass=20, position=(R + 0.05, 0.1, 0.2))
        scene.add_cable("rope", [sh.Drum("drum", R), ("load", (0, 0, 0.2))])
        return scene

    sim, ends = simulate(make(), dt=5e-3), []
    for speed, steps in ((-2.0, 150), (2.0, 300), (0.0, 50)):
        sim.joint("hinge").drive.velocity = speed
        for _ in range(steps):
            assert sim.step().converged
            assert sim.cable("rope").slack > -1e-9
        ends += [sim.body("load").position, sim.cable("rope").slack]
    lifted = ends[0]
    print(f"lifted to {lifted}; at rest {ends[4]}, slack {ends[5]:.4f} m")
    assert lifted[2] > 0.3
    stored.meets(lifted, 1e-6)
    assert ends[5] > 0.1
    assert abs(ends[4][2] - 0.2) < 1e-5


def everything_beside():
    """Sliders, universal joints and balls, some the other way round; a loop, a rod, a spring and a gear beside them."""
    scene = sh.Scene(gravity=(1.0, -2.0, -8.0))
    for i in range(5):
        pose = {"position": (0.4 * i, 0.1 * i, 0), "rotation": quat_exp([0.1, 0.3, i])}
        scene.add_body(f"b{i}", sh.Box(0.3, 0.1, 0.15), mass=1.0 + 0.3 * i, **pose)
    scene.add_joint("j0", sh.Universal(("x", "y")), "world", "b0", position=(-0.2, 0, 0))
    scene.add_joint("j1", sh.Prismatic((1, 0.2, 0)), "b1", "b0", position=(0.2, 0, 0.1))
    scene.add_joint("j2", sh.Spherical(spring=(0.5, 0.0), damping=0.01), "b1", "b2", position=(0.6, 0.1, 0))
    scene.add_joint("j3", sh.Revolute("z"), "b3", "b2", position=(1.0, 0.2, 0))
    scene.add_joint("j4", sh.Revolute((0, 1, 1)), "world", "b4", position=(1.8, 0.4, 0))
    scene.add_joint("close", sh.Cylindrical((1, 1, 0)), "b3", "b4", position=(1.4, 0.3, 0))
    scene.add_joint("rod", sh.Distance(), "b1", "world", position=[(0.4, 0.1, 0.1), (0.4, 0.5, 0.8)])
    scene.add_joint("gear", sh.Gear(("j0", "rx"), "j1", 0.7))
    scene.add_spring("s", "b0", "b4", at_a=(0.1, 0, 0), at_b=(0, 0.1, 0), stiffness=20.0, damping=0.2, rest=1.0)
    return scene


def test_all_at_once(stored):
    follow(simulate(everything_beside()), stored, 40, carried=2e-4)


def hinged_loop(limit, restitution, friction):
    scene = sh.Scene()
    pins = np.array([[0, 0, 0], [0, 0, 0.5], [0.7, 0, 0.8], [0.9, 0, 0]])
    axis = {"friction": friction} if friction else {}
    for i, name in enumerate("abc"):
        body(scene, name, (pins[i] + pins[i + 1]) / 2)
    stop = sh.Limit(*limit, restitution=restitution)
    scene.add_joint("j_a", sh.Revolute("y", limit=stop, **axis), "world", "a", position=pins[0])
    scene.add_joint("j_b", sh.Revolute("y", **axis), "a", "b", position=pins[1])
    scene.add_joint("j_c", sh.Revolute("y", **axis), "world", "c", position=pins[3])
    scene.add_joint("close", sh.Revolute("y"), "b", "c", position=pins[2])
    return scene


@pytest.mark.parametrize(("restitution", "friction"), [(0.0, 0.0), (0.5, 0.0), (0.5, 0.1)])
def test_a_loop_meets_a_limit(restitution, friction, stored):
    sim = simulate(hinged_loop((-0.3, 0.2), restitution, friction))
    for k in range(1, 601):
        sim.step()
        if k % 25 == 0:
            at = sim.state.position.numpy()
            off = np.abs(at - stored.next(at)).max()
            assert off < 1e-9, f"restitution {restitution}, friction {friction}: {off:.1e} m after {k} steps"


# ---- energy, momenta, singular poses -----------------------------------------------------------------------------------------


def floating_ring():
    scene = sh.Scene(gravity=(0.0, 0.0, 0.0))
    pins = [0.5 * np.array([np.cos(a), np.sin(a), 0.2 * np.cos(2 * a)]) for a in np.arange(4) * np.pi / 2]
    for i, name in enumerate("abcd"):
        body(scene, name, (pins[i] + pins[(i + 1) % 4]) / 2)
    scene.add_joint("j_b", sh.Spherical(), "a", "b", position=pins[1])
    scene.add_joint("j_c", sh.Revolute("y"), "b", "c", position=pins[2])
    scene.add_joint("j_d", sh.Spherical(), "c", "d", position=pins[3])
    scene.add_joint("close", sh.Joint("rx ry"), "d", "a", position=pins[0])
    return scene


def test_a_floating_ring_keeps_energy_and_momenta():
    sim = sh.Simulation(floating_ring(), 5e-3, solver="direct")
    for name in "abcd":
        sim.body(name).angular_velocity = (1.0, 2.0, 3.0)
        sim.body(name).velocity = np.cross((1.0, 2.0, 3.0), sim.body(name).com)
    sim.step()
    assert sim.solver._lean
    energies, momenta = [], []
    for _ in range(60):
        sim.step()
        energies.append(sim.energy().kinetic)
        momenta.append([*sim.momentum().linear, *sim.momentum().angular])
    assert np.ptp(energies) < 1e-12 * energies[0]
    assert np.ptp(momenta, axis=0).max() < 1e-12 * np.abs(momenta[0]).max()
    assert sim.constraint_error().max() < 1e-12


def four_bars(n):
    """n parallelograms in a row, standing up, on hinges about y."""
    scene = sh.Scene()
    for i in range(n + 1):
        body(scene, f"up{i}", (i, 0, 0.5))
        scene.add_joint(f"u{i}", sh.Revolute("y"), "world", f"up{i}", position=(i, 0, 0))
    for i in range(n):
        body(scene, f"over{i}", (i + 0.5, 0, 1))
        scene.add_joint(f"o{i}", sh.Revolute("y"), f"up{i}", f"over{i}", position=(i, 0, 1))
        scene.add_joint(f"c{i}", sh.Revolute("y"), f"over{i}", f"up{i + 1}", position=(i + 1, 0, 1))
    return scene


def test_four_bars_pass_their_singular_poses():
    sim = sh.Simulation(four_bars(5), 2e-3, solver="direct")
    for i in range(6):
        sim.joint(f"u{i}").velocity = 1.0
    for i in range(5):
        sim.body(f"over{i}").velocity = (1.0, 0, 0)
    energies, off, far = [], 0.0, 0.0
    for _ in range(1000):
        sim.step()
        e = sim.energy()
        energies.append(e.kinetic + e.potential)
        q = [float(sim.joint(f"u{i}").position) for i in range(6)]
        off, far = max(off, np.ptp(q)), max(far, abs(q[0]))
    assert sim.solver._lean
    assert far > 6.0 and off < 1e-9  # all the way round; equal bars stay parallel
    assert np.ptp(energies) < 1e-9 * np.abs(energies).max()


def bennett():
    """Four hinges whose rows are dependent only where the loop is closed."""
    a, b, alpha, first = 0.5, 0.7, 0.6, 1.0
    beta = np.arcsin(b * np.sin(alpha) / a)
    second = 2 * np.arctan(np.sin((beta + alpha) / 2) / np.sin((beta - alpha) / 2) / np.tan(first / 2))
    R, at, scene, pins = np.eye(3), np.zeros(3), sh.Scene(gravity=(0.5, 1.0, -9.81)), []
    for turn, length, twist in ((first, a, alpha), (second, b, beta), (-first, a, alpha), (-second, b, beta)):
        pins.append((matrix_to_quat(R), at))
        R = R @ quat_to_matrix(quat_exp(np.array([0, 0, turn])))
        at = at + R[:, 0] * length
        R = R @ quat_to_matrix(quat_exp(np.array([twist, 0, 0])))
    for k in range(4):
        turn, pin = pins[k]
        if k < 3:
            body(scene, f"b{k}", (pin + pins[k + 1][1]) / 2)
        ends = (f"b{k - 1}" if k else "world", f"b{k}" if k < 3 else "world")
        scene.add_joint(f"j{k}", sh.Revolute("z"), *ends, position=pin, rotation=turn)
    return scene


def test_bennett_s_linkage_moves(stored):
    sim = simulate(bennett(), dt=5e-3, speed=[("j0", 2.0)])
    sim.step(100)
    at = sim.state.position.numpy()
    assert np.abs(at - stored.next(at)).max() < 1e-10
    assert abs(sim.joint("j0").position) > 0.2


def number_tree(scene, h):
    """The scene's forest and rows in floats."""
    model = scene.build()
    plan = Plan(model)
    return RowNumberTree(RowTables(plan.forest(), closures_of(plan)), h, gravity=model.gravity), plan


def test_rows_that_depend_on_others_get_no_impulse():
    tree, _ = number_tree(four_bars(2), 1e-3)
    step(tree)
    assert sum(x != 0.0 for x in tree.rows.arrays["pivot"]) == 6  # of 12: in a plane three rows weld two halves
    assert sum(x != 0.0 for x in tree.rows.arrays["impulse"]) <= 6


def test_a_pose_that_stands_open_is_closed_by_displacements():
    tree, _ = number_tree(four_bars(2), 1e-3)
    tree.fields[0]["q"] = [0.05]
    tree.place()
    close_pose(tree)
    assert tree.rows.open < 1e-26
    assert all(f["V"] == [0.0] * 3 for f in tree.fields)


def test_emitted_rows_do_what_rows_of_numbers_do():
    scene = ring("x rz ry")
    scene.add_spring("s", "world", "b", at_a=(0.1, 0.9, 0), stiffness=30.0, damping=0.5, rest=0.2)
    scene.add_joint("rod", sh.Distance(), "a", "c", position=[(0.2, 0.1, 0.1), (1.0, 0.1, -0.1)])
    h = 2e-3
    tree, _ = number_tree(scene, h)
    tables, gravity = tree.rows.tables, scene.build().gravity
    runners = [TreeRunner(tables.forest, h, gravity=gravity, worlds=w, tolerance=1e-16, rows=tables) for w in (1, 3)]
    for runner in runners:
        for (i, name), row in runner.rows.items():
            runner.numbers()[row] = np.array(tree.fields[i][name])[:, None]
        runner.step(20)
    for _ in range(20):
        step(tree)
    one, many = (r.numbers() for r in runners)
    for (i, name), row in runners[0].rows.items():
        if name in ("q", "rotation", "V", "W"):
            np.testing.assert_allclose(one[row, 0], tree.fields[i][name], atol=1e-12)
    assert np.array_equal(many, np.repeat(one, 3, 1))  # a world in a batch equals the same world alone, to the bit


# ---- a simulation's calls ----------------------------------------------------------------------------------------------------


def loop_of_five(**keywords):
    return sh.Simulation(everything_beside(), 1e-3, solver="direct", **keywords)


STATE = "position rotation velocity spin tree joint_force joint_torque gear_impulse spring_impulse"


def bits(sim, world=0):
    return np.concatenate([getattr(sim.state, name).numpy()[:, world].ravel() for name in STATE.split()])


def test_calls_snapshots_and_worlds_agree_bit_for_bit():
    one, many, batch = loop_of_five(), loop_of_five(), loop_of_five(worlds=3)
    for _ in range(30):
        one.step()
    many.step(30)
    batch.step(30)
    assert np.array_equal(bits(one), bits(many))
    assert all(np.array_equal(bits(one), bits(batch, w)) for w in range(3))
    kept = one.snapshot()
    one.step(20)
    fresh = loop_of_five()
    fresh.restore(kept)
    fresh.step(20)
    assert np.array_equal(bits(one), bits(fresh))


def test_joints_of_a_loop_let_go_in_one_world_alone(stored):
    """Of the tree, of the closing, and the rod: the others make the steps of one that is alone; put back, it is closed again."""
    sim = simulate(everything_beside(), worlds=4)
    for world, name in enumerate(("j2", "close", "rod")):
        on = np.ones(4, bool)
        on[world] = False
        sim.joint(name).enabled = on
    for _ in range(20):
        sim.step()
    stored.meets(sim.state.position.numpy(), 1e-10)
    stored.meets(sim.state.mid_force.numpy()[:6], 1e-8)  # all but the rod
    alone = loop_of_five()
    alone.step(21)
    off = np.abs(sim.state.position.numpy()[:, 3] - alone.state.position.numpy()[:, 0]).max()
    assert off < 1e-12
    for name in ("j2", "close", "rod"):
        sim.joint(name).enabled = True
    before = np.abs(sim.state.velocity.numpy()).max()
    sim.step(5)
    assert sim.constraint_error().max() < 1e-9
    assert np.abs(sim.state.velocity.numpy()).max() < 3 * before + 1  # gaps are closed by displacements, not by speeds


def test_a_closing_joint_breaks(stored):
    def swing():
        scene = sh.Scene()
        pins = np.array([[0, 0, 0], [0.1, 0, -0.5], [0.8, 0, -0.5], [0.7, 0, 0]])
        for i, name in enumerate("abc"):
            body(scene, name, (pins[i] + pins[i + 1]) / 2)
        scene.add_joint("left", sh.Revolute("y"), "world", "a", position=pins[0])
        scene.add_joint("low", sh.Revolute("y", damping=0.1), "a", "b", position=pins[1])
        scene.add_joint("other", sh.Revolute("y"), "b", "c", position=pins[2])
        scene.add_joint("right", sh.Revolute("y"), "world", "c", position=pins[3], break_force=60.0)
        return scene

    sim = simulate(swing())
    sim.step(10)
    assert sim.joint("right").enabled
    sim.body("c").apply_force((0, 0, -60.0), once=False)
    sim.step(60)
    assert not sim.joint("right").enabled
    stored.meets(sim.state.position.numpy(), 1e-9)


def test_a_loop_falls_asleep_as_one():
    scene = sh.Scene()
    pins = np.array([[0, 0, 0], [0, 0, -0.5], [0.7, 0, -0.5], [0.7, 0, 0]])
    for i, name in enumerate("abc"):
        body(scene, name, (pins[i] + pins[i + 1]) / 2)
    hinge = {"friction": 0.2, "damping": 2.0}
    scene.add_joint("j_a", sh.Revolute("y", **hinge), "world", "a", position=pins[0])
    scene.add_joint("j_b", sh.Revolute("y", **hinge), "a", "b", position=pins[1])
    scene.add_joint("j_c", sh.Revolute("y", **hinge), "world", "c", position=pins[3])
    scene.add_joint("close", sh.Revolute("y"), "b", "c", position=pins[2])
    sim = sh.Simulation(scene, 2e-3, solver="direct")
    sim.joint("j_a").velocity = 0.2
    sim.step(3000)
    assert sim.solver._lean
    assert all(sim.body(name).asleep for name in "abc")
    at = sim.state.position.numpy().copy()
    sim.step(100)
    assert np.array_equal(at, sim.state.position.numpy())
    sim.body("b").apply_force((30.0, 0, 0), once=False)
    sim.step(100)
    assert not sim.body("c").asleep
    assert np.abs(sim.state.position.numpy() - at).max() > 1e-3


# ---- an impact inside a chain, and mistakes ----------------------------------------------------------------------------------


def test_an_axis_inside_a_chain_leaves_its_limit_with_restitution():
    """At half the speed of approach, and its base feels the impact: momentum about the first hinge changes by gravity alone."""
    frame, h = np.array([[0, 1, 0], [0, 0, 1], [1, 0, 0]], float), 1e-3
    stop = {"limit_lower": -0.2, "limit_upper": 0.2, "restitution": 0.5}
    arm, com, inertia = frame.T @ (0.3, 0, 0), frame.T @ (0.15, 0, 0), np.diag([0.03, 0.04, 0.05])
    links = [Link(-1, HINGE, frame, np.zeros(3), com, inertia, 1.5), Link(0, HINGE, np.eye(3), arm, com, inertia, 0.8, stop)]
    runner = TreeRunner(Forest(links), h, tolerance=1e-16)
    speeds, momenta, torques, angles = [], [], [], []
    for _ in range(250):
        runner.step()
        x, L, moment, turn, pin, spins = runner.numbers()[:, 0], 0.0, 0.0, 0.0, np.zeros(3), []
        for i, link in enumerate(links):
            turn += x[runner.rows[i, "q"].start]
            c, s = np.cos(turn), np.sin(turn)
            R = np.array([[c, 0, s], [0, 1, 0], [-s, 0, c]]) @ frame
            at, v, w = pin + R @ link.com, *(x[runner.rows[i, n]] * 2 / h for n in "VW")
            L += (link.mass * np.cross(at, v) + R @ link.inertia @ R.T @ w)[1]
            moment += np.cross(at, (0, 0, -9.81 * link.mass))[1]
            spins.append(w[1])
            pin = pin + R @ arm
        speeds.append(spins[1] - spins[0])
        momenta.append(L)
        torques.append(moment)
        angles.append(x[runner.rows[1, "q"].start])
    k = int(np.flatnonzero(np.diff(np.sign(speeds)))[0])
    assert abs(angles[k + 1]) > 0.19 and abs(speeds[k + 1] + 0.5 * speeds[k]) < 1e-9
    gained, given = np.diff(momenta), h * (np.array(torques[1:]) + torques[:-1]) / 2
    assert np.abs(gained - given)[k] < 1e-4 * np.abs(momenta[k])  # of the impact itself there is nothing to be seen


def test_closures_name_links_that_do_not_exist():
    with pytest.raises(ValueError, match="closure 0: link 7 does not exist, allowed: -1"):
        RowTables(Forest([Link(-1, BALL)]), [Closure(POINT, 7, 0)])


def test_code_for_one_forest_knows_no_rows():
    tables = RowTables(Forest([Link(-1, BALL)]), [Closure(POINT, 0, -1)])
    with pytest.raises(ValueError, match="specialize is True and rows are given"):
        TreeRunner(tables.forest, 1e-3, specialize=True, rows=tables)
