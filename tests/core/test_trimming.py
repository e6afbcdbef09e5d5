"""Modules without what their scenes do not have: less source, and the same motion."""

import ast

import numpy as np
import pytest
import warp as wp

import sharnir as sh
from sharnir.collision import collide
from sharnir.collision.collider import Collider
from sharnir.core.trimming import Absent, trimmed
from sharnir.engine.sequential import bodies

SOURCE = """
def f(s, kind, n, rough):
    total = n
    flat = kind == BOX
    for k in range(s[0].joints.count):
        total = total + joint(s, k)
    if s[0].joints.count + s[0].gears.count > 0 and n > 0:
        total = 7
    if kind == SPHERE:
        return total
    if flat or s[0].special[n] & 3 != 0:
        return box(s)
    elif not is_wheel(kind):
        total = total + 1
    while kind >= MESH:
        rough = True
    s[0].special[n] = 0
    return total
"""


def test_what_is_known_decides_loops_and_branches():
    absent = Absent(zeros=("joints.count", "gears.count", "special"), kinds=("BOX", "MESH"), false=("is_wheel",))
    tree = ast.parse(SOURCE)
    out = ast.unparse(trimmed(tree, absent))
    for gone in ("joint(", "box(", "is_wheel", "total = 7", "range", "while"):
        assert gone not in out, out
    assert "total = total + 1" in out and "kind == SPHERE" in out and "s[0].special[n] = 0" in out
    assert ast.unparse(tree) == ast.unparse(ast.parse(SOURCE)), "the source itself is left as it is"


def test_what_is_not_known_stays():
    assert ast.unparse(trimmed(ast.parse(SOURCE), Absent())) == ast.unparse(ast.parse(SOURCE))


def heap(shapes):
    """Bodies that fall onto each other."""
    scene = sh.Scene()
    scene.add_ground()
    for i in range(6):
        at = (0.03 * i, 0.02 * (i % 3), 0.2 + 0.3 * i)
        scene.add_body(f"body {i}", shapes[i % len(shapes)], position=at, angular_velocity=(0.3, 0.2, 0.1 * i))
    return sh.Simulation(scene, 2e-3, solver="sequential")


@pytest.mark.parametrize("boxes", [False, True])
def test_free_bodies_move_as_with_the_kernels_of_mechanisms(boxes, monkeypatch):
    shapes = [sh.Sphere(0.1), sh.Capsule(0.08, 0.1), *([sh.Box(0.2, 0.15, 0.1)] if boxes else [])]
    sim = heap(shapes)
    assert sim.solver._kernels is bodies.BODY_KERNELS
    assert sim.solver.collider.kernel is (collide.collide_all if boxes else collide.collide_round)
    monkeypatch.setattr(bodies, "are_free", lambda model: False)
    monkeypatch.setattr("sharnir.collision.collider.collide_kernel", lambda kinds: collide.collide_all)
    whole = heap(shapes)
    assert whole.solver._kernels is bodies.ALL_KERNELS
    for _ in range(3):  # through the first impacts: later the tolerance of sweeps, 1e-10, grows from one impact to the next
        sim.step(60)
        whole.step(60)
        off = np.abs(sim.body_position - whole.body_position).max()
        assert off < 1e-9, f"{off:.2g} m apart at {sim.time:.2f} s"
    assert len(sim.contacts()) > 3


def test_a_scene_without_joints_loads_no_kernels_of_joints():
    names = {"sharnir.bodies": bodies.BODY_KERNELS.module, "sharnir.collision_round": collide.collide_round.module}
    for name, module in names.items():
        assert module.name == name and module is wp.get_module(name)
    scene = sh.Scene()
    scene.add_ground()
    scene.add_body("ball", sh.Sphere(0.1), position=(0, 0, 0.3))
    scene.add_body("post", sh.Sphere(0.1), position=(1, 0, 0.3))
    assert bodies.are_free(scene.build()) and isinstance(Collider(scene.build(), 1e-3).kernel, wp.Kernel)
    scene.add_joint("hinge", sh.Revolute("y"), "ball", "post", position=(0.5, 0, 0.3))
    assert not bodies.are_free(scene.build())
