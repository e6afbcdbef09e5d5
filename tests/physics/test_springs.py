"""Springs, dampers and servos: second order, nothing lost, quiet where a step does not resolve them."""

import numpy as np
import pytest
from scipy.linalg import expm

import sharnir as sh

SOLVERS = ("sequential", "direct")
MASS, REST = 2.0, -0.1


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize(("hertz", "dt"), [(1, 0.01), (5, 0.005), (10, 0.001), (7, 0.01)])
def test_undamped_springs_keep_their_energy(solver, hertz, dt):
    k = MASS * (2 * np.pi * hertz) ** 2
    scene = sh.Scene(gravity=(0, 0, 0))
    scene.add_body("slides", sh.Box(0.1, 0.1, 0.1), mass=MASS)
    scene.add_joint("j", sh.Prismatic("x", spring=(k, REST)), scene.world, "slides", position=(0, 0, 0))
    scene.add_body("pulled", mass=MASS, position=(0.6, 2, 0))
    scene.add_spring("s", scene.world, "pulled", at_a=(0, 2, 0), stiffness=k, rest=0.5)
    sim = sh.Simulation(scene, dt, solver=solver)
    start = sim.energy().total
    kept = []
    for _ in range(round(10 / dt / 37)):
        sim.step(37)
        kept.append(sim.energy().total / start)
    print(f"{solver}, {hertz} Hz at {1e3 * dt:g} ms, 10 s: energy {min(kept):.12f} to {max(kept):.12f} of the start")
    assert min(kept) > 1 - 1e-8 and max(kept) < 1 + 1e-8


def exact(k, c, x, v, t):
    """Place and speed of a mass on a spring and damper."""
    return expm(np.array([[0, 1], [-k / MASS, -c / MASS]]) * t) @ np.array([x, v])


LAWS = {
    "spring": ({"spring": (300.0, REST)}, 300.0, 0.0),
    "spring and damper": ({"spring": (300.0, REST), "damping": 9.0}, 300.0, 9.0),
    "damper": ({"damping": 9.0}, 0.0, 9.0),
    "viscous friction": ({"friction": sh.Friction(0.0, viscous=9.0)}, 0.0, 9.0),
    "servo": ({"drive": sh.Servo(kp=300.0, kd=9.0, position=REST)}, 300.0, 9.0),
}


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("law", LAWS)
def test_the_error_falls_fourfold_when_the_step_is_halved(solver, law):
    given, k, c = LAWS[law]
    errors = []
    for dt in (0.01, 0.005, 0.0025):
        scene = sh.Scene(gravity=(0, 0, 0))
        scene.add_body("m", sh.Box(0.1, 0.1, 0.1), mass=MASS, velocity=(0.3, 0, 0))
        scene.add_joint("j", sh.Prismatic("x", **given), scene.world, "m", position=(0, 0, 0))
        sim = sh.Simulation(scene, dt, solver=solver)
        worst = 0.0
        for n in range(1, 7):
            sim.run(0.2)
            rest = REST if k else 0.0
            x, v = exact(k, c, -rest, 0.3, 0.2 * n)
            worst = max(worst, abs(sim.joint("j").position - rest - x), 0.1 * abs(sim.joint("j").velocity - v))
        errors.append(worst)
    print(f"{solver}, {law}: " + ", ".join(f"{e:.2e}" for e in errors))
    assert 3.6 < errors[0] / errors[1] < 4.4 and 3.6 < errors[1] / errors[2] < 4.4


@pytest.mark.parametrize("k", [1e5, 1e7, 1e9])
def test_a_spring_that_steps_do_not_resolve_is_quiet(k):
    """With sequential impulses; the direct step keeps the energy of every spring."""
    scene = sh.Scene()
    scene.add_body("slides", sh.Box(0.1, 0.1, 0.1), mass=MASS)
    scene.add_joint("j", sh.Prismatic("z", spring=(k, 0.1)), scene.world, "slides", position=(0, 0, 0))
    scene.add_body("pulled", mass=MASS, position=(0, 2, -0.5))
    scene.add_spring("s", scene.world, "pulled", at_a=(0, 2, 0), stiffness=k, rest=0.4)
    sim = sh.Simulation(scene, 0.01, solver="sequential")
    sim.run(3)
    off, speed = 0.0, 0.0
    for _ in range(20):
        sim.step()
        sag = MASS * 9.81 / k
        off = max(off, abs(sim.joint("j").position - 0.1 + sag), abs(sim.body("pulled").position[2] + 0.4 + sag))
        speed = max(speed, abs(sim.joint("j").velocity), abs(sim.body("pulled").velocity[2]))
    print(f"k = {k:g} N/m at 10 ms: {off:.1e} m off its rest, speed {speed:.1e} m/s")
    assert off < 1e-10 and speed < 1e-9


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_force_acts_as_long_as_it_is_set(solver):
    """Half kicks begin and end with the force: nothing is lost when it is taken back, and what is read is of the pose."""
    scene = sh.Scene(gravity=(0, 0, 0))
    scene.add_body("m", sh.Box(0.1, 0.1, 0.1), mass=MASS)
    scene.add_joint("j", sh.Prismatic("x"), scene.world, "m", position=(0, 0, 0))
    sim = sh.Simulation(scene, 0.01, solver=solver)
    sim.joint("j").effort = 4.0
    sim.step(10)
    assert sim.joint("j").velocity == pytest.approx(0.2, rel=1e-12) and sim.joint("j").position == pytest.approx(0.01, rel=1e-12)
    sim.joint("j").effort = 0.0
    sim.step(10)
    print(
        f"{solver}: {sim.joint('j').velocity:.15f} m/s after 4 N on 2 kg for 0.1 s, {sim.joint('j').position:.15f} m after 0.2 s"
    )
    assert sim.joint("j").velocity == pytest.approx(0.2, rel=1e-12) and sim.joint("j").position == pytest.approx(0.03, rel=1e-12)
