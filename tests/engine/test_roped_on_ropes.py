"""Ropes in joint coordinates that hang on other ropes and are held, tied or clamped beside; against the former passes."""

import numpy as np
import pytest

import sharnir as sh
from sharnir.engine.direct.trees import Trees

ROPE = {"segments": 8, "radius": 0.01, "mass_per_length": 0.3, "collide": False}
BENDS = {"EI": 0.1, "GJ": 0.1}


def pendulum(scene, name, place, mass=8.0):
    """A bar that hangs on the world by its upper end, 1 m above the place of its lower one."""
    x, y, z = place
    scene.add_body(name, sh.Box(0.1, 0.1, 1), mass=mass, position=(x, y, z + 0.5), collide=False)
    scene.add_joint(f"hold {name}", sh.Spherical(), "world", name, position=(x, y, z + 1))


def bridge(ends=("a", "b"), **more):
    """A rope between two pendulums, or what else holds its ends."""
    scene = sh.Scene()
    pendulum(scene, "a", (0, 0, 0))
    pendulum(scene, "b", (2, 0, 0))
    points = [(0, 0, 0), (1, 0, -0.6), (2, 0, 0)]
    scene.add_rope("rope", points=points, attach=ends, **ROPE, **more)
    return scene


def aside(ends=("a", "b"), more=None, **tail):
    """A rope from the middle of the bridge to a third pendulum."""
    scene = bridge(ends, **(more or {}))
    pendulum(scene, "c", (1, 1, -0.3), 3.0)
    how = {**ROPE, "segments": 5, **tail}
    scene.add_rope("tail", points=[(1, 0, -0.6), (1, 0.3, -0.8), (1, 1, -0.3)], attach=("rope", "c"), **how)
    return scene


def laden(ends=("a", "b"), last=None, ground=False, **tail):
    """A rope that hangs on the bridge, and a weight tied to it, beside one tied to the bridge."""
    scene = bridge(ends)
    for name, place in (("weight", (1, 0, -1.1)), ("other", (0.5, 0, -0.4))):
        scene.add_body(name, sh.Box(0.1, 0.1, 0.1), mass=2.0, position=place, collide=ground)
    if ground:
        scene.add_ground(height=-1.3)
    how = {**ROPE, "segments": 6, **tail}
    scene.add_rope("tail", (1, 0, -0.6), (1, 0.3, -1.8), attach=("rope", last), **how)
    scene.tie_rope("tail", 2, "weight")
    scene.tie_rope("rope", 2, "other")
    return scene


def web():
    """Two ropes on the bridge that two pendulums hold, and a fourth on the first of these, tied to a weight and to a post."""
    scene = aside()
    pendulum(scene, "d", (0.5, -1, 0.0), 3.0)
    how = {**ROPE, "segments": 5}
    scene.add_rope("wing", points=[(0.5, 0, -0.3), (0.5, -0.6, -0.9), (0.5, -1, 0)], attach=("rope", "d"), **how)
    scene.add_body("weight", sh.Box(0.1, 0.1, 0.1), mass=2.0, position=(1, 0.5, -1.3), collide=False)
    start = scene.ropes["tail"].points[2]
    scene.add_rope("twig", start, (1, 0.6, -1.8), attach=("tail", None), **how)
    scene.tie_rope("twig", 2, "weight")
    return scene


SCENES = {
    "held": aside, "held, bending": lambda: aside(more=BENDS, **BENDS), "clamped": lambda: aside(clamp=(False, True), **BENDS),
    "held, one end": lambda: aside(("a", None)), "held, world": lambda: aside(("world", "world")),
    "held, free": lambda: aside((None, None)), "tied": laden, "tied, bending": lambda: laden(**BENDS),
    "tied and held": lambda: laden(last="world"), "tied, one end": lambda: laden(("world", None)), "web": web,
    "drag": lambda: aside(drag=0.5),
}  # fmt: skip


def make(name, former, monkeypatch, dt=5e-3, **how):
    with monkeypatch.context() as patch:
        if former:
            patch.setattr(Trees, "cover", staticmethod(lambda model: False))
        sim = sh.Simulation(SCENES[name](), dt, solver="direct", **how)
        sim.step()
    assert (sim.solver._trees is None) == former
    return sim


def told(sim):
    """Positions of bodies, points of all ropes, and their tensions."""
    ropes = [sim.rope(name) for name in sim.model.ropes.names]
    parts = [x for r in ropes for x in (r.position.ravel(), r.tension / (1.0 + abs(r.tension).max()))]
    return np.concatenate([sim.state.position.numpy().ravel(), *parts])


@pytest.mark.parametrize("name", SCENES)
def test_it_is_the_step_of_the_former_passes(name, monkeypatch):
    off = stretch = passes = 0.0
    one, two = (make(name, former, monkeypatch, 2.5e-3) for former in (True, False))
    for _ in range(40):
        for sim in (one, two):
            assert sim.step().converged and sim.solver.parts.numpy().max() == 1
        passes += np.max(two.solver.report.iterations) / 40
        off = max(off, np.abs(told(one) - told(two)).max())
        stretch = max(stretch, *(two.rope(rope).stretch for rope in two.model.ropes.names))
    print(f"{name}: {off:.1e} off (1e-9), stretch {stretch:.1e} (1e-12), {passes:.1f} passes")
    assert off < 1e-9 and stretch < 1e-12


def test_weights_are_set_down(monkeypatch):
    """Contact, and rows of ropes that hang together, in one step: a weight falls to the ground, which the bridge keeps aslant."""
    monkeypatch.setitem(SCENES, "ground", lambda: laden(ground=True))
    sim, stretch = make("ground", False, monkeypatch), 0.0
    energy = top = sim.energy().total
    for _ in range(300):
        assert sim.step().converged
        top = max(top, sim.energy().total)
        stretch = max(stretch, sim.rope("rope").stretch, sim.rope("tail").stretch)
    low = float(sim.body("weight").position[2])
    print(f"the weight is at {low:.6f} m, stretch {stretch:.1e} (1e-10), {top - energy:.1e} J gained (1e-9)")
    assert stretch < 1e-10 and -1.25 - 1e-5 < low < -1.2 and top - energy < 1e-9


@pytest.mark.parametrize("name", ["held, bending", "clamped", "tied, bending", "web"])
def test_energy_is_kept(name, monkeypatch):
    sim = make(name, False, monkeypatch, 2e-3)
    energy, worst = sim.energy().total, 0.0
    for _ in range(100):
        assert sim.step().converged
        worst = max(worst, abs(sim.energy().total - energy))
    print(f"{name}: {worst:.1e} J (1e-9)")
    assert worst < 1e-9


def test_worlds_and_snapshots_repeat_it(monkeypatch):
    sim = make("web", False, monkeypatch, worlds=2)
    sim.step(10)
    kept, places = sim.snapshot(), []
    for _ in range(2):
        sim.step(10)
        places.append(sim.state.position.numpy().copy())
        sim.restore(kept)
    assert (places[0] == places[1]).all() and (places[0][..., 0, :] == places[0][..., 1, :]).all()
