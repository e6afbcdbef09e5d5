"""Winches on trees in joint coordinates: against the former passes, which find the same step otherwise; lengths and energy."""

import numpy as np
import pytest

import sharnir as sh
from sharnir.engine.direct.trees import Trees

RADIUS = 0.2  # m
ROPE = {"segments": 10, "radius": 0.01, "mass_per_length": 0.3, "longest": 8.0, "collide": False}


def crane(reel="start", backwards=False, ground=False, load=300.0, axle=None, **more):
    """A jib of 4 m on a post that turns, its drum on the post, and a load on the rope from its tip at (4, 0, 2) m."""
    scene = sh.Scene()
    scene.add_body("post", sh.Box(0.3, 0.3, 2), mass=500.0, position=(0, 0, 1), collide=False)
    scene.add_joint("slew", sh.Revolute("z", damping=100.0), "world", "post", position=(0, 0, 0))
    scene.add_body("jib", sh.Box(4, 0.2, 0.2), mass=200.0, position=(2, 0, 2), collide=False)
    torque = 9.81 * (200 * 2 + load * 4)
    scene.add_joint("luff", sh.Revolute("y", spring=(2e6, -torque / 2e6)), "post", "jib", position=(0, 0, 2))
    scene.add_body("drum", mass=50.0, inertia=(2.0, 1.0, 2.0), position=(0, 0, 2.5))
    sides = ("drum", "post") if backwards else ("post", "drum")
    axle = {"drive": sh.Servo(kd=80.0)} if axle is None else axle
    scene.add_joint("axle", sh.Revolute("y", **axle), *sides, position=(0, 0, 2.5))
    scene.add_body("load", sh.Box(0.5, 0.5, 0.5), mass=load, position=(4, 1, -1.25), collide=ground)
    if ground:
        scene.add_ground(height=-1.8)
    ends, held = [(4, 0, 2), (4, 1, -1)], ["jib", "load"]
    if reel == "end":
        ends, held = ends[::-1], held[::-1]
    scene.add_rope("rope", *ends, attach=held, reel=reel, winch=("axle", RADIUS), **{**ROPE, **more})
    return scene


def from_the_world(free=False):
    """A load, or a free end, on a rope from a drum that the world bears."""
    scene = sh.Scene()
    scene.add_body("drum", mass=20.0, inertia=(1.0, 0.5, 1.0), position=(0, 0, 1))
    scene.add_joint("axle", sh.Revolute("y", drive=sh.Servo(kd=40.0)), "world", "drum", position=(0, 0, 1))
    scene.add_body("load", sh.Box(0.3, 0.3, 0.3), mass=50.0, position=(0.3, 0, -4.15))
    scene.add_body("tail", sh.Box(0.1, 0.1, 0.5), mass=3.0, position=(0.3, 0, -4.55))
    scene.add_joint("hinge", sh.Revolute("x"), "load", "tail", position=(0.3, 0, -4.3))
    held = ("world", None if free else "load")
    scene.add_rope("rope", (0, 0, 0), (0.3, 0, -4), attach=held, reel="start", winch=("axle", RADIUS), **ROPE)
    return scene


def on_a_float():
    """Base, drum and load float, without gravity."""
    scene = sh.Scene(gravity=(0, 0, 0))
    scene.add_body("base", sh.Box(1, 1, 0.5), mass=200.0)
    scene.add_body("drum", mass=20.0, inertia=(1.0, 0.5, 1.0), position=(0, 0, 0.5))
    scene.add_joint("axle", sh.Revolute("y", drive=sh.Servo(kd=40.0)), "base", "drum", position=(0, 0, 0.5))
    scene.add_body("load", sh.Box(0.3, 0.3, 0.3), mass=50.0, position=(0.4, 0.1, -3.25))
    ends = (0.4, 0.1, -0.25), (0.4, 0.1, -3.1)
    scene.add_rope("rope", *ends, attach=("base", "load"), reel="start", winch=("axle", RADIUS), **ROPE)
    return scene


SCENES = {
    "crane": crane, "reel at the load": lambda: crane("end"), "backwards": lambda: crane(backwards=True),
    "bending": lambda: crane(EI=0.1, GJ=0.1), "clamped": lambda: crane(EI=2.0, GJ=1.0, clamp=(True, False)),
    "world": from_the_world, "free end": lambda: from_the_world(True), "float": on_a_float,
}  # fmt: skip
BORNE = {"world": 104.0, "free end": 2.4, "float": 3.0}  # N·m that bear the load, 589 in the others


def make(scene, former, monkeypatch, dt=5e-3):
    with monkeypatch.context() as patch:
        if former:
            cover = Trees.cover
            patch.setattr(Trees, "cover", staticmethod(lambda model: model.ropes is None and cover(model)))
        sim = sh.Simulation(scene(), dt, solver="direct")
        sim.step()
    assert (sim.solver._trees is None) == former
    return sim


