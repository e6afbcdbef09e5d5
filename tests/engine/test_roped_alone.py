"""Ropes in joint coordinates where no body moves but by what it is told; against the former passes."""

import numpy as np
import pytest

import sharnir as sh
from sharnir.engine.direct.trees import Trees

ROPE = {"segments": 8, "radius": 0.01, "mass_per_length": 0.3, "collide": False}
POINTS = [(0, 0, 0), (1, 0.2, -0.6), (2, 0, 0)]
BENDS = {"EI": 0.1, "GJ": 0.1}


def alone(ends=("world", "world"), command=None, **more):
    """A rope over the ground, which it does not touch; `command` is told to the simulation before the first step."""
    scene = sh.Scene()
    scene.add_ground(height=-5.0)
    scene.add_rope("rope", points=POINTS, attach=ends, **ROPE, **more)
    return scene, command


HELD = {"motion": "kinematic", "collide": False}


def lifted():
    """A rope from a body that moves as it is told to one that stays."""
    scene, _ = alone()
    scene.add_body("lift", sh.Box(0.2, 0.2, 0.2), position=(0, 1, 0), velocity=(0.3, 0, 0.2), **HELD)
    scene.add_body("post", sh.Box(0.2, 0.2, 2), position=(2, 1, 0), motion="fixed", collide=False)
    scene.add_rope("second", (0, 1, 0), (2, 1, 0), attach=("lift", "post"), length=2.6, **ROPE, **BENDS)
    return scene, None


def parted(tied):
    """A rope tied in its middle to a body that moves as it is told, or the halves of it that end there."""
    scene, (a, b, c) = sh.Scene(), POINTS
    scene.add_ground(height=-5.0)
    scene.add_body("guide", sh.Box(0.2, 0.2, 0.2), position=b, velocity=(0.1, -0.3, 0.2), **HELD)
    if tied:
        scene.add_rope("rope", points=POINTS, attach=("world", None), **ROPE)
        scene.tie_rope("rope", 4, "guide")
        return scene, None
    half = ROPE | {"segments": 4}
    scene.add_rope("rope", a, b, attach=("world", "guide"), **half)
    scene.add_rope("rest", b, c, attach=("guide", None), **half)
    return scene, None


def on_a_rope():
    scene, _ = alone()
    scene.add_rope("tail", POINTS[1], (1, 0.4, -1.4), attach=("rope", None), **ROPE, **BENDS)
    return scene, None


def tied_to_a_post():
    """A rope that sags between two points, by whose middle it is held from now on; the halves swing aside."""
    scene = sh.Scene(gravity=(0, 6.0, -9.81))
    scene.add_ground(height=-5.0)
    scene.add_body("post", sh.Box(0.2, 0.2, 2), position=(1, 0, -2), motion="fixed", collide=False)
    scene.add_rope("rope", (0, 0, 0), (2, 0, 0), attach=("world", "world"), length=2.6, **ROPE)
    scene.tie_rope("rope", 4, "post")
    return scene, None


def reel(sim):
    sim.rope("rope").reel_speed = 0.4


SCENES = {
    "two ends": alone, "hangs": lambda: alone(("world", None)), "falls": lambda: alone((None, None)),
    "bending": lambda: alone(**BENDS), "clamped": lambda: alone(clamp=(True, True), **BENDS),
    "clamped at one end": lambda: alone(("world", None), clamp=(True, False), **BENDS),
    "drag": lambda: alone(drag=0.5), "lifted": lifted, "on a rope": on_a_rope,
    "reel": lambda: alone(("world", None), reel, reel="start", longest=4.0),
}  # fmt: skip
PARTED = {"tied": lambda: parted(True), "halves": lambda: parted(False)}
TIED = {"tied to the world": tied_to_a_post}  # which former passes hold by a heavy mass, 6e-9 m off


def make(name, former, monkeypatch, dt=5e-3, **how):
    with monkeypatch.context() as patch:
        if former:
            patch.setattr(Trees, "cover", staticmethod(lambda model: False))
        scene, command = (SCENES | PARTED | TIED)[name]()
        sim = sh.Simulation(scene, dt, solver="direct", **how)
        if command is not None:
            command(sim)
        sim.step()
    assert (sim.solver._trees is None) == former
    return sim


def told(sim):
    """Points of all ropes, and their tensions."""
    ropes = [sim.rope(name) for name in sim.model.ropes.names]
    return np.concatenate([x for r in ropes for x in (r.position.ravel(), r.tension / (1.0 + abs(r.tension).max()))])


@pytest.mark.parametrize("name", SCENES)
def test_it_is_the_step_of_the_former_passes(name, monkeypatch):
    off = stretch = 0.0
    one, two = (make(name, former, monkeypatch) for former in (True, False))
    for _ in range(40):
        for sim in (one, two):
            assert sim.step().converged and sim.solver.parts.numpy().max() == 1
        off = max(off, np.abs(told(one) - told(two)).max())
        stretch = max(stretch, *(two.rope(rope).stretch for rope in two.model.ropes.names))
    print(f"{name}: {off:.1e} off (1e-9), stretch {stretch:.1e} (1e-12)")
    assert off < 1e-9 and stretch < 1e-12


def test_a_tie_to_what_is_driven_parts_a_rope(monkeypatch):
    tied, halves = (make(name, False, monkeypatch) for name in PARTED)
    off = 0.0
    for _ in range(40):
        for sim in (tied, halves):
            assert sim.step().converged and sim.solver.parts.numpy().max() == 1
        points = [sim.rope(name).position for sim, name in ((tied, "rope"), (halves, "rope"), (halves, "rest"))]
        off = max(off, np.abs(points[0] - np.concatenate([points[1], points[2][1:]])).max())
    stretch = tied.rope("rope").stretch
    print(f"{off:.1e} m off (1e-9), stretch {stretch:.1e} (1e-12)")
    assert off < 1e-9 and stretch < 1e-12


@pytest.mark.parametrize("name", ["two ends", "hangs", "bending", "clamped", "on a rope", "tied to the world"])
def test_energy_is_kept(name, monkeypatch):
    sim = make(name, False, monkeypatch)
    energy, worst = sim.energy().total, 0.0
    for _ in range(200):
        assert sim.step().converged
        worst = max(worst, abs(sim.energy().total - energy))
    print(f"{name}: {worst:.1e} J (1e-10)")
    assert worst < 1e-10


def test_worlds_and_snapshots_repeat_it(monkeypatch):
    sim = make("on a rope", False, monkeypatch, worlds=2)
    sim.step(10)
    kept, places = sim.snapshot(), []
    for _ in range(2):
        sim.step(10)
        places.append(sim.rope("tail").position.copy())
        sim.restore(kept)
    assert (places[0] == places[1]).all() and (places[0][0] == places[0][1]).all()
