"""Ropes on trees in joint coordinates: against the former passes, which find the same step otherwise; energy and momenta."""

import numpy as np
import pytest

import sharnir as sh
from sharnir.engine.direct.trees import Trees

STEPS = 40
ROPE = {"segments": 10, "radius": 0.01, "mass_per_length": 0.3}


def jib(scene, load=0.0):
    """A jib of 4 m on a post that turns, borne by a spring as if `load` kg hung from its tip; the tip is at (4, 0, 2) m."""
    scene.add_body("post", sh.Box(0.3, 0.3, 2), mass=500.0, position=(0, 0, 1))
    scene.add_joint("slew", sh.Revolute("z"), "world", "post", position=(0, 0, 0))
    scene.add_body("jib", sh.Box(4, 0.2, 0.2), mass=200.0, position=(2, 0, 2))
    torque = 9.81 * (200 * 2 + load * 4)
    scene.add_joint("luff", sh.Revolute("y", spring=(2e6, -torque / 2e6)), "post", "jib", position=(0, 0, 2))
    return scene


def free_end(**more):
    scene = jib(sh.Scene())
    scene.add_rope("rope", (4, 0, 2), (4.3, 0.6, 0.5), attach=("jib", None), **ROPE, **more)
    return scene


def with_load(**more):
    scene = jib(sh.Scene(), 300.0)
    scene.add_body("load", sh.Box(0.5, 0.5, 0.5), mass=300.0, position=(4, 1, -1.25))
    scene.add_rope("rope", (4, 0, 2), (4, 1, -1), attach=("jib", "load"), **ROPE, **more)
    return scene


def on_the_ground(**more):
    scene = jib(sh.Scene())
    points = [(4, 0, 2), (5, 0, 0.5), (6, 0, 1)]
    scene.add_rope("rope", points=points, attach=("jib", "world"), **ROPE, **more)
    return scene


def between_trees():
    """Two pendulums and a rope that sags between them."""
    scene = sh.Scene()
    for name, x in (("a", 0.0), ("b", 1.5)):
        scene.add_body(name, sh.Box(0.1, 0.1, 1), mass=3.0, position=(x, 0.1, -0.5), angular_velocity=(0.5, 0, 0))
        scene.add_joint(f"hold {name}", sh.Spherical(), "world", name, position=(x, 0.1, 0))
    scene.add_rope("rope", points=[(0, 0.1, -1), (0.7, 0.1, -1.6), (1.5, 0.1, -1)], attach=("a", "b"), EI=0.05, **ROPE)
    return scene


def within_a_tree():
    """A rope from one link to another that hangs on it: a loop."""
    scene = jib(sh.Scene())
    scene.add_body("arm", sh.Box(1, 0.1, 0.1), mass=20.0, position=(4.5, 0, 2))
    scene.add_joint("wrist", sh.Revolute("y", damping=5.0), "jib", "arm", position=(4, 0, 2))
    scene.add_rope("rope", points=[(2, 0, 1.9), (3.5, 0, 1), (5, 0, 1.9)], attach=("jib", "arm"), **ROPE)
    return scene


def driven(**more):
    """A load on a hinge, and a rope to it from a body that moves as it is told."""
    scene = sh.Scene()
    scene.add_body("lift", sh.Box(0.2, 0.2, 0.2), motion="kinematic", position=(0, 0, 0), velocity=(0.3, 0, 0.2))
    scene.add_body("load", sh.Box(0.5, 0.5, 0.5), mass=30.0, position=(0.5, 0, -2.25))
    scene.add_body("tail", sh.Box(0.1, 0.1, 0.5), mass=3.0, position=(0.5, 0, -2.75))
    scene.add_joint("hinge", sh.Revolute("x"), "load", "tail", position=(0.5, 0, -2.5))
    scene.add_rope("rope", (0, 0, 0), (0.5, 0, -2), attach=("lift", "load"), **ROPE, **more)
    return scene


SCENES = {
    "free end": free_end, "free end, bending": lambda: free_end(EI=0.1, GJ=0.1), "load": with_load,
    "load, bending": lambda: with_load(EI=0.1, GJ=0.1), "clamped": lambda: with_load(EI=2.0, GJ=1.0, clamp=(True, False)),
    "ground": on_the_ground, "two trees": between_trees, "loop": within_a_tree,
    "drag": lambda: with_load(drag=0.5),
}  # fmt: skip


def run(make, former, monkeypatch, command=None):
    """Positions of all bodies, then velocities and spins, points of the rope and its tensions, after every step."""
    with monkeypatch.context() as patch:
        if former:
            cover = Trees.cover
            patch.setattr(Trees, "cover", staticmethod(lambda model: model.ropes is None and cover(model)))
        sim = sh.Simulation(make(), 5e-3, solver="direct")
        if command is not None:
            command(sim)
        out = []
        for _ in range(STEPS):
            sim.step()
            rope, bodies = sim.rope("rope"), (sim.state.position, sim.state.velocity, sim.state.spin)
            tension = rope.tension / (1.0 + abs(rope.tension).max())
            out.append([*(x.numpy().ravel().copy() for x in bodies), rope.position.ravel(), tension])
        assert (sim.solver._trees is None) == former
        return out