def run(name, former, monkeypatch, steps=30, torques=(1.2, 0.8)):
    """Poses of all bodies, lengths and tensions of the rope, after every step: taken in, then paid out.

    `torques` of the motor are multiples of what bears the load, and it brakes the drum by little in a step: how much of that is
    taken to be implicit is not asked.
    """
    sim, out = make(SCENES[name], former, monkeypatch), []
    for n in range(2 * steps):
        axle = sim.joint("axle")
        axle.effort = torques[n // steps] * BORNE.get(name, 589.0)
        sim.step()
        rope = sim.rope("rope")
        tension = rope.tension / (1.0 + abs(rope.tension).max())
        out.append(np.concatenate([sim.state.position.numpy().ravel(), rope.position.ravel(), [rope.length], tension]))
    return out


def apart(one, two, numbers=None):
    return max(np.abs(a[: len(b)] - b[: len(a)])[:numbers].max() for a, b in zip(one, two, strict=True))


@pytest.mark.parametrize("name", SCENES)
def test_it_is_the_step_of_the_former_passes(name, monkeypatch):
    off = apart(*(run(name, former, monkeypatch) for former in (True, False)))
    print(f"{name}: {off:.1e} off (1e-8)")
    assert off < 1e-8


@pytest.mark.parametrize("name", ["crane", "reel at the load", "world"])
def test_so_it_is_where_the_rope_goes_slack(name, monkeypatch):
    """The drum is reversed faster than the load falls: bodies alone, since points of a rope that hangs loose go any way."""
    off = apart(*(run(name, former, monkeypatch, torques=(1.2, -1.5)) for former in (True, False)), numbers=9)
    print(f"{name}: {off:.1e} off (1e-7)")
    assert off < 1e-7


def wound(sim, start):
    """By how much the length differs from what the drum's angle tells, m."""
    return abs(sim.rope("rope").length + RADIUS * sim.joint("axle").position - start)


@pytest.mark.parametrize("backwards", [False, True])
def test_length_goes_with_the_angle_of_the_drum(backwards, monkeypatch):
    """While elements are joined and split; no row of the rope opens."""
    sim = make(lambda: crane(backwards=backwards, axle={"drive": sh.Servo(kd=3000.0)}), False, monkeypatch)
    start = sim.rope("rope").length + RADIUS * sim.joint("axle").position
    off = stretch = 0.0
    for speed in (4.0, -4.0, 2.0):
        sim.joint("axle").drive.velocity = speed
        for _ in range(100):
            sim.step()
            stretch = max(stretch, sim.rope("rope").stretch)
        off = max(off, wound(sim, start))
    print(f"length {off:.1e} m off the drum's angle (1e-6), stretch {stretch:.1e} (1e-9)")
    assert off < 1e-6 and stretch < 1e-9 and sim.rope("rope").length > 1.0


def test_energy_is_the_work_of_the_torque(monkeypatch):
    """A torque that does not change does τ Δq; slew and luff keep energy, which a light rope hardly takes along."""
    sim = make(lambda: crane(axle={}, mass_per_length=1e-4), False, monkeypatch, 2e-3)
    energy, angle = sim.energy().total, sim.joint("axle").position
    slew = sim.joint("slew")
    slew.damping = 0.0
    sim.joint("axle").effort = 700.0
    worst = 0.0
    for _ in range(20):
        sim.run(0.02)
        work = 700.0 * (sim.joint("axle").position - angle)
        worst = max(worst, abs(sim.energy().total - energy - work) / abs(work))
    print(f"energy {worst:.1e} of the work off (1e-5), {work:.0f} J")
    assert worst < 1e-5 and work > 100.0


def test_a_brake_holds_the_load_exactly(monkeypatch):
    sim = make(lambda: crane(axle={"friction": 5000.0}), False, monkeypatch)
    angle, length = sim.joint("axle").position, sim.rope("rope").length
    sim.run(0.5)
    turned, longer = abs(sim.joint("axle").position - angle), abs(sim.rope("rope").length - length)
    print(f"the drum creeps {turned:.1e} rad (1e-12), the rope {longer:.1e} m (1e-12)")
    assert turned < 1e-12 and longer < 1e-12


def test_a_drum_stops_at_a_limit(monkeypatch):
    sim = make(lambda: crane(axle={"limit": (-1.0, 1.0)}), False, monkeypatch)
    sim.run(2.0)
    over, slack = -1.0 - sim.joint("axle").position, sim.rope("rope").tension.max()
    print(f"{over:.1e} rad beyond the limit (1e-9), tension {slack:.0f} N")
    assert over < 1e-9 and sim.joint("axle").position < -0.9


def test_a_load_lands_the_rope_goes_slack_and_it_is_lifted_again(monkeypatch):
    sim = make(lambda: crane(ground=True, axle={"drive": sh.Servo(kd=3000.0)}), False, monkeypatch)
    load, rope, axle = sim.body("load"), sim.rope("rope"), sim.joint("axle")
    start = rope.length + RADIUS * axle.position
    heights, least, stretch = [], 0.0, 0.0
    for speed, seconds in ((-3.0, 1.0), (3.0, 1.5)):
        axle.drive.velocity = speed
        for _ in range(round(seconds / 5e-3)):
            sim.step()
            least, stretch = min(least, rope.tension.min()), max(stretch, rope.stretch)
        heights.append(float(load.position[2]))
    off = wound(sim, start)
    print(
        f"stands at {heights[0]:.6f} m, lifted to {heights[1]:.4f} m, pushes {-least:.1e} N, stretch {stretch:.1e}, {off:.1e} m"
    )
    assert abs(heights[0] + 1.55) < 1e-3 and heights[1] > -1.4
    assert off < 1e-6 and stretch < 1e-9
