"""Published and exact numbers: the error falls as it should when dt halves, and is small at dt = 0.1 ms."""

from itertools import pairwise

import numpy as np
import pytest

import sharnir as sh
from sharnir.core.spatial import quat_conjugate, quat_rotate

G = 9.80665
SOLVERS = pytest.mark.parametrize("solver", ["direct", "sequential"])  # "auto" is direct in all of these
LIMIT = {  # m, at 0.1 ms
    "pendulum": {"direct": 3.5e-8, "sequential": 4.4e-8},
    "revolute": {"direct": 1.1e-7, "sequential": 1.1e-7},
    "four-bar": {"direct": 9.5e-8, "sequential": 2.4e-6},
    "top": {"direct": 1.3e-6, "sequential": 1.8e-6},
}
JOINT_AT = np.array([1.0, 2.0, 3.0])


def table(name, run, limit, steps=(4e-4, 2e-4, 1e-4), digits=1e-9, part=0.26):
    """Print the error at each step, check that half the step has a part of it, down to the reference's digits, and its limit."""
    errors = [run(dt) for dt in steps]
    for dt, error in zip(steps, errors, strict=True):
        print(f"{name:28s} dt = {dt * 1e3:5.2f} ms   error {error:.3e} m")
    for coarse, fine in pairwise(errors):
        assert fine <= part * coarse or fine < digits
    assert errors[-1] < limit


@SOLVERS
def test_pendulum(solver):
    def run(dt):
        scene = sh.Scene()
        bob = scene.add_body("bob", mass=1.0, position=(-1, 0, 0))
        scene.add_joint("rod", sh.Distance(), scene.world, bob, position=[(0, 0, 0), (-1, 0, 0)])
        sim = sh.Simulation(scene, dt, solver=solver)
        sim.run(1.0)
        return np.linalg.norm(sim.body("bob").position - [0.986291751132, 0, -0.165010853126])

    table(f"pendulum on a rod, {solver}", run, LIMIT["pendulum"][solver])


def suite_body(joint, position, com, dt, solver, turn=(0, 0, 0, 1)):
    """The body of the revolute-joint suite: 1 kg, long axis x, centre of mass 2 m from the joint."""
    scene = sh.Scene(gravity=(0, 0, -G))
    body = scene.add_body("pendulum", mass=1.0, inertia=(0.04, 0.1, 0.1), position=com)
    scene.add_joint("joint", joint, scene.world, body, position=position, rotation=turn)
    return sh.Simulation(scene, dt, solver=solver)


@SOLVERS
@pytest.mark.parametrize(
    ("joint", "position", "com", "end"),
    [
        (sh.Revolute("y"), (0, 0, 0), (2, 0, 0), (-0.89238148553, 0, -1.78987577342)),
        (sh.Revolute((0, 1, 1)), JOINT_AT, (3, 2, 3), (1.0421038, 3.4139002, 1.5860998)),
        (sh.Cylindrical((0, 1, 1)), JOINT_AT, (3, 2, 3), (1.0421038, 3.4139002 - G / 4, 1.5860998 - G / 4)),
        (sh.Prismatic((0, 1, 1)), JOINT_AT, (3, 2, 3), (3, 2 - G / 4, 3 - G / 4)),
    ],
    ids=["revolute 01", "revolute 02", "cylindrical", "prismatic"],
)
def test_revolute_suite(joint, position, com, end, solver, request):
    def run(dt):
        sim = suite_body(joint, position, com, dt, solver)
        sim.run(1.0)
        return np.linalg.norm(sim.body("pendulum").com - end)

    table(request.node.callspec.id, run, LIMIT["revolute"][solver], digits=2e-7)


