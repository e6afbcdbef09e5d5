"""Ropes in joint coordinates that links hold beside their first ends: ties, clamped last ends; against the former passes."""

import numpy as np
import pytest

import sharnir as sh
from sharnir.engine.direct.trees import Trees

ROPE = {"segments": 8, "radius": 0.01, "mass_per_length": 0.3}
POINTS = [(0, 0, 0), (1, 0, -0.6), (2, 0, 0)]
PULL = (0.0, 60.0, -150.0)  # N


def pendulum(scene, name, x):
    """A bar that hangs on the world from 1 m above its lower end, at (x, 0, 0) m."""
    scene.add_body(name, sh.Box(0.1, 0.1, 1), mass=8.0, position=(x, 0, 0.5))
    scene.add_joint(f"hold {name}", sh.Spherical(damping=2.0), "world", name, position=(x, 0, 1))


def hung(ends=("a", "b"), second=False, ground=False, **more):
    """A load with a tail tied to the middle of a rope between two pendulums, or what else holds its ends."""
    scene = sh.Scene()
    pendulum(scene, "a", 0.0)
    pendulum(scene, "b", 2.0)
    scene.add_body("load", sh.Box(0.2, 0.2, 0.2), mass=5.0, position=(1, 0.05, -0.75), collide=ground)
    scene.add_body("tail", sh.Box(0.05, 0.05, 0.4), mass=1.0, position=(1, 0.05, -1.05), collide=False)
    scene.add_joint("hinge", sh.Revolute("x", damping=0.05), "load", "tail", position=(1, 0.05, -0.85))
    if ground:
        scene.add_ground(height=-1.0)
    scene.add_rope("rope", points=POINTS, attach=ends, collide=False, **{**ROPE, **more})
    scene.tie_rope("rope", 4, "load")
    if second:
        scene.add_body("weight", sh.Sphere(0.1), mass=2.0, position=(0.5, 0, -0.4), collide=False)
        scene.tie_rope("rope", 2, "weight")
    return scene


def clamped(**more):
    """A rope between two pendulums, of both of which it has the orientation."""
    scene = sh.Scene()
    pendulum(scene, "a", 0.0)
    pendulum(scene, "b", 2.0)
    scene.add_rope("rope", points=POINTS, attach=("a", "b"), clamp=(True, True), EI=0.5, GJ=0.3, **ROPE, **more)
    return scene


BENDS = {"EI": 0.1, "GJ": 0.1}
SCENES = {
    "tied": hung, "bending": lambda: hung(**BENDS), "two ties": lambda: hung(second=True),
    "two ties, bending": lambda: hung(second=True, **BENDS), "ground": lambda: hung(("a", "world")),
    "ground, bending": lambda: hung(("a", "world"), second=True, **BENDS), "world": lambda: hung(("world", "world"), second=True),
    "world, bending": lambda: hung(("world", "world"), second=True, **BENDS), "free end": lambda: hung(("a", None), **BENDS),
    "free ends": lambda: hung((None, None), second=True, **BENDS), "clamped": clamped,
    "clamped, tied": lambda: hung(clamp=(True, True), second=True, **BENDS),
}  # fmt: skip


def make(scene, former, monkeypatch, dt=5e-3, **how):
    with monkeypatch.context() as patch:
        if former:
            cover = Trees.cover
            patch.setattr(Trees, "cover", staticmethod(lambda model: model.ropes is None and cover(model)))
        sim = sh.Simulation(scene(), dt, solver="direct", **how)
        sim.step()
    assert (sim.solver._trees is None) == former
    return sim


def run(name, former, monkeypatch, steps=40):
    """Positions of bodies, points of the rope and its tensions after every step, and the largest stretch.

    Steps are so short that none is divided, so that both have the same error of a step.
    """
    sim, out, stretch = make(SCENES[name], former, monkeypatch), [], 0.0
    for n in range(steps):
        if n == steps // 2 and "load" in sim.model.body_names:
            sim.body("load").apply_force(PULL, once=False)
        sim.step()
        assert sim.solver.parts.numpy().max() == 1
        rope = sim.rope("rope")
        stretch = max(stretch, rope.stretch)
        tension = rope.tension / (1.0 + abs(rope.tension).max())
        out.append(np.concatenate([sim.state.position.numpy().ravel(), rope.position.ravel(), tension]))
    return out, stretch


@pytest.mark.parametrize("name", SCENES)
def test_it_is_the_step_of_the_former_passes(name, monkeypatch):
    (one, _), (two, stretch) = (run(name, former, monkeypatch) for former in (True, False))
    off = max(np.abs(a - b).max() for a, b in zip(one, two, strict=True))
    print(f"{name}: {off:.1e} off (1e-8), stretch {stretch:.1e} (1e-12)")
    assert off < 1e-8 and stretch < 1e-12


