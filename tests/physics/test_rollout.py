"""Derivatives of motions against central differences of steps."""

import numpy as np
import pytest
from test_linearize import any_mechanism, chain, put

import sharnir as sh
from sharnir.control import command

STEPS = 20


def steps_of(sim, q, v, controls, inputs):
    """(steps + 1, …) coordinates and speeds of real steps."""
    put(sim, q, v)
    found = [sh.dynamics.from_state(sim, sim.state)]
    for u in controls:
        command(sim, inputs, u)
        sim.step()
        found.append(sh.dynamics.from_state(sim, sim.state))
    qs, vs = (np.array([x[0] for x in some]) for some in zip(*found, strict=True))
    for joint in inputs:
        if joint.endswith("effort"):
            command(sim, [joint], [0.0])
    return qs, vs


def difference(cost, h):
    """The derivative of a cost by a number at 0, from four points."""
    return (8 * (cost(h) - cost(-h)) - cost(2 * h) + cost(-2 * h)) / (12 * h)


def compare(sim, q, v, h=1e-4, inputs=None, steps=STEPS, seed=0):
    """By how much a gradient differs from differences, as part of its largest number: by q, v and controls."""
    rng, n = np.random.default_rng(seed), v.shape[1]
    put(sim, q, v)
    names = sim.linearize(inputs).inputs
    u = rng.normal(size=(steps, len(names)))
    put(sim, q, v)
    found = sh.rollout(sim, u, inputs=inputs) if names else sh.rollout(sim, steps=steps)
    by_q, by_v = rng.normal(size=found.q.shape), rng.normal(size=found.v.shape)

    def cost(q, v, u):
        qs, vs = steps_of(sim, q, v, u, names)
        return (by_q * qs).sum() + (by_v * vs).sum()

    made = found.gradient(by_q, by_v)
    off, ways = [], np.eye(n)
    if n:
        by_place = [difference(lambda x, w=w: cost(sh.dynamics.moved(sim, q, x * w[None]), v, u), h) for w in ways]
        by_speed = [difference(lambda x, w=w: cost(q, v + x * w, u), h) for w in ways]
        off += [np.abs(made.q - by_place).max() / np.abs(by_place).max()]
        off += [np.abs(made.v - by_speed).max() / np.abs(by_speed).max()]
    if names:
        some = np.zeros((3, len(names)))
        for row, k in enumerate((0, steps // 2, steps - 1)):
            for c in range(len(names)):
                one = np.zeros_like(u)
                one[k, c] = 1.0
                some[row, c] = difference(lambda x, one=one: cost(q, v, u + x * one), 10 * h)
        own = made.controls[[0, steps // 2, steps - 1]]
        off.append(np.abs(own - some).max() / np.abs(some).max())
    return off, found


@pytest.mark.parametrize(
    ("seed", "kinds", "laws", "floats"),
    [
        (0, "hhh", False, False), (1, "hsh", False, False), (2, "sbh", False, False), (3, "bbs", False, False),
        (5, "hsh", True, False), (7, "shbwh", True, False), (9, "hb", False, True), (10, "shw", True, True),
        (1, "b", False, True),
    ],
)  # fmt: skip
def test_motions_are_differentiated_as_central_differences_do(seed, kinds, laws, floats):
    sim, q, v = chain(seed, kinds, laws, floats)
    off, found = compare(sim, q, v)
    assert not found.switches.any()
    assert max(off[:2]) <= 3e-10
    assert max(off[2:], default=0.0) <= 6e-8


@pytest.mark.parametrize("seed", range(16))
def test_motions_of_random_mechanisms_are_differentiated(seed):
    sim, q, v = any_mechanism(seed)
    if not v.size:
        return
    off, _ = compare(sim, q, v, h=1e-5)
    assert max(off[:2]) <= 1.8e-9
    assert max(off[2:], default=0.0) <= 3.3e-7


def bounded(seed):
    """Three bodies on hinges and sliders with limits that bounce, and friction."""
    rng = np.random.default_rng(seed)
    scene, base = sh.Scene(), "world"
    for i in range(3):
        place, com = (0.3 * (i + 1), 0, 0), 0.1 * rng.normal(size=3)
        scene.add_body(f"b{i}", mass=rng.uniform(0.5, 2), inertia=0.1 * rng.uniform(0.8, 1.2, 3), com=com, position=place)
        kind, axis = (sh.Revolute if rng.random() < 0.6 else sh.Prismatic), rng.normal(size=3)
        limit = sh.Limit(-0.25, 0.2, restitution=float(rng.choice([0, 0.5])))
        joint = kind(axis, limit=limit, friction=float(rng.uniform(0, 0.6)), damping=0.1)
        ends = (base, f"b{i}") if rng.random() < 0.5 else (f"b{i}", base)
        scene.add_joint(f"j{i}", joint, *ends, position=(0.3 * i + 0.1, 0, 0))
        base = f"b{i}"
    sim = sh.Simulation(scene, 2e-3, solver="direct", sleep=False)
    q, v = sh.dynamics.from_state(sim, sim.state)
    return sim, sh.dynamics.moved(sim, q, 0.1 * rng.normal(size=v.shape)), 2 * rng.normal(size=v.shape)


@pytest.mark.parametrize(
    ("seed", "steps", "stops"), [(0, 150, 28), (1, 150, 39), (3, 150, 2), (4, 150, 6), (5, 60, 1), (6, 90, 2)]
)
def test_impacts_at_limits_and_where_friction_stops_an_axis_are_differentiated(seed, steps, stops):
    sim, q, v = bounded(seed)
    off, found = compare(sim, q, v, h=3e-7, steps=steps)
    assert found.switches.sum() == stops
    assert max(off[:2]) <= 7.5e-8
    assert max(off[2:]) <= 6e-7


SERVO = sh.Servo(kp=20.0, kd=1.0, max_force=100.0)
MOTOR = sh.DCMotor(resistance=1.0, torque_constant=0.3, gear_ratio=3.0, rotor_inertia=0.002)


def laws(drive, worlds=1):
    """Three bodies on a hinge, a slider and a hinge with a drive; springs, dampers and friction."""
    scene = sh.Scene()
    scene.add_body("a", mass=1.3, inertia=(0.1, 0.2, 0.15), com=(0.05, -0.1, 0.02), position=(0.3, 0, 0))
    scene.add_body("b", mass=0.7, inertia=(0.05, 0.06, 0.07), com=(0.02, 0.1, 0.02), position=(0.6, 0, 0))
    scene.add_body("c", mass=0.4, inertia=(0.03, 0.02, 0.04), com=(-0.02, 0.03, 0.05), position=(0.9, 0, 0))
    hinge = sh.Revolute((0.2, 1, 0.3), damping=0.3, spring=(5, 0.1), friction=0.2)
    scene.add_joint("ja", hinge, "world", "a", position=(0.1, 0, 0))
    friction = sh.Friction(0.5, 0.3, stribeck=0.3, viscous=0.1)
    slider = sh.Prismatic((1, 1, 0.3), damping=0.5, friction=friction, spring=(40, 0.05))
    scene.add_joint("jb", slider, "b", "a", position=(0.4, 0, 0))
    scene.add_joint("jc", sh.Revolute((0, 1, 0.1), drive=drive), "b", "c", position=(0.7, 0, 0))
    sim = sh.Simulation(scene, 2e-3, solver="direct", sleep=False, worlds=worlds)
    rng = np.random.default_rng(0)
    q, v = sh.dynamics.from_state(sim, sim.state)
    return sim, sh.dynamics.moved(sim, q, 0.3 * rng.normal(size=v.shape)), 2 * rng.normal(size=v.shape)


WORDS = [
    "body/a.mass", "body/b.mass", "body/c.mass", "joint/ja.damping", "joint/ja.friction", "joint/jb.friction.static",
    "joint/jb.friction.viscous", "joint/jb.friction.dynamic", "joint/ja.spring[0]", "joint/jb.spring[1]", "body/b.com_local[0]",
    "joint/jb.child_anchor[1]", "joint/jc.parent_anchor[0]",
]  # fmt: skip
OF_SERVO = [f"joint/jc.drive.{name}" for name in ("kp", "kd")]
OF_MOTOR = [f"joint/jc.drive.{name}" for name in ("resistance", "torque_constant", "gear_ratio", "rotor_inertia")]


@pytest.mark.parametrize(("drive", "words"), [(SERVO, WORDS + OF_SERVO), (MOTOR, WORDS + OF_MOTOR)])
def test_motions_are_differentiated_by_parameters(drive, words):
    from sharnir.study.words import parameters

    sim, q, v = laws(drive)
    put(sim, q, v)
    found = sh.rollout(sim, steps=60, parameters=words)
    assert not found.switches.any()
    rng = np.random.default_rng(1)
    by_q, by_v = rng.normal(size=found.q.shape), rng.normal(size=found.v.shape)
    made, along = found.gradient(by_q, by_v).parameters, found.jacobian()
    assert along.shape == (61, 6, len(words))
    own = np.array([made[word] for word in words])
    along = np.einsum("ka,kap->p", np.hstack([by_q, by_v]), along)
    assert np.abs(own - along).max() <= 3e-13 * np.abs(own).max()  # there and back
    for parameter in parameters(sim, words):
        now = parameter.get(sim)[0]

        def cost(by, parameter=parameter, now=now):
            parameter.put(sim, np.array([now + by]))
            qs, vs = steps_of(sim, q, v, np.zeros((60, 0)), [])
            return (by_q * qs).sum() + (by_v * vs).sum()

        step = 1e-3 * max(abs(now), 1e-2)
        slope = difference(cost, step)
        parameter.put(sim, np.array([now]))
        assert abs(made[parameter.word] - slope) <= 4.4e-8 * max(abs(slope), 1e-2)


def test_commands_of_drives_and_forces_on_bodies_are_differentiated():
    for drive, inputs in (
        (SERVO, ["jc.drive.position", "jc.drive.velocity", "b.force"]),
        (MOTOR, ["jc.drive.voltage", "c.torque"]),
    ):
        sim, q, v = laws(drive)
        off, _ = compare(sim, q, v, inputs=inputs)
        assert max(off) <= 1.8e-10


def test_worlds_are_differentiated_as_each_alone():
    words, rng = ["body/b.mass", "joint/ja.damping"], np.random.default_rng(2)
    sim, q, v = laws(SERVO, worlds=3)
    many = v * np.array([[0.5], [1.0], [1.5]])
    u = rng.normal(size=(3, 30, 2))
    put(sim, np.repeat(q[:1], 3, 0), many)
    sim.body("b").mass = np.array([0.5, 0.7, 0.9])
    inputs = ["ja.effort", "jc.drive.position"]
    found = sh.rollout(sim, u, inputs=inputs, parameters=words)
    assert found.q.shape == (3, 31, 3)
    by_q = rng.normal(size=found.q.shape)
    made = found.gradient(by_q)
    for w in range(3):
        one, _, _ = laws(SERVO)
        one.body("b").mass = 0.5 + 0.2 * w
        put(one, q[:1], many[w : w + 1])
        alone = sh.rollout(one, u[w], inputs=inputs, parameters=words)
        same = alone.gradient(by_q[w])
        assert np.abs(alone.q - found.q[w]).max() <= 1e-13
        for a, b in ((same.q, made.q[w]), (same.v, made.v[w]), (same.controls, made.controls[w])):
            assert np.abs(a - b).max() <= 1e-12 * np.abs(a).max()
        for word in words:
            assert abs(same.parameters[word] - made.parameters[word][w]) <= 1e-12 * abs(same.parameters[word])


def test_a_drive_that_steps_resolve_in_part_is_told_of():
    scene = sh.Scene()
    scene.add_body("a", mass=1.0, inertia=(0.02, 0.02, 0.005), position=(0.1, 0, -0.2))
    scene.add_joint("top", sh.Revolute("y", drive=sh.Servo(kp=10, kd=0.1)), scene.world, "a", position=(0, 0, 0))
    sim = sh.Simulation(scene, 0.05, solver="direct", sleep=False)
    with pytest.warns(sh.StepWarning, match="resolve the drive or damper of joint 'top' in part"):
        sh.rollout(sim, steps=5)


def test_the_state_stays_and_what_is_wrong_is_told():
    sim, q, v = laws(SERVO)
    put(sim, q, v)
    sim.step(5)
    before = sim.snapshot()
    found = sh.rollout(sim, steps=10)
    after = sim.snapshot()
    assert all(np.array_equal(after[name], before[name]) for name in before)
    sim.step(10)
    assert np.abs(sim.q - found.q[-1]).max() <= 1e-13
    assert repr(found) == "Rollout(10 steps, 0 inputs)"
    sim.body("a").mass = 2.0
    with pytest.raises(sh.SimulationError, match="was changed after this motion"):
        found.gradient(found.q)
    for how, words in (
        ({}, "steps is a whole number"),
        ({"controls": np.zeros((4, 7))}, r"controls are \(steps, .*\) finite numbers"),
        ({"steps": 3, "parameters": ["sim.gravity[2]"]}, "parameter 'sim.gravity.2.'; allowed: body/NAME.mass"),
        ({"steps": 3, "parameters": ["joint/ja.limit[0]"]}, "parameter 'joint/ja.limit.0.'; allowed"),
        ({"controls": np.zeros((4, 1)), "inputs": ["jx"]}, "rollout: input 'jx': no joint 'jx'"),
    ):
        with pytest.raises(sh.SimulationError, match=words):
            sh.rollout(sim, **how)
    with pytest.raises(sh.SimulationError, match="derivatives by q are finite numbers of shape"):
        sh.rollout(sim, steps=3).gradient(np.zeros(3))