def four_bar(n, dt, solver="sequential"):
    """n parallelograms in a row: n + 1 links up, n couplers, every B_i at vx = 1; gravity −y."""
    scene = sh.Scene(gravity=(0, -9.81, 0))
    inertia = (1e-3, 1 / 12, 1 / 12)
    up = np.array([0, 0, np.sqrt(0.5), np.sqrt(0.5)])
    for i in range(n + 1):
        scene.add_body(
            f"link{i}",
            mass=1.0,
            inertia=inertia,
            position=(i, 0.5, 0),
            rotation=up,
            velocity=(0.5, 0, 0),
            angular_velocity=(0, 0, -1),
        )
        scene.add_joint(f"A{i}", sh.Revolute("z"), scene.world, f"link{i}", position=(i, 0, 0))
    for i in range(n):
        scene.add_body(f"coupler{i}", mass=1.0, inertia=inertia, position=(i + 0.5, 1, 0), velocity=(1, 0, 0))
        scene.add_joint(f"B{i}", sh.Revolute("z"), f"link{i}", f"coupler{i}", position=(i, 1, 0))
        scene.add_joint(f"C{i}", sh.Revolute("z"), f"coupler{i}", f"link{i + 1}", position=(i + 1, 1, 0))
    return sh.Simulation(scene, dt, solver=solver)


@SOLVERS
def test_n_four_bar_passes_its_singular_pose(solver):
    def run(dt):
        sim = four_bar(2, dt, solver)
        sim.run(1.0)
        link = sim.body("link0")
        tip = link.position + quat_rotate(link.rotation, np.array([0.5, 0, 0]))
        return np.linalg.norm(tip - [-0.195020301950, -0.980799205662, 0])

    table(f"N-four-bar, N = 2, t = 1 s, {solver}", run, LIMIT["four-bar"][solver], part=0.52)


def test_n_four_bar_redundant_rows_are_named():
    sim = four_bar(2, 1e-3)
    print("redundant:", sim.redundant)
    # 7 hinges of 5 rows on 5 bodies of 6 unknowns, and one free motion
    rows, unknowns, free = 7 * 5, 5 * 6, 1
    assert len(sim.redundant) == rows - (unknowns - free)
    assert all(r.split(".")[1] in ("z", "rx", "ry", "x", "y") for r in sim.redundant)


@SOLVERS
def test_heavy_top(solver):
    """15 kg, spinning at 150 rad/s about its own axis y, supported 1 m from the centre of mass."""

    def run(dt):
        scene = sh.Scene(gravity=(0, 0, -9.81))
        top = scene.add_body(
            "top", mass=15.0, inertia=(0.234375, 0.46875, 0.234375), position=(0, 1, 0),
            angular_velocity=(0, 150, -4.61538), velocity=np.cross((0, 150, -4.61538), (0, 1, 0)),
        )  # fmt: skip
        scene.add_joint("tip", sh.Spherical(), scene.world, top, position=(0, 0, 0))
        sim = sh.Simulation(scene, dt, solver=solver)
        sim.run(0.2)
        return np.linalg.norm(sim.body("top").com - [0.605550561375, 0.598957681796, -0.523983027431])

    table(f"heavy top, t = 0.2 s, {solver}", run, LIMIT["top"][solver])


def tumbling(dt, t, solver="sequential"):
    scene = sh.Scene(gravity=(0, 0, 0))
    scene.add_body("body", mass=1.0, inertia=(1, 2, 3), angular_velocity=(0.01, 1, 0.01))
    sim = sh.Simulation(scene, dt, solver=solver)
    sim.run(t)
    return sim


@SOLVERS
def test_tumbling_body_is_second_order(solver):
    def run(dt):
        body = tumbling(dt, 10.0, solver).body("body")
        omega = quat_rotate(quat_conjugate(body.rotation), body.angular_velocity)
        return np.abs(omega - [-0.874573437891, 0.484996187341, 0.505001220548]).max()

    steps = (0.04, 0.02, 0.01)
    errors = [run(dt) for dt in steps]
    for dt, error in zip(steps, errors, strict=True):
        print(f"tumbling body, t = 10 s       dt = {dt * 1e3:5.2f} ms   error {error:.3e} rad/s")
    assert 3.8 < errors[0] / errors[1] < 4.2 and 3.8 < errors[1] / errors[2] < 4.2
    assert errors[2] < {"direct": 1.35e-5, "sequential": 7e-5}[solver]