def test_a_divided_step_is_as_near_to_short_ones(monkeypatch):
    """Where these passes do not meet at once, and the former do, both are as far from steps an eighth as long."""
    dt, places, divided = 1e-2, {}, []
    for former, part in ((True, 1), (False, 1), (True, 8)):
        sim = make(SCENES["world, bending"], former, monkeypatch, dt / part)
        energy = []
        for n in range(20 * part - 1):
            sim.step()
            divided += [(former, n)] * int(sim.solver.parts.numpy()[0] > 1)
            energy.append(sim.energy().total)
        places[former, part] = sim.state.position.numpy(), energy[-1]
    fine = places[True, 8]
    off = [np.abs(places[former, 1][0] - fine[0]).max() for former in (True, False)]
    lost = [abs(places[former, 1][1] - fine[1]) for former in (True, False)]
    print(f"off {off[0]:.1e}, {off[1]:.1e} m, {lost[0]:.1e}, {lost[1]:.1e} J; divided: {divided}")
    assert divided and off[1] < 1.1 * off[0] and lost[1] < 1.1 * lost[0]


@pytest.mark.parametrize("second", [False, True])
def test_a_tied_load_is_set_down_and_stands(second, monkeypatch):
    """Contact and rows of a rope in one step: the load is pulled down to the ground, and rests there."""
    sim = make(lambda: hung(("a", "b"), second, True, **BENDS), False, monkeypatch)
    load, stretch, met = sim.body("load"), 0.0, True
    load.apply_force((0, 0, -400.0), once=False)
    for _ in range(200):
        report = sim.step()
        stretch, met = max(stretch, sim.rope("rope").stretch), met and report.converged
    low = float(load.position[2])
    print(f"the load is at {low:.6f} m, stretch {stretch:.1e} (1e-12)")
    assert stretch < 1e-12 and met and abs(low + 0.9) < 0.01


@pytest.mark.parametrize("name", ["two ties, bending", "clamped", "clamped, tied", "free ends"])
def test_energy_is_kept(name, monkeypatch):
    sim = make(SCENES[name], False, monkeypatch, 2e-3)
    for joint in sim.model.joint_names:
        sim.joint(joint).damping = 0.0
    energy = sim.energy().total
    worst = 0.0
    for _ in range(100):
        assert sim.step().converged
        worst = max(worst, abs(sim.energy().total - energy))
    print(f"{name}: {worst:.1e} J (1e-9)")
    assert worst < 1e-9


@pytest.mark.parametrize("name", ["two ties, bending", "clamped, tied"])
def test_worlds_and_snapshots_repeat_it(name, monkeypatch):
    sim = make(SCENES[name], False, monkeypatch, worlds=2)
    for _ in range(10):
        sim.step()
    kept = sim.snapshot()
    places = []
    for _ in range(2):
        for _ in range(10):
            sim.step()
        places.append(sim.state.position.numpy().copy())
        sim.restore(kept)
    assert (places[0] == places[1]).all() and (places[0][..., 0, :] == places[0][..., 1, :]).all()


def thrown_together(seed):
    """A load tied to a rope between pendulums or fixed points: masses of 0.01 to 300 kg, ropes of 1 g to 1 kg a metre."""
    rng, scene = np.random.default_rng(seed), sh.Scene()
    ground, bends = rng.random(2) < 0.5
    if ground:
        scene.add_ground(height=-1.0)
    for name, x in (("a", 0.0), ("b", 2.0)):
        scene.add_body(name, sh.Box(0.1, 0.1, 1), mass=10 ** rng.uniform(-2, 2.5), position=(x, 0, 0.5))
        scene.add_joint(f"hold {name}", sh.Spherical(), "world", name, position=(x, 0, 1))
    mass = 10 ** rng.uniform(-2, 2.5)
    scene.add_body("load", sh.Box(0.2, 0.2, 0.2), mass=mass, position=(1, 0.05, -0.75), collide=bool(ground))
    ends = [("a", "b"), ("a", "world"), ("world", "world"), ("a", None)][rng.integers(4)]
    more = {"EI": 10 ** rng.uniform(-3, 0), "GJ": 0.1, "clamp": (True, ends[1] == "b")} if bends else {}
    rope = {"segments": int(rng.integers(4, 12)), "radius": 0.01, "mass_per_length": 10 ** rng.uniform(-3, 0)}
    scene.add_rope("rope", points=POINTS, attach=ends, collide=False, **rope, **more)
    scene.tie_rope("rope", 2, "load")
    return scene, 10 ** rng.uniform(-3, -1.3)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.filterwarnings("ignore::sharnir.StepWarning")
def test_steps_that_converge_keep_lengths_and_give_no_energy(seed):
    scene, dt = thrown_together(seed)
    sim = sh.Simulation(scene, dt, solver="direct")
    start, missed = sim.energy().total, 0
    scale = abs(start) + 1.0
    for _ in range(60):
        converged = sim.step().converged
        missed += not converged
        if converged:
            assert sim.rope("rope").stretch < 1e-6 and sim.energy().total - start < 1e-6 * scale
    print(f"{1e3 * dt:.1f} ms: {missed} of 60 steps did not converge")
    assert sim.solver._lean and missed <= 3
