"""Ropes that touch, in the direct solve: closed forms, energy, and the same as sequential impulses find.

Slow, since the kernel of all of it takes a minute or two to compile.
"""

import numpy as np
import pytest
from test_rope_contact import RADIUS, G, R, capstan, in_slings, over_a_pulley

import sharnir as sh

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::sharnir.StepWarning")]
BOTH = ("direct", "sequential")


def run(sim, seconds, names=("rope",)):
    """Steps; energies after each, the largest stretch, and how many were not met."""
    energies, stretch, missed = [sim.energy().total], 0.0, 0
    while sim.time < seconds - 1e-9:
        missed += not sim.step().converged
        energies.append(sim.energy().total)
        stretch = max(stretch, *(sim.rope(name).stretch for name in names))
    return np.array(energies), stretch, missed


def test_a_rope_falls_on_a_floor_and_lies_still():
    ends = []
    for solver in BOTH:
        scene = sh.Scene()
        scene.add_ground()
        scene.add_rope("rope", (0, 0, 0.03), (0.6, 0, 0.08), segments=20, radius=0.01, mass_per_length=0.2)
        sim = sh.Simulation(scene, 0.001, solver=solver)
        energies, stretch, missed = run(sim, 0.25)
        lies = sim.rope("rope").position
        sim.run(0.2)
        creep, weight = np.abs(sim.rope("rope").position - lies).max(), sim.contacts().force.sum(0)
        due = 0.2 * sim.rope("rope").length * G
        ends.append(sim.rope("rope").position)
        print(f"{solver}: energy rises by at most {np.diff(energies).max():.0e} J a step, {missed} of {len(energies) - 1} steps "
              f"not met; stretch {stretch:.0e}; creeps {creep:.0e} m in 0.2 s; the floor bears {weight[2]:.6f} N of {due:.6f}; "
              f"{lies[:, 2].min():.6f} to {lies[:, 2].max():.6f} m high")  # fmt: skip
        assert np.diff(energies).max() < 1e-6 and stretch < 1e-9 and creep < 1e-9 and missed == 0
        assert weight == pytest.approx([0, 0, due], abs=1e-6) and lies[:, 2] == pytest.approx(0.01, abs=2e-5)
    off = np.abs(ends[0] - ends[1]).max()
    print(f"the two lie within {off:.0e} m")
    assert off < 1e-4


@pytest.mark.parametrize("dt", [0.005, 0.015])
def test_a_rope_slides_around_a_drum_by_the_capstan_law(dt):
    capstan(dt, 0.3, np.pi, 0.01, "direct")


def test_a_rope_turns_a_pulley_by_friction():
    for solver in BOTH:
        sim, mass = over_a_pulley(0.002, solver)
        energies, stretch, missed = run(sim, 0.2)
        due = G * sim.time / mass
        speed, rim = -sim.body("b").velocity[2], sim.joint("hinge").velocity * R
        print(f"{solver}: load falls at {speed:.5f} m/s, theory {due:.5f}; rim {rim:.5f} m/s; energy at most "
              f"{energies.max() - energies[0]:.0e} J above the start; stretch {stretch:.0e}; {missed} steps not met")  # fmt: skip
        assert speed == pytest.approx(due, rel=5e-3) and rim == pytest.approx(speed, rel=2e-3)
        assert energies.max() - energies[0] < 1e-3 and stretch < 1e-9 and missed == 0


def test_slings_carry_a_box():
    for solver in BOTH:
        sim = in_slings(0.3, 20.0, 0.02, 0.75, solver)
        energies, stretch, missed = run(sim, 0.1, ("sling 0", "sling 1"))
        borne = -np.mean([sum(sim.contact_force(f"sling {k}", "box")[2] for k in (0, 1)) for _ in (sim.step() for _ in range(5))])
        z = sim.body("box").position[2]
        print(f"{solver}: slings bear {borne:.2f} N of {20 * G:.2f}, the box is at {z:.5f} m; energy at most "
              f"{energies.max() - energies[0]:.0e} J above the start; stretch {stretch:.0e}; {missed} steps not met")  # fmt: skip
        assert borne == pytest.approx(20 * G, rel=0.01) and abs(z) < 2e-3 and stretch < 1e-6 and missed == 0
        assert solver != "direct" or energies.max() - energies[0] < 1e-9


