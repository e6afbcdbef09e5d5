"""Derivatives of steps against central differences of steps."""

import numpy as np
import pytest
from mechanisms import add_body, kinds, some_laws

import sharnir as sh

STEP = 1e-3  # by which states and inputs are moved; differences of four points leave its fourth power


def chain(seed, kinds, laws=False, floats=False):
    """A row of bodies on joints: h hinges, s sliders, b balls, w welds; in any pose, and moving."""
    rng = np.random.default_rng(seed)
    scene = sh.Scene()
    parent = scene.world
    if floats:
        scene.add_body("base", mass=1.5, inertia=(0.1, 0.2, 0.15), com=(0.05, -0.1, 0.02))
        parent = "base"
    for k, kind in enumerate(kinds):
        name = f"body{k}"
        place, com = (0.4 * (k + 1), 0, 0), 0.1 * rng.normal(size=3)
        scene.add_body(name, mass=rng.uniform(0.5, 2), inertia=0.1 * rng.uniform(0.8, 1.2, 3), position=place, com=com)
        acts = {}
        if laws and kind in "hs":
            acts = {"damping": rng.uniform(0, 1), "spring": (rng.uniform(0, 20), 0.1), "friction": rng.uniform(0.1, 0.5)}
            if k % 2:
                acts["drive"] = sh.Servo(kp=rng.uniform(1, 300), kd=rng.uniform(0, 3), max_force=1e3)
        joint = {"h": sh.Revolute, "s": sh.Prismatic}.get(kind)
        joint = joint(rng.normal(size=3), **acts) if joint else {"b": sh.Spherical, "w": sh.Fixed}[kind]()
        ends = (parent, name) if rng.random() < 0.6 else (name, parent)
        scene.add_joint(f"joint{k}", joint, *ends, position=(0.4 * k + 0.2, 0, 0))
        parent = name
    sim = sh.Simulation(scene, dt=2e-3, solver="direct")
    q, v = sh.dynamics.from_state(sim, sim.state)
    return sim, sh.dynamics.moved(sim, q, 0.3 * rng.normal(size=v.shape)), 2.0 * rng.normal(size=v.shape)


def put(sim, q, v):
    sh.dynamics.to_state(sim, sim.state, q, v)
    sim.changed()


def after_step(sim, q, v):
    put(sim, q, v)
    sim.step()
    return sh.dynamics.from_state(sim, sim.state)


def between(sim, q0, q1):
    """The small motion from q0 to q1, along the speeds."""
    n, tiny = sh.dynamics.from_state(sim, sim.state)[1].shape[1], 1e-6
    ways = tiny * np.eye(n)
    N = np.array([(sh.dynamics.moved(sim, q0, w) - sh.dynamics.moved(sim, q0, -w))[0] / (2 * tiny) for w in ways]).T
    return np.linalg.pinv(N) @ (q1 - q0)[0]


def difference(change, sim, q_end):
    """The derivative of the end of a step by a number, from four points."""
    out = 0.0
    for by, weight in ((STEP, 8.0), (-STEP, -8.0), (2 * STEP, -1.0), (-2 * STEP, 1.0)):
        q, v = change(by)
        out = out + weight * np.concatenate([between(sim, q_end, q), v[0]])
    return out / (12 * STEP)


def by_differences(sim, q, v):
    """A and B (of efforts on joints with one axis)."""
    n = v.shape[1]
    q_end = after_step(sim, q, v)[0]
    columns = []
    for k in range(n):
        way = np.eye(n)[k : k + 1]
        columns.append(difference(lambda by, w=way: after_step(sim, sh.dynamics.moved(sim, q, by * w), v), sim, q_end))
    for k in range(n):
        way = np.eye(n)[k : k + 1]
        columns.append(difference(lambda by, w=way: after_step(sim, q, v + by * w), sim, q_end))
    A = np.array(columns).T
    columns = []
    for name in sim.linearize().inputs:
        joint = sim.joint(name.removesuffix(".effort"))

        def pushed(by, joint=joint):
            joint.effort = by
            ends = after_step(sim, q, v)
            joint.effort = 0.0
            return ends

        columns.append(difference(pushed, sim, q_end))
    return A, np.array(columns).T


