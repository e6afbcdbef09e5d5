"""Robots read from URDF against Pinocchio's articulated-body algorithm."""

import logging
import pathlib
import sys

import numpy as np
import pytest

import sharnir as sh
from sharnir import dynamics as dyn

pin = pytest.importorskip("pinocchio")
FOLDERS = [pathlib.Path(p) / "cmeel.prefix/share/example-robot-data/robots" for p in sys.path]
ROBOTS = next((f for f in FOLDERS if f.is_dir()), None)
if ROBOTS is None:
    pytest.skip("example-robot-data is not installed", allow_module_level=True)

# files that are refused (empty, massless moving links, a mimic of a joint that is not there), and files in which a link has an
# inertia that no body can have, or moving links without mass: those are repaired or left out here, and differ there
REFUSED = {"alex_psyonic_hands.urdf", "human.urdf", "ur3.urdf"}
REPAIRED = {"bolt.urdf", "icub.urdf", "icub_reduced.urdf", "romeo.urdf", "romeo_laas_small.urdf", "romeo_small.urdf"}


def test_ur5_row():
    model = sh.load_urdf(ROBOTS / "ur_description/urdf/ur5_robot.urdf", meshes=False).build()
    q, v = (0.3, -0.25, 0.4, -0.15, 0.5, -0.05), (0.1, -0.2, 0.3, -0.4, 0.5, -0.6)
    a = dyn.forward_dynamics(model, q, v, (6, -5, 4, -3, 2, -1))
    exact = (2.1750976098, 8.7425731157, 19.8129770158, -37.9216444957, 10.0491240839, -50.2708064630)
    print(f"UR5: accelerations within {np.abs(a - exact).max():.1e} rad/s²")
    assert np.allclose(a, exact, atol=1e-8)


def accelerations(file):
    """(ours, Pinocchio's) at a random state, by Pinocchio's order."""
    scene = sh.load_urdf(file, meshes=False)
    scene.gears.clear()  # Pinocchio leaves mimics out
    model = scene.build()
    t = dyn.links(model)
    robot = pin.buildModelFromUrdf(str(file))
    assert robot.nv == t.nv
    rng = np.random.default_rng(0)
    theirs = {"q": pin.neutral(robot), "v": np.zeros(robot.nv), "tau": np.zeros(robot.nv)}
    ours = {"q": np.zeros(t.nq), "v": np.zeros(t.nv), "tau": np.zeros(t.nv)}
    place = np.zeros(t.nv, int)
    for name, k in model.joint_names.items():
        if t.v_size[k] != 1:
            continue
        joint = robot.joints[robot.getJointId(name if robot.existJointName(name) else name.removesuffix("_joint"))]
        x, y, z = rng.uniform(-0.8, 0.8, 3)
        theirs["q"][joint.idx_q : joint.idx_q + joint.nq] = [np.cos(x), np.sin(x)] if joint.nq == 2 else [x]
        theirs["v"][joint.idx_v], theirs["tau"][joint.idx_v] = y, z
        ours["q"][t.q_start[k]], ours["v"][t.v_start[k]], ours["tau"][t.v_start[k]] = x, y, z
        place[joint.idx_v] = t.v_start[k]
    return dyn.forward_dynamics(t, **ours)[place], pin.aba(robot, robot.createData(), *theirs.values())


def test_every_robot_accelerates_as_pinocchio_says(caplog):
    caplog.set_level(logging.CRITICAL, "sharnir")
    agree, worst = 0, 0.0
    for file in sorted(ROBOTS.glob("**/*.urdf")):
        if file.name in REFUSED | REPAIRED:
            continue
        ours, theirs = accelerations(file)
        error = float(np.abs(ours - theirs).max(initial=0.0) / (1 + np.abs(theirs).max(initial=0.0)))
        assert error < 1e-9, f"{file.name}: {error:.1e}"
        agree, worst = agree + 1, max(worst, error)
    print(f"{agree} robots: accelerations within {worst:.1e} of Pinocchio's")
    assert agree >= 60
