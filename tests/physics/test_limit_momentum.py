"""Limits keep momenta: floating mechanisms of all joint types whose limits are met, inelastically and with restitution."""

import warnings

import numpy as np
import pytest
from mechanisms import add_body, kinds

import sharnir as sh
from sharnir.core.spatial import quat_exp


def floating(seed, restitution):
    """Two to five bodies in a chain, thrown and spun, every joint between stops that are soon met."""
    rng = np.random.default_rng([seed, 5])
    scene, places = sh.Scene(gravity=(0, 0, 0)), {}
    for i in range(int(rng.integers(2, 6))):
        base = list(places)[-1] if places else None
        at = places.get(base, np.zeros(3)) + 0.5 * rng.normal(size=3)
        moves = {"velocity": 0.5 * rng.normal(size=3), "angular_velocity": 1.5 * rng.normal(size=3)}
        add_body(scene, f"b{i}", rng, at, float(10 ** rng.uniform(-0.5, 0.5)), **moves)
        if base:
            make = kinds(rng)[int(rng.integers(1, 14))]
            laws = {}
            if len(make().turns) != 3:
                laws["limit"] = sh.Limit(-0.1, 0.15, restitution=restitution) if restitution else (-0.1, 0.15)
            elif isinstance(make(), sh.Spherical):
                cone, angles = sh.SwingTwist(0.15, (-0.1, 0.1)), sh.Cardan(x=(-0.1, 0.15), y=(-0.1, 0.1), z=(-0.2, 0.2))
                laws["limit"] = angles if rng.random() < 0.5 else cone
            place, turn = 0.5 * (places[base] + at), quat_exp(rng.normal(size=3))
            scene.add_joint(f"j{i}", make(**laws), base, f"b{i}", position=place, rotation=turn)
        places[f"b{i}"] = at
    return scene


def keeps_momenta(seed, restitution, steps=300):
    scene = floating(seed, restitution)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sh.SceneWarning)  # velocities at random contradict the joints
        sim = sh.Simulation(scene, 2e-3)
    sim.step()
    start, energy = sim.momentum(), sim.energy().total
    met, most = False, energy
    for _ in range(steps):
        sim.step()
        now = sim.energy().total
        assert now < most + 1e-9 * energy, "a limit gives no energy"
        most = now
        for name, described in scene.joints.items():
            joint = described.joint
            if joint.v_size:
                met = met or bool(np.any(sim.joint(name).limit_force))
                if len(joint.turns) != 3:
                    q = np.ravel(sim.joint(name).position)
                    assert q.min() > -0.1 - 1e-9 and q.max() < 0.15 + 1e-9
    end = sim.momentum()
    assert np.linalg.norm(end.angular - start.angular) < 1e-9 * np.linalg.norm(start.angular)
    assert np.linalg.norm(end.linear - start.linear) < 1e-9 * np.linalg.norm(start.linear)
    return met


# of those with limits on several axes at once: what a joint alone makes of them went round, with 7 % of the energy gained
HARD = (1, 7, 57, 63, 125, 176)


@pytest.mark.parametrize("restitution", [0.0, 0.5])
def test_floating_mechanisms_keep_momenta_when_limits_are_met(restitution):
    assert sum(keeps_momenta(seed, restitution) for seed in (*range(8), *HARD)) > 8


@pytest.mark.slow
def test_many_floating_mechanisms_keep_momenta_when_limits_are_met():
    assert sum(keeps_momenta(seed, restitution) for seed in range(300) for restitution in (0.0, 0.5)) > 500


def test_an_inelastic_limit_stops_a_joint_and_no_more():
    """Two bars in free fall of rest: relative speed gone at the limit, energy what the locked pair has."""
    scene = sh.Scene(gravity=(0, 0, 0))
    for name, at in (("a", -0.5), ("b", 0.5)):
        scene.add_body(
            name, mass=1.0, inertia=np.diag([0.01, 0.1, 0.1]), position=(at, 0, 0), angular_velocity=(0, np.sign(at), 0)
        )
    scene.add_joint("j", sh.Revolute("y", limit=(-0.2, 0.2)), "a", "b", position=(0, 0, 0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sh.SceneWarning)
        sim = sh.Simulation(scene, 1e-3)
    sim.run(1.0)
    assert abs(abs(sim.joint("j").position) - 0.2) < 1e-12
    assert abs(sim.joint("j").velocity) < 1e-9
    spin, expected = sim.body("a").angular_velocity, sim.momentum().angular[1]
    assert np.allclose(spin, sim.body("b").angular_velocity, atol=1e-12)
    assert abs(expected) < 1e-12 and sim.energy().kinetic < 1e-12


# ---- rotors -----------------------------------------------------------------------------------------------------------------


def two_links(drive, axis="hinge", ground=False):
    """Two links in a row, the first between stops, driven by motors with rotors that weigh more than the links."""
    scene = sh.Scene(gravity=(0, 0, 0))
    if ground:
        scene.add_ground(-5.0)
    bases = [scene.world, "b0"]
    for i, base in enumerate(bases):
        scene.add_body(f"b{i}", mass=4.0, inertia=(0.05, 0.05, 0.05), position=(0, 0, -0.25 - 0.5 * i))
        limits = {"limit": {"ry": (-2.0, 0.05)} if axis == "two axes" else (-2.0, 0.05)} if i == 0 else {}
        joint = (
            sh.Joint("rx ry", drive={"ry": drive}, **limits) if axis == "two axes" else sh.Revolute("y", drive=drive, **limits)
        )
        scene.add_joint(f"j{i}", joint, base, f"b{i}", position=(0, 0, -0.5 * i))
    return scene


@pytest.mark.parametrize("ground", [False, True])
@pytest.mark.parametrize("axis", ["hinge", "two axes"])
def test_rotors_take_part_in_an_impact_at_a_limit(axis, ground):
    """When the first link is stopped, the second keeps its generalized momentum, its rotor's included."""
    sim = sh.Simulation(two_links(sh.Servo(armature=1.0), axis, ground), 2e-3, sleep=False)
    first, second = (int(sim.index(name).qd[-1]) for name in ("j0", "j1"))
    speeds = np.zeros(sim.model.speeds)
    speeds[[first, second]] = 1.0, 0.3
    sim.qd = speeds
    start, energies = sim.energy().total, []
    for _ in range(60):
        assert sim.step().converged
        energies.append(sim.energy().total)
    own, by_first = 0.05 + 4.0 * 0.25**2 + 1.0, 0.05 + 4.0 * (0.25**2 + 0.5 * 0.25)  # kg·m², of the second axis
    print(f"{sim.qd[second]:.6f} rad/s, {0.3 + by_first / own:.6f} expected; {start:.6f} J, then at most {max(energies):.6f} J")
    assert abs(sim.qd[first]) < 1e-9
    assert sim.qd[second] == pytest.approx(0.3 + by_first / own, rel=2e-3)
    assert max(energies) <= start * (1 + 1e-6)