@pytest.mark.parametrize(
    ("seed", "kinds", "laws", "floats"),
    [
        (0, "hhh", False, False), (1, "hsh", False, False), (2, "sbh", False, False), (3, "bbs", False, False),
        (4, "hhhhhhh", False, False), (5, "hsh", True, False), (6, "hhhh", True, False), (7, "shbwh", True, False),
        (8, "ssh", True, False), (9, "hb", False, True), (10, "shw", True, True), (11, "bh", False, True),
    ],
)  # fmt: skip
def test_steps_are_differentiated_as_central_differences_do(seed, kinds, laws, floats):
    sim, q, v = chain(seed, kinds, laws, floats)
    A, B = by_differences(sim, q, v)
    put(sim, q, v)
    made = sim.linearize()
    n = v.shape[1]
    assert len(made.states) == n
    assert not made.switches
    print(
        "off", np.abs(made.A - A).max() / np.abs(A).max(), np.abs(made.B - B).max() / np.abs(B).max() if len(made.inputs) else ""
    )
    assert np.abs(made.A - A).max() <= 3e-10 * np.abs(A).max()
    if len(made.inputs):
        assert np.abs(made.B - B).max() <= 1.9e-9 * np.abs(B).max()


def any_mechanism(seed):
    """One to five bodies on joints of any type, either way round, some of them floating, with laws on single axes."""
    rng = np.random.default_rng(seed)
    scene, bases, places = sh.Scene(), ["world"], {"world": np.zeros(3)}
    for i in range(int(rng.integers(1, 6))):
        base = bases[rng.integers(len(bases))]
        name, at = f"body{i}", places[base] + rng.uniform(-0.4, 0.4, 3)
        add_body(scene, name, rng, at)
        bases.append(name)
        places[name] = at
        some = kinds(rng)
        make = some[rng.integers(len(some))]
        joint = make(**some_laws(rng, make(), 5.0)) if len(make().free) == 1 else make()
        if rng.random() > 0.12 and not isinstance(joint, sh.Free):
            pair = (base, name) if rng.random() < 0.6 else (name, base)
            scene.add_joint(f"joint{i}", joint, *pair, position=0.5 * (at + places[base]))
    sim = sh.Simulation(scene, dt=float(10 ** rng.uniform(-3.5, -2)), solver="direct")
    q, v = sh.dynamics.from_state(sim, sim.state)
    return sim, sh.dynamics.moved(sim, q, 0.2 * rng.normal(size=v.shape)), rng.normal(size=v.shape)


@pytest.mark.parametrize("seed", range(24))
def test_steps_of_random_mechanisms_are_differentiated(seed):
    sim, q, v = any_mechanism(seed)
    put(sim, q, v)
    made = sim.linearize()
    if made.switches or not v.size:
        return
    A, B = by_differences(sim, q, v)
    assert np.abs(made.A - A).max() <= 1e-8 * np.abs(A).max()
    if len(made.inputs):
        assert np.abs(made.B - B).max() <= 1e-8 * np.abs(B).max()


def pendulum(**acts):
    """Two links on hinges, the first of which has laws."""
    scene = sh.Scene()
    scene.add_body("upper", sh.Box(0.4, 0.05, 0.05), mass=1.0, position=(0.2, 0, 0))
    scene.add_body("lower", sh.Box(0.4, 0.05, 0.05), mass=0.5, position=(0.6, 0, 0))
    scene.add_joint("shoulder", sh.Revolute("y", **acts), scene.world, "upper", position=(0, 0, 0))
    scene.add_joint("elbow", sh.Revolute("y"), "upper", "lower", position=(0.4, 0, 0))
    return sh.Simulation(scene, dt=1e-3, solver="direct")


def matches(sim, tolerance=3e-9):
    q, v = sh.dynamics.from_state(sim, sim.state)
    A, B = by_differences(sim, q, v)
    put(sim, q, v)
    made = sim.linearize()
    return np.abs(made.A - A).max() <= tolerance and np.abs(made.B - B).max() <= tolerance * np.abs(B).max()


