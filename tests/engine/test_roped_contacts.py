"""Ropes beside contacts of bodies on trees in joint coordinates: loads that are set down, energy, the former passes."""

import numpy as np
import pytest

import sharnir as sh
from sharnir.engine.direct.trees import Trees

G = 9.81
pytestmark = pytest.mark.filterwarnings("ignore::sharnir.StepWarning")
ROPE = {"segments": 10, "radius": 0.006, "mass_per_length": 0.1, "collide": False}


def crane(restitution=0.0, above=0.02, **more):
    """300 kg hang from a jib of 4 m, on a spring, a little above the ground."""
    scene, m = sh.Scene(), sh.Material(friction=0.5, restitution=restitution)
    scene.add_ground(material=m)
    scene.add_body("jib", sh.Box(4, 0.2, 0.2), mass=200.0, position=(2, 0, 3), collide=False)
    torque = G * (200 * 2 + 300 * 4)
    scene.add_joint("luff", sh.Revolute("y", spring=(2e5, -torque / 2e5), damping=1e4), "world", "jib", position=(0, 0, 3))
    scene.add_body("load", sh.Box(0.5, 0.5, 0.5), mass=300.0, position=(4, 0, 0.25 + above), material=m)
    scene.add_rope("rope", (4, 0, 3), (4, 0, 0.5 + above), attach=("jib", "load"), reel="start", longest=4.0, **ROPE, **more)
    return scene


def tethered(height=1.2):
    """A box thrown on a slack tether, and a ball that falls beside it."""
    scene, m = sh.Scene(), sh.Material(friction=0.5, restitution=0.5)
    scene.add_ground(material=m)
    moves = {"velocity": (3, 0.5, -1), "angular_velocity": (1, -3, 2), "material": m}
    scene.add_body("box", sh.Box(0.3, 0.2, 0.4), mass=8.0, position=(0.5, 0, height), **moves)
    scene.add_rope("rope", points=[(0, 0, 1.5), (0.3, 0.1, 0.7), (0.5, 0, height)], attach=("world", "box"), **ROPE)
    scene.add_body("ball", sh.Sphere(0.2), mass=2.0, position=(3, 3, 0.7), material=sh.Material(friction=0.5))
    return scene


def towed():
    """A box slides away over the ground and pulls another one after it by a rope that sags."""
    scene, m = sh.Scene(), sh.Material(friction=0.3)
    scene.add_ground(material=m)
    for name, x, v in (("a", 0.0, 0.0), ("b", 1.2, 3.0)):
        scene.add_body(name, sh.Box(0.3, 0.3, 0.2), mass=8.0, position=(x, 0, 0.1), velocity=(v, 0, 0), material=m)
    scene.add_rope("rope", points=[(0.15, 0, 0.1), (0.6, 0, 0.06), (1.05, 0, 0.1)], attach=("a", "b"), **ROPE)
    return scene


def simulate(scene, dt, **options):
    sim = sh.Simulation(scene, dt, solver="direct", **options)
    assert Trees.cover(sim.model)
    return sim


def run(sim, steps):
    """Steps; returns the largest rise of energy above the start, the largest stretch, and steps that did not converge."""
    start, above, stretch, missed = sim.energy().total, 0.0, 0.0, 0
    for _ in range(steps):
        missed += not sim.step().converged
        above, stretch = max(above, sim.energy().total - start), max(stretch, sim.rope("rope").stretch)
    return above, stretch, missed


def test_tensions_are_those_of_the_step_where_overlaps_displace_bodies():
    sim = simulate(towed(), 5e-3)
    sim.step(4)
    largest = []
    for _ in range(6):
        sim.step()
        largest.append(np.abs(sim.rope("rope").tension).max())
    print("largest tensions", np.round(largest, 3), "N")
    assert min(largest) > 1.0


def test_ropes_that_touch_keep_the_former_passes():
    scene = crane()
    free = sh.Simulation(scene, 5e-3, solver="direct")
    scene.add_rope("other", (0, 0, 2), (0.5, 0, 2), attach=("world", None), segments=4, radius=0.02, mass_per_length=0.5)
    assert Trees.cover(free.model) and not Trees.cover(sh.Simulation(scene, 5e-3, solver="direct").model)


@pytest.mark.parametrize("dt", [2e-3, 1e-2])
def test_a_load_is_set_down_and_lifted_off(dt):
    sim = simulate(crane(), dt)
    sim.rope("rope").reel_speed = 0.2
    above, stretch, missed = run(sim, round(1.5 / dt))
    bears, pulls = sim.contacts().force[:, 2].sum(), sim.rope("rope").tension[-1]
    speed, height = np.abs(sim.body("load").velocity).max(), sim.body("load").position[2]
    print(
        f"{dt * 1e3:g} ms: the ground bears {bears:.3f} N, height {height:.6f} m, stretch {stretch:.1e}, energy {above:.1e} J up"
    )
    assert missed == 0 and stretch < 1e-9 and above < 1e-6 * 300 * G and abs(height - 0.25) < 1e-4 and speed < 1e-6
    assert 0 < bears - 300 * G < 0.2 and abs(pulls) < 0.5  # the slack rope weighs on the load
    sim.rope("rope").reel_speed = -0.3
    lifted = run(sim, round(2.0 / dt))
    assert lifted[1] < 1e-9 and lifted[2] == 0 and sim.body("load").position[2] > 0.3 and len(sim.contacts().force) == 0


