"""Parameters changed while running, for all worlds or one a world, against closed forms and against worlds alone."""

import numpy as np
import pytest

import sharnir as sh

SOLVERS = ("direct", "sequential")
G = 10.0


def slider(**options):
    scene = sh.Scene(gravity=(0, 0, -G))
    scene.add_body("m", sh.Box(0.1, 0.2, 0.3), mass=2.0)
    scene.add_joint("z", sh.Prismatic("z", **options), scene.world, "m", position=(0, 0, 0))
    return scene


def sim_of(scene, solver="direct", worlds=1, dt=1e-3):
    return sh.Simulation(scene, dt, solver=solver, worlds=worlds, on_divergence="ignore")


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_mass_changed_while_running_obeys_newton(solver):
    sim = sim_of(slider(), solver, worlds=3)
    body, joint = sim.body("m"), sim.joint("z")
    assert body.mass.tolist() == [2.0] * 3
    masses = np.array([1.0, 2.0, 5.0])
    body.mass = masses
    assert body.mass.tolist() == masses.tolist() and body.inertia.shape == (3, 3, 3)
    assert np.allclose(body.inertia[2], 5 * body.inertia[0])
    joint.effort = 30.0
    sim.step(100)
    want = 0.1 * (30.0 / masses - G)
    off = np.abs(joint.velocity - want).max()
    print(f"{solver}: {off:.1e} m/s off {want}")
    assert off < 1e-9
    body.mass = 3.0
    before = joint.velocity.copy()
    sim.step(100)
    assert np.allclose(joint.velocity - before, 0.1 * (30.0 / 3.0 - G), atol=1e-9), "speeds stay when a mass changes"
    assert sim.energy().kinetic == pytest.approx(0.5 * 3.0 * joint.velocity**2, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("solver", SOLVERS)
def test_an_inertia_changed_while_running(solver):
    scene = sh.Scene(gravity=(0, 0, 0))
    scene.add_body("m", sh.Box(0.1, 0.2, 0.3), mass=2.0)
    scene.add_joint("r", sh.Revolute("z"), scene.world, "m", position=(0, 0, 0))
    sim = sim_of(scene, solver)
    sim.joint("r").velocity = 1.0
    sim.body("m").inertia = (0.1, 0.2, 0.3)
    sim.joint("r").effort = 0.6
    sim.step(100)
    print(f"{solver}: {sim.joint('r').velocity - 1.2:.1e} rad/s off")
    assert sim.joint("r").velocity == pytest.approx(1.0 + 0.1 * 0.6 / 0.3, abs=1e-7)
    with pytest.raises(sh.SimulationError, match="body 'm': inertia is"):
        sim.body("m").inertia = (0.1, 0.2, -0.3)
    with pytest.raises(sh.SimulationError, match=r"body 'm': mass \(kg\) is a finite number above 0, got 0"):
        sim.body("m").mass = 0
    with pytest.raises(sh.SimulationError, match="body 'world' is not dynamic"):
        sim.body("world").mass = 1.0


@pytest.mark.parametrize("solver", SOLVERS)
def test_springs_dampers_and_limits_of_an_axis(solver):
    sim = sim_of(slider(), solver, worlds=3)
    joint = sim.joint("z")
    lower, k, c = np.array([-0.05, -0.2, -np.inf]), np.array([100.0, 200.0, 400.0]), 40.0
    joint.limit = (lower, 1.0)
    joint.spring = (k, 0.1)
    joint.damping = c
    assert (
        joint.limit[0].tolist() == lower.tolist() and joint.spring[1].tolist() == [0.1] * 3 and joint.damping.tolist() == [c] * 3
    )
    sim.step(4000)
    want = np.maximum(0.1 - 2 * G / k, lower)
    off = np.abs(joint.position - want).max()
    print(f"{solver}: {off:.1e} m off {want}")
    assert off < 1e-6
    joint.limit = (-np.inf, np.inf)
    joint.spring = (0.0, 0.0)
    sim.step(1500)
    assert np.allclose(joint.velocity, -2 * G / c, atol=1e-6), "the speed at which a damper carries the weight"
    for bad, said in (
        ((1, 0), "lower limit is at most the upper"),
        ((np.nan, 1), "lower limit is a number"),
        (3, r"a limit is \(lower"),
    ):
        with pytest.raises(sh.SimulationError, match=f"joint 'z': .*{said}"):
            joint.limit = bad
    with pytest.raises(sh.SimulationError, match="spring stiffness is a finite number of at least 0"):
        joint.spring = (-1, 0)
    with pytest.raises(sh.SimulationError, match=r"damping is a finite number of at least 0, or one a world \(3\), got"):
        joint.damping = [1.0, 2.0]


@pytest.mark.parametrize("solver", SOLVERS)
def test_motor_and_gravity_by_world(solver):
    scene = slider(drive=sh.DCMotor(voltage=12.0, resistance=2.0, torque_constant=0.1, gear_ratio=50.0))
    sim = sim_of(scene, solver, worlds=2)
    sim.gravity = [(0, 0, 0), (0, 0, 0)]
    sim.joint("z").drive.torque_constant = [0.1, 0.2]
    sim.joint("z").drive.gear_ratio = 40.0
    sim.step(3000)
    want = 12.0 / (np.array([0.1, 0.2]) * 40.0)
    print(f"{solver}: {np.abs(sim.joint('z').velocity - want).max():.1e} m/s off {want}")
    assert np.allclose(sim.joint("z").velocity, want, atol=1e-6)
    with pytest.raises(sh.SimulationError, match="joint 'z': efficiency is a finite number above 0 of at most 1"):
        sim.joint("z").drive.efficiency = 1.5
    free = sh.Scene()
    free.add_body("stone", sh.Sphere(0.1), mass=1.0)
    falls = sim_of(free, solver, worlds=3)
    pulls = np.array([(0, 0, -9.81), (0, 0, -1.62), (1, 0, -3.7)])
    falls.gravity = pulls
    falls.step(1000)
    assert np.allclose(falls.body("stone").velocity, pulls, atol=1e-9) and falls.gravity.shape == (3, 3)
    total = falls.energy().total
    assert np.allclose(total, 0.0, atol=1e-9), "each in its own field"


@pytest.mark.parametrize("solver", SOLVERS)
def test_varied_worlds_are_those_worlds_alone_to_the_bit(solver):
    def scene():
        out = slider(damping=3.0, spring=(50.0, 0.0), limit=(-0.3, 0.3), friction=0.5)
        out.add_body("arm", sh.Box(0.05, 0.05, 0.4), mass=1.0, position=(0.3, 0, -0.2))
        out.add_joint("r", sh.Revolute("y", damping=0.05, drive=sh.Servo(kp=5.0, kd=0.1)), "m", "arm", position=(0.3, 0, 0))
        out.add_spring("s", "world", "arm", at_a=(1, 0, 0), stiffness=20.0, damping=1.0)
        return out

    sim = sim_of(scene(), solver, worlds=4)
    sim.randomize(seed=5, mass=0.3, stiffness=0.3, damping=0.3, friction=0.3, limit=0.05, kp=0.2, kd=0.2, gravity=0.2)
    again = sim_of(scene(), solver, worlds=4)
    again.randomize(seed=5, mass=0.3, stiffness=0.3, damping=0.3, friction=0.3, limit=0.05, kp=0.2, kd=0.2, gravity=0.2)
    assert len(np.unique(sim.body("arm").mass)) == 4 and np.array_equal(sim.body("arm").mass, again.body("arm").mass)
    for w in range(4):
        alone = sim_of(scene(), solver)
        for name in ("m", "arm"):
            alone.body(name).mass = sim.body(name).mass[w]
            alone.body(name).inertia = sim.body(name).inertia[w]
        for name in ("z", "r"):
            mine, theirs = alone.joint(name), sim.joint(name)
            mine.limit = tuple(end[w] for end in theirs.limit)
            mine.spring = tuple(x[w] for x in theirs.spring)
            mine.damping = theirs.damping[w]
            mine.drive.kp, mine.drive.kd = theirs.drive.kp[w], theirs.drive.kd[w]
        for name in ("friction_static", "friction_dynamic"):
            getattr(alone.commands, name).numpy()[:, 0] = getattr(sim.commands, name).numpy()[:, w]
        alone.spring("s").stiffness, alone.spring("s").damping = sim.spring("s").stiffness[w], sim.spring("s").damping[w]
        alone.gravity = sim.gravity[w]
        alone.step(200)
        again_w = alone.q.copy()
        if w == 0:
            sim.step(200)
        print(f"{solver}, world {w}: {np.abs(sim.q[w] - again_w).max():.1e} off itself alone")
        assert np.array_equal(sim.q[w], again_w)


def test_springs_between_points_and_ropes():
    scene = sh.Scene(gravity=(0, 0, -G))
    scene.add_body("load", sh.Box(0.1, 0.1, 0.1), mass=2.0, position=(0, 0, -1))
    scene.add_spring("s", "world", "load", stiffness=100.0, damping=60.0)
    sim = sim_of(scene, worlds=2)
    sim.spring("s").stiffness, sim.spring("s").rest = [100.0, 400.0], 0.8
    sim.step(6000)
    want = 0.8 + 2 * G / np.array([100.0, 400.0])
    assert np.allclose(sim.spring("s").length, want, atol=1e-6)
    with pytest.raises(sh.SimulationError, match="spring 's': stiffness is a finite number of at least 0"):
        sim.spring("s").stiffness = -1

    scene = sh.Scene(gravity=(0, 0, -G))
    scene.add_body("load", sh.Box(0.1, 0.1, 0.1), mass=2.0, position=(0, 0, -1.05))
    scene.add_rope("r", (0, 0, 0), (0, 0, -1), segments=5, mass_per_length=0.1, attach=("world", "load"), EI=1e-4)
    sim = sim_of(scene, worlds=2)
    rope = sim.rope("r")
    assert rope.EI.tolist() == [1e-4] * 2 and rope.breaking_load.tolist() == [1e30] * 2
    rope.breaking_load, rope.GJ = [1e6, 10.0], [1e-4, 2e-4]
    sim.step(50)
    assert not rope.broken[0].any() and rope.broken[1].any()
    with pytest.raises(sh.SimulationError, match="rope 'r': EI is at least 0, got -1"):
        rope.EI = -1


def test_a_simulation_changes_its_own_model_alone():
    model = slider().build()
    one, other = sh.Simulation(model, 1e-3), sh.Simulation(model, 1e-3)
    one.body("m").mass = 7.0
    one.joint("z").damping = 3.0
    assert other.body("m").mass == 2.0 and other.joint("z").damping == 0.0
    assert sh.dynamics.mass_matrix(one, [0.0])[0, 0] == pytest.approx(7.0)
    assert sh.dynamics.mass_matrix(model, [0.0])[0, 0] == pytest.approx(2.0)
    with pytest.raises(sh.SimulationError, match="randomize: mass = 2; a spread is"):
        one.randomize(seed=1, mass=2)


def test_an_integration_has_the_parameters_of_its_worlds():
    sim = sim_of(slider(spring=(1.0, 0.0)), worlds=3)
    masses, k = np.array([1.0, 2.0, 4.0]), np.array([100.0, 300.0, 500.0])
    sim.body("m").mass, sim.joint("z").spring = masses, (k, 0.0)
    sim.gravity = np.array([(0, 0, -G)] * 3) * np.array([[1.0], [0.5], [2.0]])
    path = sim.integrate(0.7, rtol=1e-11, atol=1e-11)
    rest, omega = -masses * G * np.array([1.0, 0.5, 2.0]) / k, np.sqrt(k / masses)
    want = rest * (1 - np.cos(0.7 * omega))
    off = np.abs(path.q[:, -1, 0] - want).max()
    print(f"{off:.1e} m off the three oscillators")
    assert off < 1e-9 and np.allclose(sim.joint("z").position, want, atol=1e-9)
    with pytest.raises(sh.SimulationError, match=r"masses vary from world to world: give one state, or one a world \(3\)"):
        sh.dynamics.forward_dynamics(sim, np.zeros((5, 1)), np.zeros((5, 1)))


def test_friction_is_read_as_it_was_set():
    sim = sim_of(slider(friction=2.0), worlds=2)
    assert sim.joint("z").friction == sh.Friction(2.0, 2.0)
    sim.joint("z").friction = [1.0, sh.Friction(3.0, 2.0, viscous=0.5)]
    assert sim.joint("z").friction == [sh.Friction(1.0, 1.0), sh.Friction(3.0, 2.0, viscous=0.5)]


# ---- points on bodies ----


def swinging(centre, on_base, on_arm):
    """An arm on a slider's hinge, with a spring; centre and anchors as asked for."""
    scene = sh.Scene()
    base = scene.add_body("base", sh.Box(0.2, 0.2, 0.2), mass=1.0)
    place = np.subtract(on_base, on_arm)
    arm = scene.add_body("arm", sh.Box(0.4, 0.05, 0.05), mass=0.5, inertia=(1e-3, 2e-3, 3e-3), com=centre, position=place)
    scene.add_joint("rail", sh.Prismatic("x", spring=(50.0, 0.0)), scene.world, base, position=(0, 0, 0))
    scene.add_joint("hinge", sh.Revolute("y", friction=0.01), base, arm, parent_frame=(on_base, (0, 0, 0, 1)),
                    child_frame=(on_arm, (0, 0, 0, 1)))  # fmt: skip
    scene.add_spring("spring", scene.world, arm, at_a=(0.5, 0, 0.5), at_b=(0.2, 0, 0), stiffness=20.0, rest=0.3)
    return scene


@pytest.mark.parametrize("solver", ["sequential", "direct"])
def test_centres_and_anchors_are_as_if_they_had_been_described(solver):
    new = ((0.05, 0, 0.01), (0.1, 0, 0.05), (-0.2, 0, 0.02))
    sim = sh.Simulation(swinging((0, 0, 0), (0.1, 0, 0), (-0.2, 0, 0)), 1e-3, solver=solver)
    sim.step(20)
    arm, hinge = sim.body("arm"), sim.joint("hinge")
    frame, angle = arm.position.copy(), hinge.position
    arm.com_local = new[0]
    assert np.abs(arm.position - frame).max() < 1e-14 and np.abs(arm.com_local - new[0]).max() < 1e-15
    hinge.parent_anchor, hinge.child_anchor = new[1:]
    assert abs(hinge.position - angle) < 1e-12 and sim.constraint_error().max() < 1e-12
    assert np.abs(hinge.parent_anchor - new[1]).max() < 1e-15
    sim.reset()
    twin = sh.Simulation(swinging(*new), 1e-3, solver=solver)
    for each in (sim, twin):
        each.joint("hinge").velocity = 1.0
        each.step(200)
    off = max(np.abs(getattr(arm, n) - getattr(twin.body("arm"), n)).max() for n in ("position", "velocity", "angular_velocity"))
    print(f"{solver}: moved centre and anchors, off by {off:.1e} after 200 steps")
    assert off < 1e-9


def test_a_centre_moves_beneath_contacts_and_ropes():
    def scene(centre):
        out = sh.Scene()
        out.add_ground()
        box = out.add_body("box", sh.Box(0.2, 0.2, 0.2), mass=1.0, com=centre, inertia=(0.01, 0.01, 0.01), position=(0, 0, 0.1))
        out.add_rope(
            "rope", (0.1, 0, 0.2), (0.1, 0, 0.7), radius=0.005, mass_per_length=0.05, segments=5, attach=(box, out.world)
        )
        return out

    sim, twin = (sh.Simulation(scene(c), 1e-3) for c in ((0, 0, 0), (0.03, 0, -0.02)))
    sim.body("box").com_local = (0.03, 0, -0.02)
    for s in (sim, twin):
        s.body("box").velocity = (0.5, 0, 0)
        s.step(50)
    off = np.abs(sim.body("box").position - twin.body("box").position).max()
    print(f"beneath contacts and ropes: off by {off:.1e} m")
    assert off < 1e-12


def test_points_that_cannot_be():
    sim = sh.Simulation(swinging((0, 0, 0), (0.1, 0, 0), (-0.2, 0, 0)), 1e-3)
    with pytest.raises(sh.SimulationError, match="body 'arm': com_local is three finite numbers"):
        sim.body("arm").com_local = (0, np.nan, 0)
    with pytest.raises(sh.SimulationError, match="joint 'hinge': child_anchor is three"):
        sim.joint("hinge").child_anchor = 0.2
    with pytest.raises(sh.SimulationError, match="body 'world'"):
        sim.body("world").com_local = (0, 0, 0)


def test_both_spellings_of_randomize():
    assert sh.Simulation.randomise is sh.Simulation.randomize
    assert sh.SplitSimulation.randomise is sh.SplitSimulation.randomize