def towed(solver, dt):
    """Two sleds on rails, a rope between that lies on the ground, and a pull on the first."""
    scene, m = sh.Scene(), sh.Material(friction=0.5)
    scene.add_ground(material=m)
    for name, x, mass in (("a", 0.0, 5.0), ("b", -1.6, 4.0)):
        scene.add_body(name, sh.Box(0.3, 0.2, 0.1), mass=mass, position=(x, 0, 0.07), material=m)
        scene.add_joint(f"rail {name}", sh.Prismatic("x"), scene.world, name, position=(x, 0, 0.07))
    corners = np.array([[-0.15, 0, 0.07], [-0.4, 0, 0.012], [-1.2, 0, 0.012], [-1.45, 0, 0.07]])
    s = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(corners, axis=0), axis=1))])
    p = np.stack([np.interp(np.linspace(0, s[-1], 25), s, x) for x in corners.T], 1)
    lengths = np.linalg.norm(np.diff(p, axis=0), axis=1)
    scene.add_rope("rope", points=p, segments=lengths, radius=0.01, mass_per_length=0.2, attach=("a", "b"), material=m)
    sim = sh.Simulation(scene, dt, solver=solver)
    sim.body("a").apply_force((20, 0, 0), once=False)
    return sim


def test_a_tow_rope_lies_on_the_ground_between_two_sleds():
    found = {}
    for solver in BOTH:
        sim = towed(solver, 0.002)
        _, stretch, missed = run(sim, 0.03)
        met = sim.contact_force("rope", "world")
        _, more, again = run(sim, 0.3)
        found[solver] = np.array([sim.body(k).position[0] for k in "ab"] + [sim.body(k).velocity[0] for k in "ab"])
        total = 5 * found[solver][2] + 4 * found[solver][3]
        print(f"{solver}: the ground bears {met[2]:.2f} N of the rope and rubs with {met[0]:.3f} N; a and b at "
              f"{found[solver].round(4)}, momentum {total:.3f} kg·m/s of at most {20 * sim.time:.3f}; stretch "
              f"{max(stretch, more):.0e}; {missed + again} steps not met")  # fmt: skip
        assert met[2] > 0.5 and max(stretch, more) < 1e-3 and missed + again <= 2 and 0.9 < total / (20 * sim.time) < 1.0
    off = np.abs(found["direct"] - found["sequential"])
    print(f"direct and sequential within {off[:2].max():.0e} m and {off[2:].max():.0e} m/s")
    assert off[:2].max() < 3e-3 and off[2:].max() < 0.02


def test_a_rope_lies_across_another():
    for solver in BOTH:
        scene, m = sh.Scene(contact=True), sh.Material(friction=0.5)
        for k, y in enumerate((-0.1, 0.1)):
            scene.add_rope(f"under {k}", (-0.2, y, 0), (0.2, y, 0), length=0.41, segments=20, radius=RADIUS, mass_per_length=0.1,
                           attach=("world", "world"), material=m)  # fmt: skip
        scene.add_rope(
            "rope", (0.003, -0.3, -0.02), (0.003, 0.3, -0.02), segments=31, radius=RADIUS, mass_per_length=0.1, material=m
        )
        sim = sh.Simulation(scene, 0.005, solver=solver)
        energies, stretch, missed = run(sim, 0.15)
        borne = sum(sim.contact_force("rope", f"under {k}")[2] for k in (0, 1))
        print(f"{solver}: energy rises by at most {np.diff(energies).max():.0e} J a step; borne {borne:.3f} N of {0.06 * G:.3f}; "
              f"overlap {-sim.contacts().gap.min():.0e} m; stretch {stretch:.0e}; {missed} steps not met")  # fmt: skip
        assert (
            np.diff(energies).max() < (2e-6 if solver == "direct" else 5e-5)
            and missed == 0
            and -sim.contacts().gap.min() < 5e-4
            and stretch < 1e-6
            and borne > 0.1
        )