@pytest.mark.parametrize("dt", [1e-3, 5e-3, 1e-2])
@pytest.mark.parametrize("make", [tethered, towed])
def test_ropes_snap_taut_beside_contacts_and_bring_no_energy(make, dt):
    sim = simulate(make(), dt)
    scale = 10.0 * G + sim.energy().kinetic
    above, stretch, missed = run(sim, round(1.0 / dt))
    print(f"{make.__name__}, {dt * 1e3:g} ms: {above / scale:.1e} above the start, stretch {stretch:.1e}, {missed} not converged")
    assert above < 1e-6 * scale and stretch < 1e-9 and missed == 0


@pytest.mark.parametrize("make", [crane, towed])
def test_it_is_what_the_former_passes_find(make, monkeypatch):
    now = simulate(make(), 1e-3)
    monkeypatch.setattr(Trees, "cover", staticmethod(lambda model: False))
    former = sh.Simulation(make(), 1e-3, solver="direct")
    for sim in (now, former):
        if make is crane:
            sim.rope("rope").reel_speed = 0.2
        sim.step(200)
    names = ("load", "jib") if make is crane else ("a", "b")
    apart = max(np.abs(now.body(n).position - former.body(n).position).max() for n in names)
    print(f"{make.__name__}: {apart:.1e} m apart")
    assert apart < (1e-9 if make is crane else 5e-4)  # a rope that snaps taut is found by other passes


def test_worlds_are_alike_and_calls_may_be_split():
    many, one = simulate(tethered(), 5e-3, worlds=3), simulate(tethered(), 5e-3)
    many.step(100)
    for _ in range(20):
        one.step(5)
    boxes = np.asarray(many.body("box").position)
    assert np.array_equal(boxes[0], boxes[1]) and np.array_equal(boxes[0], boxes[2])
    assert np.abs(boxes[0] - one.body("box").position).max() < 1e-9


def test_a_load_at_rest_sleeps_and_wakes():
    sim = simulate(crane(), 5e-3)
    sim.rope("rope").reel_speed = 0.2
    sim.step(200)
    sim.rope("rope").reel_speed = 0.0
    sim.step(600)
    before = sim.body("load").position
    sim.step(100)
    assert np.abs(sim.body("load").position - before).max() < 1e-9
    sim.rope("rope").reel_speed = -0.3
    sim.step(500)
    assert sim.body("load").position[2] > 0.3


def test_rope_and_ground_share_the_weight_of_a_load():
    """The reel pays out less than the spring of the jib gives."""
    sim = simulate(crane(), 5e-3)
    sim.rope("rope").reel_speed = 0.2
    sim.step(40)
    sim.rope("rope").reel_speed = 0.0
    sim.step(600)
    bears, pulls = sim.contacts().force[:, 2].sum(), abs(sim.rope("rope").tension[-1])
    print(f"the ground bears {bears:.2f} N, the rope pulls with {pulls:.2f} N")
    assert pulls > 100 and 0 <= bears + pulls - 300 * G < 0.13  # and that of half an element


def thrown(seed: int) -> tuple[sh.Scene, float]:
    """A load that a jib hauls along the ground, or a box on a tether, fast."""
    rng = np.random.default_rng(seed)
    scene = sh.Scene()
    material = sh.Material(friction=rng.uniform(0.1, 1.0), restitution=float(rng.choice([0.0, 0.5])))
    scene.add_ground(material=material)
    size, mass, spin = rng.uniform(0.2, 0.6, 3), rng.uniform(5, 500), rng.normal(0, 3, 3)
    z = rng.uniform(0.6, 1.2)
    speed = rng.normal(0, 2, 3)
    scene.add_body("load", sh.Box(*size), mass=mass, position=(3, 0, z), velocity=speed, angular_velocity=spin, material=material)
    hook, middle = (3, 0, 2.5), (3.3, 0.5, 0.5 * (2.5 + z))
    holder = "world"
    if seed % 2:
        holder = "jib"
        scene.add_body("jib", sh.Box(3, 0.1, 0.1), mass=rng.uniform(20, 200), position=(1.5, 0, 2.5), collide=False)
        scene.add_joint("luff", sh.Revolute("y"), "world", "jib", position=(0, 0, 2.5))
    points = [hook, middle, (3, 0, z + 0.1)]
    attach = (holder, "load")
    scene.add_rope("rope", points=points, attach=attach, segments=8, radius=0.006, mass_per_length=0.1, collide=False)
    return scene, mass * 9.81 * 2


@pytest.mark.parametrize("seed", range(10))
def test_no_step_gives_energy(seed):
    """Where overlaps are taken back, ropes follow, and kinetic energy pays for what is lifted.

    A load that turns on a corner rises by micrometres within the overlap that is left alone, without ropes as with them.
    """
    scene, scale = thrown(seed)
    sim = sh.Simulation(scene, 0.01, solver="direct")
    energies, stretch = [sim.energy().total], 0.0
    for _ in range(120):
        assert sim.step().converged
        energies.append(sim.energy().total)
        stretch = max(stretch, sim.rope("rope").stretch)
    rise = np.diff(energies).max() / scale
    print(f"no step gives more than {rise:.1e} of the load's energy; stretch {stretch:.1e}")
    assert rise < 2e-6 and stretch < 1e-9