def apart(one, two, first=5):
    """By how much two runs differ at most, in the first few of what they tell."""
    pairs = ((a, b) for x, y in zip(one, two, strict=True) for a, b in zip(x[:first], y[:first], strict=True))
    return max(np.abs(a - b).max() for a, b in pairs)


@pytest.mark.parametrize("name", SCENES)
def test_it_is_the_step_of_the_former_passes(name, monkeypatch):
    off = apart(*(run(SCENES[name], former, monkeypatch) for former in (True, False)))
    print(f"{name}: {off:.1e} off (1e-9)")
    assert off < 1e-9


def command_reel(speed):
    def command(sim):
        sim.rope("rope").reel_speed = speed

    return command


@pytest.mark.parametrize(
    "make, command",
    [
        (driven, None),
        (lambda: with_load(reel="start", longest=8.0), command_reel(0.4)),
        (lambda: with_load(reel="start", longest=8.0), command_reel(-0.4)),
    ],
    ids=["driven", "reel out", "reel in"],
)
def test_so_it_is_where_velocities_are_fitted(make, command, monkeypatch):
    """Former passes fit joints by their means alone: velocities of the end of a step then do not fit; poses are the same."""
    off = apart(*(run(make, former, monkeypatch, command) for former in (True, False)), first=1)
    print(f"{off:.1e} off (1e-9)")
    assert off < 1e-9


def test_momenta_and_energy_in_the_air():
    """A tree that floats, with a rope between two of its links, one to a body beside it, and one with a free end."""
    scene = sh.Scene(gravity=(0, 0, 0))
    scene.add_body("a", sh.Box(1, 0.2, 0.2), mass=5.0, position=(0, 0, 0), angular_velocity=(0, 1, 0.5))
    scene.add_body("b", sh.Box(1, 0.2, 0.2), mass=4.0, position=(1, 0, 0), velocity=(0, 0.3, 0))
    scene.add_joint("ab", sh.Spherical(), "a", "b", position=(0.5, 0, 0))
    scene.add_body("c", sh.Sphere(0.1), mass=1.0, position=(1.5, 1.1, 0), velocity=(0.2, 0, 0.4))
    how = ROPE | {"rod": True, "EI": 0.1, "GJ": 0.1}
    scene.add_rope(
        "loop", points=[(-0.5, 0, -0.1), (0.5, 0, -0.8), (1.5, 0, -0.1)], attach=("a", "b"), clamp=(True, False), **how
    )
    scene.add_rope("side", (1.5, 0.1, 0), (1.5, 1, 0), attach=("b", "c"), **how)
    scene.add_rope("free", (0, 0.1, 0), (0, 1, 0.3), attach=("a", None), **how)
    sim = sh.Simulation(scene, 5e-3, solver="direct")
    sim.step()
    start, energy, off = sim.momentum(), sim.energy().total, np.zeros(3)
    for _ in range(200):
        sim.step()
        now = sim.momentum()
        changes = now.linear - start.linear, now.angular - start.angular, sim.energy().total - energy
        off = np.maximum(off, [np.abs(x).max() for x in changes])
    print(f"{off[0]:.0e} N·s, {off[1]:.0e} N·m·s, {off[2]:.0e} J of {energy:.1f}")
    assert sim.solver._trees is not None and off[0] < 1e-11 and off[1] < 1e-11 and off[2] < 1e-11 * energy


def test_several_worlds_step_as_one():
    alone = sh.Simulation(with_load(), 5e-3, solver="direct")
    many = sh.Simulation(with_load(), 5e-3, solver="direct", worlds=3)
    for sim in (alone, many):
        sim.step(50)
    assert np.array_equal(many.body("load").com, np.tile(alone.body("load").com, (3, 1)))


def test_a_step_that_is_cut_short_stays_a_valid_one():
    """Where passes run out nothing moves in the rest of the step, and the report tells it."""
    sim = sh.Simulation(with_load(), 5e-3, solver="direct")
    sim.step(20)
    before, sim.body("load").velocity = sim.rope("rope").length, (8.0, 0, 6.0)
    met = [sim.step(iterations=2).residual < 1e-9 for _ in range(5)]
    assert not all(met) and sim.rope("rope").stretch < 1e-9 and sim.rope("rope").length == before


def test_losses_of_all_parts_of_a_step_are_counted():
    """A rope that snatches divides steps: what friction takes in them is the sum over their parts."""
    scene = sh.Scene()
    scene.add_body("jib", sh.Box(4, 0.3, 0.3), mass=200.0, position=(2, 0, 0))
    scene.add_joint("hinge", sh.Revolute("y", friction=300.0), "world", "jib", position=(0, 0, 0))
    scene.add_body("load", sh.Box(0.5, 0.5, 0.5), mass=50.0, position=(4, 0.3, -2.25))
    scene.add_rope("rope", (4, 0, 0), (4, 0.3, -2), attach=("jib", "load"), rod=True, **ROPE | {"segments": 20})
    sim = sh.Simulation(scene, 5e-3, solver="direct")
    sim.step()
    start, taken, parts = sim.energy().total, 0.0, 0
    for _ in range(200):
        parts += sim.step().substeps - 1
        taken += sim.joint("hinge").dissipated
    off = abs(start - taken - sim.energy().total)
    print(f"{parts} parts more than steps, {taken:.0f} J taken, energy off by {off:.0e} J")
    assert parts > 50 and off < 1e-8