def test_an_axis_that_friction_holds_stays_held():
    sim = pendulum(friction=50.0)
    sim.joint("elbow").velocity = 1.0
    sim.step(20)
    assert sim.joint("shoulder").stuck
    made = sim.linearize()
    assert not made.switches
    assert np.allclose(made.A[2], [0, 0, 0, 0], atol=1e-12)  # its speed stays zero, whatever the others do
    assert made.A[0, 0] == pytest.approx(1.0, abs=1e-12)
    assert abs(made.B[2, 0]) < 1e-12  # an effort that friction takes moves nothing
    assert made.B[3, 1] > 0.0


def test_an_axis_that_stops_in_the_step_is_told_of():
    sim = pendulum(limit=(-0.5, 0.5))
    sim.joint("shoulder").position = 0.4999
    sim.joint("shoulder").velocity = 1.0
    assert sim.linearize().switches
    sim.joint("shoulder").position = 0.2
    assert not sim.linearize().switches


def test_a_bounded_servo_gives_no_stiffness():
    sim = pendulum(drive=sh.Servo(kp=100.0, kd=1.0, max_force=0.5))
    sim.joint("shoulder").drive.position = 1.0
    inputs = ["shoulder.drive.position", "shoulder.effort"]
    made = sim.linearize(inputs)
    assert made.inputs == tuple(inputs)
    assert np.abs(made.B[:, 0]).max() == 0.0
    sim.joint("shoulder").drive.max_force = 1e3
    free = sim.linearize(inputs)
    assert np.allclose(free.B[:, 0], 100.0 * free.B[:, 1], rtol=1e-12, atol=0)
    assert free.B[2, 1] == pytest.approx(made.B[2, 1], rel=0.01)
    assert matches(sim)


def test_motors_are_dampers_with_a_rotor_and_voltage_is_an_input():
    sim = pendulum(drive=sh.DCMotor(resistance=1.5, torque_constant=0.3, gear_ratio=8.0, rotor_inertia=2e-3, efficiency=0.9))
    sim.joint("shoulder").velocity, sim.joint("elbow").velocity = 1.0, -2.0
    sim.joint("shoulder").drive.voltage = 6.0
    q, v = sh.dynamics.from_state(sim, sim.state)
    assert matches(sim)
    put(sim, q, v)
    made = sim.linearize(["shoulder.drive.voltage", "shoulder.effort"])

    def driven(by):
        sim.joint("shoulder").drive.voltage = 6.0 + by
        ends = after_step(sim, q, v)
        sim.joint("shoulder").drive.voltage = 6.0
        return ends

    found = difference(driven, sim, after_step(sim, q, v)[0])
    assert np.abs(made.B[:, 0] - found).max() <= 3e-9 * np.abs(found).max()
    torque = 0.9 * 8.0 * 0.3 / 1.5  # per volt, where power flows to the joint
    assert np.allclose(made.B[:, 0], torque * made.B[:, 1], rtol=1e-9)


def test_forces_on_bodies_are_inputs():
    sim, q, v = chain(9, "hb", floats=True)
    inputs = ["base.force", "body1.torque", "joint0"]
    put(sim, q, v)
    B = sim.linearize(inputs).B
    q_end = after_step(sim, q, v)[0]
    found = []
    for body, what in (("base", "force"), ("body1", "torque")):
        for k in range(3):

            def pushed(by, body=body, what=what, k=k):
                act = getattr(sim.body(body), f"apply_{what}")
                act(by * np.eye(3)[k], once=False)
                ends = after_step(sim, q, v)
                act(np.zeros(3), once=False)
                return ends

            found.append(difference(pushed, sim, q_end))
    assert np.abs(B[:, :6] - np.array(found).T).max() <= 3e-9 * np.abs(B).max()


