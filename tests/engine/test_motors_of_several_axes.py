"""DC motors on balls, and on axes that share friction and are therefore solved together."""

import numpy as np
import pytest
from test_tree_rows import body, simulate

import sharnir as sh
from sharnir.engine.tree.forest import HINGE, LAWS, SLIDER, SLIDES, TURNS, Forest, Link
from sharnir.engine.tree.number_tree import NumberTree
from sharnir.engine.tree.step import step

MOTOR = {
    "resistance": 0.5, "inductance": 2e-3, "torque_constant": 0.05, "gear_ratio": 10.0, "efficiency": 0.9, "rotor_inertia": 1e-5,
    "voltage": 6.0,
}  # fmt: skip
OTHER = MOTOR | {"voltage": -3.0, "rotor_inertia": 0.0}
INERTIA, COM = np.diag([0.03, 0.04, 0.05]), np.array([0.1, 0.2, 0.3])
ALONG_X, ALONG_Y = np.array([[0.0, 0, 1], [1, 0, 0], [0, 1, 0]]), np.array([[0.0, 1, 0], [0, 0, 1], [1, 0, 0]])


def run(links):
    tree = NumberTree(Forest(links), 1e-3, own_axes=False, tolerance=1e-16)
    for _ in range(50):
        step(tree)
    return tree.fields


def alone(base, kind, frame, laws, **inertia):
    return Link(base, kind, frame=frame, laws=laws, **inertia)


@pytest.mark.parametrize("kind", [TURNS, SLIDES])
def test_motors_of_axes_in_one_link_are_those_of_two_links(kind):
    both_laws = {name: np.array([MOTOR[name], OTHER[name], LAWS[name]]) for name in MOTOR}
    whole = {"inertia": INERTIA, "com": COM, "mass": 1.0}
    first = np.eye(3) if kind == TURNS else ALONG_X  # about z, then x; along x, then y
    second = first.T @ (ALONG_X if kind == TURNS else ALONG_Y)
    turn = first @ second
    one = HINGE if kind == TURNS else SLIDER
    own = {"inertia": turn.T @ INERTIA @ turn, "com": turn.T @ COM, "mass": 1.0}
    chain = run([alone(-1, one, first, MOTOR), alone(0, one, second, OTHER, **own)])
    (joint,) = run([Link(-1, kind, laws=both_laws | {"slides": 2.0}, **whole)])
    for name, many in (("q", "position"), ("current", "current_3"), ("rotor", "rotor_3")):
        np.testing.assert_allclose(joint[many][:2], [f[name][0] for f in chain], rtol=1e-12, err_msg=name)
    assert abs(joint["current_3"][0]) > 1.0


DRIVE = sh.DCMotor(resistance=0.5, inductance=2e-3, torque_constant=0.05, gear_ratio=10.0, rotor_inertia=1e-5)
JOINTS = {
    "a ball": lambda: sh.Spherical(drive=DRIVE),
    "a ball that rubs": lambda: sh.Spherical(friction=0.3, drive=DRIVE),
    "a universal joint that rubs": lambda: sh.Universal(friction=0.3, drive=DRIVE),
    "a plane that rubs": lambda: sh.Planar("z", friction=0.5, drive=DRIVE),
}


@pytest.mark.parametrize("name", JOINTS)
def test_motors_do_what_they_did(name, stored):
    def make():
        scene = sh.Scene(gravity=(1.0, 2.0, -9.0))
        body(scene, "a", (0.3, 0.1, 0))
        body(scene, "b", (0.6, 0.2, 0.1))
        scene.add_joint("j", JOINTS[name](), "world", "a", position=(0, 0, 0))
        scene.add_joint("k", sh.Revolute("y"), "a", "b", position=(0.45, 0.1, 0))
        return scene

    sim = simulate(make())
    n = sim.joint("j").kind.v_size
    sim.joint("j").drive.voltage = np.array([6.0, -3.0, 4.0])[:n]
    sim.step(30)
    stored.meets(sim.state.position.numpy(), 1e-9, "positions")
    current = sim.state.current.numpy()
    np.testing.assert_allclose(current, stored.next(current), rtol=1e-6, atol=1e-7)
    assert np.abs(current[:n]).min() > 0.1
    kept = sim.snapshot()
    sim.step(3)
    after = sim.state.position.numpy()
    sim.restore(kept)
    sim.step(3)
    np.testing.assert_array_equal(sim.state.position.numpy(), after)
