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

LIFT = 1e-12  # of links without mass or inertia, which Pinocchio takes as they are
EMPTY = {"ur3.urdf"}  # no links; refused there too
NO_MASS_BELOW = {"romeo.urdf": 24, "romeo_laas_small.urdf": 2}  # joints that turn nothing: NaN there; locked to compare
NEGATIVE = {"romeo_laas_small.urdf"}  # negative principal moments, lifted here, and taken as they are there
LOOSE_MIMIC = {"alex_psyonic_hands.urdf"}  # mimics of joints that the file does not have; left out here, refused there
LATE_MIMIC = {"romeo.urdf", "talos_full_v2.urdf", "talos_full_v2_box.urdf"}  # refused there: followers first


@pytest.fixture(autouse=True)
def quiet(caplog):
    caplog.set_level(logging.CRITICAL, "sharnir")


def test_ur5_row():
    model = sh.load_urdf(ROBOTS / "ur_description/urdf/ur5_robot.urdf", meshes=False).build()
    q, v = (0.3, -0.25, 0.4, -0.15, 0.5, -0.05), (0.1, -0.2, 0.3, -0.4, 0.5, -0.6)
    a = dyn.forward_dynamics(model, q, v, (6, -5, 4, -3, 2, -1))
    exact = (2.1750976098, 8.7425731157, 19.8129770158, -37.9216444957, 10.0491240839, -50.2708064630)
    print(f"UR5: accelerations within {np.abs(a - exact).max():.1e} rad/s²")
    assert np.allclose(a, exact, atol=1e-8)


class Pair:
    """A robot here and there, and a random state of its own joints: those that follow no other."""

    def __init__(self, file, mimic=False):
        self.scene = sh.load_urdf(file, meshes=False, lift=LIFT)
        if not mimic:
            self.scene.gears.clear()
        self.model = self.scene.build()
        self.ours = t = dyn.links(self.model)
        self.theirs = pin.buildModelFromUrdf(str(file), mimic=True) if mimic else pin.buildModelFromUrdf(str(file))
        names = self.model.joint_names
        self.locked = [self.theirs.getJointId(n) for n in list(self.theirs.names)[1:] if n not in names]
        if self.locked:
            self.free, self.theirs = self.theirs, pin.buildReducedModel(self.theirs, self.locked, pin.neutral(self.theirs))
        rng = np.random.default_rng(0)
        self.q, self.v, self.tau = pin.neutral(self.theirs), np.zeros(self.theirs.nv), np.zeros(self.theirs.nv)
        self.Q, self.V, self.T = dyn.neutral(t), np.zeros(t.nv), np.zeros(t.nv)
        self.place = np.zeros(self.theirs.nv, int)
        start = self.Q.copy()
        for name, k in names.items():
            joint = self.theirs.joints[self.theirs.getJointId(name)]
            if joint.nv == 0:  # follows another
                continue
            assert joint.nv == t.v_size[k] == 1, f"{file.name}: {name}"
            x, y, z = rng.uniform(-0.8, 0.8, 3)
            self.q[joint.idx_q : joint.idx_q + joint.nq] = [np.cos(x), np.sin(x)] if joint.nq == 2 else [x]
            self.v[joint.idx_v], self.tau[joint.idx_v] = y, z
            self.Q[t.q_start[k]], self.V[t.v_start[k]], self.T[t.v_start[k]] = x, y, z
            self.place[joint.idx_v] = t.v_start[k]
        for gear in self.scene.gears.values():
            a, b = (self.model.joint_names[name] for name in (gear.joint_a, gear.joint_b))
            turned = self.Q[t.q_start[b]] - start[t.q_start[b]]
            self.Q[t.q_start[a]] = start[t.q_start[a]] + gear.ratio * turned
            self.V[t.v_start[a]] = gear.ratio * self.V[t.v_start[b]]

    def error(self, theirs):
        ours = dyn.forward_dynamics(self.ours, self.Q, self.V, self.T)[self.place]
        assert np.isfinite(theirs).all()
        return float(np.abs(ours - theirs).max(initial=0.0) / (1 + np.abs(theirs).max(initial=0.0)))