def test_steps_follow_the_derivative():
    """A motion beside another one stays A x beside it, to second order, over many steps."""
    sim, q, v = chain(6, "hhhh", laws=True)
    n, small = v.shape[1], 1e-6
    x = small * np.random.default_rng(0).normal(size=2 * n)
    near_q, near_v = sh.dynamics.moved(sim, q, x[:n]), v + x[n:]
    for _ in range(30):
        put(sim, q, v)
        x = sim.linearize().A @ x
        q, v = after_step(sim, q, v)
        near_q, near_v = after_step(sim, near_q, near_v)
    found = np.concatenate([near_q[0] - q[0], near_v[0] - v[0]])
    assert np.abs(found - x).max() <= 1e-5 * np.abs(x).max()


def test_linearizing_changes_nothing():
    one, other = pendulum(damping=0.1), pendulum(damping=0.1)
    for sim in (one, other):
        sim.joint("elbow").velocity = 2.0
        sim.step(5)
    for _ in range(50):
        one.linearize()
        one.step()
        other.step()
    assert np.array_equal(one.q, other.q)
    assert np.array_equal(one.qd, other.qd)


def test_what_sleeps_is_linearized_as_what_is_awake():
    sim = pendulum(friction=20.0, drive=sh.Servo(kp=200.0, kd=20.0))
    sim.joint("elbow").friction = 5.0
    sim.run(6.0)
    assert sim.body("lower").asleep
    made = sim.linearize(["elbow.drive.position", "elbow.effort"])
    assert made.A[0, 0] == made.A[1, 1] == pytest.approx(1.0)
    assert np.abs(made.B).max() < 1e-9  # friction holds it


def test_every_world_has_its_own():
    scene = sh.Scene()
    scene.add_body("upper", sh.Box(0.4, 0.05, 0.05), mass=1.0, position=(0.2, 0, 0))
    scene.add_joint("shoulder", sh.Revolute("y"), scene.world, "upper", position=(0, 0, 0))
    sim = sh.Simulation(scene, dt=1e-3, worlds=3, solver="direct")
    sim.joint("shoulder").position = [0.0, 0.5, 1.0]
    made = sim.linearize()
    assert made.A.shape == (3, 2, 2)
    assert made.B.shape == (3, 2, 1)
    one = sh.Simulation(scene, dt=1e-3, solver="direct")
    for w, q in enumerate((0.0, 0.5, 1.0)):
        one.joint("shoulder").position = q
        assert np.array_equal(one.linearize().A, made.A[w])


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        (["sholder"], "is 'shoulder' meant"),
        (["upper.forse"], "no joint 'upper.forse'"),
        (["upperr.force"], "is 'upper' meant"),
        ("shoulder", "a list of words"),
    ],
)
def test_wrong_inputs_are_answered(inputs, words):
    with pytest.raises(sh.SimulationError, match=words):
        pendulum().linearize(inputs)


def test_what_is_not_known_yet_is_refused_by_name():
    scene = sh.Scene()
    scene.add_ground()
    scene.add_body("ball", sh.Sphere(0.1), position=(0, 0, 1))
    with pytest.raises(sh.SimulationError, match="bodies may touch"):
        sh.Simulation(scene, dt=1e-3, solver="direct").linearize()
    with pytest.raises(sh.SimulationError, match="sequential"):
        sh.Simulation(scene, dt=1e-3, solver="sequential").linearize()
    sim = pendulum(drive=sh.DCMotor(resistance=1.0, torque_constant=0.1, inductance=0.1))
    with pytest.raises(sh.SimulationError, match="'shoulder' has a motor whose current lags"):
        sim.linearize()
    scene = sh.Scene()
    scene.add_body("box", sh.Box(0.1, 0.1, 0.1))
    scene.add_joint("loose", sh.Free(), scene.world, "box", position=(0, 0, 0))
    with pytest.raises(sh.SimulationError, match="'loose' leaves all motions free"):
        sh.Simulation(scene, dt=1e-3, solver="direct").linearize()
    sim = pendulum()
    sim.joint("elbow").enabled = False
    with pytest.raises(sh.SimulationError, match="'elbow' is disabled"):
        sim.linearize()