def test_every_robot_accelerates_as_pinocchio_says():
    agree, worst = 0, 0.0
    for file in sorted(ROBOTS.glob("**/*.urdf")):
        if file.name in EMPTY:
            with pytest.raises(ValueError, match="valid URDF"):
                pin.buildModelFromUrdf(str(file))
            continue
        pair = Pair(file)
        assert len(pair.locked) == NO_MASS_BELOW.get(file.name, 0), file.name
        assert pair.theirs.nv == pair.ours.nv
        if pair.locked:
            neutral, still = pin.neutral(pair.free), np.zeros(pair.free.nv)
            assert not np.isfinite(pin.aba(pair.free, pair.free.createData(), neutral, still, still)).all(), file.name
        error = pair.error(pin.aba(pair.theirs, pair.theirs.createData(), pair.q, pair.v, pair.tau))
        if file.name in NEGATIVE:
            assert 1e-4 < error < 1e-2 and any("(-0.00" in note for note in pair.scene.notes), file.name
            continue
        assert error < 3e-11, f"{file.name}: {error:.1e}"
        agree, worst = agree + 1, max(worst, error)
    print(f"{agree} robots, lift {LIFT:g}: accelerations within {worst:.1e} of Pinocchio's")
    assert agree >= 67


def test_mimics_accelerate_as_pinocchio_says():
    """Pinocchio has no recursion for joints that follow others: M a + bias = tau of the independent coordinates is solved."""
    agree, worst = 0, 0.0
    for file in sorted(ROBOTS.glob("**/*.urdf")):
        if "<mimic" not in file.read_text():
            continue
        if file.name in LOOSE_MIMIC | LATE_MIMIC:
            with pytest.raises(ValueError, match="parent joint of the mimic joint"):
                pin.buildModelFromUrdf(str(file), mimic=True)
            continue
        pair = Pair(file, mimic=True)
        if not pair.scene.gears:  # its followers do not move
            continue
        robot = pair.theirs
        M = np.triu(pin.crba(robot, robot.createData(), pair.q))
        bias = pin.rnea(robot, robot.createData(), pair.q, pair.v, np.zeros(robot.nv))
        error = pair.error(np.linalg.solve(M + np.triu(M, 1).T, pair.tau - bias))
        assert error < 1.5e-14, f"{file.name}: {error:.1e}"
        agree, worst = agree + 1, max(worst, error)
    print(f"{agree} robots with joints that follow others: accelerations within {worst:.1e} of Pinocchio's")
    assert agree >= 5


# icub starts outside its limits: the direct solver takes the joint back, the sequential one moves the bodies on both sides
@pytest.mark.parametrize(("name", "bound"), [("human.urdf", 1e-4), ("icub.urdf", 3e-2), ("romeo_laas_small.urdf", 1e-5)])
def test_a_repaired_robot_moves_alike_in_both_solvers(name, bound):
    """Links without mass or inertia: what they are lifted to by default is enough for impulses, and changes little."""
    runs = []
    for solver, lift, dt, more in (
        ("sequential", 1e-3, 5e-4, {"tolerances": sh.Tolerances(iterations=400)}), ("direct", 1e-3, 5e-4, {}),
        ("direct", 1e-3, 1e-4, {}), ("direct", 1e-9, 1e-4, {}),
    ):  # fmt: skip
        sim = sh.Simulation(sh.load_urdf(next(ROBOTS.rglob(name)), meshes=False, lift=lift), dt, solver=solver, **more)
        sim.run(0.1)
        runs.append(np.array([sim.body(b).com for b in sim.model.body_names]))
    errors = np.abs(runs[0] - runs[1]).max(), np.abs(runs[3] - runs[2]).max()
    print(f"{name}: solvers within {errors[0]:.1e} m after 0.1 s, lifts within {errors[1]:.1e} m")
    assert errors[0] < bound and errors[1] < 2e-3
